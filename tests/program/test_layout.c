/* The fast pass `layout`: images lie channels-last within a run. Numbers are small integers, so that sums are exact in any order, and all bits those of the calls. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>
#include <tests/program/texts.h>
#include <unistd.h>

#define PASSES "all,layout"

/* From -2 to 2. */
static eddy_tensor *integers(eddy_shape shape, int seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + 7 * count), EDDY_S(7), EDDY_I64, NULL);
    all = eddy_sub_s(
        eddy_remainder_s(eddy_remainder_s(eddy_mul(all, all), EDDY_S(1009)), EDDY_S(5)), EDDY_S(2));
    return eddy_reshape(eddy_cast(all, EDDY_F32), shape);
}

static int turned_in(const eddy_program *program) {
    int count = 0;
    for (uint32_t v = 0; v < program->code.values.count; v++)
        count += eddy_code_value_at(&program->code, v)->is_turned;
    return count;
}

static eddy_program *end(eddy_tensor *x, eddy_tensor *y) {
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static void begin(void) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES)));
}

static eddy_tensor *convolve(eddy_tensor *x, eddy_tensor *w) {
    return eddy_conv2d(x, w, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
}

/* ---- what is turned ---- */

typedef struct net {
    eddy_tensor *x, *w, *v;
} net;

static net make_net(void) {
    return (net){.x = integers(EDDY_SHAPE(2, 3, 8, 8), 1),
                 .w = integers(EDDY_SHAPE(8, 3, 3, 3), 2),
                 .v = integers(EDDY_SHAPE(8, 8, 3, 3), 3)};
}

/* Its last image is an output, which stays as it is. */
static eddy_tensor *run_net(const net *n) {
    eddy_tensor *h = eddy_max_pool2d(eddy_relu(convolve(n->x, n->w)), EDDY_PAIR(2, 2), NULL);
    return convolve(h, n->v);
}

Test(layout, images_between_convolutions_are_turned) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    begin();
    eddy_tensor *y = run_net(&n), *out;
    eddy_program *program = end(n.x, y);
    cr_assert_eq(turned_in(program), 3, "the convolution's, relu's and the pool's");
    must(eddy_program_run(program, EDDY_LIST(n.x), &out));
    must_have_same_bits(out, y, "a run");
    cr_assert(eddy_is_contiguous(out));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* They are what elementwise ops have together with the weights. */
Test(layout, gradients_of_weights_stay) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    must(eddy_requires_grad_set(n.w, true));
    begin();
    eddy_tensor *y = eddy_max_pool2d(eddy_relu(convolve(n.x, n.w)), EDDY_PAIR(2, 2), NULL), *out,
                *gradient;
    must(eddy_backward_to(EDDY_LIST(eddy_sum(convolve(y, n.v), EDDY_ALL_AXES, NULL)),
                          EDDY_LIST(n.w), (eddy_list){0}, NULL, &gradient));
    eddy_tensor *step = eddy_mul_s(eddy_square(gradient), EDDY_S(2));
    eddy_program *program = end(n.x, step);
    for (uint32_t i = 0; i < program->code.operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(&program->code, i);
        if (!eddy_code_operand_is_absent(operand) && operand->rank == 4 &&
            eddy_code_dims(&program->code, operand)[3] == 3)
            cr_assert_not(eddy_code_value_at(&program->code, operand->value)->is_turned);
    }
    cr_assert_gt(turned_in(program), 4);
    must(eddy_program_run(program, EDDY_LIST(n.x), &out));
    must_have_same_bits(out, step, "a run");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Some images are turned then, and others are not: that is no program. What is only kept for others (a build) may fail beside a program. */
Test(layout, each_allocation_of_the_build_fails) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    int64_t at = 0;
    for (bool has_failed = true; has_failed; at++) {
        eddy_error error = {0};
        begin();
        eddy_tensor *y = run_net(&n), *out;
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, at, 1);
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
        cr_assert_eq(eddy_error_take(&error), program ? EDDY_OK : EDDY_OUT_OF_MEMORY, "%s",
                     error.message);
        cr_assert(program || has_failed);
        if (!program)
            continue;
        cr_assert_eq(turned_in(program), 3);
        must(eddy_program_run(program, EDDY_LIST(n.x), &out));
        must_have_same_bits(out, y, "a run");
        eddy_program_release(&program);
        eddy_trim(); /* or the next one is built already */
    }
    cr_assert_gt(at, 20, "%lld", (long long)at);
    expect_nothing_left(scope);
}

