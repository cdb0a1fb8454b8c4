/* Elementwise ops on CUDA devices have the CPU's bits, in every dtype and in the layouts that launch other kernels or other parts of them. On the fake driver. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <functional/cuda_kernels.h>
#include <interpreter/call/op.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/devices.h>

#define ROWS 3
#define COLUMNS 21
#define BYTES_MOST (ROWS * COLUMNS * 8)

typedef enum layout {
    CONTIGUOUS,
    ONE_FOR_ALL, /* of the last operand */
    TRANSPOSED,  /* the first one */
    SLICED,      /* the last one, every second column */
    ROW_FOR_ALL, /* of the last operand */
    LAYOUT_COUNT,
} layout;

static uint64_t state = 1;

static uint64_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 24;
}

/* Half of them small numbers, the others any bits. */
static void fill(eddy_dtype dtype, unsigned char *data, int64_t count) {
    int64_t bytes = eddy_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = draw();
        if (dtype == EDDY_BOOL)
            data[i] = bits & 1;
        else if (bits & 1)
            eddy_dtype_store_f64(dtype, data + i * bytes, (double)(bits >> 1 & 0xff) / 16 - 4);
        else
            memcpy(data + i * bytes, &bits, (size_t)bytes);
    }
}

static eddy_tensor *operand(eddy_dtype dtype, layout how, bool is_first, bool is_last,
                            eddy_device device) {
    unsigned char data[2 * BYTES_MOST];
    fill(dtype, data, 2 * ROWS * COLUMNS);
    eddy_from_data_options options = {.size = sizeof(options), .device = device};
    if (how == ONE_FOR_ALL && is_last)
        return eddy_from_data(data, EDDY_SHAPE(1), dtype, &options);
    if (how == ROW_FOR_ALL && is_last)
        return eddy_from_data(data, EDDY_SHAPE(COLUMNS), dtype, &options);
    if (how == TRANSPOSED && is_first)
        return eddy_transpose(eddy_from_data(data, EDDY_SHAPE(COLUMNS, ROWS), dtype, &options), 0,
                              1);
    if (how == SLICED && is_last)
        return eddy_slice(eddy_from_data(data, EDDY_SHAPE(ROWS, 2 * COLUMNS), dtype, &options), 1,
                          1, 2 * COLUMNS, 2);
    return eddy_from_data(data, EDDY_SHAPE(ROWS, COLUMNS), dtype, &options);
}

/* Its numbers; of an integer dtype whole ones. */
static int64_t attributes_of(const eddy_op *op, eddy_dtype dtype, eddy_attribute *to) {
    bool is_real = eddy_dtype_is_float(dtype);
    int64_t count = 0;
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *a = &op->attributes[i];
        if (a->type == EDDY_ATTRIBUTE_SCALAR && !a->is_fixed)
            to[count++] = (eddy_attribute){a->name,
                                           EDDY_ATTRIBUTE_SCALAR,
                                           {.scalar = dtype == EDDY_BOOL ? EDDY_S(true)
                                                      : is_real          ? EDDY_S(0.75)
                                                                         : EDDY_S(3)}};
        else if (a->type == EDDY_ATTRIBUTE_FLOAT && a->is_required)
            to[count++] = (eddy_attribute){a->name, EDDY_ATTRIBUTE_FLOAT, {.floating = 0.75}};
    }
    return count;
}

/* What the op gives on the device, as it lies in memory row by row; the dtype of it. */
static eddy_dtype run(const eddy_op *op, eddy_dtype dtype, layout how, uint64_t seed,
                      eddy_device device, unsigned char *result, int64_t *count) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *inputs[4], *output = NULL;
    eddy_attribute attributes[4];
    state = seed;
    for (int32_t i = 0; i < op->operand_count; i++)
        inputs[i] = operand(op->operands[i].is_bool ? EDDY_BOOL : dtype, how, i == 0,
                            i == op->operand_count - 1 && i > 0, device);
    eddy_attributes given = {attributes, attributes_of(op, dtype, attributes)};
    eddy_status status =
        eddy_call(op->name, (eddy_list){inputs, op->operand_count}, &given, &output);
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
    eddy_dtype made = eddy_dtype_of(output);
    *count = eddy_count_of(output);
    cr_assert_eq(eddy_read(output, result, (size_t)(*count * eddy_dtype_size(made)), NULL),
                 EDDY_OK);
    eddy_scope_end(scope);
    return made;
}

