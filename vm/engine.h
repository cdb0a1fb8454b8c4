/* The engine's role: the thread that has it takes records, orders and runs instructions (PROTOCOL.md 6, 7). */
#ifndef EDDY_VM_ENGINE_H
#define EDDY_VM_ENGINE_H

#include <vm/execute.h>
#include <vm/machine.h>

/* Requests that the engine look for work; true if the calling thread has got the role and must call eddy_engine_work. */
bool eddy_engine_request(eddy_vm *vm);
/* How a thread plays the role (PROTOCOL 7). */
typedef struct eddy_engine_turn {
    const eddy_waiter *until; /* the thread gives the role up as soon as this is done */
    int64_t spin_ns;          /* how long it looks for more work before it gives the role up */
    int64_t inline_ns;        /* it runs calls up to this estimate itself */
    int64_t
        budget_ns; /* after so much it runs only the cheapest calls, and leaves the others to other threads */
    bool is_caller;
    /* A launcher's: it gives the role up as soon as there is something to launch, or nothing more is left to it. */
    const eddy_work_queue *launcher;
    const struct eddy_attendance *attendance;
    uint64_t own_sequence; /* an issuer's own call: */
    int64_t own_ns;        /* it runs that call up to this estimate outside of the role */
} eddy_engine_turn;
/* Works until nothing is left, its budget is spent or `until` is done, gives the role up, and runs the call that it kept for itself. */
void eddy_engine_work(eddy_vm *vm, const eddy_engine_turn *turn);
/* Whether the calling thread has the role: what ends in it may release storages, as a program does whose last run is over. */
bool eddy_engine_is_mine(const eddy_vm *vm);
/* Requests, and works if the role was free: for a thread of the VM or of the team. */
void eddy_engine_drive(eddy_vm *vm);
/* The same for an issuer that has just submitted number `sequence`, beside other issuers or alone, or for one that has nothing else to do
 * until `until` is done (NULL: until nothing is left). */
void eddy_engine_drive_own(eddy_vm *vm, uint64_t sequence, bool is_shared);
void eddy_engine_drive_waiting(eddy_vm *vm, const eddy_waiter *until);
/* The same for a thread that releases a storage: it runs no call. */
void eddy_engine_drive_release(eddy_vm *vm);
/* The calling thread's program begins to wait: for a result, or because it is too far ahead. Lock: submission. */
void eddy_engine_issuer_waits(const eddy_vm *vm, bool for_result);
/* Calls `look` in the role, once what was submitted before has become nodes, or at the deadline; false: whoever has the role has not given it up by then. The caller is inside the VM. */
bool eddy_engine_look(eddy_vm *vm, void (*look)(eddy_vm *vm, void *context), void *context,
                      int64_t deadline_ns);
/* Reports a node as DONE from outside the engine's role. Any thread, never blocks. */
void eddy_engine_complete(eddy_vm *vm, eddy_node *node);
/* Whether a work in the team's queue is a node of this or another VM. */
bool eddy_engine_is_call(const eddy_work *work);
/* A scan without the role: whether there may be work. */
static inline bool eddy_engine_has_work(const eddy_vm *vm) {
    return eddy_load_relaxed(&vm->ring.tail) != eddy_load_relaxed(&vm->ring.head) ||
           !eddy_lifo_is_empty(&vm->completions) || !eddy_lifo_is_empty(&vm->releases) ||
           eddy_load_relaxed(&vm->has_left) || eddy_load_relaxed(&vm->was_told) ||
           eddy_load_relaxed(&vm->has_stalled);
}
/* Wakes the scheduler thread from outside the submission lock. */
void eddy_vm_poke(eddy_vm *vm);

/* Runs a CALL with the engine's own cache. Engine only. */
eddy_execute_result eddy_engine_execute(eddy_vm *vm, const eddy_instruction *instruction);
/* Hands a CALL to its stream. Engine only. */
void eddy_engine_dispatch(eddy_vm *vm, eddy_node *node);
/* Runs and dispatches ready instructions. Engine only. */
void eddy_engine_run_ready(eddy_vm *vm);
/* Lets other threads see the counters as they are. Engine only. */
void eddy_engine_publish_counters(eddy_vm *vm);
/* Makes releases take effect that were pushed without the lock; whether there were any. Engine only. */
bool eddy_engine_take_releases(eddy_vm *vm);

#endif
