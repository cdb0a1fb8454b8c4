/* Loops whose tensors are on a device that is not the one of creation ops: what they keep of each step is there, too. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <unistd.h>

#define ROWS 5
#define STEPS 4

typedef struct cell {
    eddy_tensor *w; /* a leaf */
    bool draws;
} cell;

static eddy_tensor *numbers(eddy_device device, eddy_shape shape, double first) {
    int64_t count = shape.rank == 2 ? shape.dims[0] * shape.dims[1] : shape.dims[0];
    eddy_tensor *made = eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(count), EDDY_S(1), EDDY_F32,
                                                 EDDY_OPTIONS(arange, .device = EDDY_CPU)),
                                     shape);
    return eddy_to_device(eddy_sin(eddy_add_s(made, EDDY_S(first))), device);
}

/* (h, x) -> (tanh(w h + x), h x) */
static eddy_status step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const cell *c = context;
    eddy_tensor *h = inputs.items[0], *x = inputs.items[1];
    outputs[0] = eddy_tanh(eddy_add(eddy_mul(c->w, h), x));
    if (c->draws)
        outputs[0] = eddy_dropout(outputs[0], EDDY_S(0.25), NULL);
    outputs[1] = eddy_mul(h, x);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status scan(cell *c, eddy_tensor *h, eddy_tensor *xs, eddy_tensor **outputs) {
    return eddy_scan(step, c, EDDY_LIST(h), EDDY_LIST(xs), 2, EDDY_OPTIONS(scan, .is_rolled = true),
                     outputs);
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    *holds = eddy_lt_s(eddy_sum(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(40));
    return *holds ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* h -> 2 h + w, and the row h w */
static eddy_status grow(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const cell *c = context;
    eddy_tensor *h = inputs.items[0];
    outputs[0] = eddy_add(eddy_mul_s(h, EDDY_S(2)), eddy_square(c->w));
    if (c->draws)
        outputs[0] = eddy_add(eddy_dropout(outputs[0], EDDY_S(0.25), NULL), eddy_square(c->w));
    outputs[1] = eddy_mul(h, c->w);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status loop(cell *c, eddy_tensor *h, eddy_tensor *xs, eddy_tensor **outputs) {
    eddy_tensor *begin = eddy_add(eddy_square(h), eddy_square(eddy_select(xs, 0, 0)));
    return eddy_while(is_small, grow, c, EDDY_LIST(begin),
                      EDDY_OPTIONS(while, .most_steps = 9, .list_count = 1), outputs);
}

typedef eddy_status runs(cell *c, eddy_tensor *h, eddy_tensor *xs, eddy_tensor **outputs);

static eddy_tensor *loss_of(eddy_tensor *const *outputs) {
    return eddy_add(eddy_sum(eddy_square(outputs[0]), EDDY_ALL_AXES, NULL),
                    eddy_sum(outputs[1], EDDY_ALL_AXES, NULL));
}

typedef struct trial {
    runs *of;
    bool draws, has_gradient, goes_through_a_file;
} trial;

static eddy_program *record(const trial *t, cell *c, eddy_tensor *h, eddy_tensor *xs) {
    eddy_tensor *outputs[2], *gradient = NULL;
    must(eddy_record_begin(NULL));
    must(t->of(c, h, xs, outputs));
    if (t->has_gradient) {
        must(eddy_backward(loss_of(outputs)));
        gradient = eddy_grad_of(c->w);
    }
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"h", h, EDDY_ROLE_INPUT}, {"xs", xs, EDDY_ROLE_INPUT},
        {"state", outputs[0], EDDY_ROLE_OUTPUT}, {"rows", outputs[1], EDDY_ROLE_OUTPUT},
        {"gradient", gradient ? gradient : eddy_neg(outputs[0]), EDDY_ROLE_OUTPUT}));
    eddy_error error = {0};
    if (!program)
        eddy_error_take(&error);
    cr_assert_not_null(program, "%s", error.message);
    return program;
}

static eddy_program *through_a_file(eddy_program *program) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-devices-loops-%ld", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    return program;
}

