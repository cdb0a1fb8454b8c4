"""kernels/cpu/kernels.h, functional/infer.h and functional/gradients.h: declarations of the hand-written functions that entries name."""

from gradient import by_hand
from text import NOTICE, comment


def by_name(entries, names_of):
    """family -> name -> entries that use the name; a name is listed under the first family that uses it."""
    users, families = {}, {}
    for entry in entries:
        for name in names_of(entry):
            if name not in users:
                families.setdefault(entry.family, []).append(name)
            users.setdefault(name, []).append(entry)
    return {family: {name: users[name] for name in names} for family, names in families.items()}


def kernel_operand(operand):
    text = {"tensor": "{}", "optional": "{} or none", "list": "{} .."}[operand.kind].format(operand.name)
    return f"{text} (written)" if operand.access == "mut" else text


def signature(entry):
    """"[input, index -> output]", without operands that only the shape rule gets."""
    operands = ", ".join(kernel_operand(o) for o in entry.operands if not o.spec_only)
    outputs = f"-> {', '.join(entry.outputs)}" if entry.outputs else ""
    return f"[{' '.join(part for part in (operands, outputs) if part)}]"


def signatures(entries):
    """"matmul, mm [a, b -> output]; x [..]": the operands that a kernel gets from each of its ops."""
    ops = {}
    for entry in entries:
        ops.setdefault(signature(entry), []).append(entry.name)
    return "; ".join(f"{', '.join(names)} {text}" for text, names in ops.items())


def header(guard, about, includes, found, declare):
    parts = [NOTICE, comment([about]), f"#ifndef {guard}\n#define {guard}\n", f"#include <{includes}>", ""]
    for family, names in found.items():
        parts += [f"/* ---- {family} ---- */", ""]
        for name, users in names.items():
            parts += declare(name, users)
        parts.append("")
    return "\n".join([*parts, "#endif", ""])


def emit_kernels(entries):
    found = by_name(entries, lambda e: [e.kernel] if e.kernel else [])
    return header("EDDY_KERNELS_CPU_KERNELS_H",
                  "Every CPU kernel that is not elementwise, with the ops that it runs. In brackets what these give it; their attribute "
                  "structs are in kernels/attributes.h, dtypes and errors in functional/ops.",
                  "kernels/kernel.h", found,
                  lambda name, users: [comment([signatures(users) + "."]), f"extern const eddy_kernel eddy_cpu_{name};"])


def emit_infer(entries):
    found = by_name(entries, lambda e: [e.infer] if e.infer else [])
    return header("EDDY_FUNCTIONAL_INFER_H",
                  "Shape rules: what the outputs of an op are like, given its inputs and attributes. Each checks what the kernel relies on, "
                  "normalises axes in the attribute struct, and fails with one sentence (the interpreter adds op and operands). Pure but "
                  "for the error slot; the calling thread. Sources: functional/infer/.",
                  "interpreter/call/op.h", found, lambda name, users: [f"eddy_status eddy_infer_{name}(eddy_infer *infer);"])


def gradients_in_c(entry):
    """Names of the functions of functional/gradient/ that an entry names."""
    texts = entry.gradient.values() if isinstance(entry.gradient, dict) else []
    return list(dict.fromkeys(by_hand(text)[0] for text in texts if text.startswith("c:")))


def emit_gradients(entries):
    return header("EDDY_FUNCTIONAL_GRADIENTS_H", "Gradients in C, by the name that entries give. Sources: functional/gradient/.",
                  "interpreter/tape/gradient.h", by_name(entries, gradients_in_c),
                  lambda name, users: [f"eddy_gradient_fn eddy_gradient_{name};"])
