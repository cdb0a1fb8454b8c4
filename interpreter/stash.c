#include <interpreter/caller.h>
#include <interpreter/runtime.h>
#include <interpreter/stash.h>
#include <interpreter/tensor.h>

bool eddy_stash_flush(eddy_caller *caller) {
    eddy_stash *stash = &caller->stash;
    if (stash->count > 0 && !eddy_vm_release_many(stash->runtime->vm, stash->numbers, stash->count))
        return false;
    stash->count = 0;
    return true;
}

static bool make_room(eddy_caller *caller, eddy_runtime *runtime) {
    eddy_stash *stash = &caller->stash;
    if (!eddy_stash_flush(caller))
        return false;
    if (stash->runtime == runtime)
        return true;
    eddy_runtime_bind(runtime);
    if (stash->runtime)
        eddy_runtime_unbind(stash->runtime);
    stash->runtime = runtime;
    return true;
}

bool eddy_stash_add(eddy_caller *caller, const eddy_tensor *root) {
    eddy_stash *stash = &caller->stash;
    if (root->link.after != 0 || eddy_load_relaxed(&root->is_late) ||
        root->storage_count > EDDY_STASH_BYTES / (int64_t)sizeof(double))
        return false;
    if (EDDY_UNLIKELY(stash->runtime != root->runtime || stash->count == EDDY_STASH_MAX) &&
        !make_room(caller, root->runtime))
        return false;
    stash->numbers[stash->count++] = root->storage;
    return true;
}
