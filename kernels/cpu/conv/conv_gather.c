#include <kernels/cpu/conv/conv_gather.h>

#include <kernels/cpu/chunk.h>
#include <kernels/cpu/walk.h>
#include <string.h>

bool eddy_conv_is_last(const eddy_conv_image *image) {
    return image->channels > 1 && image->channel_stride == 1;
}

static void *element(const eddy_conv_tile *tile, int64_t channel, int64_t row, int64_t column) {
    const eddy_conv_image *image = tile->image;
    return eddy_chunk_at(image->data, image->dtype,
                         tile->number * image->batch_stride +
                             (tile->channel + channel) * image->channel_stride +
                             row * image->row_stride + column * image->column_stride);
}

/* Consecutive places of a tile in one row of the phase. */
typedef struct run {
    int64_t at; /* index within the tile */
    int64_t row, column, count;
} run;

static run first_run(const eddy_conv_tile *tile) {
    int64_t width = tile->columns->count;
    run r = {0};
    if (tile->first > 0) {
        r.row = tile->first / width;
        r.column = tile->first % width;
    }
    r.count = eddy_min_i64(width - r.column, tile->count);
    return r;
}

static bool next_run(const eddy_conv_tile *tile, run *r) {
    r->at += r->count;
    r->row++;
    r->column = 0;
    r->count = eddy_min_i64(tile->columns->count, tile->count - r->at);
    return r->count > 0;
}

/* ---- columns ---- */

/* Which places read inside the image, along one axis at one tap: from `low` to below `high`. Place p reads index p * reach
 * + offset. */
typedef struct sight {
    int64_t offset, low, high;
} sight;

/* `b` is 1 in most calls, and a division takes longer than the rest of this function. */
static int64_t divide_up(int64_t a, int64_t b) {
    if (a <= 0 || b == 1)
        return eddy_max_i64(0, a);
    return (a + b - 1) / b;
}

static sight see(const eddy_conv_axis *axis, int64_t tap, int64_t size) {
    sight s = {.offset = axis->offset + tap * axis->offset_step};
    s.low = divide_up(-s.offset, axis->reach);
    s.high = eddy_max_i64(s.low, divide_up(size - s.offset, axis->reach));
    return s;
}

/* The count is 0 in most calls: windows rarely read beyond the edges. */
static inline void clear(char *to, int64_t count, size_t bytes) {
    if (count > 0)
        memset(to, 0, (size_t)count * bytes);
}

/* One row of a [depth, places] matrix: one channel at one tap. */
static void gather_row(const eddy_conv_tile *tile, eddy_dtype compute, int64_t channel,
                       const sight *rows, const sight *columns, char *to) {
    const eddy_conv_image *image = tile->image;
    size_t bytes = eddy_dtype_bytes(compute);
    run r = first_run(tile);
    do {
        char *at = to + (size_t)r.at * bytes;
        int64_t low = eddy_max_i64(r.column, eddy_min_i64(columns->low, r.column + r.count));
        int64_t high = eddy_max_i64(low, eddy_min_i64(columns->high, r.column + r.count));
        if (r.row < rows->low || r.row >= rows->high)
            high = low;
        clear(at, low - r.column, bytes);
        if (high > low)
            eddy_chunk_load(compute, at + (size_t)(low - r.column) * bytes, image->dtype,
                            element(tile, channel, r.row * tile->rows->reach + rows->offset,
                                    low * tile->columns->reach + columns->offset),
                            tile->columns->reach * image->column_stride, high - low);
        clear(at + (size_t)(high - r.column) * bytes, r.column + r.count - high, bytes);
    } while (next_run(tile, &r));
}

static void gather_rows(const eddy_conv_tile *tile, eddy_dtype compute, char *to) {
    const eddy_conv_image *image = tile->image;
    int64_t bytes = (int64_t)eddy_dtype_bytes(compute) * tile->count;
    for (int64_t c = 0; c < tile->channels; c++)
        for (int64_t i = 0; i < tile->rows->tap_count; i++) {
            sight rows = see(tile->rows, i, image->height);
            for (int64_t j = 0; j < tile->columns->tap_count; j++, to += bytes) {
                sight columns = see(tile->columns, j, image->width);
                gather_row(tile, compute, c, &rows, &columns, to);
            }
        }
}

/* One tap of a [places, depth] matrix: all channels at each place. */
static void gather_tap(const eddy_conv_tile *tile, eddy_dtype compute, const sight *rows,
                       const sight *columns, char *to, int64_t stride) {
    const eddy_conv_image *image = tile->image;
    int64_t bytes = (int64_t)eddy_dtype_bytes(compute);
    run r = first_run(tile);
    do {
        bool is_row = r.row >= rows->low && r.row < rows->high;
        for (int64_t i = 0; i < r.count; i++) {
            int64_t column = r.column + i;
            char *at = to + (r.at + i) * stride * bytes;
            if (is_row && column >= columns->low && column < columns->high)
                eddy_chunk_load(compute, at, image->dtype,
                                element(tile, 0, r.row * tile->rows->reach + rows->offset,
                                        column * tile->columns->reach + columns->offset),
                                image->channel_stride, tile->channels);
            else
                memset(at, 0, (size_t)(tile->channels * bytes));
        }
    } while (next_run(tile, &r));
}

