/* Ops by name, straight to the interpreter, and tensors in one line. */
#ifndef EDDY_TESTS_CALLS_H
#define EDDY_TESTS_CALLS_H

#include <interpreter/call/apply.h>
#include <interpreter/call/infer.h>
#include <interpreter/handle/tensor.h>

#include <base/memory.h>
#include <base/status.h>
#include <criterion/criterion.h>
#include <eddy/host.h>
#include <eddy/runtime.h>
#include <eddy/scalar.h>
#include <eddy/view.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OF(...)                                                                                    \
    ((eddy_tensor *[]){__VA_ARGS__}),                                                              \
        (int64_t)(sizeof((eddy_tensor *[]){__VA_ARGS__}) / sizeof(eddy_tensor *))

static inline eddy_tensor *call(const char *name, eddy_tensor *const *inputs, int64_t count) {
    return eddy_interpreter_apply_one(eddy_op_find(name), inputs, count, NULL,
                                      __builtin_return_address(0));
}

static inline eddy_tensor *call_scalar(const char *name, eddy_tensor *input, eddy_scalar scalar) {
    eddy_tensor *inputs[] = {input};
    return eddy_interpreter_apply_one(eddy_op_find(name), inputs, 1, &scalar,
                                      __builtin_return_address(0));
}

static inline eddy_status call_into(const char *name, eddy_tensor *const *inputs, int64_t count,
                                    eddy_tensor *target) {
    eddy_apply apply = {
        .op = eddy_op_find(name), .inputs = inputs, .input_count = count, .targets = &target};
    return eddy_interpreter_apply(&apply);
}

static inline eddy_status copy_into(eddy_tensor *source, eddy_tensor *target) {
    eddy_tensor *inputs[] = {source, target};
    eddy_apply apply = {.op = eddy_op_find("copy_into"), .inputs = inputs, .input_count = 2};
    return eddy_interpreter_apply(&apply);
}

/* Fails late where an index is out of range. */
static inline eddy_tensor *index_select(eddy_tensor *input, eddy_tensor *index) {
    eddy_tensor *inputs[] = {input, index};
    uint64_t attributes[8] = {0}; /* axis 0 */
    return eddy_interpreter_apply_one(eddy_op_find("index_select"), inputs, 2, attributes,
                                      __builtin_return_address(0));
}

static inline eddy_tensor *f32(eddy_shape shape, const float *values) {
    return eddy_from_data(values, shape, EDDY_F32, NULL);
}
#define F32(shape, ...) f32(shape, (const float[]){__VA_ARGS__})

static inline eddy_tensor *i64(eddy_shape shape, const int64_t *values) {
    return eddy_from_data(values, shape, EDDY_I64, NULL);
}
#define I64(shape, ...) i64(shape, (const int64_t[]){__VA_ARGS__})

/* 0, 1, 2, ... */
static inline eddy_tensor *counting(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    float *values = calloc((size_t)(count > 0 ? count : 1), sizeof(*values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)i;
    eddy_tensor *tensor = f32(shape, values);
    free(values);
    return tensor;
}

static inline eddy_tensor *empty_of(eddy_dtype dtype, eddy_shape shape) {
    static const char zeros[4096];
    return eddy_from_data(zeros, shape, dtype, NULL);
}

static inline bool has_shape(const eddy_tensor *tensor, eddy_shape shape) {
    eddy_shape is = eddy_shape_of(tensor);
    return is.rank == shape.rank &&
           memcmp(is.dims, shape.dims, (size_t)is.rank * sizeof(is.dims[0])) == 0;
}

#define ASSERT_F32(tensor, ...)                                                                    \
    do {                                                                                           \
        const float expected_[] = {__VA_ARGS__};                                                   \
        float got_[sizeof(expected_) / sizeof(float)];                                             \
        cr_assert_eq(eddy_read(tensor, got_, sizeof(got_), NULL), EDDY_OK);                        \
        for (size_t i_ = 0; i_ < sizeof(expected_) / sizeof(float); i_++)                          \
            cr_assert_eq(got_[i_], expected_[i_], "element %zu: %g instead of %g", i_,             \
                         (double)got_[i_], (double)expected_[i_]);                                 \
    } while (0)

/* The slot holds an error of this status whose sentence has `part` in it. */
#define ASSERT_ERROR(wanted, part)                                                                 \
    do {                                                                                           \
        eddy_error error_;                                                                         \
        cr_assert_eq(eddy_error_take(&error_), wanted, "%s: %s", eddy_status_name(error_.status),  \
                     error_.message);                                                              \
        cr_assert_not_null(strstr(error_.message, part), "\"%s\" lacks \"%s\"", error_.message,    \
                           part);                                                                  \
    } while (0)

#endif
