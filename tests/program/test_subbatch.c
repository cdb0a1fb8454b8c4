/* The pass `subbatch`: gradients of weights are added up over a few items of a batch at a time. Numbers are small integers, so that sums are exact in any order, and all bits those of
 * the calls. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/parts.h>
#include <tests/program/taped.h>
#include <tests/program/texts.h>
#include <unistd.h>

#define PASSES "all,subbatch"

/* From -2 to 2. */
static eddy_tensor *integers(eddy_shape shape, eddy_dtype dtype, int seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + 7 * count), EDDY_S(7), EDDY_I64, NULL);
    all = eddy_sub_s(
        eddy_remainder_s(eddy_remainder_s(eddy_mul(all, all), EDDY_S(1009)), EDDY_S(5)), EDDY_S(2));
    return eddy_reshape(eddy_cast(all, dtype), shape);
}

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

static eddy_tensor *convolve(eddy_tensor *x, eddy_tensor *w) {
    return eddy_conv2d(x, w, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
}

/* ---- a network ---- */

#define PARAMS 6

/* Two convolutions and a linear layer, each with its bias. */
typedef struct net {
    eddy_tensor *x, *params[PARAMS];
} net;

static net make_net(int64_t images) {
    net n = {.x = integers(EDDY_SHAPE(images, 8, 16, 16), EDDY_F32, 1)};
    const eddy_shape shapes[PARAMS] = {EDDY_SHAPE(16, 8, 3, 3),  EDDY_SHAPE(16),
                                       EDDY_SHAPE(8, 16, 3, 3),  EDDY_SHAPE(8),
                                       EDDY_SHAPE(4, 8 * 8 * 8), EDDY_SHAPE(4)};
    for (int i = 0; i < PARAMS; i++)
        n.params[i] = leaf(integers(shapes[i], EDDY_F32, i + 2));
    return n;
}

/* Three linear layers, which need no workspace: how much a convolution needs is the processor's affair. */
static net make_dense_net(int64_t items) {
    net n = {.x = integers(EDDY_SHAPE(items, 16), EDDY_F32, 1)};
    const eddy_shape shapes[PARAMS] = {EDDY_SHAPE(64, 16), EDDY_SHAPE(64),    EDDY_SHAPE(64, 64),
                                       EDDY_SHAPE(64),     EDDY_SHAPE(4, 64), EDDY_SHAPE(4)};
    for (int i = 0; i < PARAMS; i++)
        n.params[i] = leaf(integers(shapes[i], EDDY_F32, i + 2));
    return n;
}

static eddy_tensor *dense_logits_of(const net *n) {
    eddy_tensor *h = eddy_relu(eddy_linear(n->x, n->params[0], n->params[1]));
    h = eddy_relu(eddy_linear(h, n->params[2], n->params[3]));
    return eddy_linear(h, n->params[4], n->params[5]);
}

static eddy_tensor *logits_of(const net *n) {
    if (eddy_rank_of(n->x) == 2)
        return dense_logits_of(n);
    eddy_tensor *h = eddy_relu(
        eddy_conv2d(n->x, n->params[0], n->params[1], EDDY_OPTIONS(conv2d, .padding = {1, 1})));
    h = eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL);
    h = eddy_relu(
        eddy_conv2d(h, n->params[2], n->params[3], EDDY_OPTIONS(conv2d, .padding = {1, 1})));
    return eddy_linear(eddy_flatten(h, 1, 3), n->params[4], n->params[5]);
}

/* With a seed that needs all items, as the gradient of a loss does. */
static void gradients_of(const net *n, eddy_tensor **grads) {
    eddy_tensor *logits = logits_of(n);
    eddy_tensor *most = eddy_max(logits, EDDY_ALL_AXES, NULL),
                *seed = eddy_add_s(eddy_cast(eddy_eq(logits, most), EDDY_F32), EDDY_S(1));
    must(eddy_backward_to(EDDY_LIST(logits), (eddy_list){(eddy_tensor **)n->params, PARAMS},
                          EDDY_LIST(eddy_detach(seed)), NULL, grads));
}

