/* What may be recorded, what bindings are refused, and what is told of it. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <unistd.h>

static eddy_tensor *ones(void) {
    return eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
}

static void begin(void) {
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
}

static void expect_end_fails(const eddy_bindings *bindings, eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_null(eddy_record_end(bindings));
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
    /* The recording has ended all the same. */
    begin();
    eddy_record_cancel();
}

Test(record, one_recording_is_open_on_a_thread) {
    begin();
    cr_assert_eq(eddy_record_begin(NULL), EDDY_INVALID_ARGUMENT);
    eddy_record_cancel();
    eddy_record_cancel();
    cr_assert_null(eddy_record_end(NULL));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(error.more, 1);
}

Test(record, calls_give_results_while_they_are_recorded) {
    eddy_tensor *x = ones();
    begin();
    eddy_tensor *y = eddy_add_s(x, EDDY_S(2));
    cr_assert_eq(eddy_item_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), NULL), 18);
    eddy_record_cancel();
    cr_assert_eq(eddy_item_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), NULL), 18);
}

Test(record, bindings_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ones(), *other = ones(), *y;
#define AGAIN() (begin(), y = eddy_add(x, x))
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({NULL, x, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT, "no name");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"", x, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT, "no name");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"a", x, EDDY_ROLE_INPUT}, {"a", y, EDDY_ROLE_OUTPUT}),
                     EDDY_INVALID_ARGUMENT, "two bindings are named a");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"a", NULL, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT,
                     "a is NULL");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"y", y, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT,
                     "y was made by the recorded calls");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"y", y, EDDY_ROLE_STATE}), EDDY_INVALID_ARGUMENT,
                     "y was made by the recorded calls");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"z", other, EDDY_ROLE_OUTPUT}), EDDY_INVALID_ARGUMENT,
                     "no recorded call makes or uses z");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"z", other, EDDY_ROLE_STATE}), EDDY_INVALID_ARGUMENT,
                     "no recorded call uses z");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"a", x, EDDY_ROLE_INPUT}, {"b", x, EDDY_ROLE_INPUT}),
                     EDDY_INVALID_ARGUMENT, "a and b have elements in common");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"w", x, EDDY_ROLE_STATE}, {"a", x, EDDY_ROLE_INPUT}),
                     EDDY_INVALID_ARGUMENT, "a and w have elements in common");
    begin();
    y = eddy_neg(eddy_narrow(x, 0, 1, 1));
    expect_end_fails(
        EDDY_BINDINGS({"w", x, EDDY_ROLE_STATE}, {"a", eddy_narrow(x, 0, 1, 1), EDDY_ROLE_INPUT}),
        EDDY_INVALID_ARGUMENT, "a and w have elements in common");
    AGAIN();
    expect_end_fails(EDDY_BINDINGS({"a", x, (eddy_role)9}), EDDY_INVALID_ARGUMENT, "no role");
    AGAIN();
    expect_end_fails(&(eddy_bindings){NULL, 3}, EDDY_INVALID_ARGUMENT,
                     "the list of bindings has count 3, but its items are NULL");
    begin();
    y = eddy_add(eddy_narrow(x, 0, 0, 1), eddy_narrow(x, 0, 1, 1));
    eddy_tensor *wide = eddy_narrow(eddy_reshape(x, EDDY_SHAPE(6)), 0, 1, 3);
    expect_end_fails(EDDY_BINDINGS({"part", wide, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT,
                     "part is a part of a tensor that the recorded calls use beyond it");
    begin();
    eddy_tensor *gaps = eddy_narrow(x, 1, 0, 2);
    y = eddy_neg(eddy_narrow(gaps, 1, 0, 1));
    expect_end_fails(EDDY_BINDINGS({"gaps", gaps, EDDY_ROLE_INPUT}), EDDY_INVALID_ARGUMENT,
                     "gaps has gaps between its elements, and the recorded calls use a part of it: "
                     "only all of it, or a contiguous copy, can be an input");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(record, what_depends_on_data_is_named) {
    eddy_tensor *x = ones();
    begin();
    eddy_tensor *places = eddy_nonzero(x);
    cr_assert_not_null(eddy_neg(places));
    expect_end_fails(NULL, EDDY_UNSUPPORTED,
                     "neg cannot be part of a program: it uses what nonzero has made, whose shape "
                     "depends on data: a program only gives that out");
}

static void touched(void *context, void *data, const eddy_error *error) {
    (void)context;
    (void)data;
    (void)error;
}

static void expect_unsupported(eddy_status status, const char *message) {
    eddy_error error = {0};
    cr_assert_eq(status, EDDY_UNSUPPORTED);
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_str_eq(error.message, message);
}

Test(record, writes_by_the_program_are_refused_and_the_recording_goes_on) {
    eddy_tensor *x = ones();
    begin();
    eddy_tensor *y = eddy_neg(x);
    cr_assert_null(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    expect_unsupported(EDDY_UNSUPPORTED,
                       "map: it cannot be recorded, since no run would write it again: write "
                       "before the recording, or copy an input with eddy_copy_into");
    expect_unsupported(eddy_access_async(x, EDDY_READ | EDDY_WRITE, touched, NULL),
                       "access_async: it cannot be recorded, since no run would call back: do it "
                       "before the recording, or after it");
    expect_unsupported(eddy_generator_restore(eddy_generator_default(), 1, 2),
                       "generator_restore: it cannot be recorded, since no run would do it again: "
                       "restore before the recording, or after it");
    expect_unsupported(eddy_recover(EDDY_LIST(x)),
                       "recover: it cannot be recorded, since no run would do it again: recover "
                       "before the recording, or after it");
    const float *seen = eddy_map(y, EDDY_READ, EDDY_FOREVER);
    cr_assert_eq(seen[0], -1);
    cr_assert_eq(eddy_unmap(y), EDDY_OK);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_program_release(&program);
}

static void *record_and_leave(void *context) {
    eddy_tensor *x = ones();
    begin();
    eddy_tensor *y = eddy_neg(x);
    eddy_release(&y);
    eddy_release(&x);
    return context;
}

Test(record, a_thread_that_ends_gives_its_recording_up) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&thread, NULL, record_and_leave, NULL), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    cr_assert_eq(eddy_live_count(), 0);
    begin(); /* a new thread's caller is one of those that ended: nothing is open */
    eddy_record_cancel();
}

static void called_back(void *context, void *data, const eddy_error *error) {
    (void)error;
    *(eddy_status *)context = data ? eddy_record_begin(NULL) : EDDY_INTERNAL;
    eddy_record_cancel();
}

/* In one-thread mode a callback runs inside the call of a thread that records. */
Test(record, a_callback_is_no_part_of_the_recording) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_tensor *x = ones();
    eddy_status status = EDDY_INTERNAL;
    const void *lent = eddy_map(x, EDDY_READ, EDDY_FOREVER);
    cr_assert_not_null(lent);
    cr_assert_eq(eddy_access_async(x, EDDY_READ | EDDY_WRITE, called_back, &status), EDDY_OK);
    begin();
    cr_assert_eq(eddy_unmap(x), EDDY_OK);
    eddy_tensor *y = eddy_neg(ones());
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(status, EDDY_OK, "the callback could begin a recording of its own");
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_program_release(&program);
}

