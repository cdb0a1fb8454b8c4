/* life CASE: one life-cycle case in this process. Exit status 0 is success; cases that end the process in another way fork
 * and look at how the child ended. */
#include <base/memory.h>
#include <base/sleep.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <fenv.h>
#include <xmmintrin.h>
#endif

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Work for a while: matrix products that do not wait. */
static eddy_tensor *busy(int count) {
    eddy_tensor *a = eddy_rand(EDDY_SHAPE(384, 384), EDDY_F32, NULL);
    for (int i = 0; i < count; i++) {
        eddy_tensor *next = eddy_softmax(eddy_matmul(a, a), 1);
        CHECK(next);
        a = next;
    }
    return a;
}

/* Runs `child` in a forked process and answers its wait status. */
static int in_child(void (*child)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(60);
        child();
        exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static bool exited_with(int status, int code) {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

/* ---- exit ---- */

static void stay_busy(void) {
    busy(200);
}

static void exit_while_busy(void) {
    CHECK(exited_with(in_child(stay_busy), 0));
}

/* Far more than it gets time for: the products' library ends while kernels wait to go on. */
static void stay_busier(void) {
    busy(400);
}

static void exit_with_much_to_do(void) {
    CHECK(exited_with(in_child(stay_busier), 0));
}

/* Convolutions forth and back in both orders, of what the library has code for and of what it brings into its own. */
static void convolve(eddy_dtype dtype, int64_t channels, bool is_last) {
    eddy_tensor *x = eddy_cast(eddy_rand(EDDY_SHAPE(8, channels, 30, 29), EDDY_F32, NULL), dtype);
    eddy_tensor *w = eddy_cast(eddy_rand(EDDY_SHAPE(32, channels, 3, 3), EDDY_F32, NULL), dtype);
    if (is_last)
        x = eddy_permute(eddy_contiguous(eddy_permute(x, EDDY_AXES(0, 2, 3, 1))),
                         EDDY_AXES(0, 3, 1, 2));
    for (int i = 0; i < 20; i++) {
        eddy_tensor *y = eddy_conv2d(x, w, EDDY_NONE, NULL);
        CHECK(y && eddy_conv_transpose2d(y, w, EDDY_NONE, NULL));
        CHECK(eddy_conv2d_backward_weight(y, x, (eddy_pair){3, 3}, NULL));
    }
}

static void stay_convolving(void) {
    for (int64_t channels = 3; channels <= 16; channels += 13)
        for (int is_last = 0; is_last < 2; is_last++) {
            convolve(EDDY_BF16, channels, is_last);
            convolve(EDDY_F32, channels, is_last);
        }
}

static void exit_while_convolving(void) {
    CHECK(exited_with(in_child(stay_convolving), 0));
}

static atomic_int kernel_count;

static eddy_status run_counted(const eddy_op_call *call) {
    (void)call;
    atomic_fetch_add(&kernel_count, 1);
    return EDDY_OK;
}

/* In place on x. */
static void register_counted(void) {
    static const eddy_operand_description operands[] = {{"x", EDDY_OPERAND_TENSOR, true}};
    static const eddy_op_kernel kernels[] = {{.device = EDDY_DEVICE_CPU, .run = run_counted}};
    CHECK(eddy_op_register(&(eddy_op_description){.size = sizeof(eddy_op_description),
                                                  .name = "test.counted",
                                                  .summary = "counts its kernels",
                                                  .operands = operands,
                                                  .operand_count = 1,
                                                  .kernels = kernels,
                                                  .kernel_count = 1,
                                                  .has_no_grad = true}) == EDDY_OK);
}

static eddy_status is_positive(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_gt_s(carried.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status count(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = carried.items[0];
    return eddy_call("test.counted", carried, NULL, NULL);
}

/* Registered first, so that it is called once the library's own handler has returned. */
static void look_for_kernels(void) {
    int before = atomic_load(&kernel_count);
    usleep(50000);
    if (before == 0 || atomic_load(&kernel_count) != before)
        _exit(1);
}

/* A run of a program that never ends: its calls are recorded and do not run. */
static void stay_in_a_run(void) {
    CHECK(atexit(look_for_kernels) == 0);
    register_counted();
    eddy_tensor *x = eddy_ones((eddy_shape){0}, EDDY_F32, NULL), *y;
    CHECK(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)) == EDDY_OK);
    CHECK(eddy_while(is_positive, count, NULL, EDDY_LIST(x), NULL, &y) == EDDY_OK);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    CHECK(program);
    CHECK(eddy_program_run(program, EDDY_LIST(x), &y) == EDDY_OK);
}

static void exit_while_a_program_runs(void) {
    CHECK(exited_with(in_child(stay_in_a_run), 0));
}

static void *call_exit(void *context) {
    (void)context;
    exit(3);
}

static void exit_beside_issuer(void) {
    pthread_t thread;
    busy(5);
    CHECK(pthread_create(&thread, NULL, call_exit, NULL) == 0);
    /* Calls are refused from some moment on; never a crash. */
    for (;;) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *a = eddy_ones(EDDY_SHAPE(64, 64), EDDY_F32, NULL);
        eddy_add(a, a);
        eddy_scope_end(scope);
    }
}

static void exit_from_another_thread(void) {
    CHECK(exited_with(in_child(exit_beside_issuer), 3));
}

static _Atomic int64_t leaping_ns;

/* Every look at the clock finds 100 ms gone. */
static int64_t leaping_clock(void) {
    return eddy_add_relaxed(&leaping_ns, (int64_t)100000000);
}

static void exit_with_open_lend(void) {
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL);
    CHECK(eddy_map(a, EDDY_WRITE, EDDY_FOREVER));
    CHECK(eddy_add(a, a)); /* waits for an unmap that never comes */
    eddy_clock_replace(leaping_clock);
}

