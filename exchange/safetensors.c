/* safetensors: the length of a header, the header in JSON, the elements of all tensors without gaps.
 *
 * The format is https://github.com/huggingface/safetensors (format.md); files that its reference implementation refuses are refused here. */
#include <eddy/file.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/shape.h>
#include <base/status.h>
#include <exchange/archive.h>
#include <interpreter/handle/tensor.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 8
#define HEADER_MAX 100000000 /* as the reference implementation */
#define ALIGNMENT 64
#define METADATA "__metadata__"

/* The format's names are those of Eddy's enumerators. */
static const char *const dtype_names[EDDY_DTYPE_COUNT] = {
#define ROW(enumerator, name, bytes) [EDDY_##enumerator] = #enumerator,
    EDDY_DTYPE_LIST(ROW)
#undef ROW
};

/* ---- out ---- */

/* The tensors to write and their places. */
typedef struct layout {
    int64_t count;
    int64_t *order;  /* numbers of the tensors in the order of their elements */
    int64_t *begins; /* of each tensor: where its elements begin after the header */
} layout;

static int64_t bytes_of(const eddy_tensor *tensor) {
    return tensor->count * (int64_t)eddy_dtype_bytes((eddy_dtype)tensor->dtype);
}

/* Wide elements first: each tensor is then aligned for its dtype, on which readers that map the file rely. */
static eddy_status lay_out(const eddy_file *file, eddy_list tensors, layout *result) {
    size_t count = (size_t)tensors.count;
    int64_t *numbers = eddy_memory_acquire(2 * count * sizeof(*numbers), EDDY_MEMORY_TEXT);
    if (!numbers)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    *result = (layout){tensors.count, numbers, numbers + count};
    int64_t placed = 0, at = 0;
    for (size_t width = 8; width > 0; width /= 2)
        for (int64_t i = 0; i < tensors.count; i++)
            if (eddy_dtype_bytes((eddy_dtype)tensors.items[i]->dtype) == width) {
                result->order[placed++] = i;
                result->begins[i] = at;
                at += bytes_of(tensors.items[i]);
            }
    EDDY_ASSERT(placed == tensors.count);
    return EDDY_OK;
}

static json_t *describe_tensor(const eddy_tensor *tensor, int64_t begin) {
    json_t *shape = json_array();
    for (int32_t d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer(tensor->axes[d].dim));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_names[tensor->dtype], "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)(begin + bytes_of(tensor)));
}

static eddy_status describe_metadata(const eddy_file *file,
                                     const eddy_safetensors_save_options *options, json_t *header) {
    json_t *pairs = json_object();
    for (int64_t i = 0; i < options->metadata_count; i++) {
        const eddy_metadata *pair = &options->metadata[i];
        if (!pair->key || !pair->value || json_object_get(pairs, pair->key) ||
            json_object_set_new(pairs, pair->key, json_string(pair->value)) != 0) {
            json_decref(pairs);
            return eddy_file_fail(
                file, EDDY_INVALID_ARGUMENT,
                "pair %" PRId64 " of the metadata is not UTF-8, or its key is given twice", i);
        }
    }
    return json_object_set_new(header, METADATA, pairs) == 0
               ? EDDY_OK
               : eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
}

static eddy_status safetensors_describe(const eddy_file *file, eddy_list tensors,
                                        const char *const *names, const layout *places,
                                        const eddy_safetensors_save_options *options,
                                        json_t *header) {
    if (options && options->metadata_count > 0) {
        eddy_status status = describe_metadata(file, options, header);
        if (status != EDDY_OK)
            return status;
    }
    for (int64_t i = 0; i < tensors.count; i++) {
        if (strcmp(names[i], METADATA) == 0)
            return eddy_file_fail(file, EDDY_INVALID_ARGUMENT,
                                  "a tensor cannot be named " METADATA);
        if (json_object_set_new(header, names[i],
                                describe_tensor(tensors.items[i], places->begins[i])) != 0)
            return eddy_file_fail(file, EDDY_INVALID_ARGUMENT,
                                  "the name of tensor %" PRId64 " is not UTF-8", i);
    }
    return EDDY_OK;
}

