/* The pass `cast`: copies and casts that give back what is there, with the bits of the calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

#define COUNT 700

static const char *const casts = "cast,dead";

static int64_t instructions_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.instruction_count;
}

/* Any bits: NaN of all kinds, subnormals, infinities, and numbers of all sizes. */
static eddy_tensor *any_bits(eddy_dtype dtype, unsigned seed) {
    static uint64_t bits[COUNT];
    srand(seed);
    for (size_t i = 0; i < COUNT; i++)
        bits[i] = (uint64_t)rand() << 62 ^ (uint64_t)rand() << 31 ^ (uint64_t)rand();
    unsigned char *bytes = (unsigned char *)bits;
    for (size_t i = 0; i < sizeof(bits) && dtype == EDDY_BOOL; i++)
        bytes[i] &= 1;
    for (size_t i = 0; i < COUNT / 4 && dtype == EDDY_F32;
         i++) /* a few that are NaN, or near zero */
        ((uint32_t *)bits)[4 * i] =
            i % 2 ? 0x7f800000u + (uint32_t)rand() % 0x7fffffu : (uint32_t)rand() % 1000u << 20;
    for (size_t i = 0; i < COUNT / 4 && dtype == EDDY_F64; i++)
        bits[4 * i] = i % 2 ? UINT64_C(0x7ff0000000000001) + ((uint64_t)rand() << 28)
                            : UINT64_C(0x3ff0000000000000) + ((uint64_t)rand() << 26);
    return eddy_from_data(bits, EDDY_SHAPE(COUNT), dtype, NULL);
}

/* ---- dtypes ---- */

/* Where a value comes from: casts leave no signalling NaN in it, the others may. */
typedef enum origin { GIVEN, MOVED, CAST, ORIGINS } origin;

/* What two casts make of a value, twice: an output is never left out. */
static eddy_tensor *two_casts(eddy_tensor *x, origin from, eddy_dtype narrow, eddy_dtype wide,
                              eddy_dtype to) {
    eddy_tensor *y = from == CAST    ? eddy_cast(x, narrow)
                     : from == MOVED ? eddy_flip(x, EDDY_AXES(0))
                                     : x;
    eddy_tensor *last = eddy_cast(eddy_cast(y, wide), to);
    return eddy_cat(EDDY_LIST(last, last), 0);
}

static void check_casts(origin from, eddy_dtype narrow, eddy_dtype wide, eddy_dtype to) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_dtype given = from != CAST ? narrow : narrow == EDDY_F64 ? EDDY_F32 : EDDY_F64;
    eddy_tensor *x = any_bits(given, 1), *out;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = casts)));
    eddy_tensor *y = two_casts(x, from, narrow, wide, to);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    char what[64];
    snprintf(what, sizeof(what), "%s as %s as %s", eddy_dtype_name(narrow), eddy_dtype_name(wide),
             eddy_dtype_name(to));
    for (unsigned seed = 1; seed < 4; seed++) {
        x = any_bits(given, seed);
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        must_have_same_bits(out, two_casts(x, from, narrow, wide, to), what);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(cast, casts_of_casts_round_as_they_did) {
    for (int narrow = 0; narrow < EDDY_DTYPE_COUNT; narrow++)
        for (int wide = 0; wide < EDDY_DTYPE_COUNT; wide++)
            for (int to = 0; to < EDDY_DTYPE_COUNT; to++)
                for (int from = GIVEN; from < ORIGINS; from++)
                    check_casts((origin)from, (eddy_dtype)narrow, (eddy_dtype)wide, (eddy_dtype)to);
    cr_assert_eq(eddy_live_count(), 0);
}

static int64_t casts_left(origin from, eddy_dtype narrow, eddy_dtype wide, eddy_dtype to) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = any_bits(from == CAST ? EDDY_F64 : narrow, 1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = casts)));
    eddy_tensor *y = two_casts(x, from, narrow, wide, to);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    int64_t count = instructions_of(program) - 1 - (from != GIVEN);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return count;
}

