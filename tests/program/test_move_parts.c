/* The pass `move`, to parts: gradients side by side in the gradient of the whole, rows written into state, with the bits and errors of the copies. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/print.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

#define ROWS 6
#define COLUMNS 16 /* of a part: the fewest that are written in place */
#define ELEMENTS_MOST 65536

static const char *const ways[] = {"none", "move", "all"};

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

static eddy_program *record_end(const eddy_bindings *bindings) {
    eddy_program *program = end(bindings);
    cr_assert_not_null(program);
    return program;
}

static eddy_tensor *normal(uint64_t seed, eddy_shape shape) {
    must(eddy_seed(seed));
    return eddy_randn(shape, EDDY_F32, NULL);
}

static int64_t copies_in(const eddy_program *program) {
    eddy_printed printed;
    int64_t count = 0;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    for (const char *at = printed.text; (at = strstr(at, "copy_into(")) != NULL; at++)
        count++;
    eddy_printed_fini(&printed);
    return count;
}

/* ---- gradients ---- */

/* The gradient of three parts that lie side by side. */
static eddy_tensor *of_gates(eddy_tensor *x) {
    eddy_tensor *whole = eddy_detach(eddy_clone(x));
    must(eddy_requires_grad_set(whole, true));
    eddy_tensor *a = eddy_tanh(eddy_narrow(whole, 1, 0, COLUMNS)),
                *b = eddy_sigmoid(eddy_narrow(whole, 1, COLUMNS, COLUMNS)),
                *c = eddy_exp(eddy_narrow(whole, 1, 2 * COLUMNS, COLUMNS));
    must(eddy_backward(eddy_sum(eddy_mul(eddy_mul(a, b), c), EDDY_ALL_AXES, NULL)));
    return eddy_grad_of(whole);
}

/* The gradient of queries, keys and values, as transformers have them: [batch, positions, 3, heads, width]. */
static eddy_tensor *of_heads(eddy_tensor *x, bool is_interleaved) {
    eddy_tensor *whole = eddy_detach(eddy_clone(x));
    must(eddy_requires_grad_set(whole, true));
    eddy_tensor *mixed =
        eddy_permute(eddy_reshape(whole, EDDY_SHAPE(2, 8, 3, 3, 32)), EDDY_AXES(2, 0, 3, 1, 4));
    eddy_tensor *at = eddy_arange(EDDY_S(0), EDDY_S(8), EDDY_S(1), EDDY_I64, NULL), *turned[2];
    for (int i = 0; i < 2; i++)
        turned[i] = eddy_rope(eddy_select(mixed, 0, i), at,
                              EDDY_OPTIONS(rope, .is_interleaved = is_interleaved));
    eddy_tensor *seen = eddy_sdpa(turned[0], turned[1], eddy_select(mixed, 0, 2), EDDY_NONE,
                                  EDDY_OPTIONS(sdpa, .is_causal = true));
    must(eddy_backward(eddy_sum(eddy_mul(seen, seen), EDDY_ALL_AXES, NULL)));
    return eddy_grad_of(whole);
}

static eddy_tensor *of_attention(eddy_tensor *x) {
    return of_heads(x, false);
}

static eddy_tensor *of_interleaved(eddy_tensor *x) {
    return of_heads(x, true);
}

/* Parts that leave gaps, which are zeros. */
static eddy_tensor *of_some(eddy_tensor *x) {
    eddy_tensor *whole = eddy_detach(eddy_clone(x));
    must(eddy_requires_grad_set(whole, true));
    eddy_tensor *a = eddy_tanh(eddy_narrow(whole, 1, 1, COLUMNS)),
                *b = eddy_exp(eddy_narrow(whole, 1, 2 + COLUMNS, COLUMNS));
    must(eddy_backward(eddy_sum(eddy_mul(a, b), EDDY_ALL_AXES, NULL)));
    return eddy_grad_of(whole);
}

