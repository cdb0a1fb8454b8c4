/* Registered ops on a CUDA device, on the fake driver (tests/fake_cuda): their kernels get its memory and a stream, and launch by themselves, in order with what is around them. */
#include <base/atomic.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/needed.h>
#include <tests/foreign.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <unistd.h>

#define COUNT 1000
#define BYTES (COUNT * sizeof(float))

static _Atomic int launched, planned, unplanned;
static void *_Atomic stream_seen;

/* ---- copy: y = x; without a kernel for more than one dim ---- */

static eddy_status same_infer(eddy_op_inference *inference) {
    inference->outputs[0] = inference->inputs[0];
    return EDDY_OK;
}

static eddy_status copy_here(const eddy_op_call *call) {
    cr_assert_null(call->stream);
    memcpy(call->views[1].data, call->views[0].data, BYTES);
    return EDDY_OK;
}

static eddy_status copy_there(const eddy_op_call *call) {
    eddy_add_relaxed(&launched, 1);
    eddy_store_relaxed(&stream_seen, call->stream);
    return foreign_copy(call->views[1].data, call->views[0].data, BYTES, call->stream) == 0
               ? EDDY_OK
               : EDDY_KERNEL_FAILED;
}

static eddy_status same_gradient(eddy_backward_call *call) {
    call->results[0] = eddy_mul_s(call->grads[0], EDDY_S(5));
    return EDDY_OK;
}

/* ---- planned: the same through a workspace, with what the plan holds ---- */

/* Holds the length. */
static eddy_status plan(const eddy_op_call *call, eddy_op_plan *to) {
    int64_t *length = malloc(sizeof(int64_t));
    *length = call->views[0].shape[0];
    eddy_add_relaxed(&planned, *length == COUNT);
    to->workspace_bytes = BYTES;
    to->state = length;
    return EDDY_OK;
}

static void unplan(void *state) {
    eddy_add_relaxed(&unplanned, *(int64_t *)state == COUNT);
    free(state);
}

static eddy_status planned_there(const eddy_op_call *call) {
    cr_assert_eq(*(const int64_t *)call->state, call->views[0].shape[0]);
    eddy_add_relaxed(&launched, 1);
    return foreign_copy(call->workspace, call->views[0].data, BYTES, call->stream) == 0 &&
                   foreign_copy(call->views[1].data, call->workspace, BYTES, call->stream) == 0
               ? EDDY_OK
               : EDDY_KERNEL_FAILED;
}

/* ---- blank: target = 0, once x is there ---- */

static eddy_status blank_here(const eddy_op_call *call) {
    memset(call->views[1].data, 0, BYTES);
    return EDDY_OK;
}

static eddy_status blank_there(const eddy_op_call *call) {
    eddy_add_relaxed(&launched, 1);
    return foreign_fill(call->views[1].data, 0, BYTES, call->stream) == 0 ? EDDY_OK
                                                                          : EDDY_KERNEL_FAILED;
}

/* ---- refuse: fails once it has launched something ---- */

static eddy_status refuse_here(const eddy_op_call *call) {
    (void)call;
    return EDDY_INVALID_ARGUMENT;
}

static eddy_status refuse_there(const eddy_op_call *call) {
    (void)foreign_fill(call->views[1].data, 1, BYTES, call->stream);
    return EDDY_INVALID_ARGUMENT;
}

/* ---- nan: y = NaN ---- */

static eddy_status nan_here(const eddy_op_call *call) {
    memset(call->views[1].data, 0xff, BYTES);
    return EDDY_OK;
}

static eddy_status nan_there(const eddy_op_call *call) {
    return foreign_fill(call->views[1].data, 0xff, BYTES, call->stream) == 0 ? EDDY_OK
                                                                             : EDDY_KERNEL_FAILED;
}

/* ---- hold: keeps the launching thread until it is let go ---- */

static _Atomic int calls_held, calls_let_go;

static eddy_status hold_there(const eddy_op_call *call) {
    const int number = eddy_add_relaxed(&calls_held, 1);
    while (eddy_load_acquire(&calls_let_go) <= number)
        usleep(100);
    return copy_there(call);
}

/* ---- capture: leaves the stream capturing ---- */

static eddy_status capture_there(const eddy_op_call *call) {
    return foreign_capture_begin(call->stream, EDDY_CU_CAPTURE_GLOBAL) == 0 ? EDDY_OK
                                                                            : EDDY_KERNEL_FAILED;
}

/* ---- registering ---- */

