/* sort, argsort, topk, unique and bincount: exact, against the C library's qsort with places as the last word. */
#include "axes.h"
#include "late.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    double real;     /* floats; 0 for integers */
    int64_t integer; /* integers; 0 for floats */
    int64_t place;
} item;

/* NaN is larger than all else, and equal to itself. */
static int order(const item *a, const item *b) {
    if (isnan(a->real) || isnan(b->real))
        return isnan(a->real) - isnan(b->real);
    if (a->real != b->real)
        return a->real < b->real ? -1 : 1;
    return (a->integer > b->integer) - (a->integer < b->integer);
}

static int ascending(const void *a, const void *b) {
    int by_value = order(a, b);
    return by_value != 0 ? by_value : ((const item *)a)->place < ((const item *)b)->place ? -1 : 1;
}

static int descending(const void *a, const void *b) {
    int by_value = order(b, a);
    return by_value != 0 ? by_value : ((const item *)a)->place < ((const item *)b)->place ? -1 : 1;
}

static item item_of(const tensor *in, int64_t flat, int64_t place) {
    bool is_float = eddy_dtype_is_float(in->view.dtype);
    return (item){.real = is_float ? tensor_get(in, flat) : 0,
                  .integer = is_float ? 0 : tensor_get_int(in, flat),
                  .place = place};
}

/* Many equals, both zeros, and what is no number. */
static void fill(tensor *in, double range) {
    tensor_fill(in, range);
    static const double specials[] = {0, -0.0, NAN, INFINITY, -INFINITY, 1, -1};
    for (int64_t i = 0; i < in->count && eddy_dtype_is_float(in->view.dtype); i++)
        if (test_below(4) == 0)
            tensor_set(in, i, specials[test_below(7)]);
}

static bool same_element(const tensor *a, int64_t at, const tensor *b, int64_t bt) {
    return memcmp(tensor_at(a, at), tensor_at(b, bt), eddy_dtype_bytes(a->view.dtype)) == 0;
}

/* The flat number of element `place` of the line that starts at the first element of `line`. */
static int64_t flat_of(const shape_case *c, int32_t axis, int64_t line, int64_t place) {
    int64_t inner = 1;
    for (int32_t d = axis + 1; d < c->rank; d++)
        inner *= c->shape[d];
    int64_t length = c->rank == 0 ? 1 : c->shape[axis];
    return line / inner * inner * length + place * inner + line % inner;
}

typedef enum kind { SORT, ARGSORT, TOPK } kind;

static void check(kind k, eddy_dtype dtype, const shape_case *c, int32_t axis, bool is_turned,
                  int64_t kept, layout in_layout, eddy_kernel_team *team) {
    shape_case result = *c;
    int64_t length = c->rank == 0 ? 1 : c->shape[axis];
    if (c->rank > 0)
        result.shape[axis] = kept;
    tensor in = tensor_make(dtype, c->rank, c->shape, in_layout);
    tensor values = tensor_make(dtype, c->rank, result.shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor indices =
        tensor_make(EDDY_I64, c->rank, result.shape, (layout)test_below(OUTPUT_LAYOUTS));
    fill(&in, test_below(2) ? 5 : 1e9);
    eddy_attributes_sort sort = {.axis = axis, .is_descending = is_turned};
    eddy_attributes_topk topk = {.axis = axis, .is_smallest = !is_turned};
    if (k == ARGSORT)
        run_kernel(&eddy_cpu_sort, (tensor *[]){&in, &indices}, 2, &sort, team, NULL);
    else
        run_kernel(k == SORT ? &eddy_cpu_sort : &eddy_cpu_topk,
                   (tensor *[]){&in, &values, &indices}, 3,
                   k == SORT ? (const void *)&sort : (const void *)&topk, team, NULL);
    const char *name = k == TOPK ? "topk" : "sort";
    int64_t lines = length > 0 ? in.count / length : 0;
    item *items = malloc(sizeof(item) * (size_t)(length + 1));
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t i = 0; i < length; i++)
            items[i] = item_of(&in, flat_of(c, axis, line, i), i);
        qsort(items, (size_t)length, sizeof(item), is_turned ? descending : ascending);
        for (int64_t i = 0; i < kept; i++) {
            int64_t at = flat_of(&result, axis, line, i);
            cr_assert_eq(tensor_get_int(&indices, at), items[i].place,
                         "%s axis %d line %lld place %lld: %lld, not %lld",
                         describe(name, &in, in_layout), (int)axis, (long long)line, (long long)i,
                         (long long)tensor_get_int(&indices, at), (long long)items[i].place);
            cr_assert(k == ARGSORT ||
                          same_element(&values, at, &in, flat_of(c, axis, line, items[i].place)),
                      "%s axis %d line %lld place %lld", describe(name, &in, in_layout), (int)axis,
                      (long long)line, (long long)i);
        }
    }
    cr_assert(tensor_guards_hold(&values) && tensor_guards_hold(&indices));
    free(items);
    tensor_free(&in), tensor_free(&values), tensor_free(&indices);
}

