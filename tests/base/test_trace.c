#include <base/trace.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_down(void *context, const eddy_trace_event *event) {
    char *story = context;
    static const char *const forms[] = {"[%s %s %d ", "%s %s %d]", "(%s %s %d)"};
    size_t length = strlen(story);
    char form[16];
    snprintf(form, sizeof(form), "%s", forms[event->kind]);
    snprintf(story + length, 256 - length, form, eddy_trace_phase_name(event->phase),
             event->op ? event->op : "", (int)event->sequence);
}

static uint32_t add(char *story, uint32_t phases) {
    uint32_t place = 99;
    eddy_trace_listener listener = {write_down, story, phases};
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    return place;
}

#define BIT(phase) (1u << EDDY_TRACE_##phase)

Test(trace, a_listener_hears_begin_and_end_until_it_is_removed) {
    char story[256] = "";
    eddy_trace_span unheard = EDDY_TRACE_BEGIN(KERNEL, .op = "add", .sequence = 1);
    uint32_t place = add(story, EDDY_TRACE_ALL_PHASES);
    EDDY_TRACE_END(unheard, .op = "add", .sequence = 1);
    eddy_trace_span kernel = EDDY_TRACE_BEGIN(KERNEL, .op = "add", .sequence = 2);
    eddy_trace_span wait = EDDY_TRACE_BEGIN(WAIT, .op = "read", .sequence = 3);
    EDDY_TRACE_AT(ALLOCATOR, .op = "trim");
    EDDY_TRACE_END(wait, .op = "read", .sequence = 3);
    EDDY_TRACE_END(kernel, .op = "add", .sequence = 2);
    eddy_trace_span left = EDDY_TRACE_BEGIN(KERNEL, .op = "mul", .sequence = 4);
    eddy_trace_remove(place);
    EDDY_TRACE_END(left, .op = "mul", .sequence = 4);
    EDDY_TRACE_AT(KERNEL, .op = "sub", .sequence = 5);
    cr_assert_str_eq(story, "[kernel add 2 [wait read 3 (allocator trim 0)wait read 3]"
                            "kernel add 2][kernel mul 4 ");
    cr_assert_str_eq(eddy_trace_phase_name(EDDY_TRACE_PHASE_COUNT), "?");
    cr_assert_not(eddy_trace_is_on());
}

Test(trace, each_hears_the_phases_that_it_asks_for) {
    char kernels[256] = "", waits[256] = "";
    uint32_t first = add(kernels, BIT(KERNEL)), second = add(waits, BIT(WAIT));
    cr_assert(eddy_trace_hears(EDDY_TRACE_WAIT) && !eddy_trace_hears(EDDY_TRACE_ISSUE));
    EDDY_TRACE_AT(KERNEL, .op = "add");
    EDDY_TRACE_AT(WAIT, .op = "read");
    EDDY_TRACE_AT(ISSUE, .op = "add");
    eddy_trace_remove(first);
    cr_assert_not(eddy_trace_hears(EDDY_TRACE_KERNEL));
    EDDY_TRACE_AT(KERNEL, .op = "add");
    EDDY_TRACE_AT(WAIT, .op = "read");
    eddy_trace_remove(second);
    cr_assert_str_eq(kernels, "(kernel add 0)");
    cr_assert_str_eq(waits, "(wait read 0)(wait read 0)");
}

/* Its place may be another's by then. */
Test(trace, nobody_hears_an_end_without_its_begin) {
    char first_story[256] = "", second_story[256] = "";
    uint32_t first = add(first_story, EDDY_TRACE_ALL_PHASES);
    eddy_trace_span span = EDDY_TRACE_BEGIN(KERNEL, .op = "add");
    eddy_trace_remove(first);
    uint32_t second = add(second_story, EDDY_TRACE_ALL_PHASES);
    cr_assert_eq(first, second);
    EDDY_TRACE_END(span, .op = "add");
    eddy_trace_remove(second);
    cr_assert_str_eq(first_story, "[kernel add 0 ");
    cr_assert_str_eq(second_story, "");
}

Test(trace, there_are_so_many_places) {
    char story[256] = "";
    uint32_t places[EDDY_TRACE_LISTENERS_MOST], none;
    for (int i = 0; i < EDDY_TRACE_LISTENERS_MOST; i++)
        places[i] = add(story, 0);
    eddy_trace_listener one_more = {write_down, story, 0};
    cr_assert_eq(eddy_trace_add(&one_more, &none), EDDY_OUT_OF_MEMORY);
    eddy_trace_remove(places[3]);
    cr_assert_eq(add(story, 0), places[3]);
    for (int i = 0; i < EDDY_TRACE_LISTENERS_MOST; i++)
        eddy_trace_remove(places[i]);
}

