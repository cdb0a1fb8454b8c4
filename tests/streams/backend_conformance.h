/* What every backend has to keep of the contract in <streams/backend.h>: one suite, run for each by a test_*.c that says what it is (backend_kind.h). Its parts are order (backend_order.h), the
 * entries that a device may lack (backend_options.h), and the rest. copy_across, which wants two devices, is tests/interpreter/host/test_cuda_copies.c's. */
#ifndef EDDY_TESTS_BACKEND_CONFORMANCE_H
#define EDDY_TESTS_BACKEND_CONFORMANCE_H

#include <base/clock.h>
#include <tests/streams/backend_options.h>
#include <tests/streams/backend_order.h>

/* ---- copies ---- */

enum { BACKEND_COPY_BYTES = 4096 };

static inline void backend_copies_begin_and_end_anywhere(backend_run *run) {
    static const int64_t sizes[] = {1, 7, 511, 512, 513, 2048};
    unsigned char *here = backend_host_acquire(run, BACKEND_COPY_BYTES),
                  *back = backend_host_acquire(run, BACKEND_COPY_BYTES);
    char *first = backend_acquire(run, BACKEND_COPY_BYTES),
         *second = backend_acquire(run, BACKEND_COPY_BYTES);
    eddy_backend_queue *queue = run->queues[0];
    for (int i = 0; i < BACKEND_COPY_BYTES; i++)
        here[i] = (unsigned char)(i % 251);
    backend_copy(run, queue, first, here, BACKEND_COPY_BYTES, EDDY_COPY_TO_DEVICE);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (int64_t offset = 0; offset < 1500; offset += 499) {
            int64_t bytes = sizes[s];
            memset(back, 0xFF, BACKEND_COPY_BYTES);
            backend_copy(run, queue, second, back, BACKEND_COPY_BYTES, EDDY_COPY_TO_DEVICE);
            backend_copy(run, queue, second + 1000, first + offset, bytes, EDDY_COPY_ON_DEVICE);
            backend_copy(run, queue, second + offset, here + 3, 5, EDDY_COPY_TO_DEVICE);
            backend_copy(run, queue, back + 1, second, BACKEND_COPY_BYTES - 1, EDDY_COPY_TO_HOST);
            backend_await(run, queue, backend_mark(run, queue));
            for (int64_t i = 0; i < BACKEND_COPY_BYTES - 1; i++) {
                int64_t on = i - 1000 + offset, late = i - offset + 3;
                int expected = late >= 3 && late < 8           ? here[late]
                               : i >= 1000 && i - 1000 < bytes ? here[on]
                                                               : 0xFF;
                cr_assert_eq(back[i + 1], expected, "%d bytes at %d: byte %d", (int)bytes,
                             (int)offset, (int)i);
            }
        }
    backend_release(run, first, BACKEND_COPY_BYTES);
    backend_release(run, second, BACKEND_COPY_BYTES);
    backend_host_release(run, here, BACKEND_COPY_BYTES);
    backend_host_release(run, back, BACKEND_COPY_BYTES);
}

/* Also at the end of a block. */
static inline void backend_copies_of_nothing_change_nothing(backend_run *run) {
    uint64_t *here = backend_host_acquire(run, 1024);
    char *there = backend_acquire(run, 512);
    eddy_backend_queue *queue = run->queues[0];
    here[0] = 1;
    here[1] = 2;
    backend_copy(run, queue, there, &here[0], 8, EDDY_COPY_TO_DEVICE);
    backend_copy(run, queue, there, &here[1], 0, EDDY_COPY_TO_DEVICE);
    backend_copy(run, queue, there, there + 512, 0, EDDY_COPY_ON_DEVICE);
    backend_copy(run, queue, &here[1], there + 512, 0, EDDY_COPY_TO_HOST);
    backend_copy(run, queue, &here[2], there, 8, EDDY_COPY_TO_HOST);
    backend_await(run, queue, backend_mark(run, queue));
    cr_assert(here[1] == 2 && here[2] == 1);
    backend_release(run, there, 512);
    backend_host_release(run, here, 1024);
}

