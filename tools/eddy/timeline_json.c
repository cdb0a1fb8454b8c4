#include "timeline_json.h"

#include "output.h"
#include <jansson.h>
#include <stdlib.h>

static int compare_begins(const void *a, const void *b) {
    const bar *left = a, *right = b;
    return left->begin_ns < right->begin_ns ? -1 : left->begin_ns > right->begin_ns;
}

static void put_name(json_t *object, const timeline *t, uint32_t name) {
    json_t *text = json_string(text_table_text(&t->texts, name));
    json_object_set_new(object, "name", text ? text : json_string("?"));
}

static json_t *pixels_json(const timeline *t, const lane *l) {
    json_t *array = json_array();
    for (int x = 0; x < t->width; x++) {
        if (l->pixels[x].busy_ns <= 0)
            continue;
        json_t *object = json_pack("{si sf}", "pixel", x, "busy_ns", l->pixels[x].busy_ns);
        put_name(object, t, l->pixels[x].name);
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *lane_json(const timeline *t, const lane *l) {
    static const char *const levels[LANE_LEVELS] = {
        [LANE_USER] = "range",       [LANE_PROGRAM] = "program", [LANE_CALL] = "call",
        [LANE_ENGINE] = "scheduler", [LANE_KERNEL] = "kernel",   [LANE_WAIT] = "wait"};
    json_t *object = json_pack("{sI sI ss}", "process", (json_int_t)l->process, "thread",
                               (json_int_t)l->thread, "level", levels[l->level]);
    const char *row = timeline_row_name(t, l);
    if (row)
        json_object_set_new(object, "row", json_string(row));
    json_object_set_new(object, "bars", json_array());
    json_object_set_new(object, "pixels", pixels_json(t, l));
    return object;
}

static void add_bars(json_t *const *lanes, const timeline *t) {
    for (size_t b = 0; b < t->bar_count; b++) {
        const bar *of = &t->bars[b];
        json_t *object = json_pack("{sI sI}", "begin_ns", (json_int_t)(of->begin_ns - t->first_ns),
                                   "took_ns", (json_int_t)(of->end_ns - of->begin_ns));
        put_name(object, t, of->name);
        json_array_append_new(json_object_get(lanes[of->lane], "bars"), object);
    }
}

int timeline_json_write(const tool_arguments *arguments, timeline *t) {
    json_t *lanes[LANES_MOST], *array = json_array();
    for (uint32_t i = 0; i < t->lane_count; i++) {
        json_t *made = lane_json(t, t->sorted[i]);
        lanes[t->sorted[i] - t->lanes] = made;
        json_array_append_new(array, made);
    }
    if (t->bar_count > 1)
        qsort(t->bars, t->bar_count, sizeof(*t->bars), compare_begins);
    add_bars(lanes, t);
    json_t *json =
        json_pack("{sI sI si so}", "begin_ns", (json_int_t)(t->begin_ns - t->first_ns), "end_ns",
                  (json_int_t)(t->end_ns - t->first_ns), "width", t->width, "lanes", array);
    int code = tool_output(arguments, tool_put_json, json);
    json_decref(json);
    return code;
}
