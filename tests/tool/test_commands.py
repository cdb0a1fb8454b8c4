#!/usr/bin/env python3
"""`eddy info`, `ops`, `print`, `run`, `dot`, `plan`, the manual page and the completions: on programs that SAVED writes, on files that are none,
and with mistakes in the command line.

Usage: test_commands.py EDDY SAVED"""
import ast
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from command import CONTROL, EDDY, environment, expect, fails, folder, has_program, on_terminal, read_json, run_checks, text

SAVED = os.path.abspath(sys.argv[2])
SVG = "{http://www.w3.org/2000/svg}"
COMMANDS = ("bench", "dot", "info", "ops", "plan", "print", "run", "trace summary", "trace svg", "trace diff")


# ---- arrays ----

def write_array(name, descr, shape, values, form):
    head = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                                struct.pack(f"<{len(values)}{form}", *values))


def read_array(name):
    """descr, shape, bytes."""
    data = (folder / name).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:10 + length].decode())
    return head["descr"], head["shape"], data[10 + length:]


# ---- info ----

def check_info_says_what_the_environment_sets():
    least = read_json("info")["isa"]["built"].split(", ")[0]
    info = read_json("info", EDDY_THREADS="1", EDDY_ISA=least, EDDY_LOG="0")
    options = {option["name"]: option for option in info["options"]}
    expect(info["threads"] == 1 and info["isa"]["used"] == least, info)
    expect(options["threads"]["value"] == "1" and options["threads"]["source"] == "environment", options["threads"])
    expect(options["passes"]["value"] == "all" and options["passes"]["source"] == "default", options["passes"])
    expect(all(option["sentence"] and option["variable"].startswith("EDDY_") for option in info["options"]), options)
    expect(info["isa"]["offered"] in ("portable", "v2", "v3", "v4"), info["isa"])


def check_info_says_what_there_is():
    info = read_json("info")
    devices = {device["name"]: device for device in info["devices"]}
    expect(devices["cpu"]["processors"] >= 1 and devices["cpu"]["limit_bytes"] > 0, devices["cpu"])
    expect(devices["far:0"]["is_simulated"], devices["far:0"])
    expect("cuda:0" in devices and ("error" in devices["cuda:0"] or devices["cuda:0"]["memory_bytes"] > 0), devices)
    libraries = {library["name"]: library for library in info["libraries"]}
    expect(libraries["zlib"]["known"] == "loaded" and re.match(r"\d+\.\d+", libraries["zlib"]["version"]), libraries)
    expect(all(library["use"] and library["known"] for library in libraries.values()), libraries)
    shown = text("info")
    expect(f"Eddy {info['version']}\n" in shown and "zlib" in shown and "passes" in shown, shown)


def check_info_says_why_no_runtime_starts():
    info = read_json("info", EDDY_THREADS="many\x1b[31m")
    expect("EDDY_THREADS" in info["runtime_error"] and "threads" not in info, info)
    shown = text("info", EDDY_THREADS="many\x1b[31m")
    expect("No runtime can be started" in shown and not CONTROL.search(shown), shown)


# ---- ops ----

def check_ops_are_all_there():
    ops = read_json("ops")
    shown = text("ops", COLUMNS="60")
    named = set(re.findall(r"^  (\w+) ", shown, re.M))
    expect(named == {op["name"] for op in ops["ops"] + ops["compositions"]}, "missing, or too much")
    expect(max(map(len, shown.splitlines())) <= 60, "lines are too long")
    expect(re.findall(r"^(\w+)$", shown, re.M) == sorted({op["family"] for op in ops["ops"]} | {"composition"}), shown)


def check_ops_say_all_of_one():
    conv = text("ops", "conv2d")
    for part in ("conv2d(x, weight, [bias], stride = 0,", "Family: conv", "groups: int, default 0", "f32, f64, f16, bf16",
                 "bias: c:conv2d()", "SHAPE_MISMATCH: weight has not rank 4", "eddy_conv2d_into:"):
        expect(part in conv, part, conv)
    expect(text("ops", "eddy_conv2d") == conv, "the name in C")
    expect(re.search(r"^    within \d+ ulp of the result$", text("ops", "tanh"), re.M), text("ops", "tanh"))
    expect("mut params..." in text("ops", "sgd_step"), text("ops", "sgd_step"))
    expect("equation" in text("ops", "einsum"), "a composition")
    expect(read_json("ops", "relu")["family"] == "activation", "json")
    for op in read_json("ops")["ops"][::10]:
        expect(op["summary"].split()[0] in text("ops", op["name"]), op["name"])


