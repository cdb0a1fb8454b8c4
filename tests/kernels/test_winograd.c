/* The fast kernels of convolutions: which of them compute by Winograd's algorithm, and all of them against direct loops in double precision.
 *
 * Winograd's algorithm, F(4 x 4, 3 x 3), multiplies sums of elements of a tile of 6 x 6 places, and sums products: with points 0, 1, -1, 2, -2
 * the products that belong to one tap of the window are together up to WORST times as large as what the direct sum would add for it (the
 * largest entry of |A'| (|G| e) * (|B'| 1), squared for two dims; other points in use have less). Each is rounded once for each channel that
 * is summed, and at most 24 times in the transformations: 6 + 3 + 6 terms in either dim, of which up to 3 are one. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include "winograd.h"
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORST (88.0 / 3 * 88.0 / 3)
#define TRANSFORMED 24
#define UNIT 0x1p-24
#define TILE 4

typedef struct problem {
    int64_t images, channels, side, made, padding;
    bool is_last;
    const char *why_not; /* it is not computed by Winograd's algorithm; NULL: it is */
} problem;

static const problem problems[] = {
    {16, 32, 14, 32, 1, true, NULL},
    {5, 32, 15, 48, 1, true, NULL},
    {5, 48, 15, 32, 1, false, NULL},
    {18, 32, 9, 40, 0, true, NULL},
    {20, 36, 13, 32, 1, true, NULL},
    {20, 33, 12, 35, 0, false, NULL},
    {1, 32, 33, 64, 1, true, NULL},
    {50, 32, 14, 32, 2, true, "padding that the library does not have"},
    {16, 31, 14, 32, 1, true, "too few channels"},
    {16, 32, 14, 31, 1, true, "too few channels of the result"},
    {64, 32, 6, 32, 1, true, "too small"},
    {3, 32, 14, 32, 1, true, "too few tiles"},
};

typedef struct setting {
    const problem *p;
    int64_t made_side;
    tensor x, weight, y;
    tensor biases[3]; /* per operand; the weight has none */
    eddy_attributes_conv attributes;
} setting;

static tensor images(int64_t count, int64_t channels, int64_t side, bool is_last) {
    const int64_t first[] = {count, channels, side, side}, last[] = {count, side, side, channels};
    if (!is_last)
        return tensor_make(EDDY_F32, 4, first, CONTIGUOUS);
    tensor t = tensor_make(EDDY_F32, 4, last, CONTIGUOUS);
    memcpy(t.shape, first, sizeof(first));
    t.strides[3] = t.strides[2];
    t.strides[2] = t.strides[1];
    t.strides[1] = 1;
    t.strides[3] = channels;
    t.strides[2] = side * channels;
    return t;
}

static setting make(const problem *p) {
    setting s = {.p = p, .made_side = p->side + 2 * p->padding - 2};
    const int64_t weight[] = {p->made, p->channels, 3, 3};
    s.x = images(p->images, p->channels, p->side, p->is_last);
    s.y = images(p->images, p->made, s.made_side, p->is_last);
    s.weight = tensor_make(EDDY_F32, 4, weight, CONTIGUOUS);
    const int64_t biases[] = {p->channels, 1, p->made};
    for (int i = 0; i < 3; i++) {
        s.biases[i] = tensor_make(EDDY_F32, 1, &biases[i], CONTIGUOUS);
        tensor_fill(&s.biases[i], 1);
    }
    tensor_fill(&s.x, 2), tensor_fill(&s.y, 2), tensor_fill(&s.weight, 1);
    s.attributes = (eddy_attributes_conv){
        .stride = {1, 1}, .padding = {p->padding, p->padding}, .dilation = {1, 1}, .groups = 1};
    return s;
}

static void drop(setting *s) {
    tensor *all[] = {&s->x, &s->weight, &s->y, &s->biases[0], &s->biases[1], &s->biases[2]};
    for (int i = 0; i < 6; i++)
        tensor_free(all[i]);
}

static double largest(const tensor *t) {
    double most = 0;
    for (int64_t i = 0; i < t->count; i++)
        most = fmax(most, fabs(tensor_get(t, i)));
    return most;
}

