/* Peer of the transformer_* rows: the training step of examples/transformer.c written by hand with BLAS products and C loops,
 * without a framework; a step allocates nothing.
 *
 * OMP_NUM_THREADS threads each take whole sequences ("sentences"), a group at a time. A group goes forward and at once backward,
 * while its activations are in cache; the weights' gradients are summed at the end. With one OpenMP thread and a threaded BLAS,
 * the BLAS divides the work instead, and gets all sequences at once. */
#include <bench/peers/by_hand.h>
#include <float.h>

#define VOCABULARY BENCH_TRANSFORMER_VOCABULARY
#define WIDTH BENCH_TRANSFORMER_WIDTH
#define LAYERS BENCH_TRANSFORMER_LAYERS
#define HEADS BENCH_TRANSFORMER_HEADS
#define HIDDEN BENCH_TRANSFORMER_HIDDEN
#define SEQUENCE BENCH_TRANSFORMER_SEQUENCE
#define HEAD (WIDTH / HEADS)
#define HALF (HEAD / 2)

/* Sentences that a thread takes at a time. */
#define GROUP 2
/* Queries per product with the keys. Keys after the block's last query are left out, since attention is causal. */
#define BLOCK 64

#define NORM_EPSILON FLT_EPSILON
#define GRADIENT_NORM_MAX 1.0

typedef struct layer {
    real attention_norm[WIDTH];
    real query_key_value[3 * WIDTH][WIDTH];
    real attention_output[WIDTH][WIDTH];
    real swiglu_norm[WIDTH];
    real gate_up[2 * HIDDEN][WIDTH];
    real down[WIDTH][HIDDEN];
} layer;

typedef struct network {
    real embedding[VOCABULARY][WIDTH];
    layer layers[LAYERS];
    real norm[WIDTH];
    real output[VOCABULARY][WIDTH];
} network;

#define PARAMETERS (sizeof(network) / sizeof(real))

/* What a layer's backward pass needs. A row is one character of one of the group's sentences. */
typedef struct layer_trace {
    real (*x)[WIDTH], (*normed)[WIDTH];
    real (*mixed)[3 * WIDTH]; /* query, key, value; the first two are rotated */
    real (*shares)[SEQUENCE]
                  [SEQUENCE]; /* for each sentence and head: attention weights of the values */
    real (*seen)[WIDTH];      /* the output of attention */
    real (*middle)[WIDTH], (*middle_normed)[WIDTH];
    real (*gate_up)[2 * HIDDEN], (*inner)[HIDDEN];
} layer_trace;

/* A thread's memory. */
typedef struct trace {
    layer_trace layers[LAYERS];
    real (*x)[WIDTH], (*normed)[WIDTH]; /* before and after the last norm */
    real (*logits)[VOCABULARY];
    real (*dx)[WIDTH], (*narrow)[WIDTH], (*wide)[3 * WIDTH], (*dinner)[HIDDEN];
    real (*dshares)[SEQUENCE];
} trace;

static int batch, group;
static int64_t *numbers; /* [batch, SEQUENCE + 1] */
static network *values, *moment1, *moment2, *gradients[BY_HAND_THREADS_MAX];
static trace traces[BY_HAND_THREADS_MAX];
static real cosines[SEQUENCE][HALF], sines[SEQUENCE][HALF];
static by_hand_adam adam = {.rate = BENCH_ADAM_RATE, .beta1 = 0.9f, .beta2 = 0.99f, .decay = 0.1f};

/* ---- memory ---- */

static void make_trace(trace *t, size_t rows) {
    for (int l = 0; l < LAYERS; l++)
        t->layers[l] =
            (layer_trace){.x = by_hand_zeros(rows * sizeof(*t->x)),
                          .normed = by_hand_zeros(rows * sizeof(*t->normed)),
                          .mixed = by_hand_zeros(rows * sizeof(*t->wide)),
                          .shares = by_hand_zeros(rows * HEADS * SEQUENCE * sizeof(real)),
                          .seen = by_hand_zeros(rows * sizeof(*t->x)),
                          .middle = by_hand_zeros(rows * sizeof(*t->x)),
                          .middle_normed = by_hand_zeros(rows * sizeof(*t->x)),
                          .gate_up = by_hand_zeros(rows * 2 * HIDDEN * sizeof(real)),
                          .inner = by_hand_zeros(rows * HIDDEN * sizeof(real))};
    t->x = by_hand_zeros(rows * sizeof(*t->x));
    t->normed = by_hand_zeros(rows * sizeof(*t->normed));
    t->logits = by_hand_zeros(rows * sizeof(*t->logits));
    t->dx = by_hand_zeros(rows * sizeof(*t->dx));
    t->narrow = by_hand_zeros(rows * sizeof(*t->narrow));
    t->wide = by_hand_zeros(rows * sizeof(*t->wide));
    t->dinner = by_hand_zeros(rows * sizeof(*t->dinner));
    t->dshares = by_hand_zeros(SEQUENCE * SEQUENCE * sizeof(real));
}

