/* Graphs that lie on several devices, two of them CUDA's: gradients go back the way that elements came, and have the CPU's bits. On the fake driver (tests/fake_cuda). */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/device.h>
#include <string.h>
#include <tests/fake_cuda/devices.h>
#include <tests/fake_cuda/findings.h>
#include <tests/rounds.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static void expect_error(eddy_status status, const char *text) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, text), "%s", error.message);
}

/* Nothing is left of a graph, nor has the fake found anything. */
static void expect_clean(void) {
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TAPE).bytes, 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

static void expect_on(const eddy_tensor *tensor, eddy_device device) {
    cr_assert(eddy_device_of(tensor).kind == device.kind &&
              eddy_device_of(tensor).index == device.index);
}

static eddy_tensor *leaf(eddy_tensor *tensor) {
    cr_assert_eq(eddy_requires_grad_set(tensor, true), EDDY_OK);
    return tensor;
}

static bool is_float(eddy_dtype dtype) {
    return dtype == EDDY_F32 || dtype == EDDY_F64 || dtype == EDDY_F16 || dtype == EDDY_BF16;
}

/* Numbers of the dtype that are not round, if it is a float's; -1 to 1, or 0 to 60. */
static eddy_tensor *numbers(eddy_shape shape, eddy_dtype dtype, eddy_device device) {
    float values[64];
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * 37 + count) % 61);
    for (int64_t i = 0; i < count && is_float(dtype); i++)
        values[i] = values[i] / 30.7f - 1;
    return eddy_to_device(eddy_cast(eddy_from_data(values, shape, EDDY_F32, NULL), dtype), device);
}

/* ---- training ---- */

#define ROWS 6
#define COLUMNS 5
#define ROOM ((size_t)ROWS * COLUMNS)

/* Where the parts of the graph lie. */
typedef struct places {
    eddy_device first, second, last;
} places;

static const places on_cpu = {{EDDY_DEVICE_CPU, 0}, {EDDY_DEVICE_CPU, 0}, {EDDY_DEVICE_CPU, 0}};

/* What is learned, and what the optimisers know of it: of the first part SGD with momentum, of the second Adam. */
enum { WEIGHT, BIAS, WEIGHT_VELOCITY, BIAS_VELOCITY, TABLE, TABLE_M, TABLE_V, STEP, TENSORS };

typedef struct model {
    places on;
    eddy_tensor *of[TENSORS];
    eddy_tensor *index; /* beside the table */
} model;

static model model_make(places on, eddy_dtype dtype) {
    static const int64_t zero = 0, index[ROWS] = {3, 0, 5, 3, 3, 1};
    model made = {.on = on};
    made.of[WEIGHT] = leaf(numbers(EDDY_SHAPE(ROWS, COLUMNS), dtype, on.first));
    made.of[BIAS] = leaf(numbers(EDDY_SHAPE(COLUMNS), dtype, on.first));
    made.of[WEIGHT_VELOCITY] = eddy_zeros_like(made.of[WEIGHT], NULL);
    made.of[BIAS_VELOCITY] = eddy_zeros_like(made.of[BIAS], NULL);
    made.of[TABLE] = leaf(numbers(EDDY_SHAPE(ROWS, COLUMNS), dtype, on.second));
    made.of[TABLE_M] = eddy_zeros_like(made.of[TABLE], NULL);
    made.of[TABLE_V] = eddy_zeros_like(made.of[TABLE], NULL);
    made.of[STEP] =
        eddy_from_data(&zero, EDDY_SHAPE(), EDDY_I64, EDDY_OPTIONS(from_data, .device = on.second));
    made.index = eddy_from_data(index, EDDY_SHAPE(ROWS), EDDY_I64,
                                EDDY_OPTIONS(from_data, .device = on.second));
    return made;
}

