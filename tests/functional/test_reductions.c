/* Every reduction of the op list beside its oracle, as a program calls it: each dtype that it takes, axes by their numbers from either
 * end, dims kept or not, inputs that are empty or lie in memory in any way. */
#include "random.h"
#include "reduction.h"

#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/kernels/axes.h>
#include <tests/rounds.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef enum layout { PLAIN, TURNED, STEPPED, EXPANDED, LAYOUTS } layout;

static const shape_case shapes[] = {
    {0, {0}},       {1, {7}}, {2, {3, 4}}, {3, {2, 3, 4}}, {4, {2, 1, 3, 2}},
    {2, {1100, 2}}, {1, {0}}, {2, {0, 3}}, {3, {2, 0, 3}},
};

static uint32_t taken_by(const char *op) {
    static const struct {
        const char *op;
        uint32_t dtypes;
    } listings[] = {
#define OP(name, refused, taken) {#name, taken},
#include <functional/op_dtypes.h>
    };
    size_t i = 0;
    while (strcmp(listings[i].op, op) != 0)
        i++;
    return listings[i].dtypes;
}

/* ---- inputs ---- */

/* Multiples of a half, many zeros and equals among them, and in some tensors NaN and infinities. */
static eddy_tensor *numbers(eddy_dtype dtype, eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    double *values = malloc(sizeof(double) * (size_t)(count + 1));
    bool is_signed = dtype != EDDY_U8 && dtype != EDDY_BOOL;
    bool has_specials = eddy_dtype_is_float(dtype) && random_below(4) == 0;
    for (int64_t i = 0; i < count; i++)
        values[i] = has_specials && random_below(20) == 0
                        ? (double[]){NAN, INFINITY, -INFINITY}[random_below(3)]
                        : (double)(random_below(7) - (is_signed ? 3 : 0)) / (double)(1 + i % 2);
    eddy_tensor *tensor = eddy_from_data(values, shape, EDDY_F64, NULL);
    free(values);
    return eddy_cast(tensor, dtype);
}

static eddy_tensor *turned(eddy_dtype dtype, eddy_shape shape) {
    eddy_shape backwards = {.rank = shape.rank};
    eddy_axes order = {.count = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) {
        order.axes[d] = shape.rank - 1 - d;
        backwards.dims[d] = shape.dims[shape.rank - 1 - d];
    }
    return eddy_permute(numbers(dtype, backwards), order);
}

static eddy_tensor *stepped(eddy_dtype dtype, eddy_shape shape) {
    eddy_shape wide = shape;
    for (int32_t d = 0; d < shape.rank; d++)
        wide.dims[d] = 2 * shape.dims[d] + 1;
    eddy_tensor *tensor = numbers(dtype, wide);
    for (int32_t d = 0; d < shape.rank; d++)
        tensor = eddy_slice(tensor, d, 1, wide.dims[d], 2);
    return tensor;
}

static eddy_tensor *expanded(eddy_dtype dtype, eddy_shape shape) {
    eddy_shape narrow = shape;
    if (shape.rank > 0 && shape.dims[0] > 0)
        narrow.dims[0] = 1;
    return eddy_expand(numbers(dtype, narrow), shape);
}

static eddy_tensor *make_input(eddy_dtype dtype, const shape_case *c, layout l) {
    eddy_tensor *(*const makers[])(eddy_dtype, eddy_shape) = {numbers, turned, stepped, expanded};
    eddy_shape shape = {.rank = c->rank};
    memcpy(shape.dims, c->shape, sizeof(c->shape));
    eddy_tensor *input = makers[l](dtype, shape);
    cr_assert_not_null(input);
    return input;
}

/* The elements of each output, those of one together. */
static reduction_element *gather(eddy_tensor *input, const shape_case *c, uint32_t axes,
                                 int64_t each) {
    eddy_dtype dtype = eddy_dtype_of(input);
    size_t count = (size_t)eddy_count_of(input), bytes = eddy_dtype_bytes(dtype);
    char *read = malloc(count * bytes + 1);
    reduction_element *gathered = malloc(sizeof(reduction_element) * (count + 1));
    cr_assert_eq(eddy_read(input, read, count * bytes, NULL), EDDY_OK);
    for (size_t i = 0; i < count; i++) {
        int64_t within, output = output_of(c, axes, (int64_t)i, &within);
        reduction_element *to = &gathered[output * each + within];
        if (eddy_dtype_is_float(dtype))
            to->real = eddy_dtype_load_f64(dtype, read + i * bytes);
        else
            to->whole = eddy_dtype_load_i64(dtype, read + i * bytes);
    }
    free(read);
    return gathered;
}

/* ---- calls ---- */

typedef struct reducing {
    const char *op;
    const shape_case *c;
    uint32_t axes; /* all of them where none are named */
    bool keeps_dims;
    int64_t outputs;
    reduction_elements first; /* those of the first output, before those of the others */
    char text[96];
} reducing;

/* Each axis by one of its two numbers. */
static eddy_axes named(uint32_t axes, int32_t rank) {
    eddy_axes list = {0};
    for (int32_t d = 0; d < rank; d++)
        if (axes >> d & 1)
            list.axes[list.count++] = (int32_t)random_below(2) ? d : d - rank;
    return list;
}

