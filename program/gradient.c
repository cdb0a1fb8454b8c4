/* Runs of a program under autograd: a node of the tape, and its gradient. */
#include <base/memory.h>
#include <base/status.h>
#include <eddy/view.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/overwritten.h>
#include <interpreter/tape/unfold.h>
#include <program/calls_alike.h>
#include <program/gradient.h>
#include <string.h>

/* ---- life ---- */

static void release_word(eddy_autograd word) {
    if (word)
        eddy_autograd_node_release(eddy_autograd_node_of(word));
}

static eddy_program_ways *retain_ways(eddy_program_ways *ways) {
    eddy_add_relaxed(&ways->references, 1u);
    return ways;
}

static void release_ways(eddy_program_ways *ways) {
    if (!ways || eddy_sub_acq_rel(&ways->references, 1u) != 1)
        return;
    for (uint32_t i = 0; i < ways->count; i++) {
        eddy_program_release(&ways->items[i].program);
        eddy_code_array_fini(&ways->items[i].from, sizeof(uint32_t));
        eddy_code_array_fini(&ways->items[i].to, sizeof(uint32_t));
    }
    eddy_gradient_calls_fini(&ways->calls);
    eddy_memory_release(ways, sizeof(*ways), EDDY_MEMORY_PROGRAM);
}

eddy_program_gradient *eddy_program_gradient_create(void) {
    eddy_program_gradient *gradient =
        eddy_memory_acquire_zeroed(sizeof(*gradient), EDDY_MEMORY_PROGRAM);
    if (!gradient)
        return NULL;
    gradient->ways = eddy_memory_acquire_zeroed(sizeof(*gradient->ways), EDDY_MEMORY_PROGRAM);
    if (!gradient->ways) {
        eddy_memory_release(gradient, sizeof(*gradient), EDDY_MEMORY_PROGRAM);
        return NULL;
    }
    eddy_store_relaxed(&gradient->ways->references, 1u);
    return gradient;
}

void eddy_program_gradient_destroy(eddy_program_gradient *gradient) {
    if (!gradient)
        return;
    for (uint32_t i = 0; i < gradient->edges.count; i++)
        release_word(eddy_program_edge_at(gradient, i)->word);
    for (uint32_t i = 0; i < gradient->results.count; i++)
        release_word(eddy_program_result_at(gradient, i)->word);
    release_ways(gradient->ways);
    eddy_program_release(&gradient->forward);
    eddy_code_array_fini(&gradient->edges, sizeof(eddy_program_edge));
    eddy_code_array_fini(&gradient->saved, sizeof(eddy_program_saved));
    eddy_code_array_fini(&gradient->results, sizeof(eddy_program_result));
    eddy_code_array_fini(&gradient->wants, sizeof(bool));
    eddy_memory_release(gradient, sizeof(*gradient), EDDY_MEMORY_PROGRAM);
}

eddy_status eddy_program_gradient_build(eddy_program_gradient *gradient, eddy_origin origin) {
    eddy_status status = eddy_program_build(gradient->forward, origin);
    for (uint32_t i = 0; i < gradient->ways->count && status == EDDY_OK; i++)
        status = eddy_program_build(gradient->ways->items[i].program, origin);
    return status;
}

void eddy_program_gradient_describe(const eddy_program_gradient *gradient,
                                    eddy_program_info *info) {
    info->grad_count = gradient->edges.count;
    for (uint32_t i = 0; i < gradient->saved.count; i++) {
        const eddy_program_saved *saved = eddy_program_saved_at(gradient, i);
        if (saved->output != EDDY_CODE_NONE)
            info->saved_bytes += eddy_code_value_at(&gradient->forward->code, saved->value)->bytes;
    }
}

static bool has_same_numbers(const eddy_code_array *a, const eddy_code_array *b) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof(uint32_t)) == 0);
}

static bool is_same_way(const eddy_program_way *a, const eddy_program_way *b) {
    char reason[EDDY_RECORDING_REASON_BYTES];
    if (a->roots != b->roots || !has_same_numbers(&a->from, &b->from) ||
        !has_same_numbers(&a->to, &b->to))
        return false;
    eddy_program_compare(a->program, b->program, reason, sizeof(reason));
    return !reason[0];
}

