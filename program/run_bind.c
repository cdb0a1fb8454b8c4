/* Binding a run: the tensors that were given become its operands, if they are what the program was recorded with. */
#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <program/run.h>
#include <string.h>

static eddy_status fail_shape(const eddy_run *r, const eddy_program_binding *binding,
                              const eddy_tensor *tensor) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, is, sizeof(is));
    eddy_shape_format(binding->layout.rank, binding->layout.dims, wanted, sizeof(wanted));
    bool has_dtype = tensor->dtype == binding->dtype;
    return eddy_fail(has_dtype ? EDDY_SHAPE_MISMATCH : EDDY_DTYPE_MISMATCH, r->origin,
                     "input %s is %s, the program was recorded with %s%s", binding->name, is,
                     eddy_dtype_name((eddy_dtype)binding->dtype), wanted);
}

static eddy_status fail_strides(const eddy_run *r, const eddy_program_binding *binding,
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

static eddy_status check_input(const eddy_run *r, const eddy_program_binding *binding,
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

static void set_external(const eddy_run *r, uint32_t e, eddy_storage_number storage) {
    uint32_t value = eddy_program_external_at(r->program, e)->value;
    r->operands[e] = (eddy_vm_operand){.storage = storage,
                                       .access = is_written(r->program, value) ? EDDY_ACCESS_MUT
                                                                               : EDDY_ACCESS_CONST};
}

/* Inputs are checked and bound, in the order of their bindings. */
static eddy_status bind_inputs(const eddy_run *r) {
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
static uint32_t find_alias(const eddy_run *r, uint32_t *input) {
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

static eddy_status check_aliases(const eddy_run *r) {
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

static eddy_status check_constants(const eddy_run *r) {
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

eddy_status eddy_run_bind(const eddy_run *r) {
    const eddy_program *program = r->program;
    eddy_status status = check_constants(r);
    if (status != EDDY_OK)
        return status;
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
    status = bind_inputs(r);
    return status == EDDY_OK ? check_aliases(r) : status;
}

static const eddy_tensor *given_for(const eddy_run *r, uint32_t operand, int64_t *shift) {
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

eddy_tensor *eddy_run_root(const eddy_run *r, uint32_t operand, int64_t *shift) {
    *shift = 0;
    if (operand >= r->program->externals.count)
        return NULL;
    eddy_tensor *held = eddy_program_external_at(r->program, operand)->tensor;
    return held ? held : given_for(r, operand, shift)->root;
}
