#!/usr/bin/env python3
"""Entries of NVIDIA's libraries are called through the tables that their lists make, and nowhere else: no built library asks the linker for one or needs one of
these libraries, no source names one outside of the lists, and each row of a list is called.

Usage: entries.py NM READELF ROOT LIBRARY..."""
import pathlib
import re
import subprocess
import sys

# The list of each library, the macro that has its rows, and the table.
LISTS = [("streams/cuda/driver.h", "EDDY_CUDA_DRIVER_LIST", "eddy_cuda"), ("streams/cuda/blas.h", "EDDY_BLAS_LIST", "eddy_cuda_blas"),
         ("streams/cuda/dnn.h", "EDDY_DNN_LIST", "eddy_cuda_dnn"), ("streams/cuda/nvrtc.h", "EDDY_CUDA_NVRTC_LIST", "nvrtc")]
ROOMS = ["base", "exchange", "functional", "include", "interpreter", "kernels", "program", "streams", "vm"]
ENTRY = re.compile(r"\b(?:cu[A-Z][a-z]|cuda[A-Z]|cublas(?:Lt|Xt)?[A-Z]|cudnn[A-Z]|nvrtc[A-Z]|nccl[A-Z]|nvJitLink[A-Z]|__cuda)\w*")
LIBRARY = re.compile(r"\blib(?:cuda|cudart|cublas|cublasLt|cudnn|nvrtc|nccl|nvJitLink)\b")
CALL = re.compile(r"\b(eddy_cuda|eddy_cuda_blas|eddy_cuda_dnn|nvrtc|cu)\.(\w+)\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(nm, readelf, library):
    """What the library leaves to the linker and the loader."""
    for line in output_of(nm, "-D", "--undefined-only", library).splitlines():
        name = line.split()[-1].partition("@")[0]
        if ENTRY.fullmatch(name):
            yield f"{pathlib.Path(library).name} asks for {name}"
    for line in output_of(readelf, "-d", library).splitlines():
        if "(NEEDED)" in line and LIBRARY.search(line):
            yield f"{pathlib.Path(library).name} needs {line.split('[')[-1].rstrip(']')}"


def rows_of(root, path, macro):
    """Symbol and name of each row."""
    text = COMMENT.sub("", (root / path).read_text())
    listed = re.search(rf"#define {macro}\(row\)(.*?[^\\])\n", text, re.S).group(1)
    return re.findall(r"\brow\((\w+), (\w+),", listed)


def sources(root, rooms):
    for room in rooms:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in (".c", ".h", ".cu", ".cuh", ".cpp") and path.is_file():
                yield path.relative_to(root).as_posix(), COMMENT.sub("", path.read_text())


def main():
    nm, readelf, root, *libraries = sys.argv[1:]
    root = pathlib.Path(root)
    problems = [problem for library in libraries for problem in linked(nm, readelf, library)]
    lists = {path for path, _, _ in LISTS}
    text = dict(sources(root, ROOMS))
    for path, content in text.items():
        if path not in lists:
            problems += [f"{path} names {name}: entries stand in {', '.join(sorted(lists))} alone" for name in sorted(set(ENTRY.findall(content)))]
    # Tests of the fake driver call what they have found as `cu`.
    calls = {call for _, content in [*text.items(), *sources(root, ["tests/fake_cuda"])] for call in CALL.findall(content)}
    count = 0
    for path, macro, table in LISTS:
        rows = rows_of(root, path, macro)
        count += len(rows)
        for part, names in (("symbol", [row[0] for row in rows]), ("name", [row[1] for row in rows])):
            problems += [f"{path}: {part} {name} stands there twice" for name in sorted({name for name in names if names.count(name) > 1})]
        for _, name in rows:
            if not calls & {(table, name), ("cu", name)}:
                problems.append(f"{path}: nobody calls {table}.{name}")
        if not rows:
            problems.append(f"{path} has no rows")
    print("\n".join(problems) or f"{count} entries")
    sys.exit(1 if problems else 0)


main()
