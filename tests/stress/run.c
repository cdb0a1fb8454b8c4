#include "run.h"

#include "../vm/synthetic.h"
#include <base/status.h>
#include <stdlib.h>
#include <vm/node.h>

static _Noreturn void differ(const program_run *run, int step, const char *what, int64_t expected,
                             int64_t found) {
    fprintf(stderr, "program %llu, path %s, step %d: %s: expected %lld, found %lld\n",
            (unsigned long long)run->program->seed, run->path, step, what, (long long)expected,
            (long long)found);
    abort();
}

static const eddy_vm_wait forever = {EDDY_CLOCK_FOREVER, {"stress", NULL}};

/* ---- fakes ---- */

static eddy_status decide(void *context, const eddy_work *work) {
    (void)context;
    const eddy_node *node =
        (const eddy_node *)(const void *)((const char *)work - offsetof(eddy_node, work));
    const synthetic_arguments *arguments = node->instruction.view.arguments;
    return arguments->fails == 2 ? EDDY_DEVICE_LOST : EDDY_OK;
}

/* Lets `steps` held works go, or all of them where it is negative. */
static void pump(program_run *run, int steps) {
    while (steps != 0 && run->fakes[1]) {
        int first = 1 + (int)(program_random(&run->choices) % 2);
        uint64_t choice = program_random(&run->choices);
        if (!eddy_fake_queue_step(run->fakes[first], choice, decide, NULL) &&
            !eddy_fake_queue_step(run->fakes[3 - first], choice, decide, NULL))
            return;
        steps--;
    }
}

/* Before a step that blocks: nothing but this thread moves the fakes. */
static void settle(program_run *run) {
    pump(run, -1);
}

/* ---- devices ---- */

static uint8_t device_for(const program_run *run, int slot) {
    return run->is_mixed && slot % 3 == 0 ? 0 : run->device;
}

static eddy_vm_stream *stream_on(const program_run *run, int stream, uint8_t device) {
    return device ? run->far_streams[stream] : run->streams[stream];
}

/* An input of an instruction on a device: a copy, if it is elsewhere. */
static eddy_storage_number input_on(program_run *run, int index, const program_step *step,
                                    int input, uint8_t device, eddy_storage_number *copy) {
    int slot = step->inputs[input];
    if (run->devices[slot] == device)
        return run->storages[slot];
    eddy_vm_stream *stream = run->far_streams[(step->stream + input) % PROGRAM_STREAMS];
    *copy = 0;
    if (eddy_vm_copy(run->vm, stream, run->storages[slot], 0, run->slots[slot].count * 8, device,
                     NULL, copy) != EDDY_OK)
        differ(run, index, "copy", 0, 1);
    return *copy;
}

/* ---- steps ---- */

static void release(program_run *run, eddy_storage_number storage) {
    if (run->release)
        run->release(run, storage);
    else
        synthetic_release(run->vm, storage);
}

static void submit(program_run *run, int index, const program_step *step) {
    bool is_new = step->kind == STEP_MAKE || step->kind == STEP_MAKE_TWO || step->kind == STEP_LATE;
    synthetic_arguments arguments = {.seed = step->seed,
                                     .sleep_ns = step->sleep_ns,
                                     .fails = step->stream_fails ? 2 : step->fails,
                                     .late_count = step->count};
    eddy_vm_operand operands[5] = {0};
    uint8_t device = is_new ? device_for(run, step->target) : run->devices[step->target];
    eddy_storage_number copies[3] = {0};
    int count = 0;
    for (; count < step->input_count; count++)
        operands[count].storage = input_on(run, index, step, count, device, &copies[count]);
    int targets[2] = {step->target, step->second};
    for (int t = 0; t < (step->kind == STEP_MAKE_TWO ? 2 : 1); t++, count++) {
        operands[count].storage = is_new ? 0 : run->storages[targets[t]];
        operands[count].access = step->kind == STEP_LATE ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT;
        operands[count].is_new = is_new;
        operands[count].covers_all = is_new || step->kind == STEP_OVERWRITE;
        operands[count].bytes = step->count * 8;
        operands[count].device = device;
        arguments.accesses |= (int64_t)(step->kind == STEP_IN_PLACE ? 2 : 1) << 2 * count;
    }
    const eddy_vm_descriptor *descriptor =
        step->kind == STEP_LATE ? &synthetic_late_op : &synthetic_op;
    bool is_plain = step->seed % 2 && synthetic_is_plain(descriptor, operands, count);
    eddy_vm_call call = {.instruction = {.descriptor = is_plain ? &synthetic_plain_op : descriptor,
                                         .arguments = &arguments,
                                         .operand_count = count},
                         .argument_bytes = sizeof(arguments),
                         .operands = operands,
                         .stream = stream_on(run, step->stream, device),
                         .cost_ps = step->cost_ps,
                         .is_plain = is_plain};
    if (synthetic_submit(run->vm, &call) != EDDY_OK)
        differ(run, index, "submit", 0, 1);
    for (int i = 0; i < step->input_count; i++)
        if (copies[i])
            release(run, copies[i]);
    if (is_new) {
        int first = step->input_count;
        run->storages[step->target] = operands[first].storage;
        run->devices[step->target] = device;
        if (step->kind == STEP_MAKE_TWO) {
            run->storages[step->second] = operands[first + 1].storage;
            run->devices[step->second] = device;
        }
    }
}

