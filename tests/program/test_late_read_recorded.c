/* Reads for a callback: in recorded functions, under autograd, in branches and loops, in files. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/heard.h>
#include <tests/program/outcome.h>
#include <tests/program/runtimes.h>
#include <tests/program/taped.h>
#include <unistd.h>

#define ROWS 3
#define COLUMNS 4
#define ROUNDS 6

static eddy_tensor *ramp(double first) {
    return eddy_reshape(
        eddy_arange(EDDY_S(first), EDDY_S(first + ROWS * COLUMNS), EDDY_S(1), EDDY_F32, NULL),
        EDDY_SHAPE(ROWS, COLUMNS));
}

/* ---- recorded functions ---- */

typedef struct model {
    eddy_tensor *w;
    int calls, tag;
    bool reads_sizes;
} model;

static eddy_status step(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_grads_zero(EDDY_LIST(m->w));
    eddy_tensor *loss =
        eddy_mean(eddy_square(eddy_matmul(call->inputs.items[0], m->w)), EDDY_ALL_AXES, NULL);
    listen_to(eddy_detach(loss), m->tag);
    eddy_backward(loss);
    eddy_no_grad_begin();
    eddy_sub_into(m->w, eddy_mul_s(eddy_grad_of(m->w), call->scalars[0]), m->w);
    eddy_no_grad_end();
    return EDDY_OK;
}

static void train(const model *m, eddy_recorded *recorded, int64_t rows, double rate) {
    eddy_tensor *x = eddy_full(EDDY_SHAPE(rows, COLUMNS), EDDY_S(0.5), EDDY_F32, NULL);
    eddy_scalar number = EDDY_S(rate);
    if (recorded)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(number), NULL));
    else
        must(step((void *)m, &(eddy_recorded_call){.inputs = EDDY_LIST(x), .scalars = &number}));
}

static model make_model(void) {
    return (model){.w = leaf(eddy_ones(EDDY_SHAPE(COLUMNS, 1), EDDY_F32, NULL))};
}

static void log_losses(void) {
    model m = make_model(), alone = make_model();
    eddy_recorded *recorded =
        eddy_recorded_create(step, &m, 0, EDDY_OPTIONS(recorded, .is_strict = true));
    for (int i = 0; i < ROUNDS; i++) {
        train(&alone, NULL, ROWS, 0.25 / (i + 1));
        heard wanted = *settle();
        cr_assert_eq(wanted.count, 1);
        train(&m, recorded, ROWS, 0.25 / (i + 1));
        expect_heard(&wanted, "a loss");
    }
    cr_assert_eq(m.calls, 2);
    expect_explained(recorded, "ran 2 times, replayed 4 times\n");
    eddy_recorded_release(&recorded);
    eddy_grads_zero(EDDY_LIST(m.w, alone.w));
}

Test(late_read_recorded, of_recorded_functions_is_replayed) {
    in_runtimes(log_losses);
}

Test(late_read_recorded, with_another_context_is_another_recording) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make_model();
    eddy_recorded *recorded = eddy_recorded_create(step, &m, 0, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        m.tag = i < 4 ? i : 4;
        train(&m, recorded, ROWS, 0.25);
        const heard *got = settle();
        cr_assert_eq(got->count, 1);
        cr_assert_eq(got->entries[0].tag, m.tag);
        if (i == 3)
            expect_explained(recorded, "(read_async): it has another callback or context");
    }
    cr_assert_eq(m.calls, ROUNDS);
    train(&m, recorded, ROWS, 0.25);
    cr_assert_eq(m.calls, ROUNDS);
    cr_assert_eq(settle()->entries[0].tag, 4);
    eddy_recorded_release(&recorded);
    eddy_grads_zero(EDDY_LIST(m.w));
    eddy_scope_end(scope);
}

