/* Random numbers and decisions on a CUDA device: the CPU's bits, whatever the seed, the counter and the layout, and its errors. On the fake driver (tests/fake_cuda). */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
static const eddy_dtype integers[] = {EDDY_I8, EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};

/* ---- two generators of one state ---- */

typedef struct drawing {
    eddy_generator *here, *there;
} drawing;

/* Of any state; words of either half are used. */
static drawing drawing_begin(void) {
    drawing made = {eddy_generator_create(0), eddy_generator_create(0)};
    uint64_t seed = random_next(),
             counter = random_below(2) == 0 ? (uint64_t)random_below(9) : random_next() >> 1;
    cr_assert_eq(eddy_generator_restore(made.here, seed, counter), EDDY_OK);
    cr_assert_eq(eddy_generator_restore(made.there, seed, counter), EDDY_OK);
    return made;
}

static void drawing_end(drawing *d) {
    eddy_generator_release(&d->here);
    eddy_generator_release(&d->there);
}

/* Runs the statement behind it in a scope of its own, with a new drawing. */
#define EACH_DRAWING(d, rounds)                                                                    \
    for (int round_ = 0; round_ < (rounds); round_++)                                              \
        for (eddy_scope *scope_ = eddy_scope_begin(); scope_;                                      \
             eddy_scope_end(scope_), scope_ = NULL)                                                \
            for (drawing d = drawing_begin(); d.here; drawing_end(&d))

static eddy_dtype any_of(const eddy_dtype *dtypes, size_t count) {
    return dtypes[random_below((int64_t)count)];
}

/* Now and then of more elements than the threads of a block take. */
static eddy_shape some_shape(void) {
    if (random_below(6) == 0)
        return EDDY_SHAPE(random_below(5000));
    return twin_shape(4, 9);
}

/* Returns whether both failed; if not, they are equal. */
static bool has_failed_alike(const char *what, eddy_tensor *here, eddy_tensor *there) {
    if (twin_fail_alike(here, there))
        return true;
    twin_expect_equal(what, here, there);
    return false;
}

/* ---- fills ---- */

Test(cuda_random, uniform_and_normal_numbers, .timeout = 300) {
    EACH_DRAWING(d, 300) {
        eddy_dtype dtype = any_of(floats, COUNT(floats));
        eddy_shape shape = some_shape();
        for (int i = 0; i < 2; i++)
            twin_expect_equal(
                "rand", eddy_rand(shape, dtype, EDDY_OPTIONS(rand, .generator = d.here)),
                eddy_rand(shape, dtype,
                          EDDY_OPTIONS(rand, .generator = d.there, .device = TWIN_THERE)));
        twin_expect_equal(
            "randn", eddy_randn(shape, dtype, EDDY_OPTIONS(randn, .generator = d.here)),
            eddy_randn(shape, dtype,
                       EDDY_OPTIONS(randn, .generator = d.there, .device = TWIN_THERE)));
    }
    twin_expect_no_findings();
}

/* A range, within which numbers of all dtypes lie that hold it. Above 2^63 every second draw is repeated. */
static void some_range(int64_t *low, int64_t *high) {
    switch (random_below(5)) {
    case 0:
        *low = -random_below(100), *high = *low + 1 + random_below(100);
        break;
    case 1:
        *low = random_below(1000), *high = *low + 1 + random_below(INT64_C(1) << 31);
        break;
    case 2:
        *low = INT64_MIN, *high = random_below(1000);
        break;
    case 3:
        *low = INT64_MIN, *high = INT64_MAX;
        break;
    default:
        *low = 0, *high = 1 + random_below(128);
        break;
    }
}

static bool holds(eddy_dtype dtype, int64_t low, int64_t high) {
    int bits = 8 * (int)eddy_dtype_bytes(dtype);
    if (dtype == EDDY_U8)
        return low >= 0 && high <= 256;
    return bits == 64 || (low >= -(INT64_C(1) << (bits - 1)) && high <= INT64_C(1) << (bits - 1));
}

Test(cuda_random, integers_of_every_range, .timeout = 300) {
    EACH_DRAWING(d, 300) {
        int64_t low, high;
        some_range(&low, &high);
        eddy_shape shape = some_shape();
        for (size_t i = 0; i < COUNT(integers); i++) {
            eddy_dtype dtype = integers[i];
            if (holds(dtype, low, high))
                twin_expect_equal("randint",
                                  eddy_randint(low, high, shape, dtype,
                                               EDDY_OPTIONS(randint, .generator = d.here)),
                                  eddy_randint(low, high, shape, dtype,
                                               EDDY_OPTIONS(randint, .generator = d.there,
                                                            .device = TWIN_THERE)));
        }
    }
    twin_expect_no_findings();
}

