/* Recorded functions of two sizes that change independently. */
#include "fault_programs.h"

#include <eddy/eddy.h>

#define COLUMNS 2

/* What a batch of sequences gives: its program, and how gradients go back through that, follow from four others. */
static eddy_status scores(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    int64_t batch = eddy_dim_of(x, 0), length = eddy_dim_of(x, 1);
    eddy_tensor *h =
        eddy_linear(eddy_reshape(x, EDDY_SHAPE(batch * length, COLUMNS)), context, EDDY_NONE);
    h = eddy_reshape(eddy_dropout(h, EDDY_S(0.25), NULL), EDDY_SHAPE(batch, length, COLUMNS));
    call->outputs[0] = eddy_matmul(h, eddy_transpose(h, 1, 2));
    return call->outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status train(eddy_tensor *y, eddy_tensor *w) {
    eddy_status status = eddy_grads_zero(EDDY_LIST(w));
    if (status == EDDY_OK)
        status = eddy_backward(eddy_mean(eddy_square(y), EDDY_ALL_AXES, NULL));
    eddy_no_grad_begin();
    if (status == EDDY_OK)
        status = eddy_sub_into(w, eddy_mul_s(eddy_grad_of(w), EDDY_S(0.015625)), w);
    eddy_no_grad_end();
    return status;
}

static eddy_status run_pairs(double *results) {
    static const int64_t pairs[][2] = {{2, 3}, {2, 3}, {4, 3}, {4, 3}, {2, 5},
                                       {2, 5}, {4, 5}, {4, 5}, {3, 4}, {2, 4}};
    eddy_tensor *w = eddy_full(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_S(0.5), EDDY_F32, NULL),
                *y = NULL;
    eddy_recorded *recorded =
        eddy_recorded_create(scores, w, 1, EDDY_OPTIONS(recorded, .foretells_shapes = true));
    eddy_status status = recorded ? eddy_requires_grad_set(w, true) : EDDY_OUT_OF_MEMORY;
    for (int i = 0; i < 10 && status == EDDY_OK; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(pairs[i][0], pairs[i][1], COLUMNS), EDDY_F32, NULL);
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y);
        if (status == EDDY_OK)
            status = train(y, w);
    }
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(eddy_detach(y), EDDY_ALL_AXES, NULL), &results[0], NULL);
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(eddy_detach(w), EDDY_ALL_AXES, NULL), &results[1], NULL);
    eddy_recorded_release(&recorded);
    return status;
}

eddy_status run_program_sizes(double *results) {
    eddy_scope *scope = eddy_scope_begin();
    if (!scope)
        return EDDY_OUT_OF_MEMORY;
    eddy_seed(3);
    eddy_status status = run_pairs(results), synced = eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    return status == EDDY_OK ? synced : status;
}