static void exit_behind_a_lend(void) {
    CHECK(exited_with(in_child(exit_with_open_lend), 0));
}

/* What a child that ends well writes to stderr. */
static void heard_from(void (*child)(void), char *text, size_t size) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    int before = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    int status = in_child(child);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    ssize_t length = read(ends[0], text, size - 1);
    close(ends[0]);
    CHECK(length >= 0);
    text[length] = '\0';
    CHECK(exited_with(status, 0));
}

static bool is_one_line(const char *text) {
    const char *line_end = strchr(text, '\n');
    return line_end && line_end[1] == '\0';
}

static void leave_an_error(void) {
    int64_t label = 12;
    eddy_tensor *labels = eddy_from_data(&label, EDDY_SHAPE(1), EDDY_I64, NULL);
    CHECK(eddy_cross_entropy(eddy_ones(EDDY_SHAPE(1, 10), EDDY_F32, NULL), labels, NULL));
}

static void unseen_error_is_told_at_exit(void) {
    char text[1024];
    heard_from(leave_an_error, text, sizeof(text));
    CHECK(strstr(text, "cross_entropy") && strstr(text, "12"));
    CHECK(is_one_line(text));
}

static void add_what_does_not_fit(void) {
    CHECK(!eddy_add(eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                    eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL)));
}

static void *fail_on_another_thread(void *context) {
    add_what_does_not_fit();
    return context;
}

/* Three of calls, one of them of a thread that is gone, and a late one. */
static void leave_errors_of_calls(void) {
    pthread_t thread;
    add_what_does_not_fit();
    add_what_does_not_fit();
    CHECK(pthread_create(&thread, NULL, fail_on_another_thread, NULL) == 0 &&
          pthread_join(thread, NULL) == 0);
    CHECK(eddy_wait(eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), EDDY_FOREVER) == EDDY_OK);
    leave_an_error();
}

static void take_errors_of_calls(void) {
    add_what_does_not_fit();
    add_what_does_not_fit();
    CHECK(eddy_error_take(NULL) == EDDY_SHAPE_MISMATCH);
}

static void leave_errors_silently(void) {
    setenv("EDDY_SILENT_EXIT", "1", 1);
    leave_errors_of_calls();
}

static void leave_errors_of_a_silent_runtime(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .exits_silently = true));
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    leave_errors_of_calls();
}

/* Before there is any runtime. */
static void leave_the_very_first_error(void) {
    CHECK(!eddy_archive_tensor(NULL, "weights"));
}

static void name_no_archive(void *context, const void *data, int64_t bytes,
                            const eddy_error *failure) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)failure;
    CHECK(!eddy_archive_tensor(NULL, "weights"));
}

/* On the thread that takes its own errors. */
static void leave_an_error_of_a_callback(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL);
    CHECK(eddy_read_async(x, name_no_archive, NULL) == EDDY_OK &&
          eddy_sync(EDDY_FOREVER) == EDDY_OK);
    eddy_release(&x);
    take_errors_of_calls();
}

static void write_once_told(void *context, void *data, const eddy_error *error) {
    (void)data, (void)error;
    while (!atomic_load((atomic_bool *)context))
        usleep(1000);
}

