/* Runs that are recorded: what fails in them, and what no recording takes. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <eddy/recorded.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/inlined.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

/* ---- failures ---- */

/* An error within it names the call that the inner program was recorded from, under the number that the run would give it. */
Test(inlined_errors, errors_are_those_of_the_runs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *rows = eddy_zeros(EDDY_SHAPE(3), EDDY_I64, NULL), *y, *outputs[2];
    begin(false);
    (void)eddy_relu(x); /* left out, and counted */
    y = eddy_index_select(x, rows, 0);
    eddy_program *pick = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    begin(false);
    y = eddy_neg(run(pick, EDDY_LIST(eddy_neg(x), rows)));
    eddy_program *outer =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_INPUT},
                          {"y", y, EDDY_ROLE_OUTPUT}, {"z", eddy_exp(x), EDDY_ROLE_OUTPUT}));
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(3), EDDY_S(9), EDDY_I64, NULL);
    eddy_error calls, runs;
    must(eddy_sync(EDDY_FOREVER));
    y = eddy_neg(run(pick, EDDY_LIST(eddy_neg(x), beyond)));
    cr_assert_eq(eddy_error_of(y, EDDY_FOREVER, &calls), EDDY_OUT_OF_RANGE);
    must(eddy_program_run(outer, EDDY_LIST(x, beyond), outputs));
    cr_assert_eq(eddy_error_of(outputs[0], EDDY_FOREVER, &runs), EDDY_OUT_OF_RANGE);
    must_have_same_bits(outputs[1], eddy_exp(x), "the rest is computed");
    cr_assert_str_eq(calls.message, runs.message);
    cr_assert_str_eq(calls.op, runs.op);
    cr_assert_eq(runs.sequence - calls.sequence, 5, "%lld",
                 (long long)(runs.sequence - calls.sequence));
    eddy_error_take(NULL);
    eddy_program_release(&pick);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

static void *write_aside(void *context) {
    eddy_tensor *x = of(7);
    must(eddy_copy_into(x, context));
    eddy_release(&x);
    return NULL;
}

static void expect_spoiled(eddy_tensor *x, eddy_tensor *y, eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_null(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

/* As with calls: what another thread writes between two uses, a program of another runtime. */
Test(inlined_errors, what_no_run_repeats_spoils_the_recording) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *b = of(1), *y;
    eddy_program *affine = make_affine(b);
    pthread_t thread;
    begin(false);
    (void)eddy_neg(b);
    cr_assert_eq(pthread_create(&thread, NULL, write_aside, b), 0);
    pthread_join(thread, NULL);
    y = run(affine, EDDY_LIST(x));
    expect_spoiled(x, y, EDDY_UNSUPPORTED, "another thread has written its operand f32[3]");
    eddy_program_release(&affine);
    eddy_runtime *other = eddy_runtime_create(NULL);
    cr_assert_not_null(other);
    must(eddy_runtime_use(other));
    eddy_tensor *foreign = of(1);
    affine = make_affine(of(1));
    must(eddy_runtime_use(NULL));
    begin(false);
    (void)run(affine, EDDY_LIST(foreign));
    expect_spoiled(x, eddy_neg(x), EDDY_RUNTIME_MISMATCH, "it belongs to another runtime");
    eddy_program_release(&affine);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What is gone behind a run would be there at the next one. */
Test(inlined_errors, what_is_given_up_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y;
    begin(true);
    y = eddy_exp(x);
    eddy_program *taking =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program *affine = make_affine(of(1));
    eddy_output_ring *ring = eddy_output_ring_create(affine, 2);
    must(EDDY_OK);
    begin(false);
    cr_assert_eq(eddy_program_run(taking, EDDY_LIST(x), &y), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program_run: it cannot be recorded, since no run would give up "
                                   "what is donated to it: record it with inputs");
    cr_assert_eq(eddy_output_ring_run(ring, EDDY_LIST(x), &y), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "output_ring_run: it cannot be recorded, since no run would turn the ring: take "
                 "outputs that are new, or targets");
    y = eddy_neg(x);
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(run(outer, EDDY_LIST(x))), -3, "nothing was given up");
    eddy_output_ring_release(&ring);
    eddy_program_release(&taking);
    eddy_program_release(&affine);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* A run that is refused is no part of the recording, which goes on. */
Test(inlined_errors, a_run_that_fails_is_not_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *other = line(0, 4), *y = NULL;
    eddy_program *affine = make_affine(of(1));
    begin(false);
    cr_assert_eq(eddy_program_run(affine, EDDY_LIST(other), &y), EDDY_SHAPE_MISMATCH);
    eddy_error_take(NULL);
    cr_assert(eddy_can_record(NULL, 0));
    y = eddy_neg(x);
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(recorded_of(outer), 1);
    eddy_program_release(&affine);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}
