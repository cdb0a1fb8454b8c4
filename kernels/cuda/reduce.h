/* Reductions on CUDA devices: which kernels there are (reduce.cu), what they are given, and the host's side (reduce.c). Plain C.
 *
 * The tree is the CPU's (kernels/cpu/reduce/reduce_block.h), so that the bits are: elements in blocks of 1,024, a block in 32 lanes, the lanes halved, the blocks
 * joined pairwise. A missing lane or block is the op's neutral value, which joined to any other leaves it as it is. */
#ifndef EDDY_KERNELS_CUDA_REDUCE_H
#define EDDY_KERNELS_CUDA_REDUCE_H

#include <kernels/cuda/dims.h>

#define EDDY_CUDA_REDUCE_LANES 32
#define EDDY_CUDA_REDUCE_BLOCK 1024

/* Op and dtype, name and enumerator; the type in which it is computed, and that of results (kernels/cpu/element.h). The kernels are eddy_<op>_<dtype>_rows,
 * ..._strided and ..._join. */
/* clang-format off */
#define EDDY_CUDA_REDUCTIONS_OF_INTEGERS(row, op, compute, result) \
    row(op, i8, I8, compute, result) row(op, u8, U8, compute, result) row(op, i16, I16, compute, result) row(op, i32, I32, compute, result) \
    row(op, i64, I64, compute, result)
#define EDDY_CUDA_REDUCTIONS(row) \
    row(sum, f32, F32, f32, f32) row(sum, f64, F64, f64, f64) row(sum, f16, F16, f32, f16) row(sum, bf16, BF16, f32, bf16) \
    EDDY_CUDA_REDUCTIONS_OF_INTEGERS(row, sum, i64, i64) row(sum, truth, BOOL, i64, i64) \
    row(prod, f32, F32, f64, f32) row(prod, f64, F64, f64, f64) row(prod, f16, F16, f64, f16) row(prod, bf16, BF16, f64, bf16) \
    EDDY_CUDA_REDUCTIONS_OF_INTEGERS(row, prod, i64, i64) row(prod, truth, BOOL, i64, i64) \
    row(max, f32, F32, f32, f32) row(max, f64, F64, f64, f64) row(max, f16, F16, f32, f16) row(max, bf16, BF16, f32, bf16) \
    row(max, i8, I8, i64, i8) row(max, u8, U8, i64, u8) row(max, i16, I16, i64, i16) row(max, i32, I32, i64, i32) row(max, i64, I64, i64, i64) \
    row(min, f32, F32, f32, f32) row(min, f64, F64, f64, f64) row(min, f16, F16, f32, f16) row(min, bf16, BF16, f32, bf16) \
    row(min, i8, I8, i64, i8) row(min, u8, U8, i64, u8) row(min, i16, I16, i64, i16) row(min, i32, I32, i64, i32) row(min, i64, I64, i64, i64) \
    row(any, f32, F32, truth, truth) row(any, f64, F64, truth, truth) row(any, f16, F16, truth, truth) row(any, bf16, BF16, truth, truth) \
    EDDY_CUDA_REDUCTIONS_OF_INTEGERS(row, any, truth, truth) row(any, truth, BOOL, truth, truth) \
    row(all, f32, F32, truth, truth) row(all, f64, F64, truth, truth) row(all, f16, F16, truth, truth) row(all, bf16, BF16, truth, truth) \
    EDDY_CUDA_REDUCTIONS_OF_INTEGERS(row, all, truth, truth) row(all, truth, BOOL, truth, truth)
/* Where an element is: no kernel of rows. */
#define EDDY_CUDA_SEARCHES_OF(row, op) \
    row(op, f32, F32, f32) row(op, f64, F64, f64) row(op, f16, F16, f32) row(op, bf16, BF16, f32) \
    row(op, i8, I8, i64) row(op, u8, U8, i64) row(op, i16, I16, i64) row(op, i32, I32, i64) row(op, i64, I64, i64) row(op, truth, BOOL, i64)
#define EDDY_CUDA_SEARCHES(row) EDDY_CUDA_SEARCHES_OF(row, argmax) EDDY_CUDA_SEARCHES_OF(row, argmin)
/* Of several sweeps, computed in f64: no kernel of rows. */
#define EDDY_CUDA_VARIANCES(row) row(var, f32, F32) row(var, f64, F64) row(var, f16, F16) row(var, bf16, BF16)
/* Of two sweeps, computed in the third type: no kernel of rows. */
#define EDDY_CUDA_LOG_SUMS(row) row(logsumexp, f32, F32, f32) row(logsumexp, f64, F64, f64) row(logsumexp, f16, F16, f32) row(logsumexp, bf16, BF16, f32)
/* Computed in f64. */
#define EDDY_CUDA_NORMS_OF(row, op) row(op, f32, F32) row(op, f64, F64) row(op, f16, F16) row(op, bf16, BF16)
#define EDDY_CUDA_NORMS(row) \
    EDDY_CUDA_NORMS_OF(row, squares) EDDY_CUDA_NORMS_OF(row, magnitudes) EDDY_CUDA_NORMS_OF(row, nonzeros) \
    EDDY_CUDA_NORMS_OF(row, max_magnitude) EDDY_CUDA_NORMS_OF(row, min_magnitude)
/* Of any other order, as sums of powers: no kernel of rows, since powers take all of the time. */
#define EDDY_CUDA_POWERS(row) EDDY_CUDA_NORMS_OF(row, powers)
/* clang-format on */

/* Bytes of what is known of a part of the elements: a value and its index; a mean, a sum and a count. */
#define EDDY_CUDA_SEARCH_BYTES 16
#define EDDY_CUDA_MOMENTS_BYTES 24

/* A task is an output and a split of its elements: `team` blocks in a row, a power of two, so that a split is a subtree. A block of threads does several tasks at
 * once: `places` threads reduce one block of elements, `team` times as many a task. All three are powers of two, whose product is the number of threads. */
typedef struct eddy_cuda_reduce {
    eddy_cuda_gate gate;
    const void *in;
    void *out;
    void *
        best; /* max_dim and min_dim: the elements whose indices are the results, operand 2 of `kept`; else NULL */
    void *partials;         /* [split][output], of the compute type; NULL: there is one split */
    int64_t outputs, count; /* elements of each output */
    int64_t splits;
    uint32_t places, team, abreast;
    bool is_across;  /* neighbouring threads are neighbouring outputs, not neighbouring elements */
    bool is_aligned; /* of rows: each begins at a multiple of 16 */
    bool is_mean;    /* sums of floats are divided by the count */
    bool takes_root; /* of variances, and of norms of order 2 */
    double correction; /* variances: the sum of squares is divided by count - correction */
    double order;      /* norms as sums of powers: the exponent */
    eddy_cuda_dims kept, reduced;
} eddy_cuda_reduce;

#endif
