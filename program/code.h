/* The code of a program: what a recording has seen, as plain data.
 *
 * A value is a storage. An operand is a value with a layout and a dtype, so that views are operands of the value that they view; dims are
 * those of the call, before those of elementwise ops are merged. Instructions are in the order in which they were submitted, which is
 * an order in which they may run; passes may leave some out and move others. Attributes are as inference left them.
 *
 * Code is made by one thread, grows at its end, and does not change once it belongs to a program: a pass makes new code. */
#ifndef EDDY_PROGRAM_CODE_H
#define EDDY_PROGRAM_CODE_H

#include <base/assert.h>
#include <base/shape.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a value comes from, and what may happen to it. */
typedef enum eddy_value_kind {
    EDDY_VALUE_MADE,     /* by an instruction; gone after the run, unless it is an output */
    EDDY_VALUE_INPUT,    /* fed at each run */
    EDDY_VALUE_STATE,    /* a tensor that was there before, under a name; may be fed */
    EDDY_VALUE_CONSTANT, /* the same, declared never to change */
    EDDY_VALUE_CAPTURED, /* a tensor that was there before and was not declared */
} eddy_value_kind;

#define EDDY_CODE_NONE UINT32_MAX

typedef struct eddy_code_value {
    int64_t bytes;   /* of the storage */
    uint8_t kind;    /* eddy_value_kind */
    bool is_written; /* by an instruction */
    bool is_in_tile; /* it lives within a group alone, and has no memory but a slot of its tile */
    bool
        is_donated; /* an input that nobody reads behind the run: what is last used may be overwritten */
    bool is_late; /* its shape depends on data: it is made behind a run (late_calls.h) */
    bool
        is_turned; /* channels-last, which was row-major: so its text still says (passes/layout.c) */
    /* Where its memory is; all zero: on the CPU. */
    int8_t device_kind, device_index;
    /* 1 + the value whose memory it takes over, where that is last used, and which shares none itself; 0: none. */
    uint32_t shares;
} eddy_code_value;

/* Bits of an operand's access. */
#define EDDY_CODE_READS 1u
#define EDDY_CODE_WRITES 2u
#define EDDY_CODE_COVERS                                                                           \
    4u /* writes all of the storage and reads none of it: an error there is healed */
#define EDDY_CODE_MAKES 8u /* the value begins here */
/* With READS and WRITES: writes all of an input. A run may be given a part of a larger storage; where it is given all of one, an error there is
 * healed as by COVERS. */
#define EDDY_CODE_COVERS_INPUT 16u

/* With READS and WRITES: all of the storage, and what the instruction reads of it are the same elements. It is an error's as what COVERS is,
 * but for errors that were there before, which it reads. */
#define EDDY_CODE_REPLACES 32u

typedef struct eddy_code_operand {
    int64_t offset;    /* elements */
    uint32_t value;    /* EDDY_CODE_NONE: an optional operand that is absent */
    uint32_t words_at; /* dims, then strides */
    int8_t rank;
    uint8_t dtype;
    uint8_t access;
} eddy_code_operand;

/* A seed and a counter that a run takes from a generator: words 2 i and 2 i + 1 of the run, for draw i. It takes them when it is made, unless there
 * are draws in branches or loops (late_draws.h). */
typedef struct eddy_code_draw {
    uint32_t generator; /* index among the program's; EDDY_CODE_NONE: the running thread's own */
} eddy_code_draw;

/* A use of a number that is given at each run, converted as the attribute wants it: two words of the run, behind those of the draws. */
typedef struct eddy_code_scalar {
    uint32_t number;    /* index among the scalars given */
    uint8_t dtype;      /* that it is converted to */
    bool is_double;     /* the attribute is a plain double: the first word */
    bool wraps;         /* an integer that the dtype does not hold wraps around */
    uint32_t attribute; /* of the op, for messages */
    const eddy_op *op;
} eddy_code_scalar;

/* Words of an instruction's attributes that a run fills in. */
typedef struct eddy_code_patch {
    uint32_t to;     /* word of the attributes */
    uint32_t draw;   /* 1 + index, with `from` 0 for the seed and 1 for the counter; 0: a scalar */
    uint32_t scalar; /* index of the use, with `from` 0 and 1 */
    uint32_t from;
} eddy_code_patch;

typedef struct eddy_code_instruction {
    const eddy_op *op;
    const eddy_kernel *kernel;
    const void *address; /* of the recorded call */
    uint32_t operands_at, operand_count;
    uint32_t input_count;   /* operands before the outputs */
    uint32_t attributes_at; /* words; the op's whole struct */
    uint32_t patches_at, patch_count;
    uint32_t draw; /* whose seed and counter it takes: 1 + index; 0: none, or constants */
    uint32_t
        ordinal; /* its number among the recorded calls, some of which passes may have dropped */
    uint32_t source; /* its index in the code that a build began with (build_cache.h) */
    uint8_t compute; /* eddy_dtype */
} eddy_code_instruction;

