/* layer_norm, rms_norm, group_norm and batch_norm: (x - mean) / deviation * weight + bias, and their gradients. Absent
 * weights are 1, absent biases 0. One plan serves all of them (norm_plan.h). Places of up to EDDY_NORM_CHUNK elements are
 * read and written once, longer ones are read twice. No statistics are kept for the gradients, which compute them again
 * from x. batch_norm of channels-last images works row by row. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/norm/norm_plan.h>
#include <math.h>

#define SLICE_ELEMENTS 32768

typedef enum family { LAYER, RMS, GROUP, BATCH } family;

/* Where weights and biases come from. */
typedef enum source {
    IN_PLACE, /* they are contiguous and of the compute type */
    GATHERED, /* copied to the workspace, by a walk of the plan */
    ABSENT    /* ones or zeros in the workspace */
} source;

/* The plan of a call. `words`: the walks of gathered weights and biases; the copies of transposed operands; the walks of
 * places and elements, unless is_direct; the walk of a weight's gradient. */
typedef struct norm_plan {
    eddy_norm_plan shared;
    double eps;
    int64_t grain;                     /* places of a slice */
    int64_t second_grain;              /* rows of channels; weights whose blocks are added up */
    int64_t block_count;               /* of a weight's gradient */
    int64_t steps[EDDY_NORM_OPERANDS]; /* from row to row; used if is_direct */
    int32_t places_at;                 /* where in `words` the walk of places begins */
    uint8_t family, weights, biases;
    bool is_direct; /* rows are used in place */
    bool is_given;  /* batch_norm uses the running statistics; else it updates them */
    int64_t words[];
} norm_plan;

/* If all operands are transposed, places and elements have one dim each. */
#define PLACES_WORDS_TURNED (2 + 2 * (1 + EDDY_NORM_OPERANDS))
#define WORDS_MOST (2 * EDDY_WALK_WORDS_MOST(1) + EDDY_NORM_WORDS_MOST + EDDY_COPY_WORDS_MOST)
#define WORDS_MOST_TURNED                                                                          \
    (2 * EDDY_WALK_WORDS_MOST(1) + PLACES_WORDS_TURNED + 2 * EDDY_COPY_WORDS_MOST)
#define WORDS_MOST_BACK (EDDY_WALK_WORDS_MOST(1) + EDDY_NORM_WORDS_MOST + 2 * EDDY_COPY_WORDS_MOST)
#define WORDS_MOST_BACK_TURNED                                                                     \
    (EDDY_WALK_WORDS_MOST(1) + PLACES_WORDS_TURNED + 3 * EDDY_COPY_WORDS_MOST)
#define PLAN_FITS(words) (sizeof(norm_plan) + (words) * sizeof(int64_t) <= EDDY_KERNEL_PLAN_BYTES)
_Static_assert(PLAN_FITS(WORDS_MOST) && PLAN_FITS(WORDS_MOST_TURNED), "a plan fits");
_Static_assert(PLAN_FITS(WORDS_MOST_BACK) && PLAN_FITS(WORDS_MOST_BACK_TURNED), "a plan fits");

typedef struct norm {
    const eddy_kernel_call *call;
    const norm_plan *plan;
    const void *weights, *biases;        /* of the compute type */
    const void *means, *scales;          /* the same, for norm_by_rows_run */
    const eddy_op_view *mean, *variance; /* batch_norm's running statistics; NULL elsewhere */
    double momentum;
    double *partials; /* [block_count][weight_count] */
    eddy_norm_places at;
} norm;

static bool is_empty(const norm_plan *plan) {
    return plan->shared.place_count == 0 || plan->shared.element_count == 0;
}

static void norm_run_slices(norm *work, int64_t count, int64_t grain,
                            void (*slice)(void *, int64_t, int64_t)) {
    if (count <= grain)
        slice(work, 0, count);
    else
        work->call->team->parallel_for(work->call->team, count, grain, slice, work);
}

static void set_operand(norm *work, int32_t operand, const eddy_op_view *view) {
    work->at.operands[operand] = (eddy_norm_operand){.data = view->data, .dtype = view->dtype};
}

/* ---- weights ---- */

static bool lies_side_by_side(const eddy_op_view *view) {
    int64_t stride = 1;
    for (int32_t d = view->rank - 1; d >= 0; stride *= view->shape[d--])
        if (view->shape[d] != 1 && view->strides[d] != stride)
            return false;
    return true;
}

