/* How a program runs, as remarks between the lines of its text. */
#include <base/call_site.h>
#include <inttypes.h>
#include <program/fused.h>
#include <program/printer.h>
#include <program/steps.h>

static const eddy_executable *executable_of(const eddy_printer *p) {
    return p->program->executable;
}

/* "arena + 64": where an operand's first element lies. */
static void print_place(eddy_printer *p, const eddy_place *place, uint32_t value) {
    if (eddy_code_value_at(&p->program->code, value)->is_in_tile) {
        eddy_text_add(&p->text, "tile");
        return;
    }
    if (place->base == 0)
        eddy_text_add(&p->text, "arena");
    else
        eddy_printer_value(p, executable_of(p)->base_values[place->base - 1]);
    eddy_text_add(&p->text, " + %" PRId64, place->offset);
    if (eddy_code_value_at(&p->program->code, value)->is_turned)
        eddy_text_add(&p->text, " channels-last");
}

static void print_places(eddy_printer *p, uint32_t i) {
    const eddy_executable *executable = executable_of(p);
    const eddy_code_instruction *instruction = eddy_code_instruction_at(&p->program->code, i);
    const char *comma = "; ";
    for (uint32_t at = executable->places_at[i]; at < executable->places_at[i + 1]; at++) {
        const eddy_place *place = &executable->elements[at];
        eddy_text_add(&p->text, "%s", comma);
        print_place(
            p, place,
            eddy_code_operand_at(&p->program->code, instruction->operands_at + place->view)->value);
        comma = ", ";
    }
}

static void print_call(eddy_printer *p, const void *address) {
    const char *place = eddy_call_site_place(address);
    if (place)
        eddy_text_add(&p->text, "; %s", place);
    else if (address)
        eddy_text_add(&p->text, "; called at %p", eddy_call_site_address(address));
}

/* The chain that runs the instruction, or NULL. group: its number; -1 for one that is in none. */
static const eddy_chain *chain_of(const eddy_printer *p, uint32_t i, int64_t group) {
    if (group < 0)
        return NULL;
    uint32_t first = eddy_code_group_at(&p->program->code, (uint32_t)group)->first;
    return executable_of(p)->fused[group]->members[i - first].chain;
}

/* The step that the instruction is, or is in. */
static uint32_t step_of(const eddy_printer *p, uint32_t i) {
    const eddy_executable *executable = executable_of(p);
    uint32_t low = 0, high = executable->step_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (executable->first_of[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* "; step 1.4 behind 0.7": the fourth of stream 1, which waits for seven of stream 0. */
static void print_stream(eddy_printer *p, uint32_t step) {
    const eddy_streams *streams = &executable_of(p)->streams;
    if (streams->count < 2)
        return;
    eddy_stream_place place = eddy_streams_find(streams, step);
    eddy_text_add(&p->text, "; step %u.%u", place.stream, place.place + 1);
    for (uint32_t w = 0; place.begins && w < place.begins->wait_count; w++) {
        const eddy_segment_wait *wait = &streams->waits[place.begins->waits_at + w];
        eddy_text_add(&p->text, " behind %u.%u", wait->stream,
                      eddy_streams_wait_steps(streams, wait));
    }
}

static void print_way(eddy_printer *p, uint32_t i) {
    const char *way = eddy_packed_way(eddy_executable_call(executable_of(p), i)->packed);
    if (way)
        eddy_text_add(&p->text, ", %s", way);
}

void eddy_printer_step(eddy_printer *p, uint32_t i, int64_t group) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(&p->program->code, i);
    uint32_t number = step_of(p, i);
    const eddy_step *step = group < 0 ? &executable_of(p)->steps[number] : NULL;
    const eddy_chain *chain = chain_of(p, i, group);
    eddy_text_add(&p->text, "    # %s %s", step ? eddy_step_kind(step) : "loop",
                  instruction->kernel->name);
    if (chain)
        eddy_text_add(&p->text, " in %s", chain->name);
    print_way(p, i);
    print_places(p, i);
    eddy_text_add(&p->text, "; %.3f us", (double)eddy_executable_cost(executable_of(p), i) / 1e6);
    if (step)
        print_stream(p, number);
    print_call(p, instruction->address);
    eddy_text_add(&p->text, "\n");
}

void eddy_printer_tiles(eddy_printer *p, uint32_t group) {
    const eddy_fused *fused = executable_of(p)->fused[group];
    const eddy_fused_tiles *tiles = &fused->calls;
    eddy_text_add(&p->text, "    # %" PRId64 " %s of %" PRId64 " x %" PRId64 " elements",
                  tiles->count, fused->is_one_chain ? "slices" : "tiles", tiles->rows,
                  tiles->columns);
    print_stream(p, step_of(p, eddy_code_group_at(&p->program->code, group)->first));
    eddy_text_add(&p->text, "\n");
}

void eddy_printer_memory(eddy_printer *p) {
    const eddy_executable *executable = executable_of(p);
    eddy_text_add(&p->text,
                  "# arena %" PRId64 " bytes by %s, %" PRId64 " alive at once; a run takes %" PRId64
                  " bytes beside its outputs\n",
                  executable->arena.bytes, executable->arena.heuristic, executable->arena.bound,
                  executable->workspace_bytes);
    const eddy_streams *streams = &executable->streams;
    if (streams->count > 1)
        eddy_text_add(&p->text,
                      "# %u streams, %u %s between them, %u %s; %.3f us, on one %.3f us\n",
                      streams->count, streams->dependency_count,
                      streams->dependency_count == 1 ? "dependency" : "dependencies",
                      streams->wait_count, streams->wait_count == 1 ? "wait" : "waits",
                      (double)streams->several_ps / 1e6, (double)streams->one_ps / 1e6);
}