static eddy_program *record(const net *n, const char *passes, eddy_tensor **grads) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    gradients_of(n, grads);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", n->x, EDDY_ROLE_INPUT}, {"a", grads[0], EDDY_ROLE_OUTPUT},
                      {"b", grads[1], EDDY_ROLE_OUTPUT}, {"c", grads[2], EDDY_ROLE_OUTPUT},
                      {"d", grads[3], EDDY_ROLE_OUTPUT}, {"e", grads[4], EDDY_ROLE_OUTPUT},
                      {"f", grads[5], EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static void must_give(eddy_program *program, const net *n, eddy_tensor **grads) {
    eddy_tensor *out[PARAMS];
    must(eddy_program_run(program, EDDY_LIST(n->x), out));
    for (int i = 0; i < PARAMS; i++)
        must_have_same_bits(out[i], grads[i], "a run");
}

static void add_up(net n, bool takes_less) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *grads[PARAMS];
    eddy_program *plain = record(&n, "all", grads), *program = record(&n, PASSES, grads);
    eddy_program_info before = info_of(plain), after = info_of(program);
    cr_assert_gt(after.instruction_count, before.instruction_count + 10);
    cr_assert(!takes_less || after.arena_bytes < before.arena_bytes - before.arena_bytes / 8,
              "%lld, %lld", (long long)after.arena_bytes, (long long)before.arena_bytes);
    cr_assert_eq(after.recorded_count, before.recorded_count);
    must_give(program, &n, grads);
    must_give(plain, &n, grads);
    eddy_program_release(&plain);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(subbatch, gradients_of_weights_are_added_up_and_take_less_memory) {
    eddy_scope *scope = eddy_scope_begin();
    add_up(make_net(16), false);
    add_up(make_dense_net(2048), true);
    expect_nothing_left(scope);
}

Test(subbatch, it_is_off_unless_it_is_named) {
    static const char *const passes[] = {NULL, "all", "none", "all,fast"};
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net(16);
    eddy_tensor *grads[PARAMS];
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
        eddy_program *program = record(&n, passes[i], grads);
        eddy_program_info info = info_of(program);
        cr_assert_leq(info.instruction_count, info.recorded_count, "%s", passes[i]);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* ---- text ---- */

/* The text says which sums are added up, so that who reads it, and runs no such pass, computes the same bits. */
Test(subbatch, text_and_files_say_what_is_added_up) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net(16);
    eddy_tensor *grads[PARAMS];
    eddy_program *program = record(&n, PASSES, grads), *loaded;
    char *text = printed_of(program, false), *loaded_text, path[64];
    keep_text(program, "subbatch");
    cr_assert_not_null(strstr(text, "conv2d_backward_weight(%"), "%s", text);
    cr_assert_not_null(strstr(text, "put %"), "%s", text);
    cr_assert_not_null(strstr(text, "= conv2d(x f32[16, 8, 16, 16]"), "%s", text);
    snprintf(path, sizeof(path), "/tmp/eddy-subbatch-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    loaded = eddy_program_load(path);
    unlink(path);
    must(loaded ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(info_of(loaded).instruction_count, info_of(program).instruction_count);
    loaded_text = printed_of(loaded, false);
    must_give(loaded, &n, grads);
    free(text), free(loaded_text);
    eddy_program_release(&program);
    eddy_program_release(&loaded);
    expect_nothing_left(scope);
}

/* Who loads it may run the pass as well. */
Test(subbatch, what_was_loaded_takes_no_more) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net(16);
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = PASSES));
    must(eddy_runtime_use(runtime));
    n = make_net(16);
    eddy_tensor *grads[PARAMS];
    eddy_program *program = record(&n, NULL, grads), *loaded;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-subbatch-twice-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    loaded = eddy_program_load(path);
    unlink(path);
    must(loaded ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_leq(info_of(loaded).arena_bytes, info_of(program).arena_bytes);
    must_give(loaded, &n, grads);
    eddy_program_release(&program);
    eddy_program_release(&loaded);
    eddy_scope_end(scope);
    eddy_runtime_release(&runtime);
}

/* ---- memory ---- */

Test(subbatch, each_allocation_of_the_build_fails) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net(8);
    eddy_tensor *grads[PARAMS];
    int64_t at = 0;
    for (bool has_failed = true; has_failed; at++) {
        eddy_error error = {0};
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES)));
        gradients_of(&n, grads);
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, at, 1);
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT}, {"a", grads[0], EDDY_ROLE_OUTPUT}));
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
        cr_assert_eq(eddy_error_take(&error), program ? EDDY_OK : EDDY_OUT_OF_MEMORY, "%s",
                     error.message);
        cr_assert(program || has_failed);
        if (!program)
            continue;
        eddy_tensor *out;
        cr_assert_gt(info_of(program).instruction_count, info_of(program).recorded_count);
        must(eddy_program_run(program, EDDY_LIST(n.x), &out));
        must_have_same_bits(out, grads[0], "a run");
        eddy_program_release(&program);
        eddy_trim(); /* or the next one is built already */
    }
    cr_assert_gt(at, 20, "%lld", (long long)at);
    expect_nothing_left(scope);
}

