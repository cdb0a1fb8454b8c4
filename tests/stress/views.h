/* A random program at the public functions, in step with its oracle: tensors of every dtype, views that share a storage, ops on
 * them, in place and of mixed dtypes, copies, late shapes, lends. */
#ifndef EDDY_TESTS_VIEWS_H
#define EDDY_TESTS_VIEWS_H

#include "element.h"

#include <eddy/eddy.h>

#define VIEWS_CELLS 64
#define VIEWS_TENSORS 12

/* A storage as it should be. */
typedef struct expected_storage {
    eddy_dtype dtype;
    element cells[VIEWS_CELLS];
    int users;
} expected_storage;

/* A tensor: a rectangle of strides in a storage. Of rank 1 the first dim, of rank 0 both are 1. */
typedef struct expected_tensor {
    eddy_tensor *handle; /* NULL: free */
    expected_storage *storage;
    int64_t offset;
    int rank;
    int64_t dims[2], strides[2];
} expected_tensor;

/* One thread at a time; who hands it on synchronises. */
typedef struct views_run {
    uint64_t seed;
    uint64_t random; /* state */
    const char *path;
    expected_tensor tensors[VIEWS_TENSORS];
} views_run;

void views_begin(views_run *run, uint64_t seed, const char *path);
/* Draws a step, takes it, and compares what it shows; a difference is printed with the seed, then abort. */
void views_step(views_run *run, int step);
/* Compares and releases all that is left. */
void views_end(views_run *run, int step);

#endif