Test(sort, every_dtype_layout_and_axis) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++) {
            const shape_case *c = &small_shapes[s];
            for (int32_t axis = 0; axis < c->rank || axis == 0; axis++) {
                int64_t length = c->rank == 0 ? 1 : c->shape[axis];
                check((kind)test_below(2), (eddy_dtype)d, c, axis, test_below(2), length,
                      (layout)test_below(LAYOUT_COUNT), &shuffling_team);
                check(TOPK, (eddy_dtype)d, c, axis, test_below(2),
                      c->rank == 0 ? 1 : test_below(length + 1), (layout)test_below(LAYOUT_COUNT),
                      &shuffling_team);
                check(TOPK, (eddy_dtype)d, c, axis, test_below(2),
                      c->rank == 0 ? 1 : test_below(length / 8 + 1),
                      (layout)test_below(LAYOUT_COUNT), &serial_team);
            }
        }
}

Test(sort, round_the_bounds_of_the_methods) {
    for (int64_t n = 0; n < 70; n++)
        for (int d = 0; d < EDDY_DTYPE_COUNT; d++) {
            shape_case c = {2, {n, 3}};
            check(SORT, (eddy_dtype)d, &c, 0, n % 2, n, CONTIGUOUS, &serial_team);
            check(TOPK, (eddy_dtype)d, &c, 0, n % 2, test_below(n + 1), CONTIGUOUS, &serial_team);
        }
}

/* Short lines are sorted some at a time, the last ones fewer. */
Test(sort, lines_side_by_side) {
    const int64_t counts[] = {1, 2, 3, 100, 511, 512, 513};
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
        for (int64_t lines = 1; lines < 20; lines++) {
            shape_case c = {2, {lines, counts[n]}};
            check(lines % 2 ? SORT : ARGSORT, lines % 3 ? EDDY_F32 : EDDY_I16, &c, 1, lines % 4 < 2,
                  counts[n], lines % 5 ? CONTIGUOUS : TURNED,
                  lines % 2 ? &shuffling_team : &serial_team);
        }
}

/* Up to 32 of each line, which are less than an eighth. */
Test(sort, the_least_of_lines_side_by_side) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_BF16, EDDY_I8};
    for (int64_t count = 17; count < 520; count += 1 + count / 9)
        for (int64_t lines = 1; lines < 20; lines += 1 + lines / 3) {
            shape_case c = {2, {lines, count}};
            int64_t kept = 1 + test_below(count / 8 - 1 < 33 ? count / 8 - 1 : 33);
            check(TOPK, dtypes[lines % 3], &c, 1, count % 2, kept, (layout)test_below(LAYOUT_COUNT),
                  lines % 2 ? &shuffling_team : &serial_team);
        }
}

Test(sort, big_ones) {
    const shape_case shapes[] = {{1, {200003}}, {2, {3, 50001}}, {2, {140001, 2}}, {2, {3000, 67}}};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16, EDDY_I64, EDDY_I8};
    for (int s = 0; s < 4; s++)
        for (int32_t axis = 0; axis < shapes[s].rank; axis++)
            for (int d = 0; d < 5; d++) {
                check(SORT, dtypes[d], &shapes[s], axis, d % 2, shapes[s].shape[axis],
                      d % 2 ? UNALIGNED : TURNED, &threaded_team);
                check(TOPK, dtypes[d], &shapes[s], axis, d % 2, d % 2 ? 1 : 2, UNALIGNED,
                      &threaded_team);
            }
}

