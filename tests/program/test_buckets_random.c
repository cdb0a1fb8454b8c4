/* Buckets of sizes with functions of random ops: whatever passes do at the ends of a bucket, each size has the bits of the function's own calls. Among the ops are those
 * that see all of a value at one end alone. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>
#include <tests/rounds.h>

#define MOST 40
#define VALUES 24
#define FUNCTIONS ROUNDS_OF(400)

typedef struct function {
    uint32_t seed;
    int64_t width;
    eddy_tensor *held, *weight, *state; /* [MOST, width], [width, width], [width] */
} function;

static uint32_t random_state;

static uint32_t below(uint32_t bound) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

static eddy_tensor *first_rows(eddy_tensor *x, int64_t count) {
    return eddy_narrow(x, 0, 0, count);
}

/* ---- ops of [n, width] ---- */

static eddy_tensor *shifted_columns(eddy_tensor *a) {
    eddy_tensor *columns = eddy_contiguous(eddy_transpose(a, 0, 1));
    eddy_tensor *most = eddy_max(columns, EDDY_AXES(1), EDDY_OPTIONS(max, .keeps_dims = true));
    return eddy_contiguous(eddy_transpose(eddy_exp(eddy_sub(columns, most)), 0, 1));
}

static eddy_tensor *centred(eddy_tensor *a) {
    return eddy_sub(a, eddy_mean(a, EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = true)));
}

/* Of all rows that are held, where there are as many. */
static eddy_tensor *copied_rows(const function *f, eddy_tensor *a) {
    eddy_tensor *copy = eddy_empty(eddy_shape_of(a), EDDY_F32, NULL), *all = eddy_sin(f->held);
    must(eddy_copy_into(first_rows(all, eddy_dim_of(a, 0)), copy));
    return eddy_add(copy, a);
}

static eddy_tensor *added_rows(const function *f, eddy_tensor *a) {
    eddy_tensor *all = eddy_tanh(f->held);
    return eddy_add(first_rows(all, eddy_dim_of(a, 0)), eddy_matmul(eddy_sin(a), f->weight));
}

/* Columns of what is held as [width, MOST]: they lie as rows alone where there are MOST. */
static eddy_tensor *added_columns(const function *f, eddy_tensor *a) {
    eddy_tensor *turned = eddy_reshape(f->held, EDDY_SHAPE(f->width, MOST)),
                *columns = eddy_cos(eddy_narrow(turned, 1, 0, eddy_dim_of(a, 0)));
    return eddy_add(a, eddy_transpose(columns, 0, 1));
}

/* Two rows, which may be all. */
static eddy_tensor *two_rows(const function *f, eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *product = eddy_matmul(eddy_cos(b), f->weight),
                *sum = eddy_add(eddy_neg(first_rows(f->held, 2)), first_rows(product, 2));
    return eddy_mul(a, first_rows(sum, 1));
}

static eddy_tensor *two_copied_rows(eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *whole = eddy_zeros(eddy_shape_of(a), EDDY_F32, NULL);
    must(eddy_copy_into(eddy_cos(first_rows(a, 2)), first_rows(whole, 2)));
    return eddy_add(whole, b);
}

static eddy_tensor *joined(eddy_tensor *a, eddy_tensor *b) {
    int64_t n = eddy_dim_of(a, 0);
    return eddy_cat(EDDY_LIST(first_rows(eddy_sin(a), 1), first_rows(eddy_cos(b), n - 1)), 0);
}

static eddy_tensor *in_place(eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *sum = eddy_clone(a);
    must(eddy_add_inplace(sum, b));
    must(eddy_mul_s_inplace(sum, EDDY_S(0.25)));
    return sum;
}

static eddy_tensor *with_state(const function *f, eddy_tensor *a, eddy_tensor *b) {
    must(eddy_add_into(f->state, eddy_sum(eddy_tanh(b), EDDY_AXES(0), NULL), f->state));
    return eddy_add(eddy_tanh(a), eddy_tanh(f->state));
}

static eddy_tensor *compared(eddy_tensor *a, eddy_tensor *b) {
    return eddy_matmul(eddy_softmax(eddy_matmul(a, eddy_transpose(b, 0, 1)), 1), b);
}