/* ---- words ---- */

/* From launch to launch, and to other queues. */
static inline void backend_what_was_skipped_is_known_behind_it(backend_run *run) {
    eddy_backend_queue *first = run->queues[0], *second = run->queues[1];
    uint64_t well = backend_look(run, first, 0, NULL);
    uint64_t skipped = backend_skip(run, first);
    uint64_t behind = backend_look(run, first, 1, &skipped);
    uint64_t beside = backend_look(run, first, 1, &well);
    backend_order(run, first, second);
    uint64_t there = backend_look(run, second, 2, (uint64_t[]){well, behind});
    uint64_t healthy = backend_look(run, second, 2, (uint64_t[]){well, beside});
    uint64_t last = backend_look(run, second, 1, &there);
    backend_await(run, second, backend_mark(run, second));
    cr_assert_eq(backend_said(run, skipped), EDDY_SKIPPED);
    cr_assert_eq(backend_said(run, behind), EDDY_SKIPPED);
    cr_assert_eq(backend_said(run, there), EDDY_SKIPPED);
    cr_assert_eq(backend_said(run, last), EDDY_SKIPPED);
    cr_assert_eq(backend_said(run, well), EDDY_OK);
    cr_assert_eq(backend_said(run, beside), EDDY_OK);
    cr_assert_eq(backend_said(run, healthy), EDDY_OK);
}

static inline uint64_t backend_fail(backend_run *run, eddy_backend_queue *queue) {
    const eddy_backend_launch launch = {.queue = queue, .ticket = backend_ticket(run)};
    eddy_backend_fail(&launch, EDDY_OUT_OF_RANGE);
    return launch.ticket;
}

/* As many as there may be. The word of what has failed says so, and SKIPPED is what later launches learn. */
static inline void backend_each_source_is_looked_at(backend_run *run) {
    eddy_backend_queue *queue = run->queues[0];
    for (int bad = -1; bad < EDDY_BACKEND_SOURCES; bad++) {
        uint64_t sources[EDDY_BACKEND_SOURCES];
        for (int s = 0; s < EDDY_BACKEND_SOURCES; s++)
            sources[s] = s == bad ? backend_fail(run, queue) : backend_look(run, queue, 0, NULL);
        uint64_t looked = backend_look(run, queue, EDDY_BACKEND_SOURCES, sources);
        backend_await(run, queue, backend_mark(run, queue));
        cr_assert_eq(backend_said(run, looked), bad < 0 ? EDDY_OK : EDDY_SKIPPED, "%d", bad);
        for (int s = 0; s < EDDY_BACKEND_SOURCES; s++)
            cr_assert_eq(backend_said(run, sources[s]), s == bad ? EDDY_OUT_OF_RANGE : EDDY_OK);
    }
}

/* A row of the table means one ticket at a time. */
static inline void backend_words_of_an_earlier_round_mean_nothing(backend_run *run) {
    eddy_backend_queue *queue = run->queues[0];
    uint64_t skipped = backend_skip(run, queue);
    backend_await(run, queue, backend_mark(run, queue));
    run->ticket = skipped + EDDY_BACKEND_WORDS - 1;
    uint64_t later = backend_look(run, queue, 0, NULL);
    cr_assert_eq(later % EDDY_BACKEND_WORDS, skipped % EDDY_BACKEND_WORDS);
    uint64_t behind = backend_look(run, queue, 1, &later);
    backend_await(run, queue, backend_mark(run, queue));
    cr_assert_eq(backend_said(run, behind), EDDY_OK);
}

/* ---- memory ---- */

static inline void backend_memory_is_aligned_and_apart(backend_run *run) {
    static const int64_t sizes[] = {1, 512, 3, 100000, 513, 1};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes) };
    char *blocks[COUNT];
    for (int b = 0; b < COUNT; b++) {
        blocks[b] = backend_acquire(run, sizes[b]);
        for (int c = 0; c < b; c++)
            cr_assert(blocks[b] + sizes[b] <= blocks[c] || blocks[c] + sizes[c] <= blocks[b]);
    }
    for (int b = 0; b < COUNT; b++)
        backend_release(run, blocks[b], sizes[b]);
}

