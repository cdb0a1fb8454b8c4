/* What the kernels of a fusion touch (kernels/cuda/fusion.cuh). C++; before the text of one. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_FUSION_TOUCHES_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_FUSION_TOUCHES_H

#include <kernels/cuda/parameters.h>
#include <tests/fake_cuda/kernels/touches.h>

/* Bytes of an element of each operand. */
template <class... elements> struct eddy_grid_element_bytes {
    int64_t of[sizeof...(elements) + 1] = {(int64_t)sizeof(typename elements::stored)..., 0};
};

inline range eddy_grid_reach(const eddy_cuda_fusion_dense &p, int operand, int64_t bytes) {
    return {0, (p.broadcast >> operand & 1 ? 1 : p.count) * bytes};
}

inline range eddy_grid_reach(const eddy_cuda_fusion_strided &p, int operand, int64_t bytes) {
    range all = {0, bytes};
    int64_t inner = 1;
    for (int d = p.rank - 1; d >= 0; d--) {
        /* By the outermost nobody divides. */
        const int64_t last = d > 0 ? p.dims[d].divisor - 1 : (p.count + inner - 1) / inner - 1;
        all.reach(last, p.strides[operand][d]);
        inner *= p.dims[d].divisor;
    }
    return all;
}

template <class parameters, template <class...> class pack, class... inputs, class... outputs>
void eddy_grid_touch_fusion(const parameters &p, pack<inputs...>, pack<outputs...>, touch_fn *say,
                            void *context) {
    constexpr int first_output = sizeof...(inputs);
    const eddy_grid_element_bytes<inputs..., outputs...> bytes;
    for (int k = 0; k < first_output + (int)sizeof...(outputs); k++)
        if (p.count > 0)
            eddy_grid_reach(p, k, bytes.of[k]).touch(say, context, p.data[k], k >= first_output);
}

#define EDDY_CUDA_NOTE_FUSION                                                                      \
    extern "C" {                                                                                   \
    void eddy_fusion_dense_touches(const void *p, touch_fn *say, void *context) {                  \
        eddy_grid_touch_fusion(*(const eddy_cuda_fusion_dense *)p, fusion::inputs(),               \
                               fusion::outputs(), say, context);                                   \
    }                                                                                              \
    void eddy_fusion_strided_touches(const void *p, touch_fn *say, void *context) {                \
        eddy_grid_touch_fusion(*(const eddy_cuda_fusion_strided *)p, fusion::inputs(),             \
                               fusion::outputs(), say, context);                                   \
    }                                                                                              \
    }

#endif
