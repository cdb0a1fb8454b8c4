#include "addresses.h"
#include <base/thread.h>
#include <unistd.h>

/* ---- tickets ---- */

Test(device_pool, a_queue_has_its_own_memory_at_once) {
    begin(INT64_MAX);
    char *data = take(CHUNK, 0);
    give(data, 0, 5);
    cr_assert_eq(take(CHUNK, 0), data);
    give(data, 0, 6);
    end();
}

Test(device_pool, another_queue_waits_for_the_ticket) {
    begin(INT64_MAX);
    char *data = take(CHUNK, 0), *other;
    give(data, 0, 5);
    other = take(CHUNK, 1);
    cr_assert_neq(other, data);
    complete(0, 4);
    complete(1, 9);
    char *third = take(CHUNK, 1);
    cr_assert_neq(third, data);
    complete(0, 5);
    cr_assert_eq(take(CHUNK, 1), data);
    give(data, 1, 0);
    cr_assert_eq(take(CHUNK, 2), data, "given without a ticket: to all");
    give(data, 2, 6);
    give(data = other, 0, 0);
    cr_assert_eq(take(CHUNK, 1), data);
    end();
}

/* The first ticket may be that of a launch that runs still. */
Test(device_pool, a_ticket_outlives_a_take_that_launches_nothing) {
    begin(INT64_MAX);
    char *data = take(CHUNK, 0);
    give(data, 0, 5);
    cr_assert_eq(take(CHUNK, 0), data);
    give(data, 0, 0);
    cr_assert_neq(take(CHUNK, 1), data);
    complete(0, 5);
    cr_assert_eq(take(CHUNK, 1), data);
    end();
}

Test(device_pool, a_block_given_by_another_queue_waits_for_both) {
    begin(INT64_MAX);
    char *data = take(CHUNK, 0);
    give(data, 0, 5);
    cr_assert_eq(take(CHUNK, 0), data);
    give(data, 1, 7);
    cr_assert_neq(take(CHUNK, 0), data, "1 has not completed 7");
    cr_assert_neq(take(CHUNK, 1), data, "0 has not completed 5");
    complete(1, 7);
    cr_assert_neq(take(CHUNK, 2), data);
    cr_assert_eq(take(CHUNK, 0), data);
    end();
}

Test(device_pool, both_parts_of_a_block_keep_its_tickets) {
    begin(INT64_MAX);
    char *data = take(CHUNK, 0);
    give(data, 0, 5);
    cr_assert_eq(take(MIB, 0), data);
    cr_assert_neq(take(MIB, 1), data + MIB);
    give(data, 0, 0);
    cr_assert_neq(take(MIB, 2), data);
    complete(0, 5);
    cr_assert_eq(take(MIB, 2), data);
    cr_assert_eq(take(MIB, 2), data + MIB);
    end();
}

Test(device_pool, neighbours_with_different_tickets_stay_apart) {
    begin(INT64_MAX);
    char *data = take(MIB, 0), *upper = take(MIB, 0);
    cr_assert_eq(upper, data + MIB);
    give(data, 0, 5);
    give(upper, 0, 0);
    cr_assert_eq(take(MIB, 1), upper, "the part without one is for all");
    cr_assert_neq(take(CHUNK, 0), data);
    give(upper, 1, 6);
    int asked = fake.asked_count;
    cr_assert_eq(take(MIB, 1), upper);
    give(upper, 1, 7);
    cr_assert_eq(take(MIB, 0), data);
    give(data, 0, 8);
    cr_assert_eq(fake.asked_count, asked);
    end();
}

Test(device_pool, blocks_that_wait_for_several_queues_stay_apart) {
    begin(INT64_MAX);
    char *data = take(MIB, 0), *upper = take(MIB, 0);
    give(data, 0, 5);
    give(upper, 0, 6);
    cr_assert_eq(take(MIB, 0), data);
    cr_assert_eq(take(MIB, 0), upper);
    give(data, 1, 7);
    give(upper, 1, 8);
    complete(0, 6);
    complete(1, 7);
    cr_assert_eq(take(MIB, 2), data);
    cr_assert_neq(take(MIB, 2), upper);
    end();
}

Test(device_pool, a_queue_has_adjacent_blocks_as_one) {
    begin(INT64_MAX);
    char *data = take(MIB, 0), *upper = take(MIB, 0);
    give(data, 0, 0);
    give(upper, 0, 5);
    char *other = take(CHUNK, 1);
    cr_assert_neq(other, data, "of queue 0 only");
    cr_assert_eq(take(CHUNK, 0), data);
    give(data, 0, 0);
    cr_assert_neq(take(512, 1), data, "its lower part is as its upper part now");
    end();
}