Test(layout, it_is_off_unless_it_is_named) {
    static const char *const passes[] = {NULL, "all", "none", "winograd", "all,accumulate"};
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes[i])));
        eddy_program *program = end(n.x, run_net(&n));
        cr_assert_eq(turned_in(program), 0, "%s", passes[i]);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

Test(layout, text_and_files_say_what_was_called) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
    eddy_tensor *y = run_net(&n), *out;
    eddy_program *plain = end(n.x, y);
    begin();
    eddy_program *program = end(n.x, run_net(&n)), *loaded;
    char *plain_text = printed_of(plain, false), *text = printed_of(program, false),
         *plan = printed_of(program, true), path[64];
    cr_assert_str_eq(text, plain_text);
    cr_assert_not_null(strstr(plan, " channels-last"), "%s", plan);
    snprintf(path, sizeof(path), "/tmp/eddy-layout-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    loaded = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(loaded);
    cr_assert_eq(turned_in(loaded), 0);
    must(eddy_program_run(loaded, EDDY_LIST(n.x), &out));
    must_have_same_bits(out, y, "loaded");
    free(plain_text), free(text), free(plan);
    eddy_program_release(&plain);
    eddy_program_release(&program);
    eddy_program_release(&loaded);
    expect_nothing_left(scope);
}

/* What it computes is what the run has computed, and its text says what was called, as that of the program that was run does. */
Test(layout, a_run_that_is_recorded_stays_as_it_is) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = i ? PASSES : "all")));
        eddy_tensor *y = run_net(&n), *out;
        eddy_program *inner = end(n.x, y);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
        must(eddy_program_run(inner, EDDY_LIST(n.x), &out));
        eddy_program *outer = end(n.x, eddy_neg(out));
        cr_assert_eq(turned_in(outer), turned_in(inner));
        cr_assert_eq(turned_in(outer) > 0, i == 1);
        must(eddy_program_run(outer, EDDY_LIST(n.x), &out));
        must_have_same_bits(out, eddy_neg(y), "a run");
        texts[i] = printed_of(outer, false);
        eddy_program_release(&outer);
        eddy_program_release(&inner);
    }
    cr_assert_str_eq(texts[0], texts[1]);
    free(texts[0]), free(texts[1]);
    expect_nothing_left(scope);
}

static eddy_tensor *channels_last(eddy_shape shape) {
    int64_t *dims = shape.dims;
    return eddy_permute(eddy_empty(EDDY_SHAPE(dims[0], dims[2], dims[3], dims[1]), EDDY_F32, NULL),
                        EDDY_AXES(0, 3, 1, 2));
}

/* The same code but for what was turned: two programs are built, and each says what was called. */
Test(layout, a_build_is_not_shared_with_what_is_turned) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    const eddy_conv2d_options *padded = EDDY_OPTIONS(conv2d, .padding = {1, 1});
    eddy_program *kept[2];
    char *texts[2];
    for (int is_called = 0; is_called < 2; is_called++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = is_called ? "all" : PASSES)));
        eddy_tensor *out = eddy_empty(EDDY_SHAPE(2, 8, 8, 8), EDDY_F32, NULL), *h;
        if (is_called) {
            h = channels_last(EDDY_SHAPE(2, 8, 8, 8));
            must(eddy_conv2d_into(n.x, n.w, EDDY_NONE, h, padded));
        } else {
            (void)eddy_neg(n.x); /* stands where the other one makes its target */
            h = convolve(n.x, n.w);
        }
        must(eddy_conv2d_into(h, n.v, EDDY_NONE, out, padded));
        eddy_program *inner = end(n.x, out);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
        must(eddy_program_run(inner, EDDY_LIST(n.x), &out));
        kept[is_called] = end(n.x, out);
        texts[is_called] = printed_of(kept[is_called], false);
        eddy_program_release(&inner);
    }
    cr_assert_null(strstr(texts[0], "strides ["), "%s", texts[0]);
    cr_assert_not_null(strstr(texts[1], "strides ["), "%s", texts[1]);
    for (int i = 0; i < 2; i++) {
        free(texts[i]);
        eddy_program_release(&kept[i]);
    }
    expect_nothing_left(scope);
}