/* A GPU has more than this takes, but not everything. */
static inline void backend_memory_ends_and_comes_back(backend_run *run) {
    enum { MOST = 64 };
    int64_t bytes = 16 << 20;
    cr_assert_null(run->class->memory_acquire(run->backend, INT64_C(1) << 46));
    cr_assert_not(eddy_load_acquire(&run->backend->is_lost), "no memory is no loss");
    char *blocks[MOST];
    int count = 0;
    while (count < MOST && (blocks[count] = run->class->memory_acquire(run->backend, bytes)))
        count++;
    cr_assert_gt(count, 1);
    bool is_simulated = !run->kind->is_simulated || run->kind->is_simulated();
    cr_assert(count < MOST || !is_simulated, "%d blocks", count);
    cr_assert_not(eddy_load_acquire(&run->backend->is_lost));
    backend_release(run, blocks[count / 2], bytes);
    blocks[count / 2] = backend_acquire(run, bytes);
    backend_await(run, run->queues[0], backend_mark(run, run->queues[0]));
    while (count > 0)
        backend_release(run, blocks[--count], bytes);
}

typedef struct backend_taker {
    const backend_run *run;
    _Atomic bool is_over; /* atomic: relaxed */
} backend_taker;

static inline void backend_take_and_give(void *context) {
    backend_taker *taker = context;
    for (int64_t i = 0; !eddy_load_relaxed(&taker->is_over); i++) {
        int64_t bytes = 1 + i % 7 * 500;
        backend_release(taker->run, backend_acquire(taker->run, bytes), bytes);
    }
}

/* While the launching thread launches. */
static inline void backend_any_thread_takes_memory(backend_run *run) {
    backend_taker taker = {.run = run};
    eddy_thread thread;
    uint64_t *here = backend_host_acquire(run, 16);
    char *there = backend_acquire(run, 8);
    cr_assert_eq(eddy_thread_create(&thread, "taker", backend_take_and_give, &taker), EDDY_OK);
    for (uint64_t i = 1; i <= 30; i++) {
        here[0] = i;
        backend_copy(run, run->queues[0], there, &here[0], 8, EDDY_COPY_TO_DEVICE);
        backend_copy(run, run->queues[0], &here[1], there, 8, EDDY_COPY_TO_HOST);
        backend_await(run, run->queues[0], backend_mark(run, run->queues[0]));
        cr_assert_eq(here[1], i);
    }
    eddy_store_relaxed(&taker.is_over, true);
    eddy_thread_join(&thread);
    backend_release(run, there, 8);
    backend_host_release(run, here, 16);
}

/* ---- its end ---- */

static inline void backend_expect_lost(backend_run *run, uint64_t incomplete, char *there,
                                       uint64_t *here) {
    const eddy_backend_class *class = run->class;
    eddy_backend_queue *queue = run->queues[2];
    const eddy_backend_launch launch = {
        .queue = queue, .ticket = run->ticket + 2, .sources = {run->ticket + 1}, .source_count = 1};
    cr_assert_eq(class->wait(queue, run->queues[0], incomplete), EDDY_DEVICE_LOST);
    cr_assert_eq(class->copy(queue, there, here, 8, EDDY_COPY_TO_DEVICE), EDDY_DEVICE_LOST);
    cr_assert_eq(class->copy(queue, here, there, 8, EDDY_COPY_TO_HOST), EDDY_DEVICE_LOST);
    cr_assert_eq(class->copy(queue, there, there + 8, 8, EDDY_COPY_ON_DEVICE), EDDY_DEVICE_LOST);
    cr_assert_eq(class->skip(queue, run->ticket + 1), EDDY_DEVICE_LOST);
    cr_assert_eq(class->look(&launch), EDDY_DEVICE_LOST);
    uint32_t seen = eddy_doorbell_seen(&run->backend->progress);
    cr_assert_eq(class->mark(queue, run->ticket + 3), EDDY_DEVICE_LOST);
    backend_expect_options_lost(run, queue);
    class->await(run->backend, seen - 1); /* returns: it has rung */
    cr_assert(eddy_load_acquire(&run->backend->is_lost));
}

