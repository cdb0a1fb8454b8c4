#include <interpreter/host/file.h>

#include <base/atomic.h>
#include <base/dtype.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <eddy/grad.h>
#include <eddy/host.h>
#include <eddy/view.h>
#include <errno.h>
#include <fcntl.h>
#include <interpreter/call/recorder.h>
#include <interpreter/host/host.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES_MAX 1000
/* So much of a name stands in that of the file beside it: file systems have 255 bytes for one. */
#define BESIDE_NAME_MAX 200

/* So much of a path stands in a message, its end: the reason has to have room. */
#define PATH_SHOWN_MAX 200

eddy_status eddy_file_fail(const eddy_file *file, eddy_status status, const char *format, ...) {
    char sentence[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    size_t bytes = strlen(file->path);
    bool is_cut = bytes > PATH_SHOWN_MAX;
    const char *path = file->path + (is_cut ? bytes - PATH_SHOWN_MAX : 0),
               *before = is_cut ? "..." : "";
    if (file->part)
        return eddy_fail(status, file->origin, "%s%s: '%.64s': %s", before, path, file->part,
                         sentence);
    return eddy_fail(status, file->origin, "%s%s: %s", before, path, sentence);
}

eddy_status eddy_file_fail_system(const eddy_file *file) {
    char text[128];
    return eddy_file_fail(file, EDDY_IO, "%s", strerror_r(errno, text, sizeof(text)));
}

static bool has_path(eddy_file *file, const char *path, eddy_origin origin) {
    *file = (eddy_file){.origin = origin, .path = path};
    if (path && path[0])
        return true;
    eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no path");
    return false;
}

eddy_status eddy_file_read_begin(eddy_file *file, const char *path, eddy_origin origin) {
    if (!has_path(file, path, origin))
        return EDDY_INVALID_ARGUMENT;
    file->stream = fopen(path, "rbe");
    if (!file->stream)
        return eddy_file_fail_system(file);
    struct stat about;
    bool is_regular = fstat(fileno(file->stream), &about) == 0 && S_ISREG(about.st_mode);
    file->size = is_regular ? about.st_size : INT64_MAX;
    return EDDY_OK;
}

/* A new file beside the target: several processes may write the same target at once, and a crash may have left a file. */
static FILE *open_beside(eddy_file *file, mode_t mode) {
    static _Atomic uint32_t number; /* atomic: relaxed; names differ within the process */
    const char *slash = strrchr(file->path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - file->path) : 0;
    int kept = (int)(folder + strnlen(file->path + folder, BESIDE_NAME_MAX));
    int descriptor = -1;
    for (int i = 0; i < TRIES_MAX && descriptor < 0; i++) {
        uint32_t own = eddy_add_relaxed(&number, 1u);
        snprintf(file->beside, file->beside_bytes, "%.*s.%ld-%u.part", kept, file->path,
                 (long)getpid(), own);
        descriptor = open(file->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor < 0 && errno != EEXIST)
            return NULL;
    }
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!stream && descriptor >= 0) {
        close(descriptor);
        unlink(file->beside);
    }
    return stream;
}

eddy_status eddy_file_write_begin(eddy_file *file, const char *path, int64_t deadline,
                                  eddy_origin origin) {
    if (!has_path(file, path, origin))
        return EDDY_INVALID_ARGUMENT;
    file->deadline = deadline;
    struct stat about;
    bool is_there = stat(path, &about) == 0;
    if (is_there && !S_ISREG(about.st_mode))
        return eddy_file_fail(file, EDDY_IO, "%s stands there, which is not replaced",
                              S_ISDIR(about.st_mode) ? "a folder" : "a device, a pipe or the like");
    file->beside_bytes = strlen(path) + 48;
    file->beside = eddy_memory_acquire(file->beside_bytes, EDDY_MEMORY_TEXT);
    if (!file->beside)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    /* Who may read the old file may read the new one, and nobody else. */
    file->stream = open_beside(file, is_there ? about.st_mode & 0777 : 0666);
    if (file->stream) {
        if (is_there)
            (void)!fchmod(fileno(file->stream), about.st_mode & 0777);
        return EDDY_OK;
    }
    eddy_status status = eddy_file_fail_system(file);
    eddy_memory_release(file->beside, file->beside_bytes, EDDY_MEMORY_TEXT);
    return status;
}

