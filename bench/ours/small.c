/* The rows small_*: programs of ops of a few microseconds each. Three rows a program: time and CPU time of a sample, and the most
 * memory that was resident beyond what was there before the first. */
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/ours/trainee.h>
#include <bench/resident.h>
#include <bench/sample.h>
#include <sys/resource.h>

#define GRU_INPUTS 32
#define GRU_HIDDEN 48
#define GRU_STEPS 24
#define MLP_INPUTS 784
#define TREE_LEAVES 10001 /* 10,000 adds */
#define TREE_WIDTH 64
#define CHAIN_OPS 200
#define MIXED_SIDE 448 /* a product of 1 ms or so */
#define MIXED_OPS 100
#define MIXED_WIDTH 10000
#define DECODE_TOKENS 32

/* What the programs share: each uses what it needs. */
typedef struct small {
    trainee net;
    transformer decoder;
    eddy_tensor *x, *labels;
    int64_t batch;
} small;

/* ---- recurrent ---- */

static void gru_init(small *s) {
    trainee_add(&s->net, EDDY_SHAPE(3 * GRU_HIDDEN, GRU_INPUTS));
    trainee_add(&s->net, EDDY_SHAPE(3 * GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(3 * GRU_HIDDEN, GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(3 * GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(10, GRU_HIDDEN));
    trainee_add(&s->net, EDDY_SHAPE(10));
    s->x = trainee_floats(&s->net, EDDY_SHAPE(GRU_STEPS, s->batch, GRU_INPUTS), 1);
    s->labels = decoder_integers(s->batch, 10, &s->net.random);
}

static eddy_tensor *part(eddy_tensor *gates, int64_t which) {
    return eddy_slice(gates, 1, which * GRU_HIDDEN, (which + 1) * GRU_HIDDEN, 1);
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
    for (int step = 0; step < 4; step++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *h = eddy_zeros(EDDY_SHAPE(s->batch, GRU_HIDDEN), EDDY_F32, NULL);
        for (int64_t t = 0; t < GRU_STEPS; t++)
            h = gru_cell(s->net.parameters, eddy_select(s->x, 0, t), h);
        eddy_tensor *logits = eddy_linear(h, s->net.parameters[4], s->net.parameters[5]);
        trainee_learn(&s->net, must_tensor(eddy_cross_entropy(logits, s->labels, NULL)));
        eddy_scope_end(scope);
    }
}

/* ---- layers ---- */

static void mlp_init(small *s) {
    static const int64_t widths[] = {MLP_INPUTS, 256, 128, 10};
    for (int l = 0; l < 3; l++) {
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1], widths[l]));
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1]));
    }
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch, MLP_INPUTS), 1);
    s->labels = decoder_integers(s->batch, 10, &s->net.random);
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
    for (int step = 0; step < 10; step++) {
        eddy_scope *scope = eddy_scope_begin();
        trainee_learn(&s->net, must_tensor(eddy_cross_entropy(layers(s, s->x, 0), s->labels, NULL)));
        eddy_scope_end(scope);
    }
}

static void lenet_init(small *s) {
    trainee_add(&s->net, EDDY_SHAPE(6, 1, 5, 5));
    trainee_add(&s->net, EDDY_SHAPE(6));
    trainee_add(&s->net, EDDY_SHAPE(16, 6, 5, 5));
    trainee_add(&s->net, EDDY_SHAPE(16));
    static const int64_t widths[] = {256, 120, 84, 10};
    for (int l = 0; l < 3; l++) {
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1], widths[l]));
        trainee_add(&s->net, EDDY_SHAPE(widths[l + 1]));
    }
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch, 1, 28, 28), 1);
    s->labels = decoder_integers(s->batch, 10, &s->net.random);
}

static void lenet_run(small *s) {
    for (int step = 0; step < 10; step++) {
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

/* Each token from all before it; its number is waited for. */
static void decode_run(small *s) {
    int64_t tokens[DECODE_TOKENS + 1] = {1};
    for (int64_t t = 1; t <= DECODE_TOKENS; t++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_no_grad_begin();
        eddy_tensor *logits = transformer_logits(&s->decoder, eddy_from_data(tokens, EDDY_SHAPE(1, t), EDDY_I64, NULL));
        eddy_tensor *last = eddy_select(eddy_select(logits, 0, 0), 0, -1);
        must(eddy_read_i64(eddy_argmax(last, EDDY_AXES(0), NULL), &tokens[t]));
        eddy_no_grad_end();
        eddy_scope_end(scope);
    }
}

/* ---- shapes of graphs ---- */

static void tree_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(TREE_WIDTH), 1);
}

