/* Programs on the fake driver, right and wrong ones, each in a process of its own and with seeds; for the fake's tests. */
#ifndef EDDY_TESTS_FAKE_CUDA_PROGRAM_H
#define EDDY_TESTS_FAKE_CUDA_PROGRAM_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <kernels/cuda/parameters.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/driver.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tests/fake_cuda/own_kernels.h>
#include <unistd.h>

#define WORDS 1000
#define BYTES (WORDS * sizeof(uint64_t))

/* With how many seeds a program runs, each in a process of its own; the suite `long` asks for more (meson.build). */
static inline int seed_count(void) {
    const char *count = getenv("EDDY_TEST_SEEDS");
    return count ? atoi(count) : 60;
}

static eddy_cuda_driver cu;
static int (*findings)(void);
static long (*calls)(void), (*bytes_taken)(void), (*handles)(void);
static const char *(*failed)(void);

/* What the programs have. */
static eddy_cu_context context;
static eddy_cu_stream a, b;
static eddy_cu_event event;
static eddy_cu_module module;
static eddy_cu_function store, add;
static eddy_cu_address block, other;
static uint64_t *pinned; /* words that devices may write */
static uint64_t ticket;

/* ---- a program in its process ---- */

/* Ends the process: the test reads the line. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define WORKS(call) MUST((call) == 0)
#define IS(result, call) MUST((call) == (result))

static inline void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
#define LOAD(symbol, name, parameters)                                                             \
    *(void **)&cu.name = dlsym(library, #symbol);                                                  \
    cr_assert_not_null(cu.name);
    EDDY_CUDA_DRIVER_LIST(LOAD)
#undef LOAD
    *(void **)&findings = dlsym(library, "fake_cuda_findings");
    *(void **)&calls = dlsym(library, "fake_cuda_calls");
    *(void **)&bytes_taken = dlsym(library, "fake_cuda_bytes");
    *(void **)&handles = dlsym(library, "fake_cuda_handles");
    *(void **)&failed = dlsym(library, "fake_cuda_failed");
    cr_assert(findings && calls && bytes_taken && handles && failed);
}

/* Takes everything; the first result that is not 0. */
static inline eddy_cu_result open_all(void) {
    eddy_cu_result result;
    ticket = 0;
#define STEP(call)                                                                                 \
    if ((result = (call)))                                                                         \
    return result
    STEP(cu.init(0));
    STEP(cu.context_retain(&context, 0));
    STEP(cu.context_set(context));
    STEP(cu.stream_create(&a, EDDY_CU_STREAM_NON_BLOCKING, 0));
    STEP(cu.stream_create(&b, EDDY_CU_STREAM_NON_BLOCKING, -1));
    STEP(cu.event_create(&event, EDDY_CU_EVENT_DISABLE_TIMING));
    STEP(cu.memory_acquire(&block, BYTES));
    STEP(cu.memory_acquire(&other, BYTES));
    STEP(cu.host_acquire((void **)&pinned, BYTES, EDDY_CU_HOST_PORTABLE | EDDY_CU_HOST_MAPPED));
    STEP(cu.module_load(&module, "an image"));
    STEP(cu.module_function(&store, module, "test_store"));
    STEP(cu.module_function(&add, module, "eddy_test_add_dense"));
#undef STEP
    __atomic_store_n(pinned, 0, __ATOMIC_RELEASE);
    return 0;
}

static inline eddy_cu_result launch(eddy_cu_function function, eddy_cu_stream stream,
                                    const void *parameters, size_t bytes) {
    void *extra[] = {(void *)1, (void *)(uintptr_t)parameters, (void *)2, &bytes, NULL};
    return cu.launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra);
}

/* `count` words from an address on become `value`. */
static inline eddy_cu_result launch_store(eddy_cu_stream stream, eddy_cu_address to, uint64_t count,
                                          uint64_t value) {
    test_words parameters = {(uint64_t *)(uintptr_t)to, count, value};
    return launch(store, stream, &parameters, sizeof(parameters));
}

