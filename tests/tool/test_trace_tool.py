#!/usr/bin/env python3
"""`eddy trace summary`, `diff` and `svg`: a real trace, traces that are written for one answer each, files that are none, terminals.

Usage: test_trace_tool.py EDDY TRACED"""
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree

from command import EDDY, environment, expect, fails, folder, on_terminal, run, run_checks, text
from traces import after, issue, kernel, span, summary, thread_name, write

TRACED = os.path.abspath(sys.argv[2])
BYS = ("op", "phase", "thread", "stream", "place")
SVG = "{http://www.w3.org/2000/svg}"


# ---- what a summary says ----

def check_a_real_trace():
    path = folder / "real.json"
    subprocess.run([TRACED], check=True, env={**os.environ, "EDDY_TRACE": str(path), "EDDY_TRACE_PHASES": ""})
    events = json.loads(path.read_text())
    kernels = [event for event in events if event.get("cat") == "kernel"]
    ops = collections.defaultdict(list)
    for event in kernels:
        ops[event["name"]].append(round(event["dur"] * 1000))
    said = summary(path)
    expect({op["name"]: (op["count"], op["total_ns"]) for op in said["op"]} ==
           {name: (len(each), sum(each)) for name, each in ops.items()}, said["op"], dict(ops))
    expect(len(ops["add"]) == 40, ops)
    expect(said["events"] == sum(event["ph"] != "M" for event in events), said["events"])
    expect(said["ended"] == "stopped" and not said["is_cut"] and said["dropped"] == 0, said)
    expect(said["memory_peak"]["bytes"] == max(event["args"].get("live", 0) for event in kernels), said["memory_peak"])
    expect(any("traced.c:" in place["name"] for place in summary(path, "--by", "place")["place"]), "no place")
    expect({"issue", "kernel", "range", "wait"} <= {phase["name"] for phase in said["phase"]}, said["phase"])
    picture = xml.etree.ElementTree.fromstring(text("trace", "svg", str(path)))
    expect(any("forty additions" in (title.text or "") for title in picture.iter(SVG + "title")), "no range in the picture")


