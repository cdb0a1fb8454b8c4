#include <kernels/cpu/sort/sort_team.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Parts that are sorted in parallel, and the least number of records in one. */
#define PARTS 16
#define PART_LEAST 32768
/* Records of a merge's result that one slice writes. */
#define SECTION 32768

typedef struct team_sort {
    const eddy_sort_order *order;
    char *from, *to;
    size_t record_bytes;
    int64_t count;
    int64_t run; /* records in a sorted run so far: a part, two parts ... */
} team_sort;

static void part_slice(void *context, int64_t begin, int64_t end) {
    const team_sort *work = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t at = part * work->run, count = eddy_min_i64(work->run, work->count - at);
        size_t offset = (size_t)at * work->record_bytes;
        if (count > 0)
            eddy_sort_records(work->order, work->from + offset, work->to + offset, count);
    }
}

/* Sections may begin and end inside a pair of runs. */
static void merge_slice(void *context, int64_t begin, int64_t end) {
    const team_sort *work = context;
    int64_t at = begin * SECTION, stop = eddy_min_i64(end * SECTION, work->count);
    while (at < stop) {
        int64_t base = at / (2 * work->run) * 2 * work->run;
        int64_t first = eddy_min_i64(work->run, work->count - base);
        int64_t second = eddy_min_i64(work->run, work->count - base - first);
        int64_t until = eddy_min_i64(stop, base + first + second);
        const char *runs = work->from + (size_t)base * work->record_bytes;
        eddy_sort_merge(work->order, work->to + (size_t)at * work->record_bytes, runs, first,
                        runs + (size_t)first * work->record_bytes, second, at - base, until - base);
        at = until;
    }
}

void eddy_sort_records_by_team(eddy_kernel_team *team, const eddy_sort_order *order, void *records,
                               void *spare, int64_t count) {
    if (count < EDDY_SORT_LONG || team->thread_count <= 2) {
        eddy_sort_records(order, records, spare, count);
        return;
    }
    team_sort work = {.order = order,
                      .from = records,
                      .to = spare,
                      .record_bytes = eddy_sort_record_bytes(order),
                      .count = count,
                      .run = eddy_max_i64(PART_LEAST, (count + PARTS - 1) / PARTS)};
    team->parallel_for(team, (count + work.run - 1) / work.run, 1, part_slice, &work);
    for (; work.run < count; work.run *= 2) {
        team->parallel_for(team, (count + SECTION - 1) / SECTION, 1, merge_slice, &work);
        char *merged = work.to;
        work.to = work.from;
        work.from = merged;
    }
    if (work.from != records)
        memcpy(records, work.from, (size_t)count * work.record_bytes);
}
