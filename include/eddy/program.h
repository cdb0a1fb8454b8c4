/* Programs: calls that were recorded once and are replayed.
 *
 * Between eddy_record_begin and eddy_record_end the ops of the calling thread run as always and give results; beside that they
 * become the instructions of a program. A run of the program computes them again, on other inputs, with the bits that the same
 * calls would give, for a fraction of what calls cost: nothing is checked, inferred, looked up or allocated per op.
 *
 *     eddy_record_begin(NULL);
 *     eddy_tensor *y = eddy_relu(eddy_linear(x, w, b));
 *     eddy_program *program = eddy_record_end(
 *         EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
 *     eddy_tensor *result;
 *     eddy_program_run(program, EDDY_LIST(other_x), &result);
 *
 * What the ops use and was there before is named as an input, or captured by reference: the program holds the tensor, and each run
 * reads and writes it in the order of the calls, as the ops would. Tensors that the recording made are gone after a run,
 * but for outputs. Programs are reference-counted and no scope owns them. docs/programs.md.
 *
 * Unless a function says otherwise: any thread, never blocks; failures fill the calling thread's error slot. */
#ifndef EDDY_PROGRAM_H
#define EDDY_PROGRAM_H

#include <eddy/device.h>
#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <eddy/tensor_store.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_program eddy_program;
typedef struct eddy_output_ring eddy_output_ring; /* <eddy/output_ring.h> */

/* What a named tensor is to a program. */
typedef enum eddy_role {
    EDDY_ROLE_INPUT, /* given at each run, with the dtype, shape and strides that it was recorded with */
    EDDY_ROLE_OUTPUT, /* a new tensor of each run; a tensor that was there before is returned as it is */
    /* A tensor that was there before and that runs read or write: the program holds it. A run may be given another in its place. */
    EDDY_ROLE_STATE,
    /* The same, but nobody writes it (or another part of its storage) any more: the program holds it, and each run looks whether a write
     * was issued since the recording ended. Writes to memory that Eddy does not see (of eddy_from_buffer) are not noticed. */
    EDDY_ROLE_CONSTANT,
    /* An input whose memory each run takes: it may compute in it, and once the run is over, whatever became of it, the tensor that was given is given up. Reading it then, or
     * computing with it, fails with INVALID_ARGUMENT ("the tensor was donated to a run of a program, as its input x"), until an op writes all of it, which takes memory anew
     * (the sentences of the last 128 tensors are kept; of older ones the error has the number of the instruction alone, and is KERNEL_FAILED);
     * what was issued before, reads and lends included, sees its elements. In all else it is an input, among which it is numbered. */
    EDDY_ROLE_DONATED,
} eddy_role;

typedef struct eddy_binding {
    const char *name; /* copied; no two are equal */
    eddy_tensor *tensor;
    eddy_role role;
} eddy_binding;

typedef struct eddy_bindings {
    const eddy_binding *items;
    int64_t count;
} eddy_bindings;

/* EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}): a pointer for one call. */
#ifndef __cplusplus
#define EDDY_BINDINGS(...)                                                                         \
    (&(const eddy_bindings){                                                                       \
        (const eddy_binding[]){__VA_ARGS__},                                                       \
        (int64_t)(sizeof((eddy_binding[]){__VA_ARGS__}) / sizeof(eddy_binding))})
#endif

/* ---- passes ---- */

/* What eddy_record_end does to the recorded code, in this order: name, sentence. A pass leaves results, errors and random numbers as they are, bit for bit. The
 * runtime's option `passes` chooses among them. */
#define EDDY_PASS_LIST(row)                                                                        \
    row(cast, "leaves out copies and casts back of what stays as it is")                           \
        row(transfer, "leaves out copies back to the device that elements came from")              \
            row(dead, "leaves out ops whose results nobody uses")                                  \
                row(same, "leaves out ops that compute what an earlier one has computed") row(     \
                    richer, "leaves out ops whose result a richer op of the same operand has too") \
                    row(fold, "computes once what depends on constants alone") row(                \
                        move, "leaves out copies whose source can be written where they put it")   \
                        row(fuse, "runs elementwise ops tile by tile")                             \
                            row(place, "puts results into the memory of what is used up")

/* Passes that `all` leaves off, in the order in which they run, behind `fold`: results may differ in their last bits, since an op is rounded otherwise or its sums have
 * another order. Errors, random numbers and shapes stay as they are. docs/programs.md says how large the differences are. */
