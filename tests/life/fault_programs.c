#include "fault_programs.h"
#include "fault_parts.h"

#include <base/status.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <unistd.h>

#define OPS_MOST 40
/* Large enough for groups that run tile by tile. */
#define PROGRAM_ROWS 64
#define PROGRAM_COLUMNS 66

/* Recorded by hand: enough ops that lists grow, a draw, a view, a constant that is folded, a write to a tensor that was there before. */
static eddy_tensor *compute(eddy_tensor *x, eddy_tensor *constant, eddy_tensor *state) {
    eddy_tensor *y = eddy_add(eddy_dropout(x, EDDY_S(0.5), NULL), eddy_exp(constant));
    for (int i = 0; i < OPS_MOST; i++)
        y = eddy_add(eddy_t(eddy_t(y)), x);
    if (y)
        (void)eddy_add_into(state, y, state);
    return eddy_sum(y, EDDY_ALL_AXES, NULL);
}

/* A program that was in a file in between. */
static eddy_status run_loaded(const eddy_program *program, eddy_tensor *x, double *result) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-faults-%ld.program", (long)getpid());
    eddy_tensor *sum;
    eddy_status status = eddy_program_save(program, path);
    eddy_program *loaded = status == EDDY_OK ? eddy_program_load(path) : NULL;
    unlink(path);
    if (status == EDDY_OK)
        status = loaded ? eddy_program_run(loaded, EDDY_LIST(x), &sum) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_read_f64(
            eddy_add(eddy_sum(eddy_program_state(loaded, "state"), EDDY_ALL_AXES, NULL), sum),
            result, NULL);
    eddy_program_release(&loaded);
    return status;
}

/* The same program on other state, with an output in a tensor that is there. */
static eddy_status run_on_store(eddy_program *program, eddy_tensor *x) {
    eddy_tensor *sum = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    eddy_tensor_store *root = eddy_tensor_store_create(NULL),
                      *store = root ? eddy_tensor_store_create(root) : NULL;
    eddy_status status = store ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_tensor_store_set(store, "state", eddy_zeros_like(x, NULL));
    if (status == EDDY_OK)
        status = eddy_tensor_store_set(root, "x", x);
    if (status == EDDY_OK && !eddy_tensor_store_get(store, "x"))
        status = EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_program_run_named(
            program, (eddy_feeds){0}, (eddy_fetches){0},
            EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"sum", sum}), .store = store));
    /* The input as elements of the caller's, and as what stays. */
    static const float elements[PROGRAM_ROWS * PROGRAM_COLUMNS];
    if (status == EDDY_OK)
        status = eddy_program_run_named(
            program, (eddy_feeds){0}, (eddy_fetches){0},
            EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"sum", sum}), .store = store,
                         .data =
                             EDDY_DATA_FEEDS({"x", elements, eddy_shape_of(x), EDDY_F32, NULL})));
    if (status == EDDY_OK)
        status = eddy_program_run_named(
            program, (eddy_feeds){0}, (eddy_fetches){0},
            EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"sum", sum}), .defaults = root));
    eddy_tensor_store_release(&store);
    eddy_tensor_store_release(&root);
    return status;
}

static eddy_status run_program(eddy_tensor *x, double *result) {
    eddy_tensor *state = eddy_zeros_like(x, NULL), *constant = eddy_ones_like(x, NULL), *sum,
                *replayed;
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    sum = compute(x, constant, state);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                      {"constant", constant, EDDY_ROLE_CONSTANT}, {"sum", sum, EDDY_ROLE_OUTPUT}));
    status = program ? eddy_program_run_named(program, EDDY_FEEDS({"x", x}),
                                              EDDY_FETCHES({"sum", &replayed}), NULL)
                     : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = run_on_store(program, x);
    if (status == EDDY_OK)
        status =
            eddy_read_f64(eddy_add(eddy_sum(state, EDDY_ALL_AXES, NULL), replayed), result, NULL);
    double loaded = 0;
    if (status == EDDY_OK)
        status = run_loaded(program, x, &loaded);
    if (status == EDDY_OK)
        *result += loaded;
    eddy_program_release(&program);
    return status;
}

