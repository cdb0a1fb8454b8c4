/* The virtual machine: takes instructions in order, runs each when its operands are free, and frees storages after their last use.
 *
 * The VM knows storages (by number) and instructions (a descriptor, operands, bytes of arguments); nothing of tensors,
 * shapes or op names. PROTOCOL.md beside this file states and argues the rules between threads.
 *
 * Threads: every function here may be called from any thread unless it says otherwise. None of them calls user code. */
#ifndef EDDY_VM_VM_H
#define EDDY_VM_VM_H

#include <base/assert.h>
#include <base/call_site.h>
#include <base/lifo.h>
#include <eddy/options.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <kernels/kernel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streams/memory_block.h>
#include <vm/poison.h>

typedef struct eddy_vm eddy_vm;
typedef struct eddy_vm_stream eddy_vm_stream;
typedef struct eddy_vm_event eddy_vm_event;
typedef struct eddy_vm_lend eddy_vm_lend;
struct eddy_backend;
struct eddy_backend_launch;
struct eddy_vm_device;

/* ---- storages ---- */

/* Names a storage of one VM; 0 is none. Numbers are reused; a reference keeps its number. */
typedef uint32_t eddy_storage_number;
#define EDDY_STORAGE_NUMBER_MAX ((1u << 26) - 1)

typedef enum eddy_access {
    EDDY_ACCESS_CONST, /* reads */
    EDDY_ACCESS_MUT,   /* writes; the size is known at the call */
    EDDY_ACCESS_MUT2,  /* writes; the size is known after `count` has run; always a new storage */
} eddy_access;

typedef struct eddy_vm_operand {
    eddy_storage_number storage; /* in; out where is_new */
    uint8_t access;              /* eddy_access */
    bool is_new;                 /* the call makes this storage (mut or mut2, written whole) */
    bool
        covers_all; /* mut: every byte is written and none is read (by no operand of the call), so that a
                                    poisoned storage heals */
    /* mut, not new: once the call is over, whatever became of it, the storage's elements are gone. Its memory is released, unless a lend has kept it,
     * and who reads it from then on gets the record of descriptor->gone, until a call covers all of it, which takes memory anew. With
     * covers_all the call does not touch it, and its memory is released before the call takes any, unless another operand is the same storage. Not
     * for borrowed memory. */
    bool is_given_up;
    uint8_t device; /* is_new: where its memory is; 0 is the host */
    int64_t bytes;  /* is_new with mut: size */
} eddy_vm_operand;

/* Counts reuses of the number: number and generation name one storage for the life of the VM. For the holder of a reference. 0 once the VM has
 * closed. */
uint32_t eddy_vm_storage_generation(eddy_vm *vm, eddy_storage_number storage);

/* ---- instructions ---- */

/* A descriptor and the data it runs on: part of a call and of the instruction that the VM makes of it, and what a descriptor's
 * callbacks see. */
typedef struct eddy_vm_instruction {
    const struct eddy_vm_descriptor *descriptor;
    const void *
        arguments; /* aligned to 8; in a call readable up to the next multiple of 8 bytes, in callbacks a copy */
    int64_t operand_count; /* no upper limit */
    uint64_t sequence;     /* the VM's, in the order of submission; a call leaves it 0 */
    const void *address;   /* return address of the public function */
} eddy_vm_instruction;

/* The argument of `run`. */
typedef struct eddy_vm_run {
    const eddy_vm_instruction *instruction;
    void *const
        *data; /* start of each operand's storage, in the call's order; NULL for empty storages */
    const int64_t *bytes; /* size of each operand's storage */
    void *workspace;      /* 64-byte aligned */
    eddy_kernel_team *team;
    eddy_kernel_error *error;
    /* On a device that runs no code of the host: `run` launches there (kernels/kernel.h). NULL elsewhere. */
    struct eddy_backend_launch *launch;
    void *state; /* of what is launched in rounds: all zero before the first; unset elsewhere */
    /* In `run` of a call with mut2 operands: the shape of each, in order, as it was counted; memory of the host. NULL elsewhere, unset in a plain call. */
    const eddy_shape *late_shapes;
    /* For eddy_vm_run_*, unset in a plain call. */
    eddy_vm *vm;
    const uint32_t *mentions;
} eddy_vm_run;

