/* Memory of CUDA devices shared by DLPack, with a library of others that the tests play: it has memory and a stream of its own in the device's context. On the fake driver, which
 * finds each wait that is missing between that stream and Eddy's. */
#include <base/atomic.h>
#include <criterion/criterion.h>
#include <eddy/dlpack.h>
#include <eddy/eddy.h>
#include <exchange/dlpack_abi.h>
#include <pthread.h>
#include <stdlib.h>
#include <streams/cuda/device.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <unistd.h>

#define COUNT 1024
#define BYTES (COUNT * sizeof(float))

/* ---- the others ---- */

typedef struct others {
    const eddy_cuda_device *device;
    eddy_cu_stream stream;
    eddy_cu_event event;
    eddy_cu_address memory; /* BYTES of them */
    float *pinned;          /* as many elements, */
    _Atomic uint64_t *word; /* and what the stream waits for when it is held */
    uint64_t held;
} others;

static void must(eddy_cu_result result) {
    cr_assert_eq(result, 0, "the driver says %d", result);
}

static void others_enter(const others *o) {
    must(eddy_cuda_device_enter(o->device));
}

static others others_begin(int32_t index) {
    others o = {0};
    char why[160] = "";
    void *pinned;
    cr_assert_eq(eddy_cuda_driver_open(why, sizeof(why)), EDDY_OK, "%s", why);
    eddy_cuda_devices_find();
    cr_assert_eq(eddy_cuda_device_start(index, &o.device, why, sizeof(why)), EDDY_OK, "%s", why);
    others_enter(&o);
    must(eddy_cuda.stream_create(&o.stream, EDDY_CU_STREAM_NON_BLOCKING, 0));
    must(eddy_cuda.event_create(&o.event, EDDY_CU_EVENT_DISABLE_TIMING));
    must(eddy_cuda.memory_acquire(&o.memory, BYTES));
    must(eddy_cuda.host_acquire(&pinned, BYTES + sizeof(uint64_t), EDDY_CU_HOST_MAPPED));
    memset(pinned, 0, BYTES + sizeof(uint64_t));
    o.pinned = pinned;
    o.word = (_Atomic uint64_t *)(void *)(o.pinned + COUNT);
    return o;
}

/* What the stream was given is over then. */
static void others_wait(const others *o) {
    others_enter(o);
    must(eddy_cuda.event_record(o->event, o->stream));
    must(eddy_cuda.event_synchronize(o->event));
}

/* What the stream is given from now on lies still until others_let_go. */
static void others_hold(others *o) {
    others_enter(o);
    must(eddy_cuda.stream_await(o->stream, (eddy_cu_address)(uintptr_t)o->word, ++o->held,
                                EDDY_CU_AWAIT_AT_LEAST));
}

static void others_let_go(others *o) {
    eddy_store_release(o->word, o->held);
}

/* The elements are `first` and those after it, once the stream has come so far. */
static void others_write(others *o, float first) {
    others_wait(o);
    for (int i = 0; i < COUNT; i++)
        o->pinned[i] = first + (float)i;
    must(eddy_cuda.copy_to_device(o->memory, o->pinned, BYTES, o->stream));
}

static void others_read(others *o, const void *data) {
    others_enter(o);
    must(eddy_cuda.copy_to_host(o->pinned, (eddy_cu_address)(uintptr_t)data, BYTES, o->stream));
}

static void others_end(others *o) {
    others_wait(o);
    must(eddy_cuda.memory_release(o->memory));
    must(eddy_cuda.host_release(o->pinned));
    must(eddy_cuda.event_destroy(o->event));
    must(eddy_cuda.stream_destroy(o->stream));
}

static uintptr_t stream_of(const others *o) {
    return (uintptr_t)o->stream;
}

/* ---- what they show ---- */

typedef struct shown {
    struct DLManagedTensorVersioned managed;
    struct DLManagedTensor plain;
    int64_t shape[2], strides[2];
    _Atomic int deleted;
} shown;

static void count_versioned(struct DLManagedTensorVersioned *self) {
    ((shown *)self->manager_ctx)->deleted++;
}

static void count_plain(struct DLManagedTensor *self) {
    ((shown *)self->manager_ctx)->deleted++;
}

