#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/norm/norm_plan.h>
#include <string.h>

int64_t *eddy_norm_places_write(const eddy_norm_places *at, int64_t *words) {
    return eddy_walk_write(&at->elements, eddy_walk_write(&at->places, words));
}

const int64_t *eddy_norm_places_read(eddy_norm_places *at, const int64_t *words) {
    return eddy_walk_read(&at->elements, eddy_walk_read(&at->places, words));
}

/* ---- transposed operands ---- */

/* At least this many contiguous places. */
#define LEAST_PLACES 8

bool eddy_norm_is_scattered(const eddy_norm_places *at, int32_t operand) {
    const eddy_walk *places = &at->places, *elements = &at->elements;
    if (places->rank == 0 || elements->rank == 0 || places->rank + elements->rank > EDDY_RANK_MAX)
        return false;
    int64_t step = elements->strides[operand][elements->rank - 1];
    return places->strides[operand][places->rank - 1] == 1 &&
           places->dims[places->rank - 1] >= LEAST_PLACES && step != 1 && step != 0;
}

/* Stride from place to place in a transposed operand: a cache line more than the elements, so that with a power of two not
 * all places fall into the same set of the cache. */
static int64_t turned_stride(const eddy_norm_plan *plan, eddy_dtype dtype) {
    return plan->element_count + 64 / eddy_dtype_size(dtype);
}

static size_t turned_bytes(const eddy_norm_plan *plan, eddy_dtype dtype) {
    size_t bytes =
        (size_t)(plan->place_count * turned_stride(plan, dtype) * eddy_dtype_size(dtype));
    return (bytes + 63) / 64 * 64;
}

size_t eddy_norm_turn_bytes(const eddy_norm_places *at) {
    size_t bytes = 0;
    for (int32_t o = 0; o < at->plan->operand_count; o++)
        if (at->plan->copies[o])
            bytes += turned_bytes(at->plan, at->operands[o].dtype);
    return bytes;
}

/* Plans the copy: the dims of places, then those of elements. The operand gets the strides of its copy. */
static int64_t *plan_copy(eddy_norm_plan *plan, eddy_norm_places *at, int32_t operand,
                          bool is_output, int64_t *words) {
    int64_t dims[EDDY_RANK_MAX], there[EDDY_RANK_MAX], here[EDDY_RANK_MAX], stride = 1;
    int32_t rank = at->places.rank + at->elements.rank;
    for (int32_t d = rank - 1; d >= 0; d--) {
        bool is_place = d < at->places.rank;
        eddy_walk *walk = is_place ? &at->places : &at->elements;
        int32_t own = is_place ? d : d - at->places.rank;
        if (d == at->places.rank - 1)
            stride = turned_stride(plan, at->operands[operand].dtype);
        dims[d] = walk->dims[own];
        there[d] = walk->strides[operand][own];
        walk->strides[operand][own] = here[d] = stride;
        stride *= dims[d];
    }
    eddy_op_view lies = {
        .shape = dims, .strides = there, .dtype = at->operands[operand].dtype, .rank = rank};
    eddy_op_view copy = lies;
    copy.strides = here;
    plan->copies[operand] = (int16_t)(words - (int64_t *)(void *)plan);
    return is_output ? eddy_copy_prepare(&copy, &lies, words)
                     : eddy_copy_prepare(&lies, &copy, words);
}

int64_t *eddy_norm_plan_turn(eddy_norm_plan *plan, eddy_norm_places *at, int32_t output,
                             int64_t *words) {
    int64_t *first = words;
    for (int32_t o = 0; o < plan->operand_count; o++)
        if (eddy_norm_is_scattered(at, o))
            words = plan_copy(plan, at, o, o == output, words);
    plan->is_turned = words > first;
    if (!plan->is_turned)
        return words;
    eddy_walk_collapse(&at->places);
    eddy_walk_collapse(&at->elements);
    return words;
}

static const int64_t *copy_of(const eddy_norm_plan *plan, int32_t operand) {
    return (const int64_t *)(const void *)plan + plan->copies[operand];
}

void eddy_norm_turn(eddy_norm_places *at, int32_t output, eddy_kernel_team *team, void *memory) {
    char *to = memory;
    for (int32_t o = 0; o < at->plan->operand_count; o++) {
        if (!at->plan->copies[o])
            continue;
        if (o != output)
            eddy_copy_run(copy_of(at->plan, o), team, at->operands[o].data, to);
        at->operands[o].data = to;
        to += turned_bytes(at->plan, at->operands[o].dtype);
    }
}

void eddy_norm_turn_back(const eddy_norm_places *at, int32_t output, eddy_kernel_team *team,
                         void *data) {
    if (at->plan->copies[output])
        eddy_copy_run(copy_of(at->plan, output), team, at->operands[output].data, data);
}

/* ---- chunks ---- */

