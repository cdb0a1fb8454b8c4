/* Tensors whose shape is known only after their op has run. */
#include "../calls.h"

Test(late, the_shape_is_waited_for) {
    eddy_tensor *places = call("nonzero", OF(F32(EDDY_SHAPE(2, 3), 0, 1, 0, 2, 0, 3)));
    cr_assert_not_null(places);
    cr_assert_eq(eddy_dtype_of(places), EDDY_I64, "known at once");
    cr_assert(has_shape(places, EDDY_SHAPE(3, 2)));
    int64_t values[6];
    cr_assert_eq(eddy_read(places, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 0 && values[1] == 1 && values[2] == 1 && values[3] == 0 &&
              values[5] == 2);
}

Test(late, ops_and_views_on_it_work) {
    eddy_tensor *places = call("nonzero", OF(F32(EDDY_SHAPE(4), 0, 1, 0, 2)));
    eddy_tensor *twice = call("add", OF(places, places));
    cr_assert(has_shape(twice, EDDY_SHAPE(2, 1)));
    cr_assert_eq(eddy_item_i64(eddy_select(eddy_flatten(twice, 0, -1), 0, 1), NULL), 6);
    ASSERT_F32(index_select(F32(EDDY_SHAPE(4), 5, 6, 7, 8), eddy_squeeze(places, EDDY_ALL_AXES)), 6,
               8);
}

Test(late, nothing_found_is_an_empty_tensor) {
    eddy_tensor *places = call("nonzero", OF(F32(EDDY_SHAPE(2, 2), 0, 0, 0, 0)));
    cr_assert(has_shape(places, EDDY_SHAPE(0, 2)));
    cr_assert_eq(eddy_count_of(call("add", OF(places, places))), 0);
}

Test(late, a_failed_input_fails_the_shape) {
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5));
    eddy_tensor *places = call("nonzero", OF(bad));
    cr_assert_not_null(places);
    cr_assert_eq(eddy_rank_of(places), -1);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    cr_assert_null(call("neg", OF(places)));
    cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_RANGE);
    eddy_release(&places);
}

static int64_t bytes_seen = -1;

static void see(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context, (void)data, (void)error;
    bytes_seen = bytes;
}

Test(late, release_and_read_async_do_not_wait) {
    eddy_tensor *source = counting(EDDY_SHAPE(5));
    cr_assert_not_null(eddy_map(source, EDDY_WRITE, EDDY_FOREVER));
    eddy_tensor *places = call("nonzero", OF(source));
    cr_assert_eq(eddy_read_async(places, see, NULL), EDDY_OK);
    eddy_release(&places);
    cr_assert_eq(eddy_unmap(source), EDDY_OK);
    eddy_sync(EDDY_FOREVER);
    eddy_sync_deleters(EDDY_FOREVER);
    cr_assert_eq(bytes_seen, 4 * (int64_t)sizeof(int64_t));
}
