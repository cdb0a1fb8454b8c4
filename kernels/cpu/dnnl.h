/* oneDNN on the calling thread. The library may be built over OpenMP, whose number of threads is a setting of the calling
 * thread: it is set to 1 round every call that works or plans, and put back. */
#ifndef EDDY_KERNELS_CPU_DNNL_H
#define EDDY_KERNELS_CPU_DNNL_H

#include <eddy/status.h>
#include <kernels/cpu/dnnl_api.h>
#include <pthread.h>
#include <stdbool.h>

/* Sets the thread's number to 1 and says what it was, for eddy_dnnl_end. */
int eddy_dnnl_begin(void);
void eddy_dnnl_end(int before);

/* The CPU's engine, the same for the life of the process; NULL where there is none. Any thread. */
dnnl_engine_t eddy_dnnl_engine(void);

/* Whether there is address space for what the library makes once and for the code that it generates. It does not look whether it
 * got what it asked for, and dies; so this is asked before it makes anything. */
bool eddy_dnnl_has_room(void);

/* For calls of which each needs the one before: whether this one went well, and what it said. */
static inline bool eddy_dnnl_goes(dnnl_status_t *status, dnnl_status_t said) {
    *status = said;
    return said == dnnl_success;
}

/* What making a primitive has come to (eddy_prepared_kind): UNSUPPORTED where the library has no code for it, which holds as long as
 * the process lives; OUT_OF_MEMORY. */
eddy_status eddy_dnnl_made(dnnl_status_t status);

/* What the library keeps in static objects of functions is made by the first calls: an exit handler that was registered before
 * them runs after they are gone, while work may still be under way. So somebody makes such calls once, where an op is issued. */
typedef struct eddy_dnnl_start {
    pthread_once_t once;
    _Atomic bool
        is_done; /* atomic: release by who has waited for the calls, acquire by who need not */
} eddy_dnnl_start;

#define EDDY_DNNL_START                                                                            \
    { PTHREAD_ONCE_INIT, false }

/* Has `make` called, unless it has been: true for the calls that found it not made. For eddy_kernel.prepare. */
bool eddy_dnnl_start_once(eddy_dnnl_start *start, void (*make)(void));

/* A thread's turn to execute primitives: a stream, and eddy_dnnl_begin. False where there is no memory; to be ended all the
 * same. */
typedef struct eddy_dnnl_turn {
    dnnl_stream_t stream;
    int before;
} eddy_dnnl_turn;

bool eddy_dnnl_turn_begin(eddy_dnnl_turn *turn);
void eddy_dnnl_turn_end(eddy_dnnl_turn *turn);

/* A primitive on memory that is described and given for this call. Starts with `is_good` true. */
typedef struct eddy_dnnl_call {
    dnnl_exec_arg_t arguments[6];
    int count;
    bool is_good;
} eddy_dnnl_call;

void eddy_dnnl_give(eddy_dnnl_call *call, int name, const eddy_dnnl_desc *desc, void *data);
/* False where it was not executed: no memory. The call is used up. */
bool eddy_dnnl_execute(eddy_dnnl_call *call, dnnl_primitive_t primitive,
                       const eddy_dnnl_turn *turn);

#endif
