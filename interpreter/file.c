#include <interpreter/file.h>

#include <base/atomic.h>
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/host.h>
#include <eddy/view.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE ".part"

eddy_status eddy_file_fail(const eddy_file *file, eddy_status status, const char *format, ...) {
    char sentence[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return eddy_fail(status, file->op, file->address, "%s: %s: %s", file->op, file->path, sentence);
}

static eddy_status fail_system(const eddy_file *file) {
    char text[128];
    return eddy_file_fail(file, EDDY_IO, "%s", strerror_r(errno, text, sizeof(text)));
}

static bool has_path(eddy_file *file, const char *path, const char *op, const void *address) {
    *file = (eddy_file){.op = op, .address = address, .path = path};
    if (path && path[0])
        return true;
    eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: no path", op);
    return false;
}

eddy_status eddy_file_read_begin(eddy_file *file, const char *path, const char *op, const void *address) {
    if (!has_path(file, path, op, address))
        return EDDY_INVALID_ARGUMENT;
    file->stream = fopen(path, "rbe");
    return file->stream ? EDDY_OK : fail_system(file);
}

eddy_status eddy_file_write_begin(eddy_file *file, const char *path, const char *op, const void *address) {
    if (!has_path(file, path, op, address))
        return EDDY_INVALID_ARGUMENT;
    size_t length = strlen(path);
    file->beside = eddy_memory_acquire(length + sizeof(BESIDE), EDDY_MEMORY_TEXT);
    if (!file->beside)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    memcpy(file->beside, path, length);
    memcpy(file->beside + length, BESIDE, sizeof(BESIDE));
    file->stream = fopen(file->beside, "wbe");
    if (file->stream)
        return EDDY_OK;
    eddy_status status = fail_system(file);
    eddy_memory_release(file->beside, length + sizeof(BESIDE), EDDY_MEMORY_TEXT);
    return status;
}

eddy_status eddy_file_end(eddy_file *file, eddy_status status) {
    bool is_closed = fclose(file->stream) == 0;
    if (!file->beside)
        return status;
    if (status == EDDY_OK && (!is_closed || rename(file->beside, file->path) != 0))
        status = fail_system(file);
    if (status != EDDY_OK)
        remove(file->beside);
    eddy_memory_release(file->beside, strlen(file->path) + sizeof(BESIDE), EDDY_MEMORY_TEXT);
    return status;
}

eddy_status eddy_file_read(eddy_file *file, void *bytes, size_t count) {
    if (fread(bytes, 1, count, file->stream) == count)
        return EDDY_OK;
    return ferror(file->stream) ? fail_system(file) : eddy_file_fail(file, EDDY_IO, "the file ends too early");
}

eddy_status eddy_file_write(eddy_file *file, const void *bytes, size_t count) {
    return fwrite(bytes, 1, count, file->stream) == count ? EDDY_OK : fail_system(file);
}

/* ---- elements ---- */

eddy_status eddy_file_write_elements(eddy_file *file, eddy_tensor *tensor) {
    eddy_tensor *whole = eddy_contiguous(tensor);
    const void *data = whole ? eddy_map(whole, EDDY_READ, EDDY_FOREVER) : NULL;
    eddy_error error;
    eddy_status status = data ? EDDY_OK : eddy_error_peek(&error) ? error.status : EDDY_INTERNAL;
    if (data) {
        status = eddy_file_write(file, data, (size_t)eddy_count(whole) * eddy_dtype_bytes(eddy_dtype_of(whole)));
        eddy_status unmapped = eddy_unmap(whole);
        status = status == EDDY_OK ? unmapped : status;
    }
    eddy_release(&whole);
    return status;
}

static void swap_bytes(unsigned char *bytes, size_t count, size_t width) {
    for (size_t i = 0; i < count; i += width)
        for (size_t k = 0; k < width / 2; k++) {
            unsigned char byte = bytes[i + k];
            bytes[i + k] = bytes[i + width - 1 - k];
            bytes[i + width - 1 - k] = byte;
        }
}

typedef struct loaded {
    size_t bytes; /* of the block */
    _Alignas(EDDY_CACHE_LINE) unsigned char elements[];
} loaded;

static void free_loaded(void *context) {
    loaded *block = context;
    eddy_memory_release(block, block->bytes, EDDY_MEMORY_TENSOR);
}

eddy_tensor *eddy_file_read_elements(eddy_file *file, const eddy_shape *shape, eddy_dtype dtype, bool swapped) {
    size_t width = eddy_dtype_bytes(dtype), bytes = width;
    for (int32_t d = 0; d < shape->rank; d++)
        if (__builtin_mul_overflow(bytes, (size_t)shape->dims[d], &bytes) || bytes > (size_t)INT64_MAX / 2) {
            eddy_file_fail(file, EDDY_SIZE_OVERFLOW, "more elements than fit into memory");
            return NULL;
        }
    loaded *block = eddy_memory_acquire(sizeof(*block) + bytes, EDDY_MEMORY_TENSOR);
    if (!block) {
        eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    block->bytes = sizeof(*block) + bytes;
    eddy_tensor *tensor = NULL;
    if (eddy_file_read(file, block->elements, bytes) == EDDY_OK) {
        if (swapped)
            swap_bytes(block->elements, bytes, width);
        for (size_t i = 0; dtype == EDDY_BOOL && i < bytes; i++)
            block->elements[i] = block->elements[i] != 0; /* others are no bool */
        tensor = eddy_from_buffer(block->elements, *shape, dtype, free_loaded, block, NULL);
    }
    if (!tensor)
        free_loaded(block);
    return tensor;
}
