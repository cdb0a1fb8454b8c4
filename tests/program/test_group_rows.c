/* Reductions of rows in groups that run tile by tile: where they are members, and that all bits are those of the calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/fused.h>
#include <program/program.h>
#include <string.h>
#include <tests/program/outcome.h>

static uint64_t drawn = 7;

static uint32_t draw(uint32_t below) {
    drawn = drawn * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(drawn >> 33) % below;
}

static const float special[] = {0.0F,   -0.0F,      NAN,  INFINITY, -INFINITY, 1e-40F,
                                3e38F,  -3e38F,     1.0F, -1.0F,    88.7F,     -1e-45F,
                                1e-20F, 16777216.F, 0.1F, -0.7F,    2.5F,      1e10F};

#define MOST 150000

/* Mostly ordinary: special values fill whole rows with themselves. */
static eddy_tensor *random_tensor(eddy_shape shape) {
    static float values[MOST];
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    for (int64_t i = 0; i < count; i++)
        values[i] = draw(500) ? ((float)draw(1 << 24) - 8e6F) / 3e6F
                              : special[draw(sizeof(special) / sizeof(*special))];
    return eddy_from_data(values, shape, EDDY_F32, NULL);
}

/* What no op promises is not compared: the sign and the payload of a NaN. */
static void must_equal(eddy_tensor *a, eddy_tensor *b, const char *what) {
    static float left[MOST], right[MOST];
    int64_t count = eddy_count_of(a);
    cr_assert(count == eddy_count_of(b) && count <= MOST);
    must(eddy_read(a, left, (size_t)count * 4, NULL));
    must(eddy_read(b, right, (size_t)count * 4, NULL));
    for (int64_t i = 0; i < count; i++)
        cr_assert((isnan(left[i]) && isnan(right[i])) || !memcmp(&left[i], &right[i], 4),
                  "%s: %a and %a at %lld", what, (double)left[i], (double)right[i], (long long)i);
}

/* ---- what a group has ---- */

static uint32_t members_of(const eddy_program *program, uint32_t group) {
    return group < program->executable->group_count
               ? program->executable->fused[group]->member_count
               : 0;
}

static uint32_t reductions_of(const eddy_program *program) {
    uint32_t found = 0;
    for (uint32_t g = 0; g < program->executable->group_count; g++)
        for (uint32_t m = 0; m < members_of(program, g); m++)
            found += program->executable->fused[g]->members[m].rows != NULL;
    return found;
}

typedef eddy_tensor *formula(eddy_tensor *x, eddy_tensor *y);

static eddy_program *record(formula *compute, eddy_tensor *x, eddy_tensor *y,
                            eddy_tensor **result) {
    must(eddy_record_begin(NULL));
    *result = compute(x, y);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                                      {"result", *result, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INTERNAL);
    return program;
}

/* The program gives what the calls give, also for other inputs. */
static void must_replay(formula *compute, const eddy_program *program, eddy_tensor *x,
                        eddy_tensor *y, const char *what) {
    eddy_tensor *replayed;
    for (int i = 0; i < 2; i++) {
        must(eddy_program_run((eddy_program *)program, EDDY_LIST(x, y), &replayed));
        must_equal(replayed, compute(x, y), what);
        x = eddy_contiguous(eddy_flip(x, EDDY_AXES(0)));
    }
}

static eddy_tensor *softmax(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *z = eddy_mul(x, y);
    eddy_tensor *most = eddy_max(z, EDDY_AXES(-1), EDDY_OPTIONS(max, .keeps_dims = true)),
                *powers = eddy_exp(eddy_sub(z, most));
    return eddy_div(powers, eddy_sum(powers, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)));
}

