#!/usr/bin/env python3
"""Internal functions begin with a noun of the header that declares them, and a type has one name in one place.

Usage: names.py ROOT PUBLIC_HEADER...

A header's nouns: its own name or the first words of it (conv, conv_gather), its folder, and the types that it, or the public header of its
name, defines. A function of numbers is named after what it computes and ends, or begins, with the type of
what it takes (exp_f32, f32_of_bits)."""
import pathlib
import re
import sys

ROOMS = ["base", "streams", "vm", "interpreter", "functional", "kernels", "exchange", "program"]
NUMBERS = re.compile(r"_(f32|f64|f16|bf16|i64|u8|truth)$|^eddy_f(32|64)_")
VERBS = {"eddy_fail": "what every room records an error with", "eddy_fail_record": "the same, of an error that exists"}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"^\s*#.*(\\\n.*)*$", re.M)
PUBLIC = re.compile(r"\bEDDY_API\b[^;{}()]*?\b(\w+)\s*\(")
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w *]*?[ *])(eddy_\w+)\(", re.M)
TYPE = re.compile(r"\}\s*eddy_(\w+);|typedef [^;{}()]*?\beddy_(\w+);|typedef [^;{}()]*?\b(?:\*)?eddy_(\w+)\(|struct eddy_(\w+) \{")
DEFINED = re.compile(r"(?:struct|union|enum) (eddy_\w+) \{")


def read(path):
    return COMMENT.sub("", path.read_text())


def types(text):
    return {name for groups in TYPE.findall(text) for name in groups if name}


def nouns(path, room, public_types):
    words = path.stem.split("_")
    first = {"_".join(words[:k]) for k in range(1, len(words) + 1)}
    return first | {path.stem.rstrip("s"), path.parent.name, room} | types(read(path)) | public_types.get(path.name, set())


def check_header(path, room, public, public_types):
    own = nouns(path, room, public_types)
    for name in FUNCTION.findall(DIRECTIVE.sub("", read(path))):
        plain = name.removeprefix("eddy_")
        if name not in public and name not in VERBS and not NUMBERS.search(name) and \
                not any(plain == noun or plain.startswith(noun + "_") for noun in own):
            yield f"{path}: {name} begins with no noun of this header"


def main():
    root = pathlib.Path(sys.argv[1])
    public, public_types, places, problems, count = set(), {}, {}, [], 0
    for header in map(pathlib.Path, sys.argv[2:]):
        public |= set(PUBLIC.findall(read(header)))
        public_types[header.name] = types(read(header))
        for name in DEFINED.findall(read(header)):
            places.setdefault(name, set()).add(header.name)
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.h")):
            count += 1
            problems += check_header(path, room, public, public_types)
            for name in DEFINED.findall(read(path)):
                places.setdefault(name, set()).add(str(path.relative_to(root)))
    problems += [f"{name} is defined in {' and in '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]
    print("\n".join(problems) or f"{count} headers")
    sys.exit(1 if problems or not count or not public else 0)


main()
