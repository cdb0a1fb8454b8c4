/* The weights of a network and the characters that it knows, in a .safetensors file that other programs read too. */
#ifndef EXAMPLES_CHECKPOINT_H
#define EXAMPLES_CHECKPOINT_H

#include "text.h"
#include "transformer.h"

#include <stdbool.h>

/* Whether a file can be made there, found out by making one beside it; if not, says so on stderr. */
bool checkpoint_can_be_saved(const char *path);
/* Waits for the weights. The file is the old one or the new one, whatever happens. False with the error in the thread's slot. */
bool checkpoint_save(const transformer *net, const struct text *text, int64_t step, double loss,
                     const char *path);
/* Puts the weights of the file into the network. False with the error in the slot, or said on stderr where the file is of another
 * text. */
bool checkpoint_load(transformer *net, const struct text *text, const char *path);

#endif
