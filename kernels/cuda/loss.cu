/* cross_entropy and nll_loss of rows and labels, and their gradients. Labels are checked while they are used. */
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/loss.h>
#include <kernels/cuda/loss_total.cuh>

namespace {

constexpr int threads = 256;

/* ---- labels ---- */

struct label {
    int64_t number;
    bool is_ignored, fits;

    EDDY_CUDA_MEMBER label(const eddy_cuda_label_loss &p, int64_t row)
        : number(p.target[row * p.target_stride]),
          is_ignored(p.has_ignore_index && number == p.ignore_index),
          fits((uint64_t)number < (uint64_t)p.classes) {
    }
    EDDY_CUDA_MEMBER bool counts() const {
        return !is_ignored && fits;
    }
    EDDY_CUDA_MEMBER void check(const eddy_cuda_label_loss &p, int64_t row) const {
        if (!is_ignored && !fits)
            eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, row, number, p.classes);
    }
};

template <class element>
EDDY_CUDA_MEMBER double weight_of(const eddy_cuda_label_loss &p, int64_t number) {
    typedef typename element::stored stored;
    return p.weight ? (double)element::load(((const stored *)p.weight)[number * p.weight_stride])
                    : 1;
}

template <class element>
EDDY_CUDA_MEMBER void store_loss(const eddy_cuda_label_loss &p, int64_t row, double loss) {
    typedef typename element::stored stored;
    if (p.losses)
        p.losses[row] = loss;
    else
        ((stored *)p.out)[row * p.out_strides[0]] = element::round(loss);
}

template <class element>
EDDY_CUDA_MEMBER double grad_of(const eddy_cuda_label_loss &p, int64_t row) {
    typedef typename element::stored stored;
    return (double)element::load(((const stored *)p.grad)[row * p.grad_stride]);
}

/* ---- divisors ---- */

