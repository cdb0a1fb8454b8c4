#include <program/rounds.h>

#include <program/control.h>
#include <program/draw_ops.h>
#include <program/round.h>
#include <program/steps.h>
#include <streams/backend.h>

/* ---- where it is ---- */

static void find_steps(eddy_round *r) {
    const eddy_partition *partition = r->health.partition;
    uint64_t sequence = r->run->instruction->sequence;
    r->end = partition ? partition->end_step : r->executable->step_count;
    r->health.before_sequence =
        sequence - (partition ? partition->end_ordinal : r->code->recorded_count);
    if (!r->state->has_begun) {
        r->state->step = partition ? partition->first_step : 0;
        r->state->jump = partition ? partition->first_jump : 0;
    }
    r->step = r->state->step;
    r->jump = r->state->jump;
}

uint32_t eddy_rounds_call_count(const eddy_executable *executable,
                                const eddy_executable_given *given) {
    const eddy_partition *partition =
        eddy_executable_partition(executable, given->part, given->partition);
    uint32_t steps =
        partition ? partition->end_step - partition->first_step : executable->step_count;
    return steps < EDDY_ROUND_CALLS_MOST ? steps : EDDY_ROUND_CALLS_MOST;
}

size_t eddy_rounds_state_bytes(const eddy_executable *executable) {
    return eddy_frame_lined(sizeof(eddy_round_state)) +
           eddy_frame_lined(executable->base_count * sizeof(char *)) +
           eddy_frame_room_bytes(executable) +
           eddy_frame_lined(executable->jump_count * sizeof(int64_t)) +
           eddy_frame_lined(executable->value_count * sizeof(eddy_poison)) +
           eddy_frame_lined(executable->value_count * sizeof(uint64_t)) +
           eddy_frame_lined(executable->base_count * sizeof(int64_t)) +
           eddy_frame_lined(executable->base_count * sizeof(uint32_t)) +
           eddy_frame_lined(eddy_round_key_room(executable) * sizeof(uint64_t)) +
           eddy_frame_lined(executable->fusions.count * sizeof(bool));
}

static void begin(eddy_round *r, const eddy_executable *executable, const eddy_code *code,
                  const eddy_executable_given *given, const eddy_vm_run *run) {
    char *at = run->state;
    *r = (eddy_round){.executable = executable,
                      .code = code,
                      .run = run,
                      .state = eddy_frame_take(&at, sizeof(eddy_round_state)),
                      .health = {.executable = executable,
                                 .code = code,
                                 .run = run,
                                 .shifts = given->shifts,
                                 .partition = eddy_executable_partition(executable, given->part,
                                                                        given->partition)}};
    r->frame.bases = eddy_frame_take(&at, executable->base_count * sizeof(char *));
    eddy_frame_take_rooms(&r->frame, executable, &at);
    r->frame.step_counts = eddy_frame_take(&at, executable->jump_count * sizeof(int64_t));
    r->health.poison = eddy_frame_take(&at, executable->value_count * sizeof(eddy_poison));
    r->writer = eddy_frame_take(&at, executable->value_count * sizeof(*r->writer));
    r->health.bytes = r->bytes = eddy_frame_take(&at, executable->base_count * sizeof(*r->bytes));
    uint32_t *operands = eddy_frame_take(&at, executable->base_count * sizeof(*operands));
    if (r->health.partition)
        eddy_health_find_operands(&r->health, operands);
    r->health.operands = operands;
    r->key = eddy_frame_take(&at, eddy_round_key_room(executable) * sizeof(*r->key));
    r->is_made = eddy_frame_take(&at, executable->fusions.count * sizeof(*r->is_made));
    r->health.skipped = r->state->skipped;
    r->frame.words = given->words;
    r->frame.late = given->late;
    r->frame.error.position = INT64_MAX;
    r->first_ticket = run->launch->ticket - eddy_rounds_call_count(executable, given);
    find_steps(r);
}

/* ---- marks ---- */

