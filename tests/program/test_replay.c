/* Runs: what they compute, write and leave behind is what the recorded calls would. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_program *program = eddy_record_end(bindings);
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_not_null(program, "%s", error.message);
    return program;
}

static void begin(void) {
    must(eddy_record_begin(NULL));
}

static eddy_tensor *numbers(int64_t rows, int64_t columns, double first) {
    return eddy_reshape(eddy_arange(EDDY_S(first), EDDY_S(first + (double)(rows * columns)),
                                    EDDY_S(1.0), EDDY_F32, NULL),
                        EDDY_SHAPE(rows, columns));
}

static eddy_tensor *run(eddy_program *program, eddy_list inputs) {
    eddy_tensor *output = NULL;
    must(eddy_program_run(program, inputs, &output));
    return output;
}

static void expect_fails(eddy_program *program, eddy_list inputs, eddy_status status,
                         const char *part) {
    eddy_tensor *output = NULL;
    eddy_error error = {0};
    cr_assert_eq(eddy_program_run(program, inputs, &output), status);
    cr_assert_eq(eddy_error_take(&error), status);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
    cr_assert_null(output);
}

Test(replay, inputs_are_given_and_captured_tensors_are_read_anew) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(2, 3, 0), *b = numbers(1, 3, 10);
    begin();
    eddy_tensor *y = eddy_mul_s(eddy_add(x, b), EDDY_S(2));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_tensor *again = run(program, EDDY_LIST(numbers(2, 3, 100)));
    cr_assert_eq(sum_of(again), 2 * (6 * 100 + 15 + 2 * 33));
    cr_assert_eq(sum_of(y), 2 * (15 + 2 * 33), "what was recorded stays as it is");
    must(eddy_copy_into(numbers(1, 3, 0), b));
    cr_assert_eq(sum_of(run(program, EDDY_LIST(x))), 2 * (15 + 2 * 3));
    cr_assert_eq(sum_of(again), 2 * (6 * 100 + 15 + 2 * 33), "outputs are tensors of their own");
    eddy_program_release(&program);
    cr_assert_null(program);
    cr_assert_eq(sum_of(again), 2 * (6 * 100 + 15 + 2 * 33));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(replay, wrong_inputs_change_nothing) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(2, 3, 0), *state = numbers(2, 3, 0);
    begin();
    must(eddy_add_into(state, x, state));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                          {"y", state, EDDY_ROLE_OUTPUT}));
    double before = sum_of(state);
    expect_fails(program, (eddy_list){0}, EDDY_INVALID_ARGUMENT, "0 inputs, the program has 1: x");
    expect_fails(program, EDDY_LIST(x, x), EDDY_INVALID_ARGUMENT, "2 inputs, the program has 1: x");
    expect_fails(program, (eddy_list){NULL, 1}, EDDY_INVALID_ARGUMENT,
                 "the list of inputs has count 1, but its items are NULL");
    expect_fails(program, (eddy_list){NULL, -1}, EDDY_INVALID_ARGUMENT,
                 "the list of inputs has count -1");
    expect_fails(program, EDDY_LIST(NULL), EDDY_INVALID_ARGUMENT, "x is NULL");
    expect_fails(program, EDDY_LIST(numbers(3, 2, 0)), EDDY_SHAPE_MISMATCH,
                 "input x is f32[3, 2], the program was recorded with f32[2, 3]");
    expect_fails(program, EDDY_LIST(EDDY_NONE), EDDY_INVALID_ARGUMENT, "x is EDDY_NONE");
    expect_fails(program, EDDY_LIST(eddy_reshape(x, EDDY_SHAPE(6))), EDDY_SHAPE_MISMATCH,
                 "input x is f32[6], the program was recorded with f32[2, 3]");
    expect_fails(program, EDDY_LIST(eddy_unsqueeze(x, 0)), EDDY_SHAPE_MISMATCH,
                 "input x is f32[1, 2, 3], the program was recorded with f32[2, 3]");
    expect_fails(program, EDDY_LIST(eddy_cast(x, EDDY_F64)), EDDY_DTYPE_MISMATCH,
                 "input x is f64[2, 3], the program was recorded with f32[2, 3]");
    expect_fails(program, EDDY_LIST(eddy_t(numbers(3, 2, 0))), EDDY_SHAPE_MISMATCH,
                 "input x has the strides [1, 2], the program was recorded with [3, 1]");
    eddy_tensor *far = numbers(2, 3, 0);
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 1}); /* there is none so far */
    expect_fails(program, EDDY_LIST(far), EDDY_DEVICE_MISMATCH, "input x lives on another device");
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 0});
    expect_fails(program, EDDY_LIST(state), EDDY_INVALID_ARGUMENT,
                 "input x shares its memory with state, and the program writes it");
    eddy_runtime *other = eddy_runtime_create(NULL);
    must(eddy_runtime_use(other));
    eddy_tensor *foreign = numbers(2, 3, 0);
    must(eddy_runtime_use(NULL));
    expect_fails(program, EDDY_LIST(foreign), EDDY_RUNTIME_MISMATCH,
                 "input x belongs to another runtime");
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_program_run(NULL, EDDY_LIST(x), NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    cr_assert_eq(sum_of(state), before);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(replay, state_is_written_in_the_order_of_the_calls) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *total = eddy_zeros(EDDY_SHAPE(1000), EDDY_F32, NULL),
                *x = eddy_ones(EDDY_SHAPE(1000), EDDY_F32, NULL);
    begin();
    must(eddy_add_into(total, x, total));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    for (int i = 1; i <= 20; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), NULL));
        must(eddy_mul_into(total, eddy_full_like(total, EDDY_S(2), NULL), total));
    }
    cr_assert_eq(eddy_item_f64(eddy_select(total, 0, 7), NULL), 3.0 * (1 << 20) - 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(replay, a_gradient_sees_that_a_run_has_written_its_operand) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *factor = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                *w = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
    must(eddy_requires_grad_set(w, true));
    begin();
    must(eddy_add_into(factor, x, factor));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    eddy_tensor *product = eddy_mul(w, factor); /* its gradient needs the factor */
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    eddy_error error = {0};
    cr_assert_neq(eddy_backward(eddy_sum(product, EDDY_ALL_AXES, NULL)), EDDY_OK);
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "written to in place"), "%s", error.message);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* The number of a storage that is gone goes to another tensor, which is no result of the recorded calls. */
Test(replay, storages_whose_numbers_are_used_again_are_others) {
    eddy_scope *outer = eddy_scope_begin();
    enum { TIMES = 2000 };
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1), EDDY_F64, NULL), *sum = x;
    begin();
    for (int i = 0; i < TIMES; i++) {
        eddy_scope *inner = eddy_scope_begin();
        for (int k = 0; k < i % 5; k++)
            (void)eddy_neg(x);
        eddy_scope_end(inner);
        must(eddy_sync(EDDY_FOREVER));
        double value = i;
        sum = eddy_add(sum, eddy_from_data(&value, EDDY_SHAPE(1), EDDY_F64, NULL));
    }
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"sum", sum, EDDY_ROLE_OUTPUT}));
    eddy_tensor *output;
    must(eddy_program_run(program, EDDY_LIST(x), &output));
    cr_assert_eq(eddy_item_f64(output, NULL), 1 + TIMES / 2 * (TIMES - 1));
    cr_assert_eq(eddy_item_f64(sum, NULL), 1 + TIMES / 2 * (TIMES - 1));
    eddy_program_release(&program);
    eddy_scope_end(outer);
}

