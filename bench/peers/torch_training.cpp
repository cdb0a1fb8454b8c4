/* Peer: training steps of the networks of examples/network.c (cnn) and examples/transformer.c with libtorch's ops, autograd and
 * optimisers; and the memory that the transformer's inference takes. */
#include <bench/peers/torch_transformer.h>
#include <bench/resident.h>
#include <bench/sample.h>
#include <bench/shapes.h>

#include <torch/torch.h>

namespace {

namespace F = torch::nn::functional;

torch::Tensor random_integers(torch::IntArrayRef shape, int64_t below) {
    return torch::randint(0, below, shape, torch::kLong);
}

/* Two convolutions with pools, and a linear layer; images u8 [n, 784]. Channels-last, with pools before ReLU:
 * both are faster in libtorch too. */
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
        second->weight.set_data(second->weight.contiguous(at::MemoryFormat::ChannelsLast));
        optimizer = std::make_unique<torch::optim::Adam>(parameters, BENCH_ADAM_RATE);
    }

    torch::Tensor step() {
        torch::Tensor x =
            images.to(torch::kFloat).div(255.0).view({-1, 28, 28, 1}).permute({0, 3, 1, 2});
        x = torch::relu(torch::max_pool2d(first(x), 2));
        x = torch::relu(torch::max_pool2d(second(x), 2));
        optimizer->zero_grad();
        torch::Tensor loss = F::cross_entropy(last(x.flatten(1)), labels);
        loss.backward();
        optimizer->step();
        return loss;
    }
};

/* numbers i64 [rows, sequence + 1]. */
struct TransformerTraining {
    Transformer network;
    torch::Tensor numbers;
    std::unique_ptr<torch::optim::AdamW> optimizer;

    explicit TransformerTraining(int rows) {
        numbers =
            random_integers({rows, BENCH_TRANSFORMER_SEQUENCE + 1}, BENCH_TRANSFORMER_VOCABULARY);
        optimizer = std::make_unique<torch::optim::AdamW>(
            network.parameters,
            torch::optim::AdamWOptions(BENCH_ADAM_RATE).betas({0.9, 0.99}).weight_decay(0.1));
    }

    torch::Tensor step() {
        torch::Tensor logits = network.logits_of(numbers.narrow(1, 0, BENCH_TRANSFORMER_SEQUENCE));
        optimizer->zero_grad();
        torch::Tensor loss =
            F::cross_entropy(logits.view({-1, BENCH_TRANSFORMER_VOCABULARY}),
                             numbers.narrow(1, 1, BENCH_TRANSFORMER_SEQUENCE).reshape({-1}));
        loss.backward();
        torch::nn::utils::clip_grad_norm_(network.parameters, 1.0);
        optimizer->step();
        return loss;
    }
};

void print(const char *row, const char *unit, const bench_samples &samples) {
    char version[64];
    snprintf(version, sizeof(version), "libtorch %s, %d threads", TORCH_VERSION,
             torch::get_num_threads());
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

/* The same as bench/ours/inference.c: a pass over a few numbers first, then the peak of some passes. */
int measure_memory(const char *row, int rows) {
    torch::InferenceMode inference;
    Transformer network;
    torch::Tensor inputs =
        random_integers({rows, BENCH_TRANSFORMER_SEQUENCE}, BENCH_TRANSFORMER_VOCABULARY);
    auto pass = [&](const torch::Tensor &numbers) {
        network.logits_of(numbers).view({-1})[-1].item<float>();
    };
    pass(inputs.narrow(0, 0, 1).narrow(1, 0, BENCH_INFERENCE_FEW));
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
        return measure<TransformerTraining>(row, rows, count);
    if (sscanf(row, "inference_memory_b%d_", &rows) == 1)
        return measure_memory(row, rows);
    fprintf(stderr, "torch_training: no such row: %s\n", row);
    return 2;
}
