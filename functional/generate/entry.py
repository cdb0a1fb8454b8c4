"""Entries of the op list: functional/ops/*.toml, with every default filled in and every rule checked."""

import pathlib
import tomllib
from dataclasses import dataclass, field

import calls

DTYPES = ["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool"]
FLOATS = DTYPES[:4]
INTEGERS = DTYPES[4:9]
DTYPE_GROUPS = {"all": DTYPES, "float": FLOATS, "integer": INTEGERS, "number": FLOATS + INTEGERS,
                "whole": INTEGERS + ["bool"]}

PROMOTIONS = {"none": "NONE", "same": "SAME", "float": "FLOAT"}
RESULTS = {"compute": "COMPUTE", "bool": "BOOL", "rule": "RULE"}

# Attribute type -> enumerator, C type in the struct, C type of a parameter. device and generator are options that are not in
# the struct: they are passed to the interpreter separately. text is for compositions only.
TYPES = {
    "int": ("INT", "int64_t", "int64_t"),
    "float": ("FLOAT", "double", "double"),
    "bool": ("BOOL", "bool", "bool"),
    "scalar": ("SCALAR", "eddy_scalar", "eddy_scalar"),
    "dtype": ("DTYPE", "eddy_dtype", "eddy_dtype"),
    "shape": ("SHAPE", "eddy_shape", "eddy_shape"),
    "axes": ("AXES", "uint32_t", "eddy_axes"),
    "axis": ("AXIS", "int32_t", "int32_t"),
    "choice": ("CHOICE", "int32_t", "int32_t"),
    "pair": ("PAIR", "eddy_pair", "eddy_pair"),
    "device": (None, None, "eddy_device"),
    "generator": (None, None, "eddy_generator *"),
    "text": ("TEXT", "const char *", "const char *"),
}

# Name of a buffer between the stages of a gradient: BUFFER and a number.
BUFFER = "buffer_"

# Statuses that an entry may list as errors of its op (<eddy/status.h>).
STATUSES = {"INVALID_ARGUMENT", "SHAPE_MISMATCH", "DTYPE_MISMATCH", "OUT_OF_RANGE", "SIZE_OVERFLOW", "OVERLAP", "UNSUPPORTED"}

# Estimated picoseconds on one core for an f32 element. "cheap" is per byte loaded or stored, since that is all the time it takes.
COSTS = {"cheap": 9, "medium": 255, "heavy": 460, "dear": 1500}

ENTRY_KEYS = {
    "summary", "operands", "outputs", "attributes", "options", "struct", "promotion", "result", "dtypes", "forms",
    "expression", "expression_bool", "shortcuts", "infer", "kernel", "gradient", "gradient_cases", "oracle", "ulp", "ulp_f64", "ulp_of", "cost", "errors",
    "late_errors", "example", "source", "ownership", "alias", "broadcasts", "crosses_devices", "random", "redraws", "late_shape",
    "layout", "last_where", "wraps", "from_end", "skips", "bench",
}
COMPOSITION_KEYS = {"summary", "operands", "attributes", "options", "output_count", "errors", "example",
                    "gradient_cases", "bench"}
OPERAND_KEYS = {"name", "kind", "access", "shape_only", "bool", "spec_only", "index"}
ATTRIBUTE_KEYS = {"name", "type", "default", "fixed", "extra", "doc", "choices", "zero_flag", "passed_as", "free", "zero_is_none"}
COMPOSITIONS = "composition"  # the file of the compositions, which are not ops
CHAINS = "fused"  # the file of the chains, which are not ops either
KINDS = {"tensor": "TENSOR", "optional": "OPTIONAL", "list": "LIST"}


class EntryError(Exception):
    """An entry violates a rule; the text names file, entry and rule."""


@dataclass
class Operand:
    name: str
    kind: str = "tensor"
    access: str = "const"
    shape_only: bool = False
    is_bool: bool = False
    spec_only: bool = False
    is_index: bool = False  # a late "out of range" of the kernel is about its elements


