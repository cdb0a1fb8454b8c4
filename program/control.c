#include <program/control.h>

#include <interpreter/call/infer.h>
#include <string.h>

/* ---- marks as ops ---- */

static const eddy_op ops[EDDY_CONTROL_CUT + 1];

/* What a mark does is where the run goes on (replay.c). */
static void run_mark(const eddy_kernel_call *call) {
    (void)call;
}

static const eddy_kernel mark_kernel = {.name = "mark", .run = run_mark};
static const eddy_kernel *const mark_kernels[] = {&mark_kernel};

static eddy_status infer_mark(eddy_infer *infer) {
    for (int64_t i = 0; i < infer->input_count; i++) {
        int64_t count;
        const eddy_spec *spec = &infer->inputs[i];
        if (!eddy_shape_count(spec->shape.rank, spec->shape.dims, &count) || count != 1)
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "the predicate has not one element");
        if (spec->dtype != EDDY_BOOL)
            return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "the predicate is not bool");
    }
    const eddy_control_loop *loop = infer->attributes;
    return infer->op == &ops[EDDY_CONTROL_LOOP] && loop->most_steps < 0
               ? eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "most_steps is negative")
               : EDDY_OK;
}

/* Any value may have been read. */
static eddy_status infer_read(eddy_infer *infer) {
    (void)infer;
    return EDDY_OK;
}

static const eddy_op_operand predicate[] = {
    {.name = "predicate", .kind = EDDY_OPERAND_TENSOR, .is_bool = true}};

static const eddy_op_operand value[] = {{.name = "value", .kind = EDDY_OPERAND_TENSOR}};

static const eddy_op_attribute loop_attributes[] = {
    {.name = "most_steps",
     .type = EDDY_ATTRIBUTE_INT,
     .offset = offsetof(eddy_control_loop, most_steps),
     .default_value = {.kind = EDDY_SCALAR_INT}}};

#define ANY_MARK(text)                                                                             \
    .name = (text), .id = EDDY_OP_REGISTERED, .may_fail = true, .result = EDDY_RESULT_RULE,        \
    .kernels = mark_kernels
#define MARK(text) ANY_MARK(text), .infer = infer_mark
#define MARK_OF_PREDICATE(text) MARK(text), .operands = predicate, .operand_count = 1

static const eddy_op ops[EDDY_CONTROL_CUT + 1] = {
    [EDDY_CONTROL_IF] = {MARK_OF_PREDICATE("if")},
    [EDDY_CONTROL_ELSE] = {MARK("else")},
    [EDDY_CONTROL_END_IF] = {MARK("end_if")},
    [EDDY_CONTROL_LOOP] = {MARK("loop"), .attributes = loop_attributes, .attribute_count = 1,
                           .attribute_bytes = sizeof(eddy_control_loop),
                           .kernel_attribute_bytes = sizeof(eddy_control_loop)},
    [EDDY_CONTROL_LOOP_WHILE] = {MARK_OF_PREDICATE("loop_while")},
    [EDDY_CONTROL_END_LOOP] = {MARK("end_loop")},
    [EDDY_CONTROL_READ] = {ANY_MARK("host_read"), .infer = infer_read, .operands = value,
                           .operand_count = 1},
    [EDDY_CONTROL_CUT] = {MARK("cut")},
};

const eddy_op *eddy_control_op(eddy_control control) {
    return &ops[control];
}

eddy_control eddy_control_of(const eddy_op *op) {
    return op > ops && op <= &ops[EDDY_CONTROL_CUT] ? (eddy_control)(op - ops) : EDDY_CONTROL_NONE;
}

const eddy_op *eddy_control_find(const char *name) {
    for (int control = EDDY_CONTROL_IF; control <= EDDY_CONTROL_END_LOOP; control++)
        if (strcmp(ops[control].name, name) == 0)
            return &ops[control];
    return NULL;
}

/* ---- regions ---- */

static bool is_of_region(eddy_control control) {
    return control >= EDDY_CONTROL_IF && control <= EDDY_CONTROL_END_LOOP;
}

static eddy_control control_at(const eddy_code *code, uint32_t i) {
    return eddy_control_of(eddy_code_instruction_at(code, i)->op);
}

bool eddy_control_has_draws(const eddy_code *code) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < code->instructions.count && code->draws.count > 0; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        eddy_control control = eddy_control_of(instruction->op);
        if (depth > 0 && instruction->op->is_random && instruction->draw)
            return true;
        depth += control == EDDY_CONTROL_IF || control == EDDY_CONTROL_LOOP;
        depth -= control == EDDY_CONTROL_END_IF || control == EDDY_CONTROL_END_LOOP;
    }
    return false;
}

