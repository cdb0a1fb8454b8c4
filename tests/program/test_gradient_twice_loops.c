/* Gradients of gradients through runs with loops: what eager calls give, however many steps a run makes. What a branch or a single call does: test_gradient_twice.c. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>
#include <tests/rounds.h>

#define SIZE 4
#define STEPS 5

typedef struct model {
    eddy_tensor *w, *v;
    eddy_tensor *x, *count, *rows; /* what a run is given */
} model;

static void make_model(model *m, int seed, int count) {
    eddy_seed((uint64_t)seed);
    m->w = leaf(eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL));
    m->v = leaf(eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL));
    m->x = leaf(eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL));
    m->rows = leaf(eddy_randn(EDDY_SHAPE(STEPS, SIZE), EDDY_F32, NULL));
    m->count = eddy_full((eddy_shape){0}, EDDY_S(count), EDDY_I64, NULL);
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

/* ---- bodies: a number of steps that are left, and two tensors ---- */

static eddy_status counted(eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return outputs[0] && outputs[1] && outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* A weight, and what is carried, are used several times: their sums have an order. */
static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = inputs.items[1], *gate = eddy_sigmoid(eddy_mul(h, m->w));
    eddy_tensor *next = eddy_tanh(eddy_add(eddy_mul(h, m->w), eddy_mul(inputs.items[2], m->v)));
    outputs[1] = eddy_add(eddy_mul(gate, next), eddy_mul(eddy_sin(h), m->v));
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

static eddy_status swap(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = inputs.items[2];
    outputs[2] = eddy_mul(eddy_square(inputs.items[1]), m->v);
    return counted(inputs, outputs);
}

/* What a step gives is used on within the step, and given twice. */
static eddy_status given_twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = eddy_mul(eddy_tanh(inputs.items[1]), eddy_add(m->w, inputs.items[2]));
    outputs[2] = outputs[1];
    return counted(inputs, outputs);
}

static eddy_status views(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *both = eddy_stack(EDDY_LIST(inputs.items[1], inputs.items[2]), 0);
    eddy_tensor *turned = eddy_t(eddy_sin(both)), *own = eddy_mul(eddy_select(turned, 1, 0), m->w);
    must(eddy_mul_s_inplace(own, EDDY_S(0.5)));
    outputs[1] = eddy_mul(eddy_sigmoid(own), eddy_select(turned, 1, 1));
    outputs[2] = eddy_cos(eddy_select(turned, 1, 1));
    return counted(inputs, outputs);
}

/* What a step gives is a tensor of its own, which wanted no gradient when it was made. */
static eddy_status in_place(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *own = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    must(eddy_add_inplace(inputs.items[1], m->w));
    must(eddy_add_inplace(own, eddy_square(inputs.items[1])));
    outputs[1] = own;
    outputs[2] = eddy_add(eddy_mul(own, inputs.items[2]), eddy_sin(own));
    return counted(inputs, outputs);
}

/* The tensor of its own has no copy, and its gradient is a sum of several. */
static eddy_status owned(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *own = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    must(eddy_add_inplace(own, eddy_sin(inputs.items[1])));
    outputs[1] = own;
    outputs[2] = eddy_add(eddy_add(eddy_mul_s(own, EDDY_S(0.3)), own),
                          eddy_add(eddy_mul(inputs.items[2], m->w), eddy_sub(m->v, own)));
    return counted(inputs, outputs);
}

/* What is carried is written in place, and given on. */
static eddy_status carried_in_place(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = inputs.items[1], *before = eddy_sub(eddy_mul_s(h, EDDY_S(0.7)), h);
    must(eddy_add_inplace(h, eddy_sin(m->w)));
    outputs[1] = h;
    outputs[2] = eddy_add(eddy_add(eddy_mul_s(h, EDDY_S(0.3)), h),
                          eddy_add(eddy_mul(inputs.items[2], m->w), eddy_sub(before, h)));
    return counted(inputs, outputs);
}

