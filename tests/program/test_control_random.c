/* Random nests of branches and loops over matrices, views of them and state: a program of them gives the bits of the calls, whatever way was
 * taken when it was recorded, with passes and without, and from its text. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>
#include <tests/program/texts.h>
#include <tests/rounds.h>
#include <unistd.h>

#define REGISTERS 10
#define STATES 2
#define OUTPUTS 3
#define DEPTH 3

typedef struct registers {
    eddy_tensor *items[REGISTERS];
    int count;
    const struct registers *around; /* of the block that this one is in, or NULL */
} registers;

/* A function and what it does, which its seed decides: each call of it does the same. */
typedef struct node {
    uint64_t seed;
    int depth;
    int64_t output_count;
    eddy_tensor **states;
    eddy_tensor *index;
    eddy_generator *generator; /* beside the thread's own, or NULL */
    eddy_tensor *
        leaf; /* gradients are wanted: sums and products of small integers, which no order rounds; else NULL */
    const registers *around; /* what the blocks around it have made so far, or NULL */
} node;

static uint64_t next(uint64_t *seed) {
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t *seed, uint64_t bound) {
    return next(seed) % bound;
}

static eddy_tensor *any(uint64_t *seed, const registers *r) {
    return r->items[below(seed, (uint64_t)r->count)];
}

/* What a block around this one has made. */
static eddy_tensor *any_around(uint64_t *seed, const node *n) {
    const registers *r = n->around;
    while (r->around && below(seed, 2))
        r = r->around;
    return any(seed, r);
}

static void put(uint64_t *seed, registers *r, eddy_tensor *tensor) {
    if (r->count < REGISTERS)
        r->items[r->count++] = tensor;
    else
        r->items[below(seed, REGISTERS)] = tensor;
}

static eddy_status random_block(void *context, eddy_list inputs, eddy_tensor **outputs);

static eddy_tensor *predicate_of(uint64_t *seed, const node *n, const registers *r) {
    eddy_tensor *of = n->around && below(seed, 4) == 0 ? any_around(seed, n) : any(seed, r);
    return eddy_gt_s(eddy_mean(of, EDDY_ALL_AXES, NULL),
                     EDDY_S(0.25 * (double)below(seed, 5) - 0.5));
}

static eddy_status branch(uint64_t *seed, const node *n, registers *r) {
    eddy_tensor *inputs[] = {any(seed, r), any(seed, r), any(seed, r)}, *outputs[2];
    node inner = *n;
    inner.seed = next(seed);
    inner.depth++;
    inner.around = r;
    inner.output_count = 1 + (int64_t)below(seed, 2);
    /* The ways of a branch share the context: which is which, its first input tells by its place. */
    eddy_status status = eddy_cond(predicate_of(seed, n, r), random_block, random_block, &inner,
                                   (eddy_list){inputs, 3}, inner.output_count, NULL, outputs);
    for (int64_t i = 0; i < inner.output_count && status == EDDY_OK; i++)
        put(seed, r, outputs[i]);
    return status;
}

static eddy_status other_block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    node other = *(node *)context;
    other.seed += 77;
    return random_block(&other, inputs, outputs);
}

static eddy_status unequal_branch(uint64_t *seed, const node *n, registers *r) {
    eddy_tensor *inputs[] = {any(seed, r), any(seed, r)}, *output;
    node inner = *n;
    inner.seed = next(seed);
    inner.depth++;
    inner.around = r;
    inner.output_count = 1;
    eddy_status status = eddy_cond(predicate_of(seed, n, r), random_block, other_block, &inner,
                                   (eddy_list){inputs, 2}, 1, NULL, &output);
    if (status == EDDY_OK)
        put(seed, r, output);
    return status;
}

