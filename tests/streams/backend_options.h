/* The part of backend_conformance.h about entries that a device may lack. A kind says which it has; the others have to be NULL. */
#ifndef EDDY_TESTS_BACKEND_OPTIONS_H
#define EDDY_TESTS_BACKEND_OPTIONS_H

#include <base/thread.h>
#include <streams/row_owner.h>
#include <tests/streams/backend_kind.h>

/* ---- what there is ---- */

/* Each case begins with one of these: entries that come together are all there or all absent, as the kind says. */

static inline bool backend_runs_host_code(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->runs_host_code;
    cr_assert((class->run != NULL) == has && (class->translate != NULL) == has);
    return has;
}

static inline bool backend_has_pinned_memory(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->has_pinned_memory;
    cr_assert((class->pinned_acquire != NULL) == has && (class->pinned_release != NULL) == has &&
              (class->await_word != NULL) == has && (class->store_word != NULL) == has);
    return has;
}

static inline bool backend_has_native_streams(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->has_native_streams;
    cr_assert((class->native != NULL) == has && (class->foreign != NULL) == has &&
              (class->lend_begin != NULL) == has && (class->lend_end != NULL) == has);
    return has;
}

static inline bool backend_has_fences(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->has_fences;
    cr_assert((class->fence_record != NULL) == has && (class->fence_wait != NULL) == has &&
              (class->foreign_record != NULL) == has && (class->foreign_wait != NULL) == has &&
              (class->fence_recycle != NULL) == has && (class->has_memory != NULL) == has);
    return has;
}

static inline bool backend_has_rows(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->has_rows;
    cr_assert((class->row_begin != NULL) == has && (class->row_end != NULL) == has &&
              (class->rows_forget != NULL) == has);
    return has;
}

static inline bool backend_has_waiting_marks(const backend_run *run) {
    const eddy_backend_class *class = run->class;
    bool has = run->kind->has_waiting_marks;
    cr_assert((class->mark_later != NULL) == has && (class->mark_waiting != NULL) == has);
    return has;
}

/* ---- marks that wait ---- */

static inline uint64_t backend_mark_later(backend_run *run, eddy_backend_queue *queue) {
    uint64_t ticket = backend_ticket(run);
    cr_assert_eq(run->class->mark_later(queue, ticket), EDDY_OK);
    return ticket;
}

/* Each comes with the next mark of any queue, with mark_waiting, or by itself; another queue need not wait for that. */
static inline void backend_marks_may_wait(backend_run *run) {
    if (!backend_has_waiting_marks(run))
        return;
    enum { ROUNDS = 40 };
    uint64_t *here = backend_host_acquire(run, 2 * sizeof(*here));
    char *there = backend_acquire(run, sizeof(*here));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        here[0] = round;
        backend_copy(run, run->queues[0], there, &here[0], sizeof(*here), EDDY_COPY_TO_DEVICE);
        uint64_t first = backend_mark_later(run, run->queues[0]);
        for (uint64_t i = 0; i < round; i++)
            (void)backend_mark_later(run, run->queues[2]);
        cr_assert_eq(run->class->wait(run->queues[1], run->queues[0], first), EDDY_OK);
        backend_copy(run, run->queues[1], &here[1], there, sizeof(*here), EDDY_COPY_TO_HOST);
        uint64_t last;
        if (round % 2) {
            last = backend_mark(run, run->queues[1]);
        } else {
            last = backend_mark_later(run, run->queues[1]);
            cr_assert_eq(run->class->mark_waiting(run->backend), EDDY_OK);
        }
        backend_await(run, run->queues[1], last);
        cr_assert_eq(here[1], round);
        backend_await(run, run->queues[0], first);
        backend_await(run, run->queues[2], first + round);
    }
    cr_assert_eq(run->class->mark_waiting(run->backend), EDDY_OK); /* there are none */
    backend_release(run, there, sizeof(*here));
    backend_host_release(run, here, 2 * sizeof(*here));
}

