"""Gradients of elementwise ops as one loop each.

A formula that needs several ops, and that is an expression over what the call had, becomes an op of its own, which is no part of the
list: grad, operands and outputs are its operands, and it has the attributes of the op whose gradient it is. Backward passes that are
not recorded themselves run it; others run the formula op by op (gradient.py), as gradients go back through these.

What takes longer than its loads and stores, and what reads more than one tensor beside grad, stays op by op: there is less to save, and
the loops are longer."""

import ast
import copy
import re

from entry import FLOATS, Entry, Operand
from expression import ExpressionError, compile_expression
from gradient import Formula

# Words that take no longer than loads and stores.
CHEAP = {"add", "sub", "mul", "div", "neg", "select", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"}
# grad and what it goes with.
OPERANDS_MAX = 2


class Inline(ast.NodeTransformer):
    """Puts the expressions of elementwise ops in the place of their calls; what is a word of the vocabulary too stays one."""

    def __init__(self, ops):
        self.ops = ops

    def visit_Call(self, node):
        self.generic_visit(node)
        op = self.ops.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if not op or len(op.expressions) != 1 or op.attributes or len(node.args) != len(op.operands):
            return node
        body = ast.parse(op.expressions[0], mode="eval").body
        if isinstance(body, ast.Call) and body.func.id == op.name:
            return node
        return Substitute({o.name: a for o, a in zip(op.operands, node.args)}).visit(body)


class Substitute(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return copy.deepcopy(self.values.get(node.id, node))


def numbers_alone(formula, node):
    """Whether numbers are computed with each other: those are doubles op by op."""
    return any(isinstance(n, (ast.BinOp, ast.Compare)) and formula.kind(n) != "tensor" for n in ast.walk(node))


def fuse(entry, operand, ops):
    """The op that gives an operand's gradient at once; None where its formula is one op, or not for a loop."""
    text = entry.gradient[operand]
    if text.startswith("c:"):
        return None
    formula = Formula(entry, text, ops)
    if len(re.findall(r"\beddy_(?!gradient_|parameter_)\w+\(", formula.code)) < 2:
        return None
    tree = ast.parse(text, mode="eval").body
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    read = [n for n in ["grad", *[o.name for o in entry.operands], *entry.outputs] if n in names]
    if read[:1] != ["grad"] or len(read) > OPERANDS_MAX or numbers_alone(formula, tree) or any(o.is_bool for o in entry.operands):
        return None
    expression = ast.unparse(Inline(ops).visit(tree))
    values = {name: "v" for name in read} | {a.name: "v" for a in entry.attributes if a.type in ("scalar", "float")}
    try:
        _, _, words = compile_expression(expression, values, "f32")
    except ExpressionError:
        return None
    if not words <= CHEAP:
        return None
    return Entry(**{
        **entry.__dict__, "name": f"{entry.name}_gradient_{operand}", "summary": f"{operand}'s gradient by {entry.name}.",
        "operands": [Operand(name) for name in read], "outputs": ["output"], "promotion": "same", "result": "compute",
        "dtypes": [d for d in FLOATS if d in entry.dtypes], "forms": [], "expressions": [expression], "expression_bool": "",
        "chosen_by": "", "shortcuts": {}, "gradient": "", "gradient_cases": [], "errors": {}, "late_errors": {},
        "cost": "cheap", "gradient_of": entry,
    })


def of(entries):
    """All of a list's."""
    ops = {e.name: e for e in entries}
    found = [fuse(e, o, ops) for e in entries if e.is_elementwise and isinstance(e.gradient, dict) for o in e.gradient]
    return [e for e in found if e]
