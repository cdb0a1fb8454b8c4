/* Random recordings, replayed, against the same calls made eagerly: each bit of outputs and state.
 *
 *   stress_replay RECORDINGS [SEED [THREADS [WORKERS STREAMS [DEVICES]]]]
 *
 * A recording is a random list of calls on inputs, on tensors that it writes, on views of both and on its own results: elementwise
 * loops, kernels, draws, writes in place, look-ups that may fail, gradients. The same calls are made again eagerly with other tensors; then the
 * program, or what is loaded of its file, or a program of a run of one of these, and the calls run with new inputs, some into tensors that are there. Threads work on recordings of their own, and lend each other the machine. With
 * WORKERS (not 0) and STREAMS programs have so many streams, whether they pay or not, and workers run them. With DEVICES (1) tensors are on the CPU and two simulated devices, and each
 * step on one of these, to which it copies what it needs. */
#include "watch.h"

#include <eddy/eddy.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define INPUTS 3
#define STATES 2
#define POOL 12
#define STEPS_MOST 40
#define OUTPUTS_MOST 3
#define REPLAYS 4
#define ROWS_MOST 96
#define COLUMNS_MOST 90
#define ELEMENTS_MOST (ROWS_MOST * COLUMNS_MOST)

static _Thread_local uint64_t current_seed;
/* The records of its errors made room for those of other threads, so that it is done once more when these are gone. */
static _Thread_local bool is_displaced;
static bool is_alone;    /* const while threads run */
static bool has_devices; /* const once threads run */

#define check(condition)                                                                           \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "seed %llu: ", (unsigned long long)current_seed), must(!#condition)))

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int below(uint64_t *state, int limit) {
    return (int)(next_random(state) % (uint64_t)limit);
}

/* What the calls of a recording work on. */
typedef struct tensors {
    eddy_tensor *inputs[INPUTS]; /* two of [rows, columns], one list of row numbers */
    eddy_tensor *states[STATES]; /* [rows, columns] */
    eddy_tensor *weight;         /* [columns, columns]; it may want a gradient */
    eddy_tensor *outputs[OUTPUTS_MOST];
    eddy_tensor *late; /* an output whose shape its elements decide */
    eddy_generator *generator;
} tensors;

typedef struct shape_of_all {
    int64_t rows, columns;
    bool has_gradient;
    bool has_devices;
    eddy_device devices[INPUTS]; /* of the inputs when they were recorded */
    int steps, outputs;
    int late_step; /* its calls go on from a tensor whose shape its elements decide; -1: none do */
    int late_output_step; /* the last output is such a tensor, of what is there at this step; -1: there is none */
} shape_of_all;

/* ---- devices ---- */

static eddy_device random_device(const shape_of_all *all, uint64_t *state) {
    static const eddy_device devices[] = {
        {EDDY_DEVICE_CPU, 0}, {EDDY_DEVICE_FAR, 0}, {EDDY_DEVICE_FAR, 0}, {EDDY_DEVICE_FAR, 1}};
    return all->has_devices ? devices[below(state, 4)] : EDDY_CPU;
}

/* There, or a copy. */
static eddy_tensor *on(eddy_tensor *tensor, eddy_device device) {
    return eddy_to_device(tensor, device);
}

static eddy_tensor *beside(eddy_tensor *tensor, const eddy_tensor *other) {
    return on(tensor, eddy_device_of(other));
}

static eddy_tensor *anywhere(const shape_of_all *all, eddy_tensor *tensor, uint64_t *state) {
    return all->has_devices ? on(tensor, random_device(all, state)) : tensor;
}

static eddy_tensor *random_matrix(int64_t rows, int64_t columns, uint64_t *state) {
    float values[ELEMENTS_MOST];
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (float)(below(state, 4001) - 2000) / 512;
    return eddy_from_data(values, EDDY_SHAPE(rows, columns), EDDY_F32, NULL);
}

/* Rows of a larger matrix, so that an input begins inside a storage. */
static eddy_tensor *random_input(int64_t rows, int64_t columns, uint64_t *state) {
    if (below(state, 2) || (rows + 3) * columns > ELEMENTS_MOST)
        return random_matrix(rows, columns, state);
    return eddy_narrow(random_matrix(rows + 3, columns, state), 0, below(state, 4), rows);
}

