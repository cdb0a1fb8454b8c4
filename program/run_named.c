/* eddy_program_run_named: feeds and fetches by name become the lists of a run. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <program/feeds.h>
#include <program/run.h>
#include <program/run_data.h>
#include <program/tensor_store.h>
#include <program/variant.h>

/* Lists of so many fit on the stack. */
#define STACK_ITEMS 64

typedef struct naming {
    eddy_program *program;
    eddy_origin origin;
    eddy_feeds feeds, targets;
    eddy_fetches fetches;
    eddy_data_feeds data;
    eddy_tensor_store *store, *defaults; /* NULL: none */
    /* One for each binding of the role. */
    eddy_tensor **given_inputs, **given_states, **given_targets; /* EDDY_NONE: not given yet */
    eddy_tensor **taken; /* of inputs and states: a reference from a store or of a copy, or NULL */
    eddy_tensor ***places;           /* NULL: not fetched */
    eddy_tensor_store *output_store; /* NULL: none */
    eddy_output_ring *ring;          /* NULL: none */
    eddy_tensor **stored; /* per output: what goes to that store and was not fetched, or NULL */
} naming;

static eddy_status find(const naming *n, eddy_role role, const char *name, int64_t *number) {
    *number = name ? eddy_program_find(n->program, role, name) : -1;
    return *number < 0 ? eddy_program_refuse_name(n->program, role, name, n->origin) : EDDY_OK;
}

static eddy_status fail_twice(const naming *n, const char *what, const char *name) {
    return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "%s %s is given twice", what, name);
}

/* A target that is EDDY_NONE is not wanted; what a run takes is there. */
static eddy_status feed(const naming *n, eddy_role role, const char *what, const eddy_feed *feed,
                        eddy_tensor **given) {
    bool may_be_none = role == EDDY_ROLE_OUTPUT;
    int64_t number;
    eddy_status status = find(n, role, feed->name, &number);
    if (status == EDDY_OK)
        status = may_be_none && eddy_tensor_is_none(feed->tensor)
                     ? EDDY_OK
                     : eddy_tensor_check(feed->tensor, feed->name, n->origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_tensor_is_none(given[number]))
        return fail_twice(n, what, feed->name);
    given[number] = feed->tensor;
    return EDDY_OK;
}

static bool is_state(const naming *n, const char *name) {
    return name && eddy_program_find(n->program, EDDY_ROLE_STATE, name) >= 0;
}

static eddy_status feed_all(const naming *n) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->feeds.count && status == EDDY_OK; i++)
        if (is_state(n, n->feeds.items[i].name))
            status = feed(n, EDDY_ROLE_STATE, "state", &n->feeds.items[i], n->given_states);
        else
            status = feed(n, EDDY_ROLE_INPUT, "input", &n->feeds.items[i], n->given_inputs);
    for (int64_t i = 0; i < n->targets.count && status == EDDY_OK; i++)
        status = feed(n, EDDY_ROLE_OUTPUT, "the target of output", &n->targets.items[i],
                      n->given_targets);
    return status;
}

static eddy_status copy_data(const naming *n) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->data.count && status == EDDY_OK; i++) {
        const eddy_data_feed *given = &n->data.items[i];
        int64_t number;
        status = find(n, EDDY_ROLE_INPUT, given->name, &number);
        if (status == EDDY_OK && !eddy_tensor_is_none(n->given_inputs[number]))
            status = fail_twice(n, "input", given->name);
        if (status == EDDY_OK)
            status = eddy_run_data_copy(
                n->program, eddy_program_binding_of(n->program, EDDY_ROLE_INPUT, number), given,
                n->origin, &n->taken[number]);
        if (status == EDDY_OK)
            n->given_inputs[number] = n->taken[number];
    }
    return status;
}

static eddy_status fail_missing(const naming *n, const eddy_program_binding *binding) {
    const char *what = binding->role == EDDY_ROLE_INPUT ? "input" : "state";
    return n->store || (n->defaults && binding->role == EDDY_ROLE_INPUT)
               ? eddy_fail(EDDY_INVALID_ARGUMENT, n->origin,
                           "%s %s is not given, nor in the store or a parent of it", what,
                           binding->name)
               : eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "%s %s is not given", what,
                           binding->name);
}

