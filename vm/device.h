/* A device of a VM: its queues, its launches, and what the engine knows of them (DEVICES.md). */
#ifndef EDDY_VM_DEVICE_H
#define EDDY_VM_DEVICE_H

#include <streams/backend.h>
#include <streams/device_pool.h>
#include <vm/attend.h>
#include <vm/instruction_kind.h>
#include <vm/machine.h>

/* Instructions between dispatch and end, counted from the oldest. */
#define EDDY_DEVICE_WINDOW 2048
_Static_assert(2 * EDDY_DEVICE_WINDOW <= EDDY_BACKEND_WORDS, "W3 of DEVICES.md");

typedef struct eddy_device_queue {
    struct eddy_vm_device *device; /* const */
    eddy_backend_queue *under;     /* const after init */

    eddy_lock lock __attribute__((aligned(EDDY_CACHE_LINE)));
    eddy_node *launched, *last_launched; /* lock: lock; in the order of tickets */
    uint64_t
        marked; /* lock: lock; the last ticket that the launcher has marked: it is done with the node */
    bool
        is_halted; /* lock: lock; at exit: nobody looks any more at what the device has completed, whose memory a driver may take */
    int64_t done_ns; /* lock: lock; when somebody last heard that it was done with something */
    /* Released, their last users dispatched: the list's ends. lock: lock */
    _Atomic eddy_storage_number
        early; /* atomic: relaxed, under the lock; the launcher reads it without */
    eddy_storage_number last_early;
    /* Engine only. */
    eddy_node *arrived __attribute__((aligned(EDDY_CACHE_LINE))), *last_arrived;
    uint64_t
        clock[EDDY_BACKEND_QUEUES]; /* tickets of other queues that all later launches come after */
    uint64_t changed;               /* the ticket with which one of these was last raised */
} eddy_device_queue;

/* What is known of a ticket between dispatch and end: row ticket % EDDY_DEVICE_WINDOW. */
typedef struct eddy_device_launch {
    /* The engine writes before dispatch. */
    eddy_backend_launch under __attribute__((aligned(EDDY_CACHE_LINE)));
    uint64_t first_ticket; /* engine only: of its node, in the row of the last one */
    uint64_t dispatch;     /* engine only: the dispatch's number, there too */
    uint32_t waited_for;   /* a bit for each queue of which `waits` says something */
    bool is_open;          /* engine only: dispatched and not ended */
    bool is_skipped;       /* an input was poisoned at dispatch */
    /* The launcher writes before the mark; `failure` also who takes what a lost device leaves. */
    bool has_launched;
    eddy_status failure;
    int64_t launched_ns; /* 0: nothing was launched, or nobody hears of it */
    /* By the engine before dispatch: the ticket of each queue to come after. Last: most launches wait for none, and two threads touch what stands ahead alone. */
    uint64_t waits[EDDY_BACKEND_QUEUES];
} eddy_device_launch;
_Static_assert(EDDY_BACKEND_QUEUES <= 32, "a bit for each queue");

typedef struct eddy_vm_device {
    eddy_vm *vm;               /* const */
    uint8_t number;            /* const */
    eddy_backend *backend;     /* const */
    eddy_device_pool *pool;    /* const */
    eddy_work_queue *launcher; /* const */
    /* const: memory of the host that is pinned for copies, and what copies by way of it; NULL where any memory will do */
    eddy_device_pool *pinned;
    struct eddy_staging *staging;
    bool has_said_unpinned; /* launcher only */
    eddy_thread reaper;
    bool has_reaper;        /* const after init */
    _Atomic bool is_ending; /* atomic: release; seen after the backend's doorbell has rung */
    eddy_device_queue queues[EDDY_BACKEND_QUEUES];
    eddy_backend_queue *unders[EDDY_BACKEND_QUEUES];
    _Atomic uint32_t queue_count; /* atomic: release, under `making`; others read (acquire) */
    eddy_lock making;             /* held while the backend makes a queue */
    uint32_t stream_count;        /* lock: making */
    int32_t priorities[EDDY_BACKEND_QUEUES]; /* lock: making; of the queues */
    /* The default one, and those of copies without a stream: also of reads, lends and callbacks. Const once the device is known. */
    eddy_vm_stream *compute, *to_host, *to_device;
    const char
        *name; /* const once it is used, for good: "cuda:0", or what its backends are called */
    /* With the stalled work: the launcher writes the one before it stalls, the engine the other before it resumes. */
    uint64_t stalled_ticket;
    bool is_last_try;
    eddy_attendance attendance;
    /* Engine only. */
    uint64_t ticket;     /* the last one given */
    uint64_t dispatched; /* how often one or more were given */
    uint64_t oldest;     /* the first that has not ended */
    uint32_t endable;    /* a bit for each queue whose first arrived node may end now */
    /* Ready, and not with the launcher: the window is full, or it is short of memory (shortage.c). The second: what gives memory back and takes none. */
    eddy_node_list held, held_givers;
    bool is_short; /* of the held ones only givers are dispatched, of calls up to stalled_until */
    uint64_t stalled_sequence, stalled_until;
    /* As it began to be short: what the VM had retired, what the device's pool had given out. */
    uint64_t short_retired;
    int64_t short_bytes;
    eddy_device_launch launches[EDDY_DEVICE_WINDOW];
} eddy_vm_device;

