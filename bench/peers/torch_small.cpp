/* Peer: the programs of small ops (bench/ours/small.c) in libtorch, with the same ops: `torch_small ROW[,ROW...] [samples]`.
 * Programs without gradients run in inference mode. */
#include <bench/peers/torch_transformer.h>
#include <bench/programs.h>
#include <bench/sample.h>
#include <bench/shapes.h>

#include <torch/torch.h>

namespace {

namespace F = torch::nn::functional;

uint32_t random_state = 1;

torch::Tensor random_floats(torch::IntArrayRef shape, double scale = 1) {
    float *values =
        bench_random_floats(&random_state, static_cast<size_t>(c10::multiply_integers(shape)));
    torch::Tensor tensor = torch::from_blob(values, shape).mul(scale);
    free(values);
    return tensor;
}

torch::Tensor random_labels(int64_t count) {
    torch::Tensor labels = torch::empty({count}, torch::kLong);
    for (int64_t i = 0; i < count; i++)
        labels[i] = static_cast<int64_t>(bench_random(&random_state) % BENCH_MLP_CLASSES);
    return labels;
}

/* The same as bench/ours/trainee.h. */
struct Trainee {
    std::vector<torch::Tensor> parameters;
    std::unique_ptr<torch::optim::AdamW> optimizer;
    torch::Tensor x, labels;

    void add(torch::IntArrayRef shape) {
        double inputs = static_cast<double>(c10::multiply_integers(shape.slice(1)));
        parameters.push_back(random_floats(shape, 1 / std::sqrt(inputs)).requires_grad_(true));
    }

    void add_linear(int64_t inputs, int64_t outputs) {
        add({outputs, inputs});
        add({outputs});
    }

    void start() {
        optimizer = std::make_unique<torch::optim::AdamW>(
            parameters, torch::optim::AdamWOptions(BENCH_ADAM_RATE));
    }

    void learn(const torch::Tensor &logits) {
        F::cross_entropy(logits, labels).backward();
        optimizer->step();
        /* Released. The zero_grad of libtorch 1.13's optimisers would fill them with zeros instead. */
        for (torch::Tensor &parameter : parameters)
            parameter.mutable_grad().reset();
    }

    /* Linear layers with ReLU between them, from parameter `first` on. */
    torch::Tensor layers(torch::Tensor y, size_t first) const {
        for (size_t i = first; i < parameters.size(); i += 2) {
            y = torch::linear(y, parameters[i], parameters[i + 1]);
            if (i + 2 < parameters.size())
                y = torch::relu(y);
        }
        return y;
    }
};

struct Gru : Trainee {
    static constexpr int64_t hidden = BENCH_GRU_HIDDEN;

    explicit Gru(int64_t batch) {
        add_linear(BENCH_GRU_INPUTS, 3 * hidden);
        add_linear(hidden, 3 * hidden);
        add_linear(hidden, BENCH_MLP_CLASSES);
        x = random_floats({BENCH_GRU_STEPS, batch, BENCH_GRU_INPUTS});
        labels = random_labels(batch);
        start();
    }

    static torch::Tensor part(const torch::Tensor &gates, int64_t which) {
        return gates.slice(1, which * hidden, (which + 1) * hidden);
    }

    torch::Tensor cell(const torch::Tensor &input, const torch::Tensor &h) const {
        torch::Tensor from_x = torch::linear(input, parameters[0], parameters[1]);
        torch::Tensor from_h = torch::linear(h, parameters[2], parameters[3]);
        torch::Tensor reset = torch::sigmoid(part(from_x, 0) + part(from_h, 0));
        torch::Tensor update = torch::sigmoid(part(from_x, 1) + part(from_h, 1));
        torch::Tensor fresh = torch::tanh(part(from_x, 2) + reset * part(from_h, 2));
        return fresh + update * (h - fresh);
    }

    void run() {
        for (int round = 0; round < BENCH_GRU_ROUNDS; round++) {
            torch::Tensor h = torch::zeros({x.size(1), hidden});
            for (int64_t t = 0; t < BENCH_GRU_STEPS; t++)
                h = cell(x.select(0, t), h);
            learn(torch::linear(h, parameters[4], parameters[5]));
        }
    }
};

struct Mlp : Trainee {
    explicit Mlp(int64_t batch) {
        add_linear(BENCH_MLP_INPUTS, BENCH_MLP_HIDDEN1);
        add_linear(BENCH_MLP_HIDDEN1, BENCH_MLP_HIDDEN2);
        add_linear(BENCH_MLP_HIDDEN2, BENCH_MLP_CLASSES);
        x = random_floats({batch, BENCH_MLP_INPUTS});
        labels = random_labels(batch);
        start();
    }

