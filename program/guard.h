/* Guards: what a recorded function reads of its inputs and of tensors of its own, before anything is written to them. Calls in which these elements are the
 * same have one program.
 *
 * A guard is a view of an input, as it was given, or of a small tensor that was there before. Other inputs may be given later: their dims and strides are
 * those of the signature, so that the view lies within them. */
#ifndef EDDY_PROGRAM_GUARD_H
#define EDDY_PROGRAM_GUARD_H

#include <interpreter/handle/tensor.h>
#include <program/code.h>

/* So many bytes of elements decide at most. */
#define EDDY_GUARD_BYTES_MOST 256
/* Tensors of its own have at most so many bytes, storage and all, and are so many: a function that makes them anew each time holds no more of them. */
#define EDDY_GUARD_OWN_BYTES_MOST 4096
#define EDDY_GUARD_OWN_MOST 32

typedef struct eddy_guard {
    eddy_layout layout; /* its offset counts from the input's first element, or its own tensor's */
    uint32_t input;     /* EDDY_CODE_NONE: a tensor of its own */
    eddy_tensor *own;   /* a reference: its root; else NULL */
    uint8_t dtype;
    uint32_t bytes;
} eddy_guard;

/* Adds what is read to the guards, if it is not there. False: it is a part of inputs that share a storage, or lies without them, its own tensor is too large,
 * there are too many bytes, or no memory. */
EDDY_MUST_USE bool eddy_guard_add(eddy_code_array *guards, eddy_list inputs,
                                  const eddy_tensor *tensor);
/* Whether elements of the tensor are what its guard has read; true where it has none. */
bool eddy_guard_is_value(const eddy_code_array *guards, const void *values, eddy_list inputs,
                         const eddy_tensor *tensor, const void *elements);
/* Adds the guards of `from` that are not there. False without memory, or with too many bytes. */
EDDY_MUST_USE bool eddy_guard_add_all(eddy_code_array *guards, const eddy_code_array *from);
void eddy_guard_fini(eddy_code_array *guards);
bool eddy_guard_has_all(const eddy_code_array *guards, const eddy_code_array *of);

/* Reads the elements, in the order of the guards; waits for them. bytes: room for EDDY_GUARD_BYTES_MOST. *count: what was read. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_guard_read(const eddy_code_array *guards, eddy_list inputs,
                                          eddy_origin origin, void *bytes, size_t *count);

/* "input1", or "its own f32[2]". */
void eddy_guard_describe_source(const eddy_guard *guard, char *text, size_t size);
/* "input1 = 3, input2 = 0.5" as snprintf does. */
void eddy_guard_describe(const eddy_code_array *guards, const void *bytes, char *text, size_t size);

#endif
