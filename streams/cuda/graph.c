#include <base/assert.h>
#include <base/memory.h>
#include <streams/cuda/graph.h>
#include <streams/device_pool.h>
#include <streams/row_owner.h>
#include <string.h>

/* Rows that are known: each place in a program has a few, by the addresses. */
#define SETS 64
#define PLACES 4
/* Blocks of memory of a graph, each larger than the one before. */
#define BLOCKS 8

typedef struct graph {
    eddy_backend_row row; /* `key`: its own, `owner`: with a reference; NULL: the place is free */
    uint32_t queue;
    uint64_t first_at, last_at; /* when the row has come, as numbers of rows */
    uint64_t captured_at;       /* the same, of its capture */
    bool is_refused;            /* it could not be captured */
    eddy_cu_graph_exec exec;    /* NULL: it was not */
    void *blocks[BLOCKS];
    int64_t block_bytes; /* of the last of them */
    uint32_t block_count;
    uint64_t last_ticket; /* of its last launch */
} graph;

struct eddy_cuda_graphs {
    uint64_t now;  /* rows so far */
    uint32_t next; /* the set that is looked through with the next row */
    eddy_cu_stream stream;
    graph known[SETS][PLACES];
    /* While something is captured. */
    graph *open;
    const eddy_backend_queue *queue;
};

/* ---- places ---- */

static size_t key_bytes(const graph *of) {
    return of->row.key_count * sizeof(*of->row.key);
}

static void give_blocks(const eddy_cuda_graphs *graphs, graph *known) {
    while (known->block_count > 0)
        eddy_device_pool_give(graphs->queue->backend->pool, known->blocks[--known->block_count],
                              known->queue, known->last_ticket);
    known->block_bytes = 0;
}

static void forget(const eddy_cuda_graphs *graphs, graph *known) {
    if (known->exec)
        (void)eddy_cuda.graph_exec_destroy(known->exec);
    give_blocks(graphs, known);
    eddy_memory_release((void *)(uintptr_t)known->row.key, key_bytes(known), EDDY_MEMORY_CACHE);
    eddy_row_owner_release(known->row.owner);
    *known = (graph){0};
}

/* But for the addresses. */
static bool is_place(const graph *known, uint32_t queue, const eddy_backend_row *row) {
    return known->row.owner == row->owner && known->queue == queue &&
           memcmp(known->row.place, row->place, sizeof(row->place)) == 0 &&
           known->row.count == row->count && known->row.key_count == row->key_count;
}

static graph *set_of(eddy_cuda_graphs *graphs, uint32_t queue, const eddy_backend_row *row) {
    uint64_t sum = (uintptr_t)row->owner * 0x9e3779b97f4a7c15u + queue;
    for (size_t i = 0; i < sizeof(row->place) / sizeof(*row->place); i++)
        sum = (sum ^ row->place[i]) * 0x9e3779b97f4a7c15u;
    return graphs->known[(sum >> 32) % SETS];
}

/* The place of the row, or one for it: NULL without memory. */
static graph *place_of(eddy_cuda_graphs *graphs, uint32_t queue, const eddy_backend_row *row) {
    graph *set = set_of(graphs, queue, row), *oldest = set;
    for (int k = 0; k < PLACES; k++) {
        if (is_place(&set[k], queue, row) &&
            memcmp(set[k].row.key, row->key, key_bytes(&set[k])) == 0)
            return &set[k];
        if (set[k].last_at < oldest->last_at)
            oldest = &set[k];
    }
    graph made = {.row = *row, .queue = queue, .first_at = graphs->now};
    void *key = eddy_memory_acquire_zeroed(key_bytes(&made), EDDY_MEMORY_CACHE);
    if (!key)
        return NULL;
    made.row.key = memcpy(key, row->key, key_bytes(&made));
    (void)eddy_row_owner_retain(row->owner);
    forget(graphs, oldest);
    *oldest = made;
    return oldest;
}

/* Of one set after the other, those of programs that are over: with as many rows as there are sets, all have gone. */
static void forget_over(eddy_cuda_graphs *graphs) {
    graph *set = graphs->known[graphs->next++ % SETS];
    for (int k = 0; k < PLACES; k++)
        if (set[k].row.owner && eddy_load_relaxed(&set[k].row.owner->is_over))
            forget(graphs, &set[k]);
}

/* ---- capturing ---- */

static bool begin(eddy_cuda_graphs *graphs) {
    if (!graphs->stream &&
        eddy_cuda.stream_create(&graphs->stream, EDDY_CU_STREAM_NON_BLOCKING, 0) != 0)
        graphs->stream = NULL;
    return graphs->stream && eddy_cuda.capture_begin(graphs->stream, EDDY_CU_CAPTURE_RELAXED) == 0;
}