/* Nor do they wait behind a wait: for another queue, or for the host. */
static inline void backend_no_mark_waits_behind_a_wait(backend_run *run) {
    if (!backend_has_waiting_marks(run))
        return;
    backend_hold(run, run->queues[1]);
    uint64_t held = backend_mark_later(run, run->queues[1]);
    uint64_t first = backend_mark_later(run, run->queues[0]);
    cr_assert_eq(run->class->wait(run->queues[0], run->queues[1], held), EDDY_OK);
    uint64_t behind = backend_mark_later(run, run->queues[0]);
    backend_await(run, run->queues[0], first);
    uint64_t ahead = backend_mark_later(run, run->queues[2]);
    cr_assert_eq(run->class->await_word(run->queues[2], run->gate.word, run->gate.value), EDDY_OK);
    uint64_t last = backend_mark_later(run, run->queues[2]);
    backend_await(run, run->queues[2], ahead);
    cr_assert_lt(backend_completed(run->queues[0]), behind);
    backend_open(run);
    cr_assert_eq(run->class->mark_waiting(run->backend), EDDY_OK);
    backend_await(run, run->queues[0], behind);
    backend_await(run, run->queues[2], last);
}

/* ---- code of the host ---- */

typedef struct backend_number {
    const eddy_backend *backend;
    uint64_t *at;
    uint64_t factor, summand;
} backend_number;

static inline void backend_run_number(void *context) {
    const backend_number *number = context;
    uint64_t *at = number->backend->class->translate(number->backend, number->at);
    if ((uintptr_t)context % 16 == 0)
        *at = *at * number->factor + number->summand;
}

/* In order with copies, with a copy of what it is given. */
static inline void backend_code_of_the_host_runs_in_its_place(backend_run *run) {
    if (!backend_runs_host_code(run))
        return;
    const eddy_backend_class *class = run->class;
    uint64_t here[2] = {3, 0};
    char *there = backend_acquire(run, 64);
    backend_number number = {run->backend, (uint64_t *)(void *)(there + 56), 10, 4};
    backend_copy(run, run->queues[0], there + 56, &here[0], 8, EDDY_COPY_TO_DEVICE);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(class->run(run->queues[0], backend_run_number, &number, sizeof(number)),
                     EDDY_OK);
        number.summand++;
    }
    memset(&number, 0, sizeof(number));
    backend_copy(run, run->queues[0], &here[1], there + 56, 8, EDDY_COPY_TO_HOST);
    backend_await(run, run->queues[0], backend_mark(run, run->queues[0]));
    cr_assert_eq(here[1], 3456);
    cr_assert_null(class->translate(run->backend, NULL));
    cr_assert_eq(class->translate(run->backend, here), (void *)here);
    const char *begin = class->translate(run->backend, there);
    cr_assert_eq(class->translate(run->backend, there + 64), (const void *)(begin + 64));
    backend_release(run, there, 64);
}

static inline void backend_note_call(void *context) {
    ++*(int *)context;
}

static inline void backend_foreign_code_is_called_at_once(backend_run *run) {
    if (!backend_has_native_streams(run))
        return;
    int count = 0;
    for (int q = 0; q < BACKEND_RUN_QUEUES; q++) {
        cr_assert_not_null(run->class->native(run->queues[q]));
        cr_assert(q == 0 ||
                  run->class->native(run->queues[q]) != run->class->native(run->queues[0]));
        cr_assert_eq(run->class->foreign(run->queues[q], backend_note_call, &count), EDDY_OK);
        cr_assert_eq(count, q + 1);
    }
}

/* ---- memory of the host ---- */

static inline void backend_pinned_memory_is_aligned_and_apart(backend_run *run) {
    if (!backend_has_pinned_memory(run))
        return;
    static const int64_t sizes[] = {1, 5000, 3, 1 << 20};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes) };
    char *blocks[COUNT];
    for (int b = 0; b < COUNT; b++) {
        blocks[b] = run->class->pinned_acquire(run->backend, sizes[b]);
        cr_assert_not_null(blocks[b]);
        cr_assert_eq((uintptr_t)blocks[b] % 512, 0);
        memset(blocks[b], b, (size_t)sizes[b]);
    }
    for (int b = 0; b < COUNT; b++) {
        cr_assert(blocks[b][0] == b && blocks[b][sizes[b] - 1] == b);
        run->class->pinned_release(run->backend, blocks[b], sizes[b]);
    }
}

