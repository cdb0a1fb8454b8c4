/* Building a program: what it needs is kept, its operands are numbered, its code goes through the passes, and it gets its executable. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/caller.h>
#include <program/build_cache.h>
#include <program/control.h>
#include <program/cut.h>
#include <program/draw_ops.h>
#include <program/fold.h>
#include <program/fusions.h>
#include <program/gradient.h>
#include <program/late_calls.h>
#include <program/lower.h>
#include <program/passes/passes.h>
#include <program/program.h>
#include <string.h>

static eddy_status fail_memory(eddy_origin origin) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the program");
}

/* Marks the values that instructions or bindings name. */
static void find_used(const eddy_program *program, bool *is_used) {
    const eddy_code *code = &program->code;
    for (uint32_t i = 0; i < eddy_code_call_count(code); i++) {
        const eddy_code_instruction *instruction = eddy_code_call_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(code, instruction->operands_at + k)->value;
            if (value != EDDY_CODE_NONE)
                is_used[value] = true;
        }
    }
    for (uint32_t i = 0; i < program->bindings.count; i++)
        is_used[eddy_program_binding_at(program, i)->value] = true;
}

/* Captured storages that no instruction uses are given up: inputs show what they did, or it was dead code. */
eddy_status eddy_program_drop_unused(eddy_program *program, eddy_origin origin) {
    eddy_code_array *externals = &program->externals;
    uint32_t kept = 0;
    bool *is_used = eddy_memory_acquire_zeroed(program->code.values.count, EDDY_MEMORY_PROGRAM);
    if (!is_used)
        return fail_memory(origin);
    find_used(program, is_used);
    for (uint32_t e = 0; e < externals->count; e++) {
        eddy_program_external *external = eddy_program_external_at(program, e);
        if (external->input != EDDY_CODE_NONE || is_used[external->value])
            *eddy_program_external_at(program, kept++) = *external;
        else if (external->tensor)
            eddy_tensor_drop(external->tensor);
    }
    externals->count = kept;
    eddy_memory_release(is_used, program->code.values.count, EDDY_MEMORY_PROGRAM);
    return EDDY_OK;
}

static bool is_whole(const eddy_code *code, const eddy_program_binding *binding) {
    return binding->layout.offset == 0 &&
           binding->count * eddy_dtype_size((eddy_dtype)binding->dtype) ==
               eddy_code_value_at(code, binding->value)->bytes;
}

/* A value that the program makes and that a run leaves has a storage of its own. */
static bool number_made(eddy_program *program, uint32_t value, eddy_bases *bases) {
    uint32_t at;
    if (bases->of[value] != 0)
        return true;
    if (!eddy_code_array_add(&program->made, sizeof(eddy_program_made), 1, &at))
        return false;
    *eddy_program_made_at(program, at) =
        (eddy_program_made){.value = value, .whole = EDDY_CODE_NONE};
    bases->of[value] = 1 + program->externals.count + at;
    return true;
}

/* The output is all or a part of a made storage, which may be that of an earlier output. */
static bool number_output(eddy_program *program, const eddy_program_binding *binding,
                          uint32_t output, eddy_bases *bases) {
    uint32_t first = 1 + program->externals.count;
    if (!number_made(program, binding->value, bases))
        return false;
    if (bases->of[binding->value] < first)
        return true;
    eddy_program_made *made = eddy_program_made_at(program, bases->of[binding->value] - first);
    if (made->whole == EDDY_CODE_NONE && is_whole(&program->code, binding))
        made->whole = output;
    return true;
}

/* What is written whole needs memory, even where an error has left it none. */
static void find_covered(eddy_program *program, const eddy_bases *bases) {
    const eddy_code *code = &program->code;
    for (uint32_t e = 0; e < program->externals.count; e++)
        eddy_program_external_at(program, e)->is_covered = false;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(code, instruction->operands_at + k);
            if (!(operand->access & (EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT)))
                continue;
            uint32_t base = bases->of[operand->value];
            if (base > 0 && base <= program->externals.count)
                eddy_program_external_at(program, base - 1)->is_covered = true;
        }
    }
}

