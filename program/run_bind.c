/* Binding a run: the tensors that were given become its operands, if they are what the program was recorded with. */
#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/run.h>
#include <string.h>

/* What messages call a tensor that was given. */
static const char *what_is(const eddy_program_binding *binding) {
    switch (binding->role) {
    case EDDY_ROLE_OUTPUT:
        return "the target of output";
    case EDDY_ROLE_STATE:
        return "state";
    default:
        return "input";
    }
}

static eddy_status fail_shape(const eddy_run *r, const eddy_program_binding *binding,
                              const eddy_tensor *tensor) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, is, sizeof(is));
    eddy_shape_format(binding->layout.rank, binding->layout.dims, wanted, sizeof(wanted));
    bool has_dtype = tensor->dtype == binding->dtype;
    return eddy_fail(has_dtype ? EDDY_SHAPE_MISMATCH : EDDY_DTYPE_MISMATCH, r->origin,
                     "%s %s is %s, the program was recorded with %s%s", what_is(binding),
                     binding->name, is, eddy_dtype_name((eddy_dtype)binding->dtype), wanted);
}

static eddy_status fail_strides(const eddy_run *r, const eddy_program_binding *binding,
                                const eddy_layout *layout) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_shape_format(layout->rank, layout->strides, is, sizeof(is));
    eddy_shape_format(layout->rank, binding->layout.strides, wanted, sizeof(wanted));
    return eddy_fail(EDDY_SHAPE_MISMATCH, r->origin,
                     "%s %s has the strides %s, the program was recorded with %s", what_is(binding),
                     binding->name, is, wanted);
}

/* Strides of axes without a second element name no other element. */
static bool has_strides(const eddy_program_binding *binding, const eddy_layout *layout) {
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->dims[d] > 1 && layout->strides[d] != binding->layout.strides[d])
            return binding->count == 0;
    return true;
}

static eddy_status check_given(const eddy_run *r, const eddy_program_binding *binding,
                               eddy_tensor *tensor) {
    eddy_status status = eddy_tensor_check(tensor, binding->name, r->origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(tensor, r->origin);
    if (status != EDDY_OK)
        return status;
    if (tensor->runtime != r->program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, r->origin,
                         "%s %s belongs to another runtime than the program", what_is(binding),
                         binding->name);
    if (tensor->device_kind != binding->device_kind ||
        tensor->device_index != binding->device_index)
        return eddy_fail(EDDY_DEVICE_MISMATCH, r->origin, "%s %s lives on another device",
                         what_is(binding), binding->name);
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

static bool is_all_of_storage(const eddy_tensor *tensor) {
    const eddy_tensor *root = tensor->root;
    return tensor->offset == 0 && tensor->count * eddy_dtype_size((eddy_dtype)tensor->dtype) ==
                                      root->count * eddy_dtype_size((eddy_dtype)root->dtype);
}

/* is_whole: the tensor is all of its storage. */
static void set_external(const eddy_run *r, uint32_t e, eddy_storage_number storage,
                         bool is_whole) {
    const eddy_program_external *external = eddy_program_external_at(r->program, e);
    bool is_donated = eddy_code_value_at(&r->program->code, external->value)->is_donated;
    bool is_mut = is_donated || is_written(r->program, external->value);
    r->operands[e] =
        (eddy_vm_operand){.storage = storage,
                          .access = is_mut ? EDDY_ACCESS_MUT : EDDY_ACCESS_CONST,
                          .covers_all = external->is_covered && is_whole && !is_donated,
                          .is_given_up = is_donated};
}

/* Of a tensor that is checked: bindings count from its first element as they did from that of the recorded one. */
static void set_given(const eddy_run *r, const eddy_program_binding *binding, eddy_tensor *tensor) {
    r->given[binding->operand] = tensor;
    set_external(r, binding->operand, tensor->storage, is_all_of_storage(tensor));
    r->arguments->words[binding->operand] =
        (tensor->offset - binding->layout.offset) * eddy_dtype_size((eddy_dtype)tensor->dtype);
}

/* A run writes into no tensor whose gradient is wanted, as no op does that is given a target. */
static eddy_status check_gradient(const eddy_run *r, const eddy_program_binding *binding,
                                  const eddy_tensor *target) {
    if (!target->autograd || r->caller->no_grad > 0)
        return EDDY_OK;
    return eddy_fail(eddy_autograd_is_leaf(eddy_autograd_node_of(target->autograd))
                         ? EDDY_INVALID_ARGUMENT
                         : EDDY_UNSUPPORTED,
                     r->origin,
                     "%s %s requires a gradient, which cannot follow into it; between "
                     "no_grad_begin and _end that is allowed",
                     what_is(binding), binding->name);
}

/* What is donated is the runtime's memory, all of it, and nobody's gradient. */
static eddy_status check_donated(const eddy_run *r, const eddy_program_binding *binding,
                                 const eddy_tensor *tensor) {
    if (!is_all_of_storage(tensor))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "input %s is donated, and is given a part of a larger tensor",
                         binding->name);
    if (tensor->root->link.after != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "input %s is donated, and is given memory that Eddy has borrowed",
                         binding->name);
    return check_gradient(r, binding, tensor);
}

static eddy_status bind_input(const eddy_run *r, const eddy_program_binding *binding,
                              eddy_tensor *tensor) {
    eddy_status status = check_given(r, binding, tensor);
    if (status == EDDY_OK && binding->is_donated)
        status = check_donated(r, binding, tensor);
    if (status == EDDY_OK)
        set_given(r, binding, tensor);
    return status;
}

/* ---- state ---- */

/* What the recorded calls did to the tape of the recorded tensor, a run does to that of the one that is given. */
static eddy_status check_leaf(const eddy_run *r, const eddy_program_binding *binding,
                              const eddy_tensor *tensor) {
    const eddy_program_kept *kept = r->program->kept.items;
    if (binding->has_own_gradient)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "the program uses the gradient that state %s had when it was recorded: "
                         "name that as state, too, or drop it within the recording",
                         binding->name);
    for (uint32_t i = 0; i < r->program->kept.count; i++)
        if (kept[i].state != EDDY_CODE_NONE &&
            eddy_program_binding_at(r->program, kept[i].state) == binding &&
            !(tensor->autograd && eddy_autograd_is_leaf(eddy_autograd_node_of(tensor->autograd))))
            return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                             "state %s is given a tensor that wants no gradient, and the program "
                             "keeps one for it",
                             binding->name);
    return EDDY_OK;
}

