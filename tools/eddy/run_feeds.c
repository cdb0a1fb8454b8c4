#include "run_feeds.h"

#include "library_error.h"
#include "memory.h"
#include <eddy/file.h>
#include <eddy/host.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* The binding that "NAME=PATH" names, the longest name where several fit; -1: none. */
static int64_t find(const char *text, const eddy_program_binding_info *bindings, int64_t count) {
    size_t longest = 0;
    int64_t found = -1;
    for (int64_t b = 0; b < count; b++) {
        size_t length = strlen(bindings[b].name);
        if (strncmp(text, bindings[b].name, length) == 0 && text[length] == '=' &&
            (found < 0 || length > longest)) {
            found = b;
            longest = length;
        }
    }
    return found;
}

static void fail_unknown(const tool_arguments *arguments, const char *option, const char *text,
                         const eddy_program_binding_info *bindings, int64_t count) {
    char names[512] = "";
    for (int64_t b = 0; b < count; b++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof(names) - length, "%s%s", b ? ", " : "", bindings[b].name);
    }
    (void)tool_fail(arguments, "%s %s begins with no name and =; there %s %s", option, text,
                    count == 1 ? "is" : "are", count > 0 ? names : "none");
}

bool run_paths(const tool_arguments *arguments, const char *option,
               const eddy_program_binding_info *bindings, int64_t count, const char **paths) {
    const char *text;
    for (int i = 0; (text = tool_value_at(arguments, option, i)); i++) {
        int64_t b = find(text, bindings, count);
        if (b < 0) {
            fail_unknown(arguments, option, text, bindings, count);
            return false;
        }
        if (paths[b]) {
            (void)tool_fail(arguments, "%s names %s twice", option, bindings[b].name);
            return false;
        }
        paths[b] = text + strlen(bindings[b].name) + 1;
    }
    return true;
}

/* ---- elements ---- */

void run_format_shape(eddy_dtype dtype, const eddy_shape *shape, char *buffer, size_t size) {
    int length = snprintf(buffer, size, "%s[", eddy_dtype_name(dtype));
    for (int32_t a = 0; a < shape->rank && length > 0 && (size_t)length < size; a++)
        length += snprintf(buffer + length, size - (size_t)length, "%s%" PRId64, a ? ", " : "",
                           shape->dims[a]);
    if (length > 0 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, "]");
}

static bool fits(const tool_arguments *arguments, const run_feed *feed) {
    char is[400], wanted[400];
    const eddy_program_binding_info *binding = &feed->binding;
    eddy_shape shape = eddy_shape_of(feed->tensor);
    if (eddy_dtype_of(feed->tensor) == binding->dtype && shape.rank == binding->shape.rank &&
        memcmp(shape.dims, binding->shape.dims, (size_t)shape.rank * sizeof(shape.dims[0])) == 0)
        return true;
    run_format_shape(eddy_dtype_of(feed->tensor), &shape, is, sizeof(is));
    run_format_shape(binding->dtype, &binding->shape, wanted, sizeof(wanted));
    (void)tool_fail(arguments, "input %s is %s, and %s has %s", binding->name, wanted, feed->path,
                    is);
    return false;
}

/* Floats are from 0 to 1; what is none is 0. On the CPU, so that the same numbers come whatever the device. */
static eddy_tensor *random_tensor(const eddy_program_binding_info *binding) {
    eddy_dtype dtype = binding->dtype;
    bool is_float =
        dtype == EDDY_F32 || dtype == EDDY_F64 || dtype == EDDY_F16 || dtype == EDDY_BF16;
    return is_float ? eddy_rand(binding->shape, dtype, EDDY_OPTIONS(rand, .device = EDDY_CPU))
                    : eddy_zeros(binding->shape, dtype, EDDY_OPTIONS(zeros, .device = EDDY_CPU));
}

/* ---- inputs ---- */

bool run_feed_is_donated(const run_feed *feed) {
    return feed->binding.role == EDDY_ROLE_DONATED;
}

bool run_feed_is_data(const run_feed *feed) {
    int64_t stride = 1;
    const eddy_program_binding_info *binding = &feed->binding;
    for (int32_t a = binding->shape.rank - 1; a >= 0; a--) {
        if (binding->strides[a] != stride)
            return true;
        stride *= binding->shape.dims[a] > 0 ? binding->shape.dims[a] : 1;
    }
    return false;
}

/* The elements, as runs are given them again and again. */
static bool keep(run_feed *feed) {
    feed->bytes =
        (size_t)eddy_count_of(feed->tensor) * eddy_dtype_bytes(eddy_dtype_of(feed->tensor));
    feed->data = tool_malloc(feed->bytes);
    bool is_read = eddy_read(feed->tensor, feed->data, feed->bytes, NULL) == EDDY_OK;
    eddy_release(&feed->tensor);
    return is_read;
}

bool run_feed_make(const tool_arguments *arguments, run_feed *feed) {
    feed->tensor = feed->path ? eddy_npy_load(feed->path) : random_tensor(&feed->binding);
    bool is_there = feed->tensor != NULL;
    if (is_there && feed->path && !fits(arguments, feed))
        return false;
    if (is_there && (run_feed_is_donated(feed) || run_feed_is_data(feed))) {
        is_there = keep(feed);
    } else if (is_there) {
        eddy_tensor *moved = eddy_to_device(feed->tensor, feed->binding.device);
        eddy_release(&feed->tensor);
        feed->tensor = moved;
        is_there = moved && eddy_wait(moved, EDDY_FOREVER) == EDDY_OK;
    }
    if (!is_there)
        (void)tool_fail_library(arguments, feed->binding.name);
    return is_there;
}

bool run_feed_renew(const tool_arguments *arguments, run_feed *feed) {
    if (!run_feed_is_donated(feed) || run_feed_is_data(feed))
        return true;
    eddy_release(&feed->tensor);
    feed->tensor = eddy_from_data(feed->data, feed->binding.shape, feed->binding.dtype,
                                  EDDY_OPTIONS(from_data, .device = feed->binding.device));
    if (!feed->tensor)
        (void)tool_fail_library(arguments, feed->binding.name);
    return feed->tensor != NULL;
}

void run_feed_free(run_feed *feed) {
    eddy_release(&feed->tensor);
    free(feed->data);
}
