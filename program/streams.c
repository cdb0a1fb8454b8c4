#include <program/streams.h>

#include <base/memory.h>
#include <base/number.h>
#include <program/accesses.h>
#include <program/dependencies.h>
#include <program/steps.h>
#include <string.h>

/* Until a sleeping worker runs (streams/team.h measures it while a program runs; a build has to guess). */
#define WAKE_PS INT64_C(20000000)
/* A wait of one spinning thread for another, with the first lines of what was computed. */
#define WAIT_PS INT64_C(1000000)
/* Of a byte that another core has written. */
#define BYTE_PS INT64_C(40)
/* More than that is never near: sums do not overflow. */
#define FAR_BYTES (INT64_C(1) << 40)

/* ---- assignment ---- */

typedef struct planner {
    const eddy_dependencies *dependencies;
    uint32_t stream_count;
    int64_t wake_ps, wait_ps,
        byte_ps; /* 0 where streams are asked for: none of them stays empty for that */
    uint8_t *stream_of, *best; /* per step */
    int64_t *ends_ps;          /* per step: when it has run, by estimate */
    uint32_t *places;          /* per step: its number in its stream, from 1 on */
    uint32_t *clocks;          /* per step and stream */
    uint32_t *waits_at;        /* [step_count + 1]: the waits of each step, in: */
    uint32_t *waits;           /* the steps that are waited for */
    uint32_t *segment_of;      /* per step: the segments of its stream, up to its own */
    bool *is_waited_for;       /* per step: a segment ends behind it */
} planner;

/* When a step could begin on the stream. */
static int64_t begin_of(const planner *p, uint32_t step, uint32_t stream, int64_t free_ps) {
    const eddy_dependencies *d = p->dependencies;
    for (uint32_t i = d->from_at[step]; i < d->from_at[step + 1]; i++) {
        uint32_t from = d->from[i];
        int64_t ready_ps = p->ends_ps[from] + (p->stream_of[from] == stream ? 0 : p->wait_ps);
        free_ps = ready_ps > free_ps ? ready_ps : free_ps;
    }
    return free_ps;
}

/* The time of a step on the stream: it is longer by what other cores have written. A core that has read the same before is not thought of. */
static int64_t time_of(const planner *p, uint32_t step, uint32_t stream) {
    const eddy_dependencies *d = p->dependencies;
    const eddy_accesses *a = d->accesses;
    int64_t moved = 0;
    for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
        uint32_t writer = d->writer_of[i];
        if (writer != 0 && writer - 1 != step && p->stream_of[writer - 1] != stream)
            moved += eddy_min_i64(a->bytes[a->items[i].storage], FAR_BYTES);
    }
    return a->costs_ps[step] + moved * p->byte_ps;
}

/* List scheduling: each step, in the order of the code, goes where it can end first. Returns when all have run. */
static int64_t assign(planner *p) {
    const eddy_accesses *a = p->dependencies->accesses;
    int64_t free_ps[EDDY_STREAMS_MOST] = {0}, all_ps = 0;
    for (uint32_t s = 1; s < p->stream_count; s++)
        free_ps[s] = p->wake_ps;
    for (uint32_t step = 0; step < a->step_count; step++) {
        uint32_t best = 0;
        int64_t end_ps = INT64_MAX;
        for (uint32_t s = 0; s < p->stream_count; s++) {
            int64_t other_ps = begin_of(p, step, s, free_ps[s]) + time_of(p, step, s);
            /* As soon elsewhere: where it follows the last step at once. */
            if (other_ps < end_ps || (other_ps == end_ps && free_ps[s] > free_ps[best])) {
                end_ps = other_ps;
                best = s;
            }
        }
        p->stream_of[step] = (uint8_t)best;
        p->ends_ps[step] = free_ps[best] = end_ps;
        all_ps = end_ps > all_ps ? end_ps : all_ps;
    }
    return all_ps + p->wait_ps;
}