@dataclass
class Attribute:
    name: str
    type: str
    role: str  # "parameter", "option", "fixed"
    default: object = 0
    extra: bool = False  # for inference only: not in the kernel's struct
    doc: str = ""
    choices: list = field(default_factory=list)
    zero_flag: bool = False  # option: a bool field <name>_is_zero states that the value 0 is meant
    passed_as: str = ""  # type of the parameter if it is not the attribute's
    zero_is_none: bool = False  # int option: 0 means that it is left out, so eddy_call refuses an explicit 0
    free: bool = False  # scalar: not converted to the dtype of the operands or the result

    @property
    def in_struct(self):
        return TYPES[self.type][0] is not None

    @property
    def is_required(self):
        """Whether eddy_call requires it. Axes may be left out, which means all axes."""
        return self.role == "parameter" and "axes" not in (self.type, self.passed_as)

    @property
    def is_held(self):
        """Whether it is a number that the dtype has to hold."""
        return self.type == "scalar" and not self.free


@dataclass
class Stage:
    """A part of a gradient's loop (fused.py)."""
    reads: list  # names of operands and buffers
    writes: str  # a buffer, or "out"
    expression: str = ""
    op: object = None  # the entry whose loop it runs, if it has no loop of its own
    number: str = ""  # C text of the number that the op takes


@dataclass
class Entry:
    name: str
    family: str
    summary: str
    operands: list
    outputs: list
    attributes: list
    struct: str
    promotion: str
    result: str
    dtypes: list
    forms: list
    expressions: list  # scalar expressions: one, or one for each choice of the attribute `chosen_by`
    chosen_by: str
    expression_bool: str
    infer: str
    kernel: str
    gradient: object
    gradient_cases: list  # calls with which tests check the gradient
    oracle: str  # its line in tests/functional, by default the op's name: in oracle.c for an elementwise op, in reduction.c for a reduction
    ulp: object  # a number, or a text that says how the bound grows; None: the entry states none
    ulp_f64: object
    ulp_of: str  # the value whose last place is the unit, if it is not the result
    cost: str
    errors: dict  # status -> cause (a clause) -> calls that provoke it -> part of the message; without the errors that follow
    # from the entry's form (errors.py)
    late_errors: dict  # the same, for errors that are returned when the result is read
    examples: list  # calls that the op accepts; none for elementwise ops. Later ones leave out an attribute that the first call needs
    source: str
    alias: object  # which inputs the target may be, exactly: True any, "first" the first, False none
    broadcasts: bool
    crosses_devices: bool
    random: object  # whether it draws from a generator: True always; the name of an option: unless that option is 0
    redraws: object  # whether `seed` and `counter` are those of an earlier draw: True always; the name of an option: unless that option is 0
    late_shape: bool
    shortcuts: dict = field(default_factory=dict)  # of its `_s` form: number -> equal expression that is cheaper
    wraps: bool = False  # its integer arithmetic wraps around, and so do its scalars
    from_end: bool = False  # negative indices count from the end
    skips: str = ""  # a list whose items may be EDDY_NONE: all lists then leave out the items at that index
    layout: str = ""  # an operand, or a list (its first item counts): the outputs get the order of its axes in memory; empty: row-major
    last_where: str = ""  # with layout: a bool option that makes the outputs, which are images, channels-last
    scalar_of: str = ""  # the entry of which this is the `_s` form
    gradient_of: object = None  # the entry of which this is a gradient (fused.py)
    bench: object = field(default_factory=list)  # its rows in the bench (bench.py)
    reads: list = field(default_factory=list)  # of a gradient: its operands, as texts in the formula
    stages: list = field(default_factory=list)  # of a gradient: loops that run one after another; empty: there is one loop
    chain: list = field(default_factory=list)  # of a chain (chains.py): its ops, and which operand of each is the result before
    output_count: str = ""  # of a composition: the list or attribute that gives the number of outputs; "": one output

    @property
    def is_elementwise(self):
        return bool(self.expressions)

    @property
    def is_reduction(self):
        """Whether it reduces over any axes to one result."""
        return "axes" in [a.type for a in self.parameters] and "keeps_dims" in [o.name for o in self.options]

    @property
    def scalars(self):
        """Attributes of an elementwise op that promote with its operands."""
        return [a for a in self.attributes if self.is_elementwise and a.type == "scalar"]

    @property
    def parameters(self):
        return [a for a in self.attributes if a.role == "parameter"]

    @property
    def options(self):
        return [a for a in self.attributes if a.role == "option"]

    @property
    def struct_attributes(self):
        return [a for a in self.attributes if a.in_struct]

    @property
    def extras(self):
        return [a for a in self.struct_attributes if a.extra]

    @property
    def arguments(self):
        """C type of the attribute struct; empty if there is none."""
        if self.chain:
            return "eddy_chain_numbers" if self.attributes else ""
        if self.gradient_of:
            return self.gradient_of.arguments
        return f"eddy_arguments_{self.name}" if self.struct_attributes or self.random else ""

    @property
    def public_attributes(self):
        """Attributes that eddy_call accepts."""
        return [a for a in self.struct_attributes if a.role != "fixed"]


