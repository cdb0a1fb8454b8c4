#include <interpreter/call/general_call.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/describe.h>
#include <interpreter/call/fast_call.h>
#include <interpreter/call/fast_op.h>
#include <interpreter/call/infer.h>
#include <interpreter/call/instruction.h>
#include <interpreter/call/list_gaps.h>
#include <interpreter/call/overlap.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

#define STACK_BYTES 6144

/* One call under way. Arrays lie in `memory`: on the stack, or in the thread's scratch where they are long. */
typedef struct plan {
    const eddy_apply *apply;
    const eddy_op *op;
    eddy_caller *caller;
    eddy_runtime *runtime;
    eddy_device device;
    eddy_dtype compute;
    int64_t input_count;
    eddy_tensor **inputs; /* the user's, or what they were cast to */
    eddy_tensor **views;  /* the tensors that the kernel sees; EDDY_NONE where absent */
    eddy_spec *specs;
    eddy_vm_operand *operands;
    eddy_packed_call *packed;
    eddy_spec *output_specs; /* EDDY_OP_OUTPUT_MAX; not in here, where they would be cleared for nothing */
    eddy_tensor *results[EDDY_OP_OUTPUT_MAX]; /* new tensors; NULL where there are targets */
    eddy_infer infer;
    void *memory;
    size_t memory_bytes;
    bool is_on_stack;
    int64_t cast_count; /* inputs that differ from the user's: temporaries to drop */
} plan;

/* ---- operands ---- */

/* `item` is which of a list it is. */
static eddy_status check_input(const plan *p, const eddy_op_operand *operand, int64_t item, eddy_tensor *input) {
    eddy_origin origin = eddy_apply_origin(p->apply);
    if (eddy_tensor_is_none(input) && operand->kind == EDDY_OPERAND_OPTIONAL)
        return EDDY_OK;
    eddy_status status = operand->kind == EDDY_OPERAND_LIST ? eddy_tensor_check_item(input, operand->name, item, origin)
                                                            : eddy_tensor_check(input, operand->name, origin);
    return status == EDDY_OK ? eddy_tensor_await_shape(input, origin) : status;
}

