/* Pooling against plain loops over each window. */
#include "faults.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH_DTYPE(d) for (int d = 0; d < EDDY_DTYPE_COUNT; d++)

typedef struct problem {
    int32_t rank;
    int64_t shape[4];
    eddy_attributes_pool pool;
    int64_t out[2];
} problem;

static const problem problems[] = {
    {4, {2, 3, 8, 10}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {4, 5}},
    {4, {2, 3, 8, 10}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {4, 5}},
    {4, {1, 17, 7, 5}, {{3, 2}, {1, 3}, {1, 1}, {1, 1}, 0, false}, {7, 2}},
    {4, {2, 1, 9, 11}, {{2, 3}, {3, 1}, {1, 2}, {2, 2}, 0, false}, {3, 11}},
    {4, {2, 3, 9, 11}, {{2, 2}, {4, 3}, {0, 0}, {2, 2}, 0, false}, {2, 3}},
    {4, {3, 70, 3, 4}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, false}, {3, 4}},
    {4, {2, 9, 1, 1}, {{1, 1}, {5, 5}, {0, 0}, {1, 1}, 0, false}, {1, 1}},
    {3, {5, 6, 7}, {{3, 5}, {3, 5}, {1, 0}, {1, 1}, 0, false}, {2, 1}},
    /* is_ceil_mode: the last windows reach beyond the padding */
    {4, {2, 2, 6, 8}, {{3, 5}, {2, 4}, {0, 1}, {1, 1}, 0, false}, {3, 3}},
    {4, {1, 2, 1, 3}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {1, 2}},
    {4, {2, 4, 7, 7}, {{7, 7}, {7, 7}, {0, 0}, {1, 1}, 0, false}, {1, 1}},
    {4, {0, 4, 7, 7}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {3, 3}},
    {3, {0, 4, 4}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {2, 2}},
    {4, {1, 3, 5, 600}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 0, false}, {5, 600}},
    {4, {1, 300, 5, 4}, {{3, 3}, {1, 2}, {1, 1}, {1, 1}, 0, false}, {5, 2}},
    /* strides between windows, and windows that are wide, far apart or both */
    {4, {2, 3, 9, 31}, {{2, 3}, {3, 4}, {1, 1}, {1, 1}, 0, false}, {4, 8}},
    {4, {1, 2, 40, 70}, {{7, 7}, {3, 3}, {3, 3}, {1, 1}, 0, false}, {14, 24}},
    {4, {1, 1, 45, 120}, {{40, 40}, {1, 3}, {0, 20}, {1, 1}, 0, false}, {6, 41}},
    {4, {1, 3, 7, 90}, {{1, 2}, {4, 33}, {0, 1}, {1, 1}, 0, false}, {2, 3}},
    /* columns in pairs */
    {4, {2, 3, 13, 25}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {6, 12}},
    {4, {1, 2, 7, 70}, {{3, 2}, {4, 2}, {0, 0}, {1, 1}, 0, false}, {2, 35}},
    {3, {2, 9, 33}, {{2, 2}, {5, 2}, {0, 0}, {3, 1}, 0, false}, {2, 16}},
};
#define PROBLEMS (sizeof(problems) / sizeof(problems[0]))

static void output_shape(const problem *p, int64_t *shape) {
    memcpy(shape, p->shape, sizeof(p->shape));
    shape[p->rank - 2] = p->out[0];
    shape[p->rank - 1] = p->out[1];
}

static eddy_kernel_team *any_team(void) {
    return test_below(2) ? &serial_team : &shuffling_team;
}

/* Places two kinds of NaN, infinities and zeros here and there. */
static void spice(tensor *x) {
    const double values[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0, 0.0};
    for (int64_t i = 0; i < x->count / 10 && eddy_dtype_is_float(x->view.dtype); i++)
        tensor_set(x, test_below(x->count), values[test_below(6)]);
}

static bool is_larger(const tensor *x, int64_t a, int64_t b) {
    if (!eddy_dtype_is_float(x->view.dtype))
        return tensor_get_int(x, a) > tensor_get_int(x, b);
    double left = tensor_get(x, a), right = tensor_get(x, b);
    return left > right || (isnan(left) && !isnan(right));
}

