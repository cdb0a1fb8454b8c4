/* The gemm_* rows: matmul of two matrices. Transposed operands are views; each call creates and releases its output. */
#include <bench/ours/calls.h>
#include <bench/shapes.h>

typedef struct matrices {
    eddy_tensor *a, *b;
} matrices;

static eddy_tensor *matrix(int rows, int columns, int is_transposed, uint32_t *random) {
    float *values = bench_random_floats(random, (size_t)rows * (size_t)columns);
    eddy_shape shape = is_transposed ? EDDY_SHAPE(columns, rows) : EDDY_SHAPE(rows, columns);
    eddy_tensor *made = must_tensor(eddy_from_data(values, shape, EDDY_F32, NULL));
    free(values);
    if (is_transposed) {
        eddy_tensor *stored = made;
        made = must_tensor(eddy_t(stored));
        eddy_release(&stored);
    }
    return made;
}

static void multiply(void *work) {
    const matrices *operands = work;
    eddy_tensor *product = must_tensor(eddy_matmul(operands->a, operands->b));
    eddy_release(&product);
}

int main(int argc, char **argv) {
    const bench_gemm_shape *shape = bench_gemm_shape_of(argc > 1 ? argv[1] : "");
    uint32_t random = 1;
    matrices operands;
    operands.a = matrix(shape->m, shape->k, shape->is_a_transposed, &random);
    operands.b = matrix(shape->k, shape->n, shape->is_b_transposed, &random);
    measure_calls(shape->row, multiply, &operands, bench_gemm_calls(shape),
                  bench_sample_count(argc, argv, 2));
    eddy_release(&operands.a);
    eddy_release(&operands.b);
    return 0;
}
