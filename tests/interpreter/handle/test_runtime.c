#include "../calls.h"
#include <base/cpu.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <unistd.h>

Test(runtime, the_default_one_starts_on_first_use) {
    eddy_runtime *runtime = eddy_runtime_current();
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_current(), runtime);
    cr_assert_eq(eddy_runtime_of(counting(EDDY_SHAPE(1))), runtime);
    cr_assert_geq(eddy_thread_count(), 1);
}

Test(runtime, wrong_options_are_named) {
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = -1)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "threads");
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .device = "toaster")));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "toaster");
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = "toaster")));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "isa is toaster");
}

Test(runtime, the_first_chooses_the_instruction_set_and_no_later_one_another) {
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = "v9")));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "isa is v9");
    eddy_isa least = eddy_isa_served_by(EDDY_ISA_PORTABLE);
    eddy_runtime *first = eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = eddy_isa_name(least)));
    cr_assert_not_null(first, "a runtime that did not start chose nothing");
    cr_assert_eq(eddy_isa_chosen(), least);
    eddy_runtime *same = eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = eddy_isa_name(least)));
    cr_assert_not_null(same);
    cr_assert_not_null(eddy_runtime_current(), "one that names none takes it as it is");
    if (least > EDDY_ISA_PORTABLE) {
        cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = "portable")));
        ASSERT_ERROR(EDDY_UNSUPPORTED, "isa is portable, but this library is built for");
    }
    if (eddy_isa_machine() > least) {
        cr_assert_null(eddy_runtime_create(
            EDDY_OPTIONS(runtime, .isa = eddy_isa_name((eddy_isa)(least + 1)))));
        ASSERT_ERROR(EDDY_UNSUPPORTED, "but this process already uses");
    }
    cr_assert_eq(eddy_isa_chosen(), least);
    eddy_runtime_release(&first);
    eddy_runtime_release(&same);
}

Test(runtime, the_instruction_set_is_settled_when_the_first_one_starts) {
    unsetenv("EDDY_ISA");
    cr_assert_not_null(eddy_runtime_current());
    setenv("EDDY_ISA", eddy_isa_name(eddy_isa_served_by(EDDY_ISA_PORTABLE)), 1);
    cr_assert_eq(eddy_isa_chosen(), eddy_isa_machine());
}

Test(runtime, a_thousand_times_init_and_shutdown) {
    int64_t blocks = 0;
    for (int i = 0; i < 1000; i++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = i % 2 == 0, .threads = 2));
        cr_assert_not_null(runtime);
        eddy_runtime_use(runtime);
        eddy_tensor *t = counting(EDDY_SHAPE(4));
        eddy_tensor *sum = call("add", OF(t, t));
        ASSERT_F32(sum, 0, 2, 4, 6);
        eddy_release(&t);
        eddy_release(&sum);
        cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
        cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
        eddy_runtime_release(&runtime);
        if (i == 10)
            blocks = eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes;
    }
    cr_assert_leq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 2 * blocks);
}

