/* tril, triu, diag: exact, against loops over flat numbers. */
#include "planned.h"
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

static void check_triangle(eddy_dtype dtype, int32_t rank, const int64_t *shape, int64_t diagonal,
                           bool is_upper, bool in_place, layout a, eddy_kernel_team *team) {
    const eddy_kernel *kernel = is_upper ? &eddy_cpu_triu : &eddy_cpu_tril;
    tensor in = tensor_make(dtype, rank, shape, in_place && a == BROADCAST ? STRIDED : a);
    tensor out = tensor_make(dtype, rank, shape, SOME_OUTPUT), *to = in_place ? &in : &out;
    tensor_fill(&in, 100);
    size_t bytes = eddy_dtype_bytes(dtype);
    char *want = calloc((size_t)in.count + 1, bytes);
    int64_t height = shape[rank - 2], width = shape[rank - 1];
    for (int64_t i = 0; i < in.count; i++) {
        int64_t row = i / width % height, column = i % width;
        bool stays = diagonal > 1000    ? !is_upper
                     : diagonal < -1000 ? is_upper
                     : is_upper         ? column - row >= diagonal
                                        : column - row <= diagonal;
        if (stays)
            memcpy(want + (size_t)i * bytes, tensor_at(&in, i), bytes);
    }
    cr_assert_eq(run_kernel(kernel, (tensor *[]){&in, to}, 2,
                            &(eddy_attributes_diagonal){.diagonal = diagonal}, team, NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < in.count; i++)
        cr_assert_eq(memcmp(tensor_at(to, i), want + (size_t)i * bytes, bytes), 0,
                     "%s diagonal %lld element %lld", describe(kernel->name, &in, a),
                     (long long)diagonal, (long long)i);
    cr_assert(tensor_guards_hold(to));
    free(want);
    tensor_free(&in), tensor_free(&out);
}

Test(diagonal, triangles_of_every_dtype_layout_and_diagonal) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {2, 0, 3}, {2, 3, 0}, {3, 13, 4}};
    const int64_t diagonals[] = {0, 1, -1, 3, -4, 20, -20, INT64_MAX, INT64_MIN};
    EACH_DTYPE(d) {
        for (int s = 0; s < 5; s++)
            for (int k = 0; k < 9; k++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_triangle((eddy_dtype)d, 2 + a % 2, shapes[s] + 1 - a % 2, diagonals[k],
                                   k % 2 ^ a % 3 % 2, test_below(2), (layout)a,
                                   test_below(2) ? &serial_team : &shuffling_team);
    }
    check_triangle(EDDY_F32, 2, (const int64_t[]){513, 512}, 2, false, false, CONTIGUOUS,
                   &threaded_team);
    check_triangle(EDDY_F32, 2, (const int64_t[]){513, 512}, 2, true, true, CONTIGUOUS,
                   &threaded_team);
}

static void check_diag(eddy_dtype dtype, int64_t rows, int64_t columns, int64_t diagonal,
                       bool picks, layout a) {
    int64_t matrix_shape[] = {rows, columns}, row = diagonal < 0 ? -diagonal : 0,
            column = diagonal > 0 ? diagonal : 0;
    int64_t length = rows - row < columns - column ? rows - row : columns - column;
    length = length < 0 ? 0 : length;
    tensor matrix = tensor_make(dtype, 2, matrix_shape, picks ? a : SOME_OUTPUT);
    tensor line = tensor_make(dtype, 1, &length, picks ? SOME_OUTPUT : a),
           *in = picks ? &matrix : &line;
    tensor *out = picks ? &line : &matrix;
    tensor_fill(in, 100);
    run_kernel(&eddy_cpu_diag, (tensor *[]){in, out}, 2,
               &(eddy_attributes_diagonal){.diagonal = diagonal}, &shuffling_team, NULL);
    const char zero[8] = {0};
    for (int64_t i = 0; i < out->count; i++) {
        int64_t r = i / (columns ? columns : 1), c = i % (columns ? columns : 1);
        const void *want = picks ? tensor_at(&matrix, (row + i) * columns + column + i)
                           : c - column == r - row && c >= column ? tensor_at(&line, c - column)
                                                                  : zero;
        cr_assert_eq(memcmp(tensor_at(out, i), want, eddy_dtype_bytes(dtype)), 0,
                     "%s diagonal %lld element %lld", describe("diag", in, a), (long long)diagonal,
                     (long long)i);
    }
    cr_assert(tensor_guards_hold(out));
    tensor_free(&matrix), tensor_free(&line);
}

Test(diagonal, diag_picks_and_places) {
    const int64_t sizes[][2] = {{4, 4}, {3, 7}, {7, 3}, {1, 1}, {0, 0}, {0, 3}, {31, 33}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 7; s++)
            for (int64_t k = -sizes[s][0]; k <= sizes[s][1]; k++)
                for (int picks = 0; picks < 2; picks++)
                    check_diag((eddy_dtype)d, sizes[s][0], sizes[s][1], k, picks,
                               (layout)test_below(LAYOUT_COUNT));
    }
}

static int64_t cost_of(tensor *in, tensor *out) {
    const eddy_attributes_diagonal attributes = {0};
    eddy_op_view views[2] = {in->view, out->view};
    views[0].shape = in->shape, views[1].shape = out->shape;
    views[0].strides = in->strides, views[1].strides = out->strides;
    eddy_kernel_call call = {
        .kernel = &eddy_cpu_diag, .views = views, .view_count = 2, .attributes = &attributes};
    return planned_only(&call).cost_ps;
}

Test(diagonal, diag_costs_what_it_writes) {
    tensor small = tensor_make(EDDY_F32, 2, (const int64_t[]){100, 100}, CONTIGUOUS),
           big = tensor_make(EDDY_F32, 2, (const int64_t[]){100, 5000}, CONTIGUOUS),
           line = tensor_make(EDDY_F32, 1, (const int64_t[]){100}, CONTIGUOUS);
    cr_assert_eq(cost_of(&big, &line), cost_of(&small, &line));
    cr_assert_gt(cost_of(&line, &small), 10 * cost_of(&small, &line));
    tensor_free(&small), tensor_free(&big), tensor_free(&line);
}
