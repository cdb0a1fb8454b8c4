#include <string.h>
#include <tests/fake_cuda/dnn/question.h>
#include <tests/fake_cuda/option.h>

/* ---- whether it fits ---- */

static int64_t reach(const fake_dnn_shape *shape, int d) {
    const fake_dnn_tensor *all = shape->tensors;
    return all[FAKE_DNN_X].sizes[2 + d] + 2 * shape->padding[d] -
           (all[FAKE_DNN_WEIGHT].sizes[2 + d] - 1) * shape->dilation[d] - 1;
}

const char *fake_dnn_question_misfit(const fake_dnn_question *question) {
    const fake_dnn_shape *shape = &question->shape;
    const int64_t *x = shape->tensors[FAKE_DNN_X].sizes, *w = shape->tensors[FAKE_DNN_WEIGHT].sizes,
                  *y = shape->tensors[FAKE_DNN_Y].sizes;
    bool is_f64 = shape->type == EDDY_DNN_F64;
    for (int k = 0; k < FAKE_DNN_TENSORS; k++) {
        if (question->types[k] != shape->type)
            return "tensors of several types";
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            if (shape->tensors[k].sizes[d] < 1 || shape->tensors[k].strides[d] < 1)
                return "a dim of no elements, or without a stride";
        for (int other = 0; other < k; other++)
            if (question->numbers[k] == question->numbers[other])
                return "two tensors of one number";
    }
    if (shape->type != EDDY_DNN_F32 && !is_f64 && shape->type != EDDY_DNN_F16 &&
        shape->type != EDDY_DNN_BF16)
        return "a type";
    if (question->sums != (is_f64 ? EDDY_DNN_F64 : EDDY_DNN_F32) ||
        question->scale != (is_f64 ? EDDY_DNN_TYPE_DOUBLE : EDDY_DNN_TYPE_FLOAT))
        return "the type of sums or of alpha";
    if (x[0] != y[0] || y[1] != w[0] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0)
        return "images or channels";
    for (int d = 0; d < FAKE_DNN_DIMS; d++) {
        if (shape->stride[d] < 1 || shape->dilation[d] < 1 || shape->padding[d] < 0 ||
            question->behind[d] != shape->padding[d])
            return "a window";
        if (reach(shape, d) < 0 || y[2 + d] != reach(shape, d) / shape->stride[d] + 1)
            return "places";
    }
    return NULL;
}

/* ---- engines ---- */

static uint64_t mix(uint64_t sum, const void *from, size_t bytes) {
    uint64_t word;
    for (size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
        memcpy(&word, (const char *)from + at, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static uint64_t draw_of(const fake_dnn_question *question) {
    uint64_t sum = fake_options_read()->seed;
    if (!question->is_graph)
        return mix(sum, &question->shape, sizeof(question->shape)) >> 8;
    for (int t = 0; t < question->graph.tensor_count; t++)
        sum = mix(sum, &question->graph.tensors[t].is, sizeof(question->graph.tensors[t].is));
    return sum >> 8;
}

/* So many of a draw's values; the rest is for later ones. */
static bool is_one_in(uint64_t *draw, uint64_t many) {
    bool is = *draw % many == 0;
    *draw /= many;
    return is;
}

/* One whose numbers are not Eddy's, or are on request alone; what it computes shows that it was taken. */
static fake_dnn_engine coarse(const fake_dnn_question *question, uint64_t draw) {
    static const int notes[] = {EDDY_DNN_NOTE_CONVERTS_DOWN, EDDY_DNN_NOTE_REDUCED_SUMS,
                                EDDY_DNN_NOTE_FFT,           EDDY_DNN_NOTE_NONDETERMINISTIC,
                                EDDY_DNN_NOTE_WINOGRAD,      EDDY_DNN_NOTE_STRICT_NAN + 1};
    bool is_tf32 = !question->is_graph && question->shape.type == EDDY_DNN_F32 && draw % 2 == 0;
    return (fake_dnn_engine){.note = is_tf32 ? EDDY_DNN_NOTE_TENSOR_CORES
                                             : notes[draw / 2 % (sizeof(notes) / sizeof(*notes))],
                             .how = is_tf32 ? FAKE_DNN_OF_TF32 : FAKE_DNN_COARSE,
                             .works = true};
}

/* All that lies nowhere. */
static uint64_t between_bytes(const fake_dnn_graph *graph) {
    int64_t count = 0;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].place == FAKE_DNN_NOWHERE)
            count += fake_dnn_elements(&graph->tensors[t].is);
    return (uint64_t)count * sizeof(float);
}

static fake_dnn_engine fine(const fake_dnn_question *question, bool has_parts) {
    const fake_dnn_shape *shape = &question->shape;
    fake_dnn_engine engine = {.note = question->is_graph ? EDDY_DNN_NOTE_TENSOR_CORES
                                                         : EDDY_DNN_NOTE_STRICT_NAN,
                              .works = true};
    if (!has_parts)
        return engine;
    engine.how = FAKE_DNN_IN_PARTS;
    if (question->is_graph) {
        engine.workspace_bytes = between_bytes(&question->graph);
        return engine;
    }
    engine.note = shape->type == EDDY_DNN_F32 ? FAKE_DNN_NO_NOTE : EDDY_DNN_NOTE_TENSOR_CORES;
    engine.workspace_bytes =
        (uint64_t)fake_dnn_type_bytes(shape->type == EDDY_DNN_F64 ? EDDY_DNN_F64 : EDDY_DNN_F32);
    engine.workspace_bytes *= (uint64_t)fake_dnn_elements(&shape->tensors[fake_dnn_written(shape)]);
    return engine;
}

int fake_dnn_engines(const fake_dnn_question *question, int mode,
                     fake_dnn_engine engines[FAKE_DNN_ENGINES]) {
    uint64_t draw = draw_of(question);
    bool lacks_fallback = is_one_in(&draw, 4);
    int count = 0;
    if (mode == EDDY_DNN_HEURISTICS_FALLBACK) {
        engines[count++] = coarse(question, draw);
        if (!lacks_fallback)
            engines[count++] = fine(question, false);
        return count;
    }
    if (is_one_in(&draw, 8))
        return -1;
    engines[count++] = coarse(question, draw);
    if (is_one_in(&draw, 2))
        engines[count++] = (fake_dnn_engine){.note = FAKE_DNN_NO_NOTE};
    if (is_one_in(&draw, 2))
        engines[count++] = (fake_dnn_engine){.note = FAKE_DNN_NO_NOTE,
                                             .how = FAKE_DNN_COARSE,
                                             .workspace_bytes = (uint64_t)1 << 40,
                                             .works = true};
    engines[count++] = coarse(question, draw + 5);
    if (!is_one_in(&draw, 4))
        engines[count++] = fine(question, is_one_in(&draw, 2));
    return count;
}
