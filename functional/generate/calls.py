"""Calls as short texts, which entries show and tests make: "f32[2,3] i64[2]=7 none axis=1".

Operands come first, then attributes by name. tests/functional/described.h says how they are read. From them come op_calls.h, calls of
each op that it accepts, op_refusals.h, what provokes each error that an entry names, and op_gradients.h, the calls whose gradients are
compared with differences. The last have variables among their operands: "[2,3]" is one, "#0" the first once more; "0.5..2" says within
what the elements of those behind it are."""

import re

from text import NOTICE, quoted

OPERAND = re.compile(r"none|(?:[a-z]+\d*|\d+)\[[-\d,]*\](?:\*|=[-\w.,]+)?")
VARIABLE = re.compile(rf"\[[\d,]*\](?:=[-\d.,]+)?|#\d|-?[\d.]*\d\.\.-?[\d.]*\d|{OPERAND.pattern}")
ATTRIBUTE = re.compile(r"([a-z]\w*)=(\S*)")


def split(text):
    """(operands, attributes) of a call."""
    words = text.split(" ") if text else []
    count = next((i for i, word in enumerate(words) if ATTRIBUTE.fullmatch(word)), len(words))
    return " ".join(words[:count]), " ".join(words[count:])


def names(text):
    """Of the attributes that a call gives."""
    return {word.partition("=")[0] for word in split(text)[1].split()}


def flaw(text, known, operand=OPERAND):
    """What is wrong with the text of a call of an op with attributes of these names; "" for nothing."""
    operands, attributes = split(text)
    for word in operands.split():
        if not operand.fullmatch(word):
            return f"{word!r} is no operand"
    for word in attributes.split():
        match = ATTRIBUTE.fullmatch(word)
        if not match or match[1] not in known:
            return f"{word!r} is no attribute"
    return "" if text == " ".join(text.split()) else "it has spaces too many"


def row(macro, *parts):
    return f"{macro}({', '.join(parts)})"


def call_of(text):
    return [quoted(part) for part in split(text)]


def emit_examples(entries, compositions=()):
    """functional/op_calls.h: CALL(op, operands, attributes). Elementwise ops need none."""
    rows = [row("CALL", e.name, *call_of(example)) for e in [*entries, *compositions] for example in e.examples]
    return "\n".join([NOTICE, "/* Calls of each op that it accepts. */", *rows, ""])


def refusals(entry):
    return [row(macro, entry.name, status, *call_of(call), quoted(part))
            for macro, errors in (("REFUSED", entry.errors), ("LATE", entry.late_errors))
            for status, causes in errors.items() for made in causes.values() for call, part in made.items()]


def emit_refusals(entries, compositions=()):
    """functional/op_refusals.h: REFUSED(op, status, operands, attributes, part of the message); LATE where the call is accepted, and
    the result holds the error."""
    rows = [text for entry in [*entries, *compositions] for text in refusals(entry)]
    return "\n".join([NOTICE, "/* What provokes each error that an entry names. */", *rows, ""])


def emit_gradients(entries, compositions=()):
    """functional/op_gradients.h: GRADIENT(op, operands, attributes)."""
    rows = [row("GRADIENT", e.name, *call_of(case)) for e in [*entries, *compositions] for case in e.gradient_cases]
    return "\n".join([NOTICE, "/* Calls whose gradients are compared with differences. */", *rows, ""])
