#!/usr/bin/env python3
"""docs/environment.md: every environment variable in one table, from the list in include/eddy/options.h and the lists below.

environment.py writes the page. environment.py --check fails if the page is outdated, if a source reads a variable that no list has,
or if no source reads a variable of the lists below."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/environment.md"
LIST = ROOT / "include/eddy/options.h"

# Variables that the library reads besides the options: variable, values, description.
OTHERS = [
]
# Variables that only tests and tools read.
INSIDE = [
    ("EDDY_TEST_SEED", "a number", "The seed of tests that draw random cases."),
    ("EDDY_TEST_CASE", "an op", "`functional-gradients`, `functional-loops` and `kernels-cuda_elementwise` for that op alone."),
    ("EDDY_TEST_LONG", "set", "`functional-scalar_functions` takes minutes and far more values, `program-control_random` 20,000 programs."),
    ("EDDY_TEST_PRODUCTS", "a name", "What `functional-cuda_product` has to find that computes products on the device: `Eddy`, `cuBLASLt 13.0.0`."),
    ("EDDY_TEST_CONVOLUTIONS", "a name", "The same of `functional-cuda_conv`: `Eddy`, `cuDNN 9.0.0`."),
    ("EDDY_TEST_SEEDS", "a number", "With how many seeds each program of the fake driver's own tests runs; 60 by default."),
    ("EDDY_TEST_SHARE", "a number", "Of tests with many cases alike one case in so many (`tests/rounds.h`)."),
    ("EDDY_TEST_TEXTS", "a folder", "`program-hostile` and `program-control_random` write the texts of their programs to it."),
    ("EDDY_PROGRESS_SECONDS", "a number, 30", "How often a build or the tests write a line to a file."),
    ("EDDY_MEMINFO", "a file", "Read in place of `/proc/meminfo` to find the number of jobs."),
]

HEAD = """# Environment variables

Made from the list in `<eddy/options.h>` by `python3 tools/environment.py`; not to be edited.

They are read when the first runtime starts; `EDDY_LOG` before the first line is written. One that is empty counts as not set; one that
cannot be read is an error of the first call that needs a runtime, and that error names it. Numbers may carry K, M or G (1024 each); switches
are 1, true, yes, on or 0, false, no, off. `EDDY_CALL_SITES` is no variable but a macro ([debugging.md](debugging.md)).

An option of the same name in `eddy_runtime_options` goes before its variable; a switch is on if either says so.

## Of a program that uses Eddy

| variable | option | values | default | what |
|---|---|---|---|---|
"""
INSIDE_HEAD = """
## Of Eddy's own tests and tools

| variable | values | what |
|---|---|---|
"""

TEXT = r'"(?:[^"\\]|\\.)*"'
ROW = re.compile(rf'\b(BOOL|INT|STRING)\((\w+), "(EDDY_\w+)",\s*(.*?),?\s*((?:{TEXT}\s*)+)\)', re.S)
READ = re.compile(r'(?:getenv|eddy_environment_string)\("(EDDY_\w+)"|environ\.get\("(EDDY_\w+)"|\$\{(EDDY_\w+):')


def cell(text):
    return text.replace("|", "\\|")


def text_of(literals):
    return "".join(re.findall(TEXT, literals)).replace('""', "").strip('"').replace('\\"', '"')


def number(text):
    """A bound of the list, in a readable form."""
    if "<<" in text:
        shift = int(text.split("<<")[1])
        return f"{1 << shift % 10}{' KMG'[shift // 10]}"
    return {"INT64_MAX": "2^63 - 1", "INT32_MAX": "2^31 - 1"}.get(text, text)


def option_row(kind, name, variable, between, literals):
    parts = [part.strip() for part in between.split(",")] if between else []
    values, default = "switch", "0"
    if kind == "INT":
        values, default = f"{number(parts[0])} to {number(parts[1])}", number(parts[2])
    elif kind == "STRING":
        values, default = "a word", text_of(parts[0])
    return [f"`{variable}`", f"`{name}`", values, default, text_of(literals)]


def options():
    text = LIST.read_text(encoding="utf-8").replace("\\\n", "\n")
    return ROW.findall(text[text.index("define EDDY_RUNTIME_OPTION_LIST"):text.index("typedef struct")])


def row(cells):
    return "| " + " | ".join(map(cell, cells)) + " |\n"


def page():
    lines = [HEAD, *(row(option_row(*one)) for one in options())]
    lines += [row([f"`{variable}`", "", values, "0", what]) for variable, values, what in OTHERS]
    lines += [INSIDE_HEAD, *(row([f"`{variable}`", values, what]) for variable, values, what in INSIDE)]
    return "".join(lines)


def read_somewhere():
    """Variables that sources read -> a file that reads it."""
    found = {}
    for folder in ("base", "streams", "kernels", "vm", "interpreter", "functional", "tests", "tools", "bench", "examples"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".c", ".h", ".py", ".sh"):
                for names in READ.findall(file.read_text(encoding="utf-8")):
                    found.setdefault("".join(names), file.relative_to(ROOT))
    return found


def problems():
    found = read_somewhere()
    rows = {one[2] for one in options()}
    others = {one[0] for one in OTHERS + INSIDE}
    listed = len(re.findall(r'"EDDY_\w+"', LIST.read_text(encoding="utf-8")))
    if listed != len(rows):
        yield f"{LIST.name} names {listed} variables, of which {len(rows)} are understood"
    for variable in sorted(set(found) - rows - others):
        yield f"{found[variable]} reads {variable}, which no list has"
    for variable in sorted(others - set(found)):
        yield f"{variable} is in tools/environment.py and read nowhere"
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page():
        yield "docs/environment.md is old: python3 tools/environment.py"


def main():
    if sys.argv[1:] == ["--check"]:
        found = list(problems())
        print("\n".join(found))
        return 1 if found else 0
    if sys.argv[1:]:
        print(__doc__)
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