/* Address of `count` elements of the operand at a place, if they are contiguous and of the compute type; else NULL. */
static void *direct(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                    int64_t begin, int64_t count) {
    const eddy_norm_operand *own = &at->operands[operand];
    const eddy_walk *elements = &at->elements;
    if (own->dtype != at->plan->compute || eddy_walk_inner_stride(elements, operand) != 1)
        return NULL;
    if (elements->rank <= 1)
        return eddy_chunk_at(own->data, own->dtype, offsets[operand] + begin);
    int64_t inner = elements->dims[elements->rank - 1];
    if (begin % inner + count > inner)
        return NULL;
    eddy_walk_cursor cursor;
    eddy_walk_seek(elements, &cursor, begin);
    return eddy_chunk_at(own->data, own->dtype, offsets[operand] + cursor.offsets[operand]);
}

const void *eddy_norm_read(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                           int64_t begin, int64_t count, eddy_norm_chunk *chunk) {
    const void *there = direct(at, operand, offsets, begin, count);
    if (there)
        return there;
    const eddy_norm_operand *own = &at->operands[operand];
    int64_t stride = eddy_walk_inner_stride(&at->elements, operand);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&at->elements, &cursor, begin);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&at->elements, &cursor), count - done);
        eddy_chunk_load(
            at->plan->compute, eddy_chunk_at(chunk, at->plan->compute, done), own->dtype,
            eddy_chunk_at(own->data, own->dtype, offsets[operand] + cursor.offsets[operand]),
            stride, run);
        eddy_walk_advance(&at->elements, &cursor, run);
    }
    return chunk;
}

void *eddy_norm_target(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                       int64_t begin, int64_t count, eddy_norm_chunk *chunk) {
    void *there = direct(at, operand, offsets, begin, count);
    return there ? there : chunk;
}

void eddy_norm_store(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                     int64_t begin, int64_t count, const eddy_norm_chunk *chunk) {
    if (direct(at, operand, offsets, begin, count))
        return;
    const eddy_norm_operand *own = &at->operands[operand];
    int64_t stride = eddy_walk_inner_stride(&at->elements, operand);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&at->elements, &cursor, begin);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&at->elements, &cursor), count - done);
        eddy_chunk_store(
            own->dtype,
            eddy_chunk_at(own->data, own->dtype, offsets[operand] + cursor.offsets[operand]),
            stride, at->plan->compute, eddy_chunk_at(chunk, at->plan->compute, done), run);
        eddy_walk_advance(&at->elements, &cursor, run);
    }
}

const void *eddy_norm_weights(const eddy_norm_plan *plan, const void *weights, int64_t place,
                              int64_t begin, int64_t count, eddy_norm_chunk *chunk) {
    int64_t first = eddy_norm_first_weight(plan, place);
    if (plan->segment == 1)
        return eddy_chunk_at(weights, plan->compute, first + begin);
    int64_t bytes = plan->compute == EDDY_F64 ? 8 : 4;
    for (int64_t done = 0; done < count;) {
        int64_t at = begin + done,
                run = eddy_min_i64(plan->segment - at % plan->segment, count - done);
        eddy_chunk_fill(eddy_chunk_at(chunk, plan->compute, done), 1, bytes,
                        eddy_chunk_at(weights, plan->compute, first + at / plan->segment), run);
        done += run;
    }
    return chunk;
}

/* Fewer elements are not worth a call. */
#define RUN_LEAST 64

static int64_t rest_of(int64_t length, int64_t begin, int64_t count) {
    return length < RUN_LEAST ? count : eddy_min_i64(count, length - begin % length);
}

int64_t eddy_norm_run(const eddy_norm_places *at, int64_t begin, int64_t *step) {
    const eddy_walk *elements = &at->elements;
    int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, at->plan->element_count - begin);
    if (elements->rank > 1)
        count = rest_of(elements->dims[elements->rank - 1], begin, count);
    *step = at->plan->segment < RUN_LEAST;
    return rest_of(at->plan->segment, begin, count);
}

eddy_norm_moments eddy_norm_place_moments(const eddy_norm_places *at, int32_t operand,
                                          const int64_t *offsets, bool centred,
                                          eddy_norm_chunk *chunk) {
    eddy_norm_total total = {0};
    const void *kept = NULL;
    for (int64_t begin = 0; begin < at->plan->element_count; begin += EDDY_NORM_CHUNK) {
        int64_t count = eddy_min_i64(EDDY_NORM_CHUNK, at->plan->element_count - begin);
        kept = eddy_norm_read(at, operand, offsets, begin, count, chunk);
        eddy_norm_sums part = {0};
        if (centred)
            at->plan->ops->moments(kept, count, &part.mean, &part.squares);
        else
            part.squares = at->plan->ops->square_sum(kept, count);
        eddy_norm_join(&total, begin, &part, count);
    }
    return (eddy_norm_moments){total.sums.mean, total.sums.squares, kept};
}
