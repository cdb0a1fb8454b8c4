/* Common subexpressions, by a table of what has been computed so far (value numbering within one block).
 *
 * An instruction is left out if an earlier one has the same kernel, attributes, and operands that nobody has written in between. Both have made
 * their results, which nobody writes again and of which those that are left out are no outputs, since two outputs are two tensors. */
#include <base/hash.h>
#include <base/memory.h>
#include <program/control.h>
#include <program/draw_ops.h>
#include <program/passes/passes.h>
#include <string.h>

typedef struct numbering {
    eddy_code *code;
    const uint32_t *bases;
    uint32_t *written; /* per value: how often instructions write it, in all */
    uint32_t *version; /* per value: how often they have, so far */
    uint32_t *stands;  /* per value: the one that stands for it */
    uint32_t
        *slots; /* a hash table: 1 + an instruction that is kept; slot_count is a power of two */
    uint32_t slot_count;
    uint64_t
        stretch; /* marks of branches and loops so far, and changes of what was drawn last: beyond one, nothing is known of what was computed before it */
    uint64_t
        *versions; /* per instruction that is in the table: the sum of its inputs' versions then */
    eddy_digest *digests;
} numbering;

static eddy_code_operand *operands_of(const numbering *n,
                                      const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(n->code, instruction->operands_at);
}

/* Versions never fall, so that the sum is the same only where all of them are, within one stretch. */
static uint64_t versions_of(const numbering *n, const eddy_code_instruction *instruction) {
    const eddy_code_operand *operands = operands_of(n, instruction);
    uint64_t sum = n->stretch << 40;
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_READS)
            sum += n->version[operands[k].value];
    return sum;
}

/* Whether the instruction does nothing but make new values, which stay as they are. */
static bool is_pure(const numbering *n, const eddy_code_instruction *instruction) {
    const eddy_code_operand *operands = operands_of(n, instruction);
    if (instruction->op->may_fail)
        return false;
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES &&
            (!(operands[k].access & EDDY_CODE_MAKES) || n->written[operands[k].value] != 1))
            return false;
    return true;
}

