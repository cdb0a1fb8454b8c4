/* interpolate on CUDA devices: which kernels there are (interpolate.cu), what they are given, and the host's side (interpolate.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_INTERPOLATE_H
#define EDDY_KERNELS_CUDA_INTERPOLATE_H

#include <kernels/cuda/planes.h>
#include <kernels/interpolate.h>

/* Bits of an element: eddy_nearest_<bits>. */
#define EDDY_CUDA_NEAREST(row) row(8) row(16) row(32) row(64)
/* Dtype, name and enumerator: eddy_bilinear_<dtype>, and the gradient of either mode, eddy_interpolate_back_<dtype>. */
#define EDDY_CUDA_INTERPOLATE_FLOATS(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)

/* eddy_taps: of the rows, then of the columns. It precedes all others. */
typedef struct eddy_cuda_taps {
    eddy_cuda_gate gate;
    eddy_tap_axis rows, columns;
    eddy_tap *taps;
} eddy_cuda_taps;

typedef struct eddy_cuda_resizing {
    eddy_cuda_gate gate;
    eddy_cuda_plane_places places; /* of what is written */
    eddy_cuda_planes small,
        large; /* image and result; in the gradient, what is written and what is read */
    const eddy_tap *rows, *columns; /* for each row and column of `large` */
} eddy_cuda_resizing;

#endif
