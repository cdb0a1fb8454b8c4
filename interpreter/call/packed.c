#include <interpreter/call/packed.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <interpreter/call/describe.h>
#include <interpreter/call/finite.h>
#include <interpreter/call/speed.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/shape_table.h>
#include <streams/backend.h>

static size_t round_line(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static const int64_t *words(const eddy_packed_arguments *call, uint32_t at) {
    return (const int64_t *)(const void *)call + at;
}

/* ---- views ---- */

static void fill_view(const eddy_packed_arguments *call, const eddy_packed_view *packed,
                      eddy_op_view *view) {
    view->data = NULL;
    view->dtype = (eddy_dtype)packed->dtype;
    view->rank = packed->rank;
    view->shape = words(call, packed->dims_at);
    view->strides = words(call, packed->strides_at);
}

/* Views with data, where there is memory; late ones without their shape. */
static void unpack(const eddy_vm_run *run, const eddy_packed_arguments *call, eddy_op_view *views) {
    int64_t operand = 0;
    for (uint32_t i = 0; i < call->view_count; i++) {
        const eddy_packed_view *packed = &call->views[i];
        eddy_op_view *view = &views[i];
        fill_view(call, packed, view);
        if (packed->rank < 0)
            continue;
        char *data = run->data[operand++];
        if (data)
            view->data = data + packed->offset * (int64_t)eddy_dtype_bytes(view->dtype);
    }
}

/* Late outputs as they were counted: contiguous, with strides at `strides`. */
static void lay_late(const eddy_vm_run *run, const eddy_packed_arguments *call,
                     int64_t (*strides)[EDDY_RANK_MAX], eddy_op_view *views) {
    const eddy_shape *shape = run->late_shapes;
    for (uint32_t i = call->input_count; i < call->view_count; i++) {
        if (!call->views[i].is_late)
            continue;
        eddy_shape_strides_contiguous(shape->rank, shape->dims, *strides);
        views[i].rank = shape->rank;
        views[i].shape = shape++->dims;
        views[i].strides = *strides++;
    }
}

static eddy_op_view *place_views(const eddy_vm_run *run, const eddy_packed_arguments *call,
                                 eddy_op_view *on_stack) {
    if (call->view_count <= EDDY_PACKED_STACK_VIEWS)
        return on_stack;
    EDDY_ASSERT(
        !run->launch); /* a device's workspace is no place for views, which the host reads */
    return (eddy_op_view *)(void *)((char *)run->workspace + round_line(call->workspace_bytes));
}

static eddy_kernel_call kernel_call(const eddy_vm_run *run, const eddy_packed_arguments *call,
                                    const eddy_op_view *views) {
    return (eddy_kernel_call){.kernel = call->kernel,
                              .views = views,
                              .view_count = (int32_t)call->view_count,
                              .attributes = words(call, call->attributes_at),
                              .plan = words(call, call->plan_at),
                              .workspace = run->workspace,
                              .workspace_bytes = call->workspace_bytes,
                              .team = run->team,
                              .error = run->error,
                              .launch = run->launch};
}

static inline void run_kernel(const eddy_packed_arguments *call, const eddy_kernel_call *kernel) {
    if (eddy_finite_wants_operands() && !kernel->launch)
        eddy_finite_set_passed_in(eddy_finite_is_passed_in(call->op, kernel->attributes,
                                                           kernel->views, call->input_count));
    call->run(kernel);
}

void eddy_packed_views(const eddy_packed_arguments *call, eddy_op_view *views) {
    for (uint32_t i = 0; i < call->view_count; i++)
        fill_view(call, &call->views[i], &views[i]);
}

void eddy_packed_call(const eddy_packed_arguments *call, eddy_kernel_call *kernel) {
    kernel->kernel = call->kernel;
    kernel->view_count = (int32_t)call->view_count;
    kernel->plan = words(call, call->plan_at);
    kernel->workspace_bytes = call->workspace_bytes;
    run_kernel(call, kernel);
}

/* ---- plans ---- */

/* The most views without data that planning keeps on the stack. */
#define PLANNED_VIEWS 16

static eddy_status prepare(eddy_packed_arguments *call, eddy_op_view *views, size_t *bytes,
                           int64_t *cost_ps) {
    eddy_packed_views(call, views);
    eddy_kernel_call kernel = {.kernel = call->kernel,
                               .views = views,
                               .view_count = (int32_t)call->view_count,
                               .attributes = words(call, call->attributes_at)};
    eddy_kernel_plan plan;
    plan.memory = (char *)call + *bytes;
    eddy_status status = eddy_kernel_prepare(&kernel, &plan);
    if (EDDY_UNLIKELY(plan.has_started_library))
        eddy_runtime_exit_first();
    if (status != EDDY_OK)
        return status;
    call->run = plan.run;
    call->workspace_bytes = plan.workspace_bytes;
    call->plan_at = (uint32_t)(*bytes / sizeof(int64_t));
    *bytes += (plan.bytes + 7) & ~(size_t)7;
    /* A registered op states its time on this machine. */
    *cost_ps = call->op->is_registered ? plan.cost_ps : eddy_speed_ps(plan.cost_ps);
    return EDDY_OK;
}

eddy_status eddy_packed_prepare(eddy_packed_arguments *call, size_t *bytes, int64_t *cost_ps) {
    eddy_op_view on_stack[PLANNED_VIEWS];
    if (EDDY_LIKELY(call->view_count <= PLANNED_VIEWS))
        return prepare(call, on_stack, bytes, cost_ps);
    size_t view_bytes = call->view_count * sizeof(eddy_op_view);
    eddy_op_view *views = eddy_memory_acquire(view_bytes, EDDY_MEMORY_ARGUMENT);
    if (!views)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = prepare(call, views, bytes, cost_ps);
    eddy_memory_release(views, view_bytes, EDDY_MEMORY_ARGUMENT);
    return status;
}

eddy_status eddy_packed_hold(eddy_packed_arguments *call) {
    if (!call->kernel->end)
        return EDDY_OK;
    size_t bytes = call->plan_at * sizeof(int64_t);
    int64_t cost_ps;
    return eddy_packed_prepare(call, &bytes, &cost_ps);
}

const char *eddy_packed_way(const eddy_packed_arguments *call) {
    return call->kernel->way ? call->kernel->way(words(call, call->plan_at)) : NULL;
}

void eddy_packed_end(const eddy_packed_arguments *call) {
    if (call->kernel->end)
        call->kernel->end(words(call, call->plan_at));
}

/* ---- callbacks ---- */

static void run_with(const eddy_vm_run *run, const eddy_packed_arguments *call,
                     const eddy_op_view *views) {
    eddy_kernel_call kernel = kernel_call(run, call, views);
    run_kernel(call, &kernel);
}

/* Of a device's own kernels; on the CPU run_kernel looks. */
static void look_with(const eddy_vm_run *run, const eddy_packed_arguments *call,
                      const eddy_op_view *views) {
    eddy_kernel_call kernel = kernel_call(run, call, views);
    eddy_finite_launch_operands(call->op, &kernel, call->input_count);
}

/* On a device long lists have memory of their own. */
static void launch_many_views(const eddy_vm_run *run, const eddy_packed_arguments *call,
                              void (*launch)(const eddy_vm_run *run,
                                             const eddy_packed_arguments *call,
                                             const eddy_op_view *views)) {
    size_t bytes = call->view_count * sizeof(eddy_op_view);
    eddy_op_view *views = eddy_memory_acquire(bytes, EDDY_MEMORY_ARGUMENT);
    if (!views) {
        eddy_backend_fail(run->launch, EDDY_OUT_OF_MEMORY);
        return;
    }
    unpack(run, call, views);
    launch(run, call, views);
    eddy_memory_release(views, bytes, EDDY_MEMORY_ARGUMENT);
}

static void packed_look_finite(const eddy_vm_run *run) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    if (call->view_count > EDDY_PACKED_STACK_VIEWS) {
        launch_many_views(run, call, look_with);
        return;
    }
    eddy_op_view views[EDDY_PACKED_STACK_VIEWS];
    unpack(run, call, views);
    look_with(run, call, views);
}

