/* eddy_program_run: binds tensors, draws, and submits the run as one instruction of the VM. */
#include <base/dtype.h>
#include <base/number.h>
#include <base/shape.h>
#include <base/status.h>
#include <float.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <interpreter/tape/autograd.h>
#include <program/program.h>
#include <string.h>

/* Arguments of the instruction: a reference of the program, then per base but the first the bytes by which it is shifted, then the words
 * of the run (code.h). */
typedef struct run_arguments {
    eddy_program *program;
    int64_t words[];
} run_arguments;

static size_t argument_bytes(const eddy_program *program) {
    return sizeof(run_arguments) +
           (program->executable.base_count - 1 + (size_t)eddy_code_run_words(&program->code)) *
               sizeof(int64_t);
}

/* ---- the VM's side ---- */

static void program_run(const eddy_vm_run *run) {
    const run_arguments *arguments = run->instruction->arguments;
    const eddy_program *program = arguments->program;
    eddy_executable_run(&program->executable, &program->code, arguments->words,
                        arguments->words + program->executable.base_count - 1, run);
}

static size_t program_workspace(const eddy_vm_run *run) {
    const run_arguments *arguments = run->instruction->arguments;
    return (size_t)arguments->program->executable.workspace_bytes;
}

static const char *program_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "program";
}

static int program_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const run_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "program(%u instructions)",
                    arguments->program->code.instructions.count);
}

static void program_end(const eddy_vm_instruction *instruction) {
    const run_arguments *arguments = instruction->arguments;
    eddy_program *program = arguments->program;
    eddy_program_release(&program);
}

static const eddy_vm_descriptor descriptor = {.run = program_run,
                                              .workspace = program_workspace,
                                              .name = program_name,
                                              .describe = program_describe,
                                              .end = program_end,
                                              .is_program = true};

/* ---- a run being made ---- */

typedef struct running {
    eddy_program *program;
    eddy_caller *caller;
    eddy_origin origin;
    eddy_list inputs;
    const eddy_scalar *scalars;  /* as many as the program was recorded with */
    eddy_tensor **outputs;       /* the user's, in a row; or, where it is NULL: */
    eddy_tensor **const *places; /* one for each output; NULL: it is not handed out */
    eddy_vm_operand *operands;   /* base_count - 1 */
    eddy_tensor **
        handles; /* new ones: of the outputs, then the roots of made storages that no output is all of */
    eddy_tensor **roots; /* per made storage */
    run_arguments *arguments;
    bool *is_unfit; /* set in place of an error where the arguments do not fit; NULL: the error */
} running;

static eddy_status fail_shape(const running *r, const eddy_program_binding *binding,
                              const eddy_tensor *tensor) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, is, sizeof(is));
    eddy_shape_format(binding->layout.rank, binding->layout.dims, wanted, sizeof(wanted));
    bool has_dtype = tensor->dtype == binding->dtype;
    return eddy_fail(has_dtype ? EDDY_SHAPE_MISMATCH : EDDY_DTYPE_MISMATCH, r->origin,
                     "input %s is %s, the program was recorded with %s%s", binding->name, is,
                     eddy_dtype_name((eddy_dtype)binding->dtype), wanted);
}

static eddy_status fail_strides(const running *r, const eddy_program_binding *binding,
                                const eddy_layout *layout) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_shape_format(layout->rank, layout->strides, is, sizeof(is));
    eddy_shape_format(layout->rank, binding->layout.strides, wanted, sizeof(wanted));
    return eddy_fail(EDDY_SHAPE_MISMATCH, r->origin,
                     "input %s has the strides %s, the program was recorded with %s", binding->name,
                     is, wanted);
}

/* Strides of axes without a second element name no other element. */
static bool has_strides(const eddy_program_binding *binding, const eddy_layout *layout) {
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->dims[d] > 1 && layout->strides[d] != binding->layout.strides[d])
            return binding->count == 0;
    return true;
}

