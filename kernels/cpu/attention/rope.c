/* Rotary position embedding (J. Su et al., "RoFormer", 2021): each pair of a row is turned by the row's position times the
 * pair's frequency, base^(-2 i / D). Sines and cosines are made once per position, from angles in double, and lie in the
 * workspace. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/attention/rope_block.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 16384
/* Pairs turned at a time. */
#define PIECE 256

typedef struct rope {
    const eddy_op_view *x, *positions, *out;
    const eddy_attributes_rope *attributes;
    eddy_walk rows; /* x, out, angles: all but the last dim, as x lies in memory */
    int64_t positions_count, pairs;
    eddy_dtype compute;
    void *cosines, *sines; /* [positions][pairs] of the compute type */
    double *frequencies;   /* [pairs] */
    double fastest;        /* the highest of them */
} rope;

typedef union piece {
    float f32[PIECE];
    double f64[PIECE];
} piece;

static void make_row_of_angles(const rope *work, int64_t s) {
    double position = (double)((const int64_t *)work->positions->data)[s * work->positions->strides[0]];
    void *cosines = eddy_chunk_at(work->cosines, work->compute, s * work->pairs);
    void *sines = eddy_chunk_at(work->sines, work->compute, s * work->pairs);
    if (work->compute == EDDY_F32 && fabs(position) * work->fastest < EDDY_ROPE_ANGLE_MAX) {
        eddy_cpu_rope_blocks()->angles(cosines, sines, position, work->frequencies, work->pairs);
        return;
    }
    for (int64_t i = 0; i < work->pairs; i++) {
        double angle = position * work->frequencies[i], cosine = cos(angle), sine = sin(angle);
        if (work->compute == EDDY_F64) {
            ((double *)cosines)[i] = cosine;
            ((double *)sines)[i] = sine;
        } else {
            ((float *)cosines)[i] = (float)cosine;
            ((float *)sines)[i] = (float)sine;
        }
    }
}

static void make_angles(void *context, int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; s++)
        make_row_of_angles(context, s);
}

/* Angles from a number on. */
static eddy_rope_angles angles_at(const rope *work, int64_t at, int64_t row) {
    return (eddy_rope_angles){eddy_chunk_at(work->cosines, work->compute, at),
                              eddy_chunk_at(work->sines, work->compute, at), row};
}

static void turn(const rope *work, eddy_rope_rows out, eddy_rope_rows in, eddy_rope_angles by, int64_t rows,
                 int64_t pairs) {
    const eddy_rope_blocks *blocks = eddy_cpu_rope_blocks();
    (work->compute == EDDY_F64 ? blocks->turn_f64 : blocks->turn_f32)(out, in, by, rows, pairs);
}

/* Pairs of a row in any layout and dtype, piece by piece. */
static void turn_row(const rope *work, const int64_t *offsets) {
    eddy_dtype dtype = work->x->dtype, compute = work->compute;
    int32_t last = work->x->rank - 1;
    bool interleaved = work->attributes->interleaved;
    int64_t in = work->x->strides[last], out = work->out->strides[last], step = interleaved ? 2 : 1;
    int64_t partner = interleaved ? 1 : work->pairs;
    const void *from = eddy_chunk_at(work->x->data, dtype, offsets[0]);
    void *to = eddy_chunk_at(work->out->data, dtype, offsets[1]);
    piece a, b, to_a, to_b;
    for (int64_t begin = 0; begin < work->pairs; begin += PIECE) {
        int64_t count = eddy_min_i64(PIECE, work->pairs - begin), first = begin * step;
        eddy_chunk_load(compute, &a, dtype, eddy_chunk_at(from, dtype, first * in), step * in, count);
        eddy_chunk_load(compute, &b, dtype, eddy_chunk_at(from, dtype, (first + partner) * in), step * in, count);
        turn(work, (eddy_rope_rows){&to_a, &to_b, 0}, (eddy_rope_rows){&a, &b, 0},
             angles_at(work, offsets[2] + begin, 0), 1, count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, first * out), step * out, compute, &to_a, count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, (first + partner) * out), step * out, compute, &to_b, count);
    }
}

