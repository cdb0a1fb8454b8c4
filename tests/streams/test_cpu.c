#include "conformance.h"
#include <streams/cpu.h>

static eddy_work_queue *create_ordered(void) {
    return eddy_cpu_queue_create(true, 0);
}

static eddy_work_queue *create_unordered(void) {
    return eddy_cpu_queue_create(false, 0);
}

static eddy_work_queue *create_urgent(void) {
    return eddy_cpu_queue_create(true, 1);
}

static const conformance_kind ordered = {.is_ordered = true, .create = create_ordered};
static const conformance_kind unordered = {.is_ordered = false, .create = create_unordered};
static const conformance_kind urgent = {.is_ordered = true, .create = create_urgent};

CONFORMANCE_SUITE(cpu_ordered, ordered)
CONFORMANCE_SUITE(cpu_unordered, unordered)
CONFORMANCE_SUITE(cpu_urgent, urgent)

typedef struct held_work {
    eddy_work work;
    eddy_sleep_word *entered, *is_open;
} held_work;

static void hold(eddy_work *work, eddy_status failure) {
    held_work *held = (held_work *)(void *)work;
    (void)failure;
    eddy_add_acq_rel(held->entered, 1u);
    eddy_sleep_wake_all(held->entered);
    while (eddy_load_acquire(held->is_open) == 0)
        eddy_sleep_wait(held->is_open, 0, EDDY_CLOCK_FOREVER);
    eddy_add_acq_rel(held->entered, 1u);
    eddy_sleep_wake_all(held->entered);
}

static void await(eddy_sleep_word *word, uint32_t goal) {
    uint32_t now;
    while ((now = eddy_load_acquire(word)) < goal)
        eddy_sleep_wait(word, now, EDDY_CLOCK_FOREVER);
}

Test(cpu, independent_works_run_at_the_same_time) {
    alarm(60);
    cr_assert_geq(eddy_team_acquire(3), 3);
    eddy_work_queue *stream = create_unordered();
    eddy_sleep_word entered = 0, is_open = 0;
    held_work works[3];
    for (int i = 0; i < 3; i++) {
        works[i] = (held_work){{.run = hold}, &entered, &is_open};
        eddy_work_queue_dispatch(stream, &works[i].work);
    }
    await(&entered, 3); /* all three are inside */
    eddy_store_release(&is_open, 1u);
    eddy_sleep_wake_all(&is_open);
    await(&entered, 6);
    stream->class->destroy(stream);
    eddy_team_release();
}

/* An ordered stream's long queue does not keep the only worker for itself. */
Test(cpu, a_long_queue_lets_others_have_their_turn) {
    alarm(60);
    cr_assert_geq(eddy_team_acquire(1), 1);
    eddy_work_queue *stream = create_ordered(), *other = create_unordered();
    eddy_sleep_word entered = 0, is_open = 0;
    held_work first = {{.run = hold}, &entered, &is_open};
    eddy_work_queue_dispatch(stream, &first.work);
    await(&entered, 1);
    conformance_run run = {.stream = stream, .dispatcher = pthread_self()};
    conformance_run others = {.stream = other, .dispatcher = pthread_self()};
    static conformance_work works[1000];
    for (int i = 0; i < 1000; i++)
        conformance_dispatch(&run, &works[i], 0);
    conformance_work beside;
    conformance_dispatch(&others, &beside, 0);
    eddy_store_release(&is_open, 1u);
    eddy_sleep_wake_all(&is_open);
    conformance_await(&others, &unordered, 1);
    conformance_await(&run, &ordered, 1000);
    stream->class->destroy(stream);
    other->class->destroy(other);
    eddy_team_release();
}