static const eddy_operand_description operands[] = {{.name = "x"},
                                                    {.name = "target", .is_mut = true}};
static const char *const output = "y";

static void must(eddy_status status) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static void add_op(const char *name, eddy_status (*here)(const eddy_op_call *),
                   eddy_op_kernel there, bool is_mut) {
    const eddy_op_kernel kernels[] = {{.device = EDDY_DEVICE_CPU, .run = here}, there};
    eddy_op_description d = {.size = sizeof(d),
                             .name = name,
                             .operands = operands,
                             .operand_count = is_mut ? 2 : 1,
                             .outputs = &output,
                             .output_count = is_mut ? 0 : 1,
                             .infer = is_mut ? NULL : same_infer,
                             .kernels = kernels,
                             .kernel_count = 2,
                             .backward = is_mut ? NULL : same_gradient};
    must(eddy_op_register(&d));
}

static void add_ops(void) {
    const eddy_device_kind kind = EDDY_DEVICE_CUDA;
    add_op("user.copy", copy_here, (eddy_op_kernel){.device = kind, .run = copy_there}, false);
    add_op(
        "user.planned", copy_here,
        (eddy_op_kernel){.device = kind, .run = planned_there, .prepare = plan, .destroy = unplan},
        false);
    add_op("user.blank", blank_here, (eddy_op_kernel){.device = kind, .run = blank_there}, true);
    add_op("user.refuse", refuse_here, (eddy_op_kernel){.device = kind, .run = refuse_there},
           false);
    add_op("user.capture", copy_here, (eddy_op_kernel){.device = kind, .run = capture_there},
           false);
    add_op("user.hold", copy_here, (eddy_op_kernel){.device = kind, .run = hold_there}, false);
    add_op("user.nan", nan_here, (eddy_op_kernel){.device = kind, .run = nan_there}, false);
}

static eddy_tensor *call(const char *name, eddy_tensor *x) {
    eddy_tensor *y = NULL;
    must(eddy_call(name, EDDY_LIST(x), NULL, &y));
    return y;
}

static void blank(eddy_tensor *x, eddy_tensor *target) {
    must(eddy_call("user.blank", EDDY_LIST(x, target), NULL, NULL));
}

static twin numbers(double begin) {
    eddy_tensor *here = eddy_arange(EDDY_S(begin), EDDY_S(begin + COUNT), EDDY_S(1), EDDY_F32,
                                    EDDY_OPTIONS(arange, .device = EDDY_CPU));
    return (twin){here, eddy_to_device(here, TWIN_THERE)};
}

static void forget_errors(void) {
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
}

/* ---- cases ---- */

Test(cuda_registered, a_kernel_launches_on_the_stream_that_it_gets) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    twin_expect_equal("copy", call("user.copy", x.here), call("user.copy", x.there));
    cr_assert_eq(eddy_load_relaxed(&launched), 1);
    cr_assert_not_null(eddy_load_relaxed(&stream_seen));
    twin_expect_equal("planned", x.here, call("user.planned", x.there));
    twin_expect_equal("planned", x.here, call("user.planned", x.there));
    cr_assert_eq(eddy_load_relaxed(&planned), 1);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* The twins of one element: what a round does, it does on both devices. */
typedef struct values {
    twin items[6];
} values;

static void do_one(values *all, int what, int from, int to) {
    for (int far = 0; far < 2; far++) {
        eddy_tensor *x = far ? all->items[from].there : all->items[from].here,
                    **y = far ? &all->items[to].there : &all->items[to].here;
        if (what == 0)
            *y = call("user.copy", x);
        else if (what == 1)
            *y = call("user.planned", x);
        else if (what == 2)
            blank(x, *y);
        else if (what == 3)
            *y = eddy_add(x, *y);
        else
            must(eddy_mul_inplace(*y, eddy_sub_s(x, EDDY_S(0.5))));
    }
}

