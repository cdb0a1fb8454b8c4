/* Events of what the library does, for NVTX, trace files, logs and counters: any number of listeners up to EDDY_TRACE_LISTENERS_MOST, each of the phases that it asks for.
 *
 * Without a listener an event costs a test of one word. A listener is added and removed while work runs. What it has heard begin it hears end, unless it is removed in between; it hears no end
 * of what had begun before it was added. Once eddy_trace_remove has returned, it is not called any more. A forked child keeps the listeners.
 *
 *   sender:   active has the bit? -> inside += 1 -> active still has it? -> call -> inside -= 1
 *   remover:  active loses the bit -> waits until nobody is inside -> the place is free
 *
 * The sender's addition and second look, and the remover's change and look, are seq_cst: one of them sees the other. (vm/model/listener.pml) */
#ifndef EDDY_BASE_TRACE_H
#define EDDY_BASE_TRACE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <eddy/status.h>
#include <stddef.h>
#include <stdint.h>

/* Enumerator, name, what its begin and end stand around. */
#define EDDY_TRACE_PHASE_LIST(row)                                                                 \
    row(ISSUE, issue)           /* a call of an op, on its caller */                               \
        row(INFER, infer)       /* its dtypes and shapes */                                        \
        row(SCHEDULE, schedule) /* an instruction is taken by the engine */                        \
        row(DISPATCH, dispatch) /* it is handed to the thread or the device that runs it */        \
        row(KERNEL, kernel)     /* it runs; on a device it is launched */                          \
        row(SLICE, slice)       /* a part of it, on a helping thread */                            \
        row(DEVICE, device)     /* a device has done it: noticed at that moment */                 \
        row(RELEASE, release)   /* it is over: its operands are let go */                          \
        row(WAIT, wait)         /* a thread waits: for a result, or for room */                    \
        row(CALLBACK, callback) /* user code on the service thread */                              \
        row(COPY, copy)         /* bytes between devices */                                        \
        row(PROGRAM, program)   /* a run of a program */                                           \
        row(COLLECTIVE, collective)                                                                \
            row(ALLOCATOR, allocator) /* memory is taken, given, trimmed */                        \
        row(POISON, poison)           /* an instruction failed, or one before it */                \
        row(RANGE, range)             /* of the user */

typedef enum eddy_trace_phase {
#define EDDY_TRACE_PHASE_ROW(enumerator, name) EDDY_TRACE_##enumerator,
    EDDY_TRACE_PHASE_LIST(EDDY_TRACE_PHASE_ROW)
#undef EDDY_TRACE_PHASE_ROW
        EDDY_TRACE_PHASE_COUNT
} eddy_trace_phase;

#define EDDY_TRACE_ALL_PHASES ((1u << EDDY_TRACE_PHASE_COUNT) - 1)

typedef enum eddy_trace_kind {
    EDDY_TRACE_BEGINS,
    EDDY_TRACE_ENDS,
    EDDY_TRACE_HAPPENS, /* at one moment */
} eddy_trace_kind;

struct eddy_vm_instruction;

/* Where a kernel runs. */
typedef struct eddy_trace_stream {
    uint32_t runtime,
        number;      /* that of the runtime in the process, from 1 on; its own in the runtime */
    bool is_ordered; /* what is on it comes one after another */
    bool is_devices;
    const char *
        name; /* of static life. Of a device it begins with the device's and a comma, or is the device's alone; of the host NULL where it has none */
} eddy_trace_stream;

/* What is not known is 0. Valid during the call. */
typedef struct eddy_trace_event {
    eddy_trace_phase phase;
    eddy_trace_kind kind;
    const char *op;   /* of static life; of a range: as the user gave it */
    uint32_t runtime; /* in which the numbers are: its own in the process, from 1 on */
    uint64_t sequence;
    const void *address; /* of the call (call_site.h) */
    uint64_t stream;     /* its number in the runtime */
    /* Of kernels, but for the steps of a run on the host, and of what a device has done. */
    const eddy_trace_stream *on;
    /* Of what a device has done, by eddy_clock_ns: from its launch on, or from the end of what was before it in its queue, as far as that was noticed by then. 0: nothing was launched. */
    int64_t began_ns;
    int64_t bytes;
    int64_t live; /* of kernels: bytes of the host's or the device's memory that are in use */
    const struct eddy_vm_instruction *instruction;
    /* "add(f32[16], f32[16])": as snprintf, of `instruction`, for who wants to know. */
    int (*describe)(const struct eddy_vm_instruction *instruction, char *buffer, size_t size);
    uint64_t
        origin; /* of an edge: the instruction that was waited for; of poison: the one that failed */
    /* Of static life. Of a wait, what it is for, and at its end NULL, but for callers that were held back. */
    const char *detail;
} eddy_trace_event;

