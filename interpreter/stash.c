#include <interpreter/caller.h>
#include <interpreter/runtime.h>
#include <interpreter/stash.h>

bool eddy_stash_flush(eddy_caller *caller) {
    eddy_stash *stash = &caller->stash;
    return stash->count == 0 || eddy_vm_release_many(stash->runtime->vm, stash->numbers, &stash->count);
}

bool eddy_stash_make_room(eddy_caller *caller, eddy_runtime *runtime) {
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
