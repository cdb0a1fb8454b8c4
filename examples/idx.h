/* Reads gzip-compressed IDX files, the format of MNIST and Fashion-MNIST: a magic number, sizes, unsigned bytes. */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H

#include <stddef.h>
#include <stdint.h>

#define IDX_RANK_MAX 3

typedef struct idx_array {
    int rank; /* 1: labels, 3: images */
    int64_t dims[IDX_RANK_MAX];
    unsigned char *bytes; /* row-major; owned */
} idx_array;

/* Reads the file FOLDER/NAME, which must hold an array of `rank` dims. Returns 0 and fills *array (to be freed with
 * idx_free); or -1 with one sentence in `complaint`, *array untouched. */
int idx_read(const char *folder, const char *name, int rank, idx_array *array, char *complaint,
             size_t complaint_size);

/* Frees the array of idx_read; a zeroed array is allowed. */
void idx_free(idx_array *array);

#endif