/* Each part is a block's. Sums of whole numbers have no order. */
EDDY_SCALAR void count_labels(const eddy_cuda_label_loss &p) {
    EDDY_CUDA_SHARED(int64_t, counts, threads);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t parts = p.divisor.count;
    EDDY_CUDA_ROLLED
    for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
        int64_t count = 0;
        EDDY_CUDA_UNROLLED
        for (int64_t r = part * threads + threadIdx.x; r < p.rows; r += parts * threads)
            count += !label(p, r).is_ignored;
        counts[threadIdx.x] = count;
        __syncthreads();
        EDDY_CUDA_ROLLED
        for (uint32_t half = threads / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                counts[threadIdx.x] += counts[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            p.divisors[part] = (double)counts[0];
        __syncthreads();
    }
}

/* Weights are added in the order of the rows, which only one thread can do; the others fetch them. Nothing is -0, which changes no sum. */
template <class element> EDDY_CUDA_MEMBER void add_weights(const eddy_cuda_label_loss &p) {
    constexpr int fetched = 4 * threads;
    EDDY_CUDA_SHARED(double, weights, fetched);
    if (eddy_cuda_is_skipped(p.gate) || blockIdx.x > 0)
        return;
    double sum = 0;
    EDDY_CUDA_ROLLED
    for (int64_t first = 0; first < p.rows; first += fetched) {
        for (int k = (int)threadIdx.x; k < fetched; k += threads) {
            const int64_t r = first + k;
            weights[k] = -0.0;
            if (r < p.rows && label(p, r).counts())
                weights[k] = weight_of<element>(p, label(p, r).number);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            EDDY_CUDA_UNROLLED
            for (int k = 0; k < fetched; k++)
                sum += weights[k];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        p.divisors[0] = sum;
}

/* ---- the threads of a row ---- */

struct part {
    uint32_t number;        /* of the row, among those at once */
    uint32_t of_row, place; /* threads of the row, and which of them this is */
    uint32_t step, first;   /* threads from place to place, and the first one */

    EDDY_CUDA_MEMBER explicit part(const eddy_cuda_label_loss &p) {
        const uint32_t t = threadIdx.x;
        of_row = p.places * p.team;
        step = p.is_across ? p.abreast : 1;
        number = p.is_across ? t % p.abreast : t / of_row;
        place = p.is_across ? t / p.abreast : t % of_row;
        first = t - place * step;
    }
};

/* The largest element of the row, for all of its threads. Its sign does not matter if it is 0, nor which number it is if there is a NaN. */
template <class real> EDDY_CUDA_MEMBER real share_largest(const part &own, real mine) {
    EDDY_CUDA_SHARED(real, values, threads);
    values[threadIdx.x] = mine;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t half = own.of_row / 2; half > 0; half /= 2) {
        if (own.place < half) {
            const real other = values[threadIdx.x + half * own.step];
            mine = mine > other ? mine : other;
            values[threadIdx.x] = mine;
        }
        __syncthreads();
    }
    mine = values[own.first];
    __syncthreads();
    return mine;
}

EDDY_SCALAR float power(float x) {
    return eddy_exp_down_f32(x);
}
EDDY_SCALAR double power(double x) {
    return eddy_exp_down_f64(x);
}

/* A row's log-sum-exp in two parts. */
template <class element> struct row {
    typedef typename element::stored stored;
    typedef typename element::computed real;
    const stored *data;
    int64_t stride, count; /* of no elements, if the row does not count */
    real max;
    double sum;

    EDDY_CUDA_MEMBER real at(int64_t i) const {
        return element::load(data[i * stride]);
    }
    EDDY_CUDA_MEMBER row(const eddy_cuda_label_loss &p, const part &own, int64_t number,
                         int64_t count_)
        : data((const stored *)p.input + number * p.input_strides[0]), stride(p.input_strides[1]),
          count(count_), sum(0) {
        real largest = -(real)EDDY_INF_f64;
        EDDY_CUDA_UNROLLED
        for (int64_t i = own.place; i < count; i += own.of_row) {
            const real x = at(i);
            largest = x > largest ? x : largest;
        }
        max = share_largest(own, largest);
        EDDY_CUDA_ROLLED
        for (int64_t begin = 0; begin < p.classes; begin += p.team * EDDY_CUDA_ROW_CHUNK)
            add_chunks(p, own, begin);
    }
    /* A chunk by each member of the team; their sums are added in turn. */
    EDDY_CUDA_MEMBER void add_chunks(const eddy_cuda_label_loss &p, const part &own,
                                     int64_t begin) {
        EDDY_CUDA_SHARED(real, values, threads);
        const uint32_t lane = own.place % p.places;
        const int64_t own_begin = begin + own.place / p.places * EDDY_CUDA_ROW_CHUNK,
                      chunk_end = own_begin + EDDY_CUDA_ROW_CHUNK,
                      end = chunk_end < count ? chunk_end : count;
        real total = 0;
        EDDY_CUDA_UNROLLED
        for (int64_t i = own_begin + lane; i < end; i += p.places)
            total += power(at(i) - max);
        values[threadIdx.x] = total;
        __syncthreads();
        EDDY_CUDA_ROLLED
        for (uint32_t half = p.places / 2; half > 0; half /= 2) {
            if (lane < half)
                values[threadIdx.x] += values[threadIdx.x + half * own.step];
            __syncthreads();
        }
        EDDY_CUDA_ROLLED
        for (uint32_t m = 0; m < p.team && begin + m * EDDY_CUDA_ROW_CHUNK < p.classes; m++)
            sum += (double)values[own.first + m * p.places * own.step];
        __syncthreads();
    }
};

/* ---- cross_entropy ---- */

template <class element> EDDY_CUDA_MEMBER void cross_entropy(const eddy_cuda_label_loss &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    const int64_t step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < p.rows; first += step) {
        const int64_t number = first + own.number;
        const bool is_row = number < p.rows;
        const label of(p, is_row ? number : 0);
        const bool counts = is_row && of.counts();
        const row<element> x(p, own, is_row ? number : 0, counts ? p.classes : 0);
        if (!is_row || own.place > 0)
            continue;
        of.check(p, number);
        store_loss<element>(p, number,
                            counts ? eddy_log_f64(x.sum) + ((double)x.max - (double)x.at(of.number))
                                   : 0);
    }
}

/* (softmax - (class == label)) factor */
template <class element>
EDDY_CUDA_MEMBER void cross_entropy_backward(const eddy_cuda_label_loss &p) {
    typedef typename element::stored stored;
    typedef typename element::computed real;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    const double divisor = eddy_cuda_divisor_whole(p.divisor);
    const int64_t step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < p.rows; first += step) {
        const int64_t number = first + own.number;
        const bool is_row = number < p.rows;
        const label of(p, is_row ? number : 0);
        const bool counts = is_row && of.counts();
        const row<element> x(p, own, is_row ? number : 0, counts ? p.classes : 0);
        if (!is_row)
            continue;
        if (own.place == 0)
            of.check(p, number);
        const real share = (real)(1.0 / x.sum),
                   factor = (real)(grad_of<element>(p, number) / divisor);
        stored *const out = (stored *)p.out + number * p.out_strides[0];
        EDDY_CUDA_ROLLED
        for (int64_t i = own.place; i < p.classes; i += own.of_row) {
            real y = 0;
            if (counts) {
                y = power(x.at(i) - x.max) * share;
                y = (i == of.number ? y - 1 : y) * factor;
            }
            out[i * p.out_strides[1]] = element::store(y);
        }
    }
}

