"""Calls as short texts, which entries show and tests make: "f32[2,3] i64[2]=7 none axis=1".

Operands come first, then attributes by name. tests/functional/described.h says how they are read. From them come op_calls.h, a call of
each op that it accepts, and op_refusals.h, what provokes each error that an entry names."""

import re

from text import NOTICE, quoted

OPERAND = re.compile(r"none|(?:[a-z]+\d*|\d+)\[[-\d,]*\](?:\*|=[-\w.,]+)?")
ATTRIBUTE = re.compile(r"([a-z]\w*)=(\S*)")


def split(text):
    """(operands, attributes) of a call."""
    words = text.split(" ") if text else []
    count = next((i for i, word in enumerate(words) if ATTRIBUTE.fullmatch(word)), len(words))
    return " ".join(words[:count]), " ".join(words[count:])


def flaw(text, names, operand=OPERAND):
    """What is wrong with the text of a call of an op with attributes of these names; "" for nothing."""
    operands, attributes = split(text)
    for word in operands.split():
        if not operand.fullmatch(word):
            return f"{word!r} is no operand"
    for word in attributes.split():
        match = ATTRIBUTE.fullmatch(word)
        if not match or match[1] not in names:
            return f"{word!r} is no attribute"
    return "" if text == " ".join(text.split()) else "it has spaces too many"


def row(macro, *parts):
    return f"{macro}({', '.join(parts)})"


def call_of(text):
    return [quoted(part) for part in split(text)]


def emit_examples(entries, compositions=()):
    """functional/op_calls.h: CALL(op, operands, attributes). Elementwise ops need none."""
    rows = [row("CALL", e.name, *call_of(e.example)) for e in [*entries, *compositions] if e.example is not None]
    return "\n".join([NOTICE, "/* A call of each op that it accepts. */", *rows, ""])


def refusals(entry):
    return [row(macro, entry.name, status, *call_of(call), quoted(part))
            for macro, errors in (("REFUSED", entry.errors), ("LATE", entry.late_errors))
            for status, causes in errors.items() for made in causes.values() for call, part in made.items()]


def emit_refusals(entries, compositions=()):
    """functional/op_refusals.h: REFUSED(op, status, operands, attributes, part of the message); LATE where the call is accepted, and
    the result holds the error."""
    rows = [text for entry in [*entries, *compositions] for text in refusals(entry)]
    return "\n".join([NOTICE, "/* What provokes each error that an entry names. */", *rows, ""])
