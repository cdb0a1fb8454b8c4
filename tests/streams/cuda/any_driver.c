/* A driver without devices that takes every kernel: NVIDIA's cuDNN compiles those of attention while it plans, and loads them at once, also for a GPU that is only described to it. */
#define NO_DEVICE 100

/* The names are those that the library looks for; without one it compiles nothing. */
/* clang-format off */
#define REFUSED(row) \
    row(cuCtxGetCurrent) row(cuCtxGetDevice) row(cuCtxGetLimit) row(cuCtxPopCurrent) \
    row(cuCtxPushCurrent) row(cuDeviceGet) row(cuDeviceGetAttribute) row(cuDeviceGetCount) \
    row(cuDevicePrimaryCtxRelease) row(cuDevicePrimaryCtxReset) row(cuDevicePrimaryCtxRetain) row(cuDriverGetVersion) \
    row(cuFuncGetAttribute) row(cuFuncSetAttribute) row(cuGetErrorName) row(cuGetErrorString) \
    row(cuInit) row(cuLaunchCooperativeKernel) row(cuLaunchKernel) row(cuLaunchKernelEx) \
    row(cuLibraryLoadFromFile) row(cuLinkAddData) row(cuLinkAddData_v2) row(cuLinkAddFile_v2) \
    row(cuLinkComplete) row(cuLinkCreate) row(cuLinkCreate_v2) row(cuLinkDestroy) \
    row(cuMemcpyDtoH_v2) row(cuModuleGetFunction) row(cuModuleGetGlobal_v2) row(cuModuleLoadData) \
    row(cuModuleLoadDataEx) row(cuModuleLoadFatBinary) row(cuModuleUnload) row(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    row(cuOccupancyMaxPotentialClusterSize) row(cuStreamGetCtx) row(cuStreamSynchronize) row(cuTensorMapEncodeTiled)
/* clang-format on */

#define REFUSING(name)                                                                             \
    int name(void);                                                                                \
    int name(void) {                                                                               \
        return NO_DEVICE;                                                                          \
    }
REFUSED(REFUSING)

static char something;

int cuLibraryLoadData(void **library);
int cuLibraryLoadData(void **library) {
    *library = &something;
    return 0;
}

int cuLibraryGetKernel(void **kernel);
int cuLibraryGetKernel(void **kernel) {
    *kernel = &something;
    return 0;
}

int cuKernelGetAttribute(int *value);
int cuKernelGetAttribute(int *value) {
    *value = 0;
    return 0;
}

int cuKernelSetAttribute(void);
int cuKernelSetAttribute(void) {
    return 0;
}

int cuLibraryUnload(void);
int cuLibraryUnload(void) {
    return 0;
}
