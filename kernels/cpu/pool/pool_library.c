#include <kernels/cpu/pool/pool_library.h>

#include <base/atomic.h>
#include <base/memory.h>
#include <kernels/cpu/dnnl.h>
#include <kernels/cpu/isa.h>
#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/walk.h>
#include <kernels/prepared.h>
#include <string.h>

/* Channels that the library processes side by side, at most: row-major planes are passed to it as images of this many
 * channels. */
#define CHANNELS 16
/* Elements of x in a slice, about. They are checked and then pooled while they are in a core's cache. */
#define SLICE_ELEMENTS 65536
/* Elements that the windows of a call read, at least: for fewer, the library's overhead exceeds the work. */
#define CALL_WORK 20000
/* Elements of x in a slice, at most: offsets in the library's code have 32 bits. */
#define SLICE_MOST ((int64_t)1 << 28)
/* Slices are divided among parts, each with its own scratch memory. SCRATCH_GOOD limits the bytes of all scratch memory. */
#define PARTS_MAX 32
#define SCRATCH_GOOD ((size_t)8 << 20)

/* ---- prepared objects ---- */

typedef struct pool_key {
    int64_t algorithm, is_last;
    int64_t images, channels, x_rows, x_columns, y_rows, y_columns;
    int64_t w_rows, w_columns, row_stride, column_stride;
    int64_t top, bottom, left, right; /* padding */
} pool_key;

typedef struct pool_prepared {
    dnnl_primitive_t pooling;
    eddy_dnnl_desc x, y, scratch;
    int64_t x_count; /* elements */
    size_t scratch_bytes;
} pool_prepared;

/* If this returns false, *status says why. */
static bool plan(const pool_key *key, pool_prepared *p, dnnl_engine_t engine,
                 const_dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *made,
                 dnnl_status_t *status) {
    const dnnl_dims_t x = {key->images, key->channels, key->x_rows, key->x_columns};
    const dnnl_dims_t y = {key->images, key->channels, key->y_rows, key->y_columns};
    dnnl_format_tag_t order = key->is_last ? dnnl_nhwc : dnnl_nchw;
    const eddy_dnnl_pool wanted = {
        .algorithm = (dnnl_alg_kind_t)key->algorithm,
        .x = &p->x,
        .y = &p->y,
        .window = {key->w_rows, key->w_columns},
        .strides = {key->row_stride, key->column_stride},
        .before = {key->top, key->left},
        .after = {key->bottom, key->right},
    };
    return eddy_dnnl_goes(status, eddy_dnnl_desc_init_tag(&p->x, 4, x, dnnl_f32, order)) &&
           eddy_dnnl_goes(status, eddy_dnnl_desc_init_tag(&p->y, 4, y, dnnl_f32, order)) &&
           eddy_dnnl_goes(status, eddy_dnnl_plan_pool(&wanted, engine, attributes, made));
}

/* Rejects the library's plain loops, which are slower than ours. */
static dnnl_status_t look_at(const_dnnl_primitive_desc_t plan) {
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(plan, dnnl_query_impl_info_str, 0, &name);
    if (status != dnnl_success)
        return status;
    return !name || strstr(name, "ref") || strstr(name, "simple") ? dnnl_unimplemented
                                                                  : dnnl_success;
}

static void unmake(const eddy_prepared_kind *kind, void *prepared) {
    (void)kind;
    pool_prepared *p = prepared;
    if (p->pooling)
        dnnl_primitive_destroy(p->pooling);
    eddy_dnnl_desc_fini(&p->x);
    eddy_dnnl_desc_fini(&p->y);
    eddy_dnnl_desc_fini(&p->scratch);
}

static void finish(const pool_key *key, pool_prepared *p) {
    p->x_count = key->images * key->channels * key->x_rows * key->x_columns;
    p->scratch_bytes = eddy_dnnl_desc_bytes(&p->scratch);
}

