/* Reductions of one element type, included by reduce_..._block.c alone (kernels/cpu/typed.h), which also define
 *
 *     EDDY_FROM                       the C type of elements, which are converted to EDDY_REAL first
 *     EDDY_WRAPPING                   EDDY_REAL, or the unsigned type in which sums and products of integers wrap around
 *     EDDY_LOWEST, EDDY_HIGHEST       no number is below, above
 *     EDDY_IS_WIDE                    if EDDY_FROM is float and EDDY_REAL double
 *
 * The function of an element that is reduced (`what`) and the way in which two values are joined (`how`) are constants in
 * every call of the functions here. Lanes are named vectors in arrays of constant size, which stay in registers. */
#ifndef EDDY_KERNELS_CPU_REDUCE_TYPED_H
#define EDDY_KERNELS_CPU_REDUCE_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/prefetch.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/typed.h>
#include <math.h>
#include <string.h>

typedef EDDY_FROM element;

enum {
    LANES = EDDY_REDUCE_LANES,
    FITTING = EDDY_VECTOR_BYTES / (int)sizeof(real),
    ONE = FITTING < LANES ? FITTING : LANES,
    VECTORS = LANES / ONE,
    FEW = ONE > 16 ? 16 : 8,
    /* Whether a remainder is processed in registers, with masked loads. */
    IS_MASKED = EDDY_VECTOR_BYTES >= 32 && VECTORS <= 4,
};

typedef real vector __attribute__((vector_size(ONE * sizeof(real))));
/* Integers as wide as the elements, and as wide as the values that they become: comparisons of them give masks. */
typedef __typeof__(_Generic((element)0, float
                            : (int32_t)0, uint8_t
                            : (int8_t)0, default
                            : (int64_t)0)) element_index;
typedef __typeof__(_Generic((real)0, float
                            : (int32_t)0, uint8_t
                            : (int8_t)0, default
                            : (int64_t)0)) real_index;
typedef real_index lane_indices __attribute__((vector_size(ONE * sizeof(real))));
typedef EDDY_WRAPPING wrapping_vector __attribute__((vector_size(ONE * sizeof(real))));

#define INLINE static inline __attribute__((always_inline, unused))

#ifdef __clang__
#define EACH_VECTOR(v, count) _Pragma("clang loop unroll(full)") for (int v = 0; v < (count); v++)
#else
#define EACH_VECTOR(v, count) _Pragma("GCC unroll 16") for (int v = 0; v < (count); v++)
#endif

/* ---- elements ---- */

/* The function of an element that is reduced; `found` is the result of an earlier sweep. */
typedef enum taking { ITSELF, SQUARE, MAGNITUDE, NONZERO, DEVIATION, SQUARE_DEVIATION } taking;

/* LARGEST and SMALLEST keep the first value if both are equal, or if it is NaN. LARGER and SMALLER are the same for values
 * without NaN. */
typedef enum joining { SUM, PRODUCT, LARGEST, SMALLEST, LARGER, SMALLER } joining;

INLINE real take(taking what, real x, real found) {
    switch (what) {
    case SQUARE:
        return x * x;
    case MAGNITUDE:
        return (real)fabs((double)x);
    case NONZERO:
        return x != 0 ? 1 : 0;
    case DEVIATION:
        return x - found;
    case SQUARE_DEVIATION:
        return (x - found) * (x - found);
    default:
        return x;
    }
}

/* isnan does not accept integers. */
INLINE int is_nan(real x) {
    real same = x;
    return x != same;
}

INLINE real join(joining how, real a, real b) {
    switch (how) {
    case PRODUCT:
        return (real)((EDDY_WRAPPING)a * (EDDY_WRAPPING)b);
    case LARGEST:
        return ((a >= b) | is_nan(a)) ? a : b;
    case SMALLEST:
        return ((a <= b) | is_nan(a)) ? a : b;
    case LARGER:
        return b > a ? b : a;
    case SMALLER:
        return b < a ? b : a;
    default:
        return (real)((EDDY_WRAPPING)a + (EDDY_WRAPPING)b);
    }
}

