#define EDDY_ELEMENT truth
#define EDDY_FROM uint8_t
#define EDDY_REAL uint8_t
#define EDDY_WRAPPING uint8_t
#define EDDY_LOWEST 0
#define EDDY_HIGHEST UINT8_MAX
#include <kernels/cpu/reduce/reduce_typed.h>

COMBINE(max, LARGER)
BLOCK(max, ITSELF, LARGER)
RARE_COLUMNS(max, ITSELF, LARGER, max)

COMBINE(min, SMALLER)
BLOCK(min, ITSELF, SMALLER)
RARE_COLUMNS(min, ITSELF, SMALLER, min)

const eddy_reduce_blocks EDDY_ISA_NAME(eddy_cpu_reduce_truth) = {
    .max = OPS(max, max),
    .min = OPS(min, min),
};
