/* The inner loops of the gradients of average pools, on contiguous f32 or f64. Each place gets its terms one after the other in
 * the order in which the loops are called, starting from 0, so that no bit depends on the instruction set. */
#ifndef EDDY_KERNELS_CPU_POOL_AVERAGE_BLOCK_H
#define EDDY_KERNELS_CPU_POOL_AVERAGE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* Where terms go: rows `row_step` apart, of which the first `old_rows` are added to, and what is in the `new_rows` after them
 * does not count, as if it were 0. */
typedef struct eddy_pool_shadow {
    void *to;
    int64_t row_step, old_rows, new_rows;
} eddy_pool_shadow;

typedef struct eddy_pool_average_ops {
    /* terms[i] = from[i] / divisors[i]; terms may be from. */
    void (*divide)(void *terms, const void *from, const void *divisors, int64_t count);
    /* wide[q * stride + f] = terms[q] for all f below stride; part[q * stride + f] the same for f below `rest`, else 0. Only
     * what there is a use for: wide where `whole`, part where rest > 0. */
    void (*widen)(void *wide, void *part, const void *terms, int64_t count, int64_t stride,
                  int64_t whole, int64_t rest);
    /* `count` columns of each row get part[i - whole * stride] (part NULL: nothing), wide[i - (whole - 1) * stride], ..,
     * wide[i]. */
    void (*windows)(const eddy_pool_shadow *shadow, const void *wide, const void *part,
                    int64_t whole, int64_t stride, int64_t count);
    /* `count` columns of each row, new ones too, get one term more. */
    void (*span)(const eddy_pool_shadow *shadow, const void *term, int64_t count);
    /* Places, column_step apart, of each row get from[0] / divisor, .., from[count - 1] / divisor. In new rows the last
     * `new_columns` of them are new; elsewhere all are added to. */
    void (*channels)(const eddy_pool_shadow *shadow, int64_t column_step, int64_t columns,
                     int64_t new_columns, const void *from, double divisor, int64_t count);
} eddy_pool_average_ops;

EDDY_ISA_DECLARE(eddy_pool_average_ops, eddy_cpu_pool_average_f32)
EDDY_ISA_DECLARE(eddy_pool_average_ops, eddy_cpu_pool_average_f64)

#endif
