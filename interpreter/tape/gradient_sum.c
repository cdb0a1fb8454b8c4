#include <interpreter/tape/gradient_sum.h>

#include <base/status.h>
#include <interpreter/handle/tensor.h>

/* Replaces the sum by a tensor made here. */
static void replace(eddy_gradient_sum *sum, eddy_tensor *made) {
    eddy_tensor_retain(made);
    if (sum->tensor)
        eddy_tensor_drop(sum->tensor);
    sum->tensor = made;
    sum->is_own = true;
}

eddy_status eddy_gradient_sum_add(eddy_gradient_sum *sum, eddy_tensor *gradient, bool creates) {
    if (!sum->tensor) {
        eddy_tensor_retain(gradient);
        sum->tensor = gradient;
        return EDDY_OK;
    }
    eddy_status status = eddy_gradient_sum_complete(sum);
    if (status != EDDY_OK)
        return status;
    if (sum->is_own && !creates)
        return eddy_gradient_ops_table.add_to(sum->tensor, gradient);
    eddy_tensor *made;
    status = eddy_gradient_ops_table.add(sum->tensor, gradient, &made);
    if (status == EDDY_OK)
        replace(sum, made);
    return status;
}

/* A tensor for the whole, with nothing written. */
static eddy_status begin(eddy_gradient_sum *sum, const eddy_spec *whole,
                         const eddy_view_attributes *part, eddy_device device) {
    eddy_tensor *made;
    eddy_status status = eddy_gradient_ops_table.room(whole, part, device, &made);
    if (status != EDDY_OK)
        return status;
    sum->is_partial = true;
    sum->axis = part->axes[0];
    sum->begin = sum->end = part->start;
    replace(sum, made);
    return EDDY_OK;
}

/* Whether the part is adjacent to the written range. */
static bool is_next(const eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    return sum->is_partial && part->step == 1 && part->axes[0] == sum->axis &&
           (part->start == sum->end || part->start + part->length == sum->begin);
}

static bool is_within(const eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    return part->step == 1 && part->axes[0] == sum->axis && part->start >= sum->begin &&
           part->start + part->length <= sum->end;
}

eddy_status eddy_gradient_sum_add_part(eddy_gradient_sum *sum, const eddy_spec *whole,
                                       const eddy_view_attributes *part, eddy_device device,
                                       eddy_tensor *gradient) {
    eddy_status status = sum->tensor ? EDDY_OK : begin(sum, whole, part, device);
    if (status == EDDY_OK && is_next(sum, part)) {
        int64_t end = part->start + part->length;
        sum->begin = part->start < sum->begin ? part->start : sum->begin;
        sum->end = end > sum->end ? end : sum->end;
        return eddy_gradient_ops_table.put_part(sum->tensor, part, gradient);
    }
    if (status == EDDY_OK && !is_within(sum, part))
        status = eddy_gradient_sum_complete(sum);
    if (status == EDDY_OK && !sum->is_own) {
        eddy_tensor *made;
        status = eddy_gradient_ops_table.clone(sum->tensor, &made);
        if (status == EDDY_OK)
            replace(sum, made);
    }
    return status == EDDY_OK ? eddy_gradient_ops_table.add_part(sum->tensor, part, gradient)
                             : status;
}

eddy_status eddy_gradient_sum_complete(eddy_gradient_sum *sum) {
    if (!sum->is_partial)
        return EDDY_OK;
    sum->is_partial = false;
    eddy_status status = eddy_gradient_ops_table.clear(sum->tensor, sum->axis, 0, sum->begin);
    if (status == EDDY_OK)
        status = eddy_gradient_ops_table.clear(sum->tensor, sum->axis, sum->end,
                                               sum->tensor->axes[sum->axis].dim);
    return status;
}

void eddy_gradient_sum_drop(eddy_gradient_sum *sum) {
    if (sum->tensor)
        eddy_tensor_drop(sum->tensor);
    *sum = (eddy_gradient_sum){0};
}
