#include <stdatomic.h>
#include <string.h>
#include <tests/fake_cuda/dnn/fault.h>
#include <tests/fake_cuda/option.h>

/* None may be missing: it would not link. */
__attribute__((used)) static const eddy_cuda_dnn_entries entries = {
#define ROW(symbol, name, result, parameters) .name = symbol,
    EDDY_DNN_LIST(ROW)
#undef ROW
};

static const char *const symbols[FAKE_DNN_ENTRIES] = {
#define ROW(symbol, name, result, parameters) #symbol,
    EDDY_DNN_LIST(ROW)
#undef ROW
};

static _Atomic long calls[FAKE_DNN_ENTRIES]; /* atomic: relaxed, counts */

static eddy_dnn_status usual(fake_dnn_entry entry) {
    return entry == FAKE_cudnnBackendExecute    ? EDDY_DNN_EXECUTION_FAILED
           : entry == FAKE_cudnnBackendFinalize ? EDDY_DNN_NOT_SUPPORTED
                                                : EDDY_DNN_HOST_ALLOC_FAILED;
}

eddy_dnn_status fake_dnn_fault(fake_dnn_entry entry) {
    const fake_options *options = fake_options_read();
    long call = atomic_fetch_add_explicit(&calls[entry], 1, memory_order_relaxed) + 1;
    if (call != options->fail_entry_call || strcmp(symbols[entry], options->fail_entry) != 0)
        return 0;
    return options->fail_entry_result ? options->fail_entry_result : usual(entry);
}

long fake_dnn_calls(const char *symbol) {
    for (int entry = 0; entry < FAKE_DNN_ENTRIES; entry++)
        if (strcmp(symbols[entry], symbol) == 0)
            return atomic_load_explicit(&calls[entry], memory_order_relaxed);
    return -1;
}
