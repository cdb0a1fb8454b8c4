/* Gradients through loops in loops, whose inner steps read what the outer step has: in programs they are those of the calls.
 *
 *   h = x   as often as count says { z = x   as often { z = z * h }   h = z }
 *
 * Numbers are small integers: no order of sums rounds them. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/rounds.h>

#define STEPS 3

/* What the inner loop is. */
typedef enum inner {
    INNER_WHILE,
    INNER_SCAN,
    INNER_ROWS,   /* gives rows, which the outer step adds up */
    INNER_BRANCH, /* its steps are branches on a predicate of the outer step */
    INNER_IN_BRANCH,
    INNER_DRAWS, /* its steps draw */
    INNER_COUNT
} inner;

/* Where the outer step has `h` from. */
typedef enum outer { OUTER_CARRIES, OUTER_MAKES, OUTER_VIEWS, OUTER_SLICES, OUTER_COUNT } outer;

typedef struct nest {
    inner inner;
    outer outer;
    int depth; /* loops within the outer one */
    eddy_tensor *x, *count;
    eddy_tensor *h, *predicate; /* of the outer step */
} nest;

static eddy_tensor *number(double value) {
    return eddy_full((eddy_shape){0}, EDDY_S(value), EDDY_F64, NULL);
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status multiply(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const nest *n = context;
    return done(outputs, eddy_mul(inputs.items[0], n->h));
}

static eddy_status multiply_drawn(const nest *n, eddy_tensor *z, eddy_tensor **made) {
    eddy_tensor *half = eddy_mul(eddy_dropout(z, EDDY_S(0.5), NULL), n->h);
    return done(made, eddy_add(eddy_dropout(half, EDDY_S(0.5), NULL), n->h));
}

static eddy_status go_deeper(const nest *n, eddy_tensor *z, eddy_tensor **made);

static eddy_status inner_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    nest n = *(nest *)context;
    eddy_tensor *z = inputs.items[1];
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    if (n.inner == INNER_ROWS)
        outputs[2] = eddy_mul(n.h, n.h);
    if (--n.depth > 0)
        return go_deeper(&n, z, outputs + 1);
    if (n.inner == INNER_BRANCH)
        return eddy_cond(n.predicate, multiply, same, &n, EDDY_LIST(z), 1, NULL, outputs + 1);
    return n.inner == INNER_DRAWS ? multiply_drawn(&n, z, outputs + 1)
                                  : multiply(&n, EDDY_LIST(z), outputs + 1);
}

static eddy_status go_deeper(const nest *n, eddy_tensor *z, eddy_tensor **made) {
    nest own = *n;
    eddy_tensor *outputs[3];
    bool has_rows = n->inner == INNER_ROWS;
    eddy_status status =
        eddy_while(is_left, inner_step, &own, EDDY_LIST(n->count, z),
                   EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = has_rows), outputs);
    if (status != EDDY_OK)
        return status;
    *made = has_rows ? eddy_add(outputs[1], eddy_sum(outputs[2], EDDY_ALL_AXES, NULL)) : outputs[1];
    return *made ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status inner_loop(void *context, eddy_list inputs, eddy_tensor **outputs) {
    nest *n = context;
    if (n->inner != INNER_SCAN)
        return go_deeper(n, inputs.items[0], outputs);
    return eddy_scan(multiply, n, EDDY_LIST(inputs.items[0]),
                     EDDY_LIST(eddy_zeros(EDDY_SHAPE(2), EDDY_F64, NULL)), 1,
                     EDDY_OPTIONS(scan, .is_rolled = true), outputs);
}

static eddy_status run_inner(const nest *of, eddy_tensor *h, eddy_tensor *z,
                             eddy_tensor **outputs) {
    nest n = *of;
    n.h = h;
    n.predicate = eddy_gt_s(eddy_detach(h), EDDY_S(0));
    return n.inner == INNER_IN_BRANCH
               ? eddy_cond(n.predicate, inner_loop, same, &n, EDDY_LIST(z), 1, NULL, outputs)
               : inner_loop(&n, EDDY_LIST(z), outputs);
}

static eddy_status outer_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const nest *n = context;
    eddy_tensor *h = inputs.items[1];
    if (n->outer == OUTER_MAKES)
        h = eddy_neg(h);
    if (n->outer == OUTER_VIEWS)
        h = eddy_select(eddy_stack(EDDY_LIST(n->x, eddy_neg(h)), 0), 0, 1);
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return run_inner(n, h, n->x, outputs + 1);
}

static eddy_status outer_slice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return run_inner(context, inputs.items[1], inputs.items[0], outputs);
}

