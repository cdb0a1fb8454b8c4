/* einsum against sums over all labels in double; outer, meshgrid. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <functional/equation.h>
#include <math.h>
#include <string.h>

#define OPERANDS 4
#define MOST 4096

static uint64_t state = 20240607;

static double some(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 40) * 0x1p-23 - 1;
}

/* Axes by label; sizes by letter a .. h are 2, 3, 4 .., of upper case 1. */
static int64_t size_of(char letter) {
    return letter >= 'a' ? 2 + (letter - 'a') % 4 : 1;
}

typedef struct operand {
    const char *labels;
    double values[MOST];
    eddy_tensor *tensor;
} operand;

static void make(operand *o, const char *labels, eddy_dtype dtype, bool is_turned) {
    eddy_shape shape = {.rank = (int32_t)strlen(labels)};
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d] = size_of(labels[d]);
    cr_assert_leq(count, MOST);
    for (int64_t i = 0; i < count; i++)
        o->values[i] = dtype == EDDY_F64 ? some() : floor(8 * some());
    o->labels = labels;
    o->tensor = eddy_cast(eddy_from_data(o->values, shape, EDDY_F64, NULL), dtype);
    eddy_axes back = {.count = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++)
        back.axes[d] = shape.rank - 1 - d;
    if (is_turned)
        o->tensor = eddy_permute(eddy_contiguous(eddy_permute(o->tensor, back)), back);
}

/* The sum over all values of the labels that are not in the output. `place` has the value of each label. */
static double sum_over(const operand *operands, int count, const char *summed, int64_t *place,
                       double *magnitude) {
    if (*summed) {
        double sum = 0;
        for (place[(int)*summed] = 0; place[(int)*summed] < size_of(*summed); place[(int)*summed]++)
            sum += sum_over(operands, count, summed + 1, place, magnitude);
        return sum;
    }
    double product = 1;
    for (int i = 0; i < count; i++) {
        int64_t flat = 0;
        for (const char *label = operands[i].labels; *label; label++)
            flat = flat * size_of(*label) + place[(int)*label];
        product *= operands[i].values[flat];
    }
    *magnitude += fabs(product);
    return product;
}

/* Whether a label that is summed is in one term only. */
static bool sums_alone(const operand *operands, int count, const char *summed) {
    for (; *summed; summed++) {
        int terms = 0;
        for (int i = 0; i < count; i++)
            terms += strchr(operands[i].labels, *summed) != NULL;
        if (terms == 1)
            return true;
    }
    return false;
}

/* `terms` as "ij,jk", `output` as "ik". */
static void check(const char *equation, const char *terms, const char *output, eddy_dtype dtype,
                  bool is_turned) {
    static operand operands[OPERANDS];
    char text[64], summed[64] = "";
    int count = 0, sums = 0;
    strcpy(text, terms);
    eddy_tensor *list[OPERANDS];
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        make(&operands[count], at, dtype, is_turned);
        list[count] = operands[count].tensor;
        count++;
    }
    for (const char *label = terms; *label; label++)
        if (*label != ',' && !strchr(output, *label) && !strchr(summed, *label))
            summed[sums++] = *label;
    eddy_tensor *result = eddy_einsum(equation, (eddy_list){list, count});
    eddy_error error = {0};
    if (!result)
        eddy_error_take(&error);
    cr_assert_not_null(result, "%s: %s", equation, error.message);
    cr_assert_eq(eddy_dtype_of(result),
                 dtype == EDDY_I32 && sums_alone(operands, count, summed) ? EDDY_I64 : dtype);
    cr_assert_eq(eddy_rank_of(result), (int32_t)strlen(output), "%s", equation);
    static double got[MOST];
    cr_assert_eq(eddy_read(eddy_cast(result, EDDY_F64), got,
                           (size_t)eddy_count_of(result) * sizeof(got[0]), NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < eddy_count_of(result); i++) {
        int64_t place[128] = {0}, rest = i;
        for (int d = (int)strlen(output) - 1; d >= 0; d--) {
            place[(int)output[d]] = rest % size_of(output[d]);
            rest /= size_of(output[d]);
        }
        double magnitude = 0, want = sum_over(operands, count, summed, place, &magnitude);
        cr_assert(fabs(got[i] - want) <= 64 * 0x1p-53 * magnitude, "%s element %lld: %a, not %a",
                  equation, (long long)i, got[i], want);
    }
}

