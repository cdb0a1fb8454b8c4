#include <kernels/cuda/fusion_text.h>

#include <base/dtype.h>
#include <kernels/cuda/fusion_words.h>
#include <kernels/cuda/parameters.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

_Static_assert(EDDY_FUSION_OPERANDS == EDDY_CUDA_FUSION_OPERANDS &&
                   EDDY_FUSION_WORDS == EDDY_CUDA_FUSION_WORDS,
               "a kernel takes what a fusion may have");

typedef struct writing {
    const eddy_fusion *fusion;
    const eddy_cuda_words *words[EDDY_FUSION_STEPS]; /* NULL: a copy between dtypes */
    char *text;
    size_t size, length;
} writing;

__attribute__((format(printf, 2, 3))) static void add(writing *w, const char *format, ...) {
    va_list arguments;
    size_t room = w->length < w->size ? w->size - w->length : 0;
    va_start(arguments, format);
    int length = vsnprintf(room > 0 ? w->text + w->length : NULL, room, format, arguments);
    va_end(arguments);
    w->length += length > 0 ? (size_t)length : 0;
}

/* As elements are called in elementwise.cuh. */
static const char *tag(uint8_t dtype) {
    return dtype == EDDY_BOOL ? "truth" : eddy_dtype_name((eddy_dtype)dtype);
}

/* ---- what there are words for ---- */

static bool is_copy(const eddy_fusion_step *step) {
    return strcmp(step->kernel, "copy") == 0;
}

static uint8_t input_dtype(const eddy_fusion *fusion, uint8_t input) {
    return input < EDDY_FUSION_OPERANDS ? fusion->input_dtypes[input]
                                        : fusion->steps[input - EDDY_FUSION_OPERANDS].result;
}

/* A copy within a dtype is what it copies. */
static bool is_same(const eddy_fusion *fusion, const eddy_fusion_step *step) {
    return is_copy(step) && input_dtype(fusion, step->inputs[0]) == step->result;
}

static const eddy_cuda_words *find_words(const eddy_fusion_step *step) {
    for (size_t i = 0; i < eddy_cuda_words_count; i++) {
        const eddy_cuda_words *row = &eddy_cuda_words_rows[i];
        if (row->compute == (eddy_dtype)step->compute && row->input_count == step->input_count &&
            strcmp(row->name, step->kernel) == 0)
            return row;
    }
    return NULL;
}

static bool find_all(writing *w) {
    for (uint32_t s = 0; s < w->fusion->step_count; s++) {
        w->words[s] = find_words(&w->fusion->steps[s]);
        if (!w->words[s] && !is_copy(&w->fusion->steps[s]))
            return false;
    }
    return true;
}

/* ---- ops ---- */

static void add_op_name(writing *w, uint32_t s) {
    const eddy_fusion_step *step = &w->fusion->steps[s];
    if (w->words[s])
        add(w, "%s", w->words[s]->op);
    else
        add(w, "cast_%s_%s", tag(input_dtype(w->fusion, step->inputs[0])), tag(step->result));
}

/* Whether an earlier step has the same op. */
static bool is_written(const writing *w, uint32_t s) {
    for (uint32_t k = 0; k < s; k++) {
        const eddy_fusion_step *a = &w->fusion->steps[k], *b = &w->fusion->steps[s];
        if (w->words[s]
                ? w->words[k] && w->words[k]->text == w->words[s]->text
                : !w->words[k] && a->result == b->result &&
                      input_dtype(w->fusion, a->inputs[0]) == input_dtype(w->fusion, b->inputs[0]))
            return true;
    }
    return false;
}

static void add_ops(writing *w) {
    for (uint32_t s = 0; s < w->fusion->step_count; s++) {
        const eddy_fusion_step *step = &w->fusion->steps[s];
        if (is_same(w->fusion, step) || is_written(w, s))
            continue;
        if (w->words[s])
            add(w, "%s", w->words[s]->text);
        else
            add(w, "EDDY_CUDA_CAST(%s, %s)\n", tag(input_dtype(w->fusion, step->inputs[0])),
                tag(step->result));
    }
}

/* ---- the struct ---- */

static uint8_t output_dtype(const eddy_fusion *fusion, uint32_t output) {
    return fusion->steps[fusion->outputs[output]].result;
}

