"""functional/op_table.h and .c: descriptions of the ops for the interpreter, and the kernels of elementwise ops."""

import cost
from arguments import kernel_bytes, path
from entry import DTYPES, KINDS, PROMOTIONS, RESULTS, TYPES
from loops import group_of, groups, tag
from text import NOTICE, quoted


def scalar(value):
    if isinstance(value, bool):
        return f"{{.kind = EDDY_SCALAR_BOOL, .value = {{.integer = {int(value)}}}}}"
    if isinstance(value, int):
        return f"{{.kind = EDDY_SCALAR_INT, .value = {{.integer = {value}}}}}"
    return f"{{.kind = EDDY_SCALAR_FLOAT, .value = {{.floating = {value!r}}}}}"


def flag(name, is_set):
    return f", .{name} = true" if is_set else ""


def operand_row(operand):
    return (f"    {{.name = {quoted(operand.name)}, .kind = EDDY_OPERAND_{KINDS[operand.kind]}"
            + flag("is_mut", operand.access == "mut")
            + flag("is_bool", operand.is_bool) + flag("is_spec_only", operand.spec_only)
            + flag("is_index", operand.is_index) + "},")


def attribute_row(entry, attribute):
    default = attribute.default
    if attribute.type == "float":
        default = float(default)
    if attribute.type == "bool":
        default = bool(default)
    choices = f", .choices = {quoted(' '.join(attribute.choices))}" if attribute.choices else ""
    return (f"    {{.name = {quoted(attribute.name)}, .type = EDDY_ATTRIBUTE_{TYPES[attribute.type][0]}, "
            f".offset = offsetof({entry.arguments}, {path(entry, attribute)})"
            + flag("is_required", attribute.is_required)
            + flag("is_fixed", attribute.role == "fixed") + flag("is_held", attribute.is_held)
            + flag("zero_is_none", attribute.zero_is_none)
            + f", .default_value = {scalar(default)}{choices}}},")


def elementwise_kernels(entry):
    """C lines of the kernels, and of their table by dtype."""
    lines = []
    for dtype in entry.dtypes:
        loop = f"{entry.name}_{tag(dtype)}"
        costs = f"{cost.BASE}, {cost.element(entry, dtype)}"
        lines.append(f"KERNEL({group_of(entry)}, {loop}, {quoted(entry.name)}, {costs})")
    rows = ", ".join(f"[EDDY_{d.upper()}] = &{entry.name}_{tag(d)}_kernel" for d in entry.dtypes)
    lines.append(f"static const eddy_kernel *const {entry.name}_kernels[EDDY_DTYPE_COUNT] = {{{rows}}};")
    return lines


def other_kernels(entry):
    if entry.broadcasts:
        row = ", ".join([f"&eddy_cpu_{entry.kernel}"] * len(DTYPES))
        return [f"static const eddy_kernel *const {entry.name}_kernels[EDDY_DTYPE_COUNT] = {{{row}}};"]
    return [f"static const eddy_kernel *const {entry.name}_kernels[] = {{&eddy_cpu_{entry.kernel}}};"]


def op_lines(number, entry):
    lines = elementwise_kernels(entry) if entry.is_elementwise else other_kernels(entry)
    fields = [f".name = {quoted(entry.name)}", f".id = {number}"]
    if entry.operands:
        lines += [f"static const eddy_op_operand {entry.name}_operands[] = {{", *map(operand_row, entry.operands), "};"]
        fields += [f".operands = {entry.name}_operands", f".operand_count = {len(entry.operands)}"]
    if entry.outputs:
        names = ", ".join(quoted(o) for o in entry.outputs)
        lines.append(f"static const char *const {entry.name}_outputs[] = {{{names}}};")
        fields += [f".outputs = {entry.name}_outputs", f".output_count = {len(entry.outputs)}"]
    if entry.struct_attributes:
        rows = [attribute_row(entry, a) for a in entry.struct_attributes]
        lines += [f"static const eddy_op_attribute {entry.name}_attributes[] = {{", *rows, "};"]
        fields += [f".attributes = {entry.name}_attributes", f".attribute_count = {len(rows)}"]
    if entry.arguments:
        fields += [f".attribute_bytes = sizeof({entry.arguments})", f".kernel_attribute_bytes = {kernel_bytes(entry)}"]
    for name, is_set in (("is_elementwise", entry.is_elementwise or entry.broadcasts), ("has_late_shape", entry.late_shape),
                         ("is_random", bool(entry.random)), ("allows_alias", bool(entry.alias)),
                         ("alias_is_first", entry.alias == "first"), ("numbers_wrap", entry.wraps),
                         ("indices_from_end", entry.from_end), ("crosses_devices", entry.crosses_devices)):
        if is_set:
            fields.append(f".{name} = true")
    fields += [f".promotion = EDDY_PROMOTE_{PROMOTIONS[entry.promotion]}", f".result = EDDY_RESULT_{RESULTS[entry.result]}",
               f".scalar_count = {len(entry.scalars)}"]
    names = [a.name for a in entry.struct_attributes]
    for chance in (entry.random, entry.redraws):
        if isinstance(chance, str):
            fields.append(f".chance_of = {1 + names.index(chance)}")
    if entry.redraws:
        fields.append(f".redraws = {1 + names.index('seed')}")
    if entry.skips:
        fields.append(f".skips_of = {1 + [o.name for o in entry.operands].index(entry.skips)}")
    if entry.layout:
        fields.append(f".layout_of = {1 + [o.name for o in entry.operands].index(entry.layout)}")
    if entry.last_where:
        fields.append(f".last_where = {1 + [a.name for a in entry.struct_attributes].index(entry.last_where)}")
    if entry.infer:
        fields.append(f".infer = eddy_infer_{entry.infer}")
    if isinstance(entry.gradient, dict) and entry.gradient:
        lines.insert(0, f"extern const eddy_gradient eddy_gradient_data_{entry.name};")
        fields.append(f".gradient = &eddy_gradient_data_{entry.name}")
    elif entry.gradient == "none":
        fields.append(".gradient = &eddy_gradient_none")
    if entry.late_errors:
        fields.append(".may_fail = true")
    if "INVALID_ARGUMENT" in entry.late_errors:
        fields.append(f".late_invalid = {quoted(', or '.join(entry.late_errors['INVALID_ARGUMENT']))}")
    fields += [f".kernels = {entry.name}_kernels", f".summary = {quoted(entry.summary)}"]
    lines += [f"const eddy_op eddy_op_{entry.name} = {{"] + [f"    {f}," for f in fields] + ["};", ""]
    return lines


