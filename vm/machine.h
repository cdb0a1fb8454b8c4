/* The VM's state, in sections by the writing thread. For vm/ only; the header of each source declares its functions. */
#ifndef EDDY_VM_MACHINE_H
#define EDDY_VM_MACHINE_H

#include <base/order.h>
#include <base/process.h>
#include <base/thread.h>
#include <streams/team.h>
#include <vm/errors.h>
#include <vm/node_list.h>
#include <vm/ring.h>
#include <vm/spill.h>
#include <vm/vm.h>

#define EDDY_STREAM_MAX 4096 /* 12 bits in a record; 0 is the default stream */
/* Devices of a VM, the host among them. */
#define EDDY_VM_DEVICES 32
#define EDDY_NUMBER_RING 4096
/* So many pending releases get a record of their own; fewer travel in the next record. */
#define EDDY_PENDING_RELEASES 12
/* Pending releases of more bytes than this are published at once. */
#define EDDY_PENDING_BYTES 65536
/* Instructions of a higher estimate go to a worker: about where parallel execution outweighs the hand-over. A cost is known by the
 * upper end of its class, so this is such an end. */
#define EDDY_SCHEDULER_RUN_NS (65 << 6)
/* Calls of a higher estimate are handed over. */
#define EDDY_CALLER_RUN_PS 1000000
#define EDDY_CALLER_RUN_OPERANDS 8
/* How many instructions may wait behind lends and callbacks: some 70 MB of nodes. */
#define EDDY_BEHIND_MOST 65536
/* Groups of threads whose lends are counted together. */
#define EDDY_LEND_GROUPS 64
/* How long a call waits without any progress before it is refused. */
#define EDDY_PATIENCE_NS INT64_C(2000000000)
/* Instructions of a higher estimate count as dear: worth a hand-over on any machine. */
#define EDDY_DEAR_NS 40000

typedef enum eddy_vm_ended { EDDY_VM_OPEN, EDDY_VM_GIVEN_BACK, EDDY_VM_ABANDONED } eddy_vm_ended;

typedef enum eddy_vm_state { EDDY_VM_RUNNING, EDDY_VM_CLOSING, EDDY_VM_CLOSED } eddy_vm_state;

struct eddy_vm_event {
    _Atomic int32_t references;
    eddy_vm *vm;               /* const */
    struct eddy_node *node;    /* engine only; NULL before and after it is live */
    eddy_sleep_word is_passed; /* atomic: engine stores 1 (release), any thread loads (acquire) */
};

struct eddy_vm_stream {
    eddy_vm *vm;            /* const */
    eddy_work_queue *queue; /* const: runs its works */
    uint16_t number;        /* const */
    bool is_ordered;        /* const */
    _Atomic int32_t references;
    bool is_foreign; /* const: only the stream itself runs kernels (the fake, a device) */
    struct eddy_vm_device *device; /* const: NULL on the host */
    uint32_t device_queue;         /* const: the queue's number there */
    bool has_own_queue;            /* const: the first stream of a device's queue */
    const char *name;              /* const once it is used, for good; NULL: none */
    /* Issuers. lock: submission. Instructions that block later ones: all on an ordered stream, gates on others. */
    uint32_t blocking_submitted;
    uint32_t submitted; /* all of them */
    /* atomic: engine stores (release), holder of the lock loads (acquire) */
    _Atomic uint32_t blocking_retired;
    _Atomic uint32_t retired;
    /* Engine only. */
    eddy_node *live_head, *live_tail;
    eddy_node *
        gate; /* the last unretired gate of an unordered stream, or call of several launches of a device's */
    eddy_node *undispatched;   /* the last node of an ordered stream that is not dispatched yet */
    uint32_t dispatched_count; /* of an ordered stream */
};

/* New storages of one device, and how much of them may be in flight (PROTOCOL.md 10). lock: submission. */
typedef struct eddy_vm_mark {
    int64_t issued_bytes; /* of all instructions written to the ring */
    int64_t finished_bytes_seen;
    int64_t high_bytes, low_bytes;
} eddy_vm_mark;

