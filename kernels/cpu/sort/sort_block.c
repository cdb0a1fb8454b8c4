/* Batcher's merge exchange for any number of elements: algorithm M of Knuth, "The Art of Computer Programming", 5.2.2. The
 * sequence of comparisons does not depend on the elements, so lines are sorted side by side. */
#include <kernels/cpu/lanes.h>
#include <kernels/cpu/sort/sort_block.h>
#include <kernels/float_key.h>
#include <stdbool.h>

/* Puts the smaller of each two numbers first. The two are `apart` numbers apart, and `apart` is at least `count`. */
static void exchange(int64_t *numbers, int64_t apart, int64_t count) {
    int64_t *restrict first = numbers, *restrict second = numbers + apart * EDDY_SORT_LANES;
    for (int64_t i = 0; i < count * EDDY_SORT_LANES; i++) {
        int64_t a = first[i], b = second[i];
        first[i] = a < b ? a : b;
        second[i] = a < b ? b : a;
    }
}

/* Exchanges numbers i and i + apart for all i in which bit `run` is set (or is not set). */
static void exchange_runs(int64_t *numbers, int64_t count, int64_t run, int64_t apart,
                          bool is_set) {
    for (int64_t i = is_set ? run : 0; i + apart < count; i += 2 * run) {
        int64_t left = count - apart - i;
        exchange(numbers + i * EDDY_SORT_LANES, apart, left < run ? left : run);
    }
}

static void lines(int64_t *numbers, int64_t count) {
    int64_t top = 1;
    while (2 * top < count)
        top *= 2;
    for (int64_t run = top; run > 0; run /= 2) {
        exchange_runs(numbers, count, run, run, false);
        for (int64_t q = top; q > run; q /= 2)
            exchange_runs(numbers, count, run, q - run, true);
    }
}

/* Numbers that are inserted into the list together. */
#define STEP 4

/* Puts the smaller of two numbers first. */
#define EXCHANGE(first, second)                                                                    \
    EDDY_LANES (l, EDDY_SORT_LANES) {                                                              \
        int64_t a_ = first[l], b_ = second[l];                                                     \
        first[l] = a_ < b_ ? a_ : b_;                                                              \
        second[l] = a_ < b_ ? b_ : a_;                                                             \
    }

/* Each number passes along the list of the numbers kept, and is exchanged with larger ones. STEP separate arrays stay in
 * registers. */
static void least(int64_t *list, int64_t kept, const int64_t *numbers, int64_t count) {
    int64_t first[EDDY_SORT_LANES], second[EDDY_SORT_LANES], third[EDDY_SORT_LANES],
        fourth[EDDY_SORT_LANES];
    for (int64_t i = 0; i < kept * EDDY_SORT_LANES; i++)
        list[i] = INT64_MAX;
    for (int64_t i = 0; i < count; i += STEP) {
        const int64_t *from = numbers + i * EDDY_SORT_LANES;
        EDDY_LANES (l, EDDY_SORT_LANES) {
            first[l] = from[l];
            second[l] = i + 1 < count ? from[EDDY_SORT_LANES + l] : INT64_MAX;
            third[l] = i + 2 < count ? from[2 * EDDY_SORT_LANES + l] : INT64_MAX;
            fourth[l] = i + 3 < count ? from[3 * EDDY_SORT_LANES + l] : INT64_MAX;
        }
        for (int64_t k = 0; k < kept; k++) {
            int64_t there[EDDY_SORT_LANES];
            EDDY_LANES (l, EDDY_SORT_LANES)
                there[l] = list[k * EDDY_SORT_LANES + l];
            EXCHANGE(there, first)
            EXCHANGE(there, second)
            EXCHANGE(there, third)
            EXCHANGE(there, fourth)
            EDDY_LANES (l, EDDY_SORT_LANES)
                list[k * EDDY_SORT_LANES + l] = there[l];
        }
    }
}

static void keys_f32(uint32_t *keys, const void *elements, int64_t count) {
    const uint32_t *x = elements;
    for (int64_t i = 0; i < count; i++)
        keys[i] = EDDY_F32_KEY(x[i]);
}

static void join(int64_t *restrict numbers, const uint32_t *restrict keys, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        EDDY_LANES (l, EDDY_SORT_LANES)
            numbers[i * EDDY_SORT_LANES + l] =
                (int64_t)(((uint64_t)keys[l * count + i] << 32 | (uint64_t)i) ^ EDDY_SORT_TURNED);
}

const eddy_sort_blocks EDDY_ISA_NAME(eddy_cpu_sort_blocks) = {lines, least, keys_f32, join};
