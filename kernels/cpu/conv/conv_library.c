#include <kernels/cpu/conv/conv_library.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/conv/conv_gather.h>
#include <kernels/cpu/isa.h>
#include <kernels/cpu/walk.h>
#include <kernels/prepared.h>
#include <string.h>

/* Slices are divided among parts, each with its own buffers. */
#define PARTS_MAX 32
/* Multiply-adds of a slice, at least. */
#define SLICE_WORK 4e6
/* Multiply-adds of a call, at least: for fewer, the library's overhead exceeds the work. */
#define CALL_WORK 2e5
/* The same if windows slide along one row that alone has CALL_WORK: our own code gathers it in long runs. */
#define ROW_WORK 1e6
/* Bytes of all buffers of a call: images are cut into rows where they can be, and parts are few, but for PARTS_LEAST. */
#define BUFFERS_BYTES ((size_t)64 << 20)
#define PARTS_LEAST 4
/* Winograd's algorithm computes tiles of 4 x 4 places: tiles of a slice, and of a call, at least; rows, columns and channels of images. */
#define WINOGRAD_TILE 4
#define WINOGRAD_SLICE 256
#define WINOGRAD_CALL 64
#define WINOGRAD_SIDE 7
#define WINOGRAD_CHANNELS 32
/* Up to this many elements per column of a row-major result, our own code is used. */
#define DEPTH_LEAST 16
/* Floats of a vector, at most. */
#define LANES_MOST 16

/* A request, with its images in the roles x and y (conv_slice.h). */
typedef struct convolving {
    const eddy_conv_plan *plan;
    eddy_conv_image x, y;
    eddy_conv_direction direction;
    const eddy_op_view *bias;
    bool is_winograd;
} convolving;

static void init(convolving *work, const eddy_conv_request *request) {
    const eddy_conv_plan *plan = request->plan;
    bool is_back = request->direction == EDDY_CONV_DATA;
    work->plan = plan;
    work->x = is_back ? plan->to : plan->from;
    work->y = is_back ? plan->from : plan->to;
    work->direction = request->direction;
    work->bias = request->bias;
    work->is_winograd = request->is_winograd;
}

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* ---- prepared objects ---- */

/* The stride of a dim of size 1 has no meaning and may have any value: it is set to the stride of an outermost dim. False
 * if an element repeats or a dim runs backwards. */
static bool settle(int32_t rank, const int64_t *dims, int64_t *strides) {
    int64_t outermost = 1;
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] > 1 && strides[d] < 1)
            return false;
        if (dims[d] > 1)
            outermost = eddy_max_i64(outermost, dims[d] * strides[d]);
    }
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] == 1)
            strides[d] = outermost;
    return true;
}

/* *is_last: whether the image is channels-last without gaps, ignoring the strides of dims of size 1. The strides then are
 * those of such an image. */
static bool strides_of(const eddy_conv_image *image, int64_t images, int64_t rows,
                       eddy_conv_strides *strides, bool *is_last) {
    const int64_t dims[] = {images, rows, image->width, image->channels};
    int64_t lies[] = {image->batch_stride, image->row_stride, image->column_stride,
                      image->channel_stride},
            own[4];
    *is_last = true;
    for (int32_t d = 3; d >= 0; d--) {
        own[d] = d == 3 ? 1 : own[d + 1] * dims[d + 1];
        *is_last &= dims[d] == 1 || lies[d] == own[d];
    }
    if (!*is_last && !settle(4, dims, lies))
        return false;
    const int64_t *chosen = *is_last ? own : lies;
    *strides = (eddy_conv_strides){
        .image = chosen[0], .channel = chosen[3], .row = chosen[1], .column = chosen[2]};
    return true;
}

