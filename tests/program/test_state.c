/* One program on several sets of state: tensors that are given in place of those that it was recorded with. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>

#define ROWS 3
#define COLUMNS 4
#define COUNT (ROWS * COLUMNS)

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(ROWS, COLUMNS), EDDY_S(value), EDDY_F32, NULL);
}

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_program *program = eddy_record_end(bindings);
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* y = x w + captured; total += x; same = total */
typedef struct fixture {
    eddy_program *program;
    eddy_tensor *w, *total, *captured;
} fixture;

static fixture make(void) {
    eddy_tensor *x = filled(1), *w = filled(2), *total = filled(0), *captured = filled(100);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add(eddy_mul(x, w), captured);
    must(eddy_add_into(total, x, total));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"w", w, EDDY_ROLE_STATE},
        {"total", total, EDDY_ROLE_STATE}, {"same", total, EDDY_ROLE_OUTPUT}));
    return (fixture){program, w, total, captured};
}

#define RUN(program, feeds, fetches) must(eddy_program_run_named(program, feeds, fetches, NULL))

Test(state, may_be_given) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *totals[3] = {filled(1000), filled(2000), filled(3000)}, *y, *same;
    for (int i = 0; i < 9; i++) {
        RUN(f.program,
            EDDY_FEEDS({"total", totals[i % 3]}, {"x", filled(i)}, {"w", filled(10 * i)}),
            EDDY_FETCHES({"y", &y}, {"same", &same}));
        cr_assert_eq(sum_of(y), COUNT * (10 * i * i + 100));
        cr_assert_eq(sum_of(same), sum_of(totals[i % 3]),
                     "an output that is state is what was given");
    }
    cr_assert_eq(sum_of(totals[0]), COUNT * (1000 + 0 + 3 + 6));
    cr_assert_eq(sum_of(totals[2]), COUNT * (3000 + 2 + 5 + 8));
    cr_assert_eq(sum_of(f.total), COUNT, "its own is left alone");
    /* One may be given, and the others be the program's. */
    RUN(f.program, EDDY_FEEDS({"x", filled(5)}, {"w", filled(3)}), EDDY_FETCHES({"y", &y}));
    cr_assert_eq(sum_of(y), COUNT * 115);
    cr_assert_eq(sum_of(f.total), COUNT * 6);
    must(eddy_program_run(f.program, EDDY_LIST(filled(1)), (eddy_tensor *[2]){0}));
    cr_assert_eq(sum_of(f.total), COUNT * 7);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Parameters often are parts of one vector. */
Test(state, may_be_a_part_of_a_larger_tensor) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *all = eddy_zeros(EDDY_SHAPE(5 * COUNT), EDDY_F32, NULL);
    eddy_tensor *part =
        eddy_reshape(eddy_narrow(all, 0, 2 * COUNT, COUNT), EDDY_SHAPE(ROWS, COLUMNS));
    eddy_tensor *same = NULL;
    for (int i = 0; i < 3; i++)
        RUN(f.program, EDDY_FEEDS({"total", part}, {"x", filled(2)}),
            EDDY_FETCHES({"same", &same}));
    cr_assert_eq(sum_of(same), 6 * COUNT);
    cr_assert_eq(sum_of(eddy_narrow(all, 0, 2 * COUNT, COUNT)), 6 * COUNT);
    cr_assert_eq(sum_of(all), 6 * COUNT, "and nothing beside it");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- training ---- */

typedef struct model {
    eddy_tensor *w, *momentum;
} model;

static model model_make(double value) {
    model m = {filled(value), filled(0)};
    must(eddy_requires_grad_set(m.w, true));
    return m;
}

static eddy_tensor *train(const model *m, eddy_tensor *x) {
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    eddy_tensor *loss = eddy_mean(eddy_square(eddy_mul(x, m->w)), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    must(eddy_add_into(eddy_mul_s(m->momentum, EDDY_S(0.5)), eddy_grad_of(m->w), m->momentum));
    must(eddy_sub_into(m->w, m->momentum, m->w));
    eddy_no_grad_end();
    return eddy_detach(loss);
}

static eddy_program *record_training(const model *m) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *loss = train(m, x);
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"loss", loss, EDDY_ROLE_OUTPUT},
                             {"w", m->w, EDDY_ROLE_STATE},
                             {"momentum", m->momentum, EDDY_ROLE_STATE}));
}

