/* scatter, scatter_add, index_add, embedding and its gradient, index, index_put: against loops over flat numbers. Sums of
 * floats are taken in the order that is promised, so that the oracle in double is exact to the rounding of each addition:
 * the bound is half an ulp of the running sum per addition. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH_DTYPE(d) for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
#define SOME_INPUT ((layout)test_below(LAYOUT_COUNT))
#define SOME_OUTPUT ((layout)test_below(OUTPUT_LAYOUTS))

static void unflatten(const tensor *t, int64_t flat, int64_t *index) {
    for (int32_t d = t->view.rank - 1; d >= 0; d--) {
        index[d] = flat % t->shape[d];
        flat /= t->shape[d];
    }
}

static int64_t flatten(const tensor *t, const int64_t *index) {
    int64_t flat = 0;
    for (int32_t d = 0; d < t->view.rank; d++)
        flat = flat * t->shape[d] + index[d];
    return flat;
}

/* ---- what should come out ---- */

/* The output as double (floats) or i64, and how wrong a sum may be. */
typedef struct oracle {
    const tensor *out;
    double *real, *slack;
    int64_t *integer;
    bool adds;
} oracle;

static oracle oracle_make(const tensor *in, const tensor *out, bool adds) {
    size_t count = (size_t)out->count + 1;
    oracle o = {out, calloc(count, 8), calloc(count, 8), calloc(count, 8), adds};
    for (int64_t i = 0; in != NULL && i < out->count; i++) {
        o.real[i] = tensor_get(in, i);
        o.integer[i] = tensor_get_int(in, i);
    }
    return o;
}

static void oracle_put(oracle *o, int64_t at, const tensor *source, int64_t from) {
    double unit = o->out->view.dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24;
    double value = tensor_get(source, from);
    int64_t integer = tensor_get_int(source, from);
    o->real[at] = o->adds ? o->real[at] + value : value;
    o->slack[at] = o->adds ? o->slack[at] + unit * fabs(o->real[at]) : 0;
    if (o->out->view.dtype == EDDY_BOOL)
        o->integer[at] = o->adds ? o->integer[at] | integer : integer;
    else
        o->integer[at] =
            o->adds ? (int64_t)((uint64_t)o->integer[at] + (uint64_t)integer) : integer;
}

static void oracle_check(oracle *o, const char *op, layout l) {
    eddy_dtype dtype = o->out->view.dtype;
    double rounding = !o->adds ? 0 : dtype == EDDY_F16 ? 0x1p-11 : dtype == EDDY_BF16 ? 0x1p-8 : 0;
    for (int64_t i = 0; i < o->out->count; i++) {
        if (eddy_dtype_is_float(dtype)) {
            double got = tensor_get(o->out, i), want = o->real[i];
            bool fits = (isnan(got) && isnan(want)) || got == want ||
                        fabs(got - want) <= o->slack[i] * (1 + 0x1p-20) + rounding * fabs(want);
            cr_assert(fits, "%s element %lld: %a, not %a", describe(op, o->out, l), (long long)i,
                      got, want);
            continue;
        }
        cr_assert_eq(tensor_get_int(o->out, i), tensor_wrap_int(dtype, o->integer[i]),
                     "%s element %lld", describe(op, o->out, l), (long long)i);
    }
    cr_assert(tensor_guards_hold(o->out), "%s", describe(op, o->out, l));
    free(o->real), free(o->slack), free(o->integer);
}

static void fill_index(tensor *index, int64_t bound) {
    for (int64_t i = 0; i < index->count; i++)
        tensor_set_int(index, i, test_below(bound));
}

static void run(const eddy_kernel *kernel, tensor *const *tensors, int32_t count,
                const void *attributes) {
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team};
    cr_assert_eq(run_kernel(kernel, tensors, count, attributes, teams[test_below(2)], NULL),
                 EDDY_OK);
}

/* ---- scatter ---- */

