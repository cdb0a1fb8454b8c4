/* hostile CASE: what a program may do beside its calls: shut down, fork, poll, hold a lend or a lock for ever. Nothing hangs, nothing
 * grows without a bound, nothing touches what was given back. */
#include <base/memory.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            eddy_error error = {0};                                                                \
            eddy_error_take(&error);                                                               \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, error.message);    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- an op that stays until it may go ---- */

static atomic_int gate_is_open, inside_count;

static eddy_status run_gate(const eddy_op_call *call) {
    (void)call;
    atomic_fetch_add(&inside_count, 1);
    while (!atomic_load(&gate_is_open))
        usleep(100);
    return EDDY_OK;
}

/* In place on x, on a worker; returns once it runs. */
static void hold(eddy_tensor *x) {
    static bool is_registered;
    static const eddy_operand_description operands[] = {{"x", EDDY_OPERAND_TENSOR, true}};
    static const eddy_op_kernel kernels[] = {{.device = EDDY_DEVICE_CPU, .run = run_gate}};
    static const eddy_op_description gate = {.size = sizeof(gate),
                                             .name = "test.gate",
                                             .summary = "waits",
                                             .operands = operands,
                                             .operand_count = 1,
                                             .kernels = kernels,
                                             .kernel_count = 1,
                                             .has_no_grad = true};
    if (!is_registered)
        CHECK(eddy_op_register(&gate) == EDDY_OK);
    is_registered = true;
    atomic_store(&gate_is_open, 0);
    int before = atomic_load(&inside_count);
    CHECK(eddy_call("test.gate", EDDY_LIST(x), NULL, NULL) == EDDY_OK);
    while (atomic_load(&inside_count) == before)
        usleep(100);
}

static void let_go(void) {
    atomic_store(&gate_is_open, 1);
}

static eddy_tensor *ones(int64_t count) {
    return eddy_full(EDDY_SHAPE(count), EDDY_S(1), EDDY_F32, NULL);
}

static eddy_runtime *use_new_runtime(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    return runtime;
}

static int64_t in_flight(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    CHECK(eddy_counters_read(&counters) == EDDY_OK);
    return counters.in_flight;
}

static pthread_t start(void *(*run)(void *context), void *context) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, context) == 0);
    return thread;
}

static eddy_status join(pthread_t thread) {
    void *status;
    CHECK(pthread_join(thread, &status) == 0);
    return (eddy_status)(intptr_t)status;
}

static void *shut_down_for_ever(void *runtime) {
    return (void *)(intptr_t)eddy_runtime_shutdown(runtime, EDDY_FOREVER);
}

/* ---- shutdown ---- */

static void unmap_ends_what_shutdown_waits_for(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = ones(1000);
    CHECK(eddy_map(x, EDDY_READ, EDDY_FOREVER));
    pthread_t closer = start(shut_down_for_ever, runtime);
    while (eddy_add(x, x))
        usleep(100);
    CHECK(eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    CHECK(eddy_unmap(x) == EDDY_OK);
    CHECK(join(closer) == EDDY_OK);
}

static void a_lender_cannot_wait_for_its_own_unmap(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = ones(1000);
    CHECK(eddy_map(x, EDDY_READ, EDDY_FOREVER));
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_WOULD_DEADLOCK);
    CHECK(eddy_unmap(x) == EDDY_OK);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
}

static atomic_int made_count;
static char *large;
#define LARGE_BYTES ((int64_t)16 << 20)

static void *make_from_data(void *runtime) {
    eddy_runtime_use(runtime);
    eddy_tensor *made;
    while ((made = eddy_from_data(large, EDDY_SHAPE(LARGE_BYTES), EDDY_U8, NULL))) {
        atomic_fetch_add(&made_count, 1);
        eddy_release(&made);
    }
    eddy_error_take(NULL);
    return NULL;
}

