/* Shared by the hand-written training steps (cnn_by_hand.c, transformer_by_hand.c): memory, products, the loss, the sum of the
 * threads' gradients, Adam, measuring, and a check of the gradients.
 *
 * A program keeps its parameters in one struct of arrays. Gradients and moments are structs of the same type, and loops
 * over all parameters treat such a struct as one array. Each thread has its own gradients, of its part of the batch.
 *
 * With -DBY_HAND_DOUBLE everything is in double, and `program --check` compares gradients with finite differences of the loss. */
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

#include <bench/sample.h>
#include <bench/shapes.h>
#include <cblas.h>
#include <omp.h>
#include <tgmath.h>

#ifdef BY_HAND_DOUBLE
typedef double real;
#define BY_HAND_GEMM cblas_dgemm
#else
typedef float real;
#define BY_HAND_GEMM cblas_sgemm
#ifdef __x86_64__
/* glibc has a vector expf, but declares it only under -ffast-math, which would also flush subnormals to zero. */
__attribute__((simd("notinbranch"))) float expf(float);
#endif
#endif

#define BY_HAND_THREADS_MAX 64
/* Parameters that one thread takes at a time. */
#define BY_HAND_CHUNK 4096

static inline void *by_hand_zeros(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    if (!memory)
        exit(1);
    return memset(memory, 0, bytes);
}

/* Uniform with mean 0 and the given standard deviation. */
static inline void by_hand_randomise(real *values, size_t count, double deviation,
                                     uint32_t *random) {
    for (size_t i = 0; i < count; i++)
        values[i] = bench_random_float(random, 1.0f) * (real)(deviation * 1.7320508075688772);
}

/* ---- products: c[m, n] = alpha op(a) op(b) + beta c; a_row, b_row, c_row: length of a stored row ---- */

/* a[m, k], b[k, n] */
static inline void by_hand_nn(int m, int n, int k, real alpha, const real *a, int a_row,
                              const real *b, int b_row, real beta, real *c, int c_row) {
    BY_HAND_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, a_row, b, b_row,
                 beta, c, c_row);
}

/* a[m, k], b[n, k] */
static inline void by_hand_nt(int m, int n, int k, real alpha, const real *a, int a_row,
                              const real *b, int b_row, real beta, real *c, int c_row) {
    BY_HAND_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, alpha, a, a_row, b, b_row, beta,
                 c, c_row);
}

/* a[k, m], b[k, n] */
static inline void by_hand_tn(int m, int n, int k, real alpha, const real *a, int a_row,
                              const real *b, int b_row, real beta, real *c, int c_row) {
    BY_HAND_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, alpha, a, a_row, b, b_row, beta,
                 c, c_row);
}

/* ---- the loss ---- */

/* Softmax in place; *most and *sum are the largest element and the sum of e^(x - *most). */
static inline void by_hand_softmax(real *row, int count, real *most, real *sum) {
    real greatest = row[0], total = 0;
#pragma omp simd reduction(max : greatest)
    for (int j = 1; j < count; j++)
        greatest = row[j] > greatest ? row[j] : greatest;
#pragma omp simd reduction(+ : total)
    for (int j = 0; j < count; j++) {
        row[j] = exp(row[j] - greatest);
        total += row[j];
    }
    real factor = 1 / total;
#pragma omp simd
    for (int j = 0; j < count; j++)
        row[j] *= factor;
    *most = greatest;
    *sum = total;
}

/* Cross-entropy of a row of logits. Replaces the logits by their gradient times `share`. */
static inline real by_hand_cross_entropy(real *logits, int classes, int64_t label, real share) {
    real right = logits[label], most, sum;
    by_hand_softmax(logits, classes, &most, &sum);
    logits[label] -= 1;
#pragma omp simd
    for (int j = 0; j < classes; j++)
        logits[j] *= share;
    return log(sum) + most - right;
}

/* ---- the update ---- */

/* Adds all threads' gradients to the first thread's. Returns the sum of squares of the result. */
static inline double by_hand_collect(real *const *gradients, int threads, size_t count) {
    double squares = 0;
#pragma omp parallel for reduction(+ : squares) schedule(static)
    for (size_t begin = 0; begin < count; begin += BY_HAND_CHUNK) {
        size_t end = begin + BY_HAND_CHUNK < count ? begin + BY_HAND_CHUNK : count;
        real *restrict sum = gradients[0];
        for (int t = 1; t < threads; t++) {
            const real *restrict other = gradients[t];
#pragma omp simd
            for (size_t i = begin; i < end; i++)
                sum[i] += other[i];
        }
        real part = 0;
#pragma omp simd reduction(+ : part)
        for (size_t i = begin; i < end; i++)
            part += sum[i] * sum[i];
        squares += part;
    }
    return squares;
}