static const struct {
    const char *name;
    eddy_tensor *(*gradient)(eddy_tensor *x);
    eddy_shape shape;
    int64_t copies, left;
} gradients[] = {
    {"gates", of_gates, {.rank = 2, .dims = {ROWS, 3 * COLUMNS}}, 3, 0},
    {"gates in tiles", of_gates, {.rank = 2, .dims = {600, 3 * COLUMNS}}, 3, 0},
    {"attention", of_attention, {.rank = 3, .dims = {2, 8, 3 * 96}}, 3, 0},
    {"interleaved", of_interleaved, {.rank = 3, .dims = {2, 8, 3 * 96}}, 3, 0},
    {"some", of_some, {.rank = 2, .dims = {ROWS, 3 * COLUMNS}}, 5, 3},
};

static void check_gradient(size_t g, const char *passes, eddy_dtype dtype) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_cast(normal(1, gradients[g].shape), dtype), *out;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *gradient = gradients[g].gradient(x);
    eddy_program *program = record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"gradient", gradient, EDDY_ROLE_OUTPUT}));
    bool is_moved = strcmp(passes, "none") != 0;
    cr_assert_eq(copies_in(program), is_moved ? gradients[g].left : gradients[g].copies, "%s",
                 gradients[g].name);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-parts-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    unlink(path);
    must(loaded ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    for (uint64_t seed = 2; seed < 5; seed++) {
        x = eddy_cast(normal(seed, gradients[g].shape), dtype);
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        must_have_same_bits(out, gradients[g].gradient(x), gradients[g].name);
        must(eddy_program_run(loaded, EDDY_LIST(x), &out));
        must_have_same_bits(out, gradients[g].gradient(x), gradients[g].name);
    }
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(move_parts, gradients_are_computed_side_by_side) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16};
    for (size_t g = 0; g < sizeof(gradients) / sizeof(*gradients); g++)
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
            for (size_t d = 0; d < 3; d++)
                check_gradient(g, ways[i], dtypes[d]);
}

/* ---- bits ---- */

static eddy_tensor *gelu(eddy_tensor *x) {
    return eddy_gelu(x, NULL);
}

static eddy_tensor *twice_and_more(eddy_tensor *x) {
    return eddy_add(eddy_mul_s(x, EDDY_S(2)), x);
}

static eddy_tensor *over_columns(eddy_tensor *x) {
    return eddy_div(x, eddy_narrow(x, -2, 0, 1));
}

/* Loops take rows of any length, and rows that lie apart, with the same bits. */
Test(move_parts, elements_do_not_depend_on_their_place) {
    eddy_tensor *(*const ops[])(eddy_tensor *) = {
        eddy_exp, eddy_tanh, eddy_sigmoid, eddy_sin, eddy_log,       eddy_sqrt,
        eddy_erf, eddy_neg,  eddy_silu,    gelu,     twice_and_more, over_columns,
        eddy_cos, eddy_relu, eddy_expm1,   eddy_abs, eddy_reciprocal};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16, EDDY_F16};
    for (size_t k = 0; k < 4 * sizeof(ops) / sizeof(*ops); k++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t columns = COLUMNS + (int64_t)(k % 7) * 9;
        eddy_shape shape = k % 3 ? EDDY_SHAPE(ROWS, columns) : EDDY_SHAPE(2, 3, ROWS, columns);
        eddy_tensor *x = eddy_cast(normal(k, shape), dtypes[k % 4]), *out;
        eddy_tensor *(*op)(eddy_tensor *) = ops[k / 4];
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "dead,move")));
        eddy_shape wide = shape;
        wide.dims[wide.rank - 1] += 5;
        eddy_tensor *whole = eddy_empty(wide, dtypes[k % 4], NULL);
        eddy_tensor *part = eddy_narrow(whole, -1, (int64_t)k % 5, columns);
        must(eddy_copy_into(op(x), part));
        eddy_program *program =
            record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"part", part, EDDY_ROLE_OUTPUT}));
        cr_assert_eq(copies_in(program), 0, "%zu", k);
        x = eddy_cast(normal(k + 1000, shape), dtypes[k % 4]);
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        char what[32];
        snprintf(what, sizeof(what), "op %zu dtype %zu", k / 4, k % 4);
        must_have_same_bits(out, op(x), what);
        eddy_program_release(&program);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

