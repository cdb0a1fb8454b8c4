#include "driver_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A part at work. */
typedef struct worker {
    eddy_device device, other;
    driver_result *next, *end; /* where its next result goes */
    bool is_well; /* no call has said that it did nothing: what is read is what it should be */
} worker;

/* ---- what may come of a call ---- */

static bool is_explained(eddy_status status) {
    switch (status) {
    case EDDY_OK:
    case EDDY_UNSUPPORTED: /* there is no such device, as the driver has not started */
    case EDDY_OUT_OF_MEMORY:
    case EDDY_DEVICE_LOST:
    case EDDY_SKIPPED:
    case EDDY_TORN:
        return true;
    default:
        return false;
    }
}

static void refuse(const char *what, const char *status, const char *message) {
    fprintf(stderr, "%s: %s %s\n", what, status, message);
    exit(1);
}

void driver_work_expect(eddy_status status, const char *what) {
    if (!is_explained(status))
        refuse(what, eddy_status_name(status), "");
}

/* The thread's first error since this was last asked; `expected` too may have come. */
static void settle(const char *what, eddy_status expected) {
    eddy_error error = {0};
    eddy_status status = eddy_error_take(&error);
    if (status != expected && !is_explained(status))
        refuse(what, eddy_status_name(status), error.message);
    if (status != EDDY_OK && !error.message[0])
        refuse(what, eddy_status_name(status), "without a message");
}

static void note(worker *w, eddy_status status, const char *what) {
    driver_work_expect(status, what);
    w->is_well &= status == EDDY_OK;
}

#define TRY(call) note(w, (call), #call)

/* ---- results ---- */

static void take(worker *w, eddy_tensor *tensor) {
    driver_result *result = w->next++;
    if (w->next > w->end)
        refuse("take", "too many results", "");
    if (!tensor || !w->is_well)
        return;
    eddy_read_options options = {.size = sizeof(options), .timeout = DRIVER_DEADLINE};
    size_t bytes = (size_t)eddy_count_of(tensor) * sizeof(double);
    if (bytes > sizeof(result->elements))
        refuse("take", "too many elements", "");
    result->is_read = eddy_read_as(tensor, EDDY_F64, result->elements, bytes, &options) == EDDY_OK;
}

/* ---- parts: each makes what it uses ---- */

static eddy_tensor *counting(int64_t rows, int64_t columns) {
    eddy_tensor *line = eddy_arange(EDDY_S(0), EDDY_S(rows * columns), EDDY_S(1), EDDY_F32, NULL);
    return line ? eddy_reshape(line, EDDY_SHAPE(rows, columns)) : NULL;
}

static eddy_tensor *integers(const int64_t *numbers, int64_t count) {
    return eddy_from_data(numbers, EDDY_SHAPE(count), EDDY_I64, NULL);
}

static void move(worker *w) {
    eddy_from_data_options here = {.size = sizeof(here), .device = EDDY_CPU};
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    eddy_tensor *x = eddy_from_data(numbers, EDDY_SHAPE(2, 3), EDDY_F32, &here);
    eddy_tensor *there = eddy_to_device(eddy_transpose(x, 0, 1), w->device);
    eddy_tensor *on = eddy_to_device(there, w->other);
    take(w, on);
    eddy_tensor *back = eddy_to_device(eddy_add(on, on), w->device);
    if (back && there)
        TRY(eddy_copy_into(eddy_narrow(back, 0, 1, 2), eddy_narrow(there, 0, 0, 2)));
    take(w, back ? there : NULL);
    take(w, back ? eddy_to_device(there, EDDY_CPU) : NULL);
}

