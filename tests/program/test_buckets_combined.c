/* Buckets of sizes together with what else programs have: groups and chains, numbers, fast passes and generators. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/fused.h>
#include <program/program.h>
#include <program/recorded_function.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/sized.h>
#include <tests/program/taped.h>

static eddy_status call_body(const sized *f, eddy_tensor *x, eddy_scalars numbers,
                             eddy_tensor **y) {
    sized other = *f;
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(x),
                               .scalars = numbers.items,
                               .scalar_count = numbers.count,
                               .outputs = y,
                               .output_count = 1};
    return f->body(&other, &call);
}

/* The program that the call before has run. */
static const eddy_program *newest(const eddy_recorded *recorded) {
    const eddy_program *program = recorded->first->program;
    cr_assert_not_null(program);
    return program;
}

/* ---- groups and chains ---- */

/* Few elements at all sizes: one chain, or nothing. */
static eddy_status chains(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *sums = eddy_cumsum(x, 1);
    call->outputs[0] = eddy_cumsum(eddy_tanh(eddy_add(x, eddy_mul(sums, x))), 1);
    return EDDY_OK;
}

/* The loop of both is called for each row, which has as many elements as the size: it pays for long rows alone. */
static eddy_status shifts(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = eddy_contiguous(eddy_transpose(call->inputs.items[0], 0, 1));
    eddy_tensor *first = eddy_cumsum(eddy_narrow(x, 1, 0, 1), 0);
    call->outputs[0] = eddy_cumsum(eddy_exp(eddy_sub(x, first)), 1);
    return EDDY_OK;
}

/* Runs all sizes, and expects that each is derived and has one group, which is one loop from this size on. */
static void expect_group(sized f, int64_t most, int64_t loop_from) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = sized_record(&f, most);
    sized_learn(recorded, &f, 2, 3, 4);
    for (int64_t size = 5; size <= most; size++) {
        sized_run(recorded, &f, size, (int)size);
        const eddy_program *program = newest(recorded);
        cr_assert_eq(program->code.groups.count, 1, "size %lld", (long long)size);
        cr_assert_eq(program->executable->group_count, 1);
        cr_assert_eq(eddy_fused_is_loop(program->executable->fused[0]), size >= loop_from);
    }
    cr_assert_eq(f.calls, 5);
    char derived[32];
    snprintf(derived, sizeof(derived), " %lld derived", (long long)most - 4);
    expect_explained(recorded, derived);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets_combined, derived_programs_have_groups) {
    expect_group((sized){.body = sized_normalizes, .width = 128}, 70, 71);
    expect_group((sized){.body = chains, .width = 8}, 70, 5);
}

Test(buckets_combined, a_chain_that_pays_at_the_largest_size_alone) {
    expect_group((sized){.body = shifts, .width = 16}, 300, 256);
}

/* Of a program that knows one size alone. */
static int64_t arena_of(sized f, int64_t size) {
    eddy_recorded *recorded = eddy_recorded_create(f.body, &f, 1, NULL);
    for (int i = 0; i < 3; i++)
        sized_run(recorded, &f, size, i);
    int64_t bytes = newest(recorded)->executable->arena.bytes;
    eddy_recorded_release(&recorded);
    return bytes;
}

/* In its own memory, the result of the chain would make it larger. */
Test(buckets_combined, the_largest_size_takes_no_more_memory_than_alone) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = chains, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 40);
    sized_learn(recorded, &f, 2, 3, 4);
    sized_run(recorded, &f, 40, 0);
    cr_assert_eq(f.calls, 5);
    cr_assert_eq(newest(recorded)->executable->arena.bytes, arena_of(f, 40));
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- numbers ---- */

/* A number of the call's, one that follows from the size, and a rate. */
static eddy_status takes_numbers(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = eddy_mul_s(call->inputs.items[0], call->scalars[0]);
    x = eddy_add_s(eddy_tanh(x), EDDY_S(eddy_dim_of(x, 0)));
    x = eddy_sub_s(eddy_cumsum(x, 0), call->scalars[1]);
    call->outputs[0] = eddy_dropout(x, call->scalars[2], NULL);
    return EDDY_OK;
}

