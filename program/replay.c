/* Runs an executable: the steps between two marks in a row, and one by one from the first that something went wrong at. */
#include <base/dtype.h>
#include <program/control.h>
#include <program/crew.h>
#include <program/front.h>
#include <program/fused.h>
#include <program/health.h>
#include <program/path.h>
#include <program/shown.h>
#include <program/step_trace.h>
#include <program/steps.h>
#include <string.h>
#include <vm/price.h>

/* A run of which each instruction is looked at: poison goes from value to value as it would from call to call. */
typedef struct replay {
    const eddy_executable *executable;
    const eddy_code *code;
    const eddy_vm_run *run;
    eddy_frame frame;
    eddy_health health;  /* from the first look on */
    void *crew;          /* room for one, where there are several streams */
    uint32_t step, jump; /* where it is: the next step, and the first jump that is not before it */
    char *arena;
    uint32_t end;    /* of its steps */
    eddy_path *path; /* that it follows: a front's; else NULL */
    void *kept;      /* what it would put back */
    bool checks_finite;
} replay;

static void find_bases(replay *r, const eddy_executable_given *given) {
    r->frame.bases[0] = r->arena;
    for (uint32_t b = 1; b < r->executable->base_count; b++) {
        int64_t operand = eddy_health_operand(&r->health, b);
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

/* Where the part begins and ends. */
static void find_steps(replay *r, eddy_part part) {
    const eddy_executable *executable = r->executable;
    const eddy_partition *partition = r->health.partition;
    if (EDDY_UNLIKELY(partition != NULL)) {
        r->health.before_sequence = r->run->instruction->sequence - partition->end_ordinal;
        r->step = partition->first_step;
        r->jump = partition->first_jump;
        r->end = partition->end_step;
        return;
    }
    uint32_t recorded_count =
        part == EDDY_PART_FRONT ? executable->front.recorded_count : r->code->recorded_count;
    r->health.before_sequence = r->run->instruction->sequence - recorded_count;
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
                  .health = {.executable = executable,
                             .code = code,
                             .run = run,
                             .shifts = given->shifts,
                             .bytes = run->bytes,
                             .is_front = given->path != NULL},
                  .path = given->path};
    size_t arena_bytes = (size_t)executable->arena.bytes;
    r->health.partition = eddy_executable_partition(executable, given->part, given->partition);
    if (r->health.partition)
        arena_bytes = (size_t)r->health.partition->arena_bytes;
    r->arena = given->part == EDDY_PART_FRONT || given->part == EDDY_PART_BACK
                   ? run->data[run->instruction->operand_count - 1]
                   : eddy_frame_take(&at, arena_bytes);
    spoil_arena(r, given->part, arena_bytes);
    if (EDDY_UNLIKELY(r->health.partition != NULL)) {
        uint32_t *operands =
            eddy_frame_take(&at, executable->base_count * sizeof(*r->health.operands));
        eddy_health_find_operands(&r->health, operands);
        r->health.operands = operands;
    }
    r->frame.bases = eddy_frame_take(&at, executable->base_count * sizeof(char *));
    eddy_frame_take_rooms(&r->frame, executable, &at);
    r->frame.step_counts =
        eddy_frame_take(&at, executable->jump_count * sizeof(*r->frame.step_counts));
    r->health.poison = eddy_frame_take(&at, executable->value_count * sizeof(eddy_poison));
    r->kept = r->crew = at;
    find_bases(r, given);
    find_steps(r, given->part);
    r->frame.words = given->words;
    r->frame.late = given->late;
    r->frame.team = run->team;
    r->frame.error.position = INT64_MAX;
    r->frame.traced = eddy_trace_hears(EDDY_TRACE_KERNEL) ? &r->health : NULL;
    r->checks_finite = eddy_vm_run_checks_finite(run);
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

/* The instruction of this step has failed: a root of its own. */
static void fail(replay *r, uint32_t i) {
    bool is_patched = eddy_step_is_patched(&r->executable->steps[r->step]);
    eddy_health_fail(&r->health, i, &r->frame.error, is_patched ? r->frame.copy : NULL);
    r->frame.error = (eddy_kernel_error){.position = INT64_MAX};
}

static void check_finite(replay *r, uint32_t i) {
    if (has_failed(r))
        return;
    eddy_shown shown;
    eddy_shown_make(&shown, r->executable, r->code, i, &r->frame, NULL);
    if (!shown.instruction.descriptor->check_finite)
        return;
    int64_t operand = shown.instruction.descriptor->check_finite(&shown.run);
    if (operand < 0)
        return;
    eddy_store_relaxed(&r->frame.error.position, operand);
    eddy_store_relaxed(&r->frame.error.status, EDDY_NOT_FINITE);
}

/* Whether the instruction is skipped, as one of its inputs is poisoned. */
static bool skip(replay *r, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(r->code, i);
    eddy_poison blame = eddy_health_blame(&r->health, instruction);
    uint32_t late_draw = eddy_code_late_draw(r->code, instruction);
    if (blame == 0)
        return false;
    if (late_draw)
        eddy_late_draws_take(r->frame.late, late_draw - 1);
    eddy_health_skip(&r->health, i, blame);
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
    for (uint32_t m = 0; m < count; m++)
        if (skip(r, first + m))
            r->frame.skipped |= UINT32_C(1) << m;
        else
            eddy_health_succeed(&r->health, first + m);
    eddy_trace_span span = eddy_step_trace_begin(&r->frame, r->step);
    /* The step of a group that is one loop knows no single members. */
    if (r->frame.skipped != 0)
        eddy_fused_run(group_at(r, first), &r->frame);
    else
        step->run(step, &r->frame);
    eddy_step_trace_end(&r->frame, r->step, span);
    r->frame.skipped = 0;
}

static void run_one(replay *r, const eddy_step *step, uint32_t i) {
    if (skip(r, i))
        return;
    eddy_step_run(step, &r->frame, r->step);
    if (r->checks_finite)
        check_finite(r, i);
    if (!has_failed(r))
        eddy_health_succeed(&r->health, i);
    else if (!may_leave(r))
        fail(r, i);
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

/* Nobody knows which way to go: what any way of the region writes is not what it should be. */
static void pass_over(replay *r, const eddy_jump *jump, uint64_t root) {
    eddy_health_pass_over(&r->health, jump, root);
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
        eddy_step_run(step, &r->frame, (uint32_t)(step - first));
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
        pass_over(r, &r->executable->jumps[r->jump], eddy_health_sequence(&r->health, i));
    else
        r->step++;
}

static void pass_closely(replay *r) {
    const eddy_jump *jump = &r->executable->jumps[r->jump];
    uint32_t i = r->executable->first_of[jump->step];
    eddy_poison blame = eddy_health_blame(&r->health, eddy_code_instruction_at(r->code, i));
    if (blame != 0) {
        r->health.skipped++;
        pass_over(r, jump, eddy_poison_sequence(blame));
    } else if (!pass(r)) {
        fail_step(r);
    }
}

/* A front changes no poison: it leaves its path where there is any. */
static void tell(const replay *r) {
    if (!r->path)
        eddy_health_tell(&r->health);
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
    eddy_health_look(&r->health);
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
    eddy_health_look(&r->health);
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

size_t eddy_executable_workspace(const eddy_executable *executable, eddy_part part,
                                 uint32_t partition) {
    size_t bytes =
        (size_t)executable->workspace_bytes - eddy_frame_lined((size_t)executable->arena.bytes);
    if (part == EDDY_PART_PARTITION)
        return bytes + eddy_frame_lined(executable->base_count * sizeof(uint32_t)) +
               eddy_frame_lined((size_t)executable->partitions.items[partition].arena_bytes);
    if (part == EDDY_PART_GIVES)
        return 0;
    return part == EDDY_PART_FRONT ? bytes + eddy_front_kept_bytes(executable) : bytes;
}

/* What fails or is poisoned there is the calls' affair, who will say so. */
static void run_front(replay *r) {
    if (!eddy_health_is_good(&r->health)) {
        leave(r, true);
        return;
    }
    eddy_front_keep(r->executable, r->frame.bases, r->kept);
    if (r->checks_finite) {
        eddy_health_look(&r->health);
        run_closely(r);
    } else if (!run_plainly(r)) {
        turn_back(r, true);
    }
}

static void run_all(const eddy_executable *executable, const eddy_code *code,
                    const eddy_executable_given *given, const eddy_vm_run *run) {
    replay r;
    begin(&r, executable, code, given, run);
    if (given->part == EDDY_PART_FRONT) {
        run_front(&r);
        return;
    }
    if (r.checks_finite || !eddy_health_is_good(&r.health)) {
        eddy_health_look(&r.health);
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

void eddy_executable_run(const eddy_executable *executable, const eddy_code *code,
                         const eddy_executable_given *given, const eddy_vm_run *run) {
    const eddy_vm_instruction *view = run->instruction;
    eddy_trace_span span = EDDY_TRACE_BEGIN(
        PROGRAM, .op = view->descriptor->name(view), .runtime = eddy_vm_number(run->vm),
        .sequence = view->sequence, .address = view->address, .instruction = view);
    run_all(executable, code, given, run);
    EDDY_TRACE_END(span, .op = view->descriptor->name(view), .sequence = view->sequence);
}