def check_ops_find_what_was_meant():
    expect("matmul" in fails(1, "ops", "mtmul"), "one letter is missing")
    expect("max_pool2d" in fails(1, "ops", "pool"), "a part")
    expect("near" not in fails(1, "ops", "qqqqqq\x1b[31m"), "nothing is near")
    fails(1, "ops", "x" * 5000)
    fails(2, "ops", "relu", "tanh")


# ---- print ----

def check_print_gives_the_text():
    printed = text("print", "layers.program")
    expect(printed.startswith("eddy program, version 1, 7 instructions\ninput x f32[8, 16]\n"), printed)
    expect("#" not in printed and "kernel linear" in text("print", "--plan", "layers.program"), printed)
    expect(text("print", "sum.program", EDDY_PASSES="none").count("\n") > 4, "a text without passes")
    terminal = on_terminal(80, "print", "layers.program", TERM="xterm")
    expect(terminal.replace("\r\n", "\n") == printed and not CONTROL.search(printed), terminal)


# ---- run ----

def check_run_computes():
    write_array("turned.npy", "<f8", (2, 3), range(6), "d")
    write_array("given.npy", "<f8", (2, 3), (10, 20, 30, 40, 50, 60), "d")
    inputs = ("--input", "turned=turned.npy", "--input=given=given.npy")
    found = read_json("run", "sum.program", *inputs, "--output", "sum=sum.npy", "--times", "4")
    expect(read_array("sum.npy") == ("<f8", (2, 3), struct.pack("<6d", 10, 21, 32, 43, 54, 65)), read_array("sum.npy"))
    expect(found["runs"] == 4 and 0 < found["min_ns"] <= found["mean_ns"] and found["first_ns"] > 0, found)
    expect(found["outputs"] == [{"name": "sum", "dtype": "f64", "shape": [2, 3], "not_finite": 0, "min": 10.0, "max": 65.0, "mean": 37.5}], found)
    expect(found["program"]["instruction_count"] == 2 and found["program"]["arena_bytes"] >= 48, found)
    shown = text("run", "sum.program", *inputs)
    expect("sum f64[2, 3]" in shown and "37.5" in shown and "more: mean" not in shown, shown)


def check_run_draws():
    first, same, other = (read_json("run", "layers.program", "--seed", seed)["outputs"] for seed in "112")
    expect(first == same and first != other, first, other)
    y = first[0]
    expect(y["shape"] == [8, 4] and y["min"] > 0, "inputs are from 0 to 1, and a draw leaves some", y)
    expect("mean_ns" not in read_json("run", "group.program"), "one run")


def check_run_counts_what_is_not_finite():
    write_array("x.npy", "<f4", (256, 256), [float("inf")] + [0.0] * 65535, "f")
    found = read_json("run", "group.program", "--input", "x=x.npy")["outputs"][0]
    expect(found["shape"] == [] and found["not_finite"] == 0, "tanh of infinity is 1", found)
    write_array("x.npy", "<f4", (256, 256), [float("nan")] + [0.0] * 65535, "f")
    found = read_json("run", "group.program", "--input", "x=x.npy")["outputs"][0]
    expect(found["not_finite"] == 1 and "mean" not in found, found)


def check_run_goes_all_ways():
    for x, result in ((0.25, 128.5), (3.0, 183.0)):
        write_array("x.npy", "<f4", (2,), [x, x], "f")
        found = read_json("run", "ways.program", "--input", "x=x.npy")["outputs"][0]
        expect(found["min"] == found["max"] == result, x, found)


def check_run_refuses():
    write_array("small.npy", "<f4", (2, 2), range(4), "f")
    (folder / "no.npy").write_bytes(b"\x93NUMPY\x01\x00no")
    line = fails(1, "run", "layers.program", "--input", "x=small.npy")
    expect("f32[8, 16]" in line and "f32[2, 2]" in line, line)
    expect("there are x, la" in fails(1, "run", "layers.program", "--input", "z=small.npy"), "names")
    expect("there are y, loss" in fails(1, "run", "layers.program", "--output", "x=x.npy"), "names of outputs")
    expect("twice" in fails(1, "run", "sum.program", "--input=given=given.npy", "--input=given=given.npy"), "twice")
    expect("no.npy" in fails(1, "run", "layers.program", "--input", "x=no.npy"), "no array")
    expect("none.npy" in fails(1, "run", "layers.program", "--input", "x=none.npy"), "no file")
    fails(1, "run", "layers.program", "--output", "y=nowhere/y.npy")
    for words in (["--times", "0"], ["--times", "x"], ["--times"], ["--seed", "-1"], ["--seed", "9" * 30], ["--input"], ["--no"], ["another"]):
        fails(2, "run", "layers.program", *words)
    fails(2, "run", "layers.program", *["--input", "x=small.npy"] * 300)
    fails(2, "run")


