"""Gradients of elementwise ops, each as one loop.

A formula that needs several ops, and reads only grad, operands, outputs and attributes of the call, becomes an op of its own. That op is
not in the op list; its operands are the grad, operands and outputs that the formula reads, and its attributes those of the call's op. A
backward pass that is not recorded runs it. A recorded pass runs the formula op by op (gradient.py), since those ops have gradients.

Functions that take no longer than loads and stores are compiled into the loop. The others already have loops, of their ops. The gradient
runs these loops on some cache lines at a time, and then the rest of the formula: its stages (kernels/cpu/stage.h)."""

import ast
import copy
import re

from entry import BUFFER, COSTS, FLOATS, Entry, Operand, Stage
from gradient import OPERATORS, FUNCTIONS, Formula

# The only function that, like the operators, takes no longer than its loads and stores.
CHEAP = "select"
# Limits of kernels/cpu/dense.h and stage.h.
OPERANDS_MAX, BUFFERS_MAX = 4, 2


class NoLoop(Exception):
    """The formula cannot be one loop."""


class Substitute(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return copy.deepcopy(self.values.get(node.id, node))


class Plain(ast.NodeTransformer):
    """Rewrites a formula in the vocabulary of expressions. operand(grad) gets a name of its own, a condition in arithmetic becomes a
    number, and a call of an op whose expression consists of other functions is replaced by that expression."""

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
    """Removes the calls of long functions from an expression. Stages compute them into buffers, which replace the calls."""

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
        """Adds a stage for an expression of cheap functions. If it is a single op, the stage runs that op's loop."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id != CHEAP]
        reads = list(dict.fromkeys(n for n in names if not self.formula.attribute(n) or self.formula.is_tensor(n)))
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name) and isinstance(node.right, ast.Name) and len(reads) == 2:
            self.stages.append(Stage([node.left.id, node.right.id], writes, op=self.ops[OPERATORS[type(node.op)]]))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name) and reads:
            self.stages.append(Stage(reads, writes, op=self.ops["neg"]))
        else:
            self.stages.append(Stage(reads, writes, expression=ast.unparse(node)))


def check_numbers(formula, stage):
    """Refuses arithmetic between numbers: op by op it is in double, which a loop would not reproduce."""
    nodes = ast.walk(ast.parse(stage.expression or "0", mode="eval"))
    if any(isinstance(n, (ast.BinOp, ast.Compare)) and formula.kind(n) != "tensor" for n in nodes):
        raise NoLoop


def operands_of(entry, tree):
    """Operands that a formula reads: name in the loop -> text in the formula."""
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
    """The op that computes an operand's gradient in one loop; None if the formula is a single op or cannot be one loop."""
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
    """The gradients of all entries that can be one loop."""
    ops = {e.name: e for e in entries}
    found = [fuse(e, o, ops) for e in entries if e.is_elementwise and isinstance(e.gradient, dict) for o in e.gradient]
    return [e for e in found if e]
