#include <program/build_key.h>

#include <base/memory.h>
#include <string.h>

/* Words are counted first, and then written. */
typedef struct key_writer {
    uint64_t *words; /* NULL: counts only */
    size_t count;
} key_writer;

static void add(key_writer *w, uint64_t word) {
    if (w->words)
        w->words[w->count] = word;
    w->count++;
}

static void add_pair(key_writer *w, uint32_t high, uint32_t low) {
    add(w, (uint64_t)high << 32 | low);
}

static void add_words(key_writer *w, const int64_t *words, size_t count) {
    if (w->words && count > 0)
        memcpy(w->words + w->count, words, count * sizeof(*words));
    w->count += count;
}

static void add_values(key_writer *w, const eddy_code *code, const uint32_t *bases) {
    for (uint32_t v = 0; v < code->values.count; v++) {
        const eddy_code_value *value = eddy_code_value_at(code, v);
        add(w, (uint64_t)value->bytes);
        add_pair(w, bases[v],
                 (uint32_t)(uint8_t)value->device_kind << 24 |
                     (uint32_t)(uint8_t)value->device_index << 16 | (uint32_t)value->kind << 3 |
                     (uint32_t)value->is_turned << 2 | (uint32_t)value->is_donated << 1 |
                     value->is_written);
    }
}

/* Values that bindings name stay, whether instructions use them or not. */
static void add_bound(key_writer *w, const eddy_program *program) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        add_pair(w, binding->value, binding->role);
    }
}

static void add_operand(key_writer *w, const eddy_code *code, const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand)) {
        add_pair(w, operand->value, operand->access);
        return;
    }
    add_pair(w, operand->value,
             (uint32_t)operand->access << 16 | (uint32_t)operand->dtype << 8 |
                 (uint8_t)operand->rank);
    add(w, (uint64_t)operand->offset);
    add_words(w, eddy_code_dims(code, operand), 2 * (size_t)operand->rank);
}

static void add_instruction(key_writer *w, const eddy_code *code,
                            const eddy_code_instruction *instruction) {
    size_t attribute_words =
        (instruction->op->attribute_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    add(w, (uint64_t)(uintptr_t)instruction->op);
    add(w, (uint64_t)(uintptr_t)instruction->kernel);
    add_pair(w, instruction->operand_count, instruction->input_count);
    add_pair(w, instruction->draw, instruction->ordinal);
    add_pair(w, instruction->patch_count, instruction->compute);
    add_words(w, eddy_code_words(code, instruction->attributes_at), attribute_words);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        add_operand(w, code, eddy_code_operand_at(code, instruction->operands_at + k));
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code, instruction->patches_at + k);
        add_pair(w, patch->to, patch->draw);
        add_pair(w, patch->scalar, patch->from);
    }
}

static void add_uses(key_writer *w, const eddy_code *code) {
    for (uint32_t i = 0; i < code->draws.count; i++)
        add(w, eddy_code_draw_at(code, i)->generator);
    for (uint32_t i = 0; i < code->scalars.count; i++) {
        const eddy_code_scalar *use = eddy_code_scalar_at(code, i);
        add(w, (uint64_t)(uintptr_t)use->op);
        add_pair(w, use->number, use->attribute);
        add_pair(w, use->dtype, (uint32_t)use->is_double << 1 | use->wraps);
    }
}

static void add_all(key_writer *w, const eddy_program *program, const uint32_t *bases,
                    uint32_t passes) {
    const eddy_code *code = &program->code;
    add_pair(w, passes, code->recorded_count);
    add_pair(w, code->values.count, program->bindings.count);
    add_pair(w, code->instructions.count, program->externals.count);
    add_pair(w, code->draws.count, code->scalars.count);
    add_values(w, code, bases);
    add_bound(w, program);
    for (uint32_t i = 0; i < code->instructions.count; i++)
        add_instruction(w, code, eddy_code_instruction_at(code, i));
    add_uses(w, code);
}

static bool has_registered(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_code_instruction_at(code, i)->op->is_registered)
            return true;
    return false;
}

bool eddy_build_key_make(eddy_build_key *key, const eddy_program *program, const uint32_t *bases,
                         uint32_t passes) {
    key_writer w = {0};
    *key = (eddy_build_key){0};
    if (has_registered(&program->code))
        return false;
    add_all(&w, program, bases, passes);
    w.words = eddy_memory_acquire(w.count * sizeof(*w.words), EDDY_MEMORY_PROGRAM);
    if (!w.words)
        return false;
    *key = (eddy_build_key){.words = w.words, .count = w.count};
    w.count = 0;
    add_all(&w, program, bases, passes);
    key->digest = eddy_hash_128(key->words, eddy_build_key_bytes(key));
    return true;
}

bool eddy_build_key_is_equal(const eddy_build_key *a, const eddy_build_key *b) {
    return a->digest.low == b->digest.low && a->digest.high == b->digest.high &&
           a->count == b->count && memcmp(a->words, b->words, eddy_build_key_bytes(a)) == 0;
}

void eddy_build_key_fini(eddy_build_key *key) {
    eddy_memory_release(key->words, eddy_build_key_bytes(key), EDDY_MEMORY_PROGRAM);
    *key = (eddy_build_key){0};
}
