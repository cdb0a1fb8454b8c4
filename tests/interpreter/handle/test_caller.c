#include "../calls.h"
#include <pthread.h>

static eddy_tensor *common;

static void *live_shortly(void *context) {
    (void)context;
    eddy_tensor *sum = call("add", OF(common, common));
    eddy_release(&sum);
    return NULL;
}

Test(caller, ten_thousand_short_threads_do_not_grow_memory) {
    common = counting(EDDY_SHAPE(4));
    int64_t handles = 0, runtime = 0;
    for (int i = 0; i < 10000; i++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, live_shortly, NULL), 0);
        pthread_join(thread, NULL);
        if (i == 100) {
            handles = eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes;
            runtime = eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes;
        }
    }
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes, handles);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, runtime);
    cr_assert_eq(eddy_live_count(), 1);
}

static void *make_one(void *context) {
    *(eddy_tensor **)context = counting(EDDY_SHAPE(4));
    return NULL;
}

Test(caller, tensors_outlive_the_thread_that_made_them) {
    eddy_tensor *made[50];
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, make_one, &made[i]);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 50; i++) {
        ASSERT_F32(made[i], 0, 1, 2, 3);
        eddy_release(&made[i]);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

Test(caller, scratch_is_kept_and_may_be_taken_once) {
    eddy_runtime_current();
    eddy_caller *caller = eddy_caller_get();
    void *first = eddy_caller_scratch_begin(caller, 1000),
         *second = eddy_caller_scratch_begin(caller, 1000);
    cr_assert(first && second && first != second);
    eddy_caller_scratch_end(caller, second, 1000);
    eddy_caller_scratch_end(caller, first, 1000);
    cr_assert_eq(eddy_caller_scratch_begin(caller, 500), first);
    eddy_caller_scratch_end(caller, first, 500);
}

enum { THREADS = 4, ROUNDS = 3000 };
static _Atomic(eddy_tensor *) mailbox[THREADS];

/* Each thread makes tensors, hands them to its neighbour, and releases what it is handed. */
static void *pass_on(void *context) {
    intptr_t number = (intptr_t)context;
    for (int i = 0; i < ROUNDS; i++) {
        eddy_scope *scope = i % 3 == 0 ? eddy_scope_begin() : NULL;
        eddy_tensor *t = call_scalar("add_s", common, EDDY_S((float)i));
        eddy_tensor *kept = scope ? eddy_retain(t) : t;
        eddy_tensor *old = atomic_exchange(&mailbox[(number + 1) % THREADS], kept);
        if (old) {
            eddy_tensor *sum = call("add", OF(old, common));
            eddy_release(&sum);
            eddy_release(&old);
        }
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(caller, threads_hand_tensors_on) {
    common = counting(EDDY_SHAPE(16));
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, pass_on, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        eddy_tensor *left = atomic_load(&mailbox[i]);
        eddy_release(&left);
    }
    cr_assert_eq(eddy_live_count(), 1);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
}
