/* eddy trace summary */
#include "command.h"
#include "screen.h"
#include "trace_gaps.h"
#include "trace_path.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES (TRACE_TEXT_BYTES + 40)
#define WAITS_SHOWN 10

typedef struct summary {
    const tool_arguments *arguments;
    trace_model *model;
    trace_order order;
    size_t top;
    json_t *json; /* NULL: text */
} summary;

static const struct by {
    const char *name, *heading;
    size_t offset;
} bys[] = {
    {"op", "op", offsetof(trace_model, by_op)},
    {"phase", "phase", offsetof(trace_model, by_phase)},
    {"thread", "thread (kernels)", offsetof(trace_model, by_thread)},
    {"stream", "stream (kernels)", offsetof(trace_model, by_stream)},
    {"place", "place (kernels)", offsetof(trace_model, by_place)},
};
enum { BYS = sizeof(bys) / sizeof(*bys) };

static void put(json_t *object, const char *name, int64_t value) {
    json_object_set_new(object, name, json_integer(value));
}

/* Of bytes that are no UTF-8 jansson makes nothing. */
static void put_text(json_t *object, const char *name, const char *text) {
    json_t *value = json_string(text);
    json_object_set_new(object, name, value ? value : json_string("?"));
}

/* ---- groups ---- */

typedef struct listed {
    const char *text;
    const trace_group *group;
} listed;

static int by_total(const void *a, const void *b) {
    const listed *left = a, *right = b;
    if (left->group->total_ns != right->group->total_ns)
        return left->group->total_ns > right->group->total_ns ? -1 : 1;
    return strcmp(left->text, right->text);
}

/* The greatest first; *total_ns of all. Freed by the caller; NULL: none, or no memory. */
static listed *list(const trace_groups *groups, size_t *count, int64_t *total_ns) {
    listed *all = malloc((groups->room + 1) * sizeof(*all));
    *count = 0;
    *total_ns = 0;
    for (uint32_t g = 0; all && g < groups->room && g < groups->texts.count; g++)
        if (groups->groups[g].count > 0) {
            all[(*count)++] = (listed){text_table_text(&groups->texts, g), &groups->groups[g]};
            *total_ns += groups->groups[g].total_ns;
        }
    if (*count > 1)
        qsort(all, *count, sizeof(*all), by_total);
    return all;
}

static json_t *group_json(const listed *of, int64_t total_ns) {
    json_t *object = json_object();
    put_text(object, "name", of->text);
    put(object, "count", of->group->count);
    put(object, "total_ns", of->group->total_ns);
    put(object, "mean_ns", of->group->total_ns / of->group->count);
    put(object, "p50_ns", trace_group_percentile(of->group, 0.5));
    put(object, "p99_ns", trace_group_percentile(of->group, 0.99));
    put(object, "max_ns", of->group->most_ns);
    json_object_set_new(
        object, "share",
        json_real(total_ns > 0 ? (double)of->group->total_ns / (double)total_ns : 0));
    return object;
}

static void fill_row(tool_row *row, const listed *of, int64_t total_ns) {
    row->text = of->text;
    tool_format_count(of->group->count, row->cells[0]);
    tool_format_ns(of->group->total_ns, row->cells[1]);
    tool_format_share(of->group->total_ns, total_ns, row->cells[2]);
    tool_format_ns(of->group->total_ns / of->group->count, row->cells[3]);
    tool_format_ns(trace_group_percentile(of->group, 0.5), row->cells[4]);
    tool_format_ns(trace_group_percentile(of->group, 0.99), row->cells[5]);
}

