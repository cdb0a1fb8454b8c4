/* What a recording notes of the tape: which gradients are kept, whose gradient a tensor has, what a backward pass needs. */
#include <interpreter/tape/autograd.h>
#include <program/loop_tape.h>
#include <program/recording.h>

static eddy_recording_kept *find_kept(const eddy_recording *recording,
                                      const struct eddy_autograd_node *node, uint32_t output) {
    eddy_recording_kept *kept = recording->kept.items;
    for (uint32_t i = 0; i < recording->kept.count; i++)
        if (kept[i].node == node && kept[i].output == output)
            return &kept[i];
    return NULL;
}

static void note_before(eddy_recording *recording, struct eddy_autograd_node *node, uint32_t output,
                        const eddy_tensor *gradient, bool depends) {
    if (!eddy_kept_before_note(&recording->befores, node, output, gradient, depends))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"backward", NULL},
                             "no memory to record it");
}

static void record_found(eddy_recorder *recorder, struct eddy_autograd_node *node, uint32_t output,
                         const eddy_tensor *gradient) {
    if (recorder->mode != EDDY_RECORDER_WATCHES)
        note_before((eddy_recording *)(void *)recorder, node, output, gradient, true);
}

/* What the calls see of a tensor that they have made follows from the others, and of an input the signature tells. */
static void record_ask(eddy_recorder *recorder, const eddy_tensor *tensor) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    uint32_t value = eddy_recording_value_of(recording, tensor);
    if (recorder->mode == EDDY_RECORDER_WATCHES || !recording->inputs ||
        (value != EDDY_CODE_NONE &&
         eddy_code_value_at(&recording->code, value)->kind == EDDY_VALUE_MADE))
        return;
    for (int64_t i = 0; i < recording->inputs->count; i++) {
        if (recording->inputs->items[i] == tensor)
            return;
        recording->sees_beyond |= recording->inputs->items[i]->root == tensor->root;
    }
    if (!recording->sees_beyond && !eddy_tape_seen_note_tensor(&recording->seen_of_tape, tensor))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"requires_grad", NULL},
                             "no memory to record it");
}

/* Leaves are few, and are held. Calls from before the recording are not: what becomes of them only the count of all changes tells. */
static void record_come_to(eddy_recorder *recorder, struct eddy_autograd_node *node) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode == EDDY_RECORDER_WATCHES || node->recording >= recording->number)
        return;
    if (!eddy_autograd_is_leaf(node))
        recording->sees_beyond = true;
    else if (!eddy_tape_seen_note_leaf(&recording->seen_of_tape, node))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"backward", NULL},
                             "no memory to record it");
}

static void record_keep(eddy_recorder *recorder, struct eddy_autograd_node *node, uint32_t output,
                        eddy_tensor *before, eddy_tensor *gradient) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    eddy_recording_kept *kept = find_kept(recording, node, output);
    uint32_t index;
    if (recording->depth > 0)
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, (eddy_origin){"backward", NULL},
                             "which gradients are kept would depend on a branch or a loop");
    if (recorder->mode == EDDY_RECORDER_WATCHES)
        return;
    note_before(recording, node, output, before, gradient != NULL);
    if (recorder->mode == EDDY_RECORDER_NOTES &&
        !eddy_recording_note_change(
            recording,
            &(eddy_recording_change){.word = eddy_autograd_make(node, output), .gradient = before}))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"backward", NULL},
                             "no memory to record it");
    if (!kept) {
        if (!eddy_code_array_add(&recording->kept, sizeof(*kept), 1, &index)) {
            eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"backward", NULL},
                                 "no memory to record it");
            return;
        }
        kept = (eddy_recording_kept *)recording->kept.items + index;
        eddy_autograd_node_retain(node);
        *kept = (eddy_recording_kept){.node = node, .output = output};
    }
    if (gradient)
        eddy_tensor_retain(gradient);
    if (kept->gradient)
        eddy_tensor_drop(kept->gradient);
    kept->gradient = gradient;
}

bool eddy_recording_may_overwrite(const eddy_recording *recording, const eddy_tensor *tensor,
                                  uint64_t events) {
    const eddy_recording_guess *guesses = recording->guesses.items;
    for (uint32_t i = 0; i < recording->guesses.count; i++)
        if (guesses[i].root == tensor->root && guesses[i].events > events)
            return true;
    return false;
}

/* Whether the tensor was overwritten the calls cannot tell: versions count the writes of the ways that were taken. */
static void record_needs(eddy_recorder *recorder, const eddy_tensor *saved, uint64_t serial,
                         uint64_t events) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode != EDDY_RECORDER_WATCHES &&
        eddy_recording_may_overwrite(recording, saved, serial < recording->number ? 0 : events))
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, (eddy_origin){"backward", NULL},
                             "it needs what a branch or a loop may have overwritten");
}

/* Whether the function that is being called has made the tensor, or its gradient goes back through that function's calls, or through what a step of a loop is
 * given: nobody else has it. */
static bool is_of_function(const eddy_recording *recording, const eddy_tensor *target, bool is_made,
                           uint32_t value) {
    const eddy_autograd_node *node = eddy_autograd_node_of(target->autograd);
    uint64_t serial = recording->recorder.serial;
    if (serial == recording->number)
        return false;
    return (is_made && value >= recording->first_value) ||
           (node && (node->recording == serial || eddy_loop_tape_is_start(node)));
}

static bool record_redirect(eddy_recorder *recorder, eddy_tensor *target) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    uint32_t value = eddy_recording_value_of(recording, target);
    bool is_made = value != EDDY_CODE_NONE &&
                   eddy_code_value_at(&recording->code, value)->kind == EDDY_VALUE_MADE;
    if (recorder->mode == EDDY_RECORDER_WATCHES || (is_made && recording->depth == 0) ||
        is_of_function(recording, target, is_made, value))
        return true;
    recording->has_redirected = true;
    if (recording->depth > 0)
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, (eddy_origin){"backward", NULL},
                             "whose gradient a tensor has would depend on a branch or a loop");
    if (recorder->mode == EDDY_RECORDER_NOTES &&
        !eddy_recording_note_change(recording, &(eddy_recording_change){.tensor = target,
                                                                        .is_redirected = true,
                                                                        .word = target->autograd}))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, (eddy_origin){"backward", NULL},
                             "no memory to record it");
    return recorder->mode != EDDY_RECORDER_NOTES;
}

/* What the function of a branch or loop has made itself, or a step was given, nobody else has. */
static bool record_watch(eddy_recorder *recorder, const eddy_autograd_node *node,
                         eddy_origin origin) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode == EDDY_RECORDER_WATCHES || recording->depth == 0 ||
        node->recording == recorder->serial || eddy_loop_tape_is_start(node))
        return true;
    eddy_recording_spoil(recording, EDDY_UNSUPPORTED, origin,
                         "who sees a gradient would depend on a branch or a loop");
    return recorder->mode != EDDY_RECORDER_NOTES;
}

void eddy_recording_listen_to_tape(eddy_recording *recording) {
    eddy_recorder *recorder = &recording->recorder;
    recorder->found = record_found;
    recorder->ask = record_ask;
    recorder->come_to = record_come_to;
    recorder->keep = record_keep;
    recorder->redirect = record_redirect;
    recorder->watch = record_watch;
    recorder->needs = record_needs;
}
