/* Calls that are recorded and do not run: what they change beside the code is taken back when that ends. */
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/recording.h>

eddy_status eddy_recording_note_only(eddy_recording *recording, eddy_origin origin) {
    if (recording->recorder.lost == 0) {
        eddy_error error;
        eddy_error_fill(&error, EDDY_UNSUPPORTED, origin, 0,
                        "it is the result of a call that was recorded and did not run");
        eddy_status status = eddy_vm_note_failure(recording->runtime->vm, &error, origin);
        if (status != EDDY_OK)
            return status;
        recording->recorder.lost = error.sequence;
    }
    recording->recorder.mode = EDDY_RECORDER_NOTES;
    return EDDY_OK;
}

bool eddy_recording_note_change(eddy_recording *recording, const eddy_recording_change *change) {
    uint32_t index;
    if (!eddy_code_array_add(&recording->changes, sizeof(*change), 1, &index))
        return false;
    if (change->tensor)
        eddy_tensor_retain(change->tensor);
    if (change->word)
        eddy_autograd_node_retain(eddy_autograd_node_of(change->word));
    if (change->gradient)
        eddy_tensor_retain(change->gradient);
    ((eddy_recording_change *)recording->changes.items)[index] = *change;
    return true;
}

/* Gives the references up, or passes them on. */
static void take_back(eddy_recording *recording, const eddy_recording_change *change) {
    if (!change->tensor) {
        eddy_autograd_node *node = eddy_autograd_node_of(change->word);
        eddy_autograd_kept_set(node, eddy_autograd_output_of(change->word), change->gradient);
        eddy_autograd_node_release(node);
        return;
    }
    if (change->is_redirected)
        eddy_autograd_set(change->tensor, change->word);
    else
        eddy_recording_unwrite(recording, change->tensor);
    eddy_tensor_drop(change->tensor);
}

void eddy_recording_take_back(eddy_recording *recording, uint32_t count) {
    const eddy_recording_change *changes = recording->changes.items;
    while (recording->changes.count > count)
        take_back(recording, &changes[--recording->changes.count]);
}
