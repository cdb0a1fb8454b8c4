/* The rows small_*: programs of ops of a few microseconds each (bench/programs.h). */
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/ours/trainee.h>
#include <bench/programs.h>
#include <bench/shapes.h>

/* State of any of the programs. Each uses only some of the fields. */
typedef struct small {
    const struct program *program;
    trainee net;
    transformer decoder;
    eddy_tensor *x, *labels;
    int64_t batch;
} small;

/* ---- recurrent ---- */

static void gru_init(small *s) {
    trainee_add(&s->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN, BENCH_GRU_INPUTS));
    trainee_add(&s->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN, BENCH_GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(BENCH_MLP_CLASSES, BENCH_GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(BENCH_MLP_CLASSES));
    s->x = trainee_floats(&s->net, EDDY_SHAPE(BENCH_GRU_STEPS, s->batch, BENCH_GRU_INPUTS), 1);
    s->labels = decoder_integers(s->batch, BENCH_MLP_CLASSES, &s->net.random);
}

static eddy_tensor *part(eddy_tensor *gates, int64_t which) {
    return eddy_slice(gates, 1, which * BENCH_GRU_HIDDEN, (which + 1) * BENCH_GRU_HIDDEN, 1);
}

static eddy_tensor *gru_cell(eddy_tensor **p, eddy_tensor *x, eddy_tensor *h) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *from_x = eddy_linear(x, p[0], p[1]), *from_h = eddy_linear(h, p[2], p[3]);
    eddy_tensor *reset = eddy_sigmoid(eddy_add(part(from_x, 0), part(from_h, 0)));
    eddy_tensor *update = eddy_sigmoid(eddy_add(part(from_x, 1), part(from_h, 1)));
    eddy_tensor *fresh = eddy_tanh(eddy_add(part(from_x, 2), eddy_mul(reset, part(from_h, 2))));
    h = eddy_scope_return(scope, eddy_add(fresh, eddy_mul(update, eddy_sub(h, fresh))));
    eddy_scope_end(scope);
    return h;
}

static void gru_run(small *s) {
    for (int step = 0; step < BENCH_GRU_ROUNDS; step++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *h = eddy_zeros(EDDY_SHAPE(s->batch, BENCH_GRU_HIDDEN), EDDY_F32, NULL);
        for (int64_t t = 0; t < BENCH_GRU_STEPS; t++)
            h = gru_cell(s->net.parameters, eddy_select(s->x, 0, t), h);
        eddy_tensor *logits = eddy_linear(h, s->net.parameters[4], s->net.parameters[5]);
        trainee_learn(&s->net, must_tensor(eddy_cross_entropy(logits, s->labels, NULL)));
        eddy_scope_end(scope);
    }
}

/* ---- layers ---- */

static void mlp_init(small *s) {
    static const int64_t widths[] = {BENCH_MLP_INPUTS, BENCH_MLP_HIDDEN1, BENCH_MLP_HIDDEN2,
                                     BENCH_MLP_CLASSES};
    for (int l = 0; l < 3; l++) {
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1], widths[l]));
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1]));
    }
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch, BENCH_MLP_INPUTS), 1);
    s->labels = decoder_integers(s->batch, BENCH_MLP_CLASSES, &s->net.random);
}

/* Linear layers with ReLU between them, from parameter `first` on. */
static eddy_tensor *layers(const small *s, eddy_tensor *x, int first) {
    for (int i = first; i < s->net.count; i += 2) {
        x = eddy_linear(x, s->net.parameters[i], s->net.parameters[i + 1]);
        if (i + 2 < s->net.count)
            x = eddy_relu(x);
    }
    return x;
}

static void mlp_run(small *s) {
    for (int step = 0; step < BENCH_LAYERS_ROUNDS; step++) {
        eddy_scope *scope = eddy_scope_begin();
        trainee_learn(&s->net,
                      must_tensor(eddy_cross_entropy(layers(s, s->x, 0), s->labels, NULL)));
        eddy_scope_end(scope);
    }
}

static void lenet_init(small *s) {
    trainee_add(&s->net,
                EDDY_SHAPE(BENCH_LENET_CHANNELS1, 1, BENCH_LENET_KERNEL, BENCH_LENET_KERNEL));
    trainee_add(&s->net, EDDY_SHAPE(BENCH_LENET_CHANNELS1));
    trainee_add(&s->net, EDDY_SHAPE(BENCH_LENET_CHANNELS2, BENCH_LENET_CHANNELS1,
                                    BENCH_LENET_KERNEL, BENCH_LENET_KERNEL));
    trainee_add(&s->net, EDDY_SHAPE(BENCH_LENET_CHANNELS2));
    static const int64_t widths[] = {BENCH_LENET_FLAT, BENCH_LENET_HIDDEN1, BENCH_LENET_HIDDEN2,
                                     BENCH_MLP_CLASSES};
    for (int l = 0; l < 3; l++) {
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1], widths[l]));
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1]));
    }
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch, 1, BENCH_LENET_SIDE, BENCH_LENET_SIDE), 1);
    s->labels = decoder_integers(s->batch, BENCH_MLP_CLASSES, &s->net.random);
}

