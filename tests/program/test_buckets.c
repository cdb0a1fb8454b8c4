/* Sizes up to a largest, and in buckets: programs that are derived from what those of the least and the largest size have in common. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/sized.h>
#include <tests/program/taped.h>

/* ---- functions of rows ---- */

/* Its rows are as long as the size: those of less than 64, and of more than 1,024 elements are reduced by themselves. */
static eddy_status turns(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = eddy_contiguous(eddy_transpose(call->inputs.items[0], 0, 1));
    eddy_tensor *most = eddy_max(x, EDDY_AXES(1), EDDY_OPTIONS(max, .keeps_dims = true));
    eddy_tensor *powers = eddy_exp(eddy_sub(x, most));
    eddy_tensor *sum = eddy_sum(powers, EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = true));
    call->outputs[0] = eddy_tanh(eddy_div(powers, sum));
    return EDDY_OK;
}

/* Parts that are joined are computed side by side where their rows are long; numbers of the size are constants that stay. */
static eddy_status joins(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    int64_t n = eddy_dim_of(x, 0);
    eddy_tensor *places = eddy_exp(
        eddy_mul_s(eddy_arange(EDDY_S(0), EDDY_S(n), EDDY_S(1), EDDY_F32, NULL), EDDY_S(-0.01)));
    eddy_tensor *y = eddy_cat(
        EDDY_LIST(eddy_exp(eddy_transpose(x, 0, 1)), eddy_tanh(eddy_transpose(x, 0, 1))), 1);
    y = eddy_mul(eddy_narrow(y, 1, 1, n), places);
    call->outputs[0] = eddy_div_s(eddy_cumsum(y, 1), EDDY_S(n));
    return EDDY_OK;
}

/* What is padded to 40 rows takes the more memory the fewer there are, and the product of both the most in between. */
static eddy_status pads(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    int64_t n = eddy_dim_of(x, 0), width = eddy_dim_of(x, 1);
    eddy_tensor *rest = eddy_exp(eddy_zeros(EDDY_SHAPE(40 - n, width), EDDY_F32, NULL));
    eddy_tensor *both = eddy_matmul(x, eddy_transpose(rest, 0, 1));
    call->outputs[0] = eddy_sin(eddy_mul(both, eddy_cos(both)));
    return EDDY_OK;
}

/* All rows for all rows. */
static eddy_status compares(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_matmul(eddy_softmax(eddy_matmul(x, eddy_transpose(x, 0, 1)), 1), x);
    return EDDY_OK;
}

static eddy_status drops_three(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_exp(eddy_narrow(x, 0, 3, eddy_dim_of(x, 0) - 3));
    return EDDY_OK;
}

static eddy_status has_threshold(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_dim_of(x, 0) > 20 ? eddy_neg(x) : eddy_abs(x);
    return EDDY_OK;
}

static void try_all(sized f, int64_t most, const char *explained) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = sized_record(&f, most);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 2; size <= most; size++)
        sized_run(recorded, &f, size, (int)size);
    expect_explained(recorded, explained);
    cr_assert_eq(f.calls, 5, "%d", f.calls);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

#define ALL(called, columns, most, explained)                                                      \
    try_all((sized){.body = called, .width = columns}, most, explained)

Test(buckets, all_sizes_up_to_the_largest_follow_from_three) {
    ALL(sized_attends, 8, 64,
        "(f32[n, 8]), n from 2 to 64: sizes 5 to 64, 60 derived, 60 kept, replayed 60 times; "
        "arena ");
    ALL(joins, 8, 80, "(f32[n, 8]), n from 2 to 80: sizes 5 to 80, 76 derived");
    ALL(compares, 8, 60, "(f32[n, 8]), n from 2 to 60: sizes 5 to 60, 56 derived");
}

Test(buckets, groups_are_those_of_the_largest_size_as_far_as_they_may_be) {
    ALL(sized_normalizes, 128, 70, "sizes 5 to 70, 66 derived, 66 kept, replayed 66 times; arena ");
    ALL(turns, 16, 300, "sizes 5 to 300, 296 derived");
}

/* ---- sizes of all kinds ---- */