static void packed_run(const eddy_vm_run *run) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    if (EDDY_UNLIKELY(call->view_count > EDDY_PACKED_STACK_VIEWS) && run->launch) {
        launch_many_views(run, call, run_with);
        return;
    }
    eddy_op_view on_stack[EDDY_PACKED_STACK_VIEWS];
    eddy_op_view *views = place_views(run, call, on_stack);
    unpack(run, call, views);
    run_with(run, call, views);
}

static void packed_run_late(const eddy_vm_run *run) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    eddy_op_view on_stack[EDDY_PACKED_STACK_VIEWS];
    int64_t strides[EDDY_OP_OUTPUT_MAX][EDDY_RANK_MAX];
    eddy_op_view *views = place_views(run, call, on_stack);
    unpack(run, call, views);
    lay_late(run, call, strides, views);
    run_with(run, call, views);
}

static void packed_end(const eddy_vm_instruction *instruction) {
    eddy_packed_end(instruction->arguments);
}

static size_t packed_workspace(const eddy_vm_run *run) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    if (call->view_count <= EDDY_PACKED_STACK_VIEWS)
        return call->workspace_bytes;
    return round_line(call->workspace_bytes) + call->view_count * sizeof(eddy_op_view);
}

/* Bytes of the late outputs, or the failure that there are too many. */
static void measure_late(const eddy_packed_arguments *call, const eddy_kernel_call *kernel,
                         const eddy_shape *shapes, int64_t *bytes) {
    for (uint32_t i = call->input_count; i < call->view_count; i++) {
        if (!call->views[i].is_late)
            continue;
        int64_t elements, size = eddy_dtype_size((eddy_dtype)call->views[i].dtype);
        if (!eddy_shape_is_valid(shapes) ||
            !eddy_shape_count(shapes->rank, shapes->dims, &elements) ||
            __builtin_mul_overflow(elements, size, bytes))
            eddy_kernel_fail(kernel, EDDY_SIZE_OVERFLOW, 0, 0, 0);
        shapes++;
        bytes++;
    }
}