/* The flat number in x of the largest element of the window of output `flat`. */
static int64_t largest(const problem *p, const tensor *x, int64_t flat) {
    int64_t height = p->shape[p->rank - 2], width = p->shape[p->rank - 1], best = -1;
    int64_t ow = flat % p->out[1], oh = flat / p->out[1] % p->out[0],
            plane = flat / p->out[1] / p->out[0];
    for (int64_t r = 0; r < p->pool.kernel_size.height; r++)
        for (int64_t c = 0; c < p->pool.kernel_size.width; c++) {
            int64_t h =
                oh * p->pool.stride.height - p->pool.padding.height + r * p->pool.dilation.height;
            int64_t w =
                ow * p->pool.stride.width - p->pool.padding.width + c * p->pool.dilation.width;
            int64_t at = (plane * height + h) * width + w;
            if (h < 0 || w < 0 || h >= height || w >= width)
                continue;
            if (best < 0 || is_larger(x, at, best))
                best = at;
        }
    return best;
}

static void check_max(const problem *p, eddy_dtype dtype, layout in, layout out) {
    int64_t shape[4];
    output_shape(p, shape);
    tensor x = tensor_make(dtype, p->rank, p->shape, in);
    tensor values = tensor_make(dtype, p->rank, shape, out),
           again = tensor_make(dtype, p->rank, shape, out);
    tensor indices = tensor_make(EDDY_I64, p->rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor_fill(&x, 100);
    if (in != BROADCAST)
        spice(&x);
    run_kernel(&eddy_cpu_max_pool2d, (tensor *[]){&x, &values}, 2, &p->pool, any_team(), NULL);
    run_kernel(&eddy_cpu_max_pool2d_with_indices, (tensor *[]){&x, &again, &indices}, 3, &p->pool,
               any_team(), NULL);
    int64_t plane = p->shape[p->rank - 2] * p->shape[p->rank - 1];
    for (int64_t i = 0; i < values.count; i++) {
        int64_t at = largest(p, &x, i);
        cr_assert_eq(tensor_get_int(&indices, i), at % plane,
                     "%s problem %td index %lld: %lld, not %lld", describe("max_pool2d", &x, in),
                     p - problems, (long long)i, (long long)tensor_get_int(&indices, i),
                     (long long)(at % plane));
        double got = tensor_get(&values, i), want = tensor_get(&x, at);
        cr_assert(got == want || (isnan(got) && isnan(want)),
                  "%s problem %td element %lld: %a, not %a", describe("max_pool2d", &x, in),
                  p - problems, (long long)i, got, want);
    }
    cr_assert(tensor_same(&values, &again), "%s", describe("max_pool2d", &x, in));
    cr_assert(tensor_guards_hold(&values) && tensor_guards_hold(&again) &&
              tensor_guards_hold(&indices));
    tensor_free(&x), tensor_free(&values), tensor_free(&again), tensor_free(&indices);
}

Test(pool, max_of_every_dtype_and_layout, .timeout = 300) {
    EACH_DTYPE(d) {
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int in = 0; in < LAYOUT_COUNT; in++)
                check_max(&problems[i], (eddy_dtype)d, (layout)in,
                          (layout)test_below(OUTPUT_LAYOUTS));
    }
}

/* From memory [N, H, W, C] to memory [N, H, W, C]. */
static tensor channels_last_at(eddy_dtype dtype, const int64_t *shape, layout begins) {
    const int64_t memory[] = {shape[0], shape[2], shape[3], shape[1]};
    tensor t = tensor_make(dtype, 4, memory, begins);
    memcpy(t.shape, shape, 4 * sizeof(int64_t));
    const int64_t strides[] = {t.strides[0], t.strides[3], t.strides[1], t.strides[2]};
    memcpy(t.strides, strides, sizeof(strides));
    return t;
}

static tensor channels_last(eddy_dtype dtype, const int64_t *shape) {
    return channels_last_at(dtype, shape, CONTIGUOUS);
}

