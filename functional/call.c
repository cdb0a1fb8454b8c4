/* eddy_call: attributes by name into an op's struct, operands into the interpreter's form. */
#include <eddy/call.h>

#include <base/memory.h>
#include <base/status.h>
#include <functional/composition.h>
#include <functional/parameter.h>
#include <interpreter/call/apply.h>
#include <stdalign.h>
#include <string.h>

#define LIST_MAX 32
#define NAME_MAX_BYTES 64
#define ATTRIBUTE_BYTES_MAX 4096

typedef enum form { FORM_NEW, FORM_INTO, FORM_INPLACE } form;

typedef struct request {
    const eddy_op *op;
    const eddy_composition *composition; /* the composition of the op; NULL for an op of the list */
    form form;
    eddy_origin origin; /* of "call", until the op is found */
    eddy_list inputs;   /* without targets */
    eddy_tensor *const *targets;
    int64_t list_counts[LIST_MAX];
    const eddy_device *device;
    eddy_generator *generator;
    char *arguments; /* the attribute struct */
} request;

/* ---- the op ---- */

static bool strip(const char *name, const char *suffix, char *base) {
    size_t length = strlen(name), cut = strlen(suffix);
    if (length <= cut || length - cut >= NAME_MAX_BYTES || strcmp(name + length - cut, suffix) != 0)
        return false;
    memcpy(base, name, length - cut);
    base[length - cut] = 0;
    return true;
}

static bool find_op(const char *name, request *r) {
    char base[NAME_MAX_BYTES];
    r->form = FORM_NEW;
    r->op = eddy_op_find(name);
    if (r->op)
        return true;
    r->composition = eddy_composition_find(name);
    if (r->composition) {
        r->op = &r->composition->op;
        return true;
    }
    if (strip(name, "_into", base))
        r->form = FORM_INTO;
    else if (strip(name, "_inplace", base))
        r->form = FORM_INPLACE;
    else
        return false;
    r->op = eddy_op_find(base);
    /* An op without operands, or with a late shape, has no target. */
    if (r->op && (r->op->output_count != 1 || r->op->has_late_shape || r->op->operand_count == 0 ||
                  (r->form == FORM_INPLACE && !r->op->allows_alias)))
        r->op = NULL;
    return r->op != NULL;
}

/* ---- attributes ---- */

static eddy_status fail_attribute(const request *r, const char *attribute, const char *what) {
    return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, r->origin, r->inputs, "attribute %s %s",
                               attribute, what);
}

static void put_scalar(char *place, eddy_scalar value) {
    /* Field by field: the padding stays zero, since struct bytes are compared. */
    eddy_scalar *scalar = (eddy_scalar *)(void *)place;
    scalar->kind = value.kind;
    scalar->slot = value.slot;
    if (value.kind == EDDY_SCALAR_FLOAT)
        scalar->value.floating = value.value.floating;
    else
        scalar->value.integer = value.value.integer;
}

static void put_default(const eddy_op_attribute *attribute, char *place) {
    eddy_scalar value = attribute->default_value;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        *(int64_t *)(void *)place = value.value.integer;
        break;
    case EDDY_ATTRIBUTE_FLOAT:
        *(double *)(void *)place = eddy_parameter_f64(value);
        break;
    case EDDY_ATTRIBUTE_BOOL:
        *(bool *)place = value.value.integer != 0;
        break;
    case EDDY_ATTRIBUTE_SCALAR:
        put_scalar(place, value);
        break;
    case EDDY_ATTRIBUTE_DTYPE:
        *(eddy_dtype *)(void *)place = (eddy_dtype)value.value.integer;
        break;
    case EDDY_ATTRIBUTE_AXIS:
    case EDDY_ATTRIBUTE_CHOICE:
        *(int32_t *)(void *)place = (int32_t)value.value.integer;
        break;
    default:
        break; /* zero already */
    }
}

static bool is_narrow(int64_t value) {
    return value >= INT32_MIN && value <= INT32_MAX;
}

