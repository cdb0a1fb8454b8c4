/* What a recorded function reads of its inputs decides which program is replayed. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

typedef struct counted {
    int calls;
    eddy_tensor *state;
} counted;

static eddy_tensor *number(int64_t value) {
    return eddy_full((eddy_shape){0}, EDDY_S(value), EDDY_I64, NULL);
}

/* x times 2 to the n, one op after the other: n is read. */
static eddy_status doubles(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    int64_t n = eddy_item_i64(call->inputs.items[1], NULL);
    eddy_tensor *y = eddy_clone(call->inputs.items[0]);
    for (int64_t i = 0; i < n; i++)
        y = eddy_mul_s(y, EDDY_S(2));
    call->outputs[0] = y;
    return y ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static double run(eddy_recorded *recorded, double x, eddy_tensor *n) {
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(of(x), n), EDDY_SCALARS(), &y));
    return sum_of(y) / 3;
}

static void expect_explained(eddy_recorded *recorded, const char *expected) {
    char text[1000];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, expected), "%s", text);
}

Test(guards, each_value_has_a_program) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(doubles, &c, 1, NULL);
    for (int i = 0; i < 24; i++)
        cr_assert_eq(run(recorded, i, number(i % 3)), i * (1 << i % 3), "%d", i);
    /* The first call shows what is read; then two for each value. */
    cr_assert_eq(c.calls, 7);
    expect_explained(recorded, "(f32[3], i64[]): ran 1 times, replayed 0 times; it reads input1: "
                               "each value has a program\n");
    expect_explained(recorded, "(f32[3], i64[] with input1 = 2): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(guards, values_that_differ_each_time_are_not_recorded_for_ever) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(doubles, &c, 1, NULL);
    for (int i = 0; i < 30; i++)
        cr_assert_eq(run(recorded, i, number(i)), i * (double)(1 << i));
    cr_assert_eq(c.calls, 30);
    expect_explained(recorded, "(f32[3], i64[]): ran 22 times, replayed 0 times; missed 21 times");
    /* What was recorded once is recorded again, and replayed; that earns another value. */
    for (int i = 0; i < 6; i++)
        cr_assert_eq(run(recorded, 1, number(3)), 8);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(run(recorded, 1, number(20)), 1 << 20);
    cr_assert_eq(c.calls, 33);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(guards, strict_calls_fail_where_values_differ_too_often) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_tensor *y;
    eddy_recorded *recorded =
        eddy_recorded_create(doubles, &c, 1, EDDY_OPTIONS(recorded, .is_strict = true));
    for (int i = 0; i < 9; i++)
        cr_assert_eq(run(recorded, 1, number(i)), 1 << i);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(of(1), number(9)), EDDY_SCALARS(), &y),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "recorded_run: it cannot be replayed: what it reads of its "
                                   "inputs differs too often");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what is a guard ---- */

/* An element of an input that is a view, all of another, and more where that says so. */
static eddy_status reads_parts(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *flags = call->inputs.items[1];
    bool all[2];
    must(eddy_read(flags, all, sizeof(all), NULL));
    call->outputs[0] = eddy_clone(x);
    if (all[0] && eddy_item_f64(eddy_select(x, 0, 1), NULL) > 2)
        call->outputs[0] = eddy_neg(x);
    return EDDY_OK;
}

Test(guards, parts_of_inputs_are_guards) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(reads_parts, &c, 1, NULL);
    static const float numbers[] = {9, 1, 9, 9, 3, 9};
    eddy_tensor *all = eddy_from_data(numbers, EDDY_SHAPE(2, 3), EDDY_F32, NULL), *y;
    for (int i = 0; i < 40; i++) {
        bool flags[] = {i % 4 < 2, false};
        eddy_tensor *x = eddy_select(all, 0, i % 2);
        must(eddy_recorded_run(recorded,
                               EDDY_LIST(x, eddy_from_data(flags, EDDY_SHAPE(2), EDDY_BOOL, NULL)),
                               EDDY_SCALARS(), &y));
        cr_assert_eq(sum_of(y), (flags[0] && i % 2 ? -1 : 1) * sum_of(x), "%d", i);
    }
    /* Two calls to learn what is read, then two for each of four values. */
    cr_assert_leq(c.calls, 12);
    expect_explained(recorded, "it reads input1, input0: each value has a program");
    expect_explained(recorded, "with 2 bytes of input1, input0 = 3): ran 2 times");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status reads_late(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    must(eddy_add_inplace(call->inputs.items[1], number(1)));
    return doubles(context, call);
}

