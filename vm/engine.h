/* The engine's role: who has it takes records, orders and runs instructions (PROTOCOL.md 6, 7). */
#ifndef EDDY_VM_ENGINE_H
#define EDDY_VM_ENGINE_H

#include <vm/execute.h>
#include <vm/machine.h>

/* Asks that the engine look; true when the calling thread has got the role and must call eddy_engine_work. */
bool eddy_engine_request(eddy_vm *vm);
/* How a thread plays the role (PROTOCOL 7). */
typedef struct eddy_engine_turn {
    const eddy_waiter *until; /* it leaves as soon as this is done */
    int64_t spin_ns;          /* it looks so long for more before it gives the role up */
    int64_t inline_ns;        /* calls up to this estimate it runs itself */
    int64_t
        budget_ns; /* when it has run so much it runs the cheapest only, and leaves what is left to others */
    bool is_caller;
    uint64_t own_sequence; /* an issuer's own call: */
    int64_t own_ns;        /* up to this estimate it runs that outside of the role */
} eddy_engine_turn;
/* Works until nothing is left, its budget is spent or `until` is done, gives the role up, and runs what it took along. */
void eddy_engine_work(eddy_vm *vm, const eddy_engine_turn *turn);
/* Requests, and works if the role was free: as a thread of the VM's, or of the team. */
void eddy_engine_drive(eddy_vm *vm);
/* The same as an issuer who has just submitted number `sequence`, beside others or alone, or as one who has nothing else to do until
 * `until` is done (NULL: until nothing is left). */
void eddy_engine_drive_own(eddy_vm *vm, uint64_t sequence, bool is_shared);
void eddy_engine_drive_waiting(eddy_vm *vm, const eddy_waiter *until);
/* The same as one who gives something up: it runs nothing. */
void eddy_engine_drive_release(eddy_vm *vm);
/* The calling thread's program has come to wait: for a result, or for the end of a lead. Lock: submission. */
void eddy_engine_issuer_waits(const eddy_vm *vm, bool for_result);
/* Reports a node as DONE from outside the engine's role. Any thread, never blocks. */
void eddy_engine_complete(eddy_vm *vm, eddy_node *node);
/* Whether a work in the team's queue is a node of this or another VM. */
bool eddy_engine_is_call(const eddy_work *work);
/* A scan without the role: whether there may be something to do. */
static inline bool eddy_engine_has_work(const eddy_vm *vm) {
    return eddy_load_relaxed(&vm->ring.tail) != eddy_load_relaxed(&vm->ring.head) ||
           !eddy_lifo_is_empty(&vm->completions) || !eddy_lifo_is_empty(&vm->releases) ||
           eddy_load_relaxed(&vm->has_left) || eddy_load_relaxed(&vm->was_told);
}
/* Wakes the scheduler thread from outside the submission lock. */
void eddy_vm_poke(eddy_vm *vm);

/* Runs a CALL with the engine's own cache. Engine only. */
eddy_execute_result eddy_engine_execute(eddy_vm *vm, const eddy_instruction *instruction);
/* Hands a CALL to its stream. Engine only. */
void eddy_engine_dispatch(eddy_vm *vm, eddy_node *node);
/* Runs and dispatches what is ready. Engine only. */
void eddy_engine_run_ready(eddy_vm *vm);
/* Lets releases that came without the lock take effect; whether any did. Engine only. */
bool eddy_engine_take_releases(eddy_vm *vm);

#endif
