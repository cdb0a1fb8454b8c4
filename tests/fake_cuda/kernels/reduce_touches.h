/* What a reduction's kernels touch (kernels/cuda/reduce.cuh), for the fake driver. C++. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_REDUCE_TOUCHES_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_REDUCE_TOUCHES_H

#include <kernels/cuda/reduce.h>
#include <stddef.h>

typedef void eddy_grid_touch(void *context, const void *begin, size_t bytes, int is_write);

/* From the least to the greatest byte that dims reach. */
struct eddy_grid_span {
    const char *begin, *end;

    eddy_grid_span(const void *data, size_t element_bytes)
        : begin((const char *)data), end(begin + element_bytes) {
    }
    void reach(const eddy_cuda_dims &dims, int operand) {
        for (int d = 0; d < dims.rank; d++) {
            const int64_t bytes = (dims.sizes[d] - 1) * dims.strides[operand][d];
            (bytes < 0 ? begin : end) += bytes;
        }
    }
    void say(eddy_grid_touch *touch, void *context, bool is_write) const {
        touch(context, begin, (size_t)(end - begin), is_write);
    }
};

template <class op>
void eddy_grid_reduce_touches(const eddy_cuda_reduce &p, bool joins, eddy_grid_touch *touch,
                              void *context) {
    if (p.splits > 1)
        touch(context, p.partials, (size_t)(p.outputs * p.splits) * sizeof(typename op::value),
              true);
    if (joins || p.splits == 1) {
        eddy_grid_span out(p.out, sizeof(typename op::result));
        out.reach(p.kept, 1);
        out.say(touch, context, true);
        if (p.best) {
            eddy_grid_span best(p.best, sizeof(typename op::element::stored));
            best.reach(p.kept, 2);
            best.say(touch, context, true);
        }
    }
    if (!joins && p.count > 0) {
        eddy_grid_span in(p.in, sizeof(typename op::element::stored));
        in.reach(p.kept, 0);
        in.reach(p.reduced, 0);
        in.say(touch, context, false);
    }
}

#define EDDY_CUDA_NOTE_REDUCTION(name, form, ...)                                                  \
    extern "C" void name##_touches(const void *parameters, eddy_grid_touch *touch,                 \
                                   void *context) {                                                \
        eddy_grid_reduce_touches<__VA_ARGS__>(*(const eddy_cuda_reduce *)parameters,               \
                                              #form[0] == 'j', touch, context);                    \
    }

#endif
