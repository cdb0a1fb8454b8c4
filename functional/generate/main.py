"""python3 main.py KIND OUTPUT ENTRY_FILES...: writes one product of the op list.

KIND: header, arguments, table_header, table, source, loops_header, loops_list, loops:FAMILY, gradients, schema, manual, pytorch,
symbols, errors, compositions."""

import pathlib
import sys

import arguments
import compositions
import entry
import errors
import expression
import gradient
import header
import loops
import manual
import pytorch
import schema
import source
import symbols
import table

KINDS = {
    "header": header.emit,
    "arguments": arguments.emit,
    "table_header": table.emit_header,
    "table": table.emit_source,
    "source": source.emit,
    "loops_header": loops.emit_header,
    "loops_list": loops.emit_list,
    "gradients": gradient.emit,
    "schema": schema.emit,
    "manual": manual.emit,
    "pytorch": pytorch.emit,
    "symbols": symbols.emit,
    "errors": errors.emit,
    "compositions": compositions.emit,
}


# Products that tell of compositions too.
WITH_COMPOSITIONS = {"arguments", "schema", "manual", "pytorch", "errors", "compositions"}


def produce(kind, entries, composed=()):
    if kind.startswith("loops:"):
        return loops.emit_block(entries, kind.removeprefix("loops:"))
    return KINDS[kind](entries, composed) if kind in WITH_COMPOSITIONS else KINDS[kind](entries)


def write(path, text):
    """What is there already stays untouched, so that nothing is compiled again when, say, a gradient's text changes."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(argv):
    if len(argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        text = produce(argv[1], entry.read_all(argv[3:]), entry.read_compositions(argv[3:]))
    except (entry.EntryError, expression.ExpressionError) as error:
        print(f"functional/ops: {error}", file=sys.stderr)
        return 1
    write(pathlib.Path(argv[2]), text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