/* A turned view goes there, a part comes back, and is used beside what never left. */
static eddy_tensor *loss_of(const model *m) {
    eddy_tensor *weight = m->of[WEIGHT], *u = eddy_tanh(eddy_add(weight, m->of[BIAS]));
    eddy_tensor *there = eddy_to_device(eddy_transpose(u, 0, 1), m->on.second);
    eddy_tensor *rows = eddy_embedding(m->index, m->of[TABLE], NULL);
    eddy_tensor *shares = eddy_softmax(eddy_mul(eddy_transpose(there, 0, 1), rows), 1);
    eddy_tensor *back = eddy_to_device(eddy_narrow(shares, 1, 1, 3), m->on.first);
    eddy_tensor *sum = eddy_sum(eddy_mul(back, eddy_narrow(weight, 1, 0, 3)), EDDY_ALL_AXES, NULL);
    eddy_tensor *mean = eddy_mean(eddy_mul(rows, rows), EDDY_ALL_AXES, NULL);
    return eddy_add(eddy_to_device(sum, m->on.last), eddy_to_device(mean, m->on.last));
}

static bool has_stepped(const model *m) {
    eddy_tensor *const *of = m->of;
    eddy_list first = EDDY_LIST(of[WEIGHT], of[BIAS]), second = EDDY_LIST(of[TABLE]);
    eddy_tensor *grads[3];
    eddy_scope *scope = eddy_scope_begin();
    bool is_well = eddy_backward(loss_of(m)) == EDDY_OK && eddy_grads_of(first, grads) == EDDY_OK &&
                   eddy_grads_of(second, grads + 2) == EDDY_OK &&
                   eddy_sgd_momentum_step(first, (eddy_list){grads, 2},
                                          EDDY_LIST(of[WEIGHT_VELOCITY], of[BIAS_VELOCITY]),
                                          EDDY_S(0.1), EDDY_S(0.9), NULL) == EDDY_OK &&
                   eddy_adam_step(second, (eddy_list){grads + 2, 1}, EDDY_LIST(of[TABLE_M]),
                                  EDDY_LIST(of[TABLE_V]), of[STEP], EDDY_S(0.01), NULL) == EDDY_OK;
    is_well &= eddy_grads_zero(first) == EDDY_OK && eddy_grads_zero(second) == EDDY_OK;
    eddy_scope_end(scope);
    return is_well;
}

typedef double results[TENSORS][ROWS * COLUMNS];

static void train(places on, eddy_dtype dtype, results got) {
    eddy_scope *scope = eddy_scope_begin();
    model m = model_make(on, dtype);
    for (int i = 0; i < 4; i++)
        cr_assert(has_stepped(&m));
    for (int i = 0; i < TENSORS; i++)
        cr_assert_eq(eddy_read_as(m.of[i], EDDY_F64, got[i],
                                  (size_t)eddy_count_of(m.of[i]) * sizeof(double), NULL),
                     EDDY_OK);
    expect_on(m.of[TABLE], on.second);
    eddy_scope_end(scope);
}

static void expect_bits_of_the_cpu(places on, eddy_dtype dtype) {
    static results here, there; /* zeros where a tensor has no elements */
    train(on_cpu, dtype, here);
    train(on, dtype, there);
    for (int i = 0; i < TENSORS; i++)
        cr_assert_eq(memcmp(here[i], there[i], sizeof(here[i])), 0, "%s, tensor %d: %g, not %g",
                     eddy_dtype_name(dtype), i, there[i][0], here[i][0]);
}

Test(cuda_across, training_has_the_bits_of_the_cpu, .timeout = 120) {
    cuda_ask_for_two();
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    const places all[] = {{EDDY_CUDA(0), EDDY_CUDA(1), EDDY_CPU},
                          {EDDY_CUDA(1), EDDY_CUDA(0), EDDY_CUDA(1)},
                          {EDDY_CPU, EDDY_CUDA(0), EDDY_CUDA(1)},
                          {EDDY_CUDA(0), EDDY_FAR(0), EDDY_CUDA(1)}};
    for (size_t d = 0; d < ROUNDS_OF(COUNT_OF(dtypes)); d++)
        for (size_t i = 0; i < COUNT_OF(all); i++)
            expect_bits_of_the_cpu(all[i], dtypes[d]);
    expect_clean();
}

