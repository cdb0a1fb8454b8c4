/* conv2d, conv_transpose2d and conv2d_backward_weight against direct loops. A setting has an image x, weights, and a gradient of
 * the shape of conv2d's result, which is what the transposed one takes: its result then has the shape of x. */
#include "faults.h"
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A layout of images besides those of every tensor. */
#define CHANNELS_LAST LAYOUT_COUNT
#define LAYOUTS (LAYOUT_COUNT + 1)

typedef struct problem {
    int64_t batch, channels, height, width; /* batch -1: images without that dim */
    int64_t made, rows, columns;            /* weight [made, channels / groups, rows, columns] */
    eddy_attributes_conv attributes;
} problem;

typedef struct setting {
    const problem *p;
    eddy_dtype dtype;
    int l;
    int64_t images, made_height, made_width;
    tensor x, weight, grad, bias, x_bias;
} setting;

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static double least_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-1074
           : dtype == EDDY_F32 ? 0x1p-149
           : dtype == EDDY_F16 ? 0x1p-24
                               : 0x1p-133;
}

static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation) {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

static tensor image_make(const problem *p, eddy_dtype dtype, int64_t channels, int64_t height,
                         int64_t width, int l) {
    int32_t skipped = p->batch < 0 ? 1 : 0, rank = 4 - skipped;
    const int64_t shape[] = {p->batch, channels, height, width},
                  last[] = {p->batch, height, width, channels};
    if (l != CHANNELS_LAST)
        return tensor_make(dtype, rank, shape + skipped, (layout)l);
    tensor t = tensor_make(dtype, rank, last + skipped, CONTIGUOUS);
    int64_t stride = t.strides[rank - 1];
    memcpy(t.shape, shape + skipped, sizeof(int64_t) * (size_t)rank);
    for (int32_t d = rank - 1; d > rank - 3; d--)
        t.strides[d] = t.strides[d - 1];
    t.strides[rank - 3] = stride;
    return t;
}

static setting make(const problem *p, eddy_dtype dtype, int l) {
    const eddy_attributes_conv *a = &p->attributes;
    setting s = {.p = p, .dtype = dtype, .l = l, .images = p->batch < 0 ? 1 : p->batch};
    s.made_height =
        windows(p->height, p->rows, a->stride.height, a->padding.height, a->dilation.height);
    s.made_width =
        windows(p->width, p->columns, a->stride.width, a->padding.width, a->dilation.width);
    const int64_t weight[] = {p->made, p->channels / a->groups, p->rows, p->columns};
    layout plain = l == CHANNELS_LAST ? CONTIGUOUS : (layout)l;
    s.x = image_make(p, dtype, p->channels, p->height, p->width, l);
    s.grad = image_make(p, dtype, p->made, s.made_height, s.made_width, l);
    s.weight = tensor_make(dtype, 4, weight, plain);
    s.bias = tensor_make(dtype, 1, &p->made, plain);
    s.x_bias = tensor_make(dtype, 1, &p->channels, plain);
    tensor_fill(&s.x, 2), tensor_fill(&s.weight, 1), tensor_fill(&s.grad, 2);
    tensor_fill(&s.bias, 1), tensor_fill(&s.x_bias, 1);
    return s;
}

static void drop(setting *s) {
    tensor *all[] = {&s->x, &s->weight, &s->grad, &s->bias, &s->x_bias};
    for (int i = 0; i < 5; i++)
        tensor_free(all[i]);
}

/* ---- what is to come ---- */

typedef struct total {
    long double value, size; /* the sum of the terms, and of their absolute values */
    int64_t terms;
} total;

typedef struct answer {
    total *totals;
    int64_t count;
} answer;

static answer answer_make(int64_t count) {
    return (answer){calloc((size_t)count + 1, sizeof(total)), count};
}

static void answer_add(answer *a, int64_t at, long double value) {
    a->totals[at].value += value;
    a->totals[at].size += fabsl(value);
    a->totals[at].terms++;
}

/* A sum of n terms, each rounded, in any order: n roundings of no more than the terms' sizes (Higham, Accuracy and Stability
 * of Numerical Algorithms, 4.2), then one to the dtype. */
static void answer_check(answer *a, const char *name, const setting *s, const tensor *got) {
    const problem *p = s->p;
    double unit = unit_of(s->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
    cr_assert_eq(a->count, got->count);
    for (int64_t i = 0; i < a->count; i++) {
        const total *want = &a->totals[i];
        long double bound = (long double)(want->terms + 1) * unit / 2 * want->size +
                            unit_of(s->dtype) * fabsl(want->value) + least_of(s->dtype);
        cr_assert(fabsl(tensor_get(got, i) - want->value) <= bound,
                  "%s layout %d channels %lld -> %lld window %lld x %lld element %lld: %g, not %g "
                  "(bound %g)",
                  describe(name, got, CONTIGUOUS), s->l, (long long)p->channels, (long long)p->made,
                  (long long)p->rows, (long long)p->columns, (long long)i, tensor_get(got, i),
                  (double)want->value, (double)bound);
    }
    cr_assert(tensor_guards_hold(got), "%s layout %d", describe(name, got, CONTIGUOUS), s->l);
    free(a->totals);
}

typedef struct answers {
    answer out, dx, dweight;
} answers;

static void add_biases(const setting *s, answers *a) {
    int64_t places = s->made_height * s->made_width, pixels = s->p->height * s->p->width;
    for (int64_t i = 0; i < a->out.count; i++)
        answer_add(&a->out, i, tensor_get(&s->bias, i / places % s->p->made));
    for (int64_t i = 0; i < a->dx.count; i++)
        answer_add(&a->dx, i, tensor_get(&s->x_bias, i / pixels % s->p->channels));
}

/* The elements, row-major. */
typedef struct elements {
    double *x, *weight, *grad;
} elements;

static double *elements_of(const tensor *t) {
    double *all = malloc(sizeof(double) * (size_t)(t->count + 1));
    for (int64_t i = 0; i < t->count; i++)
        all[i] = tensor_get(t, i);
    return all;
}

/* All that window (row, column) of image n does to channel `made` of the result. */
static void add_window(const setting *s, const elements *e, answers *a, int64_t n, int64_t made,
                       int64_t row, int64_t column) {
    const problem *p = s->p;
    const eddy_attributes_conv *at = &p->attributes;
    int64_t channels = p->channels / at->groups, first = made / (p->made / at->groups) * channels;
    int64_t out = ((n * p->made + made) * s->made_height + row) * s->made_width + column;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < p->rows; i++)
            for (int64_t j = 0; j < p->columns; j++) {
                int64_t y = row * at->stride.height - at->padding.height + i * at->dilation.height;
                int64_t x = column * at->stride.width - at->padding.width + j * at->dilation.width;
                if (y < 0 || y >= p->height || x < 0 || x >= p->width)
                    continue;
                int64_t in = ((n * p->channels + first + c) * p->height + y) * p->width + x;
                int64_t weight = ((made * channels + c) * p->rows + i) * p->columns + j;
                long double xs = e->x[in], ws = e->weight[weight], gs = e->grad[out];
                answer_add(&a->out, out, xs * ws);
                answer_add(&a->dx, in, gs * ws);
                answer_add(&a->dweight, weight, gs * xs);
            }
}

static answers answers_of(const setting *s, bool has_bias) {
    answers a = {answer_make(s->grad.count), answer_make(s->x.count), answer_make(s->weight.count)};
    if (has_bias)
        add_biases(s, &a);
    elements e = {elements_of(&s->x), elements_of(&s->weight), elements_of(&s->grad)};
    for (int64_t n = 0; n < s->images; n++)
        for (int64_t made = 0; made < s->p->made; made++)
            for (int64_t row = 0; row < s->made_height; row++)
                for (int64_t column = 0; column < s->made_width; column++)
                    add_window(s, &e, &a, n, made, row, column);
    free(e.x), free(e.weight), free(e.grad);
    return a;
}

/* ---- running ---- */

typedef struct results {
    tensor out, dx, dweight;
} results;

static results results_make(const setting *s, int out) {
    const problem *p = s->p;
    const int64_t weight[] = {p->made, p->channels / p->attributes.groups, p->rows, p->columns};
    return (results){
        image_make(p, s->dtype, p->made, s->made_height, s->made_width, out),
        image_make(p, s->dtype, p->channels, p->height, p->width, out),
        tensor_make(s->dtype, 4, weight, out == CHANNELS_LAST ? CONTIGUOUS : (layout)out)};
}

static void run_into(setting *s, results *r, bool has_bias, eddy_kernel_team *team) {
    const eddy_attributes_conv *a = &s->p->attributes;
    tensor *bias = has_bias ? &s->bias : NULL, *x_bias = has_bias ? &s->x_bias : NULL;
    tensor *forward[] = {&s->x, &s->weight, bias, &r->out},
           *back[] = {&s->grad, &s->weight, x_bias, &r->dx};
    tensor *of_weight[] = {&s->grad, &s->x, &r->dweight};
    cr_assert_eq(run_kernel(&eddy_cpu_conv2d, forward, 4, a, team, NULL), 0);
    cr_assert_eq(run_kernel(&eddy_cpu_conv_transpose2d, back, 4, a, team, NULL), 0);
    cr_assert_eq(run_kernel(&eddy_cpu_conv2d_backward_weight, of_weight, 3, a, team, NULL), 0);
}

static results run(setting *s, int out, bool has_bias, eddy_kernel_team *team) {
    results r = results_make(s, out);
    run_into(s, &r, has_bias, team);
    return r;
}

static void results_free(results *r) {
    tensor_free(&r->out), tensor_free(&r->dx), tensor_free(&r->dweight);
}

static void check(const problem *p, eddy_dtype dtype, int l) {
    setting s = make(p, dtype, l);
    bool has_bias = test_below(2);
    int out = test_below(2) ? CHANNELS_LAST : (int)test_below(OUTPUT_LAYOUTS);
    results r = run(&s, out, has_bias, &serial_team),
            again = run(&s, out, has_bias, &shuffling_team);
    answers a = answers_of(&s, has_bias);
    answer_check(&a.out, "conv2d", &s, &r.out);
    answer_check(&a.dx, "conv_transpose2d", &s, &r.dx);
    answer_check(&a.dweight, "conv2d_backward_weight", &s, &r.dweight);
    cr_assert(tensor_same(&r.out, &again.out) && tensor_same(&r.dx, &again.dx) &&
                  tensor_same(&r.dweight, &again.dweight),
              "%s: slices show", describe("conv2d", &r.out, CONTIGUOUS));
    results_free(&r), results_free(&again);
    drop(&s);
}

#define OPTIONS(sh, sw, ph, pw, dh, dw, g)                                                         \
    { {sh, sw}, {ph, pw}, {dh, dw}, g }

static const problem small[] = {
    {1, 1, 1, 1, 1, 1, 1, OPTIONS(1, 1, 0, 0, 1, 1, 1)},
    {2, 3, 5, 7, 4, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {-1, 3, 5, 7, 4, 3, 2, OPTIONS(1, 1, 0, 1, 1, 1, 1)},
    {2, 4, 6, 5, 6, 2, 3, OPTIONS(2, 1, 1, 0, 1, 2, 2)},
    {2, 5, 9, 8, 5, 3, 3, OPTIONS(2, 2, 1, 1, 1, 1, 5)},   /* depthwise */
    {1, 3, 7, 6, 6, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 3)},   /* two of each channel */
    {1, 2, 11, 10, 3, 2, 1, OPTIONS(3, 4, 0, 0, 1, 1, 1)}, /* windows that skip places */
    {1, 2, 13, 12, 3, 3, 2,
     OPTIONS(4, 2, 2, 3, 2, 4, 1)}, /* strides and dilations with common divisors */
    {2, 2, 17, 5, 2, 3, 2, OPTIONS(3, 2, 1, 0, 5, 3, 1)}, /* and without */
    {3, 8, 6, 6, 5, 1, 1, OPTIONS(1, 1, 0, 0, 1, 1, 1)},  /* matrices as they lie */
    {3, 8, 6, 6, 6, 1, 1, OPTIONS(1, 1, 0, 0, 1, 1, 2)},
    {2, 4, 7, 6, 5, 1, 1, OPTIONS(2, 2, 0, 0, 1, 1, 1)},
    {2, 4, 3, 3, 5, 1, 1, OPTIONS(1, 1, 1, 2, 1, 1, 1)},
    {2, 3, 4, 5, 4, 4, 5, OPTIONS(1, 1, 0, 0, 1, 1, 1)}, /* one window */
    {2, 3, 2, 2, 4, 3, 3, OPTIONS(1, 1, 3, 3, 1, 1, 1)}, /* windows that see nothing */
    {0, 3, 5, 5, 4, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 0, 5, 5, 4, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 3, 5, 5, 0, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 3, 0, 5, 4, 2, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
};

Test(conv, every_dtype_and_layout, .timeout = 300) {
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
            for (int l = 0; l < LAYOUTS; l++)
                check(&small[i], floats[d], l);
}

Test(conv, random_geometry, .timeout = 300) {
    for (int round = 0; round < 600; round++) {
        eddy_attributes_conv a =
            OPTIONS(1 + test_below(4), 1 + test_below(4), test_below(4), test_below(4),
                    1 + test_below(3), 1 + test_below(3), 1 + test_below(3));
        problem p = {.batch = test_below(4) - 1,
                     .channels = a.groups * (1 + test_below(4)),
                     .height = 1 + test_below(12),
                     .width = 1 + test_below(12),
                     .made = a.groups * (1 + test_below(4)),
                     .rows = 1 + test_below(4),
                     .columns = 1 + test_below(4),
                     .attributes = a};
        if (a.dilation.height * (p.rows - 1) + 1 > p.height + 2 * a.padding.height ||
            a.dilation.width * (p.columns - 1) + 1 > p.width + 2 * a.padding.width)
            continue;
        check(&p, floats[test_below(4)], (int)test_below(LAYOUTS));
    }
}

/* Transposed ones of few places and many channels, whose products are scattered: strides, holes, groups, what is dropped past the
 * edges, what no window reaches, and more work than others of these have. */
static const problem scattered[] = {
    {1, 16, 2, 2, 16, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 5, 4, 3, 20, 3, 2, OPTIONS(2, 1, 1, 0, 1, 2, 1)},
    {-1, 6, 7, 6, 24, 3, 3, OPTIONS(2, 2, 1, 1, 2, 1, 2)},
    {1, 3, 9, 7, 24, 4, 3, OPTIONS(3, 2, 2, 1, 1, 2, 3)},
    {3, 7, 3, 3, 32, 2, 2, OPTIONS(1, 1, 0, 0, 1, 1, 1)},
    {2, 4, 8, 9, 40, 2, 2, OPTIONS(3, 4, 0, 0, 1, 1, 1)},
    {1, 96, 2, 2, 100, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 70, 4, 4, 40, 4, 4, OPTIONS(1, 1, 0, 0, 1, 1, 1)},
    {2, 4, 3, 3, 24, 1, 1, OPTIONS(1, 1, 0, 0, 1, 1, 1)},
    {1, 1, 4, 5, 24, 1, 3, OPTIONS(1, 1, 0, 1, 1, 1, 1)},
};

Test(conv, few_places_of_many_channels, .timeout = 300) {
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof(scattered) / sizeof(scattered[0]); i++)
            for (int l = 0; l < LAYOUTS; l++)
                check(&scattered[i], floats[d], l);
}

/* Several tiles, blocks of channels and chunks of sums, and their edges. The last two are for transposed ones: windows with holes
 * that may be turned round, and windows that see less than a turned one does. */
static const problem large[] = {
    {2, 16, 30, 31, 24, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {5, 1, 28, 28, 32, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {1, 64, 14, 14, 130, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)},
    {2, 70, 9, 9, 33, 3, 3, OPTIONS(2, 2, 1, 1, 1, 1, 1)},
    {2, 48, 17, 16, 48, 5, 3, OPTIONS(1, 2, 2, 1, 1, 1, 48)},
    {1, 3, 64, 65, 16, 7, 7, OPTIONS(2, 2, 3, 3, 1, 1, 1)},
    {3, 40, 19, 19, 36, 1, 1, OPTIONS(1, 1, 0, 0, 1, 1, 1)},
    {2, 36, 12, 13, 20, 4, 4, OPTIONS(2, 2, 1, 1, 1, 1, 2)},
    {1, 16, 1, 640, 16, 1, 3, OPTIONS(1, 1, 0, 1, 1, 1, 1)},
    {8, 16, 1, 70, 16, 1, 3, OPTIONS(1, 1, 0, 1, 1, 1, 1)},
    {2, 16, 20, 37, 16, 3, 3, OPTIONS(1, 1, 2, 2, 2, 2, 1)},
    {2, 16, 18, 35, 16, 3, 3, OPTIONS(1, 1, 1, 3, 1, 1, 1)},
};

Test(conv, tiles_and_their_edges, .timeout = 300) {
    static const int layouts[] = {CONTIGUOUS, CHANNELS_LAST, STRIDED};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
            check(&large[i], floats[d], layouts[(i + (size_t)d) % 3]);
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        check(&large[i], EDDY_F32, CONTIGUOUS);
        check(&large[i], EDDY_F32, CHANNELS_LAST);
        check(&large[i], EDDY_F32, STRIDED);
    }
}

/* Few images, which are cut into rows: windows that overlap, that skip rows, and that have holes. */
static const problem few[] = {
    {1, 32, 61, 40, 64, 3, 3, OPTIONS(2, 1, 1, 1, 2, 1, 1)},
    {1, 32, 62, 33, 64, 3, 3, OPTIONS(4, 1, 0, 1, 1, 1, 1)},
    {3, 32, 40, 37, 48, 5, 3, OPTIONS(3, 2, 2, 1, 1, 1, 1)},
    {-1, 48, 37, 23, 64, 3, 3, OPTIONS(1, 1, 2, 0, 1, 1, 2)},
};

Test(conv, rows_and_their_edges, .timeout = 300) {
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        check(&few[i], EDDY_F32, CONTIGUOUS);
        check(&few[i], EDDY_F32, CHANNELS_LAST);
        check(&few[i], EDDY_BF16, i % 2 ? CONTIGUOUS : CHANNELS_LAST);
        check(&few[i], EDDY_F16, i % 2 ? CHANNELS_LAST : STRIDED);
    }
}