static void compute(worker *w) {
    eddy_tensor *x = counting(2, 3);
    eddy_tensor *y = eddy_full(EDDY_SHAPE(3), EDDY_S(0.75), EDDY_F32, NULL);
    bool is_whole = true;
    for (int i = 0; i < 4; i++) {
        eddy_tensor *t = eddy_tanh(eddy_mul_s(eddy_add(x, y), EDDY_S(0.3)));
        eddy_tensor *columns = eddy_transpose(t, 0, 1);
        eddy_tensor *half = eddy_cast(eddy_exp(columns), EDDY_BF16);
        eddy_tensor *chosen = eddy_where(eddy_gt_s(columns, EDDY_S(0.5)),
                                         eddy_cast(eddy_mul(half, half), EDDY_F32), columns);
        is_whole &= chosen != NULL;
        if (chosen)
            TRY(eddy_add_inplace(eddy_select(x, 0, 1), eddy_select(chosen, 1, 0)));
    }
    take(w, is_whole ? x : NULL);
}

static void reduce(worker *w) {
    eddy_tensor *x = counting(4, 5), *values = NULL, *places = NULL;
    take(w, eddy_sum(x, EDDY_ALL_AXES, NULL));
    take(w, eddy_mean(x, EDDY_AXES(0), NULL));
    if (x)
        TRY(eddy_max_dim(x, 1, NULL, &values, &places));
    take(w, values);
    take(w, places);
    take(w, eddy_softmax(x, 1));
    take(w, eddy_cumsum(x, 0));
    take(w, eddy_layer_norm(x, EDDY_NONE, EDDY_NONE, 1, NULL));
}

/* Of small integers, whose sums are exact in any order. */
static void multiply(worker *w) {
    eddy_tensor *x = counting(4, 6);
    take(w, eddy_mm(x, eddy_t(x)));
    take(w, eddy_linear(x, eddy_ones(EDDY_SHAPE(2, 6), EDDY_F32, NULL), EDDY_NONE));
    take(w, eddy_conv2d(eddy_reshape(x, EDDY_SHAPE(1, 1, 4, 6)),
                        eddy_ones(EDDY_SHAPE(1, 1, 2, 2), EDDY_F32, NULL), EDDY_NONE, NULL));
}

static void arrange(worker *w) {
    static const int64_t places[] = {2, 0, 1, 0};
    static const float numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};
    eddy_tensor *x = eddy_from_data(numbers, EDDY_SHAPE(8), EDDY_F32, NULL);
    eddy_tensor *index = integers(places, 4), *values = NULL, *order = NULL;
    if (x)
        TRY(eddy_sort(x, 0, NULL, &values, &order));
    take(w, values);
    take(w, order);
    take(w, eddy_index_select(x, index, 0));
    take(w, eddy_scatter_add(x, index, eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL), 0));
    eddy_tensor *many[20];
    for (int i = 0; i < 20; i++)
        many[i] = eddy_full(EDDY_SHAPE(1), EDDY_S(i), EDDY_F32, NULL);
    take(w, eddy_cat((eddy_list){many, 20}, 0));
}

/* A call that fails draws nothing. */
static void draw(worker *w) {
    TRY(eddy_seed(7));
    take(w, eddy_randn(EDDY_SHAPE(2, 5), EDDY_F32, NULL));
    TRY(eddy_seed(8));
    take(w, eddy_randint(0, 100, EDDY_SHAPE(7), EDDY_I64, NULL));
    TRY(eddy_seed(9));
    take(w, eddy_randperm(9, EDDY_I64, NULL));
    TRY(eddy_seed(10));
    take(w, eddy_dropout(eddy_ones(EDDY_SHAPE(20), EDDY_F32, NULL), EDDY_S(0.5), NULL));
}

