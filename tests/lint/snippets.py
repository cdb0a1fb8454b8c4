#!/usr/bin/env python3
"""Each ```c block of a page compiles, and what a page shows as its output is what it prints.

A block without main is the body of a function; a comment in front of it, <!-- given: eddy_tensor *x, *w -->, declares what
it takes for granted. A ```text block is what the program above it prints, stdout and stderr as a terminal shows them; a comment
in front of it, <!-- run: EDDY_LOG=error, exits 1 -->, sets variables and says the exit status (else 0). Programs of a page run in
one folder, in their order. A first line /* name.c */ names the source.
Usage: snippets.py LIBRARY PAGE HEADER...   ($CC names the compiler)"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?:<!--\s*(given|run):\s*(.*?)\s*-->\s*)?^```(c|text)\n(.*?)^```", re.S | re.M)
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable"]
# Another one each time.
ADDRESS = re.compile(r"\b0x[0-9a-f]+")
# Lines come as they are written, as on a terminal.
BY_LINES = """#include <stdio.h>
__attribute__((constructor)) static void write_by_lines(void) { setvbuf(stdout, NULL, _IOLBF, 0); }
"""


def is_program(text):
    return re.search(r"\bmain\s*\(", text) is not None


def source_of(given, text):
    if is_program(text):
        return text
    includes = "".join(line + "\n" for line in text.splitlines() if line.startswith("#include"))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
    declarations = "".join(f"extern {one.strip()};\n" for one in (given or "").split(";") if one.strip())
    return f"#include <eddy/eddy.h>\n#include <stdio.h>\n{includes}{declarations}void snippet(void);\nvoid snippet(void) {{\n{body}\n}}\n"


class Page:
    def __init__(self, library, folders, folder):
        self.library, self.folder = pathlib.Path(library).resolve(), pathlib.Path(folder)
        self.flags = WARNINGS + [flag for one in folders for flag in ("-I", one)]
        self.program = None
        (self.folder / "by_lines.c").write_text(BY_LINES)

    def compile(self, given, text):
        """What the compiler has to say; "" where all is well."""
        named = re.match(r"/\* (\w+\.c)\b", text)
        source = self.folder / (named.group(1) if named else "snippet.c")
        source.write_text(source_of(given, text))
        command = [os.environ.get("CC", "cc"), *self.flags, source.name]
        self.program = None
        if is_program(text):
            self.program = f"./{source.stem}"
            command += ["by_lines.c", str(self.library), f"-Wl,-rpath,{self.library.parent}", "-pthread", "-lm", "-o", self.program]
        else:
            command.append("-fsyntax-only")
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        return result.stderr if result.returncode else ""

    def run(self, how, shown):
        """In what the program's output differs from the one shown; "" where it does not."""
        if not self.program:
            return "no program stands above it"
        how = how or ""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EDDY_")}
        environment.update(re.findall(r"(\w+)=([^\s,]*)", how))
        exits = re.search(r"exits (\d+)", how)
        result = subprocess.run([self.program], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != int(exits.group(1) if exits else 0):
            return f"exit status {result.returncode}, printed:\n{result.stdout}"
        return "" if ADDRESS.sub("0x", result.stdout) == ADDRESS.sub("0x", shown) else f"printed:\n{result.stdout}"


def main():
    library, path, *headers = sys.argv[1:]
    folders = sorted({str(pathlib.Path(h).resolve().parent.parent) for h in headers if pathlib.Path(h).parent.name == "eddy"})
    blocks = BLOCK.findall(pathlib.Path(path).read_text())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        page = Page(library, folders, folder)
        for number, (kind, words, language, text) in enumerate(blocks, 1):
            wrong = page.compile(words if kind == "given" else "", text) if language == "c" else page.run(words if kind == "run" else "", text)
            if wrong:
                failed += 1
                print(f"block {number} of {path}:\n{text}\n{wrong}")
    if not blocks:
        sys.exit(f"{path} has no C in it")
    sys.exit(1 if failed else 0)


main()
