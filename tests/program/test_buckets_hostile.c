/* Buckets of sizes where somebody means harm: sizes and numbers at the ends of their types, limits of memory, tensors that are somebody else's, threads. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/sized.h>
#include <tests/program/taped.h>
#include <unistd.h>

#define WIDTH 8

static eddy_status squares(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_matmul(eddy_softmax(eddy_matmul(x, eddy_transpose(x, 0, 1)), 1), x);
    return EDDY_OK;
}

/* ---- ends of types ---- */

static void try_most(eddy_status (*body)(void *, eddy_recorded_call *), int64_t most) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = body, .width = WIDTH};
    eddy_recorded *recorded = sized_record(&f, most);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= 12; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets_hostile, the_largest_size_may_be_any_number) {
    alarm(60);
    for (int bits = 56; bits < 64; bits++) {
        try_most(sized_attends, (int64_t)(UINT64_MAX >> (64 - bits)));
        try_most(squares, (int64_t)(UINT64_MAX >> (64 - bits)));
    }
}

static eddy_status adds_far(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    uint64_t below_four = (uint64_t)(4 - eddy_dim_of(x, 0));
    call->outputs[0] = eddy_add_s(x, EDDY_S((int64_t)(below_four << 62)));
    return EDDY_OK;
}

/* From 0 and 2^62 follows -2^63 at a distance of two, divided by -1. */
Test(buckets_hostile, a_number_beyond_its_type_is_not_foretold) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = adds_far, .width = WIDTH, .takes_integers = true};
    eddy_recorded *recorded = sized_record(&f, 10);
    sized_learn(recorded, &f, 4, 3, 2);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

static eddy_status scales(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_mul_s(x, EDDY_S(-(double)(eddy_dim_of(x, 0) - 5)));
    return EDDY_OK;
}

Test(buckets_hostile, the_sign_of_a_zero_is_not_foretold) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = scales, .width = WIDTH};
    eddy_recorded *recorded = sized_record(&f, 10);
    sized_learn(recorded, &f, 6, 7, 8);
    for (int64_t size = 2; size <= 10; size++)
        sized_run(recorded, &f, size, 0);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- memory ---- */

Test(buckets_hostile, a_limit_on_memory_that_the_largest_size_does_not_keep) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .memory_limit = INT64_C(4) << 20, .threads = 2));
    must(eddy_runtime_use(runtime));
    sized f = {.body = sized_attends, .width = WIDTH};
    eddy_recorded *recorded = sized_record(&f, INT64_C(1) << 21);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= 40; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

Test(buckets_hostile, each_allocation_fails_once) {
    for (int64_t at = 0, has_failed = 1; has_failed; at++) {
        eddy_scope *scope = eddy_scope_begin();
        sized f = {.body = sized_attends, .width = WIDTH};
        eddy_recorded *recorded = sized_record(&f, 40);
        sized_learn(recorded, &f, 2, 3, 4);
        eddy_tensor *x = sized_input(&f, 7, 0), *y;
        must(eddy_wait(x, EDDY_FOREVER));
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, at, 1);
        eddy_status status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y);
        eddy_status synced = eddy_sync(EDDY_FOREVER);
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        if (status != EDDY_OK || synced != EDDY_OK) {
            cr_assert(has_failed);
            eddy_error error;
            cr_assert_eq(eddy_error_take(&error), EDDY_OUT_OF_MEMORY);
        } else {
            eddy_error error;
            cr_assert_eq(eddy_error_take(&error), EDDY_OK, "%s", error.message);
        }
        for (int64_t size = 40; size >= 5; size--)
            sized_run(recorded, &f, size, 0);
        eddy_recorded_release(&recorded);
        expect_nothing_left(scope);
    }
}

Test(buckets_hostile, one_byte_is_kept) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = WIDTH};
    eddy_recorded *recorded =
        eddy_recorded_create(f.body, &f, 1,
                             EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 40,
                                          .most_derived_bytes = 1, .most_bytes = 1));
    sized_learn(recorded, &f, 2, 3, 4);
    for (int round = 0; round < 3; round++)
        for (int64_t size = 45; size >= 1; size--)
            sized_run(recorded, &f, size, round);
    eddy_recorded_release(&recorded);
    recorded = eddy_recorded_create(
        f.body, &f, 1,
        EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 40, .most_derived_bytes = 1));
    f.calls = 0;
    sized_learn(recorded, &f, 2, 3, 4);
    for (int round = 0; round < 3; round++)
        for (int64_t size = 40; size >= 2; size--)
            sized_run(recorded, &f, size, round);
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- counts ---- */

static eddy_tensor *own;

