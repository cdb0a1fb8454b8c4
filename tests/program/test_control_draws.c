/* Random ops in branches and loops: a run draws what the calls would draw, and leaves generators where they would. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>
#include <tests/rounds.h>

#define SIZE 37
#define OUTPUTS 3

/* What functions draw from: NULL, the thread's own. */
typedef struct noise {
    eddy_generator *first, *second;
} noise;

static eddy_tensor *uniform(eddy_generator *generator) {
    return eddy_rand(EDDY_SHAPE(SIZE), EDDY_F32, EDDY_OPTIONS(rand, .generator = generator));
}

static eddy_tensor *drop(eddy_tensor *x, eddy_generator *generator) {
    return eddy_dropout(x, EDDY_S(0.5), EDDY_OPTIONS(dropout, .generator = generator));
}

/* Two draws of one generator. */
static eddy_status noisy(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const noise *n = context;
    return done(outputs, eddy_add(drop(inputs.items[0], n->first), uniform(n->first)));
}

/* One of each of two generators, and one whose result nobody uses. */
static eddy_status mixed(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const noise *n = context;
    eddy_tensor *x = inputs.items[0], *unused = uniform(n->first);
    return unused ? done(outputs, eddy_sub(drop(x, n->second), uniform(n->first)))
                  : EDDY_INVALID_ARGUMENT;
}

/* (count, x): the test draws, too, and does not use it. */
static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const noise *n = context;
    if (!uniform(n->second))
        return EDDY_INVALID_ARGUMENT;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

/* A step with a branch in it. */
static eddy_status step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *x = inputs.items[1], *mean = eddy_mean(x, EDDY_ALL_AXES, NULL),
                *is_low = eddy_lt_s(mean, EDDY_S(1));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    if (!outputs[0] || !is_low)
        return EDDY_INVALID_ARGUMENT;
    return eddy_cond(is_low, noisy, mixed, context, EDDY_LIST(x), 1, NULL, &outputs[1]);
}

static eddy_status row_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[2] = drop(inputs.items[1], ((noise *)context)->first);
    return outputs[2] ? step(context, inputs, outputs) : EDDY_INVALID_ARGUMENT;
}

/* (x, slice) -> (x, row) */
static eddy_status scan_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const noise *n = context;
    outputs[0] = eddy_mul(drop(inputs.items[0], n->first), inputs.items[1]);
    outputs[1] = eddy_add(uniform(n->second), inputs.items[0]);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Draws before a branch, in it and behind it, and so with loops. */
static void compute(noise *n, eddy_tensor *x, eddy_tensor *count, eddy_tensor **outputs) {
    eddy_tensor *z = eddy_add(x, uniform(n->first)), *carried[3];
    eddy_tensor *is_large = eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0));
    must(eddy_cond(is_large, noisy, mixed, n, EDDY_LIST(z), 1, NULL, &z));
    z = eddy_mul(drop(z, n->second), eddy_add_s(uniform(n->first), EDDY_S(0.5)));
    must(eddy_while(is_left, step, n, EDDY_LIST(count, z), NULL, carried));
    z = eddy_add(carried[1], uniform(n->first));
    must(eddy_while(is_left, row_step, n, EDDY_LIST(count, z),
                    EDDY_OPTIONS(while, .most_steps = 8, .list_count = 1), carried));
    eddy_tensor *last = eddy_add(carried[1], uniform(n->second)), *scanned[2];
    must(eddy_scan(scan_step, n, EDDY_LIST(last), EDDY_LIST(eddy_expand(x, EDDY_SHAPE(3, SIZE))), 2,
                   EDDY_OPTIONS(scan, .is_rolled = true), scanned));
    outputs[0] = eddy_add(scanned[0], uniform(n->first));
    outputs[1] = carried[2];
    outputs[2] = scanned[1];
}

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(SIZE), EDDY_S(value), EDDY_F32, NULL);
}

typedef struct state {
    uint64_t words[4];
} state;

static eddy_generator *named(eddy_generator *generator) {
    return generator ? generator : eddy_generator_default();
}