/* Arrays without items may have no memory. */
static bool is_equal(const void *a, const void *b, size_t bytes) {
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

/* The same value, or two that are made alike. */
static bool is_same_value(const numbering *n, const eddy_code_operand *x,
                          const eddy_code_operand *y) {
    return x->value == y->value || (x->access & EDDY_CODE_MAKES &&
                                    eddy_code_is_made_alike(eddy_code_value_at(n->code, x->value),
                                                            eddy_code_value_at(n->code, y->value)));
}

static bool is_same_operand(const numbering *n, const eddy_code_operand *x,
                            const eddy_code_operand *y) {
    return x->rank == y->rank && x->dtype == y->dtype && x->access == y->access &&
           x->offset == y->offset && is_same_value(n, x, y) &&
           is_equal(eddy_code_dims(n->code, x), eddy_code_dims(n->code, y),
                    2 * (size_t)x->rank * sizeof(int64_t));
}

static bool is_same(const numbering *n, const eddy_code_instruction *x,
                    const eddy_code_instruction *y) {
    const eddy_code *code = n->code;
    if (x->op != y->op || x->kernel != y->kernel || x->operand_count != y->operand_count ||
        x->input_count != y->input_count || x->patch_count != y->patch_count ||
        x->compute != y->compute ||
        !is_equal(eddy_code_words(code, x->attributes_at), eddy_code_words(code, y->attributes_at),
                  x->op->attribute_bytes) ||
        !is_equal(eddy_code_patch_at(code, x->patches_at), eddy_code_patch_at(code, y->patches_at),
                  x->patch_count * sizeof(eddy_code_patch)))
        return false;
    for (uint32_t k = 0; k < x->operand_count; k++)
        if (!is_same_operand(n, operands_of(n, x) + k, operands_of(n, y) + k))
            return false;
    return true;
}

static uint64_t hash_of(const void *items, size_t bytes) {
    return bytes > 0 ? eddy_hash_64(items, bytes, 0) : 0;
}

/* Of kernel, attributes, patches and operands: what instructions that do not compute the same mostly differ in. */
static eddy_digest digest_of(const numbering *n, const eddy_code_instruction *instruction) {
    uint64_t words[6] = {(uint64_t)(uintptr_t)instruction->kernel, instruction->operand_count};
    const eddy_code_operand *operands = operands_of(n, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        uint64_t value = operands[k].access & EDDY_CODE_MAKES ? 0 : operands[k].value;
        words[2] = words[2] * UINT64_C(0x9e3779b97f4a7c15) + value;
        words[3] = words[3] * UINT64_C(0xc2b2ae3d27d4eb4f) + (uint64_t)operands[k].offset;
    }
    words[4] = hash_of(eddy_code_words(n->code, instruction->attributes_at),
                       instruction->op->attribute_bytes);
    words[5] = hash_of(eddy_code_patch_at(n->code, instruction->patches_at),
                       instruction->patch_count * sizeof(eddy_code_patch));
    return eddy_hash_128(words, sizeof(words));
}

/* The earlier instruction that computes the same, or NULL, and then this one is in the table. */
static const eddy_code_instruction *find(numbering *n, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(n->code, i);
    eddy_digest digest = digest_of(n, instruction);
    uint64_t versions = versions_of(n, instruction);
    uint32_t mask = n->slot_count - 1, at = (uint32_t)digest.low & mask;
    for (; n->slots[at] != 0; at = (at + 1) & mask) {
        uint32_t other = n->slots[at] - 1;
        const eddy_code_instruction *earlier = eddy_code_instruction_at(n->code, other);
        if (n->digests[other].low != digest.low || n->digests[other].high != digest.high ||
            !is_same(n, earlier, instruction))
            continue;
        if (n->versions[other] == versions)
            return earlier;
        break; /* it is out of date: this one takes its place */
    }
    n->slots[at] = i + 1;
    n->digests[i] = digest;
    n->versions[i] = versions;
    return NULL;
}

static bool has_output(const numbering *n, const eddy_code_instruction *instruction) {
    const eddy_code_operand *operands = operands_of(n, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES && n->bases[operands[k].value] != 0)
            return true;
    return false;
}

static void replace(const numbering *n, const eddy_code_instruction *left_out,
                    const eddy_code_instruction *kept) {
    for (uint32_t k = 0; k < kept->operand_count; k++)
        if (operands_of(n, kept)[k].access & EDDY_CODE_MAKES)
            n->stands[operands_of(n, left_out)[k].value] = operands_of(n, kept)[k].value;
}

static void note_writes(const numbering *n, const eddy_code_instruction *instruction,
                        uint32_t *per_value) {
    const eddy_code_operand *operands = operands_of(n, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES)
            per_value[operands[k].value]++;
}

static void number_all(numbering *n) {
    eddy_code *code = n->code;
    uint32_t count = code->instructions.count, kept = 0;
    for (uint32_t v = 0; v < code->values.count; v++)
        n->stands[v] = v;
    for (uint32_t i = 0; i < count; i++)
        note_writes(n, eddy_code_instruction_at(code, i), n->written);
    for (uint32_t i = 0; i < count; i++) {
        eddy_code_instruction *instruction = eddy_code_instruction_at(code, kept);
        *instruction = *eddy_code_instruction_at(code, i);
        eddy_code_operand *operands = operands_of(n, instruction);
        for (uint32_t k = 0; k < instruction->operand_count; k++)
            if (!eddy_code_operand_is_absent(&operands[k]))
                operands[k].value = n->stands[operands[k].value];
        const eddy_code_instruction *earlier = NULL;
        if (is_pure(n, instruction) && !has_output(n, instruction))
            earlier = find(n, kept);
        if (earlier) {
            replace(n, instruction, earlier);
            continue;
        }
        note_writes(n, instruction, n->version);
        n->stretch += eddy_control_of(instruction->op) != EDDY_CONTROL_NONE ||
                      eddy_draw_op_changes_words(code, instruction);
        kept++;
    }
    code->instructions.count = kept;
}

bool eddy_pass_same(eddy_code *code, const uint32_t *bases) {
    uint32_t values = code->values.count, count = code->instructions.count;
    numbering n = {.code = code, .bases = bases, .slot_count = 16};
    while (n.slot_count < 2 * (uint64_t)count)
        n.slot_count *= 2;
    size_t bytes = (3 * (size_t)values + n.slot_count) * sizeof(uint32_t) +
                   count * (sizeof(*n.versions) + sizeof(*n.digests));
    char *memory = eddy_memory_acquire_zeroed(bytes + sizeof(*n.digests), EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    n.digests = (eddy_digest *)(void *)memory;
    n.versions = (uint64_t *)(void *)(n.digests + count);
    n.slots = (uint32_t *)(void *)(n.versions + count);
    n.written = n.slots + n.slot_count;
    n.version = n.written + values;
    n.stands = n.version + values;
    number_all(&n);
    eddy_memory_release(memory, bytes + sizeof(*n.digests), EDDY_MEMORY_PROGRAM);
    return true;
}
