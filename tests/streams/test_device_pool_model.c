#include "addresses.h"

#include <pthread.h>

/* ---- a naive model: intervals of addresses ---- */

enum { HOLDERS = 48, GIVEN = 4096, ANY_QUEUE = 99 };

typedef struct given {
    interval at;
    uint32_t queue;
    uint64_t ticket;
} given;

static struct {
    interval held[HOLDERS]; /* data NULL: not held */
    uint32_t queue[HOLDERS];
    given given[GIVEN]; /* whose tickets are not complete */
    int given_count;
    uint64_t last_ticket; /* of all queues: they grow on each */
    int64_t live_bytes, peak_bytes, limit_bytes;
    int64_t refusals, found, waited, step;
    uint64_t state;
    bool fails; /* host memory may be refused */
} model;

static int64_t rounded(int64_t bytes) {
    return (bytes + 511) / 512 * 512;
}

static uint64_t next_random(void) {
    model.state = model.state * 6364136223846793005u + 1442695040888963407u;
    return model.state >> 33;
}

static bool overlap(const char *data, int64_t bytes, interval other) {
    return other.data && data < other.data + other.bytes && other.data < data + bytes;
}

static bool overlaps_held(const char *data, int64_t bytes) {
    for (int i = 0; i < HOLDERS; i++)
        if (overlap(data, bytes, model.held[i]))
            return true;
    return false;
}

/* With what was given by another queue than `queue` and is not complete. */
static bool overlaps_open(const char *data, int64_t bytes, uint32_t queue) {
    for (int i = 0; i < model.given_count; i++)
        if (model.given[i].queue != queue && overlap(data, bytes, model.given[i].at))
            return true;
    return false;
}

static void on_release(const char *data, int64_t bytes) {
    cr_assert_not(overlaps_held(data, bytes));
    cr_assert_not(overlaps_open(data, bytes, QUEUES), "a launch may use it still");
}

static void forget_completed(void) {
    int kept = 0;
    for (int i = 0; i < model.given_count; i++)
        if (model.given[i].ticket > eddy_load_acquire(&fake.rows[model.given[i].queue].completed))
            model.given[kept++] = model.given[i];
    model.given_count = kept;
}

static bool is_open_to_others(uint32_t queue) {
    for (int i = 0; i < model.given_count; i++)
        if (model.given[i].queue != queue)
            return true;
    return false;
}

/* The end of the first interval in the way of `queue` that begins at or covers *at; *at is moved to its beginning, at most `end`. */
static const char *next_in_the_way(const char **at, const char *end, uint32_t queue) {
    const char *from = end, *to = end;
    int count = queue == ANY_QUEUE ? HOLDERS : HOLDERS + model.given_count;
    for (int i = 0; i < count; i++) {
        interval it = i < HOLDERS ? model.held[i] : model.given[i - HOLDERS].at;
        if (!it.data || (i >= HOLDERS && model.given[i - HOLDERS].queue == queue))
            continue;
        if (it.data + it.bytes > *at && it.data < from) {
            from = it.data;
            to = it.data + it.bytes;
        }
    }
    *at = from > *at ? from : *at;
    return to;
}

/* Whether adjacent free memory of a chunk, which `queue` may use, holds `bytes`; ANY_QUEUE: whatever its tickets. */
static bool fits(int64_t bytes, uint32_t queue) {
    for (int i = 0; i < fake.chunk_count; i++) {
        const char *at = fake.chunks[i].data;
        const char *end = at + fake.chunks[i].bytes;
        while (at < end) {
            const char *start = at, *beyond = next_in_the_way(&at, end, queue);
            if (at - start >= bytes)
                return true;
            at = beyond;
        }
    }
    return false;
}

static void check_nothing_to_trim(void) {
    for (int i = 0; i < fake.chunk_count; i++) {
        interval it = fake.chunks[i];
        cr_assert(overlaps_held(it.data, it.bytes) || overlaps_open(it.data, it.bytes, QUEUES));
    }
}

static void check_statistics(void) {
    eddy_device_pool_statistics now = statistics();
    cr_assert_eq(now.live_bytes, model.live_bytes);
    cr_assert_eq(now.peak_bytes, model.peak_bytes);
    cr_assert_eq(now.held_bytes, fake.held_bytes);
    cr_assert_eq(now.cached_bytes, fake.held_bytes - model.live_bytes);
    cr_assert_eq(now.limit_bytes, model.limit_bytes);
}

static int64_t random_bytes(void) {
    switch (next_random() % 8) {
    case 0:
        return (int64_t)(next_random() % (uint64_t)(5 * MIB));
    case 1:
    case 2:
        return (int64_t)(next_random() % (uint64_t)MIB);
    default:
        return (int64_t)(next_random() % (uint64_t)(64 * KIB));
    }
}