static void check_scatter(eddy_dtype dtype, const int64_t *shape, const int64_t *index_shape,
                          int32_t axis, bool adds, bool in_place, layout a) {
    int64_t source_shape[3];
    for (int d = 0; d < 3; d++)
        source_shape[d] = index_shape[d] + test_below(2);
    const eddy_kernel *kernel = adds ? &eddy_cpu_scatter_add : &eddy_cpu_scatter;
    tensor in = tensor_make(dtype, 3, shape, in_place ? SOME_OUTPUT : SOME_INPUT);
    tensor out = tensor_make(dtype, 3, shape, SOME_OUTPUT);
    tensor index = tensor_make(axis % 2 ? EDDY_I64 : EDDY_I32, 3, index_shape, a);
    tensor source = tensor_make(dtype, 3, source_shape, SOME_INPUT);
    tensor_fill(&in, 50), tensor_fill(&source, 50);
    fill_index(&index, shape[axis]);
    oracle o = oracle_make(&in, in_place ? &in : &out, adds);
    for (int64_t i = 0; i < index.count; i++) {
        int64_t at[3];
        unflatten(&index, i, at);
        int64_t from = flatten(&source, at);
        at[axis] = tensor_get_int(&index, i);
        oracle_put(&o, flatten(&in, at), &source, from);
    }
    run(kernel, (tensor *[]){&in, &index, &source, in_place ? &in : &out}, 4,
        &(eddy_attributes_axis){.axis = axis});
    oracle_check(&o, kernel->name, a);
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
}

Test(scatter, scatter_of_every_dtype_layout_and_axis) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {3, 13, 31}, {2, 3, 70}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                for (int a = 0; a < LAYOUT_COUNT; a++) {
                    int64_t index_shape[3];
                    for (int i = 0; i < 3; i++)
                        index_shape[i] = i == axis ? test_below(40) : test_below(shapes[s][i] + 1);
                    check_scatter((eddy_dtype)d, shapes[s], index_shape, axis, a % 2,
                                  test_below(3) == 0, (layout)a);
                }
    }
    /* Rows and lines longer than a piece. */
    const int64_t wide[] = {2, 3, 700}, wide_index[] = {2, 5, 650}, tall[] = {300, 2, 3},
                  tall_index[] = {1000, 2, 3};
    const int64_t broad[] = {3, 2, 1100}, broad_index[] = {5, 2, 1031};
    for (int adds = 0; adds < 2; adds++) {
        check_scatter(EDDY_F32, wide, wide_index, 1, adds, false, CONTIGUOUS);
        check_scatter(EDDY_BF16, wide, wide_index, 1, adds, true, STRIDED);
        check_scatter(EDDY_F64, tall, tall_index, 0, adds, false, NEGATIVE);
        /* Indices that have to be converted, or gathered, beside values that lie as they should (some of the layouts at random). */
        for (int i = 0; i < 2 * LAYOUT_COUNT; i++) {
            check_scatter(EDDY_F32, wide, wide_index, 1, adds, false, (layout)(i % LAYOUT_COUNT));
            check_scatter(EDDY_F32, broad, broad_index, 0, adds, false, (layout)(i % LAYOUT_COUNT));
        }
    }
}

/* ---- index_add, embedding_backward ---- */

static void check_index_add(eddy_dtype dtype, const int64_t *shape, int32_t axis, int64_t n,
                            bool is_number, bool in_place, layout a) {
    int64_t source_shape[3];
    memcpy(source_shape, shape, sizeof(source_shape));
    source_shape[axis] = n;
    tensor in = tensor_make(dtype, 3, shape, in_place ? SOME_OUTPUT : SOME_INPUT);
    tensor out = tensor_make(dtype, 3, shape, SOME_OUTPUT);
    tensor index = tensor_make(n % 2 ? EDDY_I64 : EDDY_I32, is_number ? 0 : 1, &n,
                               n % 3 ? CONTIGUOUS : NEGATIVE);
    tensor source = tensor_make(dtype, 3, source_shape, a);
    tensor_fill(&in, 50), tensor_fill(&source, 50);
    fill_index(&index, shape[axis]);
    oracle o = oracle_make(&in, in_place ? &in : &out, true);
    for (int64_t i = 0; i < source.count; i++) {
        int64_t at[3];
        unflatten(&source, i, at);
        at[axis] = tensor_get_int(&index, at[axis]);
        oracle_put(&o, flatten(&in, at), &source, i);
    }
    run(&eddy_cpu_index_add, (tensor *[]){&in, &index, &source, in_place ? &in : &out}, 4,
        &(eddy_attributes_axis){.axis = axis});
    oracle_check(&o, "index_add", a);
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
}

Test(scatter, index_add_of_every_dtype_layout_and_axis) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {3, 13, 31}, {2, 300, 3}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_index_add((eddy_dtype)d, shapes[s], axis, a == 1 ? 1 : test_below(40),
                                    a == 1, test_below(3) == 0, (layout)a);
    }
    const int64_t wide[] = {2, 3, 700}, tall[] = {300, 2, 3};
    check_index_add(EDDY_F32, wide, 1, 33, false, false, CONTIGUOUS);
    check_index_add(EDDY_F16, wide, 0, 33, false, true, TURNED);
    check_index_add(EDDY_F32, tall, 0, 1000, false, false, CONTIGUOUS);
    check_index_add(EDDY_I8, tall, 0, 1000, false, false, STRIDED);
}

