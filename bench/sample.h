/* Shared by all programs here, Eddy's and the peers': a clock, samples, and one line of JSON per row.
 *
 * A program is called as `program ROW [samples]` and prints for each row that it measured
 *     {"row": "issue_add16", "unit": "ns", "version": "...", "path": "caller", "samples": [51.2, 50.9]}
 * Plain C and C++, header only, one thread. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_SAMPLES_MAX 512
#define BENCH_SAMPLES_DEFAULT 15

typedef struct bench_samples {
    double values[BENCH_SAMPLES_MAX];
    int count;
} bench_samples;

static inline double bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline void bench_samples_push(bench_samples *samples, double value) {
    if (samples->count < BENCH_SAMPLES_MAX)
        samples->values[samples->count++] = value;
}

static inline void bench_print_samples(const bench_samples *samples) {
    printf(", \"samples\": [");
    for (int i = 0; i < samples->count; i++)
        printf("%s%.6g", i ? ", " : "", samples->values[i]);
    printf("]}\n");
    fflush(stdout);
}

/* path: which threads ran the work ("caller", "scheduler", "worker", or shares of them); NULL for peers. */
static inline void bench_print_row(const char *row, const char *unit, const char *version,
                                   const char *path, const bench_samples *samples) {
    printf("{\"row\": \"%s\", \"unit\": \"%s\", \"version\": \"%s\"", row, unit, version);
    if (path)
        printf(", \"path\": \"%s\"", path);
    bench_print_samples(samples);
}

/* Calls per sample, so that a sample takes 3 ms if a call takes `ns`. */
static inline int bench_calls_for(double ns) {
    return ns >= 3e6 ? 1 : (int)(3e6 / (ns > 1 ? ns : 1));
}

/* The requested number of samples, or fewer (at least three) if all would take more than a second. */
static inline int bench_samples_for(double sample_ns, int count) {
    int affordable = (int)(1e9 / sample_ns);
    return affordable >= count ? count : affordable < 3 ? 3 : affordable;
}

/* The number of samples on the command line, limited to BENCH_SAMPLES_MAX. */
static inline int bench_sample_count(int argc, char **argv, int index) {
    int count = argc > index ? atoi(argv[index]) : BENCH_SAMPLES_DEFAULT;
    return count < 1 ? 1 : count > BENCH_SAMPLES_MAX ? BENCH_SAMPLES_MAX : count;
}

/* xorshift: the same "random" numbers in every program. */
static inline uint32_t bench_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* In [-scale, scale). */
static inline float bench_random_float(uint32_t *state, float scale) {
    return ((float)(bench_random(state) >> 8) / 8388608.0f - 1.0f) * scale;
}

/* `count` numbers in [-1, 1), aligned to a cache line; the caller frees them. Ends the program if there is no memory. */
static inline float *bench_random_floats(uint32_t *state, size_t count) {
    float *values = (float *)aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (!values)
        exit(1);
    for (size_t i = 0; i < count; i++)
        values[i] = bench_random_float(state, 1);
    return values;
}

#endif
