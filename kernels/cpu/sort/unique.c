/* unique of all elements, optionally with the position of each element among the distinct ones and with their counts.
 * Integers from a small range are counted in a table that has an entry for each number from the smallest to the largest.
 * Other elements are sorted as records (sort_key.h). Values keep their bits: of equal elements, such as 0 and -0, the
 * first one is taken. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/sort/sort_key.h>
#include <kernels/cpu/sort/sort_team.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Elements read and written at a time. */
#define PIECE EDDY_REDUCE_BLOCK
/* Entries that a table may have for each element: bytes if distinct elements are only marked, else i64 counts. Both fit
 * the memory of the records. */
#define MARKS_EACH 8
#define COUNTS_EACH 2

/* Results that unique_count passes to unique_run, at the start of the workspace. */
typedef struct found {
    int64_t least;
    int64_t size; /* of the table, 0: the elements were sorted */
} found;

/* Bytes in front of the rest, which keep it aligned. */
#define FOUND_BYTES 64

/* All elements as one line, in row-major order. */
typedef struct distinct_plan {
    int64_t count;
    eddy_sort_order order;
    int64_t words[]; /* of the walk */
} distinct_plan;

_Static_assert(sizeof(distinct_plan) + EDDY_WALK_WORDS_MOST(1) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct distinct {
    const eddy_op_view *in;
    eddy_walk walk;
    int64_t count;
    bool is_full; /* positions and counts are required */
    eddy_sort_order order;
    found *found;
    void *records;   /* followed by the spare ones */
    uint8_t *marks;  /* the table, in the same memory: whether the number occurs */
    int64_t *counts; /* or how often; later, in unique_run, its position among the distinct ones */
} distinct;

/* For both entries, `count` and `run`. */
static void distinct_init(distinct *work, const eddy_kernel_call *call) {
    const distinct_plan *plan = call->plan;
    work->in = &call->views[0];
    work->count = plan->count;
    work->is_full = call->view_count == 4;
    work->order = plan->order;
    work->found = call->workspace;
    work->records = (char *)call->workspace + FOUND_BYTES;
    work->marks = work->records;
    work->counts = work->records;
    (void)eddy_walk_read(&work->walk, plan->words);
}

/* ---- a table of integers ---- */

/* The next *count elements in row-major order, at least one: in place, or converted to `buffer`. */
static const int64_t *next_integers(const distinct *work, eddy_walk_cursor *cursor, int64_t *buffer,
                                    int64_t *count) {
    const void *from = eddy_chunk_at(work->in->data, work->in->dtype, cursor->offsets[0]);
    int64_t stride = eddy_walk_inner_stride(&work->walk, 0);
    *count = eddy_min_i64(PIECE, eddy_walk_run(&work->walk, cursor));
    eddy_walk_advance(&work->walk, cursor, *count);
    if (work->in->dtype == EDDY_I64 && stride == 1)
        return from;
    eddy_chunk_load(EDDY_I64, buffer, work->in->dtype, from, stride, *count);
    return buffer;
}

/* Decides whether a table is used. */
static void find_range(const distinct *work) {
    uint64_t most_places = (uint64_t)work->count * (work->is_full ? COUNTS_EACH : MARKS_EACH);
    const eddy_reduce_blocks *blocks = eddy_reduce_blocks_of(EDDY_REDUCE_I64);
    int64_t buffer[PIECE], least = INT64_MAX, most = INT64_MIN;
    work->found->size = 0;
    if (eddy_dtype_is_float(work->in->dtype))
        return;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, 0);
    for (int64_t done = 0, count; done < work->count; done += count) {
        const int64_t *x = next_integers(work, &cursor, buffer, &count);
        int64_t low, high;
        blocks->min.block(x, count, 0, &low);
        blocks->max.block(x, count, 0, &high);
        least = eddy_min_i64(least, low);
        most = eddy_max_i64(most, high);
        if ((uint64_t)most - (uint64_t)least >= most_places)
            return;
    }
    work->found->least = least;
    work->found->size = most - least + 1;
}