bool eddy_program_gradient_is_equal(const eddy_program_gradient *a,
                                    const eddy_program_gradient *b) {
    if (!a || !b)
        return !a && !b;
    if (a->ways->root_count != b->ways->root_count || a->ways->count != b->ways->count ||
        a->edges.count != b->edges.count || a->saved.count != b->saved.count ||
        a->results.count != b->results.count)
        return false;
    for (uint32_t i = 0; i < a->edges.count; i++)
        if (eddy_program_edge_at(a, i)->input != eddy_program_edge_at(b, i)->input ||
            eddy_program_edge_at(a, i)->word != eddy_program_edge_at(b, i)->word)
            return false;
    for (uint32_t i = 0; i < a->results.count; i++) {
        const eddy_program_result *x = eddy_program_result_at(a, i),
                                  *y = eddy_program_result_at(b, i);
        if (x->root != y->root || x->input != y->input || x->word != y->word ||
            x->stands_in != y->stands_in)
            return false;
    }
    for (uint32_t i = 0; i < a->saved.count; i++)
        if (eddy_program_saved_at(a, i)->tensor != eddy_program_saved_at(b, i)->tensor)
            return false;
    for (uint32_t i = 0; i < a->ways->count; i++)
        if (!is_same_way(&a->ways->items[i], &b->ways->items[i]))
            return false;
    return eddy_calls_is_equal(&a->ways->calls, &b->ways->calls);
}

/* ---- what a node keeps ---- */

/* Of one run: what its gradient takes beside the saved tensors. */
typedef struct kept_run {
    eddy_program_ways *ways; /* a reference */
    size_t bytes;
    int64_t words[]; /* two for each draw, then the numbers given */
} kept_run;

/* The node's attributes. */
typedef struct kept_op {
    eddy_op op;
    eddy_gradient gradient;
    kept_run *run; /* the hook's */
} kept_op;

static size_t draw_words(const eddy_program_ways *ways) {
    return 2 * (size_t)ways->draw_count;
}

static kept_run *kept_run_make(eddy_program_ways *ways, const eddy_run *call) {
    size_t scalars = ways->scalar_count * sizeof(eddy_scalar);
    size_t bytes = sizeof(kept_run) + draw_words(ways) * sizeof(int64_t) + scalars;
    kept_run *run = eddy_memory_acquire(bytes, EDDY_MEMORY_TAPE);
    if (!run)
        return NULL;
    run->ways = retain_ways(ways);
    run->bytes = bytes;
    if (scalars > 0)
        memcpy(run->words + draw_words(ways), call->scalars, scalars);
    return run;
}

static void kept_run_destroy(void *context) {
    kept_run *run = context;
    release_ways(run->ways);
    eddy_memory_release(run, run->bytes, EDDY_MEMORY_TAPE);
}

/* ---- back ---- */

static eddy_origin origin_of(const eddy_gradient_call *call) {
    return (eddy_origin){call->op->name, NULL};
}

/* The way for the outputs to which a gradient has come; where there is none of its own, that of all. NULL: there are none. */
static const eddy_program_way *find_way(const eddy_program_ways *ways,
                                        const eddy_gradient_call *call) {
    uint64_t roots = 0;
    for (uint32_t i = 0; i < ways->root_count; i++)
        roots |= (uint64_t)(call->grads[i] != NULL) << i;
    for (uint32_t i = 0; i < ways->count; i++)
        if (ways->items[i].roots == roots)
            return &ways->items[i];
    return ways->count > 0 ? &ways->items[0] : NULL;
}

/* A seed with the strides that the way was recorded with: those of a contiguous tensor. */
static eddy_status fit_seed(const eddy_program_binding *binding, const eddy_gradient_call *call,
                            uint32_t root, eddy_tensor **seed) {
    eddy_tensor *given = call->grads[root];
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    if (given && given->is_contiguous) {
        *seed = given;
    } else if (given) {
        *seed = eddy_contiguous(given);
    } else {
        eddy_spec spec = {.dtype = (eddy_dtype)binding->dtype};
        spec.shape.rank = binding->layout.rank;
        memcpy(spec.shape.dims, binding->layout.dims, sizeof(spec.shape.dims));
        eddy_outcome_end(&outcome);
        return eddy_gradient_ops_table.zeros(&spec, call->device, seed);
    }
    eddy_outcome_end(&outcome);
    return *seed ? EDDY_OK : eddy_outcome_why(&outcome);
}

