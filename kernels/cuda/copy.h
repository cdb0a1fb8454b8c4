/* Copies and casts on CUDA devices: which kernels there are (copy.cu), and the host's side (copy.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_COPY_H
#define EDDY_KERNELS_CUDA_COPY_H

/* Every dtype to every other, name and enumerator of each (kernels/cpu/element.h): eddy_cast_<from>_<to>. */
/* clang-format off */
#define EDDY_CUDA_CASTS(row) \
    row(f32, F32, f64, F64) row(f32, F32, f16, F16) row(f32, F32, bf16, BF16) row(f32, F32, i8, I8) row(f32, F32, u8, U8) row(f32, F32, i16, I16) row(f32, F32, i32, I32) row(f32, F32, i64, I64) row(f32, F32, truth, BOOL) \
    row(f64, F64, f32, F32) row(f64, F64, f16, F16) row(f64, F64, bf16, BF16) row(f64, F64, i8, I8) row(f64, F64, u8, U8) row(f64, F64, i16, I16) row(f64, F64, i32, I32) row(f64, F64, i64, I64) row(f64, F64, truth, BOOL) \
    row(f16, F16, f32, F32) row(f16, F16, f64, F64) row(f16, F16, bf16, BF16) row(f16, F16, i8, I8) row(f16, F16, u8, U8) row(f16, F16, i16, I16) row(f16, F16, i32, I32) row(f16, F16, i64, I64) row(f16, F16, truth, BOOL) \
    row(bf16, BF16, f32, F32) row(bf16, BF16, f64, F64) row(bf16, BF16, f16, F16) row(bf16, BF16, i8, I8) row(bf16, BF16, u8, U8) row(bf16, BF16, i16, I16) row(bf16, BF16, i32, I32) row(bf16, BF16, i64, I64) row(bf16, BF16, truth, BOOL) \
    row(i8, I8, f32, F32) row(i8, I8, f64, F64) row(i8, I8, f16, F16) row(i8, I8, bf16, BF16) row(i8, I8, u8, U8) row(i8, I8, i16, I16) row(i8, I8, i32, I32) row(i8, I8, i64, I64) row(i8, I8, truth, BOOL) \
    row(u8, U8, f32, F32) row(u8, U8, f64, F64) row(u8, U8, f16, F16) row(u8, U8, bf16, BF16) row(u8, U8, i8, I8) row(u8, U8, i16, I16) row(u8, U8, i32, I32) row(u8, U8, i64, I64) row(u8, U8, truth, BOOL) \
    row(i16, I16, f32, F32) row(i16, I16, f64, F64) row(i16, I16, f16, F16) row(i16, I16, bf16, BF16) row(i16, I16, i8, I8) row(i16, I16, u8, U8) row(i16, I16, i32, I32) row(i16, I16, i64, I64) row(i16, I16, truth, BOOL) \
    row(i32, I32, f32, F32) row(i32, I32, f64, F64) row(i32, I32, f16, F16) row(i32, I32, bf16, BF16) row(i32, I32, i8, I8) row(i32, I32, u8, U8) row(i32, I32, i16, I16) row(i32, I32, i64, I64) row(i32, I32, truth, BOOL) \
    row(i64, I64, f32, F32) row(i64, I64, f64, F64) row(i64, I64, f16, F16) row(i64, I64, bf16, BF16) row(i64, I64, i8, I8) row(i64, I64, u8, U8) row(i64, I64, i16, I16) row(i64, I64, i32, I32) row(i64, I64, truth, BOOL) \
    row(truth, BOOL, f32, F32) row(truth, BOOL, f64, F64) row(truth, BOOL, f16, F16) row(truth, BOOL, bf16, BF16) row(truth, BOOL, i8, I8) row(truth, BOOL, u8, U8) row(truth, BOOL, i16, I16) row(truth, BOOL, i32, I32) row(truth, BOOL, i64, I64)
/* clang-format on */

/* Elements of so many bits as they are: eddy_move_<bits>. */
#define EDDY_CUDA_MOVES(row) row(8) row(16) row(32) row(64)

#endif