/* Which number it is depends on the size, and on no line. */
static eddy_status takes_turns(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_mul_s(eddy_exp(x), call->scalars[eddy_dim_of(x, 0) % 2]);
    return EDDY_OK;
}

/* So does a way to compute that is no number. */
static eddy_status sorts_in_turns(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0], *indices;
    return eddy_sort(x, 1, EDDY_OPTIONS(sort, .is_descending = eddy_dim_of(x, 0) % 2 != 0),
                     &call->outputs[0], &indices);
}

static void run_numbers(eddy_recorded *recorded, const sized *f, int64_t size, int seed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_scalars numbers = EDDY_SCALARS(EDDY_S(0.25 * seed), EDDY_S(3 - seed), EDDY_S(0.5 / seed));
    eddy_tensor *x = sized_rows(size, f->width, seed), *y, *expected;
    eddy_seed((uint64_t)seed);
    must(eddy_recorded_run(recorded, EDDY_LIST(x), numbers, &y));
    eddy_seed((uint64_t)seed);
    must(call_body(f, x, numbers, &expected));
    char what[32];
    snprintf(what, sizeof(what), "size %lld", (long long)size);
    must_have_same_bits(y, expected, what);
    eddy_scope_end(scope);
}

/* Each size twice, with other numbers; returns how often the function ran. */
static int try_numbers(sized f, int64_t most) {
    static const int64_t first[] = {2, 2, 3, 3, 4};
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = sized_record(&f, most);
    for (int i = 0; i < 5; i++)
        run_numbers(recorded, &f, first[i], i + 1);
    for (int round = 0; round < 2; round++)
        for (int64_t size = most; size >= 2; size--)
            run_numbers(recorded, &f, size, (int)size + 7 * round);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
    return f.calls;
}

Test(buckets_combined, numbers_are_those_of_the_call) {
    cr_assert_eq(try_numbers((sized){.body = takes_numbers, .width = 8}, 60), 5);
}

Test(buckets_combined, sizes_that_take_other_numbers_do_not_follow) {
    cr_assert_eq(try_numbers((sized){.body = takes_turns, .width = 8}, 12), 2 * 11);
    cr_assert_eq(try_numbers((sized){.body = sorts_in_turns, .width = 8}, 12), 2 * 11);
}

/* ---- fast passes ---- */

static void use(const char *passes) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = passes));
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
}

/* A product is added to another one. */
static eddy_status adds_products(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] =
        eddy_cos(eddy_add(eddy_matmul(x, f->held), eddy_matmul(eddy_neg(x), eddy_cos(f->held))));
    return EDDY_OK;
}

#define CHANNELS 32
#define SIDE 12

static eddy_status convolves(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    x = eddy_reshape(x, EDDY_SHAPE(eddy_dim_of(x, 0), CHANNELS, SIDE, SIDE));
    call->outputs[0] = eddy_conv2d(x, f->held, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
    return EDDY_OK;
}

static bool has_kernel(const eddy_program *program, const char *name) {
    for (uint32_t i = 0; i < program->code.instructions.count; i++)
        if (strcmp(eddy_code_instruction_at(&program->code, i)->kernel->name, name) == 0)
            return true;
    return false;
}

static void must_be_within(eddy_tensor *a, eddy_tensor *b, double bound) {
    eddy_tensor *most = eddy_max(eddy_abs(eddy_sub(a, b)), EDDY_ALL_AXES, NULL);
    double found = eddy_item_f64(most, NULL);
    cr_assert(found <= bound, "%g, not within %g", found, bound);
}

/* Runs all sizes, and expects that each is derived, has the kernel, and gives what is within a bound of the function's own. */
static void expect_fast(sized f, int64_t most, const char *kernel, double bound) {
    eddy_recorded *recorded = sized_record(&f, most);
    const int64_t first[] = {2, 2, 3, 3, 4};
    for (int64_t i = 0; i < most + 1; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t size = i < 5 ? first[i] : i;
        eddy_tensor *x = sized_rows(size, f.width, (int)i), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&f, x, (eddy_scalars){0}, &expected));
        must_be_within(y, expected, bound);
        cr_assert(i < 5 || has_kernel(newest(recorded), kernel), "size %lld", (long long)size);
        eddy_scope_end(scope);
    }
    cr_assert_eq(f.calls, 5);
    char derived[32];
    snprintf(derived, sizeof(derived), " %lld derived", (long long)most - 4);
    expect_explained(recorded, derived);
    eddy_recorded_release(&recorded);
}