def fail(where, text):
    raise EntryError(f"{where}: {text}")


def check_keys(where, table, allowed):
    unknown = sorted(set(table) - allowed)
    if unknown:
        fail(where, f"unknown key {unknown[0]!r}")


def read_operand(where, value):
    if isinstance(value, str):
        return Operand(value)
    check_keys(where, value, OPERAND_KEYS)
    operand = Operand(
        name=value["name"],
        kind=value.get("kind", "tensor"),
        access=value.get("access", "const"),
        shape_only=value.get("shape_only", False),
        is_bool=value.get("bool", False),
        spec_only=value.get("spec_only", False),
        is_index=value.get("index", False),
    )
    if operand.kind not in KINDS:
        fail(where, f"operand {operand.name}: unknown kind {operand.kind!r}")
    if operand.access not in ("const", "mut"):
        fail(where, f"operand {operand.name}: unknown access {operand.access!r}")
    return operand


def check_option(where, option):
    """Checks that zero is the default, as docs/api.md requires of the fields of option structs."""
    if option.type not in ("int", "float", "bool", "choice", "pair", "device", "generator"):
        fail(where, f"option {option.name}: a {option.type} cannot be an option")
    if option.type == "bool" and option.default:
        fail(where, f"option {option.name}: a bool that is true by default must be inverted")
    if option.type == "choice" and option.default:
        fail(where, f"option {option.name}: the default must be the first choice")
    if option.type in ("int", "float", "pair") and option.default != 0 and not option.zero_flag:
        fail(where, f"option {option.name}: 0 does not mean its default {option.default}; make it a parameter, invert it, or "
                    "give it zero_flag")
    if option.zero_is_none and (option.type != "int" or option.default):
        fail(where, f"option {option.name}: zero_is_none is for an int")
    if option.zero_flag and (option.default == 0 or option.type == "pair"):
        fail(where, f"option {option.name}: zero_flag is for defaults other than 0")


def read_attribute(where, value, role):
    check_keys(where, value, ATTRIBUTE_KEYS)
    attribute = Attribute(
        name=value["name"],
        type=value["type"],
        role="fixed" if "fixed" in value else role,
        default=value.get("fixed", value.get("default", 0)),
        extra=value.get("extra", False),
        doc=value.get("doc", ""),
        choices=value.get("choices", []),
        zero_flag=value.get("zero_flag", False),
        passed_as=value.get("passed_as", ""),
        free=value.get("free", False),
        zero_is_none=value.get("zero_is_none", False),
    )
    if attribute.type not in TYPES:
        fail(where, f"attribute {attribute.name}: unknown type {attribute.type!r}")
    if attribute.role == "parameter" and "default" in value:
        fail(where, f"attribute {attribute.name}: a parameter has no default; make it an option")
    if (attribute.type == "choice") != bool(attribute.choices):
        fail(where, f"attribute {attribute.name}: choices go with type choice")
    if attribute.role != "fixed" and not attribute.doc:
        fail(where, f"attribute {attribute.name}: no doc")
    if attribute.role == "option":
        check_option(where, attribute)
    return attribute


def read_dtypes(where, value):
    if isinstance(value, str):
        if value not in DTYPE_GROUPS:
            fail(where, f"unknown group of dtypes {value!r}")
        return list(DTYPE_GROUPS[value])
    for dtype in value:
        if dtype not in DTYPES:
            fail(where, f"unknown dtype {dtype!r}")
    return [d for d in DTYPES if d in value]


