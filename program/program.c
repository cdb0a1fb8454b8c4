/* The life of programs, and what there is to know about one. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <interpreter/handle/generator.h>
#include <interpreter/tape/autograd.h>
#include <program/build_cache.h>
#include <program/cut.h>
#include <program/gradient.h>
#include <program/variant.h>
#include <string.h>

eddy_program *eddy_program_create(eddy_runtime *runtime) {
    eddy_program *program = eddy_memory_acquire_zeroed(sizeof(*program), EDDY_MEMORY_PROGRAM);
    if (!program)
        return NULL;
    eddy_store_relaxed(&program->references, 1u);
    program->runtime = runtime;
    program->passes = runtime->passes;
    eddy_runtime_bind(runtime);
    return program;
}

bool eddy_program_hold_generators(eddy_program *program, const eddy_program *of) {
    eddy_generator **held = of->generators.items;
    for (uint32_t i = 0; i < of->generators.count; i++) {
        uint32_t index;
        if (!eddy_code_array_add(&program->generators, sizeof(*held), 1, &index))
            return false;
        ((eddy_generator **)program->generators.items)[index] = eddy_generator_retain(held[i]);
    }
    return true;
}

bool eddy_program_inner_add(eddy_code_array *inner, eddy_program *program) {
    eddy_program **programs = inner->items;
    uint32_t index;
    for (uint32_t i = 0; i < inner->count; i++)
        if (programs[i] == program)
            return true;
    if (!eddy_code_array_add(inner, sizeof(*programs), 1, &index))
        return false;
    ((eddy_program **)inner->items)[index] = eddy_program_retain(program);
    return true;
}

bool eddy_program_inner_copy(eddy_code_array *to, const eddy_code_array *from) {
    eddy_program **programs = from->items;
    bool is_copied = true;
    for (uint32_t i = 0; i < from->count && is_copied; i++)
        is_copied = eddy_program_inner_add(to, programs[i]);
    return is_copied;
}

void eddy_program_inner_fini(eddy_code_array *inner) {
    eddy_program **programs = inner->items;
    for (uint32_t i = 0; i < inner->count; i++)
        eddy_program_release(&programs[i]);
    eddy_code_array_fini(inner, sizeof(*programs));
}

void eddy_program_destroy(eddy_program *program) {
    for (uint32_t i = 0; i < program->externals.count; i++)
        if (eddy_program_external_at(program, i)->tensor)
            eddy_tensor_drop(eddy_program_external_at(program, i)->tensor);
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        char *name = eddy_program_binding_at(program, i)->name;
        if (name)
            eddy_memory_release(name, strlen(name) + 1, EDDY_MEMORY_PROGRAM);
    }
    eddy_generator **generators = program->generators.items;
    for (uint32_t i = 0; i < program->generators.count; i++)
        eddy_generator_release(&generators[i]);
    eddy_program_inner_fini(&program->inner);
    eddy_program_kept *kept = program->kept.items;
    for (uint32_t i = 0; i < program->kept.count; i++)
        eddy_autograd_node_release(kept[i].node);
    eddy_code_array_fini(&program->kept, sizeof(*kept));
    eddy_kept_before_fini(&program->befores);
    eddy_tape_seen_fini(&program->seen_of_tape);
    eddy_program_gradient_destroy(program->gradient);
    eddy_program_variants_destroy(program->variants);
    eddy_built_release(program->built);
    eddy_arena_layout_release(program->layout);
    eddy_code_fini(&program->code);
    eddy_code_array_fini(&program->externals, sizeof(eddy_program_external));
    eddy_code_array_fini(&program->bindings, sizeof(eddy_program_binding));
    eddy_code_array_fini(&program->generators, sizeof(eddy_generator *));
    eddy_code_array_fini(&program->made, sizeof(eddy_program_made));
    eddy_runtime_unbind(program->runtime);
    eddy_memory_release(program, sizeof(*program), EDDY_MEMORY_PROGRAM);
}

bool eddy_program_externals_copy(eddy_code_array *to, const eddy_code_array *from) {
    const eddy_program_external *items = from->items;
    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t index;
        if (!eddy_code_array_add(to, sizeof(*items), 1, &index))
            return false;
        ((eddy_program_external *)to->items)[index] = items[i];
        if (items[i].tensor)
            eddy_tensor_retain(items[i].tensor);
    }
    return true;
}

bool eddy_program_has_wants(const eddy_program *program) {
    for (uint32_t i = 0; i < program->externals.count; i++) {
        const eddy_program_external *external = eddy_program_external_at(program, i);
        if (external->tensor &&
            (external->tensor->autograd != external->autograd ||
             eddy_load_relaxed(&external->tensor->view_leaves) != external->view_leaves))
            return false;
    }
    return true;
}

bool eddy_program_tape_copy(eddy_program *to, const eddy_program *from) {
    to->uses_tape = from->uses_tape;
    to->uses_kept = from->uses_kept;
    to->sees_beyond = from->sees_beyond;
    return eddy_kept_before_copy(&to->befores, &from->befores) &&
           eddy_tape_seen_copy(&to->seen_of_tape, &from->seen_of_tape);
}

eddy_status eddy_program_check(const eddy_program *program, eddy_origin origin) {
    return program ? EDDY_OK : eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the program is NULL");
}

eddy_status eddy_program_check_list(const void *items, int64_t count, const char *what,
                                    eddy_origin origin) {
    if (count == 0 || (count > 0 && items))
        return EDDY_OK;
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the list of %s has count %lld%s", what,
                     (long long)count, count > 0 ? ", but its items are NULL" : "");
}

eddy_status eddy_program_check_constants(const eddy_program *program, eddy_origin origin) {
    for (uint32_t i = 0; program->constant_count > 0 && i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_CONSTANT)
            continue;
        const eddy_tensor *root = eddy_program_external_at(program, binding->operand)->tensor;
        if (eddy_load_relaxed(&root->version) != binding->version)
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                             "constant %s was written after the program was recorded",
                             binding->name);
    }
    for (uint32_t i = 0; i < program->inner.count; i++) {
        eddy_status status =
            eddy_program_check_constants(((eddy_program **)program->inner.items)[i], origin);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

eddy_program *eddy_program_retain(eddy_program *program) {
    if (program)
        eddy_add_relaxed(&program->references, 1u);
    return program;
}

void eddy_program_release(eddy_program **program) {
    eddy_program *released = program ? *program : NULL;
    if (!released)
        return;
    *program = NULL;
    if (eddy_sub_acq_rel(&released->references, 1u) == 1)
        eddy_program_destroy(released);
}

/* An empty one for what is not built: a recorded function counts these programs, too. */
static const eddy_executable *executable_of(const eddy_program *program) {
    static const eddy_executable none;
    return program->executable ? program->executable : &none;
}