/* Two sums of 8 terms of up to 1, in whatever order. */
Test(buckets_combined, products_are_added_at_once) {
    use("all,accumulate");
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = adds_products, .width = 8, .held = sized_rows(8, 8, 3)};
    must(eddy_wait(f.held, EDDY_FOREVER));
    expect_fast(f, 40, "add_product_fast", 2 * 16 * 0x1p-24 * 16);
    expect_nothing_left(scope);
}

/* A step of training, whose gradients are products that are added to others. */
static eddy_status trains(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0],
                *y = eddy_matmul(eddy_tanh(eddy_matmul(x, f->held)), f->held);
    eddy_status status = eddy_backward(eddy_mean(eddy_square(y), EDDY_ALL_AXES, NULL));
    call->outputs[0] = eddy_detach(eddy_grad_of(f->held));
    return status == EDDY_OK ? eddy_grads_zero(EDDY_LIST(f->held)) : status;
}

/* Passes do the same at a size of a bucket and at that size alone. */
Test(buckets_combined, fast_gradients_are_those_of_the_size_alone) {
    use("all,fast");
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = trains, .width = 8, .held = leaf(sized_rows(8, 8, 3))}, alone = f;
    eddy_recorded *recorded = sized_record(&f, 40),
                  *by_size = eddy_recorded_create(trains, &alone, 1, NULL);
    static const int64_t first[] = {2, 2, 3, 3, 4};
    for (int i = 0; i < 43; i++)
        for (int round = 0; round < 3; round++) {
            eddy_scope *turn = eddy_scope_begin();
            eddy_tensor *x = sized_rows(i < 5 ? first[i] : i - 3, 8, i), *y, *expected;
            must(eddy_recorded_run(by_size, EDDY_LIST(x), (eddy_scalars){0}, &expected));
            if (round == 2) {
                must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
                if (i > 4)
                    must_have_same_bits(y, expected, "a gradient");
                cr_assert(has_kernel(newest(by_size), "add_product_fast"));
                cr_assert(i < 5 || has_kernel(newest(recorded), "add_product_fast"));
            }
            eddy_scope_end(turn);
        }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    eddy_recorded_release(&by_size);
    expect_nothing_left(scope);
}

/* The bound of tests/kernels/test_winograd.c, of numbers of up to 1. */
Test(buckets_combined, convolutions_run_by_winograds_algorithm) {
    use("all,winograd");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w =
        eddy_reshape(sized_rows(CHANNELS, CHANNELS * 9, 5), EDDY_SHAPE(CHANNELS, CHANNELS, 3, 3));
    sized f = {.body = convolves, .width = CHANNELS * SIDE * SIDE, .held = w};
    must(eddy_wait(w, EDDY_FOREVER));
    expect_fast(f, 9, "conv2d_fast",
                88.0 / 3 * 88.0 / 3 * (CHANNELS + 24) * 0x1p-24 * 9 * CHANNELS);
    expect_nothing_left(scope);
}

/* ---- passes that do not do the same at both ends ---- */

#define MOST 40

/* What is copied is all of a value at the largest size alone. */
static eddy_status copies_parts(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_tensor *y = eddy_empty(eddy_shape_of(x), EDDY_F32, NULL), *all = eddy_exp(f->held);
    eddy_status status = eddy_copy_into(eddy_narrow(all, 0, 0, eddy_dim_of(x, 0)), y);
    call->outputs[0] = eddy_cumsum(eddy_tanh(eddy_add(y, eddy_mul(x, x))), 0);
    return status;
}