/* The first carried tensor counts. */
static eddy_status is_positive(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_gt_s(inputs.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status count_down(void *context, eddy_list inputs, eddy_tensor **outputs) {
    node inner = *(node *)context;
    eddy_list rest = {inputs.items + 1, inputs.count - 1};
    if (below(&inner.seed, 3) == 0) {
        must(eddy_sub_s_inplace(inputs.items[0], EDDY_S(1)));
        outputs[0] = inputs.items[0];
    } else {
        outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    }
    return outputs[0] ? random_block(&inner, rest, outputs + 1) : EDDY_INVALID_ARGUMENT;
}

static eddy_status loop(uint64_t *seed, const node *n, registers *r) {
    eddy_tensor *count =
        eddy_floor(eddy_mul_s(eddy_tanh(eddy_abs(eddy_mean(any(seed, r), EDDY_ALL_AXES, NULL))),
                              EDDY_S(2.0 + (double)below(seed, n->leaf ? 3 : 4))));
    eddy_tensor *carried[] = {count, any(seed, r), any(seed, r)}, *outputs[4];
    node inner = *n;
    inner.seed = next(seed);
    inner.depth++;
    inner.around = r;
    eddy_while_options options = {.size = sizeof(options), .most_steps = n->leaf ? 4 : 1000};
    if (below(seed, 3) == 0) {
        options.list_count = 1;
        options.most_steps = 5;
    }
    inner.output_count = 2 + options.list_count;
    eddy_status status =
        eddy_while(is_positive, count_down, &inner, (eddy_list){carried, 3}, &options, outputs);
    if (status != EDDY_OK)
        return status;
    put(seed, r, outputs[1]);
    put(seed, r, outputs[2]);
    if (options.list_count > 0)
        put(seed, r, eddy_select(outputs[3], 0, (int64_t)below(seed, 3)));
    return EDDY_OK;
}

static eddy_tensor *drop(uint64_t *seed, const node *n, eddy_tensor *x) {
    return eddy_dropout(x, EDDY_S(0.5),
                        EDDY_OPTIONS(dropout, .generator = below(seed, 2) ? n->generator : NULL));
}

/* 0 and 1. */
static eddy_tensor *coins_like(uint64_t *seed, const node *n, eddy_tensor *x) {
    eddy_tensor *half = eddy_full_like(x, EDDY_S(0.5), NULL);
    return eddy_bernoulli(
        half, EDDY_OPTIONS(bernoulli, .generator = below(seed, 2) ? n->generator : NULL));
}

/* A slice is not written to. */
static eddy_status sliced_block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const node *n = context;
    eddy_tensor *slice = inputs.items[1];
    return random_block(context, EDDY_LIST(inputs.items[0], n->leaf ? slice : eddy_clone(slice)),
                        outputs);
}

static eddy_status scan(uint64_t *seed, const node *n, registers *r) {
    eddy_tensor *slices[] = {any(seed, r), any(seed, r), any(seed, r)}, *carried = any(seed, r);
    eddy_tensor *xs = eddy_stack((eddy_list){slices, 2 + (int64_t)below(seed, 2)}, 0), *outputs[3];
    if (below(seed, 2))
        xs = eddy_transpose(xs, 1, 2);
    node inner = *n;
    inner.seed = next(seed);
    inner.depth++;
    inner.around = r;
    inner.output_count = 2 + (int64_t)below(seed, 2);
    eddy_status status = eddy_scan(
        sliced_block, &inner, EDDY_LIST(carried), EDDY_LIST(xs), inner.output_count,
        EDDY_OPTIONS(scan, .is_rolled = below(seed, 4) != 0, .is_reversed = below(seed, 2)),
        outputs);
    if (status != EDDY_OK)
        return status;
    put(seed, r, outputs[0]);
    for (int64_t i = 1; i < inner.output_count; i++)
        put(seed, r, eddy_select(outputs[i], 0, (int64_t)below(seed, 2)));
    return EDDY_OK;
}

static eddy_status exact_statement(uint64_t *seed, const node *n, registers *r) {
    eddy_tensor *a = any(seed, r), *b = any(seed, r), *made;
    switch (below(seed, n->depth < DEPTH ? 18 : 11)) {
    case 0:
        made = eddy_add(a, b);
        break;
    case 1:
        made = eddy_mul(eddy_sign(a), b);
        break;
    case 2:
        made = eddy_add(eddy_relu(a), n->leaf);
        break;
    case 3:
        made = eddy_t(a);
        break;
    case 4:
        made = eddy_maximum(a, eddy_neg(b));
        break;
    case 5:
        made = eddy_mul(eddy_clamp(a, EDDY_S(-3), EDDY_S(3)), n->leaf);
        break;
    case 6:
        made = eddy_index_select(a, n->index, (int)below(seed, 2));
        break;
    case 7:
        made = eddy_detach(a);
        break;
    case 8:
        made = eddy_mul_s(drop(seed, n, a), EDDY_S(0.5));
        break;
    case 9:
        made = eddy_mul(coins_like(seed, n, a), b);
        break;
    case 10:
        b = n->around ? any_around(seed, n) : b;
        made = eddy_mul(eddy_clamp(a, EDDY_S(-3), EDDY_S(3)), eddy_clamp(b, EDDY_S(-3), EDDY_S(3)));
        break;
    case 11:
        return unequal_branch(seed, n, r);
    case 12:
    case 13:
        return loop(seed, n, r);
    case 14:
        return scan(seed, n, r);
    default:
        return branch(seed, n, r);
    }
    put(seed, r, made);
    return made ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status statement(uint64_t *seed, const node *n, registers *r) {
    if (n->leaf)
        return exact_statement(seed, n, r);
    eddy_tensor *a = any(seed, r), *b = any(seed, r);
    switch (below(seed, n->depth < DEPTH ? 21 : 14)) {
    case 0:
        put(seed, r, eddy_mul_s(eddy_add(a, b), EDDY_S(0.5)));
        return EDDY_OK;
    case 1:
        put(seed, r, eddy_tanh(a));
        return EDDY_OK;
    case 2:
        put(seed, r, eddy_mul(a, b));
        return EDDY_OK;
    case 3:
        put(seed, r, eddy_t(a));
        return EDDY_OK;
    case 4:
        put(seed, r, eddy_maximum(a, eddy_neg(b)));
        return EDDY_OK;
    case 5:
        return eddy_add_inplace(n->states[below(seed, STATES)], eddy_mul_s(a, EDDY_S(0.125)));
    case 6:
        return eddy_mul_s_inplace(n->states[below(seed, STATES)], EDDY_S(0.5));
    case 7:
        put(seed, r, eddy_add(a, n->states[below(seed, STATES)]));
        return EDDY_OK;
    case 8:
        put(seed, r, eddy_index_select(a, n->index, (int)below(seed, 2)));
        return EDDY_OK;
    case 9: {
        /* A tensor of its own that is written in place. */
        eddy_tensor *own = eddy_mul_s(a, EDDY_S(0.75));
        put(seed, r, own);
        return below(seed, 2) ? eddy_sub_inplace(own, b) : eddy_copy_into(b, own);
    }
    case 10: {
        /* All of a tensor that may come from outside, or be a view of one. */
        eddy_tensor *one = eddy_mul_s(a, EDDY_S(0.25)), *other = eddy_tanh(b);
        return eddy_add_into(one, other, any(seed, r));
    }
    case 11:
        put(seed, r, drop(seed, n, a));
        return EDDY_OK;
    case 12:
        put(seed, r, eddy_sub(coins_like(seed, n, a), b));
        return EDDY_OK;
    case 13:
        put(seed, r, eddy_mul(n->around ? any_around(seed, n) : a, eddy_tanh(b)));
        return EDDY_OK;
    case 14:
    case 15:
        return branch(seed, n, r);
    case 16:
        return unequal_branch(seed, n, r);
    case 17:
        return scan(seed, n, r);
    default:
        return loop(seed, n, r);
    }
}

static eddy_status random_block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const node *n = context;
    uint64_t seed = n->seed;
    registers r = {.count = (int)inputs.count, .around = n->around};
    memcpy(r.items, inputs.items, (size_t)inputs.count * sizeof(*r.items));
    int length = 1 + (int)below(&seed, n->depth == 0 ? 12 : 6);
    eddy_status status = EDDY_OK;
    for (int i = 0; i < length && status == EDDY_OK; i++)
        status = statement(&seed, n, &r);
    for (int64_t i = 0; i < n->output_count && status == EDDY_OK; i++)
        outputs[i] = below(&seed, 3) ? r.items[r.count - 1] : any(&seed, &r);
    return status;
}

/* ---- generators ---- */

/* The thread's own, and another one. */
typedef struct drawn {
    uint64_t words[4];
} drawn;

static drawn drawn_so_far(const eddy_generator *generator) {
    drawn d = {{0}};
    must(eddy_generator_state(eddy_generator_default(), &d.words[0], &d.words[1]));
    if (generator)
        must(eddy_generator_state(generator, &d.words[2], &d.words[3]));
    return d;
}

static void draw_again(eddy_generator *generator, const drawn *d) {
    must(eddy_generator_restore(eddy_generator_default(), d->words[0], d->words[1]));
    if (generator)
        must(eddy_generator_restore(generator, d->words[2], d->words[3]));
}

static void expect_drawn(const eddy_generator *generator, const drawn *expected, uint64_t seed) {
    drawn is = drawn_so_far(generator);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(is.words[i], expected->words[i], "seed %llu: %llu draws, the calls %llu",
                     (unsigned long long)seed, (unsigned long long)is.words[i],
                     (unsigned long long)expected->words[i]);
}

/* ---- one nest ---- */

typedef struct world {
    eddy_tensor *inputs[3]; /* two matrices, and rows of them by number */
    eddy_tensor *states[STATES];
    eddy_generator *generator;
    uint64_t donated; /* a bit for each input whose memory runs take */
    node root;
} world;

static void make_world(world *w, uint64_t seed, int64_t size, bool is_bad) {
    eddy_seed(seed);
    for (int i = 0; i < 2; i++)
        w->inputs[i] = eddy_mul_s(eddy_randn(EDDY_SHAPE(size, size), EDDY_F32, NULL), EDDY_S(2));
    int64_t rows[128];
    for (int64_t i = 0; i < size; i++)
        rows[i] =
            is_bad && i == size / 2 ? size + 3 : (int64_t)((uint64_t)(i * 7) % (uint64_t)size);
    w->inputs[2] = eddy_from_data(rows, EDDY_SHAPE(size), EDDY_I64, NULL);
    for (int i = 0; i < STATES; i++)
        w->states[i] = eddy_randn(EDDY_SHAPE(size, size), EDDY_F32, NULL);
}

static eddy_status call(world *w, uint64_t seed, eddy_tensor **outputs) {
    w->root = (node){.seed = seed,
                     .output_count = OUTPUTS,
                     .states = w->states,
                     .index = w->inputs[2],
                     .generator = w->generator};
    /* What is written is not what was given. */
    eddy_tensor *own[] = {eddy_clone(w->inputs[0]), eddy_clone(w->inputs[1])};
    return random_block(&w->root, (eddy_list){own, 2}, outputs);
}

static eddy_program *record(world *w, uint64_t seed, const eddy_record_options *options) {
    static const char *const names[] = {"a", "b", "index", "s0", "s1", "o0", "o1", "o2"};
    eddy_tensor *outputs[OUTPUTS], *clones[OUTPUTS];
    eddy_binding bindings[8];
    int64_t count = 0;
    must(eddy_record_begin(options));
    must(call(w, seed, outputs));
    for (int i = 0; i < OUTPUTS; i++)
        clones[i] = eddy_clone(outputs[i]);
    for (int i = 0; i < 3; i++)
        bindings[count++] = (eddy_binding){
            names[i], w->inputs[i], w->donated >> i & 1 ? EDDY_ROLE_DONATED : EDDY_ROLE_INPUT};
    /* State that no call uses has no name. */
    for (int i = 0; i < STATES; i++) {
        (void)eddy_mul_s_inplace(w->states[i], EDDY_S(1));
        bindings[count++] = (eddy_binding){names[3 + i], w->states[i], EDDY_ROLE_STATE};
    }
    for (int i = 0; i < OUTPUTS; i++)
        bindings[count++] = (eddy_binding){names[5 + i], clones[i], EDDY_ROLE_OUTPUT};
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, count});
    cr_assert_not_null(program, "seed %llu: %s", (unsigned long long)seed,
                       (eddy_error_take(&error), error.message));
    return program;
}