/* What was not fed comes from a store. With references: another thread may change the store before the run is made. */
static eddy_status take_all(const naming *n) {
    uint32_t inputs = 0, states = 0, count = eddy_program_named_count(n->program);
    for (uint32_t i = 0; i < count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(n->program, i);
        bool is_input = binding->role == EDDY_ROLE_INPUT;
        if (!is_input && binding->role != EDDY_ROLE_STATE)
            continue;
        eddy_tensor **given = is_input ? &n->given_inputs[inputs++] : &n->given_states[states++];
        if (!eddy_tensor_is_none(*given) || (!is_input && !n->store))
            continue;
        if (binding->is_donated)
            return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin,
                             "input %s is not given: it is donated, and comes from no store",
                             binding->name);
        eddy_tensor *tensor = eddy_tensor_store_take(n->store, binding->name);
        if (!tensor && is_input)
            tensor = eddy_tensor_store_take(n->defaults, binding->name);
        if (!tensor)
            return fail_missing(n, binding);
        *given = n->taken[given - n->given_inputs] = tensor;
    }
    return EDDY_OK;
}

static eddy_status fetch_all(const naming *n) {
    for (int64_t i = 0; i < n->fetches.count; i++) {
        const eddy_fetch *fetch = &n->fetches.items[i];
        int64_t number;
        eddy_status status = find(n, EDDY_ROLE_OUTPUT, fetch->name, &number);
        if (status != EDDY_OK)
            return status;
        if (!fetch->tensor)
            return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "there is no room for output %s",
                             fetch->name);
        if (n->places[number])
            return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "output %s is fetched twice",
                             fetch->name);
        n->places[number] = fetch->tensor;
    }
    return EDDY_OK;
}

/* Outputs that go to a store are fetched, too. */
static void fetch_stored(const naming *n) {
    for (uint32_t i = 0; i < n->program->output_count && n->output_store; i++)
        if (!n->places[i])
            n->places[i] = &n->stored[i];
}

static eddy_status store_outputs(const naming *n) {
    uint32_t output = 0, count = eddy_program_named_count(n->program);
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < count && n->output_store && status == EDDY_OK; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(n->program, i);
        if (binding->role == EDDY_ROLE_OUTPUT)
            status = eddy_tensor_store_set(n->output_store, binding->name, *n->places[output++]);
    }
    return status;
}

static uint32_t count_states(const eddy_program *program) {
    uint32_t count = 0;
    for (uint32_t i = 0; program->state_count > 0 && i < program->bindings.count; i++)
        count += eddy_program_binding_at(program, i)->role == EDDY_ROLE_STATE;
    return count;
}

static bool is_wanted(const naming *n, uint32_t output) {
    return n->places[output] || !eddy_tensor_is_none(n->given_targets[output]);
}

/* The program for the outputs that are wanted, a reference. Where it is another one, their targets and places are the first of these lists. */
static eddy_program *choose(const naming *n, eddy_ring_turn *turn) {
    uint64_t wanted = 0;
    uint32_t kept = 0, count = n->program->output_count;
    for (uint32_t i = 0; i < count; i++)
        wanted |= (uint64_t)is_wanted(n, i) << i;
    eddy_program *chosen = eddy_program_variant_for(n->program, wanted);
    if (turn && chosen != n->program)
        turn->outputs = wanted;
    for (uint32_t i = 0; i < count && chosen != n->program; i++) {
        if (!(wanted >> i & 1))
            continue;
        n->places[kept] = n->places[i];
        n->given_targets[kept++] = n->given_targets[i];
    }
    return chosen;
}

static bool wants_all(const naming *n) {
    uint32_t i = 0;
    while (i < n->program->output_count && is_wanted(n, i))
        i++;
    return i == n->program->output_count;
}

/* What is an error does not depend on what is fetched. */
static eddy_status run_wanted(const naming *n, eddy_run *r) {
    /* Inputs from other devices are brought once, for all of the program. */
    if (!n->program->variants || wants_all(n) || eddy_run_is_traced(r) || eddy_feeds_is_needed(r))
        return eddy_run_make(r);
    eddy_status status = eddy_run_check(r);
    if (status != EDDY_OK)
        return status;
    r->program = choose(n, r->turn);
    status = eddy_run_make(r);
    eddy_program_release(&r->program);
    return status;
}

static eddy_status run_in_ring(const naming *n, eddy_run *r) {
    eddy_ring_turn turn;
    eddy_status status = eddy_ring_turn_begin(&turn, n->ring, n->program, n->origin);
    if (status != EDDY_OK)
        return status;
    r->turn = &turn;
    status = run_wanted(n, r);
    eddy_ring_turn_end(&turn, status);
    return status;
}

