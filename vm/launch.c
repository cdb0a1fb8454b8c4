#include <base/clock.h>
#include <base/status.h>
#include <string.h>
#include <vm/device_copy.h>
#include <vm/device_run.h>
#include <vm/errors.h>
#include <vm/execute.h>
#include <vm/instruction_kinds.h>
#include <vm/launch.h>
#include <vm/share.h>
#include <vm/traced.h>

static eddy_device_launch *launch_of(eddy_vm_device *device, const eddy_node *node) {
    return eddy_device_launch_of(device, node->ticket);
}

/* ---- the launcher's side ---- */

/* Memory for a storage of the device, or of the host. */
static void *acquire(eddy_vm_device *device, const eddy_node *node, const eddy_storage *storage,
                     int64_t bytes) {
    if (storage->shared.device == device->number)
        return eddy_device_pool_take(device->pool, bytes, node->queue->under->number);
    EDDY_ASSERT(storage->shared.device == 0);
    eddy_blocks_cache cache;
    eddy_blocks_cache_init(&cache, &device->vm->tensors);
    void *data = eddy_blocks_acquire(&cache, bytes);
    eddy_blocks_cache_fini(&cache);
    return data;
}

/* `ticket`: the last one that may use it. */
static void release(eddy_vm_device *device, const eddy_device_queue *queue, eddy_storage *storage,
                    uint64_t ticket) {
    if (storage->shared.device == device->number) {
        eddy_device_pool_give(device->pool, storage->shared.data, queue->under->number, ticket);
    } else if (storage->shared.device != 0) { /* edges to it are satisfied by ends */
        eddy_device_pool_give(device->vm->devices[storage->shared.device]->pool,
                              storage->shared.data, 0, 0);
    } else {
        eddy_blocks_cache cache;
        eddy_blocks_cache_init(&cache, &device->vm->tensors);
        eddy_blocks_release(&cache, storage->shared.data, storage->shared.bytes);
        eddy_blocks_cache_fini(&cache);
    }
    storage->shared.data = NULL;
}

/* The sizes of new storages hold whatever becomes of them. */
static void note_sizes(eddy_vm *vm, const eddy_instruction *instruction) {
    const int64_t *size = instruction->sizes;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++)
        if ((instruction->mentions[i] & (EDDY_MENTION_NEW | EDDY_MENTION_MUT2)) == EDDY_MENTION_NEW)
            eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]))->shared.bytes =
                *size++;
}

/* Gives back what was taken for new storages. This launch has not used it; earlier ones of the queue may, as when it was taken. */
static void unprovide(eddy_vm_device *device, const eddy_node *node, uint32_t end) {
    uint64_t marked = node->queue->marked;
    for (uint32_t i = 0; i < end; i++) {
        eddy_mention mention = node->instruction.mentions[i];
        eddy_storage *storage = eddy_vm_storage(device->vm, eddy_mention_number(mention));
        if ((mention & EDDY_MENTION_NEW) && storage->shared.data)
            release(device, node->queue, storage, marked);
    }
}

typedef enum provided { PROVIDED, PROVIDED_NOTHING, PROVIDED_NOT } provided;

/* Memory for what is written whole, and where each operand's data is. NOTHING: an input has none (DEVICES.md 5); NOT: there is no memory. */
static provided provide(eddy_vm_device *device, eddy_node *node, void **data, int64_t *bytes) {
    const eddy_instruction *instruction = &node->instruction;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        eddy_storage *storage = eddy_vm_storage(device->vm, eddy_mention_number(mention));
        bool is_input = eddy_mention_is_input(mention);
        bool is_late = node->phase == EDDY_STAGING_COUNTS &&
                       (mention & EDDY_MENTION_ACCESS) == EDDY_MENTION_MUT2;
        bool is_made = !is_input && !is_late && !(mention & EDDY_MENTION_GIVEN_UP);
        /* A buffer of the user's without elements may have no address. */
        bool is_own = !storage->shared.borrow;
        if (is_made && is_own && !storage->shared.data)
            storage->shared.data = acquire(device, node, storage, storage->shared.bytes);
        bool is_needed = is_made || (is_input && !instruction->view.descriptor->is_program);
        if (!storage->shared.data && is_needed && is_own) {
            unprovide(device, node, i);
            return is_input ? PROVIDED_NOTHING : PROVIDED_NOT;
        }
        data[i] = storage->shared.data;
        bytes[i] = storage->shared.bytes;
    }
    return PROVIDED;
}

