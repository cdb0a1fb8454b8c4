/* Rings: outputs are valid for so many runs. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/runtimes.h>

#define ROWS 3
#define COLUMNS 4
#define COUNT (ROWS * COLUMNS)

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(ROWS, COLUMNS), EDDY_S(value), EDDY_F32, NULL);
}

/* y = x w, row = its first row, sum = its sum, same = x, w */
static eddy_program *make(eddy_tensor *w) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(x, w), *sum = eddy_sum(y, EDDY_ALL_AXES, NULL);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"sum", sum, EDDY_ROLE_OUTPUT},
        {"row", eddy_select(y, 0, 0), EDDY_ROLE_OUTPUT}, {"same", x, EDDY_ROLE_OUTPUT},
        {"w", w, EDDY_ROLE_STATE}, {"state", w, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

enum { Y, SUM, ROW, SAME, STATE, OUTPUTS };

static eddy_output_ring *ring_of(eddy_program *program, int64_t runs) {
    eddy_output_ring *ring = eddy_output_ring_create(program, runs);
    must(ring ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return ring;
}

static void must_be_gone(eddy_tensor *tensor, const char *output, int run, int by, int runs) {
    char sentence[200];
    snprintf(sentence, sizeof(sentence),
             "output %s of run %d of the ring is gone: run %d has taken its place (the ring keeps "
             "%d %s)",
             output, run, by, runs, runs == 1 ? "run" : "runs");
    cr_assert_eq(eddy_wait(tensor, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
}

/* ---- which are gone ---- */

static void keep_two(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 2);
    eddy_tensor *outputs[6][OUTPUTS];
    for (int i = 1; i < 6; i++) {
        must(eddy_output_ring_run(ring, EDDY_LIST(filled(i)), outputs[i]));
        for (int k = 1; k <= i - 2; k++) {
            must_be_gone(outputs[k][Y], "y", k, k + 2, 2);
            must_be_gone(outputs[k][ROW], "y", k, k + 2, 2);
            must_be_gone(outputs[k][SUM], "sum", k, k + 2, 2);
            cr_assert_eq(sum_of(outputs[k][SAME]), COUNT * k, "an input is none of the run's");
            cr_assert_eq(sum_of(outputs[k][STATE]), 3 * COUNT, "nor is state");
        }
        for (int k = i > 1 ? i - 1 : 1; k <= i; k++) {
            cr_assert_eq(sum_of(outputs[k][Y]), 3 * COUNT * k);
            cr_assert_eq(sum_of(outputs[k][ROW]), 3 * COLUMNS * k);
            cr_assert_eq(eddy_item_f64(outputs[k][SUM], NULL), 3 * COUNT * k);
        }
    }
    eddy_output_ring_release(&ring);
    cr_assert_null(ring);
    eddy_program_release(&program);
    cr_assert_eq(sum_of(outputs[4][Y]), 3 * COUNT * 4, "those that the ring ended with stay");
    must_be_gone(outputs[3][Y], "y", 3, 5, 2);
}

Test(output_ring, the_outputs_of_the_last_runs_are_there_and_older_ones_are_gone) {
    in_runtimes(keep_two);
}

/* ---- who notices ---- */

static void seen(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)data;
    (void)bytes;
    *(eddy_status *)context = error ? error->status : EDDY_OK;
}

static void read_in_every_way(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old[OUTPUTS], *next[OUTPUTS];
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), old));
    eddy_tensor *view = eddy_t(old[Y]), *before = eddy_neg(old[Y]);
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(2)), next));
    const char *sentence = "output y of run 1 of the ring is gone: run 2 has taken its place (the "
                           "ring keeps 1 run)";
    float elements[COUNT] = {-1};
    cr_assert_eq(eddy_read(old[Y], elements, sizeof(elements), NULL), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
    cr_assert_eq(elements[0], -1);
    cr_assert_eq(eddy_read(view, elements, sizeof(elements), NULL), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
    cr_assert_null(eddy_map(old[Y], EDDY_READ, EDDY_FOREVER));
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
    cr_assert_null(eddy_to_dlpack(old[Y], NULL));
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
    eddy_item_f64(eddy_sum(old[ROW], EDDY_ALL_AXES, NULL), NULL);
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
    eddy_status status = EDDY_OK;
    must(eddy_read_async(old[Y], seen, &status));
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_sync_deleters(EDDY_FOREVER));
    cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
    cr_assert_eq(sum_of(before), -3 * COUNT, "what was issued before has the elements");
    must(eddy_copy_into(filled(7), old[Y]));
    cr_assert_eq(sum_of(old[ROW]), 7 * COLUMNS, "a write of all of it takes memory anew");
    cr_assert_eq(sum_of(next[Y]), 6 * COUNT);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, every_read_of_a_stale_output_is_an_error) {
    in_runtimes(read_in_every_way);
}