static eddy_status make(const eddy_prepared_kind *kind, const void *key, void *prepared) {
    pool_prepared *p = prepared;
    dnnl_engine_t engine = eddy_dnnl_engine();
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status;
    if (!engine)
        return EDDY_UNSUPPORTED;
    if (!eddy_dnnl_has_room())
        return EDDY_OUT_OF_MEMORY;
    int before = eddy_dnnl_begin(); /* oneDNN plans primitives for the current number of threads */
    bool is_good = eddy_dnnl_goes(&status, dnnl_primitive_attr_create(&attributes)) &&
                   eddy_dnnl_goes(&status, dnnl_primitive_attr_set_scratchpad_mode(
                                               attributes, dnnl_scratchpad_mode_user)) &&
                   plan(key, p, engine, attributes, &made, &status) &&
                   eddy_dnnl_goes(&status, look_at(made)) &&
                   eddy_dnnl_goes(&status, dnnl_primitive_create(&p->pooling, made)) &&
                   eddy_dnnl_goes(&status, eddy_dnnl_desc_init_plan(&p->scratch, made,
                                                                    dnnl_query_scratchpad_md));
    if (is_good)
        finish(key, p);
    else
        unmake(kind, p);
    dnnl_primitive_desc_destroy(made);
    dnnl_primitive_attr_destroy(attributes);
    eddy_dnnl_end(before);
    return eddy_dnnl_made(status);
}

static const eddy_prepared_kind pooling = {sizeof(pool_prepared), make, unmake};

/* ---- calls that the library serves ---- */

/* A request in the form that the library takes. */
typedef struct pooled {
    const eddy_pool_request *request;
    eddy_image x,
        out; /* row-major planes are grouped into images of CHANNELS planes, if they make up whole ones */
    dnnl_alg_kind_t algorithm;
    bool is_last;
    eddy_conv_window rows;
    int64_t left, right; /* padding */
} pooled;

/* Whether the image is dense in the order of these strides, ignoring the strides of dims of size 1. */
static bool is_dense(int64_t images, int64_t image_stride, const int64_t *dims,
                     const int64_t *strides) {
    int64_t count = 1;
    for (int32_t d = 2; d >= 0; d--) {
        if (dims[d] > 1 && strides[d] != count)
            return false;
        count *= dims[d];
    }
    return images == 1 || image_stride == count;
}

static bool is_row_major(const eddy_image *image) {
    const int64_t dims[] = {image->channels, image->height, image->width};
    const int64_t strides[] = {image->channel_stride, image->row_stride, image->column_stride};
    return is_dense(image->images, image->image_stride, dims, strides);
}

static bool is_channels_last(const eddy_image *image) {
    const int64_t dims[] = {image->height, image->width, image->channels};
    const int64_t strides[] = {image->row_stride, image->column_stride, image->channel_stride};
    return is_dense(image->images, image->image_stride, dims, strides);
}

/* Elements by which the last window extends beyond the image. */
static int64_t overhang(const eddy_pool_axis *axis) {
    return (axis->out - 1) * axis->stride + axis->kernel - axis->in - axis->padding;
}

/* The library divides by the number of elements either within the image or in the window. With is_ceil_mode a window may
 * extend beyond the padding; PyTorch counts those elements in neither case. */
static bool choose_algorithm(const eddy_pool_request *request, dnnl_alg_kind_t *algorithm) {
    const eddy_attributes_pool *attributes = request->attributes;
    *algorithm = !request->averages                            ? dnnl_pooling_max
                 : attributes && !attributes->excludes_padding ? dnnl_pooling_avg_include_padding
                                                               : dnnl_pooling_avg_exclude_padding;
    if (*algorithm != dnnl_pooling_max && attributes && attributes->divisor_override != 0)
        return false;
    /* The library's code for processors without AVX adds from memory that has to begin at 16 bytes. */
    if (request->averages && eddy_isa_chosen() < EDDY_ISA_V3)
        return false;
    return *algorithm != dnnl_pooling_avg_include_padding ||
           (overhang(&request->height) <= request->height.padding &&
            overhang(&request->width) <= request->width.padding);
}