static void make_weights(uint32_t *random) {
    by_hand_randomise((real *)values, PARAMETERS, 0.02, random);
    /* Weights whose products are added to the residual stream start smaller with more layers. */
    double residual = 0.02 / sqrt(2.0 * LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        layer *w = &values->layers[l];
        for (int j = 0; j < WIDTH; j++)
            w->attention_norm[j] = w->swiglu_norm[j] = 1;
        by_hand_randomise((real *)w->attention_output, WIDTH * WIDTH, residual, random);
        by_hand_randomise((real *)w->down, WIDTH * HIDDEN, residual, random);
    }
    for (int j = 0; j < WIDTH; j++)
        values->norm[j] = 1;
}

static void make_network(int sentences) {
    uint32_t random = 1;
    batch = sentences;
    group = openblas_get_num_threads() > 1 || batch < GROUP ? batch : GROUP;
    size_t count = (size_t)batch * (SEQUENCE + 1);
    numbers = by_hand_zeros(count * sizeof(*numbers));
    for (size_t i = 0; i < count; i++)
        numbers[i] = bench_random(&random) % VOCABULARY;
    for (int s = 0; s < SEQUENCE; s++)
        for (int i = 0; i < HALF; i++) {
            double angle = s * pow(10000.0, -(double)i / HALF);
            cosines[s][i] = (real)cos(angle);
            sines[s][i] = (real)sin(angle);
        }
    values = by_hand_zeros(sizeof(network));
    moment1 = by_hand_zeros(sizeof(network));
    moment2 = by_hand_zeros(sizeof(network));
    make_weights(&random);
    for (int t = 0; t < omp_get_max_threads(); t++) {
        gradients[t] = by_hand_zeros(sizeof(network));
        make_trace(&traces[t], (size_t)group * SEQUENCE);
    }
}

/* ---- norms ---- */

static real inverse_norm(const real *x) {
    real squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int j = 0; j < WIDTH; j++)
        squares += x[j] * x[j];
    return 1 / sqrt(squares / WIDTH + NORM_EPSILON);
}

static void norm_rows(int rows, const real (*x)[WIDTH], const real *restrict weight,
                      real (*restrict normed)[WIDTH]) {
    for (int r = 0; r < rows; r++) {
        real inverse = inverse_norm(x[r]);
#pragma omp simd
        for (int j = 0; j < WIDTH; j++)
            normed[r][j] = x[r][j] * inverse * weight[j];
    }
}

/* Adds to dx, or overwrites it if `is_first`. */
static void norm_rows_back(int rows, const real (*x)[WIDTH], const real *restrict weight,
                           const real (*dnormed)[WIDTH], real (*restrict dx)[WIDTH],
                           real *restrict dweight, int is_first) {
    for (int r = 0; r < rows; r++) {
        real inverse = inverse_norm(x[r]), dot = 0, kept = is_first ? 0 : 1;
#pragma omp simd reduction(+ : dot)
        for (int j = 0; j < WIDTH; j++)
            dot += x[r][j] * dnormed[r][j] * weight[j];
        dot *= inverse * inverse / WIDTH;
#pragma omp simd
        for (int j = 0; j < WIDTH; j++) {
            dweight[j] += dnormed[r][j] * x[r][j] * inverse;
            dx[r][j] = kept * dx[r][j] + inverse * (dnormed[r][j] * weight[j] - x[r][j] * dot);
        }
    }
}

/* ---- attention ---- */

