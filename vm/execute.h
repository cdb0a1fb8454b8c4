/* Running a call's kernel, and what becomes of it. */
#ifndef EDDY_VM_EXECUTE_H
#define EDDY_VM_EXECUTE_H

#include <vm/machine.h>

typedef enum eddy_execute_result { EDDY_EXECUTED, EDDY_EXECUTE_STARVED } eddy_execute_result;

/* Runs a CALL: poison check, output memory, workspace, kernel, error to poison. The runner owns the shared lines it needs
 * (PROTOCOL 4). data and data_bytes: room for the operands. STARVED: there was no memory, nothing has happened. */
eddy_execute_result eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction,
                                    eddy_blocks_cache *cache, eddy_kernel_team *team, void **data,
                                    int64_t *data_bytes);
/* Runs a plain call whose inputs are idle and healthy and for whose output there is memory: what resolving the operands and
 * eddy_vm_execute come to then, in one pass. False, and nothing has happened, for all others. Lock: submission. */
bool eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call);
/* Fails a CALL as `status` without running it: a root of its own, unless an input is poisoned already. What it gives up is given up. */
void eddy_vm_execute_failed(eddy_vm *vm, const eddy_instruction *instruction, eddy_status status);
/* The parts of these for a device, where launch and end are apart and the launcher has seen to sizes and memory (vm/launch.c). Engine only. A call
 * that did not run, or ran for nothing, since an input is poisoned; that failed for `status`, on the device of that name (NULL: the host); whose kernel has run, and says so in
 * `error`; and, after each of these, what it gives up. */
void eddy_vm_execute_skipped(eddy_vm *vm, const eddy_instruction *instruction, eddy_poison blame,
                             bool has_run);
void eddy_vm_execute_fail(eddy_vm *vm, const eddy_instruction *instruction, eddy_status status,
                          const char *device, bool has_run);
void eddy_vm_execute_end(eddy_vm *vm, const eddy_instruction *instruction,
                         const eddy_kernel_error *error);
void eddy_vm_execute_give_up(eddy_vm *vm, const eddy_instruction *instruction);
/* EDDY_CHECK_FINITE: fails a call whose outputs are not finite, in run->error. By who runs the kernel. */
void eddy_vm_execute_check_finite(const eddy_vm_run *run);

/* Its elements are good again. The caller owns the shared line. */
static inline void eddy_vm_heal(eddy_vm *vm, eddy_storage *storage) {
    if (storage->shared.poison == 0)
        return;
    storage->shared.poison = 0;
    eddy_add_relaxed(&vm->healed_count, 1u);
}

/* The lowest poison among the inputs, 0 when healthy. */
eddy_poison eddy_vm_input_poison(eddy_vm *vm, const eddy_instruction *instruction);
/* One that is borrowed, kept, a device's or has a late shape. */
void eddy_vm_storage_free_odd(eddy_vm *vm, eddy_storage *storage, eddy_blocks_cache *cache,
                              eddy_blocks_cache *arguments);
/* Gives a storage's memory back, or a borrowed buffer to the service thread; the caller owns the shared line. */
static inline void eddy_vm_storage_free(eddy_vm *vm, eddy_storage *storage,
                                        eddy_blocks_cache *cache, eddy_blocks_cache *arguments) {
    uintptr_t odd = (uintptr_t)storage->shared.borrow | (uintptr_t)storage->shared.late_shape |
                    storage->shared.device | eddy_load_relaxed(&storage->shared.is_kept);
    if (EDDY_UNLIKELY(odd != 0))
        eddy_vm_storage_free_odd(vm, storage, cache, arguments);
    else
        eddy_blocks_release(cache, storage->shared.data, storage->shared.bytes);
    storage->shared.data = NULL;
    storage->shared.bytes = 0;
    storage->shared.poison = 0;
}

#endif
