#include "trace_reader.h"

#include "memory.h"
#include "screen.h"
#include "trace_ranges.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

#define CHUNK_BYTES 65536
#define DEPTH_MOST 64
/* Of one text or number, which the parser keeps until it is whole. */
#define VALUE_BYTES_MOST (1 << 24)

/* What the value to come belongs to. */
typedef enum place {
    NOWHERE,
    KIND,
    NAME,
    CATEGORY,
    PROCESS,
    THREAD,
    AT,
    TOOK,
    ARGS,
    N,
    RUNTIME,
    BYTES,
    LIVE,
    STREAM,
    LAUNCH,
    PART,
    ROOT,
    DROPPED,
    REASON,
    ON,
    PLACE,
    LABEL,
    AFTER,
    SERIES
} place;

typedef struct reader {
    trace_file *file;
    trace_take *take;
    void *context;
    trace_event event;
    trace_ranges ranges;
    int depth;
    int events_depth; /* of the array of events; 0: it has not begun, -1: it is over */
    bool is_top_array, is_events_next;
    place in, in_args;
    char key[TRACE_TEXT_BYTES]; /* of args */
    int64_t bytes_since;        /* the last value */
} reader;

/* ---- values ---- */

static void copy(char *to, const unsigned char *text, size_t length) {
    tool_clean(to, TRACE_TEXT_BYTES, (const char *)text, length);
}

static bool is_key(const unsigned char *key, size_t length, const char *name) {
    return strlen(name) == length && memcmp(key, name, length) == 0;
}

static place field(const unsigned char *key, size_t length) {
    static const struct {
        const char *name;
        place place;
    } fields[] = {{"ph", KIND},    {"name", NAME}, {"cat", CATEGORY}, {"pid", PROCESS},
                  {"tid", THREAD}, {"ts", AT},     {"dur", TOOK},     {"args", ARGS}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (is_key(key, length, fields[i].name))
            return fields[i].place;
    return NOWHERE;
}

static place argument(const unsigned char *key, size_t length) {
    static const struct {
        const char *name;
        place place;
    } arguments[] = {{"n", N},        {"runtime", RUNTIME}, {"bytes", BYTES},
                     {"live", LIVE},  {"stream", STREAM},   {"launch", LAUNCH},
                     {"part", PART},  {"root", ROOT},       {"dropped", DROPPED},
                     {"for", REASON}, {"on", ON},           {"at", PLACE},
                     {"name", LABEL}, {"why", LABEL},       {"after", AFTER}};
    for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
        if (is_key(key, length, arguments[i].name))
            return arguments[i].place;
    return SERIES;
}

static double clamp(double value) {
    return !(value > -9e18) ? -9e18 : value > 9e18 ? 9e18 : value;
}

/* Microseconds with up to three digits behind the point are exact. */
static int64_t nanoseconds(const char *text, size_t length) {
    char number[64];
    int64_t whole = 0;
    size_t i = 0;
    while (i < length && i < 15 && text[i] >= '0' && text[i] <= '9')
        whole = whole * 10 + (text[i++] - '0');
    int64_t ns = whole * 1000;
    if (i > 0 && i < length && text[i] == '.') {
        int unit = 100;
        for (i++; i < length && unit > 0 && text[i] >= '0' && text[i] <= '9'; unit /= 10)
            ns += (text[i++] - '0') * unit;
    }
    if (i == length)
        return ns;
    snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 63, text);
    return (int64_t)clamp(nearbyint(strtod(number, NULL) * 1000));
}

static int64_t whole(const char *text, size_t length) {
    char number[64];
    snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 63, text);
    if (strpbrk(number, ".eE"))
        return (int64_t)clamp(strtod(number, NULL));
    return strtoll(number, NULL, 10);
}

static double real(const char *text, size_t length) {
    char number[64];
    snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 63, text);
    return clamp(strtod(number, NULL));
}

static bool is_in_event(const reader *r) {
    return r->events_depth > 0 && r->depth == r->events_depth + 1;
}

static bool is_in_args(const reader *r) {
    return r->events_depth > 0 && r->depth == r->events_depth + 2 && r->in == ARGS;
}

static bool is_in_after(const reader *r) {
    return r->events_depth > 0 && r->depth == r->events_depth + 3 && r->in == ARGS &&
           r->in_args == AFTER;
}

/* ---- callbacks of the parser ---- */