/* Each size twice, then as the options say. has_other: one size in between has a context of its own, which those that follow from others do not. */
static int train_sizes(const eddy_recorded_options *options, bool has_other) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make_model(), alone = make_model();
    eddy_recorded *recorded = eddy_recorded_create(step, &m, 0, options);
    for (int i = 0; i < 4 * 6; i++) {
        m.tag = alone.tag = has_other ? 1 + i / 4 % 2 : 0;
        train(&alone, NULL, 2 + i / 4, 0.125);
        heard wanted = *settle();
        train(&m, recorded, 2 + i / 4, 0.125);
        expect_heard(&wanted, "a size");
    }
    eddy_recorded_release(&recorded);
    eddy_grads_zero(EDDY_LIST(m.w, alone.w));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
    return m.calls;
}

Test(late_read_recorded, of_other_sizes_follows) {
    cr_assert_eq(train_sizes(EDDY_OPTIONS(recorded, .foretells_shapes = true), false), 2 + 2 + 4);
    cr_assert_eq(
        train_sizes(EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 8), false),
        2 + 2 + 1);
    cr_assert_eq(train_sizes(EDDY_OPTIONS(recorded, .foretells_shapes = true), true), 2 * 6);
}

/* ---- gradients ---- */

static eddy_tensor *layer(eddy_tensor *x, eddy_tensor *w) {
    eddy_tensor *h = eddy_tanh(eddy_mul(x, w));
    listen_to(h, 0);
    eddy_tensor *y = eddy_mul(h, x);
    listen_to(eddy_detach(y), 1);
    return y;
}

static void go_back(void) {
    eddy_tensor *x = leaf(ramp(0.5)),
                *w = leaf(eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.25), EDDY_F32, NULL)), *y,
                *gradient;
    must(eddy_record_begin(NULL));
    y = layer(x, w);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    heard wanted = *settle();
    cr_assert_eq(wanted.count, 2, "its backward passes call nothing");
    for (int i = 0; i < 3; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        expect_heard(&wanted, "forwards");
        must(eddy_backward_to(EDDY_LIST(all(y)), EDDY_LIST(w), (eddy_list){0},
                              EDDY_OPTIONS(backward, .creates_graph = i == 2), &gradient));
        if (i == 2)
            must(eddy_backward(all(gradient)));
        cr_assert_eq(count_heard(), 0, "backwards");
    }
    eddy_no_grad_begin();
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    eddy_no_grad_end();
    expect_heard(&wanted, "without gradients");
    eddy_program_release(&program);
    eddy_grads_zero(EDDY_LIST(x, w));
}

Test(late_read_recorded, is_made_once_by_a_run_under_autograd) {
    in_runtimes(go_back);
}

static eddy_status layer_body(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    call->outputs[0] = layer(call->inputs.items[0], m->w);
    return EDDY_OK;
}

/* Of sizes that follow from others too, in buckets and without. */
static int layer_sizes(const eddy_recorded_options *options) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = leaf(eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.25), EDDY_F32, NULL))};
    eddy_recorded *recorded = eddy_recorded_create(layer_body, &m, 1, options);
    for (int i = 0; i < 4 * 5; i++) {
        eddy_tensor *x = eddy_narrow(eddy_cat(EDDY_LIST(ramp(i), ramp(-1)), 0), 0, 0, 2 + i / 4),
                    *y, *gradients[2];
        must(eddy_backward_to(EDDY_LIST(all(layer(x, m.w))), EDDY_LIST(m.w), (eddy_list){0}, NULL,
                              &gradients[0]));
        heard wanted = *settle();
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y));
        must(eddy_backward_to(EDDY_LIST(all(y)), EDDY_LIST(m.w), (eddy_list){0}, NULL,
                              &gradients[1]));
        expect_heard(&wanted, "a size under autograd");
        must_have_same_bits(gradients[0], gradients[1], "its gradient");
    }
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
    return m.calls;
}

