#include <program/steps.h>

#include <base/dtype.h>
#include <kernels/kernel.h>
#include <program/control.h>
#include <program/draw_ops.h>
#include <program/fused.h>
#include <streams/team.h>
#include <string.h>

static char *place_data(const eddy_frame *frame, uint32_t base, int64_t offset) {
    return frame->bases[base] + offset;
}

/* ---- nothing ---- */

static void step_nothing(const eddy_step *step, eddy_frame *frame) {
    (void)step;
    (void)frame;
}

/* Where the run goes on is the replay's affair. */
static void step_mark(const eddy_step *step, eddy_frame *frame) {
    (void)step;
    (void)frame;
}

/* A call of the VM's own: no run comes to it. */
static void step_call(const eddy_step *step, eddy_frame *frame) {
    (void)step;
    (void)frame;
    EDDY_ASSERT(false);
}

void eddy_step_make_call(eddy_step *step) {
    step->run = step_call;
}

/* ---- loops ---- */

static void step_loop_2(const eddy_step *step, eddy_frame *frame) {
    char *data[] = {place_data(frame, step->loop.bases[0], step->loop.offsets[0]),
                    place_data(frame, step->loop.bases[1], step->loop.offsets[1])};
    step->loop.loop(data, step->loop.strides, step->loop.count, step->loop.attributes);
}

static void step_loop_3(const eddy_step *step, eddy_frame *frame) {
    char *data[] = {place_data(frame, step->loop.bases[0], step->loop.offsets[0]),
                    place_data(frame, step->loop.bases[1], step->loop.offsets[1]),
                    place_data(frame, step->loop.bases[2], step->loop.offsets[2])};
    step->loop.loop(data, step->loop.strides, step->loop.count, step->loop.attributes);
}

static void step_loop_4(const eddy_step *step, eddy_frame *frame) {
    char *data[EDDY_STEP_PLACES];
    for (int i = 0; i < EDDY_STEP_PLACES; i++)
        data[i] = place_data(frame, step->loop.bases[i], step->loop.offsets[i]);
    step->loop.loop(data, step->loop.strides, step->loop.count, step->loop.attributes);
}

/* By the number of operands less two. */
static void (*const loop_runs[])(const eddy_step *, eddy_frame *) = {step_loop_2, step_loop_3,
                                                                     step_loop_4};

/* Rows, with two or three operands behind which a place is read that is not used. */
static void step_rows(const eddy_step *step, eddy_frame *frame) {
    const int64_t *strides = step->loop.strides, *row = strides + EDDY_STEP_PLACES;
    char *data[EDDY_STEP_PLACES];
    for (int i = 0; i < EDDY_STEP_PLACES; i++)
        data[i] = place_data(frame, step->loop.bases[i], step->loop.offsets[i]);
    for (int64_t r = 0; r < step->loop.rows; r++) {
        step->loop.loop(data, strides, step->loop.count, step->loop.attributes);
        for (int i = 0; i < EDDY_STEP_PLACES; i++)
            data[i] += row[i];
    }
}

/* Whether the call is its kernel's loop alone, over views of merged rank 0 to 2. */
static bool is_plain(const eddy_packed_arguments *packed, uint32_t operand_count) {
    return packed->kernel->run == eddy_kernel_run_elementwise && !packed->kernel->prepare &&
           operand_count == packed->view_count && operand_count >= 2 &&
           operand_count <= EDDY_STEP_PLACES && packed->views[0].rank <= 2;
}

static int64_t element_count(const eddy_prepared_call *prepared) {
    return eddy_kernel_view_count(&prepared->views[0]);
}

/* The strides of the loop, in bytes. */
static void set_strides(const eddy_step_call *call, int32_t rank) {
    int64_t *strides = call->prepared->loop_strides;
    memset(strides, 0, 2 * EDDY_STEP_PLACES * sizeof(*strides));
    for (uint32_t i = 0; i < call->count; i++) {
        const eddy_op_view *view = &call->prepared->views[i];
        int64_t bytes = eddy_dtype_size(view->dtype);
        strides[i] = rank == 0 ? bytes : view->strides[rank - 1] * bytes;
        strides[EDDY_STEP_PLACES + i] = rank == 2 ? view->strides[0] * bytes : 0;
    }
}

static void make_loop(eddy_step *step, const eddy_step_call *call) {
    const eddy_packed_arguments *packed = call->prepared->packed;
    const eddy_op_view *view = &call->prepared->views[0];
    set_strides(call, view->rank);
    step->run = view->rank == 2 ? step_rows : loop_runs[call->count - 2];
    step->loop.loop = eddy_kernel_loop(packed->kernel);
    step->loop.attributes = eddy_packed_attributes(packed);
    step->loop.strides = call->prepared->loop_strides;
    step->loop.rows = view->rank == 2 ? view->shape[0] : 1;
    step->loop.count = view->rank == 0 ? 1 : view->shape[view->rank - 1];
    for (uint32_t i = 0; i < EDDY_STEP_PLACES; i++) {
        const eddy_place *place = &call->places[i < call->count ? i : 0];
        step->loop.bases[i] = place->base;
        step->loop.offsets[i] = place->offset;
    }
}

/* ---- kernels ---- */