/* ---- where ---- */

/* Rows of state, of an input, and of a value that is made in between. */
Test(move_parts, parts_of_any_value_are_written) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = normal(1, EDDY_SHAPE(COLUMNS)), *out;
    eddy_tensor *state = eddy_zeros(EDDY_SHAPE(3, COLUMNS), EDDY_F32, NULL);
    eddy_tensor *given = eddy_zeros(EDDY_SHAPE(3, COLUMNS), EDDY_F32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "move")));
    must(eddy_copy_into(eddy_exp(x), eddy_select(state, 0, 1)));
    must(eddy_copy_into(eddy_neg(x), eddy_select(given, 0, 2)));
    eddy_tensor *tanh = eddy_tanh(x);
    eddy_tensor *made = eddy_ones(EDDY_SHAPE(2, COLUMNS), EDDY_F32, NULL); /* behind its part */
    must(eddy_copy_into(tanh, eddy_select(made, 0, 1)));
    eddy_program *program = record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"given", given, EDDY_ROLE_INPUT},
                      {"state", state, EDDY_ROLE_STATE}, {"made", made, EDDY_ROLE_OUTPUT}));
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    cr_assert_not_null(strstr(printed.text,
                              "\nmut state f32[16] at 16 = exp(x f32[16])\n"
                              "2: mut given f32[16] at 32 = neg(x f32[16])\n"
                              "5: %0 f32[2, 16] = ones(shape = [2, 16], dtype = f32, value = 1.0)\n"
                              "4: mut %0 f32[16] at 16 = tanh(x f32[16])\n"),
                       "%s", printed.text);
    eddy_printed_fini(&printed);
    x = normal(2, EDDY_SHAPE(COLUMNS));
    eddy_tensor *fed = eddy_ones(EDDY_SHAPE(3, COLUMNS), EDDY_F32, NULL);
    must(eddy_program_run(program, EDDY_LIST(x, fed), &out));
    must_have_same_bits(eddy_select(state, 0, 1), eddy_exp(x), "state");
    cr_assert_eq(sum_of(eddy_select(state, 0, 2)), 0);
    must_have_same_bits(eddy_select(fed, 0, 2), eddy_neg(x), "input");
    cr_assert_eq(sum_of(eddy_select(fed, 0, 1)), COLUMNS);
    must_have_same_bits(eddy_select(out, 0, 1), eddy_tanh(x), "made");
    cr_assert_eq(sum_of(eddy_select(out, 0, 0)), COLUMNS);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_tensor *zeros(int64_t rows, int64_t columns) {
    return eddy_zeros(EDDY_SHAPE(rows, columns), EDDY_F32, NULL);
}

