/* The inner loops of the gradients of average pools, on contiguous f32 or f64. Each place adds its terms one after
 * another, in the order in which the loops are called, starting from 0; so the bits do not depend on the instruction set. */
#ifndef EDDY_KERNELS_CPU_POOL_AVERAGE_BLOCK_H
#define EDDY_KERNELS_CPU_POOL_AVERAGE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* The rows that terms are added to, `row_step` apart. The first `old_rows` hold sums. The `new_rows` after them are
 * uninitialised, and count as 0. */
typedef struct eddy_pool_shadow {
    void *to;
    int64_t row_step, old_rows, new_rows;
} eddy_pool_shadow;

typedef struct eddy_pool_average_ops {
    /* terms[i] = from[i] / divisors[i]; terms may be from. */
    void (*divide)(void *terms, const void *from, const void *divisors, int64_t count);
    /* wide[q * stride + f] = terms[q] for all f below stride. part[q * stride + f] = terms[q] for f below `rest`, else 0.
     * Writes only what is used: wide if `whole` > 0, part if rest > 0. */
    void (*widen)(void *wide, void *part, const void *terms, int64_t count, int64_t stride,
                  int64_t whole, int64_t rest);
    /* Adds to `count` columns of each row, in this order: part[i - whole * stride] (part NULL: nothing), wide[i - (whole -
     * 1) * stride], .., wide[i]. */
    void (*windows)(const eddy_pool_shadow *shadow, const void *wide, const void *part,
                    int64_t whole, int64_t stride, int64_t count);
    /* Adds one more term to `count` columns of each row; new rows hold sums here too. */
    void (*span)(const eddy_pool_shadow *shadow, const void *term, int64_t count);
    /* Adds from[0] / divisor, .., from[count - 1] / divisor to each place of each row; places are column_step apart. In
     * new rows the last `new_columns` places are uninitialised; all other places hold sums. */
    void (*channels)(const eddy_pool_shadow *shadow, int64_t column_step, int64_t columns,
                     int64_t new_columns, const void *from, double divisor, int64_t count);
} eddy_pool_average_ops;

EDDY_ISA_DECLARE(eddy_pool_average_ops, eddy_cpu_pool_average_f32)
EDDY_ISA_DECLARE(eddy_pool_average_ops, eddy_cpu_pool_average_f64)

#endif