Test(replay, inputs_may_be_views_of_one_tensor) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *all = numbers(10, 3, 0);
    eddy_tensor *a = eddy_narrow(all, 0, 0, 2), *b = eddy_narrow(all, 0, 4, 2);
    begin();
    eddy_tensor *y = eddy_sub(a, b);
    eddy_program *program = end(EDDY_BINDINGS({"a", a, EDDY_ROLE_INPUT}, {"b", b, EDDY_ROLE_INPUT},
                                              {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(y), -6 * 12);
    eddy_tensor *later = eddy_narrow(all, 0, 7, 2), *first = eddy_narrow(all, 0, 1, 2);
    cr_assert_eq(sum_of(run(program, EDDY_LIST(later, first))), 6 * 18);
    cr_assert_eq(sum_of(run(program, EDDY_LIST(first, first))), 0, "the same tensor twice");
    cr_assert_eq(sum_of(run(program, EDDY_LIST(numbers(2, 3, 5), first))), 6 * 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(replay, outputs_may_be_views_and_share_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(4, 3, 0);
    begin();
    eddy_tensor *y = eddy_add_s(x, EDDY_S(1)), *turned = eddy_t(y), *part = eddy_narrow(y, 0, 1, 2);
    eddy_tensor *z = eddy_mul_s(y, EDDY_S(3)), *low = eddy_narrow(z, 0, 0, 1),
                *high = eddy_narrow(z, 0, 3, 1);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"turned", turned, EDDY_ROLE_OUTPUT},
                          {"part", part, EDDY_ROLE_OUTPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                          {"low", low, EDDY_ROLE_OUTPUT}, {"high", high, EDDY_ROLE_OUTPUT},
                          {"same", x, EDDY_ROLE_OUTPUT}));
    eddy_tensor *outputs[6], *given = numbers(4, 3, 10);
    must(eddy_program_run(program, EDDY_LIST(given), outputs));
    cr_assert_eq(sum_of(outputs[0]), sum_of(given) + 12);
    cr_assert_eq(eddy_dim_of(outputs[0], 0), 3);
    cr_assert_eq(sum_of(outputs[1]), 6 * 11 + 3 + 4 + 5 + 6 + 7 + 8);
    cr_assert_eq(sum_of(outputs[3]), 3 * (11 + 12 + 13));
    cr_assert_eq(sum_of(outputs[4]), 3 * (20 + 21 + 22));
    must(eddy_copy_into(numbers(4, 3, 0), outputs[2]));
    cr_assert_eq(sum_of(outputs[0]), 66, "views of one tensor");
    must(eddy_copy_into(numbers(4, 3, 1), outputs[5]));
    cr_assert_eq(sum_of(given), 78, "an input that is an output is the tensor that was given");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(replay, an_input_that_is_written_is_written_at_each_run) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(2, 3, 0);
    begin();
    must(eddy_relu_inplace(x));
    must(eddy_mul_into(x, x, x));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    eddy_tensor *given = numbers(2, 3, -2);
    must(eddy_program_run(program, EDDY_LIST(given), NULL));
    cr_assert_eq(sum_of(given), 1 + 4 + 9);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(replay, no_inputs_and_no_instructions) {
    begin();
    eddy_program *program = end(NULL);
    must(eddy_program_run(program, (eddy_list){0}, NULL));
    eddy_program_release(&program);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(1, 1, 4);
    begin();
    program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", x, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_item_f64(run(program, EDDY_LIST(numbers(1, 1, 7))), NULL), 7);
    eddy_program_release(&program);
    begin();
    eddy_tensor *made = eddy_zeros(EDDY_SHAPE(0, 3), EDDY_F32, NULL), *y = eddy_relu(made);
    program = end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_count_of(run(program, (eddy_list){0})), 0);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- random numbers ---- */

static eddy_tensor *noise(eddy_generator *generator) {
    eddy_tensor *own = eddy_rand(EDDY_SHAPE(50), EDDY_F32, NULL);
    return eddy_add(
        eddy_dropout(own, EDDY_S(0.5), NULL),
        eddy_randn(EDDY_SHAPE(50), EDDY_F32, EDDY_OPTIONS(randn, .generator = generator)));
}

Test(replay, draws_go_on_where_the_calls_would) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *generator = eddy_generator_create(5);
    float eager[4][50], replayed[4][50];
    eddy_seed(9);
    for (int i = 0; i < 4; i++)
        must(eddy_read(noise(generator), eager[i], sizeof(eager[i]), NULL));
    must(eddy_generator_restore(generator, 5, 0));
    eddy_seed(9);
    begin();
    eddy_tensor *y = noise(generator);
    eddy_program *program = end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_read(y, replayed[0], sizeof(replayed[0]), NULL));
    for (int i = 1; i < 4; i++)
        must(eddy_read(run(program, (eddy_list){0}), replayed[i], sizeof(replayed[i]), NULL));
    cr_assert_arr_eq(eager, replayed, sizeof(eager));
    uint64_t seed, counter;
    must(eddy_generator_state(generator, &seed, &counter));
    cr_assert_eq(counter, 4);
    eddy_generator_release(&generator);
    must(eddy_program_run(program, (eddy_list){0}, &y));
    must(eddy_wait(y, EDDY_FOREVER));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- training ---- */

#define PARAMS 2

typedef struct net {
    eddy_tensor *params[PARAMS], *first[PARAMS], *second[PARAMS], *grads[PARAMS], *step;
} net;

static void net_init(net *n) {
    eddy_seed(21);
    n->params[0] = eddy_randn(EDDY_SHAPE(5, 4), EDDY_F32, NULL);
    n->params[1] = eddy_randn(EDDY_SHAPE(3, 5), EDDY_F32, NULL);
    n->step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
    for (int i = 0; i < PARAMS; i++) {
        n->first[i] = eddy_zeros_like(n->params[i], NULL);
        n->second[i] = eddy_zeros_like(n->params[i], NULL);
        must(eddy_requires_grad_set(n->params[i], true));
    }
}

static eddy_tensor *train(net *n, eddy_tensor *x, eddy_tensor *labels) {
    eddy_list params = {n->params, PARAMS};
    must(eddy_grads_zero(params));
    eddy_tensor *hidden =
        eddy_dropout(eddy_gelu(eddy_linear(x, n->params[0], EDDY_NONE), NULL), EDDY_S(0.3), NULL);
    eddy_tensor *loss =
        eddy_cross_entropy(eddy_linear(hidden, n->params[1], EDDY_NONE), labels, NULL);
    must(eddy_backward(loss));
    must(eddy_grads_of(params, n->grads));
    must(eddy_adam_step(params, (eddy_list){n->grads, PARAMS}, (eddy_list){n->first, PARAMS},
                        (eddy_list){n->second, PARAMS}, n->step, EDDY_S(0.01), NULL));
    return eddy_detach(loss);
}

#define STEPS 8

/* What is left of STEPS steps: losses, parameters, kept gradients. */
typedef struct trace {
    float losses[STEPS], params[PARAMS][20], grads[PARAMS][20];
} trace;

static void note(net *n, trace *t) {
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = (size_t)eddy_count_of(n->params[i]) * sizeof(float);
        eddy_tensor *grad = eddy_grad_of(n->params[i]);
        must(eddy_read(n->params[i], t->params[i], bytes, NULL));
        must(eddy_read(grad, t->grads[i], bytes, NULL));
    }
}

