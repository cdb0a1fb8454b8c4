/* Groups of instructions that run tile by tile, and small ones that are one chain.
 *
 * Instructions are a list of units: one instruction, or the members of a group, elementwise or reductions of rows. Each instruction in turn is merged with the units that
 * used its operands last, if their planes and values fit (group.h). Of the two units the earlier moves down, or the later up, past
 * what lies between, if nothing there reads what it writes or the other way round.
 *
 * The code may be that of two sizes: the first says what pays, and a group is one that may be in both. */
#include <base/memory.h>
#include <program/control.h>
#include <program/group.h>
#include <program/passes/passes.h>
#include <program/superinstruction.h>
#include <string.h>

/* Smaller ones are in the cache as they are: one loop for all members gains something, tiles do not. */
#define LEAST_ELEMENTS 4096
/* Units that another may move past: moved far, values live long. */
#define FARTHEST 32

#define SIDES_MOST 2

/* The plane of a unit at one size. */
typedef struct side {
    int64_t rows, columns;
    bool is_flat;
    bool is_reduced; /* has a reduction of rows */
} side;

typedef struct unit {
    uint32_t previous, next;            /* units; NONE at the ends */
    uint32_t first_member, last_member; /* instructions, linked by `next_member` */
    uint32_t count;
    bool is_group; /* has a plane */
    side sides[SIDES_MOST];
} unit;

typedef struct fusing {
    eddy_code
        *codes[SIDES_MOST]; /* alike but for their sizes: all but planes is read of the first */
    int sides;
    const uint32_t *bases;
    uint32_t *uses;                  /* per value: operands that name it */
    uint32_t *touched;               /* per value: the last instruction that names it */
    uint32_t *next_member, *unit_of; /* per instruction */
    unit *units;                     /* as many as instructions */
    uint32_t last;                   /* unit */
} fusing;

#define NONE EDDY_CODE_NONE

static const eddy_code_instruction *instruction_at(const fusing *f, uint32_t i) {
    return eddy_code_instruction_at(f->codes[0], i);
}

/* ---- may two units be one? ---- */

/* Whether the other has an element for each row of the one that is reduced. */
static bool has_rows_of(const side *other, const side *reduced) {
    return reduced->is_reduced && other->is_flat && other->columns == reduced->rows;
}

/* *shared: the plane of both together. */
static bool has_same_plane(const side *a, const side *b, side *shared) {
    *shared = a->is_flat ? *b : *a;
    shared->is_flat = a->is_flat && b->is_flat;
    shared->is_reduced = a->is_reduced || b->is_reduced;
    if (has_rows_of(a, b) || has_rows_of(b, a))
        return true;
    return a->rows * a->columns == b->rows * b->columns &&
           (a->is_flat || b->is_flat || (a->rows == b->rows && a->columns == b->columns));
}

static void plane_of(const eddy_code *code, uint32_t i, const side *shared, eddy_plane *plane) {
    bool is_member = eddy_plane_make(code, eddy_code_instruction_at(code, i), plane);
    EDDY_ASSERT(is_member);
    if (plane->is_flat)
        eddy_plane_shape(plane, shared->rows, shared->columns);
}

static bool fit(const fusing *f, const eddy_code *code, const unit *a, const unit *b,
                const side *shared) {
    eddy_plane x, y;
    for (uint32_t i = a->first_member; i != NONE; i = f->next_member[i]) {
        plane_of(code, i, shared, &x);
        for (uint32_t k = b->first_member; k != NONE; k = f->next_member[k]) {
            plane_of(code, k, shared, &y);
            if (!eddy_group_fits(code, eddy_code_instruction_at(code, i), &x,
                                 eddy_code_instruction_at(code, k), &y))
                return false;
        }
    }
    return true;
}

/* Whether a group of both can run: there are slots, and it is large, or one loop. */
static bool can_run(const fusing *f, const eddy_code *code, const unit *a, const unit *b,
                    int64_t elements, bool is_large) {
    eddy_group_slots group = {.count = 0, .elements = elements};
    for (uint32_t i = a->first_member; i != NONE; i = f->next_member[i])
        group.members[group.count++] = eddy_code_instruction_at(code, i);
    for (uint32_t i = b->first_member; i != NONE; i = f->next_member[i])
        group.members[group.count++] = eddy_code_instruction_at(code, i);
    if (elements == 0 || !eddy_group_find_slots(code, f->bases, f->uses, &group))
        return false;
    return is_large || eddy_superinstruction_is_all(code, f->uses, &group);
}

/* Whether the planes are the same at all sizes. */
static bool have_same_planes(const fusing *f, const unit *a, const unit *b, side *shared) {
    for (int s = 0; s < f->sides; s++)
        if (!has_same_plane(&a->sides[s], &b->sides[s], &shared[s]))
            return false;
    return true;
}

