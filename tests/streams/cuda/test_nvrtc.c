/* NVIDIA's own NVRTC takes the text of fusions, for every op that there are words for, and makes images of it: which needs no GPU. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <kernels/cuda/copy.h>
#include <kernels/cuda/fusion_text.h>
#include <kernels/cuda/fusion_words.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/compiler.h>
#include <string.h>

#define CAPABILITY 90

static char compiler[256], why_not[256];

static bool has_compiler(void) {
    return eddy_cuda_compiler_describe(CAPABILITY, compiler, sizeof(compiler), why_not,
                                       sizeof(why_not)) == EDDY_OK;
}

/* Where there is no compiler: the fake one would take it for its own. */
static void begin(void) {
    if (!has_compiler())
        cr_skip_test("%s", why_not);
    cr_assert_not_null(strstr(compiler, "sm_90"), "%s", compiler);
    cr_assert_not_null(strstr(compiler, "-fmad=false"), "%s", compiler);
}

static size_t compile(int capability, const char *source, char *first, size_t size) {
    void *image;
    size_t bytes;
    char why[512];
    eddy_status status = eddy_cuda_compile(capability, source, &image, &bytes, why, sizeof(why));
    cr_assert_eq(status, EDDY_OK, "%s", why);
    memcpy(first, image, size < bytes ? size : bytes);
    eddy_memory_release(image, bytes, EDDY_MEMORY_CACHE);
    return bytes;
}

/* add, exp, cast to bf16, and a comparison of f64 that gives truth values. */
static const eddy_fusion several = {.step_count = 4,
                                    .input_count = 3,
                                    .output_count = 2,
                                    .word_count = 2,
                                    .input_dtypes = {EDDY_F32, EDDY_F32, EDDY_F64},
                                    .outputs = {2, 3},
                                    .steps = {
                                        {"add", EDDY_F32, EDDY_F32, 2, {0, 1}, 0},
                                        {"exp", EDDY_F32, EDDY_F32, 1, {EDDY_FUSION_OPERANDS}, 0},
                                        {"copy", 0, EDDY_BF16, 1, {EDDY_FUSION_OPERANDS + 1}, 0},
                                        {"lt_s", EDDY_F64, EDDY_BOOL, 1, {2}, 0},
                                    }};

static char *write_source(const eddy_fusion *fusion) {
    size_t bytes = eddy_cuda_fusion_write(fusion, NULL, 0);
    cr_assert_gt(bytes, 0);
    char *source = malloc(bytes + 1);
    cr_assert_eq(eddy_cuda_fusion_write(fusion, source, bytes + 1), bytes);
    cr_assert_eq(strlen(source), bytes);
    return source;
}

/* A cubin is an ELF file; text is for what the compiler does not know. */
Test(cuda_nvrtc, makes_images, .init = begin) {
    char *source = write_source(&several), first[512];
    compile(CAPABILITY, source, first, sizeof(first));
    cr_assert_eq(memcmp(first,
                        "\x7f"
                        "ELF",
                        4),
                 0);
    compile(91, source, first, sizeof(first));
    first[sizeof(first) - 1] = '\0';
    cr_assert_not_null(strstr(first, "NVIDIA NVVM Compiler"), "%s", first);
    free(source);
}

static const char casts[] =
#define CAST_TEXT(from, from_dtype, to, to_dtype) "EDDY_CUDA_CAST(" #from ", " #to ")\n"
    EDDY_CUDA_CASTS(CAST_TEXT);

/* Each is compiled, whether a kernel calls it or not. */
Test(cuda_nvrtc, takes_every_op_and_cast, .init = begin) {
    cr_assert_gt(eddy_cuda_words_count, 500);
    const char *words = (const char *)eddy_cuda_image_fusion_words;
    size_t bytes = strlen(words) + sizeof(casts);
    for (size_t i = 0; i < eddy_cuda_words_count; i++)
        bytes += strlen(eddy_cuda_words_rows[i].text);
    char *source = malloc(bytes), first[4], *at = stpcpy(stpcpy(source, words), casts);
    for (size_t i = 0; i < eddy_cuda_words_count; i++) {
        const char *text = eddy_cuda_words_rows[i].text;
        bool is_there = false;
        for (size_t k = 0; k < i && !is_there; k++)
            is_there = eddy_cuda_words_rows[k].text == text;
        if (!is_there)
            at = stpcpy(at, text);
    }
    compile(CAPABILITY, source, first, sizeof(first));
    free(source);
}

/* The log's first line says what is wrong. */
Test(cuda_nvrtc, says_what_it_does_not_take, .init = begin) {
    void *image;
    size_t bytes;
    char why[512];
    cr_assert_eq(
        eddy_cuda_compile(CAPABILITY, "void here() { there(); }", &image, &bytes, why, sizeof(why)),
        EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(why, "there"), "%s", why);
}

/* An op without words, and a copy, which needs none. */
Test(cuda_nvrtc, words_may_lack) {
    eddy_fusion fusion = several;
    fusion.steps[1].kernel = "matmul";
    cr_assert_eq(eddy_cuda_fusion_write(&fusion, NULL, 0), 0);
    fusion.steps[1] = (eddy_fusion_step){
        .kernel = "copy", .result = EDDY_F32, .input_count = 1, .inputs = {EDDY_FUSION_OPERANDS}};
    cr_assert_gt(eddy_cuda_fusion_write(&fusion, NULL, 0), 0);
}

/* 77: without a compiler all that needs one was skipped. */
int main(int argc, char **argv) {
    struct criterion_test_set *tests = criterion_initialize();
    bool is_fine = !criterion_handle_args(argc, argv, true) || criterion_run_all_tests(tests);
    criterion_finalize(tests);
    if (is_fine && !has_compiler()) {
        fprintf(stderr, "%s\n", why_not);
        return 77;
    }
    return is_fine ? 0 : 1;
}