# ---- bench ----

def check_bench_measures_what_is_installed():
    rows = {row["name"]: row for row in read_json("bench", "--list")}
    shown = [line.split() for line in text("bench", "--list").splitlines()]
    expect(dict(shown) == {name: row["unit"] for name, row in rows.items()} and len(rows) > 1000, len(rows))
    measured = read_json("bench", "caller_run_add16", "op_relu_1e2_1t", "small_mlp_b1", "--samples", "3", EDDY_PASSES="no pass")
    expect([row["row"] for row in measured] == ["caller_run_add16", "small_mlp_b1", "op_relu_1e2_1t"], measured)
    for row in measured:
        samples = sorted(row["samples"])
        expect(len(samples) == 3 and row["best"] == samples[0] and row["median"] == samples[1] and row["unit"] == rows[row["row"]]["unit"], row)
    lines = text("bench", "caller_run_add16", "--samples", "1").splitlines()
    expect(len(lines) == 3 and re.fullmatch(r"caller_run_add16 +[0-9.]+ ns +[0-9.]+ ns +0 %  caller", lines[2]), lines)
    narrow = text("bench", "caller_run_add16", "--samples", "1", COLUMNS="40").splitlines()
    expect(max(map(len, narrow)) <= 40, narrow)


def other_bench(rows, **programs):
    """A copy of the command beside such rows and programs, which are shell scripts; what it says of `bench`."""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    (place / "tools/eddy").mkdir(parents=True)
    (place / "bench/installed").mkdir(parents=True)
    shutil.copy(EDDY, place / "tools/eddy/eddy")
    (place / "bench/installed/rows.json").write_text(rows if isinstance(rows, str) else json.dumps(rows))
    for name, script in programs.items():
        path = place / "bench/installed" / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def run_bench(*words, **variables):
        libraries = pathlib.Path(EDDY).parents[2]
        done = subprocess.run([place / "tools/eddy/eddy", "bench", *words], capture_output=True, check=False,
                              env=environment(LD_LIBRARY_PATH=str(libraries), **variables))
        expect(done.returncode in (0, 1), words, done)
        expect(not CONTROL.search(done.stdout.decode() + done.stderr.decode()), words, done)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    return run_bench


def check_bench_says_what_is_wrong_with_a_program():
    def row(name, program, **more):
        return {"name": name, "unit": "ns", "program": program, "threads": 1, "is_usual": True, **more}
    printed = '{"row": "%s", "unit": "ns", "samples": [%s]}'
    say = "echo '" + printed % ("good", "3, 1, 2") + "'\n"
    bench = other_bench([row("good", "good"), row("none", "missing"), row("ends", "ends"), row("killed", "killed"), row("garbage", "garbage"),
                         row("more", "more"), row("words", "words"), row("large", "large"), row("leaves", "leaves")],
                        good=say, ends="echo broken >&2; exit 3", killed="kill -9 $$", garbage="head -c 100000 /dev/urandom; echo; echo '{\"row\": '",
                        more=say + say, words=f"echo '{printed % ('words', '1, null')}'", large=f"echo '{printed % ('x' * 20000, '1e308, 1e308')}'",
                        leaves="sleep 300 &\n" + say)
    code, out, _ = bench("good", COLUMNS="10000")
    expect(code == 0 and re.search(r"^good +1 ns +2 ns +100 %$", out, re.M), out)
    expect(bench("leaves")[0] == 0, "a process that it leaves behind is waited for")
    for name, said in (("none", "No such file"), ("ends", "broken"), ("killed", "signal 9"), ("garbage", "1 rows were asked for, and it measured 0"),
                       ("more", "1 rows were asked for, and it measured 2"), ("words", "measured 0")):
        code, _, err = bench(name)
        expect(code == 1 and said in err and err.count("\n") == 1, name, err)
    expect(bench("large", COLUMNS="10000")[1].count("x") < 10000, "a line is cut")
    code, out, err = bench()
    expect(code == 1 and len(err.splitlines()) == 6, err)
    for rows in ("", "{", "{}", "[1, null, {}]", '[{"name": "a\\u001b[31m\\n", "unit": "\\u009b", "program": 3, "is_usual": true}]'):
        for words in ((), ("--list",), ("--list", "--json"), ("--json",)):
            other_bench(rows)(*words)


