/* The part of backend_conformance.h about order: queues, tickets, waits. */
#ifndef EDDY_TESTS_BACKEND_ORDER_H
#define EDDY_TESTS_BACKEND_ORDER_H

#include <base/thread.h>
#include <tests/streams/backend_kind.h>

/* ---- queues and tickets ---- */

static inline void backend_queues_are_numbered_and_come_to_an_end(backend_run *run) {
    eddy_backend_queue *queues[EDDY_BACKEND_QUEUES];
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++) {
        queues[q] = q < BACKEND_RUN_QUEUES ? run->queues[q]
                                           : run->class->queue_create(run->backend, (int32_t)q - 8);
        cr_assert_not_null(queues[q]);
        cr_assert_eq(queues[q]->number, q);
        cr_assert_eq(queues[q]->backend, run->backend);
        cr_assert_eq(backend_completed(queues[q]), 0);
    }
    cr_assert_null(run->class->queue_create(run->backend, 0));
    cr_assert_not(eddy_load_acquire(&run->backend->is_lost));
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++)
        backend_await(run, queues[q], backend_mark(run, queues[q]));
}

enum { BACKEND_TICKETS = 40 };

/* Numbers that go to the device and back, a ticket behind each. */
static inline void backend_tickets_complete_in_order_behind_what_was_launched(backend_run *run) {
    enum { BYTES = 2 * BACKEND_TICKETS * sizeof(uint64_t) };
    uint64_t *here = backend_host_acquire(run, BYTES), *back = here + BACKEND_TICKETS;
    uint64_t tickets[BACKEND_TICKETS], before = 0;
    uint64_t *there = (uint64_t *)(void *)backend_acquire(run, BYTES);
    eddy_backend_queue *queue = run->queues[0];
    for (int i = 0; i < BACKEND_TICKETS; i++) {
        here[i] = (uint64_t)i + 1;
        backend_copy(run, queue, &there[i], &here[i], 8, EDDY_COPY_TO_DEVICE);
        backend_copy(run, queue, &back[i], &there[i], 8, EDDY_COPY_TO_HOST);
        run->ticket += (uint64_t)i % 3; /* numbers of other queues lie between */
        tickets[i] = backend_mark(run, queue);
    }
    for (int done = 0; done < BACKEND_TICKETS;) {
        uint32_t seen = eddy_doorbell_seen(&run->backend->progress);
        uint64_t completed = backend_completed(queue);
        cr_assert_geq(completed, before);
        while (done < BACKEND_TICKETS && tickets[done] <= completed) {
            cr_assert_eq(back[done], (uint64_t)done + 1, "number %d", done);
            done++;
        }
        cr_assert_eq(completed, done > 0 ? tickets[done - 1] : 0, "a ticket that was marked");
        before = completed;
        if (done < BACKEND_TICKETS)
            run->class->await(run->backend, seen);
    }
    backend_release(run, there, BYTES);
    backend_host_release(run, here, BYTES);
}

/* Neither what is launched behind something that does not go on, nor what waits for that. */
static inline void backend_launches_do_not_wait_for_the_device(backend_run *run) {
    uint64_t *words = backend_host_acquire(run, 4 * sizeof(uint64_t));
    char *there = backend_acquire(run, 8);
    eddy_backend_queue *first = run->queues[0], *second = run->queues[1];
    words[0] = 7;
    backend_hold(run, first);
    backend_copy(run, first, there, &words[0], 8, EDDY_COPY_TO_DEVICE);
    backend_copy(run, first, &words[1], there, 8, EDDY_COPY_TO_HOST);
    uint64_t skipped = backend_ticket(run);
    cr_assert_eq(run->class->skip(first, skipped), EDDY_OK);
    backend_order(run, first, second);
    backend_copy(run, second, &words[2], there, 8, EDDY_COPY_TO_HOST);
    eddy_backend_launch launch = {
        .queue = second, .ticket = backend_ticket(run), .sources = {skipped}, .source_count = 1};
    cr_assert_eq(run->class->look(&launch), EDDY_OK);
    uint64_t last = backend_mark(run, second);
    cr_assert_eq(backend_completed(first), 0);
    cr_assert_eq(backend_completed(second), 0);
    cr_assert(words[1] == 0 && words[2] == 0);
    backend_open(run);
    backend_await(run, second, last);
    cr_assert(words[1] == 7 && words[2] == 7);
    cr_assert_eq(backend_said(run, launch.ticket), EDDY_SKIPPED);
    backend_await(run, first, skipped + 1);
    backend_release(run, there, 8);
    backend_host_release(run, words, 4 * sizeof(uint64_t));
}

