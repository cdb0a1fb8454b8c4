#include <base/lifo.h>

#include <ck_pr.h>
#include <ck_stack.h>
#include <stddef.h>

/* ThreadSanitizer does not see Concurrency Kit's fences and atomics (inline assembly). Push and take are functions
 * that it does not instrument; they mark what they publish and acquire. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

#ifdef UNDER_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TELL_ACQUIRE(address) __tsan_acquire(address)
#define TELL_RELEASE(address) __tsan_release(address)
#else
#define TELL_ACQUIRE(address) ((void)0)
#define TELL_RELEASE(address) ((void)0)
#endif

#define NOT_INSTRUMENTED __attribute__((noinline, no_sanitize("thread")))

_Static_assert(sizeof(eddy_lifo_link) == sizeof(struct ck_stack_entry),
               "a link is a ck_stack entry");
_Static_assert(offsetof(struct ck_stack, head) == offsetof(eddy_lifo, head),
               "the head stands first in both");

/* ck_stack_push_upmc does not return what it found: here the successful compare-and-swap tells whether the stack was
 * empty, since the link may be gone afterwards. ck orders stores alone; here the pusher's loads come before the
 * push too: the thread that takes the link may free the memory that they read. */
NOT_INSTRUMENTED bool eddy_lifo_push(eddy_lifo *stack, eddy_lifo_link *link) {
    eddy_lifo_link *head = ck_pr_load_ptr(&stack->head);
    TELL_RELEASE(stack);
    link->next = head;
    ck_pr_fence_release();
    while (!ck_pr_cas_ptr_value(&stack->head, head, link, &head)) {
        link->next = head;
        ck_pr_fence_release();
    }
    return head == NULL;
}

/* ck_stack_batch_pop_upmc: one exchange, so that no link is read before it is ours. */
NOT_INSTRUMENTED eddy_lifo_link *eddy_lifo_take_all(eddy_lifo *stack) {
    eddy_lifo_link *head = ck_pr_fas_ptr(&stack->head, NULL);
    ck_pr_fence_load();
    TELL_ACQUIRE(stack);
    return head;
}

eddy_lifo_link *eddy_lifo_take_all_in_order(eddy_lifo *stack) {
    eddy_lifo_link *newest = eddy_lifo_take_all(stack), *oldest = NULL;
    while (newest) {
        eddy_lifo_link *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}
