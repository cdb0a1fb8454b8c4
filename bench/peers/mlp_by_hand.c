/* Peer of the mlp_* rows: the training step written by hand with BLAS calls and C loops, without a framework; a step
 * allocates nothing. It is the lower bound that an eager runtime is compared with.
 *
 * OMP_NUM_THREADS threads share one step: the matrix products are cut into column panels, each a single-threaded BLAS
 * call. With one OpenMP thread and a threaded BLAS (OPENBLAS_NUM_THREADS), the BLAS divides the work instead.
 *
 * The gradients are stored in memory, as in a framework; the update reads them. */
#include <bench/sample.h>
#include <bench/shapes.h>
#include <cblas.h>
#include <math.h>
#include <omp.h>

#define LAYERS 3
#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

static const int widths[LAYERS + 1] = {BENCH_MLP_INPUTS, BENCH_MLP_HIDDEN1, BENCH_MLP_HIDDEN2,
                                       BENCH_MLP_CLASSES};

static struct {
    float *weight, *bias;                   /* [out, in], [out] */
    float *weight_gradient, *bias_gradient; /* the same */
    float *weight_m, *weight_v, *bias_m, *bias_v;
    float *output;   /* [batch, out], after ReLU except in the last layer */
    float *gradient; /* [batch, out]: of the layer's value before ReLU */
} layers[LAYERS];

static int batch;
static float *images;
static int64_t *labels;
static float row_losses[1024];
static int adam_step;

static float *floats(size_t count, uint32_t *random, float scale) {
    float *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (!memory)
        exit(1);
    for (size_t i = 0; i < count; i++)
        memory[i] = random ? bench_random_float(random, scale) : 0.0f;
    return memory;
}

static void make_network(int rows) {
    uint32_t random = 1;
    batch = rows;
    images = floats((size_t)batch * widths[0], &random, 1.0f);
    labels = calloc((size_t)batch, sizeof(int64_t));
    if (!labels)
        exit(1);
    for (int i = 0; i < batch; i++)
        labels[i] = bench_random(&random) % BENCH_MLP_CLASSES;
    for (int l = 0; l < LAYERS; l++) {
        size_t in = (size_t)widths[l], out = (size_t)widths[l + 1];
        layers[l].weight = floats(in * out, &random, 1.0f / sqrtf((float)in));
        layers[l].bias = floats(out, NULL, 0);
        layers[l].weight_gradient = floats(in * out, NULL, 0);
        layers[l].bias_gradient = floats(out, NULL, 0);
        layers[l].weight_m = floats(in * out, NULL, 0);
        layers[l].weight_v = floats(in * out, NULL, 0);
        layers[l].bias_m = floats(out, NULL, 0);
        layers[l].bias_v = floats(out, NULL, 0);
        layers[l].output = floats((size_t)batch * out, NULL, 0);
        layers[l].gradient = floats((size_t)batch * out, NULL, 0);
    }
}

static const float *layer_input(int l) {
    return l ? layers[l - 1].output : images;
}

/* This thread's part [*begin, *end) of `count` columns or rows, in multiples of 16 if each thread gets that many. */
static void part(int count, int *begin, int *end) {
    int threads = omp_get_num_threads(), thread = omp_get_thread_num();
    int unit = count >= 16 * threads ? 16 : 1, units = (count + unit - 1) / unit;
    *begin = units * thread / threads * unit;
    *end = units * (thread + 1) / threads * unit;
    if (*end > count)
        *end = count;
}

static void forward(int l) {
    int in = widths[l], out = widths[l + 1], begin, end;
    part(out, &begin, &end);
    if (begin >= end)
        return;
    float *output = layers[l].output;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch, end - begin, in, 1.0f,
                layer_input(l), in, layers[l].weight + (size_t)begin * in, in, 0.0f, output + begin,
                out);
    for (int i = 0; i < batch; i++) {
        float *row = output + (size_t)i * out;
        for (int j = begin; j < end; j++) {
            float value = row[j] + layers[l].bias[j];
            row[j] = l < LAYERS - 1 && value < 0.0f ? 0.0f : value;
        }
    }
}

/* Softmax, cross-entropy and its gradient, for this thread's rows. */
static void loss_and_gradient(void) {
    int begin, end, classes = BENCH_MLP_CLASSES;
    part(batch, &begin, &end);
    for (int i = begin; i < end; i++) {
        const float *logits = layers[LAYERS - 1].output + (size_t)i * classes;
        float *gradient = layers[LAYERS - 1].gradient + (size_t)i * classes;
        float most = logits[0], sum = 0.0f;
        for (int j = 1; j < classes; j++)
            most = logits[j] > most ? logits[j] : most;
        for (int j = 0; j < classes; j++)
            sum += gradient[j] = expf(logits[j] - most);
        for (int j = 0; j < classes; j++)
            gradient[j] /= sum * (float)batch;
        gradient[labels[i]] -= 1.0f / (float)batch;
        row_losses[i] = logf(sum) + most - logits[labels[i]];
    }
}

