/* eddy_program_load: everything that the file says is checked, then its tensors are read (file_head.h). */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/tensor.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/file.h>
#include <interpreter/host/transfer.h>
#include <program/file_head.h>
#include <program/parse.h>
#include <program/passes/passes.h>
#include <program/program.h>
#include <program/storages.h>
#include <program/variant.h>
#include <string.h>

#define CHUNK_BYTES 65536

typedef struct loading {
    eddy_program *program;
    eddy_caller *caller;
    eddy_file file;
    eddy_file_head head;
    eddy_storages storages;
} loading;

static eddy_status fail_memory(const loading *l) {
    return eddy_file_fail(&l->file, EDDY_OUT_OF_MEMORY, "no memory for the program");
}

/* ---- what the file says ---- */

static eddy_status read_head(loading *l) {
    unsigned char bytes[EDDY_FILE_HEAD_BYTES];
    if (l->file.size == INT64_MAX)
        return eddy_file_fail(&l->file, EDDY_IO, "no regular file");
    eddy_status status = eddy_file_read(&l->file, bytes, sizeof(bytes));
    if (status != EDDY_OK)
        return status;
    const char *wrong = eddy_file_head_read(&l->head, bytes);
    if (wrong)
        return eddy_file_fail(&l->file, EDDY_IO, "%s", wrong);
    if (l->head.file_bytes != (uint64_t)l->file.size)
        return eddy_file_fail(&l->file, EDDY_IO, "the file has %lld bytes, its head says %llu",
                              (long long)l->file.size, (unsigned long long)l->head.file_bytes);
    return EDDY_OK;
}

static bool is_same(eddy_digest a, eddy_digest b) {
    return a.low == b.low && a.high == b.high;
}

static eddy_status parse(loading *l, const char *text) {
    eddy_parse_error error;
    uint32_t generators = 0;
    eddy_status status =
        eddy_parse_program(l->program, text, (size_t)l->head.text_bytes, &generators, &error);
    if (status == EDDY_OUT_OF_MEMORY)
        return fail_memory(l);
    if (status != EDDY_OK)
        return eddy_file_fail(&l->file, status, "line %u: %.280s", error.line, error.reason);
    if (generators > 0)
        return eddy_file_fail(&l->file, EDDY_UNSUPPORTED,
                              "the program draws from a generator that is not "
                              "the running thread's own");
    for (uint32_t i = 0; i < l->program->bindings.count; i++)
        if (eddy_program_binding_at(l->program, i)->role == EDDY_PROGRAM_KEPT)
            return eddy_file_fail(&l->file, EDDY_UNSUPPORTED,
                                  "the program leaves gradients on a tape that is not there");
    return EDDY_OK;
}

/* The text, and the zeros behind it. */
static eddy_status read_text(loading *l) {
    size_t bytes = (size_t)l->head.data_at - EDDY_FILE_HEAD_BYTES;
    char *text = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!text)
        return fail_memory(l);
    eddy_status status = eddy_file_read(&l->file, text, bytes);
    if (status == EDDY_OK && !is_same(eddy_hash_128(text, bytes), l->head.text_digest))
        status = eddy_file_fail(&l->file, EDDY_IO, "the text is damaged");
    if (status == EDDY_OK)
        status = parse(l, text);
    eddy_memory_release(text, bytes, EDDY_MEMORY_TEXT);
    return status;
}

/* The storages that the text names are those that the file has. */
static eddy_status check_sizes(loading *l) {
    if (!eddy_storages_make(&l->storages, l->program))
        return fail_memory(l);
    uint64_t at = l->head.data_at;
    bool is_fine = l->storages.count == l->head.tensor_count;
    for (uint32_t i = 0; i < l->storages.count && is_fine; i++) {
        uint32_t value = eddy_program_external_at(l->program, l->storages.externals[i])->value;
        int64_t bytes = eddy_code_value_at(&l->program->code, value)->bytes;
        is_fine = bytes % eddy_dtype_size((eddy_dtype)l->storages.dtypes[value]) == 0 &&
                  (uint64_t)bytes <= l->head.file_bytes - at;
        at += is_fine ? eddy_file_head_aligned((uint64_t)bytes) : 0;
        is_fine = is_fine && at <= l->head.file_bytes;
    }
    return is_fine && at == l->head.file_bytes
               ? EDDY_OK
               : eddy_file_fail(&l->file, EDDY_IO,
                                "its tensors have other sizes than the text says");
}

static eddy_status check_data(loading *l) {
    eddy_hash_stream hash;
    char *chunk = eddy_memory_acquire(CHUNK_BYTES, EDDY_MEMORY_TEXT);
    if (!chunk)
        return fail_memory(l);
    eddy_status status = EDDY_OK;
    eddy_hash_begin(&hash);
    for (uint64_t left = l->head.file_bytes - l->head.data_at; left > 0 && status == EDDY_OK;) {
        size_t bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        status = eddy_file_read(&l->file, chunk, bytes);
        if (status == EDDY_OK)
            eddy_hash_add(&hash, chunk, bytes);
        left -= bytes;
    }
    if (status == EDDY_OK && !is_same(eddy_hash_end(&hash), l->head.data_digest))
        status = eddy_file_fail(&l->file, EDDY_IO, "the elements are damaged");
    eddy_memory_release(chunk, CHUNK_BYTES, EDDY_MEMORY_TEXT);
    return status;
}

/* ---- tensors ---- */

/* Building gives up externals: from then on storages are known by their values. */
static void name_by_value(loading *l) {
    for (uint32_t i = 0; i < l->storages.count; i++)
        l->storages.externals[i] =
            eddy_program_external_at(l->program, l->storages.externals[i])->value;
}

