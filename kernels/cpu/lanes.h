/* Vector registers: how wide they are, and loops over an array of lanes that is to stay in them. Only block files include it. */
#ifndef EDDY_KERNELS_CPU_LANES_H
#define EDDY_KERNELS_CPU_LANES_H

#if defined(__AVX512F__)
#define EDDY_VECTOR_BYTES 64
#elif defined(__AVX__)
#define EDDY_VECTOR_BYTES 32
#else
#define EDDY_VECTOR_BYTES 16
#endif

/* The loop that follows is not to be unrolled: gcc unrolls short loops whole before it vectorises, and what is left is scalar
 * code. EDDY_LANES(l, count) is such a loop. Loops over an array of vectors are EDDY_LANES_UNROLLED: otherwise gcc does that
 * too late for the array to stay in registers. A loop round these is EDDY_LANES_TWICE, where two steps are usual. */
#ifdef __clang__
#define EDDY_LANES_LOOP
#define EDDY_LANES_UNROLLED
#define EDDY_LANES_TWICE
/* The target of the loop that follows is one of its operands or overlaps none. */
#define EDDY_LANES_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define EDDY_LANES_INDEPENDENT _Pragma("GCC ivdep")
#define EDDY_LANES_LOOP _Pragma("GCC unroll 1")
#define EDDY_LANES_UNROLLED _Pragma("GCC unroll 8")
#define EDDY_LANES_TWICE _Pragma("GCC unroll 2")
#endif
#define EDDY_LANES(l, count) EDDY_LANES_LOOP for (int l = 0; l < (count); l++)

/* Totals 16 lanes into lanes[0]. */
#define EDDY_LANES_HALVE(lanes, OP)                                                                                    \
    do {                                                                                                               \
        EDDY_LANES (l_, 8)                                                                                             \
            lanes[l_] = OP(lanes[l_], lanes[l_ + 8]);                                                                  \
        EDDY_LANES (l_, 4)                                                                                             \
            lanes[l_] = OP(lanes[l_], lanes[l_ + 4]);                                                                  \
        lanes[0] = OP(OP(lanes[0], lanes[2]), OP(lanes[1], lanes[3]));                                                 \
    } while (0)

#endif
