/* Loops as calls that run. */
#include <program/loop.h>

#include <base/memory.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <interpreter/handle/scope.h>
#include <string.h>

static int64_t row_count(const eddy_loop *l) {
    return l->counts.outputs - l->counts.carried;
}

/* ---- steps ---- */

static eddy_status run_test(const eddy_loop *l, bool *holds) {
    eddy_list carried = {l->carried, l->counts.carried};
    eddy_tensor *predicate;
    eddy_scope *scope;
    eddy_status status = eddy_block_begin(&l->call, l->test, carried, &predicate, 1, &scope);
    if (status != EDDY_OK)
        return status;
    status = eddy_block_check_predicate(&l->call, predicate);
    if (status == EDDY_OK)
        status = eddy_block_read(&l->call, predicate, holds);
    eddy_block_end(scope);
    return status;
}

/* References, as of what is carried: no scope owns them. */
static eddy_status take_slices(const eddy_loop *l, int64_t step) {
    int64_t at = l->counts.is_reversed ? l->counts.rows - 1 - step : step;
    eddy_scope *scope = l->call.caller->scope;
    eddy_outcome outcome;
    l->call.caller->scope = NULL;
    eddy_outcome_begin(&outcome);
    bool is_sliced = true;
    for (int64_t i = 0; i < l->xs.count && is_sliced; i++) {
        l->inputs[l->counts.carried + i] = eddy_select(l->xs.items[i], 0, at);
        is_sliced = l->inputs[l->counts.carried + i] != NULL;
    }
    eddy_outcome_end(&outcome);
    l->call.caller->scope = scope;
    return is_sliced ? EDDY_OK : eddy_outcome_why(&outcome);
}

static eddy_status keep_rows(eddy_loop *l) {
    uint32_t index, count = (uint32_t)row_count(l);
    if (count == 0)
        return EDDY_OK;
    if (!eddy_code_array_add(&l->kept, sizeof(eddy_tensor *), count, &index)) {
        eddy_block_drop(l->next, l->counts.outputs);
        return eddy_fail(EDDY_OUT_OF_MEMORY, l->call.origin, "no memory for the steps");
    }
    memcpy((eddy_tensor **)l->kept.items + index, l->next + l->counts.carried,
           count * sizeof(eddy_tensor *));
    return EDDY_OK;
}

static eddy_status run_step(eddy_loop *l, int64_t step) {
    eddy_list inputs = {l->inputs, eddy_loop_input_count(&l->counts)};
    memcpy(l->inputs, l->carried, (size_t)l->counts.carried * sizeof(eddy_tensor *));
    eddy_status status = take_slices(l, step);
    if (status == EDDY_OK)
        status = eddy_block_run(&l->call, l->body, inputs, l->next);
    if (status == EDDY_OK)
        status = keep_rows(l);
    if (status == EDDY_OK) {
        eddy_block_drop(l->carried, l->counts.carried);
        memcpy(l->carried, l->next, (size_t)l->counts.carried * sizeof(eddy_tensor *));
    }
    eddy_block_drop(l->inputs + l->counts.carried, l->xs.count);
    return status;
}

static eddy_status run_steps(eddy_loop *l, int64_t *steps) {
    for (int64_t step = 0;; step++) {
        bool holds = step < l->counts.rows;
        eddy_status status = l->test ? run_test(l, &holds) : EDDY_OK;
        *steps = step;
        if (status != EDDY_OK || !holds)
            return status;
        if (l->test && l->most_steps > 0 && step == l->most_steps)
            return eddy_fail(EDDY_INVALID_ARGUMENT, l->call.origin, EDDY_CONTROL_MOST_STEPS,
                             (long long)step);
        status = run_step(l, step);
        if (status != EDDY_OK)
            return status;
    }
}

/* ---- lists ---- */

static eddy_tensor *make_zeros(const eddy_loop *l, int64_t rows, const eddy_shape *row,
                               eddy_dtype dtype) {
    eddy_shape shape = {.rank = row->rank + 1, .dims = {rows}};
    memcpy(shape.dims + 1, row->dims, (size_t)row->rank * sizeof(row->dims[0]));
    return eddy_zeros(shape, dtype, EDDY_OPTIONS(zeros, .device = l->call.device));
}

/* The rows of output i in the order of the slices, and zeros for steps that there were not. */
static eddy_tensor *stack_rows(const eddy_loop *l, int64_t i, int64_t steps, eddy_tensor **rows) {
    eddy_tensor **kept = l->kept.items;
    int64_t outputs = row_count(l);
    for (int64_t step = 0; step < steps; step++)
        rows[l->counts.is_reversed ? steps - 1 - step : step] = kept[step * outputs + i];
    eddy_tensor *stacked = eddy_stack((eddy_list){rows, steps}, 0);
    if (!stacked || steps == l->counts.rows)
        return stacked;
    eddy_shape row;
    eddy_tensor_shape(rows[0], &row);
    eddy_tensor *rest = make_zeros(l, l->counts.rows - steps, &row, (eddy_dtype)rows[0]->dtype);
    return eddy_cat(EDDY_LIST(stacked, rest), 0);
}

