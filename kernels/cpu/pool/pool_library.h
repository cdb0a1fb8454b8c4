/* Pools by oneDNN, slice by slice: of f32, without dilation, on images that are row-major or channels-last without gaps.
 * The library processes the elements of a window in sequence, as pool.c does if it sums in sequence, so both give the same
 * bits. Its maximum does not handle NaN and -infinity, so images are searched for them first. */
#ifndef EDDY_KERNELS_CPU_POOL_LIBRARY_H
#define EDDY_KERNELS_CPU_POOL_LIBRARY_H

#include <kernels/cpu/pool/pool_plan.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef EDDY_HAVE_DNNL
#include <kernels/cpu/conv/conv_slice.h>

/* A max_pool2d, or an average that sums in sequence. Averages of row-major images do not: converting the order of images
 * takes the library as long as our code takes in all. */
typedef struct eddy_pool_request {
    eddy_image x, out;
    eddy_pool_axis height, width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    bool averages;
} eddy_pool_request;

/* How the library computes a call; a part of the call's plan (kernels/kernel.h). */
typedef struct eddy_pool_library {
    eddy_conv_cut cut;
    eddy_conv_kinds kinds;
    const void *prepared[EDDY_CONV_KINDS]; /* for each kind, others NULL; held until the end */
    int64_t parts;
    size_t scratch_bytes;                   /* of a part, rounded up */
    int64_t x_image, x_row, y_image, y_row; /* strides in elements */
    bool averages;
} eddy_pool_library;

/* UNSUPPORTED if the library does not serve the request. After UNSUPPORTED or OUT_OF_MEMORY there is nothing to end. Sets
 * *has_started_library if this call started the library, which it does not if memory is short. For eddy_kernel.prepare. */
EDDY_MUST_USE eddy_status eddy_pool_library_prepare(eddy_pool_library *library,
                                                    const eddy_pool_request *request,
                                                    bool *has_started_library);
size_t eddy_pool_library_workspace(const eddy_pool_library *library);
void eddy_pool_library_end(const eddy_pool_library *library);
/* views: x, out. False if the result is incomplete, since x has values that the library's maximum does not handle. If the
 * library lacks memory, the call fails. */
bool eddy_pool_library_run(const eddy_pool_library *library, const eddy_kernel_call *call);
#endif

#endif
