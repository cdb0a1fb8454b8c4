/* The kernel of the fake library of products: plain loops, one thread. It has no gate: who launches it looks before. */
#include <kernels/cuda/elementwise.cuh>
#include <streams/cuda/blas.h>
#include <tests/fake_cuda/kernels/blas_product.h>
#include <tests/fake_cuda/kernels/tf32.h>

namespace {

template <class element> struct product {
    typedef typename element::stored stored;
    typedef typename element::computed number;
    const fake_blas_product &p;

    static number load(const void *data, int64_t at) {
        return element::load(((const stored *)data)[at]);
    }
    number a(int64_t batch, int64_t row, int64_t k) const {
        return load(p.a, batch * p.a_of.batch + (p.is_a_transposed ? k + row * p.a_of.leading
                                                                   : row + k * p.a_of.leading));
    }
    number b(int64_t batch, int64_t k, int64_t column) const {
        return load(p.b, batch * p.b_of.batch + (p.is_b_transposed ? column + k * p.b_of.leading
                                                                   : k + column * p.b_of.leading));
    }
    number factor(number x) const {
        return p.is_tf32 ? (number)fake_tf32((float)x) : x;
    }
    number sum(int64_t batch, int64_t row, int64_t column, int64_t begin, int64_t end) const {
        number total = 0;
        for (int64_t k = begin; k < end; k++)
            total += factor(a(batch, row, k)) * factor(b(batch, k, column));
        return total;
    }
    /* Of all of the depth; a part waits in the workspace, at `place`. */
    number total(int64_t batch, int64_t row, int64_t column, int64_t place) const {
        if (p.how == FAKE_BLAS_AT_ONCE)
            return sum(batch, row, column, 0, p.depth);
        const number first = sum(batch, row, column, 0, p.depth / 2);
        if (p.how == FAKE_BLAS_IN_PARTS)
            return first + ((const number *)p.workspace)[place];
        return element::load(element::store(first)) + load(p.workspace, place);
    }
    void keep_part(int64_t batch, int64_t row, int64_t column, int64_t place) const {
        const number part = sum(batch, row, column, p.depth / 2, p.depth);
        if (p.how == FAKE_BLAS_IN_PARTS)
            ((number *)p.workspace)[place] = part;
        else
            ((stored *)p.workspace)[place] = element::store(part);
    }
    void write(int64_t batch, int64_t row, int64_t column, int64_t place) const {
        number value = (number)p.alpha * total(batch, row, column, place);
        if (p.c)
            value +=
                (number)p.beta * load(p.c, batch * p.c_of.batch + row + column * p.c_of.leading);
        if (p.bias)
            value += load(p.bias, row);
        ((stored *)p.d)[batch * p.d_of.batch + row + column * p.d_of.leading] =
            element::store(value);
    }
    template <class work> void each(const work &function) const {
        int64_t place = 0;
        for (int64_t batch = 0; batch < p.batches; batch++)
            for (int64_t column = 0; column < p.columns; column++)
                for (int64_t row = 0; row < p.rows; row++)
                    function(batch, row, column, place++);
    }
    void run() const {
        if (p.how != FAKE_BLAS_AT_ONCE)
            each([&](int64_t batch, int64_t row, int64_t column, int64_t place) {
                keep_part(batch, row, column, place);
            });
        each([&](int64_t batch, int64_t row, int64_t column, int64_t place) {
            write(batch, row, column, place);
        });
    }
};

} // namespace

EDDY_CUDA_KERNEL(fake_blas_multiply, fake_blas_product) {
    switch (parameters.type) {
    case EDDY_BLAS_F32:
        return product<eddy_cuda_f32>{parameters}.run();
    case EDDY_BLAS_F64:
        return product<eddy_cuda_f64>{parameters}.run();
    case EDDY_BLAS_F16:
        return product<eddy_cuda_f16>{parameters}.run();
    default:
        return product<eddy_cuda_bf16>{parameters}.run();
    }
}
