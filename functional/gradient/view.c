/* Gradients of views: to the elements that the view shows, zeros to the others. */
#include <eddy/eddy.h>
#include <functional/gradient/helper.h>
#include <interpreter/runtime.h>

static eddy_status give(const eddy_gradient_call *call, eddy_tensor *result) {
    if (!result)
        return eddy_runtime_failure();
    call->results[0] = result;
    return EDDY_OK;
}

static eddy_status reshape(const eddy_gradient_call *call) {
    return give(call, eddy_reshape(call->gradients[0], call->input_specs[0].shape));
}

static eddy_status permute(const eddy_gradient_call *call) {
    const eddy_view_attributes *attributes = call->attributes;
    eddy_axes back = {.count = call->input_specs[0].shape.rank};
    for (int32_t d = 0; d < back.count; d++)
        back.axes[attributes->axes[d]] = d;
    return give(call, eddy_permute(call->gradients[0], &back));
}

/* The engine sums over what was stretched. */
static eddy_status expand(const eddy_gradient_call *call) {
    return give(call, call->gradients[0]);
}

/* The same by an op that has a gradient, for gradients of gradients. */
static eddy_status part_recorded(const eddy_gradient_call *call, eddy_tensor *whole) {
    const eddy_view_attributes *a = call->attributes;
    eddy_tensor *grad = call->gradients[0];
    eddy_arange_options options = {.size = sizeof(options), .device = call->device};
    eddy_tensor *index =
        eddy_arange(EDDY_S(a->start), EDDY_S(a->start + a->length * a->step), EDDY_S(a->step), EDDY_I64, &options);
    if (a->is_removed)
        grad = eddy_unsqueeze(grad, a->axes[0]);
    return give(call, eddy_index_add(whole, index, grad, a->axes[0]));
}

static eddy_status part(const eddy_gradient_call *call) {
    const eddy_view_attributes *a = call->attributes;
    eddy_tensor *grad = call->gradients[0];
    eddy_tensor *whole = eddy_gradient_zeros(call, &call->input_specs[0]);
    if (a->length == 0)
        return give(call, whole);
    if (eddy_requires_grad(grad))
        return part_recorded(call, whole);
    eddy_tensor *place =
        a->is_removed ? eddy_select(whole, a->axes[0], a->start)
                      : eddy_slice(whole, a->axes[0], a->start, a->start + (a->length - 1) * a->step + 1, a->step);
    return place && eddy_copy_into(grad, place) == EDDY_OK ? give(call, whole) : eddy_runtime_failure();
}

/* as_strided may show an element twice and has no gradient yet. */
#define VIEW(name_, gradient_)                                                                                         \
    {                                                                                                                  \
        .name = name_, .id = EDDY_OP_REGISTERED, .operands = operand, .operand_count = 1, .outputs = outputs,          \
        .output_count = 1, .attribute_bytes = sizeof(eddy_view_attributes), .gradient = gradient_                      \
    }

static const eddy_op_operand operand[] = {{.name = "tensor"}};
static const char *const outputs[] = {"output"};
static const eddy_gradient_needs needs[] = {{.is_differentiable = true}};
static const eddy_gradient by_reshape = {reshape, needs}, by_permute = {permute, needs}, by_expand = {expand, needs},
                           by_part = {part, needs};

const eddy_op eddy_view_ops[EDDY_VIEW_KIND_COUNT] = {
    [EDDY_VIEW_RESHAPE] = VIEW("reshape", &by_reshape), [EDDY_VIEW_PERMUTE] = VIEW("permute", &by_permute),
    [EDDY_VIEW_EXPAND] = VIEW("expand", &by_expand),    [EDDY_VIEW_PART] = VIEW("slice", &by_part),
    [EDDY_VIEW_STRIDED] = VIEW("as_strided", NULL),
};
