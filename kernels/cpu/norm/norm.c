/* layer_norm, rms_norm, group_norm and batch_norm: (x - mean) / deviation * weight + bias, and their gradients. One plan
 * serves all (norm_plan.h). Places of up to EDDY_NORM_CHUNK elements are read and written once, longer ones pass twice; no
 * statistics are kept for the gradients, which take them again from x. batch_norm of channels-last images goes by rows. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/norm/norm_plan.h>
#include <math.h>

#define SLICE_ELEMENTS 32768
/* A weight's gradient is summed over blocks of places, whose number depends on the shape alone. */
#define BLOCKS_MAX 64
#define BLOCK_ELEMENTS 65536
#define PARTIALS_MAX (1 << 20)

typedef enum family { LAYER, RMS, GROUP, BATCH } family;

typedef struct norm {
    const eddy_kernel_call *call;
    eddy_norm_plan *plan; /* apart: 6 KB, of which a call writes little, are not to be cleared for it */
    family family;
    double eps;
    const void *weights, *biases;            /* of the compute type, in the workspace */
    const void *means, *scales;              /* the same, where rows of channels are normalised */
    const eddy_op_view *mean, *variance;     /* batch_norm's running statistics; NULL elsewhere */
    bool is_given;                           /* they are what is used; otherwise they are updated */
    double momentum;
    double *partials; /* [block_count][weight_count] */
    int64_t block_count;
} norm;

static void make_plan(norm *work, family f, const eddy_kernel_call *call, const eddy_op_view *const *views,
                      int32_t count) {
    work->call = call;
    work->family = f;
    if (f == LAYER || f == RMS) {
        const eddy_attributes_layer_norm *attributes = call->attributes;
        work->eps = attributes->eps;
        eddy_norm_plan_last_axes(work->plan, views, count, attributes->axis_count);
    } else if (f == GROUP) {
        const eddy_attributes_group_norm *attributes = call->attributes;
        work->eps = attributes->eps;
        eddy_norm_plan_groups(work->plan, views, count, attributes->groups);
    } else {
        const eddy_attributes_batch_norm *attributes = call->attributes;
        work->eps = attributes->eps;
        work->momentum = attributes->momentum;
        eddy_norm_plan_channels(work->plan, views, count);
    }
}

static void norm_run_slices(norm *work, int64_t count, int64_t grain, void (*slice)(void *, int64_t, int64_t)) {
    if (count <= grain)
        slice(work, 0, count);
    else
        work->call->team->parallel_for(work->call->team, count, grain, slice, work);
}

static int64_t place_grain(const norm *work) {
    return eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, work->plan->element_count));
}

/* All elements of a view, or `value` as often as it has none, at *to; the end of them. */
static void *gather(const eddy_op_view *view, eddy_dtype compute, int64_t count, double value, void *to) {
    if (eddy_view_is_absent(view)) {
        double f64 = value;
        float f32 = (float)value;
        if (count > 0)
            eddy_chunk_fill(to, 1, compute == EDDY_F64 ? 8 : 4, compute == EDDY_F64 ? (void *)&f64 : (void *)&f32,
                            count);
        return eddy_chunk_at(to, compute, count);
    }
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    eddy_walk_collapse(&walk);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&walk, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_walk_run(&walk, &cursor);
        eddy_chunk_load(compute, eddy_chunk_at(to, compute, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, cursor.offsets[0]), eddy_walk_inner_stride(&walk, 0),
                        run);
        eddy_walk_advance(&walk, &cursor, run);
    }
    return eddy_chunk_at(to, compute, count);
}

static size_t weights_bytes(const eddy_norm_plan *plan) {
    return ((size_t)plan->weight_count * 2 * sizeof(double) + 63) / 64 * 64;
}

static void *after(const eddy_kernel_call *call, size_t bytes) {
    return (char *)call->workspace + bytes;
}

static double element_at(const eddy_op_view *view, int64_t i) {
    return eddy_dtype_load_f64(view->dtype, eddy_chunk_at(view->data, view->dtype, i * view->strides[0]));
}