Test(einsum, equations_give_the_sum_that_they_name) {
    static const struct {
        const char *equation, *terms, *output;
    } cases[] = {
        {"ab->ba", "ab", "ba"},
        {"ab", "ab", "ab"},
        {"ba", "ba", "ab"},
        {"aA", "aA", "Aa"},
        {"ab->a", "ab", "a"},
        {"ab->", "ab", ""},
        {"aa->", "aa", ""},
        {"aa", "aa", ""},
        {"aa->a", "aa", "a"},
        {"aba->ab", "aba", "ab"},
        {"abcab->c", "abcab", "c"},
        {"aaa->a", "aaa", "a"},
        {"ab,bc->ac", "ab,bc", "ac"},
        {"ab,bc", "ab,bc", "ac"},
        {"ab,cb->ac", "ab,cb", "ac"},
        {" a b , b c -> c a ", "ab,bc", "ca"},
        {"a,b->ab", "a,b", "ab"},
        {"a,a->a", "a,a", "a"},
        {"a,a->", "a,a", ""},
        {"ab,ab->ab", "ab,ab", "ab"},
        {"ab,ab->", "ab,ab", ""},
        {"ab,b->a", "ab,b", "a"},
        {"ab,ab->a", "ab,ab", "a"},
        {"ab,ba->b", "ab,ba", "b"},
        {"abc,bca->b", "abc,bca", "b"},
        {"abcd,dcba->db", "abcd,dcba", "db"},
        {"ab,ab,a->a", "ab,ab,a", "a"},
        {"...a,...a->...", "bca,bca", "bc"},
        {",ab->ab", ",ab", "ab"},
        {"abc,acd->abd", "abc,acd", "abd"},
        {"abc,acd->db", "abc,acd", "db"},
        {"abcd,aecd->abe", "abcd,aecd", "abe"},
        {"abcd,cdef->abef", "abcd,cdef", "abef"},
        {"ab,bc,cd->ad", "ab,bc,cd", "ad"},
        {"ab,ac,ad->bcd", "ab,ac,ad", "bcd"},
        {"ab,bc,cd,de->ae", "ab,bc,cd,de", "ae"},
        {"ab,bb,bc->ac", "ab,bb,bc", "ac"},
        {"abA,bcA->acA", "abA,bcA", "acA"},
        {"ab,cd->bd", "ab,cd", "bd"},
        {"a...->...a", "abc", "bca"},
        {"...ab,...bc->...ac", "dab,dbc", "dac"},
        {"...ab,...bc", "edab,dbc", "edac"},
        {"a...,...->a...", "abc,bc", "abc"},
        {"ab...,b->a...", "abcd,b", "acd"},
        {"a...->a", "abc", "a"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int is_turned = 0; is_turned < 2; is_turned++) {
            eddy_scope *scope = eddy_scope_begin();
            check(cases[i].equation, cases[i].terms, cases[i].output, EDDY_F64, is_turned);
            check(cases[i].equation, cases[i].terms, cases[i].output, EDDY_F32, is_turned);
            check(cases[i].equation, cases[i].terms, cases[i].output, EDDY_I32, is_turned);
            eddy_scope_end(scope);
            cr_assert_eq(eddy_live_count(), 0, "%s leaves tensors", cases[i].equation);
        }
}

Test(einsum, nothing_is_left_without_a_scope) {
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(2, 3, 4), EDDY_F32, NULL),
                *b = eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    eddy_tensor *result = eddy_einsum("abc,cb,cd->ad", EDDY_LIST(a, b, b));
    eddy_tensor *sum = eddy_sum(result, EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_item_f64(sum, NULL), 2 * 3 * 12);
    eddy_release(&sum);
    eddy_release(&result);
    result = eddy_einsum("abc,cb->b", EDDY_LIST(a, b));
    sum = eddy_sum(result, EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_item_f64(sum, NULL), 2 * 12);
    eddy_release(&sum);
    cr_assert_null(eddy_einsum("abc,cb,bd->ad", EDDY_LIST(a, b, b)));
    cr_assert_eq(eddy_error_take(NULL), EDDY_SHAPE_MISMATCH);
    eddy_release(&a);
    eddy_release(&b);
    eddy_release(&result);
    cr_assert_eq(eddy_live_count(), 0);
}

