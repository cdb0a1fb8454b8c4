/* mse_loss, l1_loss, smooth_l1_loss, bce_with_logits, kl_div, and their gradients. */
#include <kernels/cuda/loss_total.cuh>
#include <kernels/cuda/pair_loss.h>
#include <kernels/pair_loss.h>

namespace {

#define FUNCTION(name, of, of_dtype)                                                               \
    struct name {                                                                                  \
        static EDDY_CUDA_MEMBER float apply(float x, float t, float p, float beta) {               \
            return eddy_loss_##name##_f32(x, t, p, beta);                                          \
        }                                                                                          \
        static EDDY_CUDA_MEMBER double apply(double x, double t, double p, double beta) {          \
            return eddy_loss_##name##_f64(x, t, p, beta);                                          \
        }                                                                                          \
    };
EDDY_CUDA_PAIR_LOSSES(FUNCTION, , )
EDDY_CUDA_PAIR_LOSS_GRADIENTS(FUNCTION, , )

/* `lanes` elements of each operand, and what comes of them. */
template <class function, class element, int lanes> struct work {
    typedef typename element::stored stored;
    typedef typename element::computed real;
    real values[EDDY_CUDA_LOSS_OPERANDS][lanes];
    real beta, factor;

    EDDY_CUDA_MEMBER explicit work(const eddy_cuda_pair_loss &p) {
        const double whole = p.factor ? (double)element::load(*(const stored *)p.factor) : 1;
        beta = (real)p.beta;
        factor = (real)(whole / p.divisor);
    }
    EDDY_CUDA_MEMBER real result(int lane) const {
        const real y =
            function::apply(values[EDDY_CUDA_LOSS_INPUT][lane], values[EDDY_CUDA_LOSS_TARGET][lane],
                            values[EDDY_CUDA_LOSS_POSITIVE][lane], beta);
        return y * (values[EDDY_CUDA_LOSS_WEIGHT][lane] * factor) *
               values[EDDY_CUDA_LOSS_GRAD][lane];
    }
    /* One element, of an operand that is there, for all lanes. */
    EDDY_CUDA_MEMBER void load_all(int operand, const void *at) {
        const real value = at ? (real)element::load(*(const stored *)at) : 1;
        for (int l = 0; l < lanes; l++)
            values[operand][l] = value;
    }
    EDDY_CUDA_MEMBER void load_at(const eddy_cuda_pair_loss &p, const int64_t *offsets) {
        for (int o = EDDY_CUDA_LOSS_INPUT; o < EDDY_CUDA_LOSS_OPERANDS; o++)
            load_all(o, p.data[o] ? (const char *)p.data[o] + offsets[o] : nullptr);
    }
    /* Neighbours; the last of fewer takes the lanes that are left. */
    EDDY_CUDA_MEMBER void load_some(int operand, const stored *at, int count) {
        for (int l = 0; l < lanes; l++)
            values[operand][l] = element::load(at[l < count ? l : count - 1]);
    }
    EDDY_CUDA_MEMBER void load_whole(int operand, const stored *at) {
        typedef typename eddy_cuda_words<lanes * sizeof(stored)>::type words_type;
        stored elements[lanes];
        const words_type words = *(const words_type *)at;
        memcpy(elements, &words, sizeof(elements));
        for (int l = 0; l < lanes; l++)
            values[operand][l] = element::load(elements[l]);
    }
};

/* ---- elements ---- */

EDDY_SCALAR bool is_each(const eddy_cuda_pair_loss &p, int operand) {
    return p.data[operand] && !(p.broadcast >> operand & 1);
}

template <class function, class element>
EDDY_CUDA_MEMBER void run_dense(const eddy_cuda_pair_loss &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    typedef typename element::stored stored;
    constexpr int lanes = sizeof(stored) == 8 ? 2 : 4;
    work<function, element, lanes> w(p);
    for (int o = EDDY_CUDA_LOSS_INPUT; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        if (!is_each(p, o))
            w.load_all(o, p.data[o]);
    stored *const out = (stored *)p.data[EDDY_CUDA_LOSS_OUT];
    const int64_t step = (int64_t)gridDim.x * blockDim.x * lanes;
    EDDY_CUDA_ROLLED
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes; at < p.count;
         at += step) {
        const int count = p.count - at < lanes ? (int)(p.count - at) : lanes;
        const bool is_whole = p.is_aligned && count == lanes;
        for (int o = EDDY_CUDA_LOSS_INPUT; o < EDDY_CUDA_LOSS_OPERANDS; o++)
            if (is_each(p, o) && is_whole)
                w.load_whole(o, (const stored *)p.data[o] + at);
            else if (is_each(p, o))
                w.load_some(o, (const stored *)p.data[o] + at, count);
        stored results[lanes];
        for (int l = 0; l < lanes; l++)
            results[l] = element::store(w.result(l));
        if (is_whole) {
            typename eddy_cuda_words<sizeof(results)>::type words;
            memcpy(&words, results, sizeof(results));
            *(typename eddy_cuda_words<sizeof(results)>::type *)(out + at) = words;
        } else
            for (int l = 0; l < lanes; l++)
                if (l < count)
                    out[at + l] = results[l];
    }
}

/* Bytes from the beginning of each operand to the element of this row-major number. */
EDDY_SCALAR void find_offsets(const eddy_cuda_pair_loss &p, int64_t number, int64_t *offsets) {
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        offsets[o] = 0;
    EDDY_CUDA_ROLLED
    for (int d = p.rank - 1; d >= 0; d--) {
        const eddy_cuda_divisor by = p.by[d];
        const int64_t quotient = d == 0 ? 0
                                 : by.divisor == 0 || number > INT32_MAX
                                     ? number / p.sizes[d]
                                     : (int64_t)eddy_cuda_quotient((uint32_t)number, by);
        const int64_t index = number - quotient * p.sizes[d];
        for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
            offsets[o] += index * p.strides[o][d];
        number = quotient;
    }
}

template <class function, class element>
EDDY_CUDA_MEMBER void run_strided(const eddy_cuda_pair_loss &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    work<function, element, 1> w(p);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step) {
        int64_t offsets[EDDY_CUDA_LOSS_OPERANDS];
        find_offsets(p, i, offsets);
        w.load_at(p, offsets);
        *(typename element::stored *)((char *)p.data[EDDY_CUDA_LOSS_OUT] +
                                      offsets[EDDY_CUDA_LOSS_OUT]) = element::store(w.result(0));
    }
}

