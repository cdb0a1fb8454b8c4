/* Recorded functions: two recordings, then replay; what differs from call to call; what is never replayed, and why. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/call/op.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_tensor *filled(int64_t rows, double value) {
    return eddy_full(EDDY_SHAPE(rows, 4), EDDY_S(value), EDDY_F32, NULL);
}

static void expect_explained(eddy_recorded *recorded, const char *part) {
    char text[2048];
    int length = eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_eq((size_t)length, strlen(text));
    cr_assert_not_null(strstr(text, part), "%s", text);
}

/* A function that counts its calls. */
typedef struct counted {
    int calls;
    eddy_tensor *state;
} counted;

static eddy_status scale(void *context, eddy_recorded_call *call) {
    counted *c = context;
    if (c) /* several threads do not count */
        c->calls++;
    call->outputs[0] =
        eddy_add_s(eddy_mul_s(call->inputs.items[0], call->scalars[0]), call->scalars[1]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(recorded, is_replayed_from_the_third_call_with_other_numbers) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scale, &c, 1, NULL);
    for (int i = 0; i < 6; i++) {
        eddy_tensor *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)),
                               EDDY_SCALARS(EDDY_S(i + 1), EDDY_S(0.5)), &y));
        cr_assert_eq(sum_of(y), 8 * (i * (i + 1) + 0.5), "call %d", i);
    }
    cr_assert_eq(c.calls, 2);
    expect_explained(recorded, "(f32[2, 4]): ran 2 times, replayed 4 times\n");
    /* Other shapes, and numbers of another kind, are other arguments. */
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(filled(3, 1)), EDDY_SCALARS(EDDY_S(2), EDDY_S(0.5)),
                           &y));
    must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, 1)),
                           EDDY_SCALARS(EDDY_S(2.0), EDDY_S(0.5)), &y));
    cr_assert_eq(c.calls, 4);
    must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, 3)), EDDY_SCALARS(EDDY_S(7), EDDY_S(1.5)),
                           &y));
    cr_assert_eq(sum_of(y), 8 * 22.5);
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status fails(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    if (c->calls == 1)
        return EDDY_IO;
    if (c->calls == 2)
        return EDDY_OK; /* without an output */
    call->outputs[0] = eddy_matmul(call->inputs.items[0], call->inputs.items[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_SHAPE_MISMATCH;
}

Test(recorded, a_failing_call_is_no_recording) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_error error = {0};
    eddy_recorded *recorded = eddy_recorded_create(fails, &c, 1, NULL);
    eddy_tensor *y = NULL, *x = filled(2, 1);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y), EDDY_IO);
    cr_assert_eq(eddy_error_take(&error), EDDY_IO);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y),
                 EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "output 0 NULL"), "%s", error.message);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y),
                 EDDY_SHAPE_MISMATCH);
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "matmul");
    cr_assert_null(y);
    expect_explained(recorded, "(f32[2, 4]): ran 3 times, replayed 0 times; the last call failed: "
                               "it was not recorded\n");
    must(eddy_record_begin(NULL)); /* none was left open */
    eddy_record_cancel();
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* It goes on after a failed call: the failure would be missing from a replay. */
static eddy_status goes_on(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *product = eddy_matmul(x, x);
    call->outputs[0] = product ? product : eddy_neg(x);
    return EDDY_OK;
}

Test(recorded, a_call_that_failed_inside_is_no_recording) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_error error;
    eddy_recorded *recorded = eddy_recorded_create(goes_on, &c, 1, NULL);
    for (int i = 1; i <= 4; i++) {
        eddy_tensor *y = NULL;
        cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, &y),
                     EDDY_OK);
        cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
        cr_assert_eq(sum_of(y), -8 * i);
    }
    cr_assert_eq(c.calls, 4);
    expect_explained(recorded, "(f32[2, 4]): ran 4 times, replayed 0 times; the last call went on "
                               "after a failed op: it was not recorded\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static eddy_status fails_at_odd_calls(void *context, eddy_recorded_call *call) {
    counted *c = context;
    call->outputs[0] = eddy_neg(call->inputs.items[0]);
    return ++c->calls % 2 ? EDDY_IO : EDDY_OK;
}

