/* A recorded function that reads on the host what it has computed: each path through its code has a program. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/paths.h>
#include <tests/program/runtimes.h>
#include <tests/program/taped.h>
#include <unistd.h>

/* ---- values ---- */

static void each_path_has_a_program(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        double x = i % 3 == 0 ? -1 - i : 1 + i;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), x > 0 ? -3 * x : 9 * x, "%d", i);
    }
    cr_assert_eq(c.calls, 4); /* two recordings of each path */
    expect_explained(recorded, "(f32[3]): ran 0 times, replayed 0 times; missed 1 times; item_i64 "
                               "reads bool[], which gt_s has written: each value has a program\n");
    expect_explained(recorded,
                     "(f32[3] with what it computes = true): ran 2 times, replayed 14 times\n");
    expect_explained(recorded,
                     "(f32[3] with what it computes = false): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
}

Test(paths, each_has_a_program) {
    in_runtimes(each_path_has_a_program);
}

/* Three paths, of one and of two values. */
static eddy_status turns_twice(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(x);
    if (is_positive(x))
        return EDDY_OK;
    eddy_tensor *y = eddy_add_s(x, EDDY_S(10));
    call->outputs[0] = is_positive(y) ? y : eddy_mul(x, y);
    return EDDY_OK;
}

static void paths_of_several_values(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns_twice, &c, 1, NULL);
    static const double values[] = {1, -1, -20, -2, 2, -30, -30, 3, -3};
    for (int i = 0; i < 54; i++) {
        double x = values[i % 9] * (1 + i / 9);
        must_have_same_bits(call_once(recorded, of(x)), call_plainly(turns_twice, &plain, of(x)),
                            "a path");
    }
    cr_assert_eq(c.calls, 6);
    expect_explained(recorded, "with what it computes = false, what it computes = true): ran 2");
    expect_explained(recorded, "with what it computes = false, what it computes = false): ran 2");
    eddy_recorded_release(&recorded);
}

Test(paths, consist_of_all_values) {
    in_runtimes(paths_of_several_values);
}

/* What was read of an input is a guard; both decide. */
static eddy_status turns_and_counts(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    int64_t n = eddy_item_i64(call->inputs.items[1], NULL);
    call->outputs[0] = is_positive(x) ? eddy_mul_s(x, EDDY_S(n)) : eddy_add_s(x, EDDY_S(n));
    return EDDY_OK;
}

static void guards_and_paths(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns_and_counts, &c, 1, NULL);
    for (int i = 0; i < 40; i++) {
        double x = i % 4 < 2 ? 1 + i : -1 - i;
        int64_t n = 2 + i % 2;
        eddy_tensor *y, *count = eddy_full((eddy_shape){0}, EDDY_S(n), EDDY_I64, NULL);
        must(eddy_recorded_run(recorded, EDDY_LIST(of(x), count), EDDY_SCALARS(), &y));
        cr_assert_eq(sum_of(y), 3 * (x > 0 ? x * (double)n : x + (double)n), "%d", i);
    }
    cr_assert_eq(c.calls, 9); /* the first shows that the count is read */
    expect_explained(recorded, "with input1 = 3, what it computes = false): ran 2 times");
    eddy_recorded_release(&recorded);
}

Test(paths, go_on_from_guards) {
    in_runtimes(guards_and_paths);
}

/* What is read is the same number, of an input on one path, and computed on another one. */
static eddy_status counts_seldom(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    int64_t sum = eddy_item_i64(eddy_cast(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_I64), NULL);
    int64_t n = sum > 100 ? eddy_item_i64(call->inputs.items[1], NULL) : 1;
    call->outputs[0] = eddy_mul_s(x, EDDY_S(n));
    return EDDY_OK;
}

static void guards_that_look_like_paths(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(counts_seldom, &c, 1, NULL);
    for (int i = 0; i < 60; i++) {
        double x = i % 7 == 6 ? 50 : 1;
        int64_t n = 3 + 150 * (i % 3 == 2);
        eddy_tensor *y, *count = eddy_full((eddy_shape){0}, EDDY_S(n), EDDY_I64, NULL);
        must(eddy_recorded_run(recorded, EDDY_LIST(of(x), count), EDDY_SCALARS(), &y));
        cr_assert_eq(sum_of(y), 3 * x * (x > 40 ? (double)n : 1), "%d", i);
    }
    cr_assert_lt(c.calls, 20);
    eddy_recorded_release(&recorded);
}

Test(paths, are_not_taken_for_guards) {
    in_runtimes(guards_that_look_like_paths);
}