static eddy_status fill_inputs(uint32_t root_count, const eddy_program_way *way,
                               const eddy_gradient_call *call, eddy_tensor **inputs) {
    const uint32_t *from = way->from.items;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < way->from.count && status == EDDY_OK; i++) {
        if (from[i] < root_count)
            status = fit_seed(eddy_program_binding_at(way->program, i), call, from[i], &inputs[i]);
        else
            inputs[i] = call->extras[from[i] - root_count];
    }
    return status;
}

static eddy_status go_back(const kept_run *run, const eddy_program_way *way,
                           const eddy_gradient_call *call, eddy_tensor **memory) {
    const uint32_t *to = way->to.items;
    eddy_tensor **outputs = memory + way->from.count;
    eddy_status status = fill_inputs(run->ways->root_count, way, call, memory);
    if (status == EDDY_OK)
        status = eddy_run_make_untraced(&(eddy_run){
            .program = way->program,
            .caller = eddy_caller_self,
            .inputs = {memory, way->from.count},
            .scalars = (const eddy_scalar *)(const void *)(run->words + draw_words(run->ways)),
            .outputs = outputs,
            .given_draws = run->words,
            .origin = origin_of(call)});
    for (uint32_t i = 0; i < way->to.count && status == EDDY_OK; i++)
        call->results[to[i]] = outputs[i];
    return status;
}

static eddy_status run_gradient(const eddy_gradient_call *call) {
    const kept_op *op = call->attributes;
    const eddy_program_ways *ways = op->run->ways;
    const eddy_program_way *way = find_way(ways, call);
    eddy_caller *caller = eddy_caller_self;
    /* Such a pass goes through the calls, where it can. */
    if (call->is_recorded || caller->recorder || !way)
        return eddy_fail(EDDY_UNSUPPORTED, origin_of(call),
                         "%s cannot go back through this run: %s",
                         call->is_recorded  ? "creates_graph"
                         : caller->recorder ? "a backward pass that is recorded"
                                            : "a backward pass",
                         ways->calls.reason[0] ? ways->calls.reason
                                               : "the predicate of a branch, or the number of a "
                                                 "loop's steps, cannot be read");
    size_t bytes = ((size_t)way->from.count + way->to.count) * sizeof(eddy_tensor *);
    eddy_tensor **memory = eddy_caller_scratch_begin(caller, bytes);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin_of(call), "no memory to go back");
    eddy_status status = go_back(op->run, way, call, memory);
    eddy_caller_scratch_end(caller, memory, bytes);
    return status;
}

/* Which way the run has taken is past: that this is read here is nothing that a recording would have to read again. */
static eddy_status unfold(eddy_autograd_node *node, eddy_autograd *words) {
    const kept_run *run = ((const kept_op *)node->attributes)->run;
    eddy_caller *caller = eddy_caller_self;
    eddy_recorder *recorder = caller->recorder;
    eddy_gradient_given given = {
        .draws = run->words,
        .scalars = (const eddy_scalar *)(const void *)(run->words + draw_words(run->ways))};
    caller->recorder = NULL;
    eddy_status status = eddy_gradient_calls_unfold(&run->ways->calls, node, &given, words);
    caller->recorder = recorder;
    return status;
}

/* ---- forward ---- */

/* Whether somebody gets an output, or gives a place for one: a gradient may come back then. */
static bool takes_outputs(const eddy_run *r) {
    bool takes = r->outputs || r->places || !r->targets;
    for (uint32_t i = 0; i < r->program->output_count && !takes; i++)
        takes = !eddy_tensor_is_none(r->targets[i]);
    return takes;
}

bool eddy_run_is_traced(const eddy_run *r) {
    const eddy_program *program = r->program;
    const eddy_caller *caller = r->caller;
    eddy_list inputs = r->inputs;
    const eddy_program_gradient *gradient = program ? program->gradient : NULL;
    if (!gradient || !eddy_caller_may_call(caller) || caller->no_grad > 0 ||
        !eddy_runtime_is_running(program->runtime) || inputs.count != program->input_count ||
        (inputs.count > 0 && !inputs.items))
        return false;
    bool is_traced = false;
    for (int64_t i = 0; i < inputs.count; i++) {
        if (!eddy_tensor_is_live(inputs.items[i]))
            return false;
        is_traced |= inputs.items[i]->autograd != 0;
    }
    for (uint32_t i = 0; i < gradient->edges.count; i++)
        is_traced |= eddy_program_edge_at(gradient, i)->word != 0;
    for (uint32_t i = 0; i < gradient->results.count; i++)
        is_traced |= eddy_program_result_at(gradient, i)->word != 0;
    return is_traced && takes_outputs(r);
}

