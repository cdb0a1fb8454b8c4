#include <program/tensor_list.h>

#include <base/dtype.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/general_call.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

/* ---- kernels ---- */

static void copy_row(const eddy_op_view *from, const eddy_op_view *to) {
    int64_t count = from->shape[0], size = eddy_dtype_size(from->dtype);
    const char *source = from->data;
    char *target = to->data;
    if (from->strides[0] == 1 && to->strides[0] == 1) {
        memcpy(target, source, (size_t)(count * size));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(target + i * to->strides[0] * size, source + i * from->strides[0] * size,
               (size_t)size);
}

/* Row `at` of the list as a view; false where there is none. Shape and strides stay the list's. */
static bool find_row(const eddy_op_view *list, const eddy_op_view *at, eddy_op_view *row) {
    int64_t number;
    memcpy(&number, at->data, sizeof(number));
    if (number < 0 || number >= list->shape[0] || list->shape[1] == 0)
        return false;
    *row = (eddy_op_view){.data = (char *)list->data +
                                  number * list->strides[0] * (int64_t)eddy_dtype_size(list->dtype),
                          .shape = list->shape + 1,
                          .strides = list->strides + 1,
                          .dtype = list->dtype,
                          .rank = 1};
    return true;
}

static void run_set(const eddy_kernel_call *call) {
    eddy_op_view row;
    if (find_row(&call->views[2], &call->views[1], &row))
        copy_row(&call->views[0], &row);
}

static void run_get(const eddy_kernel_call *call) {
    eddy_op_view row;
    const eddy_op_view *made = &call->views[2];
    int64_t size = eddy_dtype_size(made->dtype);
    if (find_row(&call->views[0], &call->views[1], &row)) {
        copy_row(&row, made);
        return;
    }
    for (int64_t i = 0; i < made->shape[0]; i++)
        memset((char *)made->data + i * made->strides[0] * size, 0, (size_t)size);
}

/* ---- ops ---- */

static eddy_status check_at(eddy_infer *infer, const eddy_spec *list, const eddy_spec *at) {
    if (list->shape.rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "a list has rank 2");
    if (at->shape.rank != 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "the number of a row has rank 0");
    return at->dtype == EDDY_I64
               ? EDDY_OK
               : eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "the number of a row is i64");
}

static eddy_status infer_set(eddy_infer *infer) {
    const eddy_spec *row = &infer->inputs[0], *list = &infer->inputs[2];
    eddy_status status = check_at(infer, list, &infer->inputs[1]);
    if (status != EDDY_OK)
        return status;
    if (row->shape.rank != 1 || row->shape.dims[0] != list->shape.dims[1])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "it is no row of the list");
    return row->dtype == list->dtype
               ? EDDY_OK
               : eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "row and list have different dtypes");
}

static eddy_status infer_get(eddy_infer *infer) {
    const eddy_spec *list = &infer->inputs[0];
    infer->outputs[0] =
        (eddy_spec){.dtype = list->dtype, .shape = {.rank = 1, .dims = {list->shape.dims[1]}}};
    return check_at(infer, list, &infer->inputs[1]);
}

static const eddy_kernel get_kernel = {.name = "list_get", .run = run_get},
                         set_kernel = {.name = "list_set", .run = run_set};
static const eddy_kernel *const get_kernels[] = {&get_kernel};
static const eddy_kernel *const set_kernels[] = {&set_kernel};

static const eddy_op_operand set_operands[] = {
    {.name = "row", .kind = EDDY_OPERAND_TENSOR},
    {.name = "at", .kind = EDDY_OPERAND_TENSOR},
    {.name = "list", .kind = EDDY_OPERAND_TENSOR, .is_mut = true},
};
static const eddy_op_operand get_operands[] = {
    {.name = "list", .kind = EDDY_OPERAND_TENSOR},
    {.name = "at", .kind = EDDY_OPERAND_TENSOR},
};
static const char *const get_outputs[] = {"row"};

