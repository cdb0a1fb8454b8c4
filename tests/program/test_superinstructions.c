/* Superinstructions: each chain of functional/ops/fused.toml has the bits of its members, programs use it where they may, and results stay what
 * they were. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/call/chain.h>
#include <math.h>
#include <program/fused.h>
#include <program/program.h>
#include <program/run.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/numbered.h>
#include <tests/program/outcome.h>

#define ROWS 96
#define COLUMNS 64 /* large enough for tiles */
#define COUNT (ROWS * COLUMNS)
#define LONGEST 70
#define FARTHEST 3 /* elements between two of an operand */

static uint32_t drawn = 1;

static uint32_t draw(uint32_t below) {
    drawn = drawn * 1664525 + 1013904223;
    return (drawn >> 8) % below;
}

static const float special[] = {0.0F,       -0.0F,    1.0F,        -1.0F,           0.5F,
                                NAN,        INFINITY, -INFINITY,   1e-40F,          -1e-45F,
                                1e38F,      -3e38F,   88.7F,       -103.9F,         17.0F,
                                1.0000001F, 1e-20F,   -0.9999999F, 1.17549435e-38F, 3.0F};

/* Special values, and others whose products and sums are rounded. */
static float number(void) {
    uint32_t which = draw(2 * sizeof(special) / sizeof(*special));
    return which < sizeof(special) / sizeof(*special) ? special[which]
                                                      : ((float)draw(1 << 24) - 8e6F) / 1e6F;
}

/* What no op promises is not compared: the sign and the payload of a NaN. */
static bool is_same(float a, float b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

/* ---- loops ---- */

typedef struct chain_case {
    eddy_dtype dtype;
    _Alignas(8) char inputs[3][LONGEST * FARTHEST * 8];
    int64_t steps[3]; /* elements from one to the next */
    eddy_chain_numbers numbers;
    int64_t count;
    _Alignas(8) char expected[LONGEST * 8], found[(LONGEST + 1) * 8];
} chain_case;

static int64_t bytes_of(const chain_case *c) {
    return c->dtype == EDDY_F32 ? 4 : 8;
}

static double get(const chain_case *c, const char *values, int64_t i) {
    const void *at = values + i * bytes_of(c);
    return c->dtype == EDDY_F32 ? (double)*(const float *)at : *(const double *)at;
}

static void set(const chain_case *c, char *values, int64_t i, double value) {
    void *at = values + i * bytes_of(c);
    if (c->dtype == EDDY_F32)
        *(float *)at = (float)value;
    else
        *(double *)at = value;
}

static void run_members(const eddy_chain *chain, chain_case *c) {
    _Alignas(8) char results[2][LONGEST * 8];
    uint32_t input = 0, number = 0;
    for (uint32_t m = 0; m < chain->count; m++) {
        const eddy_op *op = chain->members[m].op;
        char *data[4];
        int64_t strides[4];
        for (int32_t k = 0; k < op->operand_count; k++) {
            bool is_taken = k == chain->members[m].taken;
            data[k] = is_taken ? results[(m + 1) % 2] : c->inputs[input];
            strides[k] = bytes_of(c) * (is_taken ? 1 : c->steps[input]);
            input += is_taken ? 0 : 1;
        }
        data[op->operand_count] = m + 1 == chain->count ? c->expected : results[m % 2];
        strides[op->operand_count] = bytes_of(c);
        const eddy_scalar *numbers = &c->numbers.first_number;
        eddy_kernel_loop(op->kernels[c->dtype])(data, strides, c->count, &numbers[number]);
        number += op->scalar_count > 0;
    }
}

static void run_chain(const eddy_chain *chain, chain_case *c) {
    char *data[4];
    int64_t strides[4];
    for (uint32_t k = 0; k < chain->input_count; k++) {
        data[k] = c->inputs[k];
        strides[k] = bytes_of(c) * c->steps[k];
    }
    data[chain->input_count] = c->found;
    strides[chain->input_count] = bytes_of(c);
    eddy_kernel_loop(eddy_chain_kernel(chain, c->dtype))(data, strides, c->count, &c->numbers);
}

static void compare(const eddy_chain *chain, chain_case *c) {
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < LONGEST * FARTHEST; i++)
            set(c, c->inputs[k], i, (double)number() * (1 + (draw(2) ? 0x1p-40 : 0)));
    c->numbers = (eddy_chain_numbers){EDDY_S((double)number()), EDDY_S((int64_t)draw(5) - 2)};
    set(c, c->found, c->count, 42);
    run_members(chain, c);
    run_chain(chain, c);
    for (int64_t i = 0; i < c->count; i++) {
        double expected = get(c, c->expected, i), found = get(c, c->found, i);
        bool is_same_bits = memcmp(&expected, &found, sizeof(found)) == 0;
        cr_assert(is_same_bits || (isnan(expected) && isnan(found)),
                  "%s of %lld: %a instead of %a at %lld", chain->name, (long long)c->count, found,
                  expected, (long long)i);
    }
    cr_assert_eq(get(c, c->found, c->count), 42, "%s writes behind its end", chain->name);
}