def check_call(where, what, text, attributes, operand=calls.OPERAND):
    flaw = calls.flaw(text, {a.name for a in attributes if a.in_struct}, operand)
    if flaw:
        fail(where, f"{what} {text!r}: {flaw}")


def check_errors(where, key, table, attributes):
    """errors.SHAPE_MISMATCH."when" = { "a call that provokes it" = "part of the message" }, one line per cause."""
    if not isinstance(table, dict) or not all(isinstance(causes, dict) for causes in table.values()):
        fail(where, f'{key} is a table: {key}.SHAPE_MISMATCH."when" = {{ "call" = "part of the message" }}')
    for status, causes in table.items():
        if status not in STATUSES:
            fail(where, f"{key}: unknown status {status!r}")
        for when, made in causes.items():
            if not when or when.endswith("."):
                fail(where, f"{key}: {when!r} is no clause that fits into parentheses")
            if not isinstance(made, dict) or not made or not all(isinstance(part, str) and part for part in made.values()):
                fail(where, f'{key}: nothing provokes {when!r}; add = {{ "call" = "part of the message" }}')
            for call in made:
                check_call(where, key, call, attributes)


def texts(value):
    """A list of texts, from one text or a list."""
    return [value] if isinstance(value, str) else value


def check_example(where, entry):
    for example in entry.examples:
        check_call(where, "example", example, entry.attributes)
    if not entry.examples and not entry.is_elementwise:
        fail(where, "no example: a call that the op accepts")


def check_gradient_cases(entry):
    where = f"{entry.family}.toml [{entry.scalar_of or entry.name}]"
    for case in entry.gradient_cases:
        check_call(where, "gradient_cases", case, entry.attributes, calls.VARIABLE)
    if isinstance(entry.gradient, dict) and entry.gradient and not entry.gradient_cases:
        fail(where, f"no gradient case{' of ' + entry.name if entry.scalar_of else ''}: a call that its gradient is checked with")


def read_expressions(where, value):
    """(expressions, attribute that chooses among them or ""): a text, or { attribute = [a text per choice] }."""
    if not isinstance(value, dict):
        return [value] if value else [], ""
    if len(value) != 1:
        fail(where, "one attribute chooses among expressions")
    (attribute, texts), = value.items()
    return texts, attribute


def read_entry(family, name, table, defaults):
    where = f"{family}.toml [{name}]"
    check_keys(where, table, ENTRY_KEYS)
    shared_options = defaults.get("options", [])
    table = {**defaults, **table, "options": table.get("options", []) + shared_options}
    if not table.get("summary"):
        fail(where, "no summary")
    attributes = [read_attribute(where, a, "parameter") for a in table.get("attributes", [])]
    attributes += [read_attribute(where, o, "option") for o in table["options"]]
    expressions, chosen_by = read_expressions(where, table.get("expression", ""))
    ulp = table.get("ulp", 0 if expressions else None)
    entry = Entry(
        name=name,
        family=family,
        summary=table["summary"],
        operands=[read_operand(where, o) for o in table.get("operands", [])],
        outputs=table.get("outputs", ["output"]),
        attributes=attributes,
        struct=table.get("struct", ""),
        promotion=table.get("promotion", "none"),
        result=table.get("result", "rule"),
        dtypes=read_dtypes(where, table.get("dtypes", "all")),
        forms=table.get("forms", []),
        expressions=expressions,
        chosen_by=chosen_by,
        shortcuts=table.get("shortcuts", {}),
        expression_bool=table.get("expression_bool", ""),
        infer=table.get("infer", ""),
        kernel=table.get("kernel", ""),
        gradient=table.get("gradient", ""),
        gradient_cases=table.get("gradient_cases", []),
        oracle=table.get("oracle", name),
        ulp=ulp,
        ulp_f64=table.get("ulp_f64", ulp),
        ulp_of=table.get("ulp_of", ""),
        cost=table.get("cost", "medium"),
        errors=table.get("errors", {}),
        late_errors=table.get("late_errors", {}),
        examples=texts(table.get("example", [])),
        source=table.get("source", ""),
        alias=table.get("alias", bool(expressions)),
        broadcasts=table.get("broadcasts", False),
        crosses_devices=table.get("crosses_devices", False),
        random=table.get("random", False),
        redraws=table.get("redraws", False),
        late_shape=table.get("late_shape", False),
        skips=table.get("skips", ""),
        layout=table.get("layout", ""),
        last_where=table.get("last_where", ""),
        wraps=table.get("wraps", False),
        from_end=table.get("from_end", False),
        bench=table.get("bench", []),
    )
    check_entry(where, entry)
    return entry


