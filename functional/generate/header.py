"""include/eddy/ops.h: the public prototypes, with their documentation and option structs."""

from dataclasses import dataclass

import errors
from entry import TYPES
from text import NOTICE, comment, sentence_list


@dataclass
class Function:
    """One public function of an entry: form is "", "into" or "inplace"."""
    entry: object
    form: str

    @property
    def name(self):
        return "eddy_" + self.entry.name + (f"_{self.form}" if self.form else "")

    @property
    def returns_tensor(self):
        return not self.form and len(self.entry.outputs) == 1

    @property
    def parameters(self):
        """(C type, name) in order: operands, target, required parameters, options, outputs."""
        result = []
        for operand in self.entry.operands:
            result.append(("eddy_list " if operand.kind == "list" else "eddy_tensor *", operand.name))
        if self.form == "into":
            result.append(("eddy_tensor *", "target"))
        for attribute in self.entry.parameters:
            ctype = TYPES[attribute.passed_as or attribute.type][2]
            result.append((ctype if ctype.endswith("*") else ctype + " ", attribute.name))
        if has_options(self.entry, self.form):
            result.append((f"const eddy_{options_name(self.entry)}_options *", "options"))
        if not self.form and len(self.entry.outputs) > 1:
            result += [("eddy_tensor **", name) for name in self.entry.outputs]
        return result

    @property
    def declaration(self):
        head = f"eddy_tensor *{self.name}" if self.returns_tensor else f"eddy_status {self.name}"
        parameters = ", ".join(f"{ctype}{name}" for ctype, name in self.parameters)
        return f"{head}({parameters or 'void'})"


def functions(entry):
    return [Function(entry, form) for form in ["", *(f for f in ("into", "inplace") if f in entry.forms)]]


def option_fields(entry, form=""):
    """Options of a form. Forms with a target have no device option."""
    return [o for o in entry.options if not (form and o.type == "device")]


def has_options(entry, form):
    return bool(option_fields(entry, form))


def options_name(entry):
    return entry.name


def options_struct(entry):
    lines = [f"typedef struct eddy_{options_name(entry)}_options {{",
             "    size_t size; /* of this struct; EDDY_OPTIONS fills it in */"]
    for option in entry.options:
        ctype = TYPES[option.type][2]
        ctype = f"eddy_{option.name}" if option.type == "choice" else ctype
        space = "" if ctype.endswith("*") else " "
        doc = option.doc.rstrip(".")
        if option.type == "choice":
            doc += "; 0: " + option.choices[0]
        elif option.default:
            doc += f"; 0: {option.default}"
        lines.append(f"    {ctype}{space}{option.name}; /* {doc} */")
        if option.zero_flag:
            lines.append(f"    bool {option.name}_is_zero; /* {option.name} is 0 and not {option.default} */")
    lines.append(f"}} eddy_{options_name(entry)}_options;")
    return "\n".join(lines)


def dtype_text(entry):
    if not entry.is_elementwise:
        return ""
    floats = {"f32", "f64", "f16", "bf16"}
    if set(entry.dtypes) == floats:
        text = "floats"
    elif len(entry.dtypes) == 10:
        text = "all"
    elif not floats & set(entry.dtypes):
        text = "integers and bool"
    elif "bool" not in entry.dtypes:
        text = "all but bool"
    else:
        text = ", ".join(entry.dtypes)
    if entry.promotion == "float":
        text += " (integers and bool are taken as f32)"
    return f"Computed in: {text}."


def returns_text(function):
    entry = function.entry
    if function.form == "into":
        return "Writes to target, which has the result's shape; returns a status."
    if function.form == "inplace":
        return f"Writes to {entry.operands[0].name}, which must have the result's shape and a dtype that holds it; returns a status."
    written = [o.name for o in entry.operands if o.access == "mut"]
    if not entry.outputs:
        return f"Writes to {sentence_list(written)}; returns a status."
    if len(entry.outputs) > 1:
        return "Fills the out-parameters with new tensors on success only; returns a status."
    return f"A new tensor, or NULL; writes to {sentence_list(written)}." if written else "A new tensor, or NULL."


