/* The functions of pool_block.h for one element type, included by pool_<element>_block.c alone (kernels/cpu/typed.h),
 * which also defines EDDY_WHOLE, the integer type as wide as the elements: the index within a window has as many bits as
 * the element, so that both are selected by one mask (a window of f32 spans less than 2^31).
 *
 * The functions called ..._lanes process `lanes` windows side by side. `lanes` and, where it matters, the steps are
 * constants in every call: the accumulators are then an array of constant size, which stays in registers. */
#ifndef EDDY_KERNELS_CPU_POOL_TYPED_H
#define EDDY_KERNELS_CPU_POOL_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/typed.h>
#include <string.h>

typedef EDDY_WHOLE whole;

/* Windows side by side, at most: two vectors of f32 if vectors have 32 bytes. */
#define LANES 16

#define INLINE static inline __attribute__((always_inline))

/* How many of `count` windows are processed at a time. Strided elements are gathered one by one, so more lanes gain less. */
INLINE int64_t lanes_for(int64_t count, bool is_strided) {
    return count >= LANES                      ? LANES
           : count >= LANES / 2 && !is_strided ? LANES / 2
           : count >= LANES / 4                ? LANES / 4
                                               : 1;
}

/* Where the next `lanes` of `count` windows begin. If fewer are left, the last `lanes` windows are computed again. */
INLINE int64_t next_lanes(int64_t next, int64_t lanes, int64_t count) {
    return next + lanes <= count ? next : count - lanes;
}

/* ---- maxima and averages ---- */

typedef enum joining { LARGER, SUM } joining;

/* The larger of two, `a` of equals; NaN wins, `a` of two. So maxima have the bits of those with indices. */
INLINE real join(joining how, real a, real b) {
    if (how == SUM)
        return a + b;
    return ((b <= a) | (a != a)) ? a : b;
}

INLINE void join_elements(joining how, real *restrict to, const real *restrict x, int64_t step,
                          int64_t lanes) {
    EDDY_LANES_LONG (i, lanes)
        to[i] = join(how, to[i], x[i * step]);
}

/* Two columns of windows that are two elements apart: every element is used, so nothing has to be gathered. */
INLINE void add_pairs(real *restrict to, const real *restrict x, int64_t lanes) {
    EDDY_LANES_LONG (i, lanes)
        to[i] = to[i] + x[2 * i] + x[2 * i + 1];
}

/* The same for maxima. gcc does not vectorise a loop that compares one after the other. */
INLINE void join_pairs(joining how, real *restrict to, const real *restrict x, int64_t lanes) {
    real second[LANES];
    if (how == SUM) {
        add_pairs(to, x, lanes);
        return;
    }
    EDDY_LANES_LONG (i, lanes) {
        second[i] = x[2 * i + 1];
        to[i] = join(how, to[i], x[2 * i]);
    }
    EDDY_LANES_LONG (i, lanes)
        to[i] = join(how, to[i], second[i]);
}

INLINE void join_row(joining how, real *restrict to, const real *restrict x,
                     const eddy_pool_run *run, int64_t step, int64_t lanes) {
    int64_t c = 0;
    if (step == 2 && run->column_step == 1)
        for (; c + 2 <= run->columns; c += 2)
            join_pairs(how, to, x + c, lanes);
    for (; c < run->columns; c++)
        join_elements(how, to, x + c * run->column_step, step, lanes);
}

INLINE void fill(real *to, real value, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++)
        to[i] = value;
}

INLINE void store(real *restrict out, int64_t step, const real *restrict from, int64_t lanes) {
    if (step == 1)
        for (int64_t i = 0; i < lanes; i++)
            out[i] = from[i];
    else
        for (int64_t i = 0; i < lanes; i++)
            out[i * step] = from[i];
}

INLINE void max_lanes(real *out, const real *x, const eddy_pool_run *run, int64_t step,
                      int64_t lanes) {
    real best[LANES];
    fill(best, (real)-__builtin_inf(), lanes);
    for (int64_t r = 0; r < run->rows; r++)
        join_row(LARGER, best, x + r * run->row_step, run, step, lanes);
    store(out, run->out_step, best, lanes);
}

