#include <base/memory.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <streams/far.h>
#include <string.h>
#include <unistd.h>

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

Test(far, a_queue_runs_in_order) {
    for (uint64_t seed = 1; seed <= 50; seed++) {
        begin((eddy_far_options){.seed = seed});
        log_length = 0;
        for (int i = 0; i < 20; i++) {
            launch_note(0, i);
            mark(0, (uint64_t)i + 1);
        }
        await_ticket(0, 20);
        cr_assert_eq(log_length, 20);
        for (int i = 0; i < 20; i++)
            cr_assert_eq(log_of[i], i);
        end();
    }
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

static void run_all(void) {
    while (eddy_far_step(far, 0))
        continue;
}

Test(far, copies_go_in_three_directions) {
    begin((eddy_far_options){.is_by_hand = true});
    char here[32] = "what the host had in its memory", back[32] = {0};
    char *first = take(32), *second = take(32);
    const eddy_backend_class *class = far->class;
    cr_assert_eq(class->copy(queues[0], first, here, 32, EDDY_COPY_TO_DEVICE), EDDY_OK);
    cr_assert_eq(class->copy(queues[0], second, first, 32, EDDY_COPY_ON_DEVICE), EDDY_OK);
    cr_assert_eq(class->copy(queues[0], back, second + 5, 27, EDDY_COPY_TO_HOST), EDDY_OK);
    cr_assert_eq(class->copy(queues[0], second, first, 0, EDDY_COPY_ON_DEVICE), EDDY_OK);
    cr_assert_eq(back[0], 0, "it runs later");
    run_all();
    cr_assert_str_eq(back, "the host had in its memory");
    cr_assert_null(eddy_far_translate(far, NULL));
    cr_assert_eq(memcmp(eddy_far_translate(far, second), here, 32), 0);
    give(first, 32);
    give(second, 32);
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

Test(far, sixteen_queues_and_no_more) {
    begin((eddy_far_options){.is_by_hand = true});
    for (uint32_t q = 3; q < EDDY_BACKEND_QUEUES; q++) {
        eddy_backend_queue *queue = far->class->queue_create(far, 0);
        cr_assert_not_null(queue);
        cr_assert_eq(queue->number, q);
    }
    cr_assert_null(far->class->queue_create(far, 0));
    end();
}

/* ---- words ---- */

Test(far, a_look_says_skipped_where_a_source_has_not_run_well) {
    begin((eddy_far_options){.is_by_hand = true});
    for (int bad = -1; bad < 3; bad++) {
        eddy_backend_launch launch = {
            .queue = queues[0], .ticket = 4, .sources = {1, 2, 3}, .source_count = 3};
        for (int i = 0; i < 3; i++) {
            eddy_kernel_error *source = eddy_backend_error(far, (uint64_t)i + 1);
            eddy_store_relaxed(
                &source->status,
                i != bad ? EDDY_OK : (i == 1 ? (int32_t)EDDY_SKIPPED : (int32_t)EDDY_OUT_OF_RANGE));
        }
        eddy_kernel_error *word = eddy_backend_error(far, 4);
        eddy_store_relaxed(&word->status, (int32_t)EDDY_OK);
        cr_assert_eq(far->class->look(&launch), EDDY_OK);
        launch.source_count = 0; /* the launch is the caller's */
        run_all();
        cr_assert_eq(eddy_load_relaxed(&word->status), bad < 0 ? EDDY_OK : EDDY_SKIPPED);
    }
    end();
}

/* ---- a lost device ---- */

Test(far, a_lost_device_runs_nothing_more_and_says_so) {
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
    note what = {3};
    char byte;
    void *data = take(1);
    eddy_backend_launch launch = {
        .queue = queues[1], .ticket = 2, .sources = {1}, .source_count = 1};
    cr_assert_eq(eddy_far_launch(queues[1], run_note, &what, sizeof(what)), EDDY_DEVICE_LOST);
    cr_assert_eq(far->class->wait(queues[1], queues[0], 1), EDDY_DEVICE_LOST);
    cr_assert_eq(far->class->copy(queues[1], &byte, data, 1, EDDY_COPY_TO_HOST), EDDY_DEVICE_LOST);
    cr_assert_eq(far->class->look(&launch), EDDY_DEVICE_LOST);
    cr_assert_eq(far->class->mark(queues[1], 3), EDDY_DEVICE_LOST);
    give(data, 1);
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

Test(far, without_memory_or_a_thread_there_is_none) {
    eddy_far_options options = {.seed = 1};
    for (int64_t first = 0;; first++) {
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, first, 1);
        far = eddy_far_create(&options);
        bool has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
        if (!has_failed)
            break;
        cr_assert_null(far);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
    }
    cr_assert_not_null(far);
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_null(far->class->queue_create(far, 0));
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_null(far->class->memory_acquire(far, 1));
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
    end();
    eddy_thread_fail_at(0, 1);
    cr_assert_null(eddy_far_create(&options));
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
