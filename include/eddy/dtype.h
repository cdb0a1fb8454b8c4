/* Element types. */
#ifndef EDDY_DTYPE_H
#define EDDY_DTYPE_H

#include <eddy/export.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row per dtype: enumerator, name, bytes of an element. The only list of dtypes. */
#define EDDY_DTYPE_LIST(row)                                                                       \
    row(F32, f32, 4) row(F64, f64, 8) row(F16, f16, 2) row(BF16, bf16, 2) row(I8, i8, 1)           \
        row(U8, u8, 1) row(I16, i16, 2) row(I32, i32, 4) row(I64, i64, 8) row(BOOL, bool, 1)

typedef enum eddy_dtype {
#define EDDY_DTYPE_ROW(enumerator, name, bytes) EDDY_##enumerator,
    EDDY_DTYPE_LIST(EDDY_DTYPE_ROW)
#undef EDDY_DTYPE_ROW
        EDDY_DTYPE_COUNT
} eddy_dtype;

/* "f32"; "?" for a value that is no dtype. Static storage. */
EDDY_API const char *eddy_dtype_name(eddy_dtype dtype);

/* Bytes of one element; 0 for a value that is no dtype. */
EDDY_API size_t eddy_dtype_bytes(eddy_dtype dtype);

/* The dtype to which PyTorch's rules promote two tensors of these dtypes (both of rank above 0, or both of rank 0). */
EDDY_API eddy_dtype eddy_dtype_promote(eddy_dtype a, eddy_dtype b);

#ifdef __cplusplus
}
#endif
#endif
