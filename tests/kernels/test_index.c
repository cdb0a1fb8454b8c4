/* cat, index_select, gather, one_hot, nonzero: exact, against loops over flat numbers. */
#include "late.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <string.h>

static void unflatten(const tensor *t, int64_t flat, int64_t *index) {
    for (int32_t d = t->view.rank - 1; d >= 0; d--) {
        index[d] = flat % t->shape[d];
        flat /= t->shape[d];
    }
}

static int64_t flatten(const tensor *t, const int64_t *index) {
    int64_t flat = 0;
    for (int32_t d = 0; d < t->view.rank; d++)
        flat = flat * t->shape[d] + index[d];
    return flat;
}

static bool same_element(const tensor *a, int64_t at, const tensor *b, int64_t bt) {
    return memcmp(tensor_at(a, at), tensor_at(b, bt), eddy_dtype_bytes(a->view.dtype)) == 0;
}

static void check_cat(eddy_dtype dtype, int32_t axis, layout out_layout) {
    int64_t shapes[3][3] = {{3, 5, 7}, {3, 5, 7}, {3, 5, 7}}, total[3] = {3, 5, 7};
    shapes[1][axis] = 0;
    shapes[2][axis] = 40;
    total[axis] = shapes[0][axis] + 40;
    int64_t none = 0;
    tensor in[4], out = tensor_make(dtype, 3, total, out_layout);
    for (int i = 0; i < 3; i++) {
        in[i] = tensor_make(dtype, 3, shapes[i], (layout)test_below(LAYOUT_COUNT));
        tensor_fill(&in[i], 100);
    }
    in[3] = tensor_make(dtype, 1, &none, CONTIGUOUS);
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(&eddy_cpu_cat, (tensor *[]){&in[0], &in[3], &in[1], &in[2], &out}, 5, &attributes,
               &shuffling_team, NULL);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t index[3], first = shapes[0][axis];
        unflatten(&out, i, index);
        int from = index[axis] < first ? 0 : 2;
        index[axis] -= from == 0 ? 0 : first;
        cr_assert(same_element(&out, i, &in[from], flatten(&in[from], index)),
                  "%s axis %d element %lld", describe("cat", &out, out_layout), axis, (long long)i);
    }
    cr_assert(tensor_guards_hold(&out));
    for (int i = 0; i < 4; i++)
        tensor_free(&in[i]);
    tensor_free(&out);
}

static void check_select(eddy_dtype dtype, const int64_t *shape, int32_t axis, int64_t picks,
                         layout a, layout b, eddy_kernel_team *team) {
    int64_t out_shape[3] = {shape[0], shape[1], shape[2]};
    out_shape[axis] = picks;
    tensor in = tensor_make(dtype, 3, shape, a), out = tensor_make(dtype, 3, out_shape, b);
    tensor index =
        tensor_make(picks % 2 ? EDDY_I64 : EDDY_I32, 1, &picks, picks % 3 ? CONTIGUOUS : NEGATIVE);
    tensor_fill(&in, 100);
    for (int64_t i = 0; i < picks; i++)
        tensor_set_int(&index, i, test_below(shape[axis]));
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(&eddy_cpu_index_select, (tensor *[]){&in, &index, &out}, 3, &attributes, team, NULL);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t at[3];
        unflatten(&out, i, at);
        at[axis] = tensor_get_int(&index, at[axis]);
        cr_assert(same_element(&out, i, &in, flatten(&in, at)), "%s axis %d element %lld",
                  describe("index_select", &in, a), axis, (long long)i);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&out), tensor_free(&index);
}

static void check_gather(eddy_dtype dtype, const int64_t *shape, int32_t axis,
                         const int64_t *index_shape, layout a, layout b, eddy_kernel_team *team) {
    tensor in = tensor_make(dtype, 3, shape, a), out = tensor_make(dtype, 3, index_shape, b);
    tensor index = tensor_make(axis % 2 ? EDDY_I64 : EDDY_I32, 3, index_shape,
                               a == BROADCAST ? CONTIGUOUS : a);
    tensor_fill(&in, 100);
    for (int64_t i = 0; i < index.count; i++)
        tensor_set_int(&index, i, test_below(shape[axis]));
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(&eddy_cpu_gather, (tensor *[]){&in, &index, &out}, 3, &attributes, team, NULL);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t at[3];
        unflatten(&out, i, at);
        at[axis] = tensor_get_int(&index, i);
        cr_assert(same_element(&out, i, &in, flatten(&in, at)), "%s axis %d element %lld",
                  describe("gather", &in, a), axis, (long long)i);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&out), tensor_free(&index);
}

Test(index, cat_of_every_dtype_layout_and_axis) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int32_t axis = 0; axis < 3; axis++)
            for (int b = 0; b < OUTPUT_LAYOUTS; b++)
                check_cat((eddy_dtype)d, axis, (layout)b);
}

