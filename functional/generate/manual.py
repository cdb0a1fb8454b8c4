"""docs/ops.md: a table of the ops of each family, and the functions that are not ops."""

import pathlib
import re

import errors
from entry import DTYPES
from header import functions

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "include/eddy"
# Public headers with functions on tensors that are not ops -> title of their section.
SECTIONS = {"view.h": "Views and parts", "host.h": "Between tensors and memory", "print.h": "Print",
            "file.h": "Files", "grad.h": "Gradients", "function.h": "Functions with a gradient of their own",
            "generator.h": "Random numbers"}

HEAD = """# The ops

Made from the op list and the public headers by `python3 functional/generate/main.py manual docs/ops.md functional/ops/*.toml`; not to
be edited. Whole descriptions stand with the prototypes in `<eddy/ops.h>`, and for bindings in the installed `ops.json`.

* **dtypes**: what the op is computed in, or takes. "others become f32": integers and bool are promoted.
* **forms**: `_s` takes a number in place of the last operand ([numbers.md](numbers.md): OUT_OF_RANGE where an integer dtype does not hold it), `_into` writes to a target, `_inplace` to the first operand. `_s` goes before
  the others: `eddy_add_s_into`.
* **gradient**: the operands that it goes back to; "none": the result carries none; "refused": a recorded call fails.
* **ulp**: bound of the error in units in the last place, of the result where nothing else is said; 0: correctly rounded, or copied.
  Empty: none is promised; the description says how it is computed.
* **errors**: what the op refuses, and after "late" what shows when the result is read. What all ops refuse:

"""

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
FUNCTION = re.compile(r"EDDY_API\b[^;{}()]*?\beddy_(\w+)\s*\(")


def cell(text):
    return text.replace("|", "\\|")


def first_sentence(text):
    text = text.strip()
    return text and re.split(r"(?<=[^.])\.(?=\s|$)", text, maxsplit=1)[0].rstrip(".") + "."


def dtypes_of(entry):
    name = errors.group_of(entry)
    text = {"all": "all", "float": "floats", "number": "all but bool", "integer": "integers", "whole": "integers, bool"}.get(name)
    text = text or ", ".join(d for d in DTYPES if d in entry.dtypes)
    return text + "; others become f32" if entry.promotion == "float" else text


def forms_of(entry, has_scalar):
    forms = ["_s"] * has_scalar + [f"_{f.form}" for f in functions(entry) if f.form]
    return " ".join(f"`{form}`" for form in forms)


def gradient_of(entry):
    if isinstance(entry.gradient, dict):
        return ", ".join(entry.gradient)
    return entry.gradient or "refused"


def bound_of(entry):
    if entry.ulp is None:
        return ""
    text = str(entry.ulp) + (f" (f64: {entry.ulp_f64})" if entry.ulp_f64 != entry.ulp else "")
    return text + (f", of {entry.ulp_of}" if entry.ulp_of else "")


def errors_of(entry):
    return errors.text(entry).replace("; late: ", "<br>late: ").replace("), ", ")<br>")


def op_row(entry, has_scalar):
    cells = [f"`{entry.name}`", first_sentence(entry.summary), dtypes_of(entry), forms_of(entry, has_scalar), gradient_of(entry),
             bound_of(entry), errors_of(entry)]
    return "| " + " | ".join(map(cell, cells)) + " |"


def family(entries, name):
    own = [e for e in entries if e.family == name and not e.scalar_of]
    scalars = {e.scalar_of for e in entries if e.scalar_of}
    return [f"### {name}", "", "| op | what | dtypes | forms | gradient | ulp | errors |", "|---|---|---|---|---|---|---|",
            *(op_row(e, e.name in scalars) for e in own), ""]


def declared(text):
    """[(names, first sentence)]: the functions of a header, grouped by comment. A function belongs to the last comment before it, unless
    that is a heading or the header's first comment."""
    rows, end = [], 0
    comments = [(m.end(), "" if m.start() == 0 or m.group(1).startswith(" ----") else m.group(1)) for m in COMMENT.finditer(text)]
    bare = COMMENT.sub(lambda m: " " * len(m.group(0)), text)
    for match in FUNCTION.finditer(bare):
        place, comment = max((c for c in comments if c[0] <= match.start()), default=(0, ""))
        if place <= end and rows:
            rows[-1][0].append(match.group(1))
        else:
            rows.append(([match.group(1)], first_sentence(" ".join(line.strip().removeprefix("*").strip() for line in comment.split("\n")))))
        end = match.end()
    return rows


def functions_of(header, title):
    rows = declared((HEADERS / header).read_text(encoding="utf-8"))
    return [f"### {title}: `<eddy/{header}>`", "", "| function | what |", "|---|---|",
            *(f"| {' '.join(f'`{n}`' for n in names)} | {cell(what)} |" for names, what in rows), ""]


def composition_row(entry):
    return "| " + " | ".join(map(cell, [f"`{entry.name}`", entry.summary, errors_of(entry)])) + " |"


def emit(entries, compositions=()):
    lines = [HEAD + "\n".join(f"  - {status}: {when}" for status, when in errors.SHARED), ""]
    lines += ["PyTorch's names and semantics hold where nothing else is said; [pytorch.md](pytorch.md) has its names beside these.", "", "## Ops", ""]
    for name in dict.fromkeys(e.family for e in entries):
        lines += family(entries, name)
    lines += ["## Functions made of ops", "", "Gradients go back through what they call. For `eddy_call` they have names and attributes too; those that "
              "make several tensors say in `ops.json` how many.", "", "| function | what | errors |", "|---|---|---|",
              *map(composition_row, compositions), ""]
    lines += ["## Other functions", "", "They have no name for `eddy_call`, but for split and chunk.", ""]
    for header, title in SECTIONS.items():
        lines += functions_of(header, title)
    return "\n".join(lines).rstrip("\n") + "\n"
