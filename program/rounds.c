#include <program/rounds.h>

#include <program/control.h>
#include <program/draw_ops.h>
#include <program/health.h>
#include <program/shown.h>
#include <program/steps.h>
#include <streams/backend.h>

/* What lies in the state of a run, behind each other (eddy_frame_take). */
typedef struct state {
    uint32_t step, jump; /* where the next round begins */
    uint32_t call_count; /* of the round that is under way */
    bool has_begun;
    /* What the round ends with a copy of, which decides how the run goes on: a predicate, or the words of a draw (draw_ops.h). */
    enum { FETCHED_NOTHING, FETCHED_PREDICATE, FETCHED_DRAW } fetched;
    bool predicate;
    int64_t drawn[2];
    uint64_t skipped;
} state;

/* One of the two walks over a round. */
typedef struct walk {
    const eddy_executable *executable;
    const eddy_code *code;
    const eddy_vm_run *run;
    state *state;
    eddy_frame frame; /* launcher only, but for copy, words and step_counts */
    eddy_health health;
    int64_t *bytes;   /* of the run's operands, as its first launch has found them */
    uint64_t *writer; /* per value: the ticket of its last writer; of an earlier round: none */
    uint64_t first_ticket;
    uint32_t step, jump; /* where the walk is */
    uint32_t end;        /* of its steps */
    uint64_t *key;       /* launcher only: room for the key of a row of steps */
    bool is_healthy;     /* launcher only: nothing is poisoned as the round begins */
} walk;

/* ---- where it is ---- */

static void find_steps(walk *r) {
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
    return eddy_frame_lined(sizeof(state)) +
           eddy_frame_lined(executable->base_count * sizeof(char *)) +
           eddy_frame_room_bytes(executable) +
           eddy_frame_lined(executable->jump_count * sizeof(int64_t)) +
           eddy_frame_lined(executable->value_count * sizeof(eddy_poison)) +
           eddy_frame_lined(executable->value_count * sizeof(uint64_t)) +
           eddy_frame_lined(executable->base_count * sizeof(int64_t)) +
           eddy_frame_lined(executable->base_count * sizeof(uint32_t)) +
           eddy_frame_lined(2 * executable->step_rows.most_bases * sizeof(uint64_t));
}

static void begin(walk *r, const eddy_executable *executable, const eddy_code *code,
                  const eddy_executable_given *given, const eddy_vm_run *run) {
    char *at = run->state;
    *r = (walk){.executable = executable,
                .code = code,
                .run = run,
                .state = eddy_frame_take(&at, sizeof(state)),
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
    r->key = eddy_frame_take(&at, 2 * executable->step_rows.most_bases * sizeof(*r->key));
    r->health.skipped = r->state->skipped;
    r->frame.words = given->words;
    r->frame.late = given->late;
    r->frame.error.position = INT64_MAX;
    r->first_ticket = run->launch->ticket - eddy_rounds_call_count(executable, given);
    find_steps(r);
}

static uint32_t instruction_of(const walk *r) {
    return r->executable->first_of[r->step];
}

/* ---- marks ---- */

static bool is_at_mark(const walk *r) {
    return r->jump < r->executable->jump_count && r->executable->jumps[r->jump].step == r->step;
}

/* Whether the way from the mark depends on its predicate. */
static bool decides(const eddy_jump *jump) {
    return jump->control == EDDY_CONTROL_IF || jump->control == EDDY_CONTROL_LOOP_WHILE;
}

static void go_to(walk *r, const eddy_jump *jump, bool is_next) {
    r->step = is_next ? jump->step + 1 : jump->to_step;
    r->jump = is_next ? r->jump + 1 : jump->to_jump;
}

/* Passes marks up to one that decides, or to a step. */
static void pass_plain(walk *r) {
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

static void find_bases(walk *r) {
    r->frame.bases[0] = r->run->workspace;
    for (uint32_t b = 1; b < r->executable->base_count; b++) {
        int64_t operand = eddy_health_operand(&r->health, b);
        char *data = operand >= 0 ? r->run->data[operand] : NULL;
        r->frame.bases[b] = data ? data + r->health.shifts[b - 1] : NULL;
    }
}

/* What the first launch finds. */
static void look(walk *r) {
    if (r->state->has_begun)
        return;
    r->state->has_begun = true;
    /* What a ring gives up comes behind the bases. */
    uint32_t count =
        r->health.partition ? r->health.partition->base_count : r->executable->base_count - 1;
    memcpy(r->bytes, r->run->bytes, count * sizeof(*r->bytes));
    eddy_health_look(&r->health);
}

/* With the ticket of a writer that is not launched, as something that it reads is poisoned. */
#define SKIPPED (UINT64_C(1) << 63)

/* Whether the value was written in this round. */
static bool has_writer(const walk *r, uint32_t value) {
    return (r->writer[value] & ~SKIPPED) >= r->first_ticket;
}

static bool is_bad(const walk *r, uint32_t value) {
    return has_writer(r, value) ? (r->writer[value] & SKIPPED) != 0 : r->health.poison[value] != 0;
}

static bool has_source(const eddy_backend_launch *launch, uint64_t ticket) {
    for (uint32_t i = 0; i < launch->source_count; i++)
        if (launch->sources[i] == ticket)
            return true;
    return false;
}

/* The launch's sources. False: the round ends before the call, since there are too many of them, or since it is a registered op, which looks at none (vm/DEVICES.md 7). */
static bool find_sources(const walk *r, const eddy_code_instruction *instruction,
                         eddy_backend_launch *launch) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (!eddy_health_is_input(&r->health, operand))
            continue;
        launch->writes_in_place |= (operand->access & EDDY_CODE_WRITES) != 0;
        if (!has_writer(r, operand->value))
            continue;
        if (instruction->op->is_registered)
            return false;
        if (has_source(launch, r->writer[operand->value]))
            continue;
        if (launch->source_count == EDDY_BACKEND_SOURCES)
            return false;
        launch->sources[launch->source_count++] = r->writer[operand->value];
    }
    return true;
}