Test(device_pool, the_shortest_run_of_blocks_is_joined) {
    begin(INT64_MAX);
    /* Runs that only queue 0 may use as one, each between taken blocks (99), in units of 64 KB. */
    const int sizes[] = {3, 2, 1, 2, 2, 1, 2, 2, 1, 1, 2, 2, 1};
    const uint64_t tickets[] = {0, 5, 99, 0, 5, 99, 0, 5, 99, 0, 5, 0, 99};
    char *parts[13];
    for (int i = 0; i < 13; i++)
        parts[i] = take(sizes[i] * 64 * KIB, 0);
    cr_assert_not_null(take(CHUNK - 22 * 64 * KIB, 0));
    for (int i = 0; i < 13; i++)
        if (tickets[i] != 99)
            give(parts[i], 0, tickets[i]);
    const int starts[] = {3, 6, 10, 0};
    for (int i = 0; i < 4; i++) {
        char *data = take(224 * KIB, 0);
        cr_assert_eq(data, parts[starts[i]], "%d", i);
    }
    cr_assert_eq(take(96 * KIB, 0), parts[0] + 224 * KIB, "the rest of 5");
    cr_assert_eq(take(64 * KIB, 0), parts[9], "of a longer run, what is needed");
    cr_assert_eq(fake.asked_count, 1);
    end();
}

Test(device_pool, joined_blocks_wait_for_the_last_ticket) {
    for (int order = 0; order < 2; order++) {
        begin(INT64_MAX);
        char *data = take(MIB, 0), *upper = take(MIB, 0);
        give(data, 0, order ? 5 : 9);
        give(upper, 0, order ? 9 : 5);
        cr_assert_eq(take(CHUNK, 0), data);
        give(data, 0, 0);
        complete(0, 8);
        cr_assert_neq(take(512, 1), data);
        complete(0, 9);
        cr_assert_eq(take(CHUNK, 1), data);
        complete(0, 0);
        end();
    }
}

/* ---- which block ---- */

Test(device_pool, the_smallest_that_fits_is_taken_and_the_lowest_of_these) {
    begin(INT64_MAX);
    const int64_t sizes[] = {4, 2, 3, 2, 2, 5};
    char *holes[6];
    for (int i = 0; i < 6; i++) {
        holes[i] = take(sizes[i] * KIB, 0);
        cr_assert_not_null(take(KIB, 0));
    }
    cr_assert_not_null(take(CHUNK - (18 + 6) * KIB, 0));
    for (int i = 5; i >= 0; i--)
        give(holes[i], 0, 0);
    const int order[] = {1, 3, 4, 2, 0, 5};
    const int needs[] = {2, 2, 2, 2, 3, 2};
    for (int i = 0; i < 6; i++) {
        char *data = take(needs[i] * KIB, 0);
        cr_assert_eq(data, holes[order[i]], "%d", i);
    }
    cr_assert_eq(take(KIB, 0), holes[0] + 3 * KIB);
    cr_assert_eq(take(KIB, 0), holes[2] + 2 * KIB);
    cr_assert_eq(fake.asked_count, 1);
    end();
}

Test(device_pool, parts_join_to_whole_chunks_in_any_order) {
    const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    begin(INT64_MAX);
    char *low = take(CHUNK, 0), *high = take(CHUNK, 0);
    cr_assert_eq(high, low + CHUNK);
    give(low, 0, 0);
    for (int o = 0; o < 5; o++) {
        char *parts[4];
        for (int i = 0; i < 4; i++) {
            parts[i] = take(512 * KIB, 0);
            cr_assert_eq(parts[i], low + i * 512 * KIB);
        }
        for (int i = 0; i < 4; i++)
            give(parts[orders[o][i]], 0, 0);
        cr_assert_eq(take(CHUNK, 0), low);
        give(low, 0, 0);
    }
    give(high, 0, 0);
    char *larger = take(CHUNK + 1, 0);
    cr_assert_eq(larger, high + CHUNK, "two chunks are not one");
    cr_assert_eq(statistics().held_bytes, 4 * CHUNK, "a larger request rounds its chunk up");
    end();
}

