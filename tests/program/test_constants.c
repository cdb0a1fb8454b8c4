/* eddy_can_record, and tensors that are declared never to change. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(2, 3), EDDY_S(value), EDDY_F32, NULL);
}

/* ---- eddy_can_record ---- */

static void expect_cannot(const char *sentence) {
    char reason[320] = "?";
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, sentence);
    cr_assert_not(eddy_can_record(NULL, 0));
}

Test(can_record, says_what_the_end_would_say_and_changes_nothing) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_error error = {0};
    char reason[320] = "?";
    expect_cannot("no recording is open on this thread");
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK, "the slot is empty");
    must(eddy_record_begin(NULL));
    cr_assert(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, "");
    eddy_tensor *x = filled(1);
    eddy_neg(x);
    sum_of(x);
    cr_assert(eddy_can_record(NULL, 0), "reads are the code's own affair");
    eddy_neg(eddy_nonzero(x));
    expect_cannot("neg cannot be part of a program: it uses what nonzero has made, whose shape "
                  "depends on data: a program only gives that out");
    eddy_abs(eddy_unique(x));
    expect_cannot("neg cannot be part of a program: it uses what nonzero has made, whose shape "
                  "depends on data: a program only gives that out");
    char cut[8];
    cr_assert_not(eddy_can_record(cut, sizeof(cut)));
    cr_assert_str_eq(cut, "neg can");
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK, "the slot is empty");
    cr_assert_null(eddy_record_end(NULL));
    eddy_error_take(&error);
    eddy_can_record(reason, sizeof(reason));
    cr_assert_not_null(strstr(error.message, "neg cannot be part of a program: it uses what "
                                             "nonzero has made"));
    cr_assert_str_eq(reason, "no recording is open on this thread");
    eddy_scope_end(scope);
}

Test(can_record, leaves_an_older_error_in_the_slot) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    cr_assert_null(eddy_matmul(x, x));
    cr_assert(eddy_can_record(NULL, 0), "a call that failed is none");
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(error.more, 0);
    eddy_record_cancel();
}

static void *asks(void *context) {
    *(bool *)context = eddy_can_record(NULL, 0);
    return context;
}

Test(can_record, concerns_the_calling_thread) {
    bool can = true;
    pthread_t thread;
    must(eddy_record_begin(NULL));
    cr_assert_eq(pthread_create(&thread, NULL, asks, &can), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_not(can);
    cr_assert(eddy_can_record(NULL, 0));
    eddy_record_cancel();
}

static eddy_status asks_inside(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_neg(x);
    cr_assert(eddy_can_record(NULL, 0));
    eddy_item_f64(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_OPTIONS(read, .timeout = 1000000000));
    cr_assert_not(eddy_can_record(context, 320));
    return EDDY_OK;
}

Test(can_record, tells_a_function_why_it_will_not_be_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    char reason[320], text[512];
    eddy_tensor *y;
    eddy_recorded *recorded = eddy_recorded_create(asks_inside, reason, 1, NULL);
    must(eddy_recorded_run(recorded, EDDY_LIST(filled(1)), (eddy_scalars){0}, &y));
    cr_assert_str_eq(reason, "item_f64 reads f32[], which sum has written, with a timeout; give it "
                             "out and read it after the call, or decide with eddy_cond or "
                             "eddy_where");
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, reason), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* ---- constants ---- */

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_program *program = eddy_record_end(bindings);
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static void expect_end_fails(const eddy_bindings *bindings, const char *sentence) {
    eddy_error error = {0};
    cr_assert_null(eddy_record_end(bindings));
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT, "%s", error.message);
    cr_assert_not_null(strstr(error.message, sentence), "%s", error.message);
}

static void expect_run_fails(eddy_program *program, eddy_tensor *x, const char *sentence) {
    eddy_error error = {0};
    eddy_tensor *y = NULL;
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &y), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, sentence), "%s", error.message);
    cr_assert_null(y);
}

/* y = x w + total; total += x */
typedef struct fixture {
    eddy_tensor *x, *w, *total, *y;
} fixture;

static fixture record(void) {
    fixture f = {.x = filled(2), .w = filled(3), .total = filled(0)};
    must(eddy_record_begin(NULL));
    f.y = eddy_add(eddy_mul(f.x, f.w), f.total);
    must(eddy_add_into(f.total, f.x, f.total));
    return f;
}

static eddy_program *end_with(const fixture *f, eddy_tensor *constant) {
    return end(EDDY_BINDINGS({"x", f->x, EDDY_ROLE_INPUT}, {"y", f->y, EDDY_ROLE_OUTPUT},
                             {"w", constant, EDDY_ROLE_CONSTANT}));
}

