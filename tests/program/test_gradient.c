/* Programs as nodes of the tape: results and gradients of runs are bit for bit those of the calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define MOST 8

/* ---- a function, and the calls and the program of it ---- */

typedef struct model {
    eddy_tensor *params[MOST]; /* leaves */
    int param_count;
    eddy_tensor *state;
} model;

/* Fills the outputs, and returns how many. */
typedef int body(model *m, eddy_tensor **inputs, eddy_tensor **outputs);

typedef struct tensors {
    eddy_tensor *items[MOST];
    int count;
} tensors;

static eddy_tensor *noise(eddy_shape shape) {
    return eddy_randn(shape, EDDY_F32, NULL);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b, const char *what, int i) {
    static char left[1 << 16], right[1 << 16];
    if (!a || !b || eddy_count_of(a) == 0) {
        cr_assert_eq(!a, !b, "%s %d: one is missing", what, i);
        return;
    }
    int64_t bytes = eddy_count_of(a) * (int64_t)eddy_dtype_bytes(eddy_dtype_of(a));
    cr_assert_eq(eddy_dtype_of(a), eddy_dtype_of(b));
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    cr_assert_leq(bytes, (int64_t)sizeof(left));
    must(eddy_read(a, left, (size_t)bytes, NULL));
    must(eddy_read(b, right, (size_t)bytes, NULL));
    cr_assert_eq(memcmp(left, right, (size_t)bytes), 0, "%s %d differs", what, i);
}

/* New leaves with the elements of `from`; a bit of `wants` for each that wants a gradient. */
static tensors copies(const tensors *from, unsigned wants) {
    tensors made = {.count = from->count};
    for (int i = 0; i < from->count; i++) {
        made.items[i] = eddy_clone(from->items[i]);
        if (wants >> i & 1)
            leaf(made.items[i]);
    }
    return made;
}

/* The loss is a sum of outputs as they are: the gradients that come back have strides of 0. */
#define PLAIN (1u << MOST)

/* What a model does with the outputs: a bit of `used` for each that the loss depends on. */
static void go_back(const tensors *outputs, unsigned used) {
    eddy_tensor *loss = NULL;
    for (int i = 0; i < outputs->count; i++) {
        if (!(used >> i & 1) || !eddy_requires_grad(outputs->items[i]))
            continue;
        eddy_tensor *part =
            used & PLAIN ? eddy_sum(outputs->items[i], EDDY_ALL_AXES, NULL)
                         : eddy_mean(eddy_square(eddy_mul_s(eddy_cast(outputs->items[i], EDDY_F32),
                                                            EDDY_S(1.5 + i))),
                                     EDDY_ALL_AXES, NULL);
        loss = loss ? eddy_add(loss, part) : part;
    }
    if (loss)
        must(eddy_backward(loss));
}

static tensors grads_of(const tensors *of) {
    tensors grads = {.count = of->count};
    for (int i = 0; i < of->count; i++)
        if (eddy_requires_grad(of->items[i]) && eddy_has_grad(of->items[i]))
            grads.items[i] = eddy_clone(eddy_grad_of(of->items[i]));
    return grads;
}

static tensors params_of(const model *m) {
    tensors params = {.count = m->param_count};
    memcpy(params.items, m->params, sizeof(params.items));
    return params;
}

/* One step: outputs, gradients of inputs and parameters, and state. program: NULL for the calls. */
typedef struct outcome {
    tensors outputs, inputs, params;
    eddy_tensor *state;
} outcome;

static outcome step(model *m, body *f, eddy_program *program, const tensors *values, unsigned wants,
                    unsigned used) {
    tensors inputs = copies(values, wants), params = params_of(m);
    outcome o = {0};
    must(eddy_grads_zero((eddy_list){params.items, params.count}));
    must(eddy_seed(7));
    if (program) {
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(program, &info));
        o.outputs.count = (int)info.output_count;
        must(eddy_program_run(program, (eddy_list){inputs.items, inputs.count}, o.outputs.items));
    } else {
        o.outputs.count = f(m, inputs.items, o.outputs.items);
    }
    go_back(&o.outputs, used);
    o.inputs = grads_of(&inputs);
    o.params = grads_of(&params);
    o.state = m->state ? eddy_clone(m->state) : NULL;
    must(EDDY_OK);
    return o;
}