#define EDDY_FAST_PASS_LIST(row)                                                                   \
    row(layout, "lays images channels-last between convolutions")                                  \
        row(accumulate, "adds products to a value at once")                                        \
            row(winograd, "computes convolutions of 3 x 3 windows with fewer products")

/* Passes that `all` and `fast` leave off: they take less memory, and more time. Results may differ likewise. */
#define EDDY_MEMORY_PASS_LIST(row)                                                                 \
    row(subbatch, "adds up gradients of weights over a few images or rows at a time")

/* ---- recording ---- */

typedef struct eddy_record_options {
    size_t size;
    const char *
        passes; /* those of this program alone, as the runtime's option `passes`; NULL: the runtime's */
    /* The calls become instructions, and do not run: nothing is computed, no memory is taken for results, no generator is drawn from,
     * and tensors that were there before keep their elements, versions and gradients. What a call gives has dtype and shape, and may be an
     * operand and a binding; its elements are lost, so that a read of them, then and later, fails with UNSUPPORTED. The program is the
     * same as if the calls had run. Ops whose shapes depend on data fail with UNSUPPORTED. */
    bool records_only;
} eddy_record_options;

/* Begins a recording of the calling thread's ops, which ends with eddy_record_end or eddy_record_cancel on the same thread (or with the
 * thread, or with the callback that has begun it). options: NULL for all defaults. INVALID_ARGUMENT (one is open; there is no such pass), OUT_OF_MEMORY, SHUT_DOWN, FORKED. */
EDDY_API eddy_status eddy_record_begin(const eddy_record_options *options);

/* Ends the recording and makes its program, one reference, the caller's. Callbacks that were recorded (eddy_read_async, <eddy/host.h>) are called behind each run, so that they
 * and their contexts stay the program's until it is released. bindings names inputs, outputs, state and constants; NULL names
 * none. The program keeps the tensors that it captured, its state and its constants. NULL with INVALID_ARGUMENT (no recording is open; a
 * name is missing or given twice; an input was made by the recording, or an output was not seen by it; an input is named twice, or as state or constant too; a constant
 * was written; an output is a donated input, or a part of one), UNSUPPORTED (what cannot be replayed was recorded, or another thread has written a tensor between two recorded calls on
 * it: the message names the call), OUT_OF_MEMORY, SHUT_DOWN or FORKED (the runtime does not run any more) in the slot; the recording ends
 * in any case. */
EDDY_API eddy_program *eddy_record_end(const eddy_bindings *bindings);

/* The same, for outputs that carry gradients: their backward pass is recorded too, behind the calls, so that the tape takes a run for one op. Under
 * autograd (an input wants a gradient, or a tensor that the program captured did when it was recorded) the outputs of a run require gradients as
 * those of the calls would, and a backward pass goes on to these inputs and captured tensors; elsewhere a run computes the
 * outputs alone. An input that wanted no gradient when it was recorded can get none: a run that is given one that does fails with
 * UNSUPPORTED. A pass with creates_graph goes back through the recorded calls one by one, for branches and loops waits for their predicates and
 * numbers of steps, and fails with UNSUPPORTED if a custom function that is not pure is among them. docs/programs.md.
 *
 * NULL, beside the errors of eddy_record_end, with INVALID_ARGUMENT (no output carries a gradient; the calls have overwritten what the
 * gradient of one of them reads) or UNSUPPORTED (an input is donated; a recorded call wrote in place to a tensor that was there before, and a gradient goes
 * back through it; a tensor that the recording made has a hook, keeps its gradient or was made a leaf; the backward pass draws
 * random numbers, or writes to a tensor that it has not made). */
EDDY_API eddy_program *eddy_record_end_with_grad(const eddy_bindings *bindings);

/* Whether what the calling thread has recorded so far can become a program, as far as that does not depend on its bindings. If not, `reason`
 * says why, in at most size bytes (0: reason may be NULL): the sentence of eddy_record_end, with the first call that cannot be part of
 * a program; inside a recorded function, what keeps it from being replayed; or that no recording is open. "" if it can. Changes
 * nothing, the error slot included. */
EDDY_API bool eddy_can_record(char *reason, size_t size);

/* Ends the recording that eddy_record_begin has opened, if there is one, without a program. What it computed stays. */
EDDY_API void eddy_record_cancel(void);

/* ---- programs ---- */

