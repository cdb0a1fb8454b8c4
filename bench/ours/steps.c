/* The rows replay_small_*: the calls of kernel_small_* as steps of a program.
 *
 *     steps count_replay_small_sum N     replays N calls, a multiple of 200, and prints nothing: for callgrind
 *
 * A program is 200 equal calls, none of whose results is used: passes would leave one of them or none, so they have to be off (EDDY_PASSES=none). */
#include <bench/ours/must.h>
#include <bench/ours/small_calls.h>
#include <bench/sample.h>

#define CALLS 200 /* bench/run.py: COUNT_FEW */

static eddy_tensor *make_input(const small_operand *operand, uint32_t *random) {
    eddy_shape shape = {.rank = operand->rank};
    for (int32_t d = 0; d < operand->rank; d++)
        shape.dims[d] = operand->strides[d] ? operand->dims[d] : 1; /* broadcast by the op */
    if (operand->dtype != EDDY_F32)
        return must_tensor(eddy_zeros(shape, operand->dtype, NULL));
    float *values = bench_random_floats(random, SMALL_ELEMENTS_MAX);
    eddy_tensor *input = must_tensor(eddy_from_data(values, shape, EDDY_F32, NULL));
    free(values);
    return input;
}

static eddy_program *record(const small_call *call, eddy_tensor *const *inputs) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_record_begin(NULL));
    for (int i = 0; i < CALLS; i++) {
        eddy_tensor *result = must_tensor(call->op(inputs));
        eddy_release(&result);
    }
    eddy_program *program = eddy_record_end(NULL);
    if (!program)
        must_fail();
    must(eddy_program_describe(program, &info));
    if (info.instruction_count != CALLS) {
        fprintf(stderr, "steps: %d calls became %lld instructions\n", CALLS,
                (long long)info.instruction_count);
        exit(1);
    }
    return program;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    const small_call *call = small_call_of(row, "count_replay_small_%s");
    if (!call) {
        fprintf(stderr, "steps: no such row: %s\n", row);
        return 2;
    }
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    eddy_tensor *inputs[SMALL_OPERANDS_MAX];
    uint32_t random = 1;
    for (int32_t i = 0; i + 1 < call->operand_count; i++)
        inputs[i] = make_input(&call->operands[i], &random);
    eddy_program *program = record(call, inputs);
    for (int made = 0; made < (argc > 2 ? atoi(argv[2]) : CALLS); made += CALLS)
        must(eddy_program_run(program, (eddy_list){0}, NULL));
    must(eddy_sync(EDDY_FOREVER));
    return 0;
}