/* What the product is added to is all of a value at the largest size alone. */
static eddy_status adds_to_parts(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0], *all = eddy_exp(f->held);
    eddy_tensor *sum = eddy_add(eddy_narrow(all, 0, 0, eddy_dim_of(x, 0)),
                                eddy_matmul(x, eddy_narrow(f->held, 0, 0, 8)));
    call->outputs[0] = eddy_cumsum(eddy_tanh(eddy_add(sum, eddy_mul(x, x))), 0);
    return EDDY_OK;
}

/* What is added is all of the product at the least size alone. */
static eddy_status adds_parts(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_tensor *product = eddy_matmul(x, eddy_narrow(f->held, 0, 0, 8));
    eddy_tensor *sum =
        eddy_add(eddy_neg(eddy_narrow(f->held, 0, 0, 2)), eddy_narrow(product, 0, 0, 2));
    call->outputs[0] =
        eddy_cumsum(eddy_tanh(eddy_add(x, eddy_mul(x, eddy_narrow(sum, 0, 0, 1)))), 0);
    return EDDY_OK;
}

/* Each size gives what the calls do. Sums of 9 terms of up to 3, in whatever order, and of up to MOST of what follows. */
static void try_ends(eddy_status (*body)(void *, eddy_recorded_call *)) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = body, .width = 8, .held = sized_rows(MOST, 8, 3)};
    eddy_recorded *recorded = sized_record(&f, MOST);
    for (int64_t i = 0; i <= MOST; i++) {
        static const int64_t first[] = {2, 2, 3, 3, 4};
        int64_t size = i < 5 ? first[i] : i;
        eddy_tensor *x = sized_rows(size, 8, (int)i), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&f, x, (eddy_scalars){0}, &expected));
        must_be_within(y, expected, MOST * (2 * 9 * 9 * 3 + MOST) * 0x1p-24);
    }
    cr_assert_eq(f.calls, 5);
    expect_explained(recorded, "0 derived, 36 kept, replayed 36 times; 36 built in full: "
                               "recorded_run: the passes do not do the same at the least and the "
                               "largest size\n");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets_combined, passes_that_differ_at_the_ends) {
    try_ends(copies_parts);
    use("all,fast");
    try_ends(adds_to_parts);
    try_ends(adds_parts);
}

/* ---- generators ---- */

static eddy_status drops(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    call->outputs[0] = eddy_dropout(eddy_tanh(call->inputs.items[0]), EDDY_S(0.5),
                                    EDDY_OPTIONS(dropout, .generator = f->generator));
    return EDDY_OK;
}

/* Programs that were derived hold it, and what they were derived from may be gone. */
Test(buckets_combined, derived_programs_hold_their_generator) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *own = eddy_generator_create(3), *other = eddy_generator_create(3);
    sized f = {.body = drops, .width = 8, .generator = own},
          again = {.body = drops, .width = 8, .generator = other};
    eddy_recorded *recorded = sized_record(&f, 40);
    for (int i = 0; i < 80; i++) {
        static const int64_t first[] = {2, 2, 3, 3, 4};
        eddy_tensor *x = sized_rows(i < 5 ? first[i] : 2 + i % 39, 8, i), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&again, x, (eddy_scalars){0}, &expected));
        must_have_same_bits(y, expected, "drawn");
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    eddy_generator_release(&own);
    eddy_generator_release(&other);
    expect_nothing_left(scope);
}

/* Two draw, and whose the third number is depends on the size. */
static eddy_status drops_in_turns(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_generator *generators[] = {f->generator, NULL,
                                    eddy_dim_of(x, 0) % 2 ? f->generator : NULL};
    for (int i = 0; i < 3; i++)
        x = eddy_dropout(eddy_tanh(x), EDDY_S(0.25),
                         EDDY_OPTIONS(dropout, .generator = generators[i]));
    call->outputs[0] = x;
    return EDDY_OK;
}

