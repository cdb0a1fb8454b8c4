/* Triangles of matrices: elements stay, or are 0. Operands: the input, the number of the diagonal, the output. */
#include <kernels/cuda/strided.cuh>

namespace {

template <class element> EDDY_CUDA_MEMBER void triangle(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t least = (int64_t)p.attributes[0], most = (int64_t)p.attributes[1];
    eddy_cuda_each_place<3>(p, [&](const int64_t *offsets) {
        const int64_t diagonal = eddy_cuda_number(p, 1, offsets);
        const element *from = (const element *)((const char *)p.data[0] + offsets[0]);
        element *to = (element *)((char *)p.data[2] + offsets[2]);
        *to = diagonal >= least && diagonal <= most ? *from : 0;
    });
}

} // namespace

#define TRIANGLE(bits)                                                                             \
    EDDY_CUDA_KERNEL(eddy_triangle_##bits, eddy_cuda_strided) {                                    \
        triangle<int##bits##_t>(parameters);                                                       \
    }
TRIANGLE(8)
TRIANGLE(16)
TRIANGLE(32)
TRIANGLE(64)
