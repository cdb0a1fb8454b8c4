"""The inner loops of elementwise ops, from their expressions: a block file per group of ops, and the header that declares its table.

16-bit floats use the loop of f32, chunk by chunk (kernels/cpu/half_block.h). Each other loop has a form for contiguous operands. Its body
is inlined with constant strides, so that the compiler vectorises it. Loops of cheap ops also have such a form for each single operand
broadcast, and a general strided form. Other loops, and gradients, have the contiguous form alone: operands of another layout are gathered
chunk by chunk (kernels/cpu/dense.h). A gradient with expensive functions calls the loops of their ops, chunk by chunk
(kernels/cpu/stage.h).

If a function has a quick form, the loop works chunk by chunk. It uses the quick form if that is valid for all elements of the chunk, else
the full form. Both have the same bits, so the result of an element does not depend on its neighbours."""

import re
import zlib

from entry import BUFFER, Entry, Operand
from expression import ExpressionError, compile_expression, compile_quick, compute_type
from text import NOTICE

# dtype -> the dtype whose loop moves elements of the same width.
MOVED_AS = {"f32": "i32", "f64": "i64", "f16": "i16", "bf16": "i16", "u8": "i8"}

# The operand of a chain that may be one number for the whole loop, as what is computed of a row is: there is a form for that.
ONE = "one"

DRIVER_PARAMETERS = "char *const *data, const int64_t *strides, int64_t count, const void *attributes"
ELEMENT_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8, "bool": 1}


# A bf16 loop of at most two of these functions contains the conversions (is_direct).
DIRECT_FUNCTIONS = {"add", "sub", "mul", "neg", "select", "eq", "ne", "lt", "le", "gt", "ge"}


def tag(dtype):
    return "truth" if dtype == "bool" else dtype


def names_of(entry):
    names = {o.name: "c" if o.is_bool else "v" for o in entry.operands}
    names.update({a.name: "v" for a in numbers_of(entry)})
    return names


def numbers_of(entry):
    """The attributes that expressions may name."""
    return [a for a in entry.attributes if a.type in ("scalar", "float")]


def expressions_of(entry, dtype):
    return [entry.expression_bool] if dtype == "bool" and entry.expression_bool else entry.expressions


def compile_entry(entry, dtype, expression):
    """C text of the result. Checks that it is a condition if the op's result is bool, else a value."""
    try:
        code, kind, _ = compile_expression(expression, names_of(entry), dtype)
    except ExpressionError as error:
        raise ExpressionError(f"{entry.family}.toml [{entry.name}], {dtype}: {error}") from error
    if (kind == "c") != (entry.result == "bool"):
        raise ExpressionError(f"{entry.family}.toml [{entry.name}]: result and expression disagree")
    return code


def input_dtype(operand, dtype):
    return "bool" if operand.is_bool else dtype


def moves(entry):
    """Whether the op only moves elements. Then dtypes of one width share a loop."""
    return entry.expressions == [f"select({', '.join(o.name for o in entry.operands)})"] and entry.operands[0].is_bool


def loop_name(entry, dtype):
    return f"{entry.name}_{tag(MOVED_AS.get(dtype, dtype) if moves(entry) else dtype)}"


def is_direct(entry, dtype):
    """Whether a loop of contiguous operands contains the conversions. For bf16 this pays if the functions take less time than the
    conversions. Conversions of f16 are long, and no slower in a loop of their own."""
    if dtype != "bf16" or entry.gradient_of or len(entry.expressions) != 1:
        return False
    functions = compile_expression(entry.expressions[0], names_of(entry), dtype)[2]
    return len(functions) <= 2 and functions <= DIRECT_FUNCTIONS