/* What was launched does not run any more, and no ticket completes. Who awaits progress learns of it. */
static inline void backend_a_lost_device_says_so_for_ever(backend_run *run) {
    uint64_t *here = backend_host_acquire(run, 1024);
    char *there = backend_acquire(run, 512);
    uint64_t complete = backend_mark(run, run->queues[0]);
    backend_await(run, run->queues[0], complete);
    backend_hold(run, run->queues[0]);
    here[0] = 7;
    backend_copy(run, run->queues[0], there, here, 8, EDDY_COPY_TO_DEVICE);
    backend_copy(run, run->queues[0], &here[1], there, 8, EDDY_COPY_TO_HOST);
    uint64_t incomplete = backend_mark(run, run->queues[0]);
    run->kind->lose(run->backend);
    backend_open(run);
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&run->backend->progress);
        if (eddy_load_acquire(&run->backend->is_lost))
            break;
        run->class->await(run->backend, seen);
    }
    for (int again = 0; again < 2; again++)
        backend_expect_lost(run, incomplete, there, here);
    cr_assert_eq(backend_completed(run->queues[0]), complete);
    cr_assert_eq(backend_completed(run->queues[2]), 0);
    cr_assert_eq(here[1], 0);
    backend_release(run, there, 512);
    backend_host_release(run, here, 1024);
}

typedef struct backend_visit {
    backend_run *run;
    _Atomic bool *has_entered; /* atomic: release */
} backend_visit;

static inline void backend_visit_gate(void *context) {
    const backend_visit *visit = context;
    eddy_store_release(visit->has_entered, true);
    backend_wait_at_gate(&visit->run->gate);
}

static inline void backend_visit_by_foreign(void *context) {
    const backend_visit *visit = context;
    (void)visit->run->class->foreign(visit->run->queues[0], backend_visit_gate, context);
}

/* At exit: it says so while code of the host is on its way, and nothing is launched behind it. */
static inline void backend_a_halted_device_runs_nothing(backend_run *run) {
    uint64_t *here = backend_host_acquire(run, 16);
    _Atomic bool has_entered = false;
    backend_visit visit = {run, &has_entered};
    eddy_thread thread;
    here[0] = 7;
    char *there = backend_acquire(run, 8);
    backend_copy(run, run->queues[0], there, here, 8, EDDY_COPY_TO_DEVICE);
    backend_await(run, run->queues[0], backend_mark(run, run->queues[0]));
    run->gate.value = 1;
    if (run->class->run)
        cr_assert_eq(run->class->run(run->queues[0], backend_visit_gate, &visit, sizeof(visit)),
                     EDDY_OK);
    else
        cr_assert_eq(eddy_thread_create(&thread, "visit", backend_visit_by_foreign, &visit),
                     EDDY_OK);
    while (!eddy_load_acquire(&has_entered))
        sched_yield();
    cr_assert_not(run->class->halt(run->backend, eddy_clock_ns() + 1000000));
    backend_open(run);
    cr_assert(run->class->halt(run->backend, eddy_clock_ns() + INT64_C(60000000000)));
    if (!run->class->run)
        eddy_thread_join(&thread);
    (void)run->class->copy(run->queues[1], &here[1], there, 8, EDDY_COPY_TO_HOST);
    (void)run->class->mark(run->queues[1], ++run->ticket);
    sched_yield();
    cr_assert_eq(backend_completed(run->queues[1]), 0);
    cr_assert_eq(here[1], 0);
    backend_release(run, there, 8);
    backend_host_release(run, here, 16);
}

/* Each allocation of the host's fails once. */
static inline void backend_without_memory_there_is_none(const backend_kind *kind) {
    for (int64_t first = 0, has_failed = 1; has_failed; first++) {
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, first, 1);
        eddy_backend *backend = kind->create(1);
        void *queue = backend ? backend->class->queue_create(backend, 0) : NULL;
        void *data = backend ? backend->class->memory_acquire(backend, 1) : NULL;
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
        cr_assert_eq(has_failed, !backend || !queue || !data, "allocation %d", (int)first);
        if (data)
            backend->class->memory_release(backend, data, 1);
        if (backend)
            backend->class->destroy(backend);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
    }
}