static eddy_tensor *layer_norm(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *mean = eddy_mean(x, EDDY_AXES(-1), EDDY_OPTIONS(mean, .keeps_dims = true)),
                *apart = eddy_sub(x, mean),
                *variance = eddy_mean(eddy_square(apart), EDDY_AXES(-1),
                                      EDDY_OPTIONS(mean, .keeps_dims = true));
    return eddy_mul(eddy_mul(apart, eddy_rsqrt(eddy_add_s(variance, EDDY_S(1e-5)))), y);
}

/* The results are one dim less, and come back as a column. */
static eddy_tensor *range(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *most = eddy_max(x, EDDY_AXES(-1), NULL), *least = eddy_min(x, EDDY_AXES(-1), NULL),
                *length = eddy_unsqueeze(eddy_sub(most, least), -1);
    return eddy_div(eddy_sub(x, eddy_unsqueeze(least, -1)), eddy_add(length, y));
}

/* A chain (mul_add) that reads an element for each row while it writes the tile. */
static eddy_tensor *chained(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *sum = eddy_sum(x, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)),
                *z = eddy_add(eddy_mul(x, sum), y);
    return eddy_mul(z, eddy_sigmoid(z));
}

/* Chains with an element for each row alone. */
static eddy_tensor *chained_rows(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_sum(eddy_mul(x, y), EDDY_AXES(-1), NULL),
                *b = eddy_mean(x, EDDY_AXES(-1), NULL), *c = eddy_max(y, EDDY_AXES(-1), NULL);
    return eddy_mul(x, eddy_unsqueeze(eddy_add(eddy_mul(eddy_add(eddy_mul(a, b), c), b), a), -1));
}

static int64_t count_in(formula *compute, int64_t rows, int64_t columns, uint32_t *members,
                        uint32_t *groups) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = random_tensor((eddy_shape){2, {rows, columns}}),
                *y = random_tensor((eddy_shape){2, {rows, columns}}), *result;
    eddy_program *program = record(compute, x, y, &result);
    must_replay(compute, program, x, y, "a formula");
    int64_t found = reductions_of(program);
    *members = members_of(program, 0);
    *groups = program->executable->group_count;
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return found;
}

Test(group_rows, formulas_are_one_group) {
    uint32_t members, groups;
    cr_assert_eq(count_in(softmax, 64, 100, &members, &groups), 2);
    cr_assert(members == 6 && groups == 1, "%u members of %u groups", members, groups);
    cr_assert_eq(count_in(layer_norm, 64, 100, &members, &groups), 2);
    cr_assert(members == 8 && groups == 1, "%u members of %u groups", members, groups);
    cr_assert_eq(count_in(range, 64, 100, &members, &groups), 2);
    cr_assert(members == 6 && groups == 1, "%u members of %u groups", members, groups);
    cr_assert_eq(count_in(chained, 64, 100, &members, &groups), 1);
    cr_assert(members == 5 && groups == 1, "%u members of %u groups", members, groups);
    cr_assert_eq(count_in(chained_rows, 64, 100, &members, &groups), 3);
    cr_assert(members == 9 && groups == 1, "%u members of %u groups", members, groups);
}

Test(group_rows, rows_have_a_least_and_a_greatest_length) {
    uint32_t members, groups;
    cr_assert_eq(count_in(softmax, 100, 63, &members, &groups), 0);
    cr_assert_eq(count_in(softmax, 100, 64, &members, &groups), 2);
    cr_assert_eq(count_in(softmax, 20, 1024, &members, &groups), 2);
    cr_assert_eq(count_in(softmax, 20, 1025, &members, &groups), 0);
    cr_assert_eq(count_in(softmax, 1, 1000, &members, &groups), 0, "one row");
    cr_assert_eq(count_in(softmax, 40, 100, &members, &groups), 0, "4,000 elements");
}

static int64_t tile_rows(int64_t rows, int64_t columns) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = random_tensor((eddy_shape){2, {rows, columns}}),
                *y = random_tensor((eddy_shape){2, {rows, columns}}), *result;
    eddy_program *program = record(softmax, x, y, &result);
    must_replay(softmax, program, x, y, "tiles");
    int64_t found = program->executable->fused[0]->tiles.rows;
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return found;
}

