/* In how many sub-batches each block is done: as few as bring the bytes that are alive at once in it down to what is alive elsewhere, as far as each more wins
 * more than its instructions take.
 *
 * Alive is a value from the instruction that makes it to the last that uses it; an elementwise op may write into what it uses last. Workspaces do not count. Of what blocks hand on
 * a sub-batch has its share alone. */
#include <base/memory.h>
#include <program/passes/batching.h>
#include <string.h>

/* Less than that share of what is alive is not worth it. */
#define SHARE 16

typedef struct living {
    eddy_batching *b;
    int64_t *alive;  /* per place, but for what is handed on */
    int64_t *handed; /* per place, what is */
    int64_t goal;    /* bytes that are alive anyway, at most */
} living;

static bool lives_within(const living *l, uint32_t value) {
    return l->b->bases[value] == 0 &&
           eddy_code_value_at(l->b->code, value)->kind == EDDY_VALUE_MADE;
}

static void find_lives(const living *l) {
    const eddy_batching *b = l->b;
    for (uint32_t v = 0; v < b->value_count; v++)
        b->values[v].begins = EDDY_CODE_NONE;
    for (uint32_t p = 0; p < b->count; p++) {
        uint32_t i = b->order[p];
        for (uint32_t k = 0; k < eddy_batching_at(b, i)->operand_count; k++) {
            if (eddy_batching_is_absent(b, i, k))
                continue;
            eddy_batched_value *value = eddy_batching_value(b, i, k);
            if (value->begins == EDDY_CODE_NONE)
                value->begins = p;
            value->ends = p + 1;
        }
    }
}

/* One of the operands whose last use is an elementwise op gives its memory to what that makes. */
static void end_where_reused(const living *l, uint32_t p) {
    const eddy_batching *b = l->b;
    uint32_t i = b->order[p];
    const eddy_code_instruction *instruction = eddy_batching_at(b, i);
    if (!instruction->op->is_elementwise || instruction->input_count == instruction->operand_count)
        return;
    uint32_t made = eddy_batching_operand(b, i, instruction->input_count)->value;
    for (uint32_t k = 0; k < instruction->input_count; k++) {
        if (eddy_batching_is_absent(b, i, k))
            continue;
        uint32_t used = eddy_batching_operand(b, i, k)->value;
        if (lives_within(l, used) && b->values[used].ends == p + 1 && used != made &&
            eddy_code_value_at(b->code, used)->bytes == eddy_code_value_at(b->code, made)->bytes) {
            b->values[used].ends = p;
            return;
        }
    }
}

static void add_up_lives(const living *l) {
    const eddy_batching *b = l->b;
    for (uint32_t v = 0; v < b->value_count; v++) {
        if (!lives_within(l, v) || b->values[v].begins == EDDY_CODE_NONE)
            continue;
        int64_t *bytes = eddy_batching_is_handed_on(b, v) &&
                                 eddy_batching_block_of(b, b->values[v].first) != EDDY_CODE_NONE
                             ? l->handed
                             : l->alive;
        bytes[b->values[v].begins] += eddy_code_value_at(b->code, v)->bytes;
        bytes[b->values[v].ends] -= eddy_code_value_at(b->code, v)->bytes;
    }
    for (uint32_t p = 1; p < b->count; p++) {
        l->alive[p] += l->alive[p - 1];
        l->handed[p] += l->handed[p - 1];
    }
}

/* What is alive at once at places [from, to), at most, with so many sub-batches; 0: without what is handed on. */
static int64_t most_alive(const living *l, uint32_t from, uint32_t to, uint32_t parts) {
    int64_t most = 0;
    for (uint32_t p = from; p < to; p++) {
        int64_t bytes = l->alive[p] + (parts > 0 ? l->handed[p] / parts : 0);
        if (bytes > most)
            most = bytes;
    }
    return most;
}

/* Sums over two sub-batches are alive beside those that they are added to, both in one loop (`fuse`). */
static int64_t most_in_block(const living *l, uint32_t from, uint32_t to, uint32_t parts) {
    uint32_t block = eddy_batching_block_of(l->b, l->b->order[from]);
    return most_alive(l, from, to, parts) +
           (parts > 1 ? 2 * l->b->items[block].region.sum_bytes : 0);
}

static void measure(living *l) {
    size_t bytes = ((size_t)l->b->count + 1) * sizeof(*l->alive);
    memset(l->alive, 0, bytes);
    memset(l->handed, 0, bytes);
    find_lives(l);
    for (uint32_t p = 0; p < l->b->count; p++)
        end_where_reused(l, p);
    add_up_lives(l);
}

/* In the present order, with its blocks done in their parts. */
static int64_t peak(const living *l) {
    int64_t most = 0;
    for (uint32_t p = 0, end; p < l->b->count; p = end) {
        end = eddy_batching_end(l->b, p);
        uint32_t block = eddy_batching_block_of(l->b, l->b->order[p]);
        int64_t here =
            most_in_block(l, p, end, block != EDDY_CODE_NONE ? l->b->items[block].region.parts : 1);
        if (here > most)
            most = here;
    }
    return most;
}

static void find_goal(living *l) {
    l->goal = most_alive(l, 0, l->b->count, 0);
    l->goal += l->goal / SHARE;
}

static void choose(const living *l, uint32_t from, uint32_t to) {
    uint32_t block = eddy_batching_block_of(l->b, l->b->order[from]), parts = 1;
    if (block == EDDY_CODE_NONE)
        return;
    eddy_batch_region *of = &l->b->items[block].region;
    int64_t best = most_alive(l, from, to, 1),
            of_part = of->count * EDDY_BATCHING_INSTRUCTION_BYTES;
    while (best > l->goal && ++parts <= of->items && parts <= EDDY_SUBBATCHES_MOST) {
        int64_t most = most_in_block(l, from, to, parts);
        if (of->items % parts != 0 || most >= best - best / SHARE ||
            best - most < (parts - of->parts) * of_part)
            continue;
        of->parts = parts;
        best = most;
    }
    if (of->parts == 1)
        of->parts = 0;
}

static void choose_all(const living *l) {
    for (uint32_t p = 0, end; p < l->b->count; p = end) {
        end = eddy_batching_end(l->b, p);
        choose(l, p, end);
    }
}

/* What the instructions of all blocks take that there are not without them. */
static int64_t added_bytes(const eddy_batching *b) {
    int64_t added = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const eddy_batch_region *of = &b->items[i].region;
        added += of->parts > 1 ? (int64_t)(of->parts - 1) * of->count : 0;
    }
    return added * EDDY_BATCHING_INSTRUCTION_BYTES;
}

/* Less is alive than in the order of the calls, by a share of it, and by more than the blocks add; else there are none. */
static void plan(living *l) {
    eddy_batching *b = l->b;
    for (uint32_t p = 0; p < b->count; p++)
        b->order[p] = p;
    measure(l);
    int64_t before = most_alive(l, 0, b->count, 1);
    eddy_batching_order(b);
    measure(l);
    find_goal(l);
    choose_all(l);
    eddy_batching_order(b);
    measure(l);
    int64_t won = before - peak(l);
    bool pays = won >= before / SHARE && won >= added_bytes(b);
    for (uint32_t i = 0; i < b->count && !pays; i++)
        b->items[i].region.parts = 0;
}

bool eddy_batching_plan(eddy_batching *b) {
    size_t bytes = 2 * ((size_t)b->count + 1) * sizeof(int64_t);
    living l = {.b = b, .alive = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM)};
    if (!l.alive)
        return false;
    l.handed = l.alive + b->count + 1;
    plan(&l);
    eddy_memory_release(l.alive, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