Test(sort, parts_by_a_team_are_merged_as_one) {
    const int64_t sizes[] = {131072, 131073, 16 * 32768, 16 * 32768 + 1, 700001};
    for (int s = 0; s < 5; s++) {
        shape_case c = {1, {sizes[s]}};
        check(SORT, s % 2 ? EDDY_F64 : EDDY_I32, &c, 0, s % 2, sizes[s], CONTIGUOUS,
              s % 2 ? &threaded_team : &shuffling_team);
        check(TOPK, EDDY_F16, &c, 0, s % 2, sizes[s] / 4, NEGATIVE,
              s % 2 ? &shuffling_team : &threaded_team);
    }
}

/* Every element is better than those before it: the heap's worst case. */
Test(sort, topk_of_growing_elements) {
    int64_t n = 30000, k = 100;
    tensor in = tensor_make(EDDY_I32, 1, &n, CONTIGUOUS),
           values = tensor_make(EDDY_I32, 1, &k, CONTIGUOUS);
    tensor indices = tensor_make(EDDY_I64, 1, &k, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&in, i, i);
    eddy_attributes_topk attributes = {.axis = 0};
    run_kernel(&eddy_cpu_topk, (tensor *[]){&in, &values, &indices}, 3, &attributes, &serial_team,
               NULL);
    for (int64_t i = 0; i < k; i++)
        cr_assert(tensor_get_int(&values, i) == n - 1 - i &&
                  tensor_get_int(&indices, i) == n - 1 - i);
    tensor_free(&in), tensor_free(&values), tensor_free(&indices);
}

/* ---- late shapes ---- */

static void check_unique(eddy_dtype dtype, const shape_case *c, double range, layout l,
                         bool is_full) {
    tensor in = tensor_make(dtype, c->rank, c->shape, l);
    fill(&in, range);
    late_call late;
    late_begin(&late, &eddy_cpu_unique, (tensor *[]){&in}, 1, is_full ? 4 : 2, NULL);
    item *items = malloc(sizeof(item) * (size_t)(in.count + 1));
    for (int64_t i = 0; i < in.count; i++)
        items[i] = item_of(&in, i, i);
    qsort(items, (size_t)in.count, sizeof(item), ascending);
    int64_t total = 0;
    for (int64_t i = 0; i < in.count; i++)
        total += i == 0 || isnan(items[i].real) || order(&items[i], &items[i - 1]) != 0;
    cr_assert(late.shapes[0].rank == 1 && late.shapes[0].dims[0] == total, "%s: %lld, not %lld",
              describe("unique", &in, l), (long long)late.shapes[0].dims[0], (long long)total);
    tensor values = tensor_make(dtype, 1, &total, (layout)test_below(OUTPUT_LAYOUTS));
    tensor inverse = tensor_make(EDDY_I64, c->rank, c->shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor counts = tensor_make(EDDY_I64, 1, &total, (layout)test_below(OUTPUT_LAYOUTS));
    late_run(&late, 1, (tensor *[]){&values, &inverse, &counts});
    int64_t at = -1, here = 0;
    for (int64_t i = 0; i < in.count; i++) {
        if (i == 0 || isnan(items[i].real) || order(&items[i], &items[i - 1]) != 0) {
            cr_assert(at < 0 || !is_full || tensor_get_int(&counts, at) == here, "%s",
                      describe("unique", &in, l));
            at++, here = 0;
            cr_assert(same_element(&values, at, &in, items[i].place), "%s value %lld",
                      describe("unique", &in, l), (long long)at);
        }
        here++;
        cr_assert(!is_full || tensor_get_int(&inverse, items[i].place) == at, "%s element %lld",
                  describe("unique", &in, l), (long long)items[i].place);
    }
    cr_assert(at < 0 || !is_full || tensor_get_int(&counts, at) == here);
    cr_assert(tensor_guards_hold(&values) && tensor_guards_hold(&inverse) &&
              tensor_guards_hold(&counts));
    free(items);
    tensor_free(&in), tensor_free(&values), tensor_free(&inverse), tensor_free(&counts);
}

Test(sort, unique_values_inverse_and_counts) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (int is_full = 0; is_full < 2; is_full++)
                check_unique((eddy_dtype)d, &small_shapes[s], test_below(2) ? 9 : 1000,
                             (layout)test_below(LAYOUT_COUNT), is_full);
    const shape_case big = {2, {150, 1001}};
    check_unique(EDDY_F32, &big, 1e4, STRIDED, true);
}