static void train(worker *w) {
    eddy_tensor *x = counting(3, 4), *label = integers((const int64_t[]){1, 0, 1}, 3);
    eddy_tensor *weight = eddy_full(EDDY_SHAPE(2, 4), EDDY_S(0.125), EDDY_F32, NULL);
    eddy_tensor *m = eddy_zeros(EDDY_SHAPE(2, 4), EDDY_F32, NULL), *v = eddy_zeros_like(m, NULL);
    eddy_tensor *step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
    if (weight)
        TRY(eddy_requires_grad_set(weight, true));
    eddy_tensor *loss =
        eddy_cross_entropy(eddy_mul_s(eddy_linear(x, weight, EDDY_NONE), EDDY_S(0)), label, NULL);
    if (loss)
        TRY(eddy_backward(loss));
    take(w, loss);
    eddy_tensor *grad = loss && eddy_has_grad(weight) ? eddy_grad_of(weight) : NULL;
    if (grad && m && v && step) {
        eddy_no_grad_begin();
        TRY(eddy_adam_step(EDDY_LIST(weight), EDDY_LIST(eddy_add_s(grad, EDDY_S(1))), EDDY_LIST(m),
                           EDDY_LIST(v), step, EDDY_S(0.5), NULL));
        eddy_no_grad_end();
    }
    take(w, grad && m && v && step ? weight : NULL);
}

static void run_streams(worker *w) {
    eddy_stream *streams[2];
    eddy_tensor *x = counting(2, 2), *sums[2] = {x, x};
    for (int i = 0; i < 2; i++)
        streams[i] = eddy_stream_create(w->device, NULL);
    for (int i = 0; i < 4; i++) {
        bool is_in_scope = streams[i % 2] && eddy_stream_scope_begin(streams[i % 2]) == EDDY_OK;
        sums[i % 2] = eddy_add(sums[0], sums[1]);
        if (is_in_scope)
            eddy_stream_scope_end();
        eddy_event *event = eddy_event_record(streams[i % 2]);
        if (event && streams[(i + 1) % 2])
            TRY(eddy_stream_wait(streams[(i + 1) % 2], event));
        if (event && i == 3)
            TRY(eddy_event_wait(event, DRIVER_DEADLINE));
        eddy_event_release(&event);
    }
    take(w, sums[0]);
    take(w, sums[1]);
    for (int i = 0; i < 2; i++)
        eddy_stream_release(&streams[i]);
}

/* What a callback was given. */
typedef struct heard {
    double first;
    bool is_well, has_come;
} heard;

static void hear(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    heard *of = context;
    of->has_come = true;
    of->is_well = data && bytes >= (int64_t)sizeof(float);
    if (of->is_well) {
        float first;
        memcpy(&first, data, sizeof(first));
        of->first = (double)first;
    } else {
        driver_work_expect(error->status, "read_async");
    }
}

static void lend(worker *w) {
    eddy_tensor *x = counting(2, 3);
    float *elements = x ? eddy_map(x, EDDY_READ | EDDY_WRITE, DRIVER_DEADLINE) : NULL;
    if (elements) {
        elements[5] += 50;
        TRY(eddy_unmap(x));
    }
    heard of = {0};
    bool is_asked = x && eddy_read_async(eddy_sum(x, EDDY_ALL_AXES, NULL), hear, &of) == EDDY_OK;
    take(w, elements ? x : NULL);
    driver_work_expect(eddy_sync(DRIVER_DEADLINE), "sync");
    driver_work_expect(eddy_sync_deleters(DRIVER_DEADLINE), "sync_deleters");
    if (is_asked && !of.has_come)
        refuse("read_async", "its callback has not come", "");
    if (of.is_well && elements)
        *w->next = (driver_result){{of.first}, true};
}

/* An error of the call's own, and what it leaves. */
static void err(worker *w) {
    static const int64_t beyond[] = {1, 9};
    eddy_tensor *x = counting(3, 2), *kept = counting(2, 2);
    eddy_tensor *bad = eddy_index_select(x, integers(beyond, 2), 0);
    if (kept && bad)
        TRY(eddy_add_inplace(kept, bad));
    settle("err", EDDY_OK);
    if (bad && eddy_wait(bad, DRIVER_DEADLINE) == EDDY_OK)
        refuse("wait", "EDDY_OK", "for a bad index");
    settle("err", EDDY_OUT_OF_RANGE);
    if (bad && kept)
        TRY(eddy_recover(EDDY_LIST(kept)));
    take(w, bad ? kept : NULL);
    /* What a device that was lost meanwhile has left of it says why it is torn. */
    settle("err", EDDY_OUT_OF_RANGE);
}