static void expect_same_outcome(const outcome *a, const outcome *b) {
    cr_assert_eq(a->outputs.count, b->outputs.count);
    for (int i = 0; i < a->outputs.count; i++) {
        expect_same(a->outputs.items[i], b->outputs.items[i], "output", i);
        cr_assert_eq(eddy_requires_grad(a->outputs.items[i]),
                     eddy_requires_grad(b->outputs.items[i]), "output %d", i);
    }
    for (int i = 0; i < a->inputs.count; i++)
        expect_same(a->inputs.items[i], b->inputs.items[i], "gradient of input", i);
    for (int i = 0; i < a->params.count; i++)
        expect_same(a->params.items[i], b->params.items[i], "gradient of parameter", i);
    expect_same(a->state, b->state, "state", 0);
}

static eddy_program *record(model *m, body *f, const tensors *values, unsigned wants) {
    static const char *const names[2][MOST] = {{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"},
                                               {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"}};
    tensors inputs = copies(values, wants), outputs = {0};
    eddy_binding bindings[2 * MOST];
    int64_t count = 0;
    must(eddy_record_begin(NULL));
    outputs.count = f(m, inputs.items, outputs.items);
    for (int i = 0; i < inputs.count; i++)
        bindings[count++] = (eddy_binding){names[0][i], inputs.items[i], EDDY_ROLE_INPUT};
    for (int i = 0; i < outputs.count; i++)
        bindings[count++] = (eddy_binding){names[1][i], outputs.items[i], EDDY_ROLE_OUTPUT};
    eddy_program *program = eddy_record_end_with_grad(&(eddy_bindings){bindings, count});
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_not_null(program, "%s", error.message);
    return program;
}

/* Records on some values, then compares calls and runs on others, for each set of outputs that a loss may use. */
static void check(model *m, body *f, const tensors *values, unsigned wants, int output_count) {
    eddy_program *program = record(m, f, values, wants);
    eddy_tensor *before = m->state ? eddy_clone(m->state) : NULL;
    for (unsigned k = 0; k < 2u << output_count; k++) {
        unsigned used = k >> output_count ? PLAIN | (k & ((1u << output_count) - 1)) : k;
        eddy_scope *scope = eddy_scope_begin();
        tensors others = *values;
        for (int i = 0; i < others.count; i++)
            if (eddy_dtype_of(others.items[i]) == EDDY_F32)
                others.items[i] = eddy_mul_s(others.items[i], EDDY_S(0.5 + k));
        if (before)
            must(eddy_copy_into(before, m->state));
        outcome calls = step(m, f, NULL, &others, wants, used);
        if (before)
            must(eddy_copy_into(before, m->state));
        outcome runs = step(m, f, program, &others, wants, used);
        expect_same_outcome(&calls, &runs);
        eddy_scope_end(scope);
    }
    eddy_program_release(&program);
}

static void add_param(model *m, eddy_shape shape) {
    m->params[m->param_count++] = leaf(noise(shape));
}

/* ---- models ---- */

static int mlp(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *hidden = eddy_gelu(eddy_linear(x[0], m->params[0], m->params[1]), NULL);
    y[0] = eddy_softmax(eddy_linear(hidden, m->params[2], EDDY_NONE), -1);
    return 1;
}

static void make_mlp(model *m) {
    add_param(m, EDDY_SHAPE(16, 12));
    add_param(m, EDDY_SHAPE(16));
    add_param(m, EDDY_SHAPE(5, 16));
}

Test(gradient, of_captured_leaves_and_of_inputs) {
    for (unsigned wants = 0; wants < 2; wants++) {
        eddy_scope *scope = eddy_scope_begin();
        model m = {0};
        make_mlp(&m);
        check(&m, mlp, &(tensors){{noise(EDDY_SHAPE(9, 12))}, 1}, wants, 1);
        expect_nothing_left(scope);
    }
}

static int two_inputs(model *m, eddy_tensor **x, eddy_tensor **y) {
    (void)m;
    y[0] = eddy_matmul(eddy_sigmoid(x[0]), eddy_transpose(x[1], 0, 1));
    return 1;
}

Test(gradient, of_inputs_alone) {
    for (unsigned wants = 1; wants < 4; wants++) {
        eddy_scope *scope = eddy_scope_begin();
        model m = {0};
        check(&m, two_inputs, &(tensors){{noise(EDDY_SHAPE(7, 8)), noise(EDDY_SHAPE(5, 8))}, 2},
              wants, 1);
        expect_nothing_left(scope);
    }
}

static int convolution(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *planes = eddy_relu(eddy_conv2d(x[0], m->params[0], m->params[1], NULL));
    y[0] = eddy_max_pool2d(planes, EDDY_PAIR(2, 2), NULL);
    return 1;
}

Test(gradient, of_a_convolution) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(4, 3, 3, 3));
    add_param(&m, EDDY_SHAPE(4));
    check(&m, convolution, &(tensors){{noise(EDDY_SHAPE(2, 3, 8, 8))}, 1}, 1, 1);
    expect_nothing_left(scope);
}

static int drops(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *h = eddy_dropout(eddy_linear(x[0], m->params[0], EDDY_NONE), EDDY_S(0.5), NULL);
    y[0] = eddy_dropout(eddy_tanh(h), EDDY_S(0.25), NULL);
    return 1;
}

Test(gradient, reuses_the_numbers_that_the_run_has_drawn) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(32, 16));
    check(&m, drops, &(tensors){{noise(EDDY_SHAPE(8, 16))}, 1}, 1, 1);
    expect_nothing_left(scope);
}

