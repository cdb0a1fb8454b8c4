#include <base/sleep.h>
#include <signal.h>
#include <streams/far.h>
#include <tests/streams/backend_conformance.h>

static eddy_backend *create(uint64_t seed) {
    return eddy_far_create(&(eddy_far_options){.seed = seed, .bytes = 64 << 20});
}

static const backend_kind kind = {
    .create = create, .seeds = 20, .runs_host_code = true, .lose = eddy_far_lose};

BACKEND_CONFORMANCE_SUITE(far_conformance, kind)

/* ---- what it has of its own: choices, steps by hand, memory that is checked ---- */

static eddy_backend *far;
static eddy_backend_queue *queues[3];

static void begin(eddy_far_options options) {
    alarm(60);
    far = eddy_far_create(&options);
    cr_assert_not_null(far);
    for (uint32_t q = 0; q < 3; q++) {
        queues[q] = far->class->queue_create(far, 0);
        cr_assert_not_null(queues[q]);
        cr_assert_eq(queues[q]->number, q);
        cr_assert_eq(queues[q]->backend, far);
    }
}

static void end(void) {
    far->class->destroy(far);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

static void *take(int64_t bytes) {
    void *data = far->class->memory_acquire(far, bytes);
    cr_assert_not_null(data);
    cr_assert_eq((uintptr_t)data % 512, 0);
    return data;
}

static void give(void *data, int64_t bytes) {
    far->class->memory_release(far, data, bytes);
}

static void mark(int queue, uint64_t ticket) {
    cr_assert_eq(far->class->mark(queues[queue], ticket), EDDY_OK);
}

static uint64_t completed(int queue) {
    return eddy_load_acquire(&queues[queue]->completed);
}

static void await_ticket(int queue, uint64_t ticket) {
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&far->progress);
        if (completed(queue) >= ticket)
            return;
        far->class->await(far, seen);
    }
}

/* ---- order ---- */

/* What has run, in its order; of the device's thread until a ticket says that it is over. */
static int log_length, log_of[64];

typedef struct note {
    int number;
} note;

static void run_note(void *context) {
    log_of[log_length++] = ((const note *)context)->number;
}

static void launch_note(int queue, int number) {
    note what = {number};
    cr_assert_eq(eddy_far_launch(queues[queue], run_note, &what, sizeof(what)), EDDY_OK);
}

static int place_of(int number) {
    for (int i = 0; i < log_length; i++)
        if (log_of[i] == number)
            return i;
    cr_assert_fail("%d has not run", number);
    return -1;
}

/* Whether the second queue was the first to run, of two with `waits` between them. */
static bool is_second_first(uint64_t seed, bool waits) {
    begin((eddy_far_options){.seed = seed, .is_by_hand = true});
    log_length = 0;
    launch_note(0, 1);
    mark(0, 1);
    if (waits)
        cr_assert_eq(far->class->wait(queues[1], queues[0], 1), EDDY_OK);
    launch_note(1, 2);
    mark(1, 2);
    for (uint64_t choice = seed; eddy_far_step(far, choice >> 33);)
        choice = choice * 6364136223846793005u + 1442695040888963407u;
    cr_assert_eq(log_length, 2);
    cr_assert_eq(completed(0), 1);
    cr_assert_eq(completed(1), 2);
    bool is_first = place_of(2) < place_of(1);
    end();
    return is_first;
}

Test(far, a_wait_orders_two_queues_and_nothing_else_does) {
    int second_first = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        cr_assert_not(is_second_first(seed * 0x9e3779b97f4a7c15u, true), "seed %llu",
                      (unsigned long long)seed);
        second_first += is_second_first(seed * 0x9e3779b97f4a7c15u, false);
    }
    cr_assert(second_first > 0 && second_first < 300, "%d of 300", second_first);
}

/* Its own thread chooses as freely: all three queues are there before it may begin. */
typedef struct held {
    eddy_sleep_word *is_open;
} held;

