/* Files, written as a whole or not at all, and read with messages about their errors.
 *
 * A file is written under another name in the same folder, synced to the disk, and then renamed in one step: a reader, also one
 * after a crash, finds the old file or the new one. */
#ifndef EDDY_INTERPRETER_HOST_FILE_H
#define EDDY_INTERPRETER_HOST_FILE_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/tensor.h>
#include <stdint.h>
#include <stdio.h>

typedef struct eddy_file {
    eddy_origin origin;
    int64_t deadline; /* writing: the deadline of waits for elements */
    const char *path;
    const char *part; /* the tensor of the file being read or written, for errors; or NULL */
    FILE *stream;
    char *beside; /* the name it is written under until it is complete; NULL when reading */
    size_t beside_bytes;
    int64_t size,
        at; /* reading: bytes in all (INT64_MAX if not known) and bytes read, to check the sizes that the file states */
    /* The compressor of a format's parts; NULL: the stream holds them uncompressed. */
    void *packer;
    eddy_status (*read)(struct eddy_file *file, void *bytes, size_t count);
    eddy_status (*write)(struct eddy_file *file, const void *bytes, size_t count);
} eddy_file;

EDDY_MUST_USE eddy_status eddy_file_read_begin(eddy_file *file, const char *path,
                                               eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_file_write_begin(eddy_file *file, const char *path, int64_t deadline,
                                                eddy_origin origin);
/* Ends reading or writing. A written file is renamed if status is OK, else removed. Returns the status, or that of a failure here. */
EDDY_MUST_USE eddy_status eddy_file_end(eddy_file *file, eddy_status status);

/* All bytes, or IO. */
EDDY_MUST_USE eddy_status eddy_file_read(eddy_file *file, void *bytes, size_t count);
EDDY_MUST_USE eddy_status eddy_file_write(eddy_file *file, const void *bytes, size_t count);
/* Continues reading at `offset`. */
EDDY_MUST_USE eddy_status eddy_file_seek(eddy_file *file, int64_t offset);

/* Fails with "OP: PATH: sentence", or "OP: PATH: 'PART': sentence". */
eddy_status eddy_file_fail(const eddy_file *file, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);
/* Fails with the system's message for errno. */
eddy_status eddy_file_fail_system(const eddy_file *file);

/* Writes the tensor's elements, row-major. Blocks until they are computed. */
EDDY_MUST_USE eddy_status eddy_file_write_elements(eddy_file *file, eddy_tensor *tensor);
/* A new tensor of the next elements of the file, read straight to its memory; `swapped` reverses the bytes of each. NULL with the
 * error recorded. */
eddy_tensor *eddy_file_read_elements(eddy_file *file, const eddy_shape *shape, eddy_dtype dtype,
                                     bool swapped);

#endif
