/* Branches and loops: outside of recordings, while they are recorded, and in the programs that come of it. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/print.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>

/* ---- functions ---- */

/* (count, a, b) -> (count - 1, b, a + b) */
static eddy_status fibonacci(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = inputs.items[2];
    outputs[2] = eddy_add(inputs.items[1], inputs.items[2]);
    return outputs[0] && outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

/* Changes the tensors: (count, a, b) -> (count - 1, b, a), by writes in place where it can. */
static eddy_status swap(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    must(eddy_sub_s_inplace(inputs.items[0], EDDY_S(1)));
    outputs[0] = inputs.items[0];
    outputs[1] = inputs.items[2];
    outputs[2] = inputs.items[1];
    return EDDY_OK;
}

static void expect_text(const eddy_program *program, const char *text) {
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    cr_assert_str_eq(printed.text, text);
    eddy_printed_fini(&printed);
}

/* ---- outside of recordings ---- */

Test(control, a_branch_calls_the_function_that_is_due) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *y;
    for (int is_true = 0; is_true < 2; is_true++) {
        eddy_tensor *predicate = truth(is_true);
        must(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x), 1, NULL, &y));
        cr_assert_eq(sum_of(y), is_true ? 6 : 1.5);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, what_a_branch_gives_shares_no_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *y;
    must(eddy_cond(truth(true), same, same, NULL, EDDY_LIST(x), 1, NULL, &y));
    must(eddy_mul_s_inplace(y, EDDY_S(5)));
    cr_assert_eq(sum_of(x), 3);
    cr_assert_eq(sum_of(y), 15);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, a_loop_carries_tensors) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *one = scalar(1), *out[3];
    int64_t before = eddy_live_count();
    must(eddy_while(is_left, fibonacci, NULL, EDDY_LIST(scalar(10), one, one), NULL, out));
    cr_assert_eq(eddy_live_count(), before + 4, "of the steps nothing is left");
    cr_assert_eq(sum_of(out[1]), 89);
    cr_assert_eq(sum_of(out[2]), 144);
    eddy_tensor *a = scalar(3), *b = scalar(4), *count = scalar(3);
    must(eddy_while(is_left, swap, NULL, EDDY_LIST(count, a, b), NULL, out));
    cr_assert_eq(sum_of(out[1]), 4);
    cr_assert_eq(sum_of(out[2]), 3);
    cr_assert_eq(sum_of(count), 3, "what was given is as it was");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, gradients_go_back_through_what_was_called) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(2), EDDY_S(8), EDDY_F32, NULL), *y, *z;
    eddy_requires_grad_set(x, true);
    must(eddy_while(is_large, half, NULL, EDDY_LIST(x), NULL, &y));
    must(eddy_cond(truth(true), twice, half, NULL, EDDY_LIST(y), 1, NULL, &z));
    must(eddy_backward(eddy_sum(z, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(z), 8);
    cr_assert_eq(sum_of(eddy_grad_of(x)), 1, "2 elements, 2 * 0.5 * 0.5 each");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- programs ---- */

typedef struct running {
    eddy_program *program;
    eddy_program *copy; /* of its text */
} running;

/* The result of the program, which its copy gives too. */
static double run(const running *r, eddy_list inputs) {
    eddy_tensor *results[2];
    must(eddy_program_run(r->program, inputs, &results[0]));
    must(eddy_program_run(r->copy, inputs, &results[1]));
    cr_assert_eq(sum_of(results[0]), sum_of(results[1]));
    return sum_of(results[0]);
}

static void finish(running *r, const eddy_bindings *bindings, const char *what) {
    r->program = end(bindings);
    r->copy = reread(r->program, what);
}

static void release(running *r) {
    eddy_program_release(&r->program);
    eddy_program_release(&r->copy);
}

Test(control, a_branch_is_a_part_of_a_program) {
    eddy_scope *scope = eddy_scope_begin();
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_tensor *x = of(1), *y, *predicate;
        running r;
        must(eddy_record_begin(
            EDDY_OPTIONS(record, .passes = "none", .records_only = records_only)));
        must(is_large(NULL, EDDY_LIST(x), &predicate));
        must(eddy_cond(predicate, half, twice, NULL, EDDY_LIST(x), 1, NULL, &y));
        eddy_tensor *z = eddy_add_s(y, EDDY_S(1));
        finish(&r, EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}), "branch");
        if (!records_only)
            cr_assert_eq(sum_of(z), 9);
        expect_text(r.program, "eddy program, version 1, 10 instructions\n"
                               "input x f32[3]\n"
                               "output z f32[3] of %5\n"
                               "%0 f32[] = sum(x f32[3], axes = [0], keeps_dims = false)\n"
                               "%1 bool[] = gt_s(%0 f32[], b = 4.0)\n"
                               "if(%1 bool[])\n"
                               "%2 f32[3] = mul_s(x f32[3], b = 0.5)\n"
                               "%3 f32[3] = clone(%2 f32[3])\n"
                               "else()\n"
                               "%4 f32[3] = mul_s(x f32[3], b = 2.0)\n"
                               "copy_into(%4 f32[3], set %3 f32[3])\n"
                               "end_if()\n"
                               "%5 f32[3] = add_s(%3 f32[3], b = 1.0)\n");
        cr_assert_eq(run(&r, EDDY_LIST(of(1))), 9);
        cr_assert_eq(run(&r, EDDY_LIST(of(10))), 18);
        release(&r);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, a_loop_is_a_part_of_a_program) {
    eddy_scope *scope = eddy_scope_begin();
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_tensor *count = scalar(5), *one = scalar(1), *out[3];
        running r;
        must(eddy_record_begin(
            EDDY_OPTIONS(record, .passes = "none", .records_only = records_only)));
        must(eddy_while(is_left, fibonacci, NULL, EDDY_LIST(count, one, one),
                        EDDY_OPTIONS(while, .most_steps = 40), out));
        finish(&r,
               EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}, {"last", out[2], EDDY_ROLE_OUTPUT}),
               "loop");
        if (!records_only)
            cr_assert_eq(sum_of(out[2]), 13);
        expect_text(r.program, "eddy program, version 1, 13 instructions\n"
                               "input count f32[]\n"
                               "output last f32[] of %3\n"
                               "captured %0 4 bytes\n"
                               "%1 f32[] = clone(count f32[])\n"
                               "%2 f32[] = clone(%0 f32[])\n"
                               "%3 f32[] = clone(%0 f32[])\n"
                               "loop(most_steps = 40)\n"
                               "%4 bool[] = gt_s(%1 f32[], b = 0.0)\n"
                               "loop_while(%4 bool[])\n"
                               "%5 f32[] = sub_s(%1 f32[], b = 1.0)\n"
                               "%6 f32[] = add(%2 f32[], %3 f32[])\n"
                               "%7 f32[] = clone(%3 f32[])\n"
                               "copy_into(%5 f32[], set %1 f32[])\n"
                               "copy_into(%7 f32[], set %2 f32[])\n"
                               "copy_into(%6 f32[], set %3 f32[])\n"
                               "end_loop()\n");
        cr_assert_eq(run(&r, EDDY_LIST(scalar(0))), 1);
        cr_assert_eq(run(&r, EDDY_LIST(scalar(10))), 144);
        release(&r);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, tensors_that_change_places_do) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *count = scalar(3), *a = scalar(3), *b = scalar(4), *out[3];
    running r;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_left, swap, NULL, EDDY_LIST(count, a, b), NULL, out));
    finish(&r,
           EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_INPUT},
                         {"b", b, EDDY_ROLE_INPUT},
                         {"out", eddy_sub(out[1], out[2]), EDDY_ROLE_OUTPUT}),
           "swap");
    cr_assert_eq(sum_of(count), 3);
    for (int n = 0; n < 5; n++)
        cr_assert_eq(run(&r, EDDY_LIST(scalar(n), scalar(10), scalar(1))), n % 2 ? -9 : 9);
    release(&r);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A step that goes on while its results are small, and adds to state only now and then. */