/* Launches in the same queue may have the memory at once: also this one, of operands that it does not touch. */
static void give_up(eddy_vm_device *device, const eddy_device_queue *queue, const eddy_node *node,
                    bool untouched_only) {
    const eddy_instruction *instruction = &node->instruction;
    if (!instruction->view.descriptor || !instruction->view.descriptor->gone)
        return;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        eddy_storage *storage = eddy_vm_storage(device->vm, eddy_mention_number(mention));
        if (!(mention & EDDY_MENTION_GIVEN_UP) || !storage->shared.data ||
            eddy_load_relaxed(&storage->shared.is_kept))
            continue;
        if (!untouched_only ||
            (!eddy_mention_is_input(mention) && !eddy_instruction_is_named_again(instruction, i)))
            release(device, queue, storage, node->ticket);
    }
}

/* The device comes to the launch after what it waits for. */
static void wait_on_device(eddy_vm_device *device, const eddy_node *node,
                           const eddy_device_launch *launch) {
    eddy_backend_queue *queue = node->queue->under;
    for (uint32_t left = launch->waited_for; left; left &= left - 1) {
        uint32_t q = (uint32_t)__builtin_ctz(left);
        (void)device->backend->class->wait(queue, device->unders[q], launch->waits[q]);
    }
}

/* Shapes and bytes of late outputs: in the staging block of the call. */
typedef struct counted {
    eddy_shape *shapes;
    int64_t *bytes;
    uint32_t count;
} counted;

static counted counted_of(const eddy_node *node) {
    counted all = {.shapes = node->staging};
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++)
        all.count += (node->instruction.mentions[i] & EDDY_MENTION_ACCESS) == EDDY_MENTION_MUT2;
    all.bytes = (int64_t *)(void *)(all.shapes + all.count);
    return all;
}

static void *acquire_staging(eddy_vm_device *device, eddy_node *node, int64_t bytes) {
    node->staging = eddy_device_copy_acquire(device, bytes, &node->is_staging_pinned);
    node->staging_bytes = bytes;
    return node->staging;
}

/* Where a program's run is, and what became of its values. */
static bool provide_state(eddy_vm_device *device, eddy_node *node) {
    const eddy_vm_instruction *view = &node->instruction.view;
    if (node->staging)
        return true;
    size_t bytes = view->descriptor->rounds->state_bytes(view);
    if (!acquire_staging(device, node, (int64_t)bytes))
        return false;
    memset(node->staging, 0, bytes);
    return true;
}

/* Room for the numbers before they are counted, and what they say afterwards. */
static bool provide_counted(eddy_vm_device *device, eddy_node *node) {
    counted all = counted_of(node);
    if (node->phase == EDDY_STAGING_COUNTS)
        return node->staging ||
               acquire_staging(device, node,
                               all.count * (int64_t)(sizeof(*all.shapes) + sizeof(*all.bytes)));
    uint32_t late = 0;
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_mention mention = node->instruction.mentions[i];
        if ((mention & EDDY_MENTION_ACCESS) != EDDY_MENTION_MUT2)
            continue;
        eddy_storage *storage = eddy_vm_storage(device->vm, eddy_mention_number(mention));
        storage->shared.bytes = all.bytes[late];
        *storage->shared.late_shape = all.shapes[late++];
    }
    return true;
}