/* Windows of one place that stride over few channels, of which a vector holds more. */
static const problem strided[] = {
    {8, 6, 33, 32, 24, 1, 1, OPTIONS(2, 2, 0, 0, 1, 1, 1)},
    {8, 3, 64, 32, 24, 1, 1, OPTIONS(2, 1, 0, 0, 1, 1, 1)},
    {8, 1, 64, 64, 24, 1, 1, OPTIONS(2, 1, 0, 0, 1, 1, 1)},
    {8, 5, 32, 65, 24, 1, 1, OPTIONS(1, 2, 0, 0, 1, 1, 1)},
    {4, 12, 40, 40, 24, 1, 1, OPTIONS(3, 2, 0, 0, 1, 1, 1)},
    {4, 12, 40, 40, 24, 1, 1, OPTIONS(2, 2, 0, 0, 1, 1, 2)},
};

Test(conv, strides_over_few_channels, .timeout = 300) {
    for (size_t i = 0; i < sizeof(strided) / sizeof(strided[0]); i++)
        for (int d = 0; d < 4; d++) {
            check(&strided[i], floats[d], CHANNELS_LAST);
            check(&strided[i], floats[d], CONTIGUOUS);
        }
}

/* Images all alike, of which no more are on their way at once than buffers have room for: each has the bits of one alone. */
Test(conv, large_images_are_cut_into_rows, .timeout = 300) {
    enum { IMAGES = 40 };
    const problem many = {IMAGES, 16, 128, 128, 16, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)};
    problem single = many;
    single.batch = 1;
    setting all = make(&many, EDDY_BF16, BROADCAST), one = make(&single, EDDY_BF16, BROADCAST);
    tensor *from[] = {&all.x, &all.weight, &all.grad, &all.bias, &all.x_bias},
           *to[] = {&one.x, &one.weight, &one.grad, &one.bias, &one.x_bias};
    for (int t = 0; t < 5; t++)
        for (int64_t i = 0; i < to[t]->count; i++)
            tensor_set(to[t], i, tensor_get(from[t], i));
    results of_all = run(&all, CONTIGUOUS, true, &threaded_team),
            of_one = run(&one, CONTIGUOUS, true, &serial_team);
    size_t bytes = (size_t)of_one.out.count * sizeof(uint16_t);
    for (int64_t i = 0; i < IMAGES; i++) {
        cr_assert_eq(
            memcmp(tensor_at(&of_all.out, i * of_one.out.count), tensor_at(&of_one.out, 0), bytes),
            0, "image %lld", (long long)i);
        cr_assert_eq(
            memcmp(tensor_at(&of_all.dx, i * of_one.dx.count), tensor_at(&of_one.dx, 0), bytes), 0,
            "image %lld of the transposed one", (long long)i);
    }
    results_free(&of_all), results_free(&of_one);
    drop(&all), drop(&one);
}

