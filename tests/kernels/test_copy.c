/* Casts and copies against conversions written apart; f16 inline forms against base's, bit for bit. */
#include "isa.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/half.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double low_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_I8:
        return INT8_MIN;
    case EDDY_I16:
        return INT16_MIN;
    case EDDY_I32:
        return INT32_MIN;
    case EDDY_I64:
        return (double)INT64_MIN;
    default:
        return 0;
    }
}

static double above_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_I8:
        return 0x1p7;
    case EDDY_U8:
        return 0x1p8;
    case EDDY_I16:
        return 0x1p15;
    case EDDY_I32:
        return 0x1p31;
    default:
        return 0x1p63;
    }
}

static int64_t wrapped(eddy_dtype dtype, int64_t value) {
    switch (dtype) {
    case EDDY_I8:
        return (int8_t)value;
    case EDDY_U8:
        return (uint8_t)value;
    case EDDY_I16:
        return (int16_t)value;
    case EDDY_I32:
        return (int32_t)value;
    default:
        return value;
    }
}

/* What element `in` becomes, as the bytes of the target. */
static void expected(eddy_dtype from, const void *in, eddy_dtype to, void *out) {
    memset(out, 0, 8);
    if (eddy_dtype_is_float(from)) {
        double value = eddy_dtype_load_f64(from, in);
        if (eddy_dtype_is_float(to))
            eddy_dtype_store_f64(to, out, value);
        else if (to == EDDY_BOOL)
            *(uint8_t *)out = value != 0;
        else if (isnan(value))
            eddy_dtype_store_i64(to, out, 0);
        else if (value < low_of(to))
            eddy_dtype_store_i64(to, out, (int64_t)low_of(to));
        else if (value >= above_of(to))
            eddy_dtype_store_i64(to, out, to == EDDY_I64 ? INT64_MAX : (int64_t)(above_of(to) - 1));
        else
            eddy_dtype_store_i64(to, out, (int64_t)value);
        return;
    }
    int64_t value = eddy_dtype_load_i64(from, in);
    if (to == EDDY_F64)
        *(double *)out = (double)value;
    else if (to == EDDY_F32)
        *(float *)out = (float)value;
    else if (eddy_dtype_is_float(to))
        eddy_dtype_store_i64(to, out, value);
    else if (to == EDDY_BOOL)
        *(uint8_t *)out = value != 0;
    else
        eddy_dtype_store_i64(to, out, wrapped(to, value));
}

static const double specials[] = {
    0,     -0.0,   1,     -1,     0.5,   -0.5,  1.5,    255,      256,        -129,
    32768, -32769, 65504, 65520,  1e-7,  6e-8,  1e10,   -1e10,    2147483647, 2147483648.0,
    1e19,  -1e19,  1e38,  3.5e38, 1e300, 1e-40, 1e-320, INFINITY, -INFINITY,  NAN};

static void check_pair(eddy_dtype from, eddy_dtype to, int32_t rank, const int64_t *shape,
                       layout in_layout, layout out_layout, eddy_kernel_team *team) {
    tensor in = tensor_make(from, rank, shape, in_layout),
           out = tensor_make(to, rank, shape, out_layout);
    tensor_fill(&in, from == EDDY_I8 ? 100 : 1000);
    if (eddy_dtype_is_float(from) && in_layout != BROADCAST)
        for (int64_t i = 0; i < in.count; i += 3)
            tensor_set(&in, i, specials[test_below(sizeof(specials) / sizeof(specials[0]))]);
    run_kernel(&eddy_cpu_copy, (tensor *[]){&in, &out}, 2, NULL, team, NULL);
    for (int64_t i = 0; i < out.count; i++) {
        char want[8], got[8] = {0};
        expected(from, tensor_at(&in, i), to, want);
        memcpy(got, tensor_at(&out, i), eddy_dtype_bytes(to));
        bool both_nan = eddy_dtype_is_float(to) && isnan(eddy_dtype_load_f64(to, want)) &&
                        isnan(eddy_dtype_load_f64(to, got));
        cr_assert(both_nan || memcmp(want, got, 8) == 0,
                  "%s from %s (%s), element %lld: %.17g became %.17g, not %.17g",
                  describe("copy", &out, out_layout), eddy_dtype_name(from), layout_name(in_layout),
                  (long long)i, tensor_get(&in, i), eddy_dtype_load_f64(to, got),
                  eddy_dtype_load_f64(to, want));
    }
    cr_assert(tensor_guards_hold(&out), "%s", describe("copy", &out, out_layout));
    tensor_free(&in);
    tensor_free(&out);
}

