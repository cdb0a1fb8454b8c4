#define EDDY_ELEMENT i64
#define EDDY_FROM int64_t
#define EDDY_REAL int64_t
#define EDDY_WRAPPING uint64_t
#define EDDY_LOWEST INT64_MIN
#define EDDY_HIGHEST INT64_MAX
#include <kernels/cpu/reduce/reduce_typed.h>

COMBINE(sum, SUM)
BLOCK(sum, ITSELF, SUM)
COLUMNS(sum, ITSELF, SUM)

COMBINE(prod, PRODUCT)
BLOCK(prod, ITSELF, PRODUCT)
COLUMNS(prod, ITSELF, PRODUCT)

COMBINE(max, LARGER)
BLOCK(max, ITSELF, LARGER)
COLUMNS(max, ITSELF, LARGER)

COMBINE(min, SMALLER)
BLOCK(min, ITSELF, SMALLER)
COLUMNS(min, ITSELF, SMALLER)

PICK(argmax_row, LARGEST)
PICK(argmin_row, SMALLEST)
FIND()

const eddy_reduce_blocks EDDY_ISA_NAME(eddy_cpu_reduce_i64) = {
    .sum = OPS(sum, sum),
    .prod = OPS(prod, prod),
    .max = OPS(max, max),
    .min = OPS(min, min),
    .argmax_row = EDDY_TYPED(argmax_row),
    .argmin_row = EDDY_TYPED(argmin_row),
    .find = EDDY_TYPED(find),
};