/* x x x, scaled; what it has saved are an input and its output. */
static eddy_status cube(eddy_forward_call *call) {
    eddy_tensor *x = call->inputs[0];
    call->outputs[0] = eddy_mul_s(eddy_mul(eddy_square(x), x), EDDY_S(*(double *)call->context));
    return eddy_forward_save(call, EDDY_LIST(x, call->outputs[0]));
}

static eddy_status cube_back(eddy_backward_call *call) {
    eddy_tensor *x = call->saved[0], *slope = eddy_mul_s(eddy_square(x), EDDY_S(3));
    slope = eddy_mul_s(slope, EDDY_S(*(double *)call->context));
    call->results[0] = eddy_add(eddy_mul(call->grads[0], slope),
                                eddy_mul(call->grads[0], eddy_sub(call->saved[1], call->saved[1])));
    return EDDY_OK;
}

static int destroyed;

static void count_destroyed(void *context) {
    (void)context;
    destroyed++;
}

static const eddy_function pure_cube = {.size = sizeof(eddy_function),
                                        .name = "user.cube",
                                        .forward = cube,
                                        .backward = cube_back,
                                        .destroy = count_destroyed,
                                        .output_count = 1,
                                        .is_pure = true};

static eddy_tensor *cubed(eddy_tensor *x) {
    static double scale = 0.75;
    eddy_tensor *y = NULL;
    must(eddy_function_call(&pure_cube, &scale, EDDY_LIST(x), &y));
    return y;
}

static eddy_status custom(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = eddy_mul(eddy_tanh(cubed(inputs.items[1])), m->w);
    outputs[2] = cubed(inputs.items[2]);
    return counted(inputs, outputs);
}

/* Captured from outside: a leaf, and the input of the run; neither is carried. */
static eddy_status outer_tensors(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = eddy_mul(eddy_mul(inputs.items[1], m->x), eddy_cos(m->w));
    outputs[2] = m->w;
    return counted(inputs, outputs);
}

static eddy_status steep(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return done(outputs, eddy_tanh(eddy_mul(inputs.items[0], m->w)));
}

static eddy_status flat(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_cos(eddy_exp(eddy_mul_s(inputs.items[0], EDDY_S(0.25)))));
}

static eddy_status branches(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *h = eddy_sin(inputs.items[1]), *predicate;
    predicate = eddy_gt_s(eddy_mean(h, EDDY_ALL_AXES, NULL), EDDY_S(0.05));
    must(eddy_cond(predicate, steep, flat, context, EDDY_LIST(h), 1, NULL, &outputs[1]));
    outputs[1] = eddy_add(eddy_mul(outputs[1], h), inputs.items[2]);
    outputs[2] = inputs.items[1];
    return counted(inputs, outputs);
}

/* A way that gives a tensor of its own, which has no copy, and the same tensor twice. */
static eddy_status own_way(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *own = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    must(eddy_add_inplace(own, eddy_sin(inputs.items[0])));
    outputs[0] = outputs[2] = own;
    outputs[1] = eddy_add(eddy_add(eddy_mul_s(own, EDDY_S(0.3)), own),
                          eddy_add(eddy_mul(inputs.items[0], m->w), eddy_sub(m->v, own)));
    return EDDY_OK;
}

static eddy_status other_way(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[0] = eddy_square(inputs.items[0]);
    outputs[1] = m->w;
    outputs[2] = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    return EDDY_OK;
}

static eddy_status own_branches(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *y[3], *predicate = eddy_gt_s(all(inputs.items[1]), EDDY_S(0));
    must(eddy_cond(predicate, own_way, other_way, context, EDDY_LIST(inputs.items[1]), 3, NULL, y));
    outputs[1] = eddy_mul(y[0], eddy_cos(y[1]));
    outputs[2] = eddy_add(eddy_mul(y[2], inputs.items[2]), y[1]);
    return counted(inputs, outputs);
}