/* Adds the elements of windows one after another, or the sums of their rows. */
INLINE void average_lanes(real *out, const real *x, const eddy_pool_run *run, real divisor,
                          int64_t step, int64_t lanes) {
    real total[LANES], sum[LANES];
    fill(total, 0, lanes);
    join_row(SUM, total, x, run, step, lanes);
    for (int64_t r = 1; r < run->rows; r++) {
        if (run->in_sequence) {
            join_row(SUM, total, x + r * run->row_step, run, step, lanes);
            continue;
        }
        fill(sum, 0, lanes);
        join_row(SUM, sum, x + r * run->row_step, run, step, lanes);
        join_elements(SUM, total, sum, 1, lanes);
    }
    if (divisor != 1)
        for (int64_t i = 0; i < lanes; i++)
            total[i] /= divisor;
    store(out, run->out_step, total, lanes);
}

/* LANES contiguous windows of an average. Named vectors stay in registers; gcc would keep arrays in memory. */
typedef real vector __attribute__((vector_size(EDDY_VECTOR_BYTES)));
enum { ONE = EDDY_VECTOR_BYTES / (int)sizeof(real), VECTORS = LANES / ONE };

INLINE void add_vectors(vector *sum, const real *x, const eddy_pool_run *run) {
    for (int64_t c = 0; c < run->columns; c++)
        EDDY_VECTORS (v, VECTORS) {
            vector element;
            memcpy(&element, x + c * run->column_step + v * ONE, sizeof(element));
            sum[v] += element;
        }
}

INLINE void average_vectors(real *out, const real *x, const eddy_pool_run *run, real divisor) {
    vector total[VECTORS];
    EDDY_VECTORS (v, VECTORS)
        total[v] = (vector){0};
    add_vectors(total, x, run);
    for (int64_t r = 1; r < run->rows; r++) {
        if (run->in_sequence) {
            add_vectors(total, x + r * run->row_step, run);
            continue;
        }
        vector sum[VECTORS];
        EDDY_VECTORS (v, VECTORS)
            sum[v] = (vector){0};
        add_vectors(sum, x + r * run->row_step, run);
        EDDY_VECTORS (v, VECTORS)
            total[v] += sum[v];
    }
    EDDY_VECTORS (v, VECTORS) {
        if (divisor != 1)
            total[v] /= divisor;
        memcpy(out + v * ONE, &total[v], sizeof(total[v]));
    }
}

INLINE void pool_windows(joining how, real *out, const real *x, const eddy_pool_run *run,
                         real divisor, int64_t step, int64_t lanes) {
    for (int64_t p = 0; p < run->places; p++) {
        real *to = out + p * run->out_place_step;
        const real *from = x + p * run->place_step;
        for (int64_t next = 0; next < run->count; next += lanes) {
            int64_t i = next_lanes(next, lanes, run->count);
            if (how == SUM && step == 1 && lanes == LANES && run->out_step == 1)
                average_vectors(to + i, from + i, run, divisor);
            else if (how == SUM)
                average_lanes(to + i * run->out_step, from + i * step, run, divisor, step, lanes);
            else
                max_lanes(to + i * run->out_step, from + i * step, run, step, lanes);
        }
    }
}

INLINE void pool_step(joining how, real *out, const real *x, const eddy_pool_run *run, real divisor,
                      int64_t step, bool is_strided) {
    switch (lanes_for(run->count, is_strided)) {
    case LANES:
        pool_windows(how, out, x, run, divisor, step, LANES);
        break;
    case LANES / 2:
        pool_windows(how, out, x, run, divisor, step, LANES / 2);
        break;
    case LANES / 4:
        pool_windows(how, out, x, run, divisor, step, LANES / 4);
        break;
    default:
        pool_windows(how, out, x, run, divisor, step, 1);
    }
}

