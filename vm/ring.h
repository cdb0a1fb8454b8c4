/* The ring of records between the issuers and the engine (PROTOCOL.md section 3). */
#ifndef EDDY_VM_RING_H
#define EDDY_VM_RING_H

#include <vm/instruction.h>

#define EDDY_RING_LINES 4096
#define EDDY_LINE_BYTES 64
/* Longer calls keep arguments and mentions in a spill (spill.h). */
#define EDDY_RECORD_ARGUMENT_BYTES 192
#define EDDY_RECORD_OPERANDS 6
#define EDDY_RECORD_RELEASES 15
#define EDDY_RECORD_LINES_MAX 6

typedef struct eddy_record {
    _Atomic uint32_t
        ready; /* atomic: 0, or 1 and above it the upper bits of the sequence number; issuer stores last (release),
                             * engine loads first (acquire) */
    uint8_t kind_releases; /* kind in the lower, releases in the upper four bits */
    uint8_t line_count;
    uint8_t argument_words;
    uint8_t
        operand_count; /* EDDY_RECORD_SPILLED: the data are in the spill that the argument names */
    uint64_t
        word; /* lower 40 bits of the sequence number, stream 12, cost class 5, place 1, new storages 3 */
    const eddy_vm_descriptor *descriptor;
    const void *address;
    uint64_t payload
        [4]; /* arguments, sizes of new storages, mentions, releases; runs on into further lines */
} eddy_record;

_Static_assert(sizeof(eddy_record) == EDDY_LINE_BYTES, "a record's head is one line");

#define EDDY_RECORD_SPILLED 255
/* Bits of the sequence number in `word`. With those in `ready` there are 71; a poison has room for 62. */
#define EDDY_RECORD_SEQUENCE_BITS 40

#define EDDY_COST_CLASS_MAX 31u /* five bits */

/* Cost classes: 0 is up to 64 ns, each further one doubles. */
static inline uint64_t eddy_record_cost_class(int64_t cost_ps) {
    uint64_t units = cost_ps <= 0 ? 0 : (uint64_t)cost_ps >> 16;
    uint64_t class = units == 0 ? 0 : 64u - (uint64_t)__builtin_clzll(units);
    return class < EDDY_COST_CLASS_MAX ? class : EDDY_COST_CLASS_MAX;
}

static inline uint32_t eddy_record_cost_class_ns(uint64_t class) {
    return class > 25 ? UINT32_MAX : 65u << class;
}

typedef struct eddy_ring {
    eddy_record *lines; /* const after init */

    /* Issuers. lock: submission. */
    _Atomic uint64_t tail __attribute__((
        aligned(EDDY_CACHE_LINE))); /* atomic: lines written; releasers read it relaxed */
    uint64_t consumed_seen;

    /* Engine. */
    _Atomic uint64_t head __attribute__((
        aligned(EDDY_CACHE_LINE))); /* atomic: lines read; the scheduler thread peeks */

    _Atomic uint64_t consumed
        __attribute__((aligned(EDDY_CACHE_LINE))); /* atomic: published copy of head */
} eddy_ring;

EDDY_MUST_USE eddy_status eddy_ring_init(eddy_ring *ring);
void eddy_ring_fini(eddy_ring *ring);

/* Whether `lines` more fit (and the padding they may need). Lock: submission. */
static inline bool eddy_ring_has_room(eddy_ring *ring, uint32_t lines) {
    uint64_t end = eddy_load_relaxed(&ring->tail) + 2 * lines + 1;
    if (EDDY_LIKELY(end - ring->consumed_seen <= EDDY_RING_LINES))
        return true;
    ring->consumed_seen = eddy_load_acquire(&ring->consumed);
    return end - ring->consumed_seen <= EDDY_RING_LINES;
}

/* Writes a record; arguments are read in words of 8 bytes; the caller has asked for room. Lock: submission. */
eddy_record *eddy_ring_write(eddy_ring *ring, const eddy_instruction *instruction,
                             size_t argument_bytes, uint32_t new_count, uint64_t cost_class,
                             const eddy_storage_number *releases, uint32_t release_count);
/* Publishes it to the engine: from here on the objects that the record refers to, such as its spill, may be freed. */
static inline void eddy_ring_publish(eddy_record *record, uint64_t sequence) {
    eddy_store_release(&record->ready, 1u | (uint32_t)(sequence >> EDDY_RECORD_SEQUENCE_BITS) << 1);
}

/* The record at the head, or NULL. Engine. */
static inline eddy_record *eddy_ring_peek(eddy_ring *ring) {
    eddy_record *record = &ring->lines[eddy_load_relaxed(&ring->head) % EDDY_RING_LINES];
    return eddy_load_acquire(&record->ready) ? record : NULL;
}

/* Reads a record into `instruction` (pointers into the ring), its releases into *releases. Engine. */
void eddy_ring_read(const eddy_record *record, eddy_instruction *instruction,
                    const eddy_storage_number **releases, uint32_t *release_count);

/* Leaves the record at the head; its line may be rewritten once `consumed` is published. Engine. */
static inline void eddy_ring_pop(eddy_ring *ring, const eddy_record *record) {
    eddy_store_relaxed(&ring->head, eddy_load_relaxed(&ring->head) + record->line_count);
}

/* Lines that a record of this size takes. */
static inline uint32_t eddy_record_lines(size_t argument_bytes, uint32_t new_count,
                                         uint32_t operand_count, uint32_t release_count) {
    size_t bytes = 32 + (argument_bytes + 7) / 8 * 8 + 8 * (size_t)new_count +
                   4 * (size_t)operand_count + 4 * (size_t)release_count;
    return (uint32_t)((bytes + EDDY_LINE_BYTES - 1) / EDDY_LINE_BYTES);
}

#endif