/* The earlier sweep's result for a column, if `what` uses it. */
INLINE real found_at(taking what, const real *found, int64_t column) {
    return what == DEVIATION || what == SQUARE_DEVIATION ? found[column] : 0;
}

/* The neutral value: joined to any number it leaves the number unchanged, its sign included. */
INLINE real nothing(joining how) {
    switch (how) {
    case PRODUCT:
        return 1;
    case LARGEST:
    case LARGER:
        return EDDY_LOWEST;
    case SMALLEST:
    case SMALLER:
        return EDDY_HIGHEST;
    default:
        return (real)-0.0;
    }
}

/* ---- vectors of them ---- */

INLINE vector all(real x) {
    return x - (vector){0};
}

INLINE vector load_reals(const real *x) {
    vector loaded;
    memcpy(&loaded, x, sizeof(loaded));
    return loaded;
}

INLINE vector found_vector(taking what, const real *found, int64_t column) {
    return what == DEVIATION || what == SQUARE_DEVIATION ? load_reals(found + column) : (vector){0};
}

/* gcc 12 compiles __builtin_convertvector to two conversions, and this to one. */
INLINE vector load(const element *x) {
#if defined(EDDY_IS_WIDE) && EDDY_VECTOR_BYTES == 64
    return (vector){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
#elif defined(EDDY_IS_WIDE) && EDDY_VECTOR_BYTES == 32
    return (vector){x[0], x[1], x[2], x[3]};
#elif defined(EDDY_IS_WIDE)
    return (vector){x[0], x[1]};
#else
    return load_reals(x);
#endif
}

/* gcc compiles a selection in a loop to one instruction, and a selection by masks to several. */
INLINE vector take_vector(taking what, const element *from, vector found) {
    vector x = load(from);
    switch (what) {
    case ITSELF:
        return x;
    case SQUARE:
        return x * x;
    case DEVIATION:
        return x - found;
    case SQUARE_DEVIATION:
        return (x - found) * (x - found);
    default:
        break;
    }
    real lanes[ONE];
    memcpy(lanes, &x, sizeof(lanes));
    EDDY_LANES (l, ONE)
        lanes[l] = take(what, lanes[l], 0);
    return load_reals(lanes);
}

INLINE vector join_vectors(joining how, vector a, vector b) {
    if (how == SUM)
        return (vector)((wrapping_vector)a + (wrapping_vector)b);
    if (how == PRODUCT)
        return (vector)((wrapping_vector)a * (wrapping_vector)b);
#if defined(__SSE2__) && !defined(__SSE4_2__)
    /* SSE2 has no comparison for vectors of 64-bit integers. */
    if (ONE == 2 && (real)0.5 == 0)
        return (vector){join(how, a[0], b[0]), join(how, a[ONE - 1], b[ONE - 1])};
#endif
    real lanes[ONE], others[ONE];
    memcpy(lanes, &a, sizeof(lanes));
    memcpy(others, &b, sizeof(others));
    EDDY_LANES (l, ONE)
        lanes[l] = join(how, lanes[l], others[l]);
    return load_reals(lanes);
}

/* In memory: gcc stores a constant that it has to make in two halves, and a load of the whole waits for both stores. */
static const real_index first_indices[EDDY_REDUCE_LANES] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

INLINE lane_indices order_of_lanes(void) {
    lane_indices lanes;
    memcpy(&lanes, first_indices, sizeof(lanes));
    return lanes;
}

/* The first `count` elements, or all of them if the vector has no more; the other lanes are those of `rest`. */
INLINE vector take_some(taking what, const element *x, int64_t count, vector found, vector rest) {
    element first[ONE];
    int64_t present = count < ONE ? count : ONE;
    EDDY_LOOP_APART EDDY_LOOP_AS_IT_IS for (element_index e = 0; e < ONE; e++) first[e] =
        e < (element_index)present ? x[e] : 0;
    lane_indices is_there = order_of_lanes() < (real_index)present;
    vector taken = take_vector(what, first, found);
    return (vector)(((lane_indices)taken & is_there) | ((lane_indices)rest & ~is_there));
}

/* Prefetches `count` elements that are `ahead` elements behind `x`. They may be beyond the end of the array. */
INLINE void prefetch(const element *x, int64_t count, int64_t ahead) {
    eddy_prefetch((uintptr_t)x + (uintptr_t)ahead * sizeof(*x), count * (int64_t)sizeof(*x));
}

/* ---- a block ---- */

#ifdef EDDY_IS_WIDE
/* a * b. A denormal product costs the processor some 150 cycles, and products of many numbers below 1 are mostly denormal.
 * If the product is 0 for certain, one factor is replaced by 0. */
INLINE real multiply_last(real a, real b) {
    const double tiny = 0x1p-538;
    return a * (((fabs(a) < tiny) & (fabs(b) < tiny)) ? copysign(0, b) : b);
}
#endif

/* Reduces all lanes to one value. */
INLINE real halve(joining how, const vector *vectors) {
    vector halves[VECTORS];
    EACH_VECTOR(v, VECTORS)
    halves[v] = vectors[v];
    EACH_VECTOR(v, VECTORS / 2)
    halves[v] = join_vectors(how, halves[v], halves[v + VECTORS / 2]);
    EACH_VECTOR(v, VECTORS / 4)
    halves[v] = join_vectors(how, halves[v], halves[v + VECTORS / 4]);
    EACH_VECTOR(v, VECTORS / 8)
    halves[v] = join_vectors(how, halves[v], halves[v + VECTORS / 8]);
    EACH_VECTOR(v, VECTORS / 16)
    halves[v] = join_vectors(how, halves[v], halves[v + VECTORS / 16]);
    real lanes[ONE];
    memcpy(lanes, &halves[0], sizeof(lanes));
    if (ONE > 16)
        EDDY_LANES (l, ONE / 2)
            lanes[l] = join(how, lanes[l], lanes[l + ONE / 2]);
    if (ONE > 8)
        EDDY_LANES (l, 8)
            lanes[l] = join(how, lanes[l], lanes[(l + 8) % ONE]);
    if (ONE > 4)
        EDDY_LANES (l, 4)
            lanes[l] = join(how, lanes[l], lanes[(l + 4) % ONE]);
    if (ONE == 2)
        return join(how, lanes[0], lanes[1]);
    real even = join(how, lanes[0], lanes[2 % ONE]), odd = join(how, lanes[1], lanes[3 % ONE]);
#ifdef EDDY_IS_WIDE
    if (how == PRODUCT)
        return multiply_last(even, odd);
#endif
    return join(how, even, odd);
}

/* Adds a remainder of fewer elements than lanes. Without masks it is processed in memory, since its vectors are known at
 * run time only. */
INLINE void join_rest(taking what, joining how, vector *lanes, const element *x, int64_t count,
                      vector found) {
    vector kept[VECTORS], others = all(nothing(how));
    int64_t v = 0;
    if (IS_MASKED) {
        EACH_VECTOR(i, VECTORS)
        if (i * ONE < count)
            lanes[i] = join_vectors(how, lanes[i],
                                    take_some(what, x + i * ONE, count - i * ONE, found, others));
        return;
    }
    EACH_VECTOR(i, VECTORS)
    kept[i] = lanes[i];
    EDDY_LOOP_AS_IT_IS for (; count >= ONE; count -= ONE, x += ONE, v++) kept[v] =
        join_vectors(how, kept[v], take_vector(what, x, found));
    if (count > 0)
        kept[v] = join_vectors(how, kept[v], take_some(what, x, count, found, others));
    EACH_VECTOR(i, VECTORS)
    lanes[i] = kept[i];
}

INLINE int64_t join_lanes(taking what, joining how, vector *lanes, const element *x, int64_t count,
                          int64_t ahead, vector found) {
    int64_t i = LANES;
    EACH_VECTOR(v, VECTORS)
    lanes[v] = take_vector(what, x + v * ONE, found);
    for (; i + LANES <= count; i += LANES) {
        if (ahead != 0)
            prefetch(x + i, LANES, ahead);
        EACH_VECTOR(v, VECTORS)
        lanes[v] = join_vectors(how, lanes[v], take_vector(what, x + i + v * ONE, found));
    }
    return i;
}

/* Up to FEW elements; longer rows use vectors. */
INLINE real reduce_few(taking what, joining how, const element *x, int64_t count, real found) {
    real lanes[FEW];
    EDDY_LOOP_AS_IT_IS for (int64_t l = 0; l < count; l++) lanes[l] = take(what, (real)x[l], found);
    for (int64_t width = FEW / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < count; l++)
            lanes[l] = join(how, lanes[l], lanes[l + width]);
    return lanes[0];
}

INLINE real reduce(taking what, joining how, const element *x, int64_t count, int64_t ahead,
                   real found) {
    vector lanes[VECTORS];
    int64_t i = 0;
    if (count <= FEW)
        return reduce_few(what, how, x, count, found);
    if (count < LANES)
        EACH_VECTOR(v, VECTORS)
    lanes[v] = all(nothing(how));
    else if (ahead == 0) i = join_lanes(what, how, lanes, x, count, 0, all(found));
    else i = join_lanes(what, how, lanes, x, count, ahead, all(found));
    if (i < count)
        join_rest(what, how, lanes, x + i, count - i, all(found));
    return halve(how, lanes);
}

/* ---- the largest and the smallest of a block ---- */

/* Lanes of LARGER or SMALLER, and sums that show whether an element was NaN. */
typedef struct extremes {
    vector best[VECTORS], sums[VECTORS];
} extremes;

INLINE void join_extreme(joining quick, vector *best, vector *sum, vector x) {
    *best = join_vectors(quick, *best, x);
    *sum += x;
}

INLINE int64_t join_extremes(joining quick, extremes *lanes, const element *x, int64_t count,
                             int64_t ahead) {
    int64_t i = LANES;
    EACH_VECTOR(v, VECTORS)
    lanes->best[v] = lanes->sums[v] = load(x + v * ONE);
    for (; i + LANES <= count; i += LANES) {
        if (ahead != 0)
            prefetch(x + i, LANES, ahead);
        EACH_VECTOR(v, VECTORS)
        join_extreme(quick, &lanes->best[v], &lanes->sums[v], load(x + i + v * ONE));
    }
    return i;
}

INLINE void join_rest_of_extremes(joining quick, extremes *lanes, const element *x, int64_t count) {
    extremes kept = *lanes;
    int64_t v = 0;
    if (IS_MASKED) {
        EACH_VECTOR(i, VECTORS)
        if (i * ONE < count)
            join_extreme(
                quick, &lanes->best[i], &lanes->sums[i],
                take_some(ITSELF, x + i * ONE, count - i * ONE, (vector){0}, lanes->best[i]));
        return;
    }
    EDDY_LOOP_AS_IT_IS for (; count >= ONE; count -= ONE, x += ONE, v++)
        join_extreme(quick, &kept.best[v], &kept.sums[v], load(x));
    if (count > 0)
        join_extreme(quick, &kept.best[v], &kept.sums[v],
                     take_some(ITSELF, x, count, (vector){0}, kept.best[v]));
    *lanes = kept;
}

/* The largest or the smallest element if there is no NaN: one comparison per element is then enough. False if there may be
 * a NaN: a sum is NaN, because an element is, or because infinities of both signs were added. */
INLINE bool reduce_numbers(joining quick, const element *x, int64_t count, int64_t ahead,
                           real *result) {
    extremes lanes;
    int64_t i = ahead == 0 ? join_extremes(quick, &lanes, x, count, 0)
                           : join_extremes(quick, &lanes, x, count, ahead);
    if (i < count)
        join_rest_of_extremes(quick, &lanes, x + i, count - i);
    vector sum = lanes.sums[0];
    EACH_VECTOR(v, VECTORS)
    sum = v == 0 ? sum : sum + lanes.sums[v];
    real sums[ONE];
    memcpy(sums, &sum, sizeof(sums));
    int others = 0;
    EDDY_LANES (l, ONE)
        others |= is_nan(sums[l]);
    *result = halve(quick, lanes.best);
    return !others;
}

/* ---- columns ---- */

enum {
    WIDEST = 8, /* vectors of a strip */
    LEVELS = 5, /* that halve all lanes */
};

/* The order in which the lanes of a block are processed: it completes halves before it begins others. */
static const uint8_t lane_order[EDDY_REDUCE_LANES] = {0,  16, 8,  24, 4,  20, 12, 28, 2,  18, 10,
                                                      26, 6,  22, 14, 30, 1,  17, 9,  25, 5,  21,
                                                      13, 29, 3,  19, 11, 27, 7,  23, 15, 31};

/* A block of columns side by side. */
typedef struct strip {
    const element *x;
    int64_t apart, count;
    const real *found; /* one number for each column, if `what` uses it */
} strip;

/* Reduces one lane of `width` vectors: every LANES-th row. The next row is prefetched. */
INLINE void join_lane(taking what, joining how, int width, vector *totals, const strip *block,
                      int64_t lane, int64_t ahead) {
    const element *row = block->x + lane * block->apart;
    EACH_VECTOR(v, width)
    totals[v] = take_vector(what, row + v * ONE, found_vector(what, block->found, v * ONE));
    for (int64_t r = lane + LANES; r < block->count; r += LANES) {
        row += LANES * block->apart;
        prefetch(row, width * ONE, ahead);
        EACH_VECTOR(v, width) {
            vector found = found_vector(what, block->found, v * ONE);
            totals[v] = join_vectors(how, totals[v], take_vector(what, row + v * ONE, found));
        }
    }
}

/* A lane's accumulators stay in registers from its first row to its last. They are then combined with the halves that are
 * complete, and are kept until their other half is. Lanes without rows are skipped. */
INLINE void reduce_strip(taking what, joining how, int width, real *to, const strip *block) {
    vector halves[LEVELS + 1][WIDEST], totals[WIDEST];
    for (int i = 0, next; i < LANES; i = next) {
        int64_t lane = lane_order[i];
        for (next = i + 1; next < LANES && lane_order[next] >= block->count; next++)
            ;
        int64_t following = next < LANES ? lane_order[next] : block->count;
        join_lane(what, how, width, totals, block, lane, (following - lane) * block->apart);
        int level = 0;
        for (; (i ^ next) >> level > 1; level++)
            if (i >> level & 1)
                EACH_VECTOR(v, width)
        totals[v] = join_vectors(how, halves[level][v], totals[v]);
        EACH_VECTOR(v, width)
        halves[level][v] = totals[v];
    }
    memcpy(to, halves[LEVELS], sizeof(vector) * (size_t)width);
}

INLINE void reduce_one_strip(taking what, joining how, int64_t width, real *to, strip block,
                             int64_t column) {
    block.x += column;
    block.found = block.found != NULL ? block.found + column : NULL;
    switch (width) {
    case 8:
        reduce_strip(what, how, 8, to + column, &block);
        break;
    case 4:
        reduce_strip(what, how, 4, to + column, &block);
        break;
    case 2:
        reduce_strip(what, how, 2, to + column, &block);
        break;
    default:
        reduce_strip(what, how, 1, to + column, &block);
    }
}

/* Reduces strips of eight vectors, or fewer if there are no more columns. The last strip may overlap the one before it. */
INLINE void reduce_strips(taking what, joining how, real *to, const strip *block, int64_t columns) {
    int64_t wide = WIDEST;
    while (wide * ONE > columns)
        wide /= 2;
    for (int64_t c = 0, left = columns; left > 0; c += wide * ONE, left = columns - c) {
        while (wide > 1 && wide / 2 * ONE >= left)
            wide /= 2;
        c = left < wide * ONE ? columns - wide * ONE : c;
        reduce_one_strip(what, how, wide, to, *block, c);
    }
}

/* Adds one row of columns to its lane, or starts the lane with it. */
INLINE void join_row(taking what, joining how, real *restrict lane, bool is_first,
                     const element *restrict row, int64_t columns, const real *restrict found) {
    if (is_first)
        for (int64_t c = 0; c < columns; c++)
            lane[c] = take(what, (real)row[c], found_at(what, found, c));
    else
        for (int64_t c = 0; c < columns; c++)
            lane[c] = join(how, lane[c], take(what, (real)row[c], found_at(what, found, c)));
}

INLINE void combine(joining how, real *restrict into, const real *restrict other, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        into[i] = join(how, into[i], other[i]);
}

/* Fewer columns than a vector has lanes. The lanes of the block are in memory. */
INLINE void reduce_narrow(taking what, joining how, real *restrict to, const strip *block,
                          int64_t columns) {
    real lanes[LANES][ONE];
    int64_t present = block->count < LANES ? block->count : LANES;
    const element *x = block->x;
    for (int64_t r = 0; r < block->count; r++, x += block->apart)
        EDDY_LOOP_AS_IT_IS for (int64_t c = 0; c < columns; c++) {
            real taken = take(what, (real)x[c], found_at(what, block->found, c));
            real *lane = &lanes[r % LANES][c];
            *lane = r < LANES ? taken : join(how, *lane, taken);
        }
    for (int64_t width = LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            EDDY_LOOP_AS_IT_IS for (int64_t c = 0; c < columns; c++) lanes[l][c] =
                join(how, lanes[l][c], lanes[l + width][c]);
    memcpy(to, lanes[0], sizeof(real) * (size_t)columns);
}

/* Columns whose lanes are in memory; rows are added to them in turn. */
__attribute__((noinline, unused)) static void reduce_by_rows(eddy_reduce_row_fn *row,
                                                             eddy_reduce_combine_fn *combine_lanes,
                                                             real *to, const strip *block,
                                                             int64_t columns) {
    real lanes[LANES][EDDY_REDUCE_COLUMNS];
    const element *x = block->x;
    int64_t present = block->count < LANES ? block->count : LANES;
    for (int64_t r = 0; r < block->count; r++, x += block->apart)
        row(lanes[r % LANES], r < LANES, x, columns, block->found);
    for (int64_t width = LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            combine_lanes(lanes[l], lanes[l + width], columns);
    memcpy(to, lanes[0], sizeof(real) * (size_t)columns);
}

/* ---- an op's functions ---- */

/* `each` is not a constant: if gcc knows the number of elements, it keeps the lanes in memory. */
INLINE void reduce_group(eddy_reduce_block_fn *block, joining how, const element *x, int64_t each,
                         real *result) {
    real values[EDDY_REDUCE_GROUP];
    for (int b = 0; b < EDDY_REDUCE_GROUP; b++)
        block(x + b * each, each, EDDY_REDUCE_AHEAD / (int64_t)sizeof(*x), &values[b]);
    for (int width = EDDY_REDUCE_GROUP / 2; width > 0; width /= 2)
        for (int b = 0; b < width; b++)
            values[b] = join(how, values[2 * b], values[2 * b + 1]);
    *result = values[0];
}

#define BLOCK(name, what, how)                                                                     \
    static void EDDY_TYPED(name##_block)(const void *x, int64_t count, int64_t ahead,              \
                                         void *result) {                                           \
        *(real *)result = reduce(what, how, x, count, ahead, 0);                                   \
    }                                                                                              \
    GROUP(name, how)

/* The same for LARGEST and SMALLEST; `quick` is the variant for values without NaN. */
#define EXTREME_BLOCK(name, how, quick)                                                            \
    __attribute__((noinline)) static real EDDY_TYPED(name##_or_nan)(const void *x,                 \
                                                                    int64_t count) {               \
        return reduce(ITSELF, how, x, count, 0, 0);                                                \
    }                                                                                              \
    static void EDDY_TYPED(name##_block)(const void *x, int64_t count, int64_t ahead,              \
                                         void *result) {                                           \
        if (count < LANES || !reduce_numbers(quick, x, count, ahead, result))                      \
            *(real *)result = EDDY_TYPED(name##_or_nan)(x, count);                                 \
    }                                                                                              \
    GROUP(name, how)

#define GROUP(name, how)                                                                           \
    static void EDDY_TYPED(name##_group)(const void *x, int64_t each, void *result) {              \
        reduce_group(EDDY_TYPED(name##_block), how, x, each, result);                              \
    }

#define SECOND_BLOCK(name, what)                                                                   \
    static void EDDY_TYPED(name##_block)(const void *x, int64_t count, const void *found,          \
                                         void *result) {                                           \
        *(real *)result = reduce(what, SUM, x, count, 0, *(const real *)found);                    \
    }

#define COMBINE(name, how)                                                                         \
    static void EDDY_TYPED(name##_combine)(void *into, const void *other, int64_t count) {         \
        combine(how, into, other, count);                                                          \
    }

#define ROW(name, what, how)                                                                       \
    static void EDDY_TYPED(name##_row)(void *lane, bool is_first, const void *row,                 \
                                       int64_t columns, const void *found) {                       \
        join_row(what, how, lane, is_first, row, columns, found);                                  \
    }

#define COLUMNS(name, what, how)                                                                   \
    ROW(name, what, how)                                                                           \
    static void EDDY_TYPED(name##_columns)(void *total, const void *x, int64_t apart,              \
                                           int64_t count, int64_t columns, const void *found) {    \
        const strip block = {x, apart, count, found};                                              \
        if (columns < ONE)                                                                         \
            reduce_narrow(what, how, total, &block, columns);                                      \
        else                                                                                       \
            reduce_strips(what, how, total, &block, columns);                                      \
    }

/* For rare ops, which are not worth strips of their own; `whole` is the op that combines lanes. */
#define RARE_COLUMNS(name, what, how, whole)                                                       \
    ROW(name, what, how)                                                                           \
    static void EDDY_TYPED(name##_columns)(void *total, const void *x, int64_t apart,              \
                                           int64_t count, int64_t columns, const void *found) {    \
        const strip block = {x, apart, count, found};                                              \
        reduce_by_rows(EDDY_TYPED(name##_row), EDDY_TYPED(whole##_combine), total, &block,         \
                       columns);                                                                   \
    }

#define OPS(name, whole)                                                                           \
    {                                                                                              \
        EDDY_TYPED(name##_block), EDDY_TYPED(name##_group), EDDY_TYPED(name##_columns),            \
            EDDY_TYPED(name##_row), EDDY_TYPED(whole##_combine)                                    \
    }
#define PAIR_OPS(name, merge)                                                                      \
    { EDDY_TYPED(name##_block), EDDY_TYPED(name##_columns), EDDY_TYPED(name##_row), merge }

/* ---- which element it is ---- */

/* NaN is better than every number. */
INLINE int is_better(joining how, real a, real b) {
    int is_beyond = how == LARGEST ? a > b : a < b;
    return is_beyond | (is_nan(a) & !is_nan(b));
}

INLINE void pick(joining how, real *restrict best, int64_t *restrict at, const real *restrict x,
                 int64_t index, int64_t columns) {
    for (int64_t c = 0; c < columns; c++) {
        int64_t better = is_better(how, x[c], best[c]);
        best[c] = better ? x[c] : best[c];
        at[c] = better ? index : at[c];
    }
}

INLINE int is_same(real a, real b) {
    return (a == b) | (is_nan(a) & is_nan(b));
}

/* The lanes find the group of elements that contains it; its index is then searched within the group. */
INLINE int64_t find(const real *x, int64_t count, real wanted) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        int is_here = 0;
        EDDY_LANES (l, LANES)
            is_here |= is_same(x[i + l], wanted);
        if (is_here)
            break;
    }
    while (!is_same(x[i], wanted))
        i++;
    return i;
}

#define PICK(name, how)                                                                            \
    static void EDDY_TYPED(name)(void *best, int64_t *indices, const void *row, int64_t index,     \
                                 int64_t columns) {                                                \
        pick(how, best, indices, row, index, columns);                                             \
    }

#define FIND()                                                                                     \
    static int64_t EDDY_TYPED(find)(const void *x, int64_t count, const void *value) {             \
        return find(x, count, *(const real *)value);                                               \
    }

#endif
