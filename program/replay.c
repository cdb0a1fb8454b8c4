/* Runs an executable: the steps between two marks in a row, and one by one from the first that something went wrong at. */
#include <base/dtype.h>
#include <base/status.h>
#include <base/trace.h>
#include <program/control.h>
#include <program/crew.h>
#include <program/front.h>
#include <program/fused.h>
#include <program/path.h>
#include <program/steps.h>
#include <stdio.h>
#include <string.h>
#include <vm/price.h>

/* A run of which each instruction is looked at: poison goes from value to value as it would from call to call. */
typedef struct replay {
    const eddy_executable *executable;
    const eddy_code *code;
    const eddy_vm_run *run;
    const int64_t *shifts;           /* per base but the first */
    const eddy_partition *partition; /* that is run; NULL: all */
    uint32_t *operands;              /* of a partition, per base: 1 + its operand; 0: it has none */
    eddy_frame frame;
    eddy_poison *poison; /* per value; from the first look on */
    void *crew;          /* room for one, where there are several streams */
    uint32_t step, jump; /* where it is: the next step, and the first jump that is not before it */
    char *arena;
    uint32_t end;             /* of its steps */
    eddy_path *path;          /* that it follows: a front's; else NULL */
    void *kept;               /* what it would put back */
    uint64_t before_sequence; /* of the instruction with ordinal 0 */
    bool is_traced, checks_finite;
    uint64_t skipped;
} replay;

/* The operand that the base is; -1: a front or partition does not use it. */
static int64_t operand_of(const replay *r, uint32_t base) {
    if (EDDY_UNLIKELY(r->partition != NULL))
        return (int64_t)r->operands[base] - 1;
    if (EDDY_LIKELY(!r->path))
        return base - 1;
    const eddy_front_base *at = &r->executable->front.bases[base];
    return at->is_used ? (int64_t)at->operand : -1;
}

static void find_bases(replay *r, const eddy_executable_given *given) {
    r->frame.bases[0] = r->arena;
    for (uint32_t b = 1; b < r->executable->base_count; b++) {
        int64_t operand = operand_of(r, b);
        char *data = operand >= 0 ? r->run->data[operand] : NULL;
        r->frame.bases[b] = data ? data + given->shifts[b - 1] : NULL;
    }
}

/* What a step reads before another wrote it shows. */
static void spoil_arena(const replay *r, eddy_part part, size_t bytes) {
#ifdef EDDY_CHECKS
    if (part != EDDY_PART_BACK && bytes > 0)
        memset(r->arena, EDDY_ARENA_UNWRITTEN, bytes);
#else
    (void)r;
    (void)part;
    (void)bytes;
#endif
}

static void find_operands(replay *r, char **at) {
    const eddy_executable *executable = r->executable;
    const eddy_partition_base *bases = eddy_partition_bases(&executable->partitions, r->partition);
    r->operands = eddy_frame_take(at, executable->base_count * sizeof(*r->operands));
    memset(r->operands, 0, executable->base_count * sizeof(*r->operands));
    for (uint32_t k = 0; k < r->partition->base_count; k++)
        r->operands[bases[k].base] = k + 1;
}

/* Where the part begins and ends. */
static void find_steps(replay *r, eddy_part part) {
    const eddy_executable *executable = r->executable;
    if (EDDY_UNLIKELY(r->partition != NULL)) {
        r->before_sequence = r->run->instruction->sequence - r->partition->end_ordinal;
        r->step = r->partition->first_step;
        r->jump = r->partition->first_jump;
        r->end = r->partition->end_step;
        return;
    }
    uint32_t recorded_count =
        part == EDDY_PART_FRONT ? executable->front.recorded_count : r->code->recorded_count;
    r->before_sequence = r->run->instruction->sequence - recorded_count;
    r->step = part == EDDY_PART_BACK ? executable->front.steps : 0;
    r->jump = part == EDDY_PART_BACK ? executable->front.jumps : 0;
    r->end = part == EDDY_PART_FRONT ? executable->front.steps : executable->step_count;
}

