/* A call of a fake library, or of the fake driver, that fails in a process of its own. */
#ifndef EDDY_TESTS_FUNCTIONAL_FAILING_CALL_H
#define EDDY_TESTS_FUNCTIONAL_FAILING_CALL_H

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tests/fake_cuda/findings.h>
#include <unistd.h>

typedef struct failing_run {
    eddy_runtime_options options;
    bool (*is_well)(void); /* what is read is right, or an error says why there is nothing */
    long (*calls_of)(const char *entry); /* of the library, so far */
    int (*objects)(void);                /* of the library, that are there */
} failing_run;

static inline int failing_run_code(const failing_run *run, const char *entry, int number,
                                   int status) {
    char text[96];
    snprintf(text, sizeof(text), "%s:%d:%d", entry, number, status);
    setenv("FAKE_CUDA_FAIL_ENTRY", text, 1);
    alarm(60);
    eddy_runtime *runtime = eddy_runtime_create(&run->options);
    bool is_well = eddy_runtime_use(runtime) == EDDY_OK && run->is_well();
    is_well &= eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK;
    eddy_runtime_release(&runtime);
    is_well &= run->objects() == 0 && fake_cuda_findings_so_far() == 0;
    return !is_well ? 1 : run->calls_of(entry) < number ? 2 : 0;
}

/* So that the device's pool holds a chunk that nothing uses: small tensors go to that of the result, as long as it is there. */
static inline eddy_tensor *keep_a_chunk(eddy_device device) {
    eddy_tensor *small = eddy_zeros(EDDY_SHAPE(1), EDDY_U8, EDDY_OPTIONS(zeros, .device = device));
    cr_assert_eq(eddy_wait(small, EDDY_FOREVER), EDDY_OK);
    eddy_tensor *large =
        eddy_zeros(EDDY_SHAPE(8 << 20), EDDY_U8, EDDY_OPTIONS(zeros, .device = device));
    cr_assert_eq(eddy_wait(large, EDDY_FOREVER), EDDY_OK);
    eddy_release(&large);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    return small;
}

/* The process uses the driver first. Status 0: the usual one. Whether the call was reached. */
static inline bool fails_well(const failing_run *run, const char *entry, int number, int status) {
    pid_t child = fork();
    if (child == 0)
        _exit(failing_run_code(run, entry, number, status));
    int code;
    cr_assert_eq(waitpid(child, &code, 0), child);
    cr_assert(WIFEXITED(code) && WEXITSTATUS(code) != 1, "%s, call %d says %d: code %d", entry,
              number, status, code);
    return WEXITSTATUS(code) == 0;
}

#endif