/* Two long rows, if the cache has room for them beside what else it holds. */
Test(group_rows, tiles_have_as_many_rows_as_fit) {
    cr_assert_eq(tile_rows(100, 64), 16);
    cr_assert_eq(tile_rows(100, 300), 3);
    cr_assert_eq(tile_rows(21, 700), 2);
    cr_assert_eq(tile_rows(21, 1024), 2);
    cr_assert_eq(tile_rows(141, 1000), 1, "564,000 bytes");
}

/* Elementwise ops alone: an element for each row, and one for each column. */
static eddy_tensor *broadcast(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *row = eddy_slice(y, 0, 0, 1, 1), *column = eddy_slice(y, 1, 0, 1, 1);
    return eddy_div(eddy_exp(eddy_mul(x, row)), eddy_sub(x, column));
}

Test(group_rows, long_rows_are_cut) {
    uint32_t members, groups;
    (void)count_in(broadcast, 3, 2049, &members, &groups);
    cr_assert(members == 4 && groups == 1, "%u members of %u groups", members, groups);
    (void)count_in(broadcast, 29, 5000, &members, &groups); /* more than a slice */
    cr_assert(members == 4 && groups == 1, "%u members of %u groups", members, groups);
}

/* As many rows as columns: an element for each row is none for each column. */
static eddy_tensor *both_ways(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *sum = eddy_sum(x, EDDY_AXES(-1), NULL);
    return eddy_add(eddy_mul(y, eddy_unsqueeze(sum, -1)), eddy_exp(eddy_neg(sum)));
}

Test(group_rows, a_square) {
    uint32_t members, groups;
    (void)count_in(both_ways, 100, 100, &members, &groups);
    (void)count_in(softmax, 128, 128, &members, &groups);
}

/* ---- layouts ---- */

static eddy_axes reduced;

static eddy_tensor *over_axes(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *sum = eddy_sum(eddy_add(x, y), reduced, EDDY_OPTIONS(sum, .keeps_dims = true)),
                *least = eddy_min(x, reduced, EDDY_OPTIONS(min, .keeps_dims = true));
    return eddy_mul(eddy_sub(x, sum), eddy_sub_s(eddy_relu(least), EDDY_S(3)));
}

static eddy_tensor *over_moved(eddy_tensor *x, eddy_tensor *y) {
    return over_axes(eddy_permute(x, EDDY_AXES(2, 0, 1, 3)),
                     eddy_permute(y, EDDY_AXES(2, 0, 1, 3)));
}

static uint32_t found_with(formula *compute, eddy_axes axes, eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *result;
    reduced = axes;
    eddy_program *program = record(compute, x, y, &result);
    must_replay(compute, program, x, y, "axes");
    uint32_t found = reductions_of(program);
    eddy_program_release(&program);
    return found;
}

static uint32_t found_over(eddy_axes axes, eddy_tensor *x, eddy_tensor *y) {
    return found_with(over_axes, axes, x, y);
}

Test(group_rows, the_inner_axes_of_any_rank) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_shape shape = {4, {3, 5, 8, 70}};
    eddy_tensor *x = random_tensor(shape), *y = random_tensor(shape);
    cr_assert_eq(found_over(EDDY_AXES(3), x, y), 2);
    cr_assert_eq(found_over(EDDY_AXES(2, 3), x, y), 2);
    cr_assert_eq(found_over(EDDY_AXES(1, 2, 3), x, y), 0, "2,800 elements");
    cr_assert_eq(found_over(EDDY_AXES(2), x, y), 0);
    cr_assert_eq(found_over(EDDY_AXES(0, 3), x, y), 0);
    cr_assert_eq(found_over(EDDY_ALL_AXES, x, y), 0);
    /* Axes that lie side by side, whatever their order; and others that do not. */
    cr_assert_eq(found_with(over_moved, EDDY_AXES(0, 3), x, y), 2);
    cr_assert_eq(found_with(over_moved, EDDY_AXES(2, 3), x, y), 0);
    eddy_scope_end(scope);
}

