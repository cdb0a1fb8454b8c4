/* eddy trace svg */
#include "screen.h"
#include "svg_parts.h"
#include "timeline.h"
#include "timeline_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE_HEIGHT 14
#define ROW_GAP 8
#define LEFT 170 /* for the names of rows */
#define TOP 30

/* ---- writing ---- */

static void put_text(FILE *to, const char *text) {
    svg_put_text(to, text, strlen(text));
}

/* Of ops by their names; of all else by what it is. */
static void put_color(FILE *to, lane_level level, const char *name) {
    static const char *const colors[LANE_LEVELS] = {[LANE_USER] = "#b8b8d8",
                                                    [LANE_PROGRAM] = "#8c9fc0",
                                                    [LANE_CALL] = "#9fc9e8",
                                                    [LANE_ENGINE] = "#d8d2c0",
                                                    [LANE_WAIT] = "#e0e0e0"};
    fputs(level == LANE_KERNEL ? svg_op_color(name, strlen(name)) : colors[level], to);
}

/* The longest first: what lies within others is put upon them. */
static int compare_bars(const void *a, const void *b) {
    const bar *left = a, *right = b;
    int64_t one = left->end_ns - left->begin_ns, other = right->end_ns - right->begin_ns;
    return one > other ? -1 : one < other;
}

static int height_of(const timeline *t) {
    int height = TOP + (int)t->lane_count * LANE_HEIGHT + 10;
    for (uint32_t i = 1; i < t->lane_count; i++)
        height += timeline_begins_row(t, i) ? ROW_GAP : 0;
    return height;
}

static void put_bar(FILE *to, const timeline *t, const bar *b, int y) {
    double x = timeline_pixels(t, b->begin_ns), width = timeline_pixels(t, b->end_ns) - x;
    const char *name = text_table_text(&t->texts, b->name);
    fprintf(to, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"", LEFT + x, y,
            width, LANE_HEIGHT - 1);
    put_color(to, t->lanes[b->lane].level, name);
    fputs("\"><title>", to);
    put_text(to, name);
    fprintf(to, ", %.3f us</title></rect>\n", (double)(b->end_ns - b->begin_ns) / 1000);
    if (width > 7 * (double)strlen(name)) {
        fprintf(to, "<text x=\"%.1f\" y=\"%d\">", LEFT + x + 2, y + LANE_HEIGHT - 4);
        put_text(to, name);
        fputs("</text>\n", to);
    }
}

/* How full a pixel is, is its height. */
static void put_pixels(FILE *to, const timeline *t, const lane *l, int y) {
    double pixel_ns = (double)(t->end_ns - t->begin_ns) / t->width;
    for (int x = 0; x < t->width; x++) {
        if (l->pixels[x].busy_ns <= 0)
            continue;
        double full = fmin(fmax(l->pixels[x].busy_ns / pixel_ns, 0.15), 1);
        double height = full * (LANE_HEIGHT - 1);
        fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"1\" height=\"%.1f\" fill=\"", LEFT + x,
                y + (LANE_HEIGHT - 1) - height, height);
        put_color(to, l->level, text_table_text(&t->texts, l->pixels[x].name));
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
static void put_axis(FILE *to, const timeline *t, int height) {
    static const double factors[] = {2, 2.5, 2};
    double first_ns = (double)(t->begin_ns - t->first_ns), step_ns = 1;
    double span_ns = (double)(t->end_ns - t->begin_ns);
    for (int i = 0; span_ns / step_ns > 10; i++)
        step_ns *= factors[i % 3];
    const char *unit;
    double unit_ns = (double)axis_unit(t->end_ns - t->first_ns, &unit);
    int decimals = 0;
    for (double digit_ns = unit_ns; digit_ns > step_ns; digit_ns /= 10)
        decimals++;
    double skipped_ns = ceil(first_ns / step_ns) * step_ns - first_ns;
    for (int tick = 0; skipped_ns + tick * step_ns <= span_ns && tick <= 10; tick++) {
        double ns = skipped_ns + tick * step_ns, x = LEFT + ns * t->width / span_ns;
        fprintf(to, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>\n", x,
                TOP - 6, x, height);
        fprintf(to, "<text x=\"%.1f\" y=\"%d\">%.*f %s</text>\n", x + 2, TOP - 10, decimals,
                (first_ns + ns) / unit_ns, unit);
    }
}

static void put_row_name(FILE *to, const timeline *t, const lane *l, int y) {
    char numbers[64];
    char cut[28];
    const char *name = timeline_row_name(t, l);
    snprintf(numbers, sizeof(numbers), "thread %" PRId64, l->thread);
    name = name ? name : numbers;
    tool_clean(cut, sizeof(cut), name, strlen(name));
    fprintf(to, "<text x=\"4\" y=\"%d\" fill=\"#000\">", y + LANE_HEIGHT - 4);
    put_text(to, cut);
    fputs("</text>\n", to);
}

static void put_picture(FILE *to, const void *timeline_to_put) {
    const timeline *t = timeline_to_put;
    int tops[LANES_MOST], y = TOP;
    put_axis(to, t, height_of(t));
    for (uint32_t i = 0; i < t->lane_count; i++) {
        const lane *l = t->sorted[i];
        bool is_first = timeline_begins_row(t, i);
        y += i > 0 && is_first ? ROW_GAP : 0;
        if (is_first)
            put_row_name(to, t, l, y);
        put_pixels(to, t, l, y);
        tops[l - t->lanes] = y;
        y += LANE_HEIGHT;
    }
    for (size_t b = 0; b < t->bar_count; b++)
        put_bar(to, t, &t->bars[b], tops[t->bars[b].lane]);
}

/* ---- the command ---- */

static int draw(const tool_arguments *arguments, timeline *t) {
    if (t->bar_count > 1)
        qsort(t->bars, t->bar_count, sizeof(*t->bars), compare_bars);
    return svg_write(arguments, LEFT + t->width + 60, height_of(t), put_picture, t);
}

int tool_trace_svg(const tool_arguments *arguments) {
    static timeline t;
    int code = timeline_read(&t, arguments);
    if (code == TOOL_OK)
        code = tool_has(arguments, "--json") ? timeline_json_write(arguments, &t)
                                             : draw(arguments, &t);
    if (code == TOOL_OK && t.is_left_out)
        fprintf(stderr, "eddy trace svg: there is more than fits; --from and --to show a part\n");
    timeline_fini(&t);
    return code;
}
