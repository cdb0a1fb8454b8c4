/* Picking and putting at the places that several indices or a mask name, on a CUDA device: the CPU's bits, and its errors. On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

#define INDICES_MOST 4

/* Indices of the first axes of a shape, which broadcast together. */
typedef struct some_indices {
    eddy_tensor *here[INDICES_MOST], *there[INDICES_MOST];
    eddy_list list_here, list_there;
} some_indices;

/* With elements in each axis. `excess`: indices may be out of range by so much. */
static void make_indices(some_indices *all, eddy_shape shape, int64_t excess) {
    int32_t count =
        1 + (int32_t)random_below(shape.rank < INDICES_MOST ? shape.rank : INDICES_MOST);
    eddy_shape joint = twin_shape(3, 5);
    for (int32_t i = 0; i < count; i++) {
        eddy_shape own = {.rank = (int32_t)random_below(joint.rank + 1)};
        for (int32_t d = 0; d < own.rank; d++)
            own.dims[d] = random_below(3) == 0 ? 1 : joint.dims[joint.rank - own.rank + d];
        int64_t bound = shape.dims[i];
        twin index = twin_indices(twin_index_dtype(), own, -bound - excess, bound - 1 + excess);
        all->here[i] = index.here;
        all->there[i] = index.there;
    }
    all->list_here = (eddy_list){all->here, count};
    all->list_there = (eddy_list){all->there, count};
}

static eddy_shape some_shape(void) {
    eddy_shape shape = twin_shape(5, 5);
    if (shape.rank == 0)
        shape = EDDY_SHAPE(4);
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] += shape.dims[d] == 0;
    return shape;
}

Test(cuda_advanced_index, index) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = some_shape();
        some_indices indices;
        make_indices(&indices, shape, 0);
        if (random_below(8) == 0 && indices.list_here.count < shape.rank)
            shape.dims[shape.rank - 1] = 0;
        twin x = twin_random(dtype, shape, false);
        eddy_tensor *picked = eddy_index(x.here, indices.list_here);
        twin_expect_equal("index", picked, eddy_index(x.there, indices.list_there));
        twin target = twin_random(dtype, eddy_shape_of(picked), true);
        cr_assert_eq(eddy_index_into(x.here, indices.list_here, target.here), EDDY_OK);
        cr_assert_eq(eddy_index_into(x.there, indices.list_there, target.there), EDDY_OK);
        twin_expect_equal("index_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

static eddy_shape shape_of_values(eddy_tensor *x, eddy_list indices) {
    eddy_shape shape = eddy_shape_of(eddy_index(x, indices)), own = {0};
    own.rank = (int32_t)random_below(shape.rank + 1);
    for (int32_t d = 0; d < own.rank; d++)
        own.dims[d] = random_below(4) == 0 ? 1 : shape.dims[shape.rank - own.rank + d];
    return own;
}

Test(cuda_advanced_index, index_put) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = some_shape();
        some_indices indices;
        make_indices(&indices, shape, 0);
        twin x = twin_numbers(dtype, shape, true), target = twin_random(dtype, shape, true),
             values = twin_numbers(dtype, shape_of_values(x.here, indices.list_here), false);
        for (int adds = 0; adds < 2; adds++) {
            const eddy_index_put_options *options =
                EDDY_OPTIONS(index_put, .accumulates = adds != 0);
            twin_expect_equal("index_put",
                              eddy_index_put(x.here, indices.list_here, values.here, options),
                              eddy_index_put(x.there, indices.list_there, values.there, options));
            cr_assert_eq(
                eddy_index_put_into(x.here, indices.list_here, values.here, target.here, options),
                EDDY_OK);
            cr_assert_eq(eddy_index_put_into(x.there, indices.list_there, values.there,
                                             target.there, options),
                         EDDY_OK);
            twin_expect_equal("index_put_into", target.here, target.there);
            cr_assert_eq(eddy_index_put_inplace(x.here, indices.list_here, values.here, options),
                         EDDY_OK);
            cr_assert_eq(eddy_index_put_inplace(x.there, indices.list_there, values.there, options),
                         EDDY_OK);
            twin_expect_equal("index_put_inplace", x.here, x.there);
        }
    }
    twin_expect_no_findings();
}