static void map_meanwhile(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old[OUTPUTS], *next[OUTPUTS];
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), old));
    const float *mapped = eddy_map(old[Y], EDDY_READ, EDDY_FOREVER);
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(2)), next));
    cr_assert_eq(eddy_wait(next[Y], 0), EDDY_TIMED_OUT, "the run waits for the end of the lend");
    eddy_error_take(NULL);
    cr_assert_eq(mapped[0], 3);
    must(eddy_unmap(old[Y]));
    cr_assert_eq(sum_of(next[Y]), 6 * COUNT);
    must_be_gone(old[Y], "y", 1, 2, 1);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, a_run_waits_for_a_lend_of_what_it_makes_old) {
    in_runtimes(map_meanwhile);
}

static void share(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old[OUTPUTS], *next[OUTPUTS];
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), old));
    eddy_scope *scope = eddy_scope_begin();
    struct DLManagedTensorVersioned *shared = eddy_to_dlpack(old[Y], NULL);
    eddy_tensor *back = eddy_from_dlpack(shared, NULL);
    for (int i = 2; i < 5; i++)
        must(eddy_output_ring_run(ring, EDDY_LIST(filled(i)), next));
    must_be_gone(old[Y], "y", 1, 2, 1);
    cr_assert_eq(sum_of(next[Y]), 12 * COUNT);
    cr_assert_eq(sum_of(back), 3 * COUNT, "who got the memory has the elements");
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_sync_deleters(EDDY_FOREVER));
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, memory_that_another_library_has_stays) {
    in_runtimes(share);
}

/* ---- memory ---- */

#define BIG (1 << 18)

static eddy_program *make_big(void) {
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(BIG), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add_s(x, EDDY_S(1));
    return eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}

static eddy_vm_counters counters(void) {
    must(eddy_sync(EDDY_FOREVER));
    return eddy_vm_counters_read(eddy_runtime_current()->vm);
}

static void forget(void) {
    enum { RUNS = 3, ROUNDS = 20 };
    eddy_program *program = make_big();
    eddy_output_ring *ring = ring_of(program, RUNS);
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(BIG), EDDY_F32, NULL), *y[ROUNDS];
    for (int i = 0; i < RUNS; i++)
        must(eddy_output_ring_run(ring, EDDY_LIST(x), &y[i]));
    eddy_vm_counters before = counters();
    for (int i = RUNS; i < ROUNDS; i++)
        must(eddy_output_ring_run(ring, EDDY_LIST(i > RUNS ? y[i - 1] : x), &y[i]));
    eddy_vm_counters after = counters();
    cr_assert_eq(after.bytes_live, before.bytes_live, "%lld and %lld", (long long)after.bytes_live,
                 (long long)before.bytes_live);
    cr_assert_eq(after.errors_made - before.errors_made, ROUNDS - RUNS);
    cr_assert_eq(after.errors_seen, after.errors_made, "no failures of which anybody has to hear");
    cr_assert_eq(sum_of(y[ROUNDS - 1]), (double)BIG * (ROUNDS - RUNS));
    must_be_gone(y[0], "y", 1, 1 + RUNS, RUNS);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, bounds_the_memory_of_forgotten_outputs) {
    in_runtimes(forget);
}

static void release_each(void) {
    eddy_program *program = make_big();
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(BIG), EDDY_F32, NULL), *y;
    uint64_t errors = counters().errors_made;
    for (int i = 0; i < 5; i++) {
        must(eddy_output_ring_run(ring, EDDY_LIST(x), &y));
        eddy_release(&y);
    }
    cr_assert_eq(counters().errors_made, errors);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, what_nobody_else_holds_is_just_released) {
    in_runtimes(release_each);
}

