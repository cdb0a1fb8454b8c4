/* The VM's own state, sectioned by who writes it. For vm/ only. */
#ifndef EDDY_VM_MACHINE_H
#define EDDY_VM_MACHINE_H

#include <base/order.h>
#include <base/process.h>
#include <base/thread.h>
#include <streams/team.h>
#include <vm/block.h>
#include <vm/errors.h>
#include <vm/node.h>
#include <vm/ring.h>
#include <vm/vm.h>

#define EDDY_STREAM_MAX 4096 /* 12 bits in a record; 0 is the default stream */
#define EDDY_NUMBER_RING 4096
/* So many releases that wait for a record to travel in make one of their own. */
#define EDDY_PENDING_RELEASES 12
/* Pending releases that hold more than this are published at once. */
#define EDDY_PENDING_BYTES 65536
/* Instructions dearer than this go to a worker: about where it is made up for by what runs beside it. A cost is known by the
 * upper end of its class, so this is one. */
#define EDDY_SCHEDULER_RUN_NS (65 << 6)
/* Calls dearer than this are handed over. */
#define EDDY_CALLER_RUN_PS 1000000
#define EDDY_CALLER_RUN_OPERANDS 8
/* What stands behind lends and callbacks at most: some 70 MB of nodes. */
#define EDDY_BEHIND_MOST 65536
/* Groups of threads whose lends are counted together. */
#define EDDY_LEND_GROUPS 64
/* So long something that may never move is waited for before a call is refused. */
#define EDDY_PATIENCE_NS INT64_C(2000000000)
/* Instructions whose estimate is above count as dear: worth a hand-over on any machine. */
#define EDDY_DEAR_NS 40000

typedef enum eddy_vm_ended { EDDY_VM_OPEN, EDDY_VM_GIVEN_BACK, EDDY_VM_ABANDONED } eddy_vm_ended;

typedef enum eddy_vm_state { EDDY_VM_RUNNING, EDDY_VM_CLOSING, EDDY_VM_CLOSED } eddy_vm_state;

struct eddy_vm_event {
    _Atomic int32_t references;
    eddy_vm *vm;               /* const */
    struct eddy_node *node;    /* engine only; NULL before and after it is live */
    eddy_sleep_word is_passed; /* atomic: engine stores 1 (release), anybody loads (acquire) */
};

struct eddy_vm_stream {
    eddy_vm *vm;         /* const */
    eddy_stream *stream; /* const: who runs it */
    uint16_t number;     /* const */
    bool is_ordered;     /* const */
    _Atomic int32_t references;
    bool is_foreign; /* const: only the stream itself runs kernels (the fake) */
    /* Issuers. lock: submission. Instructions that block later ones: all on an ordered stream, gates on others. */
    uint32_t blocking_submitted;
    uint32_t submitted; /* all of them */
    /* atomic: engine stores (release), holder of the lock loads (acquire) */
    _Atomic uint32_t blocking_retired;
    _Atomic uint32_t retired;
    /* Engine only. */
    eddy_node *live_head, *live_tail;
    eddy_node *gate;           /* the last unretired gate of an unordered stream */
    eddy_node *undispatched;   /* the last node of an ordered stream that is not dispatched yet */
    uint32_t dispatched_count; /* of an ordered stream */
};

struct eddy_vm {
    /* ---- const after init ---- */
    eddy_runtime_options options;
    int32_t thread_count;
    bool is_one_thread;  /* no scheduler thread: the issuing thread takes the engine's role after each call */
    bool is_full_path;   /* nothing runs on the caller */
    bool is_worker_path; /* nor on the scheduler */
    bool is_driven;      /* issuers take the engine's role after their calls: neither of the two, nor one-thread mode */
    bool syncs_each_op;
    bool checks_finite;
    bool has_team;
    uint64_t process; /* generation of the process that made it */
    int64_t high_count, low_count, high_bytes, low_bytes;
    int64_t lead_bytes; /* new storages ahead that caches hold */
    eddy_kernel_team team;
    eddy_storage_table *table;

