/* eddy bench */
#include "bench_run.h"
#include "memory.h"
#include "output.h"
#include "place.h"
#include "screen.h"

#include <eddy/version.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MOST 512
#define CELL_BYTES 32

/* The rows that are wanted, in the order of the list. */
typedef struct bench {
    const tool_arguments *arguments;
    char folder[TOOL_PATH_BYTES]; /* of the programs */
    json_t *list;
    json_t **rows;
    size_t row_count;
    int64_t sample_count;
    int name_width;
    json_t *measured; /* NULL: text */
    size_t printed_count;
} bench;

static const char *text_of(const json_t *row, const char *field) {
    const char *text = json_string_value(json_object_get(row, field));
    return text ? text : "";
}

/* ---- which ---- */

static bool matches(const char *name, const char *wanted) {
    size_t length = strlen(wanted);
    return length > 0 && wanted[length - 1] == '*' ? strncmp(name, wanted, length - 1) == 0
                                                   : strcmp(name, wanted) == 0;
}

static bool is_wanted(const bench *b, const json_t *row) {
    if (b->arguments->operand_count == 0)
        return tool_has(b->arguments, "--list") || json_is_true(json_object_get(row, "is_usual"));
    for (int i = 0; i < b->arguments->operand_count; i++)
        if (matches(text_of(row, "name"), b->arguments->operands[i]))
            return true;
    return false;
}

static bool is_known(const bench *b, const char *wanted) {
    for (size_t i = 0; i < json_array_size(b->list); i++)
        if (matches(text_of(json_array_get(b->list, i), "name"), wanted))
            return true;
    (void)tool_fail(b->arguments, "there is no row %s; eddy bench --list lists them", wanted);
    return false;
}

static bool choose(bench *b) {
    for (int i = 0; i < b->arguments->operand_count; i++)
        if (!is_known(b, b->arguments->operands[i]))
            return false;
    b->rows = tool_calloc(json_array_size(b->list), sizeof(*b->rows));
    for (size_t i = 0; i < json_array_size(b->list); i++) {
        json_t *row = json_array_get(b->list, i);
        if (!is_wanted(b, row))
            continue;
        b->rows[b->row_count++] = row;
        int width = (int)strlen(text_of(row, "name"));
        b->name_width = width > b->name_width ? width : b->name_width;
    }
    return true;
}

static bool load(bench *b) {
    json_error_t error;
    if (!tool_find(b->arguments, "list of rows", TOOL_BENCH_ROWS, "../../bench/installed/rows.json",
                   b->folder))
        return false;
    b->list = json_load_file(b->folder, 0, &error);
    if (!json_is_array(b->list)) {
        (void)tool_fail(b->arguments, "%s is no list of rows: %s", b->folder,
                        b->list ? "it is something else" : error.text);
        return false;
    }
    *strrchr(b->folder, '/') = '\0';
    return true;
}

static void put_row(const bench *b, const json_t *row) {
    const char *name = text_of(row, "name"), *unit = text_of(row, "unit");
    int shown = tool_put_plain(stdout, name, strlen(name));
    printf("%*s", b->name_width - shown + 2, "");
    (void)tool_put_plain(stdout, unit, strlen(unit));
    putchar('\n');
}

static int list_rows(const bench *b) {
    json_t *array = tool_has(b->arguments, "--json") ? json_array() : NULL;
    for (size_t i = 0; i < b->row_count; i++)
        if (array)
            json_array_append(array, b->rows[i]);
        else
            put_row(b, b->rows[i]);
    if (array) {
        tool_put_json(stdout, array);
        json_decref(array);
    }
    return TOOL_OK;
}

/* ---- figures ---- */

typedef struct figures {
    double best, median, spread;
} figures;

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* As bench/table.py has them. False: there are no samples, or some are no numbers. */
static bool figure(const json_t *samples, figures *to) {
    size_t count = json_array_size(samples);
    if (count == 0)
        return false;
    double *sorted = tool_calloc(count, sizeof(*sorted));
    bool are_numbers = true;
    for (size_t i = 0; i < count; i++) {
        are_numbers = are_numbers && json_is_number(json_array_get(samples, i));
        sorted[i] = json_number_value(json_array_get(samples, i));
    }
    qsort(sorted, count, sizeof(*sorted), compare);
    double middle_80 = sorted[count - 1 - count / 10] - sorted[count / 10];
    to->best = sorted[0];
    to->median = sorted[(count - 1) / 2] / 2 + sorted[count / 2] / 2;
    to->spread = to->median != 0 ? middle_80 / to->median : 0;
    free(sorted);
    return are_numbers;
}

