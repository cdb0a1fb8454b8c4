/* Graphs: kernels that a stream has captured, in its order; and those that were made of them to be launched. Nothing but kernels is captured here. */
#ifndef EDDY_TESTS_FAKE_CUDA_GRAPH_H
#define EDDY_TESTS_FAKE_CUDA_GRAPH_H

#include <tests/fake_cuda/stream.h>

/* Lock: the fake's. */
typedef struct fake_graph {
    fake_device *device; /* NULL: the place is free */
    uint64_t generation;
    bool is_exec; /* it can be launched */
    bool is_open; /* a stream captures to it (capture.h) */
    fake_piece *first, **last;
    uint32_t count;
} fake_graph;

/* An empty one; NULL: there is no place. Lock. */
fake_graph *fake_graph_create(fake_device *device);
void fake_graph_free(fake_graph *graph);
void *fake_graph_handle(const fake_graph *graph);
/* Takes the piece of a kernel. Lock. */
void fake_graph_add(fake_graph *graph, fake_piece *piece);
/* Those of a context that ends. Lock. */
void fake_graph_drop(const fake_device *device);
/* That are there. Lock. */
int fake_graph_count(void);

#endif
