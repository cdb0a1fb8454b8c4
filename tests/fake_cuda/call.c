#include <stdatomic.h>
#include <stdlib.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/fault.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_progress = PTHREAD_COND_INITIALIZER;

/* atomic: written with release where the driver is set up, read before the lock is taken, as in a forked child that lock may never be released */
static _Atomic pid_t process;
static _Atomic bool is_over; /* atomic: release; once true it stays */

bool fake_call_is_over(void) {
    return atomic_load_explicit(&is_over, memory_order_acquire);
}

/* Before the lock. */
static eddy_cu_result refusal(fake_needs needs) {
    if (fake_call_is_over())
        return EDDY_CU_DEINITIALIZED;
    pid_t owner = atomic_load_explicit(&process, memory_order_acquire);
    /* A child of a process with a driver has none, and gets none. */
    if (owner ? owner != getpid() : needs >= FAKE_NEEDS_INIT)
        return EDDY_CU_NOT_INITIALIZED;
    return 0;
}

bool fake_call_begin(fake_call *call, fake_entry entry, fake_needs needs) {
    eddy_cu_result fault = fake_fault_call(entry);
    *call = (fake_call){.result = refusal(needs)};
    if (call->result)
        return false;
    pthread_mutex_lock(&fake_lock);
    if (needs >= FAKE_NEEDS_INIT)
        call->device = fake_device_of(fake_device_current());
    if (needs == FAKE_NEEDS_CONTEXT && !call->device)
        call->result = EDDY_CU_INVALID_CONTEXT;
    else if (needs == FAKE_NEEDS_CONTEXT && call->device->lost)
        call->result = call->device->lost;
    else if (fault)
        call->result = fault;
    else if (needs >= FAKE_NEEDS_INIT && fake_capture_refuses(entry))
        call->result = EDDY_CU_CAPTURES_FIRST;
    else
        return true;
    fake_call_end(call, call->result);
    return false;
}

eddy_cu_result fake_call_end(fake_call *call, eddy_cu_result result) {
    if (call->device && fake_fault_is_sticky(result))
        fake_device_lose(call->device, result);
    pthread_mutex_unlock(&fake_lock);
    return result;
}

/* As the driver does, in its own handler of exit: those that were registered before the driver was set up come later, and find it gone. */
static void end(void) {
    if (atomic_load_explicit(&process, memory_order_acquire) != getpid())
        return;
    atomic_store_explicit(&is_over, true, memory_order_release);
    pthread_mutex_lock(&fake_lock);
    pthread_cond_broadcast(&fake_progress);
    pthread_mutex_unlock(&fake_lock);
    fake_device_end_all();
}

eddy_cu_result cuInit(unsigned flags) {
    FAKE_BEGIN(cuInit, FAKE_NEEDS_NOTHING);
    eddy_cu_result result = 0;
    if (flags != 0)
        result = EDDY_CU_INVALID_VALUE;
    else if (fake_options_read()->devices == 0)
        result = EDDY_CU_NO_DEVICE;
    else if (atomic_load_explicit(&process, memory_order_acquire) == 0) {
        if (atexit(end) != 0)
            result = EDDY_CU_OUT_OF_MEMORY;
        else
            atomic_store_explicit(&process, getpid(), memory_order_release);
    }
    return fake_call_end(&call, result);
}

eddy_cu_result cuDriverGetVersion(int *version) {
    FAKE_BEGIN(cuDriverGetVersion, FAKE_NEEDS_NOTHING);
    if (version)
        *version = fake_options_read()->version;
    return fake_call_end(&call, version ? 0 : EDDY_CU_INVALID_VALUE);
}

/* Without the lock: also in a forked child, and while others wait. */
eddy_cu_result cuGetErrorName(eddy_cu_result result, const char **name) {
    static const struct {
        eddy_cu_result result;
        const char *name;
    } names[] = {
        {0, "CUDA_SUCCESS"},
        {EDDY_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {EDDY_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {EDDY_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {EDDY_CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
        {EDDY_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {EDDY_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {EDDY_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {EDDY_CU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {EDDY_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {EDDY_CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {EDDY_CU_NOT_READY, "CUDA_ERROR_NOT_READY"},
        {EDDY_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {EDDY_CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
        {EDDY_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    };
    eddy_cu_result fault = fake_fault_call(FAKE_cuGetErrorName);
    if (fake_call_is_over() || fault || !name)
        return fake_call_is_over() ? EDDY_CU_DEINITIALIZED : fault ? fault : EDDY_CU_INVALID_VALUE;
    *name = NULL;
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].result == result)
            *name = names[i].name;
    return *name ? 0 : EDDY_CU_INVALID_VALUE;
}

/* No entry of Eddy's: NVIDIA's NVRTC asks any driver that it finds for tables of its own, and goes on without. */
__attribute__((visibility("default"))) eddy_cu_result cuGetExportTable(const void **table,
                                                                       const void *id);
eddy_cu_result cuGetExportTable(const void **table, const void *id) {
    (void)table;
    (void)id;
    return EDDY_CU_NOT_FOUND;
}