def emit_header(entries):
    ops = "\n".join(f"extern const eddy_op eddy_op_{e.name};" for e in entries if not e.gradient_of)
    fused = "\n".join(f"extern const eddy_op eddy_op_{e.name};" for e in entries if e.gradient_of)
    return "\n".join([
        NOTICE, "/* The built-in ops. */", "#ifndef EDDY_FUNCTIONAL_OP_TABLE_H", "#define EDDY_FUNCTIONAL_OP_TABLE_H", "",
        "#include <interpreter/call/op.h>", "", ops, "",
        "/* Gradients in one loop (generate/fused.py): in no table, so that eddy_call does not find them. */", fused, "",
        "/* Both in the order of strcmp: eddy_op_table, and gradients in one loop. */", "extern const eddy_op *const eddy_op_by_name[];",
        "extern const eddy_op *const eddy_op_looped[];", "extern const uint32_t eddy_op_looped_count;", "", "#endif", "",
    ])


KERNEL_MACRO = """/* The table of the chosen instruction set, which is known at run time only; it is nothing but pointers to loops. */
#define GROUP(group)                                                                                                   \\
    static eddy_loop_fn *const *loops_##group(void) {                                                                  \\
        return (eddy_loop_fn *const *)(const void *)eddy_cpu_loops_##group();                                          \\
    }

#define KERNEL(group, name_, label, base, element)                                                                     \\
    static const eddy_kernel name_##_kernel = {.name = label,                                                          \\
                                               .run = eddy_kernel_run_elementwise,                                     \\
                                               .loops = loops_##group,                                                 \\
                                               .loop_index = offsetof(eddy_loops_##group, name_) / sizeof(eddy_loop_fn *), \\
                                               .cost_base_ps = base,                                                   \\
                                               .cost_element_ps = element};
"""


def emit_source(entries):
    parts = [
        NOTICE, "/* The table of built-in ops. */",
        "#include <functional/arguments_all.h>\n#include <functional/infer.h>\n#include <functional/loops.h>\n"
        "#include <functional/op_table.h>\n#include <interpreter/tape/gradient.h>\n#include <kernels/cpu/kernels.h>\n",
        KERNEL_MACRO, *(f"GROUP({group})" for group in groups(entries)), "",
    ]
    for number, entry in enumerate(entries):
        parts += op_lines(number, entry)
    count = len(entries)
    looped = sorted(e.name for e in entries if e.gradient_of)
    entries = [e for e in entries if not e.gradient_of]
    parts += ["const eddy_op *const eddy_op_looped[] = {", *(f"    &eddy_op_{name}," for name in looped), "};",
              f"const uint32_t eddy_op_looped_count = {len(looped)};"]
    parts += ["const eddy_op *const eddy_op_table[] = {", *(f"    &eddy_op_{e.name}," for e in entries), "};",
              f"const uint32_t eddy_op_table_count = {len(entries)};",
              f"const uint32_t eddy_op_id_count = {count};",
              "const eddy_op *const eddy_op_by_name[] = {",
              *(f"    &eddy_op_{name}," for name in sorted(e.name for e in entries)), "};", ""]
    return "\n".join(parts)
