/* The plug-in for CUDA devices, libeddy-cuda.so: which kernel is whose, and the table that the library opens. */
#include <functional/arguments_all.h>
#include <functional/cuda_kernels.h>
#include <kernels/cuda/dnn.h>
#include <kernels/cuda/elementwise.h>
#include <kernels/cuda/fusion_text.h>
#include <kernels/cuda/kernels.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/compiler.h>
#include <streams/cuda/fusion.h>
#include <streams/plugin_host.h>
#include <string.h>

/* ---- kernels ---- */

#define GROUP_ROW(group)                                                                           \
    extern const unsigned char eddy_cuda_image_##group[];                                          \
    static eddy_cuda_image image_##group = {.data = eddy_cuda_image_##group};
EDDY_CUDA_GROUPS(GROUP_ROW)

/* Number of an elementwise kernel. */
enum {
#define NUMBER_ROW(group, op, dtype, stem, inputs, attribute_bytes) NUMBER_##op##_##dtype,
    EDDY_CUDA_KERNEL_LIST(NUMBER_ROW) KERNEL_COUNT
};

static _Atomic(void *) loaded[KERNEL_COUNT][2][EDDY_CUDA_DEVICES];

typedef struct kernel_row {
    eddy_cuda_elementwise kernel;
    eddy_dtype compute;
} kernel_row;

static const kernel_row rows[] = {
#define KERNEL_ROW(group, op, dtype, stem, inputs, bytes)                                          \
    {.kernel = {.base = {.name = #op, .run = eddy_cuda_elementwise_run},                           \
                .forms = EDDY_CUDA_FORMS(#stem, image_##group, loaded[NUMBER_##op##_##dtype]),     \
                .attribute_bytes = (bytes)},                                                       \
     .compute = EDDY_##dtype},
    EDDY_CUDA_KERNEL_LIST(KERNEL_ROW)};

static const eddy_kernel *const others[] = {
#define OTHER_ROW(name) &eddy_cuda_##name,
    EDDY_CUDA_KERNEL_NAMES(OTHER_ROW) EDDY_CUDA_CHECK_NAMES(OTHER_ROW)};

/* The library asks once for each. */
static const eddy_kernel *find_kernel(const char *name, eddy_dtype compute) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].compute == compute && strcmp(rows[i].kernel.base.name, name) == 0)
            return &rows[i].kernel.base;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strcmp(others[i]->name, name) == 0)
            return others[i];
    return NULL;
}

/* ---- the table ---- */

static eddy_status start(char *why, size_t size) {
    eddy_status status = eddy_cuda_driver_open(why, size);
    if (status == EDDY_OK)
        eddy_cuda_devices_find();
    return status;
}

static eddy_status create(int32_t index, const eddy_backend_options *options,
                          eddy_backend **backend, char *why, size_t size) {
    const eddy_cuda_device *device;
    bool has_started = false;
    eddy_status status = eddy_cuda_device_start(index, &device, why, size);
    /* Here, since attention is not asked for before it runs, on a thread that may not wait for this. */
    if (status == EDDY_OK && options->allows_rounded_weights)
        (void)eddy_cuda_dnn_open(&has_started);
    return status == EDDY_OK ? eddy_cuda_backend_create(device, options, backend, why, size)
                             : status;
}

static eddy_status describe_compiler(int32_t device, char *text, size_t size, char *why,
                                     size_t why_size) {
    return eddy_cuda_compiler_describe(eddy_cuda_device_started(device)->capability, text, size,
                                       why, why_size);
}

static eddy_status compile(int32_t device, const char *source, void **image, size_t *bytes,
                           char *why, size_t why_size) {
    return eddy_cuda_compile(eddy_cuda_device_started(device)->capability, source, image, bytes,
                             why, why_size);
}

static const eddy_plugin plugin = {
    .version = EDDY_PLUGIN_VERSION,
    .start = start,
    .device_count = eddy_cuda_device_count,
    .describe = eddy_cuda_device_describe,
    .device_create = create,
    .kernel = find_kernel,
    .fusion_write = eddy_cuda_fusion_write,
    .compiler_describe = describe_compiler,
    .compile = compile,
    .fusion_load = eddy_cuda_fusion_load,
    .fusion_unload = eddy_cuda_fusion_unload,
};

__attribute__((visibility("default"))) eddy_plugin_open_fn eddy_plugin_open;

const eddy_plugin *eddy_plugin_open(const eddy_plugin_host *host) {
    if (host->version == EDDY_PLUGIN_VERSION)
        eddy_plugin_keep_host(host);
    return &plugin;
}