/* One more reference; returns its argument, which may be NULL. */
EDDY_API eddy_program *eddy_program_retain(eddy_program *program);
/* Gives up a reference and clears the pointer. Runs under way end as they would. */
EDDY_API void eddy_program_release(eddy_program **program);

/* Runs the program as one instruction, ordered with ops like an op on its inputs and captured tensors, and returns at once.
 * inputs: one for each input, in the order of their bindings. outputs: room for one pointer for each output, in that order, written on success with new
 * tensors, owned as <eddy/tensor.h> says; they carry no gradient, unless the program was made with one (eddy_record_end_with_grad).
 *
 * Random ops draw from the running thread's generator, or from the one they were recorded with, as the calls would. Where there are some in branches or loops
 * (<eddy/control.h>) the call returns once the run is over: WOULD_DEADLOCK in a callback (nothing has changed then), or if it runs behind a
 * tensor that the calling thread has mapped. A late
 * error stays with what depends on it, as in single calls, and names the recorded call. INVALID_ARGUMENT (another number of
 * inputs; a tensor that the program writes is given twice, or is one that it captured; a constant was written after the recording; a donated input is given what it
 * shares with another argument or with the program, a part of a larger tensor, memory of the caller's (eddy_from_buffer), or, outside of eddy_no_grad_begin, a tensor that requires a
 * gradient), SHAPE_MISMATCH (another shape or other strides), DTYPE_MISMATCH, DEVICE_MISMATCH, RUNTIME_MISMATCH, OUT_OF_MEMORY, SHUT_DOWN, FORKED:
 * nothing has changed then, and the message names the binding. Several threads may run one program at once. */
EDDY_API eddy_status eddy_program_run(eddy_program *program, eddy_list inputs,
                                      eddy_tensor **outputs);

/* The same, but each output is written into a tensor of the caller's: targets has one for each output, in the order of their bindings; EDDY_NONE where
 * it is not wanted. Nothing is made or copied: a target's memory is the output's in this run, ordered as for an op that writes into it, whose
 * version and errors change as such an op's do (it is written whole: an error that it held is gone). Outputs that share memory
 * with one that has a target are parts of that target.
 *
 * A target has the output's dtype, shape and strides and is all of its storage (no part of a larger tensor); its output is all of a tensor
 * that the program makes. Beside the errors of eddy_program_run: INVALID_ARGUMENT (another number of targets; an output that was
 * there before the run, or is a part of a tensor; a target that is a part, is also an input or another target, or is a tensor that the program
 * holds; a target that requires a gradient, outside of eddy_no_grad_begin), UNSUPPORTED (the same of a tensor that is no leaf): nothing has
 * changed then, and the message names the bindings. */
EDDY_API eddy_status eddy_program_run_into(eddy_program *program, eddy_list inputs,
                                           eddy_list targets);

/* ---- by name ---- */

/* The number of a binding among the inputs: its place in the list of inputs of eddy_program_run. For loops, which look names up once.
 * -1 with INVALID_ARGUMENT in the slot, and the names that there are in the message, if there is no such input. */
EDDY_API int64_t eddy_program_input(const eddy_program *program, const char *name);
/* The same among the outputs. */
EDDY_API int64_t eddy_program_output(const eddy_program *program, const char *name);

typedef struct eddy_feed {
    const char *name; /* of an input or state; among targets, of an output */
    eddy_tensor *tensor;
} eddy_feed;

typedef struct eddy_feeds {
    const eddy_feed *items;
    int64_t count;
} eddy_feeds;

/* Elements of the caller's, without a tensor: they are copied to the input's strides before the call returns, so that the caller may write
 * its memory at once. dtype and shape are the input's. */
typedef struct eddy_data_feed {
    const char *name; /* of an input */
    const void
        *data; /* the first element, aligned or not; may be NULL if the shape has no elements */
    eddy_shape shape;
    eddy_dtype dtype;
    const int64_t *strides; /* elements, one for each axis, also negative or 0; NULL: row-major */
} eddy_data_feed;

typedef struct eddy_data_feeds {
    const eddy_data_feed *items;
    int64_t count;
} eddy_data_feeds;

typedef struct eddy_fetch {
    const char *name;     /* of an output */
    eddy_tensor **tensor; /* where it goes */
} eddy_fetch;

typedef struct eddy_fetches {
    const eddy_fetch *items;
    int64_t count;
} eddy_fetches;