static eddy_status expected_status(const program_slot *slot, bool is_stream_failure) {
    switch (slot->state) {
    case SLOT_LOST:
        return is_stream_failure ? EDDY_DEVICE_LOST : EDDY_OUT_OF_RANGE;
    case SLOT_SKIPPED:
        return EDDY_SKIPPED;
    case SLOT_TORN:
        return EDDY_TORN;
    default:
        return EDDY_OK;
    }
}

/* Compares the status and the blame of a failed read with the oracle's. */
static void check_error(program_run *run, int index, const program_slot *slot, eddy_status status) {
    const program_step *root =
        slot->state > SLOT_HEALTHY ? &run->program->steps[slot->root_order] : NULL;
    eddy_status expected = expected_status(slot, root && root->stream_fails);
    eddy_error error = {0};
    eddy_error_take(&error);
    if (run->is_shared && expected != EDDY_OK && strstr(error.message, "made room"))
        return;
    if (status != expected)
        differ(run, index, "status", expected, status);
    if (status == EDDY_OK || root->stream_fails)
        return;
    char text[64];
    snprintf(text, sizeof(text), "seed %lld", (long long)slot->root_seed);
    if (!strstr(error.message, text)) {
        fprintf(stderr, "message: %s\n", error.message);
        differ(run, index, "blame", slot->root_seed, (int64_t)error.sequence);
    }
}

static void check_slot(program_run *run, int index, int number) {
    const program_slot *slot = &run->slots[number];
    int64_t found = 0;
    eddy_storage_number storage = run->storages[number];
    if (slot->state == SLOT_HEALTHY && slot->count > 0) {
        int64_t cell = index % slot->count;
        eddy_status status = eddy_vm_read_small(run->vm, storage, cell * 8, 8, &found, &forever);
        check_error(run, index, slot, status);
        if (found != slot->cells[cell])
            differ(run, index, "value", slot->cells[cell], found);
        return;
    }
    check_error(run, index, slot, eddy_vm_wait_storage(run->vm, storage, &forever));
    if (slot->state == SLOT_HEALTHY && slot->is_late) {
        eddy_shape shape;
        if (eddy_vm_late_shape(run->vm, storage, &forever, &shape) != EDDY_OK ||
            shape.dims[0] != slot->count)
            differ(run, index, "late shape", slot->count, shape.dims[0]);
    }
}

static void lend(program_run *run, int index, const program_step *step) {
    settle(run);
    void *data;
    eddy_vm_lend *lend;
    eddy_status status =
        eddy_vm_lend_begin(run->vm, run->storages[step->target], true, &forever, &data, &lend);
    const program_slot *slot = &run->slots[step->target];
    check_error(run, index, slot, status);
    if (status != EDDY_OK)
        return;
    int64_t *cells = data;
    for (int64_t c = 0; c < slot->count; c++)
        if (cells[c] != slot->cells[c])
            differ(run, index, "lent value", slot->cells[c], cells[c]);
    if (slot->count > 0)
        cells[0] = synthetic_mix(cells[0], step->seed);
    /* One that stays open holds back what follows until the next step that waits. */
    if (step->lend_stays)
        run->lends[step->target] = lend;
    else
        eddy_vm_lend_end(run->vm, lend, false);
}

static void end_lends(program_run *run) {
    for (int i = 0; i < PROGRAM_SLOTS; i++) {
        if (run->lends[i])
            eddy_vm_lend_end(run->vm, run->lends[i], false);
        run->lends[i] = NULL;
    }
}

