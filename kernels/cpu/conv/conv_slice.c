#include <kernels/cpu/conv/conv_slice.h>

#include <base/assert.h>
#include <kernels/cpu/walk.h>

/* Enough slices for a team; with fewer images, the images are cut too. */
#define SLICES_GOOD 8

/* Distance from the window's first element to its last, inclusive. */
static int64_t span_of(const eddy_conv_window *window) {
    return window->dilation * (window->size - 1) + 1;
}

/* Rows of x that the windows of rows y_row .. of y read. */
static void see_rows(const eddy_conv_cut *cut, eddy_conv_slice *slice) {
    int64_t begin = slice->y_row * cut->rows.stride - cut->rows.padding;
    int64_t end = begin + (slice->y_rows - 1) * cut->rows.stride + span_of(&cut->rows);
    slice->top = eddy_max_i64(0, -begin);
    slice->bottom = eddy_max_i64(0, end - cut->x_height);
    slice->x_row = eddy_max_i64(0, begin);
    slice->x_rows = eddy_min_i64(cut->x_height, end) - slice->x_row;
}

/* Rows of y whose windows read rows x_row .. of x. Other rows that these windows read count as padding of the slice. */
static void find_rows(const eddy_conv_cut *cut, eddy_conv_slice *slice) {
    int64_t stride = cut->rows.stride, padding = cut->rows.padding, span = span_of(&cut->rows);
    int64_t before = slice->x_row + padding - span + stride,
            last = slice->x_row + slice->x_rows - 1 + padding;
    slice->y_row = before < stride ? 0 : before / stride;
    slice->y_rows = eddy_min_i64(cut->y_height, last / stride + 1) - slice->y_row;
    slice->top = slice->x_row - (slice->y_row * stride - padding);
    slice->bottom = (slice->y_row + slice->y_rows - 1) * stride - padding + span -
                    (slice->x_row + slice->x_rows);
}

eddy_conv_slice eddy_conv_slice_of(const eddy_conv_cut *cut, int64_t number) {
    int64_t first = number % cut->row_slices * cut->rows_each;
    eddy_conv_slice slice = {.image = number / cut->row_slices * cut->images_each};
    slice.images = eddy_min_i64(cut->images_each, cut->batch - slice.image);
    if (cut->row_slices == 1) {
        slice.x_rows = cut->x_height;
        slice.y_rows = cut->y_height;
        slice.top = cut->rows.padding;
        slice.bottom = (cut->y_height - 1) * cut->rows.stride + span_of(&cut->rows) -
                       cut->x_height - slice.top;
    } else if (cut->direction == EDDY_CONV_DATA) {
        slice.x_row = first;
        slice.x_rows = eddy_min_i64(cut->rows_each, cut->x_height - first);
        find_rows(cut, &slice);
    } else {
        slice.y_row = first;
        slice.y_rows = eddy_min_i64(cut->rows_each, cut->y_height - first);
        see_rows(cut, &slice);
    }
    return slice;
}

static bool is_alike(const eddy_conv_slice *a, const eddy_conv_slice *b) {
    return a->images == b->images && a->x_rows == b->x_rows && a->y_rows == b->y_rows &&
           a->top == b->top && a->bottom == b->bottom;
}

/* Whether every slice has rows, and the slices between the first and the last are alike. From slice to slice, the number
 * of rows clipped at an edge changes in one direction only. So if the second slice is like the last but one, all between
 * them are. */
static bool is_even(const eddy_conv_cut *cut) {
    eddy_conv_slice second = eddy_conv_slice_of(cut, 1),
                    before_last = eddy_conv_slice_of(cut, cut->row_slices - 2);
    if (cut->row_slices > 3 && !is_alike(&second, &before_last))
        return false;
    for (int64_t i = 0; i < cut->row_slices; i++) {
        eddy_conv_slice slice = eddy_conv_slice_of(cut, i);
        if (slice.x_rows < 1 || slice.y_rows < 1 || slice.top < 0)
            return false;
    }
    return true;
}

static void cut_rows(eddy_conv_cut *cut, int64_t wanted) {
    bool is_data = cut->direction == EDDY_CONV_DATA;
    int64_t height = is_data ? cut->x_height : cut->y_height;
    cut->rows_each = (height + wanted - 1) / wanted;
    if (is_data)
        cut->rows_each =
            (cut->rows_each + cut->rows.stride - 1) / cut->rows.stride * cut->rows.stride;
    cut->row_slices = (height + cut->rows_each - 1) / cut->rows_each;
    if (cut->row_slices > 1 && !is_even(cut))
        cut->row_slices = 1;
}

void eddy_conv_cut_into(eddy_conv_cut *cut, int64_t slices) {
    int64_t batch = cut->batch;
    slices = eddy_max_i64(1, slices);
    cut->row_slices = 1;
    cut->images_each = slices >= batch ? 1 : (batch + slices - 1) / slices;
    if (batch < SLICES_GOOD && slices > batch)
        cut_rows(cut, eddy_min_i64((SLICES_GOOD + batch - 1) / batch, slices / batch));
    cut->slices = (batch + cut->images_each - 1) / cut->images_each * cut->row_slices;
}

void eddy_conv_cut_rows(eddy_conv_cut *cut, int64_t slices) {
    cut->images_each = 1;
    cut_rows(cut, slices);
    cut->slices = cut->batch * cut->row_slices;
}

/* ---- kinds ---- */

/* A slice's kind depends on its number within its image or, if images are not cut, within the batch. */
int32_t eddy_conv_kind_of(const eddy_conv_cut *cut, const eddy_conv_kinds *kinds, int64_t number) {
    int64_t line = cut->row_slices > 1 ? cut->row_slices : cut->slices, at = number % line;
    return at == 0 ? 0 : at == line - 1 ? kinds->last : kinds->middle;
}

static int32_t add_kind(const eddy_conv_cut *cut, int64_t number, eddy_conv_kinds *kinds,
                        eddy_conv_slice *like) {
    eddy_conv_slice slice = eddy_conv_slice_of(cut, number);
    int32_t kind = 0;
    while (kind < kinds->count && !is_alike(&like[kind], &slice))
        kind++;
    if (kind == kinds->count)
        like[kinds->count++] = slice;
    return kind;
}

static bool kinds_check(const eddy_conv_cut *cut, const eddy_conv_kinds *kinds,
                        const eddy_conv_slice *like) {
    for (int64_t i = 0; i < cut->slices; i++) {
        eddy_conv_slice slice = eddy_conv_slice_of(cut, i);
        if (!is_alike(&slice, &like[eddy_conv_kind_of(cut, kinds, i)]))
            return false;
    }
    return true;
}

eddy_conv_kinds eddy_conv_kinds_of(const eddy_conv_cut *cut,
                                   eddy_conv_slice like[EDDY_CONV_KINDS]) {
    eddy_conv_kinds kinds = {.count = 0};
    add_kind(cut, 0, &kinds, like);
    if (cut->slices > 2)
        kinds.middle = add_kind(cut, 1, &kinds, like);
    kinds.last = add_kind(cut, cut->slices - 1, &kinds, like);
    EDDY_ASSERT(kinds_check(cut, &kinds, like));
    return kinds;
}