/* Rows of 4 KB, of which a slice takes 64. */
Test(index, cat_of_many_rows_does_not_depend_on_slices) {
    int64_t shapes[2][2] = {{300, 513}, {300, 511}}, total[2] = {300, 1024};
    tensor in[2], out = tensor_make(EDDY_F32, 2, total, CONTIGUOUS);
    for (int i = 0; i < 2; i++) {
        in[i] = tensor_make(EDDY_F32, 2, shapes[i], CONTIGUOUS);
        tensor_fill(&in[i], 100);
    }
    eddy_attributes_axis attributes = {.axis = 1};
    run_kernel(&eddy_cpu_cat, (tensor *[]){&in[0], &in[1], &out}, 3, &attributes, &shuffling_team,
               NULL);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t row = i / 1024, column = i % 1024;
        int64_t at = column < 513 ? row * 513 + column : row * 511 + column - 513;
        cr_assert(same_element(&out, i, &in[column >= 513], at), "element %lld", (long long)i);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in[0]), tensor_free(&in[1]), tensor_free(&out);
}

Test(index, index_select_of_every_dtype_layout_and_axis) {
    const int64_t shapes[][3] = {{4, 5, 7}, {9, 2, 33}, {1, 1, 1}, {13, 1, 64}};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 4; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_select((eddy_dtype)d, shapes[s], axis, test_below(20), (layout)a,
                                 (layout)test_below(OUTPUT_LAYOUTS), &serial_team);
    const int64_t images[] = {1000, 1, 784}, wide[] = {3, 700, 130};
    check_select(EDDY_F32, images, 0, 129, CONTIGUOUS, CONTIGUOUS, &threaded_team);
    check_select(EDDY_F32, wide, 1, 501, TURNED, CONTIGUOUS, &shuffling_team);
}

Test(index, gather_of_every_dtype_layout_and_axis) {
    const int64_t shape[] = {4, 5, 7}, indices[][3] = {{4, 5, 7}, {2, 3, 4}, {0, 5, 7}, {1, 1, 1}};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 4; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_gather((eddy_dtype)d, shape, axis, indices[s], (layout)a,
                                 (layout)test_below(OUTPUT_LAYOUTS), &serial_team);
    const int64_t big[] = {40, 50, 70};
    check_gather(EDDY_BF16, big, 1, big, STRIDED, CONTIGUOUS, &threaded_team);
    /* More indices in a row than are widened at a time. */
    const int64_t wide[] = {3, 5, 701};
    for (int32_t axis = 0; axis < 3; axis++)
        for (int a = 0; a < LAYOUT_COUNT; a++)
            check_gather(EDDY_F32, wide, axis, wide, (layout)a, CONTIGUOUS, &shuffling_team);
}

Test(index, one_hot) {
    const int64_t shape[] = {6, 11};
    for (int a = 0; a < LAYOUT_COUNT; a++)
        for (int64_t classes = 1; classes < 40; classes += 9) {
            int64_t out_shape[] = {6, 11, classes};
            tensor in = tensor_make(a % 2 ? EDDY_I64 : EDDY_I32, 2, shape, (layout)a);
            tensor out = tensor_make(EDDY_I64, 3, out_shape, (layout)(a % OUTPUT_LAYOUTS));
            for (int64_t i = 0; i < in.count; i++)
                tensor_set_int(&in, i, test_below(classes));
            eddy_attributes_one_hot attributes = {.classes = classes};
            cr_assert_eq(run_kernel(&eddy_cpu_one_hot, (tensor *[]){&in, &out}, 2, &attributes,
                                    &shuffling_team, NULL),
                         0);
            for (int64_t i = 0; i < out.count; i++)
                cr_assert_eq(tensor_get_int(&out, i),
                             tensor_get_int(&in, i / classes) == i % classes);
            cr_assert(tensor_guards_hold(&out));
            tensor_free(&in), tensor_free(&out);
        }
}

