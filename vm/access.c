/* User code on a storage, in order with the instructions. */
#include <vm/instruction_kinds.h>
#include <vm/machine.h>
#include <vm/service.h>
#include <vm/submit.h>

eddy_status eddy_vm_access(eddy_vm *vm, eddy_storage_number storage, bool is_mut,
                           eddy_vm_access_fn *callback, void *context, eddy_origin origin) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    eddy_access_arguments arguments = {callback, context};
    eddy_mention mention = storage | (is_mut ? EDDY_MENTION_MUT : EDDY_MENTION_CONST);
    eddy_submission submission = {.instruction = {.view = {.arguments = &arguments,
                                                           .operand_count = 1,
                                                           .address = origin.address},
                                                  .kind = EDDY_KIND_ACCESS,
                                                  .mentions = &mention},
                                  .argument_bytes = sizeof(arguments),
                                  .op = origin.op};
    status = eddy_service_start(vm, origin);
    if (status == EDDY_OK)
        status = eddy_vm_write(vm, &submission);
    eddy_vm_leave(vm);
    return status;
}