/* A step of training, which replays from the third call on. */
static eddy_status step(void *context, eddy_recorded_call *call) {
    eddy_tensor *w = context;
    eddy_grads_zero(EDDY_LIST(w));
    eddy_tensor *loss = eddy_mean(eddy_square(eddy_linear(call->inputs.items[0], w, EDDY_NONE)),
                                  EDDY_ALL_AXES, NULL);
    eddy_status status = eddy_backward(loss);
    eddy_no_grad_begin();
    if (status == EDDY_OK)
        status = eddy_sub_into(w, eddy_mul_s(eddy_grad_of(w), call->scalars[0]), w);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    return status == EDDY_OK && !call->outputs[0] ? EDDY_OUT_OF_MEMORY : status;
}

static eddy_status run_recorded(eddy_tensor *x, double *result) {
    eddy_tensor *w = eddy_ones(EDDY_SHAPE(2, COLUMNS), EDDY_F32, NULL), *loss = NULL;
    eddy_status status = eddy_requires_grad_set(w, true);
    eddy_recorded *recorded = eddy_recorded_create(step, w, 1, NULL);
    for (int i = 0; i < 4 && status == EDDY_OK; i++)
        status =
            eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(0.25 / (i + 1))), &loss);
    if (status == EDDY_OK)
        status = eddy_read_f64(loss, result, NULL);
    eddy_recorded_release(&recorded);
    return status;
}

/* Of sizes of which the last ones' programs follow from the first two's. most: of a bucket, in which there is room for one; 0: there is none. */
static eddy_status run_sizes(int64_t most, double *result) {
    static const int64_t sizes[] = {2, 2, 5, 5, 3, 4, 6, 4};
    eddy_tensor *w = eddy_ones(EDDY_SHAPE(2, COLUMNS), EDDY_F32, NULL), *loss = NULL;
    eddy_status status = eddy_requires_grad_set(w, true);
    eddy_recorded *recorded =
        eddy_recorded_create(step, w, 1,
                             EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = most,
                                          .most_derived_bytes = 1));
    for (int i = 0; i < (most > 0 ? 8 : 6) && status == EDDY_OK; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(sizes[i], COLUMNS), EDDY_F32, NULL);
        status = eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(0.125)), &loss);
    }
    if (status == EDDY_OK)
        status = eddy_read_f64(loss, result, NULL);
    eddy_recorded_release(&recorded);
    return status;
}

/* ---- guards, startup programs, batches ---- */

static eddy_status doubled(void *context, eddy_recorded_call *call) {
    int64_t count;
    double factor = 0;
    eddy_status status = eddy_read_i64(call->inputs.items[1], &count, NULL);
    if (status == EDDY_OK)
        status = eddy_read_f64(context, &factor, NULL); /* a tensor of its own */
    eddy_tensor *y = call->inputs.items[0];
    for (int64_t i = 0; i < count && status == EDDY_OK; i++)
        y = eddy_mul_s(y, EDDY_S(factor));
    call->outputs[0] = y ? eddy_clone(y) : NULL;
    return status == EDDY_OK && !call->outputs[0] ? EDDY_OUT_OF_MEMORY : status;
}

static eddy_status run_guarded(eddy_tensor *x, double *result) {
    eddy_tensor *count = eddy_full((eddy_shape){0}, EDDY_S(3), EDDY_I64, NULL), *y = x;
    eddy_tensor *two = eddy_full((eddy_shape){0}, EDDY_S(2), EDDY_F32, NULL);
    eddy_recorded *recorded = two ? eddy_recorded_create(doubled, two, 1, NULL) : NULL;
    eddy_status status = recorded ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    for (int i = 0; i < 5 && status == EDDY_OK; i++)
        status = eddy_recorded_run(recorded, EDDY_LIST(y, count), (eddy_scalars){0}, &y);
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), result, NULL);
    eddy_recorded_release(&recorded);
    return status;
}

