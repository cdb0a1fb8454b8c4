#include <program/way_tape.h>

#include <base/memory.h>
#include <base/status.h>

/* ---- life ---- */

void eddy_way_tape_init(eddy_way_tape *way, eddy_tensor **outputs, bool *owns, int64_t count) {
    *way = (eddy_way_tape){
        .serial = eddy_recording_next_serial(), .count = count, .outputs = outputs, .owns = owns};
}

void eddy_way_tape_fini(eddy_way_tape *way) {
    eddy_block_drop(way->outputs, way->count);
}

void eddy_way_tape_begin(const eddy_block_call *call, const eddy_way_tape *way,
                         eddy_way_before *before) {
    eddy_recording *recording = call->recording;
    *before = (eddy_way_before){recording->recorder.serial, recording->first_value};
    recording->recorder.serial = way->serial;
    recording->first_value = recording->code.values.count;
}

void eddy_way_tape_end(const eddy_block_call *call, const eddy_way_before *before) {
    call->recording->recorder.serial = before->serial;
    call->recording->first_value = before->first_value;
}

/* ---- outputs ---- */

bool eddy_way_tape_has(const eddy_way_tape *way, const eddy_tensor *tensor) {
    return tensor->autograd && eddy_autograd_node_of(tensor->autograd)->recording == way->serial;
}

/* Of a tensor that is given twice the second one is a copy. */
static bool is_own(const eddy_block_call *call, eddy_tensor *const *given, int64_t i) {
    bool is_first = given[i]->autograd != 0;
    for (int64_t k = 0; k < i; k++)
        is_first &= given[k] != given[i];
    return is_first && eddy_block_is_own(call, given[i]);
}

eddy_status eddy_way_tape_hold(const eddy_block_call *call, eddy_way_tape *way,
                               eddy_tensor *const *given) {
    for (int64_t i = 0; i < way->count && way->owns; i++)
        way->owns[i] = is_own(call, given, i);
    for (int64_t i = 0; i < way->count; i++) {
        if (given[i]->autograd && !eddy_way_tape_has(way, given[i])) {
            eddy_status status = eddy_block_copy(call, given[i], &way->outputs[i]);
            if (status != EDDY_OK)
                return status;
            continue;
        }
        eddy_tensor_retain(given[i]);
        way->outputs[i] = given[i];
    }
    return EDDY_OK;
}

bool eddy_way_tape_is_wanted(const eddy_way_tape *way) {
    for (int64_t i = 0; i < way->count; i++)
        if (way->outputs[i] && way->outputs[i]->autograd)
            return true;
    return false;
}

/* ---- a pass ---- */

eddy_status eddy_way_tape_go_back(const eddy_way_tape *way, eddy_tensor *const *grads,
                                  eddy_origin origin, eddy_backward_found *found) {
    size_t bytes = 2 * (size_t)way->count * sizeof(eddy_tensor *);
    eddy_tensor **from = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_TAPE),
                **seeds = from + way->count;
    int64_t count = 0;
    *found = (eddy_backward_found){0};
    if (!from)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory to go back");
    for (int64_t i = 0; i < way->count; i++) {
        eddy_tensor *output = way->outputs[i];
        if (!eddy_way_tape_has(way, output) || (grads && !grads[i]))
            continue;
        from[count] = output;
        seeds[count++] = grads ? grads[i] : output;
    }
    eddy_status status = EDDY_OK;
    if (count > 0)
        status = eddy_backward_within(way->serial, (eddy_list){from, count},
                                      (eddy_list){seeds, count}, origin, found);
    eddy_memory_release(from, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

eddy_tensor *eddy_way_tape_gradient(const eddy_backward_found *found, eddy_autograd edge) {
    for (uint32_t i = 0; i < found->count; i++)
        if (found->edges[i].word == edge)
            return found->edges[i].gradient;
    return NULL;
}