/* How a program is launched on a device that runs no code of the host (DEVICES.md 6): `run` launches a round, with run->launch and run->state, until
 * nothing goes on. The round's calls have the tickets just below that of run->launch. */
typedef struct eddy_vm_rounds {
    /* The most calls that a round may have: EDDY_ROUND_CALLS_MOST at most. */
    uint32_t (*call_count)(const eddy_vm_instruction *instruction);
    /* Bytes of the host's memory for run->state, which stays until the instruction is over. */
    size_t (*state_bytes)(const eddy_vm_instruction *instruction);
    /* Everything of the round is complete. Whether there is another one; else poison was set. On the thread with the engine's role. */
    bool (*goes_on)(const eddy_vm_run *run);
} eddy_vm_rounds;

/* With its own ticket, an eighth of a device's window. */
#define EDDY_ROUND_CALLS_MOST 255

/* One per kind of op call; const and of static life (or until the VM that saw it is destroyed). */
typedef struct eddy_vm_descriptor {
    /* Runs the kernel. On any thread, without a lock on which it may wait. */
    void (*run)(const eddy_vm_run *run);
    /* Of the VM's own calls: launches it, on a device of any kind. NULL: `run` is what the device runs, or launches. */
    void (*launch)(struct eddy_vm_device *device, const eddy_vm_run *run,
                   const struct eddy_backend_launch *launch);
    /* Bytes of workspace, asked before `run`; NULL: none. run->data is resolved for inputs. */
    size_t (*workspace)(const eddy_vm_run *run);
    /* mut2: writes one shape and byte size per mut2 operand, in order; NULL elsewhere. On a device that runs no code of the host: launches what counts, into run->error->counted;
     * `shapes` and `bytes` are NULL. */
    void (*count)(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes);
    /* On such a device: writes them, from run->error->counted, or a failure to run->error. On the engine's thread, for less than a microsecond; `run` has nothing but instruction and
     * error. */
    void (*shape)(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes);
    /* "add": the op's name; static life. */
    const char *(*name)(const eddy_vm_instruction *instruction);
    /* "add(f32[16], f32[16])" and other data; as snprintf. For errors, traces and dumps. */
    int (*describe)(const eddy_vm_instruction *instruction, char *buffer, size_t size);
    /* One sentence for a kernel error; as snprintf. */
    int (*explain)(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                   char *buffer, size_t size);
    /* The last call for a submitted instruction, whether it has run or not: it ends the arguments. On any thread,
     * under the VM's locks: it may not wait. NULL: nothing to do. The caller ends an instruction that was refused at submission; one
     * that an abandoned VM never reaches is not ended. */
    void (*end)(const eddy_vm_instruction *instruction);
    /* Its parts fail and are skipped one by one: it runs whatever its operands hold, and says itself what became of each
     * (eddy_vm_run_*); its `error` is not looked at. It decides for each part whether helpers pay, so that it always gets the team. */
    bool is_program;
    const eddy_vm_rounds
        *rounds; /* of a program; NULL: its parts run in one launch on any device */
    /* Fills in the record of an operand that the call has given up: error->sequence is one of the call's numbers, for each operand another. On
     * any thread, under the VM's locks. For calls with such operands. */
    void (*gone)(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error);
    /* EDDY_CHECK_FINITE: index of the first written operand with a NaN or infinity, or -1. NULL: not checked. With `launch` it launches kernels that
     * look, behind `run`, and returns -1: it is their failure in the word of the ticket. */
    int64_t (*check_finite)(const eddy_vm_run *run);
    /* The same of a device's own kernels, ahead of `run`: launches kernels that look at the operands that it reads. NULL: none are looked at. */
    void (*look_finite)(const eddy_vm_run *run);
    /* What it launches looks at no words of others: on a device it is launched once all that it depends on has ended, and healthy. */
    bool is_foreign;
} eddy_vm_descriptor;

