/* Ops of the program's own. */
#include <base/atomic.h>
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
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

static const blend_attributes *attributes_of(const eddy_op_call *call) {
    return call->attributes;
}

/* Destroyed plans of so many rounds and more. */
enum { MARKED = 5000 };
/* The plan of so many rounds asks for more workspace than an address space has. */
enum { EXCESSIVE = INT32_MAX };
static _Atomic int marked_destroyed;

typedef struct blend_state {
    float half;
    int64_t rounds;
} blend_state;

/* The state is alive as long as it says half. */
static eddy_status blend_prepare(const eddy_op_call *call, eddy_op_plan *plan) {
    eddy_add_relaxed(&prepared, 1);
    if (attributes_of(call)->rounds < 0)
        return attributes_of(call)->rounds == -1 ? EDDY_UNSUPPORTED : EDDY_OUT_OF_MEMORY;
    cr_assert(plan->size == sizeof(*plan) && !call->views[0].data && !plan->state &&
              plan->workspace_bytes == 0);
    blend_state *state = malloc(sizeof(*state));
    *state = (blend_state){0.5f, attributes_of(call)->rounds};
    plan->state = state;
    plan->workspace_bytes = (size_t)call->views[0].shape[0] * sizeof(float);
    if (state->rounds == EXCESSIVE)
        plan->workspace_bytes = SIZE_MAX;
    plan->cost_ns = 1000;
    return EDDY_OK;
}

static void blend_destroy(void *state) {
    blend_state *blend = state;
    eddy_add_relaxed(&marked_destroyed, blend->rounds >= MARKED);
    blend->half = 0;
    free(state);
    eddy_add_relaxed(&destroyed, 1);
}

/* output = x * weight + 1/2, through the workspace. */
static eddy_status blend_run(const eddy_op_call *call) {
    const blend_attributes *attributes = attributes_of(call);
    const eddy_op_view *x = &call->views[0], *out = &call->views[1];
    float *copy = call->workspace;
    for (int64_t i = 0; i < x->shape[0]; i++)
        copy[i] = ((const float *)x->data)[i * x->strides[0]] * (float)attributes->weight;
    for (int64_t i = 0; i < x->shape[0]; i++)
        ((float *)out->data)[i * out->strides[0]] =
            copy[i] + ((const blend_state *)call->state)->half;
    return attributes->fails ? EDDY_NOT_FINITE : EDDY_OK;
}

static const eddy_operand_description blend_operands[] = {{.name = "x"}};
static const char *const blend_outputs[] = {"output"};
static const eddy_attribute_description blend_attribute_rows[] = {
    {.name = "weight",
     .type = EDDY_ATTRIBUTE_FLOAT,
     .offset = offsetof(blend_attributes, weight),
     .default_value = {.kind = EDDY_SCALAR_FLOAT, .value = {.floating = 2.0}}},
    {.name = "rounds", .type = EDDY_ATTRIBUTE_INT, .offset = offsetof(blend_attributes, rounds)},
    {.name = "fails", .type = EDDY_ATTRIBUTE_BOOL, .offset = offsetof(blend_attributes, fails)},
};
static const eddy_op_kernel blend_kernels[] = {{.device = EDDY_DEVICE_CPU,
                                                .run = blend_run,
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
    cr_assert_eq(eddy_item_f64(eddy_sum(out, EDDY_ALL_AXES, NULL), NULL), 12.5);
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(out),
                           EDDY_ATTRIBUTES({"weight", EDDY_ATTRIBUTE_INT, {.integer = 4}}), &out),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, EDDY_ALL_AXES, NULL), NULL), 52.5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(registered, a_workspace_beyond_any_memory_is_refused) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(
            eddy_call("test.blend", EDDY_LIST(ones(5)),
                      EDDY_ATTRIBUTES({"rounds", EDDY_ATTRIBUTE_INT, {.integer = EXCESSIVE}}),
                      &out),
            EDDY_OUT_OF_MEMORY);
        cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_MEMORY);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(registered, strided_operands_arrive_as_they_are) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *all = eddy_arange(EDDY_S(0), EDDY_S(10), EDDY_S(1), EDDY_F32, NULL), *out = NULL;
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(eddy_slice(all, 0, 1, 10, 3)), NULL, &out),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, EDDY_ALL_AXES, NULL), NULL), 2 * (1 + 4 + 7) + 1.5);
    eddy_scope_end(scope);
}

Test(registered, refusals_carry_the_rules_sentence) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL;
    eddy_error error;
    cr_assert_eq(
        eddy_call("test.blend", EDDY_LIST(eddy_zeros(EDDY_SHAPE(2), EDDY_I64, NULL)), NULL, &out),
        EDDY_DTYPE_MISMATCH);
    cr_assert_eq(eddy_error_take(&error), EDDY_DTYPE_MISMATCH);
    cr_assert_str_eq(error.op, "test.blend");
    cr_assert(strstr(error.message, "x must be f32") && strstr(error.message, "i64[2]"), "%s",
              error.message);
    eddy_scope_end(scope);
}

