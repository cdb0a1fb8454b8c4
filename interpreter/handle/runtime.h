/* A runtime: one VM, and the interpreter's data of it.
 *
 * state:  RUNNING --eddy_runtime_shutdown, last reference--> SHUT_DOWN
 *         RUNNING --exit--> EXITING (new calls are refused, nothing is freed)
 *         any --fork, in the child--> FORKED
 *
 * The struct, and the remains of the closed VM, live as long as an object is bound to them (`bindings`): a handle,
 * stream or event. Cached handles stay bound, so that in the steady state no count changes. So the
 * holder of a tensor may call the VM, which itself returns SHUT_DOWN or FORKED. */
#ifndef EDDY_INTERPRETER_HANDLE_RUNTIME_H
#define EDDY_INTERPRETER_HANDLE_RUNTIME_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/call_site.h>
#include <eddy/device.h>
#include <eddy/runtime.h>
#include <eddy/status.h>
#include <interpreter/handle/caller.h>
#include <streams/backend.h>
#include <vm/vm.h>

typedef enum eddy_runtime_state {
    EDDY_RUNTIME_RUNNING,
    EDDY_RUNTIME_SHUT_DOWN,
    EDDY_RUNTIME_EXITING,
    EDDY_RUNTIME_FORKED,
} eddy_runtime_state;

/* What program/ keeps with a runtime: parts of programs that may come again. It begins with these functions. */
typedef struct eddy_runtime_cache eddy_runtime_cache;
struct eddy_runtime_cache {
    int64_t (*trim)(eddy_runtime_cache *cache); /* gives all of it up; returns its bytes */
    int64_t (*bytes)(eddy_runtime_cache *cache);
    void (*destroy)(eddy_runtime_cache *cache);
};

/* Devices that are simulated (eddy/device.h). */
#define EDDY_RUNTIME_FAR 4
#define EDDY_RUNTIME_FAR_BYTES (INT64_C(1) << 30)
/* Devices of a kind that a runtime uses. */
#define EDDY_RUNTIME_DEVICES 16

struct eddy_runtime {
    _Atomic uint32_t
        state; /* atomic: the thread that shuts down stores (release), callers read (acquire) for a better error */
    eddy_vm *vm;        /* const after init */
    uint64_t id;        /* const after init; never reused */
    eddy_device device; /* const after init: the default of creation ops */
    /* atomic: the VM's number of a device other than the host (release), once it is used; 0 before */
    _Atomic uint8_t vm_devices[EDDY_DEVICE_KIND_COUNT][EDDY_RUNTIME_DEVICES];
    _Atomic int64_t references; /* atomic: users and threads whose current runtime it is */
    _Atomic int64_t bindings;   /* atomic: handles, streams, events, and one for all references */
    _Atomic uint64_t seed;      /* atomic: written under the lock of generators, with `epoch` */
    _Atomic uint64_t epoch; /* atomic: counts eddy_seed (release); threads that draw acquire it */
    _Atomic uint64_t next_number; /* atomic: of threads that draw, since the last eddy_seed */
    bool is_silent;               /* const after init: prints nothing at exit */
    bool allows_passes;           /* const after init: false where each op's result is looked at */
    uint32_t passes; /* const after init: a bit for each pass that programs go through */
    int64_t program_cache_bytes;         /* const after init: what `programs` may take */
    int32_t program_streams;             /* const after init: the option */
    eddy_backend_options device_options; /* const after init: the options */
    bool captures_graphs; /* const after init: the option, without checks of results */
    _Atomic(eddy_runtime_cache *)
        programs; /* atomic: made when first needed (acq_rel), read acquire; NULL before */
    _Atomic int64_t programs_built, programs_shared; /* atomic: relaxed counters of program/ */
    struct eddy_runtime *next;                       /* lock: runtimes */
    struct eddy_runtime *exit_next; /* the exiting thread only: runtimes that it waits for */
    bool uses_one_thread;           /* const after init: the option */
    char cache_dir[1024];           /* const after init: the option */
};

/* The calling thread's current runtime; starts the default one. Errors are recorded under `op`. */
EDDY_MUST_USE eddy_status eddy_runtime_of_caller(eddy_caller *caller, eddy_origin origin,
                                                 eddy_runtime **runtime);

