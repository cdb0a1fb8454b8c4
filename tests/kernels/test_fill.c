/* empty, full, arange, linspace, eye: exact. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <string.h>

static void run_fill(const eddy_kernel *kernel, tensor *out, const void *attributes, layout l) {
    run_kernel(kernel, (tensor *[]){out}, 1, attributes, l % 2 ? &shuffling_team : &serial_team,
               NULL);
    cr_assert(tensor_guards_hold(out), "%s", describe(kernel->name, out, l));
}

Test(fill, full_of_every_dtype_and_layout) {
    const int64_t shapes[][2] = {{3, 5}, {1, 1}, {0, 3}, {513, 257}};
    const eddy_scalar values[] = {EDDY_S(7), EDDY_S(0.1), EDDY_S(true), EDDY_S(-3), EDDY_S(0)};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 4; s++)
            for (int b = 0; b < OUTPUT_LAYOUTS; b++)
                for (int v = 0; v < 5; v++) {
                    tensor out = tensor_make((eddy_dtype)d, 2, shapes[s], (layout)b);
                    eddy_attributes_full attributes = {.value = values[v]};
                    run_fill(&eddy_cpu_full, &out, &attributes, (layout)b);
                    char want[8];
                    eddy_dtype_store_scalar((eddy_dtype)d, want, values[v]);
                    for (int64_t i = 0; i < out.count; i++)
                        cr_assert(
                            memcmp(tensor_at(&out, i), want, eddy_dtype_bytes((eddy_dtype)d)) == 0,
                            "%s element %lld", describe("full", &out, (layout)b), (long long)i);
                    tensor_free(&out);
                }
}

Test(fill, empty_writes_nothing) {
    const int64_t shape[] = {3, 5};
    tensor out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    run_kernel(&eddy_cpu_empty, (tensor *[]){&out}, 1, NULL, &serial_team, NULL);
    cr_assert(memcmp(out.memory, out.before, out.bytes) == 0);
    tensor_free(&out);
}

Test(fill, arange_of_integers_is_exact) {
    const int64_t sizes[] = {0, 1, 2, 511, 512, 513, 70001};
    for (int s = 0; s < 7; s++)
        for (int b = 0; b < OUTPUT_LAYOUTS; b++) {
            tensor out = tensor_make(EDDY_I64, 1, &sizes[s], (layout)b);
            int64_t start = INT64_C(9007199254740993);
            eddy_attributes_arange attributes = {.start = EDDY_S(start), .step = EDDY_S(-3)};
            run_fill(&eddy_cpu_arange, &out, &attributes, (layout)b);
            for (int64_t i = 0; i < out.count; i++)
                cr_assert_eq(tensor_get_int(&out, i), start - 3 * i);
            tensor_free(&out);
        }
}

Test(fill, arange_and_linspace_of_floats_round_once) {
    const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    const int64_t sizes[] = {0, 1, 2, 3, 700, 70001};
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 6; s++) {
            tensor out = tensor_make(floats[d], 1, &sizes[s], (layout)(s % OUTPUT_LAYOUTS));
            eddy_attributes_arange steps = {.start = EDDY_S(0.5), .step = EDDY_S(0.1)};
            run_fill(&eddy_cpu_arange, &out, &steps, CONTIGUOUS);
            for (int64_t i = 0; i < out.count; i++)
                cr_assert(ulp_distance(floats[d], tensor_get(&out, i), 0.5 + 0.1 * (double)i) <=
                              0.5 + 1e-9 ||
                          isinf(tensor_get(&out, i)));
            eddy_attributes_linspace ends = {.start = -1, .end = 2};
            run_fill(&eddy_cpu_linspace, &out, &ends, UNALIGNED);
            for (int64_t i = 0; i < out.count; i++) {
                double want = out.count == 1 ? -1 : -1 + 3.0 * (double)i / (double)(out.count - 1);
                cr_assert(fabs(tensor_get(&out, i) - want) <= 2e-15 ||
                              ulp_distance(floats[d], tensor_get(&out, i), want) <= 0.51,
                          "%s element %lld", describe("linspace", &out, CONTIGUOUS), (long long)i);
            }
            if (out.count > 1)
                cr_assert(tensor_get(&out, 0) == -1 && tensor_get(&out, out.count - 1) == 2);
            tensor_free(&out);
        }
}

/* What a plain loop makes in double, rounded to the dtype; every slice of it begins somewhere. */
Test(fill, sequences_of_every_dtype_are_a_plain_loop) {
    const int64_t sizes[] = {1, 2, 3, 17, 512, 513, 131075};
    for (int d = 0; d < EDDY_BOOL; d++)
        for (int s = 0; s < 7; s++)
            for (int b = 0; b < OUTPUT_LAYOUTS; b++)
                for (int is_line = 0; is_line < 2; is_line++) {
                    tensor out = tensor_make((eddy_dtype)d, 1, &sizes[s], (layout)b);
                    eddy_attributes_arange steps = {.start = EDDY_S(-1.3),
                                                    .step = EDDY_S(1 / 1024.0)};
                    eddy_attributes_linspace ends = {.start = 0.1, .end = -0.0};
                    run_fill(is_line ? &eddy_cpu_linspace : &eddy_cpu_arange, &out,
                             is_line ? (const void *)&ends : (const void *)&steps, (layout)b);
                    double step =
                        out.count > 1 ? (ends.end - ends.start) / (double)(out.count - 1) : 0;
                    for (int64_t i = 0; i < out.count; i++) {
                        double want = -1.3 + 1 / 1024.0 * (double)i;
                        if (is_line && (out.count == 1 || i < out.count / 2))
                            want = ends.start + step * (double)i;
                        else if (is_line)
                            want = ends.end - step * (double)(out.count - 1 - i);
                        char element[8];
                        eddy_dtype_store_f64((eddy_dtype)d, element, want);
                        cr_assert(memcmp(tensor_at(&out, i), element,
                                         eddy_dtype_bytes((eddy_dtype)d)) == 0,
                                  "%s element %lld",
                                  describe(is_line ? "linspace" : "arange", &out, (layout)b),
                                  (long long)i);
                    }
                    tensor_free(&out);
                }
}

Test(fill, eye) {
    const int64_t shapes[][2] = {{3, 5}, {5, 3}, {1, 1}, {0, 3}, {3, 0}, {300, 301}};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 6; s++)
            for (int b = 0; b < OUTPUT_LAYOUTS; b++) {
                tensor out = tensor_make((eddy_dtype)d, 2, shapes[s], (layout)b);
                run_fill(&eddy_cpu_eye, &out, NULL, (layout)b);
                for (int64_t i = 0; i < out.count; i++)
                    cr_assert(tensor_get(&out, i) == (i / shapes[s][1] == i % shapes[s][1]));
                tensor_free(&out);
            }
}
