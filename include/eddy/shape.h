/* Shapes, axes and lists: plain values that a call copies. */
#ifndef EDDY_SHAPE_H
#define EDDY_SHAPE_H

#include <eddy/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EDDY_RANK_MAX 16

/* Dimensions, outermost first; 0 is a legal size. rank 0 is a single number. */
typedef struct eddy_shape {
    int32_t rank;
    int64_t dims[EDDY_RANK_MAX];
} eddy_shape;

/* Axes; negative ones count from the end. EDDY_AXES(0, -1) names two, EDDY_ALL_AXES is all of them, whatever the rank. EDDY_AXES()
 * names none, which has PyTorch's meaning: all axes in reductions, none in flip and squeeze, and in roll the elements in
 * row-major order. */
typedef struct eddy_axes {
    int32_t count; /* -1: all axes */
    int32_t axes[EDDY_RANK_MAX];
} eddy_axes;

/* Two numbers of an option, for the last two axes: .padding = {1, 2}. */
typedef struct eddy_pair {
    int64_t height, width;
} eddy_pair;

/* As a parameter: eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL). */
#ifndef __cplusplus
#define EDDY_PAIR(height, width) ((eddy_pair){height, width})
#else
#define EDDY_PAIR(height, width) (eddy_pair{height, width})
#endif

typedef struct eddy_tensor eddy_tensor;

/* Tensors, borrowed for the call. */
typedef struct eddy_list {
    eddy_tensor *const *items;
    int64_t count;
} eddy_list;

/* EDDY_SHAPE(64, 784); EDDY_SHAPE() is rank 0. EDDY_LIST(a, b) refers to a temporary array: for one call. EDDY_ARRAY(params) lists
 * all items of an array of the program; the length of a pointer is not known, and compilers warn. A C compiler warns of more than
 * 16 dimensions or axes; the call refuses them. */
#ifndef __cplusplus
#define EDDY_COUNT_DIMS(type, ...) ((int32_t)(sizeof((type[]){0, __VA_ARGS__}) / sizeof(type)) - 1)
#define EDDY_SHAPE(...) ((eddy_shape){EDDY_COUNT_DIMS(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define EDDY_AXES(...) ((eddy_axes){EDDY_COUNT_DIMS(int32_t, __VA_ARGS__), {__VA_ARGS__}})
#define EDDY_ALL_AXES ((eddy_axes){-1, {0}})
#define EDDY_LIST(...)                                                                             \
    ((eddy_list){(eddy_tensor *const[]){__VA_ARGS__},                                              \
                 (int64_t)(sizeof((eddy_tensor *[]){__VA_ARGS__}) / sizeof(eddy_tensor *))})
#define EDDY_ARRAY(array) ((eddy_list){(array), (int64_t)(sizeof(array) / sizeof((array)[0]))})
#endif

#ifdef __cplusplus
}

#include <initializer_list>

namespace eddy_detail {
inline eddy_shape shape(std::initializer_list<int64_t> dims) {
    eddy_shape s = {};
    for (int64_t d : dims) {
        if (s.rank < EDDY_RANK_MAX)
            s.dims[s.rank] = d;
        s.rank++;
    }
    return s;
}
inline eddy_axes axes(std::initializer_list<int32_t> named) {
    eddy_axes a = {};
    for (int32_t axis : named) {
        if (a.count < EDDY_RANK_MAX)
            a.axes[a.count] = axis;
        a.count++;
    }
    return a;
}
inline eddy_axes all_axes() {
    eddy_axes a = {};
    a.count = -1;
    return a;
}
template <int64_t N> inline eddy_list array(eddy_tensor *const (&items)[N]) {
    return {items, N};
}
inline eddy_list list(std::initializer_list<eddy_tensor *> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
} // namespace eddy_detail
#define EDDY_SHAPE(...) (::eddy_detail::shape({__VA_ARGS__}))
#define EDDY_AXES(...) (::eddy_detail::axes({__VA_ARGS__}))
#define EDDY_ALL_AXES (::eddy_detail::all_axes())
#define EDDY_LIST(...) (::eddy_detail::list({__VA_ARGS__}))
#define EDDY_ARRAY(items) (::eddy_detail::array(items))
#endif
#endif
