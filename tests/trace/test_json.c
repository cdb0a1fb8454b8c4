#include <base/name_table.h>
#include <base/trace.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <tests/trace/events.h>
#include <trace/json.h>
#include <unistd.h>

static char path[] = "/tmp/eddy_json_XXXXXX";
static eddy_output output;
static eddy_json json;

static void begin(void) {
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(eddy_output_open(&output, path, 1 << 30, (eddy_origin){"test", NULL}), EDDY_OK);
    json = (eddy_json){.output = &output, .begin_ns = 1000};
    eddy_json_begin(&json);
}

static json_t *end(void) {
    eddy_json_end(&json, 5000, "stopped", 7);
    json_t *events = events_read(path);
    unlink(path);
    events_must_fit(events);
    return events;
}

#define SEQUENCE_MOST ((INT64_C(1) << 48) - 1)

Test(json, a_record_is_a_line_with_what_is_known_of_it) {
    begin();
    eddy_json_thread(&json, 3, "worker", 4711);
    eddy_json_record(&json, 3,
                     &(eddy_record){.at_ns = 2001,
                                    .took_ns = 1500000,
                                    .sequence = SEQUENCE_MOST,
                                    .runtime = 2,
                                    .bytes = 192,
                                    .stream = 65535,
                                    .detail = "loader",
                                    .name = (uint16_t)eddy_name_number("add"),
                                    .phase = EDDY_TRACE_KERNEL,
                                    .texts = 1,
                                    .has_call = true},
                     "add(f32[16], f32[16])", &(eddy_json_after){2, {5, INT64_MAX}});
    eddy_json_counter(&json, 3000, "in flight", "instructions", INT64_MIN);
    json_t *events = end();
    const json_t *kernel = events_find(events, "X", "kernel", "add");
    cr_assert_not_null(kernel);
    cr_assert_float_eq(event_number(kernel, "ts"), 1.001, 1e-9);
    cr_assert_float_eq(event_number(kernel, "dur"), 1500, 1e-9);
    cr_assert_eq(event_number(kernel, "tid"), 3);
    cr_assert_eq(event_arg(kernel, "n"), SEQUENCE_MOST);
    cr_assert_eq(event_arg(kernel, "runtime"), 2);
    cr_assert_eq(event_arg(kernel, "bytes"), 192);
    cr_assert_eq(event_arg(kernel, "stream"), 65535);
    cr_assert_str_eq(event_arg_text(kernel, "of"), "f32[16], f32[16]");
    cr_assert_str_eq(event_arg_text(kernel, "on"), "loader");
    const json_t *waited = json_object_get(json_object_get(kernel, "args"), "after");
    cr_assert_eq(json_array_size(waited), 2);
    cr_assert_eq(json_integer_value(json_array_get(waited, 1)), INT64_MAX);
    const json_t *name = events_find(events, "M", NULL, "thread_name");
    cr_assert_str_eq(event_arg_text(name, "name"), "worker (4711)");
    cr_assert_eq(event_arg(events_find(events, "C", NULL, "in flight"), "instructions"), INT64_MIN);
    cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), 7);
    json_decref(events);
}

/* Bytes that are no UTF-8 are U+FFFD, each; what JSON escapes is escaped; everything else is as it was. */
Test(json, any_name_makes_a_string) {
    static const char *const names[][2] = {
        {"step \"1\"\\ \n\x7f", "step \"1\"\\ \n\x7f"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"},
        {"a\xff\xfe", "a\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* longer than it need be */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half a pair */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"", ""},
    };
    enum { COUNT = sizeof(names) / sizeof(*names) };
    begin();
    for (int i = 0; i < COUNT; i++) {
        char text[EDDY_RECORD_TEXT_BYTES] = "";
        snprintf(text, sizeof(text), "%d%s", i, names[i][0]);
        eddy_json_record(&json, 1,
                         &(eddy_record){.at_ns = 2000 + i, .phase = EDDY_TRACE_RANGE, .texts = 1},
                         text, NULL);
    }
    json_t *events = end();
    for (int i = 0; i < COUNT; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d%s", i, names[i][1]);
        cr_assert_eq(events_count(events, "X", "range", name), 1, "%d", i);
    }
    json_decref(events);
}

/* Every byte in every field at once fits into a line. */
Test(json, the_longest_line_has_room) {
    char text[EDDY_RECORD_TEXT_BYTES], detail[1000];
    begin();
    memset(text, 1, sizeof(text));
    memset(detail, 1, sizeof(detail));
    detail[sizeof(detail) - 1] = text[20] = text[sizeof(text) - 1] = '\0';
    eddy_record record = {.at_ns = INT64_MAX,
                          .took_ns = INT64_MAX,
                          .sequence = SEQUENCE_MOST,
                          .runtime = UINT16_MAX,
                          .live = INT64_MIN,
                          .bytes = INT64_MIN,
                          .stream = 65535,
                          .detail = detail,
                          .phase = EDDY_TRACE_KERNEL,
                          .texts = 2,
                          .has_call = true};
    eddy_json_after after = {.count = EDDY_JSON_AFTER_MOST};
    for (int i = 0; i < EDDY_JSON_AFTER_MOST; i++)
        after.sequences[i] = INT64_MAX;
    const char *before = eddy_output_line(&output);
    eddy_json_record(&json, UINT32_MAX, &record, text, &after);
    cr_assert_lt(eddy_output_line(&output) - before,
                 EDDY_OUTPUT_LINE_BYTES - 1000); /* for the place */
    json_decref(events_read((eddy_json_end(&json, INT64_MAX, "stopped", INT64_MAX), path)));
    unlink(path);
}

Test(json, an_arrow_leaves_its_kernel_and_enters_the_other) {
    begin();
    eddy_record record = {.at_ns = 2000,
                          .took_ns = 100,
                          .sequence = 5,
                          .phase = EDDY_TRACE_KERNEL,
                          .name = (uint16_t)eddy_name_number("add")};
    eddy_json_record(&json, 1, &record, "", NULL);
    record.sequence = 6;
    record.at_ns = 3000;
    eddy_json_record(&json, 2, &record, "", NULL);
    eddy_json_arrow(&json, false, &(eddy_arrow_end){5, 2000, 100, 1},
                    &(eddy_arrow_end){6, 3000, 100, 2});
    json_t *events = end();
    const json_t *leaves = events_find(events, "s", "edge", NULL);
    const json_t *enters = events_find(events, "f", "edge", NULL);
    cr_assert_float_eq(event_number(leaves, "ts"), 1.099, 1e-9);
    cr_assert_float_eq(event_number(enters, "ts"), 2, 1e-9);
    cr_assert_str_eq(event_text(leaves, "id"), event_text(enters, "id"));
    cr_assert_str_eq(event_text(enters, "bp"), "e");
    json_decref(events);
}
