/* Ops of the program's own. */
#include <base/atomic.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>

typedef struct blend_attributes {
    double weight;
    int64_t rounds;
    bool fails;
} blend_attributes;

static _Atomic int prepared, destroyed;

static eddy_status blend_infer(eddy_op_inference *inference) {
    if (inference->inputs[0].dtype != EDDY_F32 || inference->inputs[0].shape.rank != 1) {
        snprintf(inference->message, inference->message_bytes, "x must be f32 of rank 1");
        return EDDY_DTYPE_MISMATCH;
    }
    inference->outputs[0] = inference->inputs[0];
    return EDDY_OK;
}

static size_t blend_workspace(const eddy_op_call *call) {
    return (size_t)call->views[0].shape[0] * sizeof(float);
}

static void *blend_prepare(const eddy_op_call *call) {
    static float half = 0.5f;
    eddy_add_relaxed(&prepared, 1);
    return call->views[0].data ? NULL : &half;
}

static void blend_destroy(void *state) {
    (void)state;
    eddy_add_relaxed(&destroyed, 1);
}

/* output = x * weight + 1/2, through the workspace. */
static eddy_status blend_run(const eddy_op_call *call) {
    const blend_attributes *attributes = call->attributes;
    const eddy_op_view *x = &call->views[0], *out = &call->views[1];
    float *copy = call->workspace;
    for (int64_t i = 0; i < x->shape[0]; i++)
        copy[i] = ((const float *)x->data)[i * x->strides[0]] * (float)attributes->weight;
    for (int64_t i = 0; i < x->shape[0]; i++)
        ((float *)out->data)[i * out->strides[0]] = copy[i] + *(const float *)call->state;
    return attributes->fails ? EDDY_NOT_FINITE : EDDY_OK;
}

static const eddy_operand_description blend_operands[] = {{.name = "x"}};
static const char *const blend_outputs[] = {"output"};
static const eddy_attribute_description blend_attribute_rows[] = {
    {.name = "weight",
     .type = EDDY_ATTRIBUTE_FLOAT,
     .offset = offsetof(blend_attributes, weight),
     .default_value = {EDDY_SCALAR_FLOAT, {.floating = 2.0}}},
    {.name = "rounds", .type = EDDY_ATTRIBUTE_INT, .offset = offsetof(blend_attributes, rounds)},
    {.name = "fails", .type = EDDY_ATTRIBUTE_BOOL, .offset = offsetof(blend_attributes, fails)},
};
static const eddy_op_kernel blend_kernels[] = {{.device = EDDY_DEVICE_CPU,
                                                .run = blend_run,
                                                .workspace = blend_workspace,
                                                .prepare = blend_prepare,
                                                .destroy = blend_destroy}};

static eddy_op_description blend_description(const char *name) {
    return (eddy_op_description){.size = sizeof(eddy_op_description),
                                 .name = name,
                                 .summary = "x times weight, plus a half.",
                                 .operands = blend_operands,
                                 .operand_count = 1,
                                 .outputs = blend_outputs,
                                 .output_count = 1,
                                 .attributes = blend_attribute_rows,
                                 .attribute_count = 3,
                                 .attribute_bytes = sizeof(blend_attributes),
                                 .infer = blend_infer,
                                 .kernels = blend_kernels,
                                 .kernel_count = 1};
}

static void register_blend(void) {
    eddy_op_description description = blend_description("test.blend");
    cr_assert_eq(eddy_op_register(&description), EDDY_OK);
}

static eddy_tensor *ones(int64_t count) {
    return eddy_ones(EDDY_SHAPE(count), EDDY_F32, NULL);
}

Test(registered, an_op_runs_with_defaults_attributes_workspace_and_state) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL;
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(ones(5)), NULL, &out), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, NULL, NULL)), 12.5);
    cr_assert_eq(
        eddy_call("test.blend", EDDY_LIST(out), EDDY_ATTRIBUTES({"weight", EDDY_ATTRIBUTE_INT, {.integer = 4}}), &out),
        EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, NULL, NULL)), 52.5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(registered, strided_operands_arrive_as_they_are) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *all = eddy_arange(EDDY_S(0), EDDY_S(10), EDDY_S(1), EDDY_F32, NULL), *out = NULL;
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(eddy_slice(all, 0, 1, 10, 3)), NULL, &out), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, NULL, NULL)), 2 * (1 + 4 + 7) + 1.5);
    eddy_scope_end(scope);
}

Test(registered, refusals_carry_the_rules_sentence) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL;
    eddy_error error;
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(eddy_zeros(EDDY_SHAPE(2), EDDY_I64, NULL)), NULL, &out),
                 EDDY_DTYPE_MISMATCH);
    cr_assert_eq(eddy_error_take(&error), EDDY_DTYPE_MISMATCH);
    cr_assert_str_eq(error.op, "test.blend");
    cr_assert(strstr(error.message, "x must be f32") && strstr(error.message, "i64[2]"), "%s", error.message);
    eddy_scope_end(scope);
}

