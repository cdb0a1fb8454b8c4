/* Vector clocks: which pieces of which streams come before something. */
#ifndef EDDY_TESTS_FAKE_CUDA_CLOCK_H
#define EDDY_TESTS_FAKE_CUDA_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Of all devices together. */
#define FAKE_STREAMS 64

/* at[s]: the pieces of stream s up to this number come before. Pieces of a stream are numbered from 1. */
typedef struct fake_clock {
    uint64_t at[FAKE_STREAMS];
} fake_clock;

static inline void fake_clock_join(fake_clock *clock, const fake_clock *other) {
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (clock->at[s] < other->at[s])
            clock->at[s] = other->at[s];
}

static inline bool fake_clock_covers(const fake_clock *clock, uint32_t stream, uint64_t number) {
    return clock->at[stream] >= number;
}

#endif