/* As many steps as are left. */
static eddy_status nested(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *inner[3];
    must(eddy_while(is_left, branches, context, inputs, EDDY_OPTIONS(while, .most_steps = STEPS),
                    inner));
    outputs[1] = eddy_neg(eddy_square(inner[1]));
    outputs[2] = inner[2];
    return counted(inputs, outputs);
}

static eddy_status drawn(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = eddy_dropout(eddy_mul(inputs.items[1], m->w), EDDY_S(0.5), NULL);
    outputs[1] = eddy_square(eddy_add(h, inputs.items[2]));
    outputs[2] = eddy_mul(inputs.items[2], eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL));
    return counted(inputs, outputs);
}

static eddy_status nested_draws(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *inner[3];
    must(eddy_while(is_left, drawn, context, inputs, EDDY_OPTIONS(while, .most_steps = STEPS),
                    inner));
    outputs[1] = eddy_sin(inner[1]);
    outputs[2] = inner[2];
    return counted(inputs, outputs);
}

/* The inner steps read what the outer one has made. */
static eddy_tensor *of_step;
static eddy_status times_of_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[1] = eddy_mul(inputs.items[1], of_step);
    outputs[2] = eddy_sin(inputs.items[2]);
    return context ? counted(inputs, outputs) : EDDY_INTERNAL;
}
static eddy_status nested_of_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    of_step = eddy_tanh(inputs.items[2]);
    must(eddy_while(is_left, times_of_step, context, inputs,
                    EDDY_OPTIONS(while, .most_steps = STEPS), outputs));
    return counted(inputs, outputs);
}

static eddy_block *const bodies[] = {
    nested_of_step, custom,      carried_in_place, own_branches, owned,  cell,  swap,        views,
    in_place,       given_twice, outer_tensors,    branches,     nested, drawn, nested_draws};
#define BODIES ((int)(sizeof(bodies) / sizeof(bodies[0])))

