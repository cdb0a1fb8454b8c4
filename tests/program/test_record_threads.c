/* What other threads do with a recording's tensors while it is open: what is refused, and what never is. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(2, 3), EDDY_S(value), EDDY_F32, NULL);
}

/* ---- what another thread does, from its begin to its end within one line of the test ---- */

static void *writes(void *tensor) {
    eddy_tensor *sevens = filled(7);
    bool is_ok = eddy_copy_into(sevens, tensor) == EDDY_OK;
    eddy_release(&sevens);
    return is_ok ? tensor : NULL;
}

static void *writes_a_view(void *tensor) {
    eddy_tensor *row = eddy_select(tensor, 0, 1);
    bool is_ok = row && eddy_relu_inplace(row) == EDDY_OK;
    eddy_release(&row);
    return is_ok ? tensor : NULL;
}

static void *maps(void *tensor) {
    float *data = eddy_map(tensor, EDDY_WRITE, EDDY_FOREVER);
    if (data)
        data[0] = 5;
    return eddy_unmap(tensor) == EDDY_OK ? tensor : NULL;
}

static void *reads(void *tensor) {
    eddy_tensor *sum = eddy_sum(tensor, EDDY_ALL_AXES, NULL);
    eddy_item_f64(sum, NULL);
    eddy_release(&sum);
    const void *data = eddy_map(tensor, EDDY_READ, EDDY_FOREVER);
    return data && eddy_unmap(tensor) == EDDY_OK ? tensor : NULL;
}

static void *runs(void *program) {
    return eddy_program_run(program, (eddy_list){0}, NULL) == EDDY_OK ? program : NULL;
}

static void elsewhere(void *(*what)(void *), void *context) {
    pthread_t thread;
    void *result = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, what, context), 0);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cr_assert_not_null(result);
}

static void expect_refused(const char *sentence) {
    eddy_error error = {0};
    cr_assert_null(eddy_record_end(NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED, "%s", error.message);
    cr_assert_not_null(strstr(error.message, sentence), "%s", error.message);
}

static void expect_program(void) {
    eddy_program *program = eddy_record_end(NULL);
    must(program ? EDDY_OK : EDDY_UNSUPPORTED);
    eddy_program_release(&program);
}

/* ---- a recording ---- */

Test(record_threads, a_write_between_two_recorded_uses_is_refused) {
    void *(*const all[])(void *) = {writes, writes_a_view, maps};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1);
    for (int i = 0; i < 3; i++) {
        must(eddy_record_begin(NULL));
        eddy_tensor *y = eddy_mul(x, x);
        elsewhere(all[i], x);
        eddy_neg(y); /* a use of other tensors only */
        eddy_add(y, x);
        eddy_sub(y, x); /* the first that notices is named */
        expect_refused("add cannot be part of a program: another thread has written its operand "
                       "f32[2, 3] since mul used it");
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(record_threads, a_write_to_a_result_of_the_recording_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(-1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_relu(x);
    must(eddy_add_into(x, y, y)); /* its own */
    elsewhere(writes, y);
    cr_assert_eq(sum_of(y), 42, "calls still see what happens");
    expect_refused("sum cannot be part of a program: another thread has written its operand "
                   "f32[2, 3] since relu used it");
    eddy_scope_end(scope);
}

Test(record_threads, a_run_of_a_program_is_a_write_too) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *total = filled(0);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(total, x, total));
    eddy_program *program = eddy_record_end(NULL);
    must(program ? EDDY_OK : EDDY_UNSUPPORTED);
    must(eddy_record_begin(NULL));
    eddy_neg(total);
    elsewhere(runs, program);
    eddy_neg(x);
    eddy_neg(total);
    expect_refused("another thread has written its operand f32[2, 3] since neg used it");
    cr_assert_eq(sum_of(total), 12);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* A run is one instruction: such a write is before it or behind it, as it was before or behind the calls. */
Test(record_threads, writes_before_the_first_use_and_after_the_last_are_harmless) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *other = filled(2);
    must(eddy_record_begin(NULL));
    eddy_neg(other);
    elsewhere(writes, x);
    eddy_tensor *y = eddy_neg(x);
    elsewhere(writes, other);
    elsewhere(writes, x);
    elsewhere(writes, y);
    expect_program();
    eddy_scope_end(scope);
}

Test(record_threads, reads_and_other_tensors_are_harmless) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *other = filled(2);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_neg(x);
    elsewhere(reads, x);
    elsewhere(reads, y);
    elsewhere(writes, other);
    must(eddy_add_into(x, y, x));
    elsewhere(reads, x);
    eddy_add(x, y);
    expect_program();
    eddy_scope_end(scope);
}

/* Its own writes, by every door that is open to it, and numbers that are used anew. */
Test(record_threads, the_recording_thread_never_disturbs_itself) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *w = filled(1), *momentum = filled(0), *half;
    eddy_requires_grad_set(w, true);
    half = eddy_cast(filled(1), EDDY_F16);
    must(eddy_record_begin(NULL));
    for (int i = 0; i < 4; i++) {
        eddy_scope *inner = eddy_scope_begin();
        must(eddy_backward(eddy_mean(eddy_square(eddy_mul(x, w)), EDDY_ALL_AXES, NULL)));
        must(eddy_sgd_momentum_step(EDDY_LIST(w), EDDY_LIST(eddy_grad_of(w)), EDDY_LIST(momentum),
                                    EDDY_S(0.1), EDDY_S(0.5), NULL));
        must(eddy_add_into(half, half, half));
        eddy_add(x, half); /* through a cast */
        must(eddy_copy_into(eddy_select(x, 0, 0), eddy_select(x, 0, 1)));
        must(eddy_relu_inplace(eddy_t(x)));
        must(eddy_add_into(eddy_select(x, 0, 0), x, momentum)); /* broadcast */
        if (i == 1)
            eddy_grads_zero(EDDY_LIST(w));
        for (int k = 0; k < 100; k++) {
            eddy_tensor *t = eddy_neg(x);
            must(eddy_relu_inplace(t));
            must(eddy_add_into(t, t, t));
            eddy_release(&t);
        }
        sum_of(x);
        eddy_scope_end(inner);
    }
    expect_program();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- draws ---- */

