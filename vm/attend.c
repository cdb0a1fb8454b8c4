#include <vm/attend.h>
#include <vm/device.h>
#include <vm/engine.h>

/* So many calls are left while the launcher takes no turn, since it launches: then their issuer does the engine's part beside it, once for all of them. A launcher that finds the next
 * turn soon is not disturbed. */
#define LEFT_MOST 512

static bool has_work(void *context) {
    const eddy_vm_device *device = context;
    return eddy_attend_has_left(&device->attendance, &device->vm->ring) &&
           eddy_load_relaxed(&device->vm->engine_word) == 0;
}

static void begin_turn(eddy_attendance *attendance) {
    if (++attendance->last_turn == 0)
        attendance->last_turn = 1;
    eddy_store_relaxed(&attendance->turn, attendance->last_turn);
}

/* The role is the launcher's: until there is something to launch, or nothing is left to it. */
static void take_turn(eddy_vm_device *device, const eddy_work_queue *launcher) {
    const eddy_engine_turn turn = {
        .budget_ns = INT64_MAX, .launcher = launcher, .attendance = &device->attendance};
    begin_turn(&device->attendance);
    eddy_engine_work(device->vm, &turn);
}

/* What is complete is taken once for all that was launched. */
static bool attend(void *context, const eddy_work_queue *launcher) {
    eddy_vm_device *device = context;
    if (eddy_load_acquire(&device->vm->is_halted))
        eddy_thread_park();
    if (!eddy_device_reap(device) && !has_work(device))
        return false;
    if (eddy_engine_request(device->vm))
        take_turn(device, launcher);
    return true;
}

/* From here on nothing is left to it. What was left before is seen by the last look: both are under the lock or after it. Another thread that has the role is asked once more. */
static bool rest(void *context, const eddy_work_queue *launcher) {
    eddy_vm_device *device = context;
    eddy_vm_lock(device->vm);
    eddy_store_relaxed(&device->attendance.turn, 0u);
    eddy_vm_unlock(device->vm);
    if (!eddy_attend_has_left(&device->attendance, &device->vm->ring) ||
        !eddy_engine_request(device->vm))
        return true;
    take_turn(device, launcher);
    return false;
}

static void wake(void *context) {
    eddy_vm_device *device = context;
    begin_turn(&device->attendance);
}

eddy_launcher_duty eddy_attend_duty(eddy_vm_device *device) {
    return (eddy_launcher_duty){device, attend, has_work, rest, wake};
}

bool eddy_attend_leaves(eddy_vm_device *device) {
    eddy_attendance *attendance = &device->attendance;
    uint32_t turn = eddy_load_relaxed(&attendance->turn);
    if (turn != attendance->turn_seen) {
        attendance->turn_seen = turn;
        attendance->left = 0;
    }
    if (turn == 0 || ++attendance->left > LEFT_MOST) {
        attendance->left = 0;
        return false;
    }
    eddy_store_relaxed(&attendance->left_until, eddy_load_relaxed(&device->vm->ring.tail));
    return true;
}