static eddy_tensor *loop(model *m, eddy_block *body) {
    eddy_tensor *y[3], *h = eddy_mul(m->x, eddy_sigmoid(m->x));
    must(eddy_while(is_left, body, m, EDDY_LIST(m->count, h, m->x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    return eddy_add(eddy_mul(y[1], y[2]), eddy_square(y[1]));
}

/* Without a loop. */
static eddy_tensor *chosen(model *m, eddy_block *body) {
    eddy_tensor *y[3], *x = eddy_mul(m->x, eddy_sigmoid(m->x));
    must(eddy_cond(eddy_gt_s(m->count, EDDY_S(2)), own_way, body, m, EDDY_LIST(x), 3, NULL, y));
    return eddy_add(eddy_mul(y[0], eddy_cos(y[1])), eddy_mul(y[2], m->x));
}

/* ---- rows ---- */

static eddy_status row(void *context, eddy_list inputs, eddy_tensor **outputs) {
    must(cell(context, inputs, outputs));
    outputs[3] = eddy_square(outputs[1]);
    outputs[4] = inputs.items[1];
    return EDDY_OK;
}

/* Lists of a loop that may end early. */
static eddy_tensor *lists(model *m, eddy_block *body) {
    eddy_tensor *y[5];
    must(eddy_while(is_left, body, m, EDDY_LIST(m->count, eddy_sin(m->x), m->x),
                    EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = 2), y));
    return eddy_add(eddy_mul(y[3], y[4]), eddy_square(y[1]));
}

static eddy_status slice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = inputs.items[0], *x = inputs.items[1];
    outputs[0] = eddy_tanh(eddy_add(eddy_mul(h, m->w), eddy_mul(x, eddy_sigmoid(x))));
    outputs[1] = eddy_mul(outputs[0], x);
    outputs[2] = x;
    return EDDY_OK;
}

static eddy_tensor *scanned(model *m, eddy_block *body, bool is_rolled, bool is_reversed) {
    eddy_tensor *y[3];
    must(eddy_scan(body, m, EDDY_LIST(eddy_sin(m->x)), EDDY_LIST(m->rows), 3,
                   EDDY_OPTIONS(scan, .is_rolled = is_rolled, .is_reversed = is_reversed), y));
    return eddy_add(eddy_mul(eddy_add(y[1], y[2]), eddy_square(y[1])), y[0]);
}

static eddy_tensor *rolled(model *m, eddy_block *body) {
    return scanned(m, body, true, false);
}

static eddy_tensor *reversed(model *m, eddy_block *body) {
    return scanned(m, body, true, true);
}

static eddy_tensor *step_by_step(model *m, eddy_block *body) {
    return scanned(m, body, false, false);
}

/* Slices of a tensor whose axes lie in another order, which the body also uses as a whole; nothing is carried. */
static eddy_status columns(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *x = inputs.items[0];
    outputs[0] = eddy_mul(eddy_sin(x), eddy_cos(eddy_select(m->rows, 1, 1)));
    outputs[1] = eddy_mul(all(eddy_mul(x, eddy_square(inputs.items[1]))), m->w);
    return EDDY_OK;
}

static eddy_tensor *by_columns(model *m, eddy_block *body) {
    eddy_tensor *y[2], *t = eddy_t(eddy_square(m->rows));
    must(eddy_scan(body, m, (eddy_list){0}, EDDY_LIST(t, t), 2,
                   EDDY_OPTIONS(scan, .is_rolled = true), y));
    return eddy_mul(eddy_add(all(eddy_square(y[0])), all(eddy_mul(y[1], m->v))), m->x);
}

/* Without slices. */
static eddy_status cell_only(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *given[] = {inputs.items[2], inputs.items[0], inputs.items[1]}, *made[3];
    must(cell(context, (eddy_list){given, 3}, made));
    outputs[0] = made[1];
    outputs[1] = made[2];
    outputs[2] = inputs.items[2];
    outputs[3] = eddy_cast(eddy_square(eddy_cast(made[1], EDDY_F64)), EDDY_F32);
    return EDDY_OK;
}

static eddy_tensor *without_slices(model *m, eddy_block *body) {
    eddy_tensor *y[4];
    must(eddy_scan(body, m, EDDY_LIST(eddy_sin(m->x), m->x, m->count), (eddy_list){0}, 4,
                   EDDY_OPTIONS(scan, .is_rolled = true, .step_count = STEPS), y));
    return eddy_add(eddy_mul(y[0], y[1]), eddy_square(y[3]));
}

/* A rolled scan in each step of a loop. */
static eddy_status scans(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context, inner = *m;
    inner.x = inputs.items[1];
    inner.rows = eddy_mul(m->rows, inputs.items[2]);
    outputs[1] = eddy_mean(reversed(&inner, slice), EDDY_AXES(0), NULL);
    outputs[2] = eddy_cos(inputs.items[1]);
    return counted(inputs, outputs);
}

/* ---- comparing ---- */

typedef eddy_tensor *forward(model *m, eddy_block *body);

static eddy_program *record(model *m, forward *compute, eddy_block *body, bool records_only) {
    eddy_error error = {0};
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", m->x, EDDY_ROLE_INPUT}, {"count", m->count, EDDY_ROLE_INPUT},
        {"rows", m->rows, EDDY_ROLE_INPUT}, {"y", compute(m, body), EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    return program;
}

/* The gradient of a penalty on the gradient. */
static void go_back_twice(const model *m, eddy_tensor *y) {
    eddy_tensor *gradient = NULL;
    must(eddy_backward_to(EDDY_LIST(all(eddy_square(y))), EDDY_LIST(m->x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .creates_graph = true), &gradient));
    must(eddy_backward(eddy_add(all(eddy_square(gradient)), all(y))));
}

/* A leaf to which no call leads has no gradient. */
static void expect_same_grad(eddy_tensor *program, eddy_tensor *calls, const char *what) {
    cr_assert_eq(eddy_has_grad(program), eddy_has_grad(calls), "%s", what);
    if (eddy_has_grad(calls))
        must_have_same_bits(eddy_grad_of(program), eddy_grad_of(calls), what);
}

static void expect_same(const model *m, const model *eager, const char *what) {
    expect_same_grad(m->x, eager->x, what);
    expect_same_grad(m->w, eager->w, what);
    expect_same_grad(m->v, eager->v, what);
    expect_same_grad(m->rows, eager->rows, what);
}

static void try_counts(forward *compute, eddy_block *body, int recorded, bool records_only,
                       const char *name) {
    model m, eager, given;
    make_model(&m, 3, recorded);
    eddy_program *program = record(&m, compute, body, records_only);
    for (int count = 0; count <= STEPS; count++) {
        char what[80];
        eddy_tensor *y = NULL;
        snprintf(what, sizeof(what), "%s, %d steps, %d recorded", name, count, recorded);
        make_model(&given, 3, count);
        given.w = m.w;
        given.v = m.v;
        must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
        eddy_seed(11);
        must(eddy_program_run(program, EDDY_LIST(given.x, given.count, given.rows), &y));
        go_back_twice(&given, y);
        make_model(&eager, 3, count);
        eddy_seed(11);
        eddy_tensor *expected = compute(&eager, body);
        must_have_same_bits(y, expected, what);
        go_back_twice(&eager, expected);
        expect_same(&given, &eager, what);
    }
    eddy_program_release(&program);
}

Test(gradient_twice_loops, as_many_steps_as_a_run_makes) {
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 4; k++) {
            char name[16];
            eddy_scope *scope = eddy_scope_begin();
            snprintf(name, sizeof(name), "body %d", i);
            if (rounds_has_next())
                try_counts(loop, bodies[i], k % 2 ? 2 : 0, k / 2, name);
            expect_nothing_left(scope);
        }
}

Test(gradient_twice_loops, rows_of_steps) {
    for (int k = 0; k < 2; k++) {
        eddy_scope *scope = eddy_scope_begin();
        try_counts(lists, row, k * 2, k, "lists");
        try_counts(step_by_step, slice, 1, k, "step by step");
        try_counts(rolled, slice, 1, k, "rolled");
        try_counts(reversed, slice, 1, k, "reversed");
        try_counts(by_columns, columns, 1, k, "by columns");
        try_counts(without_slices, cell_only, 1, k, "without slices");
        expect_nothing_left(scope);
    }
}

Test(gradient_twice_loops, ways_with_tensors_of_their_own) {
    eddy_scope *scope = eddy_scope_begin();
    try_counts(chosen, other_way, 0, false, "chosen");
    expect_nothing_left(scope);
}

Test(gradient_twice_loops, a_scan_in_a_step) {
    eddy_scope *scope = eddy_scope_begin();
    try_counts(loop, scans, 2, false, "scans");
    expect_nothing_left(scope);
}

/* ---- outputs of a loop as those of the program ---- */

static eddy_tensor *twice_as_much(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_mul_s(gradient, EDDY_S(2));
}

/* What is carried, of which one tensor begins without a gradient, and rows. */
static void loop_outputs(model *m, eddy_tensor **y) {
    eddy_tensor *outputs[5];
    must(eddy_while(is_left, row, m, EDDY_LIST(m->count, eddy_detach(m->x), m->x),
                    EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = 2), outputs));
    memcpy(y, outputs + 1, 3 * sizeof(*y));
}