static eddy_status check_input(const running *r, const eddy_program_binding *binding,
                               eddy_tensor *tensor) {
    eddy_status status = eddy_tensor_check(tensor, binding->name, r->origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(tensor, r->origin);
    if (status != EDDY_OK)
        return status;
    if (tensor->runtime != r->program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, r->origin,
                         "input %s belongs to another runtime than the program", binding->name);
    if (tensor->device_kind != binding->device_kind ||
        tensor->device_index != binding->device_index)
        return eddy_fail(EDDY_DEVICE_MISMATCH, r->origin, "input %s lives on another device",
                         binding->name);
    eddy_layout layout;
    eddy_tensor_layout(tensor, &layout);
    if (tensor->dtype != binding->dtype ||
        !eddy_shape_equal(layout.rank, layout.dims, binding->layout.rank, binding->layout.dims))
        return fail_shape(r, binding, tensor);
    return has_strides(binding, &layout) ? EDDY_OK : fail_strides(r, binding, &layout);
}

/* ---- operands ---- */

static bool is_written(const eddy_program *program, uint32_t value) {
    return eddy_code_value_at(&program->code, value)->is_written;
}

static void set_external(const running *r, uint32_t e, eddy_storage_number storage) {
    uint32_t value = eddy_program_external_at(r->program, e)->value;
    r->operands[e] = (eddy_vm_operand){.storage = storage,
                                       .access = is_written(r->program, value) ? EDDY_ACCESS_MUT
                                                                               : EDDY_ACCESS_CONST};
}

/* Inputs are checked and bound, in the order of their bindings. */
static eddy_status bind_inputs(const running *r) {
    const eddy_program *program = r->program;
    int64_t given = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_INPUT)
            continue;
        eddy_tensor *tensor = r->inputs.items[given++];
        eddy_status status = check_input(r, binding, tensor);
        if (status != EDDY_OK)
            return status;
        set_external(r, binding->operand, tensor->storage);
        r->arguments->words[binding->operand] =
            tensor->offset * eddy_dtype_size((eddy_dtype)tensor->dtype);
    }
    return EDDY_OK;
}

static const char *name_of(const eddy_program *program, uint32_t operand) {
    for (uint32_t i = 0; i < program->bindings.count; i++)
        if (eddy_program_binding_at(program, i)->operand == operand)
            return eddy_program_binding_at(program, i)->name;
    return "a captured tensor";
}

/* The program was recorded with tensors of their own: what it writes may not be something else's too. The operand that shares an input's
 * storage, with *input the input's; EDDY_CODE_NONE if none does. */
static uint32_t find_alias(const running *r, uint32_t *input) {
    const eddy_program *program = r->program;
    for (uint32_t e = 0; e < program->externals.count; e++) {
        if (eddy_program_external_at(program, e)->input == EDDY_CODE_NONE)
            continue;
        for (uint32_t k = 0; k < program->externals.count; k++)
            if (k != e && r->operands[k].storage == r->operands[e].storage &&
                (r->operands[k].access != EDDY_ACCESS_CONST ||
                 r->operands[e].access != EDDY_ACCESS_CONST)) {
                *input = e;
                return k;
            }
    }
    return EDDY_CODE_NONE;
}

static eddy_status check_aliases(const running *r) {
    uint32_t input, other = find_alias(r, &input);
    if (EDDY_LIKELY(other == EDDY_CODE_NONE))
        return EDDY_OK;
    if (r->is_unfit) {
        *r->is_unfit = true;
        return EDDY_INVALID_ARGUMENT;
    }
    return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                     "input %s shares its memory with %s, and the program writes it",
                     name_of(r->program, input), name_of(r->program, other));
}

static eddy_status bind(const running *r) {
    const eddy_program *program = r->program;
    memset(r->arguments->words, 0, (program->executable.base_count - 1) * sizeof(int64_t));
    for (uint32_t e = 0; e < program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(program, e);
        if (external->tensor)
            set_external(r, e, external->tensor->storage);
    }
    for (uint32_t i = 0; i < program->made.count; i++) {
        uint32_t value = eddy_program_made_at(program, i)->value;
        r->operands[program->externals.count + i] =
            (eddy_vm_operand){.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .bytes = eddy_code_value_at(&program->code, value)->bytes};
    }
    eddy_status status = bind_inputs(r);
    return status == EDDY_OK ? check_aliases(r) : status;
}

