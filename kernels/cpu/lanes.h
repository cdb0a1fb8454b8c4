/* Vector registers: their width, and loops over an array of lanes that has to stay in them. Only block files include this
 * file. */
#ifndef EDDY_KERNELS_CPU_LANES_H
#define EDDY_KERNELS_CPU_LANES_H

#if defined(__AVX512F__)
#define EDDY_VECTOR_BYTES 64
#elif defined(__AVX__)
#define EDDY_VECTOR_BYTES 32
#else
#define EDDY_VECTOR_BYTES 16
#endif

/* Loops that gcc has to vectorise. It unrolls short loops completely before it vectorises, and the result is scalar code:
 * loops over lanes are therefore not unrolled. Loops over an array of vectors are unrolled, since the array would not stay
 * in registers otherwise. TWICE is for the loops around them, if two steps are usual. APART: the target is one of the
 * operands or overlaps none. */
#ifdef __clang__
#define EDDY_LOOP_AS_IT_IS
#define EDDY_LOOP_UNROLLED
#define EDDY_LOOP_TWICE
#define EDDY_LOOP_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define EDDY_LOOP_AS_IT_IS _Pragma("GCC unroll 1")
#define EDDY_LOOP_UNROLLED _Pragma("GCC unroll 8")
#define EDDY_LOOP_TWICE _Pragma("GCC unroll 2")
#define EDDY_LOOP_APART _Pragma("GCC ivdep")
#endif
#define EDDY_LANES(l, count) EDDY_LOOP_AS_IT_IS for (int l = 0; l < (count); l++)
#define EDDY_LANES_LONG(l, count) EDDY_LOOP_AS_IT_IS for (int64_t l = 0; l < (count); l++)
#define EDDY_LANES_APART(l, count) EDDY_LOOP_APART EDDY_LANES (l, count)
#define EDDY_EACH_APART(i, count) EDDY_LOOP_APART for (int64_t i = 0; i < (count); i++)
#define EDDY_VECTORS(v, count) EDDY_LOOP_UNROLLED for (int v = 0; v < (count); v++)
#define EDDY_TWICE(i, count) EDDY_LOOP_TWICE for (int64_t i = 0; i < (count); i++)

/* Reduces 16 lanes into lanes[0]. */
#define EDDY_LANES_HALVE(lanes, OP)                                                                \
    do {                                                                                           \
        EDDY_LANES (l_, 8)                                                                         \
            lanes[l_] = OP(lanes[l_], lanes[l_ + 8]);                                              \
        EDDY_LANES (l_, 4)                                                                         \
            lanes[l_] = OP(lanes[l_], lanes[l_ + 4]);                                              \
        lanes[0] = OP(OP(lanes[0], lanes[2]), OP(lanes[1], lanes[3]));                             \
    } while (0)

#endif
