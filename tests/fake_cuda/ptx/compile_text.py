#!/usr/bin/env python3
"""Stands in for the compiler of the fake NVRTC (nvrtc_command): compiles the text by CUDA's own NVRTC to PTX, and that for this processor. What the host's compiler makes of the text is linked
as well, for what a kernel touches.

usage: compile_text.py NVRTC COMMAND IDENTITY [-ffp-contract=off ...] -o OBJECT -x c++ TEXT
NVRTC: the library; COMMAND: the file of the fake's own command; IDENTITY: of the translation, by which what was compiled by another one is not taken."""

import ctypes
import subprocess
import sys
import tempfile

import translate

OPTIONS = ["--gpu-architecture=compute_90", "--std=c++17", "-default-device", "--device-int128"]


def ptx_of(library, text, options):
    """By NVRTC; ends with its report where it refuses the text."""
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"fusion.cu", 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    if nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)):
        sys.exit("no PTX")
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def main():
    library, command_file, _, *given = sys.argv[1:]
    target, text_file = given[given.index("-o") + 1], given[-1]
    with open(command_file, encoding="utf-8") as file:
        command = file.read().split()
    with open(text_file, "rb") as file:
        text = file.read()
    contracts = "-ffp-contract=off" not in given
    ptx = ptx_of(library, text, OPTIONS + ([] if contracts else ["-fmad=false"]))
    try:
        translated = translate.translate(ptx)
    except translate.Unknown as error:
        sys.exit(f"PTX of the text: {error}")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/translated.cpp", "w", encoding="utf-8") as file:
            file.write(translated)
        # What PTX says is not contracted once more.
        for name, source, more in (("translated", f"{folder}/translated.cpp", ["-O1", "-march=native"]), ("host", text_file, [])):
            subprocess.run([*command, *more, "-ffp-contract=off", "-c", "-o", f"{folder}/{name}.o", "-x", "c++", source], check=True)
        subprocess.run([*command, "-Wl,-z,muldefs", "-Wl,-Bsymbolic-functions", "-o", target, f"{folder}/translated.o", f"{folder}/host.o"], check=True)


if __name__ == "__main__":
    main()
