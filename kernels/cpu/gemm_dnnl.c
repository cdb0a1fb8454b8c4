/* oneDNN's sgemm. The library may be built over OpenMP, whose number of threads is a setting of the calling thread: it is
 * set to 1 for the call and put back. The OpenMP runtime is the one oneDNN brought along, looked up by name, since a weak
 * reference would be settled when the program is linked. */
#include <base/assert.h>
#include <base/atomic.h>
#include <dlfcn.h>
#include <kernels/cpu/gemm.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <string.h>

typedef int get_fn(void);
typedef void set_fn(int);

/* atomic: every thread that finds `openmp_looked_up` false stores the same values; release and acquire pair the flag with
 * the two pointers. */
static _Atomic(void *) openmp_get, openmp_set;
static _Atomic bool openmp_looked_up;

static bool openmp(get_fn **get, set_fn **set) {
    if (!eddy_load_acquire(&openmp_looked_up)) {
        eddy_store_relaxed(&openmp_get, dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
        eddy_store_relaxed(&openmp_set, dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
        eddy_store_release(&openmp_looked_up, true);
    }
    void *found_get = eddy_load_relaxed(&openmp_get), *found_set = eddy_load_relaxed(&openmp_set);
    /* ISO C has no conversion from an object pointer to a function's; POSIX gives both one form. */
    memcpy(get, &found_get, sizeof(found_get));
    memcpy(set, &found_set, sizeof(found_set));
    return found_get != NULL && found_set != NULL;
}

/* oneDNN generates its code on the first calls and keeps it in static objects of functions: an exit handler that was
 * registered before them runs after they are gone, while products may still be under way. Three products need all of them. */
static void start(void) {
    float a[64] = {0}, b[64] = {0}, c[64] = {0};
    eddy_gemm_dnnl_f32(false, false, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1);
    eddy_gemm_dnnl_f32(false, false, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8);
    eddy_gemm_dnnl_f32(false, true, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8);
}

static pthread_once_t started = PTHREAD_ONCE_INIT;
static _Atomic bool is_started; /* atomic: release by who has waited for `start`, acquire by who need not */

bool eddy_gemm_dnnl_start(void) {
    if (EDDY_LIKELY(eddy_load_acquire(&is_started)))
        return false;
    pthread_once(&started, start);
    eddy_store_release(&is_started, true);
    return true;
}

void eddy_gemm_dnnl_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
    if (k == 0) { /* oneDNN leaves C alone then, whatever beta is */
        eddy_gemm_portable_f32(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    get_fn *get;
    set_fn *set;
    bool has_openmp = openmp(&get, &set);
    int before = has_openmp ? get() : 1;
    if (before != 1)
        set(1);
    dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (before != 1)
        set(before);
    /* Refused (out of memory for its packing): the product is still owed. */
    if (status != dnnl_success)
        eddy_gemm_portable_f32(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