def direct_lines(entry, dtype, name):
    """C lines that process whole vectors of contiguous operands, and leave the other elements to `rest`."""
    sizes = [ELEMENT_BYTES[d] for _, d in inputs_of(entry, dtype)] + [ELEMENT_BYTES[out_dtype_of(entry, dtype)]]
    contiguous = " && ".join(f"strides[{i}] == {s}" for i, s in enumerate(sizes))
    numbers = numbers_of(entry)
    arguments = ", ".join([*map(str, sizes), *(n.name for n in numbers)])
    rest = ", ".join(f"data[{i}] + whole * {s}" for i, s in enumerate(sizes))
    return [*(number_line(entry, n, dtype) for n in numbers), f"    const int64_t whole = {contiguous} ? EDDY_LOOP_WHOLE(count) : 0;",
            f"    {name}_body(data, whole, {arguments});", f"    char *const rest[] = {{{rest}}};"]


def through_f32(entry, dtype):
    """A loop of a 16-bit float: the loop of f32, between conversions."""
    if "f32" not in entry.dtypes or any(o.is_bool for o in entry.operands):
        raise ExpressionError(f"{entry.family}.toml [{entry.name}]: {dtype} goes through f32, all operands of it")
    name = f"{entry.name}_{tag(dtype)}"
    flags = [".has_bool_result = true"] * (entry.result == "bool") + [".is_dense = true"] * is_dense(entry, "f32")
    fields = ", ".join([f".loop = {entry.name}_f32", f".input_count = {len(entry.operands)}", *flags])
    is_one = not is_direct(entry, dtype)
    lines = [] if is_one else body(entry, dtype, f"{name}_body", compile_entry(entry, dtype, entry.expressions[0]))
    lines += [f"static void {name}({DRIVER_PARAMETERS}) {{", f"    static const eddy_half_loop half = {{{fields}}};"]
    lines += [] if is_one else direct_lines(entry, dtype, name)
    what = "data, strides, count" if is_one else "rest, strides, count - whole"
    return lines + [f"    EDDY_ISA_NAME(eddy_cpu_half_blocks).run_{dtype}(&half, {what}, attributes);", "}", ""]


def loop(entry, dtype):
    """A loop's C lines: a body and its driver. If an attribute selects the expression: such a pair per choice, and a switch."""
    name = f"{entry.name}_{tag(dtype)}"
    if loop_name(entry, dtype) != name:
        return []
    if dtype in ("f16", "bf16"):
        return through_f32(entry, dtype)
    if entry.stages:
        return in_stages(entry, dtype, name)
    expressions = expressions_of(entry, dtype)
    if entry.scalar_of and entry.shortcuts:
        return with_shortcuts(entry, dtype, name, expressions[0])
    if len(expressions) == 1:
        return variant(entry, dtype, name, expressions[0])
    choices = [a for a in entry.attributes if a.name == entry.chosen_by][0].choices
    lines = []
    for choice, expression in zip(choices, expressions):
        lines += variant(entry, dtype, f"{name}_{choice}", expression)
    lines += [f"static void {name}({DRIVER_PARAMETERS}) {{",
              f"    switch (((const {entry.arguments} *)attributes)->{entry.chosen_by}) {{"]
    for number, choice in enumerate(choices[1:], 1):
        lines += [f"    case {number}:", f"        {name}_{choice}(data, strides, count, attributes);", "        break;"]
    return lines + ["    default:", f"        {name}_{choices[0]}(data, strides, count, attributes);", "    }", "}", ""]


def with_shortcuts(entry, dtype, name, expression):
    """A body and driver for each number with a cheaper expression, and one for all other numbers."""
    number = entry.attributes[0]
    lines = variant(entry, dtype, f"{name}_any", expression)
    cases = []
    for value, cheaper in entry.shortcuts.items():
        lines += variant(entry, dtype, f"{name}_{value}", cheaper)
        cases += [f"    if ({number.name} == {value}) {{", f"        {name}_{value}(data, strides, count, attributes);",
                  "        return;", "    }"]
    return lines + [f"static void {name}({DRIVER_PARAMETERS}) {{", number_line(entry, number, dtype), *cases,
                    f"    {name}_any(data, strides, count, attributes);", "}", ""]