/* ---- sums of chunks ---- */

/* A warp sums a chunk, a lane of the CPU's tree a thread (kernels/cuda/reduce.h). */
template <class function, class element>
EDDY_CUDA_MEMBER void run_sums(const eddy_cuda_pair_loss &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    work<function, element, 1> w(p);
    const int64_t chunks = (p.count + EDDY_CUDA_LOSS_CHUNK - 1) / EDDY_CUDA_LOSS_CHUNK,
                  step = (int64_t)gridDim.x * blockDim.x / 32;
    const int lane = (int)(threadIdx.x % 32);
    int64_t offsets[EDDY_CUDA_LOSS_OPERANDS];
    EDDY_CUDA_ROLLED
    for (int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; c < chunks; c += step) {
        const int64_t left = p.count - c * EDDY_CUDA_LOSS_CHUNK, begin = c * EDDY_CUDA_LOSS_CHUNK,
                      end = left < EDDY_CUDA_LOSS_CHUNK ? p.count : begin + EDDY_CUDA_LOSS_CHUNK;
        typename element::computed sum = -0.0;
        if (p.rank <= 1) {
            EDDY_CUDA_UNROLLED
            for (int64_t i = begin + lane; i < end; i += 32) {
                for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
                    offsets[o] = i * p.strides[o][0];
                w.load_at(p, offsets);
                sum += w.result(0);
            }
        } else {
            EDDY_CUDA_ROLLED
            for (int64_t i = begin + lane; i < end; i += 32) {
                find_offsets(p, i, offsets);
                w.load_at(p, offsets);
                sum += w.result(0);
            }
        }
        EDDY_CUDA_ROLLED
        for (uint32_t half = 16; half > 0; half /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, half);
        if (lane == 0)
            p.sums[c] = (double)sum;
    }
}

} // namespace

#define DENSE(name, of, of_dtype)                                                                  \
    EDDY_CUDA_KERNEL(eddy_loss_##name##_##of##_dense, eddy_cuda_pair_loss) {                       \
        run_dense<name, eddy_cuda_##of>(parameters);                                               \
    }
#define STRIDED(name, of, of_dtype)                                                                \
    EDDY_CUDA_KERNEL(eddy_loss_##name##_##of##_strided, eddy_cuda_pair_loss) {                     \
        run_strided<name, eddy_cuda_##of>(parameters);                                             \
    }
#define SUMS(name, of, of_dtype)                                                                   \
    EDDY_CUDA_BLOCK_KERNEL(eddy_loss_##name##_##of##_sums, eddy_cuda_pair_loss) {                  \
        run_sums<name, eddy_cuda_##of>(parameters);                                                \
    }
#define KERNELS(of, of_dtype)                                                                      \
    EDDY_CUDA_PAIR_LOSSES(DENSE, of, of_dtype)                                                     \
    EDDY_CUDA_PAIR_LOSSES(STRIDED, of, of_dtype)                                                   \
    EDDY_CUDA_PAIR_LOSSES(SUMS, of, of_dtype)                                                      \
    EDDY_CUDA_PAIR_LOSS_GRADIENTS(DENSE, of, of_dtype)                                             \
    EDDY_CUDA_PAIR_LOSS_GRADIENTS(STRIDED, of, of_dtype)
EDDY_CUDA_LOSS_DTYPES(KERNELS)
