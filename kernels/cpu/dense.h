/* Runs elementwise loops that need contiguous operands on strided ones: operands are gathered some cache lines at a time,
 * and results are scattered. An operand that broadcasts is filled in once. A loop uses this for strides without a
 * specialised form, if such a form would be long. */
#ifndef EDDY_KERNELS_CPU_DENSE_H
#define EDDY_KERNELS_CPU_DENSE_H

#include <kernels/kernel.h>

#define EDDY_DENSE_OPERANDS 5 /* at most, the target among them */
#define EDDY_DENSE_BYTES 4096 /* of an operand at a time */

/* Whether a loop can use all operands in place. */
static inline bool eddy_dense_is_given(int32_t operand_count, int64_t element_bytes,
                                       const int64_t *strides) {
    bool is_given = true;
    for (int32_t k = 0; k < operand_count; k++)
        is_given = is_given && strides[k] == element_bytes;
    return is_given;
}

/* Runs `loop` on operands of 4 or 8 bytes per element. The target is the last operand: it is one of the others, or
 * overlaps none. */
void eddy_dense_run(eddy_loop_fn *loop, int32_t operand_count, int64_t element_bytes,
                    char *const *data, const int64_t *strides, int64_t count,
                    const void *attributes);

#endif
