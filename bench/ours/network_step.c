#include "network_step.h"

#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/sample.h>
#include <bench/shapes.h>

static void make_cnn(network_step *t, int rows) {
    uint32_t random = 1;
    if (!network_init(&t->cnn, NETWORK_CNN, EDDY_F32))
        must_fail();
    eddy_tensor *pixels = decoder_integers((int64_t)rows * NETWORK_INPUTS, 256, &random);
    eddy_tensor *narrow = must_tensor(eddy_cast(pixels, EDDY_U8));
    t->inputs = must_tensor(eddy_reshape(narrow, EDDY_SHAPE(rows, NETWORK_INPUTS)));
    t->labels = decoder_integers(rows, NETWORK_CLASSES, &random);
    eddy_release(&narrow);
    eddy_release(&pixels);
}

static void make_transformer(network_step *t, int rows) {
    decoder_init(&t->decoder);
    t->inputs = decoder_numbers(rows, BENCH_TRANSFORMER_SEQUENCE + 1);
}

static eddy_status run_step(void *context, eddy_recorded_call *call) {
    network_step *t = context;
    eddy_tensor *const *inputs = call->inputs.items;
    call->outputs[0] =
        must_tensor(t->is_cnn ? network_train(&t->cnn, inputs[0], inputs[1], call->scalars[0])
                              : transformer_train(&t->decoder, inputs[0], call->scalars[0]));
    return EDDY_OK;
}

void network_step_init(network_step *t, bool is_cnn, int rows) {
    *t = (network_step){.is_cnn = is_cnn};
    if (is_cnn)
        make_cnn(t, rows);
    else
        make_transformer(t, rows);
}

void network_step_replay(network_step *t) {
    if (!(t->recorded = eddy_recorded_create(run_step, t, 1, NULL)))
        must_fail();
}

void network_step_fini(network_step *t) {
    eddy_recorded_release(&t->recorded);
    network_fini(&t->cnn);
    transformer_fini(&t->decoder);
    eddy_release(&t->inputs);
    eddy_release(&t->labels);
}

eddy_tensor *network_step_run(network_step *t) {
    eddy_list inputs = {(eddy_tensor *[]){t->inputs, t->labels}, t->is_cnn ? 2 : 1};
    eddy_scalars rate = EDDY_SCALARS(EDDY_S(BENCH_ADAM_RATE));
    eddy_tensor *loss;
    if (t->recorded) {
        must(eddy_recorded_run(t->recorded, inputs, rate, &loss));
    } else {
        eddy_recorded_call call = {.inputs = inputs, .scalars = rate.items, .outputs = &loss};
        must(run_step(t, &call));
    }
    return loss;
}
