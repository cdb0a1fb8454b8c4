/* Numbers that are given at each run: which attributes of recorded calls they are, and where a run could not follow them. */
#include <base/call_site.h>
#include <base/number.h>
#include <program/recording.h>
#include <stdio.h>
#include <string.h>

/* The number's index; EDDY_CODE_NONE for a slot of another recording, whose number stays as it is. */
static uint32_t number_of(const eddy_recording *recording, uint32_t slot) {
    uint32_t first = recording->first_slot;
    return first != 0 && slot >= first && slot - first < recording->scalar_count ? slot - first
                                                                                 : EDDY_CODE_NONE;
}

/* Whether a number with a slot is still the one that was given for it: the function may have changed a copy, whose slot says nothing then. */
static bool is_as_given(const eddy_recording *recording, uint32_t index,
                        const eddy_scalar *number) {
    const eddy_scalar *given = &recording->scalars[index];
    return number->kind == given->kind &&
           memcmp(&number->value, &given->value, sizeof(given->value)) == 0;
}

/* The same of one that was converted for an op. */
static bool is_converted(const eddy_recording *recording, const eddy_code_scalar *use,
                         const eddy_scalar *number) {
    eddy_scalar given = recording->scalars[use->number];
    return eddy_number_convert(&given, (eddy_dtype)use->dtype, use->wraps) &&
           number->kind == given.kind &&
           memcmp(&number->value, &given.value, sizeof(given.value)) == 0;
}

static bool patch_scalar(eddy_recording *recording, eddy_code_instruction *instruction,
                         const eddy_code_scalar *use) {
    eddy_code *code = &recording->code;
    const eddy_op_attribute *attribute = &instruction->op->attributes[use->attribute];
    uint32_t to = (uint32_t)(attribute->offset / sizeof(int64_t)), words = use->is_double ? 1 : 2,
             index;
    if (!eddy_code_add_scalar(code, use, &index))
        return false;
    for (uint32_t w = 0; w < words; w++) {
        eddy_code_words(code, instruction->attributes_at)[to + w] = 0;
        if (!eddy_code_add_patch(code,
                                 &(eddy_code_patch){.to = to + w, .scalar = index, .from = w}))
            return false;
    }
    instruction->patch_count += words;
    return true;
}

/* The first way in which a run cannot follow a number stays. */
static void lose(eddy_recording *recording, uint32_t number, const char *how, const char *op) {
    const char *place = eddy_call_site_noted;
    if (!recording->lost[0])
        snprintf(recording->lost, sizeof(recording->lost), "number %u of the call %s%.40s%s%.60s%s",
                 number, how, op, place ? " (" : "", place ? place : "", place ? ")" : "");
}

#define CHANGED "has another value than was given, in a call of "

/* Attributes that are numbers of their own kind. */
static bool patch_numbers(eddy_recording *recording, const eddy_recorder_call *call,
                          eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        eddy_scalar number;
        if (attribute->type != EDDY_ATTRIBUTE_SCALAR)
            continue;
        memcpy(&number, (const char *)call->apply->attributes + attribute->offset, sizeof(number));
        uint32_t index = number.slot ? number_of(recording, number.slot) : EDDY_CODE_NONE;
        if (index == EDDY_CODE_NONE)
            continue;
        /* What prepare has made of the number would stay. */
        if (!attribute->is_held || call->kernel->prepare) {
            lose(recording, index, "decides how calls are prepared, those of ", op->name);
            continue;
        }
        const eddy_tensor *result = call->views[call->view_count - 1];
        eddy_dtype dtype = i < op->scalar_count ? call->compute : (eddy_dtype)result->dtype;
        eddy_code_scalar use = {.number = index,
                                .dtype = (uint8_t)dtype,
                                .wraps = op->numbers_wrap,
                                .attribute = (uint32_t)i,
                                .op = op};
        if (!is_converted(recording, &use, &number))
            lose(recording, index, CHANGED, op->name);
        else if (!patch_scalar(recording, instruction, &use))
            return false;
    }
    return true;
}

static bool patch_double(eddy_recording *recording, eddy_code_instruction *instruction,
                         uint32_t attribute, uint32_t number) {
    return patch_scalar(recording, instruction,
                        &(eddy_code_scalar){.number = number,
                                            .dtype = EDDY_F64,
                                            .is_double = true,
                                            .attribute = attribute,
                                            .op = instruction->op});
}

