/* Elementwise loops whose elements have to lie side by side, made to fit what lies otherwise: operands are brought together some
 * cache lines at a time, and results put where they belong. One that broadcasts is brought once. It is what a loop does with strides
 * that have no form of their own, where that form would be long. */
#ifndef EDDY_KERNELS_CPU_DENSE_H
#define EDDY_KERNELS_CPU_DENSE_H

#include <kernels/kernel.h>

#define EDDY_DENSE_OPERANDS 5 /* at most, the target among them */
#define EDDY_DENSE_BYTES 4096 /* of an operand at a time */

/* Whether a loop takes its operands as they are. */
static inline bool eddy_dense_is_given(int32_t operand_count, int64_t element_bytes,
                                       const int64_t *strides) {
    bool is_given = true;
    for (int32_t k = 0; k < operand_count; k++)
        is_given = is_given && strides[k] == element_bytes;
    return is_given;
}

/* Runs `loop`, which takes operands of 4 or of 8 bytes an element, the target last: that is one of the others, or overlaps none. */
void eddy_dense_run(eddy_loop_fn *loop, int32_t operand_count, int64_t element_bytes,
                    char *const *data, const int64_t *strides, int64_t count,
                    const void *attributes);

#endif
