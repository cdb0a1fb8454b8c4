#include <program/reach.h>

#include <base/memory.h>
#include <string.h>

static uint32_t *made_at(const eddy_reach *r, uint32_t i) {
    return (uint32_t *)r->made.items + i;
}

static eddy_reach_way *way_at(const eddy_reach *r, uint32_t i) {
    return (eddy_reach_way *)r->ways.items + i;
}

/* ---- life ---- */

bool eddy_reach_init(eddy_reach *r, const eddy_code *code) {
    *r = (eddy_reach){.code = code, .value_count = code->values.count, .way = EDDY_CODE_NONE};
    r->values =
        eddy_memory_acquire_zeroed(code->values.count * sizeof(*r->values), EDDY_MEMORY_PROGRAM);
    if (!r->values)
        return false;
    for (uint32_t v = 0; v < code->values.count; v++) {
        r->values[v].way = EDDY_CODE_NONE;
        r->values[v].is_there = eddy_code_value_at(code, v)->kind != EDDY_VALUE_MADE;
    }
    /* Code that is verified may name anything. */
    for (uint32_t i = 0; i < code->operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, i);
        if (operand->value < code->values.count && operand->access & EDDY_CODE_WRITES)
            r->values[operand->value].write_count++;
    }
    return true;
}

void eddy_reach_fini(eddy_reach *r) {
    if (r->values)
        eddy_memory_release(r->values, r->value_count * sizeof(*r->values), EDDY_MEMORY_PROGRAM);
    eddy_code_array_fini(&r->made, sizeof(uint32_t));
    eddy_code_array_fini(&r->ways, sizeof(eddy_reach_way));
    r->values = NULL;
}

/* ---- ways that are gone again ---- */

/* Whether the predicate decides the same for both: nobody writes it in between, and none of them is in a loop without the other, or nobody
 * writes it at all. */
static bool is_same_way(const eddy_reach_way *a, const eddy_reach_way *b) {
    return !a->is_loop && !b->is_loop && a->predicate == b->predicate && a->offset == b->offset &&
           a->is_second == b->is_second && a->writes == b->writes &&
           (a->loop == b->loop || (a->is_final && b->is_final));
}

static bool is_open(const eddy_reach *r, uint32_t way) {
    for (uint32_t w = r->way; w != EDDY_CODE_NONE; w = way_at(r, w)->outer)
        if (w == way || is_same_way(way_at(r, w), way_at(r, way)))
            return true;
    return false;
}

bool eddy_reach_has(const eddy_reach *r, uint32_t value) {
    const eddy_reach_value *of = &r->values[value];
    if (of->is_there || !of->is_made)
        return of->is_there;
    for (uint32_t way = of->way; way != EDDY_CODE_NONE; way = way_at(r, way)->outer)
        if (!is_open(r, way))
            return false;
    return true;
}

bool eddy_reach_allows(const eddy_reach *r, const eddy_code_operand *operand) {
    bool sets = operand->access & EDDY_CODE_COVERS && r->values[operand->value].is_made;
    return operand->access & EDDY_CODE_MAKES || sets || eddy_reach_has(r, operand->value);
}

/* ---- what is there behind an instruction ---- */

static bool note_made(eddy_reach *r, uint32_t value) {
    eddy_reach_value *of = &r->values[value];
    uint32_t index;
    if (of->is_there)
        return true;
    if (!eddy_code_array_add(&r->made, sizeof(uint32_t), 1, &index))
        return false;
    *made_at(r, index) = value;
    of->is_there = of->is_made = true;
    of->way = r->way;
    return true;
}

/* The other way begins without what this one has left. */
static void turn(const eddy_reach *r, eddy_reach_region *region) {
    region->middle = r->made.count;
    for (uint32_t i = region->begin; i < region->middle; i++)
        r->values[*made_at(r, i)].is_there = false;
}

/* Behind the branch is what both ways have left. */
static void join(eddy_reach *r, const eddy_reach_region *region) {
    uint32_t kept = region->begin, end = r->made.count;
    for (uint32_t i = region->begin; i < region->middle; i++)
        r->values[*made_at(r, i)].join = region->branch;
    for (uint32_t i = region->middle; i < end; i++) {
        uint32_t value = *made_at(r, i);
        eddy_reach_value *of = &r->values[value];
        of->is_there = of->join == region->branch;
        if (!of->is_there)
            continue;
        of->way = r->way;
        *made_at(r, kept++) = value;
    }
    r->made.count = kept;
}

