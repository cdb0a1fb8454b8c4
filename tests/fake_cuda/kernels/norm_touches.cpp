/* What the kernels of normalisations touch. */
#include <initializer_list>
#include <kernels/cuda/norm.h>
#include <tests/fake_cuda/kernels/touches.h>

struct norm_touches {
    const eddy_cuda_normalisation &p;
    int64_t element_bytes;
    touch_fn *say;
    void *context;

    void operand(int number, bool is_write) const {
        range all = {0, element_bytes};
        for (const eddy_cuda_dims *dims : {&p.places, &p.elements})
            for (int d = 0; d < dims->rank; d++)
                all.reach(dims->sizes[d] - 1, dims->strides[number][d]);
        all.touch(say, context, p.data[number], is_write);
    }
    void vector(const eddy_cuda_norm_vector &of, bool is_write) const {
        range all = {0, of.is_f32 ? 4 : element_bytes};
        if (!of.data)
            return;
        all.reach(p.weight_count - 1, of.step);
        all.touch(say, context, of.data, is_write);
    }
    void array(const void *data, int64_t count, int64_t bytes, bool is_write) const {
        say(context, data, (size_t)(count * bytes), is_write);
    }
    void all_parts(bool is_write) const {
        array(p.parts, p.place_count * p.chunk_count, sizeof(eddy_norm_sums), is_write);
    }
    void statistics(bool is_write) const {
        array(p.statistics, p.place_count, sizeof(eddy_cuda_norm_statistics), is_write);
    }
    void pieces(bool is_write) const {
        array(p.pieces, p.place_count * p.runs * p.pieces_most, sizeof(double), is_write);
    }
    void partials(bool is_write) const {
        array(p.partials, p.weight_count * p.block_count, sizeof(double), is_write);
    }
    /* The caller's statistics, too. */
    void own_statistics() const {
        vector(p.mean, !p.is_given);
        vector(p.variance, !p.is_given);
    }

    /* ---- by kernel ---- */

    void whole() const {
        apply_forward();
        own_statistics();
    }
    void apply_forward() const {
        operand(0, false);
        operand(1, true);
        vector(p.weight, false);
        vector(p.bias, false);
    }
    void apply() const {
        apply_forward();
        statistics(false);
    }
    void parts() const {
        operand(0, false);
        all_parts(true);
    }
    void join() const {
        if (!p.is_given)
            all_parts(false);
        own_statistics();
        statistics(true);
    }
    void both() const {
        operand(0, false);
        operand(1, false);
        vector(p.weight, false);
    }
    void back_whole() const {
        both();
        operand(2, true);
    }
    void back_parts() const {
        both();
        all_parts(true);
    }
    void back_apply() const {
        back_whole();
        statistics(false);
    }
    void products() const {
        both();
        statistics(false);
        pieces(true);
    }
    void weights() const {
        if (p.pieces) {
            pieces(false);
        } else {
            both();
            statistics(false);
        }
        if (p.block_count == 1)
            vector(p.out, true);
        else
            partials(true);
    }
    void add() const {
        partials(false);
        vector(p.out, true);
    }
};

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;

static void touch_norm(const eddy_cuda_normalisation &p, void (norm_touches::*kernel)() const,
                       int64_t element_bytes, touch_fn *say, void *context) {
    const norm_touches all = {p, element_bytes, say, context};
    (all.*kernel)();
}

#define OF_DTYPE(of, dtype, name)                                                                  \
    TOUCHES(eddy_norm_##name##_##of, eddy_cuda_normalisation, touch_norm, &norm_touches::name,     \
            bytes_of_##of)
#define NORM(name, file) EDDY_CUDA_NORM_DTYPES(OF_DTYPE, name)
EDDY_CUDA_NORM_KERNELS(NORM)
