#include <interpreter/call/finite.h>

#include <base/dtype.h>
#include <kernels/finite.h>
#include <math.h>

_Atomic uint32_t eddy_finite_asked;

/* <calling thread> only: from a kernel's run to the check of its outputs. */
static _Thread_local bool noted;

void eddy_finite_ask(eddy_finite_mode mode) {
    uint32_t asked = eddy_load_relaxed(&eddy_finite_asked);
    while (asked < (uint32_t)mode &&
           !eddy_cas_relaxed(&eddy_finite_asked, &asked, (uint32_t)mode)) {
    }
}

void eddy_finite_set_passed_in(bool is_passed_in) {
    noted = is_passed_in;
}

bool eddy_finite_passed_in(void) {
    return noted;
}

/* Whether an element is a NaN (or, with wants_infinity, an infinity). */
static bool holds(const eddy_op_view *view, bool wants_nan, bool wants_infinity) {
    if (eddy_kernel_view_is_absent(view) ||
        eddy_dtype_category_of(view->dtype) != EDDY_CATEGORY_FLOAT)
        return false;
    size_t bytes = eddy_dtype_bytes(view->dtype);
    int64_t index[EDDY_RANK_MAX] = {0};
    int64_t place = 0;
    for (int64_t left = eddy_kernel_view_count(view); left > 0; left--) {
        double value =
            eddy_dtype_load_f64(view->dtype, (const char *)view->data + place * (int64_t)bytes);
        if ((wants_nan && isnan(value)) || (wants_infinity && isinf(value)))
            return true;
        for (int32_t d = view->rank - 1; d >= 0; d--) {
            place += view->strides[d];
            if (++index[d] < view->shape[d])
                break;
            place -= view->strides[d] * view->shape[d];
            index[d] = 0;
        }
    }
    return false;
}

static bool is_infinite(eddy_scalar value) {
    return value.kind == EDDY_SCALAR_FLOAT && isinf(value.value.floating);
}

static bool has_infinite_attribute(const eddy_op *op, const void *attributes) {
    for (int32_t i = 0; i < op->attribute_count && attributes; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        bool is_scalar = attribute->type == EDDY_ATTRIBUTE_SCALAR;
        size_t bytes = is_scalar ? sizeof(eddy_scalar) : sizeof(double);
        if ((!is_scalar && attribute->type != EDDY_ATTRIBUTE_FLOAT) ||
            attribute->offset + bytes > op->kernel_attribute_bytes ||
            is_infinite(attribute->default_value))
            continue;
        const void *place = (const char *)attributes + attribute->offset;
        if (is_scalar ? is_infinite(*(const eddy_scalar *)place)
                      : isinf(*(const double *)place) != 0)
            return true;
    }
    return false;
}

bool eddy_finite_is_passed_in(const eddy_op *op, const void *attributes,
                              const eddy_op_view *operands, int64_t operand_count) {
    if (has_infinite_attribute(op, attributes))
        return true;
    for (int64_t i = 0; i < operand_count; i++)
        if (operands[i].data && holds(&operands[i], false, true))
            return true;
    return false;
}

bool eddy_finite_is_fine(const eddy_op_view *output, bool is_passed_in) {
    bool wants_infinity = eddy_load_relaxed(&eddy_finite_asked) == EDDY_FINITE_ALL && !is_passed_in;
    return !holds(output, true, wants_infinity);
}

/* ---- by a device's kernels ---- */

/* Only CUDA's have some of their own. */
static void launch(const char *name, const eddy_kernel_call *call, const eddy_op_view *view,
                   const eddy_attributes_check_finite *attributes) {
    if (eddy_kernel_view_is_absent(view) ||
        eddy_dtype_category_of(view->dtype) != EDDY_CATEGORY_FLOAT)
        return;
    eddy_kernel_call look = *call;
    look.kernel = eddy_op_kernel_by_name(name, view->dtype, EDDY_DEVICE_CUDA);
    look.views = view;
    look.view_count = 1;
    look.attributes = attributes;
    look.plan = NULL;
    look.kernel->run(&look);
}

static bool wants_infinity(const eddy_op *op, const eddy_kernel_call *call) {
    return eddy_finite_wants_operands() && !has_infinite_attribute(op, call->attributes);
}

void eddy_finite_launch_operands(const eddy_op *op, const eddy_kernel_call *call,
                                 int64_t operand_count) {
    if (!wants_infinity(op, call))
        return;
    for (int64_t i = 0; i < operand_count; i++)
        launch("check_infinity", call, &call->views[i], NULL);
}

void eddy_finite_launch_output(const eddy_op *op, const eddy_kernel_call *call,
                               const eddy_op_view *output, int64_t operand) {
    const eddy_attributes_check_finite attributes = {.operand = operand,
                                                     .wants_infinity = wants_infinity(op, call)};
    launch("check_finite", call, output, &attributes);
}