/* Whether a group of both can run at all sizes; at the first it has as many elements as tiles are worth, or is one loop at all. What costs least
 * comes first: most units that are small are no chain. */
static bool may_be_one(const fusing *f, const unit *a, const unit *b, const side *shared) {
    bool is_large = shared[0].rows * shared[0].columns >= LEAST_ELEMENTS;
    for (int s = 0; s < f->sides; s++)
        if (!can_run(f, f->codes[s], a, b, shared[s].rows * shared[s].columns, is_large) ||
            !fit(f, f->codes[s], a, b, &shared[s]))
            return false;
    return true;
}

/* ---- moving ---- */

static bool are_ordered(const fusing *f, const unit *a, const unit *b) {
    for (uint32_t i = a->first_member; i != NONE; i = f->next_member[i])
        for (uint32_t k = b->first_member; k != NONE; k = f->next_member[k])
            if (eddy_group_orders(f->codes[0], instruction_at(f, i), instruction_at(f, k)))
                return true;
    return false;
}

/* Whether a (b) may move past all units between a and b, a being the earlier. */
static void find_ways(const fusing *f, uint32_t a, uint32_t b, bool *moves_down, bool *moves_up) {
    uint32_t passed = 0;
    *moves_down = *moves_up = true;
    for (uint32_t u = f->units[a].next; u != b && (*moves_down || *moves_up);
         u = f->units[u].next) {
        if (u == NONE || ++passed > FARTHEST) {
            *moves_down = *moves_up = false;
            return;
        }
        *moves_down = *moves_down && !are_ordered(f, &f->units[a], &f->units[u]);
        *moves_up = *moves_up && !are_ordered(f, &f->units[b], &f->units[u]);
    }
}

static void unlink_unit(fusing *f, uint32_t u) {
    uint32_t previous = f->units[u].previous, next = f->units[u].next;
    if (previous != NONE)
        f->units[previous].next = next;
    if (next != NONE)
        f->units[next].previous = previous;
    else
        f->last = previous;
}

/* The members of a, then those of b, in the place of `kept`, which is one of the two. */
static void merge(fusing *f, uint32_t a, uint32_t b, uint32_t kept, const side *shared) {
    unit *x = &f->units[a], *y = &f->units[b];
    unlink_unit(f, kept == a ? b : a);
    f->next_member[x->last_member] = y->first_member;
    uint32_t first = x->first_member, last = y->last_member, count = x->count + y->count;
    unit *merged = &f->units[kept];
    *merged = (unit){merged->previous, merged->next, first, last, count, true, {{0}}};
    memcpy(merged->sides, shared, (size_t)f->sides * sizeof(*shared));
    for (uint32_t i = first; i != NONE; i = f->next_member[i])
        f->unit_of[i] = kept;
}

/* ---- all of it ---- */

/* Whether there is something to gain by using the operand together with the unit: it has an element for each of the plane, or for each row, and
 * the unit makes such values. */
static bool is_worth(const eddy_plane *plane, uint32_t k, const unit *other) {
    bool differs_in_rows = plane->rows == 1 || plane->strides[k][0] != 0;
    return differs_in_rows && (plane->strides[k][1] != 0 || other->sides[0].is_reduced);
}

static uint32_t merge_with(fusing *f, uint32_t a, uint32_t b) {
    const unit *x = &f->units[a], *y = &f->units[b];
    side shared[SIDES_MOST];
    bool moves_down, moves_up;
    if (a == b || !x->is_group || x->count + y->count > EDDY_GROUP_MEMBERS ||
        !have_same_planes(f, x, y, shared))
        return b;
    if (!may_be_one(f, x, y, shared))
        return b;
    find_ways(f, a, b, &moves_down, &moves_up);
    if (!moves_down && !moves_up)
        return b;
    uint32_t kept = moves_down ? b : a;
    merge(f, a, b, kept, shared);
    return kept;
}

/* Whether the instruction has a plane at all sizes, which begins a unit; *plane: that of the first. */
static bool find_planes(const fusing *f, uint32_t i, unit *u, eddy_plane *plane) {
    for (int s = f->sides; s-- > 0;) {
        if (!eddy_plane_make(f->codes[s], eddy_code_instruction_at(f->codes[s], i), plane))
            return false;
        u->sides[s] = (side){plane->rows, plane->columns, plane->is_flat, plane->is_reduced};
    }
    return true;
}