/* What calls behind a run read is there after it. */
static bool number_late(eddy_program *program, eddy_bases *bases) {
    const eddy_code *code = &program->code;
    for (uint32_t i = 0; i < eddy_code_call_count(code); i++) {
        const eddy_code_instruction *call = eddy_code_call_at(code, i);
        for (uint32_t k = 0; k < call->input_count && eddy_late_calls_include(call->op); k++) {
            uint32_t value = eddy_code_operand_at(code, call->operands_at + k)->value;
            if (value != EDDY_CODE_NONE && !number_made(program, value, bases))
                return false;
        }
    }
    return true;
}

/* So is what partitions hand on to each other. */
static bool number_shared(eddy_program *program, eddy_bases *bases) {
    const eddy_code *code = &program->code;
    uint32_t count = code->values.count;
    if (EDDY_LIKELY(!code->is_cut))
        return true;
    size_t bytes = count * (sizeof(uint32_t) + sizeof(bool));
    uint32_t *first = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!first)
        return false;
    bool *is_shared = (bool *)(first + count), has_memory = true;
    eddy_partitions_find_shared(code, first, is_shared);
    for (uint32_t v = 0; v < count && has_memory; v++)
        has_memory = !is_shared[v] || number_made(program, v, bases);
    eddy_memory_release(first, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

/* Gives externals, made outputs and what late calls read their bases. */
eddy_status eddy_program_number_operands(eddy_program *program, eddy_bases *bases,
                                         eddy_origin origin) {
    uint32_t output = 0;
    program->made.count = 0;
    if (!eddy_bases_fit(bases, &program->code))
        return fail_memory(origin);
    if (bases->count > 0)
        memset(bases->of, 0, bases->count * sizeof(*bases->of));
    for (uint32_t e = 0; e < program->externals.count; e++)
        bases->of[eddy_program_external_at(program, e)->value] = 1 + e;
    /* Passes change how instructions write: what they write whole is known from before. */
    if (!program->layout)
        find_covered(program, bases);
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        eddy_program_binding *binding = eddy_program_binding_at(program, i);
        bool is_output = binding->role == EDDY_ROLE_OUTPUT || binding->role == EDDY_PROGRAM_KEPT;
        if (is_output && !number_output(program, binding, output++, bases))
            return fail_memory(origin);
        binding->operand = bases->of[binding->value] - 1;
        binding->is_whole = is_whole(&program->code, binding) &&
                            (binding->count == 0 || eddy_layout_is_dense(&binding->layout));
    }
    program->handle_count = output;
    return number_late(program, bases) && number_shared(program, bases) ? EDDY_OK
                                                                        : fail_memory(origin);
}

static eddy_status run_passes(eddy_program *program, eddy_bases *bases, uint32_t chosen,
                              eddy_origin origin) {
    uint32_t passes = program->passes & chosen;
    if (EDDY_UNLIKELY(program->has_devices) && eddy_cut_has_calls(&program->code))
        passes &= ~EDDY_PASSES_OF_HOST;
    return eddy_passes_run(&program->code, bases, passes) ? EDDY_OK : fail_memory(origin);
}

/* The passes that leave instructions out. *is_folded: the program holds results of a startup program now. */
static eddy_status reduce(eddy_program *program, eddy_bases *bases, bool *is_folded,
                          eddy_origin origin) {
    uint32_t held = program->externals.count;
    eddy_status status = run_passes(program, bases, EDDY_PASSES_REDUCING, origin);
    if (status == EDDY_OK && program->passes & 1u << EDDY_PASS_NUMBER_fold) {
        status = eddy_program_fold(program, bases->of, origin);
        *is_folded = program->externals.count > held;
        if (status == EDDY_OK)
            status = eddy_program_number_operands(program, bases, origin);
        if (status == EDDY_OK)
            status = run_passes(program, bases, 1u << EDDY_PASS_NUMBER_dead, origin);
    }
    if (status == EDDY_OK)
        status = eddy_program_drop_unused(program, origin);
    return status == EDDY_OK ? eddy_program_number_operands(program, bases, origin) : status;
}

