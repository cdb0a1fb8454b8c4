#include <program/draw_ops.h>

#include <interpreter/call/general_call.h>
#include <stddef.h>
#include <string.h>

typedef struct drawn_attributes {
    int64_t seed, counter;
} drawn_attributes;

static void run_get(const eddy_kernel_call *call) {
    const eddy_op_view *drawn = &call->views[0];
    int64_t *words = drawn->data;
    const drawn_attributes *attributes = call->attributes;
    words[0] = attributes->seed;
    words[drawn->strides[0]] = attributes->counter;
}

/* Where the words are is the replay's affair (steps.c). */
static void run_set(const eddy_kernel_call *call) {
    (void)call;
}

static eddy_status infer_get(eddy_infer *infer) {
    infer->outputs[0] = (eddy_spec){.dtype = EDDY_I64, .shape = {.rank = 1, .dims = {2}}};
    return EDDY_OK;
}

static eddy_status infer_set(eddy_infer *infer) {
    const eddy_spec *drawn = &infer->inputs[0];
    if (drawn->dtype != EDDY_I64)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "seed and counter are i64");
    return drawn->shape.rank == 1 && drawn->shape.dims[0] == 2
               ? EDDY_OK
               : eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "a draw is a seed and a counter");
}

static const eddy_kernel get_kernel = {.name = "draw_get", .run = run_get},
                         set_kernel = {.name = "draw_set", .run = run_set};
static const eddy_kernel *const get_kernels[] = {&get_kernel};
static const eddy_kernel *const set_kernels[] = {&set_kernel};
static const eddy_op_operand set_operands[] = {{.name = "drawn", .kind = EDDY_OPERAND_TENSOR}};
static const char *const get_outputs[] = {"drawn"};
static const eddy_op_attribute attributes[] = {
    {.name = "seed", .type = EDDY_ATTRIBUTE_INT, .offset = offsetof(drawn_attributes, seed)},
    {.name = "counter", .type = EDDY_ATTRIBUTE_INT, .offset = offsetof(drawn_attributes, counter)},
};

#define DRAW_OP(text, its_infer, its_kernels)                                                      \
    .name = (text), .id = EDDY_OP_REGISTERED, .attributes = attributes, .attribute_count = 2,      \
    .attribute_bytes = sizeof(drawn_attributes),                                                   \
    .kernel_attribute_bytes = sizeof(drawn_attributes), .redraws = 1, .result = EDDY_RESULT_RULE,  \
    .infer = (its_infer), .kernels = (its_kernels)

static const eddy_op draw_get = {DRAW_OP("draw_get", infer_get, get_kernels),
                                 .outputs = get_outputs, .output_count = 1},
                     draw_set = {DRAW_OP("draw_set", infer_set, set_kernels),
                                 .operands = set_operands, .operand_count = 1, .may_fail = true};

const eddy_op *eddy_draw_op_find(const char *name) {
    return strcmp(name, draw_get.name) == 0   ? &draw_get
           : strcmp(name, draw_set.name) == 0 ? &draw_set
                                              : NULL;
}

bool eddy_draw_op_sets(const eddy_op *op) {
    return op == &draw_set;
}

bool eddy_draw_ops_has_set(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_draw_op_sets(eddy_code_instruction_at(code, i)->op))
            return true;
    return false;
}

/* ---- calls ---- */

/* No scope owns what the call makes. */
static eddy_status apply_op(eddy_caller *caller, eddy_apply *apply, const void *of) {
    drawn_attributes drawn;
    eddy_scope *scope = caller->scope;
    memcpy(&drawn, of, sizeof(drawn));
    apply->attributes = &drawn;
    caller->scope = NULL;
    eddy_status status = eddy_general_call_apply(caller, apply);
    caller->scope = scope;
    return status;
}

eddy_status eddy_draw_op_get(eddy_caller *caller, const eddy_device *device, const void *of,
                             const void *address, eddy_tensor **drawn) {
    eddy_apply apply = {.op = &draw_get, .device = device, .outputs = drawn, .address = address};
    return apply_op(caller, &apply, of);
}

eddy_status eddy_draw_op_set(eddy_caller *caller, eddy_tensor *drawn, const void *of,
                             const void *address) {
    eddy_apply apply = {.op = &draw_set, .inputs = &drawn, .input_count = 1, .address = address};
    return apply_op(caller, &apply, of);
}