/* The sum is of what the transposed tensor shows: its columns are not contiguous. */
static eddy_tensor *of_transposed(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *t = eddy_t(eddy_add(x, y)),
                *sum = eddy_sum(t, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)),
                *across = eddy_sum(t, EDDY_AXES(0), EDDY_OPTIONS(sum, .keeps_dims = true));
    return eddy_add(eddy_mul(t, sum), eddy_mul(t, across));
}

/* Parts of rows, and every other one. */
static eddy_tensor *of_parts(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *z = eddy_mul(x, y), *part = eddy_narrow(z, 1, 3, 90),
                *some = eddy_slice(part, 0, 0, eddy_shape_of(x).dims[0], 2);
    return eddy_sub(some, eddy_mean(some, EDDY_AXES(-1), EDDY_OPTIONS(mean, .keeps_dims = true)));
}

/* Every other element of rows. */
static eddy_tensor *of_gaps(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *some = eddy_slice(eddy_mul(x, y), 1, 0, eddy_shape_of(x).dims[1], 2);
    return eddy_sub(some, eddy_mean(some, EDDY_AXES(-1), EDDY_OPTIONS(mean, .keeps_dims = true)));
}

/* The state of the sum's operand changes within the group: the sum is of what was there. */
static eddy_tensor *changed_behind(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *z = eddy_mul(x, y),
                *sum = eddy_sum(z, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true));
    must(eddy_sub_into(z, sum, z));
    eddy_tensor *again = eddy_max(z, EDDY_AXES(-1), EDDY_OPTIONS(max, .keeps_dims = true));
    return eddy_add(eddy_mul(z, again), sum);
}

/* What is in f64 or i64 is reduced by itself. */
static eddy_tensor *of_other_dtypes(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *wide = eddy_cast(x, EDDY_F64), *half = eddy_cast(y, EDDY_F16);
    eddy_tensor *a =
        eddy_sub(wide, eddy_mean(wide, EDDY_AXES(-1), EDDY_OPTIONS(mean, .keeps_dims = true)));
    eddy_tensor *b =
        eddy_mul(half, eddy_sum(half, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)));
    eddy_tensor *c = eddy_sum(x, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true));
    return eddy_add(eddy_cast(eddy_mul(a, eddy_cast(c, EDDY_F64)), EDDY_F32),
                    eddy_cast(b, EDDY_F32));
}

Test(group_rows, layouts_and_writes) {
    static formula *const formulas[] = {of_transposed, of_parts, of_gaps, changed_behind,
                                        of_other_dtypes};
    uint32_t members, groups;
    for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas); i++) {
        (void)count_in(formulas[i], 64, 100, &members, &groups);
        (void)count_in(formulas[i], 100, 100, &members, &groups);
        (void)count_in(formulas[i], 30, 999, &members, &groups);
    }
}

/* ---- random formulas ---- */

typedef struct random_formula {
    uint64_t seed;
    int64_t rows, columns;
} random_formula;

static random_formula now;

static eddy_tensor *reduce(uint32_t which, eddy_tensor *x, bool keeps) {
    switch (which) {
    case 0:
        return eddy_sum(x, EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = keeps));
    case 1:
        return eddy_mean(x, EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = keeps));
    case 2:
        return eddy_max(x, EDDY_AXES(1), EDDY_OPTIONS(max, .keeps_dims = keeps));
    default:
        return eddy_min(x, EDDY_AXES(1), EDDY_OPTIONS(min, .keeps_dims = keeps));
    }
}

