/* Data that a run is given are copied to the strides that the program was recorded with, whatever their own are. */
#include <program/run_data.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/handle/caller.h>
#include <interpreter/host/transfer.h>
#include <string.h>

enum { TO, FROM };

typedef struct copying {
    const eddy_program *program;
    const eddy_program_binding *input;
    const eddy_data_feed *feed;
    eddy_origin origin;
} copying;

/* ---- what was given ---- */

static eddy_status fail_mismatch(const copying *c) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    const eddy_layout *layout = &c->input->layout;
    bool has_dtype = c->feed->dtype == (eddy_dtype)c->input->dtype;
    eddy_shape_format(c->feed->shape.rank, c->feed->shape.dims, is, sizeof(is));
    eddy_shape_format(layout->rank, layout->dims, wanted, sizeof(wanted));
    return eddy_fail(has_dtype ? EDDY_SHAPE_MISMATCH : EDDY_DTYPE_MISMATCH, c->origin,
                     "the data of input %s are %s%s, the program was recorded with %s%s",
                     c->input->name, eddy_dtype_name(c->feed->dtype), is,
                     eddy_dtype_name((eddy_dtype)c->input->dtype), wanted);
}

/* Whether the bytes from the first element to any other are an int64. */
static bool is_within_reach(const copying *c, const int64_t *strides) {
    int64_t reach = 0, step, bytes = eddy_dtype_size((eddy_dtype)c->input->dtype);
    for (int32_t d = 0; d < c->input->layout.rank; d++) {
        int64_t stride = strides[d] < 0 ? -(strides[d] + 1) : strides[d];
        if (__builtin_mul_overflow(c->input->layout.dims[d], stride, &step) ||
            __builtin_mul_overflow(step, bytes, &step) ||
            __builtin_add_overflow(reach, step, &reach))
            return false;
    }
    return true;
}

static eddy_status check(const copying *c) {
    const eddy_layout *layout = &c->input->layout;
    const eddy_data_feed *feed = c->feed;
    const char *name = c->input->name;
    if (!eddy_dtype_is_valid(feed->dtype))
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "input %s: %d is no dtype", name,
                         (int)feed->dtype);
    if (feed->shape.rank < 0 || feed->shape.rank > EDDY_RANK_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin,
                         "input %s: rank %d is not within 0 and %d", name, (int)feed->shape.rank,
                         EDDY_RANK_MAX);
    if (feed->dtype != (eddy_dtype)c->input->dtype ||
        !eddy_shape_equal(feed->shape.rank, feed->shape.dims, layout->rank, layout->dims))
        return fail_mismatch(c);
    if (!feed->data && c->input->count > 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "the data of input %s are NULL", name);
    if (feed->strides && !is_within_reach(c, feed->strides))
        return eddy_fail(EDDY_SIZE_OVERFLOW, c->origin,
                         "the strides of the data of input %s reach beyond 63 bits", name);
    if (!eddy_layout_is_injective(layout))
        return eddy_fail(EDDY_UNSUPPORTED, c->origin,
                         "input %s was recorded with strides by which elements share memory: it "
                         "takes a tensor, and no data",
                         name);
    return EDDY_OK;
}

/* ---- copying ---- */

static inline void copy_apart(char *to, const char *from, int64_t count, int64_t to_step,
                              int64_t from_step, size_t bytes) {
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_step, from + i * from_step, bytes);
}

static void copy_row(char *to, const char *from, int64_t count, int64_t to_step, int64_t from_step,
                     int64_t bytes) {
    if (to_step == bytes && from_step == bytes) {
        memcpy(to, from, (size_t)(count * bytes));
        return;
    }
    /* Sizes that the compiler knows are single loads and stores. */
    switch (bytes) {
    case 1:
        copy_apart(to, from, count, to_step, from_step, 1);
        break;
    case 2:
        copy_apart(to, from, count, to_step, from_step, 2);
        break;
    case 4:
        copy_apart(to, from, count, to_step, from_step, 4);
        break;
    default:
        copy_apart(to, from, count, to_step, from_step, 8);
    }
}

