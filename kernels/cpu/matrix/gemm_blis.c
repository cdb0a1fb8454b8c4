/* BLIS through its typed expert interface, which takes the number of threads with each call. Only its own names (bli_*)
 * are used, none of the BLAS symbols that other libraries define too. Its pools of packed blocks have locks, so that a fork waits for its calls. */
#include <base/fork_gate.h>
#include <blis.h>
#include <kernels/cpu/matrix/gemm.h>

bool eddy_gemm_blis_is_tuned(void) {
    return bli_arch_query_id() != BLIS_ARCH_GENERIC;
}

/* BLIS expresses transposes by strides. */
bool eddy_gemm_blis_f64(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                        double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                        double beta, double *c, int64_t ldc) {
    rntm_t runtime = BLIS_RNTM_INITIALIZER;
    bli_rntm_set_num_threads(1, &runtime);
    eddy_fork_gate_enter();
    bli_dgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, k, &alpha, (double *)a,
                 transpose_a ? 1 : lda, transpose_a ? lda : 1, (double *)b, transpose_b ? 1 : ldb,
                 transpose_b ? ldb : 1, &beta, c, ldc, 1, NULL, &runtime);
    eddy_fork_gate_leave();
    return true;
}
