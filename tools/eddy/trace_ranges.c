#include "trace_ranges.h"

#include "memory.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct open_range {
    uint32_t name, category;
    int64_t begin_ns;
} open_range;

typedef struct ranges_row {
    int64_t process, thread;
    open_range *open; /* RANGES_OPEN_MOST; NULL: none has begun */
    int open_count;
} ranges_row;

/* The last one that was asked for is mostly the one. NULL: there is no room. */
static ranges_row *row_of(trace_ranges *ranges, const trace_event *event) {
    ranges_row *rows = ranges->rows;
    uint32_t row = ranges->last_row;
    if (row >= ranges->row_count || rows[row].process != event->process ||
        rows[row].thread != event->thread)
        for (row = 0; row < ranges->row_count; row++)
            if (rows[row].process == event->process && rows[row].thread == event->thread)
                break;
    if (row == RANGES_ROWS_MOST)
        return NULL;
    if (row == ranges->row_room) {
        ranges->row_room = ranges->row_room ? 2 * ranges->row_room : 64;
        ranges->rows = rows = tool_realloc(rows, ranges->row_room, sizeof(*rows));
    }
    if (row == ranges->row_count)
        rows[ranges->row_count++] =
            (ranges_row){.process = event->process, .thread = event->thread};
    ranges->last_row = row;
    return &rows[row];
}

static void begin(trace_ranges *ranges, const trace_event *event, ranges_row *row) {
    if (row->open_count == INT_MAX)
        return;
    if (!row->open)
        row->open = tool_calloc(RANGES_OPEN_MOST, sizeof(*row->open));
    if (row->open_count < RANGES_OPEN_MOST)
        row->open[row->open_count] =
            (open_range){text_table_number(&ranges->texts, event->name),
                         text_table_number(&ranges->texts, event->category), event->at_ns};
    row->open_count++;
}

static void end(const trace_ranges *ranges, trace_event *event, ranges_row *row) {
    if (row->open_count == 0 || --row->open_count >= RANGES_OPEN_MOST)
        return;
    const open_range *open = &row->open[row->open_count];
    /* Neither time is negative. */
    int64_t took_ns = event->at_ns - open->begin_ns;
    event->kind = 'X';
    event->at_ns = open->begin_ns;
    event->took_ns = took_ns > 0 ? took_ns : 0;
    snprintf(event->name, sizeof(event->name), "%s", text_table_text(&ranges->texts, open->name));
    snprintf(event->category, sizeof(event->category), "%s",
             text_table_text(&ranges->texts, open->category));
}

void trace_ranges_take(trace_ranges *ranges, trace_event *event) {
    if ((event->kind != 'B' && event->kind != 'E') || !event->has_time || event->at_ns < 0)
        return;
    ranges_row *row = row_of(ranges, event);
    if (row && event->kind == 'B')
        begin(ranges, event, row);
    else if (row)
        end(ranges, event, row);
}

void trace_ranges_free(trace_ranges *ranges) {
    for (uint32_t r = 0; r < ranges->row_count; r++)
        free(ranges->rows[r].open);
    free(ranges->rows);
    text_table_free(&ranges->texts);
    *ranges = (trace_ranges){0};
}