static state state_of(const noise *n) {
    state s;
    must(eddy_generator_state(named(n->first), &s.words[0], &s.words[1]));
    must(eddy_generator_state(named(n->second), &s.words[2], &s.words[3]));
    return s;
}

static void restore(const noise *n, const state *s) {
    must(eddy_generator_restore(named(n->first), s->words[0], s->words[1]));
    must(eddy_generator_restore(named(n->second), s->words[2], s->words[3]));
}

static void expect_same_state(const noise *n, const state *expected, const char *what) {
    state is = state_of(n);
    cr_assert_eq(memcmp(&is, expected, sizeof(is)), 0, "%s: counters %llu and %llu, not %llu, %llu",
                 what, (unsigned long long)is.words[1], (unsigned long long)is.words[3],
                 (unsigned long long)expected->words[1], (unsigned long long)expected->words[3]);
}

static void expect_same(eddy_tensor *is, eddy_tensor *expected, const char *what) {
    float a[16 * SIZE], b[16 * SIZE];
    int64_t count = eddy_count_of(is);
    cr_assert_leq(count, 16 * SIZE);
    size_t bytes = (size_t)count * sizeof(float);
    must(eddy_read(is, a, bytes, NULL));
    must(eddy_read(expected, b, bytes, NULL));
    cr_assert_eq(memcmp(a, b, bytes), 0, "%s", what);
}

/* The program and its text give what the calls give, for other inputs and other states of the generators. */
static void try_run(eddy_program *program, noise *n, double value, double steps, const char *what) {
    eddy_tensor *x = filled(value), *count = scalar(steps), *expected[OUTPUTS], *is[OUTPUTS];
    state before = state_of(n);
    compute(n, x, count, expected);
    state after = state_of(n);
    restore(n, &before);
    must(eddy_program_run(program, EDDY_LIST(x, count), is));
    expect_same_state(n, &after, what);
    for (int i = 0; i < OUTPUTS; i++)
        expect_same(is[i], expected[i], what);
}

