/* dropout, its gradient and bernoulli: decisions that are a function of (seed, counter, element number), so that the
 * gradient recomputes the mask instead of reading one. Element i uses the number that `rand` has at i. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/cpu/walk.h>
#include <kernels/random.h>

/* A multiple of the numbers that one call of a block function makes. */
#define SLICE_ELEMENTS 16384
#define BATCH (4 * EDDY_RANDOM_BLOCKS)
/* Elements that fit a batch at any offset within a Philox block. */
#define STRETCH (BATCH - 4)
#define TILE_ROWS 16

typedef union numbers {
    float f32[BATCH];
    double f64[BATCH];
} numbers;

struct decision;

/* Decides `count` elements from number `first` on, in place; first % 4 + count is BATCH at most. */
typedef void decide_fn(const struct decision *work, numbers *x, int64_t first, int64_t count);

typedef struct decision_plan {
    void (*slice)(void *context, int64_t begin, int64_t end);
    int64_t count, grain; /* what slices number: elements or stretches */
    decide_fn *decide;
    eddy_dtype compute;
    int64_t words[]; /* of the walk */
} decision_plan;

_Static_assert(sizeof(decision_plan) + EDDY_WALK_WORDS_MOST(2) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct decision {
    const eddy_kernel_call *call;
    const decision_plan *plan;
    const eddy_op_view *in, *out;
    eddy_walk walk; /* in, out: in the order of elements */
    uint64_t seed, counter;
    /* For dropout: the factor of elements that are kept, and the smallest number that keeps one. Of the run, not of the plan: a program may be run with
     * another probability. */
    double scale;
    float least;
    eddy_dtype compute;
} decision;

/* Kept elements are scaled up; dropped elements become 0, NaN included. */
static void drop(const decision *work, numbers *x, int64_t first, int64_t count) {
    float uniform[BATCH], least = work->least;
    const float *u = uniform + first % 4;
    double scale = work->scale;
    float scale32 = (float)scale;
    eddy_cpu_random_blocks()->uniform_f32(uniform, EDDY_DROP_BITS, work->seed, work->counter,
                                          (uint64_t)first / 4);
    if (work->compute == EDDY_F64)
        for (int64_t i = 0; i < count; i++)
            x->f64[i] = u[i] >= least ? x->f64[i] * scale : 0;
    else
        for (int64_t i = 0; i < count; i++)
            x->f32[i] = u[i] >= least ? x->f32[i] * scale32 : 0;
}

/* x = u < x; false if an x is not a probability. */
#define TOSS(name, real)                                                                           \
    static bool toss_##name(real *restrict x, const real *restrict u, int64_t count) {             \
        int fit = 1;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            fit &= (x[i] >= 0) & (x[i] <= 1);                                                      \
            x[i] = (real)(u[i] < x[i]);                                                            \
        }                                                                                          \
        return fit;                                                                                \
    }

TOSS(f32, float)
TOSS(f64, double)

static void toss(const decision *work, numbers *x, int64_t first, int64_t count) {
    numbers uniform, given = *x;
    const eddy_random_blocks *blocks = eddy_cpu_random_blocks();
    bool fit;
    if (work->compute == EDDY_F64) {
        for (int64_t half = 0; half < 2; half++)
            blocks->uniform_f64(uniform.f64 + half * BATCH / 2, work->seed, work->counter,
                                (uint64_t)first / 2 + (uint64_t)half * EDDY_RANDOM_BLOCKS);
        fit = toss_f64(x->f64, uniform.f64 + first % 2, count);
    } else {
        blocks->uniform_f32(uniform.f32, EDDY_DROP_BITS, work->seed, work->counter,
                            (uint64_t)first / 4);
        fit = toss_f32(x->f32, uniform.f32 + first % 4, count);
    }
    for (int64_t i = 0; !fit && i < count; i++) {
        double p = work->compute == EDDY_F64 ? given.f64[i] : (double)given.f32[i];
        if (!(p >= 0 && p <= 1))
            eddy_kernel_fail(work->call, EDDY_INVALID_ARGUMENT, first + i, 0, 0);
    }
}

static void decide_slice(void *context, int64_t begin, int64_t end) {
    const decision *work = context;
    eddy_dtype dtype = work->in->dtype;
    numbers x;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    for (; begin < end; begin += BATCH) {
        int64_t count = eddy_min_i64(BATCH, end - begin);
        eddy_walk_cursor from = cursor;
        for (int64_t done = 0, run; done < count; done += run) {
            run = eddy_min_i64(eddy_walk_run(&work->walk, &from), count - done);
            eddy_chunk_load(work->compute, eddy_chunk_at(&x, work->compute, done), dtype,
                            eddy_chunk_at(work->in->data, dtype, from.offsets[0]),
                            eddy_walk_inner_stride(&work->walk, 0), run);
            eddy_walk_advance(&work->walk, &from, run);
        }
        work->plan->decide(work, &x, begin, count);
        for (int64_t done = 0, run; done < count; done += run) {
            run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
            eddy_chunk_store(dtype, eddy_chunk_at(work->out->data, dtype, cursor.offsets[1]),
                             eddy_walk_inner_stride(&work->walk, 1), work->compute,
                             eddy_chunk_at(&x, work->compute, done), run);
            eddy_walk_advance(&work->walk, &cursor, run);
        }
    }
}

/* Whether neighbours in memory are elements of neighbouring rows (channels last): processing one element after another
 * would load each cache line once per row. */
