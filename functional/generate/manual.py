"""ops.md: the manual page of the ops."""

from header import dtype_text, functions, returns_text

HEAD = """# The ops

Generated from the op list. Semantics are PyTorch's unless an entry says otherwise; what holds for all of them (ownership,
blocking, errors, threads) stands at the top of `<eddy/ops.h>`.
"""


def option_rows(entry):
    rows = []
    for option in entry.options:
        default = option.choices[0] if option.choices else option.default or "all zero"
        zero = f" (`{option.name}_is_zero` for 0)" if option.zero_flag else ""
        rows.append(f"- option `{option.name}`, default {default}{zero}: {option.doc}")
    return rows


def section(entry):
    lines = [f"### {entry.name}", "", "```c", *(f"{f.declaration};" for f in functions(entry)), "```", "", entry.summary, ""]
    lines += [f"- `{a.name}`: {a.doc}" for a in entry.parameters]
    lines += option_rows(entry)
    if dtype_text(entry):
        lines.append("- " + dtype_text(entry))
    if entry.is_elementwise:
        bound = "exact (correctly rounded)" if not entry.ulp else f"within {entry.ulp} ulp, {entry.ulp_f64} for f64"
        bound += f", of {entry.ulp_of}" if entry.ulp_of else ""
        texts = entry.expressions
        if entry.chosen_by:
            choices = [a for a in entry.options if a.name == entry.chosen_by][0].choices
            lines += [f"- {entry.chosen_by} {choice}: `{text}`" for choice, text in zip(choices, texts)] + [f"- {bound}"]
        else:
            lines.append(f"- `{texts[0]}`, {bound}")
    if isinstance(entry.gradient, dict):
        lines += [f"- gradient of `{operand}`: `{formula}`" for operand, formula in entry.gradient.items()]
    if entry.source:
        lines.append(f"- algorithm: {entry.source}")
    if entry.errors:
        lines.append(f"- errors: {entry.errors}")
    lines.append("- " + returns_text(functions(entry)[0]))
    return lines + [""]


def emit(entries):
    lines, family = [HEAD], None
    for entry in entries:
        if entry.family != family:
            family = entry.family
            lines += [f"## {family}", ""]
        lines += section(entry)
    return "\n".join(lines)