static void check_embedding(eddy_dtype dtype, int32_t index_rank, const int64_t *index_shape,
                            int64_t rows, int64_t width, int64_t padding, layout a) {
    int64_t out_shape[4], table_shape[] = {rows, width};
    memcpy(out_shape, index_shape, (size_t)index_rank * sizeof(out_shape[0]));
    out_shape[index_rank] = width;
    tensor index = tensor_make(rows % 2 ? EDDY_I64 : EDDY_I32, index_rank, index_shape,
                               index_rank ? a : CONTIGUOUS);
    tensor weight = tensor_make(dtype, 2, table_shape, a),
           out = tensor_make(dtype, index_rank + 1, out_shape, SOME_OUTPUT);
    tensor grad = tensor_make(dtype, index_rank + 1, out_shape, a),
           dweight = tensor_make(dtype, 2, table_shape, SOME_OUTPUT);
    tensor_fill(&weight, 50), tensor_fill(&grad, 50);
    fill_index(&index, rows);
    eddy_attributes_embedding attributes = {.padding_index = padding};
    oracle o = oracle_make(NULL, &out, false), back = oracle_make(NULL, &dweight, true);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t row = tensor_get_int(&index, i / width);
        oracle_put(&o, i, &weight, row * width + i % width);
        if (row != padding)
            oracle_put(&back, row * width + i % width, &grad, i);
    }
    run(&eddy_cpu_embedding, (tensor *[]){&index, &weight, &out}, 3, &attributes);
    oracle_check(&o, "embedding", a);
    run(&eddy_cpu_embedding_backward, (tensor *[]){&grad, &index, &dweight}, 3, &attributes);
    oracle_check(&back, "embedding_backward", a);
    tensor_free(&index), tensor_free(&weight), tensor_free(&out), tensor_free(&grad),
        tensor_free(&dweight);
}

Test(scatter, embedding_and_its_gradient) {
    const int64_t shapes[][3] = {{3, 7, 2}, {1, 1, 1}, {5, 0, 3}, {40, 5, 1}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t rank = 0; rank <= 3; rank++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_embedding((eddy_dtype)d, rank, shapes[s], 1 + test_below(30),
                                    1 + test_below(40), test_below(4) - 1, (layout)a);
    }
    check_embedding(EDDY_F32, 2, (const int64_t[]){30, 40}, 50, 600, 3, CONTIGUOUS);
    check_embedding(EDDY_BF16, 2, (const int64_t[]){30, 40}, 50, 3, 3, TURNED);
}

/* Gradient of sum(c * embedding): c is added to the rows that were picked; by differences in f64. */
Test(scatter, the_gradient_of_embedding_agrees_with_differences) {
    int64_t n = 6, table[] = {4, 3}, picked[] = {6, 3};
    tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS),
           weight = tensor_make(EDDY_F64, 2, table, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F64, 2, picked, CONTIGUOUS),
           c = tensor_make(EDDY_F64, 2, picked, CONTIGUOUS);
    tensor dweight = tensor_make(EDDY_F64, 2, table, CONTIGUOUS);
    tensor_fill(&weight, 1), tensor_fill(&c, 1), fill_index(&index, 4);
    eddy_attributes_embedding attributes = {.padding_index = -1};
    run(&eddy_cpu_embedding_backward, (tensor *[]){&c, &index, &dweight}, 3, &attributes);
    for (int64_t i = 0; i < weight.count; i++) {
        double sums[2] = {0, 0}, kept = tensor_get(&weight, i);
        for (int side = 0; side < 2; side++) {
            tensor_set(&weight, i, side ? kept + 0x1p-20 : kept - 0x1p-20);
            run(&eddy_cpu_embedding, (tensor *[]){&index, &weight, &out}, 3, &attributes);
            for (int64_t k = 0; k < out.count; k++)
                sums[side] += tensor_get(&c, k) * tensor_get(&out, k);
        }
        tensor_set(&weight, i, kept);
        cr_assert(fabs((sums[1] - sums[0]) * 0x1p19 - tensor_get(&dweight, i)) < 1e-8,
                  "element %lld", (long long)i);
    }
    tensor_free(&index), tensor_free(&weight), tensor_free(&out), tensor_free(&c),
        tensor_free(&dweight);
}

