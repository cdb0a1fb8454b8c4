/* Programs with several streams: where they have them, and that whoever runs their steps, values, errors and their order are those of the calls. */
#include <base/atomic.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/towers.h>
#include <unistd.h>

#define WIDTH 48
/* So deep that several streams pay on a machine that is some times as fast as those of today, too. */
#define DEPTH 80
#define RUNS 20

static eddy_tensor *matrix(double value) {
    return eddy_full(EDDY_SHAPE(WIDTH, WIDTH), EDDY_S(value), EDDY_F32, NULL);
}

/* Two towers that know nothing of each other, and their sum. */
typedef struct towers {
    eddy_tensor *weights[2];
    int depth;
} towers;

static towers towers_of(int depth) {
    return (towers){.weights = {matrix(0.011), matrix(0.013)}, .depth = depth};
}

static eddy_tensor *compute(const towers *t, eddy_tensor *x) {
    return eddy_add(towers_grow(x, t->weights[0], t->depth),
                    towers_grow(x, t->weights[1], t->depth));
}

static eddy_program *record(const towers *t, eddy_tensor *x) {
    must(eddy_record_begin(NULL));
    eddy_tensor *y = compute(t, x);
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

/* ---- where there are several ---- */

Test(streams_run, towers_have_a_stream_each) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(DEPTH);
    eddy_program *program = record(&t, matrix(0.5));
    eddy_program_info info = info_of(program);
    cr_assert_eq(info.stream_count, 2);
    cr_assert_eq(info.wait_count, 1);
    cr_assert_eq(info.dependency_count, 1);
    cr_assert(info.streams_ns > 0 && info.streams_ns < info.estimated_ns / 4 * 3);
    static char text[1 << 16];
    FILE *file = fmemopen(text, sizeof(text), "w");
    must(eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = true)));
    fclose(file);
    cr_assert_not_null(strstr(text, "# 2 streams, 1 dependency between them, 1 wait; "));
    cr_assert_not_null(strstr(text, "; step 0.1;"));
    cr_assert_not_null(strstr(text, "; step 1.1;"));
    cr_assert_not_null(strstr(text, "; step 1.161 behind 0.160;"));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

static int64_t streams_of(const eddy_runtime_options *options, int depth) {
    eddy_runtime *runtime = towers_enter(options);
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(depth);
    eddy_program *program = record(&t, matrix(0.5));
    eddy_program_info info = info_of(program);
    cr_assert_eq(info.streams_ns > 0, info.stream_count > 1);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
    return info.stream_count;
}

Test(streams_run, the_option_says_how_many) {
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 2), DEPTH), 2);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 2), 1), 1);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 1), DEPTH), 1);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 3), 1), 3);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 1, .program_streams = 3), DEPTH), 1);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .uses_one_thread = true), DEPTH), 1);
    cr_assert_eq(streams_of(EDDY_OPTIONS(runtime, .threads = 2, .checks_finite = true), DEPTH), 1);
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .program_streams = 5)));
    eddy_error_take(NULL);
}

Test(streams_run, branches_keep_one) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *p = truth(true), *y;
    must(eddy_record_begin(NULL));
    must(eddy_cond(p, twice, half, NULL, EDDY_LIST(x), 1, NULL, &y));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"p", p, EDDY_ROLE_INPUT},
                                              {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).stream_count, 1);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* ---- what they give ---- */