Test(state, a_step_trains_the_model_that_is_given) {
    eddy_scope *scope = eddy_scope_begin();
    model own = model_make(1), given = model_make(5), eager = model_make(5);
    eddy_program *step = record_training(&own);
    double own_w = sum_of(own.w), own_grad = sum_of(eddy_grad_of(own.w));
    for (int i = 1; i < 5; i++) {
        eddy_tensor *loss, *wanted = train(&eager, filled(i));
        RUN(step, EDDY_FEEDS({"x", filled(i)}, {"w", given.w}, {"momentum", given.momentum}),
            EDDY_FETCHES({"loss", &loss}));
        cr_assert_eq(sum_of(loss), sum_of(wanted));
        cr_assert_eq(sum_of(given.w), sum_of(eager.w));
        cr_assert_eq(sum_of(given.momentum), sum_of(eager.momentum));
        cr_assert_eq(sum_of(eddy_grad_of(given.w)), sum_of(eddy_grad_of(eager.w)));
    }
    cr_assert_eq(sum_of(own.w), own_w);
    cr_assert_eq(sum_of(eddy_grad_of(own.w)), own_grad);
    eddy_program_release(&step);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(state, whose_gradient_is_kept_is_a_leaf) {
    eddy_scope *scope = eddy_scope_begin();
    model own = model_make(1), given = model_make(5);
    eddy_program *step = record_training(&own);
    eddy_tensor *loss = NULL, *plain = filled(5);
    eddy_status status = eddy_program_run_named(step, EDDY_FEEDS({"x", filled(2)}, {"w", plain}),
                                                EDDY_FETCHES({"loss", &loss}), NULL);
    cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
    expect_error(status, "program_run_named: state w is given a tensor that wants no gradient, and "
                         "the program keeps one for it");
    status = eddy_program_run_named(step, EDDY_FEEDS({"x", filled(2)}, {"w", eddy_neg(given.w)}),
                                    EDDY_FETCHES({"loss", &loss}), NULL);
    cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_program_release(&step);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Of a gradient that was there before, another tensor in the place of its leaf has none, unless it has a name, too. */
Test(state, whose_old_gradient_is_used_is_given_with_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = filled(1), *other = filled(2), *x = filled(3), *leaves[2] = {w, other};
    for (int i = 0; i < 2; i++) {
        must(eddy_requires_grad_set(leaves[i], true));
        must(eddy_backward(eddy_sum(eddy_mul(leaves[i], x), EDDY_ALL_AXES, NULL)));
    }
    for (int has_name = 0; has_name < 2; has_name++) {
        eddy_tensor *gradient = eddy_grad_of(w);
        must(eddy_record_begin(NULL));
        must(eddy_backward(eddy_sum(eddy_mul(w, x), EDDY_ALL_AXES, NULL)));
        eddy_binding bindings[] = {{"x", x, EDDY_ROLE_INPUT},
                                   {"w", w, EDDY_ROLE_STATE},
                                   {"w.grad", gradient, EDDY_ROLE_STATE}};
        eddy_program *program = end(&(eddy_bindings){bindings, 2 + has_name});
        eddy_feed feeds[] = {{"x", x}, {"w", other}, {"w.grad", eddy_grad_of(other)}};
        eddy_status status = eddy_program_run_named(program, (eddy_feeds){feeds, 2 + has_name},
                                                    (eddy_fetches){0}, NULL);
        cr_assert_eq(status, has_name ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        if (!has_name)
            expect_error(status,
                         "program_run_named: the program uses the gradient that state w had "
                         "when it was recorded: name that as state, too, or drop it within "
                         "the recording");
        eddy_program_release(&program);
    }
    cr_assert_eq(sum_of(eddy_grad_of(w)), 9 * COUNT, "by the recorded calls");
    cr_assert_eq(sum_of(eddy_grad_of(other)), 6 * COUNT);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(state, a_gradient_sees_that_its_operand_was_written) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *factor = filled(1), *leaf = filled(2);
    must(eddy_requires_grad_set(leaf, true));
    eddy_tensor *product = eddy_mul(leaf, factor);
    RUN(f.program, EDDY_FEEDS({"x", filled(1)}, {"total", factor}), (eddy_fetches){0});
    eddy_error error = {0};
    cr_assert_neq(eddy_backward(eddy_sum(product, EDDY_ALL_AXES, NULL)), EDDY_OK);
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "written to in place"), "%s", error.message);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
}

/* ---- errors within a run ---- */

Test(state, errors_stay_with_what_was_given) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t places[2] = {1, 99};
    eddy_tensor *table = filled(5), *sum = eddy_zeros(EDDY_SHAPE(1, COLUMNS), EDDY_F32, NULL);
    eddy_tensor *good = eddy_from_data(&places[0], EDDY_SHAPE(1), EDDY_I64, NULL),
                *bad = eddy_from_data(&places[1], EDDY_SHAPE(1), EDDY_I64, NULL);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(sum, eddy_index_select(table, good, 0), sum));
    eddy_program *program =
        end(EDDY_BINDINGS({"at", good, EDDY_ROLE_INPUT}, {"sum", sum, EDDY_ROLE_STATE}));
    eddy_tensor *given = eddy_zeros_like(sum, NULL);
    RUN(program, EDDY_FEEDS({"at", bad}, {"sum", given}), (eddy_fetches){0});
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(given, EDDY_FOREVER, &error), EDDY_SKIPPED);
    cr_assert_eq(eddy_error_of(sum, EDDY_FOREVER, &error), EDDY_OK);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    must(eddy_recover(EDDY_LIST(given)));
    RUN(program, EDDY_FEEDS({"at", good}, {"sum", given}), (eddy_fetches){0});
    cr_assert_eq(sum_of(given), 5 * COLUMNS);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- bad input ---- */