Test(superinstructions, a_loop_has_the_bits_of_its_members) {
    static chain_case c;
    uint32_t wide = 0;
    for (uint32_t n = 0; n < 2 * eddy_chain_count; n++) {
        const eddy_chain *chain = &eddy_chains[n / 2];
        c.dtype = n % 2 ? EDDY_F64 : EDDY_F32;
        if (!eddy_chain_kernel(chain, c.dtype))
            continue;
        wide += n % 2;
        for (c.count = 0; c.count <= LONGEST; c.count++)
            for (uint32_t layout = 0; layout < 32; layout++) {
                for (int k = 0; k < 3; k++) /* contiguous, each broadcast, any */
                    c.steps[k] = layout < 8 ? !(layout >> k & 1) : draw(FARTHEST + 1);
                compare(chain, &c);
            }
    }
    cr_assert_gt(wide, 10);
}

Test(superinstructions, longer_chains_come_first) {
    cr_assert_gt(eddy_chain_count, 10);
    for (uint32_t n = 1; n < eddy_chain_count; n++)
        cr_assert_leq(eddy_chains[n].count, eddy_chains[n - 1].count);
}

/* ---- programs ---- */

static void use(const char *passes) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = passes));
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
}

static eddy_tensor *matrix(int64_t rows, int64_t columns) {
    static float values[COUNT];
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = number();
    return eddy_from_data(values, EDDY_SHAPE(rows, columns), EDDY_F32, NULL);
}

static void must_equal(eddy_tensor *a, eddy_tensor *b) {
    static float left[COUNT], right[COUNT];
    int64_t count = eddy_count_of(b);
    cr_assert(eddy_count_of(a) == count && count <= COUNT);
    must(eddy_read(a, left, (size_t)count * sizeof(float), NULL));
    must(eddy_read(b, right, (size_t)count * sizeof(float), NULL));
    for (int64_t i = 0; i < count; i++)
        cr_assert(is_same(left[i], right[i]), "%a and %a at %lld", (double)left[i],
                  (double)right[i], (long long)i);
}

/* Chains that the program's groups run. */
static uint32_t chains_of(const eddy_program *program, const char *name) {
    uint32_t found = 0;
    for (uint32_t g = 0; g < program->executable->group_count; g++) {
        const eddy_fused *fused = program->executable->fused[g];
        const eddy_fused_member *calls = fused->members + fused->member_count;
        for (uint32_t c = 0; c < fused->call_count; c++)
            found += calls[c].chain && (!name || !strcmp(calls[c].chain->name, name));
    }
    return found;
}

typedef eddy_tensor *formula(eddy_tensor *const *x);

