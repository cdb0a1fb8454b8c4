"""The command `eddy`, run on traces that are written here. Of the command line the first argument is where it lies."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

EDDY = os.path.abspath(sys.argv[1])
holder = tempfile.TemporaryDirectory()
folder = pathlib.Path(holder.name)


def expect(holds, *what):
    if not holds:
        raise AssertionError(" ".join(map(str, what)))


# ---- runs ----

def environment(**variables):
    """Without what the caller's terminal is."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    return {**kept, **variables}


def run(*words, standard_input=b"", standard_output=subprocess.PIPE, **variables):
    """Exit status, and both outputs as bytes."""
    done = subprocess.run([EDDY, *words], input=standard_input, stdout=standard_output, stderr=subprocess.PIPE, check=False,
                          env=environment(**variables), cwd=folder)
    expect(done.returncode in (0, 1, 2), words, "exit status", done.returncode, done.stderr)
    return done.returncode, done.stdout, done.stderr


def text(*words, **variables):
    code, out, err = run(*words, **variables)
    expect(code == 0 and not err, words, "exit status", code, err)
    return out.decode()


def fails(code, *words, **how):
    """One line, besides that of the usage; returns it."""
    found, out, err = run(*words, **how)
    lines = err.decode().splitlines()
    expect(found == code, words, "exit status", found, err)
    expect(not out and len(lines) == (2 if lines[-1].startswith("usage:") else 1), words, out, err)
    expect(lines[0].startswith("eddy"), words, err)
    return lines[0]


def summary(path, *words):
    return json.loads(text("trace", "summary", str(path), "--json", *words))


# ---- traces ----

def span(category, name, thread, begin, took, **args):
    """Times in microseconds."""
    return {"ph": "X", "pid": 1, "tid": thread, "ts": begin, "dur": took, "cat": category, "name": name, "args": args}


def kernel(name, thread, begin, took, n, **args):
    return span("kernel", name, thread, begin, took, n=n, **args)


def issue(n, begin):
    return span("issue", "call", 1, begin, 1, n=n)


def after(n, *sources):
    return span("schedule", "call", 1, 0, 0, n=n, after=list(sources))


def thread_name(thread, name):
    return {"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": name}}


def write(name, content):
    path = folder / name
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    path.write_bytes(content)
    return path