static void run_held(void *context) {
    eddy_sleep_word *is_open = ((const held *)context)->is_open;
    while (eddy_load_acquire(is_open) == 0)
        eddy_sleep_wait(is_open, 0, EDDY_CLOCK_FOREVER);
}

static bool is_third_first(uint64_t seed, bool waits) {
    begin((eddy_far_options){.seed = seed});
    eddy_sleep_word is_open = 0;
    held hold = {&is_open};
    log_length = 0;
    cr_assert_eq(eddy_far_launch(queues[0], run_held, &hold, sizeof(hold)), EDDY_OK);
    mark(0, 1);
    for (int q = 1; q < 3; q++) {
        cr_assert_eq(far->class->wait(queues[q], queues[0], 1), EDDY_OK);
        if (q == 2 && waits)
            cr_assert_eq(far->class->wait(queues[2], queues[1], 2), EDDY_OK);
        launch_note(q, q);
        mark(q, (uint64_t)q + 1);
    }
    eddy_store_release(&is_open, 1u);
    eddy_sleep_wake_all(&is_open);
    await_ticket(1, 2);
    await_ticket(2, 3);
    bool is_first = place_of(2) < place_of(1);
    end();
    return is_first;
}

Test(far, its_thread_obeys_waits_and_chooses_otherwise) {
    int third_first = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        cr_assert_not(is_third_first(seed, true), "seed %llu", (unsigned long long)seed);
        third_first += is_third_first(seed, false);
    }
    cr_assert(third_first > 0 && third_first < 300, "%d of 300", third_first);
}

/* ---- priorities ---- */

/* Whether the last of three queues, all of which may begin, runs its pieces first. */
static bool is_urgent_first(uint64_t seed, bool obeys_priorities) {
    begin(
        (eddy_far_options){.seed = seed, .is_by_hand = true, .obeys_priorities = obeys_priorities});
    queues[2] = far->class->queue_create(far, 1);
    log_length = 0;
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 2; i++)
            launch_note(q, q);
    for (uint64_t choice = seed; eddy_far_step(far, choice >> 33);)
        choice = choice * 6364136223846793005u + 1442695040888963407u;
    cr_assert_eq(log_length, 6);
    bool is_first = log_of[0] == 2 && log_of[1] == 2;
    end();
    return is_first;
}

Test(far, priorities_are_obeyed_where_that_is_asked_for) {
    int first = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        cr_assert(is_urgent_first(seed * 0x9e3779b97f4a7c15u, true));
        first += is_urgent_first(seed * 0x9e3779b97f4a7c15u, false);
    }
    cr_assert(first > 0 && first < 150, "%d of 300", first);
}

/* ---- memory ---- */

/* Under a sanitizer the handler would be its own, which exits. */
static void *device_memory(void) {
    signal(SIGSEGV, SIG_DFL);
    begin((eddy_far_options){.is_by_hand = true});
    return take(64);
}

Test(far, a_read_by_the_host_faults, .signal = SIGSEGV) {
    const volatile char *data = device_memory();
    (void)data[0];
}

Test(far, a_write_by_the_host_faults, .signal = SIGSEGV) {
    volatile char *data = device_memory();
    data[0] = 1;
}

Test(far, copies_run_later) {
    begin((eddy_far_options){.is_by_hand = true});
    char here[32] = "what the host had in its memory", back[32] = {0};
    char *data = take(32);
    cr_assert_eq(far->class->copy(queues[0], data, here, 32, EDDY_COPY_TO_DEVICE), EDDY_OK);
    cr_assert_eq(far->class->copy(queues[0], back, data, 32, EDDY_COPY_TO_HOST), EDDY_OK);
    cr_assert_eq(back[0], 0);
    while (eddy_far_step(far, 0))
        continue;
    cr_assert_str_eq(back, here);
    give(data, 32);
    end();
}

