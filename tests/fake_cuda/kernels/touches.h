/* Saying what a kernel touches, by its parameters: for the fake driver (tests/fake_cuda/README.md). C++. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_TOUCHES_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_TOUCHES_H

#include <stddef.h>
#include <stdint.h>

typedef void touch_fn(void *context, const void *begin, size_t bytes, int is_write);

/* Bytes [begin, end) from an address on. */
struct range {
    int64_t begin, end;

    void reach(int64_t last, int64_t stride) {
        *(stride < 0 ? &begin : &end) += last * stride;
    }
    void touch(touch_fn *say, void *context, const void *data, bool is_write) const {
        say(context, (const char *)data + begin, (size_t)(end - begin), is_write);
    }
};

/* `count` things, at least one, that are `step` bytes apart. */
inline void touch_line(const void *data, int64_t count, int64_t step, int64_t bytes, bool is_write,
                       touch_fn *say, void *context) {
    range all = {0, bytes};
    all.reach(count - 1, step);
    all.touch(say, context, data, is_write);
}

/* The kernel's parameters are a `type`, for which `function` says all. */
#define TOUCHES(name, type, function, ...)                                                         \
    extern "C" void name##_touches(const void *parameters, touch_fn *say, void *context);          \
    void name##_touches(const void *parameters, touch_fn *say, void *context) {                    \
        function(*(const type *)parameters, __VA_ARGS__, say, context);                            \
    }

#endif