/* Ops of both kinds on several streams: values show a wrong order, and the fake a missing wait. */
Test(cuda_registered, calls_are_in_order_with_what_is_around_them, .timeout = 60) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    eddy_stream *streams[3];
    for (int i = 0; i < 3; i++)
        streams[i] = eddy_stream_create(TWIN_THERE, NULL);
    values all;
    for (int i = 0; i < 6; i++)
        all.items[i] = numbers(i);
    for (int round = 0; round < 40; round++) {
        must(eddy_stream_scope_begin(streams[random_below(3)]));
        int from = (int)random_below(6), to = (from + 1 + (int)random_below(5)) % 6;
        do_one(&all, (int)random_below(5), from, to);
        eddy_stream_scope_end();
    }
    for (int i = 0; i < 6; i++)
        twin_expect_equal("value", all.items[i].here, all.items[i].there);
    for (int i = 0; i < 3; i++)
        eddy_stream_release(&streams[i]);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static twin out_of_range(twin x) {
    const int64_t at[] = {0, 2 * COUNT};
    twin index = twin_of(at, EDDY_SHAPE(2), EDDY_I64);
    return (twin){eddy_index_select(x.here, index.here, 0),
                  eddy_index_select(x.there, index.there, 0)};
}

/* It is not called for what has failed, even if that is on its way when it is issued. */
Test(cuda_registered, what_has_failed_is_given_to_no_kernel) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1), bad = out_of_range(x), target = numbers(7), same = numbers(7);
    blank(bad.here, target.here);
    blank(bad.there, target.there);
    twin_expect_error(target.here, target.there);
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(target.there, EDDY_FOREVER, &error), EDDY_SKIPPED);
    cr_assert_eq(eddy_load_relaxed(&launched), 0);
    forget_errors();
    must(eddy_recover(EDDY_LIST(target.there)));
    twin_expect_equal("the target", same.here, target.there);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_registered, a_failure_is_that_of_the_cpu) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1), target = numbers(7), same = numbers(7);
    twin refused = {call("user.refuse", x.here), call("user.refuse", x.there)};
    must(eddy_add_into(target.here, refused.here, target.here));
    must(eddy_add_into(target.there, refused.there, target.there));
    twin_expect_error(refused.here, refused.there);
    twin_expect_error(target.here, target.there);
    forget_errors();
    must(eddy_recover(EDDY_LIST(target.there)));
    twin_expect_equal("the target", same.here, target.there);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* What it has captured does not run, and the stream goes on. */
Test(cuda_registered, a_stream_that_is_left_capturing_fails_the_call) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    cr_assert_eq(eddy_wait(call("user.capture", x.there), EDDY_FOREVER), EDDY_UNSUPPORTED);
    forget_errors();
    twin_expect_equal("what comes later", eddy_neg(x.here), eddy_neg(x.there));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Each is a call of the driver. All is dispatched when the launching thread goes on. */
