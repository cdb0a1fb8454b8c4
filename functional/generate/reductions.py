"""functional/op_reductions.h: the oracles of reductions over axes."""

from text import NOTICE


def emit(entries):
    """REDUCTION(op, line of tests/functional/reduction.c)."""
    return "\n".join([NOTICE, "/* What reductions are compared with. */", *(f"REDUCTION({e.name}, {e.oracle})" for e in entries if e.is_reduction), ""])
