/* The run function of elementwise kernels hands every element to the loop exactly once, whatever layout and slices. */
#include "serial_team.h"
#include "tensor.h"
#include <criterion/criterion.h>
#include <string.h>

/* out[i] = a[i] * 3 + b[i], one dtype each: i32, u8 -> i64 */
static void loop(char *const *data, const int64_t *strides, int64_t count, const void *attributes) {
    cr_assert(count > 0);
    int64_t factor = *(const int64_t *)attributes;
    for (int64_t i = 0; i < count; i++) {
        int32_t a;
        int64_t out;
        memcpy(&a, data[0] + i * strides[0], sizeof(a));
        out = a * factor + *(const uint8_t *)(data[1] + i * strides[1]);
        memcpy(data[2] + i * strides[2], &out, sizeof(out));
    }
}

static const eddy_kernel kernel = {
    .name = "test", .run = eddy_kernel_run_elementwise, .loop = loop};

static void check(int32_t rank, const int64_t *shape, layout a, layout b, layout c,
                  eddy_kernel_team *team) {
    tensor left = tensor_make(EDDY_I32, rank, shape, a),
           right = tensor_make(EDDY_U8, rank, shape, b);
    tensor out = tensor_make(EDDY_I64, rank, shape, c);
    tensor_fill(&left, 1e9);
    tensor_fill(&right, 200);
    int64_t factor = 3;
    run_kernel(&kernel, (tensor *[]){&left, &right, &out}, 3, &factor, team, NULL);
    for (int64_t i = 0; i < out.count; i++)
        cr_assert_eq(tensor_get_int(&out, i),
                     tensor_get_int(&left, i) * 3 + tensor_get_int(&right, i), "%s element %lld",
                     describe("elementwise", &out, c), (long long)i);
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&left), tensor_free(&right), tensor_free(&out);
}

Test(elementwise, every_layout) {
    const int64_t shapes[][4] = {{3, 5, 7, 2}, {1, 1, 1, 1}, {2, 0, 3, 1}, {2, 1, 40, 3}};
    for (int s = 0; s < 4; s++)
        for (int32_t rank = 0; rank <= 4; rank++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int c = 0; c < OUTPUT_LAYOUTS; c++)
                    check(rank, shapes[s], (layout)a, (layout)test_below(LAYOUT_COUNT), (layout)c,
                          &serial_team);
}

Test(elementwise, slices_of_big_tensors) {
    const int64_t line = 100003, square[] = {301, 401};
    check(1, &line, CONTIGUOUS, STRIDED, UNALIGNED, &shuffling_team);
    check(1, &line, NEGATIVE, CONTIGUOUS, CONTIGUOUS, &threaded_team);
    check(2, square, TURNED, BROADCAST, CONTIGUOUS, &threaded_team);
    check(2, square, CONTIGUOUS, STRIDED, TURNED, &shuffling_team);
}
