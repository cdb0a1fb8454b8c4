/* Fusions of a round (fusions.h): one launch, with a ticket for each member all the same, so that whoever looks at the round finds its calls. The launch has the ticket of the member that is blamed for any
 * error of what they read; nothing is said of the others, who are skipped by what they read, and fail only where there is no launch: then all do. */
#include <program/round.h>

#include <base/dtype.h>
#include <streams/team.h>
#include <string.h>

/* ---- whether it may be one launch ---- */

static char *data_of(const eddy_round *r, const eddy_fused_view *view) {
    return r->frame.bases[view->place.base] + view->place.offset;
}

/* Whether a thread may write its elements of one while others read theirs of the other: they share nothing, or each has the same place in both. In an arena they may share what they like. */
static bool is_apart(const eddy_round *r, const eddy_fused_calls *calls, uint32_t output,
                     uint32_t other) {
    const eddy_fused_view *a = &calls->views[output], *b = &calls->views[other];
    const char *of_a = data_of(r, a), *of_b = data_of(r, b);
    if (of_a + a->high <= of_b + b->low || of_b + b->high <= of_a + a->low)
        return true;
    return other < calls->input_count && of_a == of_b &&
           eddy_dtype_size((eddy_dtype)a->dtype) == eddy_dtype_size((eddy_dtype)b->dtype) &&
           memcmp(a->strides, b->strides, (size_t)calls->rank * sizeof(*a->strides)) == 0;
}

static bool are_apart(const eddy_round *r, const eddy_fused_calls *calls) {
    for (uint32_t output = calls->input_count; output < calls->view_count; output++)
        for (uint32_t other = 0; other < output; other++)
            if (!is_apart(r, calls, output, other))
                return false;
    return true;
}

/* False: something is poisoned, or there are too many sources. */
static bool find_sources(const eddy_round *r, const eddy_fused_calls *calls,
                         eddy_backend_launch *launch) {
    for (uint32_t k = 0; k < calls->view_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(r->code, calls->views[k].operand);
        if (eddy_round_is_poisoned(r, operand) || !eddy_round_add_source(r, operand, launch))
            return false;
    }
    return true;
}

bool eddy_round_find_fusion(const eddy_round *r, eddy_round_fusion *fusion) {
    const eddy_fusions *fusions = &r->executable->fusions;
    uint32_t number = eddy_fusions_from(fusions, r->step);
    if (number == fusions->count || fusions->items[number].first != r->step || !r->is_made[number])
        return false;
    /* Passes are off then. */
    EDDY_ASSERT(!eddy_vm_run_checks_finite(r->run));
    const eddy_fused_calls *calls = &fusions->items[number];
    uint64_t first = r->first_ticket + r->state->call_count;
    *fusion = (eddy_round_fusion){
        .calls = calls,
        .launch = {.queue = r->run->launch->queue, .ticket = first + calls->blamed}};
    return first + calls->count <= r->run->launch->ticket &&
           find_sources(r, calls, &fusion->launch) && are_apart(r, calls);
}

/* ---- launching ---- */

void eddy_round_note_fusion(eddy_round *r, const eddy_round_fusion *fusion) {
    r->fused = (r->fused + r->step + 1) * 0x9e3779b97f4a7c15u;
    for (uint32_t m = 0; m < fusion->calls->count; m++)
        eddy_round_note_writes(r, r->step++, fusion->launch.ticket);
    r->state->call_count += fusion->calls->count;
}

static uint64_t ticket_of(const eddy_round_fusion *fusion, uint32_t member) {
    return fusion->launch.ticket - fusion->calls->blamed + member;
}

static void clear_words(const eddy_round *r, const eddy_round_fusion *fusion) {
    for (uint32_t m = 0; m < fusion->calls->count; m++)
        eddy_round_clear_word(r, ticket_of(fusion, m));
}

/* There was no memory for the launch: what its word says is said of all. */
static void fail_all(const eddy_round_fusion *fusion) {
    eddy_backend *backend = fusion->launch.queue->backend;
    const eddy_kernel_error *said = eddy_backend_error(backend, fusion->launch.ticket);
    for (uint32_t m = 0; m < fusion->calls->count; m++)
        *eddy_backend_error(backend, ticket_of(fusion, m)) = *said;
}

void eddy_round_launch_fusion(eddy_round *r, eddy_round_fusion *fusion) {
    const eddy_fused_calls *calls = fusion->calls;
    char *data[EDDY_FUSION_OPERANDS];
    int64_t attributes[EDDY_FUSION_WORDS];
    for (uint32_t k = 0; k < calls->view_count; k++)
        data[k] = data_of(r, &calls->views[k]);
    eddy_fused_calls_fill(calls, r->frame.words, attributes);
    clear_words(r, fusion);
    eddy_team_halt_point();
    eddy_kernel_call call = {
        .team = &eddy_team_serial, .error = &r->frame.error, .launch = &fusion->launch};
    eddy_trace_span span = eddy_round_trace_begin(r, eddy_round_op(r));
    eddy_fused_calls_run(calls, data, attributes, &call);
    eddy_round_trace_end(r, eddy_round_op(r), span);
    if (EDDY_UNLIKELY(fusion->launch.has_failed))
        fail_all(fusion);
    eddy_round_note_fusion(r, fusion);
}
