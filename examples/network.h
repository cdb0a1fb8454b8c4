/* A network of three layers with ReLU between them, trained by Adam: linear layers, 784-256-128-10, or two convolutions of 32
 * and 64 channels, each followed by a pool, and a linear layer.
 *
 * Nothing here waits: every function issues ops and returns. A failed call leaves its record in the thread's error
 * slot; a late error is returned when a result is read. */
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
    eddy_dtype dtype; /* that layers compute in; parameters and moments are f32 */
    eddy_tensor *parameters[NETWORK_PARAMETERS]; /* weight [out, ..], bias [out] of each layer */
    eddy_tensor *m[NETWORK_PARAMETERS], *v[NETWORK_PARAMETERS]; /* Adam's moments */
    eddy_tensor *step;                                          /* Adam's count of updates, i64 */
} network;

/* Random weights from the current runtime's generator. After a failure *net still has to be passed to network_fini. */
bool network_init(network *net, network_model model, eddy_dtype dtype);
/* Releases everything; a zeroed or half-made network is allowed. */
void network_fini(network *net);

/* images u8[n, 784] -> logits f32[n, 10]. NULL on failure. */
eddy_tensor *network_logits(const network *net, eddy_tensor *images);

/* One step of training on images u8[n, 784] and labels i64[n]: forward, backward, Adam with rate `lr`. Returns the mean
 * loss before the update (0-dim), or NULL. If a label is invalid, reading the loss returns that error, and the network is
 * unchanged. */
eddy_tensor *network_train(network *net, eddy_tensor *images, eddy_tensor *labels, eddy_scalar lr);

/* Restores the network to its values before a batch that failed, so that training can go on. The program must have seen the error. */
bool network_recover(network *net);

/* Number of images that are classified correctly: a 0-dim i64 tensor, or NULL. */
eddy_tensor *network_correct(const network *net, eddy_tensor *images, eddy_tensor *labels);

#endif
