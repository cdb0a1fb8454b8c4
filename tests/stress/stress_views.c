/* Random programs at the public door: views that share a storage, ops in place on them, copies between them, late shapes, several
 * threads that hand tensors on. Every element is an i64, so that the oracle, plain loops over one array a storage, is exact.
 *
 *   stress_views PROGRAMS [SEED [THREADS]] */
#include <eddy/eddy.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 48
#define TENSORS 12
#define STEPS 60
#define THREADS_MAX 4

/* A storage as it should be. */
typedef struct expected_storage {
    int64_t cells[CELLS];
    int users;
} expected_storage;

/* A tensor: a rectangle of strides in a storage. */
typedef struct expected_tensor {
    eddy_tensor *handle; /* NULL: free */
    expected_storage *storage;
    int64_t offset;
    int rank; /* 1 or 2 */
    int64_t dims[2], strides[2];
} expected_tensor;

typedef struct shared_run {
    uint64_t seed;
    uint64_t random;
    int thread_count;
    atomic_int turn;
    expected_tensor tensors[TENSORS];
} shared_run;

static uint64_t draw(shared_run *run) {
    uint64_t x = run->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return run->random = x;
}

static int64_t below(shared_run *run, int64_t bound) {
    return (int64_t)(draw(run) % (uint64_t)bound);
}

static _Noreturn void differ(const shared_run *run, int step, const char *what, long long expected, long long found) {
    eddy_error error = {0};
    eddy_error_take(&error);
    fprintf(stderr, "program %llu, step %d: %s: expected %lld, found %lld (%s)\n", (unsigned long long)run->seed, step, what,
            expected, found, error.message);
    abort();
}

/* ---- the oracle ---- */

static int64_t count_of(const expected_tensor *t) {
    return t->dims[0] * (t->rank == 2 ? t->dims[1] : 1);
}

static int64_t *cell(const expected_tensor *t, int64_t index) {
    int64_t inner = t->rank == 2 ? t->dims[1] : 1;
    int64_t at = t->offset + index / inner * t->strides[0];
    if (t->rank == 2)
        at += index % inner * t->strides[1];
    return &t->storage->cells[at];
}

static bool same_shape(const expected_tensor *a, const expected_tensor *b) {
    return a->rank == b->rank && a->dims[0] == b->dims[0] && (a->rank == 1 || a->dims[1] == b->dims[1]);
}

static void lay_out(expected_tensor *t, int rank, const int64_t *dims) {
    t->storage = calloc(1, sizeof(*t->storage));
    t->storage->users = 1;
    t->offset = 0;
    t->rank = rank;
    t->dims[0] = dims[0];
    t->dims[1] = rank == 2 ? dims[1] : 1;
    t->strides[1] = 1;
    t->strides[0] = rank == 2 ? dims[1] : 1;
}

static void drop(expected_tensor *t) {
    eddy_release(&t->handle);
    if (--t->storage->users == 0)
        free(t->storage);
    t->storage = NULL;
}

/* ---- steps ---- */

static expected_tensor *pick(shared_run *run, bool is_free) {
    for (int tries = 0; tries < 30; tries++) {
        expected_tensor *t = &run->tensors[below(run, TENSORS)];
        if ((t->handle == NULL) == is_free)
            return t;
    }
    return NULL;
}

static eddy_shape shape_of(const expected_tensor *t) {
    eddy_shape shape = {t->rank, {t->dims[0], t->dims[1]}};
    return shape;
}

static void make(shared_run *run, int step) {
    expected_tensor *t = pick(run, true);
    if (!t)
        return;
    int64_t dims[2] = {1 + below(run, 6), 1 + below(run, 8)};
    lay_out(t, 1 + (int)below(run, 2), dims);
    int64_t values[CELLS];
    for (int64_t i = 0; i < count_of(t); i++)
        values[i] = *cell(t, i) = below(run, 100) - 50;
    t->handle = eddy_from_data(values, shape_of(t), EDDY_I64, NULL);
    if (!t->handle)
        differ(run, step, "from_data", 1, 0);
}