def stage_operands(entry, stage):
    """Numbers of the tensors that a stage reads, and of its result: the op's operands come first, then the target, then the buffers."""
    numbers = {o.name: i for i, o in enumerate([*entry.operands, Operand("out")])}
    return [numbers[n] if n in numbers else len(numbers) + int(n.removeprefix(BUFFER)) for n in [*stage.reads, stage.writes]]


def stage_loop(entry, dtype, name, stage):
    """The loop of a stage, whose operands are contiguous: of an expression, or the loop of an op, which may take a number."""
    if not stage.op:
        own = Entry(**{**entry.__dict__, "operands": [Operand(n) for n in stage.reads], "expressions": [stage.expression]})
        code = compile_entry(own, dtype, stage.expression)
        return body(own, dtype, f"{name}_body", code) + driver(own, name, dtype, f"{name}_body", forms="contiguous")
    lines = [f"static void {name}({DRIVER_PARAMETERS}) {{"]
    if stage.number:
        is_own = "arguments" in stage.number
        lines += [f"    const {entry.arguments} *arguments = attributes;" if is_own else "    (void)attributes;",
                  f"    const {stage.op.arguments} own = {{eddy_scalar_float({stage.number})}};"]
    given = "&own" if stage.number else "attributes"
    return lines + [f"    EDDY_ISA_NAME(eddy_cpu_loops_{group_of(stage.op)}).{stage.op.name}_{dtype}(data, strides, count, {given});", "}", ""]


def in_stages(entry, dtype, name):
    lines, rows = [], []
    for number, stage in enumerate(entry.stages):
        lines += stage_loop(entry, dtype, f"{name}_{number}", stage)
        operands = stage_operands(entry, stage)
        rows.append(f"        {{{name}_{number}, {{{', '.join(map(str, operands))}}}, {len(operands)}}},")
    count = len(entry.operands) + 1
    size = ELEMENT_BYTES[dtype]
    return lines + [
        f"static void {name}({DRIVER_PARAMETERS}) {{", "    static const eddy_stage stages[] = {", *rows, "    };",
        f"    static const eddy_stage_list list = {{stages, {len(rows)}, {count}, {size}}};",
        f"    if (eddy_dense_is_given({count}, {size}, strides))", "        eddy_stage_run(&list, data, count, attributes);",
        "    else", f"        eddy_dense_run({name}, {count}, {size}, data, strides, count, attributes);", "}", ""]


def variant(entry, dtype, name, expression):
    code = compile_entry(entry, dtype, expression)
    quick = compile_quick(expression, names_of(entry), dtype)
    if not quick:
        return body(entry, dtype, f"{name}_body", code) + driver(entry, name, dtype, f"{name}_body")
    forms = "contiguous" if is_dense(entry, dtype) else ""
    lines = body(entry, dtype, f"{name}_full_body", code) + driver(entry, f"{name}_full", dtype, f"{name}_full_body", forms=forms)
    lines += body(entry, dtype, f"{name}_quick_body", quick[0]) + check(entry, dtype, f"{name}_is_quick", quick[1])
    return lines + chunks(entry, dtype, name) + driver(entry, name, dtype, f"{name}_chunks", has_attributes=True)


def inputs_of(entry, dtype):
    return [(o.name, input_dtype(o, dtype)) for o in entry.operands]


def out_dtype_of(entry, dtype):
    return "bool" if entry.result == "bool" else dtype


def parameters_of(entry, dtype):
    ctype = f"eddy_compute_{compute_type(dtype)}"
    strides = [f"int64_t s_{n}" for n, _ in inputs_of(entry, dtype)] + ["int64_t s_out"]
    return ", ".join(["char *const *data", "int64_t count"] + strides + [f"{ctype} {n.name}" for n in numbers_of(entry)])