struct eddy_vm {
    /* ---- const after init ---- */
    eddy_runtime_options options;
    int32_t thread_count;
    bool
        is_one_thread; /* no scheduler thread: the issuing thread takes the engine's role after each call */
    bool is_full_path;   /* no instruction runs on the caller */
    bool is_worker_path; /* and none on the scheduler thread */
    bool
        is_driven; /* issuers take the engine's role after their calls: neither of the two, nor one-thread mode */
    bool syncs_each_op;
    bool checks_finite;
    bool has_team;
    uint64_t process; /* generation of the process that created the VM */
    uint32_t number;  /* of the VM in the process, from 1 on; events say it */
    int64_t high_count, low_count;
    int64_t lead_bytes; /* bytes of new storages ahead that fit the caches */
    eddy_kernel_team team;
    eddy_storage_table *table;

    /* ---- issuers; lock: submission ---- */
    eddy_lock submission __attribute__((aligned(EDDY_CACHE_LINE)));
    _Atomic int
        state; /* atomic: eddy_vm_state; written under the lock (seq_cst), releasers without it read (seq_cst) */
    uint64_t sequence;
    uint64_t issued;        /* instructions written to the ring */
    uint64_t look_again_at; /* sequence number */
    int64_t issued_ns;      /* their estimates */
    int64_t issued_dear_ns; /* the estimates of those that were too dear for the caller */
    uint64_t issuer;        /* number of the last thread that has written */
    uint64_t shared_until;  /* sequence number up to which threads count as taking turns */
    uint64_t
        vain_at; /* `finished` at the last unsuccessful wait of an issuer that was too far ahead */
    bool
        has_written; /* a record was written since the lock was taken, and not left to a launcher (attend.h) */
    bool has_issued; /* more than releases */
    uint64_t finished_seen;
    int64_t finished_ns_seen, finished_dear_ns_seen;
    uint64_t retired_seen;
    uint64_t node_total;              /* nodes made; never fewer than instructions in flight */
    eddy_storage_number pending_head; /* linked by issuer.next_free */
    uint32_t pending_count;
    int64_t pending_bytes;
    int64_t issued_bytes, finished_bytes_seen; /* of all devices together */
    int64_t in_flight_peak, bytes_in_flight_peak;
    eddy_vm_mark
        marks[EDDY_VM_DEVICES]; /* the first is the host's: it lies beside what each call touches */
    eddy_blocks_cache issuer_cache;
    eddy_blocks_cache issuer_arguments;
    uint64_t caller_run_count, wake_count, ring_stall_count;
    uint32_t numbers_since_collect;
    eddy_storage_number numbers_taken_beyond; /* what is left of them, linked alike */
    eddy_vm_stream *streams
        [EDDY_STREAM_MAX]; /* written under the lock; the engine reads those that records name */
    uint32_t stream_count;
    /* Written under the lock, before the number is given out; 0, the host, is NULL. */
    struct eddy_vm_device *devices[EDDY_VM_DEVICES];
    /* Written likewise; read without the lock, also when the VM is closed and the streams are gone: submission refuses then. */
    eddy_vm_stream *default_streams[EDDY_VM_DEVICES];
    _Atomic uint32_t device_count; /* atomic: release, under the lock; the engine reads (acquire) */

    eddy_ring ring;

    /* ---- read by issuers, written by the scheduler ---- */
    _Atomic bool is_asleep
        __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: seq_cst, set under the lock */
    eddy_sleep_word wake_word;                     /* atomic: seq_cst */
    _Atomic bool
        was_told; /* atomic: seq_cst; another VM released memory while this one was hungry */
    _Atomic bool
        has_stalled; /* atomic: seq_cst; a device's launcher has got no memory since the engine last looked */
    _Atomic bool has_left; /* atomic: seq_cst; the last thread with the role left ready nodes */
    _Atomic bool is_ending;
    _Atomic bool is_halted; /* atomic: release; at exit, for good: the engine does nothing more */