/* To launches that look at its word: nothing is launched. */
static void say_skipped(eddy_vm_device *device, const eddy_node *node) {
    (void)device->backend->class->skip(node->queue->under, node->ticket);
}

/* A kernel of the device's own. Without elements it may launch nothing, but who reads what the call writes looks at its word all the same. */
static void launch_own(const eddy_vm_run *run, bool counts) {
    eddy_backend_launch *launch = run->launch;
    const eddy_vm_descriptor *descriptor = run->instruction->descriptor;
    bool checks = EDDY_UNLIKELY(run->vm->checks_finite) && !counts;
    if (checks && descriptor->look_finite)
        descriptor->look_finite(run);
    if (counts)
        descriptor->count(run, NULL, NULL);
    else
        descriptor->run(run);
    if (checks && descriptor->check_finite)
        (void)descriptor->check_finite(run);
    if (launch->source_count > 0 && !launch->has_looked)
        (void)launch->queue->backend->class->look(launch);
}

static void note_time(eddy_device_launch *launch) {
    launch->launched_ns = eddy_trace_hears(EDDY_TRACE_DEVICE) ? eddy_clock_ns() : 0;
}

/* False: there was no memory, nothing is launched. */
static bool launch_kernel(eddy_vm_device *device, const eddy_node *node, eddy_device_launch *launch,
                          const eddy_vm_run *run) {
    const eddy_instruction *instruction = &node->instruction;
    note_time(launch);
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(KERNEL, EDDY_TRACED(device->vm, instruction), EDDY_TRACED_ON(node->stream),
                         .bytes = eddy_traced_bytes(run),
                         .live = eddy_device_pool_statistics_read(device->pool).live_bytes);
    counted to = {0};
    if (node->phase == EDDY_STAGING_COUNTS)
        to = counted_of(node);
    bool is_launched = true;
    if (instruction->view.descriptor->launch)
        instruction->view.descriptor->launch(device, run, &launch->under);
    else if (run->launch)
        launch_own(run, node->phase == EDDY_STAGING_COUNTS);
    else
        is_launched = eddy_device_run_launch(run, &launch->under, to.shapes, to.bytes);
    EDDY_TRACE_END(span, EDDY_TRACED(device->vm, instruction), EDDY_TRACED_ON(node->stream),
                   .bytes = eddy_traced_bytes(run));
    return is_launched;
}

static bool provide_workspace(eddy_vm_device *device, eddy_node *node, eddy_vm_run *run) {
    const eddy_vm_descriptor *descriptor = run->instruction->descriptor;
    run->workspace = node->workspace;
    int64_t bytes =
        descriptor->workspace && !node->workspace ? (int64_t)descriptor->workspace(run) : 0;
    if (bytes > 0)
        node->workspace = run->workspace =
            eddy_device_pool_take(device->pool, bytes, node->queue->under->number);
    return bytes == 0 || run->workspace;
}

/* Whether another launch of the call may follow, which needs what this one has. */
static bool may_go_on(const eddy_node *node) {
    return node->phase == EDDY_STAGING_COUNTS || node->phase == EDDY_STAGING_ROUNDS;
}

/* Later launches of the queue may have it. Between the launches of one call it stays. */
static void return_workspace(eddy_vm_device *device, eddy_node *node) {
    if (may_go_on(node))
        return;
    eddy_device_pool_give(device->pool, node->workspace, node->queue->under->number, node->ticket);
    node->workspace = NULL;
}

