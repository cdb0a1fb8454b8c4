#include "fault_programs.h"

#include <eddy/eddy.h>
#include <stdio.h>
#include <unistd.h>

#define ROWS 4
#define COLUMNS 6

static eddy_tensor *there(eddy_tensor *tensor) {
    return eddy_to_device(tensor, EDDY_FAR(0));
}

static eddy_tensor *here(eddy_tensor *tensor) {
    return eddy_to_device(tensor, EDDY_CPU);
}

/* Copies that are left out and others, in turns with ops of both sides, a state that is written, a row that may not be there. */
static eddy_program *record(eddy_tensor *x, eddy_tensor *rows, eddy_tensor *state) {
    if (eddy_record_begin(NULL) != EDDY_OK)
        return NULL;
    eddy_tensor *a = there(x), *back = here(a);
    eddy_tensor *b = eddy_mul(eddy_exp(a), a), *c = eddy_add(here(b), eddy_neg(back));
    eddy_tensor *picked = eddy_index_select(there(c), there(rows), 0);
    if (picked)
        (void)eddy_add_into(state, eddy_sum(picked, EDDY_ALL_AXES, NULL), state);
    return eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_INPUT},
                                         {"state", state, EDDY_ROLE_STATE},
                                         {"picked", picked, EDDY_ROLE_OUTPUT},
                                         {"c", c, EDDY_ROLE_OUTPUT}));
}

static eddy_status read_sum(eddy_tensor *tensor, double *result) {
    double sum;
    eddy_status status = eddy_read_f64(eddy_sum(tensor, EDDY_ALL_AXES, NULL), &sum, NULL);
    *result += status == EDDY_OK ? sum : 0;
    return status;
}

/* Inputs from where the program has them and from elsewhere, some outputs by name, targets, and a file in between. */
static eddy_status run(eddy_program *program, eddy_tensor *x, eddy_tensor *rows, double *result) {
    eddy_tensor *outputs[2] = {0}, *picked = NULL;
    eddy_status status = eddy_program_run(program, EDDY_LIST(x, rows), outputs);
    for (int i = 0; i < 2 && status == EDDY_OK; i++)
        status = read_sum(outputs[i], result);
    eddy_tensor *far_x = there(x);
    if (status == EDDY_OK)
        status = far_x ? eddy_program_run_named(program, EDDY_FEEDS({"x", far_x}, {"rows", rows}),
                                                EDDY_FETCHES({"picked", &picked}), NULL)
                       : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = read_sum(picked, result);
    eddy_tensor *targets[2] = {there(eddy_zeros(EDDY_SHAPE(2, COLUMNS), EDDY_F32, NULL)),
                               eddy_zeros_like(x, NULL)};
    if (status == EDDY_OK)
        status = targets[0] && targets[1] ? eddy_program_run_into(program, EDDY_LIST(far_x, rows),
                                                                  (eddy_list){targets, 2})
                                          : EDDY_OUT_OF_MEMORY;
    return status == EDDY_OK ? read_sum(targets[1], result) : status;
}

static eddy_status run_loaded(const eddy_program *program, eddy_tensor *x, eddy_tensor *rows,
                              double *result) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-device-faults-%ld.program", (long)getpid());
    eddy_status status = eddy_program_save(program, path);
    eddy_program *loaded = status == EDDY_OK ? eddy_program_load(path) : NULL;
    unlink(path);
    if (status == EDDY_OK)
        status = loaded ? run(loaded, x, rows, result) : EDDY_OUT_OF_MEMORY;
    eddy_program_release(&loaded);
    return status;
}

/* An input that is written, given from elsewhere: what the run writes goes back. */
static eddy_status run_written(eddy_tensor *x, double *result) {
    eddy_tensor *y = eddy_clone(x), *output = NULL;
    if (!y)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    (void)eddy_mul_into(y, x, y);
    eddy_tensor *z = eddy_neg(y);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"y", y, EDDY_ROLE_INPUT}, {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    eddy_tensor *far_y = there(x);
    status = program && far_y ? eddy_program_run(program, EDDY_LIST(far_y, x), &output)
                              : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = read_sum(far_y, result);
    if (status == EDDY_OK)
        status = read_sum(output, result);
    eddy_program_release(&program);
    return status;
}

/* Gradients go back between devices. */
static eddy_status run_taped(eddy_tensor *x, double *result) {
    eddy_tensor *w = eddy_clone(x), *loss = NULL;
    eddy_status status = w ? eddy_requires_grad_set(w, true) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_record_begin(NULL);
    if (status != EDDY_OK)
        return status;
    loss = eddy_sum(eddy_square(there(eddy_mul(w, x))), EDDY_ALL_AXES, NULL);
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"loss", loss, EDDY_ROLE_OUTPUT}));
    status = program ? eddy_program_run(program, EDDY_LIST(x), &loss) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = eddy_backward(loss);
    eddy_tensor *gradient = status == EDDY_OK ? eddy_grad_of(w) : NULL;
    if (status == EDDY_OK)
        status = gradient ? read_sum(gradient, result) : EDDY_OUT_OF_MEMORY;
    eddy_program_release(&program);
    return status;
}

eddy_status run_program_devices(double *results) {
    eddy_scope *scope = eddy_scope_begin();
    if (!scope)
        return EDDY_OUT_OF_MEMORY;
    static const int64_t numbers[2] = {1, 0};
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    eddy_tensor *rows = eddy_from_data(numbers, EDDY_SHAPE(2), EDDY_I64, NULL);
    eddy_tensor *state = there(eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL));
    results[0] = results[1] = 0;
    eddy_program *program = x && rows && state ? record(x, rows, state) : NULL;
    eddy_status status = program ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = run(program, x, rows, &results[0]);
    if (status == EDDY_OK)
        status = run_loaded(program, x, rows, &results[0]);
    if (status == EDDY_OK)
        status = read_sum(state, &results[1]);
    eddy_program_release(&program);
    if (status == EDDY_OK)
        status = run_written(x, &results[1]);
    if (status == EDDY_OK)
        status = run_taped(x, &results[1]);
    eddy_status synced = eddy_sync(EDDY_FOREVER);
    eddy_scope_end(scope);
    return status == EDDY_OK ? synced : status;
}
