/* eddy_scan: a loop over the slices of tensors. */
#include <base/option.h>
#include <base/status.h>
#include <program/loop.h>

/* All xs have as many slices. */
static eddy_status count_steps(eddy_loop *l, int64_t given) {
    eddy_origin origin = l->call.origin;
    if (l->xs.count == 0 ? given < 0 : given != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "step_count is %lld: it counts the steps where there are no xs",
                         (long long)given);
    l->counts.rows = given;
    for (int64_t i = 0; i < l->xs.count; i++) {
        const eddy_tensor *x = l->xs.items[i];
        if (x->rank == 0)
            return eddy_fail(EDDY_SHAPE_MISMATCH, origin, "xs[%lld] has no axis", (long long)i);
        if (i > 0 && x->axes[0].dim != l->counts.rows)
            return eddy_fail(EDDY_SHAPE_MISMATCH, origin,
                             "xs[%lld] has %lld slices, and xs[0] has %lld", (long long)i,
                             (long long)x->axes[0].dim, (long long)l->counts.rows);
        l->counts.rows = x->axes[0].dim;
    }
    if (l->counts.rows == 0 && l->counts.outputs > l->counts.carried)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "there is no step, and nothing is known of what would be stacked");
    if (l->counts.outputs > l->counts.carried &&
        l->counts.rows > UINT32_MAX / (l->counts.outputs - l->counts.carried))
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the steps");
    return EDDY_OK;
}

static eddy_status check(eddy_loop *l, eddy_list carried, int64_t step_count,
                         eddy_tensor *const *outputs) {
    eddy_origin origin = l->call.origin;
    if (!eddy_caller_may_call(l->call.caller))
        return eddy_caller_refuse(l->call.caller, origin);
    if (!l->body)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a function is NULL");
    eddy_status status = eddy_loop_check_list(l, carried, "carried");
    if (status == EDDY_OK)
        status = eddy_loop_check_list(l, l->xs, "xs");
    if (status != EDDY_OK)
        return status;
    if (l->counts.outputs < carried.count || l->counts.outputs > INT32_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld outputs, and %lld are carried",
                         (long long)l->counts.outputs, (long long)carried.count);
    if (l->counts.outputs > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the outputs");
    return count_steps(l, step_count);
}

/* Step by step, unless a loop is asked for and there is something to loop over. */
static bool is_loop(const eddy_loop *l, bool is_rolled) {
    return is_rolled && l->counts.rows > 0 && l->call.recording;
}

eddy_status(eddy_scan)(eddy_block *body, void *context, eddy_list carried, eddy_list xs,
                       int64_t output_count, const eddy_scan_options *options,
                       eddy_tensor **outputs) {
    eddy_loop l = {.call = {.caller = eddy_caller_get(),
                            .origin = EDDY_ORIGIN("scan"),
                            .context = context,
                            .output_count = output_count,
                            .carried_count = carried.count},
                   .body = body,
                   .xs = xs,
                   .counts = {.carried = carried.count,
                              .slices = xs.count,
                              .outputs = output_count,
                              .is_reversed = EDDY_OPTION(options, is_reversed)}};
    int64_t step_count = EDDY_HAS_OPTION(options, step_count) ? options->step_count : 0;
    eddy_status status = check(&l, carried, step_count, outputs);
    if (status != EDDY_OK)
        return status;
    l.call.recording = eddy_block_recording(l.call.caller);
    return eddy_loop_call(&l, carried, is_loop(&l, EDDY_OPTION(options, is_rolled)), outputs);
}