/* Whether it has a turn on a device, for which dispatch is a ticket and a place in the launcher's queue. */
static inline bool eddy_device_runs(const eddy_node *node) {
    return EDDY_UNLIKELY(node->stream->device != NULL) &&
           eddy_instruction_has(&node->instruction, EDDY_KIND_IS_STREAMED);
}

/* Whether the call has several launches, between which others come: it has a late shape, or is launched in rounds. */
bool eddy_device_is_repeated(const eddy_node *node);
/* Whether it takes its edges from ends, and satisfies them by its own, on its device too. */
bool eddy_device_stands_apart(const eddy_node *node);
/* Whether dispatch of `source` satisfies an edge to `node` (DEVICES.md 3). */
bool eddy_device_orders(const eddy_node *source, const eddy_node *node);
static inline eddy_device_launch *eddy_device_launch_of(eddy_vm_device *device, uint64_t ticket) {
    return &device->launches[ticket % EDDY_DEVICE_WINDOW];
}

/* Gives a ready node of a device's stream its ticket and hands it to the launcher; beyond the window it is held. Engine only. */
void eddy_device_dispatch(eddy_vm *vm, eddy_node *node);
/* Whether an instruction of the host needs elements that a device has, and the copy that brings them: the instruction is run when they are there.
 * Engine only. */
bool eddy_device_fetches(eddy_vm *vm, const eddy_instruction *instruction);
void eddy_device_fetch(eddy_vm *vm, eddy_node *node);
/* Such an instruction is over, or a lend to code of the device. True: what it has written is copied back first, or what that code has launched has to be over, and it arrives
 * once more. Engine only. */
bool eddy_device_stores(eddy_vm *vm, eddy_node *node);
/* Hands a node that has arrived to the launcher once more, for another one of its launches. Engine only. */
void eddy_device_dispatch_again(eddy_vm *vm, eddy_node *node, eddy_device_queue *queue);
/* The node was taken from the launcher, which has not begun it: its tickets are no more, and it is held. Engine only. */
void eddy_device_take_back(eddy_vm *vm, eddy_vm_device *device, eddy_node *node);
/* A node that was taken from the completions. Engine only. */
void eddy_device_arrived(eddy_vm *vm, eddy_node *node);
/* One of the node's sources on its device has ended. Engine only. */
void eddy_device_source_ended(eddy_node *node);
/* Looks after what lacks memory (shortage.h); in one-thread mode waits for what is launched, and takes it. has_moved: memory may have become free. Whether
 * there is more to do. Engine only. */
bool eddy_device_attend(eddy_vm *vm, bool has_moved);

/* Dispatches held nodes, as far as they may be. Engine only. */
void eddy_device_release_held(eddy_vm *vm, eddy_vm_device *device);

/* Hands what devices, or one of them, have completed to the engine, as their reapers do, which alone take what a lost one leaves. Whether there was any: the caller then requests the
 * engine's role. Any thread, while the VM cannot close; not in one-thread mode. */
bool eddy_device_reap(eddy_vm_device *device);
bool eddy_device_reap_all(eddy_vm *vm);

/* Gives cached memory of a device, and what is pinned for it, back to the backend; returns bytes. Any thread, while the VM cannot close. */
int64_t eddy_device_trim(eddy_vm_device *device);
int64_t eddy_device_trim_all(eddy_vm *vm);
/* At exit: the devices begin no function of the host any more, and none runs; false if one still does at the deadline. */
bool eddy_device_halt_all(eddy_vm *vm, int64_t deadline_ns);
/* Everything of the VM's devices has ended, or they are lost: ends their threads and frees them. */
void eddy_device_fini_all(eddy_vm *vm);

#endif