static void a_copy_is_not_taken_away_by_shutdown(void) {
    large = calloc(1, (size_t)LARGE_BYTES);
    CHECK(large);
    for (int round = 0; round < 30; round++) {
        eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
        CHECK(runtime);
        atomic_store(&made_count, 0);
        pthread_t maker = start(make_from_data, runtime);
        while (atomic_load(&made_count) <= round % 5)
            usleep(100);
        CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
        join(maker);
        eddy_runtime_release(&runtime);
    }
    free(large);
}

static void a_stream_outlives_its_runtime(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_stream *stream = eddy_stream_create(EDDY_CPU, NULL),
                *other = eddy_stream_create(EDDY_CPU, NULL);
    CHECK(stream && other && eddy_stream_scope_begin(other) == EDDY_OK);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
    CHECK(!ones(3) && eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    CHECK(!eddy_event_record(stream) && eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    eddy_stream_scope_end();
    eddy_stream_release(&stream);
    eddy_stream_release(&other);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
    CHECK(ones(3));
}

static void a_second_shutdown_ends_with_the_first(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = ones(16);
    hold(x);
    pthread_t first = start(shut_down_for_ever, runtime);
    while (eddy_add(x, x))
        usleep(100);
    eddy_error_take(NULL);
    CHECK(eddy_runtime_shutdown(runtime, 1000000) == EDDY_TIMED_OUT);
    pthread_t second = start(shut_down_for_ever, runtime);
    let_go();
    CHECK(join(first) == EDDY_OK);
    CHECK(join(second) == EDDY_OK);
    CHECK(eddy_runtime_shutdown(runtime, 0) == EDDY_OK);
}

static void what_was_abandoned_stays_so(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = ones(16);
    hold(x);
    CHECK(eddy_runtime_shutdown(runtime, 1000000) == EDDY_TIMED_OUT);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_TIMED_OUT);
    let_go();
}

static void stay(void *context) {
    (void)context;
    atomic_fetch_add(&inside_count, 1);
    while (!atomic_load(&gate_is_open))
        usleep(100);
}

static void a_deleter_that_stays_is_left_behind(void) {
    static char buffer[4096];
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = eddy_from_buffer(buffer, EDDY_SHAPE(1024), EDDY_F32, stay, NULL, NULL);
    CHECK(x);
    eddy_release(&x);
    while (!atomic_load(&inside_count))
        usleep(100);
    CHECK(eddy_runtime_shutdown(runtime, 1000000) == EDDY_TIMED_OUT);
    let_go();
}

/* ---- one-thread mode beside another thread ---- */

static void *hold_elsewhere(void *x) {
    CHECK(eddy_runtime_use(eddy_runtime_of(x)) == EDDY_OK);
    hold(x);
    return NULL;
}

/* The other thread does the engine's work for as long as its kernel takes. Releases do not wait. */
static void one_thread_mode_keeps_the_time_of_waits(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *x = ones(4), *other = ones(4096);
    pthread_t holder = start(hold_elsewhere, x);
    while (!atomic_load(&inside_count))
        usleep(100);
    CHECK(!eddy_is_ready(x));
    eddy_release(&other);
    CHECK(eddy_wait(x, 0) == EDDY_TIMED_OUT);
    CHECK(eddy_wait(x, 1000000) == EDDY_TIMED_OUT);
    CHECK(!eddy_map(x, EDDY_READ, 1000000));
    CHECK(eddy_sync(1000000) == EDDY_TIMED_OUT);
    let_go();
    CHECK(join(holder) == EDDY_OK && eddy_wait(x, 0) == EDDY_OK);
}

/* ---- a run that never ends ---- */

static eddy_status never_over(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_ge_s(carried.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status add_one(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_add_s(carried.items[0], EDDY_S(1));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* One step is as cheap as an op that its caller runs at once, and nobody knows how many there are. Calls are recorded and do not run: they
 * would not end either. */
static void a_loop_that_never_ends_holds_nobody_up(void) {
    eddy_runtime *runtime = use_new_runtime();
    eddy_tensor *x = eddy_zeros((eddy_shape){0}, EDDY_F64, NULL), *y;
    CHECK(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)) == EDDY_OK);
    CHECK(eddy_while(never_over, add_one, NULL, EDDY_LIST(x), NULL, &y) == EDDY_OK);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    CHECK(program && eddy_program_run(program, EDDY_LIST(x), &y) == EDDY_OK);
    CHECK(eddy_wait(y, 1000000) == EDDY_TIMED_OUT);
    CHECK(!eddy_map(x, EDDY_WRITE, 1000000) && eddy_error_take(NULL) == EDDY_TIMED_OUT);
    CHECK(eddy_item_f64(eddy_add(ones(1), ones(1)), NULL) == 2);
    CHECK(eddy_sync(1000000) == EDDY_TIMED_OUT);
    eddy_program_release(&program);
    CHECK(eddy_runtime_shutdown(runtime, 1000000) == EDDY_TIMED_OUT);
}

/* ---- bounds ---- */

static void polls_are_bounded(void) {
    eddy_tensor *x = ones(1000);
    CHECK(eddy_wait(x, EDDY_FOREVER) == EDDY_OK);
    hold(x);
    for (int i = 0; i < 20000; i++) {
        CHECK(eddy_wait(x, 1000) == EDDY_TIMED_OUT);
        CHECK(eddy_error_take(NULL) == EDDY_TIMED_OUT);
    }
    CHECK(in_flight() < 5000);
    /* Others go on meanwhile. */
    eddy_tensor *y = ones(10);
    for (int i = 0; i < 20000; i++)
        CHECK(eddy_add_s_inplace(y, EDDY_S(1)) == EDDY_OK);
    CHECK(eddy_wait(y, EDDY_FOREVER) == EDDY_OK);
    let_go();
    CHECK(eddy_wait(x, EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    /* What has retired is said when the engine has gone through its work, which a waiter may be back before; the alarm ends what never comes to 0. */
    while (in_flight() != 0)
        usleep(100);
}

/* Issues on x until a call is refused. */
static eddy_error issue_until_refused(eddy_tensor *x) {
    eddy_error error = {0};
    for (int i = 0; i < 200000; i++)
        if (eddy_add_s_inplace(x, EDDY_S(1)) != EDDY_OK) {
            eddy_error_take(&error);
            break;
        }
    return error;
}

static void calls_behind_a_lend_are_bounded(void) {
    eddy_tensor *x = ones(16), *y = ones(16);
    CHECK(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    CHECK(issue_until_refused(x).status == EDDY_WOULD_DEADLOCK);
    CHECK(in_flight() < 70000);
    CHECK(eddy_add_s_inplace(y, EDDY_S(1)) == EDDY_OK);
    CHECK(eddy_unmap(x) == EDDY_OK);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_add_s_inplace(x, EDDY_S(1)) == EDDY_OK);
}

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

static void want_lock(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)data;
    (void)bytes;
    (void)error;
    atomic_fetch_add((atomic_int *)context, 1);
    pthread_mutex_lock(&users_lock);
    pthread_mutex_unlock(&users_lock);
}

/* As every binding with a lock of its interpreter does. */
static void a_callback_may_want_the_issuers_lock(void) {
    static atomic_int called;
    eddy_tensor *x = ones(16);
    pthread_mutex_lock(&users_lock);
    CHECK(eddy_read_async(x, want_lock, &called) == EDDY_OK);
    while (!atomic_load(&called))
        usleep(100);
    for (int i = 0; i < 40000; i++)
        CHECK(eddy_add_s_inplace(x, EDDY_S(1)) == EDDY_OK);
    CHECK(issue_until_refused(x).status == EDDY_WOULD_DEADLOCK);
    pthread_mutex_unlock(&users_lock);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_item_f64(eddy_select(x, 0, 0), NULL) > 40000);
}

/* Waves of tensors that a kernel holds up; each wave gives everything back. */
static void numbers_come_back(void) {
    enum { COUNT = 15000 };
    static eddy_tensor *t[COUNT];
    float values[4] = {1, 2, 3, 4};
    int64_t after_first = 0;
    for (int wave = 0; wave < 30; wave++) {
        eddy_tensor *one = eddy_from_data(values, EDDY_SHAPE(4), EDDY_F32, NULL);
        for (int i = 0; i < COUNT; i++)
            CHECK((t[i] = eddy_from_data(values, EDDY_SHAPE(4), EDDY_F32, NULL)));
        hold(one);
        for (int i = 0; i < COUNT; i++) {
            CHECK(eddy_add_inplace(t[i], one) == EDDY_OK);
            eddy_release(&t[i]);
        }
        eddy_release(&one);
        let_go();
        CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
        int64_t bytes = eddy_memory_counted(EDDY_MEMORY_TABLE).bytes +
                        eddy_memory_counted(EDDY_MEMORY_NODE).bytes;
        if (wave == 1)
            after_first = bytes;
        CHECK(wave < 2 || bytes == after_first);
    }
    CHECK(eddy_live_count() == 0);
}

/* Handles in any order: what trimming takes grows with their number, not with its square (a minute and a half here). */
static void a_million_handles_are_trimmed(void) {
    enum { COUNT = 1000000 };
    static eddy_tensor *t[COUNT];
    eddy_tensor *x = ones(4);
    for (int i = 0; i < COUNT; i++)
        CHECK((t[i] = eddy_reshape(x, EDDY_SHAPE(2, 2))));
    uint32_t random = 1;
    for (int i = COUNT - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        int j = (int)(random % (uint32_t)i);
        eddy_tensor *swapped = t[i];
        t[i] = t[j];
        t[j] = swapped;
    }
    for (int i = 0; i < COUNT; i++)
        eddy_release(&t[i]);
    CHECK(eddy_trim() > (int64_t)COUNT * 300);
}

static atomic_int stops;

static void *want_memory(void *context) {
    (void)context;
    while (!atomic_load(&stops)) {
        eddy_tensor *t[6];
        for (int i = 0; i < 6; i++)
            t[i] = eddy_zeros(EDDY_SHAPE(4 << 20), EDDY_U8, NULL);
        for (int i = 0; i < 6; i++)
            eddy_release(&t[i]);
    }
    eddy_sync(EDDY_FOREVER);
    return NULL;
}

/* Old streams are freed to make new ones while their last works are on their way out, and the engine is short of memory. */
static void streams_are_reused_beside_a_shortage(void) {
    CHECK(setenv("EDDY_MEMORY_LIMIT", "20M", 1) == 0);
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(1 << 17), EDDY_F32, NULL);
    pthread_t hungry = start(want_memory, NULL);
    for (int i = 0; i < 9000; i++) {
        eddy_stream *stream =
            eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
        if (stream) {
            CHECK(eddy_stream_scope_begin(stream) == EDDY_OK);
            eddy_add_s_inplace(x, EDDY_S(1));
            eddy_stream_scope_end();
        }
        eddy_error_take(NULL);
        eddy_stream_release(&stream);
    }
    atomic_store(&stops, 1);
    join(hungry);
}

/* The limit is the process's: who starves waits for what another runtime is about to give up. */
static void *wait_for_large(void *runtime) {
    CHECK(eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *y = eddy_zeros(EDDY_SHAPE(50 << 20), EDDY_U8, NULL);
    eddy_status status = eddy_wait(y, EDDY_FOREVER);
    eddy_release(&y);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    return (void *)(intptr_t)status;
}

/* Who holds the memory gives it up after its kernel, or stays in the kernel until the other has an answer; that one is in one-thread mode. */
typedef struct neighbours {
    bool gives_up, stays, uses_one_thread;
} neighbours;

/* A runtime holds 50 of 80 MB in a kernel; another wants as much. What came of that. */
static eddy_status want_beside_another(neighbours are) {
    CHECK(setenv("EDDY_MEMORY_LIMIT", "80M", 1) == 0);
    eddy_runtime *first = eddy_runtime_create(
        EDDY_OPTIONS(runtime, .threads = 2, .uses_one_thread = are.uses_one_thread));
    CHECK(first);
    eddy_runtime *second = use_new_runtime();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(50 << 20), EDDY_U8, NULL);
    CHECK(eddy_wait(x, EDDY_FOREVER) == EDDY_OK);
    hold(x);
    if (are.gives_up)
        eddy_release(&x);
    pthread_t waiter = start(wait_for_large, first);
    if (!are.stays) {
        usleep(100000); /* most likely it starves by now; it is right either way */
        let_go();
    }
    eddy_status status = join(waiter);
    if (are.stays)
        let_go();
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    eddy_release(&x);
    eddy_runtime_release(&second);
    eddy_runtime_release(&first);
    return status;
}

static void two_runtimes_share_the_limit(void) {
    CHECK(want_beside_another((neighbours){.gives_up = true}) == EDDY_OK);
}

static void one_thread_mode_shares_the_limit(void) {
    CHECK(want_beside_another((neighbours){.gives_up = true, .uses_one_thread = true}) == EDDY_OK);
}

/* The kernel may want a lock that the caller holds. */
static void one_thread_mode_waits_for_no_kernel_without_end(void) {
    CHECK(want_beside_another((neighbours){
              .gives_up = true, .stays = true, .uses_one_thread = true}) == EDDY_OUT_OF_MEMORY);
}

static void two_runtimes_do_not_wait_for_each_other(void) {
    CHECK(want_beside_another((neighbours){0}) == EDDY_OUT_OF_MEMORY);
    CHECK(want_beside_another((neighbours){.uses_one_thread = true}) == EDDY_OUT_OF_MEMORY);
}

/* ---- fork ---- */

static void use_in_child(void) {
    alarm(20);
    /* Long enough that there is something to wait for. */
    enum { SIDE = 512 };
    eddy_tensor *x = eddy_full(EDDY_SHAPE(SIDE, SIDE), EDDY_S(1.0 / SIDE), EDDY_F32, NULL);
    for (int i = 0; i < 10; i++)
        x = eddy_matmul(x, x);
    eddy_tensor *sum = eddy_sum(x, EDDY_ALL_AXES, NULL);
    _exit(eddy_sync(EDDY_FOREVER) != EDDY_OK || eddy_item_f64(sum, NULL) != SIDE);
}

static atomic_int child_status;

static void fork_here(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)error;
    pid_t pid = fork();
    if (pid == 0)
        use_in_child();
    int status = 1;
    waitpid(pid, &status, 0);
    atomic_store(&child_status, status == 0 ? 1 : 2);
}

