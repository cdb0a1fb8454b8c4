/* Scopes: what was returned to the user while one was open goes with it.
 *
 * A thread's open scopes are a list from the innermost outwards. Each has an array of the tensors it owns one
 * reference of; a tensor knows the scope that owns it and its slot there, so that giving one up is O(1): the last
 * of the array takes the slot. A tensor is in one scope at most. Scopes are pooled per thread and keep their
 * arrays; the structs are never freed. */
#ifndef EDDY_INTERPRETER_HANDLE_SCOPE_H
#define EDDY_INTERPRETER_HANDLE_SCOPE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <eddy/tensor.h>
#include <interpreter/handle/caller.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SCOPE_MAGIC 0x65706f63u

/* The caller's thread only, but for `caller`, which all may read. */
struct eddy_scope {
    eddy_caller *caller; /* const after init */
    eddy_scope *outer;   /* the enclosing scope; idle: the next idle one */
    eddy_tensor **items;
    uint32_t count, capacity;
    uint32_t magic; /* EDDY_SCOPE_MAGIC while open */
    uint32_t depth; /* 1 for the outermost */
};

/* eddy_scope_begin. Without a caller there was no memory for one. */
EDDY_MUST_USE eddy_status eddy_scope_open(eddy_caller *caller, eddy_origin origin,
                                          eddy_scope **opened);

/* Room for `count` more in the innermost scope, if one is open; false without memory. */
bool eddy_scope_grow(eddy_scope *scope, uint32_t count);

static inline bool eddy_scope_reserve(eddy_caller *caller, uint32_t count) {
    eddy_scope *scope = caller->scope;
    return EDDY_LIKELY(scope == NULL || scope->capacity - scope->count >= count) ||
           eddy_scope_grow(scope, count);
}

/* Lets the innermost scope own the reference that is being returned; room was reserved. Without a scope it stays
 * the user's. */
void eddy_scope_own(eddy_caller *caller, eddy_tensor *tensor);

/* The scope that owns a reference of `tensor`, if there is one, owns the caller's of `other` instead; that of `tensor` is the
 * caller's then. On the scope's thread. */
void eddy_scope_replace(eddy_tensor *tensor, eddy_tensor *other);

/* Ends every open scope: the thread ends. */
void eddy_scope_end_all(eddy_caller *caller);
/* Frees the arrays of pooled scopes and returns their bytes. The structs stay: another thread may be comparing. */
int64_t eddy_scope_trim(eddy_caller *caller);

#endif