static eddy_program *record_outputs(model *m) {
    eddy_tensor *y[3];
    must(eddy_record_begin(NULL));
    loop_outputs(m, y);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", m->x, EDDY_ROLE_INPUT}, {"count", m->count, EDDY_ROLE_INPUT},
                      {"h", y[0], EDDY_ROLE_OUTPUT}, {"given", y[1], EDDY_ROLE_OUTPUT},
                      {"rows", y[2], EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    return program;
}

/* Hooks and kept gradients come to outputs that require one; the program's do so in each run. */
static void go_back_watched(const model *m, eddy_tensor **y) {
    eddy_tensor *sum = all(eddy_square(m->x));
    for (int i = 0; i < 3; i++) {
        if (eddy_requires_grad(y[i])) {
            must(eddy_grad_keep(y[i]));
            must(eddy_grad_hook_add(y[i], twice_as_much, NULL, NULL));
        }
        sum = eddy_add(sum, all(eddy_mul(eddy_square(y[i]), eddy_cos(y[i]))));
    }
    go_back_twice(m, sum);
}

Test(gradient_twice_loops, hooks_and_kept_gradients_of_what_a_loop_gives) {
    eddy_scope *scope = eddy_scope_begin();
    model m, given, eager;
    make_model(&m, 3, 2);
    eddy_program *program = record_outputs(&m);
    for (int count = 0; count <= STEPS; count++) {
        eddy_tensor *y[3], *expected[3];
        make_model(&given, 3, count);
        make_model(&eager, 3, count);
        must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
        given.w = m.w;
        given.v = m.v;
        must(eddy_program_run(program, EDDY_LIST(given.x, given.count), y));
        loop_outputs(&eager, expected);
        go_back_watched(&given, y);
        go_back_watched(&eager, expected);
        for (int i = 0; i < 3; i++)
            if (eddy_requires_grad(expected[i]))
                must_have_same_bits(eddy_grad_of(y[i]), eddy_grad_of(expected[i]), "kept");
        expect_same(&given, &eager, "outputs");
    }
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Of a tensor that a way gives twice each output has its own gradient. */
Test(gradient_twice_loops, a_tensor_that_is_given_twice) {
    eddy_scope *scope = eddy_scope_begin();
    model m[2];
    eddy_program *program = NULL;
    eddy_tensor *y[2][3];
    for (int i = 0; i < 2; i++) {
        make_model(&m[i], 3, 3);
        if (i == 0)
            must(eddy_record_begin(NULL));
        must(eddy_cond(eddy_gt_s(m[i].count, EDDY_S(0)), own_way, other_way, &m[i],
                       EDDY_LIST(eddy_mul(m[i].x, m[i].x)), 3, NULL, y[i]));
        if (i == 0) {
            program = eddy_record_end_with_grad(EDDY_BINDINGS(
                {"x", m[0].x, EDDY_ROLE_INPUT}, {"count", m[0].count, EDDY_ROLE_INPUT},
                {"first", y[0][0], EDDY_ROLE_OUTPUT}, {"second", y[0][2], EDDY_ROLE_OUTPUT}));
            must(eddy_program_run(program, EDDY_LIST(m[0].x, m[0].count), y[0]));
            y[0][2] = y[0][1];
        }
        for (int k = 0; k < 3; k += 2)
            must(eddy_grad_keep(y[i][k]));
        go_back_twice(&m[i], eddy_mul(y[i][0], eddy_exp(y[i][2])));
    }
    for (int k = 0; k < 3; k += 2)
        must_have_same_bits(eddy_grad_of(y[0][k]), eddy_grad_of(y[1][k]), "kept");
    expect_same(&m[0], &m[1], "given twice");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Its node has the steps as one, and then one by one. */
Test(gradient_twice_loops, a_run_that_was_gone_back_through) {
    eddy_scope *scope = eddy_scope_begin();
    model m[2];
    make_model(&m[0], 3, 3);
    make_model(&m[1], 3, 3);
    eddy_program *program = record(&m[0], lists, row, false);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *y = NULL;
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(m[0].x, m[0].count, m[0].rows), &y));
        else
            y = lists(&m[1], row);
        eddy_backward_options keeps = {.size = sizeof(keeps), .keeps_graph = true};
        must(eddy_backward_from(EDDY_LIST(all(y)), (eddy_list){0}, &keeps));
        must(eddy_grads_zero(EDDY_LIST(m[i].x, m[i].w, m[i].v))); /* in another order of sums */
        go_back_twice(&m[i], y);
    }
    expect_same(&m[0], &m[1], "both");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- custom functions ---- */

static eddy_tensor *twice_cubed(model *m, eddy_block *body) {
    (void)body;
    return eddy_mul(cubed(eddy_sin(m->x)), cubed(m->w));
}

/* A context lives as long as the program and the tape refer to it. */
Test(gradient_twice_loops, pure_custom_functions) {
    eddy_scope *scope = eddy_scope_begin();
    model m, given;
    eddy_tensor *y = NULL;
    try_counts(twice_cubed, NULL, 0, false, "custom");
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(destroyed, 2 + 2 * (STEPS + 1), "%d", destroyed);
    destroyed = 0;
    scope = eddy_scope_begin();
    make_model(&m, 3, 0);
    make_model(&given, 3, 0);
    eddy_scope *inner = eddy_scope_begin();
    eddy_program *program = record(&m, twice_cubed, NULL, false);
    eddy_scope_end(inner);
    cr_assert_eq(destroyed, 0);
    must(eddy_program_run(program, EDDY_LIST(given.x, given.count, given.rows), &y));
    eddy_program_release(&program);
    go_back_twice(&given, y);
    eddy_scope_end(scope);
    cr_assert_eq(destroyed, 2);
    expect_nothing_left(eddy_scope_begin());
}

/* ---- errors ---- */

static eddy_tensor *bad_number(eddy_dtype dtype) {
    eddy_tensor *index = eddy_full(EDDY_SHAPE(SIZE), EDDY_S(99), EDDY_I64, NULL);
    return eddy_index_select(eddy_zeros(EDDY_SHAPE(SIZE), dtype, NULL), index, 0);
}

/* Steps that compute with an error: gradients of gradients have it, as those of calls. */
Test(gradient_twice_loops, steps_with_an_error) {
    eddy_scope *scope = eddy_scope_begin();
    model m[2];
    eddy_error errors[2];
    make_model(&m[0], 3, 3);
    make_model(&m[1], 3, 3);
    eddy_program *program = record(&m[0], lists, row, false);
    for (int i = 0; i < 2; i++) {
        model bad = m[i];
        eddy_tensor *y = NULL;
        float values[SIZE];
        bad.x = eddy_mul(bad_number(EDDY_F32), m[i].x);
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(bad.x, bad.count, bad.rows), &y));
        else
            y = lists(&bad, row);
        go_back_twice(&m[i], y);
        cr_assert_eq(eddy_read(eddy_grad_of(m[i].w), values, sizeof(values), NULL),
                     EDDY_OUT_OF_RANGE);
        eddy_error_take(&errors[i]);
    }
    cr_assert_str_eq(errors[0].op, errors[1].op);
    cr_assert_str_eq(errors[0].message, errors[1].message);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Nobody can say how many steps there were. */