static void begin(replay *r, const eddy_executable *executable, const eddy_code *code,
                  const eddy_executable_given *given, const eddy_vm_run *run) {
    char *at = run->workspace;
    *r = (replay){.executable = executable,
                  .code = code,
                  .run = run,
                  .shifts = given->shifts,
                  .path = given->path};
    size_t arena_bytes = (size_t)executable->arena.bytes;
    if (given->part == EDDY_PART_PARTITION) {
        r->partition = &executable->partitions.items[given->partition];
        arena_bytes = (size_t)r->partition->arena_bytes;
    }
    r->arena = given->part == EDDY_PART_FRONT || given->part == EDDY_PART_BACK
                   ? run->data[run->instruction->operand_count - 1]
                   : eddy_frame_take(&at, arena_bytes);
    spoil_arena(r, given->part, arena_bytes);
    if (EDDY_UNLIKELY(r->partition != NULL))
        find_operands(r, &at);
    r->frame.bases = eddy_frame_take(&at, executable->base_count * sizeof(char *));
    eddy_frame_take_rooms(&r->frame, executable, &at);
    r->frame.step_counts =
        eddy_frame_take(&at, executable->jump_count * sizeof(*r->frame.step_counts));
    r->poison = eddy_frame_take(&at, executable->value_count * sizeof(eddy_poison));
    r->kept = r->crew = at;
    find_bases(r, given);
    find_steps(r, given->part);
    r->frame.words = given->words;
    r->frame.late = given->late;
    r->frame.team = run->team;
    r->frame.error.position = INT64_MAX;
    r->is_traced = eddy_trace_is_on();
    r->checks_finite = eddy_vm_run_checks_finite(run);
}

static uint64_t sequence_of(const replay *r, uint32_t i) {
    return r->before_sequence + eddy_code_instruction_at(r->code, i)->ordinal;
}

static bool has_failed(const replay *r) {
    return EDDY_UNLIKELY(eddy_load_relaxed(&r->frame.error.status) != EDDY_OK);
}

static inline void bury(const replay *r, uint32_t step) {
    eddy_executable_bury(r->executable, r->arena, step);
}

/* ---- paths ---- */

/* The calls may go on otherwise, from here or from a later mark. */
static bool may_leave(const replay *r) {
    return EDDY_UNLIKELY(r->path != NULL);
}

static void leave(replay *r, bool has_failed) {
    r->path->is_left = true;
    r->path->has_failed = has_failed;
    r->step = r->end;
    r->jump = r->executable->jump_count;
}

static void turn_back(replay *r, bool has_failed) {
    eddy_front_put_back(r->executable, r->frame.bases, r->kept);
    leave(r, has_failed);
}

/* ---- one by one ---- */

/* Whether the run was given all of a storage as this value. */
static bool is_whole(const replay *r, uint32_t value) {
    uint32_t base = r->executable->value_places[value].base;
    return base > 0 && r->shifts[base - 1] == 0 &&
           r->run->bytes[operand_of(r, base)] == eddy_code_value_at(r->code, value)->bytes;
}

static bool is_input(const replay *r, const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand) ||
        operand->access & (EDDY_CODE_COVERS | EDDY_CODE_MAKES))
        return false;
    return !(operand->access & EDDY_CODE_COVERS_INPUT && is_whole(r, operand->value));
}

static eddy_poison blame_of(const replay *r, const eddy_code_instruction *instruction) {
    eddy_poison lowest = 0;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (is_input(r, operand))
            lowest = eddy_poison_lowest(lowest, r->poison[operand->value]);
    }
    return lowest;
}

/* root 0: the instruction has succeeded. */
static void mark(replay *r, const eddy_code_instruction *instruction, uint64_t root,
                 eddy_poison_state in_place) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        eddy_poison *poison = &r->poison[operand->value];
        if (is_input(r, operand) && !(operand->access & EDDY_CODE_REPLACES))
            *poison = root ? eddy_poison_after_write(*poison, root, in_place) : *poison;
        else
            *poison = root ? eddy_poison_make(root, EDDY_POISON_LOST) : 0;
    }
}

