/* nonzero, masked_select. */
#include <kernels/cuda/bits.cuh>
#include <kernels/cuda/counted.cuh>
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/held.cuh>
#include <kernels/cuda/selection.h>

namespace {

struct selection : eddy_cuda_held_places {
    const eddy_cuda_selection_call &p;

    explicit EDDY_CUDA_MEMBER selection(const eddy_cuda_selection_call &of)
        : eddy_cuda_held_places{of.count, of.begins}, p(of) {
    }
    EDDY_CUDA_MEMBER bool holds(int64_t number) const {
        const char *at =
            (const char *)p.tested + eddy_cuda_offset(p.places, EDDY_CUDA_SELECTION_TESTED, number);
        return (eddy_cuda_bits(at, p.tested_bytes) & p.bits) != 0;
    }
};

struct put_indices {
    const eddy_cuda_selection_call &p;

    EDDY_CUDA_MEMBER void operator()(int64_t number, bool is_held, int64_t rank) const {
        char *row = (char *)p.out + rank * p.step;
        EDDY_CUDA_ROLLED
        for (int d = p.axes.rank - 1; d >= 0 && is_held; d--) {
            int64_t index = number;
            number = d > 0 ? eddy_cuda_divide(p.axes, d, &index) : 0;
            *(int64_t *)(row + d * p.axis_step) = index;
        }
    }
};

struct put_element {
    const eddy_cuda_selection_call &p;

    EDDY_CUDA_MEMBER void operator()(int64_t number, bool is_held, int64_t rank) const {
        if (!is_held)
            return;
        const char *from =
            (const char *)p.in + eddy_cuda_offset(p.places, EDDY_CUDA_SELECTION_IN, number);
        eddy_cuda_bits_put((char *)p.out + rank * p.step, p.element_bytes,
                           eddy_cuda_bits(from, p.element_bytes));
    }
};

} // namespace

EDDY_CUDA_BLOCK_KERNEL(eddy_selection_count, eddy_cuda_selection_call) {
    if (eddy_cuda_is_skipped(parameters.gate))
        return;
    eddy_cuda_held_count(selection(parameters));
}

/* One block of threads. */
EDDY_CUDA_BLOCK_KERNEL(eddy_selection_begin, eddy_cuda_selection_call) {
    if (eddy_cuda_is_skipped(parameters.gate))
        return;
    const int64_t all = eddy_cuda_held_begin(selection(parameters));
    if (threadIdx.x == 0)
        eddy_cuda_say_counted(parameters.gate, all);
}

EDDY_CUDA_BLOCK_KERNEL(eddy_selection_indices, eddy_cuda_selection_call) {
    if (eddy_cuda_is_skipped(parameters.gate))
        return;
    eddy_cuda_held_each(selection(parameters), put_indices{parameters});
}

EDDY_CUDA_BLOCK_KERNEL(eddy_selection_elements, eddy_cuda_selection_call) {
    if (eddy_cuda_is_skipped(parameters.gate))
        return;
    eddy_cuda_held_each(selection(parameters), put_element{parameters});
}
