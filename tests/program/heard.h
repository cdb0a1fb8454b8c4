/* What callbacks of eddy_read_async were given, for tests. */
#ifndef TESTS_PROGRAM_HEARD_H
#define TESTS_PROGRAM_HEARD_H

#include <eddy/eddy.h>

#define HEARD_BYTES_MOST 400
#define HEARD_MOST 400
#define HEARD_TAGS 24

typedef struct heard_entry {
    int tag;
    int64_t bytes;
    eddy_status status;
    char message[512];
    char data[HEARD_BYTES_MOST];
} heard_entry;

typedef struct heard {
    heard_entry entries[HEARD_MOST];
    int count;
} heard;

/* eddy_read_async, with a callback that puts down what it is given under the tag. */
eddy_status try_listen(eddy_tensor *tensor, int tag);
/* The same, which has to succeed. */
void listen_to(eddy_tensor *tensor, int tag);

/* Waits for all callbacks: what they were given since the last time, until the next time. */
const heard *settle(void);
/* How many there were. */
int count_heard(void);

/* Sorted by tags: callbacks of one tensor come in the order of their calls, and those of several as these are ready. */
heard by_tag(const heard *of);
/* Settles: what was heard is the same, by tags. */
void expect_heard(const heard *wanted, const char *what);
/* The one f32 of an entry. */
double value_heard(const heard *got, int i);

#endif
