#include <streams/made_kernel.h>

#include <base/hash.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/image_cache.h>
#include <streams/plugin.h>
#include <string.h>

/* Kept without a reference. */
#define KEPT_MOST 256
#define FOLDER_BYTES 1024
#define WHY_BYTES 256
/* At exit: for the compiler, which takes less than a second. */
#define EXIT_NS (INT64_C(10) * 1000 * 1000 * 1000)

typedef enum made_state { WAITING, MAKING, READY, FAILED } made_state;

_Static_assert(sizeof(eddy_fusion) == 8 + 2 * EDDY_FUSION_OPERANDS +
                                          EDDY_FUSION_STEPS * (12 + EDDY_FUSION_STEP_INPUTS),
               "fusions are compared as bytes");

struct eddy_made_kernel {
    eddy_sleep_word state;     /* atomic: made_state; who makes it stores (release), under the lock
                                  until it is MAKING; anyone loads (acquire). It covers `kernel` */
    const eddy_kernel *kernel; /* const once READY */
    eddy_fusion fusion;        /* const */
    eddy_device device;        /* const */
    eddy_digest digest;        /* const; of the two */
    char folder[FOLDER_BYTES]; /* const; of images; "": none */
    uint32_t references;       /* lock: the maker's */
    eddy_made_kernel *next;    /* lock: the maker's; of all, the last used first */
    eddy_made_kernel *next_waiting; /* lock: the maker's */
};

static struct {
    eddy_lock lock;
    eddy_made_kernel *all;                          /* lock: lock */
    eddy_made_kernel *first_waiting, *last_waiting; /* lock: lock */
    eddy_thread thread;                             /* of who has set has_thread */
    bool has_thread;                                /* lock: lock */
    bool is_ending;                                 /* lock: lock; nothing more is made */
    eddy_doorbell bell;                             /* rung after something waits */
    eddy_sleep_word is_making; /* atomic: 0 or 1, written under the lock; who ends loads it without
                                  (acquire). Who has set it may compile: the compiler is for one
                                  thread at a time */
    bool has_said;             /* who compiles only; there is no compiler, as was said */
    _Atomic bool has_compiled; /* atomic: who compiles stores (release), anyone loads (acquire): the
                                  compiler's library has made all that it ends at exit */
    _Atomic int64_t compiled, taken, failed; /* atomic: relaxed, counts */
} maker = {.lock = EDDY_LOCK_OF(EDDY_RANK_LEAF)};

/* ---- making one ---- */

/* A source, acquired; NULL: there is none, or no memory. */
static char *write_source(const eddy_plugin *plugin, const eddy_fusion *fusion, size_t *bytes) {
    *bytes = plugin->fusion_write(fusion, NULL, 0) + 1;
    char *source = *bytes > 1 ? eddy_memory_acquire(*bytes, EDDY_MEMORY_CACHE) : NULL;
    if (source)
        (void)plugin->fusion_write(fusion, source, *bytes);
    return source;
}

/* Of all that an image depends on. */
static eddy_digest key_of(const char *compiler, const char *source) {
    eddy_hash_stream stream;
    const uint32_t version = EDDY_PLUGIN_VERSION;
    eddy_hash_begin(&stream);
    eddy_hash_add(&stream, &version, sizeof(version));
    eddy_hash_add(&stream, compiler, strlen(compiler) + 1);
    eddy_hash_add(&stream, source, strlen(source));
    return eddy_hash_end(&stream);
}

static eddy_status load(const eddy_plugin *plugin, eddy_made_kernel *made, const void *image,
                        char *why) {
    return plugin->fusion_load(made->device.index, &made->fusion, image, &made->kernel, why,
                               WHY_BYTES);
}

/* One that the driver refuses is as one that is not there. */
static bool take_from_disk(const eddy_plugin *plugin, eddy_made_kernel *made, eddy_digest key) {
    char why[WHY_BYTES];
    size_t bytes;
    void *image = made->folder[0] ? eddy_image_cache_find(made->folder, key, &bytes) : NULL;
    if (!image)
        return false;
    eddy_status status = load(plugin, made, image, why);
    eddy_memory_release(image, bytes, EDDY_MEMORY_CACHE);
    if (status == EDDY_OK)
        eddy_add_relaxed(&maker.taken, 1);
    return status == EDDY_OK;
}

static void end_at_exit(void);

/* Handlers run in the reverse order: the one that waits for the compiler before those that its library registers while it compiles for the first time. */
static void note_compiled(void) {
    if (!eddy_load_relaxed(&maker.has_compiled))
        (void)atexit(end_at_exit);
    eddy_store_release(&maker.has_compiled, true);
}