#define EDDY_TRACE_LISTENERS_MOST 8

/* Called on the thread that the event is of, possibly under locks of the library: it calls nothing of it but what says so, and does not block. */
typedef struct eddy_trace_listener {
    void (*hear)(void *context, const eddy_trace_event *event);
    void *context;
    uint32_t phases; /* a bit for each that it hears */
} eddy_trace_listener;

/* OUT_OF_MEMORY where there are EDDY_TRACE_LISTENERS_MOST. *listener is copied; *place names it. Any thread. */
EDDY_MUST_USE eddy_status eddy_trace_add(const eddy_trace_listener *listener, uint32_t *place);
/* Waits for its calls that are under way. Not from within one. */
void eddy_trace_remove(uint32_t place);
const char *eddy_trace_phase_name(eddy_trace_phase phase);
/* "loader", "stream 3", "far:0, compute", "far:0, stream 3": as snprintf, without the runtime. */
int eddy_trace_stream_text(const eddy_trace_stream *stream, char *buffer, size_t size);

/* ---- sending ---- */

extern _Atomic uint32_t
    eddy_trace_phases; /* atomic: a bit for each phase that anyone hears; relaxed, since it is a hint */

/* A begun event: who has heard it. */
typedef struct eddy_trace_span {
    uint16_t listeners; /* a bit each; 0: nobody */
    uint16_t phase;
    uint32_t generation;
} eddy_trace_span;

eddy_trace_span eddy_trace_send_begin(const eddy_trace_event *event);
void eddy_trace_send_end(eddy_trace_span span, const eddy_trace_event *event);
void eddy_trace_send(const eddy_trace_event *event);

/* The kernel that the calling thread is in, as far as somebody hears of kernels: what others do for it says so. */
typedef struct eddy_trace_kernel {
    const char *op; /* NULL: none */
    uint64_t sequence : 48;
    uint64_t runtime : 16;
} eddy_trace_kernel;
extern __thread __attribute__((tls_model("initial-exec"))) eddy_trace_kernel eddy_trace_inside;

/* A build without events is made to measure what they cost where nobody listens. */
#ifdef EDDY_NO_EVENTS
#define EDDY_HAS_EVENTS 0
#else
#define EDDY_HAS_EVENTS 1
#endif

/* Whether anyone hears anything: ways are left that raise no events. */
static inline bool eddy_trace_is_on(void) {
    return EDDY_HAS_EVENTS && EDDY_UNLIKELY(eddy_load_relaxed(&eddy_trace_phases) != 0);
}

/* Whether anyone hears the phase; tested before an event that is expensive to describe. */
static inline bool eddy_trace_hears(eddy_trace_phase phase) {
    return EDDY_HAS_EVENTS &&
           EDDY_UNLIKELY((eddy_load_relaxed(&eddy_trace_phases) & 1u << phase) != 0);
}

/* An event that begins; the span goes to EDDY_TRACE_END. The fields are evaluated only where somebody hears. */
#define EDDY_TRACE_BEGIN(phase_, ...)                                                              \
    (eddy_trace_hears(EDDY_TRACE_##phase_)                                                         \
         ? eddy_trace_send_begin(&(eddy_trace_event){.phase = EDDY_TRACE_##phase_, ##__VA_ARGS__}) \
         : (eddy_trace_span){0})
#define EDDY_TRACE_END(span, ...)                                                                  \
    do {                                                                                           \
        if (EDDY_UNLIKELY((span).listeners != 0))                                                  \
            eddy_trace_send_end((span), &(eddy_trace_event){__VA_ARGS__});                         \
    } while (0)
#define EDDY_TRACE_AT(phase_, ...)                                                                 \
    do {                                                                                           \
        if (eddy_trace_hears(EDDY_TRACE_##phase_))                                                 \
            eddy_trace_send(&(eddy_trace_event){                                                   \
                .phase = EDDY_TRACE_##phase_, .kind = EDDY_TRACE_HAPPENS, ##__VA_ARGS__});         \
    } while (0)

#endif