/* A part of an image as the library sees it: if it is staged, f32 in the order of the image, without gaps. */
static eddy_conv_image seen(const eddy_conv_library *library, const eddy_conv_image *image,
                            int64_t rows) {
    eddy_conv_image stage = *image;
    if (!library->stages)
        return stage;
    bool is_last = eddy_conv_is_last(image);
    stage.dtype = EDDY_F32;
    stage.height = rows;
    stage.column_stride = is_last ? image->channels : 1;
    stage.row_stride = image->width * stage.column_stride;
    stage.channel_stride = is_last ? 1 : rows * image->width;
    stage.batch_stride = image->channels * rows * image->width;
    return stage;
}

/* Weights as [group, y's channel, x's channel, row, column]; y is the result of the forward direction. */
#define WEIGHT_RANK 5

static void weight_dims(const convolving *work, int64_t *dims, int64_t *strides) {
    const eddy_conv_weight *w = &work->plan->weight;
    bool is_back = work->direction == EDDY_CONV_DATA;
    const int64_t all[] = {work->plan->groups, work->y.channels / work->plan->groups,
                           work->x.channels / work->plan->groups, w->height, w->width};
    const int64_t lies[] = {w->group_stride, is_back ? w->from_stride : w->to_stride,
                            is_back ? w->to_stride : w->from_stride, w->row_stride,
                            w->column_stride};
    memcpy(dims, all, sizeof(all));
    memcpy(strides, lies, sizeof(lies));
}

static void make_dense(int32_t rank, const int64_t *dims, int64_t *strides) {
    int64_t step = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= dims[d];
    }
}

/* Of the weights as the library sees them: staged ones are dense. */
static bool weight_strides(const convolving *work, const eddy_conv_library *library,
                           int64_t *strides) {
    int64_t dims[WEIGHT_RANK];
    weight_dims(work, dims, strides);
    if (library->stages)
        make_dense(WEIGHT_RANK, dims, strides);
    return settle(WEIGHT_RANK, dims, strides);
}

static bool key_of(const convolving *work, const eddy_conv_library *library,
                   const eddy_conv_slice *slice, eddy_conv_key *key) {
    const eddy_conv_window *rows = &work->plan->rows, *columns = &work->plan->columns;
    memset(key, 0, sizeof(*key));
    key->direction = work->direction;
    key->has_bias = work->bias != NULL && work->direction == EDDY_CONV_FORWARD;
    key->is_winograd = work->is_winograd;
    key->images = slice->images;
    key->groups = work->plan->groups;
    key->x_channels = work->x.channels;
    key->y_channels = work->y.channels;
    key->x_rows = slice->x_rows;
    key->y_rows = slice->y_rows;
    key->x_columns = work->x.width;
    key->y_columns = work->y.width;
    key->w_rows = rows->size;
    key->w_columns = columns->size;
    key->row_stride = rows->stride;
    key->column_stride = columns->stride;
    key->row_dilation = rows->dilation;
    key->column_dilation = columns->dilation;
    key->top = slice->top;
    key->bottom = slice->bottom;
    key->left = columns->padding;
    key->right = (work->y.width - 1) * columns->stride + columns->dilation * (columns->size - 1) +
                 1 - work->x.width - key->left;
    if (library->prepared[0]) {
        key->w_number = library->prepared[0]->number;
        key->w_order = &library->prepared[0]->w_own;
    }
    bool x_is_last, y_is_last, is_data = work->direction == EDDY_CONV_DATA;
    eddy_conv_image x = seen(library, &work->x, slice->x_rows),
                    y = seen(library, &work->y, slice->y_rows);
    if (!weight_strides(work, library, key->w_strides) ||
        !strides_of(&x, slice->images, slice->x_rows, &key->x, &x_is_last) ||
        !strides_of(&y, slice->images, slice->y_rows, &key->y, &y_is_last))
        return false;
    /* An image of one channel has both orders. add_bias needs a channels-last result. */
    x_is_last &= work->x.channels > 1;
    y_is_last &= work->y.channels > 1;
    key->is_free = work->is_winograd || (!x_is_last && !y_is_last && (!work->bias || !is_data));
    return true;
}

static void reserve(size_t *bytes, size_t wanted) {
    if (rounded(wanted) > *bytes)
        *bytes = rounded(wanted);
}