/* The header's length, the header, and spaces that align the elements. */
static eddy_status write_header(eddy_file *file, const json_t *header) {
    size_t bytes = json_dumpb(header, NULL, 0, JSON_COMPACT);
    size_t padded = (LENGTH_BYTES + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes == 0)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    if (padded - LENGTH_BYTES > HEADER_MAX)
        return eddy_file_fail(file, EDDY_UNSUPPORTED,
                              "a header of %zu bytes, the format has at most %d", bytes,
                              HEADER_MAX);
    char *text = eddy_memory_acquire(padded, EDDY_MEMORY_TEXT);
    if (!text)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    for (int i = 0; i < LENGTH_BYTES; i++)
        text[i] = (char)((padded - LENGTH_BYTES) >> 8 * i);
    memset(text + LENGTH_BYTES, ' ', padded - LENGTH_BYTES);
    json_dumpb(header, text + LENGTH_BYTES, bytes, JSON_COMPACT);
    eddy_status status = eddy_file_write(file, text, padded);
    eddy_memory_release(text, padded, EDDY_MEMORY_TEXT);
    return status;
}

static eddy_status write_all(eddy_file *file, eddy_list tensors, const char *const *names,
                             const eddy_safetensors_save_options *options) {
    layout places = {0};
    eddy_status status = lay_out(file, tensors, &places);
    if (status != EDDY_OK)
        return status;
    json_t *header = json_object();
    status = safetensors_describe(file, tensors, names, &places, options, header);
    if (status == EDDY_OK)
        status = write_header(file, header);
    json_decref(header);
    for (int64_t i = 0; i < places.count && status == EDDY_OK; i++)
        status = eddy_file_write_elements(file, tensors.items[places.order[i]]);
    eddy_memory_release(places.order, 2 * (size_t)places.count * sizeof(*places.order),
                        EDDY_MEMORY_TEXT);
    return status;
}

eddy_status eddy_safetensors_save(eddy_list tensors, const char *const *names, const char *path,
                                  const eddy_safetensors_save_options *options) {
    eddy_origin origin = EDDY_ORIGIN("safetensors_save");
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    eddy_status status = eddy_archive_check(tensors, names, deadline, origin);
    if (status != EDDY_OK)
        return status;
    if (options &&
        (options->metadata_count < 0 || (options->metadata_count > 0 && !options->metadata)))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no metadata");
    eddy_file file;
    status = eddy_file_write_begin(&file, path, deadline, origin);
    return status == EDDY_OK ? eddy_file_end(&file, write_all(&file, tensors, names, options))
                             : status;
}

/* ---- in ---- */

/* A tensor as the header describes it. */
typedef struct entry {
    const char *name; /* of the JSON */
    eddy_dtype dtype;
    eddy_shape shape;
    int64_t begin, end; /* bytes after the header */
} entry;

typedef struct header {
    json_t *json;
    entry *entries; /* in the order of the header */
    int64_t count;
    size_t capacity;
    int64_t data; /* where the elements begin */
} header;

static eddy_status parse_dtype(const eddy_file *file, const json_t *value, eddy_dtype *dtype) {
    const char *name = json_string_value(value);
    if (!name)
        return eddy_file_fail(file, EDDY_IO, "no dtype");
    for (int i = 0; i < EDDY_DTYPE_COUNT; i++)
        if (strcmp(name, dtype_names[i]) == 0) {
            *dtype = (eddy_dtype)i;
            return EDDY_OK;
        }
    return eddy_file_fail(file, EDDY_UNSUPPORTED, "an element type that Eddy does not have: %.32s",
                          name);
}

static eddy_status parse_shape(const eddy_file *file, const json_t *value, eddy_shape *shape) {
    size_t rank = json_array_size(value);
    if (!json_is_array(value))
        return eddy_file_fail(file, EDDY_IO, "no shape");
    if (rank > EDDY_RANK_MAX)
        return eddy_file_fail(file, EDDY_UNSUPPORTED, "rank %zu, Eddy has %d", rank, EDDY_RANK_MAX);
    *shape = (eddy_shape){.rank = (int32_t)rank};
    for (size_t d = 0; d < rank; d++) {
        const json_t *dim = json_array_get(value, d);
        shape->dims[d] = json_integer_value(dim);
        if (!json_is_integer(dim) || shape->dims[d] < 0)
            return eddy_file_fail(file, EDDY_IO, "a shape that is none");
    }
    return EDDY_OK;
}

