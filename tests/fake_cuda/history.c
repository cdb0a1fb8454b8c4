#include <stdlib.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/history.h>

#define ROW_BYTES 512
#define WIDE FAKE_HISTORY_CHAINS
#define PRUNE_LEAST 256

static void chains_clear(fake_history *history) {
    for (int c = 0; c <= WIDE; c++)
        history->chains[c] = -1;
}

void fake_history_init(fake_history *history) {
    *history = (fake_history){.prune_at = PRUNE_LEAST};
    chains_clear(history);
}

void fake_history_fini(fake_history *history) {
    free(history->entries);
    fake_history_init(history);
}

static int32_t chain_of_row(uintptr_t row) {
    return (int32_t)(row % FAKE_HISTORY_CHAINS);
}

static int32_t chain_of(uintptr_t begin, uintptr_t end) {
    uintptr_t first = begin / ROW_BYTES, last = (end - 1) / ROW_BYTES;
    return first == last ? chain_of_row(first) : WIDE;
}

static void link_entry(fake_history *history, int32_t index) {
    fake_history_entry *entry = &history->entries[index];
    int32_t *chain = &history->chains[chain_of(entry->begin, entry->end)];
    entry->next = *chain;
    *chain = index;
}

/* Drops what the host has seen complete, and what was forgotten. */
static void prune(fake_history *history, const fake_clock *host) {
    int32_t kept = 0;
    chains_clear(history);
    for (int32_t i = 0; i < history->count; i++) {
        fake_history_entry entry = history->entries[i];
        if (entry.begin == entry.end || fake_clock_covers(host, entry.stream, entry.number))
            continue;
        history->entries[kept] = entry;
        link_entry(history, kept++);
    }
    history->count = kept;
    history->prune_at = 2 * kept > PRUNE_LEAST ? 2 * kept : PRUNE_LEAST;
}

static void remember(fake_history *history, fake_touch touch, const fake_author *author,
                     const fake_clock *host) {
    if (history->count >= history->prune_at)
        prune(history, host);
    if (history->count == history->capacity) {
        int32_t capacity = history->capacity ? 2 * history->capacity : PRUNE_LEAST;
        fake_history_entry *grown =
            realloc(history->entries, (size_t)capacity * sizeof(*history->entries));
        if (!grown)
            fake_abort("no memory for the history");
        history->entries = grown;
        history->capacity = capacity;
    }
    history->entries[history->count] = (fake_history_entry){.begin = touch.begin,
                                                            .end = touch.end,
                                                            .number = author->number,
                                                            .what = author->what,
                                                            .stream = (uint16_t)author->stream,
                                                            .is_write = touch.is_write};
    link_entry(history, history->count++);
}

/* Whether a race was found: one is enough for one touch. */
static bool compare(fake_history_entry *entry, fake_touch touch, const fake_author *author) {
    if (entry->begin >= touch.end || entry->end <= touch.begin)
        return false;
    if ((entry->is_write || touch.is_write) && entry->stream != author->stream &&
        !fake_clock_covers(author->clock, entry->stream, entry->number)) {
        fake_finding("race: %s %s on stream %u (piece %llu) and %s %s on stream %u (piece %llu), "
                     "which does not wait, at 0x%llx, %llu bytes",
                     entry->what, entry->is_write ? "writes" : "reads", (unsigned)entry->stream,
                     (unsigned long long)entry->number, author->what,
                     touch.is_write ? "writes" : "reads", author->stream,
                     (unsigned long long)author->number, (unsigned long long)touch.begin,
                     (unsigned long long)(touch.end - touch.begin));
        return true;
    }
    /* Who races with the earlier one races with the later one too, which comes behind it. */
    if (touch.begin <= entry->begin && entry->end <= touch.end &&
        (touch.is_write || (!entry->is_write && entry->stream == author->stream)))
        entry->end = entry->begin;
    return false;
}

static bool compare_chain(fake_history *history, int32_t chain, fake_touch touch,
                          const fake_author *author) {
    for (int32_t i = history->chains[chain]; i >= 0; i = history->entries[i].next)
        if (compare(&history->entries[i], touch, author))
            return true;
    return false;
}

void fake_history_touch(fake_history *history, fake_touch touch, const fake_author *author,
                        const fake_clock *host) {
    if (touch.begin >= touch.end)
        return;
    bool found = compare_chain(history, WIDE, touch, author);
    uintptr_t first = touch.begin / ROW_BYTES, last = (touch.end - 1) / ROW_BYTES;
    if (last - first >= FAKE_HISTORY_CHAINS)
        last = first + FAKE_HISTORY_CHAINS - 1;
    for (uintptr_t row = first; row <= last && !found; row++)
        found = compare_chain(history, chain_of_row(row), touch, author);
    remember(history, touch, author, host);
}

bool fake_history_forget(fake_history *history, uintptr_t begin, uintptr_t end,
                         const fake_clock *host, fake_history_entry *user) {
    bool is_complete = true;
    for (int32_t i = 0; i < history->count; i++) {
        fake_history_entry *entry = &history->entries[i];
        if (entry->begin == entry->end || entry->begin >= end || entry->end <= begin)
            continue;
        if (!fake_clock_covers(host, entry->stream, entry->number)) {
            *user = *entry;
            is_complete = false;
        }
        entry->end = entry->begin;
    }
    return is_complete;
}