static void blend(const eddy_op_view *view, int64_t i, double momentum, double value) {
    eddy_dtype_store_f64(view->dtype, eddy_chunk_at(view->data, view->dtype, i * view->strides[0]),
                         (1 - momentum) * element_at(view, i) + momentum * value);
}

/* ---- forward ---- */

static void update_statistics(const norm *work, int64_t place, const eddy_norm_moments *moments) {
    double count = (double)work->plan->element_count;
    if (work->mean && !eddy_view_is_absent(work->mean))
        blend(work->mean, place, work->momentum, moments->mean);
    if (work->variance && !eddy_view_is_absent(work->variance))
        blend(work->variance, place, work->momentum, moments->squares / (count - 1));
}

static eddy_norm_moments forward_moments(const norm *work, int64_t place, const int64_t *offsets,
                                         eddy_norm_chunk *chunk, double *scale) {
    int64_t count = work->plan->element_count;
    eddy_norm_moments moments = {0};
    if (work->is_given) {
        moments.mean = element_at(work->mean, place);
        *scale = 1 / sqrt(element_at(work->variance, place) + work->eps);
        return moments;
    }
    moments = eddy_norm_place_moments(work->plan, 0, offsets, work->family != RMS, chunk);
    *scale = 1 / sqrt(moments.squares / (double)count + work->eps);
    update_statistics(work, place, &moments);
    return moments;
}

static void norm_forward_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = work->plan;
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK && !work->is_given;
    eddy_norm_chunk x, y, weights, biases;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->places, &cursor, first);
    for (int64_t place = first; place < last; place++) {
        double scale;
        eddy_norm_moments moments = forward_moments(work, place, cursor.offsets, &x, &scale);
        for (int64_t begin = 0, count, step; begin < plan->element_count; begin += count) {
            count = eddy_norm_run(plan, begin, &step);
            int64_t spread = step ? count : 1;
            const void *from = is_kept ? eddy_chunk_at(moments.kept, plan->compute, begin)
                                       : eddy_norm_read(plan, 0, cursor.offsets, begin, count, &x);
            plan->ops->apply(eddy_norm_target(plan, 1, cursor.offsets, begin, count, &y), from,
                             eddy_norm_weights(plan, work->weights, place, begin, spread, &weights),
                             eddy_norm_weights(plan, work->biases, place, begin, spread, &biases), step, moments.mean,
                             scale, count);
            eddy_norm_store(plan, 1, cursor.offsets, begin, count, &y);
        }
        eddy_walk_next(&plan->places, &cursor, plan->places.rank);
    }
}

/* Rows of the compute type with a weight for each element, as layer_norm and rms_norm mostly meet them: so of all views. */
static bool goes_direct(const norm *work, int views) {
    const eddy_norm_plan *plan = work->plan;
    if (work->family != LAYER && work->family != RMS)
        return false;
    for (int o = 0; o < views; o++)
        if (plan->views[o]->dtype != plan->compute || plan->elements.rank > 1 ||
            eddy_walk_inner_stride(&plan->elements, o) != 1)
            return false;
    return plan->element_count <= EDDY_NORM_CHUNK && plan->places.rank <= 1;
}

/* A view's row number `first`. */
static void *row_of(const eddy_norm_plan *plan, int view, int64_t first, int64_t stride) {
    const eddy_op_view *of = plan->views[view];
    return eddy_chunk_at(of->data, of->dtype, first * stride);
}

static void direct_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = work->plan;
    int64_t from = eddy_walk_inner_stride(&plan->places, 0), to = eddy_walk_inner_stride(&plan->places, 1);
    eddy_norm_rows rows = {.to = row_of(plan, 1, first, to),
                           .from = row_of(plan, 0, first, from),
                           .to_stride = to,
                           .from_stride = from,
                           .count = last - first};
    plan->ops->places(&rows, work->weights, work->biases, work->eps, work->family == LAYER, plan->element_count);
}

/* Channels that lie side by side are normalised row by row as they lie, with no copy. */
static bool goes_by_rows(const norm *work) {
    const eddy_norm_plan *plan = work->plan;
    return work->family == BATCH && plan->places.rank == 1 && plan->element_count > 0 &&
           (eddy_norm_is_scattered(plan, 0) || eddy_norm_is_scattered(plan, 1));
}