static eddy_tensor *random_rows(int64_t rows, uint64_t *state, bool may_fail) {
    int64_t values[ELEMENTS_MOST];
    for (int64_t i = 0; i < rows; i++)
        values[i] = below(state, (int)rows);
    if (may_fail && below(state, 8) == 0)
        values[0] = rows + 5;
    return eddy_from_data(values, EDDY_SHAPE(rows), EDDY_I64, NULL);
}

/* ---- the calls ---- */

/* Two ops of one operand, of which the second knows what the first computes, or the other way round. */
static eddy_tensor *sorted(eddy_tensor *a, eddy_tensor *b, bool is_richer_first) {
    eddy_tensor *values, *indices, *order = is_richer_first ? NULL : eddy_argsort(a, 1, NULL);
    check(eddy_sort(a, 1, NULL, &values, &indices) == EDDY_OK);
    if (!order)
        order = eddy_argsort(a, 1, NULL);
    return eddy_sub(eddy_gather(b, order, 1), eddy_add(values, eddy_gather(a, indices, 1)));
}

/* Both halves of a tensor, each computed for its place. */
static eddy_tensor *by_halves(const shape_of_all *all, eddy_tensor *a, eddy_tensor *b) {
    int64_t half = all->rows / 2, rest = all->rows - half;
    eddy_tensor *low = eddy_tanh(eddy_narrow(a, 0, 0, half)), *whole = eddy_empty_like(a, NULL);
    (void)eddy_copy_into(low, eddy_narrow(whole, 0, 0, half));
    (void)eddy_copy_into(eddy_mul(eddy_narrow(a, 0, half, rest), eddy_narrow(b, 0, 0, rest)),
                         eddy_narrow(whole, 0, half, rest));
    return whole;
}

static eddy_tensor *with_late_shape(eddy_tensor **pool, int count, uint64_t *state) {
    eddy_tensor *a = eddy_detach(pool[below(state, count)]),
                *b = eddy_detach(beside(pool[below(state, count)], a));
    return eddy_masked_select(b, eddy_gt(b, a));
}

/* The calls go on from a tensor whose number of elements is known when it was computed: no program has that. */
static eddy_tensor *through_late_shape(eddy_tensor **pool, int count, uint64_t *state) {
    eddy_tensor *sum = eddy_sum(with_late_shape(pool, count, state), EDDY_ALL_AXES, NULL);
    return eddy_add(pool[0], beside(sum, pool[0]));
}

/* One step on the pool: what it computes has the shape [rows, columns] again. */
static eddy_tensor *step(const shape_of_all *all, const tensors *t, eddy_tensor **pool, int count,
                         uint64_t *state) {
    eddy_tensor *a = pool[below(state, count)], *b = pool[below(state, count)];
    int choice = below(state, 23);
    if (all->has_devices) {
        a = anywhere(all, a, state);
        b = beside(b, a);
    }
    int64_t half = all->rows / 2;
    switch (choice) {
    case 0:
        return eddy_relu(a);
    case 1:
        return eddy_tanh(eddy_add(a, b));
    case 2:
        return eddy_mul(a, eddy_sigmoid(b));
    case 3:
        return eddy_sub(a, eddy_mean(b, EDDY_AXES(0), EDDY_OPTIONS(mean, .keeps_dims = true)));
    case 4:
        return eddy_add(a, eddy_sum(b, EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = true)));
    case 5:
        return eddy_t(eddy_add_s(eddy_t(a), EDDY_S(0.5)));
    case 6:
        return eddy_reshape(eddy_neg(eddy_reshape(a, EDDY_SHAPE(-1))),
                            EDDY_SHAPE(all->rows, all->columns));
    case 7:
        return eddy_cat(
            EDDY_LIST(eddy_narrow(a, 0, 0, half), eddy_narrow(b, 0, half, all->rows - half)), 0);
    case 8:
        return eddy_softmax(a, 1);
    case 9:
        return eddy_linear(a, beside(t->weight, a), EDDY_NONE);
    case 10:
        return eddy_dropout(a, EDDY_S(0.25), EDDY_OPTIONS(dropout, .generator = t->generator));
    case 11:
        return eddy_add(a, eddy_rand(EDDY_SHAPE(all->rows, all->columns), EDDY_F32,
                                     EDDY_OPTIONS(rand, .generator = t->generator,
                                                  .device = eddy_device_of(a))));
    case 12:
        return eddy_index_select(a, beside(t->inputs[2], a), 0);
    case 13:
        return eddy_where(eddy_lt(a, b), a, b);
    case 14:
        return eddy_cumsum(a, 1);
    case 15:
        return eddy_flip(a, EDDY_AXES(0));
    case 16:
        return eddy_clone(a);
    case 17:
        return eddy_cast(eddy_cast(eddy_maximum(a, b), EDDY_F16), EDDY_F32);
    case 20:
        return sorted(a, b, below(state, 2));
    case 21:
        return eddy_cast(eddy_cast(eddy_cast(eddy_cast(a, EDDY_BF16), EDDY_F32), EDDY_BF16),
                         EDDY_F32);
    case 22:
        return all->has_gradient ? eddy_abs(a) : by_halves(all, a, b);
    default: /* a part of a tensor is written, which the views in the pool then show */
        if (all->has_gradient)
            return eddy_square(a);
        eddy_tensor *target = eddy_narrow(below(state, 2) ? t->states[below(state, STATES)] : b, 0,
                                          below(state, (int)(all->rows - half) + 1), half);
        eddy_tensor *part = eddy_clone(eddy_narrow(a, 0, 0, half));
        (void)(choice == 18 ? eddy_add_into(beside(part, target), target, target)
                            : eddy_copy_into(part, target));
        return a;
    }
}

