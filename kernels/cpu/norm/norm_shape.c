/* Places, elements, and what follows from their number: for the normalisations of all devices. */
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/norm/norm_plan.h>
#include <string.h>

static void append(eddy_walk *walk, const eddy_op_view *const *views, int32_t count, int32_t d) {
    walk->dims[walk->rank] = views[0]->shape[d];
    for (int32_t o = 0; o < count; o++)
        walk->strides[o][walk->rank] = views[o]->strides[d];
    walk->rank++;
}

static void begin(eddy_norm_plan *plan, eddy_norm_places *at, const eddy_op_view *const *views,
                  int32_t count) {
    plan->operand_count = (uint8_t)count;
    plan->is_turned = false;
    memset(plan->copies, 0, sizeof(plan->copies));
    plan->compute = eddy_chunk_compute_dtype(views[0]->dtype);
    at->plan = plan;
    for (int32_t o = 0; o < count; o++)
        at->operands[o] = (eddy_norm_operand){.dtype = views[o]->dtype};
    at->places.rank = at->elements.rank = 0;
    at->places.operand_count = at->elements.operand_count = count;
}

/* A single dim that is not 1 is collapsed already. */
static int64_t collapse(eddy_walk *walk) {
    if (walk->rank == 1 && walk->dims[0] != 1)
        return walk->dims[0];
    int64_t count = eddy_walk_count(walk);
    eddy_walk_collapse(walk);
    return count;
}

static void end(eddy_norm_plan *plan, eddy_norm_places *at, int64_t segment, int64_t period) {
    plan->place_count = collapse(&at->places);
    plan->element_count = collapse(&at->elements);
    plan->segment = eddy_max_i64(1, segment);
    plan->period = period;
}

void eddy_norm_plan_last_axes(eddy_norm_plan *plan, eddy_norm_places *at,
                              const eddy_op_view *const *views, int32_t count, int64_t axis_count) {
    begin(plan, at, views, count);
    int32_t rank = views[0]->rank, first = rank - (int32_t)axis_count;
    for (int32_t d = 0; d < rank; d++)
        append(d < first ? &at->places : &at->elements, views, count, d);
    end(plan, at, 1, 1);
    plan->weight_count = plan->element_count;
}

void eddy_norm_plan_groups(eddy_norm_plan *plan, eddy_norm_places *at,
                           const eddy_op_view *const *views, int32_t count, int64_t groups) {
    begin(plan, at, views, count);
    int64_t channels = views[0]->shape[1] / groups, segment = 1;
    int64_t strides[EDDY_NORM_OPERANDS] = {0};
    append(&at->places, views, count, 0);
    for (int32_t o = 0; o < count; o++)
        strides[o] = views[o]->strides[1] * channels;
    eddy_walk_append(&at->places, groups, strides, count);
    for (int32_t o = 0; o < count; o++)
        strides[o] = views[o]->strides[1];
    eddy_walk_append(&at->elements, channels, strides, count);
    for (int32_t d = 2; d < views[0]->rank; d++) {
        append(&at->elements, views, count, d);
        segment *= views[0]->shape[d];
    }
    end(plan, at, segment, groups);
    plan->weight_count = views[0]->shape[1]; /* also if the segments are empty */
}

void eddy_norm_plan_channels(eddy_norm_plan *plan, eddy_norm_places *at,
                             const eddy_op_view *const *views, int32_t count) {
    begin(plan, at, views, count);
    for (int32_t d = 0; d < views[0]->rank; d++)
        append(d == 1 ? &at->places : &at->elements, views, count, d);
    end(plan, at, eddy_walk_count(&at->elements), eddy_max_i64(1, views[0]->shape[1]));
    plan->weight_count = plan->place_count;
}

/* ---- the gradient of the weight ---- */

#define BLOCKS_MAX 64
#define BLOCK_ELEMENTS 65536
#define PARTIALS_MAX (1 << 20)

int64_t eddy_norm_block_count(const eddy_norm_plan *plan) {
    int64_t elements = plan->place_count * plan->element_count;
    if (eddy_norm_owns_weights(plan) || plan->weight_count == 0)
        return 1;
    int64_t blocks =
        eddy_min_i64(BLOCKS_MAX, eddy_min_i64(plan->place_count, elements / BLOCK_ELEMENTS));
    return eddy_max_i64(1, eddy_min_i64(blocks, PARTIALS_MAX / plan->weight_count));
}
