#!/usr/bin/env python3
"""Each public header compiles alone, as C11 and as C++17, pedantically.

Usage: headers.py HEADER...   ($CC and $CXX name the compilers)"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wundef", "-Wshadow", "-fsyntax-only"]


def include_folders(headers):
    """Headers are found as <eddy/name.h>."""
    return sorted({str(pathlib.Path(header).resolve().parent.parent) for header in headers})


def main():
    headers = [header for header in sys.argv[1:] if header.endswith(".h") and pathlib.Path(header).parent.name == "eddy"]
    folders = [flag for folder in include_folders(headers) for flag in ("-I", folder)]
    languages = [(os.environ.get("CC", "cc"), "c", ["-std=c11", "-Wstrict-prototypes"])]
    cxx = os.environ.get("CXX", "c++")
    if shutil.which(cxx):
        languages.append((cxx, "c++", ["-std=c++17"]))
    else:
        print("no C++ compiler: C only")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            for compiler, language, flags in languages:
                source = pathlib.Path(folder) / ("alone.c" if language == "c" else "alone.cpp")
                # Twice: the guard holds.
                source.write_text(f"#include <eddy/{pathlib.Path(header).name}>\n" * 2 + "int alone;\n")
                result = subprocess.run([compiler, "-x", language, *flags, *WARNINGS, *folders, str(source)],
                                        capture_output=True, text=True)
                if result.returncode != 0:
                    failed += 1
                    print(f"{header} as {language}:\n{result.stderr}")
    if not headers:
        sys.exit("no headers")
    sys.exit(1 if failed else 0)


main()