static eddy_program *record(formula *compute, eddy_tensor *const *x, eddy_tensor **result) {
    must(eddy_record_begin(NULL));
    *result = compute(x);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x[0], EDDY_ROLE_INPUT}, {"y", x[1], EDDY_ROLE_INPUT},
                      {"z", x[2], EDDY_ROLE_INPUT}, {"result", *result, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static int64_t members_of(const char *name) {
    for (uint32_t n = 0; n < eddy_chain_count; n++)
        if (!strcmp(eddy_chains[n].name, name))
            return eddy_chains[n].count;
    return 0;
}

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

/* Calls of loops for a tile of the first group. */
static uint32_t calls_of(const eddy_program *program) {
    return program->executable->fused[0]->call_count;
}

/* The program has these chains, and gives what the calls give. */
static void expect(formula *compute, eddy_tensor *const *x, const char *name, uint32_t chains) {
    eddy_tensor *result, *replayed;
    eddy_program *program = record(compute, x, &result);
    cr_assert_eq(chains_of(program, name), chains, "%u chains", chains_of(program, name));
    if (chains > 0 && name)
        cr_assert_eq(calls_of(program),
                     program->executable->fused[0]->member_count - members_of(name) + 1);
    for (int i = 0; i < 2; i++) {
        must(eddy_program_run(program, EDDY_LIST(x[0], x[1], x[2]), &replayed));
        must_equal(replayed, result);
    }
    eddy_program_release(&program);
}

static const eddy_chain *tried;

static eddy_tensor *call_members(eddy_tensor *const *x) {
    eddy_tensor *before = NULL;
    for (uint32_t m = 0; m < tried->count; m++) {
        const eddy_op *op = tried->members[m].op;
        eddy_tensor *operands[3];
        for (int32_t k = 0; k < op->operand_count; k++)
            operands[k] = k == tried->members[m].taken ? before : *x++;
        bool has_number = op->attribute_count > 0;
        const eddy_attribute number = {has_number ? op->attributes[0].name : NULL,
                                       EDDY_ATTRIBUTE_SCALAR,
                                       {.scalar = EDDY_S(m == 0 ? 0.7 : -3.0)}};
        must(eddy_call(op->name, (eddy_list){operands, op->operand_count},
                       &(eddy_attributes){&number, has_number}, &before));
    }
    return before;
}

static void expect_each_chain(int64_t rows, int64_t columns) {
    for (uint32_t n = 0; n < eddy_chain_count; n++) {
        eddy_scope *scope = eddy_scope_begin();
        tried = &eddy_chains[n];
        expect(
            call_members,
            (eddy_tensor *[]){matrix(rows, columns), matrix(rows, columns), matrix(rows, columns)},
            tried->name, 1);
        if (tried->least_row > 0) /* a number of the row */
            expect(call_members,
                   (eddy_tensor *[]){matrix(rows, columns), matrix(rows, 1), matrix(1, 1)},
                   tried->name, rows == 1 || columns == 1 || columns >= tried->least_row);
        if (tried->input_count == 3) /* along columns, and along rows */
            expect(call_members,
                   (eddy_tensor *[]){matrix(rows, columns), matrix(1, columns), matrix(rows, 1)},
                   tried->name, 1);
        eddy_scope_end(scope);
    }
}

Test(superinstructions, a_program_runs_each_chain) {
    use("fuse");
    expect_each_chain(ROWS, COLUMNS);
    expect_each_chain(3, 7);
    expect_each_chain(1, 33);
    expect_each_chain(5, 1);
    expect_each_chain(1, 1);
    expect_each_chain(63, 65); /* 4,095 */
    expect_each_chain(3, 256);
    expect_each_chain(3, 255);
    expect_each_chain(20, 256);
}

/* A scalar, and nothing at all. */
Test(superinstructions, ranks_and_sizes_at_the_ends) {
    use("fuse");
    eddy_scope *scope = eddy_scope_begin();
    tried = &eddy_chains[0];
    eddy_tensor *empty = eddy_zeros(EDDY_SHAPE(0), EDDY_F32, NULL),
                *one = eddy_full(EDDY_SHAPE(), EDDY_S(0.3), EDDY_F32, NULL);
    expect(call_members, (eddy_tensor *[]){one, eddy_clone(one), eddy_clone(one)}, tried->name, 1);
    expect(call_members, (eddy_tensor *[]){empty, eddy_clone(empty), eddy_clone(empty)}, NULL, 0);
    eddy_scope_end(scope);
}

/* Parts of rows, as gates are. */
static eddy_tensor *of_parts(eddy_tensor *const *x) {
    eddy_tensor *a = eddy_slice(x[0], 1, 1, 4, 1), *b = eddy_slice(x[1], 1, 3, 6, 1);
    return eddy_tanh(eddy_add(a, eddy_mul(b, eddy_slice(x[2], 1, 0, 3, 1))));
}

Test(superinstructions, rows_of_parts) {
    use("fuse");
    eddy_scope *scope = eddy_scope_begin();
    expect(of_parts, (eddy_tensor *[]){matrix(9, 7), matrix(9, 7), matrix(9, 7)}, "add_mul_tanh",
           1);
    eddy_scope_end(scope);
}

/* ---- where there is none ---- */

static eddy_tensor *used_twice(eddy_tensor *const *x) {
    eddy_tensor *product = eddy_mul(x[0], x[1]);
    return eddy_div(eddy_add(product, x[2]), product);
}

/* There is no loop of f64 for this one. */
static eddy_tensor *in_f64(eddy_tensor *const *x) {
    eddy_tensor *wide = eddy_cast(x[0], EDDY_F64);
    return eddy_cast(eddy_tanh(eddy_add(wide, eddy_exp(wide))), EDDY_F32);
}

static eddy_tensor *sum_in_f64(eddy_tensor *const *x) {
    eddy_tensor *wide = eddy_cast(x[0], EDDY_F64), *other = eddy_cast(x[1], EDDY_F64);
    return eddy_cast(eddy_add(eddy_mul_s(wide, EDDY_S(0.1)), other), EDDY_F32);
}

static eddy_tensor *in_integers(eddy_tensor *const *x) {
    eddy_tensor *whole = eddy_cast(eddy_clamp(x[0], EDDY_S(-9), EDDY_S(9)), EDDY_I64);
    return eddy_cast(eddy_add(eddy_mul(whole, whole), whole), EDDY_F32);
}

/* ---- what is written in place ---- */

/* A state that decays and grows: m = 0.9 m + x, and as an average: m = 0.9 m + 0.1 y. */
static eddy_tensor *in_a_state(eddy_tensor *const *x) {
    (void)eddy_mul_s_inplace(x[2], EDDY_S(0.9));
    (void)eddy_add_inplace(x[2], x[0]);
    (void)eddy_mul_s_inplace(x[2], EDDY_S(0.9));
    (void)eddy_add_inplace(x[2], eddy_mul_s(x[1], EDDY_S(0.1)));
    return eddy_exp(x[2]);
}

static eddy_tensor *sums_in_a_state(eddy_tensor *const *x) {
    (void)eddy_add_inplace(x[2], x[0]);
    (void)eddy_add_inplace(x[2], x[1]);
    eddy_tensor *seen = eddy_exp(x[2]);
    (void)eddy_mul_s_inplace(x[2], EDDY_S(0.9));
    (void)eddy_add_inplace(x[2], x[1]);
    (void)eddy_relu_inplace(x[2]);
    return seen;
}

/* What was written has another reader, is read twice, or as a part. */
static eddy_tensor *read_in_between(eddy_tensor *const *x) {
    (void)eddy_mul_inplace(x[2], x[0]);
    eddy_tensor *seen = eddy_exp(x[2]);
    (void)eddy_add_inplace(x[2], x[1]);
    return eddy_div(seen, x[2]);
}

static eddy_tensor *read_twice(eddy_tensor *const *x) {
    (void)eddy_mul_inplace(x[2], x[0]);
    (void)eddy_add_inplace(x[2], x[2]);
    return eddy_exp(x[2]);
}

static eddy_tensor *written_in_part(eddy_tensor *const *x) {
    (void)eddy_mul_inplace(x[2], x[0]);
    eddy_tensor *part = eddy_slice(x[2], 0, 0, eddy_shape_of(x[2]).dims[0] / 2, 1);
    (void)eddy_add_inplace(part, eddy_slice(x[1], 0, 0, eddy_shape_of(part).dims[0], 1));
    return eddy_exp(x[2]);
}

/* Each formula changes its third operand. */
static void expect_in_place(formula *compute, int64_t rows, int64_t columns, const char *name,
                            uint32_t chains) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const x[] = {matrix(rows, columns), matrix(rows, columns), matrix(rows, columns)};
    eddy_tensor *const copies[] = {x[0], x[1], eddy_clone(x[2])};
    eddy_tensor *again[] = {x[0], x[1], eddy_clone(x[2])}, *result, *replayed;
    eddy_program *program = record(compute, x, &result);
    cr_assert_eq(chains_of(program, name), chains, "%u chains", chains_of(program, name));
    must(eddy_program_run(program, EDDY_LIST(copies[0], copies[1], copies[2]), &replayed));
    must_equal(replayed, result);
    must_equal(copies[2], x[2]);
    must_equal(compute(again), result);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(superinstructions, what_the_next_one_overwrites_is_not_written) {
    use("all");
    for (int i = 0; i < 2; i++) {
        int64_t rows = i ? ROWS : 4, columns = i ? COLUMNS : 5;
        expect_in_place(in_a_state, rows, columns, NULL, 2);
        expect_in_place(sums_in_a_state, rows, columns, "add_add", 1);
        expect_in_place(sums_in_a_state, rows, columns, "mul_s_add_relu", 1);
        expect_in_place(read_in_between, rows, columns, NULL, 0);
        expect_in_place(read_twice, rows, columns, NULL, 0);
        expect_in_place(written_in_part, rows, columns, NULL, 0);
    }
}

/* What the first one reads is changed before the second; it is read by others too, so it lies in memory. */
static eddy_tensor *changed_in_between(eddy_tensor *const *x) {
    eddy_tensor *a = eddy_exp(x[0]), *product = eddy_mul(a, x[1]);
    (void)eddy_div_inplace(a, x[2]);
    return eddy_div(eddy_add(product, x[2]), eddy_add(a, eddy_cumsum(a, 0)));
}

/* The second operand is taken by one chain alone. */
static eddy_tensor *taken_twice(eddy_tensor *const *x) {
    return eddy_add(eddy_mul(x[0], x[1]), eddy_mul(x[2], x[1]));
}

static eddy_tensor *with_others_between(eddy_tensor *const *x) {
    eddy_tensor *product = eddy_mul(x[0], x[1]), *other = eddy_exp(x[0]);
    return eddy_div(eddy_add(product, x[2]), eddy_div(other, x[1]));
}

/* A slot that the product's operand leaves is one of a value in between. */
static eddy_tensor *slots_between(eddy_tensor *const *x) {
    eddy_tensor *left = eddy_exp(x[0]), *product = eddy_mul(left, x[1]),
                *other = eddy_div(eddy_exp(x[2]), x[0]);
    return eddy_div(eddy_add(product, x[2]), eddy_div(other, x[1]));
}

Test(superinstructions, chains_are_found_where_nothing_else_needs_what_they_leave_out) {
    use("fuse");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const x[] = {matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS)};
    expect(used_twice, x, NULL, 0);
    expect(in_f64, x, NULL, 0);
    expect(sum_in_f64, x, "mul_s_add", 1);
    expect(in_integers, x, NULL, 0);
    expect(changed_in_between, x, NULL, 0);
    expect(taken_twice, x, NULL, 1);
    expect(with_others_between, x, "mul_add", 1);
    expect(slots_between, x, NULL, 0);
    eddy_scope_end(scope);
}

