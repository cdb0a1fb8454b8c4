/* What is called of NVIDIA's libraries: the entries of each are listed once, as rows of a symbol, a name in a table and parameters; dlsym fills the table. Nothing is linked. */
#ifndef EDDY_STREAMS_CUDA_LIBRARY_H
#define EDDY_STREAMS_CUDA_LIBRARY_H

#include <base/assert.h>
#include <eddy/status.h>
#include <stddef.h>

/* A row, as the loader reads it. */
typedef struct eddy_cuda_entry {
    const char *symbol;
    size_t offset; /* of the pointer in the table */
} eddy_cuda_entry;

/* Opens the library, for as long as the process lives, and fills the table. UNSUPPORTED, with a sentence in `why`: there is none, or it lacks an entry. Takes a second for the
 * largest. */
EDDY_MUST_USE eddy_status eddy_cuda_library_open(const char *library,
                                                 const eddy_cuda_entry *entries, size_t count,
                                                 void *table, char *why, size_t size);

#endif