Test(late_read_recorded, of_layers_of_other_sizes_follows) {
    cr_assert_eq(layer_sizes(EDDY_OPTIONS(recorded, .is_strict = true)), 2 * 5);
    cr_assert_eq(layer_sizes(EDDY_OPTIONS(recorded, .foretells_shapes = true)), 2 + 2 + 3);
    cr_assert_eq(layer_sizes(EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 8)),
                 2 + 2 + 1);
}

static eddy_tensor *hear_gradient(void *context, eddy_tensor *gradient) {
    (void)context;
    listen_to(gradient, 3);
    return NULL;
}

/* The hook is called while the pass is recorded, as one of its calls. */
static eddy_status hooked(void *context, eddy_recorded_call *call) {
    eddy_tensor *w = context;
    eddy_grads_zero(EDDY_LIST(w));
    eddy_tensor *h = eddy_mul(call->inputs.items[0], w);
    must(eddy_grad_hook_add(h, hear_gradient, NULL, NULL));
    must(eddy_backward(eddy_sum(eddy_square(h), EDDY_ALL_AXES, NULL)));
    return EDDY_OK;
}

Test(late_read_recorded, of_a_hook_is_a_call_of_its_pass) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(eddy_ones(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL));
    eddy_recorded *recorded =
        eddy_recorded_create(hooked, w, 0, EDDY_OPTIONS(recorded, .is_strict = true));
    for (int i = 0; i < ROUNDS; i++) {
        eddy_tensor *x = ramp(i);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), NULL));
        heard got = *settle();
        cr_assert_eq(got.count, 1);
        listen_to(eddy_mul_s(eddy_detach(eddy_mul(x, w)), EDDY_S(2)), 3);
        expect_heard(&got, "a gradient");
    }
    expect_explained(recorded, "ran 2 times, replayed 4 times\n");
    eddy_recorded_release(&recorded);
    eddy_grads_zero(EDDY_LIST(w));
    eddy_scope_end(scope);
}

static eddy_status square_forward(eddy_forward_call *call) {
    call->outputs[0] = eddy_square(call->inputs[0]);
    return eddy_forward_save(call, EDDY_LIST(call->inputs[0]));
}

static eddy_status square_backward(eddy_backward_call *call) {
    eddy_status status = try_listen(call->grads[0], 2);
    call->results[0] = eddy_mul_s(eddy_mul(call->saved[0], call->grads[0]), EDDY_S(2));
    return status;
}

static const eddy_function square_function = {.size = sizeof(eddy_function),
                                              .name = "square",
                                              .output_count = 1,
                                              .forward = square_forward,
                                              .backward = square_backward};

static eddy_status squares(void *context, eddy_recorded_call *call) {
    return eddy_function_call(&square_function, context, call->inputs, call->outputs);
}

/* The backward pass of outputs is recorded for zeros: nothing of it happens, and a function that would do something is not replayed. */
Test(late_read_recorded, of_a_backward_pass_to_come_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = leaf(ramp(1)), *y;
    eddy_error error = {0};
    must(eddy_record_begin(NULL));
    must(eddy_function_call(&square_function, NULL, EDDY_LIST(x), &y));
    cr_assert_null(eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "the backward pass of outputs is being recorded"),
                       "%s", error.message);
    cr_assert_eq(count_heard(), 0);
    eddy_recorded *recorded = eddy_recorded_create(squares, NULL, 1, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y));
        cr_assert_eq(count_heard(), 0);
        must(eddy_backward(all(y)));
        const heard *got = settle();
        cr_assert_eq(got->count, 1, "%d", i);
        float first;
        memcpy(&first, got->entries[0].data, sizeof(first));
        cr_assert_eq(first, 1);
    }
    expect_explained(recorded, "ran 6 times, replayed 0 times; not replayed: read_async");
    eddy_recorded_release(&recorded);
    eddy_grads_zero(EDDY_LIST(x));
    eddy_scope_end(scope);
}

/* ---- what is refused ---- */

static eddy_status last_status;

