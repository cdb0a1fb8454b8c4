#include "tensor.h"
#include "planned.h"
#include <base/dtype.h>
#include <base/shape.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 192

uint64_t test_seed = 20240607;
static uint64_t state;
static bool is_seeded;

uint64_t test_random(void) {
    if (!is_seeded) {
        const char *text = getenv("EDDY_TEST_SEED");
        if (text != NULL)
            test_seed = strtoull(text, NULL, 0);
        state = test_seed;
        is_seeded = true;
    }
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t test_below(int64_t bound) {
    return (int64_t)(test_random() % (uint64_t)bound);
}

double test_unit(void) {
    return (double)(test_random() >> 11) * 0x1p-53;
}

const char *layout_name(layout l) {
    static const char *const names[] = {"contiguous", "unaligned", "strided",
                                        "negative",   "turned",    "broadcast"};
    return names[l];
}

tensor tensor_make(eddy_dtype dtype, int32_t rank, const int64_t *shape, layout l) {
    tensor t = {.count = 1};
    int64_t step = l == STRIDED ? 2 : 1, span = 1, offset = 0;
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = l == TURNED ? i : rank - 1 - i;
        t.shape[d] = shape[d];
        t.count *= shape[d];
        if (l == BROADCAST && d == 0) {
            t.strides[d] = 0;
            continue;
        }
        t.strides[d] = span * step;
        span *= (shape[d] > 0 ? shape[d] : 1) * step;
        if (l == NEGATIVE && d % 2 == 0 && shape[d] > 0) {
            offset += (shape[d] - 1) * t.strides[d];
            t.strides[d] = -t.strides[d];
        }
    }
    cr_assert_leq(t.count, UINT32_MAX, "tensor_at takes no more");
    if (l == UNALIGNED)
        offset = 1;
    size_t element = eddy_dtype_bytes(dtype);
    t.bytes = GUARD + (size_t)(span + 1) * element + GUARD;
    t.bytes = (t.bytes + 63) / 64 * 64;
    t.memory = aligned_alloc(64, t.bytes);
    t.before = malloc(t.bytes);
    for (size_t i = 0; i < t.bytes; i += sizeof(uint64_t)) {
        uint64_t noise = (test_random() & 0x3f3f3f3f3f3f3f3f) | 0x4040404040404040;
        memcpy(t.memory + i, &noise, sizeof(noise));
    }
    memcpy(t.before, t.memory, t.bytes);
    t.view = (eddy_op_view){
        .data = t.memory + GUARD + (size_t)offset * element, .dtype = dtype, .rank = rank};
    if (dtype == EDDY_BOOL)
        for (int64_t i = 0; i < t.count; i++)
            *(char *)tensor_at(&t, i) = 0;
    return t;
}

void tensor_free(tensor *t) {
    free(t->memory);
    free(t->before);
    t->memory = t->before = NULL;
}

/* Divides by 32 bits, which takes half as long: checks spend their time here. */
void *tensor_at(const tensor *t, int64_t flat) {
    int64_t offset = 0;
    uint32_t rest = (uint32_t)flat;
    for (int32_t d = t->view.rank - 1; d > 0; d--) {
        uint32_t dim = (uint32_t)t->shape[d];
        offset += rest % dim * t->strides[d];
        rest /= dim;
    }
    if (t->view.rank > 0)
        offset += rest * t->strides[0];
    return (char *)t->view.data + offset * (int64_t)eddy_dtype_bytes(t->view.dtype);
}

double tensor_get(const tensor *t, int64_t flat) {
    return eddy_dtype_load_f64(t->view.dtype, tensor_at(t, flat));
}

double *tensor_values(const tensor *t) {
    double *values = malloc(sizeof(*values) * (size_t)(t->count + 1));
    for (int64_t i = 0; i < t->count; i++)
        values[i] = tensor_get(t, i);
    return values;
}

int64_t tensor_get_int(const tensor *t, int64_t flat) {
    return eddy_dtype_load_i64(t->view.dtype, tensor_at(t, flat));
}

void tensor_set(tensor *t, int64_t flat, double value) {
    eddy_dtype_store_f64(t->view.dtype, tensor_at(t, flat), value);
}

void tensor_set_int(tensor *t, int64_t flat, int64_t value) {
    eddy_dtype_store_i64(t->view.dtype, tensor_at(t, flat), value);
}

