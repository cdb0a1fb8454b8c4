/* Along an axis: softmax, its logarithm, and the gradients of both. */
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/softmax.h>

#define THREADS 256

/* ---- the ops ----
 *
 * `term` is what a line sums up, `factor` what is made of the sum once a line, and `result` that of an element. */

template <class real> struct elements { real first, second; };

/* No number is left out: NaN, which may get lost here, is in the sum. */
template <class real> EDDY_CUDA_MEMBER real larger(real a, real b) {
    return a > b ? a : b;
}

#define OPS(tag, real)                                                                             \
    struct exponential_##tag {                                                                     \
        static constexpr bool has_shift = true;                                                    \
        static EDDY_CUDA_MEMBER real term(elements<real> x, real shift) {                          \
            return eddy_exp_down_##tag(x.first - shift);                                           \
        }                                                                                          \
    };                                                                                             \
    struct softmax_##tag : exponential_##tag {                                                     \
        static EDDY_CUDA_MEMBER real factor(double sum) {                                          \
            return (real)(1.0 / sum);                                                              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER real result(elements<real>, real term, real, real factor) {        \
            return term * factor;                                                                  \
        }                                                                                          \
    };                                                                                             \
    struct log_softmax_##tag : exponential_##tag {                                                 \
        static EDDY_CUDA_MEMBER real factor(double sum) {                                          \
            return (real)eddy_log_f64(sum);                                                        \
        }                                                                                          \
        static EDDY_CUDA_MEMBER real result(elements<real> x, real, real shift, real factor) {     \
            return (x.first - shift) - factor;                                                     \
        }                                                                                          \
    };                                                                                             \
    struct backward_##tag {                                                                        \
        static constexpr bool has_shift = false;                                                   \
        static EDDY_CUDA_MEMBER real factor(double sum) {                                          \
            return (real)sum;                                                                      \
        }                                                                                          \
    };                                                                                             \
    struct softmax_backward_##tag : backward_##tag {                                               \
        static EDDY_CUDA_MEMBER real term(elements<real> x, real) {                                \
            return x.first * x.second;                                                             \
        }                                                                                          \
        static EDDY_CUDA_MEMBER real result(elements<real> x, real, real, real factor) {           \
            return x.second * (x.first - factor);                                                  \
        }                                                                                          \
    };                                                                                             \
    struct log_softmax_backward_##tag : backward_##tag {                                           \
        static EDDY_CUDA_MEMBER real term(elements<real> x, real) {                                \
            return x.first;                                                                        \
        }                                                                                          \
        static EDDY_CUDA_MEMBER real result(elements<real> x, real, real, real factor) {           \
            return x.first - eddy_exp_##tag(x.second) * factor;                                    \
        }                                                                                          \
    };
OPS(f32, float)
OPS(f64, double)

EDDY_SCALAR float lowest(float) {
    return -EDDY_INF_f32;
}
EDDY_SCALAR double lowest(double) {
    return -EDDY_INF_f64;
}

/* ---- a block of threads ---- */

/* What a thread works on: a place of a task, from place to place so many threads. Neighbouring threads are neighbouring elements, or neighbouring lines. */
struct part {
    uint32_t place, number, step;

    EDDY_CUDA_MEMBER explicit part(const eddy_cuda_softmax_call &p) {
        const uint32_t t = threadIdx.x;
        step = p.lines.is_across ? p.abreast : 1;
        number = p.lines.is_across ? t % p.abreast : t / p.places;
        place = p.lines.is_across ? t / p.abreast : t % p.places;
    }
};

/* That of the first place, in all places. */
template <class real> EDDY_CUDA_MEMBER real share(const part &own, real mine) {
    EDDY_CUDA_SHARED(real, values, THREADS);
    values[threadIdx.x] = mine;
    __syncthreads();
    mine = values[threadIdx.x - own.place * own.step];
    __syncthreads();
    return mine;
}

/* The largest of all places, in all of them. */
template <class real>
EDDY_CUDA_MEMBER real share_largest(const eddy_cuda_softmax_call &p, const part &own, real mine) {
    EDDY_CUDA_SHARED(real, values, THREADS);
    EDDY_CUDA_ROLLED
    for (uint32_t half = p.places / 2; half > 0; half /= 2) {
        values[threadIdx.x] = mine;
        __syncthreads();
        if (own.place < half)
            mine = larger(mine, values[threadIdx.x + half * own.step]);
        __syncthreads();
    }
    return share(own, mine);
}