static eddy_status hears(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *y = eddy_add(inputs.items[0], inputs.items[0]);
    last_status = try_listen(y, 0);
    return last_status == EDDY_OK ? done(outputs, y) : last_status;
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_lt_s(eddy_sum(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(20)));
}

static eddy_status call_block(int kind, eddy_tensor *x, eddy_tensor **y) {
    return kind == 0   ? eddy_cond(truth(true), hears, same, NULL, EDDY_LIST(x), 1, NULL, y)
           : kind == 1 ? eddy_while(is_small, hears, NULL, EDDY_LIST(x), NULL, y)
           : kind == 2 ? eddy_while(is_small, hears, NULL, EDDY_LIST(x),
                                    EDDY_OPTIONS(while, .most_steps = 9), y)
                       : eddy_scan(hears, NULL, EDDY_LIST(x), (eddy_list){0}, 1,
                                   EDDY_OPTIONS(scan, .step_count = 3, .is_rolled = true), y);
}

#define BLOCKS 4

/* Functions of branches and loops are called to be recorded: then no callback is. */
Test(late_read_recorded, in_branches_and_loops_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    char reason[320];
    for (int kind = 0; kind < BLOCKS; kind++)
        for (int only = 0; only < 2; only++) {
            eddy_tensor *x = kind == 2 ? leaf(of(1)) : of(1), *y;
            must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = only)));
            cr_assert_eq(call_block(kind, x, &y), EDDY_UNSUPPORTED, "%d", kind);
            eddy_error_take(NULL);
            cr_assert_eq(last_status, EDDY_UNSUPPORTED);
            cr_assert_not(eddy_can_record(reason, sizeof(reason)));
            cr_assert_not_null(strstr(reason, "it is in a branch or a loop"), "%s", reason);
            cr_assert_null(eddy_record_end(NULL));
            eddy_error_take(NULL);
            cr_assert_eq(count_heard(), 0, "%d", kind);
        }
    eddy_scope_end(scope);
}

static eddy_status call_blocks(void *context, eddy_recorded_call *call) {
    return call_block(*(int *)context, call->inputs.items[0], call->outputs);
}

/* A recorded function with such a read runs at each call. */
Test(late_read_recorded, in_branches_and_loops_of_recorded_functions_happens) {
    eddy_scope *scope = eddy_scope_begin();
    for (int kind = 0; kind < BLOCKS; kind++) {
        eddy_recorded *recorded = eddy_recorded_create(call_blocks, &kind, 1, NULL);
        eddy_tensor *y;
        must(call_block(kind, of(1), &y));
        heard wanted = *settle();
        for (int i = 0; i < 4; i++) {
            must(eddy_recorded_run(recorded, EDDY_LIST(of(1)), EDDY_SCALARS(), &y));
            expect_heard(&wanted, "a branch or loop");
        }
        expect_explained(recorded, "ran 4 times, replayed 0 times; not replayed: read_async");
        eddy_recorded_release(&recorded);
    }
    eddy_scope_end(scope);
}

