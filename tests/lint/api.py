#!/usr/bin/env python3
"""Public headers keep the rules of docs/api.md, and its tables list every function that is no op.

Usage: api.py DOCS/api.md HEADER..."""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"\bEDDY_API\b([^;{}()]*?)\b(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)[^;]*;", re.S)
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n\} \w+;", re.S)
STATES = re.compile(r"^(is|has|[a-z]+s)(_|$)|_is_")
QUESTION = re.compile(r"^(is|has|can|requires)_|_is_")
FORBIDDEN = re.compile(r"^eddy_(set|get)_|gradient|keepdim")


def tables(page):
    """Names by kind, and those that wait."""
    kinds = {}
    for row in re.findall(r"^\| (\w+) \| [^|]*\|([^|]*)\|$", page.split("## Everything else")[1].split("\n## ")[0], re.M):
        kinds[row[0]] = re.findall(r"`(\w+)`", row[1])
    kinds.pop("kind", None)
    waits = re.search(r"^\* \*\*Wait\*\*:.*?(?=^\* |\Z)", page, re.M | re.S).group(0)
    return kinds, [name for name in re.findall(r"`(\w+)`", waits) if name not in ("timeout", "nonzero")]


def parse(headers):
    """Functions as {name: (result, [parameter], header)} without eddy_, and structs as {name: [field declaration]}."""
    functions, structs = {}, {}
    for header in headers:
        text = COMMENT.sub("", pathlib.Path(header).read_text())
        for name, body in STRUCT.findall(text):
            structs[name] = [field.strip() for field in body.split(";") if field.strip()]
        text = re.sub(r"^\s*#.*(\\\n.*)*$", "", text, flags=re.M)
        for result, name, parameters in FUNCTION.findall(text):
            parts = [" ".join(p.split()) for p in re.split(r",(?![^(]*\))", parameters)]
            functions[name.removeprefix("eddy_")] = (" ".join(result.split()), [p for p in parts if p != "void"], pathlib.Path(header).name)
    return functions, structs


def check_tables(kinds, functions):
    listed = [name for names in kinds.values() for name in names]
    plain = {name for name, (_, _, header) in functions.items() if header != "ops.h"}
    yield from (f"eddy_{name}: stands in no table" for name in sorted(plain - set(listed)))
    yield from (f"eddy_{name}: stands in a table, but in no header" for name in sorted(set(listed) - plain))
    yield from (f"eddy_{name}: stands in the tables twice" for name in sorted({n for n in listed if listed.count(n) > 1}))


def check_kind(kind, name, result, parameters):
    first = parameters[0] if parameters else ""
    if kind in ("tensor", "question") and not re.match(r"(const )?eddy_tensor \*", first):
        yield "its first parameter is no tensor"
    if kind == "getter" and (not name.endswith("_of") or not re.match(r"(const )?eddy_tensor \*|eddy_list ", first)):
        yield "a getter ends in _of and takes a tensor or a list first"
    if kind == "question" and not QUESTION.search(name):
        yield "a question begins with is_, has_, can_ or requires_"
    if kind == "source" and not name.startswith("from_"):
        yield "it does not begin with from_"
    if kind == "thread" and re.search(r"eddy_(tensor|list)", ", ".join(parameters)):
        yield "it takes tensors"
    if kind != "getter" and name.endswith("_of"):
        yield "what ends in _of is a getter"


def check_function(name, result, parameters, structs):
    if FORBIDDEN.search("eddy_" + name):
        yield "set, get, gradient and keepdim are not used in names"
    if result == "bool" and not QUESTION.search(name):
        yield "it returns bool and is no question"
    inputs = [p for p in parameters if not re.match(r"eddy_tensor \*\*\w+$", p)]
    for parameter in parameters:
        if re.match(r"(double|float) \w+$", parameter):
            yield f"{parameter}: numbers are eddy_scalar"
        if re.match(r"(const )?eddy_(shape|axes|list|scalar) \*\w+$", parameter):
            yield f"{parameter}: shapes, axes and lists are values"
        if parameter.startswith("eddy_runtime *") and not name.startswith("runtime_"):
            yield "only eddy_runtime_... take a runtime"
        if re.search(r"\w+_options \*", parameter):
            struct = re.search(r"(\w+_options) \*", parameter).group(1)
            if parameter != inputs[-1] or not re.match(r"const \w+_options \*options$", parameter):
                yield f"{parameter}: options stand last, but for the places of results, and are const"
            elif structs.get(struct, [""])[0] != "size_t size":
                yield f"{struct} does not begin with its size"
    if re.search(r"void \*context$", parameters[0] if parameters else "") and "callback" not in name:
        yield "the context does not stand behind its function"


def has_timeout(parameters, structs):
    options = re.search(r"(\w+_options) \*", ", ".join(parameters))
    return "int64_t timeout" in parameters or (options and "int64_t timeout" in structs[options.group(1)])


def main():
    page, *headers = sys.argv[1:]
    kinds, waits = tables(pathlib.Path(page).read_text())
    functions, structs = parse(headers)
    problems = list(check_tables(kinds, functions))
    for kind, names in kinds.items():
        for name in names:
            if name in functions:
                problems += [f"eddy_{name}: {what}" for what in check_kind(kind, name, *functions[name][:2])]
    for name, (result, parameters, _) in functions.items():
        problems += [f"eddy_{name}: {what}" for what in check_function(name, result, parameters, structs)]
        if (name in waits) != bool(parameters and has_timeout(parameters, structs)):
            problems.append(f"eddy_{name}: whether it takes a timeout is not what the page says")
    for struct, fields in structs.items():
        for field in fields:
            named = re.match(r"(?:const )?bool \*?(\w+(?:, \w+)*)$", field)
            for name in named.group(1).split(", ") if named else []:
                if struct != "eddy_attribute" and not STATES.search(name):
                    problems.append(f"{struct}.{name}: it does not say what is the case")
            if FORBIDDEN.search(re.sub(r".*?(\w+)$", r"\1", field)):
                problems.append(f"{struct}: {field}: gradient and keepdim are not used in names")
    print("\n".join(problems) or f"{len(functions)} functions, {len(structs)} structs")
    sys.exit(1 if problems or not functions or not waits or len(kinds) < 7 else 0)


main()
