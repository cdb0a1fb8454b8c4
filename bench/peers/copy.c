/* The floor of relu_1e7_fresh: a copy of the same size into a given output, which no op that reads and writes can beat
 * by more than non-temporal stores give. */
#include <bench/sample.h>
#include <bench/shapes.h>

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    if (strcmp(row, "relu_1e7_fresh")) {
        fprintf(stderr, "copy: no such row: %s\n", row);
        return 2;
    }
    size_t bytes = (size_t)BENCH_RELU_COUNT * sizeof(float);
    float *source = aligned_alloc(64, bytes), *target = aligned_alloc(64, bytes);
    if (!source || !target)
        return 1;
    uint32_t random = 1;
    for (size_t i = 0; i < BENCH_RELU_COUNT; i++)
        source[i] = bench_random_float(&random, 1.0f);
    memset(target, 1, bytes);
    bench_samples samples = {.count = 0};
    for (int i = -2; i < count; i++) {
        double begin = bench_now_ns();
        memcpy(target, source, bytes);
        __asm__ volatile("" : : "r"(target) : "memory");
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / 1e6);
    }
    bench_print_row(row, "ms", "memcpy of glibc", NULL, &samples);
    free(source);
    free(target);
    return 0;
}