/* The direct sums of one operand, from the others: 0 x, 1 weight, 2 y. */
static double *sums_of(const setting *s, int result, int64_t count, double *const *values) {
    const problem *p = s->p;
    double *sums = calloc((size_t)count, sizeof(*sums));
    int64_t m = s->made_side, h = p->side;
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t o = 0; o < p->made; o++)
            for (int64_t i = 0; i < m * m * 9; i++) {
                int64_t place = i / 9, k = i % 9, row = place / m + k / 3 - p->padding,
                        column = place % m + k % 3 - p->padding;
                if (row < 0 || row >= h || column < 0 || column >= h)
                    continue;
                for (int64_t c = 0; c < p->channels; c++) {
                    int64_t at[] = {((n * p->channels + c) * h + row) * h + column,
                                    (o * p->channels + c) * 9 + k,
                                    (n * p->made + o) * m * m + place};
                    int a = (result + 1) % 3, b = (result + 2) % 3;
                    sums[at[result]] += values[a][at[a]] * values[b][at[b]];
                }
            }
    return sums;
}

static double *numbers(const tensor *t) {
    double *all = malloc((size_t)t->count * sizeof(*all));
    for (int64_t i = 0; i < t->count; i++)
        all[i] = tensor_get(t, i);
    return all;
}

/* The largest sum of magnitudes over all elements with the same number in one dim, which has `count` numbers, `inner` elements each in a row. */
static double largest_sum(const tensor *t, int64_t count, int64_t inner) {
    double most = 0;
    for (int64_t number = 0; number < count; number++) {
        double sum = 0;
        for (int64_t i = 0; i < t->count; i++)
            if (i / inner % count == number)
                sum += fabs(tensor_get(t, i));
        most = fmax(most, sum);
    }
    return most;
}

static double bound_of(const setting *s, int result) {
    const problem *p = s->p;
    int64_t side = (s->made_side + TILE - 1) / TILE, tiles = p->images * side * side;
    double terms, roundings;
    if (result == 2) {
        terms = largest(&s->x) * largest_sum(&s->weight, p->made, p->channels * 9);
        roundings = (double)p->channels;
    } else if (result == 0) {
        terms = largest(&s->y) * largest_sum(&s->weight, p->channels, 9);
        roundings = (double)p->made;
    } else {
        terms = largest(&s->x) * largest_sum(&s->y, p->made, s->made_side * s->made_side);
        roundings = (double)tiles;
    }
    return WORST * (roundings + TRANSFORMED) * UNIT * terms;
}

/* bias: of the result's channels; NULL: none. */
static void expect(const setting *s, int result, const eddy_kernel *kernel, tensor *const *tensors,
                   int32_t count, const tensor *bias) {
    const tensor *out = tensors[count - 1];
    double *values[] = {numbers(&s->x), numbers(&s->weight), numbers(&s->y)};
    double *sums = sums_of(s, result, out->count, values), bound = bound_of(s, result);
    cr_assert_eq(run_kernel(kernel, tensors, count, &s->attributes, &serial_team, NULL), EDDY_OK);
    int64_t places = out->shape[2] * out->shape[3];
    for (int64_t i = 0; i < out->count; i++) {
        double want = sums[i] + (bias ? tensor_get(bias, i / places % out->shape[1]) : 0),
               got = tensor_get(out, i);
        cr_assert(fabs(got - want) <= bound, "problem %d result %d at %lld: %g, not %g (%g)",
                  (int)(s->p - problems), result, (long long)i, got, want, bound);
    }
    cr_assert(tensor_guards_hold(out));
    for (int i = 0; i < 3; i++)
        free(values[i]);
    free(sums);
}

static void expect_all(setting *s, bool has_bias) {
    tensor *bias = has_bias ? &s->biases[2] : NULL, *x_bias = has_bias ? &s->biases[0] : NULL;
    tensor x = images(s->p->images, s->p->channels, s->p->side, s->p->is_last),
           y = images(s->p->images, s->p->made, s->made_side, s->p->is_last),
           weight = tensor_make(EDDY_F32, 4, s->weight.shape, CONTIGUOUS);
    expect(s, 2, eddy_cpu_conv2d.fast, (tensor *[]){&s->x, &s->weight, bias, &y}, 4, bias);
    expect(s, 0, eddy_cpu_conv_transpose2d.fast, (tensor *[]){&s->y, &s->weight, x_bias, &x}, 4,
           x_bias);
    expect(s, 1, eddy_cpu_conv2d_backward_weight.fast, (tensor *[]){&s->y, &s->x, &weight}, 3,
           NULL);
    tensor_free(&x), tensor_free(&y), tensor_free(&weight);
}

Test(winograd, random_images_are_within_the_bound) {
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
        setting s = make(&problems[i]);
        expect_all(&s, i % 2 == 0);
        drop(&s);
    }
}

