/* Calls that fail on request, and how the driver ends. */
#include <tests/fake_cuda/program.h>

static uint64_t words[WORDS];

/* ---- faults ---- */

#define STEP(call)                                                                                 \
    do {                                                                                           \
        eddy_cu_result step_result = (call);                                                       \
        if (step_result)                                                                           \
            return step_result;                                                                    \
    } while (0)

/* Some of everything, up to the first failure. */
static eddy_cu_result work(void) {
    STEP(open_all());
    STEP(cu.copy_to_device(block, words, BYTES, a));
    STEP(cu.event_record(event, a));
    STEP(cu.stream_wait_event(b, event, 0));
    STEP(launch_add(b, block, block, other));
    STEP(cu.copy_to_host(words, other, BYTES, b));
    STEP(cu.stream_write(b, (uintptr_t)pinned, 1, 0));
    STEP(cu.event_record(event, b));
    STEP(cu.event_synchronize(event));
    STEP(cu.memory_release(block));
    STEP(cu.event_destroy(event));
    STEP(cu.stream_destroy(a));
    STEP(cu.context_release(0));
    return 0;
}

static void fail_with(const char *name, const char *value) {
    setenv(name, value, 1);
}

/* The first seed is the number of the call. */
static void fail_one(void) {
    eddy_cu_result result = work();
    long call = atol(getenv("FAKE_CUDA_FAIL"));
    MUST(calls() >= call ? result == EDDY_CU_OUT_OF_MEMORY || result == EDDY_CU_LAUNCH_FAILED
                         : result == 0);
    /* The call that failed was the last. */
    MUST(result == 0 || calls() == call);
    _exit(result == 0 ? 3 : 0);
}

Test(faults, each_call_fails_once) {
    int call = 0, status = 0;
    while (status == 0) {
        char text[16];
        snprintf(text, sizeof(text), "%d", ++call);
        fail_with("FAKE_CUDA_FAIL", text);
        outcome of = run(fail_one, call, false);
        status = of.status;
        cr_assert(status == 0 || status == 3, "call %d: %d %s", call, status, of.text);
        cr_assert_str_empty(of.text);
    }
    cr_assert_gt(call, 20);
}

static void fail_an_entry(void) {
    fail_with("FAKE_CUDA_FAIL_ENTRY", "cuMemAlloc:2:801");
    WORKS(cu.init(0));
    WORKS(cu.context_retain(&context, 0));
    WORKS(cu.context_set(context));
    WORKS(cu.memory_acquire(&block, BYTES));
    MUST(failed() == NULL);
    IS(EDDY_CU_NOT_SUPPORTED, cu.memory_acquire(&other, BYTES));
    MUST(strcmp(failed(), "cuMemAlloc_v2") == 0);
    WORKS(cu.memory_acquire(&other, BYTES));
}

static void fail_a_launch(void) {
    fail_with("FAKE_CUDA_FAIL_ENTRY", "cuLaunchKernel:3");
    WORKS(open_all());
    WORKS(launch_store(a, block, WORDS, 1));
    WORKS(launch_store(a, block, WORDS, 1));
    IS(EDDY_CU_LAUNCH_FAILED, launch_store(a, block, WORDS, 1));
    /* For good, but for this context only. */
    IS(EDDY_CU_LAUNCH_FAILED, launch_store(a, block, WORDS, 1));
    IS(EDDY_CU_LAUNCH_FAILED, cu.memory_release(block));
    IS(EDDY_CU_LAUNCH_FAILED, cu.host_release(pinned));
    eddy_cu_context second;
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(second));
    WORKS(cu.memory_acquire(&block, BYTES));
    WORKS(cu.memory_release(block));
    WORKS(cu.context_release(1));
    WORKS(cu.context_release(0));
    WORKS(cu.context_retain(&context, 0));
    WORKS(cu.context_set(context));
    WORKS(cu.memory_acquire(&block, BYTES));
}