static const eddy_runtime_options ways[] = {
    {.size = sizeof(eddy_runtime_options), .threads = 1},
    {.size = sizeof(eddy_runtime_options), .threads = 2},
    {.size = sizeof(eddy_runtime_options), .threads = 4},
    {.size = sizeof(eddy_runtime_options), .threads = 2, .program_streams = 2},
    {.size = sizeof(eddy_runtime_options), .threads = 2, .program_streams = 4},
    {.size = sizeof(eddy_runtime_options),
     .threads = 4,
     .program_streams = 3,
     .uses_worker_path = true},
    {.size = sizeof(eddy_runtime_options),
     .threads = 2,
     .program_streams = 2,
     .uses_full_path = true},
    {.size = sizeof(eddy_runtime_options), .uses_one_thread = true, .program_streams = 2}};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void compare_values(void) {
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(DEPTH);
    eddy_program *program = record(&t, matrix(0.5));
    /* Long enough to try both ways, where times decide. */
    for (int i = 0; i < 50; i++) {
        eddy_scope *turn = eddy_scope_begin();
        eddy_tensor *x = matrix(0.1 * i), *y;
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, compute(&t, x), "towers");
        eddy_scope_end(turn);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(streams_run, values_are_those_of_the_calls) {
    for (size_t i = 0; i < WAYS; i++) {
        eddy_runtime *runtime = towers_enter(&ways[i]);
        compare_values();
        towers_leave(&runtime);
    }
}

static eddy_tensor *dropped(const towers *t, eddy_tensor *x, eddy_generator *generator) {
    eddy_tensor *left = towers_grow(x, t->weights[0], 4), *right = towers_grow(x, t->weights[1], 4);
    left = eddy_dropout(left, EDDY_S(0.5), EDDY_OPTIONS(dropout, .generator = generator));
    right = eddy_dropout(right, EDDY_S(0.5), EDDY_OPTIONS(dropout, .generator = generator));
    return eddy_cat(
        EDDY_LIST(towers_grow(left, t->weights[0], 2), towers_grow(right, t->weights[1], 2)), 0);
}

Test(streams_run, draws_are_those_of_the_calls) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(4);
    eddy_generator *one = eddy_generator_create(3), *other = eddy_generator_create(3);
    eddy_tensor *x = matrix(0.5), *y;
    must(eddy_record_begin(NULL));
    y = dropped(&t, x, one);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).stream_count, 2);
    must_have_same_bits(y, dropped(&t, x, other), "recorded");
    for (int i = 0; i < 20; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, dropped(&t, x, other), "drawn");
    }
    eddy_program_release(&program);
    eddy_generator_release(&one);
    eddy_generator_release(&other);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* Chains with numbers of the call, of which each stream has a copy. */
static eddy_tensor *scaled(eddy_tensor *h, eddy_tensor *weight, eddy_scalar number) {
    for (int i = 0; i < 4; i++)
        h = eddy_add(eddy_mul_s(eddy_sin(eddy_matmul(h, weight)), number), h);
    return h;
}

static eddy_status scale(void *context, eddy_recorded_call *call) {
    const towers *t = context;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_cat(EDDY_LIST(scaled(x, t->weights[0], call->scalars[0]),
                                          scaled(eddy_cos(x), t->weights[1], call->scalars[1])),
                                0);
    return EDDY_OK;
}

Test(streams_run, numbers_are_those_of_the_call) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(4);
    eddy_recorded *recorded = eddy_recorded_create(scale, &t, 1, NULL);
    for (int i = 0; i < 20; i++) {
        eddy_scalars numbers = EDDY_SCALARS(EDDY_S(0.5 * i), EDDY_S(1 - 0.25 * i));
        eddy_tensor *x = matrix(0.1 * i), *y, *wanted;
        eddy_recorded_call call = {.size = sizeof(call),
                                   .inputs = EDDY_LIST(x),
                                   .scalars = numbers.items,
                                   .scalar_count = 2,
                                   .outputs = &wanted,
                                   .output_count = 1};
        must(eddy_recorded_run(recorded, EDDY_LIST(x), numbers, &y));
        must(scale(&t, &call));
        must_have_same_bits(y, wanted, "scaled");
    }
    char text[256];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_not_null(strstr(text, "replayed 18 times"), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* Rows that are sorted, for which each step has memory of its own. */
static eddy_tensor *sorted(eddy_tensor *h, eddy_tensor *weight) {
    for (int i = 0; i < 4; i++) {
        eddy_tensor *values, *indices;
        must(eddy_sort(eddy_sin(eddy_matmul(h, weight)), 1, NULL, &values, &indices));
        h = values;
    }
    return h;
}

static eddy_tensor *compute_sorted(const towers *t, eddy_tensor *x) {
    eddy_tensor *y = eddy_div_s(eddy_cumsum(x, 1), EDDY_S(7));
    return eddy_cat(EDDY_LIST(sorted(x, t->weights[0]), sorted(y, t->weights[1])), 0);
}

Test(streams_run, what_steps_work_in_is_their_own) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *many =
        eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(WIDTH * WIDTH), EDDY_S(1), EDDY_F32, NULL),
                     EDDY_SHAPE(WIDTH, WIDTH));
    towers t = {.weights = {eddy_sin(many), eddy_cos(many)}};
    eddy_tensor *x = eddy_sin(many), *y;
    must(eddy_record_begin(NULL));
    y = compute_sorted(&t, x);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).stream_count, 2);
    for (int i = 0; i < 20; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, compute_sorted(&t, x), "sorted");
        x = eddy_add_s(x, EDDY_S(0.125));
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* Products that are added to others: with fast passes at once, where the sum lies. */
static eddy_tensor *added(eddy_tensor *h, const towers *t) {
    for (int i = 0; i < 6; i++)
        h = eddy_tanh(
            eddy_add(eddy_matmul(h, t->weights[0]), eddy_matmul(eddy_sin(h), t->weights[1])));
    return h;
}