/* What the call says that would have been made outside of a program. */
static void explain(const replay *r, uint32_t i, char *text, size_t size) {
    eddy_vm_instruction shown;
    if (eddy_control_of(eddy_code_instruction_at(r->code, i)->op) == EDDY_CONTROL_LOOP_WHILE) {
        snprintf(text, size, "while: " EDDY_CONTROL_MOST_STEPS,
                 (long long)eddy_load_relaxed(&r->frame.error.position));
        return;
    }
    eddy_executable_instruction(r->executable, r->code, i, &shown);
    if (eddy_step_is_patched(&r->executable->steps[r->step]))
        shown.arguments = eddy_executable_patched(r->executable, i, r->frame.copy);
    shown.descriptor->explain(&shown, &r->frame.error, text, size);
}

/* The instruction of this step has failed: a root of its own. */
static void fail(replay *r, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(r->code, i);
    char text[400] = "";
    explain(r, i, text, sizeof(text));
    eddy_error error;
    eddy_error_fill(&error, (eddy_status)eddy_load_relaxed(&r->frame.error.status),
                    (eddy_origin){instruction->op->name, instruction->address}, sequence_of(r, i),
                    "%s", text);
    /* A loop may come here again. */
    if (!eddy_vm_run_has_failed(r->run, error.sequence))
        eddy_vm_run_fail(r->run, &error);
    mark(r, instruction, error.sequence, EDDY_POISON_TORN);
    r->frame.error = (eddy_kernel_error){.position = INT64_MAX};
}

static void check_finite(replay *r, uint32_t i) {
    eddy_vm_instruction shown;
    eddy_executable_instruction(r->executable, r->code, i, &shown);
    if (!shown.descriptor->check_finite || has_failed(r))
        return;
    const eddy_executable *executable = r->executable;
    uint32_t first = executable->places_at[i], count = executable->places_at[i + 1] - first;
    eddy_frame_find(&r->frame, executable->places + first, count);
    eddy_vm_run run = {.instruction = &shown,
                       .data = r->frame.data,
                       .bytes = executable->place_bytes + first,
                       .team = r->frame.team,
                       .error = &r->frame.error};
    int64_t operand = shown.descriptor->check_finite(&run);
    if (operand < 0)
        return;
    eddy_store_relaxed(&r->frame.error.position, operand);
    eddy_store_relaxed(&r->frame.error.status, EDDY_NOT_FINITE);
}

/* Whether the instruction is skipped, as one of its inputs is poisoned. */
static bool skip(replay *r, const eddy_code_instruction *instruction) {
    eddy_poison blame = blame_of(r, instruction);
    uint32_t late_draw = eddy_code_late_draw(r->code, instruction);
    if (blame == 0)
        return false;
    if (late_draw)
        eddy_late_draws_take(r->frame.late, late_draw - 1);
    mark(r, instruction, eddy_poison_sequence(blame), EDDY_POISON_SKIPPED);
    r->skipped++;
    return true;
}

/* The group that begins with the instruction. */
static const eddy_fused *group_at(const replay *r, uint32_t first) {
    uint32_t low = 0, high = r->code->groups.count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (eddy_code_group_at(r->code, middle)->first <= first)
            low = middle;
        else
            high = middle;
    }
    return r->executable->fused[low];
}