static eddy_tensor *combine(uint32_t which, eddy_tensor *a, eddy_tensor *b) {
    switch (which) {
    case 0:
        return eddy_add(a, b);
    case 1:
        return eddy_mul(a, b);
    case 2:
        return eddy_sub(a, b);
    case 3:
        return eddy_maximum(b, a);
    default:
        return eddy_tanh(eddy_add(b, a));
    }
}

/* Full tensors, and columns with an element for each row, combined at random. */
static eddy_tensor *random_calls(eddy_tensor *x, eddy_tensor *y) {
    uint64_t before = drawn;
    drawn = now.seed;
    eddy_tensor *full[8] = {x, y}, *columns[8];
    uint32_t full_count = 2, column_count = 0;
    for (int i = 0; i < 14; i++) {
        eddy_tensor *a = full[draw(full_count)], *made;
        switch (draw(5)) {
        case 0:
            made = reduce(draw(4), a, true);
            columns[column_count < 8 ? column_count++ : draw(8)] = made;
            break;
        case 1:
            made = eddy_unsqueeze(eddy_neg(reduce(draw(4), a, false)), 1);
            columns[column_count < 8 ? column_count++ : draw(8)] = made;
            break;
        case 2:
            if (column_count > 0) {
                uint32_t other = draw(column_count);
                columns[other] = combine(draw(5), columns[draw(column_count)], columns[other]);
                break;
            }
            /* falls through */
        case 3:
            made = combine(draw(5), a, column_count ? columns[draw(column_count)] : x);
            full[full_count < 8 ? full_count++ : draw(8)] = made;
            break;
        default:
            made = combine(draw(5), a, full[draw(full_count)]);
            full[full_count < 8 ? full_count++ : draw(8)] = made;
        }
    }
    eddy_tensor *result = eddy_clone(full[full_count - 1]);
    for (uint32_t i = 0; i < column_count; i++)
        result = eddy_add(result, columns[i]);
    drawn = before;
    return result;
}

Test(group_rows, random_formulas, .timeout = 300) {
    uint32_t reductions = 0;
    for (uint64_t i = 0; i < 300; i++) {
        static const int64_t lengths[] = {64,  65,  77,   100,  128, 200,
                                          333, 512, 1000, 1024, 60,  1030};
        uint32_t members, groups;
        now.columns = lengths[draw(sizeof(lengths) / sizeof(*lengths))];
        now.rows = 1 + draw((uint32_t)(MOST / now.columns));
        now.seed = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        reductions += (uint32_t)count_in(random_calls, now.rows, now.columns, &members, &groups);
    }
    cr_assert_gt(reductions, 300, "%u", reductions);
}

/* ---- failures ---- */

/* A member that does not run leaves the others their bits, and results their blame. */
static eddy_tensor *with_two(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *sum = eddy_sum(x, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)),
                *other =
                    eddy_max(eddy_mul(y, x), EDDY_AXES(-1), EDDY_OPTIONS(max, .keeps_dims = true));
    (void)eddy_mul(x, other);
    return eddy_sub(x, sum);
}

Test(group_rows, poison_goes_from_member_to_member) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_shape shape = {2, {64, 100}};
    eddy_tensor *x = random_tensor(shape), *y = random_tensor(shape);
    eddy_tensor *lost =
        eddy_index_select(x, eddy_full(EDDY_SHAPE(64), EDDY_S(64), EDDY_I64, NULL), 0);
    must(eddy_record_begin(NULL));
    eddy_tensor *healthy = with_two(x, y),
                *sick = eddy_mul(x, eddy_max(eddy_mul(y, x), EDDY_AXES(-1),
                                             EDDY_OPTIONS(max, .keeps_dims = true)));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                      {"healthy", healthy, EDDY_ROLE_OUTPUT}, {"sick", sick, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_geq(reductions_of(program), 2);
    eddy_tensor *found[2];
    must(eddy_program_run(program, EDDY_LIST(x, lost), found));
    must_equal(found[0], healthy, "a healthy output");
    cr_assert_eq(eddy_wait(found[1], EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "index_select");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