static eddy_status run_given(const naming *n) {
    eddy_status status = feed_all(n);
    if (status == EDDY_OK)
        status = fetch_all(n);
    if (status == EDDY_OK)
        status = copy_data(n);
    if (status == EDDY_OK)
        status = take_all(n);
    if (status != EDDY_OK)
        return status;
    fetch_stored(n);
    eddy_run r = {.program = n->program,
                  .caller = eddy_caller_get(),
                  .origin = n->origin,
                  .inputs = {n->given_inputs, n->program->input_count},
                  .targets = n->given_targets,
                  .states = n->given_states,
                  .places = n->places};
    return n->ring ? run_in_ring(n, &r) : run_wanted(n, &r);
}

/* memory: what item_count counts. Of inputs, states and outputs in a row, what is given; then what is taken, places, and what goes to a store. */
static eddy_status run(naming *n, uint32_t states, void **memory) {
    const eddy_program *program = n->program;
    uint32_t takes = program->input_count + states, given = takes + program->output_count;
    n->given_inputs = (eddy_tensor **)memory;
    n->given_states = n->given_inputs + program->input_count;
    n->given_targets = n->given_inputs + takes;
    n->taken = n->given_inputs + given;
    n->places = (eddy_tensor ***)(memory + given + takes);
    for (uint32_t i = 0; i < given; i++)
        n->given_inputs[i] = EDDY_NONE;
    for (uint32_t i = 0; i < takes; i++)
        n->taken[i] = NULL;
    n->stored = (eddy_tensor **)(n->places + program->output_count);
    for (uint32_t i = 0; i < program->output_count; i++) {
        n->places[i] = NULL;
        n->stored[i] = NULL;
    }
    eddy_status status = run_given(n);
    if (status == EDDY_OK)
        status = store_outputs(n);
    for (uint32_t i = 0; i < program->output_count; i++)
        eddy_release(&n->stored[i]);
    for (uint32_t i = 0; i < takes; i++)
        if (n->taken[i])
            eddy_tensor_drop(n->taken[i]);
    return status;
}

static size_t item_count(const eddy_program *program, uint32_t states) {
    return 2 * ((size_t)program->input_count + states) + 3 * (size_t)program->output_count;
}

static eddy_status run_in_memory(naming *n) {
    void *stack[STACK_ITEMS];
    uint32_t states = count_states(n->program);
    size_t count = item_count(n->program, states);
    if (count <= STACK_ITEMS)
        return run(n, states, stack);
    void **memory = eddy_memory_acquire(count * sizeof(*memory), EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, n->origin, "no memory for a run");
    eddy_status status = run(n, states, memory);
    eddy_memory_release(memory, count * sizeof(*memory), EDDY_MEMORY_PROGRAM);
    return status;
}

static eddy_status check_lists(const naming *n) {
    eddy_status status =
        eddy_program_check_list(n->feeds.items, n->feeds.count, "feeds", n->origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(n->fetches.items, n->fetches.count, "fetches", n->origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(n->targets.items, n->targets.count, "targets", n->origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(n->data.items, n->data.count, "data", n->origin);
    return status;
}

eddy_status eddy_program_run_named(eddy_program *program, eddy_feeds feeds, eddy_fetches fetches,
                                   const eddy_program_run_named_options *options) {
    naming n = {.program = program,
                .origin = EDDY_ORIGIN("program_run_named"),
                .feeds = feeds,
                .fetches = fetches};
    eddy_status status = eddy_program_check(program, n.origin);
    if (status != EDDY_OK)
        return status;
    if (EDDY_HAS_OPTION(options, targets))
        n.targets = options->targets;
    if (EDDY_HAS_OPTION(options, data))
        n.data = options->data;
    n.defaults = EDDY_HAS_OPTION(options, defaults) ? options->defaults : NULL;
    n.store = EDDY_HAS_OPTION(options, store) ? options->store : NULL;
    n.output_store = EDDY_HAS_OPTION(options, output_store) ? options->output_store : NULL;
    n.ring = EDDY_HAS_OPTION(options, ring) ? options->ring : NULL;
    if (n.output_store)
        status = eddy_recorder_refuse(
            eddy_caller_get(), "no run would set the store again: fetch the outputs", n.origin);
    if (status != EDDY_OK)
        return status;
    status = check_lists(&n);
    return status == EDDY_OK ? run_in_memory(&n) : status;
}