/* Writes the walk over all elements of a view, in order. */
static int64_t *write_walk(const eddy_op_view *view, int64_t *words) {
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    eddy_walk_collapse(&walk);
    return eddy_walk_write(&walk, words);
}

static int64_t *plan_weights(const eddy_op_view *view, eddy_dtype compute, uint8_t *from,
                             int64_t *words) {
    *from = ABSENT;
    if (eddy_kernel_view_is_absent(view))
        return words;
    *from = view->dtype == compute && lies_side_by_side(view) ? IN_PLACE : GATHERED;
    return *from == GATHERED ? write_walk(view, words) : words;
}

static const int64_t *gather(const eddy_op_view *view, eddy_dtype compute, int64_t count, void *to,
                             const int64_t *words) {
    eddy_walk walk;
    words = eddy_walk_read(&walk, words);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&walk, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_walk_run(&walk, &cursor);
        eddy_chunk_load(compute, eddy_chunk_at(to, compute, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, cursor.offsets[0]),
                        eddy_walk_inner_stride(&walk, 0), run);
        eddy_walk_advance(&walk, &cursor, run);
    }
    return words;
}

static void fill(eddy_dtype compute, int64_t count, double value, void *to) {
    float f32 = (float)value;
    bool is_f64 = compute == EDDY_F64;
    if (count > 0)
        eddy_chunk_fill(to, 1, is_f64 ? 8 : 4, is_f64 ? (const void *)&value : (const void *)&f32,
                        count);
}

/* Finds the weights: in place, else at `to`, which is filled with `value` if they are absent. Returns the address behind
 * their walk. */
static const int64_t *find_weights(const norm *work, const eddy_op_view *view, uint8_t from,
                                   double value, void *to, const void **weights,
                                   const int64_t *words) {
    const eddy_norm_plan *plan = &work->plan->shared;
    *weights = from == IN_PLACE ? view->data : to;
    if (from == GATHERED)
        return gather(view, plan->compute, plan->weight_count, to, words);
    if (from == ABSENT)
        fill(plan->compute, plan->weight_count, value, to);
    return words;
}

static size_t two_rows_bytes(const eddy_norm_plan *plan) {
    return ((size_t)plan->weight_count * 2 * sizeof(double) + 63) / 64 * 64;
}

/* Bytes of workspace for weights and biases that are not used in place. */
static size_t weights_bytes(const norm_plan *plan) {
    return plan->weights == IN_PLACE && plan->biases == IN_PLACE ? 0
                                                                 : two_rows_bytes(&plan->shared);
}

static void *after(const eddy_kernel_call *call, size_t bytes) {
    return (char *)call->workspace + bytes;
}

/* ---- forward ---- */

static double element_at(const eddy_op_view *view, int64_t i) {
    return eddy_dtype_load_f64(view->dtype,
                               eddy_chunk_at(view->data, view->dtype, i * view->strides[0]));
}

static void blend(const eddy_op_view *view, int64_t i, double momentum, double value) {
    eddy_dtype_store_f64(view->dtype, eddy_chunk_at(view->data, view->dtype, i * view->strides[0]),
                         (1 - momentum) * element_at(view, i) + momentum * value);
}

static void update_statistics(const norm *work, int64_t place, double mean, double squares) {
    double count = (double)work->plan->shared.element_count;
    if (work->mean && !eddy_kernel_view_is_absent(work->mean))
        blend(work->mean, place, work->momentum, mean);
    if (work->variance && !eddy_kernel_view_is_absent(work->variance))
        blend(work->variance, place, work->momentum, squares / (count - 1));
}

static eddy_norm_moments forward_moments(const norm *work, int64_t place, const int64_t *offsets,
                                         eddy_norm_chunk *chunk, double *scale) {
    const norm_plan *plan = work->plan;
    eddy_norm_moments moments = {0};
    if (plan->is_given) {
        moments.mean = element_at(work->mean, place);
        *scale = 1 / sqrt(element_at(work->variance, place) + plan->eps);
        return moments;
    }
    moments = eddy_norm_place_moments(&work->at, 0, offsets, plan->family != RMS, chunk);
    *scale = 1 / sqrt(moments.squares / (double)plan->shared.element_count + plan->eps);
    update_statistics(work, place, moments.mean, moments.squares);
    return moments;
}

