/* Programs in files, for the commands that load them: saved FOLDER. */
#include <eddy/eddy.h>
#include <stdio.h>

static const char *folder;

static void save(const char *name, const eddy_bindings *bindings) {
    char path[4096];
    eddy_program *program = eddy_record_end(bindings);
    snprintf(path, sizeof(path), "%s/%s.program", folder, name);
    if (program)
        (void)eddy_program_save(program, path);
    eddy_program_release(&program);
}

/* Operands of all kinds, a name that is hard to write, a captured tensor, a draw, integers. */
static void save_layers(void) {
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(8, 16), EDDY_F32, NULL),
                *labels = eddy_zeros(EDDY_SHAPE(8), EDDY_I64, NULL),
                *w = eddy_ones(EDDY_SHAPE(32, 16), EDDY_F32, NULL),
                *b = eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL),
                *captured = eddy_ones(EDDY_SHAPE(4, 32), EDDY_F32, NULL);
    eddy_record_begin(NULL);
    eddy_tensor *h = eddy_relu(eddy_linear(x, w, EDDY_NONE));
    h = eddy_dropout(h, EDDY_S(0.5), NULL);
    eddy_tensor *y = eddy_linear(h, captured, b);
    eddy_tensor *loss = eddy_cross_entropy(y, labels, NULL);
    eddy_sgd_step(EDDY_LIST(w), EDDY_LIST(eddy_mul_s(w, EDDY_S(0.5))), EDDY_S(0.1), NULL);
    save("layers",
         EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"la\"bels\n=\x1b[31m", labels, EDDY_ROLE_INPUT},
                       {"w", w, EDDY_ROLE_STATE}, {"b", b, EDDY_ROLE_CONSTANT},
                       {"y", y, EDDY_ROLE_OUTPUT}, {"loss", loss, EDDY_ROLE_OUTPUT}));
}

/* A sum of two inputs, of which one is turned and one is donated. */
static void save_sum(void) {
    eddy_tensor *turned = eddy_transpose(eddy_zeros(EDDY_SHAPE(3, 2), EDDY_F64, NULL), 0, 1),
                *given = eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F64, NULL);
    eddy_record_begin(NULL);
    eddy_tensor *sum = eddy_add(eddy_contiguous(turned), given);
    save("sum", EDDY_BINDINGS({"turned", turned, EDDY_ROLE_INPUT},
                              {"given", given, EDDY_ROLE_DONATED}, {"sum", sum, EDDY_ROLE_OUTPUT}));
}

/* Elementwise ops in a row, which run as one group. */
static void save_group(void) {
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(256, 256), EDDY_F32, NULL);
    eddy_record_begin(NULL);
    eddy_tensor *y = eddy_tanh(eddy_add_s(eddy_sqrt(eddy_exp(x)), EDDY_S(1)));
    eddy_tensor *sum = eddy_sum(y, EDDY_ALL_AXES, NULL);
    save("group", EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"sum", sum, EDDY_ROLE_OUTPUT}));
}

static eddy_status is_small(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(eddy_max(carried.items[0], EDDY_ALL_AXES, NULL), EDDY_S(100));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_add(inputs.items[0], inputs.items[0]);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status negative(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_neg(eddy_square(inputs.items[0]));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* A loop around a value that is made before it, and a branch. */
static void save_ways(void) {
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), *grown, *chosen;
    eddy_record_begin(NULL);
    eddy_while(is_small, twice, NULL, EDDY_LIST(x), NULL, &grown);
    eddy_tensor *is_far = eddy_lt_s(eddy_max(x, EDDY_ALL_AXES, NULL), EDDY_S(0.5));
    eddy_cond(is_far, twice, negative, NULL, EDDY_LIST(x), 1, NULL, &chosen);
    eddy_tensor *all = eddy_add(grown, chosen);
    save("ways", EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"all", all, EDDY_ROLE_OUTPUT}));
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    folder = argv[1];
    eddy_scope *scope = eddy_scope_begin();
    save_layers();
    save_sum();
    save_group();
    save_ways();
    eddy_scope_end(scope);
    return eddy_error_take(NULL) != EDDY_OK;
}