static eddy_status accumulates(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *last = eddy_narrow(own, 0, 39, 1);
    eddy_tensor *sum = eddy_sum(x, EDDY_AXES(0), EDDY_OPTIONS(sum, .keeps_dims = true));
    call->outputs[0] = eddy_mul_s(x, EDDY_S(2));
    return eddy_add_into(last, sum, last);
}

Test(buckets_hostile, a_miss_is_no_replay) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = accumulates, .width = WIDTH};
    own = eddy_zeros(EDDY_SHAPE(40, WIDTH), EDDY_F32, NULL);
    eddy_recorded *recorded = sized_record(&f, 40);
    static const int64_t sizes[] = {2, 2, 3, 3, 4, 10, 12};
    for (int i = 0; i < 7; i++) {
        eddy_tensor *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(sized_input(&f, sizes[i], i)), (eddy_scalars){0},
                               &y));
    }
    eddy_tensor *y, *part = eddy_narrow(own, 0, 0, 10);
    for (int i = 0; i < 3; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(part), (eddy_scalars){0}, &y));
    part = eddy_narrow(own, 0, 0, 11);
    for (int i = 0; i < 3; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(part), (eddy_scalars){0}, &y));
    cr_assert_eq(f.calls, 11);
    expect_explained(recorded, "replayed 2 times; arena");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- draws ---- */

static eddy_status draws(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    x = eddy_dropout(eddy_tanh(x), EDDY_S(0.5), NULL);
    x = eddy_add(x, eddy_rand(eddy_shape_of(x), EDDY_F32, NULL));
    call->outputs[0] = eddy_cumsum(eddy_dropout(x, EDDY_S(0.25), NULL), 0);
    return EDDY_OK;
}

Test(buckets_hostile, draws_are_those_of_the_calls) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = draws, .width = WIDTH}, other = f;
    eddy_recorded *recorded = sized_record(&f, 40);
    static const int64_t first[] = {2, 2, 3, 3, 4};
    for (int i = 0; i < 60; i++) {
        eddy_tensor *x = sized_input(&f, i < 5 ? first[i] : 2 + i * 7 % 39, i), *y[2], *expected[2];
        eddy_seed((uint64_t)i);
        for (int k = 0; k < 2; k++)
            must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y[k]));
        eddy_seed((uint64_t)i);
        for (int k = 0; k < 2; k++) {
            eddy_recorded_call call = {.size = sizeof(call),
                                       .inputs = EDDY_LIST(x),
                                       .outputs = &expected[k],
                                       .output_count = 1};
            must(draws(&other, &call));
            must_have_same_bits(y[k], expected[k], "drawn");
        }
    }
    cr_assert_lt(f.calls, 12);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- threads ---- */

typedef struct worker {
    eddy_recorded *recorded;
    eddy_runtime *runtime;
    int number;
} worker;

static eddy_status attends_uncounted(void *context, eddy_recorded_call *call) {
    sized f = {.body = sized_attends, .width = WIDTH};
    (void)context;
    return sized_attends(&f, call);
}

static void *run_many(void *context) {
    const worker *w = context;
    sized f = {.body = attends_uncounted, .width = WIDTH};
    must(eddy_runtime_use(w->runtime));
    for (int i = 0; i < 150; i++) {
        sized_run(w->recorded, &f, 46 - (i * (w->number + 1)) % 45, i);
        if (i % 10 == 0) {
            char text[256];
            eddy_recorded_explain(w->recorded, text, sizeof(text));
        }
    }
    must(eddy_runtime_use(NULL));
    return NULL;
}

#define THREADS 4

/* Threads of two runtimes run one function, of which nothing is kept. */
Test(buckets_hostile, runtimes_share_a_function_of_which_nothing_is_kept) {
    static const int64_t edges[] = {2, 3, 17, 40};
    eddy_runtime *runtimes[2];
    for (int i = 0; i < 2; i++)
        runtimes[i] =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2 + i));
    for (int round = 0; round < 6; round++) {
        pthread_t threads[THREADS];
        worker workers[THREADS];
        eddy_recorded *recorded = eddy_recorded_create(
            attends_uncounted, NULL, 1,
            EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = edges,
                         .bucket_edge_count = 4, .most_derived_bytes = round % 2 ? 1 : 60000));
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){eddy_recorded_retain(recorded), runtimes[i % 2], i};
            cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &workers[i]), 0);
        }
        eddy_recorded_release(&recorded);
        for (int i = 0; i < THREADS; i++) {
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
            eddy_recorded_release(&workers[i].recorded);
        }
    }
    for (int i = 0; i < 2; i++)
        eddy_runtime_release(&runtimes[i]);
    cr_assert_eq(eddy_live_count(), 0);
}
