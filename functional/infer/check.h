/* Checks of several shape rules. Each records its failure. */
#ifndef EDDY_FUNCTIONAL_INFER_CHECK_H
#define EDDY_FUNCTIONAL_INFER_CHECK_H

#include <base/assert.h>
#include <interpreter/call/op.h>

/* Makes a negative axis of the attributes count from the front; OUT_OF_RANGE. */
EDDY_MUST_USE eddy_status eddy_check_axis(const eddy_infer *infer, int32_t *axis, int32_t rank);
/* Completes a mask of axes now that the rank is known (interpreter/call/op.h tells its form before), an empty list too: as in
 * PyTorch it means all axes. OUT_OF_RANGE, INVALID_ARGUMENT (named twice). */
EDDY_MUST_USE eddy_status eddy_check_axes(const eddy_infer *infer, uint32_t *mask, int32_t rank);
/* Input `i` is f32, f64, f16 or bf16; DTYPE_MISMATCH. */
EDDY_MUST_USE eddy_status eddy_check_float(const eddy_infer *infer, int64_t i);
/* Input `i` is i64 or i32; DTYPE_MISMATCH. */
EDDY_MUST_USE eddy_status eddy_check_index(const eddy_infer *infer, int64_t i);
/* Inputs `i` and `j` have one dtype; DTYPE_MISMATCH. */
EDDY_MUST_USE eddy_status eddy_check_same_dtype(const eddy_infer *infer, int64_t i, int64_t j);
/* Inputs `i` and `j` have one shape; SHAPE_MISMATCH. */
EDDY_MUST_USE eddy_status eddy_check_same_shape(const eddy_infer *infer, int64_t i, int64_t j);
/* A dtype of the attributes is one; INVALID_ARGUMENT. */
EDDY_MUST_USE eddy_status eddy_check_dtype(const eddy_infer *infer, eddy_dtype dtype);

/* The name of the operand that input `i` belongs to. */
typedef struct eddy_check_text {
    char text[64];
} eddy_check_text;
eddy_check_text eddy_check_name(const eddy_infer *infer, int64_t i);

#endif
