#include "inlined.h"

#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

eddy_tensor *line(double first, int64_t count) {
    return eddy_arange(EDDY_S(first), EDDY_S(first + (double)count), EDDY_S(1), EDDY_F32, NULL);
}

void begin(bool records_only) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
}

eddy_tensor *run(eddy_program *program, eddy_list inputs) {
    eddy_tensor *output = NULL;
    must(eddy_program_run(program, inputs, &output));
    return output;
}

int64_t recorded_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.recorded_count;
}

eddy_program *make_affine(eddy_tensor *b) {
    eddy_tensor *x = of(1);
    begin(false);
    eddy_tensor *y = eddy_add(eddy_mul_s(eddy_tanh(x), EDDY_S(2)), b);
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}