static void a_callback_may_fork(void) {
    eddy_tensor *x = ones(16);
    CHECK(eddy_read_async(x, fork_here, NULL) == EDDY_OK);
    while (!atomic_load(&child_status))
        usleep(1000);
    CHECK(atomic_load(&child_status) == 1);
}

/* ---- one-thread mode: a callback inside the call of a thread that never asked for it ---- */

static eddy_runtime *alone;
static eddy_tensor *source; /* made before, and by the callback */

static void *ask_for_read(void *callback) {
    CHECK(eddy_runtime_use(alone) == EDDY_OK);
    CHECK(eddy_read_async(source, *(eddy_read_callback **)callback, NULL) == EDDY_OK);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    return NULL;
}

/* Lets the kernel go when somebody has asked for the callback: whoever runs the kernel runs that too, before its call returns. */
static void *ask_beside_kernel(void *callback) {
    CHECK(eddy_runtime_use(alone) == EDDY_OK);
    while (atomic_load(&inside_count) == 0)
        usleep(100);
    pthread_t asker;
    CHECK(pthread_create(&asker, NULL, ask_for_read, callback) == 0);
    while (in_flight() < 2)
        usleep(100);
    let_go();
    pthread_join(asker, NULL);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    return NULL;
}

/* A call of the calling thread inside which the callback runs. */
static void call_with(eddy_read_callback *callback) {
    eddy_tensor *x = ones(4);
    pthread_t helper;
    atomic_store(&inside_count, 0);
    CHECK(pthread_create(&helper, NULL, ask_beside_kernel, &callback) == 0);
    eddy_tensor *kept = ones(4); /* the thread keeps it for its next call */
    eddy_release(&kept);
    hold(x);
    pthread_join(helper, NULL);
    eddy_release(&x);
}

