#include <program/steps.h>

#include <base/dtype.h>
#include <kernels/kernel.h>
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

/* Whether the call is one call of its kernel's loop over views of merged rank 0 or 1. */
static bool is_flat(const eddy_packed_arguments *packed, uint32_t operand_count) {
    return packed->kernel->run == eddy_kernel_run_elementwise && !packed->kernel->prepare &&
           operand_count == packed->view_count && operand_count >= 2 &&
           operand_count <= EDDY_STEP_PLACES && packed->views[0].rank <= 1;
}

static const int64_t *words_of(const eddy_packed_arguments *packed, uint32_t at) {
    return (const int64_t *)(const void *)packed + at;
}

static int64_t flat_count(const eddy_packed_arguments *packed) {
    return packed->views[0].rank == 0 ? 1 : words_of(packed, packed->views[0].dims_at)[0];
}

/* The strides of the loop, in bytes. */
static const int64_t *strides_in_bytes(const eddy_step_call *call) {
    const eddy_packed_arguments *packed = call->prepared->packed;
    int64_t *strides = call->prepared->loop_strides;
    for (uint32_t i = 0; i < call->count; i++) {
        const eddy_packed_view *view = &packed->views[i];
        int64_t bytes = eddy_dtype_size((eddy_dtype)view->dtype);
        strides[i] = view->rank == 0 ? bytes : words_of(packed, view->strides_at)[0] * bytes;
    }
    return strides;
}

static void make_loop(eddy_step *step, const eddy_step_call *call) {
    static void (*const runs[])(const eddy_step *, eddy_frame *) = {step_loop_2, step_loop_3,
                                                                    step_loop_4};
    const eddy_packed_arguments *packed = call->prepared->packed;
    step->run = runs[call->count - 2];
    step->loop.loop = eddy_kernel_loop(packed->kernel);
    step->loop.attributes = words_of(packed, packed->attributes_at);
    step->loop.strides = strides_in_bytes(call);
    step->loop.count = flat_count(packed);
    for (uint32_t i = 0; i < call->count; i++) {
        const eddy_packed_view *view = &packed->views[i];
        step->loop.bases[i] = call->places[i].base;
        step->loop.offsets[i] =
            call->places[i].offset + view->offset * eddy_dtype_size((eddy_dtype)view->dtype);
    }
}

/* ---- kernels ---- */

static void run_call(const eddy_step *step, eddy_frame *frame,
                     const eddy_packed_arguments *arguments) {
    const eddy_prepared_call *prepared = step->kernel.call;
    eddy_frame_find(frame, step->kernel.places, step->kernel.place_count);
    eddy_vm_instruction instruction = {.descriptor = prepared->descriptor,
                                       .arguments = arguments,
                                       .operand_count = step->kernel.place_count};
    eddy_vm_run run = {.instruction = &instruction,
                       .data = frame->data,
                       .bytes = step->kernel.bytes,
                       .team = step->kernel.wants_helpers ? frame->team : &eddy_team_serial,
                       .error = &frame->error};
    if (step->kernel.workspace_at >= 0)
        run.workspace = frame->bases[0] + step->kernel.workspace_at;
    prepared->descriptor->run(&run);
}

static void step_kernel(const eddy_step *step, eddy_frame *frame) {
    run_call(step, frame, step->kernel.call->packed);
}

/* The run's own copy of the call's arguments gets its words. */
static void step_patched(const eddy_step *step, eddy_frame *frame) {
    const eddy_prepared_call *prepared = step->kernel.call;
    memcpy(frame->copy, prepared->packed, prepared->bytes);
    int64_t *attributes = frame->copy + prepared->packed->attributes_at;
    for (uint32_t i = 0; i < step->kernel.patch_count; i++)
        attributes[step->kernel.patches[i].to] = frame->words[step->kernel.patches[i].from];
    run_call(step, frame, (const eddy_packed_arguments *)(const void *)frame->copy);
}

static void make_kernel(eddy_step *step, const eddy_step_call *call) {
    step->run = call->patch_count > 0 ? step_patched : step_kernel;
    step->kernel.call = call->prepared;
    step->kernel.places = call->places;
    step->kernel.bytes = call->bytes;
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

void eddy_step_make_fused(eddy_step *step, const eddy_fused *fused) {
    step->run = step_fused;
    step->fused = fused;
}

/* ---- all of it ---- */

void eddy_step_make(eddy_step *step, const eddy_step_call *call) {
    const eddy_packed_arguments *packed = call->prepared->packed;
    if (call->patch_count > 0 || !is_flat(packed, call->count) ||
        flat_count(packed) > EDDY_KERNEL_SLICE_ELEMENTS)
        make_kernel(step, call);
    else if (flat_count(packed) == 0)
        step->run = step_nothing;
    else
        make_loop(step, call);
}
