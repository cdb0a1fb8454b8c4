/* Rotary position embedding on a CUDA device, on the fake driver (tests/fake_cuda): the bits of the CPU. */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

/* [.., S, D] with an even D. */
static eddy_shape rows_shape(int64_t positions, int64_t width) {
    eddy_shape shape = twin_shape(3, 4);
    shape.dims[shape.rank++] = positions;
    shape.dims[shape.rank++] = width;
    return shape;
}

static void turn(eddy_dtype dtype, int64_t least, int64_t most, double base) {
    int64_t positions = random_below(9), width = 2 * random_below(40);
    bool is_interleaved = random_below(2) == 0;
    eddy_shape shape = rows_shape(positions, width);
    twin x = random_below(4) == 0 ? twin_random(dtype, shape, false)
                                  : twin_numbers(dtype, shape, false),
         at = twin_indices(EDDY_I64, EDDY_SHAPE(positions), least, most),
         target = twin_numbers(dtype, shape, true);
    const eddy_rope_options *options =
        EDDY_OPTIONS(rope, .base = base, .is_interleaved = is_interleaved);
    twin_expect_equal("rope", eddy_rope(x.here, at.here, options),
                      eddy_rope(x.there, at.there, options));
    cr_assert_eq(eddy_rope_into(x.here, at.here, target.here, options), EDDY_OK);
    cr_assert_eq(eddy_rope_into(x.there, at.there, target.there, options), EDDY_OK);
    twin_expect_equal("rope_into", target.here, target.there);
}

static void turns(int64_t least, int64_t most, double base) {
    for (int round = 0; round < 24; round++) {
        eddy_scope *scope = eddy_scope_begin();
        turn(floats[round % 4], least, most, base);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_rope, has_the_bits_of_the_cpu) {
    turns(0, 4000, 10000);
}

Test(cuda_rope, of_positions_before_the_first) {
    turns(-4000, 0, 1e6);
}

/* Angles that have another reduction, in part of the rows. */
Test(cuda_rope, of_angles_of_any_size) {
    turns(INT64_C(1) << 28, INT64_C(1) << 32, 10000);
    turns(INT64_MIN / 4, INT64_MAX / 4, 3);
}

/* The highest frequency is the last. */
Test(cuda_rope, of_a_base_below_one) {
    turns(0, INT64_C(1) << 30, 0.01);
}

static eddy_tensor *gradient_on(eddy_tensor *given, eddy_tensor *positions) {
    eddy_tensor *leaf = eddy_detach(given);
    cr_assert_eq(eddy_requires_grad_set(leaf, true), EDDY_OK);
    eddy_tensor *y = eddy_rope(leaf, positions, NULL);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(leaf);
}

Test(cuda_rope, has_the_gradient_of_the_cpu) {
    for (int round = 0; round < 4; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = twin_numbers(floats[round % 2], EDDY_SHAPE(2, 3, 8), false),
             at = twin_indices(EDDY_I64, EDDY_SHAPE(3), 0, 100);
        twin_expect_equal("gradient", gradient_on(x.here, at.here), gradient_on(x.there, at.there));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
