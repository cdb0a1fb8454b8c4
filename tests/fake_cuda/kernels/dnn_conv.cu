/* The kernel of the fake library of convolutions: plain loops, one thread. It has no gate: who launches it looks before. */
#include <kernels/cuda/elementwise.cuh>
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/kernels/dnn_conv.h>
#include <tests/fake_cuda/kernels/tf32.h>

namespace {

/* A product of an element of two tensors that is added to one of the third. */
struct term {
    int64_t image, from, to, y[FAKE_DNN_DIMS], x[FAKE_DNN_DIMS], tap[FAKE_DNN_DIMS];
    bool is_there;
};

/* A number as coordinates in a box, the last of which counts fastest. */
inline void divide(int64_t number, const int64_t *sizes, int64_t *at, int count) {
    for (int d = count - 1; d >= 0; d--) {
        at[d] = number % sizes[d];
        number /= sizes[d];
    }
}

template <class element> struct convolution {
    typedef typename element::stored stored;
    typedef typename element::computed number;
    const fake_dnn_conv &p;
    const int64_t *x = p.shape.tensors[FAKE_DNN_X].sizes,
                  *w = p.shape.tensors[FAKE_DNN_WEIGHT].sizes,
                  *y = p.shape.tensors[FAKE_DNN_Y].sizes;
    const int64_t groups = x[1] / w[1], of_group = w[0] / groups;

    stored &at(int tensor, int64_t a, int64_t b, const int64_t *place) const {
        const int64_t *strides = p.shape.tensors[tensor].strides;
        return ((stored *)p.data[tensor])[a * strides[0] + b * strides[1] + place[0] * strides[2] +
                                          place[1] * strides[3]];
    }

    /* What a forward term reads along a dim. */
    static bool is_inside(int64_t place, int64_t size) {
        return place >= 0 && place < size;
    }
    int64_t read(const term &t, int d) const {
        return t.y[d] * p.shape.stride[d] - p.shape.padding[d] + t.tap[d] * p.shape.dilation[d];
    }

    /* The terms of the element at `out`, of the three ways. Channels count within x and y, but of the weight's second axis. */
    term forward(const int64_t *out, int64_t which) const {
        int64_t at[3];
        divide(which, w + 1, at, 3);
        term t = {out[0], out[1] / of_group * w[1] + at[0],
                  out[1], {out[2], out[3]},
                  {0, 0}, {at[1], at[2]},
                  true};
        for (int d = 0; d < FAKE_DNN_DIMS; d++) {
            t.x[d] = read(t, d);
            t.is_there &= is_inside(t.x[d], x[2 + d]);
        }
        return t;
    }
    term of_x(const int64_t *out, int64_t which) const {
        const int64_t sizes[] = {of_group, w[2], w[3]};
        int64_t at[3];
        divide(which, sizes, at, 3);
        term t = {out[0], out[1],           out[1] / w[1] * of_group + at[0],
                  {0, 0}, {out[2], out[3]}, {at[1], at[2]},
                  true};
        for (int d = 0; d < FAKE_DNN_DIMS; d++) {
            const int64_t place = t.x[d] + p.shape.padding[d] - t.tap[d] * p.shape.dilation[d];
            t.y[d] = place / p.shape.stride[d];
            t.is_there &= place >= 0 && place % p.shape.stride[d] == 0 && t.y[d] < y[2 + d];
        }
        return t;
    }
    term of_weight(const int64_t *out, int64_t which) const {
        const int64_t sizes[] = {y[0], y[2], y[3]};
        int64_t at[3];
        divide(which, sizes, at, 3);
        term t = {at[0],  out[0] / of_group * w[1] + out[1],
                  out[0], {at[1], at[2]},
                  {0, 0}, {out[2], out[3]},
                  true};
        for (int d = 0; d < FAKE_DNN_DIMS; d++) {
            t.x[d] = read(t, d);
            t.is_there &= is_inside(t.x[d], x[2 + d]);
        }
        return t;
    }

    int64_t term_count() const {
        return p.shape.way == FAKE_DNN_FORWARD      ? w[1] * w[2] * w[3]
               : p.shape.way == FAKE_DNN_BACKWARD_X ? of_group * w[2] * w[3]
                                                    : y[0] * y[2] * y[3];
    }
    number factor(number element_of) const {
        return p.how == FAKE_DNN_OF_TF32 ? (number)fake_tf32((float)element_of) : element_of;
    }
    number product(const int64_t *out, int64_t which) const {
        const int way = p.shape.way;
        const term t = way == FAKE_DNN_FORWARD      ? forward(out, which)
                       : way == FAKE_DNN_BACKWARD_X ? of_x(out, which)
                                                    : of_weight(out, which);
        if (!t.is_there)
            return 0;
        number value = 1;
        if (way != FAKE_DNN_BACKWARD_X)
            value *= factor(element::load(at(FAKE_DNN_X, t.image, t.from, t.x)));
        if (way != FAKE_DNN_BACKWARD_WEIGHT)
            value *= factor(element::load(at(FAKE_DNN_WEIGHT, t.to, t.from % w[1], t.tap)));
        if (way != FAKE_DNN_FORWARD)
            value *= factor(element::load(at(FAKE_DNN_Y, t.image, t.to, t.y)));
        return value;
    }
    number sum(const int64_t *out, int64_t begin, int64_t end) const {
        number total = 0;
        for (int64_t k = begin; k < end; k++)
            total += product(out, k);
        return total;
    }

    /* The second half of each sum, or all of it with that. */
    void run_half(bool is_second) const {
        const int written = fake_dnn_written(&p.shape);
        const int64_t *sizes = p.shape.tensors[written].sizes, terms = term_count();
        const int64_t half = p.how == FAKE_DNN_IN_PARTS ? terms / 2 : terms;
        int64_t count = 1, out[FAKE_DNN_AXES];
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            count *= sizes[d];
        for (int64_t place = 0; place < count; place++) {
            divide(place, sizes, out, FAKE_DNN_AXES);
            if (is_second) {
                ((number *)p.workspace)[place] = sum(out, half, terms);
                continue;
            }
            stored &to = at(written, out[0], out[1], out + 2);
            number total = sum(out, 0, half);
            if (p.how == FAKE_DNN_IN_PARTS)
                total += ((number *)p.workspace)[place];
            if (p.how == FAKE_DNN_COARSE)
                total += 1;
            total *= (number)p.shape.alpha;
            if (p.shape.beta != 0)
                total += (number)p.shape.beta * element::load(to);
            to = element::store(total);
        }
    }
    void run() const {
        if (p.how == FAKE_DNN_IN_PARTS)
            run_half(true);
        run_half(false);
    }
};

} // namespace

EDDY_CUDA_KERNEL(fake_dnn_convolve, fake_dnn_conv) {
    switch (parameters.shape.type) {
    case EDDY_DNN_F32:
        return convolution<eddy_cuda_f32>{parameters}.run();
    case EDDY_DNN_F64:
        return convolution<eddy_cuda_f64>{parameters}.run();
    case EDDY_DNN_F16:
        return convolution<eddy_cuda_f16>{parameters}.run();
    default:
        return convolution<eddy_cuda_bf16>{parameters}.run();
    }
}