static void show_groups(summary *s, const struct by *by) {
    const trace_groups *groups = (const trace_groups *)((const char *)s->model + by->offset);
    const tool_table table = {7, {by->heading, "count", "total", "share", "mean", "p50", "p99"}};
    size_t count;
    int64_t total_ns;
    listed *all = list(groups, &count, &total_ns);
    size_t shown = count < s->top ? count : s->top;
    tool_row *rows = calloc(shown + 1, sizeof(*rows));
    json_t *array = s->json ? json_array() : NULL;
    for (size_t i = 0; rows && i < shown; i++) {
        fill_row(&rows[i], &all[i], total_ns);
        if (array)
            json_array_append_new(array, group_json(&all[i], total_ns));
    }
    if (array) {
        json_object_set_new(s->json, by->name, array);
    } else if (rows && shown > 0) {
        printf("\n");
        tool_table_print(&table, rows, shown);
        if (count > shown)
            printf("and %zu more (--top)\n", count - shown);
    }
    free(rows);
    free(all);
}

/* ---- the whole ---- */

static void show_head(summary *s) {
    const trace_model *model = s->model;
    char took[TOOL_CELL_BYTES];
    int64_t ns = model->end_ns > model->begin_ns ? model->end_ns - model->begin_ns : 0;
    tool_format_ns(ns, took);
    if (s->json) {
        put(s->json, "duration_ns", ns);
        put(s->json, "events", model->event_count);
        put(s->json, "dropped", model->dropped);
        put_text(s->json, "ended", model->why);
        json_object_set_new(s->json, "is_cut", json_boolean(model->file.is_cut));
        return;
    }
    char heading[200];
    snprintf(heading, sizeof(heading), "%s: %s, %" PRId64 " events", s->arguments->operands[0],
             took, model->event_count);
    tool_heading(heading);
    if (model->file.is_cut)
        printf("The file was cut off; this is what can be read.\n");
    if (strcmp(model->why, "limit") == 0)
        printf("The trace ended at its limit (EDDY_TRACE_LIMIT).\n");
    if (model->dropped > 0)
        printf("%" PRId64 " events are missing, for which there was no room.\n", model->dropped);
    if (model->kernels.left_out + model->calls.left_out + model->edges.left_out > 0)
        printf("Gaps and critical path are of the first %zu kernels.\n", model->kernels.count);
}

/* ---- gaps ---- */

static void show_gap(summary *s, json_t *array, uint32_t row, trace_gap gap,
                     const trace_gap_sum *sum, int64_t whole_ns, tool_row *to, char *text) {
    char name[NAME_BYTES];
    trace_row_name(s->model, row, name, sizeof(name));
    if (array) {
        json_t *object = json_object();
        put_text(object, "thread", name);
        put_text(object, "ended_by", trace_gap_name(gap));
        put(object, "count", sum->count);
        put(object, "total_ns", sum->total_ns);
        put(object, "max_ns", sum->most_ns);
        json_array_append_new(array, object);
        return;
    }
    snprintf(text, 2 * NAME_BYTES, "%s: %s", name, trace_gap_name(gap));
    to->text = text;
    tool_format_count(sum->count, to->cells[0]);
    tool_format_ns(sum->total_ns, to->cells[1]);
    tool_format_share(sum->total_ns, whole_ns, to->cells[2]);
    tool_format_ns(sum->most_ns, to->cells[3]);
}

static void show_gaps(summary *s) {
    const tool_table table = {
        5, {"between kernels, ended by", "count", "total", "of the time", "longest"}};
    size_t row_count = s->model->rows.count, shown = 0;
    int64_t whole_ns = s->model->end_ns - s->model->begin_ns;
    trace_gap_sum *sums = calloc(row_count * TRACE_GAP_COUNT + 1, sizeof(*sums));
    tool_row *rows = calloc(row_count * TRACE_GAP_COUNT + 1, sizeof(*rows));
    char *texts = calloc(row_count * TRACE_GAP_COUNT + 1, 2 * NAME_BYTES);
    json_t *array = s->json ? json_array() : NULL;
    if (sums && rows && texts)
        trace_gaps_sum(&s->order, sums);
    for (uint32_t r = 0; sums && rows && texts && r < row_count; r++)
        for (uint32_t g = 0; g < TRACE_GAP_COUNT; g++)
            if (sums[r * TRACE_GAP_COUNT + g].count > 0) {
                show_gap(s, array, r, (trace_gap)g, &sums[r * TRACE_GAP_COUNT + g], whole_ns,
                         &rows[shown], texts + 2 * NAME_BYTES * shown);
                shown++;
            }
    if (array) {
        json_object_set_new(s->json, "gaps", array);
    } else if (shown > 0) {
        printf("\n");
        tool_table_print(&table, rows, shown);
    }
    free(texts);
    free(rows);
    free(sums);
}