static void run_added(int64_t streams, float *found) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(
        runtime, .threads = 2, .program_streams = streams, .passes = "all,accumulate"));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(0);
    eddy_tensor *x = matrix(0.5), *y;
    must(eddy_record_begin(NULL));
    y = eddy_cat(EDDY_LIST(added(x, &t), added(eddy_cos(x), &t)), 0);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program_info info = info_of(program);
    cr_assert_eq(info.stream_count, streams);
    cr_assert_eq(info.recorded_count - info.instruction_count, 12, "sums that are no calls");
    for (int i = 0; i < RUNS; i++) {
        must(eddy_program_run(program, EDDY_LIST(matrix(0.1 * i)), &y));
        must(eddy_read(y, found + i * 2 * WIDTH * WIDTH, 2 * WIDTH * WIDTH * sizeof(*found), NULL));
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

Test(streams_run, products_are_added_at_once) {
    static float one[RUNS * 2 * WIDTH * WIDTH], two[RUNS * 2 * WIDTH * WIDTH];
    run_added(1, one);
    run_added(2, two);
    cr_assert_eq(memcmp(one, two, sizeof(one)), 0);
}

/* ---- what fails ---- */

#define RESULTS 5

/* Look-ups in both towers, that fail each for itself, what follows from them, and a state that both write. */
typedef struct lookups {
    towers towers;
    eddy_tensor *state;
} lookups;

static void look_up(const lookups *l, eddy_tensor *const *places, eddy_tensor **results) {
    const towers *t = &l->towers;
    eddy_tensor *left = towers_grow(l->state, t->weights[0], 3),
                *right = towers_grow(left, t->weights[1], 1);
    results[0] = towers_grow(eddy_index_select(left, places[0], 0), t->weights[0], 3);
    results[1] = towers_grow(eddy_index_select(right, places[1], 0), t->weights[1], 3);
    results[2] = eddy_add(results[0], results[1]);
    results[3] = towers_grow(left, t->weights[1], 2);
    results[4] = eddy_neg(eddy_index_select(results[3], places[2], 0));
    must(eddy_add_into(results[1], l->state, l->state));
    must(eddy_add_into(results[0], l->state, l->state));
}

static eddy_tensor *places_of(int64_t first) {
    int64_t places[WIDTH];
    for (int64_t i = 0; i < WIDTH; i++)
        places[i] = i;
    places[0] = first;
    return eddy_from_data(places, EDDY_SHAPE(WIDTH), EDDY_I64, NULL);
}

static eddy_tensor *poisoned(void) {
    return eddy_gather(places_of(0), places_of(WIDTH), 0);
}

typedef struct outcome {
    eddy_status statuses[RESULTS + 1];
    char texts[RESULTS + 1][512];
    int64_t sequences[RESULTS + 1]; /* from the first call that has failed, which is 1 */
    eddy_status synced;
    char first[512];
} outcome;

static void look(eddy_tensor *const *results, const lookups *l, int64_t before, outcome *o) {
    memset(o, 0, sizeof(*o));
    eddy_error first = {0};
    int64_t lowest = INT64_MAX;
    o->synced = eddy_sync(EDDY_FOREVER);
    if (eddy_error_take(&first))
        memcpy(o->first, first.message, sizeof(first.message));
    for (int i = 0; i <= RESULTS; i++) {
        eddy_error error = {0};
        o->statuses[i] = eddy_error_of(i < RESULTS ? results[i] : l->state, EDDY_FOREVER, &error);
        memcpy(o->texts[i], error.message, sizeof(error.message));
        /* What was poisoned before blames what came before. */
        if (o->statuses[i] != EDDY_OK && (int64_t)error.sequence > before)
            o->sequences[i] = (int64_t)error.sequence;
        if (o->sequences[i] > 0 && o->sequences[i] < lowest)
            lowest = o->sequences[i];
        eddy_error_take(NULL);
    }
    for (int i = 0; i <= RESULTS; i++)
        if (o->sequences[i] > 0)
            o->sequences[i] -= lowest - 1;
}

/* The sequence number of the newest instruction. */
static int64_t newest(void) {
    eddy_error error = {0};
    eddy_tensor *wrong = eddy_gather(places_of(0), places_of(WIDTH), 0);
    (void)eddy_error_of(wrong, EDDY_FOREVER, &error);
    eddy_error_take(NULL);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    return (int64_t)error.sequence;
}

static void expect_same(const outcome *eager, const outcome *replayed, const char *what) {
    cr_assert_eq(eager->synced, replayed->synced, "%s", what);
    cr_assert_str_eq(eager->first, replayed->first, "%s", what);
    for (int i = 0; i <= RESULTS; i++) {
        cr_assert_eq(eager->statuses[i], replayed->statuses[i], "%s: result %d", what, i);
        cr_assert_str_eq(eager->texts[i], replayed->texts[i], "%s: result %d", what, i);
        cr_assert_eq(eager->sequences[i], replayed->sequences[i], "%s: result %d", what, i);
    }
}

/* One of each kind for each of three look-ups: healthy, failing, poisoned. */
static void compare_case(eddy_program *program, lookups *eager, lookups *recorded, int number) {
    eddy_tensor *places[3], *results[RESULTS];
    outcome wanted, got;
    char what[64];
    snprintf(what, sizeof(what), "case %d", number);
    for (int i = 0, kind = number; i < 3; i++, kind /= 3)
        places[i] = kind % 3 == 2 ? poisoned() : places_of(kind % 3 == 1 ? WIDTH + i : 0);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    int64_t before = newest();
    look_up(eager, places, results);
    look(results, eager, before, &wanted);
    before = newest();
    must(eddy_program_run(program, (eddy_list){places, 3}, results));
    look(results, recorded, before, &got);
    expect_same(&wanted, &got, what);
    eddy_tensor *healed = matrix(0.25);
    must(eddy_copy_into(healed, eager->state));
    must(eddy_copy_into(healed, recorded->state));
}

static void compare_failures(void) {
    eddy_scope *scope = eddy_scope_begin();
    lookups eager = {towers_of(0), matrix(0.25)}, recorded = {eager.towers, matrix(0.25)};
    eddy_tensor *places[3] = {places_of(1), places_of(2), places_of(3)}, *results[RESULTS];
    must(eddy_record_begin(NULL));
    look_up(&recorded, places, results);
    eddy_program *program = end(
        EDDY_BINDINGS({"a", places[0], EDDY_ROLE_INPUT}, {"b", places[1], EDDY_ROLE_INPUT},
                      {"c", places[2], EDDY_ROLE_INPUT}, {"r0", results[0], EDDY_ROLE_OUTPUT},
                      {"r1", results[1], EDDY_ROLE_OUTPUT}, {"r2", results[2], EDDY_ROLE_OUTPUT},
                      {"r3", results[3], EDDY_ROLE_OUTPUT}, {"r4", results[4], EDDY_ROLE_OUTPUT}));
    eddy_tensor *healed = matrix(0.25);
    must(eddy_copy_into(healed, recorded.state));
    for (int round = 0; round < 2; round++)
        for (int number = 0; number < 27; number++)
            compare_case(program, &eager, &recorded, number);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(streams_run, errors_are_those_of_the_calls_and_in_their_order) {
    for (size_t i = 0; i < WAYS; i++) {
        eddy_runtime *runtime = towers_enter(&ways[i]);
        compare_failures();
        towers_leave(&runtime);
    }
}

/* Steps that draw have copies of attributes, one for each stream. */
static eddy_tensor *sampled(const towers *t, eddy_tensor *x, eddy_generator *generator) {
    eddy_tensor *left = eddy_multinomial(towers_grow(x, t->weights[0], t->depth), 3,
                                         EDDY_OPTIONS(multinomial, .generator = generator)),
                *right = eddy_multinomial(
                    towers_grow(x, t->weights[1], t->depth), 5,
                    EDDY_OPTIONS(multinomial, .generator = generator, .has_replacement = true));
    return eddy_add(eddy_sum(left, EDDY_ALL_AXES, NULL), eddy_sum(right, EDDY_ALL_AXES, NULL));
}

static void read_failure(eddy_tensor *y, eddy_error *error) {
    cr_assert_neq(eddy_wait(y, EDDY_FOREVER), EDDY_OK);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(error);
}

Test(streams_run, errors_of_draws_are_those_of_the_calls) {
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(4);
    eddy_generator *one = eddy_generator_create(3), *other = eddy_generator_create(3);
    eddy_tensor *x = matrix(0.5), *y;
    must(eddy_record_begin(NULL));
    y = sampled(&t, x, one);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).stream_count, 2);
    must_have_same_bits(y, sampled(&t, x, other), "recorded");
    /* Negative weights are no weights. */
    eddy_tensor *wrong = matrix(-0.5);
    for (int i = 0; i < 20; i++) {
        eddy_error wanted = {0}, found = {0};
        read_failure(sampled(&t, wrong, other), &wanted);
        must(eddy_program_run(program, EDDY_LIST(wrong), &y));
        read_failure(y, &found);
        cr_assert_str_eq(found.message, wanted.message);
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, sampled(&t, x, other), "healthy");
    }
    eddy_program_release(&program);
    eddy_generator_release(&one);
    eddy_generator_release(&other);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* ---- ops of the program's own ---- */

