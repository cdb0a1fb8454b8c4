/* eddy trace svg */
#include "command.h"
#include "memory.h"
#include "screen.h"
#include "svg_parts.h"
#include "text_table.h"
#include "trace_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MOST 128
#define BARS_MOST 200000
#define LANE_HEIGHT 14
#define ROW_GAP 8
#define LEFT 170 /* for the names of rows */
#define TOP 30

/* One within the other, as ranges of a thread are. */
typedef enum lane_level { USER, PROGRAM, CALL, ENGINE, KERNEL, WAIT, LEVEL_COUNT } lane_level;

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

typedef struct picture {
    int64_t first_ns;         /* of the file */
    int64_t begin_ns, end_ns; /* of the file, then of the picture */
    bool has_time;
    int width;
    text_table texts;
    lane lanes[LANES_MOST];
    uint32_t lane_count;
    const lane *sorted[LANES_MOST];
    int height;
    row_name rows[LANES_MOST];
    uint32_t row_count;
    bar *bars;
    size_t bar_count, bar_room;
    bool is_left_out; /* there is more than fits */
} picture;

/* ---- reading ---- */

static bool level_of(const trace_event *event, lane_level *to) {
    static const struct {
        const char *category;
        lane_level level;
    } levels[] = {{"range", USER},      {"program", PROGRAM}, {"issue", CALL},
                  {"schedule", ENGINE}, {"dispatch", ENGINE}, {"kernel", KERNEL},
                  {"slice", KERNEL},    {"device", KERNEL},   {"callback", KERNEL},
                  {"wait", WAIT}};
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
        if (strcmp(event->category, levels[i].category) == 0) {
            *to = levels[i].level;
            return true;
        }
    /* Of a trace that is not Eddy's: whatever it is. Of Eddy's those that are too short to be seen are left out. */
    *to = KERNEL;
    return strcmp(event->category, "infer") != 0 && strcmp(event->category, "release") != 0;
}

static void measure(void *context, const trace_event *event) {
    picture *p = context;
    if (event->kind == 'M' && strcmp(event->name, "thread_name") == 0 && p->row_count < LANES_MOST)
        p->rows[p->row_count++] =
            (row_name){event->process, event->thread, text_table_number(&p->texts, event->label)};
    if (event->kind != 'X' || !event->has_time || event->at_ns < 0 ||
        event->took_ns >= INT64_MAX - event->at_ns)
        return;
    if (!p->has_time || event->at_ns < p->begin_ns)
        p->begin_ns = event->at_ns;
    /* What takes no time is there, too. */
    int64_t end_ns = event->at_ns + (event->took_ns > 0 ? event->took_ns : 1);
    if (!p->has_time || end_ns > p->end_ns)
        p->end_ns = end_ns;
    p->has_time = true;
}

static lane *lane_of(picture *p, const trace_event *event, lane_level level, uint32_t *number) {
    for (*number = 0; *number < p->lane_count; ++*number) {
        lane *l = &p->lanes[*number];
        if (l->process == event->process && l->thread == event->thread && l->level == level)
            return l;
    }
    if (p->lane_count == LANES_MOST)
        return NULL;
    lane *made = &p->lanes[p->lane_count++];
    *made = (lane){event->process, event->thread, level,
                   tool_calloc((size_t)p->width, sizeof(*made->pixels))};
    return made;
}

static bool add_bar(picture *p, const bar *added) {
    if (p->bar_count == p->bar_room) {
        size_t room = p->bar_room ? 2 * p->bar_room : 1024;
        if (p->bar_room == BARS_MOST)
            return false;
        p->bar_room = room < BARS_MOST ? room : BARS_MOST;
        p->bars = tool_realloc(p->bars, p->bar_room, sizeof(*p->bars));
    }
    p->bars[p->bar_count++] = *added;
    return true;
}

static double pixels(const picture *p, int64_t ns) {
    return (double)(ns - p->begin_ns) * p->width / (double)(p->end_ns - p->begin_ns);
}

/* What is shorter than a pixel: the pixel is the name's that takes most of it, nearly (Boyer and Moore's majority vote). */
static void add_to_pixel(const picture *p, lane *l, int64_t begin_ns, int64_t took_ns,
                         uint32_t name) {
    int x = (int)pixels(p, begin_ns);
    if (x < 0)
        return;
    x = x < p->width ? x : p->width - 1;
    double ns = took_ns > 0 ? (double)took_ns : 1;
    pixel *of = &l->pixels[x];
    of->busy_ns += ns;
    if (of->name == name) {
        of->own_ns += ns;
    } else if (of->own_ns >= ns) {
        of->own_ns -= ns;
    } else {
        of->name = name;
        of->own_ns = ns - of->own_ns;
    }
}

