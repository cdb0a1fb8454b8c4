/* Files, written whole or not at all, and read with sentences about what is wrong.
 *
 * What is written goes to a name of its own beside the target, to the disk, and then to its place in one step: who reads, and who
 * comes after a crash, finds the old file or the new one. */
#ifndef EDDY_EXCHANGE_FILE_H
#define EDDY_EXCHANGE_FILE_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/tensor.h>
#include <stdint.h>
#include <stdio.h>

typedef struct eddy_file {
    eddy_origin origin;
    int64_t deadline; /* writing: until when elements are waited for */
    const char *path;
    const char *part; /* the tensor of the file that is at hand, for errors; or NULL */
    FILE *stream;
    char *beside; /* where it is written until it is whole; NULL when reading */
    size_t beside_bytes;
    int64_t size,
        at; /* reading: bytes in all (INT64_MAX where nobody knows) and read so far, for claims that cannot be true */
    /* What a format packs its parts with; NULL: they lie in the stream as they are. */
    void *packer;
    eddy_status (*read)(struct eddy_file *file, void *bytes, size_t count);
    eddy_status (*write)(struct eddy_file *file, const void *bytes, size_t count);
} eddy_file;

EDDY_MUST_USE eddy_status eddy_file_read_begin(eddy_file *file, const char *path,
                                               eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_file_write_begin(eddy_file *file, const char *path, int64_t deadline,
                                                eddy_origin origin);
/* Ends either. A written file takes its place where status is OK, else nothing is left; the status, or what ending failed with. */
EDDY_MUST_USE eddy_status eddy_file_end(eddy_file *file, eddy_status status);

/* All bytes, or IO. */
EDDY_MUST_USE eddy_status eddy_file_read(eddy_file *file, void *bytes, size_t count);
EDDY_MUST_USE eddy_status eddy_file_write(eddy_file *file, const void *bytes, size_t count);
/* Goes on reading there. */
EDDY_MUST_USE eddy_status eddy_file_seek(eddy_file *file, int64_t offset);

/* Fails with "OP: PATH: sentence", or "OP: PATH: 'PART': sentence". */
eddy_status eddy_file_fail(const eddy_file *file, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);
/* Fails with what the system says of errno. */
eddy_status eddy_file_fail_system(const eddy_file *file);

/* The tensor's elements, row-major. Blocks until they are there. */
EDDY_MUST_USE eddy_status eddy_file_write_elements(eddy_file *file, eddy_tensor *tensor);
/* A new tensor of the next elements of the file, read to where they stay; `swapped` turns the bytes of each round. NULL with the
 * error recorded. */
eddy_tensor *eddy_file_read_elements(eddy_file *file, const eddy_shape *shape, eddy_dtype dtype,
                                     bool swapped);

#endif
