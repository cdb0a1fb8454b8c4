/* Peer: libtorch's C++ interface. Ops on 16 floats run in inference mode; training steps use the usual modules, autograd
 * and optimisers. `torch count_add16 N` issues N adds and prints nothing: for callgrind. */
#include <bench/heap_count.h>
#include <bench/sample.h>
#include <bench/shapes.h>

#include <torch/torch.h>

namespace {

void print(const char *row, const char *unit, const bench_samples &samples) {
    char version[64];
    snprintf(version, sizeof(version), "libtorch %s, %d threads", TORCH_VERSION,
             torch::get_num_threads());
    bench_print_row(row, unit, version, nullptr, &samples);
}

void adds(const torch::Tensor &a, const torch::Tensor &b, int count) {
    for (int i = 0; i < count; i++)
        torch::Tensor sum = torch::add(a, b);
}

int add16(const char *row, int count) {
    torch::InferenceMode guard;
    torch::Tensor a = torch::rand({16}), b = torch::rand({16});
    bench_samples samples = {};
    for (int i = -2; i < count; i++) {
        double begin = bench_now_ns();
        adds(a, b, BENCH_ADD_OPS);
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / BENCH_ADD_OPS);
    }
    print(row, "ns", samples);
    return 0;
}

int issue_read(const char *row, int count) {
    torch::InferenceMode guard;
    torch::Tensor a = torch::rand({1}), b = torch::rand({1});
    bench_samples samples = {};
    volatile float value = 0;
    for (int i = -2; i < count; i++) {
        double begin = bench_now_ns();
        for (int op = 0; op < BENCH_ADD_OPS; op++)
            value = torch::add(a, b).item<float>();
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / BENCH_ADD_OPS);
    }
    (void)value;
    print(row, "ns", samples);
    return 0;
}

int heap_per_op(const char *row, int count) {
    if (!bench_heap_count) {
        fprintf(stderr, "torch: heap_per_op needs the heap_count library preloaded\n");
        return 2;
    }
    torch::InferenceMode guard;
    torch::Tensor a = torch::rand({16}), b = torch::rand({16});
    bench_samples samples = {};
    adds(a, b, BENCH_ADD_OPS);
    for (int i = 0; i < count; i++) {
        uint64_t before = bench_heap_count();
        adds(a, b, BENCH_ADD_OPS);
        bench_samples_push(&samples, (double)(bench_heap_count() - before) / BENCH_ADD_OPS);
    }
    print(row, "blocks", samples);
    return 0;
}

int relu(const char *row, int count) {
    torch::InferenceMode guard;
    torch::Tensor a = torch::rand({BENCH_RELU_COUNT}) - 0.5;
    bench_samples samples = {};
    for (int i = -2; i < count; i++) {
        double begin = bench_now_ns();
        { torch::Tensor out = torch::relu(a); }
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / 1e6);
    }
    print(row, "ms", samples);
    return 0;
}

int mlp(const char *row, int rows, bool with_adam, int count) {
    torch::manual_seed(1);
    torch::Tensor images = torch::rand({rows, BENCH_MLP_INPUTS}) * 2 - 1;
    torch::Tensor labels = torch::randint(0, BENCH_MLP_CLASSES, {rows}, torch::kLong);
    torch::nn::Sequential net(
        torch::nn::Linear(BENCH_MLP_INPUTS, BENCH_MLP_HIDDEN1), torch::nn::ReLU(),
        torch::nn::Linear(BENCH_MLP_HIDDEN1, BENCH_MLP_HIDDEN2), torch::nn::ReLU(),
        torch::nn::Linear(BENCH_MLP_HIDDEN2, BENCH_MLP_CLASSES));
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    if (with_adam)
        optimizer.reset(new torch::optim::Adam(net->parameters(), BENCH_ADAM_RATE));
    else
        optimizer.reset(new torch::optim::SGD(net->parameters(), BENCH_MLP_RATE));
    bench_samples samples = {};
    int steps = 6400 / rows;
    for (int i = -2; i < count; i++) {
        double begin = bench_now_ns();
        for (int step = 0; step < steps; step++) {
            optimizer->zero_grad();
            torch::nn::functional::cross_entropy(net->forward(images), labels).backward();
            optimizer->step();
        }
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - begin) / steps / 1e6);
    }
    print(row, "ms", samples);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    if (const char *threads = getenv("OMP_NUM_THREADS"))
        torch::set_num_threads(atoi(threads));
    if (!strcmp(row, "count_add16")) {
        torch::InferenceMode guard;
        torch::Tensor a = torch::rand({16}), b = torch::rand({16});
        adds(a, b, argc > 2 ? atoi(argv[2]) : 1);
        return 0;
    }
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    if (!strcmp(row, "issue_read"))
        return issue_read(row, count);
    if (!strcmp(row, "heap_per_op"))
        return heap_per_op(row, count);
    if (!strcmp(row, "relu_1e7_fresh"))
        return relu(row, count);
    if (strstr(row, "add16"))
        return add16(row, count);
    if (sscanf(row, "mlp_b%d_", &rows) == 1)
        return mlp(row, rows, false, count);
    if (sscanf(row, "mlp_adam_b%d_", &rows) == 1)
        return mlp(row, rows, true, count);
    fprintf(stderr, "torch: no such row: %s\n", row);
    return 2;
}
