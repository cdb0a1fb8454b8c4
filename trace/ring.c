#include <trace/ring.h>

#include <base/memory.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What is behind the lines in their block. */
#define BLOCK_BYTES                                                                                \
    (EDDY_RING_LINES * sizeof(eddy_ring_line) + EDDY_RING_OPEN_MOST * sizeof(eddy_ring_open))
/* The writer is woken each time so many lines have been appended while it has not taken half of them. */
#define WAKE_LINES (EDDY_RING_LINES / 8)

eddy_ring eddy_rings[EDDY_RINGS_MOST];
eddy_sleep_word eddy_rings_word;

static _Atomic uint64_t without; /* atomic: relaxed; records of threads that have no ring */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* const once it was made */
static bool has_key;      /* as `key` */
static __thread __attribute__((tls_model("initial-exec"))) eddy_ring *own;

/* ---- owners ---- */

static void leave(void *context) {
    eddy_ring *ring = context;
    own = NULL;
    eddy_store_release(&ring->state, EDDY_RING_LEFT);
}

static void make_key(void) {
    has_key = pthread_key_create(&key, leave) == 0;
}

static eddy_ring *take_free(void) {
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++) {
        uint32_t state = EDDY_RING_FREE;
        if (eddy_load_relaxed(&eddy_rings[r].state) == EDDY_RING_FREE &&
            eddy_cas_acquire(&eddy_rings[r].state, &state, (uint32_t)EDDY_RING_OWNED))
            return &eddy_rings[r];
    }
    return NULL;
}

static void name_thread(eddy_ring *ring) {
    char name[EDDY_RECORD_LINE] = "";
    (void)prctl(PR_GET_NAME, name);
    eddy_record record = {
        .kind = EDDY_RECORD_THREAD, .sequence = (uint64_t)syscall(SYS_gettid), .texts = 1};
    eddy_ring_append(ring, &record, name);
}

/* A ring that was taken for an earlier trace has no lines yet. */
static void begin(eddy_ring *ring, uint64_t trace) {
    if (!ring->lines) {
        ring->lines = eddy_memory_acquire(BLOCK_BYTES, EDDY_MEMORY_TRACE);
        ring->open = ring->lines ? (eddy_ring_open *)(ring->lines + EDDY_RING_LINES) : NULL;
    }
    ring->trace = trace;
    ring->depth = 0;
    if (ring->lines)
        name_thread(ring);
}

static eddy_ring *find(uint64_t trace) {
    if (!own) {
        (void)pthread_once(&key_once, make_key);
        eddy_ring *found = has_key ? take_free() : NULL;
        if (found && pthread_setspecific(key, found) != 0) {
            eddy_store_release(&found->state, EDDY_RING_FREE);
            found = NULL;
        }
        if (!found)
            return NULL;
        own = found;
        begin(own, trace);
    }
    if (own->trace != trace)
        begin(own, trace);
    return own->lines ? own : NULL;
}

eddy_ring *eddy_ring_own(uint64_t trace) {
    if (EDDY_LIKELY(own && own->trace == trace && own->lines))
        return own;
    eddy_ring *found = find(trace);
    if (!found)
        eddy_add_relaxed(&without, 1u);
    return found;
}

static bool has_room(eddy_ring *ring, uint64_t head, uint64_t wanted) {
    if (EDDY_LIKELY(head + wanted - ring->tail_seen <= EDDY_RING_LINES))
        return true;
    ring->tail_seen = eddy_load_acquire(&ring->tail);
    return head + wanted - ring->tail_seen <= EDDY_RING_LINES;
}

/* A moment or so before it is too late. */
static void wake_if_half_full(eddy_ring *ring, uint64_t head) {
    ring->tail_seen = eddy_load_acquire(&ring->tail);
    if (head - ring->tail_seen >= EDDY_RING_LINES / 2) {
        eddy_add_release(&eddy_rings_word, 1u);
        eddy_sleep_wake_one(&eddy_rings_word);
    }
}