static inline void backend_words_of_the_host_hold_a_queue_and_tell_of_it(backend_run *run) {
    if (!backend_has_pinned_memory(run))
        return;
    uint64_t *here = backend_host_acquire(run, 64);
    _Atomic uint64_t *opens = (_Atomic uint64_t *)&here[2], *told = (_Atomic uint64_t *)&here[3];
    char *there = backend_acquire(run, 8);
    eddy_backend_queue *queue = run->queues[0];
    for (uint64_t round = 1; round <= 10; round++) {
        here[0] = round;
        cr_assert_eq(run->class->await_word(queue, opens, 3 * round), EDDY_OK);
        backend_copy(run, queue, there, &here[0], 8, EDDY_COPY_TO_DEVICE);
        backend_copy(run, queue, &here[1], there, 8, EDDY_COPY_TO_HOST);
        cr_assert_eq(run->class->store_word(queue, told, round), EDDY_OK);
        uint64_t ticket = backend_mark(run, queue);
        eddy_store_release(opens, 3 * round - 1);
        sched_yield();
        cr_assert_eq(eddy_load_acquire(told), round - 1);
        cr_assert_eq(here[1], round - 1);
        eddy_store_release(opens, 3 * round + round % 2); /* the value, or more */
        while (eddy_load_acquire(told) != round)
            sched_yield();
        cr_assert_eq(here[1], round);
        backend_await(run, queue, ticket);
    }
    backend_release(run, there, 8);
    backend_host_release(run, here, 64);
}

/* ---- fences ---- */

static inline uintptr_t backend_native(const backend_run *run, int queue) {
    return (uintptr_t)run->class->native(run->queues[queue]);
}

/* Those of the queue, and those of a stream of others, as which the queue's own does. */
static inline eddy_backend_fence *backend_fence(const backend_run *run, int queue,
                                                bool is_foreign) {
    eddy_backend_fence *fence = NULL;
    cr_assert_eq(is_foreign
                     ? run->class->foreign_record(run->backend, backend_native(run, queue), &fence)
                     : run->class->fence_record(run->queues[queue], &fence),
                 EDDY_OK);
    cr_assert_not_null(fence);
    return fence;
}

static inline void backend_wait_for_fence(const backend_run *run, int queue, bool is_foreign,
                                          const eddy_backend_fence *fence) {
    cr_assert_eq(is_foreign
                     ? run->class->foreign_wait(run->backend, backend_native(run, queue), fence)
                     : run->class->fence_wait(run->queues[queue], fence),
                 EDDY_OK);
}

/* A number goes there on one queue and back on another; a fence may be recycled as soon as everybody waits for it. */
static inline void backend_fences_order_what_tickets_do_not(backend_run *run) {
    if (!backend_has_fences(run))
        return;
    enum { ROUNDS = 12, BYTES = 2 * ROUNDS * sizeof(uint64_t) };
    uint64_t *here = backend_host_acquire(run, BYTES), *back = here + ROUNDS;
    char *there = backend_acquire(run, 8);
    backend_hold(run, run->queues[0]);
    for (int round = 0; round < ROUNDS; round++) {
        here[round] = (uint64_t)round + 1;
        backend_copy(run, run->queues[0], there, &here[round], 8, EDDY_COPY_TO_DEVICE);
        eddy_backend_fence *fence = backend_fence(run, 0, round % 2);
        backend_wait_for_fence(run, 1, round / 2 % 2, fence);
        run->class->fence_recycle(run->backend, fence);
        backend_copy(run, run->queues[1], &back[round], there, 8, EDDY_COPY_TO_HOST);
        fence = backend_fence(run, 1, round / 4 % 2);
        backend_wait_for_fence(run, 0, round % 3 == 0, fence);
        run->class->fence_recycle(run->backend, fence);
    }
    uint64_t last = backend_mark(run, run->queues[0]);
    cr_assert_eq(backend_completed(run->queues[0]), 0);
    backend_open(run);
    backend_await(run, run->queues[0], last);
    for (int round = 0; round < ROUNDS; round++)
        cr_assert_eq(back[round], (uint64_t)round + 1);
    backend_release(run, there, 8);
    backend_host_release(run, here, BYTES);
}

static inline void backend_memory_of_the_device_is_known(backend_run *run) {
    if (!backend_has_fences(run))
        return;
    char here[8], *there = backend_acquire(run, 4096);
    void *host = backend_host_acquire(run, 8);
    cr_assert(run->class->has_memory(run->backend, there, 4096));
    cr_assert(run->class->has_memory(run->backend, there + 4000, 96));
    cr_assert_not(run->class->has_memory(run->backend, host, 8));
    cr_assert_not(run->class->has_memory(run->backend, here, 8));
    cr_assert_not(run->class->has_memory(run->backend, there, INT64_MAX));
    backend_host_release(run, host, 8);
    backend_release(run, there, 4096);
}

/* ---- rows ---- */

enum { BACKEND_ROW = 4 };

