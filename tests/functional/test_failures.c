/* Functions that return a status return their own, also where an older error, which nobody has taken, is what the slot holds; and what
 * they return is what they record. Ops are looked at in test_op_errors.c in the same way. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

/* What the rows below fail with. */
static eddy_tensor *x;       /* f32[2, 3], requires no gradient */
static eddy_tensor *leaf;    /* f32[2, 3], requires one */
static eddy_tensor *doomed;  /* its op fails late: OUT_OF_RANGE */
static eddy_tensor *unknown; /* the same, of a shape that nobody will know */
static eddy_tensor *orphan;  /* its runtime is shut down */
static eddy_runtime *dead;

static const char *const one_name[] = {"a"};
static const char *const path = "/nonexistent/folder/file";
static double f64;
static int64_t i64;
static uint64_t seed, counter;
static eddy_tensor *results[4];

/* ---- custom functions ---- */

static eddy_status forward(eddy_forward_call *call) {
    call->outputs[0] = eddy_mul_s(call->inputs[0], EDDY_S(2));
    return EDDY_OK;
}

static eddy_status forward_gone(eddy_forward_call *call) {
    call->outputs[0] = eddy_matmul(x, x); /* shapes do not fit: NULL */
    return EDDY_OK;
}

static eddy_status forward_none(eddy_forward_call *call) {
    (void)call;
    return EDDY_OK;
}

static eddy_status forward_refuses(eddy_forward_call *call) {
    (void)call;
    return EDDY_OUT_OF_RANGE;
}

static eddy_status backward_shape(eddy_backward_call *call) {
    call->results[0] = eddy_ones(EDDY_SHAPE(5), EDDY_F32, NULL); /* of no shape that fits */
    return EDDY_OK;
}

static eddy_status backward_refuses(eddy_backward_call *call) {
    (void)call;
    return EDDY_UNSUPPORTED;
}

static eddy_status go_back(eddy_status (*f)(eddy_forward_call *),
                           eddy_status (*b)(eddy_backward_call *)) {
    const eddy_function function = {
        .size = sizeof(function), .name = "user.f", .output_count = 1, .forward = f, .backward = b};
    eddy_tensor *y = NULL;
    eddy_status status = eddy_function_call(&function, NULL, EDDY_LIST(leaf), &y);
    return status == EDDY_OK ? eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)) : status;
}

static eddy_tensor *hook(void *context, eddy_tensor *gradient) {
    (void)context;
    (void)gradient;
    return eddy_ones(EDDY_SHAPE(7), EDDY_F32, NULL);
}

static eddy_status go_back_hooked(void) {
    eddy_tensor *mine = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_requires_grad_set(mine, true);
    eddy_grad_hook_add(mine, hook, NULL, NULL);
    return eddy_backward(eddy_sum(mine, EDDY_ALL_AXES, NULL));
}

/* ---- branches and loops ---- */

static eddy_tensor *one_bool(void) {
    return eddy_full(EDDY_SHAPE(1), EDDY_S(1), EDDY_BOOL, NULL);
}

static eddy_tensor *doomed_bool(void) {
    return eddy_gt_s(eddy_sum(doomed, EDDY_ALL_AXES, NULL), EDDY_S(0));
}

static eddy_status block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_matmul(inputs.items[0], inputs.items[0]); /* shapes do not fit: NULL */
    return outputs[0] ? EDDY_OK : EDDY_SHAPE_MISMATCH;
}

static eddy_status no_block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    (void)inputs;
    (void)outputs;
    return EDDY_UNSUPPORTED;
}

static eddy_status true_block(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    (void)inputs;
    outputs[0] = one_bool();
    return EDDY_OK;
}

/* ---- calls of a runtime that is gone ---- */

static eddy_status record(void) {
    return eddy_record_begin(NULL);
}

static eddy_status in_dead(eddy_status (*function)(void)) {
    cr_assert_eq(eddy_runtime_use(dead), EDDY_OK);
    eddy_status status = function();
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    return status;
}

static eddy_status sync_all(void) {
    return eddy_sync(EDDY_FOREVER);
}

static eddy_status sync_deleters(void) {
    return eddy_sync_deleters(EDDY_FOREVER);
}

static eddy_status new_seed(void) {
    return eddy_seed(1);
}

static eddy_status counters(void) {
    eddy_counters counted = {.size = sizeof(counted)};
    return eddy_counters_read(&counted);
}

static eddy_status late_sync(void) {
    eddy_index_select(x, eddy_full(EDDY_SHAPE(1), EDDY_S(99), EDDY_I64, NULL), 0);
    return eddy_sync(EDDY_FOREVER);
}

static void nothing(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context;
    (void)data;
    (void)bytes;
    (void)error;
}

/* ---- the rows ---- */

