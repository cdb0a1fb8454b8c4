#include <criterion/criterion.h>
#include <tests/program/outcome.h>
#include <tests/program/towers.h>

eddy_tensor *towers_grow(eddy_tensor *h, eddy_tensor *weight, int depth) {
    for (int i = 0; i < depth; i++)
        h = eddy_tanh(eddy_matmul(h, weight));
    return h;
}

eddy_runtime *towers_enter(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    return runtime;
}

void towers_leave(eddy_runtime **runtime) {
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(runtime);
}