/* What stands in the way of each: the copies stay. */
Test(move_parts, what_is_used_otherwise_is_copied) {
    for (int i = 0; i < 2; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = normal(1, EDDY_SHAPE(COLUMNS, COLUMNS)), *outs[4];
        eddy_tensor *states[9], *wide = eddy_zeros(EDDY_SHAPE(2, COLUMNS), EDDY_F64, NULL);
        for (int k = 0; k < 9; k++)
            states[k] = zeros(2 * COLUMNS, COLUMNS);
        eddy_tensor *row = eddy_select(x, 0, 0);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = i ? "move" : "none")));
        eddy_tensor *used_twice = eddy_exp(row);
        must(eddy_copy_into(used_twice, eddy_select(states[0], 0, 1)));
        eddy_tensor *y = eddy_neg(used_twice);
        eddy_tensor *between = eddy_exp(row);
        eddy_tensor *z = eddy_add(eddy_select(states[1], 0, 1), row); /* what the copy overwrites */
        must(eddy_copy_into(between, eddy_select(states[1], 0, 1)));
        eddy_tensor *later = eddy_exp(row);
        must(eddy_copy_into(row, eddy_select(states[2], 0, 1))); /* overwritten by the copy */
        must(eddy_copy_into(later, eddy_select(states[2], 0, 1)));
        eddy_tensor *reads = eddy_mul(row, eddy_select(states[3], 0, 0));
        must(eddy_copy_into(reads, eddy_select(states[3], 0, 1)));
        must(eddy_copy_into(eddy_matmul(x, x), eddy_narrow(states[4], 0, 1, COLUMNS)));
        must(eddy_copy_into(eddy_exp(x), eddy_t(eddy_narrow(states[5], 0, 1, COLUMNS))));
        must(eddy_copy_into(eddy_exp(eddy_narrow(row, 0, 0, COLUMNS - 1)),
                            eddy_narrow(eddy_select(states[6], 0, 1), 0, 1, COLUMNS - 1)));
        must(eddy_copy_into(eddy_exp(row), eddy_select(wide, 0, 1))); /* another dtype */
        must(eddy_copy_into(eddy_exp(eddy_narrow(x, 0, 0, 1)),
                            eddy_narrow(states[7], 0, 1, 2))); /* two rows */
        must(eddy_copy_into(eddy_rand(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL),
                            eddy_select(states[8], 0, 1)));
        eddy_program *program = record_end(EDDY_BINDINGS(
            {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT},
            {"0", states[0], EDDY_ROLE_STATE}, {"1", states[1], EDDY_ROLE_STATE},
            {"2", states[2], EDDY_ROLE_STATE}, {"3", states[3], EDDY_ROLE_STATE},
            {"4", states[4], EDDY_ROLE_STATE}, {"5", states[5], EDDY_ROLE_STATE},
            {"6", states[6], EDDY_ROLE_STATE}, {"7", states[7], EDDY_ROLE_STATE},
            {"8", states[8], EDDY_ROLE_STATE}, {"wide", wide, EDDY_ROLE_STATE}));
        eddy_program_info info = info_of(program);
        cr_assert_eq(info.instruction_count, info.recorded_count);
        x = normal(2, EDDY_SHAPE(COLUMNS, COLUMNS));
        must(eddy_program_run(program, EDDY_LIST(x), outs));
        row = eddy_exp(eddy_select(x, 0, 0));
        for (int k = 0; k < 3; k++)
            must_have_same_bits(eddy_select(states[k], 0, 1), row, "row");
        must_have_same_bits(outs[0], eddy_neg(row), "y");
        must_have_same_bits(eddy_narrow(states[4], 0, 1, COLUMNS), eddy_matmul(x, x), "product");
        must_have_same_bits(eddy_t(eddy_narrow(states[5], 0, 1, COLUMNS)), eddy_exp(x), "turned");
        must_have_same_bits(eddy_select(states[7], 0, 2), row, "second of two");
        must_have_same_bits(eddy_select(wide, 0, 1), eddy_cast(row, EDDY_F64), "wide");
        eddy_program_release(&program);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

static eddy_status write_row(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *whole = eddy_clone(inputs.items[0]);
    must(eddy_copy_into(eddy_exp(eddy_select(inputs.items[0], 0, 0)), eddy_select(whole, 0, 1)));
    return done(outputs, whole);
}

static eddy_status write_none(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, inputs.items[0]);
}

Test(move_parts, a_way_writes_its_own_parts) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = normal(1, EDDY_SHAPE(2, COLUMNS)), *p = truth(true), *y, *out;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "move")));
    must(eddy_cond(p, write_row, write_none, NULL, EDDY_LIST(x), 1, NULL, &y));
    eddy_program *program = record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"p", p, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(copies_in(program), 1); /* the other way's */
    must(eddy_program_run(program, EDDY_LIST(x, truth(true)), &out));
    must_have_same_bits(eddy_select(out, 0, 1), eddy_exp(eddy_select(x, 0, 0)), "written");
    must(eddy_program_run(program, EDDY_LIST(x, truth(false)), &out));
    must_have_same_bits(out, x, "not written");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- errors ---- */