/* Columns go where the screen ends: what ran it first. */
static void put_line(const bench *b, const char *name, const char *best, const char *median,
                     const char *spread, const char *path) {
    char line[TOOL_LINE_BYTES];
    int width = tool_width();
    int length = snprintf(line, sizeof(line), "%-*s  %10s  %10s  %6s  %s", b->name_width, name,
                          best, median, spread, path);
    if (length >= (int)sizeof(line))
        length = (int)sizeof(line) - 1;
    if (length > width)
        length = width;
    /* Not within a character. */
    while (length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80)
        length--;
    while (length > 0 && line[length - 1] == ' ')
        length--;
    (void)tool_put_plain(stdout, line, (size_t)length);
    putchar('\n');
    fflush(stdout);
}

static void put_figures(const bench *b, const json_t *row, const figures *f) {
    char best[CELL_BYTES], median[CELL_BYTES], spread[CELL_BYTES];
    const char *unit = text_of(row, "unit");
    snprintf(best, sizeof(best), "%.4g %.8s", f->best, unit);
    snprintf(median, sizeof(median), "%.4g %.8s", f->median, unit);
    snprintf(spread, sizeof(spread), "%.0f %%", 100 * f->spread);
    put_line(b, text_of(row, "row"), best, median, spread, text_of(row, "path"));
}

/* A line of a program is a row of it. */
static void take_row(void *context, char *line) {
    bench *b = context;
    figures f;
    json_t *row = json_loads(line, 0, NULL);
    if (row && figure(json_object_get(row, "samples"), &f)) {
        b->printed_count++;
        if (b->measured) {
            json_object_set_new(row, "best", json_real(f.best));
            json_object_set_new(row, "median", json_real(f.median));
            json_object_set_new(row, "spread", json_real(f.spread));
            json_array_append(b->measured, row);
        } else {
            put_figures(b, row, &f);
        }
    }
    json_decref(row);
}

/* ---- runs ---- */

/* How many rows, from `first` on, one run of a program measures. */
static size_t batch_size(const bench *b, size_t first) {
    const char *batch = text_of(b->rows[first], "batch");
    size_t count = 1;
    while (*batch && first + count < b->row_count &&
           strcmp(text_of(b->rows[first + count], "batch"), batch) == 0)
        count++;
    return count;
}

/* The batch's names with a comma between each two. */
static char *join(const bench *b, size_t first, size_t count) {
    size_t bytes = 1, at = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(text_of(b->rows[first + i], "name")) + 1;
    char *names = tool_calloc(bytes, 1);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(names + at, bytes - at, "%s%s", i ? "," : "",
                               text_of(b->rows[first + i], "name"));
    return names;
}

static bool measure(bench *b, size_t first, size_t count) {
    const json_t *row = b->rows[first], *value;
    char program[TOOL_PATH_BYTES + 128], variables[8][128], why[512] = "";
    char *names = join(b, first, count);
    const char *name;
    int i = 0;
    snprintf(program, sizeof(program), "%s/%.100s", b->folder, text_of(row, "program"));
    bench_run run = {.program = program,
                     .rows = names,
                     .samples = b->sample_count,
                     .threads = json_integer_value(json_object_get(row, "threads")),
                     .is_pinned = json_is_true(json_object_get(row, "is_pinned"))};
    json_object_foreach(json_object_get(row, "environment"), name, value) {
        if (i == 7)
            break;
        snprintf(variables[i], sizeof(variables[i]), "%s=%s", name, json_string_value(value));
        run.variables[i] = variables[i];
        i++;
    }
    size_t before = b->printed_count;
    bool is_measured = bench_run_program(&run, take_row, b, why, (int)sizeof(why));
    if (is_measured && b->printed_count - before != count)
        snprintf(why, sizeof(why), "%zu rows were asked for, and it measured %zu", count,
                 b->printed_count - before);
    if (why[0])
        (void)tool_fail(b->arguments, "%s: %s", names, why);
    free(names);
    return !why[0];
}

static int measure_all(bench *b) {
    int code = TOOL_OK;
    if (tool_has(b->arguments, "--json")) {
        b->measured = json_array();
    } else {
        char head[64];
        snprintf(head, sizeof(head), "Eddy %s", eddy_version_text());
        tool_heading(head);
        put_line(b, "row", "best", "median", "spread", "ran on");
    }
    for (size_t first = 0; first < b->row_count;) {
        size_t count = batch_size(b, first);
        if (!measure(b, first, count))
            code = TOOL_FAILED;
        first += count;
    }
    if (b->measured) {
        tool_put_json(stdout, b->measured);
        json_decref(b->measured);
    }
    return code;
}

int tool_bench(const tool_arguments *arguments) {
    bench b = {.arguments = arguments, .sample_count = 11, .name_width = 4};
    int code = TOOL_FAILED;
    if (!tool_integer(arguments, "--samples", 1, SAMPLES_MOST, &b.sample_count))
        return TOOL_USAGE;
    if (load(&b) && choose(&b))
        code = tool_has(arguments, "--list") ? list_rows(&b) : measure_all(&b);
    free(b.rows);
    json_decref(b.list);
    return code;
}
