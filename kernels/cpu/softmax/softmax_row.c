#include <kernels/cpu/chunk.h>
#include <kernels/cpu/softmax/softmax_row.h>
#include <kernels/cpu/walk.h>
#include <math.h>

const eddy_softmax_ops *eddy_softmax_ops_for(eddy_dtype dtype) {
    return eddy_softmax_compute_dtype(dtype) == EDDY_F64 ? eddy_cpu_softmax_f64()
                                                         : eddy_cpu_softmax_f32();
}

int64_t eddy_softmax_load(const eddy_softmax_row *row, int64_t begin, double padding,
                          eddy_softmax_chunk *chunk) {
    int64_t count = eddy_min_i64(EDDY_SOFTMAX_CHUNK, row->count - begin);
    int64_t padded = (count + EDDY_SOFTMAX_LANES - 1) / EDDY_SOFTMAX_LANES * EDDY_SOFTMAX_LANES;
    eddy_dtype compute = eddy_softmax_compute_dtype(row->dtype);
    eddy_chunk_load(compute, chunk, row->dtype,
                    eddy_chunk_at(row->data, row->dtype, begin * row->stride), row->stride, count);
    for (int64_t i = count; i < padded; i++) {
        if (compute == EDDY_F64)
            chunk->f64[i] = padding;
        else
            chunk->f32[i] = (float)padding;
    }
    return padded;
}

void eddy_softmax_store(const eddy_softmax_row *row, int64_t begin, const eddy_softmax_chunk *chunk,
                        void *target, int64_t stride, eddy_dtype dtype) {
    int64_t count = eddy_min_i64(EDDY_SOFTMAX_CHUNK, row->count - begin);
    eddy_chunk_store(dtype, eddy_chunk_at(target, dtype, begin * stride), stride,
                     eddy_softmax_compute_dtype(row->dtype), chunk, count);
}

eddy_softmax_total eddy_softmax_row_total(const eddy_softmax_ops *ops, const eddy_softmax_row *row,
                                          eddy_softmax_chunk *chunk) {
    eddy_softmax_total total = {.max = -INFINITY, .sum = 0};
    int64_t padded = 0;
    for (int64_t begin = 0; begin < row->count; begin += EDDY_SOFTMAX_CHUNK) {
        padded = eddy_softmax_load(row, begin, -INFINITY, chunk);
        double max = ops->max(chunk, padded);
        total.max = max > total.max || max != max ? max : total.max;
    }
    if (row->count <= EDDY_SOFTMAX_CHUNK) {
        total.sum = ops->exp_sum(chunk, total.max, padded);
        return total;
    }
    for (int64_t begin = 0; begin < row->count; begin += EDDY_SOFTMAX_CHUNK) {
        padded = eddy_softmax_load(row, begin, -INFINITY, chunk);
        total.sum += ops->exp_sum(chunk, total.max, padded);
    }
    return total;
}