/* The poison of an operand, before the run or as it was set. While a program runs. */
eddy_poison eddy_vm_run_poison(const eddy_vm_run *run, int64_t operand);
void eddy_vm_run_poison_set(const eddy_vm_run *run, int64_t operand, eddy_poison poison);
/* Records a root failure: error->sequence is one of the call's numbers. */
void eddy_vm_run_fail(const eddy_vm_run *run, const eddy_error *error);
/* Whether there is a record of this number. */
bool eddy_vm_run_has_failed(const eddy_vm_run *run, uint64_t sequence);
/* Counts parts that did not run because of poison. */
void eddy_vm_run_skip(const eddy_vm_run *run, uint64_t count);
/* EDDY_CHECK_FINITE is on. */
bool eddy_vm_run_checks_finite(const eddy_vm_run *run);

typedef enum eddy_vm_place {
    EDDY_PLACE_ANY, /* caller, scheduler or worker, by cost */
    EDDY_PLACE_WORKER, /* workers only: kernels of registered ops; for calls of devices, whose issuers run ahead */
} eddy_vm_place;

typedef struct eddy_vm_call {
    eddy_vm_instruction instruction; /* its arguments are copied */
    size_t argument_bytes;
    eddy_vm_operand *operands; /* storage filled in for new ones */
    eddy_vm_stream *stream;    /* NULL: the default stream, unordered */
    int64_t cost_ps;           /* estimated time on one core, picoseconds */
    /* Sequence numbers that the call takes beside its own, just below it: one for each of its parts. */
    uint32_t part_count;
    eddy_vm_place place;
    /* A promise, for the sake of speed: up to 8 operands, all const but the last, which is new and of known size; the
     * descriptor asks for no workspace, counts nothing and has no end. */
    bool is_plain;
    /* Storages to release before the call, so that a release takes no lock of its own; NULL: none. Their count is set to 0 as
     * soon as they are released, before any user code can run: also if the call fails, unless it was refused altogether
     * (SHUT_DOWN, FORKED). */
    const eddy_storage_number *releases;
    uint32_t *release_count;
} eddy_vm_call;

/* Gives the call its sequence number and runs or queues it; returns at once unless a mark (instructions in flight,
 * bytes) is reached, then blocks until the VM has caught up. On failure nothing was queued and no storage made; the
 * thread's error slot is filled under the descriptor's name: OUT_OF_MEMORY, SHUT_DOWN, FORKED. */
EDDY_MUST_USE eddy_status eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call);

/* Makes a storage over memory of the caller's, complete and readable at once. `release(context)` is called on the
 * service thread after the last use; on failure it is not called. */
EDDY_MUST_USE eddy_status eddy_vm_storage_borrow(eddy_vm *vm, void *data, int64_t bytes,
                                                 void (*release)(void *context), void *context,
                                                 eddy_storage_number *storage);

/* The same over memory of a device that shares it; the last use is one of the device. Also UNSUPPORTED (it shares none), INVALID_ARGUMENT (not all of it is the
 * device's), DEVICE_LOST. */
EDDY_MUST_USE eddy_status eddy_vm_storage_borrow_there(eddy_vm *vm, uint8_t device, void *data,
                                                       int64_t bytes,
                                                       void (*release)(void *context),
                                                       void *context, eddy_origin origin,
                                                       eddy_storage_number *storage);

/* What uses the storage, which is borrowed memory of a device, from now on begins after what `producer` has been given so far: a stream of others, by the driver's
 * handle. OUT_OF_MEMORY, SHUT_DOWN, DEVICE_LOST, INVALID_ARGUMENT (the driver knows no such stream); the storage is as before then. Never waits. */
EDDY_MUST_USE eddy_status eddy_vm_storage_follow(eddy_vm *vm, eddy_storage_number storage,
                                                 uintptr_t producer, eddy_origin origin);

/* Makes a storage with memory of its own, zero-copy ready to be written by the caller at once through *data, before any
 * instruction names it (from_data). Blocks only if memory is short and work in flight may free some; not on the
 * service thread. */
EDDY_MUST_USE eddy_status eddy_vm_storage_create(eddy_vm *vm, int64_t bytes,
                                                 eddy_storage_number *storage, void **data);
