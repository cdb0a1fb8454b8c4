/* The events of a trace's file, as a JSON library that has not written it reads them. The test fails where it is none. */
#ifndef TESTS_TRACE_EVENTS_H
#define TESTS_TRACE_EVENTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The array of a file that is whole, also of a compressed one. */
json_t *events_read(const char *path);
/* Of a file that was cut off: what is there up to its last whole line. */
json_t *events_read_cut(const char *path);

/* Fields; "" and 0 where there is none. */
const char *event_text(const json_t *event, const char *field);
double event_number(const json_t *event, const char *field);
const char *event_arg_text(const json_t *event, const char *field);
int64_t event_arg(const json_t *event, const char *field);

/* How many have this kind ("X"), category and name; NULL: any. */
size_t events_count(const json_t *events, const char *kind, const char *category, const char *name);
/* The first; NULL: none. */
const json_t *events_find(const json_t *events, const char *kind, const char *category,
                          const char *name);
/* What holds for each file: fields of each kind, times that are not negative, ranges of a row within each other, arrows whose ends lie in ranges and go forward. */
void events_must_fit(const json_t *events);

#endif