Test(recorded, what_failed_is_explained_until_it_is_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(fails_at_odd_calls, &c, 1, NULL);
    static const char *const lines[] = {
        "(f32[2, 4]): ran 1 times, replayed 0 times; the last call failed: it was not recorded\n",
        "(f32[2, 4]): ran 2 times, replayed 0 times\n",
        "(f32[2, 4]): ran 3 times, replayed 0 times; the last call failed: it was not recorded\n",
        "(f32[2, 4]): ran 4 times, replayed 0 times\n",
        "(f32[2, 4]): ran 4 times, replayed 1 times\n"};
    for (int i = 0; i < 5; i++) {
        eddy_tensor *y;
        eddy_status status = i == 0 || i == 2 ? EDDY_IO : EDDY_OK;
        cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, &y),
                     status);
        eddy_error_take(NULL);
        expect_explained(recorded, lines[i]);
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status makes(void *context, eddy_recorded_call *call) {
    counted *c = context;
    float number = (float)++c->calls;
    call->outputs[0] =
        eddy_add(call->inputs.items[0], eddy_from_data(&number, EDDY_SHAPE(1), EDDY_F32, NULL));
    return EDDY_OK;
}

static eddy_status constant(void *context, eddy_recorded_call *call) {
    counted *c = context;
    call->outputs[0] = eddy_add_s(call->inputs.items[0], EDDY_S(++c->calls));
    return EDDY_OK;
}

static eddy_status takes_apart(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_add(
        call->inputs.items[0], eddy_arange(EDDY_S(0), call->scalars[0], EDDY_S(1), EDDY_F32, NULL));
    return EDDY_OK;
}

static eddy_status looks_up(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_sum(eddy_nonzero(call->inputs.items[0]), EDDY_ALL_AXES, NULL);
    return EDDY_OK;
}

static eddy_status draws_anew(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    eddy_generator *generator = eddy_generator_create(5);
    eddy_tensor *noise =
        eddy_rand(EDDY_SHAPE(2, 4), EDDY_F32, EDDY_OPTIONS(rand, .generator = generator));
    eddy_generator_release(&generator);
    call->outputs[0] = eddy_add(call->inputs.items[0], noise);
    return EDDY_OK;
}

/* The same calls, but another of their results. */
static eddy_status gives_another(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0], *a = eddy_neg(x), *b = eddy_add(x, x);
    call->outputs[0] = ++c->calls % 2 ? a : b;
    return EDDY_OK;
}

static eddy_status gives_another_part(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *y = eddy_cumsum(call->inputs.items[0], 0);
    call->outputs[0] = eddy_select(y, 0, ++c->calls % 2);
    return EDDY_OK;
}

/* The function runs at each call, with the right results, and the reason is told. */
static void expect_never_replayed(eddy_recorded_body *body, const char *reason) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0}, alone = {0};
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL),
                  *strict =
                      eddy_recorded_create(body, &c, 1, EDDY_OPTIONS(recorded, .is_strict = true));
    eddy_tensor *y, *wanted;
    for (int i = 0; i < 12; i++) {
        eddy_tensor *x = filled(2, i % 2 ? 1 : -1);
        eddy_scalar four = EDDY_S(4);
        eddy_recorded_call call = {.inputs = EDDY_LIST(x),
                                   .scalars = &four,
                                   .scalar_count = 1,
                                   .outputs = &wanted,
                                   .output_count = 1};
        eddy_seed((uint64_t)i);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(4)), &y));
        eddy_seed((uint64_t)i);
        must(body(&alone, &call));
        cr_assert_eq(sum_of(y), sum_of(wanted), "call %d", i);
    }
    cr_assert_eq(c.calls, 12);
    expect_explained(recorded, reason);
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 12 && status == EDDY_OK; i++)
        status = eddy_recorded_run(strict, EDDY_LIST(filled(2, 1)), EDDY_SCALARS(EDDY_S(4)), &y);
    cr_assert_eq(status, EDDY_UNSUPPORTED);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "it cannot be replayed: "), "%s", error.message);
    eddy_recorded_release(&recorded);
    eddy_recorded_release(&strict);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(recorded, what_cannot_be_replayed_runs_and_is_explained) {
    expect_never_replayed(makes, "different tensors of the function's own");
    expect_never_replayed(constant, "two recordings differ at instruction 0 (add_s)");
    expect_never_replayed(takes_apart, "number 0 of the call goes into a formula, whose result a "
                                       "replay would not compute anew");
    expect_never_replayed(draws_anew, "two recordings draw from different generators");
    expect_never_replayed(gives_another, "two recordings give different tensors as their outputs");
    expect_never_replayed(gives_another_part,
                          "two recordings give different tensors as their outputs");
    expect_never_replayed(looks_up, "sum cannot be part of a program: it uses what nonzero has "
                                    "made, whose shape depends on data");
}

