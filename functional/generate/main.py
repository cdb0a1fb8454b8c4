"""python3 main.py KIND OUTPUT ENTRY_FILES...: writes one product of the op list.

KIND: header, kernels, schema, manual, pytorch, symbols, bench; or sources, which writes all files to compile into the folder OUTPUT. It
writes them in one run, since reading the list takes longer than writing a product."""

import pathlib
import sys

import arguments
import bench
import calls
import chains
import compositions
import cuda
import declarations
import entry
import errors
import expression
import fused
import gradient
import header
import loops
import manual
import pytorch
import reductions
import schema
import source
import symbols
import table

KINDS = {
    "header": header.emit,
    "kernels": declarations.emit_kernels,
    "schema": schema.emit,
    "manual": manual.emit,
    "pytorch": pytorch.emit,
    "symbols": symbols.emit,
    "bench": bench.emit,
    "arguments.h": arguments.emit,
    "arguments_all.h": arguments.emit_all,
    "composition_table.c": compositions.emit,
    "cuda_kernels.h": cuda.emit_list,
    "cuda_words.c": cuda.emit_words,
    "gradients.c": gradient.emit,
    "gradients.h": declarations.emit_gradients,
    "infer.h": declarations.emit_infer,
    "loops.h": loops.emit_headers,
    "loops_list.h": loops.emit_list,
    "op_calls.h": calls.emit_examples,
    "op_dtypes.h": errors.emit,
    "op_gradients.h": calls.emit_gradients,
    "op_oracles.h": loops.emit_oracles,
    "op_reductions.h": reductions.emit,
    "op_refusals.h": calls.emit_refusals,
    "op_table.c": table.emit_source,
    "op_table.h": table.emit_header,
    "ops.c": source.emit,
}

# Products that include the compositions.
WITH_COMPOSITIONS = {"arguments.h", "schema", "manual", "pytorch", "composition_table.c", "op_calls.h", "op_gradients.h",
                     "op_refusals.h", "bench"}

# Products that include the gradients in one loop (fused.py).
WITH_FUSED = {"cuda_kernels.h", "cuda_words.c", "gradients.c", "loops.h", "loops_list.h", "op_table.c", "op_table.h"}

# Products that include the chains (chains.py), which have loops and are no ops.
WITH_CHAINS = {"loops.h"}

# Products for each group of loops.
OF_GROUPS = {"arguments_{}.h": arguments.emit_group, "loops_{}.h": loops.emit_header, "loops_{}_block.c": loops.emit_block}


def produce(kind, entries, composed=(), chained=()):
    if kind in WITH_FUSED:
        entries = entries + fused.of(entries)
    if kind in WITH_CHAINS:
        entries = [*entries, *chained]
    return KINDS[kind](entries, composed) if kind in WITH_COMPOSITIONS else KINDS[kind](entries)


def sources(entries, composed, chained):
    """File name -> text of all files to compile, except ops.h and kernels.h, which are written to other folders."""
    texts = {kind: produce(kind, entries, composed, chained) for kind in KINDS if "." in kind}
    texts["chains.c"] = chains.emit(chained)
    looped = entries + fused.of(entries) + chained
    for group in loops.groups(looped):
        texts |= {name.format(group): emit(looped, group) for name, emit in OF_GROUPS.items()}
    for group in loops.groups(cuda.of_ops(looped)):
        texts[f"cuda_{group}.cu"] = cuda.emit_source(looped, group)
    return texts


def write(path, text):
    """Does not touch a file whose text is unchanged, so that a change of one entry compiles few files again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(argv):
    if len(argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    kind, output = argv[1], pathlib.Path(argv[2])
    try:
        entries, composed = entry.read_all(argv[3:]), entry.read_compositions(argv[3:])
        chained = chains.read(argv[3:], entries)
        made = sources(entries, composed, chained) if kind == "sources" else {"": produce(kind, entries, composed)}
    except (entry.EntryError, expression.ExpressionError) as error:
        print(f"functional/ops: {error}", file=sys.stderr)
        return 1
    for name, text in made.items():
        write(output / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
