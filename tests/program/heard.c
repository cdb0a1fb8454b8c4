#include "heard.h"

#include "outcome.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* One callback runs at a time; who has waited for all of them reads it. */
static heard now;
static int tags[HEARD_TAGS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                               12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

static void hear(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    heard_entry *e = &now.entries[now.count++];
    memset(e, 0, sizeof(*e));
    e->tag = *(int *)context;
    e->bytes = bytes;
    e->status = error ? error->status : EDDY_OK;
    snprintf(e->message, sizeof(e->message), "%s", error ? error->message : "");
    if (!data != !!error)
        e->status = EDDY_INTERNAL;
    if (data)
        memcpy(e->data, data, (size_t)bytes);
}

eddy_status try_listen(eddy_tensor *tensor, int tag) {
    return eddy_read_async(tensor, hear, &tags[tag]);
}

void listen_to(eddy_tensor *tensor, int tag) {
    must(try_listen(tensor, tag));
}

const heard *settle(void) {
    static heard before;
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    must(eddy_sync_deleters(EDDY_FOREVER));
    before = now;
    now.count = 0;
    return &before;
}

/* Those with one tag stay in their order. */
heard by_tag(const heard *of) {
    heard sorted = {.count = of->count};
    for (int i = 0; i < of->count; i++) {
        int at = i;
        for (; at > 0 && sorted.entries[at - 1].tag > of->entries[i].tag; at--)
            sorted.entries[at] = sorted.entries[at - 1];
        sorted.entries[at] = of->entries[i];
    }
    return sorted;
}

void expect_heard(const heard *unsorted, const char *what) {
    heard sorted[2] = {by_tag(settle()), by_tag(unsorted)}, *got = &sorted[0], *wanted = &sorted[1];
    cr_assert_eq(got->count, wanted->count, "%s: %d, not %d", what, got->count, wanted->count);
    for (int i = 0; i < got->count; i++) {
        const heard_entry *a = &got->entries[i], *b = &wanted->entries[i];
        cr_assert(a->tag == b->tag && a->bytes == b->bytes && a->status == b->status,
                  "%s: %d: tag %d, %lld bytes, status %d, not %d, %lld, %d", what, i, a->tag,
                  (long long)a->bytes, a->status, b->tag, (long long)b->bytes, b->status);
        cr_assert_str_eq(a->message, b->message, "%s: %d", what, i);
        cr_assert_eq(memcmp(a->data, b->data, sizeof(a->data)), 0, "%s: %d", what, i);
    }
}

int count_heard(void) {
    return settle()->count;
}

double value_heard(const heard *got, int i) {
    float value;
    cr_assert_lt(i, got->count);
    cr_assert_eq(got->entries[i].bytes, (int64_t)sizeof(value));
    memcpy(&value, got->entries[i].data, sizeof(value));
    return value;
}