Test(registered, a_kernels_failure_poisons_its_output_only) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *bad = NULL, *good = NULL;
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x),
                           EDDY_ATTRIBUTES({"fails", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}),
                           &bad),
                 EDDY_OK);
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x), NULL, &good), EDDY_OK);
    double value = 0;
    cr_assert_eq(eddy_read_f64(eddy_sum(good, EDDY_ALL_AXES, NULL), &value, NULL), EDDY_OK);
    cr_assert_eq(value, 10);
    cr_assert_eq(eddy_read_f64(eddy_sum(bad, EDDY_ALL_AXES, NULL), &value, NULL), EDDY_NOT_FINITE);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_NOT_FINITE);
    cr_assert_str_eq(error.op, "test.blend");
    eddy_scope_end(scope);
}

enum { KEPT = 256 };

static eddy_status blend_rounds(eddy_tensor *x, int rounds, eddy_tensor **out) {
    eddy_attribute attribute = {"rounds", EDDY_ATTRIBUTE_INT, {.integer = rounds}};
    return eddy_call("test.blend", EDDY_LIST(x), EDDY_ATTRIBUTES(attribute), out);
}

Test(registered, plans_are_made_once_per_attributes_and_shape_and_bounded) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out = NULL, *x = ones(4);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x), NULL, &out), EDDY_OK);
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    }
    cr_assert_eq(eddy_load_relaxed(&prepared), 1);
    for (int i = 0; i < 400; i++) {
        cr_assert_eq(blend_rounds(x, i + 1, &out), EDDY_OK);
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    }
    cr_assert_eq(eddy_load_relaxed(&prepared), 401);
    cr_assert_eq(eddy_load_relaxed(&destroyed), 401 - KEPT);
    cr_assert_eq(blend_rounds(x, 400 - KEPT + 1, &out), EDDY_OK, "the oldest that is kept");
    cr_assert_eq(eddy_load_relaxed(&prepared), 401);
    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(ones(5)), NULL, &out), EDDY_OK);
    cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&prepared), 402);
    eddy_scope_end(scope);
}

Test(registered, a_plan_that_fails_fails_its_call) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *out = NULL;
    eddy_error error;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(blend_rounds(x, -1, &out), EDDY_UNSUPPORTED);
        cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
        cr_assert_str_eq(error.op, "test.blend");
        cr_assert(strstr(error.message, "prepared") && strstr(error.message, "f32[4]"), "%s",
                  error.message);
    }
    cr_assert_eq(eddy_load_relaxed(&prepared), 1, "UNSUPPORTED is kept in mind");
    for (int i = 0; i < 2; i++)
        cr_assert_eq(blend_rounds(x, -2, &out), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(eddy_load_relaxed(&prepared), 3, "what may pass is tried again");
    cr_assert_eq(blend_rounds(x, 1, &out), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, EDDY_ALL_AXES, NULL), NULL), 10);
    cr_assert_eq(eddy_load_relaxed(&destroyed), 0);
    eddy_error_take(&error);
    eddy_scope_end(scope);
}

/* Calls under way keep their plans, however many; those that were skipped give theirs back as well. */
Test(registered, plans_of_calls_under_way_are_kept_beyond) {
    enum { CALLS = 300 };
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *outs[CALLS], *bad = NULL, *out = NULL;
    eddy_error error;
    cr_assert(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    for (int i = 0; i < CALLS; i++)
        cr_assert_eq(blend_rounds(x, i, &outs[i]), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&destroyed), 0);
    cr_assert_eq(eddy_unmap(x), EDDY_OK);
    for (int i = 0; i < CALLS; i++)
        cr_assert_eq(eddy_item_f64(eddy_sum(outs[i], EDDY_ALL_AXES, NULL), NULL), 10);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(blend_rounds(x, CALLS, &out), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&destroyed), CALLS + 1 - KEPT);

    cr_assert_eq(eddy_call("test.blend", EDDY_LIST(x),
                           EDDY_ATTRIBUTES({"fails", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}),
                           &bad),
                 EDDY_OK);
    for (int i = 0; i < CALLS; i++)
        cr_assert_eq(blend_rounds(bad, 1000 + i, &out), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_NOT_FINITE);
    cr_assert_eq(blend_rounds(x, 2000, &out), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&destroyed), eddy_load_relaxed(&prepared) - KEPT);
    eddy_error_take(&error);
    eddy_scope_end(scope);
}

