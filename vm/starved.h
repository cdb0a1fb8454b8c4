/* Instructions that got no memory. Engine only. */
#ifndef EDDY_VM_STARVED_H
#define EDDY_VM_STARVED_H

#include <vm/machine.h>

void eddy_starved_add(eddy_vm *vm, eddy_node *node);
/* An instruction that only takes memory, for a caller that waits for it. It goes to the list without a try; if others run the engine, the
 * instructions in flight come first, as far as the marks allow. Its argument is its size. */
extern const eddy_vm_descriptor eddy_starved_room;
bool eddy_starved_leaves_room(eddy_vm *vm, int64_t bytes, int64_t in_flight_bytes);
/* Tries them again. is_last: no running instruction of this VM could free memory; if none fits, and no other VM of the process
 * runs anything either, the oldest fails. */
void eddy_starved_relieve(eddy_vm *vm, bool is_last);
/* Whether it is time for the last try: at once, or, if it waits for other VMs, after one of them has released memory. */
bool eddy_starved_is_due(eddy_vm *vm, bool has_moved);
/* An instruction of this VM has retired: VMs that wait for its memory try again. */
void eddy_starved_tell_others(eddy_vm *vm);
/* Between the two calls the VM is one of those that share the process's limit. */
void eddy_starved_share(eddy_vm *vm);
void eddy_starved_part(eddy_vm *vm);

#endif