static eddy_ring_line *line_at(const eddy_ring *ring, uint64_t number) {
    return &ring->lines[number & (EDDY_RING_LINES - 1)];
}

void eddy_ring_append(eddy_ring *ring, const eddy_record *record, const char *text) {
    uint64_t head = eddy_load_relaxed(&ring->head), next = head + 1 + record->texts;
    if (EDDY_UNLIKELY(!has_room(ring, head, 1u + record->texts))) {
        eddy_store_relaxed(&ring->dropped, eddy_load_relaxed(&ring->dropped) + 1);
        return;
    }
    line_at(ring, head)->record = *record;
    for (uint32_t t = 0; t < record->texts; t++)
        memcpy(line_at(ring, head + 1 + t)->text, text + t * EDDY_RECORD_LINE, EDDY_RECORD_LINE);
    eddy_store_release(&ring->head, next);
    if (EDDY_UNLIKELY(head / WAKE_LINES != next / WAKE_LINES))
        wake_if_half_full(ring, next);
}

/* ---- the writer ---- */

int64_t eddy_ring_take_open(eddy_ring *ring, int64_t now_ns, eddy_ring_taker *take, void *context) {
    uint32_t count = ring->depth < EDDY_RING_OPEN_MOST ? ring->depth : EDDY_RING_OPEN_MOST;
    for (uint32_t i = count; ring->lines && i > 0; i--) {
        eddy_ring_open *open = &ring->open[i - 1];
        open->record.took_ns = now_ns - open->record.at_ns;
        take(context, ring, &open->record, open->text);
    }
    ring->depth = 0;
    return count;
}

int64_t eddy_ring_take(eddy_ring *ring, int64_t now_ns, eddy_ring_taker *take, void *context) {
    /* First: what its owner has appended by then is seen below. */
    uint32_t state = eddy_load_acquire(&ring->state);
    uint64_t tail = eddy_load_relaxed(&ring->tail), head = eddy_load_acquire(&ring->head);
    int64_t count = 0;
    char text[EDDY_RECORD_TEXT_BYTES];
    for (; tail != head; count++) {
        const eddy_record *record = &line_at(ring, tail)->record;
        uint32_t texts = record->texts;
        for (uint32_t t = 0; t < texts; t++)
            memcpy(text + t * EDDY_RECORD_LINE, line_at(ring, tail + 1 + t)->text,
                   EDDY_RECORD_LINE);
        take(context, ring, record, text);
        tail += 1 + texts;
    }
    eddy_store_release(&ring->tail, tail);
    if (state == EDDY_RING_LEFT) {
        count += eddy_ring_take_open(ring, now_ns, take, context);
        eddy_store_release(&ring->state, EDDY_RING_FREE);
    }
    return count;
}

int64_t eddy_rings_dropped(void) {
    uint64_t dropped = eddy_load_relaxed(&without);
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++)
        dropped += eddy_load_relaxed(&eddy_rings[r].dropped);
    return (int64_t)dropped;
}

/* ---- beginning and end ---- */

static void free_lines(eddy_ring *ring) {
    eddy_memory_release(ring->lines, BLOCK_BYTES, EDDY_MEMORY_TRACE);
    ring->lines = NULL;
    ring->open = NULL;
    ring->depth = 0;
    ring->tail_seen = eddy_load_relaxed(&ring->head);
    eddy_store_relaxed(&ring->tail, ring->tail_seen);
    eddy_store_relaxed(&ring->dropped, 0u);
}

void eddy_rings_free(void) {
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++) {
        eddy_ring *ring = &eddy_rings[r];
        uint32_t left = EDDY_RING_LEFT;
        free_lines(ring);
        (void)eddy_cas_acq_rel(&ring->state, &left, (uint32_t)EDDY_RING_FREE);
    }
    eddy_store_relaxed(&without, 0u);
}

void eddy_rings_fork_child(void) {
    eddy_rings_free();
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++)
        eddy_store_relaxed(&eddy_rings[r].state,
                           (uint32_t)(&eddy_rings[r] == own ? EDDY_RING_OWNED : EDDY_RING_FREE));
}
