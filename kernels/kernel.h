/* Kernels.
 *
 * A kernel gets plain views (pointer, shape, strides in elements), its op's attribute struct, a workspace and a team that
 * runs its slices. It never allocates, locks, logs or accesses handles, and keeps no state. It runs
 * under the default floating-point environment, on any thread. */
#ifndef EDDY_KERNELS_KERNEL_H
#define EDDY_KERNELS_KERNEL_H

#include <base/assert.h>
#include <base/atomic.h>
#include <eddy/op.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eddy_backend_launch;

/* The failure of a kernel. The lowest `position` wins, so that the message does not depend on the number of threads. */
typedef struct eddy_kernel_error {
    _Atomic int32_t status; /* atomic: eddy_status, any slice writes, the retiring thread reads */
    _Atomic int64_t
        position;  /* flat index of the offending element; INT64_MAX while there is none */
    int64_t value; /* lock: under `guard`; the offending value */
    int64_t bound; /* lock: under `guard`; the bound that it had to be below */
    /* No failure: what a device's own kernel has counted (`count`). The device writes it, whom the ticket tells when. 0 before. */
    int64_t counted;
    _Atomic uint32_t guard;
} eddy_kernel_error;

/* The stream's parallel_for: calls body(context, begin, end) over [0, count) cut into slices of `grain` (the last may be
 * shorter), on the calling thread and its helpers, and returns when all are done. Slices depend on count and grain
 * alone. A slice may not call it again. */
typedef struct eddy_kernel_team {
    void (*parallel_for)(struct eddy_kernel_team *team, int64_t count, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end), void *context);
    int32_t thread_count; /* const: size of the team; results must not depend on it */
} eddy_kernel_team;

typedef struct eddy_kernel_call {
    const struct eddy_kernel *kernel;
    const eddy_op_view *
        views; /* operands in the order of the op's entry: inputs (the items of lists in a row), then outputs */
    int32_t view_count;
    const void *attributes; /* the op's attribute struct */
    const void *
        plan; /* in `run`, `count`, `end`: a copy of plan->memory as `prepare` filled it, aligned to 8 */
    void *workspace;          /* 64-byte aligned */
    size_t workspace_bytes;   /* what `prepare` said */
    eddy_kernel_team *team;   /* on the host never NULL */
    eddy_kernel_error *error; /* never NULL */
    /* Of a kernel of a device that runs no code of the host: data and workspace are the device's, and `run` launches there, on its launching thread, without waiting. NULL
     * for all others. */
    struct eddy_backend_launch *launch;
} eddy_kernel_call;

/* Bytes that a kernel's plan may have: walks of some operands over EDDY_RANK_MAX dims. */
#define EDDY_KERNEL_PLAN_BYTES 2048

/* Filled in by `prepare`. */
typedef struct eddy_kernel_plan {
    void (*run)(const eddy_kernel_call *call); /* the function to run; kernel->run, if not set */
    size_t workspace_bytes;                    /* 0, if not set */
    int64_t cost_ps;                           /* estimated time on one core (kernels/cost.h) */
    void *memory; /* EDDY_KERNEL_PLAN_BYTES, aligned to 8, not cleared: data for `run` */
    size_t bytes; /* the number of bytes written; 0, if not set */
    /* `prepare` has started a library that registers exit handlers. Eddy's own handler, which must run before them, is
     * then registered again. */
    bool has_started_library;
} eddy_kernel_plan;

/* The inner loop of an elementwise op: `count` elements, one pointer and one stride in BYTES per operand (inputs, then
 * the output). Contiguous (stride == element size) and broadcast (stride 0) operands deserve a fast path. */
typedef void eddy_loop_fn(char *const *data, const int64_t *strides, int64_t count,
                          const void *attributes);

/* The longest row that an eddy_rows_fn reduces. */
#define EDDY_KERNEL_ROW_ELEMENTS 1024

/* Reduces each of `rows` rows of contiguous elements (data[0]) to one (data[1]), with BYTES from row to row:
 * 1 <= columns <= EDDY_KERNEL_ROW_ELEMENTS. */
typedef void eddy_rows_fn(char *const *data, const int64_t *strides, int64_t rows, int64_t columns);

