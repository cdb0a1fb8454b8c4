"""The command `eddy` as tests run it: in a folder that goes with the process. Of the command line the first argument is where it lies."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

EDDY = os.path.abspath(sys.argv[1])
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")
holder = tempfile.TemporaryDirectory()
folder = pathlib.Path(holder.name)


def expect(holds, *what):
    if not holds:
        raise AssertionError(" ".join(map(str, what)))


def has_program(name):
    """Whether what another program would have to say can be asked; where not, that is said."""
    if not shutil.which(name):
        print(f"{name} is not installed: left out")
    return shutil.which(name)


# ---- runs ----

def environment(**variables):
    """Without what the caller's terminal and runtime are."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("COLUMNS", "NO_COLOR", "TERM") and not name.startswith("EDDY_")}
    return {**kept, **variables}


def run(*words, standard_input=b"", standard_output=subprocess.PIPE, before=None, **variables):
    """Exit status, and both outputs as bytes; `before` is called in the process before it is eddy's."""
    done = subprocess.run([EDDY, *words], input=standard_input, stdout=standard_output, stderr=subprocess.PIPE, check=False,
                          env=environment(**variables), cwd=folder, preexec_fn=before)
    expect(done.returncode in (0, 1, 2) or before, words, "exit status", done.returncode, done.stderr)
    return done.returncode, done.stdout, done.stderr


def text(*words, **variables):
    code, out, err = run(*words, **variables)
    expect(code == 0 and not err, words, "exit status", code, err)
    return out.decode()


def read_json(*words, **variables):
    return json.loads(text(*words, "--json", **variables))


def fails(code, *words, **how):
    """One line, besides that of the usage, and nothing else; returns it."""
    found, out, err = run(*words, **how)
    lines = err.decode().splitlines()
    expect(found == code and not out, words, "exit status", found, out, err)
    expect(len(lines) == (2 if lines[-1].startswith("usage:") else 1), words, err)
    expect(lines[0].startswith("eddy") and not CONTROL.search(lines[0]), words, err)
    return lines[0]


# ---- terminals ----

def open_terminal(columns):
    """Of so many columns and 24 lines: our end and the program's."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, theirs


def read_terminal(ours):
    """What comes until nobody writes any more."""
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        # So Linux says that the other end is closed.
        pass
    return shown


def on_terminal(columns, *words, **variables):
    """What a terminal of so many columns gets."""
    ours, theirs = open_terminal(columns)
    with subprocess.Popen([EDDY, *words], stdin=subprocess.DEVNULL, stdout=theirs, env=environment(**variables), cwd=folder) as process:
        os.close(theirs)
        shown = read_terminal(ours)
        os.close(ours)
    expect(process.returncode == 0, words, process.returncode)
    return shown.decode().replace("\r\n", "\n")


# ---- checks ----

def run_checks(names):
    """All functions that are called check_; ends the process with 1 where one failed."""
    checks = [check for name, check in names.items() if name.startswith("check_")]
    failed = 0
    for check in checks:
        try:
            check()
            print(f"{check.__name__}: ok")
        except AssertionError as error:
            failed += 1
            print(f"{check.__name__}: {error}")
    print(f"{len(checks)} checks, {failed} failed")
    sys.exit(1 if failed or not checks else 0)
