#include <stdio.h>
#include <tests/program/outcome.h>
#include <tests/program/sized.h>

static eddy_tensor *numbers(int64_t count, int64_t width, int seed) {
    eddy_tensor *made =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + count * width), EDDY_S(1), EDDY_F32, NULL);
    return eddy_reshape(made, EDDY_SHAPE(count, width));
}

eddy_tensor *sized_rows(int64_t count, int64_t width, int seed) {
    return eddy_sin(numbers(count, width, seed));
}

eddy_tensor *sized_input(const sized *f, int64_t size, int seed) {
    return f->takes_integers ? eddy_cast(numbers(size, f->width, seed), EDDY_I64)
                             : sized_rows(size, f->width, seed);
}

eddy_recorded *sized_record(sized *f, int64_t most) {
    return eddy_recorded_create(
        f->body, f, 1, EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = most));
}

void sized_run(eddy_recorded *recorded, const sized *f, int64_t size, int seed) {
    eddy_scope *scope = eddy_scope_begin();
    sized other = *f;
    eddy_tensor *x = sized_input(f, size, seed), *y, *expected;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &expected, .output_count = 1};
    must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    must(f->body(&other, &call));
    char what[32];
    snprintf(what, sizeof(what), "size %lld", (long long)size);
    must_have_same_bits(y, expected, what);
    eddy_scope_end(scope);
}

void sized_learn(eddy_recorded *recorded, const sized *f, int64_t first, int64_t second,
                 int64_t third) {
    const int64_t sizes[] = {first, first, second, second, third};
    for (int i = 0; i < 5; i++)
        sized_run(recorded, f, sizes[i], i);
}

eddy_status sized_attends(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_tensor *last = eddy_narrow(x, 0, eddy_dim_of(x, 0) - 1, 1);
    eddy_tensor *scores = eddy_mul_s(eddy_matmul(last, eddy_transpose(x, 0, 1)), EDDY_S(0.125));
    call->outputs[0] = eddy_matmul(eddy_softmax(scores, 1), x);
    return EDDY_OK;
}

eddy_status sized_normalizes(void *context, eddy_recorded_call *call) {
    ((sized *)context)->calls++;
    eddy_tensor *x = call->inputs.items[0];
    eddy_tensor *mean = eddy_mean(x, EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = true));
    eddy_tensor *centred = eddy_sub(x, mean);
    eddy_tensor *square =
        eddy_mean(eddy_square(centred), EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = true));
    call->outputs[0] = eddy_mul(centred, eddy_rsqrt(eddy_add_s(square, EDDY_S(0.25))));
    return EDDY_OK;
}
