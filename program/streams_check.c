/* The check of streams. Deliberately without the code that makes them: it runs the segments in some order that their waits allow, as threads would, and keeps for
 * each step what has run for sure; then it goes over each storage, and asks of each access whether those before it have. */
#include <base/memory.h>
#include <program/accesses.h>
#include <program/streams.h>
#include <string.h>

typedef struct checker {
    const eddy_streams *streams;
    uint32_t step_count;
    uint32_t *row_of;   /* per step: 1 + its stream; 0: in none */
    uint32_t *place_of; /* per step: its number in its stream, from 1 on */
    uint32_t *known;    /* per step: what has run for sure before it does, of each stream */
} checker;

static uint32_t *known_of(const checker *c, uint32_t step) {
    return c->known + (size_t)step * EDDY_STREAMS_MOST;
}

static bool lies_within(const eddy_streams *streams) {
    uint32_t segments = 0, steps = 0, waits = 0;
    for (uint32_t s = 0; s < streams->count; s++) {
        const eddy_stream_row *row = &streams->rows[s];
        if (row->segments_at != segments || row->steps_at != steps)
            return false;
        segments += row->segment_count;
        steps += row->step_count;
    }
    if (segments != streams->segment_count || steps != streams->step_count)
        return false;
    steps = 0;
    for (uint32_t i = 0; i < segments; i++) {
        const eddy_segment *segment = &streams->segments[i];
        if (segment->steps_at != steps || segment->step_count == 0 ||
            segment->waits_at > streams->wait_count ||
            segment->wait_count > streams->wait_count - segment->waits_at)
            return false;
        steps += segment->step_count;
        waits += segment->wait_count;
    }
    return steps == streams->step_count && waits == streams->wait_count;
}

/* Each step once, in rows that rise. */
static bool number_steps(checker *c) {
    const eddy_streams *streams = c->streams;
    uint32_t at = 0;
    for (uint32_t s = 0; s < streams->count; s++) {
        uint32_t place = 0;
        if (at != streams->rows[s].steps_at)
            return false;
        for (uint32_t i = 0; i < streams->rows[s].segment_count; i++) {
            const eddy_segment *segment = &streams->segments[streams->rows[s].segments_at + i];
            for (uint32_t end = segment->steps_at + segment->step_count; at < end; at++) {
                uint32_t step = streams->steps[at];
                if (step >= c->step_count || c->row_of[step] != 0 ||
                    (place > 0 && streams->steps[at - 1] >= step))
                    return false;
                c->row_of[step] = s + 1;
                c->place_of[step] = ++place;
            }
        }
    }
    return at == c->step_count;
}

/* The last step of so many segments of a stream. */
static uint32_t last_step(const eddy_streams *streams, uint32_t stream, uint32_t segments) {
    const eddy_segment *segment =
        &streams->segments[streams->rows[stream].segments_at + segments - 1];
    return streams->steps[segment->steps_at + segment->step_count - 1];
}

static void learn(checker *c, uint32_t *known, uint32_t step) {
    for (uint32_t s = 0; s < c->streams->count; s++)
        if (known_of(c, step)[s] > known[s])
            known[s] = known_of(c, step)[s];
    known[c->row_of[step] - 1] = c->place_of[step];
}

/* Runs the segments while any may; whether all have. */
static bool run(checker *c) {
    const eddy_streams *streams = c->streams;
    uint32_t known[EDDY_STREAMS_MOST][EDDY_STREAMS_MOST] = {0}, done[EDDY_STREAMS_MOST] = {0};
    for (uint32_t left = streams->segment_count; left > 0;) {
        uint32_t before = left;
        for (uint32_t s = 0; s < streams->count; s++) {
            bool may_run = true;
            while (may_run && done[s] < streams->rows[s].segment_count) {
                const eddy_segment *segment =
                    &streams->segments[streams->rows[s].segments_at + done[s]];
                const eddy_segment_wait *wait = streams->waits + segment->waits_at;
                for (uint32_t w = 0; w < segment->wait_count; w++)
                    if (wait[w].stream >= streams->count || wait[w].stream == s ||
                        wait[w].segments == 0 || wait[w].segments > done[wait[w].stream])
                        may_run = false;
                if (!may_run)
                    break;
                for (uint32_t w = 0; w < segment->wait_count; w++)
                    learn(c, known[s], last_step(streams, wait[w].stream, wait[w].segments));
                for (uint32_t i = 0; i < segment->step_count; i++) {
                    uint32_t step = streams->steps[segment->steps_at + i];
                    memcpy(known_of(c, step), known[s], sizeof(known[s]));
                    learn(c, known[s], step);
                }
                done[s]++;
                left--;
            }
        }
        if (left == before)
            return false;
    }
    return true;
}

static bool has_run(const checker *c, uint32_t before, uint32_t step) {
    return known_of(c, step)[c->row_of[before] - 1] >= c->place_of[before];
}

/* The accesses of each storage, in the order of the code. Of two accesses one of which writes, each has to come after the other; it is enough to look
 * back to the last write, which has come after all before it. */
