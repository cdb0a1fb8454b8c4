/* Random functions, as calls and as programs under autograd: the same bits. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>
#include <tests/rounds.h>

#define ROWS 4
#define COLUMNS 6
#define PARAMS 3
#define VALUES_MOST 64
#define OUTPUTS_MOST 8
#define OUTPUTS_WITH_WAYS 3          /* up to so many have programs to go back by */
#define LOSS_BITS (OUTPUTS_MOST + 1) /* which outputs it is of, and whether of their squares */
#define FUNCTIONS ROUNDS_OF(1000)

static void must(eddy_status status, uint64_t seed) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "function %llu: %s", (unsigned long long)seed, error.message);
}

static uint32_t next(uint64_t *random, uint32_t below) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % below;
}

typedef struct world {
    uint64_t seed;
    eddy_tensor *params[PARAMS]; /* a matrix, a row, a whole */
    eddy_tensor *state;
    int output_count, calls;
    bool is_twice; /* back through the gradients, too */
} world;

typedef struct results {
    eddy_tensor *outputs[OUTPUTS_MOST], *grads[PARAMS + 2];
    int count,
        root_count; /* of calls: the outputs that they have made and that carry gradients, each once */
} results;

static eddy_tensor *one_of(eddy_tensor **values, int count, uint64_t *random) {
    /* The newest ones more often, so that the graph is deep. */
    int among = next(random, 2) || count < 4 ? count : 4;
    return values[count - 1 - (int)next(random, (uint32_t)among)];
}

static eddy_tensor *swap_halves(eddy_tensor *x) {
    eddy_tensor *left = eddy_narrow(x, 1, 0, 2), *right = eddy_narrow(x, 1, 2, COLUMNS - 2);
    return eddy_cat(EDDY_LIST(right, left), 1);
}

static eddy_tensor *in_place(eddy_tensor *x, eddy_tensor *other, world *w) {
    eddy_tensor *made = eddy_mul_s(x, EDDY_S(0.5));
    must(eddy_add_into(made, other, made), w->seed);
    must(eddy_relu_into(made, made), w->seed);
    return made;
}

static eddy_tensor *touch_state(eddy_tensor *x, world *w) {
    eddy_no_grad_begin();
    must(eddy_add_into(w->state, eddy_tanh(x), w->state), w->seed);
    eddy_no_grad_end();
    return eddy_mul(x, eddy_tanh(w->state));
}

static eddy_tensor *apply(eddy_tensor **values, int count, world *w, uint64_t *random) {
    eddy_tensor *a = one_of(values, count, random), *b = one_of(values, count, random);
    switch (next(random, 18)) {
    case 0:
        return eddy_tanh(a);
    case 1:
        return eddy_sigmoid(a);
    case 2:
        return eddy_add(a, b);
    case 3:
        return eddy_mul(a, b);
    case 4:
        return eddy_sub(a, w->params[1]);
    case 5:
        return eddy_linear(a, w->params[0],
                           next(random, 2) ? eddy_reshape(w->params[1], EDDY_SHAPE(COLUMNS))
                                           : EDDY_NONE);
    case 6:
        return swap_halves(a);
    case 7:
        return eddy_softmax(a, next(random, 2) ? 1 : 0);
    case 8:
        return eddy_reshape(eddy_t(a), EDDY_SHAPE(ROWS, COLUMNS));
    case 9:
        return eddy_sub(a, eddy_mean(b, EDDY_AXES(1),
                                     &(eddy_mean_options){.size = sizeof(eddy_mean_options),
                                                          .keeps_dims = true}));
    case 10:
        return eddy_dropout(a, EDDY_S(0.25), NULL);
    case 11:
        return in_place(a, b, w);
    case 12:
        return touch_state(a, w);
    case 13:
        return eddy_mul(eddy_detach(a), b);
    case 14:
        return eddy_maximum(a, w->params[2]);
    case 15:
        return eddy_expand(eddy_narrow(a, 0, 1, 1), EDDY_SHAPE(ROWS, COLUMNS));
    case 16:
        return eddy_layer_norm(a, EDDY_NONE, EDDY_NONE, 1, NULL);
    default:
        return eddy_gelu(a, NULL);
    }
}

/* The function of this seed, on inputs of ROWS x COLUMNS. */
static int compute(world *w, eddy_tensor **inputs, eddy_tensor **outputs) {
    uint64_t random = w->seed;
    eddy_tensor *values[VALUES_MOST] = {inputs[0], inputs[1], w->params[2]};
    int count = 3, steps = 3 + (int)next(&random, 30),
        output_count = 1 + (int)next(&random, OUTPUTS_MOST);
    for (int i = 0; i < steps; i++, count++) {
        values[count] = apply(values, count, w, &random);
        must(values[count] ? EDDY_OK : EDDY_INVALID_ARGUMENT, w->seed);
    }
    for (int i = 0; i < output_count; i++)
        outputs[i] = i == 0 ? values[count - 1] : one_of(values, count, &random);
    return output_count;
}

