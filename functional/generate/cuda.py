"""The elementwise kernels of CUDA devices, from the expressions that the CPU's loops are made of: a source per group of ops, and the list
of all kernels.

An op is a struct for each type that it computes in: it is made of the attributes, whose numbers it converts once, and called with an
element of each input. kernels/cuda/elementwise.cuh makes kernels of it, for 16-bit floats of that of f32. Whatever decides about bits is
that of loops.py: numbers converted to the compute type, choices, cheaper expressions for some numbers, the stages of a gradient one after
another. Only its quick forms have no counterpart, since they have the same bits.

The structs are also written as text (cuda_words.c), for kernels that a program is given while it runs."""

import ast
import re

from arguments import kernel_bytes
from entry import BUFFER
from expression import compile_expression, compute_type
from fused import Substitute
from loops import (MOVED_AS, compile_entry, elementwise, expressions_of, group_of, groups, input_dtype, loop_name, moves, names_of, numbers_of,
                   out_dtype_of, tag)
from text import NOTICE

# Elements that a thread computes at once, at most, by the op's cost. Long functions take longer than memory does, and code for each lane.
LANES = {"cheap": 16, "medium": 4, "heavy": 4, "dear": 1}


def ctype(dtype):
    return f"eddy_compute_{compute_type(dtype)}"


def chosen(entry, codes):
    """The code of the choice that the attribute makes. The first one is the default, as in loops.py."""
    others = "".join(f"{entry.chosen_by} == {number} ? {code} : " for number, code in enumerate(codes) if number > 0)
    return others + codes[0]


def with_shortcuts(entry, dtype, code):
    """Numbers with a cheaper expression are computed by it on the CPU, which may have other bits."""
    if not (entry.scalar_of and entry.shortcuts):
        return code
    number = entry.attributes[0].name
    return "".join(f"{number} == {value} ? {compile_entry(entry, dtype, cheaper)} : " for value, cheaper in entry.shortcuts.items()) + code


def renamed(text, names):
    return ast.unparse(Substitute({old: ast.Name(new) for old, new in names.items()}).visit(ast.parse(text, mode="eval").body))


def number_of(stage):
    return f"number_of_{stage.writes}_{stage.op.name}"


def stage_code(entry, dtype, stage):
    """C text of a stage's value; the names are those of operands, buffers and numbers."""
    if not stage.op:
        names = names_of(entry) | {n: "v" for n in stage.reads}
        return compile_expression(stage.expression, names, dtype)[0]
    names = dict(zip([o.name for o in stage.op.operands], stage.reads))
    if stage.number:
        names[stage.op.attributes[0].name] = number_of(stage)
    kinds = {n: "v" for n in names.values()}

    def code(text):
        return compile_expression(renamed(text, names), kinds, dtype)[0]
    shortcuts = stage.op.shortcuts.items() if stage.op.scalar_of else ()
    return "".join(f"{number_of(stage)} == {value} ? {code(cheaper)} : " for value, cheaper in shortcuts) + code(stage.op.expressions[0])


def stage_lines(entry, dtype):
    buffers = sorted({s.writes for s in entry.stages if s.writes.startswith(BUFFER)})
    return [f"        {ctype(dtype)} {', '.join(buffers)};",
            *(f"        {s.writes} = {stage_code(entry, dtype, s)};" for s in entry.stages[:-1]),
            f"        return {stage_code(entry, dtype, entry.stages[-1])};"]


def body_lines(entry, dtype):
    if entry.stages:
        return stage_lines(entry, dtype)
    codes = [compile_entry(entry, dtype, e) for e in expressions_of(entry, dtype)]
    return [f"        return {with_shortcuts(entry, dtype, chosen(entry, codes) if len(codes) > 1 else codes[0])};"]


def fields(entry, dtype):
    """(C type, name, C text of the value) of what the struct keeps of the attributes."""
    kept = []
    for number in numbers_of(entry):
        value = f"arguments.{number.name}"
        kept.append((ctype(dtype), number.name, f"eddy_scalar_{compute_type(dtype)}(&{value})" if number.type == "scalar" else f"({ctype(dtype)}){value}"))
    if entry.chosen_by:
        kept.append(("int32_t", entry.chosen_by, f"arguments.{entry.chosen_by}"))
    for stage in entry.stages:
        if stage.number:
            value = re.sub(r"eddy_parameter_f64\(arguments->", "eddy_scalar_f64(&arguments.", stage.number).replace("arguments->", "arguments.")
            kept.append((ctype(dtype), number_of(stage), f"({ctype(dtype)})({value})"))
    return kept


def struct(entry, dtype):
    name = f"{entry.name}_{tag(dtype)}"
    kept = fields(entry, dtype)
    lines = [f"struct {name} {{", f"    static constexpr int lanes = {LANES[entry.cost]};",
             *(f"    {c} {n};" for c, n, _ in kept)]
    if kept:
        lines += [f"    EDDY_CUDA_MEMBER explicit {name}(const uint64_t *attributes) {{", f"        {entry.arguments} arguments;",
                  "        memcpy(&arguments, attributes, sizeof(arguments));", *(f"        {n} = {v};" for _, n, v in kept), "    }"]
    else:
        lines += [f"    EDDY_CUDA_MEMBER explicit {name}(const uint64_t *) {{", "    }"]
    operands = ", ".join(f"{ctype(input_dtype(o, dtype))} {o.name}" for o in entry.operands)
    return [*lines, f"    EDDY_CUDA_MEMBER {ctype(out_dtype_of(entry, dtype))} operator()({operands}) const {{",
            *body_lines(entry, dtype), "    }", "};", ""]


