"""What elementwise kernels say that they take (kernels/kernel.h), in picoseconds."""

import re

from entry import COSTS, DTYPES

BASE = 15000

_BYTES = {dtype: int(re.sub(r"\D", "", dtype) or 8) // 8 for dtype in DTYPES}


def element(entry, dtype):
    if entry.cost == "cheap":
        operands = ["bool" if operand.is_bool else dtype for operand in entry.operands]
        return COSTS["cheap"] * sum(map(_moved, [*operands, "bool" if entry.result == "bool" else dtype]))
    # Numbers that a shortcut is for take much less than others: between the two.
    cost = COSTS["heavy" if entry.scalar_of and entry.shortcuts else entry.cost]
    return cost * 2 if dtype == "f64" else cost


def _moved(dtype):
    """Halves take as long as f32, whose arithmetic they borrow."""
    return 4 if dtype in ("f16", "bf16") else _BYTES[dtype]