/* The end of a recording whose runtime does not run any more: 0 if it is refused as such, and nothing is left open. */
static int end_without_runtime(bool has_bindings, bool has_gradient, eddy_tensor *x, eddy_tensor *y,
                               eddy_status status) {
    char reason[128] = "";
    eddy_error error = {0};
    const eddy_bindings *bindings =
        has_bindings ? EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}) : NULL;
    if (eddy_can_record(reason, sizeof(reason)) || strcmp(reason, eddy_status_text(status)) != 0)
        return 1;
    if (has_gradient ? eddy_record_end_with_grad(bindings) : eddy_record_end(bindings))
        return 2;
    if (eddy_error_take(&error) != status || !strstr(error.message, reason))
        return 3;
    return eddy_can_record(reason, sizeof(reason)) || !strstr(reason, "no recording") ? 4 : 0;
}

static void use_runtime(eddy_runtime *runtime) {
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
}

static void shut_down_while_open(bool has_bindings, bool has_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    use_runtime(runtime);
    eddy_tensor *x = ones();
    eddy_requires_grad_set(x, has_gradient);
    begin();
    eddy_tensor *y = eddy_neg(x);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(end_without_runtime(has_bindings, has_gradient, x, y, EDDY_SHUT_DOWN), 0);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_runtime_release(&runtime);
    begin();
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(record, a_runtime_that_was_shut_down_leaves_no_program) {
    for (int i = 0; i < 4; i++)
        shut_down_while_open(i & 1, i & 2);
}

/* Calls of another runtime while it is open, in place and under autograd. */
Test(record, a_runtime_that_was_shut_down_is_not_asked_for_storages) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    use_runtime(runtime);
    begin();
    for (int i = 0; i < 20; i++)
        (void)eddy_neg(ones());
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_tensor *w = ones();
    eddy_requires_grad_set(w, true);
    eddy_tensor *out = eddy_clone(ones());
    for (int i = 0; i < 20; i++)
        cr_assert_eq(eddy_add_inplace(out, w), EDDY_OK);
    char reason[128];
    cr_assert(!eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, eddy_status_text(EDDY_SHUT_DOWN));
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(record, a_forked_child_cannot_end_its_parents) {
    eddy_tensor *x = ones();
    begin();
    eddy_tensor *y = eddy_neg(x);
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        await_safe_fork();
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(end_without_runtime(i, false, x, y, EDDY_FORKED));
        }
        int status;
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    }
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program, "the parent's goes on");
    eddy_program_release(&program);
}
