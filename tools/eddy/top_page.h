/* The page of counters of a process that was started with EDDY_TOP (trace/top.h of the library says what is in it). */
#ifndef TOOLS_EDDY_TOP_PAGE_H
#define TOOLS_EDDY_TOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_TEXT_BYTES 32768
#define TOP_VALUES_MOST 512
#define TOP_NAME_BYTES 48

typedef struct top_value {
    char group[TOP_NAME_BYTES], name[TOP_NAME_BYTES];
    int64_t value;
} top_value;

/* What the page says at one moment. */
typedef struct top_snapshot {
    int count;
    top_value values[TOP_VALUES_MOST];
} top_snapshot;

typedef struct top_page {
    const char *memory; /* mapped */
    size_t bytes;
} top_page;

/* False: why[] says it. */
bool top_page_open(top_page *page, long process, char why[200]);
void top_page_close(top_page *page);
/* False: the page changes without end, or is none. */
bool top_page_read(const top_page *page, top_snapshot *snapshot);

/* The sum of a value over all groups that begin so ("runtime "); 0: there is none. */
int64_t top_sum(const top_snapshot *snapshot, const char *group, const char *name);

#endif