static eddy_tensor *nest_of(const nest *n) {
    nest own = *n;
    eddy_tensor *made[2] = {NULL, NULL};
    if (n->outer != OUTER_SLICES) {
        must(eddy_while(is_left, outer_step, &own, EDDY_LIST(n->count, n->x),
                        EDDY_OPTIONS(while, .most_steps = STEPS), made));
        return made[1];
    }
    eddy_tensor *slices =
        eddy_stack(EDDY_LIST(n->x, eddy_neg(n->x), eddy_add_s(n->x, EDDY_S(1))), 0);
    must(eddy_scan(outer_slice, &own, EDDY_LIST(n->x), EDDY_LIST(slices), 1,
                   EDDY_OPTIONS(scan, .is_rolled = true), made));
    return made[0];
}

static eddy_tensor *count_of(int count) {
    return eddy_full((eddy_shape){0}, EDDY_S(count), EDDY_I64, NULL);
}

/* The gradient of the calls. */
static double expected_gradient(nest n, double x, int count) {
    eddy_tensor *gradient;
    n.x = number(x);
    n.count = count_of(count);
    eddy_requires_grad_set(n.x, true);
    eddy_seed(9);
    must(eddy_backward_to(EDDY_LIST(nest_of(&n)), EDDY_LIST(n.x), (eddy_list){0}, NULL, &gradient));
    return eddy_item_f64(gradient, NULL);
}

static void expect_gradient(const nest *n, double x, int count, eddy_tensor *gradient) {
    double is = eddy_item_f64(gradient, NULL), expected = expected_gradient(*n, x, count);
    cr_assert(is == expected, "inner %d, outer %d, %d loops, x %g, %d steps: %g, the calls give %g",
              n->inner, n->outer, n->depth, x, count, is, expected);
}

static void start(nest *n, double x, int count) {
    n->x = number(x);
    n->count = count_of(count);
    eddy_requires_grad_set(n->x, true);
}

static const double xs[] = {2, -1, -2, 1};

/* A run is one node. */
static void try_runs(nest n, int recorded_count, bool records_only) {
    eddy_error error = {0};
    start(&n, 2, recorded_count);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    eddy_tensor *y = nest_of(&n), *gradient;
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT}, {"count", n.count, EDDY_ROLE_INPUT},
                      {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program, "inner %d, outer %d: %s", n.inner, n.outer,
                       (eddy_error_take(&error), error.message));
    for (int i = 0; i < 4; i++) {
        int count = i % (n.depth > 1 ? 3 : 4);
        start(&n, xs[i], count);
        eddy_seed(9);
        must(eddy_program_run(program, EDDY_LIST(n.x, n.count), &y));
        must(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(n.x), (eddy_list){0}, NULL, &gradient));
        expect_gradient(&n, xs[i], count, gradient);
    }
    eddy_program_release(&program);
}

/* The backward pass is a part of the program: two of them, the second of which finds what the first has left. */
static void try_step(nest n, int recorded_count, bool records_only) {
    eddy_tensor *first, *second;
    start(&n, 2, recorded_count);
    eddy_seed(9);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    eddy_tensor *y = nest_of(&n);
    must(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(n.x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .keeps_graph = true), &first));
    must(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(n.x), (eddy_list){0}, NULL, &second));
    eddy_tensor *gradient = eddy_mul_s(eddy_add(first, second), EDDY_S(0.5));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT}, {"count", n.count, EDDY_ROLE_INPUT},
                          {"gradient", gradient, EDDY_ROLE_OUTPUT}));
    if (!records_only)
        expect_gradient(&n, 2, recorded_count, gradient);
    for (int i = 0; i < 4; i++) {
        int count = i % (n.depth > 1 ? 3 : 4);
        eddy_seed(9);
        must(eddy_program_run(program, EDDY_LIST(number(xs[i]), count_of(count)), &gradient));
        expect_gradient(&n, xs[i], count, gradient);
    }
    eddy_program_release(&program);
}

static void try_all(nest n) {
    for (int k = 0; k < 2; k++) {
        if (!rounds_has_next())
            continue;
        try_runs(n, 1 + k, k);
        try_step(n, 1 + k, k);
    }
}

