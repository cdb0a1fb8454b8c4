#include <program/path.h>

#include <base/memory.h>
#include <string.h>

eddy_path *eddy_path_create(const void *recorded, uint32_t bytes) {
    eddy_path *path = eddy_memory_acquire_zeroed(sizeof(*path), EDDY_MEMORY_PROGRAM);
    if (!path)
        return NULL;
    eddy_store_relaxed(&path->references, 1u);
    path->bytes = bytes;
    memcpy(path->recorded, recorded, bytes);
    return path;
}

eddy_path *eddy_path_retain(eddy_path *path) {
    eddy_add_relaxed(&path->references, 1u);
    return path;
}

void eddy_path_release(eddy_path *path) {
    if (path && eddy_sub_acq_rel(&path->references, 1u) == 1)
        eddy_memory_release(path, sizeof(*path), EDDY_MEMORY_PROGRAM);
}

/* The place of element i, in the order of the dims. */
static int64_t place_of(const eddy_layout *layout, int64_t i) {
    int64_t place = 0;
    for (int32_t d = layout->rank; d-- > 0; i /= layout->dims[d])
        place += i % layout->dims[d] * layout->strides[d];
    return place;
}

bool eddy_path_pass(eddy_path *path, const void *first, const eddy_layout *layout,
                    int64_t element_bytes) {
    uint32_t begin = path->seen;
    int64_t count = 1;
    for (int32_t d = 0; d < layout->rank; d++)
        count *= layout->dims[d];
    for (int64_t i = 0; i < count; i++, path->seen += (uint32_t)element_bytes)
        memcpy(path->values + path->seen, (const char *)first + place_of(layout, i) * element_bytes,
               (size_t)element_bytes);
    return memcmp(path->values + begin, path->recorded + begin, path->seen - begin) == 0;
}
