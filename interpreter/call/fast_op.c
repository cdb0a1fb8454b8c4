#include <interpreter/call/fast_op.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <interpreter/call/describe.h>
#include <interpreter/call/finite.h>
#include <interpreter/call/speed.h>
#include <interpreter/handle/shape_table.h>
#include <kernels/cost.h>

/* Up to so many elements there is one slice: the loop is called without a view. */
#define DIRECT_ELEMENTS 4096

_Atomic(eddy_fast_op *) *eddy_fast_op_table;

static const eddy_fast_op *fast_op_of(const eddy_vm_descriptor *descriptor) {
    return (const eddy_fast_op *)(const void *)descriptor;
}

/* ---- running ---- */

static void run_views(const eddy_fast_op *fast, const eddy_vm_run *run,
                      const eddy_fast_arguments *arguments) {
    static const int64_t step = 1;
    int64_t count = arguments->count;
    eddy_op_view views[EDDY_FAST_OPERANDS];
    int32_t inputs = fast->input_count;
    for (int32_t i = 0; i <= inputs; i++)
        views[i] = (eddy_op_view){run->data[i], &count, &step,
                                  (eddy_dtype)(i < inputs ? fast->dtype : fast->result), 1};
    eddy_kernel_call call = {.kernel = fast->kernel,
                             .views = views,
                             .view_count = inputs + 1,
                             .attributes = arguments->attributes,
                             .team = run->team,
                             .error = run->error};
    fast->kernel->run(&call);
}

static void fast_op_run(const eddy_vm_run *run) {
    const eddy_fast_op *fast = fast_op_of(run->instruction->descriptor);
    const eddy_fast_arguments *arguments = run->instruction->arguments;
    if (EDDY_UNLIKELY(arguments->count > DIRECT_ELEMENTS || !fast->loop)) {
        run_views(fast, run, arguments);
        return;
    }
    if (EDDY_UNLIKELY(arguments->count == 0))
        return;
    /* Pointers to void and to char have one representation, and the loop only reads the array. */
    fast->loop((char *const *)run->data, fast->strides, arguments->count, arguments->attributes);
}

/* ---- descriptions ---- */

static const char *fast_op_name(const eddy_vm_instruction *instruction) {
    return fast_op_of(instruction->descriptor)->op->name;
}

static int fast_op_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const eddy_fast_op *fast = fast_op_of(instruction->descriptor);
    const eddy_fast_arguments *arguments = instruction->arguments;
    eddy_shape shape;
    if (!eddy_shape_table_find(arguments->shape_number, &shape)) {
        shape.rank = 1;
        shape.dims[0] = arguments->count;
    }
    eddy_text text = {buffer, size, 0};
    eddy_text_put(&text, fast->op->name);
    eddy_text_put(&text, "(");
    for (int i = 0; i < fast->input_count; i++) {
        eddy_text_put(&text, i ? ", " : "");
        eddy_text_add_operand(&text, (eddy_dtype)fast->dtype, &shape);
    }
    if (fast->scalar_offset >= 0)
        eddy_text_add_scalar(&text, (const char *)arguments->attributes + fast->scalar_offset);
    eddy_text_put(&text, ")");
    return (int)text.length;
}

static int fast_op_explain(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                           char *buffer, size_t size) {
    const eddy_fast_op *fast = fast_op_of(instruction->descriptor);
    char call[320];
    fast_op_describe(instruction, call, sizeof(call));
    return eddy_describe_error(fast->op, NULL, call, error, buffer, size);
}

static int64_t fast_op_check_finite(const eddy_vm_run *run) {
    const eddy_fast_op *fast = fast_op_of(run->instruction->descriptor);
    const eddy_fast_arguments *arguments = run->instruction->arguments;
    static const int64_t step = 1;
    int64_t count = arguments->count;
    eddy_op_view views[EDDY_FAST_OPERANDS];
    for (int i = 0; i <= fast->input_count; i++)
        views[i] =
            (eddy_op_view){run->data[i], &count, &step,
                           (eddy_dtype)(i < fast->input_count ? fast->dtype : fast->result), 1};
    /* The inputs are unchanged: with this check on, writes in place take a general call. */
    bool is_passed_in =
        eddy_finite_wants_operands() &&
        eddy_finite_is_passed_in(fast->op, arguments->attributes, views, fast->input_count);
    return eddy_finite_is_fine(&views[fast->input_count], is_passed_in) ? -1 : fast->input_count;
}

