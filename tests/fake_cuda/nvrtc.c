/* A libnvrtc.so.13 for machines without CUDA's compiler: the text is compiled for the host, as the .cu files are (kernels/). It knows the options that Eddy gives. FAKE_CUDA_FAIL_ENTRY counts its entries too.
 * What was compiled is kept beside the kernels, for all processes: tests compile the same few hundred texts again and again, which would take most of their time. */
#include <errno.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/nvrtc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tests/fake_cuda/file.h>
#include <tests/fake_cuda/image.h>
#include <tests/fake_cuda/kept.h>
#include <tests/fake_cuda/option.h>
#include <unistd.h>

#define ENTRY_DECLARED(symbol, name, parameters)                                                   \
    __attribute__((visibility("default"))) eddy_nvrtc_result symbol parameters;
EDDY_CUDA_NVRTC_LIST(ENTRY_DECLARED)
#undef ENTRY_DECLARED

/* For tests, by dlsym: texts that were compiled. */
__attribute__((visibility("default"))) int fake_nvrtc_compiled(void);

typedef enum entry {
#define ENTRY_NUMBERED(symbol, name, parameters) ENTRY_##symbol,
    EDDY_CUDA_NVRTC_LIST(ENTRY_NUMBERED)
#undef ENTRY_NUMBERED
        ENTRIES
} entry;

static const char *const symbols[ENTRIES] = {
#define ROW(symbol, name, parameters) #symbol,
    EDDY_CUDA_NVRTC_LIST(ROW)
#undef ROW
};

static const int known[] = {75, 80, 86, 89, 90, 100, 120};
#define KNOWN ((int)(sizeof(known) / sizeof(*known)))

typedef struct eddy_nvrtc_program_object {
    char *text, *log, *image; /* owned */
    size_t log_bytes, image_bytes;
    bool is_text;
} program;

static _Atomic long calls[ENTRIES]; /* atomic: relaxed, counts */
static _Atomic int compiled;        /* atomic: relaxed, a count */

int fake_nvrtc_compiled(void) {
    return atomic_load_explicit(&compiled, memory_order_relaxed);
}

/* 0, or the failure that was asked for. */
static eddy_nvrtc_result begin(entry of) {
    const fake_options *options = fake_options_read();
    long call = atomic_fetch_add_explicit(&calls[of], 1, memory_order_relaxed) + 1;
    if (call != options->fail_entry_call || strcmp(symbols[of], options->fail_entry) != 0)
        return 0;
    return options->fail_entry_result ? options->fail_entry_result : EDDY_NVRTC_OUT_OF_MEMORY;
}

/* ---- what it is ---- */

eddy_nvrtc_result nvrtcVersion(int *major, int *minor) {
    const char *text = getenv("FAKE_CUDA_NVRTC_MINOR");
    *major = 13;
    *minor = text ? atoi(text) : 0;
    return begin(ENTRY_nvrtcVersion);
}

eddy_nvrtc_result nvrtcGetNumSupportedArchs(int *count) {
    *count = KNOWN;
    return begin(ENTRY_nvrtcGetNumSupportedArchs);
}

eddy_nvrtc_result nvrtcGetSupportedArchs(int *numbers) {
    memcpy(numbers, known, sizeof(known));
    return begin(ENTRY_nvrtcGetSupportedArchs);
}

/* ---- programs ---- */

eddy_nvrtc_result nvrtcCreateProgram(eddy_nvrtc_program *made, const char *text, const char *name,
                                     int header_count, const char *const *headers,
                                     const char *const *header_names) {
    eddy_nvrtc_result result = begin(ENTRY_nvrtcCreateProgram);
    if (result != 0)
        return result;
    if (!text || !name || header_count != 0 || headers || header_names)
        return EDDY_NVRTC_INVALID_INPUT;
    program *p = calloc(1, sizeof(*p));
    p->text = strdup(text);
    *made = p;
    return 0;
}

