/* Saves a step of training as a program, for `eddy print`, `dot`, `plan` and `run`: the network of fashion_mnist, or the transformer of char_transformer, with random weights.
 *
 *   save_step mlp FILE
 *   save_step transformer FILE */
#include "network.h"
#include "transformer.h"

#include <stdio.h>
#include <string.h>

#define BATCH 64
#define WINDOWS 16
#define STATE_MAX (3 * TRANSFORMER_PARAMETERS_MAX + 1)
#define NAME_MAX_BYTES 64

/* Tensors that the step changes. What belongs together has one name before the point. */
typedef struct state {
    eddy_binding bindings[STATE_MAX + 3]; /* and inputs and the output */
    char names[STATE_MAX][NAME_MAX_BYTES];
    int64_t count;
} state;

static void add(state *to, const char *name, eddy_tensor *tensor, eddy_role role) {
    to->bindings[to->count++] = (eddy_binding){name, tensor, role};
}

/* A parameter and its moments. */
static void add_parameter(state *to, const char *name, eddy_tensor *parameter, eddy_tensor *m,
                          eddy_tensor *v) {
    static const char *const endings[] = {"", ".m", ".v"};
    eddy_tensor *const tensors[] = {parameter, m, v};
    for (int i = 0; i < 3; i++) {
        char *made = to->names[to->count];
        snprintf(made, NAME_MAX_BYTES, "%s%s", name, endings[i]);
        add(to, made, tensors[i], EDDY_ROLE_STATE);
    }
}

/* What follows is recorded, and not run. */
static bool begin_recording(void) {
    return eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)) == EDDY_OK;
}

/* Ends the recording that has computed `loss`. */
static bool save(state *of, eddy_tensor *loss, const char *path) {
    add(of, "loss", loss, EDDY_ROLE_OUTPUT);
    eddy_program *program = eddy_record_end(&(eddy_bindings){of->bindings, of->count});
    bool is_saved = program && eddy_program_save(program, path) == EDDY_OK;
    eddy_program_release(&program);
    return is_saved;
}

static bool save_mlp(state *to, const char *path) {
    network net;
    bool is_fine = network_init(&net, NETWORK_MLP, EDDY_F32);
    eddy_tensor *images = eddy_zeros(EDDY_SHAPE(BATCH, NETWORK_INPUTS), EDDY_U8, NULL),
                *labels = eddy_zeros(EDDY_SHAPE(BATCH), EDDY_I64, NULL);
    add(to, "images", images, EDDY_ROLE_INPUT);
    add(to, "labels", labels, EDDY_ROLE_INPUT);
    for (int i = 0; is_fine && i < NETWORK_PARAMETERS; i++) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof(name), "%s%d", i % 2 ? "bias" : "weight", i / 2);
        add_parameter(to, name, net.parameters[i], net.m[i], net.v[i]);
    }
    add(to, "step", net.step, EDDY_ROLE_STATE);
    is_fine = is_fine && begin_recording() &&
              save(to, network_train(&net, images, labels, EDDY_S(1e-3)), path);
    network_fini(&net);
    return is_fine;
}

static bool save_transformer(state *to, const char *path) {
    const struct transformer_size size = {
        .vocabulary = 96, .width = 128, .layers = 4, .heads = 4, .hidden = 344, .sequence = 128};
    transformer net;
    bool is_fine = transformer_init(&net, &size);
    eddy_tensor *text = eddy_zeros(EDDY_SHAPE(WINDOWS, size.sequence + 1), EDDY_I64, NULL);
    add(to, "text", text, EDDY_ROLE_INPUT);
    for (int64_t i = 0; is_fine && i < net.count; i++) {
        char name[NAME_MAX_BYTES];
        transformer_name(&net, i, name, sizeof(name));
        add_parameter(to, name, net.parameters[i], net.m[i], net.v[i]);
    }
    add(to, "step", net.step, EDDY_ROLE_STATE);
    is_fine =
        is_fine && begin_recording() && save(to, transformer_train(&net, text, EDDY_S(1e-3)), path);
    transformer_fini(&net);
    return is_fine;
}

int main(int argc, char **argv) {
    static state made;
    bool is_mlp = argc == 3 && strcmp(argv[1], "mlp") == 0;
    if (!is_mlp && (argc != 3 || strcmp(argv[1], "transformer") != 0)) {
        fprintf(stderr, "usage: save_step mlp|transformer FILE\n");
        return 2;
    }
    eddy_scope *scope = eddy_scope_begin();
    bool is_saved = is_mlp ? save_mlp(&made, argv[2]) : save_transformer(&made, argv[2]);
    eddy_scope_end(scope);
    eddy_error error;
    if (!is_saved && eddy_error_take(&error))
        fprintf(stderr, "save_step: %s\n", error.message);
    return is_saved ? 0 : 1;
}