static bool is_at_mark(const eddy_round *r) {
    return r->jump < r->executable->jump_count && r->executable->jumps[r->jump].step == r->step;
}

/* Whether the way from the mark depends on its predicate. */
static bool decides(const eddy_jump *jump) {
    return jump->control == EDDY_CONTROL_IF || jump->control == EDDY_CONTROL_LOOP_WHILE;
}

static void go_to(eddy_round *r, const eddy_jump *jump, bool is_next) {
    r->step = is_next ? jump->step + 1 : jump->to_step;
    r->jump = is_next ? r->jump + 1 : jump->to_jump;
}

/* Passes marks up to one that decides, or to a step. */
static void pass_plain(eddy_round *r) {
    while (r->step < r->end && is_at_mark(r)) {
        const eddy_jump *jump = &r->executable->jumps[r->jump];
        if (decides(jump))
            return;
        if (jump->control == EDDY_CONTROL_LOOP)
            r->frame.step_counts[jump->loop] = 0;
        go_to(r, jump, jump->control == EDDY_CONTROL_LOOP || jump->control == EDDY_CONTROL_END_IF);
    }
}

/* ---- launching ---- */

static void find_bases(eddy_round *r) {
    r->frame.bases[0] = r->run->workspace;
    for (uint32_t b = 1; b < r->executable->base_count; b++) {
        int64_t operand = eddy_health_operand(&r->health, b);
        char *data = operand >= 0 ? r->run->data[operand] : NULL;
        r->frame.bases[b] = data ? data + r->health.shifts[b - 1] : NULL;
    }
}

/* What the first launch finds. */
static void look(eddy_round *r) {
    if (r->state->has_begun)
        return;
    r->state->has_begun = true;
    /* What a ring gives up comes behind the bases. */
    uint32_t count =
        r->health.partition ? r->health.partition->base_count : r->executable->base_count - 1;
    memcpy(r->bytes, r->run->bytes, count * sizeof(*r->bytes));
    eddy_health_look(&r->health);
}

/* What has no memory is poisoned, and not looked at. */
static void fetch(const eddy_round *r, const eddy_place *place, int64_t offset, void *to,
                  size_t bytes) {
    eddy_backend_queue *queue = r->run->launch->queue;
    const char *base = r->frame.bases[place->base];
    if (base)
        (void)queue->backend->class->copy(queue, to, base + place->offset + offset, (int64_t)bytes,
                                          EDDY_COPY_TO_HOST);
}

static void fetch_predicate(const eddy_round *r) {
    r->state->fetched = FETCHED_PREDICATE;
    fetch(r, &r->executable->jumps[r->jump].predicate, 0, &r->state->predicate,
          sizeof(r->state->predicate));
}

static bool sets_draw(const eddy_round *r) {
    return eddy_draw_op_sets(eddy_code_instruction_at(r->code, eddy_round_instruction(r))->op);
}

static void fetch_draw(const eddy_round *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    int64_t stride = step->kernel.call->views[0].strides[0];
    r->state->fetched = FETCHED_DRAW;
    for (int64_t i = 0; i < 2; i++)
        fetch(r, &step->kernel.places[0], i * stride * (int64_t)sizeof(int64_t),
              &r->state->drawn[i], sizeof(int64_t));
}

static bool is_healthy(const eddy_round *r) {
    for (uint32_t v = 0; v < r->executable->value_count; v++)
        if (r->health.poison[v] != 0)
            return false;
    return true;
}

/* The step, or all of a row that begins with it. False: the round ends before something of it. */
static bool launch_next(eddy_round *r) {
    const eddy_step_row *steps = eddy_round_find_row(r);
    return steps ? eddy_round_launch_row(r, steps) : eddy_round_launch_next(r);
}

static void find_made(eddy_round *r) {
    const eddy_fusions *fusions = &r->executable->fusions;
    for (uint32_t f = 0; f < fusions->count; f++)
        r->is_made[f] = eddy_made_kernel_ready(fusions->items[f].kernel) != NULL;
}

