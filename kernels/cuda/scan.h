/* cumsum, cumprod and its gradient on CUDA devices: which kernels there are (scan.cu), what they are given, and the host's side (scan.c). Plain C.
 *
 * The order of operations is the CPU's (kernels/cpu/reduce/scan_block.h), so that the bits are: a sum restarts every 1,024 elements, to which the total before is added
 * then; a product does not. Within a block one thread does one operation after the other. */
#ifndef EDDY_KERNELS_CUDA_SCAN_H
#define EDDY_KERNELS_CUDA_SCAN_H

#include <kernels/cuda/lines.h>

#define EDDY_CUDA_SCAN_BLOCK 1024
/* Elements that a thread has at once. With twice as many a multiprocessor would have registers for one block of threads alone. */
#define EDDY_CUDA_SCAN_STEP 8

/* Op and dtype, name and enumerator; the type in which it is computed, and that of results. The kernels are eddy_<op>_<dtype>, and eddy_scan_join_<type>. */
/* clang-format off */
#define EDDY_CUDA_SCANS_OF(row, op) \
    row(op, f32, F32, f64, f32) row(op, f64, F64, f64, f64) row(op, f16, F16, f64, f16) row(op, bf16, BF16, f64, bf16) \
    row(op, i8, I8, i64, i64) row(op, u8, U8, i64, i64) row(op, i16, I16, i64, i64) row(op, i32, I32, i64, i64) row(op, i64, I64, i64, i64) \
    row(op, truth, BOOL, i64, i64)
#define EDDY_CUDA_SCANS(row) EDDY_CUDA_SCANS_OF(row, cumsum) EDDY_CUDA_SCANS_OF(row, cumprod)
#define EDDY_CUDA_SCANS_BACKWARD(row) \
    row(cumprod_backward, f32, F32) row(cumprod_backward, f64, F64) row(cumprod_backward, f16, F16) row(cumprod_backward, bf16, BF16)
/* clang-format on */

/* A task is a block of a line, number block * lines + line. */
typedef struct eddy_cuda_scan_call {
    eddy_cuda_gate gate;
    const void *in[2]; /* of the gradient: grad and the product's input */
    void *out;
    /* Of sums of several blocks: the total of each task, after the join that of all before it. Of gradients: the product before each step of a line, number step * lines +
     * line. Of 8 bytes each. */
    void *totals;
    int64_t blocks, length; /* of a line, and of a block */
    bool finds_totals;      /* rather than results */
    eddy_cuda_lines lines;
} eddy_cuda_scan_call;

#endif