static size_t stage_bytes(const eddy_conv_image *image, int64_t images, int64_t rows) {
    return (size_t)(images * image->channels * rows * image->width) * sizeof(float);
}

/* Prepares the objects for slices of this kind. */
static eddy_status prepare_kind(const convolving *work, eddy_conv_library *library, int32_t kind,
                                const eddy_conv_slice *slice) {
    eddy_conv_key key;
    if (!key_of(work, library, slice, &key))
        return EDDY_UNSUPPORTED;
    eddy_status status = eddy_conv_prepared_acquire(&key, &library->prepared[kind]);
    if (status != EDDY_OK)
        return status;
    const eddy_conv_prepared *p = library->prepared[kind];
    reserve(&library->x_bytes, p->x_bytes);
    reserve(&library->y_bytes, p->y_bytes);
    reserve(&library->w_bytes, p->w_bytes);
    reserve(&library->scratch_bytes, p->scratch_bytes);
    if (library->stages) {
        reserve(&library->x_stage_bytes, stage_bytes(&work->x, slice->images, slice->x_rows));
        reserve(&library->y_stage_bytes, stage_bytes(&work->y, slice->images, slice->y_rows));
    }
    return EDDY_OK;
}

/* Row-major images use our own code if the convolution is a matrix product, or hardly more work than writing the result:
 * converting the layout of the images would cost more. */
static bool is_product(const convolving *work) {
    const eddy_conv_plan *plan = work->plan;
    const eddy_conv_window *rows = &plan->rows, *columns = &plan->columns;
    if (eddy_conv_is_last(&work->x) || eddy_conv_is_last(&work->y) || plan->groups > 1)
        return false;
    if (work->direction == EDDY_CONV_FORWARD &&
        plan->from_channels * rows->size * columns->size <= DEPTH_LEAST)
        return true;
    return rows->size == 1 && columns->size == 1 && rows->stride == 1 && columns->stride == 1 &&
           rows->padding == 0 && columns->padding == 0;
}

static bool is_long_row(const convolving *work) {
    const eddy_conv_plan *plan = work->plan;
    return work->direction == EDDY_CONV_FORWARD && work->y.height == 1 && plan->rows.size == 1 &&
           plan->columns.stride == 1 && !eddy_conv_is_last(&work->x) &&
           !eddy_conv_is_last(&work->y) &&
           eddy_conv_plan_work(plan) >= CALL_WORK * (double)work->y.batch;
}

static int64_t winograd_tiles(const convolving *work) {
    const eddy_conv_image *to = &work->plan->to;
    return to->batch * ((to->height + WINOGRAD_TILE - 1) / WINOGRAD_TILE) *
           ((to->width + WINOGRAD_TILE - 1) / WINOGRAD_TILE);
}

/* What Winograd's algorithm is for, and where the library's is faster than its direct one. */
static bool is_for_winograd(const convolving *work) {
    const eddy_conv_window *rows = &work->plan->rows, *columns = &work->plan->columns;
    return work->x.dtype == EDDY_F32 && work->plan->groups == 1 && rows->size == 3 &&
           columns->size == 3 && rows->stride == 1 && columns->stride == 1 && rows->dilation == 1 &&
           columns->dilation == 1 && !(work->bias && work->direction == EDDY_CONV_DATA) &&
           work->x.channels >= WINOGRAD_CHANNELS && work->y.channels >= WINOGRAD_CHANNELS &&
           eddy_min_i64(work->plan->to.height, work->plan->to.width) >= WINOGRAD_SIDE &&
           winograd_tiles(work) >= WINOGRAD_CALL;
}

/* oneDNN's gradient of a weight of 1 x 1, if windows stride over channels-last images that have fewer channels than a vector has floats, writes beyond its workspace (issue 6035 of oneDNN). */
static bool is_overrun(const convolving *work) {
    const eddy_conv_window *rows = &work->plan->rows, *columns = &work->plan->columns;
    return work->direction == EDDY_CONV_WEIGHT && rows->size == 1 && columns->size == 1 &&
           (rows->stride > 1 || columns->stride > 1) &&
           work->x.channels / work->plan->groups < LANES_MOST;
}

