#include "run_report.h"

#include "library_error.h"
#include "memory.h"
#include "output.h"
#include "run_feeds.h"
#include "screen.h"
#include <eddy/host.h>
#include <eddy/tensor.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 400

/* Of the elements that are finite. */
typedef struct output_sum {
    int64_t count, finite_count;
    double least, most, total;
} output_sum;

void run_times_add(run_times *times, int64_t number, int64_t took_ns) {
    if (number == 0) {
        times->first_ns = took_ns;
        return;
    }
    if (times->count++ == 0 || took_ns < times->least_ns)
        times->least_ns = took_ns;
    times->total_ns += took_ns;
}

/* ---- outputs ---- */

static bool sum_up(eddy_tensor *tensor, output_sum *sum) {
    int64_t count = eddy_count_of(tensor);
    *sum = (output_sum){.count = count};
    double *values = count >= 0 ? tool_calloc((size_t)count, sizeof(*values)) : NULL;
    bool is_read = values && eddy_read_as(tensor, EDDY_F64, values, (size_t)count * sizeof(*values),
                                          NULL) == EDDY_OK;
    for (int64_t i = 0; is_read && i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        if (sum->finite_count++ == 0)
            sum->least = sum->most = values[i];
        sum->least = fmin(sum->least, values[i]);
        sum->most = fmax(sum->most, values[i]);
        sum->total += values[i];
    }
    free(values);
    return is_read;
}

static void name_output(const char *name, eddy_tensor *tensor, char buffer[NAME_BYTES]) {
    eddy_shape shape = eddy_shape_of(tensor);
    int at = snprintf(buffer, NAME_BYTES, "%.80s ", name);
    run_format_shape(eddy_dtype_of(tensor), &shape, buffer + at, (size_t)(NAME_BYTES - at));
}

static void fill_row(tool_row *row, const char *text, const output_sum *sum) {
    row->text = text;
    tool_format_count(sum->count - sum->finite_count, row->cells[3]);
    if (sum->finite_count == 0)
        return;
    snprintf(row->cells[0], TOOL_CELL_BYTES, "%.6g", sum->least);
    snprintf(row->cells[1], TOOL_CELL_BYTES, "%.6g", sum->most);
    snprintf(row->cells[2], TOOL_CELL_BYTES, "%.6g", sum->total / (double)sum->finite_count);
}

static json_t *output_json(const char *name, eddy_tensor *tensor, const output_sum *sum) {
    json_t *object = json_object(), *dims = json_array(), *text = json_string(name);
    eddy_shape shape = eddy_shape_of(tensor);
    for (int32_t a = 0; a < shape.rank; a++)
        json_array_append_new(dims, json_integer(shape.dims[a]));
    json_object_set_new(object, "name", text ? text : json_string("?"));
    json_object_set_new(object, "dtype", json_string(eddy_dtype_name(eddy_dtype_of(tensor))));
    json_object_set_new(object, "shape", dims);
    json_object_set_new(object, "not_finite", json_integer(sum->count - sum->finite_count));
    if (sum->finite_count > 0) {
        json_object_set_new(object, "min", json_real(sum->least));
        json_object_set_new(object, "max", json_real(sum->most));
        json_object_set_new(object, "mean", json_real(sum->total / (double)sum->finite_count));
    }
    return object;
}

/* ---- the program and its times ---- */

/* Of <eddy/program.h>, as JSON has them. */
#define INFO_LIST(row)                                                                             \
    row(instruction_count) row(recorded_count) row(group_count) row(input_count) row(output_count) \
        row(state_count) row(constant_count) row(captured_count) row(draw_count) row(arena_bytes)  \
            row(arena_bound) row(program_bytes) row(estimated_ns) row(stream_count)                \
                row(wait_count) row(streams_ns)

static json_t *report_json(const eddy_program_info *info, const run_times *times) {
    json_t *object = json_object(), *of = json_object();
    json_object_set_new(object, "load_ns", json_integer(times->load_ns));
    json_object_set_new(object, "runs", json_integer(times->count + 1));
    json_object_set_new(object, "first_ns", json_integer(times->first_ns));
    if (times->count > 0) {
        json_object_set_new(object, "mean_ns", json_integer(times->total_ns / times->count));
        json_object_set_new(object, "min_ns", json_integer(times->least_ns));
    }
#define INFO_ROW(name) json_object_set_new(of, #name, json_integer(info->name));
    INFO_LIST(INFO_ROW)
#undef INFO_ROW
    json_object_set_new(object, "program", of);
    return object;
}

static void show_head(const tool_arguments *arguments, const eddy_program_info *info,
                      const run_times *times) {
    char heading[400], cell[TOOL_CELL_BYTES], other[TOOL_CELL_BYTES], estimate[TOOL_CELL_BYTES];
    tool_format_ns(times->load_ns, cell);
    snprintf(heading, sizeof(heading),
             "%.200s: %" PRId64 " instructions of %" PRId64 " calls, loaded in %s",
             arguments->operands[0], info->instruction_count, info->recorded_count, cell);
    tool_heading(heading);
    tool_format_bytes(info->arena_bytes, cell);
    tool_format_bytes(info->arena_bound, other);
    tool_format_ns(info->estimated_ns, estimate);
    printf("A run takes %s beside its outputs, of which %s are alive at once, and %s on one "
           "thread by estimate.\n",
           cell, other, estimate);
    tool_format_ns(times->first_ns, cell);
    printf("\nfirst run: %s\n", cell);
    if (times->count == 0)
        return;
    tool_format_ns(times->total_ns / times->count, cell);
    tool_format_ns(times->least_ns, other);
    printf("%" PRId64 " more: mean %s, least %s\n", times->count, cell, other);
}

/* ---- all of it ---- */

static bool report_outputs(const tool_arguments *arguments,
                           const eddy_program_binding_info *outputs, eddy_tensor **results,
                           int64_t count, json_t *json) {
    const tool_table table = {5, {"output", "min", "max", "mean", "not finite"}};
    tool_row *rows = tool_calloc((size_t)count, sizeof(*rows));
    char(*texts)[NAME_BYTES] = tool_calloc((size_t)count, NAME_BYTES);
    json_t *array = json ? json_array() : NULL;
    bool is_read = true;
    for (int64_t o = 0; is_read && o < count; o++) {
        output_sum sum;
        is_read = sum_up(results[o], &sum);
        if (!is_read)
            (void)tool_fail_library(arguments, outputs[o].name);
        else if (array)
            json_array_append_new(array, output_json(outputs[o].name, results[o], &sum));
        name_output(outputs[o].name, results[o], texts[o]);
        fill_row(&rows[o], texts[o], &sum);
    }
    if (array)
        json_object_set_new(json, "outputs", array);
    else if (is_read && count > 0) {
        printf("\n");
        tool_table_print(&table, rows, (size_t)count);
    }
    free(rows);
    free(texts);
    return is_read;
}

bool run_report(const tool_arguments *arguments, const eddy_program *program,
                const run_times *times, const eddy_program_binding_info *outputs,
                eddy_tensor **results, int64_t count) {
    eddy_program_info info = {.size = sizeof(info)};
    (void)eddy_program_describe(program, &info);
    json_t *json = tool_has(arguments, "--json") ? report_json(&info, times) : NULL;
    if (!json)
        show_head(arguments, &info, times);
    bool is_read = report_outputs(arguments, outputs, results, count, json);
    if (json && is_read)
        tool_put_json(stdout, json);
    json_decref(json);
    return is_read;
}