/* The smallest that fits is then another one. */
Test(device_pool, neighbours_are_joined_when_they_are_given) {
    const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (uint64_t ticket = 0; ticket < 2; ticket++)
        for (int o = 0; o < 6; o++) {
            begin(INT64_MAX);
            char *parts[3];
            for (int i = 0; i < 3; i++)
                parts[i] = take(200 * KIB, 0);
            cr_assert_not_null(take(KIB, 0));
            char *larger = take(500 * KIB, 0);
            cr_assert_not_null(take(CHUNK - 1101 * KIB, 0));
            give(larger, 0, 0);
            for (int i = 0; i < 3; i++)
                give(parts[orders[o][i]], 0, ticket);
            cr_assert_eq(take(200 * KIB, 0), larger);
            cr_assert_eq(take(600 * KIB, 0), parts[0]);
            end();
        }
}

Test(device_pool, sizes_from_none_to_far_too_many) {
    begin(INT64_MAX);
    char *none = take(0, 0);
    cr_assert_not_null(none);
    cr_assert_eq(statistics().live_bytes, 512);
    cr_assert_eq(take(1, 0), none + 512);
    cr_assert_eq(take(513, 0), none + 1024);
    cr_assert_eq(take(512, 0), none + 2048);
    cr_assert_eq(statistics().live_bytes, 2560);
    give(NULL, 0, 7);
    int asked = fake.asked_count;
    cr_assert_null(take(INT64_MAX, 0));
    cr_assert_null(take(INT64_MAX - CHUNK, 0));
    cr_assert_eq(fake.asked_count, asked);
    cr_assert_eq(statistics().live_bytes, 2560);
    end();
}

/* ---- what goes back ---- */

Test(device_pool, a_trim_leaves_what_has_open_tickets) {
    begin(INT64_MAX);
    char *open = take(CHUNK, 0), *closed = take(CHUNK, 0), *partly = take(MIB, 0);
    char *upper = take(MIB, 0);
    give(open, 0, 5);
    give(closed, 0, 4);
    give(partly, 0, 3);
    give(upper, 0, 5);
    complete(0, 4);
    cr_assert_eq(eddy_device_pool_trim(pool), CHUNK);
    cr_assert_eq(statistics().held_bytes, 2 * CHUNK);
    cr_assert_eq(statistics().cached_bytes, 2 * CHUNK);
    cr_assert_eq(take(CHUNK, 0), open);
    give(open, 0, 0);
    complete(0, 5);
    cr_assert_eq(eddy_device_pool_trim(pool), 2 * CHUNK, "what was left apart is joined");
    cr_assert_eq(eddy_device_pool_trim(pool), 0);
    cr_assert_eq(statistics().held_bytes, 0);
    end();
}

Test(device_pool, the_limit_holds) {
    begin(CHUNK + MIB);
    char *first = take(KIB, 0), *second = take(CHUNK, 0);
    cr_assert_not_null(first);
    cr_assert_null(second);
    cr_assert_eq(fake.asked_count, 1);
    char *exact = take(CHUNK - 512, 0);
    cr_assert_null(exact, "not above the limit");
    cr_assert_eq(take(CHUNK - KIB, 0), first + KIB);
    exact = take(MIB - 512, 0);
    cr_assert_not_null(exact, "near the limit, what is needed and no more");
    cr_assert_eq(statistics().held_bytes, CHUNK + MIB - 512);
    cr_assert_not_null(take(1, 0));
    cr_assert_null(take(1, 0));
    cr_assert_eq(statistics().limit_bytes, CHUNK + MIB);
    give(exact, 0, 3);
    cr_assert_null(take(MIB, 0), "an open ticket");
    complete(0, 3);
    eddy_device_pool_set_limit(pool, CHUNK + MIB + 512);
    cr_assert_not_null(take(MIB, 0), "what is free makes room");
    cr_assert_eq(statistics().held_bytes, CHUNK + MIB + 512);
    end();
}

Test(device_pool, a_lower_limit_gives_back_what_is_free) {
    begin(INT64_MAX);
    char *kept = take(CHUNK, 0), *freed = take(CHUNK, 0);
    give(freed, 0, 0);
    eddy_device_pool_set_limit(pool, 2 * CHUNK);
    cr_assert_eq(fake.held_bytes, 2 * CHUNK);
    eddy_device_pool_set_limit(pool, MIB);
    cr_assert_eq(fake.held_bytes, CHUNK);
    cr_assert_null(take(512, 0));
    give(kept, 0, 0);
    cr_assert_eq(take(512, 0), kept, "what is held is used");
    end();
}