/* Places whose cache lines are still near when the next of them is read. */
#define NEIGHBOURS 16

static void set_real(const norm *work, const void *reals, int64_t i, double value) {
    if (work->plan->compute == EDDY_F64)
        ((double *)reals)[i] = value;
    else
        ((float *)reals)[i] = (float)value;
}

static void neighbour_moments(const norm *work, int64_t first, int64_t count, eddy_norm_moments *totals) {
    const eddy_norm_plan *plan = work->plan;
    eddy_norm_chunk x;
    for (int64_t p = 0; p < count; p++)
        totals[p] = (eddy_norm_moments){0};
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t some = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        for (int64_t p = 0; p < count; p++) {
            eddy_norm_moments part;
            int64_t offset = (first + p) * plan->places.strides[0][0];
            const void *from = eddy_norm_read(plan, 0, &offset, begin, some, &x);
            plan->ops->moments(from, some, &part.mean, &part.squares);
            eddy_norm_join(&totals[p], begin, &part, some);
        }
    }
}

/* The mean and the scale of each place. */
static void statistics_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    eddy_norm_moments totals[NEIGHBOURS];
    for (int64_t place = first; place < last; place += NEIGHBOURS) {
        int64_t count = eddy_min_i64(NEIGHBOURS, last - place);
        if (!work->is_given)
            neighbour_moments(work, place, count, totals);
        for (int64_t p = 0; p < count; p++) {
            double mean = work->is_given ? element_at(work->mean, place + p) : totals[p].mean;
            double variance = work->is_given ? element_at(work->variance, place + p)
                                             : totals[p].squares / (double)work->plan->element_count;
            set_real(work, work->means, place + p, mean);
            set_real(work, work->scales, place + p, 1 / sqrt(variance + work->eps));
            if (!work->is_given)
                update_statistics(work, place + p, &totals[p]);
        }
    }
}

static void rows_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = work->plan;
    const eddy_op_view *from = plan->views[0], *to = plan->views[1];
    int64_t step = plan->places.strides[0][0], to_step = plan->places.strides[1][0];
    eddy_norm_chunk x;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->elements, &cursor, first);
    for (int64_t row = first; row < last; row++) {
        for (int64_t c = 0; c < plan->place_count; c += EDDY_NORM_CHUNK) {
            int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->place_count - c);
            eddy_chunk_load(plan->compute, &x, from->dtype,
                            eddy_chunk_at(from->data, from->dtype, cursor.offsets[0] + c * step), step, count);
            plan->ops->apply_each(
                &x, eddy_chunk_at(work->weights, plan->compute, c), eddy_chunk_at(work->biases, plan->compute, c),
                eddy_chunk_at(work->means, plan->compute, c), eddy_chunk_at(work->scales, plan->compute, c), count);
            eddy_chunk_store(to->dtype, eddy_chunk_at(to->data, to->dtype, cursor.offsets[1] + c * to_step), to_step,
                             plan->compute, &x, count);
        }
        eddy_walk_next(&plan->elements, &cursor, plan->elements.rank);
    }
}

static void forward_by_rows(norm *work) {
    const eddy_norm_plan *plan = work->plan;
    work->means = after(work->call, weights_bytes(plan));
    work->scales = eddy_chunk_at(work->means, plan->compute, plan->place_count);
    int64_t grain = (place_grain(work) + NEIGHBOURS - 1) / NEIGHBOURS * NEIGHBOURS;
    norm_run_slices(work, plan->place_count, grain, statistics_slice);
    norm_run_slices(work, plan->element_count, eddy_max_i64(1, SLICE_ELEMENTS / plan->place_count), rows_slice);
}

