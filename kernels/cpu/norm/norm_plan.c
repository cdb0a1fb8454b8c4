#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/norm/norm_plan.h>

static void append(eddy_walk *walk, const eddy_norm_plan *plan, int32_t count, int32_t d) {
    int64_t strides[EDDY_NORM_OPERANDS];
    for (int32_t o = 0; o < count; o++)
        strides[o] = plan->views[o]->strides[d];
    eddy_walk_append(walk, plan->views[0]->shape[d], strides, count);
}

static void begin(eddy_norm_plan *plan, const eddy_op_view *const *views, int32_t count) {
    plan->operand_count = count;
    for (int32_t o = 0; o < count; o++) {
        plan->views[o] = views[o];
        plan->turned[o].is_used = false;
    }
    plan->compute = eddy_chunk_compute_dtype(views[0]->dtype);
    plan->ops = plan->compute == EDDY_F64 ? &eddy_cpu_norm_blocks()->f64 : &eddy_cpu_norm_blocks()->f32;
    eddy_walk_init(&plan->places, 0, NULL);
    eddy_walk_init(&plan->elements, 0, NULL);
    plan->places.operand_count = plan->elements.operand_count = count;
}

static void end(eddy_norm_plan *plan, int64_t segment, int64_t period) {
    plan->place_count = eddy_walk_count(&plan->places);
    plan->element_count = eddy_walk_count(&plan->elements);
    plan->segment = eddy_max_i64(1, segment);
    plan->period = eddy_max_i64(1, period);
    plan->weight_count = period * (plan->element_count / plan->segment);
    eddy_walk_collapse(&plan->places);
    eddy_walk_collapse(&plan->elements);
}

void eddy_norm_plan_last_axes(eddy_norm_plan *plan, const eddy_op_view *const *views, int32_t count,
                              int64_t axis_count) {
    begin(plan, views, count);
    int32_t rank = views[0]->rank, first = rank - (int32_t)axis_count;
    for (int32_t d = 0; d < rank; d++)
        append(d < first ? &plan->places : &plan->elements, plan, count, d);
    end(plan, 1, 1);
}

void eddy_norm_plan_groups(eddy_norm_plan *plan, const eddy_op_view *const *views, int32_t count, int64_t groups) {
    begin(plan, views, count);
    int64_t channels = views[0]->shape[1] / groups, segment = 1, strides[EDDY_NORM_OPERANDS];
    append(&plan->places, plan, count, 0);
    for (int32_t o = 0; o < count; o++)
        strides[o] = views[o]->strides[1] * channels;
    eddy_walk_append(&plan->places, groups, strides, count);
    for (int32_t o = 0; o < count; o++)
        strides[o] = views[o]->strides[1];
    eddy_walk_append(&plan->elements, channels, strides, count);
    for (int32_t d = 2; d < views[0]->rank; d++) {
        append(&plan->elements, plan, count, d);
        segment *= views[0]->shape[d];
    }
    end(plan, segment, groups);
    plan->weight_count = views[0]->shape[1]; /* where the segments are empty too */
}

void eddy_norm_plan_channels(eddy_norm_plan *plan, const eddy_op_view *const *views, int32_t count) {
    begin(plan, views, count);
    for (int32_t d = 0; d < views[0]->rank; d++)
        append(d == 1 ? &plan->places : &plan->elements, plan, count, d);
    end(plan, eddy_walk_count(&plan->elements), plan->place_count);
    plan->period = eddy_max_i64(1, plan->place_count);
    plan->weight_count = plan->place_count;
}

/* ---- turning ---- */

/* From so many places side by side on. */
#define LEAST_PLACES 8

bool eddy_norm_is_scattered(const eddy_norm_plan *plan, int32_t operand) {
    const eddy_walk *places = &plan->places, *elements = &plan->elements;
    if (places->rank == 0 || elements->rank == 0 || places->rank + elements->rank > EDDY_RANK_MAX)
        return false;
    int64_t step = elements->strides[operand][elements->rank - 1];
    return places->strides[operand][places->rank - 1] == 1 && places->dims[places->rank - 1] >= LEAST_PLACES &&
           step != 1 && step != 0;
}

/* Elements from a place to the next in a turned operand: a cache line more than it has, so that powers of two do not all fall
 * into one set of the cache. */
