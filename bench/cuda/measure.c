/* Measures Eddy on a CUDA device beside the driver called directly. Each line: a name, a number, its unit; "-" where there is none.
 *
 *   cuda_measure [--device N] [--small]      small: for a driver that computes on the CPU */
#include "bare.h"

#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES 5

static bool is_small;
static eddy_device device;

static double now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void say(const char *name, double value, const char *unit) {
    if (value > 0)
        printf("%s %.6g %s\n", name, value, unit);
    else
        printf("%s - %s\n", name, unit);
    fflush(stdout);
}

/* A failure ends the program with its sentence: there is nothing more to measure. */
static eddy_tensor *there(eddy_tensor *tensor) {
    eddy_error error;
    if (tensor)
        return tensor;
    eddy_error_take(&error);
    fprintf(stderr, "cuda_measure: %s\n", error.message);
    exit(1);
}

static void settle(void) {
    eddy_error error;
    if (eddy_sync(EDDY_FOREVER) == EDDY_OK)
        return;
    eddy_error_take(&error);
    fprintf(stderr, "cuda_measure: %s\n", error.message);
    exit(1);
}

static eddy_tensor *ones(eddy_shape shape, eddy_dtype dtype) {
    return there(eddy_ones(shape, dtype, EDDY_OPTIONS(ones, .device = device)));
}

/* ---- one call, timed: the best of several tries ---- */

typedef struct operands {
    eddy_tensor *x, *y;
} operands;

typedef eddy_tensor *call_fn(operands of);

static eddy_tensor *add(operands of) {
    return eddy_add(of.x, of.y);
}
static eddy_tensor *exponential(operands of) {
    return eddy_exp(of.x);
}
static eddy_tensor *sum(operands of) {
    return eddy_sum(of.x, EDDY_ALL_AXES, NULL);
}
static eddy_tensor *sum_rows(operands of) {
    return eddy_sum(of.x, EDDY_AXES(1), NULL);
}
static eddy_tensor *matmul(operands of) {
    return eddy_matmul(of.x, of.y);
}

/* From the first call to the end of the last one. */
static double best_ns(call_fn *call, operands of, int count) {
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        eddy_scope *scope = eddy_scope_begin();
        there(call(of));
        settle();
        double begin = now_ns();
        for (int i = 0; i < count; i++) {
            eddy_scope *inner = eddy_scope_begin();
            there(call(of));
            eddy_scope_end(inner);
        }
        settle();
        double taken = now_ns() - begin;
        eddy_scope_end(scope);
        if (best == 0 || taken < best)
            best = taken;
    }
    return best / count;
}

/* What the caller waits in a call, while the device is behind. */
static double issue_ns(operands of, int count) {
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        eddy_scope *scope = eddy_scope_begin();
        there(add(of));
        settle();
        double begin = now_ns();
        for (int i = 0; i < count; i++)
            there(add(of));
        double taken = now_ns() - begin;
        settle();
        eddy_scope_end(scope);
        if (best == 0 || taken < best)
            best = taken;
    }
    return best / count;
}

static double read_ns(operands of, int count) {
    double begin = now_ns();
    for (int i = 0; i < count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        (void)eddy_item_f64(eddy_select(there(add(of)), 0, 0), NULL);
        eddy_scope_end(scope);
    }
    return (now_ns() - begin) / count;
}

static double upload_ns(size_t bytes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = there(
        eddy_ones(EDDY_SHAPE((int64_t)bytes), EDDY_U8, EDDY_OPTIONS(ones, .device = EDDY_CPU)));
    settle();
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        double begin = now_ns();
        eddy_scope *inner = eddy_scope_begin();
        there(eddy_to_device(here, device));
        settle();
        double taken = now_ns() - begin;
        eddy_scope_end(inner);
        if (best == 0 || taken < best)
            best = taken;
    }
    eddy_scope_end(scope);
    return best;
}

/* ---- the rows ---- */

static double rate(double units, double ns) {
    return ns > 0 ? units / ns : 0;
}

static void measure_calls(void) {
    eddy_scope *scope = eddy_scope_begin();
    operands few = {ones(EDDY_SHAPE(16), EDDY_F32), ones(EDDY_SHAPE(16), EDDY_F32)};
    int many = is_small ? 200 : 20000, some = is_small ? 20 : 1000;
    say("bare_launch", bare_launches_ns(many) / many, "ns");
    say("cuda_launch_add16", best_ns(add, few, many), "ns");
    say("cuda_issue_add16", issue_ns(few, some), "ns");
    say("bare_launch_read", bare_round_trip_ns(some) / some, "ns");
    say("cuda_issue_read", read_ns(few, some), "ns");
    eddy_scope_end(scope);
}

/* Memory that was released just before, taken again. */
static void measure_memory(void) {
    int count = is_small ? 200 : 20000;
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        double begin = now_ns();
        for (int i = 0; i < count; i++) {
            eddy_tensor *taken = there(
                eddy_empty(EDDY_SHAPE(1 << 18), EDDY_F32, EDDY_OPTIONS(empty, .device = device)));
            eddy_release(&taken);
        }
        settle();
        double spent = now_ns() - begin;
        if (best == 0 || spent < best)
            best = spent;
    }
    say("cuda_alloc_hit", best / count, "ns");
}

