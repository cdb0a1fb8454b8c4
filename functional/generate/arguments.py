"""functional/arguments.h and arguments_<group>.h: one attribute struct per op with attributes. The structs of elementwise ops are in one
header per group of loops, so that a group's block file includes only its own.

A struct begins with the kernel's struct (kernels/attributes.h); the attributes that only inference needs follow it."""

from entry import TYPES
from loops import elementwise, group_of, groups
from text import NOTICE


def path(entry, attribute):
    """The attribute's field in the op's struct."""
    return f"kernel.{attribute.name}" if entry.struct and entry.extras and not attribute.extra else attribute.name


def kernel_bytes(entry):
    """C text for the number of leading bytes that kernels read."""
    if not entry.arguments:
        return "0"
    if entry.struct:
        return f"sizeof(eddy_attributes_{entry.struct})"
    return "0" if entry.extras else f"sizeof({entry.arguments})"


def struct(entry):
    if entry.struct and not entry.extras:
        return f"typedef eddy_attributes_{entry.struct} {entry.arguments};"
    fields = entry.extras or entry.struct_attributes
    lines = [f"    eddy_attributes_{entry.struct} kernel;"] if entry.struct else []
    lines += [f"    {TYPES[a.type][1]} {a.name};" for a in fields]
    return "\n".join([f"typedef struct {entry.arguments} {{", *lines, f"}} {entry.arguments};"])


def checks(entry):
    """Assertions on the C types of the fields, since eddy_call writes them by offset."""
    return [
        f"_Static_assert(_Generic((({entry.arguments} *)0)->{path(entry, a)}, {TYPES[a.type][1]}: 1, default: 0), "
        f"\"{entry.name}: {a.name} is no {a.type}\");"
        for a in entry.struct_attributes
    ]


def choice_checks(entries):
    """Assertions that the enums of include/eddy/choice.h agree with the op list."""
    rows = {(f"EDDY_{a.name}_{c}".upper(), i) for e in entries for a in e.attributes for i, c in enumerate(a.choices)}
    return [f"_Static_assert((int){name} == {value}, \"choices differ\");" for name, value in sorted(rows)]


def header(name, what, entries):
    guard = f"EDDY_FUNCTIONAL_{name.upper()}_H"
    parts = [
        NOTICE,
        f"/* The attribute structs of {what}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <eddy/choice.h>\n#include <eddy/dtype.h>\n#include <eddy/scalar.h>\n#include <eddy/shape.h>\n#include <kernels/attributes.h>\n"
        "#include <stdbool.h>\n#include <stdint.h>",
        "",
    ]
    own = [entry for entry in entries if entry.arguments]
    for entry in own:
        parts += [struct(entry), ""]
    asserted = [line for entry in own for line in checks(entry)] + choice_checks(entries)
    return "\n".join([*parts, "#ifndef __cplusplus", *asserted, "#endif", "", "#endif", ""])


def emit(entries, compositions=()):
    """functional/arguments.h: the structs of ops that are not elementwise, and of compositions."""
    return header("arguments", "ops that are not elementwise", [*(e for e in entries if not e.is_elementwise), *compositions])


def emit_group(entries, group):
    own = elementwise(entries, group)
    if own[0].chain:
        return "\n".join([NOTICE, "/* The numbers of chains. */", "#include <interpreter/call/chain.h>", ""])
    borrowed = sorted({group_of(e.gradient_of) for e in own if e.gradient_of})
    if borrowed:
        return "\n".join([NOTICE, "/* The attribute structs that gradients share with their ops. */",
                          *(f"#include <functional/arguments_{other}.h>" for other in borrowed), ""])
    return header(f"arguments_{group}", "a group of elementwise ops", own)


def emit_all(entries):
    lines = [f"#include <functional/arguments_{group}.h>" for group in groups(entries)]
    return "\n".join([
        NOTICE, "/* The attribute structs of all ops. */", "#ifndef EDDY_FUNCTIONAL_ARGUMENTS_ALL_H",
        "#define EDDY_FUNCTIONAL_ARGUMENTS_ALL_H", "", "#include <functional/arguments.h>", *lines, "", "#endif", ""])
