/* Files, written whole or not at all, and read with sentences about what is wrong. */
#ifndef EDDY_INTERPRETER_FILE_H
#define EDDY_INTERPRETER_FILE_H

#include <base/assert.h>
#include <eddy/tensor.h>
#include <stdint.h>
#include <stdio.h>

typedef struct eddy_file {
    const char *op; /* for errors */
    const void *address;
    const char *path;
    FILE *stream;
    char *beside; /* where it is written until it is whole; NULL when reading */
} eddy_file;

EDDY_MUST_USE eddy_status eddy_file_read_begin(eddy_file *file, const char *path, const char *op, const void *address);
EDDY_MUST_USE eddy_status eddy_file_write_begin(eddy_file *file, const char *path, const char *op, const void *address);
/* Ends either. A written file takes its place where status is OK, else nothing is left; the status, or what ending failed with. */
EDDY_MUST_USE eddy_status eddy_file_end(eddy_file *file, eddy_status status);

/* All bytes, or IO. */
EDDY_MUST_USE eddy_status eddy_file_read(eddy_file *file, void *bytes, size_t count);
EDDY_MUST_USE eddy_status eddy_file_write(eddy_file *file, const void *bytes, size_t count);

/* Fails with "OP: PATH: sentence". */
eddy_status eddy_file_fail(const eddy_file *file, eddy_status status, const char *format, ...) EDDY_PRINTF(3, 4);

/* The tensor's elements, row-major. Blocks until they are there. */
EDDY_MUST_USE eddy_status eddy_file_write_elements(eddy_file *file, eddy_tensor *tensor);
/* A new tensor of the next elements of the file, `swapped` turning the bytes of each round. NULL with the error recorded. */
eddy_tensor *eddy_file_read_elements(eddy_file *file, const eddy_shape *shape, eddy_dtype dtype, bool swapped);

#endif