static void measure_copies(void) {
    size_t bytes = is_small ? 100000 : 100000000;
    int count = is_small ? 2 : 10;
    say("bare_device_copy", rate(2.0 * (double)bytes * count, bare_device_copy_ns(bytes, count)),
        "GB/s");
    say("bare_h2d_1e8", rate((double)bytes * count, bare_upload_ns(bytes, count)), "GB/s");
    say("cuda_h2d_1e8", rate((double)bytes, upload_ns(bytes)), "GB/s");
}

static void measure_elements(void) {
    int64_t count = is_small ? 20000 : 100000000, rows = is_small ? 100 : 10000;
    int calls = is_small ? 1 : 10;
    eddy_scope *scope = eddy_scope_begin();
    operands of = {ones(EDDY_SHAPE(count), EDDY_F32), ones(EDDY_SHAPE(count), EDDY_F32)};
    operands table = {there(eddy_reshape(of.x, EDDY_SHAPE(rows, count / rows))), NULL};
    double bytes = 4.0 * (double)count;
    say("cuda_op_add_1e8", rate(3 * bytes, best_ns(add, of, calls)), "GB/s");
    say("cuda_op_exp_1e8", rate(2 * bytes, best_ns(exponential, of, calls)), "GB/s");
    say("cuda_op_sum_1e8", rate(bytes, best_ns(sum, of, calls)), "GB/s");
    say("cuda_op_sum_rows_1e8", rate(bytes, best_ns(sum_rows, table, calls)), "GB/s");
    eddy_scope_end(scope);
}

static void measure_products(void) {
    static const struct {
        const char *name;
        eddy_dtype dtype;
    } rows[] = {{"cuda_gemm_f32_4096", EDDY_F32}, {"cuda_gemm_bf16_4096", EDDY_BF16}};
    int64_t side = is_small ? 64 : 4096;
    double work = 2.0 * (double)side * (double)side * (double)side;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        eddy_scope *scope = eddy_scope_begin();
        operands of = {ones(EDDY_SHAPE(side, side), rows[i].dtype),
                       ones(EDDY_SHAPE(side, side), rows[i].dtype)};
        say(rows[i].name, rate(work / 1000, best_ns(matmul, of, is_small ? 1 : 3)), "TFLOP/s");
        eddy_scope_end(scope);
    }
}

static eddy_tensor *attend(operands of) {
    return eddy_sdpa(of.x, of.y, of.y, EDDY_NONE, EDDY_OPTIONS(sdpa, .is_causal = true));
}

/* By our own kernel, and with the weights of the softmax rounded to bf16, by NVIDIA's library. Causal: half of the products. */
static void measure_attention(void) {
    const eddy_shape shape = is_small ? EDDY_SHAPE(1, 2, 64, 16) : EDDY_SHAPE(8, 16, 2048, 64);
    const int64_t *dims = shape.dims;
    double work = 2.0 * (double)(dims[0] * dims[1] * dims[2] * dims[2] * dims[3]);
    for (int is_rounded = 0; is_rounded < 2; is_rounded++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = is_rounded));
        if (!runtime || eddy_runtime_use(runtime) != EDDY_OK)
            there(NULL);
        eddy_scope *scope = eddy_scope_begin();
        operands of = {ones(shape, EDDY_BF16), ones(shape, EDDY_BF16)};
        say(is_rounded ? "cuda_sdpa_bf16_2048_rounded" : "cuda_sdpa_bf16_2048",
            rate(work / 1000, best_ns(attend, of, is_small ? 1 : 3)), "TFLOP/s");
        eddy_scope_end(scope);
        (void)eddy_runtime_use(NULL);
        eddy_runtime_release(&runtime);
    }
}

int main(int argc, char **argv) {
    int index = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--small") == 0)
            is_small = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            index = atoi(argv[++i]);
        else {
            fprintf(stderr, "usage: cuda_measure [--device N] [--small]\n");
            return 2;
        }
    }
    device = EDDY_CUDA(index);
    eddy_device_info info = {.size = sizeof(info)};
    if (eddy_device_describe(device, &info) != EDDY_OK || !bare_begin(index)) {
        eddy_error error = {0};
        eddy_error_take(&error);
        fprintf(stderr, "cuda_measure: there is no such device: %s\n", error.message);
        return 1;
    }
    printf("device %s\n", info.name);
    say("driver", bare_driver_version(), "version");
    say("memory", (double)info.memory_bytes, "bytes");
    say("multiprocessors", info.processor_count, "of them");
    measure_calls();
    measure_memory();
    measure_copies();
    measure_elements();
    measure_products();
    measure_attention();
    if (eddy_device_describe(device, &info) == EDDY_OK)
        printf("products %s\nconvolutions %s\n", info.products, info.convolutions);
    bare_end();
    return 0;
}
