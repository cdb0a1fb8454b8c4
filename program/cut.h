/* Code of several devices is cut where the device changes, and around each copy between them: what lies between two cuts is a partition
 * (partitions.h), which a run submits as an instruction of the VM of its own.
 *
 *   to_device(x) | matmul, relu, sum on far:0 | to_device(sum) | add on the CPU
 *
 * On a device that runs no code of the host each call is a partition, unless there are branches, loops or donated inputs: then its partitions are as on other devices, and
 * are launched in rounds (rounds.h).
 *
 * Before that the instructions are put into an order with few cuts. What they read and write stays in order, and so do those that may fail, since the first of these is to blame. Copies come as soon
 * as they can, then all that one device can do. Code with branches and loops keeps its order. Operands of an instruction are on one device, but for those of a copy. */
#ifndef EDDY_PROGRAM_CUT_H
#define EDDY_PROGRAM_CUT_H

#include <program/code.h>

/* A device that runs no code of the host: it has kernels of its own. */
static inline bool eddy_cut_has_own_kernels(eddy_device device) {
    return device.kind == EDDY_DEVICE_CUDA;
}

/* Whether each call of such a device is a partition, which a run submits as the call that it is. */
bool eddy_cut_is_by_call(const eddy_code *code);
/* Whether the instructions, but for calls behind a run (late_calls.h), are on several devices, or have calls that are partitions. */
bool eddy_cut_is_needed(const eddy_code *code);
/* Whether one is on a device with kernels of its own. */
bool eddy_cut_has_calls(const eddy_code *code);
/* Why such code cannot be run in partitions, as a sentence; "": it can, or needs no cuts. */
void eddy_cut_judge(const eddy_code *code, char *reason, size_t size);
/* Cuts that were made: marks that stand in the code, and are none of its calls. */
uint32_t eddy_cut_count(const eddy_code *code);
/* Orders and cuts code that needs it, once. False without memory. */
EDDY_MUST_USE bool eddy_cut_make(eddy_code *code);

#endif