/* The elements have been written: called after each OK of eddy_vm_storage_create. Until then the VM does not close. */
void eddy_vm_storage_written(eddy_vm *vm);

/* Records a failure that no instruction has made, and that counts as seen, under a sequence number of its own, which is written to
 * error->sequence. SHUT_DOWN, FORKED, recorded under `origin`. */
EDDY_MUST_USE eddy_status eddy_vm_note_failure(eddy_vm *vm, eddy_error *error, eddy_origin origin);

/* Makes the new storages of a call, none of them late, that is not run: they have no memory, and their elements are lost for the failure
 * `root`, as if the call had been skipped. On failure none is made: OUT_OF_MEMORY, SHUT_DOWN, FORKED, recorded. */
EDDY_MUST_USE eddy_status eddy_vm_make_lost(eddy_vm *vm, eddy_vm_call *call, uint64_t root);

/* The link that releases a storage: embedded in the object that holds the last reference, so that a release never
 * allocates. Owned by the VM from eddy_vm_release until `recycle` is called on it. */
typedef struct eddy_vm_release_link {
    eddy_lifo_link link;
    eddy_storage_number storage;
    uint64_t after; /* takes effect once the ring has been read up to here */
    /* Frees the link's memory; called exactly once, on any thread, often inside eddy_vm_release. */
    void (*recycle)(struct eddy_vm_release_link *link);
} eddy_vm_release_link;

/* Releases a storage: it is freed after every use submitted before. Never blocks, never fails, in any state of the
 * runtime (after shutdown or fork it only calls recycle). */
void eddy_vm_release(eddy_vm *vm, eddy_vm_release_link *link);

/* Releases many storages at once, without links: all, and *count is 0 before any user code can run, or, if the lock is busy or the ring
 * full, none (false). Never blocks, but for `waits`: until the lock is free. */
bool eddy_vm_release_many(eddy_vm *vm, const eddy_storage_number *numbers, uint32_t *count,
                          bool waits);

/* ---- waiting and reading ----
 * Errors found late (poison) are returned and recorded in the thread's slot, with the record of their root. A timeout is
 * in ns, EDDY_FOREVER for none; 0 asks without waiting. TIMED_OUT, WOULD_DEADLOCK, SHUT_DOWN, FORKED as DESIGN says.
 * `origin` is the public call, for the error record. */

typedef struct eddy_vm_wait {
    int64_t timeout_ns;
    eddy_origin origin;
} eddy_vm_wait;

/* True when everything submitted on the storage has retired. Never blocks. */
bool eddy_vm_is_ready(eddy_vm *vm, eddy_storage_number storage);

/* The live instructions as a graph for Graphviz, as snprintf; false: the VM is closed, or whoever orders instructions has not let go within 0.2 s. */
bool eddy_vm_dump_dot(eddy_vm *vm, char *buffer, size_t size, size_t *length);

/* Says what the storage waits for, or how it failed (which then counts as seen); as snprintf, *length of the whole text. Waits at most 0.2 s for who orders instructions. */
void eddy_vm_explain(eddy_vm *vm, eddy_storage_number storage, char *buffer, size_t size,
                     size_t *length);

/* Waits until the writes submitted on the storage have retired; reads may still run. */
EDDY_MUST_USE eddy_status eddy_vm_wait_storage(eddy_vm *vm, eddy_storage_number storage,
                                               const eddy_vm_wait *wait);

/* The same, whatever they have left there: an error is not looked at. */
EDDY_MUST_USE eddy_status eddy_vm_await_storage(eddy_vm *vm, eddy_storage_number storage,
                                                const eddy_vm_wait *wait);

/* The shape of a mut2 operand's storage, once `count` has run. */
EDDY_MUST_USE eddy_status eddy_vm_late_shape(eddy_vm *vm, eddy_storage_number storage,
                                             const eddy_vm_wait *wait, eddy_shape *shape);

#define EDDY_READ_SMALL_BYTES 64

/* Copies up to EDDY_READ_SMALL_BYTES at `offset_bytes`, ordered like a read submitted now. */
EDDY_MUST_USE eddy_status eddy_vm_read_small(eddy_vm *vm, eddy_storage_number storage,
                                             int64_t offset_bytes, size_t bytes, void *target,
                                             const eddy_vm_wait *wait);

