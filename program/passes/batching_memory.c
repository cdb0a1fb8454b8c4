/* In how many sub-batches each block is done: as few as bring the bytes that are alive at once in it down to what is alive elsewhere.
 *
 * Alive is a value from the instruction that makes it to the last that uses it; an elementwise op may write into what it uses last. Workspaces do not count. Of what blocks hand on
 * a sub-batch has its share alone. */
#include <base/memory.h>
#include <program/passes/batching.h>

/* Where more than that share of what is alive anyway is won, sub-batches pay. */
#define SHARE 16
/* Each sub-batch packs weights, and adds up gradients, once more. */
#define PARTS_MOST 64

typedef struct living {
    const eddy_batching *b;
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

static void find_goal(living *l) {
    for (uint32_t p = 0, end; p < l->b->count; p = end) {
        end = eddy_batching_end(l->b, p);
        int64_t most = most_alive(l, p, end, 0);
        if (most > l->goal)
            l->goal = most;
    }
    l->goal += l->goal / SHARE;
}

/* Sums over two sub-batches are alive beside those that they are added to, both in one loop (`fuse`). */
static void choose(const living *l, uint32_t from, uint32_t to) {
    uint32_t block = eddy_batching_block_of(l->b, l->b->order[from]), parts = 1;
    if (block == EDDY_CODE_NONE)
        return;
    eddy_batch_region *of = &l->b->items[block].region;
    int64_t before = most_alive(l, from, to, 1), best = before;
    of->parts = 0;
    while (best > l->goal && ++parts <= of->items && parts <= PARTS_MOST) {
        int64_t most = most_alive(l, from, to, parts) + 2 * of->sum_bytes;
        if (of->items % parts != 0 || most >= best - best / SHARE)
            continue;
        of->parts = parts;
        best = most;
    }
}

bool eddy_batching_choose(const eddy_batching *b) {
    size_t bytes = 2 * ((size_t)b->count + 1) * sizeof(int64_t);
    living l = {.b = b, .alive = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM)};
    if (!l.alive)
        return false;
    l.handed = l.alive + b->count + 1;
    find_lives(&l);
    for (uint32_t p = 0; p < b->count; p++)
        end_where_reused(&l, p);
    add_up_lives(&l);
    find_goal(&l);
    for (uint32_t p = 0, end; p < b->count; p = end) {
        end = eddy_batching_end(b, p);
        choose(&l, p, end);
    }
    eddy_memory_release(l.alive, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
