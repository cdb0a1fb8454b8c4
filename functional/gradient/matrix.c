/* Gradients of matrix products. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/gradient/helper.h>

/* Operands of rank 1 count as matrices, as in matmul. */
static eddy_tensor *as_row(eddy_tensor *a) {
    return a && eddy_rank_of(a) == 1 ? eddy_unsqueeze(a, 0) : a;
}

static eddy_tensor *as_column(eddy_tensor *b) {
    return b && eddy_rank_of(b) == 1 ? eddy_unsqueeze(b, 1) : b;
}

/* The rows of all leading dims as one matrix. */
static eddy_tensor *rows_of(eddy_tensor *tensor, const eddy_shape *shape, int64_t columns) {
    int64_t rows = 1;
    for (int32_t d = 0; d < shape->rank - 1; d++)
        rows *= shape->dims[d];
    return eddy_reshape(tensor, EDDY_SHAPE(rows, columns));
}

static bool is_one_matrix(const eddy_shape *shape) {
    for (int32_t d = 0; d < shape->rank - 2; d++)
        if (shape->dims[d] != 1)
            return false;
    return true;
}

/* d b = a' grad. If all batches have the same b, that is one product: the sum over batches is rounded once, and takes no memory. */
static eddy_tensor *gradient_of_right(const eddy_gradient_call *call, eddy_tensor *grad) {
    const eddy_shape *a = &call->input_specs[0].shape, *b = &call->input_specs[1].shape;
    if (a->rank > 2 && is_one_matrix(b)) {
        eddy_tensor *left = rows_of(call->inputs[0], a, a->dims[a->rank - 1]),
                    *right = rows_of(grad, a, b->rank == 1 ? 1 : b->dims[b->rank - 1]);
        return eddy_reshape(eddy_mm(eddy_t(left), right), *b);
    }
    eddy_tensor *result = eddy_matmul(eddy_transpose(as_row(call->inputs[0]), -1, -2), grad);
    return b->rank == 1 ? eddy_squeeze(result, EDDY_AXES(-1)) : result;
}

/* d a = grad b'. The engine sums over broadcast batches. */
eddy_status eddy_gradient_matmul(const eddy_gradient_call *call) {
    const eddy_spec *specs = call->input_specs;
    int32_t a_rank = specs[0].shape.rank, b_rank = specs[1].shape.rank;
    eddy_tensor *grad = call->grads[0];
    if (b_rank == 1)
        grad = eddy_unsqueeze(grad, -1);
    if (a_rank == 1)
        grad = eddy_unsqueeze(grad, -2);
    if (call->is_wanted[0]) {
        eddy_tensor *result = eddy_matmul(grad, eddy_transpose(as_column(call->inputs[1]), -1, -2));
        if (a_rank == 1 && result)
            result = eddy_squeeze(result, EDDY_AXES(-2));
        if (!result)
            return eddy_outcome_why(call->outcome);
        call->results[0] = result;
    }
    if (call->is_wanted[1]) {
        eddy_tensor *result = gradient_of_right(call, grad);
        if (!result)
            return eddy_outcome_why(call->outcome);
        call->results[1] = result;
    }
    return EDDY_OK;
}

eddy_status eddy_gradient_linear(const eddy_gradient_call *call) {
    const eddy_shape *x = &call->input_specs[0].shape, *weight = &call->input_specs[1].shape;
    eddy_tensor *grad = call->grads[0];
    if (call->is_wanted[0])
        call->results[0] = eddy_matmul(grad, call->inputs[1]);
    eddy_tensor *rows =
        call->is_wanted[1] || call->is_wanted[2] ? rows_of(grad, x, weight->dims[0]) : NULL;
    if (call->is_wanted[1])
        call->results[1] = eddy_mm(eddy_t(rows), rows_of(call->inputs[0], x, weight->dims[1]));
    if (call->is_wanted[2])
        call->results[2] = eddy_sum(rows, EDDY_AXES(0), NULL);
    for (int i = 0; i < 3; i++)
        if (call->is_wanted[i] && !call->results[i])
            return eddy_outcome_why(call->outcome);
    return EDDY_OK;
}
