/* numpy's .npz: a zip archive of .npy files. minizip reads and writes zip, and inflates.
 *
 * Written as by numpy.savez: uncompressed, each array in NAME.npy. */
#include <eddy/file.h>

#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <errno.h>
#include <exchange/archive.h>
#include <exchange/npy.h>
#include <interpreter/handle/tensor.h>
#include <inttypes.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <stdlib.h>
#include <string.h>

#define ENDING ".npy"
#define ENDING_BYTES 4
#define NAME_MAX_BYTES 60000 /* a name and its extra fields share 65535 in the format */
#define CHUNK_BYTES ((size_t)1 << 30)
#define FLAG_ENCRYPTED 1
#define FLAG_UTF8 (1 << 11)
/* The earliest date of the format, as in numpy: the same tensors give the same bytes. */
#define FIRST_DAY                                                                                  \
    { .tm_mday = 1, .tm_year = 1980 }

/* ---- minizip's access to the stream ---- */

static voidpf open_stream(voidpf opaque, const void *path, int mode) {
    (void)path;
    (void)mode;
    return opaque;
}

static uLong read_stream(voidpf opaque, voidpf stream, void *bytes, uLong count) {
    (void)opaque;
    return fread(bytes, 1, count, stream);
}

static uLong write_stream(voidpf opaque, voidpf stream, const void *bytes, uLong count) {
    (void)opaque;
    return fwrite(bytes, 1, count, stream);
}

static ZPOS64_T tell_stream(voidpf opaque, voidpf stream) {
    (void)opaque;
    return (ZPOS64_T)ftello(stream);
}

static long seek_stream(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
    static const int origins[] = {[ZLIB_FILEFUNC_SEEK_SET] = SEEK_SET,
                                  [ZLIB_FILEFUNC_SEEK_CUR] = SEEK_CUR,
                                  [ZLIB_FILEFUNC_SEEK_END] = SEEK_END};
    (void)opaque;
    return fseeko(stream, (off_t)offset, origins[origin]);
}

/* The file owns the stream, which stays open. */
static int close_stream(voidpf opaque, voidpf stream) {
    (void)opaque;
    (void)stream;
    return 0;
}

static int error_of_stream(voidpf opaque, voidpf stream) {
    (void)opaque;
    return ferror((FILE *)stream);
}

static zlib_filefunc64_def functions_of(const eddy_file *file) {
    return (zlib_filefunc64_def){.zopen64_file = open_stream,
                                 .zread_file = read_stream,
                                 .zwrite_file = write_stream,
                                 .ztell64_file = tell_stream,
                                 .zseek64_file = seek_stream,
                                 .zclose_file = close_stream,
                                 .zerror_file = error_of_stream,
                                 .opaque = file->stream};
}

/* ---- out ---- */

static eddy_status fail_writing(const eddy_file *file) {
    return ferror(file->stream) ? eddy_file_fail_system(file)
                                : eddy_file_fail(file, EDDY_IO, "the archive cannot be written");
}

static eddy_status write_member(eddy_file *file, const void *bytes, size_t count) {
    const char *at = bytes;
    for (size_t chunk; count > 0; at += chunk, count -= chunk) {
        chunk = count < CHUNK_BYTES ? count : CHUNK_BYTES;
        if (zipWriteInFileInZip(file->packer, at, (unsigned)chunk) != ZIP_OK)
            return fail_writing(file);
    }
    return EDDY_OK;
}

static eddy_status write_named(eddy_file *file, eddy_tensor *tensor, const char *name) {
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MAX_BYTES)
        return eddy_file_fail(file, EDDY_INVALID_ARGUMENT, "a name of %zu bytes; 1 to %d fit",
                              length, NAME_MAX_BYTES);
    char *full = eddy_memory_acquire(length + sizeof(ENDING), EDDY_MEMORY_TEXT);
    if (!full)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    memcpy(full, name, length);
    memcpy(full + length, ENDING, sizeof(ENDING));
    const zip_fileinfo about = {.tmz_date = FIRST_DAY};
    /* Always with room for 64-bit sizes before the elements, as in numpy. */
    int code = zipOpenNewFileInZip4_64(file->packer, full, &about, NULL, 0, NULL, 0, NULL, 0, 0, 0,
                                       -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, 0,
                                       FLAG_UTF8, 1);
    eddy_memory_release(full, length + sizeof(ENDING), EDDY_MEMORY_TEXT);
    if (code != ZIP_OK)
        return fail_writing(file);
    file->part = name;
    eddy_status status = eddy_npy_write(file, tensor);
    code = zipCloseFileInZip(file->packer);
    if (status == EDDY_OK && code != ZIP_OK)
        status = fail_writing(file);
    file->part = NULL;
    return status;
}