Test(registered, a_kernels_failure_poisons_its_output_only) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *bad = NULL, *good = NULL;
    cr_assert_eq(
        eddy_call("test.blend", EDDY_LIST(x), EDDY_ATTRIBUTES({"fails", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}), &bad),
        EDDY_OK);
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x), NULL, &good), EDDY_OK);
    double value = 0;
    cr_assert_eq(eddy_read_f64(eddy_sum(good, NULL, NULL), &value), EDDY_OK);
    cr_assert_eq(value, 10);
    cr_assert_eq(eddy_read_f64(eddy_sum(bad, NULL, NULL), &value), EDDY_NOT_FINITE);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_NOT_FINITE);
    cr_assert_str_eq(error.op, "test.blend");
    eddy_scope_end(scope);
}

Test(registered, state_is_made_once_per_attributes_and_shape_and_bounded) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL, *x = ones(4);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x), NULL, &out), EDDY_OK);
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    }
    cr_assert_eq(eddy_load_relaxed(&prepared), 1);
    for (int i = 0; i < 200; i++) {
        eddy_attribute rounds = {"rounds", EDDY_ATTRIBUTE_INT, {.integer = i + 1}};
        cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x), EDDY_ATTRIBUTES(rounds), &out), EDDY_OK);
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    }
    cr_assert_eq(eddy_load_relaxed(&prepared), 201);
    cr_assert_eq(eddy_load_relaxed(&destroyed), 201 - 64);
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(ones(5)), NULL, &out), EDDY_OK);
    cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&prepared), 202);
    eddy_scope_end(scope);
}

/* Adds 1 to an operand in place: no outputs. */
static eddy_status bump_run(const eddy_op_call *call) {
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        ((float *)call->views[0].data)[i * call->views[0].strides[0]] += 1;
    return EDDY_OK;
}

Test(registered, mut_operands_are_written_in_place) {
    eddy_operand_description operand = {.name = "x", .is_mut = true};
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = bump_run};
    eddy_op_description d = {.size = sizeof(d),
                             .name = "test.bump",
                             .operands = &operand,
                             .operand_count = 1,
                             .kernels = &kernel,
                             .kernel_count = 1};
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(3);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(eddy_call("test.bump", EDDY_LIST(x), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(x, NULL, NULL)), 18);
    eddy_scope_end(scope);
}

/* The positive elements: how many is known only after a look at them. */
static eddy_status positive_infer(eddy_op_inference *inference) {
    inference->outputs[0] = (eddy_spec){.dtype = EDDY_F32, .shape = {.rank = 1}};
    return EDDY_OK;
}

static eddy_status positive_count(const eddy_op_call *call, eddy_shape *shapes) {
    const float *x = call->views[0].data;
    shapes[0] = (eddy_shape){.rank = 1};
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        shapes[0].dims[0] += x[i] > 0;
    return EDDY_OK;
}

static eddy_status positive_run(const eddy_op_call *call) {
    const float *x = call->views[0].data;
    float *out = call->views[1].data;
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        if (x[i] > 0)
            *out++ = x[i];
    return EDDY_OK;
}

Test(registered, late_shapes_come_from_count) {
    eddy_operand_description operand = {.name = "x"};
    const char *output = "output";
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = positive_run, .count = positive_count};
    eddy_op_description d = {.size = sizeof(d),
                             .name = "test.positive",
                             .operands = &operand,
                             .operand_count = 1,
                             .outputs = &output,
                             .output_count = 1,
                             .infer = positive_infer,
                             .kernels = &kernel,
                             .kernel_count = 1,
                             .has_late_shape = true};
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_arange(EDDY_S(-3), EDDY_S(5), EDDY_S(1), EDDY_F32, NULL), *out = NULL;
    cr_assert_eq(eddy_call("test.positive", EDDY_LIST(x), NULL, &out), EDDY_OK);
    cr_assert_eq(eddy_dim(out, 0), 4);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, NULL, NULL)), 10);
    eddy_scope_end(scope);
}

Test(registered, bad_descriptions_are_refused_with_a_sentence) {
    eddy_op_description good = blend_description("test.blend"), d;
    cr_assert_eq(eddy_op_register(NULL), EDDY_INVALID_ARGUMENT);
#define REFUSED(status, ...)                                                                                           \
    do {                                                                                                               \
        d = good;                                                                                                      \
        __VA_ARGS__;                                                                                                   \
        cr_assert_eq(eddy_op_register(&d), status, #__VA_ARGS__);                                                      \
        cr_assert_eq(eddy_error_take(NULL), status);                                                                   \
    } while (0)
    eddy_error_take(NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.size = 8);
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = "add");
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = ".add");
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = "add.");
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = "test.a_name_that_is_far_too_long_for_the_record_of_an_error");
    REFUSED(EDDY_INVALID_ARGUMENT, d.operands = NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.operand_count = -1);
    REFUSED(EDDY_INVALID_ARGUMENT, d.output_count = 9);
    REFUSED(EDDY_INVALID_ARGUMENT, d.output_count = 0);
    REFUSED(EDDY_INVALID_ARGUMENT, d.attribute_bytes = 8);
    REFUSED(EDDY_INVALID_ARGUMENT, d.attribute_bytes = 5000);
    REFUSED(EDDY_INVALID_ARGUMENT, d.infer = NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.kernels = NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.has_late_shape = true);
    REFUSED(EDDY_UNSUPPORTED, d.kernel_count = 0);
    cr_assert_eq(eddy_op_register(&good), EDDY_OK);
    REFUSED(EDDY_INVALID_ARGUMENT, (void)0);
}
