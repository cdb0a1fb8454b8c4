"""The names that the op list exports, one per line: for the check of exported symbols."""

from header import functions


def emit(entries):
    return "".join(f"{f.name}\n" for e in entries for f in functions(e))