Test(cuda_across, optimisers_take_the_tensors_of_one_device) {
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = numbers(EDDY_SHAPE(3), EDDY_F32, EDDY_CUDA(0)),
                *b = numbers(EDDY_SHAPE(3), EDDY_F32, EDDY_CUDA(1));
    cr_assert_eq(eddy_sgd_step(EDDY_LIST(a, b), EDDY_LIST(a, b), EDDY_S(0.1), NULL),
                 EDDY_DEVICE_MISMATCH);
    expect_error(EDDY_DEVICE_MISMATCH,
                 "sgd_step: operand 1 is on cuda:1, and those before it on cuda:0");
    cr_assert_eq(eddy_clip_grad_norm(EDDY_LIST(a, b), EDDY_NONE, EDDY_S(1)), EDDY_DEVICE_MISMATCH);
    expect_error(EDDY_DEVICE_MISMATCH,
                 "clip_grad_norm: operand 1 is on cuda:1, and those before it on cuda:0");
    eddy_scope_end(scope);
    expect_clean();
}

/* ---- other graphs ---- */

static int hook_calls;

static eddy_tensor *halve(void *context, eddy_tensor *gradient) {
    expect_on(gradient, *(const eddy_device *)context);
    hook_calls++;
    return eddy_mul_s(gradient, EDDY_S(0.5));
}

static void expect_f32(eddy_tensor *tensor, const float *expected, int64_t count) {
    float found[ROWS * COLUMNS];
    cr_assert_eq(eddy_read(tensor, found, (size_t)count * sizeof(float), NULL), EDDY_OK);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(found[i], expected[i], "element %d: %g", (int)i, (double)found[i]);
}

/* The parts of its gradient come from all of them. */
Test(cuda_across, a_tensor_is_used_on_all_devices) {
    cuda_ask_for_two();
    static const eddy_device all[] = {
        {EDDY_DEVICE_CUDA, 0}, {EDDY_DEVICE_CUDA, 1}, {EDDY_DEVICE_FAR, 0}, {EDDY_DEVICE_CPU, 0}};
    eddy_scope *scope = eddy_scope_begin();
    for (size_t home = 0; home < COUNT_OF(all); home++) {
        float ones[] = {1, 2, 4};
        eddy_tensor *x = leaf(eddy_from_data(ones, EDDY_SHAPE(3), EDDY_F32,
                                             EDDY_OPTIONS(from_data, .device = all[home])));
        eddy_tensor *copies[COUNT_OF(all)], *squares[COUNT_OF(all)];
        for (size_t i = 0; i < COUNT_OF(all); i++) {
            copies[i] = eddy_to_device(x, all[i]);
            squares[i] = eddy_sum(eddy_mul(copies[i], copies[i]), EDDY_ALL_AXES, NULL);
        }
        cr_assert_eq(eddy_grad_keep(copies[1]), EDDY_OK);
        cr_assert_eq(eddy_grad_hook_add(copies[1], halve, (void *)&all[1], NULL), EDDY_OK);
        cr_assert_eq(eddy_backward_from((eddy_list){squares, COUNT_OF(all)}, EDDY_LIST(), NULL),
                     EDDY_OK);
        expect_on(eddy_grad_of(x), all[home]);
        expect_f32(eddy_grad_of(x), (float[]){7, 14, 28}, 3);
        expect_on(eddy_grad_of(copies[1]), all[1]);
        expect_f32(eddy_grad_of(copies[1]), (float[]){1, 2, 4}, 3);
    }
    cr_assert_eq(hook_calls, COUNT_OF(all));
    eddy_scope_end(scope);
    expect_clean();
}