static void begin_alone(void) {
    alone = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    CHECK(alone && eddy_runtime_use(alone) == EDDY_OK);
    source = ones(4);
}

static bool is_recorded;

static void record(void *context, const void *data, int64_t bytes, const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)failure;
    eddy_tensor *leaf = ones(1);
    CHECK(eddy_requires_grad_set(leaf, true) == EDDY_OK);
    eddy_tensor *y = eddy_add_s(leaf, EDDY_S(1));
    is_recorded = eddy_requires_grad(y);
    eddy_release(&y);
    eddy_release(&leaf);
}

/* The thread inside whose call it runs has switched gradients off for itself. */
static void a_callback_has_its_own_gradients(void) {
    begin_alone();
    eddy_no_grad_begin();
    call_with(record);
    CHECK(is_recorded);
    eddy_tensor *leaf = ones(1);
    CHECK(eddy_requires_grad_set(leaf, true) == EDDY_OK);
    eddy_tensor *y = eddy_add_s(leaf, EDDY_S(1));
    CHECK(!eddy_requires_grad(y));
    eddy_no_grad_end();
    eddy_release(&y);
    eddy_release(&leaf);
    eddy_release(&source);
    CHECK(eddy_live_count() == 0);
}

static void issue(void *context, const void *data, int64_t bytes, const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)failure;
    for (int i = 0; i < 100; i++) {
        eddy_tensor *sum = eddy_add(source, source);
        CHECK(sum);
        eddy_release(&sum);
    }
}