eddy_nvrtc_result nvrtcDestroyProgram(eddy_nvrtc_program *made) {
    program *p = *made;
    free(p->text);
    free(p->log);
    free(p->image);
    free(p);
    *made = NULL;
    return begin(ENTRY_nvrtcDestroyProgram);
}

/* ---- options ---- */

typedef struct chosen {
    int architecture;
    bool is_text, has_no_contraction, is_for_device;
} chosen;

static bool read_option(const char *option, chosen *to) {
    static const char architecture[] = "--gpu-architecture=";
    if (strncmp(option, architecture, sizeof(architecture) - 1) == 0) {
        const char *name = option + sizeof(architecture) - 1;
        to->is_text = strncmp(name, "compute_", 8) == 0;
        if (!to->is_text && strncmp(name, "sm_", 3) != 0)
            return false;
        to->architecture = atoi(name + (to->is_text ? 8 : 3));
        for (int i = 0; i < KNOWN; i++)
            if (known[i] == to->architecture)
                return true;
        return false;
    }
    to->has_no_contraction |= strcmp(option, "-fmad=false") == 0;
    to->is_for_device |= strcmp(option, "-default-device") == 0;
    return strcmp(option, "-fmad=false") == 0 || strcmp(option, "--std=c++17") == 0 ||
           strcmp(option, "-default-device") == 0 || strcmp(option, "--device-int128") == 0;
}

extern char **environ;

/* ---- compiling ---- */

/* A file that has the compiler with its arguments, as words (kernels/meson.build), or another one (ptx/). */
static const char *command_file(void) {
    const char *other = getenv("FAKE_CUDA_NVRTC_COMMAND");
    return other ? other : FAKE_NVRTC_COMMAND;
}

/* Without the option against contraction what a compiler finds is contracted, as on a device. */
static const char *contraction_of(const chosen *options) {
    return options->has_no_contraction ? "-ffp-contract=off" : "-ffp-contract=fast -O2 -mfma";
}

static bool run_compiler(const char *folder, const chosen *options) {
    char *command = NULL;
    if (asprintf(&command, "exec $(cat %s) %s -o %s/object.so -x c++ %s/text.cu 2>%s/log",
                 command_file(), contraction_of(options), folder, folder, folder) < 0)
        return false;
    char *arguments[] = {"sh", "-c", command, NULL};
    pid_t child;
    int status = 1;
    bool is_started = posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0;
    free(command);
    if (!is_started)
        return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

/* The object is the caller's; NULL where the text is refused: the log says why. */
static char *compile_in(program *p, const char *folder, const chosen *options, size_t *bytes) {
    static const char *const names[] = {"text.cu", "object.so", "log"};
    char path[3][128];
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof(path[i]), "%s/%s", folder, names[i]);
    bool is_made =
        fake_file_write(path[0], p->text, strlen(p->text)) && run_compiler(folder, options);
    p->log = fake_file_read(path[2], &p->log_bytes);
    char *object = is_made ? fake_file_read(path[1], bytes) : NULL;
    for (int i = 0; i < 3; i++)
        (void)unlink(path[i]);
    (void)rmdir(folder);
    return object;
}

/* All that an object depends on: the command, the library that it is linked with, which is made anew when a header of the kernels changes, the header that no kernel has, the text. */
static char *identity_of(const program *p, const chosen *options, size_t *bytes) {
    struct stat library = {0};
    size_t ignored = 0;
    char *identity = NULL, *touches = fake_file_read(FAKE_NVRTC_TOUCHES, &ignored);
    char *command = fake_file_read(command_file(), &ignored);
    (void)stat(FAKE_NVRTC_LIBRARY, &library);
    *bytes = (size_t)asprintf(&identity, "%s %s %lld.%09ld\n%s%s", command, contraction_of(options),
                              (long long)library.st_mtim.tv_sec, library.st_mtim.tv_nsec, touches,
                              p->text);
    free(command);
    free(touches);
    return identity;
}