Test(index, the_first_index_out_of_range_is_reported_whatever_the_slices) {
    int64_t n = 70000, in_shape[] = {5, 9}, out_shape[] = {70000, 9}, hot_shape[] = {70000, 5};
    tensor in = tensor_make(EDDY_F32, 2, in_shape, CONTIGUOUS),
           index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 2, out_shape, CONTIGUOUS),
           hot = tensor_make(EDDY_I64, 2, hot_shape, CONTIGUOUS);
    int64_t five = 5;
    tensor line = tensor_make(EDDY_F32, 1, &five, CONTIGUOUS),
           picked = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&index, i, i % 5);
    tensor_set_int(&index, 69999, 5);
    tensor_set_int(&index, 41000, -6);
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    eddy_attributes_axis axis = {.axis = 0};
    eddy_attributes_one_hot classes = {.classes = 5};
    for (int t = 0; t < 3; t++) {
        eddy_kernel_error errors[3];
        cr_assert_eq(run_kernel(&eddy_cpu_index_select, (tensor *[]){&in, &index, &out}, 3, &axis,
                                teams[t], &errors[0]),
                     EDDY_OUT_OF_RANGE);
        cr_assert_eq(run_kernel(&eddy_cpu_gather, (tensor *[]){&line, &index, &picked}, 3, &axis,
                                teams[t], &errors[1]),
                     EDDY_OUT_OF_RANGE);
        cr_assert_eq(run_kernel(&eddy_cpu_one_hot, (tensor *[]){&index, &hot}, 2, &classes,
                                teams[t], &errors[2]),
                     EDDY_OUT_OF_RANGE);
        for (int e = 0; e < 3; e++)
            cr_assert(errors[e].position == 41000 && errors[e].value == -6 && errors[e].bound == 5);
    }
    cr_assert(tensor_guards_hold(&out) && tensor_guards_hold(&hot) && tensor_guards_hold(&picked));
    tensor_free(&in), tensor_free(&index), tensor_free(&out), tensor_free(&hot), tensor_free(&line),
        tensor_free(&picked);
}

Test(index, gather_reports_the_index_out_of_range_of_every_layout) {
    const int64_t n = 701, five = 5;
    for (int wide = 0; wide < 2; wide++)
        for (int a = 0; a < BROADCAST; a++) {
            tensor in = tensor_make(EDDY_F32, 1, &five, CONTIGUOUS),
                   out = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
            tensor index = tensor_make(wide ? EDDY_I64 : EDDY_I32, 1, &n, (layout)a);
            for (int64_t i = 0; i < n; i++)
                tensor_set_int(&index, i, i % 5);
            tensor_set_int(&index, 600, 7), tensor_set_int(&index, 650, -1);
            eddy_attributes_axis attributes = {.axis = 0};
            eddy_kernel_error error;
            cr_assert_eq(run_kernel(&eddy_cpu_gather, (tensor *[]){&in, &index, &out}, 3,
                                    &attributes, &serial_team, &error),
                         EDDY_OUT_OF_RANGE);
            cr_assert(error.position == 600 && error.value == 7 && error.bound == 5,
                      "%s: %lld at %lld", describe("gather", &index, (layout)a),
                      (long long)error.value, (long long)error.position);
            cr_assert(tensor_guards_hold(&out));
            tensor_free(&in), tensor_free(&index), tensor_free(&out);
        }
}

static void check_nonzero(eddy_dtype dtype, int32_t rank, const int64_t *shape, layout a) {
    tensor in = tensor_make(dtype, rank, shape, a);
    tensor_fill(&in, 1.99);
    for (int64_t i = 0; i < in.count; i += 2)
        tensor_set(&in, i, 0);
    late_call late;
    late_begin(&late, &eddy_cpu_nonzero, (tensor *[]){&in}, 1, 2, NULL);
    int64_t want = 0;
    for (int64_t i = 0; i < in.count; i++)
        want += tensor_get(&in, i) != 0;
    cr_assert(late.shapes[0].rank == 2 && late.shapes[0].dims[0] == want &&
              late.shapes[0].dims[1] == rank);
    tensor out = tensor_make(EDDY_I64, 2, late.shapes[0].dims, (layout)test_below(OUTPUT_LAYOUTS));
    late_run(&late, 1, (tensor *[]){&out});
    for (int64_t i = 0, row = 0; i < in.count; i++) {
        if (tensor_get(&in, i) == 0)
            continue;
        int64_t index[4];
        unflatten(&in, i, index);
        for (int32_t d = 0; d < rank; d++)
            cr_assert_eq(tensor_get_int(&out, row * rank + d), index[d], "%s element %lld",
                         describe("nonzero", &in, a), (long long)i);
        row++;
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&out);
}

Test(index, nonzero_in_row_major_order) {
    const int64_t shapes[][4] = {{3, 5, 7, 2}, {1, 1, 1, 1}, {2, 0, 3, 1}, {2, 1, 600, 3}};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 4; s++)
            for (int32_t rank = 0; rank <= 4; rank++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_nonzero((eddy_dtype)d, rank, shapes[s], (layout)a);
}

/* Several slices, which begin within rows. */
Test(index, nonzero_of_many_elements) {
    const int64_t shapes[][4] = {{100003, 1, 1, 1}, {251, 401, 1, 1}, {2, 7, 1171, 5}};
    const eddy_dtype dtypes[] = {EDDY_BOOL, EDDY_U8, EDDY_F32};
    for (int d = 0; d < 3; d++)
        for (int s = 0; s < 3; s++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                check_nonzero(dtypes[d], s == 0 ? 1 : 2 * s, shapes[s], (layout)a);
}
