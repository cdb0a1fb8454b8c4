#!/usr/bin/env python3
"""<dlpack/dlpack.h>, where it is installed (libdlpack-dev), goes together with <eddy/eddy.h> in either order, in C and C++.

Usage: test_dlpack_headers.py INCLUDE...   ($CC and $CXX name the compilers). Exit status 77: no dlpack.h."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXIT_SKIPPED = 77
HEADERS = ("dlpack/dlpack.h", "eddy/eddy.h")
USE = """
DLManagedTensor *use(eddy_tensor *tensor);
DLManagedTensor *use(eddy_tensor *tensor) {
    DLManagedTensor *managed = eddy_to_dlpack_unversioned(tensor, NULL);
    return managed && managed->dl_tensor.ndim > 0 ? managed : 0;
}
"""


def compile_text(text, language, command):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"both.{language}"
        source.write_text(text)
        return subprocess.run([*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False)


def main():
    includes = [flag for folder in sys.argv[1:] for flag in ("-I", folder)]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    languages = [("c", [os.environ.get("CC", "cc"), "-std=c11", *warnings, *includes])]
    if shutil.which(os.environ.get("CXX", "c++")):
        languages.append(("cpp", [os.environ.get("CXX", "c++"), "-std=c++17", *warnings, *includes]))
    if compile_text(f"#include <{HEADERS[0]}>\n", *languages[0]).returncode != 0:
        print("skipped: no dlpack.h (apt install libdlpack-dev)")
        sys.exit(EXIT_SKIPPED)
    for language, command in languages:
        for order in (HEADERS, HEADERS[::-1]):
            done = compile_text("".join(f"#include <{header}>\n" for header in order) + USE, language, command)
            if done.returncode != 0:
                sys.exit(f"{order} in {language}:\n{done.stderr}")


main()