Test(buckets_combined, sizes_that_draw_elsewhere_do_not_follow) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *own = eddy_generator_create(3), *other = eddy_generator_create(3);
    sized f = {.body = drops_in_turns, .width = 8, .generator = own},
          again = {.body = drops_in_turns, .width = 8, .generator = other};
    eddy_recorded *recorded = sized_record(&f, 12);
    for (int i = 0; i < 60; i++) {
        static const int64_t first[] = {2, 2, 3, 3, 4};
        eddy_tensor *x = sized_rows(i < 5 ? first[i] : 2 + i % 11, 8, i), *y, *expected;
        eddy_seed((uint64_t)i);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        eddy_seed((uint64_t)i);
        must(call_body(&again, x, (eddy_scalars){0}, &expected));
        must_have_same_bits(y, expected, "drawn");
    }
    cr_assert_eq(f.calls, 2 * 11, "each of them is recorded");
    eddy_recorded_release(&recorded);
    eddy_generator_release(&own);
    eddy_generator_release(&other);
    expect_nothing_left(scope);
}

/* ---- what was recorded in another bucket ---- */

/* Sizes of a bucket below those that were recorded follow in the same steps. */
Test(buckets_combined, smaller_buckets_follow_from_larger_sizes) {
    static const int64_t edges[] = {17, 60};
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded =
        eddy_recorded_create(f.body, &f, 1,
                             EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = edges,
                                          .bucket_edge_count = 2));
    sized_learn(recorded, &f, 30, 33, 36);
    for (int64_t size = 60; size >= 3; size -= 3)
        sized_run(recorded, &f, size, (int)size);
    cr_assert_eq(f.calls, 6, "15 is recorded once");
    expect_explained(recorded, "n from 2 to 17: sizes 3 to 12, 4 derived, 4 kept");
    expect_explained(recorded, "n from 18 to 60: sizes 18 to 60, 12 derived, 12 kept");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* The two sizes that a class is learnt from are those of two buckets, and the third is in either. */
Test(buckets_combined, both_sizes_of_a_class_are_of_checked_buckets) {
    static const int64_t edges[] = {16, 40}, learnt[][3] = {{8, 30, 9}, {30, 8, 31}, {8, 30, 31}};
    for (size_t i = 0; i < sizeof(learnt) / sizeof(*learnt); i++) {
        eddy_scope *scope = eddy_scope_begin();
        sized f = {.body = sized_attends, .width = 8};
        eddy_recorded *recorded =
            eddy_recorded_create(f.body, &f, 1,
                                 EDDY_OPTIONS(recorded, .foretells_shapes = true,
                                              .bucket_edges = edges, .bucket_edge_count = 2));
        sized_learn(recorded, &f, learnt[i][0], learnt[i][1], learnt[i][2]);
        for (int64_t size = 2; size <= 40; size++)
            sized_run(recorded, &f, size, (int)size);
        cr_assert_eq(f.calls, 5);
        eddy_recorded_release(&recorded);
        expect_nothing_left(scope);
    }
}

/* ---- where inputs lie ---- */

/* Parts of one tensor, which begin elsewhere at each size, as pages of a cache. */
Test(buckets_combined, inputs_begin_elsewhere_at_each_size) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = sized_attends, .width = 8};
    eddy_recorded *recorded = sized_record(&f, 40);
    eddy_tensor *all = sized_rows(100, 8, 1);
    static const int64_t first[] = {2, 2, 3, 3, 4};
    for (int64_t i = 0; i <= 40; i++) {
        int64_t size = i < 5 ? first[i] : i;
        eddy_tensor *x = eddy_narrow(all, 0, size, size), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&f, x, (eddy_scalars){0}, &expected));
        must_have_same_bits(y, expected, "a part");
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

static eddy_status adds_own(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_tanh(eddy_add(x, eddy_narrow(f->held, 0, 0, eddy_dim_of(x, 0))));
    return EDDY_OK;
}

static void run_part(eddy_recorded *recorded, const sized *f, eddy_tensor *of, int64_t size) {
    eddy_tensor *x = eddy_narrow(of, 0, 0, size), *y, *expected;
    must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    must(call_body(f, x, (eddy_scalars){0}, &expected));
    must_have_same_bits(y, expected, "a part");
}

