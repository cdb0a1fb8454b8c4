/* The two kernels of an elementwise op: contiguous operands, and any strides. The op is a struct that is made of the attributes and called
 * with an element of each input (functional/generate/cuda.py). */
#ifndef EDDY_KERNELS_CUDA_ELEMENTWISE_CUH
#define EDDY_KERNELS_CUDA_ELEMENTWISE_CUH

#include <base/bf16.h>
#include <kernels/angle.h>
#include <kernels/cpu/half.h>
#include <kernels/cuda/strided.cuh>
#include <kernels/gauss.h>
#include <kernels/math.h>
#include <kernels/power.h>
#include <kernels/scalar.h>
#include <kernels/scalar_functions.h>

/* ---- elements: how they lie in memory, and the type in which they are computed ---- */

#define EDDY_CUDA_ELEMENT(tag, stored_type, computed_type, load_expression, store_expression)      \
    struct eddy_cuda_##tag {                                                                       \
        typedef stored_type stored;                                                                \
        typedef computed_type computed;                                                            \
        static EDDY_CUDA_MEMBER computed load(stored x) {                                          \
            return load_expression;                                                                \
        }                                                                                          \
        static EDDY_CUDA_MEMBER stored store(computed x) {                                         \
            return store_expression;                                                               \
        }                                                                                          \
    };
EDDY_CUDA_ELEMENT(f32, float, float, x, x)
EDDY_CUDA_ELEMENT(f64, double, double, x, x)
EDDY_CUDA_ELEMENT(f16, uint16_t, float, eddy_half_load(x), eddy_half_store(x))
EDDY_CUDA_ELEMENT(bf16, uint16_t, float, eddy_bf16_to_f32(x), eddy_f32_to_bf16(x))
EDDY_CUDA_ELEMENT(i8, int8_t, int8_t, x, x)
EDDY_CUDA_ELEMENT(u8, uint8_t, uint8_t, x, x)
EDDY_CUDA_ELEMENT(i16, int16_t, int16_t, x, x)
EDDY_CUDA_ELEMENT(i32, int32_t, int32_t, x, x)
EDDY_CUDA_ELEMENT(i64, int64_t, int64_t, x, x)
EDDY_CUDA_ELEMENT(truth, uint8_t, bool, x != 0, x)
#undef EDDY_CUDA_ELEMENT

/* What is read or written at once. */
template <int bytes> struct eddy_cuda_words { typedef uint4 type; };
template <> struct eddy_cuda_words<8> { typedef uint2 type; };
template <> struct eddy_cuda_words<4> { typedef uint32_t type; };
template <> struct eddy_cuda_words<2> { typedef uint16_t type; };
template <> struct eddy_cuda_words<1> { typedef uint8_t type; };

#define EDDY_CUDA_VECTOR_BYTES 16

/* Elements that a thread computes at once: as many as a vector has of the largest elements, and as many as the op allows. */
template <class op, class... elements> struct eddy_cuda_lanes {
    static constexpr int of(int most) {
        return most;
    }
    template <class... rest> static constexpr int of(int most, int bytes, rest... others) {
        return of(most * bytes > EDDY_CUDA_VECTOR_BYTES ? EDDY_CUDA_VECTOR_BYTES / bytes : most,
                  others...);
    }
    static constexpr int count = of(op::lanes, (int)sizeof(typename elements::stored)...);
};

/* ---- inputs: `lanes` neighbouring elements of each ---- */

