/* driver_faults: fails calls of CUDA's driver, one in each process, while driver_work.c works with two devices of the fake driver. Whatever fails, the process ends as it should: every call
 * says OK or what has become of the device, what was read is right, a device that nothing has happened to goes on, nothing that the driver has made is left, and the fake finds nothing.
 *
 *   driver_faults refused|memory|not_found|lost|piece STEP [FIRST LAST]
 *
 * The first word is what the driver says; piece: something launched fails as it runs. Call FIRST fails, then FIRST + STEP and so on up to LAST; without them from the first call of the process to
 * the last. */
#include "driver_work.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct kind_of_fault {
    const char *name, *variable;
    int result;           /* of the driver */
    bool takes_a_context; /* for good */
} kind_of_fault;

static const kind_of_fault kinds[] = {{"refused", "FAKE_CUDA_FAIL", 1, false},
                                      {"memory", "FAKE_CUDA_FAIL", 2, false},
                                      {"not_found", "FAKE_CUDA_FAIL", 500, false},
                                      {"lost", "FAKE_CUDA_FAIL", 719, true},
                                      {"piece", "FAKE_CUDA_FAIL_RUN", 719, true}};

static const kind_of_fault *kind;
static long number; /* of the call that fails in this process; 0: none */

/* What processes tell their parent. */
typedef struct report {
    driver_results expected;
    char failed[64]; /* the entry; "": none has */
    bool is_over;
} report;

static report *shared;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- the fake driver ---- */

static void *fake(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, name) : NULL;
    CHECK(symbol);
    return symbol;
}

static long fake_number(const char *name) {
    long (*function)(void);
    *(void **)&function = fake(name);
    return function();
}

/* The entry that has failed, or ""; tells the parent, too. */
static const char *fake_failed(void) {
    const char *(*function)(void);
    *(void **)&function = fake("fake_cuda_failed");
    const char *name = function();
    snprintf(shared->failed, sizeof(shared->failed), "%s", name ? name : "");
    return shared->failed;
}

/* Whose failure leaves behind what it was to end, or what can be ended within the context only. */
static bool ends_something(const char *entry) {
    return strstr(entry, "Destroy") || strstr(entry, "Free") || strstr(entry, "Unload") ||
           strcmp(entry, "cuCtxGetCurrent") == 0 || strcmp(entry, "cuCtxSetCurrent") == 0 ||
           strcmp(entry, "cuThreadExchangeStreamCaptureMode") == 0;
}

/* Whose failure leaves the process without a driver. */
static bool starts_the_driver(const char *entry) {
    return strcmp(entry, "cuInit") == 0 || strcmp(entry, "cuDriverGetVersion") == 0 ||
           strcmp(entry, "cuDeviceGetCount") == 0;
}

/* ---- one process ---- */

static void compare(const driver_results *found) {
    for (int p = 0; p < DRIVER_PARTS; p++)
        for (int r = 0; r < DRIVER_RESULTS; r++) {
            const driver_result *is = &found->all[p][r], *was = &shared->expected.all[p][r];
            if (!is->is_read) {
                CHECK(number != 0 || !was->is_read);
                continue;
            }
            CHECK(was->is_read);
            for (int e = 0; e < DRIVER_ELEMENTS; e++)
                if (is->elements[e] != was->elements[e]) {
                    fprintf(stderr, "part %d, result %d, element %d: %.17g instead of %.17g\n", p,
                            r, e, is->elements[e], was->elements[e]);
                    exit(1);
                }
        }
}

/* Whether the device works, to the last. */
static bool works(eddy_device device) {
    double sum = 0;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(5), EDDY_F32, EDDY_OPTIONS(ones, .device = device));
    eddy_read_options options = {.size = sizeof(options), .timeout = DRIVER_DEADLINE};
    eddy_status status =
        x ? eddy_read_f64(eddy_sum(x, EDDY_ALL_AXES, NULL), &sum, &options) : eddy_error_take(NULL);
    driver_work_expect(status, "a device that is asked whether it works");
    eddy_scope_end(scope);
    driver_work_expect(eddy_sync(DRIVER_DEADLINE), "sync");
    eddy_error_take(NULL);
    CHECK(status != EDDY_OK || sum == 5);
    return status == EDDY_OK;
}