/* Loops and branches that a program holds, in front of the read and behind it. */
static eddy_status loops(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = eddy_abs(call->inputs.items[0]), *y;
    ((counted *)context)->calls++;
    must(eddy_while(is_short, twice, NULL, EDDY_LIST(x), NULL, &y));
    bool is = is_positive(eddy_sub_s(y, EDDY_S(24)));
    y = is ? eddy_mul_s(x, EDDY_S(0.25)) : eddy_add_s(x, EDDY_S(1));
    return eddy_while(is_short, twice, NULL, EDDY_LIST(y), NULL, call->outputs);
}

static void loops_on_both_sides(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(loops, &c, 1, NULL);
    for (int i = 0; i < 30; i++) {
        eddy_tensor *x = of(0.5 + i % 7);
        must_have_same_bits(call_once(recorded, x), call_plainly(loops, &plain, x), "a loop");
    }
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
}

Test(paths, have_loops_on_both_sides) {
    in_runtimes(loops_on_both_sides);
}

/* So dear that a worker runs it. */
static eddy_status multiplies(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0], *y = eddy_matmul(x, x);
    ((counted *)context)->calls++;
    call->outputs[0] = is_positive(y) ? eddy_neg(x) : eddy_mul_s(x, EDDY_S(3));
    return EDDY_OK;
}

static void dear_runs(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(multiplies, &c, 1, NULL);
    for (int i = 0; i < 12; i++) {
        eddy_tensor *x = eddy_full(EDDY_SHAPE(1024, 1024), EDDY_S(i % 2 ? 0.5 : 0), EDDY_F32, NULL);
        cr_assert_eq(sum_of(call_once(recorded, x)), i % 2 ? -0.5 * 1024 * 1024 : 0, "%d", i);
    }
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
}

Test(paths, are_waited_for) {
    in_runtimes(dear_runs);
}

/* Inputs that stay where they are, each of which takes a path of its own. */
static void inputs_that_stay(void) {
    for (int count = 2; count <= 5; count++) {
        counted c = {0};
        eddy_tensor *inputs[5] = {of(-1), of(1), of(2), of(3), of(4)};
        eddy_recorded *recorded = eddy_recorded_create(turns, &c, 1, NULL);
        for (int i = 0; i < 60; i++) {
            int k = i % count;
            cr_assert_eq(sum_of(call_once(recorded, inputs[k])), k ? -3.0 * k : -9, "%d", i);
        }
        cr_assert_leq(c.calls, 6, "%d inputs: %d", count, c.calls);
        eddy_recorded_release(&recorded);
    }
}

Test(paths, of_inputs_that_stay) {
    in_runtimes(inputs_that_stay);
}

/* One input for both recordings of a path, and others then: it may have been a tensor of the function's own. */
static eddy_status adds_its_own(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *y = eddy_sub(call->inputs.items[0], eddy_mul_s(c->state, EDDY_S(2)));
    c->calls++;
    call->outputs[0] = is_positive(y) ? y : eddy_neg(y);
    return EDDY_OK;
}

static void an_input_that_changes(void) {
    counted c = {.state = of(1)};
    eddy_tensor *second = of(1.5);
    eddy_recorded *recorded = eddy_recorded_create(adds_its_own, &c, 1, NULL);
    for (int i = 0; i < 40; i++) {
        eddy_tensor *x = i < 10 ? c.state : second;
        cr_assert_eq(sum_of(call_once(recorded, x)), x == second ? 1.5 : 3, "%d", i);
    }
    cr_assert_leq(c.calls, 6);
    eddy_recorded_release(&recorded);
}

Test(paths, begin_anew_where_an_input_was_fixed) {
    in_runtimes(an_input_that_changes);
}

/* There is room for one program: that of the path. */
static void little_room(void) {
    counted c = {0};
    eddy_recorded *recorded =
        eddy_recorded_create(turns, &c, 1, EDDY_OPTIONS(recorded, .most_bytes = 1));
    for (int i = 0; i < 20; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(1 + i))), -3.0 * (1 + i));
    cr_assert_eq(c.calls, 2);
    eddy_recorded_release(&recorded);
}

Test(paths, need_room_for_one) {
    in_runtimes(little_room);
}

/* Each replay earns a value of the guard, too. */
static void many_values_of_a_guard(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns_and_counts, &c, 1, NULL);
    for (int64_t n = 2; n < 22; n++)
        for (int i = 0; i < 10; i++) {
            eddy_tensor *y, *count = eddy_full((eddy_shape){0}, EDDY_S(n), EDDY_I64, NULL);
            must(eddy_recorded_run(recorded, EDDY_LIST(of(1), count), EDDY_SCALARS(), &y));
            cr_assert_eq(sum_of(y), 3 * (double)n);
        }
    cr_assert_eq(c.calls, 1 + 2 * 20);
    eddy_recorded_release(&recorded);
}

