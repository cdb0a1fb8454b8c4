/* The instructions_call_* rows: instructions of a whole general call (interpreter/README.md) on a tiny shape, its result released.
 *
 *     issued count_call_sum N       makes N calls and prints nothing: for callgrind */
#include "must.h"
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

/* Operands of the calls. */
static eddy_tensor *vector, *integers, *matrix, *turned, *row, *wide, *bias;

static void make_operands(void) {
    vector = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL));
    integers = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_I32, NULL));
    matrix = must_tensor(eddy_ones(EDDY_SHAPE(4, 4), EDDY_F32, NULL));
    turned = must_tensor(eddy_transpose(matrix, 0, 1));
    row = must_tensor(eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL));
    wide = must_tensor(eddy_ones(EDDY_SHAPE(8, 8), EDDY_F32, NULL));
    bias = must_tensor(eddy_ones(EDDY_SHAPE(8), EDDY_F32, NULL));
}

static eddy_tensor *call_sum(void) {
    return eddy_sum(matrix, EDDY_ALL_AXES, NULL);
}

static eddy_tensor *call_add_row(void) {
    return eddy_add(matrix, row);
}

static eddy_tensor *call_add_turned(void) {
    return eddy_add(matrix, turned);
}

static eddy_tensor *call_add_mixed(void) {
    return eddy_add(vector, integers);
}

static eddy_tensor *call_softmax(void) {
    return eddy_softmax(matrix, -1);
}

static eddy_tensor *call_layer_norm(void) {
    return eddy_layer_norm(wide, EDDY_NONE, EDDY_NONE, 1, NULL);
}

static eddy_tensor *call_matmul(void) {
    return eddy_matmul(wide, wide);
}

static eddy_tensor *call_linear(void) {
    return eddy_linear(wide, wide, bias);
}

static eddy_tensor *call_cat(void) {
    return eddy_cat(EDDY_LIST(vector, vector), 0);
}

static eddy_tensor *call_zeros(void) {
    return eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL);
}

static const struct {
    const char *row;
    eddy_tensor *(*call)(void);
} rows[] = {
    {"count_call_sum", call_sum},
    {"count_call_add_row", call_add_row},
    {"count_call_add_turned", call_add_turned},
    {"count_call_add_mixed", call_add_mixed},
    {"count_call_softmax", call_softmax},
    {"count_call_layer_norm", call_layer_norm},
    {"count_call_matmul", call_matmul},
    {"count_call_linear", call_linear},
    {"count_call_cat", call_cat},
    {"count_call_zeros", call_zeros},
};

int main(int argc, char **argv) {
    const char *row_name = argc > 1 ? argv[1] : "";
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    make_operands();
    must(eddy_sync(EDDY_FOREVER));
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        if (strcmp(rows[r].row, row_name))
            continue;
        for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--) {
            eddy_tensor *result = must_tensor(rows[r].call());
            eddy_release(&result);
        }
        must(eddy_sync(EDDY_FOREVER));
        return 0;
    }
    return 2;
}