Test(copy, every_dtype_becomes_every_other_in_every_layout) {
    const int64_t shapes[][3] = {{3, 5, 7}, {1, 1, 1}, {0, 4, 2}, {2, 33, 31}};
    for (int from = 0; from < EDDY_DTYPE_COUNT; from++)
        for (int to = 0; to < EDDY_DTYPE_COUNT; to++)
            for (int s = 0; s < 4; s++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_pair((eddy_dtype)from, (eddy_dtype)to, 3, shapes[s], (layout)a,
                               (layout)test_below(OUTPUT_LAYOUTS), &serial_team);
}

/* Integers near the middle between two numbers of bf16, which f32 takes for the middle itself. */
Test(copy, large_integers_are_rounded_once) {
    enum { COUNT = 4099 };
    const int64_t shape[] = {COUNT};
    const eddy_dtype from[] = {EDDY_I32, EDDY_I64},
                     to[] = {EDDY_BF16, EDDY_F16, EDDY_F32, EDDY_F64};
    for (int f = 0; f < 2; f++)
        for (int t = 0; t < 4; t++) {
            tensor in = tensor_make(from[f], 1, shape, CONTIGUOUS),
                   out = tensor_make(to[t], 1, shape, CONTIGUOUS);
            for (int64_t i = 0; i < COUNT; i++) {
                int top = 9 + (int)test_below(f == 0 ? 22 : 54);
                int64_t value = (INT64_C(1) << top) +
                                (INT64_C(1) << (top - 8)) * (1 + 2 * (int64_t)test_below(100));
                value += (int64_t)test_below(3) - 1;
                eddy_dtype_store_i64(from[f], tensor_at(&in, i), i % 2 ? value : -value);
            }
            run_kernel(&eddy_cpu_copy, (tensor *[]){&in, &out}, 2, NULL, &serial_team, NULL);
            for (int64_t i = 0; i < COUNT; i++) {
                char want[8], got[8] = {0};
                expected(from[f], tensor_at(&in, i), to[t], want);
                memcpy(got, tensor_at(&out, i), eddy_dtype_bytes(to[t]));
                cr_assert(memcmp(want, got, 8) == 0, "%s from %s: %lld became %.17g, not %.17g",
                          eddy_dtype_name(to[t]), eddy_dtype_name(from[f]),
                          (long long)eddy_dtype_load_i64(from[f], tensor_at(&in, i)),
                          eddy_dtype_load_f64(to[t], got), eddy_dtype_load_f64(to[t], want));
            }
            tensor_free(&in);
            tensor_free(&out);
        }
}

Test(copy, big_and_transposed_copies_do_not_depend_on_slices) {
    const int64_t square[] = {517, 1031}, cube[] = {3, 130, 257};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16, EDDY_U8};
    for (int d = 0; d < 4; d++) {
        check_pair(dtypes[d], dtypes[d], 2, square, TURNED, CONTIGUOUS, &shuffling_team);
        check_pair(dtypes[d], dtypes[d], 3, cube, TURNED, CONTIGUOUS, &threaded_team);
        check_pair(dtypes[d], dtypes[d], 2, square, CONTIGUOUS, TURNED, &threaded_team);
        check_pair(dtypes[d], EDDY_F32, 2, square, STRIDED, NEGATIVE, &shuffling_team);
    }
}