def check_totals():
    """Kernels of 1 to 1000 us on two threads and streams."""
    events = [thread_name(2, "worker"), thread_name(3, "wörker")]
    events += [kernel("even" if i % 2 == 0 else "odd", 2 + i % 2, 2000 * i, i, i, stream=i % 2, at=f"a.c:{i % 2}", live=i % 700)
               for i in range(1, 1001)]
    path = write("totals.json", events)
    said = summary(path)
    for group in said["op"]:
        took = [1000 * i for i in range(1, 1001) if i % 2 == (group["name"] == "odd")]
        expect((group["count"], group["total_ns"], group["max_ns"], group["mean_ns"]) ==
               (500, sum(took), took[-1], sum(took) // 500), group)
        for name, exact in (("p50_ns", took[249]), ("p99_ns", took[494])):
            expect(abs(group[name] - exact) <= 0.04 * exact, group, name, exact)
    expect([group["name"] for group in said["op"]] == ["even", "odd"], said["op"])
    expect(abs(sum(group["share"] for group in said["op"]) - 1) < 1e-9, said["op"])
    expect(said["memory_peak"] == {"bytes": 699, "at_ns": 2000 * 699 * 1000, "op": "odd", "place": "a.c:1"}, said["memory_peak"])
    names = {"op": {"even", "odd"}, "phase": {"kernel"}, "thread": {"worker", "wörker"}, "stream": {"stream 0", "stream 1"},
             "place": {"a.c:0", "a.c:1"}}
    for by in BYS:
        alone = summary(path, "--by", by)
        expect(by in alone and not (set(BYS) - {by}) & set(alone), alone)
        expect({group["name"] for group in alone[by]} == names[by], alone)
        lines = text("trace", "summary", str(path), "--by=" + by)
        for name in names[by]:
            expect(re.search(rf"^{re.escape(name)} +(500|1000) +2\d\d ms|^kernel +1000 +50. ms", lines, re.M), lines)
    expect(len(summary(path, "--top", "1")["op"]) == 1, "--top")
    expect("and 1 more (--top)" in text("trace", "summary", str(path), "--top=1"), "--top")


def check_huge_numbers():
    """Sums stay where they end, and what has no time takes none."""
    path = write("huge.json", [kernel("a", thread, 0, 9.2e15, thread) for thread in range(2, 6)])
    expect(summary(path)["op"][0]["total_ns"] == 2**63 - 1, summary(path))
    path = write("timeless.json", [{"ph": "C", "name": "c"}])
    expect(summary(path)["duration_ns"] == 0, summary(path))
    expect("took 0 ns" in text("trace", "diff", str(path), str(path)), "diff")


GAPS = {
    "no work": [issue(2, 20)],
    "an edge": [issue(2, 5), kernel("c", 3, 0, 20, 9), after(2, 9)],
    "a lend": [issue(2, 5), after(2, 77)],
    "a mark": [issue(2, 12), span("wait", "add", 1, 11, 5, **{"for": "room: bytes"})],
    "memory": [issue(2, 5), {"ph": "i", "pid": 1, "tid": 1, "ts": 15, "cat": "allocator", "name": "refuse"}],
    "a wait": [issue(2, 5), span("wait", "read", 2, 11, 10, **{"for": "result"})],
    "hand-over": [issue(2, 5)],
}


def check_streams():
    events = [kernel("a", 1, 0, 1, 1), kernel("b", 1, 2, 2, 2, stream=3), kernel("c", 1, 5, 3, 3, stream=4, on="loader"),
              span("device", "d", 2, 5, 4), thread_name(2, "cuda:0, compute")]
    said = summary(write("streams.json", events[::-1]), "--by", "stream")["stream"]
    expect({group["name"]: group["total_ns"] for group in said} ==
           {"stream 0": 1000, "stream 3": 2000, "loader": 3000, "cuda:0, compute": 4000}, said)
    # A launch counts for its thread; what it launches for its op and its stream. In the row of a stream kernels do not count again, but leave gaps.
    events = [thread_name(1, "launcher"), thread_name(9, "cuda:0, compute"), thread_name(8, "stream 3"), kernel("d", 1, 0, 1, 1, launch=1),
              span("device", "d", 9, 1, 4, n=1), kernel("d", 1, 9, 1, 2, launch=1), span("device", "d", 9, 10, 5, n=2), after(2, 1),
              kernel("k", 2, 0, 2, 3, stream=3), span("stream", "k", 8, 0, 2, n=3), kernel("k", 4, 7, 2, 4, stream=3),
              span("stream", "k", 8, 7, 2, n=4), issue(4, 6.5)]
    said = summary(write("rows.json", events))
    expect({group["name"]: (group["count"], group["total_ns"]) for group in said["op"]} == {"d": (2, 9000), "k": (2, 4000)}, said["op"])
    streams, threads = (summary(folder / "rows.json", "--by", by)[by] for by in ("stream", "thread"))
    expect({group["name"]: group["total_ns"] for group in streams} == {"cuda:0, compute": 9000, "stream 3": 4000}, streams)
    expect({group["name"]: group["total_ns"] for group in threads}["launcher"] == 2000, threads)
    expect({(gap["thread"], gap["ended_by"], gap["total_ns"]) for gap in said["gaps"]} ==
           {("cuda:0, compute", "no work", 5000), ("launcher", "an edge", 8000), ("stream 3", "no work", 5000)}, said["gaps"])
    expect((said["critical_path"]["kernels"], said["critical_path"]["kernel_ns"]) == (2, 9000), said["critical_path"])
    # Of rounds the last one is the end; a launch waits for no end; steps of a run are on its stream once.
    events = [thread_name(1, "launcher"), thread_name(9, "cuda:0, compute"), thread_name(8, "cuda:0, b"), kernel("p", 1, 0, 1, 1, launch=1),
              span("device", "p", 9, 1, 2, n=1), span("device", "p", 9, 4, 6, n=1), kernel("q", 1, 6, 1, 2, launch=1), issue(2, 5.5),
              span("device", "q", 8, 11, 1, n=2), after(2, 1), kernel("r", 3, 0, 4, 3, on="loader"), kernel("s", 3, 1, 2, 4, part=1)]
    path = write("rounds.json", events)
    said = summary(path)
    expect({op["op"]: op["count"] for op in said["critical_path"]["ops"]} == {"p": 2, "q": 1}, said["critical_path"])
    expect(("launcher", "no work", 5000) in {(gap["thread"], gap["ended_by"], gap["total_ns"]) for gap in said["gaps"]}, said["gaps"])
    streams = {group["name"]: group["total_ns"] for group in summary(path, "--by", "stream")["stream"]}
    expect(streams == {"cuda:0, compute": 8000, "cuda:0, b": 1000, "loader": 4000}, streams)


def check_runtimes():
    """Each numbers its instructions from 1 on."""
    events = [kernel("a", 2, 0, 10, 1), kernel("b", 3, 12, 5, 2), after(2, 1), issue(2, 5),
              kernel("c", 4, 0, 1, 1, runtime=2, stream=1), kernel("d", 5, 30, 2, 2, runtime=2),
              span("schedule", "call", 1, 0, 0, n=2, runtime=2, after=[1])]
    said = summary(write("runtimes.json", events))
    expect({op["op"] for op in said["critical_path"]["ops"]} == {"c", "d"}, said["critical_path"])
    streams = summary(folder / "runtimes.json", "--by", "stream")["stream"]
    expect({group["name"] for group in streams} == {"stream 0", "stream 1 of runtime 2", "stream 0 of runtime 2"}, streams)


def check_gaps():
    for reason, events in GAPS.items():
        both = [kernel("a", 2, 0, 10, 1), kernel("b", 2, 25, 5, 2)]
        path = write("gap.json", events + both)
        expected = {"thread": "thread 2 of process 1", "ended_by": reason, "count": 1, "total_ns": 15000, "max_ns": 15000}
        expect(summary(path)["gaps"] == [expected], reason, summary(path)["gaps"])
        expect(re.search(rf"2 of process 1: {reason} +1 +15.0 us +50.0 %", text("trace", "summary", str(path))), reason)
    # A kernel within another leaves no gap; of the two that it leaves the longer comes first.
    path = write("gaps.json", [kernel("a", 2, 0, 10, 1), kernel("b", 2, 2, 3, 2), kernel("c", 2, 12, 1, 3), kernel("d", 3, 0, 1, 4),
                               kernel("e", 3, 9, 1, 5)])
    expect([gap["total_ns"] for gap in summary(path)["gaps"]] == [8000, 2000], summary(path)["gaps"])


def check_critical_path():
    """A diamond: b and c wait for a, d for both, and its call comes late."""
    path = write("diamond.json", [kernel("a", 2, 0, 10, 1), kernel("b", 2, 12, 18, 2), kernel("c", 3, 12, 8, 3), kernel("d", 3, 31, 9, 4),
                                  after(2, 1), after(3, 1), after(4, 2, 3), issue(4, 30.5)])
    said = summary(path)["critical_path"]
    expect({op["op"]: (op["count"], op["total_ns"]) for op in said["ops"]} ==
           {"b": (1, 18000), "a": (1, 10000), "d": (1, 9000)}, said)
    expect((said["duration_ns"], said["kernels"], said["kernel_ns"], said["before_calls_ns"], said["after_edges_ns"],
            said["between_kernels_ns"]) == (40000, 3, 37000, 500, 2500, 0), said)
    # What takes no time and waits for itself is walked once.
    path = write("self.json", [kernel("a", 2, 5, 0, 1), kernel("b", 3, 5, 0, 2), after(1, 1, 2), after(2, 1, 2)] +
                 [kernel("c", 4, i, 1, 3 + i) for i in range(4)])
    expect(summary(path)["critical_path"]["kernels"] <= 2, summary(path)["critical_path"])


def check_waits():
    events = [span("wait", f"call {i}", 1, 100 * i, 10 + i, **{"for": "result", "at": "w.c:7"}) for i in range(30)]
    path = write("waits.json", events)
    waits = summary(path, "--top", "3")["waits"]
    expect([(wait["call"], wait["total_ns"], wait["for"], wait["place"]) for wait in waits] ==
           [(f"call {i}", 1000 * (10 + i), "result", "w.c:7") for i in (29, 28, 27)], waits)
    expect(len(summary(path)["waits"]) == 20, "20 unless told")


def check_pairs():
    """B and E, as other programs have them: one within the other, and some alone."""
    events = [{"ph": kind, "tid": thread, "ts": at, "cat": "x", "name": name} for kind, thread, at, name in (
        ("E", 1, 0, ""), ("B", 1, 1, "outer"), ("B", 1, 2, "inner"), ("B", 2, 2, "other"), ("E", 1, 3, ""), ("E", 1, 9, ""), ("E", 2, 4, ""),
        ("B", 1, 10, "open"))]
    path = write("pairs.json", events)
    phase = summary(path)["phase"]
    expect([(group["count"], group["total_ns"], group["max_ns"]) for group in phase] == [(3, 11000, 8000)], phase)
    expect(titles(str(path))[1] == ["outer", "other", "inner"], "the inner one lies upon the others", titles(str(path))[1])
    deep = [{"ph": kind, "ts": at, "cat": "x"} for kind, at in [("B", 1)] * 500 + [("E", 2)] * 500]
    expect(summary(write("deep.json", deep))["phase"][0]["count"] == 128, "128 are kept")


def check_many_threads():
    """Beyond 4096 rows threads are others, and do not become the first one."""
    path = write("threads.json", [thread_name(1, "first")] + [kernel("k", thread, 10 * thread, 1, thread) for thread in range(1, 5000)] +
                 [thread_name(4999, "last")])
    by_thread = {group["name"]: group["count"] for group in summary(path, "--by=thread", "--top=9999")["thread"]}
    expect(by_thread["first"] == 1 and by_thread["(others)"] == 4999 - 4095 and "last" not in by_thread, by_thread["first"])
    expect(summary(path)["gaps"] == [], "gaps between threads")


# ---- the other commands ----

def check_diff():
    a = write("a.json", [kernel("same", 2, 0, 1, 1), kernel("slower", 2, 5, 2, 2), kernel("gone", 2, 9, 3, 3)])
    b = write("b.json", [kernel("same", 2, 0, 1, 1), kernel("slower", 2, 5, 9, 2), kernel("new", 2, 19, 1, 3), kernel("new", 2, 29, 1, 4)])
    said = json.loads(text("trace", "diff", str(a), str(b), "--json"))
    expect((said["duration_a_ns"], said["duration_b_ns"]) == (12000, 30000), said)
    expect([(of["name"], of["count_a"], of["count_b"], of["total_a_ns"], of["total_b_ns"]) for of in said["changes"]] ==
           [("slower", 1, 1, 2000, 9000), ("gone", 1, 0, 3000, 0), ("new", 0, 2, 0, 2000), ("same", 1, 1, 1000, 1000)], said)
    lines = text("trace", "diff", str(a), str(b))
    expect(re.search(r"^slower +\+7.00 us +4.50 x +2.00 us +9.00 us +1 +1$", lines, re.M), lines)
    expect(re.search(r"^gone +-3.00 us +3.00 us +0 ns +1 +0$", lines, re.M), lines)
    for by in ("phase", "place"):
        text("trace", "diff", str(a), str(b), "--by", by)
    expect("and 3 more (--top)" in text("trace", "diff", str(a), str(b), "--top", "1"), "--top")
    fails(1, "trace", "diff", str(a), str(folder / "missing"))


def titles(*words):
    picture = xml.etree.ElementTree.fromstring(text("trace", "svg", *words))
    return picture, [title.text.split(",")[0] for title in picture.iter(SVG + "title")]


def check_svg():
    events = [thread_name(2, "<w&\"ö" + "y" * 40), kernel("a<b>&\"'", 2, 1000, 5000, 1), kernel("b", 2, 7000, 5000, 2),
              span("wait", "w", 2, 7000, 2000)] + [kernel("dot", 2, 12000 + i / 100, 0.001, 3) for i in range(100)]
    path = write("picture.json", events)
    picture, names = titles(str(path))
    expect(sorted(names) == ["a<b>&\"'", "b", "w"], names)
    expect(picture.get("width") == str(170 + 1200 + 60), picture.attrib)
    pixels = [rect for rect in picture.iter(SVG + "rect") if rect.get("width") == "1"]
    expect(len(pixels) == 1, len(pixels), "pixels of a microsecond")
    expect(titles(str(path), "--from", "5.9", "--to", "20")[1] in (["b", "w"], ["w", "b"]), "--from")
    expect(titles(str(path), "--width=300")[0].get("width") == str(170 + 300 + 60), "--width")
    shown = json.loads(text("trace", "svg", str(path), "--json"))
    expect((shown["begin_ns"], shown["end_ns"], shown["width"]) == (0, 11000991, 1200), shown["end_ns"])
    kernels, waits = shown["lanes"]
    expect((kernels["level"], waits["level"]) == ("kernel", "wait") and kernels["row"] == waits["row"] == "<w&\"ö" + "y" * 40, shown)
    expect(kernels["bars"] == [{"begin_ns": 0, "took_ns": 5000000, "name": "a<b>&\"'"}, {"begin_ns": 6000000, "took_ns": 5000000, "name": "b"}], kernels)
    expect(waits["bars"] == [{"begin_ns": 6000000, "took_ns": 2000000, "name": "w"}] and waits["pixels"] == [], waits)
    expect(kernels["pixels"] == [{"pixel": 1199, "busy_ns": 100.0, "name": "dot"}], kernels["pixels"])
    part = json.loads(text("trace", "svg", str(path), "--json", "--from", "5.9", "--to", "20"))
    expect(sorted(bar["name"] for lane in part["lanes"] for bar in lane["bars"]) == ["b", "w"], part)
    fails(1, "trace", "svg", str(path), "--json", "--output", "/nowhere/x")
    out = folder / "picture.svg"
    expect(text("trace", "svg", str(path), "--output", str(out)) == "", "output")
    expect(out.read_text() == text("trace", "svg", str(path)), "--output")
    expect(titles(str(write("other.json", [thread_name(2, "ö" * 30), kernel("größe", 2, 1, 5, 1)])))[1] == ["größe"], "UTF-8")
    # A moment alone has a picture, too, and so have times that are as long as they can be.
    for took in (5.4e15, 5.6e15, 9.2e15):
        titles(str(write("long.json", [kernel("a", 1, 0, took, 1)])))
    titles(str(write("apart.json", [kernel("a", 1, 1, 1, 1), kernel("b", 1, 9.2e15, 1, 2)])))
    titles(str(write("moment.json", [kernel("a", 1, 5, 0, 1)])))
    titles(str(write("far.json", [kernel("a", 1, 9e15, 1, 1)])), "--from", "1", "--to", "999999999999")
    for option in ("--from=x", "--to=-1", "--from=nan", "--to=1e99", "--width=99", "--width=20001", "--width=300x", "--width="):
        fails(2, "trace", "svg", str(path), option)
    for words in ((str(path), "--from=50"), (str(path), "--output", "/nowhere/x"), (str(path), "--output", "/dev/full"), ("-",),
                  (str(write("none.json", [{"ph": "C"}])),)):
        fails(1, "trace", "svg", *words)


# ---- files ----

def check_forms():
    """The same events in each form that a file may have."""
    real = folder / "real.json"
    events = real.read_bytes()
    expected = summary(real)
    objects = b'{"displayTimeUnit":"ns","other":[{"ph":"X"}],"traceEvents":' + events + b',"stackFrames":{"a":[{}]}}'
    expect(summary(write("object.json", objects)) == expected, "an object")
    expect(summary(write("real.json.gz", gzip.compress(events))) == expected, "compressed")
    half = len(events) // 2
    expect(summary(write("two.gz", gzip.compress(events[:half]) + gzip.compress(events[half:]))) == expected, "in two parts")
    for content in (events, gzip.compress(events)):
        expect(json.loads(text("trace", "summary", "-", "--json", standard_input=content)) == expected, "standard input")
        expect("A took" in text("trace", "diff", str(real), "-", standard_input=content), "standard input")


def check_cut_files():
    events = (folder / "real.json").read_bytes()
    for content in (events, gzip.compress(events)):
        whole = summary(write("whole", content))["events"]
        counts = []
        for part in range(1, 20):
            path = write("cut", content[:len(content) * part // 20])
            code, out, err = run("trace", "summary", str(path), "--json")
            expect(code == 0 or (code == 1 and b"no events" in err), part, err)
            counts.append(0 if code else json.loads(out)["events"])
            expect(code or json.loads(out)["is_cut"], part, "is cut")
        expect(counts == sorted(counts) and 0 < counts[-1] <= whole, counts, whole)
        expect("was cut off" in text("trace", "summary", str(path)), "it says so")
    small = json.dumps([kernel("a", 2, 0, 1, 1)] * 2)
    for length in range(len(small)):
        code, _, err = run("trace", "summary", str(write("cut", small[:length].encode())))
        expect(code == 0 or b"no events" in err, length, err)


def check_no_traces():
    for content, reason in ((b"", "no events"), (b"[]", "no events"), (b"{}", "no events"), (b"7", "no events"), (b"[1,[2],\"a\"]", "no events"),
                            (b"hello", "no JSON"), (b"\x00\x01\x02", "no JSON"), (bytes(range(256)) * 999, "no JSON"), (b"[{}]]", "no JSON"),
                            (b"[" * 200000, "brackets"), (b'{"a":' * 200000, "brackets"), (b"\x1f\x8b\x08garbage that is no deflate", "cannot be read"),
                            (gzip.compress(b"[{}]")[:-4] + b"1234", "cannot be read"), (b'["' + b"x" * 20_000_000 + b'"]', "16 MB"),
                            (gzip.compress(b"[" + b" " * 20_000_000 + b"]"), "16 MB")):
        path = write("none", content)
        expect(reason in fails(1, "trace", "summary", str(path)), reason, content[:20])
    for path in (str(folder), str(folder / "missing"), "", "/proc/self/mem"):
        for command in (("summary", path), ("svg", path), ("diff", path, path)):
            expect("cannot be read" in fails(1, "trace", *command), path)
    events = [[{"ph": "X"}], {"ph": 5, "ts": "x", "dur": None, "args": 3, "name": {"a": [1]}}, {"ph": "X", "args": [1, [2]], "ts": 1}, None]
    expect(summary(write("odd.json", events))["events"] == 1, "fields of other types")


def check_full_disk():
    path = folder / "totals.json"
    for words in (("trace", "summary", str(path)), ("trace", "summary", str(path), "--json"), ("trace", "diff", str(path), str(path)),
                  ("trace", "svg", str(path)), ("--help",), ("trace", "svg", "--help")):
        with open("/dev/full", "wb") as full:
            code, _, err = run(*words, standard_output=full)
        expect(code == 1 and b"No space left" in err, words, code, err)


# ---- the command line ----

def check_usage():
    path = str(folder / "totals.json")
    for words in ((), ("trace",), ("trace", "nothing"), ("nothing",), ("help", "nothing")):
        expect(run(*words)[0] == 2, words)
    for words in (("summary",), ("summary", path, path), ("summary", path, "--by"), ("summary", path, "--by=x"), ("summary", path, "--by=op|phase"),
                  ("summary", path, "--by="), ("summary", path, "--json=1"), ("summary", path, "--nothing"), ("summary", path, "-x"),
                  ("summary", path, "--top=0"), ("summary", path, "--top=-1"), ("summary", path, "--top=x"), ("summary", path, "--top=5x"),
                  ("summary", path, "--top=99999999999999999999"), ("diff", path), ("diff", path, path, path), ("diff", path, path, "--by=thread"),
                  ("diff", path, path, "--top="), ("svg",), ("svg", path, "--by=op")):
        fails(2, "trace", *words)
    write("--json", [kernel("a", 1, 0, 1, 1)])
    expect(text("trace", "summary", "--", "--json").startswith("--json: 1.00 us, 1 events"), "--")


def check_help():
    listed = re.findall(r"^  (\S+(?: \S+)?)  ", text("--help", COLUMNS="200"), re.M)
    expect({"trace summary", "trace svg", "trace diff"} <= set(listed), listed)
    for command in listed:
        expect(text(*command.split(), "--help").startswith("eddy " + command), command)
        expect(text("help", *command.split()) == text(*command.split(), "--help"), command)
    for command in ("summary", "svg", "diff"):
        for width in (40, 80):
            expect_width(text("trace", command, "--help", COLUMNS=str(width)), width)


# ---- terminals ----

def expect_width(lines, width):
    for line in lines.splitlines():
        expect(len(line) <= width, width, repr(line))


def expect_clean(shown):
    """UTF-8 without control characters."""
    shown = shown.decode()
    bad = {char for char in shown if char != "\n" and (unicodedata.category(char) == "Cc" or char in "\u202e\u2066\u2028")}
    expect(not bad, bad, "in", repr(shown[:2000]))


def hostile():
    """Each text has all that a terminal might take for a command, or cannot show."""
    bad = "".join(map(chr, range(32))) + "\x7f\x1b[31m" + "".join(map(chr, range(0x80, 0xa0))) + "\u202e\u2066\u2028\ufffeä"
    events = [thread_name(2, bad), kernel(bad, 2, 0, 5000, 1, at=bad + " b", live=5), kernel("c" * 300 + bad, 2, 9000, 1000, 2),
              span("wait", bad, 2, 7000, 999, **{"for": bad, "at": bad}), span(bad, bad, 3, 0, 5000), span("", "ä" * 200, 3, 8000, 5000),
              {"ph": "i", "ts": 9, "cat": "trace", "name": "end", "args": {"why": bad, "dropped": 3}}]
    return json.dumps(events).encode()


def check_texts_are_clean():
    contents = [hostile()] + [hostile().replace(b"\\u00e4", raw) for raw in (b"\xff", b"\x9b31m", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80")]
    for number, content in enumerate(contents):
        path = str(write(f"hostile \x1b[31m\x9b\n{number}", content))
        for words in (("summary", path), ("summary", path, "--json"), ("summary", path, "--by=place"), ("summary", path, "--by=thread"),
                      ("diff", path, path), ("diff", path, path, "--json"), ("svg", path), ("svg", path, "--json")):
            code, out, err = run("trace", *words)
            expect(code == 0 and not err, words, err)
            expect_clean(out)
        xml.etree.ElementTree.fromstring(text("trace", "svg", path))
    names = [group["name"] for group in summary(write("long.json", contents[0]), "--by=phase")["phase"]]
    expect("(none)" in names and len(names) == 4, names)
    long = [kernel("ä" * 200, 2, 0, 1, 1)]
    expect(summary(write("long.json", long))["op"][0]["name"] == "ä" * 79, "cut between two characters")
    for words in (("trace", "summary", "missing\x1b[31m\n"), ("trace", "summary", "\x1b[31m", "--by=\x9b"), ("\x1b[31m",), ("trace", "\x1b[31m"),
                  ("trace", "summary", "--\x1b[31m")):
        code, _, err = run(*words)
        expect(code in (1, 2), words)
        expect_clean(err)


def check_widths():
    paths = [folder / "totals.json", folder / "real.json", folder / "gaps.json", write("name " + "x" * 150, hostile()), write("wide", hostile()[:-2])]
    for width in (20, 40, 80):
        for path in map(str, paths):
            for words in (("summary", path), ("summary", path, "--top=1"), ("summary", path, "--by=place"), ("summary", path, "--by=stream"),
                          ("diff", path, path), ("diff", path, path, "--top=1")):
                expect_width(text("trace", *words, COLUMNS=str(width)), width)
    wide = text("trace", "summary", str(folder / "totals.json"), COLUMNS="99999999999999999999")
    expect(wide == text("trace", "summary", str(folder / "totals.json"), COLUMNS="nothing"), "COLUMNS that are none")


def check_terminals():
    path = str(write("terminal.json", hostile()))
    for words in (("trace", "summary", path), ("trace", "diff", path, path)):
        shown = on_terminal(33, *words, TERM="xterm")
        bare = re.sub(r"\x1b\[[01]m", "", shown)
        expect(shown.count("\x1b[1m") == shown.count("\x1b[0m") == 1, repr(shown))
        expect_width(bare, 33)
        expect_clean(bare.encode())
        for variables in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
            expect(on_terminal(33, *words, **variables) == bare, variables)
        expect(text(*words, COLUMNS="33", TERM="xterm") == bare, "a pipe has no colours")
        expect_width(on_terminal(120, *words, COLUMNS="25"), 25)
    expect("\x1b" in on_terminal(80, "trace", "summary", path, TERM="xterm", NO_COLOR=""), "an empty NO_COLOR is none")


run_checks(globals())