static eddy_status compile(const eddy_plugin *plugin, eddy_made_kernel *made, const char *source,
                           eddy_digest key, char *why) {
    void *image;
    size_t bytes;
    eddy_status status =
        plugin->compile(made->device.index, source, &image, &bytes, why, WHY_BYTES);
    note_compiled();
    if (status != EDDY_OK)
        return status;
    status = load(plugin, made, image, why);
    if (status == EDDY_OK && made->folder[0])
        eddy_image_cache_keep(made->folder, key, image, bytes);
    if (status == EDDY_OK)
        eddy_add_relaxed(&maker.compiled, 1);
    eddy_memory_release(image, bytes, EDDY_MEMORY_CACHE);
    return status;
}

static void say(const char *why) {
    eddy_log_warning("calls of a program run one by one, which one kernel could do: %s", why);
}

/* Without a compiler nothing is made, also where an image may be on disk: its version, on which that depends, is not known. It is said once. */
static bool find_compiler(const eddy_plugin *plugin, int32_t device, char *compiler, size_t size) {
    char why[WHY_BYTES];
    bool is_there = plugin->compiler_describe(device, compiler, size, why, sizeof(why)) == EDDY_OK;
    if (!is_there && !maker.has_said)
        say(why);
    maker.has_said |= !is_there;
    return is_there;
}

static eddy_status make_with(const eddy_plugin *plugin, eddy_made_kernel *made,
                             const char *compiler) {
    char why[WHY_BYTES] = "there is no source, or no memory for it";
    eddy_status status = EDDY_OK;
    size_t bytes;
    char *source = write_source(plugin, &made->fusion, &bytes);
    if (!source)
        status = EDDY_OUT_OF_MEMORY;
    eddy_digest key = source ? key_of(compiler, source) : (eddy_digest){0};
    if (source && !take_from_disk(plugin, made, key))
        status = compile(plugin, made, source, key, why);
    if (status != EDDY_OK)
        say(why);
    eddy_memory_release(source, bytes, EDDY_MEMORY_CACHE);
    return status;
}

static bool make_kernel(eddy_made_kernel *made) {
    char compiler[256];
    const eddy_plugin *plugin = eddy_plugin_of(made->device.kind, NULL, 0);
    return plugin && find_compiler(plugin, made->device.index, compiler, sizeof(compiler)) &&
           make_with(plugin, made, compiler) == EDDY_OK;
}

/* Of one that was taken. */
static void make(eddy_made_kernel *made) {
    bool is_made = make_kernel(made);
    if (!is_made)
        eddy_add_relaxed(&maker.failed, 1);
    eddy_store_release(&made->state, (uint32_t)(is_made ? READY : FAILED));
    eddy_sleep_wake_all(&made->state);
    eddy_lock_acquire(&maker.lock);
    eddy_store_release(&maker.is_making, 0u);
    eddy_lock_release(&maker.lock);
    eddy_sleep_wake_all(&maker.is_making);
}

/* ---- those that nobody refers to ---- */

static void destroy(eddy_made_kernel *made) {
    const eddy_plugin *plugin = eddy_plugin_of(made->device.kind, NULL, 0);
    if (made->kernel && plugin)
        plugin->fusion_unload(made->device.index, made->kernel);
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_CACHE);
}

/* Lock: the maker's. The last one of the list that may go; NULL: there are no more than are kept. */
static eddy_made_kernel *take_unused_locked(void) {
    eddy_made_kernel **last = NULL, *found;
    uint32_t count = 0;
    for (eddy_made_kernel **at = &maker.all; *at; at = &(*at)->next)
        if ((*at)->references == 0 && eddy_load_acquire(&(*at)->state) >= READY) {
            last = at;
            count++;
        }
    if (count <= KEPT_MOST)
        return NULL;
    found = *last;
    *last = found->next;
    return found;
}

static void drop_unused(void) {
    for (;;) {
        eddy_lock_acquire(&maker.lock);
        eddy_made_kernel *unused = take_unused_locked();
        eddy_lock_release(&maker.lock);
        if (!unused)
            return;
        destroy(unused);
    }
}

/* ---- the thread ---- */

/* The next one, which is MAKING then; NULL: there is none, or somebody is making one, who takes it afterwards. */
static eddy_made_kernel *take_waiting(void) {
    eddy_lock_acquire(&maker.lock);
    bool may_take = !maker.is_ending && eddy_load_relaxed(&maker.is_making) == 0;
    eddy_made_kernel *first = may_take ? maker.first_waiting : NULL;
    if (first) {
        maker.first_waiting = first->next_waiting;
        eddy_store_release(&first->state, (uint32_t)MAKING);
        eddy_store_relaxed(&maker.is_making, 1u);
    }
    eddy_lock_release(&maker.lock);
    return first;
}

static void make_all(void) {
    for (eddy_made_kernel *made = take_waiting(); made; made = take_waiting())
        make(made);
    drop_unused();
}

static void run(void *context) {
    (void)context;
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&maker.bell);
        make_all();
        eddy_doorbell_sleep(&maker.bell, seen, EDDY_CLOCK_FOREVER);
    }
}

