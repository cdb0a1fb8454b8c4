#include <program/passes/batching.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <program/control.h>

static bool has_batch(const eddy_batching *b, uint32_t i) {
    return b->items[i].role != EDDY_BATCH_NONE;
}

/* So often is looked again what is left, where instructions write in place to what others have made: then it is too tangled. */
#define ROUNDS_MOST 16

/* ---- what has a batch ---- */

/* Whether item n of the operand lies within part n of the value's bytes: its items fill them, and none lies beyond. */
static bool is_by_items(const eddy_batching *b, const eddy_code_operand *operand, int8_t dim) {
    if (dim == EDDY_BATCH_NO_DIM)
        return false;
    int64_t items = eddy_code_dims(b->code, operand)[dim],
            stride = eddy_code_strides(b->code, operand)[dim];
    return items > 1 && items * stride * eddy_dtype_size((eddy_dtype)operand->dtype) ==
                            eddy_code_value_at(b->code, operand->value)->bytes;
}

/* Whether parts may be added to the sum, which is made here as a whole. In 16 bits they would lose too much. */
static bool takes_parts(const eddy_batching *b, const eddy_code_operand *sum) {
    return sum->access & EDDY_CODE_MAKES && (sum->dtype == EDDY_F32 || sum->dtype == EDDY_F64) &&
           eddy_code_operand_bytes(b->code, sum) == eddy_code_value_at(b->code, sum->value)->bytes;
}

static bool writes_well(const eddy_batching *b, uint32_t i) {
    for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++) {
        const eddy_code_operand *operand = eddy_batching_operand(b, i, k);
        if (eddy_batching_is_absent(b, i, k) || !eddy_batching_writes(b, i, k))
            continue;
        if (eddy_code_value_at(b->code, operand->value)->kind != EDDY_VALUE_MADE ||
            !(eddy_batching_is_sum(b, i, k) ? takes_parts(b, operand)
                                            : is_by_items(b, operand, eddy_batching_dim(b, i, k))))
            return false;
    }
    return true;
}

static void find_roles(const eddy_batching *b) {
    uint32_t segment = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const eddy_code_instruction *instruction = eddy_batching_at(b, i);
        segment += eddy_control_of(instruction->op) != EDDY_CONTROL_NONE;
        b->items[i] = (eddy_batched_instruction){.of = i, .segment = segment};
        b->items[i].role =
            (uint8_t)eddy_batch_dims_find(b->code, i, b->dims + instruction->operands_at);
        if (has_batch(b, i) && !writes_well(b, i))
            b->items[i].role = EDDY_BATCH_NONE;
    }
}

static void find_stage(const eddy_batching *b, uint32_t i) {
    eddy_batched_instruction *item = &b->items[i];
    uint32_t count = eddy_batching_at(b, i)->operand_count;
    item->stage = 0;
    for (uint32_t k = 0; k < count; k++)
        if (!eddy_batching_is_absent(b, i, k) &&
            eddy_batching_value(b, i, k)->made_in > item->stage)
            item->stage = eddy_batching_value(b, i, k)->made_in;
    for (uint32_t k = 0; k < count; k++)
        if (!eddy_batching_is_absent(b, i, k) && eddy_batching_writes(b, i, k))
            eddy_batching_value(b, i, k)->made_in = item->stage + (item->role != EDDY_BATCH_ITEMS);
}

static void see_use(const eddy_batching *b, uint32_t i, uint32_t k) {
    const eddy_batched_instruction *item = &b->items[i];
    eddy_batched_value *value = eddy_batching_value(b, i, k);
    bool is_of_batch = has_batch(b, i) && !eddy_batching_is_sum(b, i, k);
    value->is_needed |=
        !is_of_batch ||
        !is_by_items(b, eddy_batching_operand(b, i, k), eddy_batching_dim(b, i, k)) ||
        (value->is_used && (value->segment != item->segment || value->stage != item->stage));
    value->is_used = true;
    value->segment = item->segment;
    value->stage = item->stage;
    value->is_written |= is_of_batch && eddy_batching_writes(b, i, k);
}

static void see_uses(const eddy_batching *b) {
    for (uint32_t v = 0; v < b->value_count; v++)
        b->values[v] = (eddy_batched_value){.first = EDDY_CODE_NONE, .is_needed = b->bases[v] != 0};
    for (uint32_t i = 0; i < b->count; i++) {
        find_stage(b, i);
        for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
            if (!eddy_batching_is_absent(b, i, k))
                see_use(b, i, k);
    }
}

/* Whether it writes by items what others need. */
static bool writes_needed(const eddy_batching *b, uint32_t i) {
    for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
        if (!eddy_batching_is_absent(b, i, k) && eddy_batching_writes(b, i, k) &&
            !eddy_batching_is_sum(b, i, k) && eddy_batching_value(b, i, k)->is_needed)
            return true;
    return false;
}

