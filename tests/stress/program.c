#include "program.h"

#include "../vm/synthetic.h"

uint64_t program_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static int64_t below(uint64_t *state, int64_t bound) {
    return (int64_t)(program_random(state) % (uint64_t)bound);
}

/* ---- the oracle ---- */

static bool is_bad(const program_slot *slot) {
    return slot->state == SLOT_LOST || slot->state == SLOT_SKIPPED || slot->state == SLOT_TORN;
}

static const program_slot *lowest_root(const program_slot *a, const program_slot *b) {
    if (!a || !is_bad(a))
        return b && is_bad(b) ? b : NULL;
    if (!b || !is_bad(b))
        return a;
    return a->root_order <= b->root_order ? a : b;
}

static void blame(program_slot *slot, slot_state state, int64_t order, int64_t seed,
                  bool was_seen) {
    slot->state = state;
    slot->root_order = order;
    slot->root_seed = seed;
    slot->was_seen = was_seen;
}

static void lose(program_slot *target, const program_slot *root, int64_t count, bool is_late) {
    blame(target, SLOT_LOST, root->root_order, root->root_seed, root->was_seen);
    target->count = count;
    target->is_late = target->is_unknown = is_late;
}

static void write_whole(program_slot *target, int64_t value, int64_t count) {
    target->state = SLOT_HEALTHY;
    target->count = count;
    target->is_unknown = false;
    for (int64_t c = 0; c < count; c++)
        target->cells[c] = synthetic_mix(value, c);
}

static void run_make(const program_step *step, int order, program_slot *slots, bool covers) {
    program_slot here = {0};
    const program_slot *root = NULL;
    int64_t value = step->seed;
    for (int i = 0; i < step->input_count; i++) {
        const program_slot *input = &slots[step->inputs[i]];
        root = lowest_root(root, input);
        if (input->count > 0)
            value = synthetic_mix(value, input->cells[0]);
    }
    program_slot copy;
    if (root) {
        copy = *root;
        root = &copy;
    } else if (step->fails || step->stream_fails) {
        blame(&here, SLOT_LOST, order, step->seed, false);
        root = &here;
    }
    bool is_late = step->kind == STEP_LATE;
    int targets[2] = {step->target, step->second};
    for (int t = 0; t < (step->kind == STEP_MAKE_TWO ? 2 : 1); t++) {
        program_slot *target = &slots[targets[t]];
        int64_t count = covers ? target->count : step->count;
        if (!covers)
            target->is_late = is_late;
        if (root)
            lose(target, root, count, is_late);
        else
            write_whole(target, value, count);
    }
}

static void run_in_place(const program_step *step, int order, program_slot *slots) {
    program_slot *target = &slots[step->target];
    const program_slot *root = is_bad(target) ? target : NULL;
    int64_t value = step->seed;
    for (int i = 0; i < step->input_count; i++) {
        const program_slot *input = &slots[step->inputs[i]];
        root = lowest_root(root, input);
        if (input->count > 0)
            value = synthetic_mix(value, input->cells[0]);
    }
    if (root) {
        program_slot copy = *root;
        if (!is_bad(target))
            blame(target, SLOT_SKIPPED, copy.root_order, copy.root_seed, copy.was_seen);
        else if (copy.root_order < target->root_order)
            blame(target, target->state, copy.root_order, copy.root_seed, copy.was_seen);
        return;
    }
    if (step->stream_fails) {
        blame(target, SLOT_SKIPPED, order, step->seed, false);
        return;
    }
    if (step->fails) {
        blame(target, SLOT_TORN, order, step->seed, false);
        return;
    }
    for (int64_t c = 0; c < target->count; c++)
        target->cells[c] = synthetic_mix(target->cells[c], value);
}

