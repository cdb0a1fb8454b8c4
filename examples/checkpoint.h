/* The weights of a network and the characters that it knows, in a .safetensors file that other programs read too. */
#ifndef EXAMPLES_CHECKPOINT_H
#define EXAMPLES_CHECKPOINT_H

#include "text.h"
#include "transformer.h"

#include <stdbool.h>

/* Whether `path` can be written, tested by creating a file beside it; if not, prints why to stderr. */
bool checkpoint_can_be_saved(const char *path);
/* Waits for the weights. On any failure the old file stays whole. Returns false with the error in the thread's slot. */
bool checkpoint_save(const transformer *net, const struct text *text, int64_t step, double loss,
                     const char *path);
/* Copies the weights of the file into the network. Returns false with the error in the slot, or with a message on stderr if the
 * file belongs to another text. */
bool checkpoint_load(transformer *net, const struct text *text, const char *path);

#endif