/* ---- index, index_put ---- */

/* The number in a broadcast tensor of the element at these joint dims. */
static int64_t broadcast_flat(const tensor *t, const int64_t *index, int32_t rank) {
    int64_t flat = 0;
    for (int32_t d = 0; d < t->view.rank; d++)
        flat = flat * t->shape[d] + (t->shape[d] == 1 ? 0 : index[rank - t->view.rank + d]);
    return flat;
}

static void check_index(eddy_dtype dtype, int32_t count, int64_t j0, int64_t j1, bool puts,
                        bool accumulates, layout a) {
    int64_t shape[] = {5, 4, 9}, joint[5] = {j0, j1}, rank = 2 + 3 - count;
    const int64_t column[] = {j0, 1}, row[] = {j1}, one[] = {1};
    for (int32_t d = count; d < 3; d++)
        joint[2 + d - count] = shape[d];
    int32_t value_rank = (int32_t)test_below(rank + 1);
    int64_t value_shape[5];
    for (int32_t d = 0; d < value_rank; d++)
        value_shape[d] = test_below(3) ? joint[rank - value_rank + d] : 1;
    tensor indices[] = {
        count == 1 ? tensor_make(EDDY_I32, 2, joint, a) : tensor_make(EDDY_I32, 2, column, a),
        tensor_make(EDDY_I64, 1, row, a), tensor_make(EDDY_I32, test_below(2), one, CONTIGUOUS)};
    tensor in = tensor_make(dtype, 3, shape, a),
           picked = tensor_make(dtype, (int32_t)rank, joint, SOME_OUTPUT);
    tensor values = tensor_make(dtype, value_rank, value_shape, value_rank ? a : CONTIGUOUS);
    tensor out = tensor_make(dtype, 3, shape, SOME_OUTPUT), *tensors[6] = {&in};
    tensor_fill(&in, 50), tensor_fill(&values, 50);
    for (int32_t i = 0; i < count; i++) {
        tensors[1 + i] = &indices[i];
        for (int64_t k = 0; k < indices[i].count; k++)
            tensor_set_int(&indices[i], k, test_below(2 * shape[i]) - shape[i]);
    }
    oracle o = puts ? oracle_make(&in, &out, accumulates) : oracle_make(NULL, &picked, false);
    for (int64_t i = 0; i < picked.count; i++) {
        int64_t at[5], place[3];
        unflatten(&picked, i, at);
        for (int32_t d = 0; d < 3; d++) {
            int64_t named =
                d < count ? tensor_get_int(&indices[d], broadcast_flat(&indices[d], at, 2)) : 0;
            place[d] = d < count ? (named < 0 ? named + shape[d] : named) : at[2 + d - count];
        }
        if (puts)
            oracle_put(&o, flatten(&in, place), &values,
                       broadcast_flat(&values, at, (int32_t)rank));
        else
            oracle_put(&o, i, &in, flatten(&in, place));
    }
    tensors[1 + count] = puts ? &values : &picked;
    tensors[2 + count] = &out;
    run(puts ? &eddy_cpu_index_put : &eddy_cpu_index, tensors, puts ? count + 3 : count + 2,
        &(eddy_attributes_index_put){.accumulates = accumulates});
    oracle_check(&o, puts ? "index_put" : "index", a);
    for (int i = 0; i < 3; i++)
        tensor_free(&indices[i]);
    tensor_free(&in), tensor_free(&picked), tensor_free(&values), tensor_free(&out);
}

Test(scatter, index_and_index_put_with_broadcast_indices) {
    EACH_DTYPE(d) {
        for (int32_t count = 1; count <= 3; count++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int what = 0; what < 3; what++)
                    for (int repeat = 0; repeat < 3; repeat++)
                        check_index((eddy_dtype)d, count, repeat ? 1 + test_below(9) : 0,
                                    1 + test_below(70), what > 0, what == 2, (layout)a);
    }
}

