#include <program/build_cache.h>

#include <base/memory.h>
#include <base/sleep.h>

#define BUCKET_COUNT 512

typedef struct build_cache {
    eddy_runtime_cache cache; /* the runtime's view of it */
    eddy_lock lock;
    eddy_built *buckets[BUCKET_COUNT]; /* lock: lock, and all below */
    eddy_built *newest, *oldest;
    int64_t bytes;
} build_cache;

/* ---- what is built ---- */

eddy_built *eddy_built_create(void) {
    eddy_built *built = eddy_memory_acquire_zeroed(sizeof(*built), EDDY_MEMORY_PROGRAM);
    if (built)
        eddy_store_relaxed(&built->references, 1u);
    return built;
}

/* What is of use in the cache alone. */
static void forget(eddy_built *built) {
    eddy_build_key_fini(&built->key);
    eddy_code_fini(&built->code);
    eddy_memory_release(built->covered, built->external_count, EDDY_MEMORY_PROGRAM);
    built->covered = NULL;
    built->external_count = 0;
}

void eddy_built_release(eddy_built *built) {
    if (!built || eddy_sub_acq_rel(&built->references, 1u) != 1)
        return;
    eddy_executable_fini(&built->executable);
    forget(built);
    eddy_memory_release(built, sizeof(*built), EDDY_MEMORY_PROGRAM);
}

/* A list by `next`. */
static void release_all(eddy_built *first) {
    while (first) {
        eddy_built *next = first->next;
        eddy_built_release(first);
        first = next;
    }
}

/* ---- lists; lock: the cache's ---- */

static eddy_built **bucket_of(build_cache *cache, const eddy_build_key *key) {
    return &cache->buckets[key->digest.low % BUCKET_COUNT];
}

static void unlink_use_locked(build_cache *cache, eddy_built *built) {
    *(built->newer ? &built->newer->older : &cache->newest) = built->older;
    *(built->older ? &built->older->newer : &cache->oldest) = built->newer;
}

static void link_newest_locked(build_cache *cache, eddy_built *built) {
    built->newer = NULL;
    built->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = built;
    cache->newest = built;
}

/* Gives up the oldest until so many bytes are left; returns them as a list. */
static eddy_built *shrink_locked(build_cache *cache, int64_t bytes) {
    eddy_built *dropped = NULL;
    while (cache->oldest && cache->bytes > bytes) {
        eddy_built *oldest = cache->oldest, **place = bucket_of(cache, &oldest->key);
        while (*place != oldest)
            place = &(*place)->next;
        *place = oldest->next;
        unlink_use_locked(cache, oldest);
        cache->bytes -= oldest->bytes;
        oldest->next = dropped;
        dropped = oldest;
    }
    return dropped;
}

/* ---- the runtime's ---- */

static int64_t trim(eddy_runtime_cache *of) {
    build_cache *cache = (build_cache *)(void *)of;
    eddy_lock_acquire(&cache->lock);
    int64_t bytes = cache->bytes;
    eddy_built *dropped = shrink_locked(cache, 0);
    eddy_lock_release(&cache->lock);
    release_all(dropped);
    return bytes;
}

/* Nobody uses the runtime any more. */
static void destroy(eddy_runtime_cache *of) {
    build_cache *cache = (build_cache *)(void *)of;
    release_all(shrink_locked(cache, 0));
    eddy_memory_release(cache, sizeof(*cache), EDDY_MEMORY_RUNTIME);
}

static int64_t bytes_of(eddy_runtime_cache *of) {
    build_cache *cache = (build_cache *)(void *)of;
    eddy_lock_acquire(&cache->lock);
    int64_t bytes = cache->bytes;
    eddy_lock_release(&cache->lock);
    return bytes;
}

static build_cache *cache_of(const eddy_runtime *runtime) {
    return (build_cache *)(void *)eddy_load_acquire(&runtime->programs);
}

/* Of two threads that make one at once, one is given up. NULL without memory. */
static build_cache *make_cache(eddy_runtime *runtime) {
    eddy_runtime_cache *there = eddy_load_acquire(&runtime->programs);
    if (there)
        return (build_cache *)(void *)there;
    build_cache *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->cache = (eddy_runtime_cache){trim, bytes_of, destroy};
    made->lock = (eddy_lock)EDDY_LOCK_OF(EDDY_RANK_LEAF);
    if (eddy_cas_acq_rel(&runtime->programs, &there, &made->cache))
        return made;
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
    return (build_cache *)(void *)there;
}

/* ---- finding ---- */

/* Lock: the cache's. By its digest, which is no proof. */
static eddy_built *look_up_locked(build_cache *cache, const eddy_build_key *key) {
    eddy_built *built = *bucket_of(cache, key);
    while (built &&
           (built->key.digest.low != key->digest.low || built->key.digest.high != key->digest.high))
        built = built->next;
    return built;
}

eddy_built *eddy_build_cache_find(eddy_runtime *runtime, const eddy_build_key *key) {
    build_cache *cache = cache_of(runtime);
    if (!cache)
        return NULL;
    eddy_lock_acquire(&cache->lock);
    eddy_built *built = look_up_locked(cache, key);
    if (built) {
        eddy_add_relaxed(&built->references, 1u);
        unlink_use_locked(cache, built);
        link_newest_locked(cache, built);
    }
    eddy_lock_release(&cache->lock);
    if (built && eddy_build_key_is_equal(&built->key, key))
        return built;
    eddy_built_release(built);
    return NULL;
}

/* ---- keeping ---- */

static bool note_covered(const eddy_program *program, eddy_built *built) {
    uint32_t count = program->externals.count;
    built->covered = eddy_memory_acquire(count, EDDY_MEMORY_PROGRAM);
    if (!built->covered)
        return false;
    built->external_count = count;
    for (uint32_t e = 0; e < count; e++)
        built->covered[e] = eddy_program_external_at(program, e)->is_covered;
    return true;
}

static int64_t all_bytes(const eddy_program *program, const eddy_build_key *key) {
    return (int64_t)sizeof(eddy_built) + eddy_executable_bytes(&program->built->executable) +
           eddy_code_bytes(&program->code) + (int64_t)eddy_build_key_bytes(key) +
           (int64_t)program->externals.count;
}

/* Unless another thread was faster. */
static bool insert_locked(build_cache *cache, eddy_built *built, eddy_build_key *key) {
    if (look_up_locked(cache, key))
        return false;
    built->key = *key;
    *key = (eddy_build_key){0};
    eddy_add_relaxed(&built->references, 1u);
    cache->bytes += built->bytes;
    built->next = *bucket_of(cache, &built->key);
    *bucket_of(cache, &built->key) = built;
    link_newest_locked(cache, built);
    return true;
}

void eddy_build_cache_keep(const eddy_program *program, eddy_build_key *key) {
    int64_t most = program->runtime->program_cache_bytes;
    eddy_built *built = program->built, *dropped = NULL;
    build_cache *cache = make_cache(program->runtime);
    built->bytes = all_bytes(program, key);
    if (!cache || built->bytes > most)
        return;
    bool is_kept = eddy_code_copy(&built->code, &program->code) && note_covered(program, built);
    if (is_kept) {
        eddy_lock_acquire(&cache->lock);
        /* A shutdown gives all up, once, after its state is set. */
        is_kept = eddy_runtime_is_running(program->runtime) && insert_locked(cache, built, key);
        dropped = shrink_locked(cache, most);
        eddy_lock_release(&cache->lock);
        release_all(dropped);
    }
    if (!is_kept)
        forget(built);
}