Test(paths, of_many_values_of_a_guard) {
    in_runtimes(many_values_of_a_guard);
}

/* Up to 12 flags are read, until one is set. */
static eddy_status looks_for_a_flag(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0], *flags = eddy_gt_s(x, EDDY_S(0));
    ((counted *)context)->calls++;
    call->outputs[0] = x;
    for (int i = 0; i < 12; i++) {
        call->outputs[0] = eddy_neg(call->outputs[0]);
        if (eddy_item_i64(eddy_select(flags, 0, i), NULL))
            break;
    }
    return EDDY_OK;
}

static void paths_of_many_values(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(looks_for_a_flag, &c, 1, NULL);
    for (int i = 0; i < 13 * 20; i++) {
        float values[12] = {0};
        int flag = i < 100 ? 0 : 12 - i % 13; /* the first earns enough for all */
        if (flag < 12)
            values[flag] = 1;
        eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(12), EDDY_F32, NULL);
        must_have_same_bits(call_once(recorded, x), call_plainly(looks_for_a_flag, &plain, x),
                            "a path");
    }
    cr_assert_eq(c.calls, 2 * 13);
    eddy_recorded_release(&recorded);
}

Test(paths, of_many_values) {
    in_runtimes(paths_of_many_values);
}

/* Another thread writes what guards have read, before the function reads it. */
static void *writes_two(void *context) {
    must(eddy_copy_into(scalar(2), context));
    return NULL;
}

static eddy_status reads_what_is_written(void *context, eddy_recorded_call *call) {
    counted *c = context;
    pthread_t thread;
    if (c->calls++ < c->recorded) {
        eddy_scope *scope = eddy_scope_begin();
        cr_assert_eq(pthread_create(&thread, NULL, writes_two, c->state), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        eddy_scope_end(scope);
    }
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(eddy_item_f64(c->state, NULL)));
    return EDDY_OK;
}

/* In the first calls, which are recorded. */
static void guards_that_others_write(void) {
    for (int written = 0; written < 5; written++) {
        counted c = {.state = scalar(1), .recorded = written};
        eddy_recorded *recorded = eddy_recorded_create(reads_what_is_written, &c, 1, NULL);
        for (int i = 0; i < 16; i++) {
            double before = i < 8 ? 1 : 1 + i % 2;
            must(eddy_copy_into(scalar(before), c.state));
            double y = sum_of(call_once(recorded, of(1)));
            cr_assert_eq(y, 3 * (i < written ? 2 : before), "%d, %d", written, i);
        }
        cr_assert_lt(c.calls, 12);
        eddy_recorded_release(&recorded);
    }
}

Test(paths, are_not_kept_under_what_another_thread_has_overwritten) {
    eddy_scope *scope = eddy_scope_begin();
    guards_that_others_write();
    eddy_scope_end(scope);
}

/* Elements of a transposed part, and of several dtypes. */
static eddy_status looks_at_parts(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0], *y = eddy_mul_s(x, EDDY_S(2));
    float corner[4];
    int64_t all[6];
    ((counted *)context)->calls++;
    must(eddy_read(eddy_transpose(eddy_slice(y, 1, 1, 3, 1), 0, 1), corner, sizeof(corner), NULL));
    must(eddy_read(eddy_cast(y, EDDY_I64), all, sizeof(all), NULL));
    call->outputs[0] = eddy_add_s(x, EDDY_S(corner[1] * 100 + (float)all[0]));
    return EDDY_OK;
}

static void parts_of_values(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(looks_at_parts, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        float values[6] = {(float)(i % 2), 1, 2, 3, (float)(i % 3), 5};
        eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(2, 3), EDDY_F32, NULL);
        must_have_same_bits(call_once(recorded, x), call_plainly(looks_at_parts, &plain, x),
                            "parts");
    }
    cr_assert_eq(c.calls, 12);
    eddy_recorded_release(&recorded);
}

Test(paths, see_parts_of_what_is_computed) {
    in_runtimes(parts_of_values);
}

/* ---- what is not replayed ---- */

static eddy_status scales(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    double mean = eddy_item_f64(eddy_mean(x, EDDY_ALL_AXES, NULL), NULL);
    call->outputs[0] = eddy_mul_s(x, EDDY_S(mean));
    return EDDY_OK;
}

