#include <kernels/cpu/walk.h>
#include <kernels/cuda/dims.h>

void eddy_cuda_dims_take(eddy_cuda_dims *to, const eddy_walk *walk, const int64_t *bytes) {
    to->rank = walk->rank;
    for (int32_t d = 0; d < walk->rank; d++) {
        to->sizes[d] = walk->dims[d];
        to->by[d] = walk->dims[d] <= INT32_MAX ? eddy_cuda_divisor_of((uint32_t)walk->dims[d])
                                               : (eddy_cuda_divisor){0};
        for (int32_t o = 0; o < walk->operand_count; o++)
            to->strides[o][d] = walk->strides[o][d] * bytes[o];
    }
}
