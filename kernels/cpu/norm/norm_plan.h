/* What all normalisations share: places, each with its own statistics, and the elements of a place.
 *
 *              places             elements of a place     a weight belongs to
 *   layer, rms leading dims       the last dims           each element
 *   group      [N, groups]        [C / groups, ..]        the C / groups runs of a place
 *   batch      [C]                [N, ..]                 a place
 *
 * Elements are used in row-major order whatever the strides, so that results do not depend on the layout. */
#ifndef EDDY_KERNELS_CPU_NORM_PLAN_H
#define EDDY_KERNELS_CPU_NORM_PLAN_H

#include <kernels/cpu/norm/norm_block.h>
#include <kernels/cpu/walk.h>
#include <kernels/kernel.h>

#define EDDY_NORM_OPERANDS 3

/* A chunk of the compute type. */
typedef union eddy_norm_chunk {
    _Alignas(64) float f32[EDDY_NORM_CHUNK];
    double f64[EDDY_NORM_CHUNK];
} eddy_norm_chunk;

/* Values that follow from the operands' shape alone, and the copies of transposed operands: part of a call's plan. */
typedef struct eddy_norm_plan {
    const eddy_norm_ops *ops;
    int64_t place_count, element_count;
    int64_t segment; /* neighbouring elements that share a weight */
    int64_t period;  /* places from which on weights repeat */
    int64_t weight_count;
    eddy_dtype compute;
    uint8_t operand_count;
    bool is_turned; /* some operand is transposed */
    /* For transposed operands: offset of the copy's words from the plan, in words; 0: not transposed. */
    int16_t copies[EDDY_NORM_OPERANDS];
} eddy_norm_plan;

typedef struct eddy_norm_operand {
    void *data; /* NULL while the call is planned */
    eddy_dtype dtype;
} eddy_norm_operand;

/* Operands of one shape and the walks over them, while a call is planned and while it runs. It has some KB, so only
 * members in use are set. */
typedef struct eddy_norm_places {
    const eddy_norm_plan *plan;
    eddy_norm_operand operands[EDDY_NORM_OPERANDS];
    eddy_walk places, elements;
} eddy_norm_places;

/* views: `count` operands of one shape. The functions fill in the plan but for its `ops`, and the places; no operand is transposed yet. */
void eddy_norm_plan_last_axes(eddy_norm_plan *plan, eddy_norm_places *at,
                              const eddy_op_view *const *views, int32_t count, int64_t axis_count);
void eddy_norm_plan_groups(eddy_norm_plan *plan, eddy_norm_places *at,
                           const eddy_op_view *const *views, int32_t count, int64_t groups);
void eddy_norm_plan_channels(eddy_norm_plan *plan, eddy_norm_places *at,
                             const eddy_op_view *const *views, int32_t count);

/* A weight's gradient is summed over blocks of places: block `b` of `n` begins at place `place_count * b / n`. Their number depends on the shape alone. If places have
 * weights of their own there is one block. */
int64_t eddy_norm_block_count(const eddy_norm_plan *plan);
static inline bool eddy_norm_owns_weights(const eddy_norm_plan *plan) {
    return plan->period == plan->place_count;
}

/* Words that both walks take at most: groups have one dim more than the operands. */
#define EDDY_NORM_WORDS_MOST (2 + (EDDY_RANK_MAX + 1) * (1 + EDDY_NORM_OPERANDS))
/* Write the walks, and read them; they return the address behind the words. */
int64_t *eddy_norm_places_write(const eddy_norm_places *at, int64_t *words);
const int64_t *eddy_norm_places_read(eddy_norm_places *at, const int64_t *words);

/* Whether places of the operand are contiguous in memory and their elements are not (channels last, columns). */
bool eddy_norm_is_scattered(const eddy_norm_places *at, int32_t operand);

/* A scattered operand that is read element by element would load each cache line many times, so it is transposed into the
 * workspace, place by place. This plans it: the places get the strides of the copies, and if all operands are transposed,
 * places and elements have one dim each. The `output` (-1: none) is copied out of the workspace. The copies' words are
 * written behind the plan; returns the address behind them. */
int64_t *eddy_norm_plan_turn(eddy_norm_plan *plan, eddy_norm_places *at, int32_t output,
                             int64_t *words);
/* Bytes of workspace for the transposed operands. */
size_t eddy_norm_turn_bytes(const eddy_norm_places *at);
/* For plans with transposed operands. eddy_norm_turn copies them to `memory`, which is used from then on; the output is
 * not read. eddy_norm_turn_back copies the output to its own memory. */
void eddy_norm_turn(eddy_norm_places *at, int32_t output, eddy_kernel_team *team, void *memory);
void eddy_norm_turn_back(const eddy_norm_places *at, int32_t output, eddy_kernel_team *team,
                         void *data);

/* The number of the weight of a place's first element. */
static inline int64_t eddy_norm_first_weight(const eddy_norm_plan *plan, int64_t place) {
    return place % plan->period * (plan->element_count / plan->segment);
}

/* Elements begin .. begin + count - 1 of an operand at the place with these offsets: in place if they are contiguous and
 * of the compute type, else gathered in *chunk. */
const void *eddy_norm_read(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                           int64_t begin, int64_t count, eddy_norm_chunk *chunk);
/* Memory in which elements of the output are to be computed: the output itself, or *chunk, which eddy_norm_store then
 * stores. */
void *eddy_norm_target(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                       int64_t begin, int64_t count, eddy_norm_chunk *chunk);
void eddy_norm_store(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                     int64_t begin, int64_t count, const eddy_norm_chunk *chunk);

/* Weights of a place's elements from `begin` on: in place, or repeated in *chunk for the elements that share one. */
const void *eddy_norm_weights(const eddy_norm_plan *plan, const void *weights, int64_t place,
                              int64_t begin, int64_t count, eddy_norm_chunk *chunk);

/* The number of elements from `begin` on that are best computed in one call. They are a chunk at most. They do not cross a
 * row of memory, or have several weights, if rows and runs with one weight are long enough. If *step is 0, they share the
 * weight that eddy_norm_weights gives for one element. */
int64_t eddy_norm_run(const eddy_norm_places *at, int64_t begin, int64_t *step);

/* Mean and sum of squared distances from it for a place; without `centred`, 0 and the sum of squares. If the place has at
 * most one chunk, its elements are still at `kept`. */
typedef struct eddy_norm_moments {
    double mean, squares;
    const void *kept;
} eddy_norm_moments;

eddy_norm_moments eddy_norm_place_moments(const eddy_norm_places *at, int32_t operand,
                                          const int64_t *offsets, bool centred,
                                          eddy_norm_chunk *chunk);

#endif
