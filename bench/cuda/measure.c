/* Rows cuda_* that no program of the CPU's rows measures: cuda_measure ROW[,ROW...] [samples], with EDDY_DEVICE=cuda
 *
 *   alloc_hit                         memory that was released just before, taken again
 *   h2d_<bytes>                       a copy to the device
 *   op_<name>_<size>_1t               of add, exp, sum and sum_rows, which need few operands: for sizes that are beyond the caches
 *   gemm_<shape>_<dtype>              a product of matrices
 *   sdpa_bf16_<tokens>                causal attention of 8 batches with 16 heads of 64
 *
 * Without a row it says what device there is, and who computes products and convolutions there; status 1: there is none. */
#include <bench/cuda/bare.h>
#include <bench/cuda/gemm_row.h>
#include <bench/cuda/timed.h>
#include <bench/ops.h>
#include <bench/ours/must.h>
#include <eddy/eddy.h>

#define ALLOCATED 1048576 /* bytes */

typedef struct operands {
    eddy_tensor *x, *y;
} operands;

static void settle(void) {
    must(eddy_sync(EDDY_FOREVER));
}

static void measure(const char *row, const char *unit, double unit_ns, void (*call)(void *),
                    void *work, int count) {
    const timed_calls calls = {call, settle, work, TIMED_LONG_NS};
    bench_samples samples;
    timed_calls_measure(&calls, unit_ns, count, &samples);
    bench_print_row(row, unit, eddy_version_text(), NULL, &samples);
}

/* What a call has made is released at once. */
static void drop(eddy_tensor *result) {
    eddy_release(&(eddy_tensor *){must_tensor(result)});
}

/* ---- memory ---- */

static void allocate(void *work) {
    (void)work;
    drop(eddy_empty(EDDY_SHAPE(ALLOCATED), EDDY_U8, NULL));
}

static void upload(void *work) {
    drop(eddy_to_device(((operands *)work)->x, EDDY_CUDA(0)));
}

static void measure_upload(const char *row, int64_t bytes, int count) {
    operands of = {.x = must_tensor(eddy_ones(EDDY_SHAPE(bytes), EDDY_U8,
                                              EDDY_OPTIONS(ones, .device = EDDY_CPU)))};
    measure(row, "ms", 1e6, upload, &of, count);
    eddy_release(&of.x);
}

/* ---- ops ---- */

static void add(void *work) {
    const operands *of = work;
    drop(eddy_add(of->x, of->y));
}
static void exponential(void *work) {
    drop(eddy_exp(((operands *)work)->x));
}
static void sum(void *work) {
    drop(eddy_sum(((operands *)work)->x, EDDY_ALL_AXES, NULL));
}
static void sum_rows(void *work) {
    drop(eddy_sum(((operands *)work)->y, EDDY_AXES(1), NULL));
}

static const struct op {
    const char *name;
    void (*call)(void *);
    int bytes; /* that it moves per element */
    bool has_table;
} ops[] = {{"add", add, 12, false},
           {"exp", exponential, 8, false},
           {"sum", sum, 4, false},
           {"sum_rows", sum_rows, 4, true}};

/* False: there is no such row. */
static bool measure_op(const char *row, int count) {
    bench_op_row asked;
    const char *rows = row;
    if (!bench_op_row_next(&rows, &asked) || asked.n <= 0)
        return false;
    const struct op *op = ops;
    while (op < ops + sizeof(ops) / sizeof(*ops) && strcmp(op->name, asked.op))
        op++;
    if (op == ops + sizeof(ops) / sizeof(*ops))
        return false;
    bench_op_shape shape = bench_op_shape_of(asked.n);
    operands of = {must_tensor(eddy_ones(EDDY_SHAPE(asked.n), EDDY_F32, NULL)),
                   must_tensor(eddy_ones(op->has_table ? EDDY_SHAPE(shape.rows, shape.columns)
                                                       : EDDY_SHAPE(asked.n),
                                         EDDY_F32, NULL))};
    const timed_calls calls = {op->call, settle, &of, TIMED_SHORT_NS};
    bench_samples samples;
    timed_calls_measure(&calls, 1e3, count, &samples);
    bench_print_op(row, eddy_version_text(), NULL, (double)op->bytes * (double)asked.n, &samples);
    eddy_release(&of.x);
    eddy_release(&of.y);
    return true;
}

