/* Random numbers and decisions on CUDA devices: which kernels there are (random.cu), and the host's side (random.c). Plain C.
 *
 * They read eddy_cuda_dense or eddy_cuda_strided. Before the output comes the element's number, in row-major order of the output: it decides what is drawn. */
#ifndef EDDY_KERNELS_CUDA_RANDOM_H
#define EDDY_KERNELS_CUDA_RANDOM_H

/* By dtype of the output, name and enumerator of each: eddy_<op>_<dtype>. Integers of randint are the same bits whatever their sign. */
#define EDDY_CUDA_RANDOM_FLOATS(row, op)                                                           \
    row(op, f32, F32) row(op, f64, F64) row(op, f16, F16) row(op, bf16, BF16)
#define EDDY_CUDA_RANDOM_FILLS(row)                                                                \
    EDDY_CUDA_RANDOM_FLOATS(row, rand)                                                             \
    EDDY_CUDA_RANDOM_FLOATS(row, randn)                                                            \
    row(randint, i8, I8) row(randint, i16, I16) row(randint, i32, I32) row(randint, i64, I64)
/* Of an element of an input. */
#define EDDY_CUDA_RANDOM_DECISIONS(row)                                                            \
    EDDY_CUDA_RANDOM_FLOATS(row, bernoulli) EDDY_CUDA_RANDOM_FLOATS(row, dropout)

/* Attributes. */
enum {
    EDDY_CUDA_RANDOM_SEED,
    EDDY_CUDA_RANDOM_COUNTER,
    EDDY_CUDA_RANDOM_LOW,                            /* randint */
    EDDY_CUDA_RANDOM_RANGE,                          /* randint: numbers from low on */
    EDDY_CUDA_RANDOM_SCALE = EDDY_CUDA_RANDOM_LOW,   /* dropout: the factor of what is kept, f64 */
    EDDY_CUDA_RANDOM_LEAST = EDDY_CUDA_RANDOM_RANGE, /* dropout: the least number that keeps, f64 */
    EDDY_CUDA_RANDOM_ATTRIBUTES
};

#endif
