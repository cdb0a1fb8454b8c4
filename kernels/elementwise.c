/* The one run function of all elementwise kernels: rows of the innermost dim go to the kernel's loop, big tensors are
 * cut into slices of elements. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cpu/walk.h>

/* Elements per slice: some 10 us of a cheap op, so that a slice is worth handing over. */
#define SLICE_ELEMENTS 32768

typedef struct elementwise {
    const eddy_kernel_call *call;
    eddy_loop_fn *loop;
    eddy_walk walk; /* strides in bytes, the output first */
    int32_t output;
} elementwise;

static void run_slice(void *context, int64_t begin, int64_t end) {
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
        int64_t run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        for (int32_t o = 0; o < count; o++)
            data[o] = (char *)call->views[o].data + cursor.offsets[o == output ? 0 : o + 1];
        work->loop(data, strides, run, call->attributes);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* Rank 0 and 1 in one slice: the common case, kept free of everything else. */
static void run_flat(const eddy_kernel_call *call, int64_t count) {
    int64_t strides[EDDY_WALK_OPERANDS];
    char *data[EDDY_WALK_OPERANDS];
    for (int32_t o = 0; o < call->view_count; o++) {
        const eddy_kernel_view *view = &call->views[o];
        int64_t bytes = (int64_t)eddy_dtype_bytes(view->dtype);
        data[o] = view->data;
        strides[o] = view->rank == 0 ? bytes : view->strides[0] * bytes;
    }
    eddy_kernel_loop(call->kernel)(data, strides, count, call->attributes);
}

void eddy_kernel_run_elementwise(const eddy_kernel_call *call) {
    EDDY_ASSERT(call->view_count > 0 && call->view_count < EDDY_WALK_OPERANDS);
    int32_t output = call->view_count - 1;
    const eddy_kernel_view *out = &call->views[output];
    int64_t count = eddy_view_count(out);
    if (count == 0)
        return;
    if (out->rank <= 1 && count <= SLICE_ELEMENTS) {
        run_flat(call, count);
        return;
    }
    elementwise work;
    work.call = call;
    work.loop = eddy_kernel_loop(call->kernel);
    work.output = output;
    eddy_walk_init(&work.walk, out->rank, out->shape);
    eddy_walk_add(&work.walk, out->strides, (int64_t)eddy_dtype_bytes(out->dtype));
    for (int32_t o = 0; o < output; o++)
        eddy_walk_add(&work.walk, call->views[o].strides, (int64_t)eddy_dtype_bytes(call->views[o].dtype));
    eddy_walk_sort(&work.walk);
    eddy_walk_collapse(&work.walk);
    if (count <= SLICE_ELEMENTS)
        run_slice(&work, 0, count);
    else
        call->team->parallel_for(call->team, count, SLICE_ELEMENTS, run_slice, &work);
}
