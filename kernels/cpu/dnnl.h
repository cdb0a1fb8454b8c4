/* oneDNN on the calling thread. The library may be built with OpenMP, whose thread count is a setting of the calling
 * thread. It is set to 1 around every call that executes or plans, and restored afterwards. The library takes locks in these calls,
 * so that a fork waits for them. */
#ifndef EDDY_KERNELS_CPU_DNNL_H
#define EDDY_KERNELS_CPU_DNNL_H

#include <eddy/status.h>
#include <kernels/cpu/dnnl_api.h>
#include <pthread.h>
#include <stdbool.h>

/* Enters the gate of forks (base/fork_gate.h) and sets the calling thread's OpenMP thread count to 1. Returns the count before, for eddy_dnnl_end. */
int eddy_dnnl_begin(void);
void eddy_dnnl_end(int before);

/* The CPU's engine, the same for the life of the process; NULL if there is none. Any thread. */
dnnl_engine_t eddy_dnnl_engine(void);

/* Whether there is address space for what the library allocates once and for the code that it generates. The library does
 * not check whether its allocations succeed, and crashes; so this is called before it creates anything. */
bool eddy_dnnl_has_room(void);

/* For a sequence of library calls in which each needs the one before. Stores the status; returns whether the call
 * succeeded. */
static inline bool eddy_dnnl_goes(dnnl_status_t *status, dnnl_status_t said) {
    *status = said;
    return said == dnnl_success;
}

/* The status of creating a primitive (eddy_prepared_kind). UNSUPPORTED: the library has no code for it, which holds for
 * the life of the process. OUT_OF_MEMORY: there is not enough memory. */
eddy_status eddy_dnnl_made(dnnl_status_t status);

/* The first calls construct the library's function-local static objects, which registers their destructors as exit
 * handlers. An exit handler that was registered earlier runs after these, while kernels may still execute. So such calls
 * are made once, when an op is issued. */
typedef struct eddy_dnnl_start {
    pthread_once_t once;
    _Atomic bool
        is_done; /* atomic: release by the thread that has waited for the calls, acquire by threads that skip them */
} eddy_dnnl_start;

#define EDDY_DNNL_START                                                                            \
    { PTHREAD_ONCE_INIT, false }

/* Calls `make` once per process. True for the calls that found it not yet done. For eddy_kernel.prepare. */
bool eddy_dnnl_start_once(eddy_dnnl_start *start, void (*make)(void));

/* A thread's turn to execute primitives: a stream, and eddy_dnnl_begin. eddy_dnnl_turn_begin returns false if memory is
 * short; the turn has to be ended in either case. */
typedef struct eddy_dnnl_turn {
    dnnl_stream_t stream;
    int before;
} eddy_dnnl_turn;

bool eddy_dnnl_turn_begin(eddy_dnnl_turn *turn);
void eddy_dnnl_turn_end(eddy_dnnl_turn *turn);

/* A call of a primitive, with memory that is described and passed for this call alone. `is_good` is true at the start. */
typedef struct eddy_dnnl_call {
    dnnl_exec_arg_t arguments[6];
    int count;
    bool is_good;
} eddy_dnnl_call;

void eddy_dnnl_give(eddy_dnnl_call *call, int name, const eddy_dnnl_desc *desc, void *data);
/* False if memory was short: the primitive was not executed. The call cannot be used again. */
bool eddy_dnnl_execute(eddy_dnnl_call *call, dnnl_primitive_t primitive,
                       const eddy_dnnl_turn *turn);

#endif