/* What the calls give, and a program of them, on the device. */
static void try_on(eddy_device device, const trial *t, float results[2][3]) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {.w = numbers(device, EDDY_SHAPE(ROWS), 1), .draws = t->draws};
    eddy_tensor *h = numbers(device, EDDY_SHAPE(ROWS), 2),
                *xs = numbers(device, EDDY_SHAPE(STEPS, ROWS), 3), *outputs[3];
    must(eddy_requires_grad_set(c.w, t->has_gradient));
    must(eddy_seed(8));
    must(t->of(&c, h, xs, outputs));
    outputs[2] = eddy_neg(outputs[0]);
    if (t->has_gradient) {
        must(eddy_backward(loss_of(outputs)));
        outputs[2] = eddy_grad_of(c.w);
    }
    for (int i = 0; i < 3; i++)
        results[0][i] = (float)sum_of(outputs[i]);
    must(t->has_gradient ? eddy_grads_zero(EDDY_LIST(c.w)) : EDDY_OK);
    eddy_program *program = record(t, &c, h, xs);
    if (t->goes_through_a_file)
        program = through_a_file(program);
    cr_assert_not_null(program);
    must(eddy_program_run(program, EDDY_LIST(h, xs), outputs));
    must(eddy_seed(8));
    must(eddy_program_run(program, EDDY_LIST(h, xs), outputs));
    for (int i = 0; i < 3; i++) {
        results[1][i] = (float)sum_of(outputs[i]);
        cr_assert_eq(eddy_device_of(outputs[i]).kind, device.kind);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

static void compare(const trial *t) {
    float here[2][3], there[2][3];
    try_on(EDDY_CPU, t, here);
    try_on(EDDY_FAR(0), t, there);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(here[0][i], here[1][i], "%d: %g and %g", i, here[0][i], here[1][i]);
        cr_assert_eq(here[0][i], there[0][i], "%d: %g and %g", i, here[0][i], there[0][i]);
        cr_assert_eq(here[0][i], there[1][i], "%d: %g and %g", i, here[0][i], there[1][i]);
    }
}

Test(devices_loops, slices_and_rows_are_where_the_loop_is) {
    compare(&(trial){.of = scan});
    compare(&(trial){.of = scan, .draws = true});
}

Test(devices_loops, lists_are_where_the_loop_is) {
    compare(&(trial){.of = loop});
    compare(&(trial){.of = loop, .draws = true});
}

Test(devices_loops, what_gradients_need_is_kept_where_the_loop_is) {
    compare(&(trial){.of = scan, .has_gradient = true});
    compare(&(trial){.of = scan, .has_gradient = true, .draws = true});
    compare(&(trial){.of = loop, .has_gradient = true});
    compare(&(trial){.of = loop, .has_gradient = true, .draws = true});
}

Test(devices_loops, files_say_where) {
    compare(&(trial){.of = scan, .has_gradient = true, .goes_through_a_file = true});
    compare(&(trial){.of = loop, .has_gradient = true, .goes_through_a_file = true});
}

static eddy_status is_never(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    *holds = eddy_lt_s(eddy_sum(eddy_square(inputs.items[0]), EDDY_ALL_AXES, NULL), EDDY_S(-1));
    return *holds ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(devices_loops, lists_of_no_step_are_where_the_loop_is) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {.w = numbers(EDDY_FAR(0), EDDY_SHAPE(ROWS), 1)};
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        eddy_tensor *outputs[2], *h = numbers(EDDY_FAR(0), EDDY_SHAPE(ROWS), 2);
        if (is_recorded)
            must(eddy_record_begin(NULL));
        must(eddy_while(is_never, grow, &c, EDDY_LIST(h),
                        EDDY_OPTIONS(while, .most_steps = 3, .list_count = 1), outputs));
        cr_assert_eq(eddy_device_of(outputs[1]).kind, EDDY_DEVICE_FAR);
        if (is_recorded) {
            eddy_program *program = eddy_record_end(
                EDDY_BINDINGS({"h", h, EDDY_ROLE_INPUT}, {"rows", outputs[1], EDDY_ROLE_OUTPUT}));
            cr_assert_not_null(program);
            must(eddy_program_run(program, EDDY_LIST(h), &outputs[1]));
            eddy_program_release(&program);
        }
        cr_assert_eq(sum_of(outputs[1]), 0);
        cr_assert_eq(eddy_dim_of(outputs[1], 0), 3);
    }
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}
