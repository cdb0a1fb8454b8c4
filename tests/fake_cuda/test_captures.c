/* What captures refuse, to whom, and what becomes of them. */
#include <pthread.h>
#include <tests/fake_cuda/program.h>

static eddy_cu_graph captured;

/* Of another thread with the context: what an allocation says. */
static void *allocate(void *mode) {
    static eddy_cu_result result;
    eddy_cu_address taken = 0;
    WORKS(cu.context_set(context));
    WORKS(cu.capture_mode_exchange(mode));
    result = cu.memory_acquire(&taken, 512);
    if (result == 0)
        WORKS(cu.memory_release(taken));
    return &result;
}

static eddy_cu_result allocate_elsewhere(eddy_cu_capture_mode mode) {
    pthread_t thread;
    void *result;
    MUST(pthread_create(&thread, NULL, allocate, &mode) == 0);
    MUST(pthread_join(thread, &result) == 0);
    return *(eddy_cu_result *)result;
}

static eddy_cu_capture_status status_of(eddy_cu_stream stream) {
    eddy_cu_capture_status status = -1;
    WORKS(cu.capture_status(stream, &status));
    return status;
}

/* Begins one and lets another thread allocate in a mode. Whether that worked, and the capture is still valid. */
static void capture(eddy_cu_capture_mode mode, eddy_cu_capture_mode others, bool is_well) {
    MUST(status_of(a) == EDDY_CU_CAPTURES_NOT);
    WORKS(cu.capture_begin(a, mode));
    MUST(status_of(a) == EDDY_CU_CAPTURES);
    WORKS(launch_store(a, block, WORDS, 7));
    IS(is_well ? 0 : EDDY_CU_CAPTURES_FIRST, allocate_elsewhere(others));
    MUST(status_of(a) == (is_well ? EDDY_CU_CAPTURES : EDDY_CU_CAPTURES_NO_MORE));
    IS(is_well ? 0 : EDDY_CU_CAPTURE_INVALIDATED, cu.capture_end(a, &captured));
    MUST((captured != NULL) == is_well);
    if (is_well)
        WORKS(cu.graph_destroy(captured));
}

static void others(void) {
    WORKS(open_all());
    capture(EDDY_CU_CAPTURE_GLOBAL, EDDY_CU_CAPTURE_GLOBAL, false);
    capture(EDDY_CU_CAPTURE_GLOBAL, EDDY_CU_CAPTURE_THREAD_LOCAL, true);
    capture(EDDY_CU_CAPTURE_GLOBAL, EDDY_CU_CAPTURE_RELAXED, true);
    capture(EDDY_CU_CAPTURE_THREAD_LOCAL, EDDY_CU_CAPTURE_GLOBAL, true);
    capture(EDDY_CU_CAPTURE_RELAXED, EDDY_CU_CAPTURE_GLOBAL, true);
    close_all();
}

/* In the thread that captures, with its mode; and that the mode comes back. */
static void own(void) {
    eddy_cu_address taken;
    WORKS(open_all());
    for (eddy_cu_capture_mode mode = 0; mode <= 2; mode++) {
        bool is_well = mode == EDDY_CU_CAPTURE_RELAXED;
        WORKS(cu.capture_begin(a, mode));
        IS(is_well ? 0 : EDDY_CU_CAPTURES_FIRST, cu.memory_acquire(&taken, 512));
        IS(is_well ? 0 : EDDY_CU_CAPTURE_INVALIDATED, cu.capture_end(a, &captured));
        if (is_well) {
            WORKS(cu.memory_release(taken));
            WORKS(cu.graph_destroy(captured));
        }
    }
    eddy_cu_capture_mode mine = EDDY_CU_CAPTURE_RELAXED, wrong = 3;
    IS(EDDY_CU_INVALID_VALUE, cu.capture_mode_exchange(&wrong));
    WORKS(cu.capture_mode_exchange(&mine));
    MUST(mine == EDDY_CU_CAPTURE_GLOBAL);
    WORKS(cu.capture_begin(a, EDDY_CU_CAPTURE_GLOBAL));
    WORKS(cu.memory_acquire(&taken, 512));
    WORKS(cu.memory_release(taken));
    WORKS(cu.capture_mode_exchange(&mine));
    MUST(mine == EDDY_CU_CAPTURE_RELAXED);
    WORKS(cu.capture_end(a, &captured));
    WORKS(cu.graph_destroy(captured));
    close_all();
}

/* Other streams launch as ever; of the one that captures all but kernels is refused. */
static void streams(void) {
    WORKS(open_all());
    WORKS(cu.capture_begin(a, EDDY_CU_CAPTURE_GLOBAL));
    WORKS(launch_store(b, other, WORDS, 3));
    poll_for(b);
    MUST(status_of(a) == EDDY_CU_CAPTURES && status_of(b) == EDDY_CU_CAPTURES_NOT);
    IS(EDDY_CU_CAPTURES_FIRST, cu.fill_bytes(block, 0, BYTES, a));
    IS(EDDY_CU_CAPTURE_INVALIDATED, cu.capture_end(a, &captured));
    WORKS(cu.capture_begin(a, EDDY_CU_CAPTURE_RELAXED));
    IS(EDDY_CU_CAPTURES_FIRST, cu.stream_query(a));
    IS(EDDY_CU_CAPTURE_INVALIDATED, cu.capture_end(a, &captured));
    IS(EDDY_CU_INVALID_VALUE, cu.capture_end(a, &captured));
    close_all();
}

static void *end_it(void *result) {
    WORKS(cu.context_set(context));
    *(eddy_cu_result *)result = cu.capture_end(a, &captured);
    return NULL;
}

static void ended_elsewhere(void) {
    WORKS(open_all());
    for (eddy_cu_capture_mode mode = 0; mode <= 2; mode++) {
        pthread_t thread;
        eddy_cu_result result = 0;
        WORKS(cu.capture_begin(a, mode));
        MUST(pthread_create(&thread, NULL, end_it, &result) == 0);
        MUST(pthread_join(thread, NULL) == 0);
        bool is_ended = mode == EDDY_CU_CAPTURE_RELAXED;
        MUST(result == (is_ended ? 0 : EDDY_CU_CAPTURE_OF_OTHER_THREAD));
        if (!is_ended)
            WORKS(cu.capture_end(a, &captured));
        WORKS(cu.graph_destroy(captured));
    }
    close_all();
}

/* The stream goes on, without the value. */
static void writes(void) {
    setenv("FAKE_CUDA_CAPTURES_WRITES", "1", 1);
    WORKS(open_all());
    WORKS(cu.capture_begin(a, EDDY_CU_CAPTURE_GLOBAL));
    WORKS(cu.stream_write(a, (uintptr_t)pinned, 9, 0));
    WORKS(cu.capture_end(a, &captured));
    WORKS(cu.graph_destroy(captured));
    wait_for(a);
    MUST(__atomic_load_n(pinned, __ATOMIC_ACQUIRE) == 0);
    close_all();
}

static void runs(void (*program)(void)) {
    outcome of = run(program, 1, false);
    cr_assert_eq(of.status, 0, "status %d: %s", of.status, of.text);
}

Test(fake_cuda, captures_of_others_forbid_what_a_thread_heeds) {
    runs(others);
}

Test(fake_cuda, captures_of_the_thread_forbid_more) {
    runs(own);
}

Test(fake_cuda, other_streams_than_the_captured_one_go_on) {
    runs(streams);
}

Test(fake_cuda, a_capture_ends_on_its_thread) {
    runs(ended_elsewhere);
}

Test(fake_cuda, captured_writes_are_not_done) {
    runs(writes);
}
