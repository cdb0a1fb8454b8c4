#include "timeline.h"

#include "memory.h"
#include "trace_reader.h"

#include <stdlib.h>
#include <string.h>

#define BARS_MOST 200000

static bool level_of(const trace_event *event, lane_level *to) {
    static const struct {
        const char *category;
        lane_level level;
    } levels[] = {{"range", LANE_USER},      {"program", LANE_PROGRAM}, {"issue", LANE_CALL},
                  {"schedule", LANE_ENGINE}, {"dispatch", LANE_ENGINE}, {"kernel", LANE_KERNEL},
                  {"slice", LANE_KERNEL},    {"device", LANE_KERNEL},   {"callback", LANE_KERNEL},
                  {"wait", LANE_WAIT}};
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
        if (strcmp(event->category, levels[i].category) == 0) {
            *to = levels[i].level;
            return true;
        }
    /* Of a trace that is not Eddy's: whatever it is. Of Eddy's those that are too short to be seen are left out. */
    *to = LANE_KERNEL;
    return strcmp(event->category, "infer") != 0 && strcmp(event->category, "release") != 0;
}

static void measure(void *context, const trace_event *event) {
    timeline *t = context;
    if (event->kind == 'M' && strcmp(event->name, "thread_name") == 0 && t->row_count < LANES_MOST)
        t->rows[t->row_count++] =
            (row_name){event->process, event->thread, text_table_number(&t->texts, event->label)};
    if (event->kind != 'X' || !event->has_time || event->at_ns < 0 ||
        event->took_ns >= INT64_MAX - event->at_ns)
        return;
    if (!t->has_time || event->at_ns < t->begin_ns)
        t->begin_ns = event->at_ns;
    /* What takes no time is there, too. */
    int64_t end_ns = event->at_ns + (event->took_ns > 0 ? event->took_ns : 1);
    if (!t->has_time || end_ns > t->end_ns)
        t->end_ns = end_ns;
    t->has_time = true;
}

static lane *lane_of(timeline *t, const trace_event *event, lane_level level, uint32_t *number) {
    for (*number = 0; *number < t->lane_count; ++*number) {
        lane *l = &t->lanes[*number];
        if (l->process == event->process && l->thread == event->thread && l->level == level)
            return l;
    }
    if (t->lane_count == LANES_MOST)
        return NULL;
    lane *made = &t->lanes[t->lane_count++];
    *made = (lane){event->process, event->thread, level,
                   tool_calloc((size_t)t->width, sizeof(*made->pixels))};
    return made;
}

static bool add_bar(timeline *t, const bar *added) {
    if (t->bar_count == t->bar_room) {
        size_t room = t->bar_room ? 2 * t->bar_room : 1024;
        if (t->bar_room == BARS_MOST)
            return false;
        t->bar_room = room < BARS_MOST ? room : BARS_MOST;
        t->bars = tool_realloc(t->bars, t->bar_room, sizeof(*t->bars));
    }
    t->bars[t->bar_count++] = *added;
    return true;
}

double timeline_pixels(const timeline *t, int64_t ns) {
    return (double)(ns - t->begin_ns) * t->width / (double)(t->end_ns - t->begin_ns);
}

/* What is shorter than a pixel: the pixel is the name's that takes most of it, nearly (Boyer and Moore's majority vote). */
static void add_to_pixel(const timeline *t, lane *l, int64_t begin_ns, int64_t took_ns,
                         uint32_t name) {
    int x = (int)timeline_pixels(t, begin_ns);
    if (x < 0)
        return;
    x = x < t->width ? x : t->width - 1;
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

static void place(void *context, const trace_event *event) {
    timeline *t = context;
    lane_level level;
    uint32_t number;
    if (event->kind != 'X' || !event->has_time || event->at_ns < 0 ||
        event->took_ns >= INT64_MAX - event->at_ns || !level_of(event, &level))
        return;
    int64_t begin_ns = event->at_ns, end_ns = begin_ns + event->took_ns;
    if (end_ns < t->begin_ns || begin_ns > t->end_ns)
        return;
    lane *l = lane_of(t, event, level, &number);
    if (!l) {
        t->is_left_out = true;
        return;
    }
    uint32_t name = text_table_number(&t->texts, event->name);
    if (timeline_pixels(t, end_ns) - timeline_pixels(t, begin_ns) < 1)
        add_to_pixel(t, l, begin_ns, event->took_ns, name);
    else if (!add_bar(t, &(bar){number, name, begin_ns < t->begin_ns ? t->begin_ns : begin_ns,
                                end_ns > t->end_ns ? t->end_ns : end_ns}))
        t->is_left_out = true;
}

static int compare_lanes(const void *a, const void *b) {
    const lane *left = *(const lane *const *)a, *right = *(const lane *const *)b;
    if (left->process != right->process)
        return left->process < right->process ? -1 : 1;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    return left->level < right->level ? -1 : left->level > right->level;
}

bool timeline_begins_row(const timeline *t, uint32_t i) {
    return i == 0 || t->sorted[i]->thread != t->sorted[i - 1]->thread ||
           t->sorted[i]->process != t->sorted[i - 1]->process;
}

const char *timeline_row_name(const timeline *t, const lane *of) {
    const char *name = NULL;
    for (uint32_t r = 0; r < t->row_count; r++)
        if (t->rows[r].process == of->process && t->rows[r].thread == of->thread)
            name = text_table_text(&t->texts, t->rows[r].name);
    return name;
}

static void sort_lanes(timeline *t) {
    for (uint32_t i = 0; i < t->lane_count; i++)
        t->sorted[i] = &t->lanes[i];
    qsort(t->sorted, t->lane_count, sizeof(*t->sorted), compare_lanes);
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

/* TOOL_OK, or what failed. */
static int read_part(timeline *t, const tool_arguments *arguments) {
    trace_file file;
    const char *path = arguments->operands[0];
    if (!trace_read(path, measure, t, &file))
        return tool_fail(arguments, "%s", file.error);
    if (!t->has_time)
        return tool_fail(arguments, "%s has no ranges", path);
    int64_t begin_ns = t->first_ns = t->begin_ns;
    if (!bound(arguments, "--from", begin_ns, &t->begin_ns) ||
        !bound(arguments, "--to", begin_ns, &t->end_ns))
        return TOOL_USAGE;
    if (t->end_ns <= t->begin_ns)
        return tool_fail(arguments, "there is nothing between --from and --to");
    if (!trace_read(path, place, t, &file))
        return tool_fail(arguments, "%s", file.error);
    sort_lanes(t);
    return TOOL_OK;
}

int timeline_read(timeline *t, const tool_arguments *arguments) {
    int64_t width = 1200;
    memset(t, 0, sizeof(*t));
    if (!tool_integer(arguments, "--width", 100, 20000, &width))
        return TOOL_USAGE;
    t->width = (int)width;
    if (strcmp(arguments->operands[0], "-") == 0)
        return tool_fail(arguments, "the file is read twice, which standard input cannot be");
    return read_part(t, arguments);
}

void timeline_fini(timeline *t) {
    for (uint32_t i = 0; i < t->lane_count; i++)
        free(t->lanes[i].pixels);
    free(t->bars);
    text_table_free(&t->texts);
}
