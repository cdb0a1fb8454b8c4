/* Tests of whole tensors. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

static eddy_status one_answer(eddy_infer *infer) {
    infer->outputs[0].shape.rank = 0;
    infer->outputs[0].dtype = EDDY_BOOL;
    return eddy_check_same_dtype(infer, 0, 1);
}

eddy_status eddy_infer_equal(eddy_infer *infer) {
    return one_answer(infer);
}

eddy_status eddy_infer_allclose(eddy_infer *infer) {
    const eddy_arguments_allclose *arguments = infer->attributes;
    eddy_shape joint;
    if (!(arguments->rtol >= 0) || !(arguments->atol >= 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "rtol is %g and atol is %g",
                               arguments->rtol, arguments->atol);
    if (!eddy_shape_broadcast(&infer->inputs[0].shape, &infer->inputs[1].shape, &joint))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "a and b cannot be broadcast");
    return one_answer(infer);
}