static eddy_status parse_offsets(const eddy_file *file, const json_t *value, entry *e) {
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    e->begin = json_integer_value(begin);
    e->end = json_integer_value(end);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        e->begin < 0 || e->end < e->begin)
        return eddy_file_fail(file, EDDY_IO, "data_offsets that are none");
    int64_t count, bytes;
    if (!eddy_shape_is_valid(&e->shape) ||
        !eddy_shape_count(e->shape.rank, e->shape.dims, &count) ||
        __builtin_mul_overflow(count, (int64_t)eddy_dtype_bytes(e->dtype), &bytes))
        return eddy_file_fail(file, EDDY_SIZE_OVERFLOW, "more elements than fit into memory");
    if (bytes != e->end - e->begin)
        return eddy_file_fail(file, EDDY_IO,
                              "the shape takes %" PRId64 " bytes, data_offsets name %" PRId64,
                              bytes, e->end - e->begin);
    return EDDY_OK;
}

static eddy_status parse_tensor(eddy_file *file, const char *name, const json_t *value, entry *e) {
    e->name = name;
    file->part = name;
    eddy_status status = parse_dtype(file, json_object_get(value, "dtype"), &e->dtype);
    if (status == EDDY_OK)
        status = parse_shape(file, json_object_get(value, "shape"), &e->shape);
    if (status == EDDY_OK)
        status = parse_offsets(file, json_object_get(value, "data_offsets"), e);
    file->part = NULL;
    return status;
}

static eddy_status check_metadata(const eddy_file *file, json_t *pairs) {
    const char *key;
    json_t *value;
    bool is_text = json_is_object(pairs);
    json_object_foreach(pairs, key, value) is_text = is_text && json_is_string(value);
    return is_text ? EDDY_OK : eddy_file_fail(file, EDDY_IO, METADATA " is not pairs of texts");
}

static int compare_places(const void *a, const void *b) {
    const entry *left = *(const entry *const *)a, *right = *(const entry *const *)b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* Checks that the tensors' elements fill the bytes after the header, without overlap or gap. */
static eddy_status check_places(eddy_file *file, const header *h) {
    size_t bytes = (size_t)h->count * sizeof(entry *);
    const entry **sorted = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!sorted)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    for (int64_t i = 0; i < h->count; i++)
        sorted[i] = &h->entries[i];
    if (h->count > 0)
        qsort(sorted, (size_t)h->count, sizeof(*sorted), compare_places);
    int64_t at = 0, all = file->size - h->data;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < h->count && status == EDDY_OK; i++) {
        file->part = sorted[i]->name;
        if (sorted[i]->begin != at)
            status =
                eddy_file_fail(file, EDDY_IO,
                               sorted[i]->begin < at ? "its elements begin within another tensor's"
                                                     : "a gap in front of its elements");
        else if (sorted[i]->end > all)
            status = eddy_file_fail(file, EDDY_IO, "the file ends too early");
        at = sorted[i]->end;
    }
    file->part = NULL;
    eddy_memory_release(sorted, bytes, EDDY_MEMORY_TEXT);
    if (status == EDDY_OK && at != all)
        return eddy_file_fail(file, EDDY_IO, "%" PRId64 " bytes at the end belong to no tensor",
                              all - at);
    return status;
}

static eddy_status parse(eddy_file *file, const char *text, size_t bytes, header *h) {
    json_error_t error;
    if (bytes == 0 || text[0] != '{')
        return eddy_file_fail(file, EDDY_IO, "no safetensors file: the header is no JSON object");
    h->json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!h->json)
        return eddy_file_fail(file, EDDY_IO, "the header is damaged: %s", error.text);
    h->capacity = json_object_size(h->json);
    h->entries = eddy_memory_acquire(h->capacity * sizeof(entry), EDDY_MEMORY_TEXT);
    if (!h->entries)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    const char *name;
    json_t *value;
    eddy_status status = EDDY_OK;
    json_object_foreach(h->json, name, value) {
        if (strcmp(name, METADATA) == 0)
            status = check_metadata(file, value);
        else
            status = parse_tensor(file, name, value, &h->entries[h->count++]);
        if (status != EDDY_OK)
            return status;
    }
    return check_places(file, h);
}

