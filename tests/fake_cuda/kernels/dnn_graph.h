/* What the kernel of the fake library is given of a graph: operations on tensors of four axes, one after another. Plain C. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_DNN_GRAPH_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_DNN_GRAPH_H

#include <stdint.h>
#include <tests/fake_cuda/kernels/dnn_conv.h>

#define FAKE_DNN_GRAPH_TENSORS 24
#define FAKE_DNN_GRAPH_OPERATIONS 16
#define FAKE_DNN_GRAPH_INPUTS 3

/* Where a tensor is. */
enum { FAKE_DNN_IN_MEMORY, FAKE_DNN_NOWHERE, FAKE_DNN_BY_VALUE };

typedef struct fake_dnn_graph_tensor {
    fake_dnn_tensor is;
    int32_t type; /* EDDY_DNN_F32 and the like */
    int32_t place;
    void *data;   /* in memory */
    double value; /* by value */
} fake_dnn_graph_tensor;

enum { FAKE_DNN_OF_ELEMENTS, FAKE_DNN_OF_MATRICES, FAKE_DNN_OF_ROWS };

/* Tensors by their place in the list; -1: none. */
typedef struct fake_dnn_graph_operation {
    int32_t kind;
    int32_t mode;                          /* EDDY_DNN_ADD and the like */
    int32_t axis;                          /* of an index */
    int32_t inputs[FAKE_DNN_GRAPH_INPUTS]; /* x, b, t; a, b */
    int32_t output;
} fake_dnn_graph_operation;

typedef struct fake_dnn_graph {
    fake_dnn_graph_tensor tensors[FAKE_DNN_GRAPH_TENSORS];
    fake_dnn_graph_operation operations[FAKE_DNN_GRAPH_OPERATIONS];
    int32_t tensor_count, operation_count;
} fake_dnn_graph;

typedef struct fake_dnn_graph_run {
    fake_dnn_graph graph;
    void *workspace;
    uint64_t workspace_bytes; /* that are used */
    int64_t how; /* AT_ONCE, IN_PARTS: what lies nowhere is kept in the workspace; COARSE */
} fake_dnn_graph_run;

static inline int64_t fake_dnn_elements(const fake_dnn_tensor *tensor) {
    int64_t count = 1;
    for (int d = 0; d < FAKE_DNN_AXES; d++)
        count *= tensor->sizes[d];
    return count;
}

static inline int64_t fake_dnn_type_bytes(int type) {
    return type == 1 /* f64 */                          ? 8
           : type == 0 /* f32 */ || type == 4 /* i32 */ ? 4
           : type == 11 /* bool */                      ? 1
                                                        : 2;
}

#endif
