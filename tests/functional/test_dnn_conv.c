/* Convolutions on a CUDA device by the library of convolutions, on its fake (tests/fake_cuda/dnn): when it is asked, what happens without memory and where calls fail. That convolutions are right is
 * for test_cuda_conv.c to say, which runs with the library and without. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <tests/functional/failing_call.h>
#include <tests/functional/fake_dnn.h>
#include <tests/functional/twin.h>

#define ELEMENTS (256 * 64)

/* Contiguous, of small integers: any order of sums has the same bits. */
static twin whole(eddy_shape shape) {
    float elements[ELEMENTS];
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    cr_assert_leq(count, ELEMENTS);
    for (int64_t i = 0; i < ELEMENTS; i++)
        elements[i] = (float)(i * 7 % 5 - 2);
    return twin_of(elements, shape, EDDY_F32);
}

static twin image(int64_t size) {
    return whole(EDDY_SHAPE(1, 3, size, size + 1));
}

static twin window(void) {
    return whole(EDDY_SHAPE(4, 3, 3, 2));
}

static void expect_conv(twin x, twin weight) {
    twin_expect_equal("a convolution", eddy_conv2d(x.here, weight.here, EDDY_NONE, NULL),
                      eddy_conv2d(x.there, weight.there, EDDY_NONE, NULL));
}

static void expect_size(int64_t size) {
    eddy_scope *scope = eddy_scope_begin();
    expect_conv(image(size), window());
    eddy_scope_end(scope);
}

/* A size that the library takes; it refuses some, by the seed. */
static int64_t size_that_is_taken(int64_t from) {
    for (int64_t size = from;; size++) {
        long before = executions();
        expect_size(size);
        if (executions() > before)
            return size;
    }
}

static void expect_convolutions_by(const char *expected) {
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(TWIN_THERE, &info), EDDY_OK);
    cr_assert_str_eq(info.convolutions, expected);
}

Test(dnn_conv, most_convolutions_are_the_librarys) {
    expect_convolutions_by("");
    for (int64_t size = 3; size < 33; size++)
        expect_size(size);
    cr_assert_gt(executions(), 20, "%ld of 30", executions());
    expect_convolutions_by("cuDNN 9.0.0");
    twin_expect_no_findings();
}

/* How many of 30 convolutions of 1 + 2^-12, which TF32 does not hold, with ones are those of ones. Others are right. */
static int convolutions_of_tf32(bool allows_tf32) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_tf32 = allows_tf32));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_runtime_release(&runtime);
    int rounded = 0;
    for (int64_t size = 3; size < 33; size++) {
        eddy_scope *scope = eddy_scope_begin();
        const eddy_full_options *there = EDDY_OPTIONS(full, .device = TWIN_THERE);
        eddy_tensor *x = eddy_full(EDDY_SHAPE(1, 3, size, size + 1), EDDY_S(1 + 1.0 / 4096),
                                   EDDY_F32, there),
                    *weight = eddy_full(EDDY_SHAPE(4, 3, 3, 2), EDDY_S(1), EDDY_F32, there);
        double found = eddy_item_f64(
            eddy_max(eddy_conv2d(x, weight, EDDY_NONE, NULL), EDDY_ALL_AXES, NULL), NULL);
        cr_assert(found == 18 * (1 + 1.0 / 4096) || found == 18, "%.17g", found);
        rounded += found == 18;
        eddy_scope_end(scope);
    }
    return rounded;
}

Test(dnn_conv, f32_is_rounded_to_tf32_on_request_alone) {
    cr_assert_eq(convolutions_of_tf32(false), 0);
    cr_assert_gt(convolutions_of_tf32(true), 5);
    twin_expect_no_findings();
}

Test(dnn_conv, it_is_asked_once_for_a_geometry) {
    int64_t size = size_that_is_taken(5);
    long before = executions(), made = descriptors();
    for (int i = 0; i < 3; i++)
        expect_size(size);
    cr_assert_eq(executions(), before + 3);
    cr_assert_eq(descriptors(), made + 3);
    twin_expect_no_findings();
}

/* Nor what it refuses is asked again. */
Test(dnn_conv, a_refusal_is_remembered) {
    int refused = 0;
    for (int64_t columns = 2; columns < 100; columns++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = whole(EDDY_SHAPE(1, 3, 4, columns)), weight = window();
        long before = executions();
        expect_conv(x, weight);
        bool is_refused = executions() == before;
        long made = descriptors();
        expect_conv(x, weight);
        cr_assert_eq(descriptors(), made + !is_refused);
        refused += is_refused;
        eddy_scope_end(scope);
    }
    /* Those that neither list has an engine for. */
    cr_assert(refused > 0 && refused < 98 / 5, "%d of 98", refused);
    twin_expect_no_findings();
}

