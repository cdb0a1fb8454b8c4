#include <program/fused.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <kernels/grain.h>
#include <program/steps.h>
#include <streams/team.h>
#include <string.h>

/* ---- running ---- */

typedef struct fused_run {
    const eddy_fused *fused;
    const eddy_fused_tiles *tiles;
    const eddy_frame *frame;
} fused_run;

static const eddy_fused_member *calls_of(const eddy_fused *fused) {
    return fused->members + fused->member_count;
}

static const void *attributes_of(const eddy_fused_member *member, const eddy_frame *frame) {
    return member->is_patched ? (const void *)(frame->copy + member->copy_at) : member->attributes;
}

/* Where a member's operands of a tile lie, and how far those of the next tile are, if that is not in another row of tiles. */
typedef struct cursor {
    const eddy_fused_member *member;
    char *data[EDDY_PLANE_OPERANDS];
    int64_t ahead[EDDY_PLANE_OPERANDS];
} cursor;

/* Those that run; the number of them. */
static uint32_t list_members(const fused_run *run, cursor *cursors) {
    const eddy_fused *fused = run->fused;
    uint32_t count = 0;
    if (run->frame->skipped == 0) {
        for (uint32_t c = 0; c < fused->call_count; c++)
            cursors[count++].member = &calls_of(fused)[c];
        return count;
    }
    for (uint32_t m = 0; m < fused->member_count; m++)
        if (!(run->frame->skipped >> m & 1))
            cursors[count++].member = &fused->members[m];
    return count;
}

static void begin_row(const fused_run *run, cursor *c, int64_t row, int64_t column, char *slots) {
    const eddy_fused_tiles *tiles = run->tiles;
    for (uint32_t k = 0; k < EDDY_PLANE_OPERANDS; k++) {
        const eddy_fused_operand *operand = &c->member->operands[k];
        c->ahead[k] = 0;
        c->data[k] = slots + operand->offset;
        if (operand->is_in_tile || k >= c->member->operand_count)
            continue;
        c->ahead[k] = tiles->in_row == 1 ? tiles->rows * operand->row_bytes
                                         : tiles->columns * operand->column_bytes;
        c->data[k] = run->frame->bases[operand->base] + operand->offset + row * operand->row_bytes +
                     column * operand->column_bytes;
    }
}

static void run_rows(const cursor *c, int64_t rows, int64_t columns, const void *attributes) {
    const eddy_fused_member *member = c->member;
    char *data[EDDY_PLANE_OPERANDS];
    memcpy(data, c->data, sizeof(data));
    for (int64_t row = 0; row < rows; row++) {
        member->loop(data, member->strides, columns, attributes);
        for (uint32_t k = 0; k < member->operand_count; k++)
            data[k] += member->operands[k].row_bytes;
    }
}

static void run_member(const cursor *c, const eddy_frame *frame, int64_t rows, int64_t columns) {
    const eddy_fused_member *member = c->member;
    const void *attributes = attributes_of(member, frame);
    if (member->rows)
        member->rows(c->data, member->strides, rows, columns);
    else if (member->is_of_rows)
        member->loop(c->data, member->strides, rows, attributes);
    else if (member->is_flat || rows == 1)
        member->loop(c->data, member->strides, rows * columns, attributes);
    else
        run_rows(c, rows, columns, attributes);
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const fused_run *run = context;
    const eddy_fused_tiles *tiles = run->tiles;
    _Alignas(EDDY_CACHE_LINE) char slots[EDDY_GROUP_SLOTS * EDDY_FUSED_SLOT_BYTES +
                                         EDDY_GROUP_ROW_SLOTS * EDDY_FUSED_ROW_SLOT_BYTES];
    cursor cursors[EDDY_GROUP_MEMBERS];
    uint32_t count = list_members(run, cursors);
    int64_t row = begin / tiles->in_row * tiles->rows,
            column = begin % tiles->in_row * tiles->columns;
    for (uint32_t c = 0; c < count; c++)
        begin_row(run, &cursors[c], row, column, slots);
    for (int64_t i = begin; i < end; i++) {
        int64_t rows = eddy_min_i64(tiles->rows, run->fused->rows - row),
                columns = eddy_min_i64(tiles->columns, run->fused->columns - column);
        for (uint32_t c = 0; c < count; c++) {
            run_member(&cursors[c], run->frame, rows, columns);
            for (uint32_t k = 0; k < EDDY_PLANE_OPERANDS; k++)
                cursors[c].data[k] += cursors[c].ahead[k];
        }
        column += tiles->columns;
        if (column < run->fused->columns)
            continue;
        column = 0;
        row += tiles->rows;
        for (uint32_t c = 0; c < count && tiles->in_row > 1; c++)
            begin_row(run, &cursors[c], row, 0, slots);
    }
}

