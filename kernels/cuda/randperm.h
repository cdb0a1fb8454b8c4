/* randperm on CUDA devices: what the kernels get (randperm.cu, randperm.c). Plain C.
 *
 * The shuffle of the CPU exchanges element i with element drawn[i] <= i, for i from the last one down. What is drawn depends on i alone, and so does the result:
 * - Element i has its last value after its exchange: what place drawn[i] held before.
 * - Before the exchange of t, place p holds p, unless an exchange k > t has put something there: the least such k with drawn[k] = p. That was what place k held
 *   before the exchange of k.
 * So a thread follows k from exchange to exchange, of which there are log(count) at most in the mean, and waits for no other. The exchanges that put something into a
 * place are a list, in any order; few places have more than some. */
#ifndef EDDY_KERNELS_CUDA_RANDPERM_H
#define EDDY_KERNELS_CUDA_RANDPERM_H

#include <kernels/cuda/parameters.h>

/* eddy_randperm_link draws, and makes the lists of places without any. eddy_randperm_follow_<bits> writes the output, of so many bits. */
#define EDDY_CUDA_RANDPERM_FOLLOWS(row) row(32) row(64)

typedef struct eddy_cuda_shuffle {
    eddy_cuda_gate gate;
    uint64_t seed, counter;
    int64_t count;
    int64_t *drawn; /* of each exchange; that of element 0 is with itself */
    int64_t *heads; /* of each place: an exchange of its list; -1: there is none */
    int64_t *links; /* of each exchange: the next one of its list, or -1 */
    void *out;
    int64_t stride; /* in bytes */
} eddy_cuda_shuffle;

#endif