static void take_object(program *p, const char *object, size_t bytes, const chosen *options) {
    fake_image head = {FAKE_IMAGE_MAGIC, bytes, options->architecture, options->is_text};
    p->image_bytes = sizeof(head) + bytes;
    p->image = malloc(p->image_bytes);
    memcpy(p->image, &head, sizeof(head));
    memcpy(p->image + sizeof(head), object, bytes);
    p->is_text = options->is_text;
}

static eddy_nvrtc_result compile(program *p, const chosen *options) {
    char folder[] = "/tmp/fake_nvrtcXXXXXX";
    size_t identity_bytes = 0, bytes = 0;
    char *identity = identity_of(p, options, &identity_bytes);
    char *object = fake_kept_find(p->text, identity, identity_bytes, &bytes);
    bool has_folder = object || mkdtemp(folder);
    if (!object && has_folder) {
        object = compile_in(p, folder, options, &bytes);
        if (object)
            fake_kept_add(p->text, identity, identity_bytes, object, bytes);
    }
    if (object)
        take_object(p, object, bytes, options);
    free(object);
    free(identity);
    return p->image ? 0 : has_folder ? EDDY_NVRTC_COMPILATION : EDDY_NVRTC_OUT_OF_MEMORY;
}

eddy_nvrtc_result nvrtcCompileProgram(eddy_nvrtc_program p, int option_count,
                                      const char *const *given) {
    eddy_nvrtc_result result = begin(ENTRY_nvrtcCompileProgram);
    chosen options = {0};
    if (result != 0)
        return result;
    for (int i = 0; i < option_count; i++)
        if (!read_option(given[i], &options))
            return EDDY_NVRTC_INVALID_OPTION;
    if (options.architecture == 0 || !options.is_for_device)
        return EDDY_NVRTC_INVALID_OPTION;
    atomic_fetch_add_explicit(&compiled, 1, memory_order_relaxed);
    return compile(p, &options);
}

/* ---- results ---- */

eddy_nvrtc_result nvrtcGetProgramLogSize(eddy_nvrtc_program p, size_t *bytes) {
    *bytes = p->log_bytes + 1;
    return begin(ENTRY_nvrtcGetProgramLogSize);
}

eddy_nvrtc_result nvrtcGetProgramLog(eddy_nvrtc_program p, char *text) {
    memcpy(text, p->log ? p->log : "", p->log_bytes + 1);
    return begin(ENTRY_nvrtcGetProgramLog);
}

static eddy_nvrtc_result give_bytes(const program *p, bool is_text, size_t *bytes, entry of) {
    eddy_nvrtc_result result = begin(of);
    *bytes = p->image && p->is_text == is_text ? p->image_bytes : 0;
    return result != 0 ? result : *bytes > 0 ? 0 : EDDY_NVRTC_INVALID_PROGRAM;
}

static eddy_nvrtc_result give(const program *p, char *image, entry of) {
    eddy_nvrtc_result result = begin(of);
    if (result == 0)
        memcpy(image, p->image, p->image_bytes);
    return result;
}

eddy_nvrtc_result nvrtcGetCUBINSize(eddy_nvrtc_program p, size_t *bytes) {
    return give_bytes(p, false, bytes, ENTRY_nvrtcGetCUBINSize);
}

eddy_nvrtc_result nvrtcGetCUBIN(eddy_nvrtc_program p, char *image) {
    return give(p, image, ENTRY_nvrtcGetCUBIN);
}

eddy_nvrtc_result nvrtcGetPTXSize(eddy_nvrtc_program p, size_t *bytes) {
    return give_bytes(p, true, bytes, ENTRY_nvrtcGetPTXSize);
}

eddy_nvrtc_result nvrtcGetPTX(eddy_nvrtc_program p, char *image) {
    return give(p, image, ENTRY_nvrtcGetPTX);
}
