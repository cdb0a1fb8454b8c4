/* Ops that pick by indices, on a CUDA device: the CPU's bits and the CPU's errors, and what follows an error. On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

/* With elements in each axis, of which there is one at least. */
static eddy_shape full_shape(void) {
    eddy_shape shape = twin_shape(4, 6);
    if (shape.rank == 0)
        shape = EDDY_SHAPE(5);
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] += shape.dims[d] == 0;
    return shape;
}

Test(cuda_index, index_select) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = full_shape();
        int32_t axis = (int32_t)random_below(shape.rank);
        int64_t bound = shape.dims[axis], count = random_below(9);
        int32_t other = (int32_t)random_below(shape.rank);
        if (other != axis && random_below(8) == 0)
            shape.dims[other] = 0;
        twin x = twin_random(dtype, shape, false),
             index = twin_indices(twin_index_dtype(), EDDY_SHAPE(count), 0, bound - 1);
        eddy_tensor *picked = eddy_index_select(x.here, index.here, axis);
        twin_expect_equal("index_select", picked, eddy_index_select(x.there, index.there, axis));
        twin target = twin_random(dtype, eddy_shape_of(picked), true);
        cr_assert_eq(eddy_index_select_into(x.here, index.here, target.here, axis), EDDY_OK);
        cr_assert_eq(eddy_index_select_into(x.there, index.there, target.there, axis), EDDY_OK);
        twin_expect_equal("index_select_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

Test(cuda_index, gather) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = full_shape(), index_shape = shape;
        int32_t axis = (int32_t)random_below(shape.rank);
        for (int32_t d = 0; d < shape.rank; d++)
            index_shape.dims[d] = random_below(d == axis ? 9 : shape.dims[d] + 1);
        twin x = twin_random(dtype, shape, false),
             index = twin_indices(twin_index_dtype(), index_shape, -shape.dims[axis],
                                  shape.dims[axis] - 1),
             target = twin_random(dtype, index_shape, true);
        twin_expect_equal("gather", eddy_gather(x.here, index.here, axis),
                          eddy_gather(x.there, index.there, axis));
        cr_assert_eq(eddy_gather_into(x.here, index.here, target.here, axis), EDDY_OK);
        cr_assert_eq(eddy_gather_into(x.there, index.there, target.there, axis), EDDY_OK);
        twin_expect_equal("gather_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

/* Rows that could be moved in words of several elements, had they one index. */
Test(cuda_index, elements_of_a_row_have_their_own_indices) {
    TWIN_EACH_DTYPE(dtype) {
        twin x = twin_random(dtype, EDDY_SHAPE(128), true),
             index = twin_indices(EDDY_I64, EDDY_SHAPE(5, 16), 0, 7);
        twin_expect_equal(
            "gather",
            eddy_gather(eddy_reshape(eddy_clone(x.here), EDDY_SHAPE(8, 16)), index.here, 0),
            eddy_gather(eddy_reshape(eddy_clone(x.there), EDDY_SHAPE(8, 16)), index.there, 0));
    }
    twin_expect_no_findings();
}

/* Rows of every length, so that elements are picked one by one and several at once. */
Test(cuda_index, embedding) {
    TWIN_EACH_DTYPE(dtype) {
        int64_t rows = 1 + random_below(9), width = random_below(40);
        eddy_shape shape = twin_shape(3, 5);
        twin weight = random_below(2) == 0 ? twin_random(dtype, EDDY_SHAPE(rows, width), false)
                                           : twin_random(dtype, EDDY_SHAPE(rows * width), true);
        if (eddy_rank_of(weight.here) == 1) {
            weight.here = eddy_reshape(eddy_clone(weight.here), EDDY_SHAPE(rows, width));
            weight.there = eddy_reshape(eddy_clone(weight.there), EDDY_SHAPE(rows, width));
        }
        twin index = twin_indices(twin_index_dtype(), shape, 0, rows - 1);
        eddy_tensor *picked = eddy_embedding(index.here, weight.here, NULL);
        twin_expect_equal("embedding", picked, eddy_embedding(index.there, weight.there, NULL));
        twin target = twin_random(dtype, eddy_shape_of(picked), true);
        cr_assert_eq(eddy_embedding_into(index.here, weight.here, target.here, NULL), EDDY_OK);
        cr_assert_eq(eddy_embedding_into(index.there, weight.there, target.there, NULL), EDDY_OK);
        twin_expect_equal("embedding_into", target.here, target.there);
    }
    twin_expect_no_findings();
}

Test(cuda_index, one_hot) {
    for (int round = 0; round < ROUNDS_OF(40); round++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t classes = 1 + random_below(7);
        twin index = twin_indices(twin_index_dtype(), twin_shape(3, 5), 0, classes - 1);
        twin_expect_equal("one_hot", eddy_one_hot(index.here, classes),
                          eddy_one_hot(index.there, classes));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* ---- errors ---- */

/* Of many bad indices the first is named, with its value and its bound, as on the CPU. */
Test(cuda_index, the_lowest_position_of_many_is_named) {
    int failed = 0;
    for (int round = 0; round < ROUNDS_OF(60); round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape = full_shape();
        int32_t axis = (int32_t)random_below(shape.rank);
        int64_t bound = shape.dims[axis];
        twin x = twin_random(EDDY_F32, shape, false);
        eddy_shape index_shape = shape;
        index_shape.dims[axis] = 50;
        twin line = twin_indices(twin_index_dtype(), EDDY_SHAPE(200), -2, bound + 100),
             all = twin_indices(twin_index_dtype(), index_shape, -bound - 1, bound),
             table = twin_random(EDDY_BF16, EDDY_SHAPE(bound, 1 + random_below(9)), false);
        failed += twin_fail_alike(eddy_index_select(x.here, line.here, axis),
                                  eddy_index_select(x.there, line.there, axis));
        failed += twin_fail_alike(eddy_gather(x.here, all.here, axis),
                                  eddy_gather(x.there, all.there, axis));
        twin target = twin_random(EDDY_F32, index_shape, true);
        cr_assert_eq(eddy_gather_into(x.here, all.here, target.here, axis), EDDY_OK);
        cr_assert_eq(eddy_gather_into(x.there, all.there, target.there, axis), EDDY_OK);
        failed += twin_fail_alike(target.here, target.there);
        failed += twin_fail_alike(eddy_embedding(all.here, table.here, NULL),
                                  eddy_embedding(all.there, table.there, NULL));
        failed += twin_fail_alike(eddy_one_hot(all.here, bound), eddy_one_hot(all.there, bound));
        eddy_scope_end(scope);
    }
    cr_assert_gt(failed, ROUNDS_OF(200));
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* Where a single index is bad, of thousands, and the others are picked. */
Test(cuda_index, one_bad_index_is_found) {
    static int64_t indices[70000];
    for (int round = 0; round < 4; round++) {
        eddy_scope *scope = eddy_scope_begin();
        for (int64_t i = 0; i < 70000; i++)
            indices[i] = random_below(11);
        indices[random_below(70000)] = round % 2 == 0 ? 11 : INT64_MIN;
        twin index = twin_of(indices, EDDY_SHAPE(700, 100), EDDY_I64),
             table = twin_random(EDDY_F64, EDDY_SHAPE(11, 3), false);
        twin_expect_error(eddy_embedding(index.here, table.here, NULL),
                          eddy_embedding(index.there, table.there, NULL));
        eddy_scope_end(scope);
    }
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* Indices are checked where there is nothing to pick. */
Test(cuda_index, indices_are_checked_without_elements) {
    eddy_scope *scope = eddy_scope_begin();
    twin index = twin_of((int32_t[]){0, 1, 7, 9}, EDDY_SHAPE(4), EDDY_I32),
         x = twin_random(EDDY_F32, EDDY_SHAPE(0, 3), false),
         table = twin_random(EDDY_F32, EDDY_SHAPE(3, 0), false);
    twin_expect_error(eddy_index_select(x.here, index.here, 1),
                      eddy_index_select(x.there, index.there, 1));
    twin_expect_error(eddy_embedding(index.here, table.here, NULL),
                      eddy_embedding(index.there, table.there, NULL));
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* What follows a bad index, on either device. */
typedef struct aftermath {
    eddy_tensor *bad, *dependent, *kept, *healthy;
} aftermath;

static aftermath follow(eddy_tensor *x, eddy_tensor *index) {
    aftermath made = {.kept = eddy_clone(x)};
    made.bad = eddy_index_select(x, index, 0);
    made.dependent = eddy_mul(eddy_add(made.bad, x), x);
    cr_assert_eq(eddy_add_inplace(made.kept, made.bad), EDDY_OK);
    made.healthy = eddy_add(x, x);
    return made;
}

Test(cuda_index, what_follows_a_bad_index_is_skipped_and_recovered) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = twin_random(EDDY_F32, EDDY_SHAPE(4, 5), true),
             index = twin_of((int64_t[]){2, 4 + round, 0, -1 - round}, EDDY_SHAPE(4), EDDY_I64);
        aftermath here = follow(x.here, index.here), there = follow(x.there, index.there);
        if (round % 2 == 0)
            twin_expect_equal("healthy", here.healthy, there.healthy);
        twin_expect_error(here.dependent, there.dependent);
        twin_expect_error(here.bad, there.bad);
        twin_expect_error(here.kept, there.kept);
        eddy_error first, last;
        cr_assert_eq(eddy_error_of(there.bad, EDDY_FOREVER, &first), EDDY_OUT_OF_RANGE);
        cr_assert_eq(eddy_error_of(there.dependent, EDDY_FOREVER, &last), EDDY_OUT_OF_RANGE);
        cr_assert(first.sequence != 0 && first.sequence == last.sequence);
        cr_assert_eq(eddy_recover(EDDY_LIST(here.kept, there.kept)), EDDY_OK);
        twin_expect_equal("recovered", here.kept, there.kept);
        twin_expect_equal("as before", x.here, there.kept);
        twin_expect_equal("later", eddy_sub(here.kept, here.healthy),
                          eddy_sub(there.kept, there.healthy));
        eddy_scope_end(scope);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    twin_expect_no_findings();
}

/* A target that a failed op was writing is torn on either device, and whole again after it has been written. */
Test(cuda_index, a_torn_target_is_healed_by_a_write) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = twin_random(EDDY_I16, EDDY_SHAPE(4, 5), false),
         target = twin_of((int16_t[15]){0}, EDDY_SHAPE(3, 5), EDDY_I16),
         bad = twin_of((int32_t[]){1, 4, 0}, EDDY_SHAPE(3), EDDY_I32),
         good = twin_of((int32_t[]){1, 3, 0}, EDDY_SHAPE(3), EDDY_I32);
    cr_assert_eq(eddy_index_select_into(x.here, bad.here, target.here, 0), EDDY_OK);
    cr_assert_eq(eddy_index_select_into(x.there, bad.there, target.there, 0), EDDY_OK);
    twin_expect_error(target.here, target.there);
    cr_assert_eq(eddy_index_select_into(x.here, good.here, target.here, 0), EDDY_OK);
    cr_assert_eq(eddy_index_select_into(x.there, good.there, target.there, 0), EDDY_OK);
    twin_expect_equal("healed", target.here, target.there);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* Errors of several streams, of which none hides another. */
Test(cuda_index, streams_have_their_own_errors) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = twin_random(EDDY_F32, EDDY_SHAPE(6, 5), false);
    eddy_stream *streams[3];
    eddy_tensor *here[9], *there[9];
    for (int i = 0; i < 3; i++)
        cr_assert_not_null(streams[i] = eddy_stream_create(TWIN_THERE, NULL));
    for (int i = 0; i < 9; i++) {
        twin index =
            twin_of((int64_t[]){5, i % 2 == 0 ? 6 + i : 1, 2, -i}, EDDY_SHAPE(4), EDDY_I64);
        here[i] = eddy_index_select(x.here, index.here, 0);
        cr_assert_eq(eddy_stream_scope_begin(streams[i % 3]), EDDY_OK);
        there[i] = eddy_index_select(x.there, index.there, 0);
        eddy_stream_scope_end();
    }
    for (int i = 8; i >= 0; i--)
        twin_expect_error(here[i], there[i]);
    for (int i = 0; i < 3; i++)
        eddy_stream_release(&streams[i]);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}