typedef struct nest {
    eddy_tensor *calls, *skipped;
} nest;

static eddy_status count_up(void *context, eddy_list inputs, eddy_tensor **outputs) {
    nest *n = context;
    must(eddy_add_s_inplace(n->calls, EDDY_S(1)));
    return done(outputs, eddy_add_s(inputs.items[0], EDDY_S(3)));
}

static eddy_status count_skipped(void *context, eddy_list inputs, eddy_tensor **outputs) {
    nest *n = context;
    must(eddy_add_s_inplace(n->skipped, EDDY_S(1)));
    return done(outputs, eddy_add_s(eddy_mul_s(inputs.items[0], EDDY_S(2)), EDDY_S(1)));
}

static eddy_status small_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *rest = eddy_remainder_s(inputs.items[0], EDDY_S(2));
    return eddy_cond(eddy_gt_s(rest, EDDY_S(0)), count_up, count_skipped, context, inputs, 1, NULL,
                     outputs);
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_lt_s(inputs.items[0], EDDY_S(200)));
}

Test(control, branches_lie_in_loops_and_write_state) {
    eddy_scope *scope = eddy_scope_begin();
    nest n = {scalar(0), scalar(0)}, eager = {scalar(0), scalar(0)};
    eddy_tensor *x = scalar(1), *y, *z;
    running r;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_small, small_step, &n, EDDY_LIST(x), NULL, &y));
    finish(&r,
           EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                         {"calls", n.calls, EDDY_ROLE_STATE},
                         {"skipped", n.skipped, EDDY_ROLE_STATE}),
           "nest");
    must(eddy_while(is_small, small_step, &eager, EDDY_LIST(x), NULL, &z));
    cr_assert_eq(sum_of(y), sum_of(z));
    cr_assert_eq(sum_of(n.calls), sum_of(eager.calls));
    for (int i = 0; i < 210; i += 30) {
        must(eddy_while(is_small, small_step, &eager, EDDY_LIST(scalar(i)), NULL, &z));
        must(eddy_program_run(r.program, EDDY_LIST(scalar(i)), &y));
        cr_assert_eq(sum_of(y), sum_of(z), "%d", i);
        cr_assert_eq(sum_of(n.calls), sum_of(eager.calls));
        cr_assert_eq(sum_of(n.skipped), sum_of(eager.skipped));
    }
    release(&r);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status leaf(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *w = context;
    must(eddy_backward(eddy_sum(eddy_square(w), EDDY_ALL_AXES, NULL)));
    return same(NULL, inputs, outputs);
}

