/* What each step of a loop gives, as lists: eddy_while with list_count, and eddy_scan as one loop of the program. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>

#define SIZE 3
#define STEPS 4

typedef struct world {
    eddy_tensor *w, *h, *xs, *numbers;
} world;

static void make_world(world *m, uint64_t seed, bool wants_gradients) {
    eddy_seed(seed);
    m->w = eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    m->h = eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    m->xs = eddy_randn(EDDY_SHAPE(STEPS, SIZE), EDDY_F32, NULL);
    m->numbers = eddy_randint(0, 5, EDDY_SHAPE(STEPS), EDDY_I64, NULL);
    if (!wants_gradients)
        return;
    eddy_requires_grad_set(m->w, true);
    eddy_requires_grad_set(m->h, true);
    eddy_requires_grad_set(m->xs, true);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b, const char *what) {
    char first[256], second[256];
    size_t bytes = (size_t)eddy_count_of(a) * (size_t)eddy_dtype_size(eddy_dtype_of(a));
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    cr_assert_eq(eddy_dtype_of(a), eddy_dtype_of(b));
    must(eddy_read(a, first, sizeof(first) < bytes ? sizeof(first) : bytes, NULL));
    must(eddy_read(b, second, sizeof(second) < bytes ? sizeof(second) : bytes, NULL));
    cr_assert_arr_eq(first, second, bytes, "%s", what);
}

/* ---- scans ---- */

/* (h; x, number) -> (tanh(w h + x); h x beside -h x, whether x is positive, twice the number). Two parts come together in each gradient, so that their order
 * does not matter. */
static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    world *m = context;
    eddy_tensor *h = inputs.items[0], *x = inputs.items[1], *product = eddy_mul(h, x);
    outputs[0] = eddy_tanh(eddy_add(eddy_mul(m->w, h), x));
    outputs[1] = eddy_t(eddy_stack(EDDY_LIST(product, eddy_neg(product)), 0)); /* not row-major */
    outputs[2] = eddy_gt_s(x, EDDY_S(0));
    outputs[3] = eddy_mul_s(inputs.items[2], EDDY_S(2));
    return outputs[0] && outputs[1] && outputs[2] && outputs[3] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static void scan(world *m, bool is_reversed, eddy_tensor **outputs) {
    must(eddy_scan(cell, m, EDDY_LIST(m->h), EDDY_LIST(m->xs, m->numbers), 4,
                   EDDY_OPTIONS(scan, .is_rolled = true, .is_reversed = is_reversed), outputs));
}

static eddy_tensor *loss_of(eddy_tensor *const *outputs) {
    eddy_tensor *rows = eddy_sum(eddy_mul(outputs[1], outputs[1]), EDDY_ALL_AXES, NULL);
    return eddy_add(eddy_sum(eddy_square(outputs[0]), EDDY_ALL_AXES, NULL), rows);
}

static void try_scan(bool is_reversed, bool records_only, bool wants_gradients) {
    world m, eager;
    eddy_tensor *outputs[4], *expected[4], *results[4];
    eddy_error error = {0};
    make_world(&m, 1, wants_gradients);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    scan(&m, is_reversed, outputs);
    if (wants_gradients)
        must(eddy_backward(loss_of(outputs)));
    eddy_binding items[8] = {{"h", m.h, EDDY_ROLE_INPUT},
                             {"xs", m.xs, EDDY_ROLE_INPUT},
                             {"numbers", m.numbers, EDDY_ROLE_INPUT},
                             {"w", m.w, EDDY_ROLE_STATE}};
    static const char *const names[] = {"o0", "o1", "o2", "o3"};
    for (int i = 0; i < 4; i++)
        items[4 + i] = (eddy_binding){names[i], eddy_detach(outputs[i]), EDDY_ROLE_OUTPUT};
    eddy_program *program = eddy_record_end(&(eddy_bindings){items, 8});
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    eddy_program *copy = reread(program, "scan");
    eddy_program_release(&copy);
    for (uint64_t seed = 1; seed < 4; seed++) {
        make_world(&eager, seed, wants_gradients);
        must(eddy_copy_into(eddy_detach(eager.w), eddy_detach(m.w)));
        scan(&eager, is_reversed, expected);
        must(eddy_program_run(program, EDDY_LIST(eager.h, eager.xs, eager.numbers), results));
        for (int i = 0; i < 4; i++)
            expect_same(results[i], expected[i], names[i]);
        if (!wants_gradients)
            continue;
        must(eddy_backward(loss_of(expected)));
        expect_same(eddy_grad_of(m.w), eddy_grad_of(eager.w), "w");
        expect_same(eddy_grad_of(m.h), eddy_grad_of(eager.h), "h");
        expect_same(eddy_grad_of(m.xs), eddy_grad_of(eager.xs), "xs");
    }
    eddy_program_release(&program);
}