static void norm_forward_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_places *at = &work->at;
    const eddy_norm_plan *plan = &work->plan->shared;
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK && !work->plan->is_given;
    eddy_norm_chunk x, y, weights, biases;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&at->places, &cursor, first);
    for (int64_t place = first; place < last; place++) {
        double scale;
        eddy_norm_moments moments = forward_moments(work, place, cursor.offsets, &x, &scale);
        for (int64_t begin = 0, count, step; begin < plan->element_count; begin += count) {
            count = eddy_norm_run(at, begin, &step);
            int64_t spread = step ? count : 1;
            const void *from = is_kept ? eddy_chunk_at(moments.kept, plan->compute, begin)
                                       : eddy_norm_read(at, 0, cursor.offsets, begin, count, &x);
            plan->ops->apply(eddy_norm_target(at, 1, cursor.offsets, begin, count, &y), from,
                             eddy_norm_weights(plan, work->weights, place, begin, spread, &weights),
                             eddy_norm_weights(plan, work->biases, place, begin, spread, &biases),
                             step, moments.mean, scale, count);
            eddy_norm_store(at, 1, cursor.offsets, begin, count, &y);
        }
        eddy_walk_next(&at->places, &cursor, at->places.rank);
    }
}

/* Contiguous rows of the compute type with a weight for each element, as is usual for layer_norm and rms_norm; all
 * operands have to be such. */
static bool goes_direct(const norm_plan *plan, const eddy_norm_places *at) {
    if ((plan->family != LAYER && plan->family != RMS) || at->elements.rank > 1 ||
        at->places.rank > 1)
        return false;
    for (int32_t o = 0; o < plan->shared.operand_count; o++)
        if (at->operands[o].dtype != plan->shared.compute ||
            eddy_walk_inner_stride(&at->elements, o) != 1)
            return false;
    return plan->shared.element_count <= EDDY_NORM_CHUNK;
}

/* Row number `first` of an operand. */
static void *row_of(const norm *work, int32_t operand, int64_t first) {
    const eddy_norm_operand *of = &work->at.operands[operand];
    return eddy_chunk_at(of->data, of->dtype, first * work->plan->steps[operand]);
}

static void norm_direct_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const norm_plan *plan = work->plan;
    eddy_norm_rows rows = {.to = row_of(work, 1, first),
                           .from = row_of(work, 0, first),
                           .to_stride = plan->steps[1],
                           .from_stride = plan->steps[0],
                           .count = last - first};
    plan->shared.ops->places(&rows, work->weights, work->biases, plan->eps, plan->family == LAYER,
                             plan->shared.element_count);
}

/* If channels are contiguous, they are normalised row by row in place, without a transposed copy. */
static bool goes_by_rows(const norm_plan *plan, const eddy_norm_places *at) {
    return plan->family == BATCH && at->places.rank == 1 &&
           (eddy_norm_is_scattered(at, 0) || eddy_norm_is_scattered(at, 1));
}

/* Places that are read together: their cache lines are still in the cache when the next of them is read. */
#define NEIGHBOURS 16

static void set_real(const norm *work, const void *reals, int64_t i, double value) {
    if (work->plan->shared.compute == EDDY_F64)
        ((double *)reals)[i] = value;
    else
        ((float *)reals)[i] = (float)value;
}

static void neighbour_moments(const norm *work, int64_t first, int64_t count,
                              eddy_norm_total *totals) {
    const eddy_norm_plan *plan = &work->plan->shared;
    eddy_norm_chunk x;
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t some = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        for (int64_t p = 0; p < count; p++) {
            eddy_norm_sums part = {0};
            int64_t offset = (first + p) * work->at.places.strides[0][0];
            const void *from = eddy_norm_read(&work->at, 0, &offset, begin, some, &x);
            plan->ops->moments(from, some, &part.mean, &part.squares);
            eddy_norm_join(&totals[p], begin, &part, some);
        }
    }
}

/* Computes the mean and the scale of each place. */
static void statistics_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    bool is_given = work->plan->is_given;
    eddy_norm_total totals[NEIGHBOURS];
    for (int64_t place = first; place < last; place += NEIGHBOURS) {
        int64_t count = eddy_min_i64(NEIGHBOURS, last - place);
        if (!is_given)
            neighbour_moments(work, place, count, totals);
        for (int64_t p = 0; p < count; p++) {
            const eddy_norm_sums *sums = &totals[p].sums;
            double mean = is_given ? element_at(work->mean, place + p) : sums->mean;
            double variance = is_given ? element_at(work->variance, place + p)
                                       : sums->squares / (double)work->plan->shared.element_count;
            set_real(work, work->means, place + p, mean);
            set_real(work, work->scales, place + p, 1 / sqrt(variance + work->plan->eps));
            if (!is_given)
                update_statistics(work, place + p, sums->mean, sums->squares);
        }
    }
}