static void packed_count(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    eddy_op_view on_stack[EDDY_PACKED_STACK_VIEWS];
    eddy_op_view *views = place_views(run, call, on_stack);
    unpack(run, call, views);
    eddy_kernel_call kernel = kernel_call(run, call, views);
    call->kernel->count(&kernel, shapes);
    if (!run->launch)
        measure_late(call, &kernel, shapes, bytes);
}

static void packed_shape(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    eddy_op_view views[EDDY_PACKED_STACK_VIEWS];
    EDDY_ASSERT(call->view_count <= EDDY_PACKED_STACK_VIEWS); /* as when it was counted */
    eddy_packed_views(call, views);
    eddy_kernel_call kernel = kernel_call(run, call, views);
    call->kernel->shape(&kernel, run->error->counted, shapes);
    measure_late(call, &kernel, shapes, bytes);
}

static const char *packed_name(const eddy_vm_instruction *instruction) {
    return ((const eddy_packed_arguments *)instruction->arguments)->op->name;
}

static void view_shape(const eddy_packed_arguments *call, const eddy_packed_view *view,
                       eddy_shape *shape) {
    if (eddy_shape_table_find(view->shape_number, shape))
        return;
    shape->rank = view->rank;
    for (int32_t d = 0; d < view->rank; d++)
        shape->dims[d] = words(call, view->dims_at)[d];
}

#define DESCRIBED_VIEWS 8

static int packed_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const eddy_packed_arguments *call = instruction->arguments;
    const eddy_op *op = call->op;
    eddy_text text = {buffer, size, 0};
    eddy_text_put(&text, op->name);
    eddy_text_put(&text, "(");
    for (uint32_t i = 0; i < call->input_count; i++) {
        eddy_text_put(&text, i ? ", " : "");
        if (i == DESCRIBED_VIEWS) {
            eddy_text_add(&text, "and %u more", call->input_count - i);
            break;
        }
        eddy_shape shape;
        if (call->views[i].rank < 0) {
            eddy_text_add(&text, "none");
            continue;
        }
        view_shape(call, &call->views[i], &shape);
        eddy_text_add_operand(&text, (eddy_dtype)call->views[i].dtype, &shape);
    }
    for (int32_t i = 0; i < op->scalar_count; i++)
        eddy_text_add_scalar(&text, (const char *)words(call, call->attributes_at) +
                                        op->attributes[i].offset);
    eddy_text_put(&text, ")");
    return (int)text.length;
}

