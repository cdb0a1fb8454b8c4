/* An op within its richer form: max_pool2d computes what max_pool2d_with_indices of the same images computes beside the indices, so that of the two
 * only the richer is left, in the place of the earlier one.
 *
 * Both read one operand, which nobody writes in between, and make results that nobody writes again. They lie between the same two marks. Of
 * two results that are outputs none is left out, since two outputs are two tensors. */
#include <base/memory.h>
#include <kernels/attributes.h>
#include <program/control.h>
#include <program/passes/passes.h>
#include <string.h>

/* Result 0 of `op` has the bits of result `result` of `richer`, whatever the operand holds. tests/program/test_richer.c compares them. */
typedef struct relation {
    const char *op, *richer;
    uint32_t result;
    /* Whether the ops' attributes mean the same; NULL: where they are equal. */
    bool (*agrees)(const void *of_op, const void *of_richer);
} relation;

static bool has_one_axis(const void *of_op, const void *of_richer) {
    const eddy_attributes_reduce *all = of_op;
    const eddy_attributes_axis_keepdim *one = of_richer;
    return all->axes == UINT32_C(1) << one->axis && all->keeps_dims == one->keeps_dims;
}

static const relation relations[] = {
    {"max_pool2d", "max_pool2d_with_indices", 0, NULL},
    {"argsort", "sort", 1, NULL},
    {"argmax", "max_dim", 1, has_one_axis},
    {"argmin", "min_dim", 1, has_one_axis},
};

#define RELATIONS (sizeof(relations) / sizeof(*relations))

/* What an instruction that may be one of two has been given; of others only `is_left_out` is used. */
typedef struct candidate {
    uint32_t version; /* of its operand */
    uint32_t stretch; /* marks before it */
    uint32_t next;    /* 1 + the candidate before it that reads the same value; 0: none */
    bool is_left_out;
} candidate;

typedef struct enriching {
    eddy_code *code;
    const uint32_t *bases;
    const eddy_op *ops[RELATIONS], *richer[RELATIONS];
    candidate *candidates; /* per instruction */
    uint32_t *written;     /* per value: how often instructions write it, in all */
    uint32_t *version;     /* per value: how often they have, so far */
    uint32_t *stands;      /* per value: the one that stands for it */
    uint32_t *last;        /* per value: 1 + the last candidate that reads it; 0: none */
    uint32_t stretch;
} enriching;

static eddy_code_operand *operands_of(const enriching *e,
                                      const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(e->code, instruction->operands_at);
}

/* Whether the instruction is one of the ops above, and does nothing but make new values of one operand. */
static bool is_candidate(const enriching *e, const eddy_code_instruction *instruction) {
    const eddy_code_operand *operands = operands_of(e, instruction);
    bool is_listed = false;
    for (size_t r = 0; r < RELATIONS; r++)
        is_listed |= instruction->op == e->ops[r] || instruction->op == e->richer[r];
    if (!is_listed || instruction->input_count != 1 || instruction->patch_count != 0)
        return false;
    for (uint32_t k = 1; k < instruction->operand_count; k++)
        if (!(operands[k].access & EDDY_CODE_MAKES) || e->written[operands[k].value] != 1)
            return false;
    return true;
}

static bool agree(const enriching *e, const relation *r, const eddy_code_instruction *cheap,
                  const eddy_code_instruction *rich) {
    const void *a = eddy_code_words(e->code, cheap->attributes_at),
               *b = eddy_code_words(e->code, rich->attributes_at);
    if (r->agrees)
        return r->agrees(a, b);
    return cheap->op->attribute_bytes == rich->op->attribute_bytes &&
           memcmp(a, b, cheap->op->attribute_bytes) == 0;
}

/* The result of `rich` that is that of `cheap`, its place among the operands; 0: none is. */
static uint32_t result_of(const enriching *e, const eddy_code_instruction *cheap,
                          const eddy_code_instruction *rich) {
    for (size_t r = 0; r < RELATIONS; r++) {
        uint32_t k = 1 + relations[r].result;
        if (cheap->op == e->ops[r] && rich->op == e->richer[r] && k < rich->operand_count &&
            agree(e, &relations[r], cheap, rich) &&
            eddy_code_has_same_layout(e->code, operands_of(e, cheap), operands_of(e, rich)) &&
            eddy_code_has_same_layout(e->code, operands_of(e, cheap) + 1,
                                      operands_of(e, rich) + k) &&
            eddy_code_is_made_alike(eddy_code_value_at(e->code, operands_of(e, cheap)[1].value),
                                    eddy_code_value_at(e->code, operands_of(e, rich)[k].value)))
            return k;
    }
    return 0;
}