static void forward(norm *work, family f, const eddy_kernel_call *call, const eddy_op_view *weight,
                    const eddy_op_view *bias) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[call->view_count - 1]};
    eddy_norm_plan plan;
    work->plan = &plan;
    make_plan(work, f, call, views, 2);
    if (work->plan->place_count == 0 || work->plan->element_count == 0)
        return;
    work->weights = call->workspace;
    work->biases = gather(weight, work->plan->compute, work->plan->weight_count, 1, call->workspace);
    gather(bias, work->plan->compute, work->plan->weight_count, 0, (void *)work->biases);
    if (goes_by_rows(work)) {
        forward_by_rows(work);
        return;
    }
    eddy_norm_turn(work->plan, 1, call->team, after(call, weights_bytes(work->plan)));
    norm_run_slices(work, work->plan->place_count, place_grain(work), goes_direct(work, 2) ? direct_slice : norm_forward_slice);
    eddy_norm_turn_back(work->plan, 1, call->team);
}

static const eddy_op_view absent = {.rank = -1};

static void layer_norm_run(const eddy_kernel_call *call) {
    norm work = {0};
    forward(&work, LAYER, call, &call->views[1], &call->views[2]);
}

static void rms_norm_run(const eddy_kernel_call *call) {
    norm work = {0};
    forward(&work, RMS, call, &call->views[1], &absent);
}

static void group_norm_run(const eddy_kernel_call *call) {
    norm work = {0};
    forward(&work, GROUP, call, &call->views[1], &call->views[2]);
}

static void batch_norm_run(const eddy_kernel_call *call) {
    norm work = {.mean = &call->views[1], .variance = &call->views[2], .is_given = true};
    forward(&work, BATCH, call, &call->views[3], &call->views[4]);
}

static void batch_norm_training_run(const eddy_kernel_call *call) {
    norm work = {.mean = &call->views[1], .variance = &call->views[2]};
    forward(&work, BATCH, call, &call->views[3], &call->views[4]);
}

/* ---- the gradient of x ---- */

/* What the gradient of a place needs: sums of grad * weight, and of that times the distance from the mean. One pass: each
 * chunk counts its distances from its own mean, which is corrected once the mean of all is known. */
typedef struct slopes {
    eddy_norm_moments moments;
    double sum, product;
    const void *kept; /* the gradient; both where the place is one chunk */
} slopes;

static slopes place_slopes(const norm *work, int64_t place, const int64_t *offsets, eddy_norm_chunk *g,
                           eddy_norm_chunk *x, eddy_norm_chunk *weights) {
    const eddy_norm_plan *plan = work->plan;
    slopes total = {0};
    double first = 0, correction = 0;
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        const void *grad = total.kept = eddy_norm_read(plan, 0, offsets, begin, count, g);
        const void *from = total.moments.kept = eddy_norm_read(plan, 1, offsets, begin, count, x);
        const void *w = eddy_norm_weights(plan, work->weights, place, begin, count, weights);
        eddy_norm_moments part = {0};
        double sums[2];
        if (work->family == RMS)
            part.squares = plan->ops->square_sum(from, count);
        else
            plan->ops->moments(from, count, &part.mean, &part.squares);
        plan->ops->products(grad, from, w, part.mean, count, sums);
        if (begin == 0)
            first = part.mean;
        double share = (double)count / (double)(begin + count), distance = part.mean - total.moments.mean;
        total.moments.squares += part.squares + distance * distance * share * (double)begin;
        total.moments.mean += distance * share;
        total.sum += sums[0];
        total.product += sums[1];
        correction += (part.mean - first) * sums[0];
    }
    if (work->family != RMS)
        total.product += correction - (total.moments.mean - first) * total.sum;
    return total;
}

static void norm_backward_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = work->plan;
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK;
    double n = (double)plan->element_count;
    eddy_norm_chunk g, x, y, weights;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->places, &cursor, first);
    for (int64_t place = first; place < last; place++) {
        slopes total = place_slopes(work, place, cursor.offsets, &g, &x, &weights);
        double scale = 1 / sqrt(total.moments.squares / n + work->eps);
        double level = work->family == RMS ? 0 : total.sum / n, slope = scale * scale * total.product / n;
        for (int64_t begin = 0, count, step; begin < plan->element_count; begin += count) {
            count = eddy_norm_run(plan, begin, &step);
            const void *grad = is_kept ? eddy_chunk_at(total.kept, plan->compute, begin)
                                       : eddy_norm_read(plan, 0, cursor.offsets, begin, count, &g);
            const void *from = is_kept ? eddy_chunk_at(total.moments.kept, plan->compute, begin)
                                       : eddy_norm_read(plan, 1, cursor.offsets, begin, count, &x);
            plan->ops->backward(eddy_norm_target(plan, 2, cursor.offsets, begin, count, &y), grad, from,
                                eddy_norm_weights(plan, work->weights, place, begin, step ? count : 1, &weights), step,
                                total.moments.mean, scale, level, slope, count);
            eddy_norm_store(plan, 2, cursor.offsets, begin, count, &y);
        }
        eddy_walk_next(&plan->places, &cursor, plan->places.rank);
    }
}