Test(cuda_random, permutations, .timeout = 300) {
    static const int64_t counts[] = {0, 1, 2, 3, 255, 256, 257, 20000};
    EACH_DRAWING(d, 200) {
        int64_t count = round_ < 16 ? counts[round_ / 2] : random_below(600);
        eddy_dtype dtype = round_ % 2 ? EDDY_I64 : EDDY_I32;
        twin_expect_equal(
            "randperm", eddy_randperm(count, dtype, EDDY_OPTIONS(randperm, .generator = d.here)),
            eddy_randperm(count, dtype,
                          EDDY_OPTIONS(randperm, .generator = d.there, .device = TWIN_THERE)));
    }
    twin_expect_no_findings();
}

/* ---- decisions ---- */

static eddy_scalar some_probability(void) {
    static const double rare[] = {0, 1, 0x1p-24, 0x1p-30, 1 - 0x1p-24, 0.5};
    return eddy_scalar_float(random_below(3) == 0 ? rare[random_below((int64_t)COUNT(rare))]
                                                  : (double)random_below(1000) * 1e-3);
}

Test(cuda_random, dropout_of_every_layout, .timeout = 300) {
    EACH_DRAWING(d, 400) {
        eddy_dtype dtype = any_of(floats, COUNT(floats));
        eddy_scalar p = some_probability();
        twin x = twin_random(dtype, some_shape(), false);
        twin_expect_equal("dropout",
                          eddy_dropout(x.here, p, EDDY_OPTIONS(dropout, .generator = d.here)),
                          eddy_dropout(x.there, p, EDDY_OPTIONS(dropout, .generator = d.there)));
        int64_t seed = (int64_t)random_next(), counter = (int64_t)random_next();
        twin_expect_equal("dropout_backward", eddy_dropout_backward(x.here, p, seed, counter),
                          eddy_dropout_backward(x.there, p, seed, counter));
    }
    twin_expect_no_findings();
}

/* Long rows at odd addresses, and of one element for all. */
Test(cuda_random, decisions_about_long_rows, .timeout = 300) {
    EACH_DRAWING(d, 12) {
        eddy_dtype dtype = floats[round_ % 4];
        int64_t count = 4090 + random_below(9);
        twin x = twin_numbers(dtype, EDDY_SHAPE(count + 1), false), part = x;
        if (round_ % 3 == 0)
            part = (twin){eddy_narrow(x.here, 0, 1, count), eddy_narrow(x.there, 0, 1, count)};
        if (round_ % 3 == 1)
            part = (twin){eddy_expand(eddy_narrow(x.here, 0, 1, 1), EDDY_SHAPE(count)),
                          eddy_expand(eddy_narrow(x.there, 0, 1, 1), EDDY_SHAPE(count))};
        eddy_scalar p = some_probability();
        twin_expect_equal("dropout",
                          eddy_dropout(part.here, p, EDDY_OPTIONS(dropout, .generator = d.here)),
                          eddy_dropout(part.there, p, EDDY_OPTIONS(dropout, .generator = d.there)));
        twin chance = {eddy_clamp(part.here, EDDY_S(0.0), EDDY_S(1.0)),
                       eddy_clamp(part.there, EDDY_S(0.0), EDDY_S(1.0))};
        twin_expect_equal(
            "bernoulli", eddy_bernoulli(chance.here, EDDY_OPTIONS(bernoulli, .generator = d.here)),
            eddy_bernoulli(chance.there, EDDY_OPTIONS(bernoulli, .generator = d.there)));
    }
    twin_expect_no_findings();
}

/* Probabilities, of which some are none. Returns whether the call failed. */
static bool toss(const drawing *d, eddy_dtype dtype, bool is_fit) {
    twin x = is_fit ? twin_indices(EDDY_I32, some_shape(), 0, 64)
                    : twin_indices(EDDY_I32, some_shape(), -1, 80);
    twin p = {eddy_mul_s(eddy_cast(x.here, dtype), EDDY_S(0x1p-6)),
              eddy_mul_s(eddy_cast(x.there, dtype), EDDY_S(0x1p-6))};
    eddy_tensor *here = eddy_bernoulli(p.here, EDDY_OPTIONS(bernoulli, .generator = d->here)),
                *there = eddy_bernoulli(p.there, EDDY_OPTIONS(bernoulli, .generator = d->there));
    return has_failed_alike("bernoulli", here, there);
}

