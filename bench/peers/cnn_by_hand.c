/* Peer of the cnn_* rows: the training step of the convolutional network of examples/network.c written by hand with BLAS products
 * and C loops, without a framework; a step allocates nothing. Layout is channels-last; a convolution's ReLU and pool are one loop.
 *
 * OMP_NUM_THREADS threads each take whole images, a group at a time. A group goes forward and at once backward, while its
 * windows are in cache; the weights' gradients are summed at the end. With one OpenMP thread and a threaded BLAS, the BLAS
 * divides the work instead, and gets all images at once. */
#include <bench/peers/by_hand.h>

#define SIDE 28
#define HALF (SIDE / 2)
#define QUARTER (SIDE / 4)
#define TAPS 9
#define CHANNELS1 32
#define CHANNELS2 64
#define WINDOW (TAPS * CHANNELS1)
#define FEATURES (QUARTER * QUARTER * CHANNELS2)
#define CLASSES 10

/* Mean and standard deviation of Fashion-MNIST's pixels, which are 0 to 255. */
#define PIXEL_MEAN 72.94f
#define PIXEL_DEVIATION 90.02f

/* Images that a thread takes at a time: their windows have to stay in its cache from the forward to the backward pass. */
#define GROUP 4

/* Value of a pool's `chosen`: no element is above 0. */
#define NONE 4

typedef struct network {
    real first[TAPS][CHANNELS1], first_bias[CHANNELS1];
    real second[WINDOW][CHANNELS2],
        second_bias[CHANNELS2]; /* a window: its taps, each with all channels */
    real last[CLASSES][FEATURES], last_bias[CLASSES];
} network;

#define PARAMETERS (sizeof(network) / sizeof(real))

/* Both with a border of zeros. */
typedef real padded_image[SIDE + 2][SIDE + 2];
typedef real padded_half[HALF + 2][HALF + 2][CHANNELS1];

/* A thread's memory, for each image of the group. `chosen`: which of the four elements a pool took, or NONE. */
typedef struct trace {
    padded_image *images;
    padded_half *pooled1, *dpooled1;
    int32_t (*chosen1)[HALF][HALF][CHANNELS1];
    real (*windows)[HALF * HALF][WINDOW];   /* backward: their gradient */
    real (*values2)[HALF][HALF][CHANNELS2]; /* backward: their gradient */
    real (*pooled2)[QUARTER][QUARTER][CHANNELS2], (*dpooled2)[QUARTER][QUARTER][CHANNELS2];
    int32_t (*chosen2)[QUARTER][QUARTER][CHANNELS2];
    real (*logits)[CLASSES];
} trace;

static int batch, group;
static uint8_t (*pixels)[SIDE][SIDE];
static int64_t *labels;
static network *values, *moment1, *moment2, *gradients[BY_HAND_THREADS_MAX];
static trace traces[BY_HAND_THREADS_MAX];
static by_hand_adam adam = {.rate = BENCH_ADAM_RATE, .beta1 = 0.9f, .beta2 = 0.999f};

/* ---- memory ---- */

static void make_trace(trace *t, size_t images) {
    *t = (trace){.images = by_hand_zeros(images * sizeof(*t->images)),
                 .pooled1 = by_hand_zeros(images * sizeof(*t->pooled1)),
                 .dpooled1 = by_hand_zeros(images * sizeof(*t->dpooled1)),
                 .chosen1 = by_hand_zeros(images * sizeof(*t->chosen1)),
                 .windows = by_hand_zeros(images * sizeof(*t->windows)),
                 .values2 = by_hand_zeros(images * sizeof(*t->values2)),
                 .pooled2 = by_hand_zeros(images * sizeof(*t->pooled2)),
                 .dpooled2 = by_hand_zeros(images * sizeof(*t->dpooled2)),
                 .chosen2 = by_hand_zeros(images * sizeof(*t->chosen2)),
                 .logits = by_hand_zeros(images * sizeof(*t->logits))};
}