static void expect_bits(eddy_tensor *a, eddy_tensor *b, uint64_t seed, const char *what) {
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    float *first = malloc(bytes), *second = malloc(bytes);
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    must(eddy_read(a, first, bytes, NULL));
    must(eddy_read(b, second, bytes, NULL));
    for (size_t i = 0; i < bytes / sizeof(float); i++) /* no op promises the sign of a NaN */
        if (first[i] != first[i] && second[i] != second[i])
            first[i] = second[i] = 0;
    cr_assert_arr_eq(first, second, bytes, "seed %llu: %s", (unsigned long long)seed, what);
    free(first);
    free(second);
}

/* The program, on other inputs, against the calls. */
static void compare(eddy_program *program, world *recorded, uint64_t seed, int64_t size,
                    uint64_t numbers) {
    world w, replayed;
    eddy_tensor *eager[OUTPUTS], *outputs[OUTPUTS];
    make_world(&w, numbers, size, false);
    make_world(&replayed, numbers, size, false);
    w.generator = recorded->generator;
    drawn before = drawn_so_far(w.generator);
    must(call(&w, seed, eager));
    drawn after = drawn_so_far(w.generator);
    draw_again(w.generator, &before);
    for (int i = 0; i < STATES; i++)
        must(eddy_copy_into(replayed.states[i], recorded->states[i]));
    must(eddy_program_run(program, (eddy_list){replayed.inputs, 3}, outputs));
    expect_drawn(w.generator, &after, seed);
    for (int i = 0; i < 3; i++) {
        bool is_gone = eddy_wait(replayed.inputs[i], EDDY_FOREVER) == EDDY_INVALID_ARGUMENT;
        eddy_error_take(NULL);
        cr_assert_eq(is_gone, recorded->donated >> i & 1, "seed %llu", (unsigned long long)seed);
        if (!is_gone && i < 2)
            expect_bits(w.inputs[i], replayed.inputs[i], seed, "input");
    }
    for (int i = 0; i < OUTPUTS; i++)
        expect_bits(eddy_contiguous(eager[i]), outputs[i], seed, "output");
    for (int i = 0; i < STATES; i++)
        expect_bits(w.states[i], recorded->states[i], seed, "state");
}

