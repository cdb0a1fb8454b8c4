/* The ops that programs alone have (program/tensor_list.h, program/draw_ops.h), on CUDA devices. */
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/row.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_row};
static _Atomic(void *) loaded[2][4][EDDY_CUDA_DEVICES];

/* By whether it sets, then by eddy_cuda_width. */
static const eddy_cuda_function functions[2][4] = {{{"eddy_row_get_8", &image, loaded[0][0]},
                                                    {"eddy_row_get_16", &image, loaded[0][1]},
                                                    {"eddy_row_get_32", &image, loaded[0][2]},
                                                    {"eddy_row_get_64", &image, loaded[0][3]}},
                                                   {{"eddy_row_set_8", &image, loaded[1][0]},
                                                    {"eddy_row_set_16", &image, loaded[1][1]},
                                                    {"eddy_row_set_32", &image, loaded[1][2]},
                                                    {"eddy_row_set_64", &image, loaded[1][3]}}};

/* ---- lists ---- */

static void launch(const eddy_kernel_call *call, bool is_set, const eddy_op_view *list,
                   const eddy_op_view *row) {
    int64_t bytes = eddy_dtype_size(list->dtype);
    eddy_cuda_row p = {.list = list->data,
                       .row = row->data,
                       .number = call->views[1].data,
                       .rows = list->shape[0],
                       .columns = list->shape[1],
                       .list_strides = {list->strides[0] * bytes, list->strides[1] * bytes},
                       .stride = row->strides[0] * bytes};
    if (p.columns > 0)
        eddy_cuda_launch(call, &functions[is_set][eddy_cuda_width(list->dtype)], &p, sizeof(p),
                         eddy_cuda_blocks(call, p.columns, EDDY_CUDA_BLOCK));
}

static void run_get(const eddy_kernel_call *call) {
    launch(call, false, &call->views[0], &call->views[2]);
}

static void run_set(const eddy_kernel_call *call) {
    launch(call, true, &call->views[2], &call->views[0]);
}

const eddy_kernel eddy_cuda_list_get = {.name = "list_get", .run = run_get};
const eddy_kernel eddy_cuda_list_set = {.name = "list_set", .run = run_set};

/* ---- draws ---- */

/* Seed and counter, the op's attributes, as elements. */
static void run_draw_get(const eddy_kernel_call *call) {
    const int64_t *words = call->attributes;
    const eddy_op_view *drawn = &call->views[0];
    static const int64_t one = 1;
    for (int64_t i = 0; i < 2; i++) {
        eddy_op_view element = {.data = eddy_cuda_view_at(drawn, i * drawn->strides[0]),
                                .shape = &one,
                                .strides = &one,
                                .dtype = EDDY_I64,
                                .rank = 1};
        eddy_cuda_fill_view(call, &element, (uint64_t)words[i]);
    }
}

/* The words are read by who launches (program/rounds.h). */
static void run_draw_set(const eddy_kernel_call *call) {
    (void)call;
}

const eddy_kernel eddy_cuda_draw_get = {.name = "draw_get", .run = run_draw_get};
const eddy_kernel eddy_cuda_draw_set = {.name = "draw_set", .run = run_draw_set};
