#include <kernels/cpu/lanes.h>
#include <kernels/cpu/move/move_block.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#define VECTORS 4

typedef char vector __attribute__((vector_size(EDDY_VECTOR_BYTES), aligned(1), may_alias));

/* All loads of a step come before its stores: a load just after a store to the same offset of another page waits for that
 * store (4K aliasing). */
static void copy(void *target, const void *source, size_t bytes) {
    char *to = target;
    const char *from = source;
    size_t done = 0;
    for (; done + VECTORS * EDDY_VECTOR_BYTES <= bytes; done += VECTORS * EDDY_VECTOR_BYTES) {
        vector step[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            step[v] = *(const vector *)(from + done + v * EDDY_VECTOR_BYTES);
        for (int v = 0; v < VECTORS; v++)
            *(vector *)(to + done + v * EDDY_VECTOR_BYTES) = step[v];
    }
    memcpy(to + done, from + done, bytes - done);
}

/* Stores are aligned, since unaligned ones take twice as long. The first and the last vector are unaligned, and overlap
 * their neighbours. */
static void copy_short(void *target, const void *source, size_t bytes) {
    char *to = target;
    const char *from = source;
    if (bytes < EDDY_VECTOR_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    size_t last = bytes - EDDY_VECTOR_BYTES,
           done = EDDY_VECTOR_BYTES - (uintptr_t)to % EDDY_VECTOR_BYTES;
    vector end = *(const vector *)(from + last);
    *(vector *)to = *(const vector *)from;
    for (; done < last; done += EDDY_VECTOR_BYTES)
        *(vector *)(to + done) = *(const vector *)(from + done);
    *(vector *)(to + last) = end;
}

static void fill(void *target, const void *line, size_t bytes) {
    char *to = target;
    vector value = *(const vector *)line;
    size_t done = 0;
    for (; done + VECTORS * EDDY_VECTOR_BYTES <= bytes; done += VECTORS * EDDY_VECTOR_BYTES)
        for (int v = 0; v < VECTORS; v++)
            *(vector *)(to + done + v * EDDY_VECTOR_BYTES) = value;
    for (; done + EDDY_MOVE_LINE <= bytes; done += EDDY_MOVE_LINE)
        memcpy(to + done, line, EDDY_MOVE_LINE);
    memcpy(to + done, line, bytes - done);
}

/* Reverses as many elements as a register has. */
INLINE void reverse_lanes(size_t bytes, char *to, const char *from) {
    char lanes[EDDY_VECTOR_BYTES];
    const int count = EDDY_VECTOR_BYTES / (int)bytes;
    EDDY_LANES (l, count)
        memcpy(lanes + l * (int)bytes, from - l * (int)bytes, bytes);
    *(vector *)to = *(const vector *)lanes;
}

/* If fewer elements than a register has are left, the last full register overlaps the one before. */
INLINE void reverse(size_t bytes, char *to, const char *from, int64_t count) {
    int64_t size = (int64_t)bytes, wide = EDDY_VECTOR_BYTES / size, last = count - wide, done = 0;
    for (; done <= last; done += wide)
        reverse_lanes(bytes, to + done * size, from - done * size);
    if (done == count)
        return;
    if (done > 0)
        reverse_lanes(bytes, to + last * size, from - last * size);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * size, from - i * size, bytes);
}

static void reverse_32(void *target, const void *source, int64_t count) {
    reverse(4, target, source, count);
}

static void reverse_64(void *target, const void *source, int64_t count) {
    reverse(8, target, source, count);
}

const eddy_move_blocks EDDY_ISA_NAME(eddy_cpu_move_blocks) = {copy, copy_short, fill, reverse_32,
                                                              reverse_64};
