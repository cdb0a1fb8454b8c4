/* The words of a kernel that is made of elementwise ops one after another, while the process runs. fusion_text.c writes the struct `fusion`, whose ops are those of functional/cuda_words.c:
 *
 *     struct fusion {
 *         static constexpr int lanes = eddy_cuda_least(relu_f32::lanes, mul_f32::lanes);
 *         typedef eddy_cuda_pack<eddy_cuda_f32, eddy_cuda_f32> inputs;
 *         typedef eddy_cuda_pack<eddy_cuda_f32> outputs;
 *         const relu_f32 op0;
 *         const mul_f32 op1;
 *         explicit fusion(const uint64_t *attributes) : op0(attributes + 0), op1(attributes + 0) {}
 *         void operator()(eddy_cuda_f32::stored &y0, eddy_cuda_f32::stored x0, eddy_cuda_f32::stored x1) const {
 *             const auto s0 = eddy_cuda_step<eddy_cuda_f32, eddy_cuda_f32>::run(op0, x0);
 *             y0 = eddy_cuda_step<eddy_cuda_f32, eddy_cuda_f32, eddy_cuda_f32>::run(op1, s0, x1);
 *         }
 *     };
 *     EDDY_CUDA_FUSION
 *
 * What one op gives the next one has as if it had been stored and loaded, so that each has the bits of a call of its own. This text, behind the attributes of
 * all ops and with all that it includes (flatten.py), is a part of the plug-in. NVRTC compiles it, and the compiler of the tests. */
#ifndef EDDY_KERNELS_CUDA_FUSION_CUH
#define EDDY_KERNELS_CUDA_FUSION_CUH

#include <kernels/cuda/cast.cuh>

/* ---- steps ---- */

template <class... elements> struct eddy_cuda_pack {};

constexpr int eddy_cuda_least(int a) {
    return a;
}
template <class... rest> constexpr int eddy_cuda_least(int a, int b, rest... others) {
    return eddy_cuda_least(a < b ? a : b, others...);
}

/* What only moves elements has one op for all dtypes of a width. */
template <class to, class from> EDDY_CUDA_MEMBER to eddy_cuda_same_bits(from x) {
    static_assert(sizeof(to) == sizeof(from), "of one width");
    to same;
    memcpy(&same, &x, sizeof(same));
    return same;
}

template <class output, class... inputs> struct eddy_cuda_step {
    template <class op, class... values>
    static EDDY_CUDA_MEMBER typename output::stored run(const op &function, values... x) {
        return output::store(
            function(inputs::load(eddy_cuda_same_bits<typename inputs::stored>(x))...));
    }
};

/* ---- outputs: `lanes` neighbouring elements of each ---- */

template <int lanes, class... outputs> struct eddy_cuda_outputs {
    template <class fusion, class inputs, class... results>
    EDDY_CUDA_MEMBER void apply(const fusion &function, const inputs &values, int i,
                                results &...given) {
        values.apply([&](auto... x) { function(given..., x...); }, i);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_whole(const parameters &, int, int64_t) const {
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_some(const parameters &, int, int64_t, int) const {
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_at(const parameters &, int, const int64_t *) const {
    }
};

template <int lanes, class output, class... others>
struct eddy_cuda_outputs<lanes, output, others...> {
    typedef typename output::stored stored;
    stored lane[lanes];
    eddy_cuda_outputs<lanes, others...> rest;

    template <class fusion, class inputs, class... results>
    EDDY_CUDA_MEMBER void apply(const fusion &function, const inputs &values, int i,
                                results &...given) {
        rest.apply(function, values, i, given..., lane[i]);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_whole(const parameters &p, int number, int64_t at) const {
        typedef typename eddy_cuda_words<sizeof(lane)>::type words_type;
        words_type words;
        memcpy(&words, lane, sizeof(words));
        *(words_type *)((stored *)p.data[number] + at) = words;
        rest.store_whole(p, number + 1, at);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_some(const parameters &p, int number, int64_t at, int count) const {
        for (int i = 0; i < lanes; i++)
            if (i < count)
                ((stored *)p.data[number])[at + i] = lane[i];
        rest.store_some(p, number + 1, at, count);
    }
    template <class parameters>
    EDDY_CUDA_MEMBER void store_at(const parameters &p, int number, const int64_t *offsets) const {
        *(stored *)((char *)p.data[number] + offsets[number]) = lane[0];
        rest.store_at(p, number + 1, offsets);
    }
};

/* ---- the kernels ---- */

template <class fusion, class... inputs, class... outputs>
EDDY_CUDA_MEMBER void eddy_cuda_run_fusion(const eddy_cuda_fusion_dense &p,
                                           eddy_cuda_pack<inputs...>, eddy_cuda_pack<outputs...>) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int lanes = eddy_cuda_lanes<fusion, inputs..., outputs...>::count;
    constexpr int first_output = sizeof...(inputs);
    const fusion function(p.attributes);
    eddy_cuda_inputs<lanes, eddy_cuda_as_stored<inputs>...> values;
    eddy_cuda_outputs<lanes, outputs...> results;
    values.broadcast(p, 0);
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
        for (int i = 0; i < lanes; i++)
            results.apply(function, values, i);
        if (is_whole)
            results.store_whole(p, first_output, at);
        else
            results.store_some(p, first_output, at, count);
    }
}

template <class fusion, class... inputs, class... outputs>
EDDY_CUDA_MEMBER void eddy_cuda_run_fusion(const eddy_cuda_fusion_strided &p,
                                           eddy_cuda_pack<inputs...>, eddy_cuda_pack<outputs...>) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int first_output = sizeof...(inputs);
    const fusion function(p.attributes);
    eddy_cuda_each_place<first_output + (int)sizeof...(outputs)>(p, [&](const int64_t *offsets) {
        eddy_cuda_inputs<1, eddy_cuda_as_stored<inputs>...> values;
        eddy_cuda_outputs<1, outputs...> results;
        values.load_at(p, 0, offsets);
        results.apply(function, values, 0);
        results.store_at(p, first_output, offsets);
    });
}

/* Both kernels of the struct `fusion`. Who compiles them for the host may note what they touch (tests/fake_cuda/kernels/grid.h). */
#ifndef EDDY_CUDA_NOTE_FUSION
#define EDDY_CUDA_NOTE_FUSION
#endif
#define EDDY_CUDA_FUSION                                                                           \
    EDDY_CUDA_NOTE_FUSION                                                                          \
    EDDY_CUDA_KERNEL(eddy_fusion_dense, eddy_cuda_fusion_dense) {                                  \
        eddy_cuda_run_fusion<fusion>(parameters, fusion::inputs(), fusion::outputs());             \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_fusion_strided, eddy_cuda_fusion_strided) {                              \
        eddy_cuda_run_fusion<fusion>(parameters, fusion::inputs(), fusion::outputs());             \
    }

#endif
