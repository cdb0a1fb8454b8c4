/* One call of a shape rule, in one line. */
#ifndef EDDY_TESTS_FUNCTIONAL_INFERRING_H
#define EDDY_TESTS_FUNCTIONAL_INFERRING_H

#include <criterion/criterion.h>
#include <functional/arguments.h>
#include <functional/op_table.h>
#include <string.h>

#define ABSENT ((eddy_spec){.dtype = EDDY_F32, .is_absent = true})
#define SPEC(type, ...) ((eddy_spec){.dtype = EDDY_##type, .shape = EDDY_SHAPE(__VA_ARGS__)})

static inline eddy_status infer_of(const eddy_op *op, const eddy_spec *inputs, int64_t count,
                                   void *attributes, eddy_spec *output) {
    eddy_infer call = {.op = op,
                       .inputs = inputs,
                       .input_count = count,
                       .attributes = attributes,
                       .outputs = output};
    for (int32_t i = 0; i < op->output_count; i++)
        output[i] = (eddy_spec){.dtype = EDDY_DTYPE_COUNT, .shape = {.rank = -1}};
    return op->infer(&call);
}

/* The op takes these inputs and gives this. */
#define ACCEPTS(name, attributes, type, joint, ...)                                                \
    do {                                                                                           \
        const eddy_spec in_[] = {__VA_ARGS__};                                                     \
        eddy_spec out_[8];                                                                         \
        cr_assert_eq(                                                                              \
            infer_of(&eddy_op_##name, in_, sizeof(in_) / sizeof(in_[0]), attributes, out_),        \
            EDDY_OK);                                                                              \
        const eddy_shape want_ = joint;                                                            \
        cr_assert_eq(out_[0].dtype, EDDY_##type, "%s", eddy_dtype_name(out_[0].dtype));            \
        cr_assert_eq(out_[0].shape.rank, want_.rank);                                              \
        for (int32_t d_ = 0; d_ < want_.rank; d_++)                                                \
            cr_assert_eq(out_[0].shape.dims[d_], want_.dims[d_]);                                  \
    } while (0)

/* The op refuses these inputs, with this status and a sentence that has `part` in it. */
#define REFUSES(name, attributes, wanted, part, ...)                                               \
    do {                                                                                           \
        const eddy_spec in_[] = {__VA_ARGS__};                                                     \
        eddy_spec out_[8];                                                                         \
        eddy_error error_;                                                                         \
        cr_assert_eq(                                                                              \
            infer_of(&eddy_op_##name, in_, sizeof(in_) / sizeof(in_[0]), attributes, out_),        \
            EDDY_##wanted);                                                                        \
        (void)eddy_error_take(&error_);                                                            \
        cr_assert_not_null(strstr(error_.message, part), "\"%s\" lacks \"%s\"", error_.message,    \
                           part);                                                                  \
    } while (0)

#endif