/* What a call takes beside its operands: buffers and weights, whatever the images take. */
Test(conv, buffers_of_large_images_are_bounded) {
    enum { IMAGES = 32, CHANNELS = 32, SIDE = 512 };
    static const int64_t image[] = {IMAGES, CHANNELS, SIDE, SIDE},
                         window[] = {CHANNELS, CHANNELS, 3, 3}, dense[] = {CHANNELS * 9, 9, 3, 1},
                         none[] = {0};
    static const int64_t lies[2][4] = {{CHANNELS * SIDE * SIDE, SIDE * SIDE, SIDE, 1},
                                       {CHANNELS * SIDE * SIDE, 1, SIDE * CHANNELS, CHANNELS}};
    static const eddy_kernel *const kernels[] = {&eddy_cpu_conv2d, &eddy_cpu_conv_transpose2d};
    const eddy_attributes_conv a = OPTIONS(1, 1, 1, 1, 1, 1, 1);
    for (int i = 0; i < 16; i++) {
        eddy_dtype dtype = floats[i / 4];
        eddy_op_view x = {NULL, image, lies[i % 2], dtype, 4}, w = {NULL, window, dense, dtype, 4};
        const eddy_op_view views[] = {x, w, {NULL, none, none, dtype, -1}, x};
        eddy_kernel_error error = {.position = INT64_MAX};
        eddy_kernel_plan plan = planned_only(&(eddy_kernel_call){.kernel = kernels[i / 2 % 2],
                                                                 .views = views,
                                                                 .view_count = 4,
                                                                 .attributes = &a,
                                                                 .team = &serial_team,
                                                                 .error = &error});
        cr_assert_leq(plan.workspace_bytes, (size_t)66 << 20, "dtype %d, kernel %d, layout %d: %zu",
                      (int)dtype, i / 2 % 2, i % 2, plan.workspace_bytes);
    }
}

