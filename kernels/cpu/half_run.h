/* Runs of f16 to and from f32: by the processor's own conversions where the instruction set has them. The bits are those of half.h. */
#ifndef EDDY_KERNELS_CPU_HALF_RUN_H
#define EDDY_KERNELS_CPU_HALF_RUN_H

#include <base/assert.h>
#include <kernels/cpu/half.h>

#ifdef __F16C__
#include <immintrin.h>

#define EDDY_HALF_LANES 8

/* Each returns how many it has converted, from the first on. */
static inline __attribute__((always_inline)) int64_t
eddy_half_load_lanes(float *restrict to, const uint16_t *restrict from, int64_t count) {
    int64_t i = 0;
    for (; i + EDDY_HALF_LANES <= count; i += EDDY_HALF_LANES) {
        __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        /* The processor makes signalling NaN quiet. */
        bool has_nan = _mm256_movemask_ps(_mm256_cmp_ps(wide, wide, _CMP_UNORD_Q)) != 0;
        if (EDDY_UNLIKELY(has_nan))
            for (int64_t l = i; l < i + EDDY_HALF_LANES; l++)
                to[l] = eddy_half_load(from[l]);
        else
            _mm256_storeu_ps(to + i, wide);
    }
    return i;
}

static inline __attribute__((always_inline)) int64_t
eddy_half_store_lanes(uint16_t *restrict to, const float *restrict from, int64_t count) {
    int64_t i = 0;
    for (; i + EDDY_HALF_LANES <= count; i += EDDY_HALF_LANES)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#else
static inline int64_t eddy_half_load_lanes(float *to, const uint16_t *from, int64_t count) {
    (void)to, (void)from, (void)count;
    return 0;
}

static inline int64_t eddy_half_store_lanes(uint16_t *to, const float *from, int64_t count) {
    (void)to, (void)from, (void)count;
    return 0;
}
#endif

static inline __attribute__((always_inline)) void
eddy_half_load_run(float *restrict to, const uint16_t *restrict from, int64_t count) {
    for (int64_t i = eddy_half_load_lanes(to, from, count); i < count; i++)
        to[i] = eddy_half_load(from[i]);
}

static inline __attribute__((always_inline)) void
eddy_half_store_run(uint16_t *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = eddy_half_store_lanes(to, from, count); i < count; i++)
        to[i] = eddy_half_store(from[i]);
}

#endif