/* The operand to which a kernel's range error refers. */
static bool find_indexed(const eddy_packed_arguments *call, eddy_indexed *indexed) {
    uint32_t input = 0;
    for (int32_t i = 0; i < call->op->operand_count; i++) {
        const eddy_op_operand *operand = &call->op->operands[i];
        if (operand->kind == EDDY_OPERAND_LIST)
            return false; /* the items of a list have no names */
        if (operand->is_index) {
            indexed->name = operand->name;
            view_shape(call, &call->views[input], &indexed->shape);
            return true;
        }
        input += !operand->is_spec_only;
    }
    return false;
}

static int packed_explain(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                          char *buffer, size_t size) {
    const eddy_packed_arguments *call = instruction->arguments;
    /* Programs leave out what cannot fail, and nobody needs. */
    int32_t status = eddy_load_relaxed(&error->status);
    EDDY_ASSERT(call->op->may_fail || status == EDDY_OUT_OF_MEMORY || status == EDDY_NOT_FINITE);
    (void)status;
    char text[320];
    packed_describe(instruction, text, sizeof(text));
    eddy_indexed indexed;
    return eddy_describe_error(call->op, find_indexed(call, &indexed) ? &indexed : NULL, text,
                               error, buffer, size);
}

/* Whether the kernel has left an operand finite; a device's kernel looks later, and its word says so. */
static bool is_fine(const eddy_vm_run *run, const eddy_packed_arguments *call,
                    const eddy_op_view *view, int64_t operand) {
    if (EDDY_LIKELY(!run->launch))
        return eddy_finite_is_fine(view, eddy_finite_passed_in());
    eddy_kernel_call kernel = kernel_call(run, call, NULL);
    eddy_finite_launch_output(call->op, &kernel, view, operand);
    return true;
}

static int64_t packed_check_finite(const eddy_vm_run *run) {
    const eddy_packed_arguments *call = run->instruction->arguments;
    int64_t operand = 0;
    if (call->kernel->writes_nothing)
        return -1;
    for (uint32_t i = 0; i < call->view_count; i++) {
        const eddy_packed_view *packed = &call->views[i];
        eddy_op_view view;
        fill_view(call, packed, &view);
        if (packed->rank < 0)
            continue;
        /* The workspace is released already: the size tells the number of elements of a late output. */
        int64_t elements = run->bytes[operand] / (int64_t)eddy_dtype_bytes(view.dtype);
        static const int64_t step = 1;
        if (packed->is_late) {
            view.rank = 1;
            view.shape = &elements;
            view.strides = &step;
        }
        view.data =
            (char *)run->data[operand] + packed->offset * (int64_t)eddy_dtype_bytes(view.dtype);
        if (packed->is_written && !is_fine(run, call, &view, operand))
            return operand;
        operand++;
    }
    return -1;
}

/* Indexed by whether there is a workspace, or a plan to end, and whether shapes are late. */
static const eddy_vm_descriptor plain = {.run = packed_run,
                                         .name = packed_name,
                                         .describe = packed_describe,
                                         .explain = packed_explain,
                                         .check_finite = packed_check_finite,
                                         .look_finite = packed_look_finite};
static const eddy_vm_descriptor spacious = {.run = packed_run,
                                            .workspace = packed_workspace,
                                            .end = packed_end,
                                            .name = packed_name,
                                            .describe = packed_describe,
                                            .explain = packed_explain,
                                            .check_finite = packed_check_finite,
                                            .look_finite = packed_look_finite};
static const eddy_vm_descriptor late_shaped = {.run = packed_run_late,
                                               .workspace = packed_workspace,
                                               .count = packed_count,
                                               .shape = packed_shape,
                                               .end = packed_end,
                                               .name = packed_name,
                                               .describe = packed_describe,
                                               .explain = packed_explain,
                                               .check_finite = packed_check_finite,
                                               .look_finite = packed_look_finite};

static const eddy_vm_descriptor registered = {.run = packed_run,
                                              .workspace = packed_workspace,
                                              .end = packed_end,
                                              .name = packed_name,
                                              .describe = packed_describe,
                                              .explain = packed_explain,
                                              .check_finite = packed_check_finite,
                                              .look_finite = packed_look_finite,
                                              .is_foreign = true};

const eddy_vm_descriptor *eddy_packed_descriptor(const eddy_packed_arguments *call) {
    if (call->late_count > 0)
        return &late_shaped;
    if (call->op->is_registered)
        return &registered;
    return call->workspace_bytes > 0 || call->view_count > EDDY_PACKED_STACK_VIEWS ||
                   call->kernel->end
               ? &spacious
               : &plain;
}