/* Sums all leaves, two by two. */
static void tree_run(small *s) {
    static eddy_tensor *level[TREE_LEAVES];
    for (int i = 0; i < TREE_LEAVES; i++)
        level[i] = eddy_retain(s->x);
    for (int count = TREE_LEAVES; count > 1; count = (count + 1) / 2) {
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
    for (int i = 0; i < CHAIN_OPS; i++) {
        eddy_tensor *next = must_tensor(eddy_tanh(x));
        eddy_release(&x);
        x = next;
    }
    eddy_release(&x);
}

static void mixed_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(MIXED_WIDTH), 1);
    s->labels = trainee_floats(&s->net, EDDY_SHAPE(MIXED_SIDE, MIXED_SIDE), 1);
}

/* One dear product beside cheap ops on other tensors. */
static void mixed_run(small *s) {
    for (int round = 0; round < 4; round++) {
        eddy_tensor *product = must_tensor(eddy_matmul(s->labels, s->labels)), *others[MIXED_OPS];
        for (int i = 0; i < MIXED_OPS; i++)
            others[i] = must_tensor(eddy_tanh(s->x));
        for (int i = 0; i < MIXED_OPS; i++)
            eddy_release(&others[i]);
        must(eddy_wait(product, EDDY_FOREVER));
        eddy_release(&product);
    }
}

/* ---- measuring ---- */

typedef struct program {
    const char *format; /* with the size after the last underscore, or the whole name */
    void (*init)(small *s);
    void (*run)(small *s);
} program;

static const program programs[] = {
    {"small_gru_b%lld", gru_init, gru_run},       {"small_mlp_b%lld", mlp_init, mlp_run},
    {"small_lenet_b%lld", lenet_init, lenet_run}, {"small_decode_b%lld", decode_init, decode_run},
    {"small_tree", tree_init, tree_run},          {"small_chain_%lld", chain_init, chain_run},
    {"small_mixed", mixed_init, mixed_run}};

static const program *find(const char *row, small *s) {
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
        long long size = 0;
        bool has_size = strchr(programs[i].format, '%') != NULL;
        if (has_size ? sscanf(row, programs[i].format, &size) == 1
                     : !strncmp(row, programs[i].format, strlen(programs[i].format))) {
            s->batch = size;
            return &programs[i];
        }
    }
    return NULL;
}

static double cpu_ms(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static double run_ms(const program *p, small *s) {
    double began = bench_now_ns();
    p->run(s);
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / 1e6;
}

/* The rows are asked for together: "small_tree,small_tree_cpu,small_tree_memory" measures all three at once. */
int main(int argc, char **argv) {
    char name[64] = "";
    small s = {.net.random = 1};
    if (argc > 1)
        sscanf(argv[1], "%63[^,]", name);
    const program *p = find(name, &s);
    if (!p) {
        fprintf(stderr, "small: no such row: %s\n", name);
        return 2;
    }
    int count = bench_sample_count(argc, argv, 2);
    bench_samples times = {.count = 0}, cpu_times = {.count = 0}, memory = {.count = 0};
    p->init(&s);
    double before_first = bench_resident_begin();
    run_ms(p, &s);
    /* A sample is some tens of milliseconds, so that what threads do after it ends is a small part. */
    int runs = 1 + (int)(40 / (run_ms(p, &s) + 0.01));
    path_counts before = path_now();
    for (int i = 0; i < count; i++) {
        double cpu_began = cpu_ms(), ms = 0;
        for (int r = 0; r < runs; r++)
            ms += run_ms(p, &s);
        bench_samples_push(&times, ms / runs);
        bench_samples_push(&cpu_times, (cpu_ms() - cpu_began) / runs);
    }
    bench_samples_push(&memory, bench_resident_peak(before_first));
    char path[PATH_BYTES], row[80];
    path_format(before, path_now(), path);
    bench_print_row(name, "ms", eddy_version_text(), path, &times);
    snprintf(row, sizeof(row), "%s_cpu", name);
    bench_print_row(row, "ms", eddy_version_text(), path, &cpu_times);
    snprintf(row, sizeof(row), "%s_memory", name);
    bench_print_row(row, "MiB", eddy_version_text(), path, &memory);
    eddy_release(&s.x);
    eddy_release(&s.labels);
    trainee_fini(&s.net);
    transformer_fini(&s.decoder);
    return 0;
}