Test(buckets, sizes_come_in_any_order) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 50);
    uint32_t random = 7;
    sized_learn(recorded, &f, 30, 11, 50);
    for (int i = 0; i < 300; i++) {
        random = random * UINT32_C(1664525) + UINT32_C(1013904223);
        sized_run(recorded, &f, 2 + (random >> 16) % 49, i);
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets, sizes_of_none_and_one_are_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 50);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int i = 0; i < 3; i++)
        sized_run(recorded, &f, 1, i);
    cr_assert_eq(f.calls, 7);
    expect_explained(recorded, "(f32[1, 8]): ran 2 times, replayed 1 times\n");
    eddy_recorded_release(&recorded);
    f = (sized){.body = joins, .width = 8};
    recorded = sized_record(&f, 50);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int i = 0; i < 3; i++)
        sized_run(recorded, &f, 1, i);
    sized_run(recorded, &f, 5, 0);
    cr_assert_eq(f.calls, 7);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets, a_size_above_the_largest_runs) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 20);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 19; size <= 23; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 8);
    expect_explained(
        recorded, "(f32[n, 8]), n above 20: ran 3 times; not replayed: it is the largest size\n");
    eddy_recorded_release(&recorded);
    recorded = eddy_recorded_create(
        f.body, &f, 1,
        EDDY_OPTIONS(recorded, .is_strict = true, .foretells_shapes = true, .most_size = 20));
    sized_learn(recorded, &f, 2, 3, 4);
    eddy_tensor *x = sized_rows(21, 8, 0), *y;
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "recorded_run: it cannot be replayed: the size 21 is above the "
                                   "largest, 20");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- buckets ---- */

static const int64_t edges[] = {16, 40};

static eddy_recorded *make_two(sized *f) {
    return eddy_recorded_create(f->body, f, 1,
                                EDDY_OPTIONS(recorded, .foretells_shapes = true,
                                             .bucket_edges = edges, .bucket_edge_count = 2));
}

Test(buckets, a_size_of_each_is_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = make_two(&f);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 2; size <= 40; size++)
        sized_run(recorded, &f, size, (int)size);
    cr_assert_eq(f.calls, 6, "17 is recorded once");
    expect_explained(recorded, "(f32[n, 8]), n from 2 to 16: sizes 5 to 16, 12 derived, 12 kept, "
                               "replayed 12 times; arena ");
    expect_explained(recorded, "(f32[n, 8]), n from 17 to 40: sizes 18 to 40, 23 derived, 23 kept");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets, a_bucket_in_which_the_function_does_something_else_is_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = has_threshold, .width = 8};
    eddy_recorded *recorded = make_two(&f);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= 16; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 5);
    for (int round = 0; round < 3; round++)
        for (int64_t size = 30; size <= 32; size++)
            sized_run(recorded, &f, size, round);
    cr_assert_eq(f.calls, 11);
    expect_explained(recorded, "n from 17 to 40: none followed so far; a recording was not as "
                               "foretold: its sizes are recorded\n");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* Odd sizes are another matter until one was recorded. */
Test(buckets, what_is_in_common_is_made_anew_for_smaller_steps) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 31);
    sized_learn(recorded, &f, 8, 4, 6);
    sized_run(recorded, &f, 20, 0);
    cr_assert_eq(f.calls, 5);
    expect_explained(recorded, "sizes 20 to 20, 1 derived, 1 kept");
    sized_run(recorded, &f, 21, 0);
    for (int64_t size = 2; size <= 31; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 6);
    expect_explained(recorded, "sizes 2 to 31, 26 derived, 26 kept, replayed 27 times; arena ");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* Blocks that are largest in between have no room, and each such size has an arena of its own. */
Test(buckets, a_size_without_room_is_built_in_full) {
    ALL(pads, 8, 38, "built in full: recorded_run: the arena's layout has no room for it\n");
}

/* What sizes have in common is made at the first one that is found to follow: 2, 3 and 4 do not. */
Test(buckets, a_size_beyond_the_ends_is_built_in_full) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = drops_three, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 20);
    sized_learn(recorded, &f, 8, 9, 10);
    for (int64_t size = 5; size <= 20; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 5);
    expect_explained(recorded, "sizes 5 to 20, 12 derived, 13 kept");
    expect_explained(recorded, "1 built in full: the size 5 is not between 6 and 20\n");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