static bool launch_call(eddy_vm_device *device, eddy_node *node, eddy_device_launch *launch) {
    const eddy_instruction *instruction = &node->instruction;
    void *few_data[EDDY_NODE_USES];
    int64_t few_bytes[EDDY_NODE_USES];
    void **data = instruction->spill ? instruction->spill->data : few_data;
    int64_t *bytes = instruction->spill ? instruction->spill->data_bytes : few_bytes;
    give_up(device, node->queue, node, true);
    bool has_staging = node->phase == EDDY_STAGING_NONE     ? true
                       : node->phase == EDDY_STAGING_ROUNDS ? provide_state(device, node)
                                                            : provide_counted(device, node);
    if (!has_staging)
        return false;
    provided how = provide(device, node, data, bytes);
    if (how != PROVIDED)
        return how == PROVIDED_NOTHING;
    eddy_vm_run run = {.instruction = &instruction->view,
                       .data = data,
                       .bytes = bytes,
                       .error = eddy_backend_error(device->backend, node->ticket),
                       .launch = device->backend->class->run ? NULL : &launch->under,
                       .state = node->staging,
                       .late_shapes =
                           node->phase == EDDY_STAGING_FILLS ? counted_of(node).shapes : NULL,
                       .vm = device->vm,
                       .mentions = instruction->mentions};
    if (!provide_workspace(device, node, &run)) {
        unprovide(device, node, instruction->view.operand_count);
        return false;
    }
    *run.error = (eddy_kernel_error){.position = INT64_MAX};
    wait_on_device(device, node, launch);
    launch->has_launched = launch_kernel(device, node, launch, &run);
    if (!launch->has_launched) {
        /* A workspace stays with the node, until it is tried again or has failed. */
        unprovide(device, node, instruction->view.operand_count);
        return false;
    }
    return_workspace(device, node);
    return true;
}

/* It writes nothing, but who reads what others may write looks at its word. Without memory the storage is found to be poisoned at the end. */
static void launch_share(eddy_vm_device *device, eddy_node *node, eddy_device_launch *launch) {
    const eddy_storage *storage =
        eddy_vm_storage(device->vm, eddy_mention_number(node->instruction.mentions[0]));
    if (!storage->shared.data && !storage->shared.borrow)
        return;
    *eddy_backend_error(device->backend, node->ticket) = (eddy_kernel_error){.position = INT64_MAX};
    wait_on_device(device, node, launch);
    if (launch->under.source_count > 0)
        (void)device->backend->class->look(&launch->under);
    launch->has_launched = true;
    eddy_share_launch(device, node);
}

/* The part of the first operand that an instruction of the host uses. */
static void staged_part(const eddy_vm *vm, const eddy_node *node, char **data, int64_t *bytes) {
    const eddy_storage *storage =
        eddy_vm_storage(vm, eddy_mention_number(node->instruction.mentions[0]));
    *data = storage->shared.data;
    *bytes = storage->shared.bytes;
    if (node->instruction.kind == EDDY_KIND_WAIT) {
        const eddy_wait_arguments *wait = node->instruction.view.arguments;
        *data += wait->offset;
        *bytes = wait->bytes;
    }
}

static void copy_staged(eddy_vm_device *device, const eddy_node *node, void *to, const void *from,
                        int64_t bytes, eddy_copy_direction direction) {
    eddy_backend_queue *queue = node->queue->under;
    note_time(launch_of(device, node));
    EDDY_TRACE_AT(COPY, EDDY_TRACED(device->vm, &node->instruction), .bytes = bytes,
                  .detail = direction == EDDY_COPY_TO_HOST ? "to host" : "to device");
    if (node->is_staging_pinned)
        (void)device->backend->class->copy(queue, to, from, bytes, direction);
    else
        eddy_device_copy(device, queue, node->ticket, to, from, bytes, direction);
}

static bool launch_staging(eddy_vm_device *device, eddy_node *node) {
    if (node->phase == EDDY_STAGING_SETTLES) /* its ticket comes behind all of it */
        return true;
    char *data;
    int64_t bytes;
    staged_part(device->vm, node, &data, &bytes);
    if (node->phase == EDDY_STAGING_STORES)
        copy_staged(device, node, data, node->staging, bytes, EDDY_COPY_TO_DEVICE);
    else if (acquire_staging(device, node, bytes))
        copy_staged(device, node, node->staging, data, bytes, EDDY_COPY_TO_HOST);
    else
        return false;
    return true;
}

