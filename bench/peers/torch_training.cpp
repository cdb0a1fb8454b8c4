/* Peer: libtorch's training steps of the networks of examples/network.c (cnn) and examples/transformer.c, written with its ops,
 * autograd and optimisers; and the memory that the transformer's inference takes. */
#include <bench/resident.h>
#include <bench/sample.h>
#include <bench/shapes.h>

#include <torch/torch.h>

namespace {

namespace F = torch::nn::functional;

torch::Tensor random_integers(torch::IntArrayRef shape, int64_t below) {
    return torch::randint(0, below, shape, torch::kLong);
}

/* Two convolutions with pools, and a linear layer; images u8 [n, 784]. */
struct Cnn {
    torch::nn::Conv2d first{torch::nn::Conv2dOptions(1, 32, 3).padding(1)};
    torch::nn::Conv2d second{torch::nn::Conv2dOptions(32, 64, 3).padding(1)};
    torch::nn::Linear last{64 * 7 * 7, 10};
    torch::Tensor images, labels;
    std::unique_ptr<torch::optim::Adam> optimizer;

    explicit Cnn(int rows) {
        images = random_integers({rows, 784}, 256).to(torch::kByte);
        labels = random_integers({rows}, 10);
        std::vector<torch::Tensor> parameters;
        for (const auto &layer : {first->parameters(), second->parameters(), last->parameters()})
            parameters.insert(parameters.end(), layer.begin(), layer.end());
        optimizer = std::make_unique<torch::optim::Adam>(parameters, BENCH_ADAM_RATE);
    }

    torch::Tensor step() {
        torch::Tensor x = images.to(torch::kFloat).div(255.0).view({-1, 1, 28, 28});
        x = torch::max_pool2d(torch::relu(first(x)), 2);
        x = torch::max_pool2d(torch::relu(second(x)), 2);
        optimizer->zero_grad();
        torch::Tensor loss = F::cross_entropy(last(x.flatten(1)), labels);
        loss.backward();
        optimizer->step();
        return loss;
    }
};

struct Layer {
    torch::Tensor attention_norm, query_key_value, attention_output, swiglu_norm, gate, up, down;
};

struct Transformer {
    static constexpr int64_t width = BENCH_TRANSFORMER_WIDTH, hidden = BENCH_TRANSFORMER_HIDDEN;
    static constexpr int64_t heads = BENCH_TRANSFORMER_HEADS, sequence = BENCH_TRANSFORMER_SEQUENCE;
    std::vector<torch::Tensor> parameters;
    torch::Tensor embedding, norm, output, cosines, sines, mask, numbers;
    std::vector<Layer> layers;
    std::unique_ptr<torch::optim::AdamW> optimizer;

    torch::Tensor matrix(int64_t rows, int64_t columns) {
        parameters.push_back((torch::randn({rows, columns}) * 0.02).requires_grad_(true));
        return parameters.back();
    }

    torch::Tensor ones() {
        parameters.push_back(torch::ones({width}).requires_grad_(true));
        return parameters.back();
    }

    explicit Transformer(int rows) {
        embedding = matrix(BENCH_TRANSFORMER_VOCABULARY, width);
        for (int i = 0; i < BENCH_TRANSFORMER_LAYERS; i++) {
            Layer layer;
            layer.attention_norm = ones();
            layer.query_key_value = matrix(3 * width, width);
            layer.attention_output = matrix(width, width);
            layer.swiglu_norm = ones();
            layer.gate = matrix(hidden, width);
            layer.up = matrix(hidden, width);
            layer.down = matrix(width, hidden);
            layers.push_back(layer);
        }
        norm = ones();
        output = matrix(BENCH_TRANSFORMER_VOCABULARY, width);
        numbers = random_integers({rows, sequence + 1}, BENCH_TRANSFORMER_VOCABULARY);
        int64_t half = width / heads / 2;
        torch::Tensor rates = torch::pow(10000.0, -torch::arange(0, half, torch::kFloat) / static_cast<double>(half));
        torch::Tensor angles = torch::outer(torch::arange(0, sequence, torch::kFloat), rates);
        cosines = torch::cos(angles);
        sines = torch::sin(angles);
        mask = torch::full({sequence, sequence}, -std::numeric_limits<float>::infinity()).triu(1);
        optimizer = std::make_unique<torch::optim::AdamW>(
            parameters, torch::optim::AdamWOptions(BENCH_ADAM_RATE).betas({0.9, 0.99}).weight_decay(0.1));
    }

    static torch::Tensor rms(const torch::Tensor &x, const torch::Tensor &weight) {
        return x * torch::rsqrt(x.square().mean(-1, true) + 1e-5) * weight;
    }