/* steps: bytes. */
static void copy_rows(char *to, const char *from, int32_t rank, const int64_t *dims,
                      int64_t (*steps)[EDDY_RANK_MAX], int64_t bytes) {
    if (rank <= 1) {
        copy_row(to, from, rank ? dims[0] : 1, rank ? steps[TO][0] : bytes,
                 rank ? steps[FROM][0] : bytes, bytes);
        return;
    }
    int64_t inner[2][EDDY_RANK_MAX];
    for (int k = TO; k <= FROM; k++)
        memcpy(inner[k], steps[k] + 1, (size_t)(rank - 1) * sizeof(inner[k][0]));
    for (int64_t i = 0; i < dims[0]; i++)
        copy_rows(to + i * steps[TO][0], from + i * steps[FROM][0], rank - 1, dims + 1, inner,
                  bytes);
}

/* to: where the input's first element goes. */
static void copy_elements(const copying *c, char *to) {
    const eddy_layout *layout = &c->input->layout;
    int64_t dims[EDDY_RANK_MAX], steps[2][EDDY_RANK_MAX];
    int64_t bytes = eddy_dtype_size((eddy_dtype)c->input->dtype);
    int32_t rank = layout->rank;
    if (c->input->count == 0)
        return;
    memcpy(dims, layout->dims, sizeof(dims));
    memcpy(steps[TO], layout->strides, sizeof(steps[TO]));
    if (c->feed->strides)
        memcpy(steps[FROM], c->feed->strides, (size_t)rank * sizeof(steps[FROM][0]));
    else
        eddy_shape_strides_contiguous(rank, dims, steps[FROM]);
    eddy_layout_sort(rank, dims, steps, 2, TO);
    eddy_layout_collapse(&rank, dims, steps, 2);
    for (int32_t d = 0; d < rank; d++) {
        steps[TO][d] *= bytes;
        steps[FROM][d] *= bytes;
    }
    copy_rows(to, c->feed->data, rank, dims, steps, bytes);
}

/* Of `count` elements in a row, without memory. */
static eddy_tensor *make_root(const copying *c, eddy_caller *caller, int64_t count) {
    eddy_tensor *root = eddy_tensor_acquire(caller, c->program->runtime, c->origin.address);
    if (!root) {
        eddy_fail(EDDY_OUT_OF_MEMORY, c->origin, "no memory for a handle");
        return NULL;
    }
    root->dtype = c->input->dtype;
    eddy_tensor_set_device(root, EDDY_CPU);
    eddy_tensor_lay(root, 1, &count, count);
    return root;
}

/* To where the program has the input, its gaps included. */
static eddy_status bring(const copying *c, eddy_caller *caller, eddy_tensor **root) {
    eddy_device device = {(eddy_device_kind)c->input->device_kind, c->input->device_index};
    if (EDDY_LIKELY(device.kind == EDDY_DEVICE_CPU))
        return EDDY_OK;
    eddy_tensor *there;
    eddy_status status = eddy_transfer_elements(caller, *root, device, c->origin, &there);
    if (status != EDDY_OK)
        return status;
    eddy_tensor_drop(*root);
    *root = there;
    return EDDY_OK;
}

eddy_status eddy_run_data_copy(const eddy_program *program, const eddy_program_binding *input,
                               const eddy_data_feed *feed, eddy_origin origin, eddy_tensor **copy) {
    copying c = {program, input, feed, origin};
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = check(&c);
    if (status != EDDY_OK)
        return status;
    int64_t low, high, bytes = eddy_dtype_size((eddy_dtype)input->dtype);
    eddy_layout layout = input->layout;
    eddy_layout_extent(&input->layout, &low, &high);
    layout.offset -= low;
    eddy_tensor *root = make_root(&c, caller, high - low);
    if (!root)
        return EDDY_OUT_OF_MEMORY;
    void *memory;
    status =
        eddy_vm_storage_create(program->runtime->vm, (high - low) * bytes, &root->storage, &memory);
    if (status != EDDY_OK) {
        eddy_tensor_discard(caller, root);
        return status;
    }
    /* Gaps are never read, but may be shown. */
    if (high - low > input->count)
        memset(memory, 0, (size_t)((high - low) * bytes));
    copy_elements(&c, (char *)memory + layout.offset * bytes);
    eddy_vm_storage_written(program->runtime->vm);
    status = bring(&c, caller, &root);
    *copy = status == EDDY_OK ? eddy_tensor_view(caller, root, &layout, origin) : NULL;
    eddy_tensor_drop(root);
    return *copy || status != EDDY_OK ? status : EDDY_OUT_OF_MEMORY;
}
