/* Rotary position embedding on CUDA devices: which kernels there are, and what they get (rope.cu, rope.c). Plain C.
 *
 * First the cosine and the sine of each pair at each position, in the compute type; then each pair of each row is turned by them. */
#ifndef EDDY_KERNELS_CUDA_ROPE_H
#define EDDY_KERNELS_CUDA_ROPE_H

#include <kernels/cuda/dims.h>

/* Elements, and the type in which they are computed. The kernels are eddy_rope_angles_<type> and eddy_rope_turn_<element>. */
#define EDDY_CUDA_ROPE_TYPES(row) row(f32, float) row(f64, double)
#define EDDY_CUDA_ROPES(row)                                                                       \
    row(f32, F32, float) row(f64, F64, double) row(f16, F16, float) row(bf16, BF16, float)

typedef struct eddy_cuda_rope_angles {
    eddy_cuda_gate gate;
    const void *positions; /* i64 */
    void *angles;          /* [positions][pairs] of a cosine and a sine */
    int64_t count, pairs;  /* positions; pairs of a row */
    int64_t stride;        /* from position to position, in bytes */
    double base, fastest;  /* the highest frequency */
} eddy_cuda_rope_angles;

/* What a row has a place for. */
enum { EDDY_CUDA_ROPE_OUT, EDDY_CUDA_ROPE_X, EDDY_CUDA_ROPE_ANGLES };

typedef struct eddy_cuda_rope_turn {
    eddy_cuda_gate gate;
    void *out;
    const void *x, *angles;
    int64_t rows, pairs;
    eddy_cuda_dims dims;     /* of rows; angles count bytes, too */
    int64_t pair_strides[2]; /* out, x: from pair to pair, in bytes */
    int64_t partners[2];     /* from the first element of a pair to the second */
} eddy_cuda_rope_turn;

#endif