Test(pool, layouts_give_the_same_bits) {
    const eddy_kernel *const kernels[] = {&eddy_cpu_max_pool2d, &eddy_cpu_avg_pool2d,
                                          &eddy_cpu_adaptive_avg_pool2d};
    const eddy_kernel *const gradients[] = {&eddy_cpu_avg_pool2d_backward,
                                            &eddy_cpu_adaptive_avg_pool2d_backward};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16, EDDY_I32};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < PROBLEMS; i++) {
            const problem *p = &problems[i];
            if (p->rank != 4)
                continue;
            int64_t shape[4];
            output_shape(p, shape);
            tensor rows = tensor_make(dtypes[d], 4, p->shape, CONTIGUOUS),
                   x = channels_last(dtypes[d], p->shape);
            tensor want = tensor_make(dtypes[d], 4, shape, CONTIGUOUS),
                   got = channels_last(dtypes[d], shape);
            tensor_fill(&rows, 100);
            for (int64_t k = 0; k < x.count; k++)
                tensor_set(&x, k, tensor_get(&rows, k));
            for (int k = 0; k < (d < 3 && p->pool.dilation.height == 1 ? 3 : 1); k++) {
                run_kernel(kernels[k], (tensor *[]){&rows, &want}, 2, &p->pool, &serial_team, NULL);
                run_kernel(kernels[k], (tensor *[]){&x, &got}, 2, &p->pool, any_team(), NULL);
                /* Averages of f32 are summed in sequence where channels are last. */
                cr_assert((dtypes[d] == EDDY_F32 && k > 0) || tensor_same(&want, &got),
                          "%s problem %zu", describe(kernels[k]->name, &got, CONTIGUOUS), i);
                cr_assert(tensor_guards_hold(&got));
            }
            for (int64_t k = 0; k < got.count; k++)
                tensor_set(&got, k, tensor_get(&want, k));
            /* As gradients: from the small images to the large ones. */
            for (int k = 0; k < (d < 3 && p->pool.dilation.height == 1 ? 2 : 0); k++) {
                run_kernel(gradients[k], (tensor *[]){&want, &rows}, 2, &p->pool, &serial_team,
                           NULL);
                run_kernel(gradients[k], (tensor *[]){&got, &x}, 2, &p->pool, any_team(), NULL);
                cr_assert(tensor_same(&rows, &x), "%s problem %zu",
                          describe(gradients[k]->name, &x, CONTIGUOUS), i);
            }
            tensor_free(&rows), tensor_free(&x), tensor_free(&want), tensor_free(&got);
        }
}

static void check_max_backward(const problem *p, eddy_dtype dtype, layout in, layout out) {
    int64_t shape[4];
    output_shape(p, shape);
    int64_t plane = p->shape[p->rank - 2] * p->shape[p->rank - 1], small = p->out[0] * p->out[1];
    tensor grad = tensor_make(dtype, p->rank, shape, in),
           dx = tensor_make(dtype, p->rank, p->shape, out);
    tensor indices = tensor_make(EDDY_I64, p->rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor_fill(&grad, 10);
    double *want = calloc((size_t)dx.count + 1, sizeof(double)),
           *size = calloc((size_t)dx.count + 1, sizeof(double));
    for (int64_t i = 0; i < indices.count; i++) {
        int64_t index = test_below(plane), at = i / small * plane + index;
        tensor_set_int(&indices, i, index);
        want[at] += tensor_get(&grad, i);
        size[at] += fabs(tensor_get(&grad, i));
    }
    cr_assert_eq(run_kernel(&eddy_cpu_max_pool2d_backward, (tensor *[]){&grad, &indices, &dx}, 3,
                            NULL, any_team(), NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < dx.count; i++) {
        double got = tensor_get(&dx, i);
        /* Sums of up to 3000 in f32 or f64, rounded once to 16 bits. */
        double bound =
            size[i] * (dtype == EDDY_F64 ? 0x1p-40 : 0x1p-12) + (dtype == EDDY_F16    ? 0x1p-11
                                                                 : dtype == EDDY_BF16 ? 0x1p-8
                                                                                      : 0) *
                                                                    fabs(want[i]);
        cr_assert(fabs(got - want[i]) <= bound, "%s problem %td element %lld: %a, not %a",
                  describe("max_pool2d_backward", &dx, out), p - problems, (long long)i, got,
                  want[i]);
    }
    cr_assert(tensor_guards_hold(&dx), "%s", describe("max_pool2d_backward", &dx, out));
    free(want), free(size);
    tensor_free(&grad), tensor_free(&indices), tensor_free(&dx);
}

Test(pool, max_backward_of_every_float_and_layout, .timeout = 300) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int out = 0; out < OUTPUT_LAYOUTS; out++)
                check_max_backward(&problems[i], dtypes[d], (layout)test_below(LAYOUT_COUNT),
                                   (layout)out);
}