static void gather_last(const eddy_conv_tile *tile, eddy_dtype compute, char *to, int64_t stride) {
    const eddy_conv_image *image = tile->image;
    int64_t bytes = (int64_t)eddy_dtype_bytes(compute);
    for (int64_t i = 0; i < tile->rows->tap_count; i++) {
        sight rows = see(tile->rows, i, image->height);
        for (int64_t j = 0; j < tile->columns->tap_count; j++, to += tile->channels * bytes) {
            sight columns = see(tile->columns, j, image->width);
            gather_tap(tile, compute, &rows, &columns, to, stride);
        }
    }
}

/* The places of the image that windows of one element read. False if windows have more elements, or if any is outside the
 * image. */
static bool see_places(const eddy_conv_axis *axis, int64_t size, eddy_conv_axis *seen) {
    *seen = (eddy_conv_axis){.start = axis->offset, .step = axis->reach, .count = axis->count};
    return axis->tap_count == 1 && axis->offset >= 0 &&
           axis->offset + (axis->count - 1) * axis->reach < size;
}

eddy_conv_matrix eddy_conv_columns(const eddy_conv_tile *tile, eddy_dtype compute, void *buffer) {
    eddy_conv_axis rows, columns;
    eddy_conv_matrix matrix = {.data = buffer, .is_last = eddy_conv_is_last(tile->image)};
    if (see_places(tile->rows, tile->image->height, &rows) &&
        see_places(tile->columns, tile->image->width, &columns)) {
        eddy_conv_tile seen = *tile;
        seen.rows = &rows;
        seen.columns = &columns;
        if (eddy_conv_places(&seen, compute, &matrix))
            return matrix;
    }
    int64_t depth = tile->rows->tap_count * tile->columns->tap_count * tile->channels;
    matrix.stride = eddy_max_i64(1, matrix.is_last ? depth : tile->count);
    if (matrix.is_last)
        gather_last(tile, compute, buffer, matrix.stride);
    else
        gather_rows(tile, compute, buffer);
    return matrix;
}

/* ---- places ---- */

/* Stride between consecutive places of the phase, in elements. False if it is not constant. */
static bool place_stride(const eddy_conv_tile *tile, int64_t *stride) {
    int64_t row = tile->image->row_stride * tile->rows->step,
            column = tile->image->column_stride * tile->columns->step;
    *stride = tile->columns->count == 1 ? row : column;
    return tile->rows->count == 1 || tile->columns->count == 1 ||
           row == column * tile->columns->count;
}

bool eddy_conv_places(const eddy_conv_tile *tile, eddy_dtype compute, eddy_conv_matrix *matrix) {
    const eddy_conv_image *image = tile->image;
    bool is_last = eddy_conv_is_last(image);
    int64_t stride, across = is_last ? tile->channels : tile->count,
                    down = is_last ? tile->count : tile->channels;
    if (image->dtype != compute || !place_stride(tile, &stride))
        return false;
    if (!is_last && tile->count > 1 && stride != 1)
        return false;
    int64_t apart = is_last ? stride : image->channel_stride;
    if (down == 1)
        apart = across;
    if (apart < across)
        return false;
    int64_t width = tile->columns->count;
    matrix->data = element(tile, 0, tile->rows->start + tile->first / width * tile->rows->step,
                           tile->columns->start + tile->first % width * tile->columns->step);
    matrix->stride = eddy_max_i64(1, apart);
    matrix->is_last = is_last;
    return true;
}

eddy_conv_matrix eddy_conv_buffer(const eddy_conv_tile *tile, void *buffer) {
    bool is_last = eddy_conv_is_last(tile->image);
    return (eddy_conv_matrix){.data = buffer,
                              .stride = eddy_max_i64(1, is_last ? tile->channels : tile->count),
                              .is_last = is_last};
}

/* Copies between the places of the image and a matrix, in either direction. */
static void move(const eddy_conv_tile *tile, eddy_dtype compute, const eddy_conv_matrix *matrix,
                 bool stores) {
    const eddy_conv_image *image = tile->image;
    bool is_last = matrix->is_last;
    int64_t column_stride = tile->columns->step * image->column_stride;
    run r = first_run(tile);
    do {
        /* A line is all channels of one place, or a run of places of one channel. */
        int64_t lines = is_last ? r.count : tile->channels,
                count = is_last ? tile->channels : r.count;
        int64_t stride = is_last ? image->channel_stride : column_stride;
        int64_t row = tile->rows->start + r.row * tile->rows->step;
        for (int64_t line = 0; line < lines; line++) {
            int64_t place = r.column + (is_last ? line : 0);
            void *there = element(tile, is_last ? 0 : line, row,
                                  tile->columns->start + place * tile->columns->step);
            void *here = eddy_chunk_at(matrix->data, compute,
                                       is_last ? (r.at + line) * matrix->stride
                                               : line * matrix->stride + r.at);
            if (stores)
                eddy_chunk_store(image->dtype, there, stride, compute, here, count);
            else
                eddy_chunk_load(compute, here, image->dtype, there, stride, count);
        }
    } while (next_run(tile, &r));
}

void eddy_conv_load(const eddy_conv_tile *tile, eddy_dtype compute,
                    const eddy_conv_matrix *matrix) {
    move(tile, compute, matrix, false);
}

void eddy_conv_store(const eddy_conv_tile *tile, eddy_dtype compute,
                     const eddy_conv_matrix *matrix) {
    move(tile, compute, matrix, true);
}
