/* Views: new layouts over the same storage, without an instruction (except for a reshape that has to copy). */
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/transfer.h>
#include <interpreter/tape/autograd.h>

#include <eddy/view.h>

/* A view under construction. */
typedef struct viewing {
    eddy_origin origin;
    eddy_tensor *tensor;
    eddy_layout layout; /* of the tensor; changed to that of the view */
    /* For gradients. */
    eddy_tensor *source; /* the tensor of these elements: `tensor`, or the one it was copied from */
    eddy_view_kind kind;
    eddy_view_attributes attributes;
} viewing;

static bool begin(viewing *v, eddy_tensor *tensor, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    v->origin = origin;
    v->tensor = tensor;
    v->source = tensor;
    v->kind = EDDY_VIEW_RESHAPE;
    if (!eddy_caller_may_call(caller)) {
        (void)!eddy_caller_refuse(caller, origin);
        return false;
    }
    if (eddy_tensor_check_shape(tensor, origin) != EDDY_OK)
        return false;
    eddy_tensor_layout(tensor, &v->layout);
    return true;
}

static eddy_status record(const viewing *v, eddy_tensor *view) {
    if (v->kind != EDDY_VIEW_STRIDED) {
        eddy_view_attributes attributes = v->attributes;
        if (v->kind == EDDY_VIEW_PART)
            eddy_tensor_find_order(v->source, attributes.order);
        return eddy_autograd_view(v->source, view, v->kind, &attributes, v->origin.address);
    }
    eddy_strided_attributes attributes = {.to = v->layout};
    eddy_tensor_layout(v->source, &attributes.from);
    return eddy_autograd_view(v->source, view, v->kind, &attributes, v->origin.address);
}

static eddy_tensor *end(const viewing *v) {
    eddy_caller *caller = eddy_caller_self;
    if (!eddy_scope_reserve(caller, 1)) {
        eddy_fail(EDDY_OUT_OF_MEMORY, v->origin, "the scope cannot grow");
        return NULL;
    }
    eddy_tensor *view = eddy_tensor_view(caller, v->tensor, &v->layout, v->origin);
    if (!view)
        return NULL;
    bool is_recorded = v->source->autograd && caller->no_grad == 0;
    if (is_recorded && record(v, view) != EDDY_OK) {
        eddy_tensor_drop(view);
        return NULL;
    }
    eddy_scope_own(caller, view);
    return view;
}

/* The tensor as text, for errors. */
typedef struct described {
    char text[EDDY_RANK_MAX * 22 + 8];
} described;

static described view_describe(const viewing *v) {
    described d;
    eddy_tensor_describe(v->tensor, d.text, sizeof(d.text));
    return d;
}

static bool fail_axis(const viewing *v, int64_t axis) {
    eddy_fail(EDDY_OUT_OF_RANGE, v->origin, "%s has no axis %lld", view_describe(v).text,
              (long long)axis);
    return false;
}

static bool find_axis(const viewing *v, int64_t axis, int32_t *result) {
    return (v->layout.rank > 0 && eddy_shape_axis_normalize(axis, v->layout.rank, result)) ||
           fail_axis(v, axis);
}

/* The mask of named axes; false, recorded, where they are not axes of the tensor, each named once. */
static bool find_axes(const viewing *v, eddy_axes axes, uint32_t *mask) {
    if (eddy_shape_axes_mask(&axes, v->layout.rank, mask))
        return true;
    if (axes.count < 0 || axes.count > EDDY_RANK_MAX) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "%d axes are named, %d are possible",
                  (int)axes.count, EDDY_RANK_MAX);
        return false;
    }
    uint32_t seen = 0;
    for (int32_t i = 0; i < axes.count; i++) {
        int32_t axis;
        if (!eddy_shape_axis_normalize(axes.axes[i], v->layout.rank, &axis))
            return fail_axis(v, axes.axes[i]);
        if (seen >> axis & 1u) {
            eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "axis %d of %s is named twice", (int)axis,
                      view_describe(v).text);
            return false;
        }
        seen |= UINT32_C(1) << axis;
    }
    return false;
}

/* For functions that do nothing to rank 0, whose axes are 0 and -1, as in PyTorch. */
static bool find_axis_or_none(const viewing *v, int64_t axis, int32_t *result) {
    return eddy_shape_axis_normalize(axis, v->layout.rank, result) || fail_axis(v, axis);
}