static void show(shown *s, const others *o) {
    *s = (shown){.shape = {COUNT / 4, 4}, .strides = {4, 1}};
    DLTensor tensor = {.data = (void *)(uintptr_t)o->memory,
                       .device = {kDLCUDA, o->device->index},
                       .ndim = 2,
                       .dtype = {kDLFloat, 32, 1},
                       .shape = s->shape,
                       .strides = s->strides};
    s->managed = (struct DLManagedTensorVersioned){
        .version = {1, 1}, .manager_ctx = s, .deleter = count_versioned, .dl_tensor = tensor};
    s->plain =
        (struct DLManagedTensor){.dl_tensor = tensor, .manager_ctx = s, .deleter = count_plain};
}

static eddy_tensor *import(shown *s, const others *o) {
    return eddy_from_dlpack(&s->managed, EDDY_OPTIONS(from_dlpack, .stream = stream_of(o)));
}

static int deleted(const shown *s) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    return s->deleted;
}

static void expect_error(eddy_status status, const char *word) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, word), "%s", error.message);
}

static void expect_elements(const float *found, float first, float step) {
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(found[i], first + step * (float)i, "element %d: %g", i, (double)found[i]);
}

static void expect_tensor(eddy_tensor *tensor, float first, float step) {
    float found[COUNT];
    cr_assert_eq(eddy_read(tensor, found, sizeof(found), NULL), EDDY_OK);
    expect_elements(found, first, step);
}

static eddy_tensor *count_from(float first, int32_t index) {
    float data[COUNT];
    for (int i = 0; i < COUNT; i++)
        data[i] = first + (float)i;
    return eddy_from_data(data, EDDY_SHAPE(COUNT), EDDY_F32,
                          EDDY_OPTIONS(from_data, .device = EDDY_CUDA(index)));
}

static struct DLManagedTensorVersioned *export(eddy_tensor *tensor, const others *o) {
    return eddy_to_dlpack(tensor, EDDY_OPTIONS(to_dlpack, .stream = stream_of(o)));
}

/* ---- out ---- */

