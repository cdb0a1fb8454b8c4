/* dropout, bernoulli and multinomial: each decision against the Philox word that makes it, frequencies against probabilities
 * (the seeds are fixed, so that a run that passes always passes). */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <kernels/math.h>
#include <kernels/philox.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

/* 24 bits of the word of element i. */
static double uniform(uint64_t seed, uint64_t counter, int64_t i) {
    uint32_t w[4];
    eddy_philox(seed, counter, (uint64_t)i / 4, w);
    return (double)(w[i % 4] >> 8) * 0x1p-24;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static void check_dropout(eddy_dtype dtype, int32_t rank, const int64_t *shape, layout a, layout b,
                          double p, eddy_kernel_team *team) {
    tensor x = tensor_make(dtype, rank, shape, a), out = tensor_make(dtype, rank, shape, b);
    tensor back = tensor_make(dtype, rank, shape, b);
    tensor_fill(&x, 3);
    eddy_attributes_dropout forward = {.seed = UINT64_C(0xfedcba9876543210), .counter = 7, .p = p};
    eddy_attributes_dropout_backward backward = {
        .seed = (int64_t)UINT64_C(0xfedcba9876543210), .counter = 7, .p = p};
    run_kernel(&eddy_cpu_dropout, (tensor *[]){&x, &out}, 2, &forward, team, NULL);
    run_kernel(&eddy_cpu_dropout_backward, (tensor *[]){&x, &back}, 2, &backward, &shuffling_team,
               NULL);
    cr_assert(tensor_same(&out, &back), "%s: the gradient has another mask",
              describe("dropout", &x, a));
    for (int64_t i = 0; i < x.count; i++) {
        double want =
            uniform(forward.seed, forward.counter, i) >= p ? tensor_get(&x, i) / (1 - p) : 0;
        double got = tensor_get(&out, i);
        cr_assert(fabs(got - want) <= 2 * unit_of(dtype) * fabs(want),
                  "%s element %lld: %g, not %g", describe("dropout", &x, a), (long long)i, got,
                  want);
    }
    cr_assert(tensor_guards_hold(&out) && tensor_guards_hold(&back));
    tensor_free(&x), tensor_free(&out), tensor_free(&back);
}

Test(sample, dropout_of_every_dtype_and_layout) {
    const int64_t shapes[][3] = {{3, 5, 7}, {1, 1, 1}, {2, 0, 3}, {5, 31, 7}};
    const double probabilities[] = {0, 0.1, 0.5, 0.999, 1};
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 4; n++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int p = 0; p < 5; p++)
                    check_dropout(floats[d], 3, shapes[n], (layout)a,
                                  (layout)test_below(OUTPUT_LAYOUTS), probabilities[p],
                                  &serial_team);
    const int64_t big[] = {3, 129, 211};
    for (int d = 0; d < 4; d++)
        check_dropout(floats[d], 3, big, TURNED, CONTIGUOUS, 0.3, &threaded_team);
    const int64_t across[] = {37, 1003};
    for (int d = 0; d < 4; d++)
        for (int b = 0; b < OUTPUT_LAYOUTS; b++)
            check_dropout(floats[d], 2, across, TURNED, (layout)b, 0.3, &threaded_team);
}

Test(sample, dropout_drops_nan_and_keeps_it) {
    const int64_t n = 100;
    tensor x = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set(&x, i, i % 2 ? NAN : INFINITY);
    eddy_attributes_dropout attributes = {.seed = 1, .p = 0.5};
    run_kernel(&eddy_cpu_dropout, (tensor *[]){&x, &out}, 2, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < n; i++) {
        double got = tensor_get(&out, i);
        if (uniform(1, 0, i) < 0.5)
            cr_assert_eq(got, 0);
        else
            cr_assert(i % 2 ? isnan(got) : isinf(got));
    }
    tensor_free(&x), tensor_free(&out);
}

