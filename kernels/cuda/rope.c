/* rope. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/attention/rope_angle.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/rope.h>
#include <math.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_rope};
static _Atomic(void *) loaded[2 + EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

/* By whether it is f64. */
static const eddy_cuda_function angles[] = {{"eddy_rope_angles_f32", &image, loaded[0]},
                                            {"eddy_rope_angles_f64", &image, loaded[1]}};
static const eddy_cuda_function turns[EDDY_DTYPE_COUNT] = {
#define TURN(name, dtype, number)                                                                  \
    [EDDY_##dtype] = {"eddy_rope_turn_" #name, &image, loaded[2 + EDDY_##dtype]},
    EDDY_CUDA_ROPES(TURN)};

/* Without addresses. */
typedef struct rope_plan {
    eddy_cuda_rope_angles angles;
    eddy_cuda_rope_turn turn;
} rope_plan;

_Static_assert(sizeof(rope_plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

static int64_t angle_bytes(eddy_dtype dtype) {
    return 2 * (int64_t)(dtype == EDDY_F64 ? sizeof(double) : sizeof(float));
}

static void plan_angles(const eddy_kernel_call *call, eddy_cuda_rope_angles *p, int64_t pairs) {
    const eddy_attributes_rope *attributes = call->attributes;
    const eddy_op_view *positions = &call->views[1];
    p->count = positions->shape[0];
    p->pairs = pairs;
    p->stride = positions->strides[0] * (int64_t)sizeof(int64_t);
    p->base = attributes->base;
    for (int64_t i = 0; i < pairs; i++)
        p->fastest = fmax(p->fastest, eddy_rope_frequency(p->base, i, pairs));
}

/* Rows in the order in which the output lies. */
static void plan_turn(const eddy_kernel_call *call, eddy_cuda_rope_turn *p, int64_t pairs) {
    const eddy_attributes_rope *attributes = call->attributes;
    const eddy_op_view *x = &call->views[0], *out = &call->views[2];
    int32_t last = x->rank - 1;
    int64_t bytes = eddy_dtype_size(x->dtype), of_angles[EDDY_RANK_MAX] = {0};
    eddy_walk rows;
    of_angles[last - 1] = pairs;
    eddy_walk_init(&rows, last, out->shape);
    eddy_walk_add(&rows, out->strides, 1);
    eddy_walk_add(&rows, x->strides, 1);
    eddy_walk_add(&rows, of_angles, 1);
    eddy_walk_sort(&rows);
    eddy_walk_collapse(&rows);
    eddy_cuda_dims_take(&p->dims, &rows, (const int64_t[]){bytes, bytes, angle_bytes(x->dtype)});
    p->rows = eddy_walk_count(&rows);
    p->pairs = pairs;
    const int64_t strides[] = {out->strides[last] * bytes, x->strides[last] * bytes};
    for (int k = 0; k < 2; k++) {
        p->pair_strides[k] = strides[k] * (attributes->is_interleaved ? 2 : 1);
        p->partners[k] = strides[k] * (attributes->is_interleaved ? 1 : pairs);
    }
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *x = &call->views[0];
    rope_plan *own = plan->memory;
    memset(own, 0, sizeof(*own));
    plan->bytes = sizeof(*own);
    if (eddy_kernel_view_count(x) == 0)
        return EDDY_OK;
    int64_t pairs = x->shape[x->rank - 1] / 2;
    plan_angles(call, &own->angles, pairs);
    plan_turn(call, &own->turn, pairs);
    plan->workspace_bytes = (size_t)(own->angles.count * pairs * angle_bytes(x->dtype));
    return EDDY_OK;
}

/* views: x, positions, out */
static void run(const eddy_kernel_call *call) {
    rope_plan own = *(const rope_plan *)call->plan;
    eddy_dtype dtype = call->views[0].dtype;
    if (own.turn.rows == 0)
        return;
    own.angles.positions = call->views[1].data;
    own.angles.angles = call->workspace;
    eddy_cuda_launch(call, &angles[dtype == EDDY_F64], &own.angles, sizeof(own.angles),
                     eddy_cuda_blocks(call, own.angles.count * own.angles.pairs, EDDY_CUDA_BLOCK));
    own.turn.x = call->views[0].data;
    own.turn.angles = call->workspace;
    own.turn.out = call->views[2].data;
    eddy_cuda_launch(call, &turns[dtype], &own.turn, sizeof(own.turn),
                     eddy_cuda_blocks(call, own.turn.rows * own.turn.pairs, EDDY_CUDA_BLOCK));
}

const eddy_kernel eddy_cuda_rope = {.name = "rope", .prepare = prepare, .run = run};
