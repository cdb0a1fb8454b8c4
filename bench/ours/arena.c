/* The rows replay_arena_<program>: the bytes of a program's arena over the least that any plan needs, the bytes of what is alive at once; and replay_arena_<program>_subbatch: the bytes
 * with the pass `subbatch` over those without. */
#include <bench/ours/branchy.h>
#include <bench/ours/images_step.h>
#include <bench/ours/mlp_step.h>
#include <bench/ours/must.h>
#include <bench/ours/network_step.h>
#include <bench/sample.h>
#include <eddy/eddy.h>

#define MLP_ROWS 64
#define CNN_ROWS 64
#define TRANSFORMER_ROWS 16
#define IMAGES 64

typedef struct arena {
    network_step net;
    branchy branches;
    images_step images;
} arena;

static void mlp_init(arena *a) {
    (void)a;
    mlp_step_init(MLP_ROWS);
}

static eddy_tensor *mlp_issue(arena *a) {
    (void)a;
    return mlp_step(false);
}

static void cnn_init(arena *a) {
    network_step_init(&a->net, true, CNN_ROWS);
}

static void transformer_rows_init(arena *a) {
    network_step_init(&a->net, false, TRANSFORMER_ROWS);
}

static eddy_tensor *net_issue(arena *a) {
    return network_step_run(&a->net);
}

static void branches_init(arena *a) {
    branchy_init(&a->branches);
}

static eddy_tensor *branches_issue(arena *a) {
    return branchy_run(&a->branches);
}

static void images_init(arena *a) {
    a->images = images_step_make(IMAGES, false);
}

static eddy_tensor *images_issue(arena *a) {
    eddy_tensor *loss;
    eddy_recorded_call call = {.inputs = {a->images.inputs, 2}, .outputs = &loss};
    must(images_step_run(&a->images, &call));
    return eddy_retain(loss);
}

static const struct {
    const char *row;
    void (*init)(arena *a);
    eddy_tensor *(*issue)(arena *a);
    bool is_of_subbatch;
} programs[] = {
    {"replay_arena_mlp", mlp_init, mlp_issue, false},
    {"replay_arena_cnn", cnn_init, net_issue, false},
    {"replay_arena_transformer", transformer_rows_init, net_issue, false},
    {"replay_arena_branchy", branches_init, branches_issue, false},
    {"replay_arena_images_subbatch", images_init, images_issue, true},
    {"replay_arena_cnn_subbatch", cnn_init, net_issue, true},
    {"replay_arena_transformer_subbatch", transformer_rows_init, net_issue, true},
};

static eddy_program_info record(size_t at, arena *a, const char *passes) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *result = must_tensor(programs[at].issue(a));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"result", result, EDDY_ROLE_OUTPUT}));
    if (!program)
        must_fail();
    must(eddy_program_describe(program, &info));
    must(eddy_sync(EDDY_FOREVER));
    eddy_program_release(&program);
    eddy_release(&result);
    return info;
}

/* The first run is not recorded: it may leave gradients and moments that are there from then on. */
static double ratio_of(size_t at) {
    arena a = {.net.is_cnn = false};
    eddy_scope *scope = eddy_scope_begin();
    programs[at].init(&a);
    eddy_tensor *result = must_tensor(programs[at].issue(&a));
    eddy_release(&result);
    eddy_program_info info = record(at, &a, NULL);
    double ratio = (double)info.arena_bytes / (double)info.arena_bound;
    if (programs[at].is_of_subbatch)
        ratio = (double)record(at, &a, "all,subbatch").arena_bytes / (double)info.arena_bytes;
    mlp_step_fini();
    network_step_fini(&a.net);
    branchy_fini(&a.branches);
    eddy_scope_end(scope);
    return ratio;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    bench_samples samples = {.count = 0};
    for (size_t at = 0; at < sizeof(programs) / sizeof(*programs); at++) {
        if (strcmp(programs[at].row, row))
            continue;
        bench_samples_push(&samples, ratio_of(at));
        bench_print_row(row, "x", eddy_version_text(), NULL, &samples);
        return 0;
    }
    fprintf(stderr, "arena: no such row: %s\n", row);
    return 2;
}
