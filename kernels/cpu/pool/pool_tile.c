#include <kernels/cpu/chunk.h>
#include <kernels/cpu/pool/pool_tile.h>
#include <kernels/cpu/walk.h>

/* Elements of a tile: the windows' results for single rows. */
#define TILE 4096
/* A tile has outputs of at least this many rows, if there are so many, and of at least this many columns. */
#define ROWS_LEAST 2
#define COLUMNS_LEAST 16

typedef struct sweep {
    const eddy_pool_tiling *tiling;
    int64_t n, c;
    int64_t oh, oh_count, ow, ow_count; /* outputs */
    int64_t row, rows;                  /* of the image */
    union {
        _Alignas(64) float f32[TILE];
        double f64[TILE];
    } best; /* the windows' result for each row */
    union {
        _Alignas(64) int32_t f32[TILE];
        int64_t f64[TILE];
    } at; /* EDDY_POOL_MAX_INDEX: the distance of its element from the start of the unclipped window */
} sweep;

/* Distance from a window's first element to its last, inclusive. */
static int64_t reach(const eddy_pool_axis *axis) {
    return (axis->kernel - 1) * axis->dilation + 1;
}

static bool is_served(const eddy_pool_tiling *t) {
    bool has_indices = t->kind == EDDY_POOL_MAX_INDEX;
    /* With f32, the position of an element has 32 bits. */
    if (has_indices && t->x->dtype == EDDY_F32 && t->x->height * t->x->width >= INT32_MAX)
        return false;
    return (t->x->dtype == EDDY_F32 || t->x->dtype == EDDY_F64) && t->x->column_stride == 1 &&
           t->out->column_stride == 1 && (!has_indices || t->indices->column_stride == 1) &&
           !t->height->is_adaptive && !t->width->is_adaptive;
}

bool eddy_pool_tiles_init(eddy_pool_tiles *tiles, const eddy_pool_tiling *t) {
    const eddy_pool_axis *width = t->width, *height = t->height;
    if (!is_served(t))
        return false;
    int64_t rows = reach(height),
            wanted = rows + (eddy_min_i64(height->out, ROWS_LEAST) - 1) * height->stride;
    int64_t pitch = width->in / width->stride;
    tiles->is_flat = t->x->row_stride == width->in && pitch * width->stride == width->in &&
                     pitch >= width->out && wanted * pitch <= TILE;
    tiles->columns = tiles->is_flat ? width->out : eddy_min_i64(width->out, TILE / wanted);
    tiles->pitch = tiles->is_flat ? pitch : tiles->columns;
    if (tiles->columns < eddy_min_i64(width->out, COLUMNS_LEAST) || TILE / tiles->pitch < rows)
        return false;
    tiles->rows = (TILE / tiles->pitch - rows) / height->stride + 1;
    eddy_pool_whole(height, &tiles->rows_begin, &tiles->rows_end);
    eddy_pool_whole(width, &tiles->columns_begin, &tiles->columns_end);
    return true;
}

static void *best_at(sweep *s, int64_t column) {
    return eddy_chunk_at(&s->best, s->tiling->x->dtype, column);
}

static void *at_at(sweep *s, int64_t column) {
    return eddy_chunk_at(&s->at, s->tiling->x->dtype, column);
}

/* Computes the windows' results for single rows, from window number i of the tile on. */
static void take(sweep *s, int64_t i, const void *x, const eddy_pool_run *run) {
    const eddy_pool_ops *ops = s->tiling->ops;
    if (s->tiling->kind == EDDY_POOL_MAX_INDEX)
        ops->max_at(best_at(s, i), at_at(s, i), x, run);
    else
        (s->tiling->kind == EDDY_POOL_AVERAGE ? ops->average : ops->max)(best_at(s, i), x, run, 1);
}

/* Outputs number begin .. end - 1 of each row, whose windows are whole. In a flat tile, windows that extend into the next
 * row are computed too, so that all rows are one run. */
static void take_whole(sweep *s, int64_t begin, int64_t end) {
    const eddy_pool_tiling *t = s->tiling;
    const eddy_pool_axis *axis = t->width;
    const void *x =
        eddy_image_at(t->x, s->n, s->c, s->row, (s->ow + begin) * axis->stride - axis->padding);
    const eddy_pool_run run = {.rows = 1,
                               .columns = axis->kernel,
                               .column_step = axis->dilation,
                               .count = end - begin +
                                        (t->tiles->is_flat ? (s->rows - 1) * t->tiles->pitch : 0),
                               .step = axis->stride,
                               .out_step = 1,
                               .places = t->tiles->is_flat ? 1 : s->rows,
                               .place_step = t->x->row_stride,
                               .out_place_step = t->tiles->pitch};
    take(s, begin, x, &run);
}

/* Output number i of each row, whose window is clipped. */
static void take_cut(sweep *s, int64_t i) {
    const eddy_pool_tiling *t = s->tiling;
    const eddy_pool_axis *axis = t->width;
    eddy_pool_window window = eddy_pool_window_of(axis, s->ow + i);
    const eddy_pool_run run = {.rows = 1,
                               .columns = window.count,
                               .column_step = axis->dilation,
                               .count = s->rows,
                               .step = t->x->row_stride,
                               .out_step = t->tiles->pitch,
                               .places = 1};
    take(s, i, eddy_image_at(t->x, s->n, s->c, s->row, window.first), &run);
    int64_t cut = window.first - ((s->ow + i) * axis->stride - axis->padding);
    for (int64_t r = 0; r < s->rows && cut > 0 && t->kind == EDDY_POOL_MAX_INDEX; r++)
        if (t->x->dtype == EDDY_F64)
            s->at.f64[r * t->tiles->pitch + i] += cut;
        else
            s->at.f32[r * t->tiles->pitch + i] += (int32_t)cut;
}

