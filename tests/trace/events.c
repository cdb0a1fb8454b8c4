#include <tests/trace/events.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- reading ---- */

/* gzread reads text as it is, too. */
static char *text_of(const char *path, size_t *bytes) {
    gzFile file = gzopen(path, "rb");
    size_t room = 1 << 16;
    char *text = malloc(room + 8);
    cr_assert_not_null(file, "%s", path);
    *bytes = 0;
    for (int count; (count = gzread(file, text + *bytes, (unsigned)(room - *bytes))) > 0;) {
        *bytes += (size_t)count;
        if (*bytes == room)
            text = realloc(text, (room *= 2) + 8);
    }
    gzclose(file);
    text[*bytes] = '\0';
    return text;
}

static json_t *parse(char *text, size_t bytes) {
    json_error_t error;
    json_t *events = json_loadb(text, bytes, 0, &error);
    cr_assert_not_null(events, "line %d: %s", error.line, error.text);
    cr_assert(json_is_array(events));
    free(text);
    return events;
}

json_t *events_read(const char *path) {
    size_t bytes;
    char *text = text_of(path, &bytes);
    return parse(text, bytes);
}

json_t *events_read_cut(const char *path) {
    size_t bytes;
    char *text = text_of(path, &bytes);
    while (bytes > 1 && !(text[bytes - 2] == ',' && text[bytes - 1] == '\n'))
        bytes--;
    cr_assert_gt(bytes, 2);
    memcpy(text + bytes - 2, "\n]", 2);
    return parse(text, bytes);
}

/* ---- fields ---- */

const char *event_text(const json_t *event, const char *field) {
    const char *text = json_string_value(json_object_get(event, field));
    return text ? text : "";
}

double event_number(const json_t *event, const char *field) {
    return json_number_value(json_object_get(event, field));
}

const char *event_arg_text(const json_t *event, const char *field) {
    return event_text(json_object_get(event, "args"), field);
}

int64_t event_arg(const json_t *event, const char *field) {
    return json_integer_value(json_object_get(json_object_get(event, "args"), field));
}

static bool is_like(const json_t *event, const char *kind, const char *category, const char *name) {
    return (!kind || strcmp(event_text(event, "ph"), kind) == 0) &&
           (!category || strcmp(event_text(event, "cat"), category) == 0) &&
           (!name || strcmp(event_text(event, "name"), name) == 0);
}

size_t events_count(const json_t *events, const char *kind, const char *category,
                    const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        count += is_like(json_array_get(events, i), kind, category, name);
    return count;
}

const json_t *events_find(const json_t *events, const char *kind, const char *category,
                          const char *name) {
    for (size_t i = 0; i < json_array_size(events); i++)
        if (is_like(json_array_get(events, i), kind, category, name))
            return json_array_get(events, i);
    return NULL;
}

/* ---- rules ---- */

static int row_of(const json_t *event) {
    return (int)event_number(event, "pid") * 10000 + (int)event_number(event, "tid");
}

typedef struct span {
    int row;
    double begin, end;
} span;

/* By row and begin, the longer one first. */
static int compare(const void *a, const void *b) {
    const span *left = a, *right = b;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return left->end > right->end ? -1 : left->end < right->end;
}

/* Microseconds of three digits are not exact as doubles. */
#define CLOSE 0.0005

static void must_nest(span *spans, size_t count) {
    double *open = malloc((count + 1) * sizeof(*open));
    size_t depth = 0;
    qsort(spans, count, sizeof(*spans), compare);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && spans[i].row != spans[i - 1].row)
            depth = 0;
        while (depth > 0 && open[depth - 1] <= spans[i].begin + CLOSE)
            depth--;
        if (depth > 0)
            cr_assert(spans[i].end <= open[depth - 1] + CLOSE,
                      "row %d: %f to %f in what ends at %f", spans[i].row, spans[i].begin,
                      spans[i].end, open[depth - 1]);
        open[depth++] = spans[i].end;
    }
    free(open);
}

static bool is_within(const span *spans, size_t count, int row, double at) {
    for (size_t i = 0; i < count; i++)
        if (spans[i].row == row && spans[i].begin <= at + CLOSE && at <= spans[i].end + CLOSE)
            return true;
    return false;
}

static const json_t *arrow_end(const json_t *events, const char *name, const char *id) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (is_like(event, "f", name, NULL) && strcmp(event_text(event, "id"), id) == 0)
            return event;
    }
    return NULL;
}

static void must_be_an_arrow(const json_t *events, const json_t *event, const span *spans,
                             size_t count) {
    const json_t *end = arrow_end(events, event_text(event, "cat"), event_text(event, "id"));
    cr_assert_not_null(end);
    cr_assert(event_number(event, "ts") <= event_number(end, "ts") + CLOSE);
    cr_assert(is_within(spans, count, row_of(event), event_number(event, "ts")));
    cr_assert(is_within(spans, count, row_of(end), event_number(end, "ts")));
}

void events_must_fit(const json_t *events) {
    size_t size = json_array_size(events), count = 0;
    span *spans = malloc((size + 1) * sizeof(*spans));
    for (size_t i = 0; i < size; i++) {
        const json_t *event = json_array_get(events, i);
        const char *kind = event_text(event, "ph");
        cr_assert(strlen(kind) == 1 && strchr("XiCMsf", *kind), "%s", kind);
        cr_assert(json_is_integer(json_object_get(event, "pid")));
        cr_assert(json_is_integer(json_object_get(event, "tid")));
        cr_assert(json_is_string(json_object_get(event, "name")));
        if (*kind == 'M')
            continue;
        double at = event_number(event, "ts");
        cr_assert(json_is_number(json_object_get(event, "ts")) && at >= 0);
        if (*kind == 'X') {
            double took = event_number(event, "dur");
            cr_assert(json_is_number(json_object_get(event, "dur")) && took >= 0);
            spans[count++] = (span){row_of(event), at, at + took};
        }
    }
    must_nest(spans, count);
    for (size_t i = 0; i < size; i++)
        if (is_like(json_array_get(events, i), "s", NULL, NULL))
            must_be_an_arrow(events, json_array_get(events, i), spans, count);
    free(spans);
}
