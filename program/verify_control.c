#include <program/verifier.h>

static uint32_t *made_at(const eddy_verifier *v, uint32_t i) {
    return (uint32_t *)v->made.items + i;
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
    return true;
}

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
        if (of->is_there)
            *made_at(v, kept++) = value;
    }
    v->made.count = kept;
}

/* Behind the loop is what its test has left, which ran at least once. */
static void leave(eddy_verifier *v, const eddy_verifier_region *region) {
    for (uint32_t i = region->middle; i < v->made.count; i++)
        v->values[*made_at(v, i)].is_there = false;
    v->made.count = region->middle;
}

bool eddy_verifier_mark(eddy_verifier *v, const eddy_code_instruction *instruction) {
    eddy_verifier_region *region = v->depth > 0 ? &v->regions[v->depth - 1] : NULL;
    switch (eddy_control_of(instruction->op)) {
    case EDDY_CONTROL_IF:
    case EDDY_CONTROL_LOOP:
        v->regions[v->depth++] =
            (eddy_verifier_region){.branch = ++v->region_count, .begin = v->made.count};
        return true;
    case EDDY_CONTROL_ELSE:
        turn(v, region);
        return true;
    case EDDY_CONTROL_LOOP_WHILE:
        region->middle = v->made.count;
        return true;
    case EDDY_CONTROL_END_IF:
        join(v, region);
        break;
    case EDDY_CONTROL_END_LOOP:
        leave(v, region);
        break;
    default:
        return true;
    }
    v->depth--;
    return true;
}
