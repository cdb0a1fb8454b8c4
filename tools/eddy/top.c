/* eddy top */
#include "command.h"
#include "output.h"
#include "screen.h"
#include "top_page.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define OPS_SHOWN 8

typedef struct watch {
    long process;
    char name[64]; /* of the program */
    bool is_terminal;
    top_snapshot now, before;
} watch;

/* ---- numbers ---- */

static double seconds(const watch *w) {
    return (double)(top_sum(&w->now, "time", "ns") - top_sum(&w->before, "time", "ns")) / 1e9;
}

/* A second; 0 where there is no earlier moment. */
static double rate(const watch *w, const char *group, const char *name) {
    double s = w->before.count > 0 ? seconds(w) : 0;
    return s > 0 ? (double)(top_sum(&w->now, group, name) - top_sum(&w->before, group, name)) / s
                 : 0;
}

static void format_rate(double value, char cell[TOOL_CELL_BYTES]) {
    if (value >= 1e6)
        snprintf(cell, TOOL_CELL_BYTES, "%.1f M/s", value / 1e6);
    else if (value >= 1e4)
        snprintf(cell, TOOL_CELL_BYTES, "%.1f k/s", value / 1e3);
    else
        snprintf(cell, TOOL_CELL_BYTES, "%.0f /s", value);
}

/* ---- the screen ---- */

static int runtime_count(const watch *w) {
    int count = 0;
    for (int i = 0; i < w->now.count; i++)
        count += strncmp(w->now.values[i].group, "runtime ", 8) == 0 &&
                 strcmp(w->now.values[i].name, "threads") == 0;
    return count;
}

static void show_rates(const watch *w) {
    static const char *const shown[][2] = {{"instructions", "submitted"},
                                           {"run by callers", "caller_run"},
                                           {"by the scheduler", "scheduler_run"},
                                           {"by workers", "worker_run"},
                                           {"edges", "edges_made"},
                                           {"wake-ups", "wakes"}};
    for (int i = 0; i < 6; i++) {
        char cell[TOOL_CELL_BYTES];
        format_rate(rate(w, "runtime ", shown[i][1]), cell);
        printf("%-17s%10s%s", shown[i][0], cell, i % 2 ? "\n" : "      ");
    }
}

static void show_queues(const watch *w) {
    char bytes[TOOL_CELL_BYTES], most[TOOL_CELL_BYTES];
    printf("%-17s%10" PRId64 "      peak %10" PRId64 "\n", "in flight",
           top_sum(&w->now, "runtime ", "in_flight"),
           top_sum(&w->now, "runtime ", "in_flight_peak"));
    printf("%-17s%10" PRId64 "      run  %10" PRId64 "\n", "ready",
           top_sum(&w->now, "runtime ", "ready"), top_sum(&w->now, "runtime ", "running"));
    tool_format_bytes(top_sum(&w->now, "runtime ", "bytes_in_flight"), bytes);
    tool_format_bytes(top_sum(&w->now, "runtime ", "bytes_in_flight_peak"), most);
    printf("%-17s%10s      peak %10s\n", "bytes in flight", bytes, most);
    printf("%-17s%10" PRId64 "      seen %10" PRId64 "\n", "errors",
           top_sum(&w->now, "runtime ", "errors_made"),
           top_sum(&w->now, "runtime ", "errors_seen"));
}

static void show_memory(const watch *w) {
    const tool_table table = {4, {"memory", "live", "cached", "peak"}};
    tool_row rows[8];
    size_t count = 0;
    for (int i = 0; i < w->now.count && count < 8; i++) {
        const top_value *value = &w->now.values[i];
        if (strncmp(value->group, "memory of ", 10) != 0 || strcmp(value->name, "live") != 0)
            continue;
        rows[count].text = value->group + 10;
        tool_format_bytes(value->value, rows[count].cells[0]);
        tool_format_bytes(top_sum(&w->now, value->group, "cached"), rows[count].cells[1]);
        tool_format_bytes(top_sum(&w->now, value->group, "peak"), rows[count].cells[2]);
        count++;
    }
    printf("\n");
    tool_table_print(&table, rows, count);
}

typedef struct busy_op {
    const char *name;
    double ns, calls; /* a second */
} busy_op;

static int by_time(const void *a, const void *b) {
    double left = ((const busy_op *)a)->ns, right = ((const busy_op *)b)->ns;
    return left > right ? -1 : left < right;
}