/* The first state of a step is the last one's output: read, and gone then. */
static void step(void) {
    eddy_program *program = make(filled(2));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *outputs[OUTPUTS], *before = NULL, *x = filled(1);
    for (int i = 1; i <= 5; i++) {
        must(eddy_output_ring_run(ring, EDDY_LIST(x), outputs));
        if (before)
            must_be_gone(before, "y", i - 1, i, 1);
        before = x = outputs[Y];
    }
    cr_assert_eq(sum_of(x), 32 * COUNT);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, an_output_may_be_the_input_of_the_run_that_makes_it_old) {
    in_runtimes(step);
}

/* ---- failures ---- */

static void refuse(void) {
    eddy_program *program = make(filled(3)), *other = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old[OUTPUTS], *next[OUTPUTS] = {0};
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), old));
    cr_assert_eq(eddy_output_ring_run(ring, EDDY_LIST(eddy_t(filled(1))), next),
                 EDDY_SHAPE_MISMATCH);
    eddy_error_take(NULL);
    cr_assert_null(next[Y]);
    cr_assert_eq(sum_of(old[Y]), 3 * COUNT, "nothing was submitted, and nothing is gone");
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(2)), next));
    must_be_gone(old[Y], "y", 1, 2, 1);
    cr_assert_eq(eddy_output_ring_run(NULL, EDDY_LIST(filled(2)), next), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "output_ring_run: there is no ring");
    cr_assert_eq(eddy_program_run_named(other, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES(),
                                        EDDY_OPTIONS(program_run_named, .ring = ring)),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "program_run_named: the ring is another program's");
    cr_assert_null(eddy_output_ring_create(program, 0));
    expect_error(EDDY_INVALID_ARGUMENT, "output_ring_create: a ring of 0 runs");
    cr_assert_null(eddy_output_ring_create(NULL, 1));
    cr_assert_eq(eddy_error_take(NULL), EDDY_INVALID_ARGUMENT);
    eddy_output_ring_release(NULL);
    eddy_output_ring *none = eddy_output_ring_retain(NULL);
    eddy_output_ring_release(&none);
    eddy_output_ring *again = eddy_output_ring_retain(ring);
    eddy_output_ring_release(&again);
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(3)), old));
    cr_assert_eq(sum_of(old[Y]), 9 * COUNT);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
    eddy_program_release(&other);
}

Test(output_ring, a_run_that_is_refused_leaves_the_ring_as_it_is) {
    in_runtimes(refuse);
}

/* x[i], which may be none of its elements. */
static void fail_late(void) {
    eddy_tensor *x = filled(1), *i = eddy_zeros(EDDY_SHAPE(1), EDDY_I64, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_index_select(x, i, 0);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"i", i, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *bad = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL), *old, *next, *last;
    must(eddy_output_ring_run(ring, EDDY_LIST(x, i), &old));
    must(eddy_output_ring_run(ring, EDDY_LIST(x, bad), &next));
    must_be_gone(old, "y", 1, 2, 1);
    cr_assert_eq(eddy_wait(next, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    must(eddy_output_ring_run(ring, EDDY_LIST(x, i), &last));
    cr_assert_eq(sum_of(last), COLUMNS);
    must_be_gone(next, "y", 2, 3, 1);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, a_run_that_fails_late_has_taken_its_place) {
    in_runtimes(fail_late);
}

/* ---- by name ---- */

static void name(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    eddy_tensor *row = NULL, *y = NULL, *target = filled(0);
    /* A program of its own, of which it is the first output. */
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"row", &row}),
                                EDDY_OPTIONS(program_run_named, .ring = ring)));
    must(eddy_program_run_named(
        program, EDDY_FEEDS({"x", filled(2)}), EDDY_FETCHES({"y", &y}),
        EDDY_OPTIONS(program_run_named, .ring = ring, .output_store = store)));
    must_be_gone(row, "row", 1, 2, 1);
    cr_assert_eq(sum_of(y), 6 * COUNT);
    must(eddy_program_run_named(
        program, EDDY_FEEDS({"x", filled(3)}), EDDY_FETCHES(),
        EDDY_OPTIONS(program_run_named, .ring = ring, .targets = EDDY_FEEDS({"y", target}))));
    must_be_gone(y, "y", 2, 3, 1);
    must_be_gone(eddy_tensor_store_get(store, "sum"), "sum", 2, 3, 1);
    cr_assert_eq(sum_of(eddy_tensor_store_get(store, "state")), 3 * COUNT);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", filled(4)}), EDDY_FETCHES(),
                                EDDY_OPTIONS(program_run_named, .ring = ring)));
    cr_assert_eq(sum_of(target), 9 * COUNT, "a target is the caller's");
    eddy_tensor_store_release(&store);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, by_name_the_ring_holds_what_is_fetched) {
    in_runtimes(name);
}

