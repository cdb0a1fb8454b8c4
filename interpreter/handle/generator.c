#include <interpreter/handle/generator.h>

#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>

struct eddy_generator {
    _Atomic uint32_t references; /* atomic: users; 0 while idle */
    eddy_lock lock;
    uint64_t seed;               /* lock: lock */
    uint64_t counter;            /* lock: lock */
    struct eddy_generator *next; /* lock: pool; the next idle one */
};

/* Released ones wait to be made anew: their memory stays that of generators, so that the use of one is recognised. */
static struct {
    eddy_lock lock;
    eddy_generator *idle; /* lock: lock */
} pool;

/* Returned by eddy_generator_default: stands for the own generator of the thread that uses it. */
static eddy_generator own_of_caller = {.references = 1};

/* Held while a runtime's seed, epoch and thread numbers change or a thread takes its own from them. */
static eddy_lock seed_lock;

/* True for a generator with references; else the error is recorded. */
static bool is_usable(const eddy_generator *generator, eddy_origin origin) {
    if (EDDY_LIKELY(generator && eddy_load_relaxed(&generator->references) > 0))
        return true;
    eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the generator %s",
              generator ? "was released before" : "is NULL");
    return false;
}

/* ---- life ---- */

/* NULL, nothing recorded, without memory. */
static eddy_generator *create(uint64_t seed) {
    eddy_lock_acquire(&pool.lock);
    eddy_generator *generator = pool.idle;
    if (generator)
        pool.idle = generator->next;
    eddy_lock_release(&pool.lock);
    if (!generator)
        generator = eddy_memory_acquire_zeroed(sizeof(*generator), EDDY_MEMORY_RUNTIME);
    if (!generator)
        return NULL;
    generator->seed = seed;
    generator->counter = 0;
    eddy_store_release(&generator->references, 1u);
    return generator;
}

eddy_generator *eddy_generator_create(uint64_t seed) {
    eddy_generator *generator = create(seed);
    if (!generator)
        eddy_fail(EDDY_OUT_OF_MEMORY, EDDY_ORIGIN("generator_create"), "no memory");
    return generator;
}

eddy_generator *eddy_generator_default(void) {
    return &own_of_caller;
}

eddy_generator *eddy_generator_retain(eddy_generator *generator) {
    if (!generator || generator == &own_of_caller)
        return generator;
    if (!is_usable(generator, EDDY_ORIGIN("generator_retain")))
        return NULL;
    eddy_add_relaxed(&generator->references, 1u);
    return generator;
}

void eddy_generator_release(eddy_generator **generator) {
    eddy_generator *released = generator ? *generator : NULL;
    if (!released)
        return;
    *generator = NULL;
    if (released == &own_of_caller || !is_usable(released, EDDY_ORIGIN("generator_release")) ||
        eddy_sub_acq_rel(&released->references, 1u) != 1)
        return;
    eddy_lock_acquire(&pool.lock);
    released->next = pool.idle;
    pool.idle = released;
    eddy_lock_release(&pool.lock);
}

/* ---- a thread's own ---- */

/* The output function of SplitMix64 (Steele, Lea and Flood, 2014): neighbouring numbers give unrelated seeds.
 * Thread 0 has the runtime's own seed. */