Test(conv, threads_do_not_show, .timeout = 300) {
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        for (int l = 0; l < 2; l++) {
            int lies = l == 0 ? CONTIGUOUS : CHANNELS_LAST;
            setting s = make(&large[i], EDDY_F32, lies);
            results one = run(&s, lies, true, &serial_team),
                    many = run(&s, lies, true, &threaded_team);
            cr_assert(tensor_same(&one.out, &many.out) && tensor_same(&one.dx, &many.dx) &&
                          tensor_same(&one.dweight, &many.dweight),
                      "problem %zu layout %d", i, lies);
            results_free(&one), results_free(&many);
            drop(&s);
        }
}

/* A problem of ones, whose sums are exact. */
typedef struct ones {
    problem p;
    setting s;
    results r;
} ones;

static void ones_make(ones *o, int64_t width) {
    o->p = (problem){1, 8, 18, width, 16, 3, 3, OPTIONS(1, 1, 0, 0, 1, 1, 1)};
    o->s = make(&o->p, EDDY_F32, CONTIGUOUS);
    o->r = results_make(&o->s, CHANNELS_LAST);
    tensor *all[] = {&o->s.x, &o->s.weight, &o->s.grad};
    for (int t = 0; t < 3; t++)
        for (int64_t i = 0; i < all[t]->count; i++)
            tensor_set(all[t], i, 1);
}