static int64_t count_by_table(const distinct *work) {
    int64_t buffer[PIECE], least = work->found->least, size = work->found->size, total = 0;
    memset(work->records, 0,
           (size_t)size * (work->is_full ? sizeof(*work->counts) : sizeof(*work->marks)));
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, 0);
    for (int64_t done = 0, count; done < work->count; done += count) {
        const int64_t *x = next_integers(work, &cursor, buffer, &count);
        if (work->is_full)
            for (int64_t i = 0; i < count; i++)
                work->counts[x[i] - least]++;
        else
            for (int64_t i = 0; i < count; i++)
                work->marks[x[i] - least] = 1;
    }
    for (int64_t k = 0; k < size; k++)
        total += work->is_full ? work->counts[k] != 0 : work->marks[k];
    return total;
}

static void put_run(const eddy_op_view *to, int64_t first, const int64_t *from, int64_t count) {
    eddy_chunk_store(to->dtype, eddy_chunk_at(to->data, to->dtype, first * to->strides[0]),
                     to->strides[0], EDDY_I64, from, count);
}

/* Writes the values and their counts; counts in the table become positions. */
static void put_by_table(const distinct *work, const eddy_op_view *values,
                         const eddy_op_view *counts) {
    int64_t numbers[PIECE], occurrences[PIECE], put = 0;
    for (int64_t k = 0; k < work->found->size; k += PIECE) {
        int64_t here = 0, count = eddy_min_i64(PIECE, work->found->size - k);
        for (int64_t i = 0; i < count; i++) {
            int64_t occurs = work->is_full ? work->counts[k + i] : work->marks[k + i];
            numbers[here] = work->found->least + k + i;
            occurrences[here] = occurs;
            if (work->is_full)
                work->counts[k + i] = put + here;
            here += occurs != 0;
        }
        put_run(values, put, numbers, here);
        if (work->is_full)
            put_run(counts, put, occurrences, here);
        put += here;
    }
}

static void put_places_by_table(const distinct *work, const eddy_op_view *inverse) {
    int64_t buffer[PIECE], places[PIECE];
    eddy_walk_cursor cursor, to;
    eddy_walk walk;
    eddy_walk_init(&walk, inverse->rank, inverse->shape);
    eddy_walk_add(&walk, inverse->strides, 1);
    eddy_walk_collapse(&walk);
    eddy_walk_seek(&work->walk, &cursor, 0);
    eddy_walk_seek(&walk, &to, 0);
    for (int64_t done = 0, count; done < work->count; done += count) {
        const int64_t *x = next_integers(work, &cursor, buffer, &count);
        for (int64_t i = 0; i < count; i++)
            places[i] = work->counts[x[i] - work->found->least];
        for (int64_t put = 0, run; put < count; put += run) {
            run = eddy_min_i64(eddy_walk_run(&walk, &to), count - put);
            eddy_chunk_store(EDDY_I64, (int64_t *)inverse->data + to.offsets[0],
                             eddy_walk_inner_stride(&walk, 0), EDDY_I64, places + put, run);
            eddy_walk_advance(&walk, &to, run);
        }
    }
}

/* ---- sorted records ---- */

/* A NaN is not equal to another NaN. */
static bool is_new(const distinct *work, int64_t i) {
    uint64_t key = eddy_sort_key(&work->order, work->records, i);
    return i == 0 || key != eddy_sort_key(&work->order, work->records, i - 1) ||
           (eddy_dtype_is_float(work->in->dtype) && key == eddy_sort_nan_key(&work->order));
}

static int64_t count_by_sorting(const distinct *work, eddy_kernel_team *team) {
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, 0);
    for (int64_t done = 0, run; done < work->count; done += run) {
        run = eddy_walk_run(&work->walk, &cursor);
        eddy_sort_load(&work->order, work->records,
                       eddy_chunk_at(work->in->data, work->in->dtype, cursor.offsets[0]),
                       eddy_walk_inner_stride(&work->walk, 0), done, run);
        eddy_walk_advance(&work->walk, &cursor, run);
    }
    eddy_sort_records_by_team(team, &work->order, work->records,
                              (char *)work->records +
                                  (size_t)work->count * eddy_sort_record_bytes(&work->order),
                              work->count);
    int64_t total = 0;
    for (int64_t i = 0; i < work->count; i++)
        total += is_new(work, i);
    return total;
}