/* Consecutive instructions that run tile by tile (fused.h). */
typedef struct eddy_code_group {
    uint32_t first, count; /* instructions */
    bool is_chain;         /* all of them are one loop (superinstruction.h) */
} eddy_code_group;

/* An array that grows. */
typedef struct eddy_code_array {
    void *items;
    uint32_t count, capacity;
} eddy_code_array;

typedef struct eddy_code {
    eddy_code_array values;       /* eddy_code_value */
    eddy_code_array operands;     /* eddy_code_operand */
    eddy_code_array instructions; /* eddy_code_instruction */
    eddy_code_array words;        /* int64_t: dims, strides, attributes */
    eddy_code_array draws;        /* eddy_code_draw */
    eddy_code_array scalars;      /* eddy_code_scalar */
    eddy_code_array patches;      /* eddy_code_patch, those of an instruction in a row */
    eddy_code_array groups;       /* eddy_code_group, in the order of their instructions */
    eddy_code_array late_calls;   /* eddy_code_instruction: issued behind a run (late_calls.h) */
    uint32_t recorded_count;      /* calls that were recorded: ordinals are less */
    /* Each draw is taken when its instruction runs (late_draws.h): once the program is built. */
    bool draws_late;
    bool sets_draws; /* instructions change what was drawn last (draw_ops.h): once it is built */
    bool
        has_rounds; /* devices with kernels of their own run it in rounds (rounds.h), where they could run it call by call */
    bool is_cut;    /* into partitions (cut.h), which may be one: while it is built */
} eddy_code;

/* ---- reading ---- */

static inline eddy_code_value *eddy_code_value_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_value *)code->values.items + i;
}
static inline eddy_code_operand *eddy_code_operand_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_operand *)code->operands.items + i;
}
static inline eddy_code_instruction *eddy_code_instruction_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_instruction *)code->instructions.items + i;
}
/* The instructions, and behind them the calls that are issued behind a run, which are instructions too until the program is built. */
static inline eddy_code_instruction *eddy_code_call_at(const eddy_code *code, uint32_t i) {
    return i < code->instructions.count
               ? eddy_code_instruction_at(code, i)
               : (eddy_code_instruction *)code->late_calls.items + (i - code->instructions.count);
}
static inline uint32_t eddy_code_call_count(const eddy_code *code) {
    return code->instructions.count + code->late_calls.count;
}
static inline eddy_code_draw *eddy_code_draw_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_draw *)code->draws.items + i;
}
static inline eddy_code_scalar *eddy_code_scalar_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_scalar *)code->scalars.items + i;
}
static inline eddy_code_patch *eddy_code_patch_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_patch *)code->patches.items + i;
}
static inline eddy_code_group *eddy_code_group_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_group *)code->groups.items + i;
}
/* The word of a run that a patch copies, and the number of all. */
static inline uint32_t eddy_code_run_word(const eddy_code *code, const eddy_code_patch *patch) {
    return (patch->draw ? 2 * (patch->draw - 1) : 2 * (code->draws.count + patch->scalar)) +
           patch->from;
}
static inline uint32_t eddy_code_run_words(const eddy_code *code) {
    return 2 * (code->draws.count + code->scalars.count);
}
static inline int64_t *eddy_code_words(const eddy_code *code, uint32_t at) {
    return (int64_t *)code->words.items + at;
}
static inline const int64_t *eddy_code_dims(const eddy_code *code,
                                            const eddy_code_operand *operand) {
    return eddy_code_words(code, operand->words_at);
}
static inline const int64_t *eddy_code_strides(const eddy_code *code,
                                               const eddy_code_operand *operand) {
    return eddy_code_words(code, operand->words_at) + operand->rank;
}
/* The value whose memory the value has. */
static inline uint32_t eddy_code_holder_of(const eddy_code *code, uint32_t value) {
    uint32_t shares = eddy_code_value_at(code, value)->shares;
    return shares != 0 ? shares - 1 : value;
}
static inline bool eddy_code_operand_is_absent(const eddy_code_operand *operand) {
    return operand->value == EDDY_CODE_NONE;
}
/* Bytes of the elements that the operand has. */
int64_t eddy_code_operand_bytes(const eddy_code *code, const eddy_code_operand *operand);
/* 1 + the draw that is taken when the instruction runs; 0: none. */
static inline uint32_t eddy_code_late_draw(const eddy_code *code,
                                           const eddy_code_instruction *instruction) {
    return code->draws_late && instruction->op->is_random ? instruction->draw : 0;
}
/* The words of its attributes that a draw fills in. Of an op that draws they are the first two. */
static inline uint32_t eddy_code_seed_word(const eddy_op *op) {
    return op->redraws ? (uint32_t)(op->attributes[op->redraws - 1].offset / sizeof(int64_t)) : 0;
}
static inline uint32_t eddy_code_counter_word(const eddy_op *op) {
    return op->redraws ? (uint32_t)(op->attributes[op->redraws].offset / sizeof(int64_t)) : 1;
}
static inline eddy_device eddy_code_value_device(const eddy_code_value *value) {
    return value->device_kind == 0
               ? EDDY_CPU
               : (eddy_device){(eddy_device_kind)value->device_kind, value->device_index};
}
static inline void eddy_code_value_set_device(eddy_code_value *value, eddy_device device) {
    bool is_cpu = device.kind == EDDY_DEVICE_CPU;
    value->device_kind = is_cpu ? 0 : (int8_t)device.kind;
    value->device_index = is_cpu ? 0 : (int8_t)device.index;
}
static inline bool eddy_code_has_same_device(const eddy_code_value *a, const eddy_code_value *b) {
    return a->device_kind == b->device_kind && a->device_index == b->device_index;
}
/* Whether values that are made alike are the same, in their text, too. */
static inline bool eddy_code_is_made_alike(const eddy_code_value *a, const eddy_code_value *b) {
    return a->is_turned == b->is_turned && eddy_code_has_same_device(a, b);
}
/* Where the instruction runs: where its last operand is. A mark without one runs anywhere: on the CPU. */
eddy_device eddy_code_instruction_device(const eddy_code *code,
                                         const eddy_code_instruction *instruction);