static void ones_check(ones *o) {
    for (int64_t i = 0; i < o->r.out.count; i++)
        cr_assert_eq(tensor_get(&o->r.out, i), 72, "width %lld", (long long)o->p.width);
    for (int64_t i = 0; i < o->r.dweight.count; i++)
        cr_assert_eq(tensor_get(&o->r.dweight, i), (double)(16 * (o->p.width - 2)), "width %lld",
                     (long long)o->p.width);
    results_free(&o->r);
    drop(&o->s);
}

/* What is prepared for a geometry is dropped when there are many others, and made again. */
Test(conv, more_geometries_than_are_kept, .timeout = 300) {
    for (int64_t i = 0; i < 300; i++) {
        ones o;
        ones_make(&o, 14 + i % 150);
        run_into(&o.s, &o.r, false, &serial_team);
        ones_check(&o);
    }
}

/* Of slices: the first, those in the middle and the last differ. */
Test(conv, memory_that_lacks_fails_the_call_alone, .timeout = 300) {
    const problem p = {1, 32, 61, 40, 64, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)};
    for (int l = 0; l < 2; l++) {
        setting s = make(&p, EDDY_F32, l == 0 ? CONTIGUOUS : CHANNELS_LAST);
        results r = results_make(&s, s.l);
        faults_check(
            &(faulted){&eddy_cpu_conv2d, {&s.x, &s.weight, &s.bias, &r.out}, 4, &p.attributes, 3});
        faults_check(&(faulted){
            &eddy_cpu_conv_transpose2d, {&s.grad, &s.weight, NULL, &r.dx}, 4, &p.attributes, 3});
        faults_check(&(faulted){
            &eddy_cpu_conv2d_backward_weight, {&s.grad, &s.x, &r.dweight}, 3, &p.attributes, 3});
        results_free(&r);
        drop(&s);
    }
}