static void a_callback_inside_a_call_gives_nothing_up_twice(void) {
    begin_alone();
    for (int i = 0; i < 10; i++)
        call_with(issue);
    eddy_release(&source);
    CHECK(eddy_live_count() == 0);
}

static void make(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)error;
    source = ones(1);
}

static void what_a_callback_makes_is_in_no_scope_around_it(void) {
    begin_alone();
    for (int i = 0; i < 10; i++) {
        eddy_tensor *asked = source;
        eddy_scope *scope = eddy_scope_begin();
        call_with(make);
        eddy_scope_end(scope);
        float value = 0;
        CHECK(source != asked && eddy_read(source, &value, sizeof(value), NULL) == EDDY_OK &&
              value == 1);
        eddy_release(&asked);
    }
    eddy_release(&source);
    CHECK(eddy_live_count() == 0);
}

static void fail_elsewhere(void *context, const void *data, int64_t bytes,
                           const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)failure;
    CHECK(!eddy_reshape(source, EDDY_SHAPE(3)));
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
}

/* Nor does a runtime that it chooses stay chosen. */
static void errors_of_a_callback_are_not_the_callers(void) {
    eddy_error taken;
    begin_alone();
    CHECK(!eddy_cat((eddy_list){0}, 0));
    CHECK(eddy_read_async(source, fail_elsewhere, NULL) == EDDY_OK &&
          eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_runtime_current() == alone);
    CHECK(eddy_error_take(&taken) != EDDY_OK && strcmp(taken.op, "cat") == 0 && taken.more == 0);
    CHECK(eddy_read_async(source, fail_elsewhere, NULL) == EDDY_OK &&
          eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_error_take(NULL) == EDDY_OK);
    eddy_release(&source);
}

