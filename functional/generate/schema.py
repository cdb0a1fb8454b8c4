"""ops.json: the op list for authors of bindings, as eddy_call accepts it."""

import json

import errors
from header import functions, returns_text

VERSION = 1


def operand(value):
    return {"name": value.name, "kind": value.kind, "access": value.access, "shape_only": value.shape_only or value.spec_only}


def attribute(value):
    result = {"name": value.name, "type": value.type, "required": value.is_required, "doc": value.doc}
    if value.role == "option" and value.type not in ("device", "generator"):
        result["default"] = value.choices[0] if value.choices else bool(value.default) if value.type == "bool" else value.default
    if value.zero_is_none:
        result["default"] = None
    if value.choices:
        result["choices"] = value.choices
    return result


def said(entry):
    return [{"status": e.status, "when": e.when, "late": e.is_late} for e in errors.errors_of(entry)]


def op(entry):
    result = {
        "name": entry.name,
        "family": entry.family,
        "summary": entry.summary,
        "operands": [operand(o) for o in entry.operands],
        "outputs": entry.outputs,
        "attributes": [attribute(a) for a in entry.attributes if a.role != "fixed"],
        "promotion": entry.promotion,
        "result": entry.result,
        "elementwise": entry.is_elementwise,
        "late_shape": entry.late_shape,
        "random": bool(entry.random),
        "gradient": entry.gradient,
        "dtypes": entry.dtypes,
        "errors": said(entry),
        "functions": [{"name": f.name, "form": f.form or "new", "returns": returns_text(f)} for f in functions(entry)],
    }
    if entry.is_elementwise:
        result["expressions"] = entry.expressions
    if entry.ulp is not None:
        result |= {"ulp": entry.ulp, "ulp_f64": entry.ulp_f64, "ulp_of": entry.ulp_of or "the result"}
    return result


def composition(entry):
    """A function made of ops. output_count: a number, or the name of the list or attribute that gives the number of outputs."""
    return {
        "name": entry.name,
        "summary": entry.summary,
        "operands": [operand(o) for o in entry.operands],
        "output_count": entry.output_count or 1,
        "attributes": [attribute(a) for a in entry.attributes],
        "errors": said(entry),
    }


def emit(entries, compositions=()):
    described = {"version": VERSION, "ops": [op(e) for e in entries], "compositions": [composition(e) for e in compositions]}
    return json.dumps(described, indent=1) + "\n"