/* The walk over so many does not fit a plan. Each turns one dim of size 2 round, or leaves it. */
Test(scatter, as_many_indices_as_there_can_be_dims) {
    int64_t shape[EDDY_RANK_MAX], place[EDDY_RANK_MAX];
    tensor indices[EDDY_RANK_MAX], *picks[EDDY_RANK_MAX + 2], *puts[EDDY_RANK_MAX + 3];
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++) {
        for (int32_t i = 0; i < EDDY_RANK_MAX; i++)
            shape[i] = i == d ? 2 : 1;
        indices[d] = tensor_make(d % 2 ? EDDY_I64 : EDDY_I32, EDDY_RANK_MAX, shape, CONTIGUOUS);
        int64_t first = test_below(2);
        tensor_set_int(&indices[d], 0, first), tensor_set_int(&indices[d], 1, -1 - first);
        picks[1 + d] = puts[1 + d] = &indices[d];
    }
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        shape[d] = 2;
    tensor in = tensor_make(EDDY_BF16, EDDY_RANK_MAX, shape, TURNED),
           values = tensor_make(EDDY_BF16, EDDY_RANK_MAX, shape, TURNED),
           picked = tensor_make(EDDY_BF16, EDDY_RANK_MAX, shape, NEGATIVE),
           out = tensor_make(EDDY_BF16, EDDY_RANK_MAX, shape, NEGATIVE);
    for (int64_t i = 0; i < in.count; i++)
        tensor_set(&in, i, (double)test_below(100)),
            tensor_set(&values, i, (double)test_below(100));
    picks[0] = puts[0] = &in, picks[EDDY_RANK_MAX + 1] = &picked;
    puts[EDDY_RANK_MAX + 1] = &values, puts[EDDY_RANK_MAX + 2] = &out;
    run(&eddy_cpu_index, picks, EDDY_RANK_MAX + 2, NULL);
    run(&eddy_cpu_index_put, puts, EDDY_RANK_MAX + 3,
        &(eddy_attributes_index_put){.accumulates = true});
    for (int64_t i = 0; i < in.count; i++) {
        unflatten(&in, i, place);
        for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
            place[d] = tensor_get_int(&indices[d], place[d]) & 1;
        int64_t named = flatten(&in, place);
        cr_assert_eq(tensor_get(&picked, i), tensor_get(&in, named), "picked %lld", (long long)i);
        cr_assert_eq(tensor_get(&out, named), tensor_get(&in, named) + tensor_get(&values, i),
                     "put %lld", (long long)i);
    }
    cr_assert(tensor_guards_hold(&picked) && tensor_guards_hold(&out));
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        tensor_free(&indices[d]);
    tensor_free(&in), tensor_free(&values), tensor_free(&picked), tensor_free(&out);
}

static int64_t cost_of(const eddy_kernel *kernel, tensor *const *tensors, int32_t count) {
    eddy_op_view views[4];
    for (int32_t i = 0; i < count; i++) {
        views[i] = tensors[i]->view;
        views[i].shape = tensors[i]->shape;
        views[i].strides = tensors[i]->strides;
    }
    /* Whatever the op's are: axis 0, nothing adds up. */
    union {
        eddy_attributes_axis axis;
        eddy_attributes_index_put put;
    } attributes;
    memset(&attributes, 0, sizeof(attributes));
    eddy_kernel_call call = {
        .kernel = kernel, .views = views, .view_count = count, .attributes = &attributes};
    return planned_only(&call).cost_ps;
}

/* Otherwise a few rows of a big table would be work for another thread. */
Test(scatter, the_table_that_is_picked_from_costs_nothing) {
    int64_t n = 5, rows[] = {5, 8}, costs[2];
    for (int big = 0; big < 2; big++) {
        int64_t table[] = {big ? 100000 : 10, 8};
        tensor weight = tensor_make(EDDY_F32, 2, table, CONTIGUOUS),
               out = tensor_make(EDDY_F32, 2, rows, CONTIGUOUS);
        tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
        costs[big] = cost_of(&eddy_cpu_embedding, (tensor *[]){&index, &weight, &out}, 3);
        cr_assert_eq(costs[big] - eddy_cpu_embedding.cost_base_ps +
                         eddy_cpu_index_select.cost_base_ps,
                     cost_of(&eddy_cpu_index_select, (tensor *[]){&weight, &index, &out}, 3));
        cr_assert_lt(cost_of(&eddy_cpu_index, (tensor *[]){&weight, &index, &out}, 3), 1000000);
        cr_assert(big == (cost_of(&eddy_cpu_index_put, (tensor *[]){&weight, &index, &out, &weight},
                                  4) > 10000000));
        tensor_free(&weight), tensor_free(&out), tensor_free(&index);
    }
    cr_assert_eq(costs[0], costs[1]);
}

/* ---- order, special values, errors ---- */