Test(runtime, use_after_shutdown_is_an_error_that_names_the_op) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    eddy_runtime_use(runtime);
    eddy_tensor *t = counting(EDDY_SHAPE(2, 2));
    eddy_tensor *view = eddy_t(t);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK, "twice is once");
    cr_assert_null(call("add", OF(t, t)));
    ASSERT_ERROR(EDDY_SHUT_DOWN, "add: the runtime is shut down (f32[2, 2], f32[2, 2])");
    float values[4];
    cr_assert_eq(eddy_read(t, values, sizeof(values), NULL), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    cr_assert_null(eddy_map(t, EDDY_READ, EDDY_FOREVER));
    eddy_error_take(NULL);
    cr_assert_eq(eddy_wait(t, 0), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    cr_assert_null(F32(EDDY_SHAPE(1), 1));
    eddy_error_take(NULL);
    cr_assert_eq(eddy_sync(0), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    cr_assert(has_shape(view, EDDY_SHAPE(2, 2)), "what a handle knows it still tells");
    eddy_release(&t);
    eddy_release(&view);
    cr_assert_eq(eddy_live_count(), 0);
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    cr_assert_not_null(counting(EDDY_SHAPE(1)), "the default runtime is another one");
}

Test(runtime, tensors_may_outlive_it) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    eddy_runtime_use(runtime);
    eddy_tensor *t = counting(EDDY_SHAPE(1000));
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    cr_assert_null(call("neg", OF(t)));
    cr_assert_eq(eddy_error_take(NULL), EDDY_SHUT_DOWN);
    eddy_release(&t);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Its shutdown would wait for the thread itself. */
Test(runtime, goes_on_where_its_last_user_has_mapped_a_tensor) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    eddy_runtime_use(runtime);
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    float *elements = eddy_map(t, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    cr_assert_not_null(elements);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_WOULD_DEADLOCK);
    ASSERT_ERROR(EDDY_WOULD_DEADLOCK, "first eddy_unmap or eddy_lend_end");
    eddy_runtime_release(&runtime);
    eddy_runtime_use(NULL);
    elements[0] = 1;
    cr_assert_eq(eddy_unmap(t), EDDY_OK);
    eddy_release(&t);
}

Test(runtime, sync_hands_out_the_lowest_unseen_error) {
    eddy_tensor *t = counting(EDDY_SHAPE(3));
    eddy_tensor *first = index_select(t, I64(EDDY_SHAPE(1), 7));
    eddy_tensor *second = index_select(t, I64(EDDY_SHAPE(1), 8));
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "is 7"), "%s", error.message);
    cr_assert_eq(error.more, 1);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK, "seen");
    cr_assert_eq(eddy_wait(second, EDDY_FOREVER), EDDY_OUT_OF_RANGE, "the poison remains");
    cr_assert_eq(eddy_wait(first, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
}

Test(runtime, counters_keep_to_the_size_they_are_given) {
    eddy_counters counters;
    memset(&counters, 0x55, sizeof(counters));
    counters.size = 16;
    counting(EDDY_SHAPE(1));
    cr_assert_eq(eddy_counters_read(&counters), EDDY_OK);
    cr_assert_eq(counters.caller_run, 0x5555555555555555, "untouched");
    cr_assert_eq(eddy_counters_read(NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
}

Test(runtime, recover_refuses_a_mixed_list) {
    eddy_runtime *other = eddy_runtime_create(NULL);
    eddy_tensor *here = counting(EDDY_SHAPE(1));
    eddy_runtime_use(other);
    eddy_tensor *there = counting(EDDY_SHAPE(1));
    cr_assert_eq(eddy_recover(EDDY_LIST(here, there)), EDDY_RUNTIME_MISMATCH);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_recover((eddy_list){NULL, 0}), EDDY_OK);
    cr_assert_eq(eddy_recover((eddy_list){NULL, -1}), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_runtime_use(NULL);
    eddy_release(&there);
    eddy_runtime_release(&other);
}

/* Runs `body` in a forked child; its exit status. */
static int in_child(int (*body)(eddy_tensor *), eddy_tensor *tensor) {
    fflush(NULL);
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body(tensor));
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int use_parents(eddy_tensor *t) {
    if (call("add", OF(t, t)) || eddy_error_take(NULL) != EDDY_FORKED)
        return 1;
    float values[4];
    if (eddy_read(t, values, sizeof(values), NULL) != EDDY_FORKED)
        return 2;
    eddy_release(&t);
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer lets no forked child start threads. */
    eddy_runtime_use(eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true)));
#endif
    eddy_tensor *mine = counting(EDDY_SHAPE(4));
    if (!mine || eddy_item_f64(eddy_select(call("add", OF(mine, mine)), 0, 3), NULL) != 6)
        return 3;
    return 0;
}

Test(runtime, a_forked_child_refuses_the_parents_and_starts_its_own) {
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    for (int i = 0; i < 100; i++) {
        eddy_tensor *sum = call("add", OF(t, t));
        eddy_release(&sum);
    }
    cr_assert_eq(in_child(use_parents, t), 0);
    ASSERT_F32(t, 0, 1, 2, 3);
}

/* How many lines of ours a child that ends by exit(3) with errors leaves on stderr, and the last of them. */
static int count_exit_lines(bool is_silent, char *line, size_t size) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        if (is_silent)
            setenv("EDDY_SILENT_EXIT", "1", 1);
        alarm(60);
        eddy_scope *scope = eddy_scope_begin();
        call("neg", OF(index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5))));
        eddy_scope_end(scope);
        exit(3);
    }
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    int lines = 0;
    char any[512];
    while (fgets(any, sizeof(any), file))
        if (strncmp(any, "eddy:", 5) == 0) {
            snprintf(line, size, "%s", any);
            lines++;
        }
    fclose(file);
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    return lines;
}

Test(runtime, errors_that_nobody_saw_are_named_once_at_exit) {
    char line[512] = "";
    cr_assert_eq(count_exit_lines(false, line, sizeof(line)), 1, "%s", line);
    cr_assert_not_null(strstr(line, "index_select: index[0] is 5"), "%s", line);
    cr_assert_eq(count_exit_lines(true, line, sizeof(line)), 0);
}
