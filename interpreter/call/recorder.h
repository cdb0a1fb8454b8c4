/* The table through which a recording sees the calls of its thread (program/ fills it in).
 *
 * It sits where general calls are submitted: behind casts, tape, compositions and views, so that a recording sees the instructions that
 * run. While a thread records it makes no fast calls. Every other function of the VM that the interpreter calls is a door, with a
 * row below that says what a recording does there.
 *
 * Threads: the recording thread's only. */
#ifndef EDDY_INTERPRETER_CALL_RECORDER_H
#define EDDY_INTERPRETER_CALL_RECORDER_H

#include <interpreter/call/apply.h>
#include <vm/vm.h>

/* What a recording does at a door. */
typedef enum eddy_recorder_rule {
    EDDY_RECORDER_CALL, /* becomes an instruction of the program */
    EDDY_RECORDER_CAPTURE, /* a storage that is there before the program runs: captured where an instruction uses it */
    EDDY_RECORDER_READ, /* the program's code sees a value: noted, since a replay would not show it the next one. In a recorded function it decides which program is replayed */
    EDDY_RECORDER_REFUSE, /* fails with UNSUPPORTED, and the recording goes on */
    EDDY_RECORDER_PASS, /* has no effect on what the program computes: happens now, and in no replay */
} eddy_recorder_rule;

/* One row for each function of vm/vm.h that is called for a thread that may be recording: function, rule. Tests compare the rows with
 * that header. access: eddy_read_async becomes one (host/access.h), eddy_access_async is refused. */
#define EDDY_RECORDER_DOOR_LIST(row)                                                               \
    row(submit, CALL) row(storage_borrow, CAPTURE) row(storage_borrow_there, CAPTURE) row(         \
        storage_follow, CAPTURE) row(share, REFUSE) row(storage_create, CAPTURE)                   \
        row(storage_written, CAPTURE) row(note_failure, PASS) row(make_lost, CALL) row(            \
            release, PASS) row(release_many, PASS) row(is_ready, PASS) row(explain, PASS)          \
            row(dump_dot, PASS) row(wait_storage, PASS) row(await_storage, PASS) row(              \
                late_shape, READ) row(read_small, READ) row(lend_begin, READ)                      \
                row(lend_begin_there, REFUSE) row(lend_keep, REFUSE) row(lend_end, PASS) row(      \
                    lend_end_there, PASS) row(access, CALL) row(recover, REFUSE) row(poison, READ) \
                    row(sync, PASS) row(sync_service, PASS) row(stream_create, PASS)               \
                        row(stream_retain, PASS) row(stream_release, PASS) row(event_record, PASS) \
                            row(event_release, PASS) row(event_query, PASS) row(event_wait, PASS)  \
                                row(stream_wait, PASS) row(touch, PASS)                            \
                                    row(close, PASS) row(thread_count, PASS) row(team, PASS)       \
                                        row(counters_read, PASS) row(number, PASS) row(trim, PASS) \
                                            row(dump, PASS) row(device_add, PASS)                  \
                                                row(device_stream_create, PASS) row(copy, CALL)    \
                                                    row(upload, CAPTURE) row(device_stream, PASS)  \
                                                        row(memory_read, PASS)                     \
                                                            row(memory_trim, PASS)                 \
                                                                row(memory_limit_set, PASS)        \
                                                                    row(memory_list, PASS)

/* What becomes of the thread's calls. */
typedef enum eddy_recorder_mode {
    EDDY_RECORDER_RUNS,  /* they run and are recorded */
    EDDY_RECORDER_NOTES, /* they are recorded and do not run: their results are lost */
    EDDY_RECORDER_WATCHES, /* they run and are not recorded: a program has other instructions that do the same */
} eddy_recorder_mode;

/* A read on the host. */
typedef struct eddy_recorder_reading {
    eddy_origin origin;
    bool is_of_elements;
    int64_t deadline;  /* until when it waits */
    const void *first; /* the first element, if they are lent; else NULL */
} eddy_recorder_reading;

/* A call that was submitted, or noted. */
typedef struct eddy_recorder_call {
    const eddy_apply *apply; /* its attributes as inference left them, seed and counter drawn */
    const eddy_kernel *kernel;
    eddy_dtype compute;
    eddy_tensor *const *
        views; /* those that the kernel sees, with their storages: inputs, then outputs; EDDY_NONE: absent */
    int64_t view_count;
    int64_t input_count;             /* views before the outputs */
    const eddy_vm_operand *operands; /* of the views that are not absent, in their order */
    bool has_drawn;                  /* seed and counter were drawn */
    eddy_runtime *runtime;
    eddy_device device;
} eddy_recorder_call;

typedef struct eddy_recorder eddy_recorder;
struct eddy_autograd_node;