static void model_take(int i, int64_t bytes, uint32_t queue) {
    int64_t need = rounded(bytes > 0 ? bytes : 1), injected = eddy_memory_failures_injected();
    /* Joined blocks wait for their last ticket, which the model does not follow: it is exact where others have completed all. */
    bool is_there = !is_open_to_others(queue) && fits(need, queue);
    bool waits = !fits(need, queue) && fits(need, ANY_QUEUE);
    int asked = fake.asked_count;
    bool was_above = fake.held_bytes > model.limit_bytes;
    char *data = take(bytes, queue);
    injected = eddy_memory_failures_injected() - injected;
    if (is_there)
        cr_assert(data && fake.asked_count == asked, "what is there is used: step %lld",
                  (long long)model.step);
    model.found += is_there;
    model.waited += waits;
    if (!was_above)
        cr_assert_leq(fake.held_bytes, model.limit_bytes);
    if (!data) {
        model.refusals++;
        if (injected == 0) {
            cr_assert(fake.held_bytes + need > model.limit_bytes ||
                      fake.held_bytes + need > fake.most_bytes);
            check_nothing_to_trim();
        }
        return;
    }
    int64_t taken = statistics().live_bytes - model.live_bytes;
    cr_assert(taken == need || (injected > 0 && taken > need));
    cr_assert_eq((uintptr_t)data % 512, 0);
    cr_assert_not(overlaps_held(data, taken), "step %lld", (long long)model.step);
    cr_assert_not(overlaps_open(data, taken, queue), "step %lld", (long long)model.step);
    int c = 0;
    while (c < fake.chunk_count && !(fake.chunks[c].data <= data &&
                                     data + taken <= fake.chunks[c].data + fake.chunks[c].bytes))
        c++;
    cr_assert_lt(c, fake.chunk_count, "within a chunk");
    model.held[i] = (interval){data, taken};
    model.queue[i] = queue;
    model.live_bytes += taken;
    if (model.peak_bytes < model.live_bytes)
        model.peak_bytes = model.live_bytes;
}

static void model_give(int i) {
    uint32_t queue = next_random() % 8 ? model.queue[i] : (uint32_t)next_random() % QUEUES;
    uint64_t ticket = next_random() % 4 ? ++model.last_ticket : 0;
    if (ticket > 0) {
        cr_assert_lt(model.given_count, GIVEN);
        model.given[model.given_count++] = (given){model.held[i], queue, ticket};
    }
    give(model.held[i].data, queue, ticket);
    model.live_bytes -= model.held[i].bytes;
    model.held[i].data = NULL;
}

static void complete_some(uint32_t queue) {
    if (next_random() % 2 == 0)
        for (uint32_t q = 0; q < QUEUES; q++)
            complete(q, model.last_ticket);
    uint64_t done = eddy_load_acquire(&fake.rows[queue].completed);
    complete(queue, done + next_random() % (model.last_ticket - done + 1));
    forget_completed();
}

static void change_limits(void) {
    switch (next_random() % 4) {
    case 0:
        model.limit_bytes = (int64_t)(next_random() % (uint64_t)(24 * MIB));
        break;
    case 1:
        fake.most_bytes = (int64_t)(next_random() % (uint64_t)(24 * MIB));
        break;
    default:
        model.limit_bytes = 24 * MIB + 512;
        fake.most_bytes = INT64_MAX;
    }
    eddy_device_pool_set_limit(pool, model.limit_bytes);
    if (fake.held_bytes > model.limit_bytes)
        check_nothing_to_trim();
}

static void run_model(int steps) {
    fake.on_release = on_release;
    for (model.step = 0; model.step < steps; model.step++) {
        int i = (int)(next_random() % HOLDERS);
        if (model.held[i].data)
            model_give(i);
        else
            model_take(i, random_bytes(), (uint32_t)next_random() % QUEUES);
        if (next_random() % 8 == 0 || model.given_count > GIVEN / 2)
            complete_some((uint32_t)next_random() % QUEUES);
        if (next_random() % 100 == 0) {
            int64_t before = fake.held_bytes;
            cr_assert_eq(eddy_device_pool_trim(pool), before - fake.held_bytes);
            check_nothing_to_trim();
        }
        if (next_random() % 500 == 0)
            change_limits();
        check_statistics();
    }
    for (int i = 0; i < HOLDERS; i++)
        if (model.held[i].data)
            model_give(i);
    for (uint32_t q = 0; q < QUEUES; q++)
        complete(q, model.last_ticket);
    forget_completed();
    check_statistics();
}

