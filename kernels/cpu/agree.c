/* equal and allclose: one answer for two tensors. Slices that find a difference say so; the others stop when they see it. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 32768
#define CHUNK 256

typedef union chunk {
    _Alignas(64) float f32[CHUNK];
    double f64[CHUNK];
    int64_t i64[CHUNK];
} chunk;

typedef struct agreement {
    const eddy_kernel_call *call;
    eddy_walk walk;
    const eddy_attributes_allclose *closeness; /* NULL: equal */
    eddy_dtype compute;
    _Atomic bool differs; /* atomic: relaxed; any slice sets it, read when all are done */
} agreement;

#define EQUAL(field)                                                                                                   \
    for (int64_t i = 0; i < count; i++)                                                                                \
    same &= a->field[i] == b->field[i]

static bool are_equal(eddy_dtype compute, const chunk *a, const chunk *b, int64_t count) {
    bool same = true;
    if (compute == EDDY_F32)
        EQUAL(f32);
    else if (compute == EDDY_F64)
        EQUAL(f64);
    else
        EQUAL(i64);
    return same;
}

/* |a - b| <= atol + rtol |b|; infinities only where they are equal. */
static bool is_close(const eddy_attributes_allclose *c, double a, double b) {
    if (a == b)
        return true;
    if (isnan(a) || isnan(b))
        return c->equal_nan && isnan(a) && isnan(b);
    return isfinite(a) && isfinite(b) && fabs(a - b) <= c->atol + c->rtol * fabs(b);
}

static bool are_close(const eddy_attributes_allclose *c, eddy_dtype compute, const chunk *a, const chunk *b,
                      int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (compute == EDDY_I64 && a->i64[i] == b->i64[i])
            continue; /* beyond 2^53 doubles are too coarse to say so */
        bool is_f64 = compute == EDDY_F64;
        double left = is_f64 ? a->f64[i] : compute == EDDY_F32 ? (double)a->f32[i] : (double)a->i64[i];
        double right = is_f64 ? b->f64[i] : compute == EDDY_F32 ? (double)b->f32[i] : (double)b->i64[i];
        if (compute == EDDY_I64 ? !(fabs(left - right) <= c->atol + c->rtol * fabs(right)) : !is_close(c, left, right))
            return false;
    }
    return true;
}

static void slice(void *context, int64_t begin, int64_t end) {
    agreement *p = context;
    const eddy_kernel_view *views = p->call->views;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&p->walk, &cursor, begin);
    chunk sides[2];
    for (int64_t done = begin, run; done < end && !eddy_load_relaxed(&p->differs); done += run) {
        run = eddy_min_i64(eddy_min_i64(eddy_walk_run(&p->walk, &cursor), end - done), CHUNK);
        for (int o = 0; o < 2; o++)
            eddy_chunk_load(p->compute, &sides[o], views[o].dtype,
                            eddy_chunk_at(views[o].data, views[o].dtype, cursor.offsets[o]),
                            eddy_walk_inner_stride(&p->walk, o), run);
        bool agrees = p->closeness ? are_close(p->closeness, p->compute, &sides[0], &sides[1], run)
                                   : are_equal(p->compute, &sides[0], &sides[1], run);
        if (!agrees)
            eddy_store_relaxed(&p->differs, true);
        eddy_walk_advance(&p->walk, &cursor, run);
    }
}

/* Both sides under one shape. */
static bool compare(const eddy_kernel_call *call, const eddy_attributes_allclose *closeness, int32_t rank,
                    const int64_t *dims) {
    agreement p = {.call = call, .closeness = closeness, .compute = eddy_chunk_compute_dtype(call->views[0].dtype)};
    eddy_walk_init(&p.walk, rank, dims);
    eddy_walk_add_broadcast(&p.walk, &call->views[0]);
    eddy_walk_add_broadcast(&p.walk, &call->views[1]);
    eddy_walk_collapse(&p.walk);
    int64_t count = eddy_walk_count(&p.walk);
    if (count == 0)
        return true;
    if (count <= SLICE_ELEMENTS)
        slice(&p, 0, count);
    else
        call->team->parallel_for(call->team, count, SLICE_ELEMENTS, slice, &p);
    return !eddy_load_relaxed(&p.differs);
}

static void equal_run(const eddy_kernel_call *call) {
    const eddy_kernel_view *a = &call->views[0], *b = &call->views[1];
    bool same = a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    *(uint8_t *)call->views[2].data = same && compare(call, NULL, a->rank, a->shape);
}

static void allclose_run(const eddy_kernel_call *call) {
    const eddy_kernel_view *a = &call->views[0], *b = &call->views[1];
    int32_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[EDDY_RANK_MAX];
    for (int32_t d = 0; d < rank; d++) {
        int64_t left = d < rank - a->rank ? 1 : a->shape[d - (rank - a->rank)];
        int64_t right = d < rank - b->rank ? 1 : b->shape[d - (rank - b->rank)];
        dims[d] = left == 1 ? right : left;
    }
    *(uint8_t *)call->views[2].data = compare(call, call->attributes, rank, dims);
}

const eddy_kernel eddy_cpu_equal = {.name = "equal", .run = equal_run, .cost_base_ps = 60000, .cost_element_ps = 300};
const eddy_kernel eddy_cpu_allclose = {
    .name = "allclose", .run = allclose_run, .cost_base_ps = 60000, .cost_element_ps = 2000};