/* With one number that is not 0 in the weights, and one in each image, the bound is far below the results: a tap that is taken for another shows. */
Test(winograd, each_tap_is_where_it_should_be) {
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
        setting s = make(&problems[i]);
        for (int64_t k = 0; k < s.weight.count; k++)
            tensor_set(&s.weight, k, 0);
        tensor_set(&s.weight, test_below(s.weight.count), 1);
        for (int64_t k = 0; k < s.y.count; k++)
            tensor_set(&s.y, k, 0);
        for (int64_t n = 0; n < s.p->images; n++)
            tensor_set(&s.y, n * s.y.count / s.p->images + test_below(s.y.count / s.p->images), 1);
        expect_all(&s, i % 2 == 1);
        drop(&s);
    }
}

/* What the plan says of how it computes. */
static const char *way_of(const eddy_kernel *kernel, tensor *const *tensors, int32_t count,
                          const void *attributes) {
    eddy_op_view views[4];
    for (int32_t i = 0; i < count; i++) {
        views[i] = tensors[i] ? tensors[i]->view : (eddy_op_view){.rank = -1};
        views[i].shape = tensors[i] ? tensors[i]->shape : NULL;
        views[i].strides = tensors[i] ? tensors[i]->strides : NULL;
    }
    eddy_kernel_call call = {
        .kernel = kernel, .views = views, .view_count = count, .attributes = attributes};
    planned_call planned;
    planned_begin(&planned, &call);
    const char *way = kernel->way(planned.memory);
    planned_end(&planned, &call);
    return way;
}

/* Without Winograd's algorithm, or where it is not for the call, the fast kernel gives the bits of the other one. */
static void expect_way(const setting *s, int result, const eddy_kernel *kernel,
                       tensor *const *tensors, int32_t count, bool is_for_winograd) {
    bool is_winograd = is_for_winograd && winograd_is_there();
    cr_assert_null(kernel->way);
    cr_assert_str_eq(way_of(kernel->fast, tensors, count, &s->attributes),
                     is_winograd ? "winograd" : "direct", "problem %d result %d",
                     (int)(s->p - problems), result);
    tensor *out = tensors[count - 1];
    cr_assert_eq(run_kernel(kernel, tensors, count, &s->attributes, &serial_team, NULL), EDDY_OK);
    double *plain = numbers(out), most = 0;
    cr_assert_eq(run_kernel(kernel->fast, tensors, count, &s->attributes, &serial_team, NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < out->count; i++)
        most = fmax(most, fabs(tensor_get(out, i) - plain[i]));
    cr_assert_eq(most > 0, is_winograd, "problem %d result %d: %g", (int)(s->p - problems), result,
                 most);
    free(plain);
}

Test(winograd, it_runs_where_it_is_there_and_pays) {
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
        setting s = make(&problems[i]);
        bool is_for_winograd = !s.p->why_not;
        tensor x = images(s.p->images, s.p->channels, s.p->side, s.p->is_last),
               y = images(s.p->images, s.p->made, s.made_side, s.p->is_last),
               weight = tensor_make(EDDY_F32, 4, s.weight.shape, CONTIGUOUS);
        expect_way(&s, 2, &eddy_cpu_conv2d, (tensor *[]){&s.x, &s.weight, &s.biases[2], &y}, 4,
                   is_for_winograd);
        expect_way(&s, 0, &eddy_cpu_conv_transpose2d, (tensor *[]){&s.y, &s.weight, NULL, &x}, 4,
                   is_for_winograd);
        expect_way(&s, 0, &eddy_cpu_conv_transpose2d,
                   (tensor *[]){&s.y, &s.weight, &s.biases[0], &x}, 4, false);
        expect_way(&s, 1, &eddy_cpu_conv2d_backward_weight, (tensor *[]){&s.y, &s.x, &weight}, 3,
                   is_for_winograd);
        tensor_free(&x), tensor_free(&y), tensor_free(&weight);
        drop(&s);
    }
}

/* Slices depend on shapes alone: a team gives the same bits. */
Test(winograd, the_team_changes_no_bit) {
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
        setting s = make(&problems[i]);
        tensor y[2];
        for (int k = 0; k < 2; k++) {
            y[k] = images(s.p->images, s.p->made, s.made_side, s.p->is_last);
            cr_assert_eq(run_kernel(eddy_cpu_conv2d.fast,
                                    (tensor *[]){&s.x, &s.weight, NULL, &y[k]}, 4, &s.attributes,
                                    k == 0 ? &serial_team : &shuffling_team, NULL),
                         EDDY_OK);
        }
        cr_assert(tensor_same(&y[0], &y[1]));
        tensor_free(&y[0]), tensor_free(&y[1]);
        drop(&s);
    }
}