/* The recordings were given parts of the function's own tensor, which the code cannot tell from it. first: whether other sizes are so at first. */
static void try_own(int64_t edge_count, bool first) {
    static const int64_t sizes[] = {2, 2, 8, 8, 4}, edges[] = {40};
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = adds_own, .width = 8, .held = sized_rows(40, 8, 1)};
    eddy_recorded *recorded =
        eddy_recorded_create(f.body, &f, 1,
                             EDDY_OPTIONS(recorded, .foretells_shapes = true, .bucket_edges = edges,
                                          .bucket_edge_count = edge_count));
    eddy_tensor *other = sized_rows(40, 8, 7);
    for (int i = 0; i < 5; i++)
        run_part(recorded, &f, f.held, sizes[i]);
    /* 6 follows from those, and in a bucket 10 does, too. */
    for (int64_t size = 2; size <= 10; size += 2) {
        if (first)
            run_part(recorded, &f, f.held, size);
        for (int i = 0; i < 3; i++)
            run_part(recorded, &f, other, size);
        run_part(recorded, &f, f.held, size);
    }
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(buckets_combined, inputs_that_were_the_functions_own) {
    for (int64_t edge_count = 0; edge_count < 2; edge_count++) {
        try_own(edge_count, true);
        try_own(edge_count, false);
    }
}

/* ---- streams ---- */

/* Two rows of steps that know nothing of each other. */
static eddy_status has_towers(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *left = call->inputs.items[0], *right = eddy_cos(left);
    for (int i = 0; i < 4; i++) {
        left = eddy_tanh(eddy_matmul(left, f->held));
        right = eddy_sin(eddy_matmul(right, f->held));
    }
    call->outputs[0] = eddy_mul(left, right);
    return EDDY_OK;
}

/* Sizes that are recorded have several; those that follow share an arena of one. */
Test(buckets_combined, sizes_that_follow_have_one_stream) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = 2));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = has_towers, .width = 16, .held = sized_rows(16, 16, 1)};
    eddy_recorded *recorded = sized_record(&f, 40);
    sized_learn(recorded, &f, 2, 3, 4);
    sized_run(recorded, &f, 3, 0);
    cr_assert_eq(newest(recorded)->executable->streams.count, 2);
    for (int64_t size = 5; size <= 40; size++) {
        sized_run(recorded, &f, size, (int)size);
        cr_assert_eq(newest(recorded)->executable->streams.count, 1);
        sized_run(recorded, &f, 3, (int)size);
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

/* ---- states and errors ---- */

static eddy_status adds_up(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_mul(eddy_exp(x), f->held);
    return eddy_add_into(f->held, eddy_sum(eddy_tanh(x), EDDY_AXES(0), NULL), f->held);
}

Test(buckets_combined, states_go_on_from_size_to_size) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = adds_up, .width = 8, .held = eddy_ones(EDDY_SHAPE(8), EDDY_F32, NULL)},
          again = f;
    again.held = eddy_ones(EDDY_SHAPE(8), EDDY_F32, NULL);
    eddy_recorded *recorded = sized_record(&f, 40);
    static const int64_t first[] = {2, 2, 3, 3, 4};
    for (int i = 0; i < 80; i++) {
        eddy_tensor *x = sized_rows(i < 5 ? first[i] : 2 + i * 7 % 39, 8, i), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&again, x, (eddy_scalars){0}, &expected));
        must_have_same_bits(y, expected, "an output");
        must_have_same_bits(f.held, again.held, "the state");
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* Its input are the places of rows, of which one may be out of range; what it held before is written in any case. */
static eddy_status looks_up(void *context, eddy_recorded_call *call) {
    sized *f = context;
    f->calls++;
    eddy_tensor *found = eddy_index_select(f->held, call->inputs.items[0], 0);
    call->outputs[0] = eddy_cumsum(eddy_tanh(eddy_add(found, eddy_mul(found, found))), 0);
    return EDDY_OK;
}