static void rows_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_plan *plan = &work->plan->shared;
    const eddy_walk *elements = &work->at.elements;
    const eddy_norm_operand *from = &work->at.operands[0], *to = &work->at.operands[1];
    int64_t step = work->at.places.strides[0][0], to_step = work->at.places.strides[1][0];
    eddy_norm_chunk x;
    eddy_walk_cursor cursor;
    eddy_walk_seek(elements, &cursor, first);
    for (int64_t row = first; row < last; row++) {
        for (int64_t c = 0; c < plan->place_count; c += EDDY_NORM_CHUNK) {
            int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->place_count - c);
            eddy_chunk_load(plan->compute, &x, from->dtype,
                            eddy_chunk_at(from->data, from->dtype, cursor.offsets[0] + c * step),
                            step, count);
            plan->ops->apply_each(&x, eddy_chunk_at(work->weights, plan->compute, c),
                                  eddy_chunk_at(work->biases, plan->compute, c),
                                  eddy_chunk_at(work->means, plan->compute, c),
                                  eddy_chunk_at(work->scales, plan->compute, c), count);
            eddy_chunk_store(to->dtype,
                             eddy_chunk_at(to->data, to->dtype, cursor.offsets[1] + c * to_step),
                             to_step, plan->compute, &x, count);
        }
        eddy_walk_next(elements, &cursor, elements->rank);
    }
}

static void begin_forward(norm *work, const eddy_kernel_call *call) {
    const norm_plan *plan = work->plan = call->plan;
    const eddy_op_view *weight = &call->views[plan->family == BATCH ? 3 : 1];
    work->call = call;
    work->at.plan = &plan->shared;
    set_operand(work, 0, &call->views[0]);
    set_operand(work, 1, &call->views[call->view_count - 1]);
    work->mean = plan->family == BATCH ? &call->views[1] : NULL;
    work->variance = plan->family == BATCH ? &call->views[2] : NULL;
    work->momentum = plan->family == BATCH
                         ? ((const eddy_attributes_batch_norm *)call->attributes)->momentum
                         : 0;
    const int64_t *words =
        find_weights(work, weight, plan->weights, 1, call->workspace, &work->weights, plan->words);
    void *biases = eddy_chunk_at(call->workspace, plan->shared.compute, plan->shared.weight_count);
    find_weights(work, weight + 1, plan->biases, 0, biases, &work->biases, words);
}

/* Runs slices over all places, after operands to be transposed have been transposed into `memory`. */
static void run_places(norm *work, int32_t output, void *memory,
                       void (*slice)(void *, int64_t, int64_t)) {
    const norm_plan *plan = work->plan;
    if (!plan->is_direct)
        eddy_norm_places_read(&work->at, plan->words + plan->places_at);
    if (plan->shared.is_turned)
        eddy_norm_turn(&work->at, output, work->call->team, memory);
    norm_run_slices(work, plan->shared.place_count, plan->grain, slice);
    if (plan->shared.is_turned)
        eddy_norm_turn_back(&work->at, output, work->call->team,
                            work->call->views[work->call->view_count - 1].data);
}

static void norm_run(const eddy_kernel_call *call) {
    const norm_plan *plan = call->plan;
    if (is_empty(plan))
        return;
    norm work;
    begin_forward(&work, call);
    run_places(&work, 1, after(call, weights_bytes(plan)),
               plan->is_direct ? norm_direct_slice : norm_forward_slice);
}

static void norm_by_rows_run(const eddy_kernel_call *call) {
    const norm_plan *plan = call->plan;
    norm work;
    begin_forward(&work, call);
    eddy_norm_places_read(&work.at, plan->words + plan->places_at);
    work.means = after(call, weights_bytes(plan));
    work.scales = eddy_chunk_at(work.means, plan->shared.compute, plan->shared.place_count);
    int64_t grain = (plan->grain + NEIGHBOURS - 1) / NEIGHBOURS * NEIGHBOURS;
    norm_run_slices(&work, plan->shared.place_count, grain, statistics_slice);
    norm_run_slices(&work, plan->shared.element_count, plan->second_grain, rows_slice);
}