bool eddy_launch_begin(eddy_vm_device *device, eddy_node *node) {
    if (node->instruction.kind != EDDY_KIND_CALL && node->phase != EDDY_STAGING_NONE)
        return launch_staging(device, node);
    eddy_device_launch *launch = launch_of(device, node);
    note_sizes(device->vm, &node->instruction);
    if (!launch->is_skipped && node->instruction.kind == EDDY_KIND_SHARE)
        launch_share(device, node, launch);
    bool is_call = node->instruction.kind == EDDY_KIND_CALL;
    if (is_call && !launch->is_skipped && !launch_call(device, node, launch))
        return false;
    /* Later launches of the queue count on what this one waits for (V1). */
    if (!launch->has_launched) {
        wait_on_device(device, node, launch);
        say_skipped(device, node);
    }
    /* Another launch of the call needs it still. Where there is none, the storage keeps it until it is freed or written, and that of a program until its end. */
    if (!(may_go_on(node) && launch->has_launched))
        give_up(device, node->queue, node, false);
    return true;
}

void eddy_launch_fail(eddy_vm_device *device, eddy_node *node, eddy_status failure) {
    eddy_device_launch *launch = launch_of(device, node);
    launch->failure = failure;
    if (node->instruction.kind != EDDY_KIND_CALL && node->phase != EDDY_STAGING_NONE)
        return;
    note_sizes(device->vm, &node->instruction);
    wait_on_device(device, node, launch);
    say_skipped(device, node);
    give_up(device, node->queue, node, false);
}

/* ---- the engine's side ---- */

static void end_call(eddy_vm_device *device, const eddy_node *node,
                     const eddy_device_launch *launch, const eddy_kernel_error *error) {
    eddy_vm *vm = device->vm;
    const eddy_instruction *instruction = &node->instruction;
    if (launch->failure != EDDY_OK) {
        /* Also an earlier round has written in place. */
        eddy_vm_execute_fail(vm, instruction, launch->failure, device->name,
                             launch->has_launched || node->has_had_round);
        return;
    }
    if (instruction->view.descriptor->is_program) /* it has said so itself */
        return;
    bool has_run =
        launch->has_launched && eddy_load_acquire(&error->status) != (int32_t)EDDY_SKIPPED;
    eddy_poison blame = eddy_vm_input_poison(vm, instruction);
    EDDY_ASSERT(has_run || blame != 0);
    if (blame != 0)
        eddy_vm_execute_skipped(vm, instruction, blame, has_run);
    else
        eddy_vm_execute_end(vm, instruction, error);
}

/* Of a late call its own, which has no storage there yet. */
static eddy_vm_device *staging_device(eddy_vm *vm, const eddy_node *node) {
    if (node->stream->device)
        return node->stream->device;
    eddy_storage_number first = eddy_mention_number(node->instruction.mentions[0]);
    return vm->devices[eddy_vm_storage(vm, first)->shared.device];
}

void eddy_launch_unstage(eddy_vm *vm, eddy_node *node) {
    if (node->staging)
        eddy_device_copy_recycle(staging_device(vm, node), node->staging, node->staging_bytes,
                                 node->is_staging_pinned);
    node->staging = NULL;
    node->phase = EDDY_STAGING_NONE;
}