/* The sum of a chunk, of which the first places have the lanes. Right in the first one. */
template <class real> EDDY_CUDA_MEMBER double join_lanes(const part &own, real lane) {
    EDDY_CUDA_SHARED(real, values, THREADS);
    EDDY_CUDA_ROLLED
    for (uint32_t half = EDDY_CUDA_SOFTMAX_LANES / 2; half > 0; half /= 2) {
        values[threadIdx.x] = lane;
        __syncthreads();
        if (own.place < half)
            lane += values[threadIdx.x + half * own.step];
        __syncthreads();
    }
    return (double)lane;
}

/* ---- lines ---- */

template <class element, int inputs> struct line {
    typedef typename element::stored stored;
    typedef typename element::computed real;
    const char *in[2];
    char *out;
    int64_t strides[3];

    EDDY_CUDA_MEMBER line(const eddy_cuda_softmax_call &p, int64_t number) {
        out = (char *)p.out + eddy_cuda_offset(p.lines.dims, 0, number);
        strides[0] = p.lines.strides[0];
        for (int k = 0; k < inputs; k++) {
            in[k] = (const char *)p.in[k] + eddy_cuda_offset(p.lines.dims, k + 1, number);
            strides[k + 1] = p.lines.strides[k + 1];
        }
    }
    EDDY_CUDA_MEMBER real input(int k, int64_t i) const {
        return element::load(*(const stored *)(in[k] + i * strides[k + 1]));
    }
    EDDY_CUDA_MEMBER elements<real> load(int64_t i) const {
        return {input(0, i), inputs == 1 ? 0 : input(inputs - 1, i)};
    }
    EDDY_CUDA_MEMBER void store(int64_t i, real x) const {
        *(stored *)(out + i * strides[0]) = element::store(x);
    }
};

/* ---- lines of one chunk at most, which are kept ---- */

/* A thread's element of round r, number place + r * places, is terms[r * THREADS + the thread's number]. */
template <class real>
EDDY_CUDA_MEMBER real sum_lane(const eddy_cuda_softmax_call &p, const part &own,
                               const real *terms) {
    real lane = 0;
    if (own.place >= EDDY_CUDA_SOFTMAX_LANES)
        return lane;
    const uint32_t count = (uint32_t)p.lines.count;
    EDDY_CUDA_ROLLED
    for (uint32_t begin = 0; begin < count; begin += p.places, terms += THREADS) {
        EDDY_CUDA_UNROLLED
        for (uint32_t i = own.place; i < p.places; i += EDDY_CUDA_SOFTMAX_LANES)
            if (begin + i < count)
                lane += terms[threadIdx.x + (i - own.place) * own.step];
    }
    return lane;
}

template <class op, class element>
EDDY_CUDA_MEMBER void run_whole(const eddy_cuda_softmax_call &p) {
    typedef typename element::computed real;
    EDDY_CUDA_SHARED(real, terms, EDDY_CUDA_SOFTMAX_CHUNK);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    const int64_t step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < p.lines.lines; first += step) {
        const bool is_there = first + own.number < p.lines.lines;
        const line<element, op::has_shift ? 1 : 2> mine(p, is_there ? first + own.number : 0);
        const uint32_t count = is_there ? (uint32_t)p.lines.count : 0;
        real shift = lowest(real());
        if (op::has_shift) {
            EDDY_CUDA_UNROLLED
            for (uint32_t i = own.place, at = threadIdx.x; i < count;
                 i += p.places, at += THREADS) {
                terms[at] = mine.load(i).first;
                shift = larger(shift, terms[at]);
            }
            shift = share_largest(p, own, shift);
        }
        EDDY_CUDA_ROLLED
        for (uint32_t i = own.place, at = threadIdx.x; i < count; i += p.places, at += THREADS)
            terms[at] =
                op::term(op::has_shift ? elements<real>{terms[at], 0} : mine.load(i), shift);
        __syncthreads();
        const real lane = is_there ? sum_lane(p, own, terms) : 0;
        const real factor = share(own, op::factor(join_lanes(own, lane)));
        EDDY_CUDA_ROLLED
        for (uint32_t i = own.place, at = threadIdx.x; i < count; i += p.places, at += THREADS)
            mine.store(i, op::result(mine.load(i), terms[at], shift, factor));
    }
}

/* ---- longer lines, chunk by chunk ---- */

/* A thread's elements are those of one lane: [begin, end) in steps of the lanes. */
struct chunk {
    int64_t number, line, begin, end;
    bool is_there;