/* EDDY_FEEDS({"x", x}, {"labels", labels}), EDDY_FETCHES({"loss", &loss}), and
 * EDDY_DATA_FEEDS({"x", pixels, EDDY_SHAPE(64, 784), EDDY_F32, NULL}): values for one call. */
#ifndef __cplusplus
#define EDDY_DATA_FEEDS(...)                                                                       \
    ((eddy_data_feeds){                                                                            \
        (const eddy_data_feed[]){__VA_ARGS__},                                                     \
        (int64_t)(sizeof((eddy_data_feed[]){__VA_ARGS__}) / sizeof(eddy_data_feed))})
#define EDDY_FEEDS(...)                                                                            \
    ((eddy_feeds){(const eddy_feed[]){__VA_ARGS__},                                                \
                  (int64_t)(sizeof((eddy_feed[]){__VA_ARGS__}) / sizeof(eddy_feed))})
#define EDDY_FETCHES(...)                                                                          \
    ((eddy_fetches){(const eddy_fetch[]){__VA_ARGS__},                                             \
                    (int64_t)(sizeof((eddy_fetch[]){__VA_ARGS__}) / sizeof(eddy_fetch))})
#endif

/* EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"y", y}), .store = store). */
typedef struct eddy_program_run_named_options {
    size_t size; /* of this struct; EDDY_OPTIONS fills it in */
    /* Outputs that are written into tensors of the caller's, as by eddy_program_run_into. One that is fetched, too, is another handle of
     * its target. */
    eddy_feeds targets;
    /* Where state that is not fed is taken from, all of it, and inputs that are not fed; NULL: state is the program's own. A store that is
     * written meanwhile gives what it holds when the run is made. */
    eddy_tensor_store *store;
    /* Where all outputs are set under their names, in place of what it held: a program that makes parameters fills the store that
     * another one takes its state from. OUT_OF_MEMORY: the run is made, and some may be set. */
    eddy_tensor_store *output_store;
    /* Inputs that are copied from memory of the caller's, in place of feeds. */
    eddy_data_feeds data;
    /* Where inputs are taken from that are neither fed nor in `store`, and no state: what is the same in all runs until it is set anew. */
    eddy_tensor_store *defaults;
    /* A ring of the program, in which the run takes its place (<eddy/output_ring.h>); NULL: none. */
    eddy_output_ring *ring;
} eddy_program_run_named_options;

/* eddy_program_run with names, in any order: each input is fed once, as a tensor or as data, or stands in a store; each output is fetched once or not at all;
 * what no fetched one needs is not computed, but for effects and what may fail (the first run with a set of outputs makes a program for it). Constants and captured tensors are the program's own: they cannot be fed, but written
 * by ops. Fetches are written on success only, after the feeds were read. options: NULL for none.
 *
 * State may be fed, or stand in a store, so that one program runs on several sets of it: the run reads and writes the tensor that is given in
 * place of the program's own, and leaves its gradient, version and errors as the calls would. Such state was all of its storage when it
 * was recorded (no part of a larger tensor), and the tensor has its dtype, shape and strides; it may be a part of a larger one,
 * unless the program writes all of it whatever it held. State for which recorded calls keep a gradient is given a leaf that wants one.
 *
 * The errors of eddy_program_run and eddy_program_run_into, and INVALID_ARGUMENT for a name that is unknown, missing or given twice, for
 * state that cannot be fed, for a ring of another program, and for tensors of which the program writes one and which share memory; SIZE_OVERFLOW for strides of data that reach
 * beyond 63 bits, UNSUPPORTED for data of an input whose strides give two elements one place: nothing has changed then, and the message
 * names the bindings. */
EDDY_API eddy_status eddy_program_run_named(eddy_program *program, eddy_feeds feeds,
                                            eddy_fetches fetches,
                                            const eddy_program_run_named_options *options);

/* eddy_program_run for larger inputs: those whose axis 0 has several times as many rows as was recorded are taken apart, into equally many parts, and the program is run once
 * for each part, one after the other, with the other inputs as they are. Outputs of all runs are put together along axis 0; those of rank 0 become tensors of rank
 * 1. State goes on from run to run, and gradients go back through each. outputs: as of eddy_program_run.
 *
 * The errors of eddy_program_run: what runs before a failure have done stays done. SHAPE_MISMATCH: rows that are no whole number of parts, or not as many parts as another
 * input has. */
EDDY_API eddy_status eddy_program_run_batches(eddy_program *program, eddy_list inputs,
                                              eddy_tensor **outputs);