def check_bench_refuses():
    expect("no row nothing" in fails(1, "bench", "nothing"), "a row")
    expect("no row no*" in fails(1, "bench", "caller_run_add16", "no*"), "rows")
    fails(2, "bench", "--samples", "0")
    fails(2, "bench", "--samples", "many")


# ---- pictures ----

def check_dot_has_what_the_text_has():
    dot = text("dot", "layers.program")
    for part in ('label="x\\nf32[8, 16]"', "tooltip=input", "tooltip=state", "tooltip=constant", "tooltip=captured", "tooltip=output",
                 '"linear\\nf32[8, 32]', "sgd_step", r'\"la\\\"bels\\x0a=\\x1b[31m\"'):
        expect(part in dot, part, dot)
    expect(len(re.findall(r"^    i\d+ \[", dot, re.M)) == 7, dot)
    expect(re.search(r"i6 -> v\d+ \[style=dashed", dot), "the state that is written", dot)
    ways = text("dot", "ways.program")
    expect(ways.count("subgraph") == 3 and ways.count("shape=diamond") == 2 and "loop most_steps = 0" in ways, ways)
    expect("style=dashed, constraint=false" in ways, "what a step leaves for the next", ways)
    last = max(map(int, re.findall(r"^    i(\d+) \[", ways, re.M)))
    expect(len(re.findall(rf"-> i{last} ", ways)) == 3, "both ways of the branch, and the loop", ways)
    expect('label="fused"' in text("dot", "group.program"), "a group")
    for name in ("layers", "sum", "group", "ways"):
        shown = text("dot", f"{name}.program")
        expect(shown.count("{") == shown.count("}"), shown)
        if has_program("dot"):
            subprocess.run(["dot", "-Tcanon"], input=shown.encode(), stdout=subprocess.DEVNULL, check=True)


def check_programs_are_json_too():
    """Of what the pictures show: the text has the same."""
    for name in ("layers", "sum", "group", "ways"):
        said = read_json("print", f"{name}.program")
        shown = text("print", f"{name}.program")
        expect(read_json("dot", f"{name}.program") == said, name)
        planned, printed = read_json("plan", f"{name}.program"), read_json("print", f"{name}.program", "--plan")
        for plan in (planned, printed):
            # A plan holds estimates of time, and these differ from run to run.
            expect(any([instruction.pop("plan", None) for instruction in plan["instructions"]]), name)
        expect(planned == printed, name)
        expect("arena_bytes" not in said and planned["arena_bytes"] == read_json("run", f"{name}.program")["program"]["arena_bytes"], name)
        names = {value["name"] for value in said["values"]}
        used = {operand["value"] for instruction in said["instructions"] for operand in instruction["operands"]}
        expect(used <= names and {output["value"] for output in said["outputs"]} <= names, names, used)
        expect(all(instruction["op"] in shown for instruction in said["instructions"]), name)
    layers = read_json("plan", "layers.program")
    expect([instruction["op"] for instruction in layers["instructions"]][0] == "linear", layers["instructions"])
    expect({value["role"] for value in layers["values"]} == {"made", "input", "state", "constant", "captured"}, layers["values"])
    made = [(operand["bytes"], operand["arena_offset"]) for instruction in layers["instructions"] for operand in instruction["operands"]
            if operand["access"] == "makes" and "arena_offset" in operand]
    expect([size for size, _ in made] == [1024, 1024, 1024, 2048], made)
    text("plan", "layers.program", "--json", "--output", "plan.json")
    expect(json.loads((folder / "plan.json").read_text())["values"] == layers["values"], "--output")
    fails(1, "plan", "sum.program", "--json", "--output", "nowhere/sum.json")