/* Gradient of the layer's weights and bias, for this thread's columns of the input. */
static void parameter_gradients(int l) {
    int in = widths[l], out = widths[l + 1], begin, end;
    part(in, &begin, &end);
    if (begin < end)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, end - begin, batch, 1.0f,
                    layers[l].gradient, out, layer_input(l) + begin, in, 0.0f,
                    layers[l].weight_gradient + begin, in);
    part(out, &begin, &end);
    for (int j = begin; j < end; j++)
        layers[l].bias_gradient[j] = 0.0f;
    for (int i = 0; i < batch; i++)
        for (int j = begin; j < end; j++)
            layers[l].bias_gradient[j] += layers[l].gradient[(size_t)i * out + j];
}

/* Gradient of the previous layer's value before ReLU, for this thread's columns. */
static void input_gradient(int l) {
    int in = widths[l], out = widths[l + 1], begin, end;
    part(in, &begin, &end);
    if (begin >= end)
        return;
    float *gradient = layers[l - 1].gradient;
    const float *output = layers[l - 1].output;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, end - begin, out, 1.0f,
                layers[l].gradient, out, layers[l].weight + begin, in, 0.0f, gradient + begin, in);
    for (int i = 0; i < batch; i++)
        for (int j = begin; j < end; j++)
            if (output[(size_t)i * in + j] <= 0.0f)
                gradient[(size_t)i * in + j] = 0.0f;
}

static void sgd(float *restrict values, const float *restrict gradient, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] -= BENCH_MLP_RATE * gradient[i];
}

static void adam(float *restrict values, const float *restrict gradient, float *restrict m,
                 float *restrict v, size_t count) {
    float correction1 = 1.0f - powf(ADAM_BETA1, (float)adam_step);
    float correction2 = sqrtf(1.0f - powf(ADAM_BETA2, (float)adam_step));
    float rate = BENCH_ADAM_RATE / correction1;
    for (size_t i = 0; i < count; i++) {
        m[i] = ADAM_BETA1 * m[i] + (1.0f - ADAM_BETA1) * gradient[i];
        v[i] = ADAM_BETA2 * v[i] + (1.0f - ADAM_BETA2) * gradient[i] * gradient[i];
        values[i] -= rate * m[i] / (sqrtf(v[i]) / correction2 + ADAM_EPSILON);
    }
}

static void update(int l, int with_adam) {
    int count = widths[l] * widths[l + 1], begin, end;
    part(count, &begin, &end);
    size_t first = (size_t)begin, length = (size_t)(end - begin);
    if (with_adam)
        adam(layers[l].weight + first, layers[l].weight_gradient + first,
             layers[l].weight_m + first, layers[l].weight_v + first, length);
    else
        sgd(layers[l].weight + first, layers[l].weight_gradient + first, length);
    part(widths[l + 1], &begin, &end);
    first = (size_t)begin, length = (size_t)(end - begin);
    if (with_adam)
        adam(layers[l].bias + first, layers[l].bias_gradient + first, layers[l].bias_m + first,
             layers[l].bias_v + first, length);
    else
        sgd(layers[l].bias + first, layers[l].bias_gradient + first, length);
}

static float step(int with_adam) {
    adam_step += with_adam;
#pragma omp parallel
    {
        for (int l = 0; l < LAYERS; l++) {
            forward(l);
#pragma omp barrier
        }
        loss_and_gradient();
#pragma omp barrier
        for (int l = LAYERS - 1; l >= 0; l--) {
            parameter_gradients(l);
            if (l)
                input_gradient(l);
#pragma omp barrier
        }
        for (int l = 0; l < LAYERS; l++)
            update(l, with_adam);
    }
    float loss = 0.0f;
    for (int i = 0; i < batch; i++)
        loss += row_losses[i];
    return loss / (float)batch;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    int with_adam = !strncmp(row, "mlp_adam_", 9), rows = 0;
    if (sscanf(row, with_adam ? "mlp_adam_b%d_" : "mlp_b%d_", &rows) != 1 || rows < 1 ||
        rows > 1024) {
        fprintf(stderr, "mlp_by_hand: no such row: %s\n", row);
        return 2;
    }
    make_network(rows);
    bench_samples samples = {.count = 0};
    int steps = 6400 / rows;
    for (int i = -2; i < count; i++) {
        float loss = 0.0f;
        double begin = bench_now_ns();
        for (int s = 0; s < steps; s++)
            loss = step(with_adam);
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / steps / 1e6);
        if (!isfinite(loss)) {
            fprintf(stderr, "mlp_by_hand: the loss is not finite\n");
            return 1;
        }
    }
    char version[256];
    snprintf(version, sizeof(version), "gcc %s, %d OpenMP threads, %s", __VERSION__,
             omp_get_max_threads(), openblas_get_config());
    bench_print_row(row, "ms", version, NULL, &samples);
    return 0;
}