static int64_t turned_stride(const eddy_norm_plan *plan, int32_t operand) {
    return plan->element_count + 64 / (int64_t)eddy_dtype_bytes(plan->views[operand]->dtype);
}

static size_t turned_bytes(const eddy_norm_plan *plan, int32_t operand) {
    if (plan->place_count == 0 || plan->element_count == 0 || !eddy_norm_is_scattered(plan, operand))
        return 0;
    size_t bytes = eddy_dtype_bytes(plan->views[operand]->dtype);
    bytes *= (size_t)(plan->place_count * turned_stride(plan, operand));
    return (bytes + 63) / 64 * 64;
}

size_t eddy_norm_turn_bytes(const eddy_norm_plan *plan) {
    size_t bytes = 0;
    for (int32_t o = 0; o < plan->operand_count; o++)
        bytes += turned_bytes(plan, o);
    return bytes;
}

/* Describes the operand as it lies and as it will lie: the dims of places, then those of elements. */
static void norm_plan_describe(const eddy_norm_plan *plan, int32_t operand, void *memory, eddy_norm_turned *turned) {
    const eddy_walk *walks[] = {&plan->places, &plan->elements};
    const eddy_op_view *view = plan->views[operand];
    int32_t rank = 0;
    for (int w = 0; w < 2; w++)
        for (int32_t d = 0; d < walks[w]->rank; d++) {
            turned->dims[rank] = walks[w]->dims[d];
            turned->there_strides[rank++] = walks[w]->strides[operand][d];
        }
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (d == plan->places.rank - 1)
            stride = turned_stride(plan, operand);
        turned->here_strides[d] = stride;
        stride *= turned->dims[d];
    }
    turned->there = (eddy_op_view){.data = view->data,
                                   .shape = turned->dims,
                                   .strides = turned->there_strides,
                                   .dtype = view->dtype,
                                   .rank = rank};
    turned->here = (eddy_op_view){
        .data = memory, .shape = turned->dims, .strides = turned->here_strides, .dtype = view->dtype, .rank = rank};
    turned->is_used = true;
}

void eddy_norm_turn(eddy_norm_plan *plan, int32_t output, eddy_kernel_team *team, void *memory) {
    char *at = memory;
    for (int32_t o = 0; o < plan->operand_count; o++) {
        size_t bytes = turned_bytes(plan, o);
        if (bytes == 0)
            continue;
        norm_plan_describe(plan, o, at, &plan->turned[o]);
        at += bytes;
        if (o != output)
            eddy_copy_view(team, &plan->turned[o].there, &plan->turned[o].here);
    }
    for (int32_t o = 0; o < plan->operand_count; o++) {
        const eddy_norm_turned *turned = &plan->turned[o];
        if (!turned->is_used)
            continue;
        plan->views[o] = &turned->here;
        for (int32_t d = 0; d < turned->here.rank; d++)
            if (d < plan->places.rank)
                plan->places.strides[o][d] = turned->here_strides[d];
            else
                plan->elements.strides[o][d - plan->places.rank] = turned->here_strides[d];
    }
    eddy_walk_collapse(&plan->places);
    eddy_walk_collapse(&plan->elements);
}

void eddy_norm_turn_back(const eddy_norm_plan *plan, int32_t output, eddy_kernel_team *team) {
    if (plan->turned[output].is_used)
        eddy_copy_view(team, &plan->turned[output].here, &plan->turned[output].there);
}

/* ---- chunks ---- */

/* `count` elements of the operand at a place, where they lie one after another as they are computed with; NULL elsewhere. */
static void *direct(const eddy_norm_plan *plan, int32_t operand, const int64_t *offsets, int64_t begin, int64_t count) {
    const eddy_op_view *view = plan->views[operand];
    const eddy_walk *elements = &plan->elements;
    if (view->dtype != plan->compute || eddy_walk_inner_stride(elements, operand) != 1)
        return NULL;
    if (elements->rank <= 1)
        return eddy_chunk_at(view->data, view->dtype, offsets[operand] + begin);
    int64_t inner = elements->dims[elements->rank - 1];
    if (begin % inner + count > inner)
        return NULL;
    eddy_walk_cursor cursor;
    eddy_walk_seek(elements, &cursor, begin);
    return eddy_chunk_at(view->data, view->dtype, offsets[operand] + cursor.offsets[operand]);
}