static void run_call(const eddy_step *step, eddy_frame *frame, const void *attributes) {
    const eddy_prepared_call *prepared = step->kernel.call;
    const eddy_packed_arguments *packed = prepared->packed;
    memcpy(frame->views, prepared->views, packed->view_count * sizeof(*frame->views));
    for (uint32_t i = 0; i < step->kernel.place_count; i++) {
        const eddy_place *place = &step->kernel.places[i];
        char *base = frame->bases[place->base];
        frame->views[place->view].data = base ? base + place->offset : NULL;
    }
    eddy_kernel_call call = {.views = frame->views,
                             .attributes = attributes,
                             .team = step->kernel.wants_helpers ? frame->team : &eddy_team_serial,
                             .error = &frame->error,
                             .launch = frame->launch};
    if (step->kernel.workspace_at >= 0)
        call.workspace = frame->bases[0] + step->kernel.workspace_at;
    /* Kernels call the libraries that end with the process, and a run may go on for longer than exit waits. */
    eddy_team_halt_point();
    eddy_packed_call(packed, &call);
}

static void step_kernel(const eddy_step *step, eddy_frame *frame) {
    run_call(step, frame, eddy_packed_attributes(step->kernel.call->packed));
}

/* The run's own copy of the call's attributes gets its words. */
void eddy_step_patch(const eddy_step *step, eddy_frame *frame) {
    const eddy_packed_arguments *packed = step->kernel.call->packed;
    memcpy(frame->copy, eddy_packed_attributes(packed), packed->op->kernel_attribute_bytes);
    for (uint32_t i = 0; i < step->kernel.patch_count; i++)
        frame->copy[step->kernel.patches[i].to] = frame->words[step->kernel.patches[i].from];
}

static void step_patched(const eddy_step *step, eddy_frame *frame) {
    eddy_step_patch(step, frame);
    run_call(step, frame, frame->copy);
}

static void step_drawing(const eddy_step *step, eddy_frame *frame) {
    eddy_late_draws_take(frame->late, step->kernel.draw);
    step_patched(step, frame);
}

/* Seed and counter become words of the run. */
static void step_set_draw(const eddy_step *step, eddy_frame *frame) {
    const eddy_place *place = &step->kernel.places[0];
    const int64_t *drawn =
        (const int64_t *)(const void *)place_data(frame, place->base, place->offset);
    int64_t stride = step->kernel.call->views[0].strides[0];
    for (uint32_t i = 0; i < step->kernel.patch_count; i++)
        frame->late->words[step->kernel.patches[i].from] = drawn[i * stride];
}

static void make_kernel(eddy_step *step, const eddy_step_call *call) {
    step->run = eddy_draw_op_sets(call->prepared->packed->op) ? step_set_draw
                : call->late_draw                             ? step_drawing
                : call->patch_count > 0                       ? step_patched
                                                              : step_kernel;
    step->kernel.draw = call->late_draw - 1;
    step->kernel.call = call->prepared;
    step->kernel.places = call->places;
    step->kernel.place_count = call->count;
    step->kernel.patches = call->patches;
    step->kernel.patch_count = call->patch_count;
    step->kernel.workspace_at = call->workspace_at;
    step->kernel.wants_helpers = call->prepared->cost_ps > EDDY_STEP_HELPED_PS;
}

/* ---- groups ---- */

static void step_fused(const eddy_step *step, eddy_frame *frame) {
    eddy_fused_run(step->fused, frame);
}

/* The members are one loop: the step is as that of an instruction. */
static void make_chain(eddy_step *step, const eddy_fused *fused) {
    const eddy_fused_member *call = fused->members + fused->member_count;
    bool is_row = call->is_flat || fused->rows == 1;
    step->run = is_row ? loop_runs[call->operand_count - 2] : step_rows;
    step->loop.loop = call->loop;
    step->loop.attributes = call->attributes;
    step->loop.strides = fused->loop_strides;
    step->loop.rows = is_row ? 1 : fused->rows;
    step->loop.count = is_row ? fused->rows * fused->columns : fused->columns;
    for (uint32_t i = 0; i < EDDY_STEP_PLACES; i++) {
        const eddy_fused_operand *operand = &call->operands[i < call->operand_count ? i : 0];
        step->loop.bases[i] = operand->base;
        step->loop.offsets[i] = operand->offset;
    }
}

void eddy_step_make_fused(eddy_step *step, const eddy_fused *fused) {
    if (eddy_fused_is_loop(fused)) {
        make_chain(step, fused);
        return;
    }
    step->run = step_fused;
    step->fused = fused;
}

/* ---- all of it ---- */

void eddy_step_make(eddy_step *step, const eddy_step_call *call) {
    const eddy_packed_arguments *packed = call->prepared->packed;
    if (eddy_control_of(packed->op) != EDDY_CONTROL_NONE)
        step->run = step_mark;
    else if (call->patch_count > 0 || call->checks_finite || !is_plain(packed, call->count) ||
             element_count(call->prepared) > EDDY_KERNEL_SLICE_ELEMENTS)
        make_kernel(step, call);
    else if (element_count(call->prepared) == 0)
        step->run = step_nothing;
    else
        make_loop(step, call);
}

bool eddy_step_is_constant(const eddy_step *step) {
    return step->run == step_kernel;
}

bool eddy_step_is_patched(const eddy_step *step) {
    return step->run == step_patched || step->run == step_drawing;
}

const char *eddy_step_kind(const eddy_step *step) {
    return step->run == step_call       ? "call"
           : step->run == step_kernel   ? "kernel"
           : step->run == step_patched  ? "patched kernel"
           : step->run == step_drawing  ? "drawing kernel"
           : step->run == step_set_draw ? "set draw"
           : step->run == step_rows     ? "rows"
           : step->run == step_nothing  ? "nothing"
           : step->run == step_mark     ? "mark"
                                        : "loop";
}