Test(device_pool, a_refusal_gives_back_what_is_free_and_asks_again) {
    begin(INT64_MAX);
    fake.most_bytes = 2 * CHUNK + MIB;
    char *low = take(CHUNK, 0), *high = take(CHUNK, 0);
    char *exact = take(MIB, 0);
    cr_assert_not_null(exact, "where a round chunk is refused, one that just fits is not");
    cr_assert_eq(statistics().held_bytes, 2 * CHUNK + MIB);
    give(low, 0, 7);
    cr_assert_null(take(CHUNK + MIB, 0));
    complete(0, 7);
    cr_assert_null(take(CHUNK + MIB, 0));
    cr_assert_eq(fake.held_bytes, CHUNK + MIB);
    give(exact, 0, 0);
    cr_assert_not_null(take(CHUNK + MIB, 0));
    cr_assert_eq(statistics().held_bytes, 2 * CHUNK + MIB);
    cr_assert_null(take(512, 0));
    give(high, 0, 0);
    cr_assert_eq(take(512, 0), high);
    end();
}

Test(device_pool, what_is_not_given_back_goes_with_the_pool) {
    begin(INT64_MAX);
    char *lost = take(MIB, 0), *given = take(MIB, 0);
    cr_assert_not_null(lost);
    give(given, 0, 5);
    end();
    eddy_device_pool_destroy(NULL);
}

/* ---- host memory ---- */

Test(device_pool, without_a_book_a_block_stays_whole) {
    begin(INT64_MAX);
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_not_null(take(KIB, 0), "the first spare is refused, the next is not");
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1000);
    char *whole = take(KIB, 0);
    cr_assert_not_null(whole);
    cr_assert_eq(statistics().live_bytes, CHUNK);
    cr_assert_null(take(KIB, 0), "no book for a chunk");
    cr_assert_eq(statistics().held_bytes, CHUNK);
    give(whole, 0, 0);
    cr_assert_eq(statistics().live_bytes, KIB);
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
    cr_assert_eq(take(KIB, 0), whole);
    cr_assert_eq(statistics().live_bytes, 2 * KIB);
    end();
}

Test(device_pool, giving_needs_no_memory) {
    begin(INT64_MAX);
    char *parts[64];
    for (int i = 0; i < 64; i++)
        parts[i] = take(64 * KIB, 0);
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, INT64_MAX);
    for (int i = 0; i < 64; i++)
        give(parts[i * 37 % 64], (uint32_t)i % 3, (uint64_t)i / 3);
    cr_assert_eq(eddy_device_pool_trim(pool), 0);
    complete(0, 64);
    complete(1, 64);
    complete(2, 64);
    cr_assert_eq(eddy_device_pool_trim(pool), 2 * CHUNK);
    cr_assert_eq(eddy_memory_failures_injected(), 0);
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
    end();
}

/* ---- peers: pools of several runtimes that take the same memory ---- */

static eddy_device_pool *peer(void) {
    fake.backend.memory = &fake;
    eddy_device_pool *made = eddy_device_pool_create(&fake.backend, fake.queues, INT64_MAX);
    cr_assert_not_null(made);
    return made;
}

/* The pool holds so much afterwards, and uses nothing of it. */
static void keep(eddy_device_pool *of, int64_t bytes) {
    void *data = eddy_device_pool_take(of, bytes, 0);
    cr_assert_not_null(data);
    eddy_device_pool_give(of, data, 0, 0);
    cr_assert_eq(eddy_device_pool_statistics_read(of).cached_bytes, bytes);
}

static void end_peer(eddy_device_pool *of, void *data) {
    eddy_device_pool_give(of, data, 0, 0);
    eddy_device_pool_destroy(of);
}

Test(device_pool, what_a_peer_keeps_goes_to_who_is_refused) {
    begin(INT64_MAX);
    eddy_device_pool *keeper = peer(), *mine = peer();
    fake.most_bytes = 10 * MIB;
    keep(keeper, 8 * MIB);
    cr_assert_null(take(4 * MIB, 0), "this one is no peer");
    void *data = eddy_device_pool_take(mine, 4 * MIB, 0);
    cr_assert_not_null(data);
    cr_assert_eq(eddy_device_pool_statistics_read(keeper).held_bytes, 0);
    end_peer(mine, data);
    eddy_device_pool_destroy(keeper);
    end();
}

