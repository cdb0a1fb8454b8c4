#include <kernels/cpu/pool_block.h>

/* Windows under way: what they have so far stays in the nearest cache. */
#define LANES 64

#define LARGER(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a))
#define SUM(a, b) ((a) + (b))

/* to[i] = COMBINE(to[i], x[i * step]), where windows lie one or two elements apart without a gather. */
#define EACH(real, COMBINE)                                                                                            \
    do {                                                                                                               \
        if (step == 1)                                                                                                 \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] = COMBINE(to[i], x[i]);                                                                          \
        else if (step == 2)                                                                                            \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] = COMBINE(to[i], x[2 * i]);                                                                      \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] = COMBINE(to[i], x[i * step]);                                                                   \
    } while (0)

#define SECOND(a, b) (b)

#define POOL(name, real)                                                                                               \
    static inline void set_##name(real *restrict to, const real *restrict x, int64_t step, int64_t count) {            \
        EACH(real, SECOND);                                                                                            \
    }                                                                                                                  \
    static inline void raise_##name(real *restrict to, const real *restrict x, int64_t step, int64_t count) {          \
        EACH(real, LARGER);                                                                                            \
    }                                                                                                                  \
    static inline void add_##name(real *restrict to, const real *restrict x, int64_t step, int64_t count) {            \
        EACH(real, SUM);                                                                                               \
    }                                                                                                                  \
    static void store_##name(real *restrict out, int64_t step, const real *restrict from, int64_t count) {             \
        if (step == 1)                                                                                                 \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = from[i];                                                                                      \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i * step] = from[i];                                                                               \
    }                                                                                                                  \
    static void max_lanes_##name(real *out, const real *x, const eddy_pool_run *run, int64_t count) {                  \
        real best[LANES];                                                                                              \
        set_##name(best, x, run->step, count);                                                                         \
        for (int64_t r = 0; r < run->rows; r++)                                                                        \
            for (int64_t c = r == 0; c < run->columns; c++)                                                            \
                raise_##name(best, x + r * run->row_step + c * run->column_step, run->step, count);                    \
        store_##name(out, run->out_step, best, count);                                                                 \
    }                                                                                                                  \
    static void average_lanes_##name(real *out, const real *x, const eddy_pool_run *run, int64_t count,                \
                                     real divisor) {                                                                   \
        real total[LANES], row[LANES];                                                                                 \
        for (int64_t r = 0; r < run->rows; r++) {                                                                      \
            real *sum = r == 0 ? total : row;                                                                          \
            set_##name(sum, x + r * run->row_step, run->step, count);                                                  \
            for (int64_t c = 1; c < run->columns; c++)                                                                 \
                add_##name(sum, x + r * run->row_step + c * run->column_step, run->step, count);                       \
            if (r > 0)                                                                                                 \
                add_##name(total, row, 1, count);                                                                      \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            total[i] /= divisor;                                                                                       \
        store_##name(out, run->out_step, total, count);                                                                \
    }                                                                                                                  \
    static void max_##name(void *out, const void *x, const eddy_pool_run *run, double divisor) {                       \
        (void)divisor;                                                                                                 \
        for (int64_t p = 0; p < run->places; p++)                                                                      \
            for (int64_t i = 0; i < run->count; i += LANES)                                                            \
                max_lanes_##name((real *)out + p * run->out_place_step + i * run->out_step,                            \
                                 (const real *)x + p * run->place_step + i * run->step, run,                           \
                                 run->count - i < LANES ? run->count - i : LANES);                                     \
    }                                                                                                                  \
    static void average_##name(void *out, const void *x, const eddy_pool_run *run, double divisor) {                   \
        for (int64_t p = 0; p < run->places; p++)                                                                      \
            for (int64_t i = 0; i < run->count; i += LANES)                                                            \
                average_lanes_##name((real *)out + p * run->out_place_step + i * run->out_step,                        \
                                     (const real *)x + p * run->place_step + i * run->step, run,                       \
                                     run->count - i < LANES ? run->count - i : LANES, (real)divisor);                  \
    }

POOL(f32, float)
POOL(f64, double)

const eddy_pool_blocks EDDY_ISA_NAME(eddy_cpu_pool_blocks) = {.f32 = {max_f32, average_f32},
                                                              .f64 = {max_f64, average_f64}};