/* False if the given type is not accepted. */
static bool put_value(const eddy_op_attribute *attribute, char *place,
                      const eddy_attribute *given) {
    bool is_int = given->type == EDDY_ATTRIBUTE_INT;
    if (given->type != attribute->type && !is_int)
        return false;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        *(int64_t *)(void *)place = given->value.integer;
        return true;
    case EDDY_ATTRIBUTE_FLOAT:
        *(double *)(void *)place = is_int ? (double)given->value.integer : given->value.floating;
        return true;
    case EDDY_ATTRIBUTE_SCALAR:
        put_scalar(place, is_int ? eddy_scalar_int(given->value.integer) : given->value.scalar);
        return true;
    case EDDY_ATTRIBUTE_AXIS:
    case EDDY_ATTRIBUTE_CHOICE:
        *(int32_t *)(void *)place = (int32_t)given->value.integer;
        return is_narrow(given->value.integer);
    case EDDY_ATTRIBUTE_BOOL:
        if (!is_int)
            *(bool *)place = given->value.boolean;
        return !is_int;
    case EDDY_ATTRIBUTE_DTYPE:
        if (!is_int)
            *(eddy_dtype *)(void *)place = given->value.dtype;
        return !is_int;
    case EDDY_ATTRIBUTE_TEXT:
        *(const char **)(void *)place = given->value.text;
        return !is_int && given->value.text;
    case EDDY_ATTRIBUTE_SHAPE:
        if (is_int || given->value.shape.rank > EDDY_RANK_MAX || given->value.shape.rank < 0)
            return false;
        *(eddy_shape *)(void *)place = given->value.shape;
        return true;
    case EDDY_ATTRIBUTE_PAIR:
        *(eddy_pair *)(void *)place =
            is_int ? (eddy_pair){given->value.integer, given->value.integer} : given->value.pair;
        return true;
    default:
        return false;
    }
}

static bool is_creation(const eddy_op *op) {
    return op->operand_count == 0 || op->operands[0].is_spec_only;
}

/* Attributes that no struct holds. */
static bool take_aside(request *r, const eddy_attribute *given) {
    if (given->type == EDDY_ATTRIBUTE_DEVICE && strcmp(given->name, "device") == 0 &&
        is_creation(r->op)) {
        r->device = given->value.device.kind == EDDY_DEVICE_DEFAULT ? NULL : &given->value.device;
        return true;
    }
    if (given->type == EDDY_ATTRIBUTE_GENERATOR && strcmp(given->name, "generator") == 0 &&
        r->op->is_random) {
        r->generator = given->value.generator;
        return true;
    }
    return false;
}

static int32_t find_attribute(const eddy_op *op, const char *name) {
    int32_t i = 0;
    while (i < op->attribute_count &&
           (op->attributes[i].is_fixed || strcmp(op->attributes[i].name, name) != 0))
        i++;
    return i < op->attribute_count ? i : -1;
}

/* The number of a name in a text such as "mean sum none". */
static int32_t choice_count(const eddy_op_attribute *attribute) {
    int32_t count = 1;
    for (const char *c = attribute->choices; *c; c++)
        count += *c == ' ';
    return count;
}

static eddy_status take_attribute(request *r, const eddy_attribute *given, uint64_t *seen) {
    if (!given->name)
        return fail_attribute(r, "NULL", "has no name");
    if (take_aside(r, given))
        return EDDY_OK;
    int32_t i = find_attribute(r->op, given->name);
    if (i < 0)
        return fail_attribute(r, given->name, "is not known");
    if (*seen >> i & 1)
        return fail_attribute(r, given->name, "is given twice");
    *seen |= UINT64_C(1) << i;
    const eddy_op_attribute *attribute = &r->op->attributes[i];
    char *place = r->arguments + attribute->offset;
    if (attribute->type == EDDY_ATTRIBUTE_AXES && given->type == EDDY_ATTRIBUTE_AXES)
        return eddy_parameter_axes(&given->value.axes, (uint32_t *)(void *)place, r->origin,
                                   r->inputs);
    if (!put_value(attribute, place, given))
        return fail_attribute(r, given->name, "has a value of the wrong type, or out of range");
    if (attribute->zero_is_none && *(int64_t *)(void *)place == 0)
        return fail_attribute(r, given->name, "is 0");
    if (attribute->type == EDDY_ATTRIBUTE_CHOICE && attribute->choices)
        return eddy_parameter_choice(*(int32_t *)(void *)place, choice_count(attribute),
                                     given->name, r->origin, r->inputs);
    return EDDY_OK;
}