/* Members of a group cannot fail, so that what each of them does to poison is known before they run. */
static void run_group(replay *r, const eddy_step *step, uint32_t first, uint32_t count) {
    const char *name = eddy_code_instruction_at(r->code, first)->op->name;
    for (uint32_t m = 0; m < count; m++) {
        const eddy_code_instruction *member = eddy_code_instruction_at(r->code, first + m);
        if (skip(r, member))
            r->frame.skipped |= UINT32_C(1) << m;
        else
            mark(r, member, 0, EDDY_POISON_NONE);
    }
    if (r->is_traced)
        eddy_trace_begin(EDDY_TRACE_KERNEL, name, sequence_of(r, first));
    /* The step of a group that is one loop knows no single members. */
    if (r->frame.skipped != 0)
        eddy_fused_run(group_at(r, first), &r->frame);
    else
        step->run(step, &r->frame);
    if (r->is_traced)
        eddy_trace_end(EDDY_TRACE_KERNEL, name, sequence_of(r, first));
    r->frame.skipped = 0;
}

static void run_one(replay *r, const eddy_step *step, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(r->code, i);
    if (skip(r, instruction))
        return;
    if (r->is_traced)
        eddy_trace_begin(EDDY_TRACE_KERNEL, instruction->op->name, sequence_of(r, i));
    step->run(step, &r->frame);
    if (r->is_traced)
        eddy_trace_end(EDDY_TRACE_KERNEL, instruction->op->name, sequence_of(r, i));
    if (r->checks_finite)
        check_finite(r, i);
    if (!has_failed(r))
        mark(r, instruction, 0, EDDY_POISON_NONE);
    else if (!may_leave(r))
        fail(r, i);
}

/* The poison of values when the run begins. */
static void look(replay *r) {
    const eddy_executable *executable = r->executable;
    memset(r->poison, 0, executable->value_count * sizeof(*r->poison));
    for (uint32_t b = 1; b < executable->base_count; b++)
        if (operand_of(r, b) >= 0)
            r->poison[executable->base_values[b - 1]] =
                eddy_vm_run_poison(r->run, operand_of(r, b));
}

/* ---- what is written ---- */

static bool is_written(const replay *r, uint32_t base) {
    if (EDDY_UNLIKELY(r->partition != NULL))
        return r->operands[base] != 0 &&
               eddy_partition_bases(&r->executable->partitions, r->partition)[r->operands[base] - 1]
                   .is_written;
    return eddy_code_value_at(r->code, r->executable->base_values[base - 1])->is_written;
}

static bool is_healthy(const replay *r) {
    for (uint32_t b = 1; b < r->executable->base_count; b++)
        if (operand_of(r, b) >= 0 &&
            EDDY_UNLIKELY(eddy_vm_run_poison(r->run, operand_of(r, b)) != 0))
            return false;
    return true;
}

/* ---- marks ---- */

static bool predicate_of(const replay *r, const eddy_jump *jump) {
    return *(const bool *)(r->frame.bases[jump->predicate.base] + jump->predicate.offset);
}

/* Whether one more step of the loop may begin; it fails otherwise. */
static bool count_step(replay *r, const eddy_jump *jump) {
    if (r->frame.step_counts[jump->loop]++ < jump->most_steps || jump->most_steps == 0)
        return true;
    eddy_store_relaxed(&r->frame.error.position, jump->most_steps);
    eddy_store_relaxed(&r->frame.error.status, EDDY_INVALID_ARGUMENT);
    return false;
}

static void go_on(replay *r, const eddy_jump *jump, bool is_next) {
    r->step = is_next ? jump->step + 1 : jump->to_step;
    r->jump = is_next ? r->jump + 1 : jump->to_jump;
}

/* Whether the function's code would go on from here as it did in the recording. */
static bool is_on_path(replay *r, const eddy_jump *jump) {
    const eddy_code_operand *operand =
        eddy_code_operand_at(r->code, eddy_code_instruction_at(r->code, jump->begin)->operands_at);
    eddy_layout layout;
    eddy_code_operand_layout(r->code, operand, &layout);
    return eddy_path_pass(r->path, r->frame.bases[jump->predicate.base] + jump->predicate.offset,
                          &layout, eddy_dtype_size((eddy_dtype)operand->dtype));
}

static void pass_read(replay *r, const eddy_jump *jump) {
    if (!is_on_path(r, jump)) {
        turn_back(r, false);
        return;
    }
    bury(r, jump->step);
    go_on(r, jump, true);
}