/* So many that going through all of them for each call would never end; afterwards they go, few look-ups later. */
Test(registered, very_many_plans_of_calls_under_way) {
    enum { CALLS = 20000 };
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *out = NULL;
    cr_assert(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    for (int i = 0; i < CALLS; i++) {
        cr_assert_eq(blend_rounds(x, i, &out), EDDY_OK);
        eddy_release(&out);
    }
    cr_assert_eq(eddy_load_relaxed(&destroyed), 0);
    cr_assert_eq(eddy_unmap(x), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < KEPT; i++)
        cr_assert_eq(blend_rounds(x, CALLS + i, &out), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < KEPT; i++)
        cr_assert_eq(blend_rounds(x, CALLS + KEPT + i, &out), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(blend_rounds(x, CALLS + 2 * KEPT, &out), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&destroyed), eddy_load_relaxed(&prepared) - KEPT);
    eddy_scope_end(scope);
}

/* Calls behind a map, until one finds no memory for its instruction. */
static void refuse_one_at_submission(eddy_tensor *x, int64_t rounds) {
    eddy_tensor *out = NULL;
    cr_assert(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    bool is_refused = false;
    for (int i = 0; i < 5000 && !is_refused; i++) {
        eddy_memory_fail_at(EDDY_MEMORY_NODE, 0, 2);
        is_refused = blend_rounds(x, (int)rounds, &out) != EDDY_OK;
    }
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
    cr_assert(is_refused);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(eddy_unmap(x), EDDY_OK);
}

/* Each allocation of a call fails once: what was planned by then is given back. */
Test(registered, plans_of_calls_that_were_refused_are_given_back) {
    register_blend();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(4), *out = NULL;
    cr_assert_eq(blend_rounds(x, 0, &out), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER),
                 EDDY_OK); /* what a worker still allocates would take the first failure */
    int refused = 0, planned_before = eddy_load_relaxed(&prepared);
    bool was_injected = true;
    for (int64_t n = 0; was_injected; n++) {
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, n, 1);
        refused += blend_rounds(x, MARKED + (int)n, &out) != EDDY_OK;
        was_injected = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    cr_assert_gt(refused, 0);
    refuse_one_at_submission(x, MARKED + 1000);
    int planned = eddy_load_relaxed(&prepared) - planned_before;
    for (int i = 0; i < KEPT; i++)
        cr_assert_eq(blend_rounds(x, 1 + i, &out), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(blend_rounds(x, KEPT + 1, &out), EDDY_OK);
    cr_assert_eq(eddy_load_relaxed(&marked_destroyed), planned, "of %d", planned);
    eddy_scope_end(scope);
}

/* An op that has no outputs, and writes its operand. */
static void register_in_place(const char *name, eddy_status (*run)(const eddy_op_call *call)) {
    eddy_operand_description operand = {.name = "x", .is_mut = true};
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = run};
    eddy_op_description d = {.size = sizeof(d),
                             .name = name,
                             .operands = &operand,
                             .operand_count = 1,
                             .kernels = &kernel,
                             .kernel_count = 1};
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
}

/* Adds 1 in place. */
static eddy_status bump_run(const eddy_op_call *call) {
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        ((float *)call->views[0].data)[i * call->views[0].strides[0]] += 1;
    return EDDY_OK;
}

Test(registered, mut_operands_are_written_in_place) {
    register_in_place("test.bump", bump_run);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(3);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(eddy_call("test.bump", EDDY_LIST(x), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(x, EDDY_ALL_AXES, NULL), NULL), 18);
    eddy_scope_end(scope);
}

static eddy_status refuse_run(const eddy_op_call *call) {
    (void)call;
    return EDDY_OUT_OF_RANGE;
}

Test(registered, a_kernel_that_fails_says_its_status_alone) {
    register_in_place("test.refuse", refuse_run);
    eddy_scope *scope = eddy_scope_begin();
    eddy_error error;
    eddy_tensor *x = ones(3);
    cr_assert_eq(eddy_call("test.refuse", EDDY_LIST(x), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_TORN);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "test.refuse: index out of range (test.refuse(f32[3]))");
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
    eddy_op_kernel kernel = {
        .device = EDDY_DEVICE_CPU, .run = positive_run, .count = positive_count};
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
    cr_assert_eq(eddy_dim_of(out, 0), 4);
    cr_assert_eq(eddy_item_f64(eddy_sum(out, EDDY_ALL_AXES, NULL), NULL), 10);
    eddy_scope_end(scope);
}

Test(registered, bad_descriptions_are_refused_with_a_sentence) {
    eddy_op_description good = blend_description("test.blend"), d;
    cr_assert_eq(eddy_op_register(NULL), EDDY_INVALID_ARGUMENT);
#define REFUSED(status, ...)                                                                       \
    do {                                                                                           \
        d = good;                                                                                  \
        __VA_ARGS__;                                                                               \
        cr_assert_eq(eddy_op_register(&d), status, #__VA_ARGS__);                                  \
        cr_assert_eq(eddy_error_take(NULL), status);                                               \
    } while (0)
    eddy_error_take(NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.size = 8);
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = NULL);
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = "add");
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = ".add");
    REFUSED(EDDY_INVALID_ARGUMENT, d.name = "add.");
    REFUSED(EDDY_INVALID_ARGUMENT,
            d.name = "test.a_name_that_is_far_too_long_for_the_record_of_an_error");
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
