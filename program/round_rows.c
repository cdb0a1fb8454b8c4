/* Rows of a round (step_rows.h): given to the device as one. */
#include <program/round.h>

#include <streams/backend.h>

/* Nothing of it is skipped. */
const eddy_step_row *eddy_round_find_row(const eddy_round *r) {
    if (!r->run->launch->queue->backend->class->row_begin || !r->is_healthy)
        return NULL;
    return eddy_step_rows_at(&r->executable->step_rows, r->step);
}

static bool has_room(const eddy_round *r, const eddy_step_row *steps) {
    return r->first_ticket + r->state->call_count + (steps->end_step - steps->first_step) <=
           r->run->launch->ticket;
}

/* What wrote the values ahead of the row is not known any more: the round ends there (false), unless it begins there. */
static bool rewind_row(eddy_round *r, const eddy_step_row *steps, const eddy_backend_row *row) {
    for (uint32_t v = 0; v < r->executable->value_count; v++)
        if (r->writer[v] >= row->first)
            r->writer[v] = 0;
    r->step = steps->first_step;
    r->fused = r->key[2 * steps->base_count + 1];
    r->state->call_count = (uint32_t)(row->first - r->first_ticket);
    return r->state->call_count == 0;
}

/* How many of its fusions are made: which these are follows, as none is ever unmade. */
static uint64_t count_made(const eddy_round *r, const eddy_step_row *steps) {
    const eddy_fusions *fusions = &r->executable->fusions;
    uint64_t count = 0;
    for (uint32_t f = eddy_fusions_from(fusions, steps->first_step);
         f < fusions->count && fusions->items[f].first < steps->end_step; f++)
        count += r->is_made[f];
    return count;
}

/* What their launches are made of, and how this round came to it: by that their tickets are as far from their sources'. */
static void describe_row(const eddy_round *r, const eddy_step_row *steps, eddy_backend_row *row) {
    const eddy_step_rows *rows = &r->executable->step_rows;
    const uint32_t *bases = eddy_step_row_bases(rows, steps);
    /* With how large each storage is: by that the health of a value tells whether all of it is written. */
    for (uint32_t k = 0; k < steps->base_count; k++) {
        int64_t operand = bases[k] > 0 ? eddy_health_operand(&r->health, bases[k]) : -1;
        r->key[2 * k] = (uintptr_t)r->frame.bases[bases[k]];
        r->key[2 * k + 1] = operand >= 0 ? (uint64_t)r->bytes[operand] : 0;
    }
    r->key[2 * steps->base_count] = count_made(r, steps);
    r->key[2 * steps->base_count + 1] = r->fused;
    *row = (eddy_backend_row){
        .owner = rows->owner,
        .place = {steps->first_step, r->state->step, r->state->jump, r->state->call_count},
        .key = r->key,
        .key_count = 2 * steps->base_count + 2,
        .count = steps->end_step - steps->first_step,
        .first = r->first_ticket + r->state->call_count};
}

bool eddy_round_launch_row(eddy_round *r, const eddy_step_row *steps) {
    eddy_backend_queue *queue = r->run->launch->queue;
    const eddy_backend_class *class = queue->backend->class;
    eddy_backend_row row;
    if (!has_room(r, steps))
        return r->state->call_count == 0 && eddy_round_launch_calls(r, steps->end_step);
    describe_row(r, steps, &row);
    for (uint32_t i = 0; i < row.count; i++)
        eddy_round_clear_word(r, row.first + i);
    switch (class->row_begin(queue, &row)) {
    case EDDY_ROW_IS_LAUNCHED:
        EDDY_TRACE_AT(KERNEL, .op = "graph", .runtime = eddy_vm_number(r->run->vm),
                      .on = EDDY_ROUND_ON(r),
                      .sequence = eddy_health_sequence(&r->health, eddy_round_instruction(r)));
        eddy_round_note_calls(r, steps->end_step);
        return true;
    case EDDY_ROW_CAPTURES:
        if (class->row_end(queue, &row, eddy_round_launch_calls(r, steps->end_step)))
            return true;
        if (!rewind_row(r, steps, &row))
            return false;
        break;
    case EDDY_ROW_LAUNCHES:
        break;
    }
    return eddy_round_launch_calls(r, steps->end_step);
}
