/* What of a trace is seen in so many pixels: its ranges are bars in lanes of threads and streams, and what is shorter than a pixel stands together. */
#ifndef TOOLS_EDDY_TIMELINE_H
#define TOOLS_EDDY_TIMELINE_H

#include "command.h"
#include "text_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_MOST 128

/* One within the other, as ranges of a thread are. */
typedef enum lane_level {
    LANE_USER,
    LANE_PROGRAM,
    LANE_CALL,
    LANE_ENGINE,
    LANE_KERNEL,
    LANE_WAIT,
    LANE_LEVELS,
} lane_level;

/* What is shorter than a pixel. */
typedef struct pixel {
    double busy_ns;
    double own_ns; /* of the name so far */
    uint32_t name; /* whose the pixel is */
} pixel;

typedef struct lane {
    int64_t process, thread;
    lane_level level;
    pixel *pixels;
} lane;

typedef struct bar {
    uint32_t lane, name;
    int64_t begin_ns, end_ns;
} bar;

typedef struct row_name {
    int64_t process, thread;
    uint32_t name;
} row_name;

typedef struct timeline {
    int64_t first_ns;         /* of the file */
    int64_t begin_ns, end_ns; /* of the file, then of the part that is shown */
    bool has_time;
    int width;
    text_table texts;
    lane lanes[LANES_MOST];
    uint32_t lane_count;
    const lane *sorted[LANES_MOST]; /* by process, thread, level */
    row_name rows[LANES_MOST];
    uint32_t row_count;
    bar *bars;
    size_t bar_count, bar_room;
    bool is_left_out; /* there is more than fits */
} timeline;

/* Of the file, with --from, --to and --width. TOOL_OK, or what failed, which is told. timeline_fini in either case. */
int timeline_read(timeline *t, const tool_arguments *arguments);
void timeline_fini(timeline *t);

/* From the begin of the part that is shown to a time. */
double timeline_pixels(const timeline *t, int64_t ns);
/* The first of a thread's lanes in `sorted`. */
bool timeline_begins_row(const timeline *t, uint32_t i);
/* Of the lane's thread or stream; NULL: the file names it nowhere. */
const char *timeline_row_name(const timeline *t, const lane *of);

#endif