/* One stream: dear steps have helpers, which end together, and cost a hand-over. */
static int64_t one_stream_ps(const eddy_accesses *a, int32_t thread_count) {
    int64_t sum_ps = 0;
    for (uint32_t step = 0; step < a->step_count; step++) {
        int64_t cost_ps = a->costs_ps[step];
        sum_ps += cost_ps > EDDY_STEP_HELPED_PS
                      ? (cost_ps - EDDY_STEP_HELPED_PS) / thread_count + EDDY_STEP_HELPED_PS
                      : cost_ps;
    }
    return sum_ps;
}

/* No number of streams takes less than the longest row of steps that depend on each other. */
static int64_t longest_ps(planner *p) {
    const eddy_dependencies *d = p->dependencies;
    int64_t longest = 0;
    for (uint32_t step = 0; step < d->accesses->step_count; step++) {
        int64_t begin_ps = 0;
        for (uint32_t i = d->from_at[step]; i < d->from_at[step + 1]; i++)
            begin_ps = p->ends_ps[d->from[i]] > begin_ps ? p->ends_ps[d->from[i]] : begin_ps;
        p->ends_ps[step] = begin_ps + d->accesses->costs_ps[step];
        longest = p->ends_ps[step] > longest ? p->ends_ps[step] : longest;
    }
    return longest;
}

static bool pays(int64_t one_ps, int64_t several_ps) {
    return several_ps < one_ps / 4 * 3;
}

/* The number of streams that takes least, if any pays; the steps' streams are in `best` then. */
static uint32_t find_best(planner *p, eddy_streams *streams, int32_t thread_count) {
    const eddy_accesses *a = p->dependencies->accesses;
    uint32_t most = thread_count < EDDY_STREAMS_MOST ? (uint32_t)thread_count : EDDY_STREAMS_MOST;
    uint32_t best = 1;
    p->wake_ps = WAKE_PS;
    p->wait_ps = WAIT_PS;
    p->byte_ps = BYTE_PS;
    if (!pays(streams->one_ps, longest_ps(p)))
        return 1;
    for (p->stream_count = 2; p->stream_count <= most; p->stream_count++) {
        int64_t all_ps = assign(p);
        if (!pays(streams->one_ps, all_ps) || (best > 1 && all_ps >= streams->several_ps))
            continue;
        best = p->stream_count;
        streams->several_ps = all_ps;
        memcpy(p->best, p->stream_of, a->step_count);
    }
    return best;
}

/* Whether there are several streams. Their number and the steps' streams are p's then. */
static bool choose(planner *p, eddy_streams *streams, const eddy_streams_wish *wish) {
    const eddy_accesses *a = p->dependencies->accesses;
    streams->one_ps = streams->several_ps = one_stream_ps(a, wish->thread_count);
    streams->is_asked_for = wish->stream_count > 1;
    if (streams->is_asked_for) {
        p->stream_count = (uint32_t)wish->stream_count;
        streams->several_ps = assign(p);
        return true;
    }
    p->stream_count = find_best(p, streams, wish->thread_count);
    memcpy(p->stream_of, p->best, a->step_count);
    return p->stream_count > 1;
}

/* ---- waits ---- */

static uint32_t *clock_of(const planner *p, uint32_t step) {
    return p->clocks + (size_t)step * EDDY_STREAMS_MOST;
}

static void advance(uint32_t *clock, const uint32_t *other) {
    for (uint32_t s = 0; s < EDDY_STREAMS_MOST; s++)
        clock[s] = other[s] > clock[s] ? other[s] : clock[s];
}

/* The latest step of each other stream that the step depends on: 1 + step, 0 for none. Returns the dependencies between streams. */
static uint32_t latest_of(const planner *p, uint32_t step, uint32_t *latest) {
    const eddy_dependencies *d = p->dependencies;
    uint32_t count = 0;
    memset(latest, 0, EDDY_STREAMS_MOST * sizeof(*latest));
    for (uint32_t i = d->from_at[step]; i < d->from_at[step + 1]; i++) {
        uint32_t from = d->from[i], stream = p->stream_of[from];
        if (stream == p->stream_of[step])
            continue;
        count++;
        latest[stream] = from + 1 > latest[stream] ? from + 1 : latest[stream];
    }
    return count;
}

