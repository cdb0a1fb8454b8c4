#include <interpreter/handle/caller.h>
#include <interpreter/handle/pending_release.h>
#include <interpreter/handle/runtime.h>

static bool flush(eddy_pending_release *pending, bool waits) {
    return pending->count == 0 ||
           eddy_vm_release_many(pending->runtime->vm, pending->numbers, &pending->count, waits);
}

bool eddy_pending_release_flush(eddy_caller *caller) {
    return flush(&caller->pending, false);
}

bool eddy_pending_release_make_room(eddy_caller *caller, eddy_runtime *runtime) {
    eddy_pending_release *pending = &caller->pending;
    if (!eddy_pending_release_flush(caller))
        return false;
    /* The thread may have done the engine's work meanwhile, in which a program has ended and given up what it held. */
    if (pending->count > 0)
        return pending->runtime == runtime && pending->count < EDDY_PENDING_RELEASE_MAX;
    if (pending->runtime == runtime)
        return true;
    eddy_runtime_bind(runtime);
    if (pending->runtime)
        eddy_runtime_unbind(pending->runtime);
    pending->runtime = runtime;
    return true;
}

void eddy_pending_release_flush_all(eddy_caller *caller, eddy_runtime *runtime) {
    eddy_pending_release *pending = &caller->pending;
    /* What ended threads have left becomes this thread's, as much as it has room for, until there is none. */
    while (flush(pending, true) && pending->count == 0 &&
           eddy_pending_release_make_room(caller, runtime)) {
        pending->count = eddy_caller_left_take(runtime, pending->numbers);
        if (pending->count == 0)
            return;
    }
}