static void compute(const shape_of_all *all, tensors *t, uint64_t seed) {
    eddy_scope *scope = eddy_scope_begin();
    uint64_t state = seed;
    eddy_tensor *pool[POOL] = {t->inputs[0], t->inputs[1], t->states[0], t->states[1]};
    int count = 4;
    /* Inputs and the weight are read alone: a program's inputs may not be written while others share them. */
    pool[0] = eddy_clone(pool[0]);
    pool[1] = eddy_mul_s(pool[1], EDDY_S(2));
    /* An output or a state that no call uses is refused. */
    for (int i = 0; i < STATES; i++)
        (void)eddy_relu(t->states[i]);
    (void)eddy_relu(t->weight);
    for (int i = 0; i < all->steps; i++) {
        if (i == all->late_output_step)
            t->late = eddy_scope_return(scope, with_late_shape(pool, count, &state));
        eddy_tensor *made = i == all->late_step ? through_late_shape(pool, count, &state)
                                                : step(all, t, pool, count, &state);
        if (count < POOL)
            pool[count++] = made;
        else
            pool[4 + below(&state, POOL - 4)] = made;
    }
    if (all->has_gradient) {
        eddy_tensor *last = pool[count - 1];
        eddy_tensor *loss =
            eddy_mean(eddy_square(eddy_linear(last, beside(t->weight, last), EDDY_NONE)),
                      EDDY_ALL_AXES, NULL);
        eddy_grads_zero(EDDY_LIST(t->weight));
        check(eddy_backward(loss) == EDDY_OK);
        eddy_no_grad_begin();
        check(eddy_sub_into(t->weight, eddy_mul_s(eddy_grad_of(t->weight), EDDY_S(0.01)),
                            t->weight) == EDDY_OK);
        eddy_no_grad_end();
    }
    for (int i = 0; i < all->outputs; i++)
        t->outputs[i] = eddy_scope_return(scope, eddy_detach(pool[below(&state, count)]));
    eddy_scope_end(scope);
}

/* ---- comparing ---- */

/* The sign of a NaN is not promised (docs/layout.md). */
static bool are_equal(const float *left, const float *right, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&left[i], &right[i], sizeof(*left)) != 0 && !(isnan(left[i]) && isnan(right[i])))
            return false;
    return true;
}

static bool has_made_room(const eddy_error *error) {
    return strstr(error->message, "its record made room for newer ones") != NULL;
}

static void must_fail_alike(const eddy_error *error, const eddy_error *other) {
    if (!is_alone && (has_made_room(error) || has_made_room(other))) {
        is_displaced = true;
        return;
    }
    bool is_alike = strcmp(error->op, other->op) == 0 && error->status == other->status &&
                    strcmp(error->message, other->message) == 0;
    if (!is_alike)
        fprintf(stderr, "\"%s\" and \"%s\"\n", error->message, other->message);
    check(is_alike);
}

