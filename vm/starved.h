/* Instructions for which there was no memory. Engine only. */
#ifndef EDDY_VM_STARVED_H
#define EDDY_VM_STARVED_H

#include <vm/machine.h>

void eddy_starved_add(eddy_vm *vm, eddy_node *node);
/* Takes memory and does nothing else, for a caller who waits for it. Goes to the list without a try; where others run it
 * leaves them what is in flight, as far as the marks allow that. Its argument is its size. */
extern const eddy_vm_descriptor eddy_starved_room;
bool eddy_starved_leaves_room(eddy_vm *vm, int64_t bytes, int64_t in_flight_bytes);
/* Tries them again. is_last: nothing of this VM runs that could free anything; where nothing fits, and no other VM of the process
 * runs anything either, the oldest fails. */
void eddy_starved_relieve(eddy_vm *vm, bool is_last);
/* Whether it is time to try for the last time: at once, or where it waits for other VMs, after one of them gave something up. */
bool eddy_starved_is_due(eddy_vm *vm, bool has_moved);
/* Something of this VM has retired: those that wait for its memory look again. */
void eddy_starved_tell_others(eddy_vm *vm);
/* Between the two the VM is one of those that share the process's limit. */
void eddy_starved_share(eddy_vm *vm);
void eddy_starved_part(eddy_vm *vm);

#endif
