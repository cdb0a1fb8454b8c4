#include "idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Far above every real file: a damaged header must not cause an allocation of terabytes. */
#define BYTES_MAX ((int64_t)1 << 30)

#define UNSIGNED_BYTES 0x08

/* Why the last gzread returned fewer bytes than requested. */
static const char *reason(gzFile file) {
    int code;
    gzerror(file, &code);
    if (code == Z_ERRNO)
        return strerror(errno);
    return code == Z_OK || code == Z_BUF_ERROR ? "the file ends too early"
                                               : "its compressed data is damaged";
}

/* Reads the elements, which must be the rest of the file. Requests one byte more than there should be, since zlib verifies the
 * checksum at the end, and notices a file cut off within it, only when it is read past the last element. */
static const char *read_rest(gzFile file, unsigned char *target, int64_t count) {
    int bytes = gzread(file, target, (unsigned)count + 1), code;
    if (bytes < count)
        return reason(file);
    gzerror(file, &code);
    if (code != Z_OK)
        return reason(file);
    return bytes > count ? "it is longer than its header says" : NULL;
}

static int64_t big_endian(const unsigned char *bytes) {
    return (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 |
           (int64_t)bytes[3];
}

/* Reads header and elements. Returns NULL, or a text of what is wrong. The caller owns array->bytes in both cases. */
static const char *read_array(gzFile file, int rank, idx_array *array) {
    unsigned char header[4 + 4 * IDX_RANK_MAX];
    if (gzread(file, header, 4) < 4)
        return reason(file);
    if (header[0] || header[1] || header[2] != UNSIGNED_BYTES || header[3] != rank)
        return rank == 1 ? "it is no IDX file of labels" : "it is no IDX file of images";
    if (gzread(file, header + 4, 4 * (unsigned)rank) < 4 * rank)
        return reason(file);
    array->rank = rank;
    int64_t count = 1;
    for (int d = 0; d < rank; d++) {
        array->dims[d] = big_endian(header + 4 + 4 * d);
        if (array->dims[d] < 1 || array->dims[d] > BYTES_MAX / count)
            return "its header has impossible sizes";
        count *= array->dims[d];
    }
    array->bytes = malloc((size_t)count + 1);
    if (!array->bytes)
        return "not enough memory";
    return read_rest(file, array->bytes, count);
}

int idx_read(const char *folder, const char *name, int rank, idx_array *array, char *complaint,
             size_t complaint_size) {
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        snprintf(complaint, complaint_size, "cannot read %s: the folder's name is too long", name);
        return -1;
    }
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file) {
        snprintf(complaint, complaint_size, "cannot read %s: %s", path,
                 errno ? strerror(errno) : "not enough memory");
        return -1;
    }
    idx_array made = {0};
    const char *wrong = read_array(file, rank, &made);
    if (wrong) {
        snprintf(complaint, complaint_size, "cannot read %s: %s", path, wrong);
        idx_free(&made);
    }
    gzclose_r(file);
    if (wrong)
        return -1;
    *array = made;
    return 0;
}

void idx_free(idx_array *array) {
    free(array->bytes);
    *array = (idx_array){0};
}