def loop_over(entry, dtype, statement):
    """C lines of a loop in which variables with the operands' names hold their elements i."""
    lines = [f"    (void){n.name};" for n in numbers_of(entry)]
    inputs = inputs_of(entry, dtype)
    for number, (operand, operand_dtype) in enumerate(inputs):
        operand_type = f"eddy_compute_{compute_type(operand_dtype)}"
        lines += [f"    const char *p_{operand} = data[{number}];",
                  f"    const {operand_type} first_{operand} = eddy_load_{tag(operand_dtype)}(p_{operand});",
                  f"    (void)first_{operand};"]
    lines += ["    EDDY_LOOP_INDEPENDENT", "    for (int64_t i = 0; i < count; i++) {"]
    for operand, operand_dtype in inputs:
        operand_type = f"eddy_compute_{compute_type(operand_dtype)}"
        lines.append(f"        const {operand_type} {operand} = EDDY_LOOP_INPUT({tag(operand_dtype)}, p_{operand}, s_{operand}, "
                     f"first_{operand});")
    return lines + [f"        {statement}", "    }"]


def body(entry, dtype, name, code):
    store = f"eddy_store_{tag(out_dtype_of(entry, dtype))}(p_out + i * s_out, {code});"
    return [f"static EDDY_LOOP_INLINE void {name}({parameters_of(entry, dtype)}) {{",
            f"    char *p_out = data[{len(entry.operands)}];", *loop_over(entry, dtype, store), "}", ""]


def check(entry, dtype, name, condition):
    """C function that tests a chunk. It counts, in integers as wide as the elements: that vectorises, a loop with an early exit does not."""
    ctype = f"uint{8 * ELEMENT_BYTES[compute_type(dtype)]}_t"
    others = "".join(f"(void){o.name}; " for o in entry.operands if not re.search(rf"\b{o.name}\b", condition))
    return [f"static EDDY_LOOP_INLINE bool {name}({parameters_of(entry, dtype)}) {{", "    (void)s_out;", f"    {ctype} others = 0;",
            *loop_over(entry, dtype, f"{others}others += {condition} ? 0 : 1;"), "    return others == 0;", "}", ""]


def chunks(entry, dtype, name):
    operands = [n for n, _ in inputs_of(entry, dtype)] + ["out"]
    places = ", ".join(f"data[{number}] + begin * s_{o}" for number, o in enumerate(operands))
    strides = ", ".join(f"s_{o}" for o in operands)
    tail = strides + "".join(f", {a.name}" for a in numbers_of(entry))
    return [f"static EDDY_LOOP_INLINE void {name}_chunks({parameters_of(entry, dtype)}, const void *attributes) {{",
            f"    const int64_t strides[] = {{{strides}}};",
            "    for (int64_t begin = 0; begin < count; begin += EDDY_LOOP_CHUNK) {",
            f"        char *const at[] = {{{places}}};",
            "        const int64_t length = count - begin < EDDY_LOOP_CHUNK ? count - begin : EDDY_LOOP_CHUNK;",
            f"        if ({name}_is_quick(at, length, {tail}))", f"            {name}_quick_body(at, length, {tail});",
            "        else", f"            {name}_full(at, strides, length, attributes);", "    }", "}", ""]


def number_line(entry, attribute, dtype):
    """C line that reads an attribute, converted to the compute type, once per loop."""
    compute = compute_type(dtype)
    field = f"((const {entry.arguments} *)attributes)->{attribute.name}"
    value = f"eddy_scalar_{compute}(&{field})" if attribute.type == "scalar" else f"(eddy_compute_{compute}){field}"
    return f"    const eddy_compute_{compute} {attribute.name} = {value};"


def is_dense(entry, dtype):
    """Whether a loop has the contiguous form alone: loops of expensive functions, which take longer than gathering operands, and gradients."""
    if dtype not in ("f32", "f64"):
        return False
    if entry.gradient_of or entry.cost in ("heavy", "dear"):
        return True
    return any(compile_quick(e, names_of(entry), dtype) for e in entry.expressions)