/* The two results are one value from now on, the earlier one unless the later is an output. False if both are. */
static bool join(const enriching *e, const eddy_code_operand *earlier,
                 const eddy_code_operand *later) {
    uint32_t kept = earlier->value, left_out = later->value;
    if (e->bases[left_out] != 0) {
        kept = later->value;
        left_out = earlier->value;
    }
    if (e->bases[left_out] != 0)
        return false;
    e->stands[left_out] = kept;
    return true;
}

/* Whether candidate i computes what the later one does: the richer of the two in the place of the first. */
static bool merge(const enriching *e, uint32_t i, uint32_t later) {
    eddy_code_instruction *kept = eddy_code_instruction_at(e->code, i),
                          *left_out = eddy_code_instruction_at(e->code, later);
    if (e->candidates[i].version != e->candidates[later].version ||
        e->candidates[i].stretch != e->candidates[later].stretch)
        return false;
    uint32_t of_later = result_of(e, kept, left_out), of_kept = result_of(e, left_out, kept);
    if (of_later == 0 && of_kept == 0)
        return false;
    if (!join(e, operands_of(e, kept) + (of_kept ? of_kept : 1),
              operands_of(e, left_out) + (of_later ? of_later : 1)))
        return false;
    if (of_later != 0)
        *kept = *left_out;
    e->candidates[later].is_left_out = true;
    return true;
}

static void rename_operands(const enriching *e, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = operands_of(e, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        while (!eddy_code_operand_is_absent(&operands[k]) &&
               e->stands[operands[k].value] != operands[k].value)
            operands[k].value = e->stands[operands[k].value];
}

static void note_writes(const enriching *e, const eddy_code_instruction *instruction,
                        uint32_t *per_value) {
    const eddy_code_operand *operands = operands_of(e, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES)
            per_value[operands[k].value]++;
}

static void look_at(enriching *e, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(e->code, i);
    rename_operands(e, instruction);
    note_writes(e, instruction, e->version);
    e->stretch += eddy_control_of(instruction->op) != EDDY_CONTROL_NONE;
    if (!is_candidate(e, instruction))
        return;
    uint32_t read = operands_of(e, instruction)->value;
    e->candidates[i].version = e->version[read];
    e->candidates[i].stretch = e->stretch;
    for (uint32_t next = e->last[read]; next != 0; next = e->candidates[next - 1].next)
        if (merge(e, next - 1, i)) {
            rename_operands(e, eddy_code_instruction_at(e->code, next - 1));
            return;
        }
    e->candidates[i].next = e->last[read];
    e->last[read] = 1 + i;
}

static void enrich_all(enriching *e) {
    uint32_t count = e->code->instructions.count, kept = 0;
    for (uint32_t v = 0; v < e->code->values.count; v++)
        e->stands[v] = v;
    for (uint32_t i = 0; i < count; i++)
        note_writes(e, eddy_code_instruction_at(e->code, i), e->written);
    for (uint32_t i = 0; i < count; i++)
        look_at(e, i);
    for (uint32_t i = 0; i < count; i++) {
        if (e->candidates[i].is_left_out)
            continue;
        eddy_code_instruction *instruction = eddy_code_instruction_at(e->code, kept++);
        *instruction = *eddy_code_instruction_at(e->code, i);
        rename_operands(e, instruction);
    }
    e->code->instructions.count = kept;
}

bool eddy_pass_richer(eddy_code *code, const uint32_t *bases) {
    uint32_t values = code->values.count, count = code->instructions.count;
    enriching e = {.code = code, .bases = bases};
    size_t bytes = 4 * (size_t)values * sizeof(uint32_t) + count * sizeof(*e.candidates);
    char *memory = eddy_memory_acquire_zeroed(bytes + sizeof(uint32_t), EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    for (size_t r = 0; r < RELATIONS; r++) {
        e.ops[r] = eddy_op_find_built_in(relations[r].op);
        e.richer[r] = eddy_op_find_built_in(relations[r].richer);
    }
    e.written = (uint32_t *)(void *)memory;
    e.version = e.written + values;
    e.stands = e.version + values;
    e.last = e.stands + values;
    e.candidates = (candidate *)(void *)(e.last + values);
    enrich_all(&e);
    eddy_memory_release(memory, bytes + sizeof(uint32_t), EDDY_MEMORY_PROGRAM);
    return true;
}
