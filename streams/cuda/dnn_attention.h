/* Attention as the library's descriptors (dnn_build.h): the products, and the softmax between them, of which nothing goes to memory. */
#ifndef EDDY_STREAMS_CUDA_DNN_ATTENTION_H
#define EDDY_STREAMS_CUDA_DNN_ATTENTION_H

#include <streams/cuda/dnn_plan.h>

/* By number, behind the tensors of the question. */
enum {
    EDDY_CUDA_DNN_AT_SCALE = EDDY_CUDA_DNN_ATTENTION_TENSORS, /* by value */
    EDDY_CUDA_DNN_AT_STATISTICS, /* the logarithm of each row's sum: [B, H, L, 1] */
    EDDY_CUDA_DNN_AT_LOWEST,     /* by value: a score that is hidden, where any is */
    EDDY_CUDA_DNN_ATTENTION_NUMBERS
};

void eddy_cuda_dnn_attention_build(eddy_cuda_dnn_build *build, const eddy_cuda_dnn_geometry *of);
/* Bytes, rounded up so that what lies behind is aligned. */
int64_t eddy_cuda_dnn_attention_statistics(const eddy_cuda_dnn_question *question);
/* Of tensors and numbers. */
int eddy_cuda_dnn_attention_count(const eddy_cuda_dnn_question *question);
/* Writes the addresses behind those of the question's tensors. Those of the host are the operands', and static. */
void eddy_cuda_dnn_attention_addresses(const eddy_cuda_dnn_operands *operands, void *statistics,
                                       const void **addresses);

#endif
