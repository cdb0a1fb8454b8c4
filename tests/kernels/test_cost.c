/* Estimates: that they follow what makes calls dear. How near they are to times is what bench's cost_* rows show. */
#include "planned.h"
#include <criterion/criterion.h>
#include <functional/op_table.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/kernels.h>

/* A matrix, or with 0 columns a vector. */
typedef struct matrix {
    eddy_dtype dtype;
    int64_t shape[2], strides[2];
    int32_t rank;
} matrix;

static matrix make(eddy_dtype dtype, int64_t rows, int64_t columns) {
    return (matrix){dtype, {rows, columns}, {columns ? columns : 1, 1}, columns ? 2 : 1};
}

static matrix turned(int64_t rows, int64_t columns) {
    return (matrix){EDDY_F32, {rows, columns}, {1, rows}, 2};
}

static int64_t cost_of(const eddy_kernel *kernel, const void *attributes, const matrix *operands,
                       int32_t count) {
    eddy_op_view views[4];
    for (int32_t i = 0; i < count; i++)
        views[i] = (eddy_op_view){NULL, operands[i].shape, operands[i].strides, operands[i].dtype,
                                  operands[i].rank};
    eddy_kernel_call call = {
        .kernel = kernel, .views = views, .view_count = count, .attributes = attributes};
    return planned_only(&call).cost_ps;
}

Test(cost, memory_costs_from_where_caches_end) {
    const eddy_kernel kernel = {.cost_base_ps = 1000, .cost_element_ps = 10};
    cr_assert_eq(eddy_cost_flat_ps(&kernel, 100, EDDY_COST_NEAR_BYTES), 2000);
    cr_assert_eq(eddy_cost_flat_ps(&kernel, 100, EDDY_COST_NEAR_BYTES + 1),
                 2000 + EDDY_COST_CACHED_PS);
    int64_t cached = eddy_cost_flat_ps(&kernel, 100, EDDY_COST_CACHED_BYTES);
    cr_assert_eq(cached,
                 2000 + (EDDY_COST_CACHED_BYTES - EDDY_COST_NEAR_BYTES) * EDDY_COST_CACHED_PS);
    cr_assert_eq(eddy_cost_flat_ps(&kernel, 100, EDDY_COST_CACHED_BYTES + 1),
                 cached + EDDY_COST_FAR_PS);
}

Test(cost, what_is_broadcast_beyond_all_memory_does_not_overflow) {
    const eddy_kernel kernel = {.cost_base_ps = 1000, .cost_element_ps = 5000};
    int64_t bytes = eddy_cost_bytes(INT64_MAX, EDDY_F64),
            cost = eddy_cost_flat_ps(&kernel, INT64_MAX, bytes);
    cr_assert_gt(bytes, EDDY_COST_NEAR_BYTES);
    cr_assert_gt(cost, EDDY_COST_MOST);
    cr_assert_lt(cost, 3 * EDDY_COST_MOST);
}

/* A broadcast element is stored once, and visited each time. */
Test(cost, what_is_broadcast_costs_by_the_element) {
    const eddy_kernel kernel = {.cost_base_ps = 1000, .cost_element_ps = 10};
    const int64_t shape[] = {1 << 20}, once[] = {0};
    const eddy_op_view views[] = {{NULL, shape, once, EDDY_F32, 1}};
    const eddy_kernel_call call = {.kernel = &kernel, .views = views, .view_count = 1};
    cr_assert_eq(eddy_cost_views_ps(&call), 1000 + 10 * (1 << 20));
}

