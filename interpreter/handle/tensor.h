/* The tensor handle.
 *
 * A root handle holds a storage of the VM by its number; a view holds a reference on a root. The VM never accesses
 * handles, except the release link after the last reference is gone.
 *
 *   CACHED (in its owner's list) --acquire--> LIVE --last reference--> RELEASED (root: the VM owns the link)
 *   RELEASED --recycle--> CACHED, or on its owner's return stack when it was recycled by another thread
 *
 * Fields are const while the handle is LIVE, except the tagged ones. Up to rank 5 a call accesses three cache
 * lines. */
#ifndef EDDY_INTERPRETER_HANDLE_TENSOR_H
#define EDDY_INTERPRETER_HANDLE_TENSOR_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/call_site.h>
#include <base/clock.h>
#include <base/shape.h>
#include <eddy/tensor.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/scope.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vm/vm.h>

/* The tape's origin of a tensor: the address of a node and, in its low bits, which output of the node; 0 if the tensor requires no
 * gradient. One word instead of two fields, since each handle has it. */
typedef uintptr_t eddy_autograd;

typedef struct eddy_axis {
    int64_t dim;
    int64_t stride; /* elements; if `is_contiguous`, that of a row-major tensor, whatever the dim */
} eddy_axis;

/* A tensor's key: equal keys mean one dtype, one shape and the same strides, without gaps from the start of the storage, on the CPU. 0:
 * it is on another device, has gaps, or too many axes that are not row-major, or the key was not computed yet, or the handle is not LIVE.
 *
 *   63 .. 32 number of the shape | 31 .. 16 order of the axes, 0 for row-major | 15 .. 8 dtype | 1 recorded | 0 always set */
typedef uint64_t eddy_tensor_key;

static inline eddy_tensor_key eddy_tensor_key_make(uint32_t number, uint16_t order, uint8_t dtype) {
    return (uint64_t)number << 32 | (uint64_t)order << 16 | (uint64_t)dtype << 8 | 1;
}

/* In the key of a tensor that requires a gradient. */
#define EDDY_TENSOR_KEY_RECORDED ((eddy_tensor_key)2)

/* The key of a tensor that differs only in its dtype, and requires no gradient. */
static inline eddy_tensor_key eddy_tensor_key_with(eddy_tensor_key key, uint8_t dtype) {
    return (key & ~((eddy_tensor_key)UINT8_MAX << 8 | EDDY_TENSOR_KEY_RECORDED)) |
           (eddy_tensor_key)dtype << 8;
}

static inline uint32_t eddy_tensor_key_shape(eddy_tensor_key key) {
    return (uint32_t)(key >> 32);
}

static inline uint8_t eddy_tensor_key_dtype(eddy_tensor_key key) {
    return (uint8_t)(key >> 8);
}

struct eddy_tensor {
    _Atomic uint32_t
        references; /* atomic: 0 unless LIVE; the holder of the only one needs no locked operation */
    eddy_storage_number storage;
    eddy_runtime *runtime; /* bound also while CACHED */
    _Atomic eddy_tensor_key
        key; /* atomic: the thread that computes it stores it (release: after a late shape), read acquire */
    uint8_t dtype;
    int8_t rank; /* late: written before is_late is cleared */
    _Atomic bool
        is_late; /* atomic: cleared (release) when the shape is known; then rank, count, axes may be read */
    bool is_contiguous;       /* a late tensor is */
    uint32_t scope_slot;      /* the scope's thread only */
    int64_t count;            /* elements; late like rank */
    int64_t offset;           /* elements from the storage's start */
    struct eddy_tensor *root; /* itself, or the handle that a view holds */
    _Atomic(eddy_scope *)
        scope; /* atomic: the scope's thread stores (release), others load (acquire) to compare */

    union {
        eddy_vm_release_link
            link; /* LIVE: `after` is 1 if the memory is borrowed. RELEASED: owned by the VM. CACHED: the next handle */
        /* LIVE, in place of the link's first word. atomic: relaxed */
        struct {
            _Atomic uint32_t retained; /* the number of references of eddy_retain */
            /* Root: counts each view of it that becomes a leaf, or is none any more; from any number on. */
            _Atomic uint32_t view_leaves;
        };
    };
    eddy_caller *owner;  /* const: the caller whose cache it comes from */
    const void *address; /* the public call that made it */
    eddy_axis axes[EDDY_RANK_MAX];
    int8_t device_kind, device_index;
    /* A view of all of its root, made with it by a recorded call: the only handle that the user got. */
    bool stands_in;
    _Atomic bool
        is_saved; /* atomic: relaxed; root: a node has saved it, or a view of it, at some time */
    _Atomic uint32_t
        version; /* atomic: relaxed; root: writes to its storage that were issued so far */
    eddy_autograd autograd;
};