/* Code names storages, so that state which is a part of one cannot move alone, and names of one storage move together. */
static eddy_status bind_state(const eddy_run *r, const eddy_program_binding *binding,
                              eddy_tensor *tensor) {
    if (!binding->is_whole)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "state %s is a part of a larger tensor of the program: no other tensor "
                         "can take its place",
                         binding->name);
    eddy_status status = check_given(r, binding, tensor);
    if (status == EDDY_OK)
        status = check_leaf(r, binding, tensor);
    if (status != EDDY_OK)
        return status;
    if (binding->is_covered && !is_all_of_storage(tensor))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "state %s is given a part of a larger tensor, and the program writes all "
                         "of its memory",
                         binding->name);
    const eddy_tensor *other = r->given[binding->operand];
    if (other && (other->storage != tensor->storage || other->offset != tensor->offset))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "state %s has the memory of another state in the program, and is given "
                         "that of another tensor",
                         binding->name);
    set_given(r, binding, tensor);
    return EDDY_OK;
}

/* ---- targets ---- */

/* The run makes the storage of an output with a target no more, but writes all of the target's: instructions that make a value write all of it
 * and read nothing (so that poison heals), wherever it lies. */
static eddy_status bind_target(const eddy_run *r, const eddy_program_binding *binding,
                               eddy_tensor *target) {
    const eddy_program *program = r->program;
    if (binding->operand < program->externals.count)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "output %s is a tensor that is there before a run, or a part of one: it "
                         "is not written into another",
                         binding->name);
    if (!binding->is_whole)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "output %s is a part of a tensor of the program: it is not written into "
                         "another",
                         binding->name);
    eddy_status status = check_given(r, binding, target);
    if (status == EDDY_OK)
        status = check_gradient(r, binding, target);
    if (status != EDDY_OK)
        return status;
    if (!is_all_of_storage(target))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "%s %s is a part of a larger tensor: a run writes whole ones",
                         what_is(binding), binding->name);
    uint32_t made = binding->operand - program->externals.count;
    if (r->roots[made])
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "output %s shares its memory with another output that has a target",
                         binding->name);
    r->roots[made] = target->root;
    r->operands[binding->operand] = (eddy_vm_operand){
        .storage = target->storage, .access = EDDY_ACCESS_MUT, .covers_all = true};
    return EDDY_OK;
}

/* ---- aliases ---- */

static bool is_given(const eddy_run *r, uint32_t operand) {
    uint32_t externals = r->program->externals.count;
    return operand < externals ? r->given[operand] != NULL : r->roots[operand - externals] != NULL;
}

/* The binding that names an operand in messages; NULL if it has none: of outputs of one storage the one with the target, and none where an
 * input or state shows what an operand is. */
static const eddy_program_binding *binding_of(const eddy_run *r, uint32_t operand) {
    const eddy_program_binding *found = NULL;
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < eddy_program_named_count(r->program); i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(r->program, i);
        bool is_output = binding->role == EDDY_ROLE_OUTPUT;
        bool has_target = is_output && r->targets && !eddy_tensor_is_none(r->targets[outputs]);
        outputs += is_output;
        if (binding->operand != operand)
            continue;
        if (!is_output || has_target)
            return binding;
        found = binding;
    }
    return found;
}

/* The program was recorded with tensors of their own: what it writes may not be something else's too. The operand that shares the storage of
 * one that was given, *given; EDDY_CODE_NONE if none does. */