static eddy_tensor *batch(int step) {
    eddy_generator *generator = eddy_generator_create(100 + (uint64_t)step);
    eddy_tensor *x =
        eddy_randn(EDDY_SHAPE(6, 4), EDDY_F32, EDDY_OPTIONS(randn, .generator = generator));
    eddy_generator_release(&generator);
    return x;
}

static eddy_tensor *labels_of(int step) {
    int64_t labels[6];
    for (int i = 0; i < 6; i++)
        labels[i] = (step + i) % 3;
    return eddy_from_data(labels, EDDY_SHAPE(6), EDDY_I64, NULL);
}

static void train_eagerly(trace *t) {
    net n;
    eddy_scope *scope = eddy_scope_begin();
    net_init(&n);
    for (int i = 0; i < STEPS; i++)
        t->losses[i] = (float)eddy_item_f64(train(&n, batch(i), labels_of(i)), NULL);
    note(&n, t);
    eddy_scope_end(scope);
}

static void train_by_replay(trace *t) {
    net n;
    eddy_scope *scope = eddy_scope_begin();
    net_init(&n);
    eddy_tensor *x = batch(0), *labels = labels_of(0);
    begin();
    eddy_tensor *loss = train(&n, x, labels);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"labels", labels, EDDY_ROLE_INPUT},
                          {"loss", loss, EDDY_ROLE_OUTPUT}));
    t->losses[0] = (float)eddy_item_f64(loss, NULL);
    for (int i = 1; i < STEPS; i++)
        t->losses[i] = (float)eddy_item_f64(run(program, EDDY_LIST(batch(i), labels_of(i))), NULL);
    note(&n, t);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void compare_training(void) {
    trace eager = {0}, replayed = {0};
    train_eagerly(&eager);
    train_by_replay(&replayed);
    cr_assert_arr_eq(&eager, &replayed, sizeof(eager));
    cr_assert_neq(eager.losses[0], eager.losses[STEPS - 1]);
}