const void *eddy_norm_read(const eddy_norm_plan *plan, int32_t operand, const int64_t *offsets, int64_t begin,
                           int64_t count, eddy_norm_chunk *chunk) {
    const void *there = direct(plan, operand, offsets, begin, count);
    if (there)
        return there;
    const eddy_op_view *view = plan->views[operand];
    int64_t stride = eddy_walk_inner_stride(&plan->elements, operand);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->elements, &cursor, begin);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&plan->elements, &cursor), count - done);
        eddy_chunk_load(plan->compute, eddy_chunk_at(chunk, plan->compute, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, offsets[operand] + cursor.offsets[operand]), stride,
                        run);
        eddy_walk_advance(&plan->elements, &cursor, run);
    }
    return chunk;
}

void *eddy_norm_target(const eddy_norm_plan *plan, int32_t operand, const int64_t *offsets, int64_t begin,
                       int64_t count, eddy_norm_chunk *chunk) {
    void *there = direct(plan, operand, offsets, begin, count);
    return there ? there : chunk;
}

void eddy_norm_store(const eddy_norm_plan *plan, int32_t operand, const int64_t *offsets, int64_t begin, int64_t count,
                     const eddy_norm_chunk *chunk) {
    if (direct(plan, operand, offsets, begin, count))
        return;
    const eddy_op_view *view = plan->views[operand];
    int64_t stride = eddy_walk_inner_stride(&plan->elements, operand);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->elements, &cursor, begin);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&plan->elements, &cursor), count - done);
        eddy_chunk_store(view->dtype,
                         eddy_chunk_at(view->data, view->dtype, offsets[operand] + cursor.offsets[operand]), stride,
                         plan->compute, eddy_chunk_at(chunk, plan->compute, done), run);
        eddy_walk_advance(&plan->elements, &cursor, run);
    }
}

const void *eddy_norm_weights(const eddy_norm_plan *plan, const void *weights, int64_t place, int64_t begin,
                              int64_t count, eddy_norm_chunk *chunk) {
    int64_t first = eddy_norm_first_weight(plan, place);
    if (plan->segment == 1)
        return eddy_chunk_at(weights, plan->compute, first + begin);
    int64_t bytes = plan->compute == EDDY_F64 ? 8 : 4;
    for (int64_t done = 0; done < count;) {
        int64_t at = begin + done, run = eddy_min_i64(plan->segment - at % plan->segment, count - done);
        eddy_chunk_fill(eddy_chunk_at(chunk, plan->compute, done), 1, bytes,
                        eddy_chunk_at(weights, plan->compute, first + at / plan->segment), run);
        done += run;
    }
    return chunk;
}

/* Elements that are worth a call. */
#define RUN_LEAST 64

static int64_t rest_of(int64_t length, int64_t begin, int64_t count) {
    return length < RUN_LEAST ? count : eddy_min_i64(count, length - begin % length);
}

int64_t eddy_norm_run(const eddy_norm_plan *plan, int64_t begin, int64_t *step) {
    const eddy_walk *elements = &plan->elements;
    int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
    if (elements->rank > 1)
        count = rest_of(elements->dims[elements->rank - 1], begin, count);
    *step = plan->segment < RUN_LEAST;
    return rest_of(plan->segment, begin, count);
}

/* The formula for two samples: T. Chan, G. Golub, R. LeVeque, 1979. */
void eddy_norm_join(eddy_norm_moments *total, int64_t begin, const eddy_norm_moments *part, int64_t count) {
    double share = (double)count / (double)(begin + count), distance = part->mean - total->mean;
    total->squares += part->squares + distance * distance * share * (double)begin;
    total->mean += distance * share;
}

eddy_norm_moments eddy_norm_place_moments(const eddy_norm_plan *plan, int32_t operand, const int64_t *offsets,
                                          bool centred, eddy_norm_chunk *chunk) {
    eddy_norm_moments total = {0};
    for (int64_t begin = 0; begin < plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, plan->element_count - begin);
        total.kept = eddy_norm_read(plan, operand, offsets, begin, count, chunk);
        if (!centred) {
            total.squares += plan->ops->square_sum(total.kept, count);
            continue;
        }
        eddy_norm_moments part;
        plan->ops->moments(total.kept, count, &part.mean, &part.squares);
        eddy_norm_join(&total, begin, &part, count);
    }
    return total;
}
