"""Traces, as tests write them, and what `eddy trace summary` says of them."""
import json

from command import folder, read_json


def summary(path, *words):
    return read_json("trace", "summary", str(path), *words)


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
