/* Calls of the kernels of reductions, by the names of their ops: beside their oracle (tests/functional/reduction.h), and beside
 * themselves, since layouts, slices and teams never show in the bits. */
#ifndef EDDY_TESTS_KERNELS_REDUCING_H
#define EDDY_TESTS_KERNELS_REDUCING_H

#include "axes.h"
#include "tensor.h"

#include <tests/functional/reduction.h>

typedef struct reducing {
    const char *op;
    eddy_dtype dtype;
    const shape_case *shape;
    uint32_t axes;
    bool keeps_dims;
    double parameter; /* correction, p */
    layout in, out;
    bool has_specials; /* NaN and infinities among the elements */
    eddy_kernel_team *team;
} reducing;

/* The dtype of the op's result; EDDY_DTYPE_COUNT where it does not take the dtype. */
eddy_dtype reducing_result(const char *op, eddy_dtype dtype);

/* Runs it on one thread, compares what it gives with the oracle, and then with what the same elements give in a contiguous tensor and by
 * the team. Nothing is done where the op refuses the dtype, or to reduce nothing. */
void reducing_check(reducing call);
/* The same with the op's default for the parameter. */
void reducing_check_default(reducing call);

#endif