Test(lists, a_rolled_scan_is_the_scan) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 8; i++)
        try_scan(i & 1, i & 2, i & 4);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(lists, a_run_of_a_rolled_scan_is_one_node) {
    eddy_scope *scope = eddy_scope_begin();
    world m, eager;
    eddy_tensor *outputs[4], *expected[4], *results[2];
    make_world(&m, 1, true);
    must(eddy_record_begin(NULL));
    scan(&m, false, outputs);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"h", m.h, EDDY_ROLE_INPUT}, {"xs", m.xs, EDDY_ROLE_INPUT},
                      {"numbers", m.numbers, EDDY_ROLE_INPUT}, {"o0", outputs[0], EDDY_ROLE_OUTPUT},
                      {"o1", outputs[1], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int which = 0; which < 2; which++) {
        make_world(&eager, 2, true);
        world given = eager;
        make_world(&given, 2, true);
        eddy_no_grad_begin();
        must(eddy_copy_into(m.w, eager.w));
        eddy_no_grad_end();
        must(eddy_grads_zero(EDDY_LIST(m.w)));
        scan(&eager, false, expected);
        must(eddy_program_run(program, EDDY_LIST(given.h, given.xs, given.numbers), results));
        must(eddy_backward(eddy_sum(eddy_square(results[which]), EDDY_ALL_AXES, NULL)));
        must(eddy_backward(eddy_sum(eddy_square(expected[which]), EDDY_ALL_AXES, NULL)));
        expect_same(eddy_grad_of(m.w), eddy_grad_of(eager.w), "w");
        expect_same(eddy_grad_of(given.h), eddy_grad_of(eager.h), "h");
        expect_same(eddy_grad_of(given.xs), eddy_grad_of(eager.xs), "xs");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The code does not grow with the sequence. */
Test(lists, a_rolled_scan_is_one_loop) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t counts[2];
    for (int i = 0; i < 2; i++) {
        world m;
        eddy_tensor *outputs[4];
        eddy_program_info info = {.size = sizeof(info)};
        make_world(&m, 1, false);
        m.xs = eddy_randn(EDDY_SHAPE(i ? 100 : 2, SIZE), EDDY_F32, NULL);
        m.numbers = eddy_zeros(EDDY_SHAPE(i ? 100 : 2), EDDY_I64, NULL);
        must(eddy_record_begin(NULL));
        scan(&m, false, outputs);
        eddy_program *program =
            end(EDDY_BINDINGS({"xs", m.xs, EDDY_ROLE_INPUT}, {"y", outputs[1], EDDY_ROLE_OUTPUT}));
        must(eddy_program_describe(program, &info));
        counts[i] = info.instruction_count;
        eddy_program_release(&program);
    }
    cr_assert_eq(counts[0], counts[1]);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A view that begins in the midst of its storage, and one that is not row-major. */
Test(lists, slices_are_those_of_views) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_turned = 0; is_turned < 2; is_turned++) {
        world m;
        eddy_tensor *outputs[4], *expected[4], *results[4];
        make_world(&m, 3, false);
        eddy_tensor *all =
            eddy_randn(is_turned ? EDDY_SHAPE(SIZE, STEPS) : EDDY_SHAPE(9, SIZE), EDDY_F32, NULL);
        m.xs = is_turned ? eddy_t(all) : eddy_narrow(all, 0, 2, STEPS);
        must(eddy_record_begin(NULL));
        scan(&m, is_turned, outputs);
        eddy_program *program =
            end(EDDY_BINDINGS({"all", all, EDDY_ROLE_STATE}, {"h", outputs[0], EDDY_ROLE_OUTPUT},
                              {"rows", outputs[1], EDDY_ROLE_OUTPUT}));
        must(eddy_program_run(program, (eddy_list){0}, results));
        scan(&m, is_turned, expected);
        expect_same(results[0], expected[0], "h");
        expect_same(results[1], expected[1], "rows");
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- lists of a while ---- */

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status counted(void *context, eddy_list inputs, eddy_tensor **outputs) {
    world *m = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_tanh(eddy_mul(inputs.items[1], m->w));
    outputs[2] = eddy_mul_s(outputs[1], EDDY_S(2));
    outputs[3] = inputs.items[0];
    return outputs[0] && outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_tensor *count_of(int count) {
    return eddy_full((eddy_shape){0}, EDDY_S(count), EDDY_I64, NULL);
}

static eddy_status count_down(world *m, eddy_tensor *count, eddy_tensor **outputs) {
    return eddy_while(is_left, counted, m, EDDY_LIST(count, m->h),
                      EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = 2), outputs);
}

Test(lists, a_while_gives_the_rows_of_its_steps) {
    eddy_scope *scope = eddy_scope_begin();
    for (int recorded = 0; recorded <= STEPS; recorded += 2)
        for (int records_only = 0; records_only < 2; records_only++) {
            world m, eager;
            eddy_tensor *outputs[4], *expected[4], *results[3], *count = count_of(recorded);
            make_world(&m, 1, true);
            must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
            must(count_down(&m, count, outputs));
            must(eddy_backward(eddy_add(eddy_sum(outputs[1], EDDY_ALL_AXES, NULL),
                                        eddy_sum(outputs[2], EDDY_ALL_AXES, NULL))));
            eddy_program *program = end(EDDY_BINDINGS(
                {"count", count, EDDY_ROLE_INPUT}, {"h", eddy_detach(outputs[1]), EDDY_ROLE_OUTPUT},
                {"rows", eddy_detach(outputs[2]), EDDY_ROLE_OUTPUT},
                {"counts", outputs[3], EDDY_ROLE_OUTPUT}));
            for (int steps = 0; steps <= STEPS; steps++) {
                int64_t counts[STEPS] = {0}, read[STEPS];
                for (int i = 0; i < steps; i++)
                    counts[i] = steps - i;
                make_world(&eager, 1, true);
                must(count_down(&eager, count_of(steps), expected));
                must(eddy_program_run(program, EDDY_LIST(count_of(steps)), results));
                for (int i = 0; i < 3; i++)
                    expect_same(results[i], expected[1 + i], "results");
                must(eddy_read(expected[3], read, sizeof(read), NULL));
                cr_assert_arr_eq(read, counts, sizeof(read));
                must(eddy_backward(eddy_add(eddy_sum(expected[1], EDDY_ALL_AXES, NULL),
                                            eddy_sum(expected[2], EDDY_ALL_AXES, NULL))));
                if (eddy_has_grad(eager.w))
                    expect_same(eddy_grad_of(m.w), eddy_grad_of(eager.w), "w");
                expect_same(eddy_grad_of(m.h), eddy_grad_of(eager.h), "h");
            }
            eddy_program_release(&program);
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what fails ---- */

static eddy_status widening(void *context, eddy_list inputs, eddy_tensor **outputs) {
    int *calls = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_ones(EDDY_SHAPE(++*calls), EDDY_F32, NULL);
    return EDDY_OK;
}

static eddy_status fails(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context, (void)inputs, (void)outputs;
    return EDDY_INVALID_ARGUMENT;
}

static eddy_status draws(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_rand(EDDY_SHAPE(2), EDDY_F32, NULL);
    return EDDY_OK;
}

/* Something whose shape depends on data, on the way. */
static eddy_status chooses(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *chosen = eddy_nonzero(inputs.items[0]);
    return chosen ? draws(context, inputs, outputs) : EDDY_UNSUPPORTED;
}

Test(lists, arguments_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out[2];
    int calls = 0;
    eddy_list carried = EDDY_LIST(count_of(2));
#define LOOP(body, steps, lists)                                                                   \
    (void)!eddy_while(is_left, body, &calls, carried,                                              \
                      EDDY_OPTIONS(while, .most_steps = steps, .list_count = lists), out)
    LOOP(draws, 0, 1);
    expect_error(EDDY_INVALID_ARGUMENT, "while: lists have most_steps rows, and most_steps is 0");
    LOOP(draws, 4, -1);
    expect_error(EDDY_INVALID_ARGUMENT, "while: there can be no -1 lists");
    LOOP(draws, 4, INT64_MAX);
    expect_error(EDDY_INVALID_ARGUMENT, "while: there can be no 9223372036854775807 lists");
    LOOP(widening, 4, 1);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_str_eq(error.op, "stack");
    carried = EDDY_LIST(count_of(0));
    LOOP(fails, 4, 1);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "there was no step"), "%s", error.message);
    LOOP(draws, 4, 1);
    cr_assert_eq(eddy_error_take(&error), EDDY_OK, "%s", error.message);
    cr_assert_eq(eddy_count_of(out[1]), 8);
    cr_assert_eq(sum_of(out[1]), 0);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The recording is spoiled, and the calls go on where they run. */
Test(lists, what_cannot_be_recorded_goes_on) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *out[2];
    char reason[400];
    static eddy_block *const bodies[] = {chooses, widening};
    for (int i = 0; i < 2; i++) {
        int calls = 0;
        must(eddy_record_begin(NULL));
        eddy_status status = eddy_while(is_left, bodies[i], &calls, EDDY_LIST(count_of(2)),
                                        EDDY_OPTIONS(while, .most_steps = 4, .list_count = 1), out);
        cr_assert_eq(status, i == 0 ? EDDY_OK : EDDY_SHAPE_MISMATCH);
        if (i == 0)
            cr_assert_gt(sum_of(out[1]), 0);
        eddy_error_take(NULL);
        cr_assert_not(eddy_can_record(reason, sizeof(reason)));
        cr_assert_not_null(strstr(reason, i == 0 ? "the shape of its result depends on its data"
                                                 : "a function gives other results each time"),
                           "%s", reason);
        eddy_record_cancel();
    }
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    cr_assert_eq(eddy_while(is_left, chooses, NULL, EDDY_LIST(count_of(2)),
                            EDDY_OPTIONS(while, .most_steps = 4, .list_count = 1), out),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "while: nonzero: the shape of its result depends on its data, and the recording "
                 "does not run its calls (i64[])");
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status added(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_status status = eddy_add_inplace(inputs.items[0], inputs.items[1]);
    outputs[0] = eddy_square(inputs.items[0]);
    return status;
}

/* Whether what the body has made has a gradient depends on the way. */
static eddy_status tapeless(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *own = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    return eddy_cond(truth(true), added, same, NULL, EDDY_LIST(own, inputs.items[0]), 1, NULL,
                     outputs);
}

Test(lists, slices_do_not_lose_their_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    char reason[400];
    eddy_tensor *xs = eddy_full(EDDY_SHAPE(2, SIZE), EDDY_S(3.0), EDDY_F32, NULL), *out;
    eddy_requires_grad_set(xs, true);
    must(eddy_record_begin(NULL));
    must(eddy_scan(tapeless, NULL, (eddy_list){0}, EDDY_LIST(xs), 1,
                   EDDY_OPTIONS(scan, .is_rolled = true), &out));
    must(eddy_backward(eddy_sum(out, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(eddy_grad_of(xs)), 36);
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_not_null(
        strstr(reason, "whose gradient a tensor has would depend on a branch or a loop"), "%s",
        reason);
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Slices that a gradient needs come from xs again: they are not kept twice, and xs is not written to in between. */
Test(lists, slices_are_not_saved_twice) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_written = 0; is_written < 2; is_written++) {
        world m;
        eddy_tensor *outputs[4], *steps;
        make_world(&m, 1, true);
        eddy_requires_grad_set(m.xs, false);
        must(eddy_record_begin(NULL));
        scan(&m, false, outputs);
        if (is_written)
            must(eddy_mul_s_inplace(m.xs, EDDY_S(2)));
        steps = loss_of(outputs);
        if (is_written) {
            cr_assert_eq(eddy_backward(steps), EDDY_INVALID_ARGUMENT);
            eddy_error error;
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "written to in place since"), "%s",
                               error.message);
            eddy_record_cancel();
            continue;
        }
        must(eddy_backward(steps));
        eddy_program *program = end(EDDY_BINDINGS({"xs", m.xs, EDDY_ROLE_INPUT},
                                                  {"loss", eddy_detach(steps), EDDY_ROLE_OUTPUT}));
        char text[16384] = "";
        FILE *file = fmemopen(text, sizeof(text), "w");
        must(eddy_program_print(program, file, NULL));
        fclose(file);
        int lists = 0;
        for (const char *at = text; (at = strstr(at, "list_set(")); at++)
            lists++;
        /* Of the rows that are used, of h and of its tanh. */
        cr_assert_eq(lists, 3, "%s", text);
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status writes_slice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_status status = eddy_mul_s_inplace(inputs.items[1], EDDY_S(2));
    outputs[0] = eddy_add(inputs.items[0], inputs.items[1]);
    return status;
}

/* Step by step that is a write to xs; a rolled one would lose it. */
Test(lists, slices_are_not_written) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_rolled = 0; is_rolled < 2; is_rolled++)
        for (int wants = 0; wants < 2; wants++) {
            world m;
            eddy_tensor *sum;
            char reason[400];
            make_world(&m, 1, false);
            eddy_requires_grad_set(m.h, wants);
            m.xs = eddy_ones(EDDY_SHAPE(2, SIZE), EDDY_F32, NULL);
            must(eddy_record_begin(NULL));
            must(eddy_scan(writes_slice, NULL, EDDY_LIST(eddy_mul_s(m.h, EDDY_S(0))),
                           EDDY_LIST(m.xs), 1, EDDY_OPTIONS(scan, .is_rolled = is_rolled), &sum));
            cr_assert_eq(sum_of(eddy_detach(sum)), 4 * SIZE);
            cr_assert_eq(sum_of(m.xs), 4 * SIZE);
            cr_assert_eq(eddy_can_record(reason, sizeof(reason)), !is_rolled);
            if (is_rolled)
                cr_assert_not_null(strstr(reason, "writes to a slice of xs[0]"), "%s", reason);
            eddy_record_cancel();
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- edges that are one tensor ---- */

static eddy_status products(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *sum = eddy_sum(context, EDDY_AXES(0), NULL);
    outputs[0] = eddy_add(inputs.items[0], eddy_mul(inputs.items[1], inputs.items[2]));
    outputs[1] = eddy_mul(inputs.items[1], sum);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* xs twice, and used as a whole too: the parts of its gradient are counted once. */
Test(lists, one_tensor_may_be_given_twice) {
    eddy_scope *scope = eddy_scope_begin();
    for (int mode = 0; mode < 4; mode++)
        for (int which = 0; which < 2; which++) {
            eddy_tensor *xs = eddy_full(EDDY_SHAPE(2, SIZE), EDDY_S(3), EDDY_F32, NULL), *out[2],
                        *runs[2], *result;
            eddy_tensor *zero = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
            eddy_requires_grad_set(xs, true);
            if (mode > 0)
                must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = mode == 2)));
            must(eddy_scan(products, xs, EDDY_LIST(zero), EDDY_LIST(xs, xs), 2,
                           EDDY_OPTIONS(scan, .is_rolled = true), out));
            double expected = which == 0 ? 2 * SIZE * 6 : 2 * SIZE * (6 + 6);
            if (mode == 3) {
                eddy_program *program = eddy_record_end_with_grad(
                    EDDY_BINDINGS({"xs", xs, EDDY_ROLE_INPUT}, {"o0", out[0], EDDY_ROLE_OUTPUT},
                                  {"o1", out[1], EDDY_ROLE_OUTPUT}));
                cr_assert_not_null(program);
                must(eddy_program_run(program, EDDY_LIST(xs), runs));
                must(eddy_backward(eddy_sum(runs[which], EDDY_ALL_AXES, NULL)));
                cr_assert_eq(sum_of(eddy_grad_of(xs)), expected);
                eddy_program_release(&program);
                continue;
            }
            must(eddy_backward(eddy_sum(out[which], EDDY_ALL_AXES, NULL)));
            if (mode != 2)
                cr_assert_eq(sum_of(eddy_grad_of(xs)), expected, "%d %d", mode, which);
            if (mode == 0)
                continue;
            eddy_program *program = end(EDDY_BINDINGS(
                {"xs", xs, EDDY_ROLE_INPUT}, {"grad", eddy_grad_of(xs), EDDY_ROLE_OUTPUT}));
            must(eddy_program_run(program, EDDY_LIST(eddy_detach(xs)), &result));
            cr_assert_eq(sum_of(result), expected);
            eddy_program_release(&program);
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- rows ---- */

static eddy_status many_axes(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] =
        eddy_ones(EDDY_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), EDDY_F32, NULL);
    return EDDY_OK;
}

