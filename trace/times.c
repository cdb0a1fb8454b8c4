#include <trace/times.h>

#include <base/clock.h>
#include <base/memory.h>
#include <base/name_table.h>
#include <base/process.h>
#include <base/status.h>
#include <stdlib.h>
#include <string.h>
#include <trace/busy.h>

/* Ranges within each other that are counted: a call, its engine, its kernel, a slice are five. Thread-local memory is scarce (base/README.md). */
#define DEPTH_MOST 8

typedef struct sum {
    _Atomic int64_t count, ns; /* atomic: relaxed */
} sum;

typedef struct op_sum {
    _Atomic int64_t count, ns, most_ns, bytes; /* atomic: relaxed */
} op_sum;

static struct {
    _Atomic uint32_t state; /* atomic: acq_rel; 0, 1 while the listener is added, 2 for good */
    sum phases[EDDY_TRACE_PHASE_COUNT], throttled;
    _Atomic int64_t memory_taken, memory_refused, memory_given_back, failed,
        skipped;                 /* atomic: relaxed */
    op_sum ops[EDDY_NAMES_MOST]; /* by numbers of base/name_table.h; 0: those without one */
} times;

/* <calling thread> only: when its ranges began. */
static __thread __attribute__((tls_model("initial-exec"))) int64_t begun_ns[DEPTH_MOST];
static __thread __attribute__((tls_model("initial-exec"))) uint32_t depth;

static void add(sum *to, int64_t ns) {
    eddy_add_relaxed(&to->count, 1);
    eddy_add_relaxed(&to->ns, ns);
}

static void add_op(const eddy_trace_event *event, int64_t ns) {
    op_sum *op = &times.ops[event->op ? eddy_name_number(event->op) : 0];
    int64_t most = eddy_load_relaxed(&op->most_ns);
    eddy_add_relaxed(&op->count, 1);
    eddy_add_relaxed(&op->ns, ns);
    eddy_add_relaxed(&op->bytes, event->bytes);
    while (ns > most && !eddy_cas_relaxed(&op->most_ns, &most, ns)) {
    }
}

static void end_range(const eddy_trace_event *event) {
    if (depth == 0 || --depth >= DEPTH_MOST)
        return;
    int64_t ns = eddy_clock_ns() - begun_ns[depth];
    add(&times.phases[event->phase], ns);
    if (event->phase == EDDY_TRACE_KERNEL)
        add_op(event, ns);
    /* A launch is over before what it launches. */
    if (event->on && !event->on->is_devices)
        eddy_busy_add(event->on, ns);
    /* The end of a wait for room has a detail (base/trace.h). */
    if (event->phase == EDDY_TRACE_WAIT && event->detail)
        add(&times.throttled, ns);
}

static void count_moment(const eddy_trace_event *event) {
    if (event->phase == EDDY_TRACE_POISON)
        eddy_add_relaxed(event->origin == event->sequence ? &times.failed : &times.skipped, 1);
    if (event->phase == EDDY_TRACE_ALLOCATOR)
        eddy_add_relaxed(strcmp(event->op, "take") == 0     ? &times.memory_taken
                         : strcmp(event->op, "refuse") == 0 ? &times.memory_refused
                                                            : &times.memory_given_back,
                         1);
}

/* What a device has done. */
static void add_done(const eddy_trace_event *event) {
    if (event->on && event->began_ns > 0)
        eddy_busy_add(event->on, eddy_clock_ns() - event->began_ns);
}

static void hear(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_ENDS) {
        end_range(event);
    } else if (event->kind == EDDY_TRACE_HAPPENS) {
        count_moment(event);
        add_done(event);
    } else {
        if (depth < DEPTH_MOST)
            begun_ns[depth] = eddy_clock_ns();
        depth++;
    }
}

