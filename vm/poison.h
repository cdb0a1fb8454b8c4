/* What a late error leaves in a storage: which instruction failed first, and what became of the contents. */
#ifndef EDDY_VM_POISON_H
#define EDDY_VM_POISON_H

#include <stdint.h>

typedef enum eddy_poison_state {
    EDDY_POISON_NONE,
    EDDY_POISON_LOST, /* contents undefined: the instruction that makes them did not run, or failed */
    EDDY_POISON_SKIPPED, /* contents as before a write in place that did not run */
    EDDY_POISON_TORN,    /* a write in place failed half-way */
} eddy_poison_state;

/* Sequence number of the root in the upper bits, eddy_poison_state in the lower two; 0 is healthy. */
typedef uint64_t eddy_poison;

static inline eddy_poison eddy_poison_make(uint64_t sequence, eddy_poison_state state) {
    return sequence << 2 | (uint64_t)state;
}

static inline uint64_t eddy_poison_sequence(eddy_poison poison) {
    return poison >> 2;
}

static inline eddy_poison_state eddy_poison_state_of(eddy_poison poison) {
    return (eddy_poison_state)(poison & 3);
}

/* The one with the lower root; healthy ones count for nothing. */
static inline eddy_poison eddy_poison_lowest(eddy_poison a, eddy_poison b) {
    if (a == 0 || b == 0)
        return a | b;
    return eddy_poison_sequence(b) < eddy_poison_sequence(a) ? b : a;
}

/* A storage that held `before` after a write that did not succeed because of the root: in_place is SKIPPED or TORN. A target
 * that was bad before stays as bad; blame goes to the lowest root. */
static inline eddy_poison eddy_poison_after_write(eddy_poison before, uint64_t root,
                                                  eddy_poison_state in_place) {
    if (before == 0)
        return eddy_poison_make(root, in_place);
    return root < eddy_poison_sequence(before)
               ? eddy_poison_make(root, eddy_poison_state_of(before))
               : before;
}

#endif
