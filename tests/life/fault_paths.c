/* Recorded functions that go on as the values say that they have computed. */
#include "fault_programs.h"

#include <eddy/eddy.h>

typedef struct stepping {
    eddy_tensor *w, *seen;
} stepping;

/* A step of training that is left out where the loss is large; draws, and counts in place before that is known. */
static eddy_status step(void *context, eddy_recorded_call *call) {
    stepping *s = context;
    eddy_grads_zero(EDDY_LIST(s->w));
    eddy_status status = eddy_add_inplace(s->seen, call->inputs.items[0]);
    eddy_tensor *y = eddy_dropout(eddy_mul(call->inputs.items[0], s->w), EDDY_S(0.25), NULL);
    eddy_tensor *loss = eddy_mean(eddy_square(y), EDDY_ALL_AXES, NULL);
    if (status == EDDY_OK)
        status = eddy_backward(loss);
    int64_t is_large = 0;
    if (status == EDDY_OK)
        status = eddy_read_i64(eddy_gt_s(eddy_detach(loss), EDDY_S(50)), &is_large, NULL);
    eddy_no_grad_begin();
    if (status == EDDY_OK && !is_large)
        status = eddy_sub_into(s->w, eddy_mul_s(eddy_grad_of(s->w), EDDY_S(0.125)), s->w);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    return status == EDDY_OK && !call->outputs[0] ? EDDY_OUT_OF_MEMORY : status;
}

static eddy_status run_steps(double *results) {
    static const double values[] = {1, 100, 1, 100, 2, 200, 3, 100};
    stepping s = {eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                  eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL)};
    eddy_status status = s.seen ? eddy_requires_grad_set(s.w, true) : EDDY_OUT_OF_MEMORY;
    eddy_recorded *recorded = eddy_recorded_create(step, &s, 1, NULL);
    eddy_tensor *loss = NULL;
    for (int i = 0; i < 8 && status == EDDY_OK; i++) {
        eddy_tensor *x = eddy_full(EDDY_SHAPE(3), EDDY_S(values[i]), EDDY_F32, NULL);
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &loss);
    }
    if (status == EDDY_OK)
        status = eddy_read_f64(loss, &results[0], NULL);
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(eddy_add(eddy_detach(s.w), s.seen), EDDY_ALL_AXES, NULL),
                               &results[1], NULL);
    eddy_recorded_release(&recorded);
    return status;
}

eddy_status run_program_paths(double *results) {
    eddy_scope *scope = eddy_scope_begin();
    if (!scope)
        return EDDY_OUT_OF_MEMORY;
    eddy_seed(3);
    eddy_status status = run_steps(results), synced = eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    return status == EDDY_OK ? synced : status;
}