static eddy_program_external *find_external(const eddy_program *program, uint32_t value) {
    for (uint32_t e = 0; e < program->externals.count; e++)
        if (eddy_program_external_at(program, e)->value == value)
            return eddy_program_external_at(program, e);
    return NULL;
}

/* The tensor, or a copy of it where the program has it. */
static eddy_status bring(const loading *l, uint32_t value, eddy_tensor *tensor,
                         eddy_tensor **brought) {
    eddy_device device = eddy_code_value_device(eddy_code_value_at(&l->program->code, value));
    eddy_device from = eddy_tensor_device(tensor);
    if (from.kind != device.kind || from.index != device.index)
        return eddy_transfer_elements(l->caller, tensor, device, l->file.origin, brought);
    eddy_tensor_retain(tensor);
    *brought = tensor;
    return EDDY_OK;
}

/* A vector of all elements of the storage, of which the program holds a reference that no scope owns. */
static eddy_status read_storage(loading *l, uint32_t value, uint64_t *at) {
    int64_t bytes = eddy_code_value_at(&l->program->code, value)->bytes;
    eddy_dtype dtype = (eddy_dtype)l->storages.dtypes[value];
    eddy_program_external *to = find_external(l->program, value);
    if (!to) { /* passes have found that nobody uses it */
        *at += eddy_file_head_aligned((uint64_t)bytes);
        return EDDY_OK;
    }
    eddy_status status = eddy_file_seek(&l->file, (int64_t)*at);
    if (status != EDDY_OK)
        return status;
    *at += eddy_file_head_aligned((uint64_t)bytes);
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *tensor = eddy_file_read_elements(
        &l->file, &EDDY_SHAPE(bytes / eddy_dtype_size(dtype)), dtype, false);
    eddy_outcome_end(&outcome);
    if (!tensor)
        return eddy_outcome_why(&outcome);
    status = bring(l, value, tensor, &to->tensor);
    eddy_release(&tensor);
    return status;
}

static eddy_status read_storages(loading *l) {
    uint64_t at = l->head.data_at;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < l->storages.count && status == EDDY_OK; i++)
        status = read_storage(l, l->storages.externals[i], &at);
    return status;
}

/* Runs compare what they find with the constants as they were loaded. */
static void note_versions(const eddy_program *program) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_CONSTANT)
            continue;
        const eddy_tensor *root = eddy_program_external_at(program, binding->operand)->tensor;
        binding->version = eddy_load_relaxed(&root->version);
    }
}

/* ---- all of it ---- */

static eddy_status load(loading *l) {
    eddy_status status = read_head(l);
    if (status == EDDY_OK)
        status = read_text(l);
    if (status == EDDY_OK)
        status = check_sizes(l);
    if (status == EDDY_OK)
        status = check_data(l);
    if (status == EDDY_OK) {
        name_by_value(l);
        status = eddy_program_keep_source(l->program, l->file.origin);
        if (status == EDDY_OK)
            status = eddy_program_build(l->program, l->file.origin);
    }
    if (status == EDDY_OK)
        status = read_storages(l);
    if (status == EDDY_OK) {
        note_versions(l->program);
        eddy_program_source_take(l->program);
    }
    return status;
}

static eddy_status begin(loading *l, eddy_origin origin) {
    eddy_runtime *runtime;
    if (!eddy_caller_may_call(l->caller))
        return eddy_caller_refuse(l->caller, origin);
    eddy_status status = eddy_runtime_of_caller(l->caller, origin, &runtime);
    if (status != EDDY_OK)
        return status;
    if (!eddy_runtime_is_running(runtime))
        return eddy_runtime_refuse(runtime, origin, "");
    l->program = eddy_program_create(runtime);
    if (!l->program)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a program");
    /* There are no constants yet when it is built; what was folded is captured. */
    l->program->passes &= ~(1u << EDDY_PASS_NUMBER_fold);
    return EDDY_OK;
}

eddy_program *eddy_program_load(const char *path) {
    eddy_origin origin = EDDY_ORIGIN("program_load");
    loading l = {.caller = eddy_caller_get()};
    if (begin(&l, origin) != EDDY_OK)
        return NULL;
    eddy_status status = eddy_file_read_begin(&l.file, path, origin);
    if (status == EDDY_OK)
        status = eddy_file_end(&l.file, load(&l));
    eddy_storages_fini(&l.storages);
    if (status == EDDY_OK)
        return l.program;
    eddy_program_destroy(l.program);
    return NULL;
}

/* ---- what it holds ---- */

static const eddy_program_binding *find_state(const eddy_program *program, const char *name) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role == EDDY_ROLE_STATE && strcmp(binding->name, name) == 0)
            return binding;
    }
    return NULL;
}

eddy_tensor *eddy_program_state(const eddy_program *program, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("program_state");
    eddy_caller *caller = eddy_caller_get();
    if (eddy_program_check(program, origin) != EDDY_OK)
        return NULL;
    if (!eddy_caller_may_call(caller)) {
        (void)!eddy_caller_refuse(caller, origin);
        return NULL;
    }
    const eddy_program_binding *binding = name ? find_state(program, name) : NULL;
    if (!binding) {
        eddy_fail(EDDY_NOT_FOUND, origin, "the program has no state named %.100s",
                  name ? name : "NULL");
        return NULL;
    }
    if (!eddy_scope_reserve(caller, 1)) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "the scope cannot grow");
        return NULL;
    }
    eddy_tensor *state =
        eddy_tensor_view(caller, eddy_program_external_at(program, binding->operand)->tensor,
                         &binding->layout, origin);
    if (state)
        eddy_scope_own(caller, state);
    return state;
}