static void replay(worker *w) {
    eddy_tensor *x = counting(2, 3), *state = eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL);
    eddy_tensor *output = NULL;
    eddy_program *program = NULL;
    bool has_run = false;
    if (x && state && eddy_record_begin(NULL) == EDDY_OK) {
        eddy_tensor *y = eddy_exp(eddy_mul_s(x, EDDY_S(0.5)));
        (void)eddy_add_into(state, eddy_sum(y, EDDY_AXES(0), NULL), state);
        program = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT},
                                                {"state", state, EDDY_ROLE_STATE},
                                                {"y", y, EDDY_ROLE_OUTPUT}));
    }
    /* Runs have the same memory by turns, so that launches come again. */
    for (int i = 0; i < 5 && program && w->is_well; i++) {
        eddy_release(&output);
        TRY(eddy_program_run(program, EDDY_LIST(x), &output));
        has_run = true;
    }
    take(w, output);
    take(w, has_run ? state : NULL);
    eddy_program_release(&program);
}

/* What is too large for the limit fails, and nothing else. */
static void limit(worker *w) {
    eddy_tensor *kept = counting(2, 3);
    if (w->device.kind != EDDY_DEVICE_CPU) {
        eddy_device_memory memory = {.size = sizeof(memory)};
        (void)eddy_device_memory_trim(w->device);
        TRY(eddy_device_memory_limit_set(w->device, 16 << 20));
        eddy_tensor *large = eddy_zeros(EDDY_SHAPE(8 << 20), EDDY_F32, NULL);
        if (large && eddy_wait(large, DRIVER_DEADLINE) == EDDY_OK)
            refuse("zeros", "EDDY_OK", "beyond the limit");
        TRY(eddy_device_memory_limit_set(w->device, 0));
        TRY(eddy_device_memory_read(w->device, &memory));
        char path[64];
        snprintf(path, sizeof(path), "/tmp/eddy-driver-faults-%ld.json", (long)getpid());
        TRY(eddy_device_memory_snapshot(w->device, path));
        unlink(path);
    }
    take(w, eddy_add(kept, kept));
}

void driver_work_run(eddy_device device, eddy_device other, driver_results *results) {
    static const struct {
        const char *name;
        void (*run)(worker *w);
    } parts[] = {{"move", move},         {"compute", compute},     {"reduce", reduce},
                 {"multiply", multiply}, {"arrange", arrange},     {"draw", draw},
                 {"train", train},       {"streams", run_streams}, {"lend", lend},
                 {"err", err},           {"replay", replay},       {"limit", limit}};
    _Static_assert(sizeof(parts) / sizeof(parts[0]) == DRIVER_PARTS,
                   "driver_work.h has another number");
    for (int p = 0; p < DRIVER_PARTS; p++) {
        worker w = {device, other, results->all[p], results->all[p] + DRIVER_RESULTS, true};
        eddy_scope *scope = eddy_scope_begin();
        bool has_device = eddy_device_scope_begin(device) == EDDY_OK;
        if (has_device)
            parts[p].run(&w);
        settle(parts[p].name, EDDY_OK);
        if (has_device)
            eddy_device_scope_end();
        eddy_scope_end(scope);
        /* What nobody has looked at: of the bad index, and of what was too large. */
        eddy_status status = eddy_sync(DRIVER_DEADLINE);
        if (status != EDDY_OUT_OF_RANGE)
            driver_work_expect(status, parts[p].name);
        settle("sync", EDDY_OUT_OF_RANGE);
    }
}