/* sum = x + y, of all floats of a block. */
static inline eddy_cu_result launch_add(eddy_cu_stream stream, eddy_cu_address x, eddy_cu_address y,
                                        eddy_cu_address sum) {
    eddy_cuda_dense dense = {
        .data = {(void *)(uintptr_t)x, (void *)(uintptr_t)y, (void *)(uintptr_t)sum},
        .count = BYTES / sizeof(float)};
    return launch(add, stream, &dense, sizeof(dense));
}

static inline void order(eddy_cu_stream before, eddy_cu_stream after) {
    WORKS(cu.event_record(event, before));
    WORKS(cu.stream_wait_event(after, event, 0));
}

/* Waits as a runtime does that looks at a word which the device writes. */
static inline void poll_for(eddy_cu_stream stream) {
    WORKS(cu.stream_write(stream, (uintptr_t)pinned, ++ticket, 0));
    while (__atomic_load_n(pinned, __ATOMIC_ACQUIRE) < ticket)
        sched_yield();
}

static inline void wait_for(eddy_cu_stream stream) {
    WORKS(cu.event_record(event, stream));
    WORKS(cu.event_synchronize(event));
}

static inline void close_all(void) {
    wait_for(a);
    wait_for(b);
    WORKS(cu.module_unload(module));
    WORKS(cu.host_release(pinned));
    WORKS(cu.memory_release(other));
    WORKS(cu.memory_release(block));
    WORKS(cu.event_destroy(event));
    WORKS(cu.stream_destroy(b));
    WORKS(cu.stream_destroy(a));
    WORKS(cu.context_release(0));
    MUST(bytes_taken() == 0 && handles() == 0);
}

/* ---- the test's side ---- */

typedef struct outcome {
    int status;      /* of the process; -signal, if one ended it */
    char text[4096]; /* what it said */
} outcome;

static const char *const modes[] = {"eager", "lazy", "mixed"};

/* `exits`: by exit and its handlers; else its status is 97 if there were findings. */
static inline outcome run(void (*program)(void), int seed, bool exits) {
    if (!cu.init)
        load();
    outcome made = {0};
    int file = memfd_create("text", 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char text[16];
        snprintf(text, sizeof(text), "%d", seed);
        setenv("FAKE_CUDA_SEED", text, 1);
        setenv("FAKE_CUDA_MODE", modes[seed % 3], 0);
        setenv("FAKE_CUDA_BYTES", "1048576", 0);
        dup2(file, 2);
        alarm(60);
        program();
        if (exits)
            exit(0);
        _exit(findings() > 0 ? 97 : 0);
    }
    int status = 0;
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    made.status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    ssize_t length = pread(file, made.text, sizeof(made.text) - 1, 0);
    made.text[length > 0 ? length : 0] = '\0';
    close(file);
    return made;
}

/* The program has no findings with any seed. */
static inline void is_right(void (*program)(void)) {
    for (int seed = 1; seed <= seed_count(); seed++) {
        outcome of = run(program, seed, false);
        cr_assert_eq(of.status, 0, "seed %d: status %d: %s", seed, of.status, of.text);
        cr_assert_null(strstr(of.text, "fake_cuda"), "%s", of.text);
    }
}

/* Under ThreadSanitizer a wrong program may end earlier: devices are threads, which race for memory of the host. */
static inline bool is_found_elsewhere(const outcome *of) {
#ifdef __SANITIZE_THREAD__
    return strstr(of->text, "ThreadSanitizer: data race") != NULL;
#else
    (void)of;
    return false;
#endif
}

/* The program has a finding that says `text`, with each seed. */
static inline void is_found(void (*program)(void), const char *text) {
    for (int seed = 1; seed <= seed_count(); seed++) {
        outcome of = run(program, seed, false);
        if (is_found_elsewhere(&of))
            continue;
        cr_assert_eq(of.status, 97, "seed %d: status %d: %s", seed, of.status, of.text);
        cr_assert(strstr(of.text, text) != NULL, "seed %d: %s", seed, of.text);
    }
}

#endif