static void check_teams(const eddy_kernel *kernel, tensor *const *tensors, int32_t count,
                        const void *attributes) {
    tensor *out = tensors[count - 1];
    run_kernel(kernel, tensors, count, attributes, &serial_team, NULL);
    char *bits = malloc(out->bytes);
    memcpy(bits, out->memory, out->bytes);
    eddy_kernel_team *others[] = {&shuffling_team, &threaded_team};
    for (int t = 0; t < 2; t++) {
        run_kernel(kernel, tensors, count, attributes, others[t], NULL);
        cr_assert_eq(memcmp(bits, out->memory, out->bytes), 0, "%s: the team shows",
                     describe(kernel->name, out, CONTIGUOUS));
    }
    free(bits);
}

Test(scatter, sums_do_not_depend_on_the_team) {
    const int64_t table[] = {50, 300}, rows[] = {3000, 300}, n = 3000;
    eddy_dtype dtypes[] = {EDDY_F32, EDDY_BF16, EDDY_F64};
    for (int d = 0; d < 3; d++) {
        tensor in = tensor_make(dtypes[d], 2, table, CONTIGUOUS),
               out = tensor_make(dtypes[d], 2, table, CONTIGUOUS);
        tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS),
               source = tensor_make(dtypes[d], 2, rows, CONTIGUOUS);
        tensor whole = tensor_make(EDDY_I64, 2, rows, CONTIGUOUS);
        tensor_fill(&in, 1), tensor_fill(&source, 1), fill_index(&index, 50),
            fill_index(&whole, 50);
        eddy_attributes_axis axis = {.axis = 0};
        check_teams(&eddy_cpu_index_add, (tensor *[]){&in, &index, &source, &out}, 4, &axis);
        check_teams(&eddy_cpu_scatter_add, (tensor *[]){&in, &whole, &source, &out}, 4, &axis);
        check_teams(&eddy_cpu_scatter, (tensor *[]){&in, &whole, &source, &out}, 4, &axis);
        check_teams(&eddy_cpu_embedding_backward, (tensor *[]){&source, &index, &out}, 3,
                    &(eddy_attributes_embedding){.padding_index = 3});
        check_teams(&eddy_cpu_index_put, (tensor *[]){&in, &index, &source, &out}, 4,
                    &(eddy_attributes_index_put){.accumulates = true});
        tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source),
            tensor_free(&whole);
    }
}

/* ---- rows of a large output ---- */

#define ROWS 900
#define ROW 301

/* What the ops promise, element by element: the output's element, replaced by or plus what is meant for it, in order. */
#define PLAIN(name, type)                                                                          \
    static void plain_##name(type *out, const type *in, const int64_t *index, int64_t left_out,    \
                             const type *source, int64_t length, bool adds) {                      \
        for (int64_t i = 0; i < ROWS * ROW; i++)                                                   \
            out[i] = in ? in[i] : 0;                                                               \
        for (int64_t i = 0; i < length; i++)                                                       \
            for (int64_t j = 0; j < ROW && index[i] != left_out; j++)                              \
                out[index[i] * ROW + j] =                                                          \
                    (type)((adds ? out[index[i] * ROW + j] : 0) + source[i * ROW + j]);            \
    }

PLAIN(f32, float)
PLAIN(f64, double)
PLAIN(i64, int64_t)
PLAIN(i16, int16_t)

typedef struct row_case {
    const eddy_kernel *kernel;
    bool adds, starts_empty; /* embedding's gradient has no input, and leaves row 3 out */
} row_case;

