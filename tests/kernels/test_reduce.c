/* sum, mean, max and argmax against plain loops in double (floats) or i64, and against themselves: the same bits for every
 * layout and slicing (test_isa.c: and instruction set).
 *
 * Bounds: sum and mean of n elements are within (2 + log2 n) ulp of the sum of magnitudes, and another half for rounding to
 * 16 bits; max and argmax are exact. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape_case {
    int32_t rank;
    int64_t shape[4];
} shape_case;

static const shape_case small_shapes[] = {
    {0, {0}},    {1, {1}},      {1, {31}},      {1, {32}},       {1, {33}},         {1, {1023}},        {1, {1024}},
    {1, {1025}}, {2, {64, 10}}, {2, {10, 64}},  {2, {7, 127}},   {2, {129, 5}},     {2, {1030, 3}},     {2, {3, 1030}},
    {2, {0, 5}}, {2, {5, 0}},   {3, {3, 5, 7}}, {3, {9, 1, 40}}, {4, {2, 3, 4, 5}}, {4, {6, 35, 2, 9}},
};

static eddy_dtype sum_dtype(eddy_dtype dtype) {
    return eddy_dtype_is_float(dtype) ? dtype : EDDY_I64;
}

/* The output's shape; returns its rank. */
static int32_t output_shape(const shape_case *c, uint32_t axes, bool keepdim, int64_t *shape) {
    int32_t rank = 0;
    for (int32_t d = 0; d < c->rank; d++) {
        if (!(axes >> d & 1))
            shape[rank++] = c->shape[d];
        else if (keepdim)
            shape[rank++] = 1;
    }
    return rank;
}

/* The flat number of the output that input element `flat` goes to, and its number within the reduced dims. */
static int64_t output_of(const shape_case *c, uint32_t axes, int64_t flat, int64_t *within) {
    int64_t index[4], out = 0;
    *within = 0;
    for (int32_t d = c->rank - 1; d >= 0; d--) {
        index[d] = flat % c->shape[d];
        flat /= c->shape[d];
    }
    for (int32_t d = 0; d < c->rank; d++) {
        if (axes >> d & 1)
            *within = *within * c->shape[d] + index[d];
        else
            out = out * c->shape[d] + index[d];
    }
    return out;
}

typedef struct oracle {
    double sum, magnitude, max;
    int64_t sum_int, max_int, argmax, count;
} oracle;

static oracle *oracle_of(const shape_case *c, uint32_t axes, const tensor *in, int64_t outputs) {
    oracle *all = calloc((size_t)outputs + 1, sizeof(oracle));
    bool is_float = eddy_dtype_is_float(in->view.dtype);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t within;
        oracle *o = &all[output_of(c, axes, i, &within)];
        double value = tensor_get(in, i);
        int64_t integer = is_float ? 0 : tensor_get_int(in, i);
        bool better = is_float ? value > o->max || (isnan(value) && !isnan(o->max)) : integer > o->max_int;
        if (o->count == 0 || better) {
            o->max = value;
            o->max_int = integer;
            o->argmax = within;
        }
        o->sum += value;
        o->magnitude += fabs(value);
        o->sum_int = (int64_t)((uint64_t)o->sum_int + (uint64_t)integer);
        o->count++;
    }
    return all;
}

static void check_value(const char *op, const tensor *out, layout l, int64_t i, const oracle *o) {
    double got = tensor_get(out, i);
    eddy_dtype dtype = out->view.dtype;
    if (strcmp(op, "argmax") == 0) {
        cr_assert_eq(tensor_get_int(out, i), o->argmax, "%s output %lld: %lld, not %lld", describe(op, out, l),
                     (long long)i, (long long)tensor_get_int(out, i), (long long)o->argmax);
    } else if (!eddy_dtype_is_float(dtype)) {
        int64_t want = strcmp(op, "max") == 0 ? o->max_int : o->sum_int;
        cr_assert_eq(tensor_get_int(out, i), want, "%s output %lld: %lld, not %lld", describe(op, out, l), (long long)i,
                     (long long)tensor_get_int(out, i), (long long)want);
    } else if (strcmp(op, "max") == 0) {
        cr_assert(got == o->max || (isnan(got) && isnan(o->max)), "%s output %lld: %a, not %a", describe(op, out, l),
                  (long long)i, got, o->max);
    } else {
        bool is_mean = strcmp(op, "mean") == 0;
        double want = is_mean ? o->sum / (double)o->count : o->sum;
        double magnitude = is_mean ? o->magnitude / (double)o->count : o->magnitude;
        if (isnan(want)) {
            cr_assert(isnan(got), "%s output %lld", describe(op, out, l), (long long)i);
            return;
        }
        eddy_dtype compute = dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32;
        double unit = compute == EDDY_F64 ? 0x1p-53 : 0x1p-24;
        double bound = (4 + 2 * log2((double)o->count + 1)) * unit * magnitude + 0x1p-149;
        double rounding = dtype == EDDY_F16    ? 0x1p-11 * fabs(want) + 0x1p-25
                          : dtype == EDDY_BF16 ? 0x1p-8 * fabs(want)
                                               : 0;
        cr_assert(got == want || fabs(got - want) <= bound + rounding,
                  "%s output %lld: %a, not %a (off by %g, allowed %g)", describe(op, out, l), (long long)i, got, want,
                  fabs(got - want), bound + rounding);
    }
}

