/* eddy_scan: a loop of C over the slices of tensors. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <interpreter/handle/scope.h>
#include <program/block.h>
#include <string.h>

typedef struct scan {
    eddy_block_call call;
    eddy_block *body;
    eddy_list xs;
    int64_t step_count;
    bool is_reversed;
    eddy_tensor **given; /* for a step: what is carried (references), then slices */
    eddy_tensor **made;  /* what a step gives; in the end what the scan does */
    eddy_tensor *
        *kept; /* references: of each other output, those of all steps in the order of the slices */
} scan;

static int64_t other_count(const scan *s) {
    return s->call.output_count - s->call.carried_count;
}

/* ---- steps ---- */

static eddy_status take_slices(const scan *s, int64_t at) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    bool is_sliced = true;
    for (int64_t i = 0; i < s->xs.count && is_sliced; i++) {
        eddy_tensor *slice = eddy_select(s->xs.items[i], 0, at);
        s->given[s->call.carried_count + i] = slice;
        is_sliced = slice != NULL;
    }
    eddy_outcome_end(&outcome);
    return is_sliced ? EDDY_OK : eddy_outcome_why(&outcome);
}

static void keep(const scan *s, int64_t at) {
    int64_t carried = s->call.carried_count;
    eddy_block_drop(s->given, carried);
    for (int64_t i = 0; i < carried; i++)
        s->given[i] = s->made[i];
    for (int64_t i = 0; i < other_count(s); i++)
        s->kept[i * s->step_count + at] = s->made[carried + i];
    memset(s->made, 0, (size_t)s->call.output_count * sizeof(*s->made));
}

static eddy_status run_step(const scan *s, int64_t at) {
    eddy_list inputs = {s->given, s->call.carried_count + s->xs.count};
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(s->call.caller, s->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    status = take_slices(s, at);
    if (status == EDDY_OK)
        status = eddy_block_run(&s->call, s->body, inputs, s->made);
    if (status == EDDY_OK)
        keep(s, at);
    eddy_scope_end(scope);
    return status;
}

static eddy_status stack(const scan *s) {
    eddy_scope *scope;
    eddy_outcome outcome;
    eddy_status status = eddy_scope_open(s->call.caller, s->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    eddy_outcome_begin(&outcome);
    for (int64_t i = 0; i < other_count(s) && status == EDDY_OK; i++) {
        eddy_tensor *all = eddy_stack((eddy_list){s->kept + i * s->step_count, s->step_count}, 0);
        status = all ? EDDY_OK : eddy_outcome_why(&outcome);
        if (all)
            eddy_tensor_retain(all);
        s->made[s->call.carried_count + i] = all;
    }
    eddy_outcome_end(&outcome);
    eddy_scope_end(scope);
    return status;
}

static eddy_status run(const scan *s, eddy_list carried, eddy_tensor **outputs) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < carried.count && status == EDDY_OK; i++)
        status = eddy_block_copy(&s->call, carried.items[i], &s->given[i]);
    for (int64_t t = 0; t < s->step_count && status == EDDY_OK; t++)
        status = run_step(s, s->is_reversed ? s->step_count - 1 - t : t);
    if (status == EDDY_OK)
        status = stack(s);
    eddy_block_drop(s->kept, other_count(s) * s->step_count);
    if (status != EDDY_OK) {
        eddy_block_drop(s->made, s->call.output_count);
        eddy_block_drop(s->given, carried.count);
        return status;
    }
    for (int64_t i = 0; i < carried.count; i++)
        s->made[i] = s->given[i];
    return eddy_block_hand_out(&s->call, s->made, outputs);
}

/* ---- checks ---- */

static eddy_status check_list(const scan *s, eddy_list list, const char *name) {
    eddy_status status = eddy_program_check_list(list.items, list.count, name, s->call.origin);
    for (int64_t i = 0; i < list.count && status == EDDY_OK; i++)
        status = eddy_tensor_check_item_shape(list.items[i], name, i, s->call.origin);
    return status;
}

/* All xs have as many slices. */
static eddy_status count_steps(scan *s, int64_t given) {
    eddy_origin origin = s->call.origin;
    if (s->xs.count == 0 ? given < 0 : given != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "step_count is %lld: it counts the steps where there are no xs",
                         (long long)given);
    s->step_count = given;
    for (int64_t i = 0; i < s->xs.count; i++) {
        const eddy_tensor *x = s->xs.items[i];
        if (x->rank == 0)
            return eddy_fail(EDDY_SHAPE_MISMATCH, origin, "xs[%lld] has no axis", (long long)i);
        if (i > 0 && x->axes[0].dim != s->step_count)
            return eddy_fail(EDDY_SHAPE_MISMATCH, origin,
                             "xs[%lld] has %lld slices, and xs[0] has %lld", (long long)i,
                             (long long)x->axes[0].dim, (long long)s->step_count);
        s->step_count = x->axes[0].dim;
    }
    if (s->step_count == 0 && other_count(s) > 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "there is no step, and nothing is known of what would be stacked");
    return EDDY_OK;
}

static eddy_status check(scan *s, eddy_list carried, int64_t step_count,
                         eddy_tensor *const *outputs) {
    eddy_origin origin = s->call.origin;
    if (!eddy_caller_may_call(s->call.caller))
        return eddy_caller_refuse(s->call.caller, origin);
    if (!s->body)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a function is NULL");
    eddy_status status = check_list(s, carried, "carried");
    if (status == EDDY_OK)
        status = check_list(s, s->xs, "xs");
    if (status != EDDY_OK)
        return status;
    if (s->call.output_count < carried.count || s->call.output_count > INT32_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld outputs, and %lld are carried",
                         (long long)s->call.output_count, (long long)carried.count);
    if (s->call.output_count > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the outputs");
    return count_steps(s, step_count);
}

/* Room for all lists; false where there is none. */
static bool take_memory(scan *s, size_t *bytes) {
    size_t lists = (size_t)(s->call.carried_count + s->xs.count + s->call.output_count), kept;
    if (__builtin_mul_overflow((size_t)other_count(s), (size_t)s->step_count, &kept) ||
        __builtin_add_overflow(kept, lists + 1, &kept) ||
        __builtin_mul_overflow(kept, sizeof(eddy_tensor *), bytes))
        return false;
    s->given = eddy_memory_acquire_zeroed(*bytes, EDDY_MEMORY_PROGRAM);
    s->made = s->given + s->call.carried_count + s->xs.count;
    s->kept = s->made + s->call.output_count;
    return s->given != NULL;
}

eddy_status(eddy_scan)(eddy_block *body, void *context, eddy_list carried, eddy_list xs,
                       int64_t output_count, const eddy_scan_options *options,
                       eddy_tensor **outputs) {
    scan s = {.call = {.caller = eddy_caller_get(),
                       .origin = EDDY_ORIGIN("scan"),
                       .context = context,
                       .output_count = output_count,
                       .carried_count = carried.count},
              .body = body,
              .xs = xs,
              .is_reversed = EDDY_OPTION(options, is_reversed)};
    int64_t step_count = EDDY_HAS_OPTION(options, step_count) ? options->step_count : 0;
    size_t bytes;
    eddy_status status = check(&s, carried, step_count, outputs);
    if (status != EDDY_OK)
        return status;
    if (!take_memory(&s, &bytes))
        return eddy_fail(EDDY_OUT_OF_MEMORY, s.call.origin, "no memory for the steps");
    status = run(&s, carried, outputs);
    eddy_memory_release(s.given, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