/* ---- the critical path ---- */

static void path_json(summary *s, const trace_path *path) {
    json_t *object = json_object(), *steps = json_array();
    put(object, "duration_ns", path->end_ns - path->begin_ns);
    put(object, "kernels", path->kernel_count);
    put(object, "kernel_ns", path->kernel_ns);
    put(object, "before_calls_ns", path->call_ns);
    put(object, "after_edges_ns", path->edge_ns);
    put(object, "between_kernels_ns", path->thread_ns);
    for (size_t i = 0; i < path->step_count && i < s->top; i++) {
        json_t *step = json_object();
        put_text(step, "op", text_table_text(&s->model->texts, path->steps[i].op));
        put(step, "count", path->steps[i].count);
        put(step, "total_ns", path->steps[i].total_ns);
        json_array_append_new(steps, step);
    }
    json_object_set_new(object, "ops", steps);
    json_object_set_new(s->json, "critical_path", object);
}

static void show_path(summary *s) {
    const tool_table table = {4, {"critical path", "count", "total", "share"}};
    trace_path path;
    if (!trace_path_find(&path, &s->order) || path.kernel_count == 0)
        return;
    if (s->json) {
        path_json(s, &path);
        trace_path_fini(&path);
        return;
    }
    int64_t whole_ns = path.end_ns - path.begin_ns;
    const struct {
        const char *text;
        int64_t ns;
    } parts[] = {{"until the call was made", path.call_ns},
                 {"from an edge to the kernel", path.edge_ns},
                 {"between kernels of a thread", path.thread_ns}};
    size_t shown = path.step_count < s->top ? path.step_count : s->top, count = 0;
    tool_row *rows = calloc(shown + 3, sizeof(*rows));
    for (size_t i = 0; rows && i < shown; i++, count++) {
        rows[count].text = text_table_text(&s->model->texts, path.steps[i].op);
        tool_format_count(path.steps[i].count, rows[count].cells[0]);
        tool_format_ns(path.steps[i].total_ns, rows[count].cells[1]);
        tool_format_share(path.steps[i].total_ns, whole_ns, rows[count].cells[2]);
    }
    for (int p = 0; rows && p < 3; p++)
        if (parts[p].ns > 0) {
            rows[count].text = parts[p].text;
            tool_format_ns(parts[p].ns, rows[count].cells[1]);
            tool_format_share(parts[p].ns, whole_ns, rows[count++].cells[2]);
        }
    printf("\n");
    if (rows)
        tool_table_print(&table, rows, count);
    free(rows);
    trace_path_fini(&path);
}

/* ---- waits, memory ---- */

static void show_wait(summary *s, json_t *array, const trace_wait *wait, tool_row *row,
                      char *text) {
    const text_table *texts = &s->model->texts;
    char thread[NAME_BYTES];
    const char *place = text_table_text(texts, wait->place),
               *why = text_table_text(texts, wait->reason);
    trace_row_name(s->model, wait->row, thread, sizeof(thread));
    if (array) {
        json_t *object = json_object();
        put(object, "total_ns", wait->end_ns - wait->begin_ns);
        put(object, "at_ns", wait->begin_ns);
        put_text(object, "call", text_table_text(texts, wait->op));
        put_text(object, "for", why);
        put_text(object, "place", place);
        put_text(object, "thread", thread);
        json_array_append_new(array, object);
        return;
    }
    snprintf(text, 4 * NAME_BYTES, "%s, for %s%s%s (%s)", text_table_text(texts, wait->op),
             *why ? why : "?", *place ? ", at " : "", place, thread);
    row->text = text;
    tool_format_ns(wait->end_ns - wait->begin_ns, row->cells[0]);
    tool_format_ns(wait->begin_ns, row->cells[1]);
}