static void remove_axis(eddy_layout *layout, int32_t axis) {
    layout->rank--;
    for (int32_t d = axis; d < layout->rank; d++) {
        layout->dims[d] = layout->dims[d + 1];
        layout->strides[d] = layout->strides[d + 1];
    }
}

/* ---- shape ---- */

/* A shape as text, for errors. */
static described describe_shape(const eddy_shape *shape) {
    described d;
    eddy_shape_format(shape->rank, shape->dims, d.text, sizeof(d.text));
    return d;
}

/* Checks the requested shape and computes the dim of a -1. */
static bool complete_shape(const viewing *v, eddy_shape *shape) {
    int64_t known = 1;
    int32_t open = -1;
    if (shape->rank < 0 || shape->rank > EDDY_RANK_MAX) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "rank %d is not within 0 and %d",
                  (int)shape->rank, EDDY_RANK_MAX);
        return false;
    }
    for (int32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == -1 && open < 0) {
            open = d;
        } else if (shape->dims[d] < 0) {
            eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "shape %s %s", describe_shape(shape).text,
                      shape->dims[d] == -1 ? "has -1 more than once" : "has a negative dim");
            return false;
        } else if (__builtin_mul_overflow(known, shape->dims[d], &known)) {
            eddy_fail(EDDY_SIZE_OVERFLOW, v->origin, "shape %s has 2^63 elements or more",
                      describe_shape(shape).text);
            return false;
        }
    }
    int64_t count = v->tensor->count;
    bool fits = open < 0 ? known == count : known > 0 && count % known == 0;
    if (!fits) {
        eddy_fail(EDDY_SHAPE_MISMATCH, v->origin, "the %lld elements of %s do not fill shape %s",
                  (long long)count, view_describe(v).text, describe_shape(shape).text);
        return false;
    }
    if (open >= 0)
        shape->dims[open] = count / known;
    return true;
}

/* Changes the layout to `shape`; false (nothing recorded) if that needs a copy. */
static bool reshape_layout(eddy_layout *layout, const eddy_shape *shape) {
    int64_t strides[EDDY_RANK_MAX];
    if (!eddy_layout_view(layout, shape, strides))
        return false;
    layout->rank = shape->rank;
    for (int32_t d = 0; d < shape->rank; d++) {
        layout->dims[d] = shape->dims[d];
        layout->strides[d] = strides[d];
    }
    return true;
}

/* The elements copied row-major, under another shape. */
static eddy_tensor *copied(const viewing *v, const eddy_shape *shape) {
    eddy_tensor *copy;
    if (eddy_copy_contiguous(eddy_caller_self, v->tensor, v->origin.address, &copy) != EDDY_OK)
        return NULL;
    viewing of_copy = {.origin = v->origin,
                       .tensor = copy,
                       .layout = {.rank = shape->rank},
                       .source = v->source,
                       .kind = EDDY_VIEW_RESHAPE};
    for (int32_t d = 0; d < shape->rank; d++)
        of_copy.layout.dims[d] = shape->dims[d];
    eddy_shape_strides_contiguous(shape->rank, shape->dims, of_copy.layout.strides);
    eddy_tensor *view = end(&of_copy);
    eddy_tensor_drop(copy);
    return view;
}

static eddy_tensor *reshape(viewing *v, eddy_shape shape) {
    if (!complete_shape(v, &shape))
        return NULL;
    return reshape_layout(&v->layout, &shape) ? end(v) : copied(v, &shape);
}

eddy_tensor *eddy_contiguous(eddy_tensor *tensor) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("contiguous")))
        return NULL;
    if (tensor->is_contiguous)
        return end(&v);
    eddy_shape shape;
    eddy_tensor_shape(tensor, &shape);
    return copied(&v, &shape);
}

eddy_tensor *eddy_to_device(eddy_tensor *tensor, eddy_device device) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("to_device")))
        return NULL;
    eddy_device found, own = eddy_tensor_device(tensor);
    if (eddy_runtime_device(eddy_caller_self, tensor->runtime, &device, v.origin, &found) !=
        EDDY_OK)
        return NULL;
    if (found.kind == own.kind && found.index == own.index)
        return end(&v);
    eddy_tensor *copy = NULL;
    return eddy_transfer(tensor, found, v.origin, &copy) == EDDY_OK ? copy : NULL;
}