Test(sample, bernoulli_of_every_dtype_and_layout) {
    const int64_t shapes[][3] = {{7, 31, 97}, {1, 31, 701}};
    eddy_attributes_random attributes = {.seed = 77, .counter = 5};
    for (int d = 0; d < 4; d++)
        for (int a = 0; a < 2 * LAYOUT_COUNT; a++) {
            const int64_t *shape = shapes[a / LAYOUT_COUNT];
            layout lies = (layout)(a % LAYOUT_COUNT);
            tensor p = tensor_make(floats[d], 3, shape, lies);
            tensor out = tensor_make(floats[d], 3, shape, (layout)test_below(OUTPUT_LAYOUTS));
            for (int64_t i = 0; i < p.count; i++)
                tensor_set(&p, i, lies == BROADCAST ? 0.25 : test_unit());
            cr_assert_eq(run_kernel(&eddy_cpu_bernoulli, (tensor *[]){&p, &out}, 2, &attributes,
                                    a % 2 ? &shuffling_team : &threaded_team, NULL),
                         0);
            double ones = 0, expected = 0;
            for (int64_t i = 0; i < p.count; i++) {
                uint32_t w[4];
                eddy_philox(77, 5, (uint64_t)i / 2, w);
                uint64_t bits = (uint64_t)w[i % 2 * 2] << 32 | w[i % 2 * 2 + 1];
                double u =
                    floats[d] == EDDY_F64 ? (double)(bits >> 11) * 0x1p-53 : uniform(77, 5, i);
                cr_assert_eq(tensor_get(&out, i), u < tensor_get(&p, i), "%s element %lld",
                             describe("bernoulli", &p, lies), (long long)i);
                ones += tensor_get(&out, i);
                expected += tensor_get(&p, i);
            }
            cr_assert(fabs(ones - expected) < 0.02 * (double)p.count);
            cr_assert(tensor_guards_hold(&out));
            tensor_free(&p), tensor_free(&out);
        }
}

Test(sample, bernoulli_refuses_the_first_number_that_is_no_probability) {
    const int64_t n = 40000;
    tensor p = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set(&p, i, i % 2);
    tensor_set(&p, 39999, NAN), tensor_set(&p, 31000, 1.5), tensor_set(&p, 30001, -0.25);
    eddy_attributes_random attributes = {0};
    eddy_kernel_error error;
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int t = 0; t < 3; t++) {
        cr_assert_eq(run_kernel(&eddy_cpu_bernoulli, (tensor *[]){&p, &out}, 2, &attributes,
                                teams[t], &error),
                     EDDY_INVALID_ARGUMENT);
        cr_assert_eq(error.position, 30001);
    }
    tensor_free(&p), tensor_free(&out);
}

static void check_multinomial(eddy_dtype dtype, layout a, bool replacement,
                              eddy_kernel_team *team) {
    enum { ROWS = 5000, CLASSES = 6, DRAWS = 3 };
    const int64_t shape[] = {ROWS, CLASSES}, drawn[] = {ROWS, DRAWS};
    const double weights[CLASSES] = {1, 0, 2, 4, 0.5, 0.5};
    tensor w = tensor_make(dtype, 2, shape, a);
    tensor out = tensor_make(EDDY_I64, 2, drawn, STRIDED),
           again = tensor_make(EDDY_I64, 2, drawn, CONTIGUOUS);
    for (int64_t i = 0; i < w.count; i++)
        tensor_set(&w, i, weights[i % CLASSES]);
    eddy_attributes_multinomial attributes = {
        .seed = 11, .counter = 3, .count = DRAWS, .has_replacement = replacement};
    cr_assert_eq(
        run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &out}, 2, &attributes, team, NULL), 0);
    cr_assert_eq(run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &again}, 2, &attributes,
                            &shuffling_team, NULL),
                 0);
    cr_assert(tensor_same(&out, &again), "slices show");
    double first[CLASSES] = {0}, second[CLASSES] = {0};
    for (int64_t r = 0; r < ROWS; r++) {
        int64_t classes[DRAWS];
        for (int64_t d = 0; d < DRAWS; d++) {
            classes[d] = tensor_get_int(&out, r * DRAWS + d);
            cr_assert(classes[d] >= 0 && classes[d] < CLASSES && weights[classes[d]] > 0);
        }
        if (!replacement)
            cr_assert(classes[0] != classes[1] && classes[0] != classes[2] &&
                      classes[1] != classes[2]);
        first[classes[0]] += 1.0 / ROWS;
        second[classes[1]] += 1.0 / ROWS;
    }
    for (int c = 0; c < CLASSES; c++) {
        cr_assert_float_eq(first[c], weights[c] / 8, 0.03, "class %d comes first in %g", c,
                           first[c]);
        double want =
            replacement ? weights[c] / 8 : 0; /* without: after another, which is then missing */
        for (int other = 0; other < CLASSES && !replacement; other++)
            if (other != c)
                want += weights[other] / 8 * weights[c] / (8 - weights[other]);
        cr_assert_float_eq(second[c], want, 0.03, "class %d comes second in %g, not %g", c,
                           second[c], want);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&w), tensor_free(&out), tensor_free(&again);
}