/* With ever more handles held, the cache runs out at every place of the way. */
Test(einsum, a_failed_allocation_leaves_nothing) {
    enum { HELD = 600 };
    static eddy_tensor *held[HELD];
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(2, 3, 3), EDDY_F32, NULL),
                *b = eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    static const char *const equations[] = {"xbb,cb,cd,ef->dxe", "xbb,cb,cb,cb->c"};
    int failed[2] = {0};
    for (int i = 0; i < HELD; i++) {
        held[i] = eddy_t(b);
        for (int e = 0; e < 2; e++) {
            eddy_sync(EDDY_FOREVER);
            eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, INT64_MAX);
            eddy_tensor *result = eddy_einsum(equations[e], EDDY_LIST(a, b, b, b));
            eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 0, 0);
            cr_assert_eq(eddy_error_take(NULL), result ? EDDY_OK : EDDY_OUT_OF_MEMORY);
            failed[e] += !result;
            eddy_release(&result);
            cr_assert_eq(eddy_live_count(), i + 3);
        }
    }
    cr_assert(failed[0] > 0 && failed[1] > 0);
    for (int i = 0; i < HELD; i++)
        eddy_release(&held[i]);
    eddy_release(&a);
    eddy_release(&b);
}

Test(einsum, axes_of_size_1_broadcast) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(2, 1), EDDY_F32, NULL),
                *b = eddy_ones(EDDY_SHAPE(5, 3), EDDY_F32, NULL);
    eddy_tensor *product = eddy_einsum("ab,bc->abc", EDDY_LIST(a, b));
    cr_assert_eq(eddy_count_of(product), 30);
    cr_assert_eq(
        eddy_item_f64(eddy_sum(eddy_einsum("ab,bc->ac", EDDY_LIST(a, b)), EDDY_ALL_AXES, NULL),
                      NULL),
        30);
    eddy_tensor *none = eddy_zeros(EDDY_SHAPE(0, 5), EDDY_F32, NULL);
    cr_assert_eq(
        eddy_item_f64(eddy_sum(eddy_einsum("xb,bc->bc", EDDY_LIST(none, b)), EDDY_ALL_AXES, NULL),
                      NULL),
        0);
    eddy_scope_end(scope);
}

/* (1 + u)^2 - (1 + 2u) is u^2, which is lost where the square is rounded to the dtype first. */
Test(einsum, products_of_16_bit_floats_are_summed_before_they_are_rounded) {
    eddy_scope *scope = eddy_scope_begin();
    const eddy_dtype dtypes[] = {EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 2; d++) {
        double u = dtypes[d] == EDDY_F16 ? 0x1p-10 : 0x1p-7;
        double left[] = {1 + u, 1, 1, 2}, right[] = {1 + u, -1 - 2 * u, 3, 4}, got[2];
        eddy_tensor *a =
            eddy_cast(eddy_from_data(left, EDDY_SHAPE(2, 2), EDDY_F64, NULL), dtypes[d]);
        eddy_tensor *b =
            eddy_cast(eddy_from_data(right, EDDY_SHAPE(2, 2), EDDY_F64, NULL), dtypes[d]);
        eddy_tensor *sums = eddy_einsum("ab,ab->a", EDDY_LIST(a, b));
        cr_assert_eq(eddy_dtype_of(sums), dtypes[d]);
        cr_assert_eq(eddy_read(eddy_cast(sums, EDDY_F64), got, sizeof(got), NULL), EDDY_OK);
        cr_assert(got[0] == u * u && got[1] == 11, "%s: %a and %g", eddy_dtype_name(dtypes[d]),
                  got[0], got[1]);
    }
    eddy_scope_end(scope);
}