/* ---- what others need ---- */

/* The gradient of the images is an output: what leads to it is done for all of them. */
Test(subbatch, what_others_need_stays_whole) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net(16);
    must(eddy_requires_grad_set(n.x, true));
    eddy_tensor *grads[2], *out[2];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES)));
    eddy_tensor *logits = logits_of(&n);
    eddy_tensor *most = eddy_max(logits, EDDY_ALL_AXES, NULL);
    eddy_tensor *seed = eddy_detach(eddy_cast(eddy_ge(logits, most), EDDY_F32));
    must(eddy_backward_to(EDDY_LIST(logits), EDDY_LIST(n.params[0], n.x),
                          EDDY_LIST(eddy_add_s(seed, EDDY_S(1))), NULL, grads));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT},
                                                          {"w", grads[0], EDDY_ROLE_OUTPUT},
                                                          {"dx", grads[1], EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(most_parts_of(program), 1);
    must(eddy_program_run(program, EDDY_LIST(n.x), out));
    must_have_same_bits(out[0], grads[0], "of the weights");
    must_have_same_bits(out[1], grads[1], "of the images");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Of 13 images nothing but 1 or 13 at a time is an equal part. */
Test(subbatch, a_batch_is_cut_into_equal_parts) {
    static const struct {
        int64_t images;
        bool is_split;
    } rows[] = {{1, false}, {6, true},  {10, true}, {13, false},
                {14, true}, {16, true}, {22, true}, {67, false}};
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        net n = make_net(rows[i].images);
        eddy_tensor *grads[PARAMS];
        eddy_program *program = record(&n, PASSES, grads);
        eddy_program_info info = info_of(program);
        cr_assert_eq(info.instruction_count > info.recorded_count, rows[i].is_split, "%lld images",
                     (long long)rows[i].images);
        must_give(program, &n, grads);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* ---- each op ---- */

/* What the gradient g of a layer's result becomes on its way to that of its operand h, or that of a parameter. */
typedef struct op_row {
    const char *name;
    eddy_shape g, h;
    eddy_tensor *(*call)(eddy_tensor *g, eddy_tensor *h);
    bool is_sum; /* over the batch: one of several gradients */
} op_row;

static eddy_tensor *weights_of(eddy_shape shape) {
    return integers(shape, EDDY_F32, 3);
}

static eddy_tensor *conv2d(eddy_tensor *g, eddy_tensor *h) {
    return eddy_add(convolve(g, weights_of(EDDY_SHAPE(4, 4, 3, 3))), h);
}
static eddy_tensor *conv2d_with_bias(eddy_tensor *g, eddy_tensor *h) {
    eddy_tensor *w = weights_of(EDDY_SHAPE(4, 2, 3, 3)), *bias = weights_of(EDDY_SHAPE(4));
    return eddy_add(eddy_conv2d(g, w, bias, EDDY_OPTIONS(conv2d, .padding = {1, 1}, .groups = 2)),
                    h);
}
static eddy_tensor *conv_transpose2d(eddy_tensor *g, eddy_tensor *h) {
    (void)h;
    return eddy_conv_transpose2d(g, weights_of(EDDY_SHAPE(4, 6, 3, 3)), EDDY_NONE, NULL);
}
static eddy_tensor *conv2d_backward_weight(eddy_tensor *g, eddy_tensor *h) {
    return eddy_conv2d_backward_weight(g, h, EDDY_PAIR(3, 3),
                                       EDDY_OPTIONS(conv2d_backward_weight, .padding = {1, 1}));
}
static eddy_tensor *max_pool2d(eddy_tensor *g, eddy_tensor *h) {
    return eddy_max_pool2d(eddy_add(g, h), EDDY_PAIR(2, 2), NULL);
}
static eddy_tensor *max_pool2d_with_indices(eddy_tensor *g, eddy_tensor *h) {
    eddy_tensor *y, *indices;
    must(eddy_max_pool2d_with_indices(eddy_add(g, h), EDDY_PAIR(2, 2), NULL, &y, &indices));
    return eddy_add(y, eddy_cast(indices, EDDY_F32));
}
static eddy_tensor *max_pool2d_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_max_pool2d_backward_from_x(
        g, h, EDDY_PAIR(2, 2), EDDY_OPTIONS(max_pool2d_backward_from_x, .stride = {2, 2}));
}
static eddy_tensor *avg_pool2d(eddy_tensor *g, eddy_tensor *h) {
    return eddy_avg_pool2d(eddy_add(g, h), EDDY_PAIR(2, 2), NULL);
}
static eddy_tensor *avg_pool2d_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_avg_pool2d_backward(g, eddy_shape_of(h), EDDY_PAIR(2, 2),
                                    EDDY_OPTIONS(avg_pool2d_backward, .stride = {2, 2}));
}
static eddy_tensor *adaptive_avg_pool2d(eddy_tensor *g, eddy_tensor *h) {
    return eddy_adaptive_avg_pool2d(eddy_add(g, h), EDDY_PAIR(2, 2));
}
static eddy_tensor *adaptive_avg_pool2d_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_adaptive_avg_pool2d_backward(g, eddy_shape_of(h));
}
static eddy_tensor *interpolate_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_interpolate_backward(g, eddy_shape_of(h), NULL);
}
static eddy_tensor *linear(eddy_tensor *g, eddy_tensor *h) {
    return eddy_add(eddy_linear(g, weights_of(EDDY_SHAPE(8, 8)), weights_of(EDDY_SHAPE(8))), h);
}
static eddy_tensor *matmul(eddy_tensor *g, eddy_tensor *h) {
    return eddy_add(eddy_matmul(g, weights_of(EDDY_SHAPE(8, 8))), h);
}
static eddy_tensor *matmul_of_batches(eddy_tensor *g, eddy_tensor *h) {
    return eddy_matmul(g, eddy_transpose(h, 1, 2));
}
static eddy_tensor *bmm(eddy_tensor *g, eddy_tensor *h) {
    return eddy_bmm(eddy_transpose(g, 1, 2), h);
}
static eddy_tensor *softmax(eddy_tensor *g, eddy_tensor *h) {
    return eddy_softmax(eddy_add(g, h), 1);
}
static eddy_tensor *log_softmax(eddy_tensor *g, eddy_tensor *h) {
    return eddy_log_softmax(eddy_add(g, h), -1);
}
static eddy_tensor *softmax_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_softmax_backward(g, h, 1);
}
static eddy_tensor *log_softmax_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_log_softmax_backward(g, h, -1);
}
static eddy_tensor *layer_norm(eddy_tensor *g, eddy_tensor *h) {
    return eddy_layer_norm(eddy_add(g, h), weights_of(EDDY_SHAPE(8)), weights_of(EDDY_SHAPE(8)), 1,
                           NULL);
}
static eddy_tensor *layer_norm_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_layer_norm_backward(g, h, weights_of(EDDY_SHAPE(8)), 1, NULL);
}
static eddy_tensor *layer_norm_backward_weight(eddy_tensor *g, eddy_tensor *h) {
    return eddy_layer_norm_backward_weight(g, h, 1, NULL);
}
static eddy_tensor *rms_norm(eddy_tensor *g, eddy_tensor *h) {
    return eddy_rms_norm(eddy_add(g, h), weights_of(EDDY_SHAPE(8)), 1, NULL);
}
static eddy_tensor *rms_norm_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_rms_norm_backward(g, h, weights_of(EDDY_SHAPE(8)), 1, NULL);
}
static eddy_tensor *rms_norm_backward_weight(eddy_tensor *g, eddy_tensor *h) {
    return eddy_rms_norm_backward_weight(g, h, 1, NULL);
}
static eddy_tensor *group_norm(eddy_tensor *g, eddy_tensor *h) {
    return eddy_group_norm(eddy_add(g, h), weights_of(EDDY_SHAPE(4)), weights_of(EDDY_SHAPE(4)), 2,
                           NULL);
}
static eddy_tensor *group_norm_backward(eddy_tensor *g, eddy_tensor *h) {
    return eddy_group_norm_backward(g, h, weights_of(EDDY_SHAPE(4)), 2, NULL);
}
static eddy_tensor *group_norm_backward_weight(eddy_tensor *g, eddy_tensor *h) {
    return eddy_group_norm_backward_weight(g, h, 2, NULL);
}
static eddy_tensor *channel_sum(eddy_tensor *g, eddy_tensor *h) {
    return eddy_channel_sum(eddy_mul(g, h));
}
static eddy_tensor *sum_of_rows(eddy_tensor *g, eddy_tensor *h) {
    return eddy_sum(eddy_mul(g, h), EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = true));
}
static eddy_tensor *sum_of_batch(eddy_tensor *g, eddy_tensor *h) {
    return eddy_sum(eddy_mul(g, h), EDDY_AXES(0), NULL);
}
static eddy_tensor *sum_of_all(eddy_tensor *g, eddy_tensor *h) {
    return eddy_sum(eddy_mul(g, h), EDDY_ALL_AXES, NULL);
}
static eddy_tensor *broadcast(eddy_tensor *g, eddy_tensor *h) {
    return eddy_mul(eddy_add(g, weights_of(EDDY_SHAPE(8))),
                    eddy_mul(h, weights_of(EDDY_SHAPE(1, 8))));
}

