#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_diagonal};
static _Atomic(void *) loaded[4][EDDY_CUDA_DEVICES];

/* By eddy_cuda_width. */
static const eddy_cuda_forms forms[] = {{.strided = {"eddy_triangle_8", &image, loaded[0]}},
                                        {.strided = {"eddy_triangle_16", &image, loaded[1]}},
                                        {.strided = {"eddy_triangle_32", &image, loaded[2]}},
                                        {.strided = {"eddy_triangle_64", &image, loaded[3]}}};

/* views: in, out, of rank 2 or more; out may be in. What stays are the places whose column less their row is within [least, most]. */
static void run_triangle(const eddy_kernel_call *call, int64_t least, int64_t most) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    int64_t diagonals[EDDY_RANK_MAX] = {0};
    diagonals[out->rank - 2] = -1;
    diagonals[out->rank - 1] = 1;
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_add(&walk, diagonals, 1);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    const eddy_cuda_operand operands[] = {
        {out->data, out->dtype}, {in->data, in->dtype}, {NULL, EDDY_U8}};
    const int64_t within[] = {least, most};
    eddy_cuda_map(call, &forms[eddy_cuda_width(out->dtype)], &walk, operands, within,
                  sizeof(within));
}

static void run_tril(const eddy_kernel_call *call) {
    run_triangle(call, INT64_MIN, ((const eddy_attributes_diagonal *)call->attributes)->diagonal);
}

static void run_triu(const eddy_kernel_call *call) {
    run_triangle(call, ((const eddy_attributes_diagonal *)call->attributes)->diagonal, INT64_MAX);
}

/* The diagonal of a matrix as a vector, with the caller's arrays of one number each. */
static eddy_op_view diagonal_of(const eddy_op_view *matrix, int64_t diagonal, int64_t *length,
                                int64_t *stride) {
    int64_t row = eddy_max_i64(0, -diagonal), column = eddy_max_i64(0, diagonal);
    *length = eddy_max_i64(0, eddy_min_i64(matrix->shape[0] - row, matrix->shape[1] - column));
    *stride = matrix->strides[0] + matrix->strides[1];
    eddy_op_view view = *matrix;
    if (*length > 0)
        view.data =
            eddy_cuda_view_at(matrix, row * matrix->strides[0] + column * matrix->strides[1]);
    view.shape = length;
    view.strides = stride;
    view.rank = 1;
    return view;
}

/* views: in, out: one is a vector, the other a matrix; the inference has limited the diagonal to the shape */
static void run_diag(const eddy_kernel_call *call) {
    const eddy_attributes_diagonal *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    int64_t length, stride;
    if (in->rank == 2) {
        eddy_op_view from = diagonal_of(in, attributes->diagonal, &length, &stride);
        eddy_cuda_copy_view(call, &from, out);
        return;
    }
    eddy_op_view to = diagonal_of(out, attributes->diagonal, &length, &stride);
    eddy_cuda_fill_view(call, out, 0);
    eddy_cuda_copy_view(call, in, &to);
}

const eddy_kernel eddy_cuda_tril = {.name = "tril", .run = run_tril};
const eddy_kernel eddy_cuda_triu = {.name = "triu", .run = run_triu};
const eddy_kernel eddy_cuda_diag = {.name = "diag", .run = run_diag};