static void patch_member(const eddy_fused_member *member, eddy_frame *frame) {
    memcpy(frame->copy + member->copy_at, member->attributes, member->attribute_bytes);
    for (uint32_t i = 0; i < member->patch_count; i++)
        frame->copy[member->copy_at + member->patches[i].to] =
            frame->words[member->patches[i].from];
}

/* The chain's members are patched before. */
static void patch_chain(const eddy_fused *fused, const eddy_fused_member *call, eddy_frame *frame) {
    eddy_scalar *numbers = (eddy_scalar *)(void *)(frame->copy + call->copy_at);
    for (uint32_t n = 0; n < call->number_count; n++)
        numbers[n] = *(const eddy_scalar *)attributes_of(&fused->members[call->numbered[n]], frame);
}

/* The run's own copies of attributes get its words. */
static void patch(const eddy_fused *fused, eddy_frame *frame) {
    for (uint32_t m = 0; m < fused->member_count; m++)
        if (fused->members[m].is_patched)
            patch_member(&fused->members[m], frame);
    for (uint32_t c = 0; c < fused->call_count; c++)
        if (calls_of(fused)[c].is_patched && calls_of(fused)[c].number_count > 0)
            patch_chain(fused, &calls_of(fused)[c], frame);
}

void eddy_fused_run(const eddy_fused *fused, eddy_frame *frame) {
    eddy_kernel_team *team = fused->wants_helpers ? frame->team : &eddy_team_serial;
    const eddy_fused_tiles *tiles = frame->skipped == 0 ? &fused->calls : &fused->tiles;
    fused_run run = {fused, tiles, frame};
    if (fused->is_patched)
        patch(fused, frame);
    int64_t most = EDDY_KERNEL_SLICE_ELEMENTS / (tiles->rows * tiles->columns);
    team->parallel_for(team, tiles->count,
                       eddy_grain_even(team, tiles->count, eddy_max_i64(most, 1), 1), run_tiles,
                       &run);
}

bool eddy_fused_is_loop(const eddy_fused *fused) {
    return fused->is_one_chain && !fused->is_patched && fused->calls.count == 1;
}

/* ---- making ---- */

static void set_member(eddy_fused_member *member, const eddy_executable *executable,
                       const eddy_code *code, uint32_t i, const eddy_plane *plane,
                       size_t *copied_bytes) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
    const eddy_prepared_call *prepared =
        (const eddy_prepared_call *)executable->prepared.items + executable->prepared_of[i];
    if (plane->is_reduced)
        member->rows = instruction->kernel->rows;
    else
        member->loop = eddy_kernel_loop(instruction->kernel);
    member->attributes = eddy_packed_attributes(prepared->packed);
    member->attribute_bytes = (uint32_t)instruction->op->kernel_attribute_bytes;
    member->patches = executable->patches + instruction->patches_at;
    member->patch_count = instruction->patch_count;
    member->is_patched = instruction->patch_count > 0;
    member->copy_at = (uint32_t)(*copied_bytes / sizeof(int64_t));
    member->operand_count = instruction->operand_count;
    if (instruction->patch_count > 0)
        *copied_bytes += (member->attribute_bytes + 7) / 8 * 8;
}

static void set_operands(eddy_fused_member *member, const eddy_executable *executable,
                         const eddy_code *code, const eddy_code_instruction *instruction,
                         const eddy_plane *plane, const int8_t *slots, int64_t tile_columns) {
    member->is_flat = true;
    member->is_of_rows = plane->is_of_rows;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        int64_t bytes = eddy_dtype_size((eddy_dtype)operand->dtype);
        eddy_fused_operand *place = &member->operands[k];
        if (slots[k] >= EDDY_GROUP_SLOTS) {
            *place = (eddy_fused_operand){.offset = EDDY_GROUP_SLOTS * EDDY_FUSED_SLOT_BYTES +
                                                    (slots[k] - EDDY_GROUP_SLOTS) *
                                                        EDDY_FUSED_ROW_SLOT_BYTES,
                                          .row_bytes = bytes,
                                          .is_in_tile = true};
            member->is_flat = false;
            continue;
        }
        if (slots[k] >= 0) {
            *place = (eddy_fused_operand){.offset = slots[k] * EDDY_FUSED_SLOT_BYTES,
                                          .row_bytes = tile_columns * bytes,
                                          .column_bytes = bytes,
                                          .is_in_tile = true};
            continue;
        }
        const eddy_place *value = &executable->value_places[operand->value];
        *place = (eddy_fused_operand){.offset = value->offset + operand->offset * bytes,
                                      .row_bytes = plane->strides[k][0] * bytes,
                                      .column_bytes = plane->strides[k][1] * bytes,
                                      .base = value->base};
        member->is_flat &= plane->strides[k][0] == plane->columns * plane->strides[k][1];
    }
}