static void add_packs(writing *w) {
    add(w, "typedef eddy_cuda_pack<");
    for (uint32_t i = 0; i < w->fusion->input_count; i++)
        add(w, "%seddy_cuda_%s", i ? ", " : "", tag(w->fusion->input_dtypes[i]));
    add(w, "> inputs;\ntypedef eddy_cuda_pack<");
    for (uint32_t i = 0; i < w->fusion->output_count; i++)
        add(w, "%seddy_cuda_%s", i ? ", " : "", tag(output_dtype(w->fusion, i)));
    add(w, "> outputs;\n");
}

/* What a copy alone would have is the most. */
static void add_lanes(writing *w) {
    add(w, "static constexpr int lanes = eddy_cuda_least(16");
    for (uint32_t s = 0; s < w->fusion->step_count; s++)
        if (!is_same(w->fusion, &w->fusion->steps[s])) {
            add(w, ", ");
            add_op_name(w, s);
            add(w, "::lanes");
        }
    add(w, ");\n");
}

static void add_members(writing *w) {
    bool is_first = true;
    for (uint32_t s = 0; s < w->fusion->step_count; s++)
        if (!is_same(w->fusion, &w->fusion->steps[s])) {
            add(w, "const ");
            add_op_name(w, s);
            add(w, " op%u;\n", s);
        }
    add(w, "EDDY_CUDA_MEMBER explicit fusion(const uint64_t *attributes)");
    for (uint32_t s = 0; s < w->fusion->step_count; s++)
        if (!is_same(w->fusion, &w->fusion->steps[s])) {
            add(w, "%s op%u(attributes + %u)", is_first ? " :" : ",", s,
                w->fusion->steps[s].attributes_at);
            is_first = false;
        }
    add(w, " {\n(void)attributes;\n}\n");
}

static void add_value(writing *w, uint8_t input) {
    if (input < EDDY_FUSION_OPERANDS)
        add(w, "x%u", input);
    else
        add(w, "s%u", input - EDDY_FUSION_OPERANDS);
}

static void add_step(writing *w, uint32_t s) {
    const eddy_fusion_step *step = &w->fusion->steps[s];
    add(w, "const auto s%u = ", s);
    if (is_same(w->fusion, step)) {
        add_value(w, step->inputs[0]);
        add(w, ";\n");
        return;
    }
    if (w->words[s])
        add(w, "eddy_cuda_step<%s>", w->words[s]->elements);
    else
        add(w, "eddy_cuda_step<eddy_cuda_as_stored<eddy_cuda_%s>, eddy_cuda_%s>", tag(step->result),
            tag(input_dtype(w->fusion, step->inputs[0])));
    add(w, "::run(op%u", s);
    for (uint32_t i = 0; i < step->input_count; i++) {
        add(w, ", ");
        add_value(w, step->inputs[i]);
    }
    add(w, ");\n");
}

static void add_call(writing *w) {
    const eddy_fusion *fusion = w->fusion;
    add(w, "EDDY_CUDA_MEMBER void operator()(");
    for (uint32_t i = 0; i < fusion->output_count; i++)
        add(w, "%seddy_cuda_%s::stored &y%u", i ? ", " : "", tag(output_dtype(fusion, i)), i);
    for (uint32_t i = 0; i < fusion->input_count; i++)
        add(w, ", eddy_cuda_%s::stored x%u", tag(fusion->input_dtypes[i]), i);
    add(w, ") const {\n");
    for (uint32_t s = 0; s < fusion->step_count; s++)
        add_step(w, s);
    for (uint32_t i = 0; i < fusion->output_count; i++)
        add(w, "y%u = eddy_cuda_same_bits<eddy_cuda_%s::stored>(s%u);\n", i,
            tag(output_dtype(fusion, i)), fusion->outputs[i]);
    add(w, "}\n");
}

size_t eddy_cuda_fusion_write(const eddy_fusion *fusion, char *text, size_t size) {
    writing w = {.fusion = fusion, .text = text, .size = size};
    if (!find_all(&w))
        return 0;
    add(&w, "%s", (const char *)eddy_cuda_image_fusion_words);
    add_ops(&w);
    add(&w, "struct fusion {\n");
    add_lanes(&w);
    add_packs(&w);
    add_members(&w);
    add_call(&w);
    add(&w, "};\nEDDY_CUDA_FUSION\n");
    return w.length;
}