Test(copy, rank_zero_and_one) {
    const int64_t sizes[] = {1, 2, 31, 511, 512, 513, 4099};
    check_pair(EDDY_F32, EDDY_I64, 0, NULL, CONTIGUOUS, CONTIGUOUS, &serial_team);
    for (int s = 0; s < 7; s++)
        for (int a = 0; a < LAYOUT_COUNT; a++)
            check_pair(EDDY_F64, EDDY_F16, 1, &sizes[s], (layout)a, STRIDED, &serial_team);
}

Test(copy, inline_half_conversions_equal_those_of_base) {
    for (uint32_t h = 0; h < 65536; h++) {
        float want = eddy_f16_to_f32((uint16_t)h), got = eddy_half_load((uint16_t)h);
        cr_assert(memcmp(&want, &got, 4) == 0 || (isnan(want) && isnan(got)), "half %x", h);
    }
    for (int i = 0; i < 2000000; i++) {
        float value = eddy_f32_of_bits((uint32_t)test_random());
        uint16_t want = eddy_f32_to_f16(value), got = eddy_half_store(value);
        cr_assert(want == got || isnan(value), "%a gives %x, not %x", (double)value, got, want);
        uint64_t bits = test_random();
        double wide;
        memcpy(&wide, &bits, 8);
        if (i % 2)
            wide = ldexp(test_unit() - 0.5, (int)test_below(50) - 30);
        cr_assert(isnan(wide) ||
                      eddy_f64_to_f16(wide) == eddy_half_store(eddy_f32_round_to_odd(wide)),
                  "%a", wide);
        cr_assert(isnan(wide) ||
                      eddy_f64_to_bf16(wide) == eddy_f32_to_bf16(eddy_f32_round_to_odd(wide)),
                  "%a", wide);
    }
}

/* Signalling NaN too, and at the ends of a run, where fewer are left than the processor converts at once. */
Test(copy, each_half_is_converted_as_if_alone) {
    enum { HALVES = 65536 };
    static uint16_t halves[HALVES], narrow[HALVES];
    static float wide[HALVES];
    for (uint32_t h = 0; h < HALVES; h++)
        halves[h] = (uint16_t)h;
    EACH_ISA(isa) {
        const eddy_cast_blocks *blocks = eddy_cpu_cast_blocks_for(isa);
        for (int64_t first = 0; first < 12; first++) {
            int64_t count = HALVES - 2 * first;
            blocks->cast[EDDY_F32][EDDY_F16](wide, halves + first, count);
            for (int64_t i = 0; i < count; i++) {
                float want = eddy_half_load(halves[first + i]);
                cr_assert_eq(memcmp(&want, &wide[i], 4), 0, "%s, half %x", eddy_isa_name(isa),
                             halves[first + i]);
                if (i % 3)
                    wide[i] = eddy_f32_of_bits((uint32_t)test_random());
            }
            blocks->cast[EDDY_F16][EDDY_F32](narrow, wide, count);
            for (int64_t i = 0; i < count; i++)
                cr_assert_eq(narrow[i], eddy_half_store(wide[i]), "%s, %a: %x", eddy_isa_name(isa),
                             (double)wide[i], narrow[i]);
        }
    }
}

/* Places just after the source within a page, where long copies go another way; what lies around stays. */
Test(copy, bytes_arrive_wherever_they_lie) {
    enum { PAGE = 4096, ROOM = 6 * PAGE };
    unsigned char *from = aligned_alloc(PAGE, ROOM), *to = aligned_alloc(PAGE, ROOM);
    const int64_t counts[] = {2047, 2048, 2049, 2100, 4096, 9001};
    for (int i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(test_random() % 255);
    for (int after = 0; after < 80; after++)
        for (int c = 0; c < 6; c++) {
            memset(to, 255, ROOM);
            eddy_chunk_copy(EDDY_U8, to + PAGE + after, 1, EDDY_U8, from + PAGE, 1, counts[c]);
            cr_assert_eq(memcmp(to + PAGE + after, from + PAGE, (size_t)counts[c]), 0,
                         "%d after, %lld bytes", after, (long long)counts[c]);
            cr_assert(to[PAGE + after - 1] == 255 && to[PAGE + after + counts[c]] == 255,
                      "%d after, %lld bytes", after, (long long)counts[c]);
        }
    free(from);
    free(to);
}
