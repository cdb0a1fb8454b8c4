/* Each program is a step, with one result: all else that it makes is gone after it. What reads values on the host or makes tensors from
 * memory stands outside of steps, for it cannot be replayed. */
#include "small_programs.h"

#include <bench/ours/bits.h>
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/shapes.h>

typedef struct small_program {
    const char *format; /* of its rows' names, as bench_program_has reads it */
    void (*init)(small *s);
    /* Issues a step and returns its result. */
    eddy_tensor *(*step)(small *s, eddy_tensor *const *inputs);
    int rounds;            /* steps per run */
    bool is_synchronous;   /* each step is waited for */
    void (*run)(small *s); /* NULL: the rounds of the step on x and labels */
} small_program;

static eddy_status call_step(void *context, eddy_recorded_call *call) {
    small *s = context;
    s->called_steps++;
    call->outputs[0] = must_tensor(s->program->step(s, call->inputs.items));
    return EDDY_OK;
}

/* A step on these inputs. Its result is the instance's, which gives up the one before first, so that its memory can be used again. */
static void step(small *s, eddy_list inputs) {
    eddy_release(&s->result);
    if (s->recorded) {
        must(eddy_recorded_run(s->recorded, inputs, (eddy_scalars){0}, &s->result));
        return;
    }
    eddy_recorded_call call = {.inputs = inputs, .outputs = &s->result, .output_count = 1};
    must(call_step(s, &call));
}

/* Ends a training step with these logits: its loss is the result. */
static eddy_tensor *learn(small *s, eddy_tensor *logits, eddy_tensor *labels) {
    eddy_tensor *loss = must_tensor(eddy_cross_entropy(logits, labels, NULL));
    trainee_learn(&s->net, loss);
    return must_tensor(eddy_detach(loss));
}

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

static eddy_tensor *gru_step(small *s, eddy_tensor *const *inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *h = eddy_zeros(EDDY_SHAPE(s->batch, BENCH_GRU_HIDDEN), EDDY_F32, NULL);
    for (int64_t t = 0; t < BENCH_GRU_STEPS; t++)
        h = gru_cell(s->net.parameters, eddy_select(inputs[0], 0, t), h);
    eddy_tensor *logits = eddy_linear(h, s->net.parameters[4], s->net.parameters[5]);
    eddy_tensor *result = eddy_scope_return(scope, learn(s, logits, inputs[1]));
    eddy_scope_end(scope);
    return result;
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

static eddy_tensor *mlp_step(small *s, eddy_tensor *const *inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *logits = layers(s, inputs[0], 0);
    eddy_tensor *result = eddy_scope_return(scope, learn(s, logits, inputs[1]));
    eddy_scope_end(scope);
    return result;
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

static eddy_tensor *lenet_step(small *s, eddy_tensor *const *inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = inputs[0];
    for (int l = 0; l < 4; l += 2) {
        x = eddy_conv2d(x, s->net.parameters[l], s->net.parameters[l + 1], NULL);
        x = eddy_max_pool2d(eddy_relu(x), EDDY_PAIR(2, 2), NULL);
    }
    eddy_tensor *logits = layers(s, eddy_flatten(x, 1, -1), 4);
    eddy_tensor *result = eddy_scope_return(scope, learn(s, logits, inputs[1]));
    eddy_scope_end(scope);
    return result;
}

/* ---- text ---- */

static void decode_init(small *s) {
    decoder_init(&s->decoder);
}

/* The number that follows those of its input. */
static eddy_tensor *decode_step(small *s, eddy_tensor *const *inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_no_grad_begin();
    eddy_tensor *logits = transformer_logits(&s->decoder, inputs[0]);
    eddy_tensor *last = eddy_select(eddy_select(logits, 0, 0), 0, -1);
    eddy_tensor *result = eddy_scope_return(scope, eddy_argmax(last, EDDY_AXES(0), NULL));
    eddy_no_grad_end();
    eddy_scope_end(scope);
    return result;
}

/* Computes each token from all tokens before it, and waits for its number. The lengths differ: replayed, each is a program. */
static void decode_run(small *s) {
    s->tokens[0] = 1;
    for (int64_t t = 1; t <= BENCH_DECODE_TOKENS; t++) {
        eddy_tensor *numbers =
            must_tensor(eddy_from_data(s->tokens, EDDY_SHAPE(1, t), EDDY_I64, NULL));
        step(s, EDDY_LIST(numbers));
        must(eddy_read_i64(s->result, &s->tokens[t], NULL));
        eddy_release(&numbers);
    }
}

/* ---- shapes of graphs ---- */

static void tree_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(BENCH_TREE_WIDTH), 1);
}

