/* The network of the transformer rows (examples/transformer.c) in libtorch's ops: its weights and its logits. */
#ifndef BENCH_PEERS_TORCH_TRANSFORMER_H
#define BENCH_PEERS_TORCH_TRANSFORMER_H

#include <bench/shapes.h>

#include <torch/torch.h>

struct Layer {
    torch::Tensor attention_norm, query_key_value, attention_output, swiglu_norm, gate, up, down;
};

struct Transformer {
    static constexpr int64_t width = BENCH_TRANSFORMER_WIDTH, hidden = BENCH_TRANSFORMER_HIDDEN;
    static constexpr int64_t heads = BENCH_TRANSFORMER_HEADS, sequence = BENCH_TRANSFORMER_SEQUENCE;
    std::vector<torch::Tensor> parameters;
    torch::Tensor embedding, norm, output, cosines, sines, mask;
    std::vector<Layer> layers;

    torch::Tensor matrix(int64_t rows, int64_t columns) {
        parameters.push_back((torch::randn({rows, columns}) * 0.02).requires_grad_(true));
        return parameters.back();
    }

    torch::Tensor ones() {
        parameters.push_back(torch::ones({width}).requires_grad_(true));
        return parameters.back();
    }

    Transformer() {
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
        int64_t half = width / heads / 2;
        torch::Tensor rates =
            torch::pow(10000.0, -torch::arange(0, half, torch::kFloat) / static_cast<double>(half));
        torch::Tensor angles = torch::outer(torch::arange(0, sequence, torch::kFloat), rates);
        cosines = torch::cos(angles);
        sines = torch::sin(angles);
        mask = torch::full({sequence, sequence}, -std::numeric_limits<float>::infinity()).triu(1);
    }

    static torch::Tensor rms(const torch::Tensor &x, const torch::Tensor &weight) {
        return x * torch::rsqrt(x.square().mean(-1, true) + 1e-5) * weight;
    }

    torch::Tensor turn(const torch::Tensor &x) const {
        std::vector<torch::Tensor> halves = x.chunk(2, -1);
        torch::Tensor cos = cosines.narrow(0, 0, x.size(-2)), sin = sines.narrow(0, 0, x.size(-2));
        return torch::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin},
                          -1);
    }

    torch::Tensor attend(const Layer &layer, const torch::Tensor &x) const {
        torch::Tensor mixed = torch::linear(rms(x, layer.attention_norm), layer.query_key_value);
        mixed =
            mixed.view({x.size(0), x.size(1), 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
        torch::Tensor q = turn(mixed[0]), k = turn(mixed[1]), v = mixed[2], seen;
#if TORCH_VERSION_MAJOR >= 2
        seen = torch::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
#else
        double scale = 1 / std::sqrt(static_cast<double>(width / heads));
        torch::Tensor hidden_ones = mask.narrow(0, 0, x.size(1)).narrow(1, 0, x.size(1));
        seen = torch::matmul(
            torch::softmax(torch::matmul(q * scale, k.transpose(-2, -1)) + hidden_ones, -1), v);
#endif
        return torch::linear(seen.permute({0, 2, 1, 3}).reshape({x.size(0), x.size(1), width}),
                             layer.attention_output);
    }

    torch::Tensor run_layer(const Layer &layer, const torch::Tensor &x) const {
        torch::Tensor seen = x + attend(layer, x);
        torch::Tensor normed = rms(seen, layer.swiglu_norm);
        return seen + torch::linear(torch::silu(torch::linear(normed, layer.gate)) *
                                        torch::linear(normed, layer.up),
                                    layer.down);
    }

    torch::Tensor logits_of(const torch::Tensor &inputs) const {
        torch::Tensor x = torch::embedding(embedding, inputs);
        for (const Layer &layer : layers)
            x = run_layer(layer, x);
        return torch::linear(rms(x, norm), output);
    }
};

#endif
