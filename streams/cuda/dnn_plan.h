/* A convolution as the library's descriptors (streams/cuda/dnn.h), and the plan that it makes of them. All of it is host code of the library's: what is launched is launched by
 * eddy_cuda_dnn_plan_execute. */
#ifndef EDDY_STREAMS_CUDA_DNN_PLAN_H
#define EDDY_STREAMS_CUDA_DNN_PLAN_H

#include <kernels/cuda/dnn_conv.h>
#include <streams/cuda/dnn.h>

/* What a plan depends on. Without padding. */
typedef struct eddy_cuda_dnn_geometry {
    eddy_cuda_dnn_conv conv;
    uint32_t alignment[EDDY_CUDA_DNN_TENSORS]; /* bytes that divide the address */
    uint32_t has_workspace;                    /* 0: there is no memory for one */
} eddy_cuda_dnn_geometry;

/* In the order in which they are made. */
typedef enum eddy_cuda_dnn_part {
    EDDY_CUDA_DNN_PART_X, /* the three tensors, as EDDY_CUDA_DNN_AT_X and so on */
    EDDY_CUDA_DNN_PART_WEIGHT,
    EDDY_CUDA_DNN_PART_Y,
    EDDY_CUDA_DNN_PART_WINDOW,
    EDDY_CUDA_DNN_PART_OPERATION,
    EDDY_CUDA_DNN_PART_GRAPH,
    EDDY_CUDA_DNN_PART_CONFIG,
    EDDY_CUDA_DNN_PART_PLAN,
    EDDY_CUDA_DNN_PARTS
} eddy_cuda_dnn_part;

/* All that a plan is made of stays as long as it: the library does not say that it may go. */
typedef struct eddy_cuda_dnn_plan {
    eddy_dnn_descriptor parts[EDDY_CUDA_DNN_PARTS]; /* NULL: not made */
    int64_t workspace_bytes;
} eddy_cuda_dnn_plan;

/* Takes the first engine of the library's list whose numbers are what Eddy's are to be, that works, and that asks for no more than `workspace_most` bytes. Of a failure the plan has what was made so
 * far. */
eddy_dnn_status eddy_cuda_dnn_plan_init(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                        const eddy_cuda_dnn_geometry *of, bool allows_tf32,
                                        uint64_t workspace_most);
/* Zeroed and half-made ones too. */
void eddy_cuda_dnn_plan_fini(eddy_cuda_dnn_plan *plan);
/* On the stream that the context has. `workspace`: of plan->workspace_bytes. */
eddy_dnn_status eddy_cuda_dnn_plan_execute(const eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                           const eddy_cuda_dnn_operands *operands, void *workspace);

/* The library has no memory, and will be asked again. */
static inline bool eddy_dnn_lacks_memory(eddy_dnn_status status) {
    return status == EDDY_DNN_HOST_ALLOC_FAILED || status == EDDY_DNN_DEVICE_ALLOC_FAILED;
}

#endif
