#!/usr/bin/env python3
"""Libraries that are found but have other calls than those we know are passed over: the build goes on, and says so.

Usage: test_unusable.py MESON SOURCE   (the headers' guards are defined, so that they declare nothing)"""
import os
import pathlib
import subprocess
import sys
import tempfile

GUARDS = "-DBLIS_H -DONEAPI_DNNL_DNNL_H"
LIBRARIES = {"blis": "BLIS is passed over:", "dnnl": "oneDNN is passed over:"}


def main():
    meson, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        build = pathlib.Path(name) / "build"
        done = subprocess.run([meson, "setup", build, source, "-Dtests=false", "-Dexamples=false"],
                              capture_output=True, text=True, check=False, env={**os.environ, "CFLAGS": GUARDS})
        rules = (build / "build.ninja").read_text() if done.returncode == 0 else ""
    said = " ".join(done.stdout.split())
    problems = [f"nothing is said of {library}" for library, sentence in LIBRARIES.items()
                if f"Library {library} found: YES" in said and sentence not in said]
    problems += [f"{flag} is defined" for flag in ("EDDY_HAVE_BLIS", "EDDY_HAVE_DNNL") if flag in rules]
    if done.returncode != 0 or problems:
        sys.exit(f"exit status {done.returncode}; {'; '.join(problems)}\n{done.stdout}{done.stderr}")


main()