eddy_tensor *eddy_reshape(eddy_tensor *tensor, eddy_shape shape) {
    viewing v;
    return begin(&v, tensor, EDDY_ORIGIN("reshape")) ? reshape(&v, shape) : NULL;
}

eddy_tensor *eddy_view(eddy_tensor *tensor, eddy_shape shape) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("view")) || !complete_shape(&v, &shape))
        return NULL;
    if (reshape_layout(&v.layout, &shape))
        return end(&v);
    eddy_fail(EDDY_SHAPE_MISMATCH, v.origin,
              "the strides of %s do not allow shape %s; reshape copies", view_describe(&v).text,
              describe_shape(&shape).text);
    return NULL;
}

eddy_tensor *eddy_flatten(eddy_tensor *tensor, int32_t first, int32_t last) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("flatten")))
        return NULL;
    if (v.layout.rank == 0)
        return reshape(&v, EDDY_SHAPE(1));
    int32_t from, to;
    if (!find_axis(&v, first, &from) || !find_axis(&v, last, &to))
        return NULL;
    if (from > to) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v.origin, "axis %d comes after axis %d", (int)first,
                  (int)last);
        return NULL;
    }
    eddy_shape shape = {.rank = 0};
    for (int32_t d = 0; d < v.layout.rank; d++) {
        if (d > from && d <= to)
            shape.dims[shape.rank - 1] *= v.layout.dims[d];
        else
            shape.dims[shape.rank++] = v.layout.dims[d];
    }
    return reshape(&v, shape);
}

/* ---- parts ---- */

static int64_t clamp(int64_t index, int64_t dim) {
    if (index < 0)
        index = index < -dim ? 0 : index + dim;
    return index > dim ? dim : index;
}

static void set_part(viewing *v, int32_t axis, int64_t start, int64_t step, int64_t length,
                     bool is_removed) {
    v->kind = EDDY_VIEW_PART;
    v->attributes = (eddy_view_attributes){
        .axes = {axis}, .start = start, .step = step, .length = length, .is_removed = is_removed};
}

eddy_tensor *eddy_slice(eddy_tensor *tensor, int32_t axis, int64_t start, int64_t end_index,
                        int64_t step) {
    viewing v;
    int32_t d;
    if (!begin(&v, tensor, EDDY_ORIGIN("slice")) || !find_axis(&v, axis, &d))
        return NULL;
    if (step < 1) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v.origin, "step %lld is below 1", (long long)step);
        return NULL;
    }
    int64_t dim = v.layout.dims[d], from = clamp(start, dim), to = clamp(end_index, dim);
    int64_t length = to > from ? (to - from - 1) / step + 1 : 0;
    if (length > 0)
        v.layout.offset += from * v.layout.strides[d];
    v.layout.dims[d] = length;
    /* With one element the step is not used: a huge one must not overflow. */
    if (length > 1)
        v.layout.strides[d] *= step;
    set_part(&v, d, from, step, length, false);
    return end(&v);
}

eddy_tensor *eddy_narrow(eddy_tensor *tensor, int32_t axis, int64_t start, int64_t length) {
    viewing v;
    int32_t d;
    if (!begin(&v, tensor, EDDY_ORIGIN("narrow")) || !find_axis(&v, axis, &d))
        return NULL;
    int64_t dim = v.layout.dims[d], from = start < 0 && start >= -dim ? start + dim : start;
    if (from < 0 || from > dim || length < 0 || length > dim - from) {
        eddy_fail(EDDY_OUT_OF_RANGE, v.origin,
                  "%lld elements from %lld are not within axis %d of %s", (long long)length,
                  (long long)start, (int)axis, view_describe(&v).text);
        return NULL;
    }
    if (length > 0)
        v.layout.offset += from * v.layout.strides[d];
    v.layout.dims[d] = length;
    set_part(&v, d, from, 1, length, false);
    return end(&v);
}

eddy_tensor *eddy_select(eddy_tensor *tensor, int32_t axis, int64_t index) {
    viewing v;
    int32_t d;
    if (!begin(&v, tensor, EDDY_ORIGIN("select")) || !find_axis(&v, axis, &d))
        return NULL;
    int64_t dim = v.layout.dims[d], at = index < 0 && index >= -dim ? index + dim : index;
    if (at < 0 || at >= dim) {
        eddy_fail(EDDY_OUT_OF_RANGE, v.origin, "index %lld is not within axis %d of %s",
                  (long long)index, (int)axis, view_describe(&v).text);
        return NULL;
    }
    if (v.tensor->count > 0)
        v.layout.offset += at * v.layout.strides[d];
    remove_axis(&v.layout, d);
    set_part(&v, d, at, 1, 1, true);
    return end(&v);
}