/* Whether all its operands are on one device. */
bool eddy_code_is_on_one_device(const eddy_code *code, const eddy_code_instruction *instruction);
void eddy_code_operand_layout(const eddy_code *code, const eddy_code_operand *operand,
                              eddy_layout *layout);

/* Whether an operand of the instruction is a donated input. */
bool eddy_code_reads_donated(const eddy_code *code, const eddy_code_instruction *instruction);

/* Whether the operands have one dtype, shape, strides and offset. */
bool eddy_code_has_same_layout(const eddy_code *code, const eddy_code_operand *x,
                               const eddy_code_operand *y);

/* ---- making; false without memory: what was added before stays ---- */

/* Room for `count` more items at the end, whose contents are undefined; their first index in *first. */
EDDY_MUST_USE bool eddy_code_array_add(eddy_code_array *array, size_t item_bytes, uint32_t count,
                                       uint32_t *first);
/* Releases the items; the array is empty then. */
void eddy_code_array_fini(eddy_code_array *array, size_t item_bytes);
/* The bytes that its arrays take. */
int64_t eddy_code_bytes(const eddy_code *code);
/* A copy of all arrays, to be ended as any code. */
EDDY_MUST_USE bool eddy_code_copy(eddy_code *to, const eddy_code *from);
EDDY_MUST_USE bool eddy_code_add_value(eddy_code *code, const eddy_code_value *value,
                                       uint32_t *index);
/* At the end of the operands: those of an instruction, which is added after them. */
EDDY_MUST_USE bool eddy_code_add_operand(eddy_code *code, const eddy_code_operand *operand,
                                         const eddy_layout *layout);
EDDY_MUST_USE bool eddy_code_add_words(eddy_code *code, const void *bytes, size_t count,
                                       uint32_t *at);
EDDY_MUST_USE bool eddy_code_add_instruction(eddy_code *code,
                                             const eddy_code_instruction *instruction,
                                             uint32_t *index);
EDDY_MUST_USE bool eddy_code_add_draw(eddy_code *code, const eddy_code_draw *draw, uint32_t *index);
EDDY_MUST_USE bool eddy_code_add_scalar(eddy_code *code, const eddy_code_scalar *scalar,
                                        uint32_t *index);
/* At the end of the patches: of the instruction that is added next. */
EDDY_MUST_USE bool eddy_code_add_patch(eddy_code *code, const eddy_code_patch *patch);

/* Clears what attributes hold beyond their values: dims beyond a shape's rank mean nothing and may be anything, and words are
 * compared. */
void eddy_code_clear_gaps(const eddy_op *op, void *attributes);

/* Makes of zeroed code a part: instructions first .. end - 1, with all values under their numbers, and the first draws and scalars. False without
 * memory: eddy_code_fini. */
EDDY_MUST_USE bool eddy_code_copy_part(eddy_code *part, const eddy_code *code, uint32_t first,
                                       uint32_t end, uint32_t draw_count, uint32_t scalar_count);

/* The first instruction from `first` on that writes the value; NULL: none does. */
const eddy_code_instruction *eddy_code_find_writer(const eddy_code *code, uint32_t first,
                                                   uint32_t value);

/* Whether two pieces of code are the same, word for word. *difference: the first instruction that differs, where one does. */
bool eddy_code_is_equal(const eddy_code *a, const eddy_code *b, uint32_t *difference);

/* Whether they draw from the same generators, and use the same numbers of a run. */
bool eddy_code_has_same_uses(const eddy_code *a, const eddy_code *b);

/* Frees the arrays; zeroed code is allowed. */
void eddy_code_fini(eddy_code *code);

#endif
