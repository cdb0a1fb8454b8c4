#include <base/memory.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <trace/ring.h>

/* What was taken. */
typedef struct taken {
    int64_t count, threads, texts;
    uint64_t last;
    int64_t took_ns;
    char text[EDDY_RECORD_TEXT_BYTES];
} taken;

static void take(void *context, eddy_ring *ring, const eddy_record *record, const char *text) {
    taken *to = context;
    (void)ring;
    if (record->kind == EDDY_RECORD_THREAD) {
        to->threads++;
        return;
    }
    cr_assert_gt(record->sequence, to->last);
    to->count++;
    to->last = record->sequence;
    to->texts += record->texts;
    to->took_ns = record->took_ns;
    memcpy(to->text, text, record->texts * (size_t)EDDY_RECORD_LINE);
}

Test(ring, records_come_back_in_order_with_their_texts) {
    eddy_ring *ring = eddy_ring_own(1);
    taken to = {0};
    cr_assert_not_null(ring);
    cr_assert_eq(eddy_ring_own(1), ring);
    /* Several times around, with records that begin at the last line and go on at the first. */
    for (uint64_t n = 1; n <= 5 * EDDY_RING_LINES; n++) {
        char text[EDDY_RECORD_TEXT_BYTES] = "";
        eddy_record record = {.sequence = n, .texts = (uint8_t)(n % 3)};
        snprintf(text, sizeof(text), "%070d", (int)n);
        eddy_ring_append(ring, &record, text);
        if (n % 1000 == 0) {
            eddy_ring_take(ring, 0, take, &to);
            cr_assert_eq(to.last, n);
            cr_assert(n % 3 != 2 || strcmp(to.text, text) == 0);
        }
    }
    eddy_ring_take(ring, 0, take, &to);
    cr_assert_eq(to.count, 5 * EDDY_RING_LINES);
    cr_assert_eq(to.threads, 1);
    cr_assert_eq(eddy_rings_dropped(), 0);
    eddy_rings_free();
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TRACE).blocks, 0);
}

Test(ring, a_full_one_drops_and_counts) {
    eddy_ring *ring = eddy_ring_own(1);
    taken to = {0};
    char text[EDDY_RECORD_TEXT_BYTES] = "";
    for (uint64_t n = 1; n <= EDDY_RING_LINES; n++)
        eddy_ring_append(ring, &(eddy_record){.sequence = n, .texts = 1}, text);
    /* The name of the thread has taken one, of two lines. */
    cr_assert_eq(eddy_rings_dropped(), EDDY_RING_LINES / 2 + 1);
    eddy_ring_take(ring, 0, take, &to);
    cr_assert_eq(to.count, EDDY_RING_LINES / 2 - 1);
    eddy_ring_append(ring, &(eddy_record){.sequence = 2 * EDDY_RING_LINES}, text);
    eddy_ring_take(ring, 0, take, &to);
    cr_assert_eq(to.last, 2 * EDDY_RING_LINES);
    eddy_rings_free();
    cr_assert_eq(eddy_rings_dropped(), 0);
}

/* A later trace begins with what is appended then, under the thread's name. */
Test(ring, traces_have_nothing_of_each_other) {
    taken to = {0};
    eddy_ring *ring = eddy_ring_own(1);
    eddy_ring_append(ring, &(eddy_record){.sequence = 1}, "");
    ring->depth = 1;
    eddy_rings_free();
    cr_assert_eq(eddy_ring_own(2), ring);
    eddy_ring_append(ring, &(eddy_record){.sequence = 2}, "");
    eddy_ring_take(ring, 0, take, &to);
    cr_assert(to.count == 1 && to.last == 2 && to.threads == 1);
    cr_assert_eq(eddy_ring_take_open(ring, 0, take, &to), 0);
    eddy_rings_free();
}

static eddy_ring *of_thread;

static void *open_and_leave(void *context) {
    of_thread = eddy_ring_own(1);
    of_thread->open[0].record = (eddy_record){.at_ns = 10, .sequence = 2};
    of_thread->open[1].record = (eddy_record){.at_ns = 15, .sequence = 1};
    of_thread->depth = 2;
    return context;
}

