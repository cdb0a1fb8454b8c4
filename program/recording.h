/* A recording under way: the code so far, and the storages that it has seen.
 *
 *   eddy_record_begin --> OPEN --call...--> OPEN --eddy_record_end--> a program, or its failure
 *                          \--something that cannot be replayed--> SPOILED --eddy_record_end--> its failure
 *
 * Storages are known by number and generation, since numbers are reused. Thread: the recording one's only. */
#ifndef EDDY_PROGRAM_RECORDING_H
#define EDDY_PROGRAM_RECORDING_H

#include <interpreter/call/recorder.h>
#include <interpreter/handle/runtime.h>
#include <program/control.h>
#include <program/guard.h>
#include <program/kept_before.h>
#include <program/path.h>
#include <program/program.h>
#include <program/reach.h>
#include <program/tape_seen.h>

typedef struct eddy_recording_seen {
    eddy_storage_number number; /* 0: a free slot */
    uint32_t generation;
    uint32_t value;
    uint32_t version; /* its root's when it was seen first, and the recorded writes since */
    uint32_t first;   /* the instruction that used it first */
    bool is_lost;     /* a call has made it that did not run */
    bool is_past;     /* a loop carried it whose steps are over: they have overwritten it */
} eddy_recording_seen;

/* The gradient that is kept for an output of a node, when the recording ends. */
typedef struct eddy_recording_kept {
    struct eddy_autograd_node *node; /* a reference */
    uint32_t output;
    eddy_tensor *gradient; /* a reference; NULL: none is kept */
} eddy_recording_kept;

/* What calls that did not run have changed beside the code. */
typedef struct eddy_recording_change {
    eddy_tensor *
        tensor; /* a reference: the root whose version was counted, or the target that was redirected; NULL: a kept gradient */
    bool is_redirected;
    /* Redirected: the tape's word before, with a reference of its node; kept: node (a reference) and output. */
    eddy_autograd word;
    eddy_tensor *gradient; /* a reference: kept before; NULL: none */
} eddy_recording_change;

/* A write that was recorded in a branch or a loop, and that did not happen with that. */
typedef struct eddy_recording_guess {
    eddy_tensor *root; /* a reference */
    uint64_t events;   /* calls that were recorded by then, itself included */
} eddy_recording_guess;

/* A draw, as the recorded call got it. */
typedef struct eddy_recording_drawn {
    uint64_t seed_and_counter[2];
    uint32_t loop; /* that it is in, or was set in last, whose steps have other numbers; 0: none */
    /* The attribute of the drawing op, a double, that is a number given at each run: its gradients take it, too. NULL: none is. */
    const char *rate;
    uint32_t rate_number;
    double rate_value; /* as the recorded call got it */
} eddy_recording_drawn;

/* A number that an op's function has made an attribute of, until that op is submitted. */
typedef struct eddy_recording_noted {
    const eddy_op *op;
    size_t offset;
    uint32_t number;
} eddy_recording_noted;
#define EDDY_RECORDING_NOTED 8