static bool is_ordered(const checker *c, const eddy_accesses *a, uint32_t *write_of,
                       uint32_t *reads_of) {
    for (uint32_t step = 0; step < a->step_count; step++) {
        for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
            uint32_t storage = a->items[i].storage,
                     *reads = reads_of + (size_t)storage * EDDY_STREAMS_MOST;
            if (write_of[storage] != 0 && write_of[storage] - 1 != step &&
                !has_run(c, write_of[storage] - 1, step))
                return false;
            for (uint32_t s = 0; a->items[i].writes && s < c->streams->count; s++)
                if (reads[s] != 0 && reads[s] - 1 != step && !has_run(c, reads[s] - 1, step))
                    return false;
        }
        for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
            uint32_t storage = a->items[i].storage;
            if (a->items[i].writes)
                write_of[storage] = step + 1;
            else
                reads_of[(size_t)storage * EDDY_STREAMS_MOST + c->row_of[step] - 1] = step + 1;
        }
    }
    return true;
}

/* What the checker needs; NULL without memory. `more`: words behind its own. */
static uint32_t *begin(checker *c, const eddy_streams *streams, const eddy_accesses *accesses,
                       size_t more, size_t *bytes) {
    size_t steps = accesses->step_count;
    *bytes = (steps * (2 + EDDY_STREAMS_MOST) + more) * sizeof(uint32_t);
    uint32_t *memory = eddy_memory_acquire_zeroed(*bytes, EDDY_MEMORY_PROGRAM);
    *c = (checker){.streams = streams, .step_count = accesses->step_count, .row_of = memory};
    if (!memory)
        return NULL;
    c->place_of = memory + steps;
    c->known = memory + 2 * steps;
    return c->known + steps * EDDY_STREAMS_MOST;
}

static bool is_whole(const eddy_streams *streams, const eddy_accesses *accesses) {
    return streams->count >= 2 && streams->count <= EDDY_STREAMS_MOST &&
           streams->step_count == accesses->step_count && lies_within(streams);
}

bool eddy_streams_check(const eddy_streams *streams, const eddy_accesses *accesses,
                        bool *is_known) {
    checker c;
    size_t bytes, storages = accesses->storage_count;
    *is_known = true;
    if (!is_whole(streams, accesses))
        return false;
    uint32_t *more = begin(&c, streams, accesses, storages * (1 + EDDY_STREAMS_MOST), &bytes);
    *is_known = more != NULL;
    if (!more)
        return false;
    bool is_sound = number_steps(&c) && run(&c) && is_ordered(&c, accesses, more, more + storages);
    eddy_memory_release(c.row_of, bytes, EDDY_MEMORY_PROGRAM);
    return is_sound;
}

/* ---- memory ---- */

/* Of a block: the first and the last step of each stream that use it; 1 + step, 0 for none. */
typedef struct block_uses {
    uint32_t first[EDDY_STREAMS_MOST], last[EDDY_STREAMS_MOST];
} block_uses;

static void find_uses(const checker *c, const eddy_accesses *a, block_uses *uses, uint32_t count) {
    for (uint32_t step = 0; step < a->step_count; step++)
        for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
            uint32_t storage = a->items[i].storage, row = c->row_of[step] - 1;
            if (storage >= count)
                continue;
            uses[storage].last[row] = step + 1;
            if (uses[storage].first[row] == 0)
                uses[storage].first[row] = step + 1;
        }
}

/* Whether every use of one has run before any of the other. */
static bool is_over(const checker *c, const block_uses *one, const block_uses *other) {
    for (uint32_t s = 0; s < c->streams->count; s++)
        for (uint32_t t = 0; t < c->streams->count; t++)
            if (one->last[s] != 0 && other->first[t] != 0 &&
                !has_run(c, one->last[s] - 1, other->first[t] - 1))
                return false;
    return true;
}

static bool share_bytes(const eddy_arena_block *a, const eddy_arena_block *b) {
    return a->bytes > 0 && b->bytes > 0 && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static bool are_apart(const checker *c, const eddy_arena_block *blocks, const block_uses *uses,
                      uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (share_bytes(&blocks[i], &blocks[k]) && !is_over(c, &uses[i], &uses[k]) &&
                !is_over(c, &uses[k], &uses[i]))
                return false;
    return true;
}

bool eddy_streams_check_memory(const eddy_streams *streams, const eddy_accesses *accesses,
                               const eddy_arena_block *blocks, uint32_t count, bool *is_known) {
    checker c;
    size_t bytes, use_words = sizeof(block_uses) / sizeof(uint32_t);
    *is_known = true;
    if (!is_whole(streams, accesses))
        return false;
    uint32_t *more = begin(&c, streams, accesses, count * use_words, &bytes);
    *is_known = more != NULL;
    if (!more)
        return false;
    block_uses *uses = (block_uses *)(void *)more;
    bool is_sound = number_steps(&c) && run(&c);
    if (is_sound) {
        find_uses(&c, accesses, uses, count);
        is_sound = are_apart(&c, blocks, uses, count);
    }
    eddy_memory_release(c.row_of, bytes, EDDY_MEMORY_PROGRAM);
    return is_sound;
}