void eddy_rounds_launch(const eddy_executable *executable, const eddy_code *code,
                        const eddy_executable_given *given, const eddy_vm_run *run) {
    eddy_round r;
    begin(&r, executable, code, given, run);
    look(&r);
    find_bases(&r);
    find_made(&r);
    r.is_healthy = is_healthy(&r);
    r.state->call_count = 0;
    r.state->fetched = FETCHED_NOTHING;
    for (;;) {
        pass_plain(&r);
        if (r.step == r.end)
            return;
        if (is_at_mark(&r)) {
            fetch_predicate(&r);
            return;
        }
        if (sets_draw(&r)) {
            fetch_draw(&r);
            return;
        }
        if (!launch_next(&r))
            return;
    }
}

/* ---- looking ---- */

static void look_at_call(eddy_round *r, uint32_t number) {
    uint32_t i = eddy_round_instruction(r);
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    const eddy_kernel_error *error =
        eddy_backend_error(r->run->launch->queue->backend, r->first_ticket + number);
    if (blame != 0) {
        eddy_health_skip(&r->health, i, blame);
    } else if (eddy_load_acquire(&error->status) == EDDY_OK) {
        eddy_health_succeed(&r->health, i);
    } else {
        EDDY_ASSERT(eddy_load_acquire(&error->status) != (int32_t)EDDY_SKIPPED);
        eddy_health_fail(&r->health, i, error, eddy_round_patched(r));
    }
    r->step++;
}

static void pass_over(eddy_round *r, const eddy_jump *jump, uint64_t root) {
    eddy_health_pass_over(&r->health, jump, root);
    r->step = jump->over_step;
    r->jump = jump->over_jump;
}

/* Whether one more step of the loop may begin. */
static bool count_step(const eddy_round *r, const eddy_jump *jump) {
    return r->frame.step_counts[jump->loop]++ < jump->most_steps || jump->most_steps == 0;
}

static void pass_deciding(eddy_round *r) {
    const eddy_jump *jump = &r->executable->jumps[r->jump];
    uint32_t i = r->executable->first_of[jump->step];
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    if (blame != 0) {
        r->health.skipped++;
        pass_over(r, jump, eddy_poison_sequence(blame));
    } else if (jump->control == EDDY_CONTROL_LOOP_WHILE && r->state->predicate &&
               !count_step(r, jump)) {
        eddy_kernel_error error = {.status = EDDY_INVALID_ARGUMENT, .position = jump->most_steps};
        eddy_health_fail(&r->health, i, &error, NULL);
        pass_over(r, jump, eddy_health_sequence(&r->health, i));
    } else {
        go_to(r, jump, r->state->predicate);
    }
}

/* Words of the run, which the calls behind it get. */
static void set_draw(eddy_round *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    uint32_t i = eddy_round_instruction(r);
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    if (blame != 0)
        eddy_health_skip(&r->health, i, blame);
    for (uint32_t k = 0; k < step->kernel.patch_count && blame == 0; k++)
        r->frame.late->words[step->kernel.patches[k].from] = r->state->drawn[k];
    r->step++;
}

bool eddy_rounds_go_on(const eddy_executable *executable, const eddy_code *code,
                       const eddy_executable_given *given, const eddy_vm_run *run) {
    eddy_round r;
    begin(&r, executable, code, given, run);
    for (uint32_t number = 0; number < r.state->call_count; number++) {
        pass_plain(&r);
        look_at_call(&r, number);
    }
    pass_plain(&r);
    if (r.state->fetched == FETCHED_PREDICATE)
        pass_deciding(&r);
    else if (r.state->fetched == FETCHED_DRAW)
        set_draw(&r);
    pass_plain(&r);
    r.state->step = r.step;
    r.state->jump = r.jump;
    r.state->skipped = r.health.skipped;
    if (r.step < r.end)
        return true;
    eddy_health_tell(&r.health);
    return false;
}
