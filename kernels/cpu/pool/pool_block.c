#include <float.h>
#include <kernels/cpu/pool/pool_block.h>

static bool is_plain(const float *x, int64_t count) {
    int32_t others = 0;
    for (int64_t i = 0; i < count; i++)
        others |= !(x[i] >= -FLT_MAX);
    return !others;
}

const eddy_pool_blocks EDDY_ISA_NAME(eddy_cpu_pool_blocks) = {.is_plain = is_plain};