/* All inputs there, their shapes known. */
static eddy_status check_inputs(plan *p) {
    const eddy_apply *apply = p->apply;
    if (eddy_infer_input_count(p->op, apply->list_counts) != apply->input_count ||
        (apply->input_count > 0 && !apply->inputs))
        return eddy_fail(EDDY_INVALID_ARGUMENT, eddy_apply_origin(apply), "%lld operands do not fit the op",
                         (long long)apply->input_count);
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, apply->list_counts);
    for (int64_t i = 0; i < apply->input_count; i++) {
        const eddy_op_operand *operand = eddy_operand_walk_next(&walk);
        eddy_status status = check_input(p, operand, walk.item, apply->inputs[i]);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* One block for all arrays. */
static eddy_status take_memory(plan *p, void *stack) {
    const eddy_op *op = p->op;
    int64_t count = p->apply->input_count, views = count + op->output_count;
    size_t packed = sizeof(eddy_packed_call) + op->kernel_attribute_bytes + 8 + EDDY_KERNEL_PLAN_BYTES +
                    (size_t)op->output_count * (sizeof(eddy_packed_view) + 2 * EDDY_RANK_MAX * sizeof(int64_t));
    for (int64_t i = 0; i < count; i++)
        packed += sizeof(eddy_packed_view) +
                  (eddy_tensor_is_none(p->apply->inputs[i]) ? 0 : (size_t)p->apply->inputs[i]->rank * 16);
    /* Views of elementwise calls are seen under the joint shape. */
    if (op->is_elementwise)
        packed = eddy_packed_bytes_max(op, views);
    size_t bytes = (size_t)count * (sizeof(*p->specs) + sizeof(*p->inputs)) +
                   (size_t)views * (sizeof(*p->operands) + sizeof(*p->views)) + packed;
    p->is_on_stack = bytes <= STACK_BYTES;
    p->memory_bytes = bytes;
    p->memory = p->is_on_stack ? stack : eddy_caller_scratch_begin(p->caller, bytes);
    if (!p->memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_apply_origin(p->apply), "no memory for %lld operands",
                         (long long)count);
    p->specs = p->memory;
    p->inputs = (eddy_tensor **)(void *)(p->specs + count);
    p->views = p->inputs + count;
    p->operands = (eddy_vm_operand *)(void *)(p->views + views);
    p->packed = (eddy_packed_call *)(void *)(p->operands + views);
    return EDDY_OK;
}

static void fill_spec(eddy_spec *spec, const eddy_tensor *tensor) {
    spec->is_absent = eddy_tensor_is_none(tensor);
    if (spec->is_absent) {
        spec->dtype = EDDY_F32;
        spec->shape.rank = 0;
        return;
    }
    spec->dtype = (eddy_dtype)tensor->dtype;
    eddy_tensor_shape(tensor, &spec->shape);
}

static eddy_status fail_mixed(const plan *p, eddy_status status, int64_t i) {
    return eddy_infer_fail(&p->infer, status, "operand %lld lives on another %s than those before it", (long long)i,
                           status == EDDY_RUNTIME_MISMATCH ? "runtime" : "device");
}

static bool is_device(eddy_device a, eddy_device b) {
    return a.kind == b.kind && a.index == b.index;
}

/* Runtime and device: of the operands, else of the thread. */
static eddy_status find_place(plan *p) {
    const eddy_apply *apply = p->apply;
    bool has_device = false;
    for (int64_t i = 0; i < p->input_count; i++) {
        const eddy_tensor *input = p->inputs[i];
        if (p->specs[i].is_absent)
            continue;
        if (!p->runtime)
            p->runtime = input->runtime;
        else if (p->runtime != input->runtime)
            return fail_mixed(p, EDDY_RUNTIME_MISMATCH, i);
        if (!has_device)
            p->device = eddy_tensor_device(input);
        else if (!is_device(p->device, eddy_tensor_device(input)))
            return fail_mixed(p, EDDY_DEVICE_MISMATCH, i);
        has_device = true;
    }
    if (!p->runtime) {
        eddy_status status = eddy_runtime_of_caller(p->caller, eddy_apply_origin(apply), &p->runtime);
        if (status != EDDY_OK)
            return status;
    }
    if (!eddy_runtime_is_running(p->runtime)) {
        char operands[192];
        eddy_infer_describe(&p->infer, operands, sizeof(operands));
        return eddy_runtime_refuse(p->runtime, eddy_apply_origin(apply), operands);
    }
    bool is_asked = apply->device && apply->device->kind != EDDY_DEVICE_DEFAULT;
    if (has_device && !is_asked)
        return EDDY_OK;
    return eddy_runtime_device(p->caller, p->runtime, apply->device, eddy_apply_origin(apply), &p->device);
}

/* ---- promotion ---- */

static eddy_status check_conditions(const plan *p) {
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count; i++) {
        const eddy_op_operand *operand = eddy_operand_walk_next(&walk);
        if (operand->is_bool && !p->specs[i].is_absent && p->specs[i].dtype != EDDY_BOOL)
            return eddy_infer_fail(&p->infer, EDDY_DTYPE_MISMATCH, "%s has to be bool", operand->name);
    }
    return EDDY_OK;
}

static eddy_status cast_inputs(plan *p) {
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count; i++) {
        const eddy_op_operand *operand = eddy_operand_walk_next(&walk);
        if (p->specs[i].is_absent || p->inputs[i]->dtype == (uint8_t)p->compute ||
            !eddy_infer_is_promoted(p->op, operand))
            continue;
        eddy_status status = eddy_copy_cast(p->caller, p->inputs[i], p->compute, p->apply->address, &p->inputs[i]);
        if (status != EDDY_OK)
            return status;
        p->cast_count++;
    }
    return EDDY_OK;
}

static void drop_casts(plan *p) {
    for (int64_t i = 0; i < p->input_count && p->cast_count > 0; i++)
        if (p->inputs[i] != p->apply->inputs[i]) {
            eddy_tensor_drop(p->inputs[i]);
            p->cast_count--;
        }
}