static eddy_tensor *dropped(eddy_tensor *x) {
    return eddy_dropout(x, EDDY_S(0.5),
                        EDDY_OPTIONS(dropout, .generator = eddy_generator_default()));
}

/* The default generator is that of the thread that runs. */
static void *draws(void *program) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, NULL), *y;
    must(eddy_seed(11));
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    must(eddy_seed(11));
    must_have_same_bits(y, dropped(x), "drawn");
    eddy_scope_end(scope);
    return program;
}

Test(record_threads, draws_are_those_of_the_thread_that_runs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = dropped(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    elsewhere(draws, program);
    draws(program);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- a recorded function ---- */

typedef struct disturbed {
    eddy_tensor *w;
    int calls, until; /* disturbed in so many of the first calls */
} disturbed;

static eddy_status use_twice(void *context, eddy_recorded_call *call) {
    disturbed *d = context;
    eddy_tensor *y = eddy_mul(call->inputs.items[0], d->w);
    if (d->calls++ < d->until)
        elsewhere(writes, d->w);
    call->outputs[0] = eddy_add(y, d->w);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static void call(eddy_recorded *recorded, double value, double expected) {
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(filled(value)), (eddy_scalars){0}, &y));
    cr_assert_eq(sum_of(y), expected);
}

Test(record_threads, a_disturbed_function_is_recorded_anew) {
    eddy_scope *scope = eddy_scope_begin();
    disturbed d = {.w = filled(7), .until = 2};
    eddy_recorded *recorded = eddy_recorded_create(use_twice, &d, 1, NULL);
    char text[512];
    for (int i = 0; i < 2; i++) {
        call(recorded, i, 6 * (7 * i + 7));
        eddy_recorded_explain(recorded, text, sizeof(text));
        cr_assert_not_null(strstr(text, "not yet: add cannot be part of a program: another thread "
                                        "has written its operand f32[2, 3] since mul used it"),
                           "%s", text);
    }
    for (int i = 2; i < 7; i++)
        call(recorded, i, 6 * (7 * i + 7));
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_str_eq(text, "(f32[2, 3]): ran 4 times, replayed 3 times\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Between two recordings of which the first was fine. */
Test(record_threads, a_function_that_is_always_disturbed_just_runs) {
    eddy_scope *scope = eddy_scope_begin();
    disturbed d = {.w = filled(7)};
    eddy_recorded *recorded = eddy_recorded_create(use_twice, &d, 1, NULL);
    char text[512];
    call(recorded, 1, 84);
    d.until = 100;
    for (int i = 0; i < 12; i++)
        call(recorded, i, 6 * (7 * i + 7));
    cr_assert_eq(d.calls, 13);
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, "ran 13 times, replayed 0 times; not replayed: add cannot be"),
                       "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

#define CALLERS 4

static eddy_status doubles(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = eddy_mul_s(call->inputs.items[0], EDDY_S(2));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static void *call_four_sizes(void *context) {
    for (int i = 0; i < 500; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t size = 2 + i * i % 7 % 4;
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(size), EDDY_F32, NULL), *y;
        must(eddy_recorded_run(context, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), 2.0 * (double)size);
        eddy_scope_end(scope);
    }
    return NULL;
}

/* What a recording is compared with may be gone once it has been. */
Test(record_threads, programs_that_another_thread_drops_are_recorded_anew) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[CALLERS];
        eddy_recorded *recorded = eddy_recorded_create(
            doubles, NULL, 1, EDDY_OPTIONS(recorded, .most_bytes = round % 2 ? 1 : 10000));
        for (int i = 0; i < CALLERS; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, call_four_sizes, recorded), 0);
        for (int i = 0; i < CALLERS; i++)
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        eddy_recorded_release(&recorded);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- callbacks ---- */

static _Atomic int begun_count;

static void begins(void *tensor, const void *data, int64_t bytes, const eddy_error *error) {
    (void)data;
    (void)bytes;
    (void)error;
    eddy_scope *scope = eddy_scope_begin();
    if (eddy_record_begin(NULL) == EDDY_OK && eddy_relu(tensor))
        begun_count++;
    eddy_scope_end(scope);
}

/* On the thread of callbacks, and in one-thread mode on this one. */
Test(record_threads, a_recording_ends_with_the_callback_that_leaves_it_open) {
    for (int way = 0; way < 2; way++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2, .uses_one_thread = way == 1));
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = filled(1);
        begun_count = 0;
        for (int i = 0; i < 3; i++)
            must(eddy_read_async(x, begins, x));
        must(eddy_sync(EDDY_FOREVER));
        must(eddy_sync_deleters(EDDY_FOREVER));
        cr_assert_eq(begun_count, 3);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}