static void late(void) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_nonzero(eddy_relu(x));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old, *unknown, *next;
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), &old));
    cr_assert_eq(eddy_dim_of(old, 0), COUNT);
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), &unknown));
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(0)), &next));
    must_be_gone(old, "y", 1, 2, 1);
    must_be_gone(unknown, "y", 2, 3, 1);
    cr_assert_eq(eddy_dim_of(next, 0), 0);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, outputs_of_late_shape_are_the_rings_too) {
    in_runtimes(late);
}

/* ---- gradients ---- */

/* exp saves its result. */
static void go_back(void) {
    eddy_tensor *x = filled(0);
    must(eddy_requires_grad_set(x, true));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_exp(eddy_mul_s(x, EDDY_S(2)));
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_output_ring *ring = ring_of(program, 1);
    eddy_tensor *old, *next;
    must(eddy_output_ring_run(ring, EDDY_LIST(x), &old));
    eddy_tensor *old_loss = eddy_sum(old, EDDY_ALL_AXES, NULL);
    must(eddy_output_ring_run(ring, EDDY_LIST(x), &next));
    must(eddy_backward(eddy_sum(next, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(eddy_grad_of(x)), 2 * COUNT);
    cr_assert_neq(eddy_backward(old_loss), EDDY_OK);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "was written to in place since"), "%s", error.message);
    cr_assert_eq(sum_of(eddy_grad_of(x)), 2 * COUNT, "no wrong numbers");
    must_be_gone(old, "y", 1, 2, 1);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, a_backward_pass_through_a_stale_output_fails) {
    in_runtimes(go_back);
}

/* ---- threads ---- */

#define THREADS 3
#define ROUNDS 60

typedef struct runner {
    eddy_runtime *runtime;
    eddy_output_ring *ring;
    int number;
} runner;

/* An output is what the run has made, or it is gone: never another run's. */
static void *run_many(void *context) {
    const runner *r = context;
    eddy_runtime_use(r->runtime);
    for (int i = 0; i < ROUNDS; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *outputs[OUTPUTS];
        double value = 1000 * r->number + i;
        must(eddy_output_ring_run(r->ring, EDDY_LIST(filled(value)), outputs));
        float elements[COUNT];
        if (eddy_read(outputs[Y], elements, sizeof(elements), NULL) == EDDY_OK) {
            for (int k = 0; k < COUNT; k++)
                cr_assert_eq(elements[k], 3 * value);
        } else {
            eddy_error error;
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "of the ring is gone"), "%s", error.message);
        }
        eddy_scope_end(scope);
    }
    eddy_runtime_use(NULL);
    return NULL;
}

static void run_at_once(void) {
    eddy_program *program = make(filled(3));
    eddy_output_ring *ring = ring_of(program, 2);
    pthread_t threads[THREADS];
    runner runners[THREADS];
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (runner){eddy_runtime_current(), ring, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    eddy_tensor *first[OUTPUTS], *second[OUTPUTS], *third[OUTPUTS];
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(1)), first));
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(2)), second));
    cr_assert_eq(sum_of(first[Y]), 3 * COUNT);
    must(eddy_output_ring_run(ring, EDDY_LIST(filled(3)), third));
    must_be_gone(first[Y], "y", THREADS * ROUNDS + 1, THREADS * ROUNDS + 3, 2);
    cr_assert_eq(sum_of(second[Y]), 6 * COUNT);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(output_ring, several_threads_run_one_ring) {
    in_runtimes(run_at_once);
}

