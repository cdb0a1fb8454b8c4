#include "small_calls.h"

#include <functional/op_table.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <stdio.h>
#include <string.h>

static eddy_tensor *op_sum(eddy_tensor *const *inputs) {
    return eddy_sum(inputs[0], EDDY_ALL_AXES, NULL);
}

static eddy_tensor *op_mean(eddy_tensor *const *inputs) {
    return eddy_mean(inputs[0], EDDY_ALL_AXES, NULL);
}

static eddy_tensor *op_add(eddy_tensor *const *inputs) {
    return eddy_add(inputs[0], inputs[1]);
}

static eddy_tensor *op_layer_norm(eddy_tensor *const *inputs) {
    return eddy_layer_norm(inputs[0], inputs[1], inputs[2], 1, NULL);
}

static eddy_tensor *op_softmax(eddy_tensor *const *inputs) {
    return eddy_softmax(inputs[0], 1);
}

static eddy_tensor *op_linear(eddy_tensor *const *inputs) {
    return eddy_linear(inputs[0], inputs[1], inputs[2]);
}

static eddy_tensor *op_matmul(eddy_tensor *const *inputs) {
    return eddy_matmul(inputs[0], inputs[1]);
}

static eddy_tensor *op_cross_entropy(eddy_tensor *const *inputs) {
    return eddy_cross_entropy(inputs[0], inputs[1], NULL);
}

/* clang-format off */
#define VECTOR(n)    {EDDY_F32, 1, {n}, {1}}
#define MATRIX(m, n) {EDDY_F32, 2, {m, n}, {n, 1}}
#define ROWS(m, n)   {EDDY_F32, 2, {m, n}, {0, 1}}
#define COLUMNS(m, n) {EDDY_F32, 2, {m, n}, {1, 0}}
#define LABELS(n)    {EDDY_I64, 1, {n}, {1}}
#define NUMBER       {.dtype = EDDY_F32}

static const eddy_attributes_reduce whole = {.axes = 1};
static const eddy_attributes_axis last = {.axis = 1};
static const eddy_attributes_layer_norm last_axis = {.axis_count = 1, .eps = 1e-5};
static const eddy_attributes_cross_entropy mean_loss = {.reduction = EDDY_REDUCTION_MEAN};

static const small_call small_calls[] = {
    {"sum",           &eddy_cpu_sum,           NULL,         &whole,     2, {VECTOR(16), NUMBER}, op_sum},
    {"mean",          &eddy_cpu_mean,          NULL,         &whole,     2, {VECTOR(16), NUMBER}, op_mean},
    {"add_row",       NULL,                    &eddy_op_add, NULL,       3, {MATRIX(4, 4), ROWS(4, 4), MATRIX(4, 4)}, op_add},
    {"add_column",    NULL,                    &eddy_op_add, NULL,       3, {MATRIX(4, 4), COLUMNS(4, 4), MATRIX(4, 4)}, op_add},
    {"layer_norm",    &eddy_cpu_layer_norm,    NULL,         &last_axis, 4, {MATRIX(2, 16), VECTOR(16), VECTOR(16), MATRIX(2, 16)}, op_layer_norm},
    {"softmax",       &eddy_cpu_softmax,       NULL,         &last,      2, {MATRIX(2, 16), MATRIX(2, 16)}, op_softmax},
    {"linear",        &eddy_cpu_linear,        NULL,         NULL,       4, {MATRIX(4, 8), MATRIX(8, 8), VECTOR(8), MATRIX(4, 8)}, op_linear},
    {"matmul",        &eddy_cpu_matmul,        NULL,         NULL,       3, {MATRIX(8, 8), MATRIX(8, 8), MATRIX(8, 8)}, op_matmul},
    {"cross_entropy", &eddy_cpu_cross_entropy, NULL,         &mean_loss, 3, {MATRIX(4, 10), LABELS(4), NUMBER}, op_cross_entropy},
};
/* clang-format on */

const small_call *small_call_of(const char *row, const char *format) {
    for (size_t at = 0; at < sizeof(small_calls) / sizeof(small_calls[0]); at++) {
        char name[64];
        snprintf(name, sizeof(name), format, small_calls[at].name);
        if (!strcmp(name, row))
            return &small_calls[at];
    }
    return NULL;
}
