#include <float.h>
#include <kernels/cpu/lanes.h>
#include <kernels/cpu/pool/pool_block.h>
#include <string.h>

/* Windows under way: what they have so far stays in registers where there are so many. */
#define LANES 16

#define INLINE static inline __attribute__((always_inline))

#define LARGER(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a))
#define SUM(a, b) ((a) + (b))

/* Elements of windows `step` apart, joined to what the windows have. `step` and `count` are known when this is compiled, where they
 * can be: neighbours need no gather. Two columns of windows that are two apart are taken together: every element is used. */
#define TAKE(name, real, JOIN, LOOP)                                                                                   \
    INLINE void name##_element(real *restrict to, const real *restrict x, int64_t step, int64_t count) {               \
        LOOP for (int64_t i = 0; i < count; i++) to[i] = JOIN(to[i], x[i * step]);                                     \
    }                                                                                                                  \
    INLINE void name##_pair(real *restrict to, const real *restrict x, int64_t count) {                                \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                          \
            real first = JOIN(to[i], x[2 * i]);                                                                        \
            to[i] = JOIN(first, x[2 * i + 1]);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void name##_row(real *restrict to, const real *restrict x, const eddy_pool_run *run, int64_t step,          \
                           int64_t count) {                                                                            \
        int64_t c = 0;                                                                                                 \
        if (step == 2 && run->column_step == 1)                                                                        \
            for (; c + 2 <= run->columns; c += 2)                                                                      \
                name##_pair(to, x + c, count);                                                                         \
        for (; c < run->columns; c++)                                                                                  \
            name##_element(to, x + c * run->column_step, step, count);                                                 \
    }

/* The first of equals stays, and the first NaN. */
#define BETTER(real, whole, element, offset)                                                                           \
    {                                                                                                                  \
        real value_ = (element);                                                                                       \
        whole is_better_ = (value_ > best[i]) | ((value_ != value_) & (best[i] == best[i]));                           \
        best[i] = is_better_ ? value_ : best[i];                                                                       \
        at[i] = is_better_ ? (whole)(offset) : at[i];                                                                  \
    }

/* take for all i_ below run->count, lanes_ at a time; the last so many are taken again where fewer are left. */
#define EACH_LANES_OF(take, lanes)                                                                                     \
    if (run->count >= (lanes)) {                                                                                       \
        enum { lanes_ = (lanes) };                                                                                     \
        for (int64_t next_ = 0; next_ < run->count; next_ += lanes_) {                                                 \
            int64_t i_ = next_ + lanes_ <= run->count ? next_ : run->count - lanes_;                                   \
            take;                                                                                                      \
        }                                                                                                              \
    }
#define EACH_LANES(take)                                                                                               \
    EACH_LANES_OF(take, LANES)                                                                                         \
    else EACH_LANES_OF(take, LANES / 2) else EACH_LANES_OF(take, LANES / 4) else EACH_LANES_OF(take, 1)