def driver(entry, name, dtype, inner, has_attributes=False, forms=""):
    sizes = [ELEMENT_BYTES[d] for _, d in inputs_of(entry, dtype)] + [ELEMENT_BYTES[out_dtype_of(entry, dtype)]]
    numbers = numbers_of(entry)
    tail = "".join(f", {a.name}" for a in numbers) + (", attributes" if has_attributes else "")
    lines = [f"static void {name}({DRIVER_PARAMETERS}) {{"]
    numbers_lines = [number_line(entry, a, dtype) for a in numbers] or ["    (void)attributes;"]
    if forms == "contiguous":
        calls = [f"    {inner}(data, count, {', '.join(map(str, sizes))}{tail});"]
        for number, layout in layouts_with_one(entry, sizes):
            calls = [f"    if (strides[{number}] == 0)", f"        {inner}(data, count, {', '.join(map(str, layout))}{tail});", "    else", f"    {calls[0]}"]
        return lines + ["    (void)strides;", "    if (count <= 0)", "        return;", *numbers_lines, *calls, "}", ""]
    lines += ["    if (count <= 0)", "        return;"]
    if is_dense(entry, dtype):
        return lines + dense_calls(entry, name, inner, sizes, tail, numbers_lines) + ["}", ""]
    return lines + numbers_lines + calls_by_strides(entry, inner, sizes, tail) + ["}", ""]


def layouts_with_one(entry, sizes):
    """Of a chain: the number of the operand that may be one number for the whole loop, if there is one, and the strides where it is."""
    ones = [i for i, o in enumerate(entry.operands) if entry.chain and o.name == ONE]
    return [(i, [*sizes[:i], 0, *sizes[i + 1:]]) for i in ones]


def dense_calls(entry, name, inner, sizes, tail, numbers_lines):
    count, size = len(sizes), sizes[0]
    if sizes != [size] * count:
        raise ExpressionError(f"{name}: operands differ in size")
    with_one = []
    for _, layout in layouts_with_one(entry, sizes):
        condition = " && ".join(f"strides[{i}] == {s}" for i, s in enumerate(layout))
        with_one += [f"    else if ({condition})", f"        {inner}(data, count, {', '.join(map(str, layout))}{tail});"]
    return [*numbers_lines, f"    if (eddy_dense_is_given({count}, {size}, strides))",
            f"        {inner}(data, count, {', '.join(map(str, sizes))}{tail});", *with_one, "    else",
            f"        eddy_dense_run({name}, {count}, {size}, data, strides, count, attributes);"]


def calls_by_strides(entry, inner, sizes, tail):
    inputs, out_size = sizes[:-1], sizes[-1]
    layouts = [inputs]
    # Forms for broadcast operands do not pay if the function takes longer than its loads and stores.
    if len(inputs) > 1 and entry.cost not in ("heavy", "dear"):
        layouts += [inputs[:i] + [0] + inputs[i + 1:] for i in range(len(inputs))]
    lines = []
    for number, layout in enumerate(layouts):
        condition = " && ".join(f"strides[{i}] == {s}" for i, s in enumerate([*layout, out_size]))
        arguments = ", ".join(map(str, [*layout, out_size]))
        lines += [f"    {'else if' if number else 'if'} ({condition})", f"        {inner}(data, count, {arguments}{tail});"]
    general = ", ".join(f"strides[{i}]" for i in range(len(sizes)))
    return lines + ["    else", f"        {inner}(data, count, {general}{tail});"]


# Number of groups of the families that have several, and of the gradients; functional/meson.build has the same numbers.
GROUPS = {"activation": 4, "arithmetic": 4, "compare": 4, "gradient": 4, "unary": 4}