/* No axes are all of them: none named, EDDY_ALL_AXES, or the attribute left out. */
static eddy_status call(const reducing *r, eddy_tensor *input, eddy_axes axes,
                        eddy_tensor **result) {
    eddy_attribute given[] = {
        {"keeps_dims", EDDY_ATTRIBUTE_BOOL, {.boolean = r->keeps_dims}},
        {"axes", EDDY_ATTRIBUTE_AXES, {.axes = axes}},
    };
    eddy_attributes attributes = {given, COUNT(given)};
    if (axes.count == 0 && random_below(2))
        given[1].value.axes = EDDY_ALL_AXES;
    else if (axes.count == 0 && random_below(2))
        attributes.count = 1;
    return eddy_call(r->op, EDDY_LIST(input), &attributes, result);
}

static void check_shape(const reducing *r, eddy_tensor *result) {
    int64_t wanted[4];
    eddy_shape shape = eddy_shape_of(result);
    cr_assert_eq(shape.rank, output_shape(r->c, r->axes, r->keeps_dims, wanted), "%s: rank %d",
                 r->text, (int)shape.rank);
    for (int32_t d = 0; d < shape.rank; d++)
        cr_assert_eq(shape.dims[d], wanted[d], "%s: dim %d is %lld", r->text, (int)d,
                     (long long)shape.dims[d]);
}

static void check_element(const reducing *r, int64_t output, eddy_dtype dtype, const void *got) {
    reduction_elements elements = r->first;
    reduction_value want;
    elements.at += output * elements.count;
    cr_assert(reduction_apply(r->op, &elements, &want), "%s is refused", r->text);
    if (eddy_dtype_is_float(dtype))
        cr_assert(reduction_is_near(dtype, want, eddy_dtype_load_f64(dtype, got)),
                  "%s: output %lld is %a, not %La, seed %llu", r->text, (long long)output,
                  eddy_dtype_load_f64(dtype, got), want.real, (unsigned long long)random_seed());
    else
        cr_assert_eq(eddy_dtype_load_i64(dtype, got), want.whole,
                     "%s: output %lld is %lld, not %lld, seed %llu", r->text, (long long)output,
                     (long long)eddy_dtype_load_i64(dtype, got), (long long)want.whole,
                     (unsigned long long)random_seed());
}

static void check_result(const reducing *r, eddy_tensor *result) {
    eddy_dtype dtype = eddy_dtype_of(result);
    size_t count = (size_t)r->outputs, bytes = eddy_dtype_bytes(dtype);
    char *read = malloc(count * bytes + 1);
    check_shape(r, result);
    cr_assert_eq(eddy_read(result, read, count * bytes, NULL), EDDY_OK, "%s", r->text);
    for (size_t i = 0; i < count; i++)
        check_element(r, (int64_t)i, dtype, read + i * bytes);
    free(read);
}

/* Where there are outputs, and nothing to choose them from. */
static bool is_refused(const reducing *r) {
    reduction_value want;
    return r->outputs > 0 && !reduction_apply(r->op, &r->first, &want);
}

static void check_call(const reducing *r, eddy_tensor *input, eddy_axes axes) {
    eddy_tensor *result = NULL;
    eddy_status status = call(r, input, axes, &result);
    if (is_refused(r)) {
        cr_assert_eq(status, EDDY_INVALID_ARGUMENT, "%s", r->text);
        (void)eddy_error_take(NULL);
        return;
    }
    cr_assert_eq(status, EDDY_OK, "%s", r->text);
    check_result(r, result);
}

static void check(const char *op, eddy_dtype dtype, const shape_case *c, uint32_t axes, layout l) {
    eddy_scope *scope = eddy_scope_begin();
    reducing r = {.op = op,
                  .c = c,
                  .axes = axes ? axes : (1u << c->rank) - 1,
                  .keeps_dims = random_below(2),
                  .outputs = 1,
                  .first = {.count = 1, .dtype = dtype, .parameter = reduction_parameter(op)}};
    for (int32_t d = 0; d < c->rank; d++)
        *(r.axes >> d & 1 ? &r.first.count : &r.outputs) *= c->shape[d];
    snprintf(r.text, sizeof(r.text), "%s of %s of rank %d over axes %x, layout %d", op,
             eddy_dtype_name(dtype), (int)c->rank, axes, (int)l);
    eddy_tensor *input = make_input(dtype, c, l);
    reduction_element *elements = gather(input, c, r.axes, r.first.count);
    r.first.at = elements;
    check_call(&r, input, named(axes, c->rank));
    free(elements);
    eddy_scope_end(scope);
}

static void check_layouts(const char *op, eddy_dtype dtype) {
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (uint32_t axes = 0; axes < 1u << shapes[s].rank; axes++)
            for (int l = 0; l < LAYOUTS; l++)
                if (rounds_has_next())
                    check(op, dtype, &shapes[s], axes, (layout)l);
}

Test(reductions, each_gives_what_its_oracle_does) {
    for (size_t i = 0; i < reduction_count; i++)
        for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
            if (taken_by(reduction_names[i]) >> dtype & 1u)
                check_layouts(reduction_names[i], (eddy_dtype)dtype);
}
