#include <kernels/cpu/reduce/scan_block.h>

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define ADD_WRAP(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MULTIPLY_WRAP(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

/* Four steps of line l. Two stores to one cache line take a cycle, to two lines two: so neighbours are stored one after the
 * other. Volatile, since compilers would rather put the four together, on the ports that add. */
#define STEPS(type, OP)                                                                            \
    {                                                                                              \
        const type *from = x + l * apart + i;                                                      \
        volatile type *to = x + l * apart + i;                                                     \
        type first = OP(running[l], from[0]), second = OP(first, from[1]);                         \
        type third = OP(second, from[2]), fourth = OP(third, from[3]);                             \
        to[0] = first;                                                                             \
        to[1] = second;                                                                            \
        to[2] = third;                                                                             \
        to[3] = fourth;                                                                            \
        running[l] = fourth;                                                                       \
    }

#define SCAN(name, type, OP)                                                                       \
    static void name##_lines(void *elements, int64_t lines, int64_t apart, int64_t count,          \
                             void *totals) {                                                       \
        type *restrict x = elements;                                                               \
        type *restrict total = totals;                                                             \
        int64_t i = 0;                                                                             \
        if (lines == EDDY_SCAN_LINES) {                                                            \
            type running[EDDY_SCAN_LINES];                                                         \
            for (int l = 0; l < EDDY_SCAN_LINES; l++)                                              \
                running[l] = total[l];                                                             \
            for (; i + 4 <= count; i += 4)                                                         \
                for (int l = 0; l < EDDY_SCAN_LINES; l++)                                          \
                    STEPS(type, OP)                                                                \
            for (int l = 0; l < EDDY_SCAN_LINES; l++)                                              \
                total[l] = running[l];                                                             \
        }                                                                                          \
        for (int64_t l = 0; l < lines; l++) {                                                      \
            type running = total[l];                                                               \
            for (int64_t j = i; j < count; j++) {                                                  \
                running = OP(running, x[l * apart + j]);                                           \
                x[l * apart + j] = running;                                                        \
            }                                                                                      \
            total[l] = running;                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void name##_shift(void *elements, int64_t count, const void *before) {                  \
        type *restrict x = elements;                                                               \
        const type start = *(const type *)before;                                                  \
        for (int64_t i = 0; i < count; i++)                                                        \
            x[i] = OP(start, x[i]);                                                                \
    }                                                                                              \
    static void name##_row(void *row, void *totals, const void *before, int64_t columns) {         \
        type *restrict x = row;                                                                    \
        type *restrict total = totals;                                                             \
        const type *restrict start = before;                                                       \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            total[c] = OP(total[c], x[c]);                                                         \
            x[c] = OP(start[c], total[c]);                                                         \
        }                                                                                          \
    }

SCAN(sum_f64, double, ADD)
SCAN(sum_i64, int64_t, ADD_WRAP)
SCAN(prod_f64, double, MULTIPLY)
SCAN(prod_i64, int64_t, MULTIPLY_WRAP)

#define OPS(name)                                                                                  \
    { name##_lines, name##_shift, name##_row }
const eddy_scan_blocks EDDY_ISA_NAME(eddy_cpu_scan_blocks) = {
    .sum_f64 = OPS(sum_f64),
    .sum_i64 = OPS(sum_i64),
    .prod_f64 = OPS(prod_f64),
    .prod_i64 = OPS(prod_i64),
};