    void run() {
        for (int round = 0; round < BENCH_LAYERS_ROUNDS; round++)
            learn(layers(x, 0));
    }
};

struct Lenet : Trainee {
    explicit Lenet(int64_t batch) {
        add({BENCH_LENET_CHANNELS1, 1, BENCH_LENET_KERNEL, BENCH_LENET_KERNEL});
        add({BENCH_LENET_CHANNELS1});
        add({BENCH_LENET_CHANNELS2, BENCH_LENET_CHANNELS1, BENCH_LENET_KERNEL, BENCH_LENET_KERNEL});
        add({BENCH_LENET_CHANNELS2});
        add_linear(BENCH_LENET_FLAT, BENCH_LENET_HIDDEN1);
        add_linear(BENCH_LENET_HIDDEN1, BENCH_LENET_HIDDEN2);
        add_linear(BENCH_LENET_HIDDEN2, BENCH_MLP_CLASSES);
        x = random_floats({batch, 1, BENCH_LENET_SIDE, BENCH_LENET_SIDE});
        labels = random_labels(batch);
        start();
    }

    void run() {
        for (int round = 0; round < BENCH_LAYERS_ROUNDS; round++) {
            torch::Tensor y = x;
            for (size_t l = 0; l < 4; l += 2)
                y = torch::max_pool2d(
                    torch::relu(torch::conv2d(y, parameters[l], parameters[l + 1])), 2);
            learn(layers(y.flatten(1), 4));
        }
    }
};

struct Decode {
    Transformer network;

    explicit Decode(int64_t) {
    }

    void run() {
        torch::InferenceMode inference;
        int64_t tokens[BENCH_DECODE_TOKENS + 1] = {1};
        for (int64_t t = 1; t <= BENCH_DECODE_TOKENS; t++) {
            torch::Tensor logits =
                network.logits_of(torch::from_blob(tokens, {1, t}, torch::kLong).clone());
            tokens[t] = logits.select(0, 0).select(0, -1).argmax(0).item<int64_t>();
        }
    }
};

struct Tree {
    torch::Tensor x = random_floats({BENCH_TREE_WIDTH});
    std::vector<torch::Tensor> level;

    explicit Tree(int64_t) : level(BENCH_TREE_LEAVES) {
    }

    void run() {
        torch::InferenceMode inference;
        std::fill(level.begin(), level.end(), x);
        for (size_t count = BENCH_TREE_LEAVES; count > 1; count = (count + 1) / 2) {
            for (size_t i = 0; i + 1 < count; i += 2) {
                torch::Tensor sum = torch::add(level[i], level[i + 1]);
                level[i].reset();
                level[i + 1].reset();
                level[i / 2] = std::move(sum);
            }
            if (count % 2)
                level[count / 2] = std::move(level[count - 1]);
        }
        level[0].reset();
    }
};

struct Chain {
    torch::Tensor x;

    explicit Chain(int64_t width) : x(random_floats({width})) {
    }

    void run() {
        torch::InferenceMode inference;
        torch::Tensor y = x;
        for (int i = 0; i < BENCH_CHAIN_OPS; i++)
            y = torch::tanh(y);
    }
};

struct Mixed {
    torch::Tensor x = random_floats({BENCH_MIXED_WIDTH}),
                  matrix = random_floats({BENCH_MIXED_SIDE, BENCH_MIXED_SIDE});

    explicit Mixed(int64_t) {
    }

    void run() {
        torch::InferenceMode inference;
        for (int round = 0; round < BENCH_MIXED_ROUNDS; round++) {
            torch::Tensor product = torch::matmul(matrix, matrix), others[BENCH_MIXED_OPS];
            for (torch::Tensor &other : others)
                other = torch::tanh(x);
        }
    }
};

template <class Program> void measure(const char *rows, int64_t size, int count) {
    Program program(size);
    bench_program measured = {};
    measured.run = [](void *work) { static_cast<Program *>(work)->run(); };
    measured.work = &program;
    bench_program_begin(&measured);
    bench_program_measure(&measured, count);
    char version[64];
    snprintf(version, sizeof(version), "libtorch %s, %d threads", TORCH_VERSION,
             torch::get_num_threads());
    bench_program_print(&measured, rows, version, nullptr);
}

const struct {
    const char *format; /* of its rows' names, as bench_program_has reads it */
    void (*measure)(const char *rows, int64_t size, int count);
} programs[] = {{"small_gru_b%lld", measure<Gru>},     {"small_mlp_b%lld", measure<Mlp>},
                {"small_lenet_b%lld", measure<Lenet>}, {"small_decode_b%lld", measure<Decode>},
                {"small_tree", measure<Tree>},         {"small_chain_%lld", measure<Chain>},
                {"small_mixed", measure<Mixed>}};

} // namespace

int main(int argc, char **argv) {
    const char *rows = argc > 1 ? argv[1] : "";
    if (const char *threads = getenv("OMP_NUM_THREADS"))
        torch::set_num_threads(atoi(threads));
    for (const auto &program : programs) {
        long long size;
        if (bench_program_has(program.format, rows, &size)) {
            program.measure(rows, size, bench_sample_count(argc, argv, 2));
            return 0;
        }
    }
    fprintf(stderr, "torch_small: no such row: %s\n", rows);
    return 2;
}
