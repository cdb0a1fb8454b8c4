/* The speed of this machine beside the average processor that kernels estimate for (kernels/cost.h). A hand-over between threads is
 * measured where the program runs; estimates are compared with it, so they have to be this machine's too. No result depends
 * on them. */
#ifndef EDDY_INTERPRETER_CALL_SPEED_H
#define EDDY_INTERPRETER_CALL_SPEED_H

#include <base/atomic.h>
#include <stdint.h>

#define EDDY_SPEED_ONE 1024

/* atomic: relaxed; this machine's time for what takes the average processor EDDY_SPEED_ONE. */
extern _Atomic int64_t eddy_speed_factor;

/* Measures the factor, in some 20 us: once per process, before the first op, when the instruction set is chosen. */
void eddy_speed_measure(void);

/* An estimate for the average processor, at most EDDY_COST_MOST, as one for this machine. */
static inline int64_t eddy_speed_ps(int64_t average_ps) {
    return (int64_t)((uint64_t)average_ps * (uint64_t)eddy_load_relaxed(&eddy_speed_factor) /
                     EDDY_SPEED_ONE);
}

#endif
