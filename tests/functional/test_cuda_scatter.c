/* Ops that put or add by indices, on a CUDA device: the CPU's bits, whose sums come in the order of the index, and its errors. On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

/* Rarely one without elements, or a number. */
static eddy_shape some_shape(void) {
    eddy_shape shape = twin_shape(3, 6);
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] += shape.dims[d] == 0 && random_below(2) == 0;
    return shape;
}

Test(cuda_scatter, scatter_and_scatter_add) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = some_shape(), index_shape = shape, source_shape;
        int32_t axis = shape.rank == 0 ? 0 : (int32_t)random_below(shape.rank);
        int64_t bound = shape.rank == 0 ? 1 : shape.dims[axis];
        for (int32_t d = 0; d < shape.rank; d++)
            index_shape.dims[d] = bound == 0 ? 0 : random_below(d == axis ? 19 : shape.dims[d] + 1);
        source_shape = index_shape;
        for (int32_t d = 0; d < shape.rank; d++)
            source_shape.dims[d] += random_below(2);
        twin x = twin_numbers(dtype, shape, true),
             index =
                 twin_indices(twin_index_dtype(), index_shape, -bound, bound > 0 ? bound - 1 : 0),
             source = twin_numbers(dtype, source_shape, false),
             target = twin_random(dtype, shape, true);
        twin_expect_equal("scatter", eddy_scatter(x.here, index.here, source.here, axis),
                          eddy_scatter(x.there, index.there, source.there, axis));
        twin_expect_equal("scatter_add", eddy_scatter_add(x.here, index.here, source.here, axis),
                          eddy_scatter_add(x.there, index.there, source.there, axis));
        cr_assert_eq(eddy_scatter_add_into(x.here, index.here, source.here, target.here, axis),
                     EDDY_OK);
        cr_assert_eq(eddy_scatter_add_into(x.there, index.there, source.there, target.there, axis),
                     EDDY_OK);
        twin_expect_equal("scatter_add_into", target.here, target.there);
        cr_assert_eq(eddy_scatter_inplace(x.here, index.here, source.here, axis), EDDY_OK);
        cr_assert_eq(eddy_scatter_inplace(x.there, index.there, source.there, axis), EDDY_OK);
        twin_expect_equal("scatter_inplace", x.here, x.there);
    }
    twin_expect_no_findings();
}

Test(cuda_scatter, index_add) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = some_shape(), source_shape = shape;
        int32_t axis = shape.rank == 0 ? 0 : (int32_t)random_below(shape.rank);
        int64_t bound = shape.rank == 0 ? 1 : shape.dims[axis], count = random_below(30);
        if (bound == 0)
            count = 0;
        if (shape.rank == 0)
            count = 1;
        else
            source_shape.dims[axis] = count;
        twin x = twin_numbers(dtype, shape, true),
             index =
                 twin_indices(twin_index_dtype(), EDDY_SHAPE(count), 0, bound > 0 ? bound - 1 : 0),
             source = twin_numbers(dtype, source_shape, false);
        twin_expect_equal("index_add", eddy_index_add(x.here, index.here, source.here, axis),
                          eddy_index_add(x.there, index.there, source.there, axis));
        cr_assert_eq(eddy_index_add_inplace(x.here, index.here, source.here, axis), EDDY_OK);
        cr_assert_eq(eddy_index_add_inplace(x.there, index.there, source.there, axis), EDDY_OK);
        twin_expect_equal("index_add_inplace", x.here, x.there);
    }
    twin_expect_no_findings();
}

Test(cuda_scatter, embedding_backward) {
    TWIN_EACH_DTYPE(dtype) {
        int64_t rows = 1 + random_below(7), width = random_below(9);
        eddy_shape shape = twin_shape(3, 5), grad_shape = shape;
        grad_shape.dims[grad_shape.rank++] = width;
        twin index = twin_indices(twin_index_dtype(), shape, 0, rows - 1),
             grad = twin_numbers(dtype, grad_shape, false),
             weight = twin_numbers(dtype, EDDY_SHAPE(rows, width), false);
        int64_t padding = random_below(rows + 1) - 1;
        twin_expect_equal(
            "embedding_backward",
            eddy_embedding_backward(grad.here, index.here, weight.here,
                                    EDDY_OPTIONS(embedding_backward, .padding_index = padding)),
            eddy_embedding_backward(grad.there, index.there, weight.there,
                                    EDDY_OPTIONS(embedding_backward, .padding_index = padding)));
    }
    twin_expect_no_findings();
}

/* Of thousands of places, on the CPU in several slices and by rows. */
Test(cuda_scatter, many_rows) {
    eddy_scope *scope = eddy_scope_begin();
    twin index = twin_indices(EDDY_I64, EDDY_SHAPE(300), 0, 2999),
         grad = twin_numbers(EDDY_F32, EDDY_SHAPE(300, 64), false),
         table = twin_numbers(EDDY_F32, EDDY_SHAPE(3000, 64), true),
         few = twin_indices(EDDY_I32, EDDY_SHAPE(300), 0, 3);
    twin_expect_equal("embedding_backward",
                      eddy_embedding_backward(grad.here, index.here, table.here, NULL),
                      eddy_embedding_backward(grad.there, index.there, table.there, NULL));
    twin_expect_equal("index_add", eddy_index_add(table.here, few.here, grad.here, 0),
                      eddy_index_add(table.there, few.there, grad.there, 0));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_scatter, the_lowest_position_of_many_is_named) {
    int failed = 0;
    for (int round = 0; round < ROUNDS_OF(40); round++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t bound = 1 + random_below(5), width = random_below(4);
        eddy_shape shape = EDDY_SHAPE(bound, 1 + width), index_shape = EDDY_SHAPE(40, 1 + width);
        twin x = twin_numbers(EDDY_F16, shape, true),
             all = twin_indices(twin_index_dtype(), index_shape, -bound - 100, bound + 100),
             line = twin_indices(twin_index_dtype(), EDDY_SHAPE(40), -2, bound + 50),
             source = twin_numbers(EDDY_F16, index_shape, false),
             grad = twin_numbers(EDDY_F16, EDDY_SHAPE(40, width), false),
             weight = twin_numbers(EDDY_F16, EDDY_SHAPE(bound, width), false);
        failed += twin_fail_alike(eddy_scatter(x.here, all.here, source.here, 0),
                                  eddy_scatter(x.there, all.there, source.there, 0));
        failed += twin_fail_alike(eddy_scatter_add(x.here, all.here, source.here, 0),
                                  eddy_scatter_add(x.there, all.there, source.there, 0));
        failed += twin_fail_alike(eddy_index_add(x.here, line.here, source.here, 0),
                                  eddy_index_add(x.there, line.there, source.there, 0));
        failed +=
            twin_fail_alike(eddy_embedding_backward(grad.here, line.here, weight.here, NULL),
                            eddy_embedding_backward(grad.there, line.there, weight.there, NULL));
        eddy_scope_end(scope);
    }
    cr_assert_gt(failed, ROUNDS_OF(120));
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}
