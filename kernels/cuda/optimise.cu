/* Steps of optimisers: of each item's elements all are read and written once. */
#include <kernels/adam.h>
#include <kernels/cuda/list.cuh>
#include <kernels/cuda/optimise.h>

namespace {

template <class made> EDDY_CUDA_MEMBER made numbers_at(const void *address) {
    made numbers;
    memcpy(&numbers, address, sizeof(numbers));
    return numbers;
}

#define OPTIMISER(name, tag, real, operand_count, address, ...)                                    \
    struct name##_##tag {                                                                          \
        static constexpr int operands = operand_count, unwritten = 1;                              \
        const eddy_##name##_numbers numbers;                                                       \
        EDDY_CUDA_MEMBER explicit name##_##tag(const uint64_t *attributes)                         \
            : numbers(numbers_at<eddy_##name##_numbers>(address)) {                                \
        }                                                                                          \
        static EDDY_CUDA_MEMBER bool has_nothing_to_do() {                                         \
            return false;                                                                          \
        }                                                                                          \
        EDDY_CUDA_MEMBER void operator()(real *x) const {                                          \
            eddy_##name##_##tag(&numbers, __VA_ARGS__);                                            \
        }                                                                                          \
    };
OPTIMISER(sgd, f32, float, 2, attributes, &x[0], x[1])
OPTIMISER(sgd, f64, double, 2, attributes, &x[0], x[1])
OPTIMISER(momentum, f32, float, 3, attributes, &x[0], x[1], &x[2])
OPTIMISER(momentum, f64, double, 3, attributes, &x[0], x[1], &x[2])
OPTIMISER(adam, f32, float, 4, (const void *)(uintptr_t)attributes[0], &x[0], x[1], &x[2], &x[3])
OPTIMISER(adam, f64, double, 4, (const void *)(uintptr_t)attributes[0], &x[0], x[1], &x[2], &x[3])

} // namespace

/* By the type in which a dtype is computed. */
#define STEP_f32(op) op##_f32
#define STEP_f64(op) op##_f64
#define STEP_f16(op) op##_f32
#define STEP_bf16(op) op##_f32
#define KERNELS(op, name, dtype)                                                                   \
    EDDY_CUDA_KERNEL(eddy_##op##_##name##_list, eddy_cuda_list) {                                  \
        eddy_cuda_update_list<STEP_##name(op), eddy_cuda_##name>(parameters);                      \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_##op##_##name##_strided, eddy_cuda_strided) {                            \
        eddy_cuda_update_strided<STEP_##name(op), eddy_cuda_##name>(parameters);                   \
    }
EDDY_CUDA_OPTIMISERS(KERNELS)

EDDY_CUDA_KERNEL(eddy_adam_advance, eddy_cuda_adam_advance) {
    const eddy_cuda_adam_advance &p = parameters;
    if (eddy_cuda_is_skipped(p.gate) || (blockIdx.x | threadIdx.x) != 0)
        return;
    *p.step += 1;
    *p.numbers = eddy_adam_numbers_of(&p.attributes, p.is_decoupled, *p.step);
}
