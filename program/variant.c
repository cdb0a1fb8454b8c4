#include <program/variant.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/passes/passes.h>
#include <program/quiet.h>

/* ---- the source ---- */

eddy_status eddy_program_keep_source(eddy_program *program, eddy_origin origin) {
    if (program->output_count < 2 || program->output_count > EDDY_VARIANT_OUTPUTS_MOST ||
        !(program->passes & 1u << EDDY_PASS_NUMBER_dead))
        return EDDY_OK;
    eddy_program_variants *variants =
        eddy_memory_acquire_zeroed(sizeof(*variants), EDDY_MEMORY_PROGRAM);
    program->variants = variants;
    return variants && eddy_code_copy(&variants->code, &program->code) &&
                   eddy_program_externals_copy(&variants->externals, &program->externals)
               ? EDDY_OK
               : eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the program");
}

static eddy_tensor *tensor_of(const eddy_program *program, uint32_t value) {
    for (uint32_t e = 0; e < program->externals.count; e++)
        if (eddy_program_external_at(program, e)->value == value)
            return eddy_program_external_at(program, e)->tensor;
    return NULL;
}

void eddy_program_source_take(eddy_program *program) {
    if (!program->variants)
        return;
    eddy_code_array *externals = &program->variants->externals;
    eddy_program_external *items = externals->items;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < externals->count; i++) {
        eddy_program_external external = items[i];
        bool is_input = external.input != EDDY_CODE_NONE;
        external.tensor = is_input ? NULL : tensor_of(program, external.value);
        if (!is_input && !external.tensor)
            continue;
        if (external.tensor)
            eddy_tensor_retain(external.tensor);
        items[kept++] = external;
    }
    externals->count = kept;
}

void eddy_program_variants_destroy(eddy_program_variants *variants) {
    if (!variants)
        return;
    eddy_program_external *externals = variants->externals.items;
    for (uint32_t i = 0; i < variants->externals.count; i++)
        if (externals[i].tensor)
            eddy_tensor_drop(externals[i].tensor);
    for (uint32_t i = 0; i < variants->count; i++)
        eddy_program_release(&variants->items[i].program);
    eddy_code_array_fini(&variants->externals, sizeof(*externals));
    eddy_code_fini(&variants->code);
    eddy_memory_release(variants, sizeof(*variants), EDDY_MEMORY_PROGRAM);
}

int64_t eddy_program_variants_bytes(eddy_program_variants *variants) {
    if (!variants)
        return 0;
    int64_t bytes = (int64_t)sizeof(*variants) + eddy_code_bytes(&variants->code) +
                    (int64_t)(variants->externals.capacity * sizeof(eddy_program_external));
    eddy_lock_acquire(&variants->lock);
    for (uint32_t i = 0; i < variants->count; i++)
        if (variants->items[i].program)
            bytes += eddy_program_bytes(variants->items[i].program);
    eddy_lock_release(&variants->lock);
    return bytes;
}

/* ---- making one ---- */

/* Bindings but for the outputs that are left out; to: per binding, its number in the variant. */
static bool copy_bindings(eddy_program *variant, const eddy_program *program, uint64_t outputs,
                          uint32_t *to) {
    uint32_t output = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *from = eddy_program_binding_at(program, i);
        uint32_t index;
        if (from->role == EDDY_ROLE_OUTPUT && !(outputs >> output++ & 1))
            continue;
        if (!eddy_code_array_add(&variant->bindings, sizeof(*from), 1, &index))
            return false;
        eddy_program_binding *binding = eddy_program_binding_at(variant, index);
        *binding = *from;
        binding->name = NULL;
        if (from->name && !(binding->name = eddy_program_name_copy(from->name)))
            return false;
        variant->output_count += from->role == EDDY_ROLE_OUTPUT;
        to[i] = index;
    }
    return true;
}

