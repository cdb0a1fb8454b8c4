#include <bench/ours/watch.h>

#include <bench/sample.h>
#include <vm/execute.h>
#include <vm/machine.h>

static watch_counts seen;

/* The linker's option --wrap gives the functions these names. */
eddy_status __real_eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call);
eddy_status __wrap_eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call);
eddy_execute_result __real_eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction,
                                           eddy_blocks_cache *cache, eddy_kernel_team *team,
                                           void **data, int64_t *data_bytes);
eddy_execute_result __wrap_eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction,
                                           eddy_blocks_cache *cache, eddy_kernel_team *team,
                                           void **data, int64_t *data_bytes);
bool __real_eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call);
bool __wrap_eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call);

/* Least time between two consecutive readings of the clock, in ns. */
static double clock_ns(void) {
    static double least;
    for (int i = 0; i < 1000 && (i > 0 || least == 0); i++) {
        double began = bench_now_ns(), took = bench_now_ns() - began;
        least = least == 0 || took < least ? took : least;
    }
    return least;
}

static void note_execution(double began_ns) {
    seen.executed_ns += bench_now_ns() - began_ns;
    seen.executions++;
}

eddy_status __wrap_eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call) {
    seen.estimated_ps += call->cost_ps;
    return __real_eddy_vm_submit(vm, call);
}

eddy_execute_result __wrap_eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction,
                                           eddy_blocks_cache *cache, eddy_kernel_team *team,
                                           void **data, int64_t *data_bytes) {
    double began_ns = bench_now_ns();
    eddy_execute_result result =
        __real_eddy_vm_execute(vm, instruction, cache, team, data, data_bytes);
    note_execution(began_ns);
    return result;
}

bool __wrap_eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call) {
    double began_ns = bench_now_ns();
    bool has_run = __real_eddy_vm_execute_plain(vm, call);
    if (has_run)
        note_execution(began_ns);
    return has_run;
}

void watch_reset(void) {
    memset(&seen, 0, sizeof(seen));
}

watch_counts watch_now(void) {
    watch_counts counts = seen;
    counts.executed_ns -= clock_ns() * (double)seen.executions;
    return counts;
}