static void view(shared_run *run, int step) {
    expected_tensor *base = pick(run, false), *t = pick(run, true);
    if (!base || !t)
        return;
    expected_tensor made = *base;
    int axis = (int)below(run, base->rank);
    if (base->rank == 2 && below(run, 3) == 0) {
        made.handle = eddy_t(base->handle);
        made.dims[0] = base->dims[1];
        made.dims[1] = base->dims[0];
        made.strides[0] = base->strides[1];
        made.strides[1] = base->strides[0];
    } else if (base->rank == 2 && below(run, 3) == 0) {
        int64_t index = below(run, base->dims[axis]);
        made.handle = eddy_select(base->handle, axis, index);
        made.rank = 1;
        made.offset += index * base->strides[axis];
        made.dims[0] = base->dims[1 - axis];
        made.strides[0] = base->strides[1 - axis];
        made.dims[1] = made.strides[1] = 1;
    } else {
        int64_t start = below(run, base->dims[axis]);
        int64_t length = 1 + below(run, base->dims[axis] - start);
        int64_t stride = 1 + below(run, 2);
        made.handle = eddy_slice(base->handle, axis, start, start + length, stride);
        made.offset += start * base->strides[axis];
        made.dims[axis] = (length + stride - 1) / stride;
        made.strides[axis] *= stride;
    }
    if (!made.handle)
        differ(run, step, "view", 1, 0);
    made.storage->users++;
    *t = made;
}

static void binary(shared_run *run, int step) {
    expected_tensor *a = pick(run, false), *b = pick(run, false), *t = pick(run, true);
    if (!a || !b || !t)
        return;
    expected_tensor result;
    lay_out(&result, a->rank, a->dims);
    bool is_product = below(run, 4) == 0;
    int64_t number = below(run, 20);
    if (same_shape(a, b)) {
        result.handle = is_product ? eddy_mul(a->handle, b->handle) : eddy_sub(a->handle, b->handle);
        for (int64_t i = 0; i < count_of(a); i++)
            *cell(&result, i) = is_product ? (int64_t)((uint64_t)*cell(a, i) * (uint64_t)*cell(b, i))
                                           : (int64_t)((uint64_t)*cell(a, i) - (uint64_t)*cell(b, i));
    } else {
        result.handle = eddy_add_s(a->handle, EDDY_S(number));
        for (int64_t i = 0; i < count_of(a); i++)
            *cell(&result, i) = (int64_t)((uint64_t)*cell(a, i) + (uint64_t)number);
    }
    if (!result.handle)
        differ(run, step, "binary op", 1, 0);
    *t = result;
}

static void in_place(shared_run *run, int step) {
    expected_tensor *t = pick(run, false);
    if (!t)
        return;
    int64_t number = below(run, 9) + 1;
    if (eddy_add_s_inplace(t->handle, EDDY_S(number)) != EDDY_OK)
        differ(run, step, "op in place", 0, 1);
    for (int64_t i = 0; i < count_of(t); i++)
        *cell(t, i) = (int64_t)((uint64_t)*cell(t, i) + (uint64_t)number);
}

static void copy(shared_run *run, int step) {
    expected_tensor *source = pick(run, false), *target = pick(run, false);
    if (!source || !target || !same_shape(source, target) || source->storage == target->storage)
        return;
    if (eddy_copy_into(source->handle, target->handle) != EDDY_OK)
        differ(run, step, "copy_into", 0, 1);
    for (int64_t i = 0; i < count_of(source); i++)
        *cell(target, i) = *cell(source, i);
}

static void sum(shared_run *run, int step) {
    const expected_tensor *a = pick(run, false);
    if (!a)
        return;
    int64_t expected = 0, found = 0;
    for (int64_t i = 0; i < count_of(a); i++)
        expected = (int64_t)((uint64_t)expected + (uint64_t)*cell(a, i));
    eddy_tensor *total = eddy_sum(a->handle, NULL, NULL);
    if (eddy_read_i64(total, &found) != EDDY_OK || found != expected)
        differ(run, step, "sum", expected, found);
    eddy_release(&total);
}

static void late(shared_run *run, int step) {
    const expected_tensor *a = pick(run, false);
    if (!a)
        return;
    int64_t expected = 0;
    for (int64_t i = 0; i < count_of(a); i++)
        expected += *cell(a, i) != 0;
    eddy_tensor *places = eddy_nonzero(a->handle);
    if (eddy_dim(places, 0) != expected || eddy_dim(places, 1) != a->rank)
        differ(run, step, "nonzero", expected, eddy_dim(places, 0));
    eddy_release(&places);
}

static void compare(shared_run *run, int step, const expected_tensor *t) {
    int64_t found[CELLS];
    size_t bytes = (size_t)count_of(t) * sizeof(int64_t);
    if (eddy_read(t->handle, found, bytes) != EDDY_OK)
        differ(run, step, "read", 0, 1);
    for (int64_t i = 0; i < count_of(t); i++)
        if (found[i] != *cell(t, i))
            differ(run, step, "element", *cell(t, i), found[i]);
}

