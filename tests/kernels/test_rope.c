/* Rotary positions against sines and cosines in long double. Bound: 3 units of the compute type times the size of the pair,
 * and a half for each unit of angle that double rounding takes; one unit of the dtype. */
#include "serial_team.h"
#include "tensor.h"
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <string.h>

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static void check(eddy_dtype dtype, const int64_t *shape, layout a, layout b, bool interleaved,
                  int64_t farthest, eddy_kernel_team *team) {
    int64_t S = shape[2], D = shape[3], half = D / 2;
    tensor x = tensor_make(dtype, 4, shape, a), out = tensor_make(dtype, 4, shape, b);
    tensor positions = tensor_make(EDDY_I64, 1, &S, a == BROADCAST ? CONTIGUOUS : a);
    tensor_fill(&x, 2);
    for (int64_t i = 0; i < S; i++)
        tensor_set_int(&positions, i, test_below(farthest) - farthest / 4);
    eddy_attributes_rope attributes = {.base = 10000, .is_interleaved = interleaved};
    run_kernel(&eddy_cpu_rope, (tensor *[]){&x, &positions, &out}, 3, &attributes, team, NULL);
    double unit = unit_of(dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
    for (int64_t row = 0; row < (D > 0 ? x.count / D : 0); row++)
        for (int64_t i = 0; i < half; i++) {
            int64_t first = row * D + (interleaved ? 2 * i : i),
                    second = first + (interleaved ? 1 : half);
            long double angle = tensor_get_int(&positions, row % S) * powl(10000, -2.0L * i / D);
            long double p = tensor_get(&x, first), q = tensor_get(&x, second),
                        size = fabsl(p) + fabsl(q);
            long double wants[] = {p * cosl(angle) - q * sinl(angle),
                                   q * cosl(angle) + p * sinl(angle)};
            for (int side = 0; side < 2; side++) {
                double got = tensor_get(&out, side ? second : first);
                long double bound = (3 * unit + 4 * 0x1p-53 * (1 + fabsl(angle))) * size;
                bound +=
                    unit_of(dtype) * fabsl(wants[side]) + (dtype == EDDY_F16 ? 0x1p-24 : 0x1p-133);
                cr_assert(fabsl(got - wants[side]) <= bound, "%s row %lld pair %lld: %a, not %a",
                          describe("rope", &x, a), (long long)row, (long long)i, got,
                          (double)wants[side]);
            }
        }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&x), tensor_free(&out), tensor_free(&positions);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(rope, every_dtype_layout_and_pairing) {
    const int64_t shapes[][4] = {
        {2, 3, 5, 8}, {1, 1, 1, 2}, {2, 0, 3, 4}, {2, 2, 3, 0}, {3, 1, 17, 34}};
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 5; n++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int interleaved = 0; interleaved < 2; interleaved++)
                    check(floats[d], shapes[n], (layout)a, (layout)test_below(OUTPUT_LAYOUTS),
                          interleaved, 1000, &serial_team);
}

Test(rope, many_rows_and_long_ones) {
    const int64_t shapes[][4] = {{2, 4, 300, 64}, {1, 2, 5, 1030}};
    for (int n = 0; n < 2; n++)
        for (int interleaved = 0; interleaved < 2; interleaved++)
            check(EDDY_F32, shapes[n], CONTIGUOUS, STRIDED, interleaved, 1 << 20,
                  interleaved ? &threaded_team : &shuffling_team);
}

/* Angles beyond those that have a quick form, and the last that have one. */
Test(rope, far_positions) {
    const int64_t shape[] = {1, 2, 9, 6};
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        check(EDDY_F32, shape, CONTIGUOUS, CONTIGUOUS, interleaved, INT64_C(1) << 31, &serial_team);
        check(EDDY_F32, shape, CONTIGUOUS, CONTIGUOUS, interleaved, INT64_C(1) << 42, &serial_team);
    }
}

/* The gradient's formula: turning by the opposite positions is the transpose. */
Test(rope, opposite_positions_turn_back) {
    const int64_t shape[] = {1, 2, 7, 10}, S = 7;
    tensor x = tensor_make(EDDY_F64, 4, shape, CONTIGUOUS),
           y = tensor_make(EDDY_F64, 4, shape, CONTIGUOUS);
    tensor g = tensor_make(EDDY_F64, 4, shape, CONTIGUOUS),
           back = tensor_make(EDDY_F64, 4, shape, CONTIGUOUS);
    tensor positions = tensor_make(EDDY_I64, 1, &S, CONTIGUOUS);
    tensor_fill(&x, 2), tensor_fill(&g, 2);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        eddy_attributes_rope attributes = {.base = 500, .is_interleaved = interleaved};
        for (int64_t i = 0; i < S; i++)
            tensor_set_int(&positions, i, 3 * i);
        run_kernel(&eddy_cpu_rope, (tensor *[]){&x, &positions, &y}, 3, &attributes, &serial_team,
                   NULL);
        for (int64_t i = 0; i < S; i++)
            tensor_set_int(&positions, i, -3 * i);
        run_kernel(&eddy_cpu_rope, (tensor *[]){&g, &positions, &back}, 3, &attributes,
                   &serial_team, NULL);
        double left = 0, right = 0; /* <g, turn x> = <turn back g, x> */
        for (int64_t i = 0; i < x.count; i++) {
            left += tensor_get(&g, i) * tensor_get(&y, i);
            right += tensor_get(&back, i) * tensor_get(&x, i);
        }
        cr_assert(fabs(left - right) <= 1e-12);
    }
    tensor_free(&x), tensor_free(&y), tensor_free(&g), tensor_free(&back), tensor_free(&positions);
}
