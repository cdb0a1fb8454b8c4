/* Rotary position embedding (J. Su et al., "RoFormer", 2021). Each pair of a row is rotated by an angle: the row's
 * position times the pair's frequency, base^(-2 i / D). Sines and cosines are computed once per position, from angles in
 * double, and are kept in the workspace. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/attention/rope_angle.h>
#include <kernels/cpu/attention/rope_block.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 16384
/* Pairs rotated at a time. */
#define PIECE 256

/* The plan; the walk over rows follows it in memory. */
typedef struct rope_plan {
    int64_t positions, pairs, rows;
    int64_t angles_grain, rows_grain; /* of positions, of rows */
    eddy_dtype compute;
    bool is_in_runs; /* first and second numbers of a row are contiguous, of type `compute` */
} rope_plan;

_Static_assert(sizeof(rope_plan) + EDDY_WALK_WORDS_MOST(3) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "room for rows over all dims");

typedef struct rope {
    const eddy_op_view *x, *positions, *out;
    const rope_plan *plan;
    bool is_interleaved;
    int64_t pairs;
    eddy_dtype compute;
    void *cosines, *sines; /* [positions][pairs] of the compute type */
    double *frequencies;   /* [pairs] */
    double fastest;        /* the highest of them */
    eddy_walk rows;        /* x, out, angles: all but the last dim, as x lies in memory */
} rope;

typedef union piece {
    float f32[PIECE];
    double f64[PIECE];
} piece;