static eddy_status run_started(eddy_tensor *x, double *result) {
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *y = eddy_exp(x), *parts[2], *stored;
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                      {"sum", eddy_sum(y, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}));
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    status = program && store ? eddy_program_prepare(program, (const char *const[]){"sum"}, 1)
                              : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0},
                                        EDDY_OPTIONS(program_run_named, .output_store = store));
    if (status == EDDY_OK)
        status = eddy_program_run_batches(program, EDDY_LIST(eddy_cat(EDDY_LIST(x, x), 0)), parts);
    stored = status == EDDY_OK ? eddy_tensor_store_get(store, "sum") : NULL;
    if (status == EDDY_OK)
        status =
            eddy_read_f64(eddy_sum(eddy_add(parts[1], stored), EDDY_ALL_AXES, NULL), result, NULL);
    eddy_tensor_store_release(&store);
    eddy_program_release(&program);
    return status;
}

/* Outputs that become old while they are held. */
static eddy_status run_ring(eddy_tensor *x, double *result) {
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *y = eddy_exp(x), *outputs[4][2];
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT},
                                      {"sum", eddy_sum(y, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = program ? eddy_output_ring_create(program, 1) : NULL;
    status = ring ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    for (int i = 0; i < 3 && status == EDDY_OK; i++)
        status = eddy_output_ring_run(ring, EDDY_LIST(eddy_clone(x)), outputs[i]);
    if (status == EDDY_OK)
        status = eddy_program_run_named(program, EDDY_FEEDS({"x", eddy_clone(x)}),
                                        EDDY_FETCHES({"sum", &outputs[3][1]}),
                                        EDDY_OPTIONS(program_run_named, .ring = ring));
    if (status == EDDY_OK)
        status = eddy_read_f64(outputs[3][1], result, NULL);
    /* The others are gone, or their run had no memory: an error either way. */
    for (int i = 0; i < 3 && status == EDDY_OK; i++)
        if (eddy_wait(outputs[i][0], EDDY_FOREVER) == EDDY_OK)
            status = EDDY_INTERNAL;
        else
            eddy_error_take(NULL);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
    return status;
}

/* Two programs of one content; what is folded is each one's own. */
static eddy_status run_shared(eddy_tensor *x, double *result) {
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 2 && status == EDDY_OK; i++) {
        eddy_tensor *scale = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(i), EDDY_F32, NULL), *y;
        double sum = 0;
        status = eddy_record_begin(NULL);
        if (status != EDDY_OK)
            return status;
        y = eddy_add(eddy_mul(x, eddy_exp(scale)), x);
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                          {"scale", scale, EDDY_ROLE_CONSTANT}));
        status = program ? eddy_program_run(program, EDDY_LIST(x), &y) : EDDY_OUT_OF_MEMORY;
        if (status == EDDY_OK)
            status = eddy_read_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), &sum, NULL);
        *result += sum;
        eddy_program_release(&program);
    }
    return status;
}

/* Products that are added to others, by a fast pass. */
static eddy_status run_fast(eddy_tensor *x, double *result) {
    eddy_status status = eddy_record_begin(EDDY_OPTIONS(record, .passes = "all,fast"));
    if (status != EDDY_OK)
        return status;
    eddy_tensor *y = eddy_add(eddy_matmul(x, eddy_t(x)), eddy_matmul(eddy_neg(x), eddy_t(x)));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    status = program ? eddy_program_run(program, EDDY_LIST(x), &y) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), result, NULL);
    eddy_program_release(&program);
    return status;
}

/* Calls behind a run, whose results have a shape that depends on data; the program goes through a file, too. */
static eddy_status run_late(eddy_tensor *x, double *result) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-late-faults-%ld.program", (long)getpid());
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *h = eddy_tanh(x), *chosen = eddy_masked_select(h, eddy_gt(h, eddy_neg(h))),
                *places;
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"places", eddy_nonzero(h), EDDY_ROLE_OUTPUT},
                      {"h", h, EDDY_ROLE_OUTPUT}, {"chosen", chosen, EDDY_ROLE_OUTPUT}));
    status = program ? eddy_program_save(program, path) : EDDY_OUT_OF_MEMORY;
    eddy_program_release(&program);
    program = status == EDDY_OK ? eddy_program_load(path) : NULL;
    unlink(path);
    if (status == EDDY_OK)
        status = program ? eddy_program_run_named(
                               program, EDDY_FEEDS({"x", x}),
                               EDDY_FETCHES({"chosen", &chosen}, {"places", &places}), NULL)
                         : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_read_f64(
            eddy_add(eddy_sum(chosen, EDDY_ALL_AXES, NULL), eddy_sum(places, EDDY_ALL_AXES, NULL)),
            result, NULL);
    eddy_program_release(&program);
    return status;
}

