/* outer and meshgrid: vectors along axes of their own. */
#include <eddy/compose.h>

#include <base/shape.h>
#include <base/status.h>
#include <eddy/view.h>
#include <functional/arguments.h>
#include <functional/composition.h>
#include <functional/op_table.h>
#include <functional/parameter.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/tensor.h>

/* Operand `i`, a tensor that was checked, has the rank of a vector; with `allows_number` it may be a number too. */
static eddy_status check_vector(eddy_list operands, int64_t i, bool allows_number,
                                eddy_origin origin) {
    eddy_tensor *tensor = operands.items[i];
    eddy_status status = eddy_tensor_await_shape(tensor, origin);
    if (status != EDDY_OK)
        return status;
    if (tensor->rank > 1 || (tensor->rank == 0 && !allows_number))
        return eddy_parameter_fail(EDDY_SHAPE_MISMATCH, origin, operands,
                                   "operand %lld is no vector", (long long)i);
    return EDDY_OK;
}

static eddy_status outer(eddy_tensor *a, eddy_tensor *b, eddy_tensor **result, eddy_origin origin) {
    eddy_status status = eddy_tensor_check(a, "a", origin);
    if (status == EDDY_OK)
        status = eddy_tensor_check(b, "b", origin);
    if (status == EDDY_OK)
        status = check_vector(EDDY_LIST(a, b), 0, false, origin);
    if (status == EDDY_OK)
        status = check_vector(EDDY_LIST(a, b), 1, false, origin);
    if (status != EDDY_OK)
        return status;
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *column = eddy_unsqueeze(a, 1), *product = NULL;
    eddy_tensor *inputs[] = {column, b};
    if (column)
        product = eddy_interpreter_apply_one(&eddy_op_mul, inputs, 2, NULL, origin.address);
    eddy_release(&column);
    eddy_outcome_end(&outcome);
    if (!product)
        return eddy_outcome_why(&outcome);
    *result = product;
    return EDDY_OK;
}

eddy_tensor *eddy_outer(eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *result = NULL;
    return outer(a, b, &result, EDDY_ORIGIN("outer")) == EDDY_OK ? result : NULL;
}

eddy_status eddy_composition_outer(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                   eddy_origin origin) {
    (void)arguments;
    return outer(inputs.items[0], inputs.items[1], &outputs[0], origin);
}

/* A vector along axis `axis` of the shape, repeated along the others. */
static eddy_tensor *lay(eddy_tensor *vector, const eddy_shape *shape, int32_t axis) {
    eddy_shape alone = {.rank = shape->rank};
    for (int32_t d = 0; d < shape->rank; d++)
        alone.dims[d] = d == axis ? shape->dims[d] : 1;
    eddy_tensor *laid = eddy_view(vector, alone), *result = NULL;
    if (laid)
        result = eddy_expand(laid, *shape);
    eddy_release(&laid);
    return result;
}

static eddy_status meshgrid(eddy_list tensors, int32_t indexing, eddy_tensor **outputs,
                            eddy_origin origin) {
    if (!tensors.items || !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s is NULL",
                         outputs ? "the list of tensors" : "outputs");
    if (tensors.count < 1 || tensors.count > EDDY_RANK_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "there are %lld tensors, 1 to %d are possible", (long long)tensors.count,
                         EDDY_RANK_MAX);
    eddy_status choice = eddy_parameter_choice(indexing, 2, "indexing", origin, tensors);
    if (choice != EDDY_OK)
        return choice;
    int32_t count = (int32_t)tensors.count;
    bool is_turned = indexing == EDDY_INDEXING_XY && count > 1;
    eddy_shape shape = {.rank = count};
    int32_t axes[EDDY_RANK_MAX];
    for (int32_t i = 0; i < count; i++) {
        eddy_tensor *tensor = tensors.items[i];
        eddy_status status = eddy_tensor_check_item(tensor, "tensors", i, origin);
        if (status == EDDY_OK)
            status = check_vector(tensors, i, true, origin);
        if (status != EDDY_OK)
            return status;
        if (tensor->dtype != tensors.items[0]->dtype)
            return eddy_parameter_fail(EDDY_DTYPE_MISMATCH, origin, tensors,
                                       "tensor %d differs in dtype", (int)i);
        axes[i] = is_turned && i < 2 ? 1 - i : i;
        shape.dims[axes[i]] = tensor->count;
    }
    if (!eddy_shape_is_valid(&shape))
        return eddy_parameter_fail(EDDY_SIZE_OVERFLOW, origin, tensors,
                                   "the grid does not fit into 62 bits");
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    int32_t laid = 0;
    while (laid < count && (outputs[laid] = lay(tensors.items[laid], &shape, axes[laid])))
        laid++;
    eddy_outcome_end(&outcome);
    if (laid == count)
        return EDDY_OK;
    while (laid-- > 0)
        eddy_release(&outputs[laid]);
    return eddy_outcome_why(&outcome);
}

eddy_status eddy_meshgrid(eddy_list tensors, eddy_indexing indexing, eddy_tensor **outputs) {
    return meshgrid(tensors, (int32_t)indexing, outputs, EDDY_ORIGIN("meshgrid"));
}

eddy_status eddy_composition_meshgrid(eddy_list inputs, const void *arguments,
                                      eddy_tensor **outputs, eddy_origin origin) {
    return meshgrid(inputs, ((const eddy_arguments_meshgrid *)arguments)->indexing, outputs,
                    origin);
}