static bool is_served(const convolving *work) {
    eddy_dtype dtype = work->x.dtype;
    return !is_overrun(work) && eddy_isa_chosen() != EDDY_ISA_PORTABLE &&
           (dtype == EDDY_F32 || dtype == EDDY_BF16 || dtype == EDDY_F16) &&
           eddy_conv_plan_work(work->plan) >= (is_long_row(work) ? ROW_WORK : CALL_WORK) &&
           !is_product(work);
}

static void cut_slices(const convolving *work, int64_t most, eddy_conv_cut *cut) {
    double fit = work->is_winograd ? (double)(winograd_tiles(work) / WINOGRAD_SLICE)
                                   : eddy_conv_plan_work(work->plan) / SLICE_WORK;
    *cut = (eddy_conv_cut){.direction = work->direction,
                           .rows = work->plan->rows,
                           .batch = work->plan->from.batch,
                           .x_height = work->x.height,
                           .y_height = work->y.height};
    int64_t slices = fit < (double)most ? (int64_t)fit : most;
    /* Rows of tiles would be cut. */
    if (work->is_winograd)
        slices = eddy_min_i64(slices, cut->batch);
    eddy_conv_cut_into(cut, slices);
}

static eddy_status prepare_kinds(const convolving *work, eddy_conv_library *library) {
    library->x_bytes = library->y_bytes = library->w_bytes = library->scratch_bytes = 0;
    library->x_stage_bytes = library->y_stage_bytes = 0;
    eddy_conv_slice like[EDDY_CONV_KINDS];
    eddy_status status = EDDY_OK;
    library->kinds = eddy_conv_kinds_of(&library->cut, like);
    for (int32_t kind = 0; kind < library->kinds.count && status == EDDY_OK; kind++)
        status = prepare_kind(work, library, kind, &like[kind]);
    if (status != EDDY_OK)
        eddy_conv_library_end(library);
    return status;
}

static size_t part_bytes(const eddy_conv_library *library) {
    return library->x_bytes + library->y_bytes + library->x_stage_bytes + library->y_stage_bytes +
           library->scratch_bytes;
}

static int64_t parts_at_most(const eddy_conv_library *library) {
    return eddy_min_i64(PARTS_MAX, library->cut.slices);
}

static size_t bytes_of_parts(const eddy_conv_library *library) {
    return (size_t)parts_at_most(library) * part_bytes(library);
}

/* Cuts each image, and prepares what is needed for slices of rows. Images that are cut already are cut by what a slice takes, not by what the image does: their slices would become
 * thin, and windows overlap. */
static eddy_status cut_rows_too(const convolving *work, eddy_conv_library *library) {
    size_t of_each = part_bytes(library) / (size_t)library->cut.images_each;
    int64_t slices = (int64_t)(of_each / (BUFFERS_BYTES / PARTS_MAX)) + 1;
    eddy_conv_library_end(library);
    memset(library->prepared, 0, sizeof(library->prepared));
    eddy_conv_cut_rows(&library->cut, eddy_max_i64(slices, library->cut.row_slices));
    return prepare_kinds(work, library);
}