void program_oracle(const random_program *program, int index, program_slot *slots) {
    const program_step *step = &program->steps[index];
    program_slot *target = &slots[step->target];
    switch (step->kind) {
    case STEP_MAKE:
    case STEP_MAKE_TWO:
    case STEP_LATE:
        run_make(step, index, slots, false);
        break;
    case STEP_OVERWRITE:
        run_make(step, index, slots, true);
        break;
    case STEP_IN_PLACE:
        run_in_place(step, index, slots);
        break;
    case STEP_RELEASE:
        target->state = SLOT_EMPTY;
        break;
    case STEP_LEND:
        if (!is_bad(target) && target->count > 0)
            target->cells[0] = synthetic_mix(target->cells[0], step->seed);
        break;
    case STEP_RECOVER:
        if (target->state == SLOT_SKIPPED)
            target->state = SLOT_HEALTHY;
        break;
    default:
        break;
    }
}

/* ---- drawing ---- */

bool program_step_fits(const program_step *step, const program_slot *slots) {
    for (int i = 0; i < step->input_count; i++)
        if (slots[step->inputs[i]].state == SLOT_EMPTY || step->inputs[i] == step->target)
            return false;
    const program_slot *target = &slots[step->target];
    switch (step->kind) {
    case STEP_MAKE:
    case STEP_LATE:
        return target->state == SLOT_EMPTY;
    case STEP_MAKE_TWO:
        return target->state == SLOT_EMPTY && step->second != step->target &&
               slots[step->second].state == SLOT_EMPTY;
    case STEP_OVERWRITE:
        /* The size of what was never made is not known: no write can be said to cover it. */
        return target->state != SLOT_EMPTY && !target->is_unknown;
    case STEP_SYNC:
    case STEP_ORDER:
        return true;
    default:
        return target->state != SLOT_EMPTY;
    }
}

static void draw(program_step *step, uint64_t *state, bool may_fail_streams) {
    static const int weights[STEP_KIND_COUNT] = {22, 6, 6, 10, 24, 12, 8, 4, 4, 1, 3};
    int64_t at = below(state, 100);
    int kind = 0;
    while (at >= weights[kind])
        at -= weights[kind++];
    memset(step, 0, sizeof(*step));
    step->kind = (step_kind)kind;
    step->stream = (int)below(state, PROGRAM_STREAMS);
    step->target = (int)below(state, PROGRAM_SLOTS);
    step->second = (int)below(state, PROGRAM_SLOTS);
    bool has_inputs = step->kind <= STEP_IN_PLACE;
    step->input_count = has_inputs ? (int)below(state, 4) : 0;
    for (int i = 0; i < step->input_count; i++)
        step->inputs[i] = (int)below(state, PROGRAM_SLOTS);
    step->seed = (int64_t)(program_random(state) >> 16);
    step->count = below(state, PROGRAM_CELLS + 1);
    step->sleep_ns = below(state, 12) == 0 ? below(state, 20000) : 0;
    /* A third each is worth the caller, the scheduler and a worker. */
    static const int64_t costs[4] = {100000, 2000000, 20000000, 100000000};
    step->cost_ps = costs[below(state, 4)];
    step->fails = has_inputs && below(state, 14) == 0;
    step->stream_fails =
        has_inputs && may_fail_streams && step->stream > 0 && below(state, 20) == 0;
    step->lend_stays = below(state, 2) == 0;
}

void program_make(random_program *program, uint64_t seed, bool may_fail_streams) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    if (state == 0)
        state = 1;
    program->seed = seed;
    program->step_count = 0;
    program_slot slots[PROGRAM_SLOTS] = {0};
    int64_t wanted = 8 + below(&state, PROGRAM_STEPS - 8);
    for (int tries = 0; program->step_count < wanted && tries < 2000; tries++) {
        program_step *next = &program->steps[program->step_count];
        draw(next, &state, may_fail_streams);
        if (!program_step_fits(next, slots))
            continue;
        program_oracle(program, program->step_count, slots);
        program->step_count++;
    }
}
