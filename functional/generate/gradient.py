"""functional/gradients.c: the functions that compute gradients, from the formulas in the entries.

A formula is an expression of ops. Its terms:

    grad                      the gradient of the output; grad_NAME if there are several outputs
    an operand or output      its value, which the tape then saves
    operand(grad)             the operand, if an operand of the op is named grad
    an attribute or option    a number
    1, 0.5, inf               numbers
    none                      an optional operand that is left out
    + - * / == < ...          on tensors and numbers; `and`, `or`, `not` on conditions
    select(condition, a, b)   and min, max: the scalar functions of expressions
    sum(x, [0], keeps_dims=True) any op or view, options by name
    shape(x) count(x) count(x, axes) zeros_like(x) expand_to(grad, x, axes, keeps_dims)
                              these read only the shape of x, which needs no saved tensor; also count(grad)
    c:name(x, output)         a function of functional/gradient/, and the tensors it reads; called after the formulas of other operands

functional/gradient/engine.c undoes broadcasting and promotion."""

import ast

from arguments import path
from entry import EntryError
from header import has_options, options_name
from text import NOTICE

OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
ORDERS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
CONNECTIVES = {ast.And: "logical_and", ast.Or: "logical_or"}
# Functions of expressions -> the ops that compute the same.
FUNCTIONS = {"select": "where", "min": "minimum", "max": "maximum"}
COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}

# Views and other hand-written functions -> types of the parameters after the tensor.
BY_HAND = {
    "reshape": ["shape"], "expand": ["shape"], "flatten": ["int", "int"], "transpose": ["int", "int"], "t": [],
    "unsqueeze": ["int"], "squeeze": ["axes"], "narrow": ["int", "int", "int"],
    "slice": ["int", "int", "int", "int"], "permute": ["axes"], "detach": [], "contiguous": [],
}