/* Later than its call: who waits learns it. */
static void fail_a_run(void) {
    fail_with("FAKE_CUDA_FAIL_RUN", "2");
    WORKS(open_all());
    memset(words, 0, sizeof(words));
    WORKS(launch_store(a, block, WORDS, 1));
    eddy_cu_result result = cu.copy_to_host(words, block, BYTES, a);
    MUST(result == 0 || result == EDDY_CU_LAUNCH_FAILED);
    result = cu.event_record(event, a);
    MUST(result == 0 || result == EDDY_CU_LAUNCH_FAILED);
    IS(EDDY_CU_LAUNCH_FAILED, cu.event_synchronize(event));
    MUST(words[0] == 0);
}

Test(faults, one_entry_fails_with_a_result) {
    is_right(fail_an_entry);
}

Test(faults, a_failed_launch_takes_the_context_with_it) {
    is_right(fail_a_launch);
}

Test(faults, a_piece_fails_when_it_runs) {
    is_right(fail_a_run);
}

/* ---- the end ---- */

static void expect_gone(void) {
    int count;
    eddy_cu_address none;
    const char *name;
    MUST(cu.device_count(&count) == EDDY_CU_DEINITIALIZED);
    MUST(cu.memory_acquire(&none, 8) == EDDY_CU_DEINITIALIZED);
    MUST(cu.event_synchronize(event) == EDDY_CU_DEINITIALIZED);
    MUST(cu.context_release(0) == EDDY_CU_DEINITIALIZED);
    MUST(cu.error_name(0, &name) == EDDY_CU_DEINITIALIZED);
    fprintf(stderr, "gone\n");
}

static void expect_there(void) {
    int count;
    WORKS(cu.device_count(&count));
    fprintf(stderr, "there\n");
}

static void exit_in_the_middle(void) {
    atexit(expect_gone);
    WORKS(open_all());
    atexit(expect_there);
    for (int i = 0; i < 100; i++) {
        WORKS(launch_store(a, block, WORDS, 1));
        WORKS(launch_store(b, other, WORDS, 1));
    }
}

Test(faults, the_driver_is_gone_behind_its_handler_of_exit) {
    for (int seed = 1; seed <= seed_count(); seed++) {
        outcome of = run(exit_in_the_middle, seed, true);
        cr_assert_eq(of.status, 0, "%d: %s", of.status, of.text);
        cr_assert(strstr(of.text, "there\ngone\n") == of.text, "%s", of.text);
    }
}

static void nothing_given_back(void) {
    WORKS(open_all());
    eddy_cu_function function;
    test_words parameters = {(uint64_t *)(uintptr_t)block, WORDS, 1};
    WORKS(cu.module_function(&function, module, "test_store"));
    WORKS(launch(function, a, &parameters, sizeof(parameters)));
    wait_for(a);
}

Test(faults, an_exit_without_anything_given_back_is_right) {
    outcome of = run(nothing_given_back, 1, true);
    cr_assert_eq(of.status, 0, "%s", of.text);
}

/* ---- fork ---- */

static void fork_and_call(void) {
    WORKS(open_all());
    for (int i = 0; i < 20; i++)
        WORKS(launch_store(a, block, WORDS, 1));
    pid_t child = fork();
    if (child == 0) {
        int count;
        const char *name;
        IS(EDDY_CU_NOT_INITIALIZED, cu.device_count(&count));
        IS(EDDY_CU_NOT_INITIALIZED, cu.init(0));
        IS(EDDY_CU_NOT_INITIALIZED, cu.memory_acquire(&other, 8));
        IS(EDDY_CU_NOT_INITIALIZED, cu.context_release(0));
        WORKS(cu.error_name(EDDY_CU_NOT_INITIALIZED, &name));
        exit(0);
    }
    int status;
    MUST(child > 0 && waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close_all();
}

Test(faults, a_forked_child_has_no_driver) {
    is_right(fork_and_call);
}