static void make_row_of_angles(const rope *work, int64_t s) {
    double position =
        (double)((const int64_t *)work->positions->data)[s * work->positions->strides[0]];
    void *cosines = eddy_chunk_at(work->cosines, work->compute, s * work->pairs);
    void *sines = eddy_chunk_at(work->sines, work->compute, s * work->pairs);
    if (work->compute == EDDY_F32 && eddy_rope_is_quick(position, work->fastest)) {
        eddy_cpu_rope_blocks()->angles(cosines, sines, position, work->frequencies, work->pairs);
        return;
    }
    for (int64_t i = 0; i < work->pairs; i++) {
        double angle = position * work->frequencies[i], cosine = eddy_rope_cosine(angle),
               sine = eddy_rope_sine(angle);
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

/* Angles from element `at` on; rows of angles are `row` elements apart. */
static eddy_rope_angles angles_at(const rope *work, int64_t at, int64_t row) {
    return (eddy_rope_angles){eddy_chunk_at(work->cosines, work->compute, at),
                              eddy_chunk_at(work->sines, work->compute, at), row};
}

static void turn(const rope *work, eddy_rope_rows out, eddy_rope_rows in, eddy_rope_angles by,
                 int64_t rows, int64_t pairs) {
    const eddy_rope_blocks *blocks = eddy_cpu_rope_blocks();
    (work->compute == EDDY_F64 ? blocks->turn_f64 : blocks->turn_f32)(out, in, by, rows, pairs);
}

/* Rotates the pairs of a row in any layout and dtype, piece by piece. */
static void turn_row(const rope *work, const int64_t *offsets) {
    eddy_dtype dtype = work->x->dtype, compute = work->compute;
    int32_t last = work->x->rank - 1;
    int64_t in = work->x->strides[last], out = work->out->strides[last],
            step = work->is_interleaved ? 2 : 1;
    int64_t partner = work->is_interleaved ? 1 : work->pairs;
    const void *from = eddy_chunk_at(work->x->data, dtype, offsets[0]);
    void *to = eddy_chunk_at(work->out->data, dtype, offsets[1]);
    piece a, b, to_a, to_b;
    for (int64_t begin = 0; begin < work->pairs; begin += PIECE) {
        int64_t count = eddy_min_i64(PIECE, work->pairs - begin), first = begin * step;
        eddy_chunk_load(compute, &a, dtype, eddy_chunk_at(from, dtype, first * in), step * in,
                        count);
        eddy_chunk_load(compute, &b, dtype, eddy_chunk_at(from, dtype, (first + partner) * in),
                        step * in, count);
        turn(work, (eddy_rope_rows){&to_a, &to_b, 0}, (eddy_rope_rows){&a, &b, 0},
             angles_at(work, offsets[2] + begin, 0), 1, count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, first * out), step * out, compute, &to_a,
                         count);
        eddy_chunk_store(dtype, eddy_chunk_at(to, dtype, (first + partner) * out), step * out,
                         compute, &to_b, count);
    }
}

static eddy_rope_rows rows_at(const rope *work, const eddy_op_view *view, int64_t offset,
                              int64_t row) {
    void *first = eddy_chunk_at(view->data, view->dtype, offset);
    return (eddy_rope_rows){first, eddy_chunk_at(first, view->dtype, work->pairs), row};
}

static void turn_slice(void *context, int64_t begin, int64_t end) {
    const rope *work = context;
    bool is_in_runs = work->plan->is_in_runs;
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

static void find_frequencies(rope *work, double base) {
    work->fastest = 0;
    for (int64_t i = 0; i < work->pairs; i++) {
        work->frequencies[i] = eddy_rope_frequency(base, i, work->pairs);
        work->fastest = fmax(work->fastest, work->frequencies[i]);
    }
}

/* views: x, positions, out */
static void rope_run(const eddy_kernel_call *call) {
    const rope_plan *plan = call->plan;
    const eddy_attributes_rope *attributes = call->attributes;
    rope work;
    work.x = &call->views[0];
    work.positions = &call->views[1];
    work.out = &call->views[2];
    work.plan = plan;
    work.is_interleaved = attributes->is_interleaved;
    work.pairs = plan->pairs;
    work.compute = plan->compute;
    work.frequencies = call->workspace;
    work.cosines = work.frequencies + plan->pairs;
    work.sines = eddy_chunk_at(work.cosines, plan->compute, plan->positions * plan->pairs);
    find_frequencies(&work, attributes->base);
    eddy_walk_read(&work.rows, (const int64_t *)(const void *)(plan + 1));
    rope_run_slices(call, plan->positions, plan->angles_grain, make_angles, &work);
    rope_run_slices(call, plan->rows, plan->rows_grain, turn_slice, &work);
}

static void rope_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* Rows in the order in which x lies in memory. */
static void plan_rows(eddy_walk *rows, const eddy_op_view *x, const eddy_op_view *out) {
    int32_t last = x->rank - 1;
    int64_t angles[EDDY_RANK_MAX] = {0};
    angles[last - 1] = x->shape[last] / 2;
    eddy_walk_init(rows, last, x->shape);
    eddy_walk_add(rows, x->strides, 1);
    eddy_walk_add(rows, out->strides, 1);
    eddy_walk_add(rows, angles, 1);
    eddy_walk_sort(rows);
    eddy_walk_collapse(rows);
}

static bool lies_in_runs(const eddy_kernel_call *call, eddy_dtype compute) {
    const eddy_op_view *x = &call->views[0], *out = &call->views[2];
    const eddy_attributes_rope *attributes = call->attributes;
    int32_t last = x->rank - 1;
    return x->dtype == compute && x->strides[last] == 1 && out->strides[last] == 1 &&
           !attributes->is_interleaved;
}

/* For calls whose tensors have elements. */
static void plan_turns(const eddy_kernel_call *call, eddy_kernel_plan *plan, int64_t positions,
                       int64_t pairs) {
    rope_plan *own = plan->memory;
    eddy_walk rows;
    plan_rows(&rows, &call->views[0], &call->views[2]);
    own->positions = positions;
    own->pairs = pairs;
    own->rows = eddy_walk_count(&rows);
    own->angles_grain = eddy_max_i64(1, SLICE_ELEMENTS / 8 / pairs);
    own->rows_grain = eddy_max_i64(1, SLICE_ELEMENTS / pairs);
    own->compute = eddy_chunk_compute_dtype(call->views[0].dtype);
    own->is_in_runs = lies_in_runs(call, own->compute);
    const int64_t *end = eddy_walk_write(&rows, (int64_t *)(void *)(own + 1));
    plan->bytes = (size_t)((const char *)end - (const char *)own);
}

static eddy_status rope_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *x = &call->views[0];
    bool is_wide = x->dtype == EDDY_F64;
    int64_t count = eddy_kernel_view_count(x), pairs = x->shape[x->rank - 1] / 2,
            positions = x->shape[x->rank - 2];
    int64_t angles = positions * pairs, number = is_wide ? sizeof(double) : sizeof(float);
    plan->workspace_bytes = (size_t)(pairs * (int64_t)sizeof(double) + 2 * angles * number);
    /* A sine and a cosine per pair of a position, then little per element. */
    plan->cost_ps = call->kernel->cost_base_ps + angles * (is_wide ? 40000 : 1300) +
                    count * call->kernel->cost_element_ps + eddy_cost_far_views_ps(call);
    if (count == 0)
        plan->run = rope_run_nothing;
    else
        plan_turns(call, plan, positions, pairs);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_rope = {.name = "rope",
                                   .run = rope_run,
                                   .prepare = rope_prepare,
                                   .cost_base_ps = 200000,
                                   .cost_element_ps = 180};
