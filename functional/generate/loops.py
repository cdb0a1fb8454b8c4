"""The inner loops of elementwise ops, made of their expressions: functional/loops.h and one block file per family.

Each loop has fast forms for all operands contiguous and for each single operand broadcast, and a general strided one. The
body is inlined into each with constant strides, so that the compiler vectorises it."""

from expression import ExpressionError, compile_expression, compute_type
from table import tag
from text import NOTICE

ELEMENT_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8, "bool": 1}


def names_of(entry):
    names = {o.name: "c" if o.is_bool else "v" for o in entry.operands}
    names.update({a.name: "v" for a in entry.attributes})
    return names


def expression_of(entry, dtype):
    return entry.expression_bool if dtype == "bool" and entry.expression_bool else entry.expression


def compile_entry(entry, dtype):
    """C text of the result; checks that a comparison gives a condition and anything else a value."""
    try:
        code, kind, _ = compile_expression(expression_of(entry, dtype), names_of(entry), dtype)
    except ExpressionError as error:
        raise ExpressionError(f"{entry.family}.toml [{entry.name}], {dtype}: {error}") from error
    if (kind == "c") != (entry.result == "bool"):
        raise ExpressionError(f"{entry.family}.toml [{entry.name}]: result and expression disagree")
    return code


def input_dtype(operand, dtype):
    return "bool" if operand.is_bool else dtype


def loop(entry, dtype):
    name = f"{entry.name}_{tag(dtype)}"
    ctype = f"eddy_compute_{compute_type(dtype)}"
    inputs = [(o.name, input_dtype(o, dtype)) for o in entry.operands]
    scalars = [a.name for a in entry.attributes]
    out_dtype = "bool" if entry.result == "bool" else dtype
    parameters = ["char *const *data", "int64_t count"]
    parameters += [f"int64_t s_{n}" for n, _ in inputs] + ["int64_t s_out"] + [f"{ctype} {n}" for n in scalars]
    lines = [f"static EDDY_LOOP_INLINE void {name}_body({', '.join(parameters)}) {{"]
    for number, (operand, operand_dtype) in enumerate(inputs):
        operand_type = f"eddy_compute_{compute_type(operand_dtype)}"
        lines += [f"    const char *p_{operand} = data[{number}];",
                  f"    const {operand_type} first_{operand} = eddy_load_{tag(operand_dtype)}(p_{operand});",
                  f"    (void)first_{operand};"]
    lines += [f"    char *p_out = data[{len(inputs)}];", "    EDDY_LOOP_INDEPENDENT", "    for (int64_t i = 0; i < count; i++) {"]
    for operand, operand_dtype in inputs:
        operand_type = f"eddy_compute_{compute_type(operand_dtype)}"
        lines.append(f"        const {operand_type} {operand} = EDDY_LOOP_INPUT({tag(operand_dtype)}, p_{operand}, s_{operand}, "
                     f"first_{operand});")
    lines += [f"        eddy_store_{tag(out_dtype)}(p_out + i * s_out, {compile_entry(entry, dtype)});", "    }", "}", ""]
    lines += driver(entry, name, dtype, inputs, scalars, out_dtype, ctype)
    return lines


def driver(entry, name, dtype, inputs, scalars, out_dtype, ctype):
    sizes = [ELEMENT_BYTES[d] for _, d in inputs]
    out_size = ELEMENT_BYTES[out_dtype]
    lines = [f"static void {name}(char *const *data, const int64_t *strides, int64_t count, const void *attributes) {{",
             "    if (count <= 0)", "        return;"]
    if scalars:
        lines.append(f"    const {ctype} {scalars[0]} = eddy_scalar_{compute_type(dtype)}(attributes);")
    else:
        lines.append("    (void)attributes;")
    layouts = [sizes]
    if len(sizes) > 1:
        layouts += [sizes[:i] + [0] + sizes[i + 1:] for i in range(len(sizes))]
    tail = "".join(f", {s}" for s in scalars)
    for number, layout in enumerate(layouts):
        condition = " && ".join([f"strides[{i}] == {s}" for i, s in enumerate(layout)] + [f"strides[{len(layout)}] == {out_size}"])
        arguments = ", ".join(str(s) for s in layout + [out_size])
        lines += [f"    {'else if' if number else 'if'} ({condition})", f"        {name}_body(data, count, {arguments}{tail});"]
    general = ", ".join(f"strides[{i}]" for i in range(len(sizes) + 1))
    lines += ["    else", f"        {name}_body(data, count, {general}{tail});", "}", ""]
    return lines


def elementwise(entries, family):
    return [e for e in entries if e.is_elementwise and e.family == family]


def families(entries):
    return sorted({e.family for e in entries if e.is_elementwise})


def emit_block(entries, family):
    own = elementwise(entries, family)
    parts = [NOTICE, f"/* Loops of the elementwise ops of {family}.toml. Built once for each instruction set. */",
             "#include <functional/loop.h>\n#include <functional/loops.h>\n"]
    names = []
    for entry in own:
        for dtype in entry.dtypes:
            parts += loop(entry, dtype)
            names.append(f"{entry.name}_{tag(dtype)}")
    rows = "\n".join(f"    .{n} = {n}," for n in names)
    parts += [f"const eddy_loops_{family} EDDY_ISA_NAME(eddy_cpu_loops_{family}) = {{\n{rows}\n}};", ""]
    return "\n".join(parts)


def bound(entry, dtype):
    """Accuracy in ulp of the dtype; a 16-bit result of an f32 word within an ulp is within one of its own."""
    if dtype == "f64":
        return entry.ulp_f64
    return entry.ulp if dtype == "f32" else min(entry.ulp, 1)


def emit_list(entries):
    rows = [f"    row({e.family}, {e.name}_{tag(d)}, {e.name}, {d.upper()}, {bound(e, d)})"
            for family in families(entries) for e in elementwise(entries, family) for d in e.dtypes]
    return "\n".join([
        NOTICE, "/* Every loop, for tests and benches: family, loop, op, dtype, bound in ulp. */",
        "#ifndef EDDY_FUNCTIONAL_LOOPS_LIST_H", "#define EDDY_FUNCTIONAL_LOOPS_LIST_H", "",
        "#define EDDY_LOOPS_LIST(row) \\", " \\\n".join(rows), "", "#endif", "",
    ])


def emit_header(entries):
    parts = [NOTICE, "/* The loops of elementwise ops, a table per family and instruction set. */",
             "#ifndef EDDY_FUNCTIONAL_LOOPS_H\n#define EDDY_FUNCTIONAL_LOOPS_H\n",
             "#include <kernels/cpu/isa.h>\n#include <kernels/kernel.h>\n"]
    for family in families(entries):
        fields = [f"    eddy_loop_fn *{e.name}_{tag(d)};" for e in elementwise(entries, family) for d in e.dtypes]
        parts += [f"typedef struct eddy_loops_{family} {{", *fields, f"}} eddy_loops_{family};",
                  f"EDDY_ISA_DECLARE(eddy_loops_{family}, eddy_cpu_loops_{family})", ""]
    return "\n".join(parts + ["#endif", ""])