static void direct_back_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = work->plan;
    int64_t grad = eddy_walk_inner_stride(&plan->places, 0), from = eddy_walk_inner_stride(&plan->places, 1);
    int64_t to = eddy_walk_inner_stride(&plan->places, 2);
    eddy_norm_rows rows = {.to = row_of(plan, 2, first, to),
                           .from = row_of(plan, 1, first, from),
                           .grad = row_of(plan, 0, first, grad),
                           .to_stride = to,
                           .from_stride = from,
                           .grad_stride = grad,
                           .count = last - first};
    plan->ops->places_back(&rows, work->weights, work->eps, work->family == LAYER, plan->element_count);
}

/* views: grad, x, weight or absent, dx */
static void backward(family f, const eddy_kernel_call *call) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1], &call->views[3]};
    eddy_norm_plan plan;
    norm work = {.plan = &plan};
    make_plan(&work, f, call, views, 3);
    if (work.plan->place_count == 0 || work.plan->element_count == 0)
        return;
    work.weights = call->workspace;
    gather(&call->views[2], work.plan->compute, work.plan->weight_count, 1, call->workspace);
    eddy_norm_turn(work.plan, 2, call->team, after(call, weights_bytes(work.plan)));
    norm_run_slices(&work, work.plan->place_count, place_grain(&work),
               goes_direct(&work, 3) ? direct_back_slice : norm_backward_slice);
    eddy_norm_turn_back(work.plan, 2, call->team);
}

static void layer_norm_backward_run(const eddy_kernel_call *call) {
    backward(LAYER, call);
}

static void rms_norm_backward_run(const eddy_kernel_call *call) {
    backward(RMS, call);
}

static void group_norm_backward_run(const eddy_kernel_call *call) {
    backward(GROUP, call);
}

static void batch_norm_backward_run(const eddy_kernel_call *call) {
    backward(BATCH, call);
}

/* ---- the gradient of the weight ---- */

/* Where places have weights of their own there is one block, which all slices fill. */
static bool owns_weights(const eddy_norm_plan *plan) {
    return plan->period == plan->place_count;
}

static int64_t count_blocks(const eddy_norm_plan *plan) {
    int64_t elements = plan->place_count * plan->element_count;
    if (owns_weights(plan) || plan->weight_count == 0)
        return 1;
    int64_t blocks = eddy_min_i64(BLOCKS_MAX, eddy_min_i64(plan->place_count, elements / BLOCK_ELEMENTS));
    return eddy_max_i64(1, eddy_min_i64(blocks, PARTIALS_MAX / plan->weight_count));
}

static size_t partials_bytes(const eddy_norm_plan *plan) {
    return ((size_t)(plan->weight_count * count_blocks(plan)) * sizeof(double) + 63) / 64 * 64;
}

static void accumulate_place(const norm *work, int64_t place, const int64_t *offsets, double *sums, eddy_norm_chunk *g,
                             eddy_norm_chunk *x) {
    const eddy_norm_plan *plan = work->plan;
    eddy_norm_moments moments = eddy_norm_place_moments(plan, 1, offsets, work->family != RMS, x);
    double scale = 1 / sqrt(moments.squares / (double)plan->element_count + work->eps);
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK;
    int64_t first = eddy_norm_first_weight(plan, place);
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        const void *grad = eddy_norm_read(plan, 0, offsets, begin, count, g);
        const void *from = is_kept ? moments.kept : eddy_norm_read(plan, 1, offsets, begin, count, x);
        if (plan->segment == 1) {
            plan->ops->accumulate(sums + first + begin, grad, from, moments.mean, scale, count);
            continue;
        }
        for (int64_t done = 0, run; done < count; done += run) {
            int64_t at = begin + done;
            run = eddy_min_i64(plan->segment - at % plan->segment, count - done);
            sums[first + at / plan->segment] +=
                scale * plan->ops->product(eddy_chunk_at(grad, plan->compute, done),
                                           eddy_chunk_at(from, plan->compute, done), moments.mean, run);
        }
    }
}

