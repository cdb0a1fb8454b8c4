/* Branches are tensors that are alive. Each op reads one or two of them and its result takes the place of any, so that lifetimes are between one op
 * and the whole program. */
#include "branchy.h"

#include <bench/ours/must.h>
#include <bench/sample.h>

#define BRANCHES 24
#define OPS 600
#define SEED 4 /* of nine tried, the one whose arena was furthest from its bound */
#define ELEMENTS_MAX 65536

void branchy_init(branchy *b) {
    uint32_t random = SEED;
    for (int i = 0; i < BRANCHY_INPUTS; i++) {
        int64_t count = 16 << 3 * i; /* 16 to 8,192 */
        float *values = bench_random_floats(&random, (size_t)count);
        b->inputs[i] = must_tensor(eddy_from_data(values, EDDY_SHAPE(count), EDDY_F32, NULL));
        free(values);
    }
}

void branchy_fini(branchy *b) {
    for (int i = 0; i < BRANCHY_INPUTS; i++)
        eddy_release(&b->inputs[i]);
}

static eddy_tensor *whole_sum(eddy_tensor *x) {
    return eddy_sum(x, EDDY_ALL_AXES, NULL);
}

/* A tensor as large as x, larger, or smaller. What a view keeps alive is the whole. */
static eddy_tensor *branch(eddy_tensor *x, eddy_tensor *other, uint32_t *random) {
    int64_t count = eddy_dim_of(x, 0), joined = count + eddy_dim_of(other, 0);
    uint32_t kind = bench_random(random) % 4;
    if (kind == 0 && joined <= ELEMENTS_MAX)
        return eddy_cat(EDDY_LIST(x, other), 0);
    if (kind == 1 && count > 1) {
        int64_t from = bench_random(random) % (count / 2);
        return eddy_tanh(eddy_slice(x, 0, from, count - from / 2, 1));
    }
    if (kind == 2)
        return eddy_add(x, whole_sum(other));
    return eddy_tanh(x);
}

eddy_tensor *branchy_run(const branchy *b) {
    uint32_t random = SEED;
    eddy_tensor *alive[BRANCHES];
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < BRANCHES; i++)
        alive[i] = eddy_tanh(b->inputs[i % BRANCHY_INPUTS]);
    for (int i = 0; i < OPS; i++) {
        eddy_tensor *x = alive[bench_random(&random) % BRANCHES],
                    *other = alive[bench_random(&random) % BRANCHES];
        alive[bench_random(&random) % BRANCHES] = must_tensor(branch(x, other, &random));
    }
    eddy_tensor *total = whole_sum(alive[0]);
    for (int i = 1; i < BRANCHES; i++)
        total = eddy_add(total, whole_sum(alive[i]));
    total = eddy_scope_return(scope, must_tensor(total));
    eddy_scope_end(scope);
    return total;
}