struct eddy_recorder {
    uint64_t serial;     /* of the recording, in the process: nodes of the tape know it; never 0 */
    bool has_used_tape;  /* calls have depended on who wants a gradient */
    bool has_used_kept;  /* they have read or changed which gradients are kept */
    bool has_gone_back;  /* a backward pass was among them */
    uint32_t going_back; /* backward passes that are under way: calls are made by gradients */
    /* Of these `draws` is the interpreter's, and the others are written by program/ alone. */
    uint8_t mode;   /* eddy_recorder_mode */
    uint64_t lost;  /* NOTES: the failure for which results are lost */
    uint64_t draws; /* NOTES: so far; each takes this number in place of a generator's */
    uint64_t
        events; /* calls that were recorded so far: nodes of the tape know when they were made */
    /* Never fails: what goes wrong is the recording's, and shows when it ends. */
    void (*call)(eddy_recorder *recorder, const eddy_recorder_call *call);
    /* A read of the tensor is about to happen: of its elements, or of what else is known of it once it was computed (a late shape, an error), or what a run
     * could not know (where its storage begins). Returns the tensor that is read instead, which the recorder holds until the next read, or the same: another thread
     * might write the tensor between two looks at it. */
    eddy_tensor *(*read)(eddy_recorder *recorder, eddy_tensor *tensor,
                         const eddy_recorder_reading *reading);
    /* Calls depend on the gradient that is kept for an output of a node now (NULL: none). */
    void (*found)(eddy_recorder *recorder, struct eddy_autograd_node *node, uint32_t output,
                  const eddy_tensor *gradient);
    /* Calls depend on whether the tensor gets a gradient. */
    void (*ask)(eddy_recorder *recorder, const eddy_tensor *tensor);
    /* A backward pass comes to the node. */
    void (*come_to)(eddy_recorder *recorder, struct eddy_autograd_node *node);
    /* The gradient kept for an output of a node, `before`, was replaced by `gradient` (NULL: none). */
    void (*keep)(eddy_recorder *recorder, struct eddy_autograd_node *node, uint32_t output,
                 eddy_tensor *before, eddy_tensor *gradient);
    /* A call has written in place to `target`: its gradient goes back through that call from now on, or no longer. Before the target
     * changes. False: that will be taken back, since the call did not run. */
    bool (*redirect)(eddy_recorder *recorder, eddy_tensor *target);
    /* A hook is about to be added to an output of the node, or its gradient to be kept from now on. False: neither is done, since the call does not run. */
    bool (*watch)(eddy_recorder *recorder, const struct eddy_autograd_node *node,
                  eddy_origin origin);
    /* A backward pass reads what a node saved at that time (events), in the recording with that serial, or (0) in none. */
    void (*needs)(eddy_recorder *recorder, const eddy_tensor *saved, uint64_t serial,
                  uint64_t events);
    /* A number with a slot is the attribute, a double, at `offset` of the op's next call. */
    void (*scalar)(eddy_recorder *recorder, const eddy_op *op, size_t offset,
                   const eddy_scalar *scalar);
    /* A number with this slot was used in a way that a replay cannot follow. */
    void (*lose)(eddy_recorder *recorder, uint32_t slot);
    /* Something cannot be recorded: false where the recording is spoiled by it and the call goes on, true where the call fails. */
    bool (*refuse)(eddy_recorder *recorder, eddy_origin origin);
    /* Why a call that has effects cannot be made again behind each run, as a clause; NULL: it can, and is handed to `call` as others are. */
    const char *(*refuse_again)(const eddy_recorder *recorder);
    /* The thread ends: the recording is given up. */
    void (*abandon)(eddy_recorder *recorder);
};

/* ---- the library's own ops ---- */

/* Ops that a function of the library runs for itself until eddy_recorder_go_on are none of the recorded calls. */
static inline eddy_recorder *eddy_recorder_set_aside(eddy_caller *caller) {
    eddy_recorder *recorder = caller ? caller->recorder : NULL;
    if (recorder)
        caller->recorder = NULL;
    return recorder;
}

static inline void eddy_recorder_go_on(eddy_caller *caller, eddy_recorder *recorder) {
    if (recorder)
        caller->recorder = recorder;
}

/* ---- for the doors ---- */

/* What is read in the tensor's place. */
static inline eddy_tensor *eddy_recorder_read_elements(const eddy_caller *caller,
                                                       eddy_tensor *tensor, eddy_origin origin,
                                                       int64_t deadline) {
    if (EDDY_LIKELY(caller == NULL || caller->recorder == NULL))
        return tensor;
    eddy_recorder_reading reading = {origin, true, deadline, NULL};
    return caller->recorder->read(caller->recorder, tensor, &reading);
}

/* The same of elements that are lent: the first of them is there. */
static inline void eddy_recorder_read_lent(const eddy_caller *caller, eddy_tensor *tensor,
                                           eddy_origin origin, int64_t deadline,
                                           const void *first) {
    eddy_recorder_reading reading = {origin, true, deadline, first};
    if (EDDY_UNLIKELY(caller != NULL && caller->recorder != NULL))
        (void)caller->recorder->read(caller->recorder, tensor, &reading);
}