/* The numbers of the call become numbers of the dtype that it computes in. */
static eddy_status convert_numbers(plan *p) {
    for (int32_t i = 0; i < p->op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &p->op->attributes[i];
        if (!attribute->is_held)
            continue;
        eddy_dtype dtype = i < p->op->scalar_count ? p->compute : p->output_specs[0].dtype;
        char *place = (char *)p->apply->attributes + attribute->offset;
        eddy_scalar number;
        memcpy(&number, place, sizeof(number));
        eddy_status status = eddy_infer_number(&p->infer, attribute->name, &number, dtype);
        if (status != EDDY_OK)
            return status;
        memcpy(place, &number, sizeof(number));
    }
    return EDDY_OK;
}

/* ---- targets ---- */

static bool covers_storage(const eddy_tensor *tensor) {
    return tensor->offset == 0 && tensor->count == tensor->root->count;
}

/* What is written to must name each element once. */
static eddy_status check_writable(const plan *p, const eddy_tensor *target, const char *name) {
    if (target->is_contiguous)
        return EDDY_OK;
    eddy_layout layout;
    eddy_tensor_layout(target, &layout);
    if (eddy_layout_is_injective(&layout))
        return EDDY_OK;
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(target, text, sizeof(text));
    return eddy_infer_fail(&p->infer, EDDY_OVERLAP, "%s %s cannot be written to: some of its elements share memory",
                           name, text);
}

/* What is written may be read only as exactly the same elements, and only where the op says so. */
static eddy_status check_pair(const plan *p, const eddy_tensor *written, const char *name, const eddy_tensor *other,
                              bool allows_alias) {
    if (written->storage != other->storage)
        return EDDY_OK;
    eddy_layout a, b;
    eddy_tensor_layout(written, &a);
    eddy_tensor_layout(other, &b);
    if ((allows_alias && eddy_layout_is_same(&a, &b)) || !eddy_layout_overlaps(&a, &b))
        return EDDY_OK;
    return eddy_infer_fail(&p->infer, EDDY_OVERLAP, "%s overlaps another operand in memory", name);
}

static bool is_read(const plan *p, eddy_storage_number storage, int64_t except) {
    for (int64_t i = 0; i < p->input_count; i++)
        if (i != except && !p->specs[i].is_absent && p->inputs[i]->storage == storage)
            return true;
    return false;
}

