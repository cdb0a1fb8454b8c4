#include <interpreter/route.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <interpreter/describe.h>
#include <interpreter/finite.h>
#include <interpreter/note.h>
#include <kernels/cost.h>

/* Up to here one slice is all there is: the loop is called without a view. */
#define DIRECT_ELEMENTS 4096

_Atomic(eddy_route *) *eddy_route_table;

static const eddy_route *route_of(const eddy_vm_descriptor *descriptor) {
    return (const eddy_route *)(const void *)descriptor;
}

/* ---- running ---- */

static void run_views(const eddy_route *route, const eddy_vm_run *run, const eddy_route_arguments *arguments) {
    static const int64_t step = 1;
    int64_t count = arguments->count;
    eddy_op_view views[EDDY_ROUTE_OPERANDS];
    int32_t inputs = route->input_count;
    for (int32_t i = 0; i <= inputs; i++)
        views[i] =
            (eddy_op_view){run->data[i], &count, &step, (eddy_dtype)(i < inputs ? route->dtype : route->result), 1};
    eddy_kernel_call call = {.kernel = route->kernel,
                             .views = views,
                             .view_count = inputs + 1,
                             .attributes = arguments->attributes,
                             .team = run->team,
                             .error = run->error};
    route->kernel->run(&call);
}

static void route_run(const eddy_vm_run *run) {
    const eddy_route *route = route_of(run->instruction.descriptor);
    const eddy_route_arguments *arguments = run->instruction.arguments;
    if (EDDY_UNLIKELY(arguments->count > DIRECT_ELEMENTS || !route->loop)) {
        run_views(route, run, arguments);
        return;
    }
    if (EDDY_UNLIKELY(arguments->count == 0))
        return;
    /* Pointers to void and to char have one representation, and the loop only reads the array. */
    route->loop((char *const *)run->data, route->strides, arguments->count, arguments->attributes);
}

/* ---- telling ---- */

static const char *route_name(const eddy_vm_instruction *instruction) {
    return route_of(instruction->descriptor)->op->name;
}

static int route_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const eddy_route *route = route_of(instruction->descriptor);
    const eddy_route_arguments *arguments = instruction->arguments;
    eddy_shape shape;
    if (!eddy_note_shape(arguments->note, &shape)) {
        shape.rank = 1;
        shape.dims[0] = arguments->count;
    }
    eddy_text text = {buffer, size, 0};
    eddy_text_add(&text, "%s(", route->op->name);
    for (int i = 0; i < route->input_count; i++) {
        eddy_text_add(&text, i ? ", " : "");
        eddy_text_add_operand(&text, (eddy_dtype)route->dtype, &shape);
    }
    if (route->scalar_offset >= 0)
        eddy_text_add_scalar(&text, (const char *)arguments->attributes + route->scalar_offset);
    eddy_text_add(&text, ")");
    return (int)text.length;
}

static int route_explain(const eddy_vm_instruction *instruction, const eddy_kernel_error *error, char *buffer,
                         size_t size) {
    const eddy_route *route = route_of(instruction->descriptor);
    char call[320];
    route_describe(instruction, call, sizeof(call));
    return eddy_describe_error(route->op, NULL, call, error, buffer, size);
}

static int64_t route_check_finite(const eddy_vm_run *run) {
    const eddy_route *route = route_of(run->instruction.descriptor);
    const eddy_route_arguments *arguments = run->instruction.arguments;
    static const int64_t step = 1;
    int64_t count = arguments->count;
    eddy_op_view views[EDDY_ROUTE_OPERANDS];
    for (int i = 0; i <= route->input_count; i++)
        views[i] = (eddy_op_view){run->data[i], &count, &step,
                                  (eddy_dtype)(i < route->input_count ? route->dtype : route->result), 1};
    /* The inputs are as they were: what is written to in place comes the long way while this is asked for. */
    bool is_passed_in = eddy_finite_wants_operands() &&
                        eddy_finite_is_passed_in(route->op, arguments->attributes, views, route->input_count);
    return eddy_finite_is_fine(&views[route->input_count], is_passed_in) ? -1 : route->input_count;
}

