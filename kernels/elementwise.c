/* The run function of all elementwise kernels: rows of the innermost dim are passed to the kernel's loop; large tensors
 * are cut into slices of elements. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cpu/walk.h>
#include <kernels/grain.h>

typedef struct elementwise {
    const eddy_kernel_call *call;
    eddy_loop_fn *loop;
    eddy_walk walk; /* strides in bytes, the output first */
    int32_t output;
} elementwise;

/* Number of whole rows from the cursor on that are consecutive in the dim before the innermost one, within `count`
 * elements. */
static int64_t rows_ahead(const eddy_walk *walk, const eddy_walk_cursor *cursor, int64_t count) {
    int32_t inner = walk->rank - 1;
    if (inner < 1 || cursor->index[inner] != 0)
        return 0;
    return eddy_min_i64(walk->dims[inner - 1] - cursor->index[inner - 1],
                        count / walk->dims[inner]);
}

/* Runs rows and moves the cursor behind them. The code between rows matters, since there may be many short rows. */
static void run_rows(const elementwise *work, eddy_walk_cursor *cursor, char **data,
                     const int64_t *strides, int64_t rows) {
    const eddy_walk *walk = &work->walk;
    int32_t count = work->call->view_count, inner = walk->rank - 1;
    int64_t steps[EDDY_WALK_OPERANDS], row_elements = walk->dims[inner];
    for (int32_t o = 0; o < count; o++)
        steps[o] = walk->strides[o == work->output ? 0 : o + 1][inner - 1];
    for (int64_t row = 0; row < rows; row++) {
        work->loop(data, strides, row_elements, work->call->attributes);
        for (int32_t o = 0; o < count; o++)
            data[o] += steps[o];
    }
    cursor->index[inner - 1] += rows - 1;
    for (int32_t o = 0; o < count; o++)
        cursor->offsets[o] += (rows - 1) * walk->strides[o][inner - 1];
    eddy_walk_next(walk, cursor, inner);
}

static void elementwise_run_slice(void *context, int64_t begin, int64_t end) {
    const elementwise *work = context;
    const eddy_kernel_call *call = work->call;
    const eddy_walk *walk = &work->walk;
    int32_t count = call->view_count, output = work->output;
    int64_t strides[EDDY_WALK_OPERANDS];
    char *data[EDDY_WALK_OPERANDS];
    for (int32_t o = 0; o < count; o++) {
        int32_t operand = o == output ? 0 : o + 1;
        strides[o] = eddy_walk_inner_stride(walk, operand);
    }
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        for (int32_t o = 0; o < count; o++)
            data[o] = (char *)call->views[o].data + cursor.offsets[o == output ? 0 : o + 1];
        int64_t rows = rows_ahead(walk, &cursor, end - begin);
        if (rows > 0) {
            run_rows(work, &cursor, data, strides, rows);
            begin += rows * walk->dims[walk->rank - 1];
            continue;
        }
        int64_t run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        work->loop(data, strides, run, call->attributes);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* Rank 0 and 1 in one slice: the common case, without any further work. */
static void run_flat(const eddy_kernel_call *call, int64_t count) {
    int64_t strides[EDDY_WALK_OPERANDS];
    char *data[EDDY_WALK_OPERANDS];
    for (int32_t o = 0; o < call->view_count; o++) {
        const eddy_op_view *view = &call->views[o];
        int64_t bytes = eddy_dtype_size(view->dtype);
        data[o] = view->data;
        strides[o] = view->rank == 0 ? bytes : view->strides[0] * bytes;
    }
    eddy_kernel_loop(call->kernel)(data, strides, count, call->attributes);
}

/* This many operands are advanced from row to row, whether used or not. */
#define PLANE_OPERANDS 4

/* Rank 2 in one slice: operands broadcast along rows or columns. */
static void run_plane(const eddy_kernel_call *call) {
    eddy_loop_fn *loop = eddy_kernel_loop(call->kernel);
    int64_t steps[PLANE_OPERANDS], strides[PLANE_OPERANDS];
    char *data[PLANE_OPERANDS];
    for (int32_t o = 0; o < PLANE_OPERANDS; o++) {
        const eddy_op_view *view = &call->views[o < call->view_count ? o : 0];
        int64_t bytes = eddy_dtype_size(view->dtype);
        data[o] = view->data;
        steps[o] = view->strides[0] * bytes;
        strides[o] = view->strides[1] * bytes;
    }
    const int64_t *shape = call->views[0].shape;
    for (int64_t rows = shape[0], columns = shape[1]; rows > 0; rows--) {
        loop(data, strides, columns, call->attributes);
        for (int32_t o = 0; o < PLANE_OPERANDS; o++)
            data[o] += steps[o];
    }
}

void eddy_kernel_run_elementwise(const eddy_kernel_call *call) {
    EDDY_ASSERT(call->view_count > 0 && call->view_count < EDDY_WALK_OPERANDS);
    int32_t output = call->view_count - 1;
    const eddy_op_view *out = &call->views[output];
    int64_t count = eddy_kernel_view_count(out);
    if (count == 0)
        return;
    if (out->rank <= 1 && count <= EDDY_KERNEL_SLICE_ELEMENTS) {
        run_flat(call, count);
        return;
    }
    if (out->rank == 2 && count <= EDDY_KERNEL_SLICE_ELEMENTS &&
        call->view_count <= PLANE_OPERANDS) {
        run_plane(call);
        return;
    }
    elementwise work;
    work.call = call;
    work.loop = eddy_kernel_loop(call->kernel);
    work.output = output;
    eddy_walk_init(&work.walk, out->rank, out->shape);
    eddy_walk_add(&work.walk, out->strides, eddy_dtype_size(out->dtype));
    for (int32_t o = 0; o < output; o++)
        eddy_walk_add(&work.walk, call->views[o].strides, eddy_dtype_size(call->views[o].dtype));
    if (count <= EDDY_KERNEL_SLICE_ELEMENTS)
        elementwise_run_slice(&work, 0, count);
    else
        call->team->parallel_for(
            call->team, count,
            eddy_grain_even(call->team, count, EDDY_KERNEL_SLICE_ELEMENTS, EDDY_GRAIN_ELEMENTS),
            elementwise_run_slice, &work);
}