/* The longest of what is left. */
static const trace_wait *next_wait(const summary *s, const trace_wait *before) {
    const trace_wait *longest = NULL;
    for (size_t w = 0; w < s->model->waits.count; w++) {
        const trace_wait *wait = &s->order.waits[w];
        int64_t ns = wait->end_ns - wait->begin_ns;
        int64_t most = before ? before->end_ns - before->begin_ns : INT64_MAX;
        bool is_left = ns < most || (ns == most && wait > before);
        if (is_left && (!longest || ns > longest->end_ns - longest->begin_ns))
            longest = wait;
    }
    return longest;
}

static void show_waits(summary *s) {
    const tool_table table = {3, {"longest waits", "took", "at"}};
    tool_row rows[WAITS_SHOWN] = {0};
    char texts[WAITS_SHOWN][4 * NAME_BYTES];
    json_t *array = s->json ? json_array() : NULL;
    size_t count = 0;
    for (const trace_wait *wait = next_wait(s, NULL); wait && count < WAITS_SHOWN;
         wait = next_wait(s, wait)) {
        show_wait(s, array, wait, &rows[count], texts[count]);
        count++;
    }
    if (array) {
        json_object_set_new(s->json, "waits", array);
    } else if (count > 0) {
        printf("\n");
        tool_table_print(&table, rows, count);
    }
}

static void show_memory(summary *s) {
    const trace_model *model = s->model;
    const char *op = text_table_text(&model->texts, model->most_live_op),
               *place = text_table_text(&model->texts, model->most_live_place);
    char bytes[TOOL_CELL_BYTES], at[TOOL_CELL_BYTES];
    if (model->most_live <= 0)
        return;
    if (s->json) {
        json_t *object = json_object();
        put(object, "bytes", model->most_live);
        put(object, "at_ns", model->most_live_ns);
        put_text(object, "op", op);
        put_text(object, "place", place);
        json_object_set_new(s->json, "memory_peak", object);
        return;
    }
    tool_format_bytes(model->most_live, bytes);
    tool_format_ns(model->most_live_ns, at);
    printf("\npeak of memory: %s, at %s, in %s%s%s\n", bytes, at, op, *place ? ", " : "", place);
}

/* ---- the command ---- */

static void show(summary *s, const char *by) {
    for (int b = 0; by && b < BYS; b++)
        if (strcmp(by, bys[b].name) == 0)
            show_groups(s, &bys[b]);
    if (by)
        return;
    show_groups(s, &bys[0]);
    show_groups(s, &bys[1]);
    show_gaps(s);
    show_path(s);
    show_waits(s);
    show_memory(s);
}

int tool_trace_summary(const tool_arguments *arguments) {
    static trace_model model;
    const char *top = tool_value(arguments, "--top");
    summary s = {
        .arguments = arguments, .model = &model, .top = top ? (size_t)strtoul(top, NULL, 10) : 20};
    if (s.top == 0) {
        (void)tool_fail(arguments, "--top is %s, and takes a number from 1 on", top);
        return TOOL_USAGE;
    }
    int code = TOOL_OK;
    if (!trace_model_read(&model, arguments->operands[0]))
        code = tool_fail(arguments, "%s", model.file.error);
    else if (!trace_order_init(&s.order, &model))
        code = tool_fail(arguments, "there is no memory");
    if (code == TOOL_OK) {
        if (tool_has(arguments, "--json"))
            s.json = json_object();
        show_head(&s);
        show(&s, tool_value(arguments, "--by"));
        if (s.json)
            json_dumpf(s.json, stdout, JSON_INDENT(2));
        if (s.json)
            printf("\n");
        json_decref(s.json);
    }
    trace_order_fini(&s.order);
    trace_model_free(&model);
    return code;
}