static atomic_int wants_answer, is_answered;

static void want_answer(void *context, const void *data, int64_t bytes, const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)failure;
    atomic_store(&wants_answer, 1);
    while (!atomic_load(&is_answered))
        usleep(100);
}

static void *ask_for_answer(void *unused) {
    CHECK(eddy_runtime_use(alone) == EDDY_OK);
    CHECK(eddy_read_async(source, want_answer, NULL) == EDDY_OK);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    return unused;
}

static void count_up(void *context) {
    atomic_fetch_add((atomic_int *)context, 1);
}

static void one_thread_mode_waits_for_no_callback_of_another(void) {
    begin_alone();
    static float values[4];
    atomic_int deleted = 0;
    pthread_t asker;
    CHECK(pthread_create(&asker, NULL, ask_for_answer, NULL) == 0);
    while (!atomic_load(&wants_answer))
        usleep(100);
    eddy_tensor *x = eddy_from_buffer(values, EDDY_SHAPE(4), EDDY_F32, count_up, &deleted, NULL);
    eddy_release(&x);
    CHECK(eddy_sync_deleters(1000000) == EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    atomic_store(&is_answered, 1);
    CHECK(eddy_sync_deleters(EDDY_FOREVER) == EDDY_OK && atomic_load(&deleted) == 1);
    pthread_join(asker, NULL);
    eddy_release(&source);
}

enum { LENT_ROUNDS = 10000 };

static atomic_int lent_round, waited_round, ended_round;

/* Ends each lend at about the time at which the other begins to wait. */
static void *lend_in_rounds(void *unused) {
    CHECK(eddy_runtime_use(alone) == EDDY_OK);
    for (int round = 1; round <= LENT_ROUNDS; round++) {
        CHECK(eddy_map(source, EDDY_READ | EDDY_WRITE, EDDY_FOREVER));
        atomic_store(&lent_round, round);
        while (atomic_load(&waited_round) != round)
            sched_yield();
        for (volatile int pause = 0; pause < round % 100 * 100; pause++) {
        }
        CHECK(eddy_unmap(source) == EDDY_OK);
        while (atomic_load(&ended_round) != round)
            sched_yield();
    }
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    return unused;
}

static void pass_by(void *context, void *data, const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)failure;
}

