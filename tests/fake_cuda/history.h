/* Who touched which bytes of a memory, and what another stream touches without having waited.
 *
 * It remembers what the host has not seen complete: whatever is launched later comes behind the rest. So it stays as short as what is under way, and no
 * luck of a run hides a missing wait. Lock: the fake's. */
#ifndef EDDY_TESTS_FAKE_CUDA_HISTORY_H
#define EDDY_TESTS_FAKE_CUDA_HISTORY_H

#include <stddef.h>
#include <tests/fake_cuda/clock.h>

/* Bytes that a piece reads or writes. */
typedef struct fake_touch {
    uintptr_t begin, end;
    bool is_write;
} fake_touch;

typedef struct fake_history_entry {
    uintptr_t begin, end; /* equal: forgotten */
    uint64_t number;
    const char *what; /* const; stays for good */
    uint16_t stream;
    bool is_write;
    int32_t next; /* in its chain; -1: the last */
} fake_history_entry;

/* Entries within one row of addresses are in the chain of the row's hash, others in one of their own. */
#define FAKE_HISTORY_CHAINS 1024

typedef struct fake_history {
    fake_history_entry *entries;
    int32_t count, capacity, prune_at;
    int32_t chains[FAKE_HISTORY_CHAINS + 1];
} fake_history;

/* A piece that is launched: number `number` of its stream, behind `clock`. */
typedef struct fake_author {
    uint32_t stream;
    uint64_t number;
    const char *what;
    const fake_clock *clock;
} fake_author;

void fake_history_init(fake_history *history);
void fake_history_fini(fake_history *history);
/* Finds races with what was touched before, and remembers. `host` is what the host has seen complete. */
void fake_history_touch(fake_history *history, fake_touch touch, const fake_author *author,
                        const fake_clock *host);
/* Forgets bytes that are free again. Returns whether all users are in `host`; if not, one that is not is in `user`. */
bool fake_history_forget(fake_history *history, uintptr_t begin, uintptr_t end,
                         const fake_clock *host, fake_history_entry *user);

#endif