Test(replay, training_has_the_bits_of_its_calls_on_every_path) {
    static const eddy_runtime_options ways[] = {
        {.size = sizeof(eddy_runtime_options), .threads = 1},
        {.size = sizeof(eddy_runtime_options), .threads = 2},
        {.size = sizeof(eddy_runtime_options), .uses_one_thread = true},
        {.size = sizeof(eddy_runtime_options), .threads = 2, .uses_full_path = true},
        {.size = sizeof(eddy_runtime_options), .threads = 2, .uses_worker_path = true},
        {.size = sizeof(eddy_runtime_options), .threads = 2, .syncs_each_op = true},
        {.size = sizeof(eddy_runtime_options), .threads = 2, .checks_finite = true}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        eddy_runtime *runtime = eddy_runtime_create(&ways[i]);
        cr_assert_not_null(runtime);
        must(eddy_runtime_use(runtime));
        compare_training();
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}

/* ---- threads ---- */

typedef struct sharing {
    eddy_program *program;
    int64_t first;
} sharing;

static void *run_often(void *context) {
    const sharing *s = context;
    for (int i = 0; i < 200; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = numbers(8, 16, (double)s->first + i);
        double wanted = 128 * (double)(s->first + i) + 127 * 64 + 128;
        cr_assert_eq(sum_of(run(s->program, EDDY_LIST(x))), wanted);
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(replay, threads_share_a_program) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(8, 16, 0);
    begin();
    eddy_tensor *y = eddy_add_s(eddy_neg(eddy_neg(x)), EDDY_S(1));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    pthread_t threads[3];
    sharing shared[3];
    for (int i = 0; i < 3; i++) {
        shared[i] = (sharing){program, 1000 * i};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_often, &shared[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(replay, a_program_may_be_released_while_it_runs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(300, 300, 0);
    begin();
    eddy_tensor *y = eddy_matmul(eddy_matmul(x, x), eddy_mul_s(x, EDDY_S(1e-9)));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_tensor *again = run(program, EDDY_LIST(x));
    eddy_program_release(&program);
    cr_assert_eq(sum_of(again), sum_of(y));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(replay, a_program_outlives_its_runtime) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(2, 3, 0), *kept = numbers(2, 3, 0);
    begin();
    eddy_tensor *y = eddy_add(x, kept);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
    eddy_tensor *output = NULL;
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &output), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
    eddy_scope_end(scope);
    eddy_program_release(&program);
    cr_assert_eq(eddy_live_count(), 0);
}