/* Those close together go to a table, of 2 or 8 places for an element at most. */
Test(sort, unique_of_integers_close_together_and_far_apart) {
    const eddy_dtype integers[] = {EDDY_I8, EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};
    const shape_case shapes[] = {{1, {4099}}, {2, {67, 61}}, {3, {3, 1100, 1}}};
    const double ranges[] = {0, 1, 50, 3000, 4050, 4200, 16000, 17000, 1e9, 1e19};
    for (int d = 0; d < 5; d++)
        for (int s = 0; s < 3; s++)
            for (int r = 0; r < 10; r++)
                for (int is_full = 0; is_full < 2; is_full++)
                    check_unique(integers[d], &shapes[s], ranges[r],
                                 (layout)((r + s) % LAYOUT_COUNT), is_full);
}

static void check_bincount(eddy_dtype dtype, int64_t n, int64_t range, int64_t minlength,
                           const eddy_dtype *weights_dtype, layout l) {
    tensor in = tensor_make(dtype, 1, &n, l), weights;
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&in, l == BROADCAST ? 0 : i, test_below(range));
    if (weights_dtype != NULL) {
        weights = tensor_make(*weights_dtype, 1, &n, l == BROADCAST ? STRIDED : l);
        tensor_fill(&weights, 8);
    }
    eddy_attributes_bincount attributes = {.minlength = minlength};
    tensor *inputs[] = {&in, weights_dtype != NULL ? &weights : NULL};
    late_call late;
    late_begin(&late, &eddy_cpu_bincount, inputs, 2, 3, &attributes);
    int64_t length = minlength;
    for (int64_t i = 0; i < n; i++)
        length = tensor_get_int(&in, i) >= length ? tensor_get_int(&in, i) + 1 : length;
    cr_assert(late.shapes[0].rank == 1 && late.shapes[0].dims[0] == length, "%s",
              describe("bincount", &in, l));
    eddy_dtype out_dtype = weights_dtype == NULL        ? EDDY_I64
                           : *weights_dtype == EDDY_F32 ? EDDY_F32
                                                        : EDDY_F64;
    tensor out = tensor_make(out_dtype, 1, &length, (layout)test_below(OUTPUT_LAYOUTS));
    late_run(&late, 2, (tensor *[]){&out});
    for (int64_t b = 0; b < length; b++) {
        double want = 0, magnitude = 0;
        for (int64_t i = 0; i < n; i++)
            if (tensor_get_int(&in, i) == b) {
                want += weights_dtype != NULL ? tensor_get(&weights, i) : 1;
                magnitude += weights_dtype != NULL ? fabs(tensor_get(&weights, i)) : 0;
            }
        double bound = magnitude * (double)n * (out_dtype == EDDY_F32 ? 0x1p-24 : 0x1p-53);
        cr_assert(fabs(tensor_get(&out, b) - want) <= bound, "%s bin %lld: %g, not %g",
                  describe("bincount", &in, l), (long long)b, tensor_get(&out, b), want);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&in), tensor_free(&out);
    if (weights_dtype != NULL)
        tensor_free(&weights);
}

Test(sort, bincount_with_and_without_weights) {
    const eddy_dtype integers[] = {EDDY_I8, EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};
    const int64_t sizes[] = {0, 1, 511, 512, 513, 2003};
    for (int d = 0; d < 5; d++)
        for (int s = 0; s < 6; s++)
            for (int w = -1; w < EDDY_DTYPE_COUNT; w++) {
                eddy_dtype weights = (eddy_dtype)w;
                check_bincount(integers[d], sizes[s], 1 + test_below(120), test_below(3) * 50,
                               w < 0 ? NULL : &weights, (layout)test_below(LAYOUT_COUNT));
            }
}

Test(sort, bincount_names_the_first_negative_number) {
    int64_t n = 2000;
    tensor in = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&in, i, i == 700 || i == 1900 ? -i : i == 600 ? 7 : 1);
    eddy_attributes_bincount attributes = {0};
    late_call late;
    late_begin(&late, &eddy_cpu_bincount, (tensor *[]){&in, NULL}, 2, 3, &attributes);
    cr_assert(eddy_load_relaxed(&late.error.status) == EDDY_OUT_OF_RANGE &&
              late.error.position == 700 && late.error.value == -700);
    late_end(&late);
    tensor_free(&in);
}
