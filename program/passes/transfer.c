/* Copies between devices.
 *
 * What was copied to a device and comes back to the one that it came from is the operand of the first copy, and one that goes on to a third device is copied from there,
 * where nobody writes the operand, or either copy, from the first copy on. A copy that nobody uses then is dead code (dead.c); of two equal ones the pass `same` leaves one. */
#include <base/memory.h>
#include <interpreter/host/transfer.h>
#include <program/passes/passes.h>

/* The value that stands for another one, and what is added to offsets then. */
typedef struct stand {
    int64_t offset;
    uint32_t value;
} stand;

typedef struct shortening {
    eddy_code *code;
    const uint32_t *bases;
    stand *stands;     /* per value */
    uint32_t *written; /* per value: how often instructions write it, in all */
    uint32_t *version; /* per value: how often they have, so far */
    uint32_t *maker;   /* per value: 1 + the copy that makes it; 0: none does */
    uint32_t *seen;    /* per value that a copy makes: the version of what it was copied from */
} shortening;

static eddy_code_operand *operands_of(const shortening *s,
                                      const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(s->code, instruction->operands_at);
}

static const eddy_code_value *value_at(const shortening *s, uint32_t value) {
    return eddy_code_value_at(s->code, value);
}

/* The operand that has the elements of `copied`, and which first one of them it has: that of the copy which made it, as long as both stay as they were. NULL: there is none. */
static const eddy_code_operand *source_of(const shortening *s, const eddy_code_operand *copied) {
    uint32_t maker = s->maker[copied->value];
    if (maker == 0 || s->written[copied->value] != 1)
        return NULL;
    const eddy_code_operand *source = operands_of(s, eddy_code_instruction_at(s->code, maker - 1));
    return s->seen[copied->value] == s->written[source->value] ? source : NULL;
}

/* Whether the copy is left out: its result is where its operand's elements came from. Else it may become one of those. */
static bool is_left_out(const shortening *s, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = operands_of(s, instruction);
    const eddy_code_operand *source = source_of(s, &operands[0]);
    if (!source)
        return false;
    int64_t first = source->offset + operands[0].offset;
    uint32_t from = source->value, to = operands[1].value;
    if (!eddy_code_has_same_device(value_at(s, from), value_at(s, to))) {
        operands[0].offset = first;
        operands[0].value = from;
        return false;
    }
    if (s->bases[to] != 0 || s->written[to] != 1)
        return false;
    s->stands[to] = (stand){first, from};
    return true;
}

static void rename_operands(const shortening *s, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = operands_of(s, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        if (eddy_code_operand_is_absent(&operands[k]))
            continue;
        operands[k].offset += s->stands[operands[k].value].offset;
        operands[k].value = s->stands[operands[k].value].value;
    }
}

static void note_writes(const shortening *s, const eddy_code_instruction *instruction,
                        uint32_t *per_value) {
    const eddy_code_operand *operands = operands_of(s, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES)
            per_value[operands[k].value]++;
}

static void note_copy(const shortening *s, uint32_t i) {
    const eddy_code_operand *operands = operands_of(s, eddy_code_instruction_at(s->code, i));
    s->maker[operands[1].value] = 1 + i;
    s->seen[operands[1].value] = s->version[operands[0].value];
}

static void shorten_all(const shortening *s) {
    uint32_t count = s->code->instructions.count, kept = 0;
    for (uint32_t v = 0; v < s->code->values.count; v++)
        s->stands[v] = (stand){0, v};
    for (uint32_t i = 0; i < count; i++)
        note_writes(s, eddy_code_instruction_at(s->code, i), s->written);
    for (uint32_t i = 0; i < count; i++) {
        eddy_code_instruction *instruction = eddy_code_instruction_at(s->code, kept);
        *instruction = *eddy_code_instruction_at(s->code, i);
        rename_operands(s, instruction);
        bool is_copy = instruction->op == &eddy_transfer_op;
        if (is_copy && is_left_out(s, instruction))
            continue;
        note_writes(s, instruction, s->version);
        if (is_copy)
            note_copy(s, kept);
        kept++;
    }
    s->code->instructions.count = kept;
}

static bool has_copies(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_code_instruction_at(code, i)->op == &eddy_transfer_op)
            return true;
    return false;
}

bool eddy_pass_transfer(eddy_code *code, const uint32_t *bases) {
    uint32_t values = code->values.count;
    if (!has_copies(code))
        return true;
    shortening s = {.code = code, .bases = bases};
    size_t bytes = values * (sizeof(*s.stands) + 4 * sizeof(uint32_t));
    s.stands = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!s.stands)
        return false;
    s.written = (uint32_t *)(void *)(s.stands + values);
    s.version = s.written + values;
    s.maker = s.version + values;
    s.seen = s.maker + values;
    shorten_all(&s);
    eddy_memory_release(s.stands, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