/* Rotates queries and keys by their positions (RoPE), or back (direction -1). */
static void turn_rows(int rows, real (*mixed)[3 * WIDTH], real direction) {
    for (int r = 0; r < rows; r++) {
        const real *c = cosines[r % SEQUENCE], *s = sines[r % SEQUENCE];
        for (int h = 0; h < 2 * HEADS; h++) {
            real *low = mixed[r] + h * HEAD, *high = low + HALF;
#pragma omp simd
            for (int i = 0; i < HALF; i++) {
                real a = low[i], b = high[i];
                low[i] = a * c[i] - direction * b * s[i];
                high[i] = b * c[i] + direction * a * s[i];
            }
        }
    }
}

static void attend(const real *query, const real *key, const real *value, real (*shares)[SEQUENCE],
                   real *seen) {
    const real scale = 1 / sqrt((real)HEAD);
    for (int begin = 0; begin < SEQUENCE; begin += BLOCK) {
        int end = begin + BLOCK;
        by_hand_nt(BLOCK, end, HEAD, scale, query + (size_t)begin * 3 * WIDTH, 3 * WIDTH, key,
                   3 * WIDTH, 0, shares[begin], SEQUENCE);
        for (int i = begin; i < end; i++) {
            real most, sum;
            by_hand_softmax(shares[i], i + 1, &most, &sum);
            for (int j = i + 1; j < end; j++)
                shares[i][j] = 0;
        }
        by_hand_nn(BLOCK, HEAD, end, 1, shares[begin], SEQUENCE, value, 3 * WIDTH, 0,
                   seen + (size_t)begin * WIDTH, WIDTH);
    }
}

/* Overwrites dquery, dkey and dvalue. `dshares` is scratch memory. */
static void attend_back(const real *query, const real *key, const real *value,
                        const real (*shares)[SEQUENCE], const real *dseen,
                        real (*restrict dshares)[SEQUENCE], real *dquery, real *dkey,
                        real *dvalue) {
    const real scale = 1 / sqrt((real)HEAD);
    const int row = 3 * WIDTH;
    for (int begin = 0; begin < SEQUENCE; begin += BLOCK) {
        int end = begin + BLOCK;
        by_hand_nt(BLOCK, end, HEAD, 1, dseen + (size_t)begin * WIDTH, WIDTH, value, row, 0,
                   dshares[begin], SEQUENCE);
        for (int i = begin; i < end; i++) {
            real dot = 0;
#pragma omp simd reduction(+ : dot)
            for (int j = 0; j < end; j++)
                dot += shares[i][j] * dshares[i][j];
#pragma omp simd
            for (int j = 0; j < end; j++)
                dshares[i][j] = shares[i][j] * (dshares[i][j] - dot);
        }
        by_hand_nn(BLOCK, HEAD, end, scale, dshares[begin], SEQUENCE, key, row, 0,
                   dquery + (size_t)begin * row, row);
    }
    /* Only queries at or after a key's position use the key and its value. */
    for (int begin = 0; begin < SEQUENCE; begin += BLOCK) {
        size_t at = (size_t)begin;
        by_hand_tn(BLOCK, HEAD, SEQUENCE - begin, scale, dshares[begin] + at, SEQUENCE,
                   query + at * row, row, 0, dkey + at * row, row);
        by_hand_tn(BLOCK, HEAD, SEQUENCE - begin, 1, shares[begin] + at, SEQUENCE,
                   dseen + at * WIDTH, WIDTH, 0, dvalue + at * row, row);
    }
}

/* ---- layers ---- */

static void silu_rows(int rows, const real (*gate_up)[2 * HIDDEN], real (*restrict inner)[HIDDEN]) {
    for (int r = 0; r < rows; r++)
#pragma omp simd
        for (int j = 0; j < HIDDEN; j++)
            inner[r][j] = gate_up[r][j] / (1 + exp(-gate_up[r][j])) * gate_up[r][HIDDEN + j];
}

/* Replaces gate and up by their gradients. */
static void silu_rows_back(int rows, real (*restrict gate_up)[2 * HIDDEN],
                           const real (*dinner)[HIDDEN]) {
    for (int r = 0; r < rows; r++)
#pragma omp simd
        for (int j = 0; j < HIDDEN; j++) {
            real gate = gate_up[r][j], up = gate_up[r][HIDDEN + j];
            real sigmoid = 1 / (1 + exp(-gate)), silu = gate * sigmoid;
            gate_up[r][j] = dinner[r][j] * up * (sigmoid + silu * (1 - sigmoid));
            gate_up[r][HIDDEN + j] = dinner[r][j] * silu;
        }
}