/* Passes the mark that comes next. False where it fails. */
static bool pass(replay *r) {
    const eddy_jump *jump = &r->executable->jumps[r->jump];
    bool is_next = true;
    switch ((eddy_control)jump->control) {
    case EDDY_CONTROL_IF:
        is_next = predicate_of(r, jump);
        break;
    case EDDY_CONTROL_LOOP:
        r->frame.step_counts[jump->loop] = 0;
        break;
    case EDDY_CONTROL_LOOP_WHILE:
        is_next = predicate_of(r, jump);
        if (is_next && !count_step(r, jump))
            return false;
        break;
    case EDDY_CONTROL_END_IF:
        break;
    case EDDY_CONTROL_READ:
        pass_read(r, jump);
        return true;
    default:
        is_next = false;
    }
    /* What lives until the end of a loop dies where that is left. */
    if (jump->control == EDDY_CONTROL_LOOP_WHILE && !is_next)
        bury(r, jump->to_step - 1);
    else if (jump->control != EDDY_CONTROL_END_LOOP)
        bury(r, jump->step);
    go_on(r, jump, is_next);
    return true;
}

/* What was there before the run holds what it held, also where all of it would have been written. */
static void pass_writes(replay *r, const eddy_code_instruction *instruction, uint64_t root) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        eddy_poison *poison = &r->poison[operand->value];
        if (eddy_code_value_at(r->code, operand->value)->kind == EDDY_VALUE_MADE)
            *poison = eddy_poison_make(root, EDDY_POISON_LOST);
        else
            *poison = eddy_poison_after_write(*poison, root, EDDY_POISON_SKIPPED);
    }
}

/* Nobody knows which way to go: what any way of the region writes is not what it should be. */
static void pass_over(replay *r, const eddy_jump *jump, uint64_t root) {
    for (uint32_t i = jump->begin; i < jump->end; i++)
        pass_writes(r, eddy_code_instruction_at(r->code, i), root);
    r->step = jump->over_step;
    r->jump = jump->over_jump;
}

/* ---- steps in a row ---- */

/* The step of the next mark, or the end. */
static uint32_t next_mark(const replay *r) {
    uint32_t mark =
        r->jump < r->executable->jump_count ? r->executable->jumps[r->jump].step : r->end;
    return mark < r->end ? mark : r->end;
}

/* Runs steps up to the next mark, or to one that fails, where r->step then is: false. */
static bool run_stretch(replay *r) {
    const eddy_step *first = r->executable->steps, *end = first + next_mark(r);
    for (const eddy_step *step = first + r->step; step < end; step++) {
        step->run(step, &r->frame);
        if (has_failed(r)) {
            r->step = (uint32_t)(step - first);
            return false;
        }
        bury(r, (uint32_t)(step - first));
    }
    r->step = (uint32_t)(end - first);
    return true;
}

/* Runs steps until one fails, where r->step then is: false. */
static bool run_plainly(replay *r) {
    while (run_stretch(r)) {
        if (r->step == r->end)
            return true;
        if (!pass(r))
            return false;
    }
    return false;
}

static void run_step(replay *r) {
    const eddy_executable *executable = r->executable;
    const eddy_step *step = &executable->steps[r->step];
    uint32_t first = executable->first_of[r->step],
             count = executable->first_of[r->step + 1] - first;
    if (count > 1)
        run_group(r, step, first, count);
    else
        run_one(r, step, first);
    if (has_failed(r)) { /* the calls will say so */
        turn_back(r, true);
        return;
    }
    bury(r, r->step);
    r->step++;
}

/* The step has failed that the run has come to. */
static void fail_step(replay *r) {
    if (may_leave(r)) {
        turn_back(r, true);
        return;
    }
    uint32_t i = r->executable->first_of[r->step];
    fail(r, i);
    if (r->step == next_mark(r))
        pass_over(r, &r->executable->jumps[r->jump], sequence_of(r, i));
    else
        r->step++;
}