/* Lends the whole storage to the caller: blocks until it may be accessed, then *data may be read (is_mut: written)
 * until eddy_vm_lend_end, from any thread. Instructions on it issued meanwhile run after the end. A mut lend does not
 * heal poison; a poisoned storage is refused with its record. */
EDDY_MUST_USE eddy_status eddy_vm_lend_begin(eddy_vm *vm, eddy_storage_number storage, bool is_mut,
                                             const eddy_vm_wait *wait, void **data,
                                             eddy_vm_lend **lend);
/* The same to code of the storage's device, which has streams of its driver's: *data leads to its memory there, and what that code launches on *native, the driver's stream under
 * `stream`, until eddy_vm_lend_end comes after all that was submitted before. Instructions on the storage issued meanwhile come after what it has launched. DEVICE_LOST; a device that is lost
 * meanwhile leaves what was lent to be written torn. */
EDDY_MUST_USE eddy_status eddy_vm_lend_begin_there(eddy_vm *vm, eddy_storage_number storage,
                                                   bool is_mut, eddy_vm_stream *stream,
                                                   const eddy_vm_wait *wait, void **data,
                                                   void **native, eddy_vm_lend **lend);
/* From now on, while it is lent, the storage's memory stays where it is until the storage is freed, also if it is given up. */
void eddy_vm_lend_keep(eddy_vm *vm, eddy_vm_lend *lend);
/* Never blocks, never fails. `failed`: the write was incomplete, and the storage is torn. */
void eddy_vm_lend_end(eddy_vm *vm, eddy_vm_lend *lend,
                      bool failed); /* a VM that closes waits for it; one that gave up
                                                                     * waiting keeps it */
/* Of a lend to code of the device. DEVICE_LOST: that has captured the stream, and lost the device thereby, which this has waited for. */
eddy_status eddy_vm_lend_end_there(eddy_vm *vm, eddy_vm_lend *lend);

/* Where the storage's memory on its device is, for others: it stays there until the storage is freed, also if it is given up. Ordered on `stream` as a read, or as a write if
 * others may write. Their stream `consumer` (the driver's handle) comes after everything submitted on the storage before, and only the launches of that are waited for; consumer 0: the
 * thread waits until all of it has run. UNSUPPORTED: the device shares no memory. INVALID_ARGUMENT: the driver knows no such stream. What fails later, the consumer does not see. */
EDDY_MUST_USE eddy_status eddy_vm_share(eddy_vm *vm, eddy_vm_stream *stream,
                                        eddy_storage_number storage, bool is_read_only,
                                        uintptr_t consumer, const eddy_vm_wait *wait, void **data);

/* Calls `callback(context, data, bytes, status)` on the service thread, ordered like an instruction that reads (is_mut:
 * reads and writes) the storage; for a poisoned storage data is NULL and status that of the poison. */
typedef void eddy_vm_access_fn(void *context, void *data, int64_t bytes, const eddy_error *error);
EDDY_MUST_USE eddy_status eddy_vm_access(eddy_vm *vm, eddy_storage_number storage, bool is_mut,
                                         eddy_vm_access_fn *callback, void *context,
                                         eddy_origin origin);

/* An ordered write that clears SKIPPED (never TORN, never a plain poison) from storages whose record was seen. */
EDDY_MUST_USE eddy_status eddy_vm_recover(eddy_vm *vm, const eddy_storage_number *storages,
                                          int64_t count, eddy_origin origin);

/* The storage's poison, once everything submitted on it has retired; OK if it has none. Fills *error. */
EDDY_MUST_USE eddy_status eddy_vm_poison(eddy_vm *vm, eddy_storage_number storage,
                                         const eddy_vm_wait *wait, eddy_error *error);

/* Waits for everything that any thread submitted before the call; then returns the lowest unseen late error and the
 * count of the others, all of which count as seen afterwards. What was released before is freed. error may be NULL. */
EDDY_MUST_USE eddy_status eddy_vm_sync(eddy_vm *vm, const eddy_vm_wait *wait, eddy_error *error);

