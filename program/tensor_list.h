/* Lists of tensors in code: what each step of a loop leaves for later.
 *
 *   list_set(row, at, list)    writes row `at` of the list
 *   list_get(list, at)         gives it
 *
 * A list is a tensor of rank 2, a row a tensor of rank 1: all elements of a storage, whatever views say of it. `at` is computed, one i64. Neither
 * op can fail: what is no row of the list is not written, and gives zeros. They are ops of programs alone. */
#ifndef EDDY_PROGRAM_TENSOR_LIST_H
#define EDDY_PROGRAM_TENSOR_LIST_H

#include <interpreter/call/apply.h>

/* A tensor as a list of so many rows, which share its memory if it is row-major, else are a copy; all of it as a row; a row with the dims of `shape`. Each gives a
 * reference of a view. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_tensor_list_view(eddy_caller *caller, eddy_tensor *tensor,
                                                int64_t rows, eddy_origin origin,
                                                eddy_tensor **list);
EDDY_MUST_USE eddy_status eddy_tensor_list_flatten(eddy_caller *caller, eddy_tensor *tensor,
                                                   eddy_origin origin, eddy_tensor **row);
EDDY_MUST_USE eddy_status eddy_tensor_list_shape(eddy_caller *caller, eddy_tensor *row,
                                                 const eddy_shape *shape, eddy_origin origin,
                                                 eddy_tensor **shaped);

/* By name; NULL if it is none. */
const eddy_op *eddy_tensor_list_find(const char *name);

/* A list of so many rows of `count` elements on the device, with a reference; they are 0. */
EDDY_MUST_USE eddy_status eddy_tensor_list_make(eddy_caller *caller, eddy_device device,
                                                eddy_dtype dtype, int64_t count, int64_t rows,
                                                eddy_tensor **list);
EDDY_MUST_USE eddy_status eddy_tensor_list_set(eddy_caller *caller, eddy_tensor *row,
                                               eddy_tensor *at, eddy_tensor *list,
                                               const void *address);
/* *row: a reference. */
EDDY_MUST_USE eddy_status eddy_tensor_list_get(eddy_caller *caller, eddy_tensor *list,
                                               eddy_tensor *at, const void *address,
                                               eddy_tensor **row);

#endif
