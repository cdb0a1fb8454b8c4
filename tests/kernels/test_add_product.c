/* sum += a b: as matmul and a sum, bit for bit; by the fast kernel within a bound that follows from the number of terms. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/add_product.h>
#include <math.h>
#include <stdlib.h>

static const int64_t sizes[][3] = {{1, 1, 1},     {3, 4, 5},      {1, 70, 33}, {65, 1, 40},
                                   {7, 9, 0},     {0, 4, 3},      {4, 0, 3},   {40, 50, 1},
                                   {64, 48, 257}, {200, 300, 90}, {129, 5, 7}, {130, 600, 64}};

/* a and b: the elements of m x k and of k x n. */
static void expect_product(const double *a, const double *b, const int64_t *size,
                           const tensor *before, const tensor *sum) {
    double unit = sum->view.dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24;
    for (int64_t i = 0; i < before->count; i++) {
        double total = tensor_get(before, i), magnitude = fabs(total), got = tensor_get(sum, i);
        for (int64_t p = 0; p < size[2]; p++) {
            double product = a[i / size[1] * size[2] + p] * b[p * size[1] + i % size[1]];
            total += product;
            magnitude += fabs(product);
        }
        /* k products and k sums, and those of the expected number. */
        double bound = 2.0 * (double)(size[2] + 2) * unit * magnitude;
        cr_assert(fabs(got - total) <= bound, "%s k %lld: %a, not %a",
                  describe("add_product", sum, CONTIGUOUS), (long long)size[2], got, total);
    }
}

static void set_all(tensor *to, const tensor *from) {
    for (int64_t i = 0; i < to->count; i++)
        tensor_set(to, i, tensor_get(from, i));
}

/* Whether the call adds each product to the sum: it has no place for the product. */
static bool adds_at_once(const eddy_kernel *kernel, tensor *const *tensors) {
    eddy_op_view views[3];
    for (int i = 0; i < 3; i++) {
        views[i] = tensors[i]->view;
        views[i].shape = tensors[i]->shape;
        views[i].strides = tensors[i]->strides;
    }
    const eddy_kernel_call call = {.kernel = kernel, .views = views, .view_count = 3};
    return planned_only(&call).run != eddy_cpu_add_product.run;
}

static void check(const int64_t *size, eddy_dtype dtype, layout of_factors, layout of_sum) {
    const int64_t a_shape[] = {size[0], size[2]}, b_shape[] = {size[2], size[1]},
                  shape[] = {size[0], size[1]};
    tensor a = tensor_make(dtype, 2, a_shape, of_factors),
           b = tensor_make(dtype, 2, b_shape, of_factors),
           before = tensor_make(dtype, 2, shape, CONTIGUOUS),
           product = tensor_make(dtype, 2, shape, CONTIGUOUS),
           plain = tensor_make(dtype, 2, shape, of_sum),
           fast = tensor_make(dtype, 2, shape, of_sum),
           again = tensor_make(dtype, 2, shape, of_sum);
    tensor_fill(&a, 1), tensor_fill(&b, 1), tensor_fill(&before, 2);
    set_all(&plain, &before), set_all(&fast, &before), set_all(&again, &before);
    cr_assert_eq(
        run_kernel(&eddy_cpu_matmul, (tensor *[]){&a, &b, &product}, 3, NULL, &serial_team, NULL),
        EDDY_OK);
    cr_assert_eq(run_kernel(&eddy_cpu_add_product, (tensor *[]){&a, &b, &plain}, 3, NULL,
                            &shuffling_team, NULL),
                 EDDY_OK);
    cr_assert_eq(run_kernel(eddy_cpu_add_product.fast, (tensor *[]){&a, &b, &fast}, 3, NULL,
                            &serial_team, NULL),
                 EDDY_OK);
    cr_assert_eq(run_kernel(eddy_cpu_add_product.fast, (tensor *[]){&a, &b, &again}, 3, NULL,
                            &shuffling_team, NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < before.count; i++) {
        double sum = tensor_get(&before, i) + tensor_get(&product, i);
        cr_assert_eq(tensor_get(&plain, i), dtype == EDDY_F32 ? (double)(float)sum : sum);
    }
    double *a_values = tensor_values(&a), *b_values = tensor_values(&b);
    expect_product(a_values, b_values, size, &before, &fast);
    free(a_values), free(b_values);
    cr_assert(tensor_same(&fast, &again));
    if (size[0] > 1 && size[1] > 1)
        cr_assert_eq(adds_at_once(eddy_cpu_add_product.fast, (tensor *[]){&a, &b, &fast}),
                     of_sum != STRIDED && of_sum != NEGATIVE, "%s",
                     describe("add_product", &fast, of_sum));
    cr_assert_not(adds_at_once(&eddy_cpu_add_product, (tensor *[]){&a, &b, &fast}));
    cr_assert(tensor_guards_hold(&plain) && tensor_guards_hold(&fast));
    tensor *all[] = {&a, &b, &before, &product, &plain, &fast, &again};
    for (int i = 0; i < 7; i++)
        tensor_free(all[i]);
}

Test(add_product, all_sizes_and_layouts) {
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (int d = 0; d < 2; d++)
            for (int f = 0; f < OUTPUT_LAYOUTS; f++)
                for (int l = 0; l < OUTPUT_LAYOUTS; l++)
                    check(sizes[s], d ? EDDY_F64 : EDDY_F32, (layout)f, (layout)l);
}