/* Small ones that are no chain stay calls of their own. */
Test(superinstructions, small_groups_are_chains_alone) {
    use("fuse");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const x[] = {matrix(4, 5), matrix(4, 5), matrix(4, 5)};
    expect(used_twice, x, NULL, 0);
    expect(in_f64, x, NULL, 0);
    expect(in_integers, x, NULL, 0);
    expect(changed_in_between, x, NULL, 1); /* the sum moves up, past the change */
    expect(taken_twice, x, NULL, 1);
    eddy_tensor *result;
    eddy_program *program = record(slots_between, x, &result);
    cr_assert_eq(chains_of(program, "mul_add"), 1);
    cr_assert_eq(info_of(program).group_count, 1);
    cr_assert_eq(program->executable->fused[0]->member_count, 2);
    cr_assert(eddy_fused_is_loop(program->executable->fused[0]));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* The sum of a chain lies where an operand of its product was. */
static eddy_tensor *in_place(eddy_tensor *const *x) {
    return eddy_exp(eddy_add(eddy_mul(eddy_exp(x[0]), x[1]), x[2]));
}

/* It may not where the memory has another reader, or other elements. */
static eddy_tensor *in_no_place(eddy_tensor *const *x) {
    eddy_tensor *a = eddy_exp(x[0]);
    return eddy_div(eddy_add(eddy_mul(a, x[1]), eddy_t(a)), a);
}

static int64_t arena_of(formula *compute, eddy_tensor *const *x) {
    eddy_tensor *result;
    eddy_program *program = record(compute, x, &result);
    int64_t bytes = info_of(program).arena_bytes;
    expect(compute, x, NULL, 1);
    eddy_program_release(&program);
    return bytes;
}

Test(superinstructions, results_lie_where_an_operand_of_the_chain_was) {
    use("fuse,place");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const small[] = {matrix(16, 16), matrix(16, 16), matrix(16, 16)};
    cr_assert_eq(arena_of(in_place, small), 16 * 16 * 4);
    cr_assert_eq(arena_of(in_no_place, small), 2 * 16 * 16 * 4);
    eddy_scope_end(scope);
}

/* The product is seen transposed: an element of the result would lie where another one of the operand is that is still to be read. */
static eddy_tensor *turned(eddy_tensor *const *x) {
    eddy_tensor *product = eddy_mul(x[0], eddy_t(eddy_exp(x[1])));
    return eddy_cumsum(eddy_neg(eddy_t(product)), 0);
}

Test(superinstructions, results_lie_in_no_operand_of_another_order) {
    use("fuse,place");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const small[] = {matrix(16, 16), matrix(16, 16), matrix(16, 16)};
    expect(turned, small, "mul_neg", 1);
    eddy_scope_end(scope);
}

/* The product waits for its sum, and reads the first operand only then: what comes in between may not lie there. */
static eddy_tensor *read_late(eddy_tensor *const *x) {
    eddy_tensor *a = eddy_cumsum(x[0], 0), *product = eddy_mul(a, x[1]), *other = eddy_exp(x[1]);
    return eddy_div(eddy_add(product, x[2]), eddy_cumsum(other, 0));
}

Test(superinstructions, what_a_chain_reads_late_is_still_there) {
    use("fuse,place");
    eddy_scope *scope = eddy_scope_begin();
    expect(read_late,
           (eddy_tensor *[]){matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS)},
           "mul_add", 1);
    eddy_scope_end(scope);
}