static void try_all(noise *n, const char *passes, bool records_only) {
    if (!rounds_has_next())
        return;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(-1), *count = scalar(2), *outputs[OUTPUTS], *expected[OUTPUTS];
    state before = state_of(n);
    compute(n, x, count, expected);
    state after = state_of(n);
    restore(n, &before);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes, .records_only = records_only)));
    compute(n, x, count, outputs);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"count", count, EDDY_ROLE_INPUT},
                          {"a", outputs[0], EDDY_ROLE_OUTPUT}, {"b", outputs[1], EDDY_ROLE_OUTPUT},
                          {"c", outputs[2], EDDY_ROLE_OUTPUT}));
    expect_same_state(n, records_only ? &before : &after, "recorded");
    for (int i = 0; i < OUTPUTS && !records_only; i++)
        expect_same(outputs[i], expected[i], "recorded");
    eddy_program *copy = reread(program, passes);
    for (int i = 0; i < 8; i++) {
        try_run(program, n, i % 3 - 0.9, i % 4, "program");
        try_run(copy, n, i % 2 - 0.5, i, "its text");
    }
    eddy_program_release(&copy);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(control_draws, a_run_draws_what_the_calls_draw) {
    noise own = {0}, one = {.first = eddy_generator_create(3)},
          two = {eddy_generator_create(4), eddy_generator_create(5)};
    noise *all[] = {&own, &one, &two};
    for (int i = 0; i < 3; i++)
        for (int records_only = 0; records_only < 2; records_only++) {
            try_all(all[i], "all", records_only);
            try_all(all[i], "none", records_only);
        }
    eddy_generator_release(&one.first);
    eddy_generator_release(&two.first);
    eddy_generator_release(&two.second);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- other ways to run ---- */

/* Rows of what each step draws: a loop of as many steps as x has ones, at most 16. */
static eddy_status draw_row(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = uniform(context);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status is_positive(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_tensor *draw_rows(eddy_generator *generator, eddy_tensor *count) {
    eddy_tensor *outputs[2];
    must(eddy_while(is_positive, draw_row, generator, EDDY_LIST(count),
                    EDDY_OPTIONS(while, .most_steps = 16, .list_count = 1), outputs));
    return outputs[1];
}

static eddy_program *record_rows(eddy_generator *generator) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *count = scalar(1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *rows = draw_rows(generator, count);
    eddy_program *program =
        end(EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_OUTPUT}));
    eddy_scope_end(scope);
    return program;
}

static uint64_t counter_of(eddy_generator *generator) {
    uint64_t seed, counter;
    must(eddy_generator_state(named(generator), &seed, &counter));
    return counter;
}

#define RUNS 24

typedef struct drawer {
    eddy_program *program;
    double sums[RUNS * 16]; /* of each row */
    int count;
} drawer;

static void *draw_in_thread(void *context) {
    drawer *d = context;
    for (int i = 0; i < RUNS; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *rows;
        must(eddy_program_run(d->program, EDDY_LIST(scalar(i % 16)), &rows));
        eddy_tensor *sums = eddy_sum(rows, EDDY_AXES(1), NULL);
        for (int k = 0; k < i % 16; k++)
            d->sums[d->count++] = eddy_item_f64(eddy_select(sums, 0, k), NULL);
        eddy_scope_end(scope);
    }
    return NULL;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Which of two threads gets which numbers is open; that each is drawn once is not. */
Test(control_draws, threads_share_a_generator) {
    eddy_generator *generator = eddy_generator_create(11), *alone = eddy_generator_create(11);
    drawer drawers[2] = {{.program = record_rows(generator)}};
    drawers[1].program = drawers[0].program;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, draw_in_thread, &drawers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    int count = drawers[0].count + drawers[1].count;
    cr_assert_eq(counter_of(generator), (uint64_t)count);
    double sums[2 * RUNS * 16];
    memcpy(sums, drawers[0].sums, sizeof(double) * (size_t)drawers[0].count);
    memcpy(sums + drawers[0].count, drawers[1].sums, sizeof(double) * (size_t)drawers[1].count);
    qsort(sums, (size_t)count, sizeof(double), compare);
    double expected[2 * RUNS * 16];
    for (int i = 0; i < count; i++) {
        eddy_tensor *drawn = uniform(alone);
        expected[i] = sum_of(eddy_sum(eddy_unsqueeze(drawn, 0), EDDY_AXES(1), NULL));
    }
    qsort(expected, (size_t)count, sizeof(double), compare);
    cr_assert_eq(memcmp(sums, expected, sizeof(double) * (size_t)count), 0);
    eddy_program_release(&drawers[0].program);
    eddy_generator_release(&generator);
    eddy_generator_release(&alone);
}

static void *run_in_thread(void *context) {
    drawer *d = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *rows;
    must(eddy_seed(5));
    uint64_t before = counter_of(NULL);
    must(eddy_program_run(d->program, EDDY_LIST(scalar(3)), &rows));
    d->count = (int)(counter_of(NULL) - before);
    must(eddy_seed(5));
    expect_same(rows, draw_rows(NULL, scalar(3)), "of the thread's own");
    eddy_scope_end(scope);
    return NULL;
}

Test(control_draws, a_thread_draws_from_its_own) {
    drawer d = {.program = record_rows(NULL)};
    pthread_t thread;
    uint64_t before = counter_of(NULL);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&thread, NULL, run_in_thread, &d), 0);
        pthread_join(thread, NULL);
        cr_assert_eq(d.count, 3);
    }
    cr_assert_eq(counter_of(NULL), before);
    eddy_program_release(&d.program);
}

/* State, numbers and seeds that change between runs. */
Test(control_draws, a_new_seed_begins_anew) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record_rows(NULL);
    eddy_tensor *rows[2], *count = scalar(5);
    for (int i = 0; i < 2; i++) {
        must(eddy_seed(9));
        must(eddy_program_run(program, EDDY_LIST(count), &rows[i]));
        cr_assert_eq(counter_of(NULL), 5);
    }
    expect_same(rows[0], rows[1], "after the same seed");
    must(eddy_generator_restore(eddy_generator_default(), 9, 2));
    must(eddy_program_run(program, EDDY_LIST(scalar(2)), &rows[1]));
    expect_same(eddy_contiguous(eddy_narrow(rows[1], 0, 0, 2)),
                eddy_contiguous(eddy_narrow(rows[0], 0, 2, 2)), "from a state that was restored");
    cr_assert_eq(counter_of(NULL), 4);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What is fetched does not change what is drawn, nor does a draw whose result nobody uses. */
