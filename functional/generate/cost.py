"""Cost estimates of elementwise kernels (kernels/kernel.h), in picoseconds."""

import re

from entry import COSTS, DTYPES

BASE = 15000

_BYTES = {dtype: int(re.sub(r"\D", "", dtype) or 8) // 8 for dtype in DTYPES}


def element(entry, dtype):
    if entry.cost == "cheap":
        operands = ["bool" if operand.is_bool else dtype for operand in entry.operands]
        return COSTS["cheap"] * sum(map(_moved, [*operands, "bool" if entry.result == "bool" else dtype]))
    # A number with a shortcut costs much less than other numbers: the estimate is between the two.
    cost = COSTS["heavy" if entry.scalar_of and entry.shortcuts else entry.cost]
    return cost * 2 if dtype == "f64" else cost


def _moved(dtype):
    """Bytes that count for an element. f16 and bf16 count as f32, since they are computed in f32."""
    return 4 if dtype in ("f16", "bf16") else _BYTES[dtype]