/* Between devices. */
static eddy_status cut(eddy_program *program, eddy_bases *bases, eddy_origin origin) {
    if (EDDY_LIKELY(!program->has_devices))
        return EDDY_OK;
    program->code.has_rounds = program->runtime->captures_graphs;
    if (!eddy_cut_make(&program->code))
        return fail_memory(origin);
    return eddy_program_number_operands(program, bases, origin);
}

/* What is left is laid out and prepared. */
static eddy_status make_executable(eddy_program *program, const eddy_bases *bases,
                                   eddy_origin origin) {
    program->built = eddy_built_create();
    if (!program->built)
        return fail_memory(origin);
    const eddy_runtime *runtime = program->runtime;
    eddy_executable_options options = {
        .checks_finite = !runtime->allows_passes,
        .captures_graphs = runtime->captures_graphs,
        .streams = {eddy_vm_thread_count(runtime->vm), runtime->program_streams},
        .layout = program->layout};
    eddy_status status =
        eddy_executable_make(&program->built->executable, &program->code, bases->of,
                             1 + program->externals.count + program->made.count, &options, origin);
    if (status == EDDY_OK) {
        program->executable = &program->built->executable;
        status = eddy_fusions_make(program) ? EDDY_OK : fail_memory(origin);
    }
    eddy_add_relaxed(&program->runtime->programs_built, 1);
    return status;
}

/* ---- what was built before ---- */

/* The key of what is still to be done; `source` counts from its code. */
static bool make_key(eddy_program *program, const eddy_bases *bases, uint32_t passes,
                     eddy_build_key *key) {
    for (uint32_t i = 0; i < program->code.instructions.count; i++)
        eddy_code_instruction_at(&program->code, i)->source = i;
    return eddy_build_key_make(key, program, bases->of, program->passes & passes);
}

/* The program's code becomes what code of the same content was built to; its calls are still those of its own recording. */
static eddy_status take_over(eddy_program *program, eddy_built *built, eddy_bases *bases,
                             eddy_origin origin) {
    eddy_code code = {0};
    if (!eddy_code_copy(&code, &built->code)) {
        eddy_code_fini(&code);
        return fail_memory(origin);
    }
    for (uint32_t i = 0; i < eddy_code_call_count(&code); i++) {
        eddy_code_instruction *instruction = eddy_code_call_at(&code, i);
        instruction->address =
            eddy_code_instruction_at(&program->code, instruction->source)->address;
    }
    eddy_code_fini(&program->code);
    program->code = code;
    eddy_status status = eddy_program_drop_unused(program, origin);
    if (status == EDDY_OK)
        status = eddy_program_number_operands(program, bases, origin);
    if (status != EDDY_OK)
        return status;
    EDDY_ASSERT(program->externals.count == built->external_count &&
                1 + program->externals.count + program->made.count == built->executable.base_count);
    for (uint32_t e = 0; e < built->external_count; e++)
        eddy_program_external_at(program, e)->is_covered = built->covered[e];
    return EDDY_OK;
}

/* Takes over what was built under the key, if there is such: program->executable is set then. */
static eddy_status find_built(eddy_program *program, const eddy_build_key *key, eddy_bases *bases,
                              eddy_origin origin) {
    eddy_built *built = eddy_build_cache_find(program->runtime, key);
    if (!built)
        return EDDY_OK;
    eddy_status status = take_over(program, built, bases, origin);
    if (status != EDDY_OK) {
        eddy_built_release(built);
        return status;
    }
    program->built = built;
    program->executable = &built->executable;
    eddy_add_relaxed(&program->runtime->programs_shared, 1);
    return EDDY_OK;
}

