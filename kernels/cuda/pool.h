/* Pools on CUDA devices: which kernels there are (pool.cu), what they are given, and the host's side (pool.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_POOL_H
#define EDDY_KERNELS_CUDA_POOL_H

#include <kernels/cuda/planes.h>
#include <kernels/pool.h>

/* Dtype, name and enumerator. */
#define EDDY_CUDA_POOL_FLOATS(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)
#define EDDY_CUDA_POOL_DTYPES(row)                                                                 \
    EDDY_CUDA_POOL_FLOATS(row)                                                                     \
    row(i8, I8) row(u8, U8) row(i16, I16) row(i32, I32) row(i64, I64) row(truth, BOOL)

/* What has windows: eddy_max_pool_<dtype>, eddy_avg_pool_<dtype>, and the gradients eddy_max_route_<dtype>, eddy_avg_spread_<dtype>, which gather what each element of the
 * image gets. */
typedef struct eddy_cuda_pool {
    eddy_cuda_gate gate;
    eddy_cuda_plane_places places; /* of what is written */
    eddy_pool_axis height, width;
    eddy_cuda_planes image; /* x; gradients: what is written */
    eddy_cuda_planes small; /* the result, a number for each window; gradients: what is read */
    eddy_cuda_planes
        x; /* eddy_max_route: searched for each window's largest, if there are no indices */
    eddy_cuda_planes indices; /* i64, or no data */
    eddy_pool_counting counting;
    bool in_sequence; /* averages: elements are added one after another, not rows */
} eddy_cuda_pool;

/* eddy_max_put_<dtype>: adds elements to the places of their planes that indices name, in the order of a plane. A unit is a part of a plane's places. */
typedef struct eddy_cuda_pool_put {
    eddy_cuda_gate gate;
    eddy_cuda_planes grad, indices; /* of one shape */
    eddy_cuda_planes ground;        /* of the compute type */
    int64_t planes, parts;          /* of all images; of each plane */
    int64_t part, bound;            /* places of a part, and of a plane */
    bool is_wide;                   /* indices are i64; else i32 */
    bool
        is_across; /* a unit is a thread's, and neighbours have neighbouring channels; else it is a warp's, which reads neighbours of a row */
    eddy_cuda_divisor by_row
        [2]; /* columns of grad, and of the ground; of divisor 0 as in eddy_cuda_plane_places */
} eddy_cuda_pool_put;

#endif