Test(constants, are_held_by_the_program_and_counted) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    eddy_program *program = end_with(&f, f.w);
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.constant_count, 1);
    cr_assert_eq(info.captured_count, 1);
    cr_assert_eq(info.state_count, 0);
    char text[1024] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    must(eddy_program_print(program, file, NULL));
    fclose(file);
    cr_assert_not_null(strstr(text, "\nconstant w f32[2, 3]\n"), "%s", text);
    cr_assert_not_null(strstr(text, "mul(x f32[2, 3], w f32[2, 3])"), "%s", text);
    eddy_release(&f.w);
    eddy_tensor *y;
    must(eddy_program_run(program, EDDY_LIST(filled(4)), &y));
    cr_assert_eq(sum_of(y), 6 * (4 * 3 + 2));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(constants, a_written_one_fails_the_run_and_nothing_changes) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    uint64_t seeds[2], counters[2];
    eddy_tensor *row = eddy_select(f.w, 0, 0), *y;
    eddy_program *program = end_with(&f, eddy_select(f.w, 0, 1));
    eddy_add(f.w, f.w); /* reads are no matter */
    must(eddy_program_run(program, EDDY_LIST(filled(4)), &y));
    double total = sum_of(f.total);
    must(eddy_relu_inplace(row)); /* another part of its storage */
    eddy_generator_state(eddy_generator_default(), &seeds[0], &counters[0]);
    expect_run_fails(program, filled(1), "constant w was written after the program was recorded");
    expect_run_fails(program, filled(1), "constant w was written after the program was recorded");
    eddy_generator_state(eddy_generator_default(), &seeds[1], &counters[1]);
    cr_assert_eq(counters[0], counters[1]);
    cr_assert_eq(sum_of(f.total), total);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(constants, a_mapped_one_fails_the_run) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    eddy_program *program = end_with(&f, f.w);
    cr_assert_not_null(eddy_map(f.w, EDDY_READ, EDDY_FOREVER));
    must(eddy_unmap(f.w));
    eddy_tensor *y;
    must(eddy_program_run(program, EDDY_LIST(filled(4)), &y));
    cr_assert_not_null(eddy_map(f.w, EDDY_READ | EDDY_WRITE, EDDY_FOREVER));
    must(eddy_unmap(f.w));
    expect_run_fails(program, filled(1), "constant w was written");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(constants, what_a_recording_writes_is_none) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    expect_end_fails(EDDY_BINDINGS({"total", f.total, EDDY_ROLE_CONSTANT}),
                     "total is a constant, and the recorded add writes it");
    f = record();
    expect_end_fails(EDDY_BINDINGS({"row", eddy_select(f.total, 0, 1), EDDY_ROLE_CONSTANT}),
                     "row is a constant, and the recorded add writes it");
    f = record();
    expect_end_fails(EDDY_BINDINGS({"y", f.y, EDDY_ROLE_CONSTANT}),
                     "y was made by the recorded calls: it can be no constant");
    eddy_tensor *z = filled(1);
    f = record();
    expect_end_fails(EDDY_BINDINGS({"z", z, EDDY_ROLE_CONSTANT}), "no recorded call uses z");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(constants, share_their_memory_with_no_input_and_no_state) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    expect_end_fails(EDDY_BINDINGS({"w", f.w, EDDY_ROLE_CONSTANT}, {"again", f.w, EDDY_ROLE_INPUT}),
                     "again and w have elements in common");
    f = record();
    expect_end_fails(EDDY_BINDINGS({"w", f.w, EDDY_ROLE_CONSTANT}, {"again", f.w, EDDY_ROLE_STATE}),
                     "w is a constant, and shares its memory with again, which is state");
    eddy_scope_end(scope);
}

/* A row of a storage is fed and written, another one is a constant. */
Test(constants, may_lie_beside_an_input) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *both = filled(2), *x = eddy_select(both, 0, 0), *w = eddy_select(both, 0, 1), *y;
    must(eddy_record_begin(NULL));
    must(eddy_add_into(x, w, x));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_CONSTANT}, {"y", x, EDDY_ROLE_OUTPUT}));
    eddy_tensor *other = eddy_select(filled(5), 0, 0);
    for (int i = 1; i < 4; i++) {
        must(eddy_program_run(program, EDDY_LIST(other), &y));
        cr_assert_eq(sum_of(y), 3 * (5 + 2 * i), "its runs write no constant");
    }
    expect_run_fails(program, x, "input x shares its memory with w, and the program writes it");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void *writes(void *tensor) {
    return eddy_relu_inplace(tensor) == EDDY_OK ? tensor : NULL;
}

Test(constants, one_that_another_thread_wrote_meanwhile_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, writes, f.w), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    expect_end_fails(EDDY_BINDINGS({"w", f.w, EDDY_ROLE_CONSTANT}),
                     "w is a constant, and was written after a recorded call used it");
    eddy_scope_end(scope);
}

Test(constants, may_be_handed_out) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record();
    eddy_tensor *w = NULL;
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", f.x, EDDY_ROLE_INPUT}, {"w", f.w, EDDY_ROLE_CONSTANT},
        {"same", f.w, EDDY_ROLE_OUTPUT}, {"row", eddy_select(f.w, 0, 1), EDDY_ROLE_CONSTANT}));
    must(eddy_program_run(program, EDDY_LIST(filled(1)), &w));
    cr_assert_eq(sum_of(w), 18);
    must(eddy_relu_inplace(w));
    expect_run_fails(program, filled(1), "constant w was written");
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.constant_count, 1, "one storage");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