/* ---- callbacks behind runs ---- */

static struct heard {
    double sum;
    eddy_error error; /* the first failure */
} heard;

static void hear(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    struct heard *h = context;
    const float *values = data;
    if (error && h->error.status == EDDY_OK)
        h->error = *error;
    for (int64_t i = 0; data && i < bytes / (int64_t)sizeof(float); i++)
        h->sum += values[i];
}

/* Of a view, which is packed, and of what is overwritten, which is copied. */
static eddy_status tell(eddy_tensor *x, eddy_tensor *w, eddy_tensor **result) {
    eddy_tensor *h = eddy_mul(x, w), *y = eddy_detach(eddy_exp(h));
    eddy_status status = eddy_read_async(eddy_t(y), hear, &heard);
    if (status == EDDY_OK)
        status = eddy_mul_s_inplace(y, EDDY_S(2));
    if (status == EDDY_OK)
        status = eddy_read_async(eddy_detach(h), hear, &heard);
    *result = eddy_add(h, y);
    return status == EDDY_OK && !*result ? EDDY_OUT_OF_MEMORY : status;
}

static eddy_status tell_body(void *context, eddy_recorded_call *call) {
    return tell(call->inputs.items[0], context, call->outputs);
}

static eddy_status run_told(eddy_tensor *x, eddy_tensor *w) {
    eddy_tensor *y = NULL;
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    status = tell(x, w, &y);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    if (status == EDDY_OK)
        status = program ? eddy_program_run(program, EDDY_LIST(x), &y) : EDDY_OUT_OF_MEMORY;
    eddy_program_release(&program);
    return status;
}

static eddy_status run_heard(eddy_tensor *x, double *result) {
    eddy_tensor *w = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(0.25), EDDY_F32, NULL), *y;
    heard = (struct heard){0};
    eddy_status status = eddy_requires_grad_set(w, true);
    if (status == EDDY_OK)
        status = run_told(x, w);
    eddy_recorded *recorded = eddy_recorded_create(tell_body, w, 1, NULL);
    for (int i = 0; i < 4 && status == EDDY_OK; i++)
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y);
    eddy_status synced = eddy_sync(EDDY_FOREVER), returned = eddy_sync_deleters(EDDY_FOREVER);
    eddy_recorded_release(&recorded);
    *result = heard.sum;
    if (status == EDDY_OK && heard.error.status != EDDY_OK)
        status = eddy_fail_record(&heard.error);
    return status != EDDY_OK ? status : synced != EDDY_OK ? synced : returned;
}

/* ---- gradients through runs ---- */

static eddy_tensor *layer(eddy_tensor *x, eddy_tensor *w) {
    return eddy_dropout(eddy_tanh(eddy_linear(x, w, EDDY_NONE)), EDDY_S(0.5), NULL);
}

eddy_status fault_go_back(eddy_tensor *y, eddy_tensor *w, double *result) {
    eddy_tensor *loss = eddy_sum(eddy_square(y), EDDY_ALL_AXES, NULL);
    eddy_status status = loss ? eddy_backward(loss) : EDDY_OUT_OF_MEMORY;
    return status == EDDY_OK
               ? eddy_read_f64(eddy_sum(eddy_grad_of(w), EDDY_ALL_AXES, NULL), result, NULL)
               : status;
}

/* The squares of the gradient, which go back to w through the calls of the runs. */
eddy_status fault_penalize(eddy_tensor *y, eddy_tensor *w) {
    eddy_tensor *loss = eddy_sum(eddy_square(y), EDDY_ALL_AXES, NULL), *gradient = NULL;
    eddy_status status = loss ? eddy_grad_keep(y) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(w), (eddy_list){0},
                                  EDDY_OPTIONS(backward, .creates_graph = true), &gradient);
    loss = status == EDDY_OK ? eddy_sum(eddy_square(gradient), EDDY_ALL_AXES, NULL) : NULL;
    if (status == EDDY_OK && !loss)
        status = EDDY_OUT_OF_MEMORY;
    return status == EDDY_OK ? eddy_backward_from(EDDY_LIST(loss), (eddy_list){0},
                                                  EDDY_OPTIONS(backward, .keeps_graph = true))
                             : status;
}