/* Of the last second, or of all where nothing has run since. */
static void show_ops(const watch *w) {
    const tool_table table = {4, {"op", "calls", "of a core", "each"}};
    tool_row rows[OPS_SHOWN];
    busy_op ops[64];
    size_t count = 0;
    for (int i = 0; i < w->now.count && count < 64; i++)
        if (strcmp(w->now.values[i].group, "op ns") == 0) {
            const char *name = w->now.values[i].name;
            ops[count++] = (busy_op){name, rate(w, "op ns", name), rate(w, "op count", name)};
        }
    printf("\n");
    if (count == 0) {
        printf("Ops are counted with EDDY_TIMES=1.\n");
        return;
    }
    qsort(ops, count, sizeof(*ops), by_time);
    size_t shown = count < OPS_SHOWN ? count : OPS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        rows[i].text = ops[i].name;
        format_rate(ops[i].calls, rows[i].cells[0]);
        snprintf(rows[i].cells[1], TOOL_CELL_BYTES, "%.1f %%", ops[i].ns / 1e7);
        rows[i].cells[2][0] = '\0';
        if (ops[i].calls > 0)
            tool_format_ns((int64_t)(ops[i].ns / ops[i].calls), rows[i].cells[2]);
    }
    tool_table_print(&table, rows, shown);
}

static void show(const watch *w) {
    char heading[160];
    if (w->is_terminal)
        printf("\033[H\033[J");
    snprintf(heading, sizeof(heading), "%ld %s: %d runtime%s, %" PRId64 " threads", w->process,
             w->name, runtime_count(w), runtime_count(w) == 1 ? "" : "s",
             top_sum(&w->now, "runtime ", "threads"));
    tool_heading(heading);
    printf("\n");
    show_rates(w);
    show_queues(w);
    show_memory(w);
    show_ops(w);
    fflush(stdout);
}

static void show_json(const watch *w) {
    json_t *object = json_object();
    for (int i = 0; i < w->now.count; i++) {
        const top_value *value = &w->now.values[i];
        json_t *group = json_object_get(object, value->group);
        if (!group) {
            group = json_object();
            if (json_object_set_new(object, value->group, group) != 0)
                continue;
        }
        json_object_set_new(group, value->name, json_integer(value->value));
    }
    tool_put_json(stdout, object);
    json_decref(object);
}

/* ---- the command ---- */

static struct termios before_top;
static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number) {
    (void)signal_number;
    is_interrupted = 1;
}

/* Keys without Enter, and none of them shown. */
static bool begin_keys(void) {
    struct termios keys;
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before_top) != 0)
        return false;
    keys = before_top;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

/* Until the time is over; true: q was pressed, or a signal came. */
static bool wait_or_quit(bool has_keys, int ms) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = '\0';
    if (poll(&input, has_keys ? 1 : 0, ms) > 0 && read(STDIN_FILENO, &key, 1) != 1)
        return true;
    return is_interrupted || key == 'q';
}

static void read_name(watch *w) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/comm", w->process);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(w->name, sizeof(w->name), file))
        snprintf(w->name, sizeof(w->name), "?");
    w->name[strcspn(w->name, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Its number may be another's by now: then that has another page, or none. */
static bool has_ended(const watch *w) {
    return kill((pid_t)w->process, 0) != 0 && errno == ESRCH;
}

static int run(const tool_arguments *arguments, watch *w, const top_page *page, int interval_ms) {
    bool is_json = tool_has(arguments, "--json"),
         is_once = is_json || tool_has(arguments, "--once");
    w->is_terminal = !is_once && isatty(STDOUT_FILENO);
    bool has_keys = w->is_terminal && begin_keys(), is_over = false;
    int code = TOOL_OK;
    for (int round = 0; code == TOOL_OK && !is_over; round++) {
        w->before = w->now;
        if (has_ended(w)) {
            printf("process %ld has ended\n", w->process);
            break;
        }
        if (!top_page_read(page, &w->now))
            code = tool_fail(arguments, "the page of process %ld cannot be read", w->process);
        else if (is_json)
            show_json(w);
        else if (!is_once || round > 0)
            show(w);
        is_over = (is_once && (is_json || round > 0)) ||
                  (code == TOOL_OK && wait_or_quit(has_keys, interval_ms));
    }
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &before_top);
    return code;
}

int tool_top(const tool_arguments *arguments) {
    static watch w;
    top_page page;
    char why[200], *end;
    const char *interval = tool_value(arguments, "--interval");
    double s = interval ? strtod(interval, &end) : 1;
    if (interval && (end == interval || *end || !(s >= 0.1 && s <= 3600))) {
        (void)tool_fail(arguments, "--interval is %s, and takes 0.1 to 3600 seconds", interval);
        return TOOL_USAGE;
    }
    w.process = strtol(arguments->operands[0], &end, 10);
    if (*end || w.process <= 0) {
        (void)tool_fail(arguments, "%s is no number of a process", arguments->operands[0]);
        return TOOL_USAGE;
    }
    if (!top_page_open(&page, w.process, why))
        return tool_fail(arguments, "%s", why);
    read_name(&w);
    int code = run(arguments, &w, &page, (int)(s * 1000));
    top_page_close(&page);
    return code;
}
