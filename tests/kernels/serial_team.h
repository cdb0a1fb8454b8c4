/* Teams for kernel tests. All cut as the library's own team does: slices of `grain`, from 0 on. */
#ifndef EDDY_TESTS_KERNELS_SERIAL_TEAM_H
#define EDDY_TESTS_KERNELS_SERIAL_TEAM_H

#include <kernels/kernel.h>

/* Slices in order, on the calling thread. */
extern eddy_kernel_team serial_team;
/* Slices in a shuffled order, on the calling thread; says it has three threads. */
extern eddy_kernel_team shuffling_team;
/* Slices on four threads at once. */
extern eddy_kernel_team threaded_team;

#endif