INLINE void pool(joining how, real *out, const real *x, const eddy_pool_run *run, real divisor) {
    if (run->step == 1)
        pool_step(how, out, x, run, divisor, 1, false);
    else if (run->step == 2)
        pool_step(how, out, x, run, divisor, 2, false);
    else
        pool_step(how, out, x, run, divisor, run->step, true);
}

/* Each function uses a copy of the run: the compiler then knows that no output overlaps it. */
static void EDDY_TYPED(pool_max)(void *out, const void *x, const eddy_pool_run *run,
                                 double divisor) {
    (void)divisor;
    const eddy_pool_run copy = *run;
    pool(LARGER, out, x, &copy, 1);
}

static void EDDY_TYPED(pool_average)(void *out, const void *x, const eddy_pool_run *run,
                                     double divisor) {
    const eddy_pool_run copy = *run;
    pool(SUM, out, x, &copy, (real)divisor);
}

/* ---- maxima with indices ---- */

/* Of equal elements the first stays, and so does the first NaN. */
INLINE bool is_better(real value, real best) {
    return (value > best) | ((value != value) & (best == best));
}

INLINE void choose(real *best, whole *at, real value, whole offset) {
    whole better = is_better(value, *best);
    *best = better ? value : *best;
    *at = better ? offset : *at;
}

INLINE void choose_elements(real *restrict best, whole *restrict at, const real *restrict x,
                            int64_t step, whole offset, int64_t lanes) {
    EDDY_LANES_LONG (i, lanes)
        choose(&best[i], &at[i], x[i * step], offset);
}

/* Starts with the first elements of windows. */
INLINE void begin_choice(real *restrict best, whole *restrict at, const real *restrict x,
                         int64_t step, int64_t lanes) {
    EDDY_LANES_LONG (i, lanes) {
        best[i] = x[i * step];
        at[i] = 0;
    }
}

INLINE void store_choice(real *restrict out, int64_t step, const real *restrict best,
                         int64_t *restrict to, int64_t to_step, const whole *restrict at,
                         int64_t first, int64_t apart, int64_t lanes) {
    store(out, step, best, lanes);
    EDDY_LANES_LONG (i, lanes)
        to[i * to_step] = first + i * apart + at[i];
}

INLINE void max_index_lanes(real *out, int64_t *to, const real *x, const eddy_pool_run *run,
                            const eddy_pool_indices *indices, int64_t first, int64_t step,
                            int64_t lanes) {
    real best[LANES];
    whole at[LANES];
    begin_choice(best, at, x, step, lanes);
    for (int64_t r = 0; r < run->rows; r++)
        for (int64_t c = 0; c < run->columns; c++)
            choose_elements(best, at, x + r * run->row_step + c * run->column_step, step,
                            (whole)(r * indices->row_step + c * indices->column_step), lanes);
    store_choice(out, run->out_step, best, to, indices->to_step, at, first, indices->step, lanes);
}

/* Windows of two contiguous columns. Even and odd columns are separated first: gcc does not vectorise a loop that compares
 * one after the other. */
INLINE void max_index_pairs(real *restrict out, int64_t *restrict to, const real *restrict x,
                            const eddy_pool_run *run, const eddy_pool_indices *indices,
                            int64_t first, int64_t lanes) {
    real best[LANES], even[LANES], odd[LANES];
    whole at[LANES];
    EDDY_LANES_LONG (i, lanes) {
        best[i] = (real)-__builtin_inf();
        at[i] = 0;
    }
    for (int64_t r = 0; r < run->rows; r++) {
        const real *from = x + r * run->row_step;
        whole offset = (whole)(r * indices->row_step);
        EDDY_LANES_LONG (i, lanes) {
            even[i] = from[2 * i];
            odd[i] = from[2 * i + 1];
        }
        choose_elements(best, at, even, 1, offset, lanes);
        choose_elements(best, at, odd, 1, offset + 1, lanes);
    }
    store_choice(out, 1, best, to, 1, at, first, 2, lanes);
}

