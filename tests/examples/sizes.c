/* The training steps of both examples at many batch sizes, and the loss of one of them, which gradients go back through: those of 8 and 16 foretell the others, with
 * the numbers of the calls; in a bucket, too.
 * Exits 1, with a sentence, where they do not. */
#include <examples/network.h>
#include <examples/transformer.h>
#include <stdio.h>
#include <string.h>

#define STEPS 10
#define SEQUENCE 24

typedef struct trained {
    network net;
    transformer text;
    bool is_text;
    bool is_loss; /* of the step, the loss alone is the function */
    int calls;    /* of the step itself */
    double losses[STEPS];
    char explained[4096];
} trained;

static eddy_status step(void *context, eddy_recorded_call *call) {
    trained *t = context;
    t->calls++;
    if (t->is_loss)
        call->outputs[0] = transformer_loss(&t->text, call->inputs.items[0]);
    else
        call->outputs[0] =
            t->is_text ? transformer_train(&t->text, call->inputs.items[0], call->scalars[0])
                       : network_train(&t->net, call->inputs.items[0], call->inputs.items[1],
                                       call->scalars[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* What comes behind the loss where that alone is replayed. */
static eddy_status update(transformer *net, eddy_tensor *loss, eddy_scalar rate) {
    eddy_status status = eddy_backward(loss);
    eddy_no_grad_begin();
    for (int64_t i = 0; i < net->count && status == EDDY_OK; i++)
        status =
            eddy_sub_into(net->parameters[i], eddy_mul_s(eddy_grad_of(net->parameters[i]), rate),
                          net->parameters[i]);
    eddy_no_grad_end();
    return status == EDDY_OK ? eddy_grads_zero((eddy_list){net->parameters, net->count}) : status;
}

static eddy_tensor *numbers(eddy_shape shape, int64_t below, eddy_dtype dtype) {
    return eddy_randint(0, below, shape, dtype, NULL);
}

static eddy_status take_step(trained *t, eddy_recorded *recorded, int number, int64_t batch) {
    eddy_scalar rate = EDDY_S(1e-3 / (1 + number));
    eddy_tensor *loss = NULL,
                *items[] = {t->is_text ? numbers(EDDY_SHAPE(batch, SEQUENCE + 1), 30, EDDY_I64)
                                       : numbers(EDDY_SHAPE(batch, NETWORK_INPUTS), 256, EDDY_U8),
                            numbers(EDDY_SHAPE(batch), NETWORK_CLASSES, EDDY_I64)};
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = {items, t->is_text ? 1 : 2},
                               .scalars = &rate,
                               .scalar_count = 1,
                               .outputs = &loss,
                               .output_count = 1};
    eddy_status status = recorded
                             ? eddy_recorded_run(recorded, call.inputs, EDDY_SCALARS(rate), &loss)
                             : step(t, &call);
    if (status == EDDY_OK && t->is_loss)
        status = update(&t->text, loss, EDDY_S(0.125));
    return status == EDDY_OK ? eddy_read_f64(loss, &t->losses[number], NULL) : status;
}

/* How the steps run. */
typedef enum way { CALLS, FORETOLD, IN_BUCKET } way;

static bool train(trained *t, int kind, way how) {
    static const int64_t batches[STEPS] = {8, 8, 16, 16, 13, 13, 11, 9, 20, 15};
    *t = (trained){.is_text = kind >= 2, .is_loss = kind == 3};
    (void)!eddy_seed(3);
    bool is_fine =
        t->is_text
            ? transformer_init(&t->text, &(struct transformer_size){30, 16, 2, 2, 24, SEQUENCE})
            : network_init(&t->net, (network_model)kind, EDDY_F32);
    eddy_recorded *recorded =
        how == CALLS ? NULL
                     : eddy_recorded_create(step, t, 1,
                                            EDDY_OPTIONS(recorded, .foretells_shapes = true,
                                                         .most_size = how == IN_BUCKET ? 24 : 0));
    for (int i = 0; i < STEPS && is_fine; i++) {
        eddy_scope *scope = eddy_scope_begin();
        is_fine = take_step(t, recorded, i, batches[i]) == EDDY_OK;
        eddy_scope_end(scope);
    }
    if (recorded)
        (void)!eddy_recorded_explain(recorded, t->explained, sizeof(t->explained));
    eddy_recorded_release(&recorded);
    transformer_fini(&t->text);
    network_fini(&t->net);
    return is_fine;
}

static const char *const names[] = {"linear layers", "convolutions", "the transformer",
                                    "the loss of the transformer"};

static bool has_same_losses(int kind, const trained *calls, const trained *runs) {
    for (int i = 0; i < STEPS; i++)
        if (memcmp(&calls->losses[i], &runs->losses[i], sizeof(double)) != 0) {
            fprintf(stderr, "%s, step %d: %.17g by calls, %.17g foretold\n", names[kind], i,
                    calls->losses[i], runs->losses[i]);
            return false;
        }
    return true;
}

static bool compare(int kind, way how, int ran) {
    trained calls, runs;
    eddy_error error;
    if (!train(&calls, kind, CALLS) || !train(&runs, kind, how)) {
        eddy_error_take(&error);
        fprintf(stderr, "%s: %s\n", names[kind], error.message);
        return false;
    }
    if (runs.calls != ran) {
        fprintf(stderr, "%s: the step ran %d times, not twice with 8 and 16, and once with 13%s\n",
                names[kind], runs.calls, how == FORETOLD ? " and 20" : "");
        return false;
    }
    if (how == IN_BUCKET && !strstr(runs.explained, "sizes 9 to 20, 4 derived")) {
        fprintf(stderr, "%s: 9, 11, 15 and 20 are not derived:\n%s", names[kind], runs.explained);
        return false;
    }
    return has_same_losses(kind, &calls, &runs);
}

int main(void) {
    bool is_fine = true;
    for (int kind = 0; kind < 4; kind++)
        is_fine &= compare(kind, FORETOLD, 6) && compare(kind, IN_BUCKET, 5);
    return !is_fine;
}
