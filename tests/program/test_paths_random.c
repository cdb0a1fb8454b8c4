/* Random functions that read what they have computed, and go on as that says: recorded, they give what they give when they are called. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/rounds.h>

#define SEEDS ROUNDS_OF(1500)
#define CALLS 24
#define POOL 8

typedef struct randomly {
    uint64_t seed;
    eddy_tensor *states[2], *table;
    int calls;
} randomly;

static uint64_t below(uint64_t *state, uint64_t bound) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % bound;
}

static eddy_tensor *sum_all(eddy_tensor *x) {
    return eddy_sum(x, EDDY_ALL_AXES, NULL);
}

/* A row of the table, for a number that may lie beyond it. */
static eddy_tensor *row(const randomly *r, eddy_tensor *x) {
    eddy_tensor *index = eddy_cast(eddy_mul_s(eddy_abs(sum_all(x)), EDDY_S(1.5)), EDDY_I64);
    return eddy_index_select(r->table, eddy_reshape(index, EDDY_SHAPE(1)), 0);
}

static eddy_tensor *compute(const randomly *r, eddy_tensor *a, eddy_tensor *b, uint64_t what) {
    switch (what) {
    case 0:
        return eddy_tanh(eddy_add(a, b));
    case 1:
        return eddy_mul(eddy_tanh(a), b);
    case 2:
        return eddy_sub(a, eddy_sigmoid(b));
    case 3:
        return eddy_mul_s(a, EDDY_S(-0.5));
    case 4:
        return eddy_mul(a, eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL));
    case 5:
        return eddy_add(eddy_softmax(a, 0), eddy_flip(b, EDDY_AXES(0)));
    default:
        return eddy_add(a, row(r, b));
    }
}

/* What the function's code makes of a value: a number that decides what comes next. */
static uint64_t decide(eddy_tensor *x, uint64_t how) {
    eddy_tensor *sum = sum_all(x);
    float values[3] = {0};
    switch (how) {
    case 0:
        return (uint64_t)eddy_item_i64(eddy_gt_s(sum, EDDY_S(0)), NULL);
    case 1:
        return (uint64_t)(eddy_item_f64(eddy_sign(sum), NULL) + 1);
    default:
        eddy_read(eddy_flip(eddy_round(eddy_tanh(x)), EDDY_AXES(0)), values, sizeof(values), NULL);
        return (uint64_t)(values[0] * 9 + values[1] * 3 + values[2] + 13);
    }
}

static eddy_status body(void *context, eddy_recorded_call *call) {
    randomly *r = context;
    uint64_t state = r->seed;
    eddy_tensor *pool[POOL] = {call->inputs.items[0], r->states[0], r->states[1]};
    int count = 3, steps = 4 + (int)below(&state, 14);
    r->calls++;
    for (int i = 0; i < steps; i++) {
        eddy_tensor *a = pool[below(&state, (uint64_t)count)],
                    *b = pool[below(&state, (uint64_t)count)];
        uint64_t what = below(&state, 24);
        if (what < 3) {
            state += decide(a, what);
        } else if (what < 6) {
            eddy_tensor *target = r->states[what % 2];
            eddy_add_into(target, eddy_tanh(b), target);
        } else {
            eddy_tensor *made = compute(r, a, b, what % 23 < 22 ? what % 6 : 6);
            if (!made)
                return EDDY_INVALID_ARGUMENT;
            pool[count < POOL ? count++ : 3 + (int)below(&state, POOL - 3)] = made;
        }
    }
    call->outputs[0] = eddy_clone(pool[count - 1]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* What a call leaves behind. */
typedef struct left {
    eddy_status status, synced, read[3];
    char message[600], error[600];
    float values[3][3];
    uint64_t seed, counter;
} left;

static void read_one(eddy_tensor *tensor, left *l, int i) {
    l->read[i] = tensor ? eddy_read(tensor, l->values[i], sizeof(l->values[i]), NULL) : EDDY_IO;
    if (l->read[i] != EDDY_OK)
        memset(l->values[i], 0, sizeof(l->values[i]));
    eddy_error_take(NULL);
}

static left call_one(eddy_recorded *recorded, randomly *r, eddy_tensor *x) {
    static left l;
    eddy_tensor *y = NULL;
    eddy_error error;
    memset(&l, 0, sizeof(l));
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y, .output_count = 1};
    l.status =
        recorded ? eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y) : body(r, &call);
    eddy_error_take(&error);
    snprintf(l.error, sizeof(l.error), "%s: %s", error.op, error.message);
    l.synced = eddy_sync(EDDY_FOREVER);
    eddy_error_take(&error);
    snprintf(l.message, sizeof(l.message), "%s: %s", error.op, error.message);
    read_one(y, &l, 0);
    for (int i = 0; i < 2; i++)
        read_one(r->states[i], &l, 1 + i);
    must(eddy_generator_state(eddy_generator_default(), &l.seed, &l.counter));
    return l;
}

static randomly make(uint64_t seed) {
    float rows[] = {0.5f, -1, 2, 0.25f};
    randomly r = {.seed = seed,
                  .states = {of(0.25), of(-0.5)},
                  .table = eddy_from_data(rows, EDDY_SHAPE(4, 1), EDDY_F32, NULL)};
    return r;
}

/* Returns how often the function did not run; adds the calls in which something failed. */
static int check(uint64_t seed, int *failed) {
    eddy_scope *scope = eddy_scope_begin();
    static left lefts[2][CALLS];
    randomly r[2] = {make(seed), make(seed)};
    eddy_recorded *recorded = eddy_recorded_create(body, &r[0], 1, NULL);
    for (int side = 0; side < 2; side++) {
        uint64_t state = seed;
        eddy_seed(seed);
        for (int i = 0; i < CALLS; i++) {
            eddy_tensor *x = of((double)below(&state, 5) * 0.75 - 1.5);
            lefts[side][i] = call_one(side == 0 ? recorded : NULL, &r[side], x);
            /* Errors are seen, and states begin anew now and then. */
            for (int s = 0; s < 2 && i % 6 == 5; s++)
                must(eddy_copy_into(r[side].states[s], of(0.25 * s - 0.5)));
        }
    }
    for (int i = 0; i < CALLS; i++)
        *failed += lefts[1][i].synced != EDDY_OK;
    for (int i = 0; i < CALLS; i++)
        cr_assert_eq(memcmp(&lefts[0][i], &lefts[1][i], sizeof(left)), 0,
                     "seed %llu, call %d: status %d and %d, %s | %s, %s | %s",
                     (unsigned long long)seed, i, lefts[0][i].status, lefts[1][i].status,
                     lefts[0][i].error, lefts[1][i].error, lefts[0][i].message,
                     lefts[1][i].message);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
    return r[1].calls - r[0].calls;
}

static void check_all(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    must(eddy_runtime_use(runtime));
    int replayed = 0, failed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        replayed += check(seed, &failed);
    cr_assert_gt(replayed, SEEDS * CALLS / 4, "%d", replayed);
    cr_assert_gt(failed, SEEDS / 4, "%d", failed);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

Test(paths_random, are_those_of_the_calls_on_one_thread) {
    check_all(EDDY_OPTIONS(runtime, .uses_one_thread = true));
}

Test(paths_random, are_those_of_the_calls_on_two) {
    check_all(EDDY_OPTIONS(runtime, .threads = 2));
}

Test(paths_random, are_those_of_the_calls_where_each_op_is_looked_at) {
    check_all(EDDY_OPTIONS(runtime, .threads = 1, .checks_finite = true));
}
