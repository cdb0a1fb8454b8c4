/* Elementwise loops of 16-bit floats, built from the loops of f32: operands are converted to f32 some cache lines at a
 * time, and results are converted back. The arithmetic is the same as in a single loop, rounded once, but the conversions
 * are compiled here only. */
#ifndef EDDY_KERNELS_CPU_HALF_BLOCK_H
#define EDDY_KERNELS_CPU_HALF_BLOCK_H

#include <kernels/cpu/isa.h>
#include <kernels/kernel.h>

#define EDDY_HALF_INPUTS 4 /* at most */

typedef struct eddy_half_loop {
    eddy_loop_fn *loop; /* of f32 */
    int32_t input_count;
    bool has_bool_result; /* it is written to the output directly */
    bool is_dense;        /* needs contiguous elements (kernels/cpu/dense.h) */
} eddy_half_loop;

typedef void eddy_half_run(const eddy_half_loop *half, char *const *data, const int64_t *strides,
                           int64_t count, const void *attributes);

typedef struct eddy_half_blocks {
    eddy_half_run *run_f16, *run_bf16;
} eddy_half_blocks;

EDDY_ISA_DECLARE(eddy_half_blocks, eddy_cpu_half_blocks)

#endif
