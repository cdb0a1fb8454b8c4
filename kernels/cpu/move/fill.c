/* Kernels that create a tensor from numbers. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/move/fill_block.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 65536
#define PIECE 512

/* Writes `count` values of a sequence, from its element `first` on, in the dtype that value_dtype_of gives. */
typedef void sequence_fn(const void *state, eddy_dtype dtype, void *values, int64_t first,
                         int64_t count);

typedef struct linspace {
    double start, end, step;
    int64_t count;
} linspace;

typedef struct fill {
    const eddy_op_view *out;
    int64_t count;
    /* a sequence ... */
    sequence_fn *sequence;
    const void *state;
    eddy_dtype value_dtype;
    /* ... or one element */
    const void *element;
    eddy_walk walk;
} fill;

static void fill_fill_slice(void *context, int64_t begin, int64_t end) {
    const fill *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t stride = eddy_walk_inner_stride(&work->walk, 0);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), end - begin);
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
        eddy_walk_advance(&work->walk, &cursor, run);
        begin += run;
    }
}

static void fill_all(fill *work, eddy_kernel_team *team) {
    if (work->count == 0)
        return;
    if (work->count <= SLICE_ELEMENTS)
        fill_fill_slice(work, 0, work->count);
    else
        team->parallel_for(team, work->count, SLICE_ELEMENTS, fill_fill_slice, work);
}

static void fill_walk(eddy_walk *walk, const eddy_op_view *target, bool any_order) {
    eddy_walk_init(walk, target->rank, target->shape);
    eddy_walk_add(walk, target->strides, 1);
    if (any_order)
        eddy_walk_sort(walk);
    eddy_walk_collapse(walk);
}

/* ---- one element ---- */

int64_t *eddy_fill_prepare(const eddy_op_view *target, int64_t *words) {
    eddy_walk walk;
    fill_walk(&walk, target, true);
    *words++ = eddy_kernel_view_count(target);
    return eddy_walk_write(&walk, words);
}

void eddy_fill_run(const int64_t *words, eddy_kernel_team *team, const eddy_op_view *target,
                   const void *element) {
    fill work; /* set one by one: a walk is too large to be cleared for nothing */
    work.out = target;
    work.sequence = NULL;
    work.element = element;
    work.count = *words++;
    (void)eddy_walk_read(&work.walk, words);
    if (work.walk.rank > 1 || work.count > SLICE_ELEMENTS)
        fill_all(&work, team);
    else if (work.count > 0)
        eddy_chunk_fill(target->data, eddy_walk_inner_stride(&work.walk, 0),
                        eddy_dtype_size(target->dtype), element, work.count);
}

void eddy_fill_view(eddy_kernel_team *team, const eddy_op_view *target, const void *element) {
    int64_t words[EDDY_FILL_WORDS_MOST];
    (void)eddy_fill_prepare(target, words);
    eddy_fill_run(words, team, target, element);
}

static eddy_status empty_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = call->kernel->cost_base_ps; /* the output is not touched */
    return EDDY_OK;
}

static void empty_run(const eddy_kernel_call *call) {
    (void)call;
}

/* The plan of full: the element, then the words of eddy_fill_prepare. The plan of eye: the words alone. */
static eddy_status full_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_full *attributes = call->attributes;
    const eddy_op_view *out = &call->views[0];
    int64_t *words = plan->memory;
    words[0] = 0; /* an element may have fewer bytes */
    eddy_dtype_store_scalar(out->dtype, words, attributes->value);
    plan->bytes = (size_t)(eddy_fill_prepare(out, words + 1) - words) * sizeof(*words);
    plan->cost_ps =
        eddy_cost_flat_ps(call->kernel, words[1], eddy_cost_bytes(words[1], out->dtype));
    return EDDY_OK;
}

static void full_run(const eddy_kernel_call *call) {
    const int64_t *words = call->plan;
    eddy_fill_run(words + 1, call->team, &call->views[0], words);
}

static eddy_status eye_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *out = &call->views[0];
    int64_t *words = plan->memory;
    plan->bytes = (size_t)(eddy_fill_prepare(out, words) - words) * sizeof(*words);
    plan->cost_ps =
        eddy_cost_flat_ps(call->kernel, words[0], eddy_cost_bytes(words[0], out->dtype));
    return EDDY_OK;
}

static void eye_run(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[0];
    _Alignas(8) char zero[8] = {0}, one[8];
    eddy_fill_run(call->plan, call->team, out, zero);
    eddy_dtype_store_i64(out->dtype, one, 1);
    int64_t count = eddy_min_i64(out->shape[0], out->shape[1]);
    if (count > 0)
        eddy_chunk_fill(out->data, out->strides[0] + out->strides[1],
                        (int64_t)eddy_dtype_bytes(out->dtype), one, count);
}

/* ---- sequences ---- */

/* The plan of both sequences; the walk's words follow. */
typedef struct sequence_plan {
    sequence_fn *sequence;
    int64_t count;
    linspace line;
    eddy_dtype value_dtype;
    int64_t words[];
} sequence_plan;

