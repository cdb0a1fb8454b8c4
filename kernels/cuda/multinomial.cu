#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/multinomial.h>
#include <kernels/math.h>
#include <kernels/random.h>

namespace {

/* 53 bits of block `number`, in [0, 1). */
EDDY_SCALAR double uniform(const eddy_cuda_multinomial_call &p, int64_t number) {
    uint32_t words[4];
    eddy_philox(p.seed, p.counter, (uint64_t)number, words);
    return eddy_random_uniform_f64(words[0], words[1]);
}

EDDY_SCALAR int64_t *out_at(const eddy_cuda_multinomial_call &p, int64_t row, int64_t draw) {
    return (int64_t *)((char *)p.out + row * p.row_stride + draw * p.draw_stride);
}

EDDY_SCALAR void refuse(const eddy_cuda_multinomial_call &p, int64_t row) {
    eddy_cuda_fail(p.gate, EDDY_INVALID_ARGUMENT, row, 0, 0);
}

/* ---- with replacement ---- */

/* What a thread has seen of a row. */
struct summing {
    double sum;
    int64_t last;
    bool has_negative;

    /* Adds up `count` weights in place, of the classes from `first` on. */
    EDDY_CUDA_MEMBER void add_up(double *weights, int64_t first, int count) {
        EDDY_CUDA_UNROLLED
        for (int i = 0; i < count; i++) {
            const double weight = weights[i];
            has_negative |= weight < 0;
            last = weight > 0 ? first + i : last;
            sum += weight;
            weights[i] = sum;
        }
    }
    /* An infinite weight or a NaN makes the sum infinite or NaN. */
    EDDY_CUDA_MEMBER bool is_distribution() const {
        return !has_negative && sum > 0 && sum < EDDY_INF_f64;
    }
};

/* The first class whose running sum is above `at`, or the last class. */
EDDY_SCALAR int64_t search(const double *sums, int64_t last, double at) {
    int64_t low = 0, left = last; /* the class is among low .. low + left */
    EDDY_CUDA_ROLLED
    while (left > 0) {
        const int64_t half = (left + 1) / 2;
        low += sums[low + half - 1] > at ? 0 : half;
        left -= half;
    }
    return low;
}

} // namespace

/* All threads load and store, one for each row adds. Rows lie one word further apart than they are long, so that these threads use different banks. */
EDDY_CUDA_BLOCK_KERNEL(eddy_multinomial_sum, eddy_cuda_multinomial_call) {
    const eddy_cuda_multinomial_call &p = parameters;
    EDDY_CUDA_SHARED(double, part, EDDY_CUDA_MULTINOMIAL_PIECE + EDDY_CUDA_MULTINOMIAL_ABREAST);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int piece = EDDY_CUDA_MULTINOMIAL_PIECE / (int)p.abreast;
    const int64_t step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < p.rows; first += step) {
        const int rows = p.rows - first < p.abreast ? (int)(p.rows - first) : (int)p.abreast,
                  own = threadIdx.x;
        summing row = {0, 0, false};
        EDDY_CUDA_ROLLED
        for (int64_t c = 0; c < p.classes; c += piece) {
            const int count = p.classes - c < piece ? (int)(p.classes - c) : piece;
            for (int i = threadIdx.x; i < rows * piece; i += blockDim.x)
                if (i % piece < count)
                    part[i + i / piece] =
                        p.weights[(first + i / piece) * p.classes + c + i % piece];
            __syncthreads();
            if (own < rows)
                row.add_up(part + own * (piece + 1), c, count);
            __syncthreads();
            for (int i = threadIdx.x; i < rows * piece; i += blockDim.x)
                if (i % piece < count)
                    p.weights[(first + i / piece) * p.classes + c + i % piece] =
                        part[i + i / piece];
            __syncthreads();
        }
        if (own < rows) {
            if (!row.is_distribution())
                refuse(p, first + own);
            p.totals[first + own] = {row.sum, row.is_distribution() ? row.last : -1};
        }
    }
}

