#include <base/lifo.h>
#include <base/sleep.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct item {
    eddy_lifo_link link;
    int producer, number;
} item;

Test(lifo, push_tells_whether_it_was_empty) {
    eddy_lifo stack = {NULL};
    item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    cr_assert(eddy_lifo_is_empty(&stack));
    cr_assert_null(eddy_lifo_take_all(&stack));
    cr_assert(eddy_lifo_push(&stack, &items[0].link));
    cr_assert_not(eddy_lifo_push(&stack, &items[1].link));
    cr_assert_not(eddy_lifo_is_empty(&stack));
    eddy_lifo_link *taken = eddy_lifo_take_all(&stack);
    cr_assert_eq(taken, &items[1].link, "newest first");
    cr_assert_eq(taken->next, &items[0].link);
    cr_assert_null(taken->next->next);
    cr_assert(eddy_lifo_push(&stack, &items[2].link), "empty again");
}

Test(lifo, taking_in_order_gives_oldest_first) {
    eddy_lifo stack = {NULL};
    item items[5];
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        eddy_lifo_push(&stack, &items[i].link);
    }
    int number = 0;
    for (eddy_lifo_link *at = eddy_lifo_take_all_in_order(&stack); at; at = at->next)
        cr_assert_eq(((item *)at)->number, number++);
    cr_assert_eq(number, 5);
    cr_assert_null(eddy_lifo_take_all_in_order(&stack));
}

#define PRODUCERS 3
#define ITEMS 20000

static eddy_lifo shared_stack;
static eddy_sleep_word pushed_into_empty;

static void *produce(void *argument) {
    for (int i = 0; i < ITEMS; i++) {
        item *made = malloc(sizeof(*made));
        made->producer = *(int *)argument;
        made->number = i;
        if (eddy_lifo_push(&shared_stack, &made->link)) {
            eddy_add_release(&pushed_into_empty, 1u);
            eddy_sleep_wake_one(&pushed_into_empty);
        }
    }
    return NULL;
}

/* Also the wake-up rule: the reader sleeps until somebody pushed into the empty stack, and must never hang. */
Test(lifo, many_push_and_one_takes_all_without_a_lost_wake_up) {
    pthread_t threads[PRODUCERS];
    int names[PRODUCERS], next[PRODUCERS] = {0}, left = PRODUCERS * ITEMS;
    for (int i = 0; i < PRODUCERS; i++) {
        names[i] = i;
        pthread_create(&threads[i], NULL, produce, &names[i]);
    }
    while (left > 0) {
        uint32_t seen = eddy_load_acquire(&pushed_into_empty);
        eddy_lifo_link *at = eddy_lifo_take_all_in_order(&shared_stack);
        if (!at)
            eddy_sleep_wait(&pushed_into_empty, seen, EDDY_CLOCK_FOREVER);
        while (at) {
            item *taken = (item *)at;
            at = at->next;
            cr_assert_eq(taken->number, next[taken->producer]++, "each producer's order holds");
            free(taken);
            left--;
        }
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert(eddy_lifo_is_empty(&shared_stack));
}