typedef struct tracing {
    eddy_program *program;
    const eddy_program_gradient *gradient;
    const eddy_run *call;
    eddy_caller *caller;
    eddy_autograd_node *node;
    kept_run *run;
    eddy_tensor **made;    /* outputs of the forward program; a scope's */
    eddy_tensor **handles; /* the user's, of outputs that are roots; else NULL */
    uint32_t *versions;    /* of the saved tensors that were there before the run */
} tracing;

static eddy_status fail_memory(const tracing *t) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, t->call->origin, "no memory for a run");
}

/* An input that wants a gradient, and did not when the program was recorded: there is no way back to it. */
static eddy_status check_wants(const tracing *t) {
    const bool *wants = t->gradient->wants.items;
    for (int64_t i = 0; i < t->call->inputs.count; i++)
        if (t->call->inputs.items[i]->autograd && !wants[i])
            return eddy_fail(EDDY_UNSUPPORTED, t->call->origin,
                             "input %s wants a gradient, and wanted none when the program was "
                             "recorded; detach it, or record again",
                             eddy_program_binding_of(t->program, EDDY_ROLE_INPUT, i)->name);
    return EDDY_OK;
}

/* ---- the node ---- */

static bool make_node(tracing *t) {
    const eddy_program_gradient *gradient = t->gradient;
    size_t dims = 0;
    for (uint32_t i = 0; i < gradient->edges.count; i++)
        dims += (size_t)eddy_program_edge_at(gradient, i)->spec.shape.rank;
    t->run = kept_run_make(gradient->ways, t->call);
    t->node = t->run ? eddy_autograd_node_make(&(eddy_autograd_size){
                           .inputs = gradient->edges.count,
                           .outputs = gradient->ways->root_count,
                           .extras = gradient->saved.count,
                           .dims = dims + (size_t)gradient->ways->root_count * EDDY_RANK_MAX,
                           .attribute_bytes = sizeof(kept_op)})
                     : NULL;
    eddy_autograd_hook *hook =
        t->node ? eddy_memory_acquire_zeroed(sizeof(*hook), EDDY_MEMORY_TAPE) : NULL;
    if (!hook) {
        if (t->run)
            kept_run_destroy(t->run);
        return false;
    }
    *hook =
        (eddy_autograd_hook){.context = t->run, .destroy = kept_run_destroy, .output = UINT32_MAX};
    t->node->hooks = hook;
    kept_op *op = t->node->attributes;
    *op = (kept_op){.op = {.name = "program", .id = EDDY_OP_REGISTERED, .gradient = &op->gradient},
                    .gradient = {.run = run_gradient},
                    .run = t->run};
    t->node->op = &op->op;
    t->node->takes_missing = true;
    t->node->unfold = unfold;
    t->node->unfolds_always = gradient->ways->count == 0;
    t->node->inner_outputs = gradient->ways->inner;
    t->node->address = t->call->origin.address;
    return true;
}

static void link_edges(const tracing *t, uint32_t *dims_at) {
    eddy_autograd_node *node = t->node;
    for (uint32_t i = 0; i < t->gradient->edges.count; i++) {
        const eddy_program_edge *edge = eddy_program_edge_at(t->gradient, i);
        eddy_autograd word = edge->input == EDDY_CODE_NONE
                                 ? edge->word
                                 : t->call->inputs.items[edge->input]->autograd;
        node->edges[i] = word;
        if (word)
            eddy_autograd_node_retain(eddy_autograd_node_of(word));
        node->specs[i] = (eddy_autograd_spec){.dtype = (uint8_t)edge->spec.dtype,
                                              .rank = (int8_t)edge->spec.shape.rank,
                                              .dims_at = *dims_at};
        for (int32_t d = 0; d < edge->spec.shape.rank; d++)
            node->dims[(*dims_at)++] = edge->spec.shape.dims[d];
    }
}

/* The tensor that a saved value is; of hidden outputs once the forward program runs. */
static eddy_tensor *saved_tensor(const tracing *t, const eddy_program_saved *saved) {
    if (saved->tensor)
        return saved->tensor;
    return saved->input != EDDY_CODE_NONE ? t->call->inputs.items[saved->input]
                                          : t->made[saved->output];
}

/* Before the run, so that a write by another thread shows. */
static void note_versions(const tracing *t) {
    for (uint32_t i = 0; i < t->gradient->saved.count; i++) {
        const eddy_program_saved *saved = eddy_program_saved_at(t->gradient, i);
        if (saved->output == EDDY_CODE_NONE)
            t->versions[i] = eddy_load_relaxed(&saved_tensor(t, saved)->root->version);
    }
}