    /* ---- issuers; lock: submission ---- */
    eddy_lock submission __attribute__((aligned(EDDY_CACHE_LINE)));
    _Atomic int
        state; /* atomic: eddy_vm_state; written under the lock (seq_cst), releasers without it read (seq_cst) */
    uint64_t sequence;
    uint64_t issued;        /* instructions written to the ring */
    int64_t issued_bytes;   /* new storages of those */
    uint64_t look_again_at; /* sequence number */
    int64_t issued_ns;      /* their estimates */
    int64_t issued_dear_ns; /* of those that were too dear for the caller */
    uint64_t issuer;        /* number of the thread that has written last */
    uint64_t shared_until;  /* sequence number: threads take turns in writing */
    uint64_t vain_at;       /* `finished` when the last wait for the end of a lead was in vain */
    bool has_written;       /* to the ring, since the lock was taken */
    bool has_issued;        /* more than releases */
    uint64_t finished_seen;
    int64_t finished_bytes_seen, finished_ns_seen, finished_dear_ns_seen;
    uint64_t retired_seen;
    uint64_t node_total;              /* nodes made; never fewer than instructions in flight */
    eddy_storage_number pending_head; /* linked by issuer.next_free */
    uint32_t pending_count;
    int64_t pending_bytes;
    eddy_blocks_cache issuer_cache;
    eddy_blocks_cache issuer_arguments;
    uint64_t caller_run_count, wake_count;
    int64_t in_flight_peak, bytes_in_flight_peak;
    uint32_t numbers_since_collect;
    eddy_storage_number numbers_taken_beyond; /* what is left of them, linked alike */
    eddy_vm_stream *streams[EDDY_STREAM_MAX]; /* written under the lock; the engine reads what a record named */
    uint32_t stream_count;

    eddy_ring ring;

    /* ---- read by issuers, written by the scheduler ---- */
    _Atomic bool is_asleep __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: seq_cst, set under the lock */
    eddy_sleep_word wake_word;                                        /* atomic: seq_cst */
    _Atomic bool was_told; /* atomic: seq_cst; another VM gave up memory while this one was hungry */
    _Atomic bool has_left; /* atomic: seq_cst; who gave the role up left ready nodes behind */
    _Atomic bool is_ending;
    _Atomic bool is_halted; /* atomic: release; at exit, for good: the engine does nothing more */

    /* ---- published by the engine ---- */
    _Atomic uint64_t finished __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: seq_cst; for the marks */
    _Atomic int64_t finished_bytes;
    _Atomic int64_t finished_ns, finished_dear_ns; /* atomic: release, before `finished` */
    _Atomic uint64_t retired;                      /* atomic: release; instructions truly gone */
    _Atomic int64_t waits;                         /* atomic: release; a copy of the engine's */
    _Atomic int64_t behind;                        /* atomic: relaxed; likewise */
    _Atomic uintptr_t blocker; /* atomic: relaxed; call address of the lend or callback that `behind` began with */
    eddy_sleep_word progress;  /* atomic: seq_cst */
    _Atomic int32_t throttled; /* atomic: seq_cst; issuers that wait for `progress` */
    _Atomic uint64_t numbers_returned; /* atomic: write position of the number ring, release */
    /* atomic: acq_rel; freed numbers beyond the ring, linked by engine.next_unreturned: the engine adds to the front, the holder
     * of the lock takes all */
    _Atomic eddy_storage_number numbers_beyond;
    eddy_storage_number numbers[EDDY_NUMBER_RING] __attribute__((aligned(EDDY_CACHE_LINE)));
    _Atomic uint64_t numbers_taken
        __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: read position, written under the lock (release) */

    /* ---- pushed by anybody ---- */
    _Atomic uint32_t engine_word __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: acq_rel; PROTOCOL 7 */
    eddy_lifo completions;                                                  /* nodes, DONE */
    eddy_lifo releases;                                                     /* eddy_vm_release_link */
    eddy_lifo fresh_nodes;                                                  /* node chunks made by issuers */
    eddy_lifo due;                                                          /* eddy_service_item, for the service */