static void map(shared_run *run, int step) {
    const expected_tensor *t = pick(run, false);
    if (!t)
        return;
    int64_t *data = eddy_map(t->handle, EDDY_WRITE, EDDY_FOREVER);
    if (!data)
        differ(run, step, "map", 1, 0);
    if (*data != *cell(t, 0))
        differ(run, step, "mapped element", *cell(t, 0), *data);
    *data = *cell(t, 0) = below(run, 1000);
    if (eddy_unmap(t->handle) != EDDY_OK)
        differ(run, step, "unmap", 0, 1);
}

static void run_step(shared_run *run, int step) {
    static void (*const kinds[])(shared_run *, int) = {make,     make, view, view, view, binary, binary,
                                                      in_place, in_place, copy, sum,  late, map};
    int64_t kind = below(run, 16);
    if (kind < (int64_t)(sizeof(kinds) / sizeof(kinds[0]))) {
        kinds[kind](run, step);
        return;
    }
    expected_tensor *t = pick(run, false);
    if (!t)
        return;
    compare(run, step, t);
    drop(t);
}

/* ---- threads ---- */

typedef struct issuer {
    shared_run *run;
    int number;
} issuer;

static void *issue(void *context) {
    issuer *me = context;
    shared_run *run = me->run;
    for (;;) {
        int turn = atomic_load_explicit(&run->turn, memory_order_acquire);
        if (turn >= STEPS)
            return NULL;
        if ((int)((run->seed * 31 + (uint64_t)turn * 7919 / 13) % (uint64_t)run->thread_count) != me->number) {
            sched_yield();
            continue;
        }
        run_step(run, turn);
        atomic_store_explicit(&run->turn, turn + 1, memory_order_release);
    }
}

static void run_program(uint64_t seed, int thread_count) {
    static shared_run run;
    memset(&run, 0, sizeof(run));
    run.seed = seed;
    run.random = seed * 0x9e3779b97f4a7c15u | 1;
    run.thread_count = thread_count;
    pthread_t threads[THREADS_MAX];
    issuer issuers[THREADS_MAX];
    for (int i = 0; i < thread_count; i++) {
        issuers[i] = (issuer){&run, i};
        if (i > 0 && pthread_create(&threads[i], NULL, issue, &issuers[i]) != 0)
            abort();
    }
    issue(&issuers[0]);
    for (int i = 1; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < TENSORS; i++)
        if (run.tensors[i].handle) {
            compare(&run, STEPS, &run.tensors[i]);
            drop(&run.tensors[i]);
        }
    if (eddy_error_take(NULL) != EDDY_OK)
        differ(&run, STEPS, "no error", 0, 1);
}

static void run_on(const eddy_runtime_options *options, long programs, uint64_t seed, int thread_count) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    if (!runtime || eddy_runtime_use(runtime) != EDDY_OK)
        abort();
    for (long p = 0; p < programs; p++)
        run_program(seed + (uint64_t)p, thread_count);
    if (eddy_live_count() != 0)
        abort();
    eddy_runtime_use(NULL);
    if (eddy_runtime_shutdown(runtime, EDDY_FOREVER) != EDDY_OK)
        abort();
    eddy_runtime_release(&runtime);
}

int main(int argc, char **argv) {
    long programs = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 2;
    if (threads < 1 || threads > THREADS_MAX)
        threads = THREADS_MAX;
    run_on(&(eddy_runtime_options){.size = sizeof(eddy_runtime_options), .threads = 2}, programs, seed, 1);
    run_on(&(eddy_runtime_options){.size = sizeof(eddy_runtime_options), .threads = 2, .full_path = true}, programs, seed, 1);
    run_on(&(eddy_runtime_options){.size = sizeof(eddy_runtime_options), .threads = 3, .worker_path = true}, programs, seed, 1);
    run_on(&(eddy_runtime_options){.size = sizeof(eddy_runtime_options), .one_thread = true}, programs, seed, 1);
    /* Threads use the process's default runtime. */
    for (long p = 0; p < programs; p++)
        run_program(seed + (uint64_t)p, threads);
    printf("%ld programs on 4 paths, and with %d threads, agree with the oracle (seed %llu)\n", programs, threads,
           (unsigned long long)seed);
    return 0;
}
