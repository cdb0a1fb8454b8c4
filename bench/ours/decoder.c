#include "decoder.h"

#include <bench/ours/must.h>
#include <bench/sample.h>
#include <bench/shapes.h>

eddy_tensor *decoder_integers(int64_t count, int64_t below, uint32_t *random) {
    int64_t *values = malloc((size_t)count * sizeof(int64_t));
    if (!values)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        values[i] = bench_random(random) % below;
    eddy_tensor *tensor = must_tensor(eddy_from_data(values, EDDY_SHAPE(count), EDDY_I64, NULL));
    free(values);
    return tensor;
}

void decoder_init(transformer *net) {
    struct transformer_size size = {.vocabulary = BENCH_TRANSFORMER_VOCABULARY,
                                    .width = BENCH_TRANSFORMER_WIDTH,
                                    .layers = BENCH_TRANSFORMER_LAYERS,
                                    .heads = BENCH_TRANSFORMER_HEADS,
                                    .hidden = BENCH_TRANSFORMER_HIDDEN,
                                    .sequence = BENCH_TRANSFORMER_SEQUENCE};
    if (!transformer_init(net, &size))
        must_fail();
}

eddy_tensor *decoder_numbers(int64_t rows, int64_t columns) {
    uint32_t random = 1;
    eddy_tensor *numbers = decoder_integers(rows * columns, BENCH_TRANSFORMER_VOCABULARY, &random);
    eddy_tensor *shaped = must_tensor(eddy_reshape(numbers, EDDY_SHAPE(rows, columns)));
    eddy_release(&numbers);
    return shaped;
}
