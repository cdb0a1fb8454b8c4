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
    sum->range_count = 0;
    replace(sum, made);
    return EDDY_OK;
}

/* The first range that ends at the part's start or later; range_count if none does. */
static int32_t range_at(const eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    int32_t i = 0;
    while (i < sum->range_count && sum->ranges[i].end < part->start)
        i++;
    return i;
}

/* Adds the part to the written ranges: false where one of them has elements of it, or where there is no room for one more range. */
static bool add_range(eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    int64_t begin = part->start, end = part->start + part->length;
    int32_t at = range_at(sum, part), count = sum->range_count;
    eddy_gradient_range *ranges = sum->ranges;
    bool touches_left = at < count && ranges[at].end == begin;
    int32_t right = at + touches_left;
    if (right < count && ranges[right].begin < end)
        return false;
    bool touches_right = right < count && ranges[right].begin == end;
    if (touches_left && touches_right) {
        ranges[at].end = ranges[right].end;
        sum->range_count--;
        for (int32_t i = right; i < sum->range_count; i++)
            ranges[i] = ranges[i + 1];
    } else if (touches_left) {
        ranges[at].end = end;
    } else if (touches_right) {
        ranges[right].begin = begin;
    } else {
        if (count == EDDY_GRADIENT_RANGES)
            return false;
        for (int32_t i = sum->range_count++; i > at; i--)
            ranges[i] = ranges[i - 1];
        ranges[at] = (eddy_gradient_range){begin, end};
    }
    return true;
}

static bool is_along(const eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    return sum->is_partial && part->step == 1 && part->axes[0] == sum->axis;
}

/* Whether all of the part has been written. */
static bool is_within(const eddy_gradient_sum *sum, const eddy_view_attributes *part) {
    if (!is_along(sum, part))
        return false;
    for (int32_t i = 0; i < sum->range_count; i++)
        if (part->start >= sum->ranges[i].begin && part->start + part->length <= sum->ranges[i].end)
            return true;
    return false;
}

eddy_status eddy_gradient_sum_add_part(eddy_gradient_sum *sum, const eddy_spec *whole,
                                       const eddy_view_attributes *part, eddy_device device,
                                       eddy_tensor *gradient) {
    eddy_status status = sum->tensor ? EDDY_OK : begin(sum, whole, part, device);
    if (status != EDDY_OK || part->length == 0)
        return status;
    if (is_along(sum, part) && add_range(sum, part))
        return eddy_gradient_ops_table.put_part(sum->tensor, part, gradient);
    if (!is_within(sum, part))
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
    eddy_status status = EDDY_OK;
    int64_t written = 0;
    for (int32_t i = 0; i < sum->range_count && status == EDDY_OK; i++) {
        status =
            eddy_gradient_ops_table.clear(sum->tensor, sum->axis, written, sum->ranges[i].begin);
        written = sum->ranges[i].end;
    }
    return status == EDDY_OK ? eddy_gradient_ops_table.clear(sum->tensor, sum->axis, written,
                                                             sum->tensor->axes[sum->axis].dim)
                             : status;
}

void eddy_gradient_sum_drop(eddy_gradient_sum *sum) {
    if (sum->tensor)
        eddy_tensor_drop(sum->tensor);
    *sum = (eddy_gradient_sum){0};
}
