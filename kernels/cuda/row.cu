/* list_get and list_set: the row of a list whose number was computed. */
#include <kernels/cuda/device.cuh>
#include <kernels/cuda/row.h>

namespace {

template <class element> EDDY_CUDA_MEMBER void get(const eddy_cuda_row &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x, number = *p.number;
    const bool is_there = number >= 0 && number < p.rows;
    const char *from = (const char *)p.list + (is_there ? number : 0) * p.list_strides[0];
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.columns; i += step)
        *(element *)((char *)p.row + i * p.stride) =
            is_there ? *(const element *)(from + i * p.list_strides[1]) : (element)0;
}

template <class element> EDDY_CUDA_MEMBER void set(const eddy_cuda_row &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x, number = *p.number;
    if (number < 0 || number >= p.rows)
        return;
    char *to = (char *)p.list + number * p.list_strides[0];
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.columns; i += step)
        *(element *)(to + i * p.list_strides[1]) =
            *(const element *)((const char *)p.row + i * p.stride);
}

} // namespace

#define ROW(bits)                                                                                  \
    EDDY_CUDA_KERNEL(eddy_row_get_##bits, eddy_cuda_row) {                                         \
        get<uint##bits##_t>(parameters);                                                           \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_row_set_##bits, eddy_cuda_row) {                                         \
        set<uint##bits##_t>(parameters);                                                           \
    }
EDDY_CUDA_ROWS(ROW)
