/* Heuristics, which refuse some products and want a workspace for others, by the seed; and products, run by a kernel on the stream (kernels/blas_product.cu). */
#include <string.h>
#include <tests/fake_cuda/blas/fault.h>
#include <tests/fake_cuda/blas/question.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/kernels/blas_product.h>
#include <tests/fake_cuda/option.h>

/* One of so many products is refused; of the rest one of so many is summed in parts. */
#define REFUSED 8
#define IN_PARTS 3
#define WORKSPACE_ALIGNMENT 16
_Static_assert(sizeof(fake_blas_choice) <= sizeof(eddy_blas_algorithm), "a choice is an algorithm");

/* ---- choosing ---- */

static bool has_bias(const fake_blas_question *question) {
    return question->product.epilogue == EDDY_BLAS_EPILOGUE_BIAS;
}

/* As far as the library looks. */
static uint32_t alignment_of(const void *address) {
    uintptr_t bits = (uintptr_t)address | 256;
    return (uint32_t)(bits & -bits);
}

/* By way of the workspace if there is enough of it, and the wish allows it. */
static uint32_t how_to_sum(const fake_blas_question *question, const fake_blas_wish *wish,
                           uint64_t draw, uint64_t *workspace_bytes) {
    const fake_blas_layout *d = &question->matrices[FAKE_D];
    bool rounds = wish->reductions & 4 && fake_blas_element_bytes(question) == 2;
    uint64_t bytes = rounds || d->type == EDDY_BLAS_F64 ? fake_blas_element_bytes(question) : 4;
    bytes *= d->rows * d->columns * (uint64_t)d->batches;
    if (draw % IN_PARTS != 0 || bytes > wish->workspace_bytes ||
        !(rounds || wish->reductions & EDDY_BLAS_REDUCTION_IN_SUMS))
        return FAKE_BLAS_AT_ONCE;
    *workspace_bytes = bytes;
    return rounds ? FAKE_BLAS_IN_ROUNDED_PARTS : FAKE_BLAS_IN_PARTS;
}

/* False: it is not supported. */
static bool choose(const fake_blas_question *question, const fake_blas_wish *wish,
                   fake_blas_choice *choice) {
    uint64_t hash = fake_blas_question_hash(question),
             draw = (hash ^ fake_options_read()->seed) * 0x9e3779b97f4a7c15u >> 20;
    bool is_f64 = question->matrices[FAKE_D].type == EDDY_BLAS_F64;
    if (draw % REFUSED == 0 || (is_f64 && has_bias(question)))
        return false;
    *choice = (fake_blas_choice){.hash = hash};
    choice->how = how_to_sum(question, wish, draw / REFUSED, &choice->workspace_bytes);
    memcpy(choice->alignment, wish->alignment, sizeof(choice->alignment));
    choice->bias_alignment = has_bias(question) ? alignment_of(question->product.bias) : 1;
    return true;
}

eddy_blas_status cublasLtMatmulAlgoGetHeuristic(eddy_blas_context context,
                                                eddy_blas_product product, eddy_blas_layout a,
                                                eddy_blas_layout b, eddy_blas_layout c,
                                                eddy_blas_layout d, eddy_blas_preference preference,
                                                int wanted, eddy_blas_choice *choices, int *found) {
    static const char name[] = "cublasLtMatmulAlgoGetHeuristic";
    const eddy_blas_layout layouts[FAKE_MATRICES] = {a, b, c, d};
    fake_blas_question question;
    eddy_blas_status status = fake_blas_fault(FAKE_cublasLtMatmulAlgoGetHeuristic);
    *found = 0;
    if (status)
        return status;
    pthread_mutex_lock(&fake_blas_lock);
    const fake_blas_object *of = fake_blas_object_of(context, FAKE_BLAS_CONTEXT, name),
                           *wish = fake_blas_object_of(preference, FAKE_BLAS_PREFERENCE, name);
    fake_blas_wish wished = wish ? wish->as.preference : (fake_blas_wish){0};
    pthread_mutex_unlock(&fake_blas_lock);
    if (!of || !wish || wanted < 1 || !fake_blas_question_read(&question, product, layouts, name))
        return EDDY_BLAS_INVALID_VALUE;
    fake_blas_choice choice;
    if (!choose(&question, &wished, &choice))
        return EDDY_BLAS_NOT_SUPPORTED;
    choices[0] = (eddy_blas_choice){.workspace_bytes = choice.workspace_bytes, .waves = 1};
    memcpy(&choices[0].algorithm, &choice, sizeof(choice));
    *found = 1;
    return 0;
}

/* ---- multiplying ---- */