/* The elements are there, or their copy has failed: then who asks gets the record of that, and the storage is as before. */
static bool end_fetch(eddy_vm_device *device, eddy_node *node, eddy_status failure) {
    eddy_vm *vm = device->vm;
    const eddy_instruction *instruction = &node->instruction;
    node->phase = EDDY_STAGING_HOLDS;
    if (failure != EDDY_OK) {
        char what[96];
        eddy_error error;
        eddy_errors_format(failure, device->name, what, sizeof(what));
        eddy_error_fill(&error, failure, eddy_instruction_origin(instruction),
                        instruction->view.sequence, "%s", what);
        eddy_errors_add(&vm->errors, &error);
        node->staging_poison = eddy_poison_make(instruction->view.sequence, EDDY_POISON_LOST);
    }
    bool is_over = eddy_instruction_kind_run(vm, node);
    if (is_over)
        eddy_launch_unstage(vm, node);
    return is_over;
}

static bool end_staging(eddy_vm_device *device, eddy_node *node, eddy_status failure) {
    if (node->phase == EDDY_STAGING_FETCHES)
        return end_fetch(device, node, failure);
    if (failure != EDDY_OK && eddy_mention_writes(node->instruction.mentions[0]))
        eddy_vm_execute_fail(device->vm, &node->instruction, failure, device->name, true);
    eddy_launch_unstage(device->vm, node);
    return true;
}

/* Its inputs are known: nothing that they depend on was on its way when it was dispatched. */
static bool has_counted(const eddy_device_launch *launch, const eddy_kernel_error *error) {
    return launch->failure == EDDY_OK && launch->has_launched &&
           eddy_load_acquire(&error->status) == EDDY_OK;
}

/* Whether the round that has ended is not the last one of its program. */
static bool goes_on(eddy_vm_device *device, const eddy_node *node, eddy_device_launch *launch) {
    const eddy_instruction *instruction = &node->instruction;
    if (node->phase != EDDY_STAGING_ROUNDS || launch->failure != EDDY_OK || !launch->has_launched)
        return false;
    eddy_vm_run run = {.instruction = &instruction->view,
                       .launch = &launch->under,
                       .state = node->staging,
                       .vm = device->vm,
                       .mentions = instruction->mentions};
    return instruction->view.descriptor->rounds->goes_on(&run);
}

/* A device's own kernel has said a number, which becomes shapes, or the failure that they are too large; code of the host has made shapes itself. Whether the call may be filled. */
static bool end_count(eddy_vm_device *device, eddy_node *node, const eddy_device_launch *launch,
                      eddy_kernel_error *error) {
    if (!has_counted(launch, error))
        return false;
    if (device->backend->class->run)
        return true;
    counted to = counted_of(node);
    eddy_vm_run run = {.instruction = &node->instruction.view, .error = error};
    node->instruction.view.descriptor->shape(&run, to.shapes, to.bytes);
    return has_counted(launch, error);
}

bool eddy_launch_end(eddy_vm_device *device, eddy_node *node) {
    const eddy_instruction *instruction = &node->instruction;
    eddy_device_launch *launch = launch_of(device, node);
    eddy_kernel_error *error = eddy_backend_error(device->backend, node->ticket);
    eddy_device_queue *queue = node->queue;
    node->queue = NULL;
    if (instruction->kind != EDDY_KIND_CALL)
        return node->phase == EDDY_STAGING_NONE ? eddy_instruction_kind_run(device->vm, node)
                                                : end_staging(device, node, launch->failure);
    if (node->phase == EDDY_STAGING_COUNTS && end_count(device, node, launch, error)) {
        node->phase = EDDY_STAGING_FILLS;
        eddy_device_dispatch_again(device->vm, node, queue);
        return false;
    }
    if (goes_on(device, node, launch)) {
        node->has_had_round = true;
        eddy_device_dispatch_again(device->vm, node, queue);
        return false;
    }
    end_call(device, node, launch, error);
    /* Its later rounds might have used it. */
    if (node->phase == EDDY_STAGING_ROUNDS)
        give_up(device, queue, node, false);
    eddy_vm_execute_give_up(device->vm, instruction);
    /* Of a call of several launches; everything of it is over. */
    eddy_device_pool_give(device->pool, node->workspace, queue->under->number, 0);
    eddy_launch_unstage(device->vm, node);
    return true;
}
