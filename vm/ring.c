#include <string.h>
#include <vm/ring.h>
#include <vm/spill.h>

#define SEQUENCE_BITS EDDY_RECORD_SEQUENCE_BITS
#define STREAM_BITS 12
#define SEQUENCE_MASK (((uint64_t)1 << SEQUENCE_BITS) - 1)

/* The shifts of the fields of `word`. */
#define STREAM_AT SEQUENCE_BITS
#define COST_AT (STREAM_AT + STREAM_BITS)
#define PLACE_AT (COST_AT + 5)
#define NEW_AT (PLACE_AT + 1)

eddy_status eddy_ring_init(eddy_ring *ring) {
    memset(ring, 0, sizeof(*ring));
    ring->lines =
        eddy_memory_acquire_zeroed(EDDY_RING_LINES * sizeof(eddy_record), EDDY_MEMORY_RUNTIME);
    return ring->lines ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

void eddy_ring_fini(eddy_ring *ring) {
    eddy_memory_release(ring->lines, EDDY_RING_LINES * sizeof(eddy_record), EDDY_MEMORY_RUNTIME);
    ring->lines = NULL;
}

/* Marks the line after the record empty. */
static void advance(eddy_ring *ring, uint64_t tail, uint32_t lines) {
    eddy_store_relaxed(&ring->lines[(tail + lines) % EDDY_RING_LINES].ready, 0u);
    eddy_store_relaxed(&ring->tail, tail + lines);
}

eddy_record *eddy_ring_write(eddy_ring *ring, const eddy_instruction *instruction,
                             size_t argument_bytes, uint32_t new_count, uint64_t cost_class,
                             const eddy_storage_number *releases, uint32_t release_count) {
    uint32_t operand_count = instruction->spill ? 0 : instruction->view.operand_count;
    if (instruction->spill)
        new_count = 0;
    uint32_t lines = eddy_record_lines(argument_bytes, new_count, operand_count, release_count);
    EDDY_ASSERT(lines <= EDDY_RECORD_LINES_MAX && release_count <= EDDY_RECORD_RELEASES);
    uint64_t tail = eddy_load_relaxed(&ring->tail);
    uint32_t at = (uint32_t)(tail % EDDY_RING_LINES);
    if (EDDY_UNLIKELY(at + lines > EDDY_RING_LINES)) {
        eddy_record *pad = &ring->lines[at];
        pad->kind_releases = EDDY_KIND_PAD;
        pad->line_count = (uint8_t)(EDDY_RING_LINES - at);
        advance(ring, tail, EDDY_RING_LINES - at);
        eddy_ring_publish(pad, 0);
        tail += EDDY_RING_LINES - at;
        at = 0;
    }
    eddy_record *record = &ring->lines[at];
    uint32_t argument_words = (uint32_t)((argument_bytes + 7) / 8);
    record->kind_releases = (uint8_t)(instruction->kind | release_count << 4);
    record->line_count = (uint8_t)lines;
    record->argument_words = (uint8_t)argument_words;
    record->operand_count = instruction->spill ? EDDY_RECORD_SPILLED : (uint8_t)operand_count;
    record->word = (instruction->view.sequence & SEQUENCE_MASK) |
                   (uint64_t)instruction->stream << STREAM_AT | cost_class << COST_AT |
                   (uint64_t)instruction->place << PLACE_AT | (uint64_t)new_count << NEW_AT;
    record->descriptor = instruction->view.descriptor;
    record->address = instruction->view.address;
    /* Words in loops: the counts are small, and a call of memcpy costs more. */
    uint64_t *words = record->payload;
    const uint64_t *arguments = instruction->view.arguments;
    for (uint32_t i = 0; i < argument_words; i++)
        *words++ = arguments[i];
    for (uint32_t i = 0; i < new_count; i++)
        *words++ = (uint64_t)instruction->sizes[i];
    uint32_t *halves = (uint32_t *)words;
    for (uint32_t i = 0; i < operand_count; i++)
        *halves++ = instruction->mentions[i];
    for (uint32_t i = 0; i < release_count; i++)
        *halves++ = releases[i];
    advance(ring, tail, lines);
    return record;
}

void eddy_ring_read(const eddy_record *record, eddy_instruction *instruction,
                    const eddy_storage_number **releases, uint32_t *release_count) {
    bool has_block = record->operand_count == EDDY_RECORD_SPILLED;
    uint32_t operand_count = has_block ? 0 : record->operand_count;
    uint64_t word = record->word;
    instruction->kind = record->kind_releases & 15;
    uint64_t upper = eddy_load_relaxed(&record->ready) >> 1;
    instruction->view.sequence = (word & SEQUENCE_MASK) | upper << SEQUENCE_BITS;
    instruction->stream = (uint16_t)(word >> STREAM_AT & ((1u << STREAM_BITS) - 1));
    instruction->cost_ns = eddy_record_cost_class_ns(word >> COST_AT & 31);
    instruction->place = (uint8_t)(word >> PLACE_AT & 1);
    instruction->view.descriptor = record->descriptor;
    instruction->view.address = record->address;
    instruction->view.operand_count = operand_count;
    const uint64_t *words = record->payload;
    instruction->view.arguments = words;
    words += record->argument_words;
    instruction->sizes = (const int64_t *)words;
    words += word >> NEW_AT & 7;
    instruction->mentions = (const eddy_mention *)words;
    *releases = (const eddy_storage_number *)words + operand_count;
    *release_count = record->kind_releases >> 4;
    instruction->spill = NULL;
    if (EDDY_UNLIKELY(has_block))
        eddy_spill_open(*(eddy_spill *const *)instruction->view.arguments, instruction);
}