static eddy_tensor *any_op(const function *f, eddy_tensor *a, eddy_tensor *b) {
    switch (below(22)) {
    case 0:
        return eddy_cos(b);
    case 1:
        return eddy_neg(a);
    case 2:
        return eddy_add(a, b);
    case 3:
        return eddy_mul(a, b);
    case 4:
        return eddy_sub(a, b);
    case 5:
        return eddy_mul_s(a, EDDY_S(0.5));
    case 6:
        return eddy_clone(b);
    case 7:
        return eddy_softmax(b, 1);
    case 8:
        return eddy_cumsum(eddy_sin(a), 1);
    case 9:
        return eddy_tanh(eddy_matmul(a, f->weight));
    case 10:
        return eddy_add(b, eddy_matmul(eddy_cos(a), f->weight));
    case 11:
        return shifted_columns(a);
    case 12:
        return centred(a);
    case 13:
        return copied_rows(f, a);
    case 14:
        return added_rows(f, a);
    case 15:
        return two_rows(f, a, b);
    case 16:
        return two_copied_rows(a, b);
    case 17:
        return joined(a, b);
    case 18:
        return in_place(a, b);
    case 19:
        return with_state(f, a, b);
    case 20:
        return added_columns(f, a);
    default:
        return compared(a, b);
    }
}

static eddy_status compute(void *context, eddy_recorded_call *call) {
    const function *f = context;
    eddy_tensor *x = call->inputs.items[0], *values[VALUES] = {x};
    uint32_t count = 2;
    random_state = f->seed;
    values[1] = first_rows(f->held, eddy_dim_of(x, 0));
    for (uint32_t steps = 4 + below(VALUES - 6); steps > 0; steps--, count++) {
        eddy_tensor *a = values[below(count)], *b = values[below(3) ? count - 1 : below(count)];
        values[count] = any_op(f, a, b);
        if (!values[count])
            return EDDY_INVALID_ARGUMENT;
    }
    call->outputs[0] = eddy_tanh(values[count - 1]);
    call->outputs[1] = eddy_mul_s(values[2 + below(count - 2)], EDDY_S(2));
    return EDDY_OK;
}

/* ---- sizes ---- */

static eddy_tensor *rows(int64_t count, int64_t width, int seed) {
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + count * width), EDDY_S(1), EDDY_F32, NULL);
    return eddy_sin(eddy_reshape(all, EDDY_SHAPE(count, width)));
}

/* Of the sizes, those that followed from the ends of their bucket. Some functions have none: rows without the last one are a single one, of two. */
static int64_t derived_of(eddy_recorded *recorded) {
    char text[4096];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    const char *bucket = strstr(text, "n from 2 to 40: sizes "),
               *place = bucket ? strchr(bucket, ',') : NULL;
    return place ? atoll(place + 2) : 0;
}

/* Returns how many sizes were derived. */
static int64_t try_function(uint32_t seed, int64_t width) {
    static const int64_t sizes[] = {3, 3, 4, 4, 5, MOST, 2, 17, MOST - 1, 6, 29, 17, 11};
    eddy_scope *scope = eddy_scope_begin();
    function f = {seed, width, rows(MOST, width, 3),
                  eddy_mul_s(rows(width, width, 5), EDDY_S(0.25)),
                  eddy_zeros(EDDY_SHAPE(width), EDDY_F32, NULL)};
    function other = f;
    other.state = eddy_zeros(EDDY_SHAPE(width), EDDY_F32, NULL);
    eddy_recorded *recorded = eddy_recorded_create(
        compute, &f, 2, EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = MOST));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        eddy_scope *turn = eddy_scope_begin();
        eddy_tensor *x = rows(sizes[i], width, (int)i), *y[2], *expected[2];
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = expected, .output_count = 2};
        char what[64];
        snprintf(what, sizeof(what), "function %u, size %lld", seed, (long long)sizes[i]);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, y));
        must(compute(&other, &call));
        must_have_same_bits(y[0], expected[0], what);
        must_have_same_bits(y[1], expected[1], what);
        must_have_same_bits(f.state, other.state, what);
        eddy_scope_end(turn);
    }
    int64_t derived = derived_of(recorded);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
    return derived;
}

/* Rows of 8 make chains alone, and those of 128 groups of the largest sizes. */
Test(buckets_random, sizes_have_the_bits_of_the_calls, .timeout = 120) {
    int64_t derived = 0;
    for (uint32_t seed = 1; seed <= FUNCTIONS; seed++)
        derived += try_function(seed, seed % 4 ? 8 : 128);
    /* Of seven sizes each. */
    cr_assert(derived > FUNCTIONS && derived < 7 * FUNCTIONS, "%lld", (long long)derived);
}
