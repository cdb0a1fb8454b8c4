/* How free blocks stay apart and come together.
 *
 * A block's `open` has a bit for each queue with a ticket that is not known to be complete. Two free neighbours are joined when both have none,
 * or both have the same one: joined with another, a block would be lost to queues that may use a part of it. What is left apart (a
 * *seam*) is joined later: by a trim, and by a take that finds no block, for its queue looks at adjacent blocks that it may use as at
 * one. Tickets that are complete are forgotten where a block is looked at. */
#include <streams/device_pool.h>

#include <base/memory.h>
#include <base/trace.h>
#include <streams/pool_peers.h>

#define GRAIN_BYTES ((int64_t)512)
/* Chunks are multiples of this where the limit and the backend allow it, so that a small one serves many requests and what remains of a large one is worth keeping. */
#define CHUNK_BYTES ((int64_t)2 << 20)
#define BYTES_MAX (INT64_MAX - 2 * CHUNK_BYTES) /* rounding it up twice stays within 64 bits */

/* The book of a block. It is in one of the two trees, or in the hands of who holds the lock. */
typedef struct block {
    struct block *left, *right; /* in the tree */
    struct block *lower,
        *higher; /* neighbours within the chunk; of a spare: the next in `higher` */
    char *data;
    int64_t bytes;
    bool is_free;
    uint32_t open;
    uint64_t tickets
        [EDDY_BACKEND_QUEUES]; /* of the queues in `open`: the last with which a part of it was given */
} block;

typedef struct chunk {
    block first; /* at the lowest address: no other ever absorbs it */
    struct chunk *next;
    int64_t bytes;
} chunk;

#ifdef EDDY_CHECKS
#define CHECKED_ONE_BY_ONE 4096
#define CHECKED_APART 256
#endif

struct eddy_device_pool {
#ifdef EDDY_CHECKS
    uint64_t operations; /* lock: lock */
#endif
    eddy_lock lock;
    eddy_backend *backend; /* const after init */
    bool is_pinned;        /* const after init: of the host's memory */
    eddy_pool_peer peer;   /* if the memory is not the backend's alone */
    /* const after init. An entry is read once a ticket of its queue was given, and so after it was written. */
    eddy_backend_queue *const *queues;
    /* All below lock: lock. */
    block *free;   /* a tree by size and address */
    block *taken;  /* a tree by address */
    block *spares; /* books without a block */
    chunk *chunks;
    int64_t seam_count; /* pairs of free neighbours */
    int64_t limit_bytes, held_bytes, live_bytes, peak_bytes;
    int64_t found_count; /* how often a free block had room */
    int64_t
        passing_bytes; /* which the backend is being asked for, or given back; they count towards the limit */
    uint32_t giving_count; /* of threads that give some back */
    eddy_sleep_word
        given_count; /* atomic: of those that have, modulo 2^32; added (release) under the lock */
};

static int64_t rounded(int64_t bytes, int64_t unit) {
    return (bytes + unit - 1) & -unit;
}

/* ---- the trees: treaps, as in spans.c; the caller holds the lock ---- */

/* Heap order: children never precede their parent in it. It follows from the address alone; adjacent addresses are far apart in it
 * (the finaliser of A. Appleby's MurmurHash3). */
