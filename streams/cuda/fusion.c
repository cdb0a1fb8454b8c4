#include <streams/cuda/fusion.h>

#include <base/memory.h>
#include <kernels/cuda/fusion.h>
#include <streams/cuda/device.h>

/* What a kernel on one device is made of. Its image is loaded already, so that launches find all that they need. */
typedef struct loaded {
    eddy_cuda_fusion kernel;
    eddy_cuda_image image;
    _Atomic(void *) functions[2][EDDY_CUDA_DEVICES];
} loaded;

static eddy_cu_result find(loaded *made, int32_t device, eddy_cu_module module) {
    eddy_cu_function dense, strided;
    eddy_cu_result result =
        eddy_cuda.module_function(&dense, module, made->kernel.forms.dense.symbol);
    if (result == 0)
        result = eddy_cuda.module_function(&strided, module, made->kernel.forms.strided.symbol);
    if (result != 0)
        return result;
    eddy_store_relaxed(&made->functions[0][device], (void *)dense);
    eddy_store_relaxed(&made->functions[1][device], (void *)strided);
    eddy_store_relaxed(&made->image.modules[device], (void *)module);
    return 0;
}

static eddy_cu_result load(loaded *made, int32_t device, const void *image) {
    eddy_cu_module module;
    eddy_cu_result result = eddy_cuda.module_load(&module, image);
    if (result != 0)
        return result;
    result = find(made, device, module);
    if (result != 0)
        (void)eddy_cuda.module_unload(module);
    return result;
}

eddy_status eddy_cuda_fusion_load(int32_t device, const eddy_fusion *fusion, const void *image,
                                  const eddy_kernel **kernel, char *why, size_t size) {
    loaded *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_CACHE);
    if (!made)
        return eddy_cuda_explain(EDDY_CU_OUT_OF_MEMORY, why, size);
    made->kernel =
        (eddy_cuda_fusion){.base = {.name = "fusion", .run = eddy_cuda_fusion_run},
                           .forms = EDDY_CUDA_FORMS("eddy_fusion", made->image, made->functions),
                           .input_count = fusion->input_count,
                           .attribute_bytes = fusion->word_count * (uint32_t)sizeof(uint64_t)};
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(eddy_cuda_device_started(device), &visit);
    if (result == 0) {
        result = load(made, device, image);
        eddy_cuda_device_leave(visit);
    }
    if (result != 0) {
        eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_CACHE);
        return eddy_cuda_explain(result, why, size);
    }
    *kernel = &made->kernel.base;
    return EDDY_OK;
}

void eddy_cuda_fusion_unload(int32_t device, const eddy_kernel *kernel) {
    loaded *made = (loaded *)(uintptr_t)kernel;
    eddy_cuda_visit visit;
    /* What it refuses is a device that is lost, whose modules are gone. */
    if (eddy_cuda_device_visit(eddy_cuda_device_started(device), &visit) == 0) {
        (void)eddy_cuda.module_unload(eddy_load_relaxed(&made->image.modules[device]));
        eddy_cuda_device_leave(visit);
    }
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_CACHE);
}
