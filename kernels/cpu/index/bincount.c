/* bincount: how often each number occurs, or the sum of the weights that belong to it. The length of the result depends on
 * the largest number, so the kernel has two entries. Weights are added in their order, in the output's dtype. */
#include <base/dtype.h>
#include <kernels/counted.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>

#define PIECE 512

static int64_t stride_of(const eddy_op_view *view) {
    return view->strides[0];
}

static void load(const eddy_op_view *view, eddy_dtype to, void *buffer, int64_t begin,
                 int64_t count) {
    eddy_chunk_load(to, buffer, view->dtype,
                    eddy_chunk_at(view->data, view->dtype, begin * stride_of(view)),
                    stride_of(view), count);
}

/* Numbers of the input: in place if they are contiguous i64, else converted to *buffer. */
static const int64_t *read(const eddy_op_view *view, int64_t *buffer, int64_t begin,
                           int64_t count) {
    if (view->dtype == EDDY_I64 && stride_of(view) == 1)
        return (const int64_t *)view->data + begin;
    load(view, EDDY_I64, buffer, begin, count);
    return buffer;
}

static inline uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The largest number, compared as unsigned: a negative number is larger than all others. Independent lanes need not wait
 * for each other. */
static uint64_t largest(const int64_t *numbers, int64_t count) {
    uint64_t most[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int lane = 0; lane < 4; lane++)
            most[lane] = larger(most[lane], (uint64_t)numbers[i + lane]);
    for (; i < count; i++)
        most[0] = larger(most[0], (uint64_t)numbers[i]);
    return larger(larger(most[0], most[1]), larger(most[2], most[3]));
}

static void bincount_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    const eddy_op_view *in = &call->views[0];
    int64_t buffer[PIECE], length = 0;
    for (int64_t done = 0; done < in->shape[0]; done += PIECE) {
        int64_t count = eddy_min_i64(PIECE, in->shape[0] - done);
        const int64_t *numbers = read(in, buffer, done, count);
        uint64_t most = largest(numbers, count);
        if (most < INT64_MAX) {
            length = eddy_max_i64(length, (int64_t)most + 1);
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            if ((uint64_t)numbers[i] >= INT64_MAX)
                eddy_kernel_fail(call, EDDY_OUT_OF_RANGE, done + i, numbers[i], INT64_MAX);
    }
    eddy_counted_bincount(call, length, shapes);
}

#define ADD(type, enumerator)                                                                      \
    static void add_##type(type *totals, int64_t stride, const int64_t *numbers,                   \
                           const eddy_op_view *weights, int64_t begin, int64_t count) {            \
        type added[PIECE];                                                                         \
        load(weights, enumerator, added, begin, count);                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            totals[numbers[i] * stride] += added[i];                                               \
    }

ADD(float, EDDY_F32)
ADD(double, EDDY_F64)

/* views: in, weights (or absent), out */
static void bincount_run(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *weights = &call->views[1], *out = &call->views[2];
    int64_t buffer[PIECE], stride = stride_of(out);
    static const int64_t nothing = 0;
    eddy_chunk_fill(out->data, stride, (int64_t)eddy_dtype_bytes(out->dtype), &nothing,
                    out->shape[0]);
    for (int64_t done = 0; done < in->shape[0]; done += PIECE) {
        int64_t count = eddy_min_i64(PIECE, in->shape[0] - done);
        const int64_t *numbers = read(in, buffer, done, count);
        if (out->dtype == EDDY_F32)
            add_float(out->data, stride, numbers, weights, done, count);
        else if (out->dtype == EDDY_F64)
            add_double(out->data, stride, numbers, weights, done, count);
        else
            for (int64_t i = 0; i < count; i++)
                ((int64_t *)out->data)[numbers[i] * stride]++;
    }
}

const eddy_kernel eddy_cpu_bincount = {.name = "bincount",
                                       .run = bincount_run,
                                       .count = bincount_count,
                                       .cost_base_ps = 60000,
                                       .cost_element_ps = 950};