/* Sums of many that go to few places, in an order that shows; and rows that are moved in words. */
Test(cuda_advanced_index, many_places) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_BF16, EDDY_I64};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        eddy_scope *scope = eddy_scope_begin();
        twin rows = twin_indices(EDDY_I64, EDDY_SHAPE(500), -9, 8),
             columns = twin_indices(EDDY_I32, EDDY_SHAPE(500), -5, 4),
             x = twin_numbers(dtypes[i], EDDY_SHAPE(9, 5, 16), true),
             values = twin_numbers(dtypes[i], EDDY_SHAPE(500, 16), false);
        const eddy_index_put_options *adds = EDDY_OPTIONS(index_put, .accumulates = true);
        eddy_list here = EDDY_LIST(rows.here, columns.here),
                  there = EDDY_LIST(rows.there, columns.there);
        twin_expect_equal("index", eddy_index(x.here, here), eddy_index(x.there, there));
        twin_expect_equal("index_put", eddy_index_put(x.here, here, values.here, adds),
                          eddy_index_put(x.there, there, values.there, adds));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_advanced_index, the_lowest_position_of_many_is_named) {
    int failed = 0;
    for (int round = 0; round < ROUNDS_OF(60); round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape = some_shape();
        some_indices indices;
        make_indices(&indices, shape, 1);
        if (random_below(4) == 0)
            shape.dims[0] = 0;
        twin x = twin_numbers(EDDY_F16, shape, true),
             values = twin_numbers(EDDY_F16, EDDY_SHAPE(), false);
        const eddy_index_put_options *options =
            EDDY_OPTIONS(index_put, .accumulates = random_below(2));
        failed += twin_fail_alike(eddy_index(x.here, indices.list_here),
                                  eddy_index(x.there, indices.list_there));
        failed +=
            twin_fail_alike(eddy_index_put(x.here, indices.list_here, values.here, options),
                            eddy_index_put(x.there, indices.list_there, values.there, options));
        eddy_scope_end(scope);
    }
    cr_assert_gt(failed, ROUNDS_OF(50));
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* No memory is theirs, however large the other dims are, and no time is taken for what they would be. */
Test(cuda_advanced_index, what_is_empty_has_no_place) {
    const int64_t huge = INT64_C(1) << 40;
    const eddy_shape shapes[] = {EDDY_SHAPE(200000, 4, 0), EDDY_SHAPE(4000000, 0, 4),
                                 EDDY_SHAPE(0, huge), EDDY_SHAPE(0, 3, huge)};
    eddy_scope *scope = eddy_scope_begin();
    int64_t noughts[4] = {0};
    float one = 1;
    twin index = twin_of(noughts, EDDY_SHAPE(4), EDDY_I64),
         value = twin_of(&one, EDDY_SHAPE(), EDDY_F32);
    for (int i = 0; i < 4; i++) {
        twin x = twin_of(&one, shapes[i], EDDY_F32);
        eddy_tensor *here[3] = {index.here, index.here, index.here},
                    *there[3] = {index.there, index.there, index.there};
        eddy_list all_here = {here, i < 2 ? 3 : 1}, all_there = {there, i < 2 ? 3 : 1};
        if (i < 2)
            twin_expect_error(eddy_index(x.here, all_here), eddy_index(x.there, all_there));
        for (int adds = 0; adds < 2; adds++) {
            const eddy_index_put_options *options = EDDY_OPTIONS(index_put, .accumulates = adds);
            twin_expect_error(eddy_index_put(x.here, all_here, value.here, options),
                              eddy_index_put(x.there, all_there, value.there, options));
        }
    }
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- masked_scatter ---- */

/* The last dims of a shape, some of them 1. */
static eddy_shape part_of(eddy_shape shape) {
    eddy_shape part = {.rank = (int32_t)random_below(shape.rank + 1)};
    for (int32_t d = 0; d < part.rank; d++)
        part.dims[d] = random_below(4) == 0 ? 1 : shape.dims[shape.rank - part.rank + d];
    return part;
}

static void expect_scattered(eddy_dtype dtype, eddy_shape shape, eddy_shape mask_shape,
                             eddy_shape source_shape) {
    twin x = twin_random(dtype, shape, true), y = twin_random(dtype, part_of(shape), false),
         mask = twin_random(EDDY_BOOL, mask_shape, false),
         all = twin_random(EDDY_BOOL, shape, false),
         source = twin_random(dtype, source_shape, false), target = twin_random(dtype, shape, true);
    twin_expect_equal("masked_scatter", eddy_masked_scatter(x.here, mask.here, source.here),
                      eddy_masked_scatter(x.there, mask.there, source.there));
    twin_expect_equal("masked_scatter of what broadcasts",
                      eddy_masked_scatter(y.here, all.here, source.here),
                      eddy_masked_scatter(y.there, all.there, source.there));
    cr_assert_eq(eddy_masked_scatter_into(x.here, mask.here, source.here, target.here), EDDY_OK);
    cr_assert_eq(eddy_masked_scatter_into(x.there, mask.there, source.there, target.there),
                 EDDY_OK);
    twin_expect_equal("masked_scatter_into", target.here, target.there);
    cr_assert_eq(eddy_masked_scatter_inplace(x.here, mask.here, source.here), EDDY_OK);
    cr_assert_eq(eddy_masked_scatter_inplace(x.there, mask.there, source.there), EDDY_OK);
    twin_expect_equal("masked_scatter_inplace", x.here, x.there);
}

Test(cuda_advanced_index, masked_scatter) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 6), source_shape = shape;
        for (int32_t d = 0; d < shape.rank; d++)
            source_shape.dims[d] += random_below(2);
        expect_scattered(dtype, shape, part_of(shape), source_shape);
    }
    twin_expect_no_findings();
}

