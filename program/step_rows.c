#include <program/step_rows.h>

#include <base/memory.h>
#include <program/cut.h>
#include <program/executable.h>
#include <program/steps.h>
#include <streams/row_owner.h>

/* Below, one launch of all is hardly cheaper than each. */
#define CALLS_LEAST 4
/* Room is left in a round for what is no part of it. */
#define CALLS_MOST 192

static eddy_step_row *row_at(const eddy_step_rows *rows, uint32_t i) {
    return (eddy_step_row *)rows->items.items + i;
}

static bool is_constant(const eddy_executable *executable, const eddy_code *code, uint32_t step) {
    const eddy_code_instruction *instruction =
        eddy_code_instruction_at(code, executable->first_of[step]);
    return eddy_step_is_constant(&executable->steps[step]) && !instruction->op->is_registered &&
           eddy_cut_has_own_kernels(eddy_code_instruction_device(code, instruction));
}

/* ---- bases ---- */

static bool has_base(const eddy_step_rows *rows, const eddy_step_row *steps, uint32_t base) {
    const uint32_t *bases = eddy_step_row_bases(rows, steps);
    for (uint32_t k = 0; k < steps->base_count; k++)
        if (bases[k] == base)
            return true;
    return false;
}

static bool add_base(eddy_step_rows *rows, eddy_step_row *steps, uint32_t base) {
    uint32_t index;
    if (has_base(rows, steps, base))
        return true;
    if (!eddy_code_array_add(&rows->bases, sizeof(uint32_t), 1, &index))
        return false;
    ((uint32_t *)rows->bases.items)[index] = base;
    steps->base_count++;
    return true;
}

/* The arena is one of them: workspaces lie there, too. */
static bool find_bases(eddy_executable *executable, eddy_step_row *steps) {
    eddy_step_rows *rows = &executable->step_rows;
    steps->bases_at = rows->bases.count;
    if (!add_base(rows, steps, 0))
        return false;
    for (uint32_t step = steps->first_step; step < steps->end_step; step++) {
        uint32_t i = executable->first_of[step];
        for (uint32_t p = executable->places_at[i]; p < executable->places_at[i + 1]; p++)
            if (!add_base(rows, steps, executable->places[p].base))
                return false;
    }
    if (rows->most_bases < steps->base_count)
        rows->most_bases = steps->base_count;
    return true;
}

/* ---- finding ---- */

static bool add(eddy_executable *executable, uint32_t first, uint32_t end) {
    eddy_step_row steps = {.first_step = first, .end_step = end};
    uint32_t index;
    if (end - first < CALLS_LEAST)
        return true;
    if (!find_bases(executable, &steps) ||
        !eddy_code_array_add(&executable->step_rows.items, sizeof(steps), 1, &index))
        return false;
    *row_at(&executable->step_rows, index) = steps;
    return true;
}

bool eddy_step_rows_find(eddy_executable *executable, const eddy_code *code) {
    uint32_t first = 0;
    executable->step_rows.owner = eddy_row_owner_create();
    if (!executable->step_rows.owner)
        return false;
    for (uint32_t step = 0; step <= executable->step_count; step++) {
        bool ends = step == executable->step_count || !is_constant(executable, code, step);
        if (!ends && step - first < CALLS_MOST)
            continue;
        if (!add(executable, first, step))
            return false;
        first = ends ? step + 1 : step;
    }
    return true;
}

const eddy_step_row *eddy_step_rows_around(const eddy_step_rows *rows, uint32_t step) {
    uint32_t low = 0, high = rows->items.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row_at(rows, middle)->end_step <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->items.count && row_at(rows, low)->first_step <= step ? row_at(rows, low)
                                                                            : NULL;
}

const eddy_step_row *eddy_step_rows_at(const eddy_step_rows *rows, uint32_t step) {
    const eddy_step_row *around = eddy_step_rows_around(rows, step);
    return around && around->first_step == step ? around : NULL;
}

void eddy_step_rows_fini(eddy_step_rows *rows) {
    if (rows->owner)
        eddy_store_relaxed(&rows->owner->is_over, true);
    eddy_row_owner_release(rows->owner);
    rows->owner = NULL;
    eddy_code_array_fini(&rows->items, sizeof(eddy_step_row));
    eddy_code_array_fini(&rows->bases, sizeof(uint32_t));
}

int64_t eddy_step_rows_bytes(const eddy_step_rows *rows) {
    return (int64_t)(rows->items.capacity * sizeof(eddy_step_row) +
                     rows->bases.capacity * sizeof(uint32_t));
}
