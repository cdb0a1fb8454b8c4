"""functional/composition_table.c: the descriptions of the compositions, by which eddy_call calls them."""

from table import attribute_row, operand_row
from text import NOTICE, quoted


def lines_of(entry):
    lines = [f"static const eddy_op_operand {entry.name}_operands[] = {{", *map(operand_row, entry.operands), "};"]
    rows = [attribute_row(entry, a) for a in entry.struct_attributes]
    if rows:
        lines += [f"static const eddy_op_attribute {entry.name}_attributes[] = {{", *rows, "};"]
    fields = [f".name = {quoted(entry.name)}", ".id = EDDY_OP_REGISTERED", f".operands = {entry.name}_operands",
              f".operand_count = {len(entry.operands)}", ".output_count = 1", f".summary = {quoted(entry.summary)}"]
    if rows:
        fields += [f".attributes = {entry.name}_attributes", f".attribute_count = {len(rows)}",
                   f".attribute_bytes = sizeof({entry.arguments})"]
    lines += [f"static const eddy_composition {entry.name} = {{.op = {{{', '.join(fields)}}},",
              f"    .run = eddy_composition_{entry.name}}};", ""]
    return lines


def emit(entries, compositions):
    parts = [NOTICE, "/* The table of compositions. */",
             "#include <functional/arguments.h>\n#include <functional/composition.h>\n#include <stddef.h>\n#include <string.h>\n"]
    for entry in compositions:
        parts += lines_of(entry)
    parts += ["static const eddy_composition *const table[] = {", *(f"    &{e.name}," for e in compositions), "};", "",
              "const eddy_composition *eddy_composition_find(const char *name) {",
              "    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)",
              "        if (strcmp(table[i]->op.name, name) == 0)",
              "            return table[i];",
              "    return NULL;", "}", ""]
    return "\n".join(parts)
