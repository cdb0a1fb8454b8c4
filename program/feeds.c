#include <program/feeds.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/host/transfer.h>
#include <program/program.h>
#include <string.h>

/* A run that gets copies of some inputs. */
typedef struct feeding {
    eddy_run *run;
    eddy_list given;     /* a copy: the array may be that of the outputs */
    eddy_tensor **items; /* what the run gets in place of these */
    const eddy_program_binding *
        *bindings; /* per input; NULL: there are too many inputs, and who runs it says so */
} feeding;

static bool is_on_device_of(const eddy_tensor *input, const eddy_program_binding *binding) {
    return !eddy_tensor_is_live(input) || (input->device_kind == binding->device_kind &&
                                           input->device_index == binding->device_index);
}

bool eddy_feeds_differ(const eddy_run *r) {
    int64_t i = 0;
    for (uint32_t b = 0; b < r->program->bindings.count && r->inputs.items; b++) {
        const eddy_program_binding *binding = eddy_program_binding_at(r->program, b);
        if (binding->role == EDDY_ROLE_INPUT && i < r->inputs.count &&
            !is_on_device_of(r->inputs.items[i++], binding))
            return true;
    }
    return false;
}

static void find_bindings(const feeding *f) {
    const eddy_program *program = f->run->program;
    int64_t i = 0;
    for (uint32_t b = 0; b < program->bindings.count && i < f->given.count; b++)
        if (eddy_program_binding_at(program, b)->role == EDDY_ROLE_INPUT)
            f->bindings[i++] = eddy_program_binding_at(program, b);
    while (i < f->given.count)
        f->bindings[i++] = NULL;
}

/* Whether input i is elsewhere than the program has it. */
static bool is_elsewhere(const feeding *f, int64_t i) {
    return f->bindings[i] && !is_on_device_of(f->given.items[i], f->bindings[i]);
}

static bool is_written(const feeding *f, const eddy_program_binding *binding) {
    return eddy_code_value_at(&f->run->program->code, binding->value)->is_written;
}

/* ---- what cannot be copied ---- */

static eddy_status check_input(const feeding *f, int64_t i) {
    const eddy_tensor *input = f->given.items[i];
    const char *name = f->bindings[i]->name;
    eddy_origin origin = f->run->origin;
    if (input->runtime != f->run->program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, origin,
                         "input %s belongs to another runtime than the program", name);
    if (input->autograd && f->run->caller->no_grad == 0)
        return eddy_fail(EDDY_DEVICE_MISMATCH, origin,
                         "input %s requires a gradient and lives on another device: pass "
                         "eddy_to_device of it",
                         name);
    if (f->bindings[i]->is_donated)
        return eddy_fail(EDDY_DEVICE_MISMATCH, origin,
                         "input %s is donated and lives on another device, where no run takes its "
                         "memory: pass eddy_to_device of it",
                         name);
    return EDDY_OK;
}

static bool is_alias(const eddy_tensor *a, const eddy_tensor *b) {
    return b && !eddy_tensor_is_none(b) && eddy_tensor_is_live(b) && a->root == b->root;
}

static bool is_input_alias(const feeding *f, int64_t i, bool writes) {
    for (int64_t k = 0; k < f->given.count; k++)
        if (k != i && is_alias(f->given.items[i], f->given.items[k]) && f->bindings[k] &&
            (writes || f->bindings[k]->is_donated || is_written(f, f->bindings[k])))
            return true;
    return false;
}

static bool is_target_alias(const feeding *f, int64_t i) {
    for (uint32_t k = 0; f->run->targets && k < f->run->program->output_count; k++)
        if (is_alias(f->given.items[i], f->run->targets[k]))
            return true;
    return false;
}

/* Whether another tensor takes the place of what the program holds as this external. */
static bool is_replaced(const feeding *f, uint32_t external) {
    const eddy_program *program = f->run->program;
    uint32_t number = 0;
    for (uint32_t b = 0; f->run->states && b < program->bindings.count; b++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, b);
        if (binding->role == EDDY_ROLE_STATE && !eddy_tensor_is_none(f->run->states[number++]) &&
            binding->operand == external)
            return true;
    }
    return false;
}

/* State that was given. */
static bool is_state_alias(const feeding *f, int64_t i, bool writes) {
    const eddy_program *program = f->run->program;
    uint32_t number = 0;
    for (uint32_t b = 0; f->run->states && b < program->bindings.count; b++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, b);
        if (binding->role == EDDY_ROLE_STATE &&
            is_alias(f->given.items[i], f->run->states[number++]) &&
            (writes || is_written(f, binding)))
            return true;
    }
    return false;
}

/* State of the program's own, and captured tensors. */
static bool is_held_alias(const feeding *f, int64_t i, bool writes) {
    const eddy_program *program = f->run->program;
    for (uint32_t e = 0; e < program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(program, e);
        if (is_alias(f->given.items[i], external->tensor) &&
            (writes || eddy_code_value_at(&program->code, external->value)->is_written) &&
            !is_replaced(f, e))
            return true;
    }
    return false;
}

