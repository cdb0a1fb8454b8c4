/* Ranges that are two events, "B" and "E", as other programs write them: the second becomes one event "X". */
#ifndef TOOLS_EDDY_TRACE_RANGES_H
#define TOOLS_EDDY_TRACE_RANGES_H

#include "text_table.h"
#include "trace_reader.h"

#define RANGES_ROWS_MOST 4096 /* threads; of further ones no two events are one */
#define RANGES_OPEN_MOST 128  /* within each other in a row; deeper ones are left out */

typedef struct trace_ranges {
    text_table texts;
    struct ranges_row *rows;
    uint32_t row_count, row_room, last_row;
} trace_ranges;

/* Where the event ends a range that is open it becomes that range; else it stays what it is. */
void trace_ranges_take(trace_ranges *ranges, trace_event *event);
void trace_ranges_free(trace_ranges *ranges);

#endif