/* With a row that is not there what depends on it is poisoned, and nothing else happens. */
static void fail(eddy_program *program, world *recorded, int64_t size) {
    world w;
    eddy_tensor *outputs[OUTPUTS];
    eddy_error error;
    make_world(&w, 5, size, true);
    must(eddy_program_run(program, (eddy_list){w.inputs, 3}, outputs));
    for (int i = 0; i < OUTPUTS; i++) {
        eddy_status status = eddy_wait(outputs[i], EDDY_FOREVER);
        eddy_error_take(&error);
        cr_assert(status == EDDY_OK || status == EDDY_OUT_OF_RANGE);
    }
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(&error);
    for (int i = 0; i < STATES; i++)
        must(eddy_copy_into(w.states[i], recorded->states[i]));
}

/* The text of groups that run tile by tile is for readers alone. */
static void replace_by_text(eddy_program **program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(*program, &info));
    if (info.group_count > 0)
        return;
    eddy_program *copy = reread(*program, "nest");
    eddy_program_release(program);
    *program = copy;
}

static void try_seed(uint64_t seed) {
    eddy_scope *scope = eddy_scope_begin();
    uint64_t draw = seed;
    int64_t size = below(&draw, 3) ? 3 + (int64_t)below(&draw, 4) : 70;
    eddy_record_options options = {.size = sizeof(options),
                                   .passes = below(&draw, 4) ? "all" : "none",
                                   .records_only = below(&draw, 2)};
    world w;
    make_world(&w, seed, size, false);
    w.generator = eddy_generator_create(seed);
    w.donated = below(&draw, 8);
    eddy_program *program = record(&w, seed, &options);
    for (uint64_t i = 0; i < 4; i++) {
        if (i == 2) {
            fail(program, &w, size);
            replace_by_text(&program);
        }
        compare(program, &w, seed, size, seed * 10 + i);
    }
    eddy_generator_release(&w.generator);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(control_random, nests_give_the_bits_of_the_calls, .timeout = 600) {
    const char *first = getenv("EDDY_TEST_SEED");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    uint64_t seeds = getenv("EDDY_TEST_LONG") ? 20000 : ROUNDS_OF(150);
    for (uint64_t seed = from; seed < from + seeds; seed++)
        if (rounds_has_next())
            try_seed(seed);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- gradients through branches ---- */

#define EXACT 4

typedef struct exact {
    eddy_tensor *leaf, *x, *index;
} exact;

static eddy_tensor *integers(uint64_t *seed) {
    double values[EXACT * EXACT];
    for (int i = 0; i < EXACT * EXACT; i++)
        values[i] = (double)below(seed, 7) - 3;
    return eddy_from_data(values, EDDY_SHAPE(EXACT, EXACT), EDDY_F64, NULL);
}

static void make_exact(exact *e, uint64_t numbers) {
    static const int64_t rows[EXACT] = {2, 0, 3, 2};
    uint64_t leaf = 5;
    e->leaf = integers(&leaf);
    e->x = integers(&numbers);
    e->index = eddy_from_data(rows, EDDY_SHAPE(EXACT), EDDY_I64, NULL);
    eddy_requires_grad_set(e->leaf, true);
    eddy_requires_grad_set(e->x, true);
}

static eddy_tensor *exact_loss(const exact *e, uint64_t seed) {
    node root = {.seed = seed, .output_count = OUTPUTS, .index = e->index, .leaf = e->leaf};
    eddy_tensor *outputs[OUTPUTS];
    must(random_block(&root, EDDY_LIST(e->x, e->leaf), outputs));
    eddy_tensor *sum = eddy_add(outputs[0], eddy_add(outputs[1], outputs[2]));
    return eddy_sum(eddy_add(sum, eddy_mul_s(e->leaf, EDDY_S(2))), EDDY_ALL_AXES, NULL);
}

/* Zeros for NULL. */
static void expect_equal(eddy_tensor *a, eddy_tensor *b, uint64_t seed, const char *what) {
    double first[EXACT * EXACT] = {0}, second[EXACT * EXACT] = {0};
    if (a)
        must(eddy_read(a, first, sizeof(first), NULL));
    if (b)
        must(eddy_read(b, second, sizeof(second), NULL));
    for (int i = 0; i < EXACT * EXACT; i++)
        cr_assert(first[i] == second[i] || (first[i] != first[i] && second[i] != second[i]),
                  "seed %llu: %s: %g, the program has %g", (unsigned long long)seed, what, first[i],
                  second[i]);
}

static void expect_equal_grads(eddy_tensor *a, eddy_tensor *b, uint64_t seed, const char *what) {
    expect_equal(eddy_has_grad(a) ? eddy_grad_of(a) : NULL,
                 eddy_has_grad(b) ? eddy_grad_of(b) : NULL, seed, what);
}

/* is_node: the backward pass goes through the run; else it is a part of the program. */
static eddy_program *record_exact(const exact *e, uint64_t seed, bool is_node, bool records_only) {
    eddy_error error = {0};
    eddy_program *program;
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    eddy_tensor *loss = exact_loss(e, seed);
    if (!is_node)
        must(eddy_backward(loss));
    eddy_tensor *result = is_node ? loss : eddy_detach(loss);
    eddy_binding items[3] = {{"x", e->x, EDDY_ROLE_INPUT}, {"loss", result, EDDY_ROLE_OUTPUT}};
    eddy_bindings bindings = {items, 2};
    if (!is_node && eddy_has_grad(e->x))
        items[bindings.count++] = (eddy_binding){"grad", eddy_grad_of(e->x), EDDY_ROLE_OUTPUT};
    program = is_node ? eddy_record_end_with_grad(&bindings) : eddy_record_end(&bindings);
    cr_assert_not_null(program, "seed %llu: %s", (unsigned long long)seed,
                       (eddy_error_take(&error), error.message));
    return program;
}

static void replace_by_file(eddy_program **program) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-nest-%ld.program", (long)getpid());
    must(eddy_program_save(*program, path));
    eddy_program_release(program);
    *program = eddy_program_load(path);
    eddy_error error = {0};
    cr_assert_not_null(*program, "%s", (eddy_error_take(&error), error.message));
    unlink(path);
}

static void keep_nest(const eddy_program *program, uint64_t seed) {
    char name[32];
    snprintf(name, sizeof(name), "nest-%llu", (unsigned long long)seed);
    keep_text(program, name);
}

/* Back through the squares of the gradients of the loss. */
static eddy_status go_twice(eddy_tensor *loss, eddy_tensor *x, eddy_tensor *leaf) {
    eddy_tensor *grads[2], *sum = loss;
    eddy_status status = eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(x, leaf), (eddy_list){0},
                                          EDDY_OPTIONS(backward, .creates_graph = true), grads);
    for (int i = 0; i < 2 && status == EDDY_OK; i++)
        if (grads[i] != EDDY_NONE)
            sum = eddy_add(sum, eddy_sum(eddy_square(grads[i]), EDDY_ALL_AXES, NULL));
    return status == EDDY_OK ? eddy_backward(sum) : status;
}