    /* ---- published by the engine ---- */
    _Atomic uint64_t finished
        __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: seq_cst; for the marks */
    _Atomic int64_t finished_ns, finished_dear_ns; /* atomic: release, before `finished` */
    _Atomic uint64_t retired;                      /* atomic: release; instructions truly gone */
    _Atomic int64_t waits;                         /* atomic: release; a copy of the engine's */
    _Atomic int64_t behind;                        /* atomic: relaxed; likewise */
    _Atomic uintptr_t
        blocker; /* atomic: relaxed; call address of the lend or callback that `behind` began with */
    _Atomic int64_t finished_bytes[EDDY_VM_DEVICES]; /* atomic: seq_cst, before `finished` */
    eddy_sleep_word progress __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: seq_cst */
    _Atomic int32_t throttled;         /* atomic: seq_cst; issuers that wait for `progress` */
    _Atomic uint64_t numbers_returned; /* atomic: write position of the number ring, release */
    /* atomic: acq_rel; freed numbers beyond the ring, linked by engine.next_unreturned: the engine adds to the front, the holder
     * of the lock takes all */
    _Atomic eddy_storage_number numbers_beyond;
    eddy_storage_number numbers[EDDY_NUMBER_RING] __attribute__((aligned(EDDY_CACHE_LINE)));
    _Atomic uint64_t numbers_taken __attribute__((
        aligned(EDDY_CACHE_LINE))); /* atomic: read position, written under the lock (release) */

    /* ---- pushed by any thread ---- */
    _Atomic uint32_t engine_word
        __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: acq_rel; PROTOCOL 7 */
    eddy_lifo completions;                         /* nodes, DONE */
    eddy_lifo releases;                            /* eddy_vm_release_link */
    eddy_lifo fresh_nodes;                         /* node chunks made by issuers */
    eddy_lifo due;                                 /* eddy_service_item, for the service */

    /* ---- engine only ---- */
    struct {
        eddy_blocks_cache cache;
        eddy_blocks_cache arguments;
        eddy_node *free_nodes;
        eddy_node *live_head, *live_tail;
        eddy_node *ready_head, **ready_tail; /* of the host, in the order in which they became so */
        eddy_node_list starved;              /* nodes that got no memory */
        eddy_lifo_link *held_releases;       /* not due yet */
        uint64_t finished, retired;
        int64_t finished_bytes[EDDY_VM_DEVICES];
        int64_t finished_ns, finished_dear_ns;
        int64_t inline_ns; /* estimate up to which the thread with the role runs calls itself */
        int64_t
            inline_left_ns; /* how much of these it may still run before it leaves them to others */
        bool is_caller;     /* the thread with the role is an issuer or a waiter */
        uint64_t own_sequence; /* of the call that an issuer has just submitted, 0 else */
        int64_t
            own_ns; /* estimate up to which it runs that call itself after it has given the role up */
        eddy_node *own;         /* the node to be run so */
        struct eddy_dump *dump; /* the dump to be logged then */
        uint32_t unpublished;
        uint64_t woken_at_head,
            woken_at_finished; /* their values when held back issuers were last woken */
        bool owes_wake;        /* progress was published since without a wake */
        int32_t running_count; /* nodes dispatched to streams */
        uint64_t search;       /* number of the last search back from a waiter */
        uint32_t lends
            [EDDY_LEND_GROUPS]; /* granted and not ended, by thread modulo the number of groups */
        uint64_t visited;       /* nodes, by those searches */
        uint64_t linked_users;  /* lends and callbacks, not retired */
        int64_t behind;         /* these and the instructions that wait behind one; not retired */
        int64_t linked_bytes;   /* new storages of nodes, on the host */
        int64_t waits;          /* nodes that a thread waits for, or has waited for; not retired */
        eddy_storage_number
            unreturned; /* freed numbers that found no room in the number ring, the newest first */
        eddy_storage_number unreturned_last;
        uint64_t numbers_written;
        int64_t ready_count; /* in both lists */
        uint64_t sent_count; /* to threads */
        uint64_t caller_run, scheduler_run, worker_run, edges_made, edges_skipped, nodes_made;
        eddy_node_list ready_there; /* of devices, in the order of the calls */
    } engine __attribute__((aligned(EDDY_CACHE_LINE)));

