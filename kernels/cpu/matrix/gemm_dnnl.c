/* oneDNN's sgemm. */
#include <base/atomic.h>
#include <kernels/cpu/dnnl.h>
#include <kernels/cpu/matrix/gemm.h>

/* atomic: stored (release) by the start, before the first product; loaded (relaxed) by threads that waited for the start */
static _Atomic bool is_left_out;

/* Three products allocate everything that first calls allocate. There is room for it, so if one fails, the system forbids
 * executable pages. */
static void gemm_dnnl_start(void) {
    float a[64] = {0}, b[64] = {0}, c[64] = {0};
    bool is_able = eddy_dnnl_has_room() &&
                   eddy_gemm_dnnl_f32(false, false, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1) &&
                   eddy_gemm_dnnl_f32(false, false, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8) &&
                   eddy_gemm_dnnl_f32(false, true, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8);
    if (!is_able)
        eddy_store_release(&is_left_out, true);
}

bool eddy_gemm_dnnl_is_left_out(void) {
    return eddy_load_relaxed(&is_left_out);
}

static eddy_dnnl_start state = EDDY_DNNL_START;

bool eddy_gemm_dnnl_start(void) {
    return eddy_dnnl_start_once(&state, gemm_dnnl_start);
}

bool eddy_gemm_dnnl_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                        float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                        float beta, float *c, int64_t ldc) {
    /* oneDNN does not scale C if k is 0, whatever beta is. */
    if (k == 0)
        return eddy_gemm_portable_f32(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb,
                                      beta, c, ldc);
    int before = eddy_dnnl_begin();
    dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                                      alpha, a, lda, b, ldb, beta, c, ldc);
    eddy_dnnl_end(before);
    return status == dnnl_success;
}
