/* What is touched of lines along an axis (kernels/cuda/lines.h). C++. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_LINES_TOUCHES_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_LINES_TOUCHES_H

#include <kernels/cuda/lines.h>
#include <tests/fake_cuda/kernels/touches.h>

/* All lines of an operand, from the least to the greatest byte. */
static inline void touch_lines(const eddy_cuda_lines &lines, int operand, const void *data,
                               int64_t bytes, bool is_write, touch_fn *say, void *context) {
    range all = {0, bytes};
    all.reach(lines.count - 1, lines.strides[operand]);
    for (int d = 0; d < lines.dims.rank; d++)
        all.reach(lines.dims.sizes[d] - 1, lines.dims.strides[operand][d]);
    all.touch(say, context, data, is_write);
}

#endif
