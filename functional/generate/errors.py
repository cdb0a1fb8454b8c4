"""Errors of ops: those that follow from the form of an entry, and those that the entry lists.

test_op_errors.c provokes the errors of `derived` by changing one valid call per op. Each error that an entry lists has its own call."""

from dataclasses import dataclass

from entry import DTYPE_GROUPS, INTEGERS
from text import NOTICE

# Causes of an error for each group of dtypes: wrong operands, wrong result of promotion, wrong attribute.
OUTSIDE = {
    "float": ("the operands are no floats", "the operands promote to an integer or bool", "dtype is no float"),
    "number": ("the operands are bool", "the operands promote to bool", "dtype is bool"),
    "integer": ("the operands are no integers", "the operands promote to a float or bool", "dtype is no integer"),
    "whole": ("the operands are floats", "the operands promote to a float", "dtype is a float"),
}

SHARED = [
    ("INVALID_ARGUMENT", "an operand is NULL (it failed before, and that record stays), or EDDY_NONE and not optional"),
    ("SHAPE_MISMATCH", "operands of an elementwise op do not broadcast; a target has not the result's shape"),
    ("DTYPE_MISMATCH", "a target has not the result's dtype"),
    ("OVERLAP", "a target, or an operand that is written to, repeats elements, or shares memory with another operand in a way that the "
                "op does not allow"),
    ("RUNTIME_MISMATCH", "operands belong to different runtimes"),
    ("DEVICE_MISMATCH", "operands live on different devices"),
    ("SIZE_OVERFLOW", "the result takes 2^63 bytes or more, or an operand has more than 2^56 elements (a broadcast view's)"),
    ("OUT_OF_MEMORY", "there is no memory for the call, or the result is larger than all there is"),
    ("SHUT_DOWN", "the runtime was shut down"),
    ("FORKED", "the runtime belongs to the parent process"),
]


@dataclass(frozen=True)
class Error:
    status: str
    when: str
    is_late: bool = False  # returned when the result is read


def group_of(entry):
    """The name of the entry's set of dtypes; "" for a set without a name."""
    return next((name for name, dtypes in DTYPE_GROUPS.items() if dtypes == entry.dtypes), "")


def outside_dtype(entry):
    """A dtype that the op refuses, or "" if there is none."""
    if entry.is_elementwise and entry.promotion == "float":
        return ""
    return next((d for d in ("bool", "i32", "f32") if d not in entry.dtypes), "")


def dtype_errors(entry):
    if not outside_dtype(entry):
        return []
    names = [f"the operands are none of {', '.join(entry.dtypes)}"] * 2 + [f"dtype is none of {', '.join(entry.dtypes)}"]
    operands, promoted, attribute = OUTSIDE.get(group_of(entry), names)
    if entry.is_elementwise:
        return [Error("UNSUPPORTED", promoted)]
    return [Error("DTYPE_MISMATCH", operands) if entry.operands else Error("INVALID_ARGUMENT", attribute)]


def attribute_errors(entry, attribute):
    name = attribute.name
    if attribute.role == "fixed":
        return []
    if attribute.is_held:
        is_checked = not entry.wraps and entry.promotion != "float" and set(entry.dtypes) & set(INTEGERS)
        return [Error("OUT_OF_RANGE", f"the dtype is an integer that does not hold {name}")] if is_checked else []
    if attribute.type == "axis":
        return [Error("OUT_OF_RANGE", f"{name} is not one of the operand's")]
    if attribute.type == "axes":
        return [Error("OUT_OF_RANGE", f"{name} has one that the operand has not"), Error("INVALID_ARGUMENT", f"{name} has one twice")]
    if attribute.type == "choice":
        return [Error("INVALID_ARGUMENT", f"{name} is none of its choices")]
    if attribute.type == "dtype":
        return [Error("INVALID_ARGUMENT", f"{name} is no dtype")]
    if attribute.type == "shape" and not entry.operands:
        return [Error("INVALID_ARGUMENT", f"{name} has a negative dim, or a rank that is not within 0 and 16"),
                Error("SIZE_OVERFLOW", f"{name} asks for 2^63 bytes or more")]
    return []


def derived(entry):
    errors = dtype_errors(entry)
    errors += [Error("DTYPE_MISMATCH", f"{o.name} is not bool") for o in entry.operands if o.is_bool]
    for attribute in entry.attributes:
        errors += attribute_errors(entry, attribute)
    return errors


def own(entry):
    return [Error(status, when, is_late) for is_late, table in ((False, entry.errors), (True, entry.late_errors))
            for status, causes in table.items() for when in causes]


def errors_of(entry):
    """All errors except the shared ones: errors of the call first, then late errors, each grouped by status."""
    found = derived(entry) + own(entry)
    order = list(dict.fromkeys((e.is_late, e.status) for e in found))
    return sorted(found, key=lambda e: (e.is_late, order.index((e.is_late, e.status))))


def text(entry):
    """"SHAPE_MISMATCH (a; b), DTYPE_MISMATCH (c); late: OUT_OF_RANGE (d)"."""
    causes = {False: {}, True: {}}
    for error in errors_of(entry):
        causes[error.is_late].setdefault(error.status, []).append(error.when)
    now, late = (", ".join(f"{status} ({'; '.join(whens)})" for status, whens in causes[is_late].items()) for is_late in (False, True))
    return "; ".join(part for part in (now, f"late: {late}" if late else "") if part)


def emit(entries):
    """functional/op_dtypes.h: OP(name, a refused dtype or DTYPE_COUNT, bit mask of the accepted dtypes)."""
    lines = [NOTICE]
    for entry in entries:
        taken = " | ".join(f"1u << EDDY_{d.upper()}" for d in entry.dtypes)
        lines.append(f"OP({entry.name}, {(outside_dtype(entry) or 'dtype_count').upper()}, {taken})")
    return "\n".join(lines) + "\n"
