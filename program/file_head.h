/* The head of a program's file: what lies where, and digests of it.
 *
 *   | head, 128 bytes | text | zeros to a multiple of 64 | tensor | zeros to a multiple of 64 | tensor | ... |
 *
 * All numbers are little-endian, as the elements of tensors are. Tensors are the storages of the states in the order of the text, then the captured
 * ones; their sizes are those that the text says. Nothing in the file is run, and it names no other file. */
#ifndef EDDY_PROGRAM_FILE_HEAD_H
#define EDDY_PROGRAM_FILE_HEAD_H

#include <base/hash.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_FILE_HEAD_BYTES 128
#define EDDY_FILE_HEAD_VERSION 1
#define EDDY_FILE_ALIGNMENT 64

typedef struct eddy_file_head {
    uint64_t file_bytes;
    uint64_t text_bytes;
    uint64_t data_at; /* of the first tensor */
    uint64_t tensor_count;
    eddy_digest text_digest; /* of all between the head and the first tensor */
    eddy_digest data_digest; /* of all behind it */
} eddy_file_head;

static inline uint64_t eddy_file_head_aligned(uint64_t bytes) {
    return (bytes + EDDY_FILE_ALIGNMENT - 1) / EDDY_FILE_ALIGNMENT * EDDY_FILE_ALIGNMENT;
}

void eddy_file_head_write(const eddy_file_head *head, unsigned char bytes[EDDY_FILE_HEAD_BYTES]);

/* What is wrong with the bytes, as a sentence; NULL where *head is filled in: its parts then lie within file_bytes, one after the other. */
const char *eddy_file_head_read(eddy_file_head *head,
                                const unsigned char bytes[EDDY_FILE_HEAD_BYTES]);

#endif