static int views(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *left = eddy_narrow(x[0], 1, 0, 4), *right = eddy_narrow(x[0], 1, 4, 4);
    eddy_tensor *both =
        eddy_mul(eddy_mul(left, right), eddy_expand(m->params[0], EDDY_SHAPE(6, 4)));
    y[0] = eddy_reshape(both, EDDY_SHAPE(4, 6));
    y[1] = eddy_transpose(both, 0, 1);
    return 2;
}

Test(gradient, of_views_and_of_outputs_that_are_views) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(1, 4));
    check(&m, views, &(tensors){{noise(EDDY_SHAPE(6, 8))}, 1}, 1, 2);
    expect_nothing_left(scope);
}

static int shared(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *h = x[0];
    for (int i = 0; i < 4; i++)
        h = eddy_tanh(eddy_linear(h, m->params[0], m->params[1]));
    y[0] = h;
    return 1;
}

Test(gradient, of_parameters_that_are_used_again) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(6, 6));
    add_param(&m, EDDY_SHAPE(6));
    check(&m, shared, &(tensors){{noise(EDDY_SHAPE(3, 6))}, 1}, 1, 1);
    expect_nothing_left(scope);
}

static int with_state(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_no_grad_begin();
    must(eddy_add_into(m->state, eddy_mean(x[0], EDDY_AXES(0), NULL), m->state));
    eddy_no_grad_end();
    y[0] = eddy_mul(eddy_mul(x[0], m->params[0]), m->state);
    y[1] = eddy_detach(eddy_sum(y[0], EDDY_ALL_AXES, NULL));
    y[2] = eddy_argmax(y[0], EDDY_AXES(1), NULL);
    return 3;
}

Test(gradient, beside_state_and_outputs_without_a_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.state = eddy_zeros(EDDY_SHAPE(6), EDDY_F32, NULL)};
    add_param(&m, EDDY_SHAPE(6));
    check(&m, with_state, &(tensors){{noise(EDDY_SHAPE(3, 6))}, 1}, 1, 3);
    expect_nothing_left(scope);
}

static int three(model *m, eddy_tensor **x, eddy_tensor **y) {
    eddy_tensor *h = eddy_mul(x[0], m->params[0]);
    y[0] = eddy_exp(h);
    y[1] = eddy_square(eddy_add(y[0], x[1]));
    y[2] = eddy_mul(m->params[1], x[1]);
    return 3;
}

Test(gradient, comes_back_to_some_of_the_outputs) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(6));
    add_param(&m, EDDY_SHAPE(6));
    check(&m, three, &(tensors){{noise(EDDY_SHAPE(3, 6)), noise(EDDY_SHAPE(3, 6))}, 2}, 3, 3);
    expect_nothing_left(scope);
}

static int passes_on(model *m, eddy_tensor **x, eddy_tensor **y) {
    y[0] = x[0];
    y[1] = m->params[0];
    y[2] = eddy_add_s(eddy_add(x[0], m->params[0]), EDDY_S(1));
    y[3] = eddy_reshape(x[0], EDDY_SHAPE(6, 3));
    return 4;
}

Test(gradient, of_outputs_that_are_inputs_and_parameters) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(3, 6));
    check(&m, passes_on, &(tensors){{noise(EDDY_SHAPE(3, 6))}, 1}, 1, 4);
    expect_nothing_left(scope);
}

static int in_place(model *m, eddy_tensor **x, eddy_tensor **y) {
    y[0] = eddy_linear(x[0], m->params[0], EDDY_NONE);
    must(eddy_relu_into(y[0], y[0]));
    must(eddy_mul_into(y[0], eddy_ones(EDDY_SHAPE(6), EDDY_F32, NULL), y[0]));
    return 1;
}

Test(gradient, of_calls_in_place_on_what_was_made) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    add_param(&m, EDDY_SHAPE(6, 6));
    check(&m, in_place, &(tensors){{noise(EDDY_SHAPE(3, 6))}, 1}, 1, 1);
    expect_nothing_left(scope);
}
