/* eddy trace summary */
#include "command.h"
#include "memory.h"
#include "output.h"
#include "screen.h"
#include "trace_gaps.h"
#include "trace_path.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES (TRACE_TEXT_BYTES + 40)
#define LINE_BYTES (4 * NAME_BYTES)

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

static void put_text(json_t *object, const char *name, const char *text) {
    json_object_set_new(object, name, json_string(text));
}

/* An array of the JSON, or a table: `shown` rows of `count`. */
static void show_rows(summary *s, const char *name, json_t *array, const tool_table *table,
                      const tool_row *rows, size_t shown, size_t count) {
    if (array) {
        json_object_set_new(s->json, name, array);
    } else if (shown > 0) {
        printf("\n");
        tool_table_print(table, rows, shown);
        if (count > shown)
            tool_say("and %zu more (--top)", count - shown);
    }
}

/* ---- groups ---- */

typedef struct row_group {
    const char *text;
    const trace_group *group;
} row_group;

static int by_total(const void *a, const void *b) {
    const row_group *left = a, *right = b;
    if (left->group->total_ns != right->group->total_ns)
        return left->group->total_ns > right->group->total_ns ? -1 : 1;
    return strcmp(left->text, right->text);
}

/* The greatest first; *total_ns of all. Freed by the caller. */
static row_group *list(const trace_groups *groups, size_t *count, int64_t *total_ns) {
    row_group *all = tool_calloc(groups->room, sizeof(*all));
    *count = 0;
    *total_ns = 0;
    for (uint32_t g = 0; g < groups->room && g < groups->texts.count; g++)
        if (groups->groups[g].count > 0) {
            all[(*count)++] = (row_group){text_table_text(&groups->texts, g), &groups->groups[g]};
            *total_ns += groups->groups[g].total_ns < INT64_MAX - *total_ns
                             ? groups->groups[g].total_ns
                             : INT64_MAX - *total_ns;
        }
    if (*count > 1)
        qsort(all, *count, sizeof(*all), by_total);
    return all;
}

