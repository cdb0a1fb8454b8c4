/* The small_* rows: programs of ops of a few microseconds each. Their sizes, and the measurement of a run: time, CPU time and peak
 * resident memory. For Eddy's programs and the peers'.
 *
 * Plain C and C++, header only, one thread. */
#ifndef BENCH_PROGRAMS_H
#define BENCH_PROGRAMS_H

#include <bench/resident.h>
#include <bench/sample.h>
#include <sys/resource.h>

/* A recurrent network: steps per sequence, and training steps per run, one for each sequence. */
#define BENCH_GRU_INPUTS 32
#define BENCH_GRU_HIDDEN 48
#define BENCH_GRU_STEPS 24
#define BENCH_GRU_ROUNDS 4
/* Training steps per run of the feed-forward networks: the network of the mlp rows, and LeNet-5. */
#define BENCH_LAYERS_ROUNDS 10
#define BENCH_LENET_SIDE 28
#define BENCH_LENET_KERNEL 5
#define BENCH_LENET_CHANNELS1 6
#define BENCH_LENET_CHANNELS2 16
#define BENCH_LENET_FLAT 256 /* elements of an image after the second pool */
#define BENCH_LENET_HIDDEN1 120
#define BENCH_LENET_HIDDEN2 84
#define BENCH_DECODE_TOKENS 32
#define BENCH_TREE_LEAVES 10001 /* 10,000 adds */
#define BENCH_TREE_WIDTH 64
#define BENCH_CHAIN_OPS 200
#define BENCH_MIXED_ROUNDS 4
#define BENCH_MIXED_SIDE 448 /* a product of about 1 ms */
#define BENCH_MIXED_OPS 100
#define BENCH_MIXED_WIDTH 10000

/* A sample is as many runs as take this long, so that the work of threads after the last run is a small part of it. */
#define BENCH_PROGRAM_SAMPLE_MS 40

typedef struct bench_program {
    void (*run)(void *work); /* returns when all its ops have run */
    void *work;
    int runs; /* per sample */
    double resident_before;
    bench_samples times, cpu_times, memory;
} bench_program;

/* Whether a row belongs to a program. If `format` has a %lld, the number in the row's name is its size; else *size is 0. */
static inline bool bench_program_has(const char *format, const char *row, long long *size) {
    *size = 0;
    if (strchr(format, '%'))
        return sscanf(row, format, size) == 1 && *size > 0;
    return !strncmp(row, format, strlen(format));
}

static inline double bench_cpu_ms(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static inline double bench_program_run_ms(const bench_program *p) {
    double began = bench_now_ns();
    p->run(p->work);
    return (bench_now_ns() - began) / 1e6;
}

/* Two runs that are not recorded: the first warms up, the second determines the runs per sample. */
static inline void bench_program_begin(bench_program *p) {
    p->times.count = p->cpu_times.count = p->memory.count = 0;
    p->resident_before = bench_resident_begin();
    bench_program_run_ms(p);
    p->runs = 1 + (int)(BENCH_PROGRAM_SAMPLE_MS / (bench_program_run_ms(p) + 0.01));
}

/* The memory peak includes the runs of bench_program_begin. */
static inline void bench_program_measure(bench_program *p, int sample_count) {
    for (int i = 0; i < sample_count; i++) {
        double cpu_began = bench_cpu_ms(), ms = 0;
        for (int r = 0; r < p->runs; r++)
            ms += bench_program_run_ms(p);
        bench_samples_push(&p->times, ms / p->runs);
        bench_samples_push(&p->cpu_times, (bench_cpu_ms() - cpu_began) / p->runs);
    }
    bench_samples_push(&p->memory, bench_resident_peak(p->resident_before));
}

static inline bool bench_program_ends_with(const char *name, const char *ending) {
    size_t length = strlen(name), of_ending = strlen(ending);
    return length >= of_ending && !strcmp(name + length - of_ending, ending);
}

/* rows: as on the command line, "small_tree,small_tree_cpu,small_tree_memory"; the suffix selects the figure. */
static inline void bench_program_print(const bench_program *p, const char *rows,
                                       const char *version, const char *path) {
    char row[64];
    for (int length; sscanf(rows, "%63[^,]%n", row, &length) == 1;
         rows += rows[length] == ',' ? length + 1 : length) {
        if (bench_program_ends_with(row, "_memory"))
            bench_print_row(row, "MiB", version, path, &p->memory);
        else
            bench_print_row(row, "ms", version, path,
                            bench_program_ends_with(row, "_cpu") ? &p->cpu_times : &p->times);
    }
}

#endif