bool eddy_control_is_nested(const eddy_code *code, uint32_t *wrong) {
    uint8_t expected[EDDY_CONTROL_DEPTH_MOST]; /* the mark that continues the region */
    uint32_t depth = 0;
    for (*wrong = 0; *wrong < code->instructions.count; ++*wrong) {
        eddy_control control = control_at(code, *wrong);
        if (control == EDDY_CONTROL_IF || control == EDDY_CONTROL_LOOP) {
            if (depth == EDDY_CONTROL_DEPTH_MOST)
                return false;
            expected[depth++] = (uint8_t)(control + 1);
        } else if (is_of_region(control)) {
            if (depth == 0 || expected[depth - 1] != control)
                return false;
            bool is_end = control == EDDY_CONTROL_END_IF || control == EDDY_CONTROL_END_LOOP;
            if (is_end)
                depth--;
            else
                expected[depth - 1]++;
        }
    }
    return depth == 0;
}

uint32_t eddy_control_count_marks(const eddy_code *code) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++)
        count += control_at(code, i) != EDDY_CONTROL_NONE;
    return count;
}

/* Follows one mark; *region is the innermost open one before and after it. */
static bool follow_mark(eddy_regions *regions, eddy_control control, uint32_t i, uint32_t *region) {
    uint32_t opened;
    if (control == EDDY_CONTROL_IF || control == EDDY_CONTROL_LOOP) {
        if (!eddy_code_array_add(&regions->items, sizeof(eddy_region), 1, &opened))
            return false;
        ((eddy_region *)regions->items.items)[opened] =
            (eddy_region){.begin = i, .outer = *region, .is_loop = control == EDDY_CONTROL_LOOP};
        *region = opened;
        return true;
    }
    if (!is_of_region(control))
        return true;
    eddy_region *open = (eddy_region *)regions->items.items + *region;
    if (control == EDDY_CONTROL_ELSE || control == EDDY_CONTROL_LOOP_WHILE) {
        open->middle = i;
    } else {
        open->end = i;
        *region = open->outer;
    }
    return true;
}

bool eddy_regions_find(const eddy_code *code, eddy_regions *regions) {
    uint32_t count = code->instructions.count, region = EDDY_CODE_NONE, first;
    *regions = (eddy_regions){0};
    if (eddy_control_count_marks(code) == 0)
        return true;
    bool has_room = eddy_code_array_add(&regions->of, sizeof(uint32_t), count, &first);
    for (uint32_t i = 0; i < count && has_room; i++) {
        uint32_t before = region;
        has_room = follow_mark(regions, control_at(code, i), i, &region);
        bool is_end = region != before && (before != EDDY_CODE_NONE) &&
                      eddy_region_at(regions, before)->end == i;
        ((uint32_t *)regions->of.items)[i] = is_end ? before : region;
    }
    if (!has_room)
        eddy_regions_fini(regions);
    return has_room;
}

void eddy_regions_fini(eddy_regions *regions) {
    eddy_code_array_fini(&regions->items, sizeof(eddy_region));
    eddy_code_array_fini(&regions->of, sizeof(uint32_t));
}

uint32_t eddy_regions_last(const eddy_regions *regions, uint32_t first, uint32_t user) {
    uint32_t last = user, r = eddy_region_of(regions, user);
    for (; r != EDDY_CODE_NONE; r = eddy_region_at(regions, r)->outer)
        if (eddy_region_at(regions, r)->is_loop && eddy_region_at(regions, r)->begin > first)
            last = eddy_region_at(regions, r)->end;
    return last;
}

int64_t eddy_regions_most_times(const eddy_regions *regions, const eddy_code *code,
                                uint32_t instruction) {
    int64_t times = 1;
    for (uint32_t r = eddy_region_of(regions, instruction); r != EDDY_CODE_NONE;
         r = eddy_region_at(regions, r)->outer) {
        const eddy_region *region = eddy_region_at(regions, r);
        if (!region->is_loop)
            continue;
        int64_t steps =
            *eddy_code_words(code, eddy_code_instruction_at(code, region->begin)->attributes_at);
        if (steps == 0 || steps >= EDDY_REGIONS_NO_BOUND / times)
            return EDDY_REGIONS_NO_BOUND;
        times *= steps;
    }
    return times;
}