static eddy_status draw(const running *r) {
    const eddy_program *program = r->program;
    uint64_t *words = (uint64_t *)r->arguments->words + program->executable.base_count - 1;
    eddy_generator **generators = program->generators.items;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < program->code.draws.count && status == EDDY_OK; i++, words += 2) {
        uint32_t number = eddy_code_draw_at(&program->code, i)->generator;
        status = eddy_generator_draw(r->caller, program->runtime,
                                     number == EDDY_CODE_NONE ? NULL : generators[number],
                                     r->origin, &words[0], &words[1]);
    }
    return status;
}

/* The number for one use. */
static eddy_status convert(const running *r, const eddy_code_scalar *use, int64_t *words) {
    eddy_scalar number = r->scalars[use->number];
    number.slot = 0;
    if (use->is_double) {
        double value =
            number.kind == EDDY_SCALAR_FLOAT ? number.value.floating : (double)number.value.integer;
        /* The op's function would look at it before the call: rates and norms are finite and not negative. */
        if (!(value >= 0 && value <= DBL_MAX) && r->is_unfit) {
            *r->is_unfit = true;
            return EDDY_INVALID_ARGUMENT;
        }
        memcpy(words, &value, sizeof(value));
        return EDDY_OK;
    }
    if (!eddy_number_convert(&number, (eddy_dtype)use->dtype, use->wraps)) {
        char text[64];
        eddy_number_format(number, text, sizeof(text));
        return eddy_fail(EDDY_OUT_OF_RANGE, r->origin,
                         "number %u is %s, which %s of %s does not hold", use->number, text,
                         eddy_dtype_name((eddy_dtype)use->dtype), use->op->name);
    }
    memcpy(words, &number, sizeof(number));
    return EDDY_OK;
}

static eddy_status convert_all(const running *r) {
    const eddy_code *code = &r->program->code;
    int64_t *words =
        r->arguments->words + r->program->executable.base_count - 1 + 2 * code->draws.count;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < code->scalars.count && status == EDDY_OK; i++)
        status = convert(r, eddy_code_scalar_at(code, i), words + 2 * (size_t)i);
    return status;
}

/* ---- outputs ---- */

static void discard_handles(const running *r, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        eddy_tensor_discard(r->caller, r->handles[i]);
}

/* New handles: of the outputs, and behind them a root for each made storage of which no output is all. */
static uint32_t handle_count(const eddy_program *program) {
    uint32_t count = program->handle_count;
    for (uint32_t i = 0; i < program->made.count; i++)
        count += eddy_program_made_at(program, i)->whole == EDDY_CODE_NONE;
    return count;
}

static eddy_status make_handles(const running *r) {
    uint32_t count = handle_count(r->program);
    bool has_room = eddy_scope_reserve(r->caller, r->program->output_count);
    for (uint32_t i = 0; i < count; i++) {
        r->handles[i] = has_room
                            ? eddy_tensor_acquire(r->caller, r->program->runtime, r->origin.address)
                            : NULL;
        if (!r->handles[i]) {
            discard_handles(r, i);
            return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a handle");
        }
    }
    return EDDY_OK;
}

/* A made storage belongs to the output that is all of it, or to a vector of its bytes, which only its views hold. */
static void find_roots(const running *r) {
    const eddy_program *program = r->program;
    uint32_t next = program->handle_count;
    for (uint32_t i = 0; i < program->made.count; i++) {
        const eddy_program_made *made = eddy_program_made_at(program, i);
        eddy_tensor *root = r->handles[made->whole != EDDY_CODE_NONE ? made->whole : next++];
        root->storage = r->operands[program->externals.count + i].storage;
        r->roots[i] = root;
        if (made->whole != EDDY_CODE_NONE)
            continue;
        int64_t bytes = eddy_code_value_at(&program->code, made->value)->bytes;
        root->dtype = EDDY_U8;
        root->device_kind = EDDY_DEVICE_CPU;
        root->device_index = 0;
        eddy_tensor_lay(root, 1, &bytes, bytes);
    }
}