    /* atomic: relaxed copies of the engine's counters, for other threads; `starved` is the counter itself */
    struct {
        _Atomic uint64_t caller_run, scheduler_run, worker_run, edges_made, edges_skipped,
            nodes_made, starved;
        _Atomic int64_t ready, running;
        _Atomic uint64_t sent;
    } counted;
    _Atomic bool wants_dump;
    /* atomic: relaxed; of those sent, by who has begun to run or launch one. Not on the line of what the engine writes. */
    _Atomic uint64_t begun_count __attribute__((aligned(EDDY_CACHE_LINE)));
    _Atomic uint64_t healed_count; /* atomic: relaxed; by who ends an instruction */
    /* atomic: kernels on streams and threads in waits, which access the VM once more after their instruction has retired;
     * they leave with release, the closing thread waits for 0 (acquire) */
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
    eddy_lock one_thread; /* one-thread mode: held while a caller has the engine's role */
    /* starved.c: VMs of a process share its limit. */
    eddy_vm *next_sharing; /* lock: sharing */
    _Atomic bool
        is_hungry; /* atomic: seq_cst, the engine stores; this VM waits for memory of others */
    _Atomic bool
        has_running; /* atomic: seq_cst, the engine stores; kernels of this VM run that may release memory */
    eddy_sleep_word
        ended; /* atomic: seq_cst; eddy_vm_ended, on which a second closing thread sleeps */
    bool
        is_kept; /* the closing thread writes it before `ended`; a deleter still runs: the struct is never freed */
    _Atomic uint64_t
        skipped_count; /* atomic: relaxed; instructions that did not run because of poison */
};

/* The submission lock (PROTOCOL 2): its holder waits for leaf locks only. */
static inline void eddy_vm_lock(eddy_vm *vm) {
    eddy_lock_acquire(&vm->submission);
}
static inline bool eddy_vm_try_lock(eddy_vm *vm) {
    return eddy_lock_try(&vm->submission);
}
static inline void eddy_vm_unlock(eddy_vm *vm) {
    eddy_lock_release(&vm->submission);
}

/* Takes the submission lock if the VM is of this process and not closed, which it does not become meanwhile. */
static inline bool eddy_vm_lock_if_open(eddy_vm *vm) {
    if (vm->process != eddy_process_generation)
        return false;
    eddy_vm_lock(vm);
    bool is_open = eddy_load_relaxed(&vm->state) != EDDY_VM_CLOSED;
    if (!is_open)
        eddy_vm_unlock(vm);
    return is_open;
}

static inline eddy_storage *eddy_vm_storage(const eddy_vm *vm, eddy_storage_number number) {
    return eddy_storage_at(vm->table, number);
}

/* Whether everything submitted on the storage has retired. Lock: submission. On true the caller owns its shared line. */
static inline bool eddy_vm_storage_is_idle(eddy_storage *storage) {
    return storage->issuer.submitted == eddy_load_acquire(&storage->shared.retired);
}

/* Whether threads take turns in issuing. Lock: submission. */
static inline bool eddy_vm_is_shared(const eddy_vm *vm) {
    return vm->sequence < vm->shared_until;
}

/* How many lends the thread has, and others of its group. Engine only. */
static inline uint32_t *eddy_vm_lends_of(eddy_vm *vm, uint64_t thread) {
    return &vm->engine.lends[thread % EDDY_LEND_GROUPS];
}

/* A number for the calling thread, never reused. */
uint64_t eddy_vm_thread_number(void);

#endif
