"""functional/ops.c: the public functions, which pass operands and attributes to the interpreter."""

from arguments import path
from header import functions, option_fields
from text import NOTICE


def checked_parameter(entry, *arguments):
    """The arguments of a C call that checks a parameter: `arguments`, then the origin and operands for its message."""
    joins = any(o.kind == "list" for o in entry.operands)
    inputs = "NULL, 0" if joins or not entry.operands else f"inputs, {len(entry.operands)}"
    return f"{', '.join(arguments)}, origin, (eddy_list){{{inputs}}})"


def attribute_lines(function, failure):
    """C lines that fill `arguments`."""
    entry = function.entry
    lines = [f"    {entry.arguments} arguments = {{0}};"]
    for attribute in entry.struct_attributes:
        target = f"arguments.{path(entry, attribute)}"
        if attribute.role == "fixed":
            lines += fixed_lines(attribute, target)
        elif attribute.role == "parameter":
            lines += parameter_lines(entry, attribute, target, failure)
        else:
            lines += option_lines(entry, attribute, target)
            if attribute.name == entry.chosen_by:
                lines += checked("eddy_parameter_choice(" + checked_parameter(entry, target, str(len(attribute.choices)), f'"{attribute.name}"'), failure)
    return lines


def fixed_lines(attribute, target):
    if attribute.type == "scalar":
        return [f"    {target} = eddy_scalar_int({attribute.default});"]
    value = "true" if attribute.default is True else attribute.default
    return [f"    {target} = {value};"]


def checked(call, failure):
    """C lines that return if `call` fails, which has then recorded its error."""
    return [f"    eddy_status checked = {call};", "    if (checked != EDDY_OK)", f"        return {failure};"]


def parameter_lines(entry, attribute, target, failure):
    if attribute.type == "axes":
        return checked("eddy_parameter_axes(" + checked_parameter(entry, f"&{attribute.name}", f"&{target}"), failure)
    if attribute.passed_as == "axes":
        return checked("eddy_parameter_axis_list(" + checked_parameter(entry, f"&{attribute.name}", f"&{target}"), failure)
    if attribute.passed_as == "scalar":
        place = f"offsetof({entry.arguments}, {path(entry, attribute)})"
        return [f"    {target} = eddy_parameter_attribute(&eddy_op_{entry.name}, {place}, {attribute.name});"]
    return [f"    {target} = {attribute.name};"]


def option_lines(entry, attribute, target):
    name = attribute.name
    field = f"EDDY_OPTION(options, {name})"
    kind = {"choice": "(int32_t)"}.get(attribute.type, "")
    if attribute.type == "pair":
        return [f"    if (EDDY_HAS_OPTION(options, {name}))", f"        {target} = options->{name};"]
    if not attribute.zero_flag:
        return [f"    if ({field})", f"        {target} = {kind}options->{name};"]
    return [
        f"    {target} = {attribute.default};",
        f"    if ({field} || EDDY_OPTION(options, {name}_is_zero))",
        f"        {target} = {kind}options->{name};",
    ]


def input_lines(entry, failure):
    """C lines that collect the operands, and C texts of `inputs`, `input_count` and `list_counts`."""
    lists = [o for o in entry.operands if o.kind == "list"]
    if not lists:
        if not entry.operands:
            return [], "NULL", "0", "NULL"
        names = ", ".join(o.name for o in entry.operands)
        return [f"    eddy_tensor *inputs[] = {{{names}}};"], "inputs", str(len(entry.operands)), "NULL"
    pieces = ", ".join(f"{o.name}" if o.kind == "list" else f"(eddy_list){{&{o.name}, 1}}" for o in entry.operands)
    counts = ", ".join(f"{o.name}.count" for o in lists)
    return [
        f"    const eddy_list pieces[] = {{{pieces}}};",
        f"    int64_t list_counts[] = {{{counts}}};",
        "    eddy_joined inputs;",
        *checked(f"eddy_joined_init(&inputs, pieces, {len(entry.operands)}, origin)", failure),
    ], "inputs.items", "inputs.count", "list_counts"


def body(function):
    entry = function.entry
    failure = "NULL" if function.returns_tensor else "checked"
    joins = any(o.kind == "list" for o in entry.operands)
    lines = [f"    eddy_origin origin = EDDY_ORIGIN(\"{entry.name}\");"]
    if not function.form and len(entry.outputs) > 1:
        for name in entry.outputs:
            lines += [f"    if (!{name})", f"        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, \"{name} is NULL\");"]
    setup, inputs, count, list_counts = input_lines(entry, failure)
    arguments = "&arguments" if entry.arguments else "NULL"
    filled = attribute_lines(function, failure) if entry.arguments else []
    # Joined lists have to be freed: attributes are checked before, so that a failure has nothing to free.
    lines += filled + setup if joins else setup + filled
    options = {o.type for o in option_fields(entry, function.form)}
    is_simple = function.returns_tensor and not joins and list_counts == "NULL" and not options & {"device", "generator"}
    if is_simple:
        return lines + [f"    return eddy_interpreter_apply_one(&eddy_op_{entry.name}, {inputs}, {count}, {arguments}, origin.address);"]
    fields = [f".op = &eddy_op_{entry.name}", f".inputs = {inputs}", f".input_count = {count}", f".list_counts = {list_counts}",
              f".attributes = {arguments}", ".address = origin.address"]
    if "device" in options:
        lines += ["    eddy_device device = {0};", "    if (EDDY_HAS_OPTION(options, device))", "        device = options->device;"]
        fields.append(".device = device.kind == EDDY_DEVICE_DEFAULT ? NULL : &device")
    if "generator" in options:
        fields.append(".generator = EDDY_OPTION(options, generator) ? options->generator : NULL")
    if function.form:
        target = "target" if function.form == "into" else entry.operands[0].name
        lines.append(f"    eddy_tensor *targets[] = {{{target}}};")
        fields.append(".targets = targets")
    elif len(entry.outputs) == 1:
        lines.append("    eddy_tensor *result = NULL;")
        fields.append(".outputs = &result")
    elif entry.outputs:
        lines.append(f"    eddy_tensor *results[{len(entry.outputs)}];")
        fields.append(".outputs = results")
    lines.append("    eddy_apply apply = {" + ",\n                        ".join(fields) + "};")
    lines.append("    eddy_status status = eddy_interpreter_apply(&apply);")
    if joins:
        lines.append("    eddy_joined_fini(&inputs);")
    if function.returns_tensor:
        return lines + ["    return status == EDDY_OK ? result : NULL;"]
    if not function.form and len(entry.outputs) > 1:
        lines.append("    if (status == EDDY_OK) {")
        lines += [f"        *{name} = results[{i}];" for i, name in enumerate(entry.outputs)]
        lines.append("    }")
    return lines + ["    return status;"]


def emit(entries):
    parts = [
        NOTICE,
        "/* The public functions of ops. */",
        "#include <base/call_site.h>\n#include <base/status.h>\n#include <eddy/ops.h>\n#include <functional/arguments_all.h>\n#include <functional/parameter.h>\n#include <functional/op_table.h>\n"
        "#include <interpreter/call/apply.h>\n",
    ]
    for entry in entries:
        for function in functions(entry):
            parts.append("\n".join([f"{function.declaration} {{", *body(function), "}", ""]))
    return "\n".join(parts)