static eddy_tensor *places(int64_t count, int64_t last) {
    eddy_tensor *made = eddy_arange(EDDY_S(1), EDDY_S(count), EDDY_S(1), EDDY_I64, NULL);
    return eddy_cat(EDDY_LIST(made, eddy_full(EDDY_SHAPE(1), EDDY_S(last), EDDY_I64, NULL)), 0);
}

Test(buckets_combined, errors_are_those_of_the_calls) {
    eddy_scope *scope = eddy_scope_begin();
    sized f = {.body = looks_up, .width = 8, .held = sized_rows(50, 8, 1)};
    eddy_recorded *recorded = sized_record(&f, 40);
    static const int64_t first[] = {2, 2, 3, 3, 4};
    for (int64_t i = 0; i < 80; i++) {
        int64_t size = i < 5 ? first[i] : 2 + i * 7 % 39;
        bool fails = i > 5 && i % 3 == 0;
        eddy_tensor *x = places(size, fails ? 50 + i : 0), *y, *expected;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(call_body(&f, x, (eddy_scalars){0}, &expected));
        if (!fails) {
            must_have_same_bits(y, expected, "found");
            continue;
        }
        eddy_error errors[2];
        cr_assert_eq(eddy_error_of(y, EDDY_FOREVER, &errors[0]), EDDY_OUT_OF_RANGE);
        cr_assert_eq(eddy_error_of(expected, EDDY_FOREVER, &errors[1]), EDDY_OUT_OF_RANGE);
        cr_assert_str_eq(errors[0].message, errors[1].message);
        eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    cr_assert_eq(f.calls, 5);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- branches and loops ---- */

static eddy_status drops_half(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_dropout(eddy_exp(inputs.items[0]), EDDY_S(0.5), NULL);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status doubles(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_mul_s(eddy_tanh(inputs.items[0]), EDDY_S(2));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status is_third(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(inputs.items[0], EDDY_S(3));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Carries a count, a value and what that began as. */
static eddy_status goes_on(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *x = inputs.items[2], *y = eddy_tanh(eddy_add(inputs.items[1], eddy_mul(x, x)));
    outputs[0] = eddy_add_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_dropout(eddy_cumsum(y, 0), EDDY_S(0.25), NULL);
    outputs[2] = eddy_neg(x);
    return outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* The way that it takes depends on the input, and so does how often it draws. */
static eddy_status wanders(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = eddy_cumsum(call->inputs.items[0], 0), *z, *outputs[3],
                *count = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL),
                *p = eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0));
    eddy_status status = eddy_cond(p, drops_half, doubles, NULL, EDDY_LIST(x), 1, NULL, &z);
    if (status == EDDY_OK)
        status = eddy_while(is_third, goes_on, NULL, EDDY_LIST(count, z, x), NULL, outputs);
    call->outputs[0] = status == EDDY_OK ? outputs[1] : NULL;
    return status;
}

Test(buckets_combined, ways_and_their_draws_are_those_of_the_calls) {
    for (int64_t width = 8; width <= 256; width += 248) { /* few elements, and enough for groups */
        eddy_scope *scope = eddy_scope_begin();
        sized f = {.body = wanders, .width = width};
        eddy_recorded *recorded = sized_record(&f, 40);
        static const int64_t first[] = {2, 2, 3, 3, 4};
        for (int i = 0; i < 80; i++) {
            eddy_tensor *x = sized_rows(i < 5 ? first[i] : 2 + i * 7 % 39, width, i), *y[2],
                        *expected[2];
            for (int k = 0; k < 2; k++) {
                eddy_seed((uint64_t)i);
                if (k == 0)
                    must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y[0]));
                else
                    must(call_body(&f, x, (eddy_scalars){0}, &expected[0]));
                *(k == 0 ? &y[1] : &expected[1]) = eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL);
            }
            must_have_same_bits(y[0], expected[0], "the value");
            must_have_same_bits(y[1], expected[1], "the next draw");
        }
        cr_assert_eq(f.calls, 5);
        eddy_recorded_release(&recorded);
        expect_nothing_left(scope);
    }
}