/* ---- the gradient of x ---- */

/* The sums that the gradient of a place needs: of grad * weight, and of that times the distance from the mean. They take
 * one pass: each chunk uses distances from its own mean, which are corrected once the mean of the place is known. */
typedef struct slopes {
    eddy_norm_total total;
    const void *grad, *x; /* kept, if the place is one chunk */
} slopes;

static slopes place_slopes(const norm *work, int64_t place, const int64_t *offsets,
                           eddy_norm_chunk *g, eddy_norm_chunk *x, eddy_norm_chunk *weights) {
    const eddy_norm_places *at = &work->at;
    const eddy_norm_plan *plan = &work->plan->shared;
    slopes all = {0};
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        all.grad = eddy_norm_read(at, 0, offsets, begin, count, g);
        all.x = eddy_norm_read(at, 1, offsets, begin, count, x);
        const void *w = eddy_norm_weights(plan, work->weights, place, begin, count, weights);
        eddy_norm_sums part = {0};
        double sums[2];
        if (work->plan->family == RMS)
            part.squares = plan->ops->square_sum(all.x, count);
        else
            plan->ops->moments(all.x, count, &part.mean, &part.squares);
        plan->ops->products(all.grad, all.x, w, part.mean, count, sums);
        part.sum = sums[0];
        part.product = sums[1];
        eddy_norm_join(&all.total, begin, &part, count);
    }
    return all;
}

static void norm_backward_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const eddy_norm_places *at = &work->at;
    const eddy_norm_plan *plan = &work->plan->shared;
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK;
    double n = (double)plan->element_count;
    eddy_norm_chunk g, x, y, weights;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&at->places, &cursor, first);
    for (int64_t place = first; place < last; place++) {
        slopes all = place_slopes(work, place, cursor.offsets, &g, &x, &weights);
        const eddy_norm_sums *sums = &all.total.sums;
        bool is_centred = work->plan->family != RMS;
        double scale = 1 / sqrt(sums->squares / n + work->plan->eps);
        double level = is_centred ? sums->sum / n : 0,
               slope = scale * scale *
                       eddy_norm_product(&all.total, is_centred, plan->element_count) / n;
        for (int64_t begin = 0, count, step; begin < plan->element_count; begin += count) {
            count = eddy_norm_run(at, begin, &step);
            const void *grad = is_kept ? eddy_chunk_at(all.grad, plan->compute, begin)
                                       : eddy_norm_read(at, 0, cursor.offsets, begin, count, &g);
            const void *from = is_kept ? eddy_chunk_at(all.x, plan->compute, begin)
                                       : eddy_norm_read(at, 1, cursor.offsets, begin, count, &x);
            plan->ops->backward(
                eddy_norm_target(at, 2, cursor.offsets, begin, count, &y), grad, from,
                eddy_norm_weights(plan, work->weights, place, begin, step ? count : 1, &weights),
                step, sums->mean, scale, level, slope, count);
            eddy_norm_store(at, 2, cursor.offsets, begin, count, &y);
        }
        eddy_walk_next(&at->places, &cursor, at->places.rank);
    }
}

static void norm_direct_back_slice(void *context, int64_t first, int64_t last) {
    const norm *work = context;
    const norm_plan *plan = work->plan;
    eddy_norm_rows rows = {.to = row_of(work, 2, first),
                           .from = row_of(work, 1, first),
                           .grad = row_of(work, 0, first),
                           .to_stride = plan->steps[2],
                           .from_stride = plan->steps[1],
                           .grad_stride = plan->steps[0],
                           .count = last - first};
    plan->shared.ops->places_back(&rows, work->weights, plan->eps, plan->family == LAYER,
                                  plan->shared.element_count);
}

/* views: grad, x, weight or absent, dx */
static void norm_backward_run(const eddy_kernel_call *call) {
    const norm_plan *plan = call->plan;
    if (is_empty(plan))
        return;
    norm work;
    work.call = call;
    work.plan = plan;
    work.at.plan = &plan->shared;
    set_operand(&work, 0, &call->views[0]);
    set_operand(&work, 1, &call->views[1]);
    set_operand(&work, 2, &call->views[3]);
    find_weights(&work, &call->views[2], plan->weights, 1, call->workspace, &work.weights,
                 plan->words);
    run_places(&work, 2, after(call, weights_bytes(plan)),
               plan->is_direct ? norm_direct_back_slice : norm_backward_slice);
}

