/* Interpolation against the formulas, element by element. The gradient is the transpose: checked against the weights themselves. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/choice.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    int32_t rank;
    int64_t shape[4], out[2];
    double scale; /* 0: by the sizes */
} problem;

static const problem problems[] = {
    {4, {2, 3, 4, 5}, {8, 10}, 0},  {4, {2, 3, 4, 5}, {8, 10}, 2}, {4, {1, 17, 7, 5}, {3, 9}, 0},
    {3, {5, 6, 7}, {9, 10}, 1.5},   {3, {5, 9, 7}, {3, 2}, 0.37},  {4, {2, 2, 1, 1}, {4, 3}, 0},
    {4, {3, 2, 5, 4}, {1, 1}, 0},   {4, {0, 3, 4, 4}, {8, 8}, 0},  {4, {1, 2, 3, 300}, {2, 700}, 0},
    {4, {1, 300, 3, 2}, {4, 5}, 0},
};
/* A layout of results besides those of every tensor. */
#define CHANNELS_LAST LAYOUT_COUNT
/* Of the elements. */
#define RANGE 100
#define PROBLEMS (sizeof(problems) / sizeof(problems[0]))

typedef struct way {
    eddy_mode mode;
    bool aligns_corners;
} way;
static const way ways[] = {
    {EDDY_MODE_NEAREST, false}, {EDDY_MODE_BILINEAR, false}, {EDDY_MODE_BILINEAR, true}};

/* The share that element i of the axis has in output o. */
static double share_of(const problem *p, way v, int axis, int64_t o, int64_t i) {
    int64_t in = p->shape[p->rank - 2 + axis], out = p->out[axis];
    if (v.mode == EDDY_MODE_NEAREST) {
        int64_t at = p->scale > 0 ? (int64_t)floor((double)o / p->scale) : o * in / out;
        return i == (at < in ? at : in - 1);
    }
    double place =
        v.aligns_corners
            ? (out == 1 ? 0 : (double)o * (double)(in - 1) / (double)(out - 1))
            : ((double)o + 0.5) / (p->scale > 0 ? p->scale : (double)out / (double)in) - 0.5;
    place = fmin(fmax(place, 0), (double)(in - 1));
    return fmax(0, 1 - fabs(place - (double)i));
}

static void output_shape(const problem *p, int64_t *shape) {
    memcpy(shape, p->shape, sizeof(p->shape));
    memcpy(shape + p->rank - 2, p->out, sizeof(p->out));
}

static eddy_kernel_team *any_team(void) {
    return test_below(2) ? &serial_team : &shuffling_team;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-53
           : dtype == EDDY_F32 ? 0x1p-24
           : dtype == EDDY_F16 ? 0x1p-11
                               : 0x1p-8;
}

/* Shares have absolute errors of some units of the compute type (their places, up to 1000, of 1000 units of f64), so that each of
 * the elements that `size` adds up counts whole; then there are `terms` sums. */
static void expect(const char *op, const tensor *t, int64_t i, double want, double size,
                   double terms) {
    eddy_dtype dtype = t->view.dtype;
    double unit = unit_of(dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32), got = tensor_get(t, i);
    double bound = (terms + 4) * unit * size + 0x1p-42 * size + unit_of(dtype) * fabs(want);
    cr_assert(fabs(got - want) <= bound + (dtype == EDDY_F16 ? 0x1p-25 : 0),
              "%s element %lld: %a, not %a", describe(op, t, CONTIGUOUS), (long long)i, got, want);
}

/* As a tensor of the test's own layout, or channels-last. */
static tensor image_make(eddy_dtype dtype, int32_t rank, const int64_t *shape, int l) {
    if (l != CHANNELS_LAST)
        return tensor_make(dtype, rank, shape, (layout)l);
    int64_t last[4], *dims = last + 4 - rank;
    memcpy(dims, shape, sizeof(int64_t) * (size_t)rank);
    last[1] = shape[rank - 2], last[2] = shape[rank - 1], last[3] = shape[rank - 3];
    tensor t = tensor_make(dtype, rank, dims, CONTIGUOUS);
    memcpy(t.shape, shape, sizeof(int64_t) * (size_t)rank);
    t.strides[rank - 1] = t.strides[rank - 2];
    t.strides[rank - 2] = t.strides[rank - 3];
    t.strides[rank - 3] = 1;
    return t;
}

