/* eddy trace diff */
#include "command.h"
#include "memory.h"
#include "output.h"
#include "screen.h"
#include "trace_model.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct compared {
    const char *text;
    int64_t counts[2], totals_ns[2];
} compared;

static int64_t change(const compared *of) {
    return of->totals_ns[1] - of->totals_ns[0];
}

static int by_change(const void *a, const void *b) {
    int64_t left = llabs(change(a)), right = llabs(change(b));
    if (left != right)
        return left > right ? -1 : 1;
    return strcmp(((const compared *)a)->text, ((const compared *)b)->text);
}

static const trace_groups *groups_of(const trace_model *model, const char *by) {
    return strcmp(by, "phase") == 0   ? &model->by_phase
           : strcmp(by, "place") == 0 ? &model->by_place
                                      : &model->by_op;
}

/* All texts of the two; freed by the caller. *count of them. */
static compared *compare(const trace_model models[2], const char *by, size_t *count) {
    text_table texts = {0};
    size_t room = 2;
    *count = 0;
    for (int m = 0; m < 2; m++)
        room += groups_of(&models[m], by)->texts.count;
    compared *all = tool_calloc(room, sizeof(*all));
    for (int m = 0; m < 2; m++) {
        const trace_groups *groups = groups_of(&models[m], by);
        for (uint32_t g = 0; g < groups->room && g < groups->texts.count; g++) {
            const char *text = text_table_text(&groups->texts, g);
            if (groups->groups[g].count == 0)
                continue;
            compared *of = &all[text_table_number(&texts, text)];
            of->text = text;
            of->counts[m] = groups->groups[g].count;
            of->totals_ns[m] = groups->groups[g].total_ns;
        }
    }
    for (size_t i = 0; i < room; i++)
        if (all[i].text)
            all[(*count)++] = all[i];
    text_table_free(&texts);
    if (*count > 1)
        qsort(all, *count, sizeof(*all), by_change);
    return all;
}

static int64_t mean(const compared *of, int m) {
    return of->counts[m] > 0 ? of->totals_ns[m] / of->counts[m] : 0;
}

static void format_ratio(const compared *of, char cell[TOOL_CELL_BYTES]) {
    cell[0] = '\0';
    if (mean(of, 0) > 0 && of->counts[1] > 0)
        snprintf(cell, TOOL_CELL_BYTES, "%.2f x", (double)mean(of, 1) / (double)mean(of, 0));
}

static void fill_row(tool_row *row, const compared *of) {
    char ns[TOOL_CELL_BYTES];
    row->text = of->text;
    tool_format_ns(llabs(change(of)), ns);
    snprintf(row->cells[0], TOOL_CELL_BYTES, "%s%.20s",
             change(of) > 0   ? "+"
             : change(of) < 0 ? "-"
                              : "",
             ns);
    format_ratio(of, row->cells[1]);
    for (int m = 0; m < 2; m++) {
        tool_format_ns(of->totals_ns[m], row->cells[2 + m]);
        tool_format_count(of->counts[m], row->cells[4 + m]);
    }
}

static json_t *as_json(const compared *of) {
    return json_pack("{ss sI sI sI sI}", "name", of->text, "count_a", (json_int_t)of->counts[0],
                     "count_b", (json_int_t)of->counts[1], "total_a_ns",
                     (json_int_t)of->totals_ns[0], "total_b_ns", (json_int_t)of->totals_ns[1]);
}

static void show(const compared *all, size_t count, const char *by) {
    tool_table table = {7, {by, "change", "each", "total A", "total B", "count A", "count B"}};
    tool_row *rows = tool_calloc(count, sizeof(*rows));
    for (size_t i = 0; i < count; i++)
        fill_row(&rows[i], &all[i]);
    tool_table_print(&table, rows, count);
    free(rows);
}

static void show_json(const trace_model models[2], const compared *all, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, as_json(&all[i]));
    json_t *object =
        json_pack("{sI sI so}", "duration_a_ns", (json_int_t)trace_model_duration(&models[0]),
                  "duration_b_ns", (json_int_t)trace_model_duration(&models[1]), "changes", array);
    tool_put_json(stdout, object);
    json_decref(object);
}

static void show_head(const trace_model models[2]) {
    char took[2][TOOL_CELL_BYTES], heading[100];
    for (int m = 0; m < 2; m++)
        tool_format_ns(trace_model_duration(&models[m]), took[m]);
    snprintf(heading, sizeof(heading), "A took %s, B %s", took[0], took[1]);
    tool_heading(heading);
    printf("\n");
}

int tool_trace_diff(const tool_arguments *arguments) {
    static trace_model models[2];
    const char *by = tool_has(arguments, "--by") ? tool_value(arguments, "--by") : "op";
    int64_t top = 20;
    int code = TOOL_OK;
    if (!tool_integer(arguments, "--top", 1, UINT32_MAX, &top))
        return TOOL_USAGE;
    for (int m = 0; m < 2 && code == TOOL_OK; m++)
        if (!trace_model_read(&models[m], arguments->operands[m]))
            code = tool_fail(arguments, "%s", models[m].file.error);
    if (code == TOOL_OK) {
        size_t count;
        compared *all = compare(models, by, &count);
        size_t shown = count < (size_t)top ? count : (size_t)top;
        if (tool_has(arguments, "--json")) {
            show_json(models, all, shown);
        } else {
            show_head(models);
            show(all, shown, by);
            if (count > shown)
                tool_say("and %zu more (--top)", count - shown);
        }
        free(all);
    }
    for (int m = 0; m < 2; m++)
        trace_model_free(&models[m]);
    return code;
}