/* Makes the handle a view of `root`. */
static void show(eddy_tensor *handle, eddy_tensor *root, const eddy_program_binding *binding,
                 int64_t shift) {
    eddy_layout layout = binding->layout;
    layout.offset += shift;
    handle->storage = root->storage;
    if (root != handle) {
        handle->root = root;
        eddy_tensor_retain(root);
    }
    handle->dtype = binding->dtype;
    handle->device_kind = binding->device_kind;
    handle->device_index = binding->device_index;
    eddy_tensor_set_layout(handle, &layout);
}

static const eddy_tensor *given_for(const running *r, uint32_t operand, int64_t *shift) {
    int64_t given = 0;
    for (uint32_t i = 0; i < r->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(r->program, i);
        if (binding->role != EDDY_ROLE_INPUT)
            continue;
        if (binding->operand == operand) {
            *shift = r->inputs.items[given]->offset;
            return r->inputs.items[given];
        }
        given++;
    }
    return NULL;
}

static eddy_tensor *root_of(const running *r, uint32_t operand, int64_t *shift) {
    *shift = 0;
    if (operand >= r->program->externals.count)
        return NULL;
    eddy_tensor *held = eddy_program_external_at(r->program, operand)->tensor;
    return held ? held : given_for(r, operand, shift)->root;
}

static eddy_tensor **place_of(const running *r, uint32_t output) {
    return r->places ? r->places[output] : &r->outputs[output];
}

/* The outputs become the user's, and the gradients those of the tape. */
static void hand_out(const running *r) {
    const eddy_program *program = r->program;
    uint32_t next = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_OUTPUT && binding->role != EDDY_PROGRAM_KEPT)
            continue;
        int64_t shift;
        eddy_tensor *handle = r->handles[next], *root = root_of(r, binding->operand, &shift);
        if (!root)
            root = r->roots[binding->operand - program->externals.count];
        show(handle, root, binding, shift);
        if (binding->role == EDDY_ROLE_OUTPUT && place_of(r, next))
            eddy_scope_own(r->caller, handle);
        next++;
    }
    const eddy_program_kept *kept = program->kept.items;
    next = program->output_count;
    for (uint32_t i = 0; i < program->kept.count; i++)
        eddy_autograd_kept_set(kept[i].node, kept[i].output,
                               kept[i].binding == EDDY_CODE_NONE ? NULL : r->handles[next++]);
    for (uint32_t i = program->handle_count; i < handle_count(program); i++)
        eddy_tensor_drop(r->handles[i]);
    /* Last: the array may be that of the inputs. */
    for (uint32_t i = 0; i < program->output_count; i++) {
        eddy_tensor **place = place_of(r, i);
        if (place)
            *place = r->handles[i];
        else
            eddy_tensor_drop(r->handles[i]);
    }
}

/* ---- all of it ---- */

static eddy_status submit(const running *r) {
    const eddy_program *program = r->program;
    r->arguments->program = eddy_program_retain(r->program);
    eddy_vm_call call = {.instruction = {.descriptor = &descriptor,
                                         .arguments = r->arguments,
                                         .operand_count = program->executable.base_count - 1,
                                         .address = r->origin.address},
                         .argument_bytes = argument_bytes(program),
                         .operands = r->operands,
                         .stream = eddy_stream_of_caller(r->caller, program->runtime),
                         .cost_ps = program->executable.cost_ps,
                         .part_count = program->code.recorded_count,
                         .place = program->has_registered ? EDDY_PLACE_WORKER : EDDY_PLACE_ANY,
                         .releases = r->caller->pending.numbers,
                         .release_count =
                             eddy_pending_release_count(&r->caller->pending, program->runtime)};
    eddy_status status = eddy_vm_submit(program->runtime->vm, &call);
    if (status != EDDY_OK)
        eddy_program_release(&r->arguments->program);
    return status;
}

/* For gradients: what the run writes has changed. */
static void note_written(const running *r) {
    for (uint32_t e = 0; e < r->program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(r->program, e);
        int64_t shift;
        if (is_written(r->program, external->value))
            eddy_tensor_written(root_of(r, e, &shift));
    }
}