/* For requests that is_served accepts. */
static eddy_status conv_library_prepare(const convolving *work, eddy_conv_library *library,
                                        int64_t most) {
    bool is_weight = work->direction == EDDY_CONV_WEIGHT;
    *library =
        (eddy_conv_library){.stages = work->x.dtype != EDDY_F32, .is_winograd = work->is_winograd};
    cut_slices(work, most, &library->cut);
    eddy_status status = prepare_kinds(work, library);
    if (status != EDDY_OK)
        return status;
    if (!is_weight && !work->is_winograd && bytes_of_parts(library) > BUFFERS_BYTES)
        status = cut_rows_too(work, library);
    if (status != EDDY_OK)
        return status;
    library->bias_bytes = work->bias ? rounded((size_t)work->plan->to.channels * sizeof(float)) : 0;
    if (library->stages && !is_weight)
        library->w_stage_bytes =
            rounded((size_t)eddy_conv_plan_weight_count(work->plan) * sizeof(float));
    library->part_bytes = part_bytes(library) + (is_weight ? library->w_bytes : 0);
    library->parts = eddy_max_i64(work->is_winograd ? 1 : PARTS_LEAST,
                                  (int64_t)(BUFFERS_BYTES / (library->part_bytes + 1)));
    library->parts = eddy_min_i64(library->parts, parts_at_most(library));
    library->workspace_bytes = library->bias_bytes + library->w_stage_bytes +
                               (is_weight ? 0 : library->w_bytes) +
                               (size_t)library->parts * library->part_bytes;
    return EDDY_OK;
}

void eddy_conv_library_end(const eddy_conv_library *library) {
    for (int32_t i = 0; i < EDDY_CONV_KINDS; i++)
        eddy_prepared_release(library->prepared[i]);
}

/* ---- running ---- */

typedef struct run {
    const eddy_conv_library *library;
    const eddy_kernel_call *call;
    convolving work;
    char *workspace, *buffers;
    void *weights; /* in the library's order; not for EDDY_CONV_WEIGHT */
    char *sums;    /* EDDY_CONV_WEIGHT: a gradient of the weight in f32 for each slice */
    size_t sum_bytes;
} run;

/* `primitive` is NULL if the order is right already. */
static bool reorder(dnnl_primitive_t primitive, const eddy_dnnl_turn *turn,
                    const eddy_dnnl_desc *from, void *source, const eddy_dnnl_desc *to,
                    void *target) {
    eddy_dnnl_call call = {.is_good = true};
    if (!primitive)
        return true;
    eddy_dnnl_give(&call, DNNL_ARG_FROM, from, source);
    eddy_dnnl_give(&call, DNNL_ARG_TO, to, target);
    return eddy_dnnl_execute(&call, primitive, turn);
}

static bool convolve(const run *r, const eddy_conv_prepared *p, const eddy_dnnl_turn *turn, void *x,
                     void *y, void *w, void *scratch) {
    static const int names[][3] = {
        [EDDY_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS},
        [EDDY_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS},
        [EDDY_CONV_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
    };
    eddy_dnnl_call call = {.is_good = true};
    eddy_dnnl_give(&call, names[r->work.direction][0], &p->x_own, x);
    eddy_dnnl_give(&call, names[r->work.direction][1], &p->y_own, y);
    eddy_dnnl_give(&call, names[r->work.direction][2], &p->w_own, w);
    eddy_dnnl_give(&call, DNNL_ARG_SCRATCHPAD, &p->scratch, scratch);
    if (r->work.bias && r->work.direction == EDDY_CONV_FORWARD)
        eddy_dnnl_give(&call, DNNL_ARG_BIAS, &p->bias, r->workspace);
    return eddy_dnnl_execute(&call, p->convolution, turn);
}

/* Adds the biases to the result of a transposed convolution, which is in the library's order. */
static void add_bias(const convolving *work, const eddy_conv_slice *slice, float *x,
                     const float *bias) {
    int64_t channels = work->x.channels, pixels = slice->images * slice->x_rows * work->x.width;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c++)
            x[i * channels + c] += bias[c];
}

static void *rows_of(const eddy_conv_image *image, int64_t number, int64_t row) {
    return eddy_chunk_at(image->data, image->dtype,
                         number * image->batch_stride + row * image->row_stride);
}

typedef enum stage_way { INTO_STAGE, OUT_OF_STAGE } stage_way;