/* Makes ready what the first run would take time for: its memory beside its outputs, and, where there are fewer, the program for the outputs with these names
 * (of a run by name; outputs may be NULL if there are none). Blocks until the system has given the memory, and the kernels of elementwise calls on CUDA devices are compiled, some tenths of a second each. The memory then goes to the runtime's cache, like that of a released
 * tensor (at the latest when eddy_sync returns): other calls may take it, and eddy_trim gives it back. An open recording sees nothing of it. INVALID_ARGUMENT (a name that is unknown, or is there twice), RUNTIME_MISMATCH (the thread's runtime is another one), OUT_OF_MEMORY. */
EDDY_API eddy_status eddy_program_prepare(eddy_program *program, const char *const *outputs,
                                          int64_t output_count);

/* ---- inspection ---- */

/* How large a program is, and what a run takes. */
typedef struct eddy_program_info {
    /* Set it to sizeof(eddy_program_info): a newer library writes no more than that. 0 stands for the fields of version 0.2. */
    size_t size;
    int64_t instruction_count;
    int64_t input_count, output_count, state_count, captured_count;
    int64_t
        draw_count; /* seeds and counters that a run takes from generators, those of branches and loops counted once */
    int64_t arena_bytes;   /* memory of a run beside its outputs: temporaries and workspaces */
    int64_t arena_bound;   /* what is alive at once, at most: no plan needs less */
    int64_t program_bytes; /* of the program itself, without the tensors that it holds */
    int64_t
        estimated_ns; /* time of a run on one thread, as its kernels estimate it; of a loop one step */
    int64_t
        recorded_count;  /* calls that were recorded, of which passes have left instruction_count */
    int64_t group_count; /* of instructions that run tile by tile, or as one loop */
    int64_t constant_count;
    int64_t binding_count; /* all that have names */
    /* Inputs and captured tensors that gradients go on to, 0 where outputs carry none; and the bytes that a run makes and keeps for its
     * backward pass, outputs included. */
    int64_t grad_count, saved_bytes;
    /* Rows of steps that several threads may run at once, 1 where that does not pay; the waits between them; the dependencies that these waits stand for; the estimated time
     * with a thread for each stream, 0 where there is one stream. */
    int64_t stream_count, wait_count, dependency_count, streams_ns;
    /* Inputs that runs so far were given on another device, and copied: each is a copy that its program pays for at each run. */
    int64_t feed_count;
} eddy_program_info;

EDDY_API eddy_status eddy_program_describe(const eddy_program *program, eddy_program_info *info);

/* A binding, as it was given to eddy_record_end. */
typedef struct eddy_program_binding_info {
    size_t size;      /* set it to sizeof(eddy_program_binding_info) */
    const char *name; /* the program's: valid while it lives */
    eddy_role role;
    int64_t number; /* among the bindings of its role; of a donated input among all inputs */
    eddy_dtype dtype;
    eddy_device device;
    eddy_shape shape;               /* rank -1: it depends on data, and is known behind a run */
    int64_t strides[EDDY_RANK_MAX]; /* elements */
} eddy_program_binding_info;

/* index: 0 to binding_count - 1, in the order of eddy_record_end. INVALID_ARGUMENT. */
EDDY_API eddy_status eddy_program_binding_describe(const eddy_program *program, int64_t index,
                                                   eddy_program_binding_info *info);

typedef struct eddy_program_print_options {
    size_t size;
    /* Behind each instruction a line that begins with #: what runs it, where its operands lie (the offset in bytes in the arena or in a tensor), its
     * estimated time and the call that it was; at the end what memory a run takes. */
    bool shows_plan;
} eddy_program_print_options;

/* Writes the program as text, an instruction a line (docs/program-format.md), to `file`. options: NULL for all defaults. IO, OUT_OF_MEMORY. */
EDDY_API eddy_status eddy_program_print(const eddy_program *program, FILE *file,
                                        const eddy_program_print_options *options);

/* The tensor of a state, by the name of its binding: another handle of the same elements, owned as <eddy/tensor.h> says, which carries no
 * gradient. NULL with NOT_FOUND or OUT_OF_MEMORY in the slot. */
EDDY_API eddy_tensor *eddy_program_state(const eddy_program *program, const char *name);

/* ---- files ---- */