static json_t *group_json(const row_group *of, int64_t total_ns) {
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

static void fill_row(tool_row *row, const row_group *of, int64_t total_ns) {
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
    row_group *all = list(groups, &count, &total_ns);
    size_t shown = count < s->top ? count : s->top;
    tool_row *rows = tool_calloc(shown, sizeof(*rows));
    json_t *array = s->json ? json_array() : NULL;
    for (size_t i = 0; i < shown; i++) {
        fill_row(&rows[i], &all[i], total_ns);
        if (array)
            json_array_append_new(array, group_json(&all[i], total_ns));
    }
    show_rows(s, by->name, array, &table, rows, shown, count);
    free(rows);
    free(all);
}

/* ---- the whole ---- */

static void show_head(summary *s) {
    const trace_model *model = s->model;
    char took[TOOL_CELL_BYTES];
    tool_format_ns(trace_model_duration(model), took);
    if (s->json) {
        put(s->json, "duration_ns", trace_model_duration(model));
        put(s->json, "events", model->event_count);
        put(s->json, "dropped", model->dropped);
        put_text(s->json, "ended", model->why);
        json_object_set_new(s->json, "is_cut", json_boolean(model->file.is_cut));
        return;
    }
    char heading[TOOL_LINE_BYTES];
    snprintf(heading, sizeof(heading), "%s: %s, %" PRId64 " events", s->arguments->operands[0],
             took, model->event_count);
    tool_heading(heading);
    if (model->file.is_cut)
        tool_say("The file was cut off; this is what can be read.");
    if (strcmp(model->why, "limit") == 0)
        tool_say("The trace ended at its limit (EDDY_TRACE_LIMIT).");
    if (model->dropped > 0)
        tool_say("%" PRId64 " events are missing, for which there was no room.", model->dropped);
    if (model->kernels.left_out + model->calls.left_out + model->edges.left_out > 0)
        tool_say("Gaps and critical path are of the first %zu kernels.", model->kernels.count);
}

/* ---- gaps ---- */

static int by_gap_total(const void *a, const void *b) {
    const trace_gap_sum *left = *(const trace_gap_sum *const *)a,
                        *right = *(const trace_gap_sum *const *)b;
    if (left->total_ns != right->total_ns)
        return left->total_ns > right->total_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void show_gap(const summary *s, json_t *array, const char *thread, trace_gap gap,
                     const trace_gap_sum *sum, tool_row *to, char *text) {
    if (array) {
        json_t *object = json_object();
        put_text(object, "thread", thread);
        put_text(object, "ended_by", trace_gap_name(gap));
        put(object, "count", sum->count);
        put(object, "total_ns", sum->total_ns);
        put(object, "max_ns", sum->most_ns);
        json_array_append_new(array, object);
        return;
    }
    snprintf(text, LINE_BYTES, "%s: %s", thread, trace_gap_name(gap));
    to->text = text;
    tool_format_count(sum->count, to->cells[0]);
    tool_format_ns(sum->total_ns, to->cells[1]);
    tool_format_share(sum->total_ns, trace_model_duration(s->model), to->cells[2]);
    tool_format_ns(sum->most_ns, to->cells[3]);
}

static void show_gaps(summary *s) {
    const tool_table table = {
        5, {"between kernels, ended by", "count", "total", "of the time", "longest"}};
    size_t most = s->model->rows.count * TRACE_GAP_COUNT, count = 0;
    trace_gap_sum *sums = tool_calloc(most, sizeof(*sums));
    const trace_gap_sum **listed = tool_calloc(most, sizeof(*listed));
    trace_gaps_sum(&s->order, sums);
    for (size_t i = 0; i < most; i++)
        if (sums[i].count > 0)
            listed[count++] = &sums[i];
    if (count > 1)
        qsort(listed, count, sizeof(*listed), by_gap_total);
    size_t shown = count < s->top ? count : s->top;
    tool_row *rows = tool_calloc(shown, sizeof(*rows));
    char(*texts)[LINE_BYTES] = tool_calloc(shown, sizeof(*texts));
    json_t *array = s->json ? json_array() : NULL;
    for (size_t i = 0; i < shown; i++) {
        char thread[NAME_BYTES];
        size_t at = (size_t)(listed[i] - sums);
        trace_row_name(s->model, (uint32_t)(at / TRACE_GAP_COUNT), thread, sizeof(thread));
        show_gap(s, array, thread, (trace_gap)(at % TRACE_GAP_COUNT), listed[i], &rows[i],
                 texts[i]);
    }
    show_rows(s, "gaps", array, &table, rows, shown, count);
    free(texts);
    free(rows);
    free(listed);
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

static void path_table(summary *s, const trace_path *path) {
    const tool_table table = {4, {"critical path", "count", "total", "share"}};
    int64_t whole_ns = path->end_ns - path->begin_ns;
    const struct {
        const char *text;
        int64_t ns;
    } parts[] = {{"until the call was made", path->call_ns},
                 {"from an edge to the kernel", path->edge_ns},
                 {"between kernels of a thread", path->thread_ns}};
    size_t shown = path->step_count < s->top ? path->step_count : s->top, count = 0;
    tool_row *rows = tool_calloc(shown + 3, sizeof(*rows));
    for (size_t i = 0; i < shown; i++, count++) {
        rows[count].text = text_table_text(&s->model->texts, path->steps[i].op);
        tool_format_count(path->steps[i].count, rows[count].cells[0]);
        tool_format_ns(path->steps[i].total_ns, rows[count].cells[1]);
        tool_format_share(path->steps[i].total_ns, whole_ns, rows[count].cells[2]);
    }
    for (int p = 0; p < 3; p++)
        if (parts[p].ns > 0) {
            rows[count].text = parts[p].text;
            tool_format_ns(parts[p].ns, rows[count].cells[1]);
            tool_format_share(parts[p].ns, whole_ns, rows[count++].cells[2]);
        }
    show_rows(s, "critical_path", NULL, &table, rows, count, count);
    free(rows);
}

static void show_path(summary *s) {
    trace_path path;
    trace_path_find(&path, &s->order);
    if (path.kernel_count > 0 && s->json)
        path_json(s, &path);
    else if (path.kernel_count > 0)
        path_table(s, &path);
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
    snprintf(text, LINE_BYTES, "%s, for %s%s%s (%s)", text_table_text(texts, wait->op),
             *why ? why : "?", *place ? ", at " : "", place, thread);
    row->text = text;
    tool_format_ns(wait->end_ns - wait->begin_ns, row->cells[0]);
    tool_format_ns(wait->begin_ns, row->cells[1]);
}

static int by_length(const void *a, const void *b) {
    const trace_wait *left = *(const trace_wait *const *)a, *right = *(const trace_wait *const *)b;
    int64_t left_ns = left->end_ns - left->begin_ns, right_ns = right->end_ns - right->begin_ns;
    if (left_ns != right_ns)
        return left_ns > right_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void show_waits(summary *s) {
    const tool_table table = {3, {"longest waits", "took", "at"}};
    size_t count = s->model->waits.count, shown = count < s->top ? count : s->top;
    const trace_wait **listed = tool_calloc(count, sizeof(*listed));
    tool_row *rows = tool_calloc(shown, sizeof(*rows));
    char(*texts)[LINE_BYTES] = tool_calloc(shown, sizeof(*texts));
    json_t *array = s->json ? json_array() : NULL;
    for (size_t i = 0; i < count; i++)
        listed[i] = &s->order.waits[i];
    if (count > 1)
        qsort(listed, count, sizeof(*listed), by_length);
    for (size_t i = 0; i < shown; i++)
        show_wait(s, array, listed[i], &rows[i], texts[i]);
    show_rows(s, "waits", array, &table, rows, shown, count);
    free(texts);
    free(rows);
    free(listed);
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
    printf("\n");
    tool_say("peak of memory: %s, at %s, in %s%s%s", bytes, at, op, *place ? ", " : "", place);
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
    int64_t top = 20;
    int code = TOOL_OK;
    if (!tool_integer(arguments, "--top", 1, UINT32_MAX, &top))
        return TOOL_USAGE;
    summary s = {.arguments = arguments, .model = &model, .top = (size_t)top};
    if (!trace_model_read(&model, arguments->operands[0]))
        code = tool_fail(arguments, "%s", model.file.error);
    if (code == TOOL_OK) {
        trace_order_init(&s.order, &model);
        if (tool_has(arguments, "--json"))
            s.json = json_object();
        show_head(&s);
        show(&s, tool_value(arguments, "--by"));
        if (s.json)
            tool_put_json(stdout, s.json);
        json_decref(s.json);
    }
    trace_order_fini(&s.order);
    trace_model_free(&model);
    return code;
}