static void check(const eddy_kernel *kernel, eddy_dtype dtype, const shape_case *c, uint32_t axes, bool keepdim,
                  layout in_layout, layout out_layout, bool has_specials, eddy_kernel_team *other) {
    int64_t shape[4];
    int32_t rank = output_shape(c, axes, keepdim, shape);
    bool is_arg = kernel == &eddy_cpu_argmax, is_max = kernel == &eddy_cpu_max;
    eddy_dtype out_dtype = is_arg ? EDDY_I64 : is_max ? dtype : sum_dtype(dtype);
    tensor in = tensor_make(dtype, c->rank, c->shape, in_layout);
    tensor_fill(&in, eddy_dtype_is_float(dtype) ? 10 : 100);
    if (has_specials)
        for (int64_t i = 0; i < in.count; i++)
            if (test_below(40) == 0)
                tensor_set(&in, i, test_below(3) == 0 ? NAN : test_below(2) ? INFINITY : -INFINITY);
    tensor out = tensor_make(out_dtype, rank, shape, out_layout), again = tensor_make(out_dtype, rank, shape, TURNED);
    if ((is_max || is_arg) && in.count == 0) {
        tensor_free(&in), tensor_free(&out), tensor_free(&again);
        return;
    }
    eddy_attributes_reduce attributes = {.axes = axes, .keepdim = keepdim};
    run_kernel(kernel, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    oracle *wanted = oracle_of(c, axes, &in, out.count);
    for (int64_t i = 0; i < out.count; i++)
        check_value(kernel->name, &out, in_layout, i, &wanted[i]);
    cr_assert(tensor_guards_hold(&out), "%s", describe(kernel->name, &in, in_layout));

    /* The same elements in a contiguous tensor, through other slices. */
    tensor plain = tensor_make(dtype, c->rank, c->shape, CONTIGUOUS);
    for (int64_t i = 0; i < in.count; i++)
        memcpy(tensor_at(&plain, i), tensor_at(&in, i), eddy_dtype_bytes(dtype));
    run_kernel(kernel, (tensor *[]){&plain, &again}, 2, &attributes, other, NULL);
    bool same = true;
    for (int64_t i = 0; i < out.count; i++)
        same = same && (memcmp(tensor_at(&out, i), tensor_at(&again, i), eddy_dtype_bytes(out_dtype)) == 0 ||
                        (isnan(tensor_get(&out, i)) && isnan(tensor_get(&again, i))));
    cr_assert(same, "%s: bits differ from the contiguous tensor's, axes %x", describe(kernel->name, &in, in_layout),
              axes);
    free(wanted);
    tensor_free(&in), tensor_free(&out), tensor_free(&again), tensor_free(&plain);
}

static const eddy_kernel *const kernels[] = {&eddy_cpu_sum, &eddy_cpu_mean, &eddy_cpu_max, &eddy_cpu_argmax};

Test(reduce, every_dtype_layout_and_set_of_axes) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < sizeof(small_shapes) / sizeof(small_shapes[0]); s++)
            for (uint32_t axes = 0; axes < 1u << small_shapes[s].rank; axes++)
                for (int k = 0; k < 4; k++) {
                    if (k == 1 && !eddy_dtype_is_float((eddy_dtype)d))
                        continue;
                    layout in = (layout)test_below(LAYOUT_COUNT), out = (layout)test_below(OUTPUT_LAYOUTS);
                    check(kernels[k], (eddy_dtype)d, &small_shapes[s], axes, test_below(2), in, out, false,
                          &shuffling_team);
                }
}

Test(reduce, nan_and_infinities) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int round = 0; round < 4; round++)
        for (int d = 0; d < 4; d++)
            for (size_t s = 1; s < sizeof(small_shapes) / sizeof(small_shapes[0]); s++)
                for (int k = 0; k < 4; k++)
                    check(kernels[k], dtypes[d], &small_shapes[s], (uint32_t)test_below(1 << small_shapes[s].rank),
                          false, (layout)test_below(BROADCAST), CONTIGUOUS, true, &serial_team);
}

Test(reduce, big_reductions_do_not_depend_on_slices) {
    const shape_case shapes[] = {{1, {1000003}},    {2, {3, 400001}},    {2, {400001, 3}},
                                 {2, {1030, 1031}}, {3, {65, 1025, 17}}, {2, {70000, 129}}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (uint32_t axes = 1; axes < 1u << shapes[s].rank; axes++)
            for (int k = 0; k < 4; k++)
                for (int t = 0; t < 2; t++)
                    check(kernels[k], t ? EDDY_BF16 : EDDY_F32, &shapes[s], axes, false, t ? TURNED : UNALIGNED,
                          CONTIGUOUS, false, k % 2 ? &threaded_team : &shuffling_team);
}

Test(reduce, an_axis_gives_the_bits_of_the_flat_sum) {
    int64_t n = 5000;
    tensor flat = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS), total = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    tensor_fill(&flat, 100);
    eddy_attributes_reduce attributes = {.axes = 1};
    run_kernel(&eddy_cpu_sum, (tensor *[]){&flat, &total}, 2, &attributes, &serial_team, NULL);
    int64_t shape[] = {5000, 200}, columns = 200;
    tensor wide = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS), sums = tensor_make(EDDY_F32, 1, &columns, CONTIGUOUS);
    for (int64_t i = 0; i < wide.count; i++)
        tensor_set(&wide, i, tensor_get(&flat, i / 200));
    run_kernel(&eddy_cpu_sum, (tensor *[]){&wide, &sums}, 2, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 200; i++)
        cr_assert(tensor_get(&sums, i) == tensor_get(&total, 0));
    tensor_free(&flat), tensor_free(&total), tensor_free(&wide), tensor_free(&sums);
}
