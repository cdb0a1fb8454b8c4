#include <kernels/cpu/random/random_block.h>
#include <kernels/random.h>

#define COUNT EDDY_RANDOM_BLOCKS

/* The words of COUNT blocks, grouped by word. */
typedef struct words {
    uint32_t word[4][COUNT];
} words;

static inline void philox_blocks(words *w, uint64_t seed, uint64_t counter, uint64_t block) {
    for (int i = 0; i < COUNT; i++) {
        uint64_t number = block + (uint64_t)i;
        w->word[0][i] = (uint32_t)number;
        w->word[1][i] = (uint32_t)(number >> 32);
        w->word[2][i] = (uint32_t)counter;
        w->word[3][i] = (uint32_t)(counter >> 32);
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < EDDY_PHILOX_ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            eddy_philox_round(&w->word[0][i], &w->word[1][i], &w->word[2][i], &w->word[3][i], k0,
                              k1);
        k0 += EDDY_PHILOX_W0;
        k1 += EDDY_PHILOX_W1;
    }
}

static void philox_words(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = w.word[k][i];
}

static void uniform_f32(float *out, int bits, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = eddy_random_uniform_f32(w.word[k][i], bits);
}

static void uniform_f64(double *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++) {
        out[2 * i] = eddy_random_uniform_f64(w.word[0][i], w.word[1][i]);
        out[2 * i + 1] = eddy_random_uniform_f64(w.word[2][i], w.word[3][i]);
    }
}

static void normal_f32(float *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++)
            eddy_random_normal_f32(w.word[2 * k][i], w.word[2 * k + 1][i], &out[4 * i + 2 * k],
                                   &out[4 * i + 2 * k + 1]);
}

static void normal_f64(double *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        eddy_random_normal_f64(w.word[0][i], w.word[1][i], w.word[2][i], w.word[3][i], &out[2 * i],
                               &out[2 * i + 1]);
}

/* The product of 64 bits and 32 bits has 96 bits: the upper 32 are the number, the lower 64 decide whether it has to be
 * drawn again. */
static bool below(int64_t *out, int64_t low, uint32_t bound, uint32_t least, uint64_t seed,
                  uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    uint64_t again = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t lower = (uint64_t)w.word[1][i] * bound;
        uint64_t upper = (uint64_t)w.word[0][i] * bound + (lower >> 32);
        again += (upper << 32 | (lower & UINT32_MAX)) < least ? 1 : 0;
        out[i] = (int64_t)((uint64_t)low + (upper >> 32));
    }
    return again == 0;
}

const eddy_random_blocks EDDY_ISA_NAME(eddy_cpu_random_blocks) = {
    philox_words, uniform_f32, uniform_f64, normal_f32, normal_f64, below};