/* ---- order of axes ---- */

/* Axis d of the view is axis order[d] of the tensor. */
static void permute(viewing *v, const int32_t *order) {
    eddy_layout from = v->layout;
    v->kind = EDDY_VIEW_PERMUTE;
    for (int32_t d = 0; d < from.rank; d++) {
        v->layout.dims[d] = from.dims[order[d]];
        v->layout.strides[d] = from.strides[order[d]];
        v->attributes.axes[d] = order[d];
    }
}

static void swap_axes(viewing *v, int32_t a, int32_t b) {
    int32_t order[EDDY_RANK_MAX];
    for (int32_t d = 0; d < v->layout.rank; d++)
        order[d] = d == a ? b : d == b ? a : d;
    permute(v, order);
}

eddy_tensor *eddy_transpose(eddy_tensor *tensor, int32_t axis0, int32_t axis1) {
    viewing v;
    int32_t a, b;
    if (!begin(&v, tensor, EDDY_ORIGIN("transpose")) || !find_axis_or_none(&v, axis0, &a) ||
        !find_axis_or_none(&v, axis1, &b))
        return NULL;
    swap_axes(&v, a, b);
    return end(&v);
}

eddy_tensor *eddy_t(eddy_tensor *tensor) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("t")))
        return NULL;
    if (v.layout.rank > 2) {
        eddy_fail(EDDY_SHAPE_MISMATCH, v.origin, "%s is of rank above 2", view_describe(&v).text);
        return NULL;
    }
    if (v.layout.rank == 2)
        swap_axes(&v, 0, 1);
    return end(&v);
}

eddy_tensor *eddy_permute(eddy_tensor *tensor, eddy_axes axes) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("permute")))
        return NULL;
    uint32_t mask = 0;
    if (eddy_shape_axes_are_all(&axes)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v.origin, "EDDY_ALL_AXES names no order");
        return NULL;
    }
    if (axes.count != v.layout.rank) {
        eddy_fail(EDDY_INVALID_ARGUMENT, v.origin, "%d axes are named, and %s has %d",
                  (int)axes.count, view_describe(&v).text, (int)v.layout.rank);
        return NULL;
    }
    if (v.layout.rank > 0 && !find_axes(&v, axes, &mask))
        return NULL;
    int32_t order[EDDY_RANK_MAX];
    for (int32_t d = 0; d < v.layout.rank; d++)
        order[d] = axes.axes[d] < 0 ? axes.axes[d] + v.layout.rank : axes.axes[d];
    permute(&v, order);
    return end(&v);
}

/* ---- axes of size 1 ---- */

eddy_tensor *eddy_unsqueeze(eddy_tensor *tensor, int32_t axis) {
    viewing v;
    int32_t d;
    if (!begin(&v, tensor, EDDY_ORIGIN("unsqueeze")))
        return NULL;
    int32_t rank = v.layout.rank;
    if (rank == EDDY_RANK_MAX || !eddy_shape_axis_normalize(axis, rank + 1, &d)) {
        eddy_fail(EDDY_OUT_OF_RANGE, v.origin, "%s cannot get an axis %d", view_describe(&v).text,
                  (int)axis);
        return NULL;
    }
    for (int32_t k = rank; k > d; k--) {
        v.layout.dims[k] = v.layout.dims[k - 1];
        v.layout.strides[k] = v.layout.strides[k - 1];
    }
    v.layout.rank = rank + 1;
    v.layout.strides[d] = d < rank ? v.layout.dims[d + 1] * v.layout.strides[d + 1] : 1;
    v.layout.dims[d] = 1;
    return end(&v);
}

eddy_tensor *eddy_squeeze(eddy_tensor *tensor, eddy_axes axes) {
    viewing v;
    uint32_t mask = 0;
    if (!begin(&v, tensor, EDDY_ORIGIN("squeeze")))
        return NULL;
    if (!find_axes(&v, axes, &mask))
        return NULL;
    for (int32_t d = v.layout.rank - 1; d >= 0; d--)
        if ((mask >> d & 1) && v.layout.dims[d] == 1)
            remove_axis(&v.layout, d);
    return end(&v);
}

