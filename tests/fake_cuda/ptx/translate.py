#!/usr/bin/env python3
"""Translates PTX, the text that nvcc makes of kernels, to C++ for this processor: a function for each kernel, which the fake driver runs as it does the kernels that are
compiled for the host.

usage: translate.py PTX CPP
Exits 1, and names the line, where it meets what it does not know."""

import re
import sys

from kernel import Kernel, Unknown, bits_of, label


def statements(text):
    """What stands between semicolons, braces and labels, a line number with each."""
    number = 0
    pending = ""
    for line in text.splitlines():
        number += 1
        pending += " " + re.sub(r"//.*", "", line).strip()
        while True:
            pending = pending.strip()
            found = re.match(r"(\$[\w$]+:)|([{}])|((?:[^;{}]|\{[^{};]*\})*;)", pending)
            header = re.match(r"(?:\.visible )?\.entry\b", pending)
            if header:
                found = re.match(r"()()((?:\.visible )?\.entry [\w$]+\s*\([^)]*\)[^{;]*)(?=\{)", pending)
            directive = re.match(r"\.(version|target|address_size)\b[^.]*?(\S+)$", pending)
            if directive and not found:
                found = re.match(r"()()(.*)$", pending)
            if not found or not found[0]:
                break
            yield number, found[0].rstrip(";").strip()
            pending = pending[found.end():]
    if pending.strip():
        raise Unknown(pending.strip()[:60])


def elements(kind, text):
    """Bytes, in C++, of the list that a variable begins with."""
    values = [int(v) for v in text.split(",")]
    return ", ".join(str(v % 256) for value in values for v in value.to_bytes(bits_of(kind) // 8, "little", signed=value < 0))


def variable(text):
    """Space, alignment, kind, name, count (None: of the launch; 1 where it is no array) and list of values of a variable."""
    found = re.match(r"(?:\.visible |\.extern )*\.(global|shared|const|local|param) (?:\.align (\d+) )?\.(\w+)\s+([\w$]+)(\[(\d*)\])?(?: = \{?([-\d, ]+)\}?)?$", re.sub(r"\s+", " ", text))
    if not found:
        raise Unknown(text[:60])
    count = 1 if found[5] is None else int(found[6]) if found[6] else None
    return found[1], int(found[2] or bits_of(found[3]) // 8), found[3], found[4], count, found[7]


def translate(text):
    """The C++ of a file of PTX."""
    out = ["#include <tests/fake_cuda/ptx/machine.h>"]
    globals_, shared = {}, []
    kernel, depth = None, 0
    for number, piece in statements(text):
        try:
            if piece.startswith((".version", ".target", ".address_size", ".pragma")):
                continue
            if re.match(r"(\.visible )?\.entry", piece):
                name = re.match(r"(?:\.visible )?\.entry ([\w$]+)", piece)[1]
                parameters = [variable(p.strip()) for p in re.search(r"\((.*?)\)", piece)[1].split(",") if p.strip()]
                if len(parameters) != 1 or parameters[0][2] != "b8":
                    raise Unknown("parameters that are not one struct")
                kernel = Kernel(name, globals_)
                kernel.parameters[parameters[0][3]] = parameters[0][4]
                start = text.index(f".entry {name}(")
                used = set(re.findall(r"[\w$]+", text[start:text.index("\n}", start)])) if shared else set()
                for shared_align, shared_name, size in shared:
                    if shared_name in used:
                        kernel.declare_shared(shared_align, shared_name, size)
            elif piece == "{":
                depth += 1
                kernel.lines.append("{")
            elif piece == "}":
                depth -= 1
                kernel.lines.append("}")
                if depth == 0:
                    out += kernel.finished()
                    kernel = None
            elif piece.endswith(":"):
                kernel.lines.append(f"{label(piece[:-1])}:;")
            elif piece.startswith(".reg"):
                found = re.match(r"\.reg \.(\w+)\s+(.*)", piece)
                kernel.declare(found[1], found[2])
            elif piece.startswith("."):
                space, align, kind, name, count, values = variable(piece)
                size = count and count * bits_of(kind) // 8
                if space == "shared" and kernel:
                    kernel.declare_shared(align, name, size)
                elif space == "shared":
                    shared.append((align, name, size))
                elif space == "local":
                    kernel.lines.append(f"alignas({align}) unsigned char {name}[{size}];")
                    kernel.globals = {**kernel.globals, name: size}
                elif kernel:
                    raise Unknown(piece[:60])
                else:
                    globals_[name] = size
                    out.append(f"alignas({align}) static {'const ' if space == 'const' else ''}unsigned char {name}[{size}] = {{{elements(kind, values) if values else ''}}};")
            else:
                kernel.lines.append(kernel.statement(re.sub(r"\s+", " ", piece)))
        except (Unknown, KeyError) as error:
            raise Unknown(f"line {number}: {error}: {piece[:100]}") from error
    return "\n".join(out) + "\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    try:
        result = translate(text)
    except Unknown as error:
        sys.exit(f"{sys.argv[1]}: {error}")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(result)


if __name__ == "__main__":
    main()