/* ---- the suite ---- */

static inline void backend_with_seeds(const backend_kind *kind, uint64_t seeds,
                                      void (*check)(backend_run *)) {
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        backend_run run = backend_begin(kind, seed);
        check(&run);
        backend_end(&run);
    }
}

#define BACKEND_CASE(suite, kind, seeds, name)                                                     \
    Test(suite, name) {                                                                            \
        backend_with_seeds(&(kind), seeds, backend_##name);                                        \
    }

/* The suite under the name of a kind. Memory and what is refused do not depend on seeds. */
#define BACKEND_CONFORMANCE_SUITE(suite, kind)                                                     \
    BACKEND_CASE(suite, kind, (kind).seeds, queues_are_numbered_and_come_to_an_end)                \
    BACKEND_CASE(suite, kind, (kind).seeds, tickets_complete_in_order_behind_what_was_launched)    \
    BACKEND_CASE(suite, kind, (kind).seeds, launches_do_not_wait_for_the_device)                   \
    BACKEND_CASE(suite, kind, (kind).seeds, a_wait_orders_queues)                                  \
    BACKEND_CASE(suite, kind, (kind).seeds, waits_reach_through_all_queues)                        \
    BACKEND_CASE(suite, kind, (kind).seeds, a_wait_for_what_is_over_holds_nothing_back)            \
    BACKEND_CASE(suite, kind, (kind).seeds, await_ends_by_a_ring)                                  \
    BACKEND_CASE(suite, kind, (kind).seeds, copies_begin_and_end_anywhere)                         \
    BACKEND_CASE(suite, kind, (kind).seeds, copies_of_nothing_change_nothing)                      \
    BACKEND_CASE(suite, kind, (kind).seeds, what_was_skipped_is_known_behind_it)                   \
    BACKEND_CASE(suite, kind, (kind).seeds, each_source_is_looked_at)                              \
    BACKEND_CASE(suite, kind, (kind).seeds, words_of_an_earlier_round_mean_nothing)                \
    BACKEND_CASE(suite, kind, 1, memory_is_aligned_and_apart)                                      \
    BACKEND_CASE(suite, kind, 1, memory_ends_and_comes_back)                                       \
    BACKEND_CASE(suite, kind, 1, any_thread_takes_memory)                                          \
    BACKEND_CASE(suite, kind, (kind).seeds, a_halted_device_runs_nothing)                          \
    BACKEND_CASE(suite, kind, (kind).seeds, code_of_the_host_runs_in_its_place)                    \
    BACKEND_CASE(suite, kind, 1, marks_may_wait)                                                   \
    BACKEND_CASE(suite, kind, 1, no_mark_waits_behind_a_wait)                                      \
    BACKEND_CASE(suite, kind, 1, foreign_code_is_called_at_once)                                   \
    BACKEND_CASE(suite, kind, 1, pinned_memory_is_aligned_and_apart)                               \
    BACKEND_CASE(suite, kind, (kind).seeds, words_of_the_host_hold_a_queue_and_tell_of_it)         \
    BACKEND_CASE(suite, kind, (kind).seeds, fences_order_what_tickets_do_not)                      \
    BACKEND_CASE(suite, kind, 1, memory_of_the_device_is_known)                                    \
    BACKEND_CASE(suite, kind, (kind).seeds, rows_are_what_their_launches_are)                      \
    BACKEND_CASE(suite, kind, (kind).seeds, a_row_that_is_not_whole_launches_nothing)              \
    Test(suite, a_lost_device_says_so_for_ever) {                                                  \
        if ((kind).prepare_loss)                                                                   \
            (kind).prepare_loss();                                                                 \
        backend_with_seeds(&(kind), (kind).seeds, backend_a_lost_device_says_so_for_ever);         \
    }                                                                                              \
    Test(suite, without_memory_there_is_none) {                                                    \
        backend_without_memory_there_is_none(&(kind));                                             \
    }

#endif