Test(cuda_dlpack, what_is_exported_is_described) {
    others o = others_begin(1);
    eddy_tensor *t = eddy_reshape(count_from(0, 1), EDDY_SHAPE(4, COUNT / 4));
    eddy_tensor *view = eddy_narrow(eddy_transpose(t, 0, 1), 0, 2, 3);
    struct DLManagedTensorVersioned *whole = eddy_to_dlpack(t, NULL), *part = export(view, &o);
    cr_assert(whole && part);
    cr_assert_eq(whole->version.major, 1);
    cr_assert_eq(whole->flags, 0);
    cr_assert_eq(whole->dl_tensor.device.device_type, 2);
    cr_assert_eq(whole->dl_tensor.device.device_id, 1);
    cr_assert_eq(part->dl_tensor.ndim, 2);
    cr_assert_arr_eq(part->dl_tensor.shape, ((int64_t[]){3, 4}), 16);
    cr_assert_arr_eq(part->dl_tensor.strides, ((int64_t[]){1, COUNT / 4}), 16);
    cr_assert_eq((char *)part->dl_tensor.data, (char *)whole->dl_tensor.data + 2 * sizeof(float));
    struct DLManagedTensor *none = eddy_to_dlpack_unversioned(
        eddy_narrow(t, 0, 0, 0), EDDY_OPTIONS(to_dlpack, .stream = stream_of(&o)));
    cr_assert_null(none->dl_tensor.data);
    cr_assert_eq(none->dl_tensor.device.device_type, 2);
    none->deleter(none);
    part->deleter(part);
    whole->deleter(whole);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* Ops run ahead of the device; the consumer's copy comes after them, though nobody waits. */
Test(cuda_dlpack, the_consumers_stream_comes_after_what_was_issued) {
    others o = others_begin(0);
    for (int round = 0; round < 10; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = count_from(0, 0);
        for (int i = 0; i < 8; i++)
            t = eddy_add(t, t);
        struct DLManagedTensorVersioned *managed =
            round % 2 == 0 ? export(t, &o)
                           : eddy_to_dlpack(t, EDDY_OPTIONS(to_dlpack, .stream = stream_of(&o),
                                                            .is_read_only = true));
        cr_assert_not_null(managed);
        cr_assert_eq(managed->flags, round % 2 == 0 ? 0 : 1);
        others_read(&o, managed->dl_tensor.data);
        others_wait(&o);
        expect_elements(o.pinned, 0, 256);
        eddy_scope_end(scope);
        managed->deleter(managed);
    }
    others_end(&o);
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_dlpack, without_a_stream_the_elements_are_there) {
    others o = others_begin(0);
    eddy_tensor *t = count_from(1, 0);
    for (int i = 0; i < 8; i++)
        t = eddy_add(t, t);
    struct DLManagedTensor *managed = eddy_to_dlpack_unversioned(t, NULL);
    cr_assert_not_null(managed);
    others_read(&o, managed->dl_tensor.data);
    others_wait(&o);
    expect_elements(o.pinned, 256, 256);
    managed->deleter(managed);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* What the consumer may write is not read by ops any more when its stream goes on. */
Test(cuda_dlpack, reads_in_flight_come_before_the_consumers_writes) {
    others o = others_begin(0);
    for (int round = 0; round < 10; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_stream *stream = eddy_stream_create(EDDY_CUDA(0), NULL);
        eddy_tensor *t = count_from(0, 0);
        cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
        eddy_tensor *sum = eddy_add(t, t);
        eddy_stream_scope_end();
        struct DLManagedTensorVersioned *managed = export(t, &o);
        others_enter(&o);
        must(eddy_cuda.fill_bytes((eddy_cu_address)(uintptr_t)managed->dl_tensor.data, 0, BYTES,
                                  o.stream));
        others_wait(&o);
        expect_tensor(sum, 0, 2);
        managed->deleter(managed);
        eddy_stream_release(&stream);
        eddy_scope_end(scope);
    }
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* The device stands still behind the producer's stream, and no call waits for it. */
Test(cuda_dlpack, no_call_with_a_stream_waits_for_the_device) {
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    eddy_wait(count_from(0, 0), EDDY_FOREVER);
    others_write(&o, 5);
    others_wait(&o);
    others_hold(&o);
    others_enter(&o);
    must(eddy_cuda.copy_to_device(o.memory, o.pinned, BYTES, o.stream));
    eddy_tensor *t = import(&s, &o), *sum = eddy_add(t, t);
    struct DLManagedTensorVersioned *managed = export(sum, &o);
    cr_assert_not_null(managed);
    cr_assert_not(eddy_is_ready(sum));
    others_let_go(&o);
    others_read(&o, managed->dl_tensor.data);
    others_wait(&o);
    expect_elements(o.pinned, 10, 2);
    managed->deleter(managed);
    eddy_release(&t);
    cr_assert_eq(deleted(&s), 1);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

static void *lend(void *tensor) {
    cr_assert_not_null(eddy_map(tensor, EDDY_WRITE, EDDY_FOREVER));
    return NULL;
}

Test(cuda_dlpack, what_cannot_be_exported_is_refused) {
    others o = others_begin(0);
    eddy_tensor *t = count_from(0, 0), *here = eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL),
                *far =
                    eddy_zeros(EDDY_SHAPE(2), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_FAR(0)));
    cr_assert_null(export(here, &o));
    expect_error(EDDY_INVALID_ARGUMENT, "a tensor on the CPU has no stream");
    cr_assert_null(eddy_to_dlpack(far, NULL));
    expect_error(EDDY_UNSUPPORTED, "neither on the CPU nor on a CUDA device");
    cr_assert_null(eddy_to_dlpack(t, EDDY_OPTIONS(to_dlpack, .stream = 12345)));
    expect_error(EDDY_INVALID_ARGUMENT, "refuses the consumer's stream");
    /* A loss of the device it was not. */
    expect_tensor(eddy_add(t, t), 0, 2);
    cr_assert_not_null(eddy_map(t, EDDY_READ, EDDY_FOREVER));
    cr_assert_null(export(t, &o));
    expect_error(EDDY_WOULD_DEADLOCK, "this thread itself has mapped");
    cr_assert_eq(eddy_unmap(t), EDDY_OK);
    pthread_t lender;
    cr_assert_eq(pthread_create(&lender, NULL, lend, t), 0);
    pthread_join(lender, NULL);
    cr_assert_null(
        eddy_to_dlpack(t, EDDY_OPTIONS(to_dlpack, .stream = stream_of(&o), .timeout = 1000000)));
    expect_error(EDDY_TIMED_OUT, "");
    cr_assert_eq(eddy_unmap(t), EDDY_OK);
    /* What was given up is launched all the same, and in no one's way. */
    struct DLManagedTensorVersioned *managed = export(t, &o);
    cr_assert_not_null(managed);
    managed->deleter(managed);
    cr_assert_eq(eddy_requires_grad_set(t, true), EDDY_OK);
    cr_assert_null(export(t, &o));
    expect_error(EDDY_INVALID_ARGUMENT, "detach it first");
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* Known errors are told; what comes after such an export is skipped as if it were not there. */
Test(cuda_dlpack, lost_elements_are_not_exported) {
    others o = others_begin(0);
    int64_t beyond = 5;
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = count_from(0, 0), *kept = count_from(0, 0);
        eddy_tensor *index = eddy_from_data(&beyond, EDDY_SHAPE(1), EDDY_I64,
                                            EDDY_OPTIONS(from_data, .device = EDDY_CUDA(0)));
        eddy_tensor *bad = eddy_index_select(eddy_narrow(t, 0, 0, 3), index, 0);
        if (round % 2 == 0)
            cr_assert_eq(eddy_wait(bad, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
        eddy_error_take(NULL);
        struct DLManagedTensorVersioned *managed =
            round % 4 < 2 ? export(bad, &o) : eddy_to_dlpack(bad, NULL);
        if (round % 4 != 1) { /* then it may be known, or not */
            cr_assert_null(managed);
            expect_error(EDDY_OUT_OF_RANGE, "index_select");
        } else if (managed) {
            managed->deleter(managed);
        }
        eddy_error_take(NULL);
        cr_assert_eq(eddy_add_inplace(kept, bad), EDDY_OK);
        cr_assert_eq(eddy_wait(kept, EDDY_FOREVER), EDDY_SKIPPED);
        eddy_error_take(NULL);
        cr_assert_eq(eddy_recover(EDDY_LIST(kept)), EDDY_OK);
        expect_tensor(kept, 0, 1);
        eddy_scope_end(scope);
    }
    others_end(&o);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- in ---- */

Test(cuda_dlpack, ops_come_after_the_producers_stream) {
    others o = others_begin(1);
    shown s;
    for (int round = 0; round < 10; round++) {
        show(&s, &o);
        others_write(&o, (float)round);
        eddy_tensor *t = round % 2 == 0
                             ? import(&s, &o)
                             : eddy_from_dlpack_unversioned(
                                   &s.plain, EDDY_OPTIONS(from_dlpack, .stream = stream_of(&o)));
        cr_assert_not_null(t);
        cr_assert_eq(eddy_device_of(t).index, 1);
        cr_assert(eddy_is_contiguous(t));
        eddy_tensor *sum = eddy_add(t, t);
        cr_assert_eq(eddy_add_inplace(t, sum), EDDY_OK);
        eddy_release(&t);
        expect_tensor(sum, 2 * (float)round, 2);
        eddy_release(&sum);
        cr_assert_eq(deleted(&s), 1);
        /* The memory is the producer's, and so is what ops have written there. */
        others_read(&o, (void *)(uintptr_t)o.memory);
        others_wait(&o);
        expect_elements(o.pinned, 3 * (float)round, 3);
    }
    others_end(&o);
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_dlpack, a_producer_left_out_is_found) {
    unsetenv("FAKE_CUDA_ABORT");
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    others_write(&o, 0);
    eddy_tensor *t = eddy_from_dlpack(&s.managed, NULL);
    eddy_wait(eddy_add(t, t), EDDY_FOREVER);
    others_wait(&o);
    cr_assert_gt(fake_cuda_findings_so_far(), 0);
    _exit(0); /* the fake makes a process with findings fail */
}

Test(cuda_dlpack, layouts_and_offsets_are_understood) {
    others o = others_begin(0);
    shown s;
    others_write(&o, 0);
    others_wait(&o);
    show(&s, &o);
    DLTensor *given = &s.managed.dl_tensor;
    s.shape[0] = 2, s.shape[1] = 3, s.strides[0] = 1, s.strides[1] = 100;
    given->byte_offset = 8;
    float found[6];
    eddy_tensor *t = eddy_from_dlpack(&s.managed, NULL);
    cr_assert_eq(eddy_read(t, found, sizeof(found), NULL), EDDY_OK);
    cr_assert_arr_eq(found, ((float[]){2, 102, 202, 3, 103, 203}), sizeof(found));
    eddy_release(&t);
    cr_assert_eq(deleted(&s), 1);
    s.shape[0] = 0;
    given->data = NULL;
    given->byte_offset = 0;
    given->strides = NULL;
    s.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    t = eddy_from_dlpack(
        &s.managed, EDDY_OPTIONS(from_dlpack, .takes_read_only = true, .stream = stream_of(&o)));
    cr_assert_eq(eddy_count_of(t), 0);
    eddy_release(&t);
    cr_assert_eq(deleted(&s), 2);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_dlpack, pinned_and_managed_memory_is_the_hosts) {
    others o = others_begin(0);
    shown s;
    for (int managed = 0; managed < 2; managed++) {
        show(&s, &o);
        for (int i = 0; i < COUNT; i++)
            o.pinned[i] = (float)i;
        s.managed.dl_tensor.data = o.pinned;
        s.managed.dl_tensor.device =
            (DLDevice){managed ? kDLCUDAManaged : kDLCUDAHost, managed ? 0 : 1};
        cr_assert_null(import(&s, &o));
        expect_error(EDDY_INVALID_ARGUMENT, "memory of the host has no stream");
        eddy_tensor *t = eddy_from_dlpack(&s.managed, NULL);
        cr_assert_eq(eddy_device_of(t).kind, EDDY_DEVICE_CPU);
        expect_tensor(t, 0, 1);
        expect_tensor(eddy_to_device(t, EDDY_CUDA(0)), 0, 1);
        eddy_release(&t);
        cr_assert_eq(deleted(&s), 1);
    }
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_dlpack, what_cannot_be_imported_stays_the_producers) {
    enum {
        HOSTS,
        TOO_LONG,
        OF_ANOTHER,
        INDEX,
        NEGATIVE,
        STREAM,
        ALIGNED,
        VERSION,
        READ_ONLY,
        WRAPS,
        ALL
    };
    static const struct {
        eddy_status status;
        const char *sentence;
    } wanted[ALL] = {
        [HOSTS] = {EDDY_INVALID_ARGUMENT, "not all memory of the device"},
        [TOO_LONG] = {EDDY_INVALID_ARGUMENT, "not all memory of the device"},
        [OF_ANOTHER] = {EDDY_INVALID_ARGUMENT, "not all memory of the device"},
        [INDEX] = {EDDY_UNSUPPORTED, "there is no device cuda:2 here"},
        [NEGATIVE] = {EDDY_UNSUPPORTED, "there is no device cuda:-1 here"},
        [STREAM] = {EDDY_INVALID_ARGUMENT, "refuses the producer's stream"},
        [ALIGNED] = {EDDY_INVALID_ARGUMENT, "not aligned for f32"},
        [VERSION] = {EDDY_UNSUPPORTED, "DLPack 2, not 1"},
        [READ_ONLY] = {EDDY_UNSUPPORTED, "must not be written"},
        [WRAPS] = {EDDY_INVALID_ARGUMENT, "not all memory of the device"},
    };
    others o = others_begin(0), another = others_begin(1);
    eddy_tensor *before = count_from(0, 0);
    for (int i = 0; i < ALL; i++) {
        shown s;
        show(&s, &o);
        DLTensor *given = &s.managed.dl_tensor;
        if (i == HOSTS)
            given->data = o.pinned;
        if (i == OF_ANOTHER)
            given->data = (void *)(uintptr_t)another.memory;
        if (i == WRAPS)
            given->data = (void *)(UINTPTR_MAX - 15);
        s.shape[0] += i == TOO_LONG ? COUNT * 1024 : 0;
        given->device.device_id = i == INDEX ? 2 : i == NEGATIVE ? -1 : 0;
        given->byte_offset = i == ALIGNED ? 2 : 0;
        s.managed.version.major = i == VERSION ? 2 : 1;
        s.managed.flags = i == READ_ONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
        cr_assert_null(
            eddy_from_dlpack(&s.managed,
                             EDDY_OPTIONS(from_dlpack, .stream = i == STREAM ? 77777 : 0)),
            "%d", i);
        eddy_error error;
        cr_assert_eq(eddy_error_take(&error), wanted[i].status, "%d: %s", i, error.message);
        cr_assert_not_null(strstr(error.message, wanted[i].sentence), "%d: %s", i, error.message);
        cr_assert_eq(deleted(&s), 0);
    }
    expect_tensor(before, 0, 1);
    others_end(&another);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* The context that a thread of the program has is its own. */
/* Nothing is recorded on it, which would go into its graph. */
Test(cuda_dlpack, a_stream_that_captures_is_refused_and_goes_on_capturing) {
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = count_from(0, 0);
    cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_OK);
    others_enter(&o);
    must(eddy_cuda.capture_begin(o.stream, EDDY_CU_CAPTURE_RELAXED));
    cr_assert_null(import(&s, &o));
    expect_error(EDDY_INVALID_ARGUMENT, "");
    cr_assert_null(export(x, &o));
    expect_error(EDDY_INVALID_ARGUMENT, "");
    eddy_cu_graph graph;
    must(eddy_cuda.capture_end(o.stream, &graph));
    must(eddy_cuda.graph_destroy(graph));
    eddy_scope_end(scope);
    others_end(&o);
}

Test(cuda_dlpack, the_threads_context_stays) {
    others o = others_begin(1), *p = &o;
    eddy_tensor *t = count_from(0, 0);
    eddy_wait(t, EDDY_FOREVER);
    others consumer = others_begin(0);
    shown s;
    show(&s, &consumer);
    others_enter(p);
    eddy_cu_context mine, now;
    must(eddy_cuda.context_get(&mine));
    struct DLManagedTensorVersioned *managed = export(t, &consumer);
    eddy_tensor *back =
        eddy_from_dlpack(&s.managed, EDDY_OPTIONS(from_dlpack, .stream = stream_of(&consumer)));
    must(eddy_cuda.context_get(&now));
    cr_assert(managed && back);
    cr_assert_eq(mine, now);
    managed->deleter(managed);
    eddy_release(&back);
    cr_assert_eq(deleted(&s), 1);
    others_end(&consumer);
    others_end(p);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- ends ---- */

Test(cuda_dlpack, a_runtime_may_end_before_the_deleters_ran) {
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    others_write(&o, 0);
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_tensor *in = import(&s, &o), *out = eddy_add(in, in);
    struct DLManagedTensorVersioned *managed = export(out, &o);
    cr_assert_not_null(managed);
    eddy_release(&out);
    eddy_runtime_use(NULL);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(s.deleted, 1);
    eddy_release(&in);
    eddy_runtime_release(&runtime);
    managed->deleter(managed);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_dlpack, a_lost_device_gives_back_what_it_was_lent) {
    setenv("FAKE_CUDA_FAIL_ENTRY", "cuLaunchKernel:3", 1);
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    eddy_tensor *mine = count_from(0, 0);
    struct DLManagedTensorVersioned *managed = eddy_to_dlpack(mine, NULL);
    cr_assert_not_null(managed);
    eddy_tensor *t = eddy_from_dlpack(&s.managed, NULL), *sum = t;
    for (int i = 0; i < 8; i++)
        sum = eddy_add(sum, t);
    cr_assert_eq(eddy_wait(sum, EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    cr_assert_null(eddy_to_dlpack(mine, NULL));
    expect_error(EDDY_DEVICE_LOST, "the device is lost (cuda:0)");
    cr_assert_null(export(mine, &o));
    expect_error(EDDY_DEVICE_LOST, "the device is lost (cuda:0)");
    shown again;
    show(&again, &o);
    cr_assert_null(eddy_from_dlpack(&again.managed, NULL));
    expect_error(EDDY_DEVICE_LOST, "the device is lost (cuda:0)");
    managed->deleter(managed);
    eddy_release(&t);
    eddy_sync(EDDY_FOREVER);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(s.deleted, 1);
    cr_assert_eq(again.deleted, 0);
}

Test(cuda_dlpack, one_thread_is_enough) {
    others o = others_begin(0);
    shown s;
    show(&s, &o);
    others_write(&o, 1);
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *in = import(&s, &o), *out = eddy_add(in, in);
    struct DLManagedTensorVersioned *managed = export(out, &o);
    others_read(&o, managed->dl_tensor.data);
    others_wait(&o);
    expect_elements(o.pinned, 2, 2);
    managed->deleter(managed);
    eddy_scope_end(scope);
    cr_assert_eq(s.deleted, 1);
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    others_end(&o);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}
