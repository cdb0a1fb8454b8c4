#include <trace/json.h>

#include <base/call_site.h>
#include <base/digits.h>
#include <base/name_table.h>
#include <base/trace.h>
#include <eddy/version.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- text ---- */

static char *put(char *to, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

static char *put_number(char *to, uint64_t value) {
    return to + eddy_digits_put(to, value);
}

static char *put_signed(char *to, int64_t value) {
    return to + eddy_digits_put_signed(to, value);
}

/* Microseconds, as the format has them, to the nanosecond. */
static char *put_time(char *to, int64_t ns) {
    uint64_t time = ns > 0 ? (uint64_t)ns : 0;
    uint64_t rest = time % 1000;
    to = put_number(to, time / 1000);
    if (rest == 0)
        return to;
    *to++ = '.';
    *to++ = (char)('0' + rest / 100);
    if (rest % 100 == 0)
        return to;
    *to++ = (char)('0' + rest / 10 % 10);
    if (rest % 10 != 0)
        *to++ = (char)('0' + rest % 10);
    return to;
}

/* Bytes of the character of UTF-8 that begins there; 0: it is none. Ends before a 0. */
static int utf8_bytes(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    int count = c[0] < 0x80                   ? 1
                : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                              : 0;
    for (int i = 1; i < count; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool is_beyond = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90);
    return is_overlong || is_beyond ? 0 : count;
}

/* A JSON string; bytes that are no UTF-8 become U+FFFD. At most `most` bytes of the text. */
static char *put_string(char *to, const char *text, size_t most) {
    const char *end = text + strnlen(text, most);
    *to++ = '"';
    while (text < end) {
        int count = utf8_bytes(text);
        if (count == 0 || text + count > end) {
            to = put(to, "\\ufffd");
            text++;
        } else if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            to += sprintf(to, "\\u%04x", *text++);
        } else {
            if (*text == '"' || *text == '\\')
                *to++ = '\\';
            memcpy(to, text, (size_t)count);
            to += count;
            text += count;
        }
    }
    *to++ = '"';
    return to;
}

/* ---- records ---- */

#define TEXT_MOST 128

static char *begin_event(eddy_json *json, const char *kind, uint32_t process, uint32_t row) {
    char *to = put(eddy_output_line(json->output), "{\"ph\":\"");
    to = put(put(to, kind), "\",\"pid\":");
    to = put(put_number(to, process), ",\"tid\":");
    return put_number(to, row);
}

static void end_event(eddy_json *json, char *to) {
    eddy_output_commit(json->output, put(to, "},\n"));
}

void eddy_json_thread(eddy_json *json, uint32_t row, const char *name, uint64_t thread) {
    char text[96];
    snprintf(text, sizeof(text), "%.64s (%" PRIu64 ")", name, thread);
    char *to = put(begin_event(json, "M", EDDY_JSON_THREADS, row),
                   ",\"name\":\"thread_name\",\"args\":{\"name\":");
    end_event(json, put(put_string(to, text, TEXT_MOST), "}"));
    to = put(begin_event(json, "M", EDDY_JSON_THREADS, row),
             ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":");
    end_event(json, put(put_number(to, row), "}"));
}

/* The next argument: a comma, or the begin of all. */
static char *next_arg(char *to, bool *is_first, const char *name) {
    to = put(to, *is_first ? ",\"args\":{\"" : ",\"");
    *is_first = false;
    return put(put(to, name), "\":");
}

static char *put_after(char *to, const eddy_json_after *after) {
    for (uint32_t i = 0; i < after->count; i++) {
        *to++ = i == 0 ? '[' : ',';
        to = put_number(to, after->sequences[i]);
    }
    return put(to, "]");
}