/* Whatever the machine is busy with: what is waited for has not ended. */
static void run_out_of_time(void) {
    atomic_bool is_told = false;
    eddy_tensor *a = eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL);
    CHECK(eddy_access_async(a, EDDY_WRITE, write_once_told, &is_told) == EDDY_OK);
    CHECK(eddy_wait(a, 0) == EDDY_TIMED_OUT);
    atomic_store(&is_told, true);
    CHECK(eddy_wait(a, EDDY_FOREVER) == EDDY_OK);
    eddy_release(&a);
}

static void leave_to_a_child(void) {
    add_what_does_not_fit();
    CHECK(exited_with(in_child(take_errors_of_calls), 0)); /* it says nothing of the parent's */
}

static void unseen_errors_of_calls_are_told_at_exit(void) {
    char text[1024];
    heard_from(leave_errors_of_calls, text, sizeof(text));
    CHECK(strstr(text, "4 errors that nobody looked at, the first: add: "));
    CHECK(is_one_line(text));
    heard_from(leave_the_very_first_error, text, sizeof(text));
    CHECK(strstr(text, "1 error that nobody looked at, the first: archive_tensor: ") &&
          is_one_line(text));
    heard_from(leave_an_error_of_a_callback, text, sizeof(text));
    CHECK(strstr(text, "1 error that nobody looked at, the first: archive_tensor: ") &&
          is_one_line(text));
    heard_from(leave_to_a_child, text, sizeof(text));
    CHECK(strstr(text, "1 error that") && is_one_line(text));
    void (*const quiet[])(void) = {take_errors_of_calls, leave_errors_silently,
                                   leave_errors_of_a_silent_runtime, run_out_of_time};
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
        heard_from(quiet[i], text, sizeof(text));
        CHECK(*text == '\0');
    }
}

/* As hello.c does: a chain that nobody looks at, then a print. */
static void start_with_a_wrong_variable(void) {
    setenv("EDDY_THREADS", "abc", 1);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
    CHECK(eddy_print(eddy_add(x, x), stderr) != EDDY_OK);
    eddy_error error;
    CHECK(eddy_error_take(&error) == EDDY_INVALID_ARGUMENT);
    CHECK(strcmp(error.message, "EDDY_THREADS is abc, not a number from 0 to 1024") == 0);
    eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL); /* and again at exit, untaken */
}

static void a_wrong_variable_is_named(void) {
    char text[1024];
    heard_from(start_with_a_wrong_variable, text, sizeof(text));
    CHECK(strcmp(text, "error: EDDY_THREADS is abc, not a number from 0 to 1024\n"
                       "eddy: 1 error that nobody looked at, the first: EDDY_THREADS is abc, not a "
                       "number from 0 to 1024\n") == 0);
}

static void log_errors(void) {
    setenv("EDDY_LOG", "error", 1);
    take_errors_of_calls();
    CHECK(eddy_print(eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), NULL) ==
          EDDY_OK); /* none of an error's business */
}

static void log_all(void) {
    setenv("EDDY_LOG", "stderr", 1);
    CHECK(eddy_print(eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), NULL) == EDDY_OK);
}

static void log_warnings(void) {
    setenv("EDDY_LOG", "Warning", 1);
    CHECK(eddy_print(eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), NULL) == EDDY_OK);
    CHECK(eddy_leaks_report() == 1); /* asked for: not dropped */
}

static void log_nonsense(void) {
    setenv("EDDY_LOG", "loud", 1);
    CHECK(eddy_print(eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), NULL) == EDDY_OK);
}

static void the_log_needs_no_code(void) {
    char text[2048];
    heard_from(log_errors, text, sizeof(text));
    CHECK(strncmp(text, "eddy: add: ", 11) == 0 &&
          strstr(text, "(EDDY_SHAPE_MISMATCH)\neddy: add: "));
    CHECK(!strstr(text, "[1.]"));
    heard_from(log_all, text, sizeof(text));
    CHECK(strcmp(text, "eddy: [1.]  f32[1]\n") == 0);
    heard_from(log_warnings, text, sizeof(text));
    CHECK(strstr(text, "eddy: live tensor f32[1]") == text && is_one_line(text));
    heard_from(log_nonsense, text, sizeof(text));
    CHECK(strstr(text, "eddy: EDDY_LOG is loud, not stderr") == text && strstr(text, "eddy: [1.]"));
}

/* ---- fork ---- */

static eddy_tensor *parents;