static const eddy_op list_set = {.name = "list_set",
                                 .id = EDDY_OP_REGISTERED,
                                 .operands = set_operands,
                                 .operand_count = 3,
                                 .result = EDDY_RESULT_RULE,
                                 .infer = infer_set,
                                 .kernels = set_kernels},
                     list_get = {.name = "list_get",
                                 .id = EDDY_OP_REGISTERED,
                                 .operands = get_operands,
                                 .operand_count = 2,
                                 .outputs = get_outputs,
                                 .output_count = 1,
                                 .result = EDDY_RESULT_RULE,
                                 .infer = infer_get,
                                 .kernels = get_kernels};

const eddy_op *eddy_tensor_list_find(const char *name) {
    return strcmp(name, list_set.name) == 0   ? &list_set
           : strcmp(name, list_get.name) == 0 ? &list_get
                                              : NULL;
}

/* ---- views ---- */

/* A row-major view of a tensor that is row-major, or of a copy. */
static eddy_status view(eddy_caller *caller, eddy_tensor *tensor, const eddy_shape *shape,
                        eddy_origin origin, eddy_tensor **made) {
    eddy_tensor *from = tensor;
    eddy_layout layout = {.rank = shape->rank};
    int64_t stride = 1;
    eddy_status status = tensor->is_contiguous
                             ? EDDY_OK
                             : eddy_copy_contiguous(caller, tensor, origin.address, &from);
    if (status != EDDY_OK)
        return status;
    for (int32_t d = shape->rank; d-- > 0; stride *= shape->dims[d] > 0 ? shape->dims[d] : 1) {
        layout.dims[d] = shape->dims[d];
        layout.strides[d] = stride;
    }
    layout.offset = from->offset;
    *made = eddy_tensor_view(caller, from, &layout, origin);
    if (from != tensor)
        eddy_tensor_drop(from);
    return *made ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

eddy_status eddy_tensor_list_view(eddy_caller *caller, eddy_tensor *tensor, int64_t rows,
                                  eddy_origin origin, eddy_tensor **list) {
    eddy_shape shape = {2, {rows, tensor->count / rows}};
    return view(caller, tensor, &shape, origin, list);
}

eddy_status eddy_tensor_list_flatten(eddy_caller *caller, eddy_tensor *tensor, eddy_origin origin,
                                     eddy_tensor **row) {
    eddy_shape shape = {1, {tensor->count}};
    return view(caller, tensor, &shape, origin, row);
}

eddy_status eddy_tensor_list_shape(eddy_caller *caller, eddy_tensor *row, const eddy_shape *shape,
                                   eddy_origin origin, eddy_tensor **shaped) {
    return view(caller, row, shape, origin, shaped);
}

/* ---- calls ---- */

eddy_status eddy_tensor_list_make(eddy_caller *caller, eddy_device device, eddy_dtype dtype,
                                  int64_t count, int64_t rows, eddy_tensor **list) {
    eddy_scope *scope = caller->scope;
    eddy_outcome outcome;
    caller->scope = NULL; /* no scope may own it */
    eddy_outcome_begin(&outcome);
    eddy_tensor *made =
        eddy_zeros(EDDY_SHAPE(rows, count), dtype, EDDY_OPTIONS(zeros, .device = device));
    eddy_outcome_end(&outcome);
    caller->scope = scope;
    *list = made;
    return made ? EDDY_OK : eddy_outcome_why(&outcome);
}

eddy_status eddy_tensor_list_set(eddy_caller *caller, eddy_tensor *row, eddy_tensor *at,
                                 eddy_tensor *list, const void *address) {
    eddy_tensor *inputs[] = {row, at, list};
    eddy_apply apply = {.op = &list_set, .inputs = inputs, .input_count = 3, .address = address};
    return eddy_general_call_apply(caller, &apply);
}

eddy_status eddy_tensor_list_get(eddy_caller *caller, eddy_tensor *list, eddy_tensor *at,
                                 const void *address, eddy_tensor **row) {
    eddy_tensor *inputs[] = {list, at};
    eddy_apply apply = {
        .op = &list_get, .inputs = inputs, .input_count = 2, .outputs = row, .address = address};
    eddy_scope *scope = caller->scope;
    caller->scope = NULL;
    eddy_status status = eddy_general_call_apply(caller, &apply);
    caller->scope = scope;
    return status;
}