Test(control, a_branch_adds_to_a_gradient_that_is_there) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = of(2), *x = scalar(1), *y;
    eddy_requires_grad_set(w, true);
    must(eddy_backward(eddy_sum(w, EDDY_ALL_AXES, NULL)));
    running r;
    must(eddy_record_begin(NULL));
    must(eddy_cond(eddy_gt_s(x, EDDY_S(4)), leaf, same, w, EDDY_LIST(x), 1, NULL, &y));
    cr_assert_eq(sum_of(eddy_grad_of(w)), 3);
    finish(&r, EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}), "leaf");
    for (int i = 0; i < 3; i++) {
        must(eddy_program_run(r.program, EDDY_LIST(scalar(i == 1 ? 5 : 0)), &y));
        cr_assert_eq(sum_of(eddy_grad_of(w)), i < 1 ? 3 : 15);
    }
    release(&r);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- errors ---- */

Test(control, a_predicate_that_failed_poisons_what_either_way_writes) {
    eddy_scope *scope = eddy_scope_begin();
    nest n = {scalar(0), scalar(0)};
    eddy_tensor *x = of(1), *index = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL), *y;
    must(eddy_record_begin(NULL));
    eddy_tensor *chosen = eddy_index_select(x, index, 0);
    must(eddy_cond(eddy_gt_s(chosen, EDDY_S(0)), count_up, count_skipped, &n, EDDY_LIST(x), 1, NULL,
                   &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                          {"other", eddy_neg(x), EDDY_ROLE_OUTPUT}));
    eddy_tensor *wrong = eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_I64, NULL), *out[2];
    eddy_error error;
    must(eddy_program_run(program, EDDY_LIST(wrong), out));
    eddy_tensor *all[] = {out[0], n.calls, n.skipped};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(eddy_wait(all[i], EDDY_FOREVER), i ? EDDY_SKIPPED : EDDY_OUT_OF_RANGE);
        eddy_error_take(&error);
        cr_assert_str_eq(error.op, "index_select");
    }
    cr_assert_eq(sum_of(out[1]), -3);
    must(eddy_recover(EDDY_LIST(n.calls, n.skipped)));
    cr_assert_eq(sum_of(n.calls), 1, "they are as they were");
    must(eddy_program_run(program, EDDY_LIST(index), out));
    cr_assert_eq(sum_of(out[0]), 12);
    cr_assert_eq(sum_of(n.calls), 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, a_loop_has_a_bound) {
    eddy_scope *scope = eddy_scope_begin();
    nest n = {scalar(0), scalar(0)};
    eddy_tensor *x = scalar(1), *y, *out[2];
    const eddy_while_options *options = EDDY_OPTIONS(while, .most_steps = 10);
    must(eddy_record_begin(NULL));
    must(eddy_while(is_small, small_step, &n, EDDY_LIST(x), options, &y));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                              {"other", eddy_neg(x), EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(scalar(1)), out));
    cr_assert_eq(sum_of(out[0]), sum_of(y));
    must(eddy_program_run(program, EDDY_LIST(scalar(-1000)), out));
    cr_assert_eq(sum_of(out[1]), 1000);
    cr_assert_eq(eddy_wait(out[0], EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "while: the predicate still holds after 10 steps, the most there may be");
    cr_assert_eq(eddy_wait(n.calls, EDDY_FOREVER), EDDY_SKIPPED);
    eddy_error error;
    eddy_error_take(&error);
    must(eddy_recover(EDDY_LIST(n.calls, n.skipped)));
    cr_assert_eq(eddy_while(is_small, small_step, &n, EDDY_LIST(scalar(-1000)), options, &y),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "while: the predicate still holds after 10 steps, the most there may be");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what spoils a recording ---- */

static eddy_status wide(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_cat(EDDY_LIST(inputs.items[0], inputs.items[0]), 0));
}