Test(lists, rows_have_an_axis_less_than_tensors_may_have) {
    eddy_scope *scope = eddy_scope_begin();
    for (int steps = 0; steps < 2; steps++)
        for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
            eddy_tensor *out[2];
            eddy_error error;
            if (is_recorded)
                must(eddy_record_begin(NULL));
            cr_assert_neq(eddy_while(is_left, many_axes, NULL, EDDY_LIST(count_of(steps)),
                                     EDDY_OPTIONS(while, .most_steps = 2, .list_count = 1), out),
                          EDDY_OK);
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "axes"), "%s", error.message);
            eddy_record_cancel();
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status adds(void *context, eddy_list inputs, eddy_tensor **outputs) {
    world *m = context;
    must(eddy_add_inplace(inputs.items[1], m->w));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = inputs.items[1];
    outputs[2] = eddy_sin(inputs.items[1]);
    return EDDY_OK;
}

/* Rows are known from the recording, also where no step runs. */
Test(lists, a_recorded_loop_may_take_no_step) {
    eddy_scope *scope = eddy_scope_begin();
    world m;
    eddy_tensor *out[3];
    char reason[400];
    make_world(&m, 1, true);
    must(eddy_record_begin(NULL));
    must(eddy_while(is_left, adds, &m, EDDY_LIST(count_of(0), m.h),
                    EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = 1), out));
    cr_assert_eq(eddy_count_of(out[2]), STEPS * SIZE);
    cr_assert(eddy_can_record(reason, sizeof(reason)), "%s", reason);
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