static void values_that_differ(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(i))), 3.0 * i * i);
    cr_assert_eq(c.calls, 20);
    expect_explained(recorded,
                     "not replayed: item_f64 reads f32[], which mean has written, and differs too "
                     "often; give it out and read it after the call, or decide with eddy_cond");
    /* What was recorded is given up. */
    eddy_recorded_release(&recorded);
    recorded = eddy_recorded_create(scales, &c, 1, EDDY_OPTIONS(recorded, .is_strict = true));
    eddy_tensor *y;
    for (int i = 0; i < 8; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(i))), 3.0 * i * i);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(of(9)), EDDY_SCALARS(), &y),
                 EDDY_UNSUPPORTED);
    eddy_error_take(NULL);
    eddy_recorded_release(&recorded);
}

Test(paths, that_differ_each_time_are_given_up) {
    in_runtimes(values_that_differ);
}

/* The value that comes most is replayed, and what comes now and then just runs, or is recorded, too. */
static void rare_values(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 200; i++) {
        double x = i % 10 == 9 ? i : 2;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), 3 * x * x);
    }
    cr_assert_eq(c.calls, 22);
    eddy_recorded_release(&recorded);
}

Test(paths, that_are_rare_run) {
    in_runtimes(rare_values);
}

static eddy_status has_a_timeout(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    eddy_tensor *y = eddy_sum(x, EDDY_ALL_AXES, NULL);
    must(eddy_mul_inplace(y, scalar(2)));
    double sum = eddy_item_f64(y, EDDY_OPTIONS(read, .timeout = INT64_C(1000000000000)));
    call->outputs[0] = sum > 0 ? eddy_neg(x) : eddy_clone(x);
    return EDDY_OK;
}

static eddy_status reads_too_much(void *context, eddy_recorded_call *call) {
    float values[65];
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    must(eddy_read(eddy_expand(eddy_neg(eddy_select(x, 0, 0)), EDDY_SHAPE(65)), values,
                   sizeof(values), NULL));
    call->outputs[0] = eddy_mul_s(x, EDDY_S(values[64]));
    return EDDY_OK;
}

static eddy_status reads_in_a_branch(void *context, eddy_list inputs, eddy_tensor **outputs) {
    bool is = is_positive(inputs.items[0]);
    (void)context;
    return done(outputs, is ? eddy_neg(inputs.items[0]) : eddy_clone(inputs.items[0]));
}

static eddy_status decides_in_a_branch(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    return eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(-100)), reads_in_a_branch,
                     same, NULL, EDDY_LIST(x), 1, NULL, call->outputs);
}

static eddy_status draws_in_a_branch_of_its_own(void *context, eddy_list inputs,
                                                eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_mul(inputs.items[0], eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL)));
}

static eddy_status draws_in_a_branch(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    if (is_positive(x))
        x = eddy_neg(x);
    return eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(-100)),
                     draws_in_a_branch_of_its_own, same, NULL, EDDY_LIST(x), 1, NULL,
                     call->outputs);
}

static eddy_status saves(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(x);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-paths-%ld.npy", (long)getpid());
    return eddy_npy_save(eddy_sum(x, EDDY_ALL_AXES, NULL), path, NULL);
}

static void expect_never_replayed(eddy_recorded_body *body, const char *why) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        eddy_tensor *x = of(i % 2 ? 1 : -1);
        eddy_seed(i);
        eddy_tensor *y = call_once(recorded, x);
        eddy_seed(i);
        must_have_same_bits(y, call_plainly(body, &plain, x), why);
    }
    cr_assert_eq(c.calls, plain.calls);
    expect_explained(recorded, why);
    eddy_recorded_release(&recorded);
}

static void other_reads(void) {
    expect_never_replayed(has_a_timeout, "not replayed: item_f64 reads f32[], which mul has "
                                         "written, with a timeout; give it out and read it");
    expect_never_replayed(reads_too_much, "not replayed: read reads f32[65], which neg has "
                                          "written, and 256 bytes decide at most; give it out");
    expect_never_replayed(decides_in_a_branch, "item_i64 reads bool[], which gt_s has written; ");
    expect_never_replayed(saves, "not replayed: npy_save reads f32[], which sum has written; ");
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-paths-%ld.npy", (long)getpid());
    unlink(path);
    expect_never_replayed(draws_in_a_branch,
                          "not replayed: item_i64 reads bool[], which gt_s has written, and it "
                          "draws random numbers in a branch or a loop; give it out");
}

Test(paths, other_reads_show_none) {
    in_runtimes(other_reads);
}