/* "f32[16], f32[16]" of "add(f32[16], f32[16])": the name is there already. */
static char *put_operands(char *to, const eddy_record *record, const char *call) {
    const char *name = record->name ? eddy_name_text(record->name) : "";
    size_t length = strlen(name), rest;
    if (strncmp(call, name, length) != 0 || call[length] != '(')
        return put_string(to, call, TEXT_MOST);
    call += length + 1;
    rest = strlen(call);
    return put_string(to, call, rest > 0 && call[rest - 1] == ')' ? rest - 1 : rest);
}

/* Mostly there is one runtime. */
static char *put_instruction(char *to, bool *is_first, const eddy_record *record) {
    if (record->sequence)
        to = put_number(next_arg(to, is_first, "n"), record->sequence);
    if (record->runtime > 1)
        to = put_number(next_arg(to, is_first, "runtime"), record->runtime);
    return to;
}

static char *put_args(char *to, const eddy_record *record, const char *call,
                      const eddy_json_after *after) {
    bool is_first = true;
    const char *place = record->address ? eddy_call_site_place(record->address) : NULL;
    to = put_instruction(to, &is_first, record);
    if (after && after->count > 0)
        to = put_after(next_arg(to, &is_first, "after"), after);
    if (record->kind == EDDY_RECORD_MOMENT && record->origin)
        to = put_number(next_arg(to, &is_first, "root"), record->origin);
    if (record->kind == EDDY_RECORD_SPAN && record->live)
        to = put_signed(next_arg(to, &is_first, "live"), record->live);
    if (record->bytes)
        to = put_signed(next_arg(to, &is_first, "bytes"), record->bytes);
    if (record->stream)
        to = put_number(next_arg(to, &is_first, "stream"), record->stream);
    if (record->is_launch)
        to = put_number(next_arg(to, &is_first, "launch"), 1);
    if (record->is_part)
        to = put_number(next_arg(to, &is_first, "part"), 1);
    if (record->detail)
        to = put_string(next_arg(to, &is_first, record->phase == EDDY_TRACE_KERNEL ? "on" : "for"),
                        record->detail, TEXT_MOST);
    if (*call)
        to = put_operands(next_arg(to, &is_first, "of"), record, call);
    if (place)
        to = put_string(next_arg(to, &is_first, "at"), place, TEXT_MOST);
    return is_first ? to : put(to, "}");
}

void eddy_json_record(eddy_json *json, uint32_t row, const eddy_record *record, const char *text,
                      const eddy_json_after *after) {
    bool is_span = record->kind == EDDY_RECORD_SPAN;
    const char *name = record->name ? eddy_name_text(record->name) : text;
    const char *call = !record->has_call ? "" : record->name ? text : text + strlen(text) + 1;
    char *to = begin_event(json, is_span ? "X" : "i", EDDY_JSON_THREADS, row);
    to = put_time(put(to, ",\"ts\":"), record->at_ns - json->begin_ns);
    if (is_span)
        to = put_time(put(to, ",\"dur\":"), record->took_ns);
    to = put(to, ",\"cat\":\"");
    to = put(put(to, eddy_trace_phase_name((eddy_trace_phase)record->phase)), "\",\"name\":");
    to = put_string(to, name, TEXT_MOST);
    end_event(json, put_args(to, record, call, after));
}

static void put_arrow_end(eddy_json *json, const char *kind, const char *name, uint32_t row,
                          int64_t at_ns, uint64_t from, uint64_t to_key) {
    char *to = begin_event(json, kind, EDDY_JSON_THREADS, row);
    to = put_time(put(to, ",\"ts\":"), at_ns - json->begin_ns);
    /* Two numbers, which no other arrow has: the format tells arrows apart by category, name and id. */
    to += sprintf(to, ",\"cat\":\"%s\",\"name\":\"%s\",\"id\":\"%" PRIx64 "-%" PRIx64 "\"", name,
                  name, from, to_key);
    end_event(json, *kind == 'f' ? put(to, ",\"bp\":\"e\"") : to);
}

