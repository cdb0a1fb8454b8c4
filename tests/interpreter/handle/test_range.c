/* Ranges of the user: events, and a part of errors. */
#include <base/status.h>
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/trace.h>
#include <pthread.h>
#include <string.h>

static const eddy_origin origin = {"test", NULL};

static void expect_message(const char *expected) {
    eddy_error error;
    (void)!eddy_fail(EDDY_INVALID_ARGUMENT, origin, "it fails");
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, expected);
}

Test(range, errors_name_the_ranges_that_they_are_made_in) {
    expect_message("test: it fails");
    cr_assert_eq(eddy_range_push("train"), EDDY_OK);
    cr_assert_eq(eddy_range_push("step 3"), EDDY_OK);
    expect_message("test: it fails (in train, step 3)");
    cr_assert_eq(eddy_range_pop(), EDDY_OK);
    expect_message("test: it fails (in train)");
    cr_assert_eq(eddy_range_pop(), EDDY_OK);
    expect_message("test: it fails");
}

Test(range, what_was_not_pushed_is_not_popped) {
    eddy_error error;
    cr_assert_eq(eddy_range_pop(), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "range_pop: no range is open");
    cr_assert_eq(eddy_range_push(NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_range_pop(), EDDY_INVALID_ARGUMENT);
    (void)eddy_error_take(NULL);
}

/* A message that would not have room for all of them stays without. */
Test(range, a_long_name_does_not_cut_the_message) {
    char name[600];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cr_assert_eq(eddy_range_push(name), EDDY_OK);
    expect_message("test: it fails");
    cr_assert_eq(eddy_range_pop(), EDDY_OK);
}

Test(range, any_depth_is_counted) {
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(eddy_range_push("deep"), EDDY_OK);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(eddy_range_pop(), EDDY_OK);
    cr_assert_eq(eddy_range_pop(), EDDY_INVALID_ARGUMENT);
    (void)eddy_error_take(NULL);
}

static void *pop_another(void *context) {
    *(eddy_status *)context = eddy_range_pop();
    (void)eddy_error_take(NULL);
    return NULL;
}

Test(range, a_thread_has_its_own) {
    eddy_status status = EDDY_OK;
    pthread_t thread;
    cr_assert_eq(eddy_range_push("here"), EDDY_OK);
    cr_assert_eq(pthread_create(&thread, NULL, pop_another, &status), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_range_pop(), EDDY_OK);
}

static void *leave_open(void *context) {
    cr_assert_eq(eddy_range_push("left"), EDDY_OK);
    return context;
}

static void *expect_none(void *context) {
    expect_message("test: it fails");
    cr_assert_eq(eddy_range_push("own"), EDDY_OK);
    expect_message("test: it fails (in own)");
    cr_assert_eq(eddy_range_pop(), EDDY_OK);
    return context;
}

/* The next thread has its state. */
Test(range, what_a_thread_leaves_open_ends_with_it) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, leave_open, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(pthread_create(&thread, NULL, expect_none, NULL), 0);
    pthread_join(thread, NULL);
}

static int begun, ended, marked;

static void count(void *context, const eddy_trace_event *event) {
    (void)context;
    begun += event->kind == EDDY_TRACE_BEGINS;
    ended += event->kind == EDDY_TRACE_ENDS;
    marked += event->kind == EDDY_TRACE_HAPPENS;
    cr_assert_str_eq(event->op, "loud");
}

/* Sixteen of them, and no end of one that began before. */
Test(range, listeners_hear_them) {
    uint32_t place;
    eddy_trace_listener listener = {count, NULL, 1u << EDDY_TRACE_RANGE};
    cr_assert_eq(eddy_range_push("loud"), EDDY_OK);
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(eddy_range_push("loud"), EDDY_OK);
    eddy_mark("loud");
    for (int i = 0; i < 21; i++)
        cr_assert_eq(eddy_range_pop(), EDDY_OK);
    eddy_trace_remove(place);
    cr_assert(begun == 15 && ended == 15 && marked == 1, "%d %d %d", begun, ended, marked);
}