Test(cuda_registered, launches_that_follow_at_once_share_a_mark, .timeout = 60) {
    enum { CALLS = 400 };
    long (*calls_of)(const char *entry);
    *(void **)&calls_of = fake_cuda_ask("fake_cuda_calls_of");
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    twin sum = {eddy_neg(x.here), eddy_neg(x.there)};
    must(eddy_wait(sum.there, EDDY_FOREVER));
    eddy_tensor *held = call("user.hold", x.there);
    for (int i = 0; i < CALLS; i++)
        sum = (twin){eddy_neg(sum.here), eddy_neg(sum.there)};
    cr_assert_eq(eddy_wait(sum.there, 50000000), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    const long marks = calls_of("cuStreamWriteValue64"), launches = calls_of("cuLaunchKernel");
    eddy_store_release(&calls_let_go, 1);
    must(eddy_wait(held, EDDY_FOREVER));
    twin_expect_equal("the sum", sum.here, sum.there);
    cr_assert_geq(calls_of("cuLaunchKernel") - launches, CALLS);
    cr_assert_leq(calls_of("cuStreamWriteValue64") - marks, CALLS / 4);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Its mark does not wait for the call. */
Test(cuda_registered, what_was_launched_before_a_call_is_over_before_it_returns, .timeout = 60) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    must(eddy_wait(x.there, EDDY_FOREVER));
    eddy_tensor *first = call("user.hold", x.there), *between = eddy_neg(x.there),
                *second = call("user.hold", x.there);
    cr_assert_eq(eddy_wait(second, 50000000), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    eddy_store_release(&calls_let_go, 1);
    must(eddy_wait(between, EDDY_FOREVER));
    cr_assert_not(eddy_is_ready(second));
    eddy_store_release(&calls_let_go, 2);
    must(eddy_wait(first, EDDY_FOREVER));
    must(eddy_wait(second, EDDY_FOREVER));
    twin_expect_equal("what is between", eddy_neg(x.here), between);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_registered, gradients_go_back_through_it) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    eddy_tensor *grads[2];
    for (int far = 0; far < 2; far++) {
        eddy_tensor *leaf = eddy_detach(far ? x.there : x.here);
        must(eddy_requires_grad_set(leaf, true));
        eddy_tensor *y = call("user.planned", eddy_mul(leaf, leaf));
        must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
        grads[far] = eddy_grad_of(leaf);
    }
    twin_expect_equal("gradient", grads[0], grads[1]);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* More plans than are kept of calls that are over. */
static void make_other_plans(void) {
    eddy_scope *scope = eddy_scope_begin();
    for (int64_t more = 1; more <= 300; more++)
        call("user.planned", eddy_zeros(EDDY_SHAPE(COUNT + more), EDDY_F32,
                                        EDDY_OPTIONS(zeros, .device = TWIN_THERE)));
    eddy_scope_end(scope);
}

/* Each run holds the plan once more, and the program as long as it lives. */
Test(cuda_registered, programs_run_it) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add(call("user.planned", call("user.copy", x.there)), x.there);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x.there, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int run = 0; run < 6; run++) {
        if (run == 5)
            make_other_plans();
        twin given = numbers(run);
        eddy_tensor *result;
        must(eddy_program_run(program, EDDY_LIST(given.there), &result));
        twin_expect_equal("run", eddy_add(given.here, given.here), result);
    }
    cr_assert_eq(eddy_load_relaxed(&planned), 1);
    cr_assert_eq(eddy_load_relaxed(&unplanned), 0);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    twin_expect_no_findings();
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status negated(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_neg(inputs.items[0]);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status copied(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return eddy_call("user.copy", inputs, NULL, outputs);
}

/* In the rounds of a program it reads what the same round writes: which may fail, and is given to no kernel then. */
Test(cuda_registered, programs_with_branches_run_it) {
    add_ops();
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1), at = twin_indices(EDDY_I64, EDDY_SHAPE(COUNT), 0, COUNT - 1);
    eddy_tensor *y, *result;
    must(eddy_record_begin(NULL));
    eddy_tensor *picked = call("user.copy", eddy_index_select(x.there, at.there, 0));
    eddy_tensor *is_there = eddy_gt_s(eddy_sum(x.there, EDDY_ALL_AXES, NULL), EDDY_S(0));
    must(eddy_cond(is_there, copied, negated, NULL, EDDY_LIST(picked), 1, NULL, &y));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"x", x.there, EDDY_ROLE_INPUT},
                                                          {"at", at.there, EDDY_ROLE_INPUT},
                                                          {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must(eddy_sync(EDDY_FOREVER)); /* calls of the recording */
    eddy_store_relaxed(&launched, 0);
    must(eddy_program_run(program, EDDY_LIST(x.there, at.there), &result));
    twin_expect_equal("run", eddy_index_select(x.here, at.here, 0), result);
    cr_assert_eq(eddy_load_relaxed(&launched), 2);
    twin bad = twin_indices(EDDY_I64, EDDY_SHAPE(COUNT), COUNT, COUNT + 2);
    must(eddy_program_run(program, EDDY_LIST(x.there, bad.there), &result));
    cr_assert_eq(eddy_error_of(result, EDDY_FOREVER, NULL), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_load_relaxed(&launched), 2);
    eddy_program_release(&program);
    forget_errors();
    eddy_scope_end(scope);
    twin_expect_no_findings();
    cr_assert_eq(eddy_live_count(), 0);
}

Test(cuda_registered, its_results_are_looked_at) {
    add_ops();
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(1);
    eddy_tensor *here = call("user.nan", x.here), *there = call("user.nan", x.there);
    twin_expect_error(here, there);
    twin_expect_equal("copy", x.here, call("user.copy", x.there));
    eddy_scope_end(scope);
    forget_errors();
    twin_expect_no_findings();
}

Test(cuda_registered, late_shapes_are_refused) {
    const eddy_op_kernel kernels[] = {
        {.device = EDDY_DEVICE_CPU, .run = copy_here, .count = (void *)copy_here},
        {.device = EDDY_DEVICE_CUDA, .run = copy_there, .count = (void *)copy_here}};
    eddy_op_description d = {.size = sizeof(d),
                             .name = "user.late",
                             .operands = operands,
                             .operand_count = 1,
                             .outputs = &output,
                             .output_count = 1,
                             .infer = same_infer,
                             .kernels = kernels,
                             .kernel_count = 2,
                             .has_late_shape = true};
    cr_assert_eq(eddy_op_register(&d), EDDY_UNSUPPORTED);
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "late shapes"), "%s", error.message);
}
