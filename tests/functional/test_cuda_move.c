/* Ops that move, make or replace elements, on a CUDA device: the CPU's bits, of every dtype and layout. On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

static int32_t axis_of(eddy_shape shape) {
    return (int32_t)random_below(shape.rank) - (random_below(2) == 0 ? shape.rank : 0);
}

static eddy_shape with_axis(eddy_shape shape) {
    if (shape.rank == 0)
        shape = EDDY_SHAPE(3);
    return shape;
}

Test(cuda_move, cat_and_stack) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = with_axis(twin_shape(4, 5));
        eddy_tensor *here[4], *there[4];
        int32_t axis = axis_of(shape), at = axis < 0 ? axis + shape.rank : axis;
        for (int i = 0; i < 4; i++) {
            twin part = twin_random(dtype, shape, false);
            here[i] = part.here;
            there[i] = part.there;
        }
        twin_expect_equal("stack", eddy_stack(EDDY_ARRAY(here), axis),
                          eddy_stack(EDDY_ARRAY(there), axis));
        for (int i = 0; i < 4; i++) {
            int64_t length = random_below(shape.dims[at] + 1);
            here[i] = eddy_narrow(here[i], axis, 0, length);
            there[i] = eddy_narrow(there[i], axis, 0, length);
        }
        eddy_tensor *joined = eddy_cat(EDDY_ARRAY(here), axis);
        twin_expect_equal("cat", joined, eddy_cat(EDDY_ARRAY(there), axis));
        twin target = twin_random(dtype, eddy_shape_of(joined), true);
        cr_assert_eq(eddy_cat_into(EDDY_ARRAY(here), target.here, axis), EDDY_OK);
        cr_assert_eq(eddy_cat_into(EDDY_ARRAY(there), target.there, axis), EDDY_OK);
        twin_expect_equal("cat_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

Test(cuda_move, pad) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 5), before = {.rank = shape.rank},
                   after = {.rank = shape.rank};
        for (int32_t d = 0; d < shape.rank; d++) {
            before.dims[d] = random_below(4) - (shape.dims[d] > 1);
            after.dims[d] = random_below(4) - (shape.dims[d] > 2);
        }
        twin x = twin_random(dtype, shape, false);
        eddy_scalar value = EDDY_S(random_below(2));
        eddy_tensor *padded = eddy_pad(x.here, before, after, value);
        twin_expect_equal("pad", padded, eddy_pad(x.there, before, after, value));
        twin target = twin_random(dtype, eddy_shape_of(padded), true);
        cr_assert_eq(eddy_pad_into(x.here, target.here, before, after, value), EDDY_OK);
        cr_assert_eq(eddy_pad_into(x.there, target.there, before, after, value), EDDY_OK);
        twin_expect_equal("pad_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

Test(cuda_move, repeat_and_repeat_interleave) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(3, 4), repeats = {.rank = shape.rank + (int)random_below(3)};
        for (int32_t d = 0; d < repeats.rank; d++)
            repeats.dims[d] = random_below(4) + (random_below(8) > 0);
        twin x = twin_random(dtype, shape, false);
        eddy_tensor *repeated = eddy_repeat(x.here, repeats);
        twin_expect_equal("repeat", repeated, eddy_repeat(x.there, repeats));
        twin target = twin_random(dtype, eddy_shape_of(repeated), true);
        cr_assert_eq(eddy_repeat_into(x.here, target.here, repeats), EDDY_OK);
        cr_assert_eq(eddy_repeat_into(x.there, target.there, repeats), EDDY_OK);
        twin_expect_equal("repeat_into", target.here, target.there);
        int64_t times = random_below(4);
        int32_t axis = shape.rank == 0 ? 0 : axis_of(shape);
        twin_expect_equal("repeat_interleave", eddy_repeat_interleave(x.here, times, axis),
                          eddy_repeat_interleave(x.there, times, axis));
    }
    twin_expect_no_findings();
}

Test(cuda_move, the_last_rank_has_no_axis_left) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_shape shape = {.rank = EDDY_RANK_MAX};
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        shape.dims[d] = d % 5 == 0 ? 2 : 1;
    twin x = twin_random(EDDY_I32, shape, false);
    twin_expect_equal("repeat_interleave", eddy_repeat_interleave(x.here, 3, 5),
                      eddy_repeat_interleave(x.there, 3, 5));
    eddy_shape repeats = {.rank = EDDY_RANK_MAX};
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        repeats.dims[d] = d % 3 == 0 ? 2 : 1;
    twin_expect_equal("repeat", eddy_repeat(x.here, repeats), eddy_repeat(x.there, repeats));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_move, flip_and_roll) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 5), shifts = {0};
        eddy_axes axes = {0};
        for (int32_t d = 0; d < shape.rank; d++) {
            if (random_below(2) == 0)
                continue;
            axes.axes[axes.count++] = d - (random_below(2) == 0 ? shape.rank : 0);
            shifts.dims[shifts.rank++] = random_below(20) - 10;
        }
        twin x = twin_random(dtype, shape, false);
        twin_expect_equal("flip", eddy_flip(x.here, axes), eddy_flip(x.there, axes));
        if (axes.count > 0)
            twin_expect_equal("roll", eddy_roll(x.here, shifts, axes),
                              eddy_roll(x.there, shifts, axes));
        eddy_shape shift = EDDY_SHAPE(random_below(100) - 50);
        twin target = twin_random(dtype, shape, true);
        cr_assert_eq(eddy_roll_into(x.here, target.here, shift, EDDY_AXES()), EDDY_OK);
        cr_assert_eq(eddy_roll_into(x.there, target.there, shift, EDDY_AXES()), EDDY_OK);
        twin_expect_equal("roll_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

Test(cuda_move, masked_fill) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 6), mask_shape = shape;
        for (int32_t d = 0; d < shape.rank; d++)
            if (random_below(4) == 0)
                mask_shape.dims[d] = 1;
        twin x = twin_random(dtype, shape, true), mask = twin_random(EDDY_BOOL, mask_shape, false);
        twin_expect_equal("masked_fill", eddy_masked_fill(x.here, mask.here, EDDY_S(1)),
                          eddy_masked_fill(x.there, mask.there, EDDY_S(1)));
        cr_assert_eq(eddy_masked_fill_inplace(x.here, mask.here, EDDY_S(0)), EDDY_OK);
        cr_assert_eq(eddy_masked_fill_inplace(x.there, mask.there, EDDY_S(0)), EDDY_OK);
        twin_expect_equal("masked_fill_inplace", x.here, x.there);
    }
    twin_expect_no_findings();
}

Test(cuda_move, triangles_and_diagonals) {
    static const int64_t far[] = {INT64_MIN, INT64_MAX};
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(2, 3), own = twin_shape(2, 9);
        shape.dims[shape.rank++] = 1 + random_below(7);
        shape.dims[shape.rank++] = 1 + random_below(7);
        int64_t diagonal = random_below(9) == 0 ? far[random_below(2)] : random_below(15) - 7;
        twin x = twin_random(dtype, shape, true);
        twin_expect_equal("tril", eddy_tril(x.here, diagonal), eddy_tril(x.there, diagonal));
        twin_expect_equal("triu", eddy_triu(x.here, diagonal), eddy_triu(x.there, diagonal));
        cr_assert_eq(eddy_triu_inplace(x.here, diagonal), EDDY_OK);
        cr_assert_eq(eddy_triu_inplace(x.there, diagonal), EDDY_OK);
        twin_expect_equal("triu_inplace", x.here, x.there);
        own.rank = 1 + twin_round % 2;
        for (int32_t d = 0; d < own.rank; d++)
            own.dims[d] = random_below(8);
        twin y = twin_random(dtype, own, false);
        diagonal = random_below(9) - 4;
        twin_expect_equal("diag", eddy_diag(y.here, diagonal), eddy_diag(y.there, diagonal));
    }
    twin_expect_no_findings();
}

/* A creation op on the thread's device. */
#define EXPECT_MADE(what, call)                                                                    \
    do {                                                                                           \
        eddy_tensor *here_ = call;                                                                 \
        cr_assert_eq(eddy_device_scope_begin(TWIN_THERE), EDDY_OK);                                \
        eddy_tensor *there_ = call;                                                                \
        eddy_device_scope_end();                                                                   \
        twin_expect_equal(what, here_, there_);                                                    \
    } while (0)