/* Whether it is known by now that the call is skipped: it may have no memory either. */
static bool is_poisoned(const walk *r, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (eddy_health_is_input(&r->health, operand) && is_bad(r, operand->value))
            return true;
    }
    return false;
}

static void note_writes(const walk *r, const eddy_code_instruction *instruction, uint64_t ticket) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (!eddy_code_operand_is_absent(operand) && (operand->access & EDDY_CODE_WRITES))
            r->writer[operand->value] = ticket;
    }
}

/* The attributes that the call runs with, as far as numbers given are among them; NULL: those of the program. */
static void *patched(walk *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    if (!eddy_step_is_patched(step))
        return NULL;
    eddy_step_patch(step, &r->frame);
    return r->frame.copy;
}

/* Between looks at the operands that it reads and at those that it writes. */
static void launch_checked(walk *r, const eddy_step *step) {
    eddy_shown shown;
    eddy_shown_make(&shown, r->executable, r->code, instruction_of(r), &r->frame, patched(r));
    const eddy_vm_descriptor *descriptor = shown.instruction.descriptor;
    if (descriptor->look_finite)
        descriptor->look_finite(&shown.run);
    step->run(step, &r->frame);
    if (descriptor->check_finite)
        (void)descriptor->check_finite(&shown.run);
}

/* A kernel that has no elements may launch nothing: who reads what it writes looks at its word all the same. */
static void launch_step(walk *r, const eddy_step *step, eddy_backend_launch *launch) {
    EDDY_ASSERT(launch->ticket < r->run->launch->ticket);
    *eddy_backend_error(launch->queue->backend, launch->ticket) =
        (eddy_kernel_error){.position = INT64_MAX};
    r->frame.launch = launch;
    if (EDDY_UNLIKELY(eddy_vm_run_checks_finite(r->run)))
        launch_checked(r, step);
    else
        step->run(step, &r->frame);
    if (launch->source_count > 0 && !launch->has_looked)
        (void)launch->queue->backend->class->look(launch);
}

/* Its draw is taken all the same, as by a call. */
static void launch_nothing(const walk *r, const eddy_code_instruction *instruction,
                           const eddy_backend_launch *launch) {
    uint32_t late_draw = eddy_code_late_draw(r->code, instruction);
    if (late_draw)
        eddy_late_draws_take(r->frame.late, late_draw - 1);
    (void)launch->queue->backend->class->skip(launch->queue, launch->ticket);
}