/* Behind the loop is what its test has left, which ran at least once. */
static void leave(eddy_reach *r, const eddy_reach_region *region) {
    for (uint32_t i = region->begin; i < region->middle; i++)
        r->values[*made_at(r, i)].way = r->way;
    for (uint32_t i = region->middle; i < r->made.count; i++)
        r->values[*made_at(r, i)].is_there = false;
    r->made.count = region->middle;
}

static bool open_way(eddy_reach *r, const eddy_reach_way *way) {
    uint32_t index;
    if (!eddy_code_array_add(&r->ways, sizeof(*way), 1, &index))
        return false;
    *way_at(r, index) = *way;
    r->way = index;
    return true;
}

/* What decides: of a copy that nobody writes, what it was made from. */
static void find_predicate(const eddy_reach *r, const eddy_code_operand *predicate,
                           eddy_reach_way *way) {
    const eddy_reach_value *of = &r->values[predicate->value];
    if (of->is_copy && of->write_count == 1) {
        way->predicate = of->copied;
        way->offset = of->copied_offset;
        way->writes = of->copied_writes;
        way->is_final = of->copied_writes == r->values[of->copied].write_count;
        return;
    }
    way->predicate = predicate->value;
    way->offset = predicate->offset;
    way->writes = of->writes;
    way->is_final = of->writes == of->write_count;
}

/* One truth value, outside of branches and loops, as the gradient of a branch keeps its predicate. */
static void note_copy(eddy_reach *r, const eddy_code_instruction *instruction) {
    const eddy_code_operand *from = eddy_code_operand_at(r->code, instruction->operands_at),
                            *to = from + 1;
    if (r->depth > 0 || instruction->operand_count != 2 ||
        strcmp(instruction->op->name, "clone") != 0 || eddy_code_operand_is_absent(from) ||
        eddy_code_operand_is_absent(to) || from->dtype != EDDY_BOOL ||
        eddy_code_value_at(r->code, to->value)->bytes != 1)
        return;
    eddy_reach_value *copy = &r->values[to->value];
    copy->is_copy = true;
    copy->copied = from->value;
    copy->copied_offset = from->offset;
    copy->copied_writes = r->values[from->value].writes;
}

static bool begin_region(eddy_reach *r, const eddy_code_instruction *instruction, bool is_loop) {
    eddy_reach_way way = {.outer = r->way, .loop = r->way, .is_loop = is_loop};
    while (way.loop != EDDY_CODE_NONE && !way_at(r, way.loop)->is_loop)
        way.loop = way_at(r, way.loop)->outer;
    r->regions[r->depth++] =
        (eddy_reach_region){.branch = ++r->region_count, .begin = r->made.count};
    if (!is_loop)
        find_predicate(r, eddy_code_operand_at(r->code, instruction->operands_at), &way);
    return open_way(r, &way);
}

static bool turn_way(eddy_reach *r, eddy_reach_region *region) {
    eddy_reach_way way = *way_at(r, r->way);
    way.is_second = true;
    turn(r, region);
    return open_way(r, &way);
}

static bool pass_mark(eddy_reach *r, const eddy_code_instruction *instruction) {
    eddy_control control = eddy_control_of(instruction->op);
    eddy_reach_region *region = r->depth > 0 ? &r->regions[r->depth - 1] : NULL;
    switch (control) {
    case EDDY_CONTROL_IF:
    case EDDY_CONTROL_LOOP:
        return begin_region(r, instruction, control == EDDY_CONTROL_LOOP);
    case EDDY_CONTROL_ELSE:
        return turn_way(r, region);
    case EDDY_CONTROL_LOOP_WHILE:
        region->middle = r->made.count;
        return true;
    case EDDY_CONTROL_NONE:
    case EDDY_CONTROL_READ:
    case EDDY_CONTROL_CUT:
        return true;
    default:
        break;
    }
    r->way = way_at(r, r->way)->outer;
    r->depth--;
    if (control == EDDY_CONTROL_END_IF)
        join(r, region);
    else
        leave(r, region);
    return true;
}

bool eddy_reach_pass(eddy_reach *r, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        r->values[operand->value].writes++;
        if (!note_made(r, operand->value))
            return false;
    }
    note_copy(r, instruction);
    return pass_mark(r, instruction);
}

bool eddy_reach_pass_all(eddy_reach *r, uint32_t *wrong) {
    uint32_t count = r->code->instructions.count;
    for (*wrong = 0; *wrong < count; ++*wrong) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(r->code, *wrong);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(r->code, instruction->operands_at + k);
            if (!eddy_code_operand_is_absent(operand) && !eddy_reach_allows(r, operand))
                return true;
        }
        if (!eddy_reach_pass(r, instruction))
            return false;
    }
    return true;
}