/* Bits, or the same failure. */
static void must_be_equal(eddy_tensor *a, eddy_tensor *b) {
    float left[ELEMENTS_MOST], right[ELEMENTS_MOST];
    eddy_error error, other;
    check(eddy_count_of(a) == eddy_count_of(b) && eddy_count_of(a) <= ELEMENTS_MOST);
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    eddy_status status = eddy_read(a, left, bytes, NULL);
    if (status != EDDY_OK)
        eddy_error_take(&error);
    eddy_status other_status = eddy_read(b, right, bytes, NULL);
    if (other_status != EDDY_OK)
        eddy_error_take(&other);
    check((status == EDDY_OK) == (other_status == EDDY_OK));
    if (status == EDDY_OK)
        check(are_equal(left, right, eddy_count_of(a)));
    else
        must_fail_alike(&error, &other);
}

/* The shape is one of what a failure takes away. */
static void must_be_late_alike(eddy_tensor *a, eddy_tensor *b) {
    eddy_error error = {0}, other = {0};
    eddy_status status = eddy_wait(a, EDDY_FOREVER);
    if (status != EDDY_OK)
        eddy_error_take(&error);
    if (eddy_wait(b, EDDY_FOREVER) != EDDY_OK)
        eddy_error_take(&other);
    check((status == EDDY_OK) == (other.status == EDDY_OK));
    if (status == EDDY_OK)
        must_be_equal(a, b);
    else
        must_fail_alike(&error, &other);
}

static void must_all_be_equal(const shape_of_all *all, const tensors *a, const tensors *b) {
    for (int i = 0; i < all->outputs; i++)
        must_be_equal(a->outputs[i], b->outputs[i]);
    if (all->late_output_step >= 0)
        must_be_late_alike(a->late, b->late);
    for (int i = 0; i < STATES; i++)
        must_be_equal(a->states[i], b->states[i]);
    must_be_equal(a->weight, b->weight);
}

static void make_own(const shape_of_all *all, tensors *t, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < STATES; i++)
        t->states[i] = anywhere(all, random_matrix(all->rows, all->columns, &state), &state);
    t->weight = anywhere(all, random_matrix(all->columns, all->columns, &state), &state);
    if (all->has_gradient)
        check(eddy_requires_grad_set(t->weight, true) == EDDY_OK);
    t->generator = eddy_generator_create(seed);
}

/* An input that an earlier op has failed to make. */
static eddy_tensor *poisoned_input(const shape_of_all *all, uint64_t *state) {
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(all->rows), EDDY_S(all->rows), EDDY_I64, NULL);
    return eddy_index_select(random_matrix(all->rows, all->columns, state), beyond, 0);
}

static void make_inputs(const shape_of_all *all, tensors *t, uint64_t *state, bool may_fail) {
    for (int i = 0; i < 2; i++)
        t->inputs[i] = anywhere(all,
                                may_fail && below(state, 4) == 0
                                    ? poisoned_input(all, state)
                                    : random_input(all->rows, all->columns, state),
                                state);
    t->inputs[2] = anywhere(all, random_rows(all->rows, state, may_fail), state);
}

/* The calls find inputs where they were recorded: where one step writes what another has copied depends on that. */
static void give_same(const shape_of_all *all, const tensors *recorded, tensors *eager) {
    for (int i = 0; i < INPUTS; i++)
        eager->inputs[i] = on(recorded->inputs[i], all->devices[i]);
}

#define BINDINGS_MOST (INPUTS + OUTPUTS_MOST + 1 + STATES + 1)

static void add_binding(eddy_binding *bindings, int *count, char (*names)[8], eddy_tensor *tensor,
                        eddy_role role) {
    snprintf(names[*count], sizeof(names[*count]), "t%d", *count);
    bindings[*count] = (eddy_binding){names[*count], tensor, role};
    ++*count;
}

/* States are bound last: their names follow those of inputs and outputs. */
static eddy_program *end(const shape_of_all *all, const tensors *t) {
    eddy_binding bindings[BINDINGS_MOST];
    char names[BINDINGS_MOST][8];
    int count = 0;
    for (int i = 0; i < INPUTS; i++)
        add_binding(bindings, &count, names, t->inputs[i], EDDY_ROLE_INPUT);
    for (int i = 0; i < all->outputs; i++)
        add_binding(bindings, &count, names, t->outputs[i], EDDY_ROLE_OUTPUT);
    for (int i = 0; i < STATES; i++)
        add_binding(bindings, &count, names, t->states[i], EDDY_ROLE_STATE);
    add_binding(bindings, &count, names, t->weight, EDDY_ROLE_STATE);
    if (all->late_output_step >= 0)
        add_binding(bindings, &count, names, t->late, EDDY_ROLE_OUTPUT);
    return eddy_record_end(&(eddy_bindings){bindings, count});
}