/* False: the round ends before it. */
static bool launch_call(walk *r) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(r->code, instruction_of(r));
    eddy_backend_launch launch = {.queue = r->run->launch->queue,
                                  .ticket = r->first_ticket + r->state->call_count};
    bool skips = is_poisoned(r, instruction);
    if (launch.ticket == r->run->launch->ticket ||
        (!skips && !find_sources(r, instruction, &launch)))
        return false;
    if (skips)
        launch_nothing(r, instruction, &launch);
    else
        launch_step(r, &r->executable->steps[r->step], &launch);
    note_writes(r, instruction, skips ? launch.ticket | SKIPPED : launch.ticket);
    r->state->call_count++;
    r->step++;
    return true;
}

/* What has no memory is poisoned, and not looked at. */
static void fetch(const walk *r, const eddy_place *place, int64_t offset, void *to, size_t bytes) {
    eddy_backend_queue *queue = r->run->launch->queue;
    const char *base = r->frame.bases[place->base];
    if (base)
        (void)queue->backend->class->copy(queue, to, base + place->offset + offset, (int64_t)bytes,
                                          EDDY_COPY_TO_HOST);
}

static void fetch_predicate(const walk *r) {
    r->state->fetched = FETCHED_PREDICATE;
    fetch(r, &r->executable->jumps[r->jump].predicate, 0, &r->state->predicate,
          sizeof(r->state->predicate));
}

static bool sets_draw(const walk *r) {
    return eddy_draw_op_sets(eddy_code_instruction_at(r->code, instruction_of(r))->op);
}

static void fetch_draw(const walk *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    int64_t stride = step->kernel.call->views[0].strides[0];
    r->state->fetched = FETCHED_DRAW;
    for (int64_t i = 0; i < 2; i++)
        fetch(r, &step->kernel.places[0], i * stride * (int64_t)sizeof(int64_t),
              &r->state->drawn[i], sizeof(int64_t));
}

/* ---- rows of launches ---- */

/* What wrote the values ahead of the row is not known any more: the round ends there (false), unless it begins there. */
static bool rewind_row(walk *r, const eddy_step_row *steps, const eddy_backend_row *row) {
    for (uint32_t v = 0; v < r->executable->value_count; v++)
        if (r->writer[v] >= row->first)
            r->writer[v] = 0;
    r->step = steps->first_step;
    r->state->call_count = (uint32_t)(row->first - r->first_ticket);
    return r->state->call_count == 0;
}

/* What their launches are made of, and how this round came to it: by that their tickets are as far from their sources'. */
static void describe_row(const walk *r, const eddy_step_row *steps, eddy_backend_row *row) {
    const eddy_step_rows *rows = &r->executable->step_rows;
    const uint32_t *bases = eddy_step_row_bases(rows, steps);
    /* With how large each storage is: by that the health of a value tells whether all of it is written. */
    for (uint32_t k = 0; k < steps->base_count; k++) {
        int64_t operand = bases[k] > 0 ? eddy_health_operand(&r->health, bases[k]) : -1;
        r->key[2 * k] = (uintptr_t)r->frame.bases[bases[k]];
        r->key[2 * k + 1] = operand >= 0 ? (uint64_t)r->bytes[operand] : 0;
    }
    *row = (eddy_backend_row){
        .program = rows->number,
        .place = {steps->first_step, r->state->step, r->state->jump, r->state->call_count},
        .key = r->key,
        .key_count = 2 * steps->base_count,
        .count = steps->end_step - steps->first_step,
        .first = r->first_ticket + r->state->call_count};
}

static bool launch_calls(walk *r, uint32_t end) {
    while (r->step < end)
        if (!launch_call(r))
            return false;
    return true;
}

/* Who comes behind them finds them as if each had been launched. */
static void note_calls(walk *r, uint32_t end) {
    for (; r->step < end; r->step++)
        note_writes(r, eddy_code_instruction_at(r->code, instruction_of(r)),
                    r->first_ticket + r->state->call_count++);
}

