/* rand, randn, randperm, randint. Element i comes from Philox block i / 4 (f32 and narrower) or i / 2 (f64) of (seed, counter), in
 * row-major order of the output, whatever the slices and strides. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/cpu/walk.h>
#include <kernels/random.h>

#define INLINE static inline __attribute__((always_inline))

/* A multiple of the numbers that one call of a block function makes. */
#define SLICE_ELEMENTS 16384

/* Plan of rand, randn and randint. */
typedef struct random_plan {
    int64_t count;
    int64_t words[]; /* of the walk */
} random_plan;

_Static_assert(sizeof(random_plan) + EDDY_WALK_WORDS_MOST(1) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

static eddy_status random_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *out = &call->views[0];
    random_plan *p = plan->memory;
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps =
        eddy_cost_flat_ps(call->kernel, p->count, eddy_cost_bytes(p->count, out->dtype));
    return EDDY_OK;
}

static void random_run_slices(const eddy_kernel_call *call, void (*slice)(void *, int64_t, int64_t),
                              void *work) {
    const random_plan *plan = call->plan;
    if (plan->count > SLICE_ELEMENTS)
        call->team->parallel_for(call->team, plan->count, SLICE_ELEMENTS, slice, work);
    else if (plan->count > 0)
        slice(work, 0, plan->count);
}

typedef struct random_fill {
    const eddy_op_view *out;
    const eddy_attributes_random *attributes;
    eddy_walk walk;
    bool is_normal;
} random_fill;

typedef union numbers {
    float f32[4 * EDDY_RANDOM_BLOCKS];
    double f64[2 * EDDY_RANDOM_BLOCKS];
} numbers;

static int uniform_bits(eddy_dtype dtype) {
    return dtype == EDDY_F16    ? EDDY_RANDOM_BITS_F16
           : dtype == EDDY_BF16 ? EDDY_RANDOM_BITS_BF16
                                : EDDY_RANDOM_BITS_F32;
}

static void make(const random_fill *work, int64_t first, numbers *made) {
    const eddy_random_blocks *blocks = eddy_cpu_random_blocks();
    uint64_t seed = work->attributes->seed, counter = work->attributes->counter;
    if (work->out->dtype == EDDY_F64) {
        uint64_t block = (uint64_t)first / 2;
        if (work->is_normal)
            blocks->normal_f64(made->f64, seed, counter, block);
        else
            blocks->uniform_f64(made->f64, seed, counter, block);
    } else {
        uint64_t block = (uint64_t)first / 4;
        if (work->is_normal)
            blocks->normal_f32(made->f32, seed, counter, block);
        else
            blocks->uniform_f32(made->f32, uniform_bits(work->out->dtype), seed, counter, block);
    }
}

static void random_fill_slice(void *context, int64_t begin, int64_t end) {
    const random_fill *work = context;
    eddy_dtype dtype = work->out->dtype, compute = dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32;
    int64_t batch = (dtype == EDDY_F64 ? 2 : 4) * EDDY_RANDOM_BLOCKS,
            stride = eddy_walk_inner_stride(&work->walk, 0);
    numbers made;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    for (; begin < end; begin += batch) {
        int64_t count = eddy_min_i64(batch, end - begin);
        make(work, begin, &made);
        for (int64_t done = 0, run; done < count; done += run) {
            run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
            eddy_chunk_store(dtype, eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]),
                             stride, compute, eddy_chunk_at(&made, compute, done), run);
            eddy_walk_advance(&work->walk, &cursor, run);
        }
    }
}

static void random_run(const eddy_kernel_call *call, bool is_normal) {
    random_fill work; /* set one by one: a walk is too large to be cleared for nothing */
    work.out = &call->views[0];
    work.attributes = call->attributes;
    work.is_normal = is_normal;
    (void)eddy_walk_read(&work.walk, ((const random_plan *)call->plan)->words);
    random_run_slices(call, random_fill_slice, &work);
}

static void rand_run(const eddy_kernel_call *call) {
    random_run(call, false);
}

static void randn_run(const eddy_kernel_call *call) {
    random_run(call, true);
}

/* For each of the steps first .. first + EDDY_RANDOM_BLOCKS - 1: a number below step + 1. */
static void draw_growing(const eddy_attributes_random *attributes, uint64_t first, int64_t *drawn) {
    uint32_t words[EDDY_RANDOM_BLOCKS][4];
    uint64_t seed = attributes->seed, counter = attributes->counter;
    eddy_cpu_random_blocks()->words(words[0], seed, counter, first);
    for (uint64_t i = 0; i < EDDY_RANDOM_BLOCKS; i++)
        drawn[i] = (int64_t)eddy_random_below(seed, counter, first + i + 1, first + i, words[i]);
}

INLINE int64_t index_at(bool is_wide, const void *out, int64_t at) {
    return is_wide ? ((const int64_t *)out)[at] : ((const int32_t *)out)[at];
}

