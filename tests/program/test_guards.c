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
    bool counts;
    eddy_tensor *state, *large;
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
                                   "inputs or its own tensors differs too often");
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

static eddy_status reads_much(void *context, eddy_recorded_call *call) {
    float numbers[100];
    ((counted *)context)->calls++;
    must(eddy_read(call->inputs.items[0], numbers, sizeof(numbers), NULL));
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(numbers[0]));
    return EDDY_OK;
}

/* An element of a large tensor. */
static eddy_status reads_large_state(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    call->outputs[0] = eddy_mul_s(call->inputs.items[0],
                                  EDDY_S(eddy_item_f64(eddy_slice(c->large, 0, 7, 8, 1), NULL)));
    return EDDY_OK;
}

static eddy_status reads_at_a_place(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *sum = eddy_sum(x, EDDY_ALL_AXES, NULL);
    const char *before = eddy_call_site_set("step.c:41");
    const eddy_read_options *late = EDDY_OPTIONS(read, .timeout = 1000000000);
    double first = eddy_item_f64(sum, late);
    eddy_call_site_set("step.c:42");
    double second = eddy_item_f64(eddy_neg(sum), late);
    eddy_call_site_set(before);
    call->outputs[0] = eddy_mul_s(x, EDDY_S(first + second));
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

/* Large tensors, too many elements, what is read with a timeout, and what is shown rather than read. */
Test(guards, other_reads_are_none) {
    static const struct {
        eddy_recorded_body *body;
        const char *reason;
    } rows[] = {
        {reads_much, "not replayed: read reads f32[100] of an input, and 256 bytes decide at "
                     "most; do that before the call\n"},
        {reads_large_state, "not replayed: item_f64 reads f32[1], a part of more than 4096 bytes "
                            "that were there before; do that before the call\n"},
        {reads_at_a_place, "not replayed: it reads 2 values, the first of them: item_f64 "
                           "(step.c:41) reads f32[], which sum has written, with a "
                           "timeout; give it out"},
        {prints, "not replayed: print reads i64[] of an input; do that before the call\n"}};
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        counted c = {.large = eddy_ones(EDDY_SHAPE(1025), EDDY_F32, NULL)};
        eddy_tensor *y;
        eddy_recorded *recorded = eddy_recorded_create(rows[i].body, &c, 1, NULL);
        for (int k = 0; k < 6; k++)
            must(eddy_recorded_run(recorded,
                                   EDDY_LIST(eddy_ones(EDDY_SHAPE(100), EDDY_F32, NULL), number(1)),
                                   EDDY_SCALARS(), &y));
        cr_assert_eq(c.calls, 6);
        expect_explained(recorded, rows[i].reason);
        eddy_recorded_release(&recorded);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The elements of an input, whatever they are read as. */
static eddy_status reads_as_another(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    float n;
    must(eddy_read_as(call->inputs.items[1], EDDY_F32, &n, sizeof(n), NULL));
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(n));
    return EDDY_OK;
}

Test(guards, what_is_read_as_another_dtype_is_one) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(reads_as_another, &c, 1, NULL);
    for (int i = 0; i < 12; i++)
        cr_assert_eq(run(recorded, i, number(i % 2)), i * (i % 2), "%d", i);
    cr_assert_eq(c.calls, 5);
    expect_explained(recorded, "it reads input1: each value has a program");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- tensors of the function's own ---- */

/* x times an element of the state, which it changes where that says so. */
static eddy_status reads_state(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    int64_t n = eddy_item_i64(eddy_select(c->state, 0, 1), NULL);
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(n));
    if (c->counts)
        must(eddy_add_inplace(c->state, number(1)));
    return EDDY_OK;
}

static eddy_tensor *pair(int64_t first, int64_t second) {
    int64_t numbers[] = {first, second};
    return eddy_from_data(numbers, EDDY_SHAPE(2), EDDY_I64, NULL);
}

Test(guards, what_it_reads_of_its_own_is_one) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = pair(0, 0)};
    eddy_recorded *recorded = eddy_recorded_create(reads_state, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        must(eddy_copy_into(pair(i, i % 3), c.state));
        cr_assert_eq(run(recorded, i, number(1)), i * (i % 3), "%d", i);
    }
    cr_assert_eq(c.calls, 7);
    expect_explained(recorded, "(f32[3], i64[]): ran 1 times, replayed 0 times; it reads its own "
                               "i64[2]: each value has a program\n");
    expect_explained(recorded,
                     "(f32[3], i64[] with its own i64[2] = 2): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The value that it leaves decides the next call. */
Test(guards, what_it_writes_to_its_own_decides_the_next_call) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = pair(0, 0), .counts = true};
    eddy_recorded *recorded = eddy_recorded_create(reads_state, &c, 1, NULL);
    for (int round = 0; round < 8; round++) {
        must(eddy_copy_into(pair(0, 0), c.state));
        for (int i = 0; i < 4; i++)
            cr_assert_eq(run(recorded, 1, number(1)), i, "%d of %d", i, round);
    }
    cr_assert_eq(c.calls, 9);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- ways of branches ---- */