/* ---- free layouts ---- */

eddy_tensor *eddy_expand(eddy_tensor *tensor, eddy_shape shape) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("expand")))
        return NULL;
    bool fits = shape.rank >= v.layout.rank && shape.rank <= EDDY_RANK_MAX;
    int32_t added = fits ? shape.rank - v.layout.rank : 0;
    for (int32_t d = 0; fits && d < shape.rank; d++) {
        if (shape.dims[d] == -1 && d >= added)
            shape.dims[d] = v.layout.dims[d - added];
        fits = shape.dims[d] >= 0;
    }
    int64_t strides[EDDY_RANK_MAX];
    if (!fits || !eddy_shape_is_valid(&shape) ||
        !eddy_layout_broadcast(&v.layout, &shape, strides)) {
        char text[EDDY_RANK_MAX * 22] = "?";
        if (shape.rank >= 0 && shape.rank <= EDDY_RANK_MAX)
            eddy_shape_format(shape.rank, shape.dims, text, sizeof(text));
        eddy_fail(EDDY_SHAPE_MISMATCH, v.origin, "%s cannot be expanded to shape %s",
                  view_describe(&v).text, text);
        return NULL;
    }
    v.layout.rank = shape.rank;
    for (int32_t d = 0; d < shape.rank; d++) {
        v.layout.dims[d] = shape.dims[d];
        v.layout.strides[d] = strides[d];
    }
    v.kind = EDDY_VIEW_EXPAND;
    return end(&v);
}

static eddy_status check_strided(const viewing *v, const eddy_shape *shape, const int64_t *strides,
                                 int64_t offset) {
    if (shape->rank < 0 || shape->rank > EDDY_RANK_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "rank %d is not within 0 and %d",
                         (int)shape->rank, EDDY_RANK_MAX);
    if (!eddy_shape_is_valid(shape))
        return eddy_fail(EDDY_INVALID_ARGUMENT, v->origin,
                         "shape %s has a negative dim or too many elements",
                         describe_shape(shape).text);
    if (!strides && shape->rank > 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "no strides for shape %s",
                         describe_shape(shape).text);
    for (int32_t d = 0; d < shape->rank; d++)
        if (strides[d] < 0)
            return eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "stride %lld of axis %d is negative",
                             (long long)strides[d], (int)d);
    if (offset < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, v->origin, "offset %lld is negative",
                         (long long)offset);
    return EDDY_OK;
}

/* The last element that the view has, saturating; for a view of no element the offset. */
static int64_t last_element(const eddy_shape *shape, const int64_t *strides, int64_t offset) {
    int64_t last = offset;
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] == 0)
            return offset;
    for (int32_t d = 0; d < shape->rank; d++) {
        int64_t reach;
        if (__builtin_mul_overflow(shape->dims[d] - 1, strides[d], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return INT64_MAX;
    }
    return last;
}

eddy_tensor *eddy_as_strided(eddy_tensor *tensor, eddy_shape shape, const int64_t *strides,
                             int64_t offset) {
    viewing v;
    if (!begin(&v, tensor, EDDY_ORIGIN("as_strided")))
        return NULL;
    if (check_strided(&v, &shape, strides, offset) != EDDY_OK)
        return NULL;
    /* It counts from the beginning of the storage, where the next input may not begin. */
    eddy_recorder_read_other(eddy_caller_self, tensor, v.origin);
    int64_t count = 0, last = last_element(&shape, strides, offset);
    (void)eddy_shape_count(shape.rank, shape.dims, &count);
    int64_t storage_count = tensor->root->count;
    if (count > 0 ? last >= storage_count : offset > storage_count) {
        eddy_fail(EDDY_OUT_OF_RANGE, v.origin,
                  "shape %s from offset %lld reaches element %lld of a storage of %lld",
                  describe_shape(&shape).text, (long long)offset, (long long)last,
                  (long long)storage_count);
        return NULL;
    }
    v.layout.rank = shape.rank;
    v.layout.offset = offset;
    for (int32_t d = 0; d < shape.rank; d++) {
        v.layout.dims[d] = shape.dims[d];
        v.layout.strides[d] = strides[d];
    }
    v.kind = EDDY_VIEW_STRIDED;
    return end(&v);
}
