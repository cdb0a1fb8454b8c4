/* The dtypes as C types, for macros that make one function per dtype. */
#ifndef EDDY_KERNELS_CPU_ELEMENT_H
#define EDDY_KERNELS_CPU_ELEMENT_H

#include <eddy/dtype.h>
#include <stdint.h>

/* enumerator suffix, name (bool is a macro, hence truth), C type in memory */
#define EDDY_ELEMENT_LIST(row)                                                                     \
    row(F32, f32, float) row(F64, f64, double) row(F16, f16, uint16_t) row(BF16, bf16, uint16_t)   \
        row(I8, i8, int8_t) row(U8, u8, uint8_t) row(I16, i16, int16_t) row(I32, i32, int32_t)     \
            row(I64, i64, int64_t) row(BOOL, truth, uint8_t)

#endif