/* The last image has more elements than a task of all its channels takes. */
Test(pool, max_backward_gives_every_layout_the_same_bits) {
    const int64_t shapes[][4] = {{2, 3, 8, 10}, {3, 70, 3, 4}, {1, 40, 180, 160}};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_BF16};
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 2; d++) {
            const int64_t *shape = shapes[s], small[] = {shape[0], shape[1], 3, 4};
            tensor grad[] = {tensor_make(dtypes[d], 4, small, CONTIGUOUS),
                             channels_last(dtypes[d], small)};
            tensor indices[] = {tensor_make(EDDY_I64, 4, small, CONTIGUOUS),
                                channels_last(EDDY_I64, small)};
            tensor dx[] = {tensor_make(dtypes[d], 4, shape, CONTIGUOUS),
                           channels_last(dtypes[d], shape)};
            tensor_fill(&grad[0], 10);
            for (int64_t i = 0; i < grad[0].count; i++) {
                int64_t index = test_below(shape[2] * shape[3]);
                tensor_set(&grad[1], i, tensor_get(&grad[0], i));
                for (int k = 0; k < 2; k++)
                    tensor_set_int(&indices[k], i, index);
            }
            for (int k = 0; k < 2; k++) {
                run_kernel(&eddy_cpu_max_pool2d_backward,
                           (tensor *[]){&grad[k], &indices[k], &dx[k]}, 3, NULL,
                           k == 0 ? &serial_team : &threaded_team, NULL);
                cr_assert(tensor_guards_hold(&dx[k]));
            }
            cr_assert(tensor_same(&dx[0], &dx[1]), "%s",
                      describe("max_pool2d_backward", &dx[1], CONTIGUOUS));
            for (int k = 0; k < 2; k++)
                tensor_free(&grad[k]), tensor_free(&indices[k]), tensor_free(&dx[k]);
        }
}

/* The second image is read backwards; the message names the first fault whatever the slices. */
Test(pool, max_backward_names_an_index_beyond_its_plane) {
    const int64_t shape[] = {2, 2, 3, 3}, small[] = {2, 2, 2, 2};
    for (int64_t bad = 0; bad < 16; bad++) {
        tensor grad = tensor_make(EDDY_F32, 4, small, CONTIGUOUS),
               dx = tensor_make(EDDY_F32, 4, shape, TURNED);
        tensor indices = tensor_make(EDDY_I64, 4, small, STRIDED);
        tensor_fill(&grad, 10);
        for (int64_t i = 0; i < 16; i++)
            tensor_set_int(&indices, i, i == bad ? (i % 2 ? -1 : 9) : i == 15 ? 9 : 4);
        eddy_kernel_error error;
        cr_assert_eq(run_kernel(&eddy_cpu_max_pool2d_backward, (tensor *[]){&grad, &indices, &dx},
                                3, NULL, any_team(), &error),
                     EDDY_OUT_OF_RANGE);
        cr_assert_eq(error.position, bad);
        cr_assert_eq(error.value, bad % 2 ? -1 : 9);
        cr_assert_eq(error.bound, 9);
        tensor_free(&grad), tensor_free(&indices), tensor_free(&dx);
    }
}

/* What each element of x gets, added up in row-major order of grad: a double, or floats. */
static double *routed(const problem *p, const tensor *x, const tensor *grad) {
    double *sums = calloc((size_t)x->count + 1, sizeof(double));
    for (int64_t i = 0; i < grad->count; i++) {
        int64_t at = largest(p, x, i);
        double sum = sums[at] + tensor_get(grad, i);
        sums[at] = x->view.dtype == EDDY_F64 ? sum : (double)(float)sum;
    }
    return sums;
}