/* Whether another step that is waited for has waited for this one already. */
static bool is_implied(const planner *p, const uint32_t *latest, uint32_t stream) {
    uint32_t from = latest[stream] - 1;
    for (uint32_t s = 0; s < p->stream_count; s++)
        if (s != stream && latest[s] != 0 && clock_of(p, latest[s] - 1)[stream] >= p->places[from])
            return true;
    return false;
}

/* The waits of one step, of which only those go into `latest` that nothing else implies; and its clock. `last`: the clock of the step before it in its stream. */
static uint32_t find_waits(const planner *p, uint32_t step, uint32_t *last, uint32_t *latest) {
    uint32_t dependencies = latest_of(p, step, latest), kept[EDDY_STREAMS_MOST] = {0};
    for (uint32_t s = 0; s < p->stream_count; s++)
        if (latest[s] != 0 && last[s] < p->places[latest[s] - 1] && !is_implied(p, latest, s))
            kept[s] = latest[s];
    for (uint32_t s = 0; s < p->stream_count; s++)
        if (kept[s] != 0)
            advance(last, clock_of(p, kept[s] - 1));
    memcpy(latest, kept, sizeof(kept));
    last[p->stream_of[step]] = p->places[step];
    memcpy(clock_of(p, step), last, EDDY_STREAMS_MOST * sizeof(*last));
    return dependencies;
}

/* Clocks and waits of all steps. */
static void find_clocks(planner *p, eddy_streams *streams) {
    uint32_t last[EDDY_STREAMS_MOST][EDDY_STREAMS_MOST] = {0}, counts[EDDY_STREAMS_MOST] = {0};
    uint32_t latest[EDDY_STREAMS_MOST];
    for (uint32_t step = 0; step < p->dependencies->accesses->step_count; step++) {
        uint32_t stream = p->stream_of[step];
        p->places[step] = ++counts[stream];
        p->waits_at[step] = streams->wait_count;
        streams->dependency_count += find_waits(p, step, last[stream], latest);
        for (uint32_t s = 0; s < p->stream_count; s++)
            if (latest[s] != 0) {
                p->is_waited_for[latest[s] - 1] = true;
                p->waits[streams->wait_count++] = latest[s] - 1;
            }
        p->waits_at[step + 1] = streams->wait_count;
    }
}

/* ---- segments ---- */

/* Cuts a stream into segments, behind those of the streams before it. Without `segments` they are counted alone. */
static void cut(const planner *p, eddy_streams *streams, uint32_t stream, uint32_t *step_at) {
    eddy_stream_row row = {.segments_at = streams->segment_count, .steps_at = *step_at};
    bool begins = true;
    for (uint32_t step = 0; step < p->dependencies->accesses->step_count; step++) {
        if (p->stream_of[step] != stream)
            continue;
        if (begins || p->waits_at[step + 1] > p->waits_at[step]) {
            row.segment_count++;
            if (streams->segments)
                streams->segments[streams->segment_count] =
                    (eddy_segment){.steps_at = *step_at,
                                   .waits_at = p->waits_at[step],
                                   .wait_count = p->waits_at[step + 1] - p->waits_at[step]};
            streams->segment_count++;
        }
        p->segment_of[step] = row.segment_count;
        row.step_count++;
        begins = p->is_waited_for[step];
        if (!streams->segments)
            continue;
        streams->segments[streams->segment_count - 1].step_count++;
        streams->steps[(*step_at)++] = step;
    }
    streams->rows[stream] = row;
}

static void cut_all(const planner *p, eddy_streams *streams) {
    uint32_t step_at = 0;
    streams->segment_count = 0;
    for (uint32_t s = 0; s < p->stream_count; s++)
        cut(p, streams, s, &step_at);
}

static size_t steps_bytes(const eddy_streams *streams) {
    return streams->step_count * sizeof(*streams->steps);
}

static size_t segments_bytes(const eddy_streams *streams) {
    return streams->segment_count * sizeof(*streams->segments);
}

static size_t waits_bytes(const eddy_streams *streams) {
    return streams->wait_count * sizeof(*streams->waits);
}

