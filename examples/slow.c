/* A program that is slow for three reasons, which docs/profiling.md finds one after the other:
 *
 *     slow 0    waits for a number in each step
 *     slow 1    no more; standardises a batch row by row, in thousands of tiny ops
 *     slow 2    no more; transposes all of its data in each step, to take a batch of it
 *     slow 3    no more
 *
 * Each prints the same number, and the time of a step; with EDDY_TIMES=1 also what was counted. */
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FEATURES 128
#define BATCH 512
#define STEPS 32

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Each row less its mean, over its deviation. */
static eddy_tensor *standardised(eddy_tensor *x) {
    eddy_tensor *mean = eddy_mean(x, EDDY_AXES(-1), EDDY_OPTIONS(mean, .keeps_dims = true));
    eddy_tensor *deviation = eddy_std(x, EDDY_AXES(-1), EDDY_OPTIONS(std, .keeps_dims = true));
    return eddy_div(eddy_sub(x, mean), deviation);
}

static eddy_tensor *standardised_row_by_row(eddy_tensor *x) {
    eddy_tensor *rows[BATCH];
    for (int64_t r = 0; r < BATCH; r++)
        rows[r] = standardised(eddy_select(x, 0, r));
    return eddy_stack((eddy_list){rows, BATCH}, 0);
}

/* Samples are columns of `data`. */
static eddy_tensor *batch_of(int mended, eddy_tensor *data, int number) {
    eddy_tensor *samples = eddy_t(data);
    if (mended < 3)
        samples = eddy_contiguous(samples);
    return eddy_narrow(samples, 0, (int64_t)number * BATCH, BATCH);
}

/* A number from a batch and the weights. */
static eddy_tensor *step(int mended, eddy_tensor *batch, eddy_tensor *weight) {
    eddy_tensor *rows = mended >= 2 ? standardised(batch) : standardised_row_by_row(batch);
    return eddy_mean(eddy_relu(eddy_matmul(rows, eddy_t(weight))), EDDY_ALL_AXES, NULL);
}

static void print_counters(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    eddy_op_counters ops[4];
    int64_t count = eddy_op_counters_read(ops, 4);
    if (count == 0 || eddy_counters_read(&counters) != EDDY_OK)
        return;
    printf("issue   %6lld times, %7.3f ms\nkernel  %6lld times, %7.3f ms\nwait    %6lld times, "
           "%7.3f ms\n",
           (long long)counters.issue_count, (double)counters.issue_ns / 1e6,
           (long long)counters.kernel_count, (double)counters.kernel_ns / 1e6,
           (long long)counters.wait_count, (double)counters.wait_ns / 1e6);
    for (int64_t i = 0; i < count && i < 4; i++)
        printf("  %-6s%6lld times, %7.3f ms\n", ops[i].name, (long long)ops[i].count,
               (double)ops[i].total_ns / 1e6);
}

int main(int argc, char **argv) {
    int mended = argc > 1 ? atoi(argv[1]) : 0;
    eddy_seed(1);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *data = eddy_rand(EDDY_SHAPE(FEATURES, BATCH * STEPS), EDDY_F32, NULL);
    eddy_tensor *weight = eddy_rand(EDDY_SHAPE(64, FEATURES), EDDY_F32, NULL);
    eddy_tensor *total = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    double began = 0;
    for (int s = 0; s < STEPS; s++) {
        /* In the first step libraries start. */
        if (s == 1) {
            eddy_sync(EDDY_FOREVER);
            began = now();
        }
        eddy_range_push("step");
        eddy_scope *inner = eddy_scope_begin();
        eddy_add_inplace(total, step(mended, batch_of(mended, data, s), weight));
        if (mended < 1)
            printf("\r%3d: %.4f", s + 1, eddy_item_f64(total, NULL));
        eddy_scope_end(inner);
        eddy_range_pop();
    }
    double sum = eddy_item_f64(total, NULL);
    printf("\r%.4f, %.3f ms a step\n", sum, (now() - began) / (STEPS - 1) * 1e3);
    print_counters();
    eddy_scope_end(scope);
    eddy_error error;
    if (eddy_error_take(&error) == EDDY_OK)
        return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