static eddy_status run_layer(eddy_tensor *x, eddy_tensor *w, double *result) {
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *y = layer(x, w), *first, *second;
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    status = program ? eddy_program_run(program, EDDY_LIST(x), &first) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_program_run(program, EDDY_LIST(first), &second);
    if (status == EDDY_OK)
        status = fault_penalize(second, w);
    if (status == EDDY_OK)
        status = fault_go_back(second, w, result);
    eddy_program_release(&program);
    return status;
}

/* A step of training around a program, as one program. */
static eddy_status run_within(eddy_tensor *x, eddy_tensor *w, double *result) {
    eddy_tensor *scale = eddy_full(EDDY_SHAPE(COLUMNS), EDDY_S(2), EDDY_F32, NULL), *y,
                *gradient = NULL;
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    y = eddy_mul(layer(x, w), eddy_exp(scale));
    eddy_program *inner = eddy_record_end_with_grad(
                     EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"scale", scale, EDDY_ROLE_CONSTANT},
                                   {"y", y, EDDY_ROLE_OUTPUT})),
                 *outer = NULL;
    status = inner ? eddy_record_begin(NULL) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK) {
        status = eddy_program_run(inner, EDDY_LIST(x), &y);
        eddy_tensor *loss =
            status == EDDY_OK ? eddy_sum(eddy_square(y), EDDY_ALL_AXES, NULL) : NULL;
        status =
            loss ? eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(w), (eddy_list){0}, NULL, &gradient)
                 : EDDY_OUT_OF_MEMORY;
        if (status == EDDY_OK)
            outer = eddy_record_end(
                EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"gradient", gradient, EDDY_ROLE_OUTPUT}));
        eddy_record_cancel();
        status = outer ? eddy_program_run(outer, EDDY_LIST(x), &gradient) : EDDY_OUT_OF_MEMORY;
    }
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(gradient, EDDY_ALL_AXES, NULL), result, NULL);
    eddy_program_release(&inner);
    eddy_program_release(&outer);
    return status;
}

#define MANY 4

static eddy_status layer_body(void *context, eddy_recorded_call *call) {
    call->outputs[0] = layer(call->inputs.items[0], context);
    return call->outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status run_recorded_layer(eddy_tensor *x, eddy_tensor *w, double *result) {
    eddy_recorded *recorded = eddy_recorded_create(layer_body, w, 1, NULL);
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 4 && status == EDDY_OK; i++)
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &x);
    if (status == EDDY_OK)
        status = fault_go_back(x, w, result);
    eddy_recorded_release(&recorded);
    return status;
}

static eddy_status many_body(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    for (int64_t k = 0; k < call->output_count; k++)
        if (!(call->outputs[k] = x = layer(x, context)))
            return EDDY_OUT_OF_MEMORY;
    return EDDY_OK;
}

/* More outputs than there are ways for: passes go through the calls. */
static eddy_status run_many(eddy_tensor *x, eddy_tensor *w, double *result) {
    eddy_recorded *recorded = eddy_recorded_create(many_body, w, MANY, NULL);
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 4 && status == EDDY_OK; i++) {
        eddy_tensor *y[MANY];
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, y);
        if (status == EDDY_OK)
            status = fault_go_back(y[i], w, result);
    }
    eddy_recorded_release(&recorded);
    return status;
}

/* Of sizes of which the last one's program, and how gradients go back through it, follow from the first two's. */
static eddy_status run_layer_sizes(eddy_recorded_body *body, int64_t output_count, int64_t most,
                                   eddy_tensor *w, double *result) {
    static const int64_t sizes[] = {2, 2, 5, 5, 3, 4};
    eddy_recorded *recorded = eddy_recorded_create(
        body, w, output_count, EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = most));
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 6 && status == EDDY_OK; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(sizes[i], COLUMNS), EDDY_F32, NULL), *y[MANY];
        status = eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, y);
        if (status == EDDY_OK)
            status = fault_go_back(y[0], w, result);
    }
    eddy_recorded_release(&recorded);
    return status;
}