/* Of rows that begin elsewhere the plan may not be the same. */
Test(dnn_conv, it_is_asked_again_for_another_alignment) {
    eddy_scope *scope = eddy_scope_begin();
    twin all = whole(EDDY_SHAPE(3 * 8 * 8 + 1)), weight = window();
    for (int64_t begin = 0; begin < 2; begin++) {
        eddy_tensor *here = eddy_slice(all.here, 0, begin, 192 + begin, 1),
                    *there = eddy_slice(all.there, 0, begin, 192 + begin, 1);
        long made = descriptors();
        expect_conv((twin){eddy_reshape(here, EDDY_SHAPE(3, 8, 8)),
                           eddy_reshape(there, EDDY_SHAPE(3, 8, 8))},
                    weight);
        cr_assert_gt(descriptors(), made + 5);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* 128 sets of 4 places, each with the parts of a plan; and the context. */
#define OBJECTS_MOST (128 * 4 * 8 + 1)

Test(dnn_conv, what_is_remembered_is_bounded) {
    for (int64_t rows = 3; rows < 31; rows++)
        for (int64_t columns = 2; columns < 30; columns++) {
            eddy_scope *scope = eddy_scope_begin();
            expect_conv(whole(EDDY_SHAPE(1, 1, rows, columns)), whole(EDDY_SHAPE(1, 1, 2, 2)));
            eddy_scope_end(scope);
        }
    cr_assert_leq(objects(), OBJECTS_MOST);
    cr_assert_gt(objects(), OBJECTS_MOST / 2);
    twin_expect_no_findings();
}

static eddy_tensor *squares_of(eddy_tensor *x) {
    return eddy_sum(eddy_mul(x, x), EDDY_ALL_AXES, NULL);
}

/* Whether channels of images or weights lie last, or not: each as it lies, and so are gradients. */
Test(dnn_conv, gradients_are_the_librarys_in_both_layouts) {
    long before = executions();
    int asked = 0;
    for (int64_t size = 4; size < 12; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = whole(EDDY_SHAPE(2, size, size, 4)), weight = whole(EDDY_SHAPE(6, 2, 3, 3));
        x = (twin){eddy_permute(x.here, EDDY_AXES(0, 3, 1, 2)),
                   eddy_permute(x.there, EDDY_AXES(0, 3, 1, 2))};
        if (size % 2)
            x = (twin){eddy_contiguous(x.here), eddy_contiguous(x.there)};
        eddy_tensor *leaves[] = {x.here, weight.here, x.there, weight.there};
        for (int i = 0; i < 4; i++)
            cr_assert_eq(eddy_requires_grad_set(leaves[i] = eddy_detach(leaves[i]), true), EDDY_OK);
        const eddy_conv2d_options *options =
            EDDY_OPTIONS(conv2d, .groups = 2, .padding = {1, 1}, .stride = {2, 1});
        for (int i = 0; i < 4; i += 2)
            cr_assert_eq(eddy_backward(
                             squares_of(eddy_conv2d(leaves[i], leaves[i + 1], EDDY_NONE, options))),
                         EDDY_OK);
        for (int i = 0; i < 2; i++)
            twin_expect_equal("a gradient", eddy_grad_of(leaves[i]), eddy_grad_of(leaves[i + 2]));
        asked += 3;
        eddy_scope_end(scope);
    }
    cr_assert_gt(executions(), before + asked * 2 / 3, "%ld of %d", executions() - before, asked);
    twin_expect_no_findings();
}

/* conv1d: as images of one row. */
Test(dnn_conv, rows_are_the_librarys) {
    long before = executions();
    for (int64_t length = 4; length < 24; length++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = whole(EDDY_SHAPE(2, 3, length)), weight = whole(EDDY_SHAPE(5, 3, 4)),
             bias = whole(EDDY_SHAPE(5));
        twin_expect_equal("conv1d", eddy_conv1d(x.here, weight.here, bias.here, NULL),
                          eddy_conv1d(x.there, weight.there, bias.there, NULL));
        eddy_scope_end(scope);
    }
    cr_assert_gt(executions(), before + 10, "%ld of 20", executions() - before);
    twin_expect_no_findings();
}

/* It does not take them, and neither is it asked. */
Test(dnn_conv, operands_with_gaps_are_not_the_librarys) {
    int64_t size = size_that_is_taken(7);
    eddy_scope *scope = eddy_scope_begin();
    twin x = image(size), weight = window(), all = whole(EDDY_SHAPE(1, 6, size, size + 1)),
         windows = whole(EDDY_SHAPE(4, 3, 6, 2));
    long made = descriptors();
    expect_conv((twin){eddy_slice(all.here, 1, 0, 6, 2), eddy_slice(all.there, 1, 0, 6, 2)},
                weight);
    expect_conv(
        x, (twin){eddy_slice(windows.here, 2, 0, 6, 2), eddy_slice(windows.there, 2, 0, 6, 2)});
    cr_assert_eq(descriptors(), made);
    expect_conv(x, weight);
    cr_assert_eq(descriptors(), made + 1);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static eddy_device_memory memory_of_device(void) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(TWIN_THERE, &memory), EDDY_OK);
    return memory;
}

Test(dnn_conv, a_workspace_is_the_devices_memory_and_comes_back) {
    for (int64_t columns = 30; columns < 60; columns++) {
        eddy_scope *scope = eddy_scope_begin();
        expect_conv(whole(EDDY_SHAPE(1, 1, 30, columns)), whole(EDDY_SHAPE(2, 1, 1, 2)));
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_device_memory memory = memory_of_device();
    cr_assert_eq(memory.live_bytes, 0);
    /* More than the largest x and its result, of which a workspace has as much. */
    cr_assert_gt(memory.peak_bytes, (1 + 2) * 30 * 60 * 4 + 4096, "%lld",
                 (long long)memory.peak_bytes);
    cr_assert_gt(eddy_device_memory_trim(TWIN_THERE), 0);
    cr_assert_eq(memory_of_device().cached_bytes, 0);
    twin_expect_no_findings();
}

#define STREAMS 3

/* What one stream's convolution has for a workspace another's may have after it, and not before. */
Test(dnn_conv, convolutions_of_several_streams_stay_apart) {
    eddy_stream *streams[STREAMS];
    eddy_scope *scope = eddy_scope_begin();
    twin x[STREAMS], weight = window();
    for (int s = 0; s < STREAMS; s++) {
        streams[s] = eddy_stream_create(TWIN_THERE, NULL);
        x[s] = whole(EDDY_SHAPE(16, 3, 8, 9 + s));
    }
    for (int round = 0; round < 30; round++) {
        int s = round % STREAMS;
        twin part = {eddy_slice(x[s].here, 0, 0, 5 + round / 3, 1),
                     eddy_slice(x[s].there, 0, 0, 5 + round / 3, 1)};
        cr_assert_eq(eddy_stream_scope_begin(streams[s]), EDDY_OK);
        eddy_tensor *there = eddy_conv2d(part.there, weight.there, EDDY_NONE, NULL);
        eddy_stream_scope_end();
        twin sum = {eddy_add_s(eddy_conv2d(part.here, weight.here, EDDY_NONE, NULL), EDDY_S(1)),
                    eddy_add_s(there, EDDY_S(1))};
        if (s == STREAMS - 1)
            twin_expect_equal("a convolution", sum.here, sum.there);
    }
    eddy_scope_end(scope);
    for (int s = 0; s < STREAMS; s++)
        eddy_stream_release(&streams[s]);
    twin_expect_no_findings();
}

/* Room for the result, and none for the workspace. */
Test(dnn_conv, without_memory_for_a_workspace_another_plan_does) {
    int asked_twice = 0;
    cr_assert_eq(eddy_device_memory_limit_set(TWIN_THERE, 2 << 20), EDDY_OK);
    eddy_scope *all = eddy_scope_begin();
    twin weight = window();
    for (int64_t size = 20; size < 36; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = image(size);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        int64_t left = memory_of_device().cached_bytes,
                result = (4 * (size - 2) * size * 4 + 511) / 512 * 512;
        eddy_tensor *rest = eddy_empty(EDDY_SHAPE(left - result - 512), EDDY_U8,
                                       EDDY_OPTIONS(empty, .device = TWIN_THERE));
        cr_assert_eq(eddy_wait(rest, EDDY_FOREVER), EDDY_OK);
        long graphs = calls_of("cudnnBackendFinalize");
        expect_conv(x, weight);
        graphs = calls_of("cudnnBackendFinalize") - graphs;
        /* Three tensors, the window, the operation, the graph, heuristics, a plan, and addresses. */
        asked_twice += graphs > 2 * 8;
        eddy_scope_end(scope);
    }
    eddy_scope_end(all);
    cr_assert_gt(asked_twice, 2);
    twin_expect_no_findings();
}

/* The library cannot look whether it is to do nothing. */
Test(dnn_conv, what_is_written_in_part_is_not_the_librarys) {
    int64_t size = size_that_is_taken(7);
    eddy_scope *scope = eddy_scope_begin();
    eddy_shape of_result = EDDY_SHAPE(1, 4, size - 2, size);
    twin x = image(size), weight = window(), target = whole(of_result),
         all = whole(EDDY_SHAPE(2, 4, size - 2, size));
    twin part = {eddy_slice(all.here, 0, 1, 2, 1), eddy_slice(all.there, 0, 1, 2, 1)};
    long before = executions();
    cr_assert_eq(eddy_conv2d_into(x.here, weight.here, EDDY_NONE, part.here, NULL), EDDY_OK);
    cr_assert_eq(eddy_conv2d_into(x.there, weight.there, EDDY_NONE, part.there, NULL), EDDY_OK);
    twin_expect_equal("a part", all.here, all.there);
    cr_assert_eq(executions(), before);
    cr_assert_eq(eddy_conv2d_into(x.here, weight.here, EDDY_NONE, target.here, NULL), EDDY_OK);
    cr_assert_eq(eddy_conv2d_into(x.there, weight.there, EDDY_NONE, target.there, NULL), EDDY_OK);
    twin_expect_equal("all of it", target.here, target.there);
    cr_assert_eq(executions(), before + 1);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Images, one of which is not there. */
static twin images_that_are_not_there(twin x) {
    int64_t wrong[] = {0, 1000};
    twin index = twin_of(wrong, EDDY_SHAPE(2), EDDY_I64);
    return (twin){eddy_index_select(x.here, index.here, 0),
                  eddy_index_select(x.there, index.there, 0)};
}

/* It is launched all the same, and says that it is not to be believed: what is to write in place behind it writes nothing. */
Test(dnn_conv, a_convolution_of_what_has_failed_is_poisoned) {
    int taken = 0;
    for (int64_t size = 4; size < 12; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin weight = window(), target = whole(EDDY_SHAPE(2, 4, size - 2, size)),
             bad = images_that_are_not_there(image(size));
        long before = executions();
        twin result = {eddy_conv2d(bad.here, weight.here, EDDY_NONE, NULL),
                       eddy_conv2d(bad.there, weight.there, EDDY_NONE, NULL)};
        cr_assert_eq(eddy_add_inplace(target.here, result.here), EDDY_OK);
        cr_assert_eq(eddy_add_inplace(target.there, result.there), EDDY_OK);
        twin_expect_error(result.here, result.there);
        twin_expect_error(target.here, target.there);
        taken += executions() > before;
        cr_assert_eq(eddy_recover(EDDY_LIST(target.here, target.there)), EDDY_OK);
        twin_expect_equal("what was skipped", target.here, target.there);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
        eddy_scope_end(scope);
    }
    cr_assert_gt(taken, 0);
    twin_expect_no_findings();
}

Test(dnn_conv, a_library_that_is_too_old_is_not_used) {
    setenv("FAKE_CUDA_DNN_VERSION", "80907", 1);
    for (int64_t size = 3; size < 10; size++)
        expect_size(size);
    cr_assert_eq(calls_of("cudnnGetVersion"), 1);
    cr_assert_eq(descriptors() + executions(), 0);
    expect_convolutions_by("Eddy");
    twin_expect_no_findings();
}

Test(dnn_conv, everything_goes_with_the_runtime) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    for (int64_t size = 3; size < 20; size++)
        expect_size(size);
    cr_assert_gt(objects(), 0);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
    cr_assert_eq(objects(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- each call of the library fails once ---- */

/* Convolutions of several geometries, with a bias or without, forwards and back. What is read is right, or an error says why there is nothing. */
static bool are_convolutions_well(void) {
    bool is_well = true;
    for (int64_t size = 5; size < 9; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = image(size), weight = window(), bias = whole(EDDY_SHAPE(4));
        float here[512], there[512];
        eddy_tensor *y = eddy_conv2d(x.here, weight.here, bias.here, NULL),
                    *y_there = eddy_conv2d(x.there, weight.there, bias.there, NULL);
        y = eddy_conv_transpose2d(y, weight.here, EDDY_NONE, NULL);
        y_there = eddy_conv_transpose2d(y_there, weight.there, EDDY_NONE, NULL);
        size_t bytes = (size_t)(3 * size * (size + 1)) * sizeof(float);
        is_well &= eddy_read(y, here, bytes, NULL) == EDDY_OK;
        if (y_there && eddy_read(y_there, there, bytes, NULL) == EDDY_OK)
            is_well &= memcmp(here, there, bytes) == 0;
        else
            is_well &= eddy_error_take(NULL) != EDDY_OK;
        eddy_scope_end(scope);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    return is_well;
}

static const failing_run run = {.options = {.size = sizeof(eddy_runtime_options)},
                                .is_well = are_convolutions_well,
                                .calls_of = calls_of,
                                .objects = objects};

Test(dnn_conv, each_call_of_the_library_may_fail) {
    static const char *const entries[] = {
#define SYMBOL(symbol, name, result, parameters) #symbol,
        EDDY_DNN_LIST(SYMBOL)
#undef SYMBOL
    };
    static const int statuses[] = {EDDY_DNN_HOST_ALLOC_FAILED, EDDY_DNN_BAD_PARAM,
                                   EDDY_DNN_EXECUTION_FAILED, EDDY_DNN_NOT_SUPPORTED};
    for (size_t e = 1; e < sizeof(entries) / sizeof(*entries); e++) { /* the first has no status */
        for (size_t s = 0; s < sizeof(statuses) / sizeof(*statuses); s++)
            cr_assert(fails_well(&run, entries[e], 1, statuses[s]), "%s is not called", entries[e]);
        for (int number = 3; number <= 27; number += 3)
            (void)fails_well(&run, entries[e], number, statuses[number % 4]);
    }
}

/* The library's own launches and the loading of its kernel, those of Eddy's looks and copies ahead of it, memory for a workspace. */
Test(dnn_conv, calls_of_the_driver_behind_it_may_fail) {
    static const int results[] = {EDDY_CU_OUT_OF_MEMORY, EDDY_CU_LAUNCH_FAILED};
    for (int r = 0; r < 2; r++) {
        for (int number = 1; number <= 20; number += 3)
            (void)fails_well(&run, "cuLaunchKernel", number, results[r]);
        for (int number = 1; number <= 5; number++) {
            (void)fails_well(&run, "cuModuleLoadData", number, results[r]);
            /* The first is the device's start. */
            (void)fails_well(&run, "cuMemAlloc_v2", number + 1, results[r]);
        }
    }
}

/* What becomes of the call that was to launch. */
static eddy_status status_of_failure(const char *text) {
    setenv("FAKE_CUDA_FAIL_ENTRY", text, 1);
    for (int64_t size = 3;; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = image(size), weight = window();
        eddy_status status =
            eddy_wait(eddy_conv2d(x.there, weight.there, EDDY_NONE, NULL), EDDY_FOREVER);
        eddy_error_take(NULL);
        eddy_scope_end(scope);
        if (executions() > 0)
            return status;
    }
}

Test(dnn_conv, a_convolution_gets_what_the_pool_keeps) {
    setenv("FAKE_CUDA_FAIL_ENTRY", "cudnnBackendExecute:1:4004", 1);
    eddy_tensor *small = keep_a_chunk(TWIN_THERE);
    cr_assert_eq(status_of_failure("cudnnBackendExecute:1:4004"), EDDY_OK);
    eddy_release(&small);
    twin_expect_no_findings();
}

Test(dnn_conv, without_memory_a_convolution_fails) {
    cr_assert_eq(status_of_failure("cudnnBackendExecute:1:4004"), EDDY_OUT_OF_MEMORY);
    expect_size(8);
}

Test(dnn_conv, what_is_refused_late_is_not_the_librarys) {
    cr_assert_eq(status_of_failure("cudnnBackendExecute:1:3008"), EDDY_OK);
    long before = executions();
    for (int64_t size = 3; size < 20; size++)
        expect_size(size);
    cr_assert_gt(executions(), before); /* others are */
    twin_expect_no_findings();
}

Test(dnn_conv, another_failure_is_a_lost_device) {
    cr_assert_eq(status_of_failure("cudnnBackendExecute:1"), EDDY_DEVICE_LOST);
    eddy_scope *scope = eddy_scope_begin();
    twin x = image(4);
    cr_assert_eq(eddy_wait(x.there, EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}