typedef struct eddy_recording {
    eddy_recorder recorder; /* first: the interpreter hands it back */
    uint64_t number; /* its serial when it began; within branches nodes of the tape get others */
    eddy_runtime *runtime; /* bound */
    eddy_code code;
    eddy_code_array externals;    /* eddy_program_external, without inputs: all hold a reference */
    eddy_code_array generators;   /* eddy_generator *, a reference each */
    eddy_code_array inner;        /* eddy_program *, a reference each (inlined.h) */
    eddy_code_array kept;         /* eddy_recording_kept: what the recorded calls have changed */
    eddy_code_array befores;      /* eddy_kept_before */
    eddy_code_array seen_of_tape; /* eddy_tape_seen */
    bool
        sees_beyond; /* calls depend on nodes that were there before, or on handles of an input's elements */
    eddy_code_array changes;   /* eddy_recording_change: to be taken back */
    eddy_code_array guesses;   /* eddy_recording_guess */
    eddy_code_array drawn;     /* eddy_recording_drawn, one for each draw */
    eddy_recording_seen *seen; /* open addressing by number; a power of two */
    uint32_t seen_count, seen_capacity;
    const eddy_list *
        inputs; /* while a recorded function is called: what is read of them is a guard; else NULL */
    eddy_code_array reads; /* eddy_guard */
    /* What guards have read before the call, while it is made; borrowed, or NULL. */
    const eddy_code_array *known_guards;
    const void *known_values;
    eddy_tensor *read_copy; /* a reference: of what is being read (host_read.c), or NULL */
    /* eddy_guard without a source: what a recorded function has read of what its calls had computed, in their order; its elements, and the first read, as a sentence. */
    eddy_code_array computed;
    unsigned char path[EDDY_PATH_BYTES_MOST];
    uint32_t path_bytes;
    char first_computed[192];
    uint64_t read_count;  /* others */
    char first_read[320]; /* of these, as a sentence */
    /* The numbers that are given at each run have the slots from the first on; 0: there are none. */
    uint32_t first_slot, scalar_count;
    const eddy_scalar *scalars; /* those of the call that is recorded; borrowed */
    eddy_recording_noted noted[EDDY_RECORDING_NOTED];
    uint32_t noted_count;
    uint32_t passes; /* that the program goes through: a bit for each */
    bool is_owned;   /* by a recorded function: the program's code cannot close it */
    char lost[224];  /* how such a number was used in a way that a run cannot follow; "" */
    /* A recorded call wrote in place to a tensor that was there before, which then belongs to that call for the tape. */
    bool has_redirected;
    bool has_marks;
    uint32_t depth;                              /* of branches and loops whose marks are open */
    uint32_t loops[EDDY_CONTROL_DEPTH_MOST + 1]; /* per depth: the loop, from 1 on; 0: a branch */
    uint32_t loop_count;                         /* so far */
    uint32_t first_value; /* of the function that is being called, if it has a tape of its own */
    uint32_t taped_depth; /* of loops with gradients whose body is being called */
    uint32_t
        block_count; /* functions of branches and loops that are being called: the recording cannot end */
    struct eddy_gradient_plan *plan; /* owned: the recorded backward passes (gradient.h), or NULL */
    eddy_status status;              /* why there will be no program; OK so far */
    eddy_origin spoiled_by;
    const char *reason;
    bool is_disturbed; /* by another thread's write: the same calls may be recorded another time */
    char text[256];    /* a reason that had to be written */
} eddy_recording;

/* Opens a recording of the calling thread; closes it, so that calls are no longer recorded: NULL if none is open. */
EDDY_MUST_USE eddy_status eddy_recording_open(eddy_caller *caller, eddy_origin origin,
                                              eddy_recording **opened);
eddy_recording *eddy_recording_close(eddy_caller *caller);
void eddy_recording_destroy(eddy_recording *recording);

/* A program of a closed recording, whose contents it takes; the recording is destroyed by the caller. It cannot run before it is built. */
EDDY_MUST_USE eddy_status eddy_program_make(eddy_recording *recording,
                                            const eddy_bindings *bindings, eddy_origin origin,
                                            eddy_program **program);

/* The value that a tensor is to a program which was made of the recording with these bindings; of an input its layout then counts from the
 * input's first element. EDDY_CODE_NONE if it is none. */
uint32_t eddy_program_value_of(const eddy_program *program, const eddy_recording *recording,
                               const eddy_bindings *bindings, const eddy_tensor *tensor,
                               eddy_layout *layout);

/* A number that no recording, and no way of a branch, has had in the process. */
uint64_t eddy_recording_next_serial(void);
void eddy_recording_init(eddy_recording *recording, eddy_runtime *runtime);
void eddy_recording_fini(eddy_recording *recording);

/* Sets what the recorder is told by the tape (recording_tape.c). */
void eddy_recording_listen_to_tape(eddy_recording *recording);
/* The same of numbers that are given at each run (recording_numbers.c). */
void eddy_recording_listen_to_numbers(eddy_recording *recording);

/* Patches the words of an instruction, which is added next, that such numbers give. A number that a run cannot follow there is lost. False without memory. */
EDDY_MUST_USE bool eddy_recording_patch_numbers(eddy_recording *recording,
                                                const eddy_recorder_call *call,
                                                eddy_code_instruction *instruction);

/* The recording becomes no program; the first reason stays. */
void eddy_recording_spoil(eddy_recording *recording, eddy_status status, eddy_origin origin,
                          const char *reason);

