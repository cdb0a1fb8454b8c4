#!/usr/bin/env python3
"""Each ```c block of a page compiles.

A block without main is the body of a function; a comment in front of it, <!-- given: eddy_tensor *x, *w -->, declares what
it takes for granted. Usage: snippets.py PAGE HEADER...   ($CC names the compiler)"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?:<!--\s*given:\s*(.*?)\s*-->\s*)?```c\n(.*?)```", re.S)


def program(given, text):
    if re.search(r"\bmain\s*\(", text):
        return text
    includes = "".join(line + "\n" for line in text.splitlines() if line.startswith("#include"))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
    declarations = "".join(f"extern {one.strip()};\n" for one in (given or "").split(";") if one.strip())
    return f"#include <eddy/eddy.h>\n#include <stdio.h>\n{includes}{declarations}void snippet(void);\nvoid snippet(void) {{\n{body}\n}}\n"


def main():
    page, *headers = sys.argv[1:]
    folders = sorted({str(pathlib.Path(h).resolve().parent.parent) for h in headers if pathlib.Path(h).parent.name == "eddy"})
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-fsyntax-only"]
    flags += [flag for folder in folders for flag in ("-I", folder)]
    blocks = BLOCK.findall(pathlib.Path(page).read_text())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (given, text) in enumerate(blocks, 1):
            source = pathlib.Path(folder) / "snippet.c"
            source.write_text(program(given, text))
            result = subprocess.run([os.environ.get("CC", "cc"), *flags, str(source)], capture_output=True, text=True)
            if result.returncode != 0:
                failed += 1
                print(f"block {number} of {page}:\n{text}\n{result.stderr}")
    if not blocks:
        sys.exit(f"{page} has no C in it")
    sys.exit(1 if failed else 0)


main()
