/* Memory shared by DLPack: what is said of it, how long it lives, what is refused. */
#include "../interpreter/calls.h"

#include <eddy/dlpack.h>
#include <eddy/grad.h>
#include <eddy/ops.h>
#include <exchange/dlpack_abi.h>
#include <interpreter/host/host.h>
#include <pthread.h>
#include <stdio.h>

#define CASE(name) Test(dlpack, name, .timeout = 60)

static const struct {
    eddy_dtype dtype;
    DLDataType type;
} types[] = {
    {EDDY_F32, {2, 32, 1}}, {EDDY_F64, {2, 64, 1}}, {EDDY_F16, {2, 16, 1}}, {EDDY_BF16, {4, 16, 1}},
    {EDDY_I8, {0, 8, 1}},   {EDDY_U8, {1, 8, 1}},   {EDDY_I16, {0, 16, 1}}, {EDDY_I32, {0, 32, 1}},
    {EDDY_I64, {0, 64, 1}}, {EDDY_BOOL, {6, 8, 1}},
};
_Static_assert(sizeof(types) / sizeof(types[0]) == EDDY_DTYPE_COUNT, "each dtype");

/* ---- out ---- */

CASE(what_is_exported_is_described) {
    for (int i = 0; i < EDDY_DTYPE_COUNT; i++) {
        eddy_tensor *t = empty_of(types[i].dtype, EDDY_SHAPE(3, 4));
        struct DLManagedTensorVersioned *managed = eddy_to_dlpack(t, NULL);
        cr_assert_not_null(managed);
        cr_assert_eq(managed->version.major, 1);
        cr_assert_eq(managed->flags, 0);
        const DLTensor *shown = &managed->dl_tensor;
        cr_assert_eq(shown->device.device_type, 1);
        cr_assert_eq(shown->device.device_id, 0);
        cr_assert_arr_eq(&shown->dtype, &types[i].type, sizeof(DLDataType), "%s",
                         eddy_dtype_name(types[i].dtype));
        cr_assert_eq(shown->ndim, 2);
        cr_assert_eq(shown->byte_offset, 0);
        cr_assert_arr_eq(shown->shape, ((int64_t[]){3, 4}), 16);
        cr_assert_arr_eq(shown->strides, ((int64_t[]){4, 1}), 16);
        managed->deleter(managed);
    }
}

CASE(views_and_unversioned_structs_are_exported) {
    eddy_tensor *t = counting(EDDY_SHAPE(3, 4)), *view = eddy_narrow(eddy_t(t), 0, 1, 2);
    struct DLManagedTensor *managed = eddy_to_dlpack_unversioned(view, NULL);
    cr_assert_not_null(managed);
    const DLTensor *shown = &managed->dl_tensor;
    cr_assert_arr_eq(shown->shape, ((int64_t[]){2, 3}), 16);
    cr_assert_arr_eq(shown->strides, ((int64_t[]){1, 4}), 16);
    const float *data = shown->data;
    cr_assert_eq(data[0], 1);
    cr_assert_eq(data[shown->strides[0] + 2 * shown->strides[1]], 10);
    managed->deleter(managed);
    /* Nothing to point to, and no axes. */
    struct DLManagedTensorVersioned *none = eddy_to_dlpack(eddy_narrow(t, 0, 0, 0), NULL),
                                    *one = eddy_to_dlpack(eddy_select(eddy_select(t, 0, 2), 0, 3),
                                                          NULL);
    cr_assert_null(none->dl_tensor.data);
    cr_assert_eq(one->dl_tensor.ndim, 0);
    cr_assert_eq(*(const float *)one->dl_tensor.data, 11);
    none->deleter(none);
    one->deleter(one);
}

static void *lend(void *tensor) {
    float *lent = eddy_map(tensor, EDDY_WRITE, EDDY_FOREVER);
    lent[0] = 7;
    return NULL;
}

static void *end_lend(void *tensor) {
    eddy_unmap(tensor);
    return NULL;
}

static pthread_t begin_thread(void *(*run)(void *), void *context) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, run, context), 0);
    return thread;
}

CASE(an_export_waits_for_what_was_issued) {
    eddy_tensor *a = counting(EDDY_SHAPE(2));
    /* The op is in flight behind another thread's lend when the export is asked for. */
    pthread_join(begin_thread(lend, a), NULL);
    eddy_tensor *sum = call("add", OF(a, a));
    pthread_t thread = begin_thread(end_lend, a);
    struct DLManagedTensorVersioned *managed = eddy_to_dlpack(sum, NULL);
    cr_assert_eq(((const float *)managed->dl_tensor.data)[0], 14);
    cr_assert_eq(((const float *)managed->dl_tensor.data)[1], 2);
    pthread_join(thread, NULL);
    managed->deleter(managed);
}

