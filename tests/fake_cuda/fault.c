#include <stdatomic.h>
#include <string.h>
#include <tests/fake_cuda/fault.h>
#include <tests/fake_cuda/option.h>

/* None may be missing: it would not link. */
__attribute__((used)) static const eddy_cuda_driver entries = {
#define ROW(symbol, name, parameters) .name = symbol,
    EDDY_CUDA_DRIVER_LIST(ROW)
#undef ROW
};

static const char *const symbols[FAKE_ENTRIES] = {
#define ROW(symbol, name, parameters) #symbol,
    EDDY_CUDA_DRIVER_LIST(ROW)
#undef ROW
};

static _Atomic(const char *) failed; /* atomic: relaxed, a string that stays */
static _Atomic long calls, pieces, calls_of[FAKE_ENTRIES]; /* atomic: relaxed, counts */

static bool is_named(fake_entry entry, const char *name) {
    size_t length = strlen(name);
    const char *symbol = symbols[entry];
    return strncmp(symbol, name, length) == 0 &&
           (!symbol[length] || strcmp(symbol + length, "_v2") == 0);
}

static eddy_cu_result usual(fake_entry entry) {
    switch (entry) {
    case FAKE_cuMemAlloc_v2:
    case FAKE_cuMemHostAlloc:
    case FAKE_cuStreamCreateWithPriority:
    case FAKE_cuEventCreate:
    case FAKE_cuModuleLoadData:
    case FAKE_cuDevicePrimaryCtxRetain:
        return EDDY_CU_OUT_OF_MEMORY;
    default:
        return EDDY_CU_LAUNCH_FAILED;
    }
}

eddy_cu_result fake_fault_call(fake_entry entry) {
    const fake_options *options = fake_options_read();
    long call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    long call_of = atomic_fetch_add_explicit(&calls_of[entry], 1, memory_order_relaxed) + 1;
    int result;
    if (call == options->fail_call)
        result = options->fail_call_result;
    else if (call_of == options->fail_entry_call && is_named(entry, options->fail_entry))
        result = options->fail_entry_result;
    else
        return 0;
    atomic_store_explicit(&failed, symbols[entry], memory_order_relaxed);
    return result ? result : usual(entry);
}

eddy_cu_result fake_fault_run(void) {
    const fake_options *options = fake_options_read();
    long piece = atomic_fetch_add_explicit(&pieces, 1, memory_order_relaxed) + 1;
    if (piece != options->fail_run)
        return 0;
    atomic_store_explicit(&failed, "a piece", memory_order_relaxed);
    return options->fail_run_result ? options->fail_run_result : EDDY_CU_LAUNCH_FAILED;
}

bool fake_fault_is_sticky(eddy_cu_result result) {
    return result == 214 || result == EDDY_CU_ILLEGAL_ADDRESS || result == 702 ||
           (result >= 714 && result <= EDDY_CU_LAUNCH_FAILED);
}

long fake_cuda_calls(void) {
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

long fake_cuda_calls_of(const char *entry) {
    for (int e = 0; e < FAKE_ENTRIES; e++)
        if (is_named((fake_entry)e, entry))
            return atomic_load_explicit(&calls_of[e], memory_order_relaxed);
    return -1;
}

const char *fake_cuda_failed(void) {
    return atomic_load_explicit(&failed, memory_order_relaxed);
}