static uint64_t derive(uint64_t seed, uint64_t number) {
    if (number == 0)
        return seed;
    uint64_t z = seed + number * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The thread's entry for a runtime; a free or a new one if it has none. NULL without memory. */
static eddy_caller_generator *find_own(eddy_caller *caller, uint64_t runtime_id) {
    eddy_caller_generator *unused = NULL;
    for (int32_t i = 0; i < caller->generator_count; i++) {
        if (caller->generators[i].runtime_id == runtime_id)
            return &caller->generators[i];
        if (!eddy_runtime_exists(caller->generators[i].runtime_id))
            unused = &caller->generators[i];
    }
    if (!unused) {
        size_t item = sizeof(*caller->generators);
        int32_t count = caller->generator_count;
        eddy_caller_generator *grown =
            eddy_memory_grow(caller->generators, (size_t)count * item, (size_t)(count + 4) * item,
                             EDDY_MEMORY_RUNTIME);
        if (!grown)
            return NULL;
        for (int32_t i = count; i < count + 4; i++)
            grown[i] = (eddy_caller_generator){0};
        caller->generators = grown;
        caller->generator_count = count + 4;
        unused = &grown[count];
    }
    eddy_generator_release(&unused->held);
    *unused = (eddy_caller_generator){.runtime_id = runtime_id, .epoch = 0};
    return unused;
}

/* Who still draws from the one before draws on there. */
static void restart(eddy_caller_generator *own, eddy_runtime *runtime) {
    eddy_generator_release(&own->held);
    eddy_lock_acquire(&seed_lock);
    own->epoch = eddy_load_relaxed(&runtime->epoch);
    own->seed = derive(eddy_load_relaxed(&runtime->seed),
                       eddy_add_relaxed(&runtime->next_number, (uint64_t)1));
    own->counter = 0;
    eddy_lock_release(&seed_lock);
}

/* The thread's own generator in a runtime, restarted if eddy_seed was called since. */
static eddy_status own_in(eddy_caller *caller, eddy_runtime *runtime, eddy_origin origin,
                          eddy_caller_generator **own) {
    *own = find_own(caller, runtime->id);
    if (!*own)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the thread's generator");
    if ((*own)->epoch != eddy_load_acquire(&runtime->epoch))
        restart(*own, runtime);
    return EDDY_OK;
}

/* The same in the current runtime. */
static eddy_status own_of(eddy_origin origin, eddy_caller_generator **own) {
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_of_caller(caller, origin, &runtime);
    return status == EDDY_OK ? own_in(caller, runtime, origin, own) : status;
}

void eddy_generator_forget_all(eddy_caller *caller) {
    for (int32_t i = 0; i < caller->generator_count; i++) {
        caller->generators[i].runtime_id = 0;
        eddy_generator_release(&caller->generators[i].held);
    }
}

/* ---- state ---- */

static void read_state(const eddy_generator *generator, uint64_t *seed, uint64_t *counter) {
    eddy_lock *lock = (eddy_lock *)&generator->lock;
    eddy_lock_acquire(lock);
    *seed = generator->seed;
    *counter = generator->counter;
    eddy_lock_release(lock);
}

static void write_state(eddy_generator *generator, uint64_t seed, uint64_t counter) {
    eddy_lock_acquire(&generator->lock);
    generator->seed = seed;
    generator->counter = counter;
    eddy_lock_release(&generator->lock);
}

eddy_status eddy_generator_state(const eddy_generator *generator, uint64_t *seed,
                                 uint64_t *counter) {
    eddy_origin origin = EDDY_ORIGIN("generator_state");
    if (!seed || !counter)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no room for the state");
    if (generator == &own_of_caller) {
        eddy_caller_generator *own;
        eddy_status status = own_of(origin, &own);
        if (status != EDDY_OK)
            return status;
        *seed = own->seed;
        *counter = own->counter;
        if (own->held)
            read_state(own->held, seed, counter);
        return EDDY_OK;
    }
    if (!is_usable(generator, origin))
        return EDDY_INVALID_ARGUMENT;
    read_state(generator, seed, counter);
    return EDDY_OK;
}

eddy_status eddy_generator_restore(eddy_generator *generator, uint64_t seed, uint64_t counter) {
    eddy_origin origin = EDDY_ORIGIN("generator_restore");
    eddy_status may_restore = eddy_recorder_refuse(
        eddy_caller_self, "no run would do it again: restore before the recording, or after it",
        origin);
    if (may_restore != EDDY_OK)
        return may_restore;
    if (generator == &own_of_caller) {
        eddy_caller_generator *own;
        eddy_status status = own_of(origin, &own);
        if (status != EDDY_OK)
            return status;
        own->seed = seed;
        own->counter = counter;
        if (own->held)
            write_state(own->held, seed, counter);
        return EDDY_OK;
    }
    if (!is_usable(generator, origin))
        return EDDY_INVALID_ARGUMENT;
    write_state(generator, seed, counter);
    return EDDY_OK;
}

eddy_status eddy_seed(uint64_t seed) {
    eddy_origin origin = EDDY_ORIGIN("seed");
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_of_caller(caller, origin, &runtime);
    if (status != EDDY_OK)
        return status;
    if (!eddy_runtime_is_running(runtime))
        return eddy_runtime_refuse(runtime, origin, "");
    eddy_lock_acquire(&seed_lock);
    eddy_store_relaxed(&runtime->seed, seed);
    eddy_store_relaxed(&runtime->next_number, (uint64_t)0);
    eddy_store_release(&runtime->epoch, eddy_load_relaxed(&runtime->epoch) + 1);
    eddy_lock_release(&seed_lock);
    return EDDY_OK;
}

/* ---- drawing ---- */

void eddy_generator_draw_held(eddy_generator *held, uint64_t *seed, uint64_t *counter) {
    eddy_lock_acquire(&held->lock);
    *seed = held->seed;
    *counter = held->counter++;
    eddy_lock_release(&held->lock);
}

eddy_status eddy_generator_draw(eddy_caller *caller, eddy_runtime *runtime,
                                eddy_generator *generator, eddy_origin origin, uint64_t *seed,
                                uint64_t *counter) {
    if (generator && generator != &own_of_caller) {
        if (!is_usable(generator, origin))
            return EDDY_INVALID_ARGUMENT;
        eddy_generator_draw_held(generator, seed, counter);
        return EDDY_OK;
    }
    eddy_caller_generator *own;
    eddy_status status = own_in(caller, runtime, origin, &own);
    if (status != EDDY_OK)
        return status;
    if (EDDY_UNLIKELY(own->held != NULL)) {
        eddy_generator_draw_held(own->held, seed, counter);
        return EDDY_OK;
    }
    *seed = own->seed;
    *counter = own->counter++;
    return EDDY_OK;
}

static void take_back(uint64_t seed, uint64_t counter, const uint64_t *own_seed,
                      uint64_t *own_counter) {
    if (*own_seed == seed && *own_counter == counter + 1)
        *own_counter = counter;
}

void eddy_generator_undraw(eddy_caller *caller, eddy_runtime *runtime, eddy_generator *generator,
                           uint64_t seed, uint64_t counter) {
    if (!generator || generator == &own_of_caller) {
        eddy_caller_generator *own = find_own(caller, runtime->id);
        generator = own ? own->held : NULL;
        if (own && !generator)
            take_back(seed, counter, &own->seed, &own->counter);
    }
    if (!generator)
        return;
    eddy_lock_acquire(&generator->lock);
    take_back(seed, counter, &generator->seed, &generator->counter);
    eddy_lock_release(&generator->lock);
}

eddy_status eddy_generator_hold(eddy_caller *caller, eddy_runtime *runtime,
                                eddy_generator *generator, eddy_origin origin,
                                eddy_generator **held) {
    eddy_caller_generator *own;
    eddy_status status = EDDY_OK;
    *held = NULL;
    if (generator && generator != &own_of_caller) {
        *held = eddy_generator_retain(generator);
        return *held ? EDDY_OK : EDDY_INVALID_ARGUMENT;
    }
    status = own_in(caller, runtime, origin, &own);
    if (status != EDDY_OK)
        return status;
    if (!own->held) {
        own->held = create(own->seed);
        if (!own->held)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the thread's generator");
        own->held->counter = own->counter;
    }
    *held = eddy_generator_retain(own->held);
    return EDDY_OK;
}

void eddy_generator_fork_child(void) {
    seed_lock = pool.lock = (eddy_lock){0};
}