/* Copies between elements at `data` and a stage, which has them dense in the order of `dims`, in f32. Dims that lie like one are one run. */
static void move_stage(stage_way way, int32_t rank, const int64_t *dims, const int64_t *strides,
                       eddy_dtype dtype, const void *data, char *stage) {
    eddy_walk walk;
    eddy_walk_cursor cursor;
    eddy_walk_init(&walk, rank, dims);
    eddy_walk_add(&walk, strides, 1);
    eddy_walk_collapse(&walk);
    eddy_walk_seek(&walk, &cursor, 0);
    int64_t stride = eddy_walk_inner_stride(&walk, 0), left = eddy_walk_count(&walk);
    for (int64_t count; left > 0; left -= count) {
        count = eddy_walk_run(&walk, &cursor);
        void *at = eddy_chunk_at(data, dtype, cursor.offsets[0]);
        if (way == INTO_STAGE)
            eddy_chunk_load(EDDY_F32, stage, dtype, at, stride, count);
        else
            eddy_chunk_store(dtype, at, stride, EDDY_F32, stage, count);
        stage += (size_t)count * sizeof(float);
        eddy_walk_advance(&walk, &cursor, count);
    }
}

/* The slice's rows of x or y; the stage has them in the image's order. */
static void move_rows(stage_way way, const convolving *work, const eddy_conv_slice *slice,
                      bool is_x, char *stage) {
    const eddy_conv_image *image = is_x ? &work->x : &work->y;
    int64_t rows = is_x ? slice->x_rows : slice->y_rows;
    const int64_t row_major[] = {slice->images, image->channels, rows, image->width},
                  last[] = {slice->images, rows, image->width, image->channels};
    const int64_t lies_row_major[] = {image->batch_stride, image->channel_stride, image->row_stride,
                                      image->column_stride},
                  lies_last[] = {image->batch_stride, image->row_stride, image->column_stride,
                                 image->channel_stride};
    bool is_last = eddy_conv_is_last(image);
    move_stage(way, 4, is_last ? last : row_major, is_last ? lies_last : lies_row_major,
               image->dtype, rows_of(image, slice->image, is_x ? slice->x_row : slice->y_row),
               stage);
}

/* Adds biases, and converts the result to the order of the output. */
static bool finish_slice(const run *r, const eddy_conv_slice *slice, const eddy_conv_prepared *p,
                         const eddy_dnnl_turn *turn, void *x, void *x_plain, void *y,
                         void *y_plain) {
    if (r->work.direction == EDDY_CONV_FORWARD)
        return reorder(p->y_reorder, turn, &p->y_own, y, &p->y_plain, y_plain);
    if (r->work.bias)
        add_bias(&r->work, slice, x, (const float *)(const void *)r->workspace);
    return reorder(p->x_reorder, turn, &p->x_own, x, &p->x_plain, x_plain);
}

static bool conv_library_run_slice(const run *r, int64_t number, char *buffers,
                                   const eddy_dnnl_turn *turn) {
    const eddy_conv_library *library = r->library;
    const convolving *work = &r->work;
    eddy_conv_slice slice = eddy_conv_slice_of(&library->cut, number);
    const eddy_conv_prepared *p =
        library->prepared[eddy_conv_kind_of(&library->cut, &library->kinds, number)];
    eddy_conv_direction direction = work->direction;
    char *x_stage = buffers + library->x_bytes + library->y_bytes,
         *y_stage = x_stage + library->x_stage_bytes, *scratch = y_stage + library->y_stage_bytes;
    void *x_plain = library->stages ? x_stage : rows_of(&work->x, slice.image, slice.x_row),
         *y_plain = library->stages ? y_stage : rows_of(&work->y, slice.image, slice.y_row);
    void *x = p->x_reorder ? buffers : x_plain,
         *y = p->y_reorder ? buffers + library->x_bytes : y_plain;
    if (library->stages && direction != EDDY_CONV_DATA)
        move_rows(INTO_STAGE, work, &slice, true, x_stage);
    if (library->stages && direction != EDDY_CONV_FORWARD)
        move_rows(INTO_STAGE, work, &slice, false, y_stage);
    if (direction != EDDY_CONV_DATA &&
        !reorder(p->x_reorder, turn, &p->x_plain, x_plain, &p->x_own, x))
        return false;
    if (direction != EDDY_CONV_FORWARD &&
        !reorder(p->y_reorder, turn, &p->y_plain, y_plain, &p->y_own, y))
        return false;
    if (direction == EDDY_CONV_WEIGHT) {
        char *sum = r->sums + (size_t)number * r->sum_bytes;
        char *w = p->w_reorder ? scratch + library->scratch_bytes : sum;
        return convolve(r, p, turn, x, y, w, scratch) &&
               reorder(p->w_reorder, turn, &p->w_own, w, &p->w_plain, sum);
    }
    if (!convolve(r, p, turn, x, y, r->weights, scratch) ||
        !finish_slice(r, &slice, p, turn, x, x_plain, y, y_plain))
        return false;
    if (library->stages)
        move_rows(OUT_OF_STAGE, work, &slice, direction == EDDY_CONV_DATA,
                  direction == EDDY_CONV_DATA ? x_stage : y_stage);
    return true;
}