enum { EACH = 100, THREADS = 4 };

static void *run_each(void *context) {
    ones *all = context;
    for (int i = 0; i < EACH; i++)
        run_into(&all[i].s, &all[i].r, false, &serial_team);
    return NULL;
}

Test(conv, threads_prepare_at_once, .timeout = 300) {
    pthread_t threads[THREADS];
    ones *all = calloc(THREADS * EACH, sizeof(*all));
    for (int64_t i = 0; i < THREADS * EACH; i++)
        ones_make(&all[i], 14 + (i % EACH + i / EACH * 40) % 130);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_each, &all[i * EACH]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS * EACH; i++)
        ones_check(&all[i]);
    free(all);
}

/* Results too small for all digits are rounded as others are. */
Test(conv, denormal_results_are_kept) {
    const problem p = {2, 16, 16, 16, 16, 1, 3, OPTIONS(1, 1, 0, 0, 1, 1, 1)};
    for (int d = 0; d < 4; d++)
        for (int l = 0; l < 2; l++) {
            double least = least_of(floats[d]), big = floats[d] == EDDY_F16 ? 0x1p-12 : 0x1p-60;
            setting s = make(&p, floats[d], l == 0 ? CONTIGUOUS : CHANNELS_LAST);
            for (int64_t i = 0; i < s.x.count; i++)
                tensor_set(&s.x, i, big);
            for (int64_t i = 0; i < s.grad.count; i++)
                tensor_set(&s.grad, i, big);
            for (int64_t i = 0; i < s.weight.count; i++)
                tensor_set(&s.weight, i, i % 48 == 0 ? 3 * least / big : 0);
            results r = run(&s, s.l, false, &serial_team);
            for (int64_t i = 0; i < r.out.count; i++)
                cr_assert_eq(tensor_get(&r.out, i), 3 * least, "%s",
                             describe("conv2d", &r.out, CONTIGUOUS));
            for (int64_t i = 0; i < r.dx.count; i++)
                cr_assert_eq(tensor_get(&r.dx, i),
                             i / 256 % 16 == 0 && i % 16 < 14 ? 48 * least : 0, "%s %lld",
                             describe("conv_transpose2d", &r.dx, CONTIGUOUS), (long long)i);
            results_free(&r);
            drop(&s);
        }
}

/* A NaN is in the windows that see it, and in no other. */
Test(conv, nan_stays_in_its_windows) {
    const problem p = {1, 2, 9, 9, 3, 3, 3, OPTIONS(1, 1, 1, 1, 1, 1, 1)};
    for (int l = 0; l < 2; l++) {
        int lies = l == 0 ? CONTIGUOUS : CHANNELS_LAST;
        setting s = make(&p, EDDY_F32, lies);
        tensor_set(&s.x, 81 + 4 * 9 + 6, NAN);
        results r = run(&s, lies, false, &serial_team);
        for (int64_t i = 0; i < r.out.count; i++) {
            bool is_near = llabs(i % 81 / 9 - 4) <= 1 && llabs(i % 9 - 6) <= 1;
            cr_assert_eq((bool)isnan(tensor_get(&r.out, i)), is_near, "%lld", (long long)i);
        }
        for (int64_t i = 0; i < r.dweight.count; i++)
            cr_assert_eq((bool)isnan(tensor_get(&r.dweight, i)), i / 9 % 2 == 1, "%lld",
                         (long long)i);
        results_free(&r);
        drop(&s);
    }
}