/* A part that is lost loses the whole, and nothing else that its maker gives. */
Test(move_parts, errors_are_those_of_the_copies) {
    for (int i = 0; i < 2; i++)
        for (int lost = 0; lost < 3; lost++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_tensor *index = eddy_full(EDDY_SHAPE(2), EDDY_S(0), EDDY_I64, NULL), *out[4];
            eddy_tensor *other = eddy_full(EDDY_SHAPE(2), EDDY_S(0), EDDY_I64, NULL);
            eddy_tensor *q = normal(1, EDDY_SHAPE(2, 1, 4, COLUMNS));
            must(eddy_record_begin(EDDY_OPTIONS(record, .passes = i ? "move" : "none")));
            eddy_tensor *k = eddy_index_select(q, index, 0), *v = eddy_index_select(q, other, 0);
            eddy_tensor *whole = eddy_empty(EDDY_SHAPE(3, 2, 1, 4, COLUMNS), EDDY_F32, NULL);
            must(eddy_copy_into(eddy_exp(v), eddy_select(whole, 0, 2)));
            eddy_tensor *seen = eddy_sdpa(q, k, k, EDDY_NONE, NULL), *dq, *dk, *dv;
            must(eddy_sdpa_backward(seen, seen, q, k, k, EDDY_NONE, NULL, &dq, &dk, &dv));
            must(eddy_copy_into(dv, eddy_select(whole, 0, 0))); /* may be lost already: a copy */
            must(eddy_copy_into(eddy_neg(dk), eddy_select(whole, 0, 1)));
            eddy_program *program = record_end(
                EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"other", other, EDDY_ROLE_INPUT},
                              {"whole", whole, EDDY_ROLE_OUTPUT}, {"dq", dq, EDDY_ROLE_OUTPUT},
                              {"dk", dk, EDDY_ROLE_OUTPUT}, {"k", k, EDDY_ROLE_OUTPUT}));
            cr_assert_eq(copies_in(program), i ? 1 : 3);
            eddy_tensor *beyond = eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL);
            must(eddy_program_run(
                program, EDDY_LIST(lost == 1 ? beyond : index, lost == 2 ? beyond : other), out));
            for (int k_out = 0; k_out < 4; k_out++) {
                bool is_lost = lost == 1 || (lost == 2 && k_out == 0);
                eddy_status expected = k_out == 0 ? EDDY_SKIPPED : EDDY_OUT_OF_RANGE;
                eddy_error error = {0};
                cr_assert_eq(eddy_wait(out[k_out], EDDY_FOREVER), is_lost ? expected : EDDY_OK,
                             "%d %d %d", i, lost, k_out);
                eddy_error_take(&error);
                cr_assert(!is_lost || strstr(error.message, "index_select"), "%s", error.message);
            }
            eddy_program_release(&program);
            eddy_scope_end(scope);
            (void)eddy_sync(EDDY_FOREVER);
            eddy_error_take(NULL);
        }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- branches ---- */

typedef struct branching {
    eddy_tensor *made, *state;
} branching;

static eddy_status writes_part(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const branching *b = context;
    must(eddy_copy_into(b->made, eddy_narrow(b->state, 0, 1, ROWS - 2)));
    return done(outputs, eddy_neg(inputs.items[0]));
}

static eddy_status writes_nothing(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_neg(inputs.items[0]));
}

/* What is made before a branch is written to a part on one of its ways alone. */
Test(move_parts, what_a_branch_copies_stays_in_the_branch) {
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        eddy_scope *scope = eddy_scope_begin();
        branching b = {.state = eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL)};
        eddy_tensor *x = normal(3, EDDY_SHAPE(ROWS - 2, COLUMNS)), *p = truth(true), *y;
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = ways[i], .records_only = true)));
        b.made = eddy_exp(x);
        must(eddy_cond(p, writes_part, writes_nothing, &b, EDDY_LIST(x), 1, NULL, &y));
        eddy_program *program = record_end(EDDY_BINDINGS(
            {"x", x, EDDY_ROLE_INPUT}, {"p", p, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        must(eddy_program_run(program, EDDY_LIST(x, truth(false)), &y));
        cr_assert_eq(sum_of(b.state), 0, "%s", ways[i]);
        must(eddy_program_run(program, EDDY_LIST(x, truth(true)), &y));
        must_have_same_bits(eddy_clone(eddy_narrow(b.state, 0, 1, ROWS - 2)), eddy_exp(x), ways[i]);
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}
