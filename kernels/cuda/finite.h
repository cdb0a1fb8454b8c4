/* What EDDY_CHECK_FINITE looks for on CUDA devices: which kernels there are (finite.cu), what they are told, and the host's side (finite.c). Plain C.
 *
 * Of a call with the ticket t, every float that it reads is looked through by eddy_check_infinity_<name>_strided ahead of it, which notes an infinity in the table of marks,
 * row EDDY_CUDA_WORDS + t % EDDY_CUDA_WORDS, as t; and every float that it writes by eddy_check_finite_<name>_strided behind it, operand by operand. Who finds something
 * there records the operand as the failure's position, as on the CPU, and what follows does nothing. */
#ifndef EDDY_KERNELS_CUDA_FINITE_H
#define EDDY_KERNELS_CUDA_FINITE_H

/* Name and enumerator. The kernels take an eddy_cuda_strided of one operand, and those for results eddy_attributes_check_finite. */
#define EDDY_CUDA_FINITE(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)

#endif
