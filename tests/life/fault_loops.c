/* Branches, loops and scans. */
#include "fault_parts.h"
#include "fault_programs.h"

#include <eddy/eddy.h>

static eddy_status twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_mul_s(inputs.items[0], EDDY_S(2));
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status more(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *state = context;
    eddy_status status = eddy_add_inplace(state, inputs.items[0]);
    outputs[0] = eddy_add(eddy_dropout(inputs.items[0], EDDY_S(0.5), NULL), state);
    return status == EDDY_OK && !outputs[0] ? EDDY_OUT_OF_MEMORY : status;
}

static eddy_status step_of_loop(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *predicate = eddy_gt_s(eddy_mean(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(8));
    return predicate ? eddy_cond(predicate, more, twice, context, inputs, 1, NULL, outputs)
                     : EDDY_OUT_OF_MEMORY;
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(eddy_mean(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(50));
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status run_loop(eddy_tensor *x, bool records_only, double *result) {
    eddy_tensor *state = eddy_zeros_like(x, NULL), *y = NULL;
    eddy_status status = eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only));
    if (status != EDDY_OK)
        return status;
    status = eddy_while(is_small, step_of_loop, state, EDDY_LIST(x), NULL, &y);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                      {"other", eddy_exp(y), EDDY_ROLE_OUTPUT}));
    if (status == EDDY_OK)
        status = program ? eddy_program_run_named(program, EDDY_FEEDS({"x", x}),
                                                  EDDY_FETCHES({"y", &y}), NULL)
                         : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(eddy_add(state, y), EDDY_ALL_AXES, NULL), result, NULL);
    eddy_program_release(&program);
    return status;
}

