#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/scan.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_scan};

/* ---- which kernels there are ---- */

typedef enum op { OP_cumsum, OP_cumprod, OP_cumprod_backward, OPS } op;

static _Atomic(void *) loaded[OPS][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];
static _Atomic(void *) loaded_join[2][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[OPS][EDDY_DTYPE_COUNT] = {
#define BACKWARD(op, of, dtype)                                                                    \
    [OP_##op][EDDY_##dtype] = {"eddy_" #op "_" #of, &image, loaded[OP_##op][EDDY_##dtype]},
#define SCAN(op, of, dtype, compute, result) BACKWARD(op, of, dtype)
    EDDY_CUDA_SCANS(SCAN) EDDY_CUDA_SCANS_BACKWARD(BACKWARD)};

/* Of integers, of floats. */
static const eddy_cuda_function joins[2] = {{"eddy_scan_join_i64", &image, loaded_join[0]},
                                            {"eddy_scan_join_f64", &image, loaded_join[1]}};

/* ---- plans ---- */

typedef struct plan {
    const eddy_cuda_function *of;
    eddy_cuda_scan_call parameters; /* without addresses */
} plan;

_Static_assert(sizeof(plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

static int64_t pieces(int64_t count, int64_t of) {
    return (count + of - 1) / of;
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *to, op number) {
    const eddy_attributes_axis *attributes = call->attributes;
    plan *own = to->memory;
    memset(own, 0, sizeof(*own));
    to->bytes = sizeof(*own);
    own->of = &functions[number][call->views[0].dtype];
    eddy_cuda_scan_call *p = &own->parameters;
    eddy_cuda_lines_take(&p->lines, call, attributes->axis);
    const int64_t count = p->lines.count;
    p->blocks = number == OP_cumsum ? pieces(count, EDDY_CUDA_SCAN_BLOCK) : 1;
    p->length = p->blocks > 1 ? EDDY_CUDA_SCAN_BLOCK : count;
    int64_t totals = p->blocks > 1 ? p->blocks : 0;
    if (number == OP_cumprod_backward)
        totals = pieces(count, EDDY_CUDA_SCAN_STEP);
    to->workspace_bytes = sizeof(double) * (size_t)(p->lines.lines * totals);
    return EDDY_OK;
}

static void run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    eddy_cuda_scan_call p = own->parameters;
    if (p.lines.lines == 0 || p.lines.count == 0)
        return;
    for (int32_t v = 0; v < call->view_count - 1; v++)
        p.in[v] = call->views[v].data;
    p.out = call->views[call->view_count - 1].data;
    p.totals = call->workspace;
    uint32_t blocks = eddy_cuda_blocks(call, p.lines.lines * p.blocks, EDDY_CUDA_BLOCK);
    if (p.blocks > 1) {
        p.finds_totals = true;
        eddy_cuda_launch(call, own->of, &p, sizeof(p), blocks);
        eddy_cuda_launch(call, &joins[eddy_dtype_is_float(call->views[0].dtype)], &p, sizeof(p),
                         eddy_cuda_blocks(call, p.lines.lines, EDDY_CUDA_BLOCK));
        p.finds_totals = false;
    }
    eddy_cuda_launch(call, own->of, &p, sizeof(p), blocks);
}

/* ---- kernels ---- */

#define KERNEL(op)                                                                                 \
    static eddy_status op##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {          \
        return prepare(call, to, OP_##op);                                                         \
    }                                                                                              \
    const eddy_kernel eddy_cuda_##op = {.name = #op, .prepare = op##_prepare, .run = run};

KERNEL(cumsum)
KERNEL(cumprod)
KERNEL(cumprod_backward)