static void header_fini(header *h) {
    eddy_memory_release(h->entries, h->capacity * sizeof(entry), EDDY_MEMORY_TEXT);
    json_decref(h->json);
}

static eddy_status header_read(eddy_file *file, header *h) {
    unsigned char length[LENGTH_BYTES];
    if (file->size == INT64_MAX)
        return eddy_file_fail(file, EDDY_IO, "no regular file");
    eddy_status status = eddy_file_read(file, length, LENGTH_BYTES);
    if (status != EDDY_OK)
        return status;
    uint64_t bytes = 0;
    for (int i = 0; i < LENGTH_BYTES; i++)
        bytes |= (uint64_t)length[i] << 8 * i;
    if (bytes > HEADER_MAX)
        return eddy_file_fail(file, EDDY_IO, "no safetensors file: a header of %" PRIu64 " bytes",
                              bytes);
    if (bytes > (uint64_t)(file->size - file->at))
        return eddy_file_fail(file, EDDY_IO, "the file ends too early");
    char *text = eddy_memory_acquire(bytes, EDDY_MEMORY_TEXT);
    if (!text)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    status = eddy_file_read(file, text, bytes);
    h->data = file->at;
    if (status == EDDY_OK)
        status = parse(file, text, bytes, h);
    eddy_memory_release(text, bytes, EDDY_MEMORY_TEXT);
    return status;
}

static eddy_tensor *read_tensor(eddy_file *file, const header *h, const entry *e) {
    file->part = e->name;
    if (eddy_file_seek(file, h->data + e->begin) != EDDY_OK)
        return NULL;
    return eddy_file_read_elements(file, &e->shape, e->dtype, false);
}

static eddy_archive *read_all(eddy_file *file, const header *h) {
    eddy_archive *archive = eddy_archive_create(file);
    bool is_fine = archive != NULL;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(h->json, METADATA), key, value) {
        is_fine =
            is_fine && eddy_archive_add_metadata(file, archive, key, json_string_value(value));
    }
    for (int64_t i = 0; i < h->count && is_fine; i++) {
        eddy_tensor *tensor = read_tensor(file, h, &h->entries[i]);
        is_fine = tensor && eddy_archive_add(file, archive, h->entries[i].name, tensor);
    }
    if (!is_fine)
        eddy_archive_release(&archive);
    return archive;
}

eddy_archive *eddy_safetensors_load(const char *path) {
    eddy_file file;
    header h = {0};
    eddy_archive *archive = NULL;
    if (eddy_file_read_begin(&file, path, EDDY_ORIGIN("safetensors_load")) != EDDY_OK)
        return NULL;
    if (header_read(&file, &h) == EDDY_OK)
        archive = read_all(&file, &h);
    header_fini(&h);
    (void)!eddy_file_end(&file, EDDY_OK);
    return archive;
}

static eddy_tensor *read_one(eddy_file *file, const header *h, const char *name) {
    for (int64_t i = 0; i < h->count; i++)
        if (strcmp(h->entries[i].name, name) == 0)
            return read_tensor(file, h, &h->entries[i]);
    eddy_file_fail(file, EDDY_NOT_FOUND, "there is no '%.64s' among %" PRId64 " tensors", name,
                   h->count);
    return NULL;
}

eddy_tensor *eddy_safetensors_load_one(const char *path, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("safetensors_load_one");
    eddy_file file;
    header h = {0};
    eddy_tensor *tensor = NULL;
    if (!name) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no name");
        return NULL;
    }
    if (eddy_file_read_begin(&file, path, origin) != EDDY_OK)
        return NULL;
    if (header_read(&file, &h) == EDDY_OK)
        tensor = read_one(&file, &h, name);
    header_fini(&h);
    (void)!eddy_file_end(&file, EDDY_OK);
    return tensor;
}