static eddy_status times(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_dropout(eddy_tanh(eddy_mul(inputs.items[0], context)), EDDY_S(0.5), NULL);
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* Ends the recording of y = f(x, w) and runs the program, once with its backward pass in it and once as one op; `status` is how the calls went. */
static eddy_status finish(eddy_status status, eddy_tensor *x, eddy_tensor *w, eddy_tensor *y,
                          bool is_node, double *result) {
    eddy_tensor *last = NULL;
    if (status == EDDY_OK && !is_node)
        status = fault_go_back(y, w, result);
    eddy_bindings bindings = {
        (eddy_binding[]){{"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}}, 2};
    eddy_program *program =
        is_node ? eddy_record_end_with_grad(&bindings) : eddy_record_end(&bindings);
    if (status == EDDY_OK)
        status = program ? eddy_program_run(program, EDDY_LIST(x), &last) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK && is_node)
        status = fault_penalize(last, w);
    if (status == EDDY_OK && is_node)
        status = fault_go_back(last, w, result);
    eddy_program_release(&program);
    return status;
}

/* A branch that gradients go back through. */
static eddy_status run_branch(eddy_tensor *x, bool is_node, double *result) {
    eddy_tensor *w = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.5), EDDY_F32, NULL), *y = NULL;
    eddy_status status = eddy_requires_grad_set(w, true);
    if (status == EDDY_OK)
        status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *predicate = eddy_gt_s(eddy_mean(x, EDDY_ALL_AXES, NULL), EDDY_S(0.5));
    status = eddy_cond(predicate, times, twice, w, EDDY_LIST(x), 1, NULL, &y);
    return finish(status, x, w, y, is_node, result);
}

static eddy_status count_down(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *w = context, *h = eddy_mul(inputs.items[1], w);
    eddy_tensor *predicate = eddy_gt_s(eddy_mean(h, EDDY_ALL_AXES, NULL), EDDY_S(0.25));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return outputs[0] && predicate
               ? eddy_cond(predicate, times, twice, w, EDDY_LIST(h), 1, NULL, &outputs[1])
               : EDDY_OUT_OF_MEMORY;
}

static eddy_status is_positive(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_gt_s(inputs.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* What the outer step has, and its inner loop reads. */
typedef struct outer_step {
    eddy_tensor *h, *predicate;
} outer_step;

static eddy_status read_outer(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const outer_step *outer = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return outputs[0] ? eddy_cond(outer->predicate, times, twice, outer->h,
                                  EDDY_LIST(inputs.items[1]), 1, NULL, &outputs[1])
                      : EDDY_OUT_OF_MEMORY;
}

static eddy_status count_down_twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *count = eddy_full((eddy_shape){0}, EDDY_S(2), EDDY_I64, NULL), *made[2] = {0};
    outer_step outer = {.h = inputs.items[1]};
    eddy_tensor *z = eddy_mul(outer.h, context);
    outer.predicate = eddy_gt_s(eddy_mean(outer.h, EDDY_ALL_AXES, NULL), EDDY_S(0.25));
    if (!count || !z || !outer.predicate)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_while(is_positive, read_outer, &outer, EDDY_LIST(count, z),
                                    EDDY_OPTIONS(while, .most_steps = 2), made);
    if (status != EDDY_OK)
        return status;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_tanh(made[1]);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* A loop that gradients go back through. */
static eddy_status run_taped_loop(eddy_tensor *x, eddy_block *body, bool is_node, double *result) {
    eddy_tensor *w = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.5), EDDY_F32, NULL), *y[2] = {0};
    eddy_tensor *count = eddy_full((eddy_shape){0}, EDDY_S(3), EDDY_I64, NULL);
    eddy_status status = eddy_requires_grad_set(w, true);
    if (status == EDDY_OK)
        status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    status = eddy_while(is_positive, body, w, EDDY_LIST(count, x),
                        EDDY_OPTIONS(while, .most_steps = 4), y);
    return finish(status, x, w, y[1], is_node, result);
}

static eddy_status bend(eddy_forward_call *call) {
    call->outputs[0] = eddy_tanh(call->inputs[0]);
    return call->outputs[0] ? eddy_forward_save(call, EDDY_LIST(call->outputs[0]))
                            : EDDY_OUT_OF_MEMORY;
}

static eddy_status bend_back(eddy_backward_call *call) {
    eddy_tensor *slope = eddy_add_s(eddy_neg(eddy_square(call->saved[0])), EDDY_S(1));
    call->results[0] = eddy_mul(call->grads[0], slope);
    return call->results[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static const eddy_function bending = {.size = sizeof(eddy_function),
                                      .name = "user.bend",
                                      .forward = bend,
                                      .backward = bend_back,
                                      .output_count = 1,
                                      .is_pure = true};

static eddy_status rolled_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_add(eddy_mul(inputs.items[0], context), inputs.items[1]);
    return outputs[0] ? eddy_function_call(&bending, NULL, EDDY_LIST(outputs[0]), &outputs[1])
                      : EDDY_OUT_OF_MEMORY;
}

/* A rolled scan over the rows of x. */
static eddy_status run_scan(eddy_tensor *x, bool is_node, double *result) {
    eddy_tensor *w = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.5), EDDY_F32, NULL), *y[2] = {0};
    eddy_tensor *h = eddy_zeros(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL);
    eddy_status status = eddy_requires_grad_set(w, true);
    if (status == EDDY_OK)
        status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    status = eddy_scan(rolled_step, w, EDDY_LIST(h), EDDY_LIST(x), 2,
                       EDDY_OPTIONS(scan, .is_rolled = true, .is_reversed = is_node), y);
    return finish(status, x, w, y[1], is_node, result);
}

static eddy_status run_loop_that_runs(eddy_tensor *x, double *result) {
    return run_loop(x, false, result);
}

static eddy_status run_loop_that_is_recorded(eddy_tensor *x, double *result) {
    return run_loop(x, true, result);
}

static eddy_status run_branch_of_calls(eddy_tensor *x, double *result) {
    return run_branch(x, false, result);
}

static eddy_status run_branch_as_node(eddy_tensor *x, double *result) {
    return run_branch(x, true, result);
}

static eddy_status run_loop_of_calls(eddy_tensor *x, double *result) {
    return run_taped_loop(x, count_down, false, result);
}

static eddy_status run_loop_as_node(eddy_tensor *x, double *result) {
    return run_taped_loop(x, count_down, true, result);
}

static eddy_status run_loop_in_loop(eddy_tensor *x, double *result) {
    return run_taped_loop(x, count_down_twice, false, result);
}

static eddy_status run_scan_of_calls(eddy_tensor *x, double *result) {
    return run_scan(x, false, result);
}

static eddy_status run_scan_as_node(eddy_tensor *x, double *result) {
    return run_scan(x, true, result);
}

eddy_status run_program_branches(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {
        run_branch_of_calls, run_branch_as_node, run_loop_that_runs, run_loop_that_is_recorded};
    return fault_run_parts(parts, results);
}

eddy_status run_program_loops(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_loop_of_calls, run_loop_as_node,
                                                        run_loop_in_loop};
    return fault_run_parts(parts, results);
}

eddy_status run_program_scans(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_scan_of_calls, run_scan_as_node};
    return fault_run_parts(parts, results);
}