Test(ring, what_a_thread_leaves_open_ends_with_it_and_the_ring_is_the_next_ones) {
    for (int round = 1; round <= 3; round++) {
        pthread_t thread;
        taken to = {0};
        cr_assert_eq(pthread_create(&thread, NULL, open_and_leave, NULL), 0);
        pthread_join(thread, NULL);
        cr_assert_eq(eddy_load_acquire(&of_thread->state), EDDY_RING_LEFT);
        eddy_ring_take(of_thread, 30, take, &to);
        cr_assert_eq(to.count, 2);
        cr_assert_eq(to.took_ns, 20);
        cr_assert_eq(to.threads, 1);
        cr_assert_eq(eddy_load_acquire(&of_thread->state), EDDY_RING_FREE);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TRACE).blocks, 1);
    }
    eddy_rings_free();
}

Test(ring, without_memory_records_are_counted) {
    eddy_memory_fail_at(EDDY_MEMORY_TRACE, 0, 1);
    cr_assert_null(eddy_ring_own(1));
    cr_assert_null(eddy_ring_own(1)); /* for this trace */
    cr_assert_eq(eddy_rings_dropped(), 2);
    eddy_rings_free();
    cr_assert_not_null(eddy_ring_own(2));
    eddy_rings_free();
}

/* ---- many threads ---- */

static pthread_barrier_t all_have_asked;
static _Atomic int without;

static void *ask(void *context) {
    if (!eddy_ring_own(1))
        eddy_add_relaxed(&without, 1);
    pthread_barrier_wait(&all_have_asked);
    return context;
}

Test(ring, threads_beyond_the_last_ring_are_counted) {
    enum { THREADS = EDDY_RINGS_MOST + 3 };
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 18);
    pthread_barrier_init(&all_have_asked, NULL, THREADS);
    for (int t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&threads[t], &attributes, ask, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    cr_assert_eq(eddy_load_relaxed(&without), 3);
    cr_assert_eq(eddy_rings_dropped(), 3);
    eddy_rings_free();
    cr_assert_not_null(eddy_ring_own(2));
    eddy_rings_free();
}

#define RECORDS 200000

static eddy_ring *_Atomic handed[2];
static pthread_barrier_t both_have_one; /* or the second might have that of the first */

static void *append_many(void *context) {
    eddy_ring *ring = eddy_ring_own(1);
    pthread_barrier_wait(&both_have_one);
    eddy_store_release((eddy_ring * _Atomic *)context, ring);
    for (uint64_t n = 1; n <= RECORDS; n++) {
        char text[EDDY_RECORD_TEXT_BYTES];
        memset(text, (int)(n % 100), sizeof(text));
        eddy_ring_append(ring, &(eddy_record){.sequence = n, .texts = (uint8_t)(n % 2)}, text);
    }
    return NULL;
}

/* What is not dropped is taken, while owners append. */
Test(ring, threads_append_while_one_takes) {
    pthread_t threads[2];
    taken to[2] = {{0}, {0}};
    pthread_barrier_init(&both_have_one, NULL, 2);
    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, append_many, (void *)&handed[t]), 0);
    for (int left = 2; left > 0;) {
        left = 0;
        for (int t = 0; t < 2; t++) {
            eddy_ring *ring = eddy_load_acquire(&handed[t]);
            left += !ring || eddy_load_acquire(&ring->state) == EDDY_RING_OWNED;
            if (ring)
                eddy_ring_take(ring, 0, take, &to[t]);
        }
        sched_yield();
    }
    for (int t = 0; t < 2; t++) {
        pthread_join(threads[t], NULL);
        eddy_ring_take(eddy_load_acquire(&handed[t]), 0, take, &to[t]);
    }
    cr_assert_eq(to[0].count + to[1].count + eddy_rings_dropped(), 2 * RECORDS);
    eddy_rings_free();
}
