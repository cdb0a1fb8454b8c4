#include <kernels/cpu/pool_block.h>

/* Windows under way: what they have so far stays in registers where there are so many. */
#define LANES 16

#define INLINE static inline __attribute__((always_inline))

/* GCC unrolls a loop of LANES before it makes a vector of it, and comparisons then become jumps. */
#if defined(__GNUC__) && !defined(__clang__)
#define AS_VECTOR _Pragma("GCC unroll 1")
#else
#define AS_VECTOR
#endif

#define LARGER(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a))
#define SUM(a, b) ((a) + (b))

/* Elements of windows `step` apart, joined to what the windows have. `step` and `count` are known when this is compiled, where they
 * can be: neighbours need no gather. Two columns of windows that are two apart are taken together: every element is used. */
#define TAKE(name, real, JOIN, LOOP)                                                                                   \
    INLINE void name##_element(real *restrict to, const real *restrict x, int64_t step, int64_t count) {               \
        LOOP for (int64_t i = 0; i < count; i++) to[i] = JOIN(to[i], x[i * step]);                                     \
    }                                                                                                                  \
    INLINE void name##_pair(real *restrict to, const real *restrict x, int64_t count) {                                \
        AS_VECTOR for (int64_t i = 0; i < count; i++) {                                                                \
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

#define POOL(name, real)                                                                                               \
    TAKE(raise_##name, real, LARGER, AS_VECTOR)                                                                        \
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
    INLINE void average_lanes_##name(real *out, const real *x, const eddy_pool_run *run, real divisor, int64_t step,   \
                                     int64_t count) {                                                                  \
        real total[LANES], row[LANES];                                                                                 \
        fill_##name(total, 0, count);                                                                                  \
        add_##name##_row(total, x, run, step, count);                                                                  \
        for (int64_t r = 1; r < run->rows; r++) {                                                                      \
            fill_##name(row, 0, count);                                                                                \
            add_##name##_row(row, x + r * run->row_step, run, step, count);                                            \
            add_##name##_element(total, row, 1, count);                                                                \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            total[i] /= divisor;                                                                                       \
        store_##name(out, run->out_step, total, count);                                                                \
    }                                                                                                                  \
    PLACES(max_##name, max_lanes_##name, real)                                                                         \
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

POOL(f32, float)
POOL(f64, double)

const eddy_pool_blocks EDDY_ISA_NAME(eddy_cpu_pool_blocks) = {.f32 = {max_f32, average_f32},
                                                              .f64 = {max_f64, average_f64}};