void eddy_json_arrow(eddy_json *json, bool is_call, const eddy_arrow_end *from,
                     const eddy_arrow_end *to) {
    const char *name = is_call ? "call" : "edge";
    /* Within the range that it leaves: a call may go on while its kernel runs. */
    int64_t last_ns = from->at_ns + (from->took_ns > 0 && !is_call ? from->took_ns - 1 : 0);
    put_arrow_end(json, "s", name, from->row, last_ns, from->key, to->key);
    put_arrow_end(json, "f", name, to->row, to->at_ns, from->key, to->key);
}

static void put_process(eddy_json *json, uint32_t process, const char *name) {
    char *to =
        put(begin_event(json, "M", process, 0), ",\"name\":\"process_name\",\"args\":{\"name\":");
    end_event(json, put(put_string(to, name, TEXT_MOST), "}"));
}

void eddy_json_stream(eddy_json *json, uint32_t process, uint32_t row, const char *name) {
    if (!(json->named & 1u << process))
        put_process(json, process, process == EDDY_JSON_DEVICES ? "devices" : "streams");
    json->named |= 1u << process;
    char *to =
        put(begin_event(json, "M", process, row), ",\"name\":\"thread_name\",\"args\":{\"name\":");
    end_event(json, put(put_string(to, name, TEXT_MOST), "}"));
}

void eddy_json_done(eddy_json *json, uint32_t process, uint32_t row, const eddy_record *record,
                    const char *text) {
    bool is_first = true;
    char *to = begin_event(json, "X", process, row);
    to = put_time(put(to, ",\"ts\":"), record->at_ns - json->begin_ns);
    to = put_time(put(to, ",\"dur\":"), record->took_ns);
    to = put(put(to, ",\"cat\":\""), process == EDDY_JSON_DEVICES ? "device" : "stream");
    to = put_string(put(to, "\",\"name\":"), record->name ? eddy_name_text(record->name) : text,
                    TEXT_MOST);
    to = put_instruction(to, &is_first, record);
    end_event(json, is_first ? to : put(to, "}"));
}

void eddy_json_counter(eddy_json *json, int64_t at_ns, const char *name, const char *series,
                       int64_t value) {
    char *to = begin_event(json, "C", EDDY_JSON_THREADS, 0);
    to = put_time(put(to, ",\"ts\":"), at_ns - json->begin_ns);
    to = put_string(put(to, ",\"name\":"), name, TEXT_MOST);
    to = put_string(put(to, ",\"args\":{"), series, TEXT_MOST);
    end_event(json, put(put_signed(put(to, ":"), value), "}"));
}

/* ---- begin and end ---- */

void eddy_json_begin(eddy_json *json) {
    char text[160], *to = put(eddy_output_line(json->output), "[\n");
    struct timespec now;
    struct tm utc;
    char date[32] = "";
    eddy_output_commit(json->output, to);
    snprintf(text, sizeof(text), "%.100s (%d)", program_invocation_short_name, (int)getpid());
    put_process(json, EDDY_JSON_THREADS, text);
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    to = put(begin_event(json, "i", EDDY_JSON_THREADS, 0),
             ",\"ts\":0,\"s\":\"g\",\"cat\":\"trace\",\"name\":\"begin\",\"args\":{\"eddy\":");
    to = put(put_string(to, eddy_version_text(), TEXT_MOST), ",\"date\":");
    to = put(put_string(to, date, TEXT_MOST), ",\"monotonic_ns\":");
    end_event(json, put(put_signed(to, json->begin_ns), "}"));
}

void eddy_json_end(eddy_json *json, int64_t at_ns, const char *why, int64_t dropped) {
    char line[EDDY_OUTPUT_LINE_BYTES], *to = line;
    to = put(to, "{\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":");
    to = put(put_time(to, at_ns - json->begin_ns),
             ",\"s\":\"g\",\"cat\":\"trace\",\"name\":\"end\",\"args\":{\"why\":");
    to = put(put_string(to, why, TEXT_MOST), ",\"dropped\":");
    to = put(put_signed(to, dropped), "}}\n]\n");
    eddy_output_end(json->output, line, (size_t)(to - line));
}
