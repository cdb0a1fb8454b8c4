"""docs/pytorch.md: Eddy's function for each PyTorch name, generated from the op list, the headers and names.py."""

import re

import header
from manual import COMMENT, HEADERS, cell
from names import NAMES, OWN

HEAD = """# Coming from PyTorch

Made from the op list, `<eddy/view.h>` and the names of `functional/generate/names.py` by `python3 functional/generate/main.py pytorch docs/pytorch.md
functional/ops/*.toml`; not to be edited. PyTorch's names and semantics hold where nothing else is said: broadcasting, promotion, views, NaN, negative axes.

One step of training, in both:

```python
y = torch.relu(F.linear(x, w1, b1))
loss = F.cross_entropy(F.linear(y, w2, b2), labels)
loss.backward()
with torch.no_grad():
    for p in params:
        p -= 0.1 * p.grad
        p.grad = None
print(loss.item())
```

<!-- given: eddy_tensor *x, *w1, *b1, *w2, *b2, *labels -->
```c
eddy_scope *scope = eddy_scope_begin();
eddy_tensor *y = eddy_relu(eddy_linear(x, w1, b1));
eddy_tensor *loss = eddy_cross_entropy(eddy_linear(y, w2, b2), labels, NULL);
eddy_backward(loss);
eddy_list params = EDDY_LIST(w1, b1, w2, b2);
eddy_tensor *grads[4];
if (eddy_grads_of(params, grads) == EDDY_OK)
    eddy_sgd_step(params, EDDY_ARRAY(grads), EDDY_S(0.1), NULL);
eddy_grads_zero(params);
printf("%g\\n", eddy_item_f64(loss, NULL));
eddy_scope_end(scope);
```

What is not as one expects:

* **Nothing is collected.** A scope owns what calls return and ends with `eddy_scope_end` ([tutorial.md](tutorial.md), step 2): one round each step.
* **No exceptions.** A failed call returns NULL or a status, and calls given NULL return NULL: look once, at the end ([errors.md](errors.md)).
* **Calls return at once, on the CPU too; reading waits**: time a loop up to an `eddy_sync(EDDY_FOREVER)`.
* **No operators and no overloads.** `x + 2` is `eddy_add_s(x, EDDY_S(2))`, `x[:, 1:3]` is `eddy_slice(x, 1, 1, 3, 1)`.
* **Shapes, axes and lists are values**: `EDDY_SHAPE(2, -1)`, `EDDY_AXES(0, 1)` (`EDDY_ALL_AXES`: all), `EDDY_LIST(a, b)`.
* **Options are a struct or NULL**: `EDDY_OPTIONS(sum, .keeps_dims = true)`. What is left out has the default that `<eddy/ops.h>` names.
* **The dtype is always named** where a tensor is made. A number beside an integer tensor has to fit its dtype ([numbers.md](numbers.md)).
* **No modules, no optimiser objects, no data loader**: parameters and moments are the program's tensors.

## Spelled otherwise

Eddy's functions without `eddy_`.

| PyTorch's name | here | why |
|---|---|---|
"""

OPS_HEAD = """
## Every op

By PyTorch's name; a gradient's own ops (`.._backward`) are left out. Its options follow it; `NULL` takes the defaults.
`_s`: with a number for the last operand, `_into`: with a target, `_inplace`: in the first operand.
"""

PROTOTYPE = re.compile(r"EDDY_API\s+([\w ]+?\*?)\s*\beddy_(\w+)\(([^;]*?)\);", re.S)


def theirs_of(ours, all_ours, theirs):
    """PyTorch's name for one of the functions of a row of NAMES."""
    if re.search(rf"(?<![.\w]){ours}\b", theirs):
        return ours
    parts = theirs.split(", ")
    return parts[all_ours.index(ours)] if len(parts) == len(all_ours) else theirs


def theirs():
    """Eddy's name -> PyTorch's name, if they differ."""
    found = {}
    for name, row, _ in NAMES:
        for ours in row.split():
            found.setdefault(ours, theirs_of(ours, row.split(), name))
    return found


def is_shown(entry):
    return not entry.scalar_of and "_backward" not in entry.name and entry.name not in OWN


def call_of(function):
    names = [name if ctype != "eddy_tensor **" else "&" + name for ctype, name in function.parameters]
    return f"`{function.name}({', '.join(names)})`"


def op_row(entry, has_scalar, names):
    forms = ["_s"] * has_scalar + [f"_{f.form}" for f in header.functions(entry) if f.form]
    options = [f"`{o.name}`" for o in header.option_fields(entry)]
    cells = [names.get(entry.name, entry.name), call_of(header.Function(entry, "")), ", ".join(options), " ".join(f"`{f}`" for f in forms)]
    return "| " + " | ".join(map(cell, cells)) + " |"


def table(rows):
    return ["", "| PyTorch | here | options | forms |", "|---|---|---|---|", *rows]


def families(entries, names):
    scalars = {e.scalar_of for e in entries if e.scalar_of}
    for family in dict.fromkeys(e.family for e in entries):
        own = [e for e in entries if e.family == family and is_shown(e)]
        if own:
            yield from ["", f"### {family}", *table(op_row(e, e.name in scalars, names) for e in own)]


def declared(file, wanted=None):
    """(name, names of the parameters) of each function of a header."""
    text = COMMENT.sub("", (HEADERS / file).read_text(encoding="utf-8"))
    for _, name, parameters in PROTOTYPE.findall(text):
        if wanted is None or name in wanted:
            yield name, [re.search(r"(\w+)\s*$", p).group(1) for p in parameters.split(",")]


def declared_rows(functions, names):
    for name, parameters in functions:
        yield "| " + " | ".join([cell(names.get(name, name)), f"`eddy_{name}({', '.join(parameters)})`", "", ""]) + " |"


def emit(entries, compositions=()):
    names = theirs()
    lines = [HEAD + "\n".join(f"| {cell(name)} | {' '.join(f'`{n}`' for n in ours.split())} | {why}. |" for name, ours, why in NAMES), OPS_HEAD.rstrip("\n")]
    lines += families(entries, names)
    lines += ["", "### views and parts", *table(declared_rows(declared("view.h"), names))]
    composed = {c.name for c in compositions}
    lines += ["", "### made of ops", *table(declared_rows(declared("compose.h", composed), names))]
    lines += ["", "## Not PyTorch's", "", "| op | what |", "|---|---|"]
    lines += [f"| `eddy_{name}` | {cell(what)} |" for name, what in OWN.items()]
    return "\n".join(lines) + "\n"