#define ROWS_2                                                                                     \
    {                                                                                              \
        2, {                                                                                       \
            3072, 8                                                                                \
        }                                                                                          \
    }
#define ROWS_3                                                                                     \
    {                                                                                              \
        3, {                                                                                       \
            3072, 6, 8                                                                             \
        }                                                                                          \
    }
#define IMAGES                                                                                     \
    {                                                                                              \
        4, {                                                                                       \
            48, 4, 8, 8                                                                            \
        }                                                                                          \
    }
#define HALVES                                                                                     \
    {                                                                                              \
        4, {                                                                                       \
            48, 4, 4, 4                                                                            \
        }                                                                                          \
    }

static const op_row op_rows[] = {
    {"conv2d", IMAGES, IMAGES, conv2d, false},
    {"conv2d", IMAGES, IMAGES, conv2d_with_bias, false},
    {"conv_transpose2d", IMAGES, IMAGES, conv_transpose2d, false},
    {"conv2d_backward_weight", IMAGES, IMAGES, conv2d_backward_weight, true},
    {"max_pool2d", IMAGES, IMAGES, max_pool2d, false},
    {"max_pool2d_with_indices", IMAGES, IMAGES, max_pool2d_with_indices, false},
    {"max_pool2d_backward_from_x", HALVES, IMAGES, max_pool2d_backward, false},
    {"avg_pool2d", IMAGES, IMAGES, avg_pool2d, false},
    {"avg_pool2d_backward", HALVES, IMAGES, avg_pool2d_backward, false},
    {"adaptive_avg_pool2d", IMAGES, IMAGES, adaptive_avg_pool2d, false},
    {"adaptive_avg_pool2d_backward", HALVES, IMAGES, adaptive_avg_pool2d_backward, false},
    {"interpolate_backward", IMAGES, HALVES, interpolate_backward, false},
    {"linear", ROWS_2, ROWS_2, linear, false},
    {"linear", ROWS_3, ROWS_3, linear, false},
    {"matmul", ROWS_2, ROWS_2, matmul, false},
    {"matmul", ROWS_3, ROWS_3, matmul, false},
    {"matmul", ROWS_3, ROWS_3, matmul_of_batches, false},
    {"bmm", ROWS_3, ROWS_3, bmm, false},
    {"softmax", ROWS_2, ROWS_2, softmax, false},
    {"softmax", ROWS_3, ROWS_3, softmax, false},
    {"log_softmax", ROWS_2, ROWS_2, log_softmax, false},
    {"softmax_backward", ROWS_3, ROWS_3, softmax_backward, false},
    {"log_softmax_backward", ROWS_2, ROWS_2, log_softmax_backward, false},
    {"layer_norm", ROWS_2, ROWS_2, layer_norm, false},
    {"layer_norm_backward", ROWS_3, ROWS_3, layer_norm_backward, false},
    {"layer_norm_backward_weight", ROWS_3, ROWS_3, layer_norm_backward_weight, true},
    {"rms_norm", ROWS_3, ROWS_3, rms_norm, false},
    {"rms_norm_backward", ROWS_2, ROWS_2, rms_norm_backward, false},
    {"rms_norm_backward_weight", ROWS_2, ROWS_2, rms_norm_backward_weight, true},
    {"group_norm", IMAGES, IMAGES, group_norm, false},
    {"group_norm_backward", IMAGES, IMAGES, group_norm_backward, false},
    {"group_norm_backward_weight", IMAGES, IMAGES, group_norm_backward_weight, true},
    {"channel_sum", IMAGES, IMAGES, channel_sum, true},
    {"sum", ROWS_3, ROWS_3, sum_of_rows, false},
    {"sum", ROWS_3, ROWS_3, sum_of_batch, true},
    {"sum", IMAGES, IMAGES, sum_of_all, true},
    {"mul", ROWS_3, ROWS_3, broadcast, false},
};