_Static_assert(sizeof(struct eddy_tensor) == 384, "six cache lines");
_Static_assert(offsetof(struct eddy_tensor, link) == 64, "what every call reads is one line");
_Static_assert(offsetof(eddy_vm_release_link, after) >= 2 * sizeof(uint32_t),
               "the counts leave `after` alone");

static inline eddy_device eddy_tensor_device(const eddy_tensor *tensor) {
    return (eddy_device){(eddy_device_kind)tensor->device_kind, tensor->device_index};
}

static inline void eddy_tensor_set_device(eddy_tensor *tensor, eddy_device device) {
    tensor->device_kind = (int8_t)device.kind;
    tensor->device_index = (int8_t)device.index;
}

static inline bool eddy_tensor_is_none(const eddy_tensor *tensor) {
    return tensor == EDDY_NONE;
}

/* ---- life ---- */

/* Fills the cache of `caller` and takes a handle; NULL if there is no memory. */
eddy_tensor *eddy_tensor_acquire_slow(eddy_caller *caller);
/* Binds a cached handle to another runtime. */
void eddy_tensor_rebind(eddy_tensor *tensor, eddy_runtime *runtime);

/* A handle with one reference and no storage; the caller fills in dtype, layout and storage. NULL, nothing
 * recorded, if there is no memory. */
static inline eddy_tensor *eddy_tensor_acquire(eddy_caller *caller, eddy_runtime *runtime,
                                               const void *address) {
    eddy_tensor *tensor = caller->free_handles;
    if (EDDY_UNLIKELY(tensor == NULL)) {
        tensor = eddy_tensor_acquire_slow(caller);
        if (!tensor)
            return NULL;
    }
    caller->free_handles = (eddy_tensor *)tensor->link.link.next;
    eddy_store_relaxed(&tensor->retained, 0u);
    if (EDDY_UNLIKELY(tensor->runtime != runtime))
        eddy_tensor_rebind(tensor, runtime);
    eddy_store_relaxed(&tensor->is_late, false);
    tensor->is_contiguous = true;
    tensor->offset = 0;
    tensor->root = tensor;
    eddy_store_relaxed(&tensor->scope, NULL);
    EDDY_CHECK(eddy_load_relaxed(&tensor->key) == 0);
    tensor->address = address;
    tensor->storage = 0;
    tensor->link.after = 0;
    eddy_store_relaxed(&tensor->references, 1u);
    eddy_caller_count(caller, 1);
    return tensor;
}

/* Returns a handle to the cache that got no storage and was not published. */
void eddy_tensor_discard(eddy_caller *caller, eddy_tensor *tensor);

/* Ends a handle whose last reference is gone. */
void eddy_tensor_finish(eddy_tensor *tensor);

static inline void eddy_tensor_retain(eddy_tensor *tensor) {
    EDDY_CHECK(eddy_load_relaxed(&tensor->references) > 0);
    eddy_add_relaxed(&tensor->references, 1u);
}

/* Gives up one reference that no scope owns. */
static inline void eddy_tensor_drop(eddy_tensor *tensor) {
    /* The holder of the only reference needs no locked operation: no other thread can make one. Acquire: sees the writes of threads that
     * released theirs before. */
    if (EDDY_LIKELY(eddy_load_acquire(&tensor->references) == 1) ||
        eddy_sub_acq_rel(&tensor->references, 1u) == 1) {
        eddy_store_relaxed(&tensor->references, 0u);
        eddy_tensor_finish(tensor);
    }
}

/* Lays the tensor out row-major; dims need not be the tensor's own. */
void eddy_tensor_lay(eddy_tensor *tensor, int32_t rank, const int64_t *dims, int64_t count);
/* The same, but the axes have the order in memory of those of `like`, which has the same rank: channels last stays channels
 * last. Row-major if `like` is. */
void eddy_tensor_lay_like(eddy_tensor *tensor, int32_t rank, const int64_t *dims, int64_t count,
                          const eddy_tensor *like);
