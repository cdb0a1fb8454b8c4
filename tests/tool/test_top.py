#!/usr/bin/env python3
"""`eddy top`: the counters of a process that runs, in JSON, once, and on a terminal; processes that have none.

Usage: test_top.py EDDY BUSY"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from command import EDDY, environment, expect, open_terminal, read_terminal, run, run_checks, text

BUSY = os.path.abspath(sys.argv[2])


@contextlib.contextmanager
def busy(**variables):
    """A process that computes."""
    with subprocess.Popen([BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(**variables)) as process:
        try:
            expect(process.stdout.readline() == b"ready\n", "the program did not start")
            yield process
        finally:
            process.kill()


def check_json():
    with busy(EDDY_TOP="1", EDDY_TIMES="1", EDDY_THREADS="2") as process:
        said = json.loads(text("top", "--json", str(process.pid)))
        # The page is written ten times a second: the first may be from before the loop.
        while "matmul" not in said.get("op count", {}):
            said = json.loads(text("top", "--json", str(process.pid)))
        later = json.loads(text("top", "--json", str(process.pid)))
        while later["op count"]["matmul"] == said["op count"]["matmul"]:
            later = json.loads(text("top", "--json", str(process.pid)))
        runtime = next(group for group in later if group.startswith("runtime "))
        expect(later[runtime]["threads"] == 2, later)
        expect(later[runtime]["submitted"] > said[runtime]["submitted"], said, later)
        expect(later["memory of cpu"]["live"] >= 64 * 64 * 4, later)
        expect(later["op ns"]["matmul"] > said["op ns"]["matmul"], said, later)


def check_once():
    with busy(EDDY_TOP="1", EDDY_TIMES="1") as process:
        said = text("top", "--once", "--interval", "0.3", str(process.pid))
        expect(said.startswith(f"{process.pid} "), said)
        for part in ("instructions", "in flight", "memory", "cpu", "matmul", "of a core"):
            expect(part in said, part, said)
        expect(re.search(r"instructions +[1-9][0-9.]* (M|k)?/s", said), said)
        expect("\033" not in said, said)
    with busy(EDDY_TOP="1") as process:
        expect("EDDY_TIMES=1" in text("top", "--once", "--interval", "0.1", str(process.pid)), "ops")


def screens(process, keys):
    """What it shows on a terminal of 80 x 24 until it ends."""
    reader, writer = open_terminal(80)
    with subprocess.Popen([EDDY, "top", "--interval", "0.1", str(process.pid)], stdin=writer, stdout=writer, stderr=writer,
                          env=environment(TERM="xterm"), start_new_session=True) as top:
        os.close(writer)
        shown = b""
        while shown.count(b"\033[H\033[J") < 3:
            shown += os.read(reader, 65536)
        keys(reader, process)
        shown += read_terminal(reader)
        code = top.wait()
    os.close(reader)
    expect(code == 0, code, shown)
    return [re.sub(r"\033\[[0-9;]*m", "", screen) for screen in shown.decode().replace("\r", "").split("\033[H\033[J")[1:]]


def check_a_terminal():
    with busy(EDDY_TOP="1", EDDY_TIMES="1") as process:
        shown = screens(process, lambda reader, _: os.write(reader, b"q"))
        for screen in shown:
            lines = screen.split("\n")
            expect(len(lines) <= 24 and max(map(len, lines)) <= 80, screen)
        expect("matmul" in shown[2], shown[2])
    with busy(EDDY_TOP="1") as process:
        shown = screens(process, lambda _, other: (other.kill(), other.wait()))
        expect(f"process {process.pid} has ended" in shown[-1], shown[-1])


def refused(part, *words, code=1, **variables):
    got, out, err = run("top", *words, **variables)
    expect(got == code and not out and part in err.decode(), words, got, out, err)


def check_what_has_none():
    with busy() as process:
        refused("runs without EDDY_TOP=1", str(process.pid))
    refused("there is no process 4194399", "4194399")
    refused("no number of a process", "x", code=2)
    refused("takes 0.1 to 3600", "--interval", "0", "1", code=2)
    refused("an operand is missing", code=2)


def library():
    """The one that the command has been linked to."""
    listed = subprocess.run(["ldd", EDDY], capture_output=True, text=True, check=True).stdout
    return next(line.split()[2] for line in listed.splitlines() if line.strip().startswith("libeddy.so"))


def check_another_user():
    """Which takes root to try."""
    if os.geteuid() != 0:
        print("not root: another user was not tried")
        return
    with busy(EDDY_TOP="1") as process, tempfile.TemporaryDirectory() as anyones:
        # The build folder may lie where nobody else may look.
        os.chmod(anyones, 0o755)
        for file in (EDDY, library()):
            shutil.copy(file, anyones)
        done = subprocess.run([os.path.join(anyones, os.path.basename(EDDY)), "top", "--json", str(process.pid)], capture_output=True,
                              check=False, user=65534, group=65534, extra_groups=[], cwd="/", env=environment(LD_LIBRARY_PATH=anyones))
        expect(done.returncode == 1 and b"another user's" in done.stderr, done)


run_checks(globals())
