#include <bench/ours/op_calls.h>

#include <bench/op_rows.h>
#include <bench/ours/must.h>
#include <eddy/eddy.h>

static eddy_tensor *x, *y, *z, *s, *i, *j, *b, *c, *m, *o, *transposed, *row, *column, *weight,
    *bias;
static eddy_tensor *labels, *picks, *table, *words, *q, *k, *v, *turned_q, *images, *filters;
static eddy_tensor *w, *same, *numbers, *near, *places, *square, *tall, *positions, *signals,
    *filters_1d;
static eddy_tensor *means, *variances, *gain, *shift, *parameters, *gradients, *state_1, *state_2,
    *steps;
static eddy_tensor *first, *second;
static bench_op_shape shape;
static uint32_t random_state = 1;

static eddy_tensor *randoms(eddy_shape dims, double low, double high) {
    int64_t count = 1;
    for (int d = 0; d < dims.rank; d++)
        count *= dims.dims[d];
    float *values = malloc((size_t)count * sizeof(float));
    if (!values)
        exit(1);
    for (int64_t at = 0; at < count; at++)
        values[at] = (float)((low + high) / 2) +
                     bench_random_float(&random_state, (float)((high - low) / 2));
    eddy_tensor *tensor = must_tensor(eddy_from_data(values, dims, EDDY_F32, NULL));
    free(values);
    return tensor;
}

/* In [low, high). */
static eddy_tensor *integers(long count, long low, long high, eddy_dtype dtype) {
    int64_t *values = malloc((size_t)count * sizeof(int64_t));
    if (!values)
        exit(1);
    for (long at = 0; at < count; at++)
        values[at] = low + bench_random(&random_state) % (high - low);
    eddy_tensor *wide = must_tensor(eddy_from_data(values, EDDY_SHAPE(count), EDDY_I64, NULL));
    free(values);
    if (dtype == EDDY_I64)
        return wide;
    eddy_tensor *tensor = must_tensor(eddy_cast(wide, dtype));
    eddy_release(&wide);
    return tensor;
}

void op_calls_make_operands(long n) {
    shape = bench_op_shape_of(n);
    x = randoms(EDDY_SHAPE(n), 0.1, 0.9);
    y = randoms(EDDY_SHAPE(n), 0.1, 0.9);
    z = randoms(EDDY_SHAPE(n), 0.1, 0.9);
    s = randoms(EDDY_SHAPE(n), -1, 1);
    i = integers(n, 1, 1001, EDDY_I32);
    j = integers(n, 1, 1001, EDDY_I32);
    b = integers(n, 0, 2, EDDY_BOOL);
    c = integers(n, 0, 2, EDDY_BOOL);
    m = randoms(EDDY_SHAPE(shape.rows, shape.columns), -1, 1);
    o = randoms(EDDY_SHAPE(shape.rows, shape.columns), -1, 1);
    transposed = must_tensor(eddy_t(m));
    row = randoms(EDDY_SHAPE(shape.columns), 0.1, 0.9);
    column = randoms(EDDY_SHAPE(shape.rows, 1), 0.1, 0.9);
    weight = randoms(EDDY_SHAPE(shape.columns), 0.1, 0.9);
    bias = randoms(EDDY_SHAPE(shape.columns), 0.1, 0.9);
    labels = integers(shape.rows, 0, shape.columns, EDDY_I64);
    picks = integers(shape.rows, 0, shape.rows, EDDY_I64);
    table = randoms(EDDY_SHAPE(1000, shape.columns), -1, 1);
    words = integers(shape.rows, 0, 1000, EDDY_I64);
    q = randoms(EDDY_SHAPE(shape.heads, shape.tokens, 32), -1, 1);
    k = randoms(EDDY_SHAPE(shape.heads, shape.tokens, 32), -1, 1);
    v = randoms(EDDY_SHAPE(shape.heads, shape.tokens, 32), -1, 1);
    images = randoms(EDDY_SHAPE(shape.batch, shape.channels, shape.side, shape.side), -1, 1);
    filters = randoms(EDDY_SHAPE(16, shape.channels, 3, 3), -1, 1);
    turned_q = must_tensor(eddy_transpose(q, 1, 2));
    w = randoms(EDDY_SHAPE(n), 0.1, 0.9);
    same = must_tensor(eddy_clone(x));
    numbers = integers(n, 0, 1000, EDDY_I64);
    near = randoms(EDDY_SHAPE(shape.rows, shape.columns), 0.9, 1.1);
    places = must_tensor(eddy_reshape(integers(n, 0, shape.columns, EDDY_I64),
                                      EDDY_SHAPE(shape.rows, shape.columns)));
    square = randoms(EDDY_SHAPE(shape.columns, shape.columns), -1, 1);
    tall = randoms(EDDY_SHAPE(shape.rows), 0.1, 0.9);
    positions =
        must_tensor(eddy_arange(EDDY_S(0), EDDY_S(shape.tokens), EDDY_S(1), EDDY_I64, NULL));
    signals = must_tensor(
        eddy_reshape(images, EDDY_SHAPE(shape.batch, shape.channels, shape.side * shape.side)));
    filters_1d = randoms(EDDY_SHAPE(16, shape.channels, 3), -1, 1);
    means = randoms(EDDY_SHAPE(shape.channels), 0.1, 0.9);
    variances = randoms(EDDY_SHAPE(shape.channels), 0.1, 0.9);
    gain = randoms(EDDY_SHAPE(shape.channels), 0.1, 0.9);
    shift = randoms(EDDY_SHAPE(shape.channels), 0.1, 0.9);
    parameters = randoms(EDDY_SHAPE(n), -1, 1);
    gradients = randoms(EDDY_SHAPE(n), -1, 1);
    state_1 = must_tensor(eddy_zeros(EDDY_SHAPE(n), EDDY_F32, NULL));
    state_2 = must_tensor(eddy_zeros(EDDY_SHAPE(n), EDDY_F32, NULL));
    steps = must_tensor(eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL));
    must(eddy_sync(EDDY_FOREVER));
}

