/* Entries that make contexts and descriptions of products, and set their attributes. */
#include <string.h>
#include <tests/fake_cuda/blas/fault.h>
#include <tests/fake_cuda/blas/object.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/option.h>

size_t cublasLtGetVersion(void) {
    (void)fake_blas_fault(FAKE_cublasLtGetVersion);
    return (size_t)fake_options_read()->blas_version;
}

/* Makes an object, whose handle goes to *handle: with the lock, or NULL and *status. */
static fake_blas_object *create(fake_blas_entry entry, fake_kind kind, void *handle,
                                eddy_blas_status *status) {
    void *made;
    *status = fake_blas_fault(entry);
    if (*status)
        return NULL;
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_create(kind, &made);
    if (object) {
        memcpy(handle, &made, sizeof(made));
        return object;
    }
    pthread_mutex_unlock(&fake_blas_lock);
    *status = EDDY_BLAS_ALLOC_FAILED;
    return NULL;
}

static eddy_blas_status destroy(fake_blas_entry entry, const void *handle, fake_kind kind,
                                const char *name) {
    eddy_blas_status status = fake_blas_fault(entry);
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_of(handle, kind, name);
    if (object)
        fake_blas_object_destroy(object);
    pthread_mutex_unlock(&fake_blas_lock);
    return object ? status : EDDY_BLAS_INVALID_VALUE;
}

/* ---- contexts: the library's kernel on a device, whose context is the thread's ---- */

eddy_blas_status cublasLtCreate(eddy_blas_context *handle) {
    static const unsigned char image[1];
    eddy_cu_module module;
    eddy_cu_function multiply;
    eddy_blas_status status;
    if (cuModuleLoadData(&module, image) != 0)
        return EDDY_BLAS_NOT_INITIALIZED;
    fake_blas_object *object = NULL;
    if (cuModuleGetFunction(&multiply, module, "fake_blas_multiply") != 0)
        status = EDDY_BLAS_NOT_INITIALIZED;
    else
        object = create(FAKE_cublasLtCreate, FAKE_BLAS_CONTEXT, handle, &status);
    if (!object) {
        (void)cuModuleUnload(module);
        return status;
    }
    object->as.context.module = module;
    object->as.context.multiply = multiply;
    pthread_mutex_unlock(&fake_blas_lock);
    return 0;
}

/* The driver says if kernels of it may still run. */
eddy_blas_status cublasLtDestroy(eddy_blas_context handle) {
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_of(handle, FAKE_BLAS_CONTEXT, "cublasLtDestroy");
    eddy_cu_module module = object ? object->as.context.module : NULL;
    pthread_mutex_unlock(&fake_blas_lock);
    if (module)
        (void)cuModuleUnload(module);
    return destroy(FAKE_cublasLtDestroy, handle, FAKE_BLAS_CONTEXT, "cublasLtDestroy");
}

/* ---- layouts ---- */

eddy_blas_status cublasLtMatrixLayoutCreate(eddy_blas_layout *handle, eddy_blas_type type,
                                            uint64_t rows, uint64_t columns, int64_t leading) {
    eddy_blas_status status;
    fake_blas_object *object =
        create(FAKE_cublasLtMatrixLayoutCreate, FAKE_BLAS_LAYOUT, handle, &status);
    if (!object)
        return status;
    object->as.layout = (fake_blas_layout){
        .type = type, .rows = rows, .columns = columns, .leading = leading, .batches = 1};
    pthread_mutex_unlock(&fake_blas_lock);
    return 0;
}

eddy_blas_status cublasLtMatrixLayoutDestroy(eddy_blas_layout handle) {
    return destroy(FAKE_cublasLtMatrixLayoutDestroy, handle, FAKE_BLAS_LAYOUT,
                   "cublasLtMatrixLayoutDestroy");
}

/* ---- attributes ---- */

/* What an attribute is written to; NULL: there is none of this number. */
typedef struct place {
    void *at;
    size_t bytes;
} place;

static eddy_blas_status set(fake_blas_entry entry, const char *name, place to, const void *value,
                            size_t bytes) {
    eddy_blas_status status = fake_blas_fault(entry);
    if (status)
        return status;
    if (!to.at || to.bytes != bytes || !value) {
        fake_finding("attribute: %s does not take %llu bytes so", name, (unsigned long long)bytes);
        return EDDY_BLAS_INVALID_VALUE;
    }
    memcpy(to.at, value, bytes);
    return 0;
}

#define PLACE(member) ((place){&(member), sizeof(member)})