#ifndef __SANITIZE_ADDRESS__ /* whose allocator ends the process */
Test(buckets, a_largest_size_for_which_there_is_no_memory) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = compares, .width = 8};
    eddy_recorded *recorded = sized_record(&f, INT64_C(1) << 22);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= 40; size++)
        sized_run(recorded, &f, size, 0);
    cr_assert_eq(f.calls, 5);
    expect_explained(recorded, "0 derived, 36 kept, replayed 36 times; 36 built in full: "
                               "recorded_run: there is no memory for ");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
#endif

/* The number that stands behind the words in what is said about the function. */
static int64_t explained(eddy_recorded *recorded, const char *words) {
    char text[2048];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    const char *place = strstr(text, words);
    cr_assert_not_null(place, "%s", text);
    return atoll(place + strlen(words));
}

Test(buckets, the_arena_is_that_of_the_largest_size) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    int64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        eddy_recorded *recorded = sized_record(&f, i == 0 ? 1000 : 500);
        sized_learn(recorded, &f, 2, 3, 4);
        sized_run(recorded, &f, 5, 0);
        bytes[i] = explained(recorded, "arena ");
        eddy_recorded_release(&recorded);
    }
    cr_assert_gt(bytes[0], 1000 * 4);
    cr_assert_lt(bytes[0], 3 * 1000 * 4);
    cr_assert_lt(bytes[1], bytes[0] / 2 + 1024);
    expect_nothing_left(scope);
}

/* ---- how much is kept ---- */

static eddy_recorded *make_small(sized *f) {
    return eddy_recorded_create(f->body, f, 1,
                                EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 2000,
                                             .most_derived_bytes = 100000));
}

Test(buckets, a_sequence_that_grows_takes_no_more_memory) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 4};
    int64_t bytes[2];
    eddy_recorded *recorded = make_small(&f);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= 400; size++) {
        sized_run(recorded, &f, size, 0);
        if (size == 100)
            bytes[0] = eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes;
    }
    bytes[1] = eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes;
    cr_assert_lt(bytes[1], bytes[0] + bytes[0] / 8, "%lld and %lld", (long long)bytes[0],
                 (long long)bytes[1]);
    cr_assert_eq(f.calls, 5);
    int64_t kept = explained(recorded, " derived, ");
    cr_assert(kept > 4 && kept < 100, "%lld", (long long)kept);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* What is dropped is derived again; what is used often stays. */
Test(buckets, sizes_of_the_least_use_make_room) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 4};
    eddy_recorded *recorded = make_small(&f);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int i = 0; i < 50; i++)
        sized_run(recorded, &f, 7, i);
    for (int64_t size = 100; size < 140; size++)
        sized_run(recorded, &f, size, 0);
    int64_t kept = explained(recorded, " derived, ");
    cr_assert_lt(kept, 40);
    expect_explained(recorded, "41 derived");
    sized_run(recorded, &f, 7, 0);
    expect_explained(recorded, "41 derived");
    sized_run(recorded, &f, 139, 0);
    expect_explained(recorded, "41 derived");
    sized_run(recorded, &f, 100, 0);
    expect_explained(recorded, "42 derived");
    for (int round = 0; round < 20; round++)
        for (int64_t size = 200; size < 240; size++)
            sized_run(recorded, &f, size, 0);
    int64_t derived = explained(recorded, "sizes 7 to 239, ");
    sized_run(recorded, &f, 7, 0);
    cr_assert_eq(explained(recorded, "sizes 7 to 239, "), derived + 1, "7 was of use long ago");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- threads ---- */

static const sized shared_function = {.body = sized_attends, .width = 8};

/* Counts nothing: threads share it. */
static eddy_status attends_uncounted(void *context, eddy_recorded_call *call) {
    sized f = shared_function;
    (void)context;
    return sized_attends(&f, call);
}

