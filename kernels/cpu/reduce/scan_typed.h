/* The functions of scan_block.h for one element type, included by scan_<element>_block.c alone (kernels/cpu/typed.h), which
 * also defines EDDY_WRAPPING: EDDY_REAL, or the unsigned type in which sums and products of integers wrap around. */
#ifndef EDDY_KERNELS_CPU_SCAN_TYPED_H
#define EDDY_KERNELS_CPU_SCAN_TYPED_H

#include <kernels/cpu/reduce/scan_block.h>
#include <kernels/cpu/typed.h>

#define INLINE static inline __attribute__((always_inline))

typedef enum joining { SUM, PRODUCT } joining;

INLINE real join(joining how, real a, real b) {
    return how == SUM ? (real)((EDDY_WRAPPING)a + (EDDY_WRAPPING)b)
                      : (real)((EDDY_WRAPPING)a * (EDDY_WRAPPING)b);
}

/* Four steps of a line. Two stores to one cache line take one cycle, two stores to different lines take two; so neighbours
 * are stored one after the other. Volatile, since compilers would otherwise combine the four into a vector, on the ports
 * that add. */
INLINE real four_steps(joining how, real running, real *x) {
    const real *from = x;
    volatile real *to = x;
    real first = join(how, running, from[0]), second = join(how, first, from[1]);
    real third = join(how, second, from[2]), fourth = join(how, third, from[3]);
    to[0] = first;
    to[1] = second;
    to[2] = third;
    to[3] = fourth;
    return fourth;
}

/* Scans EDDY_SCAN_LINES lines side by side, in groups of four elements; returns the number of elements scanned. */
INLINE int64_t scan_fours(joining how, real *restrict x, int64_t apart, int64_t count,
                          real *restrict totals) {
    real running[EDDY_SCAN_LINES];
    int64_t i = 0;
    for (int l = 0; l < EDDY_SCAN_LINES; l++)
        running[l] = totals[l];
    for (; i + 4 <= count; i += 4)
        for (int l = 0; l < EDDY_SCAN_LINES; l++)
            running[l] = four_steps(how, running[l], x + l * apart + i);
    for (int l = 0; l < EDDY_SCAN_LINES; l++)
        totals[l] = running[l];
    return i;
}

INLINE void scan_lines(joining how, real *restrict x, int64_t lines, int64_t apart, int64_t count,
                       real *restrict totals) {
    int64_t i = lines == EDDY_SCAN_LINES ? scan_fours(how, x, apart, count, totals) : 0;
    for (int64_t l = 0; l < lines; l++) {
        real running = totals[l];
        for (int64_t j = i; j < count; j++) {
            running = join(how, running, x[l * apart + j]);
            x[l * apart + j] = running;
        }
        totals[l] = running;
    }
}

INLINE void shift(joining how, real *restrict x, int64_t count, real start) {
    for (int64_t i = 0; i < count; i++)
        x[i] = join(how, start, x[i]);
}

INLINE void scan_row(joining how, real *restrict x, real *restrict totals,
                     const real *restrict before, int64_t columns) {
    for (int64_t c = 0; c < columns; c++) {
        totals[c] = join(how, totals[c], x[c]);
        x[c] = join(how, before[c], totals[c]);
    }
}

#define SCAN(name, how)                                                                            \
    static void EDDY_TYPED(name##_lines)(void *x, int64_t lines, int64_t apart, int64_t count,     \
                                         void *totals) {                                           \
        scan_lines(how, x, lines, apart, count, totals);                                           \
    }                                                                                              \
    static void EDDY_TYPED(name##_shift)(void *x, int64_t count, const void *before) {             \
        shift(how, x, count, *(const real *)before);                                               \
    }                                                                                              \
    static void EDDY_TYPED(name##_row)(void *x, void *totals, const void *before,                  \
                                       int64_t columns) {                                          \
        scan_row(how, x, totals, before, columns);                                                 \
    }
#define OPS(name)                                                                                  \
    { EDDY_TYPED(name##_lines), EDDY_TYPED(name##_shift), EDDY_TYPED(name##_row) }

SCAN(sum, SUM)
SCAN(prod, PRODUCT)

const eddy_scan_blocks EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_scan)) = {
    .sum = OPS(sum),
    .prod = OPS(prod),
};

#endif