Test(cuda_across, gradients_have_gradients) {
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    float numbers_of_x[] = {1, 2, 3};
    eddy_tensor *x = leaf(eddy_from_data(numbers_of_x, EDDY_SHAPE(3), EDDY_F32,
                                         EDDY_OPTIONS(from_data, .device = EDDY_CUDA(0)))),
                *there = eddy_to_device(x, EDDY_CUDA(1)), *slope;
    eddy_tensor *cubes = eddy_mul(eddy_to_device(eddy_mul(there, there), EDDY_CUDA(0)), x);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(eddy_sum(cubes, EDDY_ALL_AXES, NULL)), EDDY_LIST(x),
                                  EDDY_LIST(), EDDY_OPTIONS(backward, .creates_graph = true),
                                  &slope),
                 EDDY_OK);
    expect_on(slope, EDDY_CUDA(0));
    expect_f32(slope, (float[]){3, 12, 27}, 3);
    cr_assert_eq(eddy_backward(eddy_sum(slope, EDDY_ALL_AXES, NULL)), EDDY_OK);
    expect_f32(eddy_grad_of(x), (float[]){6, 12, 18}, 3);
    eddy_scope_end(scope);
    expect_clean();
}

/* ---- copies of all layouts ---- */

enum { TURNED, PART, ONE, NOTHING, TURNED_PART, SPREAD, VIEWS };

static eddy_tensor *view_of(eddy_tensor *t, int which) {
    switch (which) {
    case TURNED:
        return eddy_transpose(t, 0, 1);
    case PART:
        return eddy_narrow(t, 1, 1, 3);
    case ONE:
        return eddy_select(eddy_select(t, 0, 2), 0, 1);
    case NOTHING:
        return eddy_narrow(t, 0, 2, 0);
    case TURNED_PART:
        return eddy_transpose(eddy_narrow(t, 0, 1, 4), 0, 1);
    default:
        return eddy_expand(eddy_narrow(t, 0, 1, 1), EDDY_SHAPE(3, COLUMNS));
    }
}

static void expect_same(eddy_tensor *here, eddy_tensor *there) {
    char first[ROOM * 8], second[ROOM * 8];
    size_t bytes = (size_t)eddy_count_of(here) * eddy_dtype_bytes(eddy_dtype_of(here));
    cr_assert_eq(eddy_read(here, first, bytes, NULL), EDDY_OK);
    cr_assert_eq(eddy_read(there, second, bytes, NULL), EDDY_OK);
    cr_assert_eq(memcmp(first, second, bytes), 0, "%s", eddy_dtype_name(eddy_dtype_of(here)));
}

/* What one view's elements become in another on the other device. */
static void cross_into(eddy_tensor *here, eddy_tensor *there, eddy_device to, int which) {
    eddy_tensor *sources[] = {here, there}, *targets[2];
    for (int i = 0; i < 2; i++) {
        targets[i] = eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), eddy_dtype_of(here),
                                EDDY_OPTIONS(zeros, .device = i == 0 ? EDDY_CPU : to));
        cr_assert_eq(eddy_copy_into(view_of(sources[i], which), view_of(targets[i], which)),
                     EDDY_OK);
    }
    expect_same(targets[0], targets[1]);
}

/* A pass from the view's copy, or of the view itself on the CPU. */
static eddy_tensor *gradient_of(eddy_tensor *base, eddy_tensor *copy) {
    eddy_tensor *seed = eddy_mul_s(eddy_detach(copy), EDDY_S(3));
    cr_assert_eq(eddy_backward_from(EDDY_LIST(copy), EDDY_LIST(seed), NULL), EDDY_OK);
    return eddy_grad_of(base);
}

