/* nonzero: the indices of elements that are not zero (NaN is not zero), in row-major order. The number of rows is known
 * only after counting, so the kernel has two entries. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>

#define PIECE 512

/* The input in row-major order as truth values, piece by piece. */
typedef struct reader {
    const eddy_kernel_view *in;
    eddy_walk walk;
    eddy_walk_cursor cursor;
    int64_t left;
    uint8_t truths[PIECE];
} reader;

static void reader_init(reader *r, const eddy_kernel_view *in) {
    r->in = in;
    r->left = eddy_view_count(in);
    eddy_walk_init(&r->walk, in->rank, in->shape);
    eddy_walk_add(&r->walk, in->strides, 1);
    eddy_walk_collapse(&r->walk);
    if (r->left > 0)
        eddy_walk_seek(&r->walk, &r->cursor, 0);
}

/* Loads the next piece; 0 at the end. */
static int64_t reader_next(reader *r) {
    if (r->left == 0)
        return 0;
    int64_t count = eddy_min_i64(PIECE, eddy_walk_run(&r->walk, &r->cursor));
    eddy_chunk_load(EDDY_BOOL, r->truths, r->in->dtype, eddy_chunk_at(r->in->data, r->in->dtype, r->cursor.offsets[0]),
                    eddy_walk_inner_stride(&r->walk, 0), count);
    eddy_walk_advance(&r->walk, &r->cursor, count);
    r->left -= count;
    return count;
}

static void nonzero_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    reader r;
    reader_init(&r, &call->views[0]);
    int64_t total = 0;
    for (int64_t count; (count = reader_next(&r)) > 0;)
        for (int64_t i = 0; i < count; i++)
            total += r.truths[i] != 0;
    shapes[0].rank = 2;
    shapes[0].dims[0] = total;
    shapes[0].dims[1] = call->views[0].rank;
}

static void nonzero_run(const eddy_kernel_call *call) {
    const eddy_kernel_view *in = &call->views[0], *out = &call->views[1];
    if (in->rank == 0 || eddy_view_count(out) == 0)
        return;
    reader r;
    reader_init(&r, in);
    int64_t index[EDDY_RANK_MAX] = {0};
    int32_t inner = in->rank - 1;
    int64_t *row = out->data;
    for (int64_t count; (count = reader_next(&r)) > 0;) {
        for (int64_t i = 0; i < count; i++) {
            if (r.truths[i]) {
                for (int32_t d = 0; d <= inner; d++)
                    row[d * out->strides[1]] = index[d];
                row += out->strides[0];
            }
            for (int32_t d = inner; ++index[d] == in->shape[d] && d > 0; d--)
                index[d] = 0;
        }
    }
}

const eddy_kernel eddy_cpu_nonzero = {
    .name = "nonzero", .run = nonzero_run, .count = nonzero_count, .cost_base_ps = 60000, .cost_element_ps = 2000};