/* Sums all leaves, in pairs. */
static eddy_tensor *tree_step(small *s, eddy_tensor *const *inputs) {
    (void)s;
    static eddy_tensor *level[BENCH_TREE_LEAVES];
    for (int i = 0; i < BENCH_TREE_LEAVES; i++)
        level[i] = eddy_retain(inputs[0]);
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
    return level[0];
}

static void chain_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(s->batch), 1);
}

static eddy_tensor *chain_step(small *s, eddy_tensor *const *inputs) {
    (void)s;
    eddy_tensor *x = eddy_retain(inputs[0]);
    for (int i = 0; i < BENCH_CHAIN_OPS; i++) {
        eddy_tensor *next = must_tensor(eddy_tanh(x));
        eddy_release(&x);
        x = next;
    }
    return x;
}

static void mixed_init(small *s) {
    s->x = trainee_floats(&s->net, EDDY_SHAPE(BENCH_MIXED_WIDTH), 1);
    s->labels = trainee_floats(&s->net, EDDY_SHAPE(BENCH_MIXED_SIDE, BENCH_MIXED_SIDE), 1);
}

/* One expensive product beside cheap ops on other tensors. */
static eddy_tensor *mixed_step(small *s, eddy_tensor *const *inputs) {
    (void)s;
    eddy_tensor *product = must_tensor(eddy_matmul(inputs[1], inputs[1])), *others[BENCH_MIXED_OPS];
    for (int i = 0; i < BENCH_MIXED_OPS; i++)
        others[i] = must_tensor(eddy_tanh(inputs[0]));
    for (int i = 0; i < BENCH_MIXED_OPS; i++)
        eddy_release(&others[i]);
    return product;
}

/* ---- all of them ---- */

static const small_program programs[] = {
    {"small_gru_b%lld", gru_init, gru_step, .rounds = BENCH_GRU_ROUNDS},
    {"small_mlp_b%lld", mlp_init, mlp_step, .rounds = BENCH_LAYERS_ROUNDS},
    {"small_lenet_b%lld", lenet_init, lenet_step, .rounds = BENCH_LAYERS_ROUNDS},
    {"small_decode_b%lld", decode_init, decode_step, .run = decode_run},
    {"small_tree", tree_init, tree_step, .rounds = 1},
    {"small_chain_%lld", chain_init, chain_step, .rounds = 1},
    {"small_mixed", mixed_init, mixed_step, .rounds = BENCH_MIXED_ROUNDS, .is_synchronous = true}};

static const small_program *find(const char *row, long long *size) {
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        if (bench_program_has(programs[i].format, row, size))
            return &programs[i];
    fprintf(stderr, "small: no such row: %s\n", row);
    exit(2);
}

void small_init(small *s, const char *row, bool is_replayed) {
    /* Strict: a step that cannot be replayed ends the program, rather than be measured as calls. */
    eddy_recorded_options strict = {.size = sizeof(strict), .is_strict = true};
    long long size;
    *s = (small){.net.random = 1, .program = find(row, &size)};
    s->batch = size;
    must(eddy_seed(1));
    s->program->init(s);
    if (is_replayed && !(s->recorded = eddy_recorded_create(call_step, s, 1, &strict)))
        must_fail();
}

void small_fini(small *s) {
    eddy_recorded_release(&s->recorded);
    eddy_release(&s->result);
    eddy_release(&s->x);
    eddy_release(&s->labels);
    trainee_fini(&s->net);
    transformer_fini(&s->decoder);
}

void small_run(small *s) {
    if (s->program->run)
        s->program->run(s);
    eddy_list inputs = {(eddy_tensor *[]){s->x, s->labels}, s->labels ? 2 : 1};
    for (int round = 0; round < s->program->rounds; round++) {
        step(s, inputs);
        if (s->program->is_synchronous)
            must(eddy_wait(s->result, EDDY_FOREVER));
    }
    must(eddy_sync(EDDY_FOREVER));
}

bool small_equals(small *a, small *b) {
    bool is_same =
        bits_are_equal(a->result, b->result) && !memcmp(a->tokens, b->tokens, sizeof(a->tokens));
    for (int i = 0; i < a->net.count; i++)
        is_same = is_same && bits_are_equal(a->net.parameters[i], b->net.parameters[i]);
    return is_same;
}