Test(cost, cheap_loops_cost_by_the_byte_and_others_by_the_element) {
    const eddy_kernel *const *adds = eddy_op_add.kernels, *const *tans = eddy_op_tan.kernels;
    cr_assert_eq(adds[EDDY_F64]->cost_element_ps, 2 * adds[EDDY_F32]->cost_element_ps);
    cr_assert_eq(4 * adds[EDDY_I8]->cost_element_ps, adds[EDDY_I32]->cost_element_ps);
    cr_assert_eq(adds[EDDY_F16]->cost_element_ps, adds[EDDY_F32]->cost_element_ps);
    cr_assert_eq(tans[EDDY_F16]->cost_element_ps, tans[EDDY_F32]->cost_element_ps);
    cr_assert_eq(tans[EDDY_F64]->cost_element_ps, 2 * tans[EDDY_F32]->cost_element_ps);
    cr_assert_gt(tans[EDDY_F32]->cost_element_ps, 10 * adds[EDDY_F32]->cost_element_ps);
}

Test(cost, numbers_with_a_shortcut_cost_less) {
    cr_assert_lt(eddy_op_pow_s.kernels[EDDY_F32]->cost_element_ps,
                 eddy_op_pow.kernels[EDDY_F32]->cost_element_ps);
}

Test(cost, empty_costs_nothing_however_large) {
    matrix small = make(EDDY_F32, 1, 0), large = make(EDDY_F32, 1 << 30, 0);
    cr_assert_eq(cost_of(&eddy_cpu_empty, NULL, &large, 1),
                 cost_of(&eddy_cpu_empty, NULL, &small, 1));
}

Test(cost, a_transposed_copy_costs_more_than_a_straight_one) {
    for (int64_t n = 100; n <= 10000; n *= 100) {
        int64_t straight = cost_of(&eddy_cpu_copy, NULL,
                                   (matrix[]){make(EDDY_F32, n, n), make(EDDY_F32, n, n)}, 2);
        int64_t across =
            cost_of(&eddy_cpu_copy, NULL, (matrix[]){turned(n, n), make(EDDY_F32, n, n)}, 2);
        cr_assert_gt(across, straight * (n > 100 ? 3 : 2));
    }
}

Test(cost, outputs_of_a_reduction_cost_along_rows) {
    const eddy_attributes_reduce along = {.axes = 2}, across = {.axes = 1};
    matrix tall = make(EDDY_F32, 1000, 10), wide = make(EDDY_F32, 10, 1000),
           out = make(EDDY_F32, 1000, 0);
    int64_t of_rows = cost_of(&eddy_cpu_sum, &along, (matrix[]){tall, out}, 2);
    int64_t of_columns = cost_of(&eddy_cpu_sum, &across, (matrix[]){wide, out}, 2);
    cr_assert_gt(of_rows, 5 * of_columns);
}

Test(cost, rows_that_are_picked_or_put_cost_less_than_elements) {
    const eddy_attributes_index_put puts = {0};
    matrix table = make(EDDY_F32, 1000, 100), line = make(EDDY_F32, 100000, 0),
           rows = make(EDDY_I64, 1000, 0), places = make(EDDY_I64, 100000, 0);
    int64_t of_rows = cost_of(&eddy_cpu_index, NULL, (matrix[]){table, rows, table}, 3);
    int64_t of_elements = cost_of(&eddy_cpu_index, NULL, (matrix[]){line, places, line}, 3);
    cr_assert_gt(of_elements, 5 * of_rows);
    of_rows = cost_of(&eddy_cpu_index_put, &puts, (matrix[]){table, rows, table, table}, 4);
    of_elements = cost_of(&eddy_cpu_index_put, &puts, (matrix[]){line, places, line, line}, 4);
    cr_assert_gt(of_elements, 5 * of_rows);
}

Test(cost, a_product_with_a_vector_costs_more_a_multiplication) {
    matrix square = make(EDDY_F32, 1000, 1000), column = make(EDDY_F32, 1000, 1);
    int64_t with_matrix = cost_of(&eddy_cpu_matmul, NULL, (matrix[]){square, square, square}, 3);
    int64_t with_vector = cost_of(&eddy_cpu_matmul, NULL, (matrix[]){square, column, column}, 3);
    cr_assert_lt(with_matrix, 500 * with_vector);
    cr_assert_gt(with_matrix, 100 * with_vector);
}