static void clear_words(const walk *r, const eddy_backend_row *row) {
    eddy_backend *backend = r->run->launch->queue->backend;
    for (uint64_t ticket = row->first; ticket < row->first + row->count; ticket++)
        *eddy_backend_error(backend, ticket) = (eddy_kernel_error){.position = INT64_MAX};
}

/* By one launch, if the device has come to know them, else one by one. False: the round ends before something of it. */
static bool launch_row(walk *r, const eddy_step_row *steps) {
    eddy_backend_queue *queue = r->run->launch->queue;
    const eddy_backend_class *class = queue->backend->class;
    eddy_backend_row row;
    describe_row(r, steps, &row);
    clear_words(r, &row);
    switch (class->row_begin(queue, &row)) {
    case EDDY_ROW_IS_LAUNCHED:
        note_calls(r, steps->end_step);
        return true;
    case EDDY_ROW_CAPTURES:
        if (class->row_end(queue, &row, launch_calls(r, steps->end_step)))
            return true;
        if (!rewind_row(r, steps, &row))
            return false;
        break;
    case EDDY_ROW_LAUNCHES:
        break;
    }
    return launch_calls(r, steps->end_step);
}

/* The row that begins here, if it may be launched as one: nothing of it is skipped. */
static const eddy_step_row *find_row(const walk *r) {
    if (!r->run->launch->queue->backend->class->row_begin || !r->is_healthy)
        return NULL;
    return eddy_step_rows_at(&r->executable->step_rows, r->step);
}

static bool has_room(const walk *r, const eddy_step_row *steps) {
    return r->first_ticket + r->state->call_count + (steps->end_step - steps->first_step) <=
           r->run->launch->ticket;
}

static bool is_healthy(const walk *r) {
    for (uint32_t v = 0; v < r->executable->value_count; v++)
        if (r->health.poison[v] != 0)
            return false;
    return true;
}

/* The step, or all of a row that begins with it. False: the round ends before something of it. */
static bool launch_next(walk *r) {
    const eddy_step_row *steps = find_row(r);
    if (!steps)
        return launch_call(r);
    if (!has_room(r, steps))
        return r->state->call_count == 0 && launch_calls(r, steps->end_step);
    return launch_row(r, steps);
}

void eddy_rounds_launch(const eddy_executable *executable, const eddy_code *code,
                        const eddy_executable_given *given, const eddy_vm_run *run) {
    walk r;
    begin(&r, executable, code, given, run);
    look(&r);
    find_bases(&r);
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

static void look_at_call(walk *r, uint32_t number) {
    uint32_t i = instruction_of(r);
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    const eddy_kernel_error *error =
        eddy_backend_error(r->run->launch->queue->backend, r->first_ticket + number);
    if (blame != 0) {
        eddy_health_skip(&r->health, i, blame);
    } else if (eddy_load_acquire(&error->status) == EDDY_OK) {
        eddy_health_succeed(&r->health, i);
    } else {
        EDDY_ASSERT(eddy_load_acquire(&error->status) != (int32_t)EDDY_SKIPPED);
        eddy_health_fail(&r->health, i, error, patched(r));
    }
    r->step++;
}

static void pass_over(walk *r, const eddy_jump *jump, uint64_t root) {
    eddy_health_pass_over(&r->health, jump, root);
    r->step = jump->over_step;
    r->jump = jump->over_jump;
}

/* Whether one more step of the loop may begin. */
static bool count_step(const walk *r, const eddy_jump *jump) {
    return r->frame.step_counts[jump->loop]++ < jump->most_steps || jump->most_steps == 0;
}

static void pass_deciding(walk *r) {
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
static void set_draw(walk *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    uint32_t i = instruction_of(r);
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    if (blame != 0)
        eddy_health_skip(&r->health, i, blame);
    for (uint32_t k = 0; k < step->kernel.patch_count && blame == 0; k++)
        r->frame.late->words[step->kernel.patches[k].from] = r->state->drawn[k];
    r->step++;
}

bool eddy_rounds_go_on(const eddy_executable *executable, const eddy_code *code,
                       const eddy_executable_given *given, const eddy_vm_run *run) {
    walk r;
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
