/* Sines and cosines of a row's angles, and rotation of pairs by them, on contiguous memory. */
#ifndef EDDY_KERNELS_CPU_ROPE_BLOCK_H
#define EDDY_KERNELS_CPU_ROPE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* Rows of pairs. The first numbers of a row's pairs are contiguous, and so are the second ones; the next row is `row`
 * numbers further on. */
typedef struct eddy_rope_rows {
    void *first, *second;
    int64_t row;
} eddy_rope_rows;

/* Sines and cosines for rows of pairs; rows are `row` numbers apart. */
typedef struct eddy_rope_angles {
    const void *cosines, *sines;
    int64_t row;
} eddy_rope_angles;

/* out = in, rotated by the angles. The operands do not overlap. */
typedef void eddy_rope_turn(eddy_rope_rows out, eddy_rope_rows in, eddy_rope_angles by,
                            int64_t rows, int64_t pairs);

typedef struct eddy_rope_blocks {
    /* Cosines and sines of position * frequency, each rounded once, of a position that eddy_rope_is_quick. */
    void (*angles)(float *cosines, float *sines, double position, const double *frequencies,
                   int64_t pairs);
    eddy_rope_turn *turn_f32, *turn_f64;
} eddy_rope_blocks;

EDDY_ISA_DECLARE(eddy_rope_blocks, eddy_cpu_rope_blocks)

#endif