static void make_weights(uint32_t *random) {
    /* Uniform, at most 1 / sqrt(inputs) in magnitude. */
    const double of_inputs[] = {TAPS, WINDOW, FEATURES};
    real *const arrays[][2] = {{values->first[0], values->first_bias},
                               {values->second[0], values->second_bias},
                               {values->last[0], values->last_bias}};
    const size_t outputs[] = {CHANNELS1, CHANNELS2, CLASSES};
    for (int l = 0; l < 3; l++) {
        double deviation = 1 / sqrt(3 * of_inputs[l]);
        by_hand_randomise(arrays[l][0], (size_t)of_inputs[l] * outputs[l], deviation, random);
        by_hand_randomise(arrays[l][1], outputs[l], deviation, random);
    }
}

static void make_network(int images) {
    uint32_t random = 1;
    batch = images;
    group = openblas_get_num_threads() > 1 || batch < GROUP ? batch : GROUP;
    pixels = by_hand_zeros((size_t)batch * sizeof(*pixels));
    labels = by_hand_zeros((size_t)batch * sizeof(*labels));
    uint8_t *bytes = (uint8_t *)pixels;
    for (size_t i = 0; i < (size_t)batch * sizeof(*pixels); i++)
        bytes[i] = (uint8_t)(bench_random(&random) % 256);
    for (int i = 0; i < batch; i++)
        labels[i] = bench_random(&random) % CLASSES;
    values = by_hand_zeros(sizeof(network));
    moment1 = by_hand_zeros(sizeof(network));
    moment2 = by_hand_zeros(sizeof(network));
    make_weights(&random);
    for (int t = 0; t < omp_get_max_threads(); t++) {
        gradients[t] = by_hand_zeros(sizeof(network));
        make_trace(&traces[t], (size_t)group);
    }
}

/* ---- the first convolution, its ReLU and pool ---- */

static void normalise(const uint8_t (*image)[SIDE], real (*padded)[SIDE + 2]) {
    for (int y = 0; y < SIDE; y++)
#pragma omp simd
        for (int x = 0; x < SIDE; x++)
            padded[y + 1][x + 1] = ((real)image[y][x] - PIXEL_MEAN) / PIXEL_DEVIATION;
}

/* The 4 x 4 pixels that the convolution windows of one pool's four elements cover. */
static void take_patch(const real (*image)[SIDE + 2], int y, int x, real patch[4][4]) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            patch[i][j] = image[2 * y + i][2 * x + j];
}

static void first_forward(const network *w, const real (*image)[SIDE + 2],
                          real (*restrict pooled)[HALF + 2][CHANNELS1],
                          int32_t (*restrict chosen)[HALF][CHANNELS1]) {
    for (int y = 0; y < HALF; y++)
        for (int x = 0; x < HALF; x++) {
            real patch[4][4];
            take_patch(image, y, x, patch);
#pragma omp simd
            for (int c = 0; c < CHANNELS1; c++) {
                real most = 0;
                int32_t place = NONE;
                for (int p = 0; p < 4; p++) {
                    real value = w->first_bias[c];
                    for (int k = 0; k < TAPS; k++)
                        value += patch[p / 2 + k / 3][p % 2 + k % 3] * w->first[k][c];
                    place = value > most ? p : place;
                    most = value > most ? value : most;
                }
                pooled[y + 1][x + 1][c] = most;
                chosen[y][x][c] = place;
            }
        }
}

static void first_back(const real (*image)[SIDE + 2], const real (*dpooled)[HALF + 2][CHANNELS1],
                       const int32_t (*chosen)[HALF][CHANNELS1], network *restrict dw) {
    for (int y = 0; y < HALF; y++)
        for (int x = 0; x < HALF; x++) {
            real patch[4][4];
            take_patch(image, y, x, patch);
#pragma omp simd
            for (int c = 0; c < CHANNELS1; c++) {
                real gradient = dpooled[y + 1][x + 1][c];
                int32_t place = chosen[y][x][c];
                dw->first_bias[c] += place == NONE ? 0 : gradient;
                for (int p = 0; p < 4; p++) {
                    real here = place == p ? gradient : 0;
                    for (int k = 0; k < TAPS; k++)
                        dw->first[k][c] += patch[p / 2 + k / 3][p % 2 + k % 3] * here;
                }
            }
        }
}

