"""Scalar expressions in the fixed vocabulary of functions, and their C code for a compute type.

The text is an expression of + - * / == != < <= > >=, of `and`, `or`, `not` and != on conditions, and of calls of functions; each
operator and call stands for one function of kernels/scalar_functions.h or kernels/math.h, which has a form per compute type."""

import ast
import struct

OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}

# Function -> kinds of its arguments and of its result: v is a value, c a condition.
FUNCTIONS = {
    "add": ("vv", "v"), "sub": ("vv", "v"), "mul": ("vv", "v"), "div": ("vv", "v"), "neg": ("v", "v"),
    "fma": ("vvv", "v"), "min": ("vv", "v"), "max": ("vv", "v"), "abs": ("v", "v"), "sqrt": ("v", "v"),
    "exp": ("v", "v"), "expm1": ("v", "v"), "log": ("v", "v"), "log1p": ("v", "v"), "log2": ("v", "v"),
    "sin": ("v", "v"), "cos": ("v", "v"), "tan": ("v", "v"), "atan2": ("vv", "v"), "pow": ("vv", "v"),
    "tanh": ("v", "v"), "sigmoid": ("v", "v"), "silu": ("v", "v"), "silu_slope": ("v", "v"), "erf": ("v", "v"),
    "normal": ("v", "v"),
    "gelu": ("v", "v"), "gelu_tanh": ("v", "v"), "gelu_slope": ("v", "v"), "gelu_tanh_slope": ("v", "v"),
    "floor": ("v", "v"), "ceil": ("v", "v"), "round": ("v", "v"), "floordiv": ("vv", "v"), "remainder": ("vv", "v"),
    "bitwise_and": ("vv", "v"), "bitwise_or": ("vv", "v"), "bitwise_xor": ("vv", "v"), "bitwise_not": ("v", "v"),
    "isinf": ("v", "c"), "isfinite": ("v", "c"),
    "eq": ("vv", "c"), "ne": ("vv", "c"), "lt": ("vv", "c"), "le": ("vv", "c"), "gt": ("vv", "c"), "ge": ("vv", "c"),
    "select": ("cvv", "v"), "logical_or": ("vv", "v"), "logical_and": ("vv", "v"),
}

FLOAT_ONLY = {"div", "fma", "sqrt", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "atan2", "tanh", "sigmoid",
              "silu", "silu_slope", "erf", "normal", "gelu", "gelu_tanh", "gelu_slope", "gelu_tanh_slope"}
NOT_BOOL = {"add", "sub", "mul", "neg", "abs", "min", "max", "pow", "floor", "ceil", "round", "floordiv", "remainder"}
BOOL_ONLY = {"logical_or", "logical_and"}
NOT_FLOAT = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}

# Functions with a quick form, and its compute types: eddy_<function>_quick_<type> has the same bits as eddy_<function>_<type> for
# arguments for which eddy_<function>_is_quick_<type> is true.
QUICK = {"exp": ("f32", "f64"), "sigmoid": ("f32",), "silu": ("f32",), "sin": ("f32",), "cos": ("f32",), "tan": ("f32",),
         "floordiv": ("f32", "f64"), "remainder": ("f32", "f64")}

# dtype -> compute type: 16-bit floats are computed in f32 and rounded once.
COMPUTE = {"f16": "f32", "bf16": "f32", "bool": "truth"}


class ExpressionError(Exception):
    pass


def compute_type(dtype):
    return COMPUTE.get(dtype, dtype)


def check_function(function, compute):
    if function in FLOAT_ONLY and compute not in ("f32", "f64"):
        raise ExpressionError(f"{function} has no form for {compute}")
    if function in NOT_BOOL and compute == "truth":
        raise ExpressionError(f"{function} has no form for bool")
    if function in BOOL_ONLY and compute != "truth":
        raise ExpressionError(f"{function} is for bool")
    if function in NOT_FLOAT and compute in ("f32", "f64"):
        raise ExpressionError(f"{function} has no form for {compute}")