static bool make_segments(planner *p, eddy_streams *streams) {
    streams->count = p->stream_count;
    streams->step_count = p->dependencies->accesses->step_count;
    find_clocks(p, streams);
    cut_all(p, streams);
    eddy_segment *segments =
        eddy_memory_acquire_zeroed(segments_bytes(streams), EDDY_MEMORY_PROGRAM);
    streams->steps = eddy_memory_acquire(steps_bytes(streams), EDDY_MEMORY_PROGRAM);
    streams->waits = eddy_memory_acquire(waits_bytes(streams), EDDY_MEMORY_PROGRAM);
    streams->segments = segments;
    if (!streams->steps || !streams->segments || !streams->waits)
        return false;
    cut_all(p, streams);
    for (uint32_t i = 0; i < streams->wait_count; i++)
        streams->waits[i] =
            (eddy_segment_wait){p->stream_of[p->waits[i]], p->segment_of[p->waits[i]]};
    return true;
}

/* ---- all of it ---- */

static size_t clock_bytes(uint32_t step_count) {
    return (size_t)step_count * EDDY_STREAMS_MOST * sizeof(uint32_t);
}

static char *take(char **at, size_t bytes) {
    char *taken = *at;
    *at += (bytes + 7) / 8 * 8;
    return taken;
}

/* Room for a planner's arrays at `memory`; its bytes, with NULL too. */
static size_t lay_out(planner *p, char *memory, size_t steps, size_t from_count) {
    char *at = memory;
    p->ends_ps = (int64_t *)(void *)take(&at, steps * sizeof(*p->ends_ps));
    p->places = (uint32_t *)(void *)take(&at, steps * sizeof(*p->places));
    p->waits_at = (uint32_t *)(void *)take(&at, (steps + 1) * sizeof(*p->waits_at));
    p->waits = (uint32_t *)(void *)take(&at, from_count * sizeof(*p->waits));
    p->segment_of = (uint32_t *)(void *)take(&at, steps * sizeof(*p->segment_of));
    p->is_waited_for = (bool *)take(&at, steps * sizeof(*p->is_waited_for));
    p->best = (uint8_t *)take(&at, steps);
    return (size_t)(at - memory);
}

