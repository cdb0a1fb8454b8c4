/* Whether a recording can become a program: the sentence that eddy_can_record, eddy_record_end and eddy_recorded_explain give. */
#include <program/recording.h>
#include <stdio.h>

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
        snprintf(reason, size, "the function reads values of tensors");
    else if (recording->is_owned && recording->lost)
        snprintf(reason, size,
                 "a number that was given is used in a way that a replay cannot follow");
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