static bool begin_model(uint64_t seed) {
    memset(&model, 0, sizeof(model));
    model.state = seed;
    model.limit_bytes = 24 * MIB + 512;
    return begin(model.limit_bytes);
}

Test(device_pool_model, random_steps_agree_with_a_naive_model) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        cr_log_info("seed %d", (int)seed);
        begin_model(seed);
        run_model(25000);
        cr_assert_gt(model.refusals, 50);
        cr_assert_gt(model.found, 1000);
        cr_assert_gt(model.waited, 30, "memory was short because of tickets only");
        if (seed % 2) {
            int64_t held_bytes = fake.held_bytes;
            cr_assert_eq(eddy_device_pool_trim(pool), held_bytes, "all joins again");
        }
        end();
    }
}

Test(device_pool_model, a_refusal_of_host_memory_at_any_step_loses_nothing) {
    int64_t injected = 1, first;
    for (int rest = 0; rest < 2; rest++) {
        injected = 1;
        for (first = 0; injected > 0; first++) {
            /* One refusal; or a hundred of them, which is the rest of a run. */
            eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, first, rest ? 100 : 1);
            if (begin_model(7)) {
                run_model(400);
                injected = eddy_memory_failures_injected();
                eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
                int64_t held_bytes = fake.held_bytes;
                cr_assert_eq(eddy_device_pool_trim(pool), held_bytes, "all joins again");
            } else {
                cr_assert_eq(first, 0);
            }
            end();
        }
        cr_assert_gt(first, 30, "host memory was asked for often enough");
    }
}

/* ---- threads ---- */

enum { UNIT = 16 << 10, UNITS = 1 << 20, ROUNDS = 10000, LAG = 20 };

#define HELD UINT64_MAX

/* Of each unit of memory: HELD, or queue and ticket with which it was given. */
static _Atomic uint64_t marks[UNITS];

static const char *mark(char *data, int64_t units, uint32_t queue) {
    int64_t first = (data - (char *)(uintptr_t)(UINT64_C(1) << 40)) / UNIT;
    for (int64_t i = first; i < first + units; i++) {
        if (i >= UNITS)
            return "too many addresses";
        uint64_t before = eddy_exchange_acq_rel(&marks[i], HELD);
        if (before == HELD)
            return "somebody else's block";
        uint32_t giver = (uint32_t)(before & 15);
        if (before && giver != queue &&
            eddy_load_acquire(&fake.rows[giver].completed) < before >> 4)
            return "a launch may use it still";
    }
    return NULL;
}

static void unmark(char *data, int64_t units, uint32_t queue, uint64_t ticket) {
    int64_t first = (data - (char *)(uintptr_t)(UINT64_C(1) << 40)) / UNIT;
    for (int64_t i = first; i < first + units; i++)
        eddy_store_relaxed(&marks[i], ticket << 4 | queue);
}

static pthread_barrier_t all_are_there;

static void *churn(void *context) {
    uint32_t queue = (uint32_t)(uintptr_t)context;
    uint64_t state = queue * 977 + 1;
    char *held[8] = {0};
    int64_t units[8];
    pthread_barrier_wait(&all_are_there);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int slot = (int)(state >> 61);
        if (held[slot]) {
            unmark(held[slot], units[slot], queue, round);
            give(held[slot], queue, round);
            held[slot] = NULL;
        } else {
            units[slot] = 1 + (int64_t)(state >> 20 & 63);
            held[slot] = take(units[slot] * UNIT, queue);
            if (!held[slot])
                return "no memory";
            const char *wrong = mark(held[slot], units[slot], queue);
            if (wrong)
                return (void *)(uintptr_t)wrong;
        }
        if (round > LAG)
            complete(queue, round - LAG);
        if (round % 500 == 0)
            eddy_device_pool_trim(pool);
    }
    for (int slot = 0; slot < 8; slot++) {
        if (held[slot])
            unmark(held[slot], units[slot], queue, 0);
        give(held[slot], queue, 0);
    }
    complete(queue, ROUNDS);
    return NULL;
}

Test(device_pool_model, threads_share_it) {
    begin(256 * MIB);
    pthread_t threads[QUEUES];
    pthread_barrier_init(&all_are_there, NULL, QUEUES);
    for (uintptr_t i = 0; i < QUEUES; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < QUEUES; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong, "%s", (const char *)wrong);
    }
    int64_t held_bytes = fake.held_bytes;
    cr_assert_eq(eddy_device_pool_trim(pool), held_bytes, "all joins again");
    end();
}