static void cross(eddy_dtype dtype, eddy_device from, eddy_device to, int which) {
    eddy_tensor *here = numbers(EDDY_SHAPE(ROWS, COLUMNS), dtype, EDDY_CPU),
                *there = numbers(EDDY_SHAPE(ROWS, COLUMNS), dtype, from);
    if (which != SPREAD)
        cross_into(here, there, to, which);
    if (is_float(dtype))
        (void)leaf(here), (void)leaf(there);
    eddy_tensor *view = view_of(here, which), *copy = eddy_to_device(view_of(there, which), to);
    expect_on(copy, to);
    expect_same(view, copy);
    if (!is_float(dtype))
        return;
    eddy_tensor *gradient = gradient_of(there, copy);
    expect_on(gradient, from);
    expect_same(gradient_of(here, view), gradient);
}

Test(cuda_across, views_of_every_dtype_go_there_and_their_gradients_back, .timeout = 120) {
    cuda_ask_for_two();
    static const eddy_device ways[][2] = {{{EDDY_DEVICE_CUDA, 0}, {EDDY_DEVICE_CUDA, 1}},
                                          {{EDDY_DEVICE_CUDA, 1}, {EDDY_DEVICE_CUDA, 0}},
                                          {{EDDY_DEVICE_FAR, 0}, {EDDY_DEVICE_CUDA, 1}},
                                          {{EDDY_DEVICE_CUDA, 1}, {EDDY_DEVICE_FAR, 0}},
                                          {{EDDY_DEVICE_CPU, 0}, {EDDY_DEVICE_CUDA, 1}},
                                          {{EDDY_DEVICE_CUDA, 1}, {EDDY_DEVICE_CPU, 0}}};
    for (int d = 0; d < ROUNDS_OF(EDDY_DTYPE_COUNT); d++)
        for (size_t w = 0; w < COUNT_OF(ways); w++)
            for (int v = 0; v < VIEWS; v++) {
                eddy_scope *scope = eddy_scope_begin();
                cross((eddy_dtype)d, ways[w][0], ways[w][1], v);
                eddy_scope_end(scope);
            }
    expect_clean();
}

/* ---- one of them is lost ---- */

/* By a call of other code, which Eddy hears of with its own next one. */
static void lose(int32_t index) {
    const eddy_cuda_device *device;
    eddy_cu_stream stream;
    eddy_cu_address memory;
    char why[160];
    cr_assert_eq(eddy_cuda_driver_open(why, sizeof(why)), EDDY_OK);
    eddy_cuda_devices_find();
    cr_assert_eq(eddy_cuda_device_start(index, &device, why, sizeof(why)), EDDY_OK);
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    cr_assert_eq(eddy_cuda.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0), 0);
    cr_assert_eq(eddy_cuda.memory_acquire(&memory, 512), 0);
    while (eddy_cuda.fill_bytes(memory, 0, 512, stream) == 0) { /* one of them fails */
    }
}

static void expect_lost(eddy_tensor *tensor, eddy_status status, int32_t index) {
    char text[64];
    snprintf(text, sizeof(text), "the device is lost (cuda:%d)", (int)index);
    cr_assert_eq(eddy_wait(tensor, EDDY_FOREVER), status);
    expect_error(status, text);
}

static void expect_others_go_on(eddy_device survivor) {
    expect_bits_of_the_cpu((places){survivor, EDDY_CPU, survivor}, EDDY_F32);
}

