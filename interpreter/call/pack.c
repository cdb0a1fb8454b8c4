/* Packs a general call: the VM's operands, and the arguments of its instruction. */
#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/general_call.h>
#include <interpreter/call/packed_writer.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

/* ---- elementwise: one shape ---- */

static const eddy_shape *joint_shape(const eddy_general_call *call) {
    if (call->op->output_count > 0)
        return &call->output_specs[0].shape;
    /* Without outputs the written operand has the joint shape. */
    for (int32_t i = 0; i < call->op->operand_count; i++)
        if (call->op->operands[i].is_mut)
            return &call->specs[i].shape;
    return &call->specs[0].shape;
}

static eddy_status join_view(const eddy_general_call *call, int64_t i, eddy_joint *j) {
    eddy_layout layout = {0};
    if (!eddy_tensor_is_none(call->views[i]))
        eddy_tensor_layout(call->views[i], &layout);
    if (!eddy_joint_set(j, i, &layout))
        return eddy_infer_fail(&call->infer, EDDY_SHAPE_MISMATCH,
                               "operand %lld cannot be broadcast", (long long)i);
    return EDDY_OK;
}

/* New outputs get the layout of the inputs, so that all are walked as one run. They are row-major so far. */
static void lay_results(const eddy_general_call *call, int64_t input_count, eddy_joint *j) {
    const eddy_shape *shape = &j->shape;
    bool is_row_major = true;
    for (int64_t i = 0; i < input_count; i++)
        is_row_major =
            is_row_major && (eddy_tensor_is_none(call->views[i]) || call->views[i]->is_contiguous);
    if (is_row_major)
        return;
    eddy_layout layout = {.rank = shape->rank};
    memcpy(layout.dims, shape->dims, sizeof(layout.dims));
    eddy_shape_strides_follow(shape->rank, shape->dims, j->strides, (int)input_count,
                              layout.strides);
    for (int32_t i = 0; i < call->op->output_count; i++)
        eddy_tensor_set_layout(call->results[i], &layout);
}

static eddy_status join(const eddy_general_call *call, eddy_joint *j) {
    int64_t view_count = call->view_count;
    if (view_count > EDDY_JOINT_VIEWS)
        return eddy_infer_fail(&call->infer, EDDY_UNSUPPORTED,
                               "elementwise ops take no more than %d operands", EDDY_JOINT_VIEWS);
    const eddy_shape *shape = joint_shape(call);
    j->shape.rank = shape->rank;
    memcpy(j->shape.dims, shape->dims, sizeof(j->shape.dims));
    int64_t input_count = view_count - call->op->output_count;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < view_count && status == EDDY_OK; i++) {
        if (i == input_count && !call->apply->targets)
            lay_results(call, input_count, j);
        status = join_view(call, i, j);
    }
    if (status == EDDY_OK)
        eddy_joint_merge(j, view_count);
    return status;
}

/* ---- operands ---- */

static void list_input(eddy_general_call *call, int64_t i, int64_t view) {
    const eddy_call_operand *operand = &call->operands[i];
    bool is_mut = operand->kind->is_mut;
    call->views[view] = operand->tensor;
    call->packed->views[view] = (eddy_packed_view){.rank = -1, .is_written = is_mut};
    if (call->specs[i].is_absent)
        return;
    /* An elementwise op without outputs writes its target and does not read it. */
    bool covers = is_mut && call->op->is_elementwise && call->op->output_count == 0 &&
                  eddy_general_targets_cover(call, operand->tensor, i);
    call->vm_operands[call->vm_operand_count++] =
        (eddy_vm_operand){.storage = operand->tensor->storage,
                          .access = is_mut ? EDDY_ACCESS_MUT : EDDY_ACCESS_CONST,
                          .covers_all = covers};
}