static eddy_status find_rows(eddy_loop *l, eddy_spec *specs) {
    if (!l->rows)
        return eddy_loop_find_rows(l, specs);
    memcpy(specs, l->rows, (size_t)row_count(l) * sizeof(*specs));
    return EDDY_OK;
}

static eddy_status stack_all(eddy_loop *l, int64_t steps, eddy_tensor **rows, eddy_spec *specs) {
    eddy_outcome outcome;
    eddy_scope *scope;
    eddy_status status = steps == 0 ? find_rows(l, specs) : EDDY_OK;
    if (status == EDDY_OK)
        status = eddy_scope_open(l->call.caller, l->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    eddy_outcome_begin(&outcome);
    for (int64_t i = 0; i < row_count(l) && status == EDDY_OK; i++) {
        eddy_tensor *all = steps > 0
                               ? stack_rows(l, i, steps, rows)
                               : make_zeros(l, l->counts.rows, &specs[i].shape, specs[i].dtype);
        status = all ? EDDY_OK : eddy_outcome_why(&outcome);
        if (all)
            eddy_tensor_retain(all);
        l->carried[l->counts.carried + i] = all;
    }
    eddy_outcome_end(&outcome);
    eddy_scope_end(scope);
    return status;
}

static eddy_status make_lists(eddy_loop *l, int64_t steps) {
    size_t rows = (size_t)steps * sizeof(eddy_tensor *),
           bytes = rows + (size_t)row_count(l) * sizeof(eddy_spec);
    if (row_count(l) == 0)
        return EDDY_OK;
    char *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, l->call.origin, "no memory for the steps");
    eddy_status status =
        stack_all(l, steps, (eddy_tensor **)(void *)memory, (eddy_spec *)(void *)(memory + rows));
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_loop_run(void *context) {
    eddy_loop *l = context;
    int64_t steps;
    eddy_status status = run_steps(l, &steps);
    if (status == EDDY_OK)
        status = make_lists(l, steps);
    eddy_block_drop(l->kept.items, l->kept.count);
    eddy_code_array_fini(&l->kept, sizeof(eddy_tensor *));
    return status;
}

/* ---- all of it ---- */

eddy_status eddy_loop_check_list(const eddy_loop *l, eddy_list list, const char *name) {
    eddy_status status = eddy_program_check_list(list.items, list.count, name, l->call.origin);
    for (int64_t i = 0; i < list.count && status == EDDY_OK; i++)
        status = eddy_tensor_check_item_shape(list.items[i], name, i, l->call.origin);
    return status;
}

static eddy_status run(eddy_loop *l, eddy_list given, bool is_recorded, eddy_tensor **outputs) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < given.count && status == EDDY_OK; i++)
        status = eddy_block_copy(&l->call, given.items[i], &l->carried[i]);
    if (status == EDDY_OK)
        status = is_recorded ? eddy_loop_record(l) : eddy_loop_run(l);
    eddy_block_drop(l->first, l->counts.outputs);
    if (status == EDDY_OK)
        return eddy_block_hand_out(&l->call, l->carried, outputs);
    eddy_block_drop(l->carried, l->counts.outputs);
    return status;
}

/* All that a recorded loop works on is on one device. */
static eddy_device find_device(const eddy_loop *l, eddy_list carried) {
    const eddy_list inputs = carried.count > 0 ? carried : l->xs;
    return inputs.count > 0 ? eddy_tensor_device(inputs.items[0]) : (eddy_device){0};
}

eddy_status eddy_loop_call(eddy_loop *l, eddy_list carried, bool is_recorded,
                           eddy_tensor **outputs) {
    size_t inputs = (size_t)eddy_loop_input_count(&l->counts),
           bytes = (3 * (size_t)l->counts.outputs + inputs) * sizeof(eddy_tensor *);
    l->carried = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!l->carried)
        return eddy_fail(EDDY_OUT_OF_MEMORY, l->call.origin, "no memory for the outputs");
    l->call.device = find_device(l, carried);
    l->first = l->carried + l->counts.outputs;
    l->next = l->first + l->counts.outputs;
    l->inputs = l->next + l->counts.outputs;
    eddy_status status = run(l, carried, is_recorded, outputs);
    eddy_memory_release(l->carried, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}
