#include "axes.h"

const shape_case small_shapes[SMALL_SHAPES] = {
    {0, {0}},      {1, {1}},       {1, {31}},       {1, {32}},         {1, {33}},
    {1, {1023}},   {1, {1024}},    {1, {1025}},     {2, {64, 10}},     {2, {10, 64}},
    {2, {7, 127}}, {2, {129, 5}},  {2, {1030, 3}},  {2, {3, 1030}},    {2, {0, 5}},
    {2, {5, 0}},   {3, {3, 5, 7}}, {3, {9, 1, 40}}, {4, {2, 3, 4, 5}}, {4, {6, 35, 2, 9}},
};

int32_t output_shape(const shape_case *c, uint32_t axes, bool keeps_dims, int64_t *shape) {
    int32_t rank = 0;
    for (int32_t d = 0; d < c->rank; d++) {
        if (!(axes >> d & 1))
            shape[rank++] = c->shape[d];
        else if (keeps_dims)
            shape[rank++] = 1;
    }
    return rank;
}

int64_t output_of(const shape_case *c, uint32_t axes, int64_t flat, int64_t *within) {
    int64_t index[4], out = 0;
    *within = 0;
    for (int32_t d = c->rank - 1; d >= 0; d--) {
        index[d] = flat % c->shape[d];
        flat /= c->shape[d];
    }
    for (int32_t d = 0; d < c->rank; d++) {
        if (axes >> d & 1)
            *within = *within * c->shape[d] + index[d];
        else
            out = out * c->shape[d] + index[d];
    }
    return out;
}