/* ---- making ---- */

/* Whether the op is one for the short way at all. */
static bool is_short(const eddy_op *op) {
    if (!op->is_elementwise || op->output_count != 1 || op->infer || op->is_random || op->has_late_shape ||
        op->operand_count < 1 || op->scalar_count > 1 || op->operand_count >= EDDY_ROUTE_OPERANDS ||
        op->result == EDDY_RESULT_RULE || op->kernel_attribute_bytes > EDDY_ROUTE_ATTRIBUTE_BYTES ||
        (op->promotion != EDDY_PROMOTE_SAME && op->promotion != EDDY_PROMOTE_FLOAT))
        return false;
    for (int32_t i = 0; i < op->operand_count; i++) {
        const eddy_op_operand *operand = &op->operands[i];
        if (operand->kind != EDDY_OPERAND_TENSOR || operand->is_mut || operand->is_bool || operand->is_spec_only)
            return false;
    }
    return true;
}

static void init(eddy_route *route, const eddy_op *op, eddy_dtype dtype) {
    const eddy_kernel *kernel = op->kernels[dtype];
    route->op = op;
    if (!kernel || kernel->prepare || kernel->workspace || kernel->count || kernel->cost ||
        (op->promotion == EDDY_PROMOTE_FLOAT && eddy_dtype_category_of(dtype) != EDDY_CATEGORY_FLOAT))
        return;
    route->descriptor = (eddy_vm_descriptor){.run = route_run,
                                             .name = route_name,
                                             .describe = route_describe,
                                             .explain = route_explain,
                                             .check_finite = route_check_finite};
    route->kernel = kernel;
    if (kernel->run == eddy_kernel_run_elementwise)
        route->loop = eddy_kernel_loop(kernel);
    route->input_count = (uint8_t)op->operand_count;
    route->dtype = (uint8_t)dtype;
    route->result = (uint8_t)(op->result == EDDY_RESULT_BOOL ? EDDY_BOOL : dtype);
    for (int i = 0; i < op->operand_count; i++)
        route->strides[i] = (int64_t)eddy_dtype_bytes(dtype);
    route->result_bytes = (int64_t)eddy_dtype_bytes((eddy_dtype)route->result);
    route->strides[op->operand_count] = route->result_bytes;
    for (int i = 0; i <= op->operand_count; i++)
        route->element_bytes += route->strides[i];
    route->near_count = EDDY_COST_NEAR_BYTES / route->element_bytes;
    route->output = (eddy_vm_operand){.access = EDDY_ACCESS_MUT, .is_new = true};
    route->attribute_bytes = op->kernel_attribute_bytes;
    route->scalar_kinds = (uint8_t)eddy_dtype_category_of(dtype);
    route->scalar_wraps = op->numbers_wrap;
    route->scalar_offset = op->scalar_count ? (int64_t)op->attributes[0].offset : -1;
}

static eddy_lock making; /* one thread makes the table or an op's routes */

bool eddy_routes_init(void) {
    eddy_lock_acquire(&making);
    if (!eddy_route_table)
        eddy_route_table =
            eddy_memory_acquire_zeroed((eddy_op_table_count + 1) * sizeof(*eddy_route_table), EDDY_MEMORY_CACHE);
    bool is_there = eddy_route_table != NULL;
    eddy_lock_release(&making);
    return is_there;
}

const eddy_route *eddy_route_make(const eddy_op *op) {
    eddy_lock_acquire(&making);
    eddy_route *routes = eddy_load_relaxed(&eddy_route_table[op->id]);
    if (!routes) {
        routes = eddy_memory_acquire_zeroed(EDDY_DTYPE_COUNT * sizeof(*routes), EDDY_MEMORY_CACHE);
        for (int dtype = 0; routes && is_short(op) && dtype < EDDY_DTYPE_COUNT; dtype++)
            init(&routes[dtype], op, (eddy_dtype)dtype);
        eddy_store_release(&eddy_route_table[op->id], routes);
    }
    eddy_lock_release(&making);
    return routes;
}

void eddy_routes_fork_child(void) {
    making = (eddy_lock){0};
}
