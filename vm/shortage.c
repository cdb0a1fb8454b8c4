#include <streams/launcher.h>
#include <vm/release.h>
#include <vm/shortage.h>
#include <vm/submit.h>

bool eddy_shortage_gives(const eddy_node *node) {
    return (node->phase == EDDY_STAGING_ROUNDS && node->has_had_round) ||
           node->phase == EDDY_STAGING_STORES || node->phase == EDDY_STAGING_SETTLES;
}

static eddy_node *node_of(eddy_work *work) {
    return (eddy_node *)(void *)((char *)work - offsetof(eddy_node, work));
}

static bool is_stalled(const eddy_vm_device *device) {
    return eddy_launcher_is_stalled(device->launcher);
}

/* ---- at rest ---- */

/* Only what the stalled launchers have is left, and nothing will release memory. */
static bool is_at_rest(eddy_vm *vm) {
    int32_t with_launchers = 0;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++) {
        eddy_vm_device *device = vm->devices[i];
        if (is_stalled(device))
            with_launchers +=
                (int32_t)(device->dispatched -
                          eddy_device_launch_of(device, device->stalled_ticket)->dispatch) +
                1;
    }
    if (vm->engine.running_count != with_launchers || vm->engine.ready_count > 0 ||
        !eddy_lifo_is_empty(&vm->completions) || !eddy_lifo_is_empty(&vm->releases) ||
        vm->engine.held_releases)
        return false;
    eddy_vm_lock(vm);
    eddy_vm_flush_releases(vm);
    eddy_vm_unlock(vm);
    return !eddy_ring_peek(&vm->ring);
}

/* Instructions that were issued after the first one has stalled do not pass it: they might come without end. */
static void note_stalled(eddy_vm *vm, eddy_vm_device *device, const eddy_node *stalled) {
    uint64_t sequence = stalled->instruction.view.sequence;
    if (device->stalled_sequence == sequence)
        return;
    device->stalled_sequence = sequence;
    device->stalled_until = vm->engine.live_tail->instruction.view.sequence;
}

static bool may_pass(const eddy_vm_device *device, const eddy_node *node) {
    return eddy_shortage_gives(node) && node->instruction.view.sequence <= device->stalled_until;
}

/* Whether a giver is behind the node that has stalled, which is none itself: givers take no memory. */
static bool has_giver(const eddy_vm_device *device, eddy_work *works) {
    for (eddy_work *work = works->next; work; work = work->next)
        if (may_pass(device, node_of(work)))
            return true;
    return device->held_givers.first && may_pass(device, device->held_givers.first);
}

/* Whether what the launcher has, followed by what is held, is in the order of the calls. */
static bool is_in_order(const eddy_vm_device *device, eddy_work *works) {
    eddy_work *work = works;
    for (; work->next; work = work->next)
        if (eddy_node_is_before(node_of(work->next), node_of(work)))
            return false;
    return !device->held.first || eddy_node_is_before(node_of(work), device->held.first);
}

/* At rest each ticket with which memory was given back is complete, or was never launched. */
static void take_all_back(eddy_vm *vm, eddy_vm_device *device, eddy_work *works) {
    eddy_launcher_take_back(device->launcher);
    for (eddy_work *work = works; work; work = work->next)
        eddy_device_take_back(vm, device, node_of(work));
    eddy_device_pool_forget_tickets(device->pool);
}

/* Whether the launcher goes on, in an order in which there may be memory. */
static bool launch_others(eddy_vm *vm, eddy_vm_device *device) {
    eddy_work *works = eddy_launcher_works(device->launcher);
    note_stalled(vm, device, node_of(works));
    bool gives = has_giver(device, works);
    if (!gives && is_in_order(device, works))
        return false;
    take_all_back(vm, device, works);
    device->is_short = gives;
    device->short_retired = vm->engine.retired;
    device->short_bytes = eddy_device_pool_statistics_read(device->pool).live_bytes;
    eddy_device_release_held(vm, device);
    return true;
}

/* Of several stalled nodes the one that was called first fails, as in a run of one call after another. */
static void fail_first(eddy_vm *vm) {
    eddy_vm_device *first = NULL;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++)
        if (is_stalled(vm->devices[i]) &&
            (!first || vm->devices[i]->stalled_sequence < first->stalled_sequence))
            first = vm->devices[i];
    first->is_last_try = true;
    eddy_launcher_resume(first->launcher);
}

static void relieve_at_rest(eddy_vm *vm) {
    bool is_any = false;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++)
        if (is_stalled(vm->devices[i]))
            is_any |= launch_others(vm, vm->devices[i]);
    if (!is_any)
        fail_first(vm);
}

/* ---- while others move ---- */

/* What was taken back is tried again once something is over, or has been released: not with each round. */
static bool end_shortage(eddy_vm *vm, eddy_vm_device *device) {
    if (vm->engine.retired == device->short_retired &&
        eddy_device_pool_statistics_read(device->pool).live_bytes >= device->short_bytes)
        return false;
    device->is_short = false;
    eddy_device_release_held(vm, device);
    return true;
}

bool eddy_shortage_attend(eddy_vm *vm, bool has_moved) {
    bool is_any = false, has_stalled = false;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++) {
        eddy_vm_device *device = vm->devices[i];
        if (EDDY_UNLIKELY(device->is_short)) {
            is_any |= end_shortage(vm, device);
        } else if (EDDY_UNLIKELY(is_stalled(device))) {
            has_stalled = true;
            if (has_moved)
                eddy_launcher_resume(device->launcher);
        }
    }
    if (EDDY_LIKELY(!has_stalled) || has_moved || is_any)
        return is_any || has_stalled;
    if (is_at_rest(vm)) {
        relieve_at_rest(vm);
        return true;
    }
    /* Releases that were pending may be in the ring now: they are taken first. */
    return eddy_ring_peek(&vm->ring) != NULL;
}