static inline void eddy_recorder_read_other(const eddy_caller *caller, eddy_tensor *tensor,
                                            eddy_origin origin) {
    eddy_recorder_reading reading = {.origin = origin};
    if (EDDY_UNLIKELY(caller != NULL && caller->recorder != NULL))
        (void)caller->recorder->read(caller->recorder, tensor, &reading);
}

static inline void eddy_recorder_keep(const eddy_caller *caller, struct eddy_autograd_node *node,
                                      uint32_t output, eddy_tensor *before, eddy_tensor *gradient) {
    if (EDDY_UNLIKELY(caller->recorder != NULL)) {
        caller->recorder->has_used_kept = true;
        caller->recorder->keep(caller->recorder, node, output, before, gradient);
    }
}

static inline void eddy_recorder_use_tape(const eddy_caller *caller) {
    if (EDDY_UNLIKELY(caller != NULL && caller->recorder != NULL))
        caller->recorder->has_used_tape = true;
}

/* The program's code has asked whether the tensor gets a gradient, or something that depends on that. */
static inline void eddy_recorder_ask(const eddy_caller *caller, const eddy_tensor *tensor) {
    if (EDDY_UNLIKELY(caller != NULL && caller->recorder != NULL)) {
        caller->recorder->has_used_kept = true;
        caller->recorder->ask(caller->recorder, tensor);
    }
}

static inline void eddy_recorder_come_to(const eddy_caller *caller,
                                         struct eddy_autograd_node *node) {
    if (EDDY_UNLIKELY(caller->recorder != NULL))
        caller->recorder->come_to(caller->recorder, node);
}

static inline void eddy_recorder_found(const eddy_caller *caller, struct eddy_autograd_node *node,
                                       uint32_t output, const eddy_tensor *gradient) {
    if (EDDY_UNLIKELY(caller != NULL && caller->recorder != NULL)) {
        caller->recorder->has_used_kept = true;
        caller->recorder->found(caller->recorder, node, output, gradient);
    }
}

static inline void eddy_recorder_go_back(const eddy_caller *caller) {
    if (EDDY_UNLIKELY(caller->recorder != NULL))
        caller->recorder->has_used_kept = caller->recorder->has_gone_back = true;
}

static inline void eddy_recorder_begin_pass(const eddy_caller *caller) {
    if (EDDY_UNLIKELY(caller->recorder != NULL))
        caller->recorder->going_back++;
}

/* A recording that has begun or ended within the pass has not seen all of it. */
static inline void eddy_recorder_end_pass(const eddy_caller *caller) {
    if (EDDY_UNLIKELY(caller->recorder != NULL && caller->recorder->going_back > 0))
        caller->recorder->going_back--;
}

static inline void eddy_recorder_needs(const eddy_caller *caller, const eddy_tensor *saved,
                                       uint64_t serial, uint64_t events) {
    if (EDDY_UNLIKELY(caller->recorder != NULL))
        caller->recorder->needs(caller->recorder, saved, serial, events);
}

static inline bool eddy_recorder_redirect(const eddy_caller *caller, eddy_tensor *target) {
    return EDDY_LIKELY(caller->recorder == NULL) ||
           caller->recorder->redirect(caller->recorder, target);
}

static inline bool eddy_recorder_watch(const eddy_caller *caller,
                                       const struct eddy_autograd_node *node, eddy_origin origin) {
    return caller->recorder == NULL || caller->recorder->watch(caller->recorder, node, origin);
}

static inline void eddy_recorder_scalar(const eddy_caller *caller, const eddy_op *op, size_t offset,
                                        const eddy_scalar *scalar) {
    if (caller != NULL && caller->recorder != NULL)
        caller->recorder->scalar(caller->recorder, op, offset, scalar);
}

static inline void eddy_recorder_lose(const eddy_caller *caller, uint32_t slot) {
    if (caller != NULL && caller->recorder != NULL)
        caller->recorder->lose(caller->recorder, slot);
}

/* Whether calls of the thread run. */
static inline bool eddy_recorder_lets_run(const eddy_caller *caller) {
    return EDDY_LIKELY(caller->recorder == NULL) || caller->recorder->mode != EDDY_RECORDER_NOTES;
}

/* What a call that does not run draws: such draws are told apart by their counters, so that gradients find theirs; the program has neither. */
static inline void eddy_recorder_draw(eddy_recorder *recorder, uint64_t *seed_and_counter) {
    seed_and_counter[0] = UINT64_C(0x6e6f746564);
    seed_and_counter[1] = recorder->draws++;
}

/* OK unless the thread records and the recording refuses it: UNSUPPORTED, recorded under the origin. `why`: what a run would lack, and what to
 * do instead; it follows "it cannot be recorded, since". */
EDDY_MUST_USE eddy_status eddy_recorder_refuse(const eddy_caller *caller, const char *why,
                                               eddy_origin origin);

#endif