static void refused(const char *equation, eddy_list operands, eddy_status status,
                    const char *part) {
    eddy_error error;
    cr_assert_null(eddy_einsum(equation, operands), "%s", equation);
    cr_assert_eq(eddy_error_take(&error), status, "%s: %s", equation, error.message);
    cr_assert_str_eq(error.op, "einsum");
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

Test(einsum, what_is_no_equation_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL),
                *n = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F64, NULL);
    refused(NULL, EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "NULL");
    refused("a1", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "'1'");
    refused("ab-a", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "'-'");
    refused("ab->a-", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "'-'");
    refused("ab->a,b", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "','");
    refused("ab->c", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "no operand");
    refused("ab->aa", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "twice");
    refused("ab,bc", EDDY_LIST(m), EDDY_INVALID_ARGUMENT,
            "the equation has 2 terms, there is 1 operand");
    refused("ab->ba", EDDY_LIST(m, m), EDDY_INVALID_ARGUMENT,
            "the equation has 1 term, there are 2 operands");
    refused("ab", EDDY_LIST(m, m), EDDY_INVALID_ARGUMENT, "1 term, ");
    refused("a....b", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "'.'");
    refused("...a...", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "'.'");
    refused("abcdefghijklmnopqrstuvwxyz", EDDY_LIST(m), EDDY_INVALID_ARGUMENT, "labels");
    refused("abc", EDDY_LIST(m), EDDY_SHAPE_MISMATCH, "2 axes");
    refused("abc...", EDDY_LIST(m), EDDY_SHAPE_MISMATCH, "2 axes");
    refused("ab,bc", EDDY_LIST(m, m), EDDY_SHAPE_MISMATCH, "axis 0 of operand 1");
    refused("aa", EDDY_LIST(m), EDDY_SHAPE_MISMATCH, "axis 1");
    refused("...,...", EDDY_LIST(m, eddy_t(m)), EDDY_SHAPE_MISMATCH, "operand 1");
    refused("ab,ab", EDDY_LIST(m, n), EDDY_DTYPE_MISMATCH, "f64");
    refused("ab->ba", EDDY_LIST(eddy_cast(m, EDDY_BOOL)), EDDY_DTYPE_MISMATCH, "bool");
    refused("ab", (eddy_list){NULL, 0}, EDDY_INVALID_ARGUMENT, "operands");
    refused("ab", EDDY_LIST(NULL), EDDY_INVALID_ARGUMENT, "einsum");
    eddy_shape wide = {.rank = 9};
    for (int d = 0; d < 9; d++)
        wide.dims[d] = 1;
    eddy_tensor *w = eddy_ones(wide, EDDY_F32, NULL);
    refused("abcdefghi,jklmnopqr", EDDY_LIST(w, w), EDDY_SHAPE_MISMATCH, "16 axes");
    refused("abcdefghi,jklmnopqr->",
            EDDY_LIST(eddy_reshape(w, wide), eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL)),
            EDDY_SHAPE_MISMATCH, "operand 1");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(einsum, outer_multiplies_all_pairs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_arange(EDDY_S(1), EDDY_S(4), EDDY_S(1), EDDY_I32, NULL);
    eddy_tensor *b = eddy_arange(EDDY_S(1), EDDY_S(3), EDDY_S(1), EDDY_F32, NULL);
    eddy_tensor *product = eddy_outer(a, b);
    cr_assert_eq(eddy_dtype_of(product), EDDY_F32);
    float values[6];
    cr_assert_eq(eddy_read(product, values, sizeof(values), NULL), EDDY_OK);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(values[i], (float)((i / 2 + 1) * (i % 2 + 1)));
    cr_assert_null(eddy_outer(product, b));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_str_eq(error.op, "outer");
    cr_assert_null(eddy_outer(NULL, b));
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(einsum, meshgrid_lays_vectors_along_axes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_arange(EDDY_S(0), EDDY_S(3), EDDY_S(1), EDDY_F32, NULL);
    eddy_tensor *b = eddy_arange(EDDY_S(0), EDDY_S(2), EDDY_S(1), EDDY_F32, NULL), *grid[2];
    for (int turned = 0; turned < 2; turned++) {
        cr_assert_eq(
            eddy_meshgrid(EDDY_LIST(a, b), turned ? EDDY_INDEXING_XY : EDDY_INDEXING_IJ, grid),
            EDDY_OK);
        float first[6], second[6];
        cr_assert_eq(eddy_read(grid[0], first, sizeof(first), NULL), EDDY_OK);
        cr_assert_eq(eddy_read(grid[1], second, sizeof(second), NULL), EDDY_OK);
        eddy_shape shape = eddy_shape_of(grid[1]);
        cr_assert(shape.rank == 2 && shape.dims[0] == (turned ? 2 : 3) &&
                  shape.dims[1] == (turned ? 3 : 2));
        for (int i = 0; i < 6; i++) {
            cr_assert_eq(first[i], (float)(turned ? i % 3 : i / 2));
            cr_assert_eq(second[i], (float)(turned ? i / 3 : i % 2));
        }
    }
    eddy_tensor *kept = grid[0];
    cr_assert_eq(eddy_meshgrid(EDDY_LIST(a, eddy_cast(b, EDDY_I64)), EDDY_INDEXING_IJ, grid),
                 EDDY_DTYPE_MISMATCH);
    cr_assert_eq(eddy_meshgrid(EDDY_LIST(grid[0]), EDDY_INDEXING_IJ, grid), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(eddy_meshgrid((eddy_list){NULL, 0}, EDDY_INDEXING_IJ, grid),
                 EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_meshgrid(EDDY_LIST(a), (eddy_indexing)2, grid), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(grid[0], kept, "written on failure");
    eddy_error_take(NULL);
    cr_assert_eq(
        eddy_meshgrid(EDDY_LIST(eddy_full(EDDY_SHAPE(), EDDY_S(1), EDDY_F32, NULL)), 0, grid),
        EDDY_OK);
    cr_assert_eq(eddy_count_of(grid[0]), 1);
    eddy_scope_end(scope);
}

/* As PyTorch has it: a sum over axes of one operand is i64 and stays so, a product of matrices keeps its dtype and wraps around. */
Test(einsum, integers_that_are_summed_alone_become_i64) {
    const struct {
        const char *equation;
        eddy_dtype dtype;
        int64_t value; /* of every element, all operands being 100 */
    } rows[] = {{"ab->a", EDDY_I64, 300},
                {"ab->", EDDY_I64, 600},
                {"ab->ab", EDDY_U8, 100},
                {"ab,cb->ac", EDDY_U8, 48},
                {"ab,ab->ab", EDDY_U8, 16},
                {"ab,cd->ac", EDDY_I64, 90000},
                {"ab,cd->", EDDY_I64, 360000},
                {"ab,ab->a", EDDY_U8, 48},
                {"ab,cb->b", EDDY_I64, 40000},
                {"ab,cb,db->a", EDDY_I64, 12000000},
                {"ab,cb,de->ae", EDDY_I64, 12000000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(100), EDDY_U8, NULL),
                    *items[] = {x, x, x};
        int64_t count = 1;
        for (const char *c = rows[i].equation; *c; c++)
            count += *c == ',';
        eddy_tensor *result = eddy_einsum(rows[i].equation, (eddy_list){items, count});
        cr_assert_not_null(result, "%s", rows[i].equation);
        cr_expect_eq(eddy_dtype_of(result), rows[i].dtype, "%s", rows[i].equation);
        cr_expect_eq(eddy_item_i64(eddy_max(result, EDDY_ALL_AXES, NULL), NULL), rows[i].value,
                     "%s", rows[i].equation);
        cr_expect_eq(eddy_item_i64(eddy_min(result, EDDY_ALL_AXES, NULL), NULL), rows[i].value,
                     "%s", rows[i].equation);
        eddy_scope_end(scope);
    }
}