static eddy_status accumulates(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_status status = eddy_mul_into(c->state, x, c->state);
    call->outputs[0] = eddy_add(c->state, x);
    return status;
}

Test(recorded, inputs_that_share_memory_with_what_is_written_run_the_function) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = filled(2, 2)};
    eddy_recorded *recorded = eddy_recorded_create(accumulates, &c, 1, NULL);
    eddy_tensor *y;
    for (int i = 0; i < 4; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, 1)), (eddy_scalars){0}, &y));
    cr_assert_eq(c.calls, 2);
    must(eddy_recorded_run(recorded, EDDY_LIST(c.state), (eddy_scalars){0}, &y));
    cr_assert_eq(c.calls, 3);
    cr_assert_eq(sum_of(c.state), 8 * 4);
    cr_assert_eq(sum_of(y), 8 * 8);
    expect_explained(recorded, "ran 3 times, replayed 2 times; missed 1 times");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* Dims beyond the rank of a shape mean nothing. */
static eddy_status leaves_dims(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_shape shape = {1, {4}};
    for (int d = 1; d < EDDY_RANK_MAX; d++)
        shape.dims[d] = ++c->calls;
    call->outputs[0] = eddy_add(call->inputs.items[0], eddy_full(shape, EDDY_S(1), EDDY_F32, NULL));
    return EDDY_OK;
}

Test(recorded, dims_beyond_the_rank_do_not_matter) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(leaves_dims, &c, 1, NULL);
    eddy_tensor *y;
    for (int i = 0; i < 3; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, &y));
    cr_assert_eq(sum_of(y), 8 * 3);
    expect_explained(recorded, "ran 2 times, replayed 1 times");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static eddy_status square(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_square(call->inputs.items[0]);
    return EDDY_OK;
}

