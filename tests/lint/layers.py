#!/usr/bin/env python3
"""Includes point one way: base <- streams, kernels <- vm <- interpreter <- exchange, program, functional; base <- trace <- interpreter.

Also: Concurrency Kit is seen by base only, CUDA by streams/cuda* and kernels/cuda/ only, and users' programs (examples) see
the public headers only. Usage: layers.py ROOT"""
import pathlib
import re
import sys

# What each room may include besides itself. Streams hand kernels a team, so they know what a kernel is.
MAY_INCLUDE = {
    "include": set(),
    "base": {"eddy"},
    "trace": {"eddy", "base"},
    "kernels": {"eddy", "base"},
    "streams": {"eddy", "base", "kernels"},
    "vm": {"eddy", "base", "kernels", "streams"},
    "interpreter": {"eddy", "base", "trace", "kernels", "streams", "vm"},
    "exchange": {"eddy", "base", "kernels", "streams", "vm", "interpreter"},
    "program": {"eddy", "base", "kernels", "streams", "vm", "interpreter"},
    "functional": {"eddy", "base", "kernels", "streams", "vm", "interpreter"},
    "examples": {"eddy"},
}
ROOMS = set(MAY_INCLUDE) | {"eddy", "tests", "bench", "tools"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
CUDA = re.compile(r"^(cuda|cublas|cudnn|nccl|nvtx)", re.I)
NVTX = "base/nvtx.c"  # which sees the headers of NVTX, and nothing else of NVIDIA's
CK = re.compile(r"\bck_\w+")


def sources(root, room):
    for path in sorted((root / room).rglob("*")):
        if path.suffix in (".c", ".h", ".cu", ".cuh") and path.is_file():
            yield path


def problems_of(root, room, path):
    text = path.read_text()
    where = path.relative_to(root)
    own = "eddy" if room == "include" else room
    for included in INCLUDE.findall(text):
        folder = included.split("/")[0] if "/" in included else ""
        if folder in ROOMS and folder != own and folder not in MAY_INCLUDE[room]:
            yield f"{where} includes <{included}>: {room} may not see {folder}"
        if "cuda" not in where.as_posix() and CUDA.match(included) and where.as_posix() != NVTX:
            yield f"{where} includes <{included}>: CUDA stays in streams/cuda* and kernels/cuda/"
    if room != "base" and CK.search(text):
        yield f"{where} names {CK.search(text).group()}: Concurrency Kit stays in base/"


def main():
    root = pathlib.Path(sys.argv[1])
    problems, seen = [], 0
    for room in MAY_INCLUDE:
        for path in sources(root, room):
            seen += 1
            problems += problems_of(root, room, path)
    print("\n".join(problems))
    if seen == 0:
        sys.exit(f"no sources below {root}")
    sys.exit(1 if problems else 0)


main()