static _Atomic bool is_inside, may_go;

static eddy_status hold_infer(eddy_op_inference *inference) {
    inference->outputs[0] = inference->inputs[0];
    return EDDY_OK;
}

/* Returns when it may. */
static eddy_status hold_run(const eddy_op_call *call) {
    eddy_store_release(&is_inside, true);
    while (!eddy_load_acquire(&may_go))
        usleep(100);
    memcpy(call->views[1].data, call->views[0].data, sizeof(float) * WIDTH * WIDTH);
    return EDDY_OK;
}

static eddy_tensor *held(eddy_tensor *x) {
    eddy_tensor *output = NULL;
    must(eddy_call("streams.hold", EDDY_LIST(x), NULL, &output));
    return output;
}

static void register_hold(void) {
    eddy_operand_description operand = {.name = "x"};
    const char *output = "y";
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = hold_run};
    must(eddy_op_register(&(eddy_op_description){.size = sizeof(eddy_op_description),
                                                 .name = "streams.hold",
                                                 .operands = &operand,
                                                 .operand_count = 1,
                                                 .outputs = &output,
                                                 .output_count = 1,
                                                 .infer = hold_infer,
                                                 .kernels = &kernel,
                                                 .kernel_count = 1}));
}

/* One of the two threads that there are is held by a call, so that no worker comes to the run. */
Test(streams_run, a_run_ends_while_workers_are_held) {
    alarm(60);
    register_hold();
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(DEPTH);
    eddy_tensor *x = matrix(0.5), *wanted = compute(&t, x), *y;
    eddy_program *program = record(&t, x);
    eddy_tensor *last = held(x);
    while (!eddy_load_acquire(&is_inside))
        usleep(100);
    for (int i = 0; i < 5; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, wanted, "held");
    }
    eddy_store_release(&may_go, true);
    must(eddy_wait(last, EDDY_FOREVER));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

