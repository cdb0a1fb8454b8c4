"""Small helpers for writing C and Markdown."""

import textwrap

NOTICE = "/* Generated from functional/ops by functional/generate; not to be edited. */"


def comment(paragraphs, indent=""):
    """A C block comment of paragraphs, wrapped at 110 columns."""
    lines = []
    for number, paragraph in enumerate(p for p in paragraphs if p):
        first = f"{indent}/* " if number == 0 else f"{indent} * "
        lines += textwrap.wrap(paragraph, 108, initial_indent=first, subsequent_indent=f"{indent} * ")
    return "\n".join(lines) + " */"


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def sentence_list(names):
    """"a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
