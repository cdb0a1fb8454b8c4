"""Calls as short texts, which entries contain and tests execute: "f32[2,3] i64[2]=7 none axis=1".

Operands come first, then attributes by name. tests/functional/described.h describes the format. Three headers are generated from them:
op_calls.h, calls that each op accepts; op_refusals.h, calls that cause each error that an entry names; op_gradients.h, calls whose
gradients are compared with differences. Operands of the last may be variables: "[2,3]" is a variable, "#0" the first variable again, and
"0.5..2" the range of the elements of the variables after it."""

import re

from text import NOTICE, quoted

OPERAND = re.compile(r"none|(?:[a-z]+\d*|\d+)\[[-\d,]*\](?:\*|=[-\w.,]+)?")
VARIABLE = re.compile(rf"\[[\d,]*\](?:=[-\d.,]+)?|#\d|-?[\d.]*\d\.\.-?[\d.]*\d|{OPERAND.pattern}")
ATTRIBUTE = re.compile(r"([a-z]\w*)=(\S*)")


def split(text):
    """(text of the operands, text of the attributes) of a call."""
    words = text.split(" ") if text else []
    count = next((i for i, word in enumerate(words) if ATTRIBUTE.fullmatch(word)), len(words))
    return " ".join(words[:count]), " ".join(words[count:])


def names(text):
    """Names of the attributes that a call gives."""
    return {word.partition("=")[0] for word in split(text)[1].split()}


def flaw(text, known, operand=OPERAND):
    """What is wrong with the text of a call, or "". known: names of the op's attributes."""
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
    """functional/op_refusals.h: REFUSED(op, status, operands, attributes, part of the message); LATE if the call is accepted and its
    result holds the error."""
    rows = [text for entry in [*entries, *compositions] for text in refusals(entry)]
    return "\n".join([NOTICE, "/* What provokes each error that an entry names. */", *rows, ""])


def emit_gradients(entries, compositions=()):
    """functional/op_gradients.h: GRADIENT(op, operands, attributes)."""
    rows = [row("GRADIENT", e.name, *call_of(case)) for e in [*entries, *compositions] for case in e.gradient_cases]
    return "\n".join([NOTICE, "/* Calls whose gradients are compared with differences. */", *rows, ""])
