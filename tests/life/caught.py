#!/usr/bin/env python3
"""usage: caught.py PROGRAM FAULT WORD...

Runs a program that has a fault, and looks whether the sanitizer that it was built with ends it and says one of the words."""

import subprocess
import sys

program, fault, *words = sys.argv[1:]
done = subprocess.run([program, fault], capture_output=True, text=True, errors="replace", timeout=100, check=False)
if done.returncode == 0:
    sys.exit(f"{fault}: it went unseen")
if not any(word in done.stderr for word in words):
    sys.exit(f"{fault}: ended with {done.returncode}, and said none of {words}:\n{done.stderr}")
print(f"{fault}: seen")
