/* Scopes: tensors returned to the user while a scope is open are released when it ends.
 *
 * A thread's open scopes are a list from the innermost outwards. Each has an array of the tensors it owns one
 * reference of; a tensor knows the scope that owns it and its slot there, so that releasing one is O(1): the last
 * of the array takes its slot. A tensor is in one scope at most. One that is lent names a scope too, which does not own it. Scopes are pooled per thread and keep their
 * arrays; the structs are never freed. */
#ifndef EDDY_INTERPRETER_HANDLE_SCOPE_H
#define EDDY_INTERPRETER_HANDLE_SCOPE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <eddy/shape.h>
#include <eddy/tensor.h>
#include <interpreter/handle/caller.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SCOPE_MAGIC 0x65706f63u

/* The caller's thread only, except `caller`, which all may read. */
struct eddy_scope {
    eddy_caller *caller; /* const after init */
    eddy_scope *outer;   /* the enclosing scope; idle: the next idle one */
    eddy_tensor **items;
    uint32_t count, capacity;
    uint32_t magic; /* EDDY_SCOPE_MAGIC while open */
    uint32_t depth; /* 1 for the outermost */
};

/* eddy_scope_begin. `caller` is NULL if there was no memory for one. */
EDDY_MUST_USE eddy_status eddy_scope_open(eddy_caller *caller, eddy_origin origin,
                                          eddy_scope **opened);

/* Reserves room for `count` more tensors in the innermost scope, if one is open; false without memory. */
bool eddy_scope_grow(eddy_scope *scope, uint32_t count);

static inline bool eddy_scope_reserve(eddy_caller *caller, uint32_t count) {
    eddy_scope *scope = caller->scope;
    return EDDY_LIKELY(scope == NULL || scope->capacity - scope->count >= count) ||
           eddy_scope_grow(scope, count);
}

/* Makes the innermost scope own the returned reference; room was reserved. Without a scope the user owns it. */
void eddy_scope_own(eddy_caller *caller, eddy_tensor *tensor);

/* The scope that owns a reference of `tensor`, if there is one, takes the caller's of `other` instead; the caller then owns that of
 * `tensor`. On the scope's thread. */
void eddy_scope_replace(eddy_tensor *tensor, eddy_tensor *other);

/* While a user's function runs in `scope`, the tensors that no scope owns are lent to it: they cannot be released. `scope` is open until they
 * are taken back. */
void eddy_scope_lend(eddy_scope *scope, eddy_list tensors);
void eddy_scope_take_back(const eddy_scope *scope, eddy_list tensors);

/* Ends every open scope, at the end of the thread. */
void eddy_scope_end_all(eddy_caller *caller);
/* Frees the arrays of pooled scopes and returns their bytes. The structs stay: another thread may compare their addresses. */
int64_t eddy_scope_trim(eddy_caller *caller);

#endif