/* The first of the two results that a call has stored in `first` and `second`. The open scope, which must exist, releases the other. */
static eddy_tensor *first_of(eddy_status status) {
    must(status);
    return first;
}

static eddy_tensor *copied(eddy_tensor *source, eddy_tensor *target) {
    must(eddy_copy_into(source, target));
    return target;
}

static eddy_tensor *stepped_sgd(void) {
    must(eddy_sgd_step(EDDY_LIST(parameters), EDDY_LIST(gradients), EDDY_S(1e-6), NULL));
    return parameters;
}

static eddy_tensor *stepped_momentum(void) {
    must(eddy_sgd_momentum_step(EDDY_LIST(parameters), EDDY_LIST(gradients), EDDY_LIST(state_1),
                                EDDY_S(1e-6), EDDY_S(0.9), NULL));
    return parameters;
}

static eddy_tensor *stepped_adam(void) {
    must(eddy_adam_step(EDDY_LIST(parameters), EDDY_LIST(gradients), EDDY_LIST(state_1),
                        EDDY_LIST(state_2), steps, EDDY_S(1e-6), NULL));
    return parameters;
}

static eddy_tensor *stepped_adamw(void) {
    must(eddy_adamw_step(EDDY_LIST(parameters), EDDY_LIST(gradients), EDDY_LIST(state_1),
                         EDDY_LIST(state_2), steps, EDDY_S(1e-6), NULL));
    return parameters;
}

static eddy_tensor *clipped(void) {
    eddy_tensor *norm = must_tensor(eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL));
    must(eddy_clip_grad_norm(EDDY_LIST(gradients), norm, EDDY_S(1e9)));
    return norm;
}

/* One function per op, so that each call is compiled as in a program. */
#define CALL(name, bytes, ours, theirs)                                                            \
    static eddy_tensor *call_##name(void) {                                                        \
        return ours;                                                                               \
    }
BENCH_OP_LIST(CALL)

static const op_call calls[] = {
#define ENTRY(name, bytes, ours, theirs) {#name, bytes, call_##name},
    BENCH_OP_LIST(ENTRY)};

const op_call *op_call_find(const char *name) {
    for (size_t at = 0; at < sizeof(calls) / sizeof(calls[0]); at++)
        if (!strcmp(calls[at].name, name))
            return &calls[at];
    return NULL;
}

void op_call_once(const op_call *op) {
    eddy_scope *scope = eddy_scope_begin();
    must_tensor(op->call());
    eddy_scope_end(scope);
}