static eddy_program *record(const shape_of_all *all, tensors *t, uint64_t seed) {
    check(eddy_record_begin(NULL) == EDDY_OK);
    compute(all, t, seed);
    eddy_program *program = end(all, t);
    eddy_error error;
    if (all->late_step < 0 && program)
        return program;
    check(!program && eddy_error_take(&error) && error.status == EDDY_UNSUPPORTED);
    check(strstr(error.message, all->late_step < 0 ? "has written then what it reads"
                                                   : "what masked_select has made"));
    check(all->late_step >= 0 || all->late_output_step >= 0);
    return NULL;
}

static eddy_tensor *state_of(const eddy_program *program, int number) {
    char name[8];
    snprintf(name, sizeof(name), "t%d", number);
    eddy_tensor *state = eddy_program_state(program, name);
    check(state);
    return state;
}

/* The program goes through a file, and what is loaded takes its place, with states of its own. */
static void reload(const shape_of_all *all, tensors *t, eddy_program **program) {
    char path[96];
    snprintf(path, sizeof(path), "/tmp/eddy-stress-replay-%ld-%llu", (long)getpid(),
             (unsigned long long)current_seed);
    check(eddy_program_save(*program, path) == EDDY_OK);
    eddy_program_release(program);
    *program = eddy_program_load(path);
    unlink(path);
    check(*program);
    int first = INPUTS + all->outputs;
    for (int i = 0; i < STATES; i++)
        t->states[i] = state_of(*program, first + i);
    t->weight = state_of(*program, first + STATES);
}

/* Files have no generators but the thread's own. */
static bool can_be_saved(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    check(eddy_program_describe(program, &info) == EDDY_OK);
    return info.draw_count == 0;
}

/* A run into tensors of the caller's, which hold an error now and then: it is healed. False where an output can be in none, as it is a part of a
 * tensor or was there before; nothing has happened then. */
static bool run_into(const shape_of_all *all, eddy_program *program, tensors *t, uint64_t *state) {
    eddy_tensor *targets[OUTPUTS_MOST];
    if (all->late_output_step >= 0)
        return false;
    for (int i = 0; i < all->outputs; i++)
        targets[i] = eddy_dtype_of(t->outputs[i]) != EDDY_F32 || below(state, 3) > 0
                         ? eddy_empty(eddy_shape_of(t->outputs[i]), eddy_dtype_of(t->outputs[i]),
                                      EDDY_OPTIONS(empty, .device = eddy_device_of(t->outputs[i])))
                         : beside(poisoned_input(all, state), t->outputs[i]);
    eddy_status status = eddy_program_run_into(program, (eddy_list){t->inputs, INPUTS},
                                               (eddy_list){targets, all->outputs});
    if (status != EDDY_OK) {
        eddy_error_take(NULL);
        return false;
    }
    memcpy(t->outputs, targets, (size_t)all->outputs * sizeof(*targets));
    return true;
}

static void run(const shape_of_all *all, eddy_program *program, tensors *t) {
    eddy_tensor *outputs[OUTPUTS_MOST + 1];
    check(eddy_program_run(program, (eddy_list){t->inputs, INPUTS}, outputs) == EDDY_OK);
    memcpy(t->outputs, outputs, (size_t)all->outputs * sizeof(*outputs));
    t->late = all->late_output_step >= 0 ? outputs[all->outputs] : NULL;
}

/* A recording of a run takes the program's place. */
static void nest(const shape_of_all *all, tensors *t, tensors *eager, eddy_program **program,
                 uint64_t seed, uint64_t *state) {
    bool records_only = all->late_output_step < 0 && below(state, 2);
    make_inputs(all, t, state, false);
    give_same(all, t, eager);
    check(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)) == EDDY_OK);
    run(all, *program, t);
    eddy_program *outer = end(all, t);
    eddy_error error;
    if (!outer)
        eddy_error_take(&error), fprintf(stderr, "%s\n", error.message);
    check(outer);
    if (!records_only) {
        compute(all, eager, seed);
        must_all_be_equal(all, t, eager);
    }
    eddy_program_release(program);
    *program = outer;
}

