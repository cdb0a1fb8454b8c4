"""One run of one measuring program: pinned or not, in a clean environment, with a check for other load."""

import json
import os
import re
import subprocess
import tempfile
import time

import machine

# Variables of the user's shell that would change what is measured.
CLEARED = ("EDDY_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "BLIS_", "DNNL_", "MKL_", "LD_PRELOAD", "LD_LIBRARY_PATH")
TIMEOUT_SECONDS = 600
TIMED_OUT = -9  # a status: killed


class Failed(Exception):
    """The program could not be run or measured; the text says why. rows: what it had printed before."""

    def __init__(self, text, rows=()):
        super().__init__(text)
        self.rows = rows


class Run:
    """The result of a run: rows as the program printed them, and the share of CPU time that other processes used."""

    def __init__(self, rows, foreign):
        self.rows = rows
        self.foreign = foreign


def environment(threads, extra):
    """A shell-independent environment in which OpenMP and BLAS libraries use `threads` threads and spin briefly."""
    cleaned = {key: value for key, value in os.environ.items() if not key.startswith(CLEARED)}
    cleaned.update({"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1",
                    "GOMP_SPINCOUNT": "1000", "EDDY_THREADS": str(threads)})
    cleaned.update(extra)
    return cleaned


def run(command, threads=1, is_pinned=False, extra=None):
    """Runs a measuring program to its end and reads the rows it printed. Raises Failed."""
    cpus = machine.cpus()[:1] if is_pinned else machine.cpus()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
        busy, begin = machine.busy_ticks(), time.monotonic()
        try:
            child = subprocess.Popen(command, stdout=output, stderr=complaints, stdin=subprocess.DEVNULL,
                                     env=environment(threads, extra or {}),
                                     preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        except OSError as error:
            raise Failed(f"cannot be started: {error.strerror}") from error
        status, usage = _wait(child, begin)
        wall = time.monotonic() - begin
        foreign = machine.foreign_share(busy, machine.busy_ticks(), usage.ru_utime + usage.ru_stime, wall)
        output.seek(0)
        complaints.seek(0)
        text, said = output.read(), complaints.read().strip()
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    if status == TIMED_OUT:
        raise Failed(f"took longer than {TIMEOUT_SECONDS} s", rows)
    if status:
        raise Failed((said.splitlines() or [f"ended with status {status}"])[-1], rows)
    return Run(rows, foreign)


def _wait(child, begin):
    """Waits with wait4, which reports the child's CPU time. A child that exceeds the time limit is killed: TIMED_OUT."""
    while True:
        done, status, usage = os.wait4(child.pid, os.WNOHANG)
        if done:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage
        if time.monotonic() - begin > TIMEOUT_SECONDS:
            child.kill()
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = TIMED_OUT
            return TIMED_OUT, usage
        time.sleep(0.02)


def instructions(command, extra=None):
    """Instructions that callgrind counts for a command. Raises Failed."""
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    try:
        done = subprocess.run(counted, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
                              env=environment(1, extra or {}))
    except FileNotFoundError as error:
        raise Failed("valgrind is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"took longer than {TIMEOUT_SECONDS} s under callgrind") from error
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or not found:
        raise Failed((done.stderr.strip().splitlines() or ["callgrind said nothing"])[-1])
    return int(found.group(1))
