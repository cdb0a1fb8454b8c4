/* Kernels that make a tensor out of numbers. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/move/fill_block.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_ELEMENTS 65536
#define PIECE 512

/* Writes `count` values of a sequence, from its element `first` on, as value_dtype_of has it. */
typedef void sequence_fn(const void *state, eddy_dtype dtype, void *values, int64_t first, int64_t count);

typedef struct fill {
    const eddy_op_view *out;
    const eddy_walk *walk; /* not in here, where it would be cleared for nothing */
    /* a sequence ... */
    sequence_fn *sequence;
    const void *state;
    eddy_dtype value_dtype;
    /* ... or one element */
    _Alignas(8) char element[8];
} fill;

static void fill_fill_slice(void *context, int64_t begin, int64_t end) {
    const fill *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t stride = eddy_walk_inner_stride(work->walk, 0);
    eddy_walk_cursor cursor;
    eddy_walk_seek(work->walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(work->walk, &cursor), end - begin);
        char *target = eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]);
        if (work->sequence == NULL) {
            eddy_chunk_fill(target, stride, (int64_t)eddy_dtype_bytes(dtype), work->element, run);
        } else if (stride == 1 && dtype == work->value_dtype) {
            work->sequence(work->state, dtype, target, begin, run);
        } else {
            union {
                double real[PIECE];
                int64_t integer[PIECE];
            } values;
            run = eddy_min_i64(run, PIECE);
            work->sequence(work->state, work->value_dtype, &values, begin, run);
            eddy_chunk_store(dtype, target, stride, work->value_dtype, &values, run);
        }
        eddy_walk_advance(work->walk, &cursor, run);
        begin += run;
    }
}

static void fill_run(eddy_kernel_team *team, fill *work, bool any_order) {
    const eddy_op_view *out = work->out;
    int64_t count = eddy_view_count(out);
    if (count == 0)
        return;
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    if (any_order)
        eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    work->walk = &walk;
    if (count <= SLICE_ELEMENTS)
        fill_fill_slice(work, 0, count);
    else
        team->parallel_for(team, count, SLICE_ELEMENTS, fill_fill_slice, work);
}

void eddy_fill_view(eddy_kernel_team *team, const eddy_op_view *target, const void *element) {
    fill work = {.out = target};
    memcpy(work.element, element, eddy_dtype_bytes(target->dtype));
    fill_run(team, &work, true);
}

static void empty_run(const eddy_kernel_call *call) {
    (void)call;
}

static void full_run(const eddy_kernel_call *call) {
    const eddy_attributes_full *attributes = call->attributes;
    fill work = {.out = &call->views[0]};
    eddy_dtype_store_scalar(work.out->dtype, work.element, attributes->value);
    fill_run(call->team, &work, true);
}

static void eye_run(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[0];
    fill work = {.out = out};
    fill_run(call->team, &work, true);
    _Alignas(8) char one[8];
    eddy_dtype_store_i64(out->dtype, one, 1);
    int64_t count = eddy_min_i64(out->shape[0], out->shape[1]);
    if (count > 0)
        eddy_chunk_fill(out->data, out->strides[0] + out->strides[1], (int64_t)eddy_dtype_bytes(out->dtype), one,
                        count);
}

static double scalar_real(eddy_scalar scalar) {
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
}

/* What values of a sequence are made as: f32 at once where that is the target's dtype, the one rounding there is. */
static eddy_dtype value_dtype_of(bool is_real, eddy_dtype target) {
    return !is_real ? EDDY_I64 : target == EDDY_F32 ? EDDY_F32 : EDDY_F64;
}

/* base + step (from + turn i) */
static void line(eddy_dtype dtype, void *values, int64_t at, double base, double step, double from, double turn,
                 int64_t count) {
    const eddy_fill_blocks *blocks = eddy_cpu_fill_blocks();
    if (dtype == EDDY_F32)
        blocks->line_f32((float *)values + at, base, step, from, turn, count);
    else
        blocks->line_f64((double *)values + at, base, step, from, turn, count);
}

static void arange_real(const void *state, eddy_dtype dtype, void *values, int64_t first, int64_t count) {
    const eddy_attributes_arange *attributes = state;
    line(dtype, values, 0, scalar_real(attributes->start), scalar_real(attributes->step), (double)first, 1, count);
}

static void arange_integer(const void *state, eddy_dtype dtype, void *values, int64_t first, int64_t count) {
    const eddy_attributes_arange *attributes = state;
    uint64_t start = (uint64_t)attributes->start.value.integer, step = (uint64_t)attributes->step.value.integer;
    EDDY_ASSERT(dtype == EDDY_I64);
    eddy_cpu_fill_blocks()->count_i64(values, (int64_t)(start + step * (uint64_t)first), (int64_t)step, count);
}

/* Integers are exact while start and step are integers; otherwise a value is start + step * i in double. */
static void arange_run(const eddy_kernel_call *call) {
    const eddy_attributes_arange *attributes = call->attributes;
    bool is_real = attributes->start.kind == EDDY_SCALAR_FLOAT || attributes->step.kind == EDDY_SCALAR_FLOAT;
    fill work = {.out = &call->views[0],
                 .sequence = is_real ? arange_real : arange_integer,
                 .state = attributes,
                 .value_dtype = value_dtype_of(is_real, call->views[0].dtype)};
    fill_run(call->team, &work, false);
}

typedef struct linspace {
    double start, end, step;
    int64_t count;
} linspace;

/* Counts from the nearer end, so that both ends are exact and the middle is symmetric (as PyTorch's). */
static void linspace_values(const void *state, eddy_dtype dtype, void *values, int64_t first, int64_t count) {
    const linspace *work = state;
    int64_t near = eddy_min_i64(count, eddy_max_i64(0, work->count / 2 - first));
    line(dtype, values, 0, work->start, work->step, (double)first, 1, near);
    line(dtype, values, near, work->end, -work->step, (double)(work->count - 1 - first - near), -1, count - near);
}

static void linspace_run(const eddy_kernel_call *call) {
    const eddy_attributes_linspace *attributes = call->attributes;
    int64_t count = eddy_view_count(&call->views[0]);
    linspace work = {.start = attributes->start, .end = attributes->end, .count = count};
    work.step = count > 1 ? (work.end - work.start) / (double)(count - 1) : 0;
    if (count == 1)
        work.end = work.start;
    fill made = {.out = &call->views[0],
                 .sequence = linspace_values,
                 .state = &work,
                 .value_dtype = value_dtype_of(true, call->views[0].dtype)};
    fill_run(call->team, &made, false);
}

/* The output is not touched. */
static int64_t empty_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps;
}

const eddy_kernel eddy_cpu_empty = {.name = "empty", .run = empty_run, .cost_base_ps = 5000, .cost = empty_cost};
const eddy_kernel eddy_cpu_full = {.name = "full", .run = full_run, .cost_base_ps = 40000, .cost_element_ps = 50};
const eddy_kernel eddy_cpu_arange = {
    .name = "arange", .run = arange_run, .cost_base_ps = 50000, .cost_element_ps = 140};
const eddy_kernel eddy_cpu_linspace = {
    .name = "linspace", .run = linspace_run, .cost_base_ps = 80000, .cost_element_ps = 260};
const eddy_kernel eddy_cpu_eye = {.name = "eye", .run = eye_run, .cost_base_ps = 60000, .cost_element_ps = 60};