static void *call_deleter(void *managed) {
    ((struct DLManagedTensorVersioned *)managed)->deleter(managed);
    return NULL;
}

CASE(the_memory_lives_until_the_deleter_ran_on_any_thread) {
    eddy_scope *scope = eddy_scope_begin();
    struct DLManagedTensorVersioned *managed =
        eddy_to_dlpack(counting(EDDY_SHAPE(1000)), EDDY_OPTIONS(to_dlpack, .is_read_only = true));
    cr_assert_eq(managed->flags, 1);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 1);
    cr_assert_eq(((const float *)managed->dl_tensor.data)[999], 999);
    pthread_join(begin_thread(call_deleter, managed), NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

CASE(a_runtime_may_end_before_the_deleter_ran) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_tensor *t = counting(EDDY_SHAPE(3));
    struct DLManagedTensorVersioned *managed = eddy_to_dlpack(t, NULL);
    eddy_release(&t);
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    managed->deleter(managed);
    cr_assert_eq(eddy_live_count(), 0);
}

CASE(what_cannot_be_exported_is_refused) {
    eddy_tensor *a = counting(EDDY_SHAPE(2)), *poisoned = index_select(a, I64(EDDY_SHAPE(1), 5));
    cr_assert_null(eddy_to_dlpack(poisoned, NULL));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    cr_assert_null(eddy_to_dlpack(NULL, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "to_dlpack");
    cr_assert_null(eddy_to_dlpack_unversioned(EDDY_NONE, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "to_dlpack_unversioned");
    cr_assert_not_null(eddy_map(a, EDDY_READ, EDDY_FOREVER));
    cr_assert_null(eddy_to_dlpack(a, NULL));
    ASSERT_ERROR(EDDY_WOULD_DEADLOCK, "to_dlpack");
    cr_assert_eq(eddy_unmap(a), EDDY_OK);
    cr_assert_eq(eddy_requires_grad_set(a, true), EDDY_OK);
    cr_assert_null(eddy_to_dlpack(a, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "detach it first");
    struct DLManagedTensorVersioned *managed = eddy_to_dlpack(eddy_detach(a), NULL);
    cr_assert_not_null(managed);
    managed->deleter(managed);
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, INT64_MAX);
    eddy_tensor *b = eddy_detach(a);
    cr_assert_null(eddy_to_dlpack(b ? b : a, NULL));
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 0);
    eddy_error_take(NULL);
}

/* ---- in ---- */

/* A struct of another library's. */
typedef struct foreign {
    float values[12];
    int64_t shape[2], strides[2];
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor plain;
    _Atomic int deleted; /* how often the deleter ran */
} foreign;

static void count_versioned(struct DLManagedTensorVersioned *self) {
    ((foreign *)self->manager_ctx)->deleted++;
}

static void count_plain(struct DLManagedTensor *self) {
    ((foreign *)self->manager_ctx)->deleted++;
}

static void foreign_init(foreign *f) {
    *f = (foreign){.shape = {3, 4}, .strides = {4, 1}};
    for (int i = 0; i < 12; i++)
        f->values[i] = (float)i;
    DLTensor shown = {.data = f->values,
                      .device = {1, 0},
                      .ndim = 2,
                      .dtype = {2, 32, 1},
                      .shape = f->shape,
                      .strides = f->strides};
    f->versioned = (struct DLManagedTensorVersioned){
        .version = {1, 1}, .manager_ctx = f, .deleter = count_versioned, .dl_tensor = shown};
    f->plain =
        (struct DLManagedTensor){.dl_tensor = shown, .manager_ctx = f, .deleter = count_plain};
}

/* How often the deleter has run, when all is done that was issued. */
static int deleted(const foreign *f) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    return f->deleted;
}

/* Ends the tensor; the deleter has then run once. */
static void assert_ends(foreign *f, eddy_tensor *tensor) {
    cr_assert_eq(deleted(f), 0);
    eddy_release(&tensor);
    cr_assert_eq(deleted(f), 1);
    f->deleted = 0;
}

