/* What all normalisations have in common: places, each with statistics of its own, and the elements of a place.
 *
 *              places             elements of a place     a weight belongs to
 *   layer, rms leading dims       the last dims           each element
 *   group      [N, groups]        [C / groups, ..]        the C / groups runs of a place
 *   batch      [C]                [N, ..]                 a place
 *
 * Elements are taken in row-major order whatever the strides, so that layout does not show in the bits. */
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

/* What follows from the operands' shape alone, and how those that are turned are copied: part of a call's plan. */
typedef struct eddy_norm_plan {
    const eddy_norm_ops *ops;
    int64_t place_count, element_count;
    int64_t segment; /* neighbouring elements that share a weight */
    int64_t period;  /* places from which on weights repeat */
    int64_t weight_count;
    eddy_dtype compute;
    uint8_t operand_count;
    bool is_turned; /* some operand is */
    /* Of turned operands: words from the plan's first to those of the copy; 0: not turned. */
    int16_t copies[EDDY_NORM_OPERANDS];
} eddy_norm_plan;

typedef struct eddy_norm_operand {
    void *data; /* NULL while the call is planned */
    eddy_dtype dtype;
} eddy_norm_operand;

/* Operands of one shape, as they are walked: while a call is planned, and while it runs. Some KB, set as far as they are used. */
typedef struct eddy_norm_places {
    const eddy_norm_plan *plan;
    eddy_norm_operand operands[EDDY_NORM_OPERANDS];
    eddy_walk places, elements;
} eddy_norm_places;

/* views: `count` operands of one shape. Fill in the plan and the places; nothing is turned. */
void eddy_norm_plan_last_axes(eddy_norm_plan *plan, eddy_norm_places *at,
                              const eddy_op_view *const *views, int32_t count, int64_t axis_count);
void eddy_norm_plan_groups(eddy_norm_plan *plan, eddy_norm_places *at,
                           const eddy_op_view *const *views, int32_t count, int64_t groups);
void eddy_norm_plan_channels(eddy_norm_plan *plan, eddy_norm_places *at,
                             const eddy_op_view *const *views, int32_t count);

/* Words of a call's plan that the walks of both take at most: groups are a dim more than the operands have. */
#define EDDY_NORM_WORDS_MOST (2 + (EDDY_RANK_MAX + 1) * (1 + EDDY_NORM_OPERANDS))
/* Write the walks, and read them; the word behind them. */
int64_t *eddy_norm_places_write(const eddy_norm_places *at, int64_t *words);
const int64_t *eddy_norm_places_read(eddy_norm_places *at, const int64_t *words);

/* Whether places of the operand lie side by side in memory and their elements apart (channels last, columns). */
bool eddy_norm_is_scattered(const eddy_norm_places *at, int32_t operand);

/* Taken element by element a scattered operand would read each cache line many times, so it is turned into the workspace, place
 * by place. This plans it: the places get the strides of the copies, and where all operands are turned, places and elements are a
 * dim each. The `output` (-1: none) is copied out of the workspace. The copies are written to words behind the plan; the one behind
 * them comes back. */
int64_t *eddy_norm_plan_turn(eddy_norm_plan *plan, eddy_norm_places *at, int32_t output,
                             int64_t *words);
/* Bytes of workspace for the copies, of which there are some. */
size_t eddy_norm_turn_bytes(const eddy_norm_places *at);
/* Where something is turned: turns it into `memory`, where they are taken from then on. The output is not read; the second turns it back to where it
 * belongs. */
void eddy_norm_turn(eddy_norm_places *at, int32_t output, eddy_kernel_team *team, void *memory);
void eddy_norm_turn_back(const eddy_norm_places *at, int32_t output, eddy_kernel_team *team,
                         void *data);

/* Number of the weight that the first element of a place has. */
static inline int64_t eddy_norm_first_weight(const eddy_norm_plan *plan, int64_t place) {
    return place % plan->period * (plan->element_count / plan->segment);
}

/* Elements begin .. begin + count of an operand at the place whose offsets these are: where they lie if that is contiguous and of
 * the compute type, else gathered in *chunk. */
const void *eddy_norm_read(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                           int64_t begin, int64_t count, eddy_norm_chunk *chunk);
/* Where those of the output are to be computed: where they belong, or in *chunk, which eddy_norm_store then stores. */
void *eddy_norm_target(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                       int64_t begin, int64_t count, eddy_norm_chunk *chunk);
void eddy_norm_store(const eddy_norm_places *at, int32_t operand, const int64_t *offsets,
                     int64_t begin, int64_t count, const eddy_norm_chunk *chunk);

/* Weights of elements begin .. of a place: where they lie among all, or spread out into *chunk. */
const void *eddy_norm_weights(const eddy_norm_plan *plan, const void *weights, int64_t place,
                              int64_t begin, int64_t count, eddy_norm_chunk *chunk);

/* How many elements from `begin` on are best computed in one go: a chunk at most, that is not read across rows of memory,
 * nor has several weights, where rows and runs with one weight are long enough. With *step 0 they share the weight that
 * eddy_norm_weights says for one element. */
int64_t eddy_norm_run(const eddy_norm_places *at, int64_t begin, int64_t *step);

/* Mean and sum of squared distances of a place, or without `centred` 0 and the sum of squares. A place of at most one chunk
 * is still at `kept`. */
typedef struct eddy_norm_moments {
    double mean, squares;
    const void *kept;
} eddy_norm_moments;

/* Adds the moments of `count` elements to those of the `begin` before them. */
void eddy_norm_join(eddy_norm_moments *total, int64_t begin, const eddy_norm_moments *part,
                    int64_t count);

eddy_norm_moments eddy_norm_place_moments(const eddy_norm_places *at, int32_t operand,
                                          const int64_t *offsets, bool centred,
                                          eddy_norm_chunk *chunk);

#endif