/* An instruction becomes the last unit, and is merged with those that used its operands. */
static void add(fusing *f, uint32_t i) {
    const eddy_code_instruction *instruction = instruction_at(f, i);
    /* What stands before a mark stays there: it is known to no group behind it. */
    if (eddy_control_of(instruction->op) != EDDY_CONTROL_NONE)
        memset(f->touched, 0xff, f->codes[0]->values.count * sizeof(*f->touched));
    eddy_plane plane = {0};
    f->units[i] = (unit){f->last, NONE, i, i, 1, false, {{0}}};
    bool is_group = f->units[i].is_group = find_planes(f, i, &f->units[i], &plane);
    if (f->last != NONE)
        f->units[f->last].next = i;
    f->last = i;
    f->unit_of[i] = i;
    f->next_member[i] = NONE;
    uint32_t unit_number = i;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        uint32_t value = eddy_code_operand_at(f->codes[0], instruction->operands_at + k)->value;
        if (value == NONE)
            continue;
        uint32_t user = f->touched[value];
        if (is_group && user != NONE && is_worth(&plane, k, &f->units[f->unit_of[user]]))
            unit_number = merge_with(f, f->unit_of[user], unit_number);
        f->touched[value] = i;
    }
}

static void note_group(const fusing *f, int s, uint32_t first, const unit *u,
                       eddy_code_group *noted) {
    uint32_t count = u->count;
    eddy_code *code = f->codes[s];
    eddy_group_slots group = {.count = count, .elements = u->sides[s].rows * u->sides[s].columns};
    for (uint32_t m = 0; m < count; m++)
        group.members[m] = eddy_code_instruction_at(code, first + m);
    bool has_slots = eddy_group_find_slots(code, f->bases, f->uses, &group);
    EDDY_ASSERT(has_slots);
    *noted = (eddy_code_group){first, count, eddy_superinstruction_is_all(code, f->uses, &group)};
    for (uint32_t m = 0; m < count; m++)
        for (uint32_t k = 0; k < group.members[m]->operand_count; k++)
            if (group.slots[m][k] >= 0) {
                uint32_t operand = group.members[m]->operands_at + k;
                uint32_t value = eddy_code_operand_at(code, operand)->value;
                eddy_code_value_at(code, value)->is_in_tile = true;
            }
}

/* Puts the instructions into the order of the units, and lists the groups. */
static bool arrange(const fusing *f, int s, eddy_code_instruction *old) {
    eddy_code *code = f->codes[s];
    uint32_t count = code->instructions.count, first = f->last, at = 0, index;
    memcpy(old, code->instructions.items, count * sizeof(*old));
    while (first != NONE && f->units[first].previous != NONE)
        first = f->units[first].previous;
    for (uint32_t u = first; u != NONE; u = f->units[u].next) {
        uint32_t first_of_unit = at, members = f->units[u].count;
        for (uint32_t i = f->units[u].first_member; i != NONE; i = f->next_member[i])
            *eddy_code_instruction_at(code, at++) = old[i];
        if (members == 1)
            continue;
        if (!eddy_code_array_add(&code->groups, sizeof(eddy_code_group), 1, &index))
            return false;
        note_group(f, s, first_of_unit, &f->units[u], eddy_code_group_at(code, index));
    }
    EDDY_ASSERT(at == count);
    return true;
}

/* A group is one chain at all sizes, or at none: at the least one its rows may be too short for that. */
static void agree_on_chains(const fusing *f) {
    for (uint32_t g = 0; f->sides > 1 && g < f->codes[0]->groups.count; g++) {
        eddy_code_group *most = eddy_code_group_at(f->codes[0], g),
                        *least = eddy_code_group_at(f->codes[1], g);
        most->is_chain = least->is_chain = most->is_chain && least->is_chain;
    }
}

static bool fuse(fusing *f) {
    const eddy_code *code = f->codes[0];
    uint32_t count = code->instructions.count, values = code->values.count;
    size_t bytes = count * (sizeof(eddy_code_instruction) + sizeof(unit)) +
                   2 * ((size_t)count + values) * sizeof(uint32_t);
    char *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    eddy_code_instruction *old = (eddy_code_instruction *)(void *)memory;
    f->units = (unit *)(void *)(old + count);
    f->uses = (uint32_t *)(void *)(f->units + count);
    f->touched = f->uses + values;
    f->next_member = f->touched + values;
    f->unit_of = f->next_member + count;
    eddy_group_count_uses(code, f->uses);
    memset(f->touched, 0xff, values * sizeof(*f->touched));
    for (uint32_t i = 0; i < count; i++)
        add(f, i);
    bool is_arranged = true;
    for (int s = 0; s < f->sides && count > 0; s++)
        is_arranged = is_arranged && arrange(f, s, old);
    if (is_arranged)
        agree_on_chains(f);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return is_arranged;
}

bool eddy_pass_fuse(eddy_code *code, const uint32_t *bases) {
    return fuse(&(fusing){.codes = {code}, .sides = 1, .bases = bases, .last = NONE});
}

bool eddy_pass_fuse_both(eddy_code *most, eddy_code *least, const uint32_t *bases) {
    return fuse(&(fusing){.codes = {most, least}, .sides = 2, .bases = bases, .last = NONE});
}