def check_entry(where, entry):
    if not entry.name.isidentifier() or entry.name.endswith("_s") or entry.name.startswith("_"):
        fail(where, "a name is an identifier and does not end in _s")
    if bool(entry.expressions) == bool(entry.kernel):
        fail(where, "an entry has an expression or a kernel")
    if entry.is_elementwise and not (isinstance(entry.ulp, int) and isinstance(entry.ulp_f64, int)):
        fail(where, "an elementwise op has a number for its bound in ulp")
    if entry.is_elementwise and entry.infer:
        fail(where, "elementwise entries need no infer")
    if not entry.is_elementwise and not entry.infer:
        fail(where, "no infer")
    if entry.promotion not in PROMOTIONS:
        fail(where, f"unknown promotion {entry.promotion!r}")
    if entry.result not in RESULTS:
        fail(where, f"unknown result {entry.result!r}")
    if entry.alias not in (True, False, "first"):
        fail(where, f"unknown alias {entry.alias!r}")
    if entry.cost not in COSTS:
        fail(where, f"unknown cost {entry.cost!r}")
    for form in entry.forms:
        if form not in ("scalar", "into", "inplace"):
            fail(where, f"unknown form {form!r}")
    if "scalar" in entry.forms and (not entry.is_elementwise or len(entry.operands) < 2 or entry.attributes):
        fail(where, "scalar forms are made of elementwise entries with two operands or more and no attributes")
    choosing = [a for a in entry.attributes if a.name == entry.chosen_by]
    if entry.chosen_by and [len(a.choices) for a in choosing] != [len(entry.expressions)]:
        fail(where, f"{entry.chosen_by} has to be a choice with an expression each")
    if entry.scalars != entry.attributes[:len(entry.scalars)]:
        fail(where, "numbers that promote come first")
    if entry.shortcuts and "scalar" not in entry.forms:
        fail(where, "shortcuts are for numbers of a scalar form")
    if "inplace" in entry.forms and entry.result == "bool":
        fail(where, "a comparison cannot be written in place")
    if entry.skips and entry.skips not in [o.name for o in entry.operands if o.kind == "list"]:
        fail(where, f"skips {entry.skips!r}, which is no list")
    if entry.layout:
        check_layout(where, entry)
    if entry.last_where and (not entry.layout or [a.type for a in entry.options if a.name == entry.last_where] != ["bool"]):
        fail(where, "last_where names a bool option, of an op with a layout")
    if isinstance(entry.random, str) and [a.type for a in entry.struct_attributes if a.name == entry.random] != ["float"]:
        fail(where, f"random names {entry.random!r}, which is no float option")
    if entry.redraws:
        check_redraws(where, entry)
    names = [o.name for o in entry.operands] + [a.name for a in entry.attributes]
    if len(set(names)) != len(names):
        fail(where, "a name is used twice")
    if isinstance(entry.gradient, dict):
        for operand in entry.gradient:
            if operand not in [o.name for o in entry.operands]:
                fail(where, f"gradient of unknown operand {operand!r}")
    if entry.outputs and entry.forms and any(o.access == "mut" for o in entry.operands):
        fail(where, "an entry that writes operands and outputs has no forms with a target")
    check_errors(where, "errors", entry.errors, entry.attributes)
    check_errors(where, "late_errors", entry.late_errors, entry.attributes)
    check_example(where, entry)
    if not entry.struct and not entry.is_elementwise and any(not a.extra for a in entry.struct_attributes):
        fail(where, "attributes that the kernel reads need `struct`")


