#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/option.h>

static fake_options options; /* const after init */

static void refuse(const char *name, const char *text) {
    fprintf(stderr, "fake_cuda: cannot understand %s=%s\n", name, text);
    abort();
}

static long long number(const char *name, long long otherwise, long long least, long long most) {
    const char *text = getenv(name);
    if (!text)
        return otherwise;
    char *end;
    long long value = strtoll(text, &end, 0);
    if (end == text || *end || value < least || value > most)
        refuse(name, text);
    return value;
}

/* COUNT[:RESULT] */
static void read_failure(const char *name, const char *text, long *count, int *result) {
    char *end;
    *count = strtol(text, &end, 10);
    if (end == text || *count < 1)
        refuse(name, text);
    if (*end == ':') {
        const char *rest = end + 1;
        *result = (int)strtol(rest, &end, 10);
        if (end == rest)
            refuse(name, text);
    }
    if (*end)
        refuse(name, text);
}

static void read_failures(void) {
    const char *text = getenv("FAKE_CUDA_FAIL");
    if (text)
        read_failure("FAKE_CUDA_FAIL", text, &options.fail_call, &options.fail_call_result);
    if ((text = getenv("FAKE_CUDA_FAIL_RUN")))
        read_failure("FAKE_CUDA_FAIL_RUN", text, &options.fail_run, &options.fail_run_result);
    if (!(text = getenv("FAKE_CUDA_FAIL_ENTRY")))
        return;
    size_t length = strcspn(text, ":");
    if (length == 0 || length >= sizeof(options.fail_entry) || text[length] != ':')
        refuse("FAKE_CUDA_FAIL_ENTRY", text);
    memcpy(options.fail_entry, text, length);
    read_failure("FAKE_CUDA_FAIL_ENTRY", text + length + 1, &options.fail_entry_call,
                 &options.fail_entry_result);
}

static fake_mode read_mode(void) {
    const char *text = getenv("FAKE_CUDA_MODE");
    if (!text || strcmp(text, "mixed") == 0)
        return FAKE_MIXED;
    if (strcmp(text, "lazy") == 0)
        return FAKE_LAZY;
    if (strcmp(text, "eager") != 0)
        refuse("FAKE_CUDA_MODE", text);
    return FAKE_EAGER;
}

static void read_all(void) {
    options.devices = (int)number("FAKE_CUDA_DEVICES", 2, 0, FAKE_DEVICES);
    options.bytes = number("FAKE_CUDA_BYTES", 256 << 20, 4096, (int64_t)1 << 35) & -4096;
    options.pinned_bytes = number("FAKE_CUDA_PINNED", (int64_t)1 << 40, 0, (int64_t)1 << 40);
    options.capability = (int)number("FAKE_CUDA_CAPABILITY", 90, 10, 999);
    options.version = (int)number("FAKE_CUDA_VERSION", 13000, 1000, 99999);
    options.blas_version = (int)number("FAKE_CUDA_BLAS_VERSION", 130000, 0, 999999);
    options.dnn_version = (int)number("FAKE_CUDA_DNN_VERSION", 90000, 0, 999999);
    options.dnn_plan_ms = (int)number("FAKE_CUDA_DNN_PLAN_MS", 0, 0, 60000);
    options.seed = (uint64_t)number("FAKE_CUDA_SEED", 1, 0, INT64_MAX);
    options.has_stream_writes = number("FAKE_CUDA_STREAM_WRITES", 1, 0, 1) != 0;
    options.captures_writes = number("FAKE_CUDA_CAPTURES_WRITES", 0, 0, 1) != 0;
    options.has_peers = number("FAKE_CUDA_PEERS", 1, 0, 1) != 0;
    options.aborts = number("FAKE_CUDA_ABORT", 0, 0, 1) != 0;
    options.obeys_priorities = number("FAKE_CUDA_PRIORITIES", 0, 0, 1) != 0;
    options.mode = read_mode();
    const char *kernels = getenv("FAKE_CUDA_KERNELS");
    options.kernels = kernels ? strdup(kernels) : "libeddy_cuda_kernels.so";
    read_failures();
}

const fake_options *fake_options_read(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return &options;
}