    EDDY_CUDA_MEMBER chunk(const eddy_cuda_softmax_call &p, const part &own, int64_t first) {
        number = first + own.number;
        is_there = number < p.lines.lines * p.chunks;
        if (!is_there)
            number = 0;
        const int64_t chunk_number = number / p.lines.lines;
        line = number - chunk_number * p.lines.lines;
        begin = chunk_number * EDDY_CUDA_SOFTMAX_CHUNK;
        const int64_t left = p.lines.count - begin;
        end = begin + (left < EDDY_CUDA_SOFTMAX_CHUNK ? left : EDDY_CUDA_SOFTMAX_CHUNK);
        begin += own.place;
        if (!is_there)
            end = begin;
    }
};

/* Calls function(chunk) for each chunk, all threads of a block as often. */
template <class work>
EDDY_CUDA_MEMBER void each_chunk(const eddy_cuda_softmax_call &p, const part &own,
                                 const work &function) {
    const int64_t chunks = p.lines.lines * p.chunks, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < chunks; first += step)
        function(chunk(p, own, first));
}

template <class element> EDDY_CUDA_MEMBER void run_largest(const eddy_cuda_softmax_call &p) {
    typedef typename element::computed real;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    each_chunk(p, own, [&](const chunk &at) {
        const line<element, 1> mine(p, at.line);
        real found = lowest(real());
        EDDY_CUDA_UNROLLED
        for (int64_t i = at.begin; i < at.end; i += EDDY_CUDA_SOFTMAX_LANES)
            found = larger(found, mine.load(i).first);
        found = share_largest(p, own, found);
        if (at.is_there && own.place == 0)
            p.largest[at.number] = (double)found;
    });
}

/* The largest element of the chunk's line; 0 for gradients. */
template <class op, class real>
EDDY_CUDA_MEMBER real shift_of(const eddy_cuda_softmax_call &p, const part &own, const chunk &at) {
    if (!op::has_shift)
        return 0;
    real found = lowest(real());
    EDDY_CUDA_UNROLLED
    for (int64_t c = own.place; c < p.chunks; c += EDDY_CUDA_SOFTMAX_LANES)
        found = larger(found, (real)p.largest[c * p.lines.lines + at.line]);
    return share_largest(p, own, found);
}

template <class op, class element> EDDY_CUDA_MEMBER void run_sums(const eddy_cuda_softmax_call &p) {
    typedef typename element::computed real;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    each_chunk(p, own, [&](const chunk &at) {
        const line<element, op::has_shift ? 1 : 2> mine(p, at.line);
        const real shift = shift_of<op, real>(p, own, at);
        real lane = 0;
        EDDY_CUDA_UNROLLED
        for (int64_t i = at.begin; i < at.end; i += EDDY_CUDA_SOFTMAX_LANES)
            lane += op::term(mine.load(i), shift);
        const double sum = join_lanes(own, lane);
        if (at.is_there && own.place == 0)
            p.sums[at.number] = sum;
    });
}

template <class op, class element>
EDDY_CUDA_MEMBER void run_results(const eddy_cuda_softmax_call &p) {
    typedef typename element::computed real;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    each_chunk(p, own, [&](const chunk &at) {
        const line<element, op::has_shift ? 1 : 2> mine(p, at.line);
        const real shift = shift_of<op, real>(p, own, at);
        double sum = 0;
        EDDY_CUDA_UNROLLED
        for (int64_t c = 0; c < p.chunks && own.place == 0; c++)
            sum += p.sums[c * p.lines.lines + at.line];
        const real factor = share(own, op::factor(sum));
        EDDY_CUDA_UNROLLED
        for (int64_t i = at.begin; i < at.end; i += EDDY_CUDA_SOFTMAX_LANES) {
            const elements<real> x = mine.load(i);
            mine.store(i, op::result(x, op::term(x, shift), shift, factor));
        }
    });
}

/* ---- the kernels ---- */

#define KERNELS(op, of, dtype, compute)                                                            \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of##_whole, eddy_cuda_softmax_call) {                     \
        run_whole<op##_##compute, eddy_cuda_##of>(parameters);                                     \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of##_sums, eddy_cuda_softmax_call) {                      \
        run_sums<op##_##compute, eddy_cuda_##of>(parameters);                                      \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of##_results, eddy_cuda_softmax_call) {                   \
        run_results<op##_##compute, eddy_cuda_##of>(parameters);                                   \
    }
EDDY_CUDA_SOFTMAXES(KERNELS)

#define LARGEST(op, of, dtype, compute)                                                            \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of##_largest, eddy_cuda_softmax_call) {                   \
        run_largest<eddy_cuda_##of>(parameters);                                                   \
    }
EDDY_CUDA_SOFTMAX_DTYPES(LARGEST, softmax)