eddy_status eddy_times_begin(eddy_origin origin) {
    /* Ranges of the user's may lie deep. */
    eddy_trace_listener listener = {hear, NULL, EDDY_TRACE_ALL_PHASES & ~(1u << EDDY_TRACE_RANGE)};
    uint32_t none = 0, place;
    if (!eddy_cas_acq_rel(&times.state, &none, 1u))
        return EDDY_OK;
    /* Where there is no room for the listener, this comes here again. */
    static _Atomic bool watches_forks; /* atomic: acq_rel; set once */
    if (!eddy_exchange_acq_rel(&watches_forks, true))
        eddy_process_at_fork_child(eddy_busy_fork_child);
    eddy_status status = eddy_trace_add(&listener, &place);
    eddy_store_release(&times.state, status == EDDY_OK ? 2u : 0u);
    return status == EDDY_OK
               ? EDDY_OK
               : eddy_fail(status, origin, "there are as many listeners as there may be");
}

static eddy_times_sum read_sum(sum *of) {
    return (eddy_times_sum){eddy_load_relaxed(&of->count), eddy_load_relaxed(&of->ns)};
}

void eddy_times_read(eddy_times *to) {
    for (int p = 0; p < EDDY_TRACE_PHASE_COUNT; p++)
        to->phases[p] = read_sum(&times.phases[p]);
    to->throttled = read_sum(&times.throttled);
    to->memory_taken = eddy_load_relaxed(&times.memory_taken);
    to->memory_refused = eddy_load_relaxed(&times.memory_refused);
    to->memory_given_back = eddy_load_relaxed(&times.memory_given_back);
    to->failed = eddy_load_relaxed(&times.failed);
    to->skipped = eddy_load_relaxed(&times.skipped);
}

/* Several addresses of one text are several numbers of one op; streams of one name are one. */
static void merge(eddy_times_row *rows, int64_t *count, const eddy_times_row *added) {
    int64_t i = 0;
    while (i < *count && strcmp(rows[i].name, added->name) != 0)
        i++;
    if (i == *count)
        rows[(*count)++] = (eddy_times_row){.name = added->name};
    rows[i].count += added->count;
    rows[i].ns += added->ns;
    rows[i].bytes += added->bytes;
    rows[i].most_ns = added->most_ns > rows[i].most_ns ? added->most_ns : rows[i].most_ns;
}

static int by_time(const void *a, const void *b) {
    const eddy_times_row *left = a, *right = b;
    if (left->ns != right->ns)
        return left->ns > right->ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* What `read` says of 0 to most - 1. */
static int64_t visit_sorted(uint32_t most, eddy_times_row (*read)(uint32_t number),
                            eddy_times_visitor *visit, void *context) {
    /* Not on the stack: a thread of the program's may have a small one. */
    size_t bytes = most * sizeof(eddy_times_row);
    eddy_times_row *all = eddy_memory_acquire(bytes, EDDY_MEMORY_TRACE);
    int64_t count = 0;
    for (uint32_t n = 0; all && n < most; n++) {
        eddy_times_row row = read(n);
        if (row.count > 0)
            merge(all, &count, &row);
    }
    if (count > 1)
        qsort(all, (size_t)count, sizeof(*all), by_time);
    for (int64_t i = 0; i < count; i++)
        visit(context, i, &all[i]);
    eddy_memory_release(all, bytes, EDDY_MEMORY_TRACE);
    return count;
}

static eddy_times_row read_op(uint32_t number) {
    op_sum *op = &times.ops[number];
    return (eddy_times_row){.name = number == 0 ? "(others)" : eddy_name_text(number),
                            .count = eddy_load_relaxed(&op->count),
                            .ns = eddy_load_relaxed(&op->ns),
                            .most_ns = eddy_load_relaxed(&op->most_ns),
                            .bytes = eddy_load_relaxed(&op->bytes)};
}

int64_t eddy_times_ops(eddy_times_visitor *visit, void *context) {
    return visit_sorted(EDDY_NAMES_MOST, read_op, visit, context);
}

static eddy_times_row read_stream(uint32_t place) {
    eddy_times_row row = {0};
    (void)eddy_busy_read(place, &row.name, &row.count, &row.ns);
    return row;
}

int64_t eddy_times_streams(eddy_times_visitor *visit, void *context) {
    return visit_sorted(EDDY_BUSY_STREAMS_MOST + 1, read_stream, visit, context);
}