static eddy_status write_all(eddy_file *file, eddy_list tensors, const char *const *names) {
    zlib_filefunc64_def functions = functions_of(file);
    file->packer = zipOpen2_64(file->path, APPEND_STATUS_CREATE, NULL, &functions);
    if (!file->packer)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    file->write = write_member;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < tensors.count && status == EDDY_OK; i++)
        status = write_named(file, tensors.items[i], names[i]);
    int code = zipClose(file->packer, NULL);
    return status == EDDY_OK && code != ZIP_OK ? fail_writing(file) : status;
}

eddy_status eddy_npz_save(eddy_list tensors, const char *const *names, const char *path,
                          const eddy_npz_save_options *options) {
    eddy_origin origin = EDDY_ORIGIN("npz_save");
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    eddy_status status = eddy_archive_check(tensors, names, deadline, origin);
    if (status != EDDY_OK)
        return status;
    eddy_file file;
    status = eddy_file_write_begin(&file, path, deadline, origin);
    return status == EDDY_OK ? eddy_file_end(&file, write_all(&file, tensors, names)) : status;
}

/* ---- in ---- */

static eddy_status fail_reading(const eddy_file *file, int code) {
    if (ferror(file->stream))
        return eddy_file_fail_system(file);
    return eddy_file_fail(
        file, EDDY_IO, code == UNZ_CRCERROR ? "the checksum is wrong" : "the archive is damaged");
}

static eddy_status read_member(eddy_file *file, void *bytes, size_t count) {
    char *at = bytes;
    while (count > 0) {
        int got = unzReadCurrentFile(file->packer, at,
                                     (unsigned)(count < CHUNK_BYTES ? count : CHUNK_BYTES));
        if (got <= 0)
            return fail_reading(file, got);
        at += got;
        count -= (size_t)got;
    }
    return EDDY_OK;
}

/* The current array of the archive. */
typedef struct member {
    unz_file_info64 about;
    char *name; /* without the ending */
    size_t bytes;
} member;

static void member_fini(member *m) {
    eddy_memory_release(m->name, m->bytes, EDDY_MEMORY_TEXT);
}

static eddy_status member_init(eddy_file *file, member *m) {
    int code = unzGetCurrentFileInfo64(file->packer, &m->about, NULL, 0, NULL, 0, NULL, 0);
    if (code != UNZ_OK)
        return fail_reading(file, code);
    size_t length = m->about.size_filename;
    m->bytes = length + 1;
    m->name = eddy_memory_acquire(m->bytes, EDDY_MEMORY_TEXT);
    if (!m->name)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    code = unzGetCurrentFileInfo64(file->packer, NULL, m->name, length, NULL, 0, NULL, 0);
    m->name[length] = 0;
    if (code == UNZ_OK && strlen(m->name) == length)
        return EDDY_OK;
    member_fini(m);
    return fail_reading(file, code);
}

static eddy_tensor *read_opened(eddy_file *file) {
    eddy_tensor *tensor = eddy_npy_read(file);
    if (tensor && file->at < file->size) {
        eddy_file_fail(file, EDDY_IO, "%" PRId64 " bytes more than the array has",
                       file->size - file->at);
        eddy_release(&tensor);
    }
    return tensor;
}

/* NULL with the error recorded. */
static eddy_tensor *read_array(eddy_file *file, const member *m) {
    size_t length = strlen(m->name);
    file->part = m->name;
    if (length <= ENDING_BYTES || strcmp(m->name + length - ENDING_BYTES, ENDING) != 0) {
        eddy_file_fail(file, EDDY_UNSUPPORTED, "no array: its name does not end in " ENDING);
        return NULL;
    }
    m->name[length - ENDING_BYTES] = 0;
    if ((m->about.flag & FLAG_ENCRYPTED) ||
        (m->about.compression_method != 0 && m->about.compression_method != Z_DEFLATED)) {
        eddy_file_fail(file, EDDY_UNSUPPORTED, "encrypted, or packed in another way than deflate");
        return NULL;
    }
    if (m->about.uncompressed_size > INT64_MAX) {
        eddy_file_fail(file, EDDY_IO, "the archive is damaged");
        return NULL;
    }
    int code = unzOpenCurrentFile(file->packer);
    if (code != UNZ_OK) {
        fail_reading(file, code);
        return NULL;
    }
    file->size = (int64_t)m->about.uncompressed_size;
    file->at = 0;
    eddy_tensor *tensor = read_opened(file);
    code = unzCloseCurrentFile(file->packer);
    if (tensor && code != UNZ_OK) {
        fail_reading(file, code);
        eddy_release(&tensor);
    }
    return tensor;
}

