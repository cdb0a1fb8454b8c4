#include <exchange/archive.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/tensor.h>
#include <stdlib.h>
#include <string.h>

/* An array that grows. */
typedef struct row {
    void *items;
    size_t capacity, item_bytes;
} row;

typedef struct archive {
    eddy_archive shown; /* first: the public struct */
    row names, tensors, metadata;
} archive;

/* ---- life ---- */

eddy_archive *eddy_archive_create(const eddy_file *file) {
    archive *a = eddy_memory_acquire(sizeof(*a), EDDY_MEMORY_HANDLE);
    if (!a) {
        eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
        return NULL;
    }
    *a = (archive){.names.item_bytes = sizeof(char *),
                   .tensors.item_bytes = sizeof(eddy_tensor *),
                   .metadata.item_bytes = sizeof(eddy_metadata)};
    return &a->shown;
}

static char *copy_text(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static void free_text(const char *text) {
    if (text)
        eddy_memory_release((void *)(uintptr_t)text, strlen(text) + 1, EDDY_MEMORY_TEXT);
}

/* Makes room for one more item; false without memory. */
static bool reserve(row *r, int64_t count) {
    if ((size_t)count < r->capacity)
        return true;
    size_t capacity = r->capacity ? 2 * r->capacity : 16, bytes = capacity * r->item_bytes;
    void *items = r->items ? eddy_memory_grow(r->items, r->capacity * r->item_bytes, bytes,
                                              EDDY_MEMORY_HANDLE)
                           : eddy_memory_acquire(bytes, EDDY_MEMORY_HANDLE);
    if (!items)
        return false;
    r->items = items;
    r->capacity = capacity;
    return true;
}

static void free_row(const row *r) {
    eddy_memory_release(r->items, r->capacity * r->item_bytes, EDDY_MEMORY_HANDLE);
}

void eddy_archive_release(eddy_archive **shown) {
    if (!shown || !*shown)
        return;
    archive *a = (archive *)*shown;
    *shown = NULL;
    for (int64_t i = 0; i < a->shown.count; i++) {
        free_text(a->shown.names[i]);
        eddy_tensor_drop(a->shown.tensors[i]);
    }
    for (int64_t i = 0; i < a->shown.metadata_count; i++) {
        free_text(a->shown.metadata[i].key);
        free_text(a->shown.metadata[i].value);
    }
    free_row(&a->names);
    free_row(&a->tensors);
    free_row(&a->metadata);
    eddy_memory_release(a, sizeof(*a), EDDY_MEMORY_HANDLE);
}

/* ---- filling ---- */

bool eddy_archive_add(const eddy_file *file, eddy_archive *shown, const char *name,
                      eddy_tensor *tensor) {
    archive *a = (archive *)shown;
    char *copy = copy_text(name);
    bool has_room = copy && reserve(&a->names, shown->count) && reserve(&a->tensors, shown->count);
    if (has_room) {
        const char **names = a->names.items;
        eddy_tensor **tensors = a->tensors.items;
        names[shown->count] = copy;
        /* The archive's own reference; that of the scope or the caller is released below. */
        eddy_tensor_retain(tensor);
        tensors[shown->count] = tensor;
        shown->names = names;
        shown->tensors = tensors;
        shown->count++;
    } else {
        free_text(copy);
        eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    }
    eddy_release(&tensor);
    return has_room;
}

bool eddy_archive_add_metadata(const eddy_file *file, eddy_archive *shown, const char *key,
                               const char *value) {
    archive *a = (archive *)shown;
    eddy_metadata copy = {copy_text(key), copy_text(value)};
    if (!copy.key || !copy.value || !reserve(&a->metadata, shown->metadata_count)) {
        free_text(copy.key);
        free_text(copy.value);
        eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
        return false;
    }
    eddy_metadata *metadata = a->metadata.items;
    metadata[shown->metadata_count++] = copy;
    shown->metadata = metadata;
    return true;
}

/* ---- asking ---- */

/* NULL, recorded, if there is none of that name. */
static eddy_tensor *find_tensor(const eddy_archive *a, const char *name, eddy_origin origin) {
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->names[i], name) == 0)
            return a->tensors[i];
    eddy_fail(EDDY_NOT_FOUND, origin, "there is no '%.64s' among %lld tensors", name,
              (long long)a->count);
    return NULL;
}