Test(cast, casts_are_left_out_where_they_keep_the_bits) {
    static const struct {
        eddy_dtype narrow, wide, to;
        origin from;
        int64_t left; /* casts of two */
    } cases[] = {
        {EDDY_BF16, EDDY_F32, EDDY_BF16, CAST, 0},
        {EDDY_F16, EDDY_F32, EDDY_F16, CAST, 0},
        {EDDY_F32, EDDY_F64, EDDY_F32, CAST, 0},
        {EDDY_I32, EDDY_I64, EDDY_I32, GIVEN, 0},
        {EDDY_I16, EDDY_F32, EDDY_I16, GIVEN, 0},
        {EDDY_U8, EDDY_BF16, EDDY_U8, GIVEN, 0},
        {EDDY_BOOL, EDDY_F32, EDDY_BOOL, GIVEN, 0},
        /* A cast on is one cast. */
        {EDDY_BF16, EDDY_F32, EDDY_F16, CAST, 1},
        {EDDY_BF16, EDDY_F32, EDDY_I16, GIVEN, 1},
        {EDDY_U8, EDDY_I32, EDDY_F32, GIVEN, 1},
        {EDDY_U8, EDDY_I16, EDDY_I8, GIVEN, 1},
        {EDDY_I8, EDDY_F32, EDDY_BOOL, GIVEN, 1},
        /* Signalling NaN become quiet; what is rounded is; what saturates does not wrap around. */
        {EDDY_BF16, EDDY_F32, EDDY_BF16, GIVEN, 2},
        {EDDY_F16, EDDY_F64, EDDY_F32, GIVEN, 2},
        {EDDY_F32, EDDY_F64, EDDY_F32, MOVED, 2},
        {EDDY_BF16, EDDY_F32, EDDY_F16, MOVED, 2},
        {EDDY_F32, EDDY_BF16, EDDY_F32, CAST, 2},
        {EDDY_F16, EDDY_BF16, EDDY_F16, CAST, 2},
        {EDDY_I32, EDDY_F32, EDDY_I32, GIVEN, 2},
        {EDDY_U8, EDDY_F32, EDDY_I8, GIVEN, 2},
        {EDDY_I8, EDDY_U8, EDDY_I8, GIVEN, 2},
        {EDDY_I64, EDDY_F64, EDDY_I64, GIVEN, 2},
        {EDDY_U8, EDDY_BOOL, EDDY_U8, GIVEN, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_assert_eq(casts_left(cases[i].from, cases[i].narrow, cases[i].wide, cases[i].to),
                     cases[i].left, "%zu", i);
}

/* ---- copies ---- */

static eddy_tensor *whole_and_rows(eddy_tensor *x) {
    eddy_tensor *copy = eddy_clone(x), *row = eddy_clone(eddy_select(x, 0, 2));
    return eddy_add(eddy_matmul(copy, copy), eddy_narrow(row, 0, 1, 1));
}

/* A copy of rows is a view of what they are rows of. */
Test(cast, copies_are_views_of_what_they_copy) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(4, 4), EDDY_F32, NULL), *out;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = casts)));
    eddy_tensor *y = whole_and_rows(x);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(instructions_of(program), 2);
    x = eddy_randn(EDDY_SHAPE(4, 4), EDDY_F32, NULL);
    must(eddy_program_run(program, EDDY_LIST(x), &out));
    must_have_same_bits(out, whole_and_rows(x), "rows");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What stands in the way of each: all copies and casts stay. */
Test(cast, what_changes_is_copied) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(4, 4), EDDY_F32, NULL), *out[6];
    eddy_tensor *state = eddy_full(EDDY_SHAPE(4), EDDY_S(1), EDDY_I32, NULL);
    eddy_tensor *other = eddy_full(EDDY_SHAPE(4), EDDY_S(1), EDDY_I32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = casts)));
    eddy_tensor *copy = eddy_clone(x); /* written itself */
    must(eddy_neg_inplace(copy));
    eddy_tensor *before = eddy_clone(state), *wide = eddy_cast(other, EDDY_I64);
    must(eddy_add_s_inplace(state, EDDY_S(1))); /* what was copied is written */
    must(eddy_add_s_inplace(other, EDDY_S(1)));
    eddy_tensor *back = eddy_cast(wide, EDDY_I32), *on = eddy_cast(wide, EDDY_I16);
    eddy_tensor *turned = eddy_contiguous(eddy_t(x)); /* other strides */
    eddy_tensor *output = eddy_clone(x);
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
        {"other", other, EDDY_ROLE_STATE}, {"a", eddy_add(copy, x), EDDY_ROLE_OUTPUT},
        {"b", eddy_sub(state, before), EDDY_ROLE_OUTPUT},
        {"c", eddy_sub(other, back), EDDY_ROLE_OUTPUT}, {"d", eddy_neg(on), EDDY_ROLE_OUTPUT},
        {"e", eddy_sub(turned, eddy_t(x)), EDDY_ROLE_OUTPUT},
        {"output", output, EDDY_ROLE_OUTPUT}));
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.instruction_count, info.recorded_count);
    for (int i = 2; i < 4; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), out));
        const double sums[] = {0, 4, 4, -4 * i, 0, sum_of(x)};
        for (int k = 0; k < 6; k++)
            cr_assert_eq(sum_of(out[k]), sums[k], "%d %d", i, k);
        must(eddy_neg_inplace(out[5])); /* a tensor of its own */
        x = eddy_randn(EDDY_SHAPE(4, 4), EDDY_F32, NULL);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A step of a loop that copies what it then changes: h = h + clone(h) / 2 as numbers of two dtypes. */
static eddy_status grow(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *before = eddy_clone(inputs.items[0]);
    eddy_tensor *wide = eddy_cast(before, EDDY_F64);
    return done(outputs, eddy_sub(before, eddy_mul_s(eddy_cast(wide, EDDY_F32), EDDY_S(0.5))));
}

Test(cast, loops_copy_what_each_step_changes) {
    const char *const passes[] = {"none", "cast", "all"};
    double sums[3];
    for (int i = 0; i < 3; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = of(16), *y, *out;
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes[i])));
        eddy_tensor *wide = eddy_cast(x, EDDY_F64);
        must(eddy_while(is_large, grow, NULL, EDDY_LIST(eddy_clone(x)), NULL, &y));
        eddy_tensor *z = eddy_add(y, eddy_cast(wide, EDDY_F32));
        eddy_program *program =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
        must(eddy_program_run(program, EDDY_LIST(of(100)), &out));
        sums[i] = sum_of(out);
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_eq(sums[0], 300 + 300.0 / 128);
    cr_assert_eq(sums[1], sums[0]);
    cr_assert_eq(sums[2], sums[0]);
    cr_assert_eq(eddy_live_count(), 0);
}
