#!/usr/bin/env python3
"""`eddy` with ever more memory to have, until it has enough: it says that there is none, or does all of its work.

Usage: test_memory.py EDDY SAVED"""
import os
import random
import resource
import subprocess
import sys

from command import environment, expect, folder, run, run_checks
from traces import after, issue, kernel, span, thread_name, write

SAVED = os.path.abspath(sys.argv[2])
STEP = 512 << 10
# What others say before the command has begun, or in its place; the last is by initialisers of oneDNN 3.6 (Debian 13).
NOT_STARTED = (b"error while loading shared libraries", b"libgomp: Out of memory", b"out of memory\n",
               b"terminate called after throwing an instance of ")


def trace():
    """Larger than what is there anyway."""
    draw = random.Random(1)
    events = [thread_name(t, f"worker {t}") for t in range(8)]
    for n in range(1, 6001):
        events += [issue(n, n), after(n, n - 1), span("wait", f"wait {n}", 0, n, 1, at=f"place.c:{n}"),
                   kernel(f"op {n % 500}", n % 8, n + 2, draw.random(), n, at=f"place.c:{n}", live=n)]
    return str(write("trace.json", events))


def sweep(*words):
    """From the least with which the command starts to where it has succeeded ten times."""
    whole = run(*words)
    expect(whole[0] == 0, words, whole)
    ended = {0: 0, 1: 0}
    limit = 16 << 20
    while ended[0] < 10:
        code, out, err = run(*words, before=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        limit += STEP
        expect(limit < 4 << 30, words, "is never done")
        if any(sentence in err for sentence in NOT_STARTED):
            continue
        expect(code in ended, words, "of", limit, "bytes:", code, err)
        ended[code] += 1
        expect(code == 1 or out == whole[1], words, "of", limit, "bytes: a part of what it says")
        expect(code == 0 or (b"memory" in err and err.count(b"\n") == 1), words, "of", limit, "bytes:", err)
    return ended[1]


def check_traces():
    path = trace()
    refused = [sweep("trace", *words) for words in (("summary", path, "--json"), ("summary", path), ("svg", path), ("svg", path, "--json"),
                                                       ("diff", path, path))]
    expect(all(refused), refused)


def check_programs():
    subprocess.run([SAVED, folder], check=True, env=environment())
    for command in ("print", "dot", "plan"):
        sweep(command, "layers.program")
    # A plan as JSON has estimates of time, which are measured anew each time.
    for command in ("print", "dot"):
        sweep(command, "layers.program", "--json")


def check_ops():
    expect(sweep("ops", "--json"), "memory was never short")
    sweep("ops")
    sweep("ops", "relu")


run_checks(globals())
