/* Gradients of views: to the elements that the view shows, zeros to the others. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/gradient/helper.h>

static eddy_status give(const eddy_gradient_call *call, eddy_tensor *result) {
    if (!result)
        return eddy_outcome_why(call->outcome);
    call->results[0] = result;
    return EDDY_OK;
}

static eddy_status reshape(const eddy_gradient_call *call) {
    return give(call, eddy_reshape(call->grads[0], call->input_specs[0].shape));
}

static eddy_status permute(const eddy_gradient_call *call) {
    const eddy_view_attributes *attributes = call->attributes;
    eddy_axes back = {.count = call->input_specs[0].shape.rank};
    for (int32_t d = 0; d < back.count; d++)
        back.axes[attributes->axes[d]] = d;
    return give(call, eddy_permute(call->grads[0], back));
}

/* The engine sums over repeated axes. */
static eddy_status expand(const eddy_gradient_call *call) {
    return give(call, call->grads[0]);
}

/* The same by an op that has a gradient, for gradients of gradients. */
static eddy_status part_recorded(const eddy_gradient_call *call, eddy_tensor *whole) {
    const eddy_view_attributes *a = call->attributes;
    eddy_tensor *grad = call->grads[0];
    eddy_arange_options options = {.size = sizeof(options), .device = call->device};
    eddy_tensor *index = eddy_arange(EDDY_S(a->start), EDDY_S(a->start + a->length * a->step),
                                     EDDY_S(a->step), EDDY_I64, &options);
    if (a->is_removed)
        grad = eddy_unsqueeze(grad, a->axes[0]);
    return give(call, eddy_index_add(whole, index, grad, a->axes[0]));
}

/* With creates_graph alone: otherwise the gradient goes straight to its place (interpreter/tape/gradient_sum.h). */
static eddy_status part(const eddy_gradient_call *call) {
    const eddy_view_attributes *a = call->attributes;
    eddy_tensor *grad = call->grads[0];
    eddy_tensor *whole = eddy_gradient_zeros(call, &call->input_specs[0]);
    if (a->length == 0)
        return give(call, whole);
    if (eddy_requires_grad(grad))
        return part_recorded(call, whole);
    eddy_tensor *place = a->is_removed
                             ? eddy_select(whole, a->axes[0], a->start)
                             : eddy_slice(whole, a->axes[0], a->start,
                                          a->start + (a->length - 1) * a->step + 1, a->step);
    return place && eddy_copy_into(grad, place) == EDDY_OK ? give(call, whole)
                                                           : eddy_outcome_why(call->outcome);
}

/* ---- as_strided ---- */

/* The range `begin` .. `end` of a storage that two layouts refer to. */
typedef struct span {
    int64_t begin, end;
} span;

static void reach(span *s, const eddy_layout *layout) {
    int64_t first = layout->offset, last = first;
    for (int32_t d = 0; d < layout->rank; d++) {
        int64_t length = (layout->dims[d] - 1) * layout->strides[d];
        *(length < 0 ? &first : &last) += length;
    }
    s->begin = first < s->begin ? first : s->begin;
    s->end = last >= s->end ? last + 1 : s->end;
}

/* i64, of rank 1: the place of each element of a layout, from `begin`, in row-major order. */
static eddy_tensor *places(const eddy_gradient_call *call, const eddy_layout *layout,
                           int64_t begin) {
    eddy_full_options full = {.size = sizeof(full), .device = call->device};
    eddy_arange_options arange = {.size = sizeof(arange), .device = call->device};
    eddy_tensor *sum = eddy_full(EDDY_SHAPE(), EDDY_S(layout->offset - begin), EDDY_I64, &full);
    for (int32_t d = 0; d < layout->rank; d++) {
        eddy_tensor *along =
            eddy_arange(EDDY_S(0), EDDY_S(layout->dims[d]), EDDY_S(1), EDDY_I64, &arange);
        sum = eddy_add(eddy_unsqueeze(sum, -1), eddy_mul_s(along, EDDY_S(layout->strides[d])));
    }
    return eddy_reshape(sum, EDDY_SHAPE(-1));
}

static bool is_filled(const eddy_shape *shape) {
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] == 0)
            return false;
    return true;
}

/* The gradient is added up in a piece of storage, of which the result is a view with the operand's layout. If the operand contains an
 * element several times, each gets its share, since their gradients are summed again later. */
static eddy_status strided(const eddy_gradient_call *call) {
    const eddy_strided_attributes *a = call->attributes;
    const eddy_spec *spec = &call->input_specs[0];
    eddy_tensor *grad = call->grads[0];
    if (eddy_count_of(grad) == 0 || !is_filled(&spec->shape))
        return EDDY_OK;
    span s = {.begin = INT64_MAX};
    reach(&s, &a->from);
    reach(&s, &a->to);
    eddy_zeros_options options = {.size = sizeof(options), .device = call->device};
    eddy_tensor *storage = eddy_zeros(EDDY_SHAPE(s.end - s.begin), eddy_dtype_of(grad), &options);
    eddy_tensor *from = places(call, &a->from, s.begin);
    eddy_tensor *sums = eddy_index_add(storage, places(call, &a->to, s.begin),
                                       eddy_reshape(grad, EDDY_SHAPE(-1)), 0);
    eddy_tensor *result = eddy_index_select(sums, from, 0);
    if (!eddy_layout_is_injective(&a->from)) {
        eddy_tensor *ones = eddy_ones_like(result, NULL);
        result =
            eddy_div(result, eddy_index_select(eddy_index_add(storage, from, ones, 0), from, 0));
    }
    return give(call, eddy_reshape(result, spec->shape));
}

#define VIEW(name_, gradient_, attributes_)                                                        \
    {                                                                                              \
        .name = name_, .id = EDDY_OP_REGISTERED, .operands = operand, .operand_count = 1,          \
        .outputs = outputs, .output_count = 1, .attribute_bytes = sizeof(attributes_),             \
        .gradient = gradient_                                                                      \
    }

static const eddy_op_operand operand[] = {{.name = "tensor"}};
static const char *const outputs[] = {"output"};
static const eddy_gradient_needs needs[] = {{.is_differentiable = true}};
static const eddy_gradient by_reshape = {reshape, needs}, by_permute = {permute, needs},
                           by_expand = {expand, needs}, by_part = {part, needs},
                           by_stride = {strided, needs};

const eddy_op eddy_view_ops[EDDY_VIEW_KIND_COUNT] = {
    [EDDY_VIEW_RESHAPE] = VIEW("reshape", &by_reshape, eddy_view_attributes),
    [EDDY_VIEW_PERMUTE] = VIEW("permute", &by_permute, eddy_view_attributes),
    [EDDY_VIEW_EXPAND] = VIEW("expand", &by_expand, eddy_view_attributes),
    [EDDY_VIEW_PART] = VIEW("slice", &by_part, eddy_view_attributes),
    [EDDY_VIEW_STRIDED] = VIEW("as_strided", &by_stride, eddy_strided_attributes),
};