static bool is_served(const eddy_pool_request *request) {
    const eddy_pool_axis *height = &request->height, *width = &request->width;
    const eddy_image *out = &request->out;
    double seen = (double)out->images * (double)out->channels * (double)out->height *
                  (double)out->width * (double)height->kernel * (double)width->kernel;
    return eddy_isa_chosen() != EDDY_ISA_PORTABLE && request->x.dtype == EDDY_F32 &&
           seen >= CALL_WORK && !height->is_adaptive && !width->is_adaptive &&
           height->dilation == 1 && width->dilation == 1;
}

/* A plane's result does not depend on which planes share an image. */
static void regroup(eddy_image *image) {
    int64_t planes = image->images * image->channels;
    image->channel_stride = image->height * image->width;
    if (planes % CHANNELS == 0) {
        image->images = planes / CHANNELS;
        image->channels = CHANNELS;
    }
    image->image_stride = image->channels * image->channel_stride;
}

static bool choose_order(pooled *work) {
    /* An image of one channel has both orders. */
    if (!is_row_major(&work->x) || !is_row_major(&work->out)) {
        work->is_last = is_channels_last(&work->x) && is_channels_last(&work->out);
        return work->is_last;
    }
    regroup(&work->x);
    regroup(&work->out);
    return true;
}

/* Prepares the object for slices of this kind. */
static eddy_status prepare_kind(const pooled *work, eddy_pool_library *library, int32_t kind,
                                const eddy_conv_slice *slice) {
    const pool_key key = {.algorithm = work->algorithm,
                          .is_last = work->is_last,
                          .images = slice->images,
                          .channels = work->x.channels,
                          .x_rows = slice->x_rows,
                          .x_columns = work->x.width,
                          .y_rows = slice->y_rows,
                          .y_columns = work->out.width,
                          .w_rows = work->rows.size,
                          .w_columns = work->request->width.kernel,
                          .row_stride = work->rows.stride,
                          .column_stride = work->request->width.stride,
                          .top = slice->top,
                          .bottom = eddy_max_i64(0, slice->bottom),
                          .left = work->left,
                          .right = work->right};
    if (slice->images * slice->x_rows * work->x.width * work->x.channels > SLICE_MOST)
        return EDDY_UNSUPPORTED;
    eddy_status status =
        eddy_prepared_acquire(&pooling, &key, sizeof(key), &key, &library->prepared[kind]);
    if (status != EDDY_OK)
        return status;
    size_t bytes = (((const pool_prepared *)library->prepared[kind])->scratch_bytes + 63) / 64 * 64;
    library->scratch_bytes = bytes > library->scratch_bytes ? bytes : library->scratch_bytes;
    return EDDY_OK;
}

/* False if the library does not serve the request. */
static bool init(pooled *work, const eddy_pool_request *request) {
    const eddy_pool_axis *height = &request->height, *width = &request->width;
    *work = (pooled){.request = request,
                     .x = request->x,
                     .out = request->out,
                     .rows = {height->kernel, height->stride, height->padding, 1},
                     .left = width->padding,
                     .right = eddy_max_i64(0, overhang(width))};
    return is_served(request) && choose_algorithm(request, &work->algorithm) && choose_order(work);
}

static void cut_slices(const pooled *work, eddy_conv_cut *cut) {
    int64_t elements = work->x.images * work->x.channels * work->x.height * work->x.width;
    int64_t slices = elements / SLICE_ELEMENTS;
    *cut = (eddy_conv_cut){.direction = EDDY_CONV_FORWARD,
                           .rows = work->rows,
                           .batch = work->x.images,
                           .x_height = work->x.height,
                           .y_height = work->out.height};
    /* Rows of several row-major planes are not contiguous. */
    eddy_conv_cut_into(cut, work->is_last ? slices : eddy_min_i64(slices, work->x.images));
}