/* A copy shares no memory with what its tensor shares it with: that matters where the run writes either. */
static eddy_status check_alias(const feeding *f, int64_t i) {
    bool writes = is_written(f, f->bindings[i]);
    if (!is_input_alias(f, i, writes) && !is_target_alias(f, i) && !is_state_alias(f, i, writes) &&
        !is_held_alias(f, i, writes))
        return EDDY_OK;
    return eddy_fail(EDDY_INVALID_ARGUMENT, f->run->origin,
                     "input %s shares its memory with another tensor of the run, and the program "
                     "writes it",
                     f->bindings[i]->name);
}

/* ---- copies ---- */

/* Whether the input is not row-major, and no more was the recorded one. */
static bool has_strides(const eddy_tensor *input, const eddy_program_binding *binding) {
    eddy_layout layout;
    eddy_tensor_layout(input, &layout);
    if (input->is_contiguous || layout.rank != binding->layout.rank)
        return false;
    return memcmp(layout.strides, binding->layout.strides,
                  (size_t)layout.rank * sizeof(layout.strides[0])) == 0;
}

/* With its strides, which are those that the program was recorded with: what lies between its elements comes along. */
static eddy_status bring_strided(const eddy_run *r, eddy_tensor *input, eddy_device device,
                                 eddy_tensor **brought) {
    eddy_layout layout, row = {.rank = 1, .strides = {1}};
    int64_t high;
    eddy_tensor_layout(input, &layout);
    eddy_layout_extent(&layout, &row.offset, &high);
    row.dims[0] = high - row.offset;
    eddy_tensor *all = eddy_tensor_view(r->caller, input->root, &row, r->origin), *there;
    if (!all)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_transfer_elements(r->caller, all, device, r->origin, &there);
    eddy_tensor_drop(all);
    if (status != EDDY_OK)
        return status;
    layout.offset -= row.offset;
    *brought = eddy_tensor_view(r->caller, there, &layout, r->origin);
    eddy_tensor_drop(there);
    return *brought ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status bring(const feeding *f, int64_t i) {
    eddy_run *r = f->run;
    eddy_tensor *input = f->given.items[i];
    const eddy_program_binding *binding = f->bindings[i];
    eddy_layout layout;
    eddy_status status = eddy_tensor_await_shape(input, r->origin);
    if (status != EDDY_OK)
        return status;
    eddy_tensor_layout(input, &layout);
    if (is_written(f, binding) && !eddy_layout_is_injective(&layout))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "elements of input %s share memory, and the program writes it",
                         binding->name);
    eddy_device device = {(eddy_device_kind)binding->device_kind, binding->device_index};
    status = has_strides(input, binding)
                 ? bring_strided(r, input, device, &f->items[i])
                 : eddy_transfer_elements(r->caller, input, device, r->origin, &f->items[i]);
    if (status == EDDY_OK)
        eddy_add_relaxed(&r->program->feed_copies, (int64_t)1);
    return status;
}

/* What the run writes of its inputs is written to what was given. */
static eddy_status write_back(const feeding *f) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < f->given.count && status == EDDY_OK; i++)
        if (f->items[i] != f->given.items[i] && is_written(f, f->bindings[i]))
            status = eddy_copy_to(f->run->caller, f->items[i], f->given.items[i],
                                  f->run->origin.address);
    return status;
}

/* ---- all of it ---- */

/* A failed run hands nothing out. */
static void take_outputs_back(const eddy_run *r) {
    for (uint32_t i = 0; i < r->program->output_count; i++) {
        eddy_tensor **place = eddy_run_place(r, i);
        if (place)
            eddy_release(place);
    }
}

static eddy_status feed(const feeding *f, eddy_status (*run)(eddy_run *r)) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < f->given.count && status == EDDY_OK; i++) {
        if (!is_elsewhere(f, i))
            continue;
        status = check_input(f, i);
        if (status == EDDY_OK)
            status = check_alias(f, i);
    }
    for (int64_t i = 0; i < f->given.count && status == EDDY_OK; i++)
        if (is_elsewhere(f, i))
            status = bring(f, i);
    if (status != EDDY_OK)
        return status;
    f->run->inputs.items = f->items;
    status = run(f->run);
    if (status != EDDY_OK)
        return status;
    status = write_back(f);
    if (status != EDDY_OK)
        take_outputs_back(f->run);
    return status;
}

eddy_status eddy_feeds_run(eddy_run *r, eddy_status (*run)(eddy_run *r)) {
    if (!eddy_caller_may_call(r->caller))
        return eddy_caller_refuse(r->caller, r->origin);
    eddy_status status = eddy_program_check(r->program, r->origin);
    if (status != EDDY_OK)
        return status;
    eddy_list given = r->inputs;
    size_t count = (size_t)given.count, bytes = 3 * count * sizeof(void *);
    eddy_tensor **memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for the inputs");
    feeding f = {.run = r,
                 .given = {memory, given.count},
                 .items = memory + count,
                 .bindings = (const eddy_program_binding **)(void *)(memory + 2 * count)};
    memcpy(memory, given.items, count * sizeof(*memory));
    memcpy(f.items, given.items, count * sizeof(*memory));
    find_bindings(&f);
    status = feed(&f, run);
    r->inputs = given;
    for (size_t i = 0; i < count; i++)
        if (f.items[i] != f.given.items[i])
            eddy_tensor_drop(f.items[i]);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
