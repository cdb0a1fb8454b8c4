/* An event as it lies in a ring: a line of 64 bytes, and up to EDDY_RECORD_TEXTS lines of text behind it. */
#ifndef EDDY_TRACE_RECORD_H
#define EDDY_TRACE_RECORD_H

#include <stdint.h>

#define EDDY_RECORD_LINE 64
#define EDDY_RECORD_TEXTS 2
#define EDDY_RECORD_TEXT_BYTES (EDDY_RECORD_TEXTS * EDDY_RECORD_LINE)

typedef enum eddy_record_kind {
    EDDY_RECORD_SPAN,   /* from `at_ns` on, for `took_ns` */
    EDDY_RECORD_MOMENT, /* at `at_ns` */
    EDDY_RECORD_THREAD, /* whose records follow: its text is its name, `sequence` its number in the system */
} eddy_record_kind;

/* Fields are those of eddy_trace_event (base/trace.h). What is not known is 0. What a device has done is a range from its launch on; `detail` is the name of its stream, and of a kernel's of the host. */
typedef struct eddy_record {
    int64_t at_ns, took_ns; /* of eddy_clock_ns */
    uint64_t sequence : 48; /* more than three months of calls, 30 million a second */
    uint64_t runtime : 16;  /* modulo 65,536 */
    union {
        uint64_t origin; /* of moments */
        int64_t live;    /* of ranges */
    };
    const void *address;
    const char *detail;
    int64_t bytes;
    uint16_t stream;
    uint16_t name; /* of base/name_table.h; 0: it is the first text */
    uint8_t kind, phase;
    uint8_t
        texts; /* lines of text: strings that end with 0, first the name if it has no number, then the call with its shapes */
    uint8_t has_call : 1;   /* of the strings the last is the call */
    uint8_t is_ordered : 1; /* of kernels of the host: its stream runs one after another */
    uint8_t is_launch : 1;  /* of kernels of devices */
    uint8_t is_part : 1;    /* of kernels: a step of a program's run, which is one itself */
} eddy_record;

/* The instruction's name in the process. Numbers of one runtime are not those of another. */
static inline uint64_t eddy_record_key(const eddy_record *record, uint64_t sequence) {
    return (uint64_t)record->runtime << 48 | sequence;
}

_Static_assert(sizeof(eddy_record) == EDDY_RECORD_LINE, "a line of the ring");

#endif