Test(loop_in_loop, inner_steps_read_what_the_outer_step_has) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < INNER_COUNT; i++)
        for (int o = 0; o < OUTER_COUNT; o++)
            try_all((nest){.inner = (inner)i, .outer = (outer)o, .depth = 1});
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Four loops: the innermost reads what the outermost has. */
Test(loop_in_loop, so_do_those_of_loops_further_in) {
    eddy_scope *scope = eddy_scope_begin();
    for (int depth = 2; depth < 4; depth++)
        for (int o = 0; o < OUTER_SLICES; o++) {
            try_all((nest){.inner = INNER_WHILE, .outer = (outer)o, .depth = depth});
            try_all((nest){.inner = INNER_BRANCH, .outer = (outer)o, .depth = depth});
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status gradient_of(void *context, eddy_recorded_call *call) {
    nest n = *(nest *)context;
    eddy_tensor *leaf = n.x;
    n.count = call->inputs.items[1];
    n.x = eddy_mul(leaf, call->inputs.items[0]);
    must(eddy_grads_zero(EDDY_LIST(leaf)));
    must(eddy_backward(nest_of(&n)));
    call->outputs[0] = eddy_div(eddy_grad_of(leaf), call->inputs.items[0]);
    return EDDY_OK;
}

Test(loop_in_loop, a_recorded_function_is_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    char text[400];
    for (int i = 0; i < INNER_DRAWS; i++) {
        nest n = {.inner = (inner)i, .depth = 1};
        double expected[5];
        for (int k = 0; k < 5; k++) /* before: a new leaf in between is a change */
            expected[k] = expected_gradient(n, xs[k % 4], 1 + k % STEPS);
        start(&n, 1, 0); /* a leaf, by which the input is multiplied */
        eddy_recorded *recorded = eddy_recorded_create(gradient_of, &n, 1, NULL);
        for (int k = 0; k < 5; k++) {
            eddy_tensor *gradient;
            eddy_list inputs = EDDY_LIST(number(xs[k % 4]), count_of(1 + k % STEPS));
            must(eddy_recorded_run(recorded, inputs, (eddy_scalars){0}, &gradient));
            cr_assert_eq(eddy_item_f64(gradient, NULL), expected[k], "inner %d, call %d", i, k);
        }
        eddy_recorded_explain(recorded, text, sizeof(text));
        cr_assert_not_null(strstr(text, "replayed 3 times"), "%s", text);
        eddy_recorded_release(&recorded);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- threads ---- */

#define THREADS 4

typedef struct passing {
    eddy_tensor *y, *x;
    double first, second;
} passing;

/* Gradients, and theirs. */
static void *pass(void *context) {
    passing *p = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *first = NULL, *second = NULL;
    must(eddy_backward_to(EDDY_LIST(p->y), EDDY_LIST(p->x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .keeps_graph = true, .creates_graph = true),
                          &first));
    must(eddy_backward_to(EDDY_LIST(first), EDDY_LIST(p->x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .keeps_graph = true), &second));
    p->first = eddy_item_f64(first, NULL);
    p->second = eddy_item_f64(second, NULL);
    eddy_scope_end(scope);
    return NULL;
}

/* One of them unfolds the run, step by step, while the others come to it. */
static void pass_at_once(const nest *n, eddy_program *program, const passing *expected) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *y, *x = number(2);
    passing passings[THREADS];
    pthread_t threads[THREADS];
    must(eddy_requires_grad_set(x, true));
    eddy_seed(9);
    must(eddy_program_run(program, EDDY_LIST(x, count_of(2)), &y));
    for (int i = 0; i < THREADS; i++) {
        passings[i] = (passing){.y = y, .x = x};
        cr_assert_eq(pthread_create(&threads[i], NULL, pass, &passings[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(passings[i].first == expected->first && passings[i].second == expected->second,
                  "inner %d: %g and %g instead of %g and %g", n->inner, passings[i].first,
                  passings[i].second, expected->first, expected->second);
    }
    eddy_scope_end(scope);
}

Test(loop_in_loop, threads_go_back_twice_at_once) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < INNER_COUNT; i++) {
        nest n = {.inner = (inner)i, .depth = 1};
        start(&n, 2, 2);
        eddy_seed(9);
        passing calls = {.y = nest_of(&n), .x = n.x};
        pass(&calls);
        must(eddy_record_begin(NULL));
        eddy_program *program = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT}, {"count", n.count, EDDY_ROLE_INPUT},
                          {"y", nest_of(&n), EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(program);
        for (int round = 0; round < 15; round++)
            pass_at_once(&n, program, &calls);
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what was overwritten ---- */

static eddy_status overwrites(void *context, eddy_list inputs, eddy_tensor **outputs) {
    nest n = *(nest *)context;
    n.h = eddy_neg(inputs.items[1]);
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    must(go_deeper(&n, n.x, outputs + 1));
    return eddy_mul_s_inplace(n.h, EDDY_S(2));
}

/* The outer step writes what the inner loop has read: the calls fail, too, in the backward pass. */
Test(loop_in_loop, what_the_outer_step_overwrites_is_noticed) {
    eddy_scope *scope = eddy_scope_begin();
    for (int records_only = 0; records_only < 2; records_only++) {
        nest n = {.inner = INNER_WHILE, .depth = 1};
        eddy_tensor *made[2];
        char reason[400];
        start(&n, 2, 2);
        must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
        must(eddy_while(is_left, overwrites, &n, EDDY_LIST(n.count, n.x),
                        EDDY_OPTIONS(while, .most_steps = STEPS), made));
        cr_assert_not(eddy_can_record(reason, sizeof(reason)));
        cr_assert_not_null(strstr(reason, "was written to in place since"), "%s", reason);
        eddy_record_cancel();
    }
    eddy_scope_end(scope);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
}
