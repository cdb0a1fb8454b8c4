"""Gradients of elementwise ops as one loop each.

A formula that needs several ops, and that is an expression over what the call had, becomes an op of its own, which is no part of the
list: grad, operands and outputs are its operands, and it has the attributes of the op whose gradient it is. Backward passes that are
not recorded themselves run it; others run the formula op by op (gradient.py), as gradients go back through these.

Functions that take no longer than loads and stores are compiled into the loop. Others stand in the loops of their ops already, which a
gradient runs on some cache lines at a time, before what is left of it: its stages (kernels/cpu/stage.h)."""

import ast
import copy
import re

from entry import BUFFER, COSTS, FLOATS, Entry, Operand, Stage
from gradient import OPERATORS, FUNCTIONS, Formula

# The function among calls that takes no longer than its loads and stores, as operators do.
CHEAP = "select"
# What kernels/cpu/dense.h and stage.h have room for.
OPERANDS_MAX, BUFFERS_MAX = 4, 2


class NoLoop(Exception):
    """A formula that is not for a loop."""


class Substitute(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return copy.deepcopy(self.values.get(node.id, node))


class Plain(ast.NodeTransformer):
    """A formula in the vocabulary of expressions: an operand that is named as its gradient is gets a name of its own, a condition that
    is computed with is a number, and ops that are expressions of others are these."""

    def __init__(self, formula, ops):
        self.formula = formula
        self.ops = ops

    def visit_BinOp(self, node):
        sides = {side: getattr(node, side) for side in ("left", "right")}
        for side, value in sides.items():
            if isinstance(value, ast.Compare) and self.formula.kind(value) == "tensor":
                setattr(node, side, ast.Call(ast.Name("select"), [value, ast.Constant(1), ast.Constant(0)], []))
        return self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        if node.func.id == "operand":
            return ast.Name(f"operand_{node.args[0].id}")
        if node.func.id == CHEAP:
            return node
        op = self.ops.get(FUNCTIONS.get(node.func.id, node.func.id))
        if not op or len(op.expressions) != 1 or op.attributes or node.keywords:
            raise NoLoop
        body = ast.parse(op.expressions[0], mode="eval").body
        if isinstance(body, ast.Call) and FUNCTIONS.get(body.func.id, body.func.id) == op.name:
            return node
        return Substitute({o.name: a for o, a in zip(op.operands, node.args)}).visit(body)


class Split(ast.NodeTransformer):
    """Takes the calls of long functions out of an expression: what they leave in buffers stands in their place."""

    def __init__(self, formula, ops):
        self.formula = formula
        self.ops = ops
        self.stages = []
        self.buffers = {}  # text of a call -> its buffer

    def visit_Call(self, node):
        if node.func.id == CHEAP:
            return self.generic_visit(node)
        text = ast.unparse(node)
        if text not in self.buffers:
            node = self.generic_visit(node)
            self.buffers[text] = f"{BUFFER}{len(self.buffers)}"
            self.add_call(node, self.buffers[text])
        return ast.Name(self.buffers[text])

    def add_call(self, node, buffer):
        op, arguments, number = self.ops[FUNCTIONS.get(node.func.id, node.func.id)], node.args, ""
        if self.formula.kind(arguments[-1]) != "tensor":
            op, arguments, number = self.ops[f"{op.name}_s"], arguments[:-1], self.formula.real(arguments[-1])
        names = []
        for argument in arguments:
            if not isinstance(argument, ast.Name):
                self.add(argument, buffer)
            names.append(argument.id if isinstance(argument, ast.Name) else buffer)
        if names.count(buffer) > 1:
            raise NoLoop
        self.stages.append(Stage(names, buffer, op=op, number=number))

    def add(self, node, writes):
        """An expression of cheap functions; where it is one op, that has the loop already."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id != CHEAP]
        reads = list(dict.fromkeys(n for n in names if not self.formula.attribute(n) or self.formula.is_tensor(n)))
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name) and isinstance(node.right, ast.Name) and len(reads) == 2:
            self.stages.append(Stage([node.left.id, node.right.id], writes, op=self.ops[OPERATORS[type(node.op)]]))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name) and reads:
            self.stages.append(Stage(reads, writes, op=self.ops["neg"]))
        else:
            self.stages.append(Stage(reads, writes, expression=ast.unparse(node)))


def check_numbers(formula, stage):
    """Numbers that are computed with each other are doubles op by op."""
    nodes = ast.walk(ast.parse(stage.expression or "0", mode="eval"))
    if any(isinstance(n, (ast.BinOp, ast.Compare)) and formula.kind(n) != "tensor" for n in nodes):
        raise NoLoop


def operands_of(entry, tree):
    """What a formula reads: name in the loop -> text in the formula."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    given = {"grad": "grad"} | {f"operand_{o.name}": f"operand({o.name})" for o in entry.operands}
    given |= {name: name for name in [*(o.name for o in entry.operands), *entry.outputs] if name != "grad"}
    return {name: text for name, text in given.items() if name in names}


def costliest(stages):
    costs = [stage.op.cost for stage in stages if stage.op]
    return max(costs, key=list(COSTS).index, default="cheap")


def stages_of(formula, tree, ops):
    split = Split(formula, ops)
    split.add(split.visit(tree), "out")
    for stage in split.stages:
        check_numbers(formula, stage)
    if len(split.buffers) > BUFFERS_MAX:
        raise NoLoop
    return split.stages


def fuse(entry, operand, ops):
    """The op that gives an operand's gradient at once; None where its formula is one op, or not for a loop."""
    text = entry.gradient[operand]
    if text.startswith("c:"):
        return None
    formula = Formula(entry, text, ops)
    if len(re.findall(r"\beddy_(?!gradient_|parameter_)\w+\(", formula.code)) < 2:
        return None
    try:
        tree = Plain(formula, ops).visit(ast.parse(text, mode="eval").body)
        reads = operands_of(entry, tree)
        if "grad" not in reads or len(reads) > OPERANDS_MAX or any(o.is_bool for o in entry.operands):
            return None
        stages = stages_of(formula, tree, ops)
    except NoLoop:
        return None
    return Entry(**{
        **entry.__dict__, "name": f"{entry.name}_gradient_{operand}", "summary": f"{operand}'s gradient by {entry.name}.",
        "operands": [Operand(name) for name in reads], "outputs": ["output"], "promotion": "same", "result": "compute",
        "dtypes": [d for d in FLOATS if d in entry.dtypes], "forms": [], "expressions": [stages[-1].expression], "expression_bool": "",
        "chosen_by": "", "shortcuts": {}, "gradient": "", "gradient_cases": [], "errors": {}, "late_errors": {},
        "cost": costliest(stages), "gradient_of": entry, "reads": list(reads.values()), "stages": stages if len(stages) > 1 else [],
    })


def of(entries):
    """All of a list's."""
    ops = {e.name: e for e in entries}
    found = [fuse(e, o, ops) for e in entries if e.is_elementwise and isinstance(e.gradient, dict) for o in e.gradient]
    return [e for e in found if e]