def documentation(function):
    entry = function.entry
    if function.form:
        return comment([f"{entry.name} with a target. {returns_text(function)}" if function.form == "into"
                        else f"{entry.name} in place. {returns_text(function)}"])
    documented = [f"{a.name}: {a.doc}" for a in entry.parameters if a.doc and a.doc != "The right side."]
    accuracy = ""
    if entry.ulp:
        accuracy = f"Within {entry.ulp} ulp" + (f" ({entry.ulp_f64} for f64)" if entry.ulp_f64 != entry.ulp else "")
        accuracy += f" of {entry.ulp_of}." if entry.ulp_of else "."
    lines = [entry.summary, " ".join(documented), " ".join(t for t in (dtype_text(entry), accuracy) if t)]
    if entry.source:
        lines.append(f"Algorithm: {entry.source}")
    if entry.layout:
        like = next(o for o in entry.operands if o.name == entry.layout)
        whose = f"the first of {like.name}" if like.kind == "list" else like.name
        lines.append(f"Laid out in memory in the order of the axes of {whose}: channels last stays channels last.")
    refused = errors.text(entry)
    lines.append(returns_text(function) + (f" Errors: {refused}." if refused else ""))
    return comment(lines)


def introduction():
    shared = "; ".join(f"{status} ({when})" for status, when in errors.SHARED)
    return comment([
        "The ops.",
        "What holds for each unless it says otherwise: the semantics (broadcasting, promotion, NaN, negative axes) are PyTorch's. It "
        "takes tensors of every layout and size, zero included. It returns at once, blocking only for a shape that is not known yet "
        "or where the caller has run far ahead. A new tensor is row-major; that of an elementwise op "
        "lies in memory as the operands do, with their strides where they leave no gaps: the first operand in which two axes do not "
        "repeat decides which of the two is the outer one. It "
        "belongs to the innermost scope open on the calling thread, else to the caller. Any thread may call it. On failure it "
        "returns NULL or a status and the thread's error slot names the op, its operands and the place. What goes wrong later (late errors) is in the result and shows when that is read.",
        f"Errors besides those that are named with an op: {shared}.",
        "_s forms take a number on the right, which promotes by category: an i32 tensor plus EDDY_S(2) stays i32. Where that is an integer dtype it "
        "has to hold the number, or integers wrap around in the op and the number with them (<eddy/scalar.h>). _into forms write "
        "to a given tensor and _inplace forms to their first operand, which may be exactly an operand of an elementwise op but must "
        "not overlap one otherwise, nor repeat elements.",
    ])


def emit(entries):
    parts = [
        NOTICE, introduction(),
        "#ifndef EDDY_OPS_H\n#define EDDY_OPS_H\n",
        "#include <eddy/call_sites.h>\n#include <eddy/choice.h>\n#include <eddy/device.h>\n#include <eddy/dtype.h>\n#include <eddy/export.h>\n"
        "#include <eddy/generator.h>\n#include <eddy/options.h>\n#include <eddy/scalar.h>\n#include <eddy/shape.h>\n"
        "#include <eddy/status.h>\n#include <eddy/tensor.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
    ]
    family = None
    for entry in entries:
        if entry.family != family:
            family = entry.family
            parts.append(f"\n/* ---- {family} ---- */")
        parts.append("")
        if entry.options:
            parts.append(options_struct(entry))
        for function in functions(entry):
            parts.append(documentation(function))
            parts.append(f"EDDY_API {function.declaration};")
    parts.append("\n#ifdef __cplusplus\n}\n#endif\n")
    parts.append("#ifdef EDDY_CALL_SITES")
    for entry in entries:
        for function in functions(entry):
            parts.append(f"#define {function.name}(...) EDDY_AT_CALL_SITE({function.name}(__VA_ARGS__))")
    parts.append("#endif\n\n#endif\n")
    return "\n".join(parts)
