#include "../calls.h"
#include <pthread.h>

Test(scope, frees_what_was_returned_inside) {
    int64_t before = eddy_live_count();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    eddy_t(call("add", OF(t, t)));
    cr_assert_eq(eddy_live_count(), before + 3);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), before);
}

Test(scope, without_one_the_caller_owns) {
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    eddy_scope *scope = eddy_scope_begin();
    eddy_scope_end(scope);
    ASSERT_F32(t, 0, 1, 2, 3);
    eddy_release(&t);
    cr_assert_null(t);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(scope, ending_one_ends_those_inside) {
    eddy_scope *outer = eddy_scope_begin();
    eddy_scope *inner = eddy_scope_begin();
    eddy_scope_begin();
    counting(EDDY_SHAPE(4));
    eddy_scope_end(outer);
    cr_assert_eq(eddy_live_count(), 0);
    eddy_scope_end(inner);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "ended already");
}

Test(scope, returned_tensors_move_outwards) {
    eddy_scope *outer = eddy_scope_begin();
    eddy_tensor *kept = NULL;
    for (int layer = 0; layer < 3; layer++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *t = counting(EDDY_SHAPE(2));
        kept = eddy_scope_return(inner, call("add", OF(t, t)));
        eddy_scope_end(inner);
    }
    ASSERT_F32(kept, 0, 2);
    cr_assert_eq(eddy_live_count(), 3);
    kept = eddy_scope_return(outer, kept);
    eddy_scope_end(outer);
    ASSERT_F32(kept, 0, 2);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_release(&kept);
}

Test(scope, return_from_an_outer_scope_passes_inner_ones) {
    eddy_scope *outer = eddy_scope_begin(), *inner = eddy_scope_begin();
    eddy_tensor *t = eddy_scope_return(outer, counting(EDDY_SHAPE(1)));
    eddy_scope_end(inner);
    eddy_scope_end(outer);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_release(&t);
}

Test(scope, return_leaves_what_is_not_its_own) {
    eddy_tensor *mine = counting(EDDY_SHAPE(1));
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_scope_return(scope, mine), mine);
    cr_assert_null(eddy_scope_return(scope, NULL));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_release(&mine);
}

static void library_function(eddy_tensor *t) {
    eddy_tensor *mine = eddy_retain(t);
    eddy_release(&mine);
}

Test(scope, a_retain_and_a_release_change_nothing_wherever_they_stand) {
    eddy_scope *outer = eddy_scope_begin(), *inner = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(2)), *view = eddy_t(t);
    library_function(t);
    library_function(view);
    ASSERT_F32(view, 0, 1);
    t = eddy_scope_return(inner, t);
    library_function(t);
    eddy_scope_end(inner);
    cr_assert_eq(eddy_live_count(), 1, "the outer scope's");
    library_function(t);
    ASSERT_F32(t, 0, 1);
    eddy_scope_end(outer);
    cr_assert_eq(eddy_live_count(), 0, "nothing is left behind");
}

Test(scope, release_gives_up_retained_references_first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(1)), *first = eddy_retain(t), *second = eddy_retain(t);
    eddy_release(&first);
    eddy_release(&second);
    eddy_release(&t);
    cr_assert_eq(eddy_live_count(), 0, "the scope's went last, and early");
    counting(EDDY_SHAPE(1)); /* in the same memory: no count of the former tensor is left */
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(scope, what_is_retained_and_not_released_outlives_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *kept = eddy_retain(counting(EDDY_SHAPE(2)));
    eddy_scope_end(scope);
    ASSERT_F32(kept, 0, 1);
    library_function(kept);
    ASSERT_F32(kept, 0, 1);
    eddy_release(&kept);
    cr_assert_eq(eddy_live_count(), 0);
}

static void *release_one(void *context) {
    eddy_tensor *t = context;
    eddy_release(&t);
    return NULL;
}

Test(scope, other_threads_give_up_retained_references_only) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = eddy_retain(counting(EDDY_SHAPE(1)));
    pthread_t thread;
    pthread_create(&thread, NULL, release_one, t);
    pthread_join(thread, NULL);
    cr_assert_eq(eddy_item_f64(t, NULL), 0, "the scope's is left");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void *release_one_status(void *context) {
    eddy_tensor *t = context;
    eddy_release(&t);
    return (void *)(intptr_t)eddy_error_take(NULL);
}

Test(scope, other_threads_cannot_give_up_what_the_scope_owns) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(1));
    pthread_t thread;
    void *status;
    pthread_create(&thread, NULL, release_one_status, t);
    pthread_join(thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_WRONG_THREAD);
    cr_assert_eq(eddy_item_f64(t, NULL), 0);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

enum { HOLDERS = 4, PAIRS = 20000 };

static void *retain_and_release(void *context) {
    for (int i = 0; i < PAIRS; i++)
        library_function(context);
    eddy_tensor *mine = context;
    eddy_release(&mine);
    return NULL;
}

Test(scope, pairs_of_many_threads_balance) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(1));
    pthread_t threads[HOLDERS];
    for (int i = 0; i < HOLDERS; i++)
        pthread_create(&threads[i], NULL, retain_and_release, eddy_retain(t));
    for (int i = 0; i < PAIRS; i++)
        library_function(t);
    for (int i = 0; i < HOLDERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(eddy_item_f64(t, NULL), 0, "the scope's is left");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void *end_foreign(void *context) {
    eddy_scope_end(context);
    return (void *)(intptr_t)eddy_error_take(NULL);
}

Test(scope, another_thread_cannot_end_it) {
    eddy_scope *scope = eddy_scope_begin();
    counting(EDDY_SHAPE(1));
    pthread_t thread;
    void *status;
    pthread_create(&thread, NULL, end_foreign, scope);
    pthread_join(thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_WRONG_THREAD);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_scope_end(scope);
}

static void *leave_open(void *context) {
    (void)context;
    eddy_scope_begin();
    counting(EDDY_SHAPE(8));
    eddy_scope_begin();
    counting(EDDY_SHAPE(8));
    return NULL;
}

Test(scope, a_threads_end_ends_its_scopes) {
    pthread_t thread;
    pthread_create(&thread, NULL, leave_open, NULL);
    pthread_join(thread, NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(scope, a_long_loop_inside_one_stays_flat) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(4)), *h = call("neg", OF(t));
    int64_t bytes = 0;
    for (int i = 0; i < 100000; i++) {
        if (i == 1000)
            bytes = eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes;
        eddy_tensor *next = call("add", OF(h, t));
        eddy_release(&h);
        h = next;
    }
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes, bytes);
    eddy_scope_end(scope);
}

Test(scope, no_memory_is_a_clean_error) {
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 1000);
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_null(scope);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_MEMORY);
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 0);
    scope = eddy_scope_begin();
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 1000);
    cr_assert_null(call("add", OF(t, t)), "the scope cannot take it in");
    ASSERT_ERROR(EDDY_OUT_OF_MEMORY, "add");
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 0);
    cr_assert_not_null(call("add", OF(t, t)));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_release(&t);
}
