/* What the kernel of the fake library of convolutions (tests/fake_cuda/dnn) is given. Plain C. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_DNN_CONV_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_DNN_CONV_H

#include <stdint.h>

#define FAKE_DNN_AXES 4 /* images, channels, rows, columns */
#define FAKE_DNN_DIMS 2

enum { FAKE_DNN_X, FAKE_DNN_WEIGHT, FAKE_DNN_Y, FAKE_DNN_TENSORS };

/* In elements. */
typedef struct fake_dnn_tensor {
    int64_t sizes[FAKE_DNN_AXES], strides[FAKE_DNN_AXES];
} fake_dnn_tensor;

/* What is computed: y, or a gradient. */
enum { FAKE_DNN_FORWARD, FAKE_DNN_BACKWARD_X, FAKE_DNN_BACKWARD_WEIGHT };

/* How it sums. */
enum {
    FAKE_DNN_AT_ONCE,
    FAKE_DNN_IN_PARTS, /* the second half of the terms by way of the workspace, in the type of sums */
    FAKE_DNN_OF_TF32, /* what is multiplied is rounded to it (tf32.h): on request alone */
    FAKE_DNN_COARSE, /* and adds 1, so that nobody takes it for right: what Eddy's convolutions may not be */
};

/* Without padding. */
typedef struct fake_dnn_shape {
    fake_dnn_tensor tensors[FAKE_DNN_TENSORS];
    int64_t stride[FAKE_DNN_DIMS], padding[FAKE_DNN_DIMS], dilation[FAKE_DNN_DIMS];
    double alpha, beta;
    int32_t type; /* EDDY_DNN_F32 and the like */
    int32_t way;
} fake_dnn_shape;

typedef struct fake_dnn_conv {
    fake_dnn_shape shape;
    void *data[FAKE_DNN_TENSORS];
    void *workspace;
    uint64_t workspace_bytes; /* that are used */
    int64_t how;
} fake_dnn_conv;

/* The tensor that is written. */
static inline int fake_dnn_written(const fake_dnn_shape *shape) {
    return shape->way == FAKE_DNN_FORWARD      ? FAKE_DNN_Y
           : shape->way == FAKE_DNN_BACKWARD_X ? FAKE_DNN_X
                                               : FAKE_DNN_WEIGHT;
}

#endif
