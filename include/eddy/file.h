/* Tensors in files.
 *
 * .npy is numpy's format for one array (NEP 1, versions 1 to 3 are read, 1 is written). Saving blocks until the elements are there
 * and returns what went wrong earlier; a file is complete or not there: it is written beside its place and then renamed.
 * Any thread, but no callback. Errors besides those of reading a tensor: IO (with the path and what the system or the file has to
 * say), UNSUPPORTED (bf16, which the format does not know; an element type that Eddy does not have), OUT_OF_MEMORY. */
#ifndef EDDY_FILE_H
#define EDDY_FILE_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

EDDY_API eddy_status eddy_save_npy(eddy_tensor *tensor, const char *path);

/* A new contiguous tensor with the array's elements; arrays in Fortran order and of the other byte order are turned round. Reads the
 * file before it returns. */
EDDY_API eddy_tensor *eddy_load_npy(const char *path);

#ifdef __cplusplus
}
#endif

#endif
