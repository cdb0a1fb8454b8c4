/* What kernels touch that update lists of tensors. */
#include <kernels/cuda/optimise.h>
#include <tests/fake_cuda/kernels/touches.h>

/* All operands but number `unwritten` are written. */
static void touch_list(const eddy_cuda_list &p, int operands, int unwritten, int64_t bytes,
                       touch_fn *say, void *context) {
    for (int i = 0; i < p.items; i++)
        for (int o = 0; o < operands; o++)
            range{0, p.item[i].count * bytes}.touch(say, context, p.item[i].data[o],
                                                    o != unwritten);
}

/* The first operand comes last. */
static void touch_strided(const eddy_cuda_strided &p, int operands, int unwritten, int64_t bytes,
                          touch_fn *say, void *context) {
    for (int o = 0; o < operands; o++) {
        const int place = (o + operands - 1) % operands;
        range all = {0, bytes};
        for (int d = 0; d < p.rank; d++)
            all.reach((int64_t)p.dims[d].divisor - 1, p.strides[place][d]);
        all.touch(say, context, p.data[place], o != unwritten);
    }
}

/* An operand of the device that the attributes name. */
static void touch_named(const uint64_t *attributes, int64_t bytes, touch_fn *say, void *context) {
    if (bytes > 0)
        range{0, bytes}.touch(say, context, (const void *)(uintptr_t)attributes[0], false);
}

static void touch_update_list(const eddy_cuda_list &p, int operands, int unwritten,
                              int64_t named_bytes, int64_t bytes, touch_fn *say, void *context) {
    touch_named(p.attributes, named_bytes, say, context);
    touch_list(p, operands, unwritten, bytes, say, context);
}

static void touch_update_strided(const eddy_cuda_strided &p, int operands, int unwritten,
                                 int64_t named_bytes, int64_t bytes, touch_fn *say, void *context) {
    touch_named(p.attributes, named_bytes, say, context);
    touch_strided(p, operands, unwritten, bytes, say, context);
}

static void touch_advance(const eddy_cuda_adam_advance &p, touch_fn *say, void *context) {
    range{0, sizeof(*p.step)}.touch(say, context, p.step, true);
    range{0, sizeof(*p.numbers)}.touch(say, context, p.numbers, true);
}

static void touch_sums(const eddy_cuda_list &p, int64_t bytes, touch_fn *say, void *context) {
    for (int i = 0; i < p.items; i++) {
        const int64_t slices = (p.item[i].count + p.chunk - 1) / p.chunk;
        range{0, p.item[i].count * bytes}.touch(say, context, p.item[i].data[0], false);
        range{0, slices * (int64_t)sizeof(double)}.touch(say, context, p.item[i].data[1], true);
    }
}

static void touch_norm(const eddy_cuda_clip_norm &p, int64_t bytes, touch_fn *say, void *context) {
    range{0, p.slices * (int64_t)sizeof(double)}.touch(say, context, p.sums, false);
    range{0, sizeof(double)}.touch(say, context, p.scale, true);
    if (p.norm)
        range{0, bytes}.touch(say, context, p.norm, true);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
static const int operands_of_sgd = 2, operands_of_momentum = 3, operands_of_adam = 4;
static const int64_t named_by_sgd = 0, named_by_momentum = 0,
                     named_by_adam = sizeof(eddy_adam_numbers);

#define UPDATES(op, name, ...)                                                                     \
    TOUCHES(eddy_##op##_##name##_list, eddy_cuda_list, touch_update_list, __VA_ARGS__,             \
            bytes_of_##name)                                                                       \
    TOUCHES(eddy_##op##_##name##_strided, eddy_cuda_strided, touch_update_strided, __VA_ARGS__,    \
            bytes_of_##name)
#define OPTIMISER(op, name, dtype) UPDATES(op, name, operands_of_##op, 1, named_by_##op)
#define SCALE(op, name, dtype) UPDATES(op, name, 1, -1, sizeof(double))
#define SUM(op, name, dtype)                                                                       \
    TOUCHES(eddy_##op##_##name, eddy_cuda_list, touch_sums, bytes_of_##name)
#define NORM(op, name, dtype)                                                                      \
    TOUCHES(eddy_##op##_##name, eddy_cuda_clip_norm, touch_norm, bytes_of_##name)
EDDY_CUDA_OPTIMISERS(OPTIMISER)
EDDY_CUDA_CLIP_SUMS(SUM)
EDDY_CUDA_CLIP_NORMS(NORM)
EDDY_CUDA_CLIP_SCALES(SCALE)

extern "C" void eddy_adam_advance_touches(const void *parameters, touch_fn *say, void *context);
void eddy_adam_advance_touches(const void *parameters, touch_fn *say, void *context) {
    touch_advance(*(const eddy_cuda_adam_advance *)parameters, say, context);
}
