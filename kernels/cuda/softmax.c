#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/softmax.h>
#include <string.h>

/* What the device's memory is read in: a line of so many bytes is read whole. */
#define SECTOR_BYTES 32
/* Elements that a thread takes of a line, while there are threads. */
#define ELEMENTS_OF_THREAD 4

static eddy_cuda_image image = {.data = eddy_cuda_image_softmax};

/* ---- which kernels there are ---- */

typedef enum op {
    OP_softmax,
    OP_log_softmax,
    OP_softmax_backward,
    OP_log_softmax_backward,
    OPS
} op;

static _Atomic(void *) loaded[OPS][EDDY_DTYPE_COUNT][3][EDDY_CUDA_DEVICES];
static _Atomic(void *) loaded_largest[EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

typedef struct forms {
    eddy_cuda_function whole, sums, results;
} forms;

static const forms functions[OPS][EDDY_DTYPE_COUNT] = {
#define FORMS(op, of, dtype, compute)                                                              \
    [OP_##op][EDDY_##dtype] = {                                                                    \
        .whole = {"eddy_" #op "_" #of "_whole", &image, loaded[OP_##op][EDDY_##dtype][0]},         \
        .sums = {"eddy_" #op "_" #of "_sums", &image, loaded[OP_##op][EDDY_##dtype][1]},           \
        .results = {"eddy_" #op "_" #of "_results", &image, loaded[OP_##op][EDDY_##dtype][2]},     \
    },
    EDDY_CUDA_SOFTMAXES(FORMS)};

static const eddy_cuda_function largest[EDDY_DTYPE_COUNT] = {
#define LARGEST(op, of, dtype, compute)                                                            \
    [EDDY_##dtype] = {"eddy_" #op "_" #of "_largest", &image, loaded_largest[EDDY_##dtype]},
    EDDY_CUDA_SOFTMAX_DTYPES(LARGEST, softmax)};

/* ---- plans ---- */

typedef struct plan {
    const forms *of;
    const eddy_cuda_function *largest; /* NULL: of gradients */
    bool keeps_lines;                  /* one kernel does it */
    eddy_cuda_softmax_call parameters; /* without addresses */
} plan;

_Static_assert(sizeof(plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

/* Spreads the threads of a block over lines and places, so that neighbours read neighbouring bytes. */
static void spread(plan *own, int64_t element_bytes) {
    eddy_cuda_softmax_call *p = &own->parameters;
    const eddy_cuda_lines *lines = &p->lines;
    int64_t wanted = (lines->count + ELEMENTS_OF_THREAD - 1) / ELEMENTS_OF_THREAD;
    if (lines->is_across)
        wanted = EDDY_CUDA_BLOCK /
                 eddy_cuda_power_of_two(lines->lines, (uint32_t)(SECTOR_BYTES / element_bytes));
    p->places =
        eddy_cuda_power_of_two(eddy_max_i64(wanted, EDDY_CUDA_SOFTMAX_LANES), EDDY_CUDA_BLOCK);
    own->keeps_lines = lines->count <= (int64_t)p->places * EDDY_CUDA_SOFTMAX_ROUNDS;
    if (!own->keeps_lines)
        p->places = EDDY_CUDA_SOFTMAX_LANES;
    p->abreast = EDDY_CUDA_BLOCK / p->places;
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *to, op number) {
    const eddy_attributes_axis *attributes = call->attributes;
    eddy_dtype dtype = call->views[0].dtype;
    plan *own = to->memory;
    memset(own, 0, sizeof(*own));
    to->bytes = sizeof(*own);
    own->of = &functions[number][dtype];
    own->largest = call->view_count == 2 ? &largest[dtype] : NULL;
    eddy_cuda_softmax_call *p = &own->parameters;
    eddy_cuda_lines_take(&p->lines, call, attributes->axis);
    if (p->lines.lines == 0 || p->lines.count == 0)
        return EDDY_OK;
    spread(own, eddy_dtype_size(dtype));
    p->chunks = (p->lines.count + EDDY_CUDA_SOFTMAX_CHUNK - 1) / EDDY_CUDA_SOFTMAX_CHUNK;
    if (!own->keeps_lines)
        to->workspace_bytes = 2 * sizeof(double) * (size_t)(p->lines.lines * p->chunks);
    return EDDY_OK;
}

static void run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    eddy_cuda_softmax_call p = own->parameters;
    if (p.lines.lines == 0 || p.lines.count == 0)
        return;
    for (int32_t v = 0; v < call->view_count - 1; v++)
        p.in[v] = call->views[v].data;
    p.out = call->views[call->view_count - 1].data;
    if (own->keeps_lines) {
        eddy_cuda_launch(call, &own->of->whole, &p, sizeof(p),
                         eddy_cuda_blocks(call, p.lines.lines, p.abreast));
        return;
    }
    int64_t chunks = p.lines.lines * p.chunks;
    uint32_t blocks = eddy_cuda_blocks(call, chunks, p.abreast);
    p.sums = call->workspace;
    if (own->largest) {
        p.largest = p.sums + chunks;
        eddy_cuda_launch(call, own->largest, &p, sizeof(p), blocks);
    }
    eddy_cuda_launch(call, &own->of->sums, &p, sizeof(p), blocks);
    eddy_cuda_launch(call, &own->of->results, &p, sizeof(p), blocks);
}

/* ---- kernels ---- */

#define KERNEL(op)                                                                                 \
    static eddy_status op##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {          \
        return prepare(call, to, OP_##op);                                                         \
    }                                                                                              \
    const eddy_kernel eddy_cuda_##op = {.name = #op, .prepare = op##_prepare, .run = run};

KERNEL(softmax)
KERNEL(log_softmax)
KERNEL(softmax_backward)
KERNEL(log_softmax_backward)