/* ---- the gradient of the weight ---- */

static size_t partials_bytes(const norm_plan *plan) {
    return ((size_t)(plan->shared.weight_count * plan->block_count) * sizeof(double) + 63) / 64 *
           64;
}

static void accumulate_place(const norm *work, int64_t place, const int64_t *offsets, double *sums,
                             eddy_norm_chunk *g, eddy_norm_chunk *x) {
    const eddy_norm_places *at = &work->at;
    const eddy_norm_plan *plan = &work->plan->shared;
    eddy_norm_moments moments =
        eddy_norm_place_moments(at, 1, offsets, work->plan->family != RMS, x);
    double scale = 1 / sqrt(moments.squares / (double)plan->element_count + work->plan->eps);
    bool is_kept = plan->element_count <= EDDY_NORM_CHUNK;
    int64_t first = eddy_norm_first_weight(plan, place);
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        const void *grad = eddy_norm_read(at, 0, offsets, begin, count, g);
        const void *from = is_kept ? moments.kept : eddy_norm_read(at, 1, offsets, begin, count, x);
        if (plan->segment == 1) {
            plan->ops->accumulate(sums + first + begin, grad, from, moments.mean, scale, count);
            continue;
        }
        for (int64_t done = 0, run; done < count; done += run) {
            int64_t element = begin + done;
            run = eddy_min_i64(plan->segment - element % plan->segment, count - done);
            sums[first + element / plan->segment] +=
                scale * plan->ops->product(eddy_chunk_at(grad, plan->compute, done),
                                           eddy_chunk_at(from, plan->compute, done), moments.mean,
                                           run);
        }
    }
}

static void accumulate_places(const norm *work, int64_t from, int64_t to, double *sums) {
    eddy_norm_chunk g, x;
    eddy_walk_cursor cursor;
    if (from == to)
        return;
    eddy_walk_seek(&work->at.places, &cursor, from);
    for (int64_t place = from; place < to; place++) {
        accumulate_place(work, place, cursor.offsets, sums, &g, &x);
        eddy_walk_next(&work->at.places, &cursor, work->at.places.rank);
    }
}

static void weight_blocks(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    int64_t places = work->plan->shared.place_count, weights = work->plan->shared.weight_count;
    int64_t blocks = work->plan->block_count;
    for (int64_t block = begin; block < end; block++) {
        double *sums = work->partials + block * weights;
        for (int64_t i = 0; i < weights; i++)
            sums[i] = 0;
        accumulate_places(work, places * block / blocks, places * (block + 1) / blocks, sums);
    }
}

static void weight_places(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    int64_t each = work->plan->shared.weight_count / work->plan->shared.place_count;
    for (int64_t i = begin * each; i < end * each; i++)
        work->partials[i] = 0;
    accumulate_places(work, begin, end, work->partials);
}

/* Adds all blocks to the first one. */
static void add_blocks(void *context, int64_t begin, int64_t end) {
    const norm *work = context;
    for (int64_t block = 1; block < work->plan->block_count; block++) {
        const double *sums = work->partials + block * work->plan->shared.weight_count;
        for (int64_t i = begin; i < end; i++)
            work->partials[i] += sums[i];
    }
}

static void store_weights(const norm *work, const eddy_op_view *out, const int64_t *words) {
    int64_t count = work->plan->shared.weight_count;
    eddy_walk walk;
    eddy_walk_read(&walk, words);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&walk, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_walk_run(&walk, &cursor);
        eddy_chunk_store(out->dtype, eddy_chunk_at(out->data, out->dtype, cursor.offsets[0]),
                         eddy_walk_inner_stride(&walk, 0), EDDY_F64, work->partials + done, run);
        eddy_walk_advance(&walk, &cursor, run);
    }
}