static eddy_status way_reads(void *context, eddy_list inputs, eddy_tensor **outputs) {
    counted *c = context;
    int64_t n = eddy_item_i64(eddy_select(c->state, 0, 1), NULL);
    return done(outputs, eddy_mul_s(inputs.items[0], EDDY_S(n)));
}

static eddy_status way_writes(void *context, eddy_list inputs, eddy_tensor **outputs) {
    counted *c = context;
    must(eddy_add_inplace(c->state, number(1)));
    return done(outputs, eddy_clone(inputs.items[0]));
}

/* A way that may not be taken reads, or writes what is read after it. */
static eddy_status branches(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    eddy_tensor *x = call->inputs.items[0], *y;
    must(eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0)),
                   c->counts ? way_writes : way_reads, same, context, EDDY_LIST(x), 1, NULL, &y));
    if (c->counts)
        y = eddy_mul_s(y, EDDY_S(eddy_item_i64(eddy_select(c->state, 0, 1), NULL)));
    return done(call->outputs, y);
}

Test(guards, ways_that_read) {
    for (int is_taken_first = 0; is_taken_first < 2; is_taken_first++) {
        eddy_scope *scope = eddy_scope_begin();
        counted c = {.state = pair(0, 0)};
        eddy_recorded *recorded = eddy_recorded_create(branches, &c, 1, NULL);
        for (int i = 0; i < 24; i++) {
            int sign = (i + is_taken_first) % 2 ? 1 : -1;
            must(eddy_copy_into(pair(0, i), c.state));
            cr_assert_eq(run(recorded, sign, number(1)), sign > 0 ? i : sign, "%d", i);
        }
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

Test(guards, ways_that_write_what_is_read) {
    for (int is_taken_first = 0; is_taken_first < 2; is_taken_first++) {
        eddy_scope *scope = eddy_scope_begin();
        counted c = {.state = pair(0, 0), .counts = true};
        eddy_recorded *recorded = eddy_recorded_create(branches, &c, 1, NULL);
        for (int i = 0; i < 24; i++) {
            int sign = (i + is_taken_first) % 2 ? 1 : -1;
            must(eddy_copy_into(pair(0, i % 3), c.state));
            cr_assert_eq(run(recorded, sign, number(1)), sign * (i % 3 + (sign > 0)), "%d", i);
        }
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

static eddy_status goes_on(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_lt_s(inputs.items[1], EDDY_S(3)));
}

/* Each step reads what the one before has written, to a tensor of its own or to an input. */
static eddy_status counts_on(void *context, eddy_list inputs, eddy_tensor **outputs) {
    counted *c = context;
    int64_t n = eddy_item_i64(eddy_select(c->state, 0, 1), NULL);
    must(eddy_add_inplace(c->state, number(1)));
    outputs[1] = eddy_add_s(inputs.items[1], EDDY_S(1));
    return done(outputs, eddy_add_s(inputs.items[0], EDDY_S(n)));
}

static eddy_status loops(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *state = c->state, *made[2];
    if (c->counts)
        c->state = call->inputs.items[1];
    must(eddy_while(goes_on, counts_on, context, EDDY_LIST(call->inputs.items[0], number(0)), NULL,
                    made));
    c->state = state;
    return done(call->outputs, made[0]);
}

Test(guards, steps_that_read) {
    for (int of_input = 0; of_input < 2; of_input++) {
        eddy_scope *scope = eddy_scope_begin();
        counted c = {.state = pair(0, 0), .counts = of_input};
        eddy_recorded *recorded = eddy_recorded_create(loops, &c, 1, NULL);
        for (int i = 0; i < 12; i++) {
            must(eddy_copy_into(pair(0, i % 2), c.state));
            cr_assert_eq(run(recorded, 1, pair(0, i % 2)), 1 + 3 * (i % 2) + 3, "%d", i);
        }
        expect_explained(recorded, of_input ? "reads i64[] of an input; do that before the loop\n"
                                            : "reads i64[], which was there before; do that before "
                                              "the loop\n");
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

/* ---- backward passes ---- */

static eddy_status copies(eddy_forward_call *call) {
    call->outputs[0] = eddy_clone(call->inputs[0]);
    return EDDY_OK;
}

static eddy_status scales(eddy_backward_call *call) {
    const counted *c = call->context;
    int64_t n = eddy_item_i64(eddy_select(c->state, 0, 1), NULL);
    call->results[0] = eddy_mul_s(call->grads[0], EDDY_S(n));
    return EDDY_OK;
}

static eddy_status is_differentiated(void *context, eddy_recorded_call *call) {
    static const eddy_function function = {.size = sizeof(function),
                                           .name = "user.scales",
                                           .output_count = 1,
                                           .forward = copies,
                                           .backward = scales};
    ((counted *)context)->calls++;
    return eddy_function_call(&function, context, EDDY_LIST(call->inputs.items[0]), call->outputs);
}

/* What a pass reads it reads when it runs, and not before the call. */
Test(guards, passes_that_read) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = pair(0, 0)};
    eddy_recorded *recorded = eddy_recorded_create(is_differentiated, &c, 1, NULL);
    for (int i = 0; i < 12; i++) {
        eddy_tensor *x = of(1), *y;
        eddy_requires_grad_set(x, true);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y));
        must(eddy_copy_into(pair(0, 5 + i % 3), c.state));
        must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
        cr_assert_eq(sum_of(eddy_grad_of(x)), 3 * (5 + i % 3), "%d", i);
        must(eddy_copy_into(pair(0, 0), c.state));
    }
    expect_explained(recorded, "not replayed: item_i64 reads i64[], which was there before");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A tensor of its own that is another one at each call. */
static eddy_status reads_new(void *context, eddy_recorded_call *call) {
    counted *c = context;
    bool holds = ++c->calls > 0;
    return eddy_item_i64(eddy_from_data(&holds, (eddy_shape){0}, EDDY_BOOL, NULL), NULL) > 0
               ? done(call->outputs, eddy_mul_s(call->inputs.items[0], EDDY_S(c->calls)))
               : EDDY_INVALID_ARGUMENT;
}

Test(guards, tensors_that_are_made_to_be_read_are_not_collected) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(reads_new, &c, 1, NULL);
    for (int i = 0; i < 60; i++) {
        eddy_scope *inner = eddy_scope_begin();
        cr_assert_eq(run(recorded, 1, number(1)), i + 1);
        eddy_scope_end(inner);
    }
    cr_assert_eq(c.calls, 60);
    cr_assert_leq(eddy_live_count(), 32);
    expect_explained(recorded,
                     "not replayed: the function reads more than 256 bytes of its inputs and "
                     "its own tensors, or more than 32 of these");
    eddy_recorded_release(&recorded);
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
    expect_explained(recorded, "not replayed: item_i64 reads i64[] of inputs that share memory; do "
                               "that before the call\n");
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

/* ---- what there is no room for ---- */

static eddy_status adds_all(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *sum = call->inputs.items[0];
    for (int64_t i = 1; i < call->inputs.count; i++)
        sum = eddy_add(sum, call->inputs.items[i]);
    return done(call->outputs, sum);
}

static eddy_status reads_many(void *context, eddy_recorded_call *call) {
    double sum = 0;
    (void)context;
    for (int64_t i = 0; i < call->inputs.count; i++)
        sum += (double)eddy_item_i64(call->inputs.items[i], NULL);
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], EDDY_S((int64_t)sum)));
}