INLINE void max_index_windows(real *out, const real *x, const eddy_pool_run *run,
                              const eddy_pool_indices *indices, bool is_paired, int64_t step,
                              int64_t lanes) {
    for (int64_t p = 0; p < run->places; p++)
        for (int64_t next = 0; next < run->count; next += lanes) {
            int64_t i = next_lanes(next, lanes, run->count);
            real *at = out + p * run->out_place_step + i * run->out_step;
            const real *from = x + p * run->place_step + i * step;
            int64_t *to = indices->to + p * indices->to_place_step + i * indices->to_step;
            int64_t first = indices->first + p * indices->place_step + i * indices->step;
            if (is_paired)
                max_index_pairs(at, to, from, run, indices, first, lanes);
            else
                max_index_lanes(at, to, from, run, indices, first, step, lanes);
        }
}

INLINE void max_index_step(real *out, const real *x, const eddy_pool_run *run,
                           const eddy_pool_indices *indices, bool is_paired, int64_t step,
                           bool is_strided) {
    switch (lanes_for(run->count, is_strided)) {
    case LANES:
        max_index_windows(out, x, run, indices, is_paired, step, LANES);
        break;
    case LANES / 2:
        max_index_windows(out, x, run, indices, is_paired, step, LANES / 2);
        break;
    case LANES / 4:
        max_index_windows(out, x, run, indices, is_paired, step, LANES / 4);
        break;
    default:
        max_index_windows(out, x, run, indices, is_paired, step, 1);
    }
}

static void EDDY_TYPED(pool_max_index)(void *out, const void *x, const eddy_pool_run *run,
                                       const eddy_pool_indices *indices) {
    const eddy_pool_run copy = *run;
    bool is_paired = run->columns == 2 && run->step == 2 && run->column_step == 1 &&
                     run->out_step == 1 && indices->to_step == 1 && indices->step == 2 &&
                     indices->column_step == 1;
    if (is_paired)
        max_index_step(out, x, &copy, indices, true, 2, false);
    else if (run->step == 1)
        max_index_step(out, x, &copy, indices, false, 1, false);
    else
        max_index_step(out, x, &copy, indices, false, run->step, true);
}

/* ---- maxima with indices in two sweeps ---- */

INLINE void max_at_lanes(real *restrict out, whole *restrict to, const real *restrict x,
                         const eddy_pool_run *run, int64_t step, int64_t lanes) {
    real best[LANES];
    whole at[LANES];
    begin_choice(best, at, x, step, lanes);
    for (int64_t c = 1; c < run->columns; c++)
        choose_elements(best, at, x + c * run->column_step, step, (whole)(c * run->column_step),
                        lanes);
    store(out, run->out_step, best, lanes);
    if (run->out_step == 1)
        EDDY_LANES_LONG (i, lanes)
            to[i] = at[i];
    else
        for (int64_t i = 0; i < lanes; i++)
            to[i * run->out_step] = at[i];
}

INLINE void max_at_windows(real *out, whole *at, const real *x, const eddy_pool_run *run,
                           int64_t step, int64_t lanes) {
    for (int64_t p = 0; p < run->places; p++)
        for (int64_t next = 0; next < run->count; next += lanes) {
            int64_t i = next_lanes(next, lanes, run->count);
            int64_t to = p * run->out_place_step + i * run->out_step;
            max_at_lanes(out + to, at + to, x + p * run->place_step + i * step, run, step, lanes);
        }
}

INLINE void max_at_step(real *out, whole *at, const real *x, const eddy_pool_run *run, int64_t step,
                        bool is_strided) {
    switch (lanes_for(run->count, is_strided)) {
    case LANES:
        max_at_windows(out, at, x, run, step, LANES);
        break;
    case LANES / 2:
        max_at_windows(out, at, x, run, step, LANES / 2);
        break;
    case LANES / 4:
        max_at_windows(out, at, x, run, step, LANES / 4);
        break;
    default:
        max_at_windows(out, at, x, run, step, 1);
    }
}

static void EDDY_TYPED(pool_max_at)(void *out, void *at, const void *x, const eddy_pool_run *run) {
    const eddy_pool_run copy = *run;
    if (run->step == 1)
        max_at_step(out, at, x, &copy, 1, false);
    else if (run->step == 2)
        max_at_step(out, at, x, &copy, 2, false);
    else
        max_at_step(out, at, x, &copy, run->step, true);
}