/* Waits until every deleter and callback that is due has returned. */
EDDY_MUST_USE eddy_status eddy_vm_sync_service(eddy_vm *vm, const eddy_vm_wait *wait);

/* ---- streams and events ---- */

/* `name`, or NULL: what events call the stream, behind the name of its device if it has one; nothing where there is no room for more names (base/kept_text.h). */
EDDY_MUST_USE eddy_status eddy_vm_stream_create(eddy_vm *vm, bool is_ordered, int32_t priority,
                                                const char *name, eddy_vm_stream **stream);
void eddy_vm_stream_retain(eddy_vm_stream *stream);
void eddy_vm_stream_release(eddy_vm_stream *stream); /* submitted instructions still run */
/* A new event, which passes when everything submitted to the stream before has retired. NULL stream: the default one. */
EDDY_MUST_USE eddy_status eddy_vm_event_record(eddy_vm *vm, eddy_vm_stream *stream,
                                               eddy_origin origin, eddy_vm_event **event);
void eddy_vm_event_release(eddy_vm_event *event);
bool eddy_vm_event_query(eddy_vm_event *event);
EDDY_MUST_USE eddy_status eddy_vm_event_wait(eddy_vm_event *event, const eddy_vm_wait *wait);
/* Instructions submitted to `stream` from now on run after the event. Returns at once. */
EDDY_MUST_USE eddy_status eddy_vm_stream_wait(eddy_vm *vm, eddy_vm_stream *stream,
                                              eddy_vm_event *event, eddy_origin origin);
/* A no-op on `stream` ordered as a read of the storages: moves their last-used stream forward. */
EDDY_MUST_USE eddy_status eddy_vm_touch(eddy_vm *vm, eddy_vm_stream *stream,
                                        const eddy_storage_number *storages, int64_t count,
                                        eddy_origin origin);

/* ---- devices ---- */

/* Adds a device, which the VM owns if OK: *device is its number, from 1 on. `name` as "cuda:0". `limit_bytes` as in streams/device_pool.h. OUT_OF_MEMORY, SHUT_DOWN,
 * FORKED, recorded; then the backend is good for its `destroy` alone, since it may have queues. */
EDDY_MUST_USE eddy_status eddy_vm_device_add(eddy_vm *vm, struct eddy_backend *backend,
                                             const char *name, int64_t limit_bytes,
                                             eddy_origin origin, uint8_t *device);
/* A stream of a device: ordered, one of the device's queues. */
EDDY_MUST_USE eddy_status eddy_vm_device_stream_create(eddy_vm *vm, uint8_t device,
                                                       int32_t priority, const char *name,
                                                       eddy_vm_stream **stream);
/* The device's default stream; of a closed VM one that no call is submitted to. */
eddy_vm_stream *eddy_vm_device_stream(eddy_vm *vm, uint8_t device);
/* A call that copies `bytes` at `offset_bytes` of `source` to a storage of `device`: to *copy, of so many bytes, or, where that is 0, to a new one. One of the two is on the
 * stream's device, the other there or on the host. Ordered and failing as a call. stream NULL: the device's own for such copies; then the two may also be on two devices, through
 * the host where these have no way to each other. */
EDDY_MUST_USE eddy_status eddy_vm_copy(eddy_vm *vm, eddy_vm_stream *stream,
                                       eddy_storage_number source, int64_t offset_bytes,
                                       int64_t bytes, uint8_t device, const void *address,
                                       eddy_storage_number *copy);

/* The same of a whole storage of the host, of `bytes`, which is released, on failure too. */
EDDY_MUST_USE eddy_status eddy_vm_upload(eddy_vm *vm, eddy_storage_number source, int64_t bytes,
                                         uint8_t device, const void *address,
                                         eddy_storage_number *copy);

/* ---- life ---- */

/* Starts a VM: its scheduler thread, and a reference of the process's one team. If threads cannot be started it runs in
 * one-thread mode: each op runs at the call. options are complete (environment applied). */