static void expect_same(const char *op, eddy_dtype dtype, layout how, eddy_dtype made,
                        const unsigned char *here, const unsigned char *there, int64_t count) {
    int64_t bytes = eddy_dtype_size(made);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *a = here + i * bytes, *b = there + i * bytes;
        if (memcmp(a, b, (size_t)bytes) == 0)
            continue;
        double of_cpu = eddy_dtype_load_f64(made, a), of_cuda = eddy_dtype_load_f64(made, b);
        cr_assert(isnan(of_cpu) && isnan(of_cuda), "%s of %s, layout %d, element %d: %a, not %a",
                  op, eddy_dtype_name(dtype), (int)how, (int)i, of_cuda, of_cpu);
    }
}

static int compare(const char *name, eddy_dtype dtype) {
    const eddy_op *op = eddy_op_find(name);
    if (!op) /* a gradient's loop, which no program calls by name */
        return 0;
    for (layout how = CONTIGUOUS; how < LAYOUT_COUNT; how++) {
        unsigned char here[BYTES_MOST], there[BYTES_MOST];
        int64_t count, count_there;
        uint64_t seed = draw();
        eddy_dtype made = run(op, dtype, how, seed, EDDY_CPU, here, &count);
        eddy_dtype made_there = run(op, dtype, how, seed, EDDY_CUDA(0), there, &count_there);
        cr_assert(made == made_there && count == count_there);
        expect_same(name, dtype, how, made, here, there, count);
    }
    return 1;
}

Test(cuda, elementwise_ops_have_the_bits_of_the_cpu) {
    int compared = 0;
#define ROW(group, op, dtype, stem, inputs, attribute_bytes) compared += compare(#op, EDDY_##dtype);
    EDDY_CUDA_KERNEL_LIST(ROW)
#undef ROW
    cr_assert_gt(compared, 400);
}

/* Every dtype to every other, and to a target in another order. */
Test(cuda, casts_have_the_bits_of_the_cpu) {
    for (int from = 0; from < EDDY_DTYPE_COUNT; from++)
        for (int to = 0; to < EDDY_DTYPE_COUNT; to++) {
            unsigned char results[2][BYTES_MOST], targets[2][BYTES_MOST];
            uint64_t seed = draw();
            for (int d = 0; d < 2; d++) {
                eddy_scope *scope = eddy_scope_begin();
                eddy_device device = d == 0 ? EDDY_CPU : cuda_last_device();
                state = seed;
                eddy_tensor *x = operand((eddy_dtype)from, SLICED, false, true, device);
                eddy_tensor *cast = eddy_cast(x, (eddy_dtype)to);
                eddy_tensor *target =
                    eddy_full(EDDY_SHAPE(COLUMNS, ROWS), EDDY_S(1), (eddy_dtype)to,
                              EDDY_OPTIONS(full, .device = device));
                cr_assert_eq(eddy_copy_into(x, eddy_transpose(target, 0, 1)), EDDY_OK);
                size_t bytes = ROWS * COLUMNS * eddy_dtype_bytes((eddy_dtype)to);
                cr_assert_eq(eddy_read(cast, results[d], bytes, NULL), EDDY_OK);
                cr_assert_eq(eddy_read(target, targets[d], bytes, NULL), EDDY_OK);
                eddy_scope_end(scope);
            }
            expect_same("cast", (eddy_dtype)from, SLICED, (eddy_dtype)to, results[0], results[1],
                        ROWS * COLUMNS);
            expect_same("copy_into", (eddy_dtype)from, TRANSPOSED, (eddy_dtype)to, targets[0],
                        targets[1], ROWS * COLUMNS);
        }
}
