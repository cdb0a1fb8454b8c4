/* The row replay_path: instructions of a call of a function of 20 ops on 16 floats, which reads a bool behind the 16th that decides about the others.
 *
 *     decided count_replay_path N         recorded; makes N calls and prints nothing: for callgrind
 *     decided count_path_calls N          the function itself
 *     decided count_path_functions N      two recorded functions, with the read between them
 *     decided count_path_unread N         recorded, of as many ops and no read */
#include "must.h"
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

static eddy_tensor *input;
static eddy_recorded *decided, *front, *back, *unread;

static eddy_tensor *add_often(eddy_tensor *x, int count) {
    for (int i = 0; i < count; i++)
        x = must_tensor(eddy_add(x, input));
    return x;
}

static eddy_tensor *is_positive(eddy_tensor *x) {
    return must_tensor(eddy_gt_s(must_tensor(eddy_max(x, EDDY_ALL_AXES, NULL)), EDDY_S(0)));
}

static eddy_status decides(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *x = add_often(call->inputs.items[0], 14);
    if (!eddy_item_i64(is_positive(x), NULL))
        return EDDY_INVALID_ARGUMENT;
    call->outputs[0] = add_often(x, 4);
    return EDDY_OK;
}

static eddy_status gives_two(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = add_often(call->inputs.items[0], 14);
    call->outputs[1] = is_positive(call->outputs[0]);
    return EDDY_OK;
}

static eddy_status gives_rest(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = add_often(call->inputs.items[0], 4);
    return EDDY_OK;
}

static eddy_status does_not_read(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *x = add_often(call->inputs.items[0], 14);
    call->outputs[1] = is_positive(x);
    call->outputs[0] = add_often(x, 4);
    return EDDY_OK;
}

static void run_path(void) {
    eddy_tensor *y;
    must(eddy_recorded_run(decided, EDDY_LIST(input), EDDY_SCALARS(), &y));
}

static void run_calls(void) {
    eddy_tensor *y;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(input), .outputs = &y, .output_count = 1};
    must(decides(NULL, &call));
}

static void run_functions(void) {
    eddy_tensor *seen[2], *y;
    must(eddy_recorded_run(front, EDDY_LIST(input), EDDY_SCALARS(), seen));
    if (!eddy_item_i64(seen[1], NULL))
        must_fail();
    must(eddy_recorded_run(back, EDDY_LIST(seen[0]), EDDY_SCALARS(), &y));
}

static void run_unread(void) {
    eddy_tensor *y[2];
    must(eddy_recorded_run(unread, EDDY_LIST(input), EDDY_SCALARS(), y));
}

static const struct {
    const char *row;
    void (*run)(void);
} rows[] = {{"count_replay_path", run_path},
            {"count_path_calls", run_calls},
            {"count_path_functions", run_functions},
            {"count_path_unread", run_unread}};

static void run_in_scope(void (*run)(void)) {
    eddy_scope *scope = eddy_scope_begin();
    run();
    eddy_scope_end(scope);
}

int main(int argc, char **argv) {
    const char *row_name = argc > 1 ? argv[1] : "";
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    input = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL));
    decided = eddy_recorded_create(decides, NULL, 1, NULL);
    front = eddy_recorded_create(gives_two, NULL, 2, NULL);
    back = eddy_recorded_create(gives_rest, NULL, 1, NULL);
    unread = eddy_recorded_create(does_not_read, NULL, 2, NULL);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        if (strcmp(rows[r].row, row_name) != 0)
            continue;
        for (int i = 0; i < 3; i++)
            run_in_scope(rows[r].run);
        for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
            run_in_scope(rows[r].run);
        must(eddy_sync(EDDY_FOREVER));
        return 0;
    }
    fprintf(stderr, "decided: no such row: %s\n", row_name);
    return 2;
}