static eddy_status failing(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_narrow(inputs.items[0], 0, 2, 9));
}

static void expect_spoiled(eddy_block *function, void *context, const char *part) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(3), *y;
    eddy_error error;
    eddy_tensor *predicate = truth(true);
    must(eddy_record_begin(NULL));
    must(eddy_cond(predicate, twice, function, context, EDDY_LIST(x), 1, NULL, &y));
    cr_assert_eq(sum_of(y), 18, "the call goes on as it would");
    cr_assert_null(eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT})), "%s", part);
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
    eddy_scope_end(scope);
}

Test(control, what_a_program_cannot_repeat_spoils_the_recording) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = of(1);
    expect_spoiled(wide, NULL, "outputs[0] is f32[3] on one way and f32[6] on another");
    expect_spoiled(failing, NULL, "narrow");
    expect_spoiled(late, NULL, "the shape of its result depends on its data");
    eddy_requires_grad_set(w, true);
    expect_spoiled(leaf, w, "which gradients are kept would depend on a branch or a loop");
    cr_assert_not(eddy_has_grad(w));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control, a_gradient_through_a_loop_is_that_of_the_calls) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(3), *y;
    eddy_error error;
    eddy_requires_grad_set(x, true);
    must(eddy_record_begin(NULL));
    must(eddy_while(is_large, half, NULL, EDDY_LIST(x), NULL, &y));
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(eddy_grad_of(x)), 0.75, "3 elements, halved twice");
    cr_assert_null(eddy_record_end(NULL));
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "a gradient goes back through a loop"), "%s",
                       error.message);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status ends_recording(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_error error;
    eddy_record_cancel();
    cr_assert_null(eddy_record_end(NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    return twice(NULL, inputs, outputs);
}

Test(control, a_function_does_not_end_the_recording) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(3), *y;
    running r;
    must(eddy_record_begin(NULL));
    must(eddy_cond(truth(true), ends_recording, half, NULL, EDDY_LIST(x), 1, NULL, &y));
    finish(&r, EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}), "open");
    cr_assert_eq(run(&r, EDDY_LIST(of(1))), 6);
    release(&r);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- arguments ---- */

Test(control, arguments_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(3), *y = NULL;
    eddy_tensor *predicate = truth(true);
#define COND(predicate, then, count)                                                               \
    eddy_cond(predicate, then, half, NULL, EDDY_LIST(x), count, NULL, &y)
    cr_assert_eq(COND(x, twice, 1), EDDY_DTYPE_MISMATCH);
    expect_error(EDDY_DTYPE_MISMATCH, "cond: the predicate is f32[3]: it has to be one bool");
    cr_assert_eq(COND(eddy_gt_s(x, EDDY_S(0)), twice, 1), EDDY_SHAPE_MISMATCH);
    expect_error(EDDY_SHAPE_MISMATCH, "cond: the predicate is bool[3]: it has to be one bool");
    cr_assert_eq(COND(predicate, NULL, 1), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "cond: a function is NULL");
    cr_assert_eq(COND(predicate, twice, -1), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "cond: there can be no -1 outputs");
    cr_assert_eq(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x, NULL), 1, NULL, &y),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "cond: inputs[1] is NULL");
    cr_assert_eq(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x, EDDY_NONE), 1, NULL, &y),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "cond: inputs[1] is EDDY_NONE, which stands for absent optional operands only");
    eddy_tensor *two[2];
    cr_assert_eq(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x), 2, NULL, two),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "cond: the function has not set outputs[1]");
    cr_assert_eq(COND(predicate, failing, 1), EDDY_INVALID_ARGUMENT);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "narrow");
    cr_assert_eq(eddy_while(is_left, NULL, NULL, EDDY_LIST(x), NULL, &y), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "while: a function is NULL");
    cr_assert_eq(
        eddy_while(is_large, half, NULL, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = -1), &y),
        EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "while: most_steps is negative");
    cr_assert_eq(eddy_while(is_large, half, NULL, EDDY_LIST(x, EDDY_NONE), NULL, two),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "while: carried[1] is EDDY_NONE, which stands for absent optional operands only");
    cr_assert_eq(eddy_while(same, half, NULL, EDDY_LIST(x), NULL, &y), EDDY_DTYPE_MISMATCH);
    expect_error(EDDY_DTYPE_MISMATCH, "while: the predicate is f32[3]: it has to be one bool");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
