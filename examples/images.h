/* Labelled images as tensors. */
#ifndef EXAMPLES_IMAGES_H
#define EXAMPLES_IMAGES_H

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stddef.h>

struct images {
    int64_t count;
    eddy_tensor *pixels; /* u8[count, 784] */
    eddy_tensor *labels; /* i64[count] */
};

/* Reads FOLDER/PREFIX-images-idx3-ubyte.gz and FOLDER/PREFIX-labels-idx1-ubyte.gz. On failure returns false with one
 * sentence in `complaint`, *result untouched. */
bool images_read(const char *folder, const char *prefix, struct images *result, char *complaint,
                 size_t complaint_size);
/* A zeroed struct is allowed. */
void images_free(struct images *images);

#endif