static void a_waiter_in_one_thread_mode_runs_what_comes_due(void) {
    begin_alone();
    pthread_t lender;
    CHECK(pthread_create(&lender, NULL, lend_in_rounds, NULL) == 0);
    for (int round = 1; round <= LENT_ROUNDS; round++) {
        while (atomic_load(&lent_round) != round)
            sched_yield();
        CHECK(eddy_access_async(source, EDDY_READ | EDDY_WRITE, pass_by, NULL) == EDDY_OK);
        eddy_tensor *sum = eddy_add(source, source);
        atomic_store(&waited_round, round);
        CHECK(eddy_wait(sum, EDDY_FOREVER) == EDDY_OK);
        eddy_release(&sum);
        atomic_store(&ended_round, round);
    }
    pthread_join(lender, NULL);
    eddy_release(&source);
}

/* ---- */

#define CASE(name)                                                                                 \
    { #name, name }

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(unmap_ends_what_shutdown_waits_for),
    CASE(a_lender_cannot_wait_for_its_own_unmap),
    CASE(a_copy_is_not_taken_away_by_shutdown),
    CASE(a_stream_outlives_its_runtime),
    CASE(a_second_shutdown_ends_with_the_first),
    CASE(what_was_abandoned_stays_so),
    CASE(a_deleter_that_stays_is_left_behind),
    CASE(one_thread_mode_keeps_the_time_of_waits),
    CASE(a_loop_that_never_ends_holds_nobody_up),
    CASE(polls_are_bounded),
    CASE(calls_behind_a_lend_are_bounded),
    CASE(a_callback_may_want_the_issuers_lock),
    CASE(numbers_come_back),
    CASE(a_million_handles_are_trimmed),
    CASE(streams_are_reused_beside_a_shortage),
    CASE(two_runtimes_share_the_limit),
    CASE(one_thread_mode_shares_the_limit),
    CASE(one_thread_mode_waits_for_no_kernel_without_end),
    CASE(two_runtimes_do_not_wait_for_each_other),
    CASE(a_callback_may_fork),
    CASE(a_callback_inside_a_call_gives_nothing_up_twice),
    CASE(what_a_callback_makes_is_in_no_scope_around_it),
    CASE(a_callback_has_its_own_gradients),
    CASE(errors_of_a_callback_are_not_the_callers),
    CASE(one_thread_mode_waits_for_no_callback_of_another),
    CASE(a_waiter_in_one_thread_mode_runs_what_comes_due),
};

int main(int argc, char **argv) {
    alarm(100);
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: hostile CASE\n");
    return 2;
}
