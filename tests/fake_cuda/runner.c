#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/fault.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/runner.h>
#include <tests/fake_cuda/stream.h>
#include <time.h>

/* Of 16 choices so many let everything lie for a moment. */
#define PAUSES 3
/* What is held back runs after so long without a call, as a poll of mapped memory is none; and after so long in any case. */
#define QUIET_NS 1000000
#define HELD_NS 20000000
/* How often it looks for a value that a stream waits for. */
#define LOOK_NS 50000

/* ---- one piece; lock, but where it says so ---- */

static bool is_covered(const fake_device *device, const fake_piece *piece, fake_touch touch) {
    const fake_device *with = fake_device_with(touch.begin);
    if (with && with != device && piece->kind != FAKE_COPY)
        return false;
    if (with)
        return fake_memory_covers(&with->memory, touch.begin, touch.end, NULL);
    /* Any memory of the host will do for a copy. */
    return piece->kind == FAKE_COPY || fake_host_covers(touch.begin, touch.end, NULL);
}

static bool is_illegal(const fake_piece *piece, uintptr_t begin, uintptr_t end) {
    fake_finding("illegal address: %s (piece %llu) touches %llu bytes at 0x%llx, which no block "
                 "covers",
                 piece->what, (unsigned long long)piece->number, (unsigned long long)(end - begin),
                 (unsigned long long)begin);
    return true;
}

static uint64_t *words_of(fake_piece *piece, size_t *count) {
    *count = piece->function ? piece->function->bytes / sizeof(uint64_t) : 0;
    return (uint64_t *)(void *)piece->parameters;
}

static bool is_of_another(const fake_device *device, uintptr_t address) {
    for (int d = 0; d < FAKE_DEVICES; d++)
        if (&fake_devices[d] != device && fake_memory_has(&fake_devices[d].memory, address))
            return true;
    return false;
}

static bool touches_illegally(const fake_device *device, fake_piece *piece) {
    for (int t = 0; t < piece->touch_count; t++)
        if (!is_covered(device, piece, piece->touches[t]))
            return is_illegal(piece, piece->touches[t].begin, piece->touches[t].end);
    size_t count;
    const uint64_t *words = words_of(piece, &count);
    for (size_t w = 0; w < count; w++)
        if (fake_memory_has(&device->memory, words[w])
                ? !fake_memory_covers(&device->memory, words[w], words[w], NULL)
                : is_of_another(device, words[w]))
            return is_illegal(piece, words[w], words[w]);
    return false;
}

/* The host may see the value as soon as it is there: what comes before is then known to be over. */
static void write_value(const fake_device *device, const fake_piece *piece) {
    if (piece->clock)
        fake_clock_join(&fake_host_clock, piece->clock);
    _Atomic uint64_t *at = (_Atomic uint64_t *)fake_memory_translate(&device->memory, piece->to);
    atomic_store_explicit(at, piece->value, memory_order_release);
}

/* Without the lock. */
static void run_kernel(const fake_device *device, fake_piece *piece) {
    size_t count;
    uint64_t *words = words_of(piece, &count);
    for (size_t w = 0; w < count; w++)
        words[w] = fake_memory_translate(&device->memory, words[w]);
    fake_module_run(piece->function, piece->parameters, piece->grid, piece->block,
                    piece->shared_bytes);
}

/* Where the fake finds it, whosever it is. */
static void *find(uintptr_t address) {
    const fake_device *with = fake_device_with(address);
    return (void *)(with ? fake_memory_translate(&with->memory, address) : address);
}

/* Without the lock. */
static void perform(const fake_device *device, fake_piece *piece, void *to, const void *from) {
    if (piece->kind == FAKE_COPY)
        memmove(to, from, piece->bytes);
    else if (piece->kind == FAKE_FILL)
        memset(to, (int)piece->value, piece->bytes);
    else if (piece->kind == FAKE_KERNEL)
        run_kernel(device, piece);
}

static void check_guards(const fake_device *device, fake_piece *piece) {
    for (int t = 0; t < piece->touch_count; t++)
        fake_memory_check(&device->memory, piece->touches[t].begin, piece->what);
}

static eddy_cu_result run_piece(fake_device *device, fake_piece *piece) {
    if (piece->kind < FAKE_COPY)
        return 0;
    eddy_cu_result result = fake_fault_run();
    if (result)
        return result;
    if (touches_illegally(device, piece))
        return EDDY_CU_ILLEGAL_ADDRESS;
    if (piece->kind == FAKE_WRITE) {
        write_value(device, piece);
        return 0;
    }
    void *to = find(piece->to);
    const void *from = find(piece->from);
    pthread_mutex_unlock(&fake_lock);
    perform(device, piece, to, from);
    pthread_mutex_lock(&fake_lock);
    if (piece->kind == FAKE_KERNEL)
        check_guards(device, piece);
    return 0;
}

