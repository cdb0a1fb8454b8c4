/* Whether a recording can become a program: the sentence that eddy_can_record, eddy_record_end and eddy_recorded_explain give. */
#include <program/cut.h>
#include <program/host_read.h>
#include <program/late_calls.h>
#include <program/recording.h>
#include <stdio.h>

bool eddy_recording_check_reach(const eddy_recording *recording, const eddy_code *code,
                                eddy_reach *reach, char *reason, size_t size) {
    uint32_t wrong;
    reason[0] = 0;
    if (!recording->has_marks)
        return true;
    if (!eddy_reach_init(reach, code) || !eddy_reach_pass_all(reach, &wrong))
        return false;
    if (wrong < code->instructions.count)
        snprintf(
            reason, size,
            "%s cannot be part of a program: it uses what one way of a branch alone has made, or a "
            "step of a loop",
            eddy_code_instruction_at(code, wrong)->op->name);
    return true;
}

/* Where marks are open the rest is still to come. */
static void judge_reach(const eddy_recording *recording, char *reason, size_t size) {
    eddy_reach reach = {0};
    if (recording->depth == 0 &&
        !eddy_recording_check_reach(recording, &recording->code, &reach, reason, size))
        snprintf(reason, size, "no memory to look at its branches");
    eddy_reach_fini(&reach);
}

void eddy_recording_judge(const eddy_recording *recording, char *reason, size_t size) {
    reason[0] = 0;
    eddy_status status = eddy_runtime_status(recording->runtime);
    /* An op whose shape depends on data reads it too: what it says comes first. */
    if (status != EDDY_OK)
        snprintf(reason, size, "%s", eddy_status_text(status));
    else if (recording->status != EDDY_OK)
        snprintf(reason, size, "%s cannot be part of a program: %s", recording->spoiled_by.op,
                 recording->reason);
    else if (recording->is_owned && recording->read_count > 0)
        eddy_host_read_describe(recording, reason, size);
    else if (recording->path_bytes > 0 && eddy_control_has_draws(&recording->code))
        snprintf(reason, size, "%s, and it draws random numbers in a branch or a loop; %s",
                 recording->first_computed, EDDY_HOST_READ_INSTEAD);
    else if (recording->is_owned && recording->lost[0])
        snprintf(reason, size, "%s", recording->lost);
    else
        judge_reach(recording, reason, size);
    if (!reason[0])
        eddy_late_calls_judge(&recording->code, reason, size);
    if (!reason[0])
        eddy_cut_judge(&recording->code, reason, size);
}

bool eddy_can_record(char *reason, size_t size) {
    const eddy_caller *caller = eddy_caller_self;
    char text[EDDY_RECORDING_REASON_BYTES] = "no recording is open on this thread";
    if (caller && caller->recorder)
        eddy_recording_judge((const eddy_recording *)(const void *)caller->recorder, text,
                             sizeof(text));
    if (reason && size > 0)
        snprintf(reason, size, "%s", text);
    return !text[0];
}