eddy_blas_status cublasLtMatrixLayoutSetAttribute(eddy_blas_layout handle,
                                                  eddy_blas_attribute_of_layout attribute,
                                                  const void *value, size_t bytes) {
    static const char name[] = "cublasLtMatrixLayoutSetAttribute";
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_of(handle, FAKE_BLAS_LAYOUT, name);
    place to = {0};
    if (object && attribute == EDDY_BLAS_LAYOUT_BATCH_COUNT)
        to = PLACE(object->as.layout.batches);
    else if (object && attribute == EDDY_BLAS_LAYOUT_BATCH_OFFSET)
        to = PLACE(object->as.layout.batch);
    eddy_blas_status status = set(FAKE_cublasLtMatrixLayoutSetAttribute, name, to, value, bytes);
    pthread_mutex_unlock(&fake_blas_lock);
    return status;
}

eddy_blas_status cublasLtMatmulDescCreate(eddy_blas_product *handle, eddy_blas_compute sums,
                                          eddy_blas_type scale) {
    eddy_blas_status status;
    fake_blas_object *object =
        create(FAKE_cublasLtMatmulDescCreate, FAKE_BLAS_PRODUCT, handle, &status);
    if (!object)
        return status;
    object->as.product = (fake_blas_description){.sums = sums, .scale = scale, .epilogue = 1};
    pthread_mutex_unlock(&fake_blas_lock);
    return 0;
}

eddy_blas_status cublasLtMatmulDescDestroy(eddy_blas_product handle) {
    return destroy(FAKE_cublasLtMatmulDescDestroy, handle, FAKE_BLAS_PRODUCT,
                   "cublasLtMatmulDescDestroy");
}

eddy_blas_status cublasLtMatmulDescSetAttribute(eddy_blas_product handle,
                                                eddy_blas_attribute_of_product attribute,
                                                const void *value, size_t bytes) {
    static const char name[] = "cublasLtMatmulDescSetAttribute";
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_of(handle, FAKE_BLAS_PRODUCT, name);
    place to = {0};
    if (object && attribute == EDDY_BLAS_PRODUCT_TRANSPOSE_A)
        to = PLACE(object->as.product.is_a_transposed);
    else if (object && attribute == EDDY_BLAS_PRODUCT_TRANSPOSE_B)
        to = PLACE(object->as.product.is_b_transposed);
    else if (object && attribute == EDDY_BLAS_PRODUCT_EPILOGUE)
        to = PLACE(object->as.product.epilogue);
    else if (object && attribute == EDDY_BLAS_PRODUCT_BIAS)
        to = PLACE(object->as.product.bias);
    eddy_blas_status status = set(FAKE_cublasLtMatmulDescSetAttribute, name, to, value, bytes);
    pthread_mutex_unlock(&fake_blas_lock);
    return status;
}

/* ---- preferences ---- */

eddy_blas_status cublasLtMatmulPreferenceCreate(eddy_blas_preference *handle) {
    eddy_blas_status status;
    fake_blas_object *object =
        create(FAKE_cublasLtMatmulPreferenceCreate, FAKE_BLAS_PREFERENCE, handle, &status);
    if (!object)
        return status;
    object->as.preference =
        (fake_blas_wish){.reductions = 7, .alignment = {256, 256, 256, 256}}; /* its defaults */
    pthread_mutex_unlock(&fake_blas_lock);
    return 0;
}

eddy_blas_status cublasLtMatmulPreferenceDestroy(eddy_blas_preference handle) {
    return destroy(FAKE_cublasLtMatmulPreferenceDestroy, handle, FAKE_BLAS_PREFERENCE,
                   "cublasLtMatmulPreferenceDestroy");
}

eddy_blas_status cublasLtMatmulPreferenceSetAttribute(eddy_blas_preference handle,
                                                      eddy_blas_attribute_of_preference attribute,
                                                      const void *value, size_t bytes) {
    static const char name[] = "cublasLtMatmulPreferenceSetAttribute";
    pthread_mutex_lock(&fake_blas_lock);
    fake_blas_object *object = fake_blas_object_of(handle, FAKE_BLAS_PREFERENCE, name);
    place to = {0};
    if (object && attribute == EDDY_BLAS_PREFERENCE_WORKSPACE_BYTES)
        to = PLACE(object->as.preference.workspace_bytes);
    else if (object && attribute == EDDY_BLAS_PREFERENCE_REDUCTIONS)
        to = PLACE(object->as.preference.reductions);
    else if (object && attribute >= EDDY_BLAS_PREFERENCE_ALIGNMENT_A &&
             attribute <= EDDY_BLAS_PREFERENCE_ALIGNMENT_D)
        to = PLACE(object->as.preference.alignment[attribute - EDDY_BLAS_PREFERENCE_ALIGNMENT_A]);
    eddy_blas_status status =
        set(FAKE_cublasLtMatmulPreferenceSetAttribute, name, to, value, bytes);
    pthread_mutex_unlock(&fake_blas_lock);
    return status;
}