int64_t eddy_program_bytes(const eddy_program *program) {
    size_t bytes = sizeof(*program) + program->externals.capacity * sizeof(eddy_program_external) +
                   program->bindings.capacity * sizeof(eddy_program_binding);
    int64_t all = (int64_t)bytes + eddy_code_bytes(&program->code) +
                  eddy_executable_bytes(executable_of(program)) +
                  eddy_program_variants_bytes(program->variants) +
                  (program->layout ? eddy_arena_layout_bytes(program->layout) : 0);
    const eddy_program_gradient *gradient = program->gradient;
    if (!gradient)
        return all;
    for (uint32_t i = 0; i < gradient->ways->count; i++)
        all += eddy_program_bytes(gradient->ways->items[i].program);
    all += eddy_gradient_calls_bytes(&gradient->ways->calls);
    return all + eddy_program_bytes(gradient->forward);
}

eddy_status eddy_program_describe(const eddy_program *program, eddy_program_info *info) {
    eddy_origin origin = EDDY_ORIGIN("program_describe");
    eddy_status status = eddy_program_check(program, origin);
    if (status != EDDY_OK)
        return status;
    if (!info)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the info");
    const eddy_executable *executable = executable_of(program);
    eddy_program_info found = {
        .size = info->size,
        .instruction_count = eddy_code_call_count(&program->code) - eddy_cut_count(&program->code),
        .input_count = program->input_count,
        .output_count = program->output_count,
        .state_count = program->state_count,
        .captured_count = program->externals.count - program->input_count - program->state_count -
                          program->constant_count,
        .draw_count = program->code.draws.count,
        .arena_bytes = executable->arena.bytes,
        .arena_bound = executable->arena.bound,
        .program_bytes = eddy_program_bytes(program),
        .estimated_ns = executable->cost_ps / 1000,
        .recorded_count = program->code.recorded_count,
        .group_count = program->code.groups.count,
        .constant_count = program->constant_count,
        .binding_count = eddy_program_named_count(program),
        .feed_count = eddy_load_relaxed(&program->feed_copies),
        .stream_count = executable->streams.count,
        .wait_count = executable->streams.wait_count,
        .dependency_count = executable->streams.dependency_count,
        .streams_ns = executable->streams.count > 1 ? executable->streams.several_ps / 1000 : 0};
    if (program->gradient)
        eddy_program_gradient_describe(program->gradient, &found);
    size_t bytes = info->size > 0 && info->size < sizeof(found) ? info->size : sizeof(found);
    memcpy(info, &found, bytes);
    return EDDY_OK;
}
