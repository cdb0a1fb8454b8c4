/* Backward passes that are recorded, and go back through runs that were made before: what eager calls give, or a refusal that names the run. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define ROWS 3
#define SIZE 4

typedef struct model {
    eddy_tensor *x, *w;
    int calls;
} model;

static void model_init(model *m) {
    *m = (model){0};
    must(eddy_seed(7));
    m->w = leaf(eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL));
    m->x = leaf(eddy_randn(EDDY_SHAPE(ROWS, SIZE), EDDY_F32, NULL));
}

/* ---- what a run computes ---- */

static void plain(model *m, eddy_tensor **outputs) {
    outputs[0] = eddy_dropout(eddy_tanh(eddy_mul(m->x, m->w)), EDDY_S(0.25), NULL);
    outputs[1] = eddy_mul(eddy_sin(m->x), m->w);
}

static eddy_status grows(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return done(outputs, eddy_mul(eddy_exp(inputs.items[0]), m->w));
}

static eddy_status shrinks(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return done(outputs, eddy_dropout(eddy_mul(inputs.items[0], m->w), EDDY_S(0.5), NULL));
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status steps(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return done(outputs + 1, eddy_sin(eddy_mul(inputs.items[1], m->w)));
}

/* A branch, and a loop behind it. */
static void with_marks(model *m, eddy_tensor **outputs) {
    eddy_tensor *given[2], *count = eddy_full((eddy_shape){0}, EDDY_S(3), EDDY_I64, NULL);
    eddy_tensor *is_large = eddy_gt_s(eddy_max(m->x, EDDY_ALL_AXES, NULL), EDDY_S(100));
    must(eddy_cond(is_large, grows, shrinks, m, EDDY_LIST(m->x), 1, NULL, &outputs[0]));
    must(eddy_while(is_left, steps, m, EDDY_LIST(count, outputs[0]),
                    EDDY_OPTIONS(while, .most_steps = 5), given));
    outputs[1] = given[1];
}

static void (*const bodies[])(model *m, eddy_tensor **outputs) = {plain, with_marks};
#define BODIES ((int)(sizeof(bodies) / sizeof(*bodies)))

static eddy_program *record(int body, model *m) {
    eddy_tensor *outputs[2];
    must(eddy_record_begin(NULL));
    bodies[body](m, outputs);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", m->x, EDDY_ROLE_INPUT}, {"y", outputs[0], EDDY_ROLE_OUTPUT},
                      {"z", outputs[1], EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    return program;
}

/* ---- the pass ---- */

/* Seeds that a call gives go back through what was computed before; gives what the leaves get. outputs: one of the two, or both. */
static void go_back(model *m, eddy_tensor *const *outputs, int which, eddy_tensor *seed,
                    eddy_tensor **gradients) {
    eddy_tensor *loss = NULL;
    for (int i = 0; i < 2; i++) {
        if (!(which >> i & 1))
            continue;
        eddy_tensor *part = all(eddy_mul(eddy_square(outputs[i]), seed));
        loss = loss ? eddy_add(loss, part) : part;
    }
    eddy_backward_options options = {.size = sizeof(options), .keeps_graph = true};
    must(eddy_grads_zero(EDDY_LIST(m->w, m->x)));
    must(eddy_backward_from(EDDY_LIST(loss), (eddy_list){0}, &options));
    gradients[0] = eddy_detach(eddy_grad_of(m->w));
    gradients[1] = eddy_detach(eddy_grad_of(m->x));
}

static eddy_tensor *seed_of(int i) {
    return eddy_full(EDDY_SHAPE(ROWS, SIZE), EDDY_S(0.5 + i), EDDY_F32, NULL);
}

/* A recording of the pass, which is run with other seeds. */
static void expect_recorded(int body, int which, bool records_only) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    model_init(&m);
    eddy_program *program = record(body, &m), *pass;
    eddy_tensor *calls[2], *runs[2], *wanted[2], *given[2], *seed = seed_of(0);
    must(eddy_seed(3));
    bodies[body](&m, calls);
    must(eddy_seed(3));
    must(eddy_program_run(program, EDDY_LIST(m.x), runs));
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    go_back(&m, runs, which, seed, given);
    pass = eddy_record_end(EDDY_BINDINGS({"seed", seed, EDDY_ROLE_INPUT},
                                         {"w", given[0], EDDY_ROLE_OUTPUT},
                                         {"x", given[1], EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    for (int i = 0; i < 3; i++) {
        go_back(&m, calls, which, seed_of(i), wanted);
        if (i > 0 || records_only)
            must(eddy_program_run(pass, EDDY_LIST(seed_of(i)), given));
        must_have_same_bits(given[0], wanted[0], "of the weight");
        must_have_same_bits(given[1], wanted[1], "of the input");
    }
    eddy_program_release(&pass);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(pass_in_recording, goes_back_through_a_run_as_through_calls) {
    for (int body = 0; body < BODIES; body++)
        for (int which = 1; which < 4; which++)
            for (int records_only = 0; records_only < 2; records_only++)
                expect_recorded(body, which, records_only);
}

/* ---- a recorded function ---- */

typedef struct held {
    model m;
    eddy_tensor *outputs[2];
} held;

static eddy_status goes_back(void *context, eddy_recorded_call *call) {
    held *h = context;
    h->m.calls++;
    go_back(&h->m, h->outputs, 3, call->inputs.items[0], call->outputs);
    call->outputs[0] = eddy_clone(call->outputs[0]);
    call->outputs[1] = eddy_clone(call->outputs[1]);
    return EDDY_OK;
}

Test(pass_in_recording, a_recorded_function_goes_back_through_a_run) {
    for (int body = 0; body < BODIES; body++) {
        eddy_scope *scope = eddy_scope_begin();
        held h, eager;
        model_init(&h.m);
        model_init(&eager.m);
        eddy_program *program = record(body, &h.m);
        must(eddy_seed(3));
        bodies[body](&eager.m, eager.outputs);
        must(eddy_seed(3));
        must(eddy_program_run(program, EDDY_LIST(h.m.x), h.outputs));
        eddy_recorded *recorded = eddy_recorded_create(goes_back, &h, 2, NULL);
        for (int i = 0; i < 6; i++) {
            eddy_tensor *given[2], *wanted[2];
            eddy_tensor *seed = seed_of(i);
            eddy_recorded_call call = {.size = sizeof(call),
                                       .inputs = EDDY_LIST(seed),
                                       .outputs = wanted,
                                       .output_count = 2};
            must(eddy_recorded_run(recorded, EDDY_LIST(seed), (eddy_scalars){0}, given));
            must(goes_back(&eager, &call));
            must_have_same_bits(given[0], wanted[0], "of the weight");
            must_have_same_bits(given[1], wanted[1], "of the input");
        }
        cr_assert_eq(h.m.calls, 2, "%d calls", h.m.calls);
        expect_explained(recorded, "ran 2 times, replayed 4 times");
        eddy_recorded_release(&recorded);
        eddy_program_release(&program);
        expect_nothing_left(scope);
    }
}

/* ---- what has no calls ---- */

Test(pass_in_recording, a_run_whose_calls_are_unknown_is_refused_by_name) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    model_init(&m);
    eddy_tensor *y, *run;
    must(eddy_record_begin(NULL));
    must(eddy_function_call(&cube_function, NULL, EDDY_LIST(eddy_mul(m.x, m.w)), &y));
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    must(eddy_program_run(program, EDDY_LIST(m.x), &run));
    eddy_tensor *loss = all(run), *z;
    must(eddy_record_begin(NULL));
    cr_assert_eq(eddy_backward(loss), EDDY_UNSUPPORTED);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(
        strstr(error.message, "a backward pass that is recorded cannot go back through this run: "),
        "%s", error.message);
    cr_assert_not_null(strstr(error.message, "user.cube"), "%s", error.message);
    z = eddy_mul_s(m.x, EDDY_S(2));
    eddy_program *other =
        eddy_record_end(EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    eddy_program_release(&other);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}