static void lenet_run(small *s) {
    for (int step = 0; step < BENCH_LAYERS_ROUNDS; step++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = s->x;
        for (int l = 0; l < 4; l += 2) {
            x = eddy_conv2d(x, s->net.parameters[l], s->net.parameters[l + 1], NULL);
            x = eddy_max_pool2d(eddy_relu(x), EDDY_PAIR(2, 2), NULL);
        }
        eddy_tensor *logits = layers(s, eddy_flatten(x, 1, -1), 4);
        trainee_learn(&s->net, must_tensor(eddy_cross_entropy(logits, s->labels, NULL)));
        eddy_scope_end(scope);
    }
}

/* ---- text ---- */

static void decode_init(small *s) {
    decoder_init(&s->decoder);
}

/* Computes each token from all tokens before it, and waits for its number. */
static void decode_run(small *s) {
    int64_t tokens[BENCH_DECODE_TOKENS + 1] = {1};
    for (int64_t t = 1; t <= BENCH_DECODE_TOKENS; t++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_no_grad_begin();
        eddy_tensor *logits = transformer_logits(
            &s->decoder, eddy_from_data(tokens, EDDY_SHAPE(1, t), EDDY_I64, NULL));
        eddy_tensor *last = eddy_select(eddy_select(logits, 0, 0), 0, -1);
        must(eddy_read_i64(eddy_argmax(last, EDDY_AXES(0), NULL), &tokens[t], NULL));
        eddy_no_grad_end();
        eddy_scope_end(scope);
    }
}

/* ---- shapes of graphs ---- */

static void tree_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(BENCH_TREE_WIDTH), 1);
}

/* Sums all leaves, in pairs. */
static void tree_run(small *s) {
    static eddy_tensor *level[BENCH_TREE_LEAVES];
    for (int i = 0; i < BENCH_TREE_LEAVES; i++)
        level[i] = eddy_retain(s->x);
    for (int count = BENCH_TREE_LEAVES; count > 1; count = (count + 1) / 2) {
        for (int i = 0; i + 1 < count; i += 2) {
            eddy_tensor *sum = must_tensor(eddy_add(level[i], level[i + 1]));
            eddy_release(&level[i]);
            eddy_release(&level[i + 1]);
            level[i / 2] = sum;
        }
        if (count % 2)
            level[count / 2] = level[count - 1];
    }
    eddy_release(&level[0]);
}

static void chain_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch), 1);
}

static void chain_run(small *s) {
    eddy_tensor *x = eddy_retain(s->x);
    for (int i = 0; i < BENCH_CHAIN_OPS; i++) {
        eddy_tensor *next = must_tensor(eddy_tanh(x));
        eddy_release(&x);
        x = next;
    }
    eddy_release(&x);
}

static void mixed_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(BENCH_MIXED_WIDTH), 1);
    s->labels = trainee_floats(&s->net, EDDY_SHAPE(BENCH_MIXED_SIDE, BENCH_MIXED_SIDE), 1);
}

/* One expensive product beside cheap ops on other tensors. */
static void mixed_run(small *s) {
    for (int round = 0; round < BENCH_MIXED_ROUNDS; round++) {
        eddy_tensor *product = must_tensor(eddy_matmul(s->labels, s->labels)),
                    *others[BENCH_MIXED_OPS];
        for (int i = 0; i < BENCH_MIXED_OPS; i++)
            others[i] = must_tensor(eddy_tanh(s->x));
        for (int i = 0; i < BENCH_MIXED_OPS; i++)
            eddy_release(&others[i]);
        must(eddy_wait(product, EDDY_FOREVER));
        eddy_release(&product);
    }
}

/* ---- measuring ---- */

typedef struct program {
    const char *format; /* of its rows' names, as bench_program_has reads it */
    void (*init)(small *s);
    void (*run)(small *s);
} program;

static const program programs[] = {
    {"small_gru_b%lld", gru_init, gru_run},       {"small_mlp_b%lld", mlp_init, mlp_run},
    {"small_lenet_b%lld", lenet_init, lenet_run}, {"small_decode_b%lld", decode_init, decode_run},
    {"small_tree", tree_init, tree_run},          {"small_chain_%lld", chain_init, chain_run},
    {"small_mixed", mixed_init, mixed_run}};

static const program *find(const char *row, long long *size) {
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        if (bench_program_has(programs[i].format, row, size))
            return &programs[i];
    fprintf(stderr, "small: no such row: %s\n", row);
    exit(2);
}

static void run(void *work) {
    small *s = work;
    s->program->run(s);
    must(eddy_sync(EDDY_FOREVER));
}

int main(int argc, char **argv) {
    const char *rows = argc > 1 ? argv[1] : "";
    long long size;
    small s = {.net.random = 1, .program = find(rows, &size)};
    s.batch = size;
    bench_program measured = {.run = run, .work = &s};
    s.program->init(&s);
    bench_program_begin(&measured);
    path_counts before = path_now();
    bench_program_measure(&measured, bench_sample_count(argc, argv, 2));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    bench_program_print(&measured, rows, eddy_version_text(), path);
    eddy_release(&s.x);
    eddy_release(&s.labels);
    trainee_fini(&s.net);
    transformer_fini(&s.decoder);
    return 0;
}