static void expect_fails(const fixture *f, eddy_feeds feeds, eddy_status status,
                         const char *sentence) {
    char message[512];
    double before = sum_of(f->total);
    snprintf(message, sizeof(message), "program_run_named: %s", sentence);
    cr_assert_eq(eddy_program_run_named(f->program, feeds, (eddy_fetches){0}, NULL), status, "%s",
                 sentence);
    expect_error(status, message);
    cr_assert_eq(sum_of(f->total), before, "nothing has changed");
}

Test(state, what_does_not_fit_names_its_binding) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *x = filled(1), *good = filled(7);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
#define W(tensor) EDDY_FEEDS({"x", x}, {"total", good}, {"w", tensor})
    expect_fails(&f, W(eddy_cast(x, EDDY_F64)), EDDY_DTYPE_MISMATCH,
                 "state w is f64[3, 4], the program was recorded with f32[3, 4]");
    expect_fails(&f, W(eddy_t(x)), EDDY_SHAPE_MISMATCH,
                 "state w is f32[4, 3], the program was recorded with f32[3, 4]");
    expect_fails(&f, W(eddy_t(eddy_zeros(EDDY_SHAPE(COLUMNS, ROWS), EDDY_F32, NULL))),
                 EDDY_SHAPE_MISMATCH,
                 "state w has the strides [1, 3], the program was recorded with [4, 1]");
    expect_fails(&f, W(NULL), bad, "w is NULL");
    expect_fails(&f, W(good), bad,
                 "state w shares its memory with total, and the program writes it");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"total", x}), bad,
                 "state total shares its memory with x, and the program writes it");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"total", f.captured}), bad,
                 "state total shares its memory with a captured tensor, and the program writes it");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"total", f.w}), bad,
                 "state total shares its memory with w, and the program writes it");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"w", good}, {"w", good}), bad, "state w is given twice");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"y", good}), bad,
                 "y is a binding of the program, but no input: there are x");
    eddy_tensor *far = filled(1);
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 1}); /* there is none so far */
    expect_fails(&f, W(far), EDDY_DEVICE_MISMATCH, "state w lives on another device");
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 0});
    eddy_runtime *other = eddy_runtime_create(NULL);
    must(eddy_runtime_use(other));
    eddy_tensor *foreign = filled(1);
    must(eddy_runtime_use(NULL));
    expect_fails(&f, W(foreign), EDDY_RUNTIME_MISMATCH,
                 "state w belongs to another runtime than the program");
    cr_assert_eq(sum_of(good), 7 * COUNT);
    /* What is only read may be given twice, and a target may be no state. */
    must(
        eddy_program_run_named(f.program, EDDY_FEEDS({"x", x}, {"w", x}), (eddy_fetches){0}, NULL));
    eddy_status status =
        eddy_program_run_named(f.program, EDDY_FEEDS({"x", x}, {"w", good}), (eddy_fetches){0},
                               EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"y", good})));
    cr_assert_eq(status, bad);
    expect_error(bad,
                 "program_run_named: state w shares its memory with the target of output y, and "
                 "the program writes it");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(state, that_cannot_move_is_told) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *all = eddy_zeros(EDDY_SHAPE(9, COLUMNS), EDDY_F32, NULL),
                *part = eddy_narrow(all, 0, 3, ROWS), *covered = filled(0), *shared = filled(0);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(part, x, part));
    must(eddy_neg_into(x, covered));
    must(eddy_add_into(shared, x, shared));
    fixture f = {end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"part", part, EDDY_ROLE_STATE},
                                   {"covered", covered, EDDY_ROLE_STATE},
                                   {"shared", shared, EDDY_ROLE_STATE},
                                   {"turned", eddy_t(shared), EDDY_ROLE_STATE})),
                 NULL, all, NULL};
    eddy_tensor *other = filled(0), *large = eddy_zeros(EDDY_SHAPE(9, COLUMNS), EDDY_F32, NULL);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"part", other}), bad,
                 "state part is a part of a larger tensor of the program: no other tensor can take "
                 "its place");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"covered", eddy_narrow(large, 0, 3, ROWS)}), bad,
                 "state covered is given a part of a larger tensor, and the program writes all of "
                 "its memory");
    expect_fails(
        &f, EDDY_FEEDS({"x", x}, {"shared", other}, {"turned", eddy_t(filled(0))}), bad,
        "state turned has the memory of another state in the program, and is given that of "
        "another tensor");
    expect_fails(&f, EDDY_FEEDS({"x", x}, {"shared", other}, {"covered", other}), bad,
                 "state covered shares its memory with shared, and the program writes it");
    cr_assert_eq(sum_of(large), 0);
    must(eddy_program_run_named(
        f.program,
        EDDY_FEEDS({"x", x}, {"shared", other}, {"turned", eddy_t(other)}, {"covered", filled(0)}),
        (eddy_fetches){0}, NULL));
    cr_assert_eq(sum_of(other), COUNT);
    cr_assert_eq(sum_of(shared), COUNT, "by the recorded calls");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