def rectangles(name):
    """(name, op, bytes, at, first, last) of each value; none may lie on another while both are there."""
    root = xml.etree.ElementTree.fromstring(text("plan", name))
    found = []
    for title in root.iter(SVG + "title"):
        value, op, *numbers = re.fullmatch(r"(.*) = (.*): (\d+) bytes at (\d+), instructions (\d+) to (\d+)", title.text).groups()
        found.append((value, op, *map(int, numbers)))
    for i, (_, _, bytes_a, at_a, first_a, last_a) in enumerate(found):
        for _, _, bytes_b, at_b, first_b, last_b in found[:i]:
            expect(at_a + bytes_a <= at_b or at_b + bytes_b <= at_a or last_a <= first_b or last_b <= first_a, found)
    return found


def check_plan_shows_the_arena():
    layers = rectangles("layers.program")
    expect([(op, size) for _, op, size, *_ in layers] == [("linear", 1024), ("relu", 1024), ("dropout", 1024), ("mul_s", 2048)], layers)
    arena = read_json("run", "layers.program")["program"]["arena_bytes"]
    expect(all(at + size <= arena for _, _, size, at, *_ in layers), layers)
    carried = next(row for row in rectangles("ways.program") if row[1] == "clone")
    expect(carried[4:] == (1, 16), "a value of a loop is there until it is used behind it", carried)
    expect([op for _, op, *_ in rectangles("group.program")] == ["tanh"], "what stays in tiles lies nowhere")
    text("plan", "sum.program", "--output", "sum.svg")
    expect(xml.etree.ElementTree.parse(folder / "sum.svg").getroot().tag == SVG + "svg", "a picture")
    fails(1, "plan", "sum.program", "--output", "nowhere/sum.svg")


# ---- files ----

def check_files_that_are_no_programs():
    whole = (folder / "layers.program").read_bytes()
    (folder / "cut.program").write_bytes(whole[:200])
    (folder / "empty.program").write_bytes(b"")
    (folder / "changed.program").write_bytes(whole.replace(b"relu", b"r\x1blu"))
    for command in ("print", "run", "dot", "plan"):
        for name in ("cut.program", "empty.program", "changed.program", "none\x1b[31m\n.program", "."):
            fails(1, command, name)
        fails(2, command)
        fails(2, command, "layers.program", "sum.program")
        expect(text(command, "--help").startswith(f"eddy {command} "), command)


# ---- manual and completions ----

def check_manual_has_all_commands():
    page = text("--generate", "man")
    for command in COMMANDS:
        expect(f".SS eddy {command}" in page, command)
    if has_program("mandoc"):
        found = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True, check=False).stdout
        problems = [line for line in found.splitlines() if "missing date" not in line]
        expect(not problems, problems)
    fails(2, "--generate", "csh")


def completed(*words):
    """What bash completes the last word to."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); complete -p eddy >&2; _eddy; printf "%s\\n" "${COMPREPLY[@]}"')
    path = os.path.dirname(EDDY) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(["bash", "-c", script, "bash", folder / "completion", "eddy", *words], capture_output=True, text=True, check=True,
                          env=environment(PATH=path), cwd=folder)
    expect(done.stderr == "complete -F _eddy eddy\n", done.stderr)
    return set(done.stdout.split("\n")) - {""}


def check_bash_completes():
    (folder / "completion").write_text(text("--generate", "bash"))
    (folder / "two words").write_text("")
    expect({command.split()[0] for command in COMMANDS} <= completed(""), completed(""))
    expect(completed("trace", "") == {"summary", "svg", "diff"}, completed("trace", ""))
    expect(completed("trace", "summary", "--by", "p") == {"phase", "place"}, "a value")
    expect(completed("trace", "summary", "--by", "=", "o") == {"op"}, "a value behind the sign")
    expect(completed("run", "--t") == {"--times"}, "an option")
    expect(completed("run", "lay") == {"layers.program"} and completed("run", "tw") == {"two words"}, "a file")
    expect(completed("run", "--input", "x", "=", "lay") == {"layers.program"}, "a file behind a name")
    expect(completed("help", "tr") == {"trace"} and not completed("nothing", "x"), "help, and no command")
    expect("conv2d" in completed("ops", "conv2"), completed("ops", "conv2"))
    expect(completed("bench", "issue_") == {"issue_add16", "issue_read"}, completed("bench", "issue_"))


def check_other_shells_read_theirs():
    for shell, options in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
        (folder / shell).write_text(text("--generate", shell))
        if has_program(shell):
            subprocess.run([shell, *options, folder / shell], check=True)


subprocess.run([SAVED, folder], check=True, env=environment())
run_checks(globals())