/* The shape of the group's plane: that of a member with two dims, if there is one. Returns the elements of a tile. */
static int64_t find_plane(const eddy_code *code, const eddy_code_group *group, eddy_fused *fused) {
    eddy_plane plane;
    int64_t element_bytes = 1;
    bool is_reduced = false;
    for (uint32_t m = 0; m < group->count; m++) {
        const eddy_code_instruction *member = eddy_code_instruction_at(code, group->first + m);
        bool is_member = eddy_plane_make(code, member, &plane);
        EDDY_ASSERT(is_member);
        if (m == 0 || !plane.is_flat) {
            fused->rows = plane.rows;
            fused->columns = plane.columns;
        }
        is_reduced |= plane.is_reduced;
        for (uint32_t k = 0; k < member->operand_count; k++) {
            const eddy_code_operand *operand = eddy_code_operand_at(code, member->operands_at + k);
            element_bytes =
                eddy_max_i64(element_bytes, eddy_dtype_size((eddy_dtype)operand->dtype));
        }
    }
    int64_t elements = EDDY_FUSED_TILE_BYTES / element_bytes;
    if (!is_reduced)
        return elements;
    bool is_near = fused->rows * fused->columns * element_bytes <= EDDY_FUSED_NEAR_BYTES;
    int64_t wanted = fused->columns * (is_near ? 2 : 1);
    return eddy_min_i64(eddy_max_i64(elements, wanted), EDDY_FUSED_SLOT_BYTES / element_bytes);
}

/* Cuts the plane into tiles of so many elements. */
static eddy_fused_tiles cut(const eddy_fused *fused, int64_t elements) {
    eddy_fused_tiles tiles = {.columns = eddy_min_i64(fused->columns, elements)};
    tiles.rows = eddy_min_i64(elements / tiles.columns, fused->rows);
    tiles.in_row = (fused->columns + tiles.columns - 1) / tiles.columns;
    tiles.count = (fused->rows + tiles.rows - 1) / tiles.rows * tiles.in_row;
    return tiles;
}

/* ---- calls ---- */

/* The loop of a chain, with what its members have in memory and in slots. */
static void set_chain(eddy_fused *fused, const eddy_superinstruction *s, eddy_fused_member *call,
                      size_t *copied_bytes) {
    *call = (eddy_fused_member){.loop = eddy_kernel_loop(s->kernel),
                                .attributes = call->numbers,
                                .is_flat = true,
                                .chain = s->chain};
    for (uint32_t k = 0; k < s->chain->count; k++) {
        eddy_fused_member *member = &fused->members[s->members[k]];
        member->chain = s->chain;
        call->is_flat &= member->is_flat;
        /* Those before one with an element for each row have no more. */
        call->is_of_rows = member->is_of_rows;
        if (s->chain->members[k].op->scalar_count > 0) {
            call->numbered[call->number_count] = s->members[k];
            call->numbers[call->number_count++] = *(const eddy_scalar *)member->attributes;
            call->is_patched |= member->is_patched;
        }
        for (uint32_t o = 0; o + 1 < member->operand_count; o++)
            if ((int8_t)o != s->chain->members[k].taken)
                call->operands[call->operand_count++] = member->operands[o];
        if (k == s->chain->count - 1)
            call->operands[call->operand_count++] = member->operands[member->operand_count - 1];
    }
    call->copy_at = (uint32_t)(*copied_bytes / sizeof(int64_t));
    if (call->is_patched)
        *copied_bytes += sizeof(call->numbers);
}