EDDY_MUST_USE eddy_status eddy_vm_create(const eddy_runtime_options *options, eddy_vm **vm);
/* Ends a VM: refuses new calls (SHUT_DOWN), waits up to timeout_ns for work in flight, ends its threads and frees its memory.
 * TIMED_OUT: it is abandoned, its threads and memory stay. If another thread is closing it, or has closed it, waits for that
 * within timeout_ns: SHUT_DOWN once it is closed, TIMED_OUT if it is abandoned or not closed yet. In each case the struct stays,
 * so that tensors that outlive the runtime can be released (which then only recycles) and every call on them fails. */
eddy_status eddy_vm_close(eddy_vm *vm, int64_t timeout_ns);
/* At exit, after the VM had its time: no instruction of it begins to run any more. True once its engine stands still; false
 * if it does not within the time, for example because a kernel does not return. eddy_team_halt stops the works that it gave to the team. */
bool eddy_vm_halt(eddy_vm *vm, int64_t deadline_ns);
/* Frees the struct of a closed VM, to which no object refers any more. Does nothing for an abandoned VM, or in a forked
 * child. */
void eddy_vm_destroy(eddy_vm *vm);

/* Threads that run kernels. */
int32_t eddy_vm_thread_count(const eddy_vm *vm);
/* The team, for a calling thread that would otherwise only wait: it runs slices as one of the threads. Only while the VM cannot close, as
 * between the begin and end of a lend. */
eddy_kernel_team *eddy_vm_team(eddy_vm *vm);

/* Counters since the VM began; a snapshot, each exact by itself. */
typedef struct eddy_vm_counters {
    uint64_t submitted, caller_run, scheduler_run, worker_run, skipped;
    uint64_t edges_made, edges_skipped, nodes_made, wakes, sleeps;
    uint64_t errors_made, errors_seen;
    /* Hand-overs between threads: one where the scheduler ran an instruction, two where a worker did. */
    uint64_t hops;
    uint64_t ring_stalls; /* waits of issuers for room in the ring */
    uint64_t starved;     /* instructions that found no memory, and were tried again */
    uint64_t healed;      /* storages that were poisoned, and then written in whole or recovered */
    /* How often the pools had kept what was asked for; threads' caches, which come first, count nothing. */
    int64_t memory_found;
    /* Instructions that wait for nothing but a thread, and those that a thread runs or that are on a device: as the engine last said. */
    int64_t ready, running;
    int64_t in_flight, in_flight_peak, bytes_in_flight, bytes_in_flight_peak;
    int64_t bytes_live, bytes_cached, bytes_peak;
} eddy_vm_counters;
eddy_vm_counters eddy_vm_counters_read(eddy_vm *vm);
/* Its own in the process, from 1 on: in events it says whose the numbers of instructions are. */
uint32_t eddy_vm_number(const eddy_vm *vm);

/* Gives cached memory back to the system; returns its bytes. */
int64_t eddy_vm_trim(eddy_vm *vm);

/* ---- memory of one device: 0 is the host, for whose tensors the limit is that of the process (base/memory.h) ---- */

typedef struct eddy_vm_memory {
    int64_t live_bytes, peak_bytes, cached_bytes, limit_bytes;
    int64_t staging_bytes; /* of the host's, pinned for copies; of the host 0 */
} eddy_vm_memory;

/* Of a closed VM, or in a forked child: zeros, and nothing is done. Any thread. */
eddy_vm_memory eddy_vm_memory_read(eddy_vm *vm, uint8_t device);
/* Gives cached memory back; returns its bytes. */
int64_t eddy_vm_memory_trim(eddy_vm *vm, uint8_t device);
/* What is in use stays; what is cached beyond it goes back. Of the host 0 is the default of base/memory.h. */
void eddy_vm_memory_limit_set(eddy_vm *vm, uint8_t device, int64_t bytes);
/* Writes the first `capacity` blocks: of a device all, of the host those that are cached. Returns how many there are. */
int64_t eddy_vm_memory_list(eddy_vm *vm, uint8_t device, eddy_memory_block *blocks,
                            int64_t capacity);

/* Writes each live instruction with what it waits for to the log. */
void eddy_vm_dump(eddy_vm *vm);

#endif
