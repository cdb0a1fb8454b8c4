/* masked_fill, masked_select, masked_scatter: exact, against loops over flat numbers. */
#include "late.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <stdlib.h>
#include <string.h>

#define EACH_DTYPE(d) for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
#define SOME_OUTPUT ((layout)test_below(OUTPUT_LAYOUTS))

/* The number in `t` of joint element `flat`. */
static int64_t broadcast_flat(const tensor *t, int32_t rank, const int64_t *dims, int64_t flat) {
    int64_t index[EDDY_RANK_MAX], own = 0;
    for (int32_t d = rank - 1; d >= 0; d--) {
        index[d] = flat % dims[d];
        flat /= dims[d];
    }
    for (int32_t d = 0; d < t->view.rank; d++)
        own = own * t->shape[d] + (t->shape[d] == 1 ? 0 : index[rank - t->view.rank + d]);
    return own;
}

static bool same(const tensor *a, int64_t at, const void *want) {
    return memcmp(tensor_at(a, at), want, eddy_dtype_bytes(a->view.dtype)) == 0;
}

/* Operands of the joint shape `dims` that broadcast to it, each in its own way. */
typedef struct operands {
    int64_t dims[3], count;
    tensor in, mask;
} operands;

static operands operands_make(eddy_dtype dtype, const int64_t *dims, bool is_whole, layout a) {
    operands o = {.dims = {dims[0], dims[1], dims[2]}, .count = dims[0] * dims[1] * dims[2]};
    int64_t in_dims[3], mask_dims[3];
    int axis = (int)test_below(3);
    for (int d = 0; d < 3; d++) {
        in_dims[d] = is_whole || d != axis ? dims[d] : 1;
        mask_dims[d] = is_whole || d == axis || test_below(2) ? dims[d] : 1;
    }
    o.in = tensor_make(dtype, 3, in_dims, is_whole && a == BROADCAST ? STRIDED : a);
    int32_t cut = is_whole || dims[0] == 0 || in_dims[0] == 1 ? 0 : (int32_t)test_below(2);
    o.mask = tensor_make(EDDY_BOOL, 3 - cut, mask_dims + cut, (layout)test_below(LAYOUT_COUNT));
    tensor_fill(&o.in, 100), tensor_fill(&o.mask, 1);
    return o;
}

static bool holds(const operands *o, int64_t i) {
    return tensor_get(&o->mask, broadcast_flat(&o->mask, 3, o->dims, i)) != 0;
}

static const void *input_at(const operands *o, int64_t i) {
    return tensor_at(&o->in, broadcast_flat(&o->in, 3, o->dims, i));
}

static void operands_free(operands *o) {
    tensor_free(&o->in), tensor_free(&o->mask);
}

static const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {2, 0, 3}, {3, 13, 64}};
#define SHAPES 4

static void check_fill(eddy_dtype dtype, const int64_t *dims, layout a, eddy_kernel_team *team) {
    bool in_place = test_below(2);
    operands o = operands_make(dtype, dims, in_place, a);
    tensor out = tensor_make(dtype, 3, dims, SOME_OUTPUT);
    char seven[8], *want = malloc((size_t)o.count * 8 + 8);
    eddy_dtype_store_i64(dtype, seven, 7);
    for (int64_t i = 0; i < o.count; i++)
        memcpy(want + i * 8, holds(&o, i) ? seven : input_at(&o, i), eddy_dtype_bytes(dtype));
    tensor *to = in_place ? &o.in : &out;
    eddy_attributes_full attributes = {.value = EDDY_S(7)};
    cr_assert_eq(run_kernel(&eddy_cpu_masked_fill, (tensor *[]){&o.in, &o.mask, to}, 3, &attributes,
                            team, NULL),
                 0);
    for (int64_t i = 0; i < o.count; i++)
        cr_assert(same(to, i, want + i * 8), "%s element %lld", describe("masked_fill", &o.in, a),
                  (long long)i);
    cr_assert(tensor_guards_hold(to));
    free(want);
    operands_free(&o), tensor_free(&out);
}

