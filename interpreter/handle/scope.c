#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/tensor.h>

#define FIRST_CAPACITY 32
/* In place of the slot of a tensor that its scope was lent. */
#define LENT UINT32_MAX

bool eddy_scope_grow(eddy_scope *scope, uint32_t count) {
    uint64_t capacity = scope->capacity ? scope->capacity : FIRST_CAPACITY;
    while (capacity < (uint64_t)scope->count + count)
        capacity *= 2;
    if (capacity > UINT32_MAX)
        return false;
    eddy_tensor **items = eddy_memory_grow(scope->items, scope->capacity * sizeof(*items),
                                           capacity * sizeof(*items), EDDY_MEMORY_HANDLE);
    if (!items)
        return false;
    scope->items = items;
    scope->capacity = (uint32_t)capacity;
    return true;
}

static void own(eddy_scope *scope, eddy_tensor *tensor) {
    tensor->scope_slot = scope->count;
    eddy_store_release(&tensor->scope, scope);
    scope->items[scope->count++] = tensor;
}

void eddy_scope_own(eddy_caller *caller, eddy_tensor *tensor) {
    if (caller->scope)
        own(caller->scope, tensor);
}

/* Removes the tensor from its scope; the caller then owns the reference. */
static void disown(eddy_scope *scope, eddy_tensor *tensor) {
    EDDY_CHECK(tensor->scope_slot < scope->count && scope->items[tensor->scope_slot] == tensor);
    eddy_tensor *last = scope->items[--scope->count];
    scope->items[tensor->scope_slot] = last;
    last->scope_slot = tensor->scope_slot;
    eddy_store_relaxed(&tensor->scope, NULL);
}

void eddy_scope_replace(eddy_tensor *tensor, eddy_tensor *other) {
    eddy_scope *scope = eddy_load_relaxed(&tensor->scope);
    if (!scope || tensor->scope_slot == LENT)
        return;
    other->scope_slot = tensor->scope_slot;
    eddy_store_release(&other->scope, scope);
    scope->items[other->scope_slot] = other;
    eddy_store_relaxed(&tensor->scope, NULL);
}

eddy_status eddy_scope_open(eddy_caller *caller, eddy_origin origin, eddy_scope **opened) {
    if (caller && caller->callback == EDDY_CALLBACK_DELETER)
        return eddy_fail(EDDY_WRONG_THREAD, origin, "a deleter may only retain and release");
    eddy_scope *scope = caller ? caller->idle_scopes : NULL;
    if (scope) {
        caller->idle_scopes = scope->outer;
    } else {
        scope = caller ? eddy_memory_acquire_zeroed(sizeof(*scope), EDDY_MEMORY_HANDLE) : NULL;
        if (!scope)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a scope");
        scope->caller = caller;
    }
    scope->outer = caller->scope;
    scope->depth = scope->outer ? scope->outer->depth + 1 : 1;
    scope->magic = EDDY_SCOPE_MAGIC;
    caller->scope = scope;
    *opened = scope;
    return EDDY_OK;
}

eddy_scope *eddy_scope_begin(void) {
    eddy_scope *scope = NULL;
    (void)!eddy_scope_open(eddy_caller_get(), EDDY_ORIGIN("scope_begin"), &scope);
    return scope;
}

/* Ends the innermost scope. Newest first, so that handles come back in the order they are taken again. */
static void end_innermost(eddy_caller *caller) {
    eddy_scope *scope = caller->scope;
    while (scope->count > 0) {
        eddy_tensor *tensor = scope->items[--scope->count];
        eddy_store_relaxed(&tensor->scope, NULL);
        eddy_tensor_drop(tensor);
    }
    caller->scope = scope->outer;
    scope->magic = 0;
    scope->outer = caller->idle_scopes;
    caller->idle_scopes = scope;
}

/* True when the calling thread may act on the scope; else the error is recorded. */
static bool is_usable(const eddy_scope *scope, eddy_origin origin) {
    if (scope->magic != EDDY_SCOPE_MAGIC) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the scope has ended already");
        return false;
    }
    if (scope->caller != eddy_caller_self) {
        eddy_fail(EDDY_WRONG_THREAD, origin, "the scope belongs to another thread");
        return false;
    }
    return true;
}

