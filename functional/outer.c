/* outer and meshgrid: vectors laid along axes of their own. */
#include <eddy/compose.h>

#include <base/shape.h>
#include <base/status.h>
#include <eddy/view.h>
#include <functional/op_table.h>
#include <interpreter/apply.h>
#include <interpreter/tensor.h>

static eddy_status check_vector(eddy_tensor *tensor, int32_t lowest_rank, const char *op, const void *address) {
    if (!eddy_tensor_check(tensor, op, "an operand", address))
        return EDDY_INVALID_ARGUMENT;
    eddy_status status = eddy_tensor_await_shape(tensor, op, address);
    if (status != EDDY_OK)
        return status;
    if (tensor->rank > 1 || tensor->rank < lowest_rank) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        return eddy_fail(EDDY_SHAPE_MISMATCH, op, address, "%s: %s is no vector", op, text);
    }
    return EDDY_OK;
}

eddy_tensor *eddy_outer(eddy_tensor *a, eddy_tensor *b) {
    const void *address = __builtin_return_address(0);
    if (check_vector(a, 1, "outer", address) != EDDY_OK || check_vector(b, 1, "outer", address) != EDDY_OK)
        return NULL;
    eddy_tensor *column = eddy_unsqueeze(a, 1), *result = NULL;
    eddy_tensor *inputs[] = {column, b};
    if (column)
        result = eddy_interpreter_apply_one(&eddy_op_mul, inputs, 2, NULL, address);
    eddy_release(&column);
    return result;
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

eddy_status eddy_meshgrid(eddy_list tensors, eddy_indexing indexing, eddy_tensor **outputs) {
    const void *address = __builtin_return_address(0);
    if (tensors.count < 1 || tensors.count > EDDY_RANK_MAX || !tensors.items || !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, "meshgrid", address, "meshgrid: there must be 1 to %d tensors",
                         EDDY_RANK_MAX);
    if (indexing != EDDY_INDEXING_IJ && indexing != EDDY_INDEXING_XY)
        return eddy_fail(EDDY_INVALID_ARGUMENT, "meshgrid", address, "meshgrid: %d is no indexing", (int)indexing);
    int32_t count = (int32_t)tensors.count;
    bool is_turned = indexing == EDDY_INDEXING_XY && count > 1;
    eddy_shape shape = {.rank = count};
    int32_t axes[EDDY_RANK_MAX];
    for (int32_t i = 0; i < count; i++) {
        eddy_tensor *tensor = tensors.items[i];
        eddy_status status = check_vector(tensor, 0, "meshgrid", address);
        if (status != EDDY_OK)
            return status;
        if (tensor->dtype != tensors.items[0]->dtype)
            return eddy_fail(EDDY_DTYPE_MISMATCH, "meshgrid", address, "meshgrid: tensor %d differs in dtype", (int)i);
        axes[i] = is_turned && i < 2 ? 1 - i : i;
        shape.dims[axes[i]] = tensor->count;
    }
    if (!eddy_shape_is_valid(&shape))
        return eddy_fail(EDDY_SIZE_OVERFLOW, "meshgrid", address, "meshgrid: the grid does not fit into 62 bits");
    for (int32_t i = 0; i < count; i++) {
        outputs[i] = lay(tensors.items[i], &shape, axes[i]);
        if (!outputs[i]) {
            while (i-- > 0)
                eddy_release(&outputs[i]);
            return EDDY_OUT_OF_MEMORY; /* everything else has been checked */
        }
    }
    return EDDY_OK;
}