static eddy_status check_target(plan *p, int32_t i) {
    eddy_tensor *target = p->apply->targets[i];
    const eddy_spec *spec = &p->output_specs[i];
    eddy_origin origin = eddy_apply_origin(p->apply);
    eddy_status status = eddy_tensor_check(target, "target", origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(target, origin);
    if (status != EDDY_OK)
        return status;
    if (target->runtime != p->runtime)
        return eddy_infer_fail(&p->infer, EDDY_RUNTIME_MISMATCH, "the target belongs to another runtime");
    if (!is_device(eddy_tensor_device(target), p->device))
        return eddy_infer_fail(&p->infer, EDDY_DEVICE_MISMATCH, "the target lives on another device");
    eddy_shape shape;
    eddy_tensor_shape(target, &shape);
    bool fits = eddy_shape_equal(shape.rank, shape.dims, spec->shape.rank, spec->shape.dims);
    if (!fits || target->dtype != (uint8_t)spec->dtype) {
        char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(target, is, sizeof(is));
        eddy_shape_format(spec->shape.rank, spec->shape.dims, wanted, sizeof(wanted));
        return eddy_infer_fail(&p->infer, fits ? EDDY_DTYPE_MISMATCH : EDDY_SHAPE_MISMATCH,
                               "the result is %s%s, the target %s", eddy_dtype_name(spec->dtype), wanted, is);
    }
    status = check_writable(p, target, "target");
    for (int64_t k = 0; k < p->input_count && status == EDDY_OK; k++)
        if (!p->specs[k].is_absent)
            status = check_pair(p, target, "target", p->inputs[k],
                                p->op->allows_alias && p->specs[k].dtype == spec->dtype &&
                                    (k == 0 || !p->op->alias_is_first));
    for (int32_t k = 0; k < i && status == EDDY_OK; k++)
        status = check_pair(p, target, "target", p->apply->targets[k], false);
    return status;
}

/* Inputs by storage: a chain of those that share one, so that only they are compared in pairs. */
typedef struct sharing {
    uint32_t *heads; /* per bucket: 1 + the newest input in it, 0 for none */
    uint32_t *next;  /* per input: 1 + the one before it in the bucket */
    uint32_t mask;
    size_t bytes;
    uint32_t on_stack[768];
} sharing;

static bool sharing_init(sharing *s, const plan *p) {
    uint32_t buckets = 16;
    while (buckets < 2 * (uint64_t)p->input_count)
        buckets *= 2;
    s->bytes = ((size_t)buckets + (size_t)p->input_count) * sizeof(uint32_t);
    s->heads = s->bytes <= sizeof(s->on_stack) ? s->on_stack : eddy_memory_acquire(s->bytes, EDDY_MEMORY_ARGUMENT);
    if (!s->heads)
        return false;
    memset(s->heads, 0, buckets * sizeof(uint32_t));
    s->next = s->heads + buckets;
    s->mask = buckets - 1;
    return true;
}

static void sharing_fini(sharing *s) {
    if (s->heads != s->on_stack)
        eddy_memory_release(s->heads, s->bytes, EDDY_MEMORY_ARGUMENT);
}

static void sharing_add(sharing *s, const plan *p, int64_t i) {
    uint32_t *head = &s->heads[p->inputs[i]->storage & s->mask];
    s->next[i] = *head;
    *head = (uint32_t)i + 1;
}

/* Operands written in place: each against all others of its storage. */
static eddy_status check_mut_inputs(const plan *p) {
    sharing s;
    if (!sharing_init(&s, p))
        return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_apply_origin(p->apply), "no memory for the call");
    for (int64_t i = 0; i < p->input_count; i++)
        if (!p->specs[i].is_absent)
            sharing_add(&s, p, i);
    eddy_status status = EDDY_OK;
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count && status == EDDY_OK; i++) {
        const eddy_op_operand *operand = eddy_operand_walk_next(&walk);
        if (!operand->is_mut || p->specs[i].is_absent)
            continue;
        status = check_writable(p, p->inputs[i], operand->name);
        for (uint32_t k = s.heads[p->inputs[i]->storage & s.mask]; k != 0 && status == EDDY_OK; k = s.next[k - 1])
            if (k - 1 != (uint64_t)i)
                status = check_pair(p, p->inputs[i], operand->name, p->inputs[k - 1], p->op->allows_alias);
    }
    sharing_fini(&s);
    return status;
}

static bool has_mut_input(const eddy_op *op) {
    for (int32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].is_mut)
            return true;
    return false;
}

/* ---- results ---- */

static void discard_results(plan *p) {
    for (int32_t i = 0; i < p->op->output_count; i++)
        if (p->results[i])
            eddy_tensor_discard(p->caller, p->results[i]);
}

static bool wants_channels_last(const plan *p) {
    const eddy_op *op = p->op;
    return op->last_where > 0 && *((const bool *)p->apply->attributes + op->attributes[op->last_where - 1].offset);
}

static eddy_status make_results(plan *p) {
    const eddy_op *op = p->op;
    bool has_room = eddy_scope_reserve(p->caller, (uint32_t)op->output_count);
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_tensor *result = has_room ? eddy_tensor_acquire(p->caller, p->runtime, p->apply->address) : NULL;
        if (!result) {
            discard_results(p);
            return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_apply_origin(p->apply), "no memory for a handle");
        }
        const eddy_spec *spec = &p->output_specs[i];
        int64_t count = 1;
        for (int32_t d = 0; d < spec->shape.rank && !op->has_late_shape; d++)
            count *= spec->shape.dims[d];
        bool is_following = op->layout_of > 0 && op->layout_of <= p->input_count && !p->apply->is_row_major;
        const eddy_tensor *like = is_following ? p->inputs[op->layout_of - 1] : NULL;
        if (is_following && wants_channels_last(p))
            eddy_tensor_lay_last(result, &spec->shape);
        else if (like && like->rank == spec->shape.rank)
            eddy_tensor_lay_like(result, spec->shape.rank, spec->shape.dims, count, like);
        else
            eddy_tensor_lay(result, op->has_late_shape ? 0 : spec->shape.rank, spec->shape.dims, count);
        result->dtype = (uint8_t)spec->dtype;
        eddy_tensor_set_device(result, p->device);
        eddy_store_relaxed(&result->is_late, op->has_late_shape);
        p->results[i] = result;
    }
    return EDDY_OK;
}