static void *run_many(void *context) {
    sized f = {.body = attends_uncounted, .width = 8};
    for (int i = 0; i < 200; i++)
        sized_run(context, &f, 2 + (i * 7) % 40, i);
    return NULL;
}

Test(buckets, threads_share_what_is_in_common) {
    for (int round = 0; round < 5; round++) {
        pthread_t threads[3];
        eddy_recorded *recorded =
            eddy_recorded_create(attends_uncounted, NULL, 1,
                                 EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 41,
                                              .most_derived_bytes = 50000));
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, run_many, recorded), 0);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        eddy_recorded_release(&recorded);
    }
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

/* Large enough for helpers. */
Test(buckets, one_thread_and_two_give_the_same) {
    static const eddy_runtime_options ways[] = {
        {.size = sizeof(eddy_runtime_options), .threads = 1},
        {.size = sizeof(eddy_runtime_options), .threads = 2},
        {.size = sizeof(eddy_runtime_options), .uses_one_thread = true},
        {.size = sizeof(eddy_runtime_options), .threads = 2, .checks_finite = true}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        eddy_runtime *runtime = eddy_runtime_create(&ways[i]);
        must(eddy_runtime_use(runtime));
        sized f = {.body = sized_normalizes, .width = 512};
        eddy_recorded *recorded = sized_record(&f, 600);
        sized_learn(recorded, &f, 2, 3, 4);
        for (int64_t size = 5; size <= 600; size += 119)
            sized_run(recorded, &f, size, (int)size);
        cr_assert_eq(f.calls, 5);
        eddy_recorded_release(&recorded);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}

/* ---- what is no bucket ---- */

static void expect_refused(const eddy_recorded_options *options, const char *sentence) {
    sized f = {.body = sized_attends, .width = 8};
    cr_assert_null(eddy_recorded_create(f.body, &f, 1, options));
    expect_error(EDDY_INVALID_ARGUMENT, sentence);
}

Test(buckets, they_increase_and_cover_the_largest_size) {
    static const int64_t falling[] = {16, 16}, small[] = {1, 16}, many[300] = {2};
    expect_refused(EDDY_OPTIONS(recorded, .most_size = 8),
                   "recorded_create: sizes have buckets, and foretells_shapes is not set");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 1),
                   "recorded_create: the largest size is 1: it is 2 or more");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = falling,
                                .bucket_edge_count = 2),
                   "recorded_create: the edge of bucket 1 is 16: they increase from 2 or more");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = small,
                                .bucket_edge_count = 2),
                   "recorded_create: the edge of bucket 0 is 1: they increase from 2 or more");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = edges,
                                .bucket_edge_count = 2, .most_size = 41),
                   "recorded_create: the last bucket ends at 40, and the largest size is 41");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edge_count = 2),
                   "recorded_create: 2 edges of buckets, but they are NULL");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = many,
                                .bucket_edge_count = 300),
                   "recorded_create: 300 edges of buckets, and the most is 256");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = many,
                                .bucket_edge_count = -1),
                   "recorded_create: -1 edges of buckets");
    expect_refused(EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_derived_bytes = -1),
                   "recorded_create: -1 bytes of derived programs");
}

/* A bucket that the largest size makes superfluous is none. */
Test(buckets, the_last_one_ends_at_the_largest_size) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded =
        eddy_recorded_create(f.body, &f, 1,
                             EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = edges,
                                          .bucket_edge_count = 2, .most_size = 15));
    sized_learn(recorded, &f, 2, 3, 4);
    sized_run(recorded, &f, 15, 0);
    sized_run(recorded, &f, 16, 0);
    expect_explained(recorded, "n from 2 to 15: sizes 15 to 15, 1 derived");
    expect_explained(recorded, "n above 15: ran 1 times");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* Nothing is known from one recording of a size: it might count its calls. */
Test(buckets, a_sequence_that_grows_is_learnt_the_second_time) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 40);
    for (int64_t size = 2; size <= 30; size++)
        sized_run(recorded, &f, size, 1);
    cr_assert_eq(f.calls, 29);
    for (int64_t size = 2; size <= 40; size++)
        sized_run(recorded, &f, size, 2);
    cr_assert_eq(f.calls, 29 + 3, "2, 3 and 4");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
