/* Sequences with a constant step, in contiguous memory. */
#ifndef EDDY_KERNELS_CPU_FILL_BLOCK_H
#define EDDY_KERNELS_CPU_FILL_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

typedef struct eddy_fill_blocks {
    /* first + step i, which wraps around. */
    void (*count_i64)(int64_t *out, int64_t first, int64_t step, int64_t count);
    /* base + step (from + turn i), computed in double; from is an integer, turn 1 or -1. */
    void (*line_f32)(float *out, double base, double step, double from, double turn, int64_t count);
    void (*line_f64)(double *out, double base, double step, double from, double turn,
                     int64_t count);
} eddy_fill_blocks;

EDDY_ISA_DECLARE(eddy_fill_blocks, eddy_cpu_fill_blocks)

#endif