    /* ---- engine only ---- */
    struct {
        eddy_blocks_cache cache;
        eddy_blocks_cache arguments;
        eddy_node *free_nodes;
        eddy_node *live_head, *live_tail;
        eddy_node *ready_head, **ready_tail;
        eddy_node *starved, *last_starved; /* for which there was no memory; the oldest first */
        eddy_lifo_link *held_releases;     /* not due yet */
        uint64_t finished, retired;
        int64_t finished_bytes, finished_ns, finished_dear_ns;
        int64_t inline_ns;      /* estimate up to which who has the role now runs calls itself */
        int64_t inline_left_ns; /* how much of such it does before others have to */
        bool is_caller;         /* who has the role is an issuer or a waiter */
        uint64_t own_sequence;  /* of the call that an issuer has just submitted, 0 else */
        int64_t own_ns;         /* estimate up to which it runs that itself, once it has given the role up */
        eddy_node *own;         /* to be run so */
        struct eddy_dump *dump; /* to be logged then */
        uint32_t unpublished;
        uint64_t woken_at_head, woken_at_finished; /* when held back issuers were last woken */
        bool owes_wake;                            /* published since without waking anybody */
        int32_t running_count;                     /* nodes dispatched to streams */
        uint64_t walk;
        uint32_t lends[EDDY_LEND_GROUPS]; /* granted and not ended, by thread modulo the number of groups */
        uint64_t visited;                 /* nodes, by walks back from waiters */
        uint64_t linked_users;          /* lends and callbacks, not retired */
        int64_t behind;                 /* they, and what is after one; not retired */
        int64_t linked_bytes;           /* new storages of nodes */
        int64_t waits;                  /* nodes that somebody waits for, or has waited for; not retired */
        eddy_storage_number unreturned; /* freed numbers that found no room in the number ring, the newest first */
        eddy_storage_number unreturned_last;
        uint64_t numbers_written;
        uint64_t caller_run, scheduler_run, worker_run, edges_made, edges_skipped, nodes_made;
    } engine __attribute__((aligned(EDDY_CACHE_LINE)));

    /* atomic: relaxed copies of the engine's counters, for who asks */
    struct {
        _Atomic uint64_t caller_run, scheduler_run, worker_run, edges_made, edges_skipped, nodes_made;
    } counted;
    _Atomic bool wants_dump;
    /* atomic: kernels on streams and threads in waits, which touch the VM once more after their instruction has retired;
     * they leave with release, who closes waits for 0 (acquire) */
    _Atomic int32_t inside;

    /* ---- with locks of their own ---- */
    eddy_blocks_pool tensors;
    eddy_blocks_pool argument_pool;
    eddy_waiter_pool waiters;
    eddy_errors errors;
    struct eddy_service *service;
    struct eddy_node_chunk *chunks; /* lock: submission; all node memory, for the end */
    eddy_thread scheduler;
    bool has_scheduler;
    eddy_lock one_thread;           /* one-thread mode: held while a caller does the engine's work */
    /* starved.c: VMs of a process share its limit. */
    eddy_vm *next_sharing;      /* lock: sharing */
    _Atomic bool is_hungry;     /* atomic: seq_cst, the engine stores; it waits for others' memory */
    _Atomic bool has_running;   /* atomic: seq_cst, the engine stores; kernels of it run that may give some up */
    eddy_sleep_word ended;          /* atomic: seq_cst; eddy_vm_ended, who closes a VM second sleeps on it */
    bool is_kept;                   /* who closes the VM writes it, before `ended`; a deleter still runs: the struct is never freed */
    _Atomic uint64_t skipped_count; /* atomic: relaxed; instructions that did not run for poison */
};

/* The submission lock (PROTOCOL 2): its holder waits for nothing but leaf locks. */
static inline void eddy_vm_lock(eddy_vm *vm) {
    eddy_lock_acquire(&vm->submission);
}
static inline bool eddy_vm_try_lock(eddy_vm *vm) {
    return eddy_lock_try(&vm->submission);
}
static inline void eddy_vm_unlock(eddy_vm *vm) {
    eddy_lock_release(&vm->submission);
}