/* Writes element number `flat`. It is read from memory only if its key is ambiguous: each read would be a cache miss. */
static void put_value(const distinct *work, uint64_t key, int64_t flat, void *to) {
    if (eddy_sort_element(&work->order, key, to))
        return;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, flat);
    memcpy(to, eddy_chunk_at(work->in->data, work->in->dtype, cursor.offsets[0]),
           eddy_dtype_bytes(work->in->dtype));
}

static void put_by_records(const distinct *work, const eddy_op_view *values) {
    for (int64_t i = 0, at = 0; i < work->count; i++)
        if (is_new(work, i))
            put_value(work, eddy_sort_key(&work->order, work->records, i),
                      eddy_sort_index(&work->order, work->records, i),
                      eddy_chunk_at(values->data, values->dtype, at++ * values->strides[0]));
}

static void put_places_by_records(const distinct *work, const eddy_op_view *inverse,
                                  const eddy_op_view *counts) {
    eddy_walk walk;
    eddy_walk_init(&walk, inverse->rank, inverse->shape);
    eddy_walk_add(&walk, inverse->strides, 1);
    eddy_walk_collapse(&walk);
    int64_t stride = eddy_walk_inner_stride(&walk, 0), begin = 0;
    for (int64_t i = 0, at = -1; i < work->count; i++) {
        if (is_new(work, i)) {
            at++;
            begin = i;
        }
        ((int64_t *)counts->data)[at * counts->strides[0]] = i + 1 - begin;
        eddy_walk_cursor cursor = {
            .offsets = {eddy_sort_index(&work->order, work->records, i) * stride}};
        if (walk.rank > 1)
            eddy_walk_seek(&walk, &cursor, eddy_sort_index(&work->order, work->records, i));
        ((int64_t *)inverse->data)[cursor.offsets[0]] = at;
    }
}

/* ---- the kernel ---- */

/* Leaves the table or the records in the workspace for unique_run. */
static void unique_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    distinct work;
    distinct_init(&work, call);
    int64_t total = 0;
    if (work.count > 0) {
        find_range(&work);
        total = work.found->size > 0 ? count_by_table(&work) : count_by_sorting(&work, call->team);
    }
    eddy_counted_unique(call, total, shapes);
}

/* views: in, values, and optionally inverse and counts. Late outputs are contiguous, but the kernel does not rely on it. */
static void unique_run(const eddy_kernel_call *call) {
    distinct work;
    distinct_init(&work, call);
    if (work.count == 0)
        return;
    const eddy_op_view *values = &call->views[1], *inverse = NULL, *counts = NULL;
    if (work.is_full) {
        inverse = &call->views[2];
        counts = &call->views[3];
    }
    if (work.found->size > 0) {
        put_by_table(&work, values, counts);
        if (work.is_full)
            put_places_by_table(&work, inverse);
    } else {
        put_by_records(&work, values);
        if (work.is_full)
            put_places_by_records(&work, inverse, counts);
    }
}

/* Floats are sorted. Integers from a small range are counted in a table, which is a few times faster than sorting; an
 * estimate cannot know which one will be used. */
static int64_t element_ps(eddy_dtype dtype) {
    int64_t bytes = (int64_t)eddy_dtype_bytes(dtype);
    if (eddy_dtype_category_of(dtype) == EDDY_CATEGORY_FLOAT)
        return 2000 + 4500 * bytes;
    return bytes == 1 ? 1200 : 5000;
}

static eddy_status unique_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *in = &call->views[0];
    distinct_plan *p = plan->memory;
    eddy_walk walk;
    eddy_walk_init(&walk, in->rank, in->shape);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    p->order = eddy_sort_order_of(in->dtype, p->count, false);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->workspace_bytes = FOUND_BYTES + 2 * (size_t)p->count * eddy_sort_record_bytes(&p->order);
    plan->cost_ps = call->kernel->cost_base_ps + eddy_cost_ps(p->count, element_ps(in->dtype));
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_unique = {.name = "unique",
                                     .run = unique_run,
                                     .prepare = unique_prepare,
                                     .count = unique_count,
                                     .cost_base_ps = 200000};