static void draw(void *context, const trace_event *event) {
    picture *p = context;
    lane_level level;
    uint32_t number;
    if (event->kind != 'X' || !event->has_time || event->at_ns < 0 ||
        event->took_ns >= INT64_MAX - event->at_ns || !level_of(event, &level))
        return;
    int64_t begin_ns = event->at_ns, end_ns = begin_ns + event->took_ns;
    if (end_ns < p->begin_ns || begin_ns > p->end_ns)
        return;
    lane *l = lane_of(p, event, level, &number);
    if (!l) {
        p->is_left_out = true;
        return;
    }
    uint32_t name = text_table_number(&p->texts, event->name);
    if (pixels(p, end_ns) - pixels(p, begin_ns) < 1)
        add_to_pixel(p, l, begin_ns, event->took_ns, name);
    else if (!add_bar(p, &(bar){number, name, begin_ns < p->begin_ns ? p->begin_ns : begin_ns,
                                end_ns > p->end_ns ? p->end_ns : end_ns}))
        p->is_left_out = true;
}

/* ---- writing ---- */

static void put_text(FILE *to, const char *text) {
    svg_put_text(to, text, strlen(text));
}

/* Of ops by their names; of all else by what it is. */
static void put_color(FILE *to, lane_level level, const char *name) {
    static const char *const colors[LEVEL_COUNT] = {[USER] = "#b8b8d8",
                                                    [PROGRAM] = "#8c9fc0",
                                                    [CALL] = "#9fc9e8",
                                                    [ENGINE] = "#d8d2c0",
                                                    [WAIT] = "#e0e0e0"};
    fputs(level == KERNEL ? svg_op_color(name, strlen(name)) : colors[level], to);
}

static int compare_lanes(const void *a, const void *b) {
    const lane *left = *(const lane *const *)a, *right = *(const lane *const *)b;
    if (left->process != right->process)
        return left->process < right->process ? -1 : 1;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    return left->level < right->level ? -1 : left->level > right->level;
}

/* The first of a thread's lanes, in the order of the picture. */
static bool begins_row(const picture *p, uint32_t i) {
    return i == 0 || p->sorted[i]->thread != p->sorted[i - 1]->thread ||
           p->sorted[i]->process != p->sorted[i - 1]->process;
}

/* The longest first: what lies within others is put upon them. */
static int compare_bars(const void *a, const void *b) {
    const bar *left = a, *right = b;
    int64_t one = left->end_ns - left->begin_ns, other = right->end_ns - right->begin_ns;
    return one > other ? -1 : one < other;
}

static void lay_out(picture *p) {
    for (uint32_t i = 0; i < p->lane_count; i++)
        p->sorted[i] = &p->lanes[i];
    qsort(p->sorted, p->lane_count, sizeof(*p->sorted), compare_lanes);
    p->height = TOP + (int)p->lane_count * LANE_HEIGHT + 10;
    for (uint32_t i = 1; i < p->lane_count; i++)
        p->height += begins_row(p, i) ? ROW_GAP : 0;
    if (p->bar_count > 1)
        qsort(p->bars, p->bar_count, sizeof(*p->bars), compare_bars);
}

static void put_bar(FILE *to, const picture *p, const bar *b, int y) {
    double x = pixels(p, b->begin_ns), width = pixels(p, b->end_ns) - x;
    const char *name = text_table_text(&p->texts, b->name);
    fprintf(to, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"", LEFT + x, y,
            width, LANE_HEIGHT - 1);
    put_color(to, p->lanes[b->lane].level, name);
    fputs("\"><title>", to);
    put_text(to, name);
    fprintf(to, ", %.3f us</title></rect>\n", (double)(b->end_ns - b->begin_ns) / 1000);
    if (width > 7 * (double)strlen(name)) {
        fprintf(to, "<text x=\"%.1f\" y=\"%d\">", LEFT + x + 2, y + LANE_HEIGHT - 4);
        put_text(to, name);
        fputs("</text>\n", to);
    }
}

/* Pixels beside each other of the same name are one; how full they are is their height. */
static void put_pixels(FILE *to, const picture *p, const lane *l, int y) {
    double pixel_ns = (double)(p->end_ns - p->begin_ns) / p->width;
    for (int x = 0; x < p->width; x++) {
        if (l->pixels[x].busy_ns <= 0)
            continue;
        double full = fmin(fmax(l->pixels[x].busy_ns / pixel_ns, 0.15), 1);
        double height = full * (LANE_HEIGHT - 1);
        fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"1\" height=\"%.1f\" fill=\"", LEFT + x,
                y + (LANE_HEIGHT - 1) - height, height);
        put_color(to, l->level, text_table_text(&p->texts, l->pixels[x].name));
        fputs("\"/>\n", to);
    }
}