INLINE void max_join_lanes(real *restrict out, int64_t *restrict to, const real *restrict x,
                           const whole *restrict ats, const eddy_pool_run *run,
                           const eddy_pool_indices *indices, int64_t first, int64_t lanes) {
    real best[LANES];
    whole at[LANES];
    EDDY_LANES_LONG (i, lanes) {
        best[i] = x[i];
        at[i] = ats[i];
    }
    for (int64_t r = 1; r < run->rows; r++) {
        const real *from = x + r * run->row_step;
        const whole *offsets = ats + r * run->row_step;
        whole offset = (whole)(r * indices->row_step);
        EDDY_LANES_LONG (i, lanes)
            choose(&best[i], &at[i], from[i], offsets[i] + offset);
    }
    store_choice(out, 1, best, to, 1, at, first, indices->step, lanes);
}

INLINE void max_join_windows(real *out, const real *best, const whole *at, const eddy_pool_run *run,
                             const eddy_pool_indices *indices, int64_t lanes) {
    for (int64_t p = 0; p < run->places; p++)
        for (int64_t next = 0; next < run->count; next += lanes) {
            int64_t i = next_lanes(next, lanes, run->count);
            max_join_lanes(
                out + p * run->out_place_step + i, indices->to + p * indices->to_place_step + i,
                best + p * run->place_step + i, at + p * run->place_step + i, run, indices,
                indices->first + p * indices->place_step + i * indices->step, lanes);
        }
}

static void EDDY_TYPED(pool_max_join)(void *out, const void *best, const void *at,
                                      const eddy_pool_run *run, const eddy_pool_indices *indices) {
    const eddy_pool_run copy = *run;
    switch (lanes_for(run->count, false)) {
    case LANES:
        max_join_windows(out, best, at, &copy, indices, LANES);
        break;
    case LANES / 2:
        max_join_windows(out, best, at, &copy, indices, LANES / 2);
        break;
    case LANES / 4:
        max_join_windows(out, best, at, &copy, indices, LANES / 4);
        break;
    default:
        max_join_windows(out, best, at, &copy, indices, 1);
    }
}

/* ---- the gradient of windows that share no element ---- */

/* Finds the largest elements of windows, then writes the gradient of each element. */
INLINE void route_lanes(real *restrict dx, const real *restrict grad, const real *restrict x,
                        const eddy_pool_run *run, const eddy_pool_steps *to, int64_t rows,
                        int64_t columns, int64_t step, int64_t given_step, int64_t to_step,
                        int64_t lanes) {
    real best[LANES], given[LANES];
    whole at[LANES];
    begin_choice(best, at, x, step, lanes);
    for (int64_t i = 0; i < lanes; i++)
        given[i] = 0 + grad[i * given_step];
    EDDY_TWICE (r, rows)
        EDDY_TWICE (c, columns)
            choose_elements(best, at, x + r * run->row_step + c * run->column_step, step,
                            (whole)(r * columns + c), lanes);
    EDDY_TWICE (r, rows)
        EDDY_TWICE (c, columns) {
            real *place = dx + r * to->row_step + c * to->column_step;
            whole number = (whole)(r * columns + c);
            EDDY_LANES_LONG (i, lanes)
                place[i * to_step] = at[i] == number ? given[i] : 0;
        }
}