Test(control_draws, what_is_fetched_changes_no_draw) {
    eddy_scope *scope = eddy_scope_begin();
    noise n = {.first = eddy_generator_create(2)};
    eddy_tensor *x = filled(1), *count = scalar(2), *outputs[OUTPUTS], *fetched, *all[OUTPUTS];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all", .records_only = true)));
    compute(&n, x, count, outputs);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"count", count, EDDY_ROLE_INPUT},
                          {"a", outputs[0], EDDY_ROLE_OUTPUT}, {"b", outputs[1], EDDY_ROLE_OUTPUT},
                          {"c", outputs[2], EDDY_ROLE_OUTPUT}));
    state before = state_of(&n);
    must(eddy_program_run(program, EDDY_LIST(x, count), all));
    state after = state_of(&n);
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < OUTPUTS; i++) {
        restore(&n, &before);
        must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}, {"count", count}),
                                    EDDY_FETCHES({names[i], &fetched}), NULL));
        expect_same_state(&n, &after, names[i]);
        expect_same(fetched, all[i], names[i]);
    }
    eddy_program_release(&program);
    eddy_generator_release(&n.first);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Parts of larger inputs draw one after the other. */
Test(control_draws, batches_draw_in_their_order) {
    eddy_scope *scope = eddy_scope_begin();
    noise n = {.first = eddy_generator_create(2)};
    eddy_tensor *x = filled(1), *count = scalar(2), *outputs[OUTPUTS], *merged, *parts[3];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all", .records_only = true)));
    compute(&n, x, count, outputs);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"count", count, EDDY_ROLE_INPUT},
                          {"a", outputs[0], EDDY_ROLE_OUTPUT}));
    state before = state_of(&n);
    for (int i = 0; i < 3; i++) {
        compute(&n, filled(i - 1), count, outputs);
        parts[i] = outputs[0];
    }
    state after = state_of(&n);
    restore(&n, &before);
    eddy_list all = EDDY_LIST(filled(-1), filled(0), filled(1));
    must(eddy_program_run_batches(program, EDDY_LIST(eddy_cat(all, 0), count), &merged));
    expect_same_state(&n, &after, "batches");
    expect_same(merged, eddy_cat((eddy_list){parts, 3}, 0), "batches");
    eddy_program_release(&program);
    eddy_generator_release(&n.first);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The number, computed by what takes a while and runs elsewhere. */
static eddy_tensor *computed(double number) {
    int64_t size = eddy_device_current().kind == EDDY_DEVICE_CPU ? 300 : 100;
    eddy_tensor *large = eddy_zeros(EDDY_SHAPE(size, size), EDDY_F32, NULL);
    for (int i = 0; i < 4; i++)
        large = eddy_mm(large, large);
    return eddy_add_s(eddy_sum(large, EDDY_ALL_AXES, NULL), EDDY_S(number));
}

/* A run that writes nothing is waited for, too. */
Test(control_draws, a_run_without_results_draws) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *count = scalar(2), *outputs[2];
    eddy_generator *generator = eddy_generator_create(1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
    must(eddy_while(is_positive, draw_row, generator, EDDY_LIST(count),
                    EDDY_OPTIONS(while, .most_steps = 16, .list_count = 1), outputs));
    eddy_program *program = end(EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}));
    for (int i = 0; i < 20; i++) {
        uint64_t before = counter_of(generator);
        must(eddy_program_run(program, EDDY_LIST(computed(i % 5)), NULL));
        cr_assert_eq(counter_of(generator), before + (uint64_t)(i % 5));
    }
    eddy_program_release(&program);
    eddy_generator_release(&generator);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- failures ---- */

