/* The kernel_small_* rows: a kernel on a tiny shape, called through its interface, without the VM and the interpreter.
 *
 *     kernels kernel_small_sum_ns [samples]     nanoseconds per call
 *     kernels count_kernel_small_sum N          makes N calls and prints nothing: for callgrind */
#include <bench/ours/small_calls.h>
#include <bench/sample.h>
#include <eddy/version.h>
#include <streams/team.h>

#define WORKSPACE_BYTES 65536

/* A call's kernel, attributes and operands, prepared once. */
typedef struct ready_call {
    const eddy_kernel *kernel;
    const void *attributes;
    eddy_op_view views[SMALL_OPERANDS_MAX];
    int32_t view_count;
} ready_call;

static _Alignas(64) char workspace[WORKSPACE_BYTES];

/* All steps of one kernel call: prepare, as when an op is issued, then run and end. Returns the estimate in ps. The only function
 * here that knows these steps. */
static int64_t call_kernel(const ready_call *ready) {
    const eddy_kernel *kernel = ready->kernel;
    eddy_kernel_error error = {.position = INT64_MAX};
    eddy_kernel_call call = {.kernel = kernel,
                             .views = ready->views,
                             .view_count = ready->view_count,
                             .attributes = ready->attributes,
                             .workspace = workspace,
                             .team = &eddy_team_serial,
                             .error = &error};
    _Alignas(8) char memory[EDDY_KERNEL_PLAN_BYTES];
    eddy_kernel_plan plan;
    plan.memory = memory;
    if (eddy_kernel_prepare(&call, &plan) != EDDY_OK || plan.workspace_bytes > sizeof(workspace))
        exit(1);
    call.plan = memory;
    call.workspace_bytes = plan.workspace_bytes;
    plan.run(&call);
    if (kernel->end)
        kernel->end(memory);
    if (eddy_load_relaxed(&error.status) != EDDY_OK)
        exit(1);
    return plan.cost_ps;
}

/* Numbers in (-1, 1). Indices are 0, which is valid for every operand. */
static void fill(eddy_op_view *view, int64_t count) {
    static _Alignas(64) char memory[SMALL_OPERANDS_MAX][SMALL_ELEMENTS_MAX * sizeof(int64_t)];
    static uint32_t random_state = 1;
    static int32_t taken;
    view->data = memory[taken++];
    float *values = view->data;
    for (int64_t i = 0; i < count && view->dtype == EDDY_F32; i++)
        values[i] = bench_random_float(&random_state, 1);
}

static ready_call prepare(const small_call *from) {
    ready_call ready = {.kernel = from->kernel ? from->kernel : from->table->kernels[EDDY_F32],
                        .attributes = from->attributes,
                        .view_count = from->operand_count};
    for (int32_t i = 0; i < from->operand_count; i++) {
        const small_operand *o = &from->operands[i];
        eddy_op_view *view = &ready.views[i];
        const int64_t *dims =
            from->table ? from->operands[0].dims : o->dims; /* elementwise: dims are shared */
        *view = (eddy_op_view){
            .shape = dims, .strides = o->strides, .dtype = o->dtype, .rank = o->rank};
        int64_t count = eddy_kernel_view_count(view);
        fill(view, count);
    }
    return ready;
}

static double time_calls(const ready_call *ready, int calls) {
    double began = bench_now_ns();
    for (int call = 0; call < calls; call++)
        call_kernel(ready);
    return (bench_now_ns() - began) / calls;
}

static void measure(const char *row, const ready_call *ready, int count) {
    int calls = bench_calls_for(time_calls(ready, 1000));
    bench_samples samples = {.count = 0};
    for (int sample = 0; sample < count; sample++)
        bench_samples_push(&samples, time_calls(ready, calls));
    bench_print_row(row, "ns", eddy_version_text(), "caller", &samples);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    const small_call *timed = small_call_of(row, "kernel_small_%s_ns"),
                     *counted = small_call_of(row, "count_kernel_small_%s");
    if (!timed && !counted) {
        fprintf(stderr, "kernels: no such row: %s\n", row);
        return 2;
    }
    ready_call ready = prepare(timed ? timed : counted);
    if (timed)
        measure(row, &ready, bench_sample_count(argc, argv, 2));
    else
        time_calls(&ready, argc > 2 ? atoi(argv[2]) : 1);
    return 0;
}
