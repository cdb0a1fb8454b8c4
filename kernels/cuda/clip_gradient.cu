/* clip_grad_norm: sums of squares, the norm of them, and the scaling of all elements if it is too large. */
#include <kernels/cuda/list.cuh>
#include <kernels/cuda/optimise.h>
#include <kernels/cuda/reduce.cuh>

namespace {

/* ---- sums ---- */

constexpr int blocks_of_slice = EDDY_CUDA_CLIP_SLICE / EDDY_CUDA_REDUCE_BLOCK;

template <class source> struct squares {
    typedef source element;
    typedef double value;
    static EDDY_CUDA_MEMBER value nothing() {
        return -0.0;
    }
    static EDDY_CUDA_MEMBER value join(value a, value b) {
        return a + b;
    }
    static EDDY_CUDA_MEMBER value take(typename element::computed x, int64_t) {
        return (double)x * (double)x;
    }
};

/* Every thread has some lanes of a block of a slice; a block of threads has one slice or, of dtypes of which a thread reads more at once, several. */
template <class element> EDDY_CUDA_MEMBER void sum_slices(const eddy_cuda_list &p) {
    typedef typename element::stored stored;
    constexpr int width = EDDY_CUDA_VECTOR_BYTES / sizeof(stored),
                  places = EDDY_CUDA_REDUCE_LANES / width, threads = places * blocks_of_slice,
                  abreast = EDDY_CUDA_REDUCE_THREADS / threads;
    EDDY_CUDA_SHARED(double, sums, abreast *blocks_of_slice);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int own = threadIdx.x / threads, member = threadIdx.x / places % blocks_of_slice,
              place = threadIdx.x % places;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * abreast; first < p.chunks;
         first += (int64_t)gridDim.x * abreast) {
        const bool is_one = first + own < p.chunks;
        const eddy_cuda_chunk slice(p, is_one ? first + own : first);
        const eddy_cuda_list_item &item = p.item[slice.item];
        const int64_t begin = slice.begin + member * EDDY_CUDA_REDUCE_BLOCK,
                      left = is_one ? slice.end - begin : 0,
                      count = left < EDDY_CUDA_REDUCE_BLOCK ? left : EDDY_CUDA_REDUCE_BLOCK;
        eddy_cuda_lane_group<squares<element>, width> lanes;
        lanes.join_block((const stored *)item.data[0] + begin + place * width,
                         count - place * width, places * width,
                         (uintptr_t)item.data[0] % EDDY_CUDA_VECTOR_BYTES == 0);
        const double sum = lanes.halve(places);
        if (place == 0)
            sums[own * blocks_of_slice + member] = sum;
        __syncthreads();
        if (is_one && member == 0 && place == 0) {
            double total = 0;
            EDDY_CUDA_ROLLED
            for (int64_t b = 0; slice.begin + b * EDDY_CUDA_REDUCE_BLOCK < slice.end; b++)
                total += sums[own * blocks_of_slice + b];
            ((double *)item.data[1])[first + own - item.first] = total;
        }
        __syncthreads();
    }
}

/* ---- the norm ---- */

/* Sums that are loaded at a time. They are added one after another, as on the host. */
constexpr int piece = 1024;

template <class element> EDDY_CUDA_MEMBER void find_norm(const eddy_cuda_clip_norm &p) {
    EDDY_CUDA_SHARED(double, sums, piece);
    if (eddy_cuda_is_skipped(p.gate) || blockIdx.x > 0)
        return;
    double total = 0;
    EDDY_CUDA_ROLLED
    for (int64_t begin = 0; begin < p.slices; begin += piece) {
        const int count = p.slices - begin < piece ? (int)(p.slices - begin) : piece;
        for (int i = threadIdx.x; i < count; i += blockDim.x)
            sums[i] = p.sums[begin + i];
        __syncthreads();
        if (threadIdx.x == 0) {
            EDDY_CUDA_UNROLLED
            for (int i = 0; i < count; i++)
                total += sums[i];
        }
        __syncthreads();
    }
    if (threadIdx.x > 0)
        return;
    const double norm = eddy_sqrt_f64(total);
    if (p.norm)
        *(typename element::stored *)p.norm = element::store(norm);
    *p.scale = p.max_norm / (norm + 1e-6);
}

/* ---- scaling ---- */

/* Computed in f64, whatever the dtype. */
#define WIDE(name)                                                                                 \
    struct wide_##name {                                                                           \
        typedef eddy_cuda_##name::stored stored;                                                   \
        typedef double computed;                                                                   \
        static EDDY_CUDA_MEMBER computed load(stored x) {                                          \
            return (double)eddy_cuda_##name::load(x);                                              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER stored store(computed x) {                                         \
            return EDDY_CAST_REAL64_TO_##name(x);                                                  \
        }                                                                                          \
    };
WIDE(f32)
WIDE(f64)
WIDE(f16)
WIDE(bf16)

struct scaling {
    static constexpr int operands = 1, unwritten = -1;
    const double scale;
    EDDY_CUDA_MEMBER explicit scaling(const uint64_t *attributes)
        : scale(*(const double *)(uintptr_t)attributes[0]) {
    }
    /* A NaN becomes visible. */
    EDDY_CUDA_MEMBER bool has_nothing_to_do() const {
        return scale >= 1;
    }
    EDDY_CUDA_MEMBER void operator()(double *x) const {
        x[0] *= scale;
    }
};

} // namespace

#define SUM(op, name, dtype)                                                                       \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##name, eddy_cuda_list) {                                   \
        sum_slices<eddy_cuda_##name>(parameters);                                                  \
    }
#define NORM(op, name, dtype)                                                                      \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##name, eddy_cuda_clip_norm) {                              \
        find_norm<wide_##name>(parameters);                                                        \
    }
#define SCALE(op, name, dtype)                                                                     \
    EDDY_CUDA_KERNEL(eddy_##op##_##name##_list, eddy_cuda_list) {                                  \
        eddy_cuda_update_list<scaling, wide_##name>(parameters);                                   \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_##op##_##name##_strided, eddy_cuda_strided) {                            \
        eddy_cuda_update_strided<scaling, wide_##name>(parameters);                                \
    }
EDDY_CUDA_CLIP_SUMS(SUM)
EDDY_CUDA_CLIP_NORMS(NORM)
EDDY_CUDA_CLIP_SCALES(SCALE)