/* Such instructions lose their batch, and need what they read: backwards, since that was made before. Whether there were any. */
static bool drop(const eddy_batching *b) {
    bool has_dropped = false;
    for (uint32_t i = b->count; i-- > 0;) {
        if (!has_batch(b, i) || !writes_needed(b, i))
            continue;
        b->items[i].role = EDDY_BATCH_NONE;
        has_dropped = true;
        for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
            if (!eddy_batching_is_absent(b, i, k))
                eddy_batching_value(b, i, k)->is_needed = true;
    }
    return has_dropped;
}

/* Until all that has a batch hands on what it writes. */
static void settle(const eddy_batching *b) {
    for (int round = 0; round < ROUNDS_MOST; round++) {
        see_uses(b);
        if (!drop(b))
            return;
    }
    for (uint32_t i = 0; i < b->count; i++)
        b->items[i].role = EDDY_BATCH_NONE;
}

/* ---- regions ---- */

static uint32_t first_of(const eddy_batching *b, uint32_t i) {
    while (b->items[i].of != i)
        i = b->items[i].of = b->items[b->items[i].of].of;
    return i;
}

uint32_t eddy_batching_block_of(const eddy_batching *b, uint32_t i) {
    uint32_t first = has_batch(b, i) ? first_of(b, i) : EDDY_CODE_NONE;
    return first != EDDY_CODE_NONE && b->items[first].region.parts > 0 ? first : EDDY_CODE_NONE;
}

uint32_t eddy_batching_end(const eddy_batching *b, uint32_t from) {
    uint32_t block = eddy_batching_block_of(b, b->order[from]), end = from + 1;
    while (block != EDDY_CODE_NONE && end < b->count &&
           eddy_batching_block_of(b, b->order[end]) == block)
        end++;
    return end;
}

/* Instructions that use the same value, which is handed on, are of one region. */
static void find_regions(const eddy_batching *b) {
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t k = 0; has_batch(b, i) && k < eddy_batching_at(b, i)->operand_count; k++) {
            if (eddy_batching_is_absent(b, i, k) ||
                !eddy_batching_is_handed_on(b, eddy_batching_operand(b, i, k)->value))
                continue;
            eddy_batched_value *value = eddy_batching_value(b, i, k);
            if (value->first == EDDY_CODE_NONE)
                value->first = i;
            else
                b->items[first_of(b, i)].of = first_of(b, value->first);
        }
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void count_in(const eddy_batching *b, uint32_t i) {
    eddy_batch_region *of = &b->items[first_of(b, i)].region;
    if (of->count++ == 0)
        of->first = i;
    else
        b->items[of->last].next = i;
    of->last = i;
    of->has_weights |= b->items[i].role == EDDY_BATCH_WEIGHTS;
    for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++) {
        const eddy_code_operand *operand = eddy_batching_operand(b, i, k);
        int8_t dim = eddy_batching_dim(b, i, k);
        if (eddy_batching_is_absent(b, i, k))
            continue;
        if (eddy_batching_is_sum(b, i, k))
            of->sum_bytes += eddy_code_operand_bytes(b->code, operand);
        else if (operand->access & EDDY_CODE_MAKES)
            of->handed_bytes += eddy_code_operand_bytes(b->code, operand);
        if (dim != EDDY_BATCH_NO_DIM)
            of->items = common_divisor(eddy_code_dims(b->code, operand)[dim], of->items);
    }
}

static bool has_parts(int64_t items) {
    for (int64_t parts = 2; parts <= EDDY_SUBBATCHES_MOST && parts <= items; parts++)
        if (items % parts == 0)
            return true;
    return false;
}

/* Half of what is handed on is at least what two sub-batches can win. */
static void find_candidates(const eddy_batching *b) {
    for (uint32_t i = 0; i < b->count; i++)
        if (has_batch(b, i))
            count_in(b, i);
    for (uint32_t i = 0; i < b->count; i++) {
        eddy_batch_region *of = &b->items[i].region;
        of->parts = of->has_weights && has_parts(of->items) &&
                    of->handed_bytes / 2 > of->count * EDDY_BATCHING_INSTRUCTION_BYTES;
    }
}

/* ---- life ---- */

bool eddy_batching_find(eddy_batching *b, eddy_code *code, const uint32_t *bases) {
    *b = (eddy_batching){.code = code,
                         .bases = bases,
                         .value_count = code->values.count,
                         .count = code->instructions.count};
    b->bytes = b->value_count * sizeof(*b->values) +
               b->count * (sizeof(*b->items) + 3 * sizeof(*b->order)) + code->operands.count + 1;
    b->items = eddy_memory_acquire_zeroed(b->bytes, EDDY_MEMORY_PROGRAM);
    if (!b->items)
        return false;
    b->values = (eddy_batched_value *)(b->items + b->count);
    b->order = (uint32_t *)(b->values + b->value_count);
    b->place = b->order + b->count;
    b->gathered = b->place + b->count;
    b->dims = (int8_t *)(b->gathered + b->count);
    find_roles(b);
    settle(b);
    find_regions(b);
    find_candidates(b);
    return true;
}

void eddy_batching_fini(eddy_batching *b) {
    eddy_memory_release(b->items, b->bytes, EDDY_MEMORY_PROGRAM);
    *b = (eddy_batching){0};
}