/* ---- the second ---- */

static void take_windows(const real (*padded)[HALF + 2][CHANNELS1],
                         real (*restrict windows)[WINDOW]) {
    for (int y = 0; y < HALF; y++)
        for (int x = 0; x < HALF; x++)
            for (int k = 0; k < 3; k++)
                memcpy(windows[y * HALF + x] + k * 3 * CHANNELS1, padded[y + k][x],
                       3 * CHANNELS1 * sizeof(real));
}

/* The gradient of take_windows: adds up the windows where they overlap. */
static void add_windows(const real (*windows)[WINDOW],
                        real (*restrict padded)[HALF + 2][CHANNELS1]) {
    memset(padded, 0, sizeof(padded_half));
    for (int y = 0; y < HALF; y++)
        for (int x = 0; x < HALF; x++)
            for (int k = 0; k < 3; k++) {
                const real *window = windows[y * HALF + x] + k * 3 * CHANNELS1;
                real *row = padded[y + k][x];
#pragma omp simd
                for (int i = 0; i < 3 * CHANNELS1; i++)
                    row[i] += window[i];
            }
}

/* Bias, ReLU and pool. */
static void second_pool(const real *restrict bias, const real (*restrict in)[HALF][CHANNELS2],
                        real (*restrict pooled)[QUARTER][CHANNELS2],
                        int32_t (*restrict chosen)[QUARTER][CHANNELS2]) {
    for (int y = 0; y < QUARTER; y++)
        for (int x = 0; x < QUARTER; x++)
#pragma omp simd
            for (int c = 0; c < CHANNELS2; c++) {
                real most = 0;
                int32_t place = NONE;
                for (int p = 0; p < 4; p++) {
                    real value = in[2 * y + p / 2][2 * x + p % 2][c] + bias[c];
                    place = value > most ? p : place;
                    most = value > most ? value : most;
                }
                pooled[y][x][c] = most;
                chosen[y][x][c] = place;
            }
}

static void second_pool_back(const real (*restrict dpooled)[QUARTER][CHANNELS2],
                             const int32_t (*restrict chosen)[QUARTER][CHANNELS2],
                             real (*restrict din)[HALF][CHANNELS2], real *restrict dbias) {
    for (int y = 0; y < QUARTER; y++)
        for (int x = 0; x < QUARTER; x++) {
#pragma omp simd
            for (int c = 0; c < CHANNELS2; c++)
                dbias[c] += chosen[y][x][c] == NONE ? 0 : dpooled[y][x][c];
            for (int p = 0; p < 4; p++)
#pragma omp simd
                for (int c = 0; c < CHANNELS2; c++)
                    din[2 * y + p / 2][2 * x + p % 2][c] =
                        chosen[y][x][c] == p ? dpooled[y][x][c] : 0;
        }
}

/* ---- the step ---- */

static void group_forward(trace *t, int first, int images) {
    for (int i = 0; i < images; i++) {
        normalise(pixels[first + i], t->images[i]);
        first_forward(values, t->images[i], t->pooled1[i], t->chosen1[i]);
        take_windows(t->pooled1[i], t->windows[i]);
    }
    by_hand_nn(images * HALF * HALF, CHANNELS2, WINDOW, 1, t->windows[0][0], WINDOW,
               values->second[0], CHANNELS2, 0, t->values2[0][0][0], CHANNELS2);
    for (int i = 0; i < images; i++)
        second_pool(values->second_bias, t->values2[i], t->pooled2[i], t->chosen2[i]);
    by_hand_nt(images, CLASSES, FEATURES, 1, t->pooled2[0][0][0], FEATURES, values->last[0],
               FEATURES, 0, t->logits[0], CLASSES);
}