/* The streams of dependent steps; with one of them nothing but the estimates is there. */
static bool plan(const eddy_dependencies *d, eddy_streams *streams, eddy_stream_clocks *clocks,
                 const eddy_streams_wish *wish) {
    planner p = {.dependencies = d, .stream_of = clocks->stream_of, .clocks = clocks->items};
    size_t steps = d->accesses->step_count, from_count = d->from_at[steps];
    size_t bytes = lay_out(&p, NULL, steps, from_count);
    char *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    (void)lay_out(&p, memory, steps, from_count);
    bool has_memory = !choose(&p, streams, wish) || make_segments(&p, streams);
    clocks->stream_count = streams->count;
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

static bool make(eddy_streams *streams, eddy_stream_clocks *clocks, const eddy_accesses *accesses,
                 const eddy_streams_wish *wish) {
    eddy_dependencies d;
    clocks->step_count = accesses->step_count;
    clocks->stream_of = eddy_memory_acquire_zeroed(accesses->step_count, EDDY_MEMORY_PROGRAM);
    clocks->items =
        eddy_memory_acquire_zeroed(clock_bytes(accesses->step_count), EDDY_MEMORY_PROGRAM);
    if (!clocks->stream_of || !clocks->items || !eddy_dependencies_find(&d, accesses))
        return false;
    bool has_memory = plan(&d, streams, clocks, wish);
    eddy_dependencies_fini(&d);
    return has_memory;
}

bool eddy_streams_may_pay(int64_t cost_ps, uint32_t step_count, const eddy_streams_wish *wish) {
    if (wish->stream_count == 1 || wish->thread_count < 2 || step_count < 2 ||
        step_count > EDDY_STREAMS_STEPS_MOST)
        return false;
    return wish->stream_count > 1 || pays(cost_ps, WAKE_PS);
}

bool eddy_streams_make(eddy_streams *streams, eddy_stream_clocks *clocks,
                       const eddy_accesses *accesses, const eddy_streams_wish *wish) {
    *streams = (eddy_streams){.count = 1};
    *clocks = (eddy_stream_clocks){.stream_count = 1};
    bool has_memory = make(streams, clocks, accesses, wish);
    if (!has_memory)
        eddy_streams_fini(streams);
    if (!has_memory || streams->count == 1)
        eddy_stream_clocks_fini(clocks);
    return has_memory;
}

void eddy_streams_fini(eddy_streams *streams) {
    eddy_memory_release(streams->steps, steps_bytes(streams), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(streams->segments, segments_bytes(streams), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(streams->waits, waits_bytes(streams), EDDY_MEMORY_PROGRAM);
    *streams = (eddy_streams){.count = 1};
}

void eddy_stream_clocks_fini(eddy_stream_clocks *clocks) {
    eddy_memory_release(clocks->stream_of, clocks->step_count, EDDY_MEMORY_PROGRAM);
    eddy_memory_release(clocks->items, clock_bytes(clocks->step_count), EDDY_MEMORY_PROGRAM);
    *clocks = (eddy_stream_clocks){.stream_count = 1};
}

int64_t eddy_streams_bytes(const eddy_streams *streams) {
    return (int64_t)(steps_bytes(streams) + segments_bytes(streams) + waits_bytes(streams));
}

/* ---- looking ---- */

/* The last of some rising steps that is not behind the step, as a number from the first on; or the first. */
static uint32_t find_step(const uint32_t *steps, uint32_t count, uint32_t step) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (steps[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The segment that begins with the step in this place of all; NULL if none does. */
static const eddy_segment *segment_at(const eddy_streams *streams, const eddy_stream_row *row,
                                      uint32_t at) {
    uint32_t low = row->segments_at, high = low + row->segment_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (streams->segments[middle].steps_at <= at)
            low = middle;
        else
            high = middle;
    }
    return streams->segments[low].steps_at == at ? &streams->segments[low] : NULL;
}

eddy_stream_place eddy_streams_find(const eddy_streams *streams, uint32_t step) {
    eddy_stream_place found = {0};
    for (uint32_t s = 0; s < streams->count; s++) {
        const eddy_stream_row *row = &streams->rows[s];
        if (row->step_count == 0)
            continue;
        uint32_t at =
            row->steps_at + find_step(streams->steps + row->steps_at, row->step_count, step);
        if (streams->steps[at] == step)
            found = (eddy_stream_place){s, at - row->steps_at, segment_at(streams, row, at)};
    }
    return found;
}

uint32_t eddy_streams_wait_steps(const eddy_streams *streams, const eddy_segment_wait *wait) {
    const eddy_stream_row *row = &streams->rows[wait->stream];
    const eddy_segment *last = &streams->segments[row->segments_at + wait->segments - 1];
    return last->steps_at + last->step_count - row->steps_at;
}

/* ---- lives ---- */

static void add_life(const eddy_stream_clocks *clocks, uint32_t step, uint32_t storage,
                     eddy_arena_lives *lives) {
    uint32_t stream = clocks->stream_of[step], count = lives->stream_count;
    uint32_t *begins = lives->begins + (size_t)storage * count,
             *ends = lives->ends + (size_t)storage * count;
    const uint32_t *clock = eddy_stream_clock(clocks, step);
    for (uint32_t s = 0; s < count; s++) {
        uint32_t before = clock[s] - (s == stream);
        begins[s] = before < begins[s] ? before : begins[s];
    }
    ends[stream] = clock[stream];
}

void eddy_streams_find_lives(const eddy_stream_clocks *clocks, const eddy_accesses *accesses,
                             uint32_t block_count, eddy_arena_lives *lives) {
    size_t bytes = (size_t)block_count * clocks->stream_count * sizeof(uint32_t);
    lives->stream_count = clocks->stream_count;
    memset(lives->begins, 0xff, bytes);
    memset(lives->ends, 0, bytes);
    for (uint32_t step = 0; step < accesses->step_count; step++)
        for (uint32_t i = accesses->at[step]; i < accesses->at[step + 1]; i++)
            if (accesses->items[i].storage < block_count)
                add_life(clocks, step, accesses->items[i].storage, lives);
}
