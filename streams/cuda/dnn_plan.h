/* A question to cuDNN as its descriptors (streams/cuda/dnn_build.h), and the plan that it makes of them. All of it is host code of the library's: what is launched is launched by
 * eddy_cuda_dnn_plan_execute. */
#ifndef EDDY_STREAMS_CUDA_DNN_PLAN_H
#define EDDY_STREAMS_CUDA_DNN_PLAN_H

#include <kernels/cuda/dnn.h>
#include <streams/cuda/dnn_build.h>

/* What a plan depends on. Without padding. */
typedef struct eddy_cuda_dnn_geometry {
    eddy_cuda_dnn_question question;
    uint32_t alignment[EDDY_CUDA_DNN_TENSORS]; /* bytes that divide the address */
    uint64_t has_workspace;                    /* 0: there is no memory for one */
} eddy_cuda_dnn_geometry;

typedef struct eddy_cuda_dnn_plan {
    eddy_cuda_dnn_build build; /* all that the graph is made of */
    /* NULL: not made */
    eddy_dnn_descriptor graph, config, plan;
    int64_t workspace_bytes;  /* with those of statistics, which come first */
    int64_t statistics_bytes; /* that attention writes, and nobody reads */
    int tensor_count, count;  /* of the question; with those that are beside */
} eddy_cuda_dnn_plan;

/* By eddy_dtype: of elements, and of what they are summed in. */
typedef struct eddy_cuda_dnn_type {
    int data, sums;
} eddy_cuda_dnn_type;
extern const eddy_cuda_dnn_type eddy_cuda_dnn_types[EDDY_DTYPE_COUNT];

/* A tensor of the question, whose number is `number`. NULL: it has failed. */
eddy_dnn_descriptor eddy_cuda_dnn_add_operand(eddy_cuda_dnn_build *build,
                                              const eddy_cuda_dnn_geometry *of, int number);

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
