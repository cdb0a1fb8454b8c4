#include <streams/cuda/compiler.h>

#include <base/memory.h>
#include <stdbool.h>
#include <stdio.h>
#include <streams/cuda/library.h>
#include <streams/cuda/nvrtc.h>
#include <string.h>

static eddy_cuda_nvrtc nvrtc;

static const eddy_cuda_entry entries[] = {
#define ENTRY_ROW(symbol, name, parameters) {#symbol, offsetof(eddy_cuda_nvrtc, name)},
    EDDY_CUDA_NVRTC_LIST(ENTRY_ROW)
#undef ENTRY_ROW
};

/* What became of the first attempt to open it, which is the last one. */
static struct {
    bool is_tried, is_there;
    char why[120];
    int major, minor;
} opened;

#define ARCHITECTURES_MOST 64

/* ---- opening ---- */

static bool open_library(void) {
    if (eddy_cuda_library_open(EDDY_CUDA_NVRTC_LIBRARY, entries, sizeof(entries) / sizeof(*entries),
                               &nvrtc, opened.why, sizeof(opened.why)) != EDDY_OK)
        return false;
    if (nvrtc.version(&opened.major, &opened.minor) == 0)
        return true;
    snprintf(opened.why, sizeof(opened.why), "%s does not say its version",
             EDDY_CUDA_NVRTC_LIBRARY);
    return false;
}

static eddy_status open_compiler(char *why, size_t size) {
    if (!opened.is_tried) {
        opened.is_there = open_library();
        opened.is_tried = true;
    }
    if (opened.is_there)
        return EDDY_OK;
    snprintf(why, size, "%s", opened.why);
    return EDDY_UNSUPPORTED;
}

/* ---- options ---- */

/* What nvcc is given for the kernels of files (kernels/cuda/meson.build), since both are to have the same bits; and what lets the compiler take text that is for the host, too. */
static const char *const options[] = {"-fmad=false", "--std=c++17", "-default-device",
                                      "--device-int128"};
#define OPTIONS (sizeof(options) / sizeof(*options))

/* The architecture of the capability; or the last one before it that the compiler knows, as text that the driver compiles (*is_text). 0: there is none. */
static int find_architecture(int capability, bool *is_text) {
    int count = 0, best = 0, known[ARCHITECTURES_MOST];
    if (nvrtc.architecture_count(&count) != 0 || count > ARCHITECTURES_MOST ||
        nvrtc.architectures(known) != 0)
        return 0;
    for (int i = 0; i < count; i++)
        if (known[i] <= capability && known[i] > best)
            best = known[i];
    *is_text = best != capability;
    return best;
}

typedef struct target {
    char option[48];
    bool is_text;
} target;

static eddy_status find_target(int capability, target *found, char *why, size_t size) {
    int architecture = find_architecture(capability, &found->is_text);
    if (architecture == 0) {
        snprintf(why, size, "NVRTC %d.%d knows no architecture for capability %d.%d", opened.major,
                 opened.minor, capability / 10, capability % 10);
        return EDDY_UNSUPPORTED;
    }
    snprintf(found->option, sizeof(found->option), "--gpu-architecture=%s_%d",
             found->is_text ? "compute" : "sm", architecture);
    return EDDY_OK;
}

eddy_status eddy_cuda_compiler_describe(int capability, char *text, size_t size, char *why,
                                        size_t why_size) {
    target found;
    eddy_status status = open_compiler(why, why_size);
    if (status == EDDY_OK)
        status = find_target(capability, &found, why, why_size);
    if (status != EDDY_OK)
        return status;
    int length = snprintf(text, size, "NVRTC %d.%d %s", opened.major, opened.minor, found.option);
    for (size_t i = 0; i < OPTIONS; i++)
        length += snprintf(text + length, size - (size_t)length, " %s", options[i]);
    EDDY_ASSERT((size_t)length < size);
    return EDDY_OK;
}

/* ---- compiling ---- */

static eddy_status status_of(eddy_nvrtc_result result) {
    return result == EDDY_NVRTC_OUT_OF_MEMORY ? EDDY_OUT_OF_MEMORY
           : result == EDDY_NVRTC_COMPILATION ? EDDY_UNSUPPORTED
                                              : EDDY_INTERNAL;
}

/* The first line of what the compiler says. */
static void read_log(eddy_nvrtc_program program, char *why, size_t size) {
    size_t bytes = 0;
    if (nvrtc.log_bytes(program, &bytes) != 0 || bytes <= 1)
        return;
    char *log = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_CACHE);
    if (log && nvrtc.log(program, log) == 0)
        snprintf(why, size, "NVRTC: %.*s", (int)strcspn(log, "\n"), log);
    eddy_memory_release(log, bytes, EDDY_MEMORY_CACHE);
}

static eddy_nvrtc_result run(eddy_nvrtc_program program, const target *for_) {
    const char *given[OPTIONS + 1] = {for_->option};
    memcpy(given + 1, options, sizeof(options));
    return nvrtc.compile(program, (int)(OPTIONS + 1), given);
}

static eddy_nvrtc_result read_image(eddy_nvrtc_program program, const target *of, void **image,
                                    size_t *bytes) {
    eddy_nvrtc_result result =
        of->is_text ? nvrtc.text_bytes(program, bytes) : nvrtc.code_bytes(program, bytes);
    if (result != 0)
        return result;
    *image = eddy_memory_acquire_zeroed(*bytes, EDDY_MEMORY_CACHE);
    if (!*image)
        return EDDY_NVRTC_OUT_OF_MEMORY;
    result = of->is_text ? nvrtc.text(program, *image) : nvrtc.code(program, *image);
    if (result != 0)
        eddy_memory_release(*image, *bytes, EDDY_MEMORY_CACHE);
    return result;
}

eddy_status eddy_cuda_compile(int capability, const char *source, void **image, size_t *bytes,
                              char *why, size_t why_size) {
    target for_;
    eddy_status status = find_target(capability, &for_, why, why_size);
    if (status != EDDY_OK)
        return status;
    eddy_nvrtc_program program;
    eddy_nvrtc_result result =
        nvrtc.program_create(&program, source, "eddy_fusion.cu", 0, NULL, NULL);
    snprintf(why, why_size, "NVRTC has failed (%d)", result);
    if (result != 0)
        return status_of(result);
    result = run(program, &for_);
    if (result == 0)
        result = read_image(program, &for_, image, bytes);
    if (result != 0) {
        snprintf(why, why_size, "NVRTC has failed (%d)", result);
        read_log(program, why, why_size);
    }
    (void)nvrtc.program_destroy(&program);
    return result == 0 ? EDDY_OK : status_of(result);
}
