#include <tests/fake_cuda/blas/question.h>
#include <tests/fake_cuda/finding.h>

static bool read_layouts(fake_blas_question *question, const eddy_blas_layout *layouts,
                         const char *entry) {
    for (int k = 0; k < FAKE_MATRICES; k++) {
        const fake_blas_object *layout = fake_blas_object_of(layouts[k], FAKE_BLAS_LAYOUT, entry);
        if (!layout)
            return false;
        question->matrices[k] = layout->as.layout;
    }
    return true;
}

static bool has_shape(const fake_blas_layout *matrix, bool is_transposed, uint64_t rows,
                      uint64_t columns) {
    return matrix->rows == (is_transposed ? columns : rows) &&
           matrix->columns == (is_transposed ? rows : columns);
}

/* NULL, or what is wrong. */
static const char *misfit(const fake_blas_question *question) {
    const fake_blas_description *product = &question->product;
    const fake_blas_layout *all = question->matrices, *d = &all[FAKE_D];
    bool is_f64 = d->type == EDDY_BLAS_F64;
    if (d->type != EDDY_BLAS_F32 && !is_f64 && d->type != EDDY_BLAS_F16 &&
        d->type != EDDY_BLAS_BF16)
        return "a type";
    bool is_tf32 = product->sums == EDDY_BLAS_SUMS_F32_OF_TF32 && d->type == EDDY_BLAS_F32;
    if ((product->sums != (is_f64 ? EDDY_BLAS_SUMS_F64 : EDDY_BLAS_SUMS_F32) && !is_tf32) ||
        product->scale != (is_f64 ? EDDY_BLAS_F64 : EDDY_BLAS_F32))
        return "the type of sums";
    if (d->rows == 0 || d->columns == 0 || question->depth == 0)
        return "a dim of no elements";
    if (!has_shape(&all[FAKE_A], product->is_a_transposed, d->rows, question->depth) ||
        !has_shape(&all[FAKE_B], product->is_b_transposed, question->depth, d->columns) ||
        !has_shape(&all[FAKE_C], false, d->rows, d->columns))
        return "shapes";
    for (int k = 0; k < FAKE_MATRICES; k++) {
        if (all[k].type != d->type || all[k].batches != d->batches || all[k].batches < 1)
            return "types or batches of matrices";
        if (all[k].leading < (int64_t)all[k].rows)
            return "a leading dimension";
    }
    return d->batches > 1 && d->batch == 0 ? "batches that lie on each other" : NULL;
}

bool fake_blas_question_read(fake_blas_question *question, eddy_blas_product product,
                             const eddy_blas_layout *layouts, const char *entry) {
    pthread_mutex_lock(&fake_blas_lock);
    const fake_blas_object *of = fake_blas_object_of(product, FAKE_BLAS_PRODUCT, entry);
    bool is_read = of && read_layouts(question, layouts, entry);
    if (is_read)
        question->product = of->as.product;
    pthread_mutex_unlock(&fake_blas_lock);
    if (!is_read)
        return false;
    const fake_blas_layout *a = &question->matrices[FAKE_A];
    question->depth = question->product.is_a_transposed ? a->rows : a->columns;
    const char *wrong = misfit(question);
    if (wrong)
        fake_finding("product: %s refuses %s", entry, wrong);
    return !wrong;
}

static uint64_t mix(uint64_t sum, uint64_t word) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

uint64_t fake_blas_question_hash(const fake_blas_question *question) {
    const fake_blas_description *product = &question->product;
    uint64_t sum = mix((uint64_t)product->is_a_transposed << 1 | (uint64_t)product->is_b_transposed,
                       (uint64_t)product->epilogue);
    for (int k = 0; k < FAKE_MATRICES; k++) {
        const fake_blas_layout *matrix = &question->matrices[k];
        sum = mix(mix(sum, matrix->rows), matrix->columns);
        sum = mix(mix(sum, (uint64_t)matrix->leading), (uint64_t)matrix->batch);
        sum = mix(mix(sum, (uint64_t)matrix->type), (uint64_t)matrix->batches);
    }
    return sum;
}

uint64_t fake_blas_element_bytes(const fake_blas_question *question) {
    int type = question->matrices[FAKE_D].type;
    return type == EDDY_BLAS_F64 ? 8 : type == EDDY_BLAS_F32 ? 4 : 2;
}