/* What its own limit refuses no other has to give back. */
Test(device_pool, a_pool_at_its_limit_leaves_peers_alone) {
    begin(INT64_MAX);
    eddy_device_pool *keeper = peer(), *mine = peer();
    keep(keeper, 8 * MIB);
    eddy_device_pool_set_limit(mine, 2 * MIB);
    cr_assert_null(eddy_device_pool_take(mine, 4 * MIB, 0));
    cr_assert_eq(eddy_device_pool_statistics_read(keeper).held_bytes, 8 * MIB);
    eddy_device_pool_destroy(mine);
    eddy_device_pool_destroy(keeper);
    end();
}

static _Atomic bool is_releasing;
static int asked_before; /* const while it releases */

/* As a driver that waits for the device, until the other has been refused and for some time longer. */
static void release_late(const char *data, int64_t bytes) {
    (void)data;
    (void)bytes;
    eddy_store_release(&is_releasing, true);
    for (bool is_asked = false; !is_asked;) {
        usleep(1000);
        eddy_lock_acquire(&fake.lock);
        is_asked = fake.asked_count > asked_before;
        eddy_lock_release(&fake.lock);
    }
    usleep(100000);
}

typedef struct taking {
    eddy_device_pool *pool;
    void *data;
} taking;

static void take_much(void *context) {
    taking *of = context;
    of->data = eddy_device_pool_take(of->pool, 6 * MIB, 0);
}

/* One thread gives a peer's memory back, and another, which is refused meanwhile, waits for that. */
Test(device_pool, who_is_refused_while_a_peer_is_trimmed_waits_for_it, .timeout = 60) {
    begin(INT64_MAX);
    eddy_device_pool *keeper = peer(), *mine = peer();
    taking other = {.pool = peer()};
    fake.most_bytes = 10 * MIB;
    keep(keeper, 8 * MIB);
    fake.on_release = release_late;
    /* The other asks once, and is refused. */
    asked_before = fake.asked_count + 1;
    eddy_thread thread;
    cr_assert_eq(eddy_thread_create(&thread, "other", take_much, &other), EDDY_OK);
    while (!eddy_load_acquire(&is_releasing))
        usleep(1000);
    void *data = eddy_device_pool_take(mine, 4 * MIB, 0);
    cr_assert_not_null(data);
    eddy_thread_join(&thread);
    cr_assert_not_null(other.data);
    fake.on_release = NULL;
    end_peer(mine, data);
    end_peer(other.pool, other.data);
    eddy_device_pool_destroy(keeper);
    end();
}

/* Another thread has them, and has not given them to the backend yet: they count towards the limit until then. */
static void release_later(const char *data, int64_t bytes) {
    (void)data;
    (void)bytes;
    eddy_store_release(&is_releasing, true);
    usleep(100000);
}

static void trim_mine(void *context) {
    (void)context;
    (void)eddy_device_pool_trim(pool);
}

Test(device_pool, who_is_at_the_limit_waits_for_what_is_given_back, .timeout = 60) {
    begin(6 * MIB);
    eddy_store_release(&is_releasing, false);
    keep(pool, 4 * MIB);
    fake.on_release = release_later;
    eddy_thread thread;
    cr_assert_eq(eddy_thread_create(&thread, "other", trim_mine, NULL), EDDY_OK);
    while (!eddy_load_acquire(&is_releasing))
        usleep(1000);
    void *data = take(6 * MIB, 0);
    cr_assert_not_null(data);
    eddy_thread_join(&thread);
    fake.on_release = NULL;
    cr_assert_null(take(MIB, 0), "nobody gives anything back");
    give(data, 0, 0);
    end();
}

static void trim_that(void *context) {
    (void)eddy_device_pool_trim(context);
}

/* A peer's runtime gives its own memory back (eddy_memory_trim there), and not for the one that asks. */
Test(device_pool, who_is_refused_while_a_peer_trims_itself_waits_for_it, .timeout = 60) {
    begin(INT64_MAX);
    eddy_device_pool *keeper = peer(), *mine = peer();
    fake.most_bytes = 10 * MIB;
    keep(keeper, 8 * MIB);
    eddy_store_release(&is_releasing, false);
    fake.on_release = release_later;
    eddy_thread thread;
    cr_assert_eq(eddy_thread_create(&thread, "other", trim_that, keeper), EDDY_OK);
    while (!eddy_load_acquire(&is_releasing))
        usleep(1000);
    void *data = eddy_device_pool_take(mine, 4 * MIB, 0);
    cr_assert_not_null(data);
    eddy_thread_join(&thread);
    fake.on_release = NULL;
    end_peer(mine, data);
    eddy_device_pool_destroy(keeper);
    end();
}
