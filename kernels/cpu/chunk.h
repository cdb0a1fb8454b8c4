/* Moving runs of elements between strided memory of any dtype and contiguous memory of another. Because of it, every
 * family of kernels computes on contiguous f32, f64 or i64 alone. */
#ifndef EDDY_KERNELS_CPU_CHUNK_H
#define EDDY_KERNELS_CPU_CHUNK_H

#include <base/dtype.h>
#include <eddy/dtype.h>
#include <stdint.h>
#include <string.h>

/* The dtype a kernel computes in: f32 for f32, f16 and bf16, f64 for f64, i64 for integers and bool. */
static inline eddy_dtype eddy_chunk_compute_dtype(eddy_dtype dtype) {
    return dtype == EDDY_F64 ? EDDY_F64 : eddy_dtype_is_float(dtype) ? EDDY_F32 : EDDY_I64;
}

static inline void *eddy_chunk_at(const void *data, eddy_dtype dtype, int64_t offset) {
    return (char *)data + offset * eddy_dtype_size(dtype);
}

void eddy_chunk_convert(eddy_dtype to, void *target, int64_t target_stride, eddy_dtype from,
                        const void *source, int64_t source_stride, int64_t count);

/* Copies of more bytes first compare the addresses of source and target (chunk.c). */
#define EDDY_CHUNK_SHORT 2048

/* Copies `count` elements; strides in elements (any sign, 0 for the source only). The memory does not overlap. */
static inline void eddy_chunk_copy(eddy_dtype to, void *target, int64_t target_stride,
                                   eddy_dtype from, const void *source, int64_t source_stride,
                                   int64_t count) {
    if (to != from || target_stride != 1 || source_stride != 1 ||
        count * eddy_dtype_size(to) > EDDY_CHUNK_SHORT)
        eddy_chunk_convert(to, target, target_stride, from, source, source_stride, count);
    else if (count > 0)
        memcpy(target, source, (size_t)(count * eddy_dtype_size(to)));
}

/* The same with one contiguous side: load to a buffer, store from a buffer. */
static inline void eddy_chunk_load(eddy_dtype to, void *buffer, eddy_dtype from, const void *source,
                                   int64_t stride, int64_t count) {
    eddy_chunk_copy(to, buffer, 1, from, source, stride, count);
}

static inline void eddy_chunk_store(eddy_dtype to, void *target, int64_t stride, eddy_dtype from,
                                    const void *buffer, int64_t count) {
    eddy_chunk_copy(to, target, stride, from, buffer, 1, count);
}

/* Sets `count` elements of `bytes` (1, 2, 4, 8) each to the element at `value`. */
void eddy_chunk_fill(void *target, int64_t stride, int64_t bytes, const void *value, int64_t count);

#endif