/* ---- packing ---- */

/* The dims that all views of an elementwise call are seen under, merged where all allow it. */
typedef struct joint {
    int32_t rank;
    int64_t dims[EDDY_RANK_MAX];
    int64_t strides[EDDY_FAST_OPERANDS + EDDY_OP_OUTPUT_MAX][EDDY_RANK_MAX];
} joint;

static const eddy_shape *joint_shape(const plan *p) {
    if (p->op->output_count > 0)
        return &p->output_specs[0].shape;
    /* Only writes in place: the written operand has the shape. */
    for (int32_t i = 0; i < p->op->operand_count; i++)
        if (p->op->operands[i].is_mut)
            return &p->specs[i].shape;
    return &p->specs[0].shape;
}

/* The strides of view i under the joint shape. */
static eddy_status join_view(const plan *p, const eddy_shape *shape, int64_t i, joint *j) {
    eddy_layout layout = {0};
    if (!eddy_tensor_is_none(p->views[i]))
        eddy_tensor_layout(p->views[i], &layout);
    if (!eddy_layout_broadcast(&layout, shape, j->strides[i]))
        return eddy_infer_fail(&p->infer, EDDY_SHAPE_MISMATCH, "operand %lld cannot be broadcast", (long long)i);
    return EDDY_OK;
}

/* New outputs lie in memory as the inputs do, so that all are walked as one run. They are row-major so far. */
static void lay_results(const plan *p, const eddy_shape *shape, int64_t input_count, joint *j) {
    bool is_row_major = true;
    for (int64_t i = 0; i < input_count; i++)
        is_row_major = is_row_major && (eddy_tensor_is_none(p->views[i]) || p->views[i]->is_contiguous);
    if (is_row_major)
        return;
    eddy_layout layout = {.rank = shape->rank};
    memcpy(layout.dims, shape->dims, sizeof(layout.dims));
    eddy_strides_follow(shape->rank, shape->dims, j->strides, (int)input_count, layout.strides);
    for (int32_t i = 0; i < p->op->output_count; i++)
        eddy_tensor_set_layout(p->results[i], &layout);
}

static eddy_status join(const plan *p, int64_t view_count, joint *j) {
    if (view_count > (int64_t)(sizeof(j->strides) / sizeof(j->strides[0])))
        return eddy_infer_fail(&p->infer, EDDY_UNSUPPORTED, "elementwise ops take no more than %d operands",
                               (int)(sizeof(j->strides) / sizeof(j->strides[0])));
    const eddy_shape *shape = joint_shape(p);
    j->rank = shape->rank;
    memcpy(j->dims, shape->dims, sizeof(j->dims));
    int64_t input_count = view_count - p->op->output_count;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < view_count && status == EDDY_OK; i++) {
        if (i == input_count && !p->apply->targets)
            lay_results(p, shape, input_count, j);
        status = join_view(p, shape, i, j);
    }
    if (status != EDDY_OK)
        return status;
    eddy_layout_sort(j->rank, j->dims, j->strides, (int)view_count, (int)view_count - 1);
    eddy_layout_collapse(&j->rank, j->dims, j->strides, (int)view_count);
    return status;
}

typedef struct writer {
    eddy_packed_call *call;
    uint32_t words;
} writer;

static uint32_t write_words(writer *w, const int64_t *values, int32_t count) {
    uint32_t at = w->words;
    memcpy((int64_t *)(void *)w->call + at, values, (size_t)count * sizeof(*values));
    w->words += (uint32_t)count;
    return at;
}