Test(gradient_twice_loops, a_number_of_steps_with_an_error) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y = NULL, *gradient = NULL;
    make_model(&m, 3, 2);
    eddy_program *program = record(&m, loop, cell, false);
    eddy_tensor *count = eddy_reshape(eddy_narrow(bad_number(EDDY_I64), 0, 0, 1), (eddy_shape){0});
    must(eddy_program_run(program, EDDY_LIST(m.x, count, m.rows), &y));
    cr_assert_eq(eddy_backward_to(EDDY_LIST(all(y)), EDDY_LIST(m.x), (eddy_list){0},
                                  EDDY_OPTIONS(backward, .creates_graph = true), &gradient),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program: creates_graph cannot go back through this run: the "
                                   "predicate of a branch, or the number of a loop's steps, "
                                   "cannot be read");
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* An input that a step has read is written in place: the pass says so. */
Test(gradient_twice_loops, saved_tensors_that_are_overwritten) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y = NULL, *gradient = NULL;
    make_model(&m, 3, 2);
    eddy_program *program = record(&m, rolled, slice, false);
    must(eddy_program_run(program, EDDY_LIST(m.x, m.count, m.rows), &y));
    eddy_no_grad_begin();
    must(eddy_neg_inplace(m.rows));
    eddy_no_grad_end();
    cr_assert_eq(eddy_backward_to(EDDY_LIST(all(y)), EDDY_LIST(m.x), (eddy_list){0},
                                  EDDY_OPTIONS(backward, .creates_graph = true), &gradient),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "backward_to: what program had saved for its gradient was "
                                        "written to in place since");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- recorded functions ---- */

