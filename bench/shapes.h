/* Sizes shared by Eddy's programs and the peers', so that a row is the same work in each. */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations per sample of the add rows. */
#define BENCH_ADD_OPS 20000
/* Adds per burst of issue_add16: below every mark of back-pressure, so that the caller is never held back. */
#define BENCH_ISSUE_OPS 1000

/* Empty tasks per sample. Fan: one writer, then its readers, repeated. Dag: two reads and one write of random objects. */
#define BENCH_TASKS 20000
#define BENCH_FAN_READERS 64
#define BENCH_DAG_OBJECTS 1000

/* The network of the mlp rows: 784-256-128-10. */
#define BENCH_MLP_INPUTS 784
#define BENCH_MLP_HIDDEN1 256
#define BENCH_MLP_HIDDEN2 128
#define BENCH_MLP_CLASSES 10
#define BENCH_MLP_RATE 0.01f
/* So small that the network never fits its only batch. Otherwise gradients vanish, Adam's second moments become subnormal, and
 * the row measures subnormal arithmetic. */
#define BENCH_ADAM_RATE 1e-6f

/* Steps per sample of the cnn and transformer rows. */
#define BENCH_TRAINING_STEPS 3

/* The network of the transformer rows: the same as in examples/char_transformer.c. */
#define BENCH_TRANSFORMER_VOCABULARY 96
#define BENCH_TRANSFORMER_WIDTH 128
#define BENCH_TRANSFORMER_LAYERS 4
#define BENCH_TRANSFORMER_HEADS 4
#define BENCH_TRANSFORMER_HIDDEN 344
#define BENCH_TRANSFORMER_SEQUENCE 128

/* The inference rows: numbers in the warm-up pass, and measured passes. */
#define BENCH_INFERENCE_FEW 8
#define BENCH_INFERENCE_PASSES 3

#define BENCH_RELU_COUNT 10000000

/* Matrix products C[m, n] = op(A) op(B) with inner size k: row name, m, n, k, A transposed, B transposed. */
/* clang-format off */
#define BENCH_GEMM_LIST(row)                            \
    row(gemm_64x64x64_nn, 64, 64, 64, 0, 0)             \
    row(gemm_128x128x128_nn, 128, 128, 128, 0, 0)       \
    row(gemm_256x256x256_nn, 256, 256, 256, 0, 0)       \
    row(gemm_512x512x512_nn, 512, 512, 512, 0, 0)       \
    row(gemm_1024x1024x1024_nn, 1024, 1024, 1024, 0, 0) \
    row(gemm_2048x2048x2048_nn, 2048, 2048, 2048, 0, 0) \
    row(gemm_64x256x784_nt, 64, 256, 784, 0, 1)         \
    row(gemm_256x256x784_nt, 256, 256, 784, 0, 1)       \
    row(gemm_256x784x64_tn, 256, 784, 64, 1, 0)         \
    row(gemm_64x784x256_nn, 64, 784, 256, 0, 0)         \
    row(gemm_64x10x128_nt, 64, 10, 128, 0, 1)           \
    row(gemm_2048x384x128_nt, 2048, 384, 128, 0, 1)     \
    row(gemm_2048x128x344_nt, 2048, 128, 344, 0, 1)
/* clang-format on */

typedef struct bench_gemm_shape {
    const char *row;
    int m, n, k;
    int is_a_transposed, is_b_transposed;
} bench_gemm_shape;

#define BENCH_GEMM_ROW(name, m, n, k, ta, tb) {#name, m, n, k, ta, tb},
static const bench_gemm_shape bench_gemm_shapes[] = {BENCH_GEMM_LIST(BENCH_GEMM_ROW)};
#undef BENCH_GEMM_ROW
#define BENCH_GEMM_SHAPE_COUNT ((int)(sizeof(bench_gemm_shapes) / sizeof(bench_gemm_shapes[0])))

/* Ends the program if there is no such row. */
static inline const bench_gemm_shape *bench_gemm_shape_of(const char *row) {
    for (int i = 0; i < BENCH_GEMM_SHAPE_COUNT; i++)
        if (!strcmp(row, bench_gemm_shapes[i].row))
            return &bench_gemm_shapes[i];
    fprintf(stderr, "gemm: no such row: %s\n", row);
    exit(2);
}

/* Calls per sample: about 5 ms of work at 100 GFLOP/s. */
static inline int bench_gemm_calls(const bench_gemm_shape *shape) {
    double flops = 2.0 * shape->m * shape->n * shape->k;
    int calls = (int)(5e8 / flops);
    return calls < 1 ? 1 : calls;
}

#endif