static void check_rows(const row_case *c, eddy_dtype dtype, int64_t length, layout a,
                       eddy_kernel_team *team) {
    const int64_t shape[] = {ROWS, ROW}, source_shape[] = {length, ROW};
    tensor in = tensor_make(dtype, 2, shape, CONTIGUOUS),
           out = tensor_make(dtype, 2, shape, CONTIGUOUS);
    tensor index = tensor_make(EDDY_I64, 1, &length, a),
           source = tensor_make(dtype, 2, source_shape, CONTIGUOUS);
    tensor_fill(&in, 50), tensor_fill(&source, 50);
    int64_t *named = malloc((size_t)(length + 1) * 8), left_out = c->starts_empty ? 3 : -1;
    for (int64_t i = 0; i < length; i++)
        tensor_set_int(&index, i, i < 4 ? 3 : test_below(i % 2 ? 20 : ROWS)); /* some rows often */
    for (int64_t i = 0; i < length; i++)
        named[i] = tensor_get_int(&index, i);
    void *want = malloc((size_t)out.count * 8);
    const void *from = c->starts_empty ? NULL : in.view.data;
#define WANT(enumerator, name)                                                                     \
    if (dtype == EDDY_##enumerator)                                                                \
        plain_##name(want, from, named, left_out, source.view.data, length, c->adds);
    WANT(F32, f32)
    WANT(F64, f64) WANT(I64, i64) WANT(I16, i16) eddy_attributes_axis axis = {.axis = 0};
    eddy_attributes_index_put put = {.accumulates = c->adds};
    eddy_attributes_embedding embedding = {.padding_index = left_out};
    if (c->starts_empty)
        run_kernel(c->kernel, (tensor *[]){&source, &index, &out}, 3, &embedding, team, NULL);
    else
        run_kernel(c->kernel, (tensor *[]){&in, &index, &source, &out}, 4,
                   c->kernel == &eddy_cpu_index_add ? (const void *)&axis : &put, team, NULL);
    for (int64_t i = 0; i < out.count; i++)
        cr_assert_eq(memcmp(tensor_at(&out, i), (char *)want + (size_t)i * eddy_dtype_bytes(dtype),
                            eddy_dtype_bytes(dtype)),
                     0, "%s element %lld of %lld indices", describe(c->kernel->name, &out, a),
                     (long long)i, (long long)length);
    cr_assert(tensor_guards_hold(&out));
    free(named), free(want);
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
}

Test(scatter, rows_of_a_large_output_in_the_order_of_the_index) {
    const row_case cases[] = {{&eddy_cpu_index_add, true, false},
                              {&eddy_cpu_index_put, true, false},
                              {&eddy_cpu_index_put, false, false},
                              {&eddy_cpu_embedding_backward, true, true}};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_I64, EDDY_I16};
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int c = 0; c < 4; c++)
        for (int d = 0; d < 4; d++)
            for (int64_t length = 0; length <= 2000; length = 3 * length + 1)
                for (int t = 0; t < 3; t++)
                    check_rows(&cases[c], dtypes[d], length, (layout)test_below(BROADCAST),
                               teams[t]);
}

Test(scatter, a_row_out_of_range_is_reported) {
    const int64_t shape[] = {ROWS, ROW}, n = 40, source_shape[] = {40, ROW};
    tensor in = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    tensor source = tensor_make(EDDY_F32, 2, source_shape, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&index, i, i == 17 ? ROWS : i == 31 ? -1 : i);
    eddy_attributes_axis axis = {.axis = 0};
    eddy_kernel_error error;
    cr_assert_eq(run_kernel(&eddy_cpu_index_add, (tensor *[]){&in, &index, &source, &out}, 4, &axis,
                            &threaded_team, &error),
                 EDDY_OUT_OF_RANGE);
    cr_assert(error.position == 17 && error.value == ROWS && error.bound == ROWS);
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
}

/* 1 and 4096 halves that one f16 sum would lose: 2048 + 0.5 rounds back to 2048. */
Test(scatter, half_precision_is_rounded_once) {
    const int64_t one = 1, n = 4096;
    tensor in = tensor_make(EDDY_F16, 1, &one, CONTIGUOUS),
           out = tensor_make(EDDY_F16, 1, &one, CONTIGUOUS);
    tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS),
           source = tensor_make(EDDY_F16, 1, &n, CONTIGUOUS);
    tensor_set(&in, 0, 2048);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&index, i, 0), tensor_set(&source, i, 0.5);
    run(&eddy_cpu_index_add, (tensor *[]){&in, &index, &source, &out}, 4,
        &(eddy_attributes_axis){.axis = 0});
    cr_assert_eq(tensor_get(&out, 0), 4096);
    tensor_set(&source, 7, INFINITY);
    run(&eddy_cpu_scatter_add, (tensor *[]){&in, &index, &source, &out}, 4,
        &(eddy_attributes_axis){.axis = 0});
    cr_assert_eq(tensor_get(&out, 0), INFINITY);
    tensor_set(&source, 9, NAN);
    run(&eddy_cpu_scatter_add, (tensor *[]){&in, &index, &source, &out}, 4,
        &(eddy_attributes_axis){.axis = 0});
    cr_assert(isnan(tensor_get(&out, 0)));
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
}

