/* Stores: named trees of tensors, from which a program takes the tensors that it runs on.
 *
 * A store holds tensors by name. A name that it does not hold is looked up in its parent, and so on to the root: parameters that are
 * shared stand in the root, what differs from user to user in children, which may also hold another tensor under the same name.
 *
 *     eddy_tensor_store *model = eddy_tensor_store_create(NULL), *user = eddy_tensor_store_create(model);
 *     eddy_tensor_store_set(model, "w", w);
 *     eddy_tensor_store_set(user, "cache", eddy_zeros(...));
 *     eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &y}),
 *                            EDDY_OPTIONS(program_run_named, .store = user));
 *
 * Stores are reference-counted and no scope owns them; a store holds a reference of its parent and of its tensors. Any thread, at the same
 * time, never blocks (but for a short lock); a look-up sees each store of its chain as it is at one moment. Names are not empty and compared byte
 * by byte. Failures fill the calling thread's error slot; INVALID_ARGUMENT for a NULL store or name. */
#ifndef EDDY_TENSOR_STORE_H
#define EDDY_TENSOR_STORE_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_tensor_store eddy_tensor_store;

/* A new, empty store, one reference, the caller's; parent: NULL for a root. NULL with OUT_OF_MEMORY in the slot. */
EDDY_API eddy_tensor_store *eddy_tensor_store_create(eddy_tensor_store *parent);
/* One more reference; returns its argument, which may be NULL. */
EDDY_API eddy_tensor_store *eddy_tensor_store_retain(eddy_tensor_store *store);
/* Gives up a reference and clears the pointer; NULL and pointers to NULL do nothing. */
EDDY_API void eddy_tensor_store_release(eddy_tensor_store **store);

/* Holds the tensor under a name (copied) in this store, in place of the one that it held before, if there is one. The store keeps the handle
 * itself, whatever scopes end: a gradient that it requires, now or later, goes to it. INVALID_ARGUMENT, OUT_OF_MEMORY: nothing has changed. */
EDDY_API eddy_status eddy_tensor_store_set(eddy_tensor_store *store, const char *name,
                                           eddy_tensor *tensor);
/* The tensor of a name, in this store or the nearest parent that holds it, as another handle, owned as <eddy/tensor.h> says: of the same
 * memory, and with the same gradient if it requires one. NULL with INVALID_ARGUMENT if there is none, or OUT_OF_MEMORY. */
EDDY_API eddy_tensor *eddy_tensor_store_get(eddy_tensor_store *store, const char *name);
/* Gives up the tensor that this store holds under a name. INVALID_ARGUMENT if it holds none; parents are not changed. */
EDDY_API eddy_status eddy_tensor_store_remove(eddy_tensor_store *store, const char *name);

/* The tensors that this store holds itself; -1 on failure. */
EDDY_API int64_t eddy_tensor_store_count(eddy_tensor_store *store);
/* The name of one of them, 0 to count - 1, in the order of the names. The store's: valid until that name is removed, or the store ends. NULL with
 * OUT_OF_RANGE if there are fewer. Names that other threads set or remove meanwhile change the numbers. */
EDDY_API const char *eddy_tensor_store_name(eddy_tensor_store *store, int64_t index);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_tensor_store_create(...) EDDY_AT_CALL_SITE(eddy_tensor_store_create(__VA_ARGS__))
#define eddy_tensor_store_retain(...) EDDY_AT_CALL_SITE(eddy_tensor_store_retain(__VA_ARGS__))
#define eddy_tensor_store_release(...)                                                             \
    EDDY_AT_CALL_SITE_VOID(eddy_tensor_store_release(__VA_ARGS__))
#define eddy_tensor_store_set(...) EDDY_AT_CALL_SITE(eddy_tensor_store_set(__VA_ARGS__))
#define eddy_tensor_store_get(...) EDDY_AT_CALL_SITE(eddy_tensor_store_get(__VA_ARGS__))
#define eddy_tensor_store_remove(...) EDDY_AT_CALL_SITE(eddy_tensor_store_remove(__VA_ARGS__))
#define eddy_tensor_store_count(...) EDDY_AT_CALL_SITE(eddy_tensor_store_count(__VA_ARGS__))
#define eddy_tensor_store_name(...) EDDY_AT_CALL_SITE(eddy_tensor_store_name(__VA_ARGS__))
#endif
#endif