static eddy_status take_attributes(request *r, const eddy_attributes *given) {
    const eddy_op *op = r->op;
    uint64_t seen = 0;
    for (int32_t i = 0; i < op->attribute_count; i++)
        put_default(&op->attributes[i], r->arguments + op->attributes[i].offset);
    int64_t count = given ? given->count : 0;
    if (count < 0 || (count > 0 && !given->items))
        return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, r->origin, r->inputs,
                                   "the attributes are no array");
    for (int64_t i = 0; i < count; i++) {
        eddy_status status = take_attribute(r, &given->items[i], &seen);
        if (status != EDDY_OK)
            return status;
    }
    for (int32_t i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].is_required && !(seen >> i & 1))
            return fail_attribute(r, op->attributes[i].name, "is missing");
    return EDDY_OK;
}

/* ---- operands ---- */

static eddy_status fail_operands(const request *r, const char *what) {
    eddy_list given = r->inputs.items ? r->inputs : (eddy_list){NULL, 0};
    return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, r->origin, given, "%lld operands %s",
                               (long long)r->inputs.count, what);
}

/* Splits the inputs into operands, lists and the target. */
static eddy_status take_inputs(request *r) {
    const eddy_op *op = r->op;
    if (r->inputs.count < 0 || (r->inputs.count > 0 && !r->inputs.items))
        return fail_operands(r, "are no list");
    if (r->form != FORM_NEW) {
        if (r->inputs.count == 0)
            return fail_operands(r, "have no target");
        if (r->form == FORM_INTO)
            r->inputs.count--;
        r->targets = r->form == FORM_INTO ? &r->inputs.items[r->inputs.count] : &r->inputs.items[0];
    }
    int64_t lists = 0;
    for (int32_t i = 0; i < op->operand_count; i++)
        lists += op->operands[i].kind == EDDY_OPERAND_LIST;
    int64_t in_lists = r->inputs.count - (op->operand_count - lists);
    if (in_lists < 0 || (lists == 0 ? in_lists != 0 : in_lists % lists != 0))
        return fail_operands(r, "do not fit the op");
    EDDY_ASSERT(lists <= LIST_MAX);
    for (int64_t i = 0; i < lists; i++)
        r->list_counts[i] = in_lists / lists;
    return EDDY_OK;
}

#undef eddy_call
eddy_status eddy_call(const char *name, eddy_list inputs, const eddy_attributes *attributes,
                      eddy_tensor **outputs) {
    alignas(16) char arguments[ATTRIBUTE_BYTES_MAX];
    request r = {.origin = EDDY_ORIGIN("call"), .inputs = inputs, .arguments = arguments};
    if (!name || !find_op(name, &r))
        return eddy_fail(EDDY_NOT_FOUND, r.origin, "there is no op %s", name ? name : "NULL");
    const eddy_op *op = r.op;
    r.origin.op = op->name;
    EDDY_ASSERT(op->attribute_bytes <= sizeof(arguments) && op->attribute_count <= 64);
    memset(arguments, 0, op->attribute_bytes);
    eddy_status status = take_inputs(&r);
    if (status == EDDY_OK)
        status = take_attributes(&r, attributes);
    if (status != EDDY_OK)
        return status;
    if (r.form == FORM_NEW && op->output_count > 0 && !outputs)
        return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, r.origin, r.inputs, "outputs is NULL");
    if (r.composition)
        return r.composition->run(r.inputs, arguments, outputs, r.origin);
    eddy_apply apply = {.op = op,
                        .inputs = r.inputs.items,
                        .input_count = r.inputs.count,
                        .list_counts = r.list_counts,
                        .attributes = op->attribute_bytes ? arguments : NULL,
                        .device = r.device,
                        .generator = r.generator,
                        .targets = r.targets,
                        .outputs = r.targets ? NULL : outputs,
                        .address = r.origin.address};
    return eddy_interpreter_apply(&apply);
}
