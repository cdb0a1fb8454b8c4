/* Batcher's merge exchange for any number of elements: algorithm M of Knuth, "The Art of Computer Programming", 5.2.2. Which
 * elements meet does not depend on them, so that lines go side by side. */
#include <kernels/cpu/sort_block.h>
#include <stdbool.h>

/* The lesser of two into the first. They lie `apart`, which is no less than `count`. */
static void exchange(int64_t *numbers, int64_t apart, int64_t count) {
    int64_t *restrict first = numbers, *restrict second = numbers + apart * EDDY_SORT_LANES;
    for (int64_t i = 0; i < count * EDDY_SORT_LANES; i++) {
        int64_t a = first[i], b = second[i];
        first[i] = a < b ? a : b;
        second[i] = a < b ? b : a;
    }
}

/* Exchanges numbers i and i + apart wherever bit `run` of i is set, or is not. */
static void exchange_runs(int64_t *numbers, int64_t count, int64_t run, int64_t apart, bool is_set) {
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

const eddy_sort_blocks EDDY_ISA_NAME(eddy_cpu_sort_blocks) = {lines};