static void send_one(void *context, const eddy_trace_event *event) {
    (void)event;
    ++*(int *)context;
    EDDY_TRACE_AT(KERNEL, .op = "within");
}

Test(trace, what_a_listener_does_is_not_heard) {
    int count = 0;
    uint32_t place;
    eddy_trace_listener listener = {send_one, &count, EDDY_TRACE_ALL_PHASES};
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    EDDY_TRACE_AT(KERNEL, .op = "add");
    eddy_trace_remove(place);
    cr_assert_eq(count, 1);
}

/* ---- threads ---- */

static _Atomic bool is_over;

typedef struct hearing {
    _Atomic bool is_removed;
    _Atomic int32_t open, wrong, heard;
} hearing;

static void check_pairs(void *context, const eddy_trace_event *event) {
    hearing *one = context;
    eddy_add_relaxed(&one->heard, 1);
    if (eddy_load_acquire(&one->is_removed))
        eddy_add_relaxed(&one->wrong, 1);
    eddy_add_relaxed(&one->open, event->kind == EDDY_TRACE_BEGINS ? 1 : -1);
}

static void *send_events(void *context) {
    uint64_t number = (uint64_t)(uintptr_t)context;
    while (!eddy_load_acquire(&is_over)) {
        eddy_trace_span outer = EDDY_TRACE_BEGIN(KERNEL, .op = "add", .stream = number);
        eddy_trace_span inner = EDDY_TRACE_BEGIN(WAIT, .op = "read", .stream = number);
        EDDY_TRACE_END(inner, .op = "read", .stream = number);
        EDDY_TRACE_END(outer, .op = "add", .stream = number);
    }
    return NULL;
}

/* While threads send, others come and go, each of which is let be once its removal has returned. */
Test(trace, listeners_come_and_go_while_threads_send) {
    enum { THREADS = 3, ROUNDS = 3000 };
    pthread_t threads[THREADS];
    static hearing all[ROUNDS];
    int32_t heard = 0;
    for (uintptr_t t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, send_events, (void *)t), 0);
    for (int r = 0; r < ROUNDS; r++) {
        uint32_t place;
        eddy_trace_listener listener = {check_pairs, &all[r], BIT(KERNEL) | BIT(WAIT)};
        cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
        if (r % 16 == 0)
            while (eddy_load_relaxed(&all[r].heard) < 10)
                sched_yield();
        eddy_trace_remove(place);
        eddy_store_release(&all[r].is_removed, true);
    }
    eddy_store_release(&is_over, true);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int r = 0; r < ROUNDS; r++) {
        heard += eddy_load_relaxed(&all[r].heard);
        cr_assert_eq(eddy_load_relaxed(&all[r].wrong), 0);
        /* Begun and not ended where it was removed: two a thread at most. */
        cr_assert(eddy_load_relaxed(&all[r].open) >= 0 &&
                      eddy_load_relaxed(&all[r].open) <= 2 * THREADS,
                  "%d", (int)eddy_load_relaxed(&all[r].open));
    }
    cr_assert_gt(heard, ROUNDS / 16 * 10);
}

/* ---- fork ---- */

typedef struct gate {
    _Atomic bool is_inside, may_go;
} gate;

static void stay_inside(void *context, const eddy_trace_event *event) {
    gate *at = context;
    (void)event;
    eddy_store_release(&at->is_inside, true);
    while (!eddy_load_acquire(&at->may_go))
        sched_yield();
}

static void *send_once(void *context) {
    EDDY_TRACE_AT(KERNEL, .op = "add");
    return context;
}

/* The thread that is inside is not in the child. */
Test(trace, a_forked_child_may_remove_a_listener_that_another_thread_is_in) {
    gate at = {0};
    uint32_t place;
    pthread_t thread;
    eddy_trace_listener listener = {stay_inside, &at, EDDY_TRACE_ALL_PHASES};
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    cr_assert_eq(pthread_create(&thread, NULL, send_once, NULL), 0);
    while (!eddy_load_acquire(&at.is_inside))
        sched_yield();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        eddy_trace_remove(place);
        _exit(eddy_trace_is_on());
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    eddy_store_release(&at.may_go, true);
    eddy_trace_remove(place);
    pthread_join(thread, NULL);
}
