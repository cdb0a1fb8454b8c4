/* A kind of backend, as the suite of backend_conformance.h sees it, and one device of it with three queues. What is observed is what copies bring to the host: every device does that. */
#ifndef EDDY_TESTS_BACKEND_KIND_H
#define EDDY_TESTS_BACKEND_KIND_H

#include <base/memory.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <streams/backend.h>
#include <string.h>
#include <unistd.h>

typedef struct backend_kind {
    /* A device whose choices are those of the seed, where it has any; NULL: there is no memory. */
    eddy_backend *(*create)(uint64_t seed);
    uint64_t seeds; /* 1 to so many */
    /* Which of the entries it has that may be NULL. */
    bool runs_host_code;     /* run, translate */
    bool has_pinned_memory;  /* pinned_acquire, pinned_release, await_word, store_word */
    bool has_native_streams; /* native, foreign, lend_begin, lend_end */
    bool has_waiting_marks;  /* mark_later, mark_waiting */
    bool has_fences;         /* fence_..., foreign_record, foreign_wait, has_memory */
    bool has_rows;           /* row_begin, row_end, rows_forget */
    /* Whether the device is simulated, with less than 1 GB of memory. NULL: it is. */
    bool (*is_simulated)(void);
    /* Before a device is made that `lose` loses; skips the test where none can be. NULL: there is nothing to do. */
    void (*prepare_loss)(void);
    void (*lose)(eddy_backend *backend);
} backend_kind;

enum { BACKEND_RUN_QUEUES = 3 };

typedef struct backend_run {
    const backend_kind *kind;
    eddy_backend *backend;
    const eddy_backend_class *class;
    eddy_backend_queue *queues[BACKEND_RUN_QUEUES];
    uint64_t ticket; /* the last one that was given out */
    /* What holds queues back: a word and the value that opens it. */
    struct {
        _Atomic uint64_t *word;
        uint64_t value;
    } gate;
} backend_run;

/* Memory of the host that copies take without the launching thread. */
static inline void *backend_host_acquire(const backend_run *run, int64_t bytes) {
    void *data = run->class->pinned_acquire
                     ? run->class->pinned_acquire(run->backend, bytes)
                     : aligned_alloc(512, ((size_t)bytes + 511) & ~(size_t)511);
    cr_assert_not_null(data);
    memset(data, 0, (size_t)bytes);
    return data;
}

static inline void backend_host_release(const backend_run *run, void *data, int64_t bytes) {
    if (run->class->pinned_release)
        run->class->pinned_release(run->backend, data, bytes);
    else
        free(data);
}

static inline backend_run backend_begin(const backend_kind *kind, uint64_t seed) {
    alarm(120);
    backend_run run = {.kind = kind, .backend = kind->create(seed)};
    cr_assert_not_null(run.backend);
    run.class = run.backend->class;
    cr_assert_str_not_empty(run.class->name);
    cr_assert_not(eddy_load_acquire(&run.backend->is_lost));
    for (uint32_t q = 0; q < BACKEND_RUN_QUEUES; q++) {
        run.queues[q] = run.class->queue_create(run.backend, (int32_t)q);
        cr_assert_not_null(run.queues[q]);
    }
    run.gate.word = backend_host_acquire(&run, sizeof(*run.gate.word));
    return run;
}

static inline void backend_end(backend_run *run) {
    backend_host_release(run, (void *)(uintptr_t)run->gate.word, sizeof(*run->gate.word));
    run->class->destroy(run->backend);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_CACHE).bytes, 0);
}

/* ---- memory ---- */

static inline char *backend_acquire(const backend_run *run, int64_t bytes) {
    char *data = run->class->memory_acquire(run->backend, bytes);
    cr_assert_not_null(data);
    cr_assert_eq((uintptr_t)data % 512, 0);
    return data;
}

static inline void backend_release(const backend_run *run, void *data, int64_t bytes) {
    run->class->memory_release(run->backend, data, bytes);
}

static inline void backend_copy(const backend_run *run, eddy_backend_queue *queue, void *to,
                                const void *from, int64_t bytes, eddy_copy_direction direction) {
    cr_assert_eq(run->class->copy(queue, to, from, bytes, direction), EDDY_OK);
}

/* ---- tickets ---- */

/* Of a launch, whose word the launching thread clears. */
static inline uint64_t backend_ticket(backend_run *run) {
    uint64_t ticket = ++run->ticket;
    eddy_store_relaxed(&eddy_backend_error(run->backend, ticket)->status, (int32_t)EDDY_OK);
    return ticket;
}

static inline uint64_t backend_mark(backend_run *run, eddy_backend_queue *queue) {
    uint64_t ticket = backend_ticket(run);
    cr_assert_eq(run->class->mark(queue, ticket), EDDY_OK);
    return ticket;
}

static inline uint64_t backend_completed(const eddy_backend_queue *queue) {
    return eddy_load_acquire(&queue->completed);
}

static inline void backend_await(const backend_run *run, const eddy_backend_queue *queue,
                                 uint64_t ticket) {
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&run->backend->progress);
        if (backend_completed(queue) >= ticket)
            return;
        run->class->await(run->backend, seen);
    }
}

/* What is launched on `queue` from now on comes after what was launched on `other`. */
static inline void backend_order(backend_run *run, eddy_backend_queue *other,
                                 eddy_backend_queue *queue) {
    cr_assert_eq(run->class->wait(queue, other, backend_mark(run, other)), EDDY_OK);
}

/* ---- words ---- */

static inline int32_t backend_said(const backend_run *run, uint64_t ticket) {
    return eddy_load_relaxed(&eddy_backend_error(run->backend, ticket)->status);
}

static inline uint64_t backend_look(backend_run *run, eddy_backend_queue *queue, uint32_t count,
                                    const uint64_t *sources) {
    eddy_backend_launch launch = {
        .queue = queue, .ticket = backend_ticket(run), .source_count = count};
    for (uint32_t s = 0; s < count; s++)
        launch.sources[s] = sources[s];
    cr_assert_eq(run->class->look(&launch), EDDY_OK);
    memset(&launch, 0, sizeof(launch)); /* it is the caller's again */
    return run->ticket;
}

static inline uint64_t backend_skip(backend_run *run, eddy_backend_queue *queue) {
    uint64_t ticket = backend_ticket(run);
    cr_assert_eq(run->class->skip(queue, ticket), EDDY_OK);
    return ticket;
}

/* ---- the gate ---- */

static inline void backend_wait_at_gate(void *context) {
    const __typeof__(((backend_run *)0)->gate) *gate = context;
    while (eddy_load_acquire(gate->word) < gate->value)
        sched_yield();
}

/* What is launched on the queue from now on begins once the gate is open. */
static inline void backend_hold(backend_run *run, eddy_backend_queue *queue) {
    run->gate.value = eddy_load_relaxed(run->gate.word) + 1;
    cr_assert_eq(run->class->run
                     ? run->class->run(queue, backend_wait_at_gate, &run->gate, sizeof(run->gate))
                     : run->class->await_word(queue, run->gate.word, run->gate.value),
                 EDDY_OK);
}

static inline void backend_open(const backend_run *run) {
    eddy_store_release(run->gate.word, run->gate.value);
}

#endif