Test(cuda_move, sequences_and_eye) {
    TWIN_EACH_DTYPE(dtype) {
        int64_t rows = random_below(7), columns = random_below(7);
        EXPECT_MADE("eye", eddy_eye(rows, columns, dtype, NULL));
        if (dtype == EDDY_BOOL)
            continue;
        bool is_unsigned = dtype == EDDY_U8;
        int64_t start = is_unsigned ? random_below(20) : random_below(40) - 20,
                count = random_below(90), step = 1 + random_below(4);
        EXPECT_MADE("arange",
                    eddy_arange(EDDY_S(start), EDDY_S(start + count), EDDY_S(step), dtype, NULL));
        double each = 0.1 + (double)random_below(100) / 7;
        EXPECT_MADE("arange", eddy_arange(EDDY_S((double)start / 3),
                                          EDDY_S((double)start / 3 + (double)count), EDDY_S(each),
                                          dtype, NULL));
        EXPECT_MADE("linspace", eddy_linspace(EDDY_S((double)start), EDDY_S((double)start + each),
                                              count, dtype, NULL));
        EXPECT_MADE("linspace", eddy_linspace(EDDY_S((double)(start + 100)), EDDY_S((double)start),
                                              1 + twin_round % 3, dtype, NULL));
    }
    eddy_scope *scope = eddy_scope_begin();
    EXPECT_MADE("arange",
                eddy_arange(EDDY_S(INT64_MAX - 5), EDDY_S(INT64_MAX), EDDY_S(1), EDDY_I64, NULL));
    EXPECT_MADE("linspace", eddy_linspace(EDDY_S(-3e38), EDDY_S(1e300), 3000, EDDY_BF16, NULL));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Of more elements than one pass of a grid has. */
Test(cuda_move, many_elements) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_shape shape = EDDY_SHAPE(301, 7, 331);
    twin x = twin_random(EDDY_F16, shape, true);
    twin_expect_equal("roll", eddy_roll(x.here, EDDY_SHAPE(17, -3), EDDY_AXES(2, 0)),
                      eddy_roll(x.there, EDDY_SHAPE(17, -3), EDDY_AXES(2, 0)));
    twin_expect_equal("flip", eddy_flip(x.here, EDDY_AXES(0, 2)),
                      eddy_flip(x.there, EDDY_AXES(0, 2)));
    twin_expect_equal("tril", eddy_tril(x.here, 5), eddy_tril(x.there, 5));
    EXPECT_MADE("arange", eddy_arange(EDDY_S(0), EDDY_S(700001), EDDY_S(1), EDDY_I32, NULL));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}
