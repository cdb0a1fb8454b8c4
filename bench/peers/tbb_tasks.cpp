/* Peer of the empty_* rows: oneTBB. Independent tasks use a task_group. The others use a graph of continue_nodes with edges
 * from a table of last writers and readers; the time covers building, running and freeing it. */
#include <bench/sample.h>
#include <bench/shapes.h>

#include <memory>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_group.h>
#include <tbb/version.h>
#include <vector>

namespace {

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

volatile int sink;

void body(const tbb::flow::continue_msg &) {
    sink = 1;
}

/* The dependency table: the nodes that an object's next reader or writer has to wait for. */
class graph_builder {
  public:
    explicit graph_builder(int objects) : writers(objects), readers(objects) {
        nodes.reserve(BENCH_TASKS);
    }

    void add(const std::vector<uint32_t> &reads, const std::vector<uint32_t> &writes) {
        nodes.push_back(std::make_unique<node>(graph, body));
        node *made = nodes.back().get();
        bool waits = false;
        for (uint32_t object : writes) {
            for (node *reader : readers[object]) {
                tbb::flow::make_edge(*reader, *made);
                waits = true;
            }
            if (readers[object].empty() && writers[object]) {
                tbb::flow::make_edge(*writers[object], *made);
                waits = true;
            }
        }
        for (uint32_t object : reads)
            if (writers[object]) {
                tbb::flow::make_edge(*writers[object], *made);
                waits = true;
            }
        for (uint32_t object : reads)
            readers[object].push_back(made);
        for (uint32_t object : writes) {
            readers[object].clear();
            writers[object] = made;
        }
        if (!waits)
            roots.push_back(made);
    }

    void run() {
        for (node *root : roots)
            root->try_put(tbb::flow::continue_msg());
        graph.wait_for_all();
    }

  private:
    tbb::flow::graph graph;
    std::vector<std::unique_ptr<node>> nodes;
    std::vector<node *> writers;
    std::vector<std::vector<node *>> readers;
    std::vector<node *> roots;
};

void independent() {
    tbb::task_group group;
    for (int i = 0; i < BENCH_TASKS; i++)
        group.run([] { sink = 1; });
    group.wait();
}

void chain() {
    graph_builder builder(1);
    for (int i = 0; i < BENCH_TASKS; i++)
        builder.add({}, {0});
    builder.run();
}

void fan() {
    graph_builder builder(1);
    for (int i = 0; i < BENCH_TASKS; i++) {
        if (i % (BENCH_FAN_READERS + 1) == 0)
            builder.add({}, {0});
        else
            builder.add({0}, {});
    }
    builder.run();
}

void dag() {
    graph_builder builder(BENCH_DAG_OBJECTS);
    uint32_t state = 1;
    for (int i = 0; i < BENCH_TASKS; i++) {
        uint32_t a = bench_random(&state) % BENCH_DAG_OBJECTS,
                 b = bench_random(&state) % BENCH_DAG_OBJECTS;
        uint32_t c = bench_random(&state) % BENCH_DAG_OBJECTS;
        builder.add({a, b}, {c});
    }
    builder.run();
}

const struct {
    const char *row;
    void (*run)();
} shapes[] = {
    {"empty_chain", chain},
    {"empty_independent", independent},
    {"empty_fan", fan},
    {"empty_dag", dag},
};

} // namespace

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (const auto &shape : shapes) {
        if (strcmp(row, shape.row))
            continue;
        bench_samples samples = {};
        for (int i = -2; i < count; i++) {
            double begin = bench_now_ns();
            shape.run();
            if (i >= 0)
                bench_samples_push(&samples, (bench_now_ns() - begin) / BENCH_TASKS);
        }
        char version[64];
        snprintf(
            version, sizeof(version), "oneTBB %d.%d, %d threads", TBB_VERSION_MAJOR,
            TBB_VERSION_MINOR,
            (int)tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
        bench_print_row(row, "ns", version, nullptr, &samples);
        return 0;
    }
    fprintf(stderr, "tbb_tasks: no such row: %s\n", row);
    return 2;
}