/* Registers the exit handler again, so that it runs before all handlers registered so far: a library that kernels use has just made static
 * objects, which must not be destroyed while work is in flight. Any thread. */
void eddy_runtime_exit_first(void);
/* Registers the handlers of exit and fork, once. Any thread. */
void eddy_runtime_watch_exit(void);
/* Visits each runtime that has not been freed; false: the list is in use. The visitor neither makes nor frees one. Any thread. */
EDDY_MUST_USE bool eddy_runtime_each(void (*visit)(eddy_runtime *runtime, void *context),
                                     void *context);
/* Whether the process has begun to exit. */
bool eddy_runtime_is_exiting(void);

/* The memory of the struct. Any thread. */
void eddy_runtime_bind(eddy_runtime *runtime);
void eddy_runtime_unbind(eddy_runtime *runtime);

static inline bool eddy_runtime_is_running(const eddy_runtime *runtime) {
    return EDDY_LIKELY(eddy_load_acquire(&runtime->state) == EDDY_RUNTIME_RUNNING);
}

/* OK, or why the runtime does not run any more: SHUT_DOWN or FORKED. */
static inline eddy_status eddy_runtime_status(const eddy_runtime *runtime) {
    uint32_t state = (uint32_t)eddy_load_acquire(&runtime->state);
    if (EDDY_LIKELY(state == EDDY_RUNTIME_RUNNING))
        return EDDY_OK;
    return state == EDDY_RUNTIME_FORKED ? EDDY_FORKED : EDDY_SHUT_DOWN;
}

/* Records that the runtime does not run any more: SHUT_DOWN or FORKED. `detail` ends the sentence. */
eddy_status eddy_runtime_refuse(const eddy_runtime *runtime, eddy_origin origin,
                                const char *detail);

/* True while a runtime of this id has not been shut down. */
bool eddy_runtime_exists(uint64_t id);

/* The device of a name, "cpu" or "cuda:1"; false: it is none. */
bool eddy_runtime_device_named(const char *text, eddy_device *device);
/* Whether this machine has the device. */
bool eddy_runtime_has_device(eddy_device device);

/* The calling thread's current runtime, which runs; else a failure, recorded. */
EDDY_MUST_USE eddy_status eddy_runtime_running(eddy_origin origin, eddy_runtime **runtime);

/* "far"; "?" for what is no kind. Static storage. */
const char *eddy_runtime_device_kind_name(eddy_device_kind kind);
/* What a device's tensors and workspaces may take where nobody has said. */
int64_t eddy_runtime_device_bytes(eddy_device device);
/* UNSUPPORTED, recorded, where there is no such device; EDDY_DEVICE_DEFAULT is none. */
EDDY_MUST_USE eddy_status eddy_runtime_check_device(eddy_device device, eddy_origin origin);
/* The device that a creation op of the thread takes: `asked` (kind DEFAULT, NULL: none), scope, runtime.
 * UNSUPPORTED, recorded under `op`, if there is no such device. */
EDDY_MUST_USE eddy_status eddy_runtime_device(const eddy_caller *caller, eddy_runtime *runtime,
                                              const eddy_device *asked, eddy_origin origin,
                                              eddy_device *device);

/* In a forked child: no other thread starts a device. */
void eddy_runtime_devices_fork_child(void);
/* The VM's number of a device that eddy_runtime_device has given: 0 is the host. */
static inline uint8_t eddy_runtime_vm_device(const eddy_runtime *runtime, eddy_device device) {
    return EDDY_LIKELY(device.kind == EDDY_DEVICE_CPU)
               ? 0
               : eddy_load_acquire(&runtime->vm_devices[device.kind][device.index]);
}

/* The passes that a text names: "all", "fast", "none", or names with commas between them. INVALID_ARGUMENT, recorded under the origin;
 * `from` is the field or variable that the text is the value of. */
EDDY_MUST_USE eddy_status eddy_runtime_parse_passes(const char *text, const char *from,
                                                    eddy_origin origin, uint32_t *passes);

#endif