/* ---- making ---- */

/* Whether the op can have fast calls at all. */
static bool is_fast(const eddy_op *op) {
    if (!op->is_elementwise || op->output_count != 1 || op->infer || op->is_random ||
        op->has_late_shape || op->operand_count < 1 || op->scalar_count > 1 ||
        op->operand_count >= EDDY_FAST_OPERANDS || op->result == EDDY_RESULT_RULE ||
        op->kernel_attribute_bytes > EDDY_FAST_ATTRIBUTE_BYTES ||
        (op->promotion != EDDY_PROMOTE_SAME && op->promotion != EDDY_PROMOTE_FLOAT))
        return false;
    for (int32_t i = 0; i < op->operand_count; i++) {
        const eddy_op_operand *operand = &op->operands[i];
        if (operand->kind != EDDY_OPERAND_TENSOR || operand->is_mut || operand->is_bool ||
            operand->is_spec_only)
            return false;
    }
    return true;
}

static void init(eddy_fast_op *fast, const eddy_op *op, eddy_dtype dtype) {
    const eddy_kernel *kernel = op->kernels[dtype];
    fast->op = op;
    if (!kernel || kernel->prepare || kernel->count ||
        (op->promotion == EDDY_PROMOTE_FLOAT &&
         eddy_dtype_category_of(dtype) != EDDY_CATEGORY_FLOAT))
        return;
    fast->descriptor = (eddy_vm_descriptor){.run = fast_op_run,
                                            .name = fast_op_name,
                                            .describe = fast_op_describe,
                                            .explain = fast_op_explain,
                                            .check_finite = fast_op_check_finite};
    fast->kernel = kernel;
    if (kernel->run == eddy_kernel_run_elementwise)
        fast->loop = eddy_kernel_loop(kernel);
    fast->input_count = (uint8_t)op->operand_count;
    fast->dtype = (uint8_t)dtype;
    fast->result = (uint8_t)(op->result == EDDY_RESULT_BOOL ? EDDY_BOOL : dtype);
    for (int i = 0; i < op->operand_count; i++)
        fast->strides[i] = (int64_t)eddy_dtype_bytes(dtype);
    fast->result_bytes = (int64_t)eddy_dtype_bytes((eddy_dtype)fast->result);
    fast->strides[op->operand_count] = fast->result_bytes;
    for (int i = 0; i <= op->operand_count; i++)
        fast->element_bytes += fast->strides[i];
    fast->near_count = EDDY_COST_NEAR_BYTES / fast->element_bytes;
    fast->output = (eddy_vm_operand){.access = EDDY_ACCESS_MUT, .is_new = true};
    fast->attribute_bytes = op->kernel_attribute_bytes;
    fast->scalar_kinds = (uint8_t)eddy_dtype_category_of(dtype);
    fast->scalar_wraps = op->numbers_wrap;
    fast->scalar_offset = op->scalar_count ? (int64_t)op->attributes[0].offset : -1;
}

static eddy_lock making; /* one thread makes the table or an op's fast ops */

bool eddy_fast_ops_init(void) {
    eddy_lock_acquire(&making);
    if (!eddy_fast_op_table) {
        eddy_speed_measure();
        eddy_fast_op_table = eddy_memory_acquire_zeroed(
            eddy_op_id_count * sizeof(*eddy_fast_op_table), EDDY_MEMORY_CACHE);
    }
    bool is_there = eddy_fast_op_table != NULL;
    eddy_lock_release(&making);
    return is_there;
}

const eddy_fast_op *eddy_fast_op_make(const eddy_op *op) {
    eddy_lock_acquire(&making);
    eddy_fast_op *ops = eddy_load_relaxed(&eddy_fast_op_table[op->id]);
    if (!ops) {
        ops = eddy_memory_acquire_zeroed(EDDY_DTYPE_COUNT * sizeof(*ops), EDDY_MEMORY_CACHE);
        for (int dtype = 0; ops && is_fast(op) && dtype < EDDY_DTYPE_COUNT; dtype++)
            init(&ops[dtype], op, (eddy_dtype)dtype);
        eddy_store_release(&eddy_fast_op_table[op->id], ops);
    }
    eddy_lock_release(&making);
    return ops;
}

void eddy_fast_ops_fork_child(void) {
    making = (eddy_lock){0};
}
