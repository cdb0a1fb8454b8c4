/* The rows cuda_* as the driver and cuBLASLt do them when they are called directly: cuda_bare ROW[,ROW...] [samples]
 *
 *   end_to_end_add16, issue_read      a launch of a kernel that does nothing; one and 4 bytes back, waited for
 *   h2d_<bytes>                       a copy to the device from pinned memory
 *   op_<name>_<size>_1t               a copy on the device that reads and writes as many bytes as the op
 *   gemm_<shape>_<dtype>              cublasLtMatmul */
#include <bench/cuda/bare.h>
#include <bench/cuda/blas.h>
#include <bench/cuda/timed.h>
#include <bench/op_bytes.h>
#include <bench/ops.h>

typedef struct copy {
    eddy_cu_address from, to;
    void *here;
    size_t bytes;
} copy;

static char version[64];

static void measure(const char *row, const char *unit, double unit_ns, void (*call)(void *),
                    void *work, int count) {
    const timed_calls calls = {call, bare_settle, work, TIMED_LONG_NS};
    bench_samples samples;
    timed_calls_measure(&calls, unit_ns, count, &samples);
    bench_print_row(row, unit, version, NULL, &samples);
}

/* ---- launches ---- */

static void launch(void *work) {
    (void)work;
    bare_launch();
}

static void launch_and_read(void *work) {
    const copy *of = work;
    bare_launch();
    bare_copy_to_host(of->here, of->from, of->bytes);
    bare_settle();
}

static void measure_read(const char *row, int count) {
    float value = 0;
    copy of = {.from = bare_memory_of(&value, sizeof(value)),
               .here = bare_host_acquire(sizeof(value)),
               .bytes = sizeof(value)};
    measure(row, "ns", 1, launch_and_read, &of, count);
    bare_host_release(of.here);
    bare_memory_release(of.from);
}

/* ---- copies ---- */

static void upload(void *work) {
    const copy *of = work;
    bare_copy_to_device(of->to, of->here, of->bytes);
}

static void measure_upload(const char *row, size_t bytes, int count) {
    copy of = {.here = bare_host_acquire(bytes), .to = bare_memory_acquire(bytes), .bytes = bytes};
    memset(of.here, 1, bytes);
    measure(row, "ms", 1e6, upload, &of, count);
    bare_memory_release(of.to);
    bare_host_release(of.here);
}

static void copy_there(void *work) {
    const copy *of = work;
    bare_copy_on_device(of->to, of->from, of->bytes);
}

/* An op whose bytes are not counted has no such row. */
static void measure_copy(const bench_op_row *asked, int count) {
    size_t moved = bench_op_bytes_of(asked->op) * (size_t)asked->n;
    if (moved == 0)
        return;
    copy of = {.from = bare_memory_acquire(moved / 2),
               .to = bare_memory_acquire(moved / 2),
               .bytes = moved / 2};
    const timed_calls calls = {copy_there, bare_settle, &of, TIMED_SHORT_NS};
    bench_samples samples;
    timed_calls_measure(&calls, 1e3, count, &samples);
    bench_print_op(asked->row, version, NULL, (double)moved, &samples);
    bare_memory_release(of.from);
    bare_memory_release(of.to);
}

/* ---- products ---- */

static void multiply(void *work) {
    blas_gemm_multiply(work);
}

static void measure_gemm(const char *row, const gemm_row *of, int count) {
    blas_gemm gemm;
    bench_samples samples;
    char library[64];
    blas_gemm_init(&gemm, of);
    const timed_calls calls = {multiply, bare_settle, &gemm, TIMED_LONG_NS};
    timed_calls_measure(&calls, 1e3, count, &samples);
    snprintf(library, sizeof(library), "cuBLASLt %d", blas_version());
    bench_print_row(row, "us", library, NULL, &samples);
    blas_gemm_fini(&gemm);
}

/* False: there is no such row. */
static bool measure_row(const char *row, int count) {
    double bytes;
    gemm_row gemm;
    bench_op_row op;
    if (!strcmp(row, "end_to_end_add16"))
        measure(row, "ns", 1, launch, NULL, count);
    else if (!strcmp(row, "issue_read"))
        measure_read(row, count);
    else if (sscanf(row, "h2d_%lf", &bytes) == 1 && bytes >= 1)
        measure_upload(row, (size_t)bytes, count);
    else if (gemm_row_read(row, &gemm))
        measure_gemm(row, &gemm, count);
    else if (bench_op_row_next(&(const char *){row}, &op) && op.n > 0)
        measure_copy(&op, count);
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    char row[64];
    int count = bench_sample_count(argc, argv, 2);
    if (!bare_begin(0))
        return 1;
    snprintf(version, sizeof(version), "driver of CUDA %d", bare_driver_version());
    for (const char *rows = argc > 1 ? argv[1] : ""; timed_row_next(&rows, row);)
        if (!measure_row(row, count)) {
            fprintf(stderr, "cuda_bare: no such row: %s\n", row);
            return 2;
        }
    bare_end();
    return 0;
}
