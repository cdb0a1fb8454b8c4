#include <base/memory.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <vm/waiter.h>

static eddy_waiter_pool pool;

Test(waiter, who_comes_second_recycles_it) {
    eddy_waiter *waiter = eddy_waiter_acquire(&pool);
    cr_assert_not_null(waiter);
    cr_assert(eddy_waiter_finish(&pool, waiter), "the thread still looks at it");
    cr_assert(eddy_waiter_is_done(waiter));
    cr_assert_null(pool.free, "the thread gives it back");
    eddy_waiter_recycle(&pool, waiter);

    waiter = eddy_waiter_acquire(&pool);
    cr_assert_eq(eddy_exchange_acq_rel(&waiter->state, EDDY_WAITER_ABANDONED), EDDY_WAITER_PENDING);
    cr_assert_not(eddy_waiter_finish(&pool, waiter));
    cr_assert_eq(pool.free, waiter, "the engine gave it back");
    eddy_waiter_pool_fini(&pool);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

Test(waiter, a_recycled_one_comes_back_pending_and_clean) {
    eddy_waiter *waiter = eddy_waiter_acquire(&pool);
    waiter->poison = 7;
    waiter->thread = 9;
    waiter->status = EDDY_TIMED_OUT;
    waiter->data = waiter;
    eddy_waiter_finish(&pool, waiter);
    eddy_waiter_recycle(&pool, waiter);
    eddy_waiter *again = eddy_waiter_acquire(&pool);
    cr_assert_eq(again, waiter, "last in, first out");
    cr_assert_eq(eddy_load_relaxed(&again->state), EDDY_WAITER_PENDING);
    cr_assert_eq(again->poison, 0);
    cr_assert_eq(again->thread, 0);
    cr_assert_eq(again->status, EDDY_OK);
    cr_assert_null(again->data);
    eddy_waiter_recycle(&pool, again);
    eddy_waiter_pool_fini(&pool);
}

Test(waiter, no_memory_is_an_answer) {
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_null(eddy_waiter_acquire(&pool));
}

#define ROUNDS 20000

static _Atomic(eddy_waiter *) shown;

static void *finish_them(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        eddy_waiter *waiter;
        while (!(waiter = eddy_exchange_acq_rel(&shown, NULL)))
            sched_yield();
        waiter->bytes = i;
        eddy_waiter_finish(&pool, waiter);
    }
    return NULL;
}

/* Ends as DONE or as ABANDONED whatever the timing, and is given back once: the pool never holds a waiter twice. */
Test(waiter, done_and_abandoned_race) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, finish_them, NULL), 0);
    int done = 0;
    for (int i = 0; i < ROUNDS; i++) {
        while (eddy_load_acquire(&shown))
            sched_yield();
        eddy_waiter *waiter = eddy_waiter_acquire(&pool);
        eddy_store_release(&shown, waiter);
        for (int spin = 0; spin < i % 50; spin++)
            eddy_atomic_pause();
        if (i % 5 == 0)
            while (!eddy_waiter_is_done(waiter))
                sched_yield();
        if (eddy_exchange_acq_rel(&waiter->state, EDDY_WAITER_ABANDONED) == EDDY_WAITER_DONE) {
            cr_assert_eq(waiter->bytes, i, "the effects come before DONE");
            eddy_waiter_recycle(&pool, waiter);
            done++;
        }
    }
    pthread_join(thread, NULL);
    cr_assert_geq(done, ROUNDS / 5);
    int free_count = 0;
    for (eddy_waiter *waiter = pool.free; waiter; waiter = waiter->next_free)
        free_count++;
    cr_assert_eq(free_count * (int64_t)sizeof(eddy_waiter),
                 eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes);
    eddy_waiter_pool_fini(&pool);
}