def literal(value, compute):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"{value!r} is no number")
    if compute == "f32":  # rounded here: nvcc warns of a hexadecimal number that f32 does not hold
        return struct.unpack("f", struct.pack("f", value))[0].hex() + "f"
    if compute == "f64":
        return float(value).hex()
    if value != int(value):
        raise ExpressionError(f"{value} is no value of {compute}")
    return str(int(value) % 256 if compute == "u8" else int(value))  # nvcc warns of a negative one


class Compiler:
    def __init__(self, names, compute, is_quick=False):
        self.names = names  # name -> "v" or "c"
        self.compute = compute
        self.functions = set()
        self.is_quick = is_quick
        self.conditions = []  # C text: conditions under which the quick functions are valid

    def call(self, function, arguments):
        if function not in FUNCTIONS:
            raise ExpressionError(f"{function} is no function of the vocabulary")
        check_function(function, self.compute)
        kinds, result = FUNCTIONS[function]
        if len(arguments) != len(kinds):
            raise ExpressionError(f"{function} takes {len(kinds)} arguments")
        for (_, kind), wanted in zip(arguments, kinds):
            if kind != wanted:
                raise ExpressionError(f"{function}: a condition stands where a value should, or the other way round")
        self.functions.add(function)
        values = ", ".join(text for text, _ in arguments)
        if self.is_quick and self.compute in QUICK.get(function, ()):
            self.conditions.append(f"eddy_{function}_is_quick_{self.compute}({values})")
            return f"eddy_{function}_quick_{self.compute}({values})", result
        return f"eddy_{function}_{self.compute}({values})", result

    def connect(self, function, node, operands):
        """A function from conditions to a condition. It always computes in bool, whatever the compute type."""
        arguments = [self.visit(o) for o in operands]
        if any(kind != "c" for _, kind in arguments):
            raise ExpressionError(f"{ast.unparse(node)}: a value stands where a condition should")
        self.functions.add(function)
        return f"eddy_{function}_truth({', '.join(text for text, _ in arguments)})", "c"

    def is_condition(self, node):
        return self.visit(node)[1] == "c"

    def compare(self, node):
        left, right = node.left, node.comparators[0]
        if isinstance(node.ops[0], ast.NotEq) and self.is_condition(left):
            return self.connect("ne", node, [left, right])
        return self.call(OPERATORS[type(node.ops[0])], [self.visit(left), self.visit(right)])

    def logic(self, node):
        if isinstance(node, ast.UnaryOp):
            return self.connect("logical_not", node, [node.operand])
        if len(node.values) != 2:
            raise ExpressionError(f"{ast.unparse(node)}: needs parentheses")
        return self.connect("logical_and" if isinstance(node.op, ast.And) else "logical_or", node, node.values)

    def visit(self, node):
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise ExpressionError(f"{node.id} is no operand")
            return node.id, self.names[node.id]
        if isinstance(node, ast.Constant):
            return literal(node.value, self.compute), "v"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                return literal(-node.operand.value, self.compute), "v"
            return self.call("neg", [self.visit(node.operand)])
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self.call(OPERATORS[type(node.op)], [self.visit(node.left), self.visit(node.right)])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            return self.compare(node)
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return self.logic(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.call(node.func.id, [self.visit(a) for a in node.args])
        raise ExpressionError(f"{ast.unparse(node)} is not in the language of expressions")


def parse(text):
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ExpressionError(f"cannot read {text!r}") from error


def compile_quick(text, names, dtype):
    """(C text with the quick forms, C text of the condition under which it is valid), or None if no function has a quick form. For
    expressions that compile_expression accepts."""
    compiler = Compiler(names, compute_type(dtype), is_quick=True)
    code, _ = compiler.visit(parse(text).body)
    return (code, " && ".join(compiler.conditions)) if compiler.conditions else None


def compile_expression(text, names, dtype):
    """(C text, "v" or "c", functions used). Raises ExpressionError."""
    tree = parse(text)
    compiler = Compiler(names, compute_type(dtype))
    code, kind = compiler.visit(tree.body)
    return code, kind, compiler.functions
