/* eddy_program_run_named: feeds and fetches by name become the lists of a run. */
#include <base/memory.h>
#include <base/status.h>
#include <program/program.h>

/* Lists of so many fit on the stack. */
#define STACK_ITEMS 32

typedef struct naming {
    eddy_program *program;
    eddy_origin origin;
    eddy_tensor **inputs;  /* EDDY_NONE: not given yet */
    eddy_tensor ***places; /* NULL: not fetched */
} naming;

static eddy_status find(const naming *n, eddy_role role, const char *name, int64_t *number) {
    *number = name ? eddy_program_find(n->program, role, name) : -1;
    return *number < 0 ? eddy_program_refuse_name(n->program, role, name, n->origin) : EDDY_OK;
}

static eddy_status feed_all(const naming *n, eddy_feeds feeds) {
    for (int64_t i = 0; i < feeds.count; i++) {
        const eddy_feed *feed = &feeds.items[i];
        int64_t number;
        eddy_status status = find(n, EDDY_ROLE_INPUT, feed->name, &number);
        if (status == EDDY_OK)
            status = feed->tensor ? EDDY_OK : eddy_tensor_check(NULL, feed->name, n->origin);
        if (status != EDDY_OK)
            return status;
        if (!eddy_tensor_is_none(n->inputs[number]))
            return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "input %s is given twice",
                             feed->name);
        n->inputs[number] = feed->tensor;
    }
    for (int64_t i = 0; i < n->program->input_count; i++)
        if (eddy_tensor_is_none(n->inputs[i]))
            return eddy_fail(EDDY_INVALID_ARGUMENT, n->origin, "input %s is not given",
                             eddy_program_name_of(n->program, EDDY_ROLE_INPUT, i));
    return EDDY_OK;
}

static eddy_status fetch_all(const naming *n, eddy_fetches fetches) {
    for (int64_t i = 0; i < fetches.count; i++) {
        const eddy_fetch *fetch = &fetches.items[i];
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

static eddy_status run(naming *n, eddy_feeds feeds, eddy_fetches fetches, void **memory) {
    const eddy_program *program = n->program;
    n->inputs = (eddy_tensor **)memory;
    n->places = (eddy_tensor ***)(memory + program->input_count);
    for (uint32_t i = 0; i < program->input_count; i++)
        n->inputs[i] = EDDY_NONE;
    for (uint32_t i = 0; i < program->output_count; i++)
        n->places[i] = NULL;
    eddy_status status = feed_all(n, feeds);
    if (status == EDDY_OK)
        status = fetch_all(n, fetches);
    if (status != EDDY_OK)
        return status;
    return eddy_program_run_to(n->program, (eddy_list){n->inputs, program->input_count}, n->places,
                               n->origin);
}

static eddy_status run_in_memory(naming *n, eddy_feeds feeds, eddy_fetches fetches) {
    void *stack[STACK_ITEMS];
    size_t count = (size_t)n->program->input_count + n->program->output_count;
    if (count <= STACK_ITEMS)
        return run(n, feeds, fetches, stack);
    void **memory = eddy_memory_acquire(count * sizeof(*memory), EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, n->origin, "no memory for a run");
    eddy_status status = run(n, feeds, fetches, memory);
    eddy_memory_release(memory, count * sizeof(*memory), EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_program_run_named(eddy_program *program, eddy_feeds feeds, eddy_fetches fetches) {
    naming n = {.program = program, .origin = EDDY_ORIGIN("program_run_named")};
    eddy_status status = eddy_program_check(program, n.origin);
    if (status != EDDY_OK)
        return status;
    if (feeds.count < 0 || (feeds.count > 0 && !feeds.items) || fetches.count < 0 ||
        (fetches.count > 0 && !fetches.items))
        return eddy_fail(EDDY_INVALID_ARGUMENT, n.origin, "%lld feeds and %lld fetches",
                         (long long)feeds.count, (long long)fetches.count);
    return run_in_memory(&n, feeds, fetches);
}