static void save_tensors(const tracing *t) {
    eddy_autograd_node *node = t->node;
    for (uint32_t i = 0; i < t->gradient->saved.count; i++) {
        const eddy_program_saved *saved = eddy_program_saved_at(t->gradient, i);
        eddy_tensor *tensor = saved_tensor(t, saved);
        bool is_new = saved->output != EDDY_CODE_NONE || saved->is_written;
        eddy_tensor_retain(tensor);
        eddy_overwritten_watch(tensor);
        node->saved[node->input_count + node->output_count + i] = (eddy_autograd_saved){
            .tensor = tensor,
            .version = is_new ? eddy_load_relaxed(&tensor->root->version) : t->versions[i]};
    }
}

/* ---- outputs ---- */

/* A second handle for each output that is a root: the node holds others of the same storage, which refer to no node. */
static bool make_handles(const tracing *t) {
    for (uint32_t i = 0; i < t->gradient->results.count; i++)
        if (eddy_program_result_at(t->gradient, i)->root != EDDY_CODE_NONE &&
            !(t->handles[i] =
                  eddy_tensor_acquire(t->caller, t->program->runtime, t->call->origin.address)))
            return false;
    return eddy_scope_reserve(t->caller, t->gradient->results.count);
}

static void discard(const tracing *t) {
    for (uint32_t i = 0; i < t->gradient->results.count; i++)
        if (t->handles[i])
            eddy_tensor_discard(t->caller, t->handles[i]);
    if (t->node)
        eddy_autograd_node_release(t->node);
}

static void name_output(const tracing *t, uint32_t i, bool *is_noted, uint32_t *dims_at) {
    const eddy_program_result *result = eddy_program_result_at(t->gradient, i);
    eddy_autograd word = result->word;
    if (result->root != EDDY_CODE_NONE) {
        eddy_tensor_alias(t->handles[i], t->made[i]);
        t->handles[i]->stands_in = result->stands_in;
        if (!is_noted[result->root])
            eddy_autograd_node_note(t->node, t->node->input_count + result->root, t->handles[i],
                                    dims_at);
        is_noted[result->root] = true;
        t->node->device = eddy_tensor_device(t->handles[i]);
        eddy_autograd_node_name(t->node, result->root, t->handles[i]);
        return;
    }
    if (result->input != EDDY_CODE_NONE)
        word = t->call->inputs.items[result->input]->autograd;
    t->handles[i] = t->made[i];
    eddy_tensor_retain(t->handles[i]);
    if (word) {
        eddy_autograd_node_retain(eddy_autograd_node_of(word));
        eddy_autograd_set(t->handles[i], word);
    }
}

/* The run was submitted: nothing fails from here on. */
static void fill_node(const tracing *t) {
    bool is_noted[EDDY_GRADIENT_ROOTS_MOST] = {false};
    uint32_t dims_at = 0;
    link_edges(t, &dims_at);
    save_tensors(t);
    for (uint32_t i = 0; i < t->gradient->results.count; i++)
        name_output(t, i, is_noted, &dims_at);
}

/* In a recording the run is its calls, to those that come after it as well: they are recorded, and so is what goes back through them. */
static bool is_recorded(const tracing *t) {
    return t->caller->recorder != NULL;
}

static eddy_status show_calls(const tracing *t) {
    const eddy_autograd *words;
    eddy_status status = eddy_unfold_find(t->node, true, &words);
    if (status == EDDY_OUT_OF_MEMORY)
        return fail_memory(t);
    if (status == EDDY_OK && !words)
        return eddy_fail(EDDY_UNSUPPORTED, t->call->origin,
                         "another thread has written what the program has saved");
    for (uint32_t i = 0; i < t->gradient->results.count; i++) {
        uint32_t root = eddy_program_result_at(t->gradient, i)->root;
        if (root == EDDY_CODE_NONE || !t->handles[i]->autograd)
            continue;
        eddy_autograd_node_retain(eddy_autograd_node_of(words[root]));
        eddy_autograd_set(t->handles[i], words[root]);
    }
    return status;
}

static void drop_handles(const tracing *t) {
    for (uint32_t i = 0; i < t->gradient->results.count; i++)
        eddy_tensor_drop(t->handles[i]);
}