Test(sample, multinomial_follows_the_weights) {
    for (int d = 0; d < 4; d++)
        for (int a = 0; a < LAYOUT_COUNT; a++)
            for (int replacement = 0; replacement < 2; replacement++)
                check_multinomial(floats[d], (layout)a, replacement,
                                  a % 2 ? &serial_team : &threaded_team);
}

/* 53 bits of a draw's block. */
static double draw_of(const eddy_attributes_multinomial *attributes, int64_t number) {
    uint32_t w[4];
    eddy_philox(attributes->seed, attributes->counter, (uint64_t)number, w);
    return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11) * 0x1p-53;
}

static void check_draws(int64_t rows, int64_t classes, int64_t draws, layout a,
                        eddy_kernel_team *team) {
    const int64_t shape[] = {rows, classes}, drawn[] = {rows, draws};
    tensor w = tensor_make(EDDY_F32, 2, shape, a), out = tensor_make(EDDY_I64, 2, drawn, STRIDED);
    for (int64_t i = 0; i < w.count; i++)
        tensor_set(&w, i,
                   i % classes == 0                  ? 1e-3
                   : test_below(3) == 0 || i % 7 > 4 ? 0
                                                     : test_unit());
    eddy_attributes_multinomial attributes = {
        .seed = 99, .counter = 12, .count = draws, .has_replacement = true};
    cr_assert_eq(
        run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &out}, 2, &attributes, team, NULL), 0);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, whole = 0;
        for (int64_t c = 0; c < classes; c++)
            whole += tensor_get(&w, r * classes + c);
        for (int64_t d = 0; d < draws; d++) {
            double at = draw_of(&attributes, r * draws + d) * whole;
            int64_t class = 0;
            for (sum = tensor_get(&w, r * classes); sum <= at;
                 sum += tensor_get(&w, r * classes + class))
                class ++;
            cr_assert_eq(tensor_get_int(&out, r * draws + d), class,
                         "%s draw %lld of row %lld: %lld, not %lld", describe("multinomial", &w, a),
                         (long long)d, (long long)r, (long long)tensor_get_int(&out, r * draws + d),
                         (long long)class);
        }
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&w), tensor_free(&out);
}

Test(sample, multinomial_draws_the_class_whose_running_sum_comes_first_above_the_number) {
    const int64_t sizes[][3] = {{1, 1, 5},     {1, 5, 100},  {3, 1023, 3},
                                {4, 1024, 70}, {5, 1025, 2}, {6, 3000, 129},
                                {67, 1025, 3}, {130, 77, 5}, {5003, 3, 2}};
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int n = 0; n < 9; n++)
        for (int a = 0; a < BROADCAST; a++)
            check_draws(sizes[n][0], sizes[n][1], sizes[n][2], (layout)a, teams[(n + a) % 3]);
}