int64_t tensor_wrap_int(eddy_dtype dtype, int64_t value) {
    switch (dtype) {
    case EDDY_I8:
        return (int8_t)value;
    case EDDY_U8:
        return (uint8_t)value;
    case EDDY_I16:
        return (int16_t)value;
    case EDDY_I32:
        return (int32_t)value;
    default:
        return value;
    }
}

void tensor_fill(tensor *t, double range) {
    for (int64_t i = 0; i < t->count; i++) {
        double value = (2 * test_unit() - 1) * range;
        if (!eddy_dtype_is_float(t->view.dtype))
            value = floor(value);
        if (t->view.dtype == EDDY_U8 || t->view.dtype == EDDY_BOOL)
            value = fabs(value);
        if (t->view.dtype == EDDY_BOOL)
            value = test_random() & 1;
        tensor_set(t, i, value);
    }
}

bool tensor_guards_hold(const tensor *t) {
    size_t element = eddy_dtype_bytes(t->view.dtype);
    char *is_element = calloc(1, t->bytes);
    for (int64_t i = 0; i < t->count; i++)
        memset(is_element + ((char *)tensor_at(t, i) - t->memory), 1, element);
    bool holds = true;
    for (size_t i = 0; i < t->bytes; i++)
        if (!is_element[i] && t->memory[i] != t->before[i])
            holds = false;
    free(is_element);
    return holds;
}

bool tensor_same(const tensor *a, const tensor *b) {
    size_t element = eddy_dtype_bytes(a->view.dtype);
    for (int64_t i = 0; i < a->count; i++)
        if (memcmp(tensor_at(a, i), tensor_at(b, i), element) != 0)
            return false;
    return true;
}

bool tensor_agrees(const tensor *a, const tensor *b) {
    size_t element = eddy_dtype_bytes(a->view.dtype);
    for (int64_t i = 0; i < a->count; i++)
        if (memcmp(tensor_at(a, i), tensor_at(b, i), element) != 0 &&
            !(isnan(tensor_get(a, i)) && isnan(tensor_get(b, i))))
            return false;
    return true;
}

eddy_status run_kernel(const eddy_kernel *kernel, tensor *const *tensors, int32_t count,
                       const void *attributes, eddy_kernel_team *team, eddy_kernel_error *error) {
    eddy_kernel_error own = {.position = INT64_MAX};
    eddy_op_view views[64];
    for (int32_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) {
            views[i] = (eddy_op_view){.rank = -1};
            continue;
        }
        views[i] = tensors[i]->view;
        views[i].shape = tensors[i]->shape;
        views[i].strides = tensors[i]->strides;
        if (tensors[i]->count == 0)
            views[i].data = NULL;
    }
    eddy_kernel_call call = {.kernel = kernel,
                             .views = views,
                             .view_count = count,
                             .attributes = attributes,
                             .team = team,
                             .error = &own};
    planned_call planned;
    planned_begin(&planned, &call);
    size_t bytes = call.workspace_bytes, padded = (bytes + 63) / 64 * 64;
    unsigned char *workspace = aligned_alloc(64, padded + 64);
    memset(workspace, 0xa5, padded + 64);
    call.workspace = workspace;
    planned.plan.run(&call);
    for (size_t i = bytes; i < padded + 64; i++)
        cr_assert_eq(workspace[i], 0xa5, "%s wrote past its workspace, seed %llu", kernel->name,
                     (unsigned long long)test_seed);
    free(workspace);
    planned_end(&planned, &call);
    if (error != NULL)
        memcpy((void *)error, (const void *)&own, sizeof(own));
    return (eddy_status)eddy_load_relaxed(&own.status);
}

double ulp_distance(eddy_dtype dtype, double got, double want) {
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    if (!isfinite(got) || !isfinite(want))
        return INFINITY;
    int digits = 53, least = -1074;
    switch (dtype) {
    case EDDY_F32:
        digits = 24, least = -149;
        break;
    case EDDY_F16:
        digits = 11, least = -24;
        break;
    case EDDY_BF16:
        digits = 8, least = -133;
        break;
    default:
        break;
    }
    int exponent;
    frexp(want, &exponent);
    int unit = exponent - digits < least ? least : exponent - digits;
    return fabs(got - want) / ldexp(1, unit);
}

const char *describe(const char *op, const tensor *t, layout l) {
    static _Thread_local char text[256];
    char shape[128];
    eddy_shape_format(t->view.rank, t->shape, shape, sizeof(shape));
    snprintf(text, sizeof(text), "%s %s %s %s seed %llu", op, eddy_dtype_name(t->view.dtype), shape,
             layout_name(l), (unsigned long long)test_seed);
    return text;
}
