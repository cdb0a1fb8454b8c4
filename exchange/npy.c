/* numpy's .npy: a magic number, a header that is a Python dict of three keys, the elements. */
#include <eddy/file.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <ctype.h>
#include <eddy/view.h>
#include <exchange/npy.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/tensor.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define PROLOGUE_BYTES 10 /* magic, version, length of the header */
#define HEADER_MAX 65536
#define ALIGNMENT 64

/* Type codes of numpy, without byte order. */
static const struct {
    eddy_dtype dtype;
    const char *code;
} codes[] = {
    {EDDY_F32, "f4"}, {EDDY_F64, "f8"}, {EDDY_F16, "f2"}, {EDDY_I8, "i1"},   {EDDY_U8, "u1"},
    {EDDY_I16, "i2"}, {EDDY_I32, "i4"}, {EDDY_I64, "i8"}, {EDDY_BOOL, "b1"},
};
#define CODE_COUNT (sizeof(codes) / sizeof(codes[0]))

/* ---- out ---- */

static const char *code_of(eddy_dtype dtype) {
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].dtype == dtype)
            return codes[i].code;
    return NULL;
}

static eddy_status write_header(eddy_file *file, const eddy_tensor *tensor) {
    const char *code = code_of((eddy_dtype)tensor->dtype);
    if (!code)
        return eddy_file_fail(file, EDDY_UNSUPPORTED, "the format has no %s; cast to f32 first",
                              eddy_dtype_name((eddy_dtype)tensor->dtype));
    char text[PROLOGUE_BYTES + 128 + EDDY_RANK_MAX * 24];
    char *at = text + PROLOGUE_BYTES, *end = text + sizeof(text);
    at += snprintf(at, (size_t)(end - at), "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                   code[1] == '1' ? '|' : '<', code);
    for (int32_t d = 0; d < tensor->rank; d++)
        at += snprintf(at, (size_t)(end - at), "%" PRId64 "%s", tensor->axes[d].dim,
                       tensor->rank == 1      ? ","
                       : d + 1 < tensor->rank ? ", "
                                              : "");
    at += snprintf(at, (size_t)(end - at), "), }");
    /* Spaces and a newline, so that the elements are aligned. */
    while ((at - text + 1) % ALIGNMENT != 0)
        *at++ = ' ';
    *at++ = '\n';
    size_t header = (size_t)(at - text) - PROLOGUE_BYTES;
    memcpy(text, MAGIC, MAGIC_BYTES);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)(header & 255);
    text[9] = (char)(header >> 8);
    return eddy_file_write(file, text, (size_t)(at - text));
}

eddy_status eddy_npy_write(eddy_file *file, eddy_tensor *tensor) {
    eddy_status status = write_header(file, tensor);
    return status == EDDY_OK ? eddy_file_write_elements(file, tensor) : status;
}

eddy_status eddy_npy_save(eddy_tensor *tensor, const char *path,
                          const eddy_npy_save_options *options) {
    eddy_origin origin = EDDY_ORIGIN("npy_save");
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    eddy_file file;
    eddy_status status = eddy_tensor_check_shape_until(tensor, deadline, origin);
    if (status == EDDY_OK)
        status = eddy_file_write_begin(&file, path, deadline, origin);
    if (status != EDDY_OK)
        return status;
    return eddy_file_end(&file, eddy_npy_write(&file, tensor));
}

/* ---- in ---- */

typedef struct header {
    eddy_dtype dtype;
    bool is_swapped, is_fortran;
    eddy_shape shape;
} header;