static void expect_routed(const problem *p, const tensor *x, const tensor *grad, const tensor *dx,
                          layout in) {
    double *sums = routed(p, x, grad);
    tensor want = tensor_make(x->view.dtype, p->rank, p->shape, CONTIGUOUS);
    for (int64_t i = 0; i < want.count; i++)
        tensor_set(&want, i, sums[i]);
    for (int64_t i = 0; i < want.count; i++) {
        double got = tensor_get(dx, i), right = tensor_get(&want, i);
        cr_assert(got == right && signbit(got) == signbit(right),
                  "%s problem %td element %lld: %a, not %a",
                  describe("max_pool2d_backward_from_x", dx, in), p - problems, (long long)i, got,
                  right);
    }
    cr_assert(tensor_guards_hold(dx), "%s", describe("max_pool2d_backward_from_x", dx, in));
    free(sums);
    tensor_free(&want);
}

/* Small whole numbers: windows have several largest elements. */
static void fill_with_ties(tensor *x, layout in) {
    tensor_fill(x, 3);
    for (int64_t i = 0; i < x->count; i++)
        tensor_set(x, i, rint(tensor_get(x, i)));
    if (in != BROADCAST)
        spice(x);
}

/* A zero below 0, too. */
static void fill_gradient(tensor *grad) {
    tensor_fill(grad, 10);
    for (int64_t i = 0; i < grad->count / 5; i++)
        tensor_set(grad, test_below(grad->count), -0.0);
}

Test(pool, max_backward_from_x_finds_the_largest_of_every_float_and_layout, .timeout = 300) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int in = 0; in < LAYOUT_COUNT; in++) {
                const problem *p = &problems[i];
                int64_t shape[4];
                output_shape(p, shape);
                tensor x = tensor_make(dtypes[d], p->rank, p->shape, (layout)in);
                tensor dx =
                    tensor_make(dtypes[d], p->rank, p->shape, (layout)test_below(OUTPUT_LAYOUTS));
                tensor grad =
                    tensor_make(dtypes[d], p->rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
                fill_with_ties(&x, (layout)in);
                fill_gradient(&grad);
                run_kernel(&eddy_cpu_max_pool2d_backward_from_x, (tensor *[]){&grad, &x, &dx}, 3,
                           &p->pool, any_team(), NULL);
                expect_routed(p, &x, &grad, &dx, (layout)in);
                tensor_free(&x), tensor_free(&dx), tensor_free(&grad);
            }
}

/* Windows that share nothing, over several slices: they cover all, or leave gaps, ends and corners. Rows and channels of every
 * length that has a loop of its own. */