Test(recorded, gradients_go_back_through_replays) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(square, &c, 1, NULL);
    eddy_tensor *x = filled(2, 3), *y;
    must(eddy_requires_grad_set(x, true));
    for (int i = 0; i < 4; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(eddy_grad_of(x)), 8 * 6);
    cr_assert_eq(c.calls, 2);
    expect_explained(recorded, "ran 2 times, replayed 2 times");
    eddy_no_grad_begin();
    for (int i = 0; i < 4; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    eddy_no_grad_end();
    cr_assert_eq(c.calls, 4, "without the tape it is another program");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* The tape adds to a gradient that it keeps: the first call makes it, the next ones write it. */
static eddy_status goes_back(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    eddy_tensor *loss = eddy_sum(eddy_mul(c->state, call->inputs.items[0]), EDDY_ALL_AXES, NULL);
    return eddy_backward(loss);
}

Test(recorded, gradients_that_are_kept_are_added_to) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = filled(2, 1)};
    must(eddy_requires_grad_set(c.state, true));
    eddy_recorded *recorded = eddy_recorded_create(goes_back, &c, 0, NULL);
    for (int i = 1; i <= 6; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, NULL));
        cr_assert_eq(sum_of(eddy_grad_of(c.state)), 8 * (i * (i + 1) / 2));
    }
    cr_assert_eq(c.calls, 3);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(recorded, inside_a_recording_its_ops_are_a_part_of_that) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scale, &c, 1, NULL);
    eddy_tensor *x = filled(2, 1), *y, *z;
    must(eddy_record_begin(NULL));
    must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(2), EDDY_S(1)), &y));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.instruction_count, 2);
    must(eddy_program_run(program, EDDY_LIST(filled(2, 5)), &z));
    cr_assert_eq(sum_of(z), 8 * 11);
    eddy_program_release(&program);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(recorded, programs_beyond_the_limit_are_dropped) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded =
        eddy_recorded_create(scale, &c, 1, EDDY_OPTIONS(recorded, .most_bytes = 1));
    for (int64_t round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= 5; rows++)
            for (int i = 0; i < 3; i++) {
                eddy_tensor *y;
                must(eddy_recorded_run(recorded, EDDY_LIST(filled(rows, i)),
                                       EDDY_SCALARS(EDDY_S(2), EDDY_S(1)), &y));
                cr_assert_eq(sum_of(y), (double)rows * 4 * (2 * i + 1));
            }
    cr_assert_eq(c.calls, 20, "each was recorded anew in the second round");
    char text[512];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_null(strchr(strchr(text, '\n') + 1, '\n'), "one is left: %s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static void *call_often(void *context) {
    for (int i = 0; i < 100; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *y;
        int64_t rows = 1 + i % 3;
        must(eddy_recorded_run(context, EDDY_LIST(filled(rows, i)),
                               EDDY_SCALARS(EDDY_S(i), EDDY_S(1)), &y));
        cr_assert_eq(sum_of(y), (double)rows * 4 * (i * i + 1));
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(recorded, threads_share_it) {
    eddy_recorded *recorded = eddy_recorded_create(scale, NULL, 1, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, recorded), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_recorded_release(&recorded);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- every op that takes a number ---- */

typedef struct numbered {
    const eddy_op *op;
    int calls;
} numbered;

static eddy_status call_op(void *context, eddy_recorded_call *call) {
    numbered *n = context;
    n->calls++;
    eddy_attribute attributes[4];
    int64_t count = 0;
    for (int32_t i = 0; i < n->op->scalar_count; i++)
        attributes[count++] = (eddy_attribute){.name = n->op->attributes[i].name,
                                               .type = EDDY_ATTRIBUTE_SCALAR,
                                               .value.scalar = call->scalars[0]};
    return eddy_call(n->op->name, call->inputs, &(eddy_attributes){attributes, count},
                     call->outputs);
}

static void try_numbers(const eddy_op *op, eddy_dtype dtype) {
    eddy_scope *scope = eddy_scope_begin();
    numbered n = {.op = op}, alone = {.op = op};
    eddy_recorded *recorded = eddy_recorded_create(call_op, &n, 1, NULL);
    for (int i = 1; i <= 4; i++) {
        eddy_tensor *inputs[4], *y = NULL, *wanted = NULL;
        for (int32_t k = 0; k < op->operand_count; k++)
            inputs[k] = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(1 + k + i),
                                  op->operands[k].is_bool ? EDDY_BOOL : dtype, NULL);
        eddy_scalar number = EDDY_S(i);
        eddy_recorded_call call = {.inputs = {inputs, op->operand_count},
                                   .scalars = &number,
                                   .scalar_count = 1,
                                   .outputs = &wanted,
                                   .output_count = 1};
        eddy_status status = eddy_recorded_run(recorded, call.inputs, EDDY_SCALARS(number), &y);
        if (status != EDDY_OK && i == 1) {
            eddy_error_take(NULL);
            break; /* the op does not take the dtype */
        }
        must(status);
        must(call_op(&alone, &call));
        cr_assert_eq(sum_of(eddy_cast(y, EDDY_F64)), sum_of(eddy_cast(wanted, EDDY_F64)), "%s %d",
                     op->name, i);
        cr_assert_leq(n.calls, 2, "%s is not replayed", op->name);
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(recorded, every_op_that_takes_a_number_takes_a_new_one_at_each_run) {
    int count = 0;
    for (uint32_t i = 0; i < eddy_op_table_count; i++) {
        const eddy_op *op = eddy_op_table[i];
        if (op->scalar_count == 0 || op->output_count != 1 || op->operand_count == 0 ||
            !op->is_elementwise)
            continue;
        count++;
        try_numbers(op, EDDY_F32);
        try_numbers(op, EDDY_I32);
        try_numbers(op, EDDY_BF16);
    }
    cr_assert_gt(count, 10);
}

Test(recorded, a_number_that_the_dtype_does_not_hold_fails_the_run) {
    eddy_scope *scope = eddy_scope_begin();
    numbered n = {.op = eddy_op_find("eq_s")};
    eddy_recorded *recorded = eddy_recorded_create(call_op, &n, 1, NULL);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_U8, NULL), *y;
    for (int i = 0; i < 3; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(i)), &y));
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(256)), &y),
                 EDDY_OUT_OF_RANGE);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "b is 256, and u8 holds 0 to 255"), "%s",
                       error.message);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* ---- a function that interferes ---- */

typedef struct meddler {
    int way;
    eddy_recorded *recorded;
} meddler;