/* Whether the numbers of a row's pairs are two runs in the compute type. */
static bool lies_in_runs(const rope *work) {
    int32_t last = work->x->rank - 1;
    return work->x->dtype == work->compute && work->x->strides[last] == 1 && work->out->strides[last] == 1 &&
           !work->attributes->interleaved;
}

static eddy_rope_rows rows_at(const rope *work, const eddy_op_view *view, int64_t offset, int64_t row) {
    void *first = eddy_chunk_at(view->data, view->dtype, offset);
    return (eddy_rope_rows){first, eddy_chunk_at(first, view->dtype, work->pairs), row};
}

static void turn_slice(void *context, int64_t begin, int64_t end) {
    const rope *work = context;
    bool is_in_runs = lies_in_runs(work);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (int64_t row = begin, rows; row < end; row += rows) {
        rows = is_in_runs ? eddy_min_i64(eddy_walk_run(&work->rows, &cursor), end - row) : 1;
        const int64_t *at = cursor.offsets;
        eddy_walk_prefetch(&work->rows, &cursor, 0, work->x->data, eddy_dtype_size(work->x->dtype));
        if (is_in_runs)
            turn(work, rows_at(work, work->out, at[1], eddy_walk_inner_stride(&work->rows, 1)),
                 rows_at(work, work->x, at[0], eddy_walk_inner_stride(&work->rows, 0)),
                 angles_at(work, at[2], eddy_walk_inner_stride(&work->rows, 2)), rows, work->pairs);
        else
            turn_row(work, at);
        eddy_walk_advance(&work->rows, &cursor, rows);
    }
}

static void rope_run_slices(const eddy_kernel_call *call, int64_t count, int64_t grain,
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
    for (int64_t i = 0; i < work.pairs; i++) {
        work.frequencies[i] = pow(work.attributes->base, -(double)i / (double)work.pairs);
        work.fastest = fmax(work.fastest, work.frequencies[i]);
    }
    int64_t angles[EDDY_RANK_MAX] = {0};
    angles[last - 1] = work.pairs;
    eddy_walk_init(&work.rows, last, work.x->shape);
    eddy_walk_add(&work.rows, work.x->strides, 1);
    eddy_walk_add(&work.rows, work.out->strides, 1);
    eddy_walk_add(&work.rows, angles, 1);
    eddy_walk_sort(&work.rows);
    eddy_walk_collapse(&work.rows);
    rope_run_slices(call, work.positions_count, eddy_max_i64(1, SLICE_ELEMENTS / 8 / work.pairs), make_angles, &work);
    rope_run_slices(call, eddy_walk_count(&work.rows), eddy_max_i64(1, SLICE_ELEMENTS / work.pairs), turn_slice, &work);
}

static int64_t angle_count(const eddy_kernel_call *call) {
    const eddy_op_view *x = &call->views[0];
    return x->shape[x->rank - 2] * (x->shape[x->rank - 1] / 2);
}

static size_t rope_workspace(const eddy_kernel_call *call) {
    const eddy_op_view *x = &call->views[0];
    int64_t number = eddy_chunk_compute_dtype(x->dtype) == EDDY_F64 ? 8 : 4;
    return (size_t)(x->shape[x->rank - 1] / 2 * 8 + 2 * angle_count(call) * number);
}

/* A sine and a cosine per pair of a position, then little per element. */
static int64_t rope_cost(const eddy_kernel_call *call) {
    bool is_wide = call->views[0].dtype == EDDY_F64;
    return call->kernel->cost_base_ps + angle_count(call) * (is_wide ? 40000 : 1300) +
           eddy_view_count(&call->views[0]) * call->kernel->cost_element_ps + eddy_cost_far_views_ps(call);
}

const eddy_kernel eddy_cpu_rope = {.name = "rope",
                                   .run = rope_run,
                                   .workspace = rope_workspace,
                                   .cost_base_ps = 200000,
                                   .cost_element_ps = 180,
                                   .cost = rope_cost};
