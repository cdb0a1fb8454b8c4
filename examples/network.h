/* A network of three layers with ReLU between them, trained by Adam: linear ones, 784-256-128-10, or two convolutions of 32
 * and 64 channels, each followed by a pool, and a linear one.
 *
 * Nothing here waits: every function issues ops and returns. A failed call leaves its record in the thread's error
 * slot; what fails later shows when a result is read. */
#ifndef EXAMPLES_NETWORK_H
#define EXAMPLES_NETWORK_H

#include <eddy/eddy.h>
#include <stdbool.h>

#define NETWORK_LAYERS 3
#define NETWORK_PARAMETERS (2 * NETWORK_LAYERS)
#define NETWORK_INPUTS 784
#define NETWORK_CLASSES 10

typedef enum network_model { NETWORK_MLP, NETWORK_CNN } network_model;

typedef struct network {
    network_model model;
    eddy_dtype dtype; /* of what layers compute; parameters and moments are f32 */
    eddy_tensor *parameters[NETWORK_PARAMETERS]; /* weight [out, ..], bias [out] of each layer */
    eddy_tensor *m[NETWORK_PARAMETERS], *v[NETWORK_PARAMETERS]; /* Adam's moments */
    eddy_tensor *step;                                          /* Adam's count of updates, i64 */
} network;

/* Random weights from the current runtime's generator. On failure *net is to be given to network_fini all the same. */
bool network_init(network *net, network_model model, eddy_dtype dtype);
/* Releases everything; a zeroed or half-made network is allowed. */
void network_fini(network *net);

/* images u8[n, 784] -> logits f32[n, 10]. NULL on failure. */
eddy_tensor *network_logits(const network *net, eddy_tensor *images);

/* One step of training on images u8[n, 784] and labels i64[n]: forward, backward, Adam with rate `lr`. Returns the mean
 * loss before the update (0-dim), or NULL. Where the labels are damaged, the loss shows it when it is read, and nothing
 * of the network has changed. */
eddy_tensor *network_train(network *net, eddy_tensor *images, eddy_tensor *labels, double lr);

/* Lets training go on after a batch that failed, from the values before it. Its error must have been seen. */
bool network_recover(network *net);

/* How many of the images are classed as their labels say: a 0-dim i64 tensor, or NULL. */
eddy_tensor *network_correct(const network *net, eddy_tensor *images, eddy_tensor *labels);

#endif
