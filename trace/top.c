#include <trace/top.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/status.h>
#include <base/thread.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <trace/times.h>
#include <unistd.h>

#define OPS_SHOWN 16

typedef struct page {
    char magic[8];
    _Atomic uint32_t number; /* atomic: seq_cst by the writer, who alone changes it */
    uint32_t length;
    char unused[EDDY_TOP_TEXT_AT - 16];
    char text[EDDY_TOP_BYTES - EDDY_TOP_TEXT_AT];
} page;

static struct {
    eddy_lock lock;
    page *page; /* lock: lock; const while there is a writer */
    int fd;
    eddy_thread thread;
    eddy_tracer_sample *sample;
    bool watches_forks; /* lock: lock */
    /* of the writer */
    char text[sizeof(((page *)0)->text)];
    size_t length;
} top = {.lock = EDDY_LOCK_OF(EDDY_RANK_NONE), .fd = -1};

static void add(const char *group, const char *name, int64_t value) {
    size_t room = sizeof(top.text) - top.length;
    int length =
        snprintf(top.text + top.length, room, "%s\t%s\t%lld\n", group, name, (long long)value);
    /* A line that does not fit is left out, with all behind it. */
    if (length > 0 && (size_t)length < room)
        top.length += (size_t)length;
    else
        top.text[top.length] = '\0';
}

static void tell(void *context, const char *name, const char *series, int64_t value) {
    (void)context;
    add(name, series, value);
}

static void add_op(void *context, int64_t place, const eddy_times_row *op) {
    (void)context;
    if (place >= OPS_SHOWN)
        return;
    add("op count", op->name, op->count);
    add("op ns", op->name, op->ns);
}

static void write_page(void) {
    uint32_t number = eddy_load_relaxed(&top.page->number);
    top.length = 0;
    add("time", "ns", eddy_clock_ns());
    top.sample(tell, NULL);
    (void)eddy_times_ops(add_op, NULL);
    eddy_store_seq_cst(&top.page->number, number + 1);
    memcpy(top.page->text, top.text, top.length);
    top.page->length = (uint32_t)top.length;
    eddy_store_seq_cst(&top.page->number, number + 2);
}

static void write_pages(void *context) {
    static eddy_sleep_word never;
    (void)context;
    for (;;) {
        write_page();
        (void)eddy_sleep_wait(&never, 0, eddy_clock_deadline(EDDY_TOP_PERIOD_NS));
    }
}

/* The memory is the parent's, which goes on writing it. */
static void fork_child(void) {
    eddy_lock_init(&top.lock, EDDY_RANK_NONE);
    if (top.page) {
        munmap(top.page, sizeof(*top.page));
        close(top.fd);
    }
    top.page = NULL;
    top.sample = NULL;
    top.fd = -1;
}

/* Lock: lock. */
static eddy_status make_page(eddy_origin origin) {
    int fd = memfd_create(EDDY_TOP_NAME, MFD_CLOEXEC);
    page *made = MAP_FAILED;
    if (fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, sizeof(*made)) == 0)
        made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (made == MAP_FAILED) {
        eddy_status status = eddy_fail(EDDY_OUT_OF_MEMORY, origin,
                                       "there is no page for eddy top: %s", strerrordesc_np(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    memcpy(made->magic, EDDY_TOP_MAGIC, sizeof(made->magic));
    top.fd = fd;
    top.page = made;
    return EDDY_OK;
}

eddy_status eddy_top_begin(eddy_tracer_sample *sample, eddy_origin origin) {
    eddy_lock_acquire(&top.lock);
    eddy_status status = top.page ? EDDY_OK : make_page(origin);
    bool is_new = status == EDDY_OK && !top.sample;
    if (is_new) {
        top.sample = sample;
        status = eddy_thread_create(&top.thread, "eddy-top", write_pages, NULL);
        if (status != EDDY_OK) {
            top.sample = NULL;
            status = eddy_fail(status, origin, "the system gives no thread for eddy top");
        }
    }
    if (!top.watches_forks)
        eddy_process_at_fork_child(fork_child);
    top.watches_forks = true;
    eddy_lock_release(&top.lock);
    return status;
}
