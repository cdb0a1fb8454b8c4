"""Chains of elementwise ops as one loop: functional/ops/fused.toml, functional/chains.c.

A chain is written as calls of ops, each with the one before as an operand. Its loop computes an expression in which the names of each op's own
expression are replaced by what the op is given, so that it has the functions of all of them, and their roundings, in their order. It is an
entry with operands and numbers, for loops.py; no op, and in no table of ops."""

import ast
import copy
import pathlib

from entry import CHAINS, COSTS, Attribute, Entry, Operand, fail, load
from loops import ONE, tag
from text import NOTICE

# Of what has a form for a number of the row: a chunk of quick forms (functional/loop.h).
ROW_LEAST = 256
# EDDY_CHAIN_MEMBERS, the operands of kernels/cpu/dense.h less the result, and the fields of eddy_chain_numbers.
MEMBERS_MAX, INPUTS_MAX, NUMBERS = 3, 3, ["first_number", "second_number"]


class Substitute(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return copy.deepcopy(self.values.get(node.id, node))


class Reader:
    """Reads the calls of a chain, the innermost first."""

    def __init__(self, where, ops):
        self.where = where
        self.ops = ops
        self.members = []  # (entry, number of the operand that is the result of the member before; None: the first member)
        self.inputs = []
        self.numbers = []

    def op(self, name):
        entry = self.ops.get(name)
        if not entry or len(entry.expressions) != 1 or entry.shortcuts or entry.late_errors or entry.result == "bool" or "f32" not in entry.dtypes:
            fail(self.where, f"{name} is no elementwise op of f32 with one expression and no shortcuts")
        if any(o.is_bool for o in entry.operands) or (entry.attributes and not entry.scalar_of):
            fail(self.where, f"{name} takes a bool or has attributes")
        return entry

    def number(self, entry):
        if len(self.numbers) == len(NUMBERS):
            fail(self.where, f"more than {len(NUMBERS)} numbers")
        self.numbers.append(NUMBERS[len(self.numbers)])
        return {entry.attributes[0].name: ast.Name(self.numbers[-1])}

    def input(self, node):
        if not isinstance(node, ast.Name) or node.id in self.inputs:
            fail(self.where, f"{ast.unparse(node)} is no call, and no name that occurs once")
        self.inputs.append(node.id)
        return node

    def visit(self, node):
        """The expression of a call."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            fail(self.where, f"{ast.unparse(node)} is no call of an op")
        entry = self.op(node.func.id)
        if len(node.args) != len(entry.operands):
            fail(self.where, f"{entry.name} takes {len(entry.operands)} operands")
        calls = [k for k, a in enumerate(node.args) if isinstance(a, ast.Call)]
        if len(calls) > 1:
            fail(self.where, f"{entry.name} is given two calls")
        before = {entry.operands[k].name: self.visit(node.args[k]) for k in calls}
        given = before | {o.name: self.input(a) for o, a in zip(entry.operands, node.args) if o.name not in before}
        if entry.attributes:
            given |= self.number(entry)
        self.members.append((entry, calls[0] if calls else None))
        return Substitute(given).visit(ast.parse(entry.expressions[0], mode="eval").body)


def read_chain(name, text, ops):
    where = f"{CHAINS}.toml {name}"
    tree = ast.parse(text, mode="eval").body
    if name in ops:
        fail(where, "there is an op of this name")
    if not isinstance(tree, ast.Call):
        fail(where, f"{text!r} is no call of an op")
    reader = Reader(where, ops)
    expression = ast.unparse(reader.visit(tree))
    if not 2 <= len(reader.members) <= MEMBERS_MAX or len(reader.inputs) > INPUTS_MAX:
        fail(where, f"a chain has 2 to {MEMBERS_MAX} ops and up to {INPUTS_MAX} operands")
    first = reader.members[0][0]
    has_f64 = all("f64" in e.dtypes and e.cost == "cheap" and not e.gradient_of for e, _ in reader.members)
    return Entry(**{
        **first.__dict__, "name": name, "family": CHAINS, "summary": text, "operands": [Operand(n) for n in reader.inputs],
        "attributes": [Attribute(n, "scalar", "parameter") for n in reader.numbers],
        "dtypes": ["f32", "f64"] if has_f64 else ["f32"], "forms": [],
        "expressions": [expression], "expression_bool": "", "gradient": "", "gradient_cases": [], "scalar_of": "", "bench": [],
        "cost": max((e.cost for e, _ in reader.members), key=list(COSTS).index), "chain": reader.members,
    })


def read(paths, entries):
    """The chains in the file of chains, which is one of the paths."""
    ops = {e.name: e for e in entries}
    found = [path for path in paths if pathlib.Path(path).stem == CHAINS]
    return [read_chain(name, text, ops) for path in found for name, text in load(path).items()]


def rows(chain):
    members = ", ".join(f"{{&eddy_op_{e.name}, {-1 if taken is None else taken}}}" for e, taken in chain.chain)
    fields = {"f32": "kernel", "f64": "kernel_f64"}
    kernels = [f'     .{fields[dtype]} = LOOP({chain.name}_{tag(dtype)}, "{chain.name}"),' for dtype in chain.dtypes]
    return [f'    {{.name = "{chain.name}",', *kernels, f"     .members = {{{members}}},", f"     .count = {len(chain.chain)},",
            f"     .input_count = {len(chain.operands)},",
            f"     .least_row = {ROW_LEAST if any(o.name == ONE for o in chain.operands) else 0}}},"]


def emit(chains):
    """functional/chains.c: the table, in which longer chains come before shorter ones."""
    ordered = sorted(chains, key=lambda c: -len(c.chain))
    return "\n".join([
        NOTICE, "/* Chains of elementwise ops that are one loop. */",
        "#include <interpreter/call/chain.h>\n#include <functional/loops_fused_0.h>\n#include <functional/op_table.h>", "",
        "static eddy_loop_fn *const *loops(void) {",
        "    return (eddy_loop_fn *const *)(const void *)eddy_cpu_loops_fused_0();", "}", "",
        "#define LOOP(loop_, label)                                                                                             \\",
        "    {.name = label, .loops = loops, .loop_index = offsetof(eddy_loops_fused_0, loop_) / sizeof(eddy_loop_fn *)}", "",
        "const eddy_chain eddy_chains[] = {", *(line for c in ordered for line in rows(c)), "};",
        f"const uint32_t eddy_chain_count = {len(ordered)};", ""])
