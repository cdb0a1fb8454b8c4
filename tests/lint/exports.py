#!/usr/bin/env python3
"""The symbols of the shared library are exactly those that public headers mark EDDY_API, each with a version; and its
thread-local block is small enough for a program that opens it late.

Usage: exports.py NM LIBRARY HEADER..."""
import pathlib
import re
import struct
import subprocess
import sys

# The C library keeps 1664 bytes for all libraries that are opened late and want a place in the static block.
TLS_BYTES_MAX = 1024
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"\bEDDY_API\b[^;{}()]*?\b(\w+)\s*\(")
VARIABLE = re.compile(r"\bEDDY_API\s+extern\b[^;()]*?\b(\w+)\s*(?:\[[^\]]*\])?\s*;")


def declared(headers):
    names = set()
    for header in headers:
        text = COMMENT.sub("", pathlib.Path(header).read_text())
        text = re.sub(r"^\s*#.*(\\\n.*)*$", "", text, flags=re.M)
        names |= set(FUNCTION.findall(text)) | set(VARIABLE.findall(text))
    return names


def exported(nm, library):
    """Names with their versions."""
    output = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = {}
    for line in output.splitlines():
        name, _, version = line.split()[-1].partition("@")
        if line.split()[-2] != "A":
            symbols[name] = version.lstrip("@")
    return symbols


def thread_local_bytes(library):
    """Size of the segment PT_TLS of a 64-bit ELF file."""
    data = pathlib.Path(library).read_bytes()
    order = "<" if data[5] == 1 else ">"
    offset, = struct.unpack_from(order + "Q", data, 32)
    size, count = struct.unpack_from(order + "HH", data, 54)
    for i in range(count):
        kind, = struct.unpack_from(order + "I", data, offset + i * size)
        if kind == 7:
            return struct.unpack_from(order + "Q", data, offset + i * size + 40)[0]
    return 0


def main():
    nm, library, *headers = sys.argv[1:]
    wanted, found = declared(headers), exported(nm, library)
    problems = [f"declared but not exported: {name}" for name in sorted(wanted - set(found))]
    problems += [f"exported but not declared: {name}" for name in sorted(set(found) - wanted)]
    problems += [f"without a version: {name}" for name, version in sorted(found.items()) if not version]
    problems += [f"not ours by its name: {name}" for name in sorted(found) if not name.startswith("eddy_")]
    if thread_local_bytes(library) > TLS_BYTES_MAX:
        problems.append(f"{thread_local_bytes(library)} thread-local bytes: more than {TLS_BYTES_MAX}")
    print("\n".join(problems) or f"{len(found)} symbols")
    sys.exit(1 if problems or not found else 0)


main()