static void check(const problem *p, way v, eddy_dtype dtype, layout in, int out) {
    int64_t shape[4], width = p->shape[p->rank - 1], plane = p->shape[p->rank - 2] * width;
    output_shape(p, shape);
    eddy_attributes_interpolate attributes = {
        .scale = p->scale, .mode = v.mode, .aligns_corners = v.aligns_corners};
    tensor x = tensor_make(dtype, p->rank, p->shape, in),
           y = image_make(dtype, p->rank, shape, out);
    tensor grad = tensor_make(dtype, p->rank, shape, (layout)test_below(LAYOUT_COUNT));
    tensor dx = image_make(dtype, p->rank, p->shape, out);
    tensor_fill(&x, RANGE), tensor_fill(&grad, RANGE);
    bool is_float = eddy_dtype_is_float(dtype);
    run_kernel(&eddy_cpu_interpolate, (tensor *[]){&x, &y}, 2, &attributes, any_team(), NULL);
    if (is_float)
        run_kernel(&eddy_cpu_interpolate_backward, (tensor *[]){&grad, &dx}, 2, &attributes,
                   any_team(), NULL);
    double *want = calloc((size_t)dx.count + 1, sizeof(double)),
           *size = calloc((size_t)dx.count + 1, sizeof(double));
    for (int64_t i = 0; i < y.count; i++) {
        double sum = 0;
        int64_t ow = i % p->out[1], oh = i / p->out[1] % p->out[0],
                from = i / p->out[1] / p->out[0] * plane;
        for (int64_t k = 0; k < plane; k++) {
            double share = share_of(p, v, 0, oh, k / width) * share_of(p, v, 1, ow, k % width);
            if (share == 0)
                continue;
            sum += share * tensor_get(&x, from + k);
            want[from + k] += share * tensor_get(&grad, i);
            size[from + k] += RANGE;
        }
        if (v.mode == EDDY_MODE_NEAREST)
            cr_assert_eq(tensor_get(&y, i), sum, "%s element %lld", describe("interpolate", &x, in),
                         (long long)i);
        else
            expect("interpolate", &y, i, sum, RANGE, 4);
    }
    for (int64_t i = 0; i < dx.count && is_float; i++)
        expect("interpolate_backward", &dx, i, want[i], size[i], size[i] / RANGE);
    cr_assert(tensor_guards_hold(&y) && tensor_guards_hold(&dx), "%s",
              describe("interpolate", &x, in));
    free(want), free(size);
    tensor_free(&x), tensor_free(&y), tensor_free(&grad), tensor_free(&dx);
}

Test(interpolate, every_way_dtype_and_layout, .timeout = 300) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t i = 0; i < PROBLEMS; i++)
            for (int k = 0; k < (eddy_dtype_is_float((eddy_dtype)d) ? 3 : 1); k++)
                for (int in = 0; in < LAYOUT_COUNT; in++)
                    check(&problems[i], ways[k], (eddy_dtype)d, (layout)in,
                          test_below(2) ? CHANNELS_LAST : (int)test_below(OUTPUT_LAYOUTS));
}

/* What is next to a NaN stays what it is, and NaN spreads as far as its share. */
Test(interpolate, nearest_copies_any_bits) {
    const int64_t shape[] = {1, 1, 2}, wide[] = {1, 1, 4};
    eddy_attributes_interpolate attributes = {.mode = EDDY_MODE_NEAREST};
    tensor x = tensor_make(EDDY_F32, 3, shape, CONTIGUOUS),
           y = tensor_make(EDDY_F32, 3, wide, CONTIGUOUS);
    tensor_set(&x, 0, NAN), tensor_set(&x, 1, INFINITY);
    run_kernel(&eddy_cpu_interpolate, (tensor *[]){&x, &y}, 2, &attributes, &serial_team, NULL);
    cr_assert(isnan(tensor_get(&y, 0)) && isnan(tensor_get(&y, 1)));
    cr_assert(tensor_get(&y, 2) == INFINITY && tensor_get(&y, 3) == INFINITY);
    tensor_free(&x), tensor_free(&y);
}