/* Runs with new inputs, beside the calls. */
static void replay(const shape_of_all *all, eddy_program **program, tensors *recorded,
                   tensors *eager, uint64_t seed, uint64_t *state) {
    if (below(state, 4) == 0 && can_be_saved(*program))
        reload(all, recorded, program);
    while (below(state, 3) == 0)
        nest(all, recorded, eager, program, seed, state);
    for (int i = 0; i < REPLAYS; i++) {
        /* A failure poisons the state, so that it comes last. */
        make_inputs(all, recorded, state, i == REPLAYS - 1);
        give_same(all, recorded, eager);
        if (below(state, 2) || !run_into(all, *program, recorded, state))
            run(all, *program, recorded);
        compute(all, eager, seed);
        must_all_be_equal(all, recorded, eager);
    }
}

static void run_one(uint64_t seed) {
    current_seed = seed;
    watch();
    eddy_scope *scope = eddy_scope_begin();
    uint64_t state = seed;
    /* A quarter of them is large enough for groups that run tile by tile, some with a rest behind the last whole tile. */
    bool is_large = below(&state, 4) == 0;
    shape_of_all all = {.rows = is_large ? ROWS_MOST - below(&state, 8) : 2 + below(&state, 39),
                        .columns =
                            is_large ? COLUMNS_MOST - below(&state, 45) : 1 + below(&state, 40),
                        .has_gradient = below(&state, 3) == 0,
                        .has_devices = has_devices,
                        .steps = 3 + below(&state, STEPS_MOST - 3),
                        .outputs = 1 + below(&state, OUTPUTS_MOST),
                        .late_step = -1,
                        .late_output_step = -1};
    if (below(&state, 16) == 0)
        all.late_step = below(&state, all.steps);
    if (below(&state, 4) == 0)
        all.late_output_step = below(&state, all.steps);
    tensors recorded, eager;
    make_own(&all, &recorded, seed + 1);
    make_own(&all, &eager, seed + 1);
    make_inputs(&all, &recorded, &state, false);
    for (int i = 0; i < INPUTS; i++)
        all.devices[i] = eddy_device_of(recorded.inputs[i]);
    give_same(&all, &recorded, &eager);
    eddy_program *program = record(&all, &recorded, seed);
    compute(&all, &eager, seed);
    must_all_be_equal(&all, &recorded, &eager);
    if (program)
        replay(&all, &program, &recorded, &eager, seed, &state);
    eddy_program_release(&program);
    eddy_generator_release(&recorded.generator);
    eddy_generator_release(&eager.generator);
    eddy_scope_end(scope);
    /* Errors that nobody has looked at would push out the records of later ones. */
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
}

/* ---- threads ---- */

#define DISPLACED_MOST 64

typedef struct worker {
    uint64_t first_seed;
    int64_t count;
    uint64_t displaced[DISPLACED_MOST];
    int displaced_count;
} worker;

static void *work(void *context) {
    worker *w = context;
    for (int64_t i = 0; i < w->count; i++) {
        run_one(w->first_seed + (uint64_t)i * 1000003);
        if (is_displaced) {
            check(w->displaced_count < DISPLACED_MOST);
            w->displaced[w->displaced_count++] = current_seed;
            is_displaced = false;
        }
    }
    return NULL;
}

static void run_displaced(const worker *w) {
    for (int i = 0; i < w->displaced_count; i++) {
        printf("seed %llu once more, alone\n", (unsigned long long)w->displaced[i]);
        run_one(w->displaced[i]);
    }
}

int main(int argc, char **argv) {
    int64_t count = argc > 1 ? atoll(argv[1]) : 100;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int thread_count = argc > 3 ? atoi(argv[3]) : 1;
    enum { THREADS_MOST = 8 };
    check(thread_count >= 1 && thread_count <= THREADS_MOST);
    has_devices = argc > 6 && atoi(argv[6]);
    if (argc > 5 && atoi(argv[4]) > 0) {
        setenv("EDDY_THREADS", argv[4], 1);
        setenv("EDDY_PROGRAM_STREAMS", argv[5], 1);
        setenv("EDDY_WORKER_PATH", "1", 1);
    }
    watch_begin("stress_replay", seed);
    pthread_t threads[THREADS_MOST];
    worker workers[THREADS_MOST];
    for (int i = 0; i < thread_count; i++) {
        workers[i] = (worker){.first_seed = seed + (uint64_t)i,
                              .count = (count + thread_count - 1) / thread_count};
        check(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    is_alone = true;
    for (int i = 0; i < thread_count; i++)
        run_displaced(&workers[i]);
    check(eddy_live_count() == 0);
    eddy_trim(); /* what is kept for programs to come */
    check(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes == 0);
    return 0;
}