static const problem apart[] = {
    {4, {3, 32, 28, 28}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {14, 14}},
    {4, {2, 21, 29, 75}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {14, 37}},
    {4, {2, 21, 29, 75}, {{2, 2}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {15, 38}},
    {4, {1, 5, 130, 70}, {{3, 2}, {3, 2}, {0, 0}, {1, 1}, 0, false}, {44, 35}},
    {4, {1, 67, 31, 17}, {{2, 3}, {4, 5}, {1, 0}, {1, 1}, 0, false}, {8, 3}},
    {4, {1, 3, 40, 300}, {{1, 2}, {2, 3}, {0, 1}, {1, 1}, 0, false}, {20, 101}},
    {4, {9, 2, 90, 9}, {{5, 4}, {5, 4}, {2, 2}, {1, 1}, 0, false}, {18, 3}},
    {4,
     {5, 33, 45, 40},
     {{2, 2}, {2, 2}, {1, 0}, {1, 1}, 0, false},
     {23, 20}}, /* more than a megabyte */
};

Test(pool, max_backward_from_x_of_windows_apart_by_slices, .timeout = 300) {
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
        for (int last = 0; last < 2; last++)
            for (int d = 0; d < 2; d++) {
                const problem *p = &apart[i];
                eddy_dtype dtype = d ? EDDY_F64 : EDDY_F32;
                int64_t shape[4];
                output_shape(p, shape);
                tensor x = last ? channels_last(dtype, p->shape)
                                : tensor_make(dtype, 4, p->shape, CONTIGUOUS);
                tensor dx = last ? channels_last(dtype, p->shape)
                                 : tensor_make(dtype, 4, p->shape, CONTIGUOUS);
                tensor grad =
                    last ? channels_last(dtype, shape) : tensor_make(dtype, 4, shape, CONTIGUOUS);
                fill_with_ties(&x, CONTIGUOUS), fill_gradient(&grad);
                run_kernel(&eddy_cpu_max_pool2d_backward_from_x, (tensor *[]){&grad, &x, &dx}, 3,
                           &p->pool, i % 2 ? &threaded_team : &shuffling_team, NULL);
                expect_routed(p, &x, &grad, &dx, CONTIGUOUS);
                tensor_free(&x), tensor_free(&dx), tensor_free(&grad);
            }
}

/* Large enough for oneDNN: several slices, rows of one image, planes that make up no whole images of it, averages whose last
 * windows hang over. */
static const problem large[] = {
    {4, {40, 3, 24, 25}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, false}, {12, 12}},
    {4, {3, 64, 56, 40}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {28, 20}},
    {4, {1, 64, 112, 30}, {{3, 2}, {1, 3}, {1, 1}, {1, 1}, 0, true}, {112, 11}},
    {4, {1, 32, 97, 31}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {49, 16}},
    {4, {2, 16, 60, 50}, {{3, 5}, {2, 4}, {0, 1}, {1, 1}, 0, false}, {30, 13}},
    {4, {2, 16, 60, 50}, {{3, 5}, {2, 4}, {0, 1}, {1, 1}, 0, true}, {30, 13}},
    {4, {2, 16, 60, 50}, {{3, 5}, {2, 4}, {0, 1}, {1, 1}, 7, true}, {29, 12}},
    {4, {16, 100, 7, 7}, {{7, 7}, {7, 7}, {0, 0}, {1, 1}, 0, false}, {1, 1}},
    {4, {1, 5, 130, 400}, {{1, 4}, {1, 1}, {0, 2}, {1, 1}, 0, false}, {130, 401}},
    {4, {1, 16, 113, 112}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {57, 56}},
    {3, {17, 90, 50}, {{5, 1}, {1, 2}, {2, 0}, {1, 1}, 0, false}, {90, 25}},
};
#define LARGE (sizeof(large) / sizeof(large[0]))

/* Dense images go to the library, wherever they begin; the same in strided memory does not. */
static void check_library(const problem *p, bool is_last, double odd) {
    const eddy_kernel *const kernels[] = {&eddy_cpu_max_pool2d, &eddy_cpu_avg_pool2d,
                                          &eddy_cpu_adaptive_avg_pool2d};
    int64_t shape[4];
    output_shape(p, shape);
    layout begins = odd != 0 ? UNALIGNED : CONTIGUOUS;
    tensor x = is_last ? channels_last_at(EDDY_F32, p->shape, begins)
                       : tensor_make(EDDY_F32, p->rank, p->shape, begins);
    tensor got = is_last ? channels_last(EDDY_F32, shape)
                         : tensor_make(EDDY_F32, p->rank, shape, CONTIGUOUS);
    tensor again = is_last ? channels_last(EDDY_F32, shape)
                           : tensor_make(EDDY_F32, p->rank, shape, CONTIGUOUS);
    tensor want = tensor_make(EDDY_F32, p->rank, shape, STRIDED);
    tensor_fill(&x, 100);
    for (int64_t i = 0; i < x.count / 4; i++)
        tensor_set(&x, test_below(x.count), test_below(2) ? 0.0 : -0.0);
    /* A whole window of them, somewhere. */
    int64_t at = test_below(x.count);
    for (int64_t i = 0; i < 8 && odd != 0; i++)
        tensor_set(&x, (at + i) % x.count, odd);
    for (int k = 0; k < 3; k++) {
        run_kernel(kernels[k], (tensor *[]){&x, &want}, 2, &p->pool, &serial_team, NULL);
        run_kernel(kernels[k], (tensor *[]){&x, &got}, 2, &p->pool, &serial_team, NULL);
        run_kernel(kernels[k], (tensor *[]){&x, &again}, 2, &p->pool, &threaded_team, NULL);
        for (int64_t i = 0; i < want.count; i++) {
            double one = tensor_get(&got, i), other = tensor_get(&want, i);
            cr_assert((one == other && signbit(one) == signbit(other)) ||
                          (isnan(one) && isnan(other)),
                      "%s problem %td last %d element %lld: %a, not %a", kernels[k]->name,
                      p - large, is_last, (long long)i, one, other);
        }
        cr_assert(tensor_same(&got, &again), "%s problem %td last %d", kernels[k]->name, p - large,
                  is_last);
        cr_assert(tensor_guards_hold(&got) && tensor_guards_hold(&again));
    }
    tensor_free(&x), tensor_free(&got), tensor_free(&again), tensor_free(&want);
}