static void use_in_child(void) {
    CHECK(eddy_add(parents, parents) == NULL);
    eddy_error error;
    CHECK(eddy_error_take(&error) == EDDY_FORKED);
    eddy_tensor *mine = eddy_retain(parents);
    eddy_release(&mine);
    eddy_release(&parents);
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *b = eddy_ones(EDDY_SHAPE(100, 100), EDDY_F32, NULL);
    CHECK(eddy_item_f64(eddy_sum(eddy_matmul(b, b), EDDY_ALL_AXES, NULL), NULL) == 1e6);
    CHECK(eddy_error_take(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void fork_while_busy(void) {
    for (int i = 0; i < 8; i++) {
        parents = busy(20);
        CHECK(exited_with(in_child(use_in_child), 0));
        /* The parent does not notice. */
        double sum = eddy_item_f64(eddy_sum(parents, EDDY_ALL_AXES, NULL), NULL);
        CHECK(sum > 383.9 && sum < 384.1);
    }
}

static void convolve_in_child(void) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    for (int64_t side = 20; side < 24; side++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 8, side, side), EDDY_F32, NULL);
        eddy_tensor *w = eddy_ones(EDDY_SHAPE(8, 8, 3, 3), EDDY_F32, NULL);
        double places = (double)((side - 2) * (side - 2));
        CHECK(eddy_item_f64(eddy_sum(eddy_conv2d(x, w, EDDY_NONE, NULL), EDDY_ALL_AXES, NULL),
                            NULL) == 16 * 72 * places);
    }
    eddy_runtime_release(&runtime);
}

static void fork_while_convolving(void) {
    for (int i = 0; i < 8; i++) {
        eddy_scope *scope = eddy_scope_begin();
        convolve(EDDY_F32, 3 + i, i % 2);
        CHECK(exited_with(in_child(convolve_in_child), 0));
        eddy_scope_end(scope);
    }
}

/* ---- runtimes ---- */

static void two_runtimes(void) {
    eddy_runtime *first = eddy_runtime_create(NULL), *second = eddy_runtime_create(NULL);
    CHECK(first && second);
    CHECK(eddy_runtime_use(first) == EDDY_OK);
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    CHECK(eddy_runtime_use(second) == EDDY_OK);
    eddy_tensor *b = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    CHECK(eddy_add(a, b) == NULL);
    eddy_error error;
    CHECK(eddy_error_take(&error) == EDDY_RUNTIME_MISMATCH);
    CHECK(strstr(error.message, "add"));
    /* A tensor knows its runtime, whichever is current. */
    CHECK(eddy_item_f64(eddy_sum(eddy_add(a, a), EDDY_ALL_AXES, NULL), NULL) == 8);
    CHECK(eddy_runtime_shutdown(first, EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_item_f64(eddy_sum(b, EDDY_ALL_AXES, NULL), NULL) == 4);
    eddy_release(&a);
    eddy_release(&b);
    eddy_runtime_release(&first);
    eddy_runtime_release(&second);
}

static int64_t held_bytes(void) {
    int64_t bytes = 0;
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++)
        bytes += eddy_memory_counted((eddy_memory_purpose)p).bytes;
    return bytes;
}

static void start_once(void) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(50, 50), EDDY_F32, NULL);
    eddy_tensor *b = eddy_matmul(a, a);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
    eddy_release(&a);
    eddy_release(&b);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void start_and_shut_down_1000_times(void) {
    for (int i = 0; i < 10; i++)
        start_once();
    int64_t before = held_bytes();
    for (int i = 0; i < 1000; i++)
        start_once();
    CHECK(held_bytes() <= before);
    CHECK(eddy_live_count() == 0);
}

static void use_after_shutdown(void) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_add(a, a) == NULL && eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    CHECK(eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL) == NULL &&
          eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    double value;
    CHECK(eddy_read_f64(a, &value, NULL) == EDDY_SHUT_DOWN &&
          eddy_error_take(NULL) == EDDY_SHUT_DOWN);
    eddy_tensor *again = eddy_retain(a);
    eddy_release(&a);
    eddy_release(&again);
    eddy_runtime_release(&runtime);
}

/* ---- threads ---- */

static void *leave_scope_open(void *context) {
    (void)context;
    eddy_scope_begin();
    eddy_scope_begin();
    for (int i = 0; i < 10; i++)
        CHECK(eddy_ones(EDDY_SHAPE(8), EDDY_F32, NULL));
    return NULL;
}

static void thread_ends_with_an_open_scope(void) {
    int64_t before = eddy_live_count();
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leave_scope_open, NULL) == 0);
        pthread_join(thread, NULL);
    }
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_live_count() == before);
}

static pthread_barrier_t all_have_issued;