/* The text after 'key': in the dict; NULL if there is no such key. */
static const char *value_of(const char *text, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "'%s'", key);
    const char *at = strstr(text, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    while (isspace((unsigned char)*at))
        at++;
    if (*at++ != ':')
        return NULL;
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Describes a type that Eddy does not have, and how to convert it. `at` points to numpy's code, in quotes or as a list. */
static const char *explain_type(const char *at) {
    static const struct {
        char kind;
        const char *sentence;
    } kinds[] = {
        {'O', "pickled Python objects, which are never read: they may hold code"},
        {'c', "complex numbers; save real and imaginary parts as two arrays"},
        {'U', "texts"},
        {'S', "texts"},
        {'M', "dates; save them as i64"},
        {'m', "times; save them as i64"},
        {'V', "bytes without a type; bf16 goes through safetensors"},
        {'u', "unsigned integers of more than 8 bits; save them as i32 or i64"},
    };
    if (*at == '[')
        return "records of several fields; save each field as an array of its own";
    char kind = *at && at[1] ? at[2] : '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].kind == kind)
            return kinds[i].sentence;
    return "of a type that Eddy does not have";
}

static eddy_status parse_type(const eddy_file *file, const char *at, header *result) {
    if (!at)
        return eddy_file_fail(file, EDDY_IO, "the header does not say the type of the elements");
    bool is_short = (*at == '\'' || *at == '"') && strlen(at) >= 5 && at[4] == at[0];
    for (size_t i = 0; i < CODE_COUNT && is_short; i++)
        if (strncmp(at + 2, codes[i].code, 2) == 0) {
            result->dtype = codes[i].dtype;
            result->is_swapped = at[1] == '>';
            if (strchr("<>|=", at[1]))
                return EDDY_OK;
        }
    int length = *at == '[' ? 0 : 1 + (int)strcspn(at + 1, "\"'") + 1;
    return eddy_file_fail(file, EDDY_UNSUPPORTED, "its elements are %s%s%.*s%s", explain_type(at),
                          length ? " (" : "", length < 16 ? length : 16, at, length ? ")" : "");
}

static eddy_status parse_shape(const eddy_file *file, const char *at, eddy_shape *shape) {
    *shape = (eddy_shape){0};
    bool is_whole = at && *at++ == '(';
    while (is_whole) {
        while (isspace((unsigned char)*at) || *at == ',')
            at++;
        if (*at == ')')
            return EDDY_OK;
        char *end;
        long long dim = strtoll(at, &end, 10);
        is_whole = end > at && isdigit((unsigned char)*at) && dim < LLONG_MAX &&
                   shape->rank < EDDY_RANK_MAX;
        if (is_whole)
            shape->dims[shape->rank++] = dim;
        at = end;
    }
    return eddy_file_fail(file, EDDY_IO, "a shape that is damaged, or of a rank above %d",
                          EDDY_RANK_MAX);
}

static eddy_status parse(const eddy_file *file, const char *text, header *result) {
    const char *order = value_of(text, "fortran_order");
    eddy_status status = parse_type(file, value_of(text, "descr"), result);
    if (status == EDDY_OK)
        status = parse_shape(file, value_of(text, "shape"), &result->shape);
    if (status != EDDY_OK)
        return status;
    result->is_fortran = order && strncmp(order, "True", 4) == 0;
    if (!result->is_fortran && (!order || strncmp(order, "False", 5) != 0))
        return eddy_file_fail(file, EDDY_IO, "the header does not say the order of the elements");
    return EDDY_OK;
}

static eddy_status read_header(eddy_file *file, header *result) {
    unsigned char prologue[12];
    eddy_status status = eddy_file_read(file, prologue, PROLOGUE_BYTES);
    if (status != EDDY_OK)
        return status;
    if (memcmp(prologue, MAGIC, MAGIC_BYTES) != 0 || prologue[6] < 1 || prologue[6] > 3)
        return eddy_file_fail(file, EDDY_IO, "no .npy file of version 1 to 3");
    size_t bytes = prologue[8] | (size_t)prologue[9] << 8;
    if (prologue[6] > 1) {
        status = eddy_file_read(file, prologue + 10, 2);
        bytes |= (size_t)prologue[10] << 16 | (size_t)prologue[11] << 24;
    }
    if (status != EDDY_OK)
        return status;
    if (bytes > HEADER_MAX)
        return eddy_file_fail(file, EDDY_IO, "a header of %zu bytes", bytes);
    char *text = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_TEXT);
    if (!text)
        return eddy_file_fail(file, EDDY_OUT_OF_MEMORY, "no memory");
    status = eddy_file_read(file, text, bytes);
    text[bytes] = 0;
    if (status == EDDY_OK)
        status = parse(file, text, result);
    eddy_memory_release(text, bytes + 1, EDDY_MEMORY_TEXT);
    return status;
}

/* The first axis is the innermost: read as a tensor of the reversed shape, whose axes are then reversed. */
static eddy_tensor *from_fortran(eddy_tensor *reversed) {
    eddy_axes axes = {.count = eddy_rank_of(reversed)};
    for (int32_t d = 0; d < axes.count; d++)
        axes.axes[d] = axes.count - 1 - d;
    eddy_caller *caller = eddy_caller_get();
    eddy_recorder *recorder = eddy_recorder_set_aside(caller);
    eddy_tensor *turned = eddy_permute(reversed, axes), *result = eddy_contiguous(turned);
    eddy_recorder_go_on(caller, recorder);
    eddy_release(&turned);
    eddy_release(&reversed);
    return result;
}

eddy_tensor *eddy_npy_read(eddy_file *file) {
    header found = {0};
    if (read_header(file, &found) != EDDY_OK)
        return NULL;
    eddy_shape shape = found.shape;
    for (int32_t d = 0; d < shape.rank && found.is_fortran; d++)
        shape.dims[d] = found.shape.dims[shape.rank - 1 - d];
    eddy_tensor *tensor = eddy_file_read_elements(file, &shape, found.dtype, found.is_swapped);
    return tensor && found.is_fortran ? from_fortran(tensor) : tensor;
}

eddy_tensor *eddy_npy_load(const char *path) {
    eddy_file file;
    if (eddy_file_read_begin(&file, path, EDDY_ORIGIN("npy_load")) != EDDY_OK)
        return NULL;
    eddy_tensor *tensor = eddy_npy_read(&file);
    (void)!eddy_file_end(&file, EDDY_OK);
    return tensor;
}
