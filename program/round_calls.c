/* The launches of a round. */
#include <program/round.h>

#include <program/shown.h>
#include <program/steps.h>
#include <streams/backend.h>

/* With the ticket of a writer that is not launched, as something that it reads is poisoned. */
#define SKIPPED (UINT64_C(1) << 63)

/* Whether the value was written in this round. */
static bool has_writer(const eddy_round *r, uint32_t value) {
    return (r->writer[value] & ~SKIPPED) >= r->first_ticket;
}

bool eddy_round_is_poisoned(const eddy_round *r, const eddy_code_operand *operand) {
    if (!eddy_health_is_input(&r->health, operand))
        return false;
    return has_writer(r, operand->value) ? (r->writer[operand->value] & SKIPPED) != 0
                                         : r->health.poison[operand->value] != 0;
}

static bool has_source(const eddy_backend_launch *launch, uint64_t ticket) {
    for (uint32_t i = 0; i < launch->source_count; i++)
        if (launch->sources[i] == ticket)
            return true;
    return false;
}

bool eddy_round_add_source(const eddy_round *r, const eddy_code_operand *operand,
                           eddy_backend_launch *launch) {
    if (!eddy_health_is_input(&r->health, operand))
        return true;
    launch->writes_in_place |= (operand->access & EDDY_CODE_WRITES) != 0;
    uint64_t ticket = r->writer[operand->value];
    if (!has_writer(r, operand->value) || has_source(launch, ticket))
        return true;
    if (launch->source_count == EDDY_BACKEND_SOURCES)
        return false;
    launch->sources[launch->source_count++] = ticket;
    return true;
}

/* The launch's sources. False: the round ends before the call, since there are too many of them, or since it is a registered op, which looks at none (vm/DEVICES.md 7). */
static bool find_sources(const eddy_round *r, const eddy_code_instruction *instruction,
                         eddy_backend_launch *launch) {
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (!eddy_round_add_source(r, eddy_code_operand_at(r->code, instruction->operands_at + k),
                                   launch))
            return false;
    return !instruction->op->is_registered || launch->source_count == 0;
}

/* Whether it is known by now that the call is skipped: it may have no memory either. */
static bool is_poisoned(const eddy_round *r, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (eddy_round_is_poisoned(r, eddy_code_operand_at(r->code, instruction->operands_at + k)))
            return true;
    return false;
}

void eddy_round_note_writes(const eddy_round *r, uint32_t step, uint64_t ticket) {
    const eddy_code_instruction *instruction =
        eddy_code_instruction_at(r->code, r->executable->first_of[step]);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(r->code, instruction->operands_at + k);
        if (!eddy_code_operand_is_absent(operand) && (operand->access & EDDY_CODE_WRITES))
            r->writer[operand->value] = ticket;
    }
}

void *eddy_round_patched(eddy_round *r) {
    const eddy_step *step = &r->executable->steps[r->step];
    if (!eddy_step_is_patched(step))
        return NULL;
    eddy_step_patch(step, &r->frame);
    return r->frame.copy;
}

/* Between looks at the operands that it reads and at those that it writes. */
static void launch_checked(eddy_round *r, const eddy_step *step) {
    eddy_shown shown;
    eddy_shown_make(&shown, r->executable, r->code, eddy_round_instruction(r), &r->frame,
                    eddy_round_patched(r));
    const eddy_vm_descriptor *descriptor = shown.instruction.descriptor;
    if (descriptor->look_finite)
        descriptor->look_finite(&shown.run);
    step->run(step, &r->frame);
    if (descriptor->check_finite)
        (void)descriptor->check_finite(&shown.run);
}

/* A kernel that has no elements may launch nothing: who reads what it writes looks at its word all the same. */
static void launch_step(eddy_round *r, const eddy_step *step, eddy_backend_launch *launch) {
    EDDY_ASSERT(launch->ticket < r->run->launch->ticket);
    eddy_round_clear_word(r, launch->ticket);
    r->frame.launch = launch;
    eddy_trace_span span = eddy_round_trace_begin(r, eddy_round_op(r));
    if (EDDY_UNLIKELY(eddy_vm_run_checks_finite(r->run)))
        launch_checked(r, step);
    else
        step->run(step, &r->frame);
    eddy_round_trace_end(r, eddy_round_op(r), span);
    if (launch->source_count > 0 && !launch->has_looked)
        (void)launch->queue->backend->class->look(launch);
}

/* Its draw is taken all the same, as by a call. */
static void launch_nothing(const eddy_round *r, const eddy_code_instruction *instruction,
                           const eddy_backend_launch *launch) {
    uint32_t late_draw = eddy_code_late_draw(r->code, instruction);
    if (late_draw)
        eddy_late_draws_take(r->frame.late, late_draw - 1);
    (void)launch->queue->backend->class->skip(launch->queue, launch->ticket);
}

/* False: the round ends before it. */
static bool launch_call(eddy_round *r) {
    const eddy_code_instruction *instruction =
        eddy_code_instruction_at(r->code, eddy_round_instruction(r));
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
    eddy_round_note_writes(r, r->step, skips ? launch.ticket | SKIPPED : launch.ticket);
    r->state->call_count++;
    r->step++;
    return true;
}

bool eddy_round_launch_next(eddy_round *r) {
    eddy_round_fusion fusion;
    if (!eddy_round_find_fusion(r, &fusion))
        return launch_call(r);
    eddy_round_launch_fusion(r, &fusion);
    return true;
}

bool eddy_round_launch_calls(eddy_round *r, uint32_t end) {
    while (r->step < end)
        if (!eddy_round_launch_next(r))
            return false;
    return true;
}

void eddy_round_note_calls(eddy_round *r, uint32_t end) {
    while (r->step < end) {
        eddy_round_fusion fusion;
        if (eddy_round_find_fusion(r, &fusion))
            eddy_round_note_fusion(r, &fusion);
        else
            eddy_round_note_writes(r, r->step++, r->first_ticket + r->state->call_count++);
    }
}
