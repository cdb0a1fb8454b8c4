#include <kernels/cuda/images.h>
#include <kernels/cuda/launch.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/launch.h>

/* Blocks that a multiprocessor works on at once, of the usual size: 2,048 threads. */
#define BLOCKS_OF_PROCESSOR 8

/* cuLaunchKernel's `extra`: the parameters as one block. */
#define PARAMETERS_AT ((void *)1)
#define PARAMETERS_BYTES ((void *)2)
#define PARAMETERS_END ((void *)0)

/* ---- loading ---- */

/* Of two threads that load it at once one keeps its own. */
static eddy_cu_result load_module(eddy_cuda_image *image, int32_t device, eddy_cu_module *module) {
    void *loaded = eddy_load_acquire(&image->modules[device]);
    if (EDDY_UNLIKELY(!loaded)) {
        eddy_cu_module own;
        eddy_cu_result result = eddy_cuda.module_load(&own, image->data);
        if (result != 0)
            return result;
        if (eddy_cas_acq_rel(&image->modules[device], &loaded, (void *)own))
            loaded = own;
        else
            (void)eddy_cuda.module_unload(own);
    }
    *module = loaded;
    return 0;
}

static eddy_cu_result load(eddy_backend *backend, const eddy_cuda_function *function,
                           eddy_cu_function *loaded) {
    const int32_t device = eddy_cuda_backend_device(backend)->index;
    *loaded = eddy_load_acquire(&function->loaded[device]);
    if (EDDY_LIKELY(*loaded != NULL))
        return 0;
    eddy_cu_module module;
    eddy_cu_result result = eddy_cuda_backend_write_marks(backend);
    if (result == 0)
        result = load_module(function->image, device, &module);
    if (result == 0)
        result = eddy_cuda.module_function(loaded, module, function->symbol);
    if (result == 0)
        eddy_store_release(&function->loaded[device], (void *)*loaded);
    return result;
}

/* ---- launching ---- */

static void fill_gate(const eddy_backend_launch *launch, eddy_cuda_gate *gate) {
    eddy_backend *backend = launch->queue->backend;
    uint64_t first;
    *gate = (eddy_cuda_gate){
        .ticket = launch->ticket,
        .marks = eddy_cuda_backend_marks(backend),
        .word = (eddy_cuda_word *)(void *)eddy_backend_error(backend, launch->ticket)};
    if (eddy_cuda_backend_captures(backend, &first)) {
        gate->ticket -= first;
        gate->base = (const uint64_t *)(uintptr_t)eddy_cuda_backend_base(launch->queue);
        gate->word = (eddy_cuda_word *)(void *)backend->errors;
    }
    for (uint32_t i = 0; i < launch->source_count; i++) {
        uint64_t behind = launch->ticket - launch->sources[i];
        EDDY_ASSERT(behind > 0 && behind < EDDY_CUDA_WORDS / 2);
        gate->behind[i] = (uint16_t)behind;
    }
}

static eddy_cu_result launch_function(const eddy_backend_launch *launch,
                                      const eddy_cuda_function *function, void *parameters,
                                      size_t bytes, uint32_t blocks) {
    eddy_cu_function loaded;
    eddy_cu_result result = load(launch->queue->backend, function, &loaded);
    if (result != 0)
        return result;
    fill_gate(launch, parameters);
    void *extra[] = {PARAMETERS_AT, parameters, PARAMETERS_BYTES, &bytes, PARAMETERS_END};
    return eddy_cuda.launch(loaded, blocks, 1, 1, EDDY_CUDA_BLOCK, 1, 1, 0,
                            eddy_cuda_backend_stream(launch->queue), NULL, extra);
}

/* Without memory for the kernel it is the call that has failed: *has_failed. */
static eddy_status launch_gated(const eddy_backend_launch *launch,
                                const eddy_cuda_function *function, void *parameters, size_t bytes,
                                uint32_t blocks, bool *has_failed) {
    eddy_backend *backend = launch->queue->backend;
    if (!eddy_cuda_backend_begin(backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = launch_function(launch, function, parameters, bytes, blocks);
    if (EDDY_UNLIKELY(result == EDDY_CU_OUT_OF_MEMORY) && eddy_cuda_backend_spare(backend))
        result = launch_function(launch, function, parameters, bytes, blocks);
    if (EDDY_UNLIKELY(eddy_cuda_driver_refused_capture(result)) && eddy_cuda_backend_spoil(backend))
        return eddy_cuda_backend_end(backend, 0);
    if (EDDY_LIKELY(result != EDDY_CU_OUT_OF_MEMORY))
        return eddy_cuda_backend_end(backend, result);
    eddy_status status = eddy_cuda_backend_end(backend, 0);
    eddy_backend_fail(launch, EDDY_OUT_OF_MEMORY);
    *has_failed = true;
    return status;
}

void eddy_cuda_launch(const eddy_kernel_call *call, const eddy_cuda_function *function,
                      void *parameters, size_t bytes, uint32_t blocks) {
    eddy_backend_launch *launch = call->launch;
    if (EDDY_UNLIKELY(launch->has_failed))
        return;
    (void)launch_gated(launch, function, parameters, bytes, blocks, &launch->has_failed);
    launch->has_looked = true;
}

int64_t eddy_cuda_processors(const eddy_kernel_call *call) {
    return eddy_cuda_backend_device(call->launch->queue->backend)->processor_count;
}

uint32_t eddy_cuda_blocks(const eddy_kernel_call *call, int64_t work, int64_t of_block) {
    int64_t most = eddy_cuda_processors(call) * BLOCKS_OF_PROCESSOR;
    int64_t blocks = (work + of_block - 1) / of_block;
    return (uint32_t)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

static eddy_cuda_image look_image = {.data = eddy_cuda_image_look};
static _Atomic(void *) look_loaded[EDDY_CUDA_DEVICES];
static const eddy_cuda_function look_function = {"eddy_look", &look_image, look_loaded};

static eddy_status look(const eddy_backend_launch *launch, bool *has_failed) {
    eddy_cuda_look parameters;
    return launch_gated(launch, &look_function, &parameters, sizeof(parameters), 1, has_failed);
}

eddy_status eddy_cuda_launch_look(const eddy_backend_launch *launch) {
    bool has_failed = false;
    return look(launch, &has_failed);
}

bool eddy_cuda_launch_gate(eddy_backend_launch *launch) {
    if (launch->source_count > 0 && !launch->has_looked)
        (void)look(launch, &launch->has_failed);
    launch->has_looked = true;
    return !launch->has_failed;
}