Test(pool, the_library_does_not_show, .timeout = 300) {
    const double odd[] = {0, NAN, -INFINITY, INFINITY};
    for (size_t i = 0; i < LARGE; i++)
        for (int o = 0; o < 4; o++)
            for (int is_last = 0; is_last < (large[i].rank == 4 ? 2 : 1); is_last++)
                check_library(&large[i], is_last, odd[o]);
}

Test(pool, memory_that_lacks_fails_the_call_alone, .timeout = 300) {
    const problem p = {4, {1, 32, 97, 62}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, false}, {49, 31}};
    const int64_t shape[] = {1, 32, 49, 31};
    const eddy_kernel *const kernels[] = {&eddy_cpu_max_pool2d, &eddy_cpu_avg_pool2d};
    for (int k = 0; k < 2; k++) {
        tensor x = channels_last(EDDY_F32, p.shape), out = channels_last(EDDY_F32, shape);
        tensor_fill(&x, 100);
        faults_check(&(faulted){kernels[k], {&x, &out}, 2, &p.pool, 2});
        tensor_free(&x), tensor_free(&out);
    }
}

/* ---- averages ---- */

typedef struct span {
    int64_t begin, end; /* elements of the axis in the window */
    double size;        /* what it counts for in the divisor */
} span;

/* Of output o along the height (0) or the width (1). */
static span span_of(const problem *p, bool is_adaptive, int axis, int64_t o) {
    int64_t in = p->shape[p->rank - 2 + axis], out = p->out[axis];
    if (is_adaptive) {
        span s = {(int64_t)floor((double)o * (double)in / (double)out),
                  (int64_t)ceil((double)(o + 1) * (double)in / (double)out), 0};
        s.size = (double)(s.end - s.begin);
        return s;
    }
    int64_t kernel = axis ? p->pool.kernel_size.width : p->pool.kernel_size.height;
    int64_t stride = axis ? p->pool.stride.width : p->pool.stride.height;
    int64_t padding = axis ? p->pool.padding.width : p->pool.padding.height;
    span s = {o * stride - padding, o * stride - padding + kernel, 0};
    if (s.end > in + padding)
        s.end = in + padding;
    s.size = (double)(s.end - s.begin);
    s.begin = s.begin < 0 ? 0 : s.begin;
    s.end = s.end > in ? in : s.end;
    if (p->pool.excludes_padding)
        s.size = (double)(s.end - s.begin);
    return s;
}

static double divisor_of(const problem *p, bool is_adaptive, span rows, span columns) {
    if (!is_adaptive && p->pool.divisor_override != 0)
        return (double)p->pool.divisor_override;
    return rows.size * columns.size;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-53
           : dtype == EDDY_F32 ? 0x1p-24
           : dtype == EDDY_F16 ? 0x1p-11
                               : 0x1p-8;
}

/* Sums of n numbers of f32 or f64, whose sizes are `size`, and the result's own rounding. */
static bool is_near(eddy_dtype dtype, double got, double want, double size, double n) {
    double unit = unit_of(dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32),
           least = dtype == EDDY_F16 ? 0x1p-25 : 0;
    return fabs(got - want) <= (n + 2) * unit * size + unit_of(dtype) * fabs(want) + least;
}

