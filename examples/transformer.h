/* A small decoder-only transformer: embedding, layers of attention and SwiGLU with RMS norms before each, a linear output.
 *
 * Nothing here waits: every function issues ops and returns. A failed call leaves its record in the thread's error
 * slot; a late error is returned when a result is read. */
#ifndef EXAMPLES_TRANSFORMER_H
#define EXAMPLES_TRANSFORMER_H

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stddef.h>

#define TRANSFORMER_LAYERS_MAX 64
/* Parameters of a layer: norm, query-key-value and output of attention; norm, gate, up and down of SwiGLU. */
#define TRANSFORMER_LAYER_PARAMETERS 7
#define TRANSFORMER_PARAMETERS_MAX (3 + TRANSFORMER_LAYERS_MAX * TRANSFORMER_LAYER_PARAMETERS)

struct transformer_size {
    int64_t vocabulary, width, layers, heads, hidden, sequence;
};

typedef struct transformer {
    struct transformer_size size;
    int64_t count; /* of parameters: embedding, those of the layers, last norm, output */
    eddy_tensor *parameters[TRANSFORMER_PARAMETERS_MAX];
    eddy_tensor *m[TRANSFORMER_PARAMETERS_MAX],
        *v[TRANSFORMER_PARAMETERS_MAX]; /* AdamW's moments */
    eddy_tensor *step;                  /* AdamW's count of updates, i64 */
    eddy_tensor *positions;             /* 0 .. sequence - 1 */
} transformer;

/* Random weights from the current runtime's generator. After a failure *net still has to be passed to transformer_fini. */
bool transformer_init(transformer *net, const struct transformer_size *size);
/* Releases everything; a zeroed or half-made transformer is allowed. */
void transformer_fini(transformer *net);
/* Number of elements of all parameters. */
int64_t transformer_weights(const transformer *net);

/* numbers i64[B, S], S at most the size's sequence -> logits f32[B, S, vocabulary]. NULL on failure. */
eddy_tensor *transformer_logits(const transformer *net, eddy_tensor *numbers);
/* Mean cross-entropy, in nats, of predicting each next number; numbers i64[B, S + 1]. NULL on failure. */
eddy_tensor *transformer_loss(const transformer *net, eddy_tensor *numbers);
/* One step of training: forward, backward, clipping, AdamW with rate `lr`. Returns the loss before the update, or NULL. */
eddy_tensor *transformer_train(transformer *net, eddy_tensor *numbers, eddy_scalar lr);

/* Writes the name in files of the parameter with that number, such as "layers.3.gate". */
void transformer_name(const transformer *net, int64_t number, char *name, size_t size);

#endif