/* out[rows, n] = in[rows, k] weight[n, k]^T (+ out) */
static void linear(int rows, int n, int k, const void *in, const void *weight, real beta,
                   void *out) {
    by_hand_nt(rows, n, k, 1, in, k, weight, k, beta, out, n);
}

/* Adds to the gradient of the weight, and overwrites the gradient of `in`. */
static void linear_back(int rows, int n, int k, const void *in, const void *weight,
                        const void *dout, void *din, void *dweight) {
    by_hand_tn(n, k, rows, 1, dout, n, in, k, 1, dweight, k);
    by_hand_nn(rows, k, n, 1, dout, n, weight, k, 0, din, k);
}

/* Input: t->x. Output: next. */
static void layer_forward(const layer *w, layer_trace *t, int rows, real (*next)[WIDTH]) {
    norm_rows(rows, t->x, w->attention_norm, t->normed);
    linear(rows, 3 * WIDTH, WIDTH, t->normed, w->query_key_value, 0, t->mixed);
    turn_rows(rows, t->mixed, 1);
    for (int s = 0; s < rows / SEQUENCE; s++)
        for (int h = 0; h < HEADS; h++) {
            const real *query = t->mixed[s * SEQUENCE] + h * HEAD;
            attend(query, query + WIDTH, query + 2 * WIDTH, t->shares[s * HEADS + h],
                   t->seen[s * SEQUENCE] + h * HEAD);
        }
    memcpy(t->middle, t->x, (size_t)rows * sizeof(*t->x));
    linear(rows, WIDTH, WIDTH, t->seen, w->attention_output, 1, t->middle);
    norm_rows(rows, t->middle, w->swiglu_norm, t->middle_normed);
    linear(rows, 2 * HIDDEN, WIDTH, t->middle_normed, w->gate_up, 0, t->gate_up);
    silu_rows(rows, t->gate_up, t->inner);
    memcpy(next, t->middle, (size_t)rows * sizeof(*next));
    linear(rows, WIDTH, HIDDEN, t->inner, w->down, 1, next);
}

/* room->dx: on entry the gradient of the layer's output, on return of its input. */
static void layer_back(const layer *w, const layer_trace *t, trace *room, int rows, layer *dw) {
    linear_back(rows, WIDTH, HIDDEN, t->inner, w->down, room->dx, room->dinner, dw->down);
    silu_rows_back(rows, t->gate_up, room->dinner);
    linear_back(rows, 2 * HIDDEN, WIDTH, t->middle_normed, w->gate_up, t->gate_up, room->narrow,
                dw->gate_up);
    norm_rows_back(rows, t->middle, w->swiglu_norm, room->narrow, room->dx, dw->swiglu_norm, 0);
    linear_back(rows, WIDTH, WIDTH, t->seen, w->attention_output, room->dx, room->narrow,
                dw->attention_output);
    for (int s = 0; s < rows / SEQUENCE; s++)
        for (int h = 0; h < HEADS; h++) {
            const real *query = t->mixed[s * SEQUENCE] + h * HEAD;
            real *dquery = room->wide[s * SEQUENCE] + h * HEAD;
            attend_back(query, query + WIDTH, query + 2 * WIDTH, t->shares[s * HEADS + h],
                        room->narrow[s * SEQUENCE] + h * HEAD, room->dshares, dquery,
                        dquery + WIDTH, dquery + 2 * WIDTH);
        }
    turn_rows(rows, room->wide, -1);
    linear_back(rows, 3 * WIDTH, WIDTH, t->normed, w->query_key_value, room->wide, room->narrow,
                dw->query_key_value);
    norm_rows_back(rows, t->x, w->attention_norm, room->narrow, room->dx, dw->attention_norm, 0);
}

/* ---- the step ---- */