Test(guards, what_is_cut_ends_with_an_ellipsis) {
    char text[4096];
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *adds = eddy_recorded_create(adds_all, NULL, 1, NULL),
                  *reads = eddy_recorded_create(reads_many, NULL, 1, NULL);
    eddy_tensor *many[100], *y;
    for (int i = 0; i < 100; i++)
        many[i] = number(1);
    for (int i = 0; i < 4; i++) {
        must(eddy_recorded_run(adds, (eddy_list){many, 100}, EDDY_SCALARS(), &y));
        must(eddy_recorded_run(reads, (eddy_list){many, 30}, EDDY_SCALARS(), &y));
    }
    cr_assert_gt(eddy_recorded_explain(adds, text, sizeof(text)), 600);
    cr_assert_not_null(strstr(text, " ...): ran 2 times, replayed 2 times\n"), "%s", text);
    cr_assert_gt(eddy_recorded_explain(reads, text, sizeof(text)), 200);
    cr_assert_not_null(strstr(text, "; it reads input0, input1, "), "%s", text);
    cr_assert_not_null(strstr(text, " ...: each value has a program\n"), "%s", text);
    cr_assert_not_null(strstr(text, "i64[] with input0 = 1, input1 = 1, "), "%s", text);
    cr_assert_not_null(strstr(text, " ...): ran 2 times, replayed 1 times\n"), "%s", text);
    eddy_recorded_release(&adds);
    eddy_recorded_release(&reads);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