static bool lies_across(const eddy_walk *walk) {
    int32_t inner = walk->rank - 1;
    return walk->rank >= 2 && walk->strides[0][inner] != 1 && walk->strides[0][inner - 1] == 1 &&
           walk->dims[inner] > STRETCH && walk->dims[inner - 1] >= TILE_ROWS;
}

/* Decides `count` elements of `rows` rows, from element `first` on: they are transposed into a buffer, decided there, and
 * transposed back. */
static void decide_tile(const decision *work, int64_t first, int64_t rows, int64_t count) {
    numbers buffer[TILE_ROWS];
    int32_t inner = work->walk.rank - 1;
    const int64_t shape[] = {rows, count}, turned_strides[] = {BATCH, 1};
    const int64_t *in_strides = &work->walk.strides[0][inner - 1],
                  *out_strides = &work->walk.strides[1][inner - 1];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, first);
    eddy_dtype dtype = work->in->dtype;
    eddy_op_view from = {eddy_chunk_at(work->in->data, dtype, cursor.offsets[0]), shape, in_strides,
                         dtype, 2};
    eddy_op_view to = {eddy_chunk_at(work->out->data, dtype, cursor.offsets[1]), shape, out_strides,
                       dtype, 2};
    eddy_op_view turned = {buffer, shape, turned_strides, work->compute, 2};
    eddy_copy_view(NULL, &from, &turned);
    for (int64_t row = 0; row < rows; row++)
        work->plan->decide(work, eddy_chunk_at(buffer, work->compute, row * BATCH),
                           first + row * work->walk.dims[inner], count);
    eddy_copy_view(NULL, &turned, &to);
}

/* Slices number stretches; a stretch covers all neighbouring rows. */
static void decide_stretches(void *context, int64_t begin, int64_t end) {
    const decision *work = context;
    int64_t length = work->walk.dims[work->walk.rank - 1],
            rows = work->walk.dims[work->walk.rank - 2];
    int64_t stretches = (length + STRETCH - 1) / STRETCH;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i % stretches * STRETCH, count = eddy_min_i64(STRETCH, length - at);
        for (int64_t row = 0; row < rows; row += TILE_ROWS)
            decide_tile(work, (i / stretches * rows + row) * length + at,
                        eddy_min_i64(TILE_ROWS, rows - row), count);
    }
}

static void cut_decision(decision_plan *p, const eddy_walk *walk) {
    p->slice = decide_slice;
    p->count = eddy_walk_count(walk);
    p->grain = SLICE_ELEMENTS;
    if (p->count <= SLICE_ELEMENTS || !lies_across(walk))
        return;
    int64_t length = walk->dims[walk->rank - 1], rows = walk->dims[walk->rank - 2];
    p->slice = decide_stretches;
    p->count = p->count / (rows * length) * ((length + STRETCH - 1) / STRETCH);
    p->grain = eddy_max_i64(1, SLICE_ELEMENTS / (rows * STRETCH));
}

static eddy_status decision_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                    decide_fn *decide) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    decision_plan *p = plan->memory;
    eddy_walk walk;
    eddy_walk_init(&walk, in->rank, in->shape);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_collapse(&walk);
    cut_decision(p, &walk);
    p->decide = decide;
    p->compute = eddy_chunk_compute_dtype(in->dtype);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static eddy_status dropout_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return decision_prepare(call, plan, drop);
}

static eddy_status bernoulli_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return decision_prepare(call, plan, toss);
}

/* probability: of being dropped. */
static void decision_run(const eddy_kernel_call *call, uint64_t seed, uint64_t counter,
                         double probability) {
    const decision_plan *plan = call->plan;
    decision work; /* set one by one: a walk is too large to be cleared for nothing */
    work.call = call;
    work.plan = plan;
    work.in = &call->views[0];
    work.out = &call->views[1];
    work.seed = seed;
    work.counter = counter;
    work.scale = eddy_random_drop_scale(probability);
    work.least = eddy_random_drop_least(probability);
    work.compute = plan->compute;
    (void)eddy_walk_read(&work.walk, plan->words);
    if (plan->count > plan->grain)
        call->team->parallel_for(call->team, plan->count, plan->grain, plan->slice, &work);
    else if (plan->count > 0)
        plan->slice(&work, 0, plan->count);
}

static void dropout_run(const eddy_kernel_call *call) {
    const eddy_attributes_dropout *attributes = call->attributes;
    decision_run(call, attributes->seed, attributes->counter, attributes->p);
}

static void dropout_backward_run(const eddy_kernel_call *call) {
    const eddy_attributes_dropout_backward *attributes = call->attributes;
    decision_run(call, (uint64_t)attributes->seed, (uint64_t)attributes->counter, attributes->p);
}

static void bernoulli_run(const eddy_kernel_call *call) {
    const eddy_attributes_random *attributes = call->attributes;
    decision_run(call, attributes->seed, attributes->counter, 0);
}

const eddy_kernel eddy_cpu_dropout = {.name = "dropout",
                                      .run = dropout_run,
                                      .prepare = dropout_prepare,
                                      .cost_base_ps = 150000,
                                      .cost_element_ps = 1600};
const eddy_kernel eddy_cpu_dropout_backward = {.name = "dropout_backward",
                                               .run = dropout_backward_run,
                                               .prepare = dropout_prepare,
                                               .cost_base_ps = 150000,
                                               .cost_element_ps = 1600};
const eddy_kernel eddy_cpu_bernoulli = {.name = "bernoulli",
                                        .run = bernoulli_run,
                                        .prepare = bernoulli_prepare,
                                        .cost_base_ps = 150000,
                                        .cost_element_ps = 2000};