Test(cuda_random, tosses_and_what_is_no_probability, .timeout = 300) {
    int failed = 0;
    EACH_DRAWING(d, 300)
    failed += toss(&d, floats[round_ % 4], round_ % 3 > 0);
    cr_assert_gt(failed, 20);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

Test(cuda_random, nan_is_no_probability) {
    for (size_t i = 0; i < COUNT(floats); i++) {
        eddy_scope *scope = eddy_scope_begin();
        char elements[5 * 8];
        for (int k = 0; k < 5; k++)
            eddy_dtype_store_f64(floats[i], elements + k * (int)eddy_dtype_bytes(floats[i]),
                                 k == 3 ? NAN : 0.5);
        twin p = twin_of(elements, EDDY_SHAPE(5), floats[i]);
        twin_expect_error(eddy_bernoulli(p.here, NULL), eddy_bernoulli(p.there, NULL));
        eddy_scope_end(scope);
    }
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- draws ---- */

/* Rows of weights, of a few values each. TINY: so small that exponential variables are infinite, and only the order of classes counts. */
typedef enum weighing { PLAIN, SPARSE, TINY, BAD, WEIGHINGS } weighing;

static double some_weight(weighing kind) {
    double plain = (double)random_below(1000) * 0x1p-6;
    switch (kind) {
    case SPARSE:
        return random_below(4) == 0 ? plain : 0;
    case TINY:
        return random_below(3) == 0 ? plain : 0x1p-1070;
    case BAD:
        return random_below(200) > 0  ? plain
               : random_below(3) == 0 ? NAN
               : random_below(2) == 0 ? INFINITY
                                      : -1;
    default:
        return plain;
    }
}

static twin make_weights(eddy_dtype dtype, eddy_shape shape, weighing kind) {
    int64_t count = shape.dims[0] * (shape.rank == 2 ? shape.dims[1] : 1);
    int bytes = (int)eddy_dtype_bytes(dtype);
    char *elements = malloc((size_t)(count * bytes + 1));
    for (int64_t i = 0; i < count; i++)
        eddy_dtype_store_f64(dtype, elements + i * bytes, some_weight(kind));
    twin made = twin_of(elements, shape, dtype);
    free(elements);
    return made;
}

/* Draws of the weights, which may be turned. Returns whether it failed. */
static bool draw(const drawing *d, eddy_shape shape, weighing kind, int64_t draws, bool again) {
    twin weights = make_weights(floats[random_below(4)], shape, kind);
    if (shape.rank == 2 && random_below(3) == 0)
        weights =
            (twin){eddy_transpose(eddy_contiguous(eddy_transpose(weights.here, 0, 1)), 0, 1),
                   eddy_transpose(eddy_contiguous(eddy_transpose(weights.there, 0, 1)), 0, 1)};
    eddy_tensor *here = eddy_multinomial(
                    weights.here, draws,
                    EDDY_OPTIONS(multinomial, .has_replacement = again, .generator = d->here)),
                *there = eddy_multinomial(
                    weights.there, draws,
                    EDDY_OPTIONS(multinomial, .has_replacement = again, .generator = d->there));
    return has_failed_alike("multinomial", here, there);
}

static void expect_draws(bool again) {
    int failed = 0, drawn = 0;
    EACH_DRAWING(d, 200) {
        int64_t classes = 1 + random_below(random_below(4) == 0 ? 3000 : 70),
                draws = 1 + random_below(random_below(2) == 0 ? classes : 4);
        eddy_shape shape =
            random_below(4) == 0 ? EDDY_SHAPE(classes) : EDDY_SHAPE(random_below(9), classes);
        draws = !again && draws > classes ? classes : draws;
        bool has_failed = draw(&d, shape, (weighing)random_below(WEIGHINGS), draws, again);
        failed += has_failed;
        drawn += !has_failed;
    }
    cr_assert(failed > 5 && drawn > 50, "%d failed, %d did not", failed, drawn);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

Test(cuda_random, draws_with_replacement, .timeout = 300) {
    expect_draws(true);
}

Test(cuda_random, draws_without_replacement, .timeout = 300) {
    expect_draws(false);
}

/* Around the pieces of rows that are summed side by side, and more rows than blocks of threads. */
Test(cuda_random, draws_from_rows_of_every_length, .timeout = 300) {
    static const int64_t lengths[] = {1, 63, 64, 65, 128, 129, 2047, 2048, 2049, 4097};
    EACH_DRAWING(d, 20) {
        int64_t classes = lengths[round_ / 2];
        draw(&d, EDDY_SHAPE(classes > 200 ? 3 : 75, classes), PLAIN, 1, round_ % 2);
    }
    twin_expect_no_findings();
}

/* ---- gradients ---- */

static eddy_tensor *gradient_of(eddy_tensor *leaf, eddy_generator *generator) {
    eddy_tensor *x = eddy_detach(leaf);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *y =
        eddy_dropout(eddy_mul(x, x), EDDY_S(0.3), EDDY_OPTIONS(dropout, .generator = generator));
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_random, the_gradient_of_dropout_makes_its_mask_again) {
    EACH_DRAWING(d, 20) {
        twin x = twin_numbers(round_ % 2 ? EDDY_F32 : EDDY_F64, some_shape(), true);
        twin_expect_equal("gradient", gradient_of(x.here, d.here), gradient_of(x.there, d.there));
    }
    twin_expect_no_findings();
}