template <int lanes, class... inputs> struct eddy_cuda_inputs {
    template <class parameters> EDDY_CUDA_MEMBER void broadcast(const parameters &, int) {
    }
    template <class parameters> EDDY_CUDA_MEMBER void load_whole(const parameters &, int, int64_t) {
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void load_some(const parameters &, int, int64_t, int) {
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void load_at(const parameters &, int, const int64_t *) {
    }
    template <class op, class... values>
    EDDY_CUDA_MEMBER auto apply(const op &function, int, values... given) const {
        return function(given...);
    }
};

template <int lanes, class input, class... others>
struct eddy_cuda_inputs<lanes, input, others...> {
    typedef typename input::stored stored;
    typename input::computed lane[lanes];
    eddy_cuda_inputs<lanes, others...> rest;

    template <class parameters>
    static EDDY_CUDA_MEMBER bool is_broadcast(const parameters &p, int number) {
        return p.broadcast >> number & 1;
    }
    /* Those that are one element for all, once. */
    template <class parameters> EDDY_CUDA_MEMBER void broadcast(const parameters &p, int number) {
        const typename input::computed value =
            is_broadcast(p, number) ? input::load(*(const stored *)p.data[number]) : 0;
        for (int i = 0; i < lanes; i++)
            lane[i] = value;
        rest.broadcast(p, number + 1);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void load_whole(const parameters &p, int number, int64_t at) {
        if (!is_broadcast(p, number)) {
            stored elements[lanes];
            const typename eddy_cuda_words<sizeof(elements)>::type words =
                *(const typename eddy_cuda_words<sizeof(elements)>::type *)((const stored *)
                                                                                p.data[number] +
                                                                            at);
            memcpy(elements, &words, sizeof(elements));
            for (int i = 0; i < lanes; i++)
                lane[i] = input::load(elements[i]);
        }
        rest.load_whole(p, number + 1, at);
    }
    /* The last of fewer elements takes the lanes that are left. */
    template <class parameters>
    EDDY_CUDA_MEMBER void load_some(const parameters &p, int number, int64_t at, int count) {
        if (!is_broadcast(p, number))
            for (int i = 0; i < lanes; i++)
                lane[i] =
                    input::load(((const stored *)p.data[number])[at + (i < count ? i : count - 1)]);
        rest.load_some(p, number + 1, at, count);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void load_at(const parameters &p, int number, const int64_t *offsets) {
        lane[0] = input::load(*(const stored *)((const char *)p.data[number] + offsets[number]));
        rest.load_at(p, number + 1, offsets);
    }
    template <class op, class... values>
    EDDY_CUDA_MEMBER auto apply(const op &function, int i, values... given) const {
        return rest.apply(function, i, given..., lane[i]);
    }
};

/* ---- the kernels ---- */

template <class op, class output, class... inputs>
EDDY_CUDA_MEMBER void eddy_cuda_run_dense(const eddy_cuda_dense &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int lanes = eddy_cuda_lanes<op, output, inputs...>::count;
    typedef typename output::stored stored;
    const op function(p.attributes);
    eddy_cuda_inputs<lanes, inputs...> values;
    values.broadcast(p, 0);
    stored *const out = (stored *)p.data[sizeof...(inputs)];
    const int64_t step = (int64_t)gridDim.x * blockDim.x * lanes;
    EDDY_CUDA_ROLLED
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes; at < p.count;
         at += step) {
        const bool is_whole = lanes == 1 || (p.is_aligned && p.count - at >= lanes);
        const int count = p.count - at < lanes ? (int)(p.count - at) : lanes;
        if (is_whole)
            values.load_whole(p, 0, at);
        else
            values.load_some(p, 0, at, count);
        stored results[lanes];
        for (int i = 0; i < lanes; i++)
            results[i] = output::store(values.apply(function, i));
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

template <class op, class output, class... inputs>
EDDY_CUDA_MEMBER void eddy_cuda_run_strided(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int operands = sizeof...(inputs) + 1;
    const op function(p.attributes);
    eddy_cuda_each_place<operands>(p, [&](const int64_t *offsets) {
        eddy_cuda_inputs<1, inputs...> values;
        values.load_at(p, 0, offsets);
        *(typename output::stored *)((char *)p.data[operands - 1] + offsets[operands - 1]) =
            output::store(values.apply(function, 0));
    });
}

/* EDDY_CUDA_ELEMENTWISE(stem, op, output, inputs...): both kernels, <stem>_dense and <stem>_strided. Who compiles them for the host may
 * note the elements of either (tests/fake_cuda/kernels/grid.h). */
#ifndef EDDY_CUDA_NOTE_ELEMENTS
#define EDDY_CUDA_NOTE_ELEMENTS(name, ...)
#endif
#define EDDY_CUDA_ELEMENTWISE(stem, ...)                                                           \
    EDDY_CUDA_NOTE_ELEMENTS(stem##_dense, __VA_ARGS__)                                             \
    EDDY_CUDA_NOTE_ELEMENTS(stem##_strided, __VA_ARGS__)                                           \
    EDDY_CUDA_KERNEL(stem##_dense, eddy_cuda_dense) {                                              \
        eddy_cuda_run_dense<__VA_ARGS__>(parameters);                                              \
    }                                                                                              \
    EDDY_CUDA_KERNEL(stem##_strided, eddy_cuda_strided) {                                          \
        eddy_cuda_run_strided<__VA_ARGS__>(parameters);                                            \
    }

#endif