def group_of(entry):
    """The name of an elementwise op's group. It depends only on the op's name, so that a new op changes one group and moves no other op."""
    family = "gradient" if entry.gradient_of else entry.family
    if entry.chain:
        return f"{family}_0"
    entry = entry.gradient_of or entry
    return f"{family}_{zlib.crc32((entry.scalar_of or entry.name).encode()) % GROUPS.get(family, 1)}"


def groups(entries):
    return sorted({group_of(e) for e in entries if e.is_elementwise})


def elementwise(entries, group):
    return [e for e in entries if e.is_elementwise and group_of(e) == group]


def emit_block(entries, group):
    own = elementwise(entries, group)
    called = {group_of(stage.op) for e in own for stage in e.stages if stage.op}
    parts = [NOTICE, "/* Loops of elementwise ops. Built once for each instruction set. */", f"#include <functional/arguments_{group}.h>",
             "#include <functional/loop.h>\n#include <functional/parameter.h>", *(f"#include <functional/loops_{name}.h>" for name in sorted({group, *called})), ""]
    rows = []
    for entry in own:
        for dtype in entry.dtypes:
            parts += loop(entry, dtype)
            rows.append(f"    .{entry.name}_{tag(dtype)} = {loop_name(entry, dtype)},")
    parts += [f"const eddy_loops_{group} EDDY_ISA_NAME(eddy_cpu_loops_{group}) = {{", *rows, "};", ""]
    return "\n".join(parts)


def bound(entry, dtype):
    """Accuracy in ulp of the dtype. A 16-bit result, rounded once from f32, is within 1 ulp. -1: there is no oracle."""
    if entry.gradient_of:
        return -1
    if dtype == "f64":
        return entry.ulp_f64
    return entry.ulp if dtype == "f32" else min(entry.ulp, 1)


def emit_list(entries):
    rows = [f"    row({group}, {e.name}_{tag(d)}, {e.name}, {d.upper()}, {bound(e, d)})"
            for group in groups(entries) for e in elementwise(entries, group) for d in e.dtypes]
    return "\n".join([
        NOTICE, "/* Every loop, for tests and benches: group, loop, op, dtype, bound in ulp. */",
        "#ifndef EDDY_FUNCTIONAL_LOOPS_LIST_H", "#define EDDY_FUNCTIONAL_LOOPS_LIST_H", "",
        "#define EDDY_LOOPS_LIST(row) \\", " \\\n".join(rows), "", "#endif", "",
    ])


def emit_oracles(entries):
    """functional/op_oracles.h: ROW(op, line of tests/functional/oracle.c)."""
    return "\n".join([NOTICE, "/* What elementwise ops are compared with. */", *(f"ROW({e.name}, {e.oracle})" for e in entries if e.is_elementwise), ""])


def emit_header(entries, group):
    guard = f"EDDY_FUNCTIONAL_LOOPS_{group.upper()}_H"
    fields = [f"    eddy_loop_fn *{e.name}_{tag(d)};" for e in elementwise(entries, group) for d in e.dtypes]
    return "\n".join([
        NOTICE, "/* The loops of a group of elementwise ops: a table per instruction set, of loops and of nothing else. */",
        f"#ifndef {guard}\n#define {guard}\n", "#include <kernels/cpu/isa.h>\n#include <kernels/kernel.h>\n",
        f"typedef struct eddy_loops_{group} {{", *fields, f"}} eddy_loops_{group};",
        f"EDDY_ISA_DECLARE(eddy_loops_{group}, eddy_cpu_loops_{group})", "", "#endif", ""])


def emit_headers(entries):
    return "\n".join([
        NOTICE, "/* The loops of all elementwise ops. */", "#ifndef EDDY_FUNCTIONAL_LOOPS_H\n#define EDDY_FUNCTIONAL_LOOPS_H\n",
        *(f"#include <functional/loops_{group}.h>" for group in groups(entries)), "", "#endif", ""])