static eddy_tensor *leaf(eddy_tensor *tensor) {
    (void)!eddy_requires_grad_set(tensor, true);
    return tensor;
}

static void make_inputs(uint64_t random, eddy_tensor **inputs) {
    must(eddy_seed(random & 0xffff), random);
    for (int i = 0; i < 2; i++)
        inputs[i] = eddy_randn(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    if (random >> 20 & 1)
        leaf(inputs[0]);
}

/* The squares of the gradients of the loss, which a pass with creates_graph gives, with the loss itself or without; the loss where its gradients are
 * constants. */
static eddy_tensor *penalty(const world *w, eddy_tensor **inputs, eddy_tensor *loss,
                            bool has_loss) {
    eddy_tensor *of[PARAMS + 2], *grads[PARAMS + 2] = {0}, *sum = NULL;
    int count = 0;
    for (int i = 0; i < PARAMS + 2; i++) {
        of[count] = i < PARAMS ? w->params[i] : inputs[i - PARAMS];
        count += eddy_requires_grad(of[count]);
    }
    must(eddy_backward_to(EDDY_LIST(loss), (eddy_list){of, count}, (eddy_list){0},
                          EDDY_OPTIONS(backward, .creates_graph = true), grads),
         w->seed);
    for (int i = 0; i < count; i++) {
        if (grads[i] == EDDY_NONE)
            continue;
        eddy_tensor *part = eddy_sum(eddy_square(grads[i]), EDDY_ALL_AXES, NULL);
        sum = sum ? eddy_add(sum, part) : part;
    }
    if (!sum || !eddy_requires_grad(sum))
        return loss;
    return has_loss ? eddy_add(sum, loss) : sum;
}

static int count_roots(const world *w, eddy_tensor **inputs, const results *r) {
    int count = 0;
    for (int i = 0; i < r->count; i++) {
        eddy_tensor *output = r->outputs[i];
        bool is_new = output != inputs[0] && output != inputs[1] && output != w->params[2];
        for (int k = 0; k < i; k++)
            is_new &= output != r->outputs[k];
        count += is_new && eddy_requires_grad(output);
    }
    return count;
}

/* program, recorded: NULL for the calls. */
static results run(world *w, eddy_program *program, eddy_recorded *recorded, uint64_t values,
                   uint32_t used) {
    results r = {0};
    eddy_tensor *inputs[2], *loss = NULL;
    make_inputs(values, inputs);
    must(eddy_grads_zero((eddy_list){w->params, PARAMS}), w->seed);
    must(eddy_copy_into(eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL), w->state), w->seed);
    if (program) {
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(program, &info), w->seed);
        r.count = (int)info.output_count;
        must(eddy_program_run(program, (eddy_list){inputs, 2}, r.outputs), w->seed);
    } else if (recorded) {
        r.count = w->output_count;
        must(eddy_recorded_run(recorded, (eddy_list){inputs, 2}, (eddy_scalars){0}, r.outputs),
             w->seed);
    } else {
        r.count = w->output_count = compute(w, inputs, r.outputs);
        r.root_count = count_roots(w, inputs, &r);
    }
    for (int i = 0; i < r.count; i++) {
        if (!(used >> i & 1) || !eddy_requires_grad(r.outputs[i]))
            continue;
        eddy_tensor *part =
            eddy_sum(used >> OUTPUTS_MOST & 1 ? r.outputs[i] : eddy_square(r.outputs[i]),
                     EDDY_ALL_AXES, NULL);
        loss = loss ? eddy_add(loss, part) : part;
    }
    if (loss && w->is_twice)
        loss = penalty(w, inputs, loss, values & 1);
    if (loss)
        must(eddy_backward(loss), w->seed);
    for (int i = 0; i < PARAMS + 2; i++) {
        eddy_tensor *of = i < PARAMS ? w->params[i] : inputs[i - PARAMS];
        if (eddy_requires_grad(of) && eddy_has_grad(of))
            r.grads[i] = eddy_clone(eddy_grad_of(of));
    }
    must(EDDY_OK, w->seed);
    return r;
}

/* Of two or three outputs, sums may have another order: the gradients that come from outside are added first. Where passes go through the calls, they
 * have the same. */
static void expect_same(const world *w, eddy_tensor *a, eddy_tensor *b, bool is_exact,
                        const char *what, int i) {
    float x[COLUMNS * COLUMNS], y[COLUMNS * COLUMNS];
    cr_assert_eq(!a, !b, "function %llu: %s %d", (unsigned long long)w->seed, what, i);
    if (!a)
        return;
    int64_t count = eddy_count_of(a);
    must(eddy_read(a, x, (size_t)count * sizeof(*x), NULL), w->seed);
    must(eddy_read(b, y, (size_t)count * sizeof(*y), NULL), w->seed);
    for (int64_t k = 0; k < count; k++)
        cr_assert(memcmp(&x[k], &y[k], sizeof(*x)) == 0 ||
                      (!is_exact && fabsf(x[k] - y[k]) <= 1e-4f * (1 + fabsf(x[k]))),
                  "function %llu, %s %d at %lld: %.9g and %.9g", (unsigned long long)w->seed, what,
                  i, (long long)k, (double)x[k], (double)y[k]);
}

