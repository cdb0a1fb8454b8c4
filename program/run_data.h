/* Elements of the caller's that a run is given for an input (eddy_data_feed): copied before the run is made. */
#ifndef EDDY_PROGRAM_RUN_DATA_H
#define EDDY_PROGRAM_RUN_DATA_H

#include <program/program.h>

/* A new tensor with the layout of the input and the elements of `feed`, a reference of the caller's, in no scope. INVALID_ARGUMENT,
 * DTYPE_MISMATCH, SHAPE_MISMATCH, SIZE_OVERFLOW, UNSUPPORTED, OUT_OF_MEMORY, SHUT_DOWN, FORKED, recorded. */
EDDY_MUST_USE eddy_status eddy_run_data_copy(const eddy_program *program,
                                             const eddy_program_binding *input,
                                             const eddy_data_feed *feed, eddy_origin origin,
                                             eddy_tensor **copy);

#endif