/* A runtime from its start to its end. */
static void live(void (*work)(void)) {
    eddy_runtime_options options = {.size = sizeof(options), .exits_silently = true};
    eddy_runtime *runtime = eddy_runtime_create(&options);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    work();
    CHECK(eddy_live_count() == 0);
    CHECK(eddy_runtime_shutdown(runtime, DRIVER_DEADLINE) == EDDY_OK);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void work_here(void) {
    driver_work_run(EDDY_CPU, EDDY_CPU, &shared->expected);
}

static void work_there(void) {
    driver_results found;
    memset(&found, 0, sizeof(found));
    driver_work_run(EDDY_CUDA(0), EDDY_CUDA(1), &found);
    compare(&found);
    CHECK(works(EDDY_CPU));
    const char *failed = fake_failed();
    bool has_first = works(EDDY_CUDA(0)), has_second = works(EDDY_CUDA(1));
    CHECK(has_first || has_second || starts_the_driver(failed));
}

/* What has failed once works again. */
static void work_again(void) {
    const char *failed = fake_failed();
    if (!kind->takes_a_context && !starts_the_driver(failed))
        CHECK(works(EDDY_CUDA(0)) && works(EDDY_CUDA(1)));
}

static void check_that_nothing_is_left(void) {
    const char *failed = fake_failed();
    if (kind->takes_a_context || ends_something(failed))
        return;
    CHECK(fake_number("fake_cuda_bytes") == 0);
    CHECK(fake_number("fake_cuda_handles") == 0);
}

static void run_failing(void) {
    char text[64];
    /* Not to hang for ever: a wait that does not end has said so before. */
    alarm(300);
    snprintf(text, sizeof(text), "%ld:%d", number, kind->result);
    if (number > 0)
        setenv(kind->variable, text, 1);
    const char *text_of_seed = getenv("FAKE_CUDA_SEED");
    long seed = text_of_seed ? atol(text_of_seed) : 0;
    snprintf(text, sizeof(text), "%ld", seed * 10000 + number);
    setenv("FAKE_CUDA_SEED", text, 1);
    static const char *const modes[] = {"mixed", "lazy", "eager"};
    setenv("FAKE_CUDA_MODE", modes[(seed + number) % 3], 1);
    setenv("EDDY_CUDA_GRAPHS", number % 2 ? "1" : "0", 1);
    live(work_there);
    check_that_nothing_is_left();
    if (fake_failed()[0])
        live(work_again);
    check_that_nothing_is_left();
    shared->is_over = true;
}

/* In a process of its own, which is the first to use the driver. */
static void run_child(void (*run)(void)) {
    shared->is_over = false;
    shared->failed[0] = '\0';
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run();
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status == 0)
        return;
    fprintf(stderr, "call %ld fails (%s, %s%s): %s %d\n", number, kind->name, shared->failed,
            shared->is_over ? ", at its end" : "", WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    exit(1);
}

static void work_on_the_cpu(void) {
    live(work_here);
    shared->is_over = true;
}

/* False: they cannot be understood. */
static bool read_arguments(int argc, char **argv, long *step, long *first, long *last) {
    if (argc != 3 && argc != 5)
        return false;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        if (strcmp(argv[1], kinds[k].name) == 0)
            kind = &kinds[k];
    *step = atol(argv[2]);
    *first = argc == 5 ? atol(argv[3]) : 1;
    *last = argc == 5 ? atol(argv[4]) : LONG_MAX;
    return kind && *step > 0 && *first > 0;
}

int main(int argc, char **argv) {
    long step, first, last, failed = 0;
    if (!read_arguments(argc, argv, &step, &first, &last))
        return 2;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    run_child(work_on_the_cpu);
    run_child(run_failing);
    /* How many calls a run makes depends on what the streams do first: it is the third in a row that is not made that ends it. */
    int missed = 0;
    for (number = first; missed < 3 && number <= last; number += step) {
        run_child(run_failing);
        missed = shared->failed[0] ? 0 : missed + 1;
        failed += missed == 0;
    }
    CHECK(failed > 3);
    printf("%ld calls failed, each once (%s)\n", failed, kind->name);
    return 0;
}