/* clang-format off */
#define ROWS(row) \
    row(eddy_backward(x)) \
    row(eddy_backward(unknown)) \
    row(eddy_backward(NULL)) \
    row(eddy_backward_from(EDDY_LIST(leaf), EDDY_LIST(x, x), NULL)) \
    row(eddy_backward_from(EDDY_LIST(leaf), (eddy_list){0}, NULL)) \
    row(eddy_backward_from(EDDY_LIST(leaf), EDDY_LIST(unknown), NULL)) \
    row(eddy_backward_to(EDDY_LIST(leaf), EDDY_LIST(x), EDDY_LIST(x), NULL, results)) \
    row(eddy_backward_to(EDDY_LIST(leaf), (eddy_list){0}, EDDY_LIST(x), NULL, results)) \
    row(go_back(forward, backward_shape)) \
    row(go_back(forward, backward_refuses)) \
    row(go_back(forward_gone, backward_shape)) \
    row(go_back(forward_none, backward_shape)) \
    row(go_back(forward_refuses, backward_shape)) \
    row(go_back_hooked()) \
    row(eddy_function_call(NULL, NULL, EDDY_LIST(x), results)) \
    row(eddy_forward_save(NULL, EDDY_LIST(x))) \
    row(eddy_requires_grad_set(eddy_ones(EDDY_SHAPE(1), EDDY_I64, NULL), true)) \
    row(eddy_requires_grad_set(unknown, true)) \
    row(eddy_grad_keep(x)) \
    row(eddy_grads_zero(EDDY_LIST(leaf, x))) \
    row(eddy_grads_of(EDDY_LIST(leaf, x), results)) \
    row(eddy_grad_hook_add(x, hook, NULL, NULL)) \
    row(eddy_grad_hook_add(leaf, NULL, NULL, NULL)) \
    row(in_dead(sync_all)) \
    row(in_dead(sync_deleters)) \
    row(in_dead(new_seed)) \
    row(in_dead(eddy_dump)) \
    row(in_dead(counters)) \
    row(eddy_counters_read(NULL)) \
    row(late_sync()) \
    row(eddy_runtime_shutdown(NULL, 0)) \
    row(eddy_recover(EDDY_LIST(orphan))) \
    row(in_dead(record)) \
    row(eddy_record_begin(EDDY_OPTIONS(record, .passes = "nosuch"))) \
    row(eddy_program_run(NULL, EDDY_LIST(x), results)) \
    row(eddy_program_run_into(NULL, EDDY_LIST(x), EDDY_LIST(x))) \
    row(eddy_cond(x, block, block, NULL, EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_cond(doomed_bool(), block, block, NULL, EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_cond(one_bool(), block, block, NULL, EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_cond(one_bool(), no_block, block, NULL, EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_scan(NULL, NULL, EDDY_LIST(x), EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_scan(no_block, NULL, EDDY_LIST(x), EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_scan(block, NULL, EDDY_LIST(x), EDDY_LIST(x), 1, NULL, results)) \
    row(eddy_while(no_block, block, NULL, EDDY_LIST(x), NULL, results)) \
    row(eddy_while(true_block, block, NULL, EDDY_LIST(x), NULL, results)) \
    row(eddy_while(true_block, no_block, NULL, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 2), results)) \
    row(eddy_recorded_run(NULL, EDDY_LIST(x), (eddy_scalars){0}, results)) \
    row(eddy_program_run_named(NULL, (eddy_feeds){0}, (eddy_fetches){0}, NULL)) \
    row(eddy_output_ring_run(NULL, EDDY_LIST(x), results)) \
    row(eddy_program_prepare(NULL, NULL, 0)) \
    row(eddy_program_run_batches(NULL, EDDY_LIST(x), results)) \
    row(eddy_program_describe(NULL, NULL)) \
    row(eddy_tensor_store_set(NULL, "x", x)) \
    row(eddy_tensor_store_remove(NULL, "x")) \
    row(eddy_program_binding_describe(NULL, 0, NULL)) \
    row(eddy_program_print(NULL, stderr, NULL)) \
    row(eddy_program_save(NULL, "program")) \
    row(eddy_recover(EDDY_LIST(x, orphan))) \
    row(eddy_recover((eddy_list){ .count = -1})) \
    row(eddy_read(x, &f64, 1, NULL)) \
    row(eddy_read(doomed, results, 8, NULL)) \
    row(eddy_read(unknown, results, 8, NULL)) \
    row(eddy_read(orphan, results, 8, NULL)) \
    row(eddy_read_as(x, EDDY_F64, results, 1, NULL)) \
    row(eddy_read_as(unknown, EDDY_F64, results, 8, NULL)) \
    row(eddy_read_f64(x, &f64, NULL)) \
    row(eddy_read_i64(x, &i64, NULL)) \
    row(eddy_wait(doomed, EDDY_FOREVER)) \
    row(eddy_wait(unknown, EDDY_FOREVER)) \
    row(eddy_wait(orphan, 0)) \
    row(eddy_error_of(orphan, 0, NULL)) \
    row(eddy_unmap(x)) \
    row(eddy_lend_begin(x, EDDY_READ, 0, NULL)) \
    row(eddy_lend_end(x)) \
    row(eddy_range_push(NULL)) \
    row(eddy_range_pop()) \
    row(eddy_trace_start(NULL, NULL)) \
    row(eddy_log_levels_set("vm:9")) \
    row((eddy_trace_start("/dev/full", NULL), eddy_trace_stop(EDDY_FOREVER))) \
    row(eddy_strides_of(unknown, &i64)) \
    row(eddy_strides_of(x, NULL)) \
    row(eddy_print(doomed, stdout)) \
    row(eddy_print(unknown, stdout)) \
    row(eddy_read_async(x, NULL, NULL)) \
    row(eddy_read_async(orphan, nothing, NULL)) \
    row(eddy_access_async(x, 8, NULL, NULL)) \
    row(eddy_npy_save(unknown, path, NULL)) \
    row(eddy_npy_save(x, NULL, NULL)) \
    row(eddy_npz_save(EDDY_LIST(unknown), one_name, path, NULL)) \
    row(eddy_npz_save(EDDY_LIST(x), NULL, path, NULL)) \
    row(eddy_safetensors_save(EDDY_LIST(unknown), one_name, path, NULL)) \
    row(eddy_safetensors_save(EDDY_LIST(x, x), (const char *[]){"a", "a"}, path, NULL)) \
    row(eddy_archive_copy_into(NULL, one_name, EDDY_LIST(x))) \
    row(eddy_split(unknown, 1, 0, results, 4, NULL)) \
    row(eddy_split(x, 0, 0, results, 4, NULL)) \
    row(eddy_split_sizes(x, &i64, 1, 0, results)) \
    row(eddy_chunk(x, 0, 0, results, 4, NULL)) \
    row(eddy_meshgrid(EDDY_LIST(x, x), EDDY_INDEXING_IJ, results)) \
    row(eddy_call("no.such", EDDY_LIST(x), NULL, results)) \
    row(eddy_call("matmul", EDDY_LIST(x, x), NULL, results)) \
    row(eddy_call("matmul", EDDY_LIST(x, unknown), NULL, results)) \
    row(eddy_call("einsum", EDDY_LIST(x, unknown), EDDY_ATTRIBUTES({"equation", EDDY_ATTRIBUTE_TEXT, {.text = "ij,k->i"}}), results)) \
    row(eddy_call("prelu", EDDY_LIST(x, unknown), NULL, results)) \
    row(eddy_add_inplace(leaf, x)) \
    row(eddy_copy_into(x, orphan)) \
    row(eddy_op_register(NULL)) \
    row(eddy_device_parse("tpu", &(eddy_device){0})) \
    row(eddy_device_scope_begin(EDDY_CUDA(99))) \
    row(eddy_device_describe(EDDY_CUDA(99), &(eddy_device_info){.size = 0})) \
    row(eddy_device_memory_read(EDDY_CUDA(99), &(eddy_device_memory){.size = 0})) \
    row(eddy_device_memory_limit_set(EDDY_CPU, -1)) \
    row(eddy_device_memory_snapshot(EDDY_CPU, NULL)) \
    row(eddy_stream_wait(NULL, NULL)) \
    row(eddy_event_wait(NULL, 0)) \
    row(eddy_generator_state(NULL, &seed, &counter)) \
    row(eddy_generator_restore(NULL, 0, 0))
/* clang-format on */

static void set_up(void) {
    dead = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
    cr_assert_eq(eddy_runtime_use(dead), EDDY_OK);
    orphan = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    cr_assert_eq(eddy_runtime_shutdown(dead, EDDY_FOREVER), EDDY_OK);
    x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    leaf = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    cr_assert_eq(eddy_requires_grad_set(leaf, true), EDDY_OK);
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(1), EDDY_S(99), EDDY_I64, NULL);
    doomed = eddy_index_select(x, beyond, 0);
    unknown = eddy_nonzero(doomed);
    cr_assert_eq(eddy_wait(doomed, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_RANGE);
}

#define TRY(expression)                                                                            \
    {                                                                                              \
        eddy_status status = expression;                                                           \
        eddy_status recorded = eddy_error_take(NULL);                                              \
        cr_expect_neq(status, EDDY_OK, "%s is to fail", #expression);                              \
        cr_expect_eq(recorded, status, "%s returns %s and records %s", #expression,                \
                     eddy_status_name(status), eddy_status_name(recorded));                        \
        cr_assert_null(eddy_npy_load(path));                                                       \
        eddy_status again = expression;                                                            \
        cr_expect_eq(again, status, "%s: %s, but %s where an older error is untaken", #expression, \
                     eddy_status_name(status), eddy_status_name(again));                           \
        cr_expect_eq(eddy_error_take(NULL), EDDY_IO, "the older one stays");                       \
    }

Test(failures, every_function_returns_its_own_status) {
    set_up();
    eddy_scope *scope = eddy_scope_begin();
    ROWS(TRY)
    eddy_scope_end(scope);
}

static eddy_status negate(eddy_forward_call *call) {
    call->outputs[0] = eddy_neg(call->inputs[0]);
    return EDDY_OK;
}

static eddy_status negate_back(eddy_backward_call *call) {
    call->results[0] = eddy_neg(call->grads[0]);
    return EDDY_OK;
}

#define EXPECT_NULL_NAMED(name, expression)                                                        \
    {                                                                                              \
        cr_expect_eq(expression, EDDY_INVALID_ARGUMENT, "%s", #expression);                        \
        eddy_error error = {0};                                                                    \
        eddy_error_take(&error);                                                                   \
        cr_expect_not_null(strstr(error.message, name " is NULL"), "%s: %s", #expression,          \
                           error.message);                                                         \
    }

Test(failures, a_place_for_a_result_that_is_null_is_named) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL),
                *one = eddy_sum(t, EDDY_ALL_AXES, NULL), *a, *b;
    EXPECT_NULL_NAMED("values", eddy_sort(t, 0, NULL, NULL, &b))
    EXPECT_NULL_NAMED("indices", eddy_sort(t, 0, NULL, &a, NULL))
    EXPECT_NULL_NAMED("values", eddy_topk(t, 1, 0, NULL, NULL, NULL))
    EXPECT_NULL_NAMED("indices", eddy_max_dim(t, 0, NULL, &a, NULL))
    EXPECT_NULL_NAMED("values", eddy_min_dim(t, 0, NULL, NULL, &b))
    EXPECT_NULL_NAMED("counts", eddy_unique_counts(t, &a, &b, NULL))
    EXPECT_NULL_NAMED("value", eddy_read_f64(one, NULL, NULL))
    EXPECT_NULL_NAMED("value", eddy_read_i64(one, NULL, NULL))
    EXPECT_NULL_NAMED("the buffer", eddy_read(t, NULL, 16, NULL))
    EXPECT_NULL_NAMED("outputs",
                      eddy_meshgrid(EDDY_LIST(eddy_select(t, 0, 0)), EDDY_INDEXING_IJ, NULL))
    EXPECT_NULL_NAMED("outputs", eddy_split_sizes(t, (const int64_t[]){1, 1}, 2, 0, NULL))
    eddy_function function = {.size = sizeof(function),
                              .name = "f",
                              .output_count = 1,
                              .forward = negate,
                              .backward = negate_back};
    EXPECT_NULL_NAMED("outputs", eddy_function_call(&function, NULL, EDDY_LIST(t), NULL))
    eddy_scope_end(scope);
    cr_expect_eq(eddy_live_count(), 0);
}

/* Of a broadcast view that no kernel could go through, whose sizes would not fit into 63 bits. */
Test(failures, operands_beyond_any_memory_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t n = (INT64_C(1) << 56) + 1;
    eddy_tensor *one = eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL);
    eddy_tensor *line = eddy_expand(one, EDDY_SHAPE(n)), *row = eddy_expand(one, EDDY_SHAPE(1, n)),
                *column = eddy_expand(one, EDDY_SHAPE(n, 1)), *values, *indices;
    cr_assert_not_null(column);
    eddy_error error = {0};
#define EXPECT_REFUSED(expression)                                                                 \
    cr_expect(!(expression), "%s", #expression);                                                   \
    cr_expect_eq(eddy_error_take(&error), EDDY_SIZE_OVERFLOW, "%s: %s", #expression, error.message);
    EXPECT_REFUSED(eddy_matmul(row, column))
    EXPECT_REFUSED(eddy_linear(row, row, EDDY_NONE))
    EXPECT_REFUSED(eddy_unique(line))
    EXPECT_REFUSED(eddy_equal(line, line))
    EXPECT_REFUSED(eddy_sum(line, EDDY_ALL_AXES, NULL))
    EXPECT_REFUSED(eddy_topk(line, 1, 0, NULL, &values, &indices) == EDDY_OK)
    /* Their shapes are no elements: views, and what is made like them but smaller. */
    cr_expect_eq(eddy_count_of(eddy_narrow(line, 0, 5, 3)), 3);
    eddy_scope_end(scope);
    cr_expect_eq(eddy_live_count(), 0);
}