static eddy_program *through_a_file(eddy_program *program) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-layout-run-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* An image that the calls have made channels-last, of which they use parts, and one that a run of another program has turned are two, in whatever order they come: ops of the same operands, of which one (`max_pool2d`) knows less. */
Test(layout, what_is_turned_is_not_what_was_called_so) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    for (int i = 0; i < 4; i++) {
        eddy_tensor *first[2], *last[2], *indices, *out[2];
        begin();
        eddy_tensor *h = eddy_max_pool2d(n.x, EDDY_PAIR(2, 2), NULL);
        if (i < 2)
            h = convolve(n.x, n.w);
        else
            must(eddy_max_pool2d_with_indices(n.x, EDDY_PAIR(2, 2), NULL, &h, &indices));
        eddy_program *turned = end(n.x, convolve(h, i < 2 ? n.v : n.w));
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
        eddy_tensor *target = channels_last(eddy_shape_of(h));
        must(i < 2 ? eddy_conv2d_into(n.x, n.w, EDDY_NONE, target,
                                      EDDY_OPTIONS(conv2d, .padding = {1, 1}))
                   : eddy_max_pool2d_into(n.x, target, EDDY_PAIR(2, 2), NULL));
        eddy_program *called =
            end(n.x, eddy_neg(eddy_permute(eddy_narrow(target, 1, 1, 2), EDDY_AXES(0, 2, 3, 1))));
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all")));
        for (int k = 0; k < 2; k++)
            must(eddy_program_run((i + k) % 2 ? turned : called, EDDY_LIST(n.x),
                                  &first[(i + k) % 2]));
        eddy_program *both = eddy_record_end(EDDY_BINDINGS({"x", n.x, EDDY_ROLE_INPUT},
                                                           {"y", first[0], EDDY_ROLE_OUTPUT},
                                                           {"z", first[1], EDDY_ROLE_OUTPUT}));
        must(both ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        must(eddy_program_run(called, EDDY_LIST(n.x), &last[0]));
        must(eddy_program_run(turned, EDDY_LIST(n.x), &last[1]));
        both = through_a_file(both);
        must(eddy_program_run(both, EDDY_LIST(n.x), out));
        must_have_same_bits(out[0], last[0], "called so");
        must_have_same_bits(out[1], last[1], "turned");
        eddy_program_release(&both);
        eddy_program_release(&turned);
        eddy_program_release(&called);
    }
    expect_nothing_left(scope);
}

/* Each names an image of the convolution otherwise, too: by other dims, a part, in another order, as an output of a branch. */
static eddy_tensor *as_rows(eddy_tensor *h) {
    return eddy_sum(eddy_neg(eddy_reshape(h, EDDY_SHAPE(2, 8, 64))), EDDY_AXES(1), NULL);
}

static eddy_tensor *as_other_images(eddy_tensor *h) {
    return eddy_neg(eddy_reshape(h, EDDY_SHAPE(2, 4, 16, 8)));
}

static eddy_tensor *in_part(eddy_tensor *h) {
    return eddy_neg(eddy_narrow(h, 1, 2, 4));
}

static eddy_tensor *in_another_order(eddy_tensor *h) {
    return eddy_neg(eddy_permute(h, EDDY_AXES(1, 0, 3, 2)));
}

static eddy_tensor *written_in_part(eddy_tensor *h) {
    must(eddy_neg_into(eddy_narrow(h, 0, 0, 1), eddy_narrow(h, 0, 1, 1)));
    return eddy_neg(h);
}

static eddy_tensor *joined(eddy_tensor *h) {
    return eddy_cat(EDDY_LIST(h, eddy_neg(h)), 1);
}

static eddy_tensor *softened(eddy_tensor *h) {
    return eddy_gt_s(eddy_softmax(h, 1), EDDY_S(0.5));
}

