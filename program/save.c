/* eddy_program_save: the text, then the elements of the storages that the program holds (file_head.h). */
#include <base/clock.h>
#include <base/dtype.h>
#include <base/status.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/host/file.h>
#include <program/file_head.h>
#include <program/late_read.h>
#include <program/print.h>
#include <program/program.h>
#include <program/storages.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files of programs have the elements of tensors as they lie in memory, little-endian"
#endif

typedef struct saving {
    const eddy_program *program;
    eddy_caller *caller;
    eddy_file file;
    eddy_file_head head;
    eddy_storages storages;
    eddy_printed printed;
    eddy_hash_stream hash; /* of what is written */
} saving;

/* ---- what cannot be saved ---- */

static eddy_status check(const saving *s, eddy_origin origin) {
    const eddy_program *program = s->program;
    eddy_status status = eddy_program_check(program, origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_caller_may_call(s->caller))
        return eddy_caller_refuse(s->caller, origin);
    if (!eddy_runtime_is_running(program->runtime))
        return eddy_runtime_refuse(program->runtime, origin, "");
    if (program->has_registered)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "the program has ops that were registered, which a file cannot hold");
    if (eddy_late_read_is_in(&program->code))
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "the program calls back by read_async, and a file cannot hold which "
                         "function that is");
    if (program->generators.count > 0)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "the program draws from a generator that is not the running thread's own, "
                         "which a file cannot hold");
    return eddy_program_check_constants(program, origin);
}

/* ---- writing ---- */

static eddy_status write_hashed(eddy_file *file, const void *bytes, size_t count) {
    saving *s = file->packer;
    eddy_hash_add(&s->hash, bytes, count);
    return fwrite(bytes, 1, count, file->stream) == count ? EDDY_OK : eddy_file_fail_system(file);
}

/* Up to where the next part begins. */
static eddy_status write_zeros(saving *s, uint64_t written) {
    static const unsigned char zeros[EDDY_FILE_ALIGNMENT];
    return eddy_file_write(&s->file, zeros, eddy_file_head_aligned(written) - written);
}

static eddy_status write_text(saving *s) {
    eddy_hash_begin(&s->hash);
    eddy_status status = eddy_file_write(&s->file, s->printed.text, s->printed.length);
    if (status == EDDY_OK)
        status = write_zeros(s, EDDY_FILE_HEAD_BYTES + s->printed.length);
    s->head.text_digest = eddy_hash_end(&s->hash);
    return status;
}

/* All of a storage, whatever the order of its root's axes is. */
static eddy_status write_storage(saving *s, eddy_tensor *root, uint64_t *bytes) {
    eddy_layout row = {.rank = 1, .dims = {root->count}, .strides = {1}};
    *bytes = (uint64_t)root->count * (uint64_t)eddy_dtype_size((eddy_dtype)root->dtype);
    eddy_tensor *vector = eddy_tensor_view(s->caller, root, &row, s->file.origin);
    if (!vector)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_file_write_elements(&s->file, vector);
    eddy_tensor_drop(vector);
    return status == EDDY_OK ? write_zeros(s, *bytes) : status;
}

static eddy_status write_storages(saving *s) {
    eddy_status status = EDDY_OK;
    uint64_t bytes;
    s->head.file_bytes = s->head.data_at;
    eddy_hash_begin(&s->hash);
    for (uint32_t i = 0; i < s->storages.count && status == EDDY_OK; i++) {
        status = write_storage(
            s, eddy_program_external_at(s->program, s->storages.externals[i])->tensor, &bytes);
        s->head.file_bytes += eddy_file_head_aligned(bytes);
    }
    s->head.data_digest = eddy_hash_end(&s->hash);
    return status;
}

/* The head is written last, in the place that was left for it. */
static eddy_status write_all(saving *s) {
    unsigned char head[EDDY_FILE_HEAD_BYTES] = {0};
    eddy_status status = eddy_file_write(&s->file, head, sizeof(head));
    s->file.packer = s;
    s->file.write = write_hashed;
    if (status == EDDY_OK)
        status = write_text(s);
    if (status == EDDY_OK)
        status = write_storages(s);
    if (status == EDDY_OK)
        status = eddy_file_seek(&s->file, 0);
    s->file.write = NULL;
    eddy_file_head_write(&s->head, head);
    return status == EDDY_OK ? eddy_file_write(&s->file, head, sizeof(head)) : status;
}

/* ---- all of it ---- */

static eddy_status save(saving *s, const char *path, eddy_origin origin) {
    if (!eddy_storages_make(&s->storages, s->program) ||
        !eddy_printed_make(&s->printed, s->program, EDDY_PRINT_CODE))
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the text");
    s->head.text_bytes = s->printed.length;
    s->head.data_at = eddy_file_head_aligned(EDDY_FILE_HEAD_BYTES + s->printed.length);
    s->head.tensor_count = s->storages.count;
    eddy_status status = eddy_file_write_begin(&s->file, path, EDDY_CLOCK_FOREVER, origin);
    return status == EDDY_OK ? eddy_file_end(&s->file, write_all(s)) : status;
}

eddy_status eddy_program_save(const eddy_program *program, const char *path) {
    eddy_origin origin = EDDY_ORIGIN("program_save");
    saving s = {.program = program, .caller = eddy_caller_get()};
    eddy_status status = check(&s, origin);
    if (status != EDDY_OK)
        return status;
    status = save(&s, path, origin);
    eddy_printed_fini(&s.printed);
    eddy_storages_fini(&s.storages);
    return status;
}
