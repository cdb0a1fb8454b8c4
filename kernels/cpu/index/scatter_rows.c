/* Each row of a large output is made once: from the row of the input, and from what indices name for it, in their order.
 * If the ground was written first, the output would pass through the cache twice, and a row that is replaced would be
 * copied in vain. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/index/scatter.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <string.h>

#define SLICE_BYTES (128 * 1024)
/* Smaller outputs stay in the cache between the ground and the sums; shorter rows are not worth a look-up each. */
#define OUT_BYTES_LEAST (512 * 1024)
#define ROW_BYTES_LEAST 256
#define NONE (-1)

typedef struct rows {
    const eddy_scatter *s;
    char *out;
    int64_t row_bytes;
    int64_t *
        firsts; /* [row of out] an index that names the row, or NONE: the first; if rows are replaced, the last */
    int64_t
        *nexts; /* [index] sums: the number of the next index that names the same row, or NONE */
    const eddy_reduce_op *sum; /* NULL: rows are replaced */
} rows;

/* NULL if there are no sums of rows of the dtype. */
static const eddy_reduce_op *sum_of(eddy_dtype dtype) {
    return dtype == EDDY_F32   ? &eddy_reduce_blocks_of(EDDY_REDUCE_F32)->sum
           : dtype == EDDY_F64 ? &eddy_reduce_blocks_of(EDDY_REDUCE_F64)->sum
           : dtype == EDDY_I64 ? &eddy_reduce_blocks_of(EDDY_REDUCE_I64)->sum
                               : NULL;
}

static bool lies_plain(const eddy_op_view *out, const eddy_op_view *in) {
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    if (in != NULL)
        eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_collapse(&walk);
    return eddy_walk_is_plain(&walk);
}

static bool is_worth_it(const eddy_scatter_plan *plan, const eddy_op_view *out, int64_t count) {
    int64_t bytes = eddy_dtype_size(out->dtype);
    return plan->row * bytes >= ROW_BYTES_LEAST && count * bytes >= OUT_BYTES_LEAST &&
           (!plan->adds || sum_of(out->dtype) != NULL);
}

int64_t eddy_scatter_row_count(const eddy_scatter_layout *layout, const eddy_scatter_plan *plan) {
    const eddy_walk *rest = &layout->rest;
    int64_t count = eddy_kernel_view_count(layout->out);
    if (plan->is_aside || !is_worth_it(plan, layout->out, count) || rest->rank != 1 ||
        rest->dims[0] != plan->row || layout->along.rank > 1 ||
        rest->strides[EDDY_SCATTER_SOURCE][0] != 1 || plan->source_dtype != layout->out->dtype ||
        plan->step != (plan->bound < 0 ? 1 : plan->row) || !lies_plain(layout->out, layout->in))
        return 0;
    return count / plan->row;
}

size_t eddy_scatter_rows_workspace(const eddy_scatter_plan *plan) {
    return ((size_t)(plan->rows + (plan->adds ? plan->length : 0)) * sizeof(int64_t) + 63) / 64 *
           64;
}

/* Links the indices that name the same row, in their order. */
static void link_rows(rows *work) {
    const eddy_scatter *s = work->s;
    const eddy_scatter_plan *plan = s->plan;
    int64_t step = eddy_walk_inner_stride(&s->along, EDDY_SCATTER_INDEX), row = plan->row;
    int64_t number = eddy_walk_inner_stride(&s->along, EDDY_SCATTER_NUMBER);
    for (int64_t r = 0; r < plan->rows; r++)
        work->firsts[r] = NONE;
    for (int64_t k = 0; k < plan->length; k++) {
        int64_t i = work->sum ? plan->length - 1 - k : k;
        int64_t given = eddy_dtype_load_i64(plan->index_dtype,
                                            eddy_chunk_at(s->index, plan->index_dtype, i * step));
        int64_t at = eddy_scatter_checked(s, given, i * number);
        if (at == EDDY_SCATTER_NOWHERE)
            continue;
        int64_t *first = &work->firsts[plan->bound < 0 ? at / row : at];
        if (work->sum)
            work->nexts[i] = *first;
        *first = i;
    }
}

static void lay(const rows *work, int64_t begin, int64_t end) {
    int64_t offset = begin * work->row_bytes;
    size_t bytes = (size_t)((end - begin) * work->row_bytes);
    if (work->s->plan->is_cleared)
        memset(work->out + offset, 0, bytes);
    else
        memcpy(work->out + offset, (const char *)work->s->in + offset, bytes);
}

static const void *source_row(const rows *work, int64_t i) {
    const eddy_scatter *s = work->s;
    return eddy_chunk_at(s->source, s->plan->source_dtype,
                         i * eddy_walk_inner_stride(&s->along, EDDY_SCATTER_SOURCE));
}

static void rows_slice(void *context, int64_t begin, int64_t end) {
    const rows *work = context;
    for (int64_t r = begin; r < end; r++) {
        int64_t i = work->firsts[r], from = r;
        char *to = work->out + r * work->row_bytes;
        if (i == NONE) {
            while (r + 1 < end && work->firsts[r + 1] == NONE)
                r++;
            lay(work, from, r + 1);
        } else if (!work->sum) {
            memcpy(to, source_row(work, i), (size_t)work->row_bytes);
        } else {
            lay(work, r, r + 1);
            for (; i != NONE; i = work->nexts[i])
                work->sum->combine(to, source_row(work, i), work->s->plan->row);
        }
    }
}

void eddy_scatter_run_rows(const eddy_scatter *s) {
    const eddy_scatter_plan *plan = s->plan;
    rows work = {.s = s,
                 .out = s->out->data,
                 .row_bytes = plan->row * eddy_dtype_size(s->out->dtype),
                 .firsts = s->workspace,
                 .nexts = (int64_t *)s->workspace + plan->rows,
                 .sum = plan->adds ? sum_of(s->out->dtype) : NULL};
    link_rows(&work);
    eddy_kernel_team *team = s->call->team;
    team->parallel_for(team, plan->rows, eddy_max_i64(1, SLICE_BYTES / work.row_bytes), rows_slice,
                       &work);
}
