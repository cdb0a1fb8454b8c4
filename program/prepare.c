/* eddy_program_prepare: what the first run would take time for. */
#include <base/status.h>
#include <eddy/host.h>
#include <eddy/ops.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/runtime.h>
#include <inttypes.h>
#include <program/fusions.h>
#include <program/gradient.h>
#include <program/quiet.h>
#include <program/run.h>
#include <program/variant.h>
#include <string.h>

static bool is_repeated(const char *const *names, int64_t i) {
    for (int64_t k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return true;
    return false;
}

static eddy_status find_outputs(const eddy_program *program, const char *const *names,
                                int64_t count, uint64_t *outputs, eddy_origin origin) {
    *outputs = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t number = names[i] ? eddy_program_find(program, EDDY_ROLE_OUTPUT, names[i]) : -1;
        if (number < 0)
            return eddy_program_refuse_name(program, EDDY_ROLE_OUTPUT, names[i], origin);
        if (is_repeated(names, i))
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "output %s is given twice", names[i]);
        if (number < EDDY_VARIANT_OUTPUTS_MOST)
            *outputs |= UINT64_C(1) << number;
    }
    return EDDY_OK;
}

/* Written once, memory of that size is in the cache, and the system has given its pages. */
static eddy_status touch(eddy_caller *caller, eddy_device device, int64_t bytes) {
    eddy_recorder *recorder = eddy_recorder_set_aside(caller);
    eddy_tensor *arena =
        eddy_zeros(EDDY_SHAPE(bytes), EDDY_U8, EDDY_OPTIONS(zeros, .device = device));
    eddy_status status = eddy_wait(arena, EDDY_FOREVER);
    eddy_release(&arena);
    eddy_recorder_go_on(caller, recorder);
    return status;
}

static eddy_status touch_arena(eddy_caller *caller, eddy_device device, int64_t bytes,
                               eddy_origin origin) {
    eddy_quiet quiet;
    eddy_error failed;
    if (bytes == 0)
        return EDDY_OK;
    eddy_quiet_begin(&quiet);
    eddy_status status = touch(caller, device, bytes);
    eddy_quiet_end(&quiet, &failed);
    return status == EDDY_OK ? EDDY_OK
                             : eddy_fail(failed.status, origin,
                                         "a run takes %" PRId64 " bytes beside its outputs: %s",
                                         bytes, eddy_status_text(failed.status));
}

/* A partition's is given back before the next one runs, unless they overlap: then those take more. */
static eddy_status touch_arenas(eddy_caller *caller, const eddy_executable *executable,
                                eddy_origin origin) {
    const eddy_partitions *partitions = &executable->partitions;
    if (EDDY_LIKELY(partitions->count == 0))
        return touch_arena(caller, executable->device, executable->arena.bytes, origin);
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < partitions->count && status == EDDY_OK; i++)
        status = touch_arena(caller, partitions->items[i].device, partitions->items[i].arena_bytes,
                             origin);
    return status;
}

/* Those of its backward passes, too. */
static void await_kernels(const eddy_program *program) {
    const eddy_program_gradient *gradient = program->gradient;
    eddy_fusions_await(&program->executable->fusions);
    if (!gradient)
        return;
    eddy_fusions_await(&gradient->forward->executable->fusions);
    for (uint32_t i = 0; i < gradient->ways->count; i++)
        eddy_fusions_await(&gradient->ways->items[i].program->executable->fusions);
}

eddy_status(eddy_program_prepare)(eddy_program *program, const char *const *outputs,
                                  int64_t output_count) {
    eddy_origin origin = EDDY_ORIGIN("program_prepare");
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    uint64_t wanted;
    eddy_status status = eddy_program_check(program, origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(outputs, output_count, "outputs", origin);
    if (status == EDDY_OK)
        status = find_outputs(program, outputs, output_count, &wanted, origin);
    if (status == EDDY_OK)
        status = eddy_runtime_of_caller(caller, origin, &runtime);
    if (status != EDDY_OK)
        return status;
    if (runtime != program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, origin,
                         "the program belongs to another runtime than the calling thread");
    eddy_program *chosen =
        wanted != 0 ? eddy_program_variant_for(program, wanted) : eddy_program_retain(program);
    status = touch_arenas(caller, chosen->executable, origin);
    await_kernels(chosen);
    eddy_program_release(&chosen);
    return status;
}