/* views: grad, x, dweight */
static void norm_weight_run(const eddy_kernel_call *call) {
    const norm_plan *plan = call->plan;
    if (plan->shared.weight_count == 0)
        return;
    norm work;
    work.call = call;
    work.plan = plan;
    work.at.plan = &plan->shared;
    work.partials = call->workspace;
    set_operand(&work, 0, &call->views[0]);
    set_operand(&work, 1, &call->views[1]);
    const int64_t *words = eddy_norm_places_read(&work.at, plan->words + plan->places_at);
    if (plan->shared.is_turned)
        eddy_norm_turn(&work.at, -1, call->team, after(call, partials_bytes(plan)));
    if (!is_empty(plan) && eddy_norm_owns_weights(&plan->shared)) {
        norm_run_slices(&work, plan->shared.place_count, plan->grain, weight_places);
    } else {
        norm_run_slices(&work, plan->block_count, 1, weight_blocks);
        norm_run_slices(&work, plan->shared.weight_count, plan->second_grain, add_blocks);
    }
    store_weights(&work, &call->views[2], words);
}

/* ---- planning ---- */

/* How a kernel differs from others of its kind. */
typedef struct variant {
    family family;
    bool is_given; /* batch_norm's statistics */
    int32_t
        run_ps; /* the overhead of each run of elements that has statistics or weights of its own */
    int32_t more_sweeps; /* further passes over memory that is in no cache */
} variant;

static void plan_places(const eddy_kernel_call *call, const variant *of,
                        const eddy_op_view *const *views, int32_t count, norm_plan *to,
                        eddy_norm_places *at) {
    to->family = (uint8_t)of->family;
    to->is_given = of->is_given;
    if (of->family == LAYER || of->family == RMS) {
        const eddy_attributes_layer_norm *attributes = call->attributes;
        to->eps = attributes->eps;
        eddy_norm_plan_last_axes(&to->shared, at, views, count, attributes->axis_count);
    } else if (of->family == GROUP) {
        const eddy_attributes_group_norm *attributes = call->attributes;
        to->eps = attributes->eps;
        eddy_norm_plan_groups(&to->shared, at, views, count, attributes->groups);
    } else {
        const eddy_attributes_batch_norm *attributes = call->attributes;
        to->eps = attributes->eps;
        eddy_norm_plan_channels(&to->shared, at, views, count);
    }
    to->shared.ops = to->shared.compute == EDDY_F64 ? eddy_cpu_norm_f64() : eddy_cpu_norm_f32();
    to->grain = eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, to->shared.element_count));
}

/* An element of f64 takes twice the time. */
static int64_t norm_cost(const eddy_kernel_call *call, const norm_plan *plan, const variant *of) {
    const eddy_op_view *x = &call->views[0];
    bool has_channels = of->family == GROUP || of->family == BATCH;
    int64_t runs = has_channels ? x->shape[0] * x->shape[1] : plan->shared.place_count;
    int64_t elements = plan->shared.place_count * plan->shared.element_count;
    int64_t element_ps = call->kernel->cost_element_ps * (plan->shared.compute == EDDY_F64 ? 2 : 1);
    int64_t near_ps = call->kernel->cost_base_ps + element_ps * elements + of->run_ps * runs;
    int64_t largest = eddy_max_i64(elements, plan->shared.weight_count);
    return eddy_cost_is_near(largest, call->view_count)
               ? near_ps
               : near_ps + (1 + of->more_sweeps) * eddy_cost_far_views_ps(call);
}

static int64_t *write_places(norm_plan *to, const eddy_norm_places *at, int64_t *words) {
    to->places_at = (int32_t)(words - to->words);
    return eddy_norm_places_write(at, words);
}

/* Writes the copies of transposed operands, and the walks of places and elements unless rows are used in place. The last
 * operand is the output. */
static int64_t *plan_walks(norm_plan *to, eddy_norm_places *at, int64_t *words) {
    words = eddy_norm_plan_turn(&to->shared, at, to->shared.operand_count - 1, words);
    to->is_direct = goes_direct(to, at);
    for (int32_t o = 0; o < to->shared.operand_count; o++)
        to->steps[o] = eddy_walk_inner_stride(&at->places, o);
    return to->is_direct ? words : write_places(to, at, words);
}

static size_t turn_bytes(const eddy_norm_places *at) {
    return at->plan->is_turned ? eddy_norm_turn_bytes(at) : 0;
}

static void end_plan(eddy_kernel_plan *plan, const int64_t *words) {
    plan->bytes = (size_t)((const char *)words - (const char *)plan->memory);
}