Test(superinstructions, the_pass_fuse_switches_them) {
    use("dead");
    eddy_scope *scope = eddy_scope_begin();
    expect(with_others_between,
           (eddy_tensor *[]){matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS), matrix(ROWS, COLUMNS)},
           NULL, 0);
    eddy_scope_end(scope);
}

/* Both values are outputs: the sum is no reason not to write the product. */
Test(superinstructions, what_others_read_is_written) {
    use("fuse");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(ROWS, COLUMNS), *y = matrix(ROWS, COLUMNS), *outputs[2];
    must(eddy_record_begin(NULL));
    eddy_tensor *product = eddy_mul(x, y), *sum = eddy_add(product, y);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                      {"product", product, EDDY_ROLE_OUTPUT}, {"sum", sum, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(chains_of(program, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(x, y), outputs));
    must_equal(outputs[0], product);
    must_equal(outputs[1], sum);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- numbers of a run ---- */

static eddy_status step(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] =
        eddy_add(eddy_mul_s(call->inputs.items[0], call->scalars[0]), call->inputs.items[1]);
    return EDDY_OK;
}

Test(superinstructions, numbers_that_runs_are_given_are_theirs) {
    use("all");
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(step, NULL, 1, NULL);
    eddy_tensor *x = matrix(ROWS, COLUMNS), *y = matrix(ROWS, COLUMNS), *found;
    for (int i = 0; i < 6; i++) {
        double rate = 0.1 + 0.3 * i;
        must(eddy_recorded_run(recorded, EDDY_LIST(x, y), EDDY_SCALARS(EDDY_S(rate)), &found));
        must_equal(found, eddy_add(eddy_mul_s(x, EDDY_S(rate)), y));
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* Two numbers of a run in one chain, and one beside a number that stays. */
static eddy_tensor *with_numbers(eddy_tensor *const *x, eddy_scalar a, eddy_scalar b) {
    eddy_tensor *y = eddy_add_s(eddy_mul_s(x[0], a), b);
    return eddy_div(eddy_mul_s(eddy_sub_s(y, EDDY_S(0.3)), b), x[1]);
}

static void expect_numbers(int64_t rows, int64_t columns) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *const x[] = {matrix(rows, columns), matrix(rows, columns)};
    eddy_origin origin = {"test", NULL};
    eddy_scalar numbers[] = {EDDY_S(2.0), EDDY_S(3)};
    eddy_recording *recording = record_numbers(numbers, 2);
    eddy_tensor *result = with_numbers(x, numbers[0], numbers[1]), *found;
    eddy_program *program = end_numbers(recording, EDDY_BINDINGS({"y", result, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(chains_of(program, "mul_s_add_s"), 1);
    cr_assert_eq(chains_of(program, "sub_s_mul_s"), 1);
    for (int i = 0; i < 4; i++) {
        const eddy_scalar given[] = {EDDY_S(0.1 + i), EDDY_S(2 - i)};
        must(eddy_program_run_with(program, (eddy_list){NULL, 0}, given, &found, NULL, NULL,
                                   origin));
        must_equal(found, with_numbers(x, given[0], given[1]));
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(superinstructions, chains_take_numbers_of_a_run) {
    use("all");
    expect_numbers(ROWS, COLUMNS);
    expect_numbers(3, 5);
}

/* ---- poison ---- */

/* A chain one of whose members is skipped writes nothing, and the others run. */
static void expect_skips(int64_t rows, int64_t columns) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(rows, columns), *y = matrix(rows, columns), *outputs[2];
    eddy_tensor *state = matrix(rows, columns);
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_add(eddy_mul(x, x), y), *b = eddy_add(eddy_mul_s(x, EDDY_S(3)), x);
    must(eddy_add_inplace(state, eddy_mul(x, y)));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                                      {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(chains_of(program, NULL), 3);
    must(eddy_sync(EDDY_FOREVER));
    eddy_tensor *before = eddy_clone(state);
    eddy_tensor *poisoned =
        eddy_index_select(y, eddy_full(EDDY_SHAPE(rows), EDDY_S(rows), EDDY_I64, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(x, poisoned), outputs));
    must_equal(outputs[1], b);
    static float values[COUNT];
    eddy_error error = {0};
    cr_assert_eq(eddy_read(outputs[0], values, (size_t)(rows * columns) * 4, NULL),
                 EDDY_OUT_OF_RANGE);
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "index_select");
    must(eddy_recover(EDDY_LIST(state)));
    must_equal(state, before);
    must(eddy_program_run(program, EDDY_LIST(x, y), outputs));
    must_equal(outputs[0], a);
    must_equal(state, eddy_add(before, eddy_mul(x, y)));
    eddy_program_release(&program);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(superinstructions, members_run_alone_where_one_is_skipped) {
    use("all");
    expect_skips(ROWS, COLUMNS);
    expect_skips(4, 5);
}

/* ---- random programs ---- */

#define VALUES 24

static uint32_t seed;

/* Each result is mostly used by the next op, so that there are chains, and sometimes by a later one, or written in place. */
static eddy_tensor *random_ops(eddy_tensor *const *x) {
    eddy_tensor *values[VALUES] = {x[0], x[1], x[2]};
    drawn = seed;
    for (int i = 3; i < VALUES; i++) {
        eddy_tensor *last = values[i - 1], *other = values[draw((uint32_t)i)];
        eddy_scalar scale = EDDY_S(0.25 * draw(9) - 1);
        switch (draw(12)) {
        case 0:
            values[i] = eddy_add(last, other);
            break;
        case 1:
            values[i] = eddy_mul(last, other);
            break;
        case 2:
            values[i] = eddy_sub(other, last);
            break;
        case 3:
            values[i] = eddy_mul_s(last, scale);
            break;
        case 4:
            values[i] = eddy_add_s(last, scale);
            break;
        case 5:
            values[i] = eddy_relu(last);
            break;
        case 6:
            values[i] = eddy_abs(last);
            break;
        case 7:
            values[i] = eddy_silu(last);
            break;
        case 8:
            values[i] = eddy_sigmoid_backward(last, other);
            break;
        case 9:
            values[i] = eddy_tanh(last);
            break;
        case 10:
            values[i] = eddy_add(other, eddy_mul_s(last, scale));
            break;
        default:
            values[i] = eddy_exp(other);
            (void)eddy_add_inplace(values[i], last);
            if (i > 5 && draw(2))
                (void)eddy_mul_inplace(values[i - 1], values[i]);
        }
    }
    return eddy_add(values[VALUES - 1], values[VALUES - 2]);
}

Test(superinstructions, random_programs_keep_their_bits) {
    uint32_t chains = 0;
    use("all");
    for (uint32_t i = 0; i < 300; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t rows = i % 2 ? ROWS : 1 + i % 7, columns = i % 2 ? COLUMNS : 1 + i % 37;
        drawn = i + 1;
        eddy_tensor *const x[] = {matrix(rows, columns), matrix(rows, columns),
                                  matrix(rows, columns)};
        eddy_tensor *const copies[] = {eddy_clone(x[0]), eddy_clone(x[1]), eddy_clone(x[2])};
        eddy_tensor *result, *replayed;
        seed = 1000 + i;
        eddy_program *program = record(random_ops, x, &result);
        chains += chains_of(program, NULL);
        must(eddy_program_run(program, EDDY_LIST(copies[0], copies[1], copies[2]), &replayed));
        must_equal(replayed, result);
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_gt(chains, 300);
}