/* The same for windows of two columns whose elements are contiguous. */
INLINE void route_pairs(real *restrict dx, const real *restrict grad, const real *restrict x,
                        const eddy_pool_run *run, const eddy_pool_steps *to, int64_t lanes) {
    real best[LANES], given[LANES], even[LANES], odd[LANES];
    whole at[LANES];
    EDDY_LANES_LONG (i, lanes) {
        given[i] = 0 + grad[i];
        best[i] = (real)-__builtin_inf();
        at[i] = 0;
    }
    for (int64_t r = 0; r < run->rows; r++) {
        const real *from = x + r * run->row_step;
        EDDY_LANES_LONG (i, lanes) {
            even[i] = from[2 * i];
            odd[i] = from[2 * i + 1];
        }
        choose_elements(best, at, even, 1, (whole)(2 * r), lanes);
        choose_elements(best, at, odd, 1, (whole)(2 * r + 1), lanes);
    }
    for (int64_t r = 0; r < run->rows; r++) {
        real *place = dx + r * to->row_step;
        EDDY_LANES_LONG (i, lanes) {
            even[i] = at[i] == (whole)(2 * r) ? given[i] : 0;
            odd[i] = at[i] == (whole)(2 * r + 1) ? given[i] : 0;
        }
        EDDY_LANES_LONG (i, lanes) {
            place[2 * i] = even[i];
            place[2 * i + 1] = odd[i];
        }
    }
}

/* Layouts of windows for which max_route has a specialised loop. */
typedef enum route_way { PAIRED, DENSE_SQUARE, DENSE, STRIDED } route_way;

INLINE void route_windows(route_way way, real *dx, const real *grad, const real *x,
                          const eddy_pool_run *run, const eddy_pool_steps *to, int64_t lanes) {
    for (int64_t next = 0; next < run->count; next += lanes) {
        int64_t i = next_lanes(next, lanes, run->count);
        real *place = dx + i * to->step;
        const real *given = grad + i * run->out_step, *from = x + i * run->step;
        if (way == PAIRED)
            route_pairs(place, given, from, run, to, lanes);
        else if (way == DENSE_SQUARE)
            route_lanes(place, given, from, run, to, 2, 2, 1, 1, 1, lanes);
        else if (way == DENSE)
            route_lanes(place, given, from, run, to, run->rows, run->columns, 1, 1, 1, lanes);
        else
            route_lanes(place, given, from, run, to, run->rows, run->columns, run->step,
                        run->out_step, to->step, lanes);
    }
}

INLINE void route_places(route_way way, real *dx, const real *grad, const real *x,
                         const eddy_pool_run *run, const eddy_pool_steps *to, int64_t lanes) {
    for (int64_t p = 0; p < run->places; p++)
        route_windows(way, dx + p * to->place_step, grad + p * run->out_place_step,
                      x + p * run->place_step, run, to, lanes);
}

INLINE void route(route_way way, real *dx, const real *grad, const real *x,
                  const eddy_pool_run *run, const eddy_pool_steps *to) {
    switch (lanes_for(run->count, way == STRIDED)) {
    case LANES:
        route_places(way, dx, grad, x, run, to, LANES);
        break;
    case LANES / 2:
        route_places(way, dx, grad, x, run, to, LANES / 2);
        break;
    case LANES / 4:
        route_places(way, dx, grad, x, run, to, LANES / 4);
        break;
    default:
        route_places(way, dx, grad, x, run, to, 1);
    }
}

static void EDDY_TYPED(pool_max_route)(void *dx, const void *grad, const void *x,
                                       const eddy_pool_run *run, const eddy_pool_steps *to) {
    const eddy_pool_run copy = *run;
    bool is_dense = run->step == 1 && run->out_step == 1 && to->step == 1;
    bool is_paired = run->columns == 2 && run->step == 2 && run->column_step == 1 &&
                     to->step == 2 && to->column_step == 1 && run->out_step == 1;
    if (is_paired)
        route(PAIRED, dx, grad, x, &copy, to);
    else if (is_dense && run->rows == 2 && run->columns == 2)
        route(DENSE_SQUARE, dx, grad, x, &copy, to);
    else if (is_dense)
        route(DENSE, dx, grad, x, &copy, to);
    else
        route(STRIDED, dx, grad, x, &copy, to);
}

const eddy_pool_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_pool)) = {
    .max = EDDY_TYPED(pool_max),
    .max_index = EDDY_TYPED(pool_max_index),
    .average = EDDY_TYPED(pool_average),
    .max_at = EDDY_TYPED(pool_max_at),
    .max_join = EDDY_TYPED(pool_max_join),
    .max_route = EDDY_TYPED(pool_max_route),
};

#endif
