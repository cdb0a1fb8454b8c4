/* A plain copy that reads and writes as many bytes as an op, with as many threads: a bound for ops that are limited by memory, which
 * they can beat only by non-temporal stores.
 *
 *   copy relu_1e7_fresh [samples]                           ms
 *   copy op_<name>_<size>_<threads>t[,...] [samples]        us */
#include <bench/op_bytes.h>
#include <bench/ops.h>
#include <bench/shapes.h>
#include <omp.h>

static char *source, *target;

static double time_copies(size_t bytes, int calls) {
    double began = bench_now_ns();
    for (int call = 0; call < calls; call++) {
        int parts = bytes < 1 << 18 ? 1 : omp_get_max_threads();
#pragma omp parallel for if (parts > 1) num_threads(parts)
        for (int part = 0; part < parts; part++) {
            size_t begin = bytes * (size_t)part / (size_t)parts,
                   end = bytes * (size_t)(part + 1) / (size_t)parts;
            memcpy(target + begin, source + begin, end - begin);
        }
        __asm__ volatile("" : : "r"(target) : "memory");
    }
    return (bench_now_ns() - began) / calls;
}

static void measure(size_t bytes, double unit_ns, int count, bench_samples *samples) {
    int calls = bench_calls_for(time_copies(bytes, 1));
    calls = bench_calls_for(time_copies(bytes, calls));
    count = bench_samples_for(time_copies(bytes, calls) * calls, count);
    samples->count = 0;
    for (int sample = 0; sample < count; sample++)
        bench_samples_push(samples, time_copies(bytes, calls) / unit_ns);
}

/* Bytes that the largest row copies: half of the bytes that its op reads and writes. */
static size_t most_bytes(void) {
    size_t fresh = (size_t)BENCH_RELU_COUNT * sizeof(float),
           most = bench_op_bytes_most() * 10000000 / 2;
    return most > fresh ? most : fresh;
}

/* An op whose bytes are not counted has no such row. */
static void measure_op(const bench_op_row *row, int count) {
    size_t bytes = bench_op_bytes_of(row->op);
    if (bytes == 0)
        return;
    bench_samples samples;
    double moved = (double)bytes * (double)row->n;
    measure((size_t)(moved / 2), 1e3, count, &samples);
    bench_print_op(row->row, "memcpy of glibc", NULL, moved, &samples);
}

int main(int argc, char **argv) {
    int count = bench_sample_count(argc, argv, 2);
    size_t most = most_bytes();
    source = aligned_alloc(64, most);
    target = aligned_alloc(64, most);
    if (!source || !target)
        return 1;
    memset(source, 1, most);
    memset(target, 2, most);
    bench_op_row asked;
    for (const char *rows = argc > 1 ? argv[1] : ""; bench_op_row_next(&rows, &asked);) {
        if (strcmp(asked.row, "relu_1e7_fresh")) {
            measure_op(&asked, count);
            continue;
        }
        bench_samples samples;
        measure((size_t)BENCH_RELU_COUNT * sizeof(float), 1e6, count, &samples);
        bench_print_row(asked.row, "ms", "memcpy of glibc", NULL, &samples);
    }
    free(source);
    free(target);
    return 0;
}
