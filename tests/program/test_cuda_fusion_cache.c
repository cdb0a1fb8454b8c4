/* Kernels of programs from one process to the next, and where they cannot be made (tests/fake_cuda). Each process is a child, so that it opens driver and compiler anew. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <eddy/eddy.h>
#include <fcntl.h>
#include <program/fusions.h>
#include <program/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/nvrtc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child says by its status. */
#define COMPILED 1
#define TAKEN 2
#define FAILED 4
#define WRONG 8

static char folder[64];

/* A GPU's own compiler does not do what the variables of the fake one say. */
static bool is_fake(void) {
    void *library = dlopen(EDDY_CUDA_NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return library && dlsym(library, "fake_nvrtc_compiled");
}

static void begin_with_the_fake(void) {
    if (!is_fake())
        cr_skip_test("the compiler is not the fake one");
    setenv("EDDY_CACHE_DIR", "none", 1);
}

static void begin(void) {
    if (!dlopen(EDDY_CUDA_NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL))
        cr_skip_test("there is no " EDDY_CUDA_NVRTC_LIBRARY);
    strcpy(folder, "/tmp/eddy_fusionsXXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    setenv("EDDY_CACHE_DIR", folder, 1);
}

static void end(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

/* ---- a child ---- */

static eddy_tensor *numbers(float first) {
    float elements[24];
    for (int i = 0; i < 24; i++)
        elements[i] = first + (float)(i * 7 % 24) / 8;
    return eddy_from_data(elements, EDDY_SHAPE(4, 6), EDDY_F32,
                          EDDY_OPTIONS(from_data, .device = EDDY_CPU));
}

static eddy_tensor *there(eddy_tensor *x) {
    return eddy_to_device(x, EDDY_CUDA(0));
}

static eddy_tensor *compute(eddy_tensor *x) {
    return eddy_mul(eddy_tanh(x), x);
}

/* Recorded without being run, so that the program's kernel is the first that is loaded. */
static eddy_program *record(eddy_tensor *x) {
    if (eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)) != EDDY_OK)
        return NULL;
    eddy_tensor *y = compute(x);
    return eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}

static bool is_same(eddy_tensor *a, eddy_tensor *b) {
    float x[24], y[24];
    return eddy_read(a, x, sizeof(x), NULL) == EDDY_OK &&
           eddy_read(b, y, sizeof(y), NULL) == EDDY_OK && memcmp(x, y, sizeof(x)) == 0;
}

/* The CPU has the same bits. */
static bool is_right(eddy_program *program, float first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(first), *y = NULL;
    bool runs = eddy_program_run(program, EDDY_LIST(there(x)), &y) == EDDY_OK;
    bool is_it = runs && is_same(compute(x), y);
    eddy_scope_end(scope);
    return is_it;
}

static int run_program(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record(there(numbers(0)));
    bool is_fine = program && program->executable->fusions.count == 1 &&
                   eddy_program_prepare(program, NULL, 0) == EDDY_OK;
    for (int i = 0; i < 3; i++)
        is_fine = is_fine && is_right(program, (float)i);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    is_fine = is_fine && eddy_sync(EDDY_FOREVER) == EDDY_OK && eddy_live_count() == 0;
    eddy_made_kernel_counts counts = eddy_made_kernels_counted();
    return (counts.compiled ? COMPILED : 0) | (counts.taken ? TAKEN : 0) |
           (counts.failed ? FAILED : 0) | (is_fine ? 0 : WRONG);
}

static pid_t start(int (*function)(void)) {
    pid_t child = fork();
    if (child == 0)
        _exit(function());
    return child;
}

static int await(pid_t child) {
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int outcome(void) {
    return await(start(run_program));
}

/* ---- from one to the next ---- */

static int count_files(char path[400]) {
    DIR *files = opendir(folder);
    int count = 0;
    for (struct dirent *entry = readdir(files); entry; entry = readdir(files))
        if (entry->d_name[0] != '.') {
            snprintf(path, 400, "%s/%s", folder, entry->d_name);
            count++;
        }
    closedir(files);
    return count;
}

Test(cuda_fusion_cache, a_kernel_is_taken_from_disk, .init = begin, .fini = end) {
    char path[400];
    cr_assert_eq(outcome(), COMPILED);
    cr_assert_eq(count_files(path), 1);
    cr_assert_eq(outcome(), TAKEN);
    if (!is_fake())
        return;
    /* Another compiler may have other bits. */
    setenv("FAKE_CUDA_NVRTC_MINOR", "1", 1);
    cr_assert_eq(outcome(), COMPILED);
    cr_assert_eq(count_files(path), 2);
    cr_assert_eq(outcome(), TAKEN);
    /* And another device has other machine code. */
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    cr_assert_eq(outcome(), COMPILED);
    cr_assert_eq(count_files(path), 3);
}

Test(cuda_fusion_cache, what_is_torn_is_made_again, .init = begin, .fini = end) {
    char path[400];
    struct stat status;
    cr_assert_eq(outcome(), COMPILED);
    cr_assert_eq(count_files(path), 1);
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(truncate(path, status.st_size / 2), 0);
    cr_assert_eq(outcome(), COMPILED);
    cr_assert_eq(outcome(), TAKEN);
}

Test(cuda_fusion_cache, processes_do_not_disturb_each_other, .init = begin, .fini = end) {
    pid_t children[3];
    char path[400];
    for (int i = 0; i < 3; i++)
        children[i] = start(run_program);
    for (int i = 0; i < 3; i++) {
        int status = await(children[i]);
        cr_assert(status == COMPILED || status == TAKEN, "%d", status);
    }
    cr_assert_eq(count_files(path), 1);
    cr_assert_eq(outcome(), TAKEN);
}

Test(cuda_fusion_cache, a_folder_that_cannot_be_is_no_error, .init = begin_with_the_fake) {
    setenv("EDDY_CACHE_DIR", "/dev/null/eddy", 1);
    cr_assert_eq(outcome(), COMPILED);
}

/* ---- where there is none ---- */

/* The device's architecture is not among the compiler's: the driver compiles its text. */
Test(cuda_fusion_cache, text_is_for_the_drivers_compiler, .init = begin_with_the_fake) {
    setenv("FAKE_CUDA_CAPABILITY", "121", 1);
    cr_assert_eq(outcome(), COMPILED);
    setenv("FAKE_CUDA_CAPABILITY", "70", 1);
    cr_assert_eq(outcome(), FAILED);
}

/* Each call of the compiler, and the load of its image: then the calls run. */
Test(cuda_fusion_cache, a_failure_leaves_the_calls, .init = begin_with_the_fake) {
    static const char *const fatal[] = {
        "nvrtcVersion:1",           "nvrtcGetNumSupportedArchs:1", "nvrtcGetNumSupportedArchs:2",
        "nvrtcGetSupportedArchs:1", "nvrtcCreateProgram:1:3",      "nvrtcCompileProgram:1",
        "nvrtcCompileProgram:1:6",  "nvrtcGetCUBINSize:1:4",       "nvrtcGetCUBIN:1:11",
        "cuModuleLoadData:1",       "cuModuleLoadData:1:209"};
    for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++) {
        setenv("FAKE_CUDA_FAIL_ENTRY", fatal[i], 1);
        cr_assert_eq(outcome(), FAILED, "%s", fatal[i]);
    }
    setenv("FAKE_CUDA_FAIL_ENTRY", "nvrtcDestroyProgram:1:4", 1);
    cr_assert_eq(outcome(), COMPILED);
}

/* Lines that say that calls run one by one. */
static int said;

static void hear(void *context, const char *line) {
    (void)context;
    said += strstr(line, "one by one") && strstr(line, EDDY_CUDA_NVRTC_LIBRARY);
}

/* Two programs, and a line for both. */
static int run_and_hear(void) {
    eddy_log_set(hear, NULL);
    int status = run_program();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = there(numbers(1));
    eddy_program *other = NULL;
    if (eddy_record_begin(NULL) == EDDY_OK) {
        eddy_tensor *y = eddy_neg(eddy_relu(x));
        other =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    }
    bool is_prepared = other && eddy_program_prepare(other, NULL, 0) == EDDY_OK;
    eddy_program_release(&other);
    eddy_scope_end(scope);
    return status | (is_prepared && said == 1 ? 0 : WRONG);
}

Test(cuda_fusion_cache, calls_run_without_a_compiler) {
    if (dlopen(EDDY_CUDA_NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL))
        cr_skip_test("the compiler is there");
    setenv("EDDY_CACHE_DIR", "none", 1);
    cr_assert_eq(await(start(run_and_hear)), FAILED);
}

/* ---- the end of a process ---- */

static int leave_at_once(void) {
    eddy_tensor *x = there(numbers(0));
    eddy_program *first = record(x), *second = NULL;
    if (eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)) == EDDY_OK) {
        eddy_tensor *y = eddy_neg(eddy_relu(x));
        second =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    }
    exit(first && second ? 0 : WRONG);
}

/* It waits for the compiler, which would lose its ground. The first kernel is there when its program is. */
Test(cuda_fusion_cache, a_process_may_end_while_it_compiles) {
    setenv("EDDY_CACHE_DIR", "none", 1);
    setenv("EDDY_SILENT_EXIT", "1", 1);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(await(start(leave_at_once)), 0);
}