static int take_number(void *context, const char *text, size_t length) {
    reader *r = context;
    trace_event *event = &r->event;
    r->bytes_since = 0;
    if (is_in_event(r)) {
        if (r->in == PROCESS)
            event->process = whole(text, length);
        else if (r->in == THREAD)
            event->thread = whole(text, length);
        else if (r->in == AT) {
            event->at_ns = nanoseconds(text, length);
            event->has_time = true;
        } else if (r->in == TOOK)
            event->took_ns = nanoseconds(text, length);
    } else if (is_in_args(r)) {
        int64_t *to = r->in_args == N         ? &event->n
                      : r->in_args == RUNTIME ? &event->runtime
                      : r->in_args == BYTES   ? &event->bytes
                      : r->in_args == LIVE    ? &event->live
                      : r->in_args == STREAM  ? &event->stream
                      : r->in_args == LAUNCH  ? &event->launch
                      : r->in_args == PART    ? &event->part
                      : r->in_args == ROOT    ? &event->root
                      : r->in_args == DROPPED ? &event->dropped
                                              : NULL;
        if (to)
            *to = whole(text, length);
        /* In a counter each name is that of a curve. */
        if (event->series_count < TRACE_SERIES_MOST) {
            memcpy(event->series[event->series_count].name, r->key, sizeof(r->key));
            event->series[event->series_count++].value = real(text, length);
        }
    } else if (is_in_after(r) && event->after_count < TRACE_AFTER_MOST) {
        event->after[event->after_count++] = whole(text, length);
    }
    return 1;
}

static int take_string(void *context, const unsigned char *text, size_t length) {
    reader *r = context;
    trace_event *event = &r->event;
    r->bytes_since = 0;
    if (is_in_event(r)) {
        if (r->in == KIND)
            event->kind = length == 1 ? (char)text[0] : '?';
        else if (r->in == NAME)
            copy(event->name, text, length);
        else if (r->in == CATEGORY)
            copy(event->category, text, length);
    } else if (is_in_args(r)) {
        char *to = r->in_args == REASON  ? event->reason
                   : r->in_args == ON    ? event->on
                   : r->in_args == PLACE ? event->place
                   : r->in_args == LABEL ? event->label
                                         : NULL;
        if (to)
            copy(to, text, length);
    }
    return 1;
}

static int take_key(void *context, const unsigned char *key, size_t length) {
    reader *r = context;
    r->bytes_since = 0;
    if (is_in_event(r)) {
        r->in = field(key, length);
    } else if (is_in_args(r)) {
        r->in_args = argument(key, length);
        copy(r->key, key, length);
    } else if (r->depth == 1 && !r->is_top_array) {
        r->is_events_next = is_key(key, length, "traceEvents");
    }
    return 1;
}

/* Field by field: most of the struct is room for text. */
static void reset(trace_event *event) {
    event->kind = '\0';
    event->name[0] = event->category[0] = event->reason[0] = event->place[0] = event->on[0] =
        event->label[0] = '\0';
    event->process = event->thread = event->at_ns = event->took_ns = 0;
    event->has_time = false;
    event->n = event->runtime = event->bytes = event->live = event->stream = event->launch =
        event->part = event->root = event->dropped = 0;
    event->after_count = event->series_count = 0;
}

/* What a map or an array of before said of its values is over. */
static int begin(reader *r) {
    r->bytes_since = 0;
    r->depth++;
    if (is_in_event(r)) {
        r->in = NOWHERE;
    } else if (is_in_args(r)) {
        r->in_args = NOWHERE;
        r->key[0] = '\0';
    }
    return r->depth <= DEPTH_MOST;
}

static int begin_map(void *context) {
    reader *r = context;
    if (!begin(r))
        return 0;
    if (is_in_event(r))
        reset(&r->event);
    return 1;
}

static int begin_array(void *context) {
    reader *r = context;
    if (!begin(r))
        return 0;
    if (r->depth == 1) {
        r->is_top_array = true;
        r->events_depth = 1;
    } else if (r->depth == 2 && !r->is_top_array && r->is_events_next && r->events_depth == 0) {
        r->events_depth = 2;
    }
    return 1;
}

/* Each runtime numbers its instructions: with its own number in front they differ. */
static void make_keys(trace_event *event) {
    uint64_t front = event->runtime > 1 ? (uint64_t)event->runtime << 48 : 0;
    if (event->n)
        event->n = (int64_t)((uint64_t)event->n ^ front);
    for (int i = 0; i < event->after_count; i++)
        event->after[i] = (int64_t)((uint64_t)event->after[i] ^ front);
}