void eddy_scope_end(eddy_scope *scope) {
    eddy_origin origin = EDDY_ORIGIN("scope_end");
    if (!scope || !is_usable(scope, origin))
        return;
    eddy_caller *caller = scope->caller;
    for (bool is_last = false; !is_last;) {
        is_last = caller->scope == scope;
        end_innermost(caller);
    }
}

eddy_tensor *eddy_scope_return(eddy_scope *scope, eddy_tensor *tensor) {
    eddy_origin origin = EDDY_ORIGIN("scope_return");
    if (!tensor || eddy_tensor_is_none(tensor))
        return tensor;
    if (!scope) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the scope is NULL");
        return NULL;
    }
    if (!is_usable(scope, origin) || eddy_tensor_check(tensor, "tensor", origin) != EDDY_OK)
        return NULL;
    eddy_scope *from = eddy_load_acquire(&tensor->scope);
    if (!from || from->caller != scope->caller || from->depth < scope->depth ||
        tensor->scope_slot == LENT)
        return tensor;
    eddy_scope *to = scope->outer;
    if (to && to->count == to->capacity && !eddy_scope_grow(to, 1)) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "the enclosing scope cannot grow");
        return NULL;
    }
    disown(from, tensor);
    if (to)
        own(to, tensor);
    return tensor;
}

/* Takes one of the references of eddy_retain; false if there is none. The count only tells who owns a reference:
 * `references` orders a release after the accesses of other threads. */
static bool take_retained(eddy_tensor *tensor) {
    uint32_t retained = eddy_load_relaxed(&tensor->retained);
    while (retained > 0)
        if (eddy_cas_relaxed(&tensor->retained, &retained, retained - 1))
            return true;
    return false;
}

void eddy_release(eddy_tensor **tensor) {
    if (!tensor)
        return;
    eddy_tensor *released = *tensor;
    *tensor = NULL;
    if (!released || eddy_tensor_is_none(released))
        return;
    if (eddy_tensor_check(released, "tensor", EDDY_ORIGIN("release")) != EDDY_OK)
        return;
    eddy_scope *scope = take_retained(released) ? NULL : eddy_load_acquire(&released->scope);
    if (EDDY_UNLIKELY(scope && scope->caller != eddy_caller_self)) {
        eddy_fail(
            EDDY_WRONG_THREAD, EDDY_ORIGIN("release"),
            "no reference but that of another thread's scope is left, which gives it up itself");
        return;
    }
    if (EDDY_UNLIKELY(scope && released->scope_slot == LENT)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("release"),
                  "a function does not release its inputs, which belong to its caller");
        return;
    }
    if (scope)
        disown(scope, released);
    eddy_tensor_drop(released);
}

eddy_tensor *eddy_retain(eddy_tensor *tensor) {
    if (!tensor || eddy_tensor_is_none(tensor))
        return tensor;
    if (eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("retain")) != EDDY_OK)
        return NULL;
    eddy_tensor_retain(tensor);
    eddy_add_relaxed(&tensor->retained, 1u);
    return tensor;
}

void eddy_scope_lend(eddy_scope *scope, eddy_list tensors) {
    for (int64_t i = 0; i < tensors.count; i++) {
        eddy_scope *none = NULL;
        /* Another thread may lend the same one. */
        if (eddy_cas_acq_rel(&tensors.items[i]->scope, &none, scope))
            tensors.items[i]->scope_slot = LENT;
    }
}

void eddy_scope_take_back(const eddy_scope *scope, eddy_list tensors) {
    for (int64_t i = 0; i < tensors.count; i++)
        if (eddy_load_relaxed(&tensors.items[i]->scope) == scope)
            eddy_store_release(&tensors.items[i]->scope, NULL);
}

void eddy_scope_end_all(eddy_caller *caller) {
    while (caller->scope)
        end_innermost(caller);
}

int64_t eddy_scope_trim(eddy_caller *caller) {
    int64_t bytes = 0;
    for (eddy_scope *scope = caller->idle_scopes; scope; scope = scope->outer) {
        size_t held = scope->capacity * sizeof(*scope->items);
        eddy_memory_release(scope->items, held, EDDY_MEMORY_HANDLE);
        scope->items = NULL;
        scope->capacity = 0;
        bytes += (int64_t)held;
    }
    return bytes;
}