#define POOL(name, real, whole)                                                                                        \
    TAKE(raise_##name, real, LARGER, EDDY_LANES_LOOP)                                                                  \
    TAKE(add_##name, real, SUM, )                                                                                      \
    INLINE void fill_##name(real *to, real value, int64_t count) {                                                     \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = value;                                                                                             \
    }                                                                                                                  \
    INLINE void store_##name(real *restrict out, int64_t step, const real *restrict from, int64_t count) {             \
        if (step == 1)                                                                                                 \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = from[i];                                                                                      \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i * step] = from[i];                                                                               \
    }                                                                                                                  \
    INLINE void max_lanes_##name(real *out, const real *x, const eddy_pool_run *run, real divisor, int64_t step,       \
                                 int64_t count) {                                                                      \
        (void)divisor;                                                                                                 \
        real best[LANES];                                                                                              \
        fill_##name(best, (real)-__builtin_inf(), count);                                                              \
        for (int64_t r = 0; r < run->rows; r++)                                                                        \
            raise_##name##_row(best, x + r * run->row_step, run, step, count);                                         \
        store_##name(out, run->out_step, best, count);                                                                 \
    }                                                                                                                  \
    INLINE void max_index_lanes_##name(real *out, int64_t *to, const real *x, const eddy_pool_run *run,                \
                                       const eddy_pool_indices *indices, int64_t first, int64_t step, int64_t count) { \
        real best[LANES];                                                                                              \
        whole at[LANES];                                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            best[i] = x[i * step];                                                                                     \
            at[i] = 0;                                                                                                 \
        }                                                                                                              \
        for (int64_t r = 0; r < run->rows; r++)                                                                        \
            for (int64_t c = 0; c < run->columns; c++) {                                                               \
                const real *from = x + r * run->row_step + c * run->column_step;                                       \
                whole offset = (whole)(r * indices->row_step + c * indices->column_step);                              \
                EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                  \
                    real value = from[i * step];                                                                       \
                    whole is_better = (value > best[i]) | ((value != value) & (best[i] == best[i]));                   \
                    best[i] = is_better ? value : best[i];                                                             \
                    at[i] = is_better ? offset : at[i];                                                                \
                }                                                                                                      \
            }                                                                                                          \
        store_##name(out, run->out_step, best, count);                                                                 \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i * indices->to_step] = first + i * indices->step + at[i];                                              \
    }                                                                                                                  \
    INLINE void max_index_##name##_at(real *out, const real *x, const eddy_pool_run *run,                              \
                                      const eddy_pool_indices *indices, int64_t step) {                                \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *to = out + p * run->out_place_step;                                                                  \
            const real *from = x + p * run->place_step;                                                                \
            int64_t *indices_to = indices->to + p * indices->to_place_step,                                            \
                    first = indices->first + p * indices->place_step;                                                  \
            for (int64_t i = 0, lanes; i < run->count; i += lanes) {                                                   \
                lanes = run->count - i < LANES ? run->count - i : LANES;                                               \
                if (lanes == LANES)                                                                                    \
                    max_index_lanes_##name(to + i * run->out_step, indices_to + i * indices->to_step, from + i * step, \
                                           run, indices, first + i * indices->step, step, LANES);                      \
                else                                                                                                   \
                    max_index_lanes_##name(to + i * run->out_step, indices_to + i * indices->to_step, from + i * step, \
                                           run, indices, first + i * indices->step, step, lanes);                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* Apart first: gcc does not find lanes in pairs that are compared one after the other. */                         \
    INLINE void max_index_pairs_##name(real *restrict out, int64_t *restrict to, const real *restrict x,               \
                                       const eddy_pool_run *run, const eddy_pool_indices *indices, int64_t first,      \
                                       int64_t count) {                                                                \
        real best[LANES];                                                                                              \
        whole at[LANES];                                                                                               \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                          \
            best[i] = (real)-__builtin_inf();                                                                                       \
            at[i] = 0;                                                                                                 \
        }                                                                                                              \
        for (int64_t r = 0; r < run->rows; r++) {                                                                      \
            const real *from = x + r * run->row_step;                                                                  \
            whole offset = (whole)(r * indices->row_step);                                                             \
            real even[LANES], odd[LANES];                                                                              \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                      \
                even[i] = from[2 * i];                                                                                 \
                odd[i] = from[2 * i + 1];                                                                              \
            }                                                                                                          \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) BETTER(real, whole, even[i], offset)                   \
                EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) BETTER(real, whole, odd[i], offset + 1)            \
        }                                                                                                              \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) out[i] = best[i];                                          \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) to[i] = first + 2 * i + at[i];                             \
    }                                                                                                                  \
    static void max_index_paired_##name(real *out, const real *x, const eddy_pool_run *run,                            \
                                        const eddy_pool_indices *indices) {                                            \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *to = out + p * run->out_place_step;                                                                  \
            int64_t *indices_to = indices->to + p * indices->to_place_step;                                            \
            int64_t first = indices->first + p * indices->place_step;                                                  \
            const real *from = x + p * run->place_step;                                                                \
            EACH_LANES(                                                                                                \
                max_index_pairs_##name(to + i_, indices_to + i_, from + 2 * i_, run, indices, first + 2 * i_, lanes_)) \
        }                                                                                                              \
    }                                                                                                                  \
    static void max_index_##name(void *out, const void *x, const eddy_pool_run *run,                                   \
                                 const eddy_pool_indices *indices) {                                                   \
        bool is_paired = run->columns == 2 && run->step == 2 && run->column_step == 1 && run->out_step == 1 &&         \
                         indices->to_step == 1 && indices->step == 2 && indices->column_step == 1;                     \
        if (is_paired)                                                                                                 \
            max_index_paired_##name(out, x, run, indices);                                                             \
        else if (run->step == 1)                                                                                       \
            max_index_##name##_at(out, x, run, indices, 1);                                                            \
        else if (run->step == 2)                                                                                       \
            max_index_##name##_at(out, x, run, indices, 2);                                                            \
        else                                                                                                           \
            max_index_##name##_at(out, x, run, indices, run->step);                                                    \
    }                                                                                                                  \
    INLINE void average_lanes_##name(real *out, const real *x, const eddy_pool_run *run, real divisor, int64_t step,   \
                                     int64_t count) {                                                                  \
        real total[LANES], row[LANES];                                                                                 \
        fill_##name(total, 0, count);                                                                                  \
        add_##name##_row(total, x, run, step, count);                                                                  \
        for (int64_t r = 1; r < run->rows; r++) {                                                                      \
            if (run->in_sequence) {                                                                                    \
                add_##name##_row(total, x + r * run->row_step, run, step, count);                                      \
                continue;                                                                                              \
            }                                                                                                          \
            fill_##name(row, 0, count);                                                                                \
            add_##name##_row(row, x + r * run->row_step, run, step, count);                                            \
            add_##name##_element(total, row, 1, count);                                                                \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            total[i] /= divisor;                                                                                       \
        store_##name(out, run->out_step, total, count);                                                                \
    }                                                                                                                  \
    INLINE void sum_lanes_##name(real *out, const real *x, const eddy_pool_run *run, real divisor, int64_t step,       \
                                 int64_t count) {                                                                      \
        (void)divisor;                                                                                                 \
        real row[LANES];                                                                                               \
        fill_##name(row, 0, count);                                                                                    \
        add_##name##_row(row, x, run, step, count);                                                                    \
        store_##name(out, run->out_step, row, count);                                                                  \
    }                                                                                                                  \
    INLINE void max_at_lanes_##name(real *restrict out, whole *restrict to, const real *restrict x,                    \
                                    const eddy_pool_run *run, int64_t step, int64_t count) {                           \
        real best[LANES];                                                                                              \
        whole at[LANES];                                                                                               \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                          \
            best[i] = x[i * step];                                                                                     \
            at[i] = 0;                                                                                                 \
        }                                                                                                              \
        for (int64_t c = 1; c < run->columns; c++) {                                                                   \
            const real *from = x + c * run->column_step;                                                               \
            whole offset = (whole)(c * run->column_step);                                                              \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) BETTER(real, whole, from[i * step], offset)            \
        }                                                                                                              \
        if (run->out_step == 1) {                                                                                      \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) out[i] = best[i];                                      \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) to[i] = at[i];                                         \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            out[i * run->out_step] = best[i];                                                                          \
            to[i * run->out_step] = at[i];                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void max_at_##name##_step(real *to, whole *ats, const real *from, const eddy_pool_run *run, int64_t step) { \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *out = to + p * run->out_place_step;                                                                  \
            whole *at = ats + p * run->out_place_step;                                                                 \
            const real *x = from + p * run->place_step;                                                                \
            EACH_LANES(max_at_lanes_##name(out + i_ * run->out_step, at + i_ * run->out_step, x + i_ * step, run,      \
                                           step, lanes_))                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void max_at_##name(void *out, void *at, const void *x, const eddy_pool_run *run) {                          \
        if (run->step == 1)                                                                                            \
            max_at_##name##_step(out, at, x, run, 1);                                                                  \
        else if (run->step == 2)                                                                                       \
            max_at_##name##_step(out, at, x, run, 2);                                                                  \
        else                                                                                                           \
            max_at_##name##_step(out, at, x, run, run->step);                                                          \
    }                                                                                                                  \
    INLINE void max_join_lanes_##name(real *restrict out, int64_t *restrict to, const real *restrict x,                \
                                      const whole *restrict ats, const eddy_pool_run *run,                             \
                                      const eddy_pool_indices *indices, int64_t first, int64_t count) {                \
        real best[LANES];                                                                                              \
        whole at[LANES];                                                                                               \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                          \
            best[i] = x[i];                                                                                            \
            at[i] = ats[i];                                                                                            \
        }                                                                                                              \
        for (int64_t r = 1; r < run->rows; r++) {                                                                      \
            const real *from = x + r * run->row_step;                                                                  \
            const whole *offsets = ats + r * run->row_step;                                                            \
            whole offset = (whole)(r * indices->row_step);                                                             \
            EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) BETTER(real, whole, from[i], offsets[i] + offset)      \
        }                                                                                                              \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) out[i] = best[i];                                          \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) to[i] = first + i * indices->step + at[i];                 \
    }                                                                                                                  \
    static void max_join_##name(void *out, const void *best, const void *at, const eddy_pool_run *run,                 \
                                const eddy_pool_indices *indices) {                                                    \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *to = (real *)out + p * run->out_place_step;                                                          \
            int64_t *indices_to = indices->to + p * indices->to_place_step;                                            \
            int64_t first = indices->first + p * indices->place_step;                                                  \
            const real *x = (const real *)best + p * run->place_step;                                                  \
            const whole *ats = (const whole *)at + p * run->place_step;                                                \
            EACH_LANES(max_join_lanes_##name(to + i_, indices_to + i_, x + i_, ats + i_, run, indices,                 \
                                             first + i_ * indices->step, lanes_))                                      \
        }                                                                                                              \
    }                                                                                                                  \
    PLACES(max_##name, max_lanes_##name, real)                                                                         \
    PLACES(sum_##name, sum_lanes_##name, real)                                                                         \
    PLACES(average_##name, average_lanes_##name, real)

/* `lanes` windows at a time; the last so many are taken again where fewer are left. */
#define WHOLE(take, lanes)                                                                                             \
    for (int64_t i = 0; i < run->count; i += lanes) {                                                                  \
        int64_t at = i + lanes <= run->count ? i : run->count - lanes;                                                 \
        take(to + at * run->out_step, from + at * step, run, divisor, step, lanes);                                    \
    }

#define PLACES(name, take, real)                                                                                       \
    INLINE void name##_at(real *out, const real *x, const eddy_pool_run *run, real divisor, int64_t step) {            \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *to = out + p * run->out_place_step;                                                                  \
            const real *from = x + p * run->place_step;                                                                \
            if (run->count >= LANES)                                                                                   \
                WHOLE(take, LANES)                                                                                     \
            else if (run->count >= LANES / 2)                                                                          \
                WHOLE(take, LANES / 2)                                                                                 \
            else                                                                                                       \
                take(to, from, run, divisor, step, run->count);                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(void *out, const void *x, const eddy_pool_run *run, double divisor) {                             \
        if (run->step == 1)                                                                                            \
            name##_at(out, x, run, (real)divisor, 1);                                                                  \
        else if (run->step == 2)                                                                                       \
            name##_at(out, x, run, (real)divisor, 2);                                                                  \
        else                                                                                                           \
            name##_at(out, x, run, (real)divisor, run->step);                                                          \
    }

/* ---- the gradient of windows that share nothing ---- */

/* Which of two vectors, side by side, are the first and the second of each pair; and the way back: the first half of the pairs, the
 * second. */
#define FIRSTS_2 0, 2
#define SECONDS_2 1, 3
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define FIRSTS_4 0, 2, 4, 6
#define SECONDS_4 1, 3, 5, 7
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define FIRSTS_8 FIRSTS_4, 8, 10, 12, 14
#define SECONDS_8 SECONDS_4, 9, 11, 13, 15
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define FIRSTS_16 FIRSTS_8, 16, 18, 20, 22, 24, 26, 28, 30
#define SECONDS_16 SECONDS_8, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* Windows of two columns whose elements lie side by side: written with vectors, since gcc makes scalar code of such loops. */
#define ROUTE_PAIRS(name, real, whole, lanes)                                                                          \
    INLINE void route_pairs_##name##_##lanes(real *dx, const real *grad, const real *x, const eddy_pool_run *run,      \
                                             const eddy_pool_steps *to) {                                              \
        typedef real vector __attribute__((vector_size((lanes) * sizeof(real))));                                      \
        typedef whole places __attribute__((vector_size((lanes) * sizeof(real))));                                     \
        vector given, best = {0}, two[2];                                                                              \
        places at = {0};                                                                                               \
        memcpy(&given, grad, sizeof(given));                                                                           \
        given += (real)0;                                                                                              \
        for (int64_t r = 0; r < run->rows; r++) {                                                                      \
            memcpy(two, x + r * run->row_step, sizeof(two));                                                           \
            vector values[2] = {__builtin_shufflevector(two[0], two[1], FIRSTS_##lanes),                               \
                                __builtin_shufflevector(two[0], two[1], SECONDS_##lanes)};                             \
            if (r == 0)                                                                                                \
                best = values[0];                                                                                      \
            for (int c = 0; c < 2; c++) {                                                                              \
                places is_better = (values[c] > best) | ((values[c] != values[c]) & (best == best));                   \
                best = (vector)(((places)values[c] & is_better) | ((places)best & ~is_better));                        \
                at = (((whole)(2 * r) + (whole)c) & is_better) | (at & ~is_better);                                    \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t r = 0; r < run->rows; r++) {                                                                      \
            vector first = (vector)((places)given & (at == (whole)(2 * r)));                                           \
            vector second = (vector)((places)given & (at == (whole)(2 * r) + 1));                                      \
            two[0] = __builtin_shufflevector(first, second, LOW_##lanes);                                              \
            two[1] = __builtin_shufflevector(first, second, HIGH_##lanes);                                             \
            memcpy(dx + r * to->row_step, two, sizeof(two));                                                           \
        }                                                                                                              \
    }

#define PAIRS_OF(name, lanes)                                                                                          \
    EACH_LANES_OF(route_pairs_##name##_##lanes(dx + 2 * i_, grad + i_, x + 2 * i_, run, to), lanes)
/* As many lanes as a vector has, where there are so many windows. */
#if EDDY_VECTOR_BYTES >= 64
#define PAIRS_f32 PAIRS_OF(f32, 16) else PAIRS_OF(f32, 8) else PAIRS_OF(f32, 4)
#define PAIRS_f64 PAIRS_OF(f64, 8) else PAIRS_OF(f64, 4) else PAIRS_OF(f64, 2)
ROUTE_PAIRS(f32, float, int32_t, 16)
ROUTE_PAIRS(f64, double, int64_t, 8)
#elif EDDY_VECTOR_BYTES >= 32
#define PAIRS_f32 PAIRS_OF(f32, 8) else PAIRS_OF(f32, 4)
#define PAIRS_f64 PAIRS_OF(f64, 4) else PAIRS_OF(f64, 2)
#else
#define PAIRS_f32 PAIRS_OF(f32, 4)
#define PAIRS_f64 PAIRS_OF(f64, 2)
#endif
#if EDDY_VECTOR_BYTES >= 32
ROUTE_PAIRS(f32, float, int32_t, 8)
ROUTE_PAIRS(f64, double, int64_t, 4)
#endif
ROUTE_PAIRS(f32, float, int32_t, 4)
ROUTE_PAIRS(f64, double, int64_t, 2)

/* Largest elements of windows, then what each element gets. Steps and the window are known when this is compiled, where they can be. */
#define ROUTE(name, real, whole)                                                                                       \
    INLINE void route_lanes_##name(real *restrict dx, const real *restrict grad, const real *restrict x,               \
                                   const eddy_pool_run *run, const eddy_pool_steps *to, int64_t rows, int64_t columns, \
                                   int64_t step, int64_t given_step, int64_t to_step, int64_t count) {                 \
        real best[LANES], given[LANES];                                                                                \
        whole at[LANES];                                                                                               \
        EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) {                                                          \
            best[i] = x[i * step];                                                                                     \
            at[i] = 0;                                                                                                 \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            given[i] = 0 + grad[i * given_step];                                                                       \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            for (int64_t c = 0; c < columns; c++) {                                                                    \
                const real *from = x + r * run->row_step + c * run->column_step;                                       \
                whole number = (whole)(r * columns + c);                                                               \
                EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) BETTER(real, whole, from[i * step], number)        \
            }                                                                                                          \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            for (int64_t c = 0; c < columns; c++) {                                                                    \
                real *place = dx + r * to->row_step + c * to->column_step;                                             \
                whole number = (whole)(r * columns + c);                                                               \
                EDDY_LANES_LOOP for (int64_t i = 0; i < count; i++) place[i * to_step] =                               \
                    at[i] == number ? given[i] : 0;                                                                    \
            }                                                                                                          \
    }                                                                                                                  \
    static void max_route_##name(void *out, const void *given, const void *elements, const eddy_pool_run *run,         \
                                 const eddy_pool_steps *to) {                                                          \
        bool is_dense = run->step == 1 && run->out_step == 1 && to->step == 1;                                         \
        bool is_square = run->rows == 2 && run->columns == 2;                                                          \
        bool is_paired = run->columns == 2 && run->step == 2 && run->column_step == 1 && to->step == 2 &&              \
                         to->column_step == 1 && run->out_step == 1;                                                   \
        for (int64_t p = 0; p < run->places; p++) {                                                                    \
            real *dx = (real *)out + p * to->place_step;                                                               \
            const real *grad = (const real *)given + p * run->out_place_step;                                          \
            const real *x = (const real *)elements + p * run->place_step;                                              \
            if (is_paired) {                                                                                           \
                PAIRS_##name else EACH_LANES_OF(route_lanes_##name(dx + 2 * i_, grad + i_, x + 2 * i_, run, to,        \
                                                                   run->rows, 2, 2, 1, 2, lanes_),                     \
                                                1)                                                                     \
            } else if (is_dense && is_square) {                                                                        \
                EACH_LANES(route_lanes_##name(dx + i_, grad + i_, x + i_, run, to, 2, 2, 1, 1, 1, lanes_))             \
            } else if (is_dense) {                                                                                     \
                EACH_LANES(                                                                                            \
                    route_lanes_##name(dx + i_, grad + i_, x + i_, run, to, run->rows, run->columns, 1, 1, 1, lanes_)) \
            } else {                                                                                                   \
                EACH_LANES(route_lanes_##name(dx + i_ * to->step, grad + i_ * run->out_step, x + i_ * run->step, run,  \
                                              to, run->rows, run->columns, run->step, run->out_step, to->step,         \
                                              lanes_))                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Indices within a window have as many bits as the elements they are chosen with: a window of f32 spans less than 2^31. */
POOL(f32, float, int32_t)
POOL(f64, double, int64_t)
ROUTE(f32, float, int32_t)
ROUTE(f64, double, int64_t)

static bool is_plain(const float *x, int64_t count) {
    int32_t others = 0;
    for (int64_t i = 0; i < count; i++)
        others |= !(x[i] >= -FLT_MAX);
    return !others;
}

const eddy_pool_blocks EDDY_ISA_NAME(eddy_cpu_pool_blocks) = {
    .f32 = {max_f32, max_index_f32, average_f32, sum_f32, max_at_f32, max_join_f32, max_route_f32},
    .f64 = {max_f64, max_index_f64, average_f64, sum_f64, max_at_f64, max_join_f64, max_route_f64},
    .is_plain = is_plain,
};
