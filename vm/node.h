/* An instruction that waits or runs elsewhere: a node of the engine's graph (PROTOCOL.md section 6).
 *
 *   WAITING --(no unsatisfied edge)--> READY --(given to a stream, service thread or lender)--> DISPATCHED --> DONE
 *   of a device:                                                   DISPATCHED --(complete)--> ARRIVED --> DONE
 *
 * The VM's completions bring finished nodes back to the engine, which retires them: that sets DONE. */
#ifndef EDDY_VM_NODE_H
#define EDDY_VM_NODE_H

#include <streams/work_queue.h>
#include <vm/instruction.h>
#include <vm/ring.h>
#include <vm/waiter.h>

/* A piece of user code for the service thread. */
typedef struct eddy_service_item {
    eddy_lifo_link link;
    void (*run)(struct eddy_service_item *item);
} eddy_service_item;

/* A node's use of one storage. Engine only. */
typedef struct eddy_use {
    struct eddy_node *node;
    eddy_storage_number storage;
    bool is_write;
    /* Between instructions of one device, whose edges dispatch satisfies and which stay linked until the end (DEVICES.md 3): the edge from
     * `source` and whether it is satisfied, the one to `next_writer` likewise. */
    bool is_kept, has_source_gone;
    bool lets_go, has_let_go;
    /* A read: in the storage's readers, later in the next writer's list. A write: head of its list of readers. */
    struct eddy_use *reader_next, **reader_link;
    struct eddy_node *next_writer; /* a write that waits for this read */
    struct eddy_node *source;      /* the writer this use waits for; NULL when none or satisfied */
    struct eddy_use *source_next;  /* in source->waiting_uses */
} eddy_use;

typedef enum eddy_node_state {
    EDDY_NODE_FREE,
    EDDY_NODE_WAITING,
    EDDY_NODE_READY,
    EDDY_NODE_DISPATCHED,
    EDDY_NODE_ARRIVED, /* on a device: over there, and waits for the ends of others */
    EDDY_NODE_DONE,
} eddy_node_state;

/* An edge between whole nodes: program order of an ordered stream, a gate, an event. */
typedef enum eddy_order {
    EDDY_ORDER_STREAM,
    EDDY_ORDER_GATE,
    EDDY_ORDER_EVENT,
    EDDY_ORDER_COUNT
} eddy_order;

typedef struct eddy_order_edge {
    struct eddy_node *node;   /* the node that has this edge */
    struct eddy_node *source; /* NULL when none or satisfied */
    struct eddy_order_edge *source_next;
    bool is_dispatch;              /* satisfied when source is dispatched, not when it retires */
    bool is_kept, has_source_gone; /* as in a use */
} eddy_order_edge;

#define EDDY_NODE_USES EDDY_RECORD_OPERANDS

/*   NONE --> FETCHES (copy to the host) --> HOLDS (run as on the host) --(it writes)--> STORES (copy back)
 *   of a call with late shapes: COUNTS --> FILLS
 *   of a program on a device that runs no code of the host: ROUNDS, again and again
 *   of a lend to code of the device: NONE --(granted, ended)--> SETTLES (what that has launched is on its way) */
typedef enum eddy_staging_phase {
    EDDY_STAGING_NONE,
    EDDY_STAGING_FETCHES,
    EDDY_STAGING_HOLDS,
    EDDY_STAGING_STORES,
    EDDY_STAGING_COUNTS,
    EDDY_STAGING_FILLS,
    EDDY_STAGING_ROUNDS,
    EDDY_STAGING_SETTLES,
} eddy_staging_phase;

typedef struct eddy_node {
    eddy_work work;            /* belongs to the stream while DISPATCHED */
    eddy_lifo_link completion; /* in the completions once DONE */
    struct eddy_vm *vm;        /* const after init */

    /* Set by the engine before dispatch; the runner reads. */
    eddy_instruction instruction;
    struct eddy_vm_stream *stream;
    uint64_t payload[EDDY_RECORD_ARGUMENT_BYTES / 8];
    eddy_mention mentions[EDDY_NODE_USES];
    int64_t sizes[EDDY_NODE_USES];

    eddy_service_item service; /* for the service thread, of an ACCESS */

    /* Written by the runner, until DONE. */
    bool is_starved;  /* it got no memory: try again after an instruction has retired */
    bool is_last_try; /* it fails if it gets no memory */
    bool has_failed_lend;
    _Atomic bool
        has_ended_lend; /* atomic: the lender stores (release) before it pushes; the search from a waiter loads */

    /* Engine only. */
    eddy_node_state state;
    bool is_behind_user; /* a lend or a callback, or after one */
    bool is_finished;    /* already counted as finished for the marks */
    bool is_marker;      /* ready once first in its list: barrier, event on an unordered stream */
    uint64_t search;     /* number of the last search that visited it */
    struct eddy_node *search_next;
    uint64_t lend_thread; /* LEND: the lender's number; 0 until it is granted */
    int64_t new_bytes;
    uint8_t new_device;    /* that these are on */
    int32_t waiting_count; /* unsatisfied edges */
    /* On a device (DEVICES.md 2, 3). */
    int32_t unended; /* sources that dispatch has satisfied, or will, and that have not ended */
    uint32_t source_count; /* of these, the ones that write what it reads */
    uint64_t ticket; /* of the last dispatch, the last of its own; 0: it has none, or lost it (4) */
    bool was_dispatched;             /* what this satisfies is satisfied */
    struct eddy_device_queue *queue; /* between dispatch and arrival, else NULL */
    /* A wait, lend or callback on a device's storage: its elements in memory of the host; a late call: what it has counted; a program in rounds: its state
     * (DEVICES.md 6). */
    eddy_staging_phase phase;
    void *staging;
    eddy_poison staging_poison; /* of a copy that has failed */
    int64_t staging_bytes;
    bool is_staging_pinned; /* a block of the device's pinned pool, else of the VM's */
    void *workspace;        /* of a late call's two launches, and of a program's rounds */
    bool has_had_round;     /* one of a program's rounds has ended, and it goes on */
    eddy_use *uses;
    eddy_use inline_uses[EDDY_NODE_USES];
    /* Uses of other nodes that wait for this one's writes, in the order of their instructions, which become ready in it. */
    eddy_use *waiting_uses, *last_waiting_use;
    eddy_order_edge orders[EDDY_ORDER_COUNT];
    eddy_order_edge *waiting_orders;
    struct eddy_node *live_next, *live_previous;     /* all live nodes of the VM, in order */
    struct eddy_node *stream_next, *stream_previous; /* all live nodes of the stream, in order */
    struct eddy_node *ready_next;                    /* ready list, starved list, free list */
    struct eddy_node
        *queue_next; /* of a device: launched (lock: the queue's), then arrived (engine) */

    /* atomic: the engine stores (relaxed) the waiter to nudge; it may belong to another wait by then. */
    _Atomic(eddy_waiter *) wanted_by;
    /* atomic: the engine sets (relaxed) which wait wants the node, by its number; helping waiters compare (relaxed, under the
     * team's lock). */
    _Atomic uint64_t wanted_number;
} eddy_node;

/* Nodes are made by issuers, a chunk at a time, and live as long as the VM. */
#define EDDY_NODE_CHUNK 32

typedef struct eddy_node_chunk {
    struct eddy_node_chunk *next;
    eddy_node nodes[EDDY_NODE_CHUNK];
} eddy_node_chunk;

#endif