/* The unit in which the times of the picture are written. */
static int64_t axis_unit(int64_t end_ns, const char **name) {
    static const struct {
        int64_t ns;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t u = 0;
    while (units[u].ns > 1 && end_ns < 10 * units[u].ns)
        u++;
    *name = units[u].name;
    return units[u].ns;
}

/* About ten ticks, at multiples of 1, 2 or 5 times a power of ten. In double, which any two times are far enough apart for. */
static void put_axis(FILE *to, const picture *p, int height) {
    static const double factors[] = {2, 2.5, 2};
    double first_ns = (double)(p->begin_ns - p->first_ns), step_ns = 1;
    double span_ns = (double)(p->end_ns - p->begin_ns);
    for (int i = 0; span_ns / step_ns > 10; i++)
        step_ns *= factors[i % 3];
    const char *unit;
    double unit_ns = (double)axis_unit(p->end_ns - p->first_ns, &unit);
    int decimals = 0;
    for (double digit_ns = unit_ns; digit_ns > step_ns; digit_ns /= 10)
        decimals++;
    double skipped_ns = ceil(first_ns / step_ns) * step_ns - first_ns;
    for (int tick = 0; skipped_ns + tick * step_ns <= span_ns && tick <= 10; tick++) {
        double ns = skipped_ns + tick * step_ns, x = LEFT + ns * p->width / span_ns;
        fprintf(to, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>\n", x,
                TOP - 6, x, height);
        fprintf(to, "<text x=\"%.1f\" y=\"%d\">%.*f %s</text>\n", x + 2, TOP - 10, decimals,
                (first_ns + ns) / unit_ns, unit);
    }
}

static void put_row_name(FILE *to, const picture *p, const lane *l, int y) {
    char numbers[64];
    const char *name = numbers;
    snprintf(numbers, sizeof(numbers), "thread %" PRId64, l->thread);
    for (uint32_t r = 0; r < p->row_count; r++)
        if (p->rows[r].process == l->process && p->rows[r].thread == l->thread)
            name = text_table_text(&p->texts, p->rows[r].name);
    char cut[28];
    tool_clean(cut, sizeof(cut), name, strlen(name));
    fprintf(to, "<text x=\"4\" y=\"%d\" fill=\"#000\">", y + LANE_HEIGHT - 4);
    put_text(to, cut);
    fputs("</text>\n", to);
}

static void put_picture(FILE *to, const void *picture_to_put) {
    const picture *p = picture_to_put;
    int tops[LANES_MOST], y = TOP;
    put_axis(to, p, p->height);
    for (uint32_t i = 0; i < p->lane_count; i++) {
        const lane *l = p->sorted[i];
        bool is_first = begins_row(p, i);
        y += i > 0 && is_first ? ROW_GAP : 0;
        if (is_first)
            put_row_name(to, p, l, y);
        put_pixels(to, p, l, y);
        tops[l - p->lanes] = y;
        y += LANE_HEIGHT;
    }
    for (size_t b = 0; b < p->bar_count; b++)
        put_bar(to, p, &p->bars[b], tops[p->bars[b].lane]);
}

/* ---- the command ---- */

static void free_picture(picture *p) {
    for (uint32_t i = 0; i < p->lane_count; i++)
        free(p->lanes[i].pixels);
    free(p->bars);
    text_table_free(&p->texts);
}

/* Milliseconds from the begin of the trace; false: the option is none. */
static bool bound(const tool_arguments *arguments, const char *option, int64_t begin_ns,
                  int64_t *to) {
    const char *text = tool_value(arguments, option);
    char *end;
    if (!text)
        return true;
    double ms = strtod(text, &end);
    if (end == text || *end || !(ms >= 0 && ms < 1e12)) {
        (void)tool_fail(arguments, "%s is %s, and takes milliseconds", option, text);
        return false;
    }
    int64_t ns = (int64_t)(ms * 1e6);
    *to = ns < INT64_MAX - begin_ns ? begin_ns + ns : INT64_MAX;
    return true;
}

static int write_picture(const tool_arguments *arguments, picture *p) {
    lay_out(p);
    int code = svg_write(arguments, LEFT + p->width + 60, p->height, put_picture, p);
    if (code == TOOL_OK && p->is_left_out)
        fprintf(stderr, "eddy trace svg: there is more than fits; --from and --to show a part\n");
    return code;
}

int tool_trace_svg(const tool_arguments *arguments) {
    static picture p;
    trace_file file;
    const char *path = arguments->operands[0];
    int64_t width = 1200;
    int code = TOOL_OK;
    if (!tool_integer(arguments, "--width", 100, 20000, &width))
        return TOOL_USAGE;
    p = (picture){.width = (int)width};
    if (strcmp(path, "-") == 0)
        return tool_fail(arguments, "the file is read twice, which standard input cannot be");
    if (!trace_read(path, measure, &p, &file)) {
        code = tool_fail(arguments, "%s", file.error);
    } else if (!p.has_time) {
        code = tool_fail(arguments, "%s has no ranges", path);
    } else {
        int64_t begin_ns = p.first_ns = p.begin_ns;
        if (!bound(arguments, "--from", begin_ns, &p.begin_ns) ||
            !bound(arguments, "--to", begin_ns, &p.end_ns))
            code = TOOL_USAGE;
        else if (p.end_ns <= p.begin_ns)
            code = tool_fail(arguments, "there is nothing between --from and --to");
        else if (!trace_read(path, draw, &p, &file))
            code = tool_fail(arguments, "%s", file.error);
        else
            code = write_picture(arguments, &p);
    }
    free_picture(&p);
    return code;
}