eddy_tensor *eddy_archive_tensor(const eddy_archive *a, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("archive_tensor");
    if (!a || !name) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no %s", a ? "name" : "archive");
        return NULL;
    }
    return find_tensor(a, name, origin);
}

/* ---- into the program's tensors ---- */

static eddy_status fail_fit(eddy_status status, const char *name, const eddy_tensor *source,
                            int64_t i, const eddy_tensor *target, eddy_origin origin) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(source, is, sizeof(is));
    eddy_tensor_describe(target, wanted, sizeof(wanted));
    return eddy_fail(status, origin, "'%.64s' is %s, targets[%lld] is %s", name, is, (long long)i,
                     wanted);
}

static eddy_status check_fit(const eddy_archive *a, const char *name, eddy_list targets, int64_t i,
                             eddy_origin origin) {
    eddy_tensor *target = targets.items[i];
    if (!name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "names[%lld] is NULL", (long long)i);
    eddy_status status = eddy_tensor_check_item_shape(target, "targets", i, origin);
    if (status != EDDY_OK)
        return status;
    const eddy_tensor *source = find_tensor(a, name, origin);
    if (!source)
        return EDDY_NOT_FOUND;
    if (source->dtype != target->dtype)
        return fail_fit(EDDY_DTYPE_MISMATCH, name, source, i, target, origin);
    eddy_layout is, wanted;
    eddy_tensor_layout(source, &is);
    eddy_tensor_layout(target, &wanted);
    if (!eddy_shape_equal(is.rank, is.dims, wanted.rank, wanted.dims))
        return fail_fit(EDDY_SHAPE_MISMATCH, name, source, i, target, origin);
    return EDDY_OK;
}

eddy_status eddy_archive_copy_into(const eddy_archive *a, const char *const *names,
                                   eddy_list targets) {
    eddy_origin origin = EDDY_ORIGIN("archive_copy_into");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    if (!a || targets.count < 0 || (targets.count > 0 && (!names || !targets.items)))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no %s",
                         !a       ? "archive"
                         : !names ? "names"
                                  : "targets");
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < targets.count && status == EDDY_OK; i++)
        status = check_fit(a, names[i], targets, i, origin);
    for (int64_t i = 0; i < targets.count && status == EDDY_OK; i++)
        status = eddy_copy_to(caller, find_tensor(a, names[i], origin), targets.items[i],
                              origin.address);
    return status;
}

/* ---- metadata ---- */

const char *eddy_archive_value(const eddy_archive *a, const char *key) {
    for (int64_t i = 0; a && key && i < a->metadata_count; i++)
        if (strcmp(a->metadata[i].key, key) == 0)
            return a->metadata[i].value;
    return NULL;
}

/* ---- before saving ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *eddy_archive_twice(const char **names, int64_t count) {
    if (count > 0)
        qsort(names, (size_t)count, sizeof(*names), compare_names);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

eddy_status eddy_archive_check(eddy_list tensors, const char *const *names, int64_t deadline,
                               eddy_origin origin) {
    if (tensors.count < 0 || (tensors.count > 0 && (!tensors.items || !names)))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no list, or no names");
    for (int64_t i = 0; i < tensors.count; i++) {
        if (!names[i])
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "tensor %lld has no name",
                             (long long)i);
        eddy_status status = eddy_tensor_check_item(tensors.items[i], "tensors", i, origin);
        if (status == EDDY_OK)
            status = eddy_tensor_await_shape_until(tensors.items[i], deadline, origin);
        if (status != EDDY_OK)
            return status;
    }
    size_t bytes = (size_t)tensors.count * sizeof(*names);
    const char **sorted = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!sorted)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    if (bytes > 0)
        memcpy(sorted, names, bytes);
    const char *twice = eddy_archive_twice(sorted, tensors.count);
    eddy_memory_release(sorted, bytes, EDDY_MEMORY_TEXT);
    return twice
               ? eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the name '%.64s' is given twice", twice)
               : EDDY_OK;
}