/* Replaces the logits by their gradients. */
static double take_loss(trace *t, network *dw, int first, int images) {
    double loss = 0;
    for (int i = 0; i < images; i++) {
        for (int j = 0; j < CLASSES; j++)
            t->logits[i][j] += values->last_bias[j];
        loss +=
            by_hand_cross_entropy(t->logits[i], CLASSES, labels[first + i], (real)1 / (real)batch);
        for (int j = 0; j < CLASSES; j++)
            dw->last_bias[j] += t->logits[i][j];
    }
    return loss;
}

static void group_back(trace *t, network *dw, int images) {
    int places = images * HALF * HALF;
    by_hand_tn(CLASSES, FEATURES, images, 1, t->logits[0], CLASSES, t->pooled2[0][0][0], FEATURES,
               1, dw->last[0], FEATURES);
    by_hand_nn(images, FEATURES, CLASSES, 1, t->logits[0], CLASSES, values->last[0], FEATURES, 0,
               t->dpooled2[0][0][0], FEATURES);
    for (int i = 0; i < images; i++)
        second_pool_back(t->dpooled2[i], t->chosen2[i], t->values2[i], dw->second_bias);
    by_hand_tn(WINDOW, CHANNELS2, places, 1, t->windows[0][0], WINDOW, t->values2[0][0][0],
               CHANNELS2, 1, dw->second[0], CHANNELS2);
    by_hand_nt(places, WINDOW, CHANNELS2, 1, t->values2[0][0][0], CHANNELS2, values->second[0],
               CHANNELS2, 0, t->windows[0][0], WINDOW);
    for (int i = 0; i < images; i++) {
        add_windows(t->windows[i], t->dpooled1[i]);
        first_back(t->images[i], t->dpooled1[i], t->chosen1[i], dw);
    }
}

/* Computes each thread's gradients. Returns the loss. */
static double take_gradients(void) {
    double loss = 0;
#pragma omp parallel reduction(+ : loss)
    {
        trace *t = &traces[omp_get_thread_num()];
        network *dw = gradients[omp_get_thread_num()];
        memset(dw, 0, sizeof(*dw));
#pragma omp for schedule(static)
        for (int first = 0; first < batch; first += group) {
            int images = batch - first < group ? batch - first : group;
            group_forward(t, first, images);
            loss += take_loss(t, dw, first, images);
            group_back(t, dw, images);
        }
    }
    by_hand_collect((real **)gradients, omp_get_max_threads(), PARAMETERS);
    return loss / batch;
}

static double step(void) {
    double loss = take_gradients();
    by_hand_update(&adam, 1, (real *)values, (real *)gradients[0], (real *)moment1, (real *)moment2,
                   PARAMETERS);
    return loss;
}

static int check(void) {
    static const by_hand_span spans[] = {
        BY_HAND_SPAN(network, first),  BY_HAND_SPAN(network, first_bias),
        BY_HAND_SPAN(network, second), BY_HAND_SPAN(network, second_bias),
        BY_HAND_SPAN(network, last),   BY_HAND_SPAN(network, last_bias)};
    make_network(6);
    return by_hand_check(spans, sizeof(spans) / sizeof(*spans), (real *)values,
                         (real *)gradients[0], PARAMETERS, take_gradients);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int rows = 0;
    if (omp_get_max_threads() > BY_HAND_THREADS_MAX)
        omp_set_num_threads(BY_HAND_THREADS_MAX);
    if (!strcmp(row, "--check"))
        return check();
    if (sscanf(row, "cnn_b%d_", &rows) != 1 || rows < 1) {
        fprintf(stderr, "cnn_by_hand: no such row: %s\n", row);
        return 2;
    }
    make_network(rows);
    return by_hand_measure(row, bench_sample_count(argc, argv, 2), step);
}