INLINE void put_index(bool is_wide, void *out, int64_t at, int64_t index) {
    if (is_wide)
        ((int64_t *)out)[at] = index;
    else
        ((int32_t *)out)[at] = (int32_t)index;
}

INLINE void change_places(bool is_wide, void *out, int64_t a, int64_t b) {
    int64_t kept = index_at(is_wide, out, a);
    put_index(is_wide, out, a, index_at(is_wide, out, b));
    put_index(is_wide, out, b, kept);
}

/* Fisher and Yates' shuffle, from the end (R. Durstenfeld, 1964). */
INLINE void shuffle(bool is_wide, const eddy_attributes_random *attributes, void *out,
                    int64_t stride, int64_t count) {
    int64_t drawn[EDDY_RANDOM_BLOCKS];
    for (int64_t i = 0; i < count; i++)
        put_index(is_wide, out, i * stride, i);
    for (int64_t i = count - 1; i > 0;) {
        int64_t first = i / EDDY_RANDOM_BLOCKS * EDDY_RANDOM_BLOCKS;
        draw_growing(attributes, (uint64_t)first, drawn);
        for (; i >= first && i > 0; i--)
            change_places(is_wide, out, i * stride, drawn[i - first] * stride);
    }
}

static void randperm_run(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[0];
    if (out->shape[0] == 0)
        return;
    if (out->dtype == EDDY_I64)
        shuffle(true, call->attributes, out->data, out->strides[0], out->shape[0]);
    else
        shuffle(false, call->attributes, out->data, out->strides[0], out->shape[0]);
}

typedef struct randint {
    const eddy_op_view *out;
    const eddy_attributes_randint *attributes;
    eddy_walk walk;
} randint;

/* Numbers of the steps first .. first + EDDY_RANDOM_BLOCKS - 1. */
static void draw(const eddy_attributes_randint *attributes, uint64_t first, int64_t *drawn) {
    const eddy_random_blocks *blocks = eddy_cpu_random_blocks();
    uint64_t seed = attributes->seed, counter = attributes->counter;
    uint64_t range = (uint64_t)attributes->high - (uint64_t)attributes->low;
    if (range <= UINT32_MAX && blocks->below(drawn, attributes->low, (uint32_t)range,
                                             (uint32_t)(-range % range), seed, counter, first))
        return;
    uint32_t words[EDDY_RANDOM_BLOCKS][4];
    blocks->words(words[0], seed, counter, first);
    for (uint64_t i = 0; i < EDDY_RANDOM_BLOCKS; i++)
        drawn[i] = (int64_t)((uint64_t)attributes->low +
                             eddy_random_below(seed, counter, range, first + i, words[i]));
}

/* Element i is the number below high - low of step i, whatever the dtype. */
static void randint_slice(void *context, int64_t begin, int64_t end) {
    const randint *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t drawn[EDDY_RANDOM_BLOCKS], stride = eddy_walk_inner_stride(&work->walk, 0);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    for (; begin < end; begin += EDDY_RANDOM_BLOCKS) {
        int64_t count = eddy_min_i64(EDDY_RANDOM_BLOCKS, end - begin);
        draw(work->attributes, (uint64_t)begin, drawn);
        for (int64_t done = 0, run; done < count; done += run) {
            run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
            eddy_chunk_store(dtype, eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]),
                             stride, EDDY_I64, drawn + done, run);
            eddy_walk_advance(&work->walk, &cursor, run);
        }
    }
}

static void randint_run(const eddy_kernel_call *call) {
    randint work;
    work.out = &call->views[0];
    work.attributes = call->attributes;
    (void)eddy_walk_read(&work.walk, ((const random_plan *)call->plan)->words);
    random_run_slices(call, randint_slice, &work);
}

/* Each element is swapped with another one, anywhere in memory. */
static eddy_status randperm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = call->kernel->cost_base_ps +
                    eddy_cost_ps(call->views[0].shape[0], call->kernel->cost_element_ps) +
                    30 * eddy_cost_far_views_ps(call);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_randint = {.name = "randint",
                                      .run = randint_run,
                                      .prepare = random_prepare,
                                      .cost_base_ps = 150000,
                                      .cost_element_ps = 3000};
const eddy_kernel eddy_cpu_rand = {.name = "rand",
                                   .run = rand_run,
                                   .prepare = random_prepare,
                                   .cost_base_ps = 150000,
                                   .cost_element_ps = 1000};
const eddy_kernel eddy_cpu_randn = {.name = "randn",
                                    .run = randn_run,
                                    .prepare = random_prepare,
                                    .cost_base_ps = 300000,
                                    .cost_element_ps = 2000};
const eddy_kernel eddy_cpu_randperm = {.name = "randperm",
                                       .run = randperm_run,
                                       .prepare = randperm_prepare,
                                       .cost_base_ps = 50000,
                                       .cost_element_ps = 10500};