/* minizip does not recognise an archive without members. */
static bool is_empty_archive(eddy_file *file) {
    static const char empty[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    char bytes[sizeof(empty)];
    return file->size == sizeof(empty) &&
           fread(bytes, 1, sizeof(bytes), file->stream) == sizeof(bytes) &&
           memcmp(bytes, empty, sizeof(empty)) == 0;
}

/* Goes to the first member, or returns that there is none. */
static eddy_status open_archive(eddy_file *file, bool *is_empty) {
    zlib_filefunc64_def functions = functions_of(file);
    unz_global_info64 about;
    *is_empty = is_empty_archive(file);
    if (*is_empty)
        return EDDY_OK;
    file->packer = unzOpen2_64(file->path, &functions);
    if (!file->packer || unzGetGlobalInfo64(file->packer, &about) != UNZ_OK)
        return eddy_file_fail(file, EDDY_IO, "no zip archive");
    file->read = read_member;
    *is_empty = about.number_entry == 0;
    int code = *is_empty ? UNZ_OK : unzGoToFirstFile(file->packer);
    return code == UNZ_OK ? EDDY_OK : fail_reading(file, code);
}

static eddy_status check_twice(eddy_file *file, const eddy_archive *archive) {
    size_t bytes = (size_t)archive->count * sizeof(*archive->names);
    const char **sorted = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!sorted)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    if (bytes > 0)
        memcpy(sorted, archive->names, bytes);
    file->part = eddy_archive_twice(sorted, archive->count);
    eddy_memory_release(sorted, bytes, EDDY_MEMORY_TEXT);
    return file->part ? eddy_file_fail(file, EDDY_IO, "there are two arrays of this name")
                      : EDDY_OK;
}

static eddy_status read_next(eddy_file *file, eddy_archive *archive) {
    member m;
    eddy_status status = member_init(file, &m);
    if (status != EDDY_OK)
        return status;
    eddy_tensor *tensor = read_array(file, &m);
    bool is_fine = tensor && eddy_archive_add(file, archive, m.name, tensor);
    file->part = NULL;
    member_fini(&m);
    return is_fine ? EDDY_OK : EDDY_IO;
}

static eddy_status read_all(eddy_file *file, eddy_archive *archive) {
    bool is_empty;
    eddy_status status = open_archive(file, &is_empty);
    for (int code = UNZ_OK; status == EDDY_OK && !is_empty && code == UNZ_OK;) {
        status = read_next(file, archive);
        code = status == EDDY_OK ? unzGoToNextFile(file->packer) : UNZ_OK;
        if (code != UNZ_OK && code != UNZ_END_OF_LIST_OF_FILE)
            status = fail_reading(file, code);
    }
    return status == EDDY_OK ? check_twice(file, archive) : status;
}

static void end_reading(eddy_file *file) {
    if (file->packer)
        unzClose(file->packer);
    (void)!eddy_file_end(file, EDDY_OK);
}

eddy_archive *eddy_npz_load(const char *path) {
    eddy_file file;
    if (eddy_file_read_begin(&file, path, EDDY_ORIGIN("npz_load")) != EDDY_OK)
        return NULL;
    eddy_archive *archive = eddy_archive_create(&file);
    if (archive && read_all(&file, archive) != EDDY_OK)
        eddy_archive_release(&archive);
    end_reading(&file);
    return archive;
}

static bool is_named(const member *m, const char *name) {
    size_t length = strlen(name);
    return strncmp(m->name, name, length) == 0 && strcmp(m->name + length, ENDING) == 0;
}

static eddy_tensor *read_one(eddy_file *file, const char *name) {
    bool is_empty;
    eddy_status status = open_archive(file, &is_empty);
    for (int code = is_empty ? UNZ_END_OF_LIST_OF_FILE : UNZ_OK; status == EDDY_OK;
         code = unzGoToNextFile(file->packer)) {
        member m;
        if (code == UNZ_END_OF_LIST_OF_FILE)
            status = eddy_file_fail(file, EDDY_NOT_FOUND, "there is no '%.64s'", name);
        else
            status = code == UNZ_OK ? member_init(file, &m) : fail_reading(file, code);
        if (status != EDDY_OK)
            break;
        eddy_tensor *tensor = NULL;
        bool is_it = is_named(&m, name);
        if (is_it)
            tensor = read_array(file, &m);
        file->part = NULL;
        member_fini(&m);
        if (is_it)
            return tensor;
    }
    return NULL;
}

eddy_tensor *eddy_npz_load_one(const char *path, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("npz_load_one");
    eddy_file file;
    if (!name) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no name");
        return NULL;
    }
    if (eddy_file_read_begin(&file, path, origin) != EDDY_OK)
        return NULL;
    eddy_tensor *tensor = read_one(&file, name);
    end_reading(&file);
    return tensor;
}