typedef struct by_hand_adam {
    real rate, beta1, beta2, decay;
    int step;
} by_hand_adam;

/* A step of AdamW with gradients times `scale`. */
static inline void by_hand_update(by_hand_adam *adam, real scale, real *restrict values,
                                  const real *restrict gradients, real *restrict m,
                                  real *restrict v, size_t count) {
    adam->step++;
    real beta1 = adam->beta1, beta2 = adam->beta2, kept = 1 - adam->rate * adam->decay,
         epsilon = 1e-8f;
    real rate = adam->rate / (1 - pow(beta1, (real)adam->step));
    real correction = 1 / sqrt(1 - pow(beta2, (real)adam->step));
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < count; i++) {
        real gradient = scale * gradients[i];
        m[i] = beta1 * m[i] + (1 - beta1) * gradient;
        v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
        values[i] = kept * values[i] - rate * m[i] / (sqrt(v[i]) * correction + epsilon);
    }
}

/* ---- measuring ---- */

/* Prints the row; a sample is BENCH_TRAINING_STEPS calls of `step`, which returns the loss. Returns the exit status. */
static inline int by_hand_measure(const char *row, int count, double (*step)(void)) {
    bench_samples samples = {.count = 0};
    for (int i = -1; i < count; i++) {
        double loss = 0, begin = bench_now_ns();
        for (int s = 0; s < BENCH_TRAINING_STEPS; s++)
            loss = step();
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / BENCH_TRAINING_STEPS / 1e6);
        if (!isfinite(loss)) {
            fprintf(stderr, "%s by hand: the loss is not finite\n", row);
            return 1;
        }
    }
    char version[256];
    snprintf(version, sizeof(version), "gcc %s, %d OpenMP threads, %s", __VERSION__,
             omp_get_max_threads(), openblas_get_config());
    bench_print_row(row, "ms", version, NULL, &samples);
    return 0;
}

/* ---- the check ---- */

/* One parameter array: elements [begin, begin + count) of the struct as one array. */
typedef struct by_hand_span {
    const char *name;
    size_t begin, count;
} by_hand_span;

#define BY_HAND_SPAN(type, member)                                                                 \
    { #member, offsetof(type, member) / sizeof(real), sizeof(((type *)0)->member) / sizeof(real) }

#define BY_HAND_CHECKED 24
#define BY_HAND_MOVE 1e-5
#define BY_HAND_BOUND 1e-5

/* Compares elements of each span's gradient with central differences of the loss, relative to the span's largest gradient.
 * `take`: writes the gradient at `values` to `gradient` and returns the loss. Returns the exit status. */
static inline int by_hand_check(const by_hand_span *spans, int span_count, real *values,
                                const real *gradient, size_t count, double (*take)(void)) {
    if (sizeof(real) != sizeof(double)) {
        fprintf(stderr, "--check needs a build with -DBY_HAND_DOUBLE\n");
        return 2;
    }
    real *found = by_hand_zeros(count * sizeof(real));
    double loss = take(), worst = 0;
    memcpy(found, gradient, count * sizeof(real));
    uint32_t random = 7;
    for (int s = 0; s < span_count; s++) {
        double greatest = 0, error = 0;
        for (size_t i = 0; i < spans[s].count; i++)
            greatest = fmax(greatest, fabs((double)found[spans[s].begin + i]));
        for (int n = 0; n < BY_HAND_CHECKED; n++) {
            size_t i = spans[s].begin + bench_random(&random) % spans[s].count;
            real value = values[i];
            values[i] = value + (real)BY_HAND_MOVE;
            double above = take();
            values[i] = value - (real)BY_HAND_MOVE;
            double below = take();
            values[i] = value;
            error = fmax(error,
                         fabs((above - below) / (2 * BY_HAND_MOVE) - (double)found[i]) / greatest);
        }
        printf("%-32s greatest %.3e, error %.1e of it\n", spans[s].name, greatest, error);
        worst = isnan(error) ? error : fmax(worst, error);
        if (isnan(worst))
            break;
    }
    free(found);
    printf("loss %.6f, worst %.1e, bound %.0e\n", loss, worst, BY_HAND_BOUND);
    return worst <= BY_HAND_BOUND ? 0 : 1;
}

#endif
