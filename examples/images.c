#include "images.h"

#include "idx.h"
#include "network.h"

#include <stdio.h>

#define SIDE 28

static bool read_arrays(const char *folder, const char *prefix, idx_array *pixels,
                        idx_array *labels, char *complaint, size_t complaint_size) {
    char name[64];
    snprintf(name, sizeof(name), "%s-images-idx3-ubyte.gz", prefix);
    if (idx_read(folder, name, 3, pixels, complaint, complaint_size))
        return false;
    if (pixels->dims[1] != SIDE || pixels->dims[2] != SIDE) {
        snprintf(complaint, complaint_size,
                 "cannot use %s/%s: its images are %lld x %lld pixels, not %d x %d", folder, name,
                 (long long)pixels->dims[1], (long long)pixels->dims[2], SIDE, SIDE);
        return false;
    }
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte.gz", prefix);
    if (idx_read(folder, name, 1, labels, complaint, complaint_size))
        return false;
    if (labels->dims[0] != pixels->dims[0]) {
        snprintf(complaint, complaint_size, "cannot use %s/%s: it has %lld labels for %lld images",
                 folder, name, (long long)labels->dims[0], (long long)pixels->dims[0]);
        return false;
    }
    return true;
}

bool images_read(const char *folder, const char *prefix, struct images *result, char *complaint,
                 size_t complaint_size) {
    idx_array pixels = {0}, labels = {0};
    struct images made = {0};
    bool is_read = read_arrays(folder, prefix, &pixels, &labels, complaint, complaint_size);
    if (is_read) {
        made.count = pixels.dims[0];
        made.pixels =
            eddy_from_data(pixels.bytes, EDDY_SHAPE(made.count, NETWORK_INPUTS), EDDY_U8, NULL);
        eddy_tensor *bytes = eddy_from_data(labels.bytes, EDDY_SHAPE(made.count), EDDY_U8, NULL);
        made.labels = eddy_cast(bytes, EDDY_I64);
        eddy_release(&bytes);
        is_read = made.pixels && made.labels;
        if (!is_read) {
            eddy_error error = {0};
            eddy_status status = eddy_error_take(&error);
            snprintf(complaint, complaint_size, "%s: %s", eddy_status_text(status), error.message);
            images_free(&made);
        }
    }
    idx_free(&pixels);
    idx_free(&labels);
    if (is_read)
        *result = made;
    return is_read;
}

void images_free(struct images *images) {
    eddy_release(&images->pixels);
    eddy_release(&images->labels);
}