/* NULL, or what the choice was not made for. */
static const char *mismatch(const fake_blas_question *question, const fake_blas_choice *choice,
                            const void *const data[FAKE_MATRICES], const void *workspace,
                            size_t workspace_bytes) {
    if (choice->hash != fake_blas_question_hash(question))
        return "an algorithm of another product";
    for (int k = 0; k < FAKE_MATRICES; k++) {
        uint64_t step = (uint64_t)question->matrices[k].batch * fake_blas_element_bytes(question);
        if (((uintptr_t)data[k] | step) % choice->alignment[k] != 0)
            return "a matrix that is less aligned than the algorithm counts on";
    }
    if (has_bias(question) &&
        (!question->product.bias || alignment_of(question->product.bias) < choice->bias_alignment))
        return "a bias that is absent, or less aligned than the algorithm counts on";
    if (workspace_bytes < choice->workspace_bytes ||
        (workspace_bytes > 0 && (uintptr_t)workspace % WORKSPACE_ALIGNMENT != 0))
        return "a workspace that is too small or not aligned";
    const fake_blas_layout *c = &question->matrices[FAKE_C], *d = &question->matrices[FAKE_D];
    bool is_same = c->leading == d->leading && c->batch == d->batch;
    return data[FAKE_C] == data[FAKE_D] && !is_same ? "c in the place of d, with another layout"
                                                    : NULL;
}

static double scalar_of(const fake_blas_question *question, const void *value) {
    return question->product.scale == EDDY_BLAS_F64 ? *(const double *)value
                                                    : (double)*(const float *)value;
}

static fake_blas_matrix matrix_of(const fake_blas_layout *layout) {
    return (fake_blas_matrix){layout->leading, layout->batch};
}

static void fill(fake_blas_product *p, const fake_blas_question *question,
                 const fake_blas_choice *choice) {
    const fake_blas_layout *all = question->matrices, *d = &all[FAKE_D];
    p->bias = has_bias(question) ? question->product.bias : NULL;
    p->workspace_bytes = choice->workspace_bytes;
    p->rows = (int64_t)d->rows;
    p->columns = (int64_t)d->columns;
    p->depth = (int64_t)question->depth;
    p->batches = d->batches;
    p->a_of = matrix_of(&all[FAKE_A]);
    p->b_of = matrix_of(&all[FAKE_B]);
    p->c_of = matrix_of(&all[FAKE_C]);
    p->d_of = matrix_of(d);
    p->type = d->type;
    p->is_a_transposed = question->product.is_a_transposed;
    p->is_b_transposed = question->product.is_b_transposed;
    p->how = (int32_t)choice->how;
    p->is_tf32 = question->product.sums == EDDY_BLAS_SUMS_F32_OF_TF32;
}

static eddy_blas_status launch(eddy_cu_function function, fake_blas_product *p,
                               eddy_cu_stream stream) {
    size_t bytes = sizeof(*p);
    void *extra[] = {(void *)1, p, (void *)2, &bytes, NULL};
    eddy_cu_result result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
    return result == 0                       ? 0
           : result == EDDY_CU_OUT_OF_MEMORY ? EDDY_BLAS_ALLOC_FAILED
                                             : EDDY_BLAS_EXECUTION_FAILED;
}

eddy_blas_status cublasLtMatmul(eddy_blas_context context, eddy_blas_product product,
                                const void *alpha, const void *a, eddy_blas_layout a_layout,
                                const void *b, eddy_blas_layout b_layout, const void *beta,
                                const void *c, eddy_blas_layout c_layout, void *d,
                                eddy_blas_layout d_layout, const eddy_blas_algorithm *algorithm,
                                void *workspace, size_t workspace_bytes, eddy_cu_stream stream) {
    static const char name[] = "cublasLtMatmul";
    const eddy_blas_layout layouts[FAKE_MATRICES] = {a_layout, b_layout, c_layout, d_layout};
    const void *const data[FAKE_MATRICES] = {a, b, c, d};
    fake_blas_question question;
    fake_blas_choice choice;
    eddy_blas_status status = fake_blas_fault(FAKE_cublasLtMatmul);
    if (status) {
        (void)cuStreamQuery(stream); /* where the stream captures that is lost, as it mostly is */
        return status;
    }
    pthread_mutex_lock(&fake_blas_lock);
    const fake_blas_object *of = fake_blas_object_of(context, FAKE_BLAS_CONTEXT, name);
    eddy_cu_function multiply = of ? of->as.context.multiply : NULL;
    pthread_mutex_unlock(&fake_blas_lock);
    if (!of || !fake_blas_question_read(&question, product, layouts, name))
        return EDDY_BLAS_INVALID_VALUE;
    memcpy(&choice, algorithm, sizeof(choice));
    const char *wrong = mismatch(&question, &choice, data, workspace, workspace_bytes);
    if (wrong) {
        fake_finding("product: %s is given %s", name, wrong);
        return EDDY_BLAS_INVALID_VALUE;
    }
    fake_blas_product p = {.a = a, .b = b, .d = d, .workspace = workspace};
    fill(&p, &question, &choice);
    p.alpha = scalar_of(&question, alpha);
    p.beta = scalar_of(&question, beta);
    p.c = p.beta != 0 ? c : NULL;
    return launch(multiply, &p, stream);
}