static eddy_status norm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                const variant *of) {
    static const eddy_op_view absent = {.rank = -1};
    const eddy_op_view *views[] = {&call->views[0], &call->views[call->view_count - 1]};
    const eddy_op_view *weight = &call->views[of->family == BATCH ? 3 : 1];
    norm_plan *to = plan->memory;
    eddy_norm_places at;
    plan_places(call, of, views, 2, to, &at);
    plan->cost_ps = norm_cost(call, to, of);
    plan->bytes = sizeof(*to);
    if (is_empty(to))
        return EDDY_OK;
    int64_t *words = plan_weights(weight, to->shared.compute, &to->weights, to->words);
    words = plan_weights(of->family == RMS ? &absent : weight + 1, to->shared.compute, &to->biases,
                         words);
    plan->workspace_bytes = weights_bytes(to);
    if (goes_by_rows(to, &at)) {
        plan->run = norm_by_rows_run;
        plan->workspace_bytes += two_rows_bytes(&to->shared);
        to->second_grain = eddy_max_i64(1, SLICE_ELEMENTS / to->shared.place_count);
        words = write_places(to, &at, words);
    } else {
        words = plan_walks(to, &at, words);
        plan->workspace_bytes += turn_bytes(&at);
    }
    end_plan(plan, words);
    return EDDY_OK;
}

static eddy_status norm_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                         const variant *of) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1], &call->views[3]};
    norm_plan *to = plan->memory;
    eddy_norm_places at;
    plan_places(call, of, views, 3, to, &at);
    plan->cost_ps = norm_cost(call, to, of);
    plan->bytes = sizeof(*to);
    if (is_empty(to))
        return EDDY_OK;
    to->biases = IN_PLACE; /* the gradient has no biases */
    int64_t *words = plan_weights(&call->views[2], to->shared.compute, &to->weights, to->words);
    words = plan_walks(to, &at, words);
    plan->workspace_bytes = weights_bytes(to) + turn_bytes(&at);
    end_plan(plan, words);
    return EDDY_OK;
}

static eddy_status norm_weight_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                       const variant *of) {
    const eddy_op_view *views[] = {&call->views[0], &call->views[1]};
    norm_plan *to = plan->memory;
    eddy_norm_places at;
    plan_places(call, of, views, 2, to, &at);
    plan->cost_ps = norm_cost(call, to, of);
    plan->bytes = sizeof(*to);
    if (to->shared.weight_count == 0)
        return EDDY_OK;
    to->block_count = eddy_norm_block_count(&to->shared);
    to->second_grain = SLICE_ELEMENTS / to->block_count;
    int64_t *words = to->words;
    if (!is_empty(to))
        words = eddy_norm_plan_turn(&to->shared, &at, -1, words);
    words = write_places(to, &at, words);
    plan->workspace_bytes = partials_bytes(to) + turn_bytes(&at);
    end_plan(plan, write_walk(&call->views[2], words));
    return EDDY_OK;
}

#define KERNEL(label, way, element_ps, ...)                                                        \
    static eddy_status label##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {     \
        static const variant of = {__VA_ARGS__};                                                   \
        return way##_prepare(call, plan, &of);                                                     \
    }                                                                                              \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                          \
                                          .run = way##_run,                                        \
                                          .prepare = label##_prepare,                              \
                                          .cost_base_ps = 150000,                                  \
                                          .cost_element_ps = element_ps};

KERNEL(layer_norm, norm, 280, .family = LAYER, .run_ps = 45000)
KERNEL(layer_norm_backward, norm_backward, 800, .family = LAYER)
KERNEL(layer_norm_backward_weight, norm_weight, 550, .family = LAYER)
KERNEL(rms_norm, norm, 170, .family = RMS, .run_ps = 32000)
KERNEL(rms_norm_backward, norm_backward, 700, .family = RMS)
KERNEL(rms_norm_backward_weight, norm_weight, 450, .family = RMS)
KERNEL(group_norm, norm, 260, .family = GROUP, .run_ps = 75000)
KERNEL(group_norm_backward, norm_backward, 600, .family = GROUP)
KERNEL(group_norm_backward_weight, norm_weight, 300, .family = GROUP)
KERNEL(batch_norm, norm, 180, .family = BATCH, .is_given = true, .run_ps = 60000)
KERNEL(batch_norm_training, norm, 280, .family = BATCH, .run_ps = 150000, .more_sweeps = 1)
KERNEL(batch_norm_backward, norm_backward, 800, .family = BATCH)
KERNEL(batch_norm_backward_weight, norm_weight, 550, .family = BATCH)