class Formula:
    """The gradient of one operand as C code, and the operands and outputs that it reads."""

    def __init__(self, entry, text, ops):
        self.entry = entry
        self.text = text
        self.ops = ops
        self.inputs = set()
        self.outputs = set()
        self.where = f"{entry.family}.toml [{entry.name}]"
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            self.fail("is no expression")
        self.code = self.tensor(tree)

    def fail(self, text):
        raise EntryError(f"{self.where}: gradient {self.text!r} {text}")

    def input_number(self, name):
        names = [o.name for o in self.entry.operands]
        return names.index(name) if name in names else None

    def attribute(self, name):
        for attribute in self.entry.attributes:
            if attribute.name == name and attribute.in_struct:
                return attribute
        return None

    def is_state(self, name):
        """Whether it is the seed or counter of a random op, which are the first fields of its attributes."""
        return self.entry.random and name in ("seed", "counter")

    def spec(self, node):
        if isinstance(node, ast.Name):
            number = self.input_number(node.id)
            if number is not None:
                return f"&call->input_specs[{number}]"
        return self.fail("asks for the shape of what is no operand")

    # The type of an expression: "tensor", or the C type of a number.
    def kind(self, node):
        if isinstance(node, ast.Constant):
            return "bool" if isinstance(node.value, bool) else "double" if isinstance(node.value, float) else "int64_t"
        if isinstance(node, ast.UnaryOp):
            kind = self.kind(node.operand)
            return "double" if kind == "scalar" else kind
        if isinstance(node, ast.Compare):
            return "tensor" if "tensor" in (self.kind(node.left), self.kind(node.comparators[0])) else "double"
        if isinstance(node, ast.BinOp):
            kinds = {self.kind(node.left), self.kind(node.right)}
            return "tensor" if "tensor" in kinds else "double"
        if isinstance(node, ast.Name):
            if node.id == "inf":
                return "double"
            attribute = None if self.is_tensor(node.id) else self.attribute(node.id)
            if self.is_state(node.id):
                return "int64_t"
            if attribute:
                return {"scalar": "scalar", "float": "double", "bool": "bool"}.get(attribute.type, "int64_t")
        if isinstance(node, ast.Call) and node.func.id == "count":
            return "double"
        return "tensor"

    def is_tensor(self, name):
        return name.startswith("grad") and (name == "grad" or name[5:] in self.entry.outputs) or \
            self.input_number(name) is not None or name in self.entry.outputs

    def number(self, node):
        if isinstance(node, ast.Constant):
            return repr(node.value).lower() if isinstance(node.value, bool) else repr(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            scalar = self.kind(node.operand) == "scalar"
            return f"-{self.real(node.operand) if scalar else self.number(node.operand)}"
        if isinstance(node, ast.Compare):
            return f"({self.real(node.left)} {ORDERS[type(node.ops[0])]} {self.real(node.comparators[0])} ? 1.0 : 0.0)"
        if isinstance(node, ast.BinOp):
            return f"({self.real(node.left)} {SYMBOLS[type(node.op)]} {self.real(node.right)})"
        if isinstance(node, ast.Name):
            if node.id == "inf":
                return "(double)INFINITY"
            attribute = self.attribute(node.id)
            if attribute:
                return f"arguments->{path(self.entry, attribute)}"
            if self.is_state(node.id):
                return f"(int64_t)((const uint64_t *)call->attributes)[{['seed', 'counter'].index(node.id)}]"
        if isinstance(node, ast.Call) and node.func.id == "count" and isinstance(node.args[0], ast.Name) and node.args[0].id == "grad":
            return f"(double)eddy_count_of({self.value('grad')})"
        if isinstance(node, ast.Call) and node.func.id == "count":
            axes = "0"
            if len(node.args) > 1:
                axes = self.number(node.args[1])
            return f"eddy_gradient_count({self.spec(node.args[0])}, {axes})"
        return self.fail("has something that is no number where one belongs")

    def real(self, node):
        """C text of a number, as a double."""
        text = self.number(node)
        return f"eddy_parameter_f64({text})" if self.kind(node) == "scalar" else f"(double){text}"

    def scalar(self, node):
        if self.kind(node) == "scalar" and isinstance(node, ast.Name):
            return self.number(node)
        return f"EDDY_S({self.real(node) if self.kind(node) == 'scalar' else self.number(node)})"

    def value(self, name):
        number = self.input_number(name)
        if name == "none":
            return "EDDY_NONE"
        if name == "grad":
            if len(self.entry.outputs) != 1:
                self.fail("says grad where there are several outputs")
            return "call->grads[0]"
        if name.startswith("grad_") and name[5:] in self.entry.outputs:
            return f"call->grads[{self.entry.outputs.index(name[5:])}]"
        if number is not None:
            self.inputs.add(number)
            return f"call->inputs[{number}]"
        if name in self.entry.outputs:
            self.outputs.add(self.entry.outputs.index(name))
            return f"call->outputs[{self.entry.outputs.index(name)}]"
        return self.fail(f"names {name!r}, which the call does not have")

    def tensor(self, node):
        if self.kind(node) != "tensor":
            return f"eddy_gradient_constant(call, {self.real(node)})"
        if isinstance(node, ast.Name):
            return self.value(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"eddy_neg({self.tensor(node.operand)})"
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self.binary(OPERATORS[type(node.op)], node.left, node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"eddy_logical_not({self.tensor(node.operand)})"
        if isinstance(node, ast.BoolOp) and len(node.values) == 2:
            return self.binary(CONNECTIVES[type(node.op)], *node.values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.binary(COMPARISONS[type(node.ops[0])], node.left, node.comparators[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node)
        return self.fail("has something that is neither tensor nor op")

    def binary(self, op, left, right):
        if self.kind(right) != "tensor":
            return f"eddy_{op}_s({self.tensor(left)}, {self.scalar(right)})"
        return f"eddy_{op}({self.tensor(left)}, {self.tensor(right)})"

    def call(self, node):
        name = FUNCTIONS.get(node.func.id, node.func.id)
        if name == "zeros_like" and isinstance(node.args[0], ast.Name) and node.args[0].id == "grad":
            return "eddy_gradient_constant(call, 0)"
        if name == "operand":
            return self.operand(node.args[0])
        if name == "zeros_like":
            return f"eddy_gradient_zeros(call, {self.spec(node.args[0])})"
        if name == "expand_to":
            grad, like, axes, keeps_dims = node.args
            return (f"eddy_gradient_expand({self.tensor(grad)}, {self.spec(like)}, {self.number(axes)}, "
                    f"{self.number(keeps_dims)})")
        if name in BY_HAND:
            types = ["tensor", *BY_HAND[name]]
            return f"eddy_{name}({', '.join(self.argument(a, t) for a, t in zip(node.args, types, strict=True))})"
        if name not in self.ops:
            self.fail(f"calls {name!r}, which is no op")
        return self.op_call(self.ops[name], node)

    def operand(self, node):
        number = self.input_number(node.id) if isinstance(node, ast.Name) else None
        if number is None:
            self.fail("asks for an operand that there is not")
        self.inputs.add(number)
        return f"call->inputs[{number}]"

    def op_call(self, entry, node):
        types = ["tensor" if o.kind != "list" else "list" for o in entry.operands]
        types += [a.passed_as or a.type for a in entry.parameters]
        if len(node.args) != len(types):
            self.fail(f"gives {entry.name} {len(node.args)} arguments, not {len(types)}")
        arguments = [self.argument(a, t) for a, t in zip(node.args, types)]
        if has_options(entry, ""):
            arguments.append(self.options(entry, node.keywords))
        return f"eddy_{entry.name}({', '.join(arguments)})"

    def options(self, entry, keywords):
        if not keywords:
            return "NULL"
        fields = []
        for keyword in keywords:
            option = next((o for o in entry.options if o.name == keyword.arg), None)
            if not option:
                self.fail(f"gives {entry.name} an unknown option {keyword.arg!r}")
            kind = f"(eddy_{option.name})" if option.type == "choice" else ""
            value = self.number(keyword.value)
            fields.append(f".{option.name} = {kind}{value}")
            if option.zero_flag:
                fields.append(f".{option.name}_is_zero = {value} == 0")
        struct = f"eddy_{options_name(entry)}_options"
        return f"&({struct}){{.size = sizeof({struct}), {', '.join(fields)}}}"

    def argument(self, node, kind):
        if kind == "tensor":
            return self.tensor(node)
        if kind == "scalar":
            return self.scalar(node)
        if kind == "axes":
            if isinstance(node, ast.List):
                return f"EDDY_AXES({', '.join(self.number(e) for e in node.elts)})"
            return f"eddy_gradient_axes({self.number(node)})"
        if kind == "shape":
            if isinstance(node, ast.Call) and node.func.id == "shape":
                return f"({self.spec(node.args[0])})->shape"
            return f"EDDY_SHAPE({', '.join(self.number(e) for e in node.elts)})"
        if kind == "list":
            return f"EDDY_LIST({', '.join(self.tensor(e) for e in node.elts)})"
        return self.number(node)


def by_hand(text):
    """("name", ["x", ..]) of "c:name(x, ..)"."""
    name, _, rest = text.removeprefix("c:").partition("(")
    return name, [n.strip() for n in rest.rstrip(") ").split(",") if n.strip()]


def mask(numbers):
    return sum(1 << n for n in numbers)


def needs_row(number, inputs, outputs):
    return f"    [{number}] = {{.is_differentiable = true, .inputs = {mask(inputs):#x}, .outputs = {mask(outputs):#x}}},"


def result_lines(entry, number, formula, fused):
    """C lines of the gradient of operand `number`: in one loop if there is one and the pass is not recorded, else op by op."""
    result = f"call->results[{number}]"
    if not fused:
        return [f"        {result} = {formula.code};"]
    operands = ", ".join(formula.tensor(ast.parse(text, mode="eval").body) for text in fused.reads)
    return [f"        if (eddy_gradient_is_fused(call, {mask(formula.inputs):#x}, {mask(formula.outputs):#x}))",
            f"            {result} = eddy_gradient_fused(call, &eddy_op_{fused.name}, (eddy_tensor *[]){{{operands}}});",
            "        else", f"            {result} = {formula.code};"]


def entry_lines(entry, ops, fused):
    names = [o.name for o in entry.operands]
    rows, body, function = [], [], None
    for operand, text in entry.gradient.items():
        number = names.index(operand)
        if text.startswith("c:"):
            function, reads = by_hand(text)
            for name in reads:
                if name not in names + entry.outputs:
                    raise EntryError(f"{entry.family}.toml [{entry.name}]: gradient {text!r} reads unknown {name!r}")
            rows.append(needs_row(number, [names.index(n) for n in reads if n in names],
                                  [entry.outputs.index(n) for n in reads if n not in names]))
            continue
        formula = Formula(entry, text, ops)
        rows.append(needs_row(number, formula.inputs, formula.outputs))
        body += [f"    if (call->is_wanted[{number}]) {{", *result_lines(entry, number, formula, fused.get(f"{entry.name}_gradient_{operand}")),
                 f"        if (!call->results[{number}])", "            return eddy_outcome_why(call->outcome);", "    }"]
    lines = []
    if function and body:
        body.append(f"    return eddy_gradient_{function}(call);")
        function = None
    elif not function:
        body.append("    return EDDY_OK;")
    if not function:
        function = f"of_{entry.name}"
        if entry.arguments and any("arguments->" in line for line in body):
            body.insert(0, f"    const {entry.arguments} *arguments = call->attributes;")
        lines += [f"static eddy_status eddy_gradient_{function}(const eddy_gradient_call *call) {{", *body, "}"]
    return lines + [f"static const eddy_gradient_needs needs_of_{entry.name}[{len(names)}] = {{", *rows, "};",
                    f"const eddy_gradient eddy_gradient_data_{entry.name} = "
                    f"{{.run = eddy_gradient_{function}, .operands = needs_of_{entry.name}}};", ""]


def emit(entries):
    ops = {e.name: e for e in entries if not e.gradient_of}
    fused = {e.name: e for e in entries if e.gradient_of}
    parts = [
        NOTICE, "/* How gradients go back through ops. */",
        "#include <base/status.h>\n#include <eddy/eddy.h>\n#include <functional/arguments_all.h>\n#include <functional/parameter.h>\n"
        "#include <functional/gradient/helper.h>\n#include <functional/op_table.h>\n#include <interpreter/tape/gradient.h>\n"
        "#include <math.h>\n",
    ]
    for entry in entries:
        if isinstance(entry.gradient, dict) and entry.gradient:
            parts += entry_lines(entry, ops, fused)
    return "\n".join(parts)