static eddy_status meddles(void *context, eddy_recorded_call *call) {
    meddler *m = context;
    eddy_tensor *x = call->inputs.items[0];
    eddy_error error;
    if (m->way == 0)
        eddy_record_cancel();
    if (m->way == 1 && eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT})))
        return EDDY_IO;
    if (m->way == 2 && eddy_record_begin(NULL) == EDDY_OK)
        return EDDY_IO;
    if (m->way == 3)
        eddy_recorded_release(&m->recorded);
    if (m->way == 1 || m->way == 2)
        eddy_error_take(&error);
    call->outputs[0] = eddy_neg(x);
    return EDDY_OK;
}

Test(recorded, the_function_cannot_close_its_recording_and_may_release_itself) {
    eddy_scope *scope = eddy_scope_begin();
    for (int way = 0; way < 4; way++) {
        meddler m = {.way = way};
        m.recorded = eddy_recorded_create(meddles, &m, 1, NULL);
        eddy_tensor *y = NULL;
        for (int i = 1; i <= 4 && m.recorded; i++) {
            must(eddy_recorded_run(m.recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, &y));
            cr_assert_eq(sum_of(y), -8 * i);
        }
        cr_assert_eq(m.recorded == NULL, way == 3);
        eddy_recorded_release(&m.recorded);
        must(eddy_record_begin(NULL)); /* none was left open */
        eddy_record_cancel();
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status adds(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_add(call->inputs.items[0], call->inputs.items[1]);
    return EDDY_OK;
}

Test(recorded, one_input_twice_is_another_kind_of_arguments) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(adds, &c, 1, NULL);
    eddy_tensor *x = filled(2, 1), *other = filled(2, 5), *y;
    for (int i = 0; i < 4; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(x, x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 8 * 2);
        must(eddy_recorded_run(recorded, EDDY_LIST(x, other), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 8 * 6);
    }
    cr_assert_eq(c.calls, 4 + 2);
    expect_explained(recorded, "have elements in common");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* ---- runtimes ---- */

static eddy_status computes(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_mul_s(eddy_matmul(x, eddy_t(x)), call->scalars[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(recorded, outlives_its_runtime) {
    eddy_recorded *recorded = eddy_recorded_create(computes, NULL, 1, NULL);
    for (int i = 0; i < 3; i++) {
        eddy_runtime *runtime = eddy_runtime_create(NULL);
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = filled(2, 1), *y;
        for (int k = 0; k < 4; k++) {
            must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(1.0)), &y));
            cr_assert_eq(sum_of(y), 16);
        }
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
        eddy_error error;
        cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(1.0)), &y),
                     EDDY_SHUT_DOWN);
        eddy_error_take(&error);
        eddy_scope_end(scope);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
    eddy_recorded_release(&recorded);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what the code cannot tell ---- */

static eddy_status adds_own(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    call->outputs[0] = eddy_add(call->inputs.items[0], c->state);
    return EDDY_OK;
}

Test(recorded, an_input_that_was_one_of_the_functions_own_is_not_taken_for_it) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = filled(2, 3)};
    eddy_recorded *recorded = eddy_recorded_create(adds_own, &c, 1, NULL);
    eddy_tensor *y;
    for (int i = 0; i < 3; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(c.state), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 8 * 6);
    }
    cr_assert_eq(c.calls, 2, "the same input is replayed");
    for (int i = 0; i < 5; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 8 * (3 + i), "call %d", i);
    }
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(recorded, gradients_that_change_between_calls_are_seen) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = filled(2, 1)};
    must(eddy_requires_grad_set(c.state, true));
    eddy_recorded *recorded = eddy_recorded_create(goes_back, &c, 0, NULL);
    double kept = 0;
    for (int i = 1; i <= 12; i++) {
        /* Zeroed outside in the first calls, and then at some. */
        if (i < 5 || i == 8 || i == 11) {
            must(eddy_grads_zero(EDDY_LIST(c.state)));
            kept = 0;
        }
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, i)), (eddy_scalars){0}, NULL));
        kept += 8 * i;
        cr_assert_eq(sum_of(eddy_grad_of(c.state)), kept, "call %d", i);
    }
    cr_assert_lt(c.calls, 12);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static eddy_status takes_own_gradient(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    call->outputs[0] = eddy_mul(eddy_grad_of(c->state), call->inputs.items[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(recorded, a_gradient_of_another_pass_is_read_anew) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = filled(2, 1)};
    must(eddy_requires_grad_set(c.state, true));
    eddy_recorded *recorded = eddy_recorded_create(takes_own_gradient, &c, 1, NULL);
    for (int i = 1; i <= 6; i++) {
        must(eddy_grads_zero(EDDY_LIST(c.state)));
        must(eddy_backward(eddy_sum(eddy_mul(c.state, filled(2, i)), EDDY_ALL_AXES, NULL)));
        eddy_no_grad_begin();
        eddy_tensor *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(filled(2, 2)), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 8 * 2 * i);
        eddy_no_grad_end();
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static eddy_status fills(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] =
        eddy_add(call->inputs.items[0], eddy_full(EDDY_SHAPE(4), call->scalars[0], EDDY_F32, NULL));
    return EDDY_OK;
}

static eddy_status nests(void *context, eddy_recorded_call *call) {
    return eddy_recorded_run(context, call->inputs,
                             (eddy_scalars){call->scalars, call->scalar_count}, call->outputs);
}

Test(recorded, numbers_reach_what_prepares_and_what_is_nested) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *full = eddy_recorded_create(fills, &c, 1, NULL),
                  *inner = eddy_recorded_create(scale, &c, 1, NULL),
                  *outer = eddy_recorded_create(nests, inner, 1, NULL);
    for (int i = 1; i <= 5; i++) {
        eddy_tensor *y;
        must(eddy_recorded_run(full, EDDY_LIST(filled(2, 1)), EDDY_SCALARS(EDDY_S(i)), &y));
        cr_assert_eq(sum_of(y), 8 * (1 + i));
        must(eddy_recorded_run(outer, EDDY_LIST(filled(2, 1)), EDDY_SCALARS(EDDY_S(i), EDDY_S(1)),
                               &y));
        cr_assert_eq(sum_of(y), 8 * (i + 1));
    }
    expect_explained(outer, "ran 2 times, replayed 3 times");
    eddy_recorded_release(&full);
    eddy_recorded_release(&inner);
    eddy_recorded_release(&outer);
    eddy_scope_end(scope);
}

