"""functional/arguments.h: one attribute struct per op that has attributes.

A kernel's own struct (kernels/attributes.h) comes first; behind it stands what only inference needs."""

from entry import TYPES
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
    """The C types have to be those that eddy_call writes by offset."""
    return [
        f"_Static_assert(_Generic((({entry.arguments} *)0)->{path(entry, a)}, {TYPES[a.type][1]}: 1, default: 0), "
        f"\"{entry.name}: {a.name} is no {a.type}\");"
        for a in entry.struct_attributes
    ]


def choice_checks(entries):
    """The enums of include/eddy/choice.h have to say what the list says."""
    rows = {(f"EDDY_{a.name}_{c}".upper(), i) for e in entries for a in e.attributes for i, c in enumerate(a.choices)}
    return [f"_Static_assert((int){name} == {value}, \"choices differ\");" for name, value in sorted(rows)]


def emit(entries, compositions=()):
    parts = [
        NOTICE,
        "/* The attribute structs of ops. */",
        "#ifndef EDDY_FUNCTIONAL_ARGUMENTS_H",
        "#define EDDY_FUNCTIONAL_ARGUMENTS_H",
        "",
        "#include <eddy/choice.h>\n#include <eddy/dtype.h>\n#include <eddy/scalar.h>\n#include <eddy/shape.h>\n#include <kernels/attributes.h>\n"
        "#include <stdbool.h>\n#include <stdint.h>",
        "",
    ]
    for entry in [*entries, *compositions]:
        if entry.arguments:
            parts += [struct(entry), *checks(entry), ""]
    return "\n".join(parts + choice_checks([*entries, *compositions]) + ["", "#endif", ""])