    torch::Tensor turn(const torch::Tensor &x) const {
        std::vector<torch::Tensor> halves = x.chunk(2, -1);
        torch::Tensor cos = cosines.narrow(0, 0, x.size(-2)), sin = sines.narrow(0, 0, x.size(-2));
        return torch::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
    }

    torch::Tensor attend(const Layer &layer, const torch::Tensor &x) const {
        torch::Tensor mixed = torch::linear(rms(x, layer.attention_norm), layer.query_key_value);
        mixed = mixed.view({x.size(0), x.size(1), 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
        torch::Tensor q = turn(mixed[0]), k = turn(mixed[1]), v = mixed[2], seen;
#if TORCH_VERSION_MAJOR >= 2
        seen = torch::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
#else
        double scale = 1 / std::sqrt(static_cast<double>(width / heads));
        torch::Tensor hidden_ones = mask.narrow(0, 0, x.size(1)).narrow(1, 0, x.size(1));
        seen = torch::matmul(torch::softmax(torch::matmul(q * scale, k.transpose(-2, -1)) + hidden_ones, -1), v);
#endif
        return torch::linear(seen.permute({0, 2, 1, 3}).reshape({x.size(0), x.size(1), width}), layer.attention_output);
    }

    torch::Tensor run_layer(const Layer &layer, const torch::Tensor &x) const {
        torch::Tensor seen = x + attend(layer, x);
        torch::Tensor normed = rms(seen, layer.swiglu_norm);
        return seen + torch::linear(torch::silu(torch::linear(normed, layer.gate)) * torch::linear(normed, layer.up),
                                    layer.down);
    }

    torch::Tensor logits_of(const torch::Tensor &inputs) const {
        torch::Tensor x = torch::embedding(embedding, inputs);
        for (const Layer &layer : layers)
            x = run_layer(layer, x);
        return torch::linear(rms(x, norm), output);
    }

    torch::Tensor step() {
        torch::Tensor logits = logits_of(numbers.narrow(1, 0, sequence));
        optimizer->zero_grad();
        torch::Tensor loss = F::cross_entropy(logits.view({-1, BENCH_TRANSFORMER_VOCABULARY}),
                                              numbers.narrow(1, 1, sequence).reshape({-1}));
        loss.backward();
        torch::nn::utils::clip_grad_norm_(parameters, 1.0);
        optimizer->step();
        return loss;
    }
};

void print(const char *row, const char *unit, const bench_samples &samples) {
    char version[64];
    snprintf(version, sizeof(version), "libtorch %s, %d threads", TORCH_VERSION, torch::get_num_threads());
    bench_print_row(row, unit, version, nullptr, &samples);
}

template <class Network> int measure(const char *row, int rows, int count) {
    torch::manual_seed(1);
    Network network(rows);
    bench_samples samples = {};
    for (int i = -1; i < count; i++) {
        double began = bench_now_ns();
        torch::Tensor loss;
        for (int step = 0; step < BENCH_TRAINING_STEPS; step++)
            loss = network.step();
        if (!std::isfinite(loss.item<float>()))
            return 1;
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / BENCH_TRAINING_STEPS / 1e6);
    }
    print(row, "ms", samples);
    return 0;
}

/* As bench/ours/inference.c: a pass over a few numbers first, then the peak of some passes. */
int measure_memory(const char *row, int rows) {
    torch::InferenceMode inference;
    Transformer network(rows);
    auto pass = [&](const torch::Tensor &inputs) { network.logits_of(inputs).view({-1})[-1].item<float>(); };
    pass(network.numbers.narrow(0, 0, 1).narrow(1, 0, BENCH_INFERENCE_FEW));
    torch::Tensor inputs = network.numbers.narrow(1, 0, Transformer::sequence);
    double resident = bench_resident_begin();
    for (int i = 0; i < BENCH_INFERENCE_PASSES; i++)
        pass(inputs);
    bench_samples samples = {};
    bench_samples_push(&samples, bench_resident_peak(resident));
    print(row, "MiB", samples);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    if (const char *threads = getenv("OMP_NUM_THREADS"))
        torch::set_num_threads(atoi(threads));
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    if (sscanf(row, "cnn_b%d_", &rows) == 1)
        return measure<Cnn>(row, rows, count);
    if (sscanf(row, "transformer_b%d_", &rows) == 1)
        return measure<Transformer>(row, rows, count);
    if (sscanf(row, "inference_memory_b%d_", &rows) == 1)
        return measure_memory(row, rows);
    fprintf(stderr, "torch_training: no such row: %s\n", row);
    return 2;
}
