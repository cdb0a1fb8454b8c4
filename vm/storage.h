/* The VM's data of a storage: three cache lines, one per writer (PROTOCOL.md section 4), in a table that never moves. */
#ifndef EDDY_VM_STORAGE_H
#define EDDY_VM_STORAGE_H

#include <base/atomic.h>
#include <base/memory.h>
#include <eddy/shape.h>
#include <vm/poison.h>
#include <vm/vm.h>

struct eddy_node;
struct eddy_use;

typedef struct eddy_storage {
    /* The issuers' line. lock: submission. */
    struct {
        uint32_t submitted;     /* mentions in records so far */
        uint32_t generation;    /* counts reuses of the number */
        uint64_t last_position; /* position in the ring after the last such record */
        eddy_storage_number next_free;
        bool is_used;
        int64_t bytes; /* if known: not for late shapes */
    } issuer __attribute__((aligned(EDDY_CACHE_LINE)));

    /* The shared line. Owner: the holder of the submission lock while issuer.submitted == retired, else the engine. */
    struct {
        _Atomic uint32_t
            retired; /* atomic: engine stores (release), holder of the lock loads (acquire) */
        /* atomic: relaxed; a lender has handed the memory on: it is released with the storage alone. Written while lent, or by the launcher of a SHARE. */
        _Atomic bool is_kept;
        uint8_t device; /* whose memory `data` is; the issuer writes it with the number */
        void *data;
        int64_t bytes; /* size of data; what the block was acquired with */
        eddy_poison poison;
        eddy_shape *late_shape; /* mut2: the shape, from the argument pool */
        struct eddy_borrowed *
            borrow; /* data belongs to the user: the deleter to call instead of releasing a block */
    } shared __attribute__((aligned(EDDY_CACHE_LINE)));

    /* The engine's line. Engine only, where nothing else is said. */
    struct {
        struct eddy_node *last_writer; /* unretired */
        struct eddy_use *readers;      /* unretired, since the last writer */
        uint32_t user_count;           /* unretired mentions */
        bool is_released;
        eddy_storage_number next_unreturned;
        /* Early release: the queue in whose list it is or was, else NULL. */
        struct eddy_device_queue *early_queue;
        /* lock: that queue's; the launcher too */
        uint64_t early_ticket; /* of the last user; 0: in no list */
        eddy_storage_number early_next, early_previous;
    } engine __attribute__((aligned(EDDY_CACHE_LINE)));
} eddy_storage;

#define EDDY_STORAGE_CHUNK 1024
/* 2^24 storages alive at once. */
#define EDDY_STORAGE_CHUNK_MAX 16384

typedef struct eddy_storage_table {
    /* Chunk pointers; a chunk is published before any number of it is handed out (plain: the number travels with
     * synchronisation of its own). lock: submission for writing. */
    eddy_storage *chunks[EDDY_STORAGE_CHUNK_MAX];
    uint32_t chunk_count;          /* lock: submission */
    eddy_storage_number free_head; /* lock: submission; last in, first out */
    uint32_t free_count;           /* lock: submission */
} eddy_storage_table;

static inline eddy_storage *eddy_storage_at(const eddy_storage_table *table,
                                            eddy_storage_number number) {
    return &table->chunks[number / EDDY_STORAGE_CHUNK][number % EDDY_STORAGE_CHUNK];
}

/* Adds a chunk of free numbers; false if there is no memory or the numbers are used up. Lock: submission. */
bool eddy_storage_table_grow(eddy_storage_table *table);
void eddy_storage_table_fini(eddy_storage_table *table);

#endif