static inline eddy_storage *eddy_vm_storage(const eddy_vm *vm, eddy_storage_number number) {
    return eddy_storage_at(vm->table, number);
}

/* Whether everything submitted on the storage has retired. Lock: submission. On true the caller owns its shared line. */
static inline bool eddy_storage_is_idle(eddy_storage *storage) {
    return storage->issuer.submitted == eddy_load_acquire(&storage->shared.retired);
}

/* Whether threads take turns in issuing. Lock: submission. */
static inline bool eddy_vm_is_shared(const eddy_vm *vm) {
    return vm->sequence < vm->shared_until;
}

/* How many lends the thread has, and others of its group. Engine only. */
static inline uint32_t *eddy_lends_of(eddy_vm *vm, uint64_t thread) {
    return &vm->engine.lends[thread % EDDY_LEND_GROUPS];
}

/* A number for the calling thread, never reused. */
uint64_t eddy_vm_thread_number(void);

/* ---- execute.c ---- */

typedef enum eddy_execute_result { EDDY_EXECUTED, EDDY_EXECUTE_STARVED } eddy_execute_result;

/* Runs a CALL: poison check, output memory, workspace, kernel, error to poison. The runner owns the shared lines it needs
 * (PROTOCOL 4). data and data_bytes: room for the operands. STARVED: there was no memory, nothing has happened. */
eddy_execute_result eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction, eddy_blocks_cache *cache,
                                    eddy_kernel_team *team, void **data, int64_t *data_bytes);
/* Runs a plain call whose inputs are idle and healthy and for whose output the cache has memory: what resolving the operands
 * and eddy_vm_execute come to then, in one pass. False, and nothing has happened, for all others. Lock: submission. */
bool eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call);
/* Fails a CALL as `status` without running it: a root of its own, unless an input is poisoned already. */
void eddy_vm_execute_failed(eddy_vm *vm, const eddy_instruction *instruction, eddy_status status);
/* The lowest poison among the inputs, 0 when healthy. */
eddy_poison eddy_vm_input_poison(eddy_vm *vm, const eddy_instruction *instruction);
/* One that is borrowed or has a late shape. */
void eddy_vm_storage_free_odd(eddy_vm *vm, eddy_storage *storage, eddy_blocks_cache *cache,
                              eddy_blocks_cache *arguments);
/* Gives a storage's memory back, or a borrowed buffer to the service thread; the caller owns the shared line. */
static inline void eddy_vm_storage_free(eddy_vm *vm, eddy_storage *storage, eddy_blocks_cache *cache,
                                        eddy_blocks_cache *arguments) {
    if (EDDY_UNLIKELY(storage->shared.borrow || storage->shared.late_shape))
        eddy_vm_storage_free_odd(vm, storage, cache, arguments);
    else
        eddy_blocks_release(cache, storage->shared.data, storage->shared.bytes);
    storage->shared.data = NULL;
    storage->shared.bytes = 0;
    storage->shared.poison = 0;
}

/* ---- engine.c: the role ---- */