static void check_average(const problem *p, bool is_adaptive, eddy_dtype dtype, layout in,
                          layout out) {
    int64_t shape[4], width = p->shape[p->rank - 1], plane = width * p->shape[p->rank - 2];
    output_shape(p, shape);
    tensor x = tensor_make(dtype, p->rank, p->shape, in),
           y = tensor_make(dtype, p->rank, shape, out);
    tensor grad = tensor_make(dtype, p->rank, shape, (layout)test_below(LAYOUT_COUNT));
    tensor dx = tensor_make(dtype, p->rank, p->shape, out);
    tensor_fill(&x, 4), tensor_fill(&grad, 4);
    const void *attributes = is_adaptive ? NULL : &p->pool;
    const eddy_kernel *forward = is_adaptive ? &eddy_cpu_adaptive_avg_pool2d : &eddy_cpu_avg_pool2d;
    const eddy_kernel *back =
        is_adaptive ? &eddy_cpu_adaptive_avg_pool2d_backward : &eddy_cpu_avg_pool2d_backward;
    run_kernel(forward, (tensor *[]){&x, &y}, 2, attributes, any_team(), NULL);
    run_kernel(back, (tensor *[]){&grad, &dx}, 2, attributes, any_team(), NULL);
    double *want = calloc((size_t)dx.count + 1, sizeof(double)),
           *size = calloc((size_t)dx.count + 1, sizeof(double));
    for (int64_t i = 0; i < y.count; i++) {
        span rows = span_of(p, is_adaptive, 0, i / p->out[1] % p->out[0]);
        span columns = span_of(p, is_adaptive, 1, i % p->out[1]);
        double divisor = divisor_of(p, is_adaptive, rows, columns), sum = 0, sizes = 0,
               g = tensor_get(&grad, i) / divisor;
        for (int64_t h = rows.begin; h < rows.end; h++)
            for (int64_t w = columns.begin; w < columns.end; w++) {
                int64_t at = i / p->out[0] / p->out[1] * plane + h * width + w;
                sum += tensor_get(&x, at) / divisor;
                sizes += fabs(tensor_get(&x, at)) / divisor;
                want[at] += g;
                size[at] += fabs(g);
            }
        /* Small windows of f32 are summed in sequence where channels lie closer than columns, others by rows. */
        double high = (double)(rows.end - rows.begin), wide = (double)(columns.end - columns.begin);
        bool in_sequence =
            dtype == EDDY_F32 && llabs(x.strides[p->rank - 3]) < llabs(x.strides[p->rank - 1]);
        double terms = in_sequence && high * wide <= 64 ? high * wide : high + wide;
        cr_assert(is_near(dtype, tensor_get(&y, i), sum, sizes, terms),
                  "%s problem %td element %lld: %a, not %a", describe(forward->name, &x, in),
                  p - problems, (long long)i, tensor_get(&y, i), sum);
    }
    for (int64_t i = 0; i < dx.count; i++)
        cr_assert(is_near(dtype, tensor_get(&dx, i), want[i], size[i], 50),
                  "%s problem %td element %lld: %a, not %a", describe(back->name, &dx, out),
                  p - problems, (long long)i, tensor_get(&dx, i), want[i]);
    cr_assert(tensor_guards_hold(&y) && tensor_guards_hold(&dx), "%s",
              describe(forward->name, &x, in));
    free(want), free(size);
    tensor_free(&x), tensor_free(&y), tensor_free(&grad), tensor_free(&dx);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(pool, averages_of_every_float_and_layout, .timeout = 300) {
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int in = 0; in < LAYOUT_COUNT; in++) {
                problem p = problems[i];
                if (p.pool.dilation.height > 1)
                    continue;
                p.pool.excludes_padding = in % 2;
                p.pool.divisor_override = test_below(3) == 0 ? 7 : 0;
                check_average(&p, false, floats[d], (layout)in, (layout)test_below(OUTPUT_LAYOUTS));
            }
}

Test(pool, adaptive_averages_of_every_float_and_layout, .timeout = 300) {
    const int64_t sizes[][2] = {{1, 1}, {7, 7}, {3, 5}, {2, 600}, {13, 1}};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int in = 0; in < LAYOUT_COUNT; in++) {
                problem p = problems[i];
                memcpy(p.out, sizes[test_below(5)], sizeof(p.out));
                check_average(&p, true, floats[d], (layout)in, (layout)test_below(OUTPUT_LAYOUTS));
            }
}
