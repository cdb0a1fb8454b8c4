/* Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
 * counter-based generator. Four 32-bit words for each (seed, op counter, block number): nothing is stored, so any slice of
 * a tensor can be made on its own, on any device, with the same bits. Plain C, also for CUDA sources. */
#ifndef EDDY_KERNELS_PHILOX_H
#define EDDY_KERNELS_PHILOX_H

#include <base/builtin.h>

#define EDDY_PHILOX_ROUNDS 10
#define EDDY_PHILOX_M0 0xd2511f53u
#define EDDY_PHILOX_M1 0xcd9e8d57u
#define EDDY_PHILOX_W0 0x9e3779b9u
#define EDDY_PHILOX_W1 0xbb67ae85u

/* One round on the four counter words with the round's key. */
EDDY_SCALAR void eddy_philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3,
                                   uint32_t k0, uint32_t k1) {
    uint64_t p0 = (uint64_t)EDDY_PHILOX_M0 * *c0, p1 = (uint64_t)EDDY_PHILOX_M1 * *c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ *c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ *c3 ^ k1;
    *c1 = (uint32_t)p1;
    *c3 = (uint32_t)p0;
    *c0 = n0;
    *c2 = n2;
}

/* The words of block `block` of op number `counter` of the generator `seed`. */
EDDY_SCALAR void eddy_philox(uint64_t seed, uint64_t counter, uint64_t block, uint32_t words[4]) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)counter, c3 = (uint32_t)(counter >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < EDDY_PHILOX_ROUNDS; round++) {
        eddy_philox_round(&c0, &c1, &c2, &c3, k0, k1);
        k0 += EDDY_PHILOX_W0;
        k1 += EDDY_PHILOX_W1;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

#endif