static uint32_t find_alias(const eddy_run *r, uint32_t *given) {
    uint32_t count = r->program->externals.count + r->program->made.count;
    for (uint32_t e = 0; e < count; e++) {
        if (!is_given(r, e))
            continue;
        for (uint32_t k = 0; k < count; k++)
            if (k != e && r->operands[k].storage == r->operands[e].storage &&
                (r->operands[k].access != EDDY_ACCESS_CONST ||
                 r->operands[e].access != EDDY_ACCESS_CONST)) {
                *given = e;
                return k;
            }
    }
    return EDDY_CODE_NONE;
}

static eddy_status check_aliases(const eddy_run *r) {
    uint32_t given, other = find_alias(r, &given);
    if (EDDY_LIKELY(other == EDDY_CODE_NONE))
        return EDDY_OK;
    if (r->unfit) {
        *r->unfit = "an input shares memory that it writes";
        return EDDY_INVALID_ARGUMENT;
    }
    const eddy_program_binding *one = binding_of(r, given), *two = binding_of(r, other);
    bool is_target = other >= r->program->externals.count;
    return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin, "%s %s shares its memory with %s%s, and %s",
                     what_is(one), one->name, is_target ? "the target of output " : "",
                     two ? two->name : "a captured tensor",
                     r->operands[given].is_given_up   ? "is donated"
                     : r->operands[other].is_given_up ? "that is donated"
                                                      : "the program writes it");
}

/* The ring would give up what the run has just written, or later what others have written meanwhile. */
static eddy_status check_ring(const eddy_run *r) {
    uint32_t count = r->program->externals.count + r->program->made.count;
    for (uint32_t e = 0; r->turn && e < count; e++) {
        const eddy_vm_operand *operand = &r->operands[e];
        if (!is_given(r, e) || operand->access == EDDY_ACCESS_CONST || operand->is_given_up ||
            !eddy_ring_turn_holds(r->turn, operand->storage))
            continue;
        const eddy_program_binding *binding = binding_of(r, e);
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "%s %s is an output of the ring, which will give it up, and the program "
                         "writes it",
                         what_is(binding), binding->name);
    }
    return EDDY_OK;
}

static eddy_status fail_late_target(const eddy_run *r, const eddy_program_binding *binding) {
    return eddy_fail(EDDY_UNSUPPORTED, r->origin,
                     "output %s has no target, since its shape depends on data", binding->name);
}

/* What was given, in the order of the bindings. */
static eddy_status bind_given(const eddy_run *r) {
    const eddy_program *program = r->program;
    int64_t inputs = 0, outputs = 0, states = 0;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < program->bindings.count && status == EDDY_OK; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        eddy_tensor *given;
        if (binding->role == EDDY_ROLE_INPUT)
            status = bind_input(r, binding, r->inputs.items[inputs++]);
        else if (binding->role == EDDY_ROLE_OUTPUT && r->targets &&
                 !eddy_tensor_is_none(given = r->targets[outputs++]))
            status = eddy_code_value_at(&program->code, binding->value)->is_late
                         ? fail_late_target(r, binding)
                         : bind_target(r, binding, given);
        else if (binding->role == EDDY_ROLE_STATE && r->states &&
                 !eddy_tensor_is_none(given = r->states[states++]))
            status = bind_state(r, binding, given);
    }
    return status;
}

eddy_status eddy_run_bind(const eddy_run *r) {
    const eddy_program *program = r->program;
    eddy_status status = eddy_program_check_constants(program, r->origin);
    if (status != EDDY_OK)
        return status;
    memset(r->arguments->words, 0, (program->executable->base_count - 1) * sizeof(int64_t));
    for (uint32_t e = 0; e < program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(program, e);
        r->given[e] = NULL;
        if (external->tensor)
            set_external(r, e, external->tensor->storage, true);
    }
    for (uint32_t i = 0; i < program->made.count; i++) {
        uint32_t value = eddy_program_made_at(program, i)->value;
        r->roots[i] = NULL;
        const eddy_code_value *made = eddy_code_value_at(&program->code, value);
        r->operands[program->externals.count + i] = (eddy_vm_operand){
            .access = EDDY_ACCESS_MUT,
            .is_new = true,
            /* What stands for the result of a call behind the run has no bytes, and is anywhere. */
            .device = made->is_late
                          ? 0
                          : eddy_runtime_vm_device(program->runtime, eddy_code_value_device(made)),
            .bytes = made->bytes};
    }
    status = bind_given(r);
    if (status == EDDY_OK)
        status = check_aliases(r);
    return status == EDDY_OK ? check_ring(r) : status;
}

eddy_tensor *eddy_run_root(const eddy_run *r, uint32_t operand, int64_t *shift) {
    *shift = 0;
    if (operand >= r->program->externals.count)
        return NULL;
    eddy_tensor *given = r->given[operand];
    if (!given)
        return eddy_program_external_at(r->program, operand)->tensor;
    *shift = given->offset;
    return given->root;
}
