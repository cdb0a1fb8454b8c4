/* Copying and filling views on CUDA devices: what kernels do that put tensors together of boxes. The host's side; each launches once, for the call, or not at all if there
 * is nothing to write. */
#ifndef EDDY_KERNELS_CUDA_VIEW_H
#define EDDY_KERNELS_CUDA_VIEW_H

#include <base/dtype.h>
#include <kernels/kernel.h>

/* Any dtypes; the source broadcasts to the target. */
void eddy_cuda_copy_view(const eddy_kernel_call *call, const eddy_op_view *source,
                         const eddy_op_view *target);
/* Sets every element to the one that `element` begins with. */
void eddy_cuda_fill_view(const eddy_kernel_call *call, const eddy_op_view *target,
                         uint64_t element);

static inline void *eddy_cuda_view_at(const eddy_op_view *view, int64_t offset) {
    return (char *)view->data + offset * eddy_dtype_size(view->dtype);
}

/* A view whose dims and strides may be changed. */
typedef struct eddy_cuda_box {
    eddy_op_view view;
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
} eddy_cuda_box;

static inline void eddy_cuda_box_init(eddy_cuda_box *box, const eddy_op_view *view) {
    box->view = *view;
    for (int32_t d = 0; d < view->rank; d++) {
        box->shape[d] = view->shape[d];
        box->strides[d] = view->strides[d];
    }
    box->view.shape = box->shape;
    box->view.strides = box->strides;
}

#endif