/* Forward and backward pass of `sentences` sentences from number `first` on. Returns the sum of their characters' losses. */
static double take_group(trace *t, network *dw, int first, int sentences) {
    int rows = sentences * SEQUENCE;
    double loss = 0;
    for (int r = 0; r < rows; r++)
        memcpy(t->layers[0].x[r],
               values->embedding[numbers[(first + r / SEQUENCE) * (SEQUENCE + 1) + r % SEQUENCE]],
               sizeof(*t->x));
    for (int l = 0; l < LAYERS; l++)
        layer_forward(&values->layers[l], &t->layers[l], rows,
                      l + 1 < LAYERS ? t->layers[l + 1].x : t->x);
    norm_rows(rows, t->x, values->norm, t->normed);
    linear(rows, VOCABULARY, WIDTH, t->normed, values->output, 0, t->logits);
    for (int r = 0; r < rows; r++)
        loss += by_hand_cross_entropy(
            t->logits[r], VOCABULARY,
            numbers[(first + r / SEQUENCE) * (SEQUENCE + 1) + r % SEQUENCE + 1],
            (real)1 / (real)(batch * SEQUENCE));
    linear_back(rows, VOCABULARY, WIDTH, t->normed, values->output, t->logits, t->narrow,
                dw->output);
    norm_rows_back(rows, t->x, values->norm, t->narrow, t->dx, dw->norm, 1);
    for (int l = LAYERS - 1; l >= 0; l--)
        layer_back(&values->layers[l], &t->layers[l], t, rows, &dw->layers[l]);
    for (int r = 0; r < rows; r++) {
        real *row = dw->embedding[numbers[(first + r / SEQUENCE) * (SEQUENCE + 1) + r % SEQUENCE]];
#pragma omp simd
        for (int j = 0; j < WIDTH; j++)
            row[j] += t->dx[r][j];
    }
    return loss;
}

/* Computes each thread's gradients. Returns the loss. */
static double take_gradients(void) {
    double loss = 0;
#pragma omp parallel reduction(+ : loss)
    {
        int thread = omp_get_thread_num();
        memset(gradients[thread], 0, sizeof(network));
#pragma omp for schedule(static)
        for (int first = 0; first < batch; first += group)
            loss += take_group(&traces[thread], gradients[thread], first,
                               batch - first < group ? batch - first : group);
    }
    return loss / (batch * SEQUENCE);
}

static double step(void) {
    double loss = take_gradients();
    double norm = sqrt(by_hand_collect((real **)gradients, omp_get_max_threads(), PARAMETERS));
    double scale = norm > GRADIENT_NORM_MAX ? GRADIENT_NORM_MAX / (norm + 1e-6) : 1;
    by_hand_update(&adam, (real)scale, (real *)values, (real *)gradients[0], (real *)moment1,
                   (real *)moment2, PARAMETERS);
    return loss;
}

static double take_sum_of_gradients(void) {
    double loss = take_gradients();
    by_hand_collect((real **)gradients, omp_get_max_threads(), PARAMETERS);
    return loss;
}

static int check(void) {
#define LAYER_SPANS(layer)                                                                         \
    BY_HAND_SPAN(network, layer.attention_norm), BY_HAND_SPAN(network, layer.query_key_value),     \
        BY_HAND_SPAN(network, layer.attention_output), BY_HAND_SPAN(network, layer.swiglu_norm),   \
        BY_HAND_SPAN(network, layer.gate_up), BY_HAND_SPAN(network, layer.down)
    static const by_hand_span spans[] = {
        BY_HAND_SPAN(network, embedding), LAYER_SPANS(layers[0]), LAYER_SPANS(layers[LAYERS - 1]),
        BY_HAND_SPAN(network, norm), BY_HAND_SPAN(network, output)};
    make_network(3);
    return by_hand_check(spans, sizeof(spans) / sizeof(*spans), (real *)values,
                         (real *)gradients[0], PARAMETERS, take_sum_of_gradients);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int rows = 0;
    if (omp_get_max_threads() > BY_HAND_THREADS_MAX)
        omp_set_num_threads(BY_HAND_THREADS_MAX);
    if (!strcmp(row, "--check"))
        return check();
    if (sscanf(row, "transformer_b%d_", &rows) != 1 || rows < 1) {
        fprintf(stderr, "transformer_by_hand: no such row: %s\n", row);
        return 2;
    }
    make_network(rows);
    return by_hand_measure(row, bench_sample_count(argc, argv, 2), step);
}