static eddy_status prepare_kinds(const pooled *work, eddy_pool_library *library) {
    eddy_conv_slice like[EDDY_CONV_KINDS];
    eddy_status status = EDDY_OK;
    library->kinds = eddy_conv_kinds_of(&library->cut, like);
    for (int32_t kind = 0; kind < library->kinds.count && status == EDDY_OK; kind++)
        status = prepare_kind(work, library, kind, &like[kind]);
    if (status != EDDY_OK)
        eddy_pool_library_end(library);
    return status;
}

static eddy_status pool_library_prepare(eddy_pool_library *library,
                                        const eddy_pool_request *request) {
    pooled work;
    if (!init(&work, request))
        return EDDY_UNSUPPORTED;
    *library = (eddy_pool_library){.x_image = work.x.image_stride,
                                   .x_row = work.x.row_stride,
                                   .y_image = work.out.image_stride,
                                   .y_row = work.out.row_stride,
                                   .averages = request->averages};
    cut_slices(&work, &library->cut);
    eddy_status status = prepare_kinds(&work, library);
    if (status != EDDY_OK)
        return status;
    library->parts = eddy_min_i64(PARTS_MAX, library->cut.slices);
    if (library->scratch_bytes > 0)
        library->parts = eddy_max_i64(
            1, eddy_min_i64(library->parts, (int64_t)(SCRATCH_GOOD / library->scratch_bytes)));
    return EDDY_OK;
}

size_t eddy_pool_library_workspace(const eddy_pool_library *library) {
    return (size_t)library->parts * library->scratch_bytes;
}

void eddy_pool_library_end(const eddy_pool_library *library) {
    for (int32_t i = 0; i < EDDY_CONV_KINDS; i++)
        eddy_prepared_release(library->prepared[i]);
}

/* ---- running ---- */

typedef struct run {
    const eddy_pool_library *library;
    const eddy_kernel_call *call;
    _Atomic bool is_owed; /* atomic: any slice sets it, read when all are done */
} run;