#define OP_ROWS (sizeof(op_rows) / sizeof(*op_rows))

/* Whether a line with the op has the size of the batch. */
static bool is_whole_in(const char *text, const op_row *row) {
    char part[64], size[32];
    snprintf(part, sizeof(part), " = %s(", row->name);
    snprintf(size, sizeof(size), "32[%lld", (long long)row->g.dims[0]);
    const char *at = strstr(text, part);
    cr_assert_not_null(at, "%s\n%s", row->name, text);
    const char *found = strstr(at, size);
    return found && found < strchr(at, '\n');
}

/* The op between two elementwise ones, and the gradient of weights of what comes of it: the product of its transposed rows with other ones. */
static eddy_program *record_op(const op_row *row, eddy_tensor *x, eddy_tensor *h,
                               eddy_tensor **grads) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES)));
    eddy_tensor *g = eddy_mul_s(x, EDDY_S(2)), *made = row->call(g, h);
    eddy_tensor *way = row->is_sum ? g : eddy_neg(made);
    int64_t count = eddy_shape_of(way).dims[0];
    eddy_tensor *rows = eddy_reshape(way, EDDY_SHAPE(count, -1)),
                *others = eddy_narrow(eddy_reshape(h, EDDY_SHAPE(count, -1)), 1, 2, 3);
    grads[0] = eddy_matmul(eddy_transpose(eddy_narrow(rows, 1, 1, 4), 0, 1), others);
    grads[1] = row->is_sum ? made : eddy_sum(rows, EDDY_AXES(0), NULL);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"h", h, EDDY_ROLE_INPUT},
                      {"a", grads[0], EDDY_ROLE_OUTPUT}, {"b", grads[1], EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* What is loaded was inferred again: attributes are those of the parts. */
static eddy_program *through_a_file(eddy_program *program) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-subbatch-op-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* Sums of fewer than 20,000 terms in another order, each of them rounded as often, and norms of at most 8 numbers. */
static void must_be_near(eddy_tensor *a, eddy_tensor *b, const char *name) {
    eddy_tensor *difference = eddy_max(eddy_abs(eddy_sub(a, b)), EDDY_ALL_AXES, NULL),
                *size = eddy_max(eddy_abs(b), EDDY_ALL_AXES, NULL);
    double found = eddy_item_f64(difference, NULL), most = eddy_item_f64(size, NULL);
    cr_assert(found <= most * 2 * 20000 / (1 << 24), "%s: %g of %g", name, found, most);
}

Test(subbatch, ops_for_some_items_at_a_time) {
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < OP_ROWS; i++) {
        const op_row *row = &op_rows[i];
        eddy_tensor *x = integers(row->g, EDDY_F32, 1), *h = integers(row->h, EDDY_F32, 2),
                    *grads[2], *out[2];
        eddy_program *program = record_op(row, x, h, grads);
        char *text = printed_of(program, false);
        cr_assert_not(is_whole_in(text, row), "%s\n%s", row->name, text);
        program = through_a_file(program);
        must(eddy_program_run(program, EDDY_LIST(x, h), out));
        must_be_near(out[0], grads[0], row->name);
        must_be_near(out[1], grads[1], row->name);
        free(text);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}