static int end_map(void *context) {
    reader *r = context;
    r->bytes_since = 0;
    if (is_in_event(r)) {
        make_keys(&r->event);
        r->file->event_count++;
        if (r->event.took_ns < 0)
            r->event.took_ns = 0;
        trace_ranges_take(&r->ranges, &r->event);
        r->take(r->context, &r->event);
    }
    r->depth--;
    return 1;
}

static int end_array(void *context) {
    reader *r = context;
    r->bytes_since = 0;
    if (r->events_depth == r->depth)
        r->events_depth = -1;
    r->depth--;
    return 1;
}

static int take_other(void *context) {
    ((reader *)context)->bytes_since = 0;
    return 1;
}

static int take_bool(void *context, int value) {
    (void)value;
    return take_other(context);
}

/* ---- the parser's memory ---- */

static void *allocate(void *context, size_t bytes) {
    (void)context;
    return tool_malloc(bytes);
}

static void *reallocate(void *context, void *block, size_t bytes) {
    (void)context;
    return tool_realloc(block, 1, bytes);
}

static void release(void *context, void *block) {
    (void)context;
    free(block);
}

/* ---- the source ---- */

static bool fail_at(reader *r, const trace_source *source, int64_t at, const char *why) {
    snprintf(r->file->error, sizeof(r->file->error), "%.150s is no trace: %.80s at byte %" PRId64,
             source->name, why, at);
    return false;
}

/* Feeds the parser; false: it is no JSON, or too much of one thing. */
static bool parse_all(reader *r, yajl_handle parser, trace_source *source) {
    unsigned char chunk[CHUNK_BYTES];
    int64_t at = 0;
    int count;
    while ((count = source->read(source, chunk, CHUNK_BYTES)) > 0) {
        r->bytes_since += count;
        yajl_status status = yajl_parse(parser, chunk, (size_t)count);
        if (status != yajl_status_ok)
            return fail_at(r, source, at + (int64_t)yajl_get_bytes_consumed(parser),
                           status == yajl_status_client_canceled
                               ? "too many brackets within each other"
                               : "there is no JSON");
        if (r->bytes_since > VALUE_BYTES_MOST + CHUNK_BYTES)
            return fail_at(r, source, at, "a text of more than 16 MB");
        at += count;
    }
    if (count == TRACE_SOURCE_FAILED) {
        snprintf(r->file->error, sizeof(r->file->error), "%.150s cannot be read: %s", source->name,
                 source->error);
        return false;
    }
    r->file->is_cut = count < 0 || yajl_complete_parse(parser) != yajl_status_ok;
    return true;
}

bool trace_read_source(trace_source *source, trace_take *take, void *context, trace_file *file) {
    static const yajl_callbacks callbacks = {take_other,  take_bool,   NULL,      NULL,
                                             take_number, take_string, begin_map, take_key,
                                             end_map,     begin_array, end_array};
    yajl_alloc_funcs memory = {allocate, reallocate, release, NULL};
    reader r = {.file = file, .take = take, .context = context};
    *file = (trace_file){0};
    yajl_handle parser = yajl_alloc(&callbacks, &memory, &r);
    /* Texts are cleaned here. */
    yajl_config(parser, yajl_dont_validate_strings, 1);
    bool is_read = parse_all(&r, parser, source);
    yajl_free(parser);
    trace_ranges_free(&r.ranges);
    if (is_read && file->event_count == 0) {
        snprintf(file->error, sizeof(file->error), "%.150s has no events", source->name);
        is_read = false;
    }
    return is_read;
}

/* ---- the file ---- */

static int read_file(trace_source *source, unsigned char *to, int most) {
    gzFile from = source->context;
    int count = gzread(from, to, (unsigned)most), code;
    if (count >= 0)
        return count;
    const char *why = gzerror(from, &code), *colon = strstr(why, ": ");
    if (code == Z_BUF_ERROR)
        return TRACE_SOURCE_CUT;
    /* zlib begins with a name, which is none for a descriptor. */
    snprintf(source->error, sizeof(source->error), "%.100s",
             code == Z_ERRNO ? strerror(errno)
             : colon         ? colon + 2
                             : why);
    return TRACE_SOURCE_FAILED;
}

bool trace_read(const char *path, trace_take *take, void *context, trace_file *file) {
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    gzFile from = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    if (!from) {
        *file = (trace_file){0};
        snprintf(file->error, sizeof(file->error), "%.150s cannot be read: %s", path,
                 strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    gzbuffer(from, CHUNK_BYTES);
    trace_source source = {.name = path, .context = from, .read = read_file};
    bool is_read = trace_read_source(&source, take, context, file);
    gzclose(from);
    return is_read;
}