static uint64_t rank(const block *node) {
    uint64_t hash = (uint64_t)(uintptr_t)node->data;
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

/* By which a tree is ordered first. */
static int64_t size_key(const block *node) {
    return node->is_free ? node->bytes : 0;
}

static bool precedes(const block *node, int64_t size, const char *data) {
    return size_key(node) < size || (size_key(node) == size && node->data < data);
}

/* All of `low` precedes all of `high`. */
static block *tree_merge(block *low, block *high) {
    if (!low || !high)
        return low ? low : high;
    if (rank(low) > rank(high)) {
        low->right = tree_merge(low->right, high);
        return low;
    }
    high->left = tree_merge(low, high->left);
    return high;
}

/* Splits `tree` into what precedes `at` and the rest. */
static void tree_split(block *tree, const block *at, block **low, block **high) {
    if (!tree) {
        *low = *high = NULL;
    } else if (precedes(tree, size_key(at), at->data)) {
        tree_split(tree->right, at, &tree->right, high);
        *low = tree;
    } else {
        tree_split(tree->left, at, low, &tree->left);
        *high = tree;
    }
}

static void tree_insert(block **tree, block *node) {
    while (*tree && rank(*tree) > rank(node))
        tree = precedes(*tree, size_key(node), node->data) ? &(*tree)->right : &(*tree)->left;
    tree_split(*tree, node, &node->left, &node->right);
    *tree = node;
}

/* Removes the node with this key; NULL if there is none. */
static block *tree_take(block **tree, int64_t size, const char *data) {
    while (*tree && !(size_key(*tree) == size && (*tree)->data == data))
        tree = precedes(*tree, size, data) ? &(*tree)->right : &(*tree)->left;
    block *node = *tree;
    if (node)
        *tree = tree_merge(node->left, node->right);
    return node;
}

/* ---- tickets; the caller holds the lock ---- */

static void raise_ticket(block *node, uint32_t queue, uint64_t ticket) {
    uint32_t bit = UINT32_C(1) << queue;
    if (!(node->open & bit) || node->tickets[queue] < ticket)
        node->tickets[queue] = ticket;
    node->open |= bit;
}

/* Forgets the tickets that are complete. The load pairs with the device's store: what was launched until then is over. */
static void settle(const eddy_device_pool *pool, block *node) {
    for (uint32_t left = node->open; left; left &= left - 1) {
        uint32_t queue = (uint32_t)__builtin_ctz(left);
        if (eddy_load_acquire(&pool->queues[queue]->completed) >= node->tickets[queue])
            node->open &= ~(UINT32_C(1) << queue);
    }
}

static bool may_use(const eddy_device_pool *pool, block *node, uint32_t queue) {
    uint32_t others = ~(UINT32_C(1) << queue);
    if (node->open & others)
        settle(pool, node);
    return !(node->open & others);
}

/* ---- blocks; the caller holds the lock ---- */

static int64_t free_neighbour_count(const block *node) {
    return (node->lower && node->lower->is_free) + (node->higher && node->higher->is_free);
}

static void put_free(eddy_device_pool *pool, block *node) {
    node->is_free = true;
    pool->seam_count += free_neighbour_count(node);
    tree_insert(&pool->free, node);
}

static void remove_free(eddy_device_pool *pool, block *node) {
    block *taken = tree_take(&pool->free, node->bytes, node->data);
    EDDY_ASSERT(taken == node);
    pool->seam_count -= free_neighbour_count(node);
    node->is_free = false;
}

static void put_spare(eddy_device_pool *pool, block *node) {
    node->higher = pool->spares;
    pool->spares = node;
}

/* Joins a block with the one above, both in hand. */
static void absorb_higher(eddy_device_pool *pool, block *node) {
    block *gone = node->higher;
    EDDY_ASSERT(node->data + node->bytes == gone->data);
    for (uint32_t left = gone->open; left; left &= left - 1) {
        uint32_t queue = (uint32_t)__builtin_ctz(left);
        raise_ticket(node, queue, gone->tickets[queue]);
    }
    node->bytes += gone->bytes;
    node->higher = gone->higher;
    if (node->higher)
        node->higher->lower = node;
    put_spare(pool, gone);
}

/* Leaves `bytes` to a block in hand; the rest is free. Without a spare book it stays whole. */
static void split_off_rest(eddy_device_pool *pool, block *node, int64_t bytes) {
    block *rest = pool->spares;
    if (node->bytes == bytes || !rest)
        return;
    pool->spares = rest->higher;
    *rest = *node;
    rest->data += bytes;
    rest->bytes -= bytes;
    rest->lower = node;
    if (rest->higher)
        rest->higher->lower = rest;
    node->higher = rest;
    node->bytes = bytes;
    put_free(pool, rest);
}

/* Neighbours of which `node` is the lower. */
static bool may_join(const eddy_device_pool *pool, block *node, block *higher) {
    settle(pool, node);
    settle(pool, higher);
    return node->open == higher->open && !(node->open & (node->open - 1));
}

/* The first free block of at least `bytes` that the queue may use. Passes by those that it may not use yet. */
static block *find(const eddy_device_pool *pool, block *tree, int64_t bytes, uint32_t queue) {
    while (tree) {
        if (tree->bytes >= bytes) {
            block *found = find(pool, tree->left, bytes, queue);
            if (found)
                return found;
            if (may_use(pool, tree, queue))
                return tree;
        }
        tree = tree->right;
    }
    return NULL;
}

/* Joins the shortest run of free blocks that the queue may use and that hold `bytes` together, whatever their tickets; in hand. NULL: there is none. */
static block *join_run(eddy_device_pool *pool, int64_t bytes, uint32_t queue) {
    block *best = NULL;
    int64_t best_bytes = INT64_MAX;
    for (chunk *c = pool->chunks; c; c = c->next) {
        block *from = NULL;
        int64_t run_bytes = 0;
        for (block *node = &c->first; node; node = node->higher) {
            if (!node->is_free || !may_use(pool, node, queue)) {
                from = NULL;
                run_bytes = 0;
                continue;
            }
            from = from ? from : node;
            run_bytes += node->bytes;
            for (; run_bytes - from->bytes >= bytes; from = from->higher)
                run_bytes -= from->bytes;
            if (run_bytes >= bytes &&
                (run_bytes < best_bytes || (run_bytes == best_bytes && from->data < best->data))) {
                best = from;
                best_bytes = run_bytes;
            }
        }
    }
    if (!best)
        return NULL;
    remove_free(pool, best);
    while (best->bytes < best_bytes) {
        remove_free(pool, best->higher);
        absorb_higher(pool, best);
    }
    return best;
}

/* Joins what has been left apart in a chunk and may now be joined. */
static void join_settled(eddy_device_pool *pool, chunk *c) {
    for (block *node = &c->first; node->higher;) {
        block *higher = node->higher;
        if (node->is_free && higher->is_free && may_join(pool, node, higher)) {
            remove_free(pool, higher);
            remove_free(pool, node);
            absorb_higher(pool, node);
            put_free(pool, node);
        } else {
            node = higher;
        }
    }
}

#ifdef EDDY_CHECKS
/* The bytes in a tree; checks that it is ordered and lies between the keys of `low` and `high`, where given. */
static int64_t check_tree(const block *tree, bool is_free, const block *low, const block *high) {
    if (!tree)
        return 0;
    EDDY_ASSERT(tree->is_free == is_free && tree->bytes > 0);
    EDDY_ASSERT(!low || precedes(low, size_key(tree), tree->data));
    EDDY_ASSERT(!high || precedes(tree, size_key(high), high->data));
    EDDY_ASSERT(!tree->left || rank(tree->left) < rank(tree));
    EDDY_ASSERT(!tree->right || rank(tree->right) < rank(tree));
    return tree->bytes + check_tree(tree->left, is_free, low, tree) +
           check_tree(tree->right, is_free, tree, high);
}

/* Each chunk is its blocks, one after another; each block is in its tree. */
static bool check_locked(const eddy_device_pool *pool) {
    int64_t held_bytes = 0, live_bytes = 0, seam_count = 0;
    for (const chunk *c = pool->chunks; c; c = c->next) {
        int64_t bytes = 0;
        EDDY_ASSERT(!c->first.lower);
        for (const block *node = &c->first; node; node = node->higher) {
            EDDY_ASSERT(node->data == c->first.data + bytes && node->bytes % GRAIN_BYTES == 0);
            EDDY_ASSERT(!node->higher || node->higher->lower == node);
            bytes += node->bytes;
            live_bytes += node->is_free ? 0 : node->bytes;
            seam_count += node->is_free && node->higher && node->higher->is_free;
        }
        EDDY_ASSERT(bytes == c->bytes);
        held_bytes += bytes;
    }
    EDDY_ASSERT(held_bytes == pool->held_bytes && live_bytes == pool->live_bytes);
    EDDY_ASSERT(seam_count == pool->seam_count);
    EDDY_ASSERT(check_tree(pool->free, true, NULL, NULL) == held_bytes - live_bytes);
    EDDY_ASSERT(check_tree(pool->taken, false, NULL, NULL) == live_bytes);
    return true;
}

/* The first operations one by one, then now and then: it takes a walk over all. */
static bool check_now_locked(eddy_device_pool *pool) {
    uint64_t number = pool->operations++;
    return (number >= CHECKED_ONE_BY_ONE && number % CHECKED_APART != 0) || check_locked(pool);
}
#endif

/* ---- the backend's memory; the lock is not held while the backend is asked, which may wait for the device ---- */

static void *acquire(eddy_device_pool *pool, int64_t bytes) {
    const eddy_backend_class *class = pool->backend->class;
    return pool->is_pinned ? class->pinned_acquire(pool->backend, bytes)
                           : class->memory_acquire(pool->backend, bytes);
}

static void release(eddy_device_pool *pool, void *data, int64_t bytes) {
    const eddy_backend_class *class = pool->backend->class;
    if (pool->is_pinned)
        class->pinned_release(pool->backend, data, bytes);
    else
        class->memory_release(pool->backend, data, bytes);
}

static bool is_within_limit_locked(const eddy_device_pool *pool, int64_t bytes) {
    return bytes <= pool->limit_bytes - pool->held_bytes - pool->passing_bytes;
}

/* NULL: refused, or above the limit. Otherwise the bytes are passing. */
static void *ask(eddy_device_pool *pool, int64_t bytes) {
    eddy_lock_acquire(&pool->lock);
    bool is_allowed = is_within_limit_locked(pool, bytes);
    if (is_allowed)
        pool->passing_bytes += bytes;
    eddy_lock_release(&pool->lock);
    void *data = is_allowed ? acquire(pool, bytes) : NULL;
    EDDY_TRACE_AT(ALLOCATOR, .op = data ? "take" : "refuse", .bytes = bytes, .detail = "device");
    if (!is_allowed)
        return NULL;
    EDDY_ASSERT((uintptr_t)data % (uintptr_t)GRAIN_BYTES == 0);
    if (!data) {
        eddy_lock_acquire(&pool->lock);
        pool->passing_bytes -= bytes;
        eddy_lock_release(&pool->lock);
    }
    return data;
}

/* A new chunk's memory, with room for others if possible. */
static void *ask_roundly(eddy_device_pool *pool, int64_t bytes, int64_t *got_bytes) {
    *got_bytes = rounded(bytes, CHUNK_BYTES);
    void *data = ask(pool, *got_bytes);
    if (data || *got_bytes == bytes)
        return data;
    *got_bytes = bytes;
    return ask(pool, bytes);
}

/* Gives the chunks back that are free and without open tickets; returns bytes. */
static int64_t give_chunks_back(eddy_device_pool *pool) {
    chunk *given = NULL;
    int64_t given_bytes = 0;
    eddy_lock_acquire(&pool->lock);
    for (chunk **link = &pool->chunks; *link;) {
        chunk *c = *link;
        join_settled(pool, c);
        settle(pool, &c->first);
        if (!c->first.is_free || c->first.higher || c->first.open) {
            link = &c->next;
            continue;
        }
        remove_free(pool, &c->first);
        *link = c->next;
        c->next = given;
        given = c;
        given_bytes += c->bytes;
    }
    pool->held_bytes -= given_bytes;
    pool->passing_bytes += given_bytes;
    pool->giving_count += given != NULL;
    EDDY_CHECK(check_now_locked(pool));
    eddy_lock_release(&pool->lock);
    if (!given)
        return 0;
    while (given) {
        chunk *c = given;
        given = c->next;
        release(pool, c->first.data, c->bytes);
        eddy_memory_release(c, sizeof(*c), EDDY_MEMORY_RUNTIME);
    }
    eddy_lock_acquire(&pool->lock);
    pool->passing_bytes -= given_bytes;
    pool->giving_count--;
    eddy_add_release(&pool->given_count, 1u);
    eddy_lock_release(&pool->lock);
    eddy_sleep_wake_all(&pool->given_count);
    return given_bytes;
}

/* Whether more may be there since `given_count` was `seen`: what another thread gives back is waited for. */
static bool await_given(eddy_device_pool *pool, uint32_t seen) {
    eddy_lock_acquire(&pool->lock);
    bool is_awaited = pool->giving_count > 0;
    eddy_lock_release(&pool->lock);
    if (is_awaited)
        eddy_sleep_wait(&pool->given_count, seen, EDDY_CLOCK_FOREVER);
    return is_awaited || eddy_load_acquire(&pool->given_count) != seen;
}

/* ---- take and give ---- */

/* Makes sure that there is a spare book, unless there is no memory. Releases the lock meanwhile: host memory may be reclaimed from pools of a lower rank. */
static void provide_spare_locked(eddy_device_pool *pool) {
    if (EDDY_LIKELY(pool->spares))
        return;
    eddy_lock_release(&pool->lock);
    block *fresh = eddy_memory_acquire(sizeof(*fresh), EDDY_MEMORY_RUNTIME);
    eddy_lock_acquire(&pool->lock);
    if (fresh)
        put_spare(pool, fresh);
}

/* The lower end of a block in hand. */
static void *hand_out_locked(eddy_device_pool *pool, block *node, int64_t bytes) {
    split_off_rest(pool, node, bytes);
    tree_insert(&pool->taken, node);
    pool->live_bytes += node->bytes;
    if (pool->peak_bytes < pool->live_bytes)
        pool->peak_bytes = pool->live_bytes;
    EDDY_CHECK(check_now_locked(pool));
    return node->data;
}

static bool has_peers(const eddy_device_pool *pool) {
    return pool->peer.memory != NULL;
}

/* What the limit refuses no other pool can make room for. */
static bool spare_others(eddy_device_pool *pool, int64_t bytes) {
    if (!has_peers(pool))
        return false;
    eddy_lock_acquire(&pool->lock);
    bool is_allowed = is_within_limit_locked(pool, bytes);
    eddy_lock_release(&pool->lock);
    if (is_allowed)
        (void)eddy_pool_peers_trim(&pool->peer);
    /* Also where others were trimmed meanwhile by somebody else. */
    return is_allowed;
}

/* `seen`: what await_given compares with. */
static bool ask_for_chunk(eddy_device_pool *pool, chunk *fresh, int64_t bytes, uint32_t *seen) {
    *seen = eddy_load_acquire(&pool->given_count);
    fresh->first.data = ask_roundly(pool, bytes, &fresh->bytes);
    return fresh->first.data;
}

static void *take_from_new_chunk(eddy_device_pool *pool, int64_t bytes) {
    chunk *fresh = eddy_memory_acquire_zeroed(sizeof(*fresh), EDDY_MEMORY_RUNTIME);
    if (!fresh)
        return NULL;
    uint32_t seen;
    bool has_chunk = ask_for_chunk(pool, fresh, bytes, &seen) ||
                     (give_chunks_back(pool) > 0 && ask_for_chunk(pool, fresh, bytes, &seen)) ||
                     (spare_others(pool, bytes) && ask_for_chunk(pool, fresh, bytes, &seen));
    while (!has_chunk && await_given(pool, seen))
        has_chunk = ask_for_chunk(pool, fresh, bytes, &seen) ||
                    (spare_others(pool, bytes) && ask_for_chunk(pool, fresh, bytes, &seen));
    if (!has_chunk) {
        eddy_memory_release(fresh, sizeof(*fresh), EDDY_MEMORY_RUNTIME);
        return NULL;
    }
    fresh->first.bytes = fresh->bytes;
    eddy_lock_acquire(&pool->lock);
    provide_spare_locked(pool);
    pool->passing_bytes -= fresh->bytes;
    pool->held_bytes += fresh->bytes;
    fresh->next = pool->chunks;
    pool->chunks = fresh;
    void *data = hand_out_locked(pool, &fresh->first, bytes);
    eddy_lock_release(&pool->lock);
    return data;
}

void *eddy_device_pool_take(eddy_device_pool *pool, int64_t bytes, uint32_t queue) {
    EDDY_ASSERT(bytes >= 0 && queue <= EDDY_POOL_HOST);
    if (EDDY_UNLIKELY(bytes > BYTES_MAX))
        return NULL;
    bytes = rounded(bytes > 0 ? bytes : 1, GRAIN_BYTES);
    void *data = NULL;
    eddy_lock_acquire(&pool->lock);
    provide_spare_locked(pool);
    block *found = find(pool, pool->free, bytes, queue);
    if (EDDY_LIKELY(found))
        remove_free(pool, found);
    else if (pool->seam_count > 0)
        found = join_run(pool, bytes, queue);
    if (EDDY_LIKELY(found))
        data = hand_out_locked(pool, found, bytes);
    pool->found_count += data != NULL;
    eddy_lock_release(&pool->lock);
    return EDDY_LIKELY(data) ? data : take_from_new_chunk(pool, bytes);
}

void eddy_device_pool_give(eddy_device_pool *pool, void *data, uint32_t queue, uint64_t ticket) {
    EDDY_ASSERT(queue < EDDY_BACKEND_QUEUES);
    if (!data)
        return;
    eddy_lock_acquire(&pool->lock);
    block *node = tree_take(&pool->taken, 0, data);
    /* Otherwise it was given before, or is not of this pool. */
    EDDY_ASSERT(node);
    pool->live_bytes -= node->bytes;
    if (ticket > 0) {
        EDDY_ASSERT(pool->queues[queue]);
        /* Beside a ticket that was open when it was taken: what it was given with then may run still. */
        raise_ticket(node, queue, ticket);
    }
    block *lower = node->lower, *higher = node->higher;
    if (higher && higher->is_free && may_join(pool, node, higher)) {
        remove_free(pool, higher);
        absorb_higher(pool, node);
    }
    if (lower && lower->is_free && may_join(pool, lower, node)) {
        remove_free(pool, lower);
        absorb_higher(pool, lower);
        node = lower;
    }
    put_free(pool, node);
    EDDY_CHECK(check_now_locked(pool));
    eddy_lock_release(&pool->lock);
}

/* ---- the pool ---- */

static eddy_device_pool *create(eddy_backend *backend, eddy_backend_queue *const *queues,
                                int64_t limit_bytes) {
    EDDY_ASSERT(limit_bytes >= 0);
    eddy_device_pool *pool = eddy_memory_acquire_zeroed(sizeof(*pool), EDDY_MEMORY_RUNTIME);
    if (!pool)
        return NULL;
    eddy_lock_init(&pool->lock, EDDY_RANK_POOL);
    pool->backend = backend;
    pool->queues = queues;
    pool->limit_bytes = limit_bytes;
    return pool;
}

eddy_device_pool *eddy_device_pool_create(eddy_backend *backend, eddy_backend_queue *const *queues,
                                          int64_t limit_bytes) {
    eddy_device_pool *pool = create(backend, queues, limit_bytes);
    if (!pool || !backend->memory)
        return pool;
    pool->peer = (eddy_pool_peer){.memory = backend->memory, .pool = pool};
    eddy_pool_peer_join(&pool->peer);
    return pool;
}

eddy_device_pool *eddy_device_pool_create_pinned(eddy_backend *backend,
                                                 eddy_backend_queue *const *queues,
                                                 int64_t limit_bytes) {
    eddy_device_pool *pool = create(backend, queues, limit_bytes);
    if (pool)
        pool->is_pinned = true;
    return pool;
}

static void release_books(block *node) {
    while (node) {
        block *next = node->higher;
        eddy_memory_release(node, sizeof(*node), EDDY_MEMORY_RUNTIME);
        node = next;
    }
}

void eddy_device_pool_destroy(eddy_device_pool *pool) {
    if (!pool)
        return;
    if (has_peers(pool))
        eddy_pool_peer_leave(&pool->peer);
    release_books(pool->spares);
    while (pool->chunks) {
        chunk *c = pool->chunks;
        pool->chunks = c->next;
        release_books(c->first.higher);
        release(pool, c->first.data, c->bytes);
        eddy_memory_release(c, sizeof(*c), EDDY_MEMORY_RUNTIME);
    }
    eddy_memory_release(pool, sizeof(*pool), EDDY_MEMORY_RUNTIME);
}

void eddy_device_pool_forget_tickets(eddy_device_pool *pool) {
    eddy_lock_acquire(&pool->lock);
    for (chunk *c = pool->chunks; c; c = c->next) {
        for (block *node = &c->first; node; node = node->higher)
            node->open = 0;
        join_settled(pool, c);
    }
    EDDY_CHECK(check_now_locked(pool));
    eddy_lock_release(&pool->lock);
}

void eddy_device_pool_await_given(eddy_device_pool *pool) {
    uint32_t seen;
    do
        seen = eddy_load_acquire(&pool->given_count);
    while (await_given(pool, seen));
}

int64_t eddy_device_pool_trim(eddy_device_pool *pool) {
    int64_t given_bytes = give_chunks_back(pool);
    eddy_lock_acquire(&pool->lock);
    block *spares = pool->spares;
    pool->spares = NULL;
    eddy_lock_release(&pool->lock);
    release_books(spares);
    if (given_bytes > 0)
        EDDY_TRACE_AT(ALLOCATOR, .op = "trim", .bytes = given_bytes, .detail = "device");
    return given_bytes;
}

int64_t eddy_device_pool_spare(eddy_device_pool *pool) {
    int64_t bytes = eddy_device_pool_trim(pool);
    return has_peers(pool) ? bytes + eddy_pool_peers_trim(&pool->peer) : bytes;
}

void eddy_device_pool_set_limit(eddy_device_pool *pool, int64_t limit_bytes) {
    EDDY_ASSERT(limit_bytes >= 0);
    eddy_lock_acquire(&pool->lock);
    pool->limit_bytes = limit_bytes;
    bool is_above = pool->held_bytes > limit_bytes;
    eddy_lock_release(&pool->lock);
    if (is_above)
        give_chunks_back(pool);
}

eddy_device_pool_statistics eddy_device_pool_statistics_read(eddy_device_pool *pool) {
    eddy_lock_acquire(&pool->lock);
    eddy_device_pool_statistics statistics = {
        .live_bytes = pool->live_bytes,
        .peak_bytes = pool->peak_bytes,
        .cached_bytes = pool->held_bytes - pool->live_bytes,
        .held_bytes = pool->held_bytes,
        .limit_bytes = pool->limit_bytes,
        .found_count = pool->found_count,
    };
    eddy_lock_release(&pool->lock);
    return statistics;
}

int64_t eddy_device_pool_list(eddy_device_pool *pool, eddy_memory_block *blocks, int64_t capacity) {
    int64_t count = 0;
    uint32_t number = 0;
    eddy_lock_acquire(&pool->lock);
    for (chunk *c = pool->chunks; c; c = c->next, number++)
        for (block *node = &c->first; node; node = node->higher) {
            settle(pool, node);
            if (count++ < capacity)
                blocks[count - 1] =
                    (eddy_memory_block){.address = node->data,
                                        .bytes = node->bytes,
                                        .count = 1,
                                        .chunk = number,
                                        .state = !node->is_free ? EDDY_MEMORY_BLOCK_LIVE
                                                 : node->open   ? EDDY_MEMORY_BLOCK_PENDING
                                                                : EDDY_MEMORY_BLOCK_FREE};
        }
    eddy_lock_release(&pool->lock);
    return count;
}
