/* Which instructions of a program may be done for a few items of a batch at a time, and in which order.
 *
 * A region is instructions with a batch (batch_dims.h) that hand values on to each other which nobody else uses: all that they write is handed on so, or is a
 * sum over all items. They have one stage, so that none of them needs what comes of all items, as the gradient of a loss does. In these
 * values the batch is the outermost dim, so that some of the items are a part of the bytes.
 *
 * A block is a region whose instructions come in a row. Others that lie between them come before the block, or behind it where they need what it does. */
#ifndef EDDY_PROGRAM_PASSES_BATCHING_H
#define EDDY_PROGRAM_PASSES_BATCHING_H

#include <program/passes/batch_dims.h>

/* Each sub-batch packs weights, and adds up gradients, once more. */
#define EDDY_SUBBATCHES_MOST 64
/* What an instruction takes of a program, about. */
#define EDDY_BATCHING_INSTRUCTION_BYTES INT64_C(1024)

typedef struct eddy_batched_value {
    uint32_t first;          /* instruction of a region that uses it; EDDY_CODE_NONE: none so far */
    uint32_t segment, stage; /* of those that use it */
    uint32_t made_in;        /* the stage of those that read it next, at least */
    uint32_t begins, ends;   /* places of the order, and where it ends, the one behind */
    uint32_t part;           /* the value that stands for it in a sub-batch (subbatch.c) */
    uint32_t epoch;          /* when it was touched */
    uint8_t touched;         /* batching_order.c */
    bool is_used;
    bool is_written; /* item by item, by instructions with a batch */
    bool is_needed;  /* by others, or otherwise than by items */
} eddy_batched_value;

/* Of the instructions of a region; one of them has these numbers. */
typedef struct eddy_batch_region {
    int64_t handed_bytes; /* of values that are handed on */
    int64_t sum_bytes;    /* of the sums that it writes */
    int64_t items;        /* what the number of sub-batches divides; 0: nothing so far */
    uint32_t count;       /* instructions, from `first` on by their `next` */
    uint32_t first, last;
    uint32_t parts; /* sub-batches that it is done in; 0: it is no block */
    bool has_weights;
} eddy_batch_region;

typedef struct eddy_batched_instruction {
    eddy_batch_region region;
    uint32_t of;      /* instruction: a step towards the one that has the region's numbers */
    uint32_t next;    /* of its region */
    uint32_t segment; /* marks before it */
    uint32_t stage;   /* instructions without a batch, and sums, on the way to it, at most */
    uint8_t role;     /* eddy_batch_role */
    bool is_late;     /* it comes behind the block that is being gathered */
} eddy_batched_instruction;

typedef struct eddy_batching {
    eddy_code *code;
    const uint32_t *bases;
    eddy_batched_value *values;      /* per value of the code */
    eddy_batched_instruction *items; /* per instruction */
    uint32_t *order;                 /* per place: instruction, those of a block in a row */
    uint32_t *place;                 /* per instruction */
    uint32_t *gathered;              /* room for as many */
    int8_t *dims;                    /* per operand */
    uint32_t value_count, count, epoch;
    size_t bytes; /* of all of these */
} eddy_batching;

/* ---- reading ---- */

static inline const eddy_code_instruction *eddy_batching_at(const eddy_batching *b, uint32_t i) {
    return eddy_code_instruction_at(b->code, i);
}
static inline const eddy_code_operand *eddy_batching_operand(const eddy_batching *b, uint32_t i,
                                                             uint32_t k) {
    return eddy_code_operand_at(b->code, eddy_batching_at(b, i)->operands_at + k);
}
static inline bool eddy_batching_is_absent(const eddy_batching *b, uint32_t i, uint32_t k) {
    return eddy_code_operand_is_absent(eddy_batching_operand(b, i, k));
}
static inline eddy_batched_value *eddy_batching_value(const eddy_batching *b, uint32_t i,
                                                      uint32_t k) {
    return &b->values[eddy_batching_operand(b, i, k)->value];
}
static inline int8_t eddy_batching_dim(const eddy_batching *b, uint32_t i, uint32_t k) {
    return b->dims[eddy_batching_at(b, i)->operands_at + k];
}
static inline bool eddy_batching_writes(const eddy_batching *b, uint32_t i, uint32_t k) {
    return eddy_batching_operand(b, i, k)->access & EDDY_CODE_WRITES;
}
/* Whether the operand is the sum over all items that its instruction writes. */
static inline bool eddy_batching_is_sum(const eddy_batching *b, uint32_t i, uint32_t k) {
    return b->items[i].role >= EDDY_BATCH_SUMS && eddy_batching_writes(b, i, k);
}
static inline bool eddy_batching_is_handed_on(const eddy_batching *b, uint32_t value) {
    return b->values[value].is_written && !b->values[value].is_needed;
}
/* The instruction that has the numbers of instruction i's block; EDDY_CODE_NONE: it is in none. */
uint32_t eddy_batching_block_of(const eddy_batching *b, uint32_t i);
/* The instructions at places [from, end) stay together: those of one block, or one. */
uint32_t eddy_batching_end(const eddy_batching *b, uint32_t from);

/* ---- finding ---- */

/* Finds the regions that lead to gradients of weights: those that may pay as blocks have parts = 1. False without memory. */
EDDY_MUST_USE bool eddy_batching_find(eddy_batching *b, eddy_code *code, const uint32_t *bases);
void eddy_batching_fini(eddy_batching *b);

/* Puts the instructions in the order of their blocks. A region that is in no order a block has parts = 0 then. */
void eddy_batching_order(eddy_batching *b);

/* Says how many sub-batches each block is done in, and orders the instructions for that: as few as bring down the memory that is alive at once. Where that
 * wins nothing there is no block, and parts = 0. False without memory. */
EDDY_MUST_USE bool eddy_batching_plan(eddy_batching *b);

#endif