Test(far, a_write_beyond_a_block_is_found, .signal = SIGABRT) {
    begin((eddy_far_options){.is_by_hand = true});
    char *data = take(512);
    ((char *)eddy_far_translate(far, data))[512] = 1;
    give(data, 512);
}

Test(far, released_memory_has_other_contents) {
    begin((eddy_far_options){.is_by_hand = true, .bytes = 1 << 20});
    char *data = take(1000), *seen = eddy_far_translate(far, data);
    cr_assert_eq(eddy_far_acquired_bytes(far), 1024);
    memset(seen, 7, 1000);
    give(data, 1000);
    cr_assert_eq(eddy_far_acquired_bytes(far), 0);
    for (int i = 0; i < 1000; i++)
        cr_assert_neq(seen[i], 7);
    end();
}

Test(far, memory_comes_to_an_end_and_is_joined_again) {
    begin((eddy_far_options){.is_by_hand = true, .bytes = 1 << 20});
    void *blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = take(300 << 10);
    cr_assert_null(far->class->memory_acquire(far, 300 << 10));
    for (int i = 0; i < 3; i++)
        give(blocks[(i + 1) % 3], 300 << 10);
    give(take((1 << 20) - 512), (1 << 20) - 512);
    end();
}

Test(far, a_hole_may_be_filled_exactly) {
    begin((eddy_far_options){.is_by_hand = true});
    char *first = take(4096), *second = take(4096);
    give(first, 4096);
    cr_assert_eq(take(4096), first);
    give(second, 4096);
    give(first, 4096);
    cr_assert_eq(eddy_far_acquired_bytes(far), 0);
    end();
}

/* ---- a lost device ---- */

Test(far, a_lost_device_runs_nothing_more) {
    begin((eddy_far_options){.is_by_hand = true});
    log_length = 0;
    launch_note(0, 1);
    mark(0, 1);
    launch_note(0, 2);
    mark(0, 2);
    cr_assert(eddy_far_step(far, 0));
    cr_assert(eddy_far_step(far, 0));
    uint32_t seen = eddy_doorbell_seen(&far->progress);
    cr_assert_not(eddy_load_acquire(&far->is_lost));
    eddy_far_lose(far);
    cr_assert(eddy_load_acquire(&far->is_lost));
    far->class->await(far, seen); /* returns: there is progress */
    cr_assert_not(eddy_far_step(far, 0));
    cr_assert_eq(completed(0), 1);
    cr_assert_eq(log_length, 1);
    end();
}

/* Nobody may take it for lost, and free what it uses, while something runs. */
Test(far, a_device_is_lost_once_what_runs_is_over) {
    begin((eddy_far_options){.seed = 1});
    eddy_sleep_word is_open = 0;
    held hold = {&is_open};
    cr_assert_eq(eddy_far_launch(queues[0], run_held, &hold, sizeof(hold)), EDDY_OK);
    mark(0, 1);
    log_length = 0;
    launch_note(1, 1);
    mark(1, 2);
    eddy_far_lose(far);
    eddy_store_release(&is_open, 1u);
    eddy_sleep_wake_all(&is_open);
    while (!eddy_load_acquire(&far->is_lost))
        sched_yield();
    cr_assert(completed(0) == 0);
    end();
}

Test(far, without_a_thread_or_addresses_there_is_none) {
    eddy_thread_fail_at(0, 1);
    cr_assert_null(create(1));
    eddy_thread_fail_at(0, 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
    cr_assert_null(eddy_far_create(&(eddy_far_options){.bytes = INT64_MAX - 4095}));
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

Test(far, what_never_ran_is_freed_with_it) {
    begin((eddy_far_options){.is_by_hand = true});
    launch_note(0, 1);
    mark(0, 1);
    cr_assert_eq(far->class->wait(queues[1], queues[0], 1), EDDY_OK);
    end();
}