static void expect_broken(eddy_list inputs, eddy_scalars scalars, const char *message) {
    counted c = {0};
    eddy_error error = {0};
    eddy_recorded *recorded = eddy_recorded_create(scale, &c, 1, NULL);
    eddy_tensor *y = NULL;
    cr_assert_eq(eddy_recorded_run(recorded, inputs, scalars, &y), EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, message);
    cr_assert(y == NULL && c.calls == 0);
    eddy_recorded_release(&recorded);
}

Test(recorded, lists_without_items_are_told) {
    expect_broken((eddy_list){NULL, 2}, (eddy_scalars){0},
                  "recorded_run: the list of inputs has count 2, but its items are NULL");
    expect_broken((eddy_list){0}, (eddy_scalars){NULL, 3},
                  "recorded_run: the list of numbers has count 3, but its items are NULL");
    expect_broken((eddy_list){0}, (eddy_scalars){NULL, -1},
                  "recorded_run: the list of numbers has count -1");
}

/* outputs[1] is what is no tensor. */
static eddy_status leaves(void *context, eddy_recorded_call *call) {
    int kind = *(const int *)context;
    call->outputs[0] = eddy_neg(call->inputs.items[0]);
    call->outputs[1] = kind == 0 ? NULL : kind == 1 ? EDDY_NONE : eddy_clone(call->outputs[0]);
    eddy_tensor *released = kind == 2 ? call->outputs[1] : NULL;
    eddy_release(&released);
    return EDDY_OK;
}

Test(recorded, an_output_that_is_no_tensor_is_refused) {
    static const char *const parts[] = {"the function has left output 1 NULL",
                                        "the function has left output 1 EDDY_NONE", "outputs[1]"};
    for (int kind = 0; kind < 3; kind++)
        for (int wants_gradient = 0; wants_gradient < 2; wants_gradient++) {
            eddy_tensor *y[2] = {NULL}, *x = filled(2, 1);
            eddy_error error = {0};
            eddy_requires_grad_set(x, wants_gradient);
            eddy_recorded *recorded = eddy_recorded_create(leaves, &kind, 2, NULL);
            for (int i = 0; i < 3; i++) {
                cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, y),
                             EDDY_INVALID_ARGUMENT);
                eddy_error_take(&error);
                cr_assert_not_null(strstr(error.message, parts[kind]), "%s", error.message);
            }
            cr_assert(!y[0] && !y[1]);
            eddy_recorded_release(&recorded);
        }
}