/* What the passes fold is the program's own: then what is left is looked for. */
static eddy_status find_folded(eddy_program *program, eddy_build_key *key, eddy_bases *bases,
                               eddy_origin origin) {
    eddy_build_key_fini(key);
    return make_key(program, bases, ~EDDY_PASSES_REDUCING & ~(1u << EDDY_PASS_NUMBER_fold), key)
               ? find_built(program, key, bases, origin)
               : EDDY_OK;
}

static eddy_status find_or_make(eddy_program *program, eddy_bases *bases, eddy_origin origin) {
    eddy_build_key key;
    bool has_key = make_key(program, bases, UINT32_MAX, &key);
    bool is_folded = false;
    eddy_status status = has_key ? find_built(program, &key, bases, origin) : EDDY_OK;
    if (status == EDDY_OK && !program->executable) {
        status = reduce(program, bases, &is_folded, origin);
        if (status == EDDY_OK && has_key && is_folded)
            status = find_folded(program, &key, bases, origin);
    }
    if (status == EDDY_OK && !program->executable) {
        status = cut(program, bases, origin);
        if (status == EDDY_OK)
            status = run_passes(program, bases, ~EDDY_PASSES_REDUCING, origin);
        if (status == EDDY_OK && !eddy_late_calls_cut(&program->code))
            status = fail_memory(origin);
        if (status == EDDY_OK)
            status = make_executable(program, bases, origin);
        if (status == EDDY_OK && key.words)
            eddy_build_cache_keep(program, &key);
    }
    eddy_build_key_fini(&key);
    return status;
}

/* The code of a program that lowered ones foretell, once it is known to hold: nothing is left to do but to prepare it. It is of no use to other
 * programs, which are of other sizes. */
static eddy_status build_lowered(eddy_program *program, const eddy_bases *bases,
                                 eddy_origin origin) {
    bool is_known;
    if (!eddy_program_lowered_holds(program, bases->of, &is_known))
        return is_known ? eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                                    "what the passes have done at other sizes does not hold")
                        : fail_memory(origin);
    eddy_status status = make_executable(program, bases, origin);
    eddy_arena_layout_release(program->layout);
    program->layout = NULL;
    return status;
}

static void find_draws(eddy_program *program) {
    program->code.draws_late = eddy_control_has_draws(&program->code);
    program->code.sets_draws = eddy_draw_ops_has_set(&program->code);
}

/* A program that was read may be the first that uses a device. */
static eddy_status find_devices(eddy_program *program, eddy_origin origin) {
    const eddy_caller *caller = eddy_caller_get();
    eddy_status status = EDDY_OK;
    for (uint32_t v = 0; v < program->code.values.count && status == EDDY_OK; v++) {
        const eddy_code_value *value = eddy_code_value_at(&program->code, v);
        if (EDDY_LIKELY(value->device_kind == 0))
            continue;
        eddy_device device = eddy_code_value_device(value);
        program->has_devices = true;
        status = eddy_runtime_device(caller, program->runtime, &device, origin, &device);
    }
    return status;
}

eddy_status eddy_program_build(eddy_program *program, eddy_origin origin) {
    eddy_bases bases = {0};
    if (!program->layout)
        find_draws(program);
    eddy_status status = find_devices(program, origin);
    if (status == EDDY_OK)
        status = eddy_program_number_operands(program, &bases, origin);
    if (status == EDDY_OK)
        status = program->layout ? build_lowered(program, &bases, origin)
                                 : find_or_make(program, &bases, origin);
    eddy_bases_fini(&bases);
    for (uint32_t i = 0; i < eddy_code_call_count(&program->code); i++)
        program->has_registered |= eddy_code_call_at(&program->code, i)->op->is_registered;
    if (status == EDDY_OK && program->gradient)
        status = eddy_program_gradient_build(program->gradient, origin);
    return status;
}
