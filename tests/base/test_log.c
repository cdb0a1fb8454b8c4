#include <base/atomic.h>
#include <base/log.h>
#include <criterion/criterion.h>
#include <eddy/log.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char last_line[4096];
static int line_count;

static void keep_line(void *context, const char *line) {
    cr_assert_eq(context, (void *)&line_count);
    snprintf(last_line, sizeof(last_line), "%s", line);
    line_count++;
    eddy_log_line("from inside the sink");
}

Test(log, lines_go_to_the_sink_and_nowhere_without_one) {
    eddy_log_line("dropped");
    cr_assert_not(eddy_log_is_set());
    eddy_log_set(keep_line, &line_count);
    cr_assert(eddy_log_is_set());
    eddy_log_line("%d of %s", 3, "four");
    cr_assert_str_eq(last_line, "3 of four");
    cr_assert_eq(line_count, 1, "a sink that makes the library speak is not called again");
    eddy_log_set(NULL, NULL);
    eddy_log_line("dropped");
    cr_assert_eq(line_count, 1);
}

Test(log, long_lines_are_cut) {
    char text[10000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    eddy_log_set(keep_line, &line_count);
    eddy_log_line("%s", text);
    cr_assert_gt(strlen(last_line), 1000u);
}

static void unset_from_inside(void *context, const char *line) {
    (void)context, (void)line;
    line_count++;
    eddy_log_set(NULL, NULL);
}

Test(log, a_sink_may_unset_itself) {
    eddy_log_set(unset_from_inside, NULL);
    eddy_log_line("one");
    eddy_log_line("two");
    cr_assert_eq(line_count, 1);
}

static _Atomic bool is_over;

static void use_context(void *context, const char *line) {
    (void)line;
    ++*(_Atomic int *)context;
}

static void *speak(void *unused) {
    while (!eddy_load_relaxed(&is_over))
        eddy_log_line("line");
    return unused;
}

Test(log, no_line_is_under_way_once_the_sink_is_replaced) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, speak, NULL);
    for (int round = 0; round < 200; round++) {
        _Atomic int context = 0;
        eddy_log_set(use_context, &context);
        while (eddy_load_relaxed(&context) == 0) {
        }
        eddy_log_set(NULL, NULL);
        int count = eddy_load_relaxed(&context);
        eddy_store_relaxed(&context, -1000000);
        cr_assert_gt(count, 0);
        cr_assert_eq(eddy_load_relaxed(&context), -1000000);
    }
    eddy_store_relaxed(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