/* Columns of the tile whose windows are whole. */
static void whole_columns(const sweep *s, int64_t *begin, int64_t *end) {
    const eddy_pool_tiles *tiles = s->tiling->tiles;
    *begin = eddy_min_i64(eddy_max_i64(tiles->columns_begin - s->ow, 0), s->ow_count);
    *end = eddy_max_i64(eddy_min_i64(tiles->columns_end - s->ow, s->ow_count), *begin);
}

static void take_rows(sweep *s) {
    int64_t begin, end;
    whole_columns(s, &begin, &end);
    if (begin < end)
        take_whole(s, begin, end);
    for (int64_t i = 0; i < begin; i++)
        take_cut(s, i);
    for (int64_t i = end; i < s->ow_count; i++)
        take_cut(s, i);
}

/* Joins rows for `count` columns from number i on, and `places` rows of outputs from oh on: windows of rows first .. first
 * + rows - 1 of the image. */
static void join(sweep *s, int64_t oh, int64_t places, int64_t i, int64_t count,
                 eddy_pool_window rows) {
    const eddy_pool_tiling *t = s->tiling;
    int64_t offset = (rows.first - s->row) * t->tiles->pitch + i;
    const eddy_pool_run run = {.rows = rows.count,
                               .columns = 1,
                               .row_step = t->height->dilation * t->tiles->pitch,
                               .count = count,
                               .step = 1,
                               .out_step = 1,
                               .places = places,
                               .place_step = t->height->stride * t->tiles->pitch,
                               .out_place_step = t->out->row_stride};
    const void *best = best_at(s, offset);
    void *out = eddy_image_at(t->out, s->n, s->c, oh, s->ow + i);
    if (t->kind == EDDY_POOL_AVERAGE) {
        t->ops->average(out, best, &run,
                        eddy_pool_divisor(t->attributes, t->height, t->width, oh, s->ow + i));
        return;
    }
    if (t->kind == EDDY_POOL_MAX) {
        t->ops->max(out, best, &run, 1);
        return;
    }
    const eddy_pool_indices indices = {.to = eddy_image_at(t->indices, s->n, s->c, oh, s->ow + i),
                                       .first = rows.first * t->width->in +
                                                (s->ow + i) * t->width->stride - t->width->padding,
                                       .row_step = t->height->dilation * t->width->in,
                                       .step = t->width->stride,
                                       .to_step = 1,
                                       .place_step = t->height->stride * t->width->in,
                                       .to_place_step = t->indices->row_stride};
    t->ops->max_join(out, best, at_at(s, offset), &run, &indices);
}

/* Columns of the tile whose averages have the same divisor: those with whole windows, or all columns if the first and the
 * last have it too. */
static void alike(const sweep *s, int64_t oh, int64_t *begin, int64_t *end) {
    const eddy_pool_tiling *t = s->tiling;
    *begin = 0;
    *end = s->ow_count;
    if (t->kind != EDDY_POOL_AVERAGE)
        return;
    int64_t from, to;
    whole_columns(s, &from, &to);
    double divisor = eddy_pool_divisor(t->attributes, t->height, t->width, oh, s->ow + from);
    if (from < to && divisor == eddy_pool_divisor(t->attributes, t->height, t->width, oh, s->ow) &&
        divisor ==
            eddy_pool_divisor(t->attributes, t->height, t->width, oh, s->ow + s->ow_count - 1))
        return;
    *begin = from;
    *end = to;
}

/* Rows of outputs whose windows have one shape. */
static void join_rows(sweep *s, int64_t oh, int64_t places) {
    eddy_pool_window rows = eddy_pool_window_of(s->tiling->height, oh);
    int64_t begin, end;
    alike(s, oh, &begin, &end);
    for (int64_t i = 0, count; i < s->ow_count; i += count) {
        count = i == begin && begin < end ? end - begin : 1;
        join(s, oh, places, i, count, rows);
    }
}

static void run_tile(sweep *s) {
    int64_t begin = s->tiling->tiles->rows_begin, end = s->tiling->tiles->rows_end,
            last = s->oh + s->oh_count;
    take_rows(s);
    for (int64_t oh = s->oh, places; oh < last; oh += places) {
        places = begin <= oh && oh < end ? eddy_min_i64(end, last) - oh : 1;
        join_rows(s, oh, places);
    }
}

void eddy_pool_tiling_run(const eddy_pool_tiling *t, int64_t n, int64_t c, int64_t oh,
                          int64_t count) {
    sweep s;
    const eddy_pool_axis *height = t->height;
    s.tiling = t;
    s.n = n;
    s.c = c;
    for (s.oh = oh; s.oh < oh + count; s.oh += s.oh_count) {
        s.oh_count = eddy_min_i64(t->tiles->rows, oh + count - s.oh);
        s.row = eddy_max_i64(s.oh * height->stride - height->padding, 0);
        int64_t end = (s.oh + s.oh_count - 1) * height->stride - height->padding + reach(height);
        s.rows = eddy_min_i64(height->in, end) - s.row;
        for (s.ow = 0; s.ow < t->width->out; s.ow += s.ow_count) {
            s.ow_count = eddy_min_i64(t->tiles->columns, t->width->out - s.ow);
            run_tile(&s);
        }
    }
}