Test(scatter, the_first_index_out_of_range_is_reported_whatever_the_slices) {
    const int64_t table[] = {5, 64}, rows[] = {9000, 64}, n = 9000, none[] = {5, 0},
                  empty[] = {9000, 0};
    tensor in = tensor_make(EDDY_F32, 2, table, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 2, table, CONTIGUOUS);
    tensor index = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS),
           source = tensor_make(EDDY_F32, 2, rows, CONTIGUOUS);
    tensor whole = tensor_make(EDDY_I32, 2, rows, CONTIGUOUS),
           picked = tensor_make(EDDY_F32, 2, rows, CONTIGUOUS);
    tensor no_in = tensor_make(EDDY_F32, 2, none, CONTIGUOUS),
           no_source = tensor_make(EDDY_F32, 2, empty, CONTIGUOUS);
    tensor_fill(&in, 1), tensor_fill(&source, 1), fill_index(&index, 5), fill_index(&whole, 5);
    tensor_set_int(&index, 8999, 5), tensor_set_int(&index, 7000, 9),
        tensor_set_int(&index, 8000, -6);
    tensor_set_int(&whole, 575999, 5), tensor_set_int(&whole, 7000 * 64 + 3, 9),
        tensor_set_int(&whole, 8000 * 64, -6);
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    eddy_attributes_axis axis = {.axis = 0};
    eddy_attributes_embedding embedding = {.padding_index = 1};
    eddy_attributes_index_put put = {0};
    for (int t = 0; t < 3; t++) {
        eddy_kernel_error e[8];
        run_kernel(&eddy_cpu_index_add, (tensor *[]){&in, &index, &source, &out}, 4, &axis,
                   teams[t], &e[0]);
        run_kernel(&eddy_cpu_embedding, (tensor *[]){&index, &in, &picked}, 3, &embedding, teams[t],
                   &e[1]);
        run_kernel(&eddy_cpu_embedding_backward, (tensor *[]){&source, &index, &out}, 3, &embedding,
                   teams[t], &e[2]);
        run_kernel(&eddy_cpu_index, (tensor *[]){&in, &index, &picked}, 3, NULL, teams[t], &e[3]);
        run_kernel(&eddy_cpu_index_put, (tensor *[]){&in, &index, &source, &out}, 4, &put, teams[t],
                   &e[4]);
        run_kernel(&eddy_cpu_index_add, (tensor *[]){&no_in, &index, &no_source, &no_in}, 4, &axis,
                   teams[t], &e[5]);
        run_kernel(&eddy_cpu_scatter, (tensor *[]){&in, &whole, &source, &out}, 4, &axis, teams[t],
                   &e[6]);
        run_kernel(&eddy_cpu_scatter_add, (tensor *[]){&in, &whole, &source, &out}, 4, &axis,
                   teams[t], &e[7]);
        for (int i = 0; i < 8; i++)
            cr_assert(e[i].status == EDDY_OUT_OF_RANGE &&
                          e[i].position == (i < 6 ? 7000 : 7000 * 64 + 3) && e[i].value == 9 &&
                          e[i].bound == 5,
                      "kernel %d: position %lld", i, (long long)e[i].position);
    }
    cr_assert(tensor_guards_hold(&out) && tensor_guards_hold(&picked) &&
              tensor_guards_hold(&no_in));
    tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source),
        tensor_free(&whole);
    tensor_free(&picked), tensor_free(&no_in), tensor_free(&no_source);
}

/* Lines whose indices are taken as they lie: the first beyond its axis is told, and nothing is put there. */
Test(scatter, an_index_out_of_range_in_a_line_of_its_own) {
    const int64_t shape[] = {9, 5}, lines[] = {9, 700};
    const eddy_kernel *const kernels[] = {&eddy_cpu_scatter, &eddy_cpu_scatter_add};
    const int64_t faults[] = {5, -6, INT64_MAX, INT64_MIN};
    eddy_attributes_axis axis = {.axis = 1};
    for (int f = 0; f < 4; f++)
        for (int k = 0; k < 2; k++)
            for (int64_t at = 0; at < 9 * 700; at += 437) {
                tensor in = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
                       out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
                tensor index = tensor_make(EDDY_I64, 2, lines, CONTIGUOUS);
                tensor source = tensor_make(EDDY_F32, 2, lines, CONTIGUOUS);
                tensor_fill(&in, 1), tensor_fill(&source, 1), fill_index(&index, 5);
                tensor_set_int(&index, at, faults[f]), tensor_set_int(&index, 9 * 700 - 1, 5);
                eddy_kernel_error error;
                run_kernel(kernels[k], (tensor *[]){&in, &index, &source, &out}, 4, &axis,
                           &shuffling_team, &error);
                cr_assert(error.status == EDDY_OUT_OF_RANGE && error.position == at &&
                              error.value == faults[f] && error.bound == 5,
                          "%s: position %lld, not %lld", kernels[k]->name,
                          (long long)error.position, (long long)at);
                cr_assert(tensor_guards_hold(&out));
                tensor_free(&in), tensor_free(&out), tensor_free(&index), tensor_free(&source);
            }
}
