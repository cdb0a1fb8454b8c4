/* equal and allclose on CUDA devices: which kernels there are (compare.cu), and the host's side (compare.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_COMPARE_H
#define EDDY_KERNELS_CUDA_COMPARE_H

/* Every dtype, name and enumerator: eddy_equal_<name>_dense and ..._strided, and the same of allclose, of eddy_cuda_dense and eddy_cuda_strided. The last operand is the
 * answer, one byte for all, which is 1 before; who finds a difference sets it to 0. */
#define EDDY_CUDA_COMPARED(row)                                                                    \
    row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16) row(i8, I8) row(u8, U8)              \
        row(i16, I16) row(i32, I32) row(i64, I64) row(truth, BOOL)

enum {
    EDDY_CUDA_COMPARE_A,
    EDDY_CUDA_COMPARE_B,
    EDDY_CUDA_COMPARE_ANSWER,
    EDDY_CUDA_COMPARE_OPERANDS
};

/* The attributes of allclose: the bits of two f64, and a bool. */
enum { EDDY_CUDA_COMPARE_ATOL, EDDY_CUDA_COMPARE_RTOL, EDDY_CUDA_COMPARE_NAN_IS_EQUAL };

#endif