/* The dtype in which values of a sequence are computed: f32 if the target is f32, so that values are rounded only once. */
static eddy_dtype value_dtype_of(bool is_real, eddy_dtype target) {
    return !is_real ? EDDY_I64 : target == EDDY_F32 ? EDDY_F32 : EDDY_F64;
}

static sequence_plan *sequence_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                       sequence_fn *sequence, bool is_real) {
    const eddy_op_view *out = &call->views[0];
    sequence_plan *p = plan->memory;
    p->sequence = sequence;
    p->count = eddy_kernel_view_count(out);
    p->value_dtype = value_dtype_of(is_real, out->dtype);
    eddy_walk walk;
    fill_walk(&walk, out, false);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps =
        eddy_cost_flat_ps(call->kernel, p->count, eddy_cost_bytes(p->count, out->dtype));
    return p;
}

static void sequence_run(const eddy_kernel_call *call, const void *state) {
    const sequence_plan *plan = call->plan;
    fill work;
    work.out = &call->views[0];
    work.count = plan->count;
    work.sequence = plan->sequence;
    work.state = state;
    work.value_dtype = plan->value_dtype;
    (void)eddy_walk_read(&work.walk, plan->words);
    fill_all(&work, call->team);
}

static double scalar_real(eddy_scalar scalar) {
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
}

/* base + step (from + turn i) */
static void line(eddy_dtype dtype, void *values, int64_t at, double base, double step, double from,
                 double turn, int64_t count) {
    const eddy_fill_blocks *blocks = eddy_cpu_fill_blocks();
    if (dtype == EDDY_F32)
        blocks->line_f32((float *)values + at, base, step, from, turn, count);
    else
        blocks->line_f64((double *)values + at, base, step, from, turn, count);
}

static void arange_real(const void *state, eddy_dtype dtype, void *values, int64_t first,
                        int64_t count) {
    const eddy_attributes_arange *attributes = state;
    line(dtype, values, 0, scalar_real(attributes->start), scalar_real(attributes->step),
         (double)first, 1, count);
}

static void arange_integer(const void *state, eddy_dtype dtype, void *values, int64_t first,
                           int64_t count) {
    const eddy_attributes_arange *attributes = state;
    uint64_t start = (uint64_t)attributes->start.value.integer,
             step = (uint64_t)attributes->step.value.integer;
    EDDY_ASSERT(dtype == EDDY_I64);
    eddy_cpu_fill_blocks()->count_i64(values, (int64_t)(start + step * (uint64_t)first),
                                      (int64_t)step, count);
}

/* Integers are exact while start and step are integers; otherwise a value is start + step * i in double. */
static eddy_status arange_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_arange *attributes = call->attributes;
    bool is_real =
        attributes->start.kind == EDDY_SCALAR_FLOAT || attributes->step.kind == EDDY_SCALAR_FLOAT;
    (void)sequence_prepare(call, plan, is_real ? arange_real : arange_integer, is_real);
    return EDDY_OK;
}

static void arange_run(const eddy_kernel_call *call) {
    sequence_run(call, call->attributes);
}

/* Counts from the nearer end, so that both ends are exact and the middle is symmetric (as in PyTorch). */
static void linspace_values(const void *state, eddy_dtype dtype, void *values, int64_t first,
                            int64_t count) {
    const linspace *work = state;
    int64_t near = eddy_min_i64(count, eddy_max_i64(0, work->count / 2 - first));
    line(dtype, values, 0, work->start, work->step, (double)first, 1, near);
    line(dtype, values, near, work->end, -work->step, (double)(work->count - 1 - first - near), -1,
         count - near);
}

static eddy_status linspace_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_linspace *attributes = call->attributes;
    sequence_plan *p = sequence_prepare(call, plan, linspace_values, true);
    p->line = (linspace){.start = attributes->start, .end = attributes->end, .count = p->count};
    p->line.step = p->count > 1 ? (p->line.end - p->line.start) / (double)(p->count - 1) : 0;
    if (p->count == 1)
        p->line.end = p->line.start;
    return EDDY_OK;
}

static void linspace_run(const eddy_kernel_call *call) {
    sequence_run(call, &((const sequence_plan *)call->plan)->line);
}

const eddy_kernel eddy_cpu_empty = {.name = "empty",
                                    .run = empty_run,
                                    .prepare = empty_prepare,
                                    .cost_base_ps = 5000,
                                    .writes_nothing = true};
const eddy_kernel eddy_cpu_full = {.name = "full",
                                   .run = full_run,
                                   .prepare = full_prepare,
                                   .cost_base_ps = 40000,
                                   .cost_element_ps = 50};
const eddy_kernel eddy_cpu_arange = {.name = "arange",
                                     .run = arange_run,
                                     .prepare = arange_prepare,
                                     .cost_base_ps = 50000,
                                     .cost_element_ps = 140};
const eddy_kernel eddy_cpu_linspace = {.name = "linspace",
                                       .run = linspace_run,
                                       .prepare = linspace_prepare,
                                       .cost_base_ps = 80000,
                                       .cost_element_ps = 260};
const eddy_kernel eddy_cpu_eye = {.name = "eye",
                                  .run = eye_run,
                                  .prepare = eye_prepare,
                                  .cost_base_ps = 60000,
                                  .cost_element_ps = 60};
