/* Random decisions: what their rules accept and refuse, and the public functions. */
#include "inferring.h"
#include <eddy/eddy.h>
#include <math.h>

Test(infer_sample, probabilities_and_counts_are_checked) {
    eddy_arguments_dropout a = {.p = 0.5};
    ACCEPTS(dropout, &a, BF16, EDDY_SHAPE(2, 0), SPEC(BF16, 2, 0));
    REFUSES(dropout, &a, DTYPE_MISMATCH, "x must be", SPEC(I32, 2));
    a.p = 1.5;
    REFUSES(dropout, &a, INVALID_ARGUMENT, "p is 1.5", SPEC(F32, 2));
    eddy_arguments_dropout_backward b = {.p = (double)NAN};
    REFUSES(dropout_backward, &b, INVALID_ARGUMENT, "no probability", SPEC(F32, 2));
    eddy_arguments_bernoulli p = {0};
    ACCEPTS(bernoulli, &p, F64, EDDY_SHAPE(3), SPEC(F64, 3));
    REFUSES(bernoulli, &p, DTYPE_MISMATCH, "p must be", SPEC(BOOL, 3));
    eddy_arguments_multinomial m = {.count = 4};
    ACCEPTS(multinomial, &m, I64, EDDY_SHAPE(2, 4), SPEC(F16, 2, 4));
    REFUSES(multinomial, &m, INVALID_ARGUMENT, "3 classes do not suffice", SPEC(F32, 3));
    m.has_replacement = true;
    ACCEPTS(multinomial, &m, I64, EDDY_SHAPE(4), SPEC(F32, 3));
    REFUSES(multinomial, &m, INVALID_ARGUMENT, "0 classes", SPEC(F32, 2, 0));
    REFUSES(multinomial, &m, SHAPE_MISMATCH, "[K] or [N, K]", SPEC(F32, ));
    REFUSES(multinomial, &m, DTYPE_MISMATCH, "weights must be", SPEC(I64, 3));
    m.count = -1;
    REFUSES(multinomial, &m, INVALID_ARGUMENT, "-1 are no draws", SPEC(F32, 3));
}

Test(infer_sample, randint_fits_its_dtype) {
    const struct {
        int64_t low, high;
        eddy_dtype dtype;
        bool fits;
    } cases[] = {
        {0, 256, EDDY_U8, true},       {0, 257, EDDY_U8, false},        {-1, 5, EDDY_U8, false},
        {-128, 128, EDDY_I8, true},    {INT64_MIN, 0, EDDY_I64, true},  {3, 3, EDDY_I64, false},
        {4, 3, EDDY_I64, false},       {0, 2, EDDY_BOOL, false},        {0, 2, EDDY_F32, false},
        {0, 2, (eddy_dtype)99, false}, {0, INT64_MAX, EDDY_I32, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eddy_arguments_randint a = {.kernel = {.low = cases[i].low, .high = cases[i].high},
                                    .shape = EDDY_SHAPE(2, 3),
                                    .dtype = cases[i].dtype};
        eddy_spec out[1];
        eddy_status status = infer_of(&eddy_op_randint, NULL, 0, &a, out);
        cr_assert_eq(status, cases[i].fits ? EDDY_OK : EDDY_INVALID_ARGUMENT, "case %zu", i);
    }
}

Test(infer_sample, public_functions_draw_from_the_generator) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *g = eddy_generator_create(42);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1000), EDDY_F32, NULL);
    eddy_tensor *y = eddy_dropout(x, EDDY_S(0.25), EDDY_OPTIONS(dropout, .generator = g));
    eddy_tensor *back = eddy_dropout_backward(x, EDDY_S(0.25), 42, 0);
    float a[1000], b[1000], kept = 0;
    cr_assert_eq(eddy_read(y, a, sizeof(a), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(back, b, sizeof(b), NULL), EDDY_OK);
    cr_assert_eq(memcmp(a, b, sizeof(a)), 0);
    for (int i = 0; i < 1000; i++)
        kept += a[i] != 0;
    cr_assert(kept > 700 && kept < 800);
    cr_assert_eq(eddy_item_f64(eddy_sum(eddy_bernoulli(x, EDDY_OPTIONS(bernoulli, .generator = g)),
                                        EDDY_ALL_AXES, NULL),
                               NULL),
                 1000);
    eddy_tensor *drawn = eddy_multinomial(x, 5, EDDY_OPTIONS(multinomial, .generator = g));
    cr_assert(eddy_dtype_of(drawn) == EDDY_I64 && eddy_count_of(drawn) == 5);
    drawn = eddy_randint(6, 7, EDDY_SHAPE(3), EDDY_I8, EDDY_OPTIONS(randint, .generator = g));
    cr_assert_eq(eddy_item_i64(eddy_sum(drawn, EDDY_ALL_AXES, NULL), NULL), 18);
    uint64_t seed, counter;
    cr_assert_eq(eddy_generator_state(g, &seed, &counter), EDDY_OK);
    cr_assert_eq(counter, 4);
    const float twos[] = {0.5f, 2};
    eddy_tensor *bad = eddy_bernoulli(eddy_from_data(twos, EDDY_SHAPE(2), EDDY_F32, NULL), NULL);
    cr_assert_eq(eddy_read(bad, a, 2 * sizeof(float), NULL), EDDY_INVALID_ARGUMENT);
    eddy_error error;
    (void)eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "position 1"), "%s", error.message);
    eddy_generator_release(&g);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