static eddy_tensor *flipped(eddy_tensor *h) {
    return eddy_flip(h, EDDY_AXES(3));
}

static eddy_tensor *with_rows_as_columns(eddy_tensor *h) {
    return eddy_neg(eddy_transpose(h, 2, 3));
}

/* Two convolutions have it in common, so that nothing but the name speaks against turning it. */
Test(layout, images_that_are_named_otherwise_stay) {
    static eddy_tensor *(*const names[])(eddy_tensor *) = {
        as_rows, as_other_images, in_part, in_another_order,    written_in_part,
        joined,  softened,        flipped, with_rows_as_columns};
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        begin();
        eddy_tensor *h = convolve(n.x, n.w), *y = names[i](h), *z = convolve(h, n.v), *out[2];
        eddy_program *program = eddy_record_end(EDDY_BINDINGS(
            {"x", n.x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        must(eddy_program_run(program, EDDY_LIST(n.x), out));
        must_have_same_bits(out[0], y, "a run");
        must_have_same_bits(out[1], z, "a run");
        cr_assert_eq(turned_in(program), 0, "row %zu", i);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* What goes through more elementwise ops with inputs than convolutions read. */
Test(layout, a_region_that_has_little_of_convolutions_stays) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    eddy_tensor *others[6];
    for (int i = 0; i < 6; i++)
        others[i] = integers(EDDY_SHAPE(2, 8, 8, 8), i);
    for (int count = 0; count < 7; count += 6) {
        begin();
        eddy_tensor *h = convolve(n.x, n.w), *out;
        for (int i = 0; i < count; i++)
            h = eddy_mul(h, others[i]);
        eddy_tensor *y = convolve(eddy_relu(h), n.v);
        eddy_program *program = end(n.x, y);
        must(eddy_program_run(program, EDDY_LIST(n.x), &out));
        must_have_same_bits(out, y, "a run");
        cr_assert_eq(turned_in(program) > 0, count == 0);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

Test(layout, what_has_no_convolution_stays) {
    eddy_scope *scope = eddy_scope_begin();
    net n = make_net();
    begin();
    eddy_tensor *h = eddy_relu(eddy_max_pool2d(n.x, EDDY_PAIR(2, 2), NULL));
    eddy_program *program = end(n.x, eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL));
    cr_assert_eq(turned_in(program), 0);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- roundings ---- */

static eddy_tensor *numbers(eddy_shape shape, int seed) {
    return eddy_sin(eddy_add_s(eddy_mul_s(integers(shape, seed), EDDY_S(0.7)), EDDY_S(seed)));
}

/* A sum of n products in another order, both rounded n times: that of magnitudes is a convolution, too. */
Test(layout, results_are_within_the_bound_of_their_sums) {
    eddy_scope *scope = eddy_scope_begin();
    for (int seed = 0; seed < 10; seed++) {
        int64_t channels = 8 << seed % 4, terms = channels * 9;
        eddy_tensor *x = numbers(EDDY_SHAPE(4, channels, 12, 12), seed),
                    *w = numbers(EDDY_SHAPE(16, channels, 3, 3), seed + 1), *out;
        begin();
        eddy_tensor *y = eddy_max_pool2d(convolve(x, w), EDDY_PAIR(1, 1), NULL);
        eddy_program *program = end(x, y);
        cr_assert_eq(turned_in(program), 1);
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        eddy_tensor *bound =
            eddy_mul_s(convolve(eddy_abs(x), eddy_abs(w)), EDDY_S((double)terms * 2 / (1 << 24)));
        eddy_tensor *beyond = eddy_gt(eddy_abs(eddy_sub(out, y)), bound);
        cr_assert_eq(eddy_item_i64(eddy_any(beyond, EDDY_ALL_AXES, NULL), NULL), 0, "seed %d",
                     seed);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* Large enough for groups that run tile by tile, which have all images in one order. */
Test(layout, groups_of_turned_images) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = integers(EDDY_SHAPE(4, 3, 24, 24), 1),
                *w = integers(EDDY_SHAPE(8, 3, 3, 3), 2), *v = integers(EDDY_SHAPE(8, 8, 3, 3), 3),
                *out;
    begin();
    eddy_tensor *h = convolve(x, w);
    h = eddy_sub_s(eddy_remainder_s(eddy_relu(eddy_add(h, eddy_abs(h))), EDDY_S(5)), EDDY_S(2));
    eddy_tensor *y = convolve(h, v);
    eddy_program *program = end(x, y);
    cr_assert_gt(turned_in(program), 3);
    cr_assert_gt(program->code.groups.count, 0);
    must(eddy_program_run(program, EDDY_LIST(x), &out));
    must_have_same_bits(out, y, "a run");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- steps of training ---- */

typedef struct trained {
    eddy_tensor *w, *v, *bias;
} trained;

static trained make_trained(void) {
    trained t = {.w = integers(EDDY_SHAPE(6, 3, 3, 3), 2),
                 .v = integers(EDDY_SHAPE(6, 6, 3, 3), 3),
                 .bias = integers(EDDY_SHAPE(6), 4)};
    must(eddy_requires_grad_set(t.w, true));
    must(eddy_requires_grad_set(t.v, true));
    must(eddy_requires_grad_set(t.bias, true));
    return t;
}

/* Gradients are integers, too, of which the last bits are kept. */
static eddy_status train(void *context, eddy_recorded_call *call) {
    trained *t = context;
    eddy_tensor *x = call->inputs.items[0];
    eddy_tensor *h = eddy_relu(eddy_conv2d(x, t->w, t->bias, NULL));
    h = eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL);
    h = eddy_avg_pool2d(eddy_relu(convolve(h, t->v)), EDDY_PAIR(1, 1), NULL);
    eddy_tensor *sum = eddy_sum(eddy_flatten(h, 1, 3), EDDY_ALL_AXES, NULL);
    eddy_list params = EDDY_LIST(t->w, t->v, t->bias);
    eddy_status status = eddy_backward(sum);
    eddy_no_grad_begin();
    for (int i = 0; i < 3 && status == EDDY_OK; i++)
        status = eddy_copy_into(
            eddy_sub(eddy_remainder_s(eddy_sub(params.items[i], eddy_grad_of(params.items[i])),
                                      EDDY_S(5)),
                     eddy_full((eddy_shape){0}, EDDY_S(2), EDDY_F32, NULL)),
            params.items[i]);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(sum);
    return status == EDDY_OK ? eddy_grads_zero(params) : status;
}

static void use(const char *passes) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = passes));
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
}

#define STEPS 14

/* is_recorded: of sizes that follow from others, too. Returns how often the function ran. */
static void run_steps(bool is_recorded, const eddy_recorded_options *options, double *found) {
    static const int64_t sizes[STEPS] = {2, 2, 6, 6, 4, 4, 3, 5, 6, 2, 7, 9, 12, 11};
    eddy_scope *scope = eddy_scope_begin();
    trained t = make_trained();
    eddy_recorded *recorded = eddy_recorded_create(train, &t, 1, options);
    for (int i = 0; i < STEPS; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *x = integers(EDDY_SHAPE(sizes[i], 3, 10, 10), i), *sum;
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &sum, .output_count = 1};
        must(is_recorded ? eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &sum)
                         : train(&t, &call));
        *found++ = sum_of(sum);
        eddy_scope_end(inner);
    }
    *found++ = sum_of(eddy_mul(t.w, integers(eddy_shape_of(t.w), 9)));
    *found++ = sum_of(eddy_mul(t.v, integers(eddy_shape_of(t.v), 9)));
    *found = sum_of(t.bias);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(layout, steps_of_training_at_many_sizes) {
    double calls[STEPS + 3], runs[STEPS + 3];
    eddy_scope *scope = eddy_scope_begin();
    use(PASSES);
    run_steps(false, NULL, calls);
    for (int is_bucket = 0; is_bucket < 2; is_bucket++) {
        run_steps(true,
                  EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = is_bucket ? 12 : 0),
                  runs);
        for (int i = 0; i < STEPS + 3; i++)
            cr_assert_eq(calls[i], runs[i], "%d: %g and %g", i, calls[i], runs[i]);
    }
    must(eddy_runtime_use(NULL));
    expect_nothing_left(scope);
}

/* ---- random networks ---- */

static int below(uint32_t *state, int limit) {
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (int)((*state >> 16) % (uint32_t)limit);
}

/* What is large is brought back to small integers. */
static eddy_tensor *small(eddy_tensor *x) {
    return eddy_sub_s(eddy_remainder_s(x, EDDY_S(5)), EDDY_S(2));
}

#define OPS 10

static eddy_tensor *random_op(uint32_t *state, eddy_tensor *x, eddy_tensor *other) {
    int64_t channels = eddy_dim_of(x, 1), rows = eddy_dim_of(x, 2), columns = eddy_dim_of(x, 3);
    bool is_alike = channels == eddy_dim_of(other, 1) && rows == eddy_dim_of(other, 2) &&
                    columns == eddy_dim_of(other, 3);
    switch (below(state, 14)) {
    case 0:
    case 1:
    case 2: {
        int64_t to = 1 + below(state, 6),
                window = rows > 2 && columns > 2 ? 1 + below(state, 3) : 1;
        eddy_tensor *bias = below(state, 2) ? integers(EDDY_SHAPE(to), 5) : EDDY_NONE;
        return small(eddy_conv2d(x, integers(EDDY_SHAPE(to, channels, window, window), 6), bias,
                                 EDDY_OPTIONS(conv2d, .padding = {below(state, 2), below(state, 2)},
                                              .is_channels_last = below(state, 4) == 0)));
    }
    case 3:
        return small(eddy_conv_transpose2d(
            x, integers(EDDY_SHAPE(channels, 1 + below(state, 5), 2, 2), 7), EDDY_NONE, NULL));
    case 4:
        return rows > 1 && columns > 1 ? eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL) : eddy_neg(x);
    case 5:
        return rows > 1 && columns > 1
                   ? small(eddy_floor(eddy_avg_pool2d(x, EDDY_PAIR(2, 2), NULL)))
                   : eddy_abs(x);
    case 6:
        return eddy_relu(x);
    case 7:
        return is_alike ? small(eddy_mul(x, other)) : eddy_neg(x);
    case 8:
        return small(
            eddy_add(x, eddy_sum(x, EDDY_AXES(0, 2, 3), EDDY_OPTIONS(sum, .keeps_dims = true))));
    case 9:
        return is_alike ? eddy_cat(EDDY_LIST(x, other), 1) : eddy_abs(x);
    case 10:
        return channels > 1 ? eddy_narrow(x, 1, 0, channels - 1) : eddy_neg(x);
    case 11:
        return eddy_reshape(eddy_neg(eddy_flatten(x, 1, 3)), eddy_shape_of(x));
    case 12:
        return eddy_flip(x, EDDY_AXES(2));
    default:
        return eddy_where(eddy_gt_s(x, EDDY_S(0)), x, eddy_neg(x));
    }
}