/* Asks that the engine look; true when the calling thread has got the role and must call eddy_engine_work. */
bool eddy_engine_request(eddy_vm *vm);
/* How a thread plays the role (PROTOCOL 7). */
typedef struct eddy_engine_turn {
    const eddy_waiter *until; /* it leaves as soon as this is done */
    int64_t spin_ns;          /* it looks so long for more before it gives the role up */
    int64_t inline_ns;        /* calls up to this estimate it runs itself */
    int64_t budget_ns;        /* when it has run so much it runs the cheapest only, and leaves what is left to others */
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
bool eddy_engine_is_call(const eddy_stream_work *work);
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

/* ---- starved.c: instructions for which there was no memory. Engine only ---- */

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

/* ---- graph.c: nodes, edges, retirement. Engine only ---- */

eddy_node *eddy_graph_node_acquire(eddy_vm *vm, const eddy_instruction *instruction);
void eddy_graph_link(eddy_vm *vm, eddy_node *node);
/* To the ready list, when nothing is in the way. */
void eddy_graph_make_ready(eddy_vm *vm, eddy_node *node);
void eddy_graph_dispatched(eddy_vm *vm, eddy_node *node);
void eddy_graph_retire(eddy_vm *vm, eddy_node *node);
/* Whether an instruction's operands are free and its stream is open: it may run without a node. */
bool eddy_graph_is_free(eddy_vm *vm, const eddy_instruction *instruction);
/* Adds an instruction that ran without a node to what has retired. */
void eddy_graph_count_retired(eddy_vm *vm, const eddy_instruction *instruction, int64_t new_bytes, bool is_counted);
/* Adds to what counts as finished for the marks. */
void eddy_graph_count_finished(eddy_vm *vm, const eddy_instruction *instruction, int64_t new_bytes);
/* Marks what `node` waits for as wanted by its waiter; true when a lend of the waiter's own thread is in the way. */
bool eddy_graph_trace(eddy_vm *vm, eddy_node *node, eddy_waiter *waiter);
/* A release takes effect. */
void eddy_graph_release(eddy_vm *vm, eddy_storage_number number);
/* Hands freed numbers that found no room back, where there is room now. */
void eddy_graph_return_numbers(eddy_vm *vm);
/* The rest of them, so that issuers never make new numbers while there are free ones. */
void eddy_graph_return_beyond(eddy_vm *vm);

/* ---- submit.c ---- */

/* A call as the VM's own kinds make them. */
typedef struct eddy_submission {
    eddy_instruction instruction; /* without sequence; mentions and sizes on the caller's stack */
    size_t argument_bytes;        /* rounded up to 8 */
    uint32_t new_count;
    int64_t new_bytes;
    int64_t cost_ps;
    eddy_vm_stream *stream;
    const char *op;      /* for errors; NULL: the instruction's own name */
    int64_t deadline_ns; /* of the wait for room in the ring: TIMED_OUT, unrecorded; 0: none */
} eddy_submission;

/* Runs the op's name function. */
eddy_origin eddy_vm_call_origin(const eddy_vm_call *call);

/* ---- marks.c: how far ahead an issuer may be. Lock: submission ---- */

/* What an instruction counts for as too dear for the caller: its estimate, or nothing. What only workers may run is dear whatever
 * the estimate. */
static inline int64_t eddy_dear_ns(int64_t cost_ns, eddy_vm_place place) {
    if (cost_ns > EDDY_DEAR_NS)
        return cost_ns;
    return place == EDDY_PLACE_WORKER ? EDDY_DEAR_NS : 0;
}
/* Counts an instruction that is about to be written. */
static inline void eddy_marks_count(eddy_vm *vm, int64_t cost_ns, eddy_vm_place place) {
    vm->issued_ns += cost_ns;
    vm->issued_dear_ns += eddy_dear_ns(cost_ns, place);
    int64_t count = (int64_t)(vm->issued - vm->finished_seen);
    int64_t bytes = vm->issued_bytes - vm->finished_bytes_seen;
    if (EDDY_UNLIKELY(count > vm->in_flight_peak))
        vm->in_flight_peak = count;
    if (EDDY_UNLIKELY(bytes > vm->bytes_in_flight_peak))
        vm->bytes_in_flight_peak = bytes;
}
/* Waits, the lock given up meanwhile, where the call would be too far ahead. */
EDDY_MUST_USE eddy_status eddy_marks_wait_slow(eddy_vm *vm, const eddy_vm_call *call);
static inline eddy_status eddy_marks_wait(eddy_vm *vm, const eddy_vm_call *call) {
    uint64_t count = vm->issued - vm->finished_seen;
    /* Below half of the marks as last seen, and nothing else to look at. */
    if (EDDY_LIKELY(!vm->is_driven && 2 * count <= (uint64_t)vm->high_count &&
                    vm->issued_bytes - vm->finished_bytes_seen < vm->high_bytes &&
                    eddy_load_relaxed(&vm->behind) < EDDY_BEHIND_MOST))
        return EDDY_OK;
    return eddy_marks_wait_slow(vm, call);
}
/* The same for a call that waits, at most until the deadline (TIMED_OUT, unrecorded then): abandoned waits stay until what they
 * waited for has come, and take memory. */
EDDY_MUST_USE eddy_status eddy_marks_wait_for_waits(eddy_vm *vm, eddy_origin origin, int64_t deadline_ns);
/* The same until the ring has room for a record. */
EDDY_MUST_USE eddy_status eddy_marks_wait_for_room(eddy_vm *vm, uint32_t lines, eddy_origin origin,
                                                   int64_t deadline_ns);

/* ---- submit.c, continued ---- */

/* Enters the submission lock, or fails with the reason in the thread's slot. */
EDDY_MUST_USE eddy_status eddy_vm_enter(eddy_vm *vm, eddy_origin origin);
/* One-thread mode: user code is due. */
static inline bool eddy_service_has_due(const eddy_vm *vm) {
    return vm->is_one_thread && !eddy_lifo_is_empty(&vm->due);
}
/* One-thread mode: the caller has the engine's work to do, or a service's. */
static inline bool eddy_vm_has_to_drive(const eddy_vm *vm) {
    return vm->is_one_thread &&
           (eddy_engine_has_work(vm) || eddy_load_relaxed(&vm->engine_word) != 0 || eddy_service_has_due(vm));
}
/* Leaves it after something was written, or with something to do. */
void eddy_vm_leave_busy(eddy_vm *vm);
/* Leaves it and wakes the scheduler thread if it sleeps; in one-thread mode does the engine's work. */
static inline void eddy_vm_leave(eddy_vm *vm) {
    if (EDDY_UNLIKELY(vm->has_written || eddy_vm_has_to_drive(vm)))
        eddy_vm_leave_busy(vm);
    else
        eddy_vm_unlock(vm);
}
/* Writes an instruction to the ring, waiting for room: may leave and enter the lock in between. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_vm_write(eddy_vm *vm, eddy_submission *submission);
/* Puts the pending releases into the ring, as far as there is room. Lock: submission. */
void eddy_vm_flush_releases(eddy_vm *vm);
/* Looks how far the engine is, now and then: whether records up to `position`, beyond what was seen, may still be unread. */
bool eddy_vm_look_behind(eddy_vm *vm, uint64_t position);
/* Whether records up to `position` may still be unread; cheap, and wrong on the safe side. Lock: submission. */
static inline bool eddy_vm_is_behind(eddy_vm *vm, uint64_t position) {
    return EDDY_UNLIKELY(position > vm->ring.consumed_seen) && eddy_vm_look_behind(vm, position);
}
/* Whether nothing that was submitted can touch the storage any more: the holder of the lock then owns its shared line (D1).
 * Lock: submission. */
static inline bool eddy_vm_is_idle(eddy_vm *vm, eddy_storage *storage) {
    return !eddy_vm_is_behind(vm, storage->issuer.last_position) && eddy_storage_is_idle(storage);
}

/* Makes or collects free numbers; false when there are none to be had. Lock: submission. */
bool eddy_vm_numbers_find(eddy_vm *vm);
/* Takes a free number; NULL when there is none to be had. Lock: submission. */
static inline eddy_storage *eddy_vm_number_take(eddy_vm *vm, eddy_storage_number *number) {
    eddy_storage_table *table = vm->table;
    /* Now and then, so that numbers are reused while their lines are in the cache. */
    if (EDDY_UNLIKELY((++vm->numbers_since_collect & 15) == 0 || !table->free_head) && !eddy_vm_numbers_find(vm))
        return NULL;
    eddy_storage *storage = eddy_storage_at(table, table->free_head);
    EDDY_ASSERT(!storage->issuer.is_used);
    *number = table->free_head;
    table->free_head = storage->issuer.next_free;
    storage->issuer.is_used = true;
    storage->issuer.generation++;
    storage->issuer.last_position = 0;
    return storage;
}
static inline void eddy_vm_number_give(eddy_vm *vm, eddy_storage *storage, eddy_storage_number number) {
    EDDY_ASSERT(storage->issuer.is_used);
    storage->issuer.is_used = false;
    storage->issuer.next_free = vm->table->free_head;
    vm->table->free_head = number;
}

/* A TOUCH or RECOVER of many storages. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_vm_write_list(eddy_vm *vm, eddy_instruction_kind kind, eddy_mention access,
                                             eddy_vm_stream *stream, const eddy_storage_number *storages, int64_t count,
                                             eddy_origin origin);

/* ---- release.c ---- */

/* Gives up a storage. Lock: submission. */
void eddy_vm_release_locked(eddy_vm *vm, eddy_storage_number number);
/* Gives up so many; *count is 0 then. Lock: submission. */
static inline void eddy_vm_release_all_locked(eddy_vm *vm, const eddy_storage_number *numbers, uint32_t *count) {
    for (uint32_t i = 0; i < *count; i++)
        eddy_vm_release_locked(vm, numbers[i]);
    *count = 0;
}
/* Takes up to `most` pending releases out of their list. Lock: submission. */
uint32_t eddy_vm_pending_take(eddy_vm *vm, eddy_storage_number *numbers, uint32_t most);

/* Recycles what came by the lock-free list after the VM had given everything back. Any thread. */
void eddy_vm_releases_drop(eddy_vm *vm);

/* ---- dump.c ---- */

/* The live instructions, in lines that end with 0. */
typedef struct eddy_dump {
    size_t length;
    char text[40000]; /* 100 lines of 400 characters */
} eddy_dump;
/* What is live now; NULL where there is no memory. Engine only. */
eddy_dump *eddy_dump_live(eddy_vm *vm);
/* Writes the lines to the log and gives the memory back. Without the role: the sink is the user's, and may take its time. */
void eddy_dump_log(eddy_dump *dump);

/* ---- wait.c ---- */

/* A kernel or a blocking call is under way: between the two the VM is not given back. Begun by the engine, or under the
 * submission lock. */
static inline void eddy_vm_inside_begin(eddy_vm *vm) {
    eddy_add_relaxed(&vm->inside, 1);
}
static inline void eddy_vm_inside_end(eddy_vm *vm) {
    eddy_sub_release(&vm->inside, 1);
}

/* Waits until everything submitted has retired, as the debug mode that syncs after each op does; errors stay unseen. */
void eddy_vm_drain(eddy_vm *vm, eddy_origin origin);

/* Blocks until the waiter is done, helping; TIMED_OUT and WOULD_DEADLOCK abandon it. A barrier wants every instruction up
 * to number `before`; 0 elsewhere. */
eddy_status eddy_vm_wait_for(eddy_vm *vm, eddy_waiter *waiter, uint64_t before, int64_t deadline_ns);

/* ---- service.c ---- */

EDDY_MUST_USE eddy_status eddy_service_create(eddy_vm *vm);
/* Sees to it that there is somebody to run user code, before any is accepted. INTERNAL, recorded, when the system gives
 * no thread. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_service_start(eddy_vm *vm, eddy_origin origin);
/* Runs what is left, then ends the thread. False when that took longer: what it needs then stays, the VM's struct too. */
bool eddy_service_destroy(eddy_vm *vm, int64_t deadline_ns);
/* Any thread; never blocks. */
void eddy_service_push(eddy_vm *vm, eddy_service_item *item);
/* A user's buffer and its deleter; made with the storage, so that giving it back needs no memory. */
typedef struct eddy_borrow {
    eddy_service_item item;
    void (*release)(void *context);
    void *context;
} eddy_borrow;

/* One-thread mode: runs what is due on the calling thread, unless it is inside user code already. No lock held. */
void eddy_service_run_due(eddy_vm *vm);
bool eddy_service_is_current_thread(void);
eddy_status eddy_service_sync(eddy_vm *vm, int64_t deadline_ns);

#endif