static void accumulate_places(const norm *work, int64_t from, int64_t to, double *sums) {
    eddy_norm_chunk g, x;
    eddy_walk_cursor cursor;
    if (from == to)
        return;
    eddy_walk_seek(&work->plan->places, &cursor, from);
    for (int64_t place = from; place < to; place++) {
        accumulate_place(work, place, cursor.offsets, sums, &g, &x);
        eddy_walk_next(&work->plan->places, &cursor, work->plan->places.rank);
    }
}

static void weight_blocks(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    for (int64_t block = begin; block < end; block++) {
        double *sums = work->partials + block * work->plan->weight_count;
        for (int64_t i = 0; i < work->plan->weight_count; i++)
            sums[i] = 0;
        accumulate_places(work, work->plan->place_count * block / work->block_count,
                          work->plan->place_count * (block + 1) / work->block_count, sums);
    }
}

static void weight_places(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    int64_t each = work->plan->weight_count / work->plan->place_count;
    for (int64_t i = begin * each; i < end * each; i++)
        work->partials[i] = 0;
    accumulate_places(work, begin, end, work->partials);
}

/* Adds the blocks up into the first of them. */
static void add_blocks(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    for (int64_t block = 1; block < work->block_count; block++) {
        const double *sums = work->partials + block * work->plan->weight_count;
        for (int64_t i = begin; i < end; i++)
            work->partials[i] += sums[i];
    }
}

static void store_weights(const norm *work, const eddy_op_view *out) {
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_collapse(&walk);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&walk, &cursor, 0);
    for (int64_t done = 0, run; done < work->plan->weight_count; done += run) {
        run = eddy_walk_run(&walk, &cursor);
        eddy_chunk_store(out->dtype, eddy_chunk_at(out->data, out->dtype, cursor.offsets[0]),
                         eddy_walk_inner_stride(&walk, 0), EDDY_F64, work->partials + done, run);
        eddy_walk_advance(&walk, &cursor, run);
    }
}

/* views: grad, x, dweight */
static void backward_weight(family f, const eddy_kernel_call *call) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1]};
    eddy_norm_plan places;
    norm work = {.plan = &places, .partials = call->workspace};
    make_plan(&work, f, call, views, 2);
    const eddy_norm_plan *plan = work.plan;
    work.block_count = count_blocks(plan);
    if (plan->weight_count == 0)
        return;
    eddy_norm_turn(work.plan, -1, call->team, after(call, partials_bytes(plan)));
    if (plan->place_count > 0 && plan->element_count > 0 && owns_weights(plan)) {
        norm_run_slices(&work, plan->place_count, place_grain(&work), weight_places);
    } else {
        norm_run_slices(&work, work.block_count, 1, weight_blocks);
        norm_run_slices(&work, plan->weight_count, SLICE_ELEMENTS / work.block_count, add_blocks);
    }
    store_weights(&work, &call->views[2]);
}

static void layer_norm_backward_weight_run(const eddy_kernel_call *call) {
    backward_weight(LAYER, call);
}

static void rms_norm_backward_weight_run(const eddy_kernel_call *call) {
    backward_weight(RMS, call);
}

static void group_norm_backward_weight_run(const eddy_kernel_call *call) {
    backward_weight(GROUP, call);
}

static void batch_norm_backward_weight_run(const eddy_kernel_call *call) {
    backward_weight(BATCH, call);
}

/* ---- workspaces ---- */

static size_t forward_workspace(family f, const eddy_kernel_call *call) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[call->view_count - 1]};
    eddy_norm_plan plan;
    norm work = {.plan = &plan};
    make_plan(&work, f, call, views, 2);
    /* Means and scales take the room of weights and biases. */
    return weights_bytes(work.plan) +
           (goes_by_rows(&work) ? weights_bytes(work.plan) : eddy_norm_turn_bytes(work.plan));
}