eddy_row_way eddy_cuda_graphs_find(eddy_cuda_graphs *graphs, const eddy_backend_queue *queue,
                                   const eddy_backend_row *row, eddy_cu_graph_exec *exec,
                                   eddy_cu_stream *stream) {
    graphs->now++;
    graphs->queue = queue;
    forget_over(graphs);
    graph *known = place_of(graphs, queue->number, row);
    if (!known)
        return EDDY_ROW_LAUNCHES;
    bool is_new = known->last_at == 0;
    known->last_at = graphs->now;
    known->last_ticket = row->first + row->count - 1;
    if (known->exec) {
        *exec = known->exec;
        return EDDY_ROW_IS_LAUNCHED;
    }
    if (is_new || known->is_refused)
        return EDDY_ROW_LAUNCHES;
    if (!begin(graphs)) {
        known->is_refused = true;
        return EDDY_ROW_LAUNCHES;
    }
    known->captured_at = graphs->now;
    graphs->open = known;
    *stream = graphs->stream;
    return EDDY_ROW_CAPTURES;
}

uint64_t eddy_cuda_graphs_number(const eddy_cuda_graphs *graphs) {
    return graphs->open->captured_at;
}

uint64_t eddy_cuda_graphs_least(const eddy_cuda_graphs *graphs) {
    uint64_t least = UINT64_MAX;
    for (int s = 0; graphs && s < SETS; s++)
        for (int k = 0; k < PLACES; k++) {
            const graph *known = &graphs->known[s][k];
            if ((known->exec || known == graphs->open) && known->captured_at < least)
                least = known->captured_at;
        }
    return least;
}

void *eddy_cuda_graphs_workspace(eddy_cuda_graphs *graphs, int64_t bytes) {
    graph *open = graphs->open;
    if (open->block_bytes >= bytes)
        return open->blocks[open->block_count - 1];
    void *block = open->block_count < BLOCKS ? eddy_device_pool_take(graphs->queue->backend->pool,
                                                                     bytes, graphs->queue->number)
                                             : NULL;
    if (!block)
        return NULL;
    open->blocks[open->block_count++] = block;
    open->block_bytes = bytes;
    return block;
}

/* ---- what is made of it ---- */

/* A graph of the same place whose addresses have not come since these came first: they have moved. NULL: there is none. */
static graph *find_left(eddy_cuda_graphs *graphs) {
    const graph *open = graphs->open;
    graph *set = set_of(graphs, open->queue, &open->row);
    for (int k = 0; k < PLACES; k++)
        if (&set[k] != open && set[k].exec && is_place(&set[k], open->queue, &open->row) &&
            set[k].last_at < open->first_at)
            return &set[k];
    return NULL;
}

/* What is under way of a graph stays as it was launched, its memory too. */
static bool change(eddy_cuda_graphs *graphs, eddy_cu_graph captured) {
    graph *left = find_left(graphs);
    eddy_cu_graph_update why;
    if (!left)
        return false;
    bool is_changed = eddy_cuda.graph_update(left->exec, captured, &why) == 0;
    if (is_changed) {
        graphs->open->exec = left->exec;
        left->exec = NULL;
    }
    forget(graphs, left);
    return is_changed;
}

eddy_cu_graph_exec eddy_cuda_graphs_end(eddy_cuda_graphs *graphs, bool is_whole) {
    graph *open = graphs->open;
    eddy_cu_graph captured = NULL;
    bool is_captured =
        eddy_cuda.capture_end(graphs->stream, &captured) == 0 && captured && is_whole;
    if (is_captured && !change(graphs, captured) &&
        eddy_cuda.graph_instantiate(&open->exec, captured, 0) != 0)
        open->exec = NULL;
    if (captured)
        (void)eddy_cuda.graph_destroy(captured);
    open->is_refused = !open->exec;
    if (open->is_refused)
        give_blocks(graphs, open);
    graphs->open = NULL;
    return open->exec;
}

/* ---- life ---- */

eddy_cuda_graphs *eddy_cuda_graphs_create(void) {
    return eddy_memory_acquire_zeroed(sizeof(eddy_cuda_graphs), EDDY_MEMORY_CACHE);
}

void eddy_cuda_graphs_clear(eddy_cuda_graphs *graphs) {
    EDDY_ASSERT(!graphs->open);
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < PLACES; k++)
            forget(graphs, &graphs->known[s][k]);
}

/* Their memory went with the pool. */
void eddy_cuda_graphs_destroy(eddy_cuda_graphs *graphs) {
    if (!graphs)
        return;
    if (graphs->open) { /* the device failed meanwhile */
        graphs->open->block_count = 0;
        (void)eddy_cuda_graphs_end(graphs, false);
    }
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < PLACES; k++)
            graphs->known[s][k].block_count = 0;
    eddy_cuda_graphs_clear(graphs);
    if (graphs->stream)
        (void)eddy_cuda.stream_destroy(graphs->stream);
    eddy_memory_release(graphs, sizeof(*graphs), EDDY_MEMORY_CACHE);
}