/* A loop that is recorded step by step has calls as others are. */
Test(late_read_recorded, of_steps_that_are_recorded_is_made) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y;
    must(eddy_record_begin(NULL));
    must(eddy_scan(hears, NULL, EDDY_LIST(x), (eddy_list){0}, 1,
                   EDDY_OPTIONS(scan, .step_count = 3), &y));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    heard wanted = *settle();
    cr_assert_eq(wanted.count, 3);
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    expect_heard(&wanted, "steps");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* Behind a branch and behind a loop it sees what the way that was taken has given. */
Test(late_read_recorded, behind_branches_and_loops_is_made) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(3), *y, *z;
    must(eddy_record_begin(NULL));
    must(eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(10)), half, twice, NULL,
                   EDDY_LIST(x), 1, NULL, &y));
    listen_to(y, 0);
    must(eddy_while(is_small, twice, NULL, EDDY_LIST(y), NULL, &z));
    listen_to(z, 1);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    settle();
    for (int i = 0; i < ROUNDS; i++) {
        must(eddy_program_run(program, EDDY_LIST(of(i + 1)), NULL));
        heard got = *settle();
        double first = 3 * (i + 1) > 10 ? 0.5 * (i + 1) : 2.0 * (i + 1), last = first;
        while (3 * last < 20)
            last *= 2;
        listen_to(of(first), 0);
        listen_to(of(last), 1);
        expect_heard(&got, "behind");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

static void touch(void *context, void *data, const eddy_error *error) {
    (void)context, (void)data, (void)error;
}

Test(late_read_recorded, of_late_shapes_and_of_the_memory_itself_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-3), *before = eddy_nonzero(x), *n;
    must(eddy_record_begin(NULL));
    cr_assert_eq(eddy_access_async(x, EDDY_READ, touch, NULL), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "access_async: it cannot be recorded, since no run would call "
                                   "back: do it before the recording, or after it");
    n = eddy_nonzero(x);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(try_listen(i ? n : before, 0), EDDY_UNSUPPORTED);
        expect_error(EDDY_UNSUPPORTED,
                     "read_async: it cannot be recorded, since the shape of what it reads depends "
                     "on data: give that out, and read it after the run");
    }
    cr_assert_eq(eddy_read_async(x, NULL, NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"n", n, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(count_heard(), 0);
    eddy_program_release(&program);
    /* Of a shape that was asked for, before the recording or in it. */
    cr_assert_eq(eddy_rank_of(before), 2);
    must(eddy_record_begin(NULL));
    listen_to(before, 0);
    program = end(NULL);
    must(eddy_program_run(program, (eddy_list){0}, NULL));
    cr_assert_eq(count_heard(), 2);
    eddy_program_release(&program);
    char reason[320];
    must(eddy_record_begin(NULL));
    n = eddy_nonzero(x);
    cr_assert_eq(eddy_rank_of(n), 2);
    listen_to(n, 0);
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason,
                     "read_async cannot be part of a program: it uses what nonzero has made, whose "
                     "shape depends on data: a program only gives that out");
    eddy_record_cancel();
    settle();
    eddy_scope_end(scope);
}

/* Results of late shape beside it are outputs as ever, in their order. */
Test(late_read_recorded, stands_beside_late_shapes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-3), *h, *n, *m;
    must(eddy_record_begin(NULL));
    h = eddy_relu(x);
    n = eddy_nonzero(h);
    listen_to(h, 0);
    m = eddy_masked_select(h, eddy_gt_s(h, EDDY_S(2)));
    listen_to(x, 1);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"n", n, EDDY_ROLE_OUTPUT},
                                              {"m", m, EDDY_ROLE_OUTPUT}));
    settle();
    eddy_tensor *outputs[2];
    x = ramp(-7);
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    heard got = *settle();
    h = eddy_relu(x);
    listen_to(h, 0);
    listen_to(x, 1);
    expect_heard(&got, "beside");
    must_have_same_bits(outputs[0], eddy_nonzero(h), "n");
    must_have_same_bits(outputs[1], eddy_masked_select(h, eddy_gt_s(h, EDDY_S(2))), "m");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(late_read_recorded, is_in_no_file) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-read-%ld.program", (long)getpid());
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1);
    must(eddy_record_begin(NULL));
    listen_to(eddy_neg(x), 0);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    cr_assert_eq(eddy_program_save(program, path), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program_save: the program calls back by read_async, and a file "
                                   "cannot hold which function that is");
    cr_assert_neq(access(path, F_OK), 0);
    char *plan;
    size_t size;
    FILE *file = open_memstream(&plan, &size);
    must(eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = true)));
    fclose(file);
    cr_assert_not_null(strstr(plan, "read_async(%0 f32[3, 4])\n    # called behind the run\n"),
                       "%s", plan);
    free(plan);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
