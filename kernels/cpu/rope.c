/* Rotary position embedding (J. Su et al., "RoFormer", 2021): each pair of a row is turned by the row's position times the
 * pair's frequency, base^(-2 i / D). Sines and cosines are made once per position, in double, and lie in the workspace. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 16384
/* Pairs turned at a time. */
#define PIECE 256

typedef struct rope {
    const eddy_kernel_view *x, *positions, *out;
    const eddy_attributes_rope *attributes;
    eddy_walk rows; /* x, out: all but the last dim, in the order of elements */
    int64_t positions_count, pairs;
    eddy_dtype compute;
    void *cosines, *sines; /* [positions][pairs] of the compute type */
    double *frequencies;   /* [pairs] */
} rope;

typedef union piece {
    float f32[PIECE];
    double f64[PIECE];
} piece;

static void make_angles(void *context, int64_t begin, int64_t end) {
    const rope *work = context;
    for (int64_t s = begin; s < end; s++) {
        double position = (double)((const int64_t *)work->positions->data)[s * work->positions->strides[0]];
        for (int64_t i = 0; i < work->pairs; i++) {
            double angle = position * work->frequencies[i], cosine = cos(angle), sine = sin(angle);
            int64_t at = s * work->pairs + i;
            if (work->compute == EDDY_F64) {
                ((double *)work->cosines)[at] = cosine;
                ((double *)work->sines)[at] = sine;
            } else {
                ((float *)work->cosines)[at] = (float)cosine;
                ((float *)work->sines)[at] = (float)sine;
            }
        }
    }
}

#define TURN(name, real)                                                                                               \
    static void turn_##name(real *restrict to_a, real *restrict to_b, const real *restrict a, const real *restrict b,  \
                            const real *restrict cosine, const real *restrict sine, int64_t count) {                   \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            to_a[i] = a[i] * cosine[i] - b[i] * sine[i];                                                               \
            to_b[i] = b[i] * cosine[i] + a[i] * sine[i];                                                               \
        }                                                                                                              \
    }

TURN(f32, float)
TURN(f64, double)

static void turn_row(const rope *work, int64_t s, const char *from, char *to) {
    eddy_dtype dtype = work->x->dtype, compute = work->compute;
    int32_t last = work->x->rank - 1;
    bool interleaved = work->attributes->interleaved;
    int64_t in = work->x->strides[last], out = work->out->strides[last], step = interleaved ? 2 : 1;
    int64_t partner = interleaved ? 1 : work->pairs;
    int64_t of_row = s * work->pairs;
    if (dtype == EDDY_F32 && in == 1 && out == 1 && !interleaved) {
        float *row = (float *)(void *)to;
        const float *given = (const float *)(const void *)from;
        turn_f32(row, row + partner, given, given + partner, (const float *)work->cosines + of_row,
                 (const float *)work->sines + of_row, work->pairs);
        return;
    }
    piece a, b, to_a, to_b;
    for (int64_t begin = 0; begin < work->pairs; begin += PIECE) {
        int64_t count = eddy_min_i64(PIECE, work->pairs - begin), first = begin * step, at = of_row + begin;
        eddy_chunk_load(compute, &a, dtype, eddy_chunk_at(from, dtype, first * in), step * in, count);
        eddy_chunk_load(compute, &b, dtype, eddy_chunk_at(from, dtype, (first + partner) * in), step * in, count);
        if (compute == EDDY_F64)
            turn_f64(to_a.f64, to_b.f64, a.f64, b.f64, (const double *)work->cosines + at,
                     (const double *)work->sines + at, count);
        else
            turn_f32(to_a.f32, to_b.f32, a.f32, b.f32, (const float *)work->cosines + at,
                     (const float *)work->sines + at, count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, first * out), step * out, compute, &to_a, count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, (first + partner) * out), step * out, compute, &to_b, count);
    }
}

static void turn_slice(void *context, int64_t begin, int64_t end) {
    const rope *work = context;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (int64_t row = begin; row < end; row++) {
        turn_row(work, row % work->positions_count, eddy_chunk_at(work->x->data, work->x->dtype, cursor.offsets[0]),
                 eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[1]));
        eddy_walk_next(&work->rows, &cursor, work->rows.rank);
    }
}

static void run_slices(const eddy_kernel_call *call, int64_t count, int64_t grain,
                       void (*slice)(void *, int64_t, int64_t), void *work) {
    if (count <= grain)
        slice(work, 0, count);
    else
        call->team->parallel_for(call->team, count, grain, slice, work);
}

/* views: x, positions, out */
static void rope_run(const eddy_kernel_call *call) {
    rope work = {.x = &call->views[0], .positions = &call->views[1], .out = &call->views[2]};
    int32_t last = work.x->rank - 1;
    if (eddy_view_count(work.x) == 0)
        return;
    work.attributes = call->attributes;
    work.positions_count = work.x->shape[last - 1];
    work.pairs = work.x->shape[last] / 2;
    work.compute = eddy_chunk_compute_dtype(work.x->dtype);
    work.frequencies = call->workspace;
    work.cosines = work.frequencies + work.pairs;
    work.sines = eddy_chunk_at(work.cosines, work.compute, work.positions_count * work.pairs);
    for (int64_t i = 0; i < work.pairs; i++)
        work.frequencies[i] = pow(work.attributes->base, -(double)i / (double)work.pairs);
    eddy_walk_init(&work.rows, last, work.x->shape);
    eddy_walk_add(&work.rows, work.x->strides, 1);
    eddy_walk_add(&work.rows, work.out->strides, 1);
    eddy_walk_collapse(&work.rows);
    run_slices(call, work.positions_count, eddy_max_i64(1, SLICE_ELEMENTS / 8 / work.pairs), make_angles, &work);
    run_slices(call, eddy_walk_count(&work.rows), eddy_max_i64(1, SLICE_ELEMENTS / work.pairs), turn_slice, &work);
}

static int64_t angle_count(const eddy_kernel_call *call) {
    const eddy_kernel_view *x = &call->views[0];
    return x->shape[x->rank - 2] * (x->shape[x->rank - 1] / 2);
}

static size_t rope_workspace(const eddy_kernel_call *call) {
    const eddy_kernel_view *x = &call->views[0];
    int64_t number = eddy_chunk_compute_dtype(x->dtype) == EDDY_F64 ? 8 : 4;
    return (size_t)(x->shape[x->rank - 1] / 2 * 8 + 2 * angle_count(call) * number);
}

/* A sine and a cosine per pair of a position, then little per element. */
static int64_t rope_cost(const eddy_kernel_call *call) {
    return 100000 + angle_count(call) * 40000 + eddy_view_count(&call->views[0]) * 600;
}

const eddy_kernel eddy_cpu_rope = {.name = "rope",
                                   .run = rope_run,
                                   .workspace = rope_workspace,
                                   .cost_base_ps = 100000,
                                   .cost_element_ps = 600,
                                   .cost = rope_cost};