typedef struct eddy_kernel {
    const char *name;
    /* Runs the whole op. For elementwise kernels this is eddy_kernel_run_elementwise, which calls eddy_kernel_loop's. */
    void (*run)(const eddy_kernel_call *call);
    /* Elementwise kernels only: the loop, or, if there is one for each instruction set, its index in the table that
     * `loops` returns for the chosen one. */
    eddy_loop_fn *loop;
    eddy_loop_fn *const *(*loops)(void); /* NULL: use `loop` */
    size_t loop_index;
    /* Reductions whose attributes begin with eddy_attributes_reduce: rows of f32, with the bits of a call. NULL: there is no such loop. */
    eddy_rows_fn *rows;
    /* Plans a call: once, on the thread that issues it, with views that have no data. It computes all that follows from shapes,
     * dtypes, strides and attributes, and `run` computes none of it again: the slices, the workspace, the cost, the code to run.
     * Nothing else decides, so that a call gives the same bits every time; without memory it fails (OUT_OF_MEMORY, or the status
     * of a registered op, without a record). It may take locks and start libraries. The plan's memory is copied, so it has no
     * pointers into itself. NULL: no workspace, no plan, the cost below. */
    eddy_status (*prepare)(const eddy_kernel_call *call, eddy_kernel_plan *plan);
    /* Releases the prepared objects that the plan holds (kernels/prepared.h): exactly once for each OK of `prepare`, whether the
     * call has run or not, on any thread; it takes no lock. NULL: plans hold nothing. */
    void (*end)(const void *plan);
    /* A word for how the plan computes, where that does not follow from the kernel's name. NULL: it does. For who looks at programs, and for tests. */
    const char *(*way)(const void *plan);
    /* A kernel for the same calls that rounds otherwise, for programs that allow it (program/passes/). NULL: none. */
    const struct eddy_kernel *fast;
    /* Late shape (mut2): writes the outputs' shapes; `run` then fills them, with the workspace as `count` has left it. NULL
     * for other kernels. Of a device that runs no code of the host: launches what counts, and what says the number that it has found (error->counted); `shapes` is NULL. */
    void (*count)(const eddy_kernel_call *call, eddy_shape *shapes);
    /* On such a device: writes the outputs' shapes, from the number, once it has come to the host. Views have no data. On the engine's thread: it takes less than a
     * microsecond. */
    void (*shape)(const eddy_kernel_call *call, int64_t counted, eddy_shape *shapes);
    /* Estimated picoseconds on one core: base, a time per element of the largest operand, and memory; `prepare` may replace it. */
    int32_t cost_base_ps;
    int32_t cost_element_ps;
    /* Its outputs are whatever was there (empty): nobody looks whether that is finite. */
    bool writes_nothing;
} eddy_kernel;

/* Plans a call of any kernel; plan->memory is the caller's, the rest is filled in. Fails as `prepare` does. */
EDDY_MUST_USE eddy_status eddy_kernel_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan);

/* Records a failure; the one with the lowest position is kept. */
void eddy_kernel_fail(const eddy_kernel_call *call, eddy_status status, int64_t position,
                      int64_t value, int64_t bound);

/* Up to so many elements, whose merged dims have rank 0 or 1, an elementwise kernel is one call of its loop: some 10 us of a cheap op, so
 * that a slice is worth a hand-over. */
#define EDDY_KERNEL_SLICE_ELEMENTS 32768

/* The run function of elementwise kernels: all views share one shape (broadcast strides are 0). The interpreter has sorted its
 * dims, so that the output is written in order, and collapsed them. Iterates over the outer dims and cuts large ones into slices. */
void eddy_kernel_run_elementwise(const eddy_kernel_call *call);

/* The loop of an elementwise kernel for the instruction set, which this call fixes. The same for the life of the process:
 * it may be stored beside the kernel. */
static inline eddy_loop_fn *eddy_kernel_loop(const eddy_kernel *kernel) {
    return kernel->loops ? kernel->loops()[kernel->loop_index] : kernel->loop;
}

/* Elements of a view. */
static inline int64_t eddy_kernel_view_count(const eddy_op_view *view) {
    int64_t count = 1;
    for (int32_t d = 0; d < view->rank; d++)
        count *= view->shape[d];
    return count;
}

/* A view of rank 0 as a vector of one element; other views unchanged. */
static inline eddy_op_view eddy_kernel_view_with_axis(const eddy_op_view *view) {
    static const int64_t one = 1;
    eddy_op_view with = *view;
    if (view->rank == 0) {
        with.rank = 1;
        with.shape = with.strides = &one;
    }
    return with;
}

static inline bool eddy_kernel_view_is_absent(const eddy_op_view *view) {
    return view->rank < 0;
}

#endif
