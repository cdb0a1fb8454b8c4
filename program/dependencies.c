#include <program/dependencies.h>

#include <base/memory.h>

typedef struct reader {
    uint32_t step, next; /* 1 + its number; 0: no other */
} reader;

typedef struct finder {
    eddy_dependencies *dependencies;
    uint32_t *writer;     /* per storage: 1 + the step that wrote it last; 0: none */
    uint32_t *readers_of; /* per storage: the readers since then, 1 + the first's number */
    uint32_t *seen;       /* per step: 1 + the last step that was found to depend on it */
    reader *readers;
    uint32_t reader_count;
} finder;

static void add_from(finder *f, uint32_t step, uint32_t from) {
    eddy_dependencies *d = f->dependencies;
    if (from == step || f->seen[from] == step + 1)
        return;
    f->seen[from] = step + 1;
    EDDY_ASSERT(d->from_at[step + 1] < d->from_room);
    d->from[d->from_at[step + 1]++] = from;
}

static void find_of_step(finder *f, uint32_t step) {
    const eddy_accesses *a = f->dependencies->accesses;
    for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
        uint32_t storage = a->items[i].storage;
        f->dependencies->writer_of[i] = f->writer[storage];
        if (f->writer[storage] != 0)
            add_from(f, step, f->writer[storage] - 1);
        for (uint32_t r = f->readers_of[storage]; r != 0 && a->items[i].writes;
             r = f->readers[r - 1].next)
            add_from(f, step, f->readers[r - 1].step);
    }
    for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++)
        if (a->items[i].writes) {
            f->writer[a->items[i].storage] = step + 1;
            f->readers_of[a->items[i].storage] = 0;
        }
    for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++) {
        uint32_t storage = a->items[i].storage;
        if (a->items[i].writes || f->writer[storage] == step + 1)
            continue;
        f->readers[f->reader_count] = (reader){step, f->readers_of[storage]};
        f->readers_of[storage] = ++f->reader_count;
    }
}

static bool find_all(eddy_dependencies *d) {
    const eddy_accesses *a = d->accesses;
    size_t bytes = (2 * (size_t)a->storage_count + a->step_count) * sizeof(uint32_t) +
                   a->access_count * sizeof(reader);
    uint32_t *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    finder f = {.dependencies = d,
                .writer = memory,
                .readers_of = memory + a->storage_count,
                .seen = memory + 2 * (size_t)a->storage_count};
    f.readers = (reader *)(void *)(f.seen + a->step_count);
    for (uint32_t step = 0; step < a->step_count; step++) {
        d->from_at[step + 1] = d->from_at[step];
        find_of_step(&f, step);
    }
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}

static size_t from_at_bytes(const eddy_dependencies *d) {
    return ((size_t)d->accesses->step_count + 1) * sizeof(*d->from_at);
}

static size_t writer_bytes(const eddy_dependencies *d) {
    return (size_t)d->accesses->access_count * sizeof(*d->writer_of);
}

void eddy_dependencies_fini(eddy_dependencies *d) {
    eddy_memory_release(d->writer_of, writer_bytes(d), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(d->from_at, from_at_bytes(d), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(d->from, d->from_room * sizeof(*d->from), EDDY_MEMORY_PROGRAM);
}

/* Each access depends on a writer, and each reader is met by one writer. */
bool eddy_dependencies_find(eddy_dependencies *d, const eddy_accesses *accesses) {
    *d = (eddy_dependencies){.accesses = accesses, .from_room = 2 * accesses->access_count + 1};
    d->from_at = eddy_memory_acquire_zeroed(from_at_bytes(d), EDDY_MEMORY_PROGRAM);
    d->from = eddy_memory_acquire(d->from_room * sizeof(*d->from), EDDY_MEMORY_PROGRAM);
    d->writer_of = eddy_memory_acquire(writer_bytes(d), EDDY_MEMORY_PROGRAM);
    if (d->from_at && d->from && d->writer_of && find_all(d))
        return true;
    eddy_dependencies_fini(d);
    return false;
}
