/* eddy_while. */
#include <base/option.h>
#include <base/status.h>
#include <program/loop.h>

static eddy_status check(const eddy_loop *l, eddy_list carried, int64_t list_count,
                         eddy_tensor *const *outputs) {
    eddy_origin origin = l->call.origin;
    if (!eddy_caller_may_call(l->call.caller))
        return eddy_caller_refuse(l->call.caller, origin);
    if (!l->test || !l->body)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a function is NULL");
    if (l->most_steps < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "most_steps is negative");
    if (list_count < 0 || list_count > INT32_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there can be no %lld lists",
                         (long long)list_count);
    if (list_count > 0 && l->most_steps == 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "lists have most_steps rows, and most_steps is 0");
    if (l->counts.outputs > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the outputs");
    return eddy_loop_check_list(l, carried, "carried");
}

eddy_status(eddy_while)(eddy_block *test, eddy_block *body, void *context, eddy_list carried,
                        const eddy_while_options *options, eddy_tensor **outputs) {
    int64_t list_count = EDDY_HAS_OPTION(options, list_count) ? options->list_count : 0,
            most_steps = EDDY_HAS_OPTION(options, most_steps) ? options->most_steps : 0;
    bool can_be = list_count >= 0 && list_count <= INT32_MAX; /* checked below */
    int64_t count = carried.count + (can_be ? list_count : 0);
    eddy_loop l = {.call = {.caller = eddy_caller_get(),
                            .origin = EDDY_ORIGIN("while"),
                            .context = context,
                            .output_count = count,
                            .carried_count = carried.count,
                            .timeout = EDDY_HAS_OPTION(options, timeout) ? options->timeout : 0},
                   .test = test,
                   .body = body,
                   .most_steps = most_steps,
                   .counts = {.carried = carried.count, .outputs = count, .rows = most_steps}};
    eddy_status status = check(&l, carried, list_count, outputs);
    if (status != EDDY_OK)
        return status;
    l.call.recording = eddy_block_recording(l.call.caller);
    return eddy_loop_call(&l, carried, l.call.recording != NULL, outputs);
}