static void random_net(uint32_t seed, eddy_tensor *x, eddy_tensor *outputs[2]) {
    eddy_tensor *made[OPS] = {x};
    uint32_t state = seed;
    for (int i = 1; i < OPS; i++) {
        int from = i - 1 - below(&state, i < 3 ? i : 3);
        made[i] = random_op(&state, made[from], made[i - 1]);
        must(made[i] ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    }
    outputs[0] = eddy_neg(made[OPS - 1]);
    outputs[1] = eddy_neg(made[OPS / 2]);
}

Test(layout, random_networks_give_the_bits_of_their_calls) {
    int turned = 0;
    for (uint32_t seed = 1; seed <= 400; seed++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t side = 3 + seed % 9;
        eddy_tensor *x =
                        integers(EDDY_SHAPE(1 + seed % 3, 1 + seed % 4, side, side + 1), (int)seed),
                    *y[2], *again = integers(eddy_shape_of(x), (int)seed + 1), *runs[2], *calls[2];
        begin();
        random_net(seed, x, y);
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y[0], EDDY_ROLE_OUTPUT},
                                          {"z", y[1], EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        turned += turned_in(program) > 0;
        must(eddy_program_run(program, EDDY_LIST(again), runs));
        random_net(seed, again, calls);
        for (int i = 0; i < 2; i++)
            must_have_same_bits(runs[i], calls[i], "a run");
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_gt(turned, 100, "%d", turned);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}