/* Views and operands of the inputs that the kernel sees, then of the outputs; the views' number. */
static int64_t list_views(plan *p, int64_t *operand_count) {
    eddy_tensor **views = p->views;
    eddy_packed_call *call = p->packed;
    int64_t view = 0, operand = 0;
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count; i++) {
        const eddy_op_operand *kind = eddy_operand_walk_next(&walk);
        if (kind->is_spec_only)
            continue;
        eddy_tensor *input = p->inputs[i];
        views[view] = input;
        call->views[view] = (eddy_packed_view){.rank = -1, .is_written = kind->is_mut};
        view++;
        if (p->specs[i].is_absent)
            continue;
        /* An elementwise op without outputs writes its target and does not read it. */
        p->operands[operand++] =
            (eddy_vm_operand){.storage = input->storage,
                              .access = kind->is_mut ? EDDY_ACCESS_MUT : EDDY_ACCESS_CONST,
                              .covers_all = kind->is_mut && p->op->is_elementwise && p->op->output_count == 0 &&
                                            covers_storage(input) && !is_read(p, input->storage, i)};
    }
    call->input_count = (uint32_t)view;
    for (int32_t i = 0; i < p->op->output_count; i++) {
        eddy_tensor *target = p->apply->targets ? p->apply->targets[i] : NULL;
        eddy_tensor *result = p->results[i];
        views[view] = target ? target : result;
        call->views[view] = (eddy_packed_view){.is_late = p->op->has_late_shape, .is_written = true};
        view++;
        if (target)
            p->operands[operand++] =
                (eddy_vm_operand){.storage = target->storage,
                                  .access = EDDY_ACCESS_MUT,
                                  .covers_all = covers_storage(target) && !is_read(p, target->storage, -1)};
        else
            p->operands[operand++] = (eddy_vm_operand){
                .access = p->op->has_late_shape ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT,
                .is_new = true,
                .bytes =
                    p->op->has_late_shape ? 0 : result->count * (int64_t)eddy_dtype_bytes((eddy_dtype)result->dtype)};
    }
    *operand_count = operand;
    return view;
}

static void write_view(writer *w, int64_t i, eddy_tensor *tensor, const joint *j) {
    eddy_packed_view *view = &w->call->views[i];
    view->dtype = (uint8_t)tensor->dtype;
    view->offset = tensor->offset;
    if (j) {
        view->rank = (int8_t)j->rank;
        view->dims_at = w->call->views[0].dims_at;
        if (i == 0)
            view->dims_at = write_words(w, j->dims, j->rank);
        view->strides_at = write_words(w, j->strides[i], j->rank);
        /* What is written to again and again has a note from the second time on. */
        if (eddy_load_relaxed(&tensor->key) == 0)
            (void)eddy_tensor_find_key(tensor);
        view->shape_number = eddy_tensor_shape_number(tensor);
        return;
    }
    int64_t values[2 * EDDY_RANK_MAX];
    int32_t rank = tensor->rank;
    for (int32_t d = 0; d < rank; d++) {
        values[d] = tensor->axes[d].dim;
        values[rank + d] = tensor->axes[d].stride;
    }
    view->rank = (int8_t)rank;
    view->dims_at = write_words(w, values, 2 * rank);
    view->strides_at = view->dims_at + (uint32_t)rank;
}

/* Fills p->packed and p->operands; *bytes of the former. */
static eddy_status pack(plan *p, const eddy_kernel *kernel, int64_t *operand_count, size_t *bytes) {
    eddy_tensor **views = p->views;
    eddy_packed_call *call = p->packed;
    *call = (eddy_packed_call){.op = p->op, .kernel = kernel};
    int64_t view_count = list_views(p, operand_count);
    call->view_count = (uint32_t)view_count;
    call->late_count = p->op->has_late_shape ? (uint32_t)p->op->output_count : 0;
    joint j;
    if (p->op->is_elementwise) {
        eddy_status status = join(p, view_count, &j);
        if (status != EDDY_OK)
            return status;
    }
    writer w = {call, (uint32_t)((sizeof(*call) + (size_t)view_count * sizeof(*call->views)) / sizeof(int64_t))};
    call->attributes_at = w.words;
    size_t attribute_bytes = p->op->kernel_attribute_bytes;
    if (attribute_bytes > 0)
        memcpy((int64_t *)(void *)call + w.words, p->apply->attributes, attribute_bytes);
    w.words += (uint32_t)((attribute_bytes + 7) / 8);
    for (int64_t i = 0; i < view_count; i++)
        if (!eddy_tensor_is_none(views[i]))
            write_view(&w, i, views[i], p->op->is_elementwise ? &j : NULL);
    *bytes = w.words * sizeof(int64_t);
    return EDDY_OK;
}