CASE(foreign_memory_is_shared) {
    foreign f;
    foreign_init(&f);
    eddy_tensor *t = eddy_from_dlpack(&f.versioned, NULL);
    cr_assert(has_shape(t, EDDY_SHAPE(3, 4)));
    cr_assert(eddy_is_contiguous(t));
    ASSERT_F32(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    cr_assert_eq(copy_into(eddy_add(t, t), t), EDDY_OK);
    cr_assert_eq(eddy_wait(t, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(f.values[11], 22, "the same memory");
    assert_ends(&f, t);
    t = eddy_from_dlpack_unversioned(&f.plain, NULL);
    ASSERT_F32(t, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22);
    /* A view is still there. */
    eddy_tensor *row = eddy_select(t, 0, 1);
    eddy_release(&t);
    assert_ends(&f, row);
}

CASE(strides_offsets_and_missing_strides_are_understood) {
    foreign f;
    foreign_init(&f);
    DLTensor *given = &f.versioned.dl_tensor;
    f.shape[0] = 4, f.shape[1] = 3, f.strides[0] = 1, f.strides[1] = 4;
    eddy_tensor *t = eddy_from_dlpack(&f.versioned, NULL);
    cr_assert_not(eddy_is_contiguous(t));
    ASSERT_F32(t, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    cr_assert_eq(eddy_stride_of(t, 1), 4);
    assert_ends(&f, t);
    f.shape[0] = 2, f.shape[1] = 2, f.strides[0] = 5, f.strides[1] = 0;
    given->byte_offset = 8;
    t = eddy_from_dlpack(&f.versioned, NULL);
    ASSERT_F32(t, 2, 2, 7, 7);
    assert_ends(&f, t);
    given->strides = NULL;
    t = eddy_from_dlpack(&f.versioned, NULL);
    ASSERT_F32(t, 2, 3, 4, 5);
    assert_ends(&f, t);
    f.shape[0] = 0;
    given->data = NULL;
    t = eddy_from_dlpack(&f.versioned, NULL);
    cr_assert(has_shape(t, EDDY_SHAPE(0, 2)));
    assert_ends(&f, t);
    given->strides = f.strides;
    given->ndim = 0;
    given->shape = NULL;
    given->data = f.values;
    given->byte_offset = 12;
    f.versioned.deleter = NULL;
    t = eddy_from_dlpack(&f.versioned, NULL);
    cr_assert_eq(eddy_item_f64(t, NULL), 3);
    eddy_release(&t);
    cr_assert_eq(deleted(&f), 0);
}

CASE(every_dtype_is_understood) {
    foreign f;
    for (int i = 0; i < EDDY_DTYPE_COUNT; i++) {
        foreign_init(&f);
        f.shape[0] = 1, f.shape[1] = 1;
        f.versioned.dl_tensor.dtype = types[i].type;
        eddy_tensor *t = eddy_from_dlpack(&f.versioned, NULL);
        cr_assert_eq(eddy_dtype_of(t), types[i].dtype);
        assert_ends(&f, t);
    }
}

CASE(what_cannot_be_imported_is_refused_and_stays_the_callers) {
    enum {
        VERSION,
        READ_ONLY,
        DEVICE,
        NO_GPU,
        STREAM,
        COMPLEX,
        UNSIGNED,
        LANES,
        RANK,
        NEGATIVE_RANK,
        SHAPE,
        DIM,
        STRIDE,
        REACH,
        BYTES,
        DATA,
        ALIGNED,
        COUNT
    };
    static const struct {
        eddy_status status;
        const char *sentence;
    } wanted[COUNT] = {
        [VERSION] = {EDDY_UNSUPPORTED, "DLPack 2, not 1"},
        [READ_ONLY] = {EDDY_UNSUPPORTED, "must not be written"},
        [DEVICE] = {EDDY_UNSUPPORTED, "a device of type 4"},
        [NO_GPU] = {EDDY_UNSUPPORTED, "there is no device cuda:99"},
        [STREAM] = {EDDY_INVALID_ARGUMENT, "memory of the host has no stream"},
        [COMPLEX] = {EDDY_UNSUPPORTED, "code 5, 64 bits"},
        [UNSIGNED] = {EDDY_UNSUPPORTED, "code 1, 32 bits"},
        [LANES] = {EDDY_UNSUPPORTED, "32 bits, 4 lanes"},
        [RANK] = {EDDY_UNSUPPORTED, "rank 17"},
        [NEGATIVE_RANK] = {EDDY_UNSUPPORTED, "rank -1"},
        [SHAPE] = {EDDY_INVALID_ARGUMENT, "no shape"},
        [DIM] = {EDDY_INVALID_ARGUMENT, "negative dim"},
        [STRIDE] = {EDDY_UNSUPPORTED, "axis 1 has the stride -1"},
        [REACH] = {EDDY_SIZE_OVERFLOW, "the strides reach beyond"},
        [BYTES] = {EDDY_SIZE_OVERFLOW, "63 bits"},
        [DATA] = {EDDY_INVALID_ARGUMENT, "data is NULL"},
        [ALIGNED] = {EDDY_INVALID_ARGUMENT, "not aligned for f32"},
    };
    for (int i = 0; i < COUNT; i++) {
        foreign f;
        foreign_init(&f);
        DLTensor *given = &f.versioned.dl_tensor;
        f.versioned.version.major = i == VERSION ? 2 : 1;
        f.versioned.flags = i == READ_ONLY ? 1 : 0;
        given->device.device_type = i == DEVICE ? 4 : i == NO_GPU ? 2 : 1;
        given->device.device_id = i == NO_GPU ? 99 : 0;
        const eddy_from_dlpack_options *options =
            i == STREAM ? EDDY_OPTIONS(from_dlpack, .stream = 1) : NULL;
        given->dtype.code = i == COMPLEX ? 5 : i == UNSIGNED ? 1 : 2;
        given->dtype.bits = i == COMPLEX ? 64 : 32;
        given->dtype.lanes = i == LANES ? 4 : 1;
        given->ndim = i == RANK ? 17 : i == NEGATIVE_RANK ? -1 : 2;
        given->shape = i == SHAPE ? NULL : f.shape;
        f.shape[0] = i == DIM ? -3 : i == BYTES ? (int64_t)1 << 61 : 3;
        f.strides[1] = i == STRIDE ? -1 : i == REACH ? INT64_MAX / 2 : 1;
        given->data = i == DATA ? NULL : f.values;
        given->byte_offset = i == ALIGNED ? 2 : 0;
        cr_assert_null(eddy_from_dlpack(&f.versioned, options), "%d", i);
        eddy_error error;
        cr_assert_eq(eddy_error_take(&error), wanted[i].status, "%d: %s", i, error.message);
        cr_assert_not_null(strstr(error.message, wanted[i].sentence), "%d: %s", i, error.message);
        if (i != VERSION && i != READ_ONLY) {
            f.plain.dl_tensor = *given;
            cr_assert_null(eddy_from_dlpack_unversioned(&f.plain, options));
            ASSERT_ERROR(wanted[i].status, wanted[i].sentence);
        }
        cr_assert_eq(deleted(&f), 0);
    }
    cr_assert_null(eddy_from_dlpack(NULL, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no struct");
    cr_assert_null(eddy_from_dlpack_unversioned(NULL, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no struct");
    foreign f;
    foreign_init(&f);
    f.versioned.flags = 1;
    assert_ends(&f,
                eddy_from_dlpack(&f.versioned, EDDY_OPTIONS(from_dlpack, .takes_read_only = true)));
}

/* Where a handle is not to be had, the memory stays the caller's, also when it was borrowed by then. */
CASE(memory_that_is_not_there_is_an_error) {
    foreign f;
    foreign_init(&f);
    f.shape[0] = 4, f.shape[1] = 3, f.strides[0] = 1, f.strides[1] = 4;
    eddy_sync(EDDY_FOREVER);
    bool was_injected = true;
    for (int64_t at = 0; was_injected; at++) {
        cr_assert_lt(at, 100);
        /* The thread's cache of handles is used up, so that each one is an allocation away. */
        eddy_trim();
        eddy_memory_fail_at(EDDY_MEMORY_HANDLE, at, 1);
        eddy_tensor *t = eddy_from_dlpack(&f.versioned, NULL);
        was_injected = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 0);
        cr_assert_eq(t == NULL, was_injected);
        cr_assert_eq(eddy_error_take(NULL), was_injected ? EDDY_OUT_OF_MEMORY : EDDY_OK);
        if (t)
            assert_ends(&f, t);
        cr_assert_eq(deleted(&f), 0);
    }
}

CASE(there_and_back_is_the_same_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = counting(EDDY_SHAPE(2, 3)),
                *back = eddy_from_dlpack(eddy_to_dlpack(eddy_t(t), NULL), NULL);
    cr_assert(has_shape(back, EDDY_SHAPE(3, 2)));
    ASSERT_F32(back, 0, 3, 1, 4, 2, 5);
    float *lent = eddy_map(t, EDDY_WRITE, EDDY_FOREVER);
    lent[0] = 9;
    eddy_unmap(t);
    ASSERT_F32(back, 9, 3, 1, 4, 2, 5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}