static void list_output(eddy_general_call *call, int32_t i, int64_t view) {
    bool is_late = call->op->has_late_shape;
    eddy_tensor *target = call->apply->targets ? call->apply->targets[i] : NULL,
                *result = call->results[i];
    eddy_vm_operand *operand = &call->vm_operands[call->vm_operand_count++];
    call->views[view] = target ? target : result;
    call->packed->views[view] = (eddy_packed_view){.is_late = is_late, .is_written = true};
    if (target)
        *operand = (eddy_vm_operand){.storage = target->storage,
                                     .access = EDDY_ACCESS_MUT,
                                     .covers_all = eddy_general_targets_cover(call, target, -1)};
    else
        *operand = (eddy_vm_operand){
            .access = is_late ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT,
            .is_new = true,
            .device = call->vm_device,
            .bytes = is_late ? 0 : result->count * eddy_dtype_size((eddy_dtype)result->dtype)};
}

/* Views and operands of the kernel's inputs, then of the outputs. */
static void list_views(eddy_general_call *call) {
    int64_t view = 0;
    call->vm_operand_count = 0;
    for (int64_t i = 0; i < call->input_count; i++)
        if (!call->operands[i].kind->is_spec_only)
            list_input(call, i, view++);
    call->packed->input_count = (uint32_t)view;
    for (int32_t i = 0; i < call->op->output_count; i++)
        list_output(call, i, view++);
    EDDY_ASSERT(view == call->view_count);
}

/* ---- views ---- */

/* The number of the tensor's shape. A target that is written to repeatedly has one from the second time on. */
static uint32_t shape_number(eddy_tensor *tensor) {
    if (eddy_load_relaxed(&tensor->key) == 0)
        (void)eddy_tensor_find_key(tensor);
    return eddy_tensor_shape_number(tensor);
}

static void write_view(eddy_packed_writer *writer, int64_t i, eddy_tensor *tensor,
                       const eddy_joint *j) {
    eddy_packed_view *view = &writer->call->views[i];
    view->dtype = (uint8_t)tensor->dtype;
    view->offset = tensor->offset;
    if (j) {
        eddy_packed_writer_joint(writer, i, j, shape_number(tensor));
        return;
    }
    int32_t rank = tensor->rank;
    int64_t *dims = eddy_packed_writer_view(writer, i, rank), *strides = dims + rank;
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = tensor->axes[d].dim;
        strides[d] = tensor->axes[d].stride;
    }
}

static eddy_status prepare(eddy_general_call *call) {
    eddy_status status = eddy_packed_prepare(call->packed, &call->packed_bytes, &call->cost_ps);
    if (EDDY_LIKELY(status == EDDY_OK))
        return EDDY_OK;
    return eddy_infer_fail(&call->infer, status, "the kernel cannot be prepared: %s",
                           eddy_status_text(status));
}

eddy_status eddy_general_pack(eddy_general_call *call, const eddy_kernel *kernel) {
    const eddy_op *op = call->op;
    eddy_packed_arguments *packed = call->packed;
    packed->op = op;
    packed->kernel = kernel;
    packed->view_count = (uint32_t)call->view_count;
    packed->late_count = op->has_late_shape ? (uint32_t)op->output_count : 0;
    list_views(call);
    eddy_joint seen;
    eddy_status status = op->is_elementwise ? join(call, &seen) : EDDY_OK;
    if (status != EDDY_OK)
        return status;
    eddy_packed_writer writer;
    eddy_packed_writer_begin(&writer, packed, call->apply->attributes);
    for (int64_t i = 0; i < call->view_count; i++)
        if (!eddy_tensor_is_none(call->views[i]))
            write_view(&writer, i, call->views[i], op->is_elementwise ? &seen : NULL);
    call->packed_bytes = eddy_packed_writer_bytes(&writer);
    EDDY_ASSERT((char *)packed + call->packed_bytes + EDDY_KERNEL_PLAN_BYTES <=
                (char *)call->memory + call->memory_bytes);
    return prepare(call);
}