static void try_twice(const exact *recorded, eddy_program *program, uint64_t seed,
                      uint64_t numbers) {
    exact called, given;
    eddy_tensor *loss = NULL;
    make_exact(&called, numbers);
    make_exact(&given, numbers);
    must(eddy_grads_zero(EDDY_LIST(recorded->leaf)));
    drawn before = drawn_so_far(NULL);
    must(eddy_program_run(program, EDDY_LIST(given.x), &loss));
    must(go_twice(loss, given.x, recorded->leaf));
    draw_again(NULL, &before);
    must(go_twice(exact_loss(&called, seed), called.x, called.leaf));
    expect_equal_grads(called.leaf, recorded->leaf, seed, "leaf, twice");
    expect_equal_grads(called.x, given.x, seed, "x, twice");
}

static void try_exact(uint64_t seed) {
    eddy_scope *scope = eddy_scope_begin();
    uint64_t draw = seed;
    bool is_node = below(&draw, 2), records_only = below(&draw, 2);
    exact recorded, called, given;
    make_exact(&recorded, seed);
    eddy_program *program = record_exact(&recorded, seed, is_node, records_only);
    keep_nest(program, seed);
    for (uint64_t i = 0; i < 4; i++) {
        eddy_tensor *results[2];
        if (i == 2 && !is_node)
            replace_by_file(&program);
        make_exact(&called, 10 * seed + i);
        make_exact(&given, 10 * seed + i);
        must(eddy_grads_zero(EDDY_LIST(recorded.leaf)));
        drawn before = drawn_so_far(NULL);
        eddy_tensor *loss = exact_loss(&called, seed);
        must(eddy_backward(loss));
        drawn after = drawn_so_far(NULL);
        draw_again(NULL, &before);
        must(eddy_program_run(program, EDDY_LIST(given.x), results));
        if (is_node)
            must(eddy_backward(results[0]));
        expect_drawn(NULL, &after, seed);
        double values[2];
        must(eddy_read(loss, &values[0], sizeof(double), NULL));
        must(eddy_read(results[0], &values[1], sizeof(double), NULL));
        cr_assert(values[0] == values[1] || values[0] != values[0], "seed %llu",
                  (unsigned long long)seed);
        if (is_node || i < 2) /* a file says nothing of leaves */
            expect_equal_grads(called.leaf, recorded.leaf, seed, "leaf");
        if (is_node)
            expect_equal_grads(called.x, given.x, seed, "x");
        else if (eddy_program_output(program, "grad") == 1)
            expect_equal(eddy_has_grad(called.x) ? eddy_grad_of(called.x) : NULL, results[1], seed,
                         "x as an output");
        eddy_error_take(NULL);
    }
    for (uint64_t i = 0; i < 4 && is_node; i++)
        try_twice(&recorded, program, seed, 10 * seed + i);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(control_random, gradients_of_nests_are_those_of_the_calls, .timeout = 600) {
    const char *first = getenv("EDDY_TEST_SEED");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    uint64_t seeds = getenv("EDDY_TEST_LONG") ? 20000 : ROUNDS_OF(150);
    for (uint64_t seed = from; seed < from + seeds; seed++)
        if (rounds_has_next())
            try_exact(seed);
    cr_assert_eq(eddy_live_count(), 0);
}
