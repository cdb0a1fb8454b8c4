/* What kernels touch that move elements as they are. */
#include <initializer_list>
#include <kernels/cuda/fill.h>
#include <kernels/cuda/index.h>
#include <kernels/cuda/repeat.h>
#include <kernels/cuda/row.h>
#include <kernels/cuda/scatter.h>
#include <tests/fake_cuda/kernels/touches.h>

/* With it all of the library's thread variables are aligned, which the memory is that blocks share: LeakSanitizer takes some that lie 16 bytes behind a page for ones
 * with a header of its own, reads what is ahead of them as their size, and crashes. */
__thread char eddy_touches_alignment __attribute__((aligned(64)));

/* ---- eddy_cuda_strided ---- */

static range range_of(const eddy_cuda_strided &p, int operand, int64_t bytes) {
    range all = {0, bytes};
    for (int d = 0; d < p.rank; d++)
        all.reach((int64_t)p.dims[d].divisor - 1, p.strides[operand][d]);
    return all;
}

static int64_t index_bytes(const eddy_cuda_strided &p) {
    return p.attributes[EDDY_CUDA_PICK_FLAGS] & EDDY_CUDA_PICK_IS_WIDE ? 8 : 4;
}

/* Of the input all that an index may name. */
static void touch_pick(const eddy_cuda_strided &p, int64_t bytes, touch_fn *say, void *context) {
    range_of(p, EDDY_CUDA_PICK_INDEX, index_bytes(p))
        .touch(say, context, p.data[EDDY_CUDA_PICK_INDEX], false);
    const int64_t bound = (int64_t)p.attributes[EDDY_CUDA_PICK_BOUND];
    if (bound == 0 || p.attributes[EDDY_CUDA_PICK_FLAGS] & EDDY_CUDA_PICK_ONLY_LOOKS)
        return;
    range input = range_of(p, EDDY_CUDA_PICK_INPUT, bytes);
    input.reach(bound - 1, (int64_t)p.attributes[EDDY_CUDA_PICK_STEP]);
    input.touch(say, context, p.data[EDDY_CUDA_PICK_INPUT], false);
    range_of(p, EDDY_CUDA_PICK_OUTPUT, bytes)
        .touch(say, context, p.data[EDDY_CUDA_PICK_OUTPUT], true);
}

static void touch_one_hot(const eddy_cuda_strided &p, int64_t bytes, touch_fn *say, void *context) {
    range_of(p, EDDY_CUDA_ONE_HOT_INDEX, index_bytes(p))
        .touch(say, context, p.data[EDDY_CUDA_ONE_HOT_INDEX], false);
    range_of(p, EDDY_CUDA_ONE_HOT_OUTPUT, bytes)
        .touch(say, context, p.data[EDDY_CUDA_ONE_HOT_OUTPUT], true);
}

static void touch_triangle(const eddy_cuda_strided &p, int64_t bytes, touch_fn *say,
                           void *context) {
    range_of(p, 0, bytes).touch(say, context, p.data[0], false);
    range_of(p, 2, bytes).touch(say, context, p.data[2], true);
}

/* ---- others ---- */

static void touch_repetition(const eddy_cuda_repetition &p, int64_t bytes, touch_fn *say,
                             void *context) {
    range in = {0, bytes}, out = {0, bytes};
    for (int d = 0; d < p.rank; d++) {
        in.reach(p.in_dims[d] - 1, p.in_strides[d]);
        out.reach(p.dims[d] - 1, p.strides[d]);
    }
    in.touch(say, context, p.in, false);
    out.touch(say, context, p.out, true);
}

static void touch_sequence(const eddy_cuda_sequence &p, int64_t bytes, touch_fn *say,
                           void *context) {
    range out = {0, bytes};
    out.reach(p.count - 1, p.stride);
    out.touch(say, context, p.out, true);
}

/* Of the output all that an index may name. */
static void touch_scatter(const eddy_cuda_scatter_call &p, int64_t bytes, int64_t source_bytes,
                          touch_fn *say, void *context) {
    range all[EDDY_CUDA_SCATTER_OPERANDS] = {
        {0, bytes}, {0, source_bytes}, {0, p.flags & EDDY_CUDA_SCATTER_IS_WIDE ? 8 : 4}, {0, 0}};
    for (const eddy_cuda_scatter_dims *dims : {&p.along, &p.rest})
        for (int d = 0; d < dims->rank; d++)
            for (int k = 0; k < EDDY_CUDA_SCATTER_OPERANDS; k++)
                all[k].reach(dims->dims[d] - 1, dims->strides[k][d]);
    all[EDDY_CUDA_SCATTER_INDEX].touch(say, context, p.index, false);
    if (p.part == 0)
        return;
    all[EDDY_CUDA_SCATTER_OUT].reach(p.bound - 1, p.step);
    all[EDDY_CUDA_SCATTER_OUT].touch(say, context, p.out, true);
    all[EDDY_CUDA_SCATTER_SOURCE].touch(say, context, p.source, false);
}

/* Of the list all rows: which one, the launch alone finds out. */
static void touch_row(const eddy_cuda_row &p, int64_t bytes, bool is_set, touch_fn *say,
                      void *context) {
    range list = {0, bytes}, row = {0, bytes}, number = {0, 8};
    list.reach(p.rows - 1, p.list_strides[0]);
    list.reach(p.columns - 1, p.list_strides[1]);
    row.reach(p.columns - 1, p.stride);
    number.touch(say, context, p.number, false);
    if (p.rows > 0)
        list.touch(say, context, p.list, is_set);
    row.touch(say, context, p.row, !is_set);
}

/* ---- by name ---- */

#define PICK(bits) TOUCHES(eddy_pick_##bits, eddy_cuda_strided, touch_pick, bits / 8)
EDDY_CUDA_PICKS(PICK)
TOUCHES(eddy_one_hot, eddy_cuda_strided, touch_one_hot, 8)
TOUCHES(eddy_triangle_8, eddy_cuda_strided, touch_triangle, 1)
TOUCHES(eddy_triangle_16, eddy_cuda_strided, touch_triangle, 2)
TOUCHES(eddy_triangle_32, eddy_cuda_strided, touch_triangle, 4)
TOUCHES(eddy_triangle_64, eddy_cuda_strided, touch_triangle, 8)
#define REPEAT(bits) TOUCHES(eddy_repeat_##bits, eddy_cuda_repetition, touch_repetition, bits / 8)
EDDY_CUDA_REPEATS(REPEAT)
#define ROW(bits)                                                                                  \
    TOUCHES(eddy_row_get_##bits, eddy_cuda_row, touch_row, bits / 8, false)                        \
    TOUCHES(eddy_row_set_##bits, eddy_cuda_row, touch_row, bits / 8, true)
EDDY_CUDA_ROWS(ROW)

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_u8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4,
                     bytes_of_i64 = 8, bytes_of_truth = 1;
#define SEQUENCES(name, dtype)                                                                     \
    TOUCHES(eddy_sequence_real_##name, eddy_cuda_sequence, touch_sequence, bytes_of_##name)        \
    TOUCHES(eddy_sequence_integer_##name, eddy_cuda_sequence, touch_sequence, bytes_of_##name)
EDDY_CUDA_SEQUENCES(SEQUENCES)
#define SCATTER(how, target, element)                                                              \
    TOUCHES(eddy_scatter_##how##_##target##_##element, eddy_cuda_scatter_call, touch_scatter,      \
            bytes_of_##target, bytes_of_##element)
EDDY_CUDA_SCATTERS(SCATTER)
