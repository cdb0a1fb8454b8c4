/* The order in which the instructions of each block come in a row. */
#include <program/draw_ops.h>
#include <program/passes/batching.h>

/* Blocks that lie within each other make this long: then the rest of them are none. */
#define WORK_MOST(count) (64 * (uint64_t)(count) + 65536)

/* What touches a value: instructions of the block that is being gathered, and those that come behind it. */
enum { BLOCK_READS = 1, BLOCK_WRITES = 2, LATE_READS = 4, LATE_WRITES = 8 };

static uint8_t *touched_of(const eddy_batching *b, uint32_t i, uint32_t k) {
    eddy_batched_value *value = eddy_batching_value(b, i, k);
    if (value->epoch != b->epoch) {
        value->epoch = b->epoch;
        value->touched = 0;
    }
    return &value->touched;
}

/* Whether instruction i has a value in common with what has touched it so far that one of the two writes. */
static bool meets(const eddy_batching *b, uint32_t i, uint8_t reads, uint8_t writes) {
    for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
        if (!eddy_batching_is_absent(b, i, k) &&
            *touched_of(b, i, k) & (writes | (eddy_batching_writes(b, i, k) ? reads : 0)))
            return true;
    return false;
}

static void touch(const eddy_batching *b, uint32_t i, uint8_t reads, uint8_t writes) {
    for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
        if (!eddy_batching_is_absent(b, i, k))
            *touched_of(b, i, k) |= eddy_batching_writes(b, i, k) ? writes : reads;
}

/* What fails first is to blame; what draws, or needs what was drawn, keeps its order. */
static bool is_ordered(const eddy_batching *b, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_batching_at(b, i);
    return instruction->op->may_fail || instruction->op->is_random || instruction->draw != 0 ||
           instruction->patch_count > 0 || eddy_draw_op_sets(instruction->op);
}

/* Of what stays together: whether it comes behind the block, as it needs what that does, or what comes behind it, or is needed there. */
static bool is_late(const eddy_batching *b, uint32_t from, uint32_t to, bool has_late_ordered) {
    for (uint32_t p = from; p < to; p++)
        if ((has_late_ordered && is_ordered(b, b->order[p])) ||
            meets(b, b->order[p], BLOCK_READS | LATE_READS, BLOCK_WRITES | LATE_WRITES))
            return true;
    return false;
}

static bool needs_late(const eddy_batching *b, uint32_t from, uint32_t to) {
    for (uint32_t p = from; p < to; p++)
        if (meets(b, b->order[p], LATE_READS, LATE_WRITES))
            return true;
    return false;
}

/* Finds which instructions at places [begin, end) are late. False where the block needs some of them. */
static bool find_late(eddy_batching *b, uint32_t block, uint32_t begin, uint32_t end) {
    bool has_late_ordered = false;
    b->epoch++;
    for (uint32_t from = begin, to; from < end; from = to) {
        to = eddy_batching_end(b, from);
        bool is_of_block = eddy_batching_block_of(b, b->order[from]) == block,
             late = !is_of_block && is_late(b, from, to, has_late_ordered);
        if (is_of_block && needs_late(b, from, to))
            return false;
        for (uint32_t p = from; p < to; p++) {
            b->items[b->order[p]].is_late = late;
            has_late_ordered |= late && is_ordered(b, b->order[p]);
            if (is_of_block)
                touch(b, b->order[p], BLOCK_READS, BLOCK_WRITES);
            else if (late)
                touch(b, b->order[p], LATE_READS, LATE_WRITES);
        }
    }
    return true;
}

static uint32_t take(const eddy_batching *b, uint32_t begin, uint32_t end, uint32_t block,
                     bool of_block, bool late, uint32_t to) {
    for (uint32_t p = begin; p < end; p++)
        if ((eddy_batching_block_of(b, b->order[p]) == block) == of_block &&
            b->items[b->order[p]].is_late == late)
            b->gathered[to++] = b->order[p];
    return to;
}

static void put_in_order(const eddy_batching *b, uint32_t place, uint32_t i) {
    b->order[place] = i;
    b->place[i] = place;
}

static bool gather(eddy_batching *b, uint32_t block, uint64_t *work) {
    const eddy_batch_region *of = &b->items[block].region;
    uint32_t begin = UINT32_MAX, end = 0, to;
    for (uint32_t i = of->first, left = of->count; left > 0; i = b->items[i].next, left--) {
        begin = b->place[i] < begin ? b->place[i] : begin;
        end = b->place[i] + 1 > end ? b->place[i] + 1 : end;
    }
    if (end - begin > *work)
        return false;
    *work -= end - begin;
    if (!find_late(b, block, begin, end))
        return false;
    to = take(b, begin, end, block, false, false, begin);
    to = take(b, begin, end, block, true, false, to);
    take(b, begin, end, block, false, true, to);
    for (uint32_t p = begin; p < end; p++)
        put_in_order(b, p, b->gathered[p]);
    return true;
}

void eddy_batching_order(eddy_batching *b) {
    uint64_t work = WORK_MOST(b->count);
    for (uint32_t i = 0; i < b->count; i++)
        put_in_order(b, i, i);
    for (uint32_t i = 0; i < b->count; i++)
        if (b->items[i].region.parts > 0 && !gather(b, i, &work))
            b->items[i].region.parts = 0;
}