Test(mask, masked_fill_of_every_dtype_and_layout) {
    EACH_DTYPE(d) {
        for (int s = 0; s < SHAPES; s++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                check_fill((eddy_dtype)d, shapes[s], (layout)a,
                           test_below(2) ? &serial_team : &shuffling_team);
    }
    check_fill(EDDY_F32, (const int64_t[]){30, 70, 67}, CONTIGUOUS, &threaded_team);
}

static void check_select(eddy_dtype dtype, const int64_t *dims, layout a) {
    operands o = operands_make(dtype, dims, false, a);
    int64_t n = 0;
    for (int64_t i = 0; i < o.count; i++)
        n += holds(&o, i);
    late_call late;
    late_begin(&late, &eddy_cpu_masked_select, (tensor *[]){&o.in, &o.mask}, 2, 3, NULL);
    cr_assert_eq(late.shapes[0].rank, 1);
    cr_assert_eq(late.shapes[0].dims[0], n, "%s", describe("masked_select", &o.in, a));
    tensor out = tensor_make(dtype, 1, &n, SOME_OUTPUT);
    late_run(&late, 2, (tensor *[]){&out});
    for (int64_t i = 0, k = 0; i < o.count; i++)
        if (holds(&o, i))
            cr_assert(same(&out, k++, input_at(&o, i)), "%s element %lld",
                      describe("masked_select", &o.in, a), (long long)i);
    cr_assert(tensor_guards_hold(&out));
    operands_free(&o), tensor_free(&out);
}

static void check_scatter(eddy_dtype dtype, const int64_t *dims, layout a) {
    bool in_place = test_below(2);
    operands o = operands_make(dtype, dims, in_place, a);
    int64_t n = 0, more[2] = {1 + test_below(3), 0}, k = 0;
    for (int64_t i = 0; i < o.count; i++)
        n += holds(&o, i);
    more[1] = n / more[0] + 1;
    tensor source = tensor_make(dtype, 2, more, (layout)test_below(LAYOUT_COUNT));
    tensor out = tensor_make(dtype, 3, dims, SOME_OUTPUT), *to = in_place ? &o.in : &out;
    tensor_fill(&source, 100);
    char *want = malloc((size_t)o.count * 8 + 8);
    for (int64_t i = 0; i < o.count; i++)
        memcpy(want + i * 8, holds(&o, i) ? tensor_at(&source, k++) : input_at(&o, i),
               eddy_dtype_bytes(dtype));
    cr_assert_eq(run_kernel(&eddy_cpu_masked_scatter, (tensor *[]){&o.in, &o.mask, &source, to}, 4,
                            NULL, &shuffling_team, NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < o.count; i++)
        cr_assert(same(to, i, want + i * 8), "%s element %lld",
                  describe("masked_scatter", &o.in, a), (long long)i);
    cr_assert(tensor_guards_hold(to));
    free(want);
    operands_free(&o), tensor_free(&source), tensor_free(&out);
}

Test(mask, masked_select_and_masked_scatter_of_every_dtype_and_layout) {
    EACH_DTYPE(d) {
        for (int s = 0; s < SHAPES; s++)
            for (int a = 0; a < LAYOUT_COUNT; a++) {
                check_select((eddy_dtype)d, shapes[s], (layout)a);
                check_scatter((eddy_dtype)d, shapes[s], (layout)a);
            }
    }
}

/* The source has all elements that are asked for, fewer or more. */
static void check_plain_scatter(eddy_dtype dtype, int64_t n, int64_t spare, bool in_place) {
    tensor in = tensor_make(dtype, 1, &n, CONTIGUOUS),
           mask = tensor_make(EDDY_BOOL, 1, &n, UNALIGNED);
    int64_t held = 0, k = 0;
    tensor_fill(&in, 100), tensor_fill(&mask, 1);
    for (int64_t i = 0; i < n; i++)
        held += tensor_get(&mask, i) != 0;
    int64_t there = held + spare < 0 ? 0 : held + spare;
    tensor source = tensor_make(dtype, 1, &there, CONTIGUOUS),
           out = tensor_make(dtype, 1, &n, UNALIGNED);
    tensor before = tensor_make(dtype, 1, &n, CONTIGUOUS), *to = in_place ? &in : &out;
    tensor_fill(&source, 100);
    for (int64_t i = 0; i < n; i++)
        memcpy(tensor_at(&before, i), tensor_at(&in, i), eddy_dtype_bytes(dtype));
    eddy_kernel_error error;
    run_kernel(&eddy_cpu_masked_scatter, (tensor *[]){&in, &mask, &source, to}, 4, NULL,
               &serial_team, &error);
    cr_assert(tensor_guards_hold(to));
    cr_assert(held <= there ? error.status == EDDY_OK
                            : error.status == EDDY_OUT_OF_RANGE && error.bound == there);
    for (int64_t i = 0; i < n && held <= there; i++)
        cr_assert(same(to, i,
                       tensor_get(&mask, i) != 0 ? tensor_at(&source, k++) : tensor_at(&before, i)),
                  "%s element %lld", describe("masked_scatter", &in, CONTIGUOUS), (long long)i);
    tensor_free(&in), tensor_free(&mask), tensor_free(&source), tensor_free(&out),
        tensor_free(&before);
}

Test(mask, masked_scatter_in_one_sweep) {
    EACH_DTYPE(d) {
        for (int64_t n = 1; n < 900; n += 1 + n / 3)
            for (int64_t spare = -3; spare <= 300; spare += spare < 2 ? 1 : 298)
                check_plain_scatter((eddy_dtype)d, n, spare, test_below(2));
    }
}

Test(mask, a_source_that_is_too_short_is_an_error) {
    int64_t five = 5, two = 2;
    tensor in = tensor_make(EDDY_F32, 1, &five, CONTIGUOUS),
           mask = tensor_make(EDDY_BOOL, 1, &five, CONTIGUOUS);
    tensor source = tensor_make(EDDY_F32, 1, &two, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &five, STRIDED);
    for (int64_t i = 0; i < 5; i += 2)
        tensor_set(&mask, i, 1);
    eddy_kernel_error error;
    run_kernel(&eddy_cpu_masked_scatter, (tensor *[]){&in, &mask, &source, &out}, 4, NULL,
               &serial_team, &error);
    cr_assert(error.status == EDDY_OUT_OF_RANGE && error.bound == 2);
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&mask), tensor_free(&source), tensor_free(&out);
}