static void end_at_exit(void) {
    int64_t deadline = eddy_clock_deadline(EXIT_NS);
    eddy_lock_acquire(&maker.lock);
    maker.is_ending = true;
    eddy_lock_release(&maker.lock);
    while (eddy_load_acquire(&maker.is_making) != 0)
        if (!eddy_sleep_wait(&maker.is_making, 1, deadline))
            return;
}

void eddy_made_kernels_fork_child(void) {
    eddy_lock_init(&maker.lock, EDDY_RANK_LEAF);
    maker.all = maker.first_waiting = NULL;
    maker.is_ending = true;
    eddy_store_relaxed(&maker.is_making, 0u);
}

/* ---- references ---- */

/* Lock: the maker's. To the head of the list. */
static eddy_made_kernel *find_locked(const eddy_fusion *fusion, eddy_device device,
                                     eddy_digest digest) {
    for (eddy_made_kernel **at = &maker.all; *at; at = &(*at)->next) {
        eddy_made_kernel *made = *at;
        if (made->digest.low != digest.low || made->digest.high != digest.high ||
            made->device.kind != device.kind || made->device.index != device.index ||
            memcmp(&made->fusion, fusion, sizeof(*fusion)) != 0)
            continue;
        *at = made->next;
        made->next = maker.all;
        maker.all = made;
        made->references++;
        return made;
    }
    return NULL;
}

static eddy_made_kernel *new_one(const eddy_fusion *fusion, eddy_device device, eddy_digest digest,
                                 const char *folder_option) {
    eddy_made_kernel *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_CACHE);
    if (!made)
        return NULL;
    made->fusion = *fusion;
    made->device = device;
    made->digest = digest;
    made->references = 1;
    if (!eddy_image_cache_folder(folder_option, made->folder, sizeof(made->folder)))
        made->folder[0] = '\0';
    return made;
}

/* Lock: the maker's. */
static void add_locked(eddy_made_kernel *made) {
    made->next = maker.all;
    maker.all = made;
    if (maker.first_waiting)
        maker.last_waiting->next_waiting = made;
    else
        maker.first_waiting = made;
    maker.last_waiting = made;
}

/* Lock: the maker's. Whether there is a thread that makes it. */
static bool has_thread_locked(bool is_at_once) {
    if (!maker.has_thread && !is_at_once)
        maker.has_thread = eddy_thread_create(&maker.thread, "eddy-maker", run, NULL) == EDDY_OK;
    return maker.has_thread;
}

eddy_made_kernel *eddy_made_kernel_create(const eddy_fusion *fusion, eddy_device device,
                                          const char *folder_option, bool is_at_once) {
    eddy_digest digest = eddy_hash_128(fusion, sizeof(*fusion));
    eddy_made_kernel *fresh = new_one(fusion, device, digest, folder_option);
    if (!fresh)
        return NULL;
    /* The first that is compiled is so here: at the end of the process it could not be waited for. */
    is_at_once |= !eddy_load_acquire(&maker.has_compiled);
    eddy_lock_acquire(&maker.lock);
    eddy_made_kernel *made = find_locked(fusion, device, digest);
    if (!made)
        add_locked(fresh);
    bool has_thread = has_thread_locked(is_at_once);
    eddy_lock_release(&maker.lock);
    if (made)
        eddy_memory_release(fresh, sizeof(*fresh), EDDY_MEMORY_CACHE);
    else if (has_thread)
        eddy_doorbell_ring(&maker.bell);
    made = made ? made : fresh;
    if (!has_thread)
        make_all();
    if (is_at_once)
        eddy_made_kernel_await(made);
    return made;
}

void eddy_made_kernel_release(eddy_made_kernel *made) {
    if (!made)
        return;
    eddy_lock_acquire(&maker.lock);
    EDDY_ASSERT(made->references > 0);
    made->references--;
    eddy_lock_release(&maker.lock);
}

const eddy_kernel *eddy_made_kernel_ready(eddy_made_kernel *made) {
    return eddy_load_acquire(&made->state) == READY ? made->kernel : NULL;
}

void eddy_made_kernel_await(eddy_made_kernel *made) {
    for (uint32_t state; (state = eddy_load_acquire(&made->state)) < READY;) {
        eddy_lock_acquire(&maker.lock);
        bool is_ending = maker.is_ending;
        eddy_lock_release(&maker.lock);
        if (is_ending && state == WAITING)
            return;
        (void)eddy_sleep_wait(&made->state, state, EDDY_CLOCK_FOREVER);
    }
}

eddy_made_kernel_counts eddy_made_kernels_counted(void) {
    return (eddy_made_kernel_counts){eddy_load_relaxed(&maker.compiled),
                                     eddy_load_relaxed(&maker.taken),
                                     eddy_load_relaxed(&maker.failed)};
}