/* Images [.., C, H, W], rank 3 or more, whose channels are adjacent in memory. */
void eddy_tensor_lay_last(eddy_tensor *tensor, const eddy_shape *shape);
/* Sets dims, strides and offset, and whether they are row-major. */
void eddy_tensor_set_layout(eddy_tensor *tensor, const eddy_layout *layout);
void eddy_tensor_layout(const eddy_tensor *tensor, eddy_layout *layout);
/* The tensor's axes in their order in memory, the outermost first. */
void eddy_tensor_find_order(const eddy_tensor *tensor, uint8_t *order);
void eddy_tensor_shape(const eddy_tensor *tensor, eddy_shape *shape);
/* The number of the interned shape; 0 if the table is full. The shape is known. */
uint32_t eddy_tensor_shape_number(const eddy_tensor *tensor);
/* Computes the key; 0 if there is none. Late shapes have none until a thread has waited for them. */
eddy_tensor_key eddy_tensor_find_key(eddy_tensor *tensor);

/* A view with the given layout, holding the root; one reference, no scope. NULL, recorded under `op`, without
 * memory. */
eddy_tensor *eddy_tensor_view(eddy_caller *caller, eddy_tensor *tensor, const eddy_layout *layout,
                              eddy_origin origin);

/* Makes a handle without storage another one of `tensor`: the same elements. */
void eddy_tensor_alias(eddy_tensor *alias, const eddy_tensor *tensor);

/* Notes that a write to the tensor's storage has been issued, or is about to be. */
static inline void eddy_tensor_written(eddy_tensor *tensor) {
    eddy_add_relaxed(&tensor->root->version, 1u);
}

/* ---- checks of arguments ---- */

/* Whether a pointer from the user is a tensor: not NULL, not EDDY_NONE, and not a released handle. */
static inline bool eddy_tensor_is_live(const eddy_tensor *tensor) {
    return (uintptr_t)tensor > (uintptr_t)EDDY_NONE && eddy_load_relaxed(&tensor->references) > 0;
}

/* Records why a pointer is no tensor; NULL, which failed before, only in an empty slot. `what` names the operand in the message. */
EDDY_MUST_USE eddy_status eddy_tensor_refuse(const eddy_tensor *tensor, const char *what,
                                             eddy_origin origin);

/* OK if a pointer from the user is a tensor. */
EDDY_MUST_USE static inline eddy_status eddy_tensor_check(const eddy_tensor *tensor,
                                                          const char *what, eddy_origin origin) {
    return EDDY_LIKELY(eddy_tensor_is_live(tensor)) ? EDDY_OK
                                                    : eddy_tensor_refuse(tensor, what, origin);
}

/* The same for an item of a list, which the message names: "tensors[3]". */
EDDY_MUST_USE eddy_status eddy_tensor_check_item(const eddy_tensor *tensor, const char *list,
                                                 int64_t item, eddy_origin origin);

static inline bool eddy_tensor_is_late(const eddy_tensor *tensor) {
    return eddy_load_acquire(&tensor->is_late);
}

EDDY_MUST_USE eddy_status eddy_tensor_await_late_shape(eddy_tensor *tensor, int64_t deadline,
                                                       eddy_origin origin);

/* Waits for a shape that may be late, until a deadline (eddy_clock_deadline): TIMED_OUT. */
EDDY_MUST_USE static inline eddy_status
eddy_tensor_await_shape_until(eddy_tensor *tensor, int64_t deadline, eddy_origin origin) {
    return EDDY_LIKELY(!eddy_tensor_is_late(tensor))
               ? EDDY_OK
               : eddy_tensor_await_late_shape(tensor, deadline, origin);
}
/* The same without a deadline. */
EDDY_MUST_USE static inline eddy_status eddy_tensor_await_shape(eddy_tensor *tensor,
                                                                eddy_origin origin) {
    return eddy_tensor_await_shape_until(tensor, EDDY_CLOCK_FOREVER, origin);
}

/* check, then await_shape. */
EDDY_MUST_USE eddy_status eddy_tensor_check_shape(const eddy_tensor *tensor, eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_tensor_check_shape_until(eddy_tensor *tensor, int64_t deadline,
                                                        eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_tensor_check_item_shape(eddy_tensor *tensor, const char *list,
                                                       int64_t item, eddy_origin origin);

/* "f32[64, 784]" as snprintf does. */
int eddy_tensor_describe(const eddy_tensor *tensor, char *buffer, size_t size);

/* In a forked child. */
void eddy_tensor_fork_child(void);

/* For eddy_trim and the leak report. */
typedef struct eddy_handle_slab {
    struct eddy_handle_slab *next;
    int64_t cached; /* used while trimming */
    _Alignas(EDDY_CACHE_LINE) eddy_tensor handles[];
} eddy_handle_slab;
#define EDDY_HANDLE_SLAB_COUNT 42
#define EDDY_HANDLE_SLAB_BYTES                                                                     \
    (EDDY_CACHE_LINE + EDDY_HANDLE_SLAB_COUNT * sizeof(struct eddy_tensor))

#endif
