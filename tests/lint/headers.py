#!/usr/bin/env python3
"""Each public header compiles alone, as C11 and as C++17, pedantically; calls that would be misread do not compile.

Usage: headers.py HEADER...   ($CC and $CXX name the compilers)"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wundef", "-Wshadow", "-fsyntax-only"]


# Statements with `x` a tensor: what compiles, and beside it what must not.
CALLS = [("eddy_sum(x, EDDY_AXES(0), NULL)", "eddy_sum(x, 0, NULL)"),
         ("eddy_sum(x, EDDY_ALL_AXES, NULL)", "eddy_sum(x, NULL, NULL)"),
         ("eddy_add_s(x, EDDY_S(2))", "eddy_add_s(x, 2)"),
         ('eddy_program_run_named(NULL, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"x", &x}), NULL)', "eddy_program_run_named(NULL, x, x, NULL)"),
         ('EDDY_DATA_FEEDS({"x", NULL, EDDY_SHAPE(2, 3), EDDY_F32, NULL}, {"y", NULL, EDDY_SHAPE(1), EDDY_I64, NULL})',
          'EDDY_DATA_FEEDS({"x", EDDY_F32, EDDY_SHAPE(2, 3), NULL, NULL})'),
         ('eddy_program_run_named(NULL, EDDY_FEEDS({"x", x}, {"y", x}), EDDY_FETCHES({"x", &x}, {"y", &x}), NULL)',
          'eddy_program_run_named(NULL, EDDY_FEEDS({"x", &x}), EDDY_FETCHES({"x", x}), NULL)')]


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
        source = pathlib.Path(folder) / "alone.c"

        def compiled(text, compiler, language, flags):
            source.write_text(text)
            return subprocess.run([compiler, "-x", language, *flags, *WARNINGS, *folders, str(source)], capture_output=True, text=True)

        for language in languages:
            for header in headers:
                # Twice: the guard holds.
                result = compiled(f"#include <eddy/{pathlib.Path(header).name}>\n" * 2 + "int alone;\n", *language)
                if result.returncode != 0:
                    failed += 1
                    print(f"{header} as {language[1]}:\n{result.stderr}")
            for good, bad in CALLS:
                for call, is_good in ((good, True), (bad, False)):
                    text = f"#include <eddy/eddy.h>\neddy_tensor *called(eddy_tensor *x);\neddy_tensor *called(eddy_tensor *x) {{ (void){call}; return x; }}\n"
                    result = compiled(text, *language)
                    if (result.returncode == 0) != is_good:
                        failed += 1
                        print(f"{call} as {language[1]} compiles: {not is_good}\n{result.stderr}")
    if not headers:
        sys.exit("no headers")
    sys.exit(1 if failed else 0)


main()