def check_redraws(where, entry):
    kinds = {a.name: a.type for a in entry.struct_attributes}
    names = list(kinds)
    if kinds.get("seed") != "int" or kinds.get("counter") != "int" or names.index("counter") != names.index("seed") + 1:
        fail(where, "redraws is for ops with the int attributes seed and, after it, counter")
    if isinstance(entry.redraws, str) and kinds.get(entry.redraws) != "float":
        fail(where, f"redraws names {entry.redraws!r}, which is no float option")


def check_layout(where, entry):
    names = [o.name for o in entry.operands]
    if entry.layout not in names:
        fail(where, f"layout of unknown operand {entry.layout!r}")
    kinds = [o.kind for o in entry.operands[:names.index(entry.layout) + 1]]
    if entry.is_elementwise or entry.late_shape or "list" in kinds[:-1] or kinds[-1] == "optional":
        fail(where, "layout names a tensor or the first list, of an op that is not elementwise and not late")


def scalar_form(entry):
    """The `_s` entry: the last operand becomes an attribute. It gets the gradient cases that give this operand as an attribute."""
    gradient = entry.gradient
    right = entry.operands[-1].name
    if isinstance(gradient, dict):
        gradient = {o: f for o, f in gradient.items() if o != right}
    value = Attribute(name=right, type="scalar", role="parameter", doc="The right side.")
    return Entry(**{
        **entry.__dict__,
        "name": entry.name + "_s",
        "summary": entry.summary.rstrip(".") + f". {right} is a number.",
        "operands": entry.operands[:-1],
        "attributes": [value],
        "gradient": gradient,
        "gradient_cases": [c for c in entry.gradient_cases if right in calls.names(c)],
        "forms": [f for f in entry.forms if f != "scalar"],
        "scalar_of": entry.name,
        "bench": [],
    })


def load(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def read_family(path):
    tables = load(path)
    family = pathlib.Path(path).stem
    defaults = tables.pop("defaults", {})
    entries = []
    for name, table in tables.items():
        entry = read_entry(family, name, table, defaults)
        entries.append(entry)
        if "scalar" in entry.forms:
            entries.append(scalar_form(entry))
            entry.gradient_cases = [c for c in entry.gradient_cases if c not in entries[-1].gradient_cases]
    for entry in entries:
        check_gradient_cases(entry)
    return entries


def read_composition(name, table):
    """The entry of a composition. It has no kernel, so all its attributes are `extra`."""
    where = f"{COMPOSITIONS}.toml [{name}]"
    check_keys(where, table, COMPOSITION_KEYS)
    counted = table.get("output_count", "")
    attributes = [{**a, "extra": True} for a in table.get("attributes", [])]
    options = [{**o, "extra": True} for o in table.get("options", [])]
    plain = {key: value for key, value in table.items() if key != "output_count"}
    plain |= {"attributes": attributes, "options": options, "infer": "none", "kernel": "none"}
    entry = read_entry(COMPOSITIONS, name, plain, {})
    lists = [o.name for o in entry.operands if o.kind == "list"]
    if counted and counted not in lists + [a.name for a in entry.attributes if a.type == "int"]:
        fail(where, f"output_count is {counted!r}, which is neither a list nor a number")
    entry.output_count = counted
    check_gradient_cases(entry)
    return entry


def read_compositions(paths):
    """The functions of <eddy/compose.h> and <eddy/view.h> that eddy_call can call."""
    found = [path for path in paths if pathlib.Path(path).stem == COMPOSITIONS]
    return [read_composition(name, table) for path in found for name, table in load(path).items()]


def read_all(paths):
    """All ops of the files, families in alphabetical order, which determines the ids."""
    paths = [path for path in paths if pathlib.Path(path).stem not in (COMPOSITIONS, CHAINS)]
    entries = [e for path in sorted(paths, key=lambda p: pathlib.Path(p).stem) for e in read_family(path)]
    seen = {}
    for entry in entries:
        if entry.name in seen:
            fail(f"{entry.family}.toml [{entry.name}]", f"is in {seen[entry.name]}.toml too")
        seen[entry.name] = entry.family
    return entries