static void pass_closely(replay *r) {
    const eddy_jump *jump = &r->executable->jumps[r->jump];
    uint32_t i = r->executable->first_of[jump->step];
    eddy_poison blame = blame_of(r, eddy_code_instruction_at(r->code, i));
    if (blame != 0) {
        r->skipped++;
        pass_over(r, jump, eddy_poison_sequence(blame));
    } else if (!pass(r)) {
        fail_step(r);
    }
}

/* What becomes of what was there before the run, and of outputs. */
static void tell(const replay *r) {
    for (uint32_t b = 1; b < r->executable->base_count && !r->path; b++)
        if (is_written(r, b))
            eddy_vm_run_poison_set(r->run, operand_of(r, b),
                                   r->poison[r->executable->base_values[b - 1]]);
    if (r->skipped > 0)
        eddy_vm_run_skip(r->run, r->skipped);
}

static void run_closely(replay *r) {
    while (r->step < r->end)
        if (r->step == next_mark(r))
            pass_closely(r);
        else
            run_step(r);
    tell(r);
}

/* ---- streams ---- */

/* Steps of several streams have failed, or one has: what has not run goes on in the order of the code, so that errors come in that order. A step that has run found
 * all that it depends on healthy, and changes no poison; a failed one left what it did behind. */
static void run_left(replay *r) {
    eddy_crew_reader reader = {.crew = r->crew};
    const eddy_frame *failed;
    look(r);
    while (r->step < r->executable->step_count)
        switch (eddy_crew_read(&reader, r->step, &failed)) {
        case EDDY_CREW_RAN:
            r->step++;
            break;
        case EDDY_CREW_FAILED:
            memcpy(&r->frame.error, &failed->error, sizeof(failed->error));
            r->frame.copy = failed->copy;
            fail_step(r);
            break;
        default:
            run_step(r);
        }
    tell(r);
}

static void run_by_crew(replay *r) {
    if (!eddy_crew_run(r->executable, &r->frame, r->crew))
        run_left(r);
}

static void run_in_a_row(replay *r) {
    if (EDDY_LIKELY(run_plainly(r)))
        return;
    look(r);
    fail_step(r);
    run_closely(r);
}

/* Estimates say that several threads pay; whether they do on this machine, as busy as it is, is measured as it is for helpers of kernels. */
static void run_by_price(replay *r) {
    const eddy_executable *executable = r->executable;
    eddy_price *price = eddy_price_find(executable, (uint32_t)(executable->cost_ps / 1000));
    bool asks = eddy_price_asks_helpers(price);
    int64_t begin_ns = eddy_clock_ns();
    if (asks)
        run_by_crew(r);
    else
        run_in_a_row(r);
    eddy_price_note(price, asks, eddy_clock_ns() - begin_ns);
}

/* ---- all of it ---- */

/* What fails or is poisoned there is the calls' affair, who will say so. */
static void run_front(replay *r) {
    if (!is_healthy(r)) {
        leave(r, true);
        return;
    }
    eddy_front_keep(r->executable, r->frame.bases, r->kept);
    if (r->is_traced || r->checks_finite) {
        look(r);
        run_closely(r);
    } else if (!run_plainly(r)) {
        turn_back(r, true);
    }
}

void eddy_executable_run(const eddy_executable *executable, const eddy_code *code,
                         const eddy_executable_given *given, const eddy_vm_run *run) {
    replay r;
    begin(&r, executable, code, given, run);
    if (given->part == EDDY_PART_FRONT) {
        run_front(&r);
        return;
    }
    if (r.is_traced || r.checks_finite || !is_healthy(&r)) {
        look(&r);
        run_closely(&r);
        return;
    }
    if (executable->streams.count > 1 && run->team->thread_count > 1) {
        if (executable->streams.is_asked_for)
            run_by_crew(&r);
        else
            run_by_price(&r);
        return;
    }
    run_in_a_row(&r);
}