/* ---- products and attention ---- */

static void multiply(void *work) {
    const operands *of = work;
    drop(eddy_matmul(of->x, of->y));
}

/* A view, if it lies transposed. */
static eddy_tensor *matrix(const gemm_row *row, long rows, long columns, bool is_transposed,
                           uint32_t *random) {
    void *numbers = gemm_row_numbers(row, rows * columns, random);
    eddy_tensor *stored = must_tensor(eddy_from_data(
        numbers, is_transposed ? EDDY_SHAPE(columns, rows) : EDDY_SHAPE(rows, columns), row->dtype,
        NULL));
    free(numbers);
    if (!is_transposed)
        return stored;
    eddy_tensor *made = must_tensor(eddy_t(stored));
    eddy_release(&stored);
    return made;
}

static void measure_gemm(const char *name, const gemm_row *row, int count) {
    uint32_t random = 1;
    operands of;
    of.x = matrix(row, row->m, row->k, row->is_a_transposed, &random);
    of.y = matrix(row, row->k, row->n, row->is_b_transposed, &random);
    measure(name, "us", 1e3, multiply, &of, count);
    eddy_release(&of.x);
    eddy_release(&of.y);
}

static void attend(void *work) {
    const operands *of = work;
    drop(eddy_sdpa(of->x, of->y, of->y, EDDY_NONE, EDDY_OPTIONS(sdpa, .is_causal = true)));
}

static void measure_attention(const char *row, int64_t tokens, int count) {
    eddy_shape shape = EDDY_SHAPE(8, 16, tokens, 64);
    operands of = {must_tensor(eddy_ones(shape, EDDY_BF16, NULL)),
                   must_tensor(eddy_ones(shape, EDDY_BF16, NULL))};
    measure(row, "us", 1e3, attend, &of, count);
    eddy_release(&of.x);
    eddy_release(&of.y);
}

/* False: there is no such row. */
static bool measure_row(const char *row, int count) {
    double bytes;
    long tokens;
    gemm_row gemm;
    if (!strcmp(row, "alloc_hit"))
        measure(row, "ns", 1, allocate, NULL, count);
    else if (sscanf(row, "h2d_%lf", &bytes) == 1 && bytes >= 1)
        measure_upload(row, (int64_t)bytes, count);
    else if (gemm_row_read(row, &gemm))
        measure_gemm(row, &gemm, count);
    else if (sscanf(row, "sdpa_bf16_%ld", &tokens) == 1 && tokens > 0)
        measure_attention(row, tokens, count);
    else
        return measure_op(row, count);
    return true;
}

/* ---- the device ---- */

/* The libraries are opened at the first product and the first convolution. */
static void use_libraries(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *few = must_tensor(
        eddy_ones(EDDY_SHAPE(1, 1, 8, 8), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_CUDA(0))));
    must_tensor(eddy_matmul(few, few));
    must_tensor(eddy_conv2d(few, few, EDDY_NONE, NULL));
    settle();
    eddy_scope_end(scope);
}

static int describe(void) {
    eddy_device_info info = {.size = sizeof(info)};
    if (eddy_device_describe(EDDY_CUDA(0), &info) != EDDY_OK || !bare_begin(0))
        must_fail();
    use_libraries();
    must(eddy_device_describe(EDDY_CUDA(0), &info));
    printf("device %s\ndriver of CUDA %d\nmemory %lld bytes\nmultiprocessors %d\nproducts "
           "%s\nconvolutions %s\n",
           info.name, bare_driver_version(), (long long)info.memory_bytes, info.processor_count,
           info.products, info.convolutions);
    bare_end();
    return 0;
}

int main(int argc, char **argv) {
    char row[64];
    int count = bench_sample_count(argc, argv, 2);
    if (argc < 2)
        return describe();
    for (const char *rows = argv[1]; timed_row_next(&rows, row);)
        if (!measure_row(row, count)) {
            fprintf(stderr, "cuda_measure: no such row: %s\n", row);
            return 2;
        }
    return 0;
}