static size_t backward_workspace(family f, const eddy_kernel_call *call) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1], &call->views[3]};
    eddy_norm_plan plan;
    norm work = {.plan = &plan};
    make_plan(&work, f, call, views, 3);
    return weights_bytes(work.plan) + eddy_norm_turn_bytes(work.plan);
}

static size_t backward_weight_workspace(family f, const eddy_kernel_call *call) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1]};
    eddy_norm_plan plan;
    norm work = {.plan = &plan};
    make_plan(&work, f, call, views, 2);
    return partials_bytes(work.plan) + eddy_norm_turn_bytes(work.plan);
}

#define WORKSPACES(name, f)                                                                                            \
    static size_t name##_workspace(const eddy_kernel_call *call) {                                                     \
        return forward_workspace(f, call);                                                                             \
    }                                                                                                                  \
    static size_t name##_backward_workspace(const eddy_kernel_call *call) {                                            \
        return backward_workspace(f, call);                                                                            \
    }                                                                                                                  \
    static size_t name##_backward_weight_workspace(const eddy_kernel_call *call) {                                     \
        return backward_weight_workspace(f, call);                                                                     \
    }

WORKSPACES(layer_norm, LAYER)
WORKSPACES(rms_norm, RMS)
WORKSPACES(group_norm, GROUP)
WORKSPACES(batch_norm, BATCH)
#define batch_norm_training_workspace batch_norm_workspace

/* Runs of elements with statistics or weights of their own, each of which begins anew. */
static int64_t rows_of(const eddy_kernel_call *call) {
    const eddy_attributes_layer_norm *attributes = call->attributes;
    const eddy_op_view *x = &call->views[0];
    int64_t rows = 1;
    for (int32_t d = 0; d < x->rank - attributes->axis_count; d++)
        rows *= x->shape[d];
    return rows;
}

static int64_t channels_of(const eddy_kernel_call *call) {
    const eddy_op_view *x = &call->views[0];
    return x->shape[0] * x->shape[1];
}

/* Twice as much an element in f64. */
static int64_t norm_cost(const eddy_kernel_call *call, int64_t runs, int64_t run_ps, int64_t sweeps) {
    const eddy_op_view *x = &call->views[0];
    int64_t element_ps = call->kernel->cost_element_ps * (x->dtype == EDDY_F64 ? 2 : 1);
    return call->kernel->cost_base_ps + element_ps * eddy_view_count(x) + run_ps * runs +
           sweeps * eddy_cost_far_views_ps(call);
}

/* sweeps: through what is in no cache. */
#define KERNEL(label, element_ps, runs, run_ps, sweeps)                                                                \
    static int64_t label##_cost(const eddy_kernel_call *call) {                                                        \
        return norm_cost(call, runs(call), run_ps, sweeps);                                                                 \
    }                                                                                                                  \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                                              \
                                          .run = label##_run,                                                          \
                                          .workspace = label##_workspace,                                              \
                                          .cost_base_ps = 150000,                                                      \
                                          .cost_element_ps = element_ps,                                               \
                                          .cost = label##_cost};

KERNEL(layer_norm, 280, rows_of, 45000, 1)
KERNEL(layer_norm_backward, 800, rows_of, 0, 1)
KERNEL(layer_norm_backward_weight, 550, rows_of, 0, 1)
KERNEL(rms_norm, 170, rows_of, 32000, 1)
KERNEL(rms_norm_backward, 700, rows_of, 0, 1)
KERNEL(rms_norm_backward_weight, 450, rows_of, 0, 1)
KERNEL(group_norm, 260, channels_of, 75000, 1)
KERNEL(group_norm_backward, 600, channels_of, 0, 1)
KERNEL(group_norm_backward_weight, 300, channels_of, 0, 1)
KERNEL(batch_norm, 180, channels_of, 60000, 1)
KERNEL(batch_norm_training, 280, channels_of, 150000, 2)
KERNEL(batch_norm_backward, 800, channels_of, 0, 1)
KERNEL(batch_norm_backward_weight, 550, channels_of, 0, 1)
