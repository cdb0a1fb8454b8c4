/* What the kernels of softmaxes touch. */
#include <kernels/cuda/softmax.h>
#include <tests/fake_cuda/kernels/lines_touches.h>

enum form { WHOLE, LARGEST, SUMS, RESULTS };

static void touch_softmax(const eddy_cuda_softmax_call &p, form how, int inputs, int64_t bytes,
                          touch_fn *say, void *context) {
    for (int k = 0; k < inputs; k++)
        touch_lines(p.lines, k + 1, p.in[k], bytes, false, say, context);
    if (how == WHOLE || how == RESULTS)
        touch_lines(p.lines, 0, p.out, bytes, true, say, context);
    const size_t chunks = (size_t)(p.lines.lines * p.chunks) * sizeof(double);
    if (how == LARGEST || (how != WHOLE && inputs == 1))
        say(context, p.largest, chunks, how == LARGEST);
    if (how == SUMS || how == RESULTS)
        say(context, p.sums, chunks, how == SUMS);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
static const int inputs_of_softmax = 1, inputs_of_log_softmax = 1, inputs_of_softmax_backward = 2,
                 inputs_of_log_softmax_backward = 2;
#define FORM(name, how, op, of)                                                                    \
    TOUCHES(eddy_##op##_##of##_##name, eddy_cuda_softmax_call, touch_softmax, how, inputs_of_##op, \
            bytes_of_##of)
#define FORMS(op, of, dtype, compute)                                                              \
    FORM(whole, WHOLE, op, of) FORM(sums, SUMS, op, of) FORM(results, RESULTS, op, of)
EDDY_CUDA_SOFTMAXES(FORMS)
#define LARGEST_FORM(op, of, dtype, compute) FORM(largest, LARGEST, op, of)
EDDY_CUDA_SOFTMAX_DTYPES(LARGEST_FORM, softmax)