static void pool_library_run_slice(run *r, int64_t number, void *scratch,
                                   const eddy_dnnl_turn *turn) {
    const eddy_pool_library *library = r->library;
    const eddy_op_view *in = &r->call->views[0], *out = &r->call->views[1];
    eddy_conv_slice slice = eddy_conv_slice_of(&library->cut, number);
    const pool_prepared *p =
        library->prepared[eddy_conv_kind_of(&library->cut, &library->kinds, number)];
    float *x = (float *)in->data + slice.image * library->x_image + slice.x_row * library->x_row;
    float *y = (float *)out->data + slice.image * library->y_image + slice.y_row * library->y_row;
    if (!library->averages && !eddy_cpu_pool_blocks()->is_plain(x, p->x_count)) {
        eddy_store_relaxed(&r->is_owed, true);
        return;
    }
    eddy_dnnl_call call = {.is_good = true};
    eddy_dnnl_give(&call, DNNL_ARG_SRC, &p->x, x);
    eddy_dnnl_give(&call, DNNL_ARG_DST, &p->y, y);
    eddy_dnnl_give(&call, DNNL_ARG_SCRATCHPAD, &p->scratch, scratch);
    if (!eddy_dnnl_execute(&call, p->pooling, turn))
        eddy_kernel_fail(r->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
}

static void pool_library_run_parts(void *context, int64_t begin, int64_t end) {
    run *r = context;
    int64_t slices = r->library->cut.slices, parts = r->library->parts;
    size_t bytes = r->library->scratch_bytes;
    eddy_dnnl_turn turn;
    bool is_good = eddy_dnnl_turn_begin(&turn);
    if (!is_good)
        eddy_kernel_fail(r->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
    for (int64_t part = begin; part < end && is_good; part++)
        for (int64_t i = part * slices / parts;
             i < (part + 1) * slices / parts && !eddy_load_relaxed(&r->is_owed); i++)
            pool_library_run_slice(r, i, (char *)r->call->workspace + (size_t)part * bytes, &turn);
    eddy_dnnl_turn_end(&turn);
}

bool eddy_pool_library_run(const eddy_pool_library *library, const eddy_kernel_call *call) {
    run r = {.library = library, .call = call};
    if (library->parts > 1)
        call->team->parallel_for(call->team, library->parts, 1, pool_library_run_parts, &r);
    else
        pool_library_run_parts(&r, 0, 1);
    return !eddy_load_relaxed(&r.is_owed);
}

/* ---- the start ---- */

static void start_with(const eddy_pool_request *request, const eddy_op_view *views) {
    eddy_pool_library library;
    if (pool_library_prepare(&library, request) != EDDY_OK)
        return;
    size_t needed = eddy_pool_library_workspace(&library);
    char *workspace = eddy_memory_acquire(needed + 64, EDDY_MEMORY_CACHE);
    if (workspace) {
        eddy_kernel_error error = {.position = INT64_MAX};
        const eddy_kernel_call call = {.views = views,
                                       .view_count = 2,
                                       .workspace =
                                           workspace + (64 - (uintptr_t)workspace % 64) % 64,
                                       .error = &error};
        (void)eddy_pool_library_run(&library, &call);
        eddy_memory_release(workspace, needed + 64, EDDY_MEMORY_CACHE);
    }
    eddy_pool_library_end(&library);
}

/* Prepares and runs the library's code for each of our uses once, so that its static objects are constructed now. */
static void start_one(bool averages, bool is_last) {
    enum { SIDE = 32, HALF = SIDE / 2 };
    const int64_t shape[] = {1, CHANNELS, SIDE, SIDE}, half[] = {1, CHANNELS, HALF, HALF};
    const int64_t rows[][4] = {{CHANNELS * SIDE * SIDE, SIDE * SIDE, SIDE, 1},
                               {CHANNELS * HALF * HALF, HALF * HALF, HALF, 1}};
    const int64_t last[][4] = {{CHANNELS * SIDE * SIDE, 1, SIDE * CHANNELS, CHANNELS},
                               {CHANNELS * HALF * HALF, 1, HALF * CHANNELS, CHANNELS}};
    static const eddy_attributes_pool attributes = {
        .kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}};
    size_t x_bytes = sizeof(float) * CHANNELS * SIDE * SIDE,
           bytes = x_bytes + sizeof(float) * CHANNELS * HALF * HALF;
    char *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_CACHE);
    if (!memory)
        return;
    memset(memory, 0, bytes);
    const eddy_op_view views[] = {
        {memory, shape, is_last ? last[0] : rows[0], EDDY_F32, 4},
        {memory + x_bytes, half, is_last ? last[1] : rows[1], EDDY_F32, 4}};
    const eddy_pool_request request = {.x = eddy_image_of(&views[0]),
                                       .out = eddy_image_of(&views[1]),
                                       .height = eddy_pool_axis_height(&attributes, SIDE, HALF),
                                       .width = eddy_pool_axis_width(&attributes, SIDE, HALF),
                                       .attributes = &attributes,
                                       .averages = averages};
    start_with(&request, views);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_CACHE);
}

static void pool_library_start(void) {
    for (int way = 0; way < 4; way++)
        start_one(way % 2, way / 2);
}

/* ---- preparing ---- */

eddy_status eddy_pool_library_prepare(eddy_pool_library *library, const eddy_pool_request *request,
                                      bool *has_started_library) {
    static eddy_dnnl_start state = EDDY_DNNL_START;
    if (!is_served(request))
        return EDDY_UNSUPPORTED;
    eddy_status status = pool_library_prepare(library, request);
    if (status != EDDY_OUT_OF_MEMORY && eddy_dnnl_start_once(&state, pool_library_start))
        *has_started_library = true;
    return status;
}