/* ---- nll_loss ---- */

template <class element> EDDY_CUDA_MEMBER void nll_loss(const eddy_cuda_label_loss &p) {
    typedef typename element::stored stored;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < p.rows; r += step) {
        const label of(p, r);
        of.check(p, r);
        double loss = 0;
        if (of.counts()) {
            const stored *const input = (const stored *)p.input + r * p.input_strides[0];
            loss = -(double)element::load(input[of.number * p.input_strides[1]]) *
                   weight_of<element>(p, of.number);
        }
        store_loss<element>(p, r, loss);
    }
}

template <class element> EDDY_CUDA_MEMBER void nll_loss_backward(const eddy_cuda_label_loss &p) {
    typedef typename element::stored stored;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const part own(p);
    const double divisor = eddy_cuda_divisor_whole(p.divisor);
    const int64_t step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t r = (int64_t)blockIdx.x * p.abreast + own.number; r < p.rows; r += step) {
        const label of(p, r);
        if (own.place == 0)
            of.check(p, r);
        stored *const out = (stored *)p.out + r * p.out_strides[0];
        EDDY_CUDA_ROLLED
        for (int64_t i = own.place; i < p.classes; i += own.of_row) {
            const bool is_label = i == of.number && !of.is_ignored;
            out[i * p.out_strides[1]] =
                is_label ? element::round(-grad_of<element>(p, r) *
                                          weight_of<element>(p, of.number) / divisor)
                         : (stored)0;
        }
    }
}

} // namespace

EDDY_CUDA_BLOCK_KERNEL(eddy_label_counts, eddy_cuda_label_loss) {
    count_labels(parameters);
}

#define KERNELS(name, dtype)                                                                       \
    EDDY_CUDA_BLOCK_KERNEL(eddy_label_weights_##name, eddy_cuda_label_loss) {                      \
        add_weights<eddy_cuda_loss_##name>(parameters);                                            \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_cross_entropy_##name, eddy_cuda_label_loss) {                      \
        cross_entropy<eddy_cuda_loss_##name>(parameters);                                          \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_cross_entropy_backward_##name, eddy_cuda_label_loss) {             \
        cross_entropy_backward<eddy_cuda_loss_##name>(parameters);                                 \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_nll_loss_##name, eddy_cuda_label_loss) {                                 \
        nll_loss<eddy_cuda_loss_##name>(parameters);                                               \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_nll_loss_backward_##name, eddy_cuda_label_loss) {                        \
        nll_loss_backward<eddy_cuda_loss_##name>(parameters);                                      \
    }
EDDY_CUDA_LOSS_DTYPES(KERNELS)
