#include "reducing.h"
#include "serial_team.h"

#include <base/dtype.h>
#include <criterion/criterion.h>
#include <interpreter/call/op.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Has room for the attribute struct of any reduction. */
typedef union attributes {
    char bytes[64];
    double alignment;
} attributes;

static attributes attributes_of(const eddy_op *op, const reducing *call) {
    attributes made = {{0}};
    cr_assert_leq(op->attribute_bytes, sizeof(made));
    for (int32_t i = 0; i < op->attribute_count; i++) {
        char *at = made.bytes + op->attributes[i].offset;
        if (op->attributes[i].type == EDDY_ATTRIBUTE_AXES)
            memcpy(at, &call->axes, sizeof(call->axes));
        else if (op->attributes[i].type == EDDY_ATTRIBUTE_BOOL)
            memcpy(at, &call->keeps_dims, sizeof(call->keeps_dims));
        else
            memcpy(at, &call->parameter, sizeof(call->parameter));
    }
    return made;
}

eddy_dtype reducing_result(const char *name, eddy_dtype dtype) {
    const eddy_op *op = eddy_op_find(name);
    attributes given = attributes_of(op, &(reducing){.parameter = reduction_parameter(name)});
    eddy_spec input = {.dtype = dtype}, output = {.dtype = EDDY_DTYPE_COUNT};
    eddy_infer infer = {
        .op = op, .inputs = &input, .input_count = 1, .attributes = &given, .outputs = &output};
    if (op->infer(&infer) == EDDY_OK)
        return output.dtype;
    (void)eddy_error_take(NULL);
    return EDDY_DTYPE_COUNT;
}

/* ---- elements ---- */

/* Neither overflow nor zero. */
static void fill_near_one(tensor *in) {
    for (int64_t i = 0; i < in->count; i++)
        tensor_set(in, i, (test_below(2) ? 1 : -1) * (1 + (double)(test_below(3) - 1) / 64));
}

/* So many of 301 are zero. */
static void fill_truths(tensor *in, int64_t odds) {
    bool is_float = eddy_dtype_is_float(in->view.dtype);
    for (int64_t i = 0; i < in->count; i++)
        tensor_set(in, i,
                   test_below(301) < odds           ? 0
                   : is_float && test_below(9) == 0 ? 0x1p-20
                                                    : 1);
}

static void fill_numbers(tensor *in) {
    tensor_fill(in, eddy_dtype_is_float(in->view.dtype) ? 10 : 100);
    for (int64_t i = test_below(20); i < in->count; i += 1 + test_below(20))
        tensor_set(in, i, 0);
}

/* Elements that bring out what the kernel can get wrong. */
static void fill(const reducing *call, tensor *in) {
    if (strcmp(call->op, "prod") == 0 && eddy_dtype_is_float(call->dtype))
        fill_near_one(in);
    else if (strcmp(call->op, "any") == 0 || strcmp(call->op, "all") == 0)
        fill_truths(in, strcmp(call->op, "any") == 0 ? 300 : 1);
    else
        fill_numbers(in);
    for (int64_t i = 0; i < in->count && call->has_specials; i++)
        if (test_below(40) == 0)
            tensor_set(in, i, test_below(3) == 0 ? NAN : test_below(2) ? INFINITY : -INFINITY);
}

/* The elements of each output, those of one together. */
static reduction_element *gather(const reducing *call, const tensor *in, int64_t each) {
    reduction_element *gathered = malloc(sizeof(reduction_element) * (size_t)(in->count + 1));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t within, output = output_of(call->shape, call->axes, i, &within);
        if (eddy_dtype_is_float(call->dtype))
            gathered[output * each + within].real = tensor_get(in, i);
        else
            gathered[output * each + within].whole = tensor_get_int(in, i);
    }
    return gathered;
}

/* ---- checks ---- */

static void check_value(const reducing *call, const reduction_elements *elements, const tensor *in,
                        const tensor *out, int64_t i) {
    reduction_value want;
    cr_assert(reduction_apply(call->op, elements, &want));
    if (!eddy_dtype_is_float(out->view.dtype)) {
        cr_assert_eq(tensor_get_int(out, i), want.whole, "%s output %lld: %lld, not %lld",
                     describe(call->op, in, call->in), (long long)i,
                     (long long)tensor_get_int(out, i), (long long)want.whole);
        return;
    }
    double got = tensor_get(out, i);
    cr_assert(reduction_is_near(out->view.dtype, want, got),
              "%s (%g) output %lld: %a, not %La (off by %Lg, allowed %g before it is rounded)",
              describe(call->op, in, call->in), call->parameter, (long long)i, got, want.real,
              fabsl(got - want.real), want.bound);
}

static void check_values(const reducing *call, reduction_elements elements, const tensor *in,
                         const tensor *out) {
    reduction_element *gathered = gather(call, in, elements.count);
    for (int64_t i = 0; i < out->count; i++) {
        elements.at = gathered + i * elements.count;
        check_value(call, &elements, in, out, i);
    }
    free(gathered);
    cr_assert(tensor_guards_hold(out), "%s", describe(call->op, in, call->in));
}

/* The same elements in a contiguous tensor, through other slices. */
static void check_bits(const reducing *call, const eddy_kernel *kernel, const attributes *given,
                       const tensor *in, const tensor *out) {
    tensor plain = tensor_make(call->dtype, call->shape->rank, call->shape->shape, CONTIGUOUS);
    tensor again = tensor_make(out->view.dtype, out->view.rank, out->shape, TURNED);
    for (int64_t i = 0; i < in->count; i++)
        memcpy(tensor_at(&plain, i), tensor_at(in, i), eddy_dtype_bytes(call->dtype));
    run_kernel(kernel, (tensor *[]){&plain, &again}, 2, given, call->team, NULL);
    cr_assert(tensor_agrees(out, &again), "%s: bits differ from the contiguous tensor's, axes %x",
              describe(call->op, in, call->in), call->axes);
    tensor_free(&plain), tensor_free(&again);
}

static int64_t reduced_count(const reducing *call) {
    int64_t count = 1;
    for (int32_t d = 0; d < call->shape->rank; d++)
        count *= call->axes >> d & 1 ? call->shape->shape[d] : 1;
    return count;
}

void reducing_check(reducing call) {
    const eddy_op *op = eddy_op_find(call.op);
    eddy_dtype result = reducing_result(call.op, call.dtype);
    reduction_elements elements = {
        .count = reduced_count(&call), .dtype = call.dtype, .parameter = call.parameter};
    if (result == EDDY_DTYPE_COUNT ||
        (elements.count == 0 && !reduction_apply(call.op, &elements, &(reduction_value){0})))
        return;
    int64_t shape[4];
    int32_t rank = output_shape(call.shape, call.axes, call.keeps_dims, shape);
    tensor in = tensor_make(call.dtype, call.shape->rank, call.shape->shape, call.in),
           out = tensor_make(result, rank, shape, call.out);
    attributes given = attributes_of(op, &call);
    fill(&call, &in);
    run_kernel(op->kernels[0], (tensor *[]){&in, &out}, 2, &given, &serial_team, NULL);
    check_values(&call, elements, &in, &out);
    check_bits(&call, op->kernels[0], &given, &in, &out);
    tensor_free(&in), tensor_free(&out);
}

void reducing_check_default(reducing call) {
    call.parameter = reduction_parameter(call.op);
    reducing_check(call);
}