EDDY_CUDA_KERNEL(eddy_multinomial_search, eddy_cuda_multinomial_call) {
    const eddy_cuda_multinomial_call &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.rows * p.draws;
         i += step) {
        const int64_t row = i / p.draws;
        const eddy_cuda_total total = p.totals[row];
        if (total.last >= 0)
            *out_at(p, row, i % p.draws) =
                search(p.weights + row * p.classes, total.last, uniform(p, i) * total.sum);
    }
}

/* ---- without replacement ---- */

/* log(1) is 0, of which the negative is -0: a sum with 0 has the bits of 0. */
EDDY_CUDA_KERNEL(eddy_multinomial_keys, eddy_cuda_multinomial_call) {
    const eddy_cuda_multinomial_call &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.rows * p.classes;
         i += step) {
        const double weight = p.weights[i];
        uint64_t key = EDDY_CUDA_CANDIDATE_NONE;
        if (!(weight >= 0 && weight < EDDY_INF_f64))
            refuse(p, i / p.classes);
        else if (weight > 0)
            key = eddy_bits_of_f64(-eddy_log_f64(1 - uniform(p, i)) / weight + 0.0);
        p.weights[i] = eddy_f64_of_bits(key);
    }
}

namespace {

constexpr int digits_of_key = 8, digits = 16, digit_values = 256;

/* Digit number `level` of a candidate, from the highest of the key on; those of the index come behind. */
EDDY_SCALAR int digit_of(const eddy_cuda_candidate &of, int level) {
    const uint64_t word = level < digits_of_key ? of.key : (uint64_t)of.index;
    return (int)(word >> (56 - 8 * (level % digits_of_key)) & (digit_values - 1));
}

/* Bits below digit `level` of its word; of 64 bits there are none to shift by. */
EDDY_SCALAR uint64_t below_digit(int level) {
    return ~(uint64_t)0 >> 8 >> 8 * (level % digits_of_key);
}

/* Whether the digits ahead of `level` are those of the bound. */
EDDY_SCALAR bool begins_as(const eddy_cuda_candidate &of, const eddy_cuda_candidate &bound,
                           int level) {
    if (level < digits_of_key)
        return level == 0 || (of.key ^ bound.key) >> (64 - 8 * level) == 0;
    const int within = level - digits_of_key;
    return of.key == bound.key &&
           (within == 0 || (uint64_t)(of.index ^ bound.index) >> (64 - 8 * within) == 0);
}

EDDY_SCALAR bool comes_before(const eddy_cuda_candidate &a, const eddy_cuda_candidate &b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/* What all threads of a block know of the search for the bound. */
struct bound_search {
    eddy_cuda_candidate bound;
    int64_t wanted; /* of the candidates that begin as the bound does */
    bool is_done;
};

/* The thread that calls it sets the digit of the bound: that among whose candidates is the last wanted one. If all of them are wanted, later digits do not matter. */
EDDY_SCALAR void set_digit(bound_search *found, int level, const unsigned long long *counts) {
    int digit = 0;
    EDDY_CUDA_ROLLED
    while (digit < digit_values - 1 && found->wanted > (int64_t)counts[digit])
        found->wanted -= (int64_t)counts[digit++];
    found->is_done = found->wanted == (int64_t)counts[digit];
    const uint64_t bits = (uint64_t)digit << (56 - 8 * (level % digits_of_key)) |
                          (found->is_done ? below_digit(level) : 0);
    if (level < digits_of_key) {
        found->bound.key |= bits;
        found->bound.index = found->is_done ? INT64_MAX : 0;
    } else
        found->bound.index |= (int64_t)bits;
}

/* The last of the `wanted` first candidates of a row, or what comes between it and the next one. The keys are the row's. */
EDDY_SCALAR eddy_cuda_candidate find_bound(const uint64_t *keys, int64_t classes, int64_t wanted) {
    EDDY_CUDA_SHARED(unsigned long long, counts, digit_values);
    EDDY_CUDA_SHARED(bound_search, found, 1);
    if (threadIdx.x == 0)
        found[0] = {{0, 0}, wanted, false};
    EDDY_CUDA_ROLLED
    for (int level = 0; level < digits; level++) {
        for (int i = threadIdx.x; i < digit_values; i += blockDim.x)
            counts[i] = 0;
        __syncthreads();
        const eddy_cuda_candidate bound = found[0].bound;
        EDDY_CUDA_UNROLLED
        for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
            const eddy_cuda_candidate one = {keys[c], c};
            if (begins_as(one, bound, level))
                atomicAdd(&counts[digit_of(one, level)], 1ull);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            set_digit(&found[0], level, counts);
        __syncthreads();
        if (found[0].is_done)
            break;
    }
    return found[0].bound;
}

/* Those up to the bound, in any order. */
EDDY_SCALAR void collect(const uint64_t *keys, int64_t classes, eddy_cuda_candidate bound,
                         eddy_cuda_candidate *chosen) {
    EDDY_CUDA_SHARED(unsigned long long, count, 1);
    if (threadIdx.x == 0)
        count[0] = 0;
    __syncthreads();
    EDDY_CUDA_UNROLLED
    for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
        const eddy_cuda_candidate one = {keys[c], c};
        if (!comes_before(bound, one))
            chosen[atomicAdd(count, 1ull)] = one;
    }
    __syncthreads();
}

/* Exchanges two if they are not in order. */
EDDY_SCALAR void put_in_order(eddy_cuda_candidate *chosen, int64_t count, int64_t low,
                              int64_t high) {
    if (high >= count)
        return;
    const eddy_cuda_candidate a = chosen[low], b = chosen[high];
    if (comes_before(b, a)) {
        chosen[low] = b;
        chosen[high] = a;
    }
}

/* K. Batcher's bitonic network (1968), in the form in which each comparison leaves the smaller one at the lower place: whatever is beyond the end is the largest, and
 * stays there. */
EDDY_SCALAR void sort(eddy_cuda_candidate *chosen, int64_t count) {
    EDDY_CUDA_ROLLED
    for (int64_t run = 2; run < 2 * count; run *= 2) {
        EDDY_CUDA_ROLLED
        for (int64_t i = threadIdx.x; i < (count + run - 1) / run * (run / 2); i += blockDim.x) {
            const int64_t within = i % (run / 2), begin = i / (run / 2) * run;
            put_in_order(chosen, count, begin + within, begin + run - 1 - within);
        }
        __syncthreads();
        EDDY_CUDA_ROLLED
        for (int64_t apart = run / 4; apart > 0; apart /= 2) {
            EDDY_CUDA_ROLLED
            for (int64_t i = threadIdx.x; i < (count + 2 * apart - 1) / (2 * apart) * apart;
                 i += blockDim.x) {
                const int64_t low = i / apart * (2 * apart) + i % apart;
                put_in_order(chosen, count, low, low + apart);
            }
            __syncthreads();
        }
    }
}

} // namespace

/* A block of threads has a row. */
EDDY_CUDA_BLOCK_KERNEL(eddy_multinomial_choose, eddy_cuda_multinomial_call) {
    const eddy_cuda_multinomial_call &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    EDDY_CUDA_ROLLED
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const uint64_t *keys = (const uint64_t *)p.weights + row * p.classes;
        eddy_cuda_candidate *chosen = p.chosen + row * p.draws;
        collect(keys, p.classes, find_bound(keys, p.classes, p.draws), chosen);
        sort(chosen, p.draws);
        if (threadIdx.x == 0 && chosen[p.draws - 1].key == EDDY_CUDA_CANDIDATE_NONE)
            refuse(p, row);
        for (int64_t d = threadIdx.x; d < p.draws; d += blockDim.x)
            *out_at(p, row, d) = chosen[d].index;
        __syncthreads();
    }
}