/* Before the way back. */
static void lose_behind_the_loss(int32_t lost) {
    fake_cuda_fails("cuMemsetD8Async:40");
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    eddy_device survivor = EDDY_CUDA(1 - lost);
    model m = model_make((places){EDDY_CUDA(0), EDDY_CUDA(1), EDDY_CPU}, EDDY_F32);
    eddy_tensor *alone = leaf(numbers(EDDY_SHAPE(3), EDDY_F32, survivor));
    eddy_tensor *loss = loss_of(&m), *other = eddy_sum(eddy_add(alone, alone), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    lose(lost);
    cr_assert_eq(eddy_backward_from(EDDY_LIST(loss, other), EDDY_LIST(), NULL), EDDY_OK);
    expect_lost(eddy_grad_of(m.of[WEIGHT]), EDDY_DEVICE_LOST, lost);
    expect_lost(eddy_grad_of(m.of[BIAS]), EDDY_DEVICE_LOST, lost);
    expect_lost(eddy_grad_of(m.of[TABLE]), EDDY_DEVICE_LOST, lost);
    expect_f32(eddy_grad_of(alone), (float[]){2, 2, 2}, 3);
    /* A step with a lost gradient is skipped, and takes nothing from the parameter. */
    eddy_tensor *param = m.of[lost == 0 ? TABLE : WEIGHT];
    cr_assert_eq(eddy_sgd_step(EDDY_LIST(param), EDDY_LIST(eddy_grad_of(param)), EDDY_S(0.1), NULL),
                 EDDY_OK);
    expect_lost(param, EDDY_SKIPPED, lost);
    cr_assert_eq(eddy_recover(EDDY_LIST(param)), EDDY_OK);
    expect_same(numbers(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, EDDY_CPU), param);
    expect_others_go_on(survivor);
    eddy_scope_end(scope);
    expect_clean();
}

Test(cuda_across, the_first_is_lost_behind_the_loss) {
    lose_behind_the_loss(0);
}

Test(cuda_across, the_second_is_lost_behind_the_loss) {
    lose_behind_the_loss(1);
}

static bool is_lost(eddy_tensor *kept) {
    eddy_status status = eddy_wait(eddy_add(kept, kept), EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert(status == EDDY_OK || status == EDDY_DEVICE_LOST);
    return status == EDDY_DEVICE_LOST;
}

/* At a call of the driver's, anywhere in a step: which device makes it depends on the threads. */
static void lose_within(const char *entry) {
    fake_cuda_fails(entry);
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    model m = model_make((places){EDDY_CUDA(0), EDDY_CUDA(1), EDDY_CPU}, EDDY_F32);
    eddy_tensor *kept[2];
    for (int i = 0; i < 2; i++) {
        kept[i] = numbers(EDDY_SHAPE(3), EDDY_F32, EDDY_CUDA(i));
        cr_assert_eq(eddy_wait(kept[i], EDDY_FOREVER), EDDY_OK);
    }
    for (int i = 0; i < 4; i++) {
        (void)has_stepped(&m);
        eddy_error_take(NULL);
    }
    bool first = is_lost(kept[0]), second = is_lost(kept[1]);
    cr_assert_neq(first, second, "one of them is lost");
    /* What the steps have not written to is there; what they would have written is as before the first that failed. */
    for (int i = first ? TABLE : WEIGHT; i < (first ? TENSORS : TABLE); i++) {
        if (eddy_error_of(m.of[i], EDDY_FOREVER, NULL) != EDDY_OK)
            expect_lost(m.of[i], EDDY_SKIPPED, first ? 0 : 1);
        cr_assert_eq(eddy_recover(EDDY_LIST(m.of[i])), EDDY_OK);
        cr_assert_eq(eddy_wait(m.of[i], EDDY_FOREVER), EDDY_OK);
    }
    expect_others_go_on(EDDY_CUDA(first ? 1 : 0));
    eddy_scope_end(scope);
    expect_clean();
}

Test(cuda_across, one_is_lost_at_an_early_launch) {
    lose_within("cuLaunchKernel:12");
}

Test(cuda_across, one_is_lost_at_a_launch) {
    lose_within("cuLaunchKernel:45");
}

Test(cuda_across, one_is_lost_at_a_late_launch) {
    lose_within("cuLaunchKernel:90");
}

Test(cuda_across, one_is_lost_at_a_copy_to_the_other) {
    lose_within("cuMemcpyPeerAsync:3");
}