static void hand_out(const tracing *t) {
    for (uint32_t i = 0; i < t->gradient->results.count; i++) {
        eddy_tensor **place = t->call->places ? t->call->places[i] : &t->call->outputs[i];
        if (!place) {
            eddy_tensor_drop(t->handles[i]);
            continue;
        }
        eddy_scope_own(t->caller, t->handles[i]);
        *place = t->handles[i];
    }
}

/* ---- all of it ---- */

static eddy_status run_forward(const tracing *t) {
    return eddy_run_make_untraced(&(eddy_run){.program = t->gradient->forward,
                                              .caller = t->caller,
                                              .origin = t->call->origin,
                                              .inputs = t->call->inputs,
                                              .scalars = t->call->scalars,
                                              .outputs = t->made,
                                              .unfit = t->call->unfit,
                                              .turn = t->call->turn,
                                              .path = t->call->path,
                                              .drawn = t->run->words});
}

static eddy_status run(tracing *t) {
    if (!make_handles(t) || !make_node(t)) {
        discard(t);
        return fail_memory(t);
    }
    note_versions(t);
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(t->caller, t->call->origin, &scope);
    if (status != EDDY_OK) {
        discard(t);
        return status;
    }
    status = run_forward(t);
    if (status != EDDY_OK) {
        discard(t);
        eddy_scope_end(scope);
        return status;
    }
    fill_node(t);
    if (is_recorded(t))
        status = show_calls(t);
    eddy_autograd_node_release(t->node);
    eddy_scope_end(scope);
    if (status == EDDY_OK)
        hand_out(t);
    else
        drop_handles(t);
    return status;
}

/* Which way another run takes, or how many steps it makes, is not known. */
static eddy_status check_calls(const tracing *t) {
    const eddy_gradient_calls *calls = &t->gradient->ways->calls;
    if (calls->reason[0])
        return eddy_fail(EDDY_UNSUPPORTED, t->call->origin,
                         "gradients cannot go back through its calls in a recording: %s",
                         calls->reason);
    if (!eddy_gradient_calls_depend_on_run(calls))
        return EDDY_OK;
    return eddy_fail(EDDY_UNSUPPORTED, t->call->origin,
                     "gradients cannot go back through its branches and loops in a recording; run "
                     "it between no_grad_begin and _end");
}

/* No gradient follows into given tensors, as with ops; and edges lead to the program's own state. */
static eddy_status check_given(const tracing *t) {
    const eddy_run *call = t->call;
    const eddy_program *program = t->program;
    uint32_t outputs = 0, states = 0;
    for (uint32_t i = 0; i < eddy_program_named_count(program); i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        bool is_output = binding->role == EDDY_ROLE_OUTPUT,
             is_state = binding->role == EDDY_ROLE_STATE;
        eddy_tensor *const *given = is_output ? call->targets : is_state ? call->states : NULL;
        if (given && !eddy_tensor_is_none(given[is_output ? outputs : states]))
            return eddy_fail(EDDY_UNSUPPORTED, call->origin,
                             "%s is given, and no gradient can follow into a given tensor; run "
                             "between no_grad_begin and _end",
                             binding->name);
        outputs += is_output;
        states += is_state;
    }
    if (program->output_count > 0 && !call->outputs && !call->places)
        return eddy_fail(EDDY_INVALID_ARGUMENT, call->origin, "there is no room for the outputs");
    eddy_status status = is_recorded(t) ? check_calls(t) : EDDY_OK;
    return status == EDDY_OK ? check_wants(t) : status;
}

eddy_status eddy_run_make_traced(eddy_run *call) {
    eddy_program *program = call->program;
    const eddy_program_gradient *gradient = program->gradient;
    tracing t = {.program = program, .gradient = gradient, .call = call, .caller = call->caller};
    eddy_status status = check_given(&t);
    if (status != EDDY_OK)
        return status;
    uint32_t made = gradient->forward->output_count, results = gradient->results.count;
    size_t bytes =
        ((size_t)made + results) * sizeof(eddy_tensor *) + gradient->saved.count * sizeof(uint32_t);
    char *memory = eddy_caller_scratch_begin(t.caller, bytes);
    if (!memory)
        return fail_memory(&t);
    memset(memory, 0, bytes);
    t.made = (eddy_tensor **)(void *)memory;
    t.handles = t.made + made;
    t.versions = (uint32_t *)(void *)(t.handles + results);
    status = run(&t);
    eddy_caller_scratch_end(t.caller, memory, bytes);
    return status;
}
