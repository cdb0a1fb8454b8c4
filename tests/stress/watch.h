/* What every stress program does: says its seed, ends by an alarm instead of hanging, and leaves no memory. */
#ifndef EDDY_TESTS_WATCH_H
#define EDDY_TESTS_WATCH_H

#include <base/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WATCH_SECONDS 60

/* Anew after each piece of progress: no step of a stress takes a minute. */
static inline void watch(void) {
    alarm(WATCH_SECONDS);
}

static inline void watch_begin(const char *name, uint64_t seed) {
    /* By the line, so that what a hang left is known. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s, seed %llu\n", name, (unsigned long long)seed);
    watch();
}

/* Ends the program where a condition does not hold. */
#define must(condition)                                                                            \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition),                \
                    fflush(stderr), abort()))

/* All VMs are gone: is all memory? */
static inline void watch_no_memory_held(void) {
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++) {
        int64_t bytes = eddy_memory_counted((eddy_memory_purpose)p).bytes;
        if (bytes != 0)
            fprintf(stderr, "leak: purpose %d, %lld bytes\n", p, (long long)bytes);
        must(bytes == 0);
    }
}

#endif
