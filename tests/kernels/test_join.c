/* stack, pad, repeat, repeat_interleave, flip, roll: exact, each element against the one that an index oracle names. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <string.h>

/* The flat number in the input of the element that belongs at `index` of the output; -1: none, but the padding. */
typedef int64_t oracle_fn(const tensor *in, const void *attributes, const int64_t *index);

static int64_t flatten(const tensor *t, const int64_t *index) {
    int64_t flat = 0;
    for (int32_t d = 0; d < t->view.rank; d++)
        flat = flat * t->shape[d] + index[d];
    return flat;
}

static void unflatten(const tensor *t, int64_t flat, int64_t *index) {
    for (int32_t d = t->view.rank - 1; d >= 0; d--) {
        index[d] = flat % t->shape[d];
        flat /= t->shape[d];
    }
}

static eddy_kernel_team *some_team(void) {
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team};
    return teams[test_below(2)];
}

static void check(const eddy_kernel *kernel, eddy_dtype dtype, int32_t rank, const int64_t *shape,
                  layout a, int32_t out_rank, const int64_t *out_shape, layout b,
                  const void *attributes, oracle_fn *oracle, eddy_kernel_team *team) {
    tensor in = tensor_make(dtype, rank, shape, a),
           out = tensor_make(dtype, out_rank, out_shape, b);
    tensor_fill(&in, 100);
    cr_assert_eq(run_kernel(kernel, (tensor *[]){&in, &out}, 2, attributes, team, NULL), EDDY_OK);
    char seven[8];
    eddy_dtype_store_i64(dtype, seven, 7);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t index[EDDY_RANK_MAX];
        unflatten(&out, i, index);
        int64_t from = oracle(&in, attributes, index);
        const void *want = from < 0 ? seven : tensor_at(&in, from);
        cr_assert_eq(memcmp(tensor_at(&out, i), want, eddy_dtype_bytes(dtype)), 0,
                     "%s to %s element %lld", describe(kernel->name, &in, a), layout_name(b),
                     (long long)i);
    }
    cr_assert(tensor_guards_hold(&out), "%s", describe(kernel->name, &in, a));
    tensor_free(&in), tensor_free(&out);
}

#define EACH_DTYPE(d) for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
#define EACH_LAYOUT(a) for (int a = 0; a < LAYOUT_COUNT; a++)
#define SOME_OUTPUT ((layout)test_below(OUTPUT_LAYOUTS))

/* ---- stack ---- */

static void check_stack(eddy_dtype dtype, int32_t rank, const int64_t *shape, int32_t axis,
                        int count, layout b) {
    tensor in[5], out, *all[6];
    int64_t out_shape[5];
    for (int32_t d = 0; d <= rank; d++)
        out_shape[d] = d == axis ? count : shape[d > axis ? d - 1 : d];
    out = tensor_make(dtype, rank + 1, out_shape, b);
    for (int i = 0; i < count; i++) {
        in[i] = tensor_make(dtype, rank, shape,
                            (layout)test_below(rank == 0 ? BROADCAST : LAYOUT_COUNT));
        tensor_fill(&in[i], 100);
        all[i] = &in[i];
    }
    all[count] = &out;
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(&eddy_cpu_stack, all, count + 1, &attributes, some_team(), NULL);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t index[5], rest[5];
        unflatten(&out, i, index);
        for (int32_t d = 0; d < rank; d++)
            rest[d] = index[d >= axis ? d + 1 : d];
        const tensor *from = &in[index[axis]];
        cr_assert_eq(memcmp(tensor_at(&out, i), tensor_at(from, flatten(from, rest)),
                            eddy_dtype_bytes(dtype)),
                     0, "%s axis %d element %lld", describe("stack", &out, b), axis, (long long)i);
    }
    cr_assert(tensor_guards_hold(&out));
    for (int i = 0; i < count; i++)
        tensor_free(&in[i]);
    tensor_free(&out);
}

Test(join, stack_of_every_dtype_layout_and_axis) {
    const int64_t shapes[][3] = {{3, 5, 7}, {1, 1, 1}, {2, 0, 3}, {13, 4, 31}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t rank = 0; rank <= 3; rank++)
                for (int32_t axis = 0; axis <= rank; axis++)
                    check_stack((eddy_dtype)d, rank, shapes[s], axis, 1 + (int)test_below(5),
                                SOME_OUTPUT);
    }
    check_stack(EDDY_F32, 2, (const int64_t[]){400, 301}, 2, 3, CONTIGUOUS);
}

/* ---- pad ---- */

static int64_t pad_oracle(const tensor *in, const void *attributes, const int64_t *index) {
    const eddy_attributes_pad *pad = attributes;
    int64_t from[EDDY_RANK_MAX];
    for (int32_t d = 0; d < in->view.rank; d++) {
        from[d] = index[d] - pad->before.dims[d];
        if (from[d] < 0 || from[d] >= in->shape[d])
            return -1;
    }
    return flatten(in, from);
}

