"""bench/op_rows.h: the op rows of the bench. Each has a call of Eddy and one of libtorch, on the operands that bench/ops.h describes.

An entry's `bench` is a row or a list of rows. A row is the text of the arguments of both calls, "x, y", or a table:

    { name = "max_rows", of = "m, 1", bytes = 4, torch = "amax" }
    { bytes = 8, call = "eddy_index(m, EDDY_LIST(picks))", torch = "torch::index(m, {picks})" }

`name` is the op's name by default. `of`: the arguments of Eddy's function, without optional ones; a number for the last operand selects
the `_s` form. `call`: the whole call, if `of` cannot express it. `torch`: libtorch's function, if its name is not the op's, or its whole
call. `bytes`: that a call must read and write per element of its first operand; derived for reductions, and for elementwise ops whose
operands have one size."""

import re
import textwrap

from entry import EntryError, check_keys
from text import NOTICE

KEYS = {"name", "of", "bytes", "call", "torch"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
CONDITIONS = {"b", "c"}  # operands that are bool; the other operands have four bytes per element


def rows(entry):
    """The tables of an entry's rows; a text stands for a table with only `of`."""
    given = entry.bench if isinstance(entry.bench, list) else [entry.bench]
    return [{"of": row} if isinstance(row, str) else row for row in given]


def refuse(entry, row, why):
    raise EntryError(f"{entry.family}.toml [{entry.name}], bench {row.get('name', entry.name)!r}: {why}")


def arguments_of(row):
    return [word.strip() for word in row.get("of", "").split(",") if word.strip()]


def is_number(word):
    return bool(NUMBER.fullmatch(word))


def operand_argument(operand, words):
    """C text of an operand. An optional operand is EDDY_NONE if the row has no more words; a number becomes EDDY_S."""
    if operand.kind == "optional" and not words:
        return "EDDY_NONE"
    if operand.kind == "list" or not words:
        return None
    word = words.pop(0)
    return f"EDDY_S({word})" if is_number(word) else word


def attribute_argument(attribute, words):
    kind = attribute.passed_as or attribute.type
    if kind == "axes":
        return f"EDDY_AXES({words.pop(0)})" if words else "EDDY_ALL_AXES"
    if kind in ("pair", "shape", "dtype", "text") or not words:
        return None
    return f"EDDY_S({words.pop(0)})" if kind == "scalar" else words.pop(0)


def call(entry, row):
    """Eddy's call: its parameters take the row's words in order."""
    words = arguments_of(row)
    name = entry.name + ("_s" if len(words) == len(entry.operands) and is_number(words[-1]) else "")
    made = [operand_argument(o, words) for o in entry.operands]
    made += [attribute_argument(a, words) for a in entry.parameters]
    if words or None in made or len(entry.outputs) not in (1, 2):
        refuse(entry, row, "`of` does not say what the function takes; write the `call`")
    made += ["NULL"] if entry.options else []
    return f"eddy_{name}({', '.join(made)})" if len(entry.outputs) == 1 else f"first_of(eddy_{name}({', '.join(made)}, &first, &second))"


def torch(entry, row):
    told = row.get("torch", entry.name)
    return f"torch::{told}({', '.join(arguments_of(row))})" if told.isidentifier() else told


def element_bytes(word):
    return 1 if word in CONDITIONS else 4


def moved(entry, row):
    operands = [word for word in arguments_of(row) if not is_number(word)]
    if entry.is_reduction:
        return element_bytes(operands[0])
    if not entry.is_elementwise:
        refuse(entry, row, "no `bytes`, which follow of elementwise ops and reductions alone")
    result = 1 if entry.result == "bool" else element_bytes(operands[-1])
    return sum(map(element_bytes, operands)) + result


def line(entry, row):
    """The line op(name, bytes, Eddy's call, libtorch's call)."""
    check_keys(f"{entry.family}.toml [{entry.name}], bench", row, KEYS)
    if bool(row.get("of")) == ("call" in row) or ("call" in row and "torch" not in row):
        refuse(entry, row, "a row says `of`, or `call` and `torch`")
    bytes_moved = row["bytes"] if "bytes" in row else moved(entry, row)
    ours = row.get("call") or call(entry, row)
    return f"    op({row.get('name', entry.name)}, {bytes_moved}, {ours}, {torch(entry, row)})"


def emit(entries, compositions=()):
    lines = [line(entry, row) for entry in [*entries, *compositions] for row in rows(entry)]
    streamed = [row.get("name", entry.name) for entry in entries if entry.is_elementwise or entry.is_reduction for row in rows(entry)]
    return "\n".join([
        NOTICE, "/* The op rows: name, bytes that a call must move per element of its first operand, Eddy's call, libtorch's. */",
        "#ifndef BENCH_OP_ROWS_H", "#define BENCH_OP_ROWS_H", "", "#define BENCH_OP_LIST(op) \\", " \\\n".join(lines), "",
        "/* Of these the elementwise ops and reductions, which are bound by memory. */",
        "#define BENCH_OP_STREAMED_LIST(name) \\", " \\\n".join(textwrap.wrap(" ".join(f"name({op})" for op in streamed), 100, initial_indent="    ", subsequent_indent="    ")),
        "", "#endif", "",
    ])
