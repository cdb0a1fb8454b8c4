#include <streams/launcher.h>
#include <vm/early.h>
#include <vm/node_list.h>
#include <vm/release.h>
#include <vm/shortage.h>
#include <vm/submit.h>

/* ---- in another order ---- */

/* What gives memory back without taking any; what has a part of its own already; all others. */
#define CLAIMS 3

static int claim_of(const eddy_node *node) {
    switch (node->phase) {
    case EDDY_STAGING_ROUNDS:
        return node->has_had_round ? 0 : 2;
    case EDDY_STAGING_FETCHES:
    case EDDY_STAGING_STORES:
    case EDDY_STAGING_SETTLES:
        return 0;
    case EDDY_STAGING_FILLS:
        return 1;
    default:
        return 2;
    }
}

static eddy_node *node_of(eddy_work *work) {
    return (eddy_node *)(void *)((char *)work - offsetof(eddy_node, work));
}

/* By claims, then as the calls were made. A source comes ahead of what waits for its dispatch: it was made before, and both have the last claim. */
static bool comes_before(const eddy_node *a, const eddy_node *b) {
    int claim = claim_of(a), other = claim_of(b);
    return claim != other ? claim < other : eddy_node_is_before(a, b);
}

/* What the launcher has, and then what waits for the window. */
static bool is_in_order(const eddy_vm_device *device, eddy_work *works) {
    const eddy_node *last = NULL;
    for (eddy_work *work = works; work; work = work->next) {
        if (last && !comes_before(last, node_of(work)))
            return false;
        last = node_of(work);
    }
    for (const eddy_node *node = device->held; node; node = node->ready_next) {
        if (!comes_before(last, node))
            return false;
        last = node;
    }
    return true;
}

static void dispatch_in_order(eddy_vm *vm, eddy_vm_device *device, eddy_work *works) {
    eddy_node_list claims[CLAIMS] = {{0}};
    eddy_node *next;
    for (eddy_work *work = works; work; work = work->next) {
        eddy_node *node = node_of(work);
        eddy_device_take_back(vm, device, node);
        eddy_early_take_back(vm, node);
        eddy_node_list_insert(&claims[claim_of(node)], node);
    }
    for (eddy_node *node = device->held; node; node = next) {
        next = node->ready_next;
        eddy_node_list_insert(&claims[claim_of(node)], node);
    }
    device->held = NULL;
    for (int i = 0; i < CLAIMS; i++)
        for (eddy_node *node = claims[i].first; node; node = next) {
            next = node->ready_next;
            eddy_device_dispatch_again(vm, node, node->queue);
        }
}

/* ---- at rest ---- */

/* Only what the stalled launchers have is left, and nothing will release memory. */
static bool is_at_rest(eddy_vm *vm) {
    int32_t with_launchers = 0;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++) {
        eddy_vm_device *device = vm->devices[i];
        if (eddy_launcher_is_stalled(device->launcher))
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

bool eddy_shortage_relieve(eddy_vm *vm, eddy_vm_device *device, bool has_moved) {
    if (EDDY_LIKELY(!eddy_launcher_is_stalled(device->launcher)))
        return false;
    bool is_last = !has_moved && is_at_rest(vm);
    /* Releases that were pending may be in the ring now: they are taken first. */
    if (!has_moved && !is_last)
        return eddy_ring_peek(&vm->ring) != NULL;
    if (is_last) {
        eddy_work *works = eddy_launcher_works(device->launcher);
        if (!is_in_order(device, works)) {
            eddy_launcher_take_back(device->launcher);
            dispatch_in_order(vm, device, works);
            return true;
        }
    }
    device->is_last_try = is_last;
    eddy_launcher_resume(device->launcher);
    return true;
}