static void order_streams(program_run *run, int index, const program_step *step) {
    eddy_vm_event *event;
    /* Of the two that a mixed run has of each, either may be meant. */
    uint8_t from = device_for(run, (int)(step->seed % 7)),
            to = device_for(run, (int)(step->seed % 5));
    if (eddy_vm_event_record(run->vm, stream_on(run, step->stream, from),
                             (eddy_origin){"test", NULL}, &event) != EDDY_OK)
        differ(run, index, "event", 0, 1);
    int other = (step->stream + 1 + (int)(step->seed % (PROGRAM_STREAMS - 1))) % PROGRAM_STREAMS;
    if (eddy_vm_stream_wait(run->vm, stream_on(run, other, to), event,
                            (eddy_origin){"test", NULL}) != EDDY_OK)
        differ(run, index, "stream wait", 0, 1);
    eddy_vm_event_release(event);
}

/* What is still unseen was caused on purpose. */
static void sync_all(program_run *run) {
    if (eddy_vm_sync(run->vm, &forever, NULL) != EDDY_OK)
        eddy_error_take(NULL);
}

void program_run_step(program_run *run, int index) {
    const program_step *step = &run->program->steps[index];
    bool waits = step->kind >= STEP_READ && step->kind <= STEP_SYNC;
    if (waits) {
        end_lends(run);
        settle(run);
    }
    switch (step->kind) {
    case STEP_RELEASE:
        release(run, run->storages[step->target]);
        break;
    case STEP_READ:
        check_slot(run, index, step->target);
        break;
    case STEP_LEND:
        lend(run, index, step);
        break;
    case STEP_RECOVER:
        check_slot(run, index, step->target);
        if (eddy_vm_recover(run->vm, &run->storages[step->target], 1,
                            (eddy_origin){"test", NULL}) != EDDY_OK)
            differ(run, index, "recover", 0, 1);
        break;
    case STEP_SYNC:
        sync_all(run);
        break;
    case STEP_ORDER:
        order_streams(run, index, step);
        break;
    default:
        submit(run, index, step);
        break;
    }
    program_oracle(run->program, index, run->slots);
    pump(run, (int)(program_random(&run->choices) % 3));
}

/* ---- begin and end ---- */

void program_run_begin(program_run *run, const random_program *program) {
    run->program = program;
    run->choices = program->seed * 77 + 5;
    memset(run->slots, 0, sizeof(run->slots));
    memset(run->lends, 0, sizeof(run->lends));
    memset(run->devices, 0, sizeof(run->devices));
}

void program_run_end(program_run *run) {
    int last = run->program->step_count;
    end_lends(run);
    settle(run);
    for (int i = 0; i < PROGRAM_SLOTS; i++) {
        if (run->slots[i].state == SLOT_EMPTY)
            continue;
        check_slot(run, last, i);
        release(run, run->storages[i]);
    }
    sync_all(run);
    if (run->is_shared)
        return;
    eddy_vm_counters counters = eddy_vm_counters_read(run->vm);
    if (counters.errors_made != counters.errors_seen)
        differ(run, last, "errors seen", (int64_t)counters.errors_made,
               (int64_t)counters.errors_seen);
}

void program_run_open_streams(program_run *run, bool has_fakes) {
    for (int i = 1; i < PROGRAM_STREAMS; i++) {
        eddy_status status;
        if (has_fakes) {
            run->fakes[i] = eddy_fake_queue_create(i == 1);
            status = eddy_vm_stream_add(run->vm, run->fakes[i], true, NULL, &run->streams[i]);
        } else {
            status = eddy_vm_stream_create(run->vm, true, 0, NULL, &run->streams[i]);
        }
        if (status != EDDY_OK)
            abort();
    }
}

void program_run_open_far(program_run *run, uint64_t seed, bool is_mixed) {
    eddy_backend *far = eddy_far_create(&(eddy_far_options){.seed = seed});
    if (!far || eddy_vm_device_add(run->vm, far, "far", INT64_MAX, (eddy_origin){"device", NULL},
                                   &run->device) != EDDY_OK)
        abort();
    run->is_mixed = is_mixed;
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        if (eddy_vm_device_stream_create(run->vm, run->device, 0, NULL, &run->far_streams[i]) !=
            EDDY_OK)
            abort();
}

void program_run_close_streams(program_run *run) {
    for (int i = 1; i < PROGRAM_STREAMS; i++)
        eddy_vm_stream_release(run->streams[i]);
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        eddy_vm_stream_release(run->far_streams[i]);
}

bool program_run_has_ended_all(void) {
    return eddy_load_relaxed(&synthetic_open) == 0;
}