/* ---- submission ---- */

static const eddy_kernel *find_kernel(const plan *p) {
    return p->op->kernels ? p->op->kernels[p->op->is_elementwise ? p->compute : 0] : NULL;
}

static void keep_results(plan *p, int64_t operand_count) {
    const eddy_op *op = p->op;
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_tensor *result = p->results[i];
        if (!result)
            continue;
        result->storage = p->operands[operand_count - op->output_count + i].storage;
        eddy_scope_own(p->caller, result);
        p->apply->outputs[i] = result;
    }
}

/* For gradients: what was saved of these is no longer what it was. */
static void note_writes(const plan *p) {
    for (int32_t i = 0; p->apply->targets && i < p->op->output_count; i++)
        eddy_tensor_written(p->apply->targets[i]);
    if (!has_mut_input(p->op))
        return;
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count; i++)
        if (eddy_operand_walk_next(&walk)->is_mut && !p->specs[i].is_absent)
            eddy_tensor_written(p->inputs[i]);
}

/* What a random op is keyed by, into the first two words of its attributes. */
static eddy_status draw(const plan *p) {
    const eddy_op *op = p->op;
    unsigned char *attributes = p->apply->attributes;
    uint64_t state[2] = {0};
    double chance = 1;
    if (op->chance_of > 0)
        memcpy(&chance, attributes + op->attributes[op->chance_of - 1].offset, sizeof(chance));
    eddy_status status = EDDY_OK;
    if (chance != 0)
        status = eddy_generator_draw(p->caller, p->runtime, p->apply->generator, eddy_apply_origin(p->apply), &state[0],
                                     &state[1]);
    memcpy(attributes, state, sizeof(state));
    return status;
}

static eddy_status prepare(const plan *p, size_t *bytes, int64_t *cost_ps) {
    eddy_status status = eddy_packed_prepare(p->packed, bytes, cost_ps);
    if (status == EDDY_OK)
        return EDDY_OK;
    return eddy_infer_fail(&p->infer, status, "the kernel cannot be prepared: %s", eddy_status_text(status));
}

static eddy_status submit(plan *p) {
    const eddy_op *op = p->op;
    const eddy_kernel *kernel = find_kernel(p);
    if (!kernel)
        return eddy_infer_fail(&p->infer, EDDY_UNSUPPORTED, "not supported for %s", eddy_dtype_name(p->compute));
    int64_t operand_count, cost_ps = 0;
    size_t bytes;
    eddy_status status = op->is_random ? draw(p) : EDDY_OK;
    if (status != EDDY_OK)
        return status;
    if (!p->apply->targets)
        status = make_results(p);
    if (status != EDDY_OK)
        return status;
    status = pack(p, kernel, &operand_count, &bytes);
    if (status == EDDY_OK)
        status = prepare(p, &bytes, &cost_ps);
    if (status == EDDY_OK) {
        eddy_vm_call call = {.descriptor = eddy_packed_descriptor(p->packed),
                             .operands = p->operands,
                             .operand_count = operand_count,
                             .arguments = p->packed,
                             .argument_bytes = bytes,
                             .stream = eddy_stream_of_caller(p->caller, p->runtime),
                             .address = p->apply->address,
                             .cost_ps = cost_ps,
                             .place = op->is_registered ? EDDY_PLACE_WORKER : EDDY_PLACE_ANY,
                             .releases = p->caller->pending.numbers,
                             .release_count = eddy_pending_release_count(&p->caller->pending, p->runtime)};
        status = eddy_vm_submit(p->runtime->vm, &call);
        if (status != EDDY_OK)
            eddy_packed_end(p->packed);
    }
    if (status != EDDY_OK) {
        discard_results(p);
        return status;
    }
    keep_results(p, operand_count);
    note_writes(p);
    return EDDY_OK;
}