static double double_at(const eddy_recorder_call *call, const eddy_op_attribute *attribute) {
    double value;
    memcpy(&value, (const char *)call->apply->attributes + attribute->offset, sizeof(value));
    return value;
}

static eddy_recording_drawn *drawn_at(const eddy_recording *recording, uint32_t draw) {
    return (eddy_recording_drawn *)recording->drawn.items + draw - 1;
}

static void note_rate(const eddy_recording *recording, const eddy_recorder_call *call,
                      uint32_t draw, const eddy_op_attribute *attribute, uint32_t number) {
    eddy_recording_drawn *drawn = drawn_at(recording, draw);
    drawn->rate = attribute->name;
    drawn->rate_number = number;
    drawn->rate_value = double_at(call, attribute);
}

/* A gradient that draws again has the rate of the op that drew, under the same name. Another value would be no number of the call, and neither would one
 * that the function gives itself. */
static bool patch_rate(eddy_recording *recording, const eddy_recorder_call *call,
                       eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    bool is_of_gradient = op->redraws && recording->recorder.going_back > 0;
    const eddy_recording_drawn *drawn =
        is_of_gradient && instruction->draw ? drawn_at(recording, instruction->draw) : NULL;
    for (int32_t i = 0; drawn && drawn->rate && i < op->attribute_count; i++)
        if (op->attributes[i].type == EDDY_ATTRIBUTE_FLOAT &&
            strcmp(op->attributes[i].name, drawn->rate) == 0 &&
            double_at(call, &op->attributes[i]) == drawn->rate_value)
            return patch_double(recording, instruction, (uint32_t)i, drawn->rate_number);
    return true;
}

/* Attributes that are doubles, which the op's function has named. */
static bool patch_doubles(eddy_recording *recording, const eddy_recorder_call *call,
                          eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    uint32_t kept = 0;
    eddy_recording_noted *noted = recording->noted;
    for (uint32_t k = 0; k < recording->noted_count; k++) {
        if (noted[k].op != op) {
            noted[kept++] = noted[k];
            continue;
        }
        for (int32_t i = 0; i < op->attribute_count; i++) {
            if (op->attributes[i].offset != noted[k].offset)
                continue;
            if (!patch_double(recording, instruction, (uint32_t)i, noted[k].number))
                return false;
            if (op->is_random)
                note_rate(recording, call, instruction->draw, &op->attributes[i], noted[k].number);
        }
    }
    recording->noted_count = kept;
    return true;
}

static void record_scalar(eddy_recorder *recorder, const eddy_op *op, size_t offset,
                          const eddy_scalar *scalar) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    uint32_t number = number_of(recording, scalar->slot);
    if (number == EDDY_CODE_NONE || recorder->mode == EDDY_RECORDER_WATCHES)
        return;
    /* Its gradient would get the number without its slot; but one that draws again is known by its draw. */
    bool has_gradient = op->gradient && op->gradient->run && !op->is_random;
    if (has_gradient)
        lose(recording, number, "would be a constant in gradients, those of ", op->name);
    else if (!is_as_given(recording, number, scalar))
        lose(recording, number, CHANGED, op->name);
    else if (recording->noted_count == EDDY_RECORDING_NOTED)
        lose(recording, number, "was given to a call that failed, of ", op->name);
    else
        recording->noted[recording->noted_count++] = (eddy_recording_noted){op, offset, number};
}

static void record_lose(eddy_recorder *recorder, uint32_t slot) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    uint32_t number = number_of(recording, slot);
    if (number != EDDY_CODE_NONE && recorder->mode != EDDY_RECORDER_WATCHES)
        lose(recording, number, "goes into a formula, whose result a replay would not compute anew",
             "");
}

bool eddy_recording_patch_numbers(eddy_recording *recording, const eddy_recorder_call *call,
                                  eddy_code_instruction *instruction) {
    return patch_numbers(recording, call, instruction) &&
           patch_doubles(recording, call, instruction) && patch_rate(recording, call, instruction);
}

void eddy_recording_listen_to_numbers(eddy_recording *recording) {
    recording->recorder.scalar = record_scalar;
    recording->recorder.lose = record_lose;
}