Test(streams_run, ops_of_the_programs_own_keep_one) {
    register_hold();
    eddy_store_release(&may_go, true);
    eddy_runtime *runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0.5);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add(held(eddy_neg(x)), eddy_tanh(x));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).stream_count, 1);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* ---- many at once ---- */

#define THREADS 4

static towers shared;
static eddy_program *shared_program;
static eddy_runtime *shared_runtime;

static void *run_often(void *context) {
    must(eddy_runtime_use(shared_runtime));
    for (int i = 0; i < 60; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = matrix(0.01 * i + *(const int *)context), *y;
        must(eddy_program_run(shared_program, EDDY_LIST(x), &y));
        must_have_same_bits(y, compute(&shared, x), "shared");
        eddy_scope_end(scope);
    }
    return NULL;
}

/* More runs than workers: most of them get none, and do all by themselves. */
Test(streams_run, more_runs_than_workers_end_all_the_same) {
    shared_runtime = towers_enter(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    eddy_scope *scope = eddy_scope_begin();
    pthread_t threads[THREADS];
    int numbers[THREADS];
    shared = towers_of(6);
    shared_program = record(&shared, matrix(0.5));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, run_often, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_program_release(&shared_program);
    eddy_scope_end(scope);
    towers_leave(&shared_runtime);
}