/* After promotion the call may be one for a fast call: mixed dtypes, a scalar of a higher category. */
static bool submit_short(plan *p, eddy_status *status) {
    const eddy_apply *apply = p->apply;
    if (p->op->output_count != 1)
        return false;
    if (apply->targets)
        return eddy_fast_call_apply_to(p->caller, p->op, p->inputs, p->input_count, apply->attributes, apply->address,
                                       apply->targets[0], status) != EDDY_FAST_CALL_NOT;
    eddy_tensor *result;
    *status =
        eddy_fast_call_apply(p->caller, p->op, p->inputs, p->input_count, apply->attributes, apply->address, &result);
    if (result)
        *apply->outputs = result;
    return result || *status != EDDY_OK;
}

/* A result that can never be had is refused at the call. */
static eddy_status check_sizes(const plan *p) {
    for (int32_t i = 0; i < p->op->output_count && !p->op->has_late_shape; i++) {
        const eddy_spec *spec = &p->output_specs[i];
        int64_t bytes;
        if (!eddy_shape_count(spec->shape.rank, spec->shape.dims, &bytes) ||
            __builtin_mul_overflow(bytes, (int64_t)eddy_dtype_bytes(spec->dtype), &bytes))
            bytes = INT64_MAX;
        if (bytes > (INT64_C(1) << 30) && bytes > eddy_memory_limit())
            return eddy_infer_fail(&p->infer, EDDY_OUT_OF_MEMORY,
                                   "the result takes %lld bytes, more than the %lld there are", (long long)bytes,
                                   (long long)eddy_memory_limit());
    }
    return EDDY_OK;
}

/* Rules see the operands as the kernel will. */
static void show_promoted(plan *p) {
    eddy_operand_walk walk;
    eddy_operand_walk_begin(&walk, p->op, p->apply->list_counts);
    for (int64_t i = 0; i < p->input_count; i++)
        if (eddy_infer_is_promoted(p->op, eddy_operand_walk_next(&walk)) && !p->specs[i].is_absent)
            p->specs[i].dtype = p->compute;
}

static eddy_status plan_prepare(plan *p) {
    eddy_status status = find_place(p);
    if (status == EDDY_OK)
        status = check_conditions(p);
    if (status != EDDY_OK)
        return status;
    p->compute = eddy_infer_compute(&p->infer);
    if (p->op->infer)
        show_promoted(p);
    status = eddy_infer_run(&p->infer, p->compute);
    if (status == EDDY_OK && !p->apply->targets)
        status = check_sizes(p);
    for (int32_t i = 0; p->apply->targets && i < p->op->output_count && status == EDDY_OK; i++)
        status = check_target(p, i);
    if (status == EDDY_OK && has_mut_input(p->op))
        status = check_mut_inputs(p);
    return status;
}

eddy_status eddy_general_call_apply(eddy_caller *caller, const eddy_apply *apply) {
    eddy_spec output_specs[EDDY_OP_OUTPUT_MAX];
    plan p = {.apply = apply, .op = apply->op, .caller = caller, .output_specs = output_specs};
    int64_t stack[STACK_BYTES / 8];
    if (EDDY_UNLIKELY(apply->op->skips_of > 0) && eddy_list_gaps_is_needed(apply))
        return eddy_list_gaps_apply(caller, apply);
    eddy_status status = check_inputs(&p);
    if (status == EDDY_OK)
        status = take_memory(&p, stack);
    if (status != EDDY_OK)
        return status;
    p.input_count = apply->input_count;
    for (int64_t i = 0; i < p.input_count; i++) {
        p.inputs[i] = apply->inputs[i];
        fill_spec(&p.specs[i], apply->inputs[i]);
    }
    p.infer = (eddy_infer){.op = apply->op,
                           .inputs = p.specs,
                           .input_count = p.input_count,
                           .list_counts = apply->list_counts,
                           .attributes = apply->attributes,
                           .outputs = p.output_specs,
                           .address = apply->address};
    status = plan_prepare(&p);
    if (status == EDDY_OK)
        status = convert_numbers(&p);
    if (status == EDDY_OK)
        status = cast_inputs(&p);
    if (status == EDDY_OK && !submit_short(&p, &status))
        status = submit(&p);
    drop_casts(&p);
    if (!p.is_on_stack)
        eddy_caller_scratch_end(caller, p.memory, p.memory_bytes);
    return status;
}