/* A chain is called in the place of its last member. */
static void make_calls(eddy_fused *fused, const eddy_code *code, const uint32_t *uses,
                       const eddy_group_slots *slots, size_t *copied_bytes) {
    eddy_superinstruction chains[EDDY_GROUP_MEMBERS];
    uint8_t chain_of_last[EDDY_GROUP_MEMBERS] = {0}; /* 1 + its number */
    uint32_t chained = 0, count = 0;                 /* bits: members of chains */
    for (uint32_t m = 0; m < fused->member_count; m++) {
        eddy_superinstruction *s = &chains[count];
        if (chained >> m & 1 || !eddy_superinstruction_find(code, uses, slots, m, chained, s))
            continue;
        for (uint32_t k = 0; k < s->chain->count; k++)
            chained |= UINT32_C(1) << s->members[k];
        chain_of_last[s->members[s->chain->count - 1]] = (uint8_t)++count;
    }
    for (uint32_t m = 0; m < fused->member_count; m++) {
        eddy_fused_member *call = &fused->members[fused->member_count + fused->call_count];
        if (chain_of_last[m] > 0)
            set_chain(fused, &chains[chain_of_last[m] - 1], call, copied_bytes);
        else if (chained >> m & 1)
            continue;
        else
            *call = fused->members[m];
        fused->call_count++;
    }
}

/* The strides of the member's loop, in bytes. */
static void set_strides(eddy_fused_member *member) {
    bool is_by_rows = member->is_of_rows || member->rows;
    for (uint32_t k = 0; k < member->operand_count; k++) {
        const eddy_fused_operand *operand = &member->operands[k];
        member->strides[k] = is_by_rows ? operand->row_bytes : operand->column_bytes;
    }
}

static void set_loop_strides(eddy_fused *fused) {
    const eddy_fused_member *call = calls_of(fused);
    for (uint32_t k = 0; k < call->operand_count; k++) {
        fused->loop_strides[k] = call->operands[k].column_bytes;
        fused->loop_strides[EDDY_STEP_PLACES + k] = call->operands[k].row_bytes;
    }
}

static size_t bytes_of(uint32_t members) {
    return sizeof(eddy_fused) + 2 * members * sizeof(eddy_fused_member);
}

size_t eddy_fused_bytes(const eddy_fused *fused) {
    return bytes_of(fused->member_count);
}

eddy_fused *eddy_fused_create(const eddy_executable *executable, const eddy_code *code,
                              const uint32_t *bases, const uint32_t *uses,
                              const eddy_code_group *group, size_t *copied_bytes) {
    eddy_fused *fused = eddy_memory_acquire_zeroed(bytes_of(group->count), EDDY_MEMORY_PROGRAM);
    if (!fused)
        return NULL;
    int64_t cost_ps = 0, elements = find_plane(code, group, fused);
    fused->tiles = cut(fused, elements);
    eddy_group_slots slots = {.count = group->count, .elements = fused->rows * fused->columns};
    for (uint32_t m = 0; m < group->count; m++)
        slots.members[m] = eddy_code_instruction_at(code, group->first + m);
    bool has_slots = eddy_group_find_slots(code, bases, uses, &slots);
    EDDY_ASSERT(has_slots);
    fused->member_count = group->count;
    *copied_bytes = 0;
    for (uint32_t m = 0; m < group->count; m++) {
        eddy_plane plane;
        (void)!eddy_plane_make(code, slots.members[m], &plane);
        if (plane.is_flat)
            eddy_plane_shape(&plane, fused->rows, fused->columns);
        EDDY_ASSERT(!plane.is_reduced || fused->tiles.columns == fused->columns);
        set_member(&fused->members[m], executable, code, group->first + m, &plane, copied_bytes);
        set_operands(&fused->members[m], executable, code, slots.members[m], &plane, slots.slots[m],
                     fused->tiles.columns);
        fused->is_patched |= fused->members[m].is_patched;
        cost_ps += eddy_executable_cost(executable, group->first + m);
    }
    make_calls(fused, code, uses, &slots, copied_bytes);
    for (uint32_t m = 0; m < fused->member_count + fused->call_count; m++)
        set_strides(&fused->members[m]);
    fused->is_one_chain = fused->call_count == 1;
    fused->calls = fused->is_one_chain ? cut(fused, EDDY_KERNEL_SLICE_ELEMENTS) : fused->tiles;
    fused->wants_helpers = cost_ps > EDDY_STEP_HELPED_PS;
    if (fused->is_one_chain)
        set_loop_strides(fused);
    return fused;
}

void eddy_fused_destroy(eddy_fused *fused) {
    if (fused)
        eddy_memory_release(fused, bytes_of(fused->member_count), EDDY_MEMORY_PROGRAM);
}