/* (count, index, x): step by step the index grows; it fails once it is no row of the table. Draws before and behind. */
static eddy_status look_up(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *table = eddy_expand(filled(1), EDDY_SHAPE(3, SIZE)),
                *x = drop(inputs.items[2], context),
                *row = eddy_index_select(table, inputs.items[1], 0);
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add_s(inputs.items[1], EDDY_S(1));
    outputs[2] = eddy_add(drop(eddy_squeeze(row, EDDY_AXES(0)), context), x);
    return outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* The test reads what may have failed. */
static eddy_status is_positive_and_fine(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *sum = eddy_sum(inputs.items[2], EDDY_ALL_AXES, NULL);
    return done(outputs, eddy_logical_and(eddy_gt_s(inputs.items[0], EDDY_S(0)),
                                          eddy_gt_s(sum, EDDY_S(-1e6))));
}

typedef struct failing {
    eddy_block *test;
    eddy_generator *generator;
} failing;

static eddy_status test_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return ((failing *)context)->test(NULL, inputs, outputs);
}

static eddy_status body_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return look_up(((failing *)context)->generator, inputs, outputs);
}

static eddy_status fail_late(failing *f, eddy_tensor *count, eddy_tensor *x, eddy_tensor **y) {
    eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL), *carried[3];
    eddy_status status = eddy_while(test_of, body_of, f, EDDY_LIST(count, index, x), NULL, carried);
    if (status == EDDY_OK)
        *y = eddy_add(carried[2], uniform(f->generator));
    return status;
}

/* What is skipped has drawn, and steps that nobody begins have not. */
static void try_failing(failing *f, const char *passes, bool poisons_input) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *count = scalar(1), *y = NULL, *is, *bad, *other;
    f->generator = eddy_generator_create(6);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    must(fail_late(f, count, x, &y));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"count", count, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    bad = eddy_squeeze(eddy_index_select(eddy_expand(x, EDDY_SHAPE(1, SIZE)),
                                         eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_I64, NULL), 0),
                       EDDY_AXES(0));
    for (int steps = 0; steps < 6; steps++) {
        eddy_tensor *given = poisons_input ? bad : x;
        bool fails = poisons_input || steps > 3;
        must(eddy_generator_restore(f->generator, 6, 0));
        eddy_status status = fail_late(f, scalar(steps), given, &y);
        uint64_t counter = counter_of(f->generator);
        bool stops = f->test == is_positive_and_fine && fails;
        cr_assert_eq(status != EDDY_OK, stops);
        must(eddy_generator_restore(f->generator, 6, 0));
        must(eddy_program_run(program, EDDY_LIST(given, scalar(steps)), &is));
        /* Where the calls end, a run goes on behind the loop. */
        cr_assert_eq(counter_of(f->generator), counter + stops, "%d steps: %d and %d", steps,
                     (int)counter_of(f->generator), (int)counter);
        eddy_error error;
        cr_assert_eq(eddy_error_of(is, EDDY_FOREVER, &error) != EDDY_OK, fails, "%d steps", steps);
        if (!fails)
            expect_same(is, y, "nothing failed");
    }
    /* Afterwards all is as ever. */
    must(eddy_generator_restore(f->generator, 6, 0));
    must(fail_late(f, scalar(2), x, &y));
    must(eddy_generator_restore(f->generator, 6, 0));
    must(eddy_program_run(program, EDDY_LIST(x, scalar(2)), &other));
    expect_same(other, y, "afterwards");
    eddy_program_release(&program);
    eddy_generator_release(&f->generator);
    (void)!eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    eddy_error_take(NULL);
}

