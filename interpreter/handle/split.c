/* Splitting a tensor into views along an axis. */
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/split.h>
#include <interpreter/handle/tensor.h>

#include <eddy/view.h>
#include <stdarg.h>
#include <stdio.h>

/* A split being made: part i is `size` long, or sizes[i] if there are sizes; the last may be shorter. */
typedef struct splitting {
    eddy_origin origin;
    eddy_tensor *tensor;
    int32_t axis;
    int64_t dim, size, count;
    const int64_t *sizes;
} splitting;

/* "split: sentence (f32[2, 3])" */
static eddy_status fail(const splitting *s, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);

static eddy_status fail(const splitting *s, eddy_status status, const char *format, ...) {
    char sentence[160], operand[EDDY_RANK_MAX * 22];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    eddy_tensor_describe(s->tensor, operand, sizeof(operand));
    return eddy_fail(status, s->origin, "%s (%s)", sentence, operand);
}

static eddy_status begin(splitting *s, int32_t axis) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, s->origin);
    eddy_status status = eddy_tensor_check_shape(s->tensor, s->origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_shape_axis_normalize(axis, s->tensor->rank, &s->axis) || s->tensor->rank == 0)
        return fail(s, EDDY_OUT_OF_RANGE, "axis %d is out of range for rank %d", (int)axis,
                    (int)s->tensor->rank);
    s->dim = s->tensor->axes[s->axis].dim;
    return EDDY_OK;
}

static eddy_tensor *make_part(const splitting *s, int64_t i, int64_t at, int64_t *length) {
    *length = s->sizes ? s->sizes[i] : s->size;
    if (*length > s->dim - at)
        *length = s->dim - at;
    return eddy_narrow(s->tensor, s->axis, at, *length);
}

/* Makes the parts: all or none. */
static eddy_status make_parts(const splitting *s, eddy_tensor **outputs) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    int64_t made = 0;
    for (int64_t at = 0, length;
         made < s->count && (outputs[made] = make_part(s, made, at, &length)); made++)
        at += length;
    eddy_outcome_end(&outcome);
    if (made == s->count)
        return EDDY_OK;
    while (made-- > 0)
        eddy_release(&outputs[made]);
    return eddy_outcome_why(&outcome);
}

/* Writes the number of parts to *count, and the parts if there is an array for them. */
static eddy_status finish(const splitting *s, eddy_tensor **outputs, int64_t capacity,
                          int64_t *count) {
    if (outputs && capacity < s->count)
        return fail(s, EDDY_INVALID_ARGUMENT, "%lld parts do not fit into an array of %lld",
                    (long long)s->count, (long long)capacity);
    eddy_status status = outputs ? make_parts(s, outputs) : EDDY_OK;
    if (status == EDDY_OK && count)
        *count = s->count;
    return status;
}

eddy_status eddy_split_sized(eddy_tensor *tensor, int64_t size, int32_t axis, eddy_tensor **outputs,
                             int64_t capacity, int64_t *count, const void *address) {
    splitting s = {.origin = {"split", address}, .tensor = tensor, .size = size};
    eddy_status status = begin(&s, axis);
    if (status != EDDY_OK)
        return status;
    if (size < 0 || (size == 0 && s.dim > 0))
        return fail(&s, EDDY_INVALID_ARGUMENT, "parts of %lld from an axis of %lld",
                    (long long)size, (long long)s.dim);
    s.count = s.dim == 0 ? 1 : (s.dim - 1) / size + 1;
    return finish(&s, outputs, capacity, count);
}

eddy_status eddy_split(eddy_tensor *tensor, int64_t size, int32_t axis, eddy_tensor **outputs,
                       int64_t capacity, int64_t *count) {
    return eddy_split_sized(tensor, size, axis, outputs, capacity, count, EDDY_CALL_ADDRESS());
}

eddy_status eddy_split_sizes(eddy_tensor *tensor, const int64_t *sizes, int64_t count, int32_t axis,
                             eddy_tensor **outputs) {
    splitting s = {
        .origin = EDDY_ORIGIN("split_sizes"), .tensor = tensor, .sizes = sizes, .count = count};
    eddy_status status = begin(&s, axis);
    if (status != EDDY_OK)
        return status;
    int64_t left = s.dim;
    if (count > 0 && (!sizes || !outputs))
        return fail(&s, EDDY_INVALID_ARGUMENT, "%s is NULL", sizes ? "outputs" : "sizes");
    bool fits = count >= 0;
    for (int64_t i = 0; fits && i < count; i++) {
        fits = sizes[i] >= 0 && sizes[i] <= left;
        left -= fits ? sizes[i] : 0;
    }
    if (!fits || left != 0)
        return fail(&s, EDDY_INVALID_ARGUMENT, "the sizes are not %lld numbers that add up to %lld",
                    (long long)count, (long long)s.dim);
    return make_parts(&s, outputs);
}

eddy_status eddy_split_chunked(eddy_tensor *tensor, int64_t chunks, int32_t axis,
                               eddy_tensor **outputs, int64_t capacity, int64_t *count,
                               const void *address) {
    splitting s = {.origin = {"chunk", address}, .tensor = tensor};
    eddy_status status = begin(&s, axis);
    if (status != EDDY_OK)
        return status;
    if (chunks < 1)
        return fail(&s, EDDY_INVALID_ARGUMENT, "there cannot be %lld parts", (long long)chunks);
    s.size = s.dim / chunks + (s.dim % chunks != 0);
    s.count = s.dim == 0 ? chunks : (s.dim - 1) / s.size + 1;
    return finish(&s, outputs, capacity, count);
}

eddy_status eddy_chunk(eddy_tensor *tensor, int64_t chunks, int32_t axis, eddy_tensor **outputs,
                       int64_t capacity, int64_t *count) {
    return eddy_split_chunked(tensor, chunks, axis, outputs, capacity, count, EDDY_CALL_ADDRESS());
}
