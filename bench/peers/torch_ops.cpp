/* Peer: libtorch's ops, in inference mode (bench/ops.h): `torch_ops ROW[,ROW...] [samples]`, all of one size. */
#include <bench/op_rows.h>
#include <bench/ops.h>

#include <torch/torch.h>

namespace {

torch::Tensor x, y, z, s, i, j, b, c, m, o, transposed, row, column, weight, bias;
torch::Tensor labels, picks, table, words, q, k, v, turned_q, images, filters;
torch::Tensor w, same, numbers, near, places, square, tall, angles, signals, filters_1d;
torch::Tensor means, variances, gain, shift, parameters, gradients, state_1, state_2;
int64_t columns, steps;
bench_op_shape shape;

torch::Tensor randoms(torch::IntArrayRef dims, double low, double high) {
    return torch::rand(dims) * (high - low) + low;
}

torch::Tensor integers(long count, long low, long high) {
    return torch::randint(low, high, {count}, torch::kLong);
}

void make_operands(long n) {
    shape = bench_op_shape_of(n);
    columns = shape.columns;
    x = randoms({n}, 0.1, 0.9);
    y = randoms({n}, 0.1, 0.9);
    z = randoms({n}, 0.1, 0.9);
    s = randoms({n}, -1, 1);
    i = integers(n, 1, 1001).to(torch::kInt);
    j = integers(n, 1, 1001).to(torch::kInt);
    b = integers(n, 0, 2).to(torch::kBool);
    c = integers(n, 0, 2).to(torch::kBool);
    m = randoms({shape.rows, shape.columns}, -1, 1);
    o = randoms({shape.rows, shape.columns}, -1, 1);
    transposed = m.t();
    row = randoms({shape.columns}, 0.1, 0.9);
    column = randoms({shape.rows, 1}, 0.1, 0.9);
    weight = randoms({shape.columns}, 0.1, 0.9);
    bias = randoms({shape.columns}, 0.1, 0.9);
    labels = integers(shape.rows, 0, shape.columns);
    picks = integers(shape.rows, 0, shape.rows);
    table = randoms({1000, shape.columns}, -1, 1);
    words = integers(shape.rows, 0, 1000);
    q = randoms({1, shape.heads, shape.tokens, 32}, -1, 1);
    k = randoms({1, shape.heads, shape.tokens, 32}, -1, 1);
    v = randoms({1, shape.heads, shape.tokens, 32}, -1, 1);
    images = randoms({shape.batch, shape.channels, shape.side, shape.side}, -1, 1);
    filters = randoms({16, shape.channels, 3, 3}, -1, 1);
    turned_q = q[0].transpose(1, 2);
    w = randoms({n}, 0.1, 0.9);
    same = x.clone();
    numbers = integers(n, 0, 1000);
    near = randoms({shape.rows, shape.columns}, 0.9, 1.1);
    places = integers(n, 0, shape.columns).reshape({shape.rows, shape.columns});
    square = randoms({shape.columns, shape.columns}, -1, 1);
    tall = randoms({shape.rows}, 0.1, 0.9);
    torch::Tensor frequencies = torch::pow(10000, torch::arange(16) / -16.0);
    angles = torch::outer(torch::arange(shape.tokens).to(torch::kFloat), frequencies);
    signals = images.reshape({shape.batch, shape.channels, shape.side * shape.side});
    filters_1d = randoms({16, shape.channels, 3}, -1, 1);
    means = randoms({shape.channels}, 0.1, 0.9);
    variances = randoms({shape.channels}, 0.1, 0.9);
    gain = randoms({shape.channels}, 0.1, 0.9);
    shift = randoms({shape.channels}, 0.1, 0.9);
    parameters = randoms({n}, -1, 1);
    gradients = randoms({n}, -1, 1);
    state_1 = torch::zeros({n});
    state_2 = torch::zeros({n});
    steps = 0;
}

torch::Tensor attention(const torch::Tensor &query, const torch::Tensor &key,
                        const torch::Tensor &value) {
#if TORCH_VERSION_MAJOR >= 2
    return torch::scaled_dot_product_attention(query, key, value);
#else
    /* libtorch 1.13 has no fused attention. */
    torch::Tensor scores = torch::matmul(query * (1 / std::sqrt(32.0)), key.transpose(-2, -1));
    return torch::matmul(torch::softmax(scores, -1), value);
#endif
}

torch::Tensor root_mean_square_norm(const torch::Tensor &input, const torch::Tensor &scale) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    return torch::rms_norm(input, {columns}, scale, 1e-5);
#else
    return input * torch::rsqrt((input * input).mean(-1, true) + 1e-5) * scale;
#endif
}