static void conv_library_run_parts(void *context, int64_t begin, int64_t end) {
    const run *r = context;
    int64_t slices = r->library->cut.slices, parts = r->library->parts;
    eddy_dnnl_turn turn;
    bool is_good = eddy_dnnl_turn_begin(&turn);
    for (int64_t part = begin; part < end; part++)
        for (int64_t i = part * slices / parts; i < (part + 1) * slices / parts; i++)
            is_good =
                is_good && conv_library_run_slice(
                               r, i, r->buffers + (size_t)part * r->library->part_bytes, &turn);
    eddy_dnnl_turn_end(&turn);
    if (!is_good)
        eddy_kernel_fail(r->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
}

/* Converts the weights to the library's order, once for all slices. */
static void pack_weights(run *r) {
    const eddy_conv_library *library = r->library;
    const eddy_conv_prepared *p = library->prepared[0];
    char *stage = r->workspace + library->bias_bytes, *packed = stage + library->w_stage_bytes;
    const eddy_conv_weight *weight = &r->work.plan->weight;
    void *plain = library->stages ? stage : weight->data;
    int64_t dims[WEIGHT_RANK], strides[WEIGHT_RANK];
    weight_dims(&r->work, dims, strides);
    if (library->stages)
        move_stage(INTO_STAGE, WEIGHT_RANK, dims, strides, weight->dtype, weight->data, stage);
    r->weights = p->w_reorder ? packed : plain;
    eddy_dnnl_turn turn;
    bool is_good = eddy_dnnl_turn_begin(&turn) &&
                   reorder(p->w_reorder, &turn, &p->w_plain, plain, &p->w_own, packed);
    eddy_dnnl_turn_end(&turn);
    if (!is_good)
        eddy_kernel_fail(r->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
}

void eddy_conv_library_run(const eddy_conv_library *library, const eddy_conv_request *request,
                           const eddy_kernel_call *call, void *workspace, void *sums,
                           size_t sum_bytes) {
    const eddy_op_view *bias = request->bias;
    bool is_weight = request->direction == EDDY_CONV_WEIGHT;
    run r = {.library = library,
             .call = call,
             .workspace = workspace,
             .sums = sums,
             .sum_bytes = sum_bytes};
    init(&r.work, request);
    r.buffers = r.workspace + library->bias_bytes + library->w_stage_bytes +
                (is_weight ? 0 : library->w_bytes);
    if (bias)
        eddy_chunk_load(EDDY_F32, workspace, bias->dtype, bias->data, bias->strides[0],
                        request->plan->to.channels);
    if (!is_weight)
        pack_weights(&r);
    if (library->parts > 1)
        call->team->parallel_for(call->team, library->parts, 1, conv_library_run_parts, &r);
    else
        conv_library_run_parts(&r, 0, 1);
}

/* ---- the start ---- */

static void start_with(const eddy_conv_request *request, void *sums, size_t sum_bytes) {
    convolving work;
    eddy_conv_library library;
    eddy_kernel_error error = {.position = INT64_MAX};
    const eddy_kernel_call call = {.error = &error};
    init(&work, request);
    if (conv_library_prepare(&work, &library, request->slices_most) != EDDY_OK)
        return;
    size_t needed = library.workspace_bytes + 64;
    char *workspace = eddy_memory_acquire(needed, EDDY_MEMORY_CACHE);
    if (workspace) {
        char *aligned = workspace + (64 - (uintptr_t)workspace % 64) % 64;
        eddy_conv_library_run(&library, request, &call, aligned, sums, sum_bytes);
        eddy_memory_release(workspace, needed, EDDY_MEMORY_CACHE);
    }
    eddy_conv_library_end(&library);
}

/* Prepares and runs the library's code for each of our uses once, so that its static objects are constructed now. */
static void start_one(eddy_conv_direction direction, bool is_last, bool is_winograd) {
    enum { SIDE = 8, CHANNELS = 16 };
    const int64_t image[] = {1, CHANNELS, SIDE, SIDE},
                  row_major[] = {CHANNELS * SIDE * SIDE, SIDE * SIDE, SIDE, 1};
    const int64_t channels_last[] = {CHANNELS * SIDE * SIDE, 1, SIDE * CHANNELS, CHANNELS};
    const int64_t *lies = is_last ? channels_last : row_major;
    const int64_t weight[] = {CHANNELS, CHANNELS, 3, 3}, dense[] = {CHANNELS * 9, 9, 3, 1};
    size_t bytes = CHANNELS * (SIDE * SIDE + CHANNELS * 9) * sizeof(float);
    eddy_conv_plan plan;
    eddy_attributes_conv attributes = {
        .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1};
    char *memory = eddy_memory_acquire(3 * bytes, EDDY_MEMORY_CACHE);
    if (!memory)
        return;
    memset(memory, 0, 3 * bytes);
    eddy_op_view x = {memory, image, lies, EDDY_F32, 4},
                 y = {memory + bytes, image, lies, EDDY_F32, 4};
    eddy_op_view w = {memory + 2 * bytes, weight, dense, EDDY_F32, 4};
    if (direction == EDDY_CONV_DATA)
        eddy_conv_plan_transposed(&plan, &y, &w, &x, &attributes);
    else
        eddy_conv_plan_forward(&plan, &x, &w, &y, &attributes);
    start_with(&(eddy_conv_request){.plan = &plan,
                                    .direction = direction,
                                    .slices_most = INT64_MAX,
                                    .is_winograd = is_winograd},
               memory + 2 * bytes, bytes);
    eddy_memory_release(memory, 3 * bytes, EDDY_MEMORY_CACHE);
}

static void conv_library_start(void) {
    for (int is_last = 0; is_last < 2; is_last++)
        for (int direction = EDDY_CONV_FORWARD; direction <= EDDY_CONV_WEIGHT; direction++)
            start_one((eddy_conv_direction)direction, is_last, false);
}

static void conv_library_start_winograd(void) {
    for (int direction = EDDY_CONV_FORWARD; direction <= EDDY_CONV_WEIGHT; direction++)
        start_one((eddy_conv_direction)direction, true, true);
}

/* ---- preparing ---- */

eddy_status eddy_conv_library_prepare(eddy_conv_library *library, const eddy_conv_request *request,
                                      bool *has_started_library) {
    static eddy_dnnl_start state = EDDY_DNNL_START, state_of_winograd = EDDY_DNNL_START;
    convolving work;
    init(&work, request);
    if (!is_served(&work) || (work.is_winograd && !is_for_winograd(&work)))
        return EDDY_UNSUPPORTED;
    eddy_status status = conv_library_prepare(&work, library, request->slices_most);
    if (status != EDDY_OUT_OF_MEMORY && eddy_dnnl_start_once(&state, conv_library_start))
        *has_started_library = true;
    if (status == EDDY_OK && work.is_winograd &&
        eddy_dnnl_start_once(&state_of_winograd, conv_library_start_winograd))
        *has_started_library = true;
    return status;
}