/* Writes the program and the elements of the tensors that it holds (state and captured ones) to a file, which is replaced as a whole or not at all: it is
 * written under another name, synced to the disk, and then renamed. Blocks until these elements are computed, and returns
 * their errors. What a run leaves as gradients on the tape is no part of the file. INVALID_ARGUMENT (a constant was written after the recording: a run fails, too), UNSUPPORTED (ops of the program's own, generators other than the
 * thread's), IO (with the path and the reason), OUT_OF_MEMORY, SHUT_DOWN, FORKED; in a callback WOULD_DEADLOCK, if elements have still to be computed. */
EDDY_API eddy_status eddy_program_save(const eddy_program *program, const char *path);

/* A program from such a file, one reference, the caller's, of the thread's runtime. It holds new tensors of the elements that were saved; eddy_program_state
 * gives those of its states. Everything that the file says is checked, operands, shapes and attributes of each instruction as
 * calls are, before memory is taken for tensors; nothing in it is executed. Blocks while it reads. NULL with IO (a file that is no program's or is damaged),
 * INVALID_ARGUMENT (a program that is none, with the line of its text), UNSUPPORTED, OUT_OF_MEMORY, SHUT_DOWN, FORKED in the slot. */
EDDY_API eddy_program *eddy_program_load(const char *path);

#ifdef __cplusplus
}

#include <initializer_list>

namespace eddy_detail {
inline eddy_bindings bindings(std::initializer_list<eddy_binding> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
inline eddy_feeds feeds(std::initializer_list<eddy_feed> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
inline eddy_data_feeds data_feeds(std::initializer_list<eddy_data_feed> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
inline eddy_fetches fetches(std::initializer_list<eddy_fetch> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
} // namespace eddy_detail
#define EDDY_FEEDS(...) (::eddy_detail::feeds({__VA_ARGS__}))
#define EDDY_DATA_FEEDS(...) (::eddy_detail::data_feeds({__VA_ARGS__}))
#define EDDY_FETCHES(...) (::eddy_detail::fetches({__VA_ARGS__}))
#define EDDY_BINDINGS(...)                                                                         \
    (&static_cast<const eddy_bindings &>(::eddy_detail::bindings({__VA_ARGS__})))
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_record_begin(...) EDDY_AT_CALL_SITE(eddy_record_begin(__VA_ARGS__))
#define eddy_record_end(...) EDDY_AT_CALL_SITE(eddy_record_end(__VA_ARGS__))
#define eddy_record_end_with_grad(...) EDDY_AT_CALL_SITE(eddy_record_end_with_grad(__VA_ARGS__))
#define eddy_record_cancel(...) EDDY_AT_CALL_SITE_VOID(eddy_record_cancel(__VA_ARGS__))
#define eddy_program_retain(...) EDDY_AT_CALL_SITE(eddy_program_retain(__VA_ARGS__))
#define eddy_program_release(...) EDDY_AT_CALL_SITE_VOID(eddy_program_release(__VA_ARGS__))
#define eddy_program_run(...) EDDY_AT_CALL_SITE(eddy_program_run(__VA_ARGS__))
#define eddy_program_run_into(...) EDDY_AT_CALL_SITE(eddy_program_run_into(__VA_ARGS__))
#define eddy_program_run_batches(...) EDDY_AT_CALL_SITE(eddy_program_run_batches(__VA_ARGS__))
#define eddy_program_prepare(...) EDDY_AT_CALL_SITE(eddy_program_prepare(__VA_ARGS__))
#define eddy_program_input(...) EDDY_AT_CALL_SITE(eddy_program_input(__VA_ARGS__))
#define eddy_program_output(...) EDDY_AT_CALL_SITE(eddy_program_output(__VA_ARGS__))
#define eddy_program_run_named(...) EDDY_AT_CALL_SITE(eddy_program_run_named(__VA_ARGS__))
#define eddy_program_binding_describe(...)                                                         \
    EDDY_AT_CALL_SITE(eddy_program_binding_describe(__VA_ARGS__))
#define eddy_program_describe(...) EDDY_AT_CALL_SITE(eddy_program_describe(__VA_ARGS__))
#define eddy_program_print(...) EDDY_AT_CALL_SITE(eddy_program_print(__VA_ARGS__))
#define eddy_program_state(...) EDDY_AT_CALL_SITE(eddy_program_state(__VA_ARGS__))
#define eddy_program_save(...) EDDY_AT_CALL_SITE(eddy_program_save(__VA_ARGS__))
#define eddy_program_load(...) EDDY_AT_CALL_SITE(eddy_program_load(__VA_ARGS__))
#endif
#endif