static void check_draws_once(int64_t rows, int64_t classes, int64_t draws, layout a,
                             eddy_kernel_team *team) {
    const int64_t shape[] = {rows, classes}, drawn[] = {rows, draws};
    tensor w = tensor_make(EDDY_F64, 2, shape, a), out = tensor_make(EDDY_I64, 2, drawn, STRIDED);
    for (int64_t i = 0; i < w.count; i++)
        tensor_set(&w, i,
                   i % 5 == 1 ? 0
                              : ldexp(test_unit() + 0.1, i % 3 == 0 ? -(int)test_below(1000) : 0));
    eddy_attributes_multinomial attributes = {.seed = 98, .counter = 11, .count = draws};
    cr_assert_eq(
        run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &out}, 2, &attributes, team, NULL), 0);
    double *keys = malloc((size_t)classes * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < classes; c++) {
            double weight = tensor_get(&w, r * classes + c);
            keys[c] = weight > 0 ? -eddy_log_f64(1 - draw_of(&attributes, r * classes + c)) / weight
                                 : NAN;
        }
        for (int64_t d = 0; d < draws; d++) {
            int64_t least = -1;
            for (int64_t c = 0; c < classes; c++)
                if (!isnan(keys[c]) && (least < 0 || keys[c] < keys[least]))
                    least = c;
            cr_assert_eq(tensor_get_int(&out, r * draws + d), least,
                         "%s draw %lld of row %lld: %lld, not %lld", describe("multinomial", &w, a),
                         (long long)d, (long long)r, (long long)tensor_get_int(&out, r * draws + d),
                         (long long)least);
            keys[least] = NAN;
        }
    }
    free(keys);
    tensor_free(&w), tensor_free(&out);
}

Test(sample, multinomial_without_replacement_draws_the_smallest_exponential_variables) {
    const int64_t sizes[][3] = {{1, 1, 1}, {3, 100, 80}, {5, 1025, 7}, {2, 3000, 1}, {700, 30, 4}};
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int n = 0; n < 5; n++)
        for (int a = 0; a < BROADCAST; a++)
            check_draws_once(sizes[n][0], sizes[n][1], sizes[n][2], (layout)a, teams[(n + a) % 3]);
}

Test(sample, multinomial_draws_all_classes_there_are) {
    const int64_t n = 300, drawn = 299;
    tensor w = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           out = tensor_make(EDDY_I64, 1, &drawn, CONTIGUOUS);
    tensor one = tensor_make(EDDY_I64, 1, &(int64_t){1}, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set(&w, i, i == 123 ? 0 : 1 + (double)(i % 7));
    eddy_attributes_multinomial attributes = {.seed = 1, .count = drawn};
    cr_assert_eq(run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &out}, 2, &attributes,
                            &serial_team, NULL),
                 0);
    char seen[300] = {0};
    for (int64_t i = 0; i < drawn; i++)
        seen[tensor_get_int(&out, i)]++;
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(seen[i], i != 123);
    attributes.count = 1; /* one class of weight above 0 is always the answer */
    for (int64_t i = 0; i < n; i++)
        tensor_set(&w, i, i == 299);
    for (int replacement = 0; replacement < 2; replacement++) {
        attributes.has_replacement = replacement;
        run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &one}, 2, &attributes, &serial_team,
                   NULL);
        cr_assert_eq(tensor_get_int(&one, 0), 299);
    }
    tensor_free(&w), tensor_free(&out), tensor_free(&one);
}

Test(sample, multinomial_refuses_rows_that_are_no_distribution) {
    const double bad[][3] = {{0, 0, 0}, {1, -1, 1}, {1, NAN, 1}, {1, INFINITY, 1}, {1, 0, 0}};
    for (int b = 0; b < 10; b++)
        for (int replacement = 0; replacement < 2; replacement++) {
            /* Many rows go side by side. */
            const int64_t rows = b < 5 ? 3 : 9001, first = b < 5 ? 1 : 6002, shape[] = {rows, 3},
                          drawn[] = {rows, 2};
            tensor w = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
                   out = tensor_make(EDDY_I64, 2, drawn, CONTIGUOUS);
            for (int64_t i = 0; i < w.count; i++)
                tensor_set(&w, i, i < first * 3 ? 1 : bad[b % 5][i % 3]);
            eddy_attributes_multinomial attributes = {.count = 2, .has_replacement = replacement};
            eddy_kernel_error error;
            eddy_status status = run_kernel(&eddy_cpu_multinomial, (tensor *[]){&w, &out}, 2,
                                            &attributes, &shuffling_team, &error);
            bool suffices = b % 5 == 4 && replacement;
            cr_assert_eq(status, suffices ? EDDY_OK : EDDY_INVALID_ARGUMENT, "case %d", b);
            if (!suffices)
                cr_assert_eq(error.position, first);
            tensor_free(&w), tensor_free(&out);
        }
}
