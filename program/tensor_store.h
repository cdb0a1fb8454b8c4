/* What a run asks a store for (<eddy/tensor_store.h>). */
#ifndef EDDY_PROGRAM_TENSOR_STORE_H
#define EDDY_PROGRAM_TENSOR_STORE_H

#include <eddy/tensor_store.h>

/* The handle under a name, in the store or the nearest parent that has it, with a reference of the caller's; NULL, nothing recorded, if
 * there is none. */
eddy_tensor *eddy_tensor_store_take(eddy_tensor_store *store, const char *name);

#endif
