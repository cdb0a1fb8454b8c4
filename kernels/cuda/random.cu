/* rand, randn, randint, bernoulli, dropout. An element's number decides from which Philox block its random number comes, and which of the block's it is. */
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/random.h>
#include <kernels/random.h>

namespace {

/* ---- what is drawn ---- */

/* An array that is indexed by what the compiler does not know would lie in memory. */
EDDY_SCALAR uint32_t word_of(const uint32_t *words, int k) {
    return k < 2 ? (k == 0 ? words[0] : words[1]) : (k == 2 ? words[2] : words[3]);
}

/* `of_block`: numbers of a block. `of`: number k of the block with these words, which is that of `step`. */
template <int bits> struct uniform_numbers {
    typedef float value;
    static constexpr int of_block = 4;
    EDDY_CUDA_MEMBER explicit uniform_numbers(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value of(uint64_t, const uint32_t *words, int k) const {
        return eddy_random_uniform_f32(word_of(words, k), bits);
    }
};

struct wide_uniform_numbers {
    typedef double value;
    static constexpr int of_block = 2;
    EDDY_CUDA_MEMBER explicit wide_uniform_numbers(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value of(uint64_t, const uint32_t *words, int k) const {
        return eddy_random_uniform_f64(word_of(words, 2 * k), word_of(words, 2 * k + 1));
    }
};

/* Two neighbours are made at once; the compiler sees that. */
struct normal_numbers {
    typedef float value;
    static constexpr int of_block = 4;
    EDDY_CUDA_MEMBER explicit normal_numbers(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value of(uint64_t, const uint32_t *words, int k) const {
        float first, second;
        eddy_random_normal_f32(word_of(words, k / 2 * 2), word_of(words, k / 2 * 2 + 1), &first,
                               &second);
        return k % 2 == 0 ? first : second;
    }
};

struct wide_normal_numbers {
    typedef double value;
    static constexpr int of_block = 2;
    EDDY_CUDA_MEMBER explicit wide_normal_numbers(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value of(uint64_t, const uint32_t *words, int k) const {
        double first, second;
        eddy_random_normal_f64(words[0], words[1], words[2], words[3], &first, &second);
        return k == 0 ? first : second;
    }
};

struct whole_numbers {
    typedef int64_t value;
    static constexpr int of_block = 1;
    uint64_t seed, counter, low, range;
    EDDY_CUDA_MEMBER explicit whole_numbers(const uint64_t *attributes)
        : seed(attributes[EDDY_CUDA_RANDOM_SEED]), counter(attributes[EDDY_CUDA_RANDOM_COUNTER]),
          low(attributes[EDDY_CUDA_RANDOM_LOW]), range(attributes[EDDY_CUDA_RANDOM_RANGE]) {
    }
    EDDY_CUDA_MEMBER value of(uint64_t step, const uint32_t *words, int) const {
        return (int64_t)(low + eddy_random_below(seed, counter, range, step, words));
    }
};

/* The numbers of `lanes` neighbours; `first` is a multiple of that. */
template <class numbers, int lanes>
EDDY_CUDA_MEMBER void draw(const numbers &from, const uint64_t *attributes, int64_t first,
                           typename numbers::value *drawn) {
    constexpr int at_once = lanes < numbers::of_block ? lanes : numbers::of_block;
    for (int i = 0; i < lanes; i += at_once) {
        const uint64_t number = (uint64_t)(first + i), step = number / numbers::of_block;
        const int within =
            at_once == numbers::of_block ? 0 : (int)(number % (unsigned)numbers::of_block);
        uint32_t words[4];
        eddy_philox(attributes[EDDY_CUDA_RANDOM_SEED], attributes[EDDY_CUDA_RANDOM_COUNTER], step,
                    words);
        for (int k = 0; k < at_once; k++)
            drawn[i + k] = from.of(step, words, within + k);
    }
}

/* ---- what is made of it: op(gate, number, drawn, input) ---- */

template <class value> struct itself {
    static constexpr int lanes = 4;
    EDDY_CUDA_MEMBER explicit itself(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value operator()(const eddy_cuda_gate *, int64_t, value drawn) const {
        return drawn;
    }
};

template <class value> struct toss {
    static constexpr int lanes = 4;
    EDDY_CUDA_MEMBER explicit toss(const uint64_t *) {
    }
    EDDY_CUDA_MEMBER value operator()(const eddy_cuda_gate *gate, int64_t number, value drawn,
                                      value probability) const {
        if (!(probability >= 0 && probability <= 1))
            eddy_cuda_fail(*gate, EDDY_INVALID_ARGUMENT, number, 0, 0);
        return (value)(drawn < probability);
    }
};

/* Kept elements are scaled up; dropped elements become 0, NaN included. */
template <class value> struct drop {
    static constexpr int lanes = 4;
    value scale;
    float least;
    EDDY_CUDA_MEMBER explicit drop(const uint64_t *attributes)
        : scale((value)eddy_f64_of_bits(attributes[EDDY_CUDA_RANDOM_SCALE])),
          least((float)eddy_f64_of_bits(attributes[EDDY_CUDA_RANDOM_LEAST])) {
    }
    EDDY_CUDA_MEMBER value operator()(const eddy_cuda_gate *, int64_t, float drawn, value x) const {
        return drawn >= least ? x * scale : (value)0;
    }
};

/* ---- the kernels ---- */

template <class op, class numbers, class output, class... inputs>
EDDY_CUDA_MEMBER void run_dense(const eddy_cuda_dense &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int lanes = eddy_cuda_lanes<op, output, inputs...>::count;
    typedef typename output::stored stored;
    const op function(p.attributes);
    const numbers from(p.attributes);
    eddy_cuda_inputs<lanes, inputs...> values;
    values.broadcast(p, 0);
    stored *const out = (stored *)p.data[sizeof...(inputs) + 1];
    const int64_t step = (int64_t)gridDim.x * blockDim.x * lanes;
    EDDY_CUDA_ROLLED
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes; at < p.count;
         at += step) {
        const bool is_whole = p.is_aligned && p.count - at >= lanes;
        const int count = p.count - at < lanes ? (int)(p.count - at) : lanes;
        if (is_whole)
            values.load_whole(p, 0, at);
        else
            values.load_some(p, 0, at, count);
        typename numbers::value drawn[lanes];
        draw<numbers, lanes>(from, p.attributes, at, drawn);
        stored results[lanes];
        for (int i = 0; i < lanes; i++)
            if (i < count)
                results[i] = output::store(values.apply(function, i, &p.gate, at + i, drawn[i]));
        if (is_whole) {
            typename eddy_cuda_words<sizeof(results)>::type words;
            memcpy(&words, results, sizeof(results));
            *(typename eddy_cuda_words<sizeof(results)>::type *)(out + at) = words;
        } else
            for (int i = 0; i < lanes; i++)
                if (i < count)
                    out[at + i] = results[i];
    }
}

/* An element a thread, in the order in which the output lies: each makes its Philox block anew, which takes less time than apart stores do. */
template <class op, class numbers, class output, class... inputs>
EDDY_CUDA_MEMBER void run_strided(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int number_at = sizeof...(inputs), out_at = number_at + 1;
    const op function(p.attributes);
    const numbers from(p.attributes);
    eddy_cuda_each_place<out_at + 1>(p, [&](const int64_t *offsets) {
        const int64_t number = eddy_cuda_number(p, number_at, offsets);
        eddy_cuda_inputs<1, inputs...> values;
        values.load_at(p, 0, offsets);
        typename numbers::value drawn[1];
        draw<numbers, 1>(from, p.attributes, number, drawn);
        *(typename output::stored *)((char *)p.data[out_at] + offsets[out_at]) =
            output::store(values.apply(function, 0, &p.gate, number, drawn[0]));
    });
}

/* Which numbers are drawn for a dtype. */
#define NUMBERS(op, name, numbers) typedef numbers op##_numbers_##name;
NUMBERS(rand, f32, uniform_numbers<EDDY_RANDOM_BITS_F32>)
NUMBERS(rand, f64, wide_uniform_numbers)
NUMBERS(rand, f16, uniform_numbers<EDDY_RANDOM_BITS_F16>)
NUMBERS(rand, bf16, uniform_numbers<EDDY_RANDOM_BITS_BF16>)
NUMBERS(randn, f32, normal_numbers)
NUMBERS(randn, f64, wide_normal_numbers)
NUMBERS(randn, f16, normal_numbers)
NUMBERS(randn, bf16, normal_numbers)
NUMBERS(randint, i8, whole_numbers)
NUMBERS(randint, i16, whole_numbers)
NUMBERS(randint, i32, whole_numbers)
NUMBERS(randint, i64, whole_numbers)
NUMBERS(bernoulli, f32, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(bernoulli, f64, wide_uniform_numbers)
NUMBERS(bernoulli, f16, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(bernoulli, bf16, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(dropout, f32, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(dropout, f64, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(dropout, f16, uniform_numbers<EDDY_DROP_BITS>)
NUMBERS(dropout, bf16, uniform_numbers<EDDY_DROP_BITS>)

template <class element> using bernoulli_op = toss<typename element::computed>;
template <class element> using dropout_op = drop<typename element::computed>;

} // namespace

#define KERNELS(stem, ...)                                                                         \
    EDDY_CUDA_KERNEL(stem##_dense, eddy_cuda_dense) {                                              \
        run_dense<__VA_ARGS__>(parameters);                                                        \
    }                                                                                              \
    EDDY_CUDA_KERNEL(stem##_strided, eddy_cuda_strided) {                                          \
        run_strided<__VA_ARGS__>(parameters);                                                      \
    }
#define FILL(op, name, dtype)                                                                      \
    KERNELS(eddy_##op##_##name, itself<op##_numbers_##name::value>, op##_numbers_##name,           \
            eddy_cuda_##name)
EDDY_CUDA_RANDOM_FILLS(FILL)
#define DECISION(op, name, dtype)                                                                  \
    KERNELS(eddy_##op##_##name, op##_op<eddy_cuda_##name>, op##_numbers_##name, eddy_cuda_##name,  \
            eddy_cuda_##name)
EDDY_CUDA_RANDOM_DECISIONS(DECISION)