/* libtorch has no such op: written as in programs. Sines and cosines are computed in each call, as in Eddy's op. */
torch::Tensor rotated(const torch::Tensor &input) {
    torch::Tensor sines = torch::sin(angles), cosines = torch::cos(angles);
    std::vector<torch::Tensor> halves = torch::chunk(input, 2, -1);
    return torch::cat(
        {halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
}

/* Steps of the optimisers, as in torch::optim. */
torch::Tensor stepped_sgd() {
    return parameters.add_(gradients, -1e-6);
}

torch::Tensor stepped_momentum() {
    state_1.mul_(0.9).add_(gradients);
    return parameters.add_(state_1, -1e-6);
}

torch::Tensor stepped_adam(bool decays) {
    steps++;
    double first = 1 - std::pow(0.9, steps), second = 1 - std::pow(0.999, steps);
    if (decays)
        parameters.mul_(1 - 1e-6 * 0.01);
    state_1.mul_(0.9).add_(gradients, 0.1);
    state_2.mul_(0.999).addcmul_(gradients, gradients, 0.001);
    torch::Tensor denominator = (state_2.sqrt() / std::sqrt(second)).add_(1e-8);
    return parameters.addcdiv_(state_1, denominator, -1e-6 / first);
}

/* The same as torch::nn::utils::clip_grad_norm_. */
torch::Tensor clipped() {
    torch::Tensor norm = gradients.norm(2.0);
    gradients.mul_(torch::clamp_max(1e9 / (norm + 1e-6), 1.0));
    return norm;
}

/* The results, one tensor or several, live until the call returns. */
#define CALL(name, bytes, ours, theirs)                                                            \
    void call_##name() {                                                                           \
        auto results = theirs;                                                                     \
        (void)results;                                                                             \
    }
BENCH_OP_LIST(CALL)

const struct op {
    const char *name;
    int bytes;
    void (*call)();
} ops[] = {
#define ENTRY(name, bytes, ours, theirs) {#name, bytes, call_##name},
    BENCH_OP_LIST(ENTRY)};

double time_calls(const op &op, int calls) {
    double began = bench_now_ns();
    for (int call = 0; call < calls; call++)
        op.call();
    return (bench_now_ns() - began) / calls;
}

void measure(const char *name, const op &op, int count) {
    time_calls(op, 1);
    int calls = bench_calls_for(time_calls(op, 1));
    calls = bench_calls_for(time_calls(op, calls));
    count = bench_samples_for(time_calls(op, calls) * calls, count);
    bench_samples samples = {};
    for (int sample = 0; sample < count; sample++)
        bench_samples_push(&samples, time_calls(op, calls) / 1e3);
    char version[64];
    snprintf(version, sizeof(version), "libtorch %s, %d threads", TORCH_VERSION,
             torch::get_num_threads());
    bench_print_op(name, version, nullptr,
                   static_cast<double>(op.bytes) * static_cast<double>(shape.n), &samples);
}

} // namespace

int main(int argc, char **argv) {
    torch::InferenceMode guard;
    if (const char *threads = getenv("OMP_NUM_THREADS"))
        torch::set_num_threads(atoi(threads));
    int count = bench_sample_count(argc, argv, 2);
    const char *rows = argc > 1 ? argv[1] : "";
    for (bench_op_row asked; bench_op_row_next(&rows, &asked);) {
        if (!x.defined() && asked.n > 0)
            make_operands(asked.n);
        for (const op &op : ops)
            if (!strcmp(op.name, asked.op))
                measure(asked.row, op, count);
    }
    return 0;
}
