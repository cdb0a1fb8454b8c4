/* What the tool was told (tool.c): one entry after the other, of all threads. */
#ifndef EDDY_TESTS_NVTX_TOLD_H
#define EDDY_TESTS_NVTX_TOLD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum told_kind {
    TOLD_PUSH,
    TOLD_POP,
    TOLD_MARK,
    TOLD_STREAM, /* a name, `message`, for the stream of the driver at `stream` */
    TOLD_THREAD, /* a name for the thread */
} told_kind;

typedef struct told {
    told_kind kind;
    long thread;
    bool is_domain; /* "eddy" */
    char category[16], message[40];
    bool is_registered, has_schema;
    uint64_t sequence, stream;
    int64_t bytes;
    char call[128], place[64], on[64];
} told;

typedef struct told_all {
    const told *items;
    int count;
    int lost; /* for which there was no room */
    int registered, registered_twice;
} told_all;

/* Any thread, while nobody tells anything. */
typedef told_all told_so_far_fn(void);

#endif