eddy_status eddy_file_end(eddy_file *file, eddy_status status) {
    file->part = NULL;
    if (!file->beside) {
        fclose(file->stream);
        return status;
    }
    /* Synced before the rename: else a machine that crashes might keep the name and lose the bytes. */
    if (status == EDDY_OK && (fflush(file->stream) != 0 || fsync(fileno(file->stream)) != 0))
        status = eddy_file_fail_system(file);
    bool is_closed = fclose(file->stream) == 0;
    if (status == EDDY_OK && (!is_closed || rename(file->beside, file->path) != 0))
        status = eddy_file_fail_system(file);
    if (status != EDDY_OK)
        unlink(file->beside);
    eddy_memory_release(file->beside, file->beside_bytes, EDDY_MEMORY_TEXT);
    return status;
}

eddy_status eddy_file_read(eddy_file *file, void *bytes, size_t count) {
    if (count > (uint64_t)(file->size - file->at))
        return eddy_file_fail(file, EDDY_IO, "the file ends too early");
    file->at += (int64_t)count;
    if (file->read)
        return file->read(file, bytes, count);
    if (fread(bytes, 1, count, file->stream) == count)
        return EDDY_OK;
    return ferror(file->stream) ? eddy_file_fail_system(file)
                                : eddy_file_fail(file, EDDY_IO, "the file ends too early");
}

eddy_status eddy_file_write(eddy_file *file, const void *bytes, size_t count) {
    if (file->write)
        return file->write(file, bytes, count);
    return fwrite(bytes, 1, count, file->stream) == count ? EDDY_OK : eddy_file_fail_system(file);
}

eddy_status eddy_file_seek(eddy_file *file, int64_t offset) {
    if (fseeko(file->stream, offset, SEEK_SET) != 0)
        return eddy_file_fail_system(file);
    file->at = offset;
    return EDDY_OK;
}

/* ---- elements ---- */

static eddy_status write_elements(eddy_file *file, eddy_tensor *tensor) {
    eddy_no_grad_begin();
    eddy_tensor *whole = eddy_contiguous(tensor);
    eddy_no_grad_end();
    if (!whole)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory to put the elements in a row");
    eddy_status status = eddy_host_wait(whole, file->deadline, file->origin);
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    const void *data =
        status == EDDY_OK ? eddy_map(whole, EDDY_READ, eddy_clock_left(file->deadline)) : NULL;
    eddy_outcome_end(&outcome);
    if (data) {
        status = eddy_file_write(
            file, data, (size_t)eddy_count_of(whole) * eddy_dtype_bytes(eddy_dtype_of(whole)));
        eddy_status unmapped = eddy_unmap(whole);
        status = status == EDDY_OK ? unmapped : status;
    } else if (status == EDDY_OK) {
        status = eddy_outcome_why(&outcome);
    }
    eddy_release(&whole);
    return status;
}

eddy_status eddy_file_write_elements(eddy_file *file, eddy_tensor *tensor) {
    eddy_status status = eddy_host_wait(tensor, file->deadline, file->origin);
    if (status != EDDY_OK)
        return status;
    eddy_caller *caller = eddy_caller_get();
    eddy_recorder_read_other(caller, tensor, file->origin); /* an effect, which no replay has */
    eddy_recorder *recorder = eddy_recorder_set_aside(caller);
    status = write_elements(file, tensor);
    eddy_recorder_go_on(caller, recorder);
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

eddy_tensor *eddy_file_read_elements(eddy_file *file, const eddy_shape *shape, eddy_dtype dtype,
                                     bool swapped) {
    size_t width = eddy_dtype_bytes(dtype), bytes = width;
    for (int32_t d = 0; d < shape->rank; d++)
        if (__builtin_mul_overflow(bytes, (size_t)shape->dims[d], &bytes) ||
            bytes > (size_t)INT64_MAX / 2) {
            eddy_file_fail(file, EDDY_SIZE_OVERFLOW, "more elements than fit into memory");
            return NULL;
        }
    if (bytes > (uint64_t)(file->size - file->at)) {
        eddy_file_fail(file, EDDY_IO, "the file ends too early");
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
            block->elements[i] = block->elements[i] != 0; /* a bool is 0 or 1 */
        tensor = eddy_from_buffer(block->elements, *shape, dtype, free_loaded, block, NULL);
    }
    if (!tensor)
        free_loaded(block);
    return tensor;
}