static void run_head(fake_device *device, fake_stream *stream) {
    fake_piece *piece = stream->head;
    if (!(stream->head = piece->next))
        stream->tail = &stream->head;
    stream->running = piece;
    stream->turn = ++device->turns;
    eddy_cu_result result = run_piece(device, piece);
    stream->running = NULL;
    if (result)
        fake_device_lose(device, result);
    else if (!device->lost)
        stream->done = piece->number;
    fake_piece_free(piece);
    pthread_cond_broadcast(&fake_progress);
    fake_device_wake_all();
}

/* ---- choosing; lock ---- */

static bool is_there(const fake_piece *await) {
    const _Atomic uint64_t *at = (const _Atomic uint64_t *)await->to;
    return (int64_t)(atomic_load_explicit(at, memory_order_acquire) - await->value) >= 0;
}

static bool may_run(const fake_stream *stream, const fake_device *device) {
    const fake_piece *head = stream->head;
    return stream->device == device && head && head->number <= stream->released &&
           (head->kind != FAKE_WAIT || fake_stream_is_done(head->other, head->awaited)) &&
           (head->kind != FAKE_AWAIT || is_there(head));
}

/* Of what the host writes no call tells. */
static bool awaits_host(const fake_device *device) {
    for (int s = 0; s < FAKE_STREAMS; s++) {
        const fake_piece *head = fake_streams[s].head;
        if (fake_streams[s].device == device && head && head->kind == FAKE_AWAIT &&
            head->number <= fake_streams[s].released)
            return true;
    }
    return false;
}

/* The priority behind which the others wait. */
static int most_urgent(const fake_device *device) {
    int priority = FAKE_PRIORITY_LEAST;
    if (!fake_options_read()->obeys_priorities)
        return priority;
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (fake_streams[s].priority < priority && may_run(&fake_streams[s], device))
            priority = fake_streams[s].priority;
    return priority;
}

static bool may_be_next(const fake_stream *stream, const fake_device *device, int priority) {
    return stream->priority <= priority && may_run(stream, device);
}

static fake_stream *choose(fake_device *device) {
    int priority = most_urgent(device);
    uint32_t count = 0;
    for (int s = 0; s < FAKE_STREAMS; s++)
        count += may_be_next(&fake_streams[s], device, priority);
    if (count == 0)
        return NULL;
    uint32_t left = (uint32_t)(fake_device_draw(device) >> 8) % count;
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (may_be_next(&fake_streams[s], device, priority) && left-- == 0)
            return &fake_streams[s];
    return NULL;
}

/* ---- resting; lock ---- */

/* Since when nothing was called, and since when something is held back. */
typedef struct patience {
    long calls;
    int64_t quiet_ns, held_ns;
} patience;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool holds_back(const fake_device *device) {
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (fake_streams[s].device == device && fake_streams[s].released < fake_streams[s].launched)
            return true;
    return false;
}

static void let_go(const fake_device *device) {
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (fake_streams[s].device == device)
            fake_streams[s].released = fake_streams[s].launched;
}

static void doze(fake_device *device, int64_t until) {
    struct timespec deadline = {until / 1000000000, until % 1000000000};
    pthread_cond_timedwait(&device->work, &fake_lock, &deadline);
}

/* Nothing may run now. */
static void rest(fake_device *device, patience *with) {
    bool looks = awaits_host(device);
    if (!holds_back(device)) {
        with->held_ns = 0;
        if (looks)
            doze(device, now_ns() + LOOK_NS);
        else
            pthread_cond_wait(&device->work, &fake_lock);
        return;
    }
    int64_t now = now_ns();
    if (with->held_ns == 0)
        with->held_ns = now;
    if (with->calls != fake_cuda_calls() || with->quiet_ns < with->held_ns) {
        with->calls = fake_cuda_calls();
        with->quiet_ns = now;
    }
    if (now - with->quiet_ns >= QUIET_NS || now - with->held_ns >= HELD_NS) {
        let_go(device);
        with->held_ns = 0;
        return;
    }
    doze(device, now + (looks ? LOOK_NS : QUIET_NS));
}

void *fake_runner_main(void *context) {
    fake_device *device = context;
    patience with = {0};
    pthread_mutex_lock(&fake_lock);
    while (!device->is_ending) {
        fake_stream *stream = choose(device);
        if (!stream) {
            rest(device, &with);
        } else if (fake_device_draw(device) % 16 < PAUSES) {
            pthread_mutex_unlock(&fake_lock);
            sched_yield();
            pthread_mutex_lock(&fake_lock);
        } else {
            run_head(device, stream);
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}