/* ---- what others write ---- */

/* The ring would give up what the run has just written. */
Test(output_ring, its_outputs_are_no_targets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *first, *second;
    must(eddy_record_begin(NULL));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_exp(x), EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = eddy_output_ring_create(program, 2);
    must(eddy_output_ring_run(ring, EDDY_LIST(x), &first));
    must(eddy_output_ring_run(ring, EDDY_LIST(first), &second));
    eddy_tensor *const held[] = {first, second};
    for (int i = 0; i < 2; i++) {
        eddy_status status = eddy_program_run_named(
            program, EDDY_FEEDS({"x", x}), (eddy_fetches){0},
            EDDY_OPTIONS(program_run_named, .ring = ring, .targets = EDDY_FEEDS({"y", held[i]})));
        cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
        expect_error(EDDY_INVALID_ARGUMENT,
                     "program_run_named: the target of output y is an output of the ring, which "
                     "will give it up, and the program writes it");
        must(eddy_wait(held[i], EDDY_FOREVER));
    }
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- runs that wait ---- */

typedef struct waiting {
    eddy_output_ring *ring;
    eddy_tensor *x;
    eddy_status status;
} waiting;

static void *run_waiting(void *context) {
    waiting *w = context;
    eddy_tensor *y = NULL;
    w->status = eddy_output_ring_run(w->ring, EDDY_LIST(w->x), &y);
    eddy_release(&y);
    eddy_error_take(NULL);
    return NULL;
}

/* A run that waits for the shape of its input, and is refused then, has made nothing old and has no number. */
Test(output_ring, a_run_that_is_refused_late_has_taken_no_turn) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 1), EDDY_I64, NULL), *outputs[4];
    eddy_tensor *mask = eddy_ones(EDDY_SHAPE(5), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    waiting w = {.ring = eddy_output_ring_create(program, 2)};
    for (int i = 0; i < 2; i++)
        must(eddy_output_ring_run(w.ring, EDDY_LIST(x), &outputs[i]));
    cr_assert_not_null(eddy_map(mask, EDDY_WRITE, EDDY_FOREVER));
    w.x = eddy_nonzero(mask);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, run_waiting, &w), 0);
    must(
        eddy_output_ring_run(w.ring, EDDY_LIST(x), &outputs[2])); /* before it, or while it waits */
    must(eddy_unmap(mask));
    pthread_join(thread, NULL);
    cr_assert_eq(w.status, EDDY_SHAPE_MISMATCH);
    cr_assert_eq(eddy_wait(outputs[0], EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "output y of run 1 of the ring is gone: run 3 has taken its place "
                 "(the ring keeps 2 runs)");
    must(eddy_wait(outputs[1], EDDY_FOREVER));
    must(eddy_wait(outputs[2], EDDY_FOREVER));
    eddy_output_ring_release(&w.ring);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- memory ---- */

/* Whatever there is no memory for: a run that was not submitted has made nothing old, and has no number. */
Test(output_ring, a_run_without_memory_has_taken_no_turn) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *first, *second = NULL;
    must(eddy_record_begin(NULL));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_exp(x), EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = eddy_output_ring_create(program, 1);
    must(eddy_output_ring_run(ring, EDDY_LIST(x), &first));
    int64_t failures = 0;
    for (int64_t at = 0; !second; at++) {
        must(eddy_wait(first, EDDY_FOREVER));
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, at, 1);
        eddy_status status = eddy_output_ring_run(ring, EDDY_LIST(x), &second);
        failures += eddy_memory_failures_injected();
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
        cr_assert_eq(status, second ? EDDY_OK : EDDY_OUT_OF_MEMORY);
        (void)eddy_error_take(NULL);
    }
    cr_assert_eq(failures, 3, "its place, the record of what is gone, and the operands");
    cr_assert_eq(eddy_wait(first, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "output y of run 1 of the ring is gone: run 2 has taken its "
                 "place (the ring keeps 1 run)");
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
