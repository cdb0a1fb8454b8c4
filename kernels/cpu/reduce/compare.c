/* equal and allclose: one answer for two tensors. A slice that finds a difference sets a flag; the others stop when they
 * see it. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 32768
#define CHUNK 256
/* Elements that are compared in place before the flag is read again. */
#define STRETCH 4096

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
    bool lies_plain;      /* both sides are contiguous in the compute type */
    _Atomic bool differs; /* atomic: relaxed; any slice sets it, read when all are done */
} agreement;

/* `difference` is as wide as the elements, so that the loop vectorises. */
#define EQUAL(type, bits)                                                                          \
    {                                                                                              \
        const type *left = a, *right = b;                                                          \
        bits difference = 0;                                                                       \
        for (int64_t i = 0; i < count; i++)                                                        \
            difference |= left[i] != right[i];                                                     \
        return difference == 0;                                                                    \
    }

static bool are_equal(eddy_dtype compute, const void *a, const void *b, int64_t count) {
    if (compute == EDDY_F32)
        EQUAL(float, int32_t)
    if (compute == EDDY_F64)
        EQUAL(double, int64_t)
    EQUAL(int64_t, int64_t)
}

/* |a - b| <= atol + rtol |b|; infinities are close only if they are equal. Without branches, since it nearly always holds. */
static inline bool is_close(double atol, double rtol, double a, double b) {
    return (a == b) |
           ((fabs(a - b) <= atol + rtol * fabs(b)) & (fabs(a) < INFINITY) & (fabs(b) < INFINITY));
}

#define CLOSE(type)                                                                                \
    {                                                                                              \
        const type *left = a, *right = b;                                                          \
        int64_t far = 0;                                                                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            far |= !is_close(atol, rtol, (double)left[i], (double)right[i]);                       \
        if (!far || !c->nan_is_equal)                                                              \
            return !far;                                                                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (!is_close(atol, rtol, (double)left[i], (double)right[i]) &&                        \
                !(isnan(left[i]) && isnan(right[i])))                                              \
                return false;                                                                      \
        return true;                                                                               \
    }

static bool are_close(const eddy_attributes_allclose *c, eddy_dtype compute, const void *a,
                      const void *b, int64_t count) {
    double atol = c->atol, rtol = c->rtol;
    if (compute == EDDY_F32)
        CLOSE(float)
    if (compute == EDDY_F64)
        CLOSE(double)
    const int64_t *left = a, *right = b;
    for (int64_t i = 0; i < count; i++)
        /* Equal integers first: beyond 2^53, doubles are too coarse to tell. */
        if (left[i] != right[i] &&
            !(fabs((double)left[i] - (double)right[i]) <= atol + rtol * fabs((double)right[i])))
            return false;
    return true;
}

/* Elements of one side in the compute type: in place, or converted to *buffer. */
static const void *side_of(const agreement *p, int o, const eddy_walk_cursor *cursor, int64_t count,
                           chunk *buffer) {
    const eddy_op_view *view = &p->call->views[o];
    const void *there = eddy_chunk_at(view->data, view->dtype, cursor->offsets[o]);
    if (p->lies_plain)
        return there;
    eddy_chunk_load(p->compute, buffer, view->dtype, there, eddy_walk_inner_stride(&p->walk, o),
                    count);
    return buffer;
}

static void slice(void *context, int64_t begin, int64_t end) {
    agreement *p = context;
    int64_t most = p->lies_plain ? STRETCH : CHUNK;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&p->walk, &cursor, begin);
    chunk sides[2];
    for (int64_t done = begin, run; done < end && !eddy_load_relaxed(&p->differs); done += run) {
        run = eddy_min_i64(eddy_min_i64(eddy_walk_run(&p->walk, &cursor), end - done), most);
        const void *a = side_of(p, 0, &cursor, run, &sides[0]),
                   *b = side_of(p, 1, &cursor, run, &sides[1]);
        bool agrees = p->closeness ? are_close(p->closeness, p->compute, a, b, run)
                                   : are_equal(p->compute, a, b, run);
        if (!agrees)
            eddy_store_relaxed(&p->differs, true);
        eddy_walk_advance(&p->walk, &cursor, run);
    }
}

/* Compares both sides, which broadcast to one shape. */
static bool compare(const eddy_kernel_call *call, const eddy_attributes_allclose *closeness,
                    int32_t rank, const int64_t *dims) {
    /* Set one by one: a walk is too large to be cleared for nothing. */
    agreement p;
    p.call = call;
    p.closeness = closeness;
    p.compute = eddy_chunk_compute_dtype(call->views[0].dtype);
    eddy_store_relaxed(&p.differs, false);
    eddy_walk_init(&p.walk, rank, dims);
    eddy_walk_add_broadcast(&p.walk, &call->views[0]);
    eddy_walk_add_broadcast(&p.walk, &call->views[1]);
    eddy_walk_collapse(&p.walk);
    p.lies_plain = true;
    for (int o = 0; o < 2; o++)
        p.lies_plain &=
            call->views[o].dtype == p.compute && eddy_walk_inner_stride(&p.walk, o) == 1;
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
    const eddy_op_view *a = &call->views[0], *b = &call->views[1];
    bool same = a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    *(uint8_t *)call->views[2].data = same && compare(call, NULL, a->rank, a->shape);
}

static void allclose_run(const eddy_kernel_call *call) {
    const eddy_op_view *a = &call->views[0], *b = &call->views[1];
    int32_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[EDDY_RANK_MAX];
    for (int32_t d = 0; d < rank; d++) {
        int64_t left = d < rank - a->rank ? 1 : a->shape[d - (rank - a->rank)];
        int64_t right = d < rank - b->rank ? 1 : b->shape[d - (rank - b->rank)];
        dims[d] = left == 1 ? right : left;
    }
    *(uint8_t *)call->views[2].data = compare(call, call->attributes, rank, dims);
}

const eddy_kernel eddy_cpu_equal = {
    .name = "equal", .run = equal_run, .cost_base_ps = 100000, .cost_element_ps = 170};
const eddy_kernel eddy_cpu_allclose = {
    .name = "allclose", .run = allclose_run, .cost_base_ps = 60000, .cost_element_ps = 830};