static void compare(const world *w, const results *calls, const results *runs) {
    for (int i = 0; i < calls->count; i++)
        expect_same(w, calls->outputs[i], runs->outputs[i], true, "output", i);
    for (int i = 0; i < PARAMS + 2; i++)
        expect_same(w, calls->grads[i], runs->grads[i],
                    calls->count == 1 || calls->root_count > OUTPUTS_WITH_WAYS || w->is_twice,
                    "gradient", i);
}

static eddy_program *record(world *w, uint64_t values) {
    static const char *const names[] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"};
    eddy_tensor *inputs[2], *outputs[OUTPUTS_MOST];
    make_inputs(values, inputs);
    must(eddy_record_begin(NULL), w->seed);
    int count = compute(w, inputs, outputs);
    eddy_binding bindings[2 + OUTPUTS_MOST] = {{"x0", inputs[0], EDDY_ROLE_INPUT},
                                               {"x1", inputs[1], EDDY_ROLE_INPUT}};
    for (int i = 0; i < count; i++)
        bindings[2 + i] = (eddy_binding){names[i], outputs[i], EDDY_ROLE_OUTPUT};
    return eddy_record_end_with_grad(&(eddy_bindings){bindings, 2 + count});
}

static world make_world(uint64_t seed, bool is_twice) {
    world w = {.seed = seed, .is_twice = is_twice};
    must(eddy_seed(seed), seed);
    w.params[0] = leaf(eddy_randn(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_F32, NULL));
    w.params[1] = leaf(eddy_randn(EDDY_SHAPE(1, COLUMNS), EDDY_F32, NULL));
    w.params[2] = leaf(eddy_randn(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL));
    w.state = eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    return w;
}

/* Whether it has become a program. */
static bool check(uint64_t seed, bool is_twice) {
    eddy_scope *scope = eddy_scope_begin();
    world w = make_world(seed, is_twice);
    uint64_t wants = (seed & 1) << 20;
    eddy_program *program = record(&w, wants | 77);
    for (uint32_t k = 0; k < 4 && program; k++) {
        uint32_t used = k == 0 ? UINT32_MAX : (uint32_t)(seed >> (LOSS_BITS * k));
        results calls = run(&w, NULL, NULL, wants | k, used);
        results runs = run(&w, program, NULL, wants | k, used);
        compare(&w, &calls, &runs);
    }
    bool is_made = program != NULL;
    eddy_error error = {0};
    if (!is_made) {
        eddy_error_take(&error);
        /* A function whose last value saw a saved tensor written, or whose outputs carry none. */
        cr_assert(error.status == EDDY_INVALID_ARGUMENT, "function %llu: %s",
                  (unsigned long long)seed, error.message);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    must(EDDY_OK, seed);
    must(eddy_sync(EDDY_FOREVER), seed);
    cr_assert_eq(eddy_live_count(), 0, "function %llu", (unsigned long long)seed);
    return is_made;
}

static eddy_status body(void *context, eddy_recorded_call *call) {
    world *w = context;
    w->calls++;
    (void)!compute(w, (eddy_tensor **)call->inputs.items, call->outputs);
    return EDDY_OK;
}

/* Whether it was replayed. */
static bool check_recorded(uint64_t seed, bool is_twice) {
    eddy_scope *scope = eddy_scope_begin();
    world w = make_world(seed, is_twice);
    uint64_t wants = (seed & 1) << 20;
    eddy_recorded *recorded = NULL;
    for (uint32_t k = 0; k < 5; k++) {
        uint32_t used = (uint32_t)(seed >> (LOSS_BITS * k));
        results calls = run(&w, NULL, NULL, wants | k, used);
        if (!recorded)
            recorded = eddy_recorded_create(body, &w, w.output_count, NULL);
        results runs = run(&w, NULL, recorded, wants | k, used);
        compare(&w, &calls, &runs);
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(EDDY_OK, seed);
    must(eddy_sync(EDDY_FOREVER), seed);
    cr_assert_eq(eddy_live_count(), 0, "function %llu", (unsigned long long)seed);
    return w.calls < 5;
}

static void check_many(bool (*check_one)(uint64_t seed, bool is_twice), uint64_t random,
                       bool is_twice) {
    int done = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        random = random * UINT64_C(2862933555777941757) + 3037000493u;
        done += check_one(random >> 8, is_twice);
    }
    cr_assert_gt(done, FUNCTIONS / 2, "%d", done);
}

Test(gradient_random, recorded_functions_have_the_bits_of_the_functions, .timeout = 300) {
    check_many(check_recorded, 1998, false);
}

Test(gradient_random, calls_and_runs_have_the_same_bits, .timeout = 300) {
    check_many(check, 2026, false);
}

Test(gradient_random, gradients_of_gradients_through_recorded_functions, .timeout = 300) {
    check_many(check_recorded, 1915, true);
}

Test(gradient_random, gradients_of_gradients_through_runs, .timeout = 300) {
    check_many(check, 2027, true);
}