static eddy_status looped(void *context, eddy_recorded_call *call) {
    model m = *(const model *)context;
    m.x = eddy_mul_s(call->inputs.items[0], call->scalars[0]);
    m.count = call->inputs.items[1];
    eddy_tensor *y[3];
    must(eddy_while(is_left, drawn, &m, EDDY_LIST(m.count, m.x, m.x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    eddy_tensor *predicate = eddy_gt_s(all(m.x), EDDY_S(0)), *chosen;
    must(eddy_cond(predicate, steep, flat, &m, EDDY_LIST(y[1]), 1, NULL, &chosen));
    call->outputs[0] = eddy_mul_s(eddy_mul(chosen, y[2]), call->scalars[0]);
    return EDDY_OK;
}

/* With the numbers, and the draws, of each call; of the recorded ones those calls are gone back through that have run. */
Test(gradient_twice_loops, a_recorded_function) {
    eddy_scope *scope = eddy_scope_begin();
    model m[2];
    char text[1024];
    make_model(&m[0], 3, 2);
    make_model(&m[1], 3, 2);
    eddy_recorded *recorded = eddy_recorded_create(looped, &m[0], 1, NULL);
    for (int count = 0; count <= STEPS; count++) {
        for (int i = 0; i < 2; i++) {
            eddy_scalar scale = EDDY_S(0.5 + 0.25 * count);
            eddy_tensor *y = NULL;
            model given;
            make_model(&given, 5, count);
            eddy_seed(17);
            if (i == 0) {
                must(eddy_recorded_run(recorded, EDDY_LIST(given.x, given.count),
                                       EDDY_SCALARS(scale), &y));
            } else {
                eddy_recorded_call call = {
                    .inputs = EDDY_LIST(given.x, given.count), .scalars = &scale, .outputs = &y};
                must(looped(&m[1], &call));
            }
            go_back_twice(&given, y);
        }
        expect_same_grad(m[0].w, m[1].w, "recorded");
        expect_same_grad(m[0].v, m[1].v, "recorded");
    }
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, "ran 2 times, replayed 4 times"), "%s", text);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- the recorded calls themselves ---- */

typedef struct passing {
    eddy_tensor *y, *x;
    eddy_status status;
    eddy_error error;
} passing;

static void *pass(void *context) {
    passing *p = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *gradient = NULL;
    p->status = eddy_backward_to(EDDY_LIST(all(p->y)), EDDY_LIST(p->x), (eddy_list){0},
                                 EDDY_OPTIONS(backward, .creates_graph = true), &gradient);
    eddy_error_take(&p->error);
    eddy_scope_end(scope);
    return NULL;
}

/* While the recording is open nobody would record the calls of the pass, and another thread cannot know whether it is. */
Test(gradient_twice_loops, a_recorded_loop_within_its_recording) {
    static const char *const reason =
        "while: the gradient of a recorded branch or loop has no gradient";
    eddy_scope *scope = eddy_scope_begin();
    model m;
    make_model(&m, 3, 2);
    pthread_t thread;
    passing p = {.x = m.x}, other = {.x = m.x};
    must(eddy_record_begin(NULL));
    p.y = other.y = loop(&m, cell);
    pass(&p);
    eddy_record_cancel();
    cr_assert_eq(p.status, EDDY_UNSUPPORTED);
    cr_assert_str_eq(p.error.message, reason);
    cr_assert_eq(pthread_create(&thread, NULL, pass, &other), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(other.status, EDDY_UNSUPPORTED);
    cr_assert_str_eq(other.error.message, reason);
    pass(&p);
    must(p.status);
    /* Of calls that have not run there are none to go back through. */
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    p.y = loop(&m, cell);
    eddy_record_cancel();
    pass(&p);
    cr_assert_eq(p.status, EDDY_UNSUPPORTED);
    expect_nothing_left(scope);
}