static eddy_status make_leaves(eddy_tensor **x, eddy_tensor **w) {
    *w = eddy_full(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_S(0.25), EDDY_F32, NULL);
    *x = eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    eddy_status status = eddy_requires_grad_set(*w, true);
    return status == EDDY_OK ? eddy_requires_grad_set(*x, true) : status;
}

static eddy_status run_gradients(eddy_tensor *ones, double *result) {
    eddy_tensor *x, *w;
    double first = 0, second = 0, third = 0, within = 0;
    (void)ones;
    eddy_status status = make_leaves(&x, &w);
    if (status == EDDY_OK)
        status = run_layer(x, w, &first);
    if (status == EDDY_OK)
        status = run_recorded_layer(x, w, &second);
    if (status == EDDY_OK)
        status = run_many(x, w, &third);
    if (status == EDDY_OK)
        status = run_within(x, w, &within);
    *result = first + second + third + within;
    return status;
}

/* Of sizes that follow from others, each with a program of its own (most: 0), or of one bucket. */
static eddy_status run_gradient_sizes(eddy_recorded_body *body, int64_t output_count, int64_t most,
                                      double *result) {
    eddy_tensor *x, *w;
    eddy_status status = make_leaves(&x, &w);
    return status == EDDY_OK ? run_layer_sizes(body, output_count, most, w, result) : status;
}

/* ---- what is done together: each allocation that fails does it all twice, so that many short lists take less than a long one ---- */

eddy_status fault_run_parts(fault_part *const *parts, double *results) {
    eddy_scope *scope = eddy_scope_begin();
    if (!scope)
        return EDDY_OUT_OF_MEMORY;
    eddy_seed(3);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    eddy_status status = EDDY_OK;
    results[0] = results[1] = 0;
    for (int i = 0; i < FAULT_PARTS_MOST && parts[i] && status == EDDY_OK; i++) {
        double result = 0;
        status = parts[i](x, &result);
        results[i % 2] += result;
    }
    eddy_status synced = eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    return status == EDDY_OK ? synced : status;
}

static eddy_status run_large(eddy_tensor *x, double *result) {
    (void)x;
    return run_program(eddy_ones(EDDY_SHAPE(PROGRAM_ROWS, PROGRAM_COLUMNS), EDDY_F32, NULL),
                       result);
}

static eddy_status run_each_size(eddy_tensor *x, double *result) {
    (void)x;
    return run_sizes(0, result);
}

static eddy_status run_bucket(eddy_tensor *x, double *result) {
    (void)x;
    return run_sizes(6, result);
}

eddy_status run_programs(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_large, run_recorded};
    return fault_run_parts(parts, results);
}

eddy_status run_program_buckets(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_each_size, run_bucket};
    return fault_run_parts(parts, results);
}

eddy_status run_program_guards(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_guarded, run_started, run_shared,
                                                        run_fast};
    return fault_run_parts(parts, results);
}

eddy_status run_program_callbacks(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_late, run_heard, run_ring};
    return fault_run_parts(parts, results);
}

eddy_status run_program_gradients(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_gradients};
    return fault_run_parts(parts, results);
}

static eddy_status run_sizes_back(eddy_tensor *ones, double *result) {
    (void)ones;
    return run_gradient_sizes(layer_body, 1, 0, result);
}

static eddy_status run_bucket_back(eddy_tensor *ones, double *result) {
    (void)ones;
    return run_gradient_sizes(layer_body, 1, 6, result);
}

static eddy_status run_many_back(eddy_tensor *ones, double *result) {
    (void)ones;
    return run_gradient_sizes(many_body, MANY, 0, result);
}

eddy_status run_program_gradient_sizes(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_sizes_back};
    return fault_run_parts(parts, results);
}

eddy_status run_program_gradient_buckets(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_bucket_back};
    return fault_run_parts(parts, results);
}

eddy_status run_program_gradient_many(double *results) {
    static fault_part *const parts[FAULT_PARTS_MOST] = {run_many_back};
    return fault_run_parts(parts, results);
}