/* Adds a mark (control.h), with its predicate or NULL. Where it cannot, the recording is spoiled. */
void eddy_recording_mark(eddy_recording *recording, eddy_control control, eddy_tensor *predicate,
                         const void *attributes, eddy_origin origin);
/* What a mark opens, before it is added, and what it closes, once it is. */
void eddy_recording_begin_mark(eddy_recording *recording, eddy_control control, eddy_origin origin);
void eddy_recording_end_mark(eddy_recording *recording, eddy_control control);

/* ---- for instructions that are no call (inlined.h) ---- */

/* A write to the tensor's storage, which its version counts already. */
void eddy_recording_count_write(eddy_recording *recording, eddy_tensor *tensor, eddy_origin origin);
/* Spoils the recording where it cannot use what the tensor holds now. */
void eddy_recording_check_use(eddy_recording *recording, const eddy_tensor *tensor,
                              eddy_origin origin);
/* The value of a tensor's storage, which was there before if the recording has not seen it; and one for a new storage of so many bytes. False without memory. */
EDDY_MUST_USE bool eddy_recording_find_value(eddy_recording *recording, eddy_tensor *tensor,
                                             uint32_t *value);
EDDY_MUST_USE bool eddy_recording_make_value(eddy_recording *recording, const eddy_tensor *tensor,
                                             int64_t bytes, uint32_t *value);
/* A draw from the generator, NULL for the thread's own; *number: 1 + its index. False without memory. */
EDDY_MUST_USE bool eddy_recording_add_draw(eddy_recording *recording, eddy_generator *generator,
                                           const void *seed_and_counter, uint32_t *number);

/* The tensor, which the recording has not seen, is what `like` is to it. */
void eddy_recording_show_as(eddy_recording *recording, const eddy_tensor *tensor,
                            const eddy_tensor *like, eddy_origin origin);

/* What the calls of `other`, which has become no part of this recording, have made is nowhere there: a call that uses it is refused when the recording
 * ends. */
void eddy_recording_disown(eddy_recording *recording, const eddy_recording *other,
                           eddy_origin origin);

/* Calls are recorded and do not run, from now on. SHUT_DOWN, FORKED, recorded under the origin. */
EDDY_MUST_USE eddy_status eddy_recording_note_only(eddy_recording *recording, eddy_origin origin);
/* Takes back what such calls have changed beside the code, but for the first `count` changes: versions, kept gradients, where gradients of
 * tensors that were there before go. */
void eddy_recording_take_back(eddy_recording *recording, uint32_t count);
/* Whether a way that was not taken may have written to the tensor since so many calls were recorded. */
bool eddy_recording_may_overwrite(const eddy_recording *recording, const eddy_tensor *tensor,
                                  uint64_t events);
/* Notes a change, with references of its own; false without memory. */
EDDY_MUST_USE bool eddy_recording_note_change(eddy_recording *recording,
                                              const eddy_recording_change *change);
/* A write that was counted and did not happen. */
void eddy_recording_unwrite(eddy_recording *recording, eddy_tensor *root);
/* The steps of the loop that carried the tensor are over, and have overwritten it: a call that uses it from now on spoils the recording. */
void eddy_recording_put_past(eddy_recording *recording, const eddy_tensor *carried);

/* The value of a tensor's storage; EDDY_CODE_NONE if the recording has not seen it. */
uint32_t eddy_recording_value_of(const eddy_recording *recording, const eddy_tensor *tensor);

/* Whether nobody has written the tensor's storage since a recorded call used it. */
bool eddy_recording_is_last_writer(const eddy_recording *recording, const eddy_tensor *tensor);

#define EDDY_RECORDING_REASON_BYTES 320
/* Whether each instruction of the code, which is or was the recording's, finds its operands there, whatever ways a run takes; "" if so. `reach`
 * is then behind the last one, if there are branches or loops; it is zeroed before, and ended after. False without memory. */
EDDY_MUST_USE bool eddy_recording_check_reach(const eddy_recording *recording,
                                              const eddy_code *code, eddy_reach *reach,
                                              char *reason, size_t size);
/* Why the recording cannot become a program, as a sentence; "" where it can, as far as that does not depend on its bindings. */
void eddy_recording_judge(const eddy_recording *recording, char *reason, size_t size);

#endif