/* ---- waits ---- */

/* A number goes from queue to queue, each of which waits for the one before, a round and another: nothing runs before all is launched. */
static inline void backend_send_round(backend_run *run, eddy_backend_queue *const *queues,
                                      uint32_t count) {
    enum { ROUNDS = 4, BYTES = 1024 };
    unsigned char *here = backend_host_acquire(run, ROUNDS * BYTES),
                  *back = backend_host_acquire(run, ROUNDS * BYTES);
    char *blocks[EDDY_BACKEND_QUEUES];
    uint64_t last = 0;
    for (uint32_t q = 0; q < count; q++)
        blocks[q] = backend_acquire(run, BYTES);
    backend_hold(run, queues[0]);
    for (int round = 0; round < ROUNDS; round++) {
        memset(here + round * BYTES, round + 1, BYTES);
        backend_copy(run, queues[0], blocks[0], here + round * BYTES, BYTES, EDDY_COPY_TO_DEVICE);
        for (uint32_t q = 1; q < count; q++) {
            backend_order(run, queues[q - 1], queues[q]);
            backend_copy(run, queues[q], blocks[q], blocks[q - 1], BYTES, EDDY_COPY_ON_DEVICE);
        }
        backend_copy(run, queues[count - 1], back + round * BYTES, blocks[count - 1], BYTES,
                     EDDY_COPY_TO_HOST);
        last = backend_mark(run, queues[count - 1]);
        /* Each writes again what the next one has read. */
        cr_assert_eq(run->class->wait(queues[0], queues[count - 1], last), EDDY_OK);
        for (uint32_t q = 1; q < count; q++)
            cr_assert_eq(run->class->wait(queues[q], queues[count - 1], last), EDDY_OK);
    }
    cr_assert_eq(backend_completed(queues[count - 1]), 0);
    backend_open(run);
    backend_await(run, queues[count - 1], last);
    for (int i = 0; i < ROUNDS * BYTES; i++)
        cr_assert_eq(back[i], i / BYTES + 1, "byte %d", i);
    for (uint32_t q = 0; q < count; q++) {
        backend_await(run, queues[q], backend_mark(run, queues[q]));
        backend_release(run, blocks[q], BYTES);
    }
    backend_host_release(run, here, ROUNDS * BYTES);
    backend_host_release(run, back, ROUNDS * BYTES);
}

static inline void backend_a_wait_orders_queues(backend_run *run) {
    backend_send_round(run, run->queues, BACKEND_RUN_QUEUES);
}

/* Not in the order in which they were made. */
static inline void backend_waits_reach_through_all_queues(backend_run *run) {
    eddy_backend_queue *queues[EDDY_BACKEND_QUEUES];
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++)
        queues[q * 5 % EDDY_BACKEND_QUEUES] =
            q < BACKEND_RUN_QUEUES ? run->queues[q] : run->class->queue_create(run->backend, 0);
    backend_send_round(run, queues, EDDY_BACKEND_QUEUES);
}

static inline void backend_a_wait_for_what_is_over_holds_nothing_back(backend_run *run) {
    uint64_t first = backend_mark(run, run->queues[0]), second = backend_mark(run, run->queues[0]);
    backend_await(run, run->queues[0], second);
    for (uint64_t ticket = first; ticket <= second; ticket++)
        cr_assert_eq(run->class->wait(run->queues[1], run->queues[0], ticket), EDDY_OK);
    backend_await(run, run->queues[1], backend_mark(run, run->queues[1]));
}

static inline void backend_end_by_ring(void *context) {
    eddy_doorbell_ring(context);
}

/* Nothing was launched, or nothing goes on: then a ring is all that ends it. */
static inline void backend_await_ends_by_a_ring(backend_run *run) {
    eddy_doorbell *bell = &run->backend->progress;
    uint64_t ticket = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 10) {
            backend_hold(run, run->queues[0]);
            ticket = backend_mark(run, run->queues[0]);
        }
        uint32_t seen = eddy_doorbell_seen(bell);
        eddy_thread ringer;
        cr_assert_eq(eddy_thread_create(&ringer, "ringer", backend_end_by_ring, bell), EDDY_OK);
        run->class->await(run->backend, seen);
        eddy_thread_join(&ringer);
        run->class->await(run->backend, seen); /* it has rung */
        cr_assert_eq(backend_completed(run->queues[0]), 0);
    }
    backend_open(run);
    backend_await(run, run->queues[0], ticket);
}

#endif