def stem(entry, dtype):
    return f"eddy_{loop_name(entry, dtype)}"


def kernels(entry):
    """The structs of an op and its kernels."""
    lines = []
    for dtype in entry.dtypes:
        if loop_name(entry, dtype) != f"{entry.name}_{tag(dtype)}":
            continue  # moved as another dtype, whose kernel it shares
        if dtype not in ("f16", "bf16"):
            lines += struct(entry, dtype)
        # 16-bit floats come after f32 in every list of dtypes.
        own = dtype if dtype not in ("f16", "bf16") else "f32"
        elements = [out_dtype_of(entry, dtype), *(input_dtype(o, dtype) for o in entry.operands)]
        lines.append(f"EDDY_CUDA_ELEMENTWISE({stem(entry, dtype)}, {entry.name}_{tag(own)}, "
                     f"{', '.join(f'eddy_cuda_{tag(e)}' for e in elements)})")
    return [*lines, ""]


def quoted(line):
    """C text of a line, in which nothing has to be escaped."""
    return f'"{line.strip()}\\n"'


def words_row(entry, dtype):
    """A row of eddy_cuda_words_rows, and the name and dtype of the struct that it names."""
    moved = MOVED_AS.get(dtype, dtype) if moves(entry) else dtype
    own = "f32" if moved in ("f16", "bf16") else moved
    elements = [out_dtype_of(entry, moved), *(input_dtype(o, moved) for o in entry.operands)]
    name = f"{entry.name}_{tag(own)}"
    return (f'    {{"{entry.name}", EDDY_{dtype.upper()}, "{name}", "{", ".join(f"eddy_cuda_{tag(e)}" for e in elements)}", '
            f'{len(entry.operands)}, text_{name}}},'), own


def emit_words(entries):
    """functional/cuda_words.c"""
    lines = [NOTICE, "/* The elementwise ops of CUDA devices as text, for kernels that are made while a program runs. */",
             "#include <kernels/cuda/fusion_words.h>", ""]
    rows = []
    for entry in of_ops(entries):
        written = set()
        for dtype in entry.dtypes:
            row, own = words_row(entry, dtype)
            rows.append(row)
            if own not in written:
                written.add(own)
                text = struct(entry, own)
                lines += [f"static const char text_{entry.name}_{tag(own)}[] =", *(f"    {quoted(line)}" for line in text if line)]
                lines[-1] += ";"
    return "\n".join([*lines, "", "const eddy_cuda_words eddy_cuda_words_rows[] = {", *rows, "};", "",
                      f"const size_t eddy_cuda_words_count = {len(rows)};", ""])


def of_ops(entries):
    """Those with kernels: all elementwise ops, but no chains."""
    return [e for e in entries if e.is_elementwise and not e.chain]


def emit_source(entries, group):
    """functional/cuda_<group>.cu"""
    own = elementwise(of_ops(entries), group)
    borrowed = sorted({group_of(e.gradient_of) for e in own if e.gradient_of}) or [group]
    lines = [NOTICE, "/* Kernels of CUDA devices for a group of elementwise ops. */",
             *(f"#include <functional/arguments_{name}.h>" for name in borrowed), "#include <kernels/cuda/elementwise.cuh>", ""]
    for arguments in sorted({e.arguments for e in own if fields(e, e.dtypes[0])}):
        lines.append(f"static_assert(sizeof({arguments}) <= EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES, \"{arguments} is too long\");")
    lines.append("")
    for entry in own:
        lines += kernels(entry)
    return "\n".join(lines)


def emit_list(entries):
    """functional/cuda_kernels.h"""
    ops = of_ops(entries)
    rows = [f"    row({group}, {e.name}, {d.upper()}, {stem(e, d)}, {len(e.operands)}, {kernel_bytes(e) if e.arguments else 0})"
            for group in groups(ops) for e in elementwise(ops, group) for d in e.dtypes]
    return "\n".join([
        NOTICE, "/* Every elementwise kernel of CUDA devices, in the order of functional/loops_list.h: group, op, dtype, the stem of its two symbols",
        " * (<stem>_dense, <stem>_strided; dtypes of one width share one if the op only moves elements), number of inputs, bytes of attributes. */",
        "#ifndef EDDY_FUNCTIONAL_CUDA_KERNELS_H", "#define EDDY_FUNCTIONAL_CUDA_KERNELS_H", "",
        "#define EDDY_CUDA_GROUPS(row) \\", " \\\n".join(f"    row({group})" for group in groups(ops)), "",
        "#define EDDY_CUDA_KERNEL_LIST(row) \\", " \\\n".join(rows), "", "#endif", ""])