static eddy_status reads_state(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(eddy_item_i64(c->state, NULL)));
    return EDDY_OK;
}

static eddy_status reads_much(void *context, eddy_recorded_call *call) {
    float numbers[100];
    ((counted *)context)->calls++;
    must(eddy_read(call->inputs.items[0], numbers, sizeof(numbers), NULL));
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(numbers[0]));
    return EDDY_OK;
}

static eddy_status prints(void *context, eddy_recorded_call *call) {
    FILE *nowhere = fopen("/dev/null", "w");
    ((counted *)context)->calls++;
    must(eddy_print(call->inputs.items[1], nowhere));
    fclose(nowhere);
    call->outputs[0] = eddy_clone(call->inputs.items[0]);
    return EDDY_OK;
}

/* What was written before it is read, tensors of the function's own, too many elements, and what is shown rather than read. */
Test(guards, other_reads_are_none) {
    static const struct {
        eddy_recorded_body *body;
        const char *reason;
    } rows[] = {{reads_late, "not replayed: the function reads values of tensors"},
                {reads_state, "not replayed: the function reads values of tensors"},
                {reads_much, "not replayed: the function reads values of tensors"},
                {prints, "not replayed: the function reads values of tensors"}};
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        counted c = {.state = number(4)};
        eddy_tensor *y;
        eddy_recorded *recorded = eddy_recorded_create(rows[i].body, &c, 1, NULL);
        for (int k = 0; k < 6; k++)
            must(eddy_recorded_run(recorded,
                                   EDDY_LIST(eddy_ones(EDDY_SHAPE(100), EDDY_F32, NULL), number(1)),
                                   EDDY_SCALARS(), &y));
        expect_explained(recorded, rows[i].reason);
        eddy_recorded_release(&recorded);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Two inputs in one storage: a write to one could be a write to the other. */
Test(guards, inputs_of_one_storage_are_not_told_apart) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(doubles, &c, 1, NULL);
    int64_t numbers[] = {1, 2};
    eddy_tensor *all = eddy_from_data(numbers, EDDY_SHAPE(2), EDDY_I64, NULL), *y;
    for (int i = 0; i < 6; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(eddy_select(all, 0, 0), eddy_select(all, 0, 1)),
                               EDDY_SCALARS(), &y));
    cr_assert_eq(sum_of(y), 4);
    expect_explained(recorded, "not replayed: the function reads values of tensors");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The function runs, and meets the error itself. */
Test(guards, a_poisoned_value_is_the_functions_own_affair) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_tensor *y;
    eddy_recorded *recorded = eddy_recorded_create(doubles, &c, 1, NULL);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(run(recorded, 1, number(2)), 4);
    int64_t wrong = 7;
    eddy_tensor *bad =
        eddy_select(eddy_index_select(eddy_ones(EDDY_SHAPE(1), EDDY_I64, NULL),
                                      eddy_from_data(&wrong, EDDY_SHAPE(1), EDDY_I64, NULL), 0),
                    0, 0);
    int calls = c.calls;
    (void)!eddy_recorded_run(recorded, EDDY_LIST(of(1), bad), EDDY_SCALARS(), &y);
    cr_assert_eq(c.calls, calls + 1);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_RANGE);
    cr_assert_eq(run(recorded, 1, number(2)), 4);
    cr_assert_eq(c.calls, calls + 1);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- threads ---- */

static eddy_status plain_doubles(void *context, eddy_recorded_call *call) {
    int calls = 0;
    (void)context;
    return doubles(&(counted){.calls = calls}, call);
}

static void *call_often(void *context) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 60; i++)
        cr_assert_eq(run(context, i, number(i % 4)), i * (1 << i % 4));
    eddy_scope_end(scope);
    return NULL;
}

Test(guards, threads_share_it) {
    eddy_recorded *recorded = eddy_recorded_create(plain_doubles, NULL, 1, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, recorded), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_recorded_release(&recorded);
    cr_assert_eq(eddy_live_count(), 0);
}
