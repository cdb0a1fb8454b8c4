#include <program/verifier.h>

static uint32_t *made_at(const eddy_verifier *v, uint32_t i) {
    return (uint32_t *)v->made.items + i;
}

static eddy_verifier_way *way_at(const eddy_verifier *v, uint32_t i) {
    return (eddy_verifier_way *)v->ways.items + i;
}

bool eddy_verifier_note_made(eddy_verifier *v, uint32_t value) {
    eddy_verifier_value *of = &v->values[value];
    uint32_t index;
    if (of->is_there)
        return true;
    if (!eddy_code_array_add(&v->made, sizeof(uint32_t), 1, &index))
        return eddy_verifier_fail_memory(v);
    *made_at(v, index) = value;
    of->is_there = of->is_made = true;
    of->way = v->way;
    return true;
}

/* ---- ways that are gone again ---- */

static bool is_same_way(const eddy_verifier_way *a, const eddy_verifier_way *b) {
    return !a->is_loop && !b->is_loop && a->predicate == b->predicate && a->offset == b->offset &&
           a->is_second == b->is_second;
}

static bool is_open(const eddy_verifier *v, uint32_t way) {
    for (uint32_t w = v->way; w != EDDY_CODE_NONE; w = way_at(v, w)->outer)
        if (w == way || is_same_way(way_at(v, w), way_at(v, way)))
            return true;
    return false;
}

/* A predicate that nobody writes behind the branch decides the same again: on the same way of another branch on it is what its way has made.
 * That is how a gradient goes back through a branch. */
bool eddy_verifier_is_kept(const eddy_verifier *v, uint32_t value) {
    uint32_t way = v->values[value].way;
    for (; way != EDDY_CODE_NONE; way = way_at(v, way)->outer)
        if (!is_open(v, way) || (!way_at(v, way)->is_loop && !way_at(v, way)->is_final))
            return false;
    return v->values[value].is_made;
}

static bool open_way(eddy_verifier *v, const eddy_verifier_way *way) {
    uint32_t index;
    if (!eddy_code_array_add(&v->ways, sizeof(*way), 1, &index))
        return eddy_verifier_fail_memory(v);
    *way_at(v, index) = *way;
    v->way = index;
    return true;
}

/* ---- what is there behind a mark ---- */

/* The other way begins without what this one has left. */
static void turn(eddy_verifier *v, eddy_verifier_region *region) {
    region->middle = v->made.count;
    for (uint32_t i = region->begin; i < region->middle; i++) {
        eddy_verifier_value *of = &v->values[*made_at(v, i)];
        of->is_there = false;
        of->then = region->branch;
    }
}

/* Behind the branch is what both ways have left. */
static void join(eddy_verifier *v, const eddy_verifier_region *region) {
    uint32_t kept = region->begin, end = v->made.count;
    for (uint32_t i = region->middle; i < end; i++) {
        uint32_t value = *made_at(v, i);
        eddy_verifier_value *of = &v->values[value];
        of->is_there = of->then == region->branch;
        if (!of->is_there)
            continue;
        of->way = v->way;
        *made_at(v, kept++) = value;
    }
    v->made.count = kept;
}

/* Behind the loop is what its test has left, which ran at least once. */
static void leave(eddy_verifier *v, const eddy_verifier_region *region) {
    for (uint32_t i = region->begin; i < region->middle; i++)
        v->values[*made_at(v, i)].way = v->way;
    for (uint32_t i = region->middle; i < v->made.count; i++)
        v->values[*made_at(v, i)].is_there = false;
    v->made.count = region->middle;
}

static bool begin_region(eddy_verifier *v, const eddy_code_instruction *instruction, bool is_loop) {
    eddy_verifier_way way = {.outer = v->way, .is_loop = is_loop};
    v->regions[v->depth++] =
        (eddy_verifier_region){.branch = ++v->region_count, .begin = v->made.count};
    if (!is_loop) {
        const eddy_code_operand *predicate =
            eddy_code_operand_at(v->code, instruction->operands_at);
        const eddy_verifier_value *of = &v->values[predicate->value];
        way.predicate = predicate->value;
        way.offset = predicate->offset;
        way.is_final = of->writes == of->write_count;
    }
    return open_way(v, &way);
}

static bool turn_way(eddy_verifier *v, eddy_verifier_region *region) {
    eddy_verifier_way way = *way_at(v, v->way);
    way.is_second = true;
    turn(v, region);
    return open_way(v, &way);
}

bool eddy_verifier_mark(eddy_verifier *v, const eddy_code_instruction *instruction) {
    eddy_control control = eddy_control_of(instruction->op);
    eddy_verifier_region *region = v->depth > 0 ? &v->regions[v->depth - 1] : NULL;
    switch (control) {
    case EDDY_CONTROL_IF:
    case EDDY_CONTROL_LOOP:
        return begin_region(v, instruction, control == EDDY_CONTROL_LOOP);
    case EDDY_CONTROL_ELSE:
        return turn_way(v, region);
    case EDDY_CONTROL_LOOP_WHILE:
        region->middle = v->made.count;
        return true;
    case EDDY_CONTROL_NONE:
        return true;
    default:
        break;
    }
    v->way = way_at(v, v->way)->outer;
    v->depth--;
    if (control == EDDY_CONTROL_END_IF)
        join(v, region);
    else
        leave(v, region);
    return true;
}