/* What is not replayed on one path leaves the others alone. */
static eddy_status prints_seldom(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    char reason[320];
    call->outputs[0] = eddy_neg(x);
    bool is_recorded = eddy_can_record(reason, sizeof(reason)) || !strstr(reason, "no recording");
    if (is_positive(x))
        return EDDY_OK;
    ((counted *)context)->recorded += is_recorded;
    FILE *nowhere = fopen("/dev/null", "w");
    must(eddy_print(call->outputs[0], nowhere));
    fclose(nowhere);
    return EDDY_OK;
}

static void a_path_that_is_not_replayed(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(prints_seldom, &c, 1, NULL);
    for (int i = 0; i < 60; i++) {
        double x = i % 10 ? 1 + i : -1 - i;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), -3 * x);
    }
    cr_assert_eq(c.calls, 2 + 6);
    cr_assert_eq(c.recorded, 1);
    expect_explained(recorded, "with what it computes = false): ran 6 times, replayed 0 times; not "
                               "replayed: print reads f32[3], which neg has written; give it out");
    eddy_recorded_release(&recorded);
}

Test(paths, that_is_not_replayed_leaves_others_alone) {
    in_runtimes(a_path_that_is_not_replayed);
}

/* Only one of several paths that begin alike prints. */
static eddy_status prints_thirty(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(x);
    if (is_positive(x))
        return EDDY_OK;
    int64_t n = eddy_item_i64(eddy_cast(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_I64), NULL);
    FILE *nowhere = fopen("/dev/null", "w");
    if (n == -30)
        must(eddy_print(call->outputs[0], nowhere));
    fclose(nowhere);
    return EDDY_OK;
}

static void paths_that_begin_alike(void) {
    counted c = {0};
    eddy_recorded *recorded =
        eddy_recorded_create(prints_thirty, &c, 1, EDDY_OPTIONS(recorded, .is_strict = true));
    for (int i = 0; i < 12; i++)
        call_once(recorded, of(1));
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(of(-10)), EDDY_SCALARS(), &y)); /* is recorded */
    for (int i = 0; i < 4; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(-20))), 60);
    cr_assert_eq(c.calls, 2 + 1 + 2);
    eddy_recorded_release(&recorded);
}

Test(paths, that_begin_alike_are_told_apart) {
    in_runtimes(paths_that_begin_alike);
}

/* Much is written before the read, which each run would keep. */
static eddy_status writes_much(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    must(eddy_add_inplace(c->state, call->inputs.items[0]));
    call->outputs[0] = is_positive(call->inputs.items[0]) ? scalar(1) : scalar(2);
    return EDDY_OK;
}

static void much_that_is_written(void) {
    counted c = {.state = eddy_zeros(EDDY_SHAPE(1 << 19, 3), EDDY_F32, NULL)};
    eddy_recorded *recorded = eddy_recorded_create(writes_much, &c, 1, NULL);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(1))), 1);
    cr_assert_eq(c.calls, 4);
    expect_explained(recorded, "not replayed: it writes 6291456 bytes of what was there before its "
                               "last read, which each run would keep to put them back, and "
                               "4194304 are the most: write them behind it");
    eddy_recorded_release(&recorded);
}

Test(paths, keep_no_more_than_so_much) {
    in_runtimes(much_that_is_written);
}

/* The same many times in a row: the other path is tried now and then. */
static void a_row_of_what_is_not_replayed(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(prints_seldom, &c, 1, NULL);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(1))), -3);
    for (int i = 0; i < 40; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(-1))), 3);
    cr_assert_eq(c.calls, 2 + 40);
    expect_explained(recorded, "missed 12 times; item_i64"); /* the others were not tried */
    for (int i = 0; i < 100; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(1))), -3);
    cr_assert_leq(c.calls, 2 + 40 + 15);
    cr_assert_eq(c.recorded, 1);
    eddy_recorded_release(&recorded);
}

Test(paths, come_back_after_a_row_of_others) {
    in_runtimes(a_row_of_what_is_not_replayed);
}

/* Many values, and one that comes back: that is replayed, and others run. */
static void too_many_values(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 3; i++)
        call_once(recorded, of(1));
    for (int i = 0; i < 100; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(100 + i))), 3.0 * (100 + i) * (100 + i));
    int before = c.calls;
    for (int i = 0; i < 100; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(1))), 3);
    cr_assert_leq(c.calls, before + 15);
    expect_explained(recorded, "item_f64 reads f32[], which mean has written, and differs too");
    eddy_recorded_release(&recorded);
}

Test(paths, that_are_too_many_leave_others_alone) {
    in_runtimes(too_many_values);
}