static eddy_status check_constants(const running *r) {
    const eddy_program *program = r->program;
    for (uint32_t i = 0; program->constant_count > 0 && i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_CONSTANT)
            continue;
        const eddy_tensor *root = eddy_program_external_at(program, binding->operand)->tensor;
        if (eddy_load_relaxed(&root->version) != binding->version)
            return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                             "constant %s was written after the program was recorded",
                             binding->name);
    }
    return EDDY_OK;
}

static eddy_status run_bound(running *r) {
    eddy_status status = check_constants(r);
    if (status == EDDY_OK)
        status = bind(r);
    if (status == EDDY_OK)
        status = convert_all(r);
    if (status == EDDY_OK)
        status = make_handles(r);
    if (status != EDDY_OK)
        return status;
    status = draw(r);
    if (status == EDDY_OK)
        status = submit(r);
    if (status != EDDY_OK) {
        discard_handles(r, handle_count(r->program));
        return status;
    }
    note_written(r);
    find_roots(r);
    hand_out(r);
    return EDDY_OK;
}

static eddy_status fail_count(const running *r) {
    char names[256];
    eddy_program_list_names(r->program, EDDY_ROLE_INPUT, names, sizeof(names));
    return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin, "%lld inputs, the program has %u: %s",
                     (long long)r->inputs.count, r->program->input_count, names);
}

static eddy_status check_call(const running *r) {
    eddy_status status = eddy_program_check(r->program, r->origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_caller_may_call(r->caller))
        return eddy_caller_refuse(r->caller, r->origin);
    if (!eddy_runtime_is_running(r->program->runtime))
        return eddy_runtime_refuse(r->program->runtime, r->origin, "");
    if (r->caller->recorder)
        return eddy_fail(EDDY_UNSUPPORTED, r->origin,
                         "a recording is open on this thread: a program cannot be part of another");
    if (r->inputs.count != r->program->input_count || (r->inputs.count > 0 && !r->inputs.items))
        return fail_count(r);
    if (r->program->code.scalars.count > 0 && !r->scalars)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "the program takes numbers, which only a recorded function gives it");
    if (r->program->output_count > 0 && !r->outputs && !r->places)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin, "there is no room for the outputs");
    return EDDY_OK;
}

static eddy_status run(running *r) {
    const eddy_program *program = r->program;
    eddy_status status = check_call(r);
    if (status != EDDY_OK)
        return status;
    size_t operands = (program->executable.base_count - 1) * sizeof(*r->operands);
    size_t handles = (program->handle_count + program->made.count) * sizeof(*r->handles);
    size_t roots = program->made.count * sizeof(*r->roots);
    size_t bytes = argument_bytes(program) + operands + handles + roots;
    char *memory = eddy_caller_scratch_begin(r->caller, bytes);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
    r->arguments = (run_arguments *)(void *)memory;
    r->handles = (eddy_tensor **)(void *)(memory + argument_bytes(program));
    r->roots = (eddy_tensor **)(void *)(memory + argument_bytes(program) + handles);
    r->operands = (eddy_vm_operand *)(void *)(memory + argument_bytes(program) + handles + roots);
    status = run_bound(r);
    eddy_caller_scratch_end(r->caller, memory, bytes);
    return status;
}

eddy_status eddy_program_run_with(eddy_program *program, eddy_list inputs,
                                  const eddy_scalar *scalars, eddy_tensor **outputs, bool *is_unfit,
                                  eddy_origin origin) {
    return run(&(running){.program = program,
                          .is_unfit = is_unfit,
                          .caller = eddy_caller_get(),
                          .origin = origin,
                          .inputs = inputs,
                          .scalars = scalars,
                          .outputs = outputs});
}

eddy_status eddy_program_run_to(eddy_program *program, eddy_list inputs,
                                eddy_tensor **const *places, eddy_origin origin) {
    return run(&(running){.program = program,
                          .caller = eddy_caller_get(),
                          .origin = origin,
                          .inputs = inputs,
                          .places = places});
}

eddy_status eddy_program_run(eddy_program *program, eddy_list inputs, eddy_tensor **outputs) {
    return eddy_program_run_with(program, inputs, NULL, outputs, NULL, EDDY_ORIGIN("program_run"));
}