static bool copy_kept(eddy_program *variant, const eddy_program *program, const uint32_t *to) {
    const eddy_program_kept *from = program->kept.items;
    for (uint32_t i = 0; i < program->kept.count; i++) {
        eddy_program_kept kept = from[i];
        uint32_t index;
        if (!eddy_code_array_add(&variant->kept, sizeof(kept), 1, &index))
            return false;
        kept.binding = kept.binding == EDDY_CODE_NONE ? EDDY_CODE_NONE : to[kept.binding];
        kept.state = kept.state == EDDY_CODE_NONE ? EDDY_CODE_NONE : to[kept.state];
        eddy_autograd_node_retain(kept.node);
        ((eddy_program_kept *)variant->kept.items)[index] = kept;
    }
    return true;
}

static bool fill(eddy_program *variant, const eddy_program *program, uint64_t outputs) {
    size_t bytes = program->bindings.count * sizeof(uint32_t);
    uint32_t *to = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    bool is_filled =
        to && eddy_code_copy(&variant->code, &program->variants->code) &&
        eddy_program_externals_copy(&variant->externals, &program->variants->externals) &&
        copy_bindings(variant, program, outputs, to) && copy_kept(variant, program, to) &&
        eddy_program_hold_generators(variant, program) &&
        eddy_program_inner_copy(&variant->inner, &program->inner);
    if (to)
        eddy_memory_release(to, bytes, EDDY_MEMORY_PROGRAM);
    return is_filled;
}

/* NULL with false without memory; NULL with true where the program itself does as well. */
static bool make(const eddy_program *program, uint64_t outputs, eddy_program **made) {
    eddy_program *variant = *made = eddy_program_create(program->runtime);
    if (!variant)
        return false;
    variant->passes = program->passes;
    variant->input_count = program->input_count;
    variant->state_count = program->state_count;
    variant->constant_count = program->constant_count;
    variant->donated_count = program->donated_count;
    eddy_quiet quiet;
    eddy_error failed;
    eddy_quiet_begin(&quiet);
    bool is_made = fill(variant, program, outputs) &&
                   eddy_program_build(variant, (eddy_origin){"program_run_named", NULL}) == EDDY_OK;
    eddy_quiet_end(&quiet, &failed);
    if (!is_made || variant->code.instructions.count == program->code.instructions.count)
        eddy_program_release(made);
    return is_made;
}

/* ---- finding one ---- */

/* Lock: variants->lock. The number of all where there is none. */
static uint32_t find(const eddy_program_variants *variants, uint64_t outputs) {
    uint32_t i = 0;
    while (i < variants->count && variants->items[i].outputs != outputs)
        i++;
    return i;
}

/* Keeps the variant, unless another thread was faster; takes its reference. */
static void keep(eddy_program_variants *variants, uint64_t outputs, eddy_program *made) {
    eddy_lock_acquire(&variants->lock);
    bool is_new =
        find(variants, outputs) == variants->count && variants->count < EDDY_VARIANTS_MOST;
    if (is_new)
        variants->items[variants->count++] = (eddy_variant){outputs, made};
    eddy_lock_release(&variants->lock);
    if (!is_new)
        eddy_program_release(&made);
}

eddy_program *eddy_program_variant_for(eddy_program *program, uint64_t outputs) {
    eddy_program_variants *variants = program->variants;
    uint64_t all = UINT64_MAX >> (EDDY_VARIANT_OUTPUTS_MOST - program->output_count);
    eddy_program *found = NULL;
    if (!variants || outputs == all)
        return eddy_program_retain(program);
    for (int attempt = 0; attempt < 2; attempt++) {
        eddy_lock_acquire(&variants->lock);
        uint32_t i = find(variants, outputs);
        bool is_there = i < variants->count, is_full = variants->count == EDDY_VARIANTS_MOST;
        found = is_there ? eddy_program_retain(variants->items[i].program) : NULL;
        eddy_lock_release(&variants->lock);
        if (is_there || is_full || attempt > 0 || !make(program, outputs, &found))
            break;
        keep(variants, outputs, found);
    }
    return found ? found : eddy_program_retain(program);
}