/* Launches, each of which looks at the one before. The first looks at a ticket ahead of the row, which may have been skipped. */
static inline void backend_launch_row(const backend_run *run, uint64_t first) {
    for (uint64_t i = 0; i < BACKEND_ROW; i++) {
        const eddy_backend_launch launch = {.queue = run->queues[0],
                                            .ticket = first + i,
                                            .sources = {first + i - 1},
                                            .source_count = 1};
        cr_assert_eq(run->class->look(&launch), EDDY_OK);
    }
}

static inline eddy_row_way backend_row_come(backend_run *run, eddy_row_owner *owner, uint32_t place,
                                            bool is_whole, bool *is_launched) {
    static const uint64_t key[] = {0x1000, 64, 0x2000, 128};
    const eddy_backend_row row = {.owner = owner,
                                  .place = {place},
                                  .key = key,
                                  .key_count = sizeof(key) / sizeof(*key),
                                  .count = BACKEND_ROW,
                                  .first = run->ticket + 1};
    for (int i = 0; i < BACKEND_ROW; i++)
        (void)backend_ticket(run);
    eddy_row_way way = run->class->row_begin(run->queues[0], &row);
    *is_launched = way == EDDY_ROW_IS_LAUNCHED;
    if (way == EDDY_ROW_CAPTURES) {
        backend_launch_row(run, row.first);
        *is_launched = run->class->row_end(run->queues[0], &row, is_whole);
    }
    if (!*is_launched && (is_whole || way == EDDY_ROW_LAUNCHES)) {
        backend_launch_row(run, row.first);
        *is_launched = true;
    }
    backend_await(run, run->queues[0], backend_mark(run, run->queues[0]));
    return way;
}

static inline void backend_expect_row(const backend_run *run, int32_t said) {
    for (uint64_t i = 1; i <= BACKEND_ROW; i++)
        cr_assert_eq(backend_said(run, run->ticket - i), said);
}

/* Whether they are launched, noted or known. Once it comes again, and is not forgotten, it is known. */
static inline void backend_rows_are_what_their_launches_are(backend_run *run) {
    if (!backend_has_rows(run))
        return;
    eddy_row_owner *owner = eddy_row_owner_create();
    cr_assert_not_null(owner);
    for (int round = 0; round < 8; round++) {
        bool is_launched, is_bad = round % 2;
        if (is_bad)
            (void)backend_skip(run, run->queues[0]);
        else
            (void)backend_look(run, run->queues[0], 0, NULL);
        eddy_row_way way = backend_row_come(run, owner, 1, true, &is_launched);
        backend_expect_row(run, is_bad ? EDDY_SKIPPED : EDDY_OK);
        cr_assert_eq(way == EDDY_ROW_IS_LAUNCHED, round >= 2 && round != 5 && round != 6, "%d",
                     round);
        if (round == 4)
            run->class->rows_forget(run->backend);
    }
    eddy_row_owner_release(owner);
}

static inline void backend_a_row_that_is_not_whole_launches_nothing(backend_run *run) {
    if (!backend_has_rows(run))
        return;
    eddy_row_owner *owner = eddy_row_owner_create();
    cr_assert_not_null(owner);
    for (int round = 0; round < 2; round++) {
        bool is_launched;
        (void)backend_skip(run, run->queues[0]);
        eddy_row_way way = backend_row_come(run, owner, 2, false, &is_launched);
        cr_assert_eq(way, round == 0 ? EDDY_ROW_LAUNCHES : EDDY_ROW_CAPTURES);
        cr_assert_eq(is_launched, round == 0);
        backend_expect_row(run, is_launched ? EDDY_SKIPPED : EDDY_OK);
    }
    eddy_row_owner_release(owner);
}

/* ---- a lost device ---- */

static inline void backend_expect_options_lost(backend_run *run, eddy_backend_queue *queue) {
    const eddy_backend_class *class = run->class;
    int count = 0;
    if (class->run)
        cr_assert_eq(class->run(queue, backend_note_call, &count, sizeof(count)), EDDY_DEVICE_LOST);
    if (class->await_word) {
        cr_assert_eq(class->await_word(queue, run->gate.word, 0), EDDY_DEVICE_LOST);
        cr_assert_eq(class->store_word(queue, run->gate.word, 99), EDDY_DEVICE_LOST);
    }
    if (class->foreign)
        cr_assert_eq(class->foreign(queue, backend_note_call, &count), EDDY_DEVICE_LOST);
    cr_assert_eq(count, 0);
    eddy_backend_fence *fence = NULL;
    if (class->fence_record)
        cr_assert_eq(class->fence_record(queue, &fence), EDDY_DEVICE_LOST);
    cr_assert_null(fence);
}

#endif