static void *issue_briefly(void *context) {
    eddy_tensor *shared = context;
    eddy_tensor *b = eddy_add(shared, shared);
    CHECK(b);
    /* As many at once in every round, so that the first round already needs all that later ones may. */
    pthread_barrier_wait(&all_have_issued);
    eddy_release(&b);
    return NULL;
}

static void run_threads(eddy_tensor *shared, int count) {
    pthread_t threads[4];
    for (int i = 0; i < count; i += 4) {
        for (int t = 0; t < 4; t++)
            CHECK(pthread_create(&threads[t], NULL, issue_briefly, shared) == 0);
        for (int t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
    }
}

static void ten_thousand_short_lived_threads(void) {
    eddy_tensor *shared = eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL);
    CHECK(pthread_barrier_init(&all_have_issued, NULL, 4) == 0);
    run_threads(shared, 200);
    int64_t before = eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes;
    run_threads(shared, 10000);
    CHECK(eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes <= before);
    eddy_release(&shared);
}

/* ---- kernels and the caller's floating-point environment ---- */

static void compute(double *values) {
    uint32_t tiny[64];
    for (uint32_t i = 0; i < 64; i++)
        tiny[i] =
            70000 * (i + 1); /* the bits of subnormal numbers, made without arithmetic on them */
    eddy_tensor *a = eddy_from_data(tiny, EDDY_SHAPE(64), EDDY_F32, NULL);
    eddy_tensor *r = eddy_rand(EDDY_SHAPE(200, 200), EDDY_F32, NULL);
    eddy_tensor *scaled = eddy_mul_s(a, EDDY_S(1e38));
    values[0] = eddy_item_f64(eddy_sum(scaled, EDDY_ALL_AXES, NULL), NULL);
    values[1] = eddy_item_f64(eddy_sum(eddy_exp(eddy_matmul(r, r)), EDDY_ALL_AXES, NULL), NULL);
    values[2] =
        eddy_item_f64(eddy_sum(eddy_div(r, eddy_add_s(r, EDDY_S(3))), EDDY_ALL_AXES, NULL), NULL);
    CHECK(eddy_error_take(NULL) == EDDY_OK);
}

static void kernels_ignore_the_callers_float_environment(void) {
#if defined(__x86_64__)
    double plain[3], odd[3];
    eddy_seed(1);
    compute(plain);
    CHECK(plain[0] != 0);
    eddy_seed(1);
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040 |
               0x6000); /* flush to zero, denormals are zero, round towards zero */
    unsigned set = _mm_getcsr();
    eddy_runtime *runtime = eddy_runtime_create(NULL); /* its threads inherit the environment */
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    eddy_seed(1);
    compute(odd);
    CHECK((_mm_getcsr() & ~0x3fu) == (set & ~0x3fu)); /* the caller keeps its own */
    _mm_setcsr(before);
    CHECK(memcmp(plain, odd, sizeof(plain)) == 0);
    eddy_runtime_release(&runtime);
#endif
}

/* ---- idle ---- */

static void idle_sleeps(void) {
    eddy_tensor *a = busy(3);
    CHECK(eddy_wait(a, EDDY_FOREVER) == EDDY_OK);
    /* Threads spin for less than a millisecond and then sleep for good: let them get there, then count. */
    usleep(100000);
    uint64_t sleeps = eddy_sleep_count(), wakes = eddy_sleep_wake_count();
    usleep(200000);
    CHECK(eddy_sleep_count() == sleeps);
    CHECK(eddy_sleep_wake_count() == wakes);
}

/* ---- */

#define CASE(name)                                                                                 \
    { #name, name }

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(exit_while_busy),
    CASE(exit_with_much_to_do),
    CASE(exit_while_convolving),
    CASE(exit_while_a_program_runs),
    CASE(exit_from_another_thread),
    CASE(exit_behind_a_lend),
    CASE(unseen_error_is_told_at_exit),
    CASE(unseen_errors_of_calls_are_told_at_exit),
    CASE(a_wrong_variable_is_named),
    CASE(the_log_needs_no_code),
    CASE(fork_while_busy),
    CASE(fork_while_convolving),
    CASE(two_runtimes),
    CASE(start_and_shut_down_1000_times),
    CASE(use_after_shutdown),
    CASE(thread_ends_with_an_open_scope),
    CASE(ten_thousand_short_lived_threads),
    CASE(kernels_ignore_the_callers_float_environment),
    CASE(idle_sleeps),
};

int main(int argc, char **argv) {
    alarm(100);
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: life CASE\n");
    return 2;
}