/* Of several chunks, and of more than a block of threads adds up at once. */
Test(cuda_advanced_index, masked_scatter_of_many) {
    const int64_t counts[] = {2047, 2048, 2049, 100003, 2048 * 256 + 5};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape = EDDY_SHAPE(counts[i]);
        expect_scattered(i == 4 ? EDDY_U8 : EDDY_F32, shape, shape, shape);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_advanced_index, a_source_may_have_too_few_elements) {
    int failed = 0;
    for (int round = 0; round < ROUNDS_OF(40); round++) {
        eddy_scope *scope = eddy_scope_begin();
        uint8_t elements[5000];
        int64_t count = random_below(round % 4 ? 40 : 5000), held = 0;
        for (int64_t i = 0; i < count; i++)
            held += elements[i] = (uint8_t)random_below(2);
        int64_t given = held + 1 - random_below(3);
        twin x = twin_numbers(EDDY_I16, EDDY_SHAPE(count), true),
             mask = twin_of(elements, EDDY_SHAPE(count), EDDY_BOOL),
             source = twin_numbers(EDDY_I16, EDDY_SHAPE(given < 0 ? 0 : given), false);
        failed += twin_fail_alike(eddy_masked_scatter(x.here, mask.here, source.here),
                                  eddy_masked_scatter(x.there, mask.there, source.there));
        eddy_scope_end(scope);
    }
    cr_assert_gt(failed, ROUNDS_OF(40) / 8);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- gradients ---- */

/* The gradients of both inputs, of the squares of what is put and then picked. */
static void gradients(eddy_tensor *leaf, eddy_tensor *values, eddy_list indices, bool adds,
                      eddy_tensor **grads) {
    eddy_tensor *x = eddy_detach(leaf), *v = eddy_detach(values);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    cr_assert_eq(eddy_requires_grad_set(v, true), EDDY_OK);
    eddy_tensor *put = eddy_index_put(x, indices, v, EDDY_OPTIONS(index_put, .accumulates = adds));
    eddy_tensor *picked = eddy_index(eddy_mul(put, put), indices);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(picked, picked), EDDY_ALL_AXES, NULL)), EDDY_OK);
    grads[0] = eddy_grad_of(x);
    grads[1] = eddy_grad_of(v);
}

Test(cuda_advanced_index, gradients_have_the_bits_of_the_cpu) {
    for (int round = 0; round < 12; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = round % 2 ? EDDY_F32 : EDDY_F64;
        eddy_shape shape = EDDY_SHAPE(7, 6, 3);
        some_indices indices;
        make_indices(&indices, shape, 0);
        twin x = twin_numbers(dtype, shape, true),
             values = twin_numbers(dtype, shape_of_values(x.here, indices.list_here), true);
        eddy_tensor *here[2], *there[2];
        gradients(x.here, values.here, indices.list_here, round % 4 < 2, here);
        gradients(x.there, values.there, indices.list_there, round % 4 < 2, there);
        twin_expect_equal("gradient of input", here[0], there[0]);
        twin_expect_equal("gradient of values", here[1], there[1]);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