static void check_pad(eddy_dtype dtype, const int64_t *shape, const int64_t *before,
                      const int64_t *after, layout a, layout b, eddy_kernel_team *team) {
    eddy_attributes_pad attributes = {.before = {.rank = 3}, .value = EDDY_S(7)};
    int64_t out_shape[3];
    for (int32_t d = 0; d < 3; d++) {
        attributes.before.dims[d] = before[d];
        out_shape[d] = shape[d] + before[d] + after[d];
    }
    check(&eddy_cpu_pad, dtype, 3, shape, a, 3, out_shape, b, &attributes, pad_oracle, team);
}

Test(join, pad_adds_and_cuts_off) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {0, 3, 2}, {2, 13, 64}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            EACH_LAYOUT(a) {
                int64_t before[3], after[3];
                for (int i = 0; i < 3; i++) {
                    before[i] = test_below(6) - test_below(shapes[s][i] + 1);
                    int64_t kept = shapes[s][i] + (before[i] < 0 ? before[i] : 0);
                    after[i] = test_below(6) - test_below(kept + 1);
                }
                check_pad((eddy_dtype)d, shapes[s], before, after, (layout)a, SOME_OUTPUT,
                          some_team());
            }
    }
    const int64_t none[] = {0, 0, 0}, all[] = {-4, 0, 0}, behind[] = {9, 0, 0}, edge[] = {5, -5, 3},
                  other[] = {-2, 2, -7};
    check_pad(EDDY_F32, shapes[0], none, none, CONTIGUOUS, CONTIGUOUS, &serial_team);
    check_pad(EDDY_F32, shapes[0], all, none, CONTIGUOUS, CONTIGUOUS, &serial_team);
    check_pad(EDDY_F32, shapes[0], all, behind, CONTIGUOUS, STRIDED, &serial_team);
    check_pad(EDDY_F32, shapes[0], behind, all, CONTIGUOUS, STRIDED, &serial_team);
    check_pad(EDDY_F32, shapes[0], edge, other, NEGATIVE, STRIDED, &serial_team);
    const int64_t big[] = {40, 60, 70}, one[] = {1, 1, 1};
    check_pad(EDDY_BF16, big, one, one, TURNED, CONTIGUOUS, &threaded_team);
}

/* ---- repeat, repeat_interleave ---- */

static int64_t repeat_oracle(const tensor *in, const void *attributes, const int64_t *index) {
    int32_t added = *(const int32_t *)attributes;
    int64_t from[EDDY_RANK_MAX];
    for (int32_t d = 0; d < in->view.rank; d++)
        from[d] = index[d + added] % in->shape[d];
    return flatten(in, from);
}

static void check_repeat(eddy_dtype dtype, int32_t rank, const int64_t *shape, int32_t added,
                         const int64_t *repeats, layout a, layout b, eddy_kernel_team *team) {
    int64_t out_shape[EDDY_RANK_MAX];
    for (int32_t d = 0; d < rank + added; d++)
        out_shape[d] = repeats[d] * (d < added ? 1 : shape[d - added]);
    check(&eddy_cpu_repeat, dtype, rank, shape, a, rank + added, out_shape, b, &added,
          repeat_oracle, team);
}

Test(join, repeat_lays_tiles) {
    const int64_t shapes[][2] = {{4, 5}, {1, 1}, {0, 3}, {7, 33}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t added = 0; added <= 2; added++)
                EACH_LAYOUT(a) {
                    int64_t repeats[4];
                    for (int i = 0; i < 4; i++)
                        repeats[i] = test_below(5);
                    check_repeat((eddy_dtype)d, 2, shapes[s], added, repeats, (layout)a,
                                 SOME_OUTPUT, some_team());
                }
    }
    const int64_t number[] = {1}, many[] = {1000, 3};
    check_repeat(EDDY_I8, 0, number, 2, many, CONTIGUOUS, CONTIGUOUS, &serial_team);
    int64_t two[EDDY_RANK_MAX], one[EDDY_RANK_MAX];
    for (int d = 0; d < EDDY_RANK_MAX; d++) {
        one[d] = d % 4 == 0 ? 2 : 1;
        two[d] = d % 2 == 0 ? 2 : 1;
    }
    check_repeat(EDDY_I16, EDDY_RANK_MAX, one, 0, two, STRIDED, CONTIGUOUS, &serial_team);
    check_repeat(EDDY_F32, 2, (const int64_t[]){100, 70}, 0, (const int64_t[]){13, 5}, CONTIGUOUS,
                 CONTIGUOUS, &threaded_team);
}

static int64_t interleave_oracle(const tensor *in, const void *attributes, const int64_t *index) {
    const eddy_attributes_repeat_interleave *a = attributes;
    int64_t from[EDDY_RANK_MAX];
    memcpy(from, index, sizeof(from));
    from[a->axis] /= a->repeats;
    return flatten(in, from);
}

