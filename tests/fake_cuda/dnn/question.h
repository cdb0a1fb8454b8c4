/* A convolution, or a graph of other operations, as its descriptors describe it, and the engines that there are for it. */
#ifndef EDDY_TESTS_FAKE_CUDA_DNN_QUESTION_H
#define EDDY_TESTS_FAKE_CUDA_DNN_QUESTION_H

#include <stdbool.h>
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/kernels/dnn_graph.h>

typedef struct fake_dnn_question {
    bool is_graph;
    /* A graph of operations that are none of convolutions. */
    fake_dnn_graph graph;
    int64_t graph_numbers[FAKE_DNN_GRAPH_TENSORS], graph_alignments[FAKE_DNN_GRAPH_TENSORS];
    /* Else: */
    fake_dnn_shape shape;
    int sums;                      /* the data type of sums */
    int types[FAKE_DNN_TENSORS];   /* of the tensors */
    eddy_dnn_type scale;           /* the type of alpha and beta */
    int64_t behind[FAKE_DNN_DIMS]; /* padding there */
    int64_t numbers[FAKE_DNN_TENSORS], alignments[FAKE_DNN_TENSORS];
} fake_dnn_question;

typedef struct fake_dnn_engine {
    int note; /* it has one, or NONE */
    uint64_t workspace_bytes;
    int32_t how; /* kernels/dnn_conv.h */
    bool works;  /* else no plan is made of it */
} fake_dnn_engine;

#define FAKE_DNN_NO_NOTE (-1)
#define FAKE_DNN_ENGINES 8

/* NULL, or what is wrong. Of a convolution. */
const char *fake_dnn_question_misfit(const fake_dnn_question *question);
/* The same of a graph. */
const char *fake_dnn_graph_misfit(const fake_dnn_graph *graph);
/* The list of a mode: how many there are; -1: heuristics do not support it. The seed chooses, by the geometry alone. */
int fake_dnn_engines(const fake_dnn_question *question, int mode,
                     fake_dnn_engine engines[FAKE_DNN_ENGINES]);

#endif