Test(control_draws, what_is_skipped_has_drawn) {
    static eddy_block *const tests[] = {is_positive, is_positive_and_fine};
    for (int i = 0; i < 8; i++) {
        failing f = {.test = tests[i & 1]};
        try_failing(&f, i & 2 ? "all" : "none", i & 4);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

typedef struct summing {
    eddy_generator *generator;
    eddy_tensor *sum;
} summing;

/* (count, index): what is dropped out of row `index` of a table of three goes to a tensor that was there before. */
static eddy_status sum_up(void *context, eddy_list inputs, eddy_tensor **outputs) {
    summing *s = context;
    eddy_tensor *table = eddy_expand(filled(1), EDDY_SHAPE(3, SIZE)),
                *row = eddy_squeeze(eddy_index_select(table, inputs.items[1], 0), EDDY_AXES(0));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add_s(inputs.items[1], EDDY_S(1));
    return eddy_add_inplace(s->sum, drop(row, s->generator));
}

static void sum_all(summing *s, eddy_tensor *count) {
    eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL), *carried[2];
    must(eddy_while(is_positive, sum_up, s, EDDY_LIST(count, index), NULL, carried));
    must(eddy_add_inplace(s->sum, uniform(s->generator)));
}

/* Steps that fail leave the sum as it was, and the generator where it would be. */
Test(control_draws, what_was_skipped_is_recovered) {
    eddy_scope *scope = eddy_scope_begin();
    summing called = {eddy_generator_create(8), filled(0)},
            replayed = {eddy_generator_create(8), filled(0)};
    eddy_tensor *count = scalar(1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    sum_all(&replayed, count);
    eddy_program *program = end(
        EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}, {"sum", replayed.sum, EDDY_ROLE_STATE}));
    for (int steps = 0; steps < 6; steps++) {
        eddy_error error;
        sum_all(&called, scalar(steps));
        must(eddy_program_run(program, EDDY_LIST(scalar(steps)), NULL));
        cr_assert_eq(counter_of(replayed.generator), counter_of(called.generator));
        eddy_status status = eddy_error_of(called.sum, EDDY_FOREVER, &error);
        cr_assert_eq(eddy_error_of(replayed.sum, EDDY_FOREVER, &error), status);
        cr_assert_eq(status, steps > 3 ? EDDY_SKIPPED : EDDY_OK);
        if (status != EDDY_OK)
            must(eddy_recover(EDDY_LIST(called.sum, replayed.sum)));
        expect_same(replayed.sum, called.sum, "sum");
    }
    eddy_program_release(&program);
    eddy_generator_release(&called.generator);
    eddy_generator_release(&replayed.generator);
    (void)!eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- waiting ---- */

typedef struct callback {
    eddy_program *program;
    eddy_tensor *count;
    eddy_status status;
    char message[512];
} callback;

static void run_in_callback(void *context, const void *data, int64_t bytes,
                            const eddy_error *error) {
    callback *c = context;
    eddy_tensor *rows;
    eddy_error taken;
    (void)data, (void)bytes, (void)error;
    c->status = eddy_program_run(c->program, EDDY_LIST(c->count), &rows);
    eddy_error_take(&taken);
    snprintf(c->message, sizeof(c->message), "%s", taken.message);
}

Test(control_draws, a_callback_cannot_wait) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *generator = eddy_generator_create(1);
    callback c = {.program = record_rows(generator), .count = scalar(2)};
    must(eddy_read_async(c.count, run_in_callback, &c));
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(c.status, EDDY_WOULD_DEADLOCK);
    cr_assert_str_eq(c.message, "program_run: the program draws random numbers in a branch or a "
                                "loop, so that a run is waited for, and a callback may not wait");
    cr_assert_eq(counter_of(generator), 0);
    eddy_program_release(&c.program);
    eddy_generator_release(&generator);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* As with the calls, it is too late then for what was submitted before the wait. */
Test(control_draws, a_run_that_nobody_can_wait_for_draws_later) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *generator = eddy_generator_create(1);
    eddy_program *program = record_rows(generator);
    eddy_tensor *count = scalar(2), *rows;
    cr_assert_not_null(eddy_map(count, EDDY_WRITE, EDDY_FOREVER));
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(count), &rows), EDDY_WOULD_DEADLOCK);
    eddy_error_take(NULL);
    cr_assert_eq(counter_of(generator), 0);
    must(eddy_unmap(count));
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(counter_of(generator), 2);
    eddy_program_release(&program);
    eddy_generator_release(&generator);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