Test(join, repeat_interleave_repeats_parts) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {2, 0, 3}, {3, 13, 31}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                EACH_LAYOUT(a) {
                    eddy_attributes_repeat_interleave attributes = {.repeats = test_below(5),
                                                                    .axis = axis};
                    int64_t out_shape[3];
                    memcpy(out_shape, shapes[s], sizeof(out_shape));
                    out_shape[axis] *= attributes.repeats;
                    check(&eddy_cpu_repeat_interleave, (eddy_dtype)d, 3, shapes[s], (layout)a, 3,
                          out_shape, SOME_OUTPUT, &attributes, interleave_oracle, some_team());
                }
    }
    int64_t full[EDDY_RANK_MAX], more[EDDY_RANK_MAX];
    for (int d = 0; d < EDDY_RANK_MAX; d++)
        more[d] = full[d] = d % 3 == 0 ? 2 : 1;
    more[3] = 6;
    eddy_attributes_repeat_interleave three = {.repeats = 3, .axis = 3};
    check(&eddy_cpu_repeat_interleave, EDDY_F64, EDDY_RANK_MAX, full, NEGATIVE, EDDY_RANK_MAX, more,
          STRIDED, &three, interleave_oracle, &serial_team);
}

/* ---- flip, roll ---- */

static int64_t flip_oracle(const tensor *in, const void *attributes, const int64_t *index) {
    const eddy_attributes_flip *flip = attributes;
    int64_t from[EDDY_RANK_MAX];
    for (int32_t d = 0; d < in->view.rank; d++)
        from[d] = flip->axes >> d & 1u ? in->shape[d] - 1 - index[d] : index[d];
    return flatten(in, from);
}

static int64_t roll_oracle(const tensor *in, const void *attributes, const int64_t *index) {
    const eddy_attributes_roll *roll = attributes;
    if (roll->shifts.rank != in->view.rank)
        return (flatten(in, index) + in->count - roll->shifts.dims[0]) % in->count;
    int64_t from[EDDY_RANK_MAX];
    for (int32_t d = 0; d < in->view.rank; d++)
        from[d] = (index[d] + in->shape[d] - roll->shifts.dims[d]) % in->shape[d];
    return flatten(in, from);
}

Test(join, flip_turns_every_subset_of_axes) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {2, 0, 3}, {3, 13, 31}};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            for (uint32_t axes = 0; axes < 8; axes++)
                EACH_LAYOUT(a) {
                    eddy_attributes_flip attributes = {.axes = axes};
                    check(&eddy_cpu_flip, (eddy_dtype)d, 3, shapes[s], (layout)a, 3, shapes[s],
                          SOME_OUTPUT, &attributes, flip_oracle, some_team());
                }
    }
    check(&eddy_cpu_flip, EDDY_U8, 0, NULL, CONTIGUOUS, 0, NULL, CONTIGUOUS,
          &(eddy_attributes_flip){0}, flip_oracle, &serial_team);
}

static void check_roll(eddy_dtype dtype, const int64_t *shape, bool is_flat, layout a, layout b,
                       eddy_kernel_team *team) {
    eddy_attributes_roll attributes = {.shifts = {.rank = is_flat ? 1 : 3}};
    int64_t count = shape[0] * shape[1] * shape[2];
    for (int d = 0; d < 3; d++)
        attributes.shifts.dims[d] = is_flat || shape[d] == 0 ? 0 : test_below(shape[d]);
    if (is_flat && count > 0)
        attributes.shifts.dims[0] = test_below(count);
    check(&eddy_cpu_roll, dtype, 3, shape, a, 3, shape, b, &attributes, roll_oracle, team);
}

Test(join, roll_by_axes_and_by_the_whole) {
    const int64_t shapes[][3] = {{4, 5, 7}, {1, 1, 1}, {2, 0, 3}, {3, 13, 31}},
                  big[] = {40, 61, 70};
    EACH_DTYPE(d) {
        for (int s = 0; s < 4; s++)
            EACH_LAYOUT(a) {
                check_roll((eddy_dtype)d, shapes[s], false, (layout)a, SOME_OUTPUT, some_team());
                check_roll((eddy_dtype)d, shapes[s], true, (layout)a, SOME_OUTPUT, some_team());
            }
    }
    check_roll(EDDY_F32, big, true, CONTIGUOUS, CONTIGUOUS, &threaded_team);
    check_roll(EDDY_F32, big, true, TURNED, STRIDED, &threaded_team);
    check_roll(EDDY_F32, big, false, CONTIGUOUS, CONTIGUOUS, &threaded_team);
}

/* Rows of which some are longer than a slice. */
Test(join, roll_of_one_axis_by_rows) {
    const int64_t shapes[][3] = {{4, 5, 7}, {3, 1, 31}, {300, 17, 29}, {2, 3, 70001}};
    const eddy_dtype dtypes[] = {EDDY_U8, EDDY_F16, EDDY_F32, EDDY_I64};
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 4; s++)
            for (int axis = 0; axis < 3; axis++) {
                eddy_attributes_roll attributes = {.shifts = {.rank = 3}};
                if (shapes[s][axis] > 1)
                    attributes.shifts.dims[axis] = 1 + test_below(shapes[s][axis] - 1);
                check(&eddy_cpu_roll, dtypes[d], 3, shapes[s], UNALIGNED, 3, shapes[s], CONTIGUOUS,
                      &attributes, roll_oracle, some_team());
            }
}
