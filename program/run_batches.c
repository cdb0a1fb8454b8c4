/* eddy_program_run_batches: runs over parts of larger inputs, whose outputs become one. */
#include <base/memory.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <interpreter/handle/scope.h>
#include <program/run.h>

typedef struct batches {
    eddy_program *program;
    eddy_origin origin;
    eddy_list inputs;
    int64_t count;        /* of runs; 0: not known yet */
    eddy_tensor **given;  /* of a run */
    eddy_tensor **made;   /* per output: one of each run in a row */
    eddy_tensor **merged; /* per output */
} batches;

static const eddy_program_binding *input_at(const batches *b, int64_t i) {
    return eddy_program_binding_of(b->program, EDDY_ROLE_INPUT, i);
}

/* How many parts of what was recorded the input has along axis 0; 0: it is given to each run as it is; -1: it has no such parts. */
static int64_t parts_of(const batches *b, int64_t i) {
    const eddy_program_binding *binding = input_at(b, i);
    const eddy_tensor *input = b->inputs.items[i];
    int64_t recorded = binding->layout.rank > 0 ? binding->layout.dims[0] : 0;
    if (input->rank != binding->layout.rank || recorded == 0 || input->axes[0].dim == recorded)
        return 0;
    int64_t rows = input->axes[0].dim;
    return rows > 0 && rows % recorded == 0 ? rows / recorded : -1;
}

static eddy_status count_batches(batches *b) {
    for (int64_t i = 0; i < b->inputs.count; i++) {
        int64_t parts = parts_of(b, i);
        const eddy_program_binding *binding = input_at(b, i);
        if (parts == 0)
            continue;
        if (parts < 0)
            return eddy_fail(EDDY_SHAPE_MISMATCH, b->origin,
                             "input %s has %lld rows, which are no parts of %lld", binding->name,
                             (long long)b->inputs.items[i]->axes[0].dim,
                             (long long)binding->layout.dims[0]);
        if (b->count != 0 && b->count != parts)
            return eddy_fail(EDDY_SHAPE_MISMATCH, b->origin,
                             "input %s has %lld parts, and another one has %lld", binding->name,
                             (long long)parts, (long long)b->count);
        b->count = parts;
    }
    b->count = b->count == 0 ? 1 : b->count;
    for (int64_t i = 0; i < b->inputs.count && b->count > 1; i++)
        if (input_at(b, i)->is_donated)
            return eddy_fail(EDDY_INVALID_ARGUMENT, b->origin,
                             "input %s is donated, and can be given to one run alone, not to %lld",
                             input_at(b, i)->name, (long long)b->count);
    return EDDY_OK;
}

static eddy_status check(batches *b, eddy_tensor *const *outputs) {
    eddy_status status = eddy_program_check(b->program, b->origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(b->inputs.items, b->inputs.count, "inputs", b->origin);
    if (status != EDDY_OK)
        return status;
    if (b->inputs.count != b->program->input_count)
        return eddy_fail(EDDY_INVALID_ARGUMENT, b->origin,
                         "%lld inputs are given, and there are %u", (long long)b->inputs.count,
                         b->program->input_count);
    if (b->program->output_count > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, b->origin, "there is no room for the outputs");
    for (int64_t i = 0; i < b->inputs.count && status == EDDY_OK; i++)
        status = eddy_tensor_check_item_shape(b->inputs.items[i], "inputs", i, b->origin);
    return status == EDDY_OK ? count_batches(b) : status;
}

static eddy_status run_one(const batches *b, int64_t batch, const eddy_outcome *outcome) {
    eddy_tensor **outputs = b->merged; /* not merged yet: room for those of one run */
    for (int64_t i = 0; i < b->inputs.count; i++) {
        int64_t rows = parts_of(b, i) > 0 ? input_at(b, i)->layout.dims[0] : 0;
        b->given[i] =
            rows > 0 ? eddy_narrow(b->inputs.items[i], 0, batch * rows, rows) : b->inputs.items[i];
        if (!b->given[i])
            return eddy_outcome_why(outcome);
    }
    eddy_status status = eddy_program_run_with(b->program, (eddy_list){b->given, b->inputs.count},
                                               NULL, outputs, NULL, NULL, b->origin);
    for (uint32_t i = 0; i < b->program->output_count && status == EDDY_OK; i++)
        b->made[i * b->count + batch] = outputs[i];
    return status;
}

static eddy_status merge(const batches *b, const eddy_outcome *outcome) {
    for (uint32_t i = 0; i < b->program->output_count; i++) {
        eddy_list parts = {b->made + i * b->count, b->count};
        eddy_status status = eddy_tensor_await_shape(parts.items[0], b->origin);
        if (status != EDDY_OK)
            return status;
        /* Also of one part, so that the rank does not depend on how many there are. */
        bool is_number = parts.items[0]->rank == 0;
        b->merged[i] = is_number       ? eddy_stack(parts, 0)
                       : b->count == 1 ? parts.items[0]
                                       : eddy_cat(parts, 0);
        if (!b->merged[i])
            return eddy_outcome_why(outcome);
    }
    return EDDY_OK;
}

/* What is merged outlives the scope. */
static eddy_status run_in_scope(const batches *b, eddy_tensor **outputs) {
    eddy_caller *caller = eddy_caller_get();
    uint32_t count = b->program->output_count;
    eddy_scope *scope;
    eddy_outcome outcome;
    eddy_status status = eddy_scope_open(caller, b->origin, &scope);
    if (status != EDDY_OK)
        return status;
    eddy_outcome_begin(&outcome);
    for (int64_t batch = 0; batch < b->count && status == EDDY_OK; batch++)
        status = run_one(b, batch, &outcome);
    if (status == EDDY_OK)
        status = merge(b, &outcome);
    eddy_outcome_end(&outcome);
    for (uint32_t i = 0; i < count && status == EDDY_OK; i++)
        eddy_tensor_retain(b->merged[i]);
    eddy_scope_end(scope);
    if (status != EDDY_OK)
        return status;
    if (!eddy_scope_reserve(caller, count)) {
        for (uint32_t i = 0; i < count; i++)
            eddy_tensor_drop(b->merged[i]);
        return eddy_fail(EDDY_OUT_OF_MEMORY, b->origin, "no memory for the outputs");
    }
    for (uint32_t i = 0; i < count; i++) {
        eddy_scope_own(caller, b->merged[i]);
        outputs[i] = b->merged[i];
    }
    return EDDY_OK;
}

eddy_status(eddy_program_run_batches)(eddy_program *program, eddy_list inputs,
                                      eddy_tensor **outputs) {
    batches b = {
        .program = program, .origin = EDDY_ORIGIN("program_run_batches"), .inputs = inputs};
    size_t lists, bytes;
    eddy_status status = check(&b, outputs);
    if (status != EDDY_OK)
        return status;
    if (__builtin_mul_overflow((size_t)program->output_count, (size_t)b.count + 1, &lists) ||
        __builtin_mul_overflow(lists + (size_t)inputs.count, sizeof(eddy_tensor *), &bytes))
        return eddy_fail(EDDY_OUT_OF_MEMORY, b.origin, "no memory for the runs");
    b.given = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!b.given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, b.origin, "no memory for the runs");
    b.merged = b.given + inputs.count;
    b.made = b.merged + program->output_count;
    status = run_in_scope(&b, outputs);
    eddy_memory_release(b.given, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}
